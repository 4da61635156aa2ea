"""Detects changes in SQLite's write-ahead log.

SQLite ends its log without an error at the first frame whose checksums do not follow. `changed_log` is therefore
called before SQLite opens a journal, and by `verify`: it distinguishes a torn last transaction from a change in durable
ones.
Format: https://sqlite.org/fileformat2.html#the_write_ahead_log
"""

import contextlib
import os
import struct
import threading
import time
from array import array
from pathlib import Path
from typing import BinaryIO, Protocol

__all__ = ["Log", "anything_in_log", "changed_log", "grow_log", "log_broken", "log_of"]

_LOG_MAGIC = 0x377F0682
_log_head = struct.Struct(">8I").unpack_from  # magic, version, page size, round, two salts, two sums
_frame_head = struct.Struct(">6I").unpack_from  # page, the file's size where it ends a transaction, two salts, two sums
_MASK = 0xFFFFFFFF
_LANES = 256  # frames that are processed together: a megabyte
_SECTOR = 512  # bytes that a power cut leaves entirely old or entirely new
_STEP, _PAUSE_S = 1 << 20, 0.05  # bytes that the log is grown by at once, and the pause after them
_Sums = tuple[int, int]


class Log(Protocol):
    """Reads a log in parts, because it may be larger than memory. A `bytes` object is a Log, too."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


def anything_in(log: Log) -> bool:
    """Whether the log contains frames; a log that was only grown contains zeros."""
    step = _LANES * 4096
    return any(log[at : at + step].strip(b"\0") for at in range(0, len(log), step))


def log_broken(log: Log) -> int | None:
    """The byte from which on a log was changed, if durable transactions follow it.

    SQLite ends its log before the first frame whose checksums do not follow from the frame before; it ignores
    everything from there on. Each transaction was durable before the next one began, so only the last one may be torn,
    in any of its frames. After the end there may be remains of torn or refused transactions. But no frame ever followed
    the end of a torn transaction: if one does, the transaction before it was durable and is lost. The end of a
    transaction is a mark that was written with its checksums, or fits them; a torn frame may still have the mark of
    older content.

    A change in the last transaction therefore looks like a torn write, and so does, in a few cases, one at the end of
    the transaction before it.
    """
    magic, _, page, _, *salts, one, two = _log_head(log[:32].ljust(32, b"\0"))
    big = bool(magic & 1)
    if magic & ~1 != _LOG_MAGIC or _summed(log[:24], (0, 0), big=big) != (one, two):
        # The header was durable before anything was written after it.
        return 0 if anything_in(log) else None
    size: int = 24 + page
    # Only some bytes of each frame, as there may be millions; the checksums before each frame and after the last.
    ours, ends, ones, twos = bytearray(), bytearray(), array("I", [one]), array("I", [two])
    for first in range(32, len(log) - size + 1, _LANES * size):
        some = log[first : first + _LANES * size]
        for at in range(0, len(some) - size + 1, size):
            _, end, *its_salts, one, two = _frame_head(some, at)
            ours.append(its_salts == salts)
            ends.append(end != 0)
            ones.append(one)
            twos.append(two)
    count = ours.rfind(1) + 1  # later frames are of an earlier round, or unwritten
    follows = _follow(log, size, ones[: count + 1], twos[: count + 1], big=big)
    bad = next((at for at in range(count) if not (follows[at] and ours[at])), count)
    for at in range(bad, count - 1):
        if ends[at] and ours[at + 1]:
            # The next frame follows from the stored checksums or from the right ones: the change may be in a checksum.
            should = _summed(_summed_part(log, at, size), (ones[at], twos[at]), big=big)
            begin = 32 + at * size
            marked = follows[at] or (begin + 4) // _SECTOR == (begin + 23) // _SECTOR
            next_ = _summed(_summed_part(log, at + 1, size), should, big=big)
            if (follows[at + 1] and marked) or next_ == (ones[at + 2], twos[at + 2]):
                return 32 + bad * size
    return None


def _summed_part(log: Log, at: int, size: int) -> bytes:
    """The part of a frame that its checksums cover."""
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


def _follow(log: Log, size: int, ones: "array[int]", twos: "array[int]", *, big: bool) -> bytearray:
    """For each frame, whether its checksums follow from those before it. The first checksums are those of the header.

    It processes many frames at once: one large number holds a word of each, 64 bits apart. One by one a full log takes
    a second.
    """
    found = bytearray()
    for first in range(0, len(ones) - 1, _LANES):
        count = min(_LANES, len(ones) - 1 - first)
        words = array("I", log[32 + first * size : 32 + (first + count) * size])
        if big:
            words.byteswap()
        pairs = array("Q", words.tobytes())
        low = int.from_bytes(struct.pack("<Q", _MASK) * count, "little")
        one, two = (
            int.from_bytes(struct.pack(f"<{count}Q", *column[first : first + count]), "little")
            for column in (ones, twos)
        )
        for at in (0, *range(3, size // 8)):  # between them salts and sums
            pair = int.from_bytes(pairs[at :: size // 8].tobytes(), "little")
            one = (one + (pair & low) + two) & low
            two = (two + (pair >> 32 & low) + one) & low
        lanes = (struct.unpack(f"<{count}Q", value.to_bytes(8 * count, "little")) for value in (one, two))
        follow = slice(first + 1, first + 1 + count)
        found += bytes(map(tuple.__eq__, zip(*lanes, strict=True), zip(ones[follow], twos[follow], strict=True)))
    return found


def log_of(path: Path) -> Path:
    """The path of SQLite's write-ahead log."""
    file = path.resolve()
    return file.with_name(file.name + "-wal")


