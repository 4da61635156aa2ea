"""Alpha sign protocol (Adaptive's M-Protocol; Alpha and BetaBrite LED signs): frames to commands and back.

Source: the public programs alphasign, python-alphasign and betabrite; their checksum rule recomputed for the examples
in the tests. 9600 8N1 or 4800 7E2; the sign finds the speed from the NULs. A frame, both ways:

    NUL * 5 or more · SOH · type · address, two characters · { STX command [ETX [checksum]] } * n · EOT

The checksum is four upper-case hex digits, the 16-bit sum from STX through ETX; one command alone may come without it.
Several SOH instead of NUL also serve for the speed. Some programs send FF after STX in place of the pause that nested
commands need; it is skipped. A command is its code and data. An unknown command is Other, never an error.

A sign answers a read command with the write command for the same content, after 20 NULs, with type and address 0 00.
A sign whose ACK and NAK are switched on sends one of them, outside of any frame, and a status byte after it: its serial
error register, in which bit 6 is always set. The same byte is the answer to a read of that register. A memory
configuration that is read back may give the first file more bytes than it was given: the sign adds what is left over.

Accepts any bytes without an exception: Broken and Garbage are values. NUL and SOH between frames mean nothing.
"""

import re
from enum import IntFlag
from typing import TypeAlias

from msgspec import Struct

MAX_FRAME = 4096  # bytes from SOH to EOT; a sign's biggest file could be 64 KiB, no display of amounts needs it
MAX_STRING = 125
SYNC = 5

CALL_STRING = "\x10"
EVERY_SIGN = "00"
PRIORITY = "0"
ALWAYS = "FF00"

POSITIONS = ' "&012<>'  # middle, top, bottom, fill, left, right; some signs have the last two as < and >
HOLD, FLASH, ROTATE = "b", "c", "a"
_MODES = "abcefghijklmopqrstuv"
_MODES_N = "n[0-9A-CSU-Z]"
_STATUS, _ALWAYS_SET = range(0x40, 0x80), 0x40

_SEGMENT = re.compile(rf"\x1b([{re.escape(POSITIONS)}])({_MODES_N}|[{_MODES}])([^\x1b]*)")
_FILE = re.compile(r"([ -~])([ABD])([UL])([0-9A-F]{4})([0-9A-F]{4})")
_START = re.compile(rb"[\x00\x01]*\x01")
_END = re.compile(rb"[\x00\x01\x04]")
_FRAME = re.compile(rb"\x01([!-~])([0-9A-F?]{2})((?:\x02[^\x00-\x04]+(?:\x03(?:[0-9A-F]{4})?)?)+)\x04")
_COMMAND = re.compile(rb"\x02([^\x00-\x04]+)(?:(\x03)([0-9A-F]{4})?)?")
_DATA = re.compile(r"[\x05-\x7f]*")


class Errors(IntFlag):
    """The serial error register: errors in what the sign received since it was cleared."""

    PARITY = 1
    FRAMING = 2
    TIMEOUT = 4
    OVERFLOW = 8
    CHECKSUM = 16
    ILLEGAL = 32
    """An illegal command or file label."""


# ---- commands


class Segment(Struct, frozen=True):
    """A part of a text file: its position, its mode, and its characters.

    An empty `position` is text without the escape of position and mode. `text` contains control codes as they are:
    CALL_STRING and a label shows that string file.
    """

    text: str
    position: str = " "
    mode: str = HOLD


class WriteText(Struct, frozen=True):
    """Write a text file; the display restarts. Label PRIORITY overrides all others until it is written without
    segments.
    """

    label: str
    segments: tuple[Segment, ...] = ()


class ReadText(Struct, frozen=True):
    """Read a text file."""

    label: str


class WriteString(Struct, frozen=True):
    """Write a string file, at most MAX_STRING characters; text files that call it change without blanking."""

    label: str
    text: str = ""


