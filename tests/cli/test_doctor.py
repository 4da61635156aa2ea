"""`feltd doctor`: what was measured becomes the right line; what is measured here is true."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import structlog
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from helpers import PATIENCE, broker_may_be_late
from msgspec.structs import replace

from daemon.broker.connection import connect
from daemon.cli import doctor_computer, doctor_facts
from daemon.cli.doctor import (
    Broker,
    Certificate,
    Clock,
    Device,
    Disk,
    End,
    Facts,
    File,
    Kind,
    Line,
    Port,
    State,
    exit_code,
    lines,
    text_of,
)
from daemon.cli.doctor_computer import Computer
from daemon.cli.main import main
from daemon.config import model
from daemon.config.model import Mqtt
from daemon.edge.edge import Edge
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.documents import DeviceMeta
from protocols.contract.topics import device_topic
from simulators.lab.broker import Broker as Mosquitto, find_mosquitto

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MB = 1_000_000
GOOD = Facts(now=NOW, clock=Clock(True), limit_mb=20_000, file_mb=256)


def judged(**facts: object) -> list[Line]:
    """The lines of what differs from a computer without anything."""
    return lines(replace(GOOD, **facts))[0 if "clock" in facts else 1 :]


@pytest.mark.parametrize(("synchronized", "state"), [(True, State.OK), (False, State.WARNING), (None, State.WARNING)])
def test_a_clock_that_nothing_corrects_is_a_warning(synchronized: bool | None, state: State) -> None:
    [line] = judged(clock=Clock(synchronized))
    assert line.state is state
    assert bool(line.remedy) == (state is not State.OK)


@pytest.mark.parametrize(
    ("free_mb", "used_mb", "sync_ms", "states"),
    [
        (20_000, 0, 1, (State.OK, State.OK)),
        (19_999, 0, 1, (State.WARNING, State.OK)),
        (19_999, 1, 1, (State.OK, State.OK)),
        (1024, 0, 19.9, (State.WARNING, State.OK)),
        (1023, 30_000, 20, (State.PROBLEM, State.WARNING)),
        (20_000, 0, 200, (State.OK, State.PROBLEM)),
    ],
)
def test_a_disk_has_room_and_speed(free_mb: int, used_mb: int, sync_ms: float, states: tuple[State, ...]) -> None:
    found = judged(disks=(Disk("/var/lib/feltd/edge", free_mb * MB, used_mb * MB, sync_ms),))
    assert tuple(line.state for line in found) == states


@pytest.mark.parametrize(
    ("kind", "mode", "state"),
    [
        (Kind.CONFIGURATION, 0o640, State.OK),
        (Kind.CONFIGURATION, 0o644, State.WARNING),
        (Kind.CONFIGURATION, 0o660, State.PROBLEM),
        (Kind.SECRET, 0o640, State.OK),
        (Kind.SECRET, 0o644, State.PROBLEM),
        (Kind.JOURNAL, 0o600, State.OK),
        (Kind.JOURNAL, 0o604, State.PROBLEM),
        (Kind.PUBLIC, 0o644, State.OK),
        (Kind.PUBLIC, 0o666, State.PROBLEM),
    ],
)
def test_a_file_is_judged_by_what_it_is(kind: Kind, mode: int, state: State) -> None:
    [line] = judged(files=(File("x", "/etc/feltd/x", kind, mode, "root"),))
    assert line.state is state


def test_a_file_that_its_service_may_not_read_is_a_problem() -> None:
    [line] = judged(files=(File("edge.journal_key", "/k", Kind.SECRET, 0o600, "root", "feltd-edge"),))
    assert line.state is State.PROBLEM
    assert "feltd-edge may not read it" in line.text


@pytest.mark.parametrize(
    ("days", "state"), [(31, State.OK), (29, State.WARNING), (0, State.PROBLEM), (-1, State.PROBLEM)]
)
def test_a_certificate_warns_thirty_days_before_its_end(days: int, state: State) -> None:
    [line] = judged(certificates=(Certificate("console.certificate", "/c", NOW + timedelta(days=days)),))
    assert line.state is state


def test_other_findings_have_their_states_and_remedies() -> None:
    found = judged(
        brokers=(Broker("edge", "127.0.0.1:1883"), Broker("rules", "127.0.0.1:1883", "Not authorized")),
        certificates=(Certificate("mqtt.ca_file", "/c", error="no PEM certificate"),),
        ends=(
            End("edge", "/j", rows=7, signed=True, verified=NOW - timedelta(days=7)),
            End("rules", "/j", rows=7, verified=NOW - timedelta(days=9)),
            End("console", "/j", exists=False),
            End("edge", "/j", finding="/j: row 3 was changed"),
        ),
        ports=(Port("rou-1/w", "serial:///a", True), Port("rou-1/x", "serial:///b", False)),
        disks=(Disk("/d", error="Permission denied"),),
    )
    assert [line.state.value for line in found] == [
        "warning", "ok", "problem", "problem", "ok", "ok", "warning", "warning", "warning", "problem", "ok", "problem",
    ]  # fmt: skip
    assert all(bool(line.remedy) == (line.state is not State.OK) for line in found)
    assert exit_code(found) == 1
    assert exit_code([line for line in found if line.state is not State.PROBLEM]) == 0
    assert len(text_of(found).splitlines()) == len(found) + sum(bool(line.remedy) for line in found)


# ---- measured


CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-1"
journal = "{folder}/edge.db"
[rules]
journal = "{folder}/rules.db"
[mqtt]
port = {port}
[console]
certificate = "{folder}/console.crt"
key = "{folder}/console.key"
store = "{folder}/console.db"
journal = "{folder}/actions.db"
[[table]]
name = "rou-1"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "serial://{folder}/there"
[[table.device]]
name = "wheel-2"
driver = "cammegh_ss2"
url = "serial://{folder}/missing"
[[table.device]]
name = "wheel-3"
driver = "cammegh_ss2"
url = "serial:?vid=ffff&pid=fffe&serial=none"
"""


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    """The command line sets up logging for its process; here that is the tests'."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as one:  # bound and not listening: refused
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


def site(folder: Path, port: int) -> Path:
    """A configuration, a journal with a row, a certificate of five days, and one of three ports."""
    (folder / "feltd.toml").write_text(CONFIG.format(folder=folder, port=port), encoding="utf-8")
    (folder / "feltd.toml").chmod(0o640)
    (folder / "there").touch()
    (folder / "console.key").touch(0o644)
    (folder / "console.key").chmod(0o644)
    key, name = Ed25519PrivateKey.generate(), x509.Name([])
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(datetime.now(UTC))
    built = built.not_valid_after(datetime.now(UTC) + timedelta(days=5))
    (folder / "console.crt").write_bytes(built.sign(key, None).public_bytes(Encoding.PEM))
    journal = Journal(folder / "edge.db")
    journal.append([Entry("rou-1", "d", "x", datetime.now(UTC), b"{}")])
    journal.close()
    return folder / "feltd.toml"


def examined(config: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "-c", str(config), *words])


def test_a_computer_is_measured(tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_facts, "_clock", lambda: Clock(True))
    done = examined(site(tmp_path, closed_port), "--json")
    assert done.exit_code == 1
    found = [(one["check"], one["state"]) for one in json.loads(done.stdout)]
    assert len([one for one in found if one[0] == f"disk {tmp_path}"]) == 2
    assert [one for one, _ in found[-5:]] == [one.check for one in doctor_computer.lines(Computer())]
    assert [one for one in found[:-5] if not one[0].startswith("disk")] == [
        ("clock", "ok"),
        ("permissions feltd.toml", "ok"),
        ("permissions console.certificate", "ok"),
        ("permissions console.key", "problem"),
        ("permissions edge", "ok"),
        ("broker as edge", "problem"),
        ("broker as rules", "problem"),
        ("broker as console", "problem"),
        ("certificate console.certificate", "warning"),
        ("journal edge", "warning"),  # whole, and not signed
        ("verification edge", "warning"),
        ("journal rules", "warning"),
        ("journal console", "warning"),
        ("port rou-1/wheel-1", "ok"),
        ("port rou-1/wheel-2", "problem"),
        ("port rou-1/wheel-3", "problem"),
    ]
    assert "problem  permissions console.key" in examined(tmp_path / "feltd.toml").stdout


def test_the_folder_of_the_jackpots_journal_is_examined(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[list[Path]] = []

    def computer(journals: list[Path]) -> Computer:
        measured.append(journals)
        return Computer()

    monkeypatch.setattr(doctor_computer, "measured", computer)
    config = site(tmp_path, closed_port)
    with config.open("a", encoding="utf-8") as file:
        file.write(f'[jackpots]\njournal = "{tmp_path}/books/jackpots.db"\n')
    examined(config)
    assert tmp_path / "books/jackpots.db" in measured[0]


def test_everybody_may_read_the_public_half_of_a_key(tmp_path: Path, closed_port: int) -> None:
    config = site(tmp_path, closed_port)
    public = tmp_path / "console.pem.pub"
    with config.open("a", encoding="utf-8") as file:
        file.write(f'[jackpots]\norder_public_key = "{public}"\n')
    for mode, state in ((0o644, "ok"), (0o666, "problem")):
        public.touch()
        public.chmod(mode)
        found = {one["check"]: one["state"] for one in json.loads(examined(config, "--json").stdout)}
        assert found["permissions jackpots.order_public_key"] == state


@pytest.mark.parametrize(("port", "state"), [("ttyUSB7", "warning"), ("usb-FTDI_A1-if00", "ok")])
def test_a_port_that_another_adapter_may_get_is_a_warning(
    port: str, state: str, tmp_path: Path, closed_port: int
) -> None:
    config = site(tmp_path, closed_port)
    (tmp_path / port).touch()
    config.write_text(config.read_text().replace(f"{tmp_path}/there", f"{tmp_path}/{port}"))
    found = {one["check"]: one for one in json.loads(examined(config, "--json").stdout)}
    assert found["port rou-1/wheel-1"]["state"] == state
    assert ("by-id" in found["port rou-1/wheel-1"]["remedy"]) == (state == "warning")


@pytest.mark.parametrize("text", [None, "[site]\nname = 7\n"], ids=["none", "with a mistake"])
def test_a_computer_without_a_good_configuration_is_measured(tmp_path: Path, text: str | None) -> None:
    config = tmp_path / "feltd.toml"
    if text is not None:
        config.write_text(text)
    done = examined(config, "--json")
    assert done.exit_code == 1
    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert found["configuration"]["state"] == "problem"
    assert ("feltd init" in found["configuration"]["remedy"]) == (text is None)
    assert {"clock", "disk /var/lib/feltd/edge", "broker as edge"} <= found.keys()


def test_a_password_that_cannot_be_read_is_not_called_a_broker_that_does_not_answer(
    tmp_path: Path, closed_port: int
) -> None:
    config = site(tmp_path, closed_port)
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("[rules]", f'password_file = "{tmp_path}/none"\n[rules]'), encoding="utf-8")
    found = {one["check"]: one for one in json.loads(examined(config, "--json").stdout)}
    assert found["broker as edge"]["text"] == f"not tried: {tmp_path}/none: No such file or directory"
    assert "mosquitto" not in found["broker as edge"]["remedy"]
    text = text.replace("[mqtt]", f'[mqtt]\nusername = "x"\npassword_file = "{tmp_path}/none"')
    config.write_text(text, encoding="utf-8")
    sent = CliRunner().invoke(main, ["command", "-c", str(config), "rou-1/wheel-1", "self-test"])
    assert f"{tmp_path}/none: No such file or directory; run this with sudo" in sent.stderr
    assert "check that it runs" not in sent.stderr


def test_an_encrypted_credential_is_a_password_that_only_its_service_reads(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.setattr(model, "CREDSTORE", f"{tmp_path}/credstore")
    config = site(tmp_path, closed_port)
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("[rules]", 'password_file = "credential:mqtt-edge"\n[rules]'), encoding="utf-8")

    def states() -> list[str]:
        found = {one["check"]: one["state"] for one in json.loads(examined(config, "--json").stdout)}
        return [found["permissions edge.password_file"], found["broker as edge"]]

    missing = f"edge.password_file: {tmp_path}/credstore/mqtt-edge is not there"
    assert states() == ["problem", "problem"]
    assert missing in CliRunner().invoke(main, ["check", "-c", str(config)]).output
    encrypted = tmp_path / "credstore.encrypted" / "mqtt-edge"
    encrypted.parent.mkdir()
    encrypted.touch()
    encrypted.chmod(0o644)  # as systemd-creds makes it
    assert states() == ["ok", "warning"]
    assert missing not in CliRunner().invoke(main, ["check", "-c", str(config)]).output
    (tmp_path / "credstore").mkdir()
    (tmp_path / "credstore" / "mqtt-edge").touch(0o600)
    assert states() == ["ok", "problem"], "the broker is tried again: its port is closed"


def test_a_journal_that_was_verified_or_copied_lately_is_ok(tmp_path: Path, closed_port: int) -> None:
    config = site(tmp_path, closed_port)

    def state() -> str:
        found: dict[str, str] = {one["check"]: one["state"] for one in json.loads(examined(config, "--json").stdout)}
        return found["verification edge"]

    assert state() == "warning"
    note = tmp_path / "edge.db-verified"
    for words in (["journal", "verify", "-c", str(config)], ["backup", "-c", str(config), str(tmp_path / "copy")]):
        assert CliRunner().invoke(main, words).exit_code == 0
        assert state() == "ok"
        note.unlink()
    for damaged in (b"", b"{}", b'{"at":"2026-11-20T12:00:00","rows":1}', b"\xff"):
        note.write_bytes(damaged)
        assert state() == "warning"


def test_the_edge_tells_the_site_what_was_found(tmp_path: Path, closed_port: int) -> None:
    config = site(tmp_path, closed_port)
    found = json.loads(examined(config, "--json").stdout)
    with contextlib.closing(Journal(tmp_path / "edge.db")) as journal:
        edge = Edge(model.load(config), journal)
        told = edge.health().examination
        assert told is not None
        assert set(told.problems) == {one["check"] for one in found if one["state"] == "problem"}
        assert told.sync_ms is not None
        assert told.certificate_ends is not None
        assert told.certificate_ends - told.time < timedelta(days=5)
        assert told.verified is None
        (tmp_path / "edge.db-examined").write_bytes(b"{}")
        assert edge.health().examination is None


def test_a_journal_that_is_not_good_is_not_noted_as_verified(tmp_path: Path, closed_port: int) -> None:
    config = site(tmp_path, closed_port)
    (tmp_path / "edge.db").write_bytes((tmp_path / "edge.db").read_bytes().replace(b"rou-1", b"rou-2"))
    assert CliRunner().invoke(main, ["journal", "verify", "-c", str(config)]).exit_code == 1
    assert not (tmp_path / "edge.db-verified").exists()


def test_model_and_firmware_of_a_device_are_shown() -> None:
    found = judged(
        devices=(
            Device("rou-1/w", "Cammegh SS2", "", "4.1"),
            Device("rou-1/d", "SICBO", "7"),
            Device("rou-1/x"),
        )
    )
    assert [(line.state, line.text) for line in found[:2]] == [
        (State.OK, "Cammegh SS2, firmware 4.1"),
        (State.OK, "SICBO, serial number 7, it reports no firmware"),
    ]
    assert found[2].state is State.WARNING
    assert found[2].remedy


def test_a_changed_journal_is_a_problem(tmp_path: Path, closed_port: int) -> None:
    config = site(tmp_path, closed_port)
    data = (tmp_path / "edge.db").read_bytes()
    (tmp_path / "edge.db").write_bytes(data.replace(b"rou-1", b"rou-2"))
    done = examined(config, "--json")
    [end] = [one for one in json.loads(done.stdout) if one["check"] == "journal edge"]
    assert end["state"] == "problem"


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_a_broker_that_accepts_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker_may_be_late(monkeypatch)
    monkeypatch.setattr(doctor_facts, "CONNECT_TIMEOUT_S", PATIENCE)
    broker = Mosquitto(tmp_path)
    await broker.start()
    try:
        async with connect(Mqtt(port=broker.port), "") as session:
            meta = DeviceMeta("cammegh_ss2", "Cammegh SS2", "", "4.1", "serial:///x", "edge-1")
            topic = device_topic("lisboa", "rou-1", "wheel-1", "meta")
            await session.publish(topic, msgspec.json.encode(meta), retain=True)
            await session.publish(topic.replace("wheel-1", "wheel-2"), b"\xff", retain=True)
            await session.drained()
        done = await asyncio.to_thread(examined, site(tmp_path, broker.port), "--json")
    finally:
        await broker.stop()
    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert [found[f"broker as {part}"]["state"] for part in ("edge", "rules", "console")] == ["ok"] * 3
    assert found["device rou-1/wheel-1"]["text"] == "Cammegh SS2, firmware 4.1"
    assert found["device rou-1/wheel-2"]["state"] == found["device rou-1/wheel-3"]["state"] == "warning"
