"""The SS2 wheel's lines as others wrote them down, and what a real wheel did.

Sources, all public: logs of two wheels in a studio, with what was sent to them
  https://github.com/ikigai-kevin-k/studio-sdp-mirror  tests/self-test.log, self-test-2api.log, ss2_protocol.log
and a codec in Scala of another author, device/cammegh/slingshot (its field order and its table of warnings).
"""

import asyncio
from typing import Any

import pytest
from helpers import MemoryLink, Notebook, virtual_time

from drivers.cammegh_ss2 import CammeghSS2
from drivers.cammegh_ss2_spins import WheelOptions
from protocols.cammegh_ss2 import Decoder, Flag, Mode, Number, Packet, State, Status, encode
from protocols.contract.commands import Ask, SetParameter, StartSpin

NONE = Flag(0)

# line as the wheel sent it, without its end: what it says
WHEEL: list[tuple[bytes, Status | Number | Packet]] = [
    # self-test.log
    (b"*X;2;001;  ;0;174;0", Status(State.PLACE_BETS, 1, "", NONE, 174, True)),
    (b"*P OK", Packet("P", "OK")),
    (b"*P NO", Packet("P", "NO")),
    (b"*o BUSY", Packet("o", "BUSY")),
    (b"*o 1158", Packet("o", "1158")),
    (b"*O 6 1 60 1158", Packet("O", "6 1 60 1158")),
    (b"*u OK", Packet("u", "OK")),
    (b"*T h 60", Packet("T", "h 60")),
    (b"*T OK", Packet("T", "OK")),
    (b"*T s 14.0 17.50000", Packet("T", "s 14.0 17.50000")),
    (b"*T s 16.0 18.0", Packet("T", "s 16.0 18.0")),
    (b"*X;4;001;  ;4;000;0", Status(State.NO_MORE_BETS, 1, "", Flag.SENSOR_OR_MOTOR, 0, True)),
    (b"*X;4;001;  ;1;000;0", Status(State.NO_MORE_BETS, 1, "", Flag.BALL_NOT_DETECTED, 0, True)),
    (b"*X;4;001;  ;0;925;0", Status(State.NO_MORE_BETS, 1, "", NONE, 925, True)),  # 92.5 rpm: the fault begins
    (b"*X;6;001;  ;4;001;0", Status(State.TABLE_CLOSED, 1, "", Flag.SENSOR_OR_MOTOR, 1, True)),
    # self-test-2api.log
    (b"*X;2;002;31;0;146;1", Status(State.PLACE_BETS, 2, "31", NONE, 146, False)),
    (b"*X;3;002;31;0;170;0", Status(State.BALL_IN_RIM, 2, "31", NONE, 170, True)),
    (b"28", Number("28")),
    (b"*X;5;002;28;0;172;0", Status(State.WINNING_NUMBER, 2, "28", NONE, 172, True)),
    (b"*X;2;003;28;0;171;0", Status(State.PLACE_BETS, 3, "28", NONE, 171, True)),
    # ss2_protocol.log
    (b"*X;1;011;34;0;057;0", Status(State.STARTED, 11, "34", NONE, 57, True)),
    (b" 6", Number("6")),
    (b"*X;5;013; 6;0;177;1", Status(State.WINNING_NUMBER, 13, "6", NONE, 177, False)),
    (b" 0", Number("0")),
    (b"*X;6;017; 0;0;004;0", Status(State.TABLE_CLOSED, 17, "0", NONE, 4, True)),
]
HOST = [b"*P 0", b"*P 1", b"*o 1158", b"*O", b"*u 1", b"*T S", b"*T s 16.0 18.0", b"*T H"]
# The other author's table of warnings.
WARNINGS = {
    "0": "",
    "1": "BallRemoved",
    "2": "BallDirection",
    "4": "SensorBroken",
    "8": "LaunchFailed",
    "9": "BallRemoved LaunchFailed",
    "A": "BallDirection LaunchFailed",
    "B": "BallRemoved BallDirection LaunchFailed",
    "C": "SensorBroken LaunchFailed",
    "D": "BallRemoved SensorBroken LaunchFailed",
    "E": "BallDirection SensorBroken LaunchFailed",
    "F": "BallRemoved BallDirection SensorBroken LaunchFailed",
}
THEIR_NAMES = {
    "BallRemoved": Flag.BALL_NOT_DETECTED,
    "BallDirection": Flag.BALL_WITH_ROTOR,
    "SensorBroken": Flag.SENSOR_OR_MOTOR,
    "LaunchFailed": Flag.LAUNCH_FAILED,
}


