"""Texts of devices and of the network for terminals: control characters are written as their codes.

Escape sequences can set the clipboard or the title, C1 codes are escape sequences of one character, and bidi marks
change the order in which a line is read. `\\u009b` is also what JSON writes for that character.
"""

import re
from typing import Any, TextIO

__all__ = ["coloured", "plain", "plain_values"]

_OBEYED = re.compile("\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The text with its control characters written as codes; ends of lines and tabs stay."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain_values(value: Any) -> Any:
    """A value of a log line: its texts are plain, at any depth."""
    match value:
        case str():
            return plain(value)
        case dict():
            return {plain_values(key): plain_values(one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain_values(one) for one in value]
        case None | bool() | int() | float():
            return value
        case _:
            return plain(str(value))


def coloured(stream: TextIO) -> TextIO:
    """The stream for our own colours and cursor movements: the command line makes its streams plain."""
    before: TextIO = getattr(stream, "coloured", stream)
    return before
