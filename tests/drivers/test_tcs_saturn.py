"""The Saturn wheel: exact frames, any chunking, any noise, the map, scripted answers, and the mirror over bad lines.

What is promised: a number is told once, only of a spin that was seen to begin and to be launched, with two witnesses
and nothing against it. What cannot be told is counted as missed or void.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any, Self

import msgspec
import pytest
from helpers import MemoryLink, Notebook, at_length, play, results, virtual_time
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from drivers.driver import CommandFailed, CommandRefused, DeviceRefused, LinkLost, Obeys
from drivers.tcs_saturn import ERRORS, Memory, SaturnOptions, Spin, TcsSaturn
from protocols.contract.commands import Ask, LaunchBall, ReadDice
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
    WagerPlaced,
    WheelStarted,
    WheelStopped,
)
from protocols.tcs_saturn import (
    MAX_FRAME,
    Broken,
    Decoder,
    Field,
    Frame,
    Garbage,
    Layout,
    Message,
    Misfit,
    State,
    Status,
    StatusCodec,
    encode,
)
from rules.macau.roulette import Roulette, RouletteOptions
from simulators.devices.line import Line
from simulators.devices.tcs_saturn import POCKETS, Saturn

# The working frames of the public code.
EXACT = {
    Frame("02", "SR1"): "01 30 32 02 53 52 31 03 7E 04",
    Frame("02", "SR2"): "01 30 32 02 53 52 32 03 7F 04",
    Frame("04", "SR3"): "01 30 34 02 53 52 33 03 42 04",
    Frame("04", "RC03"): "01 30 34 02 52 43 30 33 03 62 04",
}
SR2, SR3, RC03 = (bytes.fromhex(EXACT[frame]) for frame in list(EXACT)[1:])
CODEC = StatusCodec(Layout())
ONLINE = DeviceOnline(False, "TCS Saturn")

# ---- the wire


def decode(data: bytes, cuts: Sequence[int] = ()) -> list[Message]:
    """All messages, with `data` split at `cuts`; garbage that was told in pieces put together again."""
    decoder = Decoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    joined: list[Message] = []
    for a, b in pairwise(edges):
        for message in decoder.feed(data[a:b]):
            if isinstance(message, Garbage) and joined and isinstance(before := joined[-1], Garbage):
                joined[-1] = Garbage(before.raw + message.raw)
            else:
                joined.append(message)
        assert len(decoder._held) < MAX_FRAME
        assert decoder.waiting is bool(decoder._held)
    return joined


@pytest.mark.parametrize(("frame", "hexes"), EXACT.items())
def test_exact_frames_both_ways(frame: Frame, hexes: str) -> None:
    raw = bytes.fromhex(hexes)
    assert encode(frame) == raw
    assert decode(raw) == [replace(frame, raw=raw)]
    assert decode(raw, range(len(raw))) == [replace(frame, raw=raw)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x0102\x02SR2\x03\x80\x04", [Broken(b"\x0102\x02SR2\x03\x80\x04")]),  # an old attempt's checksum
        (b"\x0102\x02SR2\x03\x7e\x04", [Broken(b"\x0102\x02SR2\x03\x7e\x04")]),
        (b"\x010A\x02SR2\x03\x7f\x04", [Broken(b"\x010A\x02SR2\x03\x7f\x04")]),
        (b"\x0102SR2\x04", [Broken(b"\x0102SR2\x04")]),
        (b"\x01\x04", [Garbage(b"\x01\x04")]),
        (b"\x04\x04SR2", [Garbage(b"\x04\x04SR2")]),
        (b"\x0102\x02S" + SR2, [Garbage(b"\x0102\x02S"), Frame("02", "SR2", SR2)]),
        (SR2 + b"\x7f\x04" + SR3, [Frame("02", "SR2", SR2), Garbage(b"\x7f\x04"), Frame("04", "SR3", SR3)]),
        (b"\x01" + b"x" * MAX_FRAME + b"\x04", [Garbage(b"\x01" + b"x" * MAX_FRAME + b"\x04")]),
    ],
)
def test_invalid_frames(data: bytes, expected: list[Message]) -> None:
    assert decode(data) == expected
    assert decode(data, range(len(data))) == expected


FRAMES = st.builds(
    Frame,
    st.from_regex("[0-9]{2}", fullmatch=True).filter(str.isascii),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=MAX_FRAME - 7),
)
NOISE = st.binary(max_size=40) | st.text("\x01\x02\x03\x040S", max_size=20).map(str.encode) | st.binary(max_size=600)


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(0, 3000), max_size=30))
@settings(max_examples=at_length(25, 500), derandomize=True)
def test_any_chunking_gives_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encode, frames))
    assert decode(data, cuts) == [replace(frame, raw=encode(frame)) for frame in frames]


@given(st.lists(NOISE | FRAMES.map(encode), max_size=12), st.lists(st.integers(0, 3000), max_size=30))
@settings(max_examples=at_length(50, 1_000), derandomize=True)
def test_any_noise_is_told_whole(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    whole = decode(data + SR2)
    assert whole[-1] == Frame("02", "SR2", SR2)
    assert b"".join(message.raw for message in whole) == data + SR2
    assert decode(data + SR2, cuts) == whole


@pytest.mark.parametrize(
    "frame",
    [
        Frame("2", "SR2"),
        Frame("0x", "SR2"),
        Frame("02", ""),
        Frame("02", "a\x03"),
        Frame("02", "é"),
        Frame("²2", "a"),
        Frame("02", "x" * (MAX_FRAME - 6)),
    ],
)
def test_values_that_no_frame_can_carry(frame: Frame) -> None:
    with pytest.raises(ValueError, match="no frame can carry"):
        encode(frame)


# ---- the map


def status(state: State, number: str = "", spin: int = 7, *, error: bool = False, with_rotor: bool = False) -> Status:
    """A status of our assumed map."""
    return Status(state, spin, number, "clockwise" if with_rotor else "anticlockwise", "clockwise", 231, error)


def test_the_assumed_answer_and_the_known_place_of_its_error_flag() -> None:
    answer = CODEC.write(status(State.WINNING_NUMBER, "7", 123, error=True))
    assert answer[:-3] == b"\x0102\x02" + b"050123 710231" + b"0" * 31 + b"1"
    assert len(answer) - 3 == 49
    assert answer[48:49] == b"1"
    (frame,) = decode(answer)
    assert isinstance(frame, Frame)
    assert replace(CODEC.read(answer), raw=b"") == status(State.WINNING_NUMBER, "7", 123, error=True)


@given(
    st.builds(
        Status,
        st.sampled_from(State),
        st.integers(0, 9999),
        st.sampled_from(["", "00", *POCKETS]),
        st.sampled_from(["clockwise", "anticlockwise"]),
        st.sampled_from(["clockwise", "anticlockwise"]),
        st.integers(0, 999),
        st.booleans(),
    )
)
@settings(max_examples=at_length(25, 300), derandomize=True)
def test_every_status_both_ways(one: Status) -> None:
    assert replace(CODEC.read(CODEC.write(one)), raw=b"") == one


@pytest.mark.parametrize(
    ("at", "byte", "text"),
    [
        (5, b"9", "state, characters 5 to 5, is '9'"),
        (6, b"x", "spin, characters 6 to 9, is 'x007', which is no number"),
        (10, b"4", "number, characters 10 to 11, is '4 '"),
        (12, b"2", "ball"),
        (13, b" ", "rotor"),
        (14, b"-", "speed"),
        (48, b"2", "error, characters 48 to 48"),
    ],
)
def test_misfit_names_its_place(at: int, byte: bytes, text: str) -> None:
    answer = CODEC.write(status(State.PLACE_BETS))
    with pytest.raises(Misfit, match=text):
        CODEC.read(answer[:at] + byte + answer[at + 1 :])
    with pytest.raises(Misfit, match="20 characters, the map needs 49"):
        CODEC.read(answer[:20] + answer[-3:])


def test_another_map() -> None:
    layout = Layout(number=Field(30, 2), fill="0", blanks=("--",), pockets={"37": "00"}, place_bets=("2", "B"))
    codec = StatusCodec(layout)
    for pocket, text in (("0", b"00"), ("7", b"07"), ("00", b"37"), ("", b"--")):
        answer = codec.write(status(State.WINNING_NUMBER, pocket))
        assert answer[30:32] == text
        assert codec.read(answer).number == pocket
    answer = codec.write(status(State.PLACE_BETS))
    assert codec.read(answer[:5] + b"B" + answer[6:]).state is State.PLACE_BETS
    with pytest.raises(ValueError, match="has no '37'"):
        codec.write(status(State.WINNING_NUMBER, "37"))
    with pytest.raises(ValueError, match="does not fit into 6 to 9"):
        codec.write(status(State.WINNING_NUMBER, "1", 10_000))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"map": {"number": {"at": 8, "length": 2}}}, "fields spin and number overlap: spin 6 to 9, number 8 to 9"),
        ({"map": {"error": {"at": 5}}}, "error and state overlap"),
        ({"map": {"state": {"at": 3}}}, "map.state.at"),
        ({"map": {"started": ["2"]}}, "state: '2' stands for two things"),
        ({"map": {"started": []}}, "map.started"),
        ({"map": {"started": ["12"]}}, "state: '12' has 2 characters, the field has 1"),
        ({"map": {"clockwise": "1"}}, "ball: '1' stands for two things"),
        ({"map": {"pockets": {"37": "37"}}}, "cannot be the pocket '37'"),
        ({"map": {"blanks": [" 7"]}}, "number: ' 7' stands for two things"),
        ({"map": {"blanks": [""]}}, "number: '' has 0 characters"),
        ({"map": {"colour": 1}}, "unknown field `colour`"),
        ({"status_station": "2"}, "status_station"),
        ({"errors": {"ARE.9": "saturn.nothing"}}, "errors: there is no error 'saturn.nothing'"),
        ({"harmless": ["leak"]}, "harmless: there is no error 'leak'"),
        ({"launch_apart": 10}, "launch_apart"),
        ({"silence": 0}, "silence"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=text):
        msgspec.convert(options, SaturnOptions)


def test_seven_characters_tell_the_errors_apart() -> None:
    assert len({error.name[:7].strip() for error in ERRORS}) == len(ERRORS) == 13
    assert len({fault.code for fault in TcsSaturn.faults}) == len(TcsSaturn.faults) == len(ERRORS) + 4


# ---- scripted answers


class Desk:
    """A driver whose wheel is the test: it answers SR2 with `status`, SR3 with `error`, and keeps the questions."""

    def __init__(self, options: SaturnOptions | None = None, memory: bytes | None = None) -> None:
        self.status = status(State.STARTED)
        self.error = ""
        self.launched: Callable[[], None] = lambda: None
        self.mute = False
        self.wear: Callable[[bytes], bytes] = lambda answer: answer
        self.asked: list[tuple[float, bytes]] = []
        self.link = MemoryLink()
        self.link.on_write = self._answer
        self.notes = Notebook()
        self.driver = TcsSaturn(options or SaturnOptions(), memory)
        self.task = asyncio.create_task(self.driver.run(self.link, self.notes))

    def _answer(self, question: bytes) -> None:
        self.asked.append((asyncio.get_running_loop().time(), question))
        match question:
            case _ if self.mute:
                return
            case _ if question == RC03:
                self.launched()
            case _ if question == SR3:
                self.link.feed(self.wear(encode(Frame("04", f"0{self.error:<7.7}"))))
            case _:
                self.link.feed(self.wear(CODEC.write(self.status)))

    @property
    def events(self) -> list[Event]:
        return self.notes.events

    async def show(self, *statuses: Status, seconds: float = 2.0) -> list[Event]:
        """Each for `seconds`; the events told meanwhile."""
        before = len(self.events)
        for one in statuses:
            self.status = one
            await asyncio.sleep(seconds)
        return self.events[before:]

    async def end(self) -> None:
        """Hang up."""
        self.link.hang_up()
        with pytest.raises(LinkLost, match="hung up"):
            await self.task


def launch(*, with_rotor: bool = False) -> BallLaunched:
    return BallLaunched("clockwise" if with_rotor else "anticlockwise", "clockwise")


def codes(events: Sequence[Event]) -> list[str]:
    """+code and -code, of the faults."""
    told = []
    for event in events:
        if isinstance(event, DeviceFaulted):
            assert event.text
            assert event.remedy
            told.append(f"+{event.code}" + ("!" if event.severity == "error" else ""))
        elif isinstance(event, DeviceRecovered):
            told.append(f"-{event.code}")
    return told


SPIN = [status(State.PLACE_BETS), status(State.BALL_IN_RIM), status(State.NO_MORE_BETS)]
TOLD = [SpinStarted(7), launch(), BallSettling()]


@virtual_time
async def test_a_whole_spin_and_its_wire() -> None:
    desk = Desk()
    told = await desk.show(
        status(State.STARTED), *SPIN, status(State.WINNING_NUMBER, "7"), status(State.STARTED, "", 8)
    )
    assert told == [ONLINE, WheelStarted(), *TOLD, BallLanded("7"), WheelStarted()]
    landed = desk.notes.sightings[5]
    assert landed.wire == CODEC.write(status(State.WINNING_NUMBER, "7")) * 2
    told = await desk.show(status(State.TABLE_CLOSED, "", 8), seconds=5)
    assert told == [WheelStopped()]
    await desk.end()


@virtual_time
async def test_polls_every_200_ms_and_the_echo_is_left_out() -> None:
    desk = Desk()

    def echo(question: bytes) -> None:
        desk.link.feed(question)
        desk._answer(question)

    desk.link.on_write = echo
    assert await desk.show(status(State.STARTED), *SPIN) == [ONLINE, WheelStarted(), *TOLD]
    times = [at for at, _ in desk.asked]
    assert {round(b - a, 3) for a, b in pairwise(times)} == {0.2}
    assert {question for _, question in desk.asked} == {SR2}
    desk.mute = True  # only the echo is left
    await asyncio.sleep(4)
    with pytest.raises(LinkLost, match="no valid status for 3 s"):
        await desk.task


@virtual_time
async def test_one_answer_is_no_witness() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    steps = [status(State.WINNING_NUMBER, "7"), status(State.NO_MORE_BETS, spin=9), status(State.TABLE_CLOSED)]
    for step in steps:
        told = await desk.show(step, seconds=0.2)
        assert told == []
        told = await desk.show(status(State.NO_MORE_BETS), seconds=0.6)
        assert told == []
    assert await desk.show(status(State.WINNING_NUMBER, "7"), seconds=1.7) == [BallLanded("7")]
    await desk.end()


@virtual_time
async def test_the_same_answer_twice_is_one_witness() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    desk.wear = lambda answer: answer * 2
    told = await desk.show(status(State.TABLE_CLOSED), seconds=0.2)
    told += await desk.show(status(State.NO_MORE_BETS), seconds=1)
    assert told == []
    await desk.end()


@virtual_time
async def test_a_number_stands_before_it_is_told() -> None:
    desk = Desk(SaturnOptions(stands=3.0))
    await desk.show(status(State.STARTED), *SPIN)
    assert await desk.show(status(State.WINNING_NUMBER, "7"), seconds=2.9) == []
    assert await desk.show(status(State.WINNING_NUMBER, "7"), seconds=1) == [BallLanded("7")]
    await desk.end()


@virtual_time
async def test_even_one_answer_with_another_number_is_a_doubt_before_it_is_told() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    await desk.show(status(State.WINNING_NUMBER, "7"), seconds=0.2)
    told = await desk.show(status(State.WINNING_NUMBER, "20"), seconds=3)
    assert codes(told) == ["+saturn.number_changed"]
    assert told[1:] == [SpinVoided("number_changed")]
    await desk.show(*(replace(one, spin=8) for one in [*SPIN, status(State.WINNING_NUMBER, "9")]))
    assert BallLanded("9") in desk.events
    told = await desk.show(replace(status(State.WINNING_NUMBER, "8"), spin=8), seconds=0.2)
    told += await desk.show(replace(status(State.WINNING_NUMBER, "9"), spin=8))
    assert told == []  # what was told waits for two witnesses against it
    await desk.end()


@pytest.mark.parametrize("shown", [0.8, 3.0])
@virtual_time
async def test_a_number_that_changes_is_void_also_after_it_was_told(shown: float) -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    told = await desk.show(status(State.WINNING_NUMBER, "7"), seconds=shown)
    assert told == ([BallLanded("7")] if shown > 1 else [])
    told = await desk.show(status(State.WINNING_NUMBER, "20"), status(State.WINNING_NUMBER, "7"), seconds=3)
    assert codes(told) == ["+saturn.number_changed"]
    assert told[1:] == [SpinVoided("number_changed")]
    assert await desk.show(status(State.STARTED, "", 8)) == [WheelStarted()]
    told = await desk.show(*(replace(one, spin=8) for one in [*SPIN, status(State.WINNING_NUMBER, "9")]))
    assert told[-2:] == [BallLanded("9"), DeviceRecovered("saturn.number_changed")]
    await desk.end()


@virtual_time
async def test_a_number_shown_while_the_ball_runs_gives_the_map_away() -> None:
    desk = Desk()
    told = await desk.show(status(State.PLACE_BETS, "20"), status(State.BALL_IN_RIM, "20"))
    assert told[:3] == [ONLINE, SpinStarted(7), launch()]
    assert codes(told) == ["+saturn.map_doubtful!"]
    assert await desk.show(status(State.NO_MORE_BETS), status(State.WINNING_NUMBER, "20")) == [
        BallSettling(),
        SpinVoided("number_shown_too_early"),
    ]
    keeps = Desk(SaturnOptions(blank_first=False))
    told = await keeps.show(*(replace(one, number="20") for one in SPIN), status(State.WINNING_NUMBER, "3"))
    assert told == [ONLINE, *TOLD, BallLanded("3")]
    await desk.end()
    await keeps.end()


@virtual_time
async def test_joining_in_the_middle_tells_no_number() -> None:
    for first in range(1, 4):
        desk = Desk()
        shown = [*SPIN, status(State.WINNING_NUMBER, "7"), status(State.STARTED, "", 8)]
        told = await desk.show(*shown[first:])
        missed = [] if first == 3 else [SpinMissed(1)]
        assert told == [ONLINE, *missed, WheelStarted()]
        await desk.end()


@pytest.mark.parametrize("with_error", [False, True])
@virtual_time
async def test_a_spin_that_goes_back_is_void(with_error: bool) -> None:
    for back in (State.STARTED, State.PLACE_BETS, State.TABLE_CLOSED):
        desk = Desk()
        await desk.show(status(State.STARTED), *SPIN)
        desk.error = "ENCODER FAIL"
        told = await desk.show(status(back, error=with_error))
        reason = "table_closed" if back is State.TABLE_CLOSED else "restarted"
        assert told[0] == SpinVoided("error" if with_error else reason)
        await desk.end()


@virtual_time
async def test_the_counter_says_what_was_missed() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    assert await desk.show(status(State.PLACE_BETS, spin=10)) == [SpinMissed(3), SpinStarted(10)]
    told = await desk.show(status(State.STARTED, spin=1))
    assert codes(told) == ["+saturn.counter_reset"]
    assert told[1:] == [SpinMissed(1), WheelStarted()]
    told = await desk.show(*(replace(one, spin=1) for one in [*SPIN, status(State.WINNING_NUMBER, "0")]))
    assert told[-2:] == [BallLanded("0"), DeviceRecovered("saturn.counter_reset")]
    await desk.end()
    wrap = Desk()
    last = [replace(one, spin=9999) for one in [*SPIN, status(State.WINNING_NUMBER, "0")]]
    assert (await wrap.show(*last, status(State.PLACE_BETS, spin=0)))[-2:] == [BallLanded("0"), SpinStarted(0)]
    await wrap.end()


@virtual_time
async def test_a_number_that_never_stood_is_missed() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    assert await desk.show(status(State.WINNING_NUMBER, "7"), seconds=0.6) == []
    assert await desk.show(status(State.STARTED, spin=8)) == [SpinMissed(1), WheelStarted()]
    await desk.end()


@virtual_time
async def test_a_ball_with_the_rotor_is_void_whatever_the_wheel_says() -> None:
    desk = Desk()
    shown = [status(State.PLACE_BETS, with_rotor=True), status(State.BALL_IN_RIM, with_rotor=True)]
    told = await desk.show(*shown, status(State.NO_MORE_BETS), status(State.WINNING_NUMBER, "4"))
    assert told == [ONLINE, SpinStarted(7), launch(with_rotor=True), SpinVoided("ball_with_rotor")]
    await desk.end()


# ---- errors


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error.fault.code))
@virtual_time
async def test_each_error_with_the_ball_running(error: Any) -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    desk.error = error.name
    told = await desk.show(status(State.NO_MORE_BETS, error=True))
    assert codes(told) == [f"+{error.fault.code}"]
    reason = error.fault.code.removeprefix("saturn.")
    assert told[1:] == ([SpinVoided(reason)] if error.effect == "void" else [])
    assert sum(question == SR3 for _, question in desk.asked) >= 2
    assert all(b != SR3 for (_, a), (_, b) in pairwise(desk.asked) if a == SR3)  # the status is never left waiting
    told = await desk.show(status(State.WINNING_NUMBER, "5", error=True), seconds=3)
    expected: dict[str, list[Event]] = {"void": [], "number": [SpinVoided(reason)], "none": [BallLanded("5")]}
    assert told == expected[error.effect]
    assert codes(await desk.show(status(State.STARTED, spin=8))) == [f"-{error.fault.code}"]
    await desk.end()


@virtual_time
async def test_an_unknown_error_is_told_with_its_text_and_can_be_configured() -> None:
    desk = Desk()
    desk.error = "ARE.4"
    await desk.show(status(State.PLACE_BETS, error=True))
    (fault,) = (event for event in desk.events if isinstance(event, DeviceFaulted))
    assert (fault.code, fault.severity) == ("saturn.error", "warning")
    assert "'ARE.4'" in fault.text
    assert await desk.show(status(State.BALL_IN_RIM, error=True)) == [launch(), SpinVoided("error")]
    await desk.end()
    for text, options in (
        ("ARE.3", SaturnOptions()),
        ("are.9", SaturnOptions(errors={"ARE.9": "saturn.sensor_stuck"})),
    ):
        desk = Desk(options)
        desk.error = text
        assert codes(await desk.show(status(State.PLACE_BETS, error=True))) == ["+saturn.sensor_stuck"]
        await desk.end()


@virtual_time
async def test_a_shorter_error_field_guesses_nothing() -> None:
    desk = Desk(SaturnOptions(error_text=Field(5, 5)))
    desk.error = "WRONG BALL DIR"
    assert codes(await desk.show(status(State.PLACE_BETS, error=True))) == ["+saturn.error"]
    await desk.end()


@virtual_time
async def test_no_number_beside_an_error_that_nobody_can_read() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED), *SPIN)
    desk.wear = lambda answer: b"" if len(answer) < 20 else answer  # SR3 is never answered
    assert await desk.show(status(State.WINNING_NUMBER, "5", error=True), seconds=5) == []
    assert await desk.show(status(State.STARTED, spin=8, error=True)) == [SpinVoided("error"), WheelStarted()]
    await desk.end()


@virtual_time
async def test_an_error_behind_a_harmless_one_is_seen_before_the_number_is_told() -> None:
    desk = Desk()
    desk.error = "COMPRESSOR LEAK"
    await desk.show(*(replace(one, error=True) for one in SPIN))
    desk.error = "NO WIN NUM"
    told = await desk.show(status(State.WINNING_NUMBER, "5", error=True), seconds=4)
    assert codes(told) == ["+saturn.no_win_num"]
    assert told[1:] == [SpinVoided("no_win_num")]
    await desk.end()


@virtual_time
async def test_first_a_warning_then_an_error_in_the_same_cycle_then_recovered() -> None:
    desk = Desk()
    desk.error = "LAUNCH FAIL"
    bets, failing = status(State.PLACE_BETS), status(State.PLACE_BETS, error=True)
    told = await desk.show(bets, failing, bets, failing, *SPIN, status(State.WINNING_NUMBER, "2"))
    code = "saturn.launch_fail"
    assert codes(told) == [f"+{code}", f"-{code}", f"+{code}!", f"-{code}"]
    assert told[-1] == BallLanded("2")
    assert codes(await desk.show(replace(failing, spin=8))) == [f"+{code}"]  # the next cycle
    await desk.end()


@virtual_time
async def test_a_fault_outlives_a_restart_until_it_is_seen_cleared() -> None:
    desk = Desk()
    desk.error = "SENSOR STUCK"
    await desk.show(status(State.PLACE_BETS, error=True))
    await desk.end()
    again = Desk(memory=desk.notes.memory)
    again.error = "SENSOR STUCK"
    told = await again.show(status(State.PLACE_BETS, error=True), seconds=5)
    assert told == [replace(ONLINE, continuous=True)]
    assert codes(await again.show(status(State.PLACE_BETS))) == ["-saturn.sensor_stuck"]
    await again.end()


# ---- sessions


@virtual_time
async def test_a_restart_in_each_state_goes_on_with_the_spin() -> None:
    shown = [*SPIN, status(State.WINNING_NUMBER, "7"), status(State.STARTED, spin=8)]
    for kill in range(1, 5):
        desk = Desk()
        told = await desk.show(*shown[:kill])
        await desk.end()
        desk = Desk(memory=desk.notes.memory)
        told += await desk.show(*shown[max(kill - 1, 0) :])
        assert [event for event in told if not isinstance(event, DeviceOnline)] == [
            *TOLD,
            BallLanded("7"),
            WheelStarted(),
        ]
        assert told.count(ONLINE) == told.count(replace(ONLINE, continuous=True)) == 1
        await desk.end()


@pytest.mark.parametrize("cuts", at_length([[250, 20, 100]], [[400], [250, 20, 100], [100, 100, 100, 100]]), ids=str)
@pytest.mark.parametrize("long", range(5))
@virtual_time
async def test_a_state_may_last_long_and_the_line_be_cut_in_it(long: int, cuts: list[int]) -> None:
    """The absence is short, whatever the age of the last event: it is the same spin."""
    shown = [status(State.STARTED), *SPIN, status(State.WINNING_NUMBER, "7")]
    desk = Desk()
    told = await desk.show(*shown[:long])
    for seconds in cuts:
        told += await desk.show(shown[long], seconds=seconds)
        await desk.end()
        desk = Desk(memory=desk.notes.memory)
        desk.status = shown[long]
    told += await desk.show(*shown[long:])
    onlines = [ONLINE, *[replace(ONLINE, continuous=True)] * len(cuts)]
    assert [event for event in told if isinstance(event, DeviceOnline)] == onlines
    rest = [event for event in told if not isinstance(event, DeviceOnline)]
    assert rest == [WheelStarted(), *TOLD, BallLanded("7")]
    await desk.end()


@virtual_time
async def test_unchanged_memory_is_not_written_again() -> None:
    desk = Desk()
    commits = 0
    emit = desk.notes.__call__

    async def counted(sightings: Sequence[Any], memory: bytes | None = None) -> None:
        nonlocal commits
        commits += 1
        await emit(sightings, memory)

    desk.task.cancel()
    desk.task = asyncio.create_task(desk.driver.run(desk.link, counted))
    await desk.show(status(State.STARTED), seconds=600)
    assert commits == 2 + 9  # online, the rotor; then once in a minute
    await desk.show(status(State.PLACE_BETS), seconds=600)
    assert commits == 2 + 9 + 1 + 9
    await desk.show(*SPIN[1:], status(State.WINNING_NUMBER, "7"))
    commits = 0
    await desk.show(status(State.WINNING_NUMBER, "7"), seconds=600)
    assert commits == 10
    await desk.end()
    assert commits == 11  # when it was last seen
    again = asyncio.create_task(TcsSaturn(SaturnOptions(), desk.notes.memory).run(desk.link, counted))
    with pytest.raises(LinkLost):
        await again
    assert commits == 11


@virtual_time
async def test_a_fault_found_as_the_line_is_given_up_is_told() -> None:
    """The loop stood still for longer than a wheel may be silent, while the second answer to SR3 was on its way."""
    desk = Desk()
    loop = asyncio.get_running_loop()
    answer, errors = desk._answer, 0

    def after_a_stall(question: bytes) -> None:
        nonlocal errors
        errors += question == SR3
        if question == SR3 and errors == 2:
            loop._now += 4.0  # type: ignore[attr-defined]
        answer(question)

    def late(question: bytes) -> None:
        loop.call_later(0.05, after_a_stall, question)

    desk.link.on_write = late
    await desk.show(status(State.PLACE_BETS))
    desk.error = "SENSOR STUCK"
    desk.status = status(State.PLACE_BETS, error=True)
    with pytest.raises(LinkLost, match="no valid status"):
        await desk.task
    assert codes(desk.events) == ["+saturn.sensor_stuck"]
    again = Desk(memory=desk.notes.memory)
    again.error = "SENSOR STUCK"
    await again.show(status(State.PLACE_BETS, error=True), status(State.PLACE_BETS))
    assert codes(again.events) == ["-saturn.sensor_stuck"]
    await again.end()


@virtual_time
async def test_whether_bets_were_open_for_long_is_said_once() -> None:
    """By the first status; that the second one is later makes no other spin of them."""
    await asyncio.sleep(1000)
    desk = Desk()
    now = desk.link.stamp()
    desk.task.cancel()
    spin = Spin(spin=7, state=State.PLACE_BETS, at=now.at - timedelta(seconds=299.9), begun=True, tick=now.tick - 299.9)
    again = Desk(memory=msgspec.json.encode(Memory(spin)))
    told = await again.show(*SPIN, status(State.WINNING_NUMBER, "7"))
    assert told == [replace(ONLINE, continuous=True), *TOLD[1:], BallLanded("7")]
    await again.end()


@pytest.mark.parametrize(
    ("clock", "tick", "missed"),
    [
        (600, -20.0, []),  # set forward, while the wheel was switched off
        (20, None, []),  # a memory from before ticks were kept
        (600, None, [SpinMissed(6)]),
        (600, 1e6, []),  # the computer was switched off, too
        (-3000, -600.0, [SpinMissed(6)]),  # set back, while it went round
        (-3000, -36_000.0, []),  # too long for six spins
    ],
)
@virtual_time
async def test_only_time_that_passed_takes_a_wheel_round(clock: float, tick: float | None, missed: list[Event]) -> None:
    desk = Desk()
    await desk.show(status(State.STARTED))
    await desk.end()
    memory = msgspec.json.decode(desk.notes.memory or b"", type=Memory)
    assert memory.spin is not None
    at = desk.link.stamp().at - timedelta(seconds=clock)
    tick = None if tick is None else desk.link.stamp().tick + tick
    spin = replace(memory.spin, spin=9995, at=at, tick=tick)
    again = Desk(memory=msgspec.json.encode(replace(memory, spin=spin)))
    told = await again.show(status(State.STARTED, spin=1))
    assert told[0] == replace(ONLINE, continuous=False)
    assert [event for event in told if isinstance(event, SpinMissed)] == missed
    await again.end()


@pytest.mark.parametrize(("shortest", "missed"), [(15.0, [SpinMissed(1)]), (0.6, [SpinMissed(2)])])
@virtual_time
async def test_in_two_seconds_only_a_wheel_that_plays_so_fast_goes_round(shortest: float, missed: list[Event]) -> None:
    """What ran is over, and the one after it came and went, in a pit at 25 times its speed."""
    options = SaturnOptions(shortest_spin=shortest)
    desk = Desk(options)
    await desk.show(*(replace(one, spin=9999) for one in SPIN))
    await desk.end()
    await asyncio.sleep(2)
    again = Desk(options, desk.notes.memory)
    told = await again.show(status(State.STARTED, spin=1))
    assert [event for event in told if isinstance(event, SpinMissed)] == missed
    await again.end()


@pytest.mark.parametrize("number", ["", "7"])
@pytest.mark.parametrize(("left", "back"), [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (0, 1), (0, 2), (0, 3)])
@virtual_time
async def test_after_a_long_absence_the_same_counter_is_not_the_same_spin(left: int, back: int, number: str) -> None:
    """Nor is its number that spin's."""
    shown = [*SPIN, status(State.WINNING_NUMBER, number)]
    desk = Desk()
    await desk.show(*shown[: left + 1])
    await desk.end()
    await asyncio.sleep(600)
    again = Desk(memory=desk.notes.memory)
    told = await again.show(*shown[back:])
    assert told == [DeviceOnline(left > 0, "TCS Saturn"), SpinMissed(1)]
    assert await again.show(status(State.STARTED, spin=8)) == [WheelStarted()]
    await again.end()


