"""A table that the broker's access list does not know: the broker refuses it, and its neighbours play on."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import START
from structlog.testing import capture_logs

from daemon.broker import suspensions
from daemon.broker.connection import connect
from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.events import encode_data, type_of
from protocols.contract.topics import edge_topic
from tests.consumer.test_consumer import SPIN, rows
from tests.hostile.test_forger_broker import Site, made, pit, until
from tests.system.test_systemd import JUDGE

ADDED = """
[[table]]
name = "rou-3"
ruleset = "macau.roulette"
[table.options]
betting = "no_more_bets"
[[table.device]]
name = "d-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:3"
"""
ROUND = ["opened", "bets-closed", "resolved"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as one:
        yield one


class Pit:
    """An edge and rules with a table more than the access list, and what somebody who may read all hears of them."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.text = pit(1, folder, site.port) + ADDED
        self.heard: list[tuple[str, bytes]] = []
        self.start()

    def start(self) -> None:
        self.edge = Edge(parse(self.text), Journal(self.folder / "edge-1.db"), now=lambda: START)
        self.rules = Consumer(parse(self.text), Journal(self.folder / "rules.db"))
        self.tasks = [asyncio.create_task(process.run()) for process in (self.edge, self.rules)]

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)
        self.edge.journal.close()
        self.rules.journal.close()

    def play(self) -> None:
        """A round at each table, their events in turn."""
        for event in SPIN:
            for table in ("rou-3", "rou-1"):
                self.edge.append([Entry(table, "d-1", type_of(event), START, encode_data(event))], {})

    def verdicts(self, table: str) -> list[str]:
        return [row.type for row in rows(self.rules.journal).get(table, [])]

    def events(self, table: str) -> dict[int, dict[str, Any]]:
        """By seq the events of the table that came over the broker. Only `replay` tells that one is sent again."""
        found: dict[int, dict[str, Any]] = {}
        for topic, payload in self.heard:
            if f"/table/{table}/device/d-1/event/" in topic:
                event = msgspec.json.decode(payload) | {"replay": False}
                assert found.setdefault(event["seq"], event) == event
        return found

    def suspended(self, name: str) -> dict[str, str]:
        """What the process says of itself."""
        said = [payload for topic, payload in self.heard if topic == edge_topic("s", name, "info") and payload]
        found: dict[str, str] = msgspec.json.decode(said[-1]).get("suspended", {}) if said else {}
        return found

    def mend(self) -> None:
        self.site.grant(made(self.folder, self.text, pit(2, self.folder, self.site.port)))
        os.kill(self.site._process.pid, signal.SIGHUP)


@pytest.fixture
async def pit_(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pit]:
    monkeypatch.setattr(suspensions, "RETRY_S", 0.3)
    one = Pit(site, tmp_path)
    async with connect(site.settings(JUDGE), "") as judge:
        judge.deliver_to(lambda message: one.heard.append((message.topic, message.payload)))
        await judge.subscribe("felt/1/#")
        yield one
        await one.stop()


@pytest.mark.system
async def test_an_old_access_list_stops_the_new_table_alone(pit_: Pit) -> None:
    with capture_logs() as logs:
        await until(lambda: pit_.edge.connected and pit_.rules.connected, "connected")
        pit_.play()
        await until(lambda: pit_.verdicts("rou-1") == ROUND, "the neighbour's round is resolved")
        await until(lambda: {*pit_.suspended("edge-1")} == {*pit_.suspended("rules")} == {"rou-3"}, "both say so")
        pit_.play()
        await until(lambda: pit_.verdicts("rou-1") == ROUND * 2, "the neighbour plays on")
        assert not pit_.events("rou-3")
        assert sorted(pit_.events("rou-1")) == list(range(1, 2 * len(SPIN) + 1))
        pit_.mend()
        await until(lambda: pit_.verdicts("rou-3") == ROUND * 2, "the table recovers")
        await until(lambda: not pit_.suspended("edge-1") and not pit_.suspended("rules"), "it is suspended no longer")
        pit_.play()
        await until(lambda: pit_.verdicts("rou-3") == pit_.verdicts("rou-1") == ROUND * 3, "both play")
        state = "felt/1/s/table/rou-3/round/state"
        await until(lambda: any(topic == state for topic, _ in pit_.heard), "its round is shown")
    assert sorted(pit_.events("rou-3")) == list(range(1, 3 * len(SPIN) + 1))
    said = [line["event"] for line in logs]
    assert "broker.lost" not in said
    suspended = [line for line in logs if line["event"] == "table.suspended"]
    assert {line["table"] for line in suspended} == {"rou-3"}
    assert all("feltd acl" in line["remedy"] for line in suspended)
    assert len(suspended) == said.count("table.resumed") == 2


@pytest.mark.system
async def test_what_was_held_survives_a_restart(pit_: Pit) -> None:
    await until(lambda: pit_.edge.connected and pit_.rules.connected, "connected")
    pit_.play()
    await until(lambda: pit_.verdicts("rou-1") == ROUND, "the neighbour's round is resolved")
    await pit_.stop()
    pit_.start()
    await until(lambda: "rou-3" in pit_.suspended("edge-1"), "it is suspended in the next life, too")
    pit_.play()
    await until(lambda: pit_.verdicts("rou-1") == ROUND * 2, "the neighbour plays on")
    pit_.mend()
    await until(lambda: pit_.verdicts("rou-3") == ROUND * 2, "the table recovers")
    assert sorted(pit_.events("rou-3")) == list(range(1, 2 * len(SPIN) + 1))


@pytest.mark.system
async def test_a_list_that_grants_nothing_of_any_table_ends_no_session(pit_: Pit) -> None:
    """Own topics of the processes are granted: they say that all tables wait."""
    await until(lambda: pit_.edge.connected and pit_.rules.connected, "connected")
    granted = pit_.site._rights.read_text()
    pit_.site.grant(re.sub(r"(?m)^topic write felt/1/s/table/.*\n", "", granted))
    os.kill(pit_.site._process.pid, signal.SIGHUP)
    await asyncio.sleep(0.3)
    pit_.play()
    await until(lambda: {*pit_.suspended("edge-1")} >= {"rou-1", "rou-3"}, "all wait")
    pit_.mend()
    await until(lambda: pit_.verdicts("rou-1") == pit_.verdicts("rou-3") == ROUND, "all recover")
