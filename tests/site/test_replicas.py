"""Two `feltd rules` that read the backbone, killed in turns, tell the same as one that was never killed.

A third with other options disagrees: the alert has both results, and a person ends it.
"""

import asyncio
import contextlib
import functools
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backbone import NEEDS_NODES, stored
from click.testing import CliRunner
from helpers import PATIENCE, START, at_length

from daemon.broker.connection import connect
from daemon.broker.retained import read_standing
from daemon.cli.main import main
from daemon.config.model import Config, Mqtt, load
from daemon.consumer.consumer import Consumer
from daemon.journal.reader import page_after
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.events import BallLanded, BallLaunched, Event, SpinStarted, WagerPlaced, encode_data, type_of
from protocols.contract.topics import Wire, decode_envelope, decode_wire
from simulators.lab.broker import Broker
from simulators.lab.site.nodes import Nodes

pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")

from daemon.site import health
from daemon.site.backbone import Connection
from daemon.site.forward import Forwarder

pytestmark = [pytest.mark.system, NEEDS_NODES]
ROOT = Path(__file__).parents[2]
TABLES = at_length(3, 20)
KILLS = at_length(4, 16)
SITE = """\
[site]
name = "s"
[edge]
name = "{name}"
journal = "{folder}/edge.db"
[mqtt]
port = {port}
version = "{version}"
[rules]
name = "rules-{name}"
journal = "{folder}/rules.db"
insecure = true
[backbone]
servers = {servers}
monitors = {monitors}
one_machine = true
[forward]
folder = "{folder}/forward"
cards = true
[replica]
events = "{events}"
"""


class Site:
    """An edge's journal, the broker, the nodes, and the rules as processes; their forwarders run here."""

    def __init__(self, folder: Path, nodes: Nodes, broker: Broker) -> None:
        self.folder, self.nodes, self.broker = folder, nodes, broker
        self.edge = Journal(self.configured("e", "broker").parent / "edge.db")
        self.rounds = 0
        self.rules: dict[str, subprocess.Popen[bytes]] = {}

    def configured(self, name: str, events: str, options: str = "") -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        text = SITE.format(
            name=name, folder=folder, port=self.broker.port, version=self.broker.version, servers=self.nodes.servers,
            monitors=self.nodes.monitors, events=events,
        )  # fmt: skip
        table = '[[table]]\nname = "t-{}"\nruleset = "macau.roulette"\n'
        text += "".join(table.format(number) + options for number in range(TABLES))
        path = folder / "feltd.toml"
        path.write_text(text)
        return path

    async def play(self, rounds: int) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
            self.rounds += 1
            place, number = f"t-{self.rounds % TABLES}", self.rounds // TABLES
            spin: list[Event] = [SpinStarted(number), WagerPlaced(1, "black", 150)]
            spin += [BallLaunched("clockwise", "anticlockwise"), BallLanded(str(number % 37))]
            for at, event in enumerate(spin):
                time = START + timedelta(seconds=4 * number + at)
                self.edge.append([Entry(place, "wheel", type_of(event), time, encode_data(event))], {})

    def start(self, name: str) -> None:
        program = "from daemon.cli.main import main; main()"
        command = [sys.executable, "-c", program, "rules", "-c", str(self.folder / name / "feltd.toml")]
        with (self.folder / name / "rules.log").open("ab") as log:
            self.rules[name] = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        self.rules[name].kill()
        self.rules[name].wait()

    async def told(self) -> list[Wire]:
        return [decode_wire(one.data) for one in await stored(self.nodes, "RES")]

    async def has_told(self, name: str) -> bool:
        """Whether the backbone has a result by these rules."""
        path = self.folder / name / "rules.db"
        journal = page_after(path, "", 0, 1).journal if path.exists() else ""
        return any(one.journal == journal for one in await self.told())

    async def alerts(self) -> list[Any]:
        async with connect(Mqtt(port=self.broker.port, version=self.broker.version), "") as session:  # type: ignore[arg-type]
            shown = await read_standing(session, "felt/1/s/table/+/alert/results-disagree", quiet_s=0.5)
        return [msgspec.json.decode(one) for one in shown.values()]


