"""Driver for the TCS John Huxley Saturn wheel: from polls and answers to spins.

The wheel only answers: it is asked for its status (SR2) every 200 ms, and for the error (SR3) while one is pending. An
answer counts for one question, so a repeated answer counts once; the line's own echo is ignored. A single answer
proves nothing: every step of state, counter, number, direction or error flag needs a second consecutive status with the
same content. A number must be stable for a moment, in a spin whose start and launch were seen; one that changes
afterwards is a void spin.

The spin counter is compared with the last known one, also over sessions and restarts: what ended unseen is a missed
spin, and a number found afterwards is never its landing. drivers/spin_counter.py decides what a lower counter proves.
If bets are open under the same counter after a long interruption, they belong to a new spin: nothing proves that it is
the old one, nor that one was missed. In both cases the wheel does not come online as continuous.

Known from public code: frames, checksum, SR2, SR3, RC03, the place of the error flag and of the error. ASSUMED, and
therefore options: the two digits of each question; that answers carry the checksum; the whole `map` of the answer to
SR2 except the error flag, its values of states, counter, number and directions; that the number field is blank until
the ball has fallen (a field with a number while the ball runs disproves the map, and no number is reported); the texts
of SR3. An answer that does not fit the map is no status: a wheel whose answers never fit is refused, with the place.

The answer to RC03 is unknown: a launch is done when two statuses show the ball in the rim. A launch is made durable
before it is sent, so that a line that is cut before the ball is seen allows no second one.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
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
from drivers.spin_counter import SHORTEST_SPIN, CountedSpin, SpinCounter, after_long_absence, outdated
from protocols import tcs_saturn as wire
from protocols.contract.commands import Ask, Command, LaunchBall
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    DeviceOnline,
    Event,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    Told,
    WheelStarted,
    WheelStopped,
)
from protocols.tcs_saturn import Broken, Decoder, Field, Frame, Layout, Message, Misfit, State, Status, StatusCodec

MODEL = "TCS Saturn"
FRAME_GAP = 0.1  # seconds: bytes of one answer are not further apart; a byte takes 1 ms at 9600
ERROR_AGAIN = 1.0  # seconds between two questions for an error that is known and still pending
STALE = 1.0  # seconds after which a status is too old for a command
MISFITS = 5  # whole frames of which none fits: the map is wrong, not the line
SEND_WITHIN = 2.0
ASK_WITHIN = 3.0
# After so long an interruption a begun spin is not resumed, even with the same counter.
LONGEST_SPIN = timedelta(minutes=5)

ASKS = ("error", "status")
Station: TypeAlias = Annotated[str, Meta(pattern="^[0-9]{2}$", description="two digits")]
Effect: TypeAlias = Literal["void", "number", "none"]

VOID = "void if the fault is detected while the ball runs"
NUMBER = "counts if the fault ends before the number, else void"
WATCH = "clean the rim sensors, look for a ball out of the track, restart the game at the wheel"


class _Error(Struct, frozen=True):
    """One of the wheel's errors. `effect`: it spoils a spin with the ball running, only the number, or nothing."""

    name: str
    effect: Effect
    fault: Fault


def _error(name: str, effect: Effect, text: str, remedy: str, *, person: bool) -> _Error:
    code = f"saturn.{name.lower().replace(' ', '_')}"
    outcome = {"void": VOID, "number": NUMBER, "none": "counts"}[effect]
    return _Error(name, effect, Fault(code, text, remedy, "by a person" if person else "by itself", outcome))


