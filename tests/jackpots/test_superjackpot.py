"""A pool of two sites: machines of both feed it over two brokers and a bridge between them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from daemon.broker.connection import connect
from daemon.cli.access_list import access_list
from daemon.config.model import BadConfig, Config, Mqtt, load, parse
from daemon.edge.edge import Edge
from daemon.edge.links.link import utc_now
from daemon.jackpots.ledger import unbalanced
from daemon.jackpots.process import Jackpots
from daemon.jackpots.sites import bridge, display_topic, id_at, place_of, sites_of, topic_at
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.commands import Request
from protocols.contract.events import Event, JackpotContributed, JackpotWon, encode_data, type_of
from protocols.contract.jackpots import PoolLevel
from simulators.lab.broker import Broker, find_mosquitto, free_port

PATIENCE = 100.0
POOL = """
[[jackpot]]
name = "super"
tables = ["slot-1", "porto/slot-1"]
machines = ["porto/slot-1/egm-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "1/100"
hidden = "1/300"
[jackpot.prizes]
level_1 = { pays = "pool" }
"""


def config(site: str, port: int, folder: Path, more: str = "") -> Config:
    return parse(
        f'[site]\nname = "{site}"\n[edge]\nname = "edge-1"\njournal = "{folder}/{site}.db"\n'
        f'[mqtt]\nport = {port}\n[[table]]\nname = "slot-1"\n{more}'
    )


# ---- names


def test_topics_of_a_table_here_and_of_one_elsewhere() -> None:
    assert topic_at("lisboa", "slot-1", "cmd/replay") == "felt/1/lisboa/table/slot-1/cmd/replay"
    assert topic_at("lisboa", "porto/slot-1", "cmd/replay") == "felt/1/porto/table/slot-1/cmd/replay"
    assert display_topic("lisboa", "slot-1/egm-1", "meta") == "felt/1/lisboa/table/slot-1/device/egm-1/meta"
    assert display_topic("lisboa", "porto/slot-1/egm-1", "meta") == "felt/1/porto/table/slot-1/device/egm-1/meta"
    assert place_of("lisboa", "felt/1/lisboa/table/slot-1/alert/x") == ["table", "slot-1", "alert", "x"]
    assert place_of("lisboa", "felt/1/porto/table/slot-1/alert/x") == ["table", "porto/slot-1", "alert", "x"]
    assert place_of("lisboa", "felt/1/porto/edge/edge-1/availability") == ["edge", "edge-1", "availability"]
    for odd in ("", "felt", "felt/1/porto", "felt/1/porto/table"):
        assert place_of("lisboa", odd)[:2] != ["table", "porto/slot-1"]
    assert (id_at("slot-1", "e:slot-1:7"), id_at("porto/slot-1", "e:slot-1:7")) == ("e:slot-1:7", "porto/e:slot-1:7")
    assert id_at("porto/slot-1", "") == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("porto/slot-1", "porto/slot_1", "tables"),
        ("porto/slot-1", "lisboa/slot-1", "lisboa/slot-1 is of this site: write 'slot-1'"),
        ("porto/slot-1", "a/porto/slot-1", "tables"),
        ("porto/slot-1/egm-1", "lisboa/slot-1/egm-1", "no device 'lisboa/slot-1/egm-1'"),
        ("porto/slot-1/egm-1", "slot-1/egm-9", "no device 'slot-1/egm-9'"),
    ],
)
def test_a_place_that_cannot_be_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        config("lisboa", 1883, tmp_path, POOL.replace(f'"{old}"', f'"{new}"'))


def test_the_bridge_carries_what_the_pool_needs_and_nothing_else(tmp_path: Path) -> None:
    one = config("lisboa", 1883, tmp_path, POOL)
    assert sites_of(one) == ["porto"]
    lines = [line for line in bridge(one, "porto").splitlines() if line.startswith("topic ")]
    assert lines == [
        "topic felt/1/porto/table/slot-1/round/event/+ in 1",
        "topic felt/1/porto/table/slot-1/round/cmd/replay/result in 1",
        "topic felt/1/porto/table/slot-1/device/+/event/+ in 1",
        "topic felt/1/porto/table/slot-1/cmd/replay/result in 1",
        "topic felt/1/porto/table/slot-1/device/egm-1/cmd/show-amount/result in 1",
        "topic felt/1/porto/table/slot-1/device/egm-1/cmd/announce/result in 1",
        "topic felt/1/porto/edge/+/availability in 1",
        "topic felt/1/lisboa/edge/jackpots/availability out 1",
        "topic felt/1/lisboa/jackpot/super/level out 1",
        "topic felt/1/lisboa/jackpot/super/books out 1",
        "topic felt/1/lisboa/jackpot/super/event/+ out 1",
        "topic felt/1/porto/table/slot-1/round/cmd/replay out 1",
        "topic felt/1/porto/table/slot-1/cmd/replay out 1",
        "topic felt/1/porto/table/slot-1/device/egm-1/cmd/show-amount out 1",
        "topic felt/1/porto/table/slot-1/device/egm-1/cmd/announce out 1",
    ]


def test_the_owner_may_read_and_command_the_places_of_the_other_site(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    head = '[site]\nname = "lisboa"\n[edge]\nname = "edge-1"\n[jackpots]\npassword_file = "/jackpots.password"\n'
    path.write_text(f'{head}[[table]]\nname = "slot-1"\n{POOL}', encoding="utf-8")
    one = load(path)
    lines = access_list([(path, one)]).splitlines()
    start = lines.index("user jackpots")
    mine = lines[start : lines.index("", start)]
    carried = [line.split()[1:3] for line in bridge(one, "porto").splitlines() if line.startswith("topic ")]
    for topic, way in carried:
        assert f"topic {'read' if way == 'in' else 'write'} {topic}" in mine or topic.endswith("jackpots/availability")
    assert "topic write felt/1/porto/table/slot-1/alert/jackpots-unpriced" in mine


# ---- two brokers


class Cable:
    """The line between the two sites, which can be cut."""

    def __init__(self, port: int) -> None:
        self.port = free_port(self)
        self._to = port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()

    async def join(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for end in self._ends:
            end.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._ends |= {writer, far_writer}
        with contextlib.suppress(ConnectionError):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer))
                group.create_task(self._pass(far_reader, writer))
        self._ends -= {writer, far_writer}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


class World:
    """Two sites: brokers, edges, one jackpots process."""

    def __init__(self, edges: dict[str, Edge], jackpots: Jackpots, cable: Cable, far: Mqtt) -> None:
        self.edges = edges
        self.jackpots = jackpots
        self.cable = cable
        self.far = far
        self.staked = 0

    def tell(self, site: str, event: Event) -> None:
        self.edges[site].append([Entry("slot-1", "egm-1", type_of(event), utc_now(), encode_data(event))], {})

    def play(self, site: str, amount: int) -> None:
        self.tell(site, JackpotContributed("super", amount))
        self.staked += amount

    @property
    def counted(self) -> int:
        book = self.jackpots.books["super"]
        assert unbalanced(book) == ""
        assert not -book.balance("players") % book.unit
        return -book.balance("players") // book.unit

    def has_wins(self, number: int) -> bool:
        return len(self.jackpots.books["super"].wins) == number

    async def until(self, so: Callable[[], bool], limit: float = PATIENCE) -> None:
        async with asyncio.timeout(limit):
            while not so():  # noqa: ASYNC110 - many things may bring it about
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def two_sites(folder: Path) -> AsyncIterator[World]:
    for name in ("lisboa", "porto"):
        (folder / name).mkdir()
    far = Broker(folder / "porto", more="max_queued_messages 20\n")
    cable = Cable(far.port)
    near_port = free_port(far)
    home = config("lisboa", near_port, folder, POOL + f'[jackpots]\njournal = "{folder}/books.db"\n')
    lines = bridge(home, "porto").splitlines()
    kept = [line for line in lines if not line.startswith(("bridge_cafile", "remote_username", "remote_password"))]
    kept = [f"address 127.0.0.1:{cable.port}" if line.startswith("address ") else line for line in kept]
    near = Broker(folder / "lisboa", port=near_port, more="\n".join(kept) + "\n")
    configs = {"lisboa": home, "porto": config("porto", far.port, folder)}
    journals = {site: Journal(Path(one.edge.journal)) for site, one in configs.items()}
    edges = {site: Edge(one, journals[site]) for site, one in configs.items()}
    books = Journal(Path(home.jackpots.journal))
    world = World(edges, Jackpots(home, books), cable, configs["porto"].mqtt)
    await far.start()
    await cable.join()
    await near.start()
    async with asyncio.TaskGroup() as group:
        runs = [*(edge.run() for edge in edges.values()), world.jackpots.run()]
        tasks = [group.create_task(one) for one in runs]
        try:
            await world.until(lambda: world.jackpots.connected and all(edge.connected for edge in edges.values()))
            await heard(home.mqtt, "felt/1/porto/edge/+/availability", lambda data: data == b"online")
            yield world
        finally:
            for task in tasks:
                task.cancel()
    await cable.cut()
    await near.stop()
    await far.stop()
    for journal in (*journals.values(), books):
        journal.close()


async def heard(broker: Mqtt, topic: str, so: Callable[[bytes], bool]) -> None:
    """Wait until a message of a topic is so on a broker."""
    async with asyncio.timeout(PATIENCE), connect(broker, "display") as session:
        await session.subscribe(topic)
        while not any(so(message.payload) for message in await session.messages()):
            pass


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
def test_machines_of_two_sites_feed_one_pool_and_a_cut_bridge_makes_bets_late_and_loses_none(tmp_path: Path) -> None:
    async def body() -> None:
        async with two_sites(tmp_path) as world:
            for number in range(10):
                world.play("lisboa", 100 + number)
                world.play("porto", 1000 + number)
            await world.until(lambda: world.counted == world.staked)

            await world.cable.cut()
            await asyncio.sleep(0.5)
            before = world.counted
            for number in range(200):  # the broker of porto keeps 20 of them for the bridge
                world.play("porto", 7 + number)
            world.play("lisboa", 3)
            await world.until(lambda: world.counted == before + 3)
            await world.cable.join()
            await world.until(lambda: world.counted == world.staked)

            shown = world.jackpots.books["super"].amount
            level = "felt/1/lisboa/jackpot/super/level"
            await heard(world.far, level, lambda data: msgspec.json.decode(data, type=PoolLevel).amount == shown)
            orders = "felt/1/porto/table/slot-1/device/egm-1/cmd/show-amount"
            await heard(
                world.far,
                orders,
                lambda data: b'"amount":%d' % shown in bytes(msgspec.json.decode(data, type=Request).args),
            )

            for site in ("lisboa", "porto"):  # edges, tables and numbers have the same names in both
                now = world.jackpots.books["super"].amount
                while world.edges["lisboa"].journal.last("slot-1") != world.edges["porto"].journal.last("slot-1"):
                    few = min(world.edges, key=lambda one: world.edges[one].journal.last("slot-1"))
                    world.play(few, 1)
                await world.until(lambda: world.counted == world.staked)
                world.tell(site, JackpotWon("super", 1, 1, now, now))
                await world.until(partial(world.has_wins, 1 + (site == "porto")))
            wins = world.jackpots.books["super"].wins
            assert [one.table for one in wins] == ["slot-1", "porto/slot-1"]
            assert wins[1].id.startswith("porto/edge-1:slot-1:")
            assert wins[0].amount >= shown
            assert not wins[1].unpriced
            assert unbalanced(world.jackpots.books["super"]) == ""

    asyncio.run(body())


def test_the_command_writes_the_bridge(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from daemon.cli.main import main

    path = tmp_path / "feltd.toml"
    path.write_text(
        '[site]\nname = "lisboa"\n[edge]\nname = "edge-1"\n[[table]]\nname = "slot-1"\n' + POOL, encoding="utf-8"
    )
    said = CliRunner().invoke(main, ["jackpot", "-c", str(path), "--bridge", "porto"])
    assert said.output == bridge(load(path), "porto")
    said = CliRunner().invoke(main, ["jackpot", "-c", str(path), "--bridge", "faro"])
    assert said.exit_code
    assert "sites: porto" in said.output
