"""Driver for the Cammegh SS2 wheel: the session, and the commands that the wheel takes.

The driver asks for the status where the wheel does not send it, acknowledges void spins, switches a dropped wheel on
again and executes one command at a time. drivers/cammegh_ss2_spins.py turns the lines into events.

Assumed, because no document states it: displays on ports 2 and 3 receive their status lines without asking (mode bit
128); a self-test is over when no code came for SELF_TEST_QUIET; a statistics table when no line came for TABLE_QUIET;
`*T f` answers with `f` or OK; the third field of a bonus line is the days of its licence; and a bonus is in one line
only, so that no second line confirms it.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar

import msgspec

from drivers.cammegh_ss2_faults import FAULTS, TESTED, self_test_fault
from drivers.cammegh_ss2_spins import (
    PLAYING,
    STARTABLE,
    Memory,
    Recovery,
    RunningTest,
    SpinReader,
    WheelOptions,
)
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
)
from drivers.faults import Fault
from drivers.spin_counter import outdated
from protocols.cammegh_ss2 import (
    ASK_FIRMWARE,
    ASK_MANUFACTURER,
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
    Told,
    WheelStarted,
    WheelStopped,
)

RESTART_REPEAT = 2.0
RESTART_TRIES = 3
HANDSHAKE = 1.0
POLL_AFTER = 0.75
POLL_AFTER_NUMBER = 0.1  # state 5 may be short; the wheel answers at the earliest this long after its last line
MAX_EARLY = 200
RECOVERY_ASKS, RECOVERY_EVERY, RECOVERY_LIMIT = 10.0, 1.0, 20.0
ANSWER = 2.0  # seconds within which the wheel answers a command
CHANGES = 15.0  # and within which it does it
TABLE_QUIET = 0.5
TABLE_LINES = 64
SELF_TEST_LIMIT = 300.0
NO_ANSWERS = {"NO": "answers NO", "BUSY": "is busy"}

_NUMBER = r"[0-9]{1,5}(?:\.[0-9]{1,5})?"
_VALUE = re.compile(rf"{_NUMBER}(?: {_NUMBER}){{0,3}}")
_ANSWERED = {"firmware": "S", "description": "V", "manufacturer": "K"}
_TABLES = {"chi_squared": "w", "winning_numbers": "W", "misfires": "M"}
ASKS = ("mode", "overview", *_ANSWERED, *_TABLES, *PARAMETERS)
SETTABLE = ("mode", *PARAMETERS)


class Requests:
    """One question to the wheel at a time, with its answer."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: tuple[str, re.Pattern[str], asyncio.Future[str]] | None = None
        self._asked = ""
        self._lines: list[str] = []
        self.lost = ""

    async def ask(self, letter: str, text: str = "", answer: str = ".+", tries: int = 2) -> str:
        """The text of the answer. A question may be repeated, an order may not: it may have been received.

        Raises CommandRefused if the wheel answers NO or BUSY, CommandFailed if it does not answer.
        """
        for _ in range(tries):
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._asked, self._lines = letter, []
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
        if packet.letter != self._asked:
            return
        if len(self._lines) < TABLE_LINES and packet.text not in NO_ANSWERS:
            self._lines.append(packet.text)
        if self._waiting is not None:
            _, answer, future = self._waiting
            fits = packet.text in NO_ANSWERS or answer.fullmatch(packet.text)
            if fits and not future.done():
                self._lines = [packet.text]
                future.set_result(packet.text)

    def end(self, why: str) -> None:
        """The session is over."""
        self.lost = why
        if self._waiting is not None and not self._waiting[2].done():
            self._waiting[2].set_exception(CommandFailed(why))


