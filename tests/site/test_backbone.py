"""The backbone with real nodes: what is refused, what is made, who may write what, and rows that survive a leader."""

import asyncio
import contextlib
import io
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backbone import NEEDS_NODES, fill, jetstream, stored
from click.testing import CliRunner
from helpers import PATIENCE, START

from daemon.broker.connection import connect
from daemon.cli.authority import Authority
from daemon.cli.main import main
from daemon.config.backbone import Backbone, Forward
from daemon.config.model import Config, Mqtt, load
from daemon.journal.rows import Entry
from protocols.contract.topics import decode_wire
from simulators.lab.site.nodes import Nodes, free_ports

pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")

import nats
import nats.errors
from nats.js.api import DiscardPolicy

from daemon.site import health, reader as stream_reader
from daemon.site.backbone import Connection, NotConfirmed
from daemon.site.forward import Forwarder
from daemon.site.streams import LEAST_VERSION

pytestmark = [pytest.mark.system, NEEDS_NODES]
MESSAGES = 40


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("nodes")) as three:
        yield three


def written(folder: Path, nodes: Nodes, more: str = "one_machine = true") -> Path:
    """A configuration of a computer with two tables at this backbone."""
    path = folder / "feltd.toml"
    path.write_text(
        f'[site]\nname = "s"\n[edge]\nname = "e"\njournal = "{folder}/edge.db"\n'
        f'[rules]\njournal = "{folder}/rules.db"\n[backbone]\nservers = {nodes.servers}\n'
        f'monitors = {nodes.monitors}\n{more}\n[forward]\nfolder = "{folder}/forward"\n'
        '[[table]]\nname = "t-1"\n[[table]]\nname = "t-2"\n'
    )
    return path


def test_the_streams_are_made_and_a_second_time_nothing_changes(tmp_path: Path, nodes: Nodes) -> None:
    path = written(tmp_path, nodes)
    for said in ("made, 3 copies", "existed"):
        ran = CliRunner().invoke(main, ["site", "init", "-c", str(path), "--events-gb", "1"])
        assert ran.exit_code == 0, ran.output
        assert ran.output.count(said) == 3
    facts = asyncio.run(health.measured(load(path)))
    assert health.findings(facts) == []


def test_a_backbone_that_may_lose_rows_is_refused(tmp_path: Path, nodes: Nodes) -> None:
    """One computer, nodes that do not sync, streams with one copy, in the way of our topics."""
    path = written(tmp_path, nodes, "one_machine = false")
    ran = CliRunner().invoke(main, ["site", "init", "-c", str(path)])
    assert ran.exit_code == 2
    assert "its nodes are on 1 computer(s); three computers" in ran.output
    with Nodes(tmp_path / "lazy", 1, sync="") as lazy:

        async def spoil() -> None:
            async with jetstream(lazy) as there:
                await there.add_stream(name="EV", subjects=["feltd.ev.>"], duplicate_window=1)
                await there.add_stream(name="MINE", subjects=["felt.1.>"])

        asyncio.run(spoil())
        ran = CliRunner().invoke(main, ["site", "init", "-c", str(written(tmp_path, lazy))])
        assert ran.exit_code == 2
        assert "before they are on its disk; write sync_interval: always" in ran.output
        assert "stream MINE: it takes felt.1.>" in ran.output
        said = [str(one) for one in health.findings(asyncio.run(health.measured(load(written(tmp_path, lazy)))))]
        assert any("1 copies and not 3" in one for one in said)
        assert any("message ids for 1 s and not 600" in one for one in said)
        assert any("stream RES" in one and "it does not exist" in one for one in said)


