"""FDL, dealer's console: the kinds and data of its events (docs/reference/protocols/fdl_console.md).

Cards and hands are carried as `deal.corrected` has them: a card is rank then suit (`AS TD`), a hand "player", "banker",
"dealer", "board", "seat_3", or "seat_3_2" for the second hand of a seat. A card that lies face down is never carried.
"""

import re
import struct
from typing import ClassVar, Self

import msgspec

from protocols.fdl.frame import MAX_DATA, Happening, Malformed, Plain

MAX_SEAT = 99
MAX_FACES = 16

ACTIONS = {
    0x01: "stand",
    0x02: "hit",
    0x03: "split",
    0x04: "double",
    0x05: "surrender",
    0x06: "insurance",
    0x07: "even_money",
    0x08: "fold",
    0x09: "raise",
    0x0A: "check",
    0x0B: "call",
    0x0C: "bet",
    0x0D: "all_in",
    0x0E: "ante",
    0x0F: "draw",
    0x10: "decline",
    0x11: "small_blind",
    0x12: "big_blind",
    0x13: "show",
    0x14: "muck",
    0x15: "banco",
    0x16: "banco_suivi",
    0x17: "banco_with_table",
    0x18: "association",
    0x19: "withdraw",
    0x1A: "five_cards",
}
"""What a player may decide, by code."""

VOID_REASONS = {
    0x00: "",
    0x01: "dealing_error",
    0x02: "equipment_fault",
    0x03: "foreign_object",
    0x04: "disturbance",
    0x05: "supervisors_decision",
}
SUPERVISORS_DECISION = 0x05

THROW_REASONS = {
    0x00: "",
    0x01: "foreign_object",
    0x02: "a_die_on_the_floor",
    0x03: "a_die_off_the_table",
    0x04: "a_die_with_a_defect_or_a_foreign_substance",
    0x05: "not_all_dice_in_the_cup",
    0x06: "a_die_stuck_in_the_cup",
    0x07: "a_die_not_flat_and_alone",
    0x08: "short_of_the_middle",
}
"""Why a throw does not count; 00: it counts."""

_RANKS, _SUITS = "A23456789TJQK", "SHDC"
CARDS = {(1 + rank) << 4 | 1 + suit: r + s for rank, r in enumerate(_RANKS) for suit, s in enumerate(_SUITS)}
"""One byte is a card: the rank, 1 ace to D king, then the suit, 1 spades, 2 hearts, 3 diamonds, 4 clubs."""
_CARD_BYTES = {card: byte for byte, card in CARDS.items()}
NO_CARD = 0x00
NO_OWNER = 0x00
"""Behind the hands of a correction: the round's id follows."""

_TABLE_HANDS = {0x80: "player", 0x81: "banker", 0x82: "dealer", 0x83: "board"}
_TABLE_BYTES = {hand: byte for byte, hand in _TABLE_HANDS.items()}
_SEAT_HAND = re.compile(r"seat_([1-9][0-9]?)(?:_([2-9]))?", re.ASCII)

POCKETS = {**{pocket: str(pocket) for pocket in range(37)}, 0x40: "00", 0x41: "000", 0x42: "0000"}
_POCKET_BYTES = {pocket: byte for byte, pocket in POCKETS.items()}
NO_POCKET = 0xFF

CLOCKWISE, ANTICLOCKWISE = 1, 2

_ACTION = struct.Struct(">BBBI")
_BUTTONS = struct.Struct(">HB")
_JACKPOT = struct.Struct(">BBI")
_BET = struct.Struct(">BI")
MAX_BET = 40
_BET_NAME = re.compile(rf"[a-z0-9_:-]{{1,{MAX_BET}}}", re.ASCII)


MAX_ROUND = 100
_ROUND = re.compile(rf"[a-z0-9:-]{{0,{MAX_ROUND}}}", re.ASCII)


