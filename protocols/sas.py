"""IGT SAS 6.x: what a host asks a slot machine, and what the machine answers.

Source: public restatements of the SAS 6.02 text, a public guide of a regulator and four independent public programs,
one of them a vendor's own machine; `tests/foreign/test_sas_vectors.py` names them beside their bytes. Marked "assumed"
below: what rests on one source or on habit alone.

19200 baud, eight bits and a ninth, the wakeup bit, set on the first byte of each message of the host; that bit is the
link's business and not visible here. Three kinds of poll: general (one byte, 80 hex + address; the answer is one byte,
an exception, *without any checksum*), R (address and command, no checksum), S, M and G (with data, with a checksum; M
begins with a game number, G is for everybody, address 0, and unanswered). Answers to R and M: address, command, data,
checksum; to S the bare address (taken) or address + 80 hex (not taken). Address and 00 is busy. Unknown polls are not
answered. In real time mode address, FF, exception, data, checksum may come in place of any answer.

BCD and text come most significant byte first, binary numbers and the checksum (CRC-16/KERMIT) low byte first. Messages
of variable length carry a byte that counts what follows it, without the checksum. Text is read leniently: machines fill
it with NUL, blanks or any byte. An answer with a good checksum is never `Garbage`: where its content is not known here,
or it answers another poll, it is `Unknown`.

What an answer means depends on the question: `HostDecoder.expect` says what was asked. Both decoders take any bytes in
any pieces, never raise, and need `quiet` after a pause (more than the 5 ms a message may pause in itself): single
bytes are judged by the silence after them, and what is out of step is dropped until one.
"""

import binascii
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

__all__ = [
    "BUSY",
    "CANCELLED_CREDITS",
    "DENOMINATIONS",
    "EXCEPTIONS",
    "MAX_FRAME",
    "METERS",
    "METER_CODES",
    "NO_PROGRESSIVE",
    "PRIORITY",
    "REAL_TIME",
    "VALIDATIONS",
    "Ack",
    "Answer",
    "Bill",
    "Body",
    "Busy",
    "Clock",
    "Code",
    "ExtendedMeters",
    "Features",
    "GameInfo",
    "GameList",
    "GameMeter",
    "GameMeters",
    "Garbage",
    "GeneralPoll",
    "Handpay",
    "HandpayReset",
    "Happened",
    "Hopper",
    "HostDecoder",
    "Identity",
    "LongPoll",
    "LoopBreak",
    "MachineDecoder",
    "Meters",
    "Nack",
    "Number",
    "Poll",
    "RealTime",
    "Reply",
    "SelectedMeters",
    "Signature",
    "Ticket",
    "Unknown",
    "Validation",
    "ValidationId",
    "ValidationMeters",
    "ValidationStatus",
    "Win",
    "Wins",
    "broadcast",
    "crc",
    "encode",
    "game_poll",
    "levels_of",
    "meters_poll",
    "names",
]

BUSY, REAL_TIME = 0x00, 0xFF
MAX_FRAME = 260  # address, command, length, 255, checksum
_VARIABLE = -1
_NO_ANSWER = -2  # only broadcasts, or a bare acknowledgement

