"""The commands that list what feltd supports: devices, games, figures."""

from pathlib import Path
from typing import Any

import click

from daemon.cli.common import (
    AS_JSON,
    BadInputError,
    echo_json,
    examples,
    load_config,
    ruleset_named,
    write_files,
)


@click.command(epilog=examples("feltd devices bee_tek_shoe", "feltd devices shoe.unreadable"))
@click.argument("device", metavar="[DRIVER|CODE]", required=False)
@AS_JSON
def devices(device: str | None, as_json: bool) -> None:
    """List the supported devices with their evidence, or show the page of one: options, commands, faults, remedies.

    With the code of a fault, as in an alert or a log, show what it means and what to try.
    """
    from daemon.cli.device_pages import device_page, fault_text
    from daemon.cli.listings import device_list, device_table
    from drivers import DRIVERS

    if device is not None and "." in device and not as_json:
        said = fault_text(device)
        if not said:
            raise BadInputError(f"no device reports {device!r}; alerts explain faults of edge, rules and journals")
        click.echo(said)
        return
    if device is not None and device not in DRIVERS:
        from daemon.config.model import likely

        raise BadInputError(f"no driver {device!r}; {likely(device, DRIVERS)}")
    if as_json:
        every = device_list()
        shown = next(one for one in every if one["driver"] == device) if device else every
        echo_json(shown)
    else:
        click.echo(device_page(device) if device else device_table())


@click.command(epilog=examples("feltd cards -c /etc/feltd/feltd.toml cards"))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("-c", "--config", "config_path", type=click.Path(path_type=Path), help="only the devices of this site")
@click.option(
    "--language", type=click.Choice(["en", "pt", "zh-Hant"]), default="en", show_default=True, help="of the cards"
)
def cards(folder: Path, config_path: Path | None, language: Any) -> None:
    """Write a technician's card of each kind of device, a page to print: faults, what to try, commands.

    With a configuration: the kinds that the site has, with their tables.
    """
    from daemon.console.cards import card_page, index_page
    from drivers import DRIVERS

    places: dict[str, list[tuple[str, str]]] = {name: [] for name in DRIVERS}
    if config_path is not None:
        for table in load_config(config_path).table:
            for device in table.device:
                places[device.driver].append((f"{table.name}/{device.name}", device.url))
        places = {name: found for name, found in places.items() if found}
    pages = {f"{name}.html": card_page(name, found, language) for name, found in places.items()}
    write_files(folder, {**pages, "index.html": index_page(list(places), language)})


@click.command(epilog=examples("feltd detect"))
@AS_JSON
def detect(as_json: bool) -> None:
    """List what is plugged in, by the name that stays."""
    from daemon.cli.listings import detected, plugged

    if as_json:
        echo_json([{"link": link, "what": what.strip()} for link, what in plugged()])
    else:
        click.echo(detected())


@click.command(epilog=examples("feltd rulesets macau.baccarat"))
@click.argument("ruleset", required=False)
@AS_JSON
def rulesets(ruleset: str | None, as_json: bool) -> None:
    """List the games, or one with its bets, odds, options and articles."""
    from daemon.cli.listings import ruleset_info, ruleset_page, ruleset_table
    from rules import RULESETS

    if ruleset is None:
        if as_json:
            echo_json([ruleset_info(kind) for kind in RULESETS.values()])
        else:
            click.echo(ruleset_table())
        return
    kind = ruleset_named(ruleset)
    if as_json:
        echo_json(ruleset_info(kind))
    else:
        click.echo(ruleset_page(kind))


@click.command(epilog=examples("feltd figures macau.roulette"))
@click.argument("ruleset", required=False)
@AS_JSON
def figures(ruleset: str | None, as_json: bool) -> None:
    """Probability and house edge of every bet, beside published figures.

    They were computed through the rulesets. The laboratory computes them for other options: feltd compute-figures.
    """
    from rules.figures import figures as of_game, figures_table, games

    if ruleset is not None and ruleset not in games():
        raise BadInputError(f"no figures of {ruleset!r}; available: {', '.join(games())}")
    rows = {name: of_game(name) for name in ([ruleset] if ruleset else games())}
    if as_json:
        echo_json(rows)
    else:
        click.echo("\n\n".join(figures_table(name, one) for name, one in rows.items()))
