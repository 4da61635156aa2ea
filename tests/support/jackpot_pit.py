"""A simulated pit with its edge, rules and jackpots process in virtual time, for the tests of jackpots."""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from daemon.config.model import Config, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.jackpots.book import Book
from daemon.jackpots.process import Jackpots
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from protocols.contract.results import Result, decode_end
from protocols.contract.topics import EARLIEST
from simulators.lab.campaign.broker import Broker
from simulators.lab.campaign.loop import Process, VirtualLoop
from simulators.lab.campaign.pit import VirtualPit
from simulators.lab.pit import SITE

POOLS = """
[[jackpot]]
name = "table"
tables = ["stud-1"]
counts = "devices"
seed = 100000
visible = "3/7"
hidden = "1/11"
[jackpot.prizes]
flush = { fixed = 50 }
full_house = { fixed = 100 }
four_of_a_kind = { fixed = 500 }
straight_flush = { fixed = 5000 }
royal_flush = { fixed = 9000 }
[[jackpot]]
name = "linked"
tables = ["stud-1"]
counts = "rules"
seed = 0
visible = "0.15"
limit = 5000
"""


UNSIGNED = "\n[jackpots]\ninsecure = true\n"
"""The tests give orders without a console."""


class World(Struct):
    """A pit that runs, and the jackpots process, which can be killed and started again."""

    pit: VirtualPit
    site: SiteState
    broker: Broker
    edge: Journal
    rules: Journal
    config: Config
    folder: Path
    loop: VirtualLoop
    lives: list[tuple[Process, Jackpots, Journal]]
    rng: random.Random
    loss: float = 0.0
    """How many of the messages to the jackpots are lost."""

    def start(self) -> Jackpots:
        journal = Journal(self.folder / "books" / "jackpots.db")
        one = Jackpots(self.config, journal, connect=self.broker.connect, now=self.loop.utc)
        take = one.take
        one.take = lambda messages: take([x for x in messages if self.rng.random() >= self.loss])  # type: ignore[method-assign]
        process = Process("jackpots", self.loop)
        process.start(one.run())
        self.lives.append((process, one, journal))
        return one

    def kill(self) -> None:
        """At this instant: what it holds is gone with it."""
        process, _, journal = self.lives[-1]
        process.die("killed")
        journal._db.close()
        journal._lock.release()

    @property
    def now(self) -> Jackpots:
        return self.lives[-1][1]

    def book(self, pool: str) -> Book:
        return self.now.books[pool]


@contextlib.asynccontextmanager
async def running(
    kinds: tuple[str, ...], seed: int, folder: Path, pools: str, machine: str = ""
) -> AsyncIterator[World]:
    """`machine`: options of the slot machine's driver."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    broker = Broker(loop, random.Random(f"{seed} broker"), lambda _fault: None)
    pit = VirtualPit(loop, seed, kinds, connect=broker.connect)
    options = rf"\1\n[table.device.options]\n{machine}\n"
    config = parse(
        re.sub(r'(driver = "sas_machine"\nurl = ".*"\n)', options, pit.config(1883, "5") + "\n") + pools + UNSIGNED
    )
    edge_journal, rules_journal = Journal(folder / "edge.db"), Journal(folder / "rules.db")
    edge = Edge(config, edge_journal, now=loop.utc, opener=pit.opener(loop.utc), connect=broker.connect)
    consumer = Consumer(config, rules_journal, connect=broker.connect)
    site = SiteState(config.mqtt, SITE, from_start=True, connect=broker.connect)
    site.on_opened.append(pit.opened)
    site.on_result.append(pit.heard)
    site.on_event.append(pit.saw)
    world = World(pit, site, broker, edge_journal, rules_journal, config, folder, loop, [], random.Random(seed))
    async with asyncio.TaskGroup() as group:
        bodies = (edge.run(), consumer.run(), site.run("display"), pit.serve(config.mqtt, broker.connect))
        tasks = [group.create_task(one) for one in bodies]
        world.start()
        try:
            yield world
        finally:
            world.kill()
            for task in tasks:
                task.cancel()
    edge_journal.close()
    rules_journal.close()
    assert not loop.trouble, loop.trouble


def run(body: Coroutine[Any, Any, None]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(body)
    finally:
        loop.close()


def results(world: World, since: datetime = EARLIEST) -> dict[str, Result]:
    """The last result of each round, from the rules' own journal."""
    found: dict[str, Result] = {}
    for row in world.rules.after(0, 1_000_000):
        if row.type in ("resolved", "voided", "corrected") and row.time >= since:
            result = decode_end(row.data)
            found[result.round] = result
    return found


def staked(world: World, since: datetime = EARLIEST) -> int:
    """The bets on the jackpot that were taken and not returned."""
    settled = [one for result in results(world, since).values() if result.void is None for one in result.settlements]
    return sum(one.stake for one in settled if one.bet == "jackpot" and not one.returned)


async def until_quiet(world: World) -> None:
    """Until the books have used all that was played."""
    last, still = None, 0
    while still < 3:
        await asyncio.sleep(40.0)
        now = (world.rules.head, world.edge.head, world.book("table").number, world.book("linked").number)
        last, still = now, still + 1 if now == last else 0
