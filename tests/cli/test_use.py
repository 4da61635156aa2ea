"""What people met who used it: at a terminal, under a supervisor, with a wrong path, with a hand on Ctrl-C."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
import structlog
from click.testing import CliRunner, Result
from helpers import IDLE_S, PATIENCE, said_by

from daemon.captures import CAPTURE_HEAD
from daemon.cli import listings
from daemon.cli.common import run_until_interrupted
from daemon.cli.main import main
from daemon.edge.edge import Edge
from daemon.edge.links.link import open_link
from protocols.fdl import frame as fdl
from rules import RULESETS
from simulators.alone import make
from simulators.clock import Pace
from simulators.devices.bee_tek_shoe import Shoe
from simulators.lab import demo
from simulators.lab.broker import Broker, find_mosquitto
from simulators.lab.demo import Child, report, until_signal
from simulators.lab.pit import Pit
from simulators.lab.simulate import simulate
from simulators.ports.control import Control
from simulators.ports.port import Pty, Socket, Tcp

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def process_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command line sets up logging and garbage collection for its process; here that is the tests'."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


# ---- a simulated device never takes away what is not its own


@pytest.mark.parametrize("there", ["file", "link"])
async def test_a_simulated_tty_replaces_nobodys_file(tmp_path: Path, there: str) -> None:
    path, precious = tmp_path / "tty", tmp_path / "precious"
    precious.write_text("x", encoding="utf-8")
    if there == "file":
        precious.rename(path)
    else:
        path.symlink_to(precious)
    open_files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a number only
    with pytest.raises(FileExistsError):
        Pty(path).plug()
    assert path.read_text(encoding="utf-8") == "x"
    assert len(os.listdir("/proc/self/fd")) == open_files  # noqa: PTH208


async def test_a_simulated_tty_replaces_what_a_killed_simulator_left(tmp_path: Path) -> None:
    path = tmp_path / "tty"
    path.symlink_to("/dev/pts/4711")
    pty = Pty(path)
    pty.plug()
    assert path.is_char_device()
    pty.unplug()
    assert not path.is_symlink()


async def test_client_that_took_over_a_name_keeps_it(tmp_path: Path) -> None:
    first, second = Pty(tmp_path / "tty"), Pty(tmp_path / "tty")
    first.plug()
    second.plug()
    first.unplug()
    assert (tmp_path / "tty").is_char_device()
    second.unplug()
    assert not (tmp_path / "tty").is_symlink()


def test_a_path_that_is_taken_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text("x", encoding="utf-8")
    result = run("simulate", "cammegh_ss2", "--listen", f"tty:{path}")
    assert result.exit_code == 2
    said = f"Error: --listen tty:{path}: exists, and is not the link of a simulator; give a path that is free\n"
    assert result.stderr == said
    assert path.read_text(encoding="utf-8") == "x"


async def test_a_simulated_mqtt_device_says_whose_topics_it_takes() -> None:
    """The link is written as the edge has it: what the edge hears is what the device says."""
    said: list[str] = []
    listen = "mqtt://127.0.0.1:1/?hear=ikg/sicbo/Billy-III/says&say=ikg/sicbo/Billy-III/listens"
    running = asyncio.create_task(
        simulate("billy_iii", listen, seed=1, speed=1.0, manual=True, control="", say=said.append)
    )
    async with asyncio.timeout(PATIENCE):
        while len(said) < 2:  # noqa: ASYNC110 - in another task
            await asyncio.sleep(0.01)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert said[0] == f"billy_iii at {listen}"
    assert said[1] == "it subscribes to ikg/sicbo/Billy-III/listens and publishes on ikg/sicbo/Billy-III/says"


def test_an_mqtt_link_without_topics_is_told_whose_they_are() -> None:
    result = run("simulate", "billy_iii", "--listen", "mqtt://127.0.0.1:1883")
    assert result.exit_code == 2
    whose = "the URL of the edge's link: the device publishes on the topic hear=… and subscribes to the topic say=…"
    assert whose in result.stderr
    assert "hear=… names at least one topic" in result.stderr
    assert whose.partition(":")[0] in " ".join(run("simulate", "--help").stdout.split())


def test_an_address_that_is_taken_is_said_once() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        listen = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        result = run("simulate", "fdl_console", "--listen", listen)
    assert result.exit_code == 2
    assert result.stderr == f"Error: --listen {listen}: Address already in use\n"


async def test_plugging_in_where_somebody_else_is_by_now_is_an_answer(tmp_path: Path) -> None:
    port = Pty(tmp_path / "tty")
    port.plug()
    port.unplug()
    (tmp_path / "tty").touch()
    hand = Control(Socket(make("cammegh_ss2", 1), port, Pace()), Pace())
    assert hand.do("plug") == "cannot be plugged in: File exists"
    (tmp_path / "tty").unlink()
    assert hand.do("plug") == "plugged in"
    port.unplug()


async def test_a_tcp_port_knows_where_it_listens() -> None:
    port = Tcp("localhost", 0)
    port.plug()
    assert port.host == "127.0.0.1"
    assert port.port > 0
    port.unplug()


@pytest.mark.parametrize("closed", [False, True])
def test_a_simulator_with_nobody_there_lives_until_it_is_ended(tmp_path: Path, closed: bool) -> None:
    """Standard input is /dev/null, or closed: no noise; and SIGTERM leaves nothing behind."""
    path = tmp_path / "tty"
    words = [sys.executable, "-m", "daemon.cli", "simulate", "cammegh_ss2", "--listen", f"tty:{path}"]
    if closed:
        words = ["sh", "-c", 'exec "$@" <&-', "sh", *words]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"cammegh_ss2 at serial://{path}\n"
        assert process.stdout.readline().startswith("acts: open_table, close_table; faults: ball_with_rotor")
        assert path.is_char_device()
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, said) == (0, "")
    assert not path.is_symlink()


async def test_a_simulator_started_again_does_not_come_back_to_its_epoch(tmp_path: Path) -> None:
    """docs/reference/protocols/fdl.md: it has lost its counter, so it takes another epoch; all else is the seed's."""
    epochs: set[int] = set()
    for n in range(2):
        path, said = tmp_path / f"tty{n}", asyncio.Queue[str]()
        running = asyncio.create_task(
            simulate(
                "fdl_shaker",
                f"tty:{path}",
                seed=1,
                speed=1,
                manual=True,
                control="",
                say=said.put_nowait,
            )
        )
        async with asyncio.timeout(PATIENCE):
            await said.get()
            async with open_link(f"serial://{path}") as link:
                await link.write(fdl.encode(fdl.Hello(0, 0), 1))
                decoder, found = fdl.Decoder(), None
                while not isinstance(found, fdl.Identity):
                    for frame in decoder.feed((await link.read()).data):
                        found = fdl.read(frame) if isinstance(frame, fdl.Frame) else None
                        if isinstance(found, fdl.Identity):
                            epochs.add(found.epoch)
                            break
        running.cancel()
        await asyncio.wait([running])
    assert len(epochs) == 2
    assert make("fdl_shaker", 1)._identity().epoch == make("fdl_shaker", 1)._identity().epoch  # type: ignore[attr-defined]
    assert make("fdl_shaker", 1, epoch=7)._identity().epoch == 7  # type: ignore[attr-defined]
    assert make("cammegh_ss2", 1, epoch=7).due() == make("cammegh_ss2", 1).due()


