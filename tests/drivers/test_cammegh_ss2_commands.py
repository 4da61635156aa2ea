"""The SS2 wheel told what to do, and with everything that goes wrong: driver, simulator, line and ruleset together.

Each fault of the wheel and of its line: what must be told is told, its round becomes what was said, no landing is
another than the true one, and all is over at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from helpers import MemoryLink, Notebook, play, results, virtual_time

from drivers.cammegh_ss2 import CammeghSS2, Requests
from drivers.cammegh_ss2_spins import Memory, WheelOptions
from drivers.driver import CommandFailed, CommandRefused, LinkLost, Obeys
from drivers.faults import Standing
from protocols.cammegh_ss2 import POLL, Decoder, Packet, State, encode
from protocols.contract.commands import Agitate, Ask, Command, Power, RestartSpin, SelfTest, SetParameter, StartSpin
from protocols.contract.events import (
    BallLanded,
    BonusDrawn,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    Event,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WheelStopped,
    type_of,
)
from rules.engine.ruleset import Corrected
from rules.macau.roulette import Roulette, RouletteOptions
from simulators.devices.cammegh_ss2 import (
    ARCADE,
    AUTOMATIC_STATUS,
    BONUS,
    HOST_DRIVEN,
    ONE_DIRECTION,
    SELF_TEST_IN_PLAY,
    Wheel,
)
from simulators.devices.line import Line

RECONNECTS_AFTER = 1.0


class Bench:
    """A wheel, a line and a driver whose link is made anew when it is lost."""

    def __init__(self, seed: int, options: WheelOptions, wheel: Wheel, memory: bytes | None) -> None:
        self.wheel = wheel
        self.line = Line(Random(seed))
        self.notebook = Notebook()
        self.notebook.memory = memory
        self.options = options
        self.driver = CammeghSS2(options, memory)
        self.link: MemoryLink | None = None
        self.sent = bytearray()
        self.lost: list[str] = []
        self.change: Callable[[bytes], bytes] = lambda data: data

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def events(self) -> list[Event]:
        return self.notebook.events

    @property
    def landed(self) -> list[str]:
        return [event.pocket for event in self.events if isinstance(event, BallLanded)]

    @property
    def faults(self) -> list[DeviceFaulted | DeviceRecovered]:
        return [event for event in self.events if isinstance(event, DeviceFaulted | DeviceRecovered)]

    @property
    def open(self) -> set[str]:
        """The faults that were told and are not over."""
        codes: set[str] = set()
        for event in self.faults:
            codes.add(event.code) if isinstance(event, DeviceFaulted) else codes.discard(event.code)
        return codes

    @property
    def told(self) -> set[str]:
        codes = {event.code for event in self.faults if isinstance(event, DeviceFaulted)}
        return codes | {type_of(event) for event in self.events} | ({"device.offline"} if self.lost else set())

    def orders(self, letter: str) -> list[str]:
        """The texts of the packets with this letter that the host sent."""
        return [
            one.text for one in Decoder().feed(bytes(self.sent)) if isinstance(one, Packet) and one.letter == letter
        ]

    def _to_host(self, data: bytes) -> None:
        out = self.line.to_host(self.change(data) if data else b"", self.now)
        if out and self.link is not None:
            self.link.feed(out)

    def _to_wheel(self, data: bytes) -> None:
        self.sent += data
        if heard := self.line.to_device(data, self.now):
            self._to_host(self.wheel.hear(heard, self.now))

    async def live(self) -> None:
        while True:
            self._to_host(self.wheel.wake(self.now))
            if self.line.plug_at < float("inf"):
                if self.link is not None:
                    self.link.hang_up()
                    self.link = None
                if self.now >= self.line.plug_at:
                    self.line.plug_at = float("inf")
            await asyncio.sleep(min(max(self.wheel.due() - self.now, 0.01), 0.1))

    async def connect(self) -> None:
        while True:
            if self.line.plug_at == float("inf"):
                self.link = MemoryLink()
                self.link.on_write = self._to_wheel
                self.driver = CammeghSS2(self.options, self.notebook.memory)
                try:
                    await self.driver.run(self.link, self.notebook)
                except LinkLost as lost:
                    self.lost.append(str(lost))
            await asyncio.sleep(RECONNECTS_AFTER)

    async def until(self, so: Callable[[], bool], limit: float = 120.0) -> None:
        """Let time pass until it is so."""
        end = self.now + limit
        while not so():
            assert self.now < end, f"not within {limit} s; {self.wheel.state!r}; {self.events[-6:]}"
            await asyncio.sleep(0.05)

    async def until_state(self, state: State) -> None:
        """The wheel is in `state`, and the driver has believed it."""
        await self.until(lambda: self.wheel.state is state)
        await asyncio.sleep(1.1 if state is not State.WINNING_NUMBER else 0.02)

    async def refuses(self, command: Command, words: str) -> None:
        before = len(self.sent), len(self.wheel.truth), self.wheel.state
        with pytest.raises(CommandRefused, match=words):
            await self.driver.obey(command)
        assert (len(self.wheel.truth), self.wheel.state) == before[1:]


@asynccontextmanager
async def bench(
    seed: int = 1, options: WheelOptions | None = None, *, memory: bytes | None = None, **wheel: Any
) -> AsyncIterator[Bench]:
    one = Bench(seed, options or WheelOptions(), Wheel(Random(seed), **wheel), memory)
    tasks = [asyncio.create_task(one.live()), asyncio.create_task(one.connect())]
    try:
        yield one
        assert not [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def no_wrong_landing(one: Bench) -> None:
    """What was told to have landed did, in that order."""
    pockets = iter(spin.pocket for spin in one.wheel.truth)
    assert all(pocket in pockets for pocket in one.landed)


# ---- every fault, of the wheel and of its line


@pytest.mark.parametrize("fault", [*Wheel.faults, *Wheel.line])
def test_every_fault_of_a_wheel_that_is_asked(fault: str) -> None:
    """`test_every_fault.py` has a wheel that speaks by itself."""
    in_line = fault in Wheel.line
    ailment = Wheel.line[fault] if in_line else Wheel.faults[fault]
    ruleset = Roulette(RouletteOptions(betting="no_more_bets"))

    @virtual_time
    async def body() -> None:
        async with bench(2, spin=10, mode=ARCADE - AUTOMATIC_STATUS) as one:
            await one.until(lambda: any(isinstance(event, SpinStarted) for event in one.events))
            (one.line if in_line else one.wheel).inject(fault, one.now)
            ended = len(one.wheel.truth)
            if ailment.person:
                await asyncio.sleep(60)
                assert set(ailment.told) <= one.told
                one.wheel.repair(one.now)
            await one.until(lambda: len([spin for spin in one.wheel.truth[ended:] if spin.pocket]) >= 3, 300)
            await asyncio.sleep(3)
            assert set(ailment.told) <= one.told
            assert ailment.told or not one.faults
            assert one.open == set()
            assert ("device.offline" in ailment.told) is bool(one.lost)
            no_wrong_landing(one)
            assert one.landed[-2:] == [spin.pocket for spin in one.wheel.truth if spin.pocket][-2:]
            first = results(play(ruleset, one.events))[0]
            assert (first.void is None) is (ailment.round == "counts")
            if ailment.round == "counts":
                assert first.outcome["pocket"] == next(spin.pocket for spin in one.wheel.truth if spin.pocket)

    body()


def test_the_simulated_faults_are_those_of_the_lists() -> None:
    codes = {fault.code for fault in CammeghSS2.faults}
    for ailment in [*Wheel.faults.values(), *Wheel.line.values()]:
        assert {told for told in ailment.told if told.startswith("wheel.")} <= codes
    assert set(Wheel.line) == set(Line.FAULTS)
    assert len(codes) == len(CammeghSS2.faults)
    assert all(fault.text and fault.remedy and fault.round for fault in CammeghSS2.faults)
    assert isinstance(CammeghSS2(WheelOptions()), Obeys)


@virtual_time
async def test_a_second_void_spin_in_a_row_is_an_error_and_a_landing_begins_anew() -> None:
    async with bench(3, spin=10) as one:
        one.wheel.inject("foreign_object", one.now)
        await one.until(lambda: len(one.wheel.truth) >= 2)
        await asyncio.sleep(2)
        one.wheel.repair(one.now)
        await one.until(lambda: len(one.landed) >= 1)
        one.wheel.inject("ball_with_rotor", one.now)
        await one.until(lambda: len(one.landed) >= 2)
        severities = [event.severity for event in one.faults if isinstance(event, DeviceFaulted)]
        assert severities == ["warning", "error", "warning"]
        assert one.open == set()


def test_a_wheel_wants_to_be_woken_later_than_now_whatever_is_wrong() -> None:
    wheel = Wheel(Random(1))
    for fault in Wheel.faults:
        wheel.inject(fault, 0.0)
    now = 0.0
    for _ in range(4000):
        wheel.wake(now)
        assert wheel.due() > now
        now = wheel.due() if wheel.due() < float("inf") else now + 1.0
        wheel.hear(POLL, now)
        if wheel.state in (State.TABLE_CLOSED, State.NO_BALL) and now % 7 < 1:
            wheel.repair(now)


# ---- heard line by line


def line(state: int, spin: int = 11, number: str = "34", flags: int = 0, turn: int = 0) -> bytes:
    return f"*X;{state};{spin:03d};{number:>2};{flags:X};157;{turn}\r\n".encode()


def hear(
    lines: list[bytes],
    options: WheelOptions | None = None,
    memory: bytes | None = None,
    step: float = 0.5,
    later: float = 0.0,
    clock: float = 0.0,
) -> tuple[list[Event], MemoryLink, Notebook]:
    """What a driver tells of lines half a second apart, `later` than its memory, the clock set meanwhile."""
    notebook = Notebook()
    notebook.memory = memory
    link = MemoryLink()
    link.set = clock

    @virtual_time
    async def body() -> None:
        await asyncio.sleep(later)

        async def feed() -> None:
            for one in lines:
                link.feed(one)
                await asyncio.sleep(step)
            link.hang_up()

        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            with pytest.raises(LinkLost):
                await CammeghSS2(options or WheelOptions(), notebook.memory).run(link, notebook)

    body()
    return notebook.events, link, notebook


def shown(events: list[Event]) -> list[str]:
    """Faults as +code and -code, other events by their type."""
    signs = {DeviceFaulted: "+", DeviceRecovered: "-"}
    return [signs[type(one)] + one.code if isinstance(one, DeviceFaulted | DeviceRecovered) else "" for one in events]


def faults_of(events: list[Event]) -> list[str]:
    return [one for one in shown(events) if one]


BETS, RIM, LATE = [line(2)] * 2, [line(3)] * 2, [line(4)] * 2
LONG = [line(2)] * 80  # forty seconds: the table is not just opened


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([*LONG, *[line(6)] * 2], ["+wheel.dropped"]),
        ([*LONG, *RIM, *[line(6)] * 2], ["+wheel.dropped"]),
        ([*LONG, *RIM, *LATE, *[line(6)] * 2], ["+wheel.dropped"]),
        ([*LONG, line(6), *[line(2)] * 2], []),  # one line proves nothing
        ([*BETS, *[line(6)] * 2], []),  # just opened
        ([*BETS, *[line(6, flags=1)] * 2], ["+wheel.dropped"]),  # just opened, and a flag says why
        ([*[line(1)] * 90, *[line(6)] * 2], []),  # no spin
        ([*LONG, *RIM, *LATE, b"34\r\n", *[line(5)] * 2, *[line(6)] * 2], []),  # after the number
        ([*LONG, *[line(6, flags=4)] * 2], ["+wheel.sensor_or_motor"]),  # explained by its flag
        ([*LONG, b"*P OK\r\n", *BETS, *[line(6)] * 2], []),  # somebody else switched it off
        ([b"*P OK\r\n", *LONG, *[line(6)] * 2], ["+wheel.dropped"]),  # long ago
        # one incident while it flaps, told as over when it has played for a while
        (
            [*LONG, *[*[line(6)] * 3, *[line(2)] * 3] * 3, *[line(2)] * 20],
            ["+wheel.dropped", "-wheel.dropped"],
        ),
        # again in the same spin, after more than ten seconds
        (
            [*LONG, *[line(6)] * 2, *[line(2)] * 30, *[line(6)] * 2],
            ["+wheel.dropped", "-wheel.dropped", "+wheel.dropped"],
        ),
    ],
)
def test_when_a_closed_table_is_a_fault(lines: list[bytes], faults: list[str]) -> None:
    events, link, _ = hear(lines)
    assert faults_of(events) == faults
    assert b"*P" not in link.sent  # nothing is switched on unless the house wants it
    severities = [one.severity for one in events if isinstance(one, DeviceFaulted) and one.code == "wheel.dropped"]
    assert severities == ["warning", "error"][: len(severities)]


@pytest.mark.parametrize("clock", [-3600.0, 3600.0])
@pytest.mark.parametrize(("bets", "faults"), [(LONG, ["+wheel.dropped"]), (BETS, [])])
def test_the_clock_may_be_set_after_the_table_was_opened(bets: list[bytes], faults: list[str], clock: float) -> None:
    first = hear(bets)[2]
    lines = [*BETS, *[line(6)] * 2]
    events, _, _ = hear(lines, memory=first.memory, later=len(bets) * 0.5, clock=clock)
    assert faults_of(events) == faults


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([*BETS, *RIM, *[line(4)] * 170], []),
        ([*BETS, *RIM, *[line(4)] * 190, *[line(6)] * 2], ["+wheel.no_number", "-wheel.no_number", "+wheel.dropped"]),
        ([line(2, flags=8)] * 6, []),
        ([*[line(2, flags=8)] * 130, *[line(2)] * 2], ["+wheel.launch_failed"]),
        ([*[line(2, flags=8)] * 130, *[line(2)] * 40], ["+wheel.launch_failed", "-wheel.launch_failed"]),
        ([*[line(2, flags=8)] * 130, *RIM, *RIM], ["+wheel.launch_failed", "-wheel.launch_failed"]),
    ],
)
def test_what_takes_too_long(lines: list[bytes], faults: list[str]) -> None:
    assert faults_of(hear(lines)[0]) == faults


A_LANDING = [*BETS, *RIM, *LATE, b"27\r\n", *[line(5, number="27")] * 2]


def test_witnesses_that_disagree_are_told_and_the_last_pocket_needs_two_more() -> None:
    bounced = [*BETS, *RIM, *LATE, b"27\r\n", *[line(5, number="13")] * 3]
    events, _, notebook = hear(bounced)
    assert faults_of(events) == ["+wheel.number_unsteady", "-wheel.number_unsteady"]
    assert [one.pocket for one in events if isinstance(one, BallLanded)] == ["13"]
    again = [one.replace(b"011", b"012") for one in bounced]
    events, _, _ = hear(again, memory=notebook.memory)
    (second,) = [one for one in events if isinstance(one, DeviceFaulted)]
    assert second.severity == "error"


def test_a_number_that_changes_after_it_was_told_takes_the_spin_back() -> None:
    events, _, _ = hear([*A_LANDING, line(5, number="13")])
    assert faults_of(events) == []
    assert faults_of(hear([*A_LANDING, *[line(2, 12, "27")] * 4])[0]) == []
    late = hear([*A_LANDING, *[line(1, 12, "13")] * 2, *[line(2, 12, "13")] * 2])[0]
    assert [type_of(one) for one in late if type_of(one).startswith("spin.")] == [
        *("spin.started", "spin.voided", "spin.started"),
    ]
    unseen = hear([*A_LANDING, *[line(5, 12, "13")] * 3, *[line(2, 13, "13")] * 3])[0]  # another spin's number
    assert not [one for one in unseen if isinstance(one, SpinVoided)]
    events, _, _ = hear([*A_LANDING, *[line(5, number="13")] * 4, *[line(2, 12, "13")] * 2])
    assert faults_of(events) == ["+wheel.number_unsteady"]
    assert [one.pocket for one in events if isinstance(one, BallLanded)] == ["27"]
    assert [one.reason for one in events if isinstance(one, SpinVoided)] == ["number_unsteady"]
    verdicts = play(Roulette(RouletteOptions(betting="no_more_bets")), events)
    (told,) = results(verdicts)
    (taken_back,) = [one.result for one in verdicts if isinstance(one, Corrected)]
    assert (told.void, taken_back.supersedes) == (None, told.round)
    assert taken_back.void is not None


def spins(*turns: int, void: int = -1) -> list[bytes]:
    """Spins that land in 27, with the rotor's way of each; the one numbered `void` is first void, then spun again."""
    lines: list[bytes] = []
    for n, turn in enumerate(turns):
        spin, before = 11 + n, "27" if n else "34"
        lines += [line(2, spin, before, turn=turn)] * 2 + [line(3, spin, before, turn=turn)] * 3
        if n == void:
            lines += [line(3, spin, before, 2, turn)] * 2 + [line(2, spin, before, turn=turn)] * 2
            lines += [line(3, spin, before, turn=turn)] * 3
        lines += [line(4, spin, before, turn=turn)] * 2 + [b"27\r\n", *[line(5, spin, "27", turn=turn)] * 2]
    return lines


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        (spins(0, 1, 0, 1), []),
        (spins(0, 1, 1, 0), ["+wheel.rotor_not_reversed", "-wheel.rotor_not_reversed"]),
        (spins(0, 0, 0, 0), ["+wheel.rotor_not_reversed"]),  # told once
        (spins(0, 0, 1, void=1), []),  # whether a void spin turns back is nobody's promise
    ],
)
def test_the_rotor_turns_back_where_it_should(lines: list[bytes], faults: list[str]) -> None:
    events = hear(lines, WheelOptions(alternating=True))[0]
    assert [one for one in faults_of(events) if "rotor_not" in one] == faults
    assert [one for one in faults_of(hear(lines)[0]) if "rotor_not" in one] == []