EXCEPTIONS: dict[int, str] = {
    0x00: "nothing to report",
    0x11: "slot door opened",
    0x12: "slot door closed",
    0x13: "drop door opened",
    0x14: "drop door closed",
    0x15: "card cage opened",
    0x16: "card cage closed",
    0x17: "power applied",
    0x18: "power lost",
    0x19: "cashbox door opened",
    0x1A: "cashbox door closed",
    0x1B: "cashbox removed",
    0x1C: "cashbox installed",
    0x1D: "belly door opened",
    0x1E: "belly door closed",
    0x1F: "no activity, waiting for a player",
    0x20: "general tilt",
    0x21: "coin in tilt",
    0x22: "coin out tilt",
    0x23: "hopper empty",
    0x24: "extra coin paid",
    0x25: "diverter malfunction",
    0x27: "cashbox full",
    0x28: "bill jam",
    0x29: "bill acceptor hardware failure",
    0x2A: "reverse bill detected",
    0x2B: "bill rejected",
    0x2C: "counterfeit bill detected",
    0x2D: "reverse coin in",
    0x2E: "cashbox nearly full",
    0x31: "memory error, data recovered",
    0x32: "memory error, data not recovered",
    0x33: "memory error, bad device",
    0x34: "EEPROM data error",
    0x35: "EEPROM bad device",
    0x36: "program checksum changed",
    0x37: "program checksum bad",
    0x38: "partitioned program checksum changed",
    0x39: "partitioned program checksum bad",
    0x3A: "memory reset by the operator",
    0x3B: "backup battery low",
    0x3C: "options changed by the operator",
    0x3D: "ticket printed",
    0x3E: "handpay validated",
    0x3F: "validation id missing",
    0x40: "reel tilt",
    0x41: "reel 1 tilt",
    0x42: "reel 2 tilt",
    0x43: "reel 3 tilt",
    0x44: "reel 4 tilt",
    0x45: "reel 5 tilt",
    0x46: "reel mechanism disconnected",
    0x47: "bill of 1 accepted",
    0x48: "bill of 5 accepted",
    0x49: "bill of 10 accepted",
    0x4A: "bill of 20 accepted",
    0x4B: "bill of 50 accepted",
    0x4C: "bill of 100 accepted",
    0x4D: "bill of 2 accepted",
    0x4E: "bill of 500 accepted",
    0x4F: "bill accepted",
    0x50: "bill of 200 accepted",
    0x51: "handpay pending",
    0x52: "handpay reset",
    0x53: "no progressive broadcast for 5 s",
    0x54: "progressive win paid",
    0x55: "handpay request cancelled",
    0x56: "progressive level hit",
    0x57: "system validation requested",
    0x60: "printer does not answer",
    0x61: "printer out of paper",
    0x66: "cash out button pressed",
    0x67: "ticket inserted",
    0x68: "ticket transfer complete",
    0x69: "funds transfer complete",
    0x6A: "funds transfer requested by the host",
    0x6B: "funds transfer requested",
    0x6C: "registered for funds transfer",
    0x6D: "registration for funds transfer acknowledged",
    0x6E: "registration for funds transfer cancelled",
    0x6F: "locked for the host",
    0x70: "exception buffer overflowed",
    0x71: "change lamp on",
    0x72: "change lamp off",
    0x74: "printer paper low",
    0x75: "printer switched off",
    0x76: "printer switched on",
    0x77: "printer ribbon to be replaced",
    0x78: "printer carriage jammed",
    0x79: "coin lockout malfunction",
    0x7A: "soft meters reset",
    0x7B: "bill totals reset",
    0x7C: "bonus awarded",
    0x7E: "game started",
    0x7F: "game ended",
    0x80: "hopper full",
    0x81: "hopper low",
    0x82: "attendant menu entered",
    0x83: "attendant menu left",
    0x84: "self test entered",
    0x85: "self test left",
    0x86: "out of service",
    0x87: "player drew cards",
    0x88: "reel stopped",
    0x89: "credit wagered",
    0x8A: "game recall shown",
    0x8B: "card held",
    0x8C: "game selected",
    0x8E: "component list changed",
    0x8F: "authentication complete",
    0x98: "card cage opened while the power was off",
    0x99: "slot door opened while the power was off",
    0x9A: "cashbox door opened while the power was off",
    0x9B: "drop door opened while the power was off",
}
PRIORITY: frozenset[int] = frozenset(
    {0x3D, 0x3E, 0x3F, 0x51, 0x52, 0x55, 0x56, 0x57, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6F, 0x70, 0x8F}
)
"""Told before what is queued, and not queued with it."""

DENOMINATIONS: dict[int, int] = {
    0x01: 1,
    0x02: 5,
    0x03: 10,
    0x04: 25,
    0x05: 50,
    0x06: 100,
    0x07: 500,
    0x08: 1000,
    0x09: 2000,
    0x0A: 10000,
    0x0B: 20,
    0x0C: 200,
    0x0D: 250,
    0x0E: 2500,
    0x0F: 5000,
    0x17: 2,
}
"""Denomination code to minor units for one credit (assumed: one source)."""

METERS: dict[int, tuple[tuple[str, int], ...]] = {
    0x0F: tuple((name, 4) for name in ("cancelled_credits", "coin_in", "coin_out", "drop", "jackpot", "games_played")),
    0x10: (("cancelled_credits", 4),),
    0x11: (("coin_in", 4),),
    0x12: (("coin_out", 4),),
    0x13: (("drop", 4),),
    0x14: (("jackpot", 4),),
    0x15: (("games_played", 4),),
    0x16: (("games_won", 4),),
    0x17: (("games_lost", 4),),
    0x18: (("games_since_power_up", 2), ("games_since_door_closed", 2)),
    0x19: tuple((name, 4) for name in ("coin_in", "coin_out", "drop", "jackpot", "games_played")),
    0x1A: (("credits", 4),),
    0x1C: tuple(
        (name, 4)
        for name in (
            "coin_in",
            "coin_out",
            "drop",
            "jackpot",
            "games_played",
            "games_won",
            "door_opens",
            "power_resets",
        )
    ),
    0x1E: tuple((f"bills_{value}", 4) for value in (1, 5, 10, 20, 50, 100)),
    0x20: (("bills_value", 4),),
    **{
        command: ((f"bills_{value}", 4),)
        for command, value in zip(range(0x31, 0x3B), (1, 2, 5, 10, 20, 50, 100, 500, 1000, 200), strict=True)
    },
    0x2A: (("true_coin_in", 4),),
    0x2B: (("true_coin_out", 4),),
    0x46: (("bills_in_credits", 4),),
}
"""Polls that read meters: their names in order, and the bytes of BCD of each."""

