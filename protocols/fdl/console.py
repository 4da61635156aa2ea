"""FDL, dealer's console: the kinds and data of its events (docs/reference/protocols/fdl_console.md).

Cards and hands are carried as `deal.corrected` has them: a card is rank then suit (`AS TD`), a hand "player", "banker",
"dealer", "board", "seat_3", or "seat_3_2" for the second hand of a seat. A card that lies face down is never carried.
"""

import re
from typing import ClassVar, Final, Literal, TypeAlias

from protocols.fdl.cards import CARDS_BY_RANK_AND_SUIT
from protocols.fdl.fields import SWITCH, Code, Number, Numbers, OneOf, Record, Text, by_kind
from protocols.fdl.frame import MAX_DATA

MAX_SEAT = 99
MOST = 2**53 - 1
"""The largest amount in minor units: readers of JSON round larger numbers."""
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
    0x1B: "post",
    0x1C: "stack",
    0x1D: "rest",
    0x1E: "return",
    0x1F: "dead",
    0x20: "absent",
    0x21: "skipped",
    0x22: "blind_raise",
    0x23: "blind_reraise",
    0x24: "bank",
    0x25: "looks",
    0x26: "give",
    0x27: "refuse",
    0x28: "pass",
    0x29: "take",
    0x2A: "auction",
    0x2B: "bid",
    0x2C: "bid_half",
    0x2D: "garage",
    0x2E: "halve",
    0x2F: "reduce",
    0x30: "outside",
    0x31: "moved",
    0x32: "by_table",
    0x33: "cards_to",
    0x34: "discarded",
    0x35: "fault_76",
    0x36: "fault_105b",
    0x37: "fault_105c",
    0x38: "fault_105d",
    0x39: "fault_105e",
    0x3A: "fault_105f",
    0x3B: "fault_105g",
    0x3C: "fault_105h",
    0x3D: "fault_105i",
    0x3E: "fault_105j",
    0x3F: "fault_105m",
    0x40: "fault_107a",
    0x41: "fault_107c",
}
"""The actions of `seat.acted`, by code: what a player decides, and what the dealer does or states of a seat."""

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

Count: TypeAlias = Literal["opening", "closing", "fill", "credit", "drop"]
COUNTS: Final[dict[int, Count]] = {0x01: "opening", 0x02: "closing", 0x03: "fill", 0x04: "credit", 0x05: "drop"}
"""What is counted at a table, by code."""

CARDS = CARDS_BY_RANK_AND_SUIT
NO_OWNER = 0x00
"""Behind the hands of a correction: the round's id follows."""

_TABLE_HANDS = {0x80: "player", 0x81: "banker", 0x82: "dealer", 0x83: "board"}
_TABLE_BYTES = {hand: byte for byte, hand in _TABLE_HANDS.items()}
_SEAT_HAND = re.compile(r"seat_([1-9][0-9]?)(?:_([2-9]))?", re.ASCII)

POCKETS = {**{pocket: str(pocket) for pocket in range(37)}, 0x40: "00", 0x41: "000", 0x42: "0000"}
CLOCKWISE, ANTICLOCKWISE = 1, 2

MAX_BET = 40
MAX_ROUND = 100
MAX_NAME = 64
MAX_PARTS = 16


class _Hand:
    """Owner and number of a hand."""

    def write(self, value: str) -> bytes:
        if value in _TABLE_BYTES:
            return bytes((_TABLE_BYTES[value], 1))
        if found := _SEAT_HAND.fullmatch(value):
            return bytes((int(found[1]), int(found[2] or 1)))
        raise ValueError(f"a hand is player, banker, dealer, board, seat_3 or seat_3_2, not {value!r}")

    def read(self, data: bytes, at: int) -> tuple[str, int] | None:
        if at + 2 > len(data):
            return None
        owner, number = data[at], data[at + 1]
        if owner in _TABLE_HANDS:
            return (_TABLE_HANDS[owner], at + 2) if number == 1 else None
        if not 1 <= owner <= MAX_SEAT or not 1 <= number <= 9:
            return None
        return f"seat_{owner}" if number == 1 else f"seat_{owner}_{number}", at + 2

    def page(self, name: str) -> str:  # noqa: ARG002 - two bytes, each with its own name
        return "owner · number"


