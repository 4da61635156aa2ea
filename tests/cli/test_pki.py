"""`feltd pki` and `feltd broker`: certificates as OpenSSL and mosquitto take them, and a bridge between two brokers."""

import asyncio
import json
import os
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers import PATIENCE, broker_may_be_late

from daemon.broker.connection import connect
from daemon.broker.session import BrokerLost, Message, Session
from daemon.cli import authority as authority_module
from daemon.cli.access_list import access_list
from daemon.cli.authority import CA_DAYS, Authority, BadAuthority
from daemon.cli.broker_config import bridge, listener
from daemon.cli.main import main
from daemon.config.model import BadConfig, Config, broker_of, load, parse
from daemon.edge.edge import Edge
from daemon.edge.links.link import utc_now
from daemon.jackpots.process import Jackpots
from daemon.journal.store import Journal
from drivers.driver import Chunk, Sighting
from protocols.contract.events import JackpotContributed
from simulators.lab import broker as broker_module
from simulators.lab.broker import Broker, find_mosquitto, free_port

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SITE = """\
[site]
name = "s"
[edge]
name = "edge-7"
broker_certificate = "{folder}/edge-7.crt"
broker_key = "{folder}/edge-7.key"
[mqtt]
port = {port}
ca_file = "{folder}/ca.crt"
[rules]
broker_certificate = "{folder}/rules.crt"
broker_key = "{folder}/rules.key"
[console]
username = "console"
broker_certificate = "{folder}/console.crt"
broker_key = "{folder}/console.key"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:1"
"""


BOOKS = """\
[site]
name = "s"
[edge]
name = "edge-1"
[mqtt]
port = {port}
[jackpots]
username = "jackpots"
journal = "{folder}/jackpots.db"
insecure = true
[[table]]
name = "rou-1"
[[table]]
name = "rou-2"
ruleset = "macau.roulette"
[[jackpot]]
name = "hall"
tables = ["rou-1", "rou-2"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "1"
"""
"""The configuration of a computer that keeps a pool of its own table and of one of another computer."""


def pki(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["pki", args[0], "--folder", str(folder), *args[1:]])


