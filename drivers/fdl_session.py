"""The host's side of FDL, the same for every device that speaks it (docs/protocols/fdl.md).

Rule of this file: `Session` decides and opens nothing; time is handed in. An event is acknowledged only by the bytes
that `hear` returns beside it, and `converse` sends those after the event is durable.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from drivers.driver import Chunk, DeviceRefused, Emit, Link, LinkLost, Sighting
from protocols import fdl
from protocols.events import DeviceFaulted, DeviceOnline, DeviceRecovered, Event, EventsMissed

HELLO_EVERY = 0.5
HELLO_AT_ONCE = 0.1  # an answer never follows an answer faster: two programs in error must not fill the line
NAK_EVERY = 0.1
PATIENCE = 10.0  # a device that is heard, and yet nothing gets on


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`silence`: seconds without a frame after which the device counts as lost; it sends one each second."""

    silence: Annotated[float, Meta(ge=1.5, le=60)] = 3.0


class FaultText(msgspec.Struct, frozen=True):
    """What a fault code of the device means: our stable code, and words for a technician."""

    code: str
    text: str
    remedy: str


# Codes 01 to 0F mean the same for every device.
COMMON_FAULTS = {
    0x01: FaultText("fdl.sensor_dirty", "a sensor sees badly", "clean the sensor windows"),
    0x02: FaultText("fdl.memory", "the device's memory fails", "replace the device; its events may be lost"),
    0x03: FaultText(
        "fdl.self_test", "the device failed its self-test", "switch it off and on; if it stays, replace it"
    ),
    0x04: FaultText("fdl.voltage", "the supply voltage is too low", "check the power supply and its plug"),
    0x05: FaultText("fdl.temperature", "the device is too hot", "free its air vents; let it cool down"),
    0x06: FaultText("fdl.door", "a door or cover of the device is open", "close it"),
}