@pytest.mark.parametrize("left", [1, 2])
@virtual_time
async def test_a_ball_that_ran_long_ago_is_missed_and_the_bets_are_the_next_ones(left: int) -> None:
    desk = Desk()
    await desk.show(*SPIN[: left + 1])
    await desk.end()
    await asyncio.sleep(600)
    again = Desk(memory=desk.notes.memory)
    told = await again.show(*SPIN, status(State.WINNING_NUMBER, "7"))
    assert told == [replace(ONLINE, continuous=True), SpinMissed(1), *TOLD, BallLanded("7")]
    await again.end()


@virtual_time
async def test_bets_that_are_still_open_after_a_long_absence_are_those_of_a_spin_that_begins() -> None:
    """Nothing proves that one was missed: none is told. Nor that it is the same: what was bet on it comes back."""
    desk = Desk()
    told = await desk.show(status(State.STARTED), SPIN[0])
    await desk.end()
    await asyncio.sleep(600)
    again = Desk(memory=desk.notes.memory)
    after = await again.show(*SPIN, status(State.WINNING_NUMBER, "7"), status(State.STARTED, spin=8))
    assert after == [ONLINE, *TOLD, BallLanded("7"), WheelStarted()]
    await again.end()
    events = [*told, WagerPlaced(1, "red", 10), *after]
    lost, good = results(play(Roulette(RouletteOptions(betting="no_more_bets")), events))
    assert lost.void is not None
    assert lost.void.bets == "returned"
    assert (good.void, good.settlements, good.outcome["pocket"]) == (None, (), "7")


