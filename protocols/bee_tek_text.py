"""USPC Bee-Tek electronic shoe, text wire: one line of text for each card drawn; the host sends nothing.

Source: five public programs that read this shoe, two independent families of them. 9600 baud. A message is an
operation in brackets and a body in angle brackets, with blanks and line ends around it: ` [Game]<Card:4S> `. The
operation is `Game`, `Manual Burn Cards` or, of alarms only, `GameAlarm`. `<Game>` in place of the card is a card that
was not read. `<Alarm:E3 Card Not Read>` is an alarm; `<W0x01>`, without an operation, is a warning. Upper and lower
case are the same. Other operations exist and are not published.

A message ends with its `>`: a line end may be missing. There is no checksum: a damaged rank or suit that is another
rank or suit cannot be detected. Any other form is Broken (probably a card) or Garbage. Other has an unknown operation
and an unknown body: a card's message with one damaged byte still has one of them intact, and is Broken. The decoders
accept any bytes without an exception.

`EitherDecoder` reads this wire and the one of `bee_tek_shoe`, and detects which it is.
"""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from protocols import bee_tek_shoe
from protocols.bee_tek_shoe import Broken, Drawn, Garbage, Other

LONGEST_MESSAGE = 96
"""Bytes from `[` to `>`, at most."""
GAME = "Game"
MANUAL_BURN = "Manual Burn Cards"
GAME_ALARM = "GameAlarm"
NOT_READ_ALARM = "E3"

_OPERATIONS = {name.lower(): name for name in (GAME, MANUAL_BURN, GAME_ALARM)}
_FORM = re.compile(rb"(?:\[([A-Za-z][A-Za-z0-9 ]{0,39})\] *)?<([\x20-\x3b\x3d\x3f-\x5a\x5c\x5e-\x7e]{1,64})>")
_CARD = re.compile(r"card:(10|[2-9TJQKA])([CDHS])", re.IGNORECASE)
_ALARM = re.compile(r"alarm:(E[0-9A-Z]{1,3})(?: (.*))?", re.IGNORECASE)
_WARNING = re.compile(r"w(0x[0-9a-f]{1,4})", re.IGNORECASE)
_OPENING = b"[<"
_BETWEEN = b" \r\n"


class NotRead(Struct, frozen=True):
    """A card was drawn and not read."""

    operation: str
    raw: bytes = b""


class Alarm(Struct, frozen=True):
    """An alarm with the shoe's own code and text."""

    operation: str
    code: str
    text: str
    raw: bytes = b""


class Warned(Struct, frozen=True):
    """A warning; the meaning of its code is not published."""

    code: str
    raw: bytes = b""


Message: TypeAlias = Drawn | NotRead | Alarm | Warned | Other | Broken | Garbage


class Decoder:
    """Turns bytes in any pieces into messages. `raw` lacks the blanks and line ends between them."""

    def __init__(self) -> None:
        """Hold at most LONGEST_MESSAGE bytes of an unfinished message."""
        self._held = bytearray()

    @property
    def waiting(self) -> bool:
        """Whether a message has begun and is not finished: then call `quiet` after a pause."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`; garbage is returned at once."""
        messages: list[Message] = []
        for byte in data:
            if byte in b"\r\n" or (not self._held and byte in _BETWEEN):
                self._finish(messages)
                continue
            # A body follows its operation; every other opening bracket begins a message.
            if byte in _OPENING and not (byte == 0x3C and self._held.rstrip(b" ").endswith(b"]")):
                self._finish(messages)
            self._held.append(byte)
            if byte == 0x3E or len(self._held) == LONGEST_MESSAGE or self._held[0] not in _OPENING:
                self._finish(messages)
        return messages

    def quiet(self) -> list[Message]:
        """The messages after a pause of the line, which ends the held bytes."""
        messages: list[Message] = []
        self._finish(messages)
        return messages

    def _finish(self, messages: list[Message]) -> None:
        if not self._held:
            return
        message = _parse(bytes(self._held))
        self._held.clear()
        before = messages[-1] if messages else None
        if isinstance(message, Garbage) and isinstance(before, Garbage):
            messages[-1] = Garbage(before.raw + message.raw)
        else:
            messages.append(message)


