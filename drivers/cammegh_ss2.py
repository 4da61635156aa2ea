"""Cammegh SS2 wheel: from its status lines to spins.

The line has no checksum, so nothing is believed that only one line says: a step waits for a second line saying the
same, a flag counts once two lines running show it, and a number needs two witnesses (the bare number line, a state-5
line, the first line of the next spin). Only no more bets and state 5 are taken up at once: the first cannot wait, and
the second claims nothing before its number has a witness. The spin counter is compared with the last one known, also
across sessions and restarts: what ended unseen is a missed spin, and the number found afterwards is never its landing.
"""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from drivers.driver import Chunk, DeviceRefused, Emit, Evidence, Link, LinkLost, Sighting
from protocols.cammegh_ss2 import (
    ASK_FIRMWARE,
    ASK_MANUFACTURER,
    CR_LF,
    POLL,
    RESTART,
    Decoder,
    Flag,
    Garbage,
    Message,
    Number,
    Packet,
    State,
    Status,
)
from protocols.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
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
RESTART_REPEAT = 2.0
RESTART_TRIES = 3
HANDSHAKE = 1.0
POLL_AFTER = 0.75
POLL_AFTER_NUMBER = 0.1  # state 5 may be short; the wheel answers no sooner than this after its last line
MAX_EARLY = 200
MAX_WITNESSES = 8
SPINS = 256  # the counter runs 1..256
# A spin takes at least this long: tells a wrapped counter from one that began again at 1.
SHORTEST_SPIN = timedelta(seconds=15)
# After this long a spin seen to begin is not taken up again, even with the same counter.
LONGEST_SPIN = timedelta(minutes=3)

FAULTS = {
    "wheel.launch_failed": (
        "the ball was not launched for more than 3 s",
        "warning",
        "look for the ball and the air jet; the controller tries again by itself, else void the spin",
    ),
    "wheel.ball_not_detected": (
        "the ball is not seen for more than 5 s after no more bets",
        "error",
        "look whether the ball left the track; put it back; clean the rim sensors",
    ),
    "wheel.sensor_or_motor": (
        "sensor, motor or encoder fault; the wheel powers down",
        "error",
        "run the wheel's self-test (*F) in state 6 to learn the code; check sensors, motor and encoder",
    ),
    "wheel.no_ball": ("no ball is seen in the track", "error", "put the ball into the track"),
    "wheel.restart_refused": (
        "the wheel does not take the restart after a void spin",
        "error",
        "restart the game at the wheel, or switch the wheel off and on",
    ),
}


class WheelOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`silence`: seconds without a valid line after which the wheel counts as lost."""

    silence: Annotated[float, Meta(ge=1, le=60)] = 3.0


class Spin(Struct, frozen=True):
    """The last spin known. `begun`: its start was seen. `ended`: reported, void or missed. `state` None: none yet."""

    spin: Annotated[int, Meta(ge=0, le=SPINS)]
    state: State | None
    at: Annotated[datetime, Meta(tz=True)]
    begun: bool = False
    launched: bool = False
    ended: bool = False


class Memory(Struct, frozen=True):
    """What outlives a session: the last spin known, and the faults told and not yet over."""

    spin: Spin | None = None
    faults: tuple[str, ...] = ()


class CammeghSS2:
    """The driver."""

    name: ClassVar[str] = "cammegh_ss2"
    title: ClassVar[str] = "Cammegh SS2 (Slingshot 2, Mercury) roulette wheel"
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual", "capture")
    Options: ClassVar[type[WheelOptions]] = WheelOptions

    def __init__(self, options: WheelOptions, memory: bytes | None = None) -> None:
        """Take up the spin and the faults of the last session, if they are known."""
        remembered = _remembered(memory)
        self._silence = options.silence
        self._spin = remembered.spin
        self._faults = set(remembered.faults)
        self._joining = True
        self._before: Status | None = None
        self._doubted: tuple[State, int] | None = None
        self._witnesses: list[Number | Status] = []
        self._proof = b""
        self._rim_since: float | None = None
        self._unseen_since: float | None = None
        self._void = False
        self._restarts = 0
        self._restart_due: float | None = None
        self._stranger = ""
        self._firmware = ""

    async def run(self, link: Link, emit: Emit) -> None:
        """Listen for ever; ask for a status where the wheel's operating mode does not send it by itself."""
        decoder = Decoder()
        loop = asyncio.get_running_loop()
        last_valid = began = loop.time()
        poll_due = began + POLL_AFTER
        chunk: Chunk | None = None
        first_tick: float | None = None
        early: list[tuple[Message, Chunk]] | None = []
        await link.write(ASK_MANUFACTURER + ASK_FIRMWARE)
        while True:
            messages: list[Message] = []
            try:
                async with asyncio.timeout_at(poll_due):
                    chunk = await link.read()
                messages = decoder.feed(chunk.data)
            except TimeoutError:
                await link.write(POLL)
                poll_due = loop.time() + POLL_AFTER
            except LinkLost:
                await self._tell(emit, [*self._hello(early or ())])
                raise
            now = loop.time()
            if any(isinstance(message, Status) for message in messages):
                poll_due = now + POLL_AFTER
            elif any(isinstance(message, Number) for message in messages):
                poll_due = min(poll_due, now + POLL_AFTER_NUMBER)
            if any(not isinstance(message, Garbage) for message in messages):
                last_valid = now
            elif now - last_valid >= self._silence:
                raise LinkLost(f"no valid line for {self._silence:g} s")
            if chunk is None:
                continue
            for message in messages:
                if isinstance(message, Packet) and (answer := self._reply(message)):
                    await link.write(answer)
            if early is None:
                await self._tell(emit, [one for message in messages for one in self._hear(message, chunk)])
            else:  # wait a moment for the answers to *K and *S, so that the wheel comes online with its name
                first_tick = chunk.tick if first_tick is None else first_tick
                early += [(message, chunk) for message in messages]
                waited = chunk.tick - first_tick >= HANDSHAKE or now - began >= HANDSHAKE
                waited |= len(early) >= MAX_EARLY
                if (self._firmware or waited) and any(isinstance(message, Status) for message, _ in early):
                    await self._tell(emit, [*self._hello(early)])
                    early = None
                elif len(early) >= MAX_EARLY:
                    raise LinkLost("lines, but no status line: another device, or the wrong line settings")
            if self._restart_due is not None and now >= self._restart_due:
                await self._restart(link, emit, now)
            last_valid += loop.time() - now  # the wheel was not silent while we were busy

    async def _tell(self, emit: Emit, sightings: list[Sighting]) -> None:
        if sightings:
            await emit(sightings, msgspec.json.encode(Memory(self._spin, tuple(sorted(self._faults)))))

    def _hello(self, early: Iterable[tuple[Message, Chunk]]) -> Iterator[Sighting]:
        """The wheel is there: say so, then what it said meanwhile. Its counter proves continuity with a spin known."""
        known = self._spin is not None
        for message, chunk in early:
            if isinstance(message, Status):
                yield Sighting(DeviceOnline(known, "Cammegh SS2", "", self._firmware), message.raw, chunk)
                break
        else:
            return
        for message, chunk in early:
            yield from self._hear(message, chunk)

    def _reply(self, packet: Packet) -> bytes:
        """What to ask again. A reply may be damaged on its way: refused is who says the same wrong name twice."""
        match packet:
            case Packet(text="" | "NO" | "BUSY"):  # an echo, or a firmware that does not know the question
                pass
            case Packet(letter="K", text=text) if text != "CAM":
                if text == self._stranger:
                    raise DeviceRefused(f"the device answers *K with {text!r}; a Cammegh wheel answers CAM")
                self._stranger = text
                return ASK_MANUFACTURER
            case Packet(letter="S", text=text):
                self._firmware = text
            case Packet(letter="R", text="OK"):
                self._restart_due = None
            case _:
                pass
        return b""

    async def _restart(self, link: Link, emit: Emit, now: float) -> None:
        """Acknowledge a void spin with *R until the wheel takes it."""
        if self._restarts == RESTART_TRIES:
            self._restart_due = None
            silence = link.stamp()
            await self._tell(emit, [Sighting(one, b"", silence) for one in self._fault("wheel.restart_refused", True)])
            return
        self._restarts += 1
        self._restart_due = now + RESTART_REPEAT
        await link.write(RESTART)

    # ---- from lines to events

    def _hear(self, message: Message, chunk: Chunk) -> Iterator[Sighting]:
        match message:
            case Status():
                for event in self._status(message, chunk):
                    proof = self._proof + CR_LF if isinstance(event, BallLanded) else b""
                    yield Sighting(event, proof + message.raw, chunk)
            case Number():
                self._witnesses = [*self._witnesses, message][-MAX_WITNESSES:]
            case _:
                pass

    def _status(self, status: Status, chunk: Chunk) -> Iterator[Event]:
        before, self._before = self._before, status
        spin = self._spin
        if not self._believed(spin, status, chunk):
            return
        if before is not None:
            yield from self._flags(status, before, chunk.tick)
        if spin is None:  # never seen before: a spin that is over is nobody's loss
            spin = Spin(status.spin, None, chunk.at, ended=status.state is State.WINNING_NUMBER)
        elif self._joining and chunk.at - spin.at > LONGEST_SPIN and spin.begun and not spin.ended:
            yield SpinMissed(1)  # too long ago to be the same spin, whatever the counter says
            spin = replace(spin, ended=True)
        self._joining = False
        if status.spin != spin.spin:
            spin, events = self._counted(spin, status, chunk)
            yield from events
        yield from self._step(spin, status, chunk)

    def _believed(self, spin: Spin | None, status: Status, chunk: Chunk) -> bool:
        """The state stays, or takes a step that cannot wait; anything else when a second line says the same."""
        seen = (status.state, status.spin)
        if spin is not None and status.spin == spin.spin and chunk.at - spin.at < LONGEST_SPIN:
            stays = status.state is spin.state
            if stays or (spin.state, status.state) in _AT_ONCE:
                self._doubted = None
                return True
        if self._doubted == seen:
            self._doubted = None
            return True
        self._doubted = seen
        return False

    def _counted(self, spin: Spin, status: Status, chunk: Chunk) -> tuple[Spin, list[Event]]:
        """The counter moved. The spin before is over: landed if its number has its witnesses, else missed."""
        steps = status.spin - spin.spin
        wrapped = steps + SPINS
        if steps < 0 < status.spin and (wrapped == 1 or chunk.at - spin.at >= wrapped * SHORTEST_SPIN):
            steps = wrapped
        counts_on = steps > 0
        # Else it was switched off and on: it counts from 1 again, and a spin that had not begun never will.
        missed = steps - 1 if counts_on else max(status.spin - 1, 0)
        events: list[Event] = []
        if not spin.ended and (spin.begun or (counts_on and spin.spin)):
            landed = None
            if steps == 1 and spin.launched and spin.state is State.WINNING_NUMBER:
                landed = self._witnessed(status)
            if landed is None:
                missed += 1
            else:
                events.append(BallLanded(landed))
        if missed:
            events.append(SpinMissed(missed))
        self._witnesses = []
        return Spin(status.spin, None, chunk.at), events

    def _step(self, spin: Spin, status: Status, chunk: Chunk) -> Iterator[Event]:
        """Within one spin."""
        before, state = spin.state, status.state
        under_way = spin.begun and not spin.ended
        new = replace(spin, state=state, at=chunk.at)
        match state:
            case State.STARTED:
                if before is not state:
                    if under_way:
                        yield _cut_short(spin, "restarted")
                    # After state 5 the counter may still be that of the spin that is over.
                    over = before is State.WINNING_NUMBER
                    new = replace(new, begun=False, launched=False, ended=over)
                    yield WheelStarted()
            case State.PLACE_BETS:
                if not under_way or spin.launched:
                    if under_way:
                        yield _cut_short(spin, "restarted")
                    new = replace(new, begun=True, launched=False, ended=False)
                    yield SpinStarted(status.spin)
            case State.BALL_IN_RIM | State.NO_MORE_BETS if under_way:
                if not spin.launched:
                    new = replace(new, launched=True)
                    yield self._launch(status)
                if state is State.NO_MORE_BETS and before is not state:
                    yield BallSettling()
                if self._void:
                    new = replace(new, ended=True)
                    yield SpinVoided("ball_with_rotor" if state is State.BALL_IN_RIM else "ball_not_detected")
            case State.WINNING_NUMBER if under_way and spin.launched:
                landed = self._witnessed(status)
                if landed is not None:
                    new = replace(new, ended=True)
                    yield BallLanded(landed)
            case State.BALL_IN_RIM | State.NO_MORE_BETS | State.WINNING_NUMBER if not spin.ended:
                new = replace(new, ended=True)
                yield SpinMissed(1)  # under way, and nobody saw it begin or launched: its number will not be told
            case State.TABLE_CLOSED | State.NO_BALL:
                if under_way:
                    new = replace(new, ended=True)
                    yield _cut_short(spin, "table_closed" if state is State.TABLE_CLOSED else "no_ball")
                if state is State.TABLE_CLOSED and before is not state:
                    yield WheelStopped()
            case _:
                pass
        if state is not State.WINNING_NUMBER:
            self._witnesses = []
        self._spin = new

    def _witnessed(self, status: Status) -> str | None:
        """The number, once a second witness says the same."""
        for witness in self._witnesses:
            if witness.number == status.number != "":
                self._proof = witness.raw
                return status.number
        self._witnesses = [*self._witnesses, status][-MAX_WITNESSES:]
        return None

    def _launch(self, status: Status) -> BallLaunched:
        """The ball runs against the rotor, unless the wheel says that it turns with it."""
        with_rotor = self._void and status.state is State.BALL_IN_RIM
        ball_clockwise = status.clockwise == with_rotor
        return BallLaunched(
            "clockwise" if ball_clockwise else "anticlockwise", "clockwise" if status.clockwise else "anticlockwise"
        )

    # ---- flags

    def _flags(self, status: Status, before: Status, tick: float) -> Iterator[Event]:
        """What two lines running say. Where they differ, what was known stays."""
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

        failed = in_rim and Flag.LAUNCH_FAILED in shown and _longer(tick, self._rim_since, LAUNCH_FAILED_IGNORED)
        if failed or not in_rim or Flag.LAUNCH_FAILED in gone:
            yield from self._fault("wheel.launch_failed", failed)
        unseen = Flag.BALL_NOT_DETECTED in shown and _longer(tick, self._unseen_since, BALL_NOT_DETECTED_IGNORED)
        if unseen or not no_more_bets or Flag.BALL_NOT_DETECTED in gone:
            yield from self._fault("wheel.ball_not_detected", unseen)
        if Flag.SENSOR_OR_MOTOR in shown | gone:
            yield from self._fault("wheel.sensor_or_motor", Flag.SENSOR_OR_MOTOR in shown)
        yield from self._fault("wheel.no_ball", state is State.NO_BALL)
        if state is State.PLACE_BETS:
            yield from self._fault("wheel.restart_refused", False)

        with_rotor = in_rim and before.state is state and Flag.BALL_WITH_ROTOR in shown
        self._call_void(with_rotor or unseen, in_rim or no_more_bets)

    def _call_void(self, void: bool, running: bool) -> None:
        """A void spin waits for its *R, also where an earlier session reported it. One *R is asked for each."""
        if not running:
            self._void = False
            self._restart_due = None
        elif void and not self._void:
            self._void = True
            self._restarts = 0
            self._restart_due = asyncio.get_running_loop().time()

    def _fault(self, code: str, present: bool) -> Iterator[Event]:
        if present and code not in self._faults:
            text, severity, remedy = FAULTS[code]
            self._faults.add(code)
            yield DeviceFaulted(code, text, "error" if severity == "error" else "warning", remedy)
        elif not present and code in self._faults:
            self._faults.remove(code)
            yield DeviceRecovered(code)


_AT_ONCE = {(State.BALL_IN_RIM, State.NO_MORE_BETS), (State.NO_MORE_BETS, State.WINNING_NUMBER)}


def _longer(tick: float, since: float | None, seconds: float) -> bool:
    return since is not None and tick - since > seconds


def _cut_short(spin: Spin, reason: str) -> SpinVoided | SpinMissed:
    """A spin ended before its number was told. In state 5 the ball had fallen: then it is no void spin."""
    return SpinMissed(1) if spin.state is State.WINNING_NUMBER else SpinVoided(reason)


def _remembered(memory: bytes | None) -> Memory:
    """Nothing, where the memory is missing or not ours."""
    try:
        return msgspec.json.decode(memory or b"{}", type=Memory)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Memory()