def test_a_rotor_that_did_not_turn_back_is_seen_across_a_restart() -> None:
    first = hear(spins(0), WheelOptions(alternating=True))[2]
    second = [one.replace(b"011", b"012") for one in spins(0)]
    assert faults_of(hear(second, WheelOptions(alternating=True), first.memory)[0]) == ["+wheel.rotor_not_reversed"]


@virtual_time
async def test_a_simulated_rotor_that_does_not_turn_back() -> None:
    async with bench(4, WheelOptions(alternating=True), spin=10) as one:
        await one.until(lambda: len(one.landed) >= 2)
        assert one.faults == []
        one.wheel.inject("wrong_direction", one.now)
        await one.until(lambda: len(one.landed) >= 5, 300)
        assert faults_of(one.events) == ["+wheel.rotor_not_reversed", "-wheel.rotor_not_reversed"]


# ---- memories


def test_a_memory_of_an_older_version_keeps_its_faults() -> None:
    old = b'{"spin":{"spin":11,"state":6,"at":"2026-11-20T20:00:00Z","ended":true},"faults":["wheel.sensor_or_motor"]}'
    assert faults_of(hear([line(6, flags=4)] * 4, memory=old)[0]) == []
    events, _, notebook = hear([line(6)] * 4, memory=old)
    assert faults_of(events) == ["-wheel.sensor_or_motor"]
    assert isinstance(msgspec.json.decode(notebook.memory or b"", type=Memory).faults, Standing)