@pytest.mark.parametrize(("line", "message"), WHEEL)
def test_lines_of_real_wheels_both_ways(line: bytes, message: Status | Number | Packet) -> None:
    (told,) = Decoder().feed(line + b"\r\n")
    assert type(told) is type(message)
    fields = [name for name in message.__struct_fields__ if name != "raw"]
    assert [getattr(told, name) for name in fields] == [getattr(message, name) for name in fields]
    assert encode(message) == line + b"\r\n"


@pytest.mark.parametrize("line", HOST)
def test_operator_host_vectors_both_ways(line: bytes) -> None:
    (told,) = Decoder().feed(line + b"\r\n")
    assert isinstance(told, Packet)
    assert encode(Packet(told.letter, told.text)) == line + b"\r\n"


@pytest.mark.parametrize("digit", WARNINGS)
def test_another_author_s_table_of_warnings(digit: str) -> None:
    line = f"*X;3;012;36;{digit};157;0".encode()
    (told,) = Decoder().feed(line + b"\r\n")
    assert isinstance(told, Status)
    meant = Flag(0)
    for name in WARNINGS[digit].split():
        meant |= THEIR_NAMES[name]
    assert told.flags == meant


def test_the_factory_s_and_the_operator_s_mode() -> None:
    """img/p50.md of the same repository names the bits of 1157; the operator used 1158."""
    factory = Mode.REVERSE_EACH_GAME | Mode.VARY_SPEED | Mode.AUTOMATIC_STATUS | Mode.STARTED_AFTER_NUMBER
    assert Mode(1157) == factory
    assert Mode(1158) == (factory | Mode.WAIT_FOR_START) & ~Mode.REVERSE_EACH_GAME


class Scripted:
    """A wheel that says quoted lines twice a second, and answers as the log has it."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self.link = MemoryLink()
        self.link.on_write = self._answer
        self.answers = answers
        self.asked: list[bytes] = []
        self.line = b""

    def _answer(self, data: bytes) -> None:
        for line in data.split(b"\r\n"):
            if line in self.answers:
                self.asked.append(line)
                self.link.feed(self.answers[line] + b"\r\n")

    async def speak(self) -> None:
        while True:
            self.link.feed(self.line + b"\r\n")
            await asyncio.sleep(0.5)


async def _ordered(wheel: Scripted, lines: list[bytes], command: Any) -> Any:
    driver = CammeghSS2(WheelOptions())
    tasks = [asyncio.create_task(driver.run(wheel.link, Notebook()))]
    try:
        wheel.line = lines[0]
        tasks.append(asyncio.create_task(wheel.speak()))
        for line in lines:
            wheel.line = line
            await asyncio.sleep(2.0)
        return await driver.obey(command)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@virtual_time
async def test_a_host_driven_wheel_waits_in_state_2_and_takes_its_start_there() -> None:
    """self-test.log, 06:21:28 to 06:21:38: state 1 ends by itself; `*u 1` is answered OK in state 2."""
    wheel = Scripted({b"*o": b"*o 1158", b"*u 1": b"*u OK", b"*K": b"*K CAM"})
    lines = [b"*X;1;001;  ;0;151;0", b"*X;2;001;  ;0;152;0"]
    assert await _ordered(wheel, lines, StartSpin()) == {"rotor": "clockwise"}
    assert wheel.asked[-2:] == [b"*o", b"*u 1"]


@virtual_time
async def test_the_speed_range_has_decimals() -> None:
    """self-test.log, 06:24:26 to 06:25:05: `*T s 16.0 18.0` is answered `*T OK`, and reads back `*T s 16.0 18.0`."""
    closed = [b"*X;6;001;  ;0;000;0"]
    wheel = Scripted({b"*T S": b"*T s 14.0 17.50000", b"*K": b"*K CAM"})
    assert await _ordered(wheel, closed, Ask("speed_range")) == {"speed_range": "14.0 17.50000"}
    wheel = Scripted({b"*T s 16.0 18.0": b"*T OK", b"*T S": b"*T s 16.0 18.0", b"*K": b"*K CAM"})
    order = SetParameter("speed_range", "16.0 18.0")
    assert await _ordered(wheel, closed, order) == {"speed_range": "16.0 18.0", "stored": False}
    # What is read back may have more zeros than what was set.
    wheel = Scripted({b"*T s 14 17.5": b"*T OK", b"*T S": b"*T s 14.0 17.50000", b"*K": b"*K CAM"})
    order = SetParameter("speed_range", "14 17.5")
    assert await _ordered(wheel, closed, order) == {"speed_range": "14.0 17.50000", "stored": False}
