"""The bodies of answers to long polls, read and written."""

from protocols.sas.messages import (
    Bill,
    Body,
    Clock,
    Code,
    ExtendedMeters,
    Features,
    GameInfo,
    GameList,
    GameMeter,
    GameMeters,
    Handpay,
    HandpayReset,
    Hopper,
    Identity,
    Meters,
    Number,
    SelectedMeters,
    Signature,
    Ticket,
    Validation,
    ValidationId,
    ValidationMeters,
    ValidationStatus,
    Win,
    Wins,
)
from protocols.sas.tables import METER_CODES, METERS, SHAPES, VARIABLE
from protocols.sas.values import bcd_digits, from_at, from_bcd, from_text, to_at, to_bcd, to_byte, to_text


def read_body(command: int, data: bytes) -> Body:  # noqa: C901 - a case for each command
    """`data` without its length byte. Raises ValueError."""
    if not _shortest(command) <= len(data) <= _longest(command):
        raise ValueError("no such answer")
    if command in METERS:
        return _read_meters(command, data)
    match command:
        case 0x1B:
            return Handpay(data[0], data[1], from_bcd(data[2:7]), from_bcd(data[7:9]), data[9], data[10:])
        case 0x1F:
            return _read_game(data, 0)
        case 0x53:
            return _read_game(data[2:], from_bcd(data[:2]))
        case 0x21:
            return Signature(int.from_bytes(data, "little"))
        case 0x2D | 0x83:
            return GameMeter(from_bcd(data[:2]), from_bcd(data[2:]))
        case 0x2F:
            return SelectedMeters(from_bcd(data[:2]), _read_selected(data[2:]))
        case 0x6F | 0xAF:
            return ExtendedMeters(from_bcd(data[:2]), _read_extended(data[2:]))
        case 0x3D:
            return Ticket(bcd_digits(data[:4]), from_bcd(data[4:]))
        case 0x4C:
            return ValidationId(int.from_bytes(data[:3], "little"), int.from_bytes(data[3:], "little"))
        case 0x4D:
            return _read_validation(data)
        case 0x50:
            return ValidationMeters(data[0], from_bcd(data[1:5]), from_bcd(data[5:]))
        case 0x7B if len(data) == 10:
            asset, bits = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:6], "little")
            return ValidationStatus(asset, bits, from_bcd(data[6:8]), from_bcd(data[8:]))
        case 0x7E:
            return Clock(to_at(data))
        case 0x48:
            return Bill(from_bcd(data[:1]), from_bcd(data[1:2]), from_bcd(data[2:]))
        case 0x4F if len(data) in {2, 6}:
            return Hopper(data[0], data[1], from_bcd(data[2:]) if data[2:] else None)
        case 0x51 | 0x55:
            return Number(from_bcd(data))
        case 0x52:
            game, *meters4 = (from_bcd(part) for part in (data[:2], data[2:6], data[6:10], data[10:14], data[14:]))
            return GameMeters(game, *meters4)
        case 0x54 if 3 <= len(data) <= 43:
            return Identity(from_text(data[:3]), from_text(data[3:]))
        case 0x56 if data and len(data) == 1 + 2 * data[0]:
            return GameList(tuple(from_bcd(data[at : at + 2]) for at in range(1, len(data), 2)))
        case 0x84 | 0x85:
            return Win(data[0], data[1], from_bcd(data[2:]))
        case 0x87 if len(data) >= 2 and len(data) == 2 + 6 * data[1] and data[1] <= 32:
            wins = tuple((data[at], from_bcd(data[at + 1 : at + 6])) for at in range(2, len(data), 6))
            return Wins(data[0], wins)
        case 0x94:
            return HandpayReset(data[0])
        case 0xA0:
            return Features(from_bcd(data[:2]), data[2:])
        case 0xB1 | 0xB3:
            return Code(data[0])
        case _:
            raise ValueError("no such answer")


def _shortest(command: int) -> int:
    """Old machines send fewer flags, and a handpay without its last ten bytes."""
    return {0x1B: 10, 0xA0: 3}.get(command, max(SHAPES[command].answer, 0))


def _longest(command: int) -> int:
    answer = SHAPES[command].answer
    return 0xFF if answer == VARIABLE else answer


def _read_meters(command: int, data: bytes) -> Meters:
    found: dict[str, int] = {}
    at = 0
    for name, width in METERS[command]:
        found[name] = from_bcd(data[at : at + width])
        at += width
    return Meters(found)


def _read_selected(data: bytes) -> dict[int, int]:
    meters: dict[int, int] = {}
    at = 0
    while at < len(data):
        if (known := METER_CODES.get(data[at])) is None or at + known[1] >= len(data):
            raise ValueError("no such meter")
        meters[data[at]] = from_bcd(data[at + 1 : at + 1 + known[1]])
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
            meters[code] = from_bcd(data[at + 3 : at + 3 + size])
        at += 3 + size
    return meters


