"""Polls and answers as frames on the line: `encode`, and a decoder for each side."""

import re
from collections.abc import Iterable, Mapping

from protocols.sas.bodies import read_body, write_body
from protocols.sas.messages import (
    Ack,
    Answer,
    Busy,
    Garbage,
    GeneralPoll,
    Happened,
    LongPoll,
    LoopBreak,
    Nack,
    Poll,
    RealTime,
    Reply,
    Unknown,
)
from protocols.sas.tables import NO_ANSWER, SHAPES, VARIABLE
from protocols.sas.values import crc, from_bcd, to_bcd, to_byte, whole

BUSY, REAL_TIME = 0x00, 0xFF
MAX_FRAME = 260  # address, command, length, 255, checksum


def _address(value: int, lowest: int = 1) -> int:
    if not lowest <= value <= 127:
        raise ValueError(f"address {value} is not {lowest} to 127")
    return value


def encode(message: Poll | Answer) -> bytes:  # noqa: C901 - a case for each message
    """The bytes of a poll or an answer. Raises ValueError for values that the wire cannot carry."""
    match message:
        case GeneralPoll(address):
            return bytes((0x80 | _address(address, 0),))
        case LongPoll(address, command, data):
            return _encode_poll(_address(address, 0), command, data)
        case Happened(code):
            return to_byte(code)
        case Ack(address) | LoopBreak(address):
            return bytes((_address(address),))
        case Nack(address):
            return bytes((0x80 | _address(address),))
        case Busy(address):
            return bytes((_address(address), BUSY))
        case RealTime(address, code, data):
            frame = bytes((_address(address), REAL_TIME)) + to_byte(code) + data
            if len(frame) + 2 > MAX_FRAME:
                raise ValueError("too much data")
            return frame + crc(frame)
        case Reply(address, command, body):
            shape = SHAPES.get(command)
            if shape is None or shape.answer == NO_ANSWER:
                raise ValueError(f"poll {command:02X} has no such answer")
            try:
                told = write_body(command, body)
            except OverflowError as error:
                raise ValueError(f"{command:02X} does not carry {body}") from error
            if shape.answer != VARIABLE and len(told) != shape.answer:
                raise ValueError(f"{command:02X} does not carry {body}")
            if read_body(command, told) != body:
                raise ValueError(f"{command:02X} does not carry {body}")
            length = to_byte(len(told)) if shape.answer == VARIABLE else b""
            frame = bytes((_address(address), command)) + length + told
            return frame + crc(frame)
        case Unknown(address, command, data):
            frame = bytes((_address(address), command)) + data
            return frame + crc(frame)
        case Garbage(raw):
            return raw


def _encode_poll(address: int, command: int, data: bytes) -> bytes:
    shape = SHAPES.get(command)
    if shape is None:
        raise ValueError(f"poll {command:02X} is not known here")
    frame = bytes((address, command))
    if shape.ask == VARIABLE:
        frame += to_byte(len(data))
    elif len(data) != shape.ask:
        raise ValueError(f"poll {command:02X} carries {shape.ask} bytes, not {len(data)}")
    frame += data
    return frame if shape.kind == "R" else frame + crc(frame)


def game_poll(address: int, command: int, game: int = 0, more: bytes = b"") -> LongPoll:
    """A poll that begins with a game number; 0 is the whole machine."""
    return LongPoll(address, command, to_bcd(game, 2) + more)


def meters_poll(address: int, command: int, codes: Iterable[int], game: int = 0) -> LongPoll:
    """Poll 2F, 6F or AF for the meters `codes` of a game; 0 is the whole machine. 2F takes ten, the others twelve."""
    width = 1 if command == 0x2F else 2
    return game_poll(address, command, game, b"".join(code.to_bytes(width, "little") for code in codes))


