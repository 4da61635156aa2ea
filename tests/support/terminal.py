"""A program on a real pseudo terminal, and what is on its screen, by the terminal emulator pyte."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import pyte
from helpers import IDLE_S


class Terminal:
    """Started on entry; killed on exit where it still runs. `raw` is all it wrote."""

    def __init__(
        self, command: Sequence[str], *, columns: int = 80, lines: int = 24, env: Mapping[str, str] | None = None
    ) -> None:
        self._command = command
        self._env = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            self._env.pop(name, None)
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._master, self._slave = os.openpty()
        self._size()
        self.before = self.settings()

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *self._command],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=self._env,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()  # it ends what it started
        try:
            self.ended()
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self._master)
            os.close(self._slave)

    def settings(self) -> list[Any]:
        """The terminal's settings, as `stty -a` tells them."""
        return termios.tcgetattr(self._slave)

    def _size(self) -> None:
        size = struct.pack("HHHH", self.screen.lines, self.screen.columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def resize(self, columns: int, lines: int) -> None:
        """As somebody pulls at the window: the program gets SIGWINCH."""
        self.screen.resize(lines, columns)
        self._size()

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    @property
    def lines(self) -> list[str]:
        """What is on the screen now, without the spaces at the ends of lines."""
        return [line.rstrip() for line in self.screen.display]

    def until(self, condition: Callable[[list[str]], object], idle_s: float = IDLE_S) -> list[str]:
        """The screen as soon as `condition` is true of it; fails when nothing was written for `idle_s`, or it ended."""
        heard = time.monotonic()
        began = heard
        while not condition(self.lines):
            ended = self.process.poll() is not None
            if self._read(0.0 if ended else 0.2):
                heard = time.monotonic()
            elif ended or time.monotonic() - heard > idle_s or time.monotonic() - began > 20 * idle_s:
                raise AssertionError("\n".join(self.lines))
        return self.lines

    def ended(self, idle_s: float = IDLE_S) -> int:
        """The exit code, once all it wrote is read."""
        heard = time.monotonic()
        while self.process.poll() is None:
            if self._read(0.2):
                heard = time.monotonic()
            assert time.monotonic() - heard < idle_s, "\n".join(self.lines)
        while self._read(0.0):
            pass
        return self.process.returncode

    def _read(self, wait_s: float) -> bool:
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        data = os.read(self._master, 65536)
        self.raw += data
        self._stream.feed(data)
        return bool(data)
