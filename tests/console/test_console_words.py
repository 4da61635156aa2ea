"""What people read: complete in three languages, and no page asks for a word that nobody wrote."""

import re
import string
import time
from pathlib import Path
from typing import get_args

import pytest

from daemon.console.auth.users import ROLES
from daemon.console.words import words
from daemon.read_model import Lamp
from protocols.contract.commands import COMMANDS, Status
from rules import RULESETS

HERE = Path(words.__file__).parents[1]
# What a template or a program asks for whole, and what it completes with a value.
ASKED = re.compile(r"""\bt\(\s*["']([a-z_][a-z_0-9.]*)["']\s*[,)]""")
SAID = re.compile(r'''"((?:access|alerts|report|fair|trace|dealer|site|menu)\.[a-z_0-9]+)"''')


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
