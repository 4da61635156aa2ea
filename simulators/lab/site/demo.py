"""`feltd demo --site`: a whole site on this machine, and at the end what each part of it holds.

The pit of the demo runs with three nodes of the backbone, PostgreSQL with the ledger, the forwarders, and a second
computer with rules for the same tables. Each process is started again when it ends: kill any of them.
"""

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table as Grid

from daemon import logs
from daemon.config.model import Config, load
from daemon.journal.reader import page_after
from daemon.journal.rows import Row
from protocols.contract.results import ENDS, decode_end
from simulators.clock import Pace
from simulators.lab.broker import Broker, tied
from simulators.lab.demo import (
    LUCK,
    PATIENCE_S,
    POOLS_S,
    Child,
    Settings,
    Stage,
    console_of,
    end_by_signal,
    judge,
    report,
    staged,
    until_signal,
)
from simulators.lab.pit import PITS, Pit
from simulators.lab.site.nodes import Nodes, no_nodes
from simulators.lab.site.postgres import Postgres, no_postgres, postgres
from simulators.lab.virtual_time import wait_for_results

__all__ = ["Holding", "missing", "site_demo"]

SECOND = "rules-2"
"""Name and folder of the second rules process."""
ARRIVE_S = 120.0
"""Seconds for the nodes to make the streams, and for the last rows to arrive in streams and ledger."""
LOOK_S = 1.0
PAGE = 5000
SUMS = "SELECT count(*), coalesce(sum(wagered), 0), coalesce(sum(paid), 0) FROM feltd.verdicts"
ENTRIES = "SELECT count(*) FROM feltd.jackpot_entries"
OTHERS = "SELECT (SELECT count(*) FROM feltd.disagreements) + (SELECT count(*) FROM feltd.jackpot_disagreements)"


def missing() -> str:
    """The missing programs of a site, each with its remedy; empty if it can run."""
    return "\n".join(filter(None, (no_nodes(), no_postgres())))


class Holding(Struct, frozen=True):
    """A count or sum by the journals, by the streams of the backbone and by the ledger; None where it is not kept."""

    what: str
    journals: int
    streams: int | None
    ledger: int | None

    @property
    def same(self) -> bool:
        """Whether all hold the same."""
        return {self.streams, self.ledger} <= {None, self.journals}


def site_demo(settings: Settings, tables: int) -> int:
    """Run it with at least so many tables; returns the exit code."""
    kinds = PITS[settings.pit][:tables]
    with tempfile.TemporaryDirectory(prefix="feltd-demo-") as name:
        folder, before = Path(name), tied()
        copies, speed = -(-tables // len(kinds)), settings.speed or 1.0
        pit = Pit(folder, settings.seed, copies=copies, kinds=kinds, speed=speed, luck=LUCK)
        with (
            Nodes(folder / "nodes", before=before) as nodes,
            postgres(before=before) as database,
            asyncio.Runner() as runner,
        ):
            return runner.run(until_signal(_play(pit, settings, nodes, database)))


def _sections(folder: Path, nodes: Nodes) -> str:
    """The configuration of a computer of the site."""
    return (
        f"[backbone]\nservers = {nodes.servers}\nmonitors = {nodes.monitors}\none_machine = true\n"
        f'[forward]\nfolder = "{folder}/forward"\ncards = true\n[replica]\nevents = "backbone"\n'
    )


def _second_computer(config: Config, folder: Path, nodes: Nodes) -> Path:
    """Write the configuration of the computer with the second rules: the tables without devices."""
    own = folder / SECOND
    own.mkdir()
    text = (
        f'[site]\nname = "{config.site.name}"\n[edge]\nname = "{SECOND}-edge"\njournal = "{own}/edge.db"\n'
        f'[mqtt]\nport = {config.mqtt.port}\nversion = "{config.mqtt.version}"\n'
        f'[rules]\nname = "{SECOND}"\njournal = "{own}/rules.db"\n'
        f'mac_key_folder = "{folder}/mac"\nmac_key_file = "{folder}/rules-mac.key"\n{_sections(own, nodes)}'
    )
    for table in config.table:
        text += f'[[table]]\nname = "{table.name}"\nruleset = "{table.ruleset}"\n[table.options]\n'
        text += "".join(f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in table.options.items())
    path = own / "feltd.toml"
    path.write_text(text, encoding="utf-8")
    return path


async def _play(pit: Pit, settings: Settings, nodes: Nodes, database: Postgres) -> int:
    from daemon.site.ledger import migrate
    from daemon.site.ledger_schema import READER, WRITER

    logs.set_up("error")
    began, pace, folder = time.monotonic(), Pace(settings.speed or 1.0), pit.directory
    await asyncio.to_thread(migrate, database.url())
    broker = Broker(folder, embedded=settings.embedded, persistence=True, before=tied())
    login, more = console_of(folder, {}, broker.port)
    more += f'{_sections(folder, nodes)}[ledger]\ndatabase = "{database.url(WRITER)}"\n'
    more += f'reports = "{database.url(READER)}"\n'
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(nodes.keep()), group.create_task(database.keep())]
        async with staged(pit, pace, broker, more) as stage:
            second = await asyncio.to_thread(_second_computer, stage.config, folder, nodes)
            places = [(name, folder / "feltd.toml") for name in ("console", "forward", "ledger")]
            children = [Child(name, path) for name, path in (*places, ("rules", second), ("forward", second))]
            await _until_streams(stage.config)
            running += [group.create_task(one.keep()) for one in children]
            people = group.create_task(stage.people.work(PATIENCE_S))
            await stage.people.until_begun([pool.name for pool in stage.config.jackpot])
            plain = Console(stderr=settings.headless, highlight=False, soft_wrap=True)
            plain.print(f"console: {login}\n{login.others}\n{len(pit.tables)} tables; Ctrl-C ends with the account")
            cut_short = await _deal(pit, pace, settings.rounds, stage)
            dealt = pit.dealt()

            def is_lost() -> bool:
                """Whether something is missing, also at a table without a game: on a busy computer it may be late."""
                return any(one.lost for one in pit.accounts(dealt, cut_short=cut_short).values())

            await wait_for_results(pit, stage.site, dealt, is_lost=is_lost)
            await asyncio.sleep(POOLS_S if stage.pools is not None else 0)
            people.cancel()
        strict = all(child.starts == 1 for child in (stage.edge, stage.rules, *children))
        holdings = await _arrived(stage.config, load(second), database)
        for task in running:
            task.cancel()
    events = sum(view.events for view in stage.site.tables.values())
    pools = judge(stage.config, pit, stage.people, calm=False)
    accounts = pit.accounts(dealt, cut_short=cut_short)
    code = report(accounts, pit, broker, events, pace.now(), time.monotonic() - began, strict, pools)
    return max(code, _print(holdings))


