"""The SS2 wheel: exact lines, any chunking, any noise, captures whole and damaged, and the mirror over bad cables.

What is promised: a number is told once, only of a spin that was seen to begin and to be launched, and never one that
the wheel did not show as that spin's. What cannot be told is counted as missed or void.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, at_length, virtual_time
from hypothesis import given, settings, strategies as st

from drivers.cammegh_ss2 import CammeghSS2
from drivers.cammegh_ss2_spins import LONGEST_SPIN, Memory, Spin, WheelOptions
from drivers.driver import DeviceRefused, LinkLost, Sighting
from protocols.cammegh_ss2 import (
    POLL,
    RESTART,
    State,
)
from protocols.contract.events import (
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
    decode_data,
    encode_data,
    type_of,
)
from simulators.devices.cammegh_ss2 import ARCADE, AUTOMATIC_STATUS, NO_NUMBER_LINE, STARTED_AFTER_NUMBER, Wheel

HERE = Path(__file__).parents[1]
REAL = HERE.parent / ".." / "shared" / "captures" / "cammegh-ss2" / "six-spins.wire"
SIMULATED = HERE / "captures" / "ss2-simulated.wire"
needs_the_real_capture = pytest.mark.skipif(not REAL.exists(), reason="the real capture is not here")

ALL_POCKETS = [str(number) for number in range(37)] + ["00", "000", "0000"]


# ---- one wheel, heard line by line

Timed = list[tuple[float, bytes]]
HALF_SECOND = 0.5


def line(state: int, spin: int, number: str = "34", flags: int = 0, turn: int = 0) -> bytes:
    """One status line, written by hand."""
    return f"*X;{state};{spin:03d};{number:>2};{flags:X};157;{turn}\r\n".encode()


def every(lines: Iterable[bytes], begin: float = 0.0, step: float = HALF_SECOND) -> Timed:
    """A line every half second, as the wheel sends them."""
    return [(begin + n * step, one) for n, one in enumerate(lines)]


def spun(
    spin: int, before: str, number: str, *, opened: int = 4, bare_number: bool = True, turn: int = 0
) -> list[bytes]:
    """The lines of one spin from state 2 to state 5."""
    return [
        *[line(2, spin, before, turn=turn)] * opened,
        *[line(3, spin, before, turn=turn)] * 3,
        *[line(4, spin, before, turn=turn)] * 4,
        *[f"{number:>2}\r\n".encode()] * bare_number,
        *[line(5, spin, number, turn=turn)] * 2,
    ]


class Heard:
    """What came of listening."""

    def __init__(self) -> None:
        self.notebook = Notebook()
        self.link = MemoryLink()
        self.errors: list[str] = []

    @property
    def events(self) -> list[Event]:
        return self.notebook.events

    @property
    def spins(self) -> list[Event]:
        """Without the device's own comings and goings."""
        return [event for event in self.events if not isinstance(event, DeviceOnline)]

    @property
    def landed(self) -> list[str]:
        return [event.pocket for event in self.events if isinstance(event, BallLanded)]

    @property
    def ends(self) -> list[str]:
        """How each spin ended: its pocket, "void", or "missed" once for each."""
        told: list[str] = []
        for event in self.events:
            match event:
                case BallLanded(pocket=pocket):
                    told.append(pocket)
                case SpinVoided():
                    told.append("void")
                case SpinMissed(count=count):
                    told += ["missed"] * count
                case _:
                    pass
        return told

    @property
    def faults(self) -> list[str]:
        told = []
        for event in self.events:
            match event:
                case DeviceFaulted(code=code):
                    told.append(f"+{code}")
                case DeviceRecovered(code=code):
                    told.append(f"-{code}")
                case _:
                    pass
        return told

    def told_at(self, wanted: type[Event]) -> float:
        """The second of the first such event."""
        return next(one.chunk.tick for one in self.notebook.sightings if isinstance(one.event, wanted))


def listen(
    timed: Timed,
    *,
    memory: bytes | None = None,
    silence: float = 3.0,
    shortest_spin: float = 15.0,
    wheel: Callable[[bytes], bytes] = lambda _: b"",
    again: bool = False,
    told_before: Sequence[Event] = (),
    later: float = 0.0,
) -> Heard:
    """Let the driver hear `timed`; then the line hangs up. `again`: after LinkLost a new driver takes up its memory.

    `later`: seconds that passed before, of which the memory knows.
    """
    heard = Heard()
    heard.notebook.memory = memory

    def written(data: bytes) -> None:
        if answer := wheel(data):
            heard.link.feed(answer)

    @virtual_time
    async def body() -> None:
        loop = asyncio.get_running_loop()
        heard.link.on_write = written
        fed = False
        await asyncio.sleep(later)

        async def feed() -> None:
            nonlocal fed
            for at, data in timed:
                await asyncio.sleep(at + later - loop.time())
                heard.link.feed(data)
            fed = True
            heard.link.hang_up()

        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            while not heard.errors or (again and not fed):
                try:
                    options = WheelOptions(silence, shortest_spin=shortest_spin)
                    await CammeghSS2(options, heard.notebook.memory).run(heard.link, heard.notebook)
                except (LinkLost, DeviceRefused) as lost:
                    heard.errors.append(str(lost))
            await asyncio.sleep(0)

    body()
    lawful([*told_before, *heard.events])
    return heard


def lawful(events: Iterable[Event]) -> None:
    """Every spin told as begun ends once, and lands only after its launch; all events are fit for the journal."""
    begun = launched = landed = False
    for event in events:
        assert decode_data(type_of(event), encode_data(event)) == event
        match event:
            case SpinStarted():
                assert not begun
                begun, launched, landed = True, False, False
            case BallLaunched():
                assert begun
                assert not launched
                launched = True
            case BallSettling():
                assert begun
                assert launched
            case BallLanded():
                assert begun
                assert launched
                begun, landed = False, True
            case SpinVoided(reason="number_unsteady"):
                assert landed  # told, and taken back
                landed = False
            case SpinVoided():
                assert begun
                begun = False
            case SpinMissed() | DeviceOnline(continuous=False):
                begun = False
            case _:
                pass


ONLINE = DeviceOnline(False, "Cammegh SS2")
BACK = DeviceOnline(True, "Cammegh SS2")
AGAINST = BallLaunched("anticlockwise", "clockwise")
A_SPIN: list[Event] = [AGAINST, BallSettling()]


def test_one_spin_and_its_evidence() -> None:
    heard = listen(every([*[line(1, 11)] * 2, *spun(11, "34", "27"), *[line(2, 12, "27")] * 2]))
    assert heard.events == [
        *(ONLINE, WheelStarted(), SpinStarted(11), *A_SPIN, BallLanded("27"), SpinStarted(12)),
    ]
    landed = next(one for one in heard.notebook.sightings if isinstance(one.event, BallLanded))
    assert landed.wire == b"27\r\n*X;5;011;27;0;157;0"


@pytest.mark.parametrize("number", ALL_POCKETS)
def test_every_pocket(number: str) -> None:
    assert listen(every(spun(11, "34", number))).landed == [number]


@pytest.mark.parametrize("mark", [b"*X:", b"*X;"])
def test_both_marks_after_the_x(mark: bytes) -> None:
    lines = [one.replace(b"*X;", mark) for one in spun(11, "34", "27")]
    assert listen(every(lines)).landed == ["27"]


def test_no_more_bets_is_told_with_its_first_line() -> None:
    heard = listen(every(spun(11, "34", "27")))
    assert heard.told_at(BallSettling) == 7 * HALF_SECOND


TWO_WITNESSES: list[tuple[str, list[bytes], list[str]]] = [
    ("the bare number and one line", [b"27\r\n", line(5, 11, "27")], ["27"]),
    ("two lines", [line(5, 11, "27")] * 2, ["27"]),
    ("one line and the next spin", [line(5, 11, "27"), *[line(2, 12, "27")] * 2], ["27"]),
    ("a damaged number between three", [b"27\r\n", line(5, 11, "26"), *[line(5, 11, "27")] * 2], ["27"]),
    ("a number between two others", [b"27\r\n", line(5, 11, "26"), line(5, 11, "27")], []),
    ("damaged, then right to the next spin", [b"26\r\n", *[line(5, 11, "27")] * 2, *[line(2, 12, "27")] * 2], ["27"]),
    ("damaged, one line and the next spin", [b"26\r\n", line(5, 11, "27"), *[line(2, 12, "27")] * 2], ["27"]),
    ("two against two", [b"26\r\n", line(5, 11, "26"), *[line(2, 12, "27")] * 2], ["26", "void"]),
    ("two against one", [line(5, 11, "26"), *[line(2, 12, "27")] * 2], ["missed"]),
    ("damaged before, twice", [*[line(5, 11), *[line(4, 11)] * 2] * 2, b"27\r\n", line(5, 11, "27")], ["27"]),
    ("one line only", [line(5, 11, "27"), *[line(6, 11, "27")] * 2], ["missed"]),
    ("they differ", [b"27\r\n", line(5, 11, "26"), *[line(2, 12, "25")] * 2], ["missed"]),
    ("the bare number alone", [b"27\r\n", *[line(2, 12, "27")] * 2], ["missed"]),
    ("no number at all", [line(5, 11, "")] * 3, []),
]