def broadcast(group: int, levels: Mapping[int, int], address: int = 0) -> LongPoll:
    """The amounts of a progressive, level to minor units, for every machine: poll 80 for one, 86 for several.

    Raises ValueError: groups are 1 to 255, levels 1 to 32, amounts ten digits.
    """
    if not 1 <= group <= 255 or not levels or not all(1 <= level <= 32 for level in levels):
        raise ValueError("a group is 1 to 255, a level 1 to 32")
    told = b"".join(to_byte(level) + to_bcd(amount, 5) for level, amount in sorted(levels.items()))
    return LongPoll(address, 0x80 if len(levels) == 1 else 0x86, to_byte(group) + told)


def levels_of(poll: LongPoll) -> tuple[int, dict[int, int]] | None:
    """Group, and level to minor units, of a poll 80 or 86; None for another one or invalid content."""
    data = poll.data
    if poll.command not in {0x80, 0x86} or len(data) < 7 or len(data) % 6 != 1 or not data[0]:
        return None
    try:
        levels = {data[at]: from_bcd(data[at + 1 : at + 6]) for at in range(1, len(data), 6)}
    except ValueError:
        return None
    return (data[0], levels) if all(1 <= level <= 32 for level in levels) else None


# ---- reading


class HostDecoder:
    """Turns the machine's bytes into answers to the poll given to `expect`. Holds at most one frame."""

    def __init__(self, address: int) -> None:
        """For the machine at `address`; no poll was sent yet."""
        self._address = _address(address)
        self._poll: Poll | None = None
        self._held = bytearray()
        self._lost = False
        self._unasked = re.compile(b"(?:%s)+|[^%s]+" % ((re.escape(bytes((address,))),) * 2))

    @property
    def waiting(self) -> bool:
        """An answer has begun: after a pause call `quiet`."""
        return bool(self._held) or self._lost

    def expect(self, poll: Poll) -> None:
        """`poll` is sent now: the next bytes answer it. Held bytes are dropped."""
        self._poll = poll
        self._held.clear()
        self._lost = False

    def feed(self, data: bytes) -> list[Answer]:
        """The answer, if `data` completes it; bytes that are out of step at once."""
        if self._lost:
            return [Garbage(data)] if data else []
        if self._poll is None:
            return self._nobody_asked(data)
        self._held += data
        size = self._needed()
        if size is not None and len(self._held) >= size:
            frame, rest = bytes(self._held[:size]), bytes(self._held[size:])
            if size and (answer := self._reply(frame)) is not None:
                self._held.clear()
                self._poll = None
                return [answer, *self.feed(rest)]
        if self._hopeless():
            held = bytes(self._held)
            self._held.clear()
            self._lost = True
            return [Garbage(held)]
        return []

    def quiet(self) -> list[Answer]:
        """The line paused: the held bytes are complete."""
        held, poll, lost = bytes(self._held), self._poll, self._lost
        self._held.clear()
        self._lost = False
        if lost:
            self._poll = None
            return []
        if not held:
            return []
        self._poll = None
        match poll, held:
            case GeneralPoll(), bytes() if len(held) == 1:
                return [Happened(held[0])]
            case LongPoll(command=command), bytes():
                shape = SHAPES.get(command)
                if held == bytes((self._address,)) and shape is not None and shape.answer == NO_ANSWER:
                    return [Ack(self._address)]
                if held == bytes((0x80 | self._address,)):
                    return [Nack(self._address)]
                if held[:2] == bytes((self._address, BUSY)) and len(held) == 2:
                    return [Busy(self._address)]
        return [self._checked(poll, held) or Garbage(held)]

    def _checked(self, poll: Poll | None, held: bytes) -> Answer | None:
        """An answer that its checksum shows to be complete, whatever its length."""
        if held[0] != self._address or len(held) < 5 or not whole(held):
            return None
        if held[1] == REAL_TIME:
            return RealTime(self._address, held[2], held[3:-2])
        return self._body(held) if isinstance(poll, LongPoll) and poll.command == held[1] else self._unknown(held)

    def _unknown(self, frame: bytes) -> Answer:
        return Unknown(self._address, frame[1], frame[2:-2])

    def _body(self, frame: bytes) -> Answer:
        """The content of a whole frame that answers what was asked."""
        command = frame[1]
        shape = SHAPES.get(command)
        if shape is None or shape.answer == NO_ANSWER:
            return self._unknown(frame)
        variable = shape.answer == VARIABLE
        if variable and frame[2] != len(frame) - 5:
            return self._unknown(frame)
        try:
            return Reply(self._address, command, read_body(command, frame[3 if variable else 2 : -2]))
        except ValueError:
            return self._unknown(frame)

    def _nobody_asked(self, data: bytes) -> list[Answer]:
        chirp, messages = LoopBreak(self._address), list[Answer]()
        for found in self._unasked.finditer(data):
            piece = found[0]
            messages += [chirp] * len(piece) if piece[0] == self._address else [Garbage(piece)]
        return messages

    def _needed(self) -> int | None:
        """The expected length of the answer to a long poll; None where it is not known (yet)."""
        held = self._held
        if not isinstance(self._poll, LongPoll) or len(held) < 3 or held[1] != self._poll.command:
            return None
        shape = SHAPES.get(self._poll.command)
        if shape is None or shape.answer == NO_ANSWER:
            return None
        return 5 + held[2] if shape.answer == VARIABLE else shape.answer + 4

    def _hopeless(self) -> bool:
        """Whether the held bytes cannot be an answer, even after a pause."""
        held = self._held
        if len(held) == 1:
            return isinstance(self._poll, LongPoll) and held[0] & 0x7F != self._address
        return len(held) > MAX_FRAME or (len(held) > 1 and held[0] != self._address)

    def _reply(self, frame: bytes) -> Answer | None:
        """The answer, where `frame` is whole and as long as it should be."""
        return self._body(frame) if frame[0] == self._address and whole(frame) else None