@pytest.mark.parametrize(
    ("begin", "same", "over", "code"),
    [
        ([*LONG, *[line(6)] * 2], [line(6)] * 4, [line(2)] * 4, "wheel.dropped"),
        ([line(7)] * 3, [line(7)] * 4, [line(2)] * 4, "wheel.no_ball"),
        ([*BETS, b"*F 11\r\n"], [*RIM, *LATE], A_LANDING, "wheel.self_test_11"),
        ([*BETS, b"*Y;1;020;999\r\n"], BETS, [*BETS, b"*Y;1;020;030\r\n"], "wheel.bonus_licence"),
    ],
)
def test_a_fault_outlives_a_restart_until_it_is_seen_to_be_over(
    begin: list[bytes], same: list[bytes], over: list[bytes], code: str
) -> None:
    events, _, first = hear(begin)
    assert faults_of(events) == [f"+{code}"]
    events, _, second = hear(same, memory=first.memory)
    assert faults_of(events) == []
    assert faults_of(hear(over, memory=second.memory or first.memory)[0]) == [f"-{code}"]


# ---- bonus numbers


def test_a_bonus_is_told_once_in_a_spin() -> None:
    bonus = b"*Y;3;250\r\n"
    events, _, notebook = hear([*BETS, *RIM, *LATE, bonus, bonus, line(4)])
    assert [one for one in events if isinstance(one, BonusDrawn)] == [BonusDrawn(3, 250)]
    (told,) = [one for one in notebook.sightings if isinstance(one.event, BonusDrawn)]
    assert told.wire == b"*Y;3;250"
    both = [*A_LANDING, bonus, *[line(2, 12, "27")] * 2, bonus]
    assert len([one for one in hear(both)[0] if isinstance(one, BonusDrawn)]) == 2


