"""From the status lines of a Cammegh SS2 wheel to spins, for its driver.

The line has no checksum, so a single line proves nothing. A step needs a second line with the same content, a flag
needs two consecutive lines, and a number needs two witnesses: the bare number line, a state-5 line, or the first line
of the next spin. If the witnesses of a spin disagree, a number needs two more than any other has. Only no more bets and
state 5 are accepted at once: the first cannot wait, and the second has no effect before its number has a witness.

The spin counter is compared with the last known one, also over sessions and restarts: what ended unseen is a missed
spin, and a number found afterwards is never its landing. drivers/spin_counter.py decides what a lower counter proves.
If bets are open under the same counter after a long interruption, they belong to a new spin: nothing proves that it is
the old one, nor that one was missed. In both cases the wheel does not come online as continuous. A wheel that was
never seen before comes online when its counter is known, because an edge that is killed in between could not
compute what it missed."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Set as AbstractSet
from datetime import datetime, timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from drivers.cammegh_ss2_faults import FAULTS, TESTED, self_test_fault
from drivers.driver import Chunk, Sighting, decode_memory
from drivers.faults import Faults, Standing
from drivers.spin_counter import SHORTEST_SPIN, CountedSpin, SpinCounter, after_long_absence
from protocols.cammegh_ss2 import CR_LF, LICENCE_EXPIRED, Flag, Message, Number, Packet, State, Status
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BonusDrawn,
    Event,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WheelStarted,
    WheelStopped,
)

# How long to ignore a flag, seconds (integrator information, "how long to ignore a flag").
LAUNCH_FAILED_IGNORED = 3.0
BALL_NOT_DETECTED_IGNORED = 5.0

MAX_WITNESSES = 8
SPINS = 256  # the counter runs 1..256
# A spin that was last seen this long ago is not resumed, even with the same counter.
LONGEST_SPIN = timedelta(minutes=3)
# Failed launches before the ball runs: flag 8, or flag 2 in state 2. Real wheels show them for half a minute at a time,
# or in single lines for minutes; the sum within one spin is reported. A line accounts for at most the second before it.
LAUNCH_TROUBLE = 3.0
LINE_SPEAKS_FOR = 1.0
LAUNCHED_AFTER, TROUBLE_OVER_AFTER = 1.0, 15.0  # without such a flag: in the rim, and before it
# The controller itself stops after 75 s of no more bets.
NO_NUMBER = 90.0
# State 6 in mid-spin (operators' experience): ignored just after the table was opened; one incident while it flaps.
JUST_OPENED = timedelta(seconds=30)
ONE_INCIDENT = 10.0
# After `*P OK` to another host's `*P 0` the rotor runs down for some seconds in the old state, as captured.
RUNS_DOWN = 10.0
SELF_TEST_QUIET = 2.0

_AT_ONCE = {(State.BALL_IN_RIM, State.NO_MORE_BETS), (State.NO_MORE_BETS, State.WINNING_NUMBER)}
RUNNING = {State.PLACE_BETS, State.BALL_IN_RIM, State.NO_MORE_BETS}
PLAYING = {*RUNNING, State.WINNING_NUMBER}
BEFORE_LAUNCH = STARTABLE = (State.STARTED, State.PLACE_BETS)
_CODES = re.compile("[0-9]{1,3}(?: [0-9]{1,3})*")
_BONUS = re.compile("([1-6]);([0-9]{3})(?:;([0-9]{3}))?")


class WheelOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`silence`: seconds without a valid line after which the wheel counts as lost.

    `port`: the controller's port. Ports 2 and 3 serve displays: there the driver only listens, and takes no commands.
    `alternating`: the rotor reverses in each game (mode bit 1); a rotor that does not is a fault. `recover`: switch the
    wheel on again if it closed during a spin; never a wheel that the house switched off. `shortest_spin`: minimum
    seconds of a spin. A lower counter, which would be n spins ahead if it had wrapped around, was reset if less than n
    times this value has passed; with n = 1 it always wrapped.
    """

    silence: Annotated[float, Meta(ge=1, le=60)] = 3.0
    port: Literal[1, 2, 3] = 1
    alternating: bool = False
    recover: bool = False
    shortest_spin: Annotated[float, Meta(gt=0, le=60)] = SHORTEST_SPIN