# The names are those of a studio with such wheels.
ERRORS = (
    _error(
        "NO BALL DETECT",
        "void",
        "the ball is not detected in the track",
        "look for the ball: in the track, on the rotor, on the floor; put it back; clean the rim sensors",
        person=True,
    ),
    _error(
        "NO WIN NUM",
        "void",
        "the ball fell, but the wheel could not read its number",
        "look for a foreign object or two balls on the rotor; clean the number sensor; let the wheel spin again",
        person=False,
    ),
    _error(
        "SENSOR STUCK",
        "void",
        "a ball sensor is stuck, on or off",
        "clean the rim sensors and take away what covers them; if it happens again, replace the sensor",
        person=True,
    ),
    _error(
        "WRONG BALL DIR",
        "void",
        "the ball runs with the rotor",
        "let the wheel spin again; if it happens again, check the launcher's valves and the direction setting",
        person=False,
    ),
    _error(
        "WRONG WHEEL DIR",
        "void",
        "the rotor turns the wrong way",
        "let the wheel start again; if it happens again, check the motor's plug and the direction setting",
        person=False,
    ),
    _error(
        "LAUNCH FAIL",
        "number",
        "the ball was not launched",
        "wait until the wheel tries again; if it fails, look for the ball in the launcher, check air pressure and "
        "nozzle",
        person=False,
    ),
    _error(
        "NOT REACH POS",
        "number",
        "the ball lift does not reach its position",
        "wait until the wheel tries again; if it fails, free the lift, check its motor and end switches",
        person=False,
    ),
    _error(
        "HARDWARE FAULT",
        "void",
        "the controller reports a hardware fault and stops the wheel",
        "switch the wheel off and on; check motor, sensor board and their plugs",
        person=True,
    ),
    _error(
        "ENCODER FAIL",
        "void",
        "the rotor's position is unknown: its encoder fails",
        "clean the encoder's disc, check its plug and distance; replace the encoder",
        person=True,
    ),
    _error(
        "BALL DROP FAIL",
        "number",
        "the ball does not drop from its pocket to the launcher",
        "take the ball out of its pocket by hand and put it into the launcher; clean the drop hole",
        person=True,
    ),
    _error(
        "COMPRESSOR LEAK",
        "none",
        "the compressor loses air",
        "check hoses and fittings between two rounds, before launches begin to fail",
        person=True,
    ),
    _error(
        "STUCK NMB",
        "void",
        "the wheel stays in the phase 'no more bets': the ball does not fall",
        "check whether the ball lies on a diamond or on a foreign object; free it; restart the game at the wheel",
        person=True,
    ),
    _error(
        "INVALID AFTER RELAUNCH",
        "void",
        "no valid result after the ball was launched again",
        "let the wheel spin again; if it happens again, find the cause of the failed launch",
        person=False,
    ),
)
UNKNOWN = "saturn.error"
CHANGED = "saturn.number_changed"
RESET = "saturn.counter_reset"
MAP = "saturn.map_doubtful"
OWN_FAULTS = (
    Fault(
        UNKNOWN,
        "the wheel reports an error that this version does not support",
        "read the wheel's own display; write down the text and add it to `errors` in this device's options",
        "by itself",
        VOID,
    ),
    Fault(
        CHANGED,
        "the wheel changed the number that it showed",
        f"look where the ball lies: it may have bounced or been touched; {WATCH}",
        "by itself",
        "void, also after its number was reported",
    ),
    Fault(
        RESET,
        "the wheel's spin counter began again: the wheel lost power, was restarted or reset",
        "check the wheel's power supply and plug, and whether somebody restarted it",
        "by itself",
        "missed: bets of a spin under way are returned",
    ),
    Fault(
        MAP,
        "the number field shows a number while the ball runs: the map of the answers may be wrong",
        "compare a recording with the wheel's display and correct `map`; or set `blank_first` to false if this wheel "
        "keeps its last number",
        "by itself",
        "void: a number that may be wrong is not reported",
        "error",
    ),
)
_EFFECTS: dict[str, Effect] = {error.fault.code: error.effect for error in ERRORS}
_REPORTED = (*_EFFECTS, UNKNOWN)


class SaturnOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`silence`: seconds without a valid status after which the wheel counts as lost. `poll`: seconds between polls.

    `status_station`, `error_station`, `launch_station`: the two digits of SR2, SR3, RC03. `checksum`: false accepts
    answers without the checksum, too, if they fit the map. `map`: the positions of the fields in the answer to SR2.
    `blank_first`: the number field is blank until the ball has fallen. `stands`: seconds for which a number must be
    stable before it is reported. `error_text`: the position of the error in the answer to SR3; `errors`: fault codes of
    further texts, {"ARE.9" = "saturn.encoder_fail"}; `harmless`: errors with which a number counts.

    `launch_apart`: seconds between two launches; `launch_within`: seconds within which the ball must be seen.
    `shortest_spin`: minimum seconds of a spin. A lower counter that is some spins ahead after less than that many times
    this value was reset and did not wrap around; one spin ahead always wrapped.
    """

    silence: Annotated[float, Meta(ge=1, le=60)] = 3.0
    poll: Annotated[float, Meta(ge=0.05, le=1)] = 0.2
    status_station: Station = wire.STATUS_STATION
    error_station: Station = wire.ERROR_STATION
    launch_station: Station = wire.LAUNCH_STATION
    checksum: bool = True
    map: Layout = Layout()
    blank_first: bool = True
    stands: Annotated[float, Meta(ge=0, le=10)] = 1.0
    error_text: Field = wire.ERROR_FIELD
    errors: dict[str, str] = {}
    harmless: tuple[str, ...] = ("saturn.compressor_leak",)
    launch_apart: Annotated[float, Meta(ge=20, le=600)] = 20.0
    launch_within: Annotated[float, Meta(ge=1, le=60)] = 10.0
    shortest_spin: Annotated[float, Meta(gt=0, le=60)] = SHORTEST_SPIN

    def __post_init__(self) -> None:
        """Raise ValueError for a fault code that does not exist."""
        for name, codes in (("errors", self.errors.values()), ("harmless", self.harmless)):
            for code in codes:
                if code not in _REPORTED:
                    raise ValueError(f"{name}: there is no error {code!r}; known: {', '.join(_REPORTED)}")


class Spin(CountedSpin, frozen=True, kw_only=True):
    """The last known spin. `state` None: none yet.

    `number`: the one that two answers had. `doubt`: why its number would not be reported.
    """

    state: State | None
    number: str = ""
    doubt: str = ""


class Memory(Struct, frozen=True):
    """What outlives a session: the last spin known, the faults, and when a ball was last fired by command."""

    spin: Spin | None = None
    faults: Standing = Standing()
    fired: Annotated[datetime, Meta(tz=True)] | None = None
    fired_tick: float | None = None


class _Order:
    """A command on its way."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.sent = False
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def done(self, result: dict[str, Any]) -> None:
        """It is done."""
        if not self.answer.done():
            self.answer.set_result(result)

    def fails(self, error: CommandRefused | CommandFailed) -> None:
        """It will not be done."""
        if not self.answer.done():
            self.answer.set_exception(error)


