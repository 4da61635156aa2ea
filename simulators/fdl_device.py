"""The device's side of FDL, the same for every simulated device that speaks it (docs/protocols/fdl.md).

Rule of this file: written from the document, as a vendor would; it shares the codec with the drivers and nothing else.
"""

import random
from collections import deque
from typing import ClassVar

import msgspec

from protocols import fdl

RING = 256
BEAT = 1.0
RETRY = 0.2
BOOT = 1.5
SILENCE = 5.0
MOTION = 20.0

COMMON_FAULTS = ("silence", "garbage", "duplicate_frames", "power_loss", "memory_loss")


class _Kept(msgspec.Struct):
    """One event in the ring. `at` is None when the clock that knew it was lost with the power."""

    counter: int
    at: float | None
    kind: int
    data: bytes


class FdlDevice:
    """A device without sensors; what it sees is handed to `record`.

    Faults: "silence" deaf and mute for 5 s; "garbage" noise before the next bytes; "duplicate_frames" the next ten
    frames come twice; "power_loss" off for 1.5 s, what happens meanwhile is unseen; "memory_loss" the same and the
    ring is lost.
    """

    name: ClassVar[str] = "fdl_device"
    faults: ClassVar[tuple[str, ...]] = COMMON_FAULTS
    kind: ClassVar[int] = 0xFF
    model: ClassVar[str] = "Device"

    def __init__(self, rng: random.Random, serial: str = "SIM-1") -> None:
        self._rng = rng
        self._serial = serial
        self._epoch = rng.randint(1, fdl.MAX_COUNTER)
        self._ring: deque[_Kept] = deque(maxlen=RING)
        self._next = 1
        self._acked = 0
        self._open = False
        self._decoder = fdl.Decoder()
        self._seq = 0
        self._booted_at = 0.0
        self._boots_at: float | None = None
        self._forgets = False
        self._mute_until = 0.0
        self._beat_at = 0.0
        self._send_at = 0.0
        self._twice = 0
        self._noise = b""
        self._standing: dict[int, float] = {}

    @property
    def unacknowledged(self) -> int:
        """How many of its events the host has not yet said to be durable."""
        return self._next - 1 - self._acked

    # ---- Device

    def due(self) -> float:
        """When it wants to send next."""
        if self._boots_at is not None:
            return self._boots_at
        wants = [self._beat_at, *self._standing.values()]
        if self._open and self.unacknowledged:
            wants.append(self._send_at)
        return max(self._mute_until, min(wants))

    def wake(self, now: float) -> bytes:
        """Live until `now`; what it sends meanwhile."""
        if not self._awake(now):
            return b""
        sent = []
        if now >= self._beat_at:
            self._beat_at = now + BEAT
            uptime = int((now - self._booted_at) * 1000) & fdl.MAX_COUNTER
            flags = 0 if self._open else fdl.WAITS_FOR_HELLO
            sent.append(self._encode(fdl.Heartbeat(uptime, self._next, flags)))
        sent += self._deliver(now)
        return self._line(sent)

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host; what it answers at once."""
        if not self._awake(now):
            return b""
        sent = []
        for found in self._decoder.feed(data):
            if isinstance(found, fdl.Frame):
                sent += self._obey(found, now)
        sent += self._deliver(now)
        return self._line(sent)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "silence":
                self._mute_until = now + SILENCE
            case "garbage":
                self._noise = self._rng.randbytes(40)
            case "duplicate_frames":
                self._twice = 10
            case "power_loss":
                self.power_cycle(now, lose_memory=False)
            case "memory_loss":
                self.power_cycle(now, lose_memory=True)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}; it has: {', '.join(self.faults)}")

    # ---- what its sensors and its plug do

    def record(self, happening: fdl.Happening, now: float) -> None:
        """Something happened. A device that is off does not see it."""
        if self._boots(now):
            self._keep(happening, now)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """Off now, on again 1.5 s later. What it sent and was not acknowledged, it will send again."""
        self._boots_at = now + BOOT
        self._forgets = self._forgets or lose_memory
        self._mute_until = 0.0
        self._open = False

    def _fail(self, code: int, severity: int, now: float, where: int = 0) -> None:
        """A fault of the mechanics, over by itself after 20 s."""
        if self._boots(now) and code not in self._standing:
            self.record(fdl.Fault(code, severity, where), now)
            self._standing[code] = now + MOTION

    # ---- inside

    def _keep(self, happening: fdl.Happening, now: float) -> None:
        if not self.unacknowledged:
            self._send_at = now
        self._ring.append(_Kept(self._next, now, happening.KIND, happening.to_bytes()))
        self._next += 1

    def _boots(self, now: float) -> bool:
        """Whether it is on, switching itself on when its time has come."""
        if self._boots_at is not None and now >= self._boots_at:
            self._booted_at = self._beat_at = self._boots_at
            self._boots_at = None
            self._decoder = fdl.Decoder()
            if self._forgets:
                self._forgets = False
                self._epoch = self._epoch % fdl.MAX_COUNTER + 1
                self._ring.clear()
                self._next = 1
                self._acked = 0
            for kept in self._ring:
                kept.at = None
            self._keep(fdl.Started(), self._booted_at)
            for code in self._standing:
                self._keep(fdl.Recovered(code), self._booted_at)
            self._standing.clear()
        return self._boots_at is None

    def _awake(self, now: float) -> bool:
        if not self._boots(now):
            return False
        for code in [code for code, until in self._standing.items() if now >= until]:
            del self._standing[code]
            self._keep(fdl.Recovered(code), now)
        return now >= self._mute_until

    def _oldest(self) -> int:
        return self._ring[0].counter if self._ring else self._next

    def _encode(self, message: fdl.Message, seq: int | None = None) -> bytes:
        if seq is None:
            self._seq += 1
            seq = self._seq
        return fdl.encode(message, seq)

    def _identity(self) -> fdl.Identity:
        position = self._acked + 1 if self._open else 0
        return fdl.Identity(
            self.kind, self._epoch, self._oldest(), self._next, position, "Felt", self.model, self._serial, "1.0"
        )

    def _obey(self, frame: fdl.Frame, now: float) -> list[bytes]:
        match fdl.read(frame):
            case fdl.Hello(epoch, last):
                self._open = epoch == self._epoch and last < self._next
                if self._open:
                    self._acked = last
                    self._send_at = now
                return [self._encode(self._identity(), frame.seq)]
            case fdl.OtherVersion():
                return [self._encode(self._identity(), frame.seq)]
            case fdl.Ack(epoch, counter) if self._open and epoch == self._epoch and self._acked < counter < self._next:
                self._acked = counter
                self._send_at = now
            case fdl.Nak(_, epoch, expected) if self._open and epoch == self._epoch and 1 <= expected <= self._next:
                self._acked = expected - 1
                self._send_at = now
            case _:
                pass
        return []

    def _deliver(self, now: float) -> list[bytes]:
        """The oldest event that is not acknowledged, when it is time; its IDENTITY where that event is gone."""
        if not self._open or not self.unacknowledged or now < self._send_at:
            return []
        self._send_at = now + RETRY
        at = self._acked + 1 - self._oldest()
        if at < 0:
            return [self._encode(self._identity())]
        kept = self._ring[at]
        age = fdl.AGE_UNKNOWN if kept.at is None else int((now - kept.at) * 1000)
        return [self._encode(fdl.EventReport(kept.counter, age, kept.kind, kept.data))]

    def _line(self, frames: list[bytes]) -> bytes:
        out = bytearray()
        for frame in frames:
            out += self._noise + frame
            self._noise = b""
            if self._twice:
                self._twice -= 1
                out += frame
        return bytes(out)