async def _until_streams(config: Config) -> None:
    """Make the streams; nodes that were started just now may have no leader yet."""
    import nats.errors

    from daemon.site.health import make_streams

    async with asyncio.timeout(ARRIVE_S):
        while True:
            with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
                await make_streams(config, 1)
                return
            await asyncio.sleep(LOOK_S)


async def _deal(pit: Pit, pace: Pace, rounds: int | None, stage: Stage) -> bool:
    """Deal until all rounds are played, or a signal comes. Returns whether one came."""
    dealing = asyncio.create_task(pit.deal(pace, rounds or 10**9, stage.site))
    end_by_signal(dealing)
    await asyncio.wait([dealing])
    if not dealing.cancelled():
        dealing.result()
    return dealing.cancelled()


async def _arrived(config: Config, second: Config, database: Postgres) -> list[Holding]:
    """What journals, streams and ledger hold, when streams and ledger have all rows or after ARRIVE_S."""
    loop = asyncio.get_running_loop()
    end = loop.time() + ARRIVE_S
    while True:
        found = await _holdings(config, second, database)
        if all(one.same for one in found) or loop.time() > end:
            return found
        await asyncio.sleep(LOOK_S)


async def _holdings(config: Config, second: Config, database: Postgres) -> list[Holding]:
    import nats

    paths = (config.edge.journal, second.rules.journal, config.jackpots.journal)
    events, verdicts, entries = [await asyncio.to_thread(_rows, Path(path)) for path in paths]
    results = [decode_end(row.data) for row in verdicts if row.type in ENDS]
    settled = [one for result in results for one in result.settlements]
    connection = await nats.connect(list(config.backbone.servers), max_reconnect_attempts=-1)
    try:
        jetstream = connection.jetstream(timeout=60)
        ev, res = [int((await jetstream.stream_info(name)).state.messages) for name in ("EV", "RES")]
    finally:
        await connection.close()
    [(rounds, wagered, paid)] = await asyncio.to_thread(_asked, database, SUMS)
    [(count,)] = await asyncio.to_thread(_asked, database, ENTRIES)
    [(others,)] = await asyncio.to_thread(_asked, database, OTHERS)
    return [
        Holding("events", len(events), ev, None),
        Holding("verdicts, entries of jackpots", len(verdicts) + len(entries), res, None),
        Holding("results", len(results), None, int(rounds)),
        Holding("wagered", sum(one.stake for one in settled), None, int(wagered)),
        Holding("paid", sum(one.returned for one in settled), None, int(paid)),
        Holding("entries of jackpots", len(entries), None, int(count)),
        Holding("results that differ", 0, None, int(others)),
    ]


def _rows(path: Path) -> list[Row]:
    """All rows of a journal, which may be in use; none where there is no journal."""
    rows: list[Row] = []
    if not path.exists():
        return rows
    name = page_after(path, "", 0, 1).journal
    while page := page_after(path, name, rows[-1].n if rows else 0, PAGE).rows:
        rows += page
    return rows


def _asked(database: Postgres, query: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(database.url()) as db:
        found: list[tuple[Any, ...]] = db.execute(query.encode()).fetchall()
    return found


def _print(holdings: list[Holding]) -> int:
    """Print the account of the site; returns the exit code."""
    console, grid = Console(highlight=False, soft_wrap=True), Grid(title="the site", title_justify="left")
    for head in ("", "journals", "streams", "ledger"):
        grid.add_column(head, justify="right" if head else "left")
    for one in holdings:
        values = (one.journals, one.streams, one.ledger)
        grid.add_row(one.what, *("" if value is None else str(value) for value in values))
    console.print(grid)
    good = all(one.same for one in holdings)
    console.print(f"journals, streams and ledger hold {'' if good else 'NOT '}the same")
    return 0 if good else 1
