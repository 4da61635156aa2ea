"""A whole site on this machine: journals, `feltd forward` and `feltd ledger` as processes, three nodes, PostgreSQL.

Nodes, forwarder, ledger and PostgreSQL are killed in turns; a node and an edge lose their disks, a forwarder its
cursor, and no node answers for a while. Then journals, streams and ledger hold the same rows, in order. `make cluster`
runs it at length.
"""

import asyncio
import contextlib
import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backbone import NEEDS_NODES, NEEDS_POSTGRES, jetstream, stored
from helpers import START, at_length

from daemon.config.model import load
from daemon.jackpots.book import Seen
from daemon.jackpots.books import Books
from daemon.jackpots.ledger import contribute
from daemon.journal.rows import Entry, Row, cause_of
from daemon.journal.store import Journal
from protocols.contract.results import Resolved, Result, Settlement, encode_verdict
from protocols.contract.topics import decode_wire
from simulators.lab.site.nodes import Nodes
from simulators.lab.site.postgres import Postgres, postgres

pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")
pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")

import nats
import nats.errors
import psycopg

from daemon.site import health
from daemon.site.ledger import migrate
from daemon.site.ledger_schema import WRITER

pytestmark = [pytest.mark.system, NEEDS_NODES, NEEDS_POSTGRES]
ROOT = Path(__file__).parents[2]
TABLES = at_length(10, 50)
KILLS = 8
"""Each kind once; then it goes on for SECONDS."""
SECONDS = at_length(0, 600)
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
            f'[jackpots]\njournal = "{folder}/books.db"\n[[jackpot]]\nname = "grand"\ntables = ["t-0"]\n'
            'seed = 1000\nvisible = "1/3"\nhidden = "0.01"\n'
        )
        self.edge, self.rules = Journal(folder / "edge.db"), Journal(folder / "rules.db")
        [pool] = load(self.config).jackpot
        self.pools = Books(Journal(folder / "books.db"), {pool.name: pool.terms()}, START)
        self.lives: list[tuple[str, list[Row]]] = []
        """The rows of the edge's earlier disks, each with the name of its journal."""
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
        result = Result(f"{table}:2026-11-20:{self.rounds}", "macau.roulette", settlements=settled)
        cause = cause_of(f"e:{table}:{event.seq}/0", self.edge.name)
        self.rules.append([Entry(table, "round", "resolved", at, encode_verdict(Resolved(result)), cause=cause)], {})
        bet = Seen(f"edge/A/{table}", self.rounds, f"i-{self.rounds}", at)
        self.pools.apply(contribute(self.pools["grand"], bet, table, 1, 10 + self.rounds % 7, rounds=False), bet.id, at)
        self.pools.commit()

    def replace_disk(self) -> None:
        """Of the edge: a new journal counts from 1 again."""
        self.lives.append((self.edge.name, self.edge.after(0, 10**6)))
        self.edge.close()
        for file in self.folder.glob("edge.db*"):
            file.unlink()
        self.edge = Journal(self.folder / "edge.db")

    @property
    def events(self) -> int:
        return self.edge.head + sum(len(rows) for _, rows in self.lives)

    @property
    def results(self) -> int:
        """The rows of RES: results, and entries of the jackpot."""
        return self.rules.head + self.pools.journal.head

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
        for journal in (self.edge, self.rules, self.pools.journal):
            journal.close()


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
        of_pool = (
            b"SELECT count(*), coalesce(sum(visible + hidden), 0), coalesce(sum(players), 0) FROM feltd.jackpot_entries"
        )
        [books] = db.execute(of_pool).fetchall()
        return (*map(int, found), int(others[0]), *map(int, books))


def in_journals(site: Computer) -> tuple[int, ...]:
    """The same, by the journals."""
    pool = site.pools["grand"]
    books = (pool.number, pool.balance("visible") + pool.balance("hidden"), pool.balance("players"))
    return (site.rounds, site.rounds, *sums(site), 0, *books)


