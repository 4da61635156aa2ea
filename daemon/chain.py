"""The hash chain of a journal and what is signed of it: pure, and short enough to be written again by an inspector.

Each table has a chain of its own. Its first link is `chain_start`; each row's hash is SHA-256 over the hash before it
and every column of the row. A checkpoint is a statement that names the head of every chain; its bytes are signed.
docs/journal.md says the same in words.

SQLite's log has a chain, too, of sums that anybody can make. `log_broken` says where it was changed.
"""

import hashlib
import struct
from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec
from msgspec import Struct

__all__ = [
    "Log",
    "Noted",
    "Statement",
    "chain_start",
    "decode_noted",
    "decode_statement",
    "encode_noted",
    "encode_statement",
    "fingerprint",
    "log_broken",
    "row_hash",
]

VERSION = 2

_lengths = struct.Struct(">qqqIIIIII").pack
_sha256 = hashlib.sha256


def chain_start(journal: str, place: str) -> bytes:
    """What stands before the first row of a table: no chain can be moved to another journal or table."""
    return _sha256(b"feltd journal 2\0" + journal.encode() + b"\0" + place.encode()).digest()


def row_hash(
    before: bytes,
    n: int,
    place: str,
    seq: int,
    device: str,
    type_: str,
    micros: int,
    data: bytes,
    wire: bytes,
    cause: str,
) -> bytes:
    """The hash of a row. Every column has its length before it, so that no byte can move from one into the next."""
    a, b, c, d = place.encode(), device.encode(), type_.encode(), cause.encode()
    sizes = _lengths(n, seq, micros, len(a), len(b), len(c), len(d), len(data), len(wire))
    return _sha256(b"".join((before, sizes, a, b, c, d, data, wire))).digest()


class Statement(Struct, frozen=True):
    """What a checkpoint says: after row `n`, each table's chain ended with this seq and hash (hex).

    `number` counts the checkpoints, `previous` is the SHA-256 (hex) of the statement before: none can be taken out.
    """

    feltd: str
    version: int
    journal: str
    number: int
    n: int
    time: datetime
    heads: dict[str, tuple[int, str]]
    previous: str
    key: str


_decoder = msgspec.json.Decoder(Statement)


def encode_statement(statement: Statement) -> bytes:
    """The bytes that are signed, and kept as they are."""
    return msgspec.json.encode(statement)


def decode_statement(raw: bytes) -> Statement:
    """Raises msgspec.DecodeError or UnicodeDecodeError."""
    return _decoder.decode(raw)


def fingerprint(raw: bytes) -> str:
    """SHA-256 in hex."""
    return _sha256(raw).hexdigest()


class Noted(Struct, frozen=True):
    """Which checkpoint was the last: of journal, its number, its row, and the SHA-256 (hex) of its statement."""

    journal: str
    number: int
    n: int
    statement: str


def encode_noted(noted: Noted) -> bytes:
    """A line of always the same length."""
    return msgspec.json.encode(noted).ljust(255) + b"\n"


def decode_noted(raw: bytes) -> Noted | None:
    """None: nothing was written yet. Raises msgspec.DecodeError or UnicodeDecodeError."""
    return msgspec.json.decode(raw, type=Noted) if raw.strip(b"\0") else None


# ---- SQLite's write-ahead log, https://sqlite.org/fileformat2.html#the_write_ahead_log

_LOG_MAGIC = 0x377F0682
_log_head = struct.Struct(">8I").unpack_from  # magic, version, page size, round, two salts, two sums
_frame_head = struct.Struct(">6I").unpack_from  # page, the file's size where it ends a transaction, two salts, two sums
_MASK = 0xFFFFFFFF
_LANES = 256  # frames that are looked at together: a megabyte
_SECTOR = 512  # bytes that a power cut leaves as a whole: new or old
_Sums = tuple[int, int]


