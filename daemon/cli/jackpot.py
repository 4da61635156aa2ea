"""`feltd jackpots`, the process, and `feltd jackpot`, which shows what its books say."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click

from daemon import logs
from daemon.cli.common import AS_JSON, CONFIG, BadInputError, echo_json, load_config, open_journal, refuse, run_process

NO_JACKPOT = "no [[jackpot]] is configured; docs/explanation/jackpots.md shows one"


@click.command()
@CONFIG
def jackpots(config_path: Path) -> None:
    """Keep the pools of the progressive jackpots and their books."""
    from daemon.broker.mac_keys import BadMacKey
    from daemon.config.check import jackpot_mistakes, mac_key_mistakes, ruleset_mistakes, unproven_mistakes
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
    journal = open_journal(config.jackpots.journal, config.journal)
    try:
        one = Jackpots(config, journal)
    except (BadBooks, BadKey, BadMacKey) as error:
        journal.close()
        raise BadInputError(str(error)) from error

    def process() -> Coroutine[Any, Any, None]:
        return kept(one.run(), journal, config, config.jackpots.name, one.retained, logs.get(jackpots=one.name))

    run_process(process, NotOwner)
    journal.close()
    logs.get(jackpots=config.jackpots.name).info("jackpots.stopped")


@click.command()
@CONFIG
@click.argument("pool", default="")
@click.option("--wins", is_flag=True, help="also the last 25 wins that are over")
@click.option("--entries", type=click.IntRange(0, 10_000), default=0, help="so many of the last entries")
@click.option("--rounds", type=click.IntRange(0, 10_000), default=0, help="so many of the last rounds")
@click.option("--check", "all_checked", is_flag=True, help="compare all entries of the books, not only the last")
@AS_JSON
@click.option("--bridge", "bridged", metavar="SITE", help="instead: mosquitto's bridge to a site with tables of pools")
def jackpot(
    config_path: Path,
    pool: str,
    wins: bool,
    entries: int,
    rounds: int,
    all_checked: bool,
    as_json: bool,
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
