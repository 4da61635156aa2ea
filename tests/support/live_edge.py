"""An edge without devices whose tables play roulette at a given pace; run as `live_edge.py CONFIG EVENTS_PER_SECOND`.

The verdicts that the rules draw from its events carry the time of the event, so a reader can say how late they come.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from daemon.config.model import Config, load
from daemon.edge.edge import Edge
from daemon.edge.links.link import utc_now
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    Event,
    RoundPaid,
    SpinStarted,
    encode_data,
    type_of,
)

STEPS = 5


def spin(number: int) -> tuple[Event, ...]:
    """The events of one round."""
    return (
        SpinStarted(number % 256),
        BallLaunched("clockwise", "anticlockwise"),
        BallSettling(),
        BallLanded(str(number % 37)),
        RoundPaid(),
    )


def entries(table: str, number: int) -> list[Entry]:
    """One round as the journal of an edge keeps it."""
    return [Entry(table, "wheel-1", type_of(event), utc_now(), encode_data(event)) for event in spin(number)]


async def _play(edge: Edge, config: Config, pace: float) -> None:
    while not edge.connected:  # noqa: ASYNC110 - nothing says when it is
        await asyncio.sleep(0.01)
    tables = [table.name for table in config.table]
    for number in count(1):
        for step in range(STEPS):
            for table in tables:
                edge.append([entries(table, number)[step]], {})
                await asyncio.sleep(1 / pace)


async def _main(path: Path, pace: float) -> None:
    config = load(path)
    edge = Edge(config, Journal(Path(config.edge.journal)))
    async with asyncio.TaskGroup() as group:
        group.create_task(edge.run())
        group.create_task(_play(edge, config, pace))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), float(sys.argv[2])))