class TcsSaturn:
    """The driver."""

    name: ClassVar[str] = "tcs_saturn"
    title: ClassVar[str] = "TCS John Huxley Saturn roulette wheel"
    icon: ClassVar[str] = "wheel"
    decoder: ClassVar[WireDecoder | None] = Decoder
    emits: ClassVar[tuple[Told, ...]] = (
        BallLanded,
        BallLaunched,
        BallSettling,
        SpinMissed,
        SpinStarted,
        SpinVoided,
        WheelStarted,
        WheelStopped,
    )
    evidence: ClassVar[tuple[Evidence, ...]] = ("public code",)
    caveat: ClassVar[str] = "the layout of its answers is assumed, and an option"
    Options: ClassVar[type[SaturnOptions]] = SaturnOptions
    faults: ClassVar[tuple[Fault, ...]] = (*(error.fault for error in ERRORS), *OWN_FAULTS)
    commands: ClassVar[tuple[type[Command], ...]] = (LaunchBall, Ask)
    tells_cards: ClassVar[bool] = False
    choices: ClassVar[Mapping[tuple[str, str], tuple[str, ...]]] = {("ask", "what"): ASKS}
    """The values that it accepts in a text field of a command."""

    def __init__(self, options: SaturnOptions, memory: bytes | None = None) -> None:
        """Take up the spin and the faults of the last session, if they are known."""
        remembered = decode_memory(memory, Memory) or Memory()
        self._options = options
        self._counter = SpinCounter(10**options.map.spin.length, options.shortest_spin, LONGEST_SPIN)
        self._codec = StatusCodec(options.map)
        self._texts = _error_texts(options)
        self._questions = {
            wire.STATUS: wire.encode(Frame(options.status_station, wire.STATUS)),
            wire.ERROR: wire.encode(Frame(options.error_station, wire.ERROR)),
            wire.LAUNCH: wire.encode(Frame(options.launch_station, wire.LAUNCH)),
        }
        self._echoes = frozenset(self._questions.values())
        self._spin = remembered.spin
        self._kept = None if self._spin is None else self._spin.tick
        self._faults = Faults(self.faults, remembered.faults)
        self._fired = remembered.fired
        self._fired_tick = remembered.fired_tick
        self._asked = ""
        self._error_turn = False
        self._online = False
        self._joining = True
        self._long_away = False
        self._landed_before = self._spin is not None and self._spin.landed
        self._misfits = 0
        self._misfit = ""
        self._before: tuple[Status, Chunk] | None = None
        self._believed: Status | None = None
        self._seen = 0.0
        self._shown: set[str] = set()
        self._number_since: tuple[float, bytes] | None = None
        self._pending = False
        self._error: str | None = None
        self._error_witness: str | None = None
        self._error_due = 0.0
        self._blank = False
        self._order: _Order | None = None
        self._link: Link | None = None

    async def run(self, link: Link, emit: Emit) -> None:
        """Poll the wheel and report events until the link is lost."""
        decoder = Decoder()
        loop = asyncio.get_running_loop()
        last_valid = asked_at = loop.time()
        due = asked_at
        self._link = link
        try:
            while True:
                try:
                    async with asyncio.timeout_at(due):
                        chunk = await link.read()
                except TimeoutError:
                    if loop.time() - last_valid >= self._options.silence:
                        self._lost()
                    now = loop.time()
                    question = await self._next(link, emit)
                    asked_at = loop.time()
                    last_valid += asked_at - now  # this process was busy: that is no pause of the wheel
                    due = asked_at + self._options.poll
                    await link.write(question)
                    continue
                sightings, valid = self._hear(decoder.feed(chunk.data), chunk)
                now = loop.time()
                if valid:
                    last_valid = now
                lost = not valid and now - last_valid >= self._options.silence
                # Half duplex: sending during an answer destroys both.
                due = max(asked_at + self._options.poll, now + (FRAME_GAP if decoder.waiting else 0.0))
                if sightings or (self._spin is not None and outdated(self._spin.tick, self._kept)):
                    await self._tell(emit, sightings)
                    last_valid += loop.time() - now  # this process was busy: that is no pause of the wheel
                if lost:
                    self._lost()
        except LinkLost:
            if self._spin is not None and self._spin.tick != self._kept:  # save the last seen tick at the end
                await self._tell(emit)
            raise
        finally:
            self._link = None
            if self._order is not None:
                text = "the line was lost after the command was sent; its outcome is unknown"
                unsent = CommandRefused("the line was lost before the command was sent")
                self._order.fails(CommandFailed(text) if self._order.sent else unsent)

    def _lost(self) -> None:
        silence = self._options.silence
        if self._misfits >= MISFITS:
            raise DeviceRefused(
                f"the wheel answers, but none of its answers in {silence:g} s fits the map: {self._misfit}; "
                "record the line and correct `map` in this device's options"
            )
        raise LinkLost(f"no valid status for {silence:g} s")

    async def _tell(self, emit: Emit, sightings: Sequence[Sighting] = ()) -> None:
        """Emit the events with the memory. Both are durable on return."""
        memory = Memory(self._spin, self._faults.standing, self._fired, self._fired_tick)
        await emit(sightings, msgspec.json.encode(memory))
        self._kept = None if self._spin is None else self._spin.tick

    # ---- questions

    async def _next(self, link: Link, emit: Emit) -> bytes:
        """The next question: a launch that was ordered, else an error in turn with the status."""
        order = self._order
        if order is None or order.sent or order.answer.done():
            return self._question(link.stamp())
        if isinstance(order.command, LaunchBall) and not await self._cleared(order, link, emit):
            return self._question(link.stamp())
        order.sent = True
        if isinstance(order.command, LaunchBall):
            self._asked = wire.LAUNCH
            return self._questions[wire.LAUNCH]
        self._error_witness = None
        self._error_due = 0.0
        return self._question(link.stamp())

    async def _cleared(self, order: _Order, link: Link, emit: Emit) -> bool:
        """Whether the ball may be launched now. The launch is durable then, so that another session finds it."""
        stamp = link.stamp()
        reason = self._unsafe(stamp)
        if not reason:
            before = self._fired, self._fired_tick
            self._fired, self._fired_tick = stamp.at, stamp.tick
            await self._tell(emit)
            reason = self._unready(link.stamp())  # the commit may have taken long
            if reason or order.answer.done():
                self._fired, self._fired_tick = before
        if reason:
            order.fails(CommandRefused(reason))
        return not order.answer.done()

    def _question(self, stamp: Chunk) -> bytes:
        """The error in turn with the status."""
        self._asked = wire.STATUS
        wanted = self._pending and stamp.tick >= self._error_due
        self._error_turn = not self._error_turn and (wanted or self._answers_ask())
        if self._error_turn:
            self._asked = wire.ERROR
        return self._questions[self._asked]

    def _answers_ask(self) -> bool:
        order = self._order
        return order is not None and order.sent and isinstance(order.command, Ask) and not order.answer.done()

    # ---- answers

    def _hear(self, messages: Sequence[Message], chunk: Chunk) -> tuple[list[Sighting], bool]:
        """The events of the messages, and whether a status was among them."""
        sightings: list[Sighting] = []
        valid = False
        for message in messages:
            if not self._counts(message):
                continue
            # Each poll accepts one answer; repeated or late answers are dropped.
            asked, self._asked = self._asked, ""
            if not asked or asked == wire.LAUNCH:
                continue
            try:
                status = self._codec.read(message.raw)
            except Misfit as misfit:
                if asked == wire.ERROR:
                    sightings += [Sighting(event, message.raw, chunk) for event in self._error_told(message, chunk)]
                else:
                    self._misfits += 1
                    self._misfit = f"{message.raw!r}: {misfit}"
                continue
            valid = True
            self._misfits = 0
            if not self._online:
                self._online = True
                self._long_away = self._spin is not None and self._counter.long_ago(self._spin, chunk)
                sightings.append(Sighting(DeviceOnline(self._continuous(status, chunk), MODEL), message.raw, chunk))
            sightings += self._status(status, chunk)
        return sightings, valid

    def _continuous(self, status: Status, chunk: Chunk) -> bool:
        last = self._spin
        same = last is not None and last.spin == status.spin
        again = last is not None and same and self._landed_before and _counts_again(last, status, chunk)
        return self._counter.continuous(last, status.spin, chunk, long_away=self._long_away, counted_again=again)

    def _counts(self, message: Message) -> bool:
        """Whether it is an answer, and not noise or the echo of a question on a two-wire line."""
        match message:
            case Frame(raw=raw):
                return raw not in self._echoes
            case Broken():
                return not self._options.checksum
            case _:
                return False

    def _error_told(self, message: Message, chunk: Chunk) -> Iterator[Event]:
        """An answer to SR3. It counts when two consecutive answers agree."""
        field = self._options.error_text
        answer = message.raw.decode("latin-1").split(chr(wire.ETX))[0]
        if len(answer) < field.at + field.length:
            return
        text = field.of(answer).strip()
        witness, self._error_witness = self._error_witness, text
        if text != witness:
            return
        code = self._texts.get(text.upper(), UNKNOWN) if text or self._pending else ""
        self._error_due = chunk.tick + ERROR_AGAIN
        self._error_witness = None
        order = self._order
        if order is not None and order.sent and isinstance(order.command, Ask):
            order.done({"error": text, "code": code, "pending": self._pending})
        if not self._pending:
            return
        if not text and not self._blank:  # the error may be over while the flag was not yet seen to fall
            self._blank = True
            return
        self._blank = not text
        self._error = code
        if self._faults.is_open(code):
            return
        for event in self._faults.begin(code, repr(text) if code == UNKNOWN else ""):
            if order is not None and order.sent and isinstance(order.command, LaunchBall):
                order.fails(CommandFailed(f"the launch was sent, and the wheel reports {code}: {event.text}"))
            yield event

    def _status(self, status: Status, chunk: Chunk) -> Iterator[Sighting]:
        before, self._before = self._before, (status, chunk)
        self._seen = chunk.tick
        if self._spin is not None and (status.state, status.spin) == (State.WINNING_NUMBER, self._spin.spin):
            self._shown |= {status.number} - {""}
        if before is None or _said(before[0]) != _said(status):
            return
        self._believed = status
        for event in self._flag(status):
            yield Sighting(event, before[0].raw + status.raw, chunk)
        spin = self._spin
        if spin is None:  # first contact: a spin that is over was not missed
            over = status.state is State.WINNING_NUMBER
            spin = Spin(spin=status.spin, state=None, at=chunk.at, ended=over, tick=chunk.tick)
        elif self._joining and self._long_away:  # too long to be the same spin
            spin, missed = after_long_absence(spin, status.spin, bets_open=status.state is State.PLACE_BETS)
            if missed:
                yield Sighting(SpinMissed(1), status.raw, chunk)
        self._joining = False
        if status.spin != spin.spin or (self._landed_before and _counts_again(spin, status, chunk)):
            self._landed_before = False
            spin, events = self._counted(spin, status, chunk)
            for event in events:
                yield Sighting(event, before[0].raw + status.raw, chunk)
        for event in self._step(spin, status, chunk, before[1].tick):
            if isinstance(event, BallLanded) and self._number_since is not None:
                yield Sighting(event, self._number_since[1] + status.raw, chunk)
            else:
                yield Sighting(event, before[0].raw + status.raw, chunk)

    def _flag(self, status: Status) -> Iterator[Event]:
        """The error flag: a new error is requested by SR3; when the flag falls, every error is over."""
        if status.error and not self._pending:
            self._pending = True
            self._error = self._error_witness = None
            self._error_due = 0.0
            self._blank = False
        elif not status.error:
            self._pending = False
            self._error = None
            yield from self._faults.end(*_REPORTED)

    # ---- spins

    def _counted(self, spin: Spin, status: Status, chunk: Chunk) -> tuple[Spin, list[Event]]:
        """The counter moved: the previous spin is over; its unreported number is lost."""
        advance = self._counter.advance(spin, status.spin, chunk)
        missed = advance.missed
        events: list[Event] = []
        if not advance.counts_on:
            events += self._faults.strike(RESET, f"it showed {spin.spin}, then {status.spin}")
        if not spin.ended and (spin.begun or advance.counts_on):
            shown = advance.steps == 1 and spin.state is State.WINNING_NUMBER
            if wrong := self._wrong(spin) if shown else spin.doubt:
                events.append(SpinVoided(wrong))
            else:
                missed += 1
        if missed:
            events.append(SpinMissed(missed))
        self._number_since = None
        self._shown = set()
        return Spin(spin=status.spin, state=None, at=chunk.at, tick=chunk.tick), events

    def _step(self, spin: Spin, status: Status, chunk: Chunk, since: float) -> Iterator[Event]:  # noqa: C901 - a case for each state of the wheel
        """Within one spin. `since`: the tick of the first of the two answers."""
        before, state = spin.state, status.state
        under_way = spin.begun and not spin.ended
        new = replace(spin, state=state, at=chunk.at, tick=chunk.tick)
        match state:
            case State.STARTED:
                if before is not state:
                    if under_way:
                        yield self._cut_short(spin, "restarted")
                    # After the number the counter may still be that of the spin that is over.
                    over = before is State.WINNING_NUMBER or spin.landed
                    new = replace(new, begun=False, launched=False, ended=over, number="", doubt="")
                    yield WheelStarted()
            case State.PLACE_BETS:
                if (before is not state or not spin.begun) and (spin.launched or not under_way):
                    if under_way:
                        yield self._cut_short(spin, "restarted")
                    new = replace(new, begun=True, launched=False, ended=False, number="", doubt="", landed=False)
                    yield SpinStarted(status.spin)
            case State.BALL_IN_RIM | State.NO_MORE_BETS if under_way:
                if not spin.launched:
                    new = replace(new, launched=True)
                    yield self._launched(status)
                if state is State.NO_MORE_BETS and before is not state:
                    yield BallSettling()
                if self._options.blank_first and status.number and not spin.doubt:
                    new = replace(new, doubt="number_shown_too_early")
                    yield from self._faults.begin(MAP, f"{status.number!r} in the state {state.value}")
                if status.ball == status.rotor:
                    new = replace(new, ended=True)
                    yield SpinVoided("ball_with_rotor")
            case State.WINNING_NUMBER if spin.begun and spin.launched and status.number:
                new, events = self._number(new, status, chunk, since)
                yield from events
            case State.BALL_IN_RIM | State.NO_MORE_BETS | State.WINNING_NUMBER if not spin.ended and not spin.launched:
                new = replace(new, ended=True, landed=state is State.WINNING_NUMBER and bool(status.number))
                yield SpinMissed(1)  # its start or its launch was not seen, so the number is not reported
            case State.TABLE_CLOSED:
                if under_way:
                    new = replace(new, ended=True)
                    yield self._cut_short(spin, "table_closed")
                if before is not state:
                    yield WheelStopped()
            case _:
                pass
        if state is not State.WINNING_NUMBER:
            self._number_since = None
            self._shown = set()
        if new.begun and new.launched and not new.ended and (reason := self._spoiled(state)):
            new = replace(new, ended=True)
            yield SpinVoided(reason)
        self._spin = new

    def _number(self, spin: Spin, status: Status, chunk: Chunk, since: float) -> tuple[Spin, list[Event]]:
        """The wheel shows a number. It is reported after it was stable long enough without a contradiction.

        After any other number, even in a single answer, the position of the ball is unknown and none is reported.
        """
        if (spin.ended and not spin.number) or spin.doubt == CHANGED:
            return spin, []
        number = spin.number or status.number
        others = {status.number} if spin.ended else self._shown
        if others - {number}:
            faulted = self._faults.strike(CHANGED, f"{number}, then {', '.join(sorted(others - {number}))}")
            changed = replace(spin, number=number, ended=True, landed=True, doubt=CHANGED)
            return changed, [*faulted, SpinVoided("number_changed")]
        spin = replace(spin, number=number)
        if spin.ended:
            return spin, []
        if spin.doubt:
            return replace(spin, ended=True), [SpinVoided(spin.doubt)]
        if self._number_since is None:
            self._number_since = since, status.raw
            self._error = None  # the pending error may differ from the last reported one
            self._error_due = 0.0
        harmless = not self._pending or self._error in self._options.harmless
        if not harmless or chunk.tick - self._number_since[0] < self._options.stands:
            return spin, []
        self._faults.good_cycle()
        return replace(spin, ended=True, landed=True), [BallLanded(spin.number), *self._faults.end(CHANGED, RESET, MAP)]

    def _launched(self, status: Status) -> BallLaunched:
        order = self._order
        if order is not None and order.sent and isinstance(order.command, LaunchBall):
            order.done({"spin": status.spin, "ball": status.ball, "rotor": status.rotor})
        return BallLaunched(status.ball, status.rotor)

    def _spoiled(self, state: State) -> str:
        """Why a spin whose ball runs or has fallen does not count; "" if it counts."""
        for code in _REPORTED:
            if self._faults.is_open(code) and code not in self._options.harmless:
                effect = _EFFECTS.get(code, "void")
                if effect == "void" or state is State.WINNING_NUMBER:
                    return code.removeprefix("saturn.")
        return ""

    def _cut_short(self, spin: Spin, reason: str) -> SpinVoided | SpinMissed:
        """A spin ended before its number was reported. It is not void if the ball had fallen without a fault."""
        if wrong := self._wrong(spin):
            return SpinVoided(wrong)
        return SpinMissed(1) if spin.state is State.WINNING_NUMBER else SpinVoided(reason)

    def _wrong(self, spin: Spin) -> str:
        """Why a number of this spin would not count; "" if it counts."""
        wrong = spin.doubt or self._spoiled(State.WINNING_NUMBER)
        return wrong or ("error" if self._pending and self._error not in self._options.harmless else "")

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """Launch the ball, or report the error or the status. Raises CommandRefused or CommandFailed."""
        if self._link is None:
            raise CommandRefused("there is no line to the wheel")
        if self._order is not None:
            raise CommandRefused("another command is under way; wait for its answer")
        match command:
            case LaunchBall():
                if reason := self._unsafe(self._link.stamp()):
                    raise CommandRefused(reason)
                limit = self._options.launch_within
            case Ask(what="status"):
                return self._tell_status(self._link.stamp())
            case Ask(what="error"):
                limit = ASK_WITHIN
            case Ask(what=what):
                raise CommandRefused(f"the wheel cannot be asked for {what!r}; it answers {', '.join(ASKS)}")
            case _:
                raise CommandRefused("the wheel has no such command")
        order = self._order = _Order(command)
        try:
            async with asyncio.timeout(limit + SEND_WITHIN):
                return await order.answer
        except TimeoutError:
            if not order.sent:
                raise CommandRefused(f"the line was busy for {limit + SEND_WITHIN:g} s; nothing was sent") from None
            if isinstance(command, LaunchBall):
                text = "the launch was sent, and no ball is seen in the rim; look for it before the next launch"
            else:
                text = "the wheel did not answer the request for its error twice with the same text"
            raise CommandFailed(text) from None
        finally:
            self._order = None

    def _unsafe(self, stamp: Chunk) -> str:
        """Why the ball must not be launched now; "" where it may."""
        return self._unready(stamp) or self._too_soon(stamp)

    def _unready(self, stamp: Chunk) -> str:
        """Why the wheel's state forbids a launch; "" where it does not."""
        status = self._believed
        if status is None or self._before is None or stamp.tick - self._seen > STALE:
            return "the wheel's state is unknown now; wait until the wheel answers"
        for one in (self._before[0], status):
            if one.state in _BALL_RUNS:
                return "a ball runs; wait for its number"
            if one.state is not State.PLACE_BETS:
                return f"the wheel is not in its betting phase but in {one.state.value!r}"
            if one.error and not (self._error and self._error in self._options.harmless):
                return f"an error is pending ({self._error or 'not yet reported'}); put it right first"
        return ""

    def _too_soon(self, stamp: Chunk) -> str:
        """Why the last launch forbids another; "" where it does not."""
        if self._fired is not None:
            passed = stamp.after_at_least(self._fired, self._fired_tick).total_seconds()
            apart = self._options.launch_apart
            if 0 <= passed < apart:
                return f"the last launch was {passed:.0f} s ago; leave {apart:g} s between two"
        return ""

    def _tell_status(self, stamp: Chunk) -> dict[str, Any]:
        status = self._believed
        if status is None or stamp.tick - self._seen > STALE:
            raise CommandRefused("the wheel's state is unknown now; wait until the wheel answers")
        told = {"state": status.state.value, "spin": status.spin, "speed": status.speed / 10, "error": status.error}
        return told | {"ball": status.ball, "rotor": status.rotor}


_BALL_RUNS = (State.BALL_IN_RIM, State.NO_MORE_BETS)
_SPINS = (State.PLACE_BETS, *_BALL_RUNS)


def _counts_again(spin: Spin, status: Status, chunk: Chunk) -> bool:
    """Whether the wheel was switched off and counted again up to a spin that landed in an earlier session."""
    if status.state is State.WINNING_NUMBER:  # another number, and too late for a change of the reported one
        other = bool(spin.number) and status.number not in {"", spin.number}
        return other and chunk.after_at_least(spin.at, spin.tick) > LONGEST_SPIN
    return status.state in _SPINS


def _said(status: Status) -> Status:
    """The part of a status that a second answer must repeat: all but the speed."""
    return replace(status, speed=0, raw=b"")


def _error_texts(options: SaturnOptions) -> dict[str, str]:
    """Fault codes by the text of SR3: "ARE.3", distinct beginnings of the names, and the configured texts."""
    length = options.error_text.length
    texts: dict[str, str] = {"ARE.3": "saturn.sensor_stuck"}
    for error in ERRORS:
        text = error.name[:length].strip()
        texts[text] = UNKNOWN if text in texts else error.fault.code
    return texts | {text.strip().upper(): code for text, code in options.errors.items()}
