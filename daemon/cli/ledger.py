"""`feltd ledger`, the writer of the ledger, and `feltd report`, its figures."""

import asyncio
import csv
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from daemon import logs
from daemon.cli.common import AS_JSON, CONFIG, BadInputError, echo_json, examples, load_config, run_process

NO_DATABASE = "no {key} is named under [ledger]; docs/how-to/a-site-of-many-computers.md shows it"
NOT_INSTALLED = (
    "psycopg is not installed: pip install --require-hashes -r requirements/ledger.txt, in feltd's environment"
)


def with_database(config_path: Path, key: str) -> Any:
    """The configuration of the ledger's computer, whose library is installed. Raises BadInputError."""
    config = load_config(config_path)
    if not getattr(config.ledger, key):
        raise BadInputError(f"{config_path}: {NO_DATABASE.format(key=key)}")
    try:
        import psycopg  # noqa: F401 - whether it is installed
    except ModuleNotFoundError as error:
        raise BadInputError(NOT_INSTALLED) from error
    return config


@click.command(epilog=examples("feltd ledger -c /etc/feltd/feltd.toml"))
@CONFIG
def ledger(config_path: Path) -> None:
    """Write results, books of jackpots and faults from the backbone of the site to PostgreSQL."""
    from daemon.cli.backbone import with_backbone

    config = with_backbone(config_path)
    with_database(config_path, "database")
    from daemon.site.backbone import Connection
    from daemon.site.ledger import Ledger

    async def process() -> None:
        connection = Connection(config.backbone, config.ledger, "ledger")
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.run())
            group.create_task(Ledger(config.ledger.database, connection).run())

    run_process(process)
    logs.get(ledger="writer").info("ledger.stopped")


def _day(_context: click.Context, _parameter: click.Parameter, text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise click.BadParameter(f"{text}: write a day like 2026-11-20") from error


@click.command(
    epilog=examples("feltd report hold --by table,hour --from 2026-11-20", "feltd report jackpots --by pool,day")
)
@CONFIG
@click.argument("kind", type=click.Choice(["hold", "rounds", "faults", "jackpots"]))
@click.option(
    "--by", default="table", show_default=True, help="groups: day, hour, site, table; game; device, code; pool, kind"
)
@click.option("--from", "first", callback=_day, metavar="DAY", help="first day of play; default: yesterday")
@click.option("--to", "until", callback=_day, metavar="DAY", help="before this day; default: the day after --from")
@click.option("--csv", "as_csv", is_flag=True, help="for a spreadsheet")
@AS_JSON
def report(
    config_path: Path, kind: str, by: str, first: date | None, until: date | None, as_csv: bool, as_json: bool
) -> None:
    """Print figures of the ledger: what the house holds, how many rounds, which faults, how jackpots moved."""
    config = with_database(config_path, "reports")
    from daemon.site.reports import GROUPS, NoReport, report as asked

    groups = [name for name in by.split(",") if name]
    if unknown := [name for name in groups if name not in GROUPS]:
        raise BadInputError(f"--by {unknown[0]}: write some of {', '.join(GROUPS)}, with commas between")
    first = first or datetime.now().astimezone().date() - timedelta(days=1)
    until = until or first + timedelta(days=1)
    try:
        found = asked(config.ledger.reports, kind, groups, first, until)
    except ValueError as error:
        raise BadInputError(f"--by: {error}") from error
    except NoReport as error:
        raise click.ClickException(f"the ledger: {error}; check [ledger] reports in {config_path}") from error
    if as_json:
        echo_json({"from": first, "to": until, **{key: getattr(found, key) for key in found.__struct_fields__}})
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows(found.rows)
    else:
        lines = [found.columns, *([("-" if one is None else str(one)) for one in row] for row in found.rows)]
        widths = [max(len(line[at]) for line in lines) for at in range(len(found.columns))]
        for line in lines:
            click.echo("  ".join(one.ljust(width) for one, width in zip(line, widths, strict=True)).rstrip())
    at = (
        "nothing was read yet"
        if found.complete_until is None
        else f"complete up to {found.complete_until:%Y-%m-%d %H:%M %Z}"
    )
    click.echo(f"days {first} to before {until}; {at}", err=True)