@pytest.mark.parametrize("text", [b"*Y;7;250", b"*Y;0;250", b"*Y;3;25", b"*Y;3;2500", b"*Y;3;25x", b"*Y", b"*Y;3;250;"])
def test_what_is_no_bonus_is_none(text: bytes) -> None:
    assert not [one for one in hear([*BETS, text + b"\r\n", *RIM])[0] if isinstance(one, BonusDrawn)]


def test_without_a_licence_a_bonus_is_a_fault_and_no_bonus() -> None:
    events = hear([*BETS, b"*Y;3;250;999\r\n", *RIM, b"*Y;3;250;365\r\n", line(3)])[0]
    assert faults_of(events) == ["+wheel.bonus_licence", "-wheel.bonus_licence"]
    assert [one for one in events if isinstance(one, BonusDrawn)] == [BonusDrawn(3, 250)]


@virtual_time
async def test_a_simulated_wheel_with_bonus_numbers() -> None:
    async with bench(5, mode=ARCADE + BONUS) as one:
        await one.until(lambda: len(one.landed) >= 3, 300)
        assert len([event for event in one.events if isinstance(event, BonusDrawn)]) == 3
        assert one.faults == []


# ---- codes of the self-test


@virtual_time
async def test_the_self_test_finds_what_is_wrong_and_later_that_it_is_not() -> None:
    async with bench(6, spin=10) as one:
        await one.until_state(State.PLACE_BETS)
        one.wheel.inject("sensor", one.now)
        one.wheel.inject("encoder", one.now)
        await one.until_state(State.TABLE_CLOSED)
        assert await one.driver.obey(SelfTest()) == {
            "codes": [6, 11],
            "found": ["encoder fault", "sensor 1 stuck on"],
        }
        assert one.open == {"wheel.sensor_or_motor", "wheel.self_test_6", "wheel.self_test_11"}
        assert one.lost == []  # it was silent for longer than its heartbeat
        await one.refuses(Power(on=True), "sensor, motor or encoder fault is open")
        one.wheel._open = False
        one.wheel.repair(one.now)
        await asyncio.sleep(2)
        assert await one.driver.obey(SelfTest()) == {"codes": [0], "found": []}
        assert one.open == set()


