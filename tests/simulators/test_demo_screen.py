"""The screen of the demo: at each size the sign-in and the keys, the worst first, faults by a key, a clean end."""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import at_length, virtual_time
from hypothesis import given, settings, strategies as st
from terminal import Terminal

from daemon.config.model import Mqtt
from daemon.console.auth.users import ROLES
from daemon.read_model import SiteState
from daemon.views import TableView
from protocols.contract.documents import Alert
from simulators.clock import Pace
from simulators.devices.device import ailments
from simulators.lab.broker import find_mosquitto, tied
from simulators.lab.demo import ACCOUNTS, PLAYED, Child, _lamps
from simulators.lab.demo_screen import MARKS, Login, Screen
from simulators.lab.fault_injection import FaultInjector
from simulators.lab.keyboard import keys_of
from simulators.lab.live_faults import LiveFaults
from simulators.lab.pit import EDGE, PITS, Pit
from simulators.ports.port import Pty

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
LOGIN = Login(8080, "abcdefghijkl", ACCOUNTS, 41883, "demo")
SIGN_IN, KEYS = "http://127.0.0.1:8080  user technician, password abcdefghijkl", "f a fault"
NO_FAULTS: Any = SimpleNamespace(open=[], choices=lambda _: [])


def site_of(tables: dict[str, str]) -> SiteState:
    """All well; `tables` name what is wrong with some: an error, a warning, or a phase."""
    site = SiteState(Mqtt(), "demo")
    site.connected = True
    for name in (EDGE, "rules"):
        site._edge(name, "availability", b"online")
    for name, wrong in tables.items():
        view = site.tables[name] = TableView()
        view.online = {"wheel-1": wrong != "offline"}
        view.phase = wrong if wrong == "suspended" else "betting"
        if wrong in ("error", "warning"):
            alert = Alert(device="wheel-1", code="x", text="a sensor fails", severity=wrong, remedy="clean it")
            view.alerts["x"] = alert
    return site


def screen_of(tables: dict[str, str], faults: Any = NO_FAULTS, **more: Any) -> Screen:
    games = dict.fromkeys(tables, "macau.roulette")
    lamps = [(True, "broker 4194304"), (True, "edge 4194304"), (False, "rules 4194304 x12")]
    return Screen(site_of(tables), games, faults, LOGIN, title="macau at 5x", edge=EDGE, lamps=lambda: lamps, **more)


def drawn(screen: Screen, width: int = 80, height: int = 24) -> list[str]:
    return [line.plain.rstrip() for line in screen.lines(width, height, NOW)]


@given(
    st.lists(st.sampled_from(["", "error", "warning", "suspended", "offline"]), min_size=1, max_size=60),
    st.integers(80, 250),
    st.integers(10, 120),
    st.lists(st.sampled_from(["up", "down", "page up", "page down", "d", "escape", "?"]), max_size=8),
)
@settings(max_examples=at_length(60, 1_000))
def test_each_size_shows_the_sign_in_and_the_keys(wrong: list[str], width: int, height: int, keys: list[str]) -> None:
    screen = screen_of({f"rou-{n}": one for n, one in enumerate(wrong)})
    for key in ("", *keys):
        screen.press(key)
        lines = drawn(screen, width, height)
        assert len(lines) == height
        assert max(map(len, lines)) <= width
        assert lines[0].startswith("feltd demo")
        assert lines[-2].startswith(SIGN_IN)
        assert "Esc back" in lines[-1] or KEYS in lines[-1]


def names(lines: list[str]) -> list[str]:
    return [line.split()[1] for line in lines if line[:1] in {sign for sign, _ in MARKS.values()} and " rou-" in line]


def test_tables_that_fit_keep_their_order() -> None:
    lines = drawn(screen_of({"rou-1": "", "rou-2": "error", "rou-3": ""}))
    assert names(lines) == ["rou-1", "rou-2", "rou-3"]
    assert "✖ rou-2    roulette bets open" in "\n".join(lines).replace("rou-2 ", "rou-2    ")
    assert "rou-2 wheel-1: a sensor fails" in lines
    assert "    clean it" in lines


def test_tables_that_do_not_fit_stand_worst_first_and_the_others_are_counted() -> None:
    wrong = {f"rou-{n}": "" for n in range(40)} | {"rou-30": "warning", "rou-35": "error", "rou-38": "suspended"}
    screen = screen_of(wrong)
    lines = drawn(screen)
    assert names(lines)[:5] == ["rou-35", "rou-38", "rou-30", "rou-0", "rou-1"]
    assert f"  … {40 - len(names(lines))} more: {40 - len(names(lines))} well   (Space: next page)" in lines
    seen = set(names(lines))
    for _ in range(4):
        screen.press("page down")
        seen |= set(names(drawn(screen)))
    assert len(seen) == 40