METER_CODES: dict[int, tuple[str, int]] = {
    0x00: ("coin_in", 4),
    0x01: ("coin_out", 4),
    0x02: ("jackpot", 4),
    0x03: ("hand_paid_cancelled_credits", 4),
    0x04: ("cancelled_credits", 4),
    0x05: ("games_played", 4),
    0x06: ("games_won", 4),
    0x07: ("games_lost", 4),
    0x08: ("from_coin_acceptor", 4),
    0x09: ("paid_from_hopper", 4),
    0x0A: ("coins_to_drop", 4),
    0x0B: ("bills_in_credits", 4),
    0x0C: ("credits", 4),
    0x0D: ("tickets_in_cashable", 5),
    0x0E: ("tickets_out_cashable", 5),
    0x0F: ("tickets_in_restricted", 5),
    0x10: ("tickets_out_restricted", 5),
    0x11: ("tickets_in_cashable_count", 4),
    0x12: ("tickets_out_cashable_count", 4),
    0x13: ("tickets_in_restricted_count", 4),
    0x14: ("tickets_out_restricted_count", 4),
    0x15: ("tickets_in", 4),
    0x16: ("tickets_out", 4),
    0x17: ("electronic_in", 4),
    0x18: ("electronic_out", 4),
    0x19: ("restricted_played", 4),
    0x1A: ("nonrestricted_played", 4),
    0x1B: ("restricted_credits", 4),
}
"""Meters of polls 2F and 6F by code: name, and bytes of BCD in 2F. Those of five bytes are in minor units."""

CANCELLED_CREDITS, NO_PROGRESSIVE = 0x80, 0x40
"""Levels of a handpay that is no progressive win."""

VALIDATIONS: dict[int, str] = {
    0x00: "cashable ticket",
    0x01: "restricted ticket",
    0x02: "cashable ticket from a transfer",
    0x03: "restricted ticket from a transfer",
    0x04: "debit ticket from a transfer",
    0x10: "cancelled credits paid by hand, receipt printed",
    0x20: "jackpot paid by hand, receipt printed",
    0x40: "cancelled credits paid by hand, no receipt",
    0x60: "jackpot paid by hand, no receipt",
    0x80: "cashable ticket redeemed",
    0x81: "restricted ticket redeemed",
    0x82: "nonrestricted ticket redeemed",
}
"""Kinds of validation records and their meters (polls 4D and 50)."""


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
    """The loop break indication: a machine that heard no host for 5 s sends its address every 200 ms."""

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
    """A prize to be paid by hand, in minor units. `level` 1 to 32 of a progressive, else one of those named above."""

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
    """`status` 0 is well (assumed); `percent` full, 255 if unknown.

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
    """All progressive wins that wait: (level, minor units)."""

    group: int
    wins: tuple[tuple[int, int], ...]


class HandpayReset(Struct, frozen=True):
    """0: it is reset. 1: not possible now. 2: no handpay waits."""

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
    """The program's signature for the seed that was asked with (assumed: two bytes)."""

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


class _Shape(Struct, frozen=True):
    """`kind` R: no checksum and no data. `ask`, `answer`: bytes of data, `_VARIABLE` with a length byte before them."""

    kind: str
    ask: int
    answer: int


_SHAPES: dict[int, _Shape] = {
    **{command: _Shape("S", 0, _NO_ANSWER) for command in (0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07)},
    0x0E: _Shape("S", 1, _NO_ANSWER),
    **{command: _Shape("R", 0, sum(width for _, width in names)) for command, names in METERS.items()},
    0x1B: _Shape("R", 0, 20),
    0x1F: _Shape("R", 0, 20),
    0x21: _Shape("S", 2, 2),
    0x2D: _Shape("M", 2, 6),
    0x2F: _Shape("M", _VARIABLE, _VARIABLE),
    0x3D: _Shape("R", 0, 9),
    0x48: _Shape("R", 0, 6),
    0x4C: _Shape("S", 6, 6),
    0x4D: _Shape("S", 1, 31),
    0x4F: _Shape("R", 0, _VARIABLE),
    0x50: _Shape("S", 1, 10),
    0x51: _Shape("R", 0, 2),
    0x52: _Shape("M", 2, 18),
    0x53: _Shape("M", 2, 22),
    0x54: _Shape("R", 0, _VARIABLE),
    0x55: _Shape("R", 0, 2),
    0x56: _Shape("R", 0, _VARIABLE),
    0x6F: _Shape("M", _VARIABLE, _VARIABLE),
    0x7B: _Shape("S", _VARIABLE, _VARIABLE),
    0x7E: _Shape("R", 0, 7),
    0x7F: _Shape("S", 7, _NO_ANSWER),
    0x80: _Shape("S", 7, _NO_ANSWER),
    0x83: _Shape("M", 2, 6),
    0x84: _Shape("R", 0, 7),
    0x85: _Shape("R", 0, 7),
    0x86: _Shape("S", _VARIABLE, _NO_ANSWER),
    0x87: _Shape("R", 0, _VARIABLE),
    0x94: _Shape("S", 0, 1),
    0xA0: _Shape("M", 2, 8),
    0xB1: _Shape("R", 0, 1),
    0xB3: _Shape("R", 0, 1),
}

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(data: bytes) -> bytes:
    """CRC-16/KERMIT over `data`, as it is sent. It is the library's CRC with each byte read backwards."""
    mirrored = binascii.crc_hqx(data.translate(_REVERSED), 0)
    return bytes((_REVERSED[mirrored >> 8], _REVERSED[mirrored & 0xFF]))