class _Hands:
    """Hands, each once: owner, number, n, n cards. They end with the data or before NO_OWNER."""

    def write(self, value: tuple[tuple[str, tuple[str, ...]], ...]) -> bytes:
        if not value or len(dict(value)) != len(value):
            raise ValueError("a correction has at least one hand, each once")
        return b"".join(
            _HAND.write(hand) + bytes((len(cards),)) + b"".join(map(_CARD.write, cards)) for hand, cards in value
        )

    def read(self, data: bytes, at: int) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], int] | None:
        hands: dict[str, tuple[str, ...]] = {}
        while at < len(data) and data[at] != NO_OWNER:
            hand = _HAND.read(data, at)
            if hand is None or hand[0] in hands or at + 3 > len(data):
                return None
            start, at = at + 3, at + 3 + data[at + 2]
            if at > len(data) or any(byte not in CARDS for byte in data[start:at]):
                return None
            hands[hand[0]] = tuple(CARDS[byte] for byte in data[start:at])
        return (tuple(hands.items()), at) if hands else None

    def page(self, name: str) -> str:
        return f"{name}, each: owner · number · n · n cards"


class _Short:
    """A text of `least` to `longest` characters, after the number of its bytes in UTF-8."""

    def __init__(self, says: str, least: int, longest: int) -> None:
        self._says = says
        self._least = least
        self._longest = longest

    def write(self, value: str) -> bytes:
        if not (self._least <= len(value) <= self._longest and value.isprintable() and len(value.encode()) <= MAX_DATA):
            raise ValueError(f"{self._says} has {self._least} to {self._longest} printable characters")
        data = value.encode()
        return bytes((len(data), *data))

    def read(self, data: bytes, at: int) -> tuple[str, int] | None:
        end = at + 1 + data[at] if at < len(data) else 0
        try:
            value = data[at + 1 : end].decode()
        except UnicodeDecodeError:
            return None
        fits = self._least <= len(value) <= self._longest and value.isprintable()
        return (value, end) if at < len(data) and end <= len(data) and fits else None

    def page(self, name: str) -> str:  # noqa: ARG002 - an error has a text of its own, not the attribute's name
        return f"n · n bytes: {self._says}, {self._least} to {self._longest} characters of UTF-8"


class _LaidBets:
    """The rest of the data: bets, each seat, amount, n, n characters of its name."""

    def write(self, value: tuple[tuple[int, str, int], ...]) -> bytes:
        return b"".join(
            _SEAT.write(seat) + _LAID.write(amount) + bytes((len(bet),)) + _BET_NAME.write(bet)
            for seat, bet, amount in value
        )

    def read(self, data: bytes, at: int) -> tuple[tuple[tuple[int, str, int], ...], int] | None:
        bets = []
        while at < len(data):
            seat, amount = _SEAT.read(data, at), _LAID.read(data, at + 1)
            if seat is None or amount is None or at + 6 > len(data):
                return None
            start, at = at + 6, at + 6 + data[at + 5]
            name = _BET_NAME.read(data[start:at], 0)
            if at > len(data) or name is None:
                return None
            bets.append((seat[0], name[0], amount[0]))
        return tuple(bets), at

    def page(self, name: str) -> str:
        return f"{name}, each: {_SEAT.page('seat')} · {_LAID.page('amount')} · n · {_BET_NAME.page('bet')}"


class _NamedRound:
    """The id of a round after NO_OWNER, or nothing."""

    def write(self, value: str) -> bytes:
        return bytes((NO_OWNER,)) + _ROUND.write(value) if value else b""

    def read(self, data: bytes, at: int) -> tuple[str, int] | None:
        if at == len(data):
            return "", at
        found = _ROUND.read(data, at + 1)
        return found if found and found[0] else None

    def page(self, name: str) -> str:
        return f"then nothing, or 00 · {_ROUND.page(name)}"


_HAND: Final = _Hand()
_SEAT: Final = Number(1, 1, MAX_SEAT)
_SEAT_OR_0: Final = Number(1, 0, MAX_SEAT, note=", 0 not stated")
_CARD: Final = Code(CARDS, "a card is rank then suit, as in TD")
_CARD_OR_0: Final = Code({0x00: None, **CARDS}, "a card is rank then suit, as in TD", ", 00 not stated")
_ROUND: Final = Text("a round's id", "a-z 0-9 : -", 0, MAX_ROUND)
_BET_NAME: Final = Text("a bet's name", "a-z 0-9 _ : -", 1, MAX_BET)
_LAID: Final = Number(4, least=1, note=" (minor units)")
_FACES: Final = Numbers(Number(1, 1, 6), MAX_FACES)
_AMOUNT: Final = Number(4, note=" (minor units), 0 not stated")
_LIMIT: Final = Number(8, 0, MOST, note=" (minor units)")
_LIMIT_OR_0: Final = Number(8, 0, MOST, note=" (minor units), 0 none")
_DIRECTION: Final = Number(1, CLOCKWISE, ANTICLOCKWISE, note=" (1 clockwise, 2 anticlockwise)")
_POCKET_SAYS: Final = "a pocket is 0 to 36, or 00, 000, 0000"


