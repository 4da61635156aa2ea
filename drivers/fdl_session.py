"""The host's side of FDL, common to all devices that speak it (docs/reference/protocols/fdl.md).

`Session` does no I/O; time is a parameter. An event is acknowledged only by the bytes that `hear` returns with it, and
`converse` sends them after the event is durable.

Unreadable data may be a hidden card. For a device that reports cards only the fact is reported: no data, no wire bytes
(docs/decisions/0032-only-the-rules-read-cards.md).
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from drivers.driver import (
    Chunk,
    CommandFailed,
    CommandRefused,
    DeviceRefused,
    Emit,
    Evidence,
    Link,
    LinkLost,
    Sighting,
    WireDecoder,
    decode_memory,
)
from drivers.faults import Fault, Faults, Standing
from protocols.contract.commands import Command, SelfTest
from protocols.contract.events import DeviceFaulted, DeviceOnline, DeviceRecovered, Event, EventsMissed, Told
from protocols.fdl import frame as fdl

HELLO_EVERY = 0.5
HELLO_AT_ONCE = 0.1  # seconds between two answers: two programs in error must not fill the line
NAK_EVERY = 0.1
NO_PROGRESS_S = 10.0  # a device that sends frames, but no session opens and no event arrives
COMMAND_EVERY = 0.3
COMMAND_TRIES = 7
SELF_TESTED = 5000  # ms after its start a device has reported every fault that it still finds


class SessionOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`silence`: seconds without a frame after which the device counts as lost; it sends one each second."""

    silence: Annotated[float, Meta(ge=1.5, le=60)] = 3.0


_ANY = "goes on; events that the device cannot detect are not reported"
# Codes 01 to 0F are common to all devices.
COMMON_FAULTS = {
    0x01: Fault("fdl.sensor_dirty", "a sensor's window is dirty", "clean the sensor windows", "by itself", _ANY),
    0x02: Fault(
        "fdl.memory", "the device's memory fails", "replace the device; its events may be lost", "by a person", _ANY
    ),
    0x03: Fault(
        "fdl.self_test",
        "the device failed its self-test",
        "switch it off and on; if the fault remains, replace it",
        "by a person",
        _ANY,
    ),
    0x04: Fault(
        "fdl.voltage", "the supply voltage is too low", "check the power supply and its plug", "by itself", _ANY
    ),
    0x05: Fault("fdl.temperature", "the device is too hot", "free its air vents; let it cool down", "by itself", _ANY),
    0x06: Fault("fdl.door", "a door or cover of the device is open", "close it", "by a person", _ANY),
}
# Faults that the host detects.
HOST_FAULTS = (
    Fault(
        "fdl.malformed",
        "a frame has a correct CRC but invalid contents",
        "inform the vendor, with a capture of the line",
        "by a person",
        "goes on without the content of the frame",
    ),
    Fault(
        "fdl.counter_back",
        "the device's event counter went back within one epoch",
        "inform the vendor: events may have been lost",
        "by a person",
        "waits for a person: events may be missing",
        "error",
    ),
    Fault(
        "fdl.unknown_event",
        "the device reports an event that this version does not support",
        "check whether the driver is older than the device's firmware",
        "by a person",
        "goes on without that event",
    ),
    Fault(
        "fdl.untold_fault",
        "the device has a fault that began before it was first connected here, or whose report is lost",
        "run its self-test, which reports the fault; check the device",
        "by itself",
        _ANY,
    ),
)

# Faults that one unit showed by its messages; they do not apply to another unit.
_OF_THE_UNIT = ("fdl.malformed", "fdl.counter_back", "fdl.unknown_event")

_UNKNOWN = "it is unknown whether the device acted: see its events"