def test_without_a_key_the_worst_come_back_into_sight() -> None:
    now = [0.0]
    screen = screen_of({f"rou-{n}": "error" * (n == 39) for n in range(40)}, seconds=lambda: now[0])
    drawn(screen)
    for _ in range(3):
        screen.press("page down")
    assert "rou-39" not in names(drawn(screen))
    now[0] = 31.0
    assert names(drawn(screen))[0] == "rou-39"


def test_the_accounts_are_a_page() -> None:
    screen = screen_of({"rou-1": "", "my-fan": ""}, played=["my-fan"])
    assert "yours to deal" in "\n".join(drawn(screen))
    screen.press("d")
    lines = drawn(screen)
    for name, role, what in ACCOUNTS:
        assert f"{name:13} {role:13} {what}" in lines
    assert any("/dealer (my-fan)" in line for line in lines)
    assert "broker: 127.0.0.1 port 41883, site demo; no user and no password" in lines
    screen.press("d")
    assert names(drawn(screen)) == ["rou-1"]


@pytest.mark.parametrize(("returncode", "good"), [(None, True), (-9, False)])
def test_the_lamp_of_a_dead_process_is_red_at_once(tmp_path: Path, returncode: int | None, good: bool) -> None:
    """The broker says so only when the will's delay is over."""
    child = Child("edge", tmp_path / "feltd.toml")
    process: Any = SimpleNamespace(pid=77, returncode=returncode)
    child.process = process
    child.starts = 2
    broker: Any = SimpleNamespace(pid=2)
    assert _lamps(site_of({}), broker, [child]) == [(True, "broker 2"), (good, "edge 77 x2")]


def test_keys_are_read_as_terminals_send_them() -> None:
    assert keys_of(b"f\x1b[A\x1bOB\x1b[5~ \r\x1b[1;5Cq\x1b\x01\xff") == [
        *("f", "up", "down", "page up", "page down", "enter", "q", "escape", "\ufffd"),
    ]


# ---- faults by a key


@virtual_time
async def test_a_fault_by_a_key_is_shown_and_healed(tmp_path: Path) -> None:
    pit, pace = Pit(tmp_path, 1, kinds=("rou",)), Pace()
    pit.open(pace, 1, "5")
    faults = LiveFaults(pit, pace)
    screen = screen_of({"rou-1": "", "my-fan": ""}, faults)
    choices = faults.choices("rou-1")
    screen.press("f")
    for _ in range(at := [fault for _, fault, _ in choices].index("unplugged")):
        screen.press("down")
    lines = drawn(screen)
    assert lines[3 - 1].startswith(f"Faults of rou-1 ({at + 1} of {len(choices)})")
    port = pit.ports["rou-1/wheel-1"]
    assert isinstance(port, Pty)
    assert port.path.is_symlink()
    screen.press("enter")
    assert not port.path.is_symlink()
    pit.sockets["rou-1"]["wheel-1"]._wake()
    assert not port.path.is_symlink(), "the cable stays out until somebody puts it back"
    assert drawn(screen)[-3].startswith("injected: rou-1/wheel-1 unplugged; h heals it")
    screen.press("h")
    assert port.path.is_symlink()
    assert drawn(screen)[-3] == "rou-1: healed"
    screen.press("x")
    assert faults.count == 2
    screen.press("H")
    assert not faults.open
    for one in pit.ports.values():
        one.unplug()


@virtual_time
async def test_a_table_without_simulated_devices_has_no_faults() -> None:
    pit: Any = SimpleNamespace(sockets={}, chance=lambda _: None)
    screen = screen_of({"my-fan": ""}, LiveFaults(pit, Pace()))
    for key in "fx":
        screen.press(key)
        assert "my-fan is yours to deal: it has no simulated device" in drawn(screen)
    screen.press("h")
    assert "my-fan: repaired; no fault was open" in drawn(screen)


@virtual_time
async def test_random_faults_are_shown_as_those_of_a_key(tmp_path: Path) -> None:
    pit, pace = Pit(tmp_path, 1, kinds=("rou",)), Pace()
    pit.open(pace, 1, "5")
    faults = LiveFaults(pit, pace)
    injector = FaultInjector(pit, 1, faults.note)
    task = asyncio.create_task(injector.run(pace))
    await asyncio.sleep(600)
    task.cancel()
    await asyncio.wait([task])
    assert faults.count == injector.done["rou-1"].total() > 3
    since = pace.now() - LiveFaults.FLEETING_S
    assert all(one.stays or one.at > since for one in faults.open), "a fault that ended by itself is not open"
    for one in pit.ports.values():
        one.unplug()


