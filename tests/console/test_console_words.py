"""What people read: complete in three languages, and no page asks for a word that nobody wrote."""

import re
import string
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from daemon.console.auth.users import ROLES
from daemon.views import Lamp
from daemon.words import words
from daemon.words.citations import cite
from daemon.words.local import Local, zone_of
from daemon.words.numbers import number, plural_forms
from protocols.contract.commands import COMMANDS, Status
from protocols.contract.reasons import Reason
from rules import RULESETS

HERE = Path(words.__file__).parents[1] / "console"
OTHERS: list[words.Lang] = [lang for lang in words.LANGS if lang != "en"]
# What a template or a program asks for whole, and what it completes with a value.
ASKED = re.compile(r"""\bt\(\s*["']([a-z_][a-z_0-9.]*)["']\s*[,)]""")
# A log line is no word of a page.
SAID = re.compile(r'''(?<!_log\.warning\()"((?:access|alerts|report|fair|trace|dealer|site|menu)\.[a-z_0-9]+)"''')


def values(text: str) -> set[str]:
    """The names to be filled in."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("lang", words.LANGS)
def test_each_language_has_every_word_with_the_same_values(lang: words.Lang) -> None:
    english, other = words.catalog("en"), words.catalog(lang)
    assert set(english) == set(other)
    for key, text in other.items():
        assert text.strip(), key
        assert values(text) == values(english[key]), key


@pytest.mark.parametrize("lang", [lang for lang in words.LANGS if lang != "en"])
def test_translations_are_used(lang: words.Lang) -> None:
    """A word may be the same in two languages; most are not."""
    english, other = words.catalog("en"), words.catalog(lang)
    same = [key for key, text in english.items() if other[key] == text and len(text) > 14]
    assert not same


@pytest.mark.parametrize("lang", words.LANGS)
def test_a_sentence_that_counts_has_the_plural_forms_of_its_language(lang: words.Lang) -> None:
    """Of CLDR. Where English counts so do the others; Chinese has one form, and a plain text for it."""
    counted, forms = words.plurals("en"), plural_forms(lang)
    assert counted
    assert not [key for key in words.catalog(lang) if key.endswith("_one") and key.removesuffix("_one") in counted], (
        'write { one = "…", other = "…" }'
    )
    for key, given in words.plurals(lang).items():
        assert key in counted, key
        assert set(given) == forms, key
        for text in given.values():
            assert values(text) <= values(words.catalog("en")[key]), key
    assert set(words.plurals(lang)) == (set(counted) if len(forms) > 1 else set())


COUNTS = "n|after|bad|cards|count|days|decks|hours|least|minutes|seats|seconds"
COUNTED = {"en": re.compile(rf"\{{({COUNTS})\}} ([a-z]+s)\b"), "pt": re.compile(rf"\{{({COUNTS})\}} ([a-zà-ü]+s)\b")}
# Fairness speaks of thousands of events; days of retention and the bytes of a limit are many.
MANY = (
    "fair.even_",
    "fair.alarm_",
    "fair.bars_said",
    "fair.ring_said",
    "alert.journal.room.",
    "told.jackpot.refused.long_",
)


@pytest.mark.parametrize("lang", ["en", "pt"])
def test_a_number_before_a_noun_has_a_form_for_one(lang: words.Lang) -> None:
    """ "1 winning bets" is wrong: such a text has plural forms, or says it another way ("bets: 1")."""
    wrong = [
        (key, found[0])
        for key, text in words.catalog(lang).items()
        if key not in words.plurals(lang) and not key.startswith(MANY)
        for found in COUNTED[lang].finditer(text)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("lang", "n", "text"),
    [
        ("en", 0, "0 winning bets"),
        ("en", 1, "1 winning bet"),
        ("en", 2, "2 winning bets"),
        ("pt", 0, "0 apostas vencedoras"),
        ("pt", 1, "1 aposta vencedora"),
        ("pt", 1_000_000, "1000000 apostas vencedoras"),
        ("zh-Hant", 1, "1 項中彩投注"),
    ],
)
def test_counts_are_right_for_one_and_for_many(lang: words.Lang, n: int, text: str) -> None:
    assert words.say(lang, "round.winners", n=n) == text


def test_the_count_is_n_or_the_only_number() -> None:
    assert words.say("en", "access.wait", seconds=1) == "Too many tries. Try again in 1 second."
    assert words.say("pt", "fair.ties", n=number("pt", 1)) == "1 empate"
    assert words.say("pt", "fair.shoe", name="1", n=2) == "Sabot 1: 2 cartas"
    assert words.reason("pt", Reason("packet_cards", {"n": 1, "hand": "B"})) == "foi entregue 1 carta a B"


def test_numbers_are_written_as_each_language_does() -> None:
    assert [number(lang, 1234.56, 1) for lang in words.LANGS] == ["1,234.6", "1\u00a0234,6", "1,234.6"]
    assert [number(lang, -0.5) for lang in words.LANGS] == ["0", "0", "0"]
    assert number("pt", -1.5, 1) == "\u22121,5"


def test_times_are_the_sites_and_dates_the_languages() -> None:
    at = datetime(2026, 11, 20, 18, 5, 6, 789_000, tzinfo=UTC)
    macau = [Local(lang, zone_of("Asia/Macau")) for lang in words.LANGS]
    assert [one.day(at) for one in macau] == ["21 Nov 2026", "21/11/2026", "2026年11月21日"]
    assert [one.short_day(at) for one in macau] == ["21 Nov", "21/11", "11月21日"]
    assert {one.clock(at) for one in macau} == {"02:05:06"}
    assert macau[0].exact(at) == "21 Nov 2026 02:05:06.789 UTC+08:00"
    assert Local("pt", UTC).exact(at) == "20/11/2026 18:05:06.789 UTC"
    assert [macau[0].duration(s) for s in (None, 12.3, 300, 5969, 7200, 9000)] == [
        *("–", "12 s", "5 min", "99 min", "2 h", "2 h 30 min"),
    ]
    assert macau[2].duration(9000) == "2 小時 30 分鐘"


GLOSSARY = Path(__file__).parents[2] / "docs/reference/glossary.md"


def texts(lang: words.Lang) -> dict[str, str]:
    """All texts in all plural forms, without what stands between backticks, and commands."""
    found = dict(words.catalog(lang))
    found |= {f"{key} {form}": text for key, forms in words.plurals(lang).items() for form, text in forms.items()}
    return {key: re.sub("`[^`]*`|feltd [a-z]+", "", text) for key, text in found.items()}


def forbidden(column: int) -> list[str]:
    """The words of a column of the glossary, and for Portuguese those of the old orthography."""
    text = GLOSSARY.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return [word for row in rows[1:] for word in row[column].split(", ") if word]


LOOSE = re.compile(r"\b(told|heard|said|hears?|tells?|stranger)\b|\bshown\b(?! before)", re.IGNORECASE)
"""For what is reported, entered, received, displayed, ignored or expired. Cards are shown before the end."""


@pytest.mark.parametrize("text", ["{hand} was told twice", "not heard for", "The amount as shown", "Say what he said"])
def test_a_loose_word_is_found(text: str) -> None:
    assert LOOSE.search(text)


def test_english_has_the_exact_words_of_the_trade() -> None:
    wrong = {key: text for key, text in texts("en").items() if LOOSE.search(re.sub(r"\{\w+\}", "", text))}
    assert not wrong


def test_the_words_are_those_of_the_glossary() -> None:
    old = GLOSSARY.read_text(encoding="utf-8").partition("Not: ")[2].replace("\n", " ").rstrip(" .").split(", ")
    # An adjective has four endings, a verb many: its stem is what is looked for.
    stems = [re.sub(r" \(.*\)|(?:o|ar)$", "", one) for one in old]
    assert len(old) > 20
    patterns = {
        "pt": re.compile(
            "|".join(rf"\b{one}" for one in [*stems, *(f"{word}\\b" for word in forbidden(4))]), re.IGNORECASE
        ),
        "zh-Hant": re.compile("|".join(forbidden(5))),
    }
    assert patterns["pt"].search("Os inspectores vêem")
    assert patterns["zh-Hant"].search("請通知荷官")
    for lang in OTHERS:
        wrong = {key: found[0] for key, text in texts(lang).items() if (found := patterns[lang].search(text))}
        assert not wrong


# What follows a colon, or stands alone.
SENTENCES = ("fault.", "alert.", "alerts.code.", "alerts.remedy.", "reason.", "irregular.", "told.")


@pytest.mark.parametrize("lang", ["en", "pt"])
def test_a_sentence_begins_small_after_a_colon_and_with_a_capital_alone(lang: words.Lang) -> None:
    """The catalogues have them as they follow a colon; `sentence` is the one place that makes them stand alone."""
    first = {key: text for key, text in texts(lang).items() if key.startswith(SENTENCES) and text[:1].isalpha()}
    assert len(first) > 900
    assert not [key for key, text in first.items() if text[0].isupper() and not text[:2].isupper()]  # but an acronym
    assert not [key for key, text in first.items() if words.sentence(text)[0].islower()]


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("the wheel's rotor stops", "The wheel's rotor stops"),
        ("as respostas chegam danificadas", "As respostas chegam danificadas"),
        ("retirá-la; e outra vez", "Retirá-la; e outra vez"),
        ("wheel-1 does not answer", "wheel-1 does not answer"),
        ("shoe does not answer", "shoe does not answer"),
        ("feltd found no broker", "feltd found no broker"),
        ("MAC of edge-7 is missing", "MAC of edge-7 is missing"),
        ("17 cards", "17 cards"),
        ("有牌讀不到", "有牌讀不到"),
        ("", ""),
    ],
)
def test_a_name_stays_as_it_is_at_the_beginning_of_a_sentence(text: str, alone: str) -> None:
    assert words.sentence(text, "shoe") == alone


PARTICIPLE = re.compile(r"^(?!estado)\w*(?:ad|id|ert|ost|eit)(?P<ending>[oa])\b", re.IGNORECASE)
OF_A_ROUND = ("phase.", "dealer.unknown", "dealer.burn_due", "decide.state_")
OF_ANYTHING = (
    "pit.silenced",
    "state.",
    "worst.silenced",
    "worst.unknown",
    "floor.unknown",
    "floor.chance_unknown",
    "law.",
)


def test_a_portuguese_state_has_the_gender_of_what_it_is_said_of() -> None:
    """A round is "a jogada". Tables, devices and laws have both: their words are of none."""
    endings = {key: found["ending"] for key, text in texts("pt").items() if (found := PARTICIPLE.match(text))}
    assert not [key for key, ending in endings.items() if key.startswith(OF_A_ROUND) and ending == "o"]
    assert not [key for key in endings if key.startswith(OF_ANYTHING)]


def test_chinese_punctuation_is_full_width() -> None:
    half = re.compile(r"[\u4e00-\u9fff] ?([:,;!?](?![\d/])|\()|[:,;!?)][\u4e00-\u9fff]|:($|\{)")
    wrong = {key: text for key, text in texts("zh-Hant").items() if half.search(text)}
    assert not wrong


def test_templates_take_colons_and_stops_from_the_language() -> None:
    pages = {page.name: page.read_text(encoding="utf-8") for page in (HERE / "templates").glob("*.html")}
    assert not [(name, found[0]) for name, text in pages.items() if (found := re.search(r"[%}]}[:.;] ?{[{%]", text))]


@pytest.mark.parametrize(
    ("law", "chinese"),
    [
        ("Despacho 55/2004 art. 5", "第55/2004號批示第五條"),
        ("Despacho 55/2004 art. 17(8)", "第55/2004號批示第十七條第八款"),
        ("Despacho 60/2004 art. 120(21)", "第60/2004號批示第一百二十條第二十一款"),
        ("Decreto Executivo 261/22 art. 4(13)c)i", "第261/22號行政令第四條第十三款c)項i)項"),
        ("art. 10", "第十條"),
        ("the house", "the house"),
    ],
)
def test_articles_are_cited_as_in_macau(law: str, chinese: str) -> None:
    assert cite("zh-Hant", law) == chinese
    assert cite("pt", law) == cite("en", law) == law


def test_every_word_that_a_page_asks_for_is_there() -> None:
    asked = {
        key for page in (HERE / "templates").glob("*.html") for key in ASKED.findall(page.read_text(encoding="utf-8"))
    }
    said = {key for file in HERE.rglob("*.py") for key in SAID.findall(file.read_text(encoding="utf-8"))}
    assert len(asked) > 100
    assert not (asked | said) - set(words.catalog("en"))


@pytest.mark.parametrize(
    ("family", "members"),
    [
        ("role", ROLES),
        ("command", tuple(COMMANDS)),
        ("game", tuple(RULESETS)),
        ("lamp", get_args(Lamp)),
        ("worst", get_args(Lamp)),
        ("answer", get_args(Status)),
        ("clears", ("by itself", "by a person")),
        ("void", ("returned", "may_change", "stand", "stand_may_add")),
        ("error", ("400", "403", "404", "405", "413", "500", "503")),
    ],
)
def test_families_are_complete(family: str, members: tuple[str, ...]) -> None:
    missing = [one for one in members if f"{family}.{one}" not in words.catalog("en")]
    assert not missing


@pytest.mark.parametrize(
    ("cookie", "accepted", "lang"),
    [
        ("pt", "en", "pt"),
        ("", "pt-PT,pt;q=0.9", "pt"),
        ("", "zh-TW,zh;q=0.9,en;q=0.8", "zh-Hant"),
        ("", "zh-Hant-MO", "zh-Hant"),
        ("", "de,fr;q=0.5", "en"),
        ("xx", "", "en"),
        ("", "zh-Hant-MO-x-pit", "zh-Hant"),
        ("", "de-a-b-c-pt, pt", "pt"),
        ("", ",".join(["de"] * 9 + ["pt"]), "pt"),
        ("", ",".join(["de"] * 10 + ["pt"]), "en"),
        ("", "x" * 200 + ",pt", "en"),
    ],
)
def test_the_language_is_the_readers(cookie: str, accepted: str, lang: str) -> None:
    assert words.choose(cookie, accepted) == lang


@pytest.mark.parametrize("accepted", ["x-" * 60_000, "x," * 60_000])
def test_no_header_keeps_the_others_waiting(accepted: str) -> None:
    """It comes before any login."""
    began = time.process_time()
    assert words.choose("", accepted) == "en"
    assert time.process_time() - began < 1  # measured: 0.0001


def test_a_word_nobody_translated_stands_as_it_is() -> None:
    assert words.say("pt", "outcome.some_new_word") == "some new word"
    assert words.say("zh-Hant", "round.round", n="7") == "第 7 局"
