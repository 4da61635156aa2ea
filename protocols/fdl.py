"""FDL, the felt device link: our reference wire for devices whose vendors publish none. See docs/protocols/fdl.md.

Rule of this file: bytes <-> values for both ends and nothing else. Any bytes may come in: what is no frame is
`Garbage`, what is a frame but not as the document says is `Malformed`; neither is an exception.
"""

import binascii
import struct
from typing import ClassVar, Literal, Self, TypeAlias, get_args

import msgspec

VERSION = 1
MAX_PAYLOAD = 200
MAX_STUFFED = 1 + 3 + MAX_PAYLOAD + 2  # one COBS code byte; len, type, seq; payload; CRC
MAX_TEXT = 40  # bytes of UTF-8 in each name of an IDENTITY
MAX_FACES = 16
MAX_COUNTER = 0xFFFF_FFFF
AGE_UNKNOWN = 0xFFFF_FFFF
FROM_DEVICE = 0x80  # set in the type of every frame that a device sends

SHAKER = 1
CONSOLE = 2
KINDS = {SHAKER: "shaker", CONSOLE: "console"}

# ---- frames


class Frame(msgspec.Struct, frozen=True):
    """One frame whose CRC is right. `raw` is as it came: stuffed, with the 00 that ends it."""

    type: int
    seq: int
    payload: bytes
    raw: bytes


class Garbage(msgspec.Struct, frozen=True):
    """What stood between two 00 and is no frame. `raw` has at most MAX_STUFFED bytes of it."""

    raw: bytes
    why: Literal["too long", "stuffing", "length", "crc"]


def crc(data: bytes) -> int:
    """CRC-16/IBM-3740: polynomial 0x1021, start 0xFFFF, not reflected, no final xor; 0x29B1 for "123456789"."""
    return binascii.crc_hqx(data, 0xFFFF)


def encode_frame(type_: int, seq: int, payload: bytes) -> bytes:
    """The bytes for the line. Raises ValueError for a payload that is too long."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"a payload has at most {MAX_PAYLOAD} bytes, not {len(payload)}")
    body = bytes((len(payload), type_, seq)) + payload
    body += crc(body).to_bytes(2)
    # COBS; a body is shorter than 254 bytes, so the long block of the general rule never comes up.
    stuffed = b"".join(bytes((len(block) + 1,)) + block for block in body.split(b"\0"))
    return b"\0" + stuffed + b"\0"


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
    """A stream of bytes, split anyhow, to frames. Holds at most MAX_STUFFED bytes."""

    def __init__(self) -> None:
        self._partial = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[Frame | Garbage]:
        """What the bytes complete. Too long a stretch without 00 is told once, when it becomes too long."""
        found: list[Frame | Garbage] = []
        *whole, rest = data.split(b"\0")
        for piece in whole:
            self._gather(piece, found)
            if self._partial and not self._skipping:
                found.append(_frame(self._partial))
            self._partial = b""
            self._skipping = False
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


# ---- what the frames say


class Malformed(msgspec.Struct, frozen=True):
    """A frame, or an event in it, that the document does not allow."""

    what: str


class OtherVersion(msgspec.Struct, frozen=True):
    """A HELLO or IDENTITY of a version that is not ours; only its first byte can be read."""

    version: int


class UnknownType(msgspec.Struct, frozen=True):
    """A frame type that this version does not have: not for us."""

    type: int


_HELLO = struct.Struct(">BII")
_ACK = struct.Struct(">II")
_NAK = struct.Struct(">BII")
_IDENTITY = struct.Struct(">BBIIII")
_EVENT = struct.Struct(">IIB")
_HEARTBEAT = struct.Struct(">IIB")
MAX_DATA = MAX_PAYLOAD - _EVENT.size

UNREADABLE = 1
GAP = 2
MALFORMED = 3

WAITS_FOR_HELLO = 0x01


class Hello(msgspec.Struct, frozen=True):
    """Host: who are you, and go on after `last`. `epoch` 0: the host knows nothing of this device yet."""

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


class Ack(msgspec.Struct, frozen=True):
    """Host: every event up to and with `counter` of `epoch` is on disk."""

    TYPE: ClassVar[int] = 0x02
    epoch: int
    counter: int

    def to_bytes(self) -> bytes:
        return _ACK.pack(self.epoch, self.counter)

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < _ACK.size:
            return Malformed(f"ACK of {len(payload)} bytes")
        return cls(*_ACK.unpack_from(payload))


class Nak(msgspec.Struct, frozen=True):
    """Host: send again from `expected` on. `reason` is UNREADABLE, GAP or MALFORMED."""

    TYPE: ClassVar[int] = 0x03
    reason: int
    epoch: int
    expected: int

    def to_bytes(self) -> bytes:
        return _NAK.pack(self.reason, self.epoch, self.expected)

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < _NAK.size:
            return Malformed(f"NAK of {len(payload)} bytes")
        return cls(*_NAK.unpack_from(payload))


class Identity(msgspec.Struct, frozen=True):
    """Device: who it is and what it holds.

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


class Heartbeat(msgspec.Struct, frozen=True):
    """Device, each second: alive for `uptime` ms; its next event will have the counter `next`."""

    TYPE: ClassVar[int] = 0x83
    uptime: int
    next: int
    flags: int = 0

    @property
    def waits(self) -> bool:
        """It sends no events before a HELLO names its epoch."""
        return bool(self.flags & WAITS_FOR_HELLO)

    def to_bytes(self) -> bytes:
        return _HEARTBEAT.pack(self.uptime, self.next, self.flags)

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self | Malformed:
        if len(payload) < _HEARTBEAT.size:
            return Malformed(f"HEARTBEAT of {len(payload)} bytes")
        return cls(*_HEARTBEAT.unpack_from(payload))