class LogFile:
    """A log as it was when it was opened, read on demand. A part that is cut off meanwhile reads as zeros."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._length = os.fstat(fd).st_size

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice, /) -> bytes:
        begin, end, _ = part.indices(self._length)
        found = b""
        while len(found) < end - begin and (more := os.pread(self._fd, end - begin - len(found), begin + len(found))):
            found += more
        return found.ljust(max(end - begin, 0), b"\0")


def anything_in_log(path: Path) -> bool:
    try:
        with log_of(path).open("rb", buffering=0) as file:
            return anything_in(LogFile(file.fileno()))
    except FileNotFoundError:
        return False


def changed_log(path: Path) -> str:
    """The finding about the log of the journal at `path`; empty if there is none. Raises OSError.

    A finding counts only when a second check repeats it: a write in progress is then complete, and a log that began
    again has a different header.
    """
    before: tuple[int, bytes] | None = None
    while True:
        try:
            with log_of(path).open("rb", buffering=0) as file:
                log = LogFile(file.fileno())
                first = log[:32]
                at = log_broken(log)
                head = log[:32]
        except FileNotFoundError:
            return ""
        if at is None:
            return ""
        if before == (at, head) and first == head:
            return f"from byte {at} on it is not as it was written, and durable rows followed that"
        before = at, head


def grow_log(path: Path, size: int) -> None:
    """Append zeros to the log until it has `size` bytes. No frame has that checksum, so SQLite treats them as unused.

    A thread does it in steps: all at once would take 30 to 90 ms of a start and of a rotation, and no commit waits for
    more than a step. It is an optimisation only; a full disk fails elsewhere.
    """
    with contextlib.suppress(OSError, RuntimeError):  # no room, or no thread
        file = log_of(path).open("ab", buffering=0)
        if size > _STEP:
            threading.Thread(target=_grow, args=(file, size), name="journal log", daemon=True).start()
        else:
            _grow(file, size)


def _grow(file: BinaryIO, size: int) -> None:
    zeros = bytes(min(size, _STEP))
    with contextlib.suppress(OSError), file:
        while (missing := size - file.seek(0, os.SEEK_END)) > 0 and os.fstat(file.fileno()).st_nlink:
            file.write(zeros[:missing])  # at its present end, because SQLite may have written meanwhile
            os.fsync(file.fileno())
            if missing > _STEP:
                time.sleep(_PAUSE_S)
