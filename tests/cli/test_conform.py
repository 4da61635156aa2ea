"""`feltd conform`: the program in C on a pseudo terminal, a device that is not there, and what people read."""

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fdl_in_c import SOURCES

from daemon.cli import conform
from daemon.cli.main import main

OF_TIME = {
    *("heartbeat.period", "heartbeat.uptime", "event.rhythm", "event.age", "nak.at_once", "command.at_once"),
    *("command.answered", "hello.seq"),
}
"""On a busy computer the device itself may be late: its answer then stands behind the next request."""


@pytest.mark.system
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is not installed")
def test_the_program_in_c_is_tried_over_its_port(tmp_path: Path) -> None:
    folder = shutil.copytree(SOURCES, tmp_path / "fdl")
    subprocess.run(["make", "-s", "-C", folder], check=True, timeout=300)
    hands = tmp_path / "hands"
    os.mkfifo(hands)
    act = tmp_path / "act"
    act.write_text(f'#!/bin/sh\n[ "$1" = event ] && echo cover > {hands}\n', encoding="utf-8")
    act.chmod(0o755)
    master, slave = pty.openpty()
    ours, theirs = pty.openpty()
    for end in (master, slave, ours, theirs):
        tty.setraw(end)
    with contextlib.ExitStack() as running, hands.open("r+b", buffering=0) as at_the_device:
        for source, target in ((master, ours), (ours, master)):
            running.enter_context(_killed(sys.executable, "-c", RELAY, stdin=source, stdout=target))
        program = (folder / "fdl-shaker", tmp_path / "memory", os.ttyname(slave))
        running.enter_context(_killed(*program, stdin=at_the_device, stdout=subprocess.DEVNULL))
        arguments = ["conform", f"serial://{os.ttyname(theirs)}", "--act", str(act), "--json"]
        tried = CliRunner().invoke(main, arguments)
    for end in (master, slave, ours, theirs):
        os.close(end)
    report = json.loads(tried.stdout)
    assert report["device"] == "Example C Shaker C-SHAKER-1, firmware 1.0: shaker"
    broken = {finding["rule"]: finding["seen"] for finding in report["findings"] if finding["verdict"] == "broken"}
    assert set(broken) <= OF_TIME, broken
    assert tried.exit_code == bool(broken)
    untried = {finding["rule"] for finding in report["findings"] if finding["verdict"] == "not tried"}
    assert {"power.started", "ring.gone"} <= untried
    assert not untried & {"ack.moves", "nak.moves", "hello.opens", "command.once"}


@contextlib.contextmanager
def _killed(*command: str | Path, **standard: Any) -> Iterator[None]:
    """A program that runs until it is killed."""
    with subprocess.Popen(command, **standard) as process:
        try:
            yield
        finally:
            process.kill()


RELAY = """
import os
while data := os.read(0, 4096):
    os.write(1, data)
"""


@pytest.mark.parametrize(("typed", "is_done"), [(b"\n", True), (b"s\n", False), (b"", False)])
async def test_enter_says_that_it_is_done_and_the_end_of_the_input_skips_it(
    monkeypatch: pytest.MonkeyPatch, typed: bytes, is_done: bool
) -> None:
    read, write = os.pipe()
    os.write(write, typed)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert await conform._Person().do("event") is is_done


async def test_a_program_that_does_not_end_is_killed_and_has_done_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conform, "_ACT_LIMIT_S", 0.1)
    act = tmp_path / "act"
    act.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    act.chmod(0o755)
    assert not await conform._Program(str(act)).do("event")
    assert "act event did not end within 0.1 s; it was killed" in capsys.readouterr().err


def test_a_port_that_is_not_there_is_said() -> None:
    refused = CliRunner().invoke(main, ["conform", "tcp://127.0.0.1:1"])
    assert refused.exit_code == 1
    assert "check the cable, the power and the link" in refused.output
    wrong = CliRunner().invoke(main, ["conform", "nonsense"])
    assert wrong.exit_code == 2
    assert "Traceback" not in wrong.output
