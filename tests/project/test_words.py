"""Words that mislead in a technical text are refused in docstrings, comments, log lines, messages and documents.

Decision 0230 says why: who reads "the edge tells" must find out whether it publishes, logs or answers. Ordinary English
is left alone, and so are names in backticks.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("daemon", "drivers", "protocols", "rules", "simulators")

THINGS = (
    r"(?:alerts?|brokers?|cameras?|clients?|commands?|computers?|configurations?|consoles?|devices?|displays?|drivers?|edges?"
    r"|events?|fields?|files?|hosts?|journals?|ledgers?|links?|logs?|machines?|messages?|options?|pages?|process(?:es)?"
    r"|programs?|readers?|reports?|rounds?|rows?|rules|rulesets?|sensors?|services?|settings?|shakers?|shoes?|shufflers?"
    r"|signs?|simulators?|stores?|terminals?|values?|wheels?)"
)
PERSONAL = r"(?:says?|knows?|sees|thinks?|wants?|minds?|remembers?|forgets?|learns?|notices?|feels?|understands?)"

REFUSED = {
    "tell": (r"told|tells(?!.{0,20} apart)|telling", "report, publish, log, name, notify"),
    "hear": (r"hears?|heard|hearing", "receive"),
    "say": (r"said", "sent, reported, stated"),
    "believe": (r"believ(?:es?|ed)", "accept, trust"),
    "stranger": (r"strangers?", "another client, unauthorised user"),
    "plainly": (r"plainly|honest(?:ly)?", "name the behaviour"),
    "nobody knows": (r"nobody knows|nobody said|nobody hears?", "it is unknown"),
    "stands": (r"stands? (?:in\b(?! (?:place|for|doubt))|on (?:the broker|page)|under|there)", "is, is stored"),
    "deaf": (r"deaf|mute", "does not receive, does not send"),
    "person": (
        rf"{THINGS} (?:(?:also|already|never|now|no longer|only|can|cannot|do(?:es)? not|must|will) )?{PERSONAL}",
        "reports, names, stores, receives, detects, requires, supports",
    ),
}
"""By kind: what is refused, and what is meant in its place."""

NO_PROSE = re.compile(r".*\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|NOT NULL)\b.*|\w+(?:, \w+)+", re.DOTALL)
"""SQL, and lists of the names of columns or keys."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment, docstring and message: prose with a space, without placeholders."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and not NO_PROSE.fullmatch(text):
                yield node.lineno, text


def refused(source: str) -> Iterator[tuple[str, int, str]]:
    """Kind, line and words of each refused word; not of names in backticks, keys of a link or Jinja templates."""
    for line, text in texts(source):
        for kind, words in listed(text):
            yield kind, line, words


def listed(text: str) -> Iterator[tuple[str, str]]:
    plain = re.sub(r"`[^`]*`|\bhear=|\{[%{].*", "", text)
    for kind, (pattern, _) in REFUSED.items():
        for found in re.finditer(rf"\b(?:{pattern})\b", plain, re.IGNORECASE):
            yield kind, plain[max(found.start() - 30, 0) : found.end() + 30].replace("\n", " ")


def test_refused_words_are_found_in_comments_docstrings_and_messages_alone() -> None:
    source = '''
"""It tells the host; it tells a torn row apart; `told` is a name."""
x = "heard"  # nobody knows
y = f"the broker {said} has said no"
z = "SELECT said FROM heard x"
w = "name, heard, said"
v = f"{{{{ said[:{w}] }}}}"
u = "a device does not know it, as article 5 says and the dealer knows"
'''
    assert Counter(kind for kind, _, _ in refused(source)) == {"tell": 1, "nobody knows": 1, "say": 1, "person": 1}


def test_no_text_has_a_word_that_misleads() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} …{words}…: write for example {REFUSED[kind][1]}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for kind, line, words in refused(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_english_text_of_the_console_has_one() -> None:
    catalogues = sorted((ROOT / "daemon/words").glob("*en.toml"))
    assert len(catalogues) > 10
    found = [
        f"{path.name}: …{words}…: write for example {REFUSED[kind][1]}"
        for path in catalogues
        for text in re.findall(r'= "(.*)"', path.read_text(encoding="utf-8"))
        for kind, words in listed(text)
    ]
    assert found == []


CODE_OR_TARGET = re.compile(r"(?ms)^ *```.*?^ *```|(?<=\])\([^)\s]*\)")
"""Quoted code, and the targets of links."""


def documents() -> Iterator[Path]:
    """The pages, without decisions, which keep their words, and those of games, which repeat the words of a law."""
    yield from sorted(ROOT.glob("*.md"))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if not path.is_relative_to(ROOT / "docs/decisions") and not path.is_relative_to(ROOT / "docs/reference/games"):
            yield path


def test_no_document_has_one() -> None:
    pages = list(documents())
    assert len(pages) > 60
    found = [
        f"{path.relative_to(ROOT)}: …{words}…: write for example {REFUSED[kind][1]}"
        for path in pages
        for kind, words in listed(CODE_OR_TARGET.sub("", path.read_text(encoding="utf-8")))
    ]
    assert found == []
