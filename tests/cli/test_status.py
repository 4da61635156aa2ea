"""`feltd status`: what was measured becomes the right words, and what is measured on a real broker is true."""

import asyncio
import contextlib
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from click.testing import CliRunner, Result
from helpers import PATIENCE
from msgspec.structs import replace
from small_site import SMALL_SITE

from daemon import version
from daemon.broker.connection import connect
from daemon.broker.heartbeat import beat
from daemon.broker.session import Session
from daemon.cli import status_facts
from daemon.cli.main import main
from daemon.cli.status import BrokerState, Facts, Open, Service, Status, Wanted, status_of, text_of
from daemon.config.model import Mqtt, parse
from daemon.edge.device_session import DeviceStatus
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.documents import Alert, DeviceMeta, DeviceState, EdgeInfo, Fault
from protocols.contract.jackpots import PoolLevel
from protocols.contract.topics import device_topic, edge_topic, table_topic
from simulators.lab.broker import Broker, free_port

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 24, 3, 5, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
WHEEL = ("rou-1", "wheel-1")
INFO = EdgeInfo("1.2", "abc", started=EARLIER)
HEARD = BrokerState(
    online={"edge-1": True, "rules": True},
    beating=frozenset(("edge-1", "rules")),
    infos={"edge-1": replace(INFO, journal="j"), "rules": replace(INFO, rules=True)},
    devices={WHEEL: True},
    states={WHEEL: DeviceState(True, since=EARLIER)},
    metas={WHEEL: DeviceMeta("cammegh_ss2", "Cammegh SS2", "", "4.1", "serial:///x", "edge-1")},
)
GOOD = Facts(
    now=NOW,
    site="lisboa",
    edge="edge-1",
    installed="1.2",
    digest="abc",
    broker="127.0.0.1:1883",
    wanted=(Wanted("edge", "edge-1"), Wanted("rules", "rules")),
    devices=(WHEEL,),
    tables=("rou-1",),
    services={"edge": Service("active", True, EARLIER), "rules": Service("active", True, EARLIER)},
    broker_state=HEARD,
)
ALERT = Alert(device="wheel-1", code="wheel.ball_stuck", text="the ball sticks", remedy="free the ball", since=EARLIER)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The command line sets up logging for its process; here that is the tests'."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def found(everything: bool = False, **facts: Any) -> Status:
    return status_of(replace(GOOD, **facts), everything=everything)


def opened(**facts: Any) -> list[tuple[str, str]]:
    return [(one.place, one.code) for one in found(**facts).open]


# ---- words


def test_a_computer_with_nothing_open_is_said_at_a_glance() -> None:
    status = found()
    assert status.good
    text = text_of(status)
    assert text.splitlines()[0].endswith(": nothing is open")
    assert re.search(r"edge edge-1 +running +1\.2 +since \d\d:\d\d:\d\d", text)
    assert re.search(r"rou-1 +wheel-1 +online +since .*Cammegh SS2 4\.1", text)


def test_open_alerts_come_first_with_their_remedies() -> None:
    warning = replace(ALERT, device="", code="x", severity="warning", text="a warning")
    status = found(broker_state=replace(HEARD, alerts={("rou-1", "a-warning"): warning, ("rou-1", "wheel-1-x"): ALERT}))
    assert [(one.place, one.severity) for one in status.open] == [("rou-1/wheel-1", "error"), ("rou-1", "warning")]
    assert "  ERROR   rou-1/wheel-1: the ball sticks (since " in text_of(status)
    assert "          To do: free the ball" in text_of(status)


@pytest.mark.parametrize(
    ("heard", "services", "place", "code", "state"),
    [
        ({"beating": frozenset(("rules",))}, {}, "edge-1", "process.hangs", "hangs"),
        ({"online": {"edge-1": False, "rules": True}}, {}, "edge-1", "process.stopped", "stopped"),
        ({"online": {"rules": True}}, {}, "edge-1", "process.stopped", "stopped"),
        ({"online": {"rules": True}}, {"edge": Service("active")}, "edge-1", "process.not_connected", "not connected"),
        ({"online": {"rules": True}}, {"edge": Service("failed")}, "edge-1", "process.failed", "failed"),
        ({"online": {"rules": True}}, {"edge": Service("auto-restart")}, "edge-1", "process.failed", "restarting"),
        ({"online": {"rules": True}}, {"edge": Service("activating")}, "edge-1", "process.starting", "starting"),
        ({"online": {"rules": True}}, {"edge": Service("deactivating")}, "edge-1", "process.stopping", "stopping"),
        ({"online": {"rules": True}}, {"edge": Service("inactive")}, "edge-1", "process.stopped", "stopped"),
    ],
)
def test_a_process_that_does_not_serve_is_open(
    heard: dict[str, Any], services: dict[str, Service], place: str, code: str, state: str
) -> None:
    status = found(broker_state=replace(HEARD, **heard), services=services)
    assert [(one.place, one.code) for one in status.open] == [(place, code)]
    assert status.processes[0].state == state
    assert status.devices[0].state == "unknown", "what an absent edge said of its devices is not known to be so now"
    assert status.open[0].remedy