@pytest.mark.parametrize(("lines", "ends"), [row[1:] for row in TWO_WITNESSES], ids=[row[0] for row in TWO_WITNESSES])
def test_a_number_needs_two_witnesses(lines: list[bytes], ends: list[str]) -> None:
    begin = [*[line(2, 11)] * 2, *[line(3, 11)] * 2, *[line(4, 11)] * 2]
    assert listen(every([*begin, *lines])).ends == ends


def test_a_number_is_told_once_however_long_state_5_lasts() -> None:
    assert listen(every([*spun(11, "34", "27"), *[line(5, 11, "27"), b"27\r\n"] * 20])).landed == ["27"]


WAYS: list[tuple[str, list[bytes], Sequence[Event | str]]] = [
    (
        "closed while the bets are open, and opened again",
        [*[line(2, 17)] * 2, *[line(6, 17)] * 3, *[line(1, 17)] * 2, *[line(2, 17)] * 2],
        [SpinStarted(17), SpinVoided("table_closed"), WheelStopped(), WheelStarted(), SpinStarted(17)],
    ),
    (
        "closed, and straight to 2",
        [*[line(2, 17)] * 2, *[line(6, 17)] * 3, *[line(2, 17)] * 2],
        [SpinStarted(17), SpinVoided("table_closed"), WheelStopped(), SpinStarted(17)],
    ),
    (
        "closed, and straight to 2 of the next spin",
        [*[line(2, 17)] * 2, *[line(6, 17)] * 3, *[line(2, 18)] * 2],
        [SpinStarted(17), SpinVoided("table_closed"), WheelStopped(), SpinStarted(18)],
    ),
    (
        "closed with the ball in the rim",
        [*[line(2, 17)] * 2, *[line(3, 17)] * 2, *[line(6, 17)] * 2],
        [SpinStarted(17), AGAINST, SpinVoided("table_closed"), WheelStopped()],
    ),
    (
        "closed after no more bets",
        [*[line(2, 17)] * 2, *[line(3, 17)] * 2, line(4, 17), *[line(6, 17)] * 2],
        [SpinStarted(17), *A_SPIN, SpinVoided("table_closed"), WheelStopped()],
    ),
    (
        "closed after the number",
        [*spun(17, "34", "5"), *[line(6, 17, "5")] * 2, *[line(2, 17, "5")] * 2],
        [SpinStarted(17), *A_SPIN, BallLanded("5"), WheelStopped(), SpinStarted(17)],
    ),
    (
        "closed from state 1",
        [*[line(1, 17)] * 2, *[line(6, 17)] * 2],
        [WheelStarted(), WheelStopped()],
    ),
    (
        "no ball is seen",
        [*[line(2, 17)] * 2, *[line(7, 17)] * 2, *[line(2, 17)] * 2],
        [
            *(SpinStarted(17), "+wheel.no_ball", SpinVoided("no_ball")),
            *("-wheel.no_ball", SpinStarted(17)),
        ],
    ),
    (
        "state 1 after each spin, counting at once",
        [*spun(17, "34", "5"), *[line(1, 18, "5")] * 2, *[line(2, 18, "5")] * 2],
        [SpinStarted(17), *A_SPIN, BallLanded("5"), WheelStarted(), SpinStarted(18)],
    ),
    (
        "state 1 after each spin, counting late",
        [*spun(17, "34", "5"), *[line(1, 17, "5")] * 2, *[line(2, 18, "5")] * 2],
        [SpinStarted(17), *A_SPIN, BallLanded("5"), WheelStarted(), SpinStarted(18)],
    ),
    (
        "the counter begins again after 256",
        [*spun(256, "34", "5"), *[line(2, 1, "5")] * 2],
        [SpinStarted(256), *A_SPIN, BallLanded("5"), SpinStarted(1)],
    ),
    (
        "one state-5 line, and the counter begins again after 256",
        [*spun(256, "34", "5", bare_number=False)[:-1], *[line(2, 1, "5")] * 2],
        [SpinStarted(256), *A_SPIN, BallLanded("5"), SpinStarted(1)],
    ),
    (
        "switched off and on in a spin",
        [*[line(2, 12)] * 2, *[line(3, 12)] * 2, *[line(1, 1, "")] * 2, *[line(2, 1, "")] * 2],
        [SpinStarted(12), AGAINST, SpinMissed(1), WheelStarted(), SpinStarted(1)],
    ),
    (
        "switched off and on before a spin",
        [*[line(1, 12)] * 2, *[line(1, 1, "")] * 2, *[line(2, 1, "")] * 2],
        [WheelStarted(), WheelStarted(), SpinStarted(1)],
    ),
    (
        "switched off and on, counting from 0",
        [*spun(12, "34", "5"), *[line(1, 0, "")] * 2, *[line(2, 1, "")] * 2],
        [SpinStarted(12), *A_SPIN, BallLanded("5"), WheelStarted(), SpinStarted(1)],
    ),
    (
        "switched off and on after 256 spins, counting from 0",
        [*spun(256, "34", "5"), *[line(1, 0, "")] * 2, *[line(2, 1, "")] * 2],
        [SpinStarted(256), *A_SPIN, BallLanded("5"), WheelStarted(), SpinStarted(1)],
    ),
    (
        "switched off and on in its first spin",
        [*[line(2, 1, "")] * 2, *[line(3, 1, "")] * 2, *[line(1, 1, "")] * 2, *[line(2, 1, "")] * 2],
        [SpinStarted(1), AGAINST, SpinVoided("restarted"), WheelStarted(), SpinStarted(1)],
    ),
]


@pytest.mark.parametrize(("lines", "told"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
def test_the_ways_of_a_wheel(lines: list[bytes], told: list[Event | str]) -> None:
    heard = listen(every(lines))
    assert [shown(event) for event in heard.spins] == told


def shown(event: Event) -> Event | str:
    """Faults as +code and -code."""
    match event:
        case DeviceFaulted(code=code):
            return f"+{code}"
        case DeviceRecovered(code=code):
            return f"-{code}"
        case _:
            return event


# ---- flags


def flagged(state: int, flags: int, seconds: float, spin: int = 11) -> list[bytes]:
    return [line(state, spin, flags=flags)] * int(seconds / HALF_SECOND)


BEFORE_RIM = [line(2, 11)] * 2
BEFORE_NO_MORE_BETS = [*BEFORE_RIM, *[line(3, 11)] * 2]


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([*BEFORE_RIM, *flagged(3, 8, 3.5), *flagged(3, 0, 1)], []),
        ([*BEFORE_RIM, *flagged(3, 8, 4.5), *flagged(3, 0, 1)], ["+wheel.launch_failed", "-wheel.launch_failed"]),
        ([*BEFORE_RIM, *flagged(3, 8, 4.5), *flagged(4, 0, 1)], ["+wheel.launch_failed", "-wheel.launch_failed"]),
        ([*BEFORE_RIM, *flagged(3, 0, 5), *flagged(3, 8, 0.5), *flagged(3, 0, 1)], []),
        ([*flagged(2, 8, 3), *flagged(3, 0, 2)], []),  # the controller's own second try is no trouble
        ([*flagged(2, 8, 25), *flagged(3, 0, 2)], ["+wheel.launch_failed", "-wheel.launch_failed"]),
        ([*flagged(2, 2, 10), *flagged(3, 0, 2)], ["+wheel.launch_failed", "-wheel.launch_failed"]),
        # Launched in vain, again and again within one spin: each time less than is ignored.
        (
            [*[*flagged(2, 8, 2), *flagged(3, 0, 1)] * 3, *flagged(4, 0, 1)],
            ["+wheel.launch_failed", "-wheel.launch_failed"],
        ),
        ([*flagged(2, 8, 2), *flagged(3, 0, 1), *flagged(4, 0, 1), *flagged(2, 8, 2, 12), *flagged(3, 0, 1, 12)], []),
        (
            [*[*flagged(2, 8, 0.5), *flagged(2, 0, 5.5)] * 9, *flagged(2, 0, 20)],
            ["+wheel.launch_failed", "-wheel.launch_failed"],
        ),
        ([*BEFORE_NO_MORE_BETS, *flagged(4, 1, 5), *flagged(4, 0, 1)], []),
        ([*BEFORE_NO_MORE_BETS, *[*flagged(4, 1, 4), *flagged(4, 0, 0.5)] * 4], []),
        ([*BEFORE_NO_MORE_BETS, *flagged(4, 1, 6)], ["+wheel.ball_not_detected"]),
        (
            [*BEFORE_NO_MORE_BETS, *flagged(4, 1, 6), *flagged(2, 0, 1)],
            ["+wheel.ball_not_detected", "-wheel.ball_not_detected"],
        ),
        ([*flagged(2, 1, 20)], []),  # it is finding the ball
        ([*flagged(2, 0, 1), *flagged(2, 4, 0.5), *flagged(2, 0, 1)], []),  # one line proves nothing
        (
            [*flagged(2, 0, 1), *flagged(2, 4, 1), *flagged(6, 4, 5), *flagged(6, 0, 1)],
            ["+wheel.sensor_or_motor", "-wheel.sensor_or_motor"],
        ),
        (
            [*flagged(2, 4, 2), *flagged(2, 0, 0.5), *flagged(2, 4, 2)],
            ["+wheel.sensor_or_motor"],  # one incident
        ),
    ],
)
def test_how_long_a_flag_is_ignored(lines: list[bytes], faults: list[str]) -> None:
    assert listen(every(lines)).faults == faults


