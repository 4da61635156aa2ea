"""Figures of a whole site on one machine, for docs/explanation/scale.md.

    PYTHONPATH=.:tests/support python -m site_figures forward   # 500 tables: from a journal into the ledger
    PYTHONPATH=.:tests/support python -m site_figures reports   # reports over 10^7 rounds

Both take minutes and several GB below /tmp, which they remove. The load of the machine is printed with the figures.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psycopg

from daemon.config.model import load
from daemon.journal.rows import Entry, cause_of
from daemon.journal.store import Journal
from daemon.site import health
from daemon.site.ledger import Store, migrate
from daemon.site.ledger_schema import READER, WRITER
from daemon.site.reports import report
from protocols.contract.results import Resolved, Result, Settlement, encode_verdict
from simulators.lab.site.nodes import Nodes
from simulators.lab.site.postgres import Postgres, postgres

TABLES, EVENTS_A_SECOND, SECONDS = 500, 2, 60
EVENTS_A_ROUND = 120
ROUNDS, DAYS = 10_005_000, 30
FIRST = date(2026, 10, 1)
TURN_S = 0.01


def say(*words: object) -> None:
    print(*words, f"(load {os.getloadavg()[0]:.1f})", flush=True)  # noqa: T201 - what it is for


def play(edge: Journal, rules: Journal) -> tuple[int, int]:
    """Events and results at the pace of a full house, each written at its time. Returns how many."""
    began, events, rounds = time.monotonic(), 0, 0
    while (now := time.monotonic() - began) < SECONDS:
        due = int(now * TABLES * EVENTS_A_SECOND) - events
        at = datetime.now(UTC)
        names = [f"t-{(events + number) % TABLES}" for number in range(due)]
        rows = edge.append([Entry(name, "wheel", "ball.landed", at, b'{"pocket":"7"}') for name in names], {})
        ends = [row for number, row in enumerate(rows, events) if number % EVENTS_A_ROUND == 0]
        verdicts = []
        for row in ends:
            result = Result(
                f"{row.place}:{at.date()}:{row.seq}", "macau.roulette", settlements=(Settlement(1, "red", 10, 20),)
            )
            cause = cause_of(f"e:{row.place}:{row.seq}/0", edge.name)
            verdicts.append(Entry(row.place, "round", "resolved", at, encode_verdict(Resolved(result)), cause=cause))
        rules.append(verdicts, {})
        events, rounds = events + due, rounds + len(ends)
        time.sleep(max(0.0, TURN_S - (time.monotonic() - began - now)))
    return events, rounds


def forward(folder: Path) -> None:
    """Two processes beside the publisher, three nodes that sync, PostgreSQL; the time of each commit by PostgreSQL."""
    with Nodes(folder / "nodes") as nodes, postgres(["--track_commit_timestamp=on"]) as database:
        migrate(database.url())
        config = folder / "feltd.toml"
        config.write_text(
            f'[site]\nname = "s"\n[edge]\nname = "e"\njournal = "{folder}/edge.db"\n'
            f'[rules]\njournal = "{folder}/rules.db"\n'
            f"[backbone]\nservers = {nodes.servers}\nmonitors = {nodes.monitors}\none_machine = true\n"
            f'[forward]\nfolder = "{folder}/forward"\n[ledger]\ndatabase = "{database.url(WRITER)}"\n'
            + "".join(f'[[table]]\nname = "t-{number}"\n' for number in range(TABLES))
        )
        asyncio.run(health.make_streams(load(config), 1))
        program = "from daemon.cli.main import main; main()"
        edge, rules = Journal(folder / "edge.db"), Journal(folder / "rules.db")
        running = [
            subprocess.Popen([sys.executable, "-c", program, name, "-c", str(config)]) for name in ("forward", "ledger")
        ]
        try:
            time.sleep(5)
            before = os.times()
            events, rounds = play(edge, rules)
            after = os.times()
            say(
                f"{events} events, {rounds} results in {SECONDS} s;",
                f"the publisher took {after.user - before.user:.0f} s of CPU",
            )
            count_all(database, rounds)
        finally:
            for process in running:
                process.terminate()
                process.wait(60)
            edge.close()
            rules.close()


def count_all(database: Postgres, rounds: int) -> None:
    until = time.monotonic() + 120
    with psycopg.connect(database.url(), autocommit=True) as db:
        while db.execute("SELECT count(*) FROM feltd.verdicts").fetchall() != [(rounds,)]:
            assert time.monotonic() < until, "not all results are in the ledger"
            time.sleep(0.5)
        late = "extract(epoch FROM pg_xact_commit_timestamp(xmin) - ended_at)"
        quantiles = f"percentile_disc(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY {late})"
        [(found,)] = db.execute(f"SELECT {quantiles} FROM feltd.verdicts".encode()).fetchall()
    say("from the journal's row to the ledger's commit, s, p50 p99 max:", *(f"{one:.2f}" for one in found))


def reports() -> None:
    """Rows as the writer makes them, of roulette, one in twenty void, half of them with stakes."""
    with postgres(["--shared_buffers=1GB", "--max_wal_size=4GB"]) as database:
        migrate(database.url())
        a_day = ROUNDS // DAYS
        with psycopg.connect(database.url(), autocommit=True) as db:
            began = time.monotonic()
            for day in days():
                db.execute("SELECT feltd.make_days(%s, %s)", (day, day))
                db.execute(
                    "INSERT INTO feltd.verdicts SELECT %(day)s, 's', 't-' || n %% 500, 'J', n, 0,"
                    " 't-' || n %% 500 || ':' || %(day)s || ':' || n, 'resolved', 'macau.' || n %% 5, n %% 20 = 0,"
                    " %(day)s + make_interval(secs => n * 86400.0 / %(count)s), CASE WHEN n %% 2 = 0 THEN n END,"
                    " CASE WHEN n %% 2 = 0 THEN n / 2 END, '{}', '\\x00' FROM generate_series(1, %(count)s) n",
                    {"day": day, "count": a_day},
                )
            say(f"{a_day * DAYS} rounds in {time.monotonic() - began:.0f} s")
            db.execute("VACUUM ANALYZE feltd.verdicts")
            [(size,)] = db.execute("SELECT pg_size_pretty(pg_database_size('feltd'))").fetchall()
        store = Store(database.url(WRITER))
        ask(database, 1, "open")
        began = time.monotonic()
        store.roll_up(FIRST + timedelta(days=DAYS + 3))
        say(f"{size}; sums of {DAYS} days made in {time.monotonic() - began:.0f} s")
        store.close()
        ask(database, 1, "closed")
        ask(database, DAYS, "closed")


def days() -> Iterator[date]:
    return (FIRST + timedelta(days=number) for number in range(DAYS))


def ask(database: Postgres, count: int, state: str) -> None:
    """The median of five for each report."""
    for kind, by in (("hold", ["table", "hour"]), ("hold", ["game", "day"]), ("rounds", ["table"])):
        took = []
        for _ in range(5):
            began = time.monotonic()
            found = report(database.url(READER), kind, by, FIRST, FIRST + timedelta(days=count))
            took.append(time.monotonic() - began)
        say(f"{kind} by {','.join(by)}, {count} {state} days: {sorted(took)[2]:.2f} s, {len(found.rows)} rows")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        reports() if sys.argv[1:] == ["reports"] else forward(Path(name))