@virtual_time
@pytest.mark.parametrize(("back_in", "missed"), [(State.STARTED, 6), (State.PLACE_BETS, 6), (State.BALL_IN_RIM, 7)])
async def test_a_wheel_switched_off_meanwhile_that_counts_as_far_again(back_in: State, missed: int) -> None:
    """It never spins under the counter of a spin that it has counted: what ended unseen is told."""
    desk = Desk()
    await desk.show(*SPIN, status(State.WINNING_NUMBER, "7"))
    assert desk.events[-1] == BallLanded("7")
    await desk.end()
    await asyncio.sleep(300)
    again = Desk(memory=desk.notes.memory)
    shown = [status(State.STARTED), *SPIN, status(State.WINNING_NUMBER, "9"), status(State.STARTED, spin=8)]
    told = await again.show(*shown[[one.state for one in shown].index(back_in) :])
    seen_to_begin = back_in is not State.BALL_IN_RIM
    assert codes(told) == ["+saturn.counter_reset", *["-saturn.counter_reset"] * seen_to_begin]
    assert sum(event.count for event in told if isinstance(event, SpinMissed)) == missed
    assert [event for event in told if isinstance(event, BallLanded)] == [BallLanded("9")] * seen_to_begin
    await again.end()


@virtual_time
async def test_another_number_under_the_counter_of_a_spin_told_long_ago_is_not_that_spins() -> None:
    """That one is not taken back: it was another, as far again."""
    desk = Desk()
    await desk.show(*SPIN, status(State.WINNING_NUMBER, "7"))
    await desk.end()
    await asyncio.sleep(600)
    again = Desk(memory=desk.notes.memory)
    told = await again.show(status(State.WINNING_NUMBER, "9"), status(State.STARTED, spin=8))
    assert [event for event in told if isinstance(event, SpinMissed | SpinVoided)] == [SpinMissed(6), SpinMissed(1)]
    await again.end()


