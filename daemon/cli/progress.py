"""The progress of a long command: a line on standard error that overwrites itself, only on a terminal."""

import shutil
import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from daemon.plain_text import coloured
from daemon.progress import Progress

__all__ = ["ProgressLine"]

FIRST_AFTER_S = 1.0
EVERY_S = 0.2
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows the name of a task and the part that is done, from 0 to 1. A task of less than a second shows nothing.

    `also_on`: nothing is shown if this is a terminal too, because a command writes its output there.
    """

    def __init__(
        self, file: TextIO | None = None, also_on: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`file`: standard error by default."""
        self._file = file or coloured(sys.stderr)
        self._terminal = self._file.isatty() and not (also_on is not None and also_on.isatty())
        self._clock = clock
        self._next_s = clock() + FIRST_AFTER_S
        self._written = False

    def __call__(self, what: str, part: float) -> None:
        """Write the line again, at most five times a second."""
        if not self._terminal or (now := self._clock()) < self._next_s:
            return
        self._next_s = now + EVERY_S
        self._written = True
        columns = shutil.get_terminal_size().columns
        self._file.write(_CLEAR + f"{what}: {part:.0%}"[: columns - 1])
        self._file.flush()

    def of(self, what: str) -> Progress:
        """The callback that reports the progress of the task `what`."""
        return lambda part: self(what, part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        if self._written:
            self._file.write(_CLEAR)
            self._file.flush()
