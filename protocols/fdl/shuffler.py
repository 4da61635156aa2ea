"""FDL, batch shuffler: the kinds and data of its events and commands (docs/reference/protocols/fdl_shuffler.md).

A shuffler never tells in which order cards lie, nor which are in a packet: a count of a deck is by card, without order.
"""

import struct
from typing import ClassVar, Final, Self

import msgspec

from protocols.fdl.frame import Happening, Malformed, Plain

CARDS: Final = tuple(rank + suit for suit in "SHDC" for rank in "A23456789TJQK")
"""A card on the wire is its place here: 0 the ace of spades, 12 the king of spades, 51 the king of clubs."""
NUMBERS: Final = {card: number for number, card in enumerate(CARDS)}
UNKNOWN: Final = 0xFF  # a card that nobody could read
MAX_DECKS: Final = 12

INFEED, CAROUSEL, OUTFEED, SHOE = 1, 2, 3, 4
PLACES: Final = {INFEED: "infeed", CAROUSEL: "carousel", OUTFEED: "outfeed", SHOE: "shoe"}

_BATCH = struct.Struct(">BBH")
_CARDS = struct.Struct(">H")
_COUNT = struct.Struct(">BBHHB")


def pack(shape: struct.Struct, *values: int) -> bytes:
    """The values as bytes. Raises ValueError for one that does not fit."""
    try:
        return shape.pack(*values)
    except struct.error as error:
        raise ValueError(f"{values} do not fit: {error}") from error


