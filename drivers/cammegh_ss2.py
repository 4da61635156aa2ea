"""Driver for the Cammegh SS2 wheel: from its status lines to spins.

The line has no checksum, so a single line proves nothing. A step needs a second line with the same content, a flag
needs two consecutive lines, and a number needs two witnesses: the bare number line, a state-5 line, or the first line
of the next spin. If the witnesses of a spin disagree, a number needs two more than any other has. Only no more bets and
state 5 are accepted at once: the first cannot wait, and the second claims nothing before its number has a witness.

The spin counter is compared with the last known one, also over sessions and restarts: what ended unseen is a missed
spin, and a number found afterwards is never its landing. drivers/wheels.py decides what a lower counter proves. If bets
are open after a long absence under the same counter, they belong to a spin that begins: nothing proves that it is the
same one, nor that one was missed. In both cases the wheel does not come online as continuous. A wheel that was never
seen before comes online when its counter is known, because an edge that is killed in between would not know what it
missed.

Assumed, because no document says it: displays on ports 2 and 3 receive their status lines without asking (mode bit
128); a self-test is over when no code came for SELF_TEST_QUIET; a statistics table when no line came for TABLE_QUIET;
`*T f` answers with `f` or OK; the third field of a bonus line is the days of its licence; and a bonus is in one line
only, so that it has no second witness.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

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
)
from drivers.faults import Fault, Faults, Standing
from drivers.wheels import SHORTEST_SPIN, follows, gone_round, outdated
from protocols.cammegh_ss2 import (
    ASK_FIRMWARE,
    ASK_MANUFACTURER,
    CR_LF,
    LICENCE_EXPIRED,
    PARAMETERS,
    POLL,
    RESTART,
    SELF_TEST,
    SWITCH_ON,
    Decoder,
    Flag,
    Garbage,
    Message,
    Mode,
    Number,
    Packet,
    State,
    Status,
    encode,
)
from protocols.contract.commands import Ask, Command, Power, RestartSpin, SelfTest, SetParameter, StartSpin
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BonusDrawn,
    DeviceOnline,
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
POLL_AFTER_NUMBER = 0.1  # state 5 may be short; the wheel answers at the earliest this long after its last line
MAX_EARLY = 200
MAX_WITNESSES = 8
SPINS = 256  # the counter runs 1..256
# A spin that began this long ago is not resumed, even with the same counter.
LONGEST_SPIN = timedelta(minutes=3)

# Failed launches before the ball runs: flag 8, or flag 2 in state 2. Real wheels show them for half a minute at a time,
# or in single lines for minutes; what adds up within one spin is told. A line speaks for a second before it at most.
LAUNCH_TROUBLE = 3.0
LINE_SPEAKS_FOR = 1.0
LAUNCHED_AFTER, TROUBLE_OVER_AFTER = 1.0, 15.0  # without such a flag: in the rim, and before it
# The controller itself stops after 75 s of no more bets.
NO_NUMBER = 90.0

# State 6 in mid-spin (operators' experience): ignored just after the table was opened; one incident while it flaps.
JUST_OPENED = timedelta(seconds=30)
ONE_INCIDENT = 10.0
RECOVERY_ASKS, RECOVERY_EVERY, RECOVERY_LIMIT = 10.0, 1.0, 20.0
# After `*P OK` to somebody else's `*P 0` the rotor runs down for some seconds in the old state, as captured.
RUNS_DOWN = 10.0

ANSWER = 2.0  # seconds within which the wheel answers a command
CHANGES = 15.0  # and within which it does it
TABLE_QUIET = 0.5
TABLE_LINES = 64
SELF_TEST_LIMIT = 300.0
SELF_TEST_QUIET = 2.0
NO_ANSWERS = {"NO": "says NO", "BUSY": "is busy"}

LOOK = "look at the sensors, the motor and the encoder in the order of the vendor's service manual"
SELF_TEST_REMEDIES = {
    1: "switch the wheel off and on; if it stays, call the vendor",
    2: "put the ball into the track",
    3: "turn the rotor by hand, take the ball out and put it into the track",
    4: "look whether air jet or launcher is turned or loose; clean the ball track",
    5: "look whether something blocks the rotor; check the motor's plug and belt",
    6: "check the encoder's plug and disc",
    7: "play anticlockwise only, and call the vendor",
    8: "play clockwise only, and call the vendor",
    **dict.fromkeys((11, 12, 13), "take away what covers the sensor, clean it, check its plug"),
    **dict.fromkeys((21, 22, 23), "clean the sensor and its mirror, check its plug"),
    100: "free rotor and ball",
}
GOES_ON = "the spin goes on and counts"
UNTOUCHED = "no spin runs while the wheel tests itself; found in play, the spin ends as its other lines say"

_FAULTS = (
    Fault(
        "wheel.launch_failed",
        "the launch fails: for 3 s or more within one spin",
        "look for the ball and the air jet; the controller tries again by itself, else void the spin",
        "by itself",
        GOES_ON,
    ),
    Fault(
        "wheel.ball_with_rotor",
        "the ball turns with the rotor, or something hit it",
        "let it spin again; if it comes back: look for a foreign object on the track, clean ball and track",
        "by itself",
        "void, and spun again",
    ),
    Fault(
        "wheel.ball_not_detected",
        "the ball is not seen for more than 5 s after no more bets",
        "look whether the ball left the track; put it back; clean the rim sensors",
        "by itself",
        "void, and spun again",
        "error",
    ),
    Fault(
        "wheel.sensor_or_motor",
        "sensor, motor or encoder fault; the wheel powers down",
        f"run the self-test while the table is closed, to learn which; {LOOK}",
        "by a person",
        "void: the wheel stops",
        "error",
    ),
    Fault(
        "wheel.no_ball",
        "no ball is seen in the track",
        "put the ball into the track",
        "by a person",
        "void, and spun again",
        "error",
    ),
    Fault(
        "wheel.no_number",
        "no more bets for more than 90 s, and no number",
        "look where the ball is; void the spin and restart the game at the wheel",
        "by a person",
        "open until the wheel goes on or somebody voids it",
        "error",
    ),
    Fault(
        "wheel.number_unsteady",
        "the lines of one spin name different numbers",
        "compare with the pocket in which the ball lies before paying; look for a loose separator or a bad cable",
        "by itself",
        "counts where its later lines agree; else it is missed; void where it changed after it was told",
    ),
    Fault(
        "wheel.dropped",
        "the wheel closed the table in the middle of a spin",
        "if nobody closed it: look at mains and emergency stop, run the self-test, switch it on again",
        "by a person",
        "void",
    ),
    Fault(
        "wheel.restart_refused",
        "the wheel does not take the restart after a void spin",
        "restart the game at the wheel, or switch the wheel off and on",
        "by a person",
        "void already",
        "error",
    ),
    Fault(
        "wheel.rotor_not_reversed",
        "two spins running with the rotor turning the same way",
        "check that the wheel's mode has bit 1, reverse each game; run the self-test to see whether it can turn back",
        "by itself",
        GOES_ON,
    ),
    Fault(
        "wheel.bonus_licence",
        "the licence of the bonus numbers has run out",
        "ask the vendor for a licence, or switch mode bit 32768 off",
        "by a person",
        GOES_ON,
    ),
    *(
        Fault(
            f"wheel.self_test_{code}",
            f"self-test {code}: {text}",
            f"{SELF_TEST_REMEDIES[code]}; then run the self-test again",
            "by a person",
            UNTOUCHED,
            "error",
        )
        for code, text in SELF_TEST.items()
    ),
    Fault(
        "wheel.self_test_other",
        "the self-test says a code that no manual of ours has",
        f"{LOOK}; send the code to the maintainers",
        "by a person",
        UNTOUCHED,
        "error",
    ),
)
_TESTED = tuple(fault.code for fault in _FAULTS if "self_test" in fault.code)


class WheelOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`silence`: seconds without a valid line after which the wheel counts as lost.

    `port`: the controller's port. Ports 2 and 3 serve displays: there the driver only listens, and takes no commands.
    `alternating`: the rotor reverses in each game (mode bit 1); a rotor that does not is a fault. `recover`: switch the
    wheel on again if it closed during a spin; never a wheel that the house switched off. `shortest_spin`: minimum
    seconds of a spin. A lower counter that is some spins ahead after less than that many times this value was reset and
    did not wrap around; one spin ahead always wrapped.
    """

    silence: Annotated[float, Meta(ge=1, le=60)] = 3.0
    port: Literal[1, 2, 3] = 1
    alternating: bool = False
    recover: bool = False
    shortest_spin: Annotated[float, Meta(gt=0, le=60)] = SHORTEST_SPIN


