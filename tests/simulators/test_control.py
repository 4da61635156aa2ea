"""The control interface of a simulated device: the same words at the terminal, on a TCP port and in tests."""

import asyncio
import contextlib
import random
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import PATIENCE

from daemon.cli.main import main
from simulators import SIMULATORS
from simulators.clock import Pace
from simulators.devices.device import ailments
from simulators.lab.simulate import CONTROL_LINE, _control_port
from simulators.ports.control import Control
from simulators.ports.port import Pty, Socket

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def hand(tmp_path: Path) -> AsyncIterator[Control]:
    """A shaker that is plugged in and that nobody plays with."""
    device = SIMULATORS["fdl_shaker"](random.Random(1))
    pace = Pace(1.0)
    plugged = Socket(device, Pty(tmp_path / "tty"), pace)
    living = asyncio.create_task(plugged.live())
    await asyncio.sleep(0)
    try:
        yield Control(plugged, pace)
    finally:
        living.cancel()
        await asyncio.wait([living])


# ---- words


async def test_an_act_is_done_and_said(hand: Control) -> None:
    assert hand.do("cover") == "cover"
    assert hand.do("  cover  ") is not None


async def test_a_fault_is_begun_with_or_without_the_word(hand: Control) -> None:
    assert hand.do("fault lamp_out") == "fault lamp_out: the reading lamp burns out"
    assert hand.do("lamp_out") == "fault lamp_out: the reading lamp burns out"
    assert str(hand.do("fault garbage")).startswith("fault garbage: ")
    assert hand.do("repair") == "repaired"


@pytest.mark.parametrize("name", SIMULATORS)
async def test_every_fault_of_every_device_may_be_begun_at_any_time(name: str, tmp_path: Path) -> None:
    """Nothing typed brings a simulated device down."""
    device = SIMULATORS[name](random.Random(1))
    hand = Control(Socket(device, Pty(tmp_path / "tty"), Pace(1.0)), Pace(1.0))
    for fault in ailments(device):
        assert str(hand.do(f"fault {fault}")).startswith(f"fault {fault}: ")
        assert hand.do("repair") == "repaired"
        hand.do("plug")
    for act in device.acts():
        assert str(hand.do(act)).startswith(act)
    hand.do("unplug")


async def test_the_cable_is_pulled_and_put_back(hand: Control, tmp_path: Path) -> None:
    assert hand.do("unplug") == "unplugged"
    assert not (tmp_path / "tty").is_symlink()
    (tmp_path / "tty").touch()
    assert hand.do("plug") == "cannot be plugged in: File exists"
    (tmp_path / "tty").unlink()
    assert hand.do("plug") == "plugged in"
    assert (tmp_path / "tty").is_char_device()


@pytest.mark.parametrize(
    "line", ["dance", "fault", "fault nothing", "cover now", "fault lamp_out now", "\x00", "é" * 90]
)
async def test_unknown_control_word_is_answered_with_the_known_ones(hand: Control, line: str) -> None:
    said = hand.do(line)
    assert said == f"unknown {line!r}; {hand.help()}"
    assert "cover" in hand.help()
    assert "lamp_out" in hand.help()


async def test_an_empty_line_is_nothing_and_quit_is_the_end(hand: Control) -> None:
    assert hand.do("") == ""
    assert hand.do("   ") == ""
    assert hand.do("help") == hand.help()
    assert hand.do("quit") is None
    assert hand.do("exit") is None