def test_a_process_that_was_started_by_hand_runs_although_its_unit_does_not() -> None:
    assert opened(services={"edge": Service("inactive")}) == []


def test_the_last_warning_of_the_log_is_shown_where_a_service_fails() -> None:
    status = found(broker_state=None, services={"edge": Service("failed", True, EARLIER, "edge.refused reason=x")})
    assert any("the last warning of its log: edge.refused reason=x" in one.text for one in status.open)


def test_a_console_that_is_not_enabled_may_stand_still() -> None:
    off, on = Wanted("console", needed=False), Wanted("console", needed=True)
    services = {**GOOD.services, "console": Service("inactive")}
    assert opened(wanted=(*GOOD.wanted, off), services=services) == []
    assert opened(wanted=(*GOOD.wanted, on), services=services) == [("console", "process.stopped")]


def test_an_old_version_and_an_old_configuration_are_warned_of() -> None:
    assert opened(installed="1.3") == [("edge-1", "process.old_version"), ("rules", "process.old_version")]
    assert opened(digest="new") == [("edge-1", "process.old_configuration"), ("rules", "process.old_configuration")]


def test_a_device_that_does_not_answer_is_open_once() -> None:
    lost = {"devices": {WHEEL: False}, "states": {WHEEL: DeviceState(reason="no answer", since=EARLIER)}}
    status = found(broker_state=replace(HEARD, **lost))
    assert [(one.code, one.text) for one in status.open] == [("device.offline", "does not answer: no answer")]
    assert status.devices[0].since == EARLIER
    assert opened(broker_state=replace(HEARD, **lost, alerts={("rou-1", "wheel-1-x"): ALERT})) == [
        ("rou-1/wheel-1", "wheel.ball_stuck")
    ]


def test_a_configured_device_that_the_edge_does_not_serve_is_open() -> None:
    assert opened(devices=(WHEEL, ("rou-1", "sign-1"))) == [("rou-1/sign-1", "device.unserved")]


def test_a_table_that_the_broker_refuses_is_open() -> None:
    infos = {**HEARD.infos, "rules": replace(INFO, rules=True, suspended={"rou-1": "Not authorized"})}
    assert opened(broker_state=replace(HEARD, infos=infos)) == [("rou-1", "table.refused")]


def test_other_computers_are_counted_and_shown_on_demand() -> None:
    heard = replace(
        HEARD,
        online={**HEARD.online, "edge-2": False},
        devices={**HEARD.devices, ("bac-2", "shoe"): False},
        metas={**HEARD.metas, ("bac-2", "shoe"): DeviceMeta(edge="edge-2")},
        alerts={("bac-2", "shoe-x"): ALERT},
    )
    here = found(broker_state=heard)
    assert here.good
    assert "Of other computers: 1 process, 1 device, 1 alert; feltd status --all" in text_of(here)
    everywhere = found(everything=True, broker_state=heard)
    assert [one.place for one in everywhere.open] == ["edge-2", "bac-2/wheel-1"]
    assert [one.table for one in everywhere.devices] == ["rou-1", "bac-2"]


def test_a_pool_is_a_line() -> None:
    level = PoolLevel("grand", 1234567, "HKD", 2, 9, waiting=3)
    text = text_of(found(pools=("grand", "red"), broker_state=replace(HEARD, levels={"grand": level})))
    assert re.search(r"grand +HKD 12345\.67, 3 wins to pay or to confirm\n +red +not known", text)