class Spin(CountedSpin, frozen=True, kw_only=True):
    """The last known spin. `state` None: none yet. `failed_s`: seconds of failed launches so far.

    `void`: the wheel will repeat it under its number, and has not yet.
    """

    spin: Annotated[int, Meta(ge=0, le=SPINS)]
    state: State | None
    void: bool = False
    failed_s: float = 0.0


class Memory(Struct, frozen=True):
    """What survives a session: the last known spin, and the open faults.

    `opened`: when the table was opened, as far as seen. `clockwise`: the rotor's direction in the last spin that
    landed. `faults` was a plain list of codes in older memories.
    """

    spin: Spin | None = None
    faults: Standing | tuple[str, ...] = Standing()
    opened: Annotated[datetime, Meta(tz=True)] | None = None
    clockwise: bool | None = None
    opened_tick: float | None = None


class Recovery:
    """The wheel is being switched on again: since when, when to ask next, and whether it answered OK."""

    def __init__(self, now: float) -> None:
        self.since = self.due = now
        self.answered = False


class RunningTest:
    """A running self-test: its codes so far, and its latest end."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.codes: set[int] = set()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class SpinReader:
    """What the lines of a wheel mean: spins, landings and faults. It does no I/O; the session feeds it lines."""

    def __init__(self, options: WheelOptions, memory: bytes | None = None) -> None:
        """Continue from what a session stored."""
        remembered = decode_memory(memory, Memory) or Memory()
        self._options = options
        self._counter = SpinCounter(SPINS, options.shortest_spin, LONGEST_SPIN)
        self._listens = options.port != 1
        self._spin = remembered.spin
        standing = remembered.faults
        if not isinstance(standing, Standing):
            standing = Standing(standing, standing)
        self._faults = Faults(FAULTS, standing)
        self._opened = remembered.opened
        self._opened_tick = remembered.opened_tick
        self._clockwise = remembered.clockwise
        self._turns: Counter[bool] = Counter()
        self._landed: tuple[int, str] | None = None
        self._bonus = b""
        self._heard_at: float | None = None  # the last line that counted
        self._failed_at: float | None = None  # the last line with a failed launch
        self._number_since: float | None = None
        self._dropped_at: float | None = None
        self._switched_off: float | None = None
        self._recovery: Recovery | None = None
        self._test: RunningTest | None = None
        self._ordered: int | None = None  # the spin that was started last, until its ball runs
        self._watched: tuple[AbstractSet[State], asyncio.Future[None]] | None = None
        self._joining = True
        self._long_away = False
        self._landed_before = self._spin is not None and self._spin.landed
        self._before: Status | None = None
        self._doubted: tuple[State, int] | None = None
        self._witnesses: list[Number | Status] = []
        self._proof = b""
        self._rim_since: float | None = None
        self._unseen_since: float | None = None
        self._void = False
        self._restarts = 0
        self._restart_due: float | None = None

    # ---- from lines to events

    def _hear(self, message: Message, chunk: Chunk) -> Iterator[Sighting]:
        match message:
            case Status():
                for event in self._status(message, chunk):
                    if isinstance(event, SpinVoided | SpinMissed):
                        self._clockwise = None  # the rotor may or may not have reversed for the next one
                    proof = self._proof + CR_LF if isinstance(event, BallLanded) else b""
                    yield Sighting(event, proof + message.raw, chunk)
            case Number():
                self._witnesses = [*self._witnesses, message][-MAX_WITNESSES:]
            case Packet(letter="F", text=text, raw=raw) if _CODES.fullmatch(text):
                for event in self._found([int(code) for code in text.split()]):
                    yield Sighting(event, raw, chunk)
            case Packet(letter="Y", text=text, raw=raw) if bonus := _BONUS.fullmatch(text):
                expired = bonus[3] == LICENCE_EXPIRED  # then its bonus fields are meaningless
                if bonus[3]:
                    for event in self._faults.watch("wheel.bonus_licence", expired):
                        yield Sighting(event, raw, chunk)
                if not expired and raw != self._bonus:
                    self._bonus = raw
                    yield Sighting(BonusDrawn(int(bonus[1]), int(bonus[2])), raw, chunk)
            case _:
                pass

    def _found(self, codes: list[int]) -> Iterator[Event]:
        """Codes of a self-test, or of one during play (mode bit 256)."""
        if self._test is not None:
            self._test.codes.update(codes)
            self._test.until = asyncio.get_running_loop().time() + SELF_TEST_QUIET
        for code in codes:
            if code:
                fault = self_test_fault(code)
                yield from self._faults.begin(fault, str(code) if fault == "wheel.self_test_other" else "")

    def _status(self, status: Status, chunk: Chunk) -> Iterator[Event]:
        before, self._before = self._before, status
        if status.state not in STARTABLE:
            self._ordered = None
        spin = self._spin
        if not self._believed(spin, status, chunk):
            return
        failed_s = 0.0
        if spin is not None and spin.spin == status.spin:
            failed_s = self._failing(status, spin, chunk)
            spin = self._spin = replace(spin, failed_s=spin.failed_s + failed_s)
        if before is not None:
            yield from self._flags(status, before, chunk.tick)
            spin = self._spin
        elif spin is not None and failed_s and spin.failed_s >= LAUNCH_TROUBLE:  # a session may have one line only
            yield from self._faults.begin("wheel.launch_failed")
        if spin is None:  # a wheel never seen before: a finished spin is no loss
            over = status.state is State.WINNING_NUMBER
            spin = Spin(spin=status.spin, state=None, at=chunk.at, ended=over, tick=chunk.tick)
        elif self._joining and self._long_away:  # too long to be the same spin, whatever the counter is
            spin, missed = after_long_absence(spin, status.spin, bets_open=status.state is State.PLACE_BETS)
            if missed:
                yield SpinMissed(1)
        self._joining = False
        yield from self._taken_back(spin, status, before)
        if self._opened is None or (status.state is not State.TABLE_CLOSED and spin.state is State.TABLE_CLOSED):
            self._opened, self._opened_tick = chunk.at, chunk.tick
        # After the wheel was switched off, its counter came again to a spin that landed in an earlier session.
        counts_again = self._landed_before and status.state in RUNNING
        if status.spin != spin.spin or counts_again:
            self._landed_before = False
            spin, events = self._counted(spin, status, before, chunk)
            yield from events
        yield from self._step(spin, status, chunk)

    def _believed(self, spin: Spin | None, status: Status, chunk: Chunk) -> bool:
        """Accept a line whose state stays, or takes an urgent step; any other needs a second equal line."""
        seen = (status.state, status.spin)
        if spin is not None and status.spin == spin.spin and not self._long_since(spin, chunk):
            stays = status.state is spin.state
            if stays or (spin.state, status.state) in _AT_ONCE:
                self._doubted = None
                return True
        if self._doubted == seen:
            self._doubted = None
            return True
        self._doubted = seen
        return False

    def _long_since(self, spin: Spin, chunk: Chunk) -> bool:
        since = chunk.after_at_most if self._joining else chunk.after_at_least
        return since(spin.at, spin.tick) >= LONGEST_SPIN

    def _counted(self, spin: Spin, status: Status, before: Status | None, chunk: Chunk) -> tuple[Spin, list[Event]]:
        """The counter advanced or was reset. The spin before landed if its number has witnesses; otherwise it is
        missed.
        """
        advance = self._counter.advance(spin, status.spin, chunk, may_wrap=_may_wrap(status))
        missed = advance.missed
        # After a reset, a spin that had not begun will not begin.
        events: list[Event] = []
        if not spin.ended and (spin.begun or (advance.counts_on and spin.spin)):
            landed = None
            # If the next spin already has its own number, neither its line nor the one before is a witness for this
            # one.
            own = status.state is State.WINNING_NUMBER
            if advance.steps == 1 and spin.launched and spin.state is State.WINNING_NUMBER and not own:
                if before is not None and before.spin == status.spin and self._witnesses:
                    self._witnesses.append(before)  # the line that this one confirms
                landed = self._witnessed(status)
            if landed is None:
                missed += 1
            else:
                events += self._land(spin.spin, landed)
        elif spin.ended and spin.void and advance.counts_on:
            missed += 1  # repeated unseen: only a spin with a number advances the counter
        if missed:
            events.append(SpinMissed(missed))
        self._witnesses = []
        return Spin(spin=status.spin, state=None, at=chunk.at, tick=chunk.tick), events

    def _step(self, spin: Spin, status: Status, chunk: Chunk) -> Iterator[Event]:  # noqa: C901 - a case for each state of the wheel
        """Within one spin."""
        before, state = spin.state, status.state
        under_way = spin.begun and not spin.ended
        new = replace(spin, state=state, at=chunk.at, tick=chunk.tick)
        match state:
            case State.STARTED:
                if before is not state:
                    if under_way:
                        yield _cut_short(spin, "restarted")
                    # After state 5 the counter may still be that of the spin that is over.
                    over = before is State.WINNING_NUMBER or spin.landed
                    new = replace(new, begun=False, launched=False, ended=over, void=False)
                    yield WheelStarted()
            case State.PLACE_BETS:
                if not under_way or spin.launched:
                    if under_way:
                        yield _cut_short(spin, "restarted")
                    self._turns.clear()
                    self._bonus = b""
                    new = replace(new, begun=True, launched=False, ended=False, void=False, landed=False)
                    yield SpinStarted(status.spin)
            case State.BALL_IN_RIM | State.NO_MORE_BETS if under_way:
                self._turns[status.clockwise] += 1
                if not spin.launched:
                    new = replace(new, launched=True)
                    yield self._launch(status)
                if state is State.NO_MORE_BETS and before is not state:
                    yield BallSettling()
                if self._void:
                    new = replace(new, ended=True, void=True)
                    yield SpinVoided("ball_with_rotor" if state is State.BALL_IN_RIM else "ball_not_detected")
            case State.WINNING_NUMBER if under_way and spin.launched:
                landed = self._witnessed(status)
                if landed is not None:
                    new = replace(new, ended=True, landed=True)
                    yield from self._land(spin.spin, landed)
                elif self._disagree():
                    yield from self._faults.begin("wheel.number_unsteady")
            case State.BALL_IN_RIM | State.NO_MORE_BETS | State.WINNING_NUMBER if not spin.ended:
                new = replace(new, ended=True, landed=state is State.WINNING_NUMBER)
                yield SpinMissed(
                    1
                )  # running or over, and its start or its launch was not seen: its number is not reported
            case State.TABLE_CLOSED | State.NO_BALL:
                if under_way:
                    new = replace(new, ended=True)
                    yield _cut_short(spin, "table_closed" if state is State.TABLE_CLOSED else "no_ball")
                if state is State.TABLE_CLOSED and before is not state:
                    yield WheelStopped()
                    yield from self._dropped(before, status, chunk)
            case _:
                pass
        if state is not State.WINNING_NUMBER:
            self._witnesses = []
        self._spin = new
        if self._watched is not None and state in self._watched[0] and not self._watched[1].done():
            self._watched[1].set_result(None)

    def _taken_back(self, spin: Spin, status: Status, before: Status | None) -> Iterator[Event]:
        """Two consecutive lines name another number for the reported spin, before the next one runs."""
        if self._landed is None or before is None or not status.number == before.number != "":
            return
        landed, pocket = self._landed
        shows = {(State.WINNING_NUMBER, landed), *((state, landed) for state in BEFORE_LAUNCH)}
        shows |= {(state, landed % SPINS + 1) for state in BEFORE_LAUNCH}
        if status.number != pocket and {(one.state, one.spin) for one in (status, before)} <= shows:
            self._landed = None
            yield from self._faults.begin("wheel.number_unsteady", "after one was reported")
            if spin.ended or not spin.begun:
                yield SpinVoided("number_unsteady")

    def _land(self, number: int, pocket: str) -> Iterator[Event]:
        """The spin ended well: report its number, and end the faults that this disproves."""
        yield BallLanded(pocket)
        unsteady = self._disagree()
        if unsteady:
            yield from self._faults.begin("wheel.number_unsteady")
        self._landed = number, pocket
        clockwise = self._turns[True] > self._turns[False] if self._turns else None
        if self._options.alternating and None not in (clockwise, self._clockwise):
            yield from self._faults.watch("wheel.rotor_not_reversed", clockwise is self._clockwise)
        self._clockwise = clockwise
        # Three sensors detected the falling ball: sensors, motor and encoder work. So does the direction in which the
        # rotor turned.
        unproven = (
            {self_test_fault(8 if clockwise else 7)}
            if clockwise is not None
            else {self_test_fault(7), self_test_fault(8)}
        )
        if self._before is not None and Flag.SENSOR_OR_MOTOR not in self._before.flags:
            yield from self._faults.end(*(code for code in TESTED if code not in unproven))
        yield from self._faults.end("wheel.number_unsteady")
        if not unsteady:
            self._faults.good_cycle()

    def _dropped(self, before: State | None, status: Status, chunk: Chunk) -> Iterator[Event]:
        """State 6 during a spin, unless the house switched off, a sensor fault explains it, or it was just opened."""
        if before not in RUNNING or self._opened is None:
            return
        if Flag.SENSOR_OR_MOTOR in status.flags or self._faults.is_open("wheel.sensor_or_motor"):
            return
        if self._switched_off is not None and chunk.tick - self._switched_off <= RUNS_DOWN:
            return
        again = "wheel.dropped" in self._faults.standing.cycle
        if chunk.after_at_least(self._opened, self._opened_tick) < JUST_OPENED and not status.flags and not again:
            return
        self._dropped_at = chunk.tick
        yield from self._faults.begin("wheel.dropped")
        if self._options.recover and not self._listens and self._recovery is None:
            self._recovery = Recovery(asyncio.get_running_loop().time())

    def _witnessed(self, status: Status) -> str | None:
        """The number with two witnesses more than any other."""
        self._witnesses = [*self._witnesses, status][-MAX_WITNESSES:]
        votes = Counter(witness.number for witness in self._witnesses if witness.number)
        others = max((count for number, count in votes.items() if number != status.number), default=0)
        if votes[status.number] < others + 2:
            return None
        self._proof = next(one.raw for one in self._witnesses if one.number == status.number)
        return status.number

    def _disagree(self) -> bool:
        """Whether the witnesses of this spin named different numbers."""
        return len({witness.number for witness in self._witnesses if witness.number}) > 1

    def _launch(self, status: Status) -> BallLaunched:
        """The ball runs against the rotor, unless the wheel reports otherwise."""
        with_rotor = self._void and status.state is State.BALL_IN_RIM
        ball_clockwise = status.clockwise == with_rotor
        return BallLaunched(
            "clockwise" if ball_clockwise else "anticlockwise", "clockwise" if status.clockwise else "anticlockwise"
        )

    # ---- flags

    def _flags(self, status: Status, before: Status, tick: float) -> Iterator[Event]:
        """Apply the flags of two consecutive lines. Flags that differ keep their value."""
        state = status.state
        in_rim = state is State.BALL_IN_RIM
        no_more_bets = state is State.NO_MORE_BETS
        shown = status.flags & before.flags
        gone = ~(status.flags | before.flags)

        if not in_rim:
            self._rim_since = None
        elif self._rim_since is None:
            self._rim_since = tick
        if not (no_more_bets and Flag.BALL_NOT_DETECTED in status.flags):
            self._unseen_since = None
        elif self._unseen_since is None:
            self._unseen_since = tick

        if not no_more_bets:
            self._number_since = None
        elif self._number_since is None:
            self._number_since = tick

        faults = self._faults
        failed = in_rim and Flag.LAUNCH_FAILED in shown and _longer(tick, self._rim_since, LAUNCH_FAILED_IGNORED)
        trouble = self._spin is not None and self._spin.failed_s >= LAUNCH_TROUBLE
        failed |= trouble and self._failed_at == tick
        launched = not (in_rim or state is State.PLACE_BETS)
        over = launched or _longer(tick, self._failed_at, TROUBLE_OVER_AFTER)
        runs = in_rim and (
            _longer(tick, self._failed_at, LAUNCHED_AFTER) or (Flag.LAUNCH_FAILED in gone and not trouble)
        )
        if failed or over or runs:
            yield from faults.watch("wheel.launch_failed", failed)
        if over and self._spin is not None:
            self._spin = replace(self._spin, failed_s=0.0)
        unseen = Flag.BALL_NOT_DETECTED in shown and _longer(tick, self._unseen_since, BALL_NOT_DETECTED_IGNORED)
        if unseen or not no_more_bets or Flag.BALL_NOT_DETECTED in gone:
            yield from faults.watch("wheel.ball_not_detected", unseen)
        if Flag.SENSOR_OR_MOTOR in shown | gone:
            yield from faults.watch("wheel.sensor_or_motor", Flag.SENSOR_OR_MOTOR in shown)
        yield from faults.watch("wheel.no_ball", state is State.NO_BALL)
        yield from faults.watch("wheel.no_number", _longer(tick, self._number_since, NO_NUMBER))
        if state is State.PLACE_BETS:
            yield from faults.end("wheel.restart_refused")
        if state in PLAYING and (self._dropped_at is None or tick - self._dropped_at >= ONE_INCIDENT):
            yield from faults.end("wheel.dropped")

        with_rotor = in_rim and before.state is state and Flag.BALL_WITH_ROTOR in shown
        if with_rotor or not in_rim or Flag.BALL_WITH_ROTOR in gone:
            yield from faults.watch("wheel.ball_with_rotor", with_rotor)
        self._call_void(with_rotor or unseen, in_rim or no_more_bets)

    def _failing(self, status: Status, spin: Spin, chunk: Chunk) -> float:
        """The seconds of failed launches that this line adds: since the line before it, also of another session."""
        tick = chunk.tick
        if self._heard_at is None:
            since_s = chunk.after_at_least(spin.at, spin.tick).total_seconds()
        else:
            since_s = tick - self._heard_at
        self._heard_at = tick
        early = not _longer(tick, self._rim_since, LAUNCH_FAILED_IGNORED)
        match status.state:
            case State.PLACE_BETS:
                failing = bool(status.flags & (Flag.LAUNCH_FAILED | Flag.BALL_WITH_ROTOR))
            case State.BALL_IN_RIM:
                failing = Flag.LAUNCH_FAILED in status.flags and not early
            case _:
                failing = False
        if failing or self._failed_at is None:
            self._failed_at = tick
        return min(max(since_s, 0.0), LINE_SPEAKS_FOR) if failing else 0.0

    def _call_void(self, void: bool, running: bool) -> None:
        """A void spin waits for *R, also if an earlier session reported it. For each the sending starts once."""
        if not running:
            self._void = False
            self._restart_due = None
        elif void and not self._void:
            self._void = True
            self._restarts = 0
            self._restart_due = asyncio.get_running_loop().time()

    def _continuous(self, status: Status, chunk: Chunk) -> bool:
        last = self._spin
        again = last is not None and last.landed and last.spin == status.spin and status.state in RUNNING
        return self._counter.continuous(
            last, status.spin, chunk, long_away=self._long_away, counted_again=again, may_wrap=_may_wrap(status)
        )


def _may_wrap(status: Status) -> bool:
    """Whether a lower counter may have wrapped. One that was reset is 0, or the wheel shows no number yet."""
    return status.spin > 0 and bool(status.number)


def _longer(tick: float, since: float | None, seconds: float) -> bool:
    return since is not None and tick - since > seconds


def _cut_short(spin: Spin, reason: str) -> SpinVoided | SpinMissed:
    """A spin that ended before its number was reported. In state 5 the ball had fallen: then it is not void."""
    return SpinMissed(1) if spin.state is State.WINNING_NUMBER else SpinVoided(reason)