def test_codes_in_play_are_told_once_and_over_when_a_spin_lands() -> None:
    lines = [*BETS, b"*F 21\r\n", *RIM, b"*F 21 23\r\n", *A_LANDING[4:]]
    assert faults_of(hear(lines)[0]) == [
        *("+wheel.self_test_21", "+wheel.self_test_23"),
        *("-wheel.self_test_21", "-wheel.self_test_23"),
    ]
    assert faults_of(hear([*BETS, b"*F 77\r\n"])[0]) == ["+wheel.self_test_other"]
    assert faults_of(hear([*BETS, b"*F 0\r\n", b"*F\r\n", b"*F x\r\n", b"*F BUSY\r\n", line(2)])[0]) == []


def test_a_landing_proves_only_the_way_it_turned() -> None:
    lines = [*BETS, b"*F 7\r\n", b"*F 8\r\n", *A_LANDING]
    assert faults_of(hear(lines)[0])[2:] == ["-wheel.self_test_7"]


@virtual_time
async def test_a_wheel_that_says_its_codes_in_play() -> None:
    async with bench(7, spin=10, mode=ARCADE + SELF_TEST_IN_PLAY) as one:
        await one.until_state(State.BALL_IN_RIM)
        one.wheel.inject("motor", one.now)
        await asyncio.sleep(3)
        assert one.open == {"wheel.self_test_5", "wheel.sensor_or_motor"}
        one.wheel.repair(one.now)
        await one.until(lambda: bool(one.landed))
        assert one.open == set()


@virtual_time
async def test_a_self_test_without_a_result_has_an_end() -> None:
    async with bench(8, closed=True) as one:
        await asyncio.sleep(2)
        one.change = lambda data: b"".join(part for part in data.splitlines(keepends=True) if part[:2] != b"*F")
        began = one.now
        with pytest.raises(CommandFailed, match="no result within 300 s"):
            await one.driver.obey(SelfTest())
        assert one.now - began == pytest.approx(300, abs=2)


# ---- switching on again

RECOVERS = WheelOptions(recover=True)


@virtual_time
async def test_a_wheel_that_dropped_is_switched_on_where_the_house_wants_it() -> None:
    async with bench(9, RECOVERS, spin=10) as one:
        one.wheel.inject("drops_to_closed", one.now)
        await one.until(lambda: one.told >= {"wheel.dropped"})
        await one.until(lambda: one.open == set(), 25)
        assert one.orders("P") == ["1"]
        await one.until(lambda: bool(one.landed))
        assert [event.severity for event in one.faults if isinstance(event, DeviceFaulted)] == ["warning"]


