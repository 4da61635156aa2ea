"""Words that mislead in a technical text are refused in docstrings, comments, log lines and messages of the product.

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

REFUSED = {
    "tell": (r"told|tells(?!.{0,20} apart)|telling", "report, publish, log, name, notify"),
    "hear": (r"hears?|heard|hearing", "receive"),
    "say": (r"said", "sent, reported, stated"),
    "believe": (r"believ(?:es?|ed)", "accept, trust"),
    "stranger": (r"strangers?", "another client, unauthorised user"),
    "plainly": (r"plainly|honest(?:ly)?", "name the behaviour"),
    "nobody knows": (r"nobody knows|nobody said|nobody hears?", "it is unknown"),
    "stands": (r"stands? (?:in (?!place|for|doubt)|on (?:the broker|page)|under|there)", "is, is stored"),
    "deaf": (r"deaf|mute", "does not receive, does not send"),
}
"""By kind: what is refused, and what is meant in its place."""

LEFT = {
    "tell": {"daemon": 25, "drivers": 11, "protocols": 3, "rules": 32, "simulators": 13},
    "hear": {"daemon": 9, "drivers": 7, "simulators": 7},
    "say": {"daemon": 9, "drivers": 6, "protocols": 5, "rules": 1, "simulators": 5},
    "believe": {"daemon": 4, "drivers": 1, "simulators": 1},
    "nobody knows": {"daemon": 2, "drivers": 5},
    "stands": {"daemon": 10, "drivers": 3, "protocols": 6, "rules": 5, "simulators": 1},
    "deaf": {"simulators": 2},
}
"""How often each kind is still there, by room. A number may be lowered; a text that raises one is refused."""
SQL = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|NOT NULL)\b")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment, docstring and message: strings with a space, without placeholders or SQL."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and not SQL.search(text):
                yield node.lineno, text


def refused(source: str) -> Iterator[tuple[str, int, str]]:
    """Kind, line and words of each refused word; not of names in backticks."""
    for line, text in texts(source):
        plain = re.sub(r"`[^`]*`|\bhear=|\{%.*%\}", "", text)
        for kind, (pattern, _) in REFUSED.items():
            for found in re.finditer(rf"\b(?:{pattern})\b", plain, re.IGNORECASE):
                yield kind, line, plain[max(found.start() - 30, 0) : found.end() + 30].replace("\n", " ")


def test_refused_words_are_found_in_comments_docstrings_and_messages_alone() -> None:
    source = '''
"""It tells the host; it tells a torn row apart; `told` is a name."""
x = "heard"  # nobody knows
y = f"the broker {said} has said no"
z = "SELECT said FROM heard x"
'''
    assert Counter(kind for kind, _, _ in refused(source)) == {"tell": 1, "nobody knows": 1, "say": 1}


def test_no_word_that_misleads_is_added() -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for kind, line, words in refused(path.read_text(encoding="utf-8")):
                found.setdefault((kind, room), []).append(f"{path.relative_to(ROOT)}:{line} …{words}…")
    more = {f"{kind} in {room}, for example {REFUSED[kind][1]}": places for (kind, room), places in found.items()
            if len(places) > LEFT.get(kind, {}).get(room, 0)}  # fmt: skip
    assert more == {}
