"""Driver for the Billy-III dice shaker: it shakes on request and reports its progress. It detects no dice and no dome.

A shake counts when all of it was observed: requested or accepted (S2), shaking (S1), idle again (S0), not sooner than
its program takes, and never without a report for longer than `blind` seconds. Anything less is a fault and never
`dice.agitated`: a shaker that lost power in the middle is idle, too. Where the dice moved in such a shake, the driver
reports `dice.disturbed`: an earlier reading no longer holds. A shake that another host requested is reported like our
own, because the dice did move.

The shaker has no counter, so a shake during a lost connection would go unseen: it never comes online as continuous.
It reports state changes and answers questions, so it is asked after `ask` seconds of silence. A shake whose beginning
was not seen (S2 or S1 as the first report) is the fault billy.unwatched. After noise the driver asks again.

From public code: the messages, the order S2, S1, S0, the program's values, 10 s for the first report, 2 s of silence
before asking, duration + 2 s + 5 s for a whole shake, and continuous asking after the duration. Our assumptions, and
therefore options: `silence` (12 s without any state is a lost shaker), `blind`, `early` (how much sooner than its
duration a shake may end) and `shortest` (of a shake with an unknown program). Also assumed: a request was not accepted,
or not begun, if the shaker answers twice that it is idle. Two hosts that send a request at the same moment cannot be
distinguished. The device detects no dome: a key of the console reports it, or the table's option `dome` is "fixed".
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from drivers.driver import CommandFailed, CommandRefused, Emit, Evidence, Link, LinkLost, Sighting, WireDecoder
from drivers.faults import Fault, Faults, Standing
from protocols import billy_iii as wire
from protocols.billy_iii import Ask, Cycle, Decoder, Garbage, State, encode
from protocols.contract.commands import Agitate, Command
from protocols.contract.events import DeviceOnline, DiceAgitated, DiceDisturbed, Event, Told

MODEL = "Billy-III"
AT_LEAST = 0.2  # seconds between two questions, whatever the reason
NEVER = float("inf")

NOT_ACCEPTED = Fault(
    "billy.not_accepted",
    "the shaker did not accept the order to shake",
    "check that the shaker is on and in remote mode; order the shake again; switch the shaker off and on",
    "by itself",
    "no shake: it is ordered again",
)
NOT_STARTED = Fault(
    "billy.not_started",
    "the shaker accepted the order but reported no shake",
    "check whether the plate is blocked or a die lies beside it; order the shake again",
    "by itself",
    "the shake does not count: it is ordered again",
)
NOT_FINISHED = Fault(
    "billy.not_finished",
    "the shake did not end in time, or its end was not received",
    "check whether the plate still moves; if so, switch the shaker off and on; then order the shake again",
    "by itself",
    "the shake does not count: it is ordered again",
)
CUT_SHORT = Fault(
    "billy.cut_short",
    "the shake ended before its time",
    "check the shaker's power supply and plug: it may have restarted; order the shake again",
    "by itself",
    "the shake does not count: it is ordered again",
)
MOTION = Fault(
    "billy.motion",
    "the shaker reports errors in its motion program (S90)",
    "switch the shaker off; free the plate; switch it on; if it happens again, have the motor or its driver replaced",
    "by a person",
    "the shake does not count: it is ordered again when the shaker is idle",
    "error",
)
UNKNOWN_STATE = Fault(
    "billy.unknown_state",
    "the shaker reports a state that this version does not support",
    "note what the shaker does meanwhile and send the record of the line to the maintainers",
    "by itself",
    "goes on; the shake counts if it ends normally",
)
UNWATCHED = Fault(
    "billy.unwatched",
    "the dice are being shaken, but the beginning of the shake was not received",
    "wait until the shaker is idle, then order a new shake",
    "by itself",
    "the shake does not count: it is ordered again",
)
_MEND = (NOT_ACCEPTED.code, NOT_STARTED.code, NOT_FINISHED.code, CUT_SHORT.code)


class BillyOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The program of a shake, and seconds. The module's docstring lists which are known and which are assumed."""

    pattern: Annotated[int, Meta(ge=0, le=999)] = 0
    parameter1: Annotated[int, Meta(ge=0, le=999_999)] = 10
    parameter2: Annotated[int, Meta(ge=0, le=999_999)] = 0
    amplitude: Annotated[float, Meta(gt=0, le=1)] = 0.41
    duration: Annotated[float, Meta(ge=1, le=60)] = 9.59
    network: Annotated[float, Meta(ge=0, le=30)] = 2.0
    margin: Annotated[float, Meta(ge=0, le=60)] = 5.0
    first: Annotated[float, Meta(ge=1, le=120)] = 10.0
    ask: Annotated[float, Meta(ge=0.2, le=10)] = 2.0
    silence: Annotated[float, Meta(ge=1, le=120)] = 12.0
    blind: Annotated[float, Meta(ge=0.5, le=30)] = 4.0
    early: Annotated[float, Meta(ge=0, le=10)] = 1.0
    shortest: Annotated[float, Meta(ge=0, le=60)] = 1.0