@virtual_time
async def test_a_wheel_that_cannot_be_switched_on_needs_a_person() -> None:
    async with bench(9, RECOVERS, spin=10) as one:
        one.wheel.inject("drops_to_closed", one.now)
        one.wheel.open_table = lambda _: None  # type: ignore[assignment, method-assign]
        one.change = lambda data: data.replace(b"*P OK\r\n", b"*P NO\r\n")
        await one.until(lambda: one.told >= {"wheel.dropped"})
        began = one.now
        await one.until(lambda: len(one.faults) == 2, 30)
        assert one.now - began == pytest.approx(20, abs=1)
        assert one.orders("P") == ["1"] * 10
        last = one.faults[-1]
        assert isinstance(last, DeviceFaulted)
        assert (last.code, last.severity) == ("wheel.dropped", "error")
        assert "does not answer" in last.text
        await asyncio.sleep(60)
        assert (len(one.orders("P")), one.open) == (10, {"wheel.dropped"})
        del one.wheel.open_table
        one.wheel.repair(one.now)
        await one.until(lambda: one.open == set())


@virtual_time
async def test_what_the_house_switched_off_is_never_switched_on() -> None:
    async with bench(10, RECOVERS) as one:
        await one.until_state(State.STARTED)
        await one.driver.obey(Power(on=False))
        await asyncio.sleep(60)
        assert one.orders("P") == ["0"]
        assert one.faults == []


def test_what_somebody_else_switched_off_is_never_switched_on() -> None:
    events, link, _ = hear([*LONG, b"*P OK\r\n", *BETS, *[line(6)] * 60], RECOVERS)
    assert (faults_of(events), b"*P" in link.sent) == ([], False)


# ---- power


@virtual_time
async def test_power_off_and_on_between_two_spins() -> None:
    async with bench(11) as one:
        await one.until_state(State.STARTED)
        assert await one.driver.obey(Power(on=False)) == {}
        assert one.wheel.state.value == 6
        assert isinstance(one.events[-1], WheelStopped)
        assert await one.driver.obey(Power(on=True)) == {}
        assert one.wheel.state.value == 1
        await one.until(lambda: bool(one.landed))


@pytest.mark.parametrize("state", [State.PLACE_BETS, State.BALL_IN_RIM, State.NO_MORE_BETS])
def test_nothing_is_changed_under_a_running_spin(state: State) -> None:
    @virtual_time
    async def body() -> None:
        async with bench(12) as one:
            await one.until_state(state)
            await one.refuses(Power(on=False), "spin 1 is under way")
            await one.refuses(SetParameter("mode", "1157"), "spin 1 is under way")
            await one.refuses(SelfTest(), "only in state 6")
            await one.refuses(StartSpin(), "runs by itself" if state is State.PLACE_BETS else "only in state 1 or 2")
            await one.refuses(Ask("winning_numbers"), "only in state 5 or 6")
            assert [one.orders(letter) for letter in "PFuW"] == [[]] * 4
            await one.until(lambda: bool(one.landed))

    body()


def answers(mapping: dict[bytes, bytes]) -> Callable[[bytes], bytes]:
    """The wheel's lines, some of them replaced; b"" takes one away."""

    def change(data: bytes) -> bytes:
        return b"".join(mapping.get(part.strip(), part) for part in data.splitlines(keepends=True))

    return change


@virtual_time
async def test_a_wheel_that_says_no_or_nothing_or_does_not_do_it() -> None:
    async with bench(13, closed=True) as one:
        await asyncio.sleep(2)
        one.wheel.open_table = lambda _: None  # type: ignore[assignment, method-assign]
        one.change = answers({b"*P OK": b"*P NO\r\n"})
        await one.refuses(Power(on=True), r"the wheel answers NO to \*P 1")
        one.change = answers({b"*P OK": b"*P BUSY\r\n"})
        await one.refuses(Power(on=True), r"the wheel is busy to \*P 1")
        one.change = answers({b"*P OK": b""})
        with pytest.raises(CommandFailed, match=r"did not answer \*P 1 within 2 s"):
            await one.driver.obey(Power(on=True))
        one.change = answers({})
        with pytest.raises(CommandFailed, match="answered OK, but does not leave state 6 within 15 s"):
            await one.driver.obey(Power(on=True))
        assert one.orders("P") == ["1"] * 4  # an order is never repeated by itself


# ---- the beginning of a game


@pytest.mark.parametrize(
    ("mode", "rotors"),
    [
        (HOST_DRIVEN, ["clockwise", "anticlockwise", "clockwise"]),
        (ONE_DIRECTION, ["clockwise", "clockwise", "clockwise"]),
    ],
)
def test_a_host_driven_wheel_waits_for_its_command(mode: int, rotors: list[str]) -> None:
    @virtual_time
    async def body() -> None:
        async with bench(14, mode=mode) as one:
            one.wheel._clockwise = mode == ONE_DIRECTION
            await asyncio.sleep(60)
            assert one.orders("u") == []  # the driver never begins by itself
            assert one.wheel.state is State.PLACE_BETS
            for n, rotor in enumerate(rotors, 1):
                assert await one.driver.obey(StartSpin()) == {"rotor": rotor}
                await one.refuses(StartSpin(), f"spin {n} was started already")
                await one.until(lambda n=n: len(one.landed) == n)  # type: ignore[misc]
                await one.until_state(State.PLACE_BETS)
                await asyncio.sleep(2)
            assert await one.driver.obey(StartSpin("anticlockwise")) == {"rotor": "anticlockwise"}
            assert one.orders("u")[-1] == "3"
            no_wrong_landing(one)

    body()