# ---- on a real terminal

_ENDING = """
import asyncio
from simulators.lab.demo import _show, until_signal

class Drawn:
    broken = False
    def __rich_console__(self, console, options):
        if self.broken:
            raise ValueError("a bug")
        yield "drawn"
    def press(self, key):
        self.broken = key == "!"
        return key == "q"

async def body():
    task = asyncio.current_task()
    async with asyncio.TaskGroup() as group:
        group.create_task(_show(Drawn(), task.cancel))
        await asyncio.Event().wait()

asyncio.run(until_signal(body()))
"""


@pytest.mark.parametrize("way", ["exception", "SIGTERM", "Ctrl-C", "q"])
def test_the_terminal_is_put_back_in_each_case(way: str) -> None:
    with Terminal([sys.executable, "-c", _ENDING]) as terminal:
        terminal.until(lambda lines: "drawn" in lines[0] and terminal.settings() != terminal.before)
        match way:
            case "SIGTERM":
                os.kill(terminal.process.pid, signal.SIGTERM)
            case "Ctrl-C":
                terminal.type("\x03")
            case _:
                terminal.type("q" if way == "q" else "!")
        terminal.ended()
        assert terminal.settings() == terminal.before
        assert not terminal.screen.cursor.hidden
        assert terminal.raw.rindex(b"\x1b[?1049l") > terminal.raw.rindex(b"\x1b[?1049h")
    assert (b"a bug" in terminal.raw) == (way == "exception")


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.timeout(1800)  # by its progress it ends long before
def test_the_demo_fits_a_terminal_of_80_columns_and_24_lines() -> None:
    """All tables, a fault by a key that comes back over the broker, a larger window, and the account at the end."""
    tables = [*(f"{kind}-1" for kind in PITS["macau"]), *PLAYED["macau"]]
    device = type(Pit(Path("/nowhere"), 1, kinds=("rou",)).tables["rou-1"].devices["wheel-1"])
    at = list(ailments(device)).index("sensor")

    def line_of(lines: list[str], table: str) -> str:
        return next((line for line in lines if line[2:].startswith(f"{table} ")), "")

    def fits(lines: list[str]) -> bool:
        """Not asserted: a screen may be read in the middle of its change."""
        return (
            lines[0].startswith(f"feltd demo  macau at 5x, {len(tables)} tables")
            and all(line_of(lines, name) for name in tables)
            and "user technician, password " in lines[-2]
            and "q end" in lines[-1]
        )

    with Terminal([sys.executable, "-m", "daemon.cli", "demo", "--speed", "5"]) as terminal:
        lines = terminal.until(
            lambda lines: sum(line.startswith("● ") for line in lines) >= len(tables) - 1 and fits(lines)
        )
        assert lines[1].startswith("●broker ")
        terminal.type("f")
        terminal.until(lambda lines: lines[2].startswith("Faults of rou-1"))
        for _ in range(at):
            terminal.type("\x1b[B")
        terminal.type("\r")
        lines = terminal.until(
            lambda lines: (
                line_of(lines, "rou-1").startswith("✖")
                and any(line.startswith("rou-1 wheel-1: ") for line in lines)
                and lines[-3].startswith("injected: rou-1/wheel-1 sensor; h heals it")
                and fits(lines)
            )
        )
        assert "wheel-1" in line_of(lines, "rou-1")
        terminal.resize(120, 45)
        terminal.until(fits)
        terminal.type("h")
        terminal.until(lambda lines: line_of(lines, "rou-1").startswith("●"))
        terminal.resize(80, 24)
        terminal.until(fits)
        terminal.type("q")
        assert terminal.ended() == 0
        assert terminal.settings() == terminal.before
    assert b"every result is what the simulators did" in b" ".join(terminal.raw.split())


def test_each_role_has_an_account_and_its_line_fits() -> None:
    assert {role for _, role, _ in ACCOUNTS} == set(ROLES)
    assert all(26 + len(what) <= 80 for _, _, what in ACCOUNTS)


@pytest.mark.skipif(not tied(), reason="setpriv is not installed")
def test_what_the_demo_started_ends_when_the_demo_is_killed() -> None:
    """An edge that lives on would write into whichever terminal has the number of its tty next."""
    code = f"import subprocess; subprocess.run({[*tied(), 'sh', '-c', 'echo $$; exec sleep 3600']})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        assert parent.stdout.read() == "", "the pipe closes with its last holder"
    assert child > 0