def test_without_the_broker_systemd_and_the_journal_speak() -> None:
    fault = Fault("wheel.x", "it smokes", "error", "pull the plug", EARLIER)
    journal = {WHEEL: DeviceState(True, faults=(fault,), since=EARLIER)}
    away: dict[str, Any] = {
        "broker_state": None,
        "broker_error": "refused",
        "broker_remedy": "systemctl status mosquitto",
    }
    status = found(**away, journal=journal)
    assert [one.code for one in status.open] == ["broker.lost", "wheel.x"]
    assert [one.state for one in status.processes] == ["running", "running"]
    assert (status.devices[0].state, status.devices[0].source) == ("online", "journal")
    text = text_of(status)
    assert "To do: systemctl status mosquitto" in text
    assert "DEVICES (by the journal of the edge)" in text
    stopped = found(**away, journal=journal, services={"edge": Service("inactive"), "rules": Service("active")})
    assert stopped.devices[0].state == "unknown", "a journal that nothing writes says nothing of now"


HOSTILE = "\x1b]52;c;aGk=\x07\x9b31m\u202eevil\r\n" + "x" * 300 + " word" * 60


def test_texts_of_others_are_plain_and_fit_eighty_columns() -> None:
    heard = replace(
        HEARD,
        infos={"edge-1": replace(HEARD.infos["edge-1"], version=HOSTILE), "rules": INFO},
        metas={WHEEL: replace(HEARD.metas[WHEEL], model=HOSTILE)},
        alerts={("rou-1", "a"): replace(ALERT, text=HOSTILE, remedy=HOSTILE, device=HOSTILE)},
        levels={"grand": PoolLevel("grand", 1, HOSTILE, 2, 9)},
    )
    log = Service("failed", True, EARLIER, HOSTILE)
    for services in (GOOD.services, {**GOOD.services, "console": log}):
        wanted = (*GOOD.wanted, Wanted("console"))
        text = text_of(found(broker_state=heard, pools=("grand",), services=services, wanted=wanted))
        assert max(map(len, text.splitlines())) <= 80
        assert text.replace("\n", "").isprintable()


# ---- the command


def run(path: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["status", "-c", str(path), *more])


def site(folder: Path, port: int) -> Path:
    path = folder / "feltd.toml"
    path.write_text(SMALL_SITE.format(folder=folder) + f"[mqtt]\nport = {port}\n", encoding="utf-8")
    return path


@pytest.fixture
def no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_facts, "_said", lambda *_: "")


def test_a_configuration_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    result = run(tmp_path / "none.toml")
    assert result.exit_code == 2
    assert "No such file" in result.stderr


@pytest.mark.usefixtures("no_systemd")
def test_a_broker_that_is_away_is_said_plainly(tmp_path: Path) -> None:
    path = site(tmp_path, port := free_port())
    config = parse(path.read_text())
    journal = Journal(Path(config.edge.journal))
    board = DeviceStatus(True, since=EARLIER)
    entry = Entry("rou-1", "wheel-1", "device.online", NOW, b"{}")
    journal.append([entry], {"status/rou-1/wheel-1": msgspec.json.encode(board)})
    journal.close()
    result = run(path)
    assert result.exit_code == 1
    assert f"broker: 127.0.0.1:{port}: Connection refused" in " ".join(result.output.split())
    assert "To do: systemctl status mosquitto" in result.output
    assert re.search(r"rou-1 +wheel-1 +online", result.output)
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("no_systemd")
def test_a_password_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = site(tmp_path, free_port())
    path.write_text(path.read_text() + f'username = "x"\npassword_file = "{tmp_path}/none"\n')
    result = run(path, "--json")
    [line] = [one for one in json.loads(result.stdout)["open"] if one["place"] == "broker"]
    assert f"{tmp_path}/none: No such file or directory" in line["text"]
    assert "sudo" in line["remedy"]


def test_services_are_read_from_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {
        "systemctl": (
            "Id=feltd-edge.service\nLoadState=loaded\nActiveState=failed\nUnitFileState=enabled\n"
            "StateChangeTimestamp=@1763953500\n\n"
            "Id=feltd-rules.service\nLoadState=not-found\nActiveState=inactive\n"
        ),
        "journalctl": '{"event":"broker.lost","level":"warning","reason":"Not authorized","timestamp":"x"}\n',
    }
    for name, text in programs.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    since = datetime(2025, 11, 24, 3, 5, tzinfo=UTC)
    services = status_facts._services(["edge", "rules"])
    assert services == {"edge": Service("failed", True, since, "broker.lost reason=Not authorized")}


async def test_a_systemd_that_does_not_answer_is_no_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "systemctl").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(status_facts, "SYSTEMD_TIMEOUT_S", 0.1)
    assert status_facts._services(["edge"]) == {}


