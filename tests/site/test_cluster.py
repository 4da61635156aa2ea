"""A whole site on this machine: journals, `feltd forward` and `feltd ledger` as processes, three nodes, PostgreSQL.

Nodes, forwarder, ledger and PostgreSQL are killed in turns, and a forwarder without its cursor sends all again. Then
journals, streams and ledger hold the same rows, in order. `make cluster` runs it at length.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backbone import Nodes, jetstream, stored
from helpers import START, at_length
from postgres import Postgres, postgres

from daemon.config.model import load
from daemon.journal.rows import Entry, cause_of
from daemon.journal.store import Journal
from protocols.contract.results import Resolved, Result, Settlement, encode_verdict
from protocols.contract.topics import decode_wire

pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")
pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")

import nats
import nats.errors
import psycopg

from daemon.site import health
from daemon.site.ledger import migrate
from daemon.site.ledger_schema import WRITER

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[2]
TABLES = at_length(10, 50)
KILLS = at_length(6, 40)
PAUSE_S = at_length(0.02, 0.05)


class Computer:
    """The computer of the tables: two journals that grow, and the processes."""

    def __init__(self, folder: Path, nodes: Nodes, database: Postgres) -> None:
        self.folder, self.random = folder, random.Random(4)
        self.config = folder / "feltd.toml"
        tables = "".join(f'[[table]]\nname = "t-{number}"\n' for number in range(TABLES))
        self.config.write_text(
            f'[site]\nname = "s"\n[edge]\nname = "e"\njournal = "{folder}/edge.db"\n'
            f'[rules]\njournal = "{folder}/rules.db"\n[backbone]\nservers = {nodes.servers}\n'
            f"monitors = {nodes.monitors}\none_machine = true\n"
            f'[forward]\nfolder = "{folder}/forward"\n[ledger]\ndatabase = "{database.url(WRITER)}"\n{tables}'
        )
        self.edge, self.rules = Journal(folder / "edge.db"), Journal(folder / "rules.db")
        self.rounds = 0
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def play(self) -> None:
        """One round of a table: what the wheel says, and its result."""
        table = f"t-{self.rounds % TABLES}"
        self.rounds += 1
        at = START + timedelta(seconds=self.rounds)
        [event] = self.edge.append([Entry(table, "wheel", "ball.landed", at, b'{"pocket":"7"}')], {})
        stake = self.random.randrange(10**6)
        settled = (Settlement(1, "red", stake, self.random.choice((0, 2 * stake))),)
        result = Result(f"{table}:2026-11-20:{event.seq}", "macau.roulette", settlements=settled)
        cause = cause_of(f"e:{table}:{event.seq}/0", self.edge.name)
        self.rules.append([Entry(table, "round", "resolved", at, encode_verdict(Resolved(result)), cause=cause)], {})

    def start(self, name: str) -> None:
        program = "from daemon.cli.main import main; main()"
        command = [sys.executable, "-c", program, name, "-c", str(self.config)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.edge.close()
        self.rules.close()


@pytest.fixture
def computer(tmp_path: Path) -> Iterator[tuple[Computer, Nodes, Postgres]]:
    with Nodes(tmp_path / "nodes") as nodes, postgres() as database:
        migrate(database.url())
        one = Computer(tmp_path, nodes, database)
        asyncio.run(health.make_streams(load(one.config), 1))
        try:
            yield one, nodes, database
        finally:
            one.close()


async def count(nodes: Nodes, stream: str) -> int:
    with contextlib.suppress(nats.errors.Error):
        async with jetstream(nodes) as there:
            return int((await there.stream_info(stream)).state.messages)
    return 0


def in_ledger(database: Postgres) -> tuple[Any, ...]:
    with psycopg.connect(database.url()) as db:
        sums = b"coalesce(sum(wagered), 0), coalesce(sum(paid), 0)"
        query = b"SELECT count(*), count(DISTINCT (tbl, round)), " + sums + b" FROM feltd.verdicts"
        [found] = db.execute(query).fetchall()
        [others] = db.execute(b"SELECT count(*) FROM feltd.disagreements").fetchall()
        return (*map(int, found), int(others[0]))


def test_journals_streams_and_ledger_are_the_same_after_everything_was_killed(
    computer: tuple[Computer, Nodes, Postgres],
) -> None:
    """In turns; every second kill of the forwarder takes its cursor, too."""
    site, nodes, database = computer
    site.start("forward")
    site.start("ledger")
    for number in range(KILLS):
        play_for(site, 60)
        match number % 6:
            case 0 | 2 | 4:
                node = number // 2 % 3
                nodes.kill(node)
                play_for(site, 40)
                nodes.start(node)
                nodes.until_well(node)
            case 1:
                site.kill("forward")
                if number % 4 == 1:
                    (site.folder / "forward/status.json").unlink(missing_ok=True)
                play_for(site, 20)
                site.start("forward")
            case 3:
                site.kill("ledger")
                play_for(site, 20)
                site.start("ledger")
            case _:
                database.kill()
                play_for(site, 20)
                database.start()
    wait_for_all(site, nodes, database)
    compare(site, nodes, database)


def play_for(site: Computer, rounds: int) -> None:
    for _ in range(rounds):
        site.play()
        time.sleep(PAUSE_S)


def wait_for_all(site: Computer, nodes: Nodes, database: Postgres) -> None:
    until = time.monotonic() + 120
    while asyncio.run(count(nodes, "RES")) < site.rounds or in_ledger(database)[0] < site.rounds:
        assert time.monotonic() < until, (asyncio.run(count(nodes, "RES")), in_ledger(database), site.rounds)
        time.sleep(0.2)


def compare(site: Computer, nodes: Nodes, database: Postgres) -> None:
    for stream, journal in (("EV", site.edge), ("RES", site.rules)):
        wires = [decode_wire(one.data) for one in asyncio.run(stored(nodes, stream))]
        for table in range(TABLES):
            rows = journal.range(f"t-{table}", 1, 10**9)
            got = [(one.seq, bytes(one.data)) for one in wires if f"/table/t-{table}/" in f"{one.source}/"]
            assert got == [(row.seq, row.data) for row in rows], (stream, table)
        assert len(wires) == journal.head
    results = [msgspec.json.decode(row.data, type=Resolved).result for row in site.rules.after(0, 10**6)]
    settled = [one for result in results for one in result.settlements]
    sums = sum(one.stake for one in settled), sum(one.returned for one in settled)
    assert in_ledger(database) == (site.rounds, site.rounds, *sums, 0)
    assert os.environ.get("FELTD_NIGHTLY") is None or site.rounds > 2000