def test_sigterm_ends_a_field_command_in_order() -> None:
    ended = []

    async def body() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    assert run_until_interrupted(body()) is None
    assert ended


# ---- words


def test_mistakes_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a:1.toml"
    path.write_text(
        """[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "t"
ruleset = "macau.rulette"
[[table.device]]
name = "d"
driver = "cammegh"
url = "tcp://h:1"
[[table]]
name = "u"
ruleset = "macau.baccara"
""",
        encoding="utf-8",
    )
    result = run("check", "-c", path)
    assert result.exit_code == 2
    assert re.findall(r"a:1\.toml:(\d+): no (\w+)", result.stderr) == [
        ("7", "ruleset"),
        ("10", "driver"),
        ("14", "ruleset"),
    ]


def test_a_capture_cut_short_is_not_called_another_device_s(tmp_path: Path) -> None:
    path = tmp_path / "x.capture"
    path.write_text(
        f"{CAPTURE_HEAD} driver=cammegh_ss2\n2026-01-01T00:00:00+00:00 > 41\n2026-01-01T00:00:01+00:00 < 41420d0a\n"
    )
    result = run("replay", path, "--driver", "cammegh_ss2")
    assert (result.exit_code, result.stdout) == (2, "")
    few = "4 bytes of the device are too few, or the driver cannot decode them"
    told = f"its driver is right, and {few}: was the capture cut short?"
    assert result.stderr == f"Error: {path}: cammegh_ss2 can decode nothing in it; {told}\n"