def accepted(folder: Path, name: str) -> bool:
    """Whether OpenSSL takes the certificate, with the revocation list."""
    files = ["-CAfile", str(folder / "ca.crt"), "-CRLfile", str(folder / "ca.crl"), "-crl_check"]
    done = subprocess.run(["openssl", "verify", *files, str(folder / f"{name}.crt")], capture_output=True, check=False)
    return done.returncode == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An authority with a broker, an edge, rules and a console."""
    made = tmp_path / "pki"
    authority = Authority.create(made, "s")
    authority.issue("broker", ["127.0.0.1"])
    for name in ("edge-7", "rules", "console", "edge-7-bridge"):
        authority.issue(name)
    return made


# ---- the authority


def test_a_certificate_is_made_listed_renewed_and_revoked(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    assert "copy it to every computer, ca.key to none" in pki(folder, "init", "--site", "lisboa").output
    assert pki(folder, "issue", "edge-7").exit_code == 0
    assert pki(folder, "issue", "broker", "--host", "10.0.0.5", "--host", "broker.lan", "--days", "30").exit_code == 0
    assert accepted(folder, "edge-7")
    assert accepted(folder, "broker")
    first = (folder / "edge-7.crt").read_bytes()
    assert pki(folder, "renew", "edge-7").exit_code == 0
    assert (folder / "edge-7.crt").read_bytes() != first
    assert "edge-7: revoked 2; copy" in pki(folder, "revoke", "edge-7").output
    assert not accepted(folder, "edge-7")
    (folder / "edge-7.crt").write_bytes(first)
    assert not accepted(folder, "edge-7")
    assert accepted(folder, "broker")
    listed = json.loads(pki(folder, "list", "--json").output)["issued"]
    assert [(one["name"], one["kind"], "revoked" in one) for one in listed] == [
        ("edge-7", "client", True),
        ("broker", "server", False),
        ("edge-7", "client", True),
    ]
    lines = pki(folder, "list").output.splitlines()
    assert lines[1].split()[:3] == ["edge-7", "client", "revoked"]
    assert lines[2].endswith("10.0.0.5, broker.lan")


def test_keys_are_readable_by_their_owner_alone(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keys = sorted(folder.glob("*.key"))
    assert len(keys) == 6
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("init", "--site", "s"), "an authority is there already"),
        (("issue", "edge-7"), "`feltd pki renew edge-7` replaces it"),
        (("issue", "broker", "--host", "10.0.0.9"), "of a broker at 127.0.0.1; `feltd pki revoke broker` makes room"),
        (("issue", "edge-7", "--host", "10.0.0.9"), "of a client; `feltd pki revoke edge-7` makes room"),
        (("issue", "Edge 8"), "small letters, digits and hyphens"),
        (("issue", "ca"), "give another"),
        (("issue", "b-2", "--host", "bröker"), "no address and no name of a computer"),
        (("renew", "edge-8"), "`feltd pki issue` makes one"),
        (("revoke", "edge-8"), "has no valid certificate"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_message_and_changes_nothing(
    folder: Path, args: tuple[str, ...], said: str
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = pki(folder, *args)
    assert done.exit_code == 2
    assert said in done.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("file", "content"), [("ca.key", b"x"), ("ca.crt", b"x"), ("issued.json", b"{}"), ("issued.json", b"\xff")]
)
def test_a_damaged_authority_is_not_used(folder: Path, file: str, content: bytes) -> None:
    (folder / file).write_bytes(content)
    with pytest.raises(BadAuthority, match="restore it from a copy"):
        Authority(folder)


def test_a_certificate_of_another_authority_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"of the casino")
    with pytest.raises(BadAuthority, match="is there already"):
        Authority.create(tmp_path, "s")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"ca.crt": b"of the casino"}


@pytest.mark.parametrize("last", ["issued.json", "ca.crt", "ca.crl"])
def test_an_authority_that_was_half_made_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """The process was killed after it had written the file `last`."""
    write = authority_module._write

    def until_last(path: Path, raw: bytes, mode: int) -> None:
        write(path, raw, mode)
        if path.name == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(authority_module, "_write", until_last)
        with pytest.raises(KeyboardInterrupt):
            Authority.create(tmp_path, "s")
    assert Authority.create(tmp_path, "s").issued() == ()


def test_a_key_of_another_authority_is_not_used(folder: Path, tmp_path: Path) -> None:
    Authority.create(tmp_path / "other", "s")
    (folder / "ca.key").write_bytes((tmp_path / "other" / "ca.key").read_bytes())
    with pytest.raises(BadAuthority, match="does not belong to"):
        Authority(folder)


def test_no_certificate_outlives_the_authority(tmp_path: Path) -> None:
    Authority.create(tmp_path, "s", NOW)
    late = Authority(tmp_path, NOW + timedelta(days=CA_DAYS - 1))
    assert late.issue("edge-7").ends == late.ends
    with pytest.raises(BadAuthority, match="the authority itself ended"):
        Authority(tmp_path, NOW + timedelta(days=CA_DAYS)).issue("edge-8")


def test_a_certificate_is_valid_for_its_days_and_not_an_hour_longer(tmp_path: Path) -> None:
    """It begins an hour before it is made, and some TLS libraries refuse a server's that is valid for over 825 days."""
    made = Authority.create(tmp_path, "s", NOW).issue("broker", ["10.0.0.5"])
    assert made.begins < NOW
    assert made.ends - made.begins == timedelta(days=825)


def test_a_certificate_that_ended_makes_room_for_a_new_one(tmp_path: Path) -> None:
    Authority.create(tmp_path, "s", NOW).issue("edge-7", days=1)
    assert Authority(tmp_path, NOW + timedelta(days=2)).issue("edge-7").revoked is None


# ---- the configuration


