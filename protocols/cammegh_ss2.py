"""Cammegh SS2 (Slingshot 2, Mercury) wheel controller: its lines, both ways.

Source: the vendor's integrator information for the SS2 series (firmware 1.20 to 2.52) and captures of a real wheel.
9600 8N1. A packet starts with `*` and ends with CR and/or LF; the one exception is the bare winning number, two
characters, which some firmware sends without any end. Lines carry no checksum: whoever reads them must ask for a second
witness. Any bytes in, never an exception; garbage is a value.
"""

import re
from enum import IntEnum, IntFlag
from typing import TypeAlias

from msgspec import Struct

MAX_LINE = 80
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


class Status(Struct, frozen=True):
    """`*X;state;spin;number;flags;speed;direction`. `spin` 1-256 since power-on; `number` "" before the first one.

    `speed` is rotor rpm times 10; `clockwise` the rotor's direction.
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
    """Any other packet: a command (`P`, "1"), a reply (`P`, "OK") or one this version does not know."""

    letter: str
    text: str
    raw: bytes = b""


class Garbage(Struct, frozen=True):
    """Bytes that are no line of this protocol."""

    raw: bytes


Message: TypeAlias = Status | Number | Packet | Garbage

# Some firmware prints ":" after *X. Number: two characters, right-justified; more zeros on wheels that have them.
_STATUS = re.compile(rb"\*X[;:]([1-7]);(\d{3});(  | \d|\d\d|0{3,4});([0-9A-Fa-f]);(\d{3});([01])")
_NUMBER = re.compile(rb"[ 0-3]\d|0{3,4}")
_PACKET = re.compile(rb"\*([A-Za-z])[ ;:]?([\x20-\x7e]*)")


class Decoder:
    """Bytes, split and merged in any way, to messages."""

    def __init__(self) -> None:
        """Hold at most MAX_LINE bytes of an unfinished line."""
        self._buffer = bytearray()

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
        return messages

    def _finish(self, messages: list[Message]) -> None:
        if self._buffer:
            messages.append(_parse(bytes(self._buffer)))
            self._buffer.clear()


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
    if _NUMBER.fullmatch(line):
        return Number(line.decode().strip(), line)
    if line[:2] not in (b"*X", b"*") and (packet := _PACKET.fullmatch(line)):
        return Packet(packet[1].decode(), packet[2].decode(), line)
    return Garbage(line)


def encode(message: Status | Number | Packet) -> bytes:
    """The line with its CR LF. Raises ValueError for a value that the line cannot carry."""
    match message:
        case Status():
            if not (0 <= message.spin <= 256 and 0 <= message.speed <= 999 and len(message.number) <= 4):
                raise ValueError(f"no status line can carry {message}")
            text = (
                f"*X;{message.state:d};{message.spin:03d};{message.number:>2};{message.flags:X};"
                f"{message.speed:03d};{0 if message.clockwise else 1}"
            )
        case Number():
            text = f"{message.number:>2}"
        case Packet():
            text = f"*{message.letter} {message.text}" if message.text else f"*{message.letter}"
    return text.encode("ascii") + CR_LF


POLL = encode(Packet("X", ""))
RESTART = encode(Packet("R", ""))
ASK_MANUFACTURER = encode(Packet("K", ""))
ASK_FIRMWARE = encode(Packet("S", ""))