def test_flags_are_timed_by_arrival_and_not_by_lines() -> None:
    """Ten lines that arrive at once are no five seconds."""
    begin = every(BEFORE_NO_MORE_BETS)
    burst = listen([*begin, *every(flagged(4, 1, 10), 2.0, 0.01)])
    assert (burst.faults, burst.ends) == ([], [])
    slow = listen([*begin, *every([line(4, 11, flags=1)] * 3, 2.0, 2.6)])
    assert (slow.faults, slow.ends) == (["+wheel.ball_not_detected"], ["void"])


NOW_AND_THEN = [*flagged(2, 8, 0.5), *flagged(2, 0, 6)]


def test_nineteen_failed_launches_in_two_minutes_are_told_within_forty_five_seconds() -> None:
    heard = listen(every([*NOW_AND_THEN * 19, *flagged(3, 0, 2)]))
    assert heard.faults == ["+wheel.launch_failed", "-wheel.launch_failed"]
    assert heard.told_at(DeviceFaulted) <= 45.0


def test_half_a_minute_of_failed_launches_is_told_after_four_seconds() -> None:
    assert listen(every(flagged(2, 8, 27))).told_at(DeviceFaulted) <= 4.0


def test_failed_launches_add_up_over_reconnections() -> None:
    """A line that is cut every two seconds, and between two sessions a restart of the edge."""
    memory = None
    faults: list[str] = []
    for session in range(8):
        heard = listen(every(flagged(2, 8, 2)), memory=memory, told_before=[SpinStarted(11)], later=session * 5.0)
        memory = heard.notebook.memory
        faults += heard.faults
    assert faults == ["+wheel.launch_failed"]


@pytest.mark.parametrize("apart", [6.0, 8.0, 14.0])
@pytest.mark.parametrize("more", [[], [line(2, 11)]])
def test_failed_launches_add_up_over_the_silence_between_them(apart: float, more: list[bytes]) -> None:
    """The wheel is silent for longer than `silence`: each failed launch begins a session of its own."""
    lines = every(flagged(2, 0, 2))
    for number in range(1, 20):
        lines += every([line(2, 11, flags=8), *more], 2.0 + number * apart)
    heard = listen(lines, again=True)
    assert heard.faults == ["+wheel.launch_failed"]
    assert heard.told_at(DeviceFaulted) <= 2.0 + 5 * apart


def test_failed_launches_of_another_spin_do_not_add_up() -> None:
    memory = None
    for spin in range(11, 16):
        heard = listen(every([*flagged(2, 8, 2, spin), *flagged(3, 0, 1, spin)]), memory=memory, later=spin * 60.0)
        memory = heard.notebook.memory
        assert heard.faults == []


def test_a_burst_of_late_lines_is_no_long_trouble() -> None:
    assert listen(every(flagged(2, 8, 30), step=0.01)).faults == []


def test_a_fault_that_ends_between_two_sessions_is_over() -> None:
    first = listen(every(flagged(6, 4, 2)))
    assert first.faults == ["+wheel.sensor_or_motor"]
    still = listen(every(flagged(6, 4, 2)), memory=first.notebook.memory)
    assert still.faults == []
    over = listen(every(flagged(6, 0, 2)), memory=still.notebook.memory)
    assert over.faults == ["-wheel.sensor_or_motor"]


# ---- void spins


def restarts(heard: Heard) -> int:
    return bytes(heard.link.sent).count(RESTART)


def answering(answer: bytes, *, after: int = 1) -> Callable[[bytes], bytes]:
    """A wheel that answers the n-th *R."""
    asked = 0

    def wheel(data: bytes) -> bytes:
        nonlocal asked
        asked += data.count(RESTART)
        return answer if RESTART in data and asked >= after else b""

    return wheel


def test_a_ball_with_the_rotor_is_void_and_acknowledged() -> None:
    lines = [*BEFORE_RIM, *flagged(3, 2, 2), *spun(11, "34", "27")]
    heard = listen(every(lines), wheel=answering(b"*R OK\r\n"))
    assert [one for one in heard.spins if not isinstance(one, DeviceFaulted | DeviceRecovered)] == [
        *(SpinStarted(11), BallLaunched("clockwise", "clockwise"), SpinVoided("ball_with_rotor")),
        *(SpinStarted(11), *A_SPIN, BallLanded("27")),
    ]
    assert heard.faults == ["+wheel.ball_with_rotor", "-wheel.ball_with_rotor"]
    assert restarts(heard) == 1


def test_one_line_does_not_make_a_spin_void() -> None:
    lines = [*BEFORE_RIM, *flagged(3, 0, 1), *flagged(3, 2, 0.5), *flagged(3, 0, 1), *spun(11, "34", "27")[7:]]
    heard = listen(every(lines))
    assert heard.spins == [SpinStarted(11), *A_SPIN, BallLanded("27")]
    assert restarts(heard) == 0


def test_the_flag_in_another_state_is_no_void_spin() -> None:
    lines = [*flagged(2, 2, 5), *flagged(3, 0, 2), *flagged(4, 2, 5), b"27\r\n", *[line(5, 11, "27", 2)] * 2]
    heard = listen(every(lines))
    assert (heard.ends, restarts(heard)) == (["27"], 0)


@pytest.mark.parametrize(("answered", "asked"), [(1, 1), (2, 2), (3, 3)])
def test_the_restart_is_repeated_until_answered(answered: int, asked: int) -> None:
    heard = listen(every([*BEFORE_RIM, *flagged(3, 2, 20)]), wheel=answering(b"*R OK\r\n", after=answered))
    assert (restarts(heard), heard.faults, heard.ends) == (asked, ["+wheel.ball_with_rotor"], ["void"])


@pytest.mark.parametrize("answer", [b"", b"*R NO\r\n"])
def test_three_restarts_without_an_answer_are_a_fault(answer: bytes) -> None:
    lines = [*BEFORE_RIM, *flagged(3, 2, 20), *flagged(2, 0, 1)]
    heard = listen(every(lines), wheel=answering(answer))
    assert restarts(heard) == 3
    assert [one for one in heard.faults if "restart" in one] == ["+wheel.restart_refused", "-wheel.restart_refused"]
    first = heard.told_at(SpinVoided)
    refused = next(one for one in heard.notebook.sightings if getattr(one.event, "code", "") == "wheel.restart_refused")
    assert 6.0 <= refused.chunk.tick - first <= 7.0


@pytest.mark.parametrize("state", [1, 2, 6, 7])
def test_a_wheel_that_restarts_without_a_word_is_not_asked_again(state: int) -> None:
    heard = listen(every([*BEFORE_RIM, *flagged(3, 2, 2), *flagged(state, 0, 20)]))
    assert restarts(heard) == 1
    assert "+wheel.restart_refused" not in heard.faults