def test_a_node_syncs_for_each_message_that_it_confirms_and_by_default_for_none(tmp_path: Path) -> None:
    """`doctor` refuses the default by what the node says; here its system calls are counted."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-qq", "-o", "/dev/null", "true"], check=False).returncode:
        pytest.skip("no strace, or it may not trace here: apt-get install strace")

    async def publish(node: Nodes) -> None:
        async with jetstream(node) as there:
            await there.add_stream(name="EV", subjects=["feltd.ev.>"])
            for number in range(MESSAGES):
                await there.publish("feltd.ev.s.t-1", b"%d" % number)

    counts = []
    for sync in ("always", ""):
        folder = tmp_path / (sync or "default")
        calls = tmp_path / f"calls{sync}"
        before = (strace, "-D", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(calls))
        with Nodes(folder, 1, sync=sync, before=before) as node:
            asyncio.run(publish(node))
            counts.append(calls.read_text().count("sync("))
    assert counts[0] >= MESSAGES > counts[1], counts


async def test_the_gateway_of_nats_acknowledges_messages_that_are_in_no_stream(tmp_path: Path) -> None:
    """Why durable rows never pass it. Where a later release stores or refuses all of them, this fails: look again."""
    [port] = free_ports(1)
    with Nodes(tmp_path / "node", 1, more=f'mqtt {{ listen: "127.0.0.1:{port}" }}\n') as node:
        async with jetstream(node) as there:
            await there.add_stream(name="MINE", subjects=["felt.>"], discard=DiscardPolicy.NEW, max_msgs=MESSAGES // 2)
            async with connect(Mqtt(port=port, version="3.1.1"), "edge") as session, asyncio.timeout(PATIENCE):
                for number in range(MESSAGES):
                    await session.publish("felt/1/s/table/t-1/round/event/resolved", b"%d" % number)
                await session.drained()
            assert (await there.stream_info("MINE")).state.messages < MESSAGES


@pytest.mark.parametrize(
    ("version", "wrong"), [("2.9.10", True), ("2.12.2", True), ("2.12.3", False), ("3.0.0-beta", False), ("?", True)]
)
def test_a_node_that_is_too_old_is_refused(version: str, wrong: bool) -> None:
    node = health.Node("http://a", version=version, syncs=True, max_payload=2**21)
    assert bool(health.findings(health.Facts((node,), one_machine=True), with_streams=False)) is wrong
    assert LEAST_VERSION == (2, 12, 3)


async def forwarding(config: Config) -> tuple[Connection, asyncio.Task[Any]]:
    connection = Connection(config.backbone, config.forward, config.edge.name)

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.run())
            group.create_task(Forwarder(config, connection).run())

    return connection, asyncio.create_task(both())


async def count_until(nodes: Nodes, wanted: int) -> None:
    """Until EV has so many messages."""
    async with jetstream(nodes) as there, asyncio.timeout(90):
        while True:
            with contextlib.suppress(nats.errors.Error):
                if (await there.stream_info("EV")).state.messages >= wanted:
                    return
            await asyncio.sleep(0.1)


async def test_rows_are_stored_once_and_in_order_while_the_leader_is_killed(tmp_path: Path, nodes: Nodes) -> None:
    """Also by a forwarder that lost its cursor: the ids are the same."""
    config = load(written(tmp_path, nodes))
    await health.make_streams(config, 1)
    async with jetstream(nodes) as there:
        await there.purge_stream("EV")
    with contextlib.closing(fill(tmp_path / "edge.db", 60)) as journal:
        _, task = await forwarding(config)
        await count_until(nodes, 30)
        async with jetstream(nodes) as there:
            leader = int((await there.stream_info("EV")).cluster.leader.removeprefix("n"))
        await asyncio.to_thread(nodes.kill, leader)
        for number in range(40):
            journal.append([Entry(f"t-{number % 2 + 1}", "wheel", "ball.landed", START, b"{}")], {})
        await count_until(nodes, 100)
        nodes.start(leader)
        await asyncio.to_thread(nodes.until_well)
        task.cancel()
        await asyncio.wait([task])
        forget_cursor(tmp_path)
        again, task = await forwarding(config)
        await again.until_up()
        async with asyncio.timeout(60):
            while not cursor_at(tmp_path, 100):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
    wires = [decode_wire(message.data) for message in await stored(nodes, "EV")]
    for table in ("t-1", "t-2"):
        assert [one.seq for one in wires if f"/{table}/" in one.source] == list(range(1, 51))


async def read(
    config: Config, ends: Callable[[list[stream_reader.Batch]], bool], subjects: tuple[str, ...] = ()
) -> list[stream_reader.Batch]:
    """The batches behind the last four messages until `ends`. As all readers, it begins again after a failure."""

    async def four_before(_made: str, newest: int) -> int:
        return newest - 4

    connection = Connection(config.backbone, config.forward, "e")
    task = asyncio.create_task(connection.run())
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                await connection.until_up()
                seen = list[stream_reader.Batch]()
                with contextlib.suppress(*stream_reader.FAILURES):  # the node has no consumer at once
                    async for batch in stream_reader.batches(connection, "EV", four_before, subjects):
                        seen.append(batch)
                        if ends(seen):
                            return seen
                await asyncio.sleep(stream_reader.AGAIN_S)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_reader_that_used_its_backlog_says_so_before_the_next_event(tmp_path: Path, nodes: Nodes) -> None:
    """Also where the newest message of the stream is one of another table."""
    config = load(written(tmp_path, nodes))
    await health.make_streams(config, 1)
    async with jetstream(nodes) as there:
        for table in ("t-1", "t-1", "t-1", "t-2"):
            await there.publish(f"feltd.ev.s.{table}", b"{}")
    found = await read(config, lambda batches: not batches[-1].late, ("feltd.ev.s.t-1",))
    seen = [(len(batch.messages), batch.late) for batch in found]
    assert sum(count for count, _ in seen) == 3
    assert [late for _, late in seen[:-1]] == [True] * (len(seen) - 1)
    assert seen[-1] == (0, False)


async def test_a_reader_of_a_whole_stream_says_up_to_when_it_has_all(
    tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is behind up to its newest message; later on up to each time at which nothing waited."""
    monkeypatch.setattr(stream_reader, "BATCH", 2)
    monkeypatch.setattr(stream_reader, "FETCH_S", 0.2)
    config = load(written(tmp_path, nodes))
    await health.make_streams(config, 1)
    async with jetstream(nodes) as there:
        for _ in range(4):
            await there.publish("feltd.ev.s.t-1", b"{}")
    seen = await read(config, lambda batches: len([one for one in batches if not one.messages]) == 2)
    *behind_all, first, second = seen
    assert [one.complete_until for one in behind_all] == [one.messages[-1].metadata.timestamp for one in behind_all]
    assert behind_all[-1].complete_until < first.complete_until < second.complete_until
    assert first.last == second.last == behind_all[-1].last


