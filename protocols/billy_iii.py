"""Billy-III dice shaker: the text messages that it and its host exchange over MQTT, one message a line.

Source: the device controller of a public studio software (studio-sdp); no manual was seen. The host publishes
`/state`, or `/cycle/?pattern=0&parameter1=10&parameter2=0&amplitude=0.41&duration=9.59` (amplitude 0 to 1, duration in
seconds; these are that studio's values). The shaker sends its state: `S0` idle, `S1` shaking, `S2` order accepted,
`S90` several errors in the motion program; other numbers are undocumented and are passed on.

There is no checksum and no counter; TCP protects the bytes. Accepts any bytes without an exception.
"""

import re
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from protocols.message_lines import Lines

IDLE, SHAKING, ACCEPTED, MOTION_ERROR = 0, 1, 2, 90
MAX_LINE = 256

_NUMBER = rb"(0|[1-9][0-9]{0,5})"
_DECIMAL = rb"((?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,6})?)"
_CYCLE = re.compile(
    rb"/cycle/\?pattern=%b&parameter1=%b&parameter2=%b&amplitude=%b&duration=%b"
    % (_NUMBER, _NUMBER, _NUMBER, _DECIMAL, _DECIMAL)
)


class Ask(Struct, frozen=True):
    """Host: what is your state?"""

    raw: bytes = b"/state"


class Cycle(Struct, frozen=True):
    """Host: shake once by this program. `duration` in seconds."""

    pattern: Annotated[int, Meta(ge=0, lt=1_000_000)]
    parameter1: Annotated[int, Meta(ge=0, lt=1_000_000)]
    parameter2: Annotated[int, Meta(ge=0, lt=1_000_000)]
    amplitude: Annotated[float, Meta(ge=0, le=1)]
    duration: Annotated[float, Meta(gt=0, lt=1_000_000)]


class State(Struct, frozen=True):
    """Shaker: its state by number, 0 to 999."""

    code: int
    raw: bytes = b""


class Garbage(Struct, frozen=True):
    """A message that is none of these."""

    raw: bytes


Message: TypeAlias = Ask | Cycle | State | Garbage

# Frozen values may be shared; a shaker repeats the same few lines for ever.
_KNOWN: dict[bytes, Message] = {raw: State(code, raw) for code in range(1000) if (raw := b"S%d" % code)}
_KNOWN[b"/state"] = Ask()


class Decoder:
    """Turns bytes in any pieces into messages. Serves both ends."""

    def __init__(self) -> None:
        """Hold at most MAX_LINE bytes of an unfinished line."""
        self._lines = Lines(MAX_LINE)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`."""
        return [_KNOWN.get(line) or _parse(line) for line in self._lines.feed(data)]


def _parse(line: bytes) -> Message:
    found = _CYCLE.fullmatch(line) if line.startswith(b"/") else None
    if found is None:
        return Garbage(line)
    pattern, parameter1, parameter2 = (int(text) for text in found.group(1, 2, 3))
    cycle = Cycle(pattern, parameter1, parameter2, float(found[4]), float(found[5]))
    return cycle if _is_possible(cycle) else Garbage(line)


def _is_possible(cycle: Cycle) -> bool:
    try:
        msgspec.convert(msgspec.to_builtins(cycle), Cycle)
    except msgspec.ValidationError:
        return False
    return True


def encode(message: Ask | Cycle | State) -> bytes:
    """The line with its end. Raises ValueError for values that a message cannot carry."""
    match message:
        case Ask():
            line = b"/state"
        case State(code):
            line = b"S%d" % code
        case Cycle():
            line = (
                f"/cycle/?pattern={message.pattern}&parameter1={message.parameter1}&parameter2={message.parameter2}"
                f"&amplitude={_decimal(message.amplitude)}&duration={_decimal(message.duration)}"
            ).encode()
    said = _KNOWN.get(line) or _parse(line)
    if said != (State(message.code, line) if isinstance(message, State) else message):
        raise ValueError(f"no message can carry {message}")
    return line + b"\n"


def _decimal(number: float) -> str:
    """The number as people write it: 0.41, 10; at most six decimals."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