class _Seat(Record, frozen=True):
    """One seat."""

    FIELDS: ClassVar = {"seat": _SEAT}
    seat: int


class BetsOpened(Record, frozen=True):
    """Bets may be placed."""

    KIND: ClassVar[int] = 0x20


class BetsClosed(Record, frozen=True):
    """The bell."""

    KIND: ClassVar[int] = 0x21


class RoundVoid(Record, frozen=True):
    """The round is declared void; `round` where its id is given."""

    KIND: ClassVar[int] = 0x22
    FIELDS: ClassVar = {"reason": Number(), "round": _ROUND}
    reason: int = 0
    round: str = ""


class Paid(Record, frozen=True):
    """Losers collected, winners paid; `round` where its id is given."""

    KIND: ClassVar[int] = 0x23
    FIELDS: ClassVar = {"round": _ROUND}
    round: str = ""


class NewShoe(Record, frozen=True):
    """Freshly shuffled cards are in the shoe; `decks` 0 if unknown."""

    KIND: ClassVar[int] = 0x24
    FIELDS: ClassVar = {"decks": Number(1, 0, 12, note=", 0 not known")}
    decks: int = 0


class CutCard(Record, frozen=True):
    """The cut card came out."""

    KIND: ClassVar[int] = 0x25


class DemoRound(Record, frozen=True):
    """The next round is a demonstration."""

    KIND: ClassVar[int] = 0x26


class SeatOpened(_Seat, frozen=True):
    """A player takes part from `seat`."""

    KIND: ClassVar[int] = 0x27


class SeatClosed(_Seat, frozen=True):
    """`seat` takes no part any more."""

    KIND: ClassVar[int] = 0x28


class SeatAction(Record, frozen=True):
    """One of ACTIONS of `seat`, for a `hand`, from 1, with `amount` minor units, 0 for none."""

    KIND: ClassVar[int] = 0x29
    FIELDS: ClassVar = {"seat": _SEAT, "hand": Number(1, 1, 9), "action": OneOf(frozenset(ACTIONS)), "amount": _AMOUNT}
    seat: int
    action: int
    hand: int = 1
    amount: int = 0


class HandPassed(_Seat, frozen=True):
    """The bank, the dice or the button went to `seat`; 0 if unknown."""

    KIND: ClassVar[int] = 0x2A
    FIELDS: ClassVar = {"seat": _SEAT_OR_0}


class DealerRelieved(Record, frozen=True):
    """Another dealer took over."""

    KIND: ClassVar[int] = 0x2B


class SupervisorKey(Record, frozen=True):
    """The supervisor's key was turned on or off."""

    KIND: ClassVar[int] = 0x2C
    FIELDS: ClassVar = {"on": SWITCH}
    on: bool


class Corrected(Record, frozen=True):
    """The hands as they lie now, each once, with the cards that lie face up; `round` where its id is given."""

    KIND: ClassVar[int] = 0x2D
    FIELDS: ClassVar = {"hands": _Hands(), "round": _NamedRound()}
    hands: tuple[tuple[str, tuple[str, ...]], ...]
    round: str = ""

    def to_bytes(self) -> bytes:
        """Raises ValueError for an unknown hand or card, a repeated hand, or more than an EVENT holds."""
        data = super().to_bytes()
        if len(data) > MAX_DATA:
            raise ValueError("a correction does not fit into one event")
        return data


class CardExposed(Record, frozen=True):
    """A card of `hand` that should lie face down was seen by all; `card` None if unknown."""

    KIND: ClassVar[int] = 0x2E
    FIELDS: ClassVar = {"hand": _HAND, "card": _CARD_OR_0}
    hand: str
    card: str | None = None