Translate: TypeAlias = Callable[[fdl.Happening], Event | None]
"""A device's happenings to ours; None for one that such a device does not have."""


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What outlives the session: `last` is the counter of the last durable event of `epoch` of `unit`."""

    epoch: Annotated[int, Meta(ge=1, le=fdl.MAX_COUNTER)]
    last: Annotated[int, Meta(ge=0, le=fdl.MAX_COUNTER)]
    unit: tuple[str, str, str]


def remembered(memory: bytes | None) -> Memory | None:
    """The memory of an earlier session; bytes that are none count as no memory."""
    try:
        return msgspec.json.decode(memory or b"", type=Memory)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Heard(msgspec.Struct, frozen=True):
    """What a chunk brought. `answer` may be sent when `sightings` and `memory` are durable, not before."""

    sightings: tuple[Sighting, ...]
    memory: bytes | None
    answer: bytes


class Session:
    """One session: chunks in, sightings and answers out.

    `kind` is what the device must say it is; `faults` are its own fault codes, beside the common ones.
    """

    def __init__(
        self, kind: int, faults: Mapping[int, FaultText], translate: Translate, options: Options, memory: bytes | None
    ) -> None:
        self._kind = kind
        self._faults = {**COMMON_FAULTS, **faults}
        self._translate = translate
        self._silence = options.silence
        self._memory = remembered(memory)
        self._decoder = fdl.Decoder()
        self._who: fdl.Identity | None = None
        self._seq = 0
        self._waiting = True  # for an IDENTITY that stands where we stand
        self._heard = 0.0
        self._waiting_since = 0.0
        self._hello_at = 0.0
        self._hello_sent = float("-inf")
        self._caught_up = 0.0
        self._nak_sent = (float("-inf"), 0)
        self._complained = False
        # What the chunk at hand brought so far.
        self._sightings: list[Sighting] = []
        self._answer = bytearray()
        self._owes_ack = False

    def begin(self, now: float) -> bytes:
        """The first HELLO."""
        self._heard = self._waiting_since = self._caught_up = self._hello_at = now
        return self.wake(now)

    def due(self) -> float:
        """When to call `wake` if nothing is heard before."""
        lost = self._heard + self._silence
        return min(lost, self._hello_at) if self._waiting else lost

    def wake(self, now: float) -> bytes:
        """What is to be said now. Raises LinkLost after silence, DeviceRefused where no HELLO gets through."""
        if now >= self._heard + self._silence:
            raise LinkLost(f"no FDL frame for {self._silence:g} s")
        if not self._waiting or now < self._hello_at:
            return b""
        if now >= self._waiting_since + PATIENCE:
            raise DeviceRefused(
                f"the device is heard, but no session opened in {PATIENCE:g} s: is the host's transmit line connected?"
                if self._who is None
                else f"the device answers, but not as FDL says: it does not go on from where it is asked ({self._who})"
            )
        self._hello_at = now + HELLO_EVERY
        self._hello_sent = now
        return self._encode(fdl.Hello(self._memory.epoch, self._memory.last) if self._memory else fdl.Hello(0, 0))

    def excuse(self, seconds: float) -> None:
        """The host itself was busy for so long; the device was not silent."""
        self._heard += seconds
        self._waiting_since += seconds
        self._caught_up += seconds

    def hear(self, chunk: Chunk, now: float) -> Heard:
        """What a chunk brought. Raises DeviceRefused, or LinkLost where events no longer get through."""
        self._sightings = []
        self._answer = bytearray()
        self._owes_ack = False
        before = self._memory
        for found in self._decoder.feed(chunk.data):
            match found:
                case fdl.Garbage():
                    self._ask_again(fdl.UNREADABLE, now)
                case fdl.Frame(type=type_) if type_ & fdl.FROM_DEVICE:
                    self._heard = now
                    self._read(found, chunk, now)
                case fdl.Frame():
                    pass  # our own frame, come back over a looped or half-duplex line: no sign of life
        if self._owes_ack and self._memory is not None:
            self._answer += self._encode(fdl.Ack(self._memory.epoch, self._memory.last))
        memory = msgspec.json.encode(self._memory) if self._memory != before else None
        return Heard(tuple(self._sightings), memory, bytes(self._answer))

    def _encode(self, message: fdl.Message) -> bytes:
        self._seq += 1
        return fdl.encode(message, self._seq)

    def _see(self, event: Event, frame: fdl.Frame, chunk: Chunk, age: float = 0.0, behind: int = 0) -> None:
        self._sightings.append(Sighting(event, frame.raw, chunk, age, behind))

    def _ask(self, now: float) -> None:
        if not self._waiting:
            self._waiting = True
            self._waiting_since = now
        self._hello_at = max(now, self._hello_sent + HELLO_AT_ONCE)

    def _ask_again(self, reason: int, now: float) -> None:
        """A NAK, but not for each piece of a burst of noise."""
        if self._waiting or self._memory is None:
            return
        expected = self._memory.last + 1
        sent, about = self._nak_sent
        if expected != about or now >= sent + NAK_EVERY:
            self._nak_sent = (now, expected)
            self._answer += self._encode(fdl.Nak(reason, self._memory.epoch, expected))

    def _read(self, frame: fdl.Frame, chunk: Chunk, now: float) -> None:
        match fdl.read(frame):
            case fdl.OtherVersion(version):
                raise DeviceRefused(f"the device speaks FDL version {version}, this driver version {fdl.VERSION}")
            case fdl.Malformed(what) if frame.type == fdl.Identity.TYPE:
                raise DeviceRefused(f"the device does not say who it is as FDL says: {what}")
            case fdl.Malformed(what):
                self._complain(what, frame, chunk)
                self._ask_again(fdl.MALFORMED, now)
            case fdl.Identity() as who:
                self._meet(who, frame, chunk, now)
            case fdl.Heartbeat() as beat:
                self._feel(beat, now)
            case fdl.EventReport() as report:
                self._take(report, frame, chunk, now)
            case _:
                pass  # a type of a later version

    def _complain(self, what: str, frame: fdl.Frame, chunk: Chunk) -> None:
        """Once in a session: the device will repeat such a frame without end."""
        if self._who is None or self._complained:
            return
        self._complained = True
        remedy = "tell the vendor: this frame has a right CRC and wrong contents"
        self._see(DeviceFaulted("fdl.malformed", what, "warning", remedy), frame, chunk)

    def _online(self, who: fdl.Identity, *, continuous: bool) -> DeviceOnline:
        return DeviceOnline(continuous, f"{who.vendor} {who.model}".strip(), who.serial, who.firmware)

    def _meet(self, who: fdl.Identity, frame: fdl.Frame, chunk: Chunk, now: float) -> None:
        """Compare what the device holds with what we have; the events in between decide what we may still trust."""
        if who.kind != self._kind:
            found, wanted = fdl.KINDS.get(who.kind, "device of an unknown kind"), fdl.KINDS[self._kind]
            raise DeviceRefused(
                f"{who.vendor} {who.model} {who.serial} is a {found} (kind {who.kind}), not a {wanted} "
                f"(kind {self._kind}): check the port, or the driver in the configuration"
            )
        unit = (who.vendor, who.model, who.serial)
        before = self._memory
        continuous = False
        told: Event | None = None
        if before is None or before.unit != unit:
            # Never met: what it holds happened on another table, or before anybody listened.
            after = Memory(who.epoch, who.next - 1, unit)
        elif before.epoch != who.epoch:
            # It lost its memory after our last event: what it holds now happened since.
            after = replace(before, epoch=who.epoch, last=who.oldest - 1)
        elif before.last >= who.next:
            after = replace(before, last=who.next - 1)
            text = f"its event counter went back from {before.last + 1} to {who.next} within one epoch"
            told = DeviceFaulted("fdl.counter_back", text, "error", "tell the vendor: events may be lost unseen")
        elif before.last + 1 < who.oldest:
            after = replace(before, last=who.oldest - 1)
            told = EventsMissed(after.last - before.last)
        else:
            after = before
            continuous = True
        if self._who is None or not (continuous or isinstance(told, EventsMissed)):
            self._see(self._online(who, continuous=continuous), frame, chunk, behind=who.next - 1 - after.last)
        if told is not None:
            self._see(told, frame, chunk, behind=who.next - 1 - after.last)
        self._who = who
        self._memory = after
        if who.position == after.last + 1:
            self._waiting = False
            self._caught_up = now
        elif after != before or not self._waiting:
            self._ask(now)

    def _feel(self, beat: fdl.Heartbeat, now: float) -> None:
        if self._waiting or self._memory is None:
            return
        expected = self._memory.last + 1
        if beat.waits or beat.next < expected:
            self._ask(now)
        elif beat.next == expected:
            self._caught_up = now
        elif now >= self._caught_up + PATIENCE:
            raise LinkLost(
                f"the device has had events for {PATIENCE:g} s (next {beat.next}) and none after {expected - 1} came: "
                "does it hear us?"
            )

    def _take(self, report: fdl.EventReport, frame: fdl.Frame, chunk: Chunk, now: float) -> None:
        if self._waiting or self._memory is None or self._who is None:
            return
        expected = self._memory.last + 1
        if report.counter > expected:
            self._ask_again(fdl.GAP, now)
            return
        self._owes_ack = True
        if report.counter == expected:
            age = 0.0 if report.age == fdl.AGE_UNKNOWN else report.age / 1000
            self._see(self._event(report, self._who), frame, chunk, age, max(self._who.next - 1 - expected, 0))
            self._memory = replace(self._memory, last=expected)
            self._caught_up = now

    def _event(self, report: fdl.EventReport, who: fdl.Identity) -> Event:
        """The casino's word for it. What nobody can read is a fault that is told, never an event that is dropped."""
        happening = fdl.read_happening(report.kind, report.data)
        match happening:
            case fdl.Started():
                return self._online(who, continuous=False)
            case fdl.Fault(code, severity, where):
                fault = self._fault(code)
                text = f"{fault.text} (place {where})" if where else fault.text
                return DeviceFaulted(fault.code, text, "warning" if severity == 1 else "error", fault.remedy)
            case fdl.Recovered(code):
                return DeviceRecovered(self._fault(code).code)
            case fdl.Malformed(why):
                pass
            case _:
                event = self._translate(happening)
                if event is not None:
                    return event
                why = "such a device does not have this kind of event"
        text = f"event {report.counter} of kind {report.kind:02X} with data [{report.data.hex(' ').upper()}]: {why}"
        return DeviceFaulted("fdl.unknown_event", text, "warning", "is the driver older than the device's firmware?")

    def _fault(self, code: int) -> FaultText:
        unknown = FaultText(f"fdl.fault_{code:02x}", f"fault {code:02X} of the device", "look it up in its manual")
        return self._faults.get(code, unknown)


async def converse(link: Link, emit: Emit, session: Session) -> None:
    """Speak until LinkLost or DeviceRefused."""
    clock = asyncio.get_running_loop().time
    await link.write(session.begin(clock()))
    while True:
        due = session.due()
        try:
            async with asyncio.timeout_at(due):
                chunk = await link.read()
        except TimeoutError:
            now = max(clock(), due)  # a timer may ring a hair early
        else:
            heard = session.hear(chunk, clock())
            began = clock()
            if heard.sightings:
                await emit(heard.sightings, heard.memory)
            if heard.answer:
                await link.write(heard.answer)
            now = clock()
            session.excuse(now - began)
        said = session.wake(now)
        if said:
            await link.write(said)