Message: TypeAlias = Hello | Ack | Nak | Identity | EventReport | Heartbeat

_MESSAGES: dict[int, type[Message]] = {message.TYPE: message for message in get_args(Message)}


def encode(message: Message, seq: int) -> bytes:
    """The bytes for the line; of `seq` only the last eight bits are sent."""
    return encode_frame(message.TYPE, seq & 0xFF, message.to_bytes())


def read(frame: Frame) -> Message | OtherVersion | Malformed | UnknownType:
    """What a frame says."""
    message = _MESSAGES.get(frame.type)
    if message is None:
        return UnknownType(frame.type)
    return message.from_bytes(frame.payload)


def _text_to_bytes(text: str) -> bytes:
    data = text.encode(errors="replace")[:MAX_TEXT].decode(errors="ignore").encode()
    return bytes((len(data),)) + data


def _text_from_bytes(data: bytes) -> str:
    """Names go to logs and screens: what is no UTF-8 becomes U+FFFD, control characters are left out."""
    return "".join(character for character in data.decode(errors="replace") if character.isprintable())


# ---- what happened: kind and data of an EVENT


class _Plain(msgspec.Struct, frozen=True):
    """Common reading and writing of what has no data."""

    def to_bytes(self) -> bytes:
        return b""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return Malformed(f"{len(data)} bytes of data where none belong") if data else cls()


class Fault(msgspec.Struct, frozen=True):
    """A fault began. `severity` is 1 warning, 2 error; `where` the device's own number of the place, 0 for none."""

    KIND: ClassVar[int] = 0x01
    code: int
    severity: int
    where: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.code, self.severity, self.where))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 3 or data[1] not in {1, 2}:
            return Malformed("a fault is code, severity 1 or 2, where")
        return cls(*data)


class Recovered(msgspec.Struct, frozen=True):
    """The fault is over, everywhere."""

    KIND: ClassVar[int] = 0x02
    code: int

    def to_bytes(self) -> bytes:
        return bytes((self.code,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 else Malformed("a recovery is one code")


class Started(_Plain, frozen=True):
    """The device started; what happened while it was off it did not see."""

    KIND: ClassVar[int] = 0x03


class Covered(_Plain, frozen=True):
    """Shaker: the dome is over the dice and its clasps are shut."""

    KIND: ClassVar[int] = 0x10


class Uncovered(_Plain, frozen=True):
    """Shaker: the dome was lifted."""

    KIND: ClassVar[int] = 0x11


LEVER = 1
ELECTRONIC = 2


class Agitated(msgspec.Struct, frozen=True):
    """Shaker: `cycles` pulls of the lever (mode LEVER), or agitations by the motor (mode ELECTRONIC)."""

    KIND: ClassVar[int] = 0x12
    mode: int
    cycles: int = 1

    def to_bytes(self) -> bytes:
        return bytes((self.mode, self.cycles))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) != 2 or data[0] not in {LEVER, ELECTRONIC} or not data[1]:
            return Malformed("an agitation is mode 1 or 2, cycles from 1")
        return cls(*data)


class Read(msgspec.Struct, frozen=True):
    """Shaker: the faces it read, and how many dice lie on another or are not flat."""

    KIND: ClassVar[int] = 0x13
    faces: tuple[int, ...]
    stacked: int = 0
    leaning: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.stacked, self.leaning, len(self.faces), *self.faces))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        if len(data) < 3 or data[2] != len(data) - 3 or data[2] > MAX_FACES:
            return Malformed(f"a reading is stacked, leaning, n up to {MAX_FACES}, n faces")
        if any(not 1 <= face <= 6 for face in data[3:]):
            return Malformed("a face is 1 to 6")
        return cls(tuple(data[3:]), data[0], data[1])


class BetsOpened(_Plain, frozen=True):
    """Console: bets may be placed."""

    KIND: ClassVar[int] = 0x20


class BetsClosed(_Plain, frozen=True):
    """Console: the bell."""

    KIND: ClassVar[int] = 0x21


class RoundVoid(msgspec.Struct, frozen=True):
    """Console: the round is declared void."""

    KIND: ClassVar[int] = 0x22
    reason: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.reason,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 else Malformed("a void is one reason")


class Paid(_Plain, frozen=True):
    """Console: losers collected, winners paid."""

    KIND: ClassVar[int] = 0x23


class NewShoe(msgspec.Struct, frozen=True):
    """Console: freshly shuffled cards stand in the shoe; `decks` 0 where the console does not know."""

    KIND: ClassVar[int] = 0x24
    decks: int = 0

    def to_bytes(self) -> bytes:
        return bytes((self.decks,))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | Malformed:
        return cls(*data) if len(data) == 1 and data[0] <= 12 else Malformed("a new shoe is 0 to 12 decks")


class CutCard(_Plain, frozen=True):
    """Console: the cut card came out."""

    KIND: ClassVar[int] = 0x25


class DemoRound(_Plain, frozen=True):
    """Console: the next round is a demonstration."""

    KIND: ClassVar[int] = 0x26


Happening: TypeAlias = (
    Fault
    | Recovered
    | Started
    | Covered
    | Uncovered
    | Agitated
    | Read
    | BetsOpened
    | BetsClosed
    | RoundVoid
    | Paid
    | NewShoe
    | CutCard
    | DemoRound
)

HAPPENINGS: dict[int, type[Happening]] = {happening.KIND: happening for happening in get_args(Happening)}


def read_happening(kind: int, data: bytes) -> Happening | Malformed:
    """What the kind and data of an EVENT say."""
    happening = HAPPENINGS.get(kind)
    if happening is None:
        return Malformed("this kind of event is not known")
    return happening.from_bytes(data)