class Spin(Struct, frozen=True):
    """The last known spin. `begun`: its start was seen. `ended`: reported, void or missed. `state` None: none yet.

    `void`: the wheel will repeat it under its number, and has not yet. `landed`: it has a pocket; the wheel counts on
    and does not repeat the number. `failed_s`: seconds of failed launches so far.
    """

    spin: Annotated[int, Meta(ge=0, le=SPINS)]
    state: State | None
    at: Annotated[datetime, Meta(tz=True)]
    begun: bool = False
    launched: bool = False
    ended: bool = False
    void: bool = False
    landed: bool = False
    tick: float | None = None
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


class _Recovery:
    """The wheel is being switched on again: since when, when to ask next, and whether it answered OK."""

    def __init__(self, now: float) -> None:
        self.since = self.due = now
        self.answered = False


class _Test:
    """A running self-test: its codes so far, and its latest end."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.codes: set[int] = set()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Requests:
    """One question to the wheel at a time, with its answer."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: tuple[str, re.Pattern[str], asyncio.Future[str]] | None = None
        self._lines: list[str] = []
        self.lost = ""

    async def ask(self, letter: str, text: str = "", answer: str = ".+", tries: int = 2) -> str:
        """The text of the answer. A question may be repeated, an order may not: it may have been received.

        Raises CommandRefused if the wheel answers NO or BUSY, CommandFailed if it does not answer.
        """
        for _ in range(tries):
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._lines = []
            self._waiting = letter, re.compile(answer), future
            try:
                await self.write(encode(Packet(letter, text)))
                async with asyncio.timeout(ANSWER):
                    said = await future
            except TimeoutError:
                continue
            finally:
                self._waiting = None
            if said in NO_ANSWERS:
                raise CommandRefused(f"the wheel {NO_ANSWERS[said]} to *{letter} {text}".rstrip())
            return said
        raise CommandFailed(f"the wheel did not answer *{letter} {text}".rstrip() + f" within {ANSWER:g} s")

    async def ask_lines(self, letter: str) -> list[str]:
        """All lines of an answer that has several."""
        lines = [await self.ask(letter)]
        while len(lines) < TABLE_LINES:
            await asyncio.sleep(TABLE_QUIET)
            if len(self._lines) <= len(lines):
                break
            lines = self._lines[:TABLE_LINES]
        return lines

    async def write(self, data: bytes) -> None:
        """Send to the wheel. Raises CommandFailed if the link is gone."""
        if self.lost:
            raise CommandFailed(self.lost)
        try:
            await self._link.write(data)
        except LinkLost as lost:
            raise CommandFailed(f"the link to the wheel was lost: {lost}") from lost

    def awaits(self, letter: str) -> bool:
        """Whether an answer of this letter would belong to our question."""
        return self._waiting is not None and self._waiting[0] == letter

    def hear(self, packet: Packet) -> None:
        """A packet from the wheel."""
        if len(self._lines) < TABLE_LINES and packet.text not in NO_ANSWERS:
            self._lines.append(packet.text)
        if self._waiting is not None:
            letter, answer, future = self._waiting
            fits = packet.text in NO_ANSWERS or answer.fullmatch(packet.text)
            if packet.letter == letter and fits and not future.done():
                self._lines = [packet.text]
                future.set_result(packet.text)

    def end(self, why: str) -> None:
        """The session is over."""
        self.lost = why
        if self._waiting is not None and not self._waiting[2].done():
            self._waiting[2].set_exception(CommandFailed(why))