def _whole(frame: bytes) -> bool:
    return crc(frame[:-2]) == frame[-2:]


def _digits(data: bytes) -> str:
    """Raises ValueError where a digit is none."""
    digits = data.hex()
    if not digits.isdecimal():
        raise ValueError("no BCD")
    return digits


def _from_bcd(data: bytes) -> int:
    """Raises ValueError where a digit is none."""
    return int(_digits(data))


def _to_bcd(value: int, width: int) -> bytes:
    if not 0 <= value < 100**width:
        raise ValueError(f"{value} does not fit into {width} bytes of BCD")
    return bytes.fromhex(f"{value:0{2 * width}d}")


_PRINTABLE = re.compile(rb"[\x20-\x7e]*")
_PADDING = b"\0 \xff"


def _from_text(data: bytes) -> str:
    """Without its padding; unprintable bytes become \\xNN."""
    return "".join(chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}" for byte in data.strip(_PADDING))


def _to_text(text: str, width: int) -> bytes:
    data = text.encode()
    if len(data) > width or _PRINTABLE.fullmatch(data) is None:
        raise ValueError(f"{text!r} is not {width} printable characters")
    return data.ljust(width, b"\0")


def _at(data: bytes) -> str:
    """MMDDYYYY, then HHMMSS."""
    digits = _digits(data)
    return f"{digits[4:8]}-{digits[:2]}-{digits[2:4]}T{digits[8:10]}:{digits[10:12]}:{digits[12:]}"


def _from_at(at: str) -> bytes:
    digits = re.sub("[-T:]", "", at)
    return bytes.fromhex(digits[4:8] + digits[:4] + digits[8:])


def _to_byte(value: int) -> bytes:
    if not 0 <= value <= 0xFF:
        raise ValueError(f"{value} does not fit into a byte")
    return bytes((value,))


# ---- bodies


def _read_body(command: int, data: bytes) -> Body:  # noqa: C901 - a case for each command
    """`data` without its length byte. Raises ValueError."""
    if not _shortest(command) <= len(data) <= _longest(command):
        raise ValueError("no such answer")
    if command in METERS:
        found: dict[str, int] = {}
        at = 0
        for name, width in METERS[command]:
            found[name] = _from_bcd(data[at : at + width])
            at += width
        return Meters(found)
    match command:
        case 0x1B:
            return Handpay(data[0], data[1], _from_bcd(data[2:7]), _from_bcd(data[7:9]), data[9], data[10:])
        case 0x1F:
            return _read_game(data, 0)
        case 0x53:
            return _read_game(data[2:], _from_bcd(data[:2]))
        case 0x21:
            return Signature(int.from_bytes(data, "little"))
        case 0x2D | 0x83:
            return GameMeter(_from_bcd(data[:2]), _from_bcd(data[2:]))
        case 0x2F:
            return SelectedMeters(_from_bcd(data[:2]), _read_selected(data[2:]))
        case 0x6F:
            return ExtendedMeters(_from_bcd(data[:2]), _read_extended(data[2:]))
        case 0x3D:
            return Ticket(_digits(data[:4]), _from_bcd(data[4:]))
        case 0x4C:
            return ValidationId(int.from_bytes(data[:3], "little"), int.from_bytes(data[3:], "little"))
        case 0x4D:
            return _read_validation(data)
        case 0x50:
            return ValidationMeters(data[0], _from_bcd(data[1:5]), _from_bcd(data[5:]))
        case 0x7B if len(data) == 10:
            asset, bits = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:6], "little")
            return ValidationStatus(asset, bits, _from_bcd(data[6:8]), _from_bcd(data[8:]))
        case 0x7E:
            return Clock(_at(data))
        case 0x48:
            return Bill(_from_bcd(data[:1]), _from_bcd(data[1:2]), _from_bcd(data[2:]))
        case 0x4F if len(data) in {2, 6}:
            return Hopper(data[0], data[1], _from_bcd(data[2:]) if data[2:] else None)
        case 0x51 | 0x55:
            return Number(_from_bcd(data))
        case 0x52:
            game, *meters4 = (_from_bcd(part) for part in (data[:2], data[2:6], data[6:10], data[10:14], data[14:]))
            return GameMeters(game, *meters4)
        case 0x54 if 3 <= len(data) <= 43:
            return Identity(_from_text(data[:3]), _from_text(data[3:]))
        case 0x56 if data and len(data) == 1 + 2 * data[0]:
            return GameList(tuple(_from_bcd(data[at : at + 2]) for at in range(1, len(data), 2)))
        case 0x84 | 0x85:
            return Win(data[0], data[1], _from_bcd(data[2:]))
        case 0x87 if len(data) >= 2 and len(data) == 2 + 6 * data[1] and data[1] <= 32:
            wins = tuple((data[at], _from_bcd(data[at + 1 : at + 6])) for at in range(2, len(data), 6))
            return Wins(data[0], wins)
        case 0x94:
            return HandpayReset(data[0])
        case 0xA0:
            return Features(_from_bcd(data[:2]), data[2:])
        case 0xB1 | 0xB3:
            return Code(data[0])
        case _:
            raise ValueError("no such answer")


