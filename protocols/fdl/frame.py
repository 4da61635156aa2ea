"""FDL, the felt device link: our reference wire for devices whose vendors publish none. See
docs/reference/protocols/fdl.md.

Converts between bytes and values, for both ends. Accepts any bytes: bytes outside of frames are `Garbage`, a frame that
the document does not allow is `Malformed`; neither is an exception.
"""

import binascii
import struct
from collections.abc import Mapping
from typing import ClassVar, Final, Literal, Self, TypeAlias, get_args

import msgspec

from protocols.fdl import fields
from protocols.fdl.fields import Number, Record, by_kind

Malformed = fields.Malformed
Happening = fields.Happening

VERSION = 1
MAX_PAYLOAD = 200
MAX_STUFFED = 1 + 3 + MAX_PAYLOAD + 2  # one COBS code byte; len, type, seq; payload; CRC
MAX_TEXT = 40  # bytes of UTF-8 in each name of an IDENTITY
MAX_COUNTER = 0xFFFF_FFFF
AGE_UNKNOWN = 0xFFFF_FFFF
FROM_DEVICE = 0x80  # set in the type of every frame that a device sends

SHAKER = 1
CONSOLE = 2
SHUFFLER = 3
BUTTON_COUNTER = 4
CONTINUOUS_SHUFFLER = 5
BET_SENSORS = 6
LAMPS = 7
PEEK_READER = 8
TIMER = 9
KINDS = {
    SHAKER: "shaker",
    CONSOLE: "console",
    SHUFFLER: "batch shuffler",
    BUTTON_COUNTER: "button counter",
    CONTINUOUS_SHUFFLER: "continuous shuffler",
    BET_SENSORS: "set of bet sensors",
    LAMPS: "set of layout lamps",
    PEEK_READER: "peek reader",
    TIMER: "betting timer",
}

# ---- frames


class Frame(msgspec.Struct, frozen=True):
    """One frame whose CRC is right. `raw` is as it came: stuffed, with the 00 that ends it."""

    type: int
    seq: int
    payload: bytes
    raw: bytes


class Garbage(msgspec.Struct, frozen=True):
    """Bytes between two 00 that are not a frame. `raw` has at most MAX_STUFFED of them."""

    raw: bytes
    why: Literal["too long", "stuffing", "length", "crc"]


def crc(data: bytes) -> int:
    """CRC-16/IBM-3740: polynomial 0x1021, start 0xFFFF, not reflected, no final xor; 0x29B1 for "123456789"."""
    return binascii.crc_hqx(data, 0xFFFF)


_CODES = [bytes((length + 1,)) for length in range(255)]
"""The byte before a block of each length."""


