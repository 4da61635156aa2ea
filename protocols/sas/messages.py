"""The messages of host and machine: polls, answers, and the bodies of answers."""

from typing import TypeAlias

from msgspec import Struct

# ---- messages of a host


class GeneralPoll(Struct, frozen=True):
    """Asks for an exception. Address 0 is unused: it only acknowledges the answer of the machine polled last."""

    address: int


class LongPoll(Struct, frozen=True):
    """`command` with its `data`, without the length byte of a variable one. Address 0 is a broadcast."""

    address: int
    command: int
    data: bytes = b""


# ---- messages of a machine


class Happened(Struct, frozen=True):
    """The answer to a general poll: an exception code, 00 for nothing. No checksum protects it."""

    code: int


class Ack(Struct, frozen=True):
    """The poll was accepted."""

    address: int


class Nack(Struct, frozen=True):
    """The poll was not accepted."""

    address: int


class Busy(Struct, frozen=True):
    """Ask again later."""

    address: int


class LoopBreak(Struct, frozen=True):
    """The loop break indication: a machine that received no poll for 5 s sends its address every 200 ms."""

    address: int


class RealTime(Struct, frozen=True):
    """An exception in place of an answer: the poll was not accepted."""

    address: int
    code: int
    data: bytes = b""


class Meters(Struct, frozen=True):
    """Meters by name, as `METERS` has them."""

    meters: dict[str, int]


class GameMeter(Struct, frozen=True):
    """One meter of a game (0: the machine): 2D hand-paid cancelled credits, 83 cumulative progressive wins.

    Four bytes of BCD (assumed).
    """

    game: int
    value: int


class GameMeters(Struct, frozen=True):
    """Credits, and games played, of game number `game`."""

    game: int
    coin_in: int
    coin_out: int
    jackpot: int
    games_played: int


class SelectedMeters(Struct, frozen=True):
    """Meters by code, of `METER_CODES`."""

    game: int
    meters: dict[int, int]


class ExtendedMeters(Struct, frozen=True):
    """Meters by code, each with its own size; one of no bytes is not kept by the machine and left out."""

    game: int
    meters: dict[int, int]


class Handpay(Struct, frozen=True):
    """A prize to be paid by hand, in minor units.

    `level`: 1 to 32 of a progressive, else CANCELLED_CREDITS or NO_PROGRESSIVE of `tables.py`.
    """

    group: int
    level: int
    amount: int
    partial: int = 0
    reset_id: int = 0
    more: bytes = bytes(10)


class GameInfo(Struct, frozen=True):
    """What is played: `denomination` is a code of `DENOMINATIONS`, `percent` the base percentage as text.

    `options` are bits that each manufacturer defines.
    """

    game_id: str
    additional_id: str
    denomination: int
    max_bet: int
    group: int
    options: int
    paytable: str
    percent: str
    game: int = 0


class Bill(Struct, frozen=True):
    """The last bill: codes of country and value, and how many of it were taken."""

    country: int
    denomination: int
    count: int


class Hopper(Struct, frozen=True):
    """`status` 0: no fault (assumed); `percent` full, 255 if unknown.

    `level` in coins; None if the machine does not report it (assumed: the length byte allows it).
    """

    status: int
    percent: int
    level: int | None


class Number(Struct, frozen=True):
    """A number of two bytes: 51 how many games there are, 55 the selected one."""

    value: int


class GameList(Struct, frozen=True):
    """The games that are enabled."""

    games: tuple[int, ...]


class Identity(Struct, frozen=True):
    """`version` of SAS, `602` is 6.02; the machine's serial number."""

    version: str
    serial: str


class Win(Struct, frozen=True):
    """A progressive win, minor units; all zero: none."""

    group: int
    level: int
    amount: int


class Wins(Struct, frozen=True):
    """All pending progressive wins: (level, minor units)."""

    group: int
    wins: tuple[tuple[int, int], ...]


class HandpayReset(Struct, frozen=True):
    """0: it is reset. 1: not possible now. 2: no handpay is pending."""

    code: int


class Features(Struct, frozen=True):
    """Six bytes of flags of a game, the last two reserved; an old machine may send fewer."""

    game: int
    flags: bytes

    @property
    def validation(self) -> str:
        """How its tickets get their numbers: `standard` and `secure` from itself, `system` from a host."""
        return ("standard", "system", "secure", "reserved")[self.flags[0] >> 5 & 3]

    @property
    def redemption(self) -> bool:
        """Whether it takes tickets, which a host must approve."""
        return bool(self.flags[0] & 0x80)


class Ticket(Struct, frozen=True):
    """The last cash-out ticket of a machine with standard validation, in minor units."""

    number: str
    amount: int


class ValidationId(Struct, frozen=True):
    """What the numbers of a machine with secure validation are made from. `machine` 0: none was set."""

    machine: int
    sequence: int


class Validation(Struct, frozen=True):
    """A record of a ticket or handpay. `index` 0: there is none.

    `kind` of `VALIDATIONS`; `amount` in minor units; `ticket` FFFF hex where none was printed; `system` 0 where the
    machine made the number; `expires` a date or a number of days, as its eight digits.
    """

    kind: int
    index: int
    at: str
    number: str
    amount: int
    ticket: int
    system: int
    expires: str
    pool: int


class ValidationMeters(Struct, frozen=True):
    """How many validations of a kind there were, and their sum in minor units."""

    kind: int
    count: int
    amount: int


class ValidationStatus(Struct, frozen=True):
    """`bits` of what is enabled; expirations in days, 9999 never."""

    asset: int
    bits: int
    cashable_days: int
    restricted_days: int


class Clock(Struct, frozen=True):
    """Date and time of the machine, as YYYY-MM-DDTHH:MM:SS; it may be no date that exists."""

    at: str


class Code(Struct, frozen=True):
    """One binary byte: B1 the denomination now, B3 the token's."""

    value: int


class Signature(Struct, frozen=True):
    """The program's signature for the seed in the poll (assumed: two bytes)."""

    value: int


Body: TypeAlias = (
    Meters
    | GameMeter
    | GameMeters
    | SelectedMeters
    | ExtendedMeters
    | Handpay
    | GameInfo
    | Bill
    | Hopper
    | Number
    | GameList
    | Identity
    | Win
    | Wins
    | HandpayReset
    | Features
    | Code
    | Signature
    | Ticket
    | ValidationId
    | Validation
    | ValidationMeters
    | ValidationStatus
    | Clock
)


class Reply(Struct, frozen=True):
    """A checked answer to a long poll."""

    address: int
    command: int
    body: Body


class Unknown(Struct, frozen=True):
    """An answer with a good checksum and unknown content, or to another poll."""

    address: int
    command: int
    data: bytes


class Garbage(Struct, frozen=True):
    """Bytes out of step, incomplete, or with a wrong checksum."""

    raw: bytes


Poll: TypeAlias = GeneralPoll | LongPoll
Answer: TypeAlias = Happened | Ack | Nack | Busy | LoopBreak | RealTime | Reply | Unknown | Garbage
