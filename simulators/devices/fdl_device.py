"""The device's side of FDL, the same for every simulated device that speaks it (docs/reference/protocols/fdl.md).

Written from the document, as a vendor would. It shares the codec with the drivers and nothing else.
"""

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from protocols.fdl import frame as fdl
from protocols.fdl.fields import Record
from simulators.devices.device import Ailment

RING = 256
BEAT = 1.0
RETRY = 0.2
BOOT = 1.5
SILENCE = 5.0
MOTION = 20.0

TICKETS = 8
FOREVER = float("inf")

COMMON_FAULTS = {
    "power_loss": Ailment("no power for 1.5 s; what happens meanwhile is unseen", ("device.online",), "suspended"),
    "memory_loss": Ailment("no power for 1.5 s, and the ring of events is lost", ("device.online",), "suspended"),
    "deaf": Ailment(
        "its receiver fails, it ends the session and receives no HELLO; its ring keeps what happens",
        ("device.offline", "device.refused"),
        "suspended",
        person=True,
    ),
    "sensor_dirty": Ailment("a sensor window is dirty", ("fdl.sensor_dirty",), "counts"),
    "low_voltage": Ailment("the supply voltage sags", ("fdl.voltage",), "counts"),
    "hot": Ailment("its vents are blocked", ("fdl.temperature",), "counts"),
    "door_open": Ailment("a cover is open", ("fdl.door",), "counts", person=True),
    "memory_fails": Ailment("a cell of its memory is bad", ("fdl.memory",), "counts", person=True),
    "self_test_fails": Ailment("it fails its self-test", ("fdl.self_test",), "counts", person=True),
}
"""Faults that every FDL device may have; a device's own `faults` give their effects on its rounds."""

FIRMWARE = {
    "counters_reset": Ailment(
        "power lost for 1.5 s; it begins to count anew and keeps its epoch, against the document",
        ("device.online", "fdl.counter_back"),
        "suspended",
        person=True,
    ),
    "malformed_frame": Ailment(
        "one EVENT too short, with a right CRC; then the right one", ("fdl.malformed",), "counts", person=True
    ),
    "strange_event": Ailment(
        "its firmware is newer and reports an event 7F", ("fdl.unknown_event",), "counts", person=True
    ),
}
"""Faults in which a device violates the document; the person who `repair`s it switches it off and on.

`counters_reset` is visible only if the host has received more events than the device reports at its start.
"""

LINE = {
    "garbage": Ailment("noise on the line", (), "counts"),
    "half_frame": Ailment("a frame cut in half", (), "counts"),
    "repeated": Ailment("frames that come twice", (), "counts"),
    "silence": Ailment("nothing passes for 8 s; the ring keeps what happens", ("device.offline",), "counts"),
    "slow_drip": Ailment("each byte comes late", (), "counts"),
    "wrong_baud": Ailment("6 s at a wrong speed", ("device.offline",), "counts"),
    "unplugged": Ailment("the cable is pulled for 5 s", ("device.offline",), "counts"),
}
"""Faults of the line cost no event: the device sends all of them again."""

_COMMON_CODES = {
    "sensor_dirty": 0x01,
    "memory_fails": 0x02,
    "self_test_fails": 0x03,
    "low_voltage": 0x04,
    "hot": 0x05,
    "door_open": 0x06,
}
WARNING, ERROR = 1, 2


class _Strange(Record, frozen=True):
    """An event of an unknown type."""

    KIND: ClassVar[int] = 0x7F


class _Kept(msgspec.Struct):
    """One event in the ring. `at` is None if the device lost its clock with the power."""

    counter: int
    at: float | None
    kind: int
    data: bytes