@virtual_time
async def test_a_wheel_that_runs_by_itself_is_not_started() -> None:
    async with bench(15) as one:
        await one.until_state(State.STARTED)
        await one.refuses(StartSpin(), "is not set in its mode 1157")
        assert one.orders("u") == []


@virtual_time
async def test_a_running_spin_is_restarted_and_only_a_running_one() -> None:
    async with bench(16) as one:
        await one.until_state(State.STARTED)
        await one.refuses(RestartSpin(), r"only in state 3 or 4: the wheel is in 1 \(started\)")
        await one.until_state(State.NO_MORE_BETS)
        assert await one.driver.obey(RestartSpin()) == {}
        await one.until(lambda: bool(one.landed))
        kinds = [type_of(event) for event in one.events if "spin" in type_of(event) or "landed" in type_of(event)]
        assert kinds[:4] == ["spin.started", "spin.voided", "spin.started", "ball.landed"]
        assert [spin.reason for spin in one.wheel.truth] == ["restarted", ""]


@virtual_time
async def test_a_spin_whose_start_was_not_seen_is_restarted_too() -> None:
    async with bench(16) as one:
        await one.until_state(State.PLACE_BETS)
        one.line.plug_at = one.now + 25.0
        await one.until(lambda: len(one.lost) == 1)
        one.notebook.memory = None
        await one.until(lambda: one.events[-1:] == [SpinMissed(1)])
        assert await one.driver.obey(RestartSpin()) == {}
        await one.until(lambda: bool(one.landed))


# ---- questions and parameters


@virtual_time
async def test_what_the_wheel_sends_between_the_lines_of_an_answer_is_no_line_of_it() -> None:
    async def written(data: bytes) -> None:
        assert data.startswith(b"*W")

    requests = Requests(SimpleNamespace(write=written))
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(requests.ask_lines("W"))
        await asyncio.sleep(0)
        for letter, text in (("F", "0"), ("W", "0:12 1:9"), ("F", "0"), ("W", "2:3"), ("P", "OK")):
            requests.hear(Packet(letter, text))
    assert asked.result() == ["0:12 1:9", "2:3"]


@virtual_time
async def test_everything_that_can_be_asked() -> None:
    async with bench(17) as one:
        await one.until(lambda: len(one.landed) >= 2)
        await one.until_state(State.STARTED)
        await one.driver.obey(Power(on=False))
        obey = one.driver.obey
        assert await obey(Ask("firmware")) == {"firmware": "2.52"}
        assert await obey(Ask("description")) == {"description": "feltd simulated wheel"}
        assert await obey(Ask("manufacturer")) == {"manufacturer": "CAM"}
        assert await obey(Ask("mode")) == {"mode": 1157}
        assert await obey(Ask("overview")) == {
            "overview": {"state": 6, "protocol": 1, "games_per_hour": 60, "mode": 1157}
        }
        assert await obey(Ask("speed_range")) == {"speed_range": "14.0 17.50000"}
        for name in ("games_per_hour", "no_more_bets_time", "jet_time", "deceleration", "speed_variation"):
            assert set(await obey(Ask(name))) == {name}
        assert await obey(Ask("pockets")) == {"pockets": "37"}
        assert await obey(Ask("extra_modes")) == {"extra_modes": "0"}
        table = (await obey(Ask("winning_numbers")))["winning_numbers"]
        assert len(table) == 4
        counted = dict(cell.split(":") for row in table for cell in row.split())
        assert {pocket: int(count) for pocket, count in counted.items() if count != "0"} == {
            pocket: one.landed.count(pocket) for pocket in one.landed
        }
        assert len((await obey(Ask("misfires")))["misfires"]) == 4
        assert len((await obey(Ask("chi_squared")))["chi_squared"]) == 1
        await one.refuses(Ask("weather"), "cannot be asked for 'weather'; it answers mode, overview, firmware")
        await one.refuses(Agitate(), "no such command")


@virtual_time
async def test_a_question_whose_answer_is_damaged_is_asked_again() -> None:
    async with bench(18, closed=True) as one:
        await asyncio.sleep(2)
        one.change = answers({b"*o 1157": b"*o 11x7\r\n"})
        asking = asyncio.create_task(one.driver.obey(Ask("mode")))
        await asyncio.sleep(1)
        one.change = answers({})
        assert await asking == {"mode": 1157}
        assert one.orders("o") == ["", ""]


@virtual_time
async def test_a_parameter_is_set_read_back_and_stored() -> None:
    async with bench(19, closed=True) as one:
        await asyncio.sleep(2)
        obey = one.driver.obey
        assert await obey(SetParameter("games_per_hour", "75", store=True)) == {"games_per_hour": "75", "stored": True}
        assert one.orders("T") == ["h 75", "H", "f"]
        assert await obey(SetParameter("speed_range", "140 160")) == {"speed_range": "140 160", "stored": False}
        assert await obey(SetParameter("mode", "1159")) == {"mode": "1159", "stored": False}
        assert one.orders("o") == ["1159", ""]
        one.wheel.open_table(one.now)
        await one.until_state(State.STARTED)
        assert await obey(SetParameter("mode", "1157")) == {"mode": "1157", "stored": False}
        await one.until(lambda: bool(one.landed))
        assert one.lost == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("colour", "1", "no parameter 'colour'; it has mode, games_per_hour"),
        ("mode", "x", "'x' is no value"),
        ("mode", "1 2", "is no value"),
        ("mode", "-1", "is no value"),
        ("games_per_hour", "", "is no value"),
        ("games_per_hour", "60\r\n*P 0", "is no value"),
        ("games_per_hour", "123456", "is no value"),
    ],
)
def test_what_is_no_parameter_is_not_set(name: str, value: str, words: str) -> None:
    @virtual_time
    async def body() -> None:
        async with bench(20, closed=True) as one:
            await asyncio.sleep(2)
            await one.refuses(SetParameter(name, value), words)
            assert one.orders("T") + one.orders("o") == []

    body()


