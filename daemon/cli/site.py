"""The commands for a running site: acl, broker, watch, record, bundle, command, forget."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from daemon import logs
from daemon.cli.common import (
    AS_JSON,
    CONFIG,
    BadInputError,
    broker_config,
    broker_trouble,
    echo_json,
    examples,
    file_trouble,
    load_config,
    option_pairs,
    refuse,
    run_until_interrupted,
)

if TYPE_CHECKING:
    from daemon.config.model import Config, Device

SOON = 20.0  # seconds of waiting without a note that the command still runs


@click.command(epilog=examples("feltd acl /etc/feltd/feltd.toml"))
@click.argument("configs", type=click.Path(path_type=Path, readable=False), nargs=-1, metavar="[CONFIG]…")
@click.option("--bridged", is_flag=True, help="for the broker of the site, to which their brokers are bridged")
def acl(configs: tuple[Path, ...], bridged: bool) -> None:
    """Print mosquitto's access list for the site: name the configuration of each of its computers.

    Without one it is that of this computer alone, /etc/feltd/feltd.toml.
    """
    from daemon.cli.access_list import BadSite, access_list

    paths = configs or (Path("/etc/feltd/feltd.toml"),)
    try:
        click.echo(access_list([(path, load_config(path)) for path in paths], bridged=bridged), nl=False)
    except BadSite as error:
        raise BadInputError(str(error)) from error


@click.command(epilog=examples("feltd broker --listen 10.0.0.5"))
@CONFIG
@click.option("--listen", default="", metavar="ADDRESS", help="of this computer  [default: every one]")
@click.option(
    "--bridge-to",
    "hosts",
    metavar="HOST[:PORT]",
    multiple=True,
    help="the bridge from this computer's broker to that of the site instead; once for each broker of the site",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8883, show_default=True)
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    default="/etc/mosquitto/feltd-tls",
    show_default=True,
    help="the folder with ca.crt and the certificate and key of the broker or bridge",
)
@click.option("--cards", is_flag=True, help="let events out that may name a card or a wager: the site runs the rules")
def broker(config_path: Path, listen: str, hosts: tuple[str, ...], port: int, certificates: Path, cards: bool) -> None:
    """Print mosquitto's configuration for other computers: a listener with mutual TLS, or a bridge."""
    from daemon.cli.broker_config import bridge, listener

    config = load_config(config_path)
    if hosts:
        click.echo(bridge(config, hosts, port, certificates, cards=cards), nl=False)
    else:
        click.echo(listener(listen, port, certificates), nl=False)


@click.command(epilog=examples("feltd watch bac-12 --since 10m --severity warning"))
@CONFIG
@click.argument("what", default="", metavar="[TABLE[/DEVICE]]")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="this table alone; may be repeated")
@click.option(
    "--since", metavar="TIME", help="30s, 10m, 2h, 1d or a time: first what the journals here hold since then"
)
@click.option(
    "--severity",
    type=click.Choice(["info", "warning", "error"]),
    default="info",
    show_default=True,
    help="show this and worse",
)
@click.option("--json", "as_json", is_flag=True, help="each event as it came, for programs")
def watch(
    config_path: Path,
    what: str,
    tables: tuple[str, ...],
    since: str | None,
    severity: Literal["info", "warning", "error"],
    as_json: bool,
) -> None:
    """Follow events and results, a line each, as they come over the broker. Ctrl-C ends it.

    Times are those of this computer. A terminal wraps long lines and shows warnings and faults in colour.
    """
    from daemon.cli.watch import BadSince, Shown, since_of, terminal_columns, watch as watching

    config = broker_config(config_path)
    table, _, device = what.partition("/")
    known = {one.name: {d.name for d in one.device} for one in config.table}
    for asked in (*([what] if what else []), *tables):
        name, _, of_table = asked.partition("/")
        if name not in known or (of_table and asked in tables):
            raise BadInputError(f"{asked!r} is not in {config_path}; tables: {', '.join(known) or 'none'}")
        if of_table and of_table not in known[name]:
            devices = ", ".join(sorted(known[name])) or "none"
            raise BadInputError(f"{asked!r} is not in {config_path}; devices of {name}: {devices}")
    if device and tables:
        raise BadInputError(f"--table: not with the device {what}")
    chosen = tuple(dict.fromkeys((*([table] if table else []), *tables)))
    on_terminal = sys.stdout.isatty() and not as_json
    try:
        from_ = since_of(since, datetime.now(UTC)) if since else None
        shown = Shown(chosen, device, severity, from_, as_json)
        run_until_interrupted(
            watching(
                config,
                shown,
                click.echo,
                lambda text: click.echo(text, err=True),
                terminal_columns if on_terminal else lambda: None,
            )
        )
    except BadSince as error:
        raise BadInputError(f"--since {error}") from error


def _device_named(config: "Config", config_path: Path, name: str) -> "Device":
    from daemon.cli.device_tools import find_device

    found = find_device(config, name)
    if found is None:
        names = ", ".join(f"{table.name}/{one.name}" for table in config.table for one in table.device) or "none"
        raise BadInputError(f"no device {name!r} in {config_path}; known: {names}")
    return found