@virtual_time
async def test_a_spin_that_was_missed_is_not_another_because_the_clock_was_set() -> None:
    """Nobody knows its number: what the wheel shows may well be that. Life 64004898 had six spins too many."""
    desk = Desk()
    await desk.show(status(State.PLACE_BETS, spin=6), status(State.WINNING_NUMBER, "7"))
    await desk.end()
    await asyncio.sleep(600)
    again = Desk(memory=desk.notes.memory)
    told = await again.show(status(State.WINNING_NUMBER, "7"), status(State.STARTED, spin=8))
    assert not [event for event in told if isinstance(event, SpinMissed | SpinVoided)]
    await again.end()


@virtual_time
async def test_a_spin_that_was_told_is_not_missed_when_the_table_was_closed_before_the_counter_went_on() -> None:
    desk = Desk()
    await desk.show(*SPIN, status(State.WINNING_NUMBER, "7"))
    told = await desk.show(status(State.TABLE_CLOSED), status(State.STARTED), status(State.PLACE_BETS, spin=8))
    assert told == [WheelStopped(), WheelStarted(), SpinStarted(8)]
    await desk.end()


@pytest.mark.parametrize("memory", [b"", b"nonsense", b"\xff", b'{"spin": 3}'])
def test_a_memory_that_is_not_ours_is_no_memory(memory: bytes) -> None:
    assert TcsSaturn(SaturnOptions(), memory)._spin is None


