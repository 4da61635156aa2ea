"""`feltd jackpots`, the process, and `feltd jackpot`, which shows its books."""

from collections.abc import Coroutine
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daemon import logs
from daemon.cli.common import (
    AS_JSON,
    CONFIG,
    BadInputError,
    echo_json,
    examples,
    load_config,
    open_journal,
    refuse,
    run_process,
    time_option,
)

if TYPE_CHECKING:
    from daemon.config.model import Config, Jackpot

NO_JACKPOT = "no [[jackpot]] is configured; docs/explanation/jackpots.md shows one"


@click.command(epilog=examples("feltd jackpots -c /etc/feltd/feltd.toml"))
@CONFIG
def jackpots(config_path: Path) -> None:
    """Keep the pools of the progressive jackpots and their books."""
    from daemon.broker.mac_keys import BadMacKey
    from daemon.cli.configuration_check import jackpot_mistakes, mac_key_mistakes, ruleset_mistakes, unproven_mistakes
    from daemon.config.model import signing_as
    from daemon.jackpots.books import BadBooks
    from daemon.jackpots.process import Jackpots, NotOwner
    from daemon.journal.retention import kept
    from daemon.journal.signing import BadKey

    config = load_config(config_path)
    mistakes = ruleset_mistakes(config, config_path) + jackpot_mistakes(config, config_path)
    ours = ("jackpots",)
    refuse(mistakes + mac_key_mistakes(config, config_path, ours) + unproven_mistakes(config, config_path, ours))
    if not config.jackpot:
        raise BadInputError(f"{config_path}: {NO_JACKPOT}")
    config = signing_as(config, config.jackpots)
    journal = open_journal(config.jackpots.journal, config.journal, config)
    try:
        one = Jackpots(config, journal)
    except (BadBooks, BadKey, BadMacKey) as error:
        journal.close()
        raise BadInputError(str(error)) from error

    def process() -> Coroutine[Any, Any, None]:
        return kept(one.run(), journal, config, config.jackpots.name, one.retained.put, logs.get(jackpots=one.name))

    run_process(process, NotOwner)
    journal.close()
    logs.get(jackpots=config.jackpots.name).info("jackpots.stopped")


@click.command(epilog=examples("sudo feltd jackpot", "sudo feltd jackpot grand --wins"))
@CONFIG
@click.argument("pool", default="")
@click.option("--wins", is_flag=True, help="all wins that wait, then the last 25 that are over")
@click.option("--entries", type=click.IntRange(0, 10_000), default=0, help="so many of the last entries")
@click.option("--rounds", type=click.IntRange(0, 10_000), default=0, help="so many of the last rounds")
@click.option("--check", "all_checked", is_flag=True, help="compare all entries of the books, not only the last")
@AS_JSON
@click.option("--csv", "as_csv", is_flag=True, help="the entries of one pool for a spreadsheet, with --from and --to")
@click.option("--from", "since", callback=time_option, metavar="TIME", help="UTC unless a zone is written")
@click.option("--to", "until", callback=time_option, metavar="TIME", help="before this time")
@click.option("--bridge", "bridged", metavar="SITE", help="instead: mosquitto's bridge to a site with tables of pools")
def jackpot(
    config_path: Path,
    pool: str,
    wins: bool,
    entries: int,
    rounds: int,
    all_checked: bool,
    as_json: bool,
    as_csv: bool,
    since: datetime | None,
    until: datetime | None,
    bridged: str | None,
) -> None:
    """Show the pools: amounts, terms, wins that wait, books. Exit code 1 if the books of one do not agree."""
    import sqlite3

    from daemon.jackpots.books import BadBooks
    from daemon.jackpots.report import pool_json, pool_text, read_pools
    from daemon.jackpots.sites import bridge, sites_of

    config = load_config(config_path)
    if bridged is not None:
        if bridged not in (sites := sites_of(config)):
            known = ", ".join(sites) or "none"
            raise BadInputError(f"no jackpot in {config_path} has a table of site {bridged!r}; sites: {known}")
        click.echo(bridge(config, bridged), nl=False)
        return
    if not config.jackpot:
        raise BadInputError(f"{config_path}: {NO_JACKPOT}")
    chosen = [one for one in config.jackpot if pool in ("", one.name)]
    if not chosen:
        known = ", ".join(one.name for one in config.jackpot)
        raise BadInputError(f"no jackpot {pool!r} in {config_path}; known: {known}")
    if not as_csv and (since is not None or until is not None):
        raise BadInputError("--from and --to are of --csv; --entries and --rounds show the last ones")
    if as_csv:
        _write_csv(config, chosen, since, until)
        return
    try:
        found = read_pools(Path(config.jackpots.journal), chosen, entries, all_checked=all_checked, rounds=rounds)
    except (BadBooks, sqlite3.Error, OSError) as error:
        raise BadInputError(f"{config.jackpots.journal}: {error}; is `feltd jackpots` running here?") from error
    if as_json:
        echo_json([pool_json(one, wins=wins) for one in found])
    else:
        click.echo("\n\n".join(pool_text(one, wins=wins) for one in found) or "no pool has begun yet")
    if any(one.wrong for one in found):
        raise click.exceptions.Exit(1)


def _write_csv(config: "Config", chosen: "list[Jackpot]", since: datetime | None, until: datetime | None) -> None:
    """The entries of one pool in a period, to standard output, as they are read."""
    import sqlite3

    from daemon.jackpots.books import BadBooks, exact_units, read_entry
    from daemon.jackpots.books_table import BooksTable
    from daemon.jackpots.report import read_pools
    from daemon.journal.export import row_before, rows_between
    from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text
    from protocols.contract.jackpots import BookEntry

    if len(chosen) > 1:
        raise BadInputError(f"--csv is of one pool: name one pool of {', '.join(one.name for one in chosen)}")
    if since is not None and until is not None and until <= since:
        raise BadInputError("--to must be after --from; a day alone is its midnight, UTC")
    (one,), path = chosen, Path(config.jackpots.journal)
    try:
        found = read_pools(path, chosen, 0, all_checked=False)
        if not found:
            raise BadInputError(f"the pool {one.name} has not begun yet")
        table = BooksTable(one.name, one.currency, one.decimals, found[0].book.unit, since, until)
        click.echo(BYTE_ORDER_MARK + csv_text([table.COLUMNS]), nl=False)
        written = False
        for row in rows_between(path, one.name, since, until):
            click.echo(csv_text(table.add_row(row)), nl=False)
            written = True
        before = None if written or since is None else row_before(path, one.name, since)
        entry = BookEntry(0, 1, {}) if before is None else read_entry(before)
        click.echo(csv_text(table.end(exact_units(entry.after), entry.unit)), nl=False)
    except (BadBooks, sqlite3.Error, OSError) as error:
        raise BadInputError(f"{path}: {error}; is `feltd jackpots` running here?") from error
    if found[0].wrong:
        click.echo(f"the books of {one.name} do not agree: {found[0].wrong}", err=True)
        raise click.exceptions.Exit(1)
