"""TCS John Huxley Saturn roulette wheel: the host's polls and the wheel's answers.

Source: public code that polls and fires real Saturn wheels, in two independent programs; its four working frames
recomputed. RS-485, half duplex, 9600 8N1 (newer units USB-CDC at 115200); the host asks every 200 ms, the wheel only
answers. A frame is SOH, two digits, STX, text, ETX, one checksum character, EOT. The checksum is the sum of all bytes
from SOH to ETX, its lower six bits plus 0x40: one wrong frame in 64 passes, so a driver needs two equal ones.

Known of the answers: that of SR2 has at least 49 characters, and character 48 (SOH is character 0) is "1" while an
error is pending; that of SR3 has the error in characters 5 to 11. ASSUMED, and nowhere public: answers are framed like
the questions, and the positions of all other fields in the SR2 answer. These are the `Layout`: its defaults are ours,
so that both ends can be tested; those of a real wheel are found by recording it.

Accepts any bytes without an exception; garbage is a value.
"""

import re
from collections.abc import Iterator
from enum import Enum
from itertools import combinations
from typing import Annotated, Literal, TypeAlias, TypeVar

from msgspec import Meta, Struct

from protocols.contract.events import Turn

SOH, STX, ETX, EOT = 0x01, 0x02, 0x03, 0x04
MAX_FRAME = 256
TEXT_AT = 4
"""The first character of the text, SOH counted."""


class Frame(Struct, frozen=True):
    """A whole frame. `station`: the two digits, "02" or "04", whose meaning is not known."""

    station: str
    text: str
    raw: bytes = b""


class Broken(Struct, frozen=True):
    """From SOH to EOT, but with a wrong checksum, or no frame of this shape."""

    raw: bytes


class Garbage(Struct, frozen=True):
    """Bytes outside a frame, or of a frame that was cut short."""

    raw: bytes


T = TypeVar("T")
Message: TypeAlias = Frame | Broken | Garbage

_FRAMED = re.compile(rb"\x01[^\x01\x04]{1,%d}\x04" % (MAX_FRAME - 2))
_FRAME = re.compile(rb"\x01([0-9]{2})\x02([\x20-\x7e]+)\x03([\x40-\x7f])\x04")


class Decoder:
    """Turns bytes in any pieces into messages. Every byte is in their `raw`."""

    def __init__(self) -> None:
        """Hold less than MAX_FRAME bytes of an unfinished frame."""
        self._held = b""

    @property
    def waiting(self) -> bool:
        """A frame has begun and is not finished."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`; garbage without waiting for its end."""
        messages: list[Message] = []
        data = self._held + data
        at = 0
        for found in _FRAMED.finditer(data):
            if found.start() > at:
                messages.append(Garbage(data[at : found.start()]))
            messages.append(_judge(found[0]))
            at = found.end()
        begun = data.rfind(SOH, at)
        if begun < 0 or len(data) - begun >= MAX_FRAME or EOT in data[begun:]:
            begun = len(data)
        if begun > at:
            messages.append(Garbage(data[at:begun]))
        self._held = data[begun:]
        return messages


def _judge(raw: bytes) -> Frame | Broken:
    found = _FRAME.fullmatch(raw)
    if found is None or found[3][0] != checksum(raw[:-2]):
        return Broken(raw)
    return Frame(found[1].decode(), found[2].decode(), raw)


def checksum(head: bytes) -> int:
    """The checksum of all bytes from SOH to ETX: always 0x40 to 0x7F."""
    return sum(head) & 0x3F | 0x40


def encode(frame: Frame) -> bytes:
    """The frame's bytes. Raises ValueError for values that a frame cannot carry."""
    try:
        head = b"\x01%s\x02%s\x03" % (frame.station.encode("ascii"), frame.text.encode("ascii"))
    except UnicodeEncodeError:
        head = b""
    raw = head + bytes((checksum(head), EOT))
    if len(raw) > MAX_FRAME or not isinstance(_judge(raw), Frame):
        raise ValueError(f"no frame can carry {frame}")
    return raw


