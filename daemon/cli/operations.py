"""The commands for the person who installs and looks after a table's computer: doctor, init."""

from pathlib import Path

import click

from daemon.cli.common import CONFIG, load_config


@click.command()
@CONFIG
@click.option("--json", "as_json", is_flag=True, help="for programs")
def doctor(config_path: Path, as_json: bool) -> None:
    """Examine this computer: clock, disk, permissions, broker, certificates, journals, ports. Run it as root.

    Each line is ok, a warning or a problem, with its remedy. Exit code 1 if there is a problem. Services may run
    meanwhile; no device is opened (`feltd check --probe` does).
    """
    from daemon import logs
    from daemon.cli.doctor import exit_code, json_of, lines, text_of
    from daemon.cli.doctor_facts import measured
    from daemon.config.check import has_console

    config = load_config(config_path)
    logs.set_up("error")
    found = lines(measured(config, config_path, with_console=has_console(config_path)))
    click.echo(json_of(found) if as_json else text_of(found))
    raise click.exceptions.Exit(exit_code(found))