@click.command(epilog=examples("sudo -u feltd-edge feltd record bac-12/shoe-1"))
@CONFIG
@click.argument("device", metavar="TABLE/DEVICE")
def record(config_path: Path, device: str) -> None:
    """Connect to a device and write a capture, until Ctrl-C. Stop the edge first: it holds the port."""
    from daemon.cli.configuration_check import device_mistakes
    from daemon.cli.device_tools import record as recording

    config = load_config(config_path)
    refuse(device_mistakes(config, config_path))
    found = _device_named(config, config_path, device)
    reason = run_until_interrupted(recording(found, click.echo))
    if reason:
        click.echo(f"{device}: {found.url}: {reason}", err=True)
        raise click.exceptions.Exit(1)


@click.command("bundle", epilog=examples("sudo feltd bundle"))
@CONFIG
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="[default: feltd-SITE-TIME.zip]")
def make_bundle(config_path: Path, output: Path | None) -> None:
    """One file for support, with the ends of the journals and without a secret: run it as root.

    The console's states and incidents are only in the file that its page makes.
    """
    from daemon.cli.progress import ProgressLine
    from daemon.console.pages.bundle import Given, known_logs, make

    config = load_config(config_path)
    now = datetime.now(UTC)
    path = output or Path(f"feltd-{config.site.name}-{now:%Y%m%dT%H%M%SZ}.zip")
    journals = (config.edge.journal, config.rules.journal, config.console.journal)
    try:
        with ProgressLine() as progress:
            make(path, config, Given(now, logs=known_logs(*journals)), progress)
    except OSError as error:
        raise file_trouble(error, path) from error
    click.echo(path)


def _refuse_orders(config: "Config", where: str, name: str) -> None:
    """Raises BadInputError for an order about a jackpot: only the console sends these, in a person's name."""
    from daemon.cli.device_tools import find_device
    from protocols.contract.jackpots import ORDERS

    words = where.split("/")
    pool = next((one.name for one in config.jackpot if one.name in words), "")
    if name in ORDERS or (pool and find_device(config, where) is None):
        page = f"/jackpots/{pool}" if pool else "/jackpots"
        raise BadInputError(f"{name} {where}: not by this command; a user of the console gives orders, at {page}")


@click.command(epilog=examples("feltd command rou-3/sign-1 announce text=Closed seconds=60"))
@CONFIG
@click.argument("device", metavar="TABLE/DEVICE")
@click.argument("name", metavar="COMMAND")
@click.argument("args", nargs=-1, metavar="[KEY=VALUE]…")
@click.option(
    "--wait",
    type=click.FloatRange(1, 400),
    help="seconds for the answer  [default: what the slowest device takes]",
)
@AS_JSON
def command(
    config_path: Path, device: str, name: str, args: tuple[str, ...], wait: float | None, as_json: bool
) -> None:
    """Send a command to a device and print its answer: exit code 0 only if it was done."""
    from daemon.broker.session import BrokerLost
    from daemon.cli.device_tools import command as send_command
    from protocols.contract.commands import COMMANDS, BadCommand

    config = broker_config(config_path)
    _refuse_orders(config, device, name)
    _device_named(config, config_path, device)
    values = option_pairs(args, before="", form="KEY=VALUE")
    logs.set_up("error")
    if wait is None:
        wait = COMMANDS[name].answered_within if name in COMMANDS else SOON
    if wait > SOON:
        click.echo(f"waiting for the answer, up to {wait:g} s; Ctrl-C ends the waiting alone", err=True)
    try:
        reply = run_until_interrupted(send_command(config, device, name, values, wait))
    except BadCommand as error:
        raise BadInputError(str(error)) from error
    except BrokerLost as error:
        raise broker_trouble(config_path, config, error) from error
    except TimeoutError as error:
        remedy = "it may still be done; is feltd-edge running? `feltd watch` shows its state"
        raise click.ClickException(f"no answer in {wait:g} s: {remedy}") from error
    if reply is None:  # Ctrl-C: the command may still be executed
        raise click.exceptions.Exit(1)
    if as_json:
        echo_json({"device": device, "command": name, "status": reply.status, "text": reply.text, "data": reply.data})
    else:
        said = (f"{key}={value}" for key, value in reply.data.items())
        click.echo(f"{device} {name}: {' '.join((reply.status, reply.text, *said))}".rstrip())
    sys.exit(0 if reply.status == "done" else 1)


@click.command(epilog=examples("sudo feltd forget edge-3"))
@CONFIG
@click.argument("name", metavar="EDGE")
@click.option("--although-online", is_flag=True, help="clear it although the broker still retains it as online")
@AS_JSON
def forget(config_path: Path, name: str, although_online: bool, as_json: bool) -> None:
    """Clear the retained topics of an edge or rules that were removed; until then screens show it as offline."""
    from daemon.broker.session import BrokerLost
    from daemon.cli.forget import StillThere, forget as forgetting
    from protocols.contract.topics import is_id

    config = load_config(config_path)
    if not is_id(name):
        raise BadInputError(f"{name!r} can be the name of no edge: write it as in its configuration")
    logs.set_up("error")
    try:
        cleared = run_until_interrupted(forgetting(config, name, although_online=although_online))
    except StillThere as error:
        raise BadInputError(str(error)) from error
    except BrokerLost as error:
        raise broker_trouble(config_path, config, error) from error
    except TimeoutError as error:
        raise broker_trouble(config_path, config, "no answer") from error
    if cleared is None:  # Ctrl-C
        raise click.exceptions.Exit(1)
    if as_json:
        echo_json({"name": name, "cleared": cleared})
        return
    for topic in cleared:
        click.echo(topic)
    click.echo(f"{name}: {len(cleared)} topics cleared" if cleared else f"{name}: the broker stores nothing of it")