class CammeghSS2:
    """The driver."""

    name: ClassVar[str] = "cammegh_ss2"
    title: ClassVar[str] = "Cammegh SS2 (Slingshot 2, Mercury) roulette wheel"
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual", "capture")
    Options: ClassVar[type[WheelOptions]] = WheelOptions
    faults: ClassVar[tuple[Fault, ...]] = _FAULTS
    commands: ClassVar[tuple[type[Command], ...]] = (Power, StartSpin, RestartSpin, SelfTest, Ask, SetParameter)
    tells_cards: ClassVar[bool] = False

    def __init__(self, options: WheelOptions, memory: bytes | None = None) -> None:
        """Restore the spin and the faults of the last session, if they are known."""
        remembered = _remembered(memory)
        self._options = options
        self._listens = options.port != 1
        self._spin = remembered.spin
        self._kept = None if self._spin is None else self._spin.tick
        standing = remembered.faults
        if not isinstance(standing, Standing):
            standing = Standing(standing, standing)
        self._faults = Faults(_FAULTS, standing)
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
        self._recovery: _Recovery | None = None
        self._test: _Test | None = None
        self._requests: _Requests | None = None
        self._obeying = False
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
        self._stranger = ""
        self._firmware = ""

    async def run(self, link: Link, emit: Emit) -> None:
        """Listen for ever; ask for the status if the wheel's operating mode does not send it."""
        self._requests = _Requests(link)
        try:
            await self._listen(link, emit)
        except LinkLost:
            if self._spin is not None and self._spin.tick != self._kept:  # from now on the line is not read
                await self._keep(emit)
            raise
        finally:
            why = "the link to the wheel was lost before the command had an end"
            self._requests.end(why)
            over = None if self._test is None else self._test.over
            shown = None if self._watched is None else self._watched[1]
            for future in (over, shown):
                if future is not None and not future.done():
                    future.set_exception(CommandFailed(why))
            self._requests = None

    async def _listen(self, link: Link, emit: Emit) -> None:  # noqa: C901 - one session, read from top to bottom
        decoder = Decoder()
        loop = asyncio.get_running_loop()
        last_valid = began = loop.time()
        poll_due = began + POLL_AFTER
        chunk: Chunk | None = None
        first_tick: float | None = None
        early: list[tuple[Message, Chunk]] | None = []
        if not self._listens:
            await link.write(ASK_MANUFACTURER + ASK_FIRMWARE)
        while True:
            messages: list[Message] = []
            try:
                async with asyncio.timeout_at(poll_due):
                    chunk = await link.read()
                messages = decoder.feed(chunk.data)
            except TimeoutError:
                if not self._listens:
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
            if any(_from_wheel(message) for message in messages):
                last_valid = now
            elif now - last_valid >= self._options.silence and self._test is None:
                raise LinkLost(f"no valid line for {self._options.silence:g} s")
            if chunk is None:
                continue
            for message in messages:
                if isinstance(message, Packet) and (answer := self._reply(message, chunk.tick)) and not self._listens:
                    await link.write(answer)
            if early is None:
                await self._tell(emit, [one for message in messages for one in self._hear(message, chunk)])
                if self._spin is not None and outdated(self._spin.tick, self._kept):
                    await self._keep(emit)
            else:  # wait a moment for the answers to *K and *S, so that the wheel comes online with its name
                first_tick = chunk.tick if first_tick is None else first_tick
                early += [(message, chunk) for message in messages]
                waited = chunk.tick - first_tick >= HANDSHAKE or now - began >= HANDSHAKE
                waited |= len(early) >= MAX_EARLY
                if (self._firmware or waited) and self._first(early) is not None:
                    await self._tell(emit, [*self._hello(early)])
                    early = None
                elif len(early) >= MAX_EARLY:
                    raise LinkLost("lines, but no status lines that agree: another device, or the wrong line settings")
            if self._restart_due is not None and now >= self._restart_due and not self._listens:
                await self._restart(link, emit, now)
            if self._recovery is not None:
                await self._recover(link, emit, self._recovery, now)
            if self._test is not None and now >= self._test.until:
                await self._tested(link, emit, self._test)
            last_valid += loop.time() - now  # we were busy, the wheel was not silent

    async def _tell(self, emit: Emit, sightings: list[Sighting]) -> None:
        if sightings:
            await self._keep(emit, sightings)

    async def _keep(self, emit: Emit, sightings: Sequence[Sighting] = ()) -> None:
        """Durable when it returns, with the memory."""
        memory = Memory(self._spin, self._faults.standing, self._opened, self._clockwise, self._opened_tick)
        await emit(sightings, msgspec.json.encode(memory))
        self._kept = None if self._spin is None else self._spin.tick

    async def _tell_now(self, link: Link, emit: Emit, events: Iterable[Event]) -> None:
        """Report what was concluded from silence."""
        silence = link.stamp()
        await self._tell(emit, [Sighting(one, b"", silence) for one in events])

    def _first(self, early: Iterable[tuple[Message, Chunk]]) -> tuple[Status, Chunk] | None:
        """The first line that counts: one with the known counter, or the first of two that agree.

        Without it the wheel is not online: the counter is stored with `device.online`, and proves the next gap.
        """
        seen = [(message, chunk) for message, chunk in early if isinstance(message, Status)]
        if self._spin is not None and seen and seen[0][0].spin == self._spin.spin:
            return seen[0]
        for (one, chunk), (other, _) in pairwise(seen):
            if one.spin == other.spin and (self._spin is not None or one.state is other.state):
                return one, chunk
        return None

    def _hello(self, early: Sequence[tuple[Message, Chunk]]) -> Iterator[Sighting]:
        """Report the wheel, then what it sent meanwhile. With a known spin its counter proves continuity."""
        met = self._first(early)
        if met is None:
            return
        first, at = met
        self._long_away = self._spin is not None and _long_ago(self._spin, at)
        yield Sighting(DeviceOnline(self._continuous(first, at), "Cammegh SS2", "", self._firmware), first.raw, at)
        for message, chunk in early:
            if message is first and self._spin is not None and first.spin != self._spin.spin:
                # The next line has its counter too. What that proves is told now: there may be no third line.
                self._doubted = (first.state, first.spin)
            yield from self._hear(message, chunk)

    def _continuous(self, status: Status, chunk: Chunk) -> bool:
        """Whether nothing unknown may be missing: the counter, or the running ball, proves it.

        A lower counter does not: it was reset, or wrapped around after an unknown number of spins. Nor do bets that
        were open long ago.
        """
        spin = self._spin
        if spin is None or (self._long_away and not spin.launched):
            return False
        steps = status.spin - spin.spin
        if steps == 0 and spin.landed and status.state in _RUNNING:
            steps = -1  # as far again
        return follows(steps, SPINS, spin.at, spin.tick, self._options.shortest_spin, chunk)

    def _reply(self, packet: Packet, tick: float) -> bytes:
        """The question to repeat. A reply may be damaged: the device is refused when it sends a wrong name twice."""
        requests = self._requests
        ours = requests is not None and requests.awaits(packet.letter)
        if requests is not None:
            requests.hear(packet)
        match packet:
            case Packet(letter="P", text="OK") if self._recovery is not None:
                self._recovery.answered = True
            case Packet(letter="P", text="OK") if not ours:
                self._switched_off = tick  # somebody else asked: the house switches its wheel
            case Packet(letter="F", text="NO" | "BUSY" as text) if self._test is not None:
                if not self._test.codes and not self._test.over.done():
                    self._test.over.set_exception(CommandRefused(f"the wheel {NO_ANSWERS[text]} to *F"))
                    self._test = None
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
        """Acknowledge a void spin with *R until the wheel accepts it."""
        if self._restarts == RESTART_TRIES:
            self._restart_due = None
            await self._tell_now(link, emit, self._faults.begin("wheel.restart_refused"))
            return
        self._restarts += 1
        self._restart_due = now + RESTART_REPEAT
        await link.write(RESTART)

    async def _recover(self, link: Link, emit: Emit, recovery: _Recovery, now: float) -> None:
        """Switch the wheel on: ask each second until it answers OK; it is back when it plays."""
        if self._spin is not None and self._spin.state in _PLAYING:
            self._recovery = None
        elif now - recovery.since >= RECOVERY_LIMIT:
            self._recovery = None
            said = "but it does not play" if recovery.answered else "and it does not answer"
            await self._tell_now(link, emit, self._faults.strike("wheel.dropped", f"switched on again, {said}"))
        elif not recovery.answered and now >= recovery.due and now - recovery.since < RECOVERY_ASKS:
            recovery.due += RECOVERY_EVERY
            await link.write(SWITCH_ON)

    async def _tested(self, link: Link, emit: Emit, test: _Test) -> None:
        """The self-test is over: faults that it found before and not now have ended."""
        self._test = None
        if test.codes:
            found = {_self_test(code) for code in test.codes}
            await self._tell_now(link, emit, self._faults.end(*(code for code in _TESTED if code not in found)))
        if test.over.done():
            return
        if test.codes:
            test.over.set_result(None)
        else:
            test.over.set_exception(CommandFailed(f"the self-test had no result within {SELF_TEST_LIMIT:g} s"))

    # ---- what it is told to do

    async def obey(self, command: Command) -> dict[str, Any]:
        """One command at a time; an order is done when the wheel's lines show it."""
        if self._listens:
            raise CommandRefused(f"port {self._options.port} serves displays only: commands go to the wheel's port 1")
        if self._obeying:
            raise CommandRefused("another command is under way")
        requests = self._requests
        if requests is None or self._joining or self._spin is None or self._spin.state is None:
            raise CommandRefused("the wheel has not said yet what it is doing")
        self._obeying = True
        try:
            match command:
                case Power(on=on):
                    return await self._power(requests, on)
                case StartSpin():
                    return await self._start(requests, command)
                case RestartSpin():
                    self._only_in(State.BALL_IN_RIM, State.NO_MORE_BETS)
                    if self._spin.ended:
                        raise CommandRefused("this spin is void already: the wheel spins again by itself")
                    await requests.ask("R", answer="OK", tries=1)
                    await self._shown({State.PLACE_BETS}, "took the restart, but does not ask for bets")
                    return {}
                case SelfTest():
                    return await self._self_test(requests)
                case Ask(what=what):
                    return await self._ask(requests, what)
                case SetParameter():
                    return await self._set(requests, command)
                case _:
                    raise CommandRefused("the wheel has no such command")
        finally:
            self._obeying = False

    def _only_in(self, *states: State) -> State:
        """The wheel's state. Raises CommandRefused for another state, or if the last line shows another."""
        assert self._spin is not None
        state = self._spin.state
        assert state is not None
        if state not in states:
            wanted = " or ".join(str(one.value) for one in states)
            raise CommandRefused(f"only in state {wanted}: the wheel is in {state.value} ({_in_words(state)})")
        if self._before is None or self._before.state is not state:
            raise CommandRefused("the wheel is just changing its state: ask again")
        return state

    def _no_spin(self) -> None:
        """Raises CommandRefused during a spin: nothing is changed under a running ball."""
        assert self._spin is not None
        if self._spin.begun and not self._spin.ended:
            raise CommandRefused(f"spin {self._spin.spin} is under way")

    async def _shown(self, states: AbstractSet[State], otherwise: str) -> None:
        """Wait until the wheel's lines show one of `states`."""
        if self._spin is not None and self._spin.state in states:
            return
        if self._requests is None:
            raise CommandFailed("the link to the wheel was lost before the command had an end")
        shown: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watched = states, shown
        try:
            async with asyncio.timeout(CHANGES):
                await shown
        except TimeoutError:
            raise CommandFailed(f"the wheel {otherwise} within {CHANGES:g} s") from None
        finally:
            self._watched = None

    async def _power(self, requests: _Requests, on: bool) -> dict[str, Any]:
        if on:
            if self._before is not None and Flag.SENSOR_OR_MOTOR in self._before.flags:
                raise CommandRefused("a sensor, motor or encoder fault stands: find it with the self-test first")
            await requests.ask("P", "1", "OK", tries=1)
            await self._shown(set(State) - {State.TABLE_CLOSED}, "said OK, but does not leave state 6")
            return {}
        self._no_spin()
        self._only_in(State.STARTED, State.WINNING_NUMBER, State.TABLE_CLOSED, State.NO_BALL)
        self._recovery = None
        await requests.ask("P", "0", "OK", tries=1)
        self._switched_off = asyncio.get_running_loop().time()
        await self._shown({State.TABLE_CLOSED}, "said OK, but does not close the table")
        return {}

    async def _start(self, requests: _Requests, command: StartSpin) -> dict[str, Any]:
        """The rotor's direction: as requested, as in the last game, or reversed if the mode says so."""
        self._only_in(*_STARTABLE)
        mode = Mode(int(await requests.ask("o", answer="[0-9]{1,5}")))
        if Mode.WAIT_FOR_START not in mode:
            raise CommandRefused(f"the wheel runs by itself: its mode {mode.value} has no bit 2, wait for start")
        state = self._only_in(*_STARTABLE)
        assert self._before is not None
        if state is State.PLACE_BETS and self._ordered == self._before.spin:
            raise CommandRefused(f"spin {self._ordered} was started already")
        rotor = command.rotor
        if rotor is None:
            clockwise = self._before.clockwise != (Mode.REVERSE_EACH_GAME in mode)
            rotor = "clockwise" if clockwise else "anticlockwise"
        await requests.ask("u", "1" if rotor == "clockwise" else "3", "OK", tries=1)
        self._ordered = self._before.spin
        await self._shown({State.PLACE_BETS, State.BALL_IN_RIM}, "said OK, but does not begin the game")
        return {"rotor": rotor}

    async def _self_test(self, requests: _Requests) -> dict[str, Any]:
        self._only_in(State.TABLE_CLOSED)
        self._no_spin()
        self._recovery = None
        self._test = test = _Test(asyncio.get_running_loop().time() + SELF_TEST_LIMIT)
        await requests.write(encode(Packet("F", "")))
        await test.over
        return {
            "codes": sorted(test.codes),
            "found": [SELF_TEST.get(code, "a code that no manual of ours has") for code in sorted(test.codes) if code],
        }

    async def _ask(self, requests: _Requests, what: str) -> dict[str, Any]:
        match what:
            case "mode":
                return {what: int(await requests.ask("o", answer="[0-9]{1,5}"))}
            case "overview":
                answer = await requests.ask("O", answer="[0-9]{1,5}( [0-9]{1,5}){3}")
                names = ("state", "protocol", "games_per_hour", "mode")
                return {what: dict(zip(names, map(int, answer.split()), strict=True))}
            case _ if what in _ANSWERED:
                return {what: await requests.ask(_ANSWERED[what])}
            case _ if what in _TABLES:
                self._only_in(State.WINNING_NUMBER, State.TABLE_CLOSED)
                return {what: await requests.ask_lines(_TABLES[what])}
            case _ if what in PARAMETERS:
                return {what: await self._parameter(requests, what)}
            case _:
                known = ", ".join(("mode", "overview", *_ANSWERED, *_TABLES, *PARAMETERS))
                raise CommandRefused(f"the wheel cannot tell {what!r}; it tells {known}")

    async def _parameter(self, requests: _Requests, name: str) -> str:
        letter = PARAMETERS[name]
        return (await requests.ask("T", letter, f"{letter.lower()} .+")).partition(" ")[2].strip()

    async def _set(self, requests: _Requests, command: SetParameter) -> dict[str, Any]:
        """Set, read back, and store if requested."""
        name, value = command.name, command.value
        if name != "mode" and name not in PARAMETERS:
            raise CommandRefused(f"the wheel has no parameter {name!r}; it has mode, {', '.join(PARAMETERS)}")
        if not _VALUE.fullmatch(value) or (name == "mode" and not value.isdecimal()):
            raise CommandRefused(f"{value!r} is no value: write numbers of up to five digits, a space between two")
        self._no_spin()
        self._only_in(State.STARTED, State.TABLE_CLOSED)
        if name == "mode":
            await requests.ask("o", value, "[0-9]{1,5}", tries=1)
            read = await requests.ask("o", answer="[0-9]{1,5}")
        else:
            await requests.ask("T", f"{PARAMETERS[name].lower()} {value}", f"{PARAMETERS[name].lower()} .+|OK", tries=1)
            read = await self._parameter(requests, name)
        if not _VALUE.fullmatch(read) or list(map(Decimal, read.split())) != list(map(Decimal, value.split())):
            raise CommandFailed(f"{name} was set to {value}, but reads {read}")
        if command.store:
            try:
                await requests.ask("T", "f", "f.*|OK", tries=1)
            except CommandRefused as refused:
                raise CommandFailed(f"{name} is {value}, but is not stored: {refused}") from refused
        return {name: read, "stored": command.store}

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
                fault = _self_test(code)
                yield from self._faults.begin(fault, str(code) if fault == "wheel.self_test_other" else "")

    def _status(self, status: Status, chunk: Chunk) -> Iterator[Event]:
        before, self._before = self._before, status
        if status.state not in _STARTABLE:
            self._ordered = None
        spin = self._spin
        if not self._believed(spin, status, chunk):
            return
        if spin is not None and spin.spin == status.spin:
            spin = self._spin = replace(spin, failed_s=spin.failed_s + self._failing(status, chunk.tick))
        if before is not None:
            yield from self._flags(status, before, chunk.tick)
            spin = self._spin
        if spin is None:  # a wheel never seen before: a finished spin is no loss
            over = status.state is State.WINNING_NUMBER
            spin = Spin(status.spin, None, chunk.at, ended=over, tick=chunk.tick)
        elif self._joining and self._long_away:  # too long to be the same spin, whatever the counter says
            if not spin.launched and (status.state, status.spin) == (State.PLACE_BETS, spin.spin):
                spin = replace(spin, begun=False)
            else:
                yield SpinMissed(1)
                spin = replace(spin, ended=True)
        self._joining = False
        yield from self._taken_back(spin, status, before)
        if self._opened is None or (status.state is not State.TABLE_CLOSED and spin.state is State.TABLE_CLOSED):
            self._opened, self._opened_tick = chunk.at, chunk.tick
        # Under the number of a spin that landed in an earlier session: switched off meanwhile, it counted as far again.
        counts_again = self._landed_before and status.state in _RUNNING
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
        steps = status.spin - spin.spin
        # No number is shown before the first one since power came on.
        if (
            steps < 0 < status.spin
            and status.number
            and gone_round(steps + SPINS, spin.at, spin.tick, self._options.shortest_spin, LONGEST_SPIN, chunk)
        ):
            steps += SPINS
        counts_on = steps > 0
        # Else it was switched off and on: it counts from 1 again, and a spin that had not begun never will.
        missed = steps - 1 if counts_on else max(status.spin - 1, 0)
        events: list[Event] = []
        if not spin.ended and (spin.begun or (counts_on and spin.spin)):
            landed = None
            # A next spin that has its own number already says nothing of this one's: nor does the line before it.
            own = status.state is State.WINNING_NUMBER
            if steps == 1 and spin.launched and spin.state is State.WINNING_NUMBER and not own:
                if before is not None and before.spin == status.spin and self._witnesses:
                    self._witnesses.append(before)  # the line that this one confirms
                landed = self._witnessed(status)
            if landed is None:
                missed += 1
            else:
                events += self._land(spin.spin, landed)
        elif spin.ended and spin.void and counts_on:
            missed += 1  # repeated unseen: only a spin with a number advances the counter
        if missed:
            events.append(SpinMissed(missed))
        self._witnesses = []
        return Spin(status.spin, None, chunk.at, tick=chunk.tick), events

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
                )  # running, and neither its start nor its launch was seen: its number is not reported
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
        shows = {(State.WINNING_NUMBER, landed), *((state, landed) for state in _BEFORE_LAUNCH)}
        shows |= {(state, landed % SPINS + 1) for state in _BEFORE_LAUNCH}
        if status.number != pocket and {(one.state, one.spin) for one in (status, before)} <= shows:
            self._landed = None
            yield from self._faults.begin("wheel.number_unsteady", "after it was told")
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
        # Three sensors saw the ball fall: sensors, motor and encoder work. Of the two ways, the one it turned does.
        unproven = {_self_test(8 if clockwise else 7)} if clockwise is not None else {_self_test(7), _self_test(8)}
        if self._before is not None and Flag.SENSOR_OR_MOTOR not in self._before.flags:
            yield from self._faults.end(*(code for code in _TESTED if code not in unproven))
        yield from self._faults.end("wheel.number_unsteady")
        if not unsteady:
            self._faults.good_cycle()

    def _dropped(self, before: State | None, status: Status, chunk: Chunk) -> Iterator[Event]:
        """State 6 during a spin, unless the house switched off, a sensor fault explains it, or it was just opened."""
        if before not in _RUNNING or self._opened is None:
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
            self._recovery = _Recovery(asyncio.get_running_loop().time())

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
        """The ball runs against the rotor, unless the wheel says otherwise."""
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
        if state in _PLAYING and (self._dropped_at is None or tick - self._dropped_at >= ONE_INCIDENT):
            yield from faults.end("wheel.dropped")

        with_rotor = in_rim and before.state is state and Flag.BALL_WITH_ROTOR in shown
        if with_rotor or not in_rim or Flag.BALL_WITH_ROTOR in gone:
            yield from faults.watch("wheel.ball_with_rotor", with_rotor)
        self._call_void(with_rotor or unseen, in_rim or no_more_bets)

    def _failing(self, status: Status, tick: float) -> float:
        """The seconds of failed launches that this line adds."""
        since, self._heard_at = self._heard_at, tick
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
        return min(tick - since, LINE_SPEAKS_FOR) if failing and since is not None else 0.0

    def _call_void(self, void: bool, running: bool) -> None:
        """A void spin waits for *R, also if an earlier session reported it. Send one *R for each."""
        if not running:
            self._void = False
            self._restart_due = None
        elif void and not self._void:
            self._void = True
            self._restarts = 0
            self._restart_due = asyncio.get_running_loop().time()


