"""A table moves to another computer between two rounds, as docs/how-to/operate-a-site.md says it.

The rules run at the site for all computers, or each computer has its own.
"""

import asyncio
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from daemon.config.model import Config
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from simulators.clock import Pace
from simulators.lab.campaign.broker import Broker
from simulators.lab.campaign.loop import VirtualLoop
from simulators.lab.campaign.pit import VirtualPit
from simulators.lab.pit import SITE

ROUNDS = 3


@pytest.mark.parametrize("rules_move", [False, True])
@pytest.mark.parametrize("kind", ["rou", "cus"])
def test_a_table_that_moved_to_another_computer_plays_on(tmp_path: Path, kind: str, *, rules_move: bool) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(_move(tmp_path, kind, rules_move=rules_move))


async def _move(folder: Path, kind: str, *, rules_move: bool) -> None:
    virtual = asyncio.get_running_loop()
    assert isinstance(virtual, VirtualLoop)
    broker = Broker(virtual, random.Random("broker"), lambda _fault: None)
    pit = VirtualPit(virtual, 7, (kind,), connect=broker.connect)
    config = pit.parsed()
    [table] = pit.tables
    journals = {name: Journal(folder / f"{name}.db") for name in ("edge-1", "edge-2", "rules", "rules-2")}
    site = SiteState(config.mqtt, SITE, from_start=True, connect=broker.connect)
    site.on_opened.append(pit.opened)
    site.on_result.append(pit.heard)
    site.on_event.append(pit.saw)

    second = replace(config, edge=replace(config.edge, name="edge-2"), rules=replace(config.rules, name="rules-2"))

    def edge(one: Config) -> asyncio.Task[None]:
        made = Edge(
            one,
            journals[one.edge.name],
            now=virtual.utc,
            opener=pit.opener(virtual.utc),
            connect=broker.connect,
        )
        return group.create_task(made.run())

    def rules(one: Config) -> asyncio.Task[None]:
        return group.create_task(Consumer(one, journals[one.rules.name], connect=broker.connect).run())

    async def play() -> None:
        await pit.deal(pace, ROUNDS, site, virtual.utc)
        dealt = pit.dealt()[table]
        async with asyncio.timeout(120.0):
            await site.until(lambda: len(pit.outcomes[table]) >= dealt)

    pace = Pace()
    async with asyncio.TaskGroup() as group:
        others = (site.run("display"), pit.serve(config.mqtt, broker.connect))
        running = [group.create_task(one) for one in others]
        old = [edge(config)]
        (old if rules_move else running).append(rules(config))
        await play()
        for task in old:
            task.cancel()
        await asyncio.wait(old)
        for one in (second, replace(config, table=())):  # the new one first: it reads the numbers, the old clears them
            running.append(edge(one))
            if rules_move:
                running.append(rules(one))
            await asyncio.sleep(5.0)
        await asyncio.sleep(30.0)
        await play()
        await asyncio.sleep(30.0)
        view = site.tables[table]
        for task in running:
            task.cancel()
    for journal in journals.values():
        journal.close()
    assert not virtual.trouble
    account = pit.accounts(pit.dealt())[table]
    assert account.right == pit.dealt()[table] > ROUNDS
    assert (account.voided, account.lost, account.wrong, account.extra) == (0, 0, 0, 0)
    rounds = [one.round for one in pit.outcomes[table]]
    assert len(rounds) == len(set(rounds))
    assert not view.alerts
    assert all(view.online.values())
    assert {one.meta.edge for (name, _), one in site.devices.items() if name == table} == {"edge-2"}