async def test_action_impossible_now_is_answered(hand: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise ValueError("the dome is off")

    device = hand._socket.device
    monkeypatch.setattr(device, "inject", never)
    monkeypatch.setattr(device, "acts", lambda: {"cover": never})
    assert hand.do("fault lamp_out") == "fault lamp_out: not now: the dome is off"
    assert hand.do("cover") == "cover: not now: the dome is off"


# ---- the port


@asynccontextmanager
async def served(hand: Control) -> AsyncIterator[int]:
    async with _control_port(hand, "127.0.0.1:0") as server:
        yield server.sockets[0].getsockname()[1]


async def test_several_lines_in_one_breath_and_a_line_in_pieces(hand: Control) -> None:
    async with served(hand) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"cover\r\nfault lamp_out\n\nrep")
        assert await reader.readline() == b"cover\n"
        assert (await reader.readline()).startswith(b"fault lamp_out: ")
        assert await reader.readline() == b"\n"
        writer.write(b"air\nquit\ncover\n")
        assert await reader.readline() == b"repaired\n"
        assert await reader.read() == b""  # quit ends the connection, and nothing after it is done
        writer.close()
        await writer.wait_closed()


async def test_quit_on_the_port_leaves_the_device_and_others_alone(hand: Control) -> None:
    async with served(hand) as port:
        first, second = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        first[1].write(b"quit\n")
        assert await first[0].read() == b""
        second[1].write(b"repair\n")
        assert await second[0].readline() == b"repaired\n"
        for _, writer in (first, second):
            writer.close()
            await writer.wait_closed()


async def test_garbage_is_answered_and_nothing_breaks(hand: Control) -> None:
    async with served(hand) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(bytes(byte for byte in range(256) if byte != 10) + b"\nrepair\n")
        assert (await reader.readline()).startswith(b"unknown ")
        assert await reader.readline() == b"repaired\n"
        writer.close()
        await writer.wait_closed()


async def test_a_line_without_end_ends_its_connection_only(hand: Control) -> None:
    async with served(hand) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * (CONTROL_LINE * 3))
        with contextlib.suppress(ConnectionError):
            assert b"a line without end" in await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"repair\n")
        assert await reader.readline() == b"repaired\n"
        writer.close()
        await writer.wait_closed()


async def test_a_client_that_goes_without_reading_is_nothing(hand: Control) -> None:
    async with served(hand) as port:
        gone = socket.create_connection(("127.0.0.1", port))
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # it leaves with a reset
        gone.sendall(b"help\n" * 500)
        gone.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"repair\n")
        assert await reader.readline() == b"repaired\n"
        writer.close()
        await writer.wait_closed()


# ---- feltd simulate … --control


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    words = ["simulate", "fdl_shaker", "--manual", "--listen", f"tty:{tmp_path}/tty", "--control", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_simulator_says_its_control_port_and_obeys_there(simulator: subprocess.Popen[str], tmp_path: Path) -> None:
    assert simulator.stdout is not None
    assert simulator.stdout.readline() == f"fdl_shaker at serial://{tmp_path}/tty\n"
    assert simulator.stdout.readline().startswith("acts: ")
    told = re.fullmatch(r"control at 127\.0\.0\.1:(\d+)\n", simulator.stdout.readline())
    assert told is not None
    with socket.create_connection(("127.0.0.1", int(told[1])), timeout=PATIENCE) as line, line.makefile("rw") as file:
        file.write("unplug\n")
        file.flush()
        assert file.readline() == "unplugged\n"
        assert not (tmp_path / "tty").is_symlink()
        simulator.terminate()  # with somebody at its control port
        _, said = simulator.communicate(timeout=PATIENCE)
    assert (simulator.returncode, said) == (0, "")


@pytest.mark.parametrize("control", ["4100", "here:", "127.0.0.1:70000", "a:b:1"])
def test_a_control_port_that_is_none_is_refused(tmp_path: Path, control: str) -> None:
    result = CliRunner().invoke(
        main, ["simulate", "fdl_shaker", "--listen", f"tty:{tmp_path}/tty", "--control", control]
    )
    assert result.exit_code == 2
    assert result.output == f"Error: --control {control}: write 127.0.0.1:4100\n"


def test_a_control_port_that_is_taken_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        control = f"127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(
            main, ["simulate", "fdl_shaker", "--listen", f"tty:{tmp_path}/tty", "--control", control]
        )
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: --control {control}: ")
    assert "in use" in result.output
    assert not (tmp_path / "tty").is_symlink()