@virtual_time
async def test_a_parameter_that_reads_otherwise_or_is_not_stored_has_failed() -> None:
    async with bench(21, closed=True) as one:
        await asyncio.sleep(2)
        one.change = answers({b"*T h 75": b"*T h 60\r\n"})
        with pytest.raises(CommandFailed, match="games_per_hour was set to 75, but reads 60"):
            await one.driver.obey(SetParameter("games_per_hour", "75"))
        one.change = answers({b"*T f OK": b"*T BUSY\r\n"})
        with pytest.raises(CommandFailed, match="is 70, but is not stored: the wheel is busy"):
            await one.driver.obey(SetParameter("games_per_hour", "70", store=True))


# ---- one at a time, with an end


@virtual_time
async def test_one_command_at_a_time() -> None:
    async with bench(22, closed=True) as one:
        await asyncio.sleep(2)
        test = asyncio.create_task(one.driver.obey(SelfTest()))
        await asyncio.sleep(5)
        with pytest.raises(CommandRefused, match="another command is under way"):
            await one.driver.obey(Ask("mode"))
        assert await test == {"codes": [0], "found": []}
        assert await one.driver.obey(Ask("mode")) == {"mode": 1157}


@pytest.mark.parametrize("command", [SelfTest(), Power(on=True), Ask("misfires")])
def test_a_command_ends_with_its_session(command: Command) -> None:
    @virtual_time
    async def body() -> None:
        async with bench(23, closed=True) as one:
            await asyncio.sleep(2)
            one.change = answers({b"*P OK": b""})
            one.wheel._table = lambda _: b""  # type: ignore[assignment, method-assign]
            obeying = asyncio.create_task(one.driver.obey(command))
            await asyncio.sleep(0.2)
            one.line.inject("unplugged", one.now)
            with pytest.raises(CommandFailed, match="the link to the wheel was lost"):
                await obeying
            with pytest.raises(CommandRefused, match="has not reported its state yet"):
                await one.driver.obey(command)

    body()


@virtual_time
async def test_a_cancelled_self_test_still_tells_what_it_found() -> None:
    async with bench(24, closed=True) as one:
        await asyncio.sleep(2)
        one.wheel.inject("motor", one.now)
        obeying = asyncio.create_task(one.driver.obey(SelfTest()))
        await asyncio.sleep(1)
        obeying.cancel()
        await asyncio.wait([obeying])
        await asyncio.sleep(70)
        assert "wheel.self_test_5" in one.open
        assert one.lost == []


@virtual_time
async def test_before_the_wheel_spoke_nothing_is_commanded() -> None:
    with pytest.raises(CommandRefused, match="has not reported its state yet"):
        await CammeghSS2(WheelOptions()).obey(Power(on=True))


# ---- ports for displays


@pytest.mark.parametrize("port", [2, 3])
def test_at_a_display_port_the_driver_only_listens(port: int) -> None:
    @virtual_time
    async def body() -> None:
        options = msgspec.convert({"port": port}, WheelOptions)
        async with bench(25, options, spin=10, port=port) as one:
            one.wheel.inject("number_bounces", one.now)
            await one.until(lambda: len(one.landed) >= 3, 300)
            for command in (Power(on=False), StartSpin(), RestartSpin(), SelfTest(), Ask("mode")):
                await one.refuses(command, f"port {port} serves displays only")
            one.wheel.inject("restart_refused", one.now)
            await one.until(lambda: "spin.voided" in one.told)
            await asyncio.sleep(20)
            assert one.sent == b""
            assert one.lost == []
            assert one.events[0] == DeviceOnline(False, "Cammegh SS2")
            assert one.landed == [spin.pocket for spin in one.wheel.truth if spin.pocket]
            assert "wheel.restart_refused" not in one.told

    body()


def test_a_silent_display_port_is_a_lost_link() -> None:
    @virtual_time
    async def body() -> None:
        link = MemoryLink()
        began = asyncio.get_running_loop().time()
        with pytest.raises(LinkLost, match="no valid line for 3 s"):
            await CammeghSS2(WheelOptions(port=2)).run(link, Notebook())
        assert asyncio.get_running_loop().time() - began < 4.0
        assert link.sent == b""

    body()


def test_orders_are_exact_bytes() -> None:
    """The integrator information's own."""
    assert [encode(Packet(*one)) for one in (("P", "1"), ("u", "3"), ("F", ""), ("o", "1159"), ("T", "h 60"))] == [
        *(b"*P 1\r\n", b"*u 3\r\n", b"*F\r\n", b"*o 1159\r\n", b"*T h 60\r\n"),
    ]
