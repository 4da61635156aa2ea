"""Dice recogniser (IDP): the JSON messages that it and its host exchange over MQTT, one message a line.

Source: the client side of a public studio software (studio-sdp); no manual was seen. The host publishes
`{"command":"detect","arg":{"round_id":"R","input":"rtsp://…","output":"…"}}`, `output` is omitted if no
picture is wanted, and `{"command":"timeout","arg":{}}` to give up. The recogniser publishes
`{"response":"result","arg":{"round_id":"R","res":[1,2,3],"err":0}}`: `err` 0 ok, -1 no result (`res` null), -3 the dice
did not move since the last round. An answer without `err` counts as 0, as in that public software. The same
service reads wheels and cards: their results have the same form but are not dice.

The decoder accepts any bytes without an exception: an unknown object is Other, anything else is Garbage.
"""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from protocols.message_lines import Lines

OK, NO_RESULT, NO_SHAKE = 0, -1, -3
DICE = 3
MAX_LINE = 4096


class Detect(Struct, frozen=True):
    """Host: read the dice in the video stream `input`. `output`: the destination of the picture, if any."""

    round_id: str
    input: str
    output: str = ""


class Stop(Struct, frozen=True):
    """Host: stop reading."""


class Result(Struct, frozen=True):
    """Recogniser: the answer to the request `round_id`. `res`: its integers; None for any other content."""

    round_id: str
    res: tuple[int, ...] | None
    err: int
    raw: bytes = b""

    @property
    def faces(self) -> tuple[int, ...] | None:
        """The faces of a valid reading of three dice; None for any other result."""
        return self.reading(DICE)

    def reading(self, dice: int) -> tuple[int, ...] | None:
        """The faces of a valid reading: no error and `dice` integers, each from 1 to 6. None for any other result."""
        good = self.err == OK and self.res is not None and len(self.res) == dice
        return self.res if good and self.res and all(1 <= face <= 6 for face in self.res) else None


class Other(Struct, frozen=True):
    """A JSON object that is none of these."""

    raw: bytes


class Garbage(Struct, frozen=True):
    """A message that is no JSON object."""

    raw: bytes


Message: TypeAlias = Detect | Stop | Result | Other | Garbage


class _DetectArg(Struct, omit_defaults=True):
    round_id: str | int
    input: str
    output: str = ""


class _ResultArg(Struct):
    round_id: str | int
    res: Any
    err: int = OK


class _Wire(Struct, omit_defaults=True):
    """The common part of all messages; either `command` or `response` is set."""

    command: Literal["detect", "timeout", ""] = ""
    response: Literal["result", ""] = ""
    arg: Raw = Raw(b"{}")


_WIRE = msgspec.json.Decoder(_Wire)
_DETECT = msgspec.json.Decoder(_DetectArg)
_RESULT = msgspec.json.Decoder(_ResultArg)
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Decoder:
    """Turns bytes in any pieces into messages. Serves both ends."""

    def __init__(self) -> None:
        """Hold at most MAX_LINE bytes of an unfinished line."""
        self._lines = Lines(MAX_LINE)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`."""
        return [
            # This finds most messages that are not JSON without an exception, which costs more than all the rest.
            _parse(line) if line[0] == 0x7B and line[-1] == 0x7D and len(line) < MAX_LINE else Garbage(line)
            for line in self._lines.feed(data)
        ]


def _parse(line: bytes) -> Message:
    try:
        wire = _WIRE.decode(line)
        match wire.command, wire.response:
            case "detect", "":
                arg = _DETECT.decode(wire.arg)
                return Detect(str(arg.round_id), arg.input, arg.output)
            case "timeout", "":
                return Stop()
            case "", "result":
                said = _RESULT.decode(wire.arg)
                return Result(str(said.round_id), _integers(said.res), said.err, line)
    except _UNREADABLE:
        pass
    try:
        _OBJECT.decode(line)
    except _UNREADABLE:
        return Garbage(line)
    return Other(line)


def _integers(res: Any) -> tuple[int, ...] | None:
    """A list that holds only integers, as a tuple; None for any other value. `true` is not an integer."""
    return tuple(res) if isinstance(res, list) and all(type(one) is int for one in res) else None


def encode(message: Detect | Stop | Result) -> bytes:
    """The line with its end. Raises ValueError for values that a message cannot carry."""
    match message:
        case Detect(round_id, stream, output):
            wire = _Wire("detect", arg=Raw(msgspec.json.encode(_DetectArg(round_id, stream, output))))
        case Stop():
            wire = _Wire("timeout", arg=Raw(b"{ }"))
        case Result(round_id, res, err):
            wire = _Wire(response="result", arg=Raw(msgspec.json.encode(_ResultArg(round_id, res, err))))
    line = msgspec.json.encode(wire).replace(b"{ }", b"{}") if isinstance(message, Stop) else msgspec.json.encode(wire)
    if len(line) >= MAX_LINE:
        raise ValueError(f"a message of {len(line)} bytes; at most {MAX_LINE - 1}")
    return line + b"\n"