@virtual_time
async def test_silence_is_a_lost_line_and_says_nothing() -> None:
    desk = Desk()
    desk.mute = True
    began = asyncio.get_running_loop().time()
    with pytest.raises(LinkLost, match="no valid status for 3 s"):
        await desk.task
    assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.25)
    assert desk.events == []


@virtual_time
async def test_noise_is_a_lost_line() -> None:
    desk = Desk()
    await desk.show(status(State.STARTED))
    desk.wear = lambda answer: bytes(byte ^ 0x55 for byte in answer)
    with pytest.raises(LinkLost):
        await desk.task


@virtual_time
async def test_a_map_that_never_fits_is_refused_with_the_place() -> None:
    desk = Desk(SaturnOptions(map=Layout(state=Field(20))))
    with pytest.raises(DeviceRefused, match=r"fits the map: .*state, characters 20 to 20, is '0'.*correct `map`"):
        await desk.task
    assert desk.events == []


@virtual_time
async def test_answers_without_a_checksum_only_where_configured() -> None:
    def wear(answer: bytes) -> bytes:
        return answer[:-2] + b"\x04"

    strict = Desk()
    strict.wear = wear
    with pytest.raises(LinkLost):
        await strict.task
    loose = Desk(SaturnOptions(checksum=False))
    loose.wear = wear
    assert await loose.show(*SPIN, status(State.WINNING_NUMBER, "7")) == [ONLINE, *TOLD, BallLanded("7")]
    await loose.end()


