"""The texts of the console in three languages. A test checks that each language has all keys."""

import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from daemon.words.citations import cite
from daemon.words.numbers import LANGS, Lang, Numeral, plural
from protocols.contract.documents import Alert
from protocols.contract.reasons import Reason, Value
from protocols.contract.results import Irregularity

__all__ = [
    "LANGS",
    "Lang",
    "alert",
    "announced",
    "catalog",
    "choose",
    "device_text",
    "fault_text",
    "noted",
    "plurals",
    "reason",
    "say",
    "sentence",
]

# Limits of a browser's accepted languages: characters, languages, and parts of one. Any client may send 64 KiB.
MOST_ACCEPTED, MOST_LANGUAGES, MOST_TAGS = 200, 10, 3
# Other codes that browsers send.
ALSO: Mapping[str, Lang] = {"zh": "zh-Hant", "zh-tw": "zh-Hant", "zh-hk": "zh-Hant", "zh-mo": "zh-Hant"}


@cache
def catalog(lang: Lang) -> Mapping[str, str]:
    """All words of one language: every `words/*<lang>.toml`, and those of each device and game in a folder.

    A sentence with plural forms has its form "other".
    """
    return {key: text if isinstance(text, str) else text["other"] for key, text in _read(lang).items()}


@cache
def plurals(lang: Lang) -> Mapping[str, Mapping[str, str]]:
    """The sentences with plural forms, each with those of its language: `{ one = "…", other = "…" }`."""
    return {key: forms for key, forms in _read(lang).items() if not isinstance(forms, str)}


@cache
def _read(lang: Lang) -> Mapping[str, str | dict[str, str]]:
    found: dict[str, str | dict[str, str]] = {}
    folder = Path(__file__).parent  # importlib.resources would load the modules of archives into every process
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name == f"{lang}.toml" or file.name.endswith(f".{lang}.toml"):
            found |= tomllib.loads(file.read_text(encoding="utf-8"))
    for file in sorted((folder / "games").iterdir(), key=lambda file: file.name):
        found |= tomllib.loads(file.read_text(encoding="utf-8"))[lang]
    if lang != "en":  # English is the drivers' own text, in devices.en.toml
        for file in sorted((folder / "devices").iterdir(), key=lambda file: file.name):
            found |= tomllib.loads(file.read_text(encoding="utf-8")).get(lang, {})
    return found


def _text(lang: Lang, key: str, values: Mapping[str, Any]) -> str | None:
    """The text of `key` in the plural form for its count; None: there is none."""
    if key not in catalog(lang):
        lang = "en"
    forms = plurals(lang).get(key)
    if forms is None or (count := _count(values)) is None:
        return catalog(lang).get(key)
    return forms[plural(lang, count)]


def _count(values: Mapping[str, Any]) -> float | Decimal | None:
    """The number that chooses the plural form: `n`, or the only number."""
    numbers = {name: one for name, one in values.items() if type(one) is int or isinstance(one, Numeral)}
    one = numbers.get("n", next(iter(numbers.values())) if len(numbers) == 1 else None)
    return one.value if isinstance(one, Numeral) else one


def say(lang: Lang, key: str, /, **values: Any) -> str:
    """The text of `key`, in the plural form for its count; a key without a text is returned as words."""
    text = _text(lang, key, values)
    return key.rpartition(".")[2].replace("_", " ") if text is None else text.format(**values) if values else text


LONGEST, LONGEST_PATTERN = 2000, 400
"""Maximum characters. Longer texts are shown unchanged or not searched for values, which bounds the cost."""
# Numbers that are read from a text choose a plural form only with fewer digits.
MOST_DIGITS = 10
# Cached sentences: pages are rendered often and have few of them.
REMEMBERED = 500
# Values are one word, for which the pattern is fast, except these.
SENTENCES = ("place", "where", "why")

REMEDY = Reason("remedy")
"""The remedy of an alert that has one sentence for it."""
_Known: TypeAlias = tuple[str, Mapping[str, str], str | None]


def device_text(lang: Lang, code: str, said: str) -> str:
    """The English text of a fault, or of a refusal, an entry or wrong books of a jackpot, in the reader's language.

    A detail in parentheses is kept. A text without a translation is returned as it is.
    """
    known = _known(code, said)
    return said if known is None else _translated(lang, *known)


class _Values(dict[str, str]):
    """The values of a sentence; another version of the rules may leave one out."""

    def __missing__(self, name: str) -> str:
        return "?"


def reason(lang: Lang, one: Reason | None, of: str = "") -> str:
    """The sentence of a reason; `of`: the code of its alert. An unknown code is returned as words."""
    if one is None:
        return ""
    for key in _keys(one.code, of):
        if text := _text(lang, key, one.values):
            return text.format_map(_Values({name: value(lang, name, of) for name, of in one.values.items()}))
    return one.code.replace("_", " ")


def announced(lang: Lang, texts: Mapping[str, str]) -> str:
    """The announcement of a result by language: the reader's, else the English one; "" for none."""
    return texts.get(lang) or texts.get("en", "")


def fault_text(lang: Lang, code: str) -> str:
    """The text of a fault; "" for one whose text needs values."""
    text = catalog(lang).get(f"fault.{code}.text", "")
    return "" if "{" in text else text


