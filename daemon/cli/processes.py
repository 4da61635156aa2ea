"""The commands that run and check the processes of production."""

import asyncio
from pathlib import Path
from typing import Any

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
    run_until_interrupted,
)

RELOADABLE = ("edge", "rules")
"""The processes that use a changed configuration without a restart."""


@click.command(epilog=examples("feltd edge -c /etc/feltd/feltd.toml"))
@CONFIG
def edge(config_path: Path) -> None:
    """Serve the devices of this computer."""
    from daemon.cli.configuration_check import device_mistakes, mac_key_mistakes
    from daemon.cli.granted import old_list
    from daemon.config.model import signing_as
    from daemon.edge.edge import Edge
    from daemon.journal.retention import kept
    from daemon.reload import Reload, note_start, run_until

    def mistakes(config: Any, path: Path) -> list[str]:
        return device_mistakes(config, path) + mac_key_mistakes(config, path, ("edge",))

    config = load_config(config_path)
    refuse(mistakes(config, config_path))
    signed = signing_as(config, config.edge)
    journal = open_journal(config.edge.journal, signed.journal, config)
    note_start(config, "edge")
    reload = Reload(config_path, "edge", mistakes, logs.get(edge=config.edge.name), old_list)

    async def served(devices: asyncio.TaskGroup) -> None:
        one = Edge(config, journal)

        async def change() -> Any:
            new = await reload.next(one.config, one.busy)
            await one.release(new)
            return new

        while True:
            one.supervise(devices)
            signing = signing_as(one.config, config.edge)
            serving = kept(one.serve(), journal, signing, one.name, one.retained.put, logs.get(edge=one.name))
            one = one.followed_by(await run_until(serving, change()))

    async def process() -> None:
        async with asyncio.TaskGroup() as group:  # they end together
            group.create_task(served(group))

    run_process(process, reload=reload.ask)
    journal.close()
    logs.get(edge=config.edge.name).info("edge.stopped")


@click.command("mac-key", epilog=examples("sudo feltd mac-key /etc/feltd/edge-mac.key"))
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
def mac_key(path: Path) -> None:
    """Make a key for the MACs of an edge's events: PATH, for the edge and for the rules, as EDGE.key."""
    from daemon.broker.mac_keys import BadMacKey, make_mac_key

    try:
        make_mac_key(path)
    except BadMacKey as error:
        raise BadInputError(str(error)) from error
    click.echo(f"{path}: name it under [edge] mac_key_file; the rules need a copy in their mac_key_folder")


@click.command("mac-keys", epilog=examples("sudo feltd mac-keys"))
@CONFIG
def mac_keys(config_path: Path) -> None:
    """Make the MAC keys that are missing beside a configuration, for events and verdicts.

    What is there is kept, but a copy that differs from its key is replaced. The rules need the keys of all edges: copy
    those of other computers into the folder mac.
    """
    from daemon.broker.mac_keys import BadMacKey, make_mac_keys

    config = load_config(config_path)
    try:
        made = make_mac_keys(config_path.parent, config.edge.name, config.site.name)
    except BadMacKey as error:
        raise BadInputError(str(error)) from error
    click.echo("\n".join(f"{path}: made" for path in made) or "all keys are there")


@click.command(epilog=examples("feltd rules -c /etc/feltd/feltd.toml"))
@CONFIG
def rules(config_path: Path) -> None:
    """Resolve the rounds of all tables."""
    from daemon.cli.backbone import with_backbone
    from daemon.cli.configuration_check import mac_key_mistakes, ruleset_mistakes, unproven_mistakes
    from daemon.cli.granted import old_list
    from daemon.config.model import signing_as
    from daemon.consumer.consumer import Consumer
    from daemon.journal.retention import kept
    from daemon.reload import Reload, note_start, run_until

    def mistakes(config: Any, path: Path) -> list[str]:
        found = ruleset_mistakes(config, path) + mac_key_mistakes(config, path, ("rules",))
        return found + unproven_mistakes(config, path, ("rules",))

    config = load_config(config_path)
    if config.replica.events == "backbone":
        with_backbone(config_path)
    refuse(mistakes(config, config_path))
    journal = open_journal(config.rules.journal, signing_as(config, config.rules).journal, config)
    note_start(config, "rules")
    log = logs.get(rules=config.rules.name)
    reload = Reload(config_path, "rules", mistakes, log, old_list)

    async def process() -> None:
        if config.replica.events == "broker":
            await served(None)
            return
        from daemon.site.backbone import Connection
        from daemon.site.reader import Subscriptions

        connection = Connection(config.backbone, config.replica, config.rules.name)
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.run())
            group.create_task(served(Subscriptions(connection, config.site.name)))

    async def served(streams: Any) -> None:
        now = config
        while True:
            one = Consumer(now, journal, streams=streams)
            serving = kept(one.run(), journal, signing_as(now, now.rules), one.name, one.retained.put, log)
            now = await run_until(serving, reload.next(now, one.busy))

    run_process(process, reload=reload.ask)
    journal.close()
    logs.get(rules=config.rules.name).info("rules.stopped")


