"""A linked jackpot with real processes: two edges, one pool, mosquitto, and kill -9 in the middle of bets and wins."""

import asyncio
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from helpers import at_length, patient

from daemon.config.model import parse
from daemon.jackpots.report import read_pools
from daemon.read_model import SiteState
from protocols.contract.jackpots import BookEntry
from simulators.clock import Pace
from simulators.devices.fdl_bets import BetSensors
from simulators.devices.line import Line
from simulators.lab import demo
from simulators.lab.broker import Broker, find_mosquitto
from simulators.lab.demo import Child
from simulators.lab.pools import Supervisors
from simulators.ports.port import Pty, Socket

pytestmark = [pytest.mark.system, pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")]

CHIP = 1000
COMMON = """
[site]
name = "lisboa"
[mqtt]
port = {port}
[edge]
name = "{edge}"
journal = "{folder}/{edge}.db"
"""
TABLE = """
[[table]]
name = "{table}"
[[table.device]]
name = "bets-1"
driver = "fdl_bets"
url = "serial://{folder}/{table}"
[table.device.options]
pool = "hall"
"""
POOL = """
[jackpots]
insecure = true
journal = "{folder}/jackpots.db"
[[table]]
name = "a-1"
[[table]]
name = "b-1"
[[jackpot]]
name = "hall"
tables = ["a-1", "b-1"]
counts = "devices"
wins = "devices"
seed = 5000
visible = "1/7"
hidden = "1/9"
simultaneous_s = 0
[jackpot.prizes]
level_1 = {{ pays = "larger_of_fixed_and_share", share = "1/10" }}
"""


class Place:
    """A table with bet sensors and hands that play in real time."""

    def __init__(self, folder: Path, table: str, edge: str, port: int, seed: int) -> None:
        self.table = table
        self.pace = Pace()
        self.rng = random.Random(f"{seed} {table}")
        self.sensors = BetSensors(self.rng)
        tty = Pty(folder / table)
        tty.plug()
        self.socket = Socket(self.sensors, tty, self.pace, Line(self.rng))
        config = folder / f"{edge}.toml"
        words = {"folder": folder, "table": table, "edge": edge, "port": port}
        config.write_text((COMMON + TABLE).format(**words), encoding="utf-8")
        self.edge = Child("edge", config)
        self.bets: list[int] = []
        self.wins: list[int] = []

    async def play(self, rounds: int) -> None:
        """Chips, the lock, now and then a win that is paid, and the next round."""
        for _ in range(rounds):
            for seat in self.rng.sample(range(1, 8), self.rng.randint(1, 4)):
                await self._do(self.sensors.place, seat)
            await self._do(self.sensors.lock)
            latched = sorted(self.sensors.latched)
            self.bets += latched
            if self.rng.random() < 0.5:
                self.wins.append(latched[0])
                await self._do(self.sensors.win, latched[0], 1)
                self.sensors.supervisor_key(on=True, now=self.pace.now())
                await self._do(self.sensors.pay)
                self.sensors.supervisor_key(on=False, now=self.pace.now())
            await self._do(self.sensors.remove_all)
            await self._do(self.sensors.clear)

    async def _do(self, act: Callable[..., object], *what: int) -> None:
        act(*what, self.pace.now())
        self.socket.stir()
        await asyncio.sleep(self.rng.uniform(0.0, 0.05))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(at_length(1, 5)))
async def test_two_edges_feed_one_pool_whose_process_is_killed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "RESTART_DELAY_S", 0.2)
    broker = Broker(tmp_path, persistence=True)
    await broker.start()
    path = tmp_path / "jackpots.toml"
    path.write_text((COMMON + POOL).format(folder=tmp_path, port=broker.port, edge="edge-x"), encoding="utf-8")
    config = parse(path.read_text(encoding="utf-8"))
    places = [Place(tmp_path, table, edge, broker.port, seed) for table, edge in (("a-1", "edge-a"), ("b-1", "edge-b"))]
    pools, site = Child("jackpots", path), SiteState(config.mqtt, "lisboa", from_start=True)
    people = Supervisors("lisboa", random.Random(seed), lambda: pytest.fail("they order nothing"))

    def used() -> int:
        """Minor units of the bets in the books."""
        found = read_pools(tmp_path / "jackpots.db", config.jackpot, 10, all_checked=False)
        return -found[0].book.balance("players") // found[0].book.unit

    async def body() -> None:
        await people.until_begun(["hall"])
        await site.until(
            lambda: (
                all(site.tables[one.table].online.get("bets-1") for one in places if one.table in site.tables)
                and len(site.tables) >= 2
            )
        )
        playing = asyncio.gather(*(one.play(20) for one in places))
        for _ in range(3):
            await asyncio.sleep(places[0].rng.uniform(0.3, 1.0))
            if pools.process is not None and pools.process.returncode is None:
                pools.process.kill()
                await pools.process.wait()
        await playing
        bets = sum(len(one.bets) for one in places) * CHIP
        while used() != bets or people.levels["hall"].amount != level() or waiting() != wins():  # noqa: ASYNC110
            await asyncio.sleep(0.2)

    def level() -> int:
        return read_pools(tmp_path / "jackpots.db", config.jackpot, 10, all_checked=False)[0].book.amount

    def waiting() -> int:
        return people.levels["hall"].waiting

    def wins() -> int:
        return sum(len(one.wins) for one in places)

    try:
        async with asyncio.TaskGroup() as group:
            parts = (broker.keep(), pools.keep(), site.run("test"), people.run(config.mqtt))
            tasks = [group.create_task(one) for one in parts]
            tasks += [group.create_task(one.edge.keep()) for one in places]
            tasks += [group.create_task(one.socket.live()) for one in places]
            try:
                await patient(body(), lambda: [(one.bets[:], one.wins[:]) for one in places] + [people.levels])
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        await broker.stop()
    assert pools.starts > 1
    [pool] = read_pools(tmp_path / "jackpots.db", config.jackpot, 10_000, all_checked=True)
    assert pool.wrong == ""
    pot = Fraction(5000)
    told: list[tuple[str, str, int]] = []
    for row in reversed(pool.entries):
        entry = msgspec.json.decode(row.data, type=BookEntry)
        if row.type == "contributed":
            pot += Fraction(CHIP, 7)
        elif row.type == "won":
            assert entry.amount == int(pot / 10)
            pot -= entry.amount
        seat = entry.win.award.among[0] if entry.win is not None else entry.seat
        told.append((row.type, entry.table, seat))
    for place in places:
        assert [seat for kind, table, seat in told if (kind, table) == ("contributed", place.table)] == place.bets
        assert [seat for kind, table, seat in told if (kind, table) == ("won", place.table)] == place.wins
    assert people.levels["hall"].amount == pool.book.amount == int(pot)
    assert wins() > 2
