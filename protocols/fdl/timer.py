"""FDL, betting timer: the kinds and data of its events and commands (docs/reference/protocols/fdl_timer.md)."""

import struct
from typing import ClassVar, Final, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed, Plain

MAX_SECONDS: Final = 600
BY_KEY, BY_HOST = 1, 2
STARTERS: Final = {BY_KEY: "its key", BY_HOST: "the host"}

_STARTED = struct.Struct(">HB")


class Running(msgspec.Struct, frozen=True):
    """The time runs, `seconds` of it; `by` is BY_KEY or BY_HOST."""

    KIND: ClassVar[int] = 0x74
    seconds: int
    by: int = BY_KEY

    def to_bytes(self) -> bytes:
        return _STARTED.pack(self.seconds, self.by)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _STARTED.size:
            return Malformed("a start is seconds, by whom")
        seconds, by = _STARTED.unpack(data)
        if not 1 <= seconds <= MAX_SECONDS or by not in STARTERS:
            return Malformed(f"a start is 1 to {MAX_SECONDS} seconds, by 1 or 2")
        return cls(seconds, by)


class Expired(Plain, frozen=True):
    """The time is over."""

    KIND: ClassVar[int] = 0x75


class Stopped(msgspec.Struct, frozen=True):
    """The time was stopped with `left` seconds of it to run: nothing is closed by it."""

    KIND: ClassVar[int] = 0x76
    left: int

    def to_bytes(self) -> bytes:
        return self.left.to_bytes(2)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 2 or int.from_bytes(data) > MAX_SECONDS:
            return Malformed(f"a stop is the seconds left, 0 to {MAX_SECONDS}")
        return cls(int.from_bytes(data))


HAPPENINGS: dict[int, type[Happening]] = {happening.KIND: happening for happening in (Running, Expired, Stopped)}

# ---- commands

START = 0x58  # seconds, two bytes, 1 to 600
STOP = 0x59

# Why the device refuses one, beside fdl.REASONS.
NOT_RUNNING = 0x10
