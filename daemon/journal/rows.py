"""Rows of a journal: entries to write, rows that were read, and their times.

The store, the readers, `verify`, `export` and `recall` share these.
"""

from datetime import UTC, datetime

import msgspec
from msgspec import Struct, UnsetType

from protocols.contract.topics import EARLIEST, LATEST

__all__ = [
    "BEYOND",
    "COLUMNS",
    "FIRST",
    "Entry",
    "Row",
    "cause_of",
    "id_and_journal",
    "instant",
    "json_or_null",
    "micros_of",
    "no_time",
    "row_of",
    "time_of",
]

COLUMNS = "n, place, seq, device, type, time, data, wire, cause"


class Entry(Struct, frozen=True):
    """A row to write: `data` is JSON, `wire` the bytes it was read from, `cause` the id of its cause.

    The cause of a verdict is its own id and the journal of its event (`cause_of`). The cause of an entry in the books
    of a jackpot is the id of a message.
    """

    place: str
    device: str
    type: str
    time: datetime
    data: bytes
    wire: bytes = b""
    cause: str = ""


class Row(Struct, frozen=True):
    """A written entry: `n` is its number in the journal, `seq` that in the table (`place`).

    `unreadable`: why it cannot be read as it is; its time is then EARLIEST. Current versions never write such a row.
    """

    n: int
    place: str
    seq: int
    device: str
    type: str
    time: datetime
    data: bytes
    wire: bytes
    cause: str
    unreadable: str = ""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(time: datetime) -> int:
    delta = time - EPOCH
    return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds


FIRST, BEYOND = micros_of(EARLIEST), micros_of(LATEST)


def instant(micros: int) -> datetime | None:
    """The time in a column; None if it is implausible, as early versions wrote it."""
    if not FIRST <= micros < BEYOND:
        return None
    seconds, rest = divmod(micros, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


def time_of(micros: int) -> datetime:
    return instant(micros) or EARLIEST


def row_of(values: tuple[int, str, int, str, str, int, bytes, bytes, str]) -> Row:
    n, place, seq, device, type_, time, data, wire, cause = values
    if (at := instant(time)) is None:
        return Row(n, place, seq, device, type_, EARLIEST, data, wire, cause, no_time(time))
    return Row(n, place, seq, device, type_, at, data, wire, cause)


def cause_of(id_: str, journal: str | UnsetType) -> str:
    """The `cause` of a verdict: its id, and the journal that counted the event that it follows from."""
    return f"{id_}@{journal}" if journal else id_


def id_and_journal(cause: str) -> tuple[str, str]:
    """The id of a verdict, in which there is no @, and the journal of its event; "" where an early version wrote it."""
    id_, _, journal = cause.partition("@")
    return id_, journal


def no_time(micros: int) -> str:
    """The text of an implausible time."""
    return f"its time, {micros} microseconds since 1970, is not between {EARLIEST.year} and {LATEST.year}"


def json_or_null(data: bytes) -> bytes:
    """The data of a row as one line of JSON; null where a damaged row has no JSON."""
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b"null"
    return b"null" if b"\n" in data else data