def test_a_ball_not_detected_for_long_is_void_and_acknowledged() -> None:
    lines = [*BEFORE_NO_MORE_BETS, *flagged(4, 1, 8), *flagged(2, 0, 1)]
    heard = listen(every(lines), wheel=answering(b"*R OK\r\n"))
    assert heard.faults == ["+wheel.ball_not_detected", "-wheel.ball_not_detected"]
    assert (heard.ends, restarts(heard)) == (["void"], 1)
    assert heard.told_at(SpinVoided) - heard.told_at(BallSettling) == pytest.approx(5.5)


def test_a_session_that_died_before_its_acknowledgement_is_made_good() -> None:
    """The void spin was told, the *R never sent: the next session sends it, and tells nothing twice."""
    first = listen(every([*BEFORE_RIM, *flagged(3, 2, 1)]))
    second = listen(
        every(flagged(3, 2, 2)),
        memory=first.notebook.memory,
        wheel=answering(b"*R OK\r\n"),
        told_before=first.events,
    )
    assert (first.ends, second.ends, restarts(second)) == (["void"], [], 1)


def test_a_void_spin_that_nobody_saw_begin_is_acknowledged_too() -> None:
    heard = listen(every(flagged(3, 2, 2)), wheel=answering(b"*R OK\r\n"))
    assert (heard.ends, restarts(heard)) == (["missed"], 1)


def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    """While the journal is slow, no *R goes out."""
    link = MemoryLink()
    asked: list[tuple[str, int]] = []

    class SlowJournal(Notebook):
        async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await asyncio.sleep(0.1)
            await super().__call__(sightings, memory)
            asked.extend((type_of(one.event), bytes(link.sent).count(RESTART)) for one in sightings)

    @virtual_time
    async def body() -> None:
        for one in [*BEFORE_RIM, *flagged(3, 2, 2)]:
            link.feed(one)
        link.hang_up()
        with pytest.raises(LinkLost):
            await CammeghSS2(WheelOptions(), remembered(11, State.TABLE_CLOSED, 5, **OVER)).run(link, SlowJournal())

    body()
    assert ("spin.voided", 0) in asked


# ---- a host that was away

MINUTE = 60.0


def remembered(
    spin: int,
    state: State,
    ago: float,
    *,
    begun: bool = True,
    launched: bool = True,
    ended: bool = False,
    landed: bool = False,
    void: bool = False,
    tick: float | None = None,
) -> bytes:
    """`tick`: when it was seen by the monotonic clock, which says 0 now."""
    at = START - timedelta(seconds=ago)
    known = Spin(
        spin=spin,
        state=state,
        at=at,
        begun=begun,
        launched=launched,
        ended=ended,
        void=void,
        landed=landed,
        tick=tick,
    )
    return msgspec.json.encode(Memory(known))


OPEN = {"launched": False}
OVER = {"ended": True}
LANDED = {"ended": True, "landed": True}
RECONNECTS: list[tuple[str, bytes, list[bytes], list[str]]] = [
    ("in state 2", remembered(11, State.PLACE_BETS, 5, **OPEN), spun(11, "34", "27"), ["27"]),
    ("in state 3", remembered(11, State.BALL_IN_RIM, 5), spun(11, "34", "27")[5:], ["27"]),
    ("2, back in 3", remembered(11, State.PLACE_BETS, 9, **OPEN), spun(11, "34", "27")[5:], ["27"]),
    ("2, back in 4", remembered(11, State.PLACE_BETS, 19, **OPEN), spun(11, "34", "27")[8:], ["27"]),
    ("in state 4", remembered(11, State.NO_MORE_BETS, 5), spun(11, "34", "27")[8:], ["27"]),
    ("4, back in 5", remembered(11, State.NO_MORE_BETS, 9), [line(5, 11, "27")] * 2, ["27"]),
    ("4, back in 5, long ago", remembered(11, State.NO_MORE_BETS, 5 * MINUTE), [line(5, 11, "27")] * 3, ["missed"]),
    (
        "2, back in 5: no launch was seen",
        remembered(11, State.PLACE_BETS, 30, **OPEN),
        [line(5, 11, "27")] * 3,
        ["missed"],
    ),
    ("told, still in 5", remembered(11, State.WINNING_NUMBER, 1, **OVER), [b"27\r\n", *[line(5, 11, "27")] * 3], []),
    ("told, in the next", remembered(11, State.WINNING_NUMBER, 9, **OVER), spun(12, "27", "16"), ["16"]),
    ("a stale 5 of the next", remembered(11, State.WINNING_NUMBER, 50, **OVER), [line(5, 12, "16")] * 3, ["missed"]),
    (
        "a stale 5 of the next, then a whole spin",
        remembered(11, State.WINNING_NUMBER, 50, **OVER),
        [b"16\r\n", *[line(5, 12, "16")] * 3, *spun(13, "16", "6")],
        ["missed", "6"],
    ),
    ("a stale 5 further on", remembered(11, State.NO_MORE_BETS, 90), [line(5, 13, "6")] * 3, ["missed"] * 3),
    ("4, the next is open", remembered(11, State.NO_MORE_BETS, 30), spun(12, "27", "16"), ["missed", "16"]),
    ("4, the next runs", remembered(11, State.NO_MORE_BETS, 40), spun(12, "27", "16")[5:], ["missed"] * 2),
    (
        "the counter is further on",
        remembered(11, State.WINNING_NUMBER, 600, **OVER),
        spun(20, "9", "8"),
        ["missed"] * 8 + ["8"],
    ),
    ("it went round", remembered(250, State.WINNING_NUMBER, 600, **OVER), spun(3, "9", "8"), ["missed"] * 8 + ["8"]),
    (
        "switched off and on, together with the computer",
        remembered(250, State.WINNING_NUMBER, 600, **OVER, tick=1e6),
        spun(3, "9", "8"),
        ["missed"] * 2 + ["8"],
    ),
    (
        "256, switched off and on in one breath",
        remembered(256, State.STARTED, 6, begun=False, launched=False),
        spun(1, "", "8"),
        ["8"],
    ),
    (
        "256, void and switched off",
        remembered(256, State.TABLE_CLOSED, 20, ended=True, void=True),
        spun(1, "", "8"),
        ["8"],
    ),
    ("254, switched off and on", remembered(254, State.TABLE_CLOSED, 60, **OVER), spun(1, "", "8"), ["8"]),
    (
        "switched off for the night in state 5",
        remembered(254, State.WINNING_NUMBER, 480 * MINUTE, **OVER, tick=-480 * MINUTE),
        spun(1, "", "8"),
        ["8"],
    ),
    (
        "3, back in 3, the computer was off and had no clock",
        remembered(1, State.BALL_IN_RIM, -10, tick=3000.0),
        spun(1, "", "27")[5:],
        ["missed"],
    ),
    (
        "2, back in 2, the computer was off and had no clock",
        remembered(1, State.PLACE_BETS, -10, **OPEN, tick=3000.0),
        spun(1, "", "27"),
        ["27"],
    ),
    (
        "it went round, and the clock was set back",
        remembered(250, State.WINNING_NUMBER, -3000, **OVER, tick=-600.0),
        spun(3, "9", "8"),
        ["missed"] * 8 + ["8"],
    ),
    (
        "switched off and on while the clock was set forward",
        remembered(10, State.STARTED, 56 * 70.0, **OVER, tick=-20.0),
        spun(1, "", "8"),
        ["8"],
    ),
    (
        "2, still 2, long ago",
        remembered(11, State.PLACE_BETS, 5 * MINUTE, **OPEN),
        spun(11, "34", "27"),
        ["27"],
    ),
    (
        "4, back in 5, long ago, and the clock was set back",
        remembered(11, State.NO_MORE_BETS, 5, tick=-5.0 * MINUTE),
        [line(5, 11, "27")] * 3,
        ["missed"],
    ),
    ("256 and 1", remembered(256, State.WINNING_NUMBER, 30, **OVER), spun(1, "9", "8"), ["8"]),
    ("switched off and on", remembered(200, State.WINNING_NUMBER, 120, **OVER), spun(1, "", "8"), ["8"]),
    ("switched off and on in a spin", remembered(200, State.NO_MORE_BETS, 120), spun(1, "", "8"), ["missed", "8"]),
    (
        "closed, and switched off for the night",
        remembered(160, State.TABLE_CLOSED, 600 * MINUTE, **OVER),
        spun(1, "", "8"),
        ["8"],
    ),
    (
        "switched off and on, 2 spins ago",
        remembered(200, State.WINNING_NUMBER, 120, **OVER),
        spun(3, "9", "8"),
        ["missed"] * 2 + ["8"],
    ),
    (
        "switched off and on, and as far again",
        remembered(2, State.WINNING_NUMBER, 60, **LANDED),
        spun(2, "26", "0")[5:],
        ["missed"] * 2,
    ),
    (
        "switched off and on, as far again, and the bets are open",
        remembered(2, State.STARTED, 60, **LANDED),
        spun(2, "26", "0"),
        ["missed", "0"],
    ),
    (
        "switched off and on, as far again, and the wheel starts",
        remembered(2, State.WINNING_NUMBER, 60, **LANDED),
        [*[line(1, 2)] * 2, *spun(2, "26", "0")],
        ["missed", "0"],
    ),
    (
        "switched off and on, the first again",
        remembered(1, State.WINNING_NUMBER, 60, **LANDED),
        spun(1, "", "8"),
        ["8"],
    ),
    (
        "closed in the middle, and spun again",
        remembered(40, State.TABLE_CLOSED, 60, **OVER),
        [*[line(6, 40)] * 2, *[line(1, 40)] * 2, *spun(40, "26", "0")],
        ["0"],
    ),
    (
        "told, closed, and the next",
        remembered(40, State.TABLE_CLOSED, 60, **LANDED),
        [*[line(6, 40)] * 2, *[line(1, 40)] * 2, *spun(41, "26", "0")],
        ["0"],
    ),
    ("closed meanwhile", remembered(11, State.NO_MORE_BETS, 20), [line(6, 11)] * 3, ["void"]),
    ("void, then spun again", remembered(11, State.BALL_IN_RIM, 20, **OVER), spun(11, "34", "27"), ["27"]),
    ("void, then 5 of the same", remembered(11, State.BALL_IN_RIM, 40, **OVER), [line(5, 11, "27")] * 3, []),
    ("nothing known, in state 1", b"", [*[line(1, 11)] * 2, *spun(11, "34", "27")], ["27"]),
    ("nothing known, in state 2", b"", spun(11, "34", "27"), ["27"]),
    ("nothing known, in state 3", b"", spun(11, "34", "27")[5:], ["missed"]),
    ("nothing known, in state 4", b"", spun(11, "34", "27")[8:], ["missed"]),
    ("nothing known, in state 5", b"", [b"27\r\n", *[line(5, 11, "27")] * 3], []),
    ("a memory that is not ours", b'{"spin": {"spin": 11, "state": 99}}', spun(11, "34", "27"), ["27"]),
]