class Place(msgspec.Struct, frozen=True):
    """Common reading and writing of what says only where: INFEED to SHOE."""

    where: int

    def to_bytes(self) -> bytes:
        return bytes((self.where,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 and data[0] in PLACES else Malformed("a place is 1 to 4")


class Lit(msgspec.Struct, frozen=True):
    """Common reading and writing of lamps, one bit for each; NAMES from bit 0 on."""

    NAMES: ClassVar[tuple[str, ...]] = ()
    bits: int

    @property
    def names(self) -> tuple[str, ...]:
        """Those that are lit."""
        return tuple(name for bit, name in enumerate(self.NAMES) if self.bits >> bit & 1)

    def to_bytes(self) -> bytes:
        return bytes((self.bits,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or data[0] >> len(cls.NAMES):
            return Malformed(f"lamps are one byte with {len(cls.NAMES)} bits")
        return cls(*data)


class OneCard(msgspec.Struct, frozen=True):
    """Common reading and writing of one card, 0 to 51 or UNKNOWN."""

    card: int = UNKNOWN

    @property
    def name(self) -> str | None:
        """The card, None where it is not known."""
        return None if self.card == UNKNOWN else CARDS[self.card]

    def to_bytes(self) -> bytes:
        return bytes((self.card,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or (data[0] >= len(CARDS) and data[0] != UNKNOWN):
            return Malformed("a card is 0 to 51, or FF")
        return cls(*data)


class Deck(msgspec.Struct, frozen=True):
    """Common reading and writing of which deck, 1 or 2."""

    deck: int

    def to_bytes(self) -> bytes:
        return bytes((self.deck,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 and data[0] in {1, 2} else Malformed("a deck is 1 or 2")


class _Batch(msgspec.Struct, frozen=True):
    """Which of the two decks; of how many packs of 52 it is made, 1 or 2; how many cards."""

    deck: int
    decks: int
    cards: int

    def to_bytes(self) -> bytes:
        return pack(_BATCH, self.deck, self.decks, self.cards)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _BATCH.size or data[0] not in {1, 2} or not 1 <= data[1] <= MAX_DECKS:
            return Malformed("a batch is deck 1 or 2, packs 1 to 12, cards")
        return cls(*_BATCH.unpack(data))


class Loaded(_Batch, frozen=True):
    """So many cards lie in the infeed."""

    KIND: ClassVar[int] = 0x40


class ShuffleStarted(_Batch, frozen=True):
    """The shuffle of this deck began."""

    KIND: ClassVar[int] = 0x41


NOT_COUNTED, COUNTED, EVERY_CARD_READ = 0, 1, 2


class ShuffleFinished(msgspec.Struct, frozen=True):
    """The deck is shuffled and may be dealt. `verified`: NOT_COUNTED, COUNTED or EVERY_CARD_READ."""

    KIND: ClassVar[int] = 0x42
    deck: int
    decks: int
    cards: int
    verified: int

    def to_bytes(self) -> bytes:
        return pack(_BATCH, self.deck, self.decks, self.cards) + bytes((self.verified,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _BATCH.size + 1 or data[0] not in {1, 2} or not 1 <= data[1] <= MAX_DECKS or data[4] > 2:
            return Malformed("a finished shuffle is deck 1 or 2, packs 1 to 12, cards, verified 0 to 2")
        if data[4] == EVERY_CARD_READ and int.from_bytes(data[2:4]) != 52 * data[1]:
            return Malformed("every card was read, and there are not 52 for each pack")
        deck, decks, cards = _BATCH.unpack_from(data)
        return cls(deck, decks, cards, data[4])


class Failed(msgspec.Struct, frozen=True):
    """The shuffle, or the deal from a shuffled deck, did not end as it should: these cards may not be dealt."""

    KIND: ClassVar[int] = 0x43
    deck: int
    decks: int
    cards: int
    reason: int

    def to_bytes(self) -> bytes:
        return pack(_BATCH, self.deck, self.decks, self.cards) + bytes((self.reason,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _BATCH.size + 1 or data[0] not in {1, 2} or not 1 <= data[1] <= MAX_DECKS:
            return Malformed("a failure is deck 1 or 2, packs 1 to 12, cards, reason")
        deck, decks, cards = _BATCH.unpack_from(data)
        return cls(deck, decks, cards, data[4])


class Tally(msgspec.Struct, frozen=True):
    """How many of each card a reader found, in the order of CARDS, and how many cards it could not read."""

    counts: tuple[int, ...]
    unreadable: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.unreadable, *self.counts))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 + len(CARDS):
            return Malformed("a tally is the unreadable cards and 52 counts")
        return cls(tuple(data[1:]), data[0])


class Counted(msgspec.Struct, frozen=True):
    """A whole deck was counted. `wrong`: counts of this deck since it is in use, this one included, that were not good.

    `tally` where the machine reads each card.
    """

    KIND: ClassVar[int] = 0x44
    deck: int
    decks: int
    expected: int
    counted: int
    wrong: int = 0
    tally: Tally | None = None

    def to_bytes(self) -> bytes:
        head = pack(_COUNT, self.deck, self.decks, self.expected, self.counted, self.wrong)
        return head + (self.tally.to_bytes() if self.tally else b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) < _COUNT.size or data[0] not in {1, 2} or not 1 <= data[1] <= MAX_DECKS:
            return Malformed("a count is deck 1 or 2, packs 1 to 12, expected, counted, wrong before")
        deck, decks, expected, counted, wrong = _COUNT.unpack_from(data)
        if len(data) == _COUNT.size:
            return cls(deck, decks, expected, counted, wrong)
        tally = Tally.from_bytes(data[_COUNT.size :])
        if isinstance(tally, Malformed):
            return tally
        if sum(tally.counts) + tally.unreadable != counted:
            return Malformed("the tally does not add up to the count")
        return cls(deck, decks, expected, counted, wrong, tally)


class Jammed(Place, frozen=True):
    """Cards stick."""

    KIND: ClassVar[int] = 0x45


class JamCleared(Place, frozen=True):
    """The jam there is over."""

    KIND: ClassVar[int] = 0x46


class Dispensed(msgspec.Struct, frozen=True):
    """A packet of `count` cards lies in the tray, where `wanted` were asked for."""

    KIND: ClassVar[int] = 0x47
    wanted: int
    count: int

    def to_bytes(self) -> bytes:
        return bytes((self.wanted, self.count))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 2 and data[0] else Malformed("a packet is wanted from 1, counted")


class PacketTaken(Plain, frozen=True):
    """The tray is empty again."""

    KIND: ClassVar[int] = 0x48


class Lamps(Lit, frozen=True):
    """The lamps of the machine that are lit now."""

    KIND: ClassVar[int] = 0x49
    NAMES: ClassVar[tuple[str, ...]] = ("ready", "jam", "service")


class State(msgspec.Struct, frozen=True):
    """What the machine does now; only when it changed, and after each start."""

    KIND: ClassVar[int] = 0x4A
    state: int

    def to_bytes(self) -> bytes:
        return bytes((self.state,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 else Malformed("a state is one byte")


class Damaged(OneCard, frozen=True):
    """A card is torn, bent or marked."""

    KIND: ClassVar[int] = 0x4B


class DeckReplaced(Deck, frozen=True):
    """A person put another deck in the place of this one: its history begins anew."""

    KIND: ClassVar[int] = 0x4C


class Emptied(msgspec.Struct, frozen=True):
    """All cards were given out, so many."""

    KIND: ClassVar[int] = 0x4D
    cards: int

    def to_bytes(self) -> bytes:
        return pack(_CARDS, self.cards)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(int.from_bytes(data)) if len(data) == 2 else Malformed("an emptying is the number of cards")


class DeckTaken(Deck, frozen=True):
    """The rest of this deck was taken out of the outfeed: its deal is over."""

    KIND: ClassVar[int] = 0x4E


HAPPENINGS: dict[int, type[Happening]] = {
    happening.KIND: happening
    for happening in (
        Loaded,
        ShuffleStarted,
        ShuffleFinished,
        Failed,
        Counted,
        Jammed,
        JamCleared,
        Dispensed,
        PacketTaken,
        Lamps,
        State,
        Damaged,
        DeckReplaced,
        Emptied,
        DeckTaken,
    )
}

# What a State says.
IDLE_EMPTY, LOADING, SHUFFLING, READY, DEALING, EMPTYING, PAUSED, SERVICE = 1, 2, 3, 4, 5, 6, 7, 8

# Why a shuffle or a deal Failed.
JAM, COUNT, COMPOSITION, BACK, DAMAGE, OPENED, MOTOR, POWER, SENSOR = 1, 2, 3, 4, 5, 6, 7, 8, 9

# ---- commands

SHUFFLE = 0x20
DISPENSE = 0x21  # cards, 1 to 10
EMPTY = 0x22

# Why the device refuses one, beside fdl.REASONS.
NOTHING_LOADED, DECK_REJECTED, NOTHING_READY, PACKET_IN_TRAY, TOO_FEW_CARDS = 0x10, 0x11, 0x12, 0x13, 0x14