class CardDamaged(Record, frozen=True):
    """A card is torn, bent or marked; `card` None if unknown."""

    KIND: ClassVar[int] = 0x2F
    FIELDS: ClassVar = {"card": _CARD_OR_0}
    card: str | None = None


class DiceEntered(Record, frozen=True):
    """The dice as the dealer sees them at a table without a reader; like a shaker's reading."""

    KIND: ClassVar[int] = 0x30
    FIELDS: ClassVar = {"stacked": Number(), "leaning": Number(), "faces": _FACES}
    faces: tuple[int, ...]
    stacked: int = 0
    leaning: int = 0


class DiceThrown(Record, frozen=True):
    """Dice thrown by hand came to rest; `reason` is one of THROW_REASONS, not 0 where the throw does not count."""

    KIND: ClassVar[int] = 0x31
    FIELDS: ClassVar = {"reason": Number(), "faces": _FACES}
    faces: tuple[int, ...] = ()
    reason: int = 0

    def contradiction(self) -> str:
        return "" if self.faces or self.reason else "a throw without faces has a reason"


class DiceDisturbed(Record, frozen=True):
    """The dice were touched before the result was announced."""

    KIND: ClassVar[int] = 0x32


class DiceReplaced(Record, frozen=True):
    """Another set of dice is in play."""

    KIND: ClassVar[int] = 0x33


class DiceSeized(Record, frozen=True):
    """The set was removed as suspect."""

    KIND: ClassVar[int] = 0x34


class ButtonsSeparated(Record, frozen=True):
    """A heap of buttons was set apart and covered."""

    KIND: ClassVar[int] = 0x35


class ButtonsCounted(Record, frozen=True):
    """So many whole buttons, from 1, and fragments of broken ones."""

    KIND: ClassVar[int] = 0x36
    FIELDS: ClassVar = {"count": Number(2, least=1), "fragments": Number()}
    count: int
    fragments: int = 0


class BallLaunched(Record, frozen=True):
    """The ball was thrown by hand: its direction and the rotor's, CLOCKWISE or ANTICLOCKWISE."""

    KIND: ClassVar[int] = 0x37
    FIELDS: ClassVar = {"ball": _DIRECTION, "rotor": _DIRECTION}
    ball: int
    rotor: int


class BallEntered(Record, frozen=True):
    """The ball rests in `pocket`, as the dealer sees it at a table without a reading wheel: one of POCKETS."""

    KIND: ClassVar[int] = 0x38
    FIELDS: ClassVar = {"pocket": Code(POCKETS, _POCKET_SAYS)}
    pocket: str


class BallReplaced(Record, frozen=True):
    """The ball was put back by hand, into `pocket`; None if unknown."""

    KIND: ClassVar[int] = 0x39
    FIELDS: ClassVar = {"pocket": Code({0xFF: None, **POCKETS}, _POCKET_SAYS, ", FF not stated")}
    pocket: str | None = None


class _Jackpot(Record, frozen=True):
    """A jackpot: level (1 the highest), seat and minor units; 0 is unknown."""

    FIELDS: ClassVar = {"level": Number(1, 0, 32), "seat": _SEAT_OR_0, "amount": _AMOUNT}
    level: int = 0
    seat: int = 0
    amount: int = 0


class JackpotWon(_Jackpot, frozen=True):
    """A jackpot fell."""

    KIND: ClassVar[int] = 0x3A


class JackpotPaid(_Jackpot, frozen=True):
    """A jackpot was handed out."""

    KIND: ClassVar[int] = 0x3B


class BallChanged(Record, frozen=True):
    """Another ball is in play."""

    KIND: ClassVar[int] = 0x3C


class TableClosed(Record, frozen=True):
    """The table closes."""

    KIND: ClassVar[int] = 0x3D


class _Bet(Record, frozen=True):
    """A bet: its seat, its name in the ruleset, and `amount` in minor units."""

    seat: int
    bet: str
    amount: int = 0


class BetPlaced(_Bet, frozen=True):
    """The dealer entered a bet."""

    KIND: ClassVar[int] = 0x3E
    FIELDS: ClassVar = {"seat": _SEAT, "amount": Number(4, least=1, note=" (minor units)"), "bet": _BET_NAME}


class BetWithdrawn(_Bet, frozen=True):
    """The dealer entered that a bet was taken back; `amount` 0 is all of it."""

    KIND: ClassVar[int] = 0x3F
    FIELDS: ClassVar = {"seat": _SEAT, "amount": Number(4, note=" (minor units), 0 all of it"), "bet": _BET_NAME}