def test_nodes_on_fewer_than_three_computers_are_refused() -> None:
    """Each loss of a computer must leave two nodes."""
    for addresses, refused in ((("a:1", "a:2", "a:3"), "1"), (("a:1", "b:1", "b:2"), "2"), (("a", "b", "c"), "")):
        of = tuple(health.Node(f"http://{one}", version="2.12.3", syncs=True, max_payload=2**21) for one in addresses)
        said = [one.text for one in health.findings(health.Facts(of), with_streams=False)]
        assert said == ([f"its nodes are on {refused} computer(s)"] if refused else [])


@pytest.mark.parametrize("reader", ["rules", "ledger"])
async def test_a_reader_whose_connection_is_closed_while_it_ends_ends(
    monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """nats-py then raises an error of its own in the place of the cancellation."""
    pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")
    from daemon.site import ledger

    reads = asyncio.Event()

    async def closed(*_: Any) -> AsyncIterator[Any]:
        reads.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise nats.errors.ConnectionClosedError from None
        yield

    connection = Connection(Backbone(), Forward(), "e")
    connection._up.set()
    for module in (stream_reader, ledger):
        monkeypatch.setattr(module, "batches", closed)
    monkeypatch.setattr(ledger, "Store", lambda _database: io.StringIO())
    if reader == "rules":
        running = stream_reader.Subscriptions(connection, "s").follow("EV", ("t-1",), lambda *_: 0, lambda *_: None)
    else:
        running = ledger.Ledger("", connection)._follow("RES", lambda *_: None)
    task = asyncio.create_task(running)
    await reads.wait()
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()


def forget_cursor(folder: Path) -> None:
    (folder / "forward/status.json").unlink()


def cursor_at(folder: Path, n: int) -> bool:
    from daemon.journal.forwarded import read_status

    status = read_status(folder / "forward")
    return status is not None and "edge" in status.cursors and status.cursors["edge"].n >= n


def test_a_computer_writes_rows_of_its_own_tables_by_its_certificate(tmp_path: Path) -> None:
    """`feltd pki` and `feltd site acl`, given to a node that maps certificates to users."""
    authority = Authority.create(tmp_path / "pki", "s")
    authority.issue("e", [])
    authority.issue("node", ["127.0.0.1"])
    pki, more = tmp_path / "pki", f'ca_file = "{tmp_path}/pki/ca.crt"\none_machine = true'
    config = tmp_path / "feltd.toml"
    config.write_text(
        '[site]\nname = "s"\n[edge]\nname = "e"\n[backbone]\nservers = ["tls://127.0.0.1:4222"]\n'
        f'{more}\n[forward]\ncertificate = "{pki}/e.crt"\nkey = "{pki}/e.key"\n[[table]]\nname = "t-1"\n'
        '[[jackpot]]\nname = "grand"\ntables = ["t-1"]\nseed = 10\nvisible = "0.1"\n'
    )
    ran = CliRunner().invoke(main, ["site", "acl", str(config)])
    assert ran.exit_code == 0, ran.output
    tls = (
        f'tls {{ cert_file: "{pki}/node.crt", key_file: "{pki}/node.key", ca_file: "{pki}/ca.crt", '
        f'verify_and_map: true }}\ninclude "users.conf"\n'
    )

    async def tried() -> list[str]:
        said = []
        user = Forward(certificate=f"{pki}/e.crt", key=f"{pki}/e.key")
        servers = tuple(one.replace("nats:", "tls:") for one in node.servers)
        connection = Connection(Backbone(servers=servers, ca_file=f"{pki}/ca.crt"), user, "e")
        task = asyncio.create_task(connection.run())
        pools = [f"feltd.res.s.jackpot.{name}" for name in ("grand", "mini")]
        for subject in ("feltd.ev.s.t-1", pools[0], pools[1], "feltd.ev.s.t-2", "felt.1.s.t-1"):
            try:
                await connection.publish(subject, "x", b"{}")
                said.append("stored")
            except NotConfirmed as error:
                said.append(str(error))
        task.cancel()
        await asyncio.wait([task])
        return said

    node = Nodes(tmp_path / "node", 1, more=tls)
    (tmp_path / "node/users.conf").write_text(ran.output.replace("REPLACE", "secret"))
    with node:
        *own, _, _, _ = others = asyncio.run(tried())
    assert all("no response from stream" in one for one in own), own  # it may write there; no stream was made
    assert all("permissions violation" in one.lower() for one in others[2:]), others
