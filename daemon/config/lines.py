"""The line of each key of a TOML text."""

import tomllib
from pathlib import Path
from typing import Any

__all__ = ["Lines", "dotted", "line_of"]


def dotted(at: tuple[Any, ...]) -> str:
    """A key with its sections, as a message names it."""
    return ".".join(str(part) for part in at if not isinstance(part, int)) or "the file"


class Lines:
    """The lines of keys. tomllib gives no lines, so each statement is parsed separately."""

    def __init__(self, text: str) -> None:
        self._at: dict[tuple[Any, ...], int] = {(): 1}
        counts: dict[tuple[Any, ...], int] = {}
        here: tuple[Any, ...] = ()
        began, statement = 1, ""
        for number, line in enumerate(text.split("\n"), 1):
            statement += line + "\n"
            try:
                found: Any = tomllib.loads(statement)
            except (ValueError, RecursionError):
                continue  # its value continues in the next line
            if statement.lstrip().startswith("["):
                here = ()
                while isinstance(found, dict) and found:
                    here = (*here, counts[here]) if here in counts else here
                    word, found = found.popitem()
                    here = (*here, word)
                if isinstance(found, list):
                    counts[here] = counts.get(here, -1) + 1
                    self._at.setdefault(here, began)
                    here = (*here, counts[here])
            self._put(here, found, began)
            began, statement = number + 1, ""

    def _put(self, here: tuple[Any, ...], found: Any, line: int) -> None:
        """All keys of one statement are given its first line."""
        waiting = [(here, found)]
        while waiting:
            at, value = waiting.pop()
            self._at.setdefault(at, line)
            if isinstance(value, dict):
                waiting += [((*at, key), inner) for key, inner in value.items()]

    def of(self, at: tuple[Any, ...]) -> int:
        """The line of `at`, or of its parent."""
        while at not in self._at:
            at = at[:-1]
        return self._at[at]


def line_of(path: Path, at: tuple[Any, ...]) -> int:
    """The line of a key of the file, e.g. ("table", 0, "ruleset")."""
    return Lines(path.read_text(encoding="utf-8")).of(at)