@pytest.mark.parametrize(
    ("memory", "lines", "ends"), [row[1:] for row in RECONNECTS], ids=[row[0] for row in RECONNECTS]
)
def test_a_host_that_was_away(memory: bytes, lines: list[bytes], ends: list[str]) -> None:
    begun: list[Event] = []
    known = msgspec.json.decode(memory, type=Memory).spin if b'"at"' in memory else None
    if known is not None and known.begun and not known.ended:
        begun = [SpinStarted(known.spin), *([AGAINST] if known.launched else [])]
    assert listen(every(lines), memory=memory, told_before=begun).ends == ends


def test_what_the_first_two_lines_prove_is_told_with_them() -> None:
    """Life 73000282: the power went after two lines, of two states; the wheel then counted from 1, as was known."""
    memory = remembered(1, State.WINNING_NUMBER, 20, **LANDED)
    heard = listen(every([line(4, 4), line(5, 4, "27")]), memory=memory)
    assert sum(one.count for one in heard.events if isinstance(one, SpinMissed)) == 3
    begins = listen(every([line(2, 4), *[line(3, 4)] * 3]), memory=memory)
    assert [one for one in begins.events if isinstance(one, SpinStarted)] == [SpinStarted(4)]
    assert sum(one.count for one in begins.events if isinstance(one, SpinMissed)) == 2


@pytest.mark.parametrize(
    ("memory", "lines", "continuous"),
    [
        (remembered(200, State.STARTED, 10, **OVER), [line(1, 1)] * 3, True),  # too short for a spin
        (remembered(200, State.STARTED, 20, **OVER), [line(1, 1)] * 3, False),
        (remembered(250, State.STARTED, 200, **OVER), [line(1, 3)] * 3, False),  # what of it is true nobody knows
        (remembered(256, State.STARTED, 60, **OVER), [line(1, 1)] * 3, True),
        (remembered(256, State.STARTED, 60, **OVER), [line(1, 1, "")] * 3, False),  # without a number it was off
        (remembered(10, State.STARTED, 6000, **OVER), [line(1, 30)] * 3, True),
        (remembered(10, State.PLACE_BETS, 6000, **OPEN), [line(2, 10)] * 3, False),
        (remembered(10, State.BALL_IN_RIM, 6000), [line(3, 10)] * 3, True),
        (remembered(10, State.PLACE_BETS, -10, **OPEN, tick=3000.0), [line(2, 10)] * 3, False),  # off, without a clock
        (remembered(10, State.PLACE_BETS, 3500, **OPEN, tick=-4.0), [line(2, 10)] * 3, False),  # the clock was set
        (remembered(40, State.STARTED, 3600, **LANDED), [line(2, 40)] * 3, False),  # as far again
        (remembered(200, State.STARTED, -100, **OVER), [line(1, 1)] * 3, False),  # an old memory, and a clock set back
        # one damaged line decides nothing
        (remembered(11, State.PLACE_BETS, 20, **OPEN), [line(2, 1), *[line(2, 11)] * 3], True),
        (remembered(200, State.STARTED, 3600, **OVER), [line(1, 201), *[line(1, 1)] * 3], False),
    ],
)
def test_when_a_wheel_is_continuous(memory: bytes, lines: list[bytes], continuous: bool) -> None:
    known = msgspec.json.decode(memory, type=Memory).spin
    assert known is not None
    begun: list[Event] = [SpinStarted(known.spin), AGAINST]
    begun = [] if known.ended else begun[: known.begun + known.launched]
    [online] = [
        one for one in listen(every(lines), memory=memory, told_before=begun).events if type(one) is DeviceOnline
    ]
    assert online.continuous == continuous


@pytest.mark.parametrize(("shortest", "missed", "continuous"), [(15.0, [], True), (0.6, [SpinMissed(1)], False)])
def test_in_two_seconds_only_a_wheel_that_plays_so_fast_goes_round(
    shortest: float, missed: list[Event], continuous: bool
) -> None:
    """255 was over; 256 came and went before the edge was there again, in a pit at 25 times its speed."""
    memory = remembered(255, State.NO_MORE_BETS, 2, **OVER)
    heard = listen(every([line(1, 1, "3")] * 3), memory=memory, shortest_spin=shortest)
    assert [one for one in heard.events if isinstance(one, SpinMissed)] == missed
    assert [one.continuous for one in heard.events if isinstance(one, DeviceOnline)] == [continuous]


@pytest.mark.parametrize("shown", [2, 7, 10])
def test_a_state_may_last_long_and_the_line_be_cut_in_it(shown: int) -> None:
    """The absence is short, whatever the age of the last event: it is the same spin."""
    lines = [*[line(1, 11)] * 2, *spun(11, "34", "27")]
    before = [*lines[: shown + 2], *[lines[shown + 2]] * 500, b""]
    first = listen(every(before))
    after = len(before) * HALF_SECOND
    second = listen(every(lines[shown + 2 :]), memory=first.notebook.memory, told_before=first.events, later=after)
    assert first.ends + second.ends == ["27"]
    assert second.events[0] == BACK


@pytest.mark.parametrize("clock", [-3600.0, 3600.0])
def test_a_number_shown_in_one_line_is_not_lost_because_the_clock_was_set(clock: float) -> None:
    @virtual_time
    async def body() -> None:
        link, notebook = MemoryLink(), Notebook()
        session = asyncio.create_task(CammeghSS2(WheelOptions(), None).run(link, notebook))
        lines = spun(11, "34", "27")[:-1]
        for n, one in enumerate([*lines, *spun(12, "27", "16")[:4]]):
            if n == len(lines) - 1:
                link.set = clock
            link.feed(one)
            await asyncio.sleep(HALF_SECOND)
        session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await session
        assert [one.pocket for one in notebook.events if isinstance(one, BallLanded)] == ["27"]
        assert not any(isinstance(one, SpinMissed) for one in notebook.events)

    body()


