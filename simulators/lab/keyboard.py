"""Single keys of a terminal, for the demo. The terminal is put back to its settings at the end."""

import asyncio
import contextlib
import os
import re
import termios
from collections.abc import Callable, Iterator

__all__ = ["keys_of", "pressed"]

_NAMES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b" ": "page down",
    b"\r": "enter",
    b"\n": "enter",
    b"\x1b": "escape",
}
_KEY = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)
_READ_BYTES = 256
_VISIBLE, _LINE_MODE, _CONTROLS = 3, termios.ECHO | termios.ICANON, 6


def keys_of(data: bytes) -> list[str]:
    """The names of the keys in the bytes of a terminal; a sequence without a name is left out."""
    found = _KEY.findall(data)
    names = (_NAMES.get(key) or (key.decode("ascii", "replace") if len(key) == 1 else "") for key in found)
    return [name for name in names if name and name.isprintable()]


@contextlib.contextmanager
def pressed(fd: int, on_key: Callable[[str], None]) -> Iterator[bool]:
    """Call `on_key` for each key of the terminal `fd`; yields False without a terminal, or while another process group
    has it.

    Ctrl-C stays a signal. Ctrl-Z is off: a stopped demo would leave the screen as it is.
    """
    try:
        before = termios.tcgetattr(fd)
        ours = os.tcgetpgrp(fd) == os.getpgrp()
    except (termios.error, OSError):
        ours = False
    if not ours:
        yield False
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            data = os.read(fd, _READ_BYTES)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            loop.remove_reader(fd)
        for key in keys_of(data):
            on_key(key)

    changed = termios.tcgetattr(fd)
    changed[_VISIBLE] &= ~_LINE_MODE
    changed[_CONTROLS][termios.VSUSP] = b"\x00"
    termios.tcsetattr(fd, termios.TCSADRAIN, changed)
    loop.add_reader(fd, read)
    try:
        yield True
    finally:
        loop.remove_reader(fd)
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