@pytest.mark.parametrize(
    ("driver", "line", "count"),
    [
        ("cammegh_ss2", b"*K CAM\r\n", 3),
        ("fdl_timer", fdl.encode_frame(0x7F, 0, b""), 1),  # a frame whole, of a type that nobody knows
    ],
)
@pytest.mark.parametrize("headed", [False, True])
def test_a_capture_that_the_driver_reads_names_no_other_driver(
    tmp_path: Path, driver: str, line: bytes, count: int, headed: bool
) -> None:
    path = tmp_path / "x.capture"
    lines = "".join(f"2026-01-01T00:00:0{n}+00:00 < {line.hex()}\n" for n in range(count))
    path.write_bytes(f"{CAPTURE_HEAD} driver={driver}\n{lines}".encode() if headed else line * count)
    result = run("replay", path, "--driver", driver)
    assert (result.exit_code, result.stdout) == (0, "")
    told = f"it reads {count} of {count} messages in it, and none of them is an event"
    assert result.stderr == f"{path}: {driver} finds no event in it; {told}\n"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"", "see `feltd devices` for its driver"),
        (f"{CAPTURE_HEAD} driver=cammegh_ss2\n".encode(), "it was recorded with cammegh_ss2"),
    ],
)
def test_a_capture_in_which_a_driver_finds_nothing_is_not_passed_over_in_silence(
    tmp_path: Path, head: bytes, said: str
) -> None:
    path = tmp_path / "x.capture"
    path.write_bytes(head + (b"2026-01-01T00:00:00+00:00 < 41420d0a\n" if head else b"AB\r\n"))
    result = run("replay", path, "--driver", "bee_tek_shoe")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {path}: bee_tek_shoe can decode nothing in it; {said}\n"


def test_a_capture_of_a_shoe_is_read_on_either_wire_without_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "shoe"
    for mode in ("bee_tek_shoe", "bee_tek_shoe_text"):
        shoe = cast("Shoe", make(mode, 3))
        drawn = [shoe.draw(2.0 * number) for number in range(3)]
        path.write_bytes(shoe.wake(60.0))
        result = run("replay", path, "--driver", "bee_tek_shoe")
        assert result.exit_code == 0, result.output
        events = [json.loads(line) for line in result.stdout.splitlines()]
        assert [event["data"]["card"] for event in events if event["type"] == "card.drawn"] == drawn
        [online] = [event["data"] for event in events if event["type"] == "device.online"]
        assert ("text wire" in online["model"]) == (mode == "bee_tek_shoe_text")


def test_garbage_with_one_readable_message_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(b"*K CAM\r\n" + b"\xff\x00\r\n" * 3)
    result = run("replay", path, "--driver", "cammegh_ss2")
    assert (result.exit_code, result.stdout) == (2, "")
    said = "it reads 1 of 4 messages in it; see `feltd devices` for its driver"
    assert result.stderr == f"Error: {path}: cammegh_ss2 finds no event in it; {said}\n"