# ---- the answer to SR2


class State(Enum):
    """The state of the wheel's game."""

    STARTED = "started"
    PLACE_BETS = "place bets"
    BALL_IN_RIM = "ball in rim"
    NO_MORE_BETS = "no more bets"
    WINNING_NUMBER = "winning number"
    TABLE_CLOSED = "table closed"


class Status(Struct, frozen=True):
    """An answer to SR2. `spin`: the spin counter. `number`: the pocket, "" before it is known. `speed`: rotor rpm x 10.

    `error`: one is pending, ask SR3.
    """

    state: State
    spin: int
    number: str
    ball: Turn
    rotor: Turn
    speed: int
    error: bool
    raw: bytes = b""


class Misfit(ValueError):
    """An answer that does not fit the layout. The message names the place."""


class Field(Struct, frozen=True, forbid_unknown_fields=True):
    """`length` characters from character `at`; SOH is character 0."""

    at: Annotated[int, Meta(ge=TEXT_AT, lt=MAX_FRAME)]
    length: Annotated[int, Meta(ge=1, le=8)] = 1

    def of(self, answer: str) -> str:
        """The content of the field."""
        return answer[self.at : self.at + self.length]


Values: TypeAlias = Annotated[tuple[str, ...], Meta(min_length=1)]


class Layout(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The position of each field of the answer to SR2, and what it may hold. Only `error` is known; the rest is
    ASSUMED.

    `started` to `table_closed`: the values of the state field, one or more for each state. `spin`: decimal digits,
    counting on when a number has been shown, from all nines to zero. `number`: the pocket, filled up on the left with
    `fill`; `blanks` are what it shows while there is none; `pockets` other values, {"37": "00"} for a double zero.
    The value "00" is the double zero if `fill` is " ", and zero if it is "0". `speed`: decimal digits.
    """

    error: Field = Field(48)
    state: Field = Field(5)
    spin: Field = Field(6, 4)
    number: Field = Field(10, 2)
    ball: Field = Field(12)
    rotor: Field = Field(13)
    speed: Field = Field(14, 3)
    started: Values = ("1",)
    place_bets: Values = ("2",)
    ball_in_rim: Values = ("3",)
    no_more_bets: Values = ("4",)
    winning_number: Values = ("5",)
    table_closed: Values = ("6",)
    clockwise: str = "0"
    anticlockwise: str = "1"
    fill: Literal[" ", "0"] = " "
    blanks: tuple[str, ...] = ("  ",)
    pockets: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Raise ValueError for an ambiguous layout, naming the fields."""
        for (one, a), (other, b) in combinations(self._fields(), 2):
            if a.at < b.at + b.length and b.at < a.at + a.length:
                raise ValueError(f"the fields {one} and {other} overlap: {one} {_place(a)}, {other} {_place(b)}")
        self._distinct("state", self.state, [value for values in self.states().values() for value in values])
        for name, field in (("ball", self.ball), ("rotor", self.rotor)):
            self._distinct(name, field, [self.clockwise, self.anticlockwise])
        for value, pocket in self.pockets.items():
            if not re.fullmatch("0{1,4}|[1-9]|[12][0-9]|3[0-6]", pocket):
                raise ValueError(f"pockets: {value!r} cannot be the pocket {pocket!r}; it is 0 to 36, 00, 000 or 0000")
        self._distinct("number", self.number, [*self.blanks, *self.pockets, *_plain(self)])

    def states(self) -> dict[State, tuple[str, ...]]:
        """The values of each state."""
        return {
            State.STARTED: self.started,
            State.PLACE_BETS: self.place_bets,
            State.BALL_IN_RIM: self.ball_in_rim,
            State.NO_MORE_BETS: self.no_more_bets,
            State.WINNING_NUMBER: self.winning_number,
            State.TABLE_CLOSED: self.table_closed,
        }

    def _fields(self) -> Iterator[tuple[str, Field]]:
        for name in ("error", "state", "spin", "number", "ball", "rotor", "speed"):
            yield name, getattr(self, name)

    @property
    def length(self) -> int:
        """The characters that an answer must have at least, its end (ETX, checksum, EOT) not counted."""
        return max(field.at + field.length for _, field in self._fields())

    @staticmethod
    def _distinct(name: str, field: Field, values: list[str]) -> None:
        for value in values:
            if len(value) != field.length:
                raise ValueError(f"{name}: {value!r} has {len(value)} characters, the field has {field.length}")
            if values.count(value) > 1:
                raise ValueError(f"{name}: {value!r} stands for two things")


def _place(field: Field) -> str:
    return f"{field.at} to {field.at + field.length - 1}"


def _plain(layout: Layout) -> dict[str, str]:
    """The usual pockets by their values, as far as the field is wide enough."""
    names = [str(number) for number in range(37)] + (["00"] if layout.fill == " " else [])
    width = layout.number.length
    padded = {name.rjust(width, layout.fill): name for name in names if len(name) <= width}
    return {value: name for value, name in padded.items() if value not in layout.pockets}


class StatusCodec:
    """Answers to SR2 by `layout`, both ways."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._states = {value: state for state, values in layout.states().items() for value in values}
        self._turns: dict[str, Turn] = {layout.clockwise: "clockwise", layout.anticlockwise: "anticlockwise"}
        self._numbers = _plain(layout) | layout.pockets | dict.fromkeys(layout.blanks, "")
        self._errors = {"0": False, "1": True}

    def read(self, raw: bytes) -> Status:
        """The status in an answer's bytes, from SOH on. Raises Misfit if it does not fit the layout."""
        layout = self._layout
        answer = raw.decode("latin-1").split(chr(ETX))[0]
        if len(answer) < layout.length:
            raise Misfit(f"it has {len(answer)} characters, the map needs {layout.length}")
        return Status(
            _look("state", layout.state, answer, self._states),
            _count("spin", layout.spin, answer),
            _look("number", layout.number, answer, self._numbers),
            _look("ball", layout.ball, answer, self._turns),
            _look("rotor", layout.rotor, answer, self._turns),
            _count("speed", layout.speed, answer),
            _look("error", layout.error, answer, self._errors),
            raw,
        )

    def write(self, status: Status, station: str = "02") -> bytes:
        """The answer's bytes; characters that the layout does not name are "0". Raises ValueError."""
        layout = self._layout
        answer = ["0"] * layout.length
        for field, text in (
            (layout.state, _key(self._states, status.state)),
            (layout.spin, f"{status.spin:0{layout.spin.length}d}"),
            (layout.number, _key(self._numbers, status.number)),
            (layout.ball, _key(self._turns, status.ball)),
            (layout.rotor, _key(self._turns, status.rotor)),
            (layout.speed, f"{status.speed:0{layout.speed.length}d}"),
            (layout.error, _key(self._errors, status.error)),
        ):
            if len(text) != field.length:
                raise ValueError(f"{text!r} does not fit into {_place(field)}")
            answer[field.at : field.at + field.length] = text
        return encode(Frame(station, "".join(answer[TEXT_AT:])))


def _look(name: str, field: Field, answer: str, known: dict[str, T]) -> T:
    value = field.of(answer)
    if value not in known:
        raise Misfit(f"{name}, characters {_place(field)}, is {value!r}, which the map does not have")
    return known[value]


def _count(name: str, field: Field, answer: str) -> int:
    value = field.of(answer)
    if not (value.isascii() and value.isdecimal()):
        raise Misfit(f"{name}, characters {_place(field)}, is {value!r}, which is no number")
    return int(value)


def _key(known: dict[str, T], value: T) -> str:
    for text, one in known.items():
        if one == value:
            return text
    raise ValueError(f"the map has no {value!r}")


# ---- the questions

STATUS, ERROR, LAUNCH = "SR2", "SR3", "RC03"
STATUS_STATION, ERROR_STATION, LAUNCH_STATION = "02", "04", "04"
ERROR_FIELD = Field(5, 7)
"""Where the answer to SR3 has the error."""
# ASSUMED: SR3 reports the first seven characters of the name of an error; they differ in all names.