# ---- a real broker


@contextlib.asynccontextmanager
async def process(port: int, name: str, info: EdgeInfo, *, beats: bool = True) -> AsyncIterator[Session]:
    """A process on the broker: its documents, and its heartbeat."""
    async with connect(Mqtt(port=port), "") as session, asyncio.TaskGroup() as group:
        await session.publish(edge_topic("lisboa", name, "availability"), b"online", retain=True)
        await session.publish(edge_topic("lisboa", name, "info"), msgspec.json.encode(info), retain=True)
        await session.drained()
        task = group.create_task(beat(session, "lisboa", name) if beats else asyncio.sleep(3600))
        yield session
        task.cancel()


async def _on_broker(folder: Path, look: Callable[[Path, Session], Any], *, beats: bool = True) -> None:
    broker = Broker(folder)
    await broker.start()
    try:
        path = site(folder, broker.port)
        info = EdgeInfo(version(), parse(path.read_text()).digest, started=EARLIER)
        async with (
            process(broker.port, "edge-1", replace(info, journal="j")) as edge,
            process(broker.port, "rules", replace(info, rules=True), beats=beats),
        ):
            meta = DeviceMeta("cammegh_ss2", "Cammegh SS2", "", "4.1", "serial:///x", "edge-1")
            topic = device_topic("lisboa", *WHEEL, "")
            await edge.publish(f"{topic}availability", b"online", retain=True)
            await edge.publish(f"{topic}meta", msgspec.json.encode(meta), retain=True)
            state = msgspec.json.encode(DeviceState(True, since=EARLIER))
            await edge.publish(f"{topic}state", state, retain=True)
            await edge.drained()
            await look(path, edge)
    finally:
        await broker.stop()


@pytest.mark.usefixtures("no_systemd")
async def test_the_documents_of_a_real_broker_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_facts, "SILENT_S", PATIENCE)  # a busy computer beats late

    async def look(path: Path, edge: Session) -> None:
        good = await asyncio.to_thread(run, path)
        assert good.exit_code == 0, good.output
        assert re.search(r"rou-1 +wheel-1 +online +since .*Cammegh SS2 4\.1", good.output)
        topic = table_topic("lisboa", "rou-1", "alert/wheel-1-wheel-ball-stuck")
        await edge.publish(topic, msgspec.json.encode(ALERT), retain=True)
        await edge.publish(table_topic("lisboa", "rou-1", "alert/garbage"), b"\xff", retain=True)
        await edge.drained()
        bad = await asyncio.to_thread(run, path, "--json")
        assert bad.exit_code == 1, bad.output
        shown = json.loads(bad.stdout)
        assert not shown["good"]
        assert {one["code"] for one in shown["open"]} == {"wheel.ball_stuck", "broker.unreadable"}
        [alert] = [one for one in shown["open"] if one["code"] == "wheel.ball_stuck"]
        assert alert["remedy"] == "free the ball"

    await _on_broker(tmp_path, look)


@pytest.mark.usefixtures("no_systemd")
async def test_a_process_without_a_heartbeat_hangs(tmp_path: Path) -> None:
    async def look(path: Path, _: Session) -> None:
        result = await asyncio.to_thread(run, path)
        assert result.exit_code == 1
        assert re.search(r"rules +HANGS", result.output), result.output

    await _on_broker(tmp_path, look, beats=False)


# ---- the page


def test_the_page_names_every_field_of_the_json() -> None:
    page = (ROOT / "docs/reference/status.md").read_text(encoding="utf-8")
    described = {
        tuple(row.split("`")[1].split("."))
        for row in page.partition("## JSON")[2].splitlines()
        if row.startswith("| `")
    }
    shown = msgspec.to_builtins(found(broker_state=None, pools=("grand",)))
    fields: set[tuple[str, ...]] = set()
    for key, value in shown.items():
        match value:
            case [dict() as one, *_]:
                fields |= {(f"{key}[]", name) for name in one}
            case dict():
                fields |= {(key, name) for name in value}
            case _:
                fields.add((key,))
    assert described == fields


def test_the_page_names_every_state_and_code() -> None:
    page = (ROOT / "docs/reference/status.md").read_text(encoding="utf-8")
    source = (ROOT / "daemon/cli/status.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'"((?:process|broker|device|table)\.\w+)"', source))
    assert len(codes) > 7
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
    assert Open.__struct_fields__[0] == "severity"