class Memory(Struct, frozen=True):
    """What survives the session."""

    standing: Standing = Standing()


class _Shake:
    """A shake in progress. `order`: the command that waits for it; None if another host requested it."""

    def __init__(self, at: float, order: asyncio.Future[dict[str, Any] | str] | None) -> None:
        self.at = at
        self.order = order
        self.accepted = False
        self.began: float | None = None
        self.seen = at
        self.blind = 0.0
        self.asked = 0

    def sees(self, tick: float) -> None:
        self.blind = max(self.blind, tick - self.seen)
        self.seen = tick

    def answer(self, outcome: dict[str, Any] | str) -> None:
        """Answer the command; a text is a failure."""
        if self.order is not None and not self.order.done():
            self.order.set_result(outcome)


class BillyIII:
    """The driver."""

    name: ClassVar[str] = "billy_iii"
    title: ClassVar[str] = "Billy-III dice shaker, MQTT"
    icon: ClassVar[str] = "shaker"
    decoder: ClassVar[WireDecoder | None] = Decoder
    emits: ClassVar[tuple[Told, ...]] = (DiceAgitated("electronic"), DiceDisturbed)
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    caveat: ClassVar[str] = "what counts as a whole shake is assumed, and options"
    Options: ClassVar[type[BillyOptions]] = BillyOptions
    faults: ClassVar[tuple[Fault, ...]] = (
        NOT_ACCEPTED,
        NOT_STARTED,
        NOT_FINISHED,
        CUT_SHORT,
        MOTION,
        UNKNOWN_STATE,
        UNWATCHED,
    )
    commands: ClassVar[tuple[type[Command], ...]] = (Agitate,)
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: BillyOptions, memory: bytes | None = None) -> None:
        self._options = options
        self._program = Cycle(
            options.pattern, options.parameter1, options.parameter2, options.amplitude, options.duration
        )
        kept = Memory()
        if memory is not None:
            with contextlib.suppress(msgspec.DecodeError):  # of another version: lasting faults come again
                kept = msgspec.json.decode(memory, type=Memory)
        self._faults = Faults(self.faults, kept.standing)
        self._link: Link | None = None
        self._state: int | None = None
        self._heard = 0.0
        self._asked = 0.0
        self._hurry = False
        self._shake: _Shake | None = None
        self._spent = False  # this shake was reported already, or began unseen: nothing counts before it is idle

    # ---- the line

    async def run(self, link: Link, emit: Emit) -> None:
        """Ask for the first state, come online, then report every shake."""
        decoder = Decoder()
        limit = self._options.first
        self._heard = link.stamp().tick
        await self._ask(link)
        try:
            while True:
                try:
                    async with asyncio.timeout(max(self._next() - link.stamp().tick, 0.0)):
                        chunk = await link.read()
                except TimeoutError:
                    chunk = link.stamp()
                sightings: list[Sighting] = []
                for message in decoder.feed(chunk.data):
                    match message:
                        case State(code, raw):
                            if self._state is None:
                                self._link = link
                                limit = self._options.silence
                                sightings.append(Sighting(DeviceOnline(False, MODEL), raw, chunk))
                            sightings += [Sighting(event, raw, chunk) for event in self._hear(code, chunk.tick)]
                        case Garbage():
                            self._hurry = True  # it may have been a state
                        case _:
                            pass
                sightings += [Sighting(event, b"", chunk) for event in self._overdue(chunk.tick)]
                if sightings:
                    await emit(sightings, msgspec.json.encode(Memory(self._faults.standing)))
                now = link.stamp().tick
                if now - self._heard >= limit:
                    raise LinkLost(f"the shaker has not reported its state for {limit:g} s")
                if now >= self._next():
                    await self._ask(link)
        finally:
            self._link = None
            if self._shake is not None:
                self._shake.answer("the connection to the shaker was lost in the middle: how it ended is unknown")

    def _next(self) -> float:
        """The second of the next question."""
        pause = self._options.ask
        shake = self._shake
        if self._hurry or (shake is not None and self._asked - shake.at >= self._options.duration):
            return self._asked + AT_LEAST
        if shake is not None and max(self._heard, self._asked) + pause > shake.at + self._options.duration:
            return max(shake.at + self._options.duration, self._asked + AT_LEAST)
        return max(self._heard, self._asked) + pause

    async def _ask(self, link: Link) -> None:
        self._hurry = False
        self._asked = link.stamp().tick
        if self._shake is not None:
            self._shake.asked += 1
        await link.write(encode(Ask()))

    # ---- incoming messages

    def _hear(self, code: int, tick: float) -> Sequence[Event]:
        """One state."""
        self._heard = tick
        before, self._state = self._state, code
        events: list[Event] = []
        if code in {wire.IDLE, wire.SHAKING, wire.ACCEPTED, wire.MOTION_ERROR}:
            events += self._faults.end(UNKNOWN_STATE.code)
        match code:
            case wire.IDLE:
                self._spent = False
                events += self._faults.end(MOTION.code, UNWATCHED.code)
                events += self._idle(tick)
            case wire.SHAKING | wire.ACCEPTED if self._spent:
                pass
            case wire.SHAKING | wire.ACCEPTED if self._shake is None and before != wire.IDLE:
                self._spent = True
                events += [DiceDisturbed(), *self._faults.begin(UNWATCHED.code)]
            case wire.SHAKING | wire.ACCEPTED:
                events += self._moves(code, tick)
            case wire.MOTION_ERROR:
                events += self._fail(MOTION) if self._shake is not None else self._faults.begin(MOTION.code)
                self._spent = True
            case _:
                if self._shake is not None:
                    self._shake.sees(tick)
                events += self._faults.begin(UNKNOWN_STATE.code, f"S{code}")
        return events

    def _moves(self, code: int, tick: float) -> Sequence[Event]:
        """S2 or S1 of a shake that counts."""
        shake = self._shake = self._shake or _Shake(tick, None)
        shake.sees(tick)
        if not shake.accepted:
            shake.accepted = True
            shake.asked = 0
        ended: list[str] = [NOT_ACCEPTED.code]
        if code == wire.SHAKING:
            shake.began = tick if shake.began is None else shake.began
            ended.append(NOT_STARTED.code)
        return self._faults.end(*ended)

    def _idle(self, tick: float) -> Sequence[Event]:
        """S0: the end of a shake, or a request that was not executed."""
        shake, options = self._shake, self._options
        if shake is None:
            return []
        if shake.began is None:
            if shake.asked < 2 or tick - shake.at < options.network:
                return []  # it may have been sent before the order arrived
            return self._fail(NOT_STARTED if shake.accepted else NOT_ACCEPTED, "it is idle")
        shake.sees(tick)
        lasted = tick - shake.at
        enough = options.shortest if shake.order is None else options.duration - options.early
        if lasted < enough:
            return self._fail(CUT_SHORT, f"after {lasted:.1f} s")
        if shake.blind > options.blind:
            return self._fail(NOT_FINISHED, f"no state was received for {shake.blind:.1f} s of it")
        self._shake = None
        events: list[Event] = [DiceAgitated("electronic"), *self._faults.end(*_MEND)]
        self._faults.good_cycle()
        shake.answer({"seconds": round(lasted, 2)})
        return events

    def _overdue(self, tick: float) -> Sequence[Event]:
        """A shake that takes too long."""
        shake, options = self._shake, self._options
        limit = options.duration + options.network + options.margin
        if shake is None or tick - shake.at < limit:
            return []
        fault = NOT_ACCEPTED
        if shake.accepted:
            fault = NOT_STARTED if shake.began is None else NOT_FINISHED
        self._spent = shake.accepted  # if it moves after all: this shake was reported as failed
        return self._fail(fault, f"{limit:.1f} s after the order")

    def _fail(self, fault: Fault, detail: str = "") -> Sequence[Event]:
        """The shake in progress does not count."""
        assert self._shake is not None
        moved = [DiceDisturbed()] if self._shake.began is not None else []
        self._shake.answer(f"{fault.text} ({detail})" if detail else fault.text)
        self._shake = None
        return [*moved, *self._faults.strike(fault.code, detail)]

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """Shake once; returns the seconds when it is over. Takes at most duration + network + margin, and a
        question.
        """
        assert isinstance(command, Agitate)
        link, options = self._link, self._options
        if command.cycles != 1:
            raise CommandRefused("one order to this shaker is one shake: order 1 cycle")
        if link is None:
            raise CommandRefused("the shaker is not connected")
        if self._shake is not None:
            raise CommandRefused("a shake is under way")
        if self._state != wire.IDLE:
            raise CommandRefused(f"the shaker is not idle: it reports S{self._state}")
        now = link.stamp().tick
        if now - self._heard > 2 * options.ask:
            raise CommandRefused(f"the shaker has reported no state for {now - self._heard:.1f} s")
        shake = _Shake(now, asyncio.get_running_loop().create_future())
        assert shake.order is not None
        self._shake = shake
        try:
            await link.write(encode(self._program))
        except LinkLost as error:
            self._forget(shake)
            raise CommandFailed(f"the order may not have reached the shaker: {error}") from error
        # A little more than the limit at which the reading side gives up and reports why.
        limit = options.duration + options.network + options.margin + 2 * options.ask
        try:
            async with asyncio.timeout(limit):
                outcome = await shake.order
        except TimeoutError:
            raise CommandFailed(f"whether it shook is unknown: no end of the shake in {limit:.1f} s") from None
        if isinstance(outcome, str):
            raise CommandFailed(outcome)
        return outcome

    def _forget(self, shake: _Shake) -> None:
        if self._shake is shake:
            self._shake = None