Translate: TypeAlias = Callable[[fdl.Happening], tuple[Event, ...] | None]
"""The device's event in the casino's words; None for one that such a device does not have."""


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What survives the session: `last` is the counter of the last durable event of `epoch` of `unit`.

    `faults` are those reported and not ended. `doubted` are the faults that may have ended unseen: the device restarted
    since (`started`), or is another unit, or some of its events are lost. `ended` are those that the host ended because
    of another event, while the device's heartbeats may report a fault for some time.

    Defaults are omitted, so that an earlier version can read a memory without newer fields.
    """

    epoch: Annotated[int, Meta(ge=1, le=fdl.MAX_COUNTER)]
    last: Annotated[int, Meta(ge=0, le=fdl.MAX_COUNTER)]
    unit: tuple[str, str, str]
    faults: Standing = Standing()
    doubted: tuple[str, ...] = ()
    started: bool = False
    ended: tuple[str, ...] = ()


class Heard(msgspec.Struct, frozen=True):
    """The content of a chunk. Send `answer` only when `sightings` and `memory` are durable."""

    sightings: tuple[Sighting, ...]
    memory: bytes | None
    answer: bytes
    answers: tuple[fdl.Answer, ...] = ()


class Session:
    """One session: chunks in, sightings and answers out.

    `kind`: the kind that the device must report. `faults`: its own fault codes, in addition to the common ones.
    `happenings`: its kinds of events. `unreadable`: what to emit for an event with unreadable data. `beside`: what to
    emit with a fault code when it begins. `discreet`: unreadable data may be a card.
    """

    def __init__(
        self,
        kind: int,
        faults: Mapping[int, Fault],
        happenings: Mapping[int, type[fdl.Happening]],
        translate: Translate,
        options: SessionOptions,
        memory: bytes | None,
        *,
        unreadable: Mapping[int, Event] | None = None,
        beside: Mapping[int, Event] | None = None,
        discreet: bool = False,
    ) -> None:
        self._kind = kind
        self._codes = {**COMMON_FAULTS, **faults}
        self._happenings = happenings
        self._translate = translate
        self._unreadable = unreadable or {}
        self._beside = beside or {}
        self._discreet = discreet
        self._silence = options.silence
        self._memory = decode_memory(memory, Memory)
        self._faults = Faults((*self._codes.values(), *HOST_FAULTS), self._memory.faults if self._memory else None)
        self._doubted = self._memory.doubted if self._memory else ()
        self._started = self._memory.started if self._memory else False
        self._ended = self._memory.ended if self._memory else ()
        self._ticket = random.SystemRandom().randrange(fdl.MAX_COUNTER)
        self._answers: list[fdl.Answer] = []
        self._decoder = fdl.Decoder()
        self._identity: fdl.Identity | None = None
        self._seq = 0
        self._waiting = True  # for an IDENTITY with our position
        self._answered = False  # since then, by an IDENTITY with another position
        self._openings = 0
        self._heard = 0.0
        self._waiting_since = 0.0
        self._hello_at = 0.0
        self._hello_sent = float("-inf")
        self._caught_up = 0.0
        self._nak_sent = (float("-inf"), 0)
        self._complained = False
        # Results of the current chunk so far.
        self._sightings: list[Sighting] = []
        self._answer = bytearray()
        self._owes_ack = False

    def begin(self, now: float) -> bytes:
        """The first HELLO."""
        self._heard = self._waiting_since = self._caught_up = self._hello_at = now
        return self.wake(now)

    def due(self) -> float:
        """When to call `wake` if nothing is received before."""
        lost = self._heard + self._silence
        return min(lost, self._hello_at) if self._waiting else lost

    def wake(self, now: float) -> bytes:
        """The bytes to send now. Raises LinkLost after silence, DeviceRefused if no HELLO is answered."""
        if now >= self._heard + self._silence:
            raise LinkLost(f"no FDL frame for {self._silence:g} s")
        if not self._waiting or now < self._hello_at:
            return b""
        if now >= self._waiting_since + NO_PROGRESS_S:
            raise DeviceRefused(
                "the device answers, but not as FDL requires: it does not continue at the requested position "
                f"({self._identity})"
                if self._answered
                else f"the device sends, but no session opened in {NO_PROGRESS_S:g} s: is the host's transmit line "
                "connected?"
            )
        self._hello_at = now + HELLO_EVERY
        self._hello_sent = now
        return self._encode(fdl.Hello(self._memory.epoch, self._memory.last) if self._memory else fdl.Hello(0, 0))

    def excuse(self, seconds: float) -> None:
        """The host itself was busy for this long: that is no pause of the device."""
        self._heard += seconds
        self._waiting_since += seconds
        self._caught_up += seconds

    def hear(self, chunk: Chunk, now: float) -> Heard:
        """Process a chunk. Raises DeviceRefused, or LinkLost if events no longer get through."""
        self._sightings = []
        self._answer = bytearray()
        self._owes_ack = False
        before = self._memory
        data = chunk.data
        if self._discreet:
            chunk = replace(chunk, data=b"")  # the chunk may also hold the frame of a card
        for found in self._decoder.feed(data):
            match found:
                case fdl.Garbage():
                    self._ask_again(fdl.UNREADABLE, now)
                case fdl.Frame(type=type_) if type_ & fdl.FROM_DEVICE:
                    self._heard = now
                    self._read(found, chunk, now)
                case fdl.Frame():
                    pass  # our own frame, come back over a looped or half-duplex line: nothing from the device
        if self._owes_ack and self._memory is not None:
            self._answer += self._encode(fdl.Ack(self._memory.epoch, self._memory.last))
        if self._memory is not None:
            self._memory = replace(
                self._memory,
                faults=self._faults.standing,
                doubted=self._doubted,
                started=self._started,
                ended=self._ended,
            )
        memory = msgspec.json.encode(self._memory) if self._memory != before else None
        answers, self._answers = tuple(self._answers), []
        return Heard(tuple(self._sightings), memory, bytes(self._answer), answers)

    @property
    def opening(self) -> int:
        """The number of this opening of the session, 0 while it is closed. Commands need an open session."""
        return 0 if self._waiting else self._openings

    def good_cycle(self) -> None:
        """A cycle (a spin, a throw, a shuffle) ended well."""
        self._faults.good_cycle()

    def over(self, code: str) -> tuple[Event, ...]:
        """The device's last event ends this fault, if it is open."""
        ended = code in self._ended or self._faults.is_open(code)
        self._confirm(code)
        self._ended = (*self._ended, code) if ended else self._ended
        return tuple(self._faults.end(code))

    def next_ticket(self) -> int:
        """The ticket of a new command."""
        self._ticket = self._ticket % fdl.MAX_COUNTER + 1
        return self._ticket

    def command(self, ticket: int, code: int, data: bytes) -> bytes:
        """The bytes of a command, also for its repetition."""
        return self._encode(fdl.Command(ticket, code, data))

    def _encode(self, message: fdl.Message) -> bytes:
        self._seq += 1
        return fdl.encode(message, self._seq)

    def _see(self, event: Event, frame: fdl.Frame, chunk: Chunk, age: float = 0.0, behind: int = 0) -> None:
        self._sightings.append(Sighting(event, frame.raw, chunk, age, behind))

    def _ask(self, now: float) -> None:
        if not self._waiting:
            self._waiting = True
            self._answered = False
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
                raise DeviceRefused(f"the device does not identify itself as FDL requires: {what}")
            case fdl.Malformed(what):
                self._complain(what, frame, chunk)
                self._ask_again(fdl.MALFORMED, now)
            case fdl.Identity() as identity:
                self._meet(identity, frame, chunk, now)
            case fdl.Heartbeat() as beat:
                self._feel(beat, now)
                self._believe(beat, frame, chunk)
            case fdl.Answer() as answer:
                self._answers.append(answer)
            case fdl.EventReport() as report:
                self._take(report, frame, chunk, now)
            case _:
                pass  # a type of a later version

    def _complain(self, what: str, frame: fdl.Frame, chunk: Chunk) -> None:
        """Report once in a session, and again after a start: the device repeats such a frame without end."""
        if self._identity is None or self._complained:
            return
        self._complained = True
        for reports in self._found("fdl.malformed", what):
            self._see(reports, self._withheld(frame), chunk)

    def _withheld(self, frame: fdl.Frame) -> fdl.Frame:
        """An unreadable frame in the form in which it may be shown."""
        return replace(frame, raw=b"") if self._discreet else frame

    def _online(self, identity: fdl.Identity, *, continuous: bool) -> DeviceOnline:
        return DeviceOnline(
            continuous, f"{identity.vendor} {identity.model}".strip(), identity.serial, identity.firmware
        )

    def _meet(self, identity: fdl.Identity, frame: fdl.Frame, chunk: Chunk, now: float) -> None:
        """Compare the device's counters with our memory; where events may be missing, open faults are in doubt."""
        if identity.kind != self._kind:
            found, wanted = fdl.KINDS.get(identity.kind, "device of an unknown kind"), fdl.KINDS[self._kind]
            raise DeviceRefused(
                f"{identity.vendor} {identity.model} {identity.serial} is a {found} (kind {identity.kind}), "
                f"not a {wanted} (kind {self._kind}): check the port, or the driver in the configuration"
            )
        unit = (identity.vendor, identity.model, identity.serial)
        before = self._memory
        continuous = False
        reports: list[Event] = []
        if before is None or before.unit != unit:
            # An unknown unit: its events happened at another table, or before it was connected here.
            # Faults of an earlier unit may still exist: they stay until this one reports that it is sound.
            # Faults that the host found in the earlier unit are over; this unit reports no start that would end them.
            after = Memory(identity.epoch, identity.next - 1, unit)
            self._doubt(started=False)
            reports += self._faults.end(*_OF_THE_UNIT)
            self._complained = False
        elif before.epoch != identity.epoch:
            # It lost its memory after our last event: the events it holds now are newer.
            after = replace(before, epoch=identity.epoch, last=identity.oldest - 1)
            self._doubt(started=False)
        elif before.last >= identity.next:
            after = replace(before, last=identity.next - 1)
            reports += self._found("fdl.counter_back", f"from {before.last + 1} to {identity.next}")
        elif before.last + 1 < identity.oldest:
            after = replace(before, last=identity.oldest - 1)
            reports.append(EventsMissed(after.last - before.last))
            self._doubt(started=False)
        else:
            after = before
            continuous = True
        missed = any(isinstance(event, EventsMissed) for event in reports)
        if self._identity is None or not (continuous or missed):
            reports.insert(0, self._online(identity, continuous=continuous))
        for event in reports:
            self._see(event, frame, chunk, behind=identity.next - 1 - after.last)
        self._identity = identity
        self._answered = after == before and identity.position != after.last + 1
        self._memory = after
        if identity.position == after.last + 1:
            self._openings += self._waiting
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
        elif now >= self._caught_up + NO_PROGRESS_S:
            raise LinkLost(
                f"the device has had events for {NO_PROGRESS_S:g} s (next {beat.next}) "
                f"and none after {expected - 1} came: does it receive our frames?"
            )

    def _take(self, report: fdl.EventReport, frame: fdl.Frame, chunk: Chunk, now: float) -> None:
        if self._waiting or self._memory is None or self._identity is None:
            return
        expected = self._memory.last + 1
        if report.counter > expected:
            self._ask_again(fdl.GAP, now)
            return
        self._owes_ack = True
        if report.counter == expected:
            age = 0.0 if report.age == fdl.AGE_UNKNOWN else report.age / 1000
            behind = max(self._identity.next - 1 - expected, 0)
            events = self._events(report, self._identity)
            if isinstance(events, fdl.Malformed):
                events, frame = self._unread(report, events.what), self._withheld(frame)
            for event in events:
                self._see(event, frame, chunk, age, behind)
            self._memory = replace(self._memory, last=expected)
            self._caught_up = now

    def _doubt(self, *, started: bool) -> None:
        """Open faults may have ended while their events were lost. `_believe` ends or keeps them."""
        own = {fault.code for fault in HOST_FAULTS}
        self._doubted = tuple(code for code in self._faults.standing.open if started or code not in own)
        self._started = started
        self._ended = ()
        if started:
            self._complained = False  # faults that the host found end with the start; later ones are reported again

    def _confirm(self, code: str) -> None:
        """The device itself reported this fault."""
        self._doubted = tuple(one for one in self._doubted if one != code)
        self._ended = tuple(one for one in self._ended if one != code)

    def _found(self, code: str, detail: str) -> list[DeviceFaulted]:
        """A fault that the host detects. After a start of the device it is not among those that the start ends."""
        self._confirm(code)
        return self._faults.strike(code, detail)

    def _believe(self, beat: fdl.Heartbeat, frame: fdl.Frame, chunk: Chunk) -> None:
        """End or keep the doubted faults by a heartbeat, if no event before it is missing.

        A device without a fault has none of them. A device that restarted has tested itself and reported what it still
        finds. A device with a fault has named it, or a person must look.
        """
        if self._waiting or self._memory is None or beat.next != self._memory.last + 1 or beat.uptime < SELF_TESTED:
            return
        reports: list[Event] = []
        if self._doubted and (self._started or not beat.faulty):
            reports += self._faults.end(*self._doubted)
            self._doubted = ()
        if not beat.faulty:
            self._ended = ()
        reports += self._faults.watch("fdl.untold_fault", beat.faulty and not self._explained())
        for event in reports:
            self._see(event, frame, chunk)

    def _explained(self) -> bool:
        """Whether a reported fault explains the fault flag of the device's heartbeats."""
        own = {fault.code for fault in HOST_FAULTS}
        return any(code not in own for code in (*self._faults.standing.open, *self._ended))

    def _events(self, report: fdl.EventReport, identity: fdl.Identity) -> tuple[Event, ...] | fdl.Malformed:
        """The events of a frame; Malformed, with the reason, if its data is unreadable."""
        happening = fdl.read_happening(report.kind, report.data, self._happenings)
        match happening:
            case fdl.Started():
                self._doubt(started=True)
                return (self._online(identity, continuous=False),)
            case fdl.Fault(code, severity, where):
                fault = self._known(code)
                begins = self._begins(fault.code)
                self._confirm(fault.code)
                place = f"place {where}" if where else ""
                reports = tuple(self._faults.strike(fault.code, place, "warning" if severity == 1 else "error"))
                return (self._beside[code], *reports) if begins and code in self._beside else reports
            case fdl.Recovered(code):
                known = self._known(code).code
                self._confirm(known)
                return (*self._faults.end(known),) or (DeviceRecovered(known),)
            case fdl.Malformed():
                return happening
            case _:
                events = self._translate(happening)
                return fdl.Malformed("such a device does not have this kind of event") if events is None else events

    def _begins(self, code: str) -> bool:
        """Whether the fault began now. A start or a self-test only finds an open fault again.

        If events were lost, or this is another unit, it may have ended unseen.
        """
        return not self._faults.is_open(code) or (code in self._doubted and not self._started)

    def _unread(self, report: fdl.EventReport, why: str) -> tuple[Event, ...]:
        """Report unreadable data as a fault; never drop it.

        Rules do not read faults. If its kind is that of a drawn card, that is reported, too, because the next card
        would take its place. Any other of the device's own kinds is a missed event.
        """
        there = self._unreadable.get(report.kind, EventsMissed(1) if report.kind in self._happenings else None)
        data = "withheld" if self._discreet else report.data.hex(" ").upper()
        text = f"event {report.counter} of kind {report.kind:02X} with data [{data}]: {why}"
        faults = self._found("fdl.unknown_event", text)
        return tuple(faults) if there is None else (there, *faults)

    def _known(self, code: int) -> Fault:
        """The entry of the fault list. An unknown code is reported by its number."""
        if code not in self._codes:
            text = f"fault {code:02X} of the device"
            fault = Fault(f"fdl.fault_{code:02x}", text, "look it up in the device's manual", "by a person", _ANY)
            self._codes[code] = fault
            self._faults.learn(fault)
        return self._codes[code]


