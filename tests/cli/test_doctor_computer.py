"""`feltd doctor` about the computer itself: settings of the system become lines; the page sets what the lines want."""

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from daemon.cli import doctor_computer
from daemon.cli.doctor import State
from daemon.cli.doctor_computer import Computer, lines, measured

PAGE = Path(__file__).parents[2] / "docs/how-to/prepare-the-computer.md"
GOOD = Computer(watchdog="active", offset_ms=0.5, shared=(), logs="500M", updates=True, updates_at="*-*-* 06:30")
TRACKING = "C0A80001,192.168.0.1,3,1764321000.5,{},0.00001,0.00002,-12.5,0.001,0.03,0.002,0.001,64.2,Normal\n"


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, ""),
        ({"watchdog": "inactive"}, "hardware watchdog"),
        ({"watchdog": None}, "hardware watchdog"),
        ({"offset_ms": 99.9, "logs": None}, "system logs"),
        ({"offset_ms": 100.0}, "clock offset"),
        ({"offset_ms": None}, "clock offset"),
        ({"updates_at": None}, "security updates"),
        ({"updates": False}, "security updates"),
        ({"shared": ("/var/lib/feltd",)}, "partition of the journals"),
        ({"shared": None}, "partition of the journals"),
    ],
)
def test_what_is_missing_is_a_warning_with_its_remedy(changed: dict[str, Any], wrong: str) -> None:
    found = list(lines(replace(GOOD, **changed)))
    assert len(found) == 5
    assert [one.check for one in found if one.state is not State.OK] == ([wrong] if wrong else [])
    assert all(bool(one.remedy) == (one.state is State.WARNING) for one in found)


def test_the_settings_of_the_page_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `printf ... | sudo tee FILE` lines write below another root."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    for said, file in re.findall(r"(?m)^(printf '[^']+'|echo '?[^'\n|]+'?)\s*\| sudo tee (?:-a )?/(\S+)$", text):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(subprocess.run(["sh", "-c", said], capture_output=True, check=True).stdout)
    watchdog = tmp_path / "sys/class/watchdog/watchdog0/state"
    watchdog.parent.mkdir(parents=True)
    watchdog.write_text("active\n")
    chronyc(tmp_path, monkeypatch, TRACKING.format("-0.0005"))
    found = measured([], tmp_path)
    assert replace(found, shared=()) == GOOD


def test_a_bare_computer_has_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "edge").mkdir()
    journals = [tmp_path / "edge/journal.db", tmp_path / "edge/other.db", tmp_path / "not-there/journal.db"]
    assert measured(journals, tmp_path) == Computer(shared=(str(tmp_path / "edge"),))


def test_updates_that_are_switched_off_are_none(tmp_path: Path) -> None:
    file = tmp_path / "etc/apt/apt.conf.d/20auto-upgrades"
    file.parent.mkdir(parents=True)
    file.write_text('APT::Periodic::Unattended-Upgrade "0";\n')
    assert not measured([], tmp_path).updates


@pytest.mark.parametrize("said", ["", "506 Cannot talk to daemon\n", "a,b,c,d,none\n"])
def test_a_chrony_that_says_nothing_is_not_known(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chronyc(tmp_path, monkeypatch, said)
    assert measured([], tmp_path).offset_ms is None


def test_every_remedy_names_a_section_of_the_page() -> None:
    titles = PAGE.read_text(encoding="utf-8")
    assert all(f"`{one.check}`" in titles for one in lines(GOOD))


def chronyc(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    program: Any = folder / "chronyc"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    assert doctor_computer.CHRONY_TIMEOUT_S > 1