_AT_ONCE = {(State.BALL_IN_RIM, State.NO_MORE_BETS), (State.NO_MORE_BETS, State.WINNING_NUMBER)}
_RUNNING = {State.PLACE_BETS, State.BALL_IN_RIM, State.NO_MORE_BETS}
_PLAYING = {*_RUNNING, State.WINNING_NUMBER}
_BEFORE_LAUNCH = _STARTABLE = (State.STARTED, State.PLACE_BETS)
_CODES = re.compile("[0-9]{1,3}(?: [0-9]{1,3})*")
_BONUS = re.compile("([1-6]);([0-9]{3})(?:;([0-9]{3}))?")
_NUMBER = r"[0-9]{1,5}(?:\.[0-9]{1,5})?"
_VALUE = re.compile(rf"{_NUMBER}(?: {_NUMBER}){{0,3}}")
_ANSWERED = {"firmware": "S", "description": "V", "manufacturer": "K"}
_TABLES = {"chi_squared": "w", "winning_numbers": "W", "misfires": "M"}


def _in_words(state: State) -> str:
    return state.name.lower().replace("_", " ")


def _from_wheel(message: Message) -> bool:
    """Whether only a wheel can have sent it: on a two-wire line the host receives its own messages."""
    match message:
        case Garbage() | Packet(text=""):
            return False
        case Packet(letter="P" | "T" | "o" | "u", text=text):  # these are orders, too, and answers may look like them
            return text == "OK" or text in NO_ANSWERS
        case _:
            return True


def _self_test(code: int) -> str:
    """The fault for a code of the self-test."""
    return f"wheel.self_test_{code}" if code in SELF_TEST else "wheel.self_test_other"


def _long_ago(spin: Spin, chunk: Chunk) -> bool:
    """Whether a spin that began and did not end is too old to be still running."""
    return spin.begun and not spin.ended and chunk.after_at_most(spin.at, spin.tick) > LONGEST_SPIN


def _longer(tick: float, since: float | None, seconds: float) -> bool:
    return since is not None and tick - since > seconds


def _cut_short(spin: Spin, reason: str) -> SpinVoided | SpinMissed:
    """A spin that ended before its number was reported. In state 5 the ball had fallen: then it is not void."""
    return SpinMissed(1) if spin.state is State.WINNING_NUMBER else SpinVoided(reason)


def _remembered(memory: bytes | None) -> Memory:
    """Empty if the memory is missing or not ours."""
    try:
        return msgspec.json.decode(memory or b"{}", type=Memory)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Memory()