def _round_to_bytes(name: str) -> bytes:
    """Raises ValueError for what is no id of a round."""
    if _ROUND.fullmatch(name) is None:
        raise ValueError(f"a round's id has at most {MAX_ROUND} characters of a-z 0-9 : -")
    return name.encode("ascii")


def _round_from_bytes(data: bytes) -> str | None:
    name = data.decode("latin-1")
    return name if _ROUND.fullmatch(name) else None


def _hand_to_bytes(hand: str) -> bytes:
    if hand in _TABLE_BYTES:
        return bytes((_TABLE_BYTES[hand], 1))
    found = _SEAT_HAND.fullmatch(hand)
    if found is None:
        raise ValueError(f"a hand is player, banker, dealer, board, seat_3 or seat_3_2, not {hand!r}")
    return bytes((int(found[1]), int(found[2] or 1)))


def _hand_from_bytes(owner: int, number: int) -> str | None:
    if owner in _TABLE_HANDS:
        return _TABLE_HANDS[owner] if number == 1 else None
    if not 1 <= owner <= MAX_SEAT or not 1 <= number <= 9:
        return None
    return f"seat_{owner}" if number == 1 else f"seat_{owner}_{number}"


def _card_byte(card: str | None) -> int:
    """Raises ValueError for an unknown card."""
    if card is None:
        return NO_CARD
    if card not in _CARD_BYTES:
        raise ValueError(f"a card is rank then suit, as in TD, not {card!r}")
    return _CARD_BYTES[card]