def test_listings_hold_no_words_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    page = listings.ruleset_page(RULESETS["macau.baccarat"])
    assert re.search(r"^bets_offered +empty ", page, re.MULTILINE)
    assert "()" not in page
    port = SimpleNamespace(device="/dev/ttyS0", description="n/a", vid=None)
    monkeypatch.setattr(listings, "plugged_in", lambda: [port])
    assert listings.detected().splitlines()[1] == "serial:///dev/ttyS0"


@pytest.mark.parametrize("name", ["README.md", "docs/reference/protocols/fdl.md"])
def test_documented_commands_are_accepted(name: str) -> None:
    """Every place to listen at in the documents."""
    places = re.findall(r"--listen ([^\s`]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert places
    assert all(re.fullmatch(r"tty:/.+|tcp://127\.0\.0\.1:\d+", place) for place in places), places


def test_a_process_says_that_it_ended_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "feltd.toml"
    journal = f'journal = "{tmp_path}/edge.db"'
    path.write_text(f'[site]\nname = "s"\n[edge]\nname = "e"\n{journal}\n', encoding="utf-8")

    async def told_to_end(_: Edge) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(Edge, "serve", told_to_end)
    result = run("edge", "-c", path)
    assert result.exit_code == 0, result.output
    assert [line for line in result.stderr.splitlines() if '"edge":"e","event":"edge.stopped"' in line]


# ---- the demo


def test_an_interrupted_demo_does_not_claim_success(capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> NoReturn:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
        raise AssertionError

    assert asyncio.run(until_signal(body())) == 1
    assert capsys.readouterr().err == "feltd demo: interrupted, the results were not compared\n"


def test_the_summary_is_one_line_wherever_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broker = Broker(tmp_path, embedded=True)
    assert report({}, Pit(tmp_path, 1), broker, 123456, 7200.0, 600.0) == 0
    last = "0 rounds, 123456 events, 120 minutes of play in 600.0 s over embedded broker (amqtt): "
    assert capsys.readouterr().out.splitlines()[-1] == last + "every result is what the simulators did"


async def test_a_child_that_does_not_end_by_itself_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        pid = 1
        returncode: int | None = None

        def __init__(self) -> None:
            self.told: list[str] = []
            self.over = asyncio.Event()

        def terminate(self) -> None:
            self.told.append("terminate")

        def kill(self) -> None:
            self.told.append("kill")
            self.returncode = -9
            self.over.set()

        async def wait(self) -> None:
            await self.over.wait()

    deaf = Deaf()
    started = asyncio.Event()

    async def start(*_words: str, **_options: Any) -> Deaf:
        started.set()
        return deaf

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(demo, "CHILD_STOP_TIMEOUT_S", 0.01)
    task = asyncio.create_task(Child("edge", tmp_path / "feltd.toml").keep())
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert deaf.told == ["terminate", "kill"]


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.timeout(1800)  # by its progress it ends long before
def test_ctrl_c_ends_the_demo_in_a_pipe_with_an_account(tmp_path: Path) -> None:
    """At the speed of a real table: an edge that a busy machine delays by seconds voids no round for it."""
    folder, errors = tmp_path / "tmp", tmp_path / "stderr"
    folder.mkdir()
    with (
        errors.open("w", encoding="utf-8") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "daemon.cli", "demo", "--speed", "1"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder), "FORCE_COLOR": "1"},
        ) as process,
    ):
        try:
            assert "console: http://127.0.0.1:" in said_by(process, "password")
            process.send_signal(signal.SIGINT)
            out = said_by(process)
            process.wait(IDLE_S)  # it has closed its output
        finally:
            process.kill()
    assert re.search(r"\d+ rounds, \d+ events, .* over mosquitto: every result is what the simulators did", out), out
    assert (process.returncode, errors.read_text(encoding="utf-8")) == (0, "")
    assert not list(folder.iterdir())