_GENERAL = [GeneralPoll(address) for address in range(128)] * 2
_GENERAL_RUN = re.compile(rb"[\x80-\xff]+")
_R_POLLS = {
    bytes((address, command)): LongPoll(address, command)
    for address in range(128)
    for command, shape in SHAPES.items()
    if shape.kind == "R"
}


class MachineDecoder:
    """Turns the host's bytes into polls, for all addresses on the line. Holds at most one frame.

    The wakeup bit is invisible here: after an unknown or damaged poll everything is dropped until `quiet`.
    """

    def __init__(self) -> None:
        """Begin in step: the next byte begins a poll."""
        self._held = b""
        self._lost = False

    @property
    def waiting(self) -> bool:
        """A poll has begun, or it is out of step: after a pause call `quiet`."""
        return bool(self._held) or self._lost

    def feed(self, data: bytes) -> list[Poll | Garbage]:
        """The polls completed by `data`."""
        if self._lost:
            return [Garbage(data)] if data else []
        data = self._held + data
        self._held = b""
        messages: list[Poll | Garbage] = []
        at, end = 0, len(data)
        while at < end:
            if (general := _GENERAL_RUN.match(data, at)) is not None:
                messages.extend(map(_GENERAL.__getitem__, general[0]))
                at = general.end()
                continue
            if (known := _R_POLLS.get(data[at : at + 2])) is not None:
                messages.append(known)
                at += 2
                continue
            size = self._size(data, at, end)
            if size > end - at:
                self._held = data[at:]
                break
            frame = data[at : at + size]
            if not size or not whole(frame):
                self._lost = True
                messages.append(Garbage(data[at:]))
                break
            start = 3 if SHAPES[frame[1]].ask == VARIABLE else 2
            messages.append(LongPoll(frame[0], frame[1], frame[start:-2]))
            at += size
        return messages

    def _size(self, data: bytes, at: int, end: int) -> int:
        """The size of the poll with a checksum at `at`: too large while unknown, 0 where there is no such poll."""
        if end - at < 2:
            return 2
        shape = SHAPES.get(data[at + 1])
        if shape is None:
            return 0
        if shape.ask != VARIABLE:
            return shape.ask + 4
        return 5 + data[at + 2] if end - at > 2 else 3

    def quiet(self) -> list[Poll | Garbage]:
        """A pause: the next byte begins a message."""
        held, self._held, self._lost = self._held, b"", False
        return [Garbage(held)] if held else []