def _shortest(command: int) -> int:
    """Old machines send fewer flags, and no more of a handpay than what is known of it."""
    return {0x1B: 10, 0xA0: 3}.get(command, max(_SHAPES[command].answer, 0))


def _longest(command: int) -> int:
    answer = _SHAPES[command].answer
    return 0xFF if answer == _VARIABLE else answer


def _read_selected(data: bytes) -> dict[int, int]:
    meters: dict[int, int] = {}
    at = 0
    while at < len(data):
        if (known := METER_CODES.get(data[at])) is None or at + known[1] >= len(data):
            raise ValueError("no such meter")
        meters[data[at]] = _from_bcd(data[at + 1 : at + 1 + known[1]])
        at += 1 + known[1]
    return meters


def _read_extended(data: bytes) -> dict[int, int]:
    meters: dict[int, int] = {}
    at = 0
    while at < len(data):
        if at + 3 > len(data) or at + 3 + data[at + 2] > len(data):
            raise ValueError("cut short")
        code, size = int.from_bytes(data[at : at + 2], "little"), data[at + 2]
        if size:
            meters[code] = _from_bcd(data[at + 3 : at + 3 + size])
        at += 3 + size
    return meters


def _read_validation(data: bytes) -> Validation:
    return Validation(
        data[0],
        data[1],
        _at(data[2:9]),
        _digits(data[9:17]),
        _from_bcd(data[17:22]),
        int.from_bytes(data[22:24], "little"),
        _from_bcd(data[24:25]),
        _digits(data[25:29]),
        int.from_bytes(data[29:], "little"),
    )


def _write_validation(record: Validation) -> bytes:
    return (
        _to_byte(record.kind)
        + _to_byte(record.index)
        + _from_at(record.at)
        + bytes.fromhex(record.number)
        + _to_bcd(record.amount, 5)
        + record.ticket.to_bytes(2, "little")
        + _to_bcd(record.system, 1)
        + bytes.fromhex(record.expires)
        + record.pool.to_bytes(2, "little")
    )


def _read_game(data: bytes, game: int) -> GameInfo:
    return GameInfo(
        _from_text(data[:2]),
        _from_text(data[2:5]),
        data[5],
        data[6],
        data[7],
        int.from_bytes(data[8:10], "little"),
        _from_text(data[10:16]),
        _from_text(data[16:]),
        game,
    )


def _write_game(game: GameInfo) -> bytes:
    if not 0 <= game.options <= 0xFFFF:
        raise ValueError("options are two bytes")
    return (
        _to_text(game.game_id, 2)
        + _to_text(game.additional_id, 3)
        + _to_byte(game.denomination)
        + _to_byte(game.max_bet)
        + _to_byte(game.group)
        + game.options.to_bytes(2, "little")
        + _to_text(game.paytable, 6)
        + _to_text(game.percent, 4)
    )


