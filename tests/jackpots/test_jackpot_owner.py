"""One owner for each pool: edges that lose it close its bets, no bet taken before is lost, a second owner ends."""

import asyncio
import contextlib
import json
import random
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from helpers import at_length, broker_may_be_late
from jackpot_pit import POOLS, World, results, run, running, staked, until_quiet

from daemon import logs
from daemon.broker.connection import connect
from daemon.broker.session import Session
from daemon.config.model import Mqtt, parse
from daemon.edge import pools as pools_module
from daemon.edge.edge import Edge
from daemon.jackpots.ledger import unbalanced
from daemon.jackpots.process import Jackpots, NotOwner
from daemon.jackpots.report import read_pools
from daemon.journal.store import Journal
from drivers.driver import Chunk, Sighting
from protocols.contract.events import JackpotContributed, WagerPlaced, decode_data
from protocols.contract.jackpots import PoolLevel, PoolOwner, jackpot_topic
from simulators.clock import Pace
from simulators.lab.broker import Broker, find_mosquitto
from simulators.lab.pit import SITE

ALERT = f"felt/1/{SITE}/table/stud-1/alert/edge-1-pool-linked"


def test_jackpot_bets_are_closed_while_the_owner_is_lost_and_bets_taken_before_count(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(("stud",), 7, tmp_path, POOLS) as world:
            world.pit._serving = world.site.changed.set
            table = world.pit.tables["stud-1"]
            dealing = asyncio.create_task(world.pit._deal("stud-1", table, Pace(), 22, world.site, world.loop.utc))
            await asyncio.sleep(150)
            world.kill()
            await asyncio.sleep(8)
            assert ALERT not in world.broker.retained
            await asyncio.sleep(4)
            assert b"betting on the jackpot linked is closed" in world.broker.retained[ALERT]
            closed, before = world.loop.utc(), world.edge.head
            await world.site.until(lambda: len(table.truth) >= 14)
            world.start()
            await asyncio.sleep(5)
            assert ALERT not in world.broker.retained
            opened, behind = world.loop.utc(), world.edge.head
            await dealing
            await until_quiet(world)
            marked: dict[type, set[bool]] = {WagerPlaced: set(), JackpotContributed: set()}
            for row in world.edge.after(0, 1_000_000):
                event = decode_data(row.type, row.data)
                if isinstance(event, JackpotContributed) or (isinstance(event, WagerPlaced) and event.bet == "jackpot"):
                    if before < row.n <= behind and closed < row.time < opened:
                        marked[type(event)].add(event.pool_closed)
                    else:
                        assert not event.pool_closed
                elif isinstance(event, WagerPlaced):
                    assert not event.pool_closed
            assert all(True in each for each in marked.values())
            noted = [one.code for result in results(world).values() for one in result.irregularities]
            assert "jackpot_closed" in noted
            for pool in ("table", "linked"):
                book = world.book(pool)
                assert -book.balance("players") == staked(world) * book.unit
                assert unbalanced(book) == ""

    run(body())


def test_an_edge_without_its_broker_closes_the_bets_of_its_pools_also_after_a_restart(tmp_path: Path) -> None:
    """It knows the pools from its journal, and closes within the bound although it never reached the broker."""

    async def body() -> None:
        async with running(("stud",), 7, tmp_path, POOLS) as world:
            await asyncio.sleep(30)
            stored = world.edge.memories(pools_module.KEY)
            assert set(stored) == {"pool/table", "pool/linked"}
        journal = Journal(tmp_path / "edge.db")
        edge = Edge(world.config, journal)
        bet = WagerPlaced(seat=1, bet="jackpot", amount=100)
        edge.pools.since = asyncio.get_running_loop().time()
        edge.pools.look()
        assert edge.pools.mark("stud-1", bet, asyncio.get_running_loop().time()) == bet
        early = asyncio.get_running_loop().time()
        await asyncio.sleep(pools_module.LOST_S + 1)
        edge.pools.look()
        now = asyncio.get_running_loop().time()
        assert edge.pools.mark("stud-1", bet, now) == msgspec.structs.replace(bet, pool_closed=True)
        assert edge.pools.mark("stud-1", bet, early) == bet  # its device kept it from before
        assert edge.pools.mark("other", bet, now) == bet
        ante = WagerPlaced(seat=1, bet="ante", amount=100)
        assert edge.pools.mark("stud-1", ante, now) == ante
        for pool in ("table", "linked"):  # a person cleared the topic: the pool is no more
            edge.pools.is_owned(pool, b"")
        assert edge.pools.mark("stud-1", bet, now) == bet
        assert not any(journal.memories(pools_module.KEY).values())
        other = msgspec.json.encode(PoolOwner("other", "o", "J", 1, "b", ("stud-1",)))
        for payload in (b"{", b"\xff", b"[" * 100_000, b'{"pool":1}', other):  # unreadable, or of another pool
            edge.pools.is_owned("table", payload)
        assert edge.pools.topics() == [jackpot_topic(SITE, "+", "owner")]
        journal.close()

    run(body())


# ---- two owners


def second(world: World, folder: Path, **changed: str) -> tuple[Jackpots, Journal]:
    """Another process with books in `folder`."""
    journal = Journal(folder / "jackpots.db")
    config = msgspec.structs.replace(world.config, jackpots=msgspec.structs.replace(world.config.jackpots, **changed))
    return Jackpots(config, journal, connect=world.broker.connect, now=world.loop.utc), journal


async def refusal(one: Jackpots, within_s: float = 60.0) -> str:
    """The words with which it ends; "" where it does not."""
    task = asyncio.ensure_future(one.run())
    await asyncio.wait([task], timeout=within_s)
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
        return ""
    errors = task.exception()
    assert isinstance(errors, BaseExceptionGroup)
    found = errors.subgroup(NotOwner)
    assert found is not None
    return str(logs.first(found))


@pytest.mark.parametrize("name", ["jackpots", "jackpots-2"])
def test_a_second_process_with_other_books_ends_and_the_owner_goes_on(tmp_path: Path, name: str) -> None:
    async def body() -> None:
        async with running(("stud",), 7, tmp_path, POOLS) as world:
            await asyncio.sleep(30)
            level = jackpot_topic(SITE, "table", "level")
            before = world.broker.retained[level]
            other, journal = second(world, tmp_path / "other", name=name)
            said = await refusal(other)
            assert f"is kept by jackpots with the books {world.now.journal.name}, not {journal.name}" in said
            assert "put the right books at" in said
            assert world.broker.retained[level] == before
            await asyncio.sleep(30)
            assert world.now.connected
            owner = msgspec.json.decode(world.broker.retained[jackpot_topic(SITE, "table", "owner")], type=PoolOwner)
            assert (owner.journal, owner.epoch) == (world.now.journal.name, 1)
            journal.close()

    run(body())


def test_books_that_were_continued_elsewhere_are_not_opened_again(tmp_path: Path) -> None:
    """A copy of the disk, or a backup: the first that goes on is the owner, and the other one ends."""

    async def body() -> None:
        async with running(("stud",), 7, tmp_path, POOLS) as world:
            await asyncio.sleep(30)
            world.kill()
            shutil.copytree(tmp_path / "books", tmp_path / "copy")
            world.start()
            await asyncio.sleep(30)
            other, journal = second(world, tmp_path / "copy")
            assert "with a later copy of these books (start number 2)" in await refusal(other)
            await asyncio.sleep(30)
            assert world.now.connected
            journal.close()

    run(body())


def test_of_two_copies_that_start_together_one_goes_on(tmp_path: Path) -> None:
    """The broker lost who was the owner: the two see each other, and the later life is the same for both."""

    async def body() -> None:
        async with running(("stud",), 7, tmp_path, POOLS) as world:
            await asyncio.sleep(30)
            world.kill()
            shutil.copytree(tmp_path / "books", tmp_path / "copy")
            for pool in ("table", "linked"):
                world.broker.retained.pop(jackpot_topic(SITE, pool, "owner"))
            one, journal = second(world, tmp_path / "books")
            two, copy = second(world, tmp_path / "copy", name="jackpots-2")
            said = await asyncio.gather(refusal(one, 120), refusal(two, 120))
            assert sorted(map(bool, said)) == [False, True]
            assert any("this one ends" in text for text in said)
            journal.close()
            copy.close()

    run(body())


# ---- real processes and a real broker


EDGE = """
[site]
name = "demo"
[edge]
name = "edge-{number}"
[mqtt]
port = {port}
[[table]]
name = "x-{number}"
[[table.device]]
name = "bets"
driver = "fdl_bets"
url = "tcp://127.0.0.1:9"
"""
CONFIG = """
[site]
name = "demo"
[edge]
name = "edge-1"
[jackpots]
name = "{name}"
journal = "{folder}/{books}/jackpots.db"
insecure = true
[mqtt]
port = {port}
[[table]]
name = "x-1"
[[table]]
name = "x-2"
[[jackpot]]
name = "hall"
tables = ["x-1", "x-2"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "1/3"
"""


class Floor:
    """Two edges in this process, which learn of the pool from its owner; that is a process which is killed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.edges = [
            Edge(parse(EDGE.format(number=number, port=port)), Journal(folder / f"edge-{number}.db"))
            for number in (1, 2)
        ]
        self.bets = 0
        self.level: PoolLevel | None = None
        self.alerts: dict[str, bytes] = {}
        self.heard = asyncio.Event()

    def config(self, name: str, books: str) -> str:
        return CONFIG.format(folder=self.folder, port=self.port, name=name, books=books)

    async def start(self, name: str = "jackpots", books: str = "books") -> asyncio.subprocess.Process:
        path = self.folder / f"{name}-{books}.toml"
        path.write_text(self.config(name, books), encoding="utf-8")
        words = ("-m", "daemon.cli", "jackpots", "-c", str(path))
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(sys.executable, *words, stdout=pipe, stderr=pipe)

    async def bet(self, amount: int) -> None:
        loop = asyncio.get_running_loop()
        chunk = Chunk(b"", datetime.now(UTC), loop.time())
        self.bets += 1
        await self.edges[self.bets % 2].sessions[0].emit([Sighting(JackpotContributed("hall", amount, 1), b"", chunk)])

    def taken(self) -> int:
        """The bets in the journals of the edges that were not refused."""
        rows = [row for edge in self.edges for row in edge.journal.after(0, 1_000_000)]
        events = [decode_data(row.type, row.data) for row in rows]
        return sum(one.amount for one in events if isinstance(one, JackpotContributed) and not one.pool_closed)

    async def listen(self, session: Session) -> None:
        await session.subscribe(jackpot_topic("demo", "hall", "level"), "felt/1/demo/table/+/alert/+")
        while True:
            for message in await session.messages():
                if message.topic.endswith("/level"):
                    self.level = msgspec.json.decode(message.payload, type=PoolLevel)
                elif message.topic.endswith("-pool-hall"):
                    self.alerts[message.topic] = message.payload
            self.heard.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self.heard.clear()
            await self.heard.wait()

    def exact(self) -> bool:
        return self.level is not None and self.level.amount == 10_000 + self.taken() // 3


@contextlib.asynccontextmanager
async def floor(folder: Path) -> AsyncIterator[Floor]:
    broker = Broker(folder)
    await broker.start()
    one = Floor(folder, broker.port)
    try:
        async with connect(Mqtt(port=broker.port), "test") as session:
            tasks = [asyncio.create_task(body) for body in (*(edge.run() for edge in one.edges), one.listen(session))]
            try:
                yield one
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
    finally:
        for edge in one.edges:
            edge.journal.close()
        await broker.stop()


async def end(process: asyncio.subprocess.Process) -> bytes:
    """What it said on standard error."""
    if process.returncode is None:
        process.kill()
    _, said = await process.communicate()
    return said


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_no_bet_is_lost_or_counted_twice_when_the_owner_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 while bets come, again and again; then away until the edge closes the betting; then back."""
    broker_may_be_late(monkeypatch)
    monkeypatch.setattr(pools_module, "LOST_S", 4.0)
    rng = random.Random(1)
    async with floor(tmp_path) as one:
        owner = await one.start()
        try:
            await one.until(lambda: one.level is not None)
            for _ in range(at_length(2, 20)):
                for _ in range(40):
                    await one.bet(rng.randrange(1, 1000))
                    await asyncio.sleep(rng.choice([0, 0, 0.01]))
                await end(owner)
                for _ in range(20):
                    await one.bet(rng.randrange(1, 1000))
                owner = await one.start()
                await one.until(one.exact)
            await end(owner)
            closed = b"betting on the jackpot hall is closed"
            await one.until(lambda: sum(closed in alert for alert in one.alerts.values()) == 2)
            assert sorted(one.alerts) == [f"felt/1/demo/table/x-{n}/alert/edge-{n}-pool-hall" for n in (1, 2)]
            taken = one.taken()
            for _ in range(2):
                await one.bet(500)
            assert one.taken() == taken
            owner = await one.start()
            await one.until(lambda: not any(one.alerts.values()))
            for _ in range(2):
                await one.bet(250)
            assert one.taken() == taken + 500
            await one.until(one.exact)
        finally:
            await end(owner)
    [pool] = read_pools(
        tmp_path / "books" / "jackpots.db", parse(one.config("jackpots", "books")).jackpot, 0, all_checked=True
    )
    assert pool.wrong == ""
    assert -pool.book.balance("players") == (taken + 500) * pool.book.unit


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.parametrize("name", ["jackpots", "other"])
async def test_a_second_process_says_why_it_ends_and_the_owner_goes_on(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_may_be_late(monkeypatch)
    async with floor(tmp_path) as one:
        owner = await one.start()
        second = None
        try:
            await one.until(lambda: one.level is not None)
            await one.bet(300)
            await one.until(one.exact)
            second = await one.start(name, "empty")
            _, said = await second.communicate()
            assert second.returncode == 1
            assert b"pool hall is kept by jackpots with the books" in said
            assert b"Traceback" not in said
            await one.bet(600)
            await one.until(one.exact)
            assert one.level is not None
            assert one.level.amount == 10_300
            assert owner.returncode is None
        finally:
            said = await end(owner)
            if second is not None:
                await end(second)
        events = [json.loads(line) for line in said.splitlines()]
        assert "jackpots.started" in {one["event"] for one in events}
        lost = {one["reason"] for one in events if one["event"] == "broker.lost"}
        assert lost <= {"the broker does not answer"}, "the second one ended the session of the owner"