class ReadString(Struct, frozen=True):
    """Read a string file."""

    label: str


class File(Struct, frozen=True):
    """One file of the memory, of `size` bytes. `times`: four hex digits, when a text file is shown."""

    label: str
    kind: str  # A text, B string, D dots
    size: int
    locked: bool = False  # for the sign's remote control
    times: str = "0000"


class ConfigureMemory(Struct, frozen=True):
    """Partition the memory: all files are erased and the sign goes blank. No files: clear it, which takes a second."""

    files: tuple[File, ...] = ()


class ReadMemory(Struct, frozen=True):
    """Read the partition of the memory."""


class RunSequence(Struct, frozen=True):
    """Show these text files in turn, each at its time."""

    labels: str
    order: str = "T"
    locked: bool = False


class ReadRunSequence(Struct, frozen=True):
    """Read the run sequence."""


class ReadErrors(Struct, frozen=True):
    """Read the serial error register."""


class SerialErrors(Struct, frozen=True):
    """The answer to ReadErrors."""

    errors: Errors


class ClearErrors(Struct, frozen=True):
    """Clear the serial error register."""


class SoftReset(Struct, frozen=True):
    """Restart, keeping the memory."""


class Beep(Struct, frozen=True):
    """Sound: `frequency` 0 to 255 in the sign's units, tenths of a second 1 to 15, repetitions 0 to 15."""

    frequency: int = 0
    tenths: int = 1
    repeat: int = 0


class Other(Struct, frozen=True):
    """An unknown command."""

    code: str
    data: str = ""


Command: TypeAlias = (
    WriteText
    | ReadText
    | WriteString
    | ReadString
    | ConfigureMemory
    | ReadMemory
    | RunSequence
    | ReadRunSequence
    | ReadErrors
    | SerialErrors
    | ClearErrors
    | SoftReset
    | Beep
    | Other
)


# ---- decoding


class Frame(Struct, frozen=True):
    """One transmission: `sync` NULs or SOHs before it, `checked` when every command has its right checksum."""

    commands: tuple[Command, ...]
    kind: str = "Z"  # all signs
    address: str = EVERY_SIGN
    sync: int = SYNC
    checked: bool = True
    raw: bytes = b""


class Ack(Struct, frozen=True):
    """Accepted. `errors`: the status byte after it; None if there was none."""

    errors: Errors | None = None
    raw: bytes = b"\x06"


class Nak(Struct, frozen=True):
    """Not accepted. `errors`: as of Ack."""

    errors: Errors | None = None
    raw: bytes = b"\x15"


class Broken(Struct, frozen=True):
    """Something that began as a frame, and its error."""

    raw: bytes
    reason: str


class Garbage(Struct, frozen=True):
    """Bytes that are no part of a frame."""

    raw: bytes


Message: TypeAlias = Frame | Ack | Nak | Broken | Garbage