class _Seat(msgspec.Struct, frozen=True):
    """Common reading and writing of one seat."""

    LEAST: ClassVar[int] = 1
    seat: int

    def to_bytes(self) -> bytes:
        return bytes((self.seat,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or not cls.LEAST <= data[0] <= MAX_SEAT:
            return Malformed(f"a seat is {cls.LEAST} to {MAX_SEAT}")
        return cls(*data)


class BetsOpened(Plain, frozen=True):
    """Bets may be placed."""

    KIND: ClassVar[int] = 0x20


class BetsClosed(Plain, frozen=True):
    """The bell."""

    KIND: ClassVar[int] = 0x21


class RoundVoid(msgspec.Struct, frozen=True):
    """The round is declared void; `round` where its id is given."""

    KIND: ClassVar[int] = 0x22
    reason: int = 0
    round: str = ""

    def to_bytes(self) -> bytes:
        return bytes((self.reason,)) + _round_to_bytes(self.round)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        name = _round_from_bytes(data[1:])
        return Malformed("a void is one reason and a round") if not data or name is None else cls(data[0], name)


class Paid(msgspec.Struct, frozen=True):
    """Losers collected, winners paid; `round` where its id is given."""

    KIND: ClassVar[int] = 0x23
    round: str = ""

    def to_bytes(self) -> bytes:
        return _round_to_bytes(self.round)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        name = _round_from_bytes(data)
        return Malformed("a payment is a round or nothing") if name is None else cls(name)


class NewShoe(msgspec.Struct, frozen=True):
    """Freshly shuffled cards are in the shoe; `decks` 0 if unknown."""

    KIND: ClassVar[int] = 0x24
    decks: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.decks,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 and data[0] <= 12 else Malformed("a new shoe is 0 to 12 decks")


class CutCard(Plain, frozen=True):
    """The cut card came out."""

    KIND: ClassVar[int] = 0x25


class DemoRound(Plain, frozen=True):
    """The next round is a demonstration."""

    KIND: ClassVar[int] = 0x26


class SeatOpened(_Seat, frozen=True):
    """A player takes part from `seat`."""

    KIND: ClassVar[int] = 0x27


class SeatClosed(_Seat, frozen=True):
    """`seat` takes no part any more."""

    KIND: ClassVar[int] = 0x28


class SeatAction(msgspec.Struct, frozen=True):
    """What the player at `seat` decides for a `hand`, from 1: one of ACTIONS, with `amount` minor units, 0 for none."""

    KIND: ClassVar[int] = 0x29
    seat: int
    action: int
    hand: int = 1
    amount: int = 0

    def to_bytes(self) -> bytes:
        return _ACTION.pack(self.seat, self.hand, self.action, self.amount)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _ACTION.size:
            return Malformed("an action is seat, hand, action, amount")
        seat, hand, action, amount = _ACTION.unpack(data)
        if not 1 <= seat <= MAX_SEAT or not 1 <= hand <= 9 or action not in ACTIONS:
            return Malformed(f"an action {action:02X} of hand {hand} at seat {seat} is not known")
        return cls(seat, action, hand, amount)


class HandPassed(_Seat, frozen=True):
    """The bank, the dice or the button went to `seat`; 0 if unknown."""

    KIND: ClassVar[int] = 0x2A
    LEAST: ClassVar[int] = 0


class DealerRelieved(Plain, frozen=True):
    """Another dealer took over."""

    KIND: ClassVar[int] = 0x2B


class SupervisorKey(msgspec.Struct, frozen=True):
    """The supervisor's key was turned on or off."""

    KIND: ClassVar[int] = 0x2C
    on: bool

    def to_bytes(self) -> bytes:
        return bytes((self.on,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(data == b"\x01") if data in {b"\x00", b"\x01"} else Malformed("a key is 0 off or 1 on")


class Corrected(msgspec.Struct, frozen=True):
    """The hands as they lie now, each once, with the cards that lie face up; `round` where its id is given."""

    KIND: ClassVar[int] = 0x2D
    hands: tuple[tuple[str, tuple[str, ...]], ...]
    round: str = ""

    def to_bytes(self) -> bytes:
        """Raises ValueError for an unknown hand or card, a repeated hand, or more than an EVENT holds."""
        if not self.hands or len(dict(self.hands)) != len(self.hands):
            raise ValueError("a correction has at least one hand, each once")
        data = b"".join(
            (_hand_to_bytes(hand) + bytes((len(cards), *map(_card_byte, cards)))) for hand, cards in self.hands
        )
        if self.round:
            data += bytes((NO_OWNER,)) + _round_to_bytes(self.round)
        if len(data) > MAX_DATA:
            raise ValueError("a correction does not fit into one event")
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        hands: dict[str, tuple[str, ...]] = {}
        name: str | None = ""
        at = 0
        while at + 3 <= len(data) and data[at] != NO_OWNER:
            hand = _hand_from_bytes(data[at], data[at + 1])
            end = at + 3 + data[at + 2]
            if hand is None or hand in hands or end > len(data):
                break
            if any(byte not in CARDS for byte in data[at + 3 : end]):
                return Malformed("a correction has cards that are none")
            hands[hand] = tuple(CARDS[byte] for byte in data[at + 3 : end])
            at = end
        if at < len(data) and data[at] == NO_OWNER:
            name, at = _round_from_bytes(data[at + 1 :]) or None, len(data)
        if at != len(data) or not hands or name is None:
            return Malformed("a correction is hands, each once: owner, number, n, n cards; and a round")
        return cls(tuple(hands.items()), name)


class CardExposed(msgspec.Struct, frozen=True):
    """A card of `hand` that should lie face down was seen by all; `card` None if unknown."""

    KIND: ClassVar[int] = 0x2E
    hand: str
    card: str | None = None

    def to_bytes(self) -> bytes:
        return _hand_to_bytes(self.hand) + bytes((_card_byte(self.card),))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        hand = _hand_from_bytes(data[0], data[1]) if len(data) == 3 else None
        if hand is None or data[2] not in {NO_CARD, *CARDS}:
            return Malformed("an exposed card is owner, number, card or 0")
        return cls(hand, CARDS.get(data[2]))


class CardDamaged(msgspec.Struct, frozen=True):
    """A card is torn, bent or marked; `card` None if unknown."""

    KIND: ClassVar[int] = 0x2F
    card: str | None = None

    def to_bytes(self) -> bytes:
        return bytes((_card_byte(self.card),))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or data[0] not in {NO_CARD, *CARDS}:
            return Malformed("a damaged card is a card or 0")
        return cls(CARDS.get(data[0]))


def _faces(data: bytes, head: int) -> tuple[int, ...] | None:
    """The n faces behind `head` bytes and n; None where they are none."""
    if len(data) <= head or data[head] != len(data) - head - 1 or data[head] > MAX_FACES:
        return None
    faces = tuple(data[head + 1 :])
    return faces if all(1 <= face <= 6 for face in faces) else None


class DiceEntered(msgspec.Struct, frozen=True):
    """The dice as the dealer sees them at a table without a reader; like a shaker's reading."""

    KIND: ClassVar[int] = 0x30
    faces: tuple[int, ...]
    stacked: int = 0
    leaning: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.stacked, self.leaning, len(self.faces), *self.faces))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        faces = _faces(data, 2)
        if faces is None:
            return Malformed(f"entered dice are stacked, leaning, n up to {MAX_FACES}, n faces of 1 to 6")
        return cls(faces, data[0], data[1])


class DiceThrown(msgspec.Struct, frozen=True):
    """Dice thrown by hand came to rest; `reason` is one of THROW_REASONS, not 0 where the throw does not count."""

    KIND: ClassVar[int] = 0x31
    faces: tuple[int, ...] = ()
    reason: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.reason, len(self.faces), *self.faces))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        faces = _faces(data, 1)
        if faces is None or not (faces or data[0]):
            return Malformed(f"a throw is reason, n up to {MAX_FACES}, n faces of 1 to 6; none only with a reason")
        return cls(faces, data[0])


