"""A simulated LED sign with the Alpha protocol: files in its memory, and what it shows of them.

It follows the public notes on the protocol and on a measured BetaBrite. It finds the speed from at least five NULs,
accepts a frame only complete and for its address, and keeps a file only if its memory has room: a string that is too
long empties its file. Reads are answered at its own address with the write command that would restore the content; the
answer takes 60 ms and the time of its bytes. Partitioning erases the memory; for a second the sign is blank and ignores
frames. While it plays, its first file gets the rest of the memory, and reading the configuration shows this.

Errors of a frame stay in its serial error register until it is cleared. `acknowledges`: it sends ACK or NAK after each
frame, with the register. `counters`: labels 1 to 5 are its counters', and their files cannot be written.
`readable=False` is a sign that answers no reads.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

from protocols import alpha_sign as wire
from simulators.devices.device import Ailment

BYTE = 10 / 9600  # seconds
ANSWERING = 0.06
SLOW, SLOWLY = 30.0, 1.5
WIPING = 1.0
STARTING = 2.0
DIP, OUTAGE = 3.0, 40.0
PAGE = 3.0  # seconds for each part of a text
MISHEARD = 2
POOL = 0x0B00  # bytes of its memory
PLAYED = 5.0  # seconds of playing after which the first file gets the rest of the memory
ANSWER_SYNC = 20
COUNTERS = "12345"
REMOTE_TEXT = "TEST"


class Sign:
    """The device."""

    name: ClassVar[str] = "alpha_sign"
    faults: ClassVar[Mapping[str, Ailment]] = {
        "write_only": Ailment(
            "its transmitter has failed: it shows, and never answers",
            ("device.offline", "sign.no_read_back"),
            "none",
            person=True,
        ),
        "memory_lost": Ailment(
            "no power for 3 s and a flat battery: all files are gone", ("sign.dark",), "none", person=False
        ),
        "ignores_writes": Ailment(
            "somebody left it in its programming mode: it answers, and takes nothing that is written from now on",
            ("sign.memory",),
            "none",
            person=True,
        ),
        "dark": Ailment(
            "a fault of its memory: parts of the strings are missing, lit and read back",
            ("sign.dark", "sign.memory"),
            "none",
            person=True,
        ),
        "overwritten": Ailment("somebody wrote another text by remote control", ("sign.dark",), "none"),
        "power_loss": Ailment("no power for 40 s; the files are kept", ("device.offline", "sign.no_read_back"), "none"),
        "slow": Ailment("it answers 1.5 s late, for 30 s", (), "none"),
        "misheard": Ailment("it receives the next two frames damaged and answers NAK", ("sign.checksum",), "none"),
        "full_buffer": Ailment(
            "it is too slow for the next two frames and answers NAK: its buffer overflows", ("sign.overflow",), "none"
        ),
        "old_firmware": Ailment(
            "its processor is replaced by one without string files: it answers them with NAK",
            ("sign.illegal", "sign.memory"),
            "none",
            person=True,
        ),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before an answer", (), "none"),
        "half_frame": Ailment("an answer cut in half; the host asks again", (), "none"),
        "repeated": Ailment("answers that come twice", (), "none"),
        "silence": Ailment("nothing passes for 8 s; the host retries for longer", (), "none"),
        "slow_drip": Ailment("each byte of an answer comes late", (), "none"),
        "wrong_baud": Ailment("6 s at a wrong speed; the host retries for longer", (), "none"),
        "unplugged": Ailment("the cable is pulled for 5 s; the sign still shows its text", ("device.offline",), "none"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()

    def __init__(
        self,
        rng: Random,
        *,
        address: str = "01",
        readable: bool = True,
        acknowledges: bool = False,
        counters: bool = False,
    ) -> None:
        """As new: no files, nothing lit."""
        self._rng = rng
        self._address = address
        self._readable = readable
        self._acknowledges = acknowledges
        self._counters = counters
        self._errors = wire.Errors(0)
        self._decoder = wire.Decoder()
        self._line: deque[tuple[float, bytes]] = deque(maxlen=64)
        self._memory = wire.ConfigureMemory()
        self._texts: dict[str, wire.WriteText] = {}
        self._strings: dict[str, str] = {}
        self._sequence = wire.RunSequence("")
        self._priority = wire.WriteText(wire.PRIORITY)
        self._off_until = self._blank_until = self._slow_until = float("-inf")
        self._mute = self._stubborn = self._dark = self._old = False
        self._misheard: deque[wire.Errors] = deque()
        self._divided_at = float("-inf")
        self.wipes = 0
        """How often its memory was divided."""
        self.beeps = 0

    # ---- display

    def showing(self, now: float) -> str:
        """The text that it shows now; empty when it is dark."""
        if now < max(self._off_until, self._blank_until):
            return ""
        if self._priority.segments:
            return self._lit(self._priority.segments, now)
        labels = self._sequence.labels or "".join(self._texts)
        texts = [segment for label in labels if label in self._texts for segment in self._texts[label].segments]
        return self._lit(texts, now)

    def pages(self, now: float) -> list[str]:
        """All texts that it shows in turn, from `now` on."""
        seen = [self.showing(now + n * PAGE) for n in range(16)]
        return list(dict.fromkeys(seen))

    def _lit(self, segments: list[wire.Segment] | tuple[wire.Segment, ...], now: float) -> str:
        if not segments:
            return ""
        before, *calls = segments[int(now / PAGE) % len(segments)].text.split(wire.CALL_STRING)
        text = before + "".join(self._string(call[:1]) + call[1:] for call in calls)
        return "".join(character for character in text if " " <= character <= "~")

    def _string(self, label: str) -> str:
        text = "0" if self._counters and label in COUNTERS else self._strings.get(label, "")
        return text[: len(text) // 2] if self._dark else text

    # ---- Device

    def due(self) -> float:
        """When its next answer is sent completely."""
        return self._line[0][0] if self._line else float("inf")

    def wake(self, now: float) -> bytes:
        """The answers that are sent completely."""
        said = b""
        while self._line and self._line[0][0] <= now:
            said += self._line.popleft()[1]
        return said

    def hear(self, data: bytes, now: float) -> bytes:
        """Frames from the host. `wake` returns the answers later."""
        if now < max(self._off_until, self._blank_until):
            self._decoder = wire.Decoder()
            return b""
        for message in self._decoder.feed(data):
            match message:
                case wire.Frame(commands, address=address, sync=sync) if sync >= wire.SYNC and self._is_me(address):
                    if self._misheard:
                        self._errors |= self._misheard.popleft()
                        self._say(wire.Nak(self._errors), now)
                        continue
                    taken = [self._obey(command, now, own=address == self._address) for command in commands]
                    if all(taken) and self._acknowledges:
                        self._say(wire.Ack(self._errors), now)
                    elif not all(taken):
                        self._errors |= wire.Errors.ILLEGAL
                        if self._acknowledges or self._old:
                            self._say(wire.Nak(self._errors), now)
                case wire.Broken():
                    self._errors |= wire.Errors.CHECKSUM
                    if self._acknowledges:
                        self._say(wire.Nak(self._errors), now)
                case _:
                    pass
        return b""

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What a person can do to it."""
        return {"reset": self.reset}

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "write_only":
                self._mute = True
            case "memory_lost":
                self._power_off(now + DIP)
                self._wipe(wire.ConfigureMemory())
            case "ignores_writes":
                self._stubborn = True
            case "dark":
                self._dark = True
            case "overwritten":
                for label in self._texts:
                    self._texts[label] = wire.WriteText(label, (wire.Segment(REMOTE_TEXT),))
            case "power_loss":
                self._power_off(now + OUTAGE)
            case "slow":
                self._slow_until = now + SLOW
            case "misheard":
                self._misheard.extend([wire.Errors.CHECKSUM] * MISHEARD)
            case "full_buffer":
                self._misheard.extend([wire.Errors.OVERFLOW] * MISHEARD)
            case "old_firmware":
                self._old = True
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}; it has: {', '.join(self.faults)}")

    def repair(self, now: float) -> None:  # noqa: ARG002 - as every device
        """Transmitter, memory and processor are replaced, the programming mode is left."""
        self._mute = self._stubborn = self._dark = self._old = False

    def reset(self, now: float) -> None:
        """Start again, with its memory as it is."""
        self._blank_until = now + STARTING

    # ---- inside

    def _is_me(self, address: str) -> bool:
        return address == wire.EVERY_SIGN or all(
            asked in ("?", own) for asked, own in zip(address, self._address, strict=True)
        )

    def _power_off(self, until: float) -> None:
        self._off_until = until
        self._line.clear()
        self._decoder = wire.Decoder()

    def _wipe(self, memory: wire.ConfigureMemory) -> None:
        self._memory = memory
        self._texts.clear()
        self._strings.clear()
        self._sequence = wire.RunSequence("")
        self._priority = wire.WriteText(wire.PRIORITY)

    def _room(self, label: str, kind: str) -> int:
        """Bytes of the file `label`, 0 where there is no such file."""
        return next((file.size for file in self._memory.files if (file.label, file.kind) == (label, kind)), 0)

    def _obey(self, command: wire.Command, now: float, *, own: bool) -> bool:
        """Execute the command; whether it was valid."""
        if not self._legal(command):
            return False
        answer = self._answer(command, now)
        if answer is not None:
            if own and self._readable:
                self._say(wire.Frame((answer,), "0", "00", sync=ANSWER_SYNC), now)
        elif not self._stubborn:
            self._write(command, now)
        return True

    def _legal(self, command: wire.Command) -> bool:
        match command:
            case wire.WriteString(label):
                return not self._old and not (self._counters and label in COUNTERS)
            case wire.WriteText(label):
                return not (self._counters and label in COUNTERS)
            case _:
                return True

    def _answer(self, command: wire.Command, now: float) -> wire.Command | None:
        """The answer to a read command; None for another command."""
        match command:
            case wire.ReadMemory():
                return self._division(now)
            case wire.ReadErrors():
                return wire.SerialErrors(self._errors)
            case wire.ReadRunSequence():
                return self._sequence
            case wire.ReadText(wire.PRIORITY):
                return self._priority
            case wire.ReadText(label):
                return self._texts.get(label, wire.WriteText(label))
            case wire.ReadString(label):
                return wire.WriteString(label, self._string(label))
            case _:
                return None

    def _division(self, now: float) -> wire.ConfigureMemory:
        """Its files; while it plays, the first one has the rest of the memory."""
        if not self._memory.files or now < self._divided_at + PLAYED:
            return self._memory
        first, *others = self._memory.files
        left = POOL - sum(file.size for file in others)
        size = max(first.size, left)
        return wire.ConfigureMemory(
            (wire.File(first.label, first.kind, size, locked=first.locked, times=first.times), *others)
        )

    def _write(self, command: wire.Command, now: float) -> None:
        match command:
            case wire.ClearErrors():
                self._errors = wire.Errors(0)
            case wire.ConfigureMemory():
                self._wipe(command)
                self._divided_at = now
                self.wipes += 1
                self._blank_until = now + WIPING
            case wire.WriteText(wire.PRIORITY):
                self._priority = command
            case wire.WriteText(label, segments) if _size(segments) <= self._room(label, "A"):
                self._texts[label] = command
            case wire.WriteString(label, text):
                self._strings[label] = text if len(text) <= self._room(label, "B") else ""
            case wire.RunSequence():
                self._sequence = command
            case wire.SoftReset():
                self.reset(now)
            case wire.Beep():
                self.beeps += 1
            case _:
                pass

    def _say(self, message: wire.Frame | wire.Ack | wire.Nak, now: float) -> None:
        if self._mute:
            return
        data = wire.encode(message)
        start = now + (SLOWLY if now < self._slow_until else ANSWERING)
        if self._line:
            start = max(start, self._line[-1][0])
        self._line.append((start + len(data) * BYTE, data))


def _size(segments: tuple[wire.Segment, ...]) -> int:
    return sum(len(segment.text) + 3 for segment in segments)