@virtual_time
async def test_other_digits_where_configured() -> None:
    desk = Desk(SaturnOptions(status_station="10", error_station="11", launch_station="12"))
    await desk.show(status(State.PLACE_BETS))
    assert {question for _, question in desk.asked} == {encode(Frame("10", "SR2"))}
    await desk.end()


@virtual_time
async def test_no_poll_while_an_answer_drips_in() -> None:
    desk = Desk()
    drips: list[asyncio.Task[None]] = []

    async def drip(answer: bytes) -> None:
        for byte in answer:
            await asyncio.sleep(0.02)
            desk.link.feed(bytes([byte]))

    def answer(question: bytes) -> None:
        desk.asked.append((asyncio.get_running_loop().time(), question))
        drips.append(asyncio.create_task(drip(CODEC.write(desk.status))))

    desk.link.on_write = answer
    await desk.show(status(State.STARTED), seconds=5)
    assert desk.events == [ONLINE, WheelStarted()]
    assert min(b - a for (a, _), (b, _) in pairwise(desk.asked)) > 1.0
    await desk.end()
    await asyncio.gather(*drips)


# ---- commands


@virtual_time
async def test_a_launch_is_done_when_the_ball_is_seen() -> None:
    desk = Desk()
    assert isinstance(desk.driver, Obeys)
    await desk.show(status(State.PLACE_BETS))
    desk.launched = lambda: setattr(desk, "status", status(State.BALL_IN_RIM))
    began = asyncio.get_running_loop().time()
    told = await desk.driver.obey(LaunchBall())
    assert told == {"spin": 7, "ball": "anticlockwise", "rotor": "clockwise"}
    assert asyncio.get_running_loop().time() - began < 1.0
    assert sum(question == RC03 for _, question in desk.asked) == 1
    assert desk.events[-1] == launch()
    await desk.end()


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (status(State.STARTED), "not in its betting phase but in 'started'"),
        (status(State.BALL_IN_RIM), "a ball runs"),
        (status(State.NO_MORE_BETS), "a ball runs"),
        (status(State.WINNING_NUMBER, "7"), "not in its betting phase"),
        (status(State.TABLE_CLOSED), "not in its betting phase"),
        (status(State.PLACE_BETS, error=True), r"an error is pending \(saturn.launch_fail\)"),
    ],
)
@virtual_time
async def test_a_launch_is_refused_when_unsafe(shown: Status, text: str) -> None:
    desk = Desk()
    desk.error = "LAUNCH FAIL"
    await desk.show(shown)
    with pytest.raises(CommandRefused, match=text):
        await desk.driver.obey(LaunchBall())
    await desk.end()
    assert RC03 not in {question for _, question in desk.asked}


@virtual_time
async def test_a_launch_waits_for_no_harmless_error() -> None:
    desk = Desk()
    desk.error = "COMPRESSOR LEAK"
    await desk.show(status(State.PLACE_BETS, error=True))
    desk.launched = lambda: setattr(desk, "status", status(State.BALL_IN_RIM, error=True))
    assert (await desk.driver.obey(LaunchBall()))["spin"] == 7
    await desk.end()


@virtual_time
async def test_a_launch_is_refused_without_a_line_or_a_status() -> None:
    desk = Desk()
    with pytest.raises(CommandRefused, match="no line"):
        await desk.driver.obey(LaunchBall())
    desk.mute = True
    await asyncio.sleep(1)
    for command in (LaunchBall(), Ask("status")):
        with pytest.raises(CommandRefused, match="state is unknown now"):
            await desk.driver.obey(command)
    desk.mute = False
    await desk.show(status(State.PLACE_BETS))
    desk.mute = True
    await asyncio.sleep(1.5)
    for command in (LaunchBall(), Ask("status")):
        with pytest.raises(CommandRefused, match="state is unknown now"):
            await desk.driver.obey(command)
    await desk.end()


@virtual_time
async def test_the_state_is_looked_at_again_when_the_launch_is_sent() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS), seconds=2.01)
    desk.driver._before = None  # something came in between
    with pytest.raises(CommandRefused, match="unknown now"):
        await desk.driver.obey(LaunchBall())
    await asyncio.sleep(1)
    order = asyncio.create_task(desk.driver.obey(LaunchBall()))
    await asyncio.sleep(0)
    believed = desk.driver._believed
    assert believed is not None
    desk.driver._believed = replace(believed, state=State.BALL_IN_RIM)
    with pytest.raises(CommandRefused, match="a ball runs"):
        await order
    await desk.end()
    assert RC03 not in {question for _, question in desk.asked}


@virtual_time
async def test_launches_are_twenty_seconds_apart_also_after_a_restart() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS))
    desk.launched = lambda: setattr(desk, "status", status(State.BALL_IN_RIM))
    await desk.driver.obey(LaunchBall())
    await desk.show(status(State.PLACE_BETS))
    with pytest.raises(CommandRefused, match=r"the last launch was [23] s ago; leave 20 s between two"):
        await desk.driver.obey(LaunchBall())
    await desk.end()
    again = Desk(memory=desk.notes.memory)
    await again.show(status(State.PLACE_BETS), seconds=10)
    with pytest.raises(CommandRefused, match=r"the last launch was 1[23] s ago"):
        await again.driver.obey(LaunchBall())
    await asyncio.sleep(8)
    again.launched = lambda: setattr(again, "status", status(State.BALL_IN_RIM))
    assert (await again.driver.obey(LaunchBall()))["spin"] == 7
    await again.end()


@virtual_time
async def test_launches_are_twenty_seconds_apart_also_where_the_line_was_cut_before_the_ball_was_seen() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS))
    fired: list[Any] = []

    def fire() -> None:
        assert desk.notes.memory is not None
        fired.append(msgspec.json.decode(desk.notes.memory, type=Memory).fired)

    desk.launched = fire
    order = asyncio.create_task(desk.driver.obey(LaunchBall()))
    await asyncio.sleep(1)
    await desk.end()
    with pytest.raises(CommandFailed, match="the line was lost"):
        await order
    assert len(fired) == 1
    assert fired[0] is not None  # it was durable before the ball was fired
    again = Desk(memory=desk.notes.memory)
    await again.show(status(State.PLACE_BETS), seconds=3)
    with pytest.raises(CommandRefused, match=r"the last launch was [34] s ago; leave 20 s between two"):
        await again.driver.obey(LaunchBall())
    await asyncio.sleep(15)
    with pytest.raises(CommandRefused, match=r"the last launch was 1[89] s ago"):
        await again.driver.obey(LaunchBall())
    assert RC03 not in {question for _, question in again.asked}
    for clock in (-3600.0, 3600.0):  # set meanwhile
        another = Desk(memory=again.notes.memory)
        another.link.set = clock
        await another.show(status(State.PLACE_BETS), seconds=0.5)
        with pytest.raises(CommandRefused, match=r"the last launch was (19|20) s ago"):
            await another.driver.obey(LaunchBall())
        assert RC03 not in {question for _, question in another.asked}
        await another.end()
    await asyncio.sleep(2)
    again.launched = lambda: setattr(again, "status", status(State.BALL_IN_RIM))
    assert (await again.driver.obey(LaunchBall()))["spin"] == 7
    await again.end()