class DiceDisturbed(Plain, frozen=True):
    """The dice were touched before the result was announced."""

    KIND: ClassVar[int] = 0x32


class DiceReplaced(Plain, frozen=True):
    """Another set of dice is in play."""

    KIND: ClassVar[int] = 0x33


class DiceSeized(Plain, frozen=True):
    """The set was removed as suspect."""

    KIND: ClassVar[int] = 0x34


class ButtonsSeparated(Plain, frozen=True):
    """A heap of buttons was set apart and covered."""

    KIND: ClassVar[int] = 0x35


class ButtonsCounted(msgspec.Struct, frozen=True):
    """So many whole buttons, from 1, and fragments of broken ones."""

    KIND: ClassVar[int] = 0x36
    count: int
    fragments: int = 0

    def to_bytes(self) -> bytes:
        return _BUTTONS.pack(self.count, self.fragments)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _BUTTONS.size or not any(data[:2]):
            return Malformed("a count is buttons, from 1, and fragments")
        return cls(*_BUTTONS.unpack(data))


class BallLaunched(msgspec.Struct, frozen=True):
    """The ball was thrown by hand: its direction and the rotor's, CLOCKWISE or ANTICLOCKWISE."""

    KIND: ClassVar[int] = 0x37
    ball: int
    rotor: int

    def to_bytes(self) -> bytes:
        return bytes((self.ball, self.rotor))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 2 or not {*data} <= {CLOCKWISE, ANTICLOCKWISE}:
            return Malformed("a launch is two directions, 1 or 2")
        return cls(*data)


class BallEntered(msgspec.Struct, frozen=True):
    """The ball rests in `pocket`, as the dealer sees it at a table without a reading wheel: one of POCKETS."""

    KIND: ClassVar[int] = 0x38
    pocket: str

    def to_bytes(self) -> bytes:
        if self.pocket not in _POCKET_BYTES:
            raise ValueError(f"a pocket is 0 to 36, or 00, 000, 0000, not {self.pocket!r}")
        return bytes((_POCKET_BYTES[self.pocket],))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or data[0] not in POCKETS:
            return Malformed("a pocket is 00 to 24, 40, 41 or 42")
        return cls(POCKETS[data[0]])


