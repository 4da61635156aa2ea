"""A configuration that changes while the processes run."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest
import structlog
from click.testing import CliRunner
from helpers import PATIENCE, MemoryLink, virtual_time
from msgspec import Struct
from structlog.testing import capture_logs

from daemon.broker.session import BrokerLost
from daemon.cli.main import main
from daemon.config.model import Config, load, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.commands import RULES_STATE_WITHIN_S
from daemon.edge.edge import Edge
from daemon.edge.links.link import HostLink
from daemon.journal.store import Journal
from daemon.reload import Reload, note_start
from drivers import DRIVERS
from drivers.driver import Emit, Evidence, Link
from protocols.contract.results import RoundState

HEAD = '[site]\nname = "s"\n[edge]\nname = "e"\n'
DEVICE = '[[table.device]]\nname = "{}"\ndriver = "actor"\nurl = "tcp://127.0.0.1:{}"\n'
ONE = f'[[table]]\nname = "t-1"\nruleset = "macau.roulette"\n{DEVICE.format("d-1", 7001)}'
TWO = f'[[table]]\nname = "t-2"\n{DEVICE.format("d-2", 7002)}'


def mistakes(_: Config, path: Path) -> list[str]:
    return [f"{path}: bad"] if "bad" in path.read_text() else []


def asked(path: Path, text: str) -> tuple[Reload, Config]:
    """The configuration of a process, and its reload once the file is `text`."""
    path.write_text(HEAD + ONE)
    before = load(path)
    path.write_text(text)
    one = Reload(path, "edge", mistakes, structlog.get_logger())
    one.ask()
    return one, before


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (HEAD + ONE + "# bad\n", "config.refused"),
        ("[site]\n", "config.refused"),
        (HEAD + ONE, "config.unchanged"),
        (HEAD.replace('"e"', '"f"') + ONE, "config.needs_restart"),
        (HEAD + "[mqtt]\nport = 1884\n" + ONE, "config.needs_restart"),
    ],
)
async def test_a_configuration_that_cannot_be_used_is_told_and_the_one_before_stays(
    tmp_path: Path, text: str, event: str
) -> None:
    with capture_logs() as logs:
        one, before = asked(tmp_path / "feltd.toml", text)
        task = asyncio.create_task(one.next(before, lambda _: ()))
        async with asyncio.timeout(PATIENCE):
            while not logs:  # noqa: ASYNC110 - a thread reads the file
                await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()
    assert [line["event"] for line in logs] == [event]


async def test_a_change_waits_for_the_end_of_an_open_round(tmp_path: Path) -> None:
    one, before = asked(tmp_path / "feltd.toml", HEAD + ONE + TWO)
    rounds = [["t-1"], ["t-1"], []]
    with capture_logs() as logs:
        new = await one.next(before, lambda _: rounds.pop(0))
    assert [table.name for table in new.table] == ["t-1", "t-2"]
    assert not rounds
    assert [(line["event"], line["tables"]) for line in logs] == [("config.waits", ["t-1"]), ("config.used", 2)]


class NoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The actor has none."""


class Counted:
    """A driver that counts its starts and ends."""

    name: ClassVar[str] = "actor"
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual",)
    Options: ClassVar[type[NoOptions]] = NoOptions
    tells_cards: ClassVar[bool] = False
    lives: ClassVar[list[str]] = []

    def __init__(self, options: NoOptions, memory: bytes | None = None) -> None:
        pass

    async def run(self, _link: Link, _emit: Emit) -> None:
        self.lives.append("start")
        try:
            await asyncio.sleep(float("inf"))
        finally:
            self.lives.append("end")


@contextlib.asynccontextmanager
async def cable(_: str) -> AsyncIterator[HostLink]:
    yield cast("HostLink", MemoryLink())


def no_broker(*_: Any) -> Any:
    raise BrokerLost("no broker here")


@virtual_time
async def test_a_device_that_stays_the_same_keeps_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DRIVERS, "actor", Counted)
    monkeypatch.setattr(Counted, "lives", [])
    journal = Journal(tmp_path / "edge.db")
    group = asyncio.TaskGroup()
    async with group:
        edge = Edge(
            parse(HEAD + ONE), journal, now=lambda: datetime(2026, 11, 23, tzinfo=UTC), opener=cable, connect=no_broker
        )
        edge.supervise(group)
        await asyncio.sleep(1)
        assert Counted.lives == ["start"]
        [first] = edge.sessions

        both = parse(HEAD + ONE + TWO)
        assert edge.busy(both) == []
        await edge.release(both)
        edge = edge.followed_by(both)
        edge.supervise(group)
        await asyncio.sleep(1)
        assert Counted.lives == ["start", "start"]
        assert edge.sessions[0] is first
        assert edge.boots == 1

        other = parse(HEAD + ONE.replace("7001", "7003") + TWO)
        assert edge.busy(other) == ["t-1"], "whether a round is open is unknown without the rules"
        edge.commands.rules_are(online=True)
        for phase, busy in (("spinning", ["t-1"]), ("idle", [])):
            edge.commands._rounds["t-1"] = RoundState("t-1:1", phase)
            assert edge.busy(other) == busy
        await edge.release(other)
        edge = edge.followed_by(other)
        edge.supervise(group)
        await asyncio.sleep(1)
        assert Counted.lives == ["start", "start", "end", "start"]
        assert edge.sessions[0] is not first
        for post in edge.sessions:
            assert post.task is not None
            post.task.cancel()
    journal.close()