def test_a_certificate_alone_names_the_user(folder: Path) -> None:
    config = parse(SITE.format(folder=folder, port=8883))
    edge, rules, console = (broker_of(config, part) for part in (config.edge, config.rules, config.console))
    assert (edge.username, edge.key) == ("edge-7", f"{folder}/edge-7.key")
    assert (rules.username, rules.certificate) == ("rules", f"{folder}/rules.crt")
    assert (console.username, console.certificate) == ("console", f"{folder}/console.crt")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('broker_key = "{folder}/edge-7.key"', "edge.broker_certificate and edge.broker_key: one without the other"),
        ('ca_file = "{folder}/ca.crt"', "edge.broker_certificate is used by TLS alone: name mqtt.ca_file, too"),
    ],
)
def test_a_certificate_without_what_it_needs_is_named_with_its_line(line: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        parse(SITE.replace(line, "", 1).format(folder="/x", port=8883))


# ---- with mosquitto


def strict_broker(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch, *, bridged: bool = False, other: Path | None = None
) -> Broker:
    """A broker that takes certificates of the site alone, with the access list of the site's configurations."""
    home.mkdir()
    port = free_port()
    file = home / "feltd.toml"
    file.write_text(SITE.format(folder=folder, port=port))
    configs = [(one, load(one)) for one in (file, other) if one is not None]
    (home / "acl").write_text(access_list(configs, bridged=bridged))
    text = listener("127.0.0.1", port, folder) + f"acl_file {home / 'acl'}\nlog_type all\n"
    monkeypatch.setattr(broker_module, "_MOSQUITTO", text.replace("{", "{{").replace("}", "}}"))
    return Broker(home, port=port)


@pytest.fixture
async def strict(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Broker]:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    broker_may_be_late(monkeypatch)
    broker = strict_broker(folder, tmp_path / "strict", monkeypatch)
    await broker.start()
    yield broker
    await broker.stop()


def settings(folder: Path, broker: Broker) -> Config:
    return parse(SITE.format(folder=folder, port=broker.port))


async def first(session: Session) -> Message:
    async with asyncio.timeout(PATIENCE):
        while not (heard := await session.messages()):
            pass
        return heard[0]


async def test_the_name_in_the_certificate_has_the_rights_of_the_user(folder: Path, strict: Broker) -> None:
    config = settings(folder, strict)
    edge, console = broker_of(config, config.edge), broker_of(config, config.console)
    async with connect(console, "console") as reader, connect(edge, "edge") as writer:
        await reader.subscribe("felt/1/s/#")
        await writer.publish("felt/1/s/table/rou-1/round/result", b"not for an edge to say", vital=False)
        await writer.publish("felt/1/s/table/rou-1/device/wheel-1/availability", b"online")
        assert (await first(reader)).payload == b"online"


async def test_a_client_without_a_certificate_is_refused(folder: Path, strict: Broker) -> None:
    config = settings(folder, strict)
    with pytest.raises(BrokerLost):
        async with connect(config.mqtt, "x") as session:
            await session.until_lost()


async def test_a_revoked_certificate_is_refused_after_a_restart(folder: Path, strict: Broker) -> None:
    config = settings(folder, strict)
    edge = broker_of(config, config.edge)
    async with connect(edge, "edge") as session:
        await session.subscribe("x")
    Authority(folder).revoke("edge-7")
    await strict.stop()
    await strict.start()
    with pytest.raises(BrokerLost):
        async with connect(edge, "edge") as session:
            await session.until_lost()
    async with connect(broker_of(config, config.rules), "rules") as session:
        await session.subscribe("x")


async def test_a_bridge_carries_results_out_and_commands_in_and_no_card(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    broker_may_be_late(monkeypatch)
    site = strict_broker(folder, tmp_path / "site", monkeypatch, bridged=True)
    await site.start()
    config = settings(folder, site)
    (tmp_path / "table").mkdir()
    text = bridge(config, ["127.0.0.1"], site.port, folder, cards=False)
    own = "listener {port} 127.0.0.1\nallow_anonymous true\n"
    monkeypatch.setattr(broker_module, "_MOSQUITTO", own + text)
    table = Broker(tmp_path / "table")
    await table.start()
    local = parse(f'[site]\nname = "s"\n[edge]\nname = "edge-7"\n[mqtt]\nport = {table.port}\n').mqtt
    prefix = "felt/1/s/table/rou-1/"
    try:
        async with connect(broker_of(config, config.console), "console") as seen, connect(local, "edge") as edge:
            await seen.subscribe("felt/1/s/#")
            await edge.subscribe(f"{prefix}device/wheel-1/cmd/+")
            await edge.publish(f"{prefix}device/wheel-1/event/card.drawn", b"a card")
            await edge.publish(f"{prefix}round/event/resolved", b"a result")
            message = await first(seen)
            assert (message.topic, message.payload) == (f"{prefix}round/event/resolved", b"a result")
            await seen.publish(f"{prefix}device/wheel-1/cmd/check", b"an order")
            message = await first(edge)
            assert (message.topic, message.payload) == (f"{prefix}device/wheel-1/cmd/check", b"an order")
    finally:
        await table.stop()
        await site.stop()


async def test_each_of_two_brokers_of_a_site_has_all_states_whatever_happens_to_the_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is killed and comes back without memory: the other has what changed meanwhile, and then both have it."""
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    broker_may_be_late(monkeypatch)
    sites = []
    for name in "ab":
        sites.append(strict_broker(folder, tmp_path / name, monkeypatch, bridged=True))
        await sites[-1].start()
    one, other = sites
    text = bridge(settings(folder, one), [f"127.0.0.1:{site.port}" for site in sites], 1, folder, cards=False)
    configured = (tmp_path / "a/mosquitto.conf").read_text().replace("user root\n", "")
    monkeypatch.setattr(broker_module, "_MOSQUITTO", "listener {port} 127.0.0.1\nallow_anonymous true\n" + text)
    (tmp_path / "table").mkdir()
    table = Broker(tmp_path / "table")
    await table.start()
    local = parse(f'[site]\nname = "s"\n[edge]\nname = "edge-7"\n[mqtt]\nport = {table.port}\n').mqtt
    topics = [f"felt/1/s/table/rou-1/device/wheel-{number}/state" for number in range(200)]

    async def shown(broker: Broker, payload: bytes) -> None:
        config = settings(folder, broker)
        async with asyncio.timeout(PATIENCE), connect(broker_of(config, config.console), "console") as session:
            await session.subscribe("felt/1/s/table/rou-1/device/+/state")
            known: dict[str, bytes] = {}
            while known != dict.fromkeys(topics, payload):
                known |= {message.topic: message.payload for message in await session.messages()}

    async def bridged(broker: Broker, edge: Session) -> None:
        config = settings(folder, broker)
        async with asyncio.timeout(PATIENCE), connect(broker_of(config, config.console), "console") as session:
            await session.subscribe(topics[0])
            came = asyncio.create_task(session.messages())
            while not came.done():
                await edge.publish(topics[0], b"is anybody there?")
                await asyncio.wait([came], timeout=0.2)
            await came

    try:
        async with connect(local, "edge") as edge:
            for site in sites:
                await bridged(site, edge)
            for payload in (b"first", b"second", b"third"):
                for topic in topics:
                    await edge.publish(topic, payload, retain=True)
                await edge.drained()
                await shown(other, payload)
                if payload == b"first":
                    await shown(one, payload)
                    await one.kill()
                if payload == b"second":
                    monkeypatch.setattr(broker_module, "_MOSQUITTO", configured.replace("{", "{{").replace("}", "}}"))
                    await one.start()
                    await shown(one, payload)
            await shown(one, b"third")
    finally:
        await table.stop()
        for site in sites:
            await site.stop()


async def test_a_broker_that_was_long_away_is_given_the_states_of_now(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each attempt mosquitto adds all retained states to what waits: the newest must find room."""
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    broker_may_be_late(monkeypatch)
    site = strict_broker(folder, tmp_path / "site", monkeypatch, bridged=True)
    config = settings(folder, site)
    configured = broker_module._MOSQUITTO
    text = bridge(config, ["127.0.0.1"], site.port, folder, cards=False).replace("timeout 1 30", "timeout 1 1")
    own = "listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 300\nlog_type all\n"
    monkeypatch.setattr(broker_module, "_MOSQUITTO", own + text)
    (tmp_path / "table").mkdir()
    table = Broker(tmp_path / "table")
    await table.start()
    log = tmp_path / "table/broker.log"
    local = parse(f'[site]\nname = "s"\n[edge]\nname = "edge-7"\n[mqtt]\nport = {table.port}\n').mqtt
    topics = [f"felt/1/s/table/rou-1/device/wheel-{number}/state" for number in range(200)]
    try:
        async with connect(local, "edge") as edge:
            for payload in (b"first", b"second"):
                attempts = log.read_text().count("Connecting bridge (step 1)")
                for topic in topics:
                    await edge.publish(topic, payload, retain=True)
                await edge.drained()
                async with asyncio.timeout(PATIENCE):
                    while log.read_text().count("Connecting bridge (step 1)") < attempts + 3:  # noqa: ASYNC110 - a log
                        await asyncio.sleep(0.1)
        monkeypatch.setattr(broker_module, "_MOSQUITTO", configured)
        await site.start()
        async with asyncio.timeout(PATIENCE), connect(broker_of(config, config.console), "console") as session:
            await session.subscribe("felt/1/s/table/rou-1/device/+/state")
            known: dict[str, bytes] = {}
            while known != dict.fromkeys(topics, b"second"):
                known |= {message.topic: message.payload for message in await session.messages()}
    finally:
        await table.stop()
        await site.stop()


async def test_a_pool_counts_the_bets_at_a_table_of_another_computer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both computers have a bridge. The edge knows the pool's owner, and has the heartbeat without which it closes."""
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    broker_may_be_late(monkeypatch)
    Authority(folder).issue("edge-1-bridge")
    brokers = {"table": Broker(tmp_path / "table"), "books": Broker(tmp_path / "books")}
    for home in brokers:
        (tmp_path / home).mkdir()
    path = tmp_path / "books/feltd.toml"
    path.write_text(BOOKS.format(folder=path.parent, port=brokers["books"].port))
    site = strict_broker(folder, tmp_path / "site", monkeypatch, bridged=True, other=path)
    await site.start()
    at_site, books = settings(folder, site), load(path)
    for home, config in (("table", at_site), ("books", books)):
        text = bridge(config, ["127.0.0.1"], site.port, folder, cards=False)
        monkeypatch.setattr(broker_module, "_MOSQUITTO", "listener {port} 127.0.0.1\nallow_anonymous true\n" + text)
        await brokers[home].start()
    own = f'[site]\nname = "s"\n[edge]\nname = "edge-7"\n[mqtt]\nport = {brokers["table"].port}\n'
    bets = '[[table.device]]\nname = "bets"\ndriver = "fdl_bets"\nurl = "tcp://127.0.0.1:9"\n'
    with closing(Journal(tmp_path / "edge.db")) as journal, closing(Journal(Path(books.jackpots.journal))) as kept:
        edge, jackpots = Edge(parse(f'{own}[[table]]\nname = "rou-1"\n{bets}'), journal), Jackpots(books, kept)
        tasks = [asyncio.create_task(body) for body in (edge.run(), jackpots.run())]
        try:
            async with asyncio.timeout(PATIENCE), connect(broker_of(at_site, at_site.console), "console") as console:
                await console.subscribe("felt/1/s/jackpot/hall/+")
                shown: set[str] = set()
                while shown != {"level", "books", "owner"}:
                    shown |= {message.topic.split("/")[-1] for message in await console.messages()}
                beats: set[float] = set()
                while len(beats) < 3:  # the first is the time at which the owner became known
                    beats |= set(edge.pools.beats.values())
                    await asyncio.sleep(0.05)
                bet = Sighting(JackpotContributed("hall", 700, 1), b"", Chunk(b"", utc_now(), max(beats)))
                await edge.sessions[0].emit([bet])
                while jackpots.books["hall"].amount != 10_700:  # noqa: ASYNC110 - the books
                    await asyncio.sleep(0.05)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for broker in (*brokers.values(), site):
                await broker.stop()


def test_no_topic_of_a_bridge_goes_two_ways_or_twice(folder: Path) -> None:
    for text in (SITE, BOOKS):
        lines = bridge(parse(text.format(folder=folder, port=1)), ["127.0.0.1"], 1, folder, cards=True).splitlines()
        topics = [line.split()[1].split("/") for line in lines if line.startswith("topic ")]
        for one, other in combinations(topics, 2):
            same_length = len(one) == len(other)
            overlap = same_length and all(a == b or "+" in (a, b) for a, b in zip(one, other, strict=True))
            assert not overlap, f"{'/'.join(one)} and {'/'.join(other)}"


def test_the_commands_print_what_the_brokers_read(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(SITE.format(folder=folder, port=8883))
    printed = CliRunner().invoke(main, ["broker", "-c", str(path), "--bridge-to", "broker.lan"])
    certificates = Path("/etc/mosquitto/feltd-tls")
    assert printed.output == bridge(load(path), ["broker.lan"], 8883, certificates, cards=False)
    printed = CliRunner().invoke(main, ["broker", "-c", str(path), "--bridge-to", "a.lan", "--bridge-to", "b.lan:1"])
    named = [line for line in printed.output.splitlines() if line.startswith(("connection", "address", "remote"))]
    assert named == [
        *("connection edge-7-bridge", "address a.lan:8883", "remote_clientid edge-7-bridge"),
        *("connection edge-7-bridge-2", "address b.lan:1", "remote_clientid edge-7-bridge-2"),
    ]
    printed = CliRunner().invoke(main, ["broker", "-c", str(path)])
    assert printed.output == listener("", 8883, certificates)
    assert os.linesep + "listener 8883" + os.linesep in printed.output
    printed = CliRunner().invoke(main, ["acl", str(path), "--bridged"])
    assert "user edge-7-bridge" in printed.output
    assert "user edge-7\n" not in printed.output