class FdlDevice:
    """A device without sensors; its subclasses pass their events to `record`."""

    name: ClassVar[str] = "fdl_device"
    faults: ClassVar[Mapping[str, Ailment]] = COMMON_FAULTS
    line: ClassVar[Mapping[str, Ailment]] = LINE
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()
    kind: ClassVar[int] = 0xFF
    model: ClassVar[str] = "Device"

    def __init__(self, rng: random.Random, serial: str = "SIM-1") -> None:
        self._rng = rng
        self._serial = serial
        self.hurry = 1.0
        """Its seconds per second of the host: it reports ages in the host's seconds, as every device does."""
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
        self._counts_anew = False
        self._stutters = False
        self._firmware = False
        self._deaf = False
        self._beat_at = 0.0
        self._send_at = 0.0
        self._standing: dict[int, float] = {}
        self._where: dict[int, int] = {}
        self._answers: deque[fdl.Answer] = deque(maxlen=TICKETS)

    def begin_in(self, epoch: int) -> None:
        """Set the epoch of a new device, which is unknown to every host."""
        self._epoch = epoch

    @property
    def unacknowledged(self) -> int:
        """Number of its events that the host has not acknowledged as durable."""
        return self._next - 1 - self._acked

    # ---- Device

    def due(self) -> float:
        """When it next sends."""
        if self._boots_at is not None:
            return self._boots_at
        due = min(self._beat_at, *self._standing.values()) if self._standing else self._beat_at
        return min(due, self._send_at) if self._open and self.unacknowledged else due

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        if not self._awake(now):
            return b""
        sent = []
        if now >= self._beat_at:
            self._beat_at = now + BEAT
            uptime = int((now - self._booted_at) * 1000) & fdl.MAX_COUNTER
            flags = (0 if self._open else fdl.WAITS_FOR_HELLO) | (fdl.FAULTY if self._standing else 0)
            sent.append(self._encode(fdl.Heartbeat(uptime, self._next, flags)))
        sent += self._deliver(now)
        return b"".join(sent)

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host; what it answers at once."""
        if not self._awake(now) or self._deaf:
            return b""
        sent = []
        for found in self._decoder.feed(data):
            if isinstance(found, fdl.Frame):
                sent += self._obey(found, now)
        sent += self._deliver(now)
        return b"".join(sent)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "power_loss":
                self.power_cycle(now, lose_memory=False)
            case "memory_loss":
                self.power_cycle(now, lose_memory=True)
            case "deaf":
                self._deaf = True
                self._open = False
            case "counters_reset" if fault in self.faults:
                self._firmware = self._counts_anew = True
                self.power_cycle(now, lose_memory=False)
            case "malformed_frame" if fault in self.faults:
                self._firmware = self._stutters = True
            case "strange_event" if fault in self.faults:
                self._firmware = True
                self.record(_Strange(), now)
            case _ if fault in _COMMON_CODES:
                person = self.faults[fault].person
                self._fail(_COMMON_CODES[fault], ERROR if person else WARNING, now, person=person)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}; it has: {', '.join(self.faults)}")

    def repair(self, now: float) -> None:
        """All faults of its mechanics are over."""
        self._deaf = False
        if self._boots(now):
            for code in list(self._standing):
                self._heal(code, now)
            if self._firmware:
                self._firmware = self._stutters = False
                self.power_cycle(now, lose_memory=False)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """It has no acts."""
        return {}

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host: status, reason, data of the answer."""
        if code == fdl.SELF_TEST and not data:
            for standing in self._standing:
                self._keep(fdl.Fault(standing, WARNING, self._where.get(standing, 0)), now)
            return fdl.DONE, 0, b""
        return fdl.NOT_KNOWN, 0, b""

    # ---- sensors and plug

    def record(self, happening: fdl.Happening, now: float) -> None:
        """Add an event. A device that is off does not record it."""
        if self._boots(now):
            self._keep(happening, now)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """Off now, on again 1.5 s later. It sends events without an acknowledgement again."""
        self._boots_at = now + BOOT
        self._forgets = self._forgets or lose_memory
        self._open = False

    def _fail(self, code: int, severity: int, now: float, where: int = 0, *, person: bool = False) -> None:
        """A fault of the mechanics, over by itself after 20 s, or when a `person` repairs it."""
        if self._boots(now) and code not in self._standing:
            self.record(fdl.Fault(code, severity, where), now)
            self._standing[code] = FOREVER if person else now + MOTION
            self._where[code] = where

    def _heal(self, code: int, now: float) -> None:
        """End that fault if it is open."""
        if self._boots(now) and self._standing.pop(code, None) is not None:
            self._keep(fdl.Recovered(code), now)

    def _started(self, now: float) -> None:
        """Called when it is on again, for devices that have more to do then."""

    def _ails(self, code: int, now: float) -> bool:
        """Whether this fault of the mechanics is open."""
        return self._boots(now) and code in self._standing

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
            forgot = self._forgets
            if self._counts_anew:
                self._counts_anew = False
                self._ring.clear()
                self._next = 1
                self._acked = 0
            if self._forgets:
                self._forgets = False
                self._epoch = self._epoch % fdl.MAX_COUNTER + 1
                self._ring.clear()
                self._next = 1
                self._acked = 0
            for kept in self._ring:
                kept.at = None
            self._keep(fdl.Started(), self._booted_at)
            for code, until in list(self._standing.items()):
                if until == FOREVER:  # its self-test finds it again
                    self._keep(fdl.Fault(code, ERROR, self._where.get(code, 0)), self._booted_at)
                    continue
                del self._standing[code]
                if not forgot:  # else it lost the fault, and its heartbeats report none
                    self._keep(fdl.Recovered(code), self._booted_at)
            self._answers.clear()
            self._started(self._booted_at)
        return self._boots_at is None

    def _awake(self, now: float) -> bool:
        if not self._boots(now):
            return False
        for code in [code for code, until in self._standing.items() if now >= until]:
            self._heal(code, now)
        return True

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
            case fdl.Command(ticket, code, data) if self._open:
                known = next((answer for answer in self._answers if answer.ticket == ticket), None)
                if known is None:
                    known = fdl.Answer(ticket, *self.do(code, data, now))
                    self._answers.append(known)
                return [self._encode(known, frame.seq)]
            case _:
                pass
        return []

    def _deliver(self, now: float) -> list[bytes]:
        """The oldest event that is not acknowledged, when it is due; the IDENTITY if that event is gone."""
        if not self._open or not self.unacknowledged or now < self._send_at:
            return []
        self._send_at = now + RETRY
        at = self._acked + 1 - self._oldest()
        if at < 0:
            return [self._encode(self._identity())]
        kept = self._ring[at]
        age = fdl.AGE_UNKNOWN if kept.at is None else int((now - kept.at) / self.hurry * 1000)
        if self._stutters:
            self._stutters = False
            return [fdl.encode_frame(fdl.EventReport.TYPE, 0, bytes(3))]
        return [self._encode(fdl.EventReport(kept.counter, age, kept.kind, kept.data))]