def _read_validation(data: bytes) -> Validation:
    return Validation(
        data[0],
        data[1],
        to_at(data[2:9]),
        bcd_digits(data[9:17]),
        from_bcd(data[17:22]),
        int.from_bytes(data[22:24], "little"),
        from_bcd(data[24:25]),
        bcd_digits(data[25:29]),
        int.from_bytes(data[29:], "little"),
    )


def _write_validation(record: Validation) -> bytes:
    return (
        to_byte(record.kind)
        + to_byte(record.index)
        + from_at(record.at)
        + bytes.fromhex(record.number)
        + to_bcd(record.amount, 5)
        + record.ticket.to_bytes(2, "little")
        + to_bcd(record.system, 1)
        + bytes.fromhex(record.expires)
        + record.pool.to_bytes(2, "little")
    )


def _read_game(data: bytes, game: int) -> GameInfo:
    return GameInfo(
        from_text(data[:2]),
        from_text(data[2:5]),
        data[5],
        data[6],
        data[7],
        int.from_bytes(data[8:10], "little"),
        from_text(data[10:16]),
        from_text(data[16:]),
        game,
    )


def _write_game(game: GameInfo) -> bytes:
    if not 0 <= game.options <= 0xFFFF:
        raise ValueError("options are two bytes")
    return (
        to_text(game.game_id, 2)
        + to_text(game.additional_id, 3)
        + to_byte(game.denomination)
        + to_byte(game.max_bet)
        + to_byte(game.group)
        + game.options.to_bytes(2, "little")
        + to_text(game.paytable, 6)
        + to_text(game.percent, 4)
    )


def _write_handpay(handpay: Handpay) -> bytes:
    if len(handpay.more) != 10:
        raise ValueError("`more` of a handpay has ten bytes")
    amount = to_bcd(handpay.amount, 5) + to_bcd(handpay.partial, 2)
    return to_byte(handpay.group) + to_byte(handpay.level) + amount + to_byte(handpay.reset_id) + handpay.more


def _write_extended(code: int, value: int) -> bytes:
    size = max(4, (len(str(value)) + 1) // 2)
    return code.to_bytes(2, "little") + to_byte(size) + to_bcd(value, size)


def write_body(command: int, body: Body) -> bytes:  # noqa: C901 - a case for each body
    """The body without its length byte. Raises ValueError."""
    match body:
        case Meters(meters) if command in METERS and set(meters) == {name for name, _ in METERS[command]}:
            return b"".join(to_bcd(meters[name], width) for name, width in METERS[command])
        case Handpay():
            return _write_handpay(body)
        case GameInfo() if command == 0x1F:
            return _write_game(body)
        case GameInfo():
            return to_bcd(body.game, 2) + _write_game(body)
        case Signature(value):
            return (value & 0xFFFF).to_bytes(2, "little")
        case GameMeter(game, value):
            return to_bcd(game, 2) + to_bcd(value, 4)
        case SelectedMeters(game, chosen):
            if not set(chosen) <= set(METER_CODES):
                raise ValueError("no such meter")
            pairs = (to_byte(code) + to_bcd(value, METER_CODES[code][1]) for code, value in chosen.items())
            return to_bcd(game, 2) + b"".join(pairs)
        case ExtendedMeters(game, chosen):
            return to_bcd(game, 2) + b"".join(_write_extended(code, value) for code, value in chosen.items())
        case Ticket(number, amount):
            return bytes.fromhex(number) + to_bcd(amount, 5)
        case ValidationId(machine, sequence):
            return machine.to_bytes(3, "little") + sequence.to_bytes(3, "little")
        case Validation():
            return _write_validation(body)
        case ValidationMeters(kind, count, amount):
            return to_byte(kind) + to_bcd(count, 4) + to_bcd(amount, 5)
        case ValidationStatus(asset, bits, cashable, restricted):
            head = asset.to_bytes(4, "little") + bits.to_bytes(2, "little")
            return head + to_bcd(cashable, 2) + to_bcd(restricted, 2)
        case Clock(at):
            return from_at(at)
        case Bill(country, denomination, count):
            return to_bcd(country, 1) + to_bcd(denomination, 1) + to_bcd(count, 4)
        case Hopper(status, percent, level):
            return to_byte(status) + to_byte(percent) + (b"" if level is None else to_bcd(level, 4))
        case Number(value):
            return to_bcd(value, 2)
        case GameMeters(game, coin_in, coin_out, jackpot, games):
            return to_bcd(game, 2) + b"".join(to_bcd(value, 4) for value in (coin_in, coin_out, jackpot, games))
        case Identity(version, serial):
            return to_text(version, 3) + to_text(serial, len(serial))
        case GameList(games):
            return to_byte(len(games)) + b"".join(to_bcd(game, 2) for game in games)
        case Win(group, level, amount):
            return to_byte(group) + to_byte(level) + to_bcd(amount, 5)
        case Wins(group, wins):
            head = to_byte(group) + to_byte(len(wins))
            return head + b"".join(to_byte(level) + to_bcd(amount, 5) for level, amount in wins)
        case HandpayReset(code) | Code(code):
            return to_byte(code)
        case Features(game, flags):
            return to_bcd(game, 2) + flags
        case _:
            raise ValueError(f"{command:02X} does not carry {body}")
