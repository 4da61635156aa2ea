"""What people read, in the three languages of a Macau floor. Every key stands in each of them: a test says so."""

import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias, get_args

__all__ = ["LANGS", "Lang", "catalog", "choose", "say", "told"]

Lang: TypeAlias = Literal["en", "pt", "zh-Hant"]
LANGS: tuple[Lang, ...] = get_args(Lang)
# What browsers call them.
ALSO: Mapping[str, Lang] = {"zh": "zh-Hant", "zh-tw": "zh-Hant", "zh-hk": "zh-Hant", "zh-mo": "zh-Hant"}


@cache
def catalog(lang: Lang) -> Mapping[str, str]:
    """All words of one language: every `words/*<lang>.toml`."""
    found: dict[str, str] = {}
    for file in sorted(resources.files("daemon.console").joinpath("words").iterdir(), key=lambda file: file.name):
        if file.name == f"{lang}.toml" or file.name.endswith(f".{lang}.toml"):
            found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def say(lang: Lang, key: str, /, **values: Any) -> str:
    """The words of `key`; what nobody translated, a game's own word for instance, stands as it is."""
    text = catalog(lang).get(key) or catalog("en").get(key)
    return key.rpartition(".")[2].replace("_", " ") if text is None else text.format(**values) if values else text


LONGEST, LONGEST_PATTERN = 2000, 400
"""Characters. What is longer stands as it was said, or is not looked through for values: nobody's message is costly."""


def told(lang: Lang, code: str, said: str) -> str:
    """What the floor says of a fault or an alert in its English, as a reader says it; a detail in parentheses is kept.

    What nobody translated, or what another version of the floor says otherwise, stands as it was said.
    """
    if lang == "en" or len(said) > LONGEST:
        return said
    plain, patterns = _floor()
    # Its own code, or the family: of those that only a device's manual knows, or of all alarms of fairness.
    for place in (code, code.rpartition("_")[0], code.partition(".")[0]):
        if key := plain.get((place, said)):
            return say(lang, key)
        for pattern, key in patterns.get(place, ()) if len(said) <= LONGEST_PATTERN else ():
            if found := pattern.fullmatch(said):
                return say(lang, key, **found.groupdict())
    if said.endswith(")"):
        for mark in re.finditer(r" \(", said):
            if key := plain.get((code, said[: mark.start()])):
                return say(lang, "faults.detail", one=say(lang, key), more=said[mark.end() : -1])
    return said


@cache
def _floor() -> tuple[Mapping[tuple[str, str], str], Mapping[str, list[tuple[re.Pattern[str], str]]]]:
    """The keys of what the floor says: by code and English; and by code and pattern, where values are to be found."""
    plain: dict[tuple[str, str], str] = {}
    patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for key, text in catalog("en").items():
        match key.split("."):
            case ["fault", *_, kind, name, _]:
                code = f"{kind}.{name}"
            case ["fair", word] if word.startswith(("alarm_", "do_")):
                code = "fairness"
            case _:
                continue
        if "{" in text:
            patterns.setdefault(code, []).append((re.compile("".join(_pattern(text)), re.DOTALL), key))
        else:
            plain[code, text] = key
    return plain, patterns


def _pattern(text: str) -> Iterator[str]:
    for before, name, _, _ in string.Formatter().parse(text):
        yield re.escape(before)
        if name:
            yield f"(?P<{name}>.+?)"


def choose(cookie: str, accepted: str) -> Lang:
    """The language a person chose, or else the first of those the browser accepts."""
    for lang in LANGS:
        if cookie == lang:
            return lang
    for part in accepted.split(","):
        word = part.partition(";")[0].strip().lower()
        while word:
            for lang in LANGS:
                if word == lang.lower():
                    return lang
            if word in ALSO:
                return ALSO[word]
            word = word.rpartition("-")[0]
    return "en"