class FdlDriver:
    """The common part of all FDL drivers: one session, translated events, commands."""

    evidence: ClassVar[tuple[Evidence, ...]] = ("reference protocol",)
    decoder: ClassVar[WireDecoder | None] = fdl.Decoder
    Options: ClassVar[type[SessionOptions]] = SessionOptions
    commands: ClassVar[tuple[type[Command], ...]] = (SelfTest,)
    emits: ClassVar[tuple[Told, ...]] = ()
    tells_cards: ClassVar[bool] = False
    kind: ClassVar[int]
    codes: ClassVar[Mapping[int, Fault]]
    """The device's own fault codes."""
    happenings: ClassVar[Mapping[int, type[fdl.Happening]]]
    unreadable: ClassVar[Mapping[int, Event]] = {}
    """Events reported together with the fault when the data of a message is unreadable, e.g. an unreadable card."""
    beside: ClassVar[Mapping[int, Event]] = {}
    """Events reported together with the fault when a fault code begins, because the rules read no faults."""
    reasons: ClassVar[Mapping[int, str]] = {}
    """Why the device itself refuses a command, in addition to fdl.REASONS."""

    def __init__(self, options: SessionOptions, memory: bytes | None = None) -> None:
        self._session = Session(
            self.kind,
            self.codes,
            self.happenings,
            self._told,
            options,
            memory,
            unreadable=self.unreadable,
            beside=self.beside,
            discreet=self.tells_cards,
        )
        self._link: Link | None = None
        self._asked: dict[int, asyncio.Future[fdl.Answer]] = {}

    # ---- hooks of a driver

    def translate(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        """The device's event in the casino's words; None for one that such a device does not have."""
        raise NotImplementedError

    def order(self, command: Command) -> tuple[int, bytes]:
        """Code and data of a command. Raises CommandRefused if it is known to be unsafe now."""
        match command:
            case SelfTest():
                return fdl.SELF_TEST, b""
            case _:
                raise CommandRefused("such a device does not have this command")

    def answered(self, command: Command, data: bytes) -> dict[str, Any]:  # noqa: ARG002 - for drivers with data to read
        """The content of the device's answer."""
        return {}

    def ends_cycle(self, event: Event) -> bool:  # noqa: ARG002 - for drivers with cycles
        """Whether a cycle (a throw, a shuffle) ended well with this event."""
        return False

    # ---- the same for all

    def _told(self, happening: fdl.Happening) -> tuple[Event, ...] | None:
        events = self.translate(happening)
        if any(self.ends_cycle(event) for event in events or ()):
            self._session.good_cycle()
        return events

    async def run(self, link: Link, emit: Emit) -> None:
        """Run the session until LinkLost or DeviceRefused."""
        self._link = link
        try:
            await converse(link, emit, self._session, self._answer)
        finally:
            self._link = None

    def _answer(self, answer: fdl.Answer) -> None:
        asked = self._asked.get(answer.ticket)
        if asked is not None and not asked.done():
            asked.set_result(answer)

    async def obey(self, command: Command) -> dict[str, Any]:
        """Repeat the command until the device answers. The device executes one ticket once.

        The repetition ends with the session: a device that restarted in between has lost the ticket.
        """
        code, data = self.order(command)
        link, opening = self._link, self._session.opening
        if link is None or not opening:
            raise CommandRefused("no session with the device is open")
        ticket = self._session.next_ticket()
        answer: asyncio.Future[fdl.Answer] = asyncio.get_running_loop().create_future()
        self._asked[ticket] = answer
        try:
            for _ in range(COMMAND_TRIES):
                await link.write(self._session.command(ticket, code, data))
                await asyncio.wait([answer], timeout=COMMAND_EVERY)
                if answer.done():
                    return self._read(command, answer.result())
                if self._link is not link or self._session.opening != opening:
                    raise CommandFailed(f"the session ended before an answer came: {_UNKNOWN}")
        except LinkLost as lost:
            raise CommandFailed(f"{lost}: {_UNKNOWN}") from lost
        finally:
            del self._asked[ticket]
        raise CommandFailed(f"no answer in {COMMAND_TRIES * COMMAND_EVERY:.1f} s: {_UNKNOWN}")

    def _read(self, command: Command, answer: fdl.Answer) -> dict[str, Any]:
        match answer.status:
            case fdl.DONE:
                return self.answered(command, answer.data)
            case fdl.REFUSED:
                reasons = {**fdl.REASONS, **self.reasons}
                raise CommandRefused(f"the device refused: {reasons.get(answer.reason, f'reason {answer.reason:02X}')}")
            case _:
                raise CommandRefused("the device does not support this command; check whether its firmware is older")

    def __init_subclass__(cls) -> None:
        """Adds the common FDL faults to the device's own list."""
        cls.faults = (*cls.codes.values(), *COMMON_FAULTS.values(), *HOST_FAULTS)

    faults: ClassVar[tuple[Fault, ...]]


async def converse(
    link: Link, emit: Emit, session: Session, answered: Callable[[fdl.Answer], None] = lambda _: None
) -> None:
    """Run the session until LinkLost or DeviceRefused."""
    clock = asyncio.get_running_loop().time
    await link.write(session.begin(clock()))
    while True:
        due = session.due()
        try:
            async with asyncio.timeout_at(due):
                chunk = await link.read()
        except TimeoutError:
            now = max(clock(), due)  # a timer may fire slightly early
        else:
            heard = session.hear(chunk, clock())
            began = clock()
            if heard.sightings or heard.memory:
                await emit(heard.sightings, heard.memory)
            for answer in heard.answers:
                answered(answer)
            if heard.answer:
                await link.write(heard.answer)
            now = clock()
            session.excuse(now - began)
        said = session.wake(now)
        if said:
            await link.write(said)
