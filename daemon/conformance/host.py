"""The host's side of a conformance trial: sends frames, keeps received ones, and judges the rules for every frame."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeVar

import msgspec

from daemon.conformance.rules import Hands
from drivers import DRIVERS
from drivers.fdl_session import FdlDriver
from protocols.fdl import frame as fdl
from protocols.link import Link

__all__ = [
    "LATE_S",
    "NO_COMMAND",
    "QUIET_S",
    "Host",
    "NoAnswer",
    "Received",
    "answer_of",
    "event",
    "events",
    "happenings",
    "identity_of",
    "kinds",
]

T = TypeVar("T")

_VENDOR = 0x80
NO_COMMAND = 0x0F  # reserved: no device has it

PATIENCE_S = 5.0
"""Seconds to wait for an answer where its time is not judged."""
QUIET_S = 1.5
"""Seconds to wait where no frame may come."""
LATE_S = 0.05
"""Seconds by which this program may be late for a rule about time to be judged."""


class NoAnswer(Exception):
    """The device no longer answers: the rest cannot be judged."""


class Received(msgspec.Struct, frozen=True):
    """A frame of the device and its second of arrival."""

    at: float
    seq: int
    message: fdl.Identity | fdl.EventReport | fdl.Heartbeat | fdl.Answer


class Host:
    """The host's side: sends frames, keeps received ones, and judges the rules for every frame."""

    def __init__(self, link: Link, hands: Hands, rng: random.Random) -> None:
        self._link = link
        self.hands = hands
        self._clock = asyncio.get_running_loop().time
        self._decoder = fdl.Decoder()
        self._seq = rng.randrange(256)
        self._ticket = rng.randrange(1, 0x7FFF_FFFF)
        self.received: list[Received] = []
        self.lateness: list[tuple[float, float]] = []
        self.broken: dict[str, str] = {}
        self.held: set[str] = set()
        self.identity: fdl.Identity | None = None
        self.open: bool | None = None  # None: a HELLO is on its way
        self.next = 1
        self.seen: dict[int, int] = {}
        self._first_reports: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.standing: set[int] = set()
        self.faults_known = False  # all open faults were reported since the device's start

    # ---- judging

    def judge(self, rule: str, holds: object, seen: str) -> None:
        """Note an observation of a rule; a rule that was broken once stays broken."""
        if not holds:
            self.broken.setdefault(rule, seen)
        self.held.add(rule)

    def on_time(self, since: float) -> bool:
        """Whether this program was on time since then."""
        return all(late <= LATE_S for at, late in self.lateness if at >= since)

    def judge_time(self, rule: str, since: float, seconds: float, least: float, most: float) -> None:
        """Judge a duration that ended now, if this program was on time."""
        if self.on_time(since):
            self.judge(rule, least <= seconds <= most, f"{seconds * 1000:.0f} ms")

    # ---- the line

    async def send(self, message: fdl.Message | bytes) -> int:
        """Send a message, or raw bytes; the `seq` of the message."""
        if isinstance(message, bytes):
            await self._link.write(message)
            return 0
        self._seq = (self._seq + 1) & 0xFF
        await self._link.write(fdl.encode(message, self._seq))
        return self._seq

    def frame(self, message: fdl.Message) -> tuple[bytes, int]:
        """The bytes of a message, and its `seq`."""
        self._seq = (self._seq + 1) & 0xFF
        return fdl.encode(message, self._seq), self._seq

    async def listen(self, seconds: float) -> list[Received]:
        """The frames that come within this time."""
        start, until = len(self.received), self._clock() + seconds
        while await self._read(until):
            pass
        return self.received[start:]

    async def until(self, found: Callable[[Received], T | None], since: int, seconds: float = PATIENCE_S) -> T | None:
        """The first match in the frames from index `since` on; None where none comes in time."""
        until, at = self._clock() + seconds, since
        while True:
            while at < len(self.received):
                at += 1
                if (one := found(self.received[at - 1])) is not None:
                    return one
            if not await self._read(until):
                return None

    async def _read(self, until: float) -> bool:
        """Read once; False when the time is over."""
        try:
            async with asyncio.timeout_at(until):
                chunk = await self._link.read()
        except TimeoutError:
            return False
        for piece in self._decoder.feed(chunk.data):
            self._take(piece, chunk.tick)
        return True

    async def watch_lateness(self) -> None:
        """Measure by how much this program runs late."""
        while True:
            began = self._clock()
            await asyncio.sleep(0.02)
            now = self._clock()
            self.lateness.append((now, now - began - 0.02))
            del self.lateness[:-5000]

    # ---- rules for every frame

    def _take(self, piece: fdl.Frame | fdl.Garbage, at: float) -> None:
        if isinstance(piece, fdl.Garbage):
            self.judge("frame.readable", False, f"{piece.why}: {piece.raw[:24].hex(' ')}")
            return
        self.judge("frame.readable", True, "")
        self.judge("frame.direction", piece.type & fdl.FROM_DEVICE, f"type {piece.type:02X}")
        match fdl.read(piece):
            case fdl.UnknownType(type_):
                self.judge("frame.known", type_ >= 0xC0, f"type {type_:02X}")
            case fdl.Malformed(what):
                self.judge("frame.malformed", False, what)
            case fdl.OtherVersion(version):
                self.judge("frame.malformed", False, f"IDENTITY of version {version}")
            case fdl.Identity() | fdl.EventReport() | fdl.Heartbeat() | fdl.Answer() as message:
                self.judge("frame.malformed", True, "")
                self.judge("frame.known", True, "")
                self.received.append(Received(at, piece.seq, message))
                self._watch(message)
            case _:
                pass  # a frame of the host's direction: judged above

    def _watch(self, message: fdl.Identity | fdl.EventReport | fdl.Heartbeat | fdl.Answer) -> None:
        match message:
            case fdl.Identity() as identity:
                self._watch_identity(identity)
            case fdl.Heartbeat() as beat:
                self.judge("heartbeat.flags", not beat.flags & ~3, f"flags {beat.flags:02X}")
                if self.open is not None:
                    state = "closed" if not self.open else "open"
                    self.judge(
                        "heartbeat.closed", beat.waits != self.open, f"flags {beat.flags:02X} in the {state} session"
                    )
                if self.faults_known or self.standing:
                    reported = f"flags {beat.flags:02X}; reported and not over: {sorted(self.standing)}"
                    self.judge("heartbeat.fault", beat.faulty == bool(self.standing), reported)
                self.judge("heartbeat.next", beat.next >= self.next, f"next {beat.next} after {self.next}")
                self.next = max(self.next, beat.next)
            case fdl.EventReport() as report:
                self._watch_event(report)
            case _:
                pass

    def _watch_identity(self, identity: fdl.Identity) -> None:
        before, self.identity = self.identity, identity
        if identity.next > 257:
            held = identity.next - identity.oldest
            self.judge("ring.size", held >= 256, f"{held} events of {identity.next - 1}")
        if before is None or before.epoch != identity.epoch:
            self.next = identity.next
        else:
            counters = f"oldest {before.oldest} to {identity.oldest}, next {before.next} to {identity.next}"
            self.judge("identity.counters", before.oldest <= identity.oldest and self.next <= identity.next, counters)
            self.next = max(self.next, identity.next)
        unit = (identity.vendor, identity.model, identity.serial)
        self.judge("identity.unit", all(unit), f"{unit}")
        if before is not None:
            self.judge("identity.unit", unit == (before.vendor, before.model, before.serial), f"{unit}")
        known = identity.kind in kinds() or identity.kind >= _VENDOR
        self.judge("identity.kind", known, f"kind {identity.kind:02X}")

    def _watch_event(self, report: fdl.EventReport) -> None:
        if self.identity is None:
            return
        self.judge("event.closed", self.open is not False, f"event {report.counter} in a closed session")
        reported = (report.kind, report.data)
        key = (self.identity.epoch, report.counter)
        first = key not in self._first_reports
        before = self._first_reports.setdefault(key, reported)
        self.judge(
            "event.same", before == reported, f"event {report.counter}: {before[1].hex()} then {reported[1].hex()}"
        )
        if not first:
            return
        self.next = max(self.next, report.counter + 1)
        self.seen[report.kind] = self.seen.get(report.kind, 0) + 1
        own = kinds().get(self.identity.kind)
        if report.kind < _VENDOR and own is not None:
            happening = fdl.read_happening(report.kind, report.data, own)
            wrong = happening.what if isinstance(happening, fdl.Malformed) else ""
            self.judge("event.data", not wrong, f"event {report.kind:02X} {report.data.hex(' ')}: {wrong}")
            match happening:
                case fdl.Fault(code=code):
                    self.standing.add(code)
                case fdl.Recovered(code):
                    self.standing.discard(code)
                case fdl.Started():
                    self.standing.clear()
                case _:
                    pass

    # ---- turns

    async def hello(self, epoch: int, last: int) -> fdl.Identity:
        """Send HELLO until an IDENTITY answers. Raises NoAnswer."""
        self.open = None
        for _ in range(10):
            start = len(self.received)
            seq = await self.send(fdl.Hello(epoch, last))
            answer = await self.until(identity_of(seq), start, 0.5)
            if answer is None:
                continue
            self.judge("hello.answered", True, "")
            self.open = bool(answer.position)
            return answer
        self.judge("hello.answered", False, "no IDENTITY with the `seq` of one of ten HELLOs")
        raise NoAnswer

    async def opened(self, last: int | None = None) -> fdl.Identity:
        """Open the session after all events, or after `last`."""
        known = self.identity or await self.hello(0, 0)
        for _ in range(10):
            where = known.next - 1 if last is None else last
            known = await self.hello(known.epoch, where)
            if known.position:
                break
        self.judge("hello.opens", known.position == where + 1, f"position {known.position} after last {where}")
        if not known.position:
            raise NoAnswer
        return known

    def tickets(self, count: int) -> int:
        """The first of `count` consecutive unused tickets."""
        first = self._ticket + 1
        self._ticket += count
        return first

    async def order(self, code: int, data: bytes = b"", ticket: int | None = None) -> fdl.Answer | None:
        """Send a command, repeatedly until it is answered; None without an answer."""
        if ticket is None:
            ticket = self.tickets(1)
        for _ in range(7):
            start = len(self.received)
            began = self._clock()
            seq = await self.send(fdl.Command(ticket, code, data))
            found = await self.until(answer_of(ticket), start, 0.6)
            if found is not None:
                self.judge("command.answered", found.seq == seq, f"seq {found.seq:02X} for {seq:02X}")
                self.judge_time("command.at_once", began, found.at - began, 0, 0.2 + LATE_S)
                return found.message if isinstance(found.message, fdl.Answer) else None
        self.judge("command.answered", False, f"no ANSWER to the command {code:02X}, sent seven times")
        return None

    async def fence(self) -> int:
        """The index of the message after which the device has read everything sent so far."""
        await self.order(NO_COMMAND)
        return len(self.received)

    async def acknowledge(self, counter: int) -> None:
        """Acknowledge every event up to and with `counter`."""
        assert self.identity is not None
        await self.send(fdl.Ack(self.identity.epoch, counter))

    async def take(self, seconds: float = PATIENCE_S) -> fdl.EventReport | None:
        """The next event, not acknowledged."""
        return await self.until(event, len(self.received), seconds)

    async def drain(self) -> list[fdl.EventReport]:
        """Take and acknowledge events until none comes."""
        taken: list[fdl.EventReport] = []
        skipped = False
        while True:
            report = await self.take(QUIET_S)
            if report is None:
                known = self.identity
                if known is None or not 0 < known.position < known.oldest:
                    return taken
                await self.opened(known.oldest - 1)  # the event at the position is no longer in the ring
                skipped = True
                continue
            self.judge(
                "event.single",
                not taken or report.counter in {taken[-1].counter, taken[-1].counter + 1} or skipped,
                f"event {report.counter} after {taken[-1].counter if taken else 0}",
            )
            if not taken or report.counter != taken[-1].counter:
                taken.append(report)
            skipped = False
            await self.acknowledge(report.counter)


def identity_of(seq: int) -> Callable[[Received], fdl.Identity | None]:
    def found(one: Received) -> fdl.Identity | None:
        return one.message if isinstance(one.message, fdl.Identity) and one.seq == seq else None

    return found


def answer_of(ticket: int) -> Callable[[Received], Received | None]:
    def found(one: Received) -> Received | None:
        return one if isinstance(one.message, fdl.Answer) and one.message.ticket == ticket else None

    return found


def event(one: Received) -> fdl.EventReport | None:
    return one.message if isinstance(one.message, fdl.EventReport) else None


def events(received: Sequence[Received]) -> list[tuple[float, fdl.EventReport]]:
    return [(one.at, one.message) for one in received if isinstance(one.message, fdl.EventReport)]


@cache
def kinds() -> Mapping[int, Mapping[int, type[fdl.Happening]]]:
    """The own events of each kind of device: those of the drivers that speak FDL."""
    return {one.kind: one.happenings for one in DRIVERS.values() if issubclass(one, FdlDriver)}


def happenings(kind: int) -> Mapping[int, type[fdl.Happening]]:
    """The events that a device of this kind may report, common ones too."""
    return {**fdl.COMMON, **kinds().get(kind, {})}