class BallReplaced(msgspec.Struct, frozen=True):
    """The ball was put back by hand, into `pocket`; None if unknown."""

    KIND: ClassVar[int] = 0x39
    pocket: str | None = None

    def to_bytes(self) -> bytes:
        return bytes((NO_POCKET,)) if self.pocket is None else BallEntered(self.pocket).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 1 or data[0] not in {NO_POCKET, *POCKETS}:
            return Malformed("a ball put back is a pocket or FF")
        return cls(POCKETS.get(data[0]))


class _Jackpot(msgspec.Struct, frozen=True):
    """Common reading and writing: level (1 the highest), seat and minor units; 0 is unknown."""

    level: int = 0
    seat: int = 0
    amount: int = 0

    def to_bytes(self) -> bytes:
        return _JACKPOT.pack(self.level, self.seat, self.amount)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != _JACKPOT.size or data[0] > 32 or data[1] > MAX_SEAT:
            return Malformed(f"a jackpot is level up to 32, seat up to {MAX_SEAT}, amount")
        return cls(*_JACKPOT.unpack(data))


class JackpotWon(_Jackpot, frozen=True):
    """A jackpot fell."""

    KIND: ClassVar[int] = 0x3A


class JackpotPaid(_Jackpot, frozen=True):
    """A jackpot was handed out."""

    KIND: ClassVar[int] = 0x3B


class BallChanged(Plain, frozen=True):
    """Another ball is in play."""

    KIND: ClassVar[int] = 0x3C


class TableClosed(Plain, frozen=True):
    """The table closes."""

    KIND: ClassVar[int] = 0x3D


class _Bet(msgspec.Struct, frozen=True):
    """Common reading and writing of a bet: its seat, its name in the ruleset, and `amount` in minor units."""

    LEAST: ClassVar[int] = 1
    seat: int
    bet: str
    amount: int = 0

    def to_bytes(self) -> bytes:
        return _BET.pack(self.seat, self.amount) + self.bet.encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        name = data[_BET.size :].decode("latin-1")
        if len(data) < _BET.size or _BET_NAME.fullmatch(name) is None:
            return Malformed(f"a bet is seat, amount and a name of 1 to {MAX_BET} characters of a-z 0-9 _ : -")
        seat, amount = _BET.unpack(data[: _BET.size])
        if not 1 <= seat <= MAX_SEAT or amount < cls.LEAST:
            return Malformed(f"a bet of {amount} at seat {seat} is none")
        return cls(seat, name, amount)


class BetPlaced(_Bet, frozen=True):
    """The dealer entered a bet."""

    KIND: ClassVar[int] = 0x3E


class BetWithdrawn(_Bet, frozen=True):
    """The dealer entered that a bet was taken back; `amount` 0 is all of it."""

    KIND: ClassVar[int] = 0x3F
    LEAST: ClassVar[int] = 0


class DiceCovered(Plain, frozen=True):
    """The dome is over the dice: a key, where the shaker does not tell it."""

    KIND: ClassVar[int] = 0x40


class DiceUncovered(Plain, frozen=True):
    """The dome was lifted: a key, where the shaker does not tell it."""

    KIND: ClassVar[int] = 0x41


HAPPENINGS: dict[int, type[Happening]] = {
    happening.KIND: happening
    for happening in (
        BetsOpened,
        BetsClosed,
        RoundVoid,
        Paid,
        NewShoe,
        CutCard,
        DemoRound,
        SeatOpened,
        SeatClosed,
        SeatAction,
        HandPassed,
        DealerRelieved,
        SupervisorKey,
        Corrected,
        CardExposed,
        CardDamaged,
        DiceEntered,
        DiceThrown,
        DiceDisturbed,
        DiceReplaced,
        DiceSeized,
        ButtonsSeparated,
        ButtonsCounted,
        BallLaunched,
        BallEntered,
        BallReplaced,
        JackpotWon,
        JackpotPaid,
        BallChanged,
        TableClosed,
        BetPlaced,
        BetWithdrawn,
        DiceCovered,
        DiceUncovered,
    )
}