def test_what_is_remembered_is_a_minute_old_at_most() -> None:
    """However long the wheel stood still: who is killed then was not away since its last spin."""

    @virtual_time
    async def body() -> None:
        link, notebook = MemoryLink(), Notebook()
        session = asyncio.create_task(CammeghSS2(WheelOptions(), None).run(link, notebook))
        kept = 0
        for _ in range(2 * 4200):
            link.feed(line(1, 11))
            before = notebook.memory
            await asyncio.sleep(HALF_SECOND)
            kept += notebook.memory != before
        session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await session
        assert 70 <= kept <= 72
        memory = msgspec.json.decode(notebook.memory or b"", type=Memory)
        assert memory.spin is not None
        assert memory.spin.tick is not None
        assert link.stamp().tick - memory.spin.tick <= 60 + HALF_SECOND

    body()


def test_a_wheel_that_is_not_there_is_not_remembered_again_and_again() -> None:
    heard = listen([*every([line(1, 11)] * 20), (100.0, b"")], again=True)
    assert heard.errors[:2] == ["no valid line for 3 s"] * 2
    memory = msgspec.json.decode(heard.notebook.memory or b"", type=Memory)
    assert memory.spin is not None
    assert memory.spin.tick == 19 * HALF_SECOND
    assert heard.notebook.commits == 2  # online, and when it was last seen


def test_a_driver_killed_at_any_moment_goes_on_with_the_spin() -> None:
    """Killed after each line in turn and made anew with the memory of its last emit: every number is told once."""
    lines = [*[line(1, 11)] * 2, *spun(11, "34", "27"), *spun(12, "27", "16"), *[line(2, 13, "16")] * 3]
    for kill in range(1, len(lines)):
        first = listen(every(lines[:kill]))
        second = listen(
            every(lines[kill:]), memory=first.notebook.memory, told_before=first.events, later=kill * HALF_SECOND
        )
        landed = first.landed + second.landed
        assert landed == ["27", "16"] or "missed" in first.ends + second.ends, kill
        assert [one for one in first.ends + second.ends if one != "missed"] == landed
        # Only who was killed while the number was shown may have lost its witness.
        if landed != ["27", "16"]:
            assert lines[kill - 1 : kill + 1] in SHOWN, kill


SHOWN = [
    *([b"27\r\n", line(5, 11, "27")], [line(5, 11, "27")] * 2, [line(4, 11), b"27\r\n"]),
    *([b"16\r\n", line(5, 12, "16")], [line(5, 12, "16")] * 2),
]


@given(st.binary(max_size=200))
def test_any_memory_is_taken_or_left(memory: bytes) -> None:
    CammeghSS2(WheelOptions(), memory)


@pytest.mark.parametrize(
    "memory",
    [
        *(b"", b"null", b"[]", b"{}", b"\xff", b'{"spin":null}', b'{"faults":7}'),
        b'{"spin":{"spin":300,"state":2,"at":"2026-11-20T20:00:00Z"}}',
        b'{"spin":{"spin":3,"state":2,"at":"2026-11-20T20:00:00"}}',  # no time zone
        b'{"spin":{"spin":3,"state":9,"at":"2026-11-20T20:00:00Z"}}',
    ],
)
def test_a_memory_that_is_none_is_left(memory: bytes) -> None:
    assert listen(every(spun(11, "34", "27")), memory=memory).events[0] == ONLINE


# ---- who is there


def asked(answers: dict[bytes, bytes]) -> Callable[[bytes], bytes]:
    """A wheel with these answers."""
    return lambda data: b"".join(answer for question, answer in answers.items() if question in data)


def test_it_comes_online_with_its_firmware() -> None:
    heard = listen(every([line(1, 11)] * 4), wheel=asked({b"*K": b"*K CAM\r\n", b"*S": b"*S 2.52\r\n"}))
    assert heard.events[0] == DeviceOnline(False, "Cammegh SS2", "", "2.52")
    assert heard.told_at(DeviceOnline) == 0.0


@pytest.mark.parametrize("answer", [b"", b"*K NO\r\n*S NO\r\n", b"*K BUSY\r\n*S BUSY\r\n", b"*K\r\n*S\r\n"])
def test_a_firmware_that_does_not_say_who_it_is_is_not_refused(answer: bytes) -> None:
    heard = listen(every([line(1, 11)] * 4), wheel=asked({b"*K": answer}))
    assert heard.events[:2] == [ONLINE, WheelStarted()]


def test_another_maker_is_refused_when_it_says_so_twice() -> None:
    heard = listen(every([line(1, 11)] * 4), wheel=asked({b"*K": b"*K TCS\r\n"}))
    assert heard.errors == ["the device answers *K with 'TCS'; a Cammegh wheel answers CAM"]
    answers = iter([b"*K CAN\r\n", b"*K CAM\r\n"])
    assert listen(every([line(1, 11)] * 4), wheel=lambda data: next(answers) if b"*K" in data else b"").errors == [
        "hung up"
    ]


def test_a_wheel_that_does_not_speak_by_itself_is_asked() -> None:
    asked_at: list[int] = []

    def wheel(data: bytes) -> bytes:
        asked_at.append(data.count(POLL))
        return line(2, 11) if POLL in data else b""

    heard = listen([(10.0, line(2, 11))], wheel=wheel)
    assert heard.spins == [SpinStarted(11)]
    assert 12 <= sum(asked_at) <= 14


def test_a_bare_number_is_followed_by_a_question() -> None:
    """State 5 may be over before the next question would be due."""
    begin = every([*[line(2, 11)] * 2, *[line(3, 11)] * 2, *[line(4, 11)] * 2])
    polls: list[bytes] = []

    def wheel(data: bytes) -> bytes:
        polls.append(data)
        return line(5, 11, "27") if POLL in data and len(polls) == 2 else b""

    heard = listen([*begin, (2.7, b"27\r\n"), (2.9, line(2, 12, "27")), (3.4, line(2, 12, "27"))], wheel=wheel)
    assert (heard.ends, polls[1:]) == (["27"], [POLL])
    by_itself = listen([*begin, (2.7, b"27\r\n"), (2.72, line(5, 11, "27")), (3.22, line(5, 11, "27"))])
    assert by_itself.ends == ["27"]
    assert POLL not in by_itself.link.sent


def test_other_packets_do_not_keep_it_from_asking() -> None:
    polls = 0

    def wheel(data: bytes) -> bytes:
        nonlocal polls
        polls += data.count(POLL)
        return b""

    listen(every([b"*w NO\r\n"] * 20), wheel=wheel)
    assert 12 <= polls <= 14


def test_silence_is_a_lost_link() -> None:
    heard = listen([(0.0, line(2, 11)), (100.0, line(2, 11))], silence=7)
    assert heard.errors == ["no valid line for 7 s"]
    noise = listen(every([b"\x00\xffx\r\n"] * 40))
    assert noise.errors == ["no valid line for 3 s"]
    assert noise.events == []


@pytest.mark.parametrize("port", [1, 2])
def test_a_dead_wheel_on_a_line_of_two_wires_is_a_lost_link(port: Literal[1, 2]) -> None:
    """The host hears its own questions and orders: nobody but it said them."""

    @virtual_time
    async def body() -> None:
        loop = asyncio.get_running_loop()
        link, notebook = MemoryLink(), Notebook()
        link.on_write = link.feed
        driver = CammeghSS2(WheelOptions(port=port), notebook.memory)
        session = asyncio.create_task(driver.run(link, notebook))
        for _ in range(6):
            link.feed(line(1, 11))
            await asyncio.sleep(HALF_SECOND)
        assert notebook.events == [ONLINE, WheelStarted()]
        last = loop.time() - HALF_SECOND

        async def others() -> None:
            """Orders from elsewhere, and those of our commands as the line gives them back."""
            while not session.done():
                for order in (b"*P 1", b"*P 0", b"*u 3", b"*o 1157", b"*T h 60", b"*T H", b"*T f", b"*R", b"*F", b"*w"):
                    link.feed(order + b"\r\n")
                await asyncio.sleep(HALF_SECOND)

        orders = asyncio.create_task(others())
        with pytest.raises(LinkLost, match="no valid line for 3 s"):
            await asyncio.wait_for(session, 60)
        assert loop.time() - last <= 3 + HALF_SECOND + 0.01
        await orders

    body()


@pytest.mark.parametrize("answer", [b"*P OK", b"*o BUSY", b"*w 12 34 56", b"*F 21", b"*T NO", b"*Y;3;250", b"27"])
def test_what_only_a_wheel_says_is_life(answer: bytes) -> None:
    """A table of statistics takes longer than the silence after which a wheel is lost."""
    assert listen([*every([line(6, 11)] * 4), *every([answer + b"\r\n"] * 20, 2.0)]).errors == ["hung up"]


