"""FDL, continuous shuffler-shoe: kinds and data of events and commands (docs/reference/protocols/fdl_continuous.md).

A card is reported when it has left the machine. On a table where cards are dealt face down its value is never on the
wire (`NOT_TOLD`).
"""

import struct
from typing import ClassVar, Final, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed
from protocols.fdl.shuffler import CARDS, MAX_DECKS, Lit, OneCard, Place, State, Tally, pack

TWO_OR_MORE: Final = 0xFD
NOT_TOLD: Final = 0xFE
UNREADABLE: Final = 0xFF

_LOADED = struct.Struct(">BH")
_RETURNED = struct.Struct(">HHH")


class Loaded(msgspec.Struct, frozen=True):
    """The packet number `packet` of this loading, from 1, had `count` cards."""

    KIND: ClassVar[int] = 0x50
    packet: int
    count: int

    def to_bytes(self) -> bytes:
        return pack(_LOADED, self.packet, self.count)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _LOADED.size or not data[0]:
            return Malformed("a loading is packet from 1, cards")
        return cls(*_LOADED.unpack(data))


class Ready(msgspec.Struct, frozen=True):
    """The loading is complete: `cards` cards of `decks` packs are inside, mixed, and may be dealt."""

    KIND: ClassVar[int] = 0x51
    decks: int
    cards: int

    def to_bytes(self) -> bytes:
        return pack(_LOADED, self.decks, self.cards)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _LOADED.size or not 1 <= data[0] <= MAX_DECKS:
            return Malformed("a complete loading is packs 1 to 12, cards")
        return cls(*_LOADED.unpack(data))


class Drawn(msgspec.Struct, frozen=True):
    """A card left the shoe: 0 to 51, or TWO_OR_MORE, NOT_TOLD, UNREADABLE."""

    KIND: ClassVar[int] = 0x52
    card: int

    def to_bytes(self) -> bytes:
        return bytes((self.card,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or len(CARDS) <= data[0] < TWO_OR_MORE:
            return Malformed("a drawn card is 0 to 51, or FD to FF")
        return cls(*data)


class Returned(msgspec.Struct, frozen=True):
    """A stack of `count` cards went back. Of the `loaded` cards of this day `inside` are inside now, by its own count.

    `inside` is what was loaded, less what left, and what came back: more than `loaded` where a card too many came.
    """

    KIND: ClassVar[int] = 0x53
    count: int
    loaded: int
    inside: int

    def to_bytes(self) -> bytes:
        return pack(_RETURNED, self.count, self.loaded, self.inside)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _RETURNED.size:
            return Malformed("a return is cards, loaded, inside")
        return cls(*_RETURNED.unpack(data))


class Jammed(Place, frozen=True):
    """Cards stick."""

    KIND: ClassVar[int] = 0x54


class JamCleared(Place, frozen=True):
    """The jam there is over."""

    KIND: ClassVar[int] = 0x55


class Damaged(OneCard, frozen=True):
    """A card is torn, bent or marked."""

    KIND: ClassVar[int] = 0x56


class Lamps(Lit, frozen=True):
    """The lamps of the machine that are lit now."""

    KIND: ClassVar[int] = 0x57
    NAMES: ClassVar[tuple[str, ...]] = ("ready", "jam", "damaged", "fill", "service")


class Emptied(msgspec.Struct, frozen=True):
    """All cards were given out and counted: `decks` packs should be there. `tally` where the machine reads."""

    KIND: ClassVar[int] = 0x58
    decks: int
    counted: int
    tally: Tally | None = None

    def to_bytes(self) -> bytes:
        head = pack(_LOADED, self.decks, self.counted)
        return head + (self.tally.to_bytes() if self.tally else b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) < _LOADED.size or not 1 <= data[0] <= MAX_DECKS:
            return Malformed("an emptying is packs 1 to 12, counted")
        decks, counted = _LOADED.unpack_from(data)
        if len(data) == _LOADED.size:
            return cls(decks, counted)
        tally = Tally.from_bytes(data[_LOADED.size :])
        if isinstance(tally, Malformed):
            return tally
        if sum(tally.counts) + tally.unreadable != counted:
            return Malformed("the tally does not add up to the count")
        return cls(decks, counted, tally)


class Activity(State, frozen=True):
    """What the machine does now; only when it changed, and after each start."""

    KIND: ClassVar[int] = 0x59


HAPPENINGS: dict[int, type[Happening]] = {
    happening.KIND: happening
    for happening in (Loaded, Ready, Drawn, Returned, Jammed, JamCleared, Damaged, Lamps, Emptied, Activity)
}

# What an Activity says.
EMPTY_INSIDE, LOADING, DEALING, EMPTYING, STOPPED, SERVICE = 1, 2, 3, 4, 5, 6

# ---- commands

EMPTY = 0x30

# Why the device refuses it, beside fdl.REASONS.
NOTHING_INSIDE, CARDS_OUTSIDE = 0x10, 0x11
