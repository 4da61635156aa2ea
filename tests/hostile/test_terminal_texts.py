"""A device whose texts hold what a terminal obeys: nothing of it reaches a terminal or a log."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from daemon.cli.watch import Shown, _Teller
from daemon.config.model import parse
from daemon.plain_text import plain, plain_values
from protocols.contract.topics import Wire

EVIL = "\x1b]52;c;cm0gLXJm\x07\x9b31m\u202eevil\u2066\r\x7f\u2028end"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CONFIG = '[site]\nname = "s"\n[edge]\nname = "e"\n'


def told(*, as_json: bool) -> str:
    data = msgspec.json.encode({"code": EVIL, "text": EVIL, "severity": "error", "remedy": EVIL})
    source = "felt/1/s/table/t/device/d"
    wire = Wire(
        "1.0",
        "e:t:1",
        source,
        "device.faulted",
        datetime(2026, 1, 1, tzinfo=UTC),
        1,
        "b",
        "j",
        False,
        msgspec.Raw(data),
    )
    said: list[str] = []
    teller = _Teller(parse(CONFIG), Shown(as_json=as_json), said.append, lambda: None)
    teller.print_wire(f"{source}/event/device.faulted", wire)
    teller.cannot_read(f"{source}/event/{EVIL}", ValueError(EVIL))
    return "\n".join(said)


def test_watch_prints_nothing_that_a_terminal_obeys() -> None:
    text = told(as_json=False)
    assert "evil" in text
    assert OBEYED.findall(text) == []


def test_watch_in_json_holds_the_same_text_as_codes() -> None:
    lines = told(as_json=True).splitlines()
    assert OBEYED.findall("".join(lines)) == []
    assert json.loads(lines[0])["data"]["text"] == EVIL


@pytest.mark.parametrize("terminal", [False, True])
def test_logs_hold_nothing_that_a_terminal_obeys(terminal: bool) -> None:
    program = (
        "import sys, json\n"
        f"sys.stderr.isatty = lambda: {terminal}\n"
        "from daemon import logs\n"
        "logs.set_up()\n"
        "evil = json.loads(sys.argv[1])\n"
        "logs.get().warning('x', text=evil, values=[evil, {evil: (evil,)}], error=ValueError(evil))\n"
        "try:\n    raise ValueError(evil)\nexcept ValueError:\n    logs.get().exception('bug')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(EVIL)], capture_output=True, text=True, check=True, timeout=30
    )
    text = re.sub("\x1b\\[[0-9;]*m", "", done.stderr) if terminal else done.stderr  # our own colours
    assert "evil" in text
    assert [one for one in OBEYED.findall(text) if one != "\t"] == []


@pytest.mark.parametrize(
    "told",
    ["click.echo(EVIL)", "click.echo(EVIL, err=True)", "raise click.ClickException(EVIL)", "raise OSError(EVIL)"],
)
def test_every_other_command_writes_plain_text(tmp_path: Path, told: str) -> None:
    """Whatever a command says of others passes standard output or standard error, as a traceback does."""
    path = tmp_path / "x.py"
    path.write_text(
        f"import sys, click\nfrom daemon.cli import main as cli\nEVIL = {EVIL!a}\n"
        f"@click.command('evil')\ndef evil():\n    {told}\n"
        "cli.main.add_command(evil)\ncli.main(['evil'])\n"
    )
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=30)
    text = done.stdout + done.stderr
    assert "evil\\u2066" in text
    assert OBEYED.findall(text) == []


@given(st.text())
def test_plain_changes_nothing_else(text: str) -> None:
    made = plain(text)
    assert [one for one in OBEYED.findall(made.replace("\r\n", "")) if one != "\t"] == []
    if not OBEYED.search(text):
        assert made == text
    assert plain_values({text: [text, 1, None]}) == {made: [made, 1, None]}