# The first word of a sentence; a name of a device has digits.
_FIRST_WORD = re.compile(r"(?!feltd\b)[^\W\d_]+(?:['’-][^\W\d_]+)*[,;:.]?(?=\s|$)")


def sentence(text: str, name: str = "") -> str:
    """The sentence with a capital, for use without a text before it. A first word that is a name is not changed.

    `name`: the name of its device. The catalogues have the sentences of faults, alerts, reasons and irregularities as
    they follow a colon.
    """
    first = _FIRST_WORD.match(text)
    return text if first is None or first[0] == name else text[:1].upper() + text[1:]


def _keys(code: str, of: str) -> tuple[str, ...]:
    match of.partition(".")[0]:
        case "" | "round":  # the code of a void by a wheel is its fault's name
            return f"reason.{code}", f"fault.wheel.{code}.text", f"fault.saturn.{code}.text"
        case "fairness":
            return (f"fair.{code}",)
        case _:
            return (f"alert.{of}.{code}",)


def alert(code: str, why: Reason, to_do: Reason | None = REMEDY, **fields: Any) -> Alert:
    """An alert with its sentences in English, too. `fields`: other fields of an Alert."""
    return Alert(
        code=code, text=reason("en", why, code), remedy=reason("en", to_do, code), why=why, to_do=to_do, **fields
    )


def noted(lang: Lang, one: Irregularity) -> str:
    """An irregularity of a round. If its reason begins with a seat (`seat_…`), the words of its code are added."""
    text, why = reason(lang, one.reason), f"irregular.{one.code}"
    if one.reason.code.startswith("seat_") and why in catalog("en"):
        return say(lang, "faults.detail", one=text, more=say(lang, why))
    return text


def _known(code: str, said: str) -> _Known | None:
    """The key of a text, its values, and the detail in parentheses; None if there is no translation."""
    return _looked_up(code, said) if max(len(code), len(said)) <= LONGEST else None


def _translated(lang: Lang, key: str, values: Mapping[str, str], more: str | None) -> str:
    numbers = {name: int(of) for name, of in values.items() if of.isdecimal() and len(of) < MOST_DIGITS}
    text = _text(lang, key, numbers) or ""
    one = text.format_map({name: value(lang, name, of) for name, of in values.items()})
    return say(lang, "faults.detail", one=one, more=more) if more is not None else one


def value(lang: Lang, name: str, of: Value) -> str:
    """A value in a sentence: most are names and numbers, which are not translated."""
    text = str(of)
    if name == "article":
        return cite(lang, text)
    key = f"dealer.act_{text}" if name == "action" else f"value.{name}_{text.replace(' ', '_')}"
    return catalog(lang).get(key, text)


@lru_cache(maxsize=REMEMBERED)
def _looked_up(code: str, said: str) -> _Known | None:
    plain, patterns = _floor()
    for place in (code, code.rpartition("_")[0]):  # its own code, or the family that only a device's manual explains
        if key := plain.get((place, said)):
            return key, {}, None
        for pattern, key in patterns.get(place, ()) if len(said) <= LONGEST_PATTERN else ():
            if found := pattern.fullmatch(said):
                return key, found.groupdict(), None
    if said.endswith(")"):
        for mark in re.finditer(r" \(", said):
            if key := plain.get((code, said[: mark.start()])):
                return key, {}, said[mark.end() : -1]
    return None


@cache
def _floor() -> tuple[Mapping[tuple[str, str], str], Mapping[str, list[tuple[re.Pattern[str], str]]]]:
    """The keys of faults and of the sentences of jackpots: by code and English, or by code and pattern."""
    plain: dict[tuple[str, str], str] = {}
    patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for key, text in _english():
        match key.split("."):
            case ["fault", *_, kind, name, _]:
                code = f"{kind}.{name}"
            case ["told", kind, name, _]:
                code = f"{kind}.{name}"
            case _:
                continue
        if "{" in text:
            patterns.setdefault(code, []).append((re.compile("".join(_pattern(text)), re.DOTALL), key))
        else:
            plain[code, text] = key
    return plain, patterns


def _english() -> Iterator[tuple[str, str]]:
    """Each key with its text, and with its other plural forms."""
    yield from catalog("en").items()
    for key, forms in plurals("en").items():
        yield from ((key, text) for form, text in forms.items() if form != "other")


def _pattern(text: str) -> Iterator[str]:
    for before, name, _, _ in string.Formatter().parse(text):
        yield re.escape(before)
        if name:
            yield f"(?P<{name}>.+?)" if name in SENTENCES else f"(?P<{name}>\\S+)"


def choose(cookie: str, accepted: str) -> Lang:
    """The chosen language, or else the first supported one that the browser accepts; the list is bounded."""
    for lang in LANGS:
        if cookie == lang:
            return lang
    for part in accepted[:MOST_ACCEPTED].split(",")[:MOST_LANGUAGES]:
        tags = part.partition(";")[0].strip().lower().split("-")[:MOST_TAGS]
        for count in range(len(tags), 0, -1):
            word = "-".join(tags[:count])
            for lang in LANGS:
                if word == lang.lower():
                    return lang
            if word in ALSO:
                return ALSO[word]
    return "en"