@click.command("reload", epilog=examples("sudo feltd reload"))
@CONFIG
def reload_running(config_path: Path) -> None:
    """Let the running edge and rules use the changed configuration.

    Every mistake is named here, and then nothing changes. A change of a table waits until no round is open there.
    """
    from daemon.broker.suspensions import LIST_REMEDY
    from daemon.cli.granted import old_list
    from daemon.reload import start_mistakes

    config = _good(config_path)
    for line in old_list(config, config_path):
        click.echo(f"warning: {line}: {LIST_REMEDY}", err=True)
    running = [part for part in RELOADABLE if _is_active(f"feltd-{part}")]
    if not running:
        raise click.ClickException(
            "neither feltd-edge nor feltd-rules runs here: systemctl start feltd-edge feltd-rules"
        )
    refuse([mistake for part in running for mistake in start_mistakes(config, config_path, part)])
    units = [f"feltd-{part}" for part in running]
    if _systemctl("reload", *units) != 0:
        raise click.ClickException(f"journalctl -n 20 -u {' -u '.join(units)} shows why")
    click.echo(f"{config_path}: given to {' and '.join(units)}")


NO_SYSTEMD = "systemd runs no service here; send SIGHUP to the processes that you started"


def _is_active(unit: str) -> bool:
    """Whether the systemd service runs. Raises BadInputError where there is no systemd."""
    asked = _systemctl("is-active", unit, quiet=True)
    if asked == 1:  # systemctl cannot reach systemd; a stopped unit gives 3
        raise BadInputError(NO_SYSTEMD)
    return asked == 0


def _systemctl(*words: str, quiet: bool = False) -> int:
    """The exit code of systemctl. Raises BadInputError where it is not installed."""
    import subprocess

    out = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.run(["systemctl", *words], check=False, stdout=out, stderr=out).returncode  # noqa: S603, S607 - root's own
    except FileNotFoundError as error:
        raise BadInputError(NO_SYSTEMD) from error


def _by_line(mistakes: list[str], path: Path) -> list[str]:
    """Mistakes in the order of the file."""
    return sorted(mistakes, key=lambda mistake: int(mistake.removeprefix(f"{path}:").partition(":")[0]))


@click.command(epilog=examples("feltd check", "sudo feltd check --probe"))
@CONFIG
@click.option("--probe", is_flag=True, help="also open each device and wait for it to answer; stop the edge first")
@click.option(
    "--running",
    type=click.Choice(RELOADABLE),
    help="also refuse changes that this process reads at its start alone: for a reload",
)
@AS_JSON
def check(config_path: Path, probe: bool, running: str | None, as_json: bool) -> None:
    """Validate a configuration; name every mistake with its line.

    A device serves one host at a time: a probe while the edge runs finds the port in use, or takes the device
    from the edge for a moment.
    """
    from daemon.broker.suspensions import LIST_REMEDY
    from daemon.cli.configuration_check import facts, probe_devices, summary
    from daemon.cli.granted import old_list
    from daemon.config.devices_and_games import missing
    from daemon.reload import start_mistakes

    try:
        config = _good(config_path)
        if running is not None:
            refuse(start_mistakes(config, config_path, running))
    except BadInputError as error:
        if not as_json:
            raise
        echo_json({"good": False, "mistakes": error.message.splitlines()})
        raise click.exceptions.Exit(BadInputError.exit_code) from error
    unlisted, untold = old_list(config, config_path), missing(config, config_path)
    if not as_json:
        click.echo(summary(config, config_path))
        for line in untold:
            click.echo(f"warning: {line}", err=True)
        for line in unlisted:
            click.echo(f"warning: {line}: {LIST_REMEDY}", err=True)
    probed = run_until_interrupted(probe_devices(config)) if probe else []
    if as_json:
        echo_json(
            {"good": True, "mistakes": [], "unlisted": unlisted, "missing": untold, **facts(config), "probed": probed}
        )
    else:
        for one in probed or []:
            click.echo(f"{one.device}: {'answers' if one.answers else 'FAILS'}: {one.text}")
    if probed is None or not all(one.answers for one in probed):
        raise click.exceptions.Exit(1)


def _good(config_path: Path) -> Any:
    """The configuration without a mistake. Raises BadInputError with all of them."""
    config = load_config(config_path)
    refuse(mistakes_of(config, config_path))
    return config


def mistakes_of(config: Any, config_path: Path) -> list[str]:
    """All mistakes of a configuration that can be read, each as "file:line: text"."""
    from daemon.cli import configuration_check as checks

    mistakes = checks.device_mistakes(config, config_path) + checks.ruleset_mistakes(config, config_path)
    mistakes += checks.jackpot_mistakes(config, config_path)
    mistakes += checks.dealer_mistakes(config, config_path) + checks.webhook_mistakes(config, config_path)
    mistakes += checks.file_mistakes(config, config_path)
    mistakes += checks.mac_key_mistakes(config, config_path) + checks.unproven_mistakes(config, config_path)
    mistakes += checks.order_key_mistakes(config, config_path)
    return _by_line(mistakes, config_path)
