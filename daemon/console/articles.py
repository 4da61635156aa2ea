"""The texts of the law: a summary of each article, and the anchors of the articles that verdicts cite.

A verdict cites "Despacho 55/2004 art. 9(3)(2)"; the page of the text is /law/<ruleset>, with an anchor for each
paragraph and for each article above it. The files are in `rules/law`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

__all__ = [
    "Cited",
    "Paragraph",
    "Proofs",
    "Publication",
    "Text",
    "anchor",
    "cited",
    "paragraphs",
    "proofs_of",
    "text_of",
]

Numbers: TypeAlias = tuple[str, ...]
"""An article and its paragraph: 9, 3, 2."""
Proofs: TypeAlias = dict[str, list[str]]
"""The tests that prove each paragraph."""

LONGEST = 400
"""Maximum characters of a citation that is searched for articles."""
_CITED = re.compile(r"(?P<act>.+? \d+/\d+) art\. (?P<rest>.+)")
_CHANGED = re.compile(r" \(\d+/\d+\)$")
_NUMBER = re.compile(r"[A-Za-z0-9]+")
_RANGE = re.compile(r"(.*?)(\d+)\)-\((\d+)\)$")


class Publication(Struct, frozen=True, forbid_unknown_fields=True):
    """An act as it was published. `act` is its name in verdicts; dates as 2004-05-17; `changed_by` other acts."""

    act: str
    title: str
    title_zh: str = ""
    edition: str = ""
    signed: str = ""
    gazette: str = ""
    published: str = ""
    pages: str = ""
    changed_by: tuple[str, ...] = ()


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of `rules/law`."""

    publication: tuple[Publication, ...]
    articles: dict[str, str]
    not_ours: dict[str, str] = {}
    variants: tuple[dict[str, Any], ...] = ()
    within: str = ""


class Paragraph(Struct, frozen=True):
    """One paragraph on the page: its number as printed, its anchor, its summary, and whether a program implements it.

    `also`: further anchors that lead here, of articles above it that have no paragraph of their own.
    """

    number: str
    anchor: str
    requires: str
    kept: bool
    tests: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class Cited(Struct, frozen=True):
    """A piece of a citation and its anchor; "" where it names no paragraph of the text."""

    text: str
    anchor: str


@lru_cache(maxsize=4)
def text_of(ruleset: str) -> Text | None:
    """The text of a ruleset; None where there is none."""
    file = resources.files("rules.law").joinpath(f"{ruleset}.toml")
    if not re.fullmatch(r"[a-z.-]+", ruleset) or not file.is_file():
        return None
    return msgspec.toml.decode(file.read_bytes(), type=Text)


def proofs_of(ruleset: str) -> Proofs:
    """The tests that prove each paragraph. Read from the file each time, because it is long and rarely shown."""
    data = resources.files("rules.law").joinpath("proofs.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Proofs]).get(ruleset, {})


def anchor(edition: str, numbers: Sequence[str]) -> str:
    """The anchor of an article on the page of its text."""
    return "-".join((f"e{edition}" if edition else "art", *numbers))


def numbers_of(article: str) -> Numbers:
    """ "9(3)(2)" is 9, 3, 2."""
    return tuple(_NUMBER.findall(article))


def _each(article: str) -> Iterator[Numbers]:
    """The articles of "2(2)-(3)"; most are one."""
    found = _RANGE.fullmatch(article)
    if found is None:
        yield numbers_of(article)
        return
    head, first, last = found.groups()
    for number in range(int(first), min(int(last), int(first) + 50) + 1):
        yield (*numbers_of(head), str(number))


def _split(key: str) -> tuple[str, str]:
    """The edition and the article of a key: "2003:3(3), seeing" is of 2003 and 3(3)."""
    edition, _, article = key.rpartition(":")
    return edition, article.partition(",")[0]


def _places(text: Text) -> Iterator[tuple[str, str, Numbers]]:
    """Key, edition and numbers of each paragraph, in the order of the file."""
    for key in (*text.articles, *text.not_ours):
        edition, article = _split(key)
        for numbers in _each(article):
            yield key, edition, (*numbers_of(text.within), *numbers)


@lru_cache(maxsize=4)
def anchors(ruleset: str) -> frozenset[str]:
    """All anchors of a text: of each paragraph, and of each article above one."""
    text = text_of(ruleset)
    places = _places(text) if text is not None else ()
    return frozenset(
        anchor(edition, numbers[:length]) for _, edition, numbers in places for length in range(1, len(numbers) + 1)
    )


@lru_cache(maxsize=500)
def cited(ruleset: str, law: str) -> tuple[Cited, ...]:
    """A citation in pieces, each with its anchor; one piece without an anchor where the text does not have it."""
    text = text_of(ruleset)
    found = _CITED.fullmatch(law) if len(law) <= LONGEST else None
    if text is None or found is None:
        return (Cited(law, ""),)
    editions = [one.edition for one in text.publication if one.act == found["act"]]
    known = anchors(ruleset)
    pieces = []
    for n, piece in enumerate(found["rest"].split(", art. ")):
        numbers = next(_each(_CHANGED.sub("", piece)))
        where = anchor(editions[0], numbers) if editions else ""
        pieces.append(Cited(f"art. {piece}" if n else f"{found['act']} art. {piece}", where if where in known else ""))
    return tuple(pieces)


def paragraphs(text: Text, edition: str, proofs: Proofs) -> list[Paragraph]:
    """The paragraphs of one edition by article; within a paragraph, first the parts that a program implements."""
    rows = [(key, text.articles[key], True) for key in text.articles]
    rows += [(key, text.not_ours[key], False) for key in text.not_ours]
    seen: set[str] = set()
    made = []
    for key, requires, kept in sorted(rows, key=lambda row: _order(_split(row[0])[1])):
        of, article = _split(key)
        if of != edition:
            continue
        within = numbers_of(text.within)
        all_numbers = [(*within, *numbers) for numbers in _each(article)]
        names = [anchor(edition, numbers[:length]) for numbers in all_numbers for length in range(1, len(numbers) + 1)]
        new = [name for name in dict.fromkeys(names) if name not in seen]
        seen.update(new)
        own = anchor(edition, all_numbers[0])
        made.append(
            Paragraph(
                _number(text.within, key.rpartition(":")[2]),
                own if own in new else "",
                requires,
                kept,
                tuple(proofs.get(key, ())),
                tuple(name for name in new if name != own),
            )
        )
    return made


def _number(within: str, key: str) -> str:
    """The number as verdicts cite it: within article 4, "10(a), x" is 4(10)(a), x."""
    if not within:
        return key
    found = re.fullmatch(r"(\d+)(.*)", key)
    return f"{within}({found[1]}){found[2]}" if found else key


def _order(article: str) -> list[int]:
    """Sort key: article, then paragraph. Subparagraphs keep the order of the file."""
    return [int(number) for number in numbers_of(article)[:2] if number.isdecimal()]