def _parse(raw: bytes) -> Message:
    if raw[0] not in _OPENING:
        return Garbage(raw)
    found = _FORM.fullmatch(raw)
    if found is None:
        return Broken(raw)
    body = found[2].decode()
    if found[1] is None:
        warning = _WARNING.fullmatch(body)
        return Warned(warning[1], raw) if warning else Broken(raw)
    named = found[1].decode()
    operation = _OPERATIONS.get(named.lower(), "")
    card, alarm = _CARD.fullmatch(body), _ALARM.fullmatch(body)
    failed = body.lower() == GAME.lower()
    known = card or alarm or failed
    if not operation:
        return Broken(raw) if known or body.lower().startswith(("card", "alarm")) else Other(named, body, raw)
    if alarm:
        return Alarm(operation, alarm[1].upper(), alarm[2] or "", raw)
    if operation == GAME_ALARM or not known:
        return Broken(raw)
    if card is None:
        return NotRead(operation, raw)
    rank = "T" if card[1] == "10" else card[1].upper()
    return Drawn(rank + card[2].upper(), raw, operation)


def encode(message: Drawn | NotRead | Alarm | Warned | Other, *, ten: str = "T", line_end: bytes = b"\r\n") -> bytes:
    """The message with its blanks and `line_end`. `ten`: how the rank ten is written.

    Raises ValueError for values that a line cannot carry.
    """
    match message:
        case Drawn(card, _, operation):
            text = f"[{operation}]<Card:{card.replace('T', ten)}>"
        case NotRead(operation):
            text = f"[{operation}]<{GAME}>"
        case Alarm(operation, code, words):
            text = f"[{operation}]<Alarm:{code}{' ' + words if words else ''}>"
        case Warned(code):
            text = f"<W{code}>"
        case Other(kind, words):
            text = f"[{kind}]<{words}>"
    if not text.isascii() or len(text) > LONGEST_MESSAGE or not isinstance(_parse(text.encode()), type(message)):
        raise ValueError(f"no line can carry {message}")
    return f" {text} ".encode() + line_end


Either: TypeAlias = bee_tek_shoe.Message | Message


class EitherDecoder:
    """Reads both wires of the shoe. `wire` is the one of the last good message, empty before the first.

    Before the first good message, bytes that may begin one are held back: on the other wire they are garbage.
    Afterwards a good message of the other wire changes `wire`: the shoe was switched to its other mode.
    """

    def __init__(self, wire: Literal["", "checksum", "text"] = "") -> None:
        """`wire`: the one of an earlier session, if known."""
        self.wire = wire
        self._checksum, self._text = bee_tek_shoe.Decoder(), Decoder()
        self._pending: dict[str, list[Either]] = {"checksum": [], "text": []}

    @property
    def waiting(self) -> bool:
        """Whether a message has begun and is not finished: then call `quiet` after a pause."""
        match self.wire:
            case "checksum":
                return self._checksum.waiting
            case "text":
                return self._text.waiting
            case _:
                return self._checksum.waiting or self._text.waiting

    def feed(self, data: bytes) -> list[Either]:
        """The messages completed by `data`."""
        return self._decided(self._checksum.feed(data), self._text.feed(data))

    def quiet(self) -> list[Either]:
        """The messages after a pause of the line, which ends the held bytes."""
        return self._decided(self._checksum.quiet(), self._text.quiet())

    def _decided(self, checksum: list[bee_tek_shoe.Message], text: list[Message]) -> list[Either]:
        self._pending["checksum"] += checksum
        self._pending["text"] += text
        for wire in ("checksum", "text"):
            if wire != self.wire and any(not isinstance(one, Broken | Garbage) for one in self._pending[wire]):
                self.wire = wire
        if not self.wire and self.waiting:
            return []
        told = self._pending[self.wire or "text"]
        self._pending = {"checksum": [], "text": []}
        return told