def test_lines_that_are_never_a_status_are_a_lost_link() -> None:
    heard = listen(every([b"*w NO\r\n"] * 300))
    assert "another device" in heard.errors[0]
    assert heard.events == []


# ---- captures


def simulated_capture() -> bytes:
    """Three spins and a fourth that is closed, as a wire tap between host and wheel sees them."""
    wheel = Wheel(Random(2), mode=ARCADE - STARTED_AFTER_NUMBER, spin=254, closed=True)
    tape = b""
    now = 0.0
    host = [(1.0, b"*P 1\r\n", 0), (2.0, b"*P 0\r\n", 3)]
    closed_at = float("inf")
    while now < closed_at + 2.0:
        if host and len(wheel.truth) == host[0][2] and wheel.state in (State.TABLE_CLOSED, State.PLACE_BETS):
            _, command, landed = host.pop(0)
            now += 1.2
            tape += wheel.wake(now) + command + wheel.hear(command, now)
            closed_at = now if landed else closed_at
        now = max(now, wheel.due())
        tape += wheel.wake(now)
    return tape


def test_the_simulated_capture_is_what_the_simulator_makes() -> None:
    assert SIMULATED.read_bytes() == simulated_capture()


class Recording:
    """A capture and what truly happened in it: the first counter, the pockets, and then one spin that was closed."""

    def __init__(self, path: Path, first: int, pockets: list[str], turns: list[str]) -> None:
        self.path = path
        self.spins = [(first + n - 1) % 256 + 1 for n in range(len(pockets) + 1)]
        self.pockets = pockets
        self.turns = turns  # the ball's, spin by spin

    @property
    def timed(self) -> Timed:
        """The lines; the status lines half a second apart, the others just before the next one."""
        timed: Timed = []
        at = 0.0
        for one in self.path.read_bytes().splitlines(keepends=True):
            timed.append((at, one))
            if one.startswith(b"*X"):
                at += HALF_SECOND
        return timed

    @property
    def shown(self) -> list[tuple[float, str]]:
        """When the wheel showed each number first."""
        lines = self.timed
        fives = [n for n, (_, one) in enumerate(lines) if one[:4] == b"*X;5" and lines[n - 1][1][:4] != b"*X;5"]
        return [(lines[n][0], pocket) for n, pocket in zip(fives, self.pockets, strict=True)]


RECORDINGS = [
    pytest.param(
        Recording(REAL, 11, ["27", "16", "6", "3", "10", "0"], ["clockwise", "anticlockwise"] * 3),
        marks=needs_the_real_capture,
        id="real",
    ),
    pytest.param(Recording(SIMULATED, 254, ["28", "4", "24"], ["anticlockwise", "clockwise"] * 2), id="simulated"),
]


def in_time(heard: Heard, shown: list[tuple[float, str]]) -> None:
    """Each number told is the newest that the wheel has shown, and told once."""
    told_at = -1.0
    for one in heard.notebook.sightings:
        if isinstance(one.event, BallLanded):
            at, pocket = max((at, pocket) for at, pocket in shown if at <= one.chunk.tick)
            assert one.event.pocket == pocket
            assert told_at < at
            told_at = one.chunk.tick


def rechunk(timed: Timed, edges: Iterable[int], drop: range = range(0)) -> Timed:
    """The same bytes split at other places, each chunk at the time of its last byte, without those in `drop`."""
    data = b"".join(one for _, one in timed)
    times = [at for at, one in timed for _ in one]
    places = sorted({0, len(data), drop.start, drop.stop, *edges})
    return [(times[b - 1], data[a:b]) for a, b in pairwise(places) if a not in drop]


def line_ends(timed: Timed) -> list[int]:
    """Where the lines end."""
    return list(accumulate(len(one) for _, one in timed))


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_capture_through_the_driver(recording: Recording) -> None:
    heard = listen(recording.timed)
    told = [event for event in heard.spins if not isinstance(event, WheelStarted | WheelStopped)]
    expected: list[Event] = []
    for spin, pocket, turn in zip(recording.spins, recording.pockets, recording.turns, strict=False):
        rotor = "anticlockwise" if turn == "clockwise" else "clockwise"
        launched = msgspec.convert({"type": "ball.launched", "direction": turn, "rotor": rotor}, BallLaunched)
        expected += [SpinStarted(spin), launched, BallSettling(), BallLanded(pocket)]
    assert told == [*expected, SpinStarted(recording.spins[-1]), SpinVoided("table_closed")]
    assert heard.spins[-1] == WheelStopped()
    assert restarts(heard) == 0
    in_time(heard, recording.shown)


