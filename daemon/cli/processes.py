"""The commands that run and check the processes of production."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click

from daemon import logs
from daemon.cli.common import (
    CONFIG,
    BadInputError,
    load_config,
    open_journal,
    refuse,
    run_process,
    run_until_interrupted,
)


@click.command()
@CONFIG
def edge(config_path: Path) -> None:
    """Serve the devices of this computer."""
    from daemon.config.check import device_mistakes, mac_key_mistakes
    from daemon.config.model import signing_as
    from daemon.edge.edge import Edge
    from daemon.journal.retention import kept

    config = load_config(config_path)
    refuse(device_mistakes(config, config_path) + mac_key_mistakes(config, config_path, ("edge",)))
    config = signing_as(config, config.edge)
    journal = open_journal(config.edge.journal, config.journal)

    def process() -> Coroutine[Any, Any, None]:
        one = Edge(config, journal)
        return kept(one.run(), journal, config, config.edge.name, one.retained, one.log)

    run_process(process)
    journal.close()
    logs.get(edge=config.edge.name).info("edge.stopped")


@click.command("mac-key")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def mac_key(path: Path) -> None:
    """Make a key by which an edge proves its events: PATH, for the edge and for the rules, as EDGE.key."""
    from daemon.broker.mac_keys import BadMacKey, make_mac_key

    try:
        make_mac_key(path)
    except BadMacKey as error:
        raise BadInputError(str(error)) from error
    click.echo(f"{path}: name it under [edge] mac_key_file; the rules need a copy in their mac_key_folder")


@click.command()
@CONFIG
def rules(config_path: Path) -> None:
    """Resolve the rounds of all tables."""
    from daemon.config.check import mac_key_mistakes, ruleset_mistakes
    from daemon.config.model import signing_as
    from daemon.consumer.consumer import Consumer
    from daemon.journal.retention import kept

    config = load_config(config_path)
    refuse(ruleset_mistakes(config, config_path) + mac_key_mistakes(config, config_path, ("rules",)))
    config = signing_as(config, config.rules)
    journal = open_journal(config.rules.journal, config.journal)

    def process() -> Coroutine[Any, Any, None]:
        one = Consumer(config, journal)
        return kept(one.run(), journal, config, config.rules.name, one.retained, logs.get(rules=one.name))

    run_process(process)
    journal.close()
    logs.get(rules=config.rules.name).info("rules.stopped")


def _by_line(mistakes: list[str], path: Path) -> list[str]:
    """As they stand in the file."""
    return sorted(mistakes, key=lambda mistake: int(mistake.removeprefix(f"{path}:").partition(":")[0]))


@click.command()
@CONFIG
@click.option("--probe", is_flag=True, help="also open each device and wait for it to answer; stop the edge first")
def check(config_path: Path, probe: bool) -> None:
    """Validate a configuration; name every mistake with its line.

    A device speaks with one host at a time: a probe beside a running edge finds the port in use, or takes the device
    away from it for a moment.
    """
    from daemon.config.check import (
        dealer_mistakes,
        device_mistakes,
        file_mistakes,
        jackpot_mistakes,
        mac_key_mistakes,
        probe_devices,
        ruleset_mistakes,
        summary,
        webhook_mistakes,
    )

    config = load_config(config_path)
    mistakes = device_mistakes(config, config_path) + ruleset_mistakes(config, config_path)
    mistakes += jackpot_mistakes(config, config_path)
    mistakes += dealer_mistakes(config, config_path) + webhook_mistakes(config, config_path)
    mistakes += file_mistakes(config, config_path)
    mistakes += mac_key_mistakes(config, config_path)
    refuse(_by_line(mistakes, config_path))
    click.echo(summary(config, config_path))
    if probe and not run_until_interrupted(probe_devices(config, click.echo)):
        raise click.exceptions.Exit(1)
