"""A report on paper: its contents, and the process that typesets it as PDF.

The console describes a report in words of its reader's language (`Paper`). `typesetting` runs as a process, reads that
as JSON and writes the PDF. So the library is loaded only while a report is made, its memory is returned, and the
console's loop goes on. reportlab is optional: `installed` checks for it.
"""

import asyncio
import importlib.util
import sys
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

__all__ = ["Block", "Busy", "Facts", "Heading", "Lines", "NotMade", "Paper", "Rows", "Text", "installed", "made"]

TIMEOUT_S = 60.0
MOST_AT_ONCE, MOST_WAITING = 1, 4
LONGEST_CELL = 2_000


class Heading(Struct, frozen=True, tag=True):
    """A heading within the report."""

    text: str


class Text(Struct, frozen=True, tag=True):
    """A paragraph; `strong` for what must not be overlooked."""

    text: str
    strong: bool = False


class Facts(Struct, frozen=True, tag=True):
    """Names and values."""

    rows: tuple[tuple[str, str], ...]


class Rows(Struct, frozen=True, tag=True):
    """A table. `widths` are parts of the width of the page; columns of `mono` hold codes."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    widths: tuple[float, ...]
    mono: tuple[int, ...] = ()


class Lines(Struct, frozen=True, tag=True):
    """Lines of code: digests, commands, bytes."""

    lines: tuple[str, ...]


Block: TypeAlias = Heading | Text | Facts | Rows | Lines


class Paper(Struct, frozen=True):
    """A report. `foot` is printed on each page beside `page`, a text with {page} and {pages}."""

    title: str
    lang: str
    foot: str
    page: str
    blocks: tuple[Block, ...]


class NotMade(Exception):
    """The PDF could not be made. The message gives the reason."""


class Busy(NotMade):
    """Too many reports are being made."""


_waiting = 0
_turn = asyncio.Semaphore(MOST_AT_ONCE)


def installed() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("reportlab") is not None


async def made(paper: Paper) -> bytes:
    """The PDF, typeset in its own process, one at a time. Raises NotMade."""
    global _waiting  # noqa: PLW0603 - one queue for all requests
    if _waiting >= MOST_WAITING:
        raise Busy("other reports are being made; try again")
    _waiting += 1
    try:
        async with _turn:
            return await _set(msgspec.json.encode(paper))
    finally:
        _waiting -= 1


async def _set(document: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        "daemon.console.typesetting",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            pdf, said = await process.communicate(document)
    except TimeoutError as error:
        raise NotMade(f"it took longer than {TIMEOUT_S:.0f} s; choose a shorter time") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise NotMade(said.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {process.returncode}")
    return pdf