@virtual_time
async def test_a_table_that_the_rules_no_longer_keep_is_not_waited_for(tmp_path: Path) -> None:
    """They read the new configuration first and cleared its state; until retained states have come it may be open."""
    journal = Journal(tmp_path / "edge.db")
    edge = Edge(parse(HEAD + ONE.replace("actor", "tcs_saturn")), journal, connect=no_broker)
    assert edge.busy(parse(HEAD)) == ["t-1"]
    edge.commands.rules_are(online=True)
    assert edge.busy(parse(HEAD)) == ["t-1"]
    await asyncio.sleep(RULES_STATE_WITHIN_S + 1)
    assert edge.busy(parse(HEAD)) == []
    edge.commands.round_is("t-1", msgspec.json.encode(RoundState("t-1:1", "spinning")))
    assert edge.busy(parse(HEAD)) == ["t-1"]
    edge.commands.round_is("t-1", b"")
    assert edge.busy(parse(HEAD)) == []
    edge.commands.rules_are(online=False)
    assert edge.busy(parse(HEAD)) == ["t-1"]
    journal.close()


def test_the_rules_wait_for_the_rounds_of_changed_tables_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "rules.db")
    consumer = Consumer(parse(HEAD + ONE.replace("actor", "tcs_saturn")), journal)
    assert consumer.busy(parse(HEAD)) == []
    monkeypatch.setattr(consumer, "_open_or_in_doubt", lambda _table: True)
    assert consumer.busy(parse(HEAD)) == ["t-1"]
    assert consumer.busy(parse(HEAD + ONE + TWO)) == []
    assert consumer.busy(parse(HEAD + ONE.replace("macau", "angola").replace("roulette", "french-roulette"))) == ["t-1"]
    journal.close()


def test_a_reload_names_what_the_process_reads_at_its_start_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent to the process, which logged it where nobody looked, and the command succeeded."""
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    path = tmp_path / "feltd.toml"
    text = f'[site]\nname = "s"\n[edge]\nname = "e"\njournal = "{tmp_path}/edge.db"\n[[table]]\nname = "t-1"\n'
    path.write_text(text)
    note_start(load(path), "edge")
    check = ("check", "--running", "edge", "-c", str(path))
    path.write_text(text.replace("t-1", "t-2"))
    assert CliRunner().invoke(main, check).exit_code == 0
    path.write_text(text.replace('name = "s"', 'name = "another"'))
    refused = CliRunner().invoke(main, check)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"Error: {path}:1: [site] was changed; feltd-edge reads it at its start alone")
    assert CliRunner().invoke(main, ("check", "-c", str(path))).exit_code == 0


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (('"t-1"', '"t-2"'), 0, "given to feltd-edge"),
        (('"t-1"', '"T 1"'), 2, ":7: 'table.name': a name is small letters"),
        (('"s"', '"another"'), 2, ":1: [site] was changed"),
    ],
)
def test_a_mistake_is_said_where_the_reload_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], code: int, said: str
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n[ "$2" != feltd-rules ] || exit 3\n'
    )  # they do not run
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = tmp_path / "feltd.toml"
    text = f'[site]\nname = "s"\n[edge]\nname = "e"\njournal = "{tmp_path}/edge.db"\n[[table]]\nname = "t-1"\n'
    path.write_text(text)
    note_start(load(path), "edge")
    path.write_text(text.replace(*change))
    done = CliRunner().invoke(main, ["reload", "-c", str(path)])
    assert done.exit_code == code, done.output
    assert said in done.output
    calls = (tmp_path / "calls").read_text() if (tmp_path / "calls").exists() else ""
    assert ("reload feltd-edge\n" in calls) == (code == 0)


def test_without_systemd_a_reload_says_how_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A container has the command and no systemd: that was reported as services that do not run."""
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\necho System has not been booted with systemd as init system >&2\nexit 1\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = tmp_path / "feltd.toml"
    path.write_text('[site]\nname = "s"\n[edge]\nname = "e"\n[[table]]\nname = "t-1"\n')
    done = CliRunner().invoke(main, ["reload", "-c", str(path)])
    assert done.exit_code == 2
    assert done.stderr == "Error: systemd runs no service here; send SIGHUP to the processes that you started\n"
    assert capfd.readouterr().err == ""