def test_journals_streams_and_ledger_are_the_same_after_everything_was_killed(
    computer: tuple[Computer, Nodes, Postgres],
) -> None:
    """In turns; some kills take the forwarder's cursor, or the node's disk, too."""
    site, nodes, database = computer
    site.start("forward")
    site.start("ledger")
    until = time.monotonic() + SECONDS
    for number in itertools.takewhile(lambda number: number < KILLS or time.monotonic() < until, itertools.count()):
        play_for(site, 60)
        match number % 8:
            case 0 | 2 | 4:
                node = number // 2 % 3
                nodes.kill(node)
                if number % 4 == 2:
                    nodes.wipe(node)
                play_for(site, 40)
                nodes.start(node)
                nodes.until_well(node)
            case 1:
                site.kill("forward")
                if number % 16 == 1:
                    (site.folder / "forward/status.json").unlink(missing_ok=True)
                play_for(site, 20)
                site.start("forward")
            case 3:
                site.kill("ledger")
                play_for(site, 20)
                site.start("ledger")
            case 5:
                database.kill()
                play_for(site, 20)
                database.start()
            case 6:
                nodes.signal(signal.SIGSTOP)
                play_for(site, 80)
                nodes.signal(signal.SIGCONT)
            case _:
                # Rows that were not sent yet would be lost with the disk.
                wait_for(lambda: asyncio.run(count(nodes, "EV")), site.events)
                site.kill("forward")
                site.replace_disk()
                play_for(site, 20)
                site.start("forward")
    wait_for_all(site, nodes, database)
    compare(site, nodes, database)


def play_for(site: Computer, rounds: int) -> None:
    for _ in range(rounds):
        site.play()
        time.sleep(PAUSE_S)


def wait_for(measure: Callable[[], int], wanted: int) -> None:
    """Until it is as many, as long as they become more: a pool's entries go one after the other."""
    most, until = -1, 0.0
    while (now := measure()) < wanted:
        if now > most:
            most, until = now, time.monotonic() + 120
        assert time.monotonic() < until, (most, wanted)
        time.sleep(0.2)


def wait_for_all(site: Computer, nodes: Nodes, database: Postgres) -> None:
    wait_for(lambda: asyncio.run(count(nodes, "EV")), site.events)
    wait_for(lambda: asyncio.run(count(nodes, "RES")), site.results)
    wait_for(lambda: position(database), site.results)


def compare(site: Computer, nodes: Nodes, database: Postgres) -> None:
    edge, *others = [(one.name, one.after(0, 10**6)) for one in (site.edge, site.rules, site.pools.journal)]
    for stream, lives in (("EV", [*site.lives, edge]), ("RES", others)):
        wires = [decode_wire(one.data) for one in asyncio.run(stored(nodes, stream))]
        for journal, rows in lives:
            for place in {row.place for row in rows}:
                told = [one for one in wires if one.journal == journal and f"/{place}/" in f"{one.source}/"]
                got = [(one.seq, bytes(one.data)) for one in told]
                assert got == [(row.seq, row.data) for row in rows if row.place == place], (stream, place)
        assert len(wires) == sum(len(rows) for _, rows in lives)
    assert in_ledger(database) == in_journals(site)


def sums(site: Computer) -> tuple[int, int]:
    """What was wagered and paid, by the journal of the rules."""
    results = [msgspec.json.decode(row.data, type=Resolved).result for row in site.rules.after(0, 10**6)]
    settled = [one for result in results for one in result.settlements]
    return sum(one.stake for one in settled), sum(one.returned for one in settled)


def test_what_the_streams_have_twice_is_in_the_ledger_once(computer: tuple[Computer, Nodes, Postgres]) -> None:
    """A lost cursor, and nodes that remember ids for a second, which `feltd doctor` refuses."""
    site, nodes, database = computer

    async def forget_ids() -> None:
        async with jetstream(nodes) as there:
            for name in ("EV", "RES"):
                settings = (await there.stream_info(name)).config
                settings.duplicate_window = 1
                await there.update_stream(settings)

    asyncio.run(forget_ids())
    for name in ("forward", "ledger"):
        site.start(name)
    play_for(site, 60)
    wait_for_all(site, nodes, database)
    site.kill("forward")
    (site.folder / "forward/status.json").unlink()
    time.sleep(2)  # the nodes' clock, which no test can move
    site.start("forward")
    wait_for(lambda: asyncio.run(count(nodes, "RES")), 2 * site.results)
    wait_for(lambda: asyncio.run(count(nodes, "EV")), 2 * site.events)
    wait_for(lambda: position(database), 2 * site.results)
    assert in_ledger(database) == in_journals(site)


def position(database: Postgres) -> int:
    with psycopg.connect(database.url()) as db:
        [(seq,)] = db.execute(b"SELECT coalesce(max(seq), 0) FROM feltd.position WHERE stream = 'RES'").fetchall()
    return int(seq)