@pytest.mark.parametrize(
    ("commit", "within", "text"), [(2.5, 10.0, "state is unknown now"), (5.0, 1.0, "nothing was sent")]
)
@virtual_time
async def test_a_launch_that_is_not_durable_soon_is_none(commit: float, within: float, text: str) -> None:
    """What was seen of the wheel is too old by then, or who ordered it was told that nothing was sent."""

    class Slow(Notebook):
        seconds = 0.0

        async def __call__(self, sightings: Sequence[Any], memory: bytes | None = None) -> None:
            await asyncio.sleep(self.seconds)
            await super().__call__(sightings, memory)

    desk = Desk(SaturnOptions(launch_within=within))
    desk.task.cancel()
    desk.notes = slow = Slow()
    desk.task = asyncio.create_task(desk.driver.run(desk.link, slow))
    await desk.show(status(State.PLACE_BETS))
    slow.seconds = commit
    with pytest.raises(CommandRefused, match=text):
        await desk.driver.obey(LaunchBall())
    slow.seconds = 0.0
    await asyncio.sleep(3)
    assert RC03 not in {question for _, question in desk.asked}
    desk.launched = lambda: setattr(desk, "status", status(State.BALL_IN_RIM))
    assert (await desk.driver.obey(LaunchBall()))["spin"] == 7  # no ball was fired before
    await desk.end()


@virtual_time
async def test_a_launch_whose_ball_nobody_sees_failed() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS))
    with pytest.raises(CommandFailed, match="no ball is seen in the rim"):
        await desk.driver.obey(LaunchBall())
    assert sum(question == RC03 for _, question in desk.asked) == 1
    await desk.end()


@virtual_time
async def test_a_launch_that_the_wheel_reports_as_failed() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS))
    desk.error = "LAUNCH FAIL"
    desk.launched = lambda: setattr(desk, "status", status(State.PLACE_BETS, error=True))
    with pytest.raises(CommandFailed, match=r"saturn\.launch_fail: the ball was not launched"):
        await desk.driver.obey(LaunchBall())
    await desk.end()


@virtual_time
async def test_a_lost_line_ends_a_command() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS))
    order = asyncio.create_task(desk.driver.obey(LaunchBall()))
    await asyncio.sleep(1)
    with pytest.raises(CommandRefused, match="another command is under way"):
        await desk.driver.obey(LaunchBall())
    await desk.end()
    with pytest.raises(CommandFailed, match="the line was lost"):
        await order
    early = Desk()
    await early.show(status(State.PLACE_BETS), seconds=2.05)
    order = asyncio.create_task(early.driver.obey(LaunchBall()))
    await asyncio.sleep(0)
    await early.end()
    with pytest.raises(CommandRefused, match="lost before the command was sent"):
        await order
    assert RC03 not in {question for _, question in early.asked}


@virtual_time
async def test_asking_for_error_and_status() -> None:
    desk = Desk()
    await desk.show(status(State.PLACE_BETS))
    assert await desk.driver.obey(Ask("error")) == {"error": "", "code": "", "pending": False}
    desk.error = "ENCODER FAIL"
    await desk.show(status(State.PLACE_BETS, error=True))
    expected = {"error": "ENCODER", "code": "saturn.encoder_fail", "pending": True}
    assert await desk.driver.obey(Ask("error")) == expected
    told = await desk.driver.obey(Ask("status"))
    assert told == {
        "state": "place bets",
        "spin": 7,
        "speed": 23.1,
        "error": True,
        "ball": "anticlockwise",
        "rotor": "clockwise",
    }
    with pytest.raises(CommandRefused, match="cannot be asked for 'weight'; it answers error, status"):
        await desk.driver.obey(Ask("weight"))
    with pytest.raises(CommandRefused, match="has no such command"):
        await desk.driver.obey(ReadDice())
    desk.wear = lambda answer: b"" if len(answer) < 20 else answer
    with pytest.raises(CommandFailed, match="twice with the same text"):
        await desk.driver.obey(Ask("error"))
    await desk.end()


# ---- anything at all


@given(
    st.lists(
        st.tuples(
            st.sampled_from(State),
            st.sampled_from([0, 1, 2, 3, 9998, 9999]),
            st.sampled_from(["", "0", "7", "27"]),
            st.booleans(),
            st.booleans(),
            st.sampled_from(["NO WIN NUM", "LAUNCH FAIL", "COMPRESSOR LEAK", "?"]),
            st.sampled_from([0.2, 0.6, 2.0, 2.0, 4.0]),
        ),
        max_size=25,
    )
)
@settings(max_examples=at_length(25, 300), derandomize=True)
def test_any_answers_tell_a_lawful_story(walk: list[tuple[State, int, str, bool, bool, str, float]]) -> None:
    @virtual_time
    async def play() -> None:
        desk = Desk()
        for state, spin, number, error, with_rotor, text, seconds in walk:
            desk.error = text
            await desk.show(status(state, number, spin, error=error, with_rotor=with_rotor), seconds=seconds)
        await desk.end()
        lawful(desk.events)

    play()


def lawful(events: Sequence[Event]) -> None:
    """Each number belongs to one spin that began and was launched before; faults begin and end in turn."""
    begun = launched = landed = False
    open_codes: set[str] = set()
    for event in events:
        match event:
            case SpinStarted():
                begun, launched, landed = True, False, False
            case BallLaunched():
                assert begun
                assert not launched
                launched = True
            case BallLanded():
                assert launched
                begun = launched = False
                landed = True
            case SpinVoided():
                assert begun or landed
                begun = launched = landed = False
            case DeviceFaulted(code=code):
                assert code not in open_codes or code in ("saturn.counter_reset", "saturn.number_changed")
                open_codes.add(code)
            case DeviceRecovered(code=code):
                open_codes.remove(code)
            case _:
                pass


# ---- the mirror: simulator -> line -> driver -> events


