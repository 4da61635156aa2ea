"""FDL, bet sensors with their panel: kinds and data of events and commands (docs/reference/protocols/fdl_bets.md).

A sensor sees whether a chip lies there, but neither the number nor the value of chips.
"""

from typing import ClassVar, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed, Plain
from protocols.fdl.lamps import MAX_PLACES, places_from_bytes, places_to_bytes

MAX_LEVEL = 32


class Locked(msgspec.Struct, frozen=True):
    """The chips were latched: the seats with a bet, and the seats that are uncertain."""

    KIND: ClassVar[int] = 0x60
    latched: tuple[int, ...]
    doubtful: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        return places_to_bytes(self.latched) + places_to_bytes(self.doubtful)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 8:
            return Malformed("a lock is four bytes of latched seats, four of doubtful ones")
        latched, doubtful = places_from_bytes(data[:4]), places_from_bytes(data[4:])
        if set(latched) & set(doubtful):
            return Malformed("a seat is latched or doubtful, not both")
        return cls(latched, doubtful)


class Cleared(Plain, frozen=True):
    """The latched bets were cleared: the round is over."""

    KIND: ClassVar[int] = 0x61


class _Jackpot(msgspec.Struct, frozen=True):
    """Whose bet, and which level: 1 is the highest."""

    seat: int
    level: int

    def to_bytes(self) -> bytes:
        return bytes((self.seat, self.level))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 2 or not 1 <= data[0] <= MAX_PLACES or not 1 <= data[1] <= MAX_LEVEL:
            return Malformed(f"a jackpot is seat 1 to {MAX_PLACES}, level 1 to {MAX_LEVEL}")
        return cls(*data)


class JackpotWon(_Jackpot, frozen=True):
    """The dealer keyed a win on a latched bet."""

    KIND: ClassVar[int] = 0x62


class JackpotPaid(_Jackpot, frozen=True):
    """The win was paid, under the supervisor's key."""

    KIND: ClassVar[int] = 0x63


class SupervisorKey(msgspec.Struct, frozen=True):
    """The key in the panel was turned on, or off."""

    KIND: ClassVar[int] = 0x64
    on: bool

    def to_bytes(self) -> bytes:
        return bytes((self.on,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(bool(data[0])) if data in {b"\0", b"\1"} else Malformed("a key is 0 or 1")


class Lit(msgspec.Struct, frozen=True):
    """The seat lamps through which a current flows now, from the lowest seat."""

    KIND: ClassVar[int] = 0x65
    seats: tuple[int, ...]

    def to_bytes(self) -> bytes:
        return places_to_bytes(self.seats)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(places_from_bytes(data)) if len(data) == 4 else Malformed("seat lamps are four bytes")


class Removed(msgspec.Struct, frozen=True):
    """The chip of a latched seat was taken away. Its bet stays latched."""

    KIND: ClassVar[int] = 0x66
    seat: int

    def to_bytes(self) -> bytes:
        return bytes((self.seat,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        known = len(data) == 1 and 1 <= data[0] <= MAX_PLACES
        return cls(data[0]) if known else Malformed(f"a seat is 1 to {MAX_PLACES}")


HAPPENINGS: dict[int, type[Happening]] = {
    happening.KIND: happening for happening in (Locked, Cleared, JackpotWon, JackpotPaid, SupervisorKey, Lit, Removed)
}

# ---- commands

LOCK = 0x40  # answered with the data of Locked
CLEAR = 0x41
LIGHT = 0x42  # the seats whose lamps are to be lit, four bytes; the others go dark

# Why the device refuses one, beside fdl.REASONS.
LOCKED_ALREADY, NOT_LOCKED, NOT_PAID, LATCHED = 0x10, 0x11, 0x12, 0x13