class Log(Protocol):
    """What a log is read by: part after part, for it may be larger than memory. Bytes are one, too."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


def log_broken(log: Log) -> int | None:
    """From which byte on a log is not as it was written, where durable transactions stand behind that byte.

    SQLite takes its log to end before the first frame whose sums do not follow from those of the frame before it: of
    transactions behind a changed byte it says nothing. Each was durable before the next one began, so only the last one
    may be torn, in any of its frames; and behind the end may stand what was torn or refused before that. But nothing
    ever followed the end of such a one: where a frame does, the transaction before it was durable, and is lost. Its end
    is a mark that was written with its sums, or fits them: a torn frame may have the mark of what stood there before.

    So a change in the last transaction cannot be told from a torn write, nor in a few the end of the one before it.
    """
    magic, _, page, _, *salts, one, two = _log_head(log[:32].ljust(32, b"\0"))
    big = bool(magic & 1)
    if magic & ~1 != _LOG_MAGIC or _summed(log[:24], (0, 0), big=big) != (one, two):
        # The head was durable before anything was written behind it. Zeros are a log that was only made large.
        step = _LANES * 4096
        return 0 if any(log[at : at + step].strip(b"\0") for at in range(0, len(log), step)) else None
    size: int = 24 + page
    frames = []
    for first in range(32, len(log) - size + 1, _LANES * size):
        some = log[first : first + _LANES * size]
        frames += [_frame_head(some, at) for at in range(0, len(some) - size + 1, size)]
    ours = [[*frame[2:4]] == salts for frame in frames]
    while ours and not ours[-1]:  # of an earlier round, or never written
        del frames[-1], ours[-1]
    sums = [(one, two), *((frame[4], frame[5]) for frame in frames)]  # before each frame, and behind the last
    follows = _follow(log, size, sums, big=big)
    bad = next((at for at in range(len(frames)) if not (follows[at] and ours[at])), len(frames))
    for at in range(bad, len(frames) - 1):
        if frames[at][1] and ours[at + 1]:
            # What follows it does so by the sums that it has, or should have: these may be what was changed.
            should = _summed(_summed_part(log, at, size), sums[at], big=big)
            begin = 32 + at * size
            marked = follows[at] or (begin + 4) // _SECTOR == (begin + 23) // _SECTOR
            next_ = _summed(_summed_part(log, at + 1, size), should, big=big)
            if (follows[at + 1] and marked) or next_ == sums[at + 2]:
                return 32 + bad * size
    return None


def _summed_part(log: Log, at: int, size: int) -> bytes:
    """Of a frame: not its salts, nor the sums themselves."""
    begin = 32 + at * size
    frame = log[begin : begin + size]
    return frame[:8] + frame[24:]


def _summed(data: bytes, before: _Sums, *, big: bool) -> _Sums:
    one, two = before
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    for a, b in zip(words[::2], words[1::2], strict=True):
        one = (one + a + two) & _MASK
        two = (two + b + one) & _MASK
    return one, two


def _follow(log: Log, size: int, sums: Sequence[_Sums], *, big: bool) -> list[bool]:
    """Of each frame, whether its sums (the first of `sums` are the head's) follow from those of the one before it.

    Many frames at once: one large number holds a word of each, 64 bits apart. One by one a full log takes a second.
    """
    found: list[bool] = []
    for first in range(0, len(sums) - 1, _LANES):
        count = min(_LANES, len(sums) - 1 - first)
        words = array("I", log[32 + first * size : 32 + (first + count) * size])
        if big:
            words.byteswap()
        pairs = array("Q", words.tobytes())
        low = int.from_bytes(struct.pack("<Q", _MASK) * count, "little")
        one, two = (
            int.from_bytes(struct.pack(f"<{count}Q", *column), "little")
            for column in zip(*sums[first : first + count], strict=True)
        )
        for at in (0, *range(3, size // 8)):  # between them salts and sums
            pair = int.from_bytes(pairs[at :: size // 8].tobytes(), "little")
            one = (one + (pair & low) + two) & low
            two = (two + (pair >> 32 & low) + one) & low
        lanes = (struct.unpack(f"<{count}Q", value.to_bytes(8 * count, "little")) for value in (one, two))
        found += map(tuple.__eq__, zip(*lanes, strict=True), sums[first + 1 : first + 1 + count])
    return found