def _write_body(command: int, body: Body) -> bytes:  # noqa: C901 - a case for each body
    """Without length byte. Raises ValueError."""
    match body:
        case Meters(meters) if command in METERS and set(meters) == {name for name, _ in METERS[command]}:
            return b"".join(_to_bcd(meters[name], width) for name, width in METERS[command])
        case Handpay():
            if len(body.more) != 10:
                raise ValueError("ten bytes end it")
            amount = _to_bcd(body.amount, 5) + _to_bcd(body.partial, 2)
            return _to_byte(body.group) + _to_byte(body.level) + amount + _to_byte(body.reset_id) + body.more
        case GameInfo() if command == 0x1F:
            return _write_game(body)
        case GameInfo():
            return _to_bcd(body.game, 2) + _write_game(body)
        case Signature(value):
            return (value & 0xFFFF).to_bytes(2, "little")
        case GameMeter(game, value):
            return _to_bcd(game, 2) + _to_bcd(value, 4)
        case SelectedMeters(game, chosen):
            if not set(chosen) <= set(METER_CODES):
                raise ValueError("no such meter")
            pairs = (_to_byte(code) + _to_bcd(value, METER_CODES[code][1]) for code, value in chosen.items())
            return _to_bcd(game, 2) + b"".join(pairs)
        case ExtendedMeters(game, chosen):
            sizes = {code: max(4, (len(str(value)) + 1) // 2) for code, value in chosen.items()}
            extended = (code.to_bytes(2, "little") + _to_byte(sizes[code]) for code in chosen)
            values = (_to_bcd(value, sizes[code]) for code, value in chosen.items())
            return _to_bcd(game, 2) + b"".join(head + value for head, value in zip(extended, values, strict=True))
        case Ticket(number, amount):
            return bytes.fromhex(number) + _to_bcd(amount, 5)
        case ValidationId(machine, sequence):
            return machine.to_bytes(3, "little") + sequence.to_bytes(3, "little")
        case Validation():
            return _write_validation(body)
        case ValidationMeters(kind, count, amount):
            return _to_byte(kind) + _to_bcd(count, 4) + _to_bcd(amount, 5)
        case ValidationStatus(asset, bits, cashable, restricted):
            head = asset.to_bytes(4, "little") + bits.to_bytes(2, "little")
            return head + _to_bcd(cashable, 2) + _to_bcd(restricted, 2)
        case Clock(at):
            return _from_at(at)
        case Bill(country, denomination, count):
            return _to_bcd(country, 1) + _to_bcd(denomination, 1) + _to_bcd(count, 4)
        case Hopper(status, percent, level):
            return _to_byte(status) + _to_byte(percent) + (b"" if level is None else _to_bcd(level, 4))
        case Number(value):
            return _to_bcd(value, 2)
        case GameMeters(game, coin_in, coin_out, jackpot, games):
            return _to_bcd(game, 2) + b"".join(_to_bcd(value, 4) for value in (coin_in, coin_out, jackpot, games))
        case Identity(version, serial):
            return _to_text(version, 3) + _to_text(serial, len(serial))
        case GameList(games):
            return _to_byte(len(games)) + b"".join(_to_bcd(game, 2) for game in games)
        case Win(group, level, amount):
            return _to_byte(group) + _to_byte(level) + _to_bcd(amount, 5)
        case Wins(group, wins):
            head = _to_byte(group) + _to_byte(len(wins))
            return head + b"".join(_to_byte(level) + _to_bcd(amount, 5) for level, amount in wins)
        case HandpayReset(code) | Code(code):
            return _to_byte(code)
        case Features(game, flags):
            return _to_bcd(game, 2) + flags
        case _:
            raise ValueError(f"{command:02X} does not carry {body}")


# ---- writing


def _address(value: int, lowest: int = 1) -> int:
    if not lowest <= value <= 127:
        raise ValueError(f"address {value} is not {lowest} to 127")
    return value


def encode(message: Poll | Answer) -> bytes:  # noqa: C901 - a case for each message
    """The bytes of a poll or an answer. Raises ValueError for values that the wire cannot carry."""
    match message:
        case GeneralPoll(address):
            return bytes((0x80 | _address(address, 0),))
        case LongPoll(address, command, data):
            return _encode_poll(_address(address, 0), command, data)
        case Happened(code):
            return _to_byte(code)
        case Ack(address) | LoopBreak(address):
            return bytes((_address(address),))
        case Nack(address):
            return bytes((0x80 | _address(address),))
        case Busy(address):
            return bytes((_address(address), BUSY))
        case RealTime(address, code, data):
            frame = bytes((_address(address), REAL_TIME)) + _to_byte(code) + data
            if len(frame) + 2 > MAX_FRAME:
                raise ValueError("too much data")
            return frame + crc(frame)
        case Reply(address, command, body):
            shape = _SHAPES.get(command)
            if shape is None or shape.answer == _NO_ANSWER:
                raise ValueError(f"poll {command:02X} has no such answer")
            try:
                told = _write_body(command, body)
            except OverflowError as error:
                raise ValueError(f"{command:02X} does not carry {body}") from error
            if shape.answer != _VARIABLE and len(told) != shape.answer:
                raise ValueError(f"{command:02X} does not carry {body}")
            if _read_body(command, told) != body:
                raise ValueError(f"{command:02X} does not carry {body}")
            length = _to_byte(len(told)) if shape.answer == _VARIABLE else b""
            frame = bytes((_address(address), command)) + length + told
            return frame + crc(frame)
        case Unknown(address, command, data):
            frame = bytes((_address(address), command)) + data
            return frame + crc(frame)
        case Garbage(raw):
            return raw


def _encode_poll(address: int, command: int, data: bytes) -> bytes:
    shape = _SHAPES.get(command)
    if shape is None:
        raise ValueError(f"poll {command:02X} is not known here")
    frame = bytes((address, command))
    if shape.ask == _VARIABLE:
        frame += _to_byte(len(data))
    elif len(data) != shape.ask:
        raise ValueError(f"poll {command:02X} carries {shape.ask} bytes, not {len(data)}")
    frame += data
    return frame if shape.kind == "R" else frame + crc(frame)


def game_poll(address: int, command: int, game: int = 0, more: bytes = b"") -> LongPoll:
    """A poll that begins with a game number; 0 is the whole machine."""
    return LongPoll(address, command, _to_bcd(game, 2) + more)


def meters_poll(address: int, command: int, codes: Iterable[int], game: int = 0) -> LongPoll:
    """Poll 2F or 6F for the meters `codes` of a game; 0 is the whole machine. 2F takes ten of them, 6F twelve."""
    width = 1 if command == 0x2F else 2
    return game_poll(address, command, game, b"".join(code.to_bytes(width, "little") for code in codes))


def broadcast(group: int, levels: Mapping[int, int], address: int = 0) -> LongPoll:
    """The amounts of a progressive, level to minor units, for everybody: poll 80 for one, 86 for several.

    Raises ValueError: groups are 1 to 255, levels 1 to 32, amounts ten digits.
    """
    if not 1 <= group <= 255 or not levels or not all(1 <= level <= 32 for level in levels):
        raise ValueError("a group is 1 to 255, a level 1 to 32")
    told = b"".join(_to_byte(level) + _to_bcd(amount, 5) for level, amount in sorted(levels.items()))
    return LongPoll(address, 0x80 if len(levels) == 1 else 0x86, _to_byte(group) + told)


def levels_of(poll: LongPoll) -> tuple[int, dict[int, int]] | None:
    """Group, and level to minor units, of a poll 80 or 86; None for another one or invalid content."""
    data = poll.data
    if poll.command not in {0x80, 0x86} or len(data) < 7 or len(data) % 6 != 1 or not data[0]:
        return None
    try:
        levels = {data[at]: _from_bcd(data[at + 1 : at + 6]) for at in range(1, len(data), 6)}
    except ValueError:
        return None
    return (data[0], levels) if all(1 <= level <= 32 for level in levels) else None


# ---- reading


class HostDecoder:
    """Turns the machine's bytes into answers, for the host that knows what it asked. Holds at most one frame."""

    def __init__(self, address: int) -> None:
        """For the machine at `address`; nothing is asked."""
        self._address = _address(address)
        self._poll: Poll | None = None
        self._held = bytearray()
        self._lost = False
        self._unasked = re.compile(b"(?:%s)+|[^%s]+" % ((re.escape(bytes((address,))),) * 2))

    @property
    def waiting(self) -> bool:
        """An answer has begun: after a pause call `quiet`."""
        return bool(self._held) or self._lost

    def expect(self, poll: Poll) -> None:
        """`poll` is sent now: the next bytes answer it. Held bytes are dropped."""
        self._poll = poll
        self._held.clear()
        self._lost = False

    def feed(self, data: bytes) -> list[Answer]:
        """The answer, if `data` completes it; bytes that are out of step at once."""
        if self._lost:
            return [Garbage(data)] if data else []
        if self._poll is None:
            return self._nobody_asked(data)
        self._held += data
        size = self._needed()
        if size is not None and len(self._held) >= size:
            frame, rest = bytes(self._held[:size]), bytes(self._held[size:])
            if size and (answer := self._reply(frame)) is not None:
                self._held.clear()
                self._poll = None
                return [answer, *self.feed(rest)]
        if self._hopeless():
            held = bytes(self._held)
            self._held.clear()
            self._lost = True
            return [Garbage(held)]
        return []

    def quiet(self) -> list[Answer]:
        """The line paused: the held bytes are complete."""
        held, poll, lost = bytes(self._held), self._poll, self._lost
        self._held.clear()
        self._lost = False
        if lost:
            self._poll = None
            return []
        if not held:
            return []
        self._poll = None
        match poll, held:
            case GeneralPoll(), bytes() if len(held) == 1:
                return [Happened(held[0])]
            case LongPoll(command=command), bytes():
                shape = _SHAPES.get(command)
                if held == bytes((self._address,)) and shape is not None and shape.answer == _NO_ANSWER:
                    return [Ack(self._address)]
                if held == bytes((0x80 | self._address,)):
                    return [Nack(self._address)]
                if held[:2] == bytes((self._address, BUSY)) and len(held) == 2:
                    return [Busy(self._address)]
        return [self._checked(poll, held) or Garbage(held)]

    def _checked(self, poll: Poll | None, held: bytes) -> Answer | None:
        """An answer that its checksum shows to be complete, whatever its length."""
        if held[0] != self._address or len(held) < 5 or not _whole(held):
            return None
        if held[1] == REAL_TIME:
            return RealTime(self._address, held[2], held[3:-2])
        return self._body(held) if isinstance(poll, LongPoll) and poll.command == held[1] else self._unknown(held)

    def _unknown(self, frame: bytes) -> Answer:
        return Unknown(self._address, frame[1], frame[2:-2])

    def _body(self, frame: bytes) -> Answer:
        """The content of a whole frame that answers what was asked."""
        command = frame[1]
        shape = _SHAPES.get(command)
        if shape is None or shape.answer == _NO_ANSWER:
            return self._unknown(frame)
        variable = shape.answer == _VARIABLE
        if variable and frame[2] != len(frame) - 5:
            return self._unknown(frame)
        try:
            return Reply(self._address, command, _read_body(command, frame[3 if variable else 2 : -2]))
        except ValueError:
            return self._unknown(frame)

    def _nobody_asked(self, data: bytes) -> list[Answer]:
        chirp, messages = LoopBreak(self._address), list[Answer]()
        for found in self._unasked.finditer(data):
            piece = found[0]
            messages += [chirp] * len(piece) if piece[0] == self._address else [Garbage(piece)]
        return messages

    def _needed(self) -> int | None:
        """How long the answer to a long poll should be; None where that cannot be said (yet)."""
        held = self._held
        if not isinstance(self._poll, LongPoll) or len(held) < 3 or held[1] != self._poll.command:
            return None
        shape = _SHAPES.get(self._poll.command)
        if shape is None or shape.answer == _NO_ANSWER:
            return None
        return 5 + held[2] if shape.answer == _VARIABLE else shape.answer + 4

    def _hopeless(self) -> bool:
        """No pause can make an answer of the held bytes."""
        held = self._held
        if len(held) == 1:
            return isinstance(self._poll, LongPoll) and held[0] & 0x7F != self._address
        return len(held) > MAX_FRAME or (len(held) > 1 and held[0] != self._address)

    def _reply(self, frame: bytes) -> Answer | None:
        """The answer, where `frame` is whole and as long as it should be."""
        return self._body(frame) if frame[0] == self._address and _whole(frame) else None


_GENERAL = [GeneralPoll(address) for address in range(128)] * 2
_GENERAL_RUN = re.compile(rb"[\x80-\xff]+")
_R_POLLS = {
    bytes((address, command)): LongPoll(address, command)
    for address in range(128)
    for command, shape in _SHAPES.items()
    if shape.kind == "R"
}


class MachineDecoder:
    """Turns the host's bytes into polls, for all addresses on the line. Holds at most one frame.

    The wakeup bit is invisible here: after an unknown or damaged poll everything is dropped until `quiet`.
    """

    def __init__(self) -> None:
        """In step."""
        self._held = b""
        self._lost = False

    @property
    def waiting(self) -> bool:
        """A poll has begun, or it is out of step: after a pause call `quiet`."""
        return bool(self._held) or self._lost

    def feed(self, data: bytes) -> list[Poll | Garbage]:
        """The polls completed by `data`."""
        if self._lost:
            return [Garbage(data)] if data else []
        data = self._held + data
        self._held = b""
        messages: list[Poll | Garbage] = []
        at, end = 0, len(data)
        while at < end:
            if (general := _GENERAL_RUN.match(data, at)) is not None:
                messages.extend(map(_GENERAL.__getitem__, general[0]))
                at = general.end()
                continue
            if (known := _R_POLLS.get(data[at : at + 2])) is not None:
                messages.append(known)
                at += 2
                continue
            size = self._size(data, at, end)
            if size > end - at:
                self._held = data[at:]
                break
            frame = data[at : at + size]
            if not size or not _whole(frame):
                self._lost = True
                messages.append(Garbage(data[at:]))
                break
            start = 3 if _SHAPES[frame[1]].ask == _VARIABLE else 2
            messages.append(LongPoll(frame[0], frame[1], frame[start:-2]))
            at += size
        return messages

    def _size(self, data: bytes, at: int, end: int) -> int:
        """Of the poll with a checksum at `at`: more than there is while it is not known, 0 where it is none."""
        if end - at < 2:
            return 2
        shape = _SHAPES.get(data[at + 1])
        if shape is None:
            return 0
        if shape.ask != _VARIABLE:
            return shape.ask + 4
        return 5 + data[at + 2] if end - at > 2 else 3

    def quiet(self) -> list[Poll | Garbage]:
        """A pause: the next byte begins a message."""
        held, self._held, self._lost = self._held, b"", False
        return [Garbage(held)] if held else []


def names(codes: Iterable[int]) -> str:
    """Exception codes in words, for a fault's text."""
    return ", ".join(f"{code:02X} {EXCEPTIONS.get(code, 'unknown')}" for code in codes)