class CammeghSS2(SpinReader):
    """The driver."""

    name: ClassVar[str] = "cammegh_ss2"
    title: ClassVar[str] = "Cammegh SS2 (Slingshot 2, Mercury) roulette wheel"
    icon: ClassVar[str] = "wheel"
    decoder: ClassVar[WireDecoder | None] = Decoder
    emits: ClassVar[tuple[Told, ...]] = (
        BallLanded,
        BallLaunched,
        BallSettling,
        BonusDrawn,
        SpinMissed,
        SpinStarted,
        SpinVoided,
        WheelStarted,
        WheelStopped,
    )
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual", "capture")
    Options: ClassVar[type[WheelOptions]] = WheelOptions
    faults: ClassVar[tuple[Fault, ...]] = FAULTS
    commands: ClassVar[tuple[type[Command], ...]] = (Power, StartSpin, RestartSpin, SelfTest, Ask, SetParameter)
    tells_cards: ClassVar[bool] = False
    choices: ClassVar[Mapping[tuple[str, str], tuple[str, ...]]] = {
        ("ask", "what"): ASKS,
        ("set-parameter", "name"): SETTABLE,
    }
    """The values that it accepts in a text field of a command."""

    def __init__(self, options: WheelOptions, memory: bytes | None = None) -> None:
        """Restore the spin and the faults of the last session, if they are known."""
        super().__init__(options, memory)
        self._kept = None if self._spin is None else self._spin.tick
        self._requests: Requests | None = None
        self._obeying = False
        self._stranger = ""
        self._firmware = ""

    async def run(self, link: Link, emit: Emit) -> None:
        """Listen for ever; ask for the status if the wheel's operating mode does not send it."""
        self._requests = Requests(link)
        try:
            await self._listen(link, emit)
        except LinkLost:
            if self._spin is not None and self._spin.tick != self._kept:  # from now on the line is not read
                await self._keep(emit)
            raise
        finally:
            why = "the link to the wheel was lost before the command ended"
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
            last_valid += loop.time() - now  # this process was busy: that is no pause of the wheel

    async def _tell(self, emit: Emit, sightings: list[Sighting]) -> None:
        if sightings:
            await self._keep(emit, sightings)

    async def _keep(self, emit: Emit, sightings: Sequence[Sighting] = ()) -> None:
        """Commit the sightings, and the memory with them."""
        memory = Memory(self._spin, self._faults.standing, self._opened, self._clockwise, self._opened_tick)
        await emit(sightings, msgspec.json.encode(memory))
        self._kept = None if self._spin is None else self._spin.tick

    async def _tell_now(self, link: Link, emit: Emit, events: Iterable[Event]) -> None:
        """Report events that no line of the wheel causes, with the present time."""
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
        self._long_away = self._spin is not None and self._counter.long_ago(self._spin, at)
        yield Sighting(DeviceOnline(self._continuous(first, at), "Cammegh SS2", "", self._firmware), first.raw, at)
        for message, chunk in early:
            if message is first and self._spin is not None and first.spin != self._spin.spin:
                # Report at once what the counter of the next line proves: there may be no third line.
                self._doubted = (first.state, first.spin)
            yield from self._hear(message, chunk)

    def _reply(self, packet: Packet, tick: float) -> bytes:
        """Apply a reply and return the question to repeat. A device that sends a wrong name twice is refused."""
        requests = self._requests
        ours = requests is not None and requests.awaits(packet.letter)
        if requests is not None:
            requests.hear(packet)
        match packet:
            case Packet(letter="P", text="OK") if self._recovery is not None:
                self._recovery.answered = True
            case Packet(letter="P", text="OK") if not ours:
                self._switched_off = tick  # another program sent the command: the house switches its wheel
            case Packet(letter="F", text="NO" | "BUSY" as text) if self._test is not None:
                if not self._test.codes and not self._test.over.done():
                    self._test.over.set_exception(CommandRefused(f"the wheel {NO_ANSWERS[text]} to *F"))
                    self._test = None
            case Packet(text="" | "NO" | "BUSY"):  # an echo, or a firmware that does not support the question
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

    async def _recover(self, link: Link, emit: Emit, recovery: Recovery, now: float) -> None:
        """Switch the wheel on: send the order each second until it answers OK; done when its state is in PLAYING."""
        if self._spin is not None and self._spin.state in PLAYING:
            self._recovery = None
        elif now - recovery.since >= RECOVERY_LIMIT:
            self._recovery = None
            said = "but it does not play" if recovery.answered else "and it does not answer"
            await self._tell_now(link, emit, self._faults.strike("wheel.dropped", f"switched on again, {said}"))
        elif not recovery.answered and now >= recovery.due and now - recovery.since < RECOVERY_ASKS:
            recovery.due += RECOVERY_EVERY
            await link.write(SWITCH_ON)

    async def _tested(self, link: Link, emit: Emit, test: RunningTest) -> None:
        """The self-test is over: faults that it found before and not now have ended."""
        self._test = None
        if test.codes:
            found = {self_test_fault(code) for code in test.codes}
            await self._tell_now(link, emit, self._faults.end(*(code for code in TESTED if code not in found)))
        if test.over.done():
            return
        if test.codes:
            test.over.set_result(None)
        else:
            test.over.set_exception(CommandFailed(f"the self-test had no result within {SELF_TEST_LIMIT:g} s"))

    # ---- commands

    async def obey(self, command: Command) -> dict[str, Any]:
        """One command at a time; an order is done when the wheel's lines show it."""
        if self._listens:
            raise CommandRefused(f"port {self._options.port} serves displays only: commands go to the wheel's port 1")
        if self._obeying:
            raise CommandRefused("another command is under way")
        requests = self._requests
        if requests is None or self._joining or self._spin is None or self._spin.state is None:
            raise CommandRefused("the wheel has not reported its state yet")
        self._obeying = True
        try:
            match command:
                case Power(on=on):
                    return await self._power(requests, on)
                case StartSpin():
                    return await self._start(requests, command)
                case RestartSpin():
                    self._only_in(State.BALL_IN_RIM, State.NO_MORE_BETS)
                    if self._void or self._spin.void:
                        raise CommandRefused("this spin is void already: the wheel spins again by itself")
                    await requests.ask("R", answer="OK", tries=1)
                    await self._shown({State.PLACE_BETS}, "took the restart, but does not open the bets")
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
            raise CommandRefused("the wheel is just changing its state: send the command again")
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
            raise CommandFailed("the link to the wheel was lost before the command ended")
        shown: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watched = states, shown
        try:
            async with asyncio.timeout(CHANGES):
                await shown
        except TimeoutError:
            raise CommandFailed(f"the wheel {otherwise} within {CHANGES:g} s") from None
        finally:
            self._watched = None

    async def _power(self, requests: Requests, on: bool) -> dict[str, Any]:
        if on:
            if self._before is not None and Flag.SENSOR_OR_MOTOR in self._before.flags:
                raise CommandRefused("a sensor, motor or encoder fault is open: find it with the self-test first")
            await requests.ask("P", "1", "OK", tries=1)
            await self._shown(set(State) - {State.TABLE_CLOSED}, "answered OK, but does not leave state 6")
            return {}
        self._no_spin()
        self._only_in(State.STARTED, State.WINNING_NUMBER, State.TABLE_CLOSED, State.NO_BALL)
        self._recovery = None
        await requests.ask("P", "0", "OK", tries=1)
        self._switched_off = asyncio.get_running_loop().time()
        await self._shown({State.TABLE_CLOSED}, "answered OK, but does not close the table")
        return {}

    async def _start(self, requests: Requests, command: StartSpin) -> dict[str, Any]:
        """The rotor's direction: as requested, as in the last game, or reversed by the mode."""
        self._only_in(*STARTABLE)
        mode = Mode(int(await requests.ask("o", answer="[0-9]{1,5}")))
        if Mode.WAIT_FOR_START not in mode:
            raise CommandRefused(
                f"the wheel runs by itself: bit 2 (wait for start) is not set in its mode {mode.value}"
            )
        state = self._only_in(*STARTABLE)
        assert self._before is not None
        if state is State.PLACE_BETS and self._ordered == self._before.spin:
            raise CommandRefused(f"spin {self._ordered} was started already")
        rotor = command.rotor
        if rotor is None:
            clockwise = self._before.clockwise != (Mode.REVERSE_EACH_GAME in mode)
            rotor = "clockwise" if clockwise else "anticlockwise"
        await requests.ask("u", "1" if rotor == "clockwise" else "3", "OK", tries=1)
        self._ordered = self._before.spin
        await self._shown({State.PLACE_BETS, State.BALL_IN_RIM}, "answered OK, but does not begin the game")
        return {"rotor": rotor}

    async def _self_test(self, requests: Requests) -> dict[str, Any]:
        self._only_in(State.TABLE_CLOSED)
        self._no_spin()
        self._recovery = None
        self._test = test = RunningTest(asyncio.get_running_loop().time() + SELF_TEST_LIMIT)
        await requests.write(encode(Packet("F", "")))
        await test.over
        return {
            "codes": sorted(test.codes),
            "found": [SELF_TEST.get(code, "an unknown code") for code in sorted(test.codes) if code],
        }

    async def _ask(self, requests: Requests, what: str) -> dict[str, Any]:
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
                raise CommandRefused(f"the wheel cannot be asked for {what!r}; it answers {', '.join(ASKS)}")

    async def _parameter(self, requests: Requests, name: str) -> str:
        letter = PARAMETERS[name]
        return (await requests.ask("T", letter, f"{letter.lower()} .+")).partition(" ")[2].strip()

    async def _set(self, requests: Requests, command: SetParameter) -> dict[str, Any]:
        """Set, read back, and store if requested."""
        name, value = command.name, command.value
        if name not in SETTABLE:
            raise CommandRefused(f"the wheel has no parameter {name!r}; it has {', '.join(SETTABLE)}")
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