def encode_frame(type_: int, seq: int, payload: bytes) -> bytes:
    """The bytes for the line. Raises ValueError for a payload that is too long."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"a payload has at most {MAX_PAYLOAD} bytes, not {len(payload)}")
    body = bytes((len(payload), type_, seq)) + payload
    body += crc(body).to_bytes(2)
    # COBS; a body is shorter than 254 bytes, so the long block of the general rule never comes up.
    return b"\0" + b"".join([_CODES[len(block)] + block for block in body.split(b"\0")]) + b"\0"


def _frame(stuffed: bytes) -> Frame | Garbage:
    blocks = []
    at = 0
    while at < len(stuffed):
        end = at + stuffed[at]
        if end > len(stuffed):
            return Garbage(stuffed, "stuffing")
        blocks.append(stuffed[at + 1 : end])
        at = end
    body = b"\0".join(blocks)
    if len(body) < 5 or body[0] != len(body) - 5 or body[0] > MAX_PAYLOAD:
        return Garbage(stuffed, "length")
    if crc(body[:-2]) != int.from_bytes(body[-2:]):
        return Garbage(stuffed, "crc")
    return Frame(body[1], body[2], body[3:-2], stuffed + b"\0")


class Decoder:
    """Turns bytes in any pieces into frames. Holds at most MAX_STUFFED bytes."""

    def __init__(self) -> None:
        self._partial = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[Frame | Garbage]:
        """The frames that the bytes complete. A stretch without 00 that becomes too long is reported once."""
        found: list[Frame | Garbage] = []
        *whole, rest = data.split(b"\0")
        for piece in whole:
            if piece:
                self._gather(piece, found)
            if self._partial and not self._skipping:
                found.append(_frame(self._partial))
            self._partial = b""
            self._skipping = False
        if rest:
            self._gather(rest, found)
        return found

    def _gather(self, piece: bytes, found: list[Frame | Garbage]) -> None:
        if self._skipping:
            return
        stuffed = self._partial + piece[: MAX_STUFFED + 1]
        if len(stuffed) > MAX_STUFFED:
            found.append(Garbage(stuffed[:MAX_STUFFED], "too long"))
            self._skipping = True
            stuffed = b""
        self._partial = stuffed


# ---- messages of the frames


class OtherVersion(msgspec.Struct, frozen=True):
    """A HELLO or IDENTITY of a version that is not ours; only its first byte can be read."""

    version: int


class UnknownType(msgspec.Struct, frozen=True):
    """An unknown frame type; it is ignored."""

    type: int


_HELLO = struct.Struct(">BII")
_IDENTITY = struct.Struct(">BBIIII")
_EVENT = struct.Struct(">IIB")
_COMMAND = struct.Struct(">IB")
_ANSWER = struct.Struct(">IBB")
MAX_DATA = MAX_PAYLOAD - _EVENT.size

UNREADABLE = 1
GAP = 2
MALFORMED = 3

WAITS_FOR_HELLO = 0x01
FAULTY = 0x02


class Hello(msgspec.Struct, frozen=True):
    """Host: identify yourself, and continue after `last`. `epoch` 0: the host has no record of this device yet."""

    TYPE: ClassVar[int] = 0x01
    epoch: int
    last: int
    version: int = VERSION

    def to_bytes(self) -> bytes:
        return _HELLO.pack(self.version, self.epoch, self.last)

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | OtherVersion | Malformed:
        if payload and payload[0] != VERSION:
            return OtherVersion(payload[0])
        if len(payload) < _HELLO.size:
            return Malformed(f"HELLO of {len(payload)} bytes")
        version, epoch, last = _HELLO.unpack_from(payload)
        return cls(epoch, last, version)


class _Numbers(msgspec.Struct, frozen=True):
    """A message of numbers alone, in the order of its attributes. Further bytes, of a later version, are ignored."""

    SHAPE: ClassVar[struct.Struct]

    def to_bytes(self) -> bytes:
        return self.SHAPE.pack(*msgspec.structs.astuple(self))

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < cls.SHAPE.size:
            return Malformed(f"{cls.__name__.upper()} of {len(payload)} bytes")
        return cls(*cls.SHAPE.unpack_from(payload))


class Ack(_Numbers, frozen=True):
    """Host: every event up to and with `counter` of `epoch` is on disk."""

    TYPE: ClassVar[int] = 0x02
    SHAPE: ClassVar = struct.Struct(">II")
    epoch: int
    counter: int


class Nak(_Numbers, frozen=True):
    """Host: send again from `expected` on. `reason` is UNREADABLE, GAP or MALFORMED."""

    TYPE: ClassVar[int] = 0x03
    SHAPE: ClassVar = struct.Struct(">BII")
    reason: int
    epoch: int
    expected: int


class Identity(msgspec.Struct, frozen=True):
    """Device: its identity and the events that it holds.

    `oldest` and `next` count its events: it holds those from `oldest` up to, not with, `next`. `position` is the one it
    will send next; 0 while it waits for a HELLO that names its epoch.
    """

    TYPE: ClassVar[int] = 0x81
    kind: int
    epoch: int
    oldest: int
    next: int
    position: int
    vendor: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    version: int = VERSION

    def to_bytes(self) -> bytes:
        head = _IDENTITY.pack(self.version, self.kind, self.epoch, self.oldest, self.next, self.position)
        return head + b"".join(map(_text_to_bytes, (self.vendor, self.model, self.serial, self.firmware)))

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | OtherVersion | Malformed:
        if payload and payload[0] != VERSION:
            return OtherVersion(payload[0])
        if len(payload) < _IDENTITY.size:
            return Malformed(f"IDENTITY of {len(payload)} bytes")
        version, kind, epoch, oldest, next_, position = _IDENTITY.unpack_from(payload)
        if not epoch or not 1 <= oldest <= next_ or position > next_:
            return Malformed(f"IDENTITY with epoch {epoch}, oldest {oldest}, next {next_}, position {position}")
        texts: list[str] = []
        at = _IDENTITY.size
        for name in ("vendor", "model", "serial", "firmware"):
            end = at + 1 + payload[at] if at < len(payload) else at + 1
            if end > len(payload):
                return Malformed(f"IDENTITY ends inside its {name}")
            texts.append(_text_from_bytes(payload[at + 1 : end]))
            at = end
        vendor, model, serial, firmware = texts
        return cls(kind, epoch, oldest, next_, position, vendor, model, serial, firmware, version)


class EventReport(msgspec.Struct, frozen=True):
    """Device: something happened, `age` ms ago. `data` is read by `read_happening`."""

    TYPE: ClassVar[int] = 0x82
    counter: int
    age: int
    kind: int
    data: bytes = b""

    def to_bytes(self) -> bytes:
        return _EVENT.pack(self.counter, self.age, self.kind) + self.data

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < _EVENT.size:
            return Malformed(f"EVENT of {len(payload)} bytes")
        counter, age, kind = _EVENT.unpack_from(payload)
        if not counter:
            return Malformed("EVENT with counter 0")
        return cls(counter, age, kind, payload[_EVENT.size :])


class Heartbeat(_Numbers, frozen=True):
    """Device, each second: running for `uptime` ms; its next event will have the counter `next`."""

    TYPE: ClassVar[int] = 0x83
    SHAPE: ClassVar = struct.Struct(">IIB")
    uptime: int
    next: int
    flags: int = 0

    @property
    def waits(self) -> bool:
        """Whether it sends no events before a HELLO names its epoch."""
        return bool(self.flags & WAITS_FOR_HELLO)

    @property
    def faulty(self) -> bool:
        """Whether a fault that it reported is open."""
        return bool(self.flags & FAULTY)


class Command(msgspec.Struct, frozen=True):
    """Host: do this, now. `ticket` identifies the command: a frame with the same ticket repeats it."""

    TYPE: ClassVar[int] = 0x10
    ticket: int
    code: int
    data: bytes = b""

    def to_bytes(self) -> bytes:
        return _COMMAND.pack(self.ticket, self.code) + self.data

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < _COMMAND.size:
            return Malformed(f"COMMAND of {len(payload)} bytes")
        ticket, code = _COMMAND.unpack_from(payload)
        return cls(ticket, code, payload[_COMMAND.size :])


DONE = 0
REFUSED = 1
NOT_KNOWN = 2

# Reasons 01 to 0F of a refusal mean the same for every device; the others are defined in the device's file.
REASONS = {
    0x01: "it is busy",
    0x02: "a fault is open",
    0x03: "it is switched to local operation",
    0x04: "its values are out of range",
    0x05: "a cover or door is open",
}


class Answer(msgspec.Struct, frozen=True):
    """Device: the outcome of the command `ticket`. DONE: it was accepted; its effects are reported as events."""

    TYPE: ClassVar[int] = 0x90
    ticket: int
    status: int
    reason: int = 0
    data: bytes = b""

    def to_bytes(self) -> bytes:
        return _ANSWER.pack(self.ticket, self.status, self.reason) + self.data

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < _ANSWER.size:
            return Malformed(f"ANSWER of {len(payload)} bytes")
        ticket, status, reason = _ANSWER.unpack_from(payload)
        if status not in {DONE, REFUSED, NOT_KNOWN}:
            return Malformed(f"ANSWER with status {status}")
        return cls(ticket, status, reason, payload[_ANSWER.size :])


Message: TypeAlias = Hello | Ack | Nak | Identity | EventReport | Heartbeat | Command | Answer

_MESSAGES: dict[int, type[Message]] = {message.TYPE: message for message in get_args(Message)}


def encode(message: Message, seq: int) -> bytes:
    """The bytes for the line; of `seq` only the last eight bits are sent."""
    return encode_frame(message.TYPE, seq & 0xFF, message.to_bytes())


def read(frame: Frame) -> Message | OtherVersion | Malformed | UnknownType:
    """The message in a frame."""
    message = _MESSAGES.get(frame.type)
    if message is None:
        return UnknownType(frame.type)
    return message.from_bytes(frame.payload)


def _text_to_bytes(text: str) -> bytes:
    data = text.encode(errors="replace")[:MAX_TEXT].decode(errors="ignore").encode()
    return bytes((len(data),)) + data


def _text_from_bytes(data: bytes) -> str:
    """A name for logs and screens: invalid UTF-8 becomes U+FFFD, control characters are left out."""
    return "".join(character for character in data.decode(errors="replace") if character.isprintable())


# ---- events: kind and data; those of one kind of device are in protocols/fdl/<device>.py


class Fault(Record, frozen=True):
    """A fault began. `severity` is 1 warning, 2 error; `where` the device's own number of the place, 0 for none."""

    KIND: ClassVar[int] = 0x01
    FIELDS: ClassVar = {"code": Number(), "severity": Number(1, 1, 2), "where": Number(note=" (0: none)")}
    code: int
    severity: int
    where: int = 0


class Recovered(Record, frozen=True):
    """The fault is over, everywhere."""

    KIND: ClassVar[int] = 0x02
    FIELDS: ClassVar = {"code": Number()}
    code: int


class Started(Record, frozen=True):
    """The device started. It did not record what happened while it was off."""

    KIND: ClassVar[int] = 0x03


COMMON: Final = by_kind(__name__)

# ---- commands that every device has

SELF_TEST = 0x01


def read_happening(kind: int, data: bytes, own: Mapping[int, type[Happening]]) -> Happening | Malformed:
    """The content of an EVENT of this kind with these data; `own` are the HAPPENINGS of the device."""
    happening = COMMON.get(kind) or own.get(kind)
    if happening is None:
        return Malformed("this kind of event is not known")
    return happening.from_bytes(data)
