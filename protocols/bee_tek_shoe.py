"""USPC Bee-Tek electronic shoe: the lines it pushes, one for each card drawn; the host sends nothing.

Source: the card table and serial reader of the public AndarBaharSoftware, its 52 codes recomputed; public Scala code
for game mode. 9600 8N1, over RS-232 or a USB adapter. A line is `*`, a body of four characters, their sum in two hex
digits, CR LF. The body of a draw is `0D`, a suit digit, a rank digit. In game mode the two digits are repeated after
the line, in an undocumented form: with or without a line end they are an Echo. No other message type is known; one of
the same length whose checksum is right is Other.

A frame has one length, so it is checked at its seventh character, not at a line end that may be lost. Noise on this
line may have been a card: everything but Drawn, Other and Echo is Broken (a frame, probably a card) or Garbage. Line
ends alone mean nothing. Accepts any bytes without an exception.
"""

import re
from typing import TypeAlias

from msgspec import Struct

FRAME_LENGTH = 7
CR_LF = b"\r\n"
STAR = 0x2A
DRAW = "0D"

_SUITS = "HDCS"  # digits 0 to 3
_RANKS = "A23456789TJQK"  # digits 1 to D
_BODIES = {rank + suit: f"{DRAW}{s}{r:X}" for s, suit in enumerate(_SUITS) for r, rank in enumerate(_RANKS, 1)}
_CARDS = {body: card for card, body in _BODIES.items()}
_FRAME = re.compile(rb"\*([0-9A-F]{2}[\x20-\x7e]{2})([0-9A-F]{2})")


class Drawn(Struct, frozen=True):
    """A draw: rank then suit, `AS`. `operation`: what the shoe was doing, where its wire reports it."""

    card: str
    raw: bytes = b""
    operation: str = ""


class Other(Struct, frozen=True):
    """A whole message of a kind that is not documented; here the type's two digits, the body's other two characters."""

    kind: str
    text: str
    raw: bytes = b""


class Echo(Struct, frozen=True):
    """Game mode: the two digits of the last card, repeated."""

    raw: bytes


class Broken(Struct, frozen=True):
    """An incomplete frame, or one with a wrong checksum or wrong digits: probably a card."""

    raw: bytes


class Garbage(Struct, frozen=True):
    """Bytes that are no part of a frame."""

    raw: bytes


Message: TypeAlias = Drawn | Other | Echo | Broken | Garbage


class Decoder:
    """Turns bytes in any pieces into messages. Only line ends are missing from their `raw`."""

    def __init__(self) -> None:
        """Hold at most FRAME_LENGTH bytes of an unfinished frame or echo."""
        self._held = bytearray()
        self._echo = b""

    @property
    def waiting(self) -> bool:
        """Something has begun and is not finished: after a pause call `quiet`."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`; garbage without waiting for its end."""
        messages: list[Message] = []
        for byte in data:
            if byte in CR_LF:
                self._finish(messages)
                continue
            if byte == STAR:
                self._finish(messages)
            self._held.append(byte)
            if len(self._held) == FRAME_LENGTH:
                self._finish(messages)
        if self._held[:1] != b"*" and not self._echo.startswith(self._held):
            self._finish(messages)
        return messages

    def quiet(self) -> list[Message]:
        """The line paused: the held bytes are complete."""
        messages: list[Message] = []
        self._finish(messages)
        return messages

    def _finish(self, messages: list[Message]) -> None:
        if self._held:
            message = self._judge(bytes(self._held))
            self._held.clear()
            self._echo = _BODIES[message.card][2:].encode() if isinstance(message, Drawn) else b""
            messages.append(message)

    def _judge(self, raw: bytes) -> Message:
        if raw[0] == STAR:
            return _parse(raw)
        return Echo(raw) if raw == self._echo else Garbage(raw)


def _parse(raw: bytes) -> Drawn | Other | Broken:
    found = _FRAME.fullmatch(raw)
    if found is None or found[2] != _checksum(found[1]):
        return Broken(raw)
    body = found[1].decode()
    if not body.startswith(DRAW):
        return Other(body[:2], body[2:], raw)
    return Drawn(_CARDS[body], raw) if body in _CARDS else Broken(raw)


def _checksum(body: bytes) -> bytes:
    return b"%02X" % (sum(body) & 0xFF)


def encode(message: Drawn | Other) -> bytes:
    """The line with its CR LF. Raises ValueError for values that a line cannot carry."""
    match message:
        case Drawn(card):
            body = _BODIES.get(card, "")
        case Other(kind, text):
            body = kind + text
    frame = b"*" + body.encode() + _checksum(body.encode())
    if STAR in frame[1:] or not isinstance(_parse(frame), type(message)):
        raise ValueError(f"no line can carry {message}")
    return frame + CR_LF


def encode_echo(card: str) -> bytes:
    """The bytes that game mode adds to a draw of `card`."""
    return _BODIES[card][2:].encode()