class Mirror:
    """A wheel, a line and sessions of the driver, one after the other; acts are done as the test says."""

    def __init__(self, seed: int, cable: str = "whole", *, options: SaturnOptions | None = None, **wheel: Any) -> None:
        self.rng = Random(seed)
        self.wheel = Saturn(Random(self.rng.random()), **wheel)
        self.line = Line(Random(self.rng.random()))
        self.notes = Notebook()
        self.offline = 0
        self.driver: TcsSaturn | None = None
        self._options = options or SaturnOptions()
        self._cable = cable
        self._link: MemoryLink | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._live()), asyncio.create_task(self._sessions())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        done = await asyncio.gather(*self._tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done), done
        lawful(self.notes.events)

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            self._arrive(self.line.to_host(self.wheel.wake(now), now))
            if self.line.plug_at < float("inf") and self._link is not None:
                self._link.hang_up()
            due = min(self.wheel.due(), self.line.due())
            assert self.wheel.due() > now
            await asyncio.sleep(min(max(due - now, 0.001), 0.25))

    def _written(self, data: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self._arrive(self.line.to_host(self.wheel.hear(self.line.to_device(data, now), now), now))

    def _arrive(self, data: bytes) -> None:
        if self._link is None:
            return
        match self._cable:
            case "byte by byte":
                pieces = [bytes([byte]) for byte in data]
            case "lossy":
                pieces = [bytes(byte for byte in data if self.rng.random() > 0.004)]
            case "noisy":
                pieces = [bytes(self.rng.randrange(256) if self.rng.random() < 0.004 else byte for byte in data)]
            case _:
                pieces = [data]
        for piece in pieces:
            if piece:
                self._link.feed(piece)

    async def _sessions(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self.line.plug_at < float("inf"):
                await asyncio.sleep(self.line.plug_at - loop.time())
            self.line.plug_at = float("inf")
            self._link = MemoryLink()
            self._link.on_write = self._written
            self.driver = TcsSaturn(self._options, self.notes.memory)
            try:
                await self.driver.run(self._link, self.notes)
            except LinkLost:
                self._link = None
                self.offline += 1
            await asyncio.sleep(0.5)

    async def until(self, true: Callable[[], bool], limit: float = 900.0) -> None:
        """Let time pass."""
        async with asyncio.timeout(limit):
            while not true():  # noqa: ASYNC110 - the wheel is no task and sets no events
                await asyncio.sleep(0.05)

    async def spins(self, count: int) -> None:
        """Until so many more spins have ended, and been told."""
        goal = len(self.wheel.truth) + count
        await self.until(lambda: len(self.wheel.truth) >= goal)
        await asyncio.sleep(4)

    @property
    def truth(self) -> list[str]:
        return ["void" if spin.reason else spin.pocket for spin in self.wheel.truth]

    @property
    def ends(self) -> list[str]:
        """How each spin ended, as told."""
        ends: list[str] = []
        for event in self.notes.events:
            match event:
                case BallLanded(pocket=pocket):
                    ends.append(pocket)
                case SpinVoided():
                    ends.append("void")
                case SpinMissed(count=count):
                    ends += ["void"] * count
                case _:
                    pass
        return ends


@pytest.mark.parametrize("cable", ["whole", "byte by byte", "lossy", "noisy"])
@pytest.mark.parametrize("seed", range(at_length(1, 10)))
@virtual_time
async def test_every_spin_is_told_as_it_was(seed: int, cable: str) -> None:
    async with Mirror(seed, cable, spin=Random(seed).choice((1, 120, 9997))) as mirror:
        await mirror.spins(6)
        assert mirror.ends == mirror.truth
        assert "void" not in mirror.truth
        turns = [event for event in mirror.notes.events if isinstance(event, BallLaunched)]
        assert all(a.rotor not in (b.rotor, a.direction) for a, b in pairwise(turns))
        assert mirror.offline == 0


def test_every_fault_of_the_line_is_answered_for_and_every_error_has_a_trouble() -> None:
    assert tuple(Saturn.line) == Line.FAULTS
    told = {code for ailment in Saturn.faults.values() for code in ailment.told if code.startswith("saturn.")}
    assert told == {fault.code for fault in TcsSaturn.faults} - {"saturn.map_doubtful"}


@virtual_time
async def test_two_failed_launches_are_a_warning_and_an_error() -> None:
    async with Mirror(5) as mirror:
        mirror.wheel.inject("ball_not_launched", 0.0)
        await mirror.spins(1)
        code = "saturn.launch_fail"
        assert codes(mirror.notes.events) == [f"+{code}", f"-{code}", f"+{code}!"]


@pytest.mark.parametrize("seed", range(at_length(1, 20)))
@virtual_time
async def test_any_troubles_one_after_the_other_never_tell_a_wrong_number(seed: int) -> None:
    # On a bad line the first of two numbers may not arrive; then the second is all that anybody knows.
    faults = [fault for fault in Saturn.faults if fault != "number_bounces"]
    async with Mirror(seed, "noisy") as mirror:
        loop = asyncio.get_running_loop()
        for _ in range(25):
            if mirror.rng.random() < 0.6:
                mirror.wheel.inject(mirror.rng.choice(faults), loop.time())
            else:
                mirror.line.inject(mirror.rng.choice(Line.FAULTS), loop.time())
            await asyncio.sleep(mirror.rng.uniform(5, 60))
            mirror.wheel.repair(loop.time())
        while mirror.wheel._troubles:
            await asyncio.sleep(20)
            mirror.wheel.repair(loop.time())
        await asyncio.sleep(120)
        mirror.wheel.repair(loop.time())
        await mirror.spins(3)
        remaining = iter(mirror.truth)
        landed = [end for end in mirror.ends if end != "void"]
        assert all(pocket in remaining for pocket in landed)
        assert landed[-1] == mirror.truth[-1]
        assert len(landed) >= 0.8 * len([pocket for pocket in mirror.truth if pocket != "void"])


@virtual_time
async def test_a_wheel_that_waits_for_its_host_is_launched_by_command() -> None:
    async with Mirror(3, manual=True) as mirror:
        for _ in range(3):
            await mirror.until(lambda: mirror.wheel.state is State.PLACE_BETS)
            await asyncio.sleep(25)
            assert mirror.wheel.state is State.PLACE_BETS
            assert mirror.driver is not None
            told = await mirror.driver.obey(LaunchBall())
            assert told["ball"] != told["rotor"]
            with pytest.raises(CommandRefused):
                await mirror.driver.obey(LaunchBall())
            await mirror.spins(1)
        assert mirror.ends == mirror.truth
        assert mirror.wheel.misfires == 0
        assert mirror.driver is not None
        mirror.wheel.inject("launch_fail", 0.0)
        await mirror.until(lambda: mirror.wheel.state is State.PLACE_BETS)
        await asyncio.sleep(2)
        with pytest.raises(CommandFailed, match="launch_fail"):
            await mirror.driver.obey(LaunchBall())
        await mirror.spins(1)
        assert mirror.ends == mirror.truth
        assert await mirror.driver.obey(Ask("error")) == {"error": "", "code": "", "pending": False}


@virtual_time
async def test_the_tables_keys() -> None:
    async with Mirror(4, closed=True) as mirror:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(5)
        assert mirror.notes.events == [ONLINE, WheelStopped()]
        mirror.wheel.acts()["open_table"](loop.time())
        await mirror.until(lambda: bool(mirror.truth))
        mirror.wheel.close_table()  # the number is shown to its end
        await asyncio.sleep(10)
        assert mirror.ends == mirror.truth != ["void"]
        assert mirror.notes.events[-1] == WheelStopped()
        mirror.wheel.open_table(loop.time())
        await mirror.until(lambda: mirror.wheel.state is State.BALL_IN_RIM)
        await asyncio.sleep(1)
        mirror.wheel.acts()["close_table"](loop.time())
        await asyncio.sleep(1)
        assert mirror.notes.events[-2:] == [SpinVoided("table_closed"), WheelStopped()]
        assert mirror.ends == mirror.truth
        assert mirror.wheel.due() == float("inf")


@pytest.mark.parametrize("fault", Saturn.faults)
@pytest.mark.parametrize("landed", [False, True])
def test_a_closed_table_stays_closed_whatever_befalls_it(fault: str, landed: bool) -> None:
    """Nobody stands there any more: a wheel that spun on would make rounds without a dealer."""
    wheel = Saturn(Random(6))
    while not wheel.truth:
        wheel.wake(wheel.due())
    if not landed:
        wheel.wake(wheel.due())
    now = 100.0
    wheel.close_table(now)
    wheel.inject(fault, now + 0.5)
    wheel.wake(now + 60.0)
    wheel.repair(now + 60.0)
    wheel.wake(now + 600.0)
    assert wheel.state is State.TABLE_CLOSED
    assert wheel.due() == float("inf")
    assert [spin.reason for spin in wheel.truth] == [""]
    wheel.open_table(now + 600.0)
    assert wheel.due() < float("inf")


def test_a_wheel_answers_only_what_it_is_asked() -> None:
    wheel = Saturn(Random(1))
    assert wheel.wake(100.0) == b""
    assert wheel.hear(b"noise" + encode(Frame("04", "SR2")) + encode(Frame("02", "SR9")), 100.0) == b""
    assert replace(CODEC.read(wheel.hear(SR2, 100.0)), raw=b"").spin >= 1
    wheel.hear(RC03 * 2, 0.0)
    assert wheel.misfires >= 1
    with pytest.raises(ValueError, match="no_ball_detect"):
        wheel.inject("flood", 0.0)


def test_the_memory_is_small_and_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Memory()), type=Memory) == Memory()
