"""FDL, batch shuffler: the kinds and data of its events and commands (docs/reference/protocols/fdl_shuffler.md).

A shuffler never reports in which order cards lie, nor which are in a packet: a count of a deck is by card, without
order.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from protocols.fdl.cards import CARDS
from protocols.fdl.fields import Bits, Field, Maybe, Number, OneOf, Record, by_kind

UNKNOWN: Final = 0xFF  # a card that could not be read
MAX_DECKS: Final = 12

INFEED, CAROUSEL, OUTFEED, SHOE = 1, 2, 3, 4
PLACES: Final = {INFEED: "infeed", CAROUSEL: "carousel", OUTFEED: "outfeed", SHOE: "shoe"}

_DECK: Final = Number(1, 1, 2)
_PACKS: Final = Number(1, 1, MAX_DECKS, "packs")
_BATCH_FIELDS: Final[Mapping[str, Field]] = {"deck": _DECK, "decks": _PACKS, "cards": Number(2)}
_CARD: Final = OneOf(frozenset({*range(len(CARDS)), UNKNOWN}), ", FF not known")


class Place(Record, frozen=True):
    """An event with a place only, INFEED to SHOE."""

    FIELDS: ClassVar = {"where": OneOf(frozenset(PLACES), ", 1 infeed, 2 carousel, 3 outfeed, 4 shoe")}
    where: int


class Lit(Record, frozen=True):
    """Lamps, one bit for each; NAMES from bit 0 on."""

    NAMES: ClassVar[tuple[str, ...]] = ()
    bits: int

    @property
    def names(self) -> tuple[str, ...]:
        """Those that are lit."""
        return tuple(name for bit, name in enumerate(self.NAMES) if self.bits >> bit & 1)


class OneCard(Record, frozen=True):
    """One card, 0 to 51 or UNKNOWN."""

    FIELDS: ClassVar = {"card": _CARD}
    card: int = UNKNOWN

    @property
    def name(self) -> str | None:
        """The card, None where it is not known."""
        return None if self.card == UNKNOWN else CARDS[self.card]


class Deck(Record, frozen=True):
    """Which deck, 1 or 2."""

    FIELDS: ClassVar = {"deck": _DECK}
    deck: int


class _Batch(Record, frozen=True):
    """Which of the two decks; of how many packs of 52 it is made, 1 or 2 as a rule; how many cards."""

    FIELDS: ClassVar = _BATCH_FIELDS
    deck: int
    decks: int
    cards: int


class Loaded(_Batch, frozen=True):
    """The number of cards in the infeed."""

    KIND: ClassVar[int] = 0x40


class ShuffleStarted(_Batch, frozen=True):
    """The shuffle of this deck began."""

    KIND: ClassVar[int] = 0x41


NOT_COUNTED, COUNTED, EVERY_CARD_READ = 0, 1, 2


class ShuffleFinished(Record, frozen=True):
    """The deck is shuffled and may be dealt. `verified`: NOT_COUNTED, COUNTED or EVERY_CARD_READ."""

    KIND: ClassVar[int] = 0x42
    FIELDS: ClassVar = {**_BATCH_FIELDS, "verified": Number(most=EVERY_CARD_READ)}
    deck: int
    decks: int
    cards: int
    verified: int

    def contradiction(self) -> str:
        complete = self.verified != EVERY_CARD_READ or self.cards == 52 * self.decks
        return "" if complete else "every card was read, and there are not 52 for each pack"


class Failed(Record, frozen=True):
    """The shuffle, or the deal from a shuffled deck, did not end as it should: these cards may not be dealt."""

    KIND: ClassVar[int] = 0x43
    FIELDS: ClassVar = {**_BATCH_FIELDS, "reason": Number()}
    deck: int
    decks: int
    cards: int
    reason: int


class _PerCard(msgspec.Struct, frozen=True):
    """One byte for each of CARDS."""

    def write(self, value: tuple[int, ...]) -> bytes:
        return bytes(value)

    def read(self, data: bytes, at: int) -> tuple[tuple[int, ...], int] | None:
        end = at + len(CARDS)
        return (tuple(data[at:end]), end) if end <= len(data) else None

    def page(self, name: str) -> str:
        return f"{len(CARDS)} {name}"


class Tally(Record, frozen=True):
    """How many of each card a reader found, in the order of CARDS, and how many cards it could not read."""

    FIELDS: ClassVar = {"unreadable": Number(), "counts": _PerCard()}
    counts: tuple[int, ...]
    unreadable: int = 0


def tally_contradiction(tally: Tally | None, counted: int) -> str:
    """Why this is not the tally of `counted` cards; "" where it is, or where there is none."""
    adds_up = tally is None or sum(tally.counts) + tally.unreadable == counted
    return "" if adds_up else "the tally does not add up to the count"


class Counted(Record, frozen=True):
    """A whole deck was counted. `wrong`: counts of this deck since it is in use, this one included, that were not good.

    `tally` where the machine reads each card.
    """

    KIND: ClassVar[int] = 0x44
    FIELDS: ClassVar = {
        "deck": _DECK,
        "decks": _PACKS,
        "expected": Number(2),
        "counted": Number(2),
        "wrong": Number(),
        "tally": Maybe(Tally),
    }
    deck: int
    decks: int
    expected: int
    counted: int
    wrong: int = 0
    tally: Tally | None = None

    def contradiction(self) -> str:
        return tally_contradiction(self.tally, self.counted)


class Jammed(Place, frozen=True):
    """Cards stick."""

    KIND: ClassVar[int] = 0x45


class JamCleared(Place, frozen=True):
    """The jam there is over."""

    KIND: ClassVar[int] = 0x46


class Dispensed(Record, frozen=True):
    """A packet of `count` cards lies in the tray, where `wanted` were asked for."""

    KIND: ClassVar[int] = 0x47
    FIELDS: ClassVar = {"wanted": Number(least=1), "count": Number()}
    wanted: int
    count: int


class PacketTaken(Record, frozen=True):
    """The tray is empty again."""

    KIND: ClassVar[int] = 0x48


class Lamps(Lit, frozen=True):
    """The lamps of the machine that are lit now."""

    KIND: ClassVar[int] = 0x49
    NAMES: ClassVar[tuple[str, ...]] = ("ready", "jam", "service")
    FIELDS: ClassVar = {"bits": Bits(NAMES)}


class State(Record, frozen=True):
    """What the machine does now; only when it changed, and after each start."""

    KIND: ClassVar[int] = 0x4A
    FIELDS: ClassVar = {"state": Number()}
    state: int


class Damaged(OneCard, frozen=True):
    """A card is torn, bent or marked."""

    KIND: ClassVar[int] = 0x4B


class DeckReplaced(Deck, frozen=True):
    """A person put another deck in the place of this one: its history begins anew."""

    KIND: ClassVar[int] = 0x4C


class Emptied(Record, frozen=True):
    """All cards were given out, so many."""

    KIND: ClassVar[int] = 0x4D
    FIELDS: ClassVar = {"cards": Number(2)}
    cards: int


class DeckTaken(Deck, frozen=True):
    """The rest of this deck was taken out of the outfeed: its deal is over."""

    KIND: ClassVar[int] = 0x4E


HAPPENINGS: Final = by_kind(__name__)

# The values of a State.
IDLE_EMPTY, LOADING, SHUFFLING, READY, DEALING, EMPTYING, PAUSED, SERVICE = 1, 2, 3, 4, 5, 6, 7, 8

# Why a shuffle or a deal Failed.
JAM, COUNT, COMPOSITION, BACK, DAMAGE, OPENED, MOTOR, POWER, SENSOR = 1, 2, 3, 4, 5, 6, 7, 8, 9

# ---- commands

SHUFFLE = 0x20
DISPENSE = 0x21  # cards, 1 to 10
EMPTY = 0x22

# Why the device refuses one, besides fdl.REASONS.
NOTHING_LOADED, DECK_REJECTED, NOTHING_READY, PACKET_IN_TRAY, TOO_FEW_CARDS = 0x10, 0x11, 0x12, 0x13, 0x14