class Decoder:
    """Turns bytes in any pieces into messages. Holds at most MAX_FRAME bytes and a number."""

    def __init__(self, *, unchecked: bool = True) -> None:
        """`unchecked`: accept commands without a checksum."""
        self._unchecked = unchecked
        self._held = b""
        self._searched = 0  # bytes of `held`, a frame, that contain no end
        self._sync = 0
        self._clean = True  # nothing but NUL, ACK and NAK since the last frame

    @property
    def waiting(self) -> int:
        """The number of bytes of an unfinished frame."""
        return len(self._held)

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`; garbage without waiting for its end. An ACK waits for the byte after it."""
        held = self._held + data
        messages: list[Message] = []
        at, searched = 0, self._searched
        while at < len(held):
            if held[at] != 1:
                before, at = at, self._gap(held, at, messages)
                if at == before:
                    break
                continue
            end = _END.search(held, max(at + 1, searched), at + MAX_FRAME)
            if end is None:
                if len(held) - at < MAX_FRAME:
                    break
                messages.append(Broken(held[at : at + MAX_FRAME], f"no end in {MAX_FRAME} bytes"))
                at += MAX_FRAME
                self._sync, self._clean = 0, False
            elif held[end.start()] == 4:
                message = self._judge(held[at : end.end()])
                messages.append(message)
                at = end.end()
                self._sync, self._clean = 0, isinstance(message, Frame)
            elif end.start() == at + 1 and (run := _START.match(held, at)) is not None:
                skipped = max(run.end() - 1 - at, 1)  # an SOH before a NUL was for the speed, too
                self._sync += skipped
                at += skipped
            else:
                messages.append(Broken(held[at : end.start()], "a frame begins within a frame"))
                at = end.start()
                self._sync, self._clean = 0, False
            searched = 0
        self._held = held[at:]
        self._searched = len(self._held)
        return messages

    def _gap(self, held: bytes, at: int, messages: list[Message]) -> int:
        """The bytes before the next SOH, and its position."""
        run = _START.match(held, at)
        if run is not None:  # NUL and SOH mixed: the last SOH is the frame's
            self._sync += run.end() - 1 - at
            return run.end() - 1
        soh = held.find(1, at)
        end = soh if soh >= 0 else len(held)
        gap = held[at:end]
        acks = self._acks(gap, messages, ended=soh >= 0) if self._clean else 0
        if self._clean and acks < len(gap) and gap[acks] in b"\x06\x15":  # its status byte may follow
            end = at + acks
            gap = gap[:acks]
        nuls = len(gap) - len(gap.rstrip(b"\x00"))
        self._sync = self._sync + nuls if nuls == len(gap) else nuls
        if rest := gap[acks:].replace(b"\x00", b""):
            self._clean = False
            messages.append(Garbage(rest))
        return end

    @staticmethod
    def _acks(gap: bytes, messages: list[Message], *, ended: bool) -> int:
        """The number of bytes of `gap` that are NUL, ACK and NAK, the latter with their status.

        An ACK or NAK in the last byte is kept until the gap has `ended`.
        """
        at = 0
        while at < len(gap) and gap[at] in b"\x00\x06\x15":
            if gap[at]:
                if at + 1 == len(gap) and not ended:
                    break
                status = bytes(byte for byte in gap[at + 1 : at + 2] if byte in _STATUS)
                kind = Ack if gap[at] == 6 else Nak
                errors = Errors(status[0] & ~_ALWAYS_SET) if status else None
                messages.append(kind(errors, gap[at : at + 1] + status))
                at += len(status)
            at += 1
        return at

    def _judge(self, raw: bytes) -> Frame | Broken:
        found = _FRAME.fullmatch(raw)
        if found is None:
            return Broken(raw, "no such frame")
        commands = []
        checked = True
        for one in _COMMAND.finditer(found[3]):
            body, etx, checksum = one.groups()
            if checksum is None:
                checked = False
            elif int(checksum, 16) != (sum(body) + 5) & 0xFFFF:
                return Broken(raw, "wrong checksum")
            if etx is None and one.end() != len(found[3]):
                return Broken(raw, "nested commands without ETX")
            commands.append(_parse(body.removeprefix(b"\xff").decode("latin-1")))
        if not checked and not self._unchecked:
            return Broken(raw, "no checksum")
        return Frame(tuple(commands), found[1].decode(), found[2].decode(), self._sync, checked, raw)


def _parse(body: str) -> Command:
    code, label, rest = body[:1], body[1:2], body[2:]
    match code:
        case "G" if label and len(rest) <= MAX_STRING:
            return WriteString(label, rest)
        case "H" if label and not rest:
            return ReadString(label)
        case "A" if label:
            segments = _segments(rest)
            return Other(code, body[1:]) if segments is None else WriteText(label, segments)
        case "B" if label and not rest:
            return ReadText(label)
        case "E":
            return _special(label, rest) or Other(code, body[1:])
        case "F" if body == "F$":
            return ReadMemory()
        case "F" if body == "F.":
            return ReadRunSequence()
        case "F" if body == "F*":
            return ReadErrors()
        case _:
            return Other(code, body[1:])


def _segments(text: str) -> tuple[Segment, ...] | None:
    before, escape, _ = text.partition("\x1b")
    first = (Segment(before, "", ""),) if before else ()
    at = len(before)
    if not escape:
        return first
    found = []
    while (one := _SEGMENT.match(text, at)) is not None:
        found.append(Segment(one[3], one[1], one[2]))
        at = one.end()
    return (*first, *found) if at == len(text) else None


def _special(label: str, rest: str) -> Command | None:
    match label:
        case "$":
            files = tuple(File(one[1], one[2], int(one[4], 16), one[3] == "L", one[5]) for one in _FILE.finditer(rest))
            return ConfigureMemory(files) if len(files) * 11 == len(rest) else None
        case "." if len(rest) >= 2 and rest[1] in "UL":
            return RunSequence(rest[2:], rest[0], rest[1] == "L")
        case "," if not rest:
            return SoftReset()
        case "*" if len(rest) == 1 and ord(rest) in _STATUS:
            return SerialErrors(Errors(ord(rest) & ~_ALWAYS_SET))
        case "4" if not rest:
            return ClearErrors()
        case "(" if (beep := re.fullmatch("2([0-9A-F]{2})([1-9A-F])([0-9A-F])", rest)) is not None:
            return Beep(*(int(digits, 16) for digits in beep.groups()))
        case _:
            return None


def _body(command: Command) -> str:
    match command:
        case WriteText(label, segments):
            return f"A{label}" + "".join(
                (f"\x1b{one.position}{one.mode}" if one.position else "") + one.text for one in segments
            )
        case ReadText(label):
            return f"B{label}"
        case WriteString(label, text):
            return f"G{label}{text}"
        case ReadString(label):
            return f"H{label}"
        case ConfigureMemory(files):
            return "E$" + "".join(
                f"{file.label}{file.kind}{'L' if file.locked else 'U'}{file.size:04X}{file.times}" for file in files
            )
        case ReadMemory():
            return "F$"
        case RunSequence(labels, order, locked):
            return f"E.{order}{'L' if locked else 'U'}{labels}"
        case ReadRunSequence():
            return "F."
        case ReadErrors():
            return "F*"
        case SerialErrors(errors):
            return f"E*{chr(_ALWAYS_SET | errors)}"
        case ClearErrors():
            return "E4"
        case SoftReset():
            return "E,"
        case Beep(frequency, tenths, repeat):
            return f"E(2{frequency:02X}{tenths:X}{repeat:X}"
        case Other(code, data):
            return code + data


def encode(message: Frame | Ack | Nak) -> bytes:
    """The bytes, with the NULs before a frame. Raises ValueError for values that a frame cannot carry."""
    if not isinstance(message, Frame):
        status = b"" if message.errors is None else bytes([_ALWAYS_SET | message.errors])
        return (b"\x06" if isinstance(message, Ack) else b"\x15") + status
    groups = []
    for command in message.commands:
        body = _body(command)
        if _DATA.fullmatch(body) is None or _parse(body) != command:
            raise ValueError(f"no frame can carry {command}")
        data = body.encode()
        check = b"\x03%04X" % ((sum(data) + 5) & 0xFFFF) if message.checked else b""
        groups.append(b"\x02" + data + check)
    frame = b"\x01" + (message.kind + message.address).encode() + b"".join(groups) + b"\x04"
    if _FRAME.fullmatch(frame) is None or len(frame) > MAX_FRAME or message.sync < 0:
        raise ValueError(f"no frame can carry {message.commands} of type {message.kind!r} to {message.address!r}")
    if not message.checked and len(groups) > 1:
        raise ValueError("nested commands need their checksums")
    return bytes(message.sync) + frame
