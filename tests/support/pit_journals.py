"""A pit of several tables in virtual time from a seed, and the digests of the journals of its edge and its rules.

    python tests/support/pit_journals.py [CHECKOUT] [--seed 1] [--rounds 6]

Run it on two checkouts: where a change leaves behaviour alone, both print the same.
"""

import argparse
import asyncio
import contextlib
import hashlib
import random
import sqlite3
import sys
import tempfile
from pathlib import Path

KINDS = ("rou", "bac", "cus", "fan", "stud")


def digests(folder: Path) -> dict[str, str]:
    """Of each table of each journal: rows and their digest."""
    found = {}
    for path in sorted(folder.glob("*.db")):
        with contextlib.closing(sqlite3.connect(path)) as db:
            for table in ("event", "memory"):
                rows = list(db.execute(f"SELECT * FROM {table} ORDER BY 1"))
                digest = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
                found[f"{path.stem}.{table}"] = f"{len(rows)} rows {digest}"
    return found


class _Even(random.Random):
    """Every packet takes equally long: the journals do not depend on which other packets there are."""

    def random(self) -> float:
        return 0.5


async def _play(folder: Path, seed: int, rounds: int) -> None:
    from daemon.consumer.consumer import Consumer
    from daemon.edge.edge import Edge
    from daemon.journal.store import Journal
    from daemon.read_model import SiteState
    from simulators.clock import Pace
    from simulators.lab.campaign.broker import Broker
    from simulators.lab.campaign.loop import VirtualLoop
    from simulators.lab.campaign.pit import VirtualPit
    from simulators.lab.pit import KINDS as TABLES, SITE

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    broker = Broker(loop, _Even(), lambda _fault: None)
    kinds = tuple(kind for kind in KINDS if kind in TABLES)
    pit = VirtualPit(loop, seed, kinds, TABLES, connect=broker.connect)
    config = pit.parsed()
    journals = [Journal(folder / "edge.db"), Journal(folder / "rules.db")]
    edge = Edge(config, journals[0], now=loop.utc, opener=pit.opener(loop.utc), connect=broker.connect)
    rules = Consumer(config, journals[1], connect=broker.connect)
    site = SiteState(config.mqtt, SITE, from_start=True, connect=broker.connect)
    site.on_opened.append(pit.opened)
    site.on_result.append(pit.heard)
    site.on_event.append(pit.saw)
    async with asyncio.TaskGroup() as group:
        parts = (edge.run(), rules.run(), site.run("display"), pit.serve(config.mqtt, broker.connect))
        running = [group.create_task(one) for one in parts]
        await asyncio.sleep(1)
        await pit.deal(Pace(), rounds * len(pit.tables), site, loop.utc)
        await asyncio.sleep(60)
        for task in running:
            task.cancel()
    for journal in journals:
        journal.close()


def main() -> None:
    """Print the digests of one checkout."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("checkout", nargs="?", default=str(Path(__file__).parents[2]))
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=6)
    given = options.parse_args()
    sys.path.insert(0, given.checkout)
    from daemon import logs
    from simulators.lab.campaign.campaign import _chance
    from simulators.lab.campaign.loop import VirtualLoop

    logs.set_up("error")
    with tempfile.TemporaryDirectory() as folder, _chance(given.seed):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(_play(Path(folder), given.seed, given.rounds))
        for name, text in digests(Path(folder)).items():
            sys.stdout.write(f"{name}: {text}\n")


if __name__ == "__main__":
    main()
