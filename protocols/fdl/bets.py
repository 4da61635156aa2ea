"""FDL, bet sensors with their panel: kinds and data of events and commands (docs/reference/protocols/fdl_bets.md).

A sensor detects whether a chip lies there, but neither the number nor the value of chips.
"""

from typing import ClassVar, Final

from protocols.fdl.fields import SWITCH, Number, Record, by_kind
from protocols.fdl.lamps import MAX_PLACES, Places

MAX_LEVEL = 32

_SEAT: Final = Number(1, 1, MAX_PLACES)


class Locked(Record, frozen=True):
    """The chips were latched: the seats with a bet, and the seats that are uncertain."""

    KIND: ClassVar[int] = 0x60
    FIELDS: ClassVar = {"latched": Places(), "doubtful": Places()}
    latched: tuple[int, ...]
    doubtful: tuple[int, ...] = ()

    def contradiction(self) -> str:
        return "a seat is latched or doubtful, not both" if set(self.latched) & set(self.doubtful) else ""


class Cleared(Record, frozen=True):
    """The latched bets were cleared: the round is over."""

    KIND: ClassVar[int] = 0x61


class _Jackpot(Record, frozen=True):
    """Whose bet, and which level: 1 is the highest."""

    FIELDS: ClassVar = {"seat": _SEAT, "level": Number(1, 1, MAX_LEVEL, note=" (1 the highest)")}
    seat: int
    level: int


class JackpotWon(_Jackpot, frozen=True):
    """The dealer keyed a win on a latched bet."""

    KIND: ClassVar[int] = 0x62


class JackpotPaid(_Jackpot, frozen=True):
    """The win was paid, under the supervisor's key."""

    KIND: ClassVar[int] = 0x63


class SupervisorKey(Record, frozen=True):
    """The key in the panel was turned on, or off."""

    KIND: ClassVar[int] = 0x64
    FIELDS: ClassVar = {"on": SWITCH}
    on: bool


class Lit(Record, frozen=True):
    """The seat lamps through which a current flows now, from the lowest seat."""

    KIND: ClassVar[int] = 0x65
    FIELDS: ClassVar = {"seats": Places()}
    seats: tuple[int, ...]


class Removed(Record, frozen=True):
    """The chip of a latched seat was taken away. Its bet stays latched."""

    KIND: ClassVar[int] = 0x66
    FIELDS: ClassVar = {"seat": _SEAT}
    seat: int


HAPPENINGS: Final = by_kind(__name__)

# ---- commands

LOCK = 0x40  # answered with the data of Locked
CLEAR = 0x41
LIGHT = 0x42  # the seats whose lamps are to be lit, four bytes; the others go dark

# Why the device refuses one, besides fdl.REASONS.
LOCKED_ALREADY, NOT_LOCKED, NOT_PAID, LATCHED = 0x10, 0x11, 0x12, 0x13
