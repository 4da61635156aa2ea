"""Cammegh SS2 (Slingshot 2, Mercury) wheel controller: its lines, both ways.

Source: the vendor's integrator information for the SS2 series (firmware 1.20 to 2.52) and captures of a real wheel.
9600 8N1. A packet starts with `*` and ends with CR and/or LF; the one exception is the bare winning number, two
characters, which some firmware sends without any end. Lines carry no checksum, so a second line must confirm a result.
Accepts any bytes without an exception; garbage is a value. No document that we know gives the number of lines of a
statistics table, the meaning of the parameters' letters except `H`, or the answer to `*T f`: this is marked where it is
used.
"""

import re
from enum import IntEnum, IntFlag
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

MAX_LINE = 200  # longer than any known line; the layout of the tables of `*w`, `*W` and `*M` is undocumented
CR_LF = b"\r\n"


class State(IntEnum):
    """`<state>` of the status line."""

    STARTED = 1
    PLACE_BETS = 2
    BALL_IN_RIM = 3
    NO_MORE_BETS = 4
    WINNING_NUMBER = 5
    TABLE_CLOSED = 6
    NO_BALL = 7


class Flag(IntFlag):
    """`<flags>` of the status line, a sum."""

    BALL_NOT_DETECTED = 1
    BALL_WITH_ROTOR = 2
    SENSOR_OR_MOTOR = 4
    LAUNCH_FAILED = 8


class Mode(IntFlag):
    """`*o`, the operating mode, a sum. Unknown bits are kept."""

    REVERSE_EACH_GAME = 1
    WAIT_FOR_START = 2
    VARY_SPEED = 4
    NO_NUMBER_LINE = 16
    AUTOMATIC_STATUS = 128
    SELF_TEST_IN_PLAY = 256
    STARTED_AFTER_NUMBER = 1024
    DRAGON = 4096
    DRAGON_TOO = 8192
    BONUS = 32768


# `*F <code>`: what the self-test found.
SELF_TEST = {
    1: "hardware fault",
    2: "no ball",
    3: "the ball is not found in its position",
    4: "the ball runs in the wrong direction",
    5: "motor fault",
    6: "encoder fault",
    7: "cannot play clockwise",
    8: "cannot play anticlockwise",
    11: "sensor 1 stuck on",
    12: "sensor 2 stuck on",
    13: "sensor 3 stuck on",
    21: "sensor 1 detects nothing",
    22: "sensor 2 detects nothing",
    23: "sensor 3 detects nothing",
    100: "the self-test timed out",
}

# `*T <letter>`: the capital reads, the small letter sets. The meanings come from a list in the order of the letters;
# only the answer to `H`, games per hour, was ever captured.
PARAMETERS = {
    "games_per_hour": "H",
    "no_more_bets_time": "N",
    "speed_range": "S",
    "jet_time": "R",
    "deceleration": "T",
    "speed_variation": "M",
    "pockets": "Z",
    "extra_modes": "G",
}

LICENCE_EXPIRED = "999"  # the days of a bonus line's licence


class Status(Struct, frozen=True):
    """`*X;state;spin;number;flags;speed;direction`.

    `spin` counts 1-256 since power-on and goes on after state 5 (captured: state 1 shows the spin to come); `number` ""
    before the first one; `speed` rotor rpm times 10; `clockwise` the rotor's direction.
    """

    state: State
    spin: int
    number: str
    flags: Flag
    speed: int
    clockwise: bool
    raw: bytes = b""


class Number(Struct, frozen=True):
    """The bare winning number, sent just before the first state-5 line."""

    number: str
    raw: bytes = b""


class Packet(Struct, frozen=True):
    """Any other packet: a command (`P`, "1"), a reply (`P`, "OK") or an unknown one."""

    letter: str
    text: str
    raw: bytes = b""


class Garbage(Struct, frozen=True):
    """Bytes that are no line of this protocol."""

    raw: bytes


Message: TypeAlias = Status | Number | Packet | Garbage

# Two characters, right-justified; more zeros on wheels that have them. Any other text was damaged on its way.
_POCKET = rb" [0-9]|[12][0-9]|3[0-6]|0{2,4}"
_SPIN = rb"[01][0-9]{2}|2[0-4][0-9]|25[0-6]"
# Some firmware prints ":" after *X.
_STATUS = re.compile(rb"\*X[;:]([1-7]);(" + _SPIN + rb");(  |" + _POCKET + rb");([0-9A-Fa-f]);([0-9]{3});([01])")
_NUMBER = re.compile(_POCKET)
# A line that begins with *X is a status line or, without fields, the request for one. A damaged one is no packet.
_PACKET = re.compile(rb"\*(?:([A-WYZa-z])[ ;:]?([\x20-\x29\x2b-\x7e]*)|X)")


class Decoder:
    """Turns bytes in any pieces into messages."""

    def __init__(self) -> None:
        """Hold at most MAX_LINE bytes of an unfinished line."""
        self._buffer = bytearray()
        self._overlong = False

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`."""
        messages: list[Message] = []
        for byte in data:
            if byte in CR_LF:
                self._finish(messages)
            else:
                if byte == 0x2A:  # "*" begins a packet even where the number before it had no end
                    self._finish(messages)
                self._buffer.append(byte)
                if len(self._buffer) > MAX_LINE:
                    messages.append(Garbage(bytes(self._buffer)))
                    self._buffer.clear()
                    self._overlong = True
        return messages

    def _finish(self, messages: list[Message]) -> None:
        if self._buffer:
            line = bytes(self._buffer)
            messages.append(Garbage(line) if self._overlong else _parse(line))
            self._buffer.clear()
        self._overlong = False  # the end of an overlong line is no line


def _parse(line: bytes) -> Message:
    if found := _STATUS.fullmatch(line):
        state, spin, number, flags, speed, direction = found.groups()
        return Status(
            State(int(state)),
            int(spin),
            number.decode().strip(),
            Flag(int(flags, 16)),
            int(speed),
            direction == b"0",
            line,
        )
    if line == b"*":
        return Garbage(line)
    if _NUMBER.fullmatch(line):
        return Number(line.decode().strip(), line)
    if packet := _PACKET.fullmatch(line):
        return Packet((packet[1] or b"X").decode(), (packet[2] or b"").decode(), line)
    return Garbage(line)


def encode(message: Status | Number | Packet) -> bytes:
    """The line with its CR LF. Raises ValueError for values that a line cannot carry."""
    match message:
        case Status():
            text = (
                f"*X;{message.state:d};{message.spin:03d};{message.number:>2};{message.flags:X};"
                f"{message.speed:03d};{0 if message.clockwise else 1}"
            )
        case Number():
            text = f"{message.number:>2}"
        case Packet():
            separator = ";" if message.letter == "Y" else " "
            text = f"*{message.letter}{separator}{message.text}" if message.text else f"*{message.letter}"
    line = text.encode("ascii")
    if len(line) > MAX_LINE or _parse(line) != replace(message, raw=line):
        raise ValueError(f"no line can carry {message}")
    return line + CR_LF


POLL = encode(Packet("X", ""))
RESTART = encode(Packet("R", ""))
SWITCH_ON = encode(Packet("P", "1"))
ASK_MANUFACTURER = encode(Packet("K", ""))
ASK_FIRMWARE = encode(Packet("S", ""))