@contextlib.asynccontextmanager
async def forwarded(*configs: Config) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = []
        for config in configs:
            connection = Connection(config.backbone, config.forward, config.edge.name)
            tasks.append(group.create_task(connection.run()))
            tasks.append(group.create_task(Forwarder(config, connection).run()))
        yield
        for task in tasks:
            task.cancel()


async def until(what: Callable[[], Any]) -> Any:
    async with asyncio.timeout(2 * PATIENCE):
        while not (found := await what()):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.3)
    return found


async def expected(site: Site) -> list[tuple[Any, ...]]:
    """What rules that were never killed tell of all events, in the order of the tables."""
    events = [decode_envelope(one.data) for one in await stored(site.nodes, "EV")]
    journal = Journal(site.folder / "never.db")
    Consumer(load(site.folder / "a/feltd.toml"), journal).take(events)
    rows = journal.after(0, 10**6)
    journal.close()
    return sorted((row.cause, row.type, row.time, row.data) for row in rows)


async def test_two_rules_that_are_killed_tell_what_one_tells_that_is_not(tmp_path: Path) -> None:
    with Nodes(tmp_path / "nodes") as nodes:
        (tmp_path / "broker").mkdir()
        broker = Broker(tmp_path / "broker")
        await broker.start()
        site = Site(tmp_path, nodes, broker)
        other = site.configured("c", "backbone", "[table.options]\nsmallest_chip = 100\nrounding = 'up'\n")
        configs = [load(site.configured(name, "backbone")) for name in "ab"]
        edge = load(site.configured("e", "broker"))
        try:
            await health.make_streams(edge, 1)
            async with forwarded(edge, *configs, load(other)):
                for name in "ab":
                    site.start(name)
                for number in range(KILLS):
                    await site.play(30)
                    await asyncio.sleep(at_length(1.5, 4))
                    name = "ab"[number % 2]
                    await asyncio.to_thread(site.kill, name)
                    await site.play(30)
                    await until(functools.partial(site.has_told, "ba"[number % 2]))
                    site.start(name)
                await agreed(site)
                site.start("c")
                await disagreed(site, other)
        finally:
            for process in site.rules.values():
                process.kill()
                process.wait()
            site.edge.close()
            await broker.kill()


async def agreed(site: Site) -> None:
    """RES has each verdict once, and nothing that the rules which were never killed do not tell."""
    rows = 4 * site.rounds

    async def all_events() -> bool:
        return len(await stored(site.nodes, "EV")) == rows

    await until(all_events)
    wanted = await expected(site)

    async def all_told() -> bool:
        return len(await site.told()) >= len(wanted)

    await until(all_told)
    await asyncio.sleep(2)
    told = [(f"{one.id}@{one.cause_journal}", one.type, one.time, bytes(one.data)) for one in await site.told()]
    assert sorted(told) == wanted
    assert len({one.journal for one in await site.told()}) == 2, "each told while the other was away"
    assert await site.alerts() == []


async def disagreed(site: Site, other: Path) -> None:
    [alert, *_] = await until(site.alerts)
    assert alert["code"] == "results.disagree"
    assert alert["text"].count("returns") == 2, alert
    twice = [one.id for one in await site.told()]
    assert len(set(twice)) < len(twice), "the backbone keeps both results"

    async def ended() -> bool:
        """Until all differences are told, another one may raise the alert again."""
        for table in {one["round"].partition(":")[0] for one in await site.alerts()}:
            ran = await asyncio.to_thread(CliRunner().invoke, main, ["site", "settle", table, "-c", str(other)])
            assert ran.exit_code == 0, ran.output
        return not await site.alerts()

    await until(ended)
