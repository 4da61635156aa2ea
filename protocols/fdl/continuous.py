"""FDL, continuous shuffler-shoe: kinds and data of events and commands (docs/reference/protocols/fdl_continuous.md).

A card is reported when it has left the machine. On a table where cards are dealt face down its value is never on the
wire (`NOT_TOLD`).
"""

from typing import ClassVar, Final

from protocols.fdl.cards import CARDS
from protocols.fdl.fields import Bits, Maybe, Number, OneOf, Record, by_kind
from protocols.fdl.shuffler import MAX_DECKS, Lit, OneCard, Place, State, Tally, tally_contradiction

TWO_OR_MORE: Final = 0xFD
NOT_TOLD: Final = 0xFE
UNREADABLE: Final = 0xFF

_PACKS: Final = Number(1, 1, MAX_DECKS, "packs")
_CARD: Final = OneOf(
    frozenset({*range(len(CARDS)), TWO_OR_MORE, NOT_TOLD, UNREADABLE}),
    ", FD two or more, FE value not sent, FF not readable",
)


class Loaded(Record, frozen=True):
    """The packet number `packet` of this loading, from 1, had `count` cards."""

    KIND: ClassVar[int] = 0x50
    FIELDS: ClassVar = {"packet": Number(least=1), "count": Number(2)}
    packet: int
    count: int


class Ready(Record, frozen=True):
    """The loading is complete: `cards` cards of `decks` packs are inside, mixed, and may be dealt."""

    KIND: ClassVar[int] = 0x51
    FIELDS: ClassVar = {"decks": _PACKS, "cards": Number(2)}
    decks: int
    cards: int


class Drawn(Record, frozen=True):
    """A card left the shoe: 0 to 51, or TWO_OR_MORE, NOT_TOLD, UNREADABLE."""

    KIND: ClassVar[int] = 0x52
    FIELDS: ClassVar = {"card": _CARD}
    card: int


class Returned(Record, frozen=True):
    """A stack of `count` cards went back. Of the `loaded` cards of this day `inside` are inside now, by its own count.

    `inside` counts the loaded cards, less those that left, plus those that came back. It is more than `loaded` where
    too many came back.
    """

    KIND: ClassVar[int] = 0x53
    FIELDS: ClassVar = {"count": Number(2), "loaded": Number(2), "inside": Number(2)}
    count: int
    loaded: int
    inside: int


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
    FIELDS: ClassVar = {"bits": Bits(NAMES)}


class Emptied(Record, frozen=True):
    """All cards were given out and counted: `decks` packs should be there. `tally` where the machine reads."""

    KIND: ClassVar[int] = 0x58
    FIELDS: ClassVar = {"decks": _PACKS, "counted": Number(2), "tally": Maybe(Tally)}
    decks: int
    counted: int
    tally: Tally | None = None

    def contradiction(self) -> str:
        return tally_contradiction(self.tally, self.counted)


class Activity(State, frozen=True):
    """What the machine does now; only when it changed, and after each start."""

    KIND: ClassVar[int] = 0x59


HAPPENINGS: Final = by_kind(__name__)

# The values of an Activity.
EMPTY_INSIDE, LOADING, DEALING, EMPTYING, STOPPED, SERVICE = 1, 2, 3, 4, 5, 6

# ---- commands

EMPTY = 0x30

# Why the device refuses it, besides fdl.REASONS.
NOTHING_INSIDE, CARDS_OUTSIDE = 0x10, 0x11