class SeriesStated(Record, frozen=True):
    """A supervisor, `by` name, says what lies on a table of craps after a loss: the `point`, 0 none, and all bets.

    Each bet is its seat, its name in the ruleset and minor units. `stated` writes as many parts as the bets need.
    """

    KIND: ClassVar[int] = 0x42
    FIELDS: ClassVar = {
        "part": Number(1, 1, MAX_PARTS),
        "parts": Number(1, 1, MAX_PARTS),
        "point": Number(1, 0, 12, note=", 0 none"),
        "by": _Short("the supervisor's name", 1, MAX_NAME),
        "round": _Short("a round's id", 0, MAX_ROUND),
        "bets": _LaidBets(),
    }
    by: str
    point: int = 0
    round: str = ""
    bets: tuple[tuple[int, str, int], ...] = ()
    part: int = 1
    parts: int = 1

    def contradiction(self) -> str:
        return "a part after the last one" if self.part > self.parts else ""


def stated(by: str, point: int, round_: str, bets: tuple[tuple[int, str, int], ...]) -> tuple[SeriesStated, ...]:
    """The whole statement, in as many events as it needs. Raises ValueError for what does not fit into MAX_PARTS."""
    shares: list[tuple[tuple[int, str, int], ...]] = [()]
    for bet in bets:
        longer = SeriesStated(by, point, round_, (*shares[-1], bet))
        if shares[-1] and len(longer.to_bytes()) > MAX_DATA:
            shares.append((bet,))
        else:
            shares[-1] = longer.bets
    parts = tuple(
        SeriesStated(by, point, round_, share, part, len(shares)) for part, share in enumerate(shares, start=1)
    )
    if len(parts) > MAX_PARTS or any(len(part.to_bytes()) > MAX_DATA for part in parts):
        raise ValueError(f"the bets do not fit into {MAX_PARTS} events")
    return parts


class _Sign(Record, frozen=True):
    """The limits on the sign of the table in minor units, `maximum` 0 for none, and the person who decided them."""

    FIELDS: ClassVar = {"minimum": _LIMIT, "maximum": _LIMIT_OR_0, "by": _Short("the person's name", 1, MAX_NAME)}
    by: str
    minimum: int = 0
    maximum: int = 0

    def contradiction(self) -> str:
        return "a smallest bet above the largest" if 0 < self.maximum < self.minimum else ""


class TableOpened(_Sign, frozen=True):
    """A person opened the table with these limits."""

    KIND: ClassVar[int] = 0x43


class LimitsChanged(_Sign, frozen=True):
    """A person changed the limits of the table."""

    KIND: ClassVar[int] = 0x44


class TableClosedBy(Record, frozen=True):
    """A person closed the table: it takes no bet until somebody opens it."""

    KIND: ClassVar[int] = 0x45
    FIELDS: ClassVar = {"by": _Short("the person's name", 1, MAX_NAME)}
    by: str


class TableCounted(Record, frozen=True):
    """Two people entered chips or money of the table: one of COUNTS. `reverses` names an entry that it takes back."""

    KIND: ClassVar[int] = 0x46
    FIELDS: ClassVar = {
        "count": OneOf(frozenset(COUNTS)),
        "amount": _LIMIT,
        "entry": _Short("the entry", 32, 32),
        "reverses": _Short("the entry that it takes back", 0, 32),
        "by": _Short("the first person's name", 1, MAX_NAME),
        "second": _Short("the second person's name", 1, MAX_NAME),
    }
    count: int
    amount: int
    entry: str
    by: str
    second: str
    reverses: str = ""


class MachineApproved(Record, frozen=True):
    """A supervisor, `by` name, approves a gaming machine as it is now; `round` is the suspended period."""

    KIND: ClassVar[int] = 0x47
    FIELDS: ClassVar = {
        "by": _Short("the supervisor's name", 1, MAX_NAME),
        "round": _Short("a round's id", 0, MAX_ROUND),
    }
    by: str
    round: str = ""


class DiceCovered(Record, frozen=True):
    """The dome is over the dice: a key, where the shaker does not report it."""

    KIND: ClassVar[int] = 0x40


class DiceUncovered(Record, frozen=True):
    """The dome was lifted: a key, where the shaker does not report it."""

    KIND: ClassVar[int] = 0x41


HAPPENINGS: Final = by_kind(__name__)
