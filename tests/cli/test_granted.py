"""The configuration beside the access list that mosquitto has: what `check`, `doctor` and a reload say of it."""

import asyncio
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner
from helpers import PATIENCE
from msgspec.structs import replace
from structlog.testing import capture_logs

from daemon.broker.mac_keys import make_mac_keys
from daemon.cli import granted
from daemon.cli.access_list import access_list
from daemon.cli.doctor import State, lines
from daemon.cli.granted import SETTINGS, SHIPPED, edited_settings, not_granted, old_list
from daemon.cli.main import main
from daemon.config.model import load
from daemon.reload import Reload
from tests.cli.test_doctor import GOOD
from tests.hostile.test_forger_broker import made, pit
from tests.hostile.test_refused_table import ADDED


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration with a table more than the installed list of both computers."""
    installed = tmp_path / "feltd.acl"
    installed.write_text(made(tmp_path, pit(1, tmp_path), pit(2, tmp_path)))
    monkeypatch.setattr(granted, "INSTALLED", installed)
    for name in ("edge-1", "rules", "console", "maintenance"):
        (tmp_path / name).write_text("secret\n")
    path = tmp_path / "feltd.toml"
    path.write_text(pit(1, tmp_path) + ADDED)
    return path


def test_a_new_table_is_missed_for_edge_and_rules(old: Path) -> None:
    said = old_list(load(old), old)
    assert [line.partition(" does not grant user ")[2].partition(" (")[0] for line in said] == [
        "edge-1 all of table rou-3",
        "rules all of table rou-3",
    ]


def test_the_list_of_the_whole_site_grants_what_one_computer_needs(old: Path, tmp_path: Path) -> None:
    """It names the devices of the table that two edges share, and denies an edge the alerts of the rules."""
    old.write_text(pit(1, tmp_path))
    assert old_list(load(old), old) == []


def test_an_empty_list_and_a_denied_topic_are_found(old: Path) -> None:
    granted.INSTALLED.write_text("")
    assert len(old_list(load(old), old)) == 6
    wanted = access_list([(old, load(old))])
    assert not_granted(wanted, wanted, {}) == {}
    less = wanted.replace("user rules\n", "user rules\ntopic deny felt/1/s/table/rou-3/#\n")
    assert all("rou-3" in topic for topic in not_granted(less, wanted, {})["rules"])
    assert not_granted("user u\ntopic a/#\n", "user u\ntopic read a/b\ntopic write c\n", {}) == {"u": ["write c"]}


def test_a_broker_elsewhere_or_no_list_says_nothing(old: Path) -> None:
    config = load(old)
    assert old_list(replace(config, mqtt=replace(config.mqtt, host="broker.example")), old) == []
    granted.INSTALLED.unlink()
    assert old_list(config, old) == []


@pytest.mark.parametrize(("command", "place"), [("check", "stderr"), ("doctor", "stdout"), ("reload", "stderr")])
def test_each_command_compares_the_configuration_with_the_list(
    old: Path, command: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_mac_keys(old.parent, "edge-1", "s")
    monkeypatch.setenv("PATH", "/nowhere")  # no systemctl: here a reload reaches no service
    result = CliRunner().invoke(main, [command, "--config", str(old)])
    said = " ".join(str(getattr(result, place)).split())
    assert "does not grant user edge-1 all of table rou-3" in said
    assert "feltd acl" in said


def test_a_list_that_lacks_something_is_a_problem_for_doctor() -> None:
    [line] = [one for one in lines(replace(GOOD, unlisted=("list x",))) if one.check == "access list"]
    assert (line.state, line.text) == (State.PROBLEM, "list x")
    assert "feltd acl" in line.remedy


def test_edited_settings_of_the_package_are_a_warning(tmp_path: Path) -> None:
    for file in (SHIPPED, SETTINGS):
        assert not edited_settings(tmp_path), "installed without the package"
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("listener 1883\n")
    assert not edited_settings(tmp_path)
    (tmp_path / SETTINGS).write_text("listener 1883\nlistener 1885\n")
    assert edited_settings(tmp_path)
    [line] = [one for one in lines(replace(GOOD, edited=True)) if one.state is not State.OK]
    assert (line.check, line.state) == ("broker settings", State.WARNING)
    assert "site.conf" in line.remedy


async def test_reload_says_it_and_uses_the_configuration(old: Path, tmp_path: Path) -> None:
    before = load(tmp_path / "feltd-1.toml")
    with capture_logs() as logs:
        one = Reload(old, "edge", lambda _config, _path: [], structlog.get_logger(), old_list)
        one.ask()
        new = await asyncio.wait_for(one.next(before, lambda _: ()), PATIENCE)
    assert "rou-3" in {table.name for table in new.table}
    assert [line["event"] for line in logs] == ["config.unlisted", "config.used"]