@pytest.mark.parametrize("recording", RECORDINGS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_a_capture_in_any_chunks_tells_the_same(recording: Recording, seed: int) -> None:
    rng = Random(seed)
    timed = recording.timed
    size = sum(len(one) for _, one in timed)
    chunks = rechunk(timed, rng.sample(range(size), rng.randint(size // 20, size // 2)))
    assert listen(chunks, silence=60).events == listen(timed).events


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_capture_byte_by_byte_tells_the_same(recording: Recording) -> None:
    timed = recording.timed
    assert listen(rechunk(timed, range(line_ends(timed)[-1]))).events == listen(timed).events


@pytest.mark.parametrize("recording", RECORDINGS)
@settings(max_examples=16)
@given(data=st.data())
def test_any_piece_may_be_missing(recording: Recording, data: st.DataObject) -> None:
    """With the beginning and the end heard, each spin comes out once, in order: with its number, or as missed."""
    ends = line_ends(recording.timed)
    status_ends = [end for end, (_, one) in zip(ends, recording.timed, strict=True) if one.startswith(b"*X")]
    begin = data.draw(st.integers(status_ends[1], status_ends[-3]))
    without(recording, begin, data.draw(st.integers(begin, status_ends[-3])))


@pytest.mark.parametrize("recording", RECORDINGS[:1])
def test_bets_that_were_open_before_a_long_silence_are_doubted(recording: Recording) -> None:
    assert without(recording, 411, 7972)


def without(recording: Recording, begin: int, end: int) -> bool:
    """Play the recording without these bytes. Returns whether the open round is suspended."""
    timed = recording.timed
    ends = line_ends(timed)
    heard = listen(rechunk(timed, ends, range(begin, end)), again=True)
    again = [n for n, one in enumerate(heard.events) if isinstance(one, DeviceOnline) and not one.continuous]
    if again[1:]:
        # The counter went from 256 to 1 unheard: the wheel may have begun again, so the rules suspend the open round.
        # Or bets were open for longer than any spin takes: nothing proves that they are of the same one.
        late = timed[bisect_right(ends, end)][0] > LONGEST_SPIN.total_seconds()
        bets_open = isinstance(heard.events[again[1] - 1], SpinStarted)
        assert (late and bets_open) or recording.spins != sorted(recording.spins)
        return True
    last = SpinStarted(recording.spins[-1]) in heard.events
    assert len(heard.ends) == len(recording.pockets) + last
    for told, pocket in zip(heard.ends, recording.pockets, strict=False):
        assert told in (pocket, "missed")
    assert not last or heard.ends[-1] == "void"
    in_time(heard, recording.shown)
    return False


@pytest.mark.parametrize("recording", RECORDINGS)
@settings(max_examples=16)
@given(data=st.data())
def test_who_comes_later_tells_only_what_began_under_his_eyes(recording: Recording, data: st.DataObject) -> None:
    timed = recording.timed
    ends = line_ends(timed)
    begin = data.draw(st.integers(1, ends[-4]))
    heard = listen(rechunk(timed, ends, range(begin)))
    assert recording.pockets[len(recording.pockets) - len(heard.landed) :] == heard.landed
    began = [event.number for event in heard.events if isinstance(event, SpinStarted)]
    assert len(began) == len(heard.landed) + heard.ends.count("void")
    assert heard.ends.count("missed") <= 1
    in_time(heard, recording.shown)


@pytest.mark.parametrize("recording", RECORDINGS)
@settings(max_examples=16)
@given(where=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_one_damaged_byte_costs_no_number(recording: Recording, where: float, byte: int) -> None:
    timed = recording.timed
    damaged = bytearray(b"".join(one for _, one in timed))
    damaged[int(where * len(damaged))] = byte
    ends = [0, *line_ends(timed)]
    heard = listen([(at, bytes(damaged[a:b])) for (at, _), (a, b) in zip(timed, pairwise(ends), strict=True)])
    assert heard.landed == recording.pockets
    in_time(heard, recording.shown)


@pytest.mark.parametrize("recording", RECORDINGS)
@settings(max_examples=16)
@given(data=st.data())
def test_damaged_bytes_never_make_a_number(recording: Recording, data: st.DataObject) -> None:
    """Any bytes changed to any others, with three good lines between: no wrong number, and none of them twice."""
    timed = recording.timed
    ends = line_ends(timed)
    wire = bytearray(b"".join(one for _, one in timed))
    place = data.draw(st.integers(0, 400))
    while place < len(wire):
        wire[place] = data.draw(st.one_of(st.sampled_from(b"0123456789;* \r\n"), st.integers(0, 255)))
        place = (
            ends[bisect_right(ends, place) + 3 :][0] + data.draw(st.integers(0, 1500))
            if place < ends[-5]
            else len(wire)
        )
    damaged = bytes(wire)
    heard = listen(
        [(at, damaged[a:b]) for (at, _), (a, b) in zip(timed, pairwise([0, *ends]), strict=True)], again=True
    )
    in_time(heard, recording.shown)
    remaining = iter(recording.pockets)
    assert all(pocket in remaining for pocket in heard.landed)
    assert restarts(heard) == 0


# ---- anything at all


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 7),
            st.sampled_from([0, 1, 2, 3, 255, 256]),
            st.sampled_from(["", "0", "7", "27"]),
            st.sampled_from([0, 0, 0, 1, 2, 4, 8, 15]),
            st.integers(1, 4),
            st.sampled_from([0.5, 0.5, 0.5, 2.0, 10.0, 400.0]),
        ),
        max_size=30,
    )
)
def test_any_lines_at_any_time_tell_a_lawful_story(walk: list[tuple[int, int, str, int, int, float]]) -> None:
    """Whatever a wheel says, over any number of sessions: each spin begins, is launched and ends once."""
    timed: Timed = []
    at = 0.0
    for state, spin, number, flags, times, pause in walk:
        if state == State.WINNING_NUMBER and number:
            timed.append((at, f"{number:>2}\r\n".encode()))
        for _ in range(times):
            timed.append((at, line(state, spin, number, flags)))
            at += HALF_SECOND
        at += pause
    heard = listen(timed, again=True)
    assert all(event.count >= 1 for event in heard.events if isinstance(event, SpinMissed))
    codes: set[str] = set()
    for told in heard.faults:
        assert (told[0] == "+") is (told[1:] not in codes)
        codes ^= {told[1:]}


# ---- the mirror: simulator -> cable -> driver -> events


class Cable:
    """What a cable does to the bytes from the wheel; "whole" is nothing."""

    def __init__(self, kind: str, rng: Random) -> None:
        self.kind = kind
        self._rng = rng
        self._cut_until = 0.0
        self._next_cut = rng.uniform(5.0, 60.0)

    def carry(self, data: bytes, now: float) -> list[bytes]:
        """What arrives."""
        rng = self._rng
        match self.kind:
            case "byte by byte":
                return [bytes([byte]) for byte in data]
            case "lossy":
                kept = bytes(byte for byte in data if rng.random() > 0.01)
                return [kept] if kept else []
            case "noisy":
                noisy = bytes(rng.randrange(256) if rng.random() < 0.003 else byte for byte in data)
                return [noisy] if noisy else []
            case "repeated":
                return [data] * rng.choice((1, 1, 1, 2, 6)) if data else []
            case "cut":
                if now >= self._next_cut:
                    self._cut_until = now + rng.choice((0.6, 2.0, 8.0, 30.0, 120.0))
                    self._next_cut = self._cut_until + rng.uniform(5.0, 90.0)
                return [data] if data and now >= self._cut_until else []
            case _:
                return [data] if data else []


class Mirror:
    """A wheel, a cable and a driver, until the wheel has ended `spins` spins."""

    def __init__(self, seed: int, kind: str, mode: int, faults: Sequence[str], spins: int) -> None:
        rng = Random(seed)
        self.wheel = Wheel(Random(rng.random()), mode=mode, spin=rng.choice((1, 120, 255)))
        self.heard = Heard()
        self.shown: list[tuple[float, str]] = []
        self._cable = Cable(kind, Random(rng.random()))
        self._rng = rng
        self._faults = faults
        self._spins = spins
        virtual_time(self._run)()
        lawful(self.heard.events)

    @property
    def truth(self) -> list[str]:
        """How the spins ended."""
        return [spin.pocket or "void" for spin in self.wheel.truth]

    def _arrive(self, data: bytes, now: float) -> None:
        if len(self.wheel.truth) > len(self.shown):
            self.shown += [(now, spin.pocket) for spin in self.wheel.truth[len(self.shown) :]]
        for piece in self._cable.carry(data, now):
            self.heard.link.feed(piece)

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        inject_at = self._rng.uniform(1.0, 40.0)
        stop_at = repair_at = float("inf")
        while loop.time() < stop_at:
            now = loop.time()
            self._arrive(self.wheel.wake(now), now)
            if now >= repair_at:
                self.wheel.repair(now)
                repair_at = float("inf")
            if self._faults and now >= inject_at:
                fault = self._rng.choice(self._faults)
                self.wheel.inject(fault, now)
                inject_at = now + self._rng.uniform(1.0, 90.0)
                if Wheel.faults[fault].person:
                    repair_at = min(repair_at, now + self._rng.uniform(40.0, 80.0))
            if stop_at == float("inf") and len(self.wheel.truth) >= self._spins:
                stop_at = now + 3.0
            await asyncio.sleep(min(max(self.wheel.due() - now, 0.01), 0.25))
        self.heard.link.hang_up()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        link, notebook = self.heard.link, self.heard.notebook
        link.on_write = lambda data: self._arrive(self.wheel.hear(data, loop.time()), loop.time())
        async with asyncio.TaskGroup() as group:
            living = group.create_task(self._live())
            while not living.done():
                with pytest.raises(LinkLost):
                    await CammeghSS2(WheelOptions(), notebook.memory).run(link, notebook)
                await asyncio.sleep(0)

    def never_wrong(self) -> None:
        """What was told is what truly fell, when it fell, once."""
        in_time(self.heard, [(at, pocket) for at, pocket in self.shown if pocket])


MODES = {
    "arcade": ARCADE,
    "no state 1": ARCADE - STARTED_AFTER_NUMBER,
    "no number line": ARCADE + NO_NUMBER_LINE,
    "asked": ARCADE - AUTOMATIC_STATUS,
}
HARMLESS = (
    "ball_with_rotor",
    "launch_failed",
    "launch_failed_briefly",
    "launch_retried",
    "misfires",
    "ball_not_detected",
    "wrong_direction",
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["whole", "byte by byte", "repeated"])
@pytest.mark.parametrize("seed", range(at_length(1, 10)))
def test_a_whole_cable_tells_every_spin_as_it_was(seed: int, kind: str, mode: str) -> None:
    mirror = Mirror(seed, kind, MODES[mode], HARMLESS, 8)
    assert mirror.heard.ends == mirror.truth
    assert mirror.heard.errors == []
    mirror.never_wrong()


@pytest.mark.parametrize("kind", ["lossy", "noisy", "cut"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(at_length(1, 20)))
def test_a_bad_cable_never_tells_a_wrong_number(seed: int, kind: str, mode: str) -> None:
    mirror = Mirror(seed, kind, MODES[mode], tuple(Wheel.faults), 10)
    mirror.never_wrong()
    remaining = iter(mirror.truth)
    assert all(one in remaining for one in mirror.heard.landed)


@pytest.mark.parametrize("seed", range(8))
def test_a_cut_cable_accounts_for_every_spin(seed: int) -> None:
    """With nothing wrong at the wheel: as many spins landed, missed or void as truly ended since the first line."""
    mirror = Mirror(seed, "cut", ARCADE, [], 12)
    assert len(mirror.heard.ends) <= len(mirror.truth)
    for told, pocket in zip(mirror.heard.ends, mirror.truth, strict=False):
        assert told in (pocket, "missed")
    mirror.never_wrong()


def test_the_mirror_does_tell_something_over_bad_cables() -> None:
    """Never wrong by never speaking would be no merit."""
    for kind in ("lossy", "noisy", "cut"):
        told = sum(len(Mirror(seed, kind, ARCADE, [], 12).heard.landed) for seed in range(3))
        assert told >= 18, kind


def test_a_wheel_knows_no_other_faults() -> None:
    with pytest.raises(ValueError, match="ball_with_rotor"):
        Wheel(Random(1)).inject("flood", 0.0)
