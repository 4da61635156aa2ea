"""A table of every game with a dealer's page: broker, edge, rules and console are real, devices report from the test.

It lives in a thread of its own, so that a test may wait for a browser. Only the page is a device of the edge: what
other devices of the table would report is written to the edge's journal.
"""

import asyncio
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec
from floor import OPENS_WITHIN_S, PASSWORD, InAThread

from daemon.config.model import Config, parse
from daemon.console import app as app_module
from daemon.console.app import ConsoleProcess, serve
from daemon.console.auth.users import By, Role, hash_password
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.edge.links.link import utc_now
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.views import TableView
from protocols.contract.events import Event, encode_data, type_of
from rules import RULESETS
from simulators.lab.broker import Broker

__all__ = ["DealerFloor", "table_of"]

T = TypeVar("T")

PEOPLE: dict[str, Role] = {"dora": "dealer", "sam": "supervisor", "ines": "inspector", "mona": "manager"}
OPTIONS: dict[str, dict[str, Any]] = {
    "macau.baccarat": {"opening": "bell", "burn": "first_card", "cut_card": "last"},
}
HEAD = """
[site]
name = "lisboa"
[edge]
name = "edge-1"
journal = "{folder}/edge.db"
[rules]
journal = "{folder}/rules.db"
[mqtt]
port = {port}
version = "{version}"
[console]
port = 0
store = "{folder}/console.db"
journal = "{folder}/actions.db"
"""


def table_of(ruleset: str) -> str:
    """The name of the table of a game."""
    return ruleset.replace(".", "-")


class DealerFloor(InAThread):
    """The processes, from `open` to `close`."""

    def __init__(self, directory: Path, rulesets: tuple[str, ...] = tuple(RULESETS)) -> None:
        super().__init__("dealer-floor")
        self.directory = directory
        self._rulesets = rulesets
        self.house: ConsoleProcess
        self.edge: Edge

    # ---- as a Floor

    def secret(self, name: str) -> str:
        """The cookie of a new session of somebody."""
        return self.do(lambda: self.house.access.users.begin(name, "127.0.0.1", "test"))

    def report(self, table: str, device: str, *events: Event) -> None:
        """A device of the table reports."""
        entries = [Entry(table, device, type_of(one), utc_now(), encode_data(one)) for one in events]
        self.do(lambda: self.edge.append(entries, {}))

    def view(self, table: str) -> TableView:
        """The table as the console sees it."""
        return self.house.site.tables[table]

    # ---- its life

    def _config(self, broker: Broker) -> Config:
        text = HEAD.format(folder=self.directory, port=broker.port, version=broker.version)
        pages, tables = ["[console.dealer]"], []
        for ruleset in self._rulesets:
            name = table_of(ruleset)
            address = f"{self.directory}/{name}.sock"
            pages.append(f'{name} = "{address}"')
            tables.append(f'[[table]]\nname = "{name}"\nruleset = "{ruleset}"')
            if options := OPTIONS.get(ruleset):
                lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in options.items()]
                tables.append("\n".join(("[table.options]", *lines)))
            tables.append(f'[[table.device]]\nname = "page-1"\ndriver = "fdl_console"\nurl = "unix://{address}"')
        return parse("\n".join((text, *pages, *tables)))

    async def _live(self) -> None:
        broker = Broker(self.directory)
        await broker.start()
        journals = [Journal(self.directory / f"{name}.db") for name in ("edge", "rules", "actions")]
        try:
            config = self._config(broker)
            await self._run(config, *journals)
        finally:
            for journal in journals:
                journal.close()
            await broker.stop()

    async def _run(self, config: Config, edge: Journal, rules: Journal, actions: Journal) -> None:
        made: list[ConsoleProcess] = []

        def make(*words: Any, **more: Any) -> ConsoleProcess:
            made.append(ConsoleProcess(*words, **more))
            return made[-1]

        listening: asyncio.Future[int] = self._loop.create_future()
        with patch.object(app_module, "ConsoleProcess", make):
            self.edge = Edge(config, edge)
            running = [
                asyncio.create_task(body)
                for body in (
                    self.edge.run(),
                    Consumer(config, rules).run(),
                    serve(config, actions, on_listening=listening.set_result),
                )
            ]
            self.port = await listening
        [self.house] = made
        hashed = hash_password(PASSWORD)
        for name, role in PEOPLE.items():
            self.house.access.users.add(By("root", "system"), name, role, (), hashed)
        async with asyncio.timeout(OPENS_WITHIN_S):
            while not self._all_there():  # noqa: ASYNC110 - of three processes
                await asyncio.sleep(0.05)
        self._ready.set_result(None)
        await self._over.wait()
        for task in reversed(running):
            task.cancel()
        await asyncio.wait(running)

    def _all_there(self) -> bool:
        site = self.house.site
        met = all(unit.met for unit in self.house.dealers.units.values())
        return met and site.connected and site.rules() is True
