"""A table of the demo, on a cable and a broker in memory and in virtual time: nothing waits, no port, no process.

The edge, the rules, their journals and the display are the real ones.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from simulators.clock import Pace
from simulators.lab.campaign.broker import Broker
from simulators.lab.campaign.loop import VirtualLoop
from simulators.lab.campaign.pit import VirtualPit
from simulators.lab.pit import KINDS, SITE, Pit
from simulators.tables.table import Table


class World(Struct):
    """A pit that runs: its table, the display, the pace of the dealers, and how to wait for the last results."""

    pit: Pit
    site: SiteState
    pace: Pace
    settle: Callable[[dict[str, int]], Coroutine[Any, Any, None]]
    utc: Callable[[], Any]


@contextlib.asynccontextmanager
async def in_memory(
    kind: str, seed: int, directory: Path, tables: Mapping[str, type[Table]] = KINDS
) -> AsyncIterator[World]:
    """Cables and a broker in memory; the edge, the rules and their journals are the real ones."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    broker = Broker(loop, random.Random(f"{seed} broker"), lambda _fault: None)
    pit = VirtualPit(loop, seed, (kind,), tables, connect=broker.connect)
    config = pit.parsed()
    edge_journal, rules_journal = Journal(directory / "edge.db"), Journal(directory / "rules.db")
    edge = Edge(config, edge_journal, now=loop.utc, opener=pit.opener(loop.utc), connect=broker.connect)
    consumer = Consumer(config, rules_journal, connect=broker.connect)
    site = SiteState(config.mqtt, SITE, from_start=True, connect=broker.connect)
    site.on_opened.append(pit.opened)
    site.on_result.append(pit.heard)
    site.on_event.append(pit.saw)

    async def settle(dealt: dict[str, int]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60.0):
                await site.until(lambda: all(len(pit.outcomes[name]) >= count for name, count in dealt.items()))

    serving = pit.serve(config.mqtt, broker.connect)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one) for one in (edge.run(), consumer.run(), site.run("display"), serving)]
        yield World(pit, site, Pace(), settle, loop.utc)
        for task in running:
            task.cancel()
    edge_journal.close()
    rules_journal.close()
    assert not loop.trouble, loop.trouble
