"""Cammegh SS2 wheel: from its status lines to spins.

The line has no checksum, so nothing is believed that only one line says: a step that is not the natural next one waits
for a second line saying the same, and a number needs two witnesses (the bare number line, a state-5 line, the first
line of the next spin). The spin counter is compared with the last one known, also across sessions and restarts: what
ended unseen is a missed spin, and the number found afterwards is never its landing.
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
MAX_EARLY = 200
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
    """The spin under way, kept across sessions. `begun`: its start was seen. `ended`: reported, void or missed."""

    spin: int
    state: int
    at: datetime
    begun: bool = False
    launched: bool = False
    ended: bool = False


class CammeghSS2:
    """The driver."""

    name: ClassVar[str] = "cammegh_ss2"
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual", "capture")
    Options: ClassVar[type[WheelOptions]] = WheelOptions

    def __init__(self, options: WheelOptions, memory: bytes | None = None) -> None:
        """Take up the spin of the last session, if one is known."""
        self._silence = options.silence
        self._spin = _remembered(memory)
        self._joining = True
        self._doubted: tuple[State, int] | None = None
        self._witnesses: list[Number | Status] = []
        self._since: dict[Flag, float] = {}
        self._faults: dict[str, bool] = {}
        self._restarts = 0
        self._restart_due: float | None = None
        self._firmware = ""

    async def run(self, link: Link, emit: Emit) -> None:
        """Listen for ever; ask for a status where the wheel's operating mode does not send it by itself."""
        decoder = Decoder()
        loop = asyncio.get_running_loop()
        last_valid = began = loop.time()
        chunk: Chunk | None = None
        first_tick = 0.0
        early: list[tuple[Message, Chunk]] | None = []
        await link.write(ASK_MANUFACTURER + ASK_FIRMWARE)
        while True:
            messages: list[Message] = []
            try:
                async with asyncio.timeout(POLL_AFTER):
                    chunk = await link.read()
                messages = decoder.feed(chunk.data)
            except TimeoutError:
                await link.write(POLL)
            except LinkLost:
                await self._tell(emit, [*self._hello(early or ())])
                raise
            now = loop.time()
            if any(not isinstance(message, Garbage) for message in messages):
                last_valid = now
            elif now - last_valid >= self._silence:
                raise LinkLost(f"no valid line for {self._silence:g} s")
            if chunk is None:
                continue
            for message in messages:
                if isinstance(message, Packet):
                    self._reply(message)
            if early is None:
                await self._tell(emit, [one for message in messages for one in self._hear(message, chunk)])
            else:  # wait a moment for the answers to *K and *S, so that the wheel comes online with its name
                first_tick = first_tick or chunk.tick
                early += [(message, chunk) for message in messages]
                waited = chunk.tick - first_tick >= HANDSHAKE or now - began >= HANDSHAKE
                waited |= len(early) >= MAX_EARLY
                if (self._firmware or waited) and any(isinstance(message, Status) for message, _ in early):
                    await self._tell(emit, [*self._hello(early)])
                    early = None
                elif len(early) >= MAX_EARLY:
                    raise LinkLost("lines, but no status line: another device, or the wrong line settings")
            if self._restart_due is not None and now >= self._restart_due:
                await self._restart(link, emit, chunk, now)

    async def _tell(self, emit: Emit, sightings: list[Sighting]) -> None:
        if sightings:
            await emit(sightings, msgspec.json.encode(self._spin))

    def _hello(self, early: Iterable[tuple[Message, Chunk]]) -> Iterator[Sighting]:
        """The wheel is there: say so, then what it said meanwhile. Its counter proves continuity by itself."""
        for message, chunk in early:
            if isinstance(message, Status):
                yield Sighting(DeviceOnline(True, "Cammegh SS2", "", self._firmware), message.raw, chunk)
                break
        else:
            return
        for message, chunk in early:
            yield from self._hear(message, chunk)

    def _reply(self, packet: Packet) -> None:
        match packet:
            case Packet(letter="K", text=text) if text not in ("", "CAM"):
                raise DeviceRefused(f"the device answers *K with {text!r}; a Cammegh wheel answers CAM")
            case Packet(letter="S", text=text) if text:
                self._firmware = text
            case Packet(letter="R", text="OK"):
                self._restart_due = None
                self._restarts = 0
            case _:
                pass

    async def _restart(self, link: Link, emit: Emit, chunk: Chunk, now: float) -> None:
        """Acknowledge a void spin with *R until the wheel takes it."""
        if self._restarts == RESTART_TRIES:
            self._restart_due = None
            await self._tell(emit, [Sighting(one, b"", chunk) for one in self._fault("wheel.restart_refused", True)])
            return
        self._restarts += 1
        self._restart_due = now + RESTART_REPEAT
        await link.write(RESTART)

    # ---- from lines to events

    def _hear(self, message: Message, chunk: Chunk) -> Iterator[Sighting]:
        match message:
            case Status():
                witnesses = self._witnesses[-1:]
                for event in self._status(message, chunk):
                    wire = message.raw
                    if isinstance(event, BallLanded) and witnesses:
                        wire = witnesses[0].raw + b"\r\n" + wire
                    yield Sighting(event, wire, chunk)
            case Number():
                self._witnesses = [message]
            case _:
                pass

    def _status(self, status: Status, chunk: Chunk) -> Iterator[Event]:
        spin = self._spin
        if not self._believed(spin, status, chunk):
            return
        yield from self._flags(status, chunk.tick)
        if spin is None:  # never seen before: a spin that is over is nobody's loss
            over = status.state not in (State.BALL_IN_RIM, State.NO_MORE_BETS)
            spin = Spin(status.spin, State.NO_BALL, chunk.at, ended=over)
        elif self._joining and chunk.at - spin.at > LONGEST_SPIN and spin.begun and not spin.ended:
            yield SpinMissed(1)  # too long ago to be the same spin, whatever the counter says
            spin = replace(spin, ended=True)
        if status.spin != spin.spin:
            spin, events = self._counted(spin, status, chunk)
            yield from events
        self._joining = False
        yield from self._step(spin, status, chunk)

    def _believed(self, spin: Spin | None, status: Status, chunk: Chunk) -> bool:
        """The natural next step is believed at once, any other when a second line says the same."""
        seen = (status.state, status.spin)
        if spin is not None and chunk.at - spin.at < LONGEST_SPIN:
            before = State(spin.state)
            natural = status.spin == spin.spin and status.state in (before, *_NEXT.get(before, ()))
            natural |= status.spin == spin.spin % SPINS + 1 and (before, status.state) in _NEXT_SPIN
            if natural:
                self._doubted = None
                return True
        if self._doubted == seen:
            self._doubted = None
            return True
        self._doubted = seen
        return False

    def _counted(self, spin: Spin, status: Status, chunk: Chunk) -> tuple[Spin, list[Event]]:
        """The counter moved. The spin before is over: landed if its number has its witnesses, else missed."""
        events: list[Event] = []
        steps = (status.spin - spin.spin) % SPINS
        missed = steps - 1
        if status.spin < spin.spin and steps > 1 and chunk.at - spin.at < steps * SHORTEST_SPIN:
            missed = status.spin - 1  # switched off and on: it counts from 1 again
        if spin.begun and not spin.ended:
            landed = None
            if steps == 1 and spin.state == State.WINNING_NUMBER and spin.launched:
                landed = self._witnessed(status)
            if landed is None:
                missed += 1
            else:
                events.append(BallLanded(landed))
        if missed:
            events.append(SpinMissed(missed))
        self._witnesses = []
        return Spin(status.spin, State.NO_BALL, chunk.at), events

    def _step(self, spin: Spin, status: Status, chunk: Chunk) -> Iterator[Event]:
        """Within one spin."""
        before, state = State(spin.state), status.state
        spin = replace(spin, state=int(state), at=chunk.at)
        running = state in (State.BALL_IN_RIM, State.NO_MORE_BETS, State.WINNING_NUMBER)
        if running and not spin.begun and not spin.ended:
            spin = replace(spin, ended=True)
            yield SpinMissed(1)  # under way, and nobody saw it begin: its number will not be told
        match state:
            case State.STARTED:
                if before is not state:
                    if spin.begun and not spin.ended:
                        yield SpinVoided("restarted")
                    spin = replace(spin, begun=False, launched=False, ended=False)
                    yield WheelStarted()
            case State.PLACE_BETS:
                if not spin.begun or spin.ended or spin.launched:
                    if spin.launched and not spin.ended:
                        yield SpinVoided("restarted")
                    spin = replace(spin, begun=True, launched=False, ended=False)
                    self._witnesses = []
                    yield SpinStarted(status.spin)
            case State.BALL_IN_RIM:
                if spin.begun and not spin.ended:
                    if not spin.launched:
                        spin = replace(spin, launched=True)
                        yield _launch(status)
                    if Flag.BALL_WITH_ROTOR in status.flags:
                        spin = replace(spin, ended=True)
                        yield SpinVoided("ball_with_rotor")
                        self._ask_restart()
            case State.NO_MORE_BETS:
                if spin.begun and not spin.ended:
                    if not spin.launched:
                        spin = replace(spin, launched=True)
                        yield _launch(status)
                    if before is not state:
                        yield BallSettling()
                    if self._held(Flag.BALL_NOT_DETECTED, chunk.tick, BALL_NOT_DETECTED_IGNORED):
                        spin = replace(spin, ended=True)
                        yield SpinVoided("ball_not_detected")
                        self._ask_restart()
            case State.WINNING_NUMBER:
                if before is not state:
                    self._witnesses = [one for one in self._witnesses if isinstance(one, Number)]
                if spin.begun and spin.launched and not spin.ended:
                    landed = self._witnessed(status)
                    if landed is not None:
                        spin = replace(spin, ended=True)
                        yield BallLanded(landed)
            case State.TABLE_CLOSED | State.NO_BALL:
                if spin.begun and not spin.ended:
                    yield SpinVoided("table_closed" if state is State.TABLE_CLOSED else "no_ball")
                    spin = replace(spin, ended=True)
                if before is not state:
                    yield WheelStopped()
        if state is not State.WINNING_NUMBER:
            self._witnesses = []
        self._spin = spin

    def _witnessed(self, status: Status) -> str | None:
        """The number, once a second witness says the same."""
        agreed = bool(status.number) and any(one.number == status.number for one in self._witnesses[-1:])
        self._witnesses = [status]
        return status.number if agreed else None

    def _ask_restart(self) -> None:
        self._restarts = 0
        self._restart_due = asyncio.get_running_loop().time()

    # ---- flags

    def _flags(self, status: Status, tick: float) -> Iterator[Event]:
        for flag, state in ((Flag.LAUNCH_FAILED, State.BALL_IN_RIM), (Flag.BALL_NOT_DETECTED, State.NO_MORE_BETS)):
            if flag in status.flags and status.state is state:
                self._since.setdefault(flag, tick)
            else:
                self._since.pop(flag, None)
        yield from self._fault("wheel.launch_failed", self._held(Flag.LAUNCH_FAILED, tick, LAUNCH_FAILED_IGNORED))
        yield from self._fault(
            "wheel.ball_not_detected", self._held(Flag.BALL_NOT_DETECTED, tick, BALL_NOT_DETECTED_IGNORED)
        )
        yield from self._fault("wheel.sensor_or_motor", Flag.SENSOR_OR_MOTOR in status.flags)
        yield from self._fault("wheel.no_ball", status.state is State.NO_BALL)
        if status.state is State.PLACE_BETS:
            yield from self._fault("wheel.restart_refused", False)

    def _held(self, flag: Flag, tick: float, longer_than: float) -> bool:
        return flag in self._since and tick - self._since[flag] > longer_than

    def _fault(self, code: str, present: bool) -> Iterator[Event]:
        if present and not self._faults.get(code):
            text, severity, remedy = FAULTS[code]
            yield DeviceFaulted(code, text, "error" if severity == "error" else "warning", remedy)
        elif not present and self._faults.get(code):
            yield DeviceRecovered(code)
        self._faults[code] = present


_NEXT: dict[State, tuple[State, ...]] = {
    State.STARTED: (State.PLACE_BETS,),
    State.PLACE_BETS: (State.BALL_IN_RIM,),
    State.BALL_IN_RIM: (State.NO_MORE_BETS,),
    State.NO_MORE_BETS: (State.WINNING_NUMBER,),
    State.WINNING_NUMBER: (State.STARTED,),
    State.TABLE_CLOSED: (State.STARTED,),
}
_NEXT_SPIN = {
    (State.WINNING_NUMBER, State.PLACE_BETS),
    (State.WINNING_NUMBER, State.STARTED),
    (State.STARTED, State.PLACE_BETS),
}


def _launch(status: Status) -> BallLaunched:
    """The ball runs against the rotor, unless the flag says that it turns with it."""
    with_rotor = Flag.BALL_WITH_ROTOR in status.flags
    ball_clockwise = status.clockwise == with_rotor
    return BallLaunched(
        "clockwise" if ball_clockwise else "anticlockwise", "clockwise" if status.clockwise else "anticlockwise"
    )


def _remembered(memory: bytes | None) -> Spin | None:
    if not memory:
        return None
    try:
        return msgspec.json.decode(memory, type=Spin | None)
    except msgspec.DecodeError:
        return None
