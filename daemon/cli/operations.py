"""The commands for those who install and look after a table's computer: init, status, doctor, backup, restore."""

import contextlib
import shutil
import socket
from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from daemon import whole_files
from daemon.cli.common import (
    AS_JSON,
    CONFIG,
    BadInputError,
    echo_json,
    examples,
    file_trouble,
    give_way,
    load_config,
    option_pairs,
    refuse,
)

GROUP = "feltd"
"""The group of the services, which read the configuration."""


@click.command(epilog=examples("sudo feltd doctor"))
@CONFIG
@AS_JSON
def doctor(config_path: Path, as_json: bool) -> None:
    """Examine this computer: clock, disk, permissions, broker, certificates, journals, ports. Run it as root.

    Watchdog, logs and updates, too (docs/how-to/prepare-the-computer.md). Each line is ok, a warning or a problem,
    with its remedy. Exit code 1 if there is a problem. Services may run meanwhile; no device is opened
    (`feltd check --probe` does). Without a good configuration it examines what a first one would use. The edge
    publishes what was found last, for `feltd fleet` and the console.
    """
    from daemon import logs
    from daemon.cli import doctor_computer
    from daemon.cli.configuration_check import has_console
    from daemon.cli.doctor import Line, State, examination, exit_code, json_of, lines, text_of
    from daemon.cli.doctor_facts import measured
    from daemon.cli.first_configuration import First, configuration
    from daemon.config.model import parse
    from daemon.journal.verified import note_examined

    logs.set_up("error")
    found: list[Line] = []
    try:
        config = load_config(config_path)
        with_console = has_console(config_path)
    except BadInputError as error:
        for mistake in error.message.splitlines():
            text, _, remedy = mistake.partition("; ") if "cannot be read" in mistake else (mistake, "", "")
            found.append(
                Line("configuration", State.PROBLEM, text, remedy or "correct it; feltd check examines it alone")
            )
        config, with_console = parse(configuration(First("site", _host_name(), passwords=True))), True
    facts = measured(config, config_path, with_console=with_console)
    journals = [Path(part.journal) for part in (config.edge, config.rules, config.console, config.jackpots)]
    computer = doctor_computer.measured(journals)
    found += [*lines(facts), *doctor_computer.lines(computer)]
    note_examined(journals[0], examination(facts, found, computer.offset_ms))
    click.echo(json_of(found) if as_json else text_of(found))
    raise click.exceptions.Exit(exit_code(found))


@click.command(epilog=examples("sudo feltd status", "sudo feltd status --json"))
@CONFIG
@click.option("--all", "everything", is_flag=True, help="also other computers, by the broker's retained messages")
@AS_JSON
def status(config_path: Path, everything: bool, as_json: bool) -> None:
    """Show processes, devices, pools and all that is open, once, each with its remedy.

    It reads the broker and systemd, and the edge's journal where the broker cannot be read. Exit code 0: nothing is
    open; 1: something is; 2: the configuration cannot be read.
    """
    from daemon import logs
    from daemon.cli.configuration_check import has_console
    from daemon.cli.status import status_of, text_of
    from daemon.cli.status_facts import measured

    logs.set_up("error")
    config = load_config(config_path)
    found = status_of(measured(config, with_console=has_console(config_path)), everything=everything)
    if as_json:
        echo_json(found)
    else:
        click.echo(text_of(found))
    if not found.good:
        raise click.exceptions.Exit(1)


@click.command(epilog=examples("sudo feltd backup /srv/backup/edge-7"))
@CONFIG
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="write one encrypted file instead, with keys and passwords: for `feltd restore`",
)
@AS_JSON
def backup(config_path: Path, folder: Path, passphrase_file: Path | None, as_json: bool) -> None:
    """Copy the configuration, all journals and the console's store to FOLDER, and verify the copies. Run it as root.

    Everything may be in use. Closed files of journals that are in FOLDER already are not copied again, except for
    an encrypted backup. Keys and passwords are in an encrypted backup alone, which is read back and compared.
    """
    import tempfile

    from daemon.cli.replace import SUFFIX, BadRestore, pack, passphrase_in
    from daemon.journal.backup import BadBackup
    from daemon.journal.findings import report_text
    from daemon.journal.sealed import BadSealed

    give_way()
    config = load_config(config_path)
    try:
        if passphrase_file is None:
            reports, others = _copied(config, config_path, folder)
        else:
            passphrase = passphrase_in(passphrase_file)
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / f"{config.site.name}-{config.edge.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{SUFFIX}"
            # In a folder beside the journals, for root alone: no unencrypted copy may be on the stick.
            with tempfile.TemporaryDirectory(dir=Path(config.edge.journal).parent, prefix=".backup-") as work:
                reports, _ = _copied(config, config_path, Path(work))
                rows = {Path(name).parent.name: report.rows for name, report in reports.items()}
                pack(Path(work), config, config_path, target, passphrase, rows)
            others = [str(target)]
    except (BadBackup, BadRestore, BadSealed) as error:
        raise BadInputError(str(error)) from error
    except OSError as error:
        raise file_trouble(error, folder) from error
    if as_json:
        echo_json({"journals": reports, "files": others})
    else:
        click.echo("\n".join([report_text(path, report) for path, report in reports.items()] + others))
    if not all(report.good for report in reports.values()):
        raise click.exceptions.Exit(1)


def _copied(config: Any, config_path: Path, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Copy all to `folder`; returns the reports of the copied journals, and the other files. Raises BadBackup."""
    from daemon.cli.configuration_check import has_console
    from daemon.cli.progress import ProgressLine
    from daemon.journal.backup import back_up_file, back_up_journal
    from daemon.journal.verified import note_verified
    from daemon.journal.verify import verify

    copy_path = folder / config_path.name
    if copy_path.exists() and copy_path.samefile(config_path):
        raise BadInputError(f"{folder}: the configuration itself is in this folder; name another one for the copies")
    parts: dict[str, Any] = {"edge": config.edge, "rules": config.rules}
    if has_console(config_path):
        parts["console"] = config.console
    if config.jackpot:
        parts["jackpots"] = config.jackpots
    reports: dict[str, Any] = {}
    others: list[str] = []
    with ProgressLine() as progress:
        for name, part in parts.items():
            journal, copy = Path(part.journal), folder / name / Path(part.journal).name
            if not journal.exists():
                click.echo(f"{journal}: is not there yet", err=True)
                continue
            back_up_journal(journal, copy.parent, progress.of(f"copy {journal}"))
            report = reports[str(copy)] = verify(copy, progress=progress.of(f"verify {copy}"))
            if report.good:
                note_verified(journal, report.rows, datetime.now(UTC))
        store = Path(config.console.store)
        if "console" in parts and store.exists():
            back_up_file(store, folder / "console", progress.of(f"copy {store}"))
            others.append(str(folder / "console" / store.name))
    whole_files.write(copy_path, config_path.read_bytes(), 0o644)
    return reports, [*others, str(copy_path)]


@click.command(epilog=examples("sudo feltd restore /mnt/edge-7.feltd-backup --passphrase-file words"))
@CONFIG
@click.argument("backup_path", metavar="BACKUP", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--passphrase-file", type=click.Path(path_type=Path, dir_okay=False), required=True)
def restore(config_path: Path, backup_path: Path, passphrase_file: Path) -> None:
    """Make this computer the one of an encrypted backup, and list what was lost. Run it as root, before the services.

    Identity, keys, passwords, users and the books of jackpots go on; other journals begin anew, and those of the
    backup are kept as evidence. Nothing is written before the whole backup was read and verified.
    """
    from daemon.cli.replace import BadRestore, passphrase_in, restore as restoring
    from daemon.config.model import BadConfig
    from daemon.journal.sealed import BadSealed

    try:
        done = restoring(backup_path, passphrase_in(passphrase_file), config_path)
    except (BadRestore, BadSealed, BadConfig) as error:
        raise BadInputError(f"nothing is restored: {error}") from error
    except OSError as error:
        raise file_trouble(error, backup_path) from error
    click.echo("\n".join(done.placed))
    click.echo("\nLost, or to be done by people:")
    click.echo("\n".join(f"- {line}" for line in done.lost))
    click.echo(
        "\nNext: systemctl restart mosquitto; systemctl start feltd-edge feltd-rules feltd-console; feltd doctor"
    )


@click.command(
    epilog=examples("sudo feltd init", "feltd init -c feltd.toml --site lisboa --table rou-3=macau.roulette")
)
@CONFIG
@click.option("--site", help="name of the casino; with it nothing is asked")
@click.option("--edge", help="name of this computer  [default: its host name]")
@click.option("--table", "tables", multiple=True, metavar="TABLE=RULESET", help="a table and its game; may be repeated")
@click.option("--option", "options", multiple=True, metavar="TABLE.NAME=VALUE", help="of the table's game; repeatable")
@click.option(
    "--device", "devices", multiple=True, metavar="TABLE/DEVICE=DRIVER@URL", help="a device and its link; repeatable"
)
def init(
    config_path: Path,
    site: str | None,
    edge: str | None,
    tables: tuple[str, ...],
    options: tuple[str, ...],
    devices: tuple[str, ...],
) -> None:
    """Write the first configuration, from answers and from what is plugged in.

    With --site nothing is asked and the options have all values. A file that exists is never changed.
    """
    from daemon.broker.mac_keys import BadMacKey, make_mac_keys
    from daemon.cli.first_configuration import PASSWORDS, First, configuration

    if config_path.exists():
        raise BadInputError(f"{config_path}: is there already; edit it, or move it away")
    passwords = config_path.parent == Path(PASSWORDS).parent
    if site is None:
        if edge or tables or options or devices:
            raise BadInputError("--edge, --table, --option and --device need --site; without options all is asked")
        first = _asked(passwords=passwords)
    else:
        first = First(site, edge or _host_name(), _given(tables, options, devices), passwords)
    text = configuration(first)
    _check(text, config_path)
    try:
        # Keys before the configuration, so that it never exists without them; after a kill the next init makes missing
        # ones.
        config_path.parent.mkdir(parents=True, exist_ok=True)
        make_mac_keys(config_path.parent, first.edge, first.site)
    except OSError as error:
        raise file_trouble(error, config_path) from error
    except BadMacKey as error:
        raise BadInputError(str(error)) from error
    _write(config_path, text)
    click.echo(f"{config_path}: written. Next:")
    click.echo(f"  feltd acl {config_path} > feltd.acl && install -m 644 feltd.acl /etc/mosquitto/")
    click.echo("  systemctl restart mosquitto")
    click.echo("  systemctl start feltd-edge feltd-rules feltd-console")
    click.echo("  feltd doctor")


def _host_name() -> str:
    return socket.gethostname().partition(".")[0].lower()


def _given(tables: tuple[str, ...], options: tuple[str, ...], devices: tuple[str, ...]) -> Any:
    """The tables of the command line. Raises BadInputError."""
    from daemon.cli.first_configuration import FirstTable
    from daemon.table_requests import Device

    games = option_pairs(tables, before="--table ", form="TABLE=RULESET; without a game TABLE=")
    chosen: dict[str, dict[str, str]] = {name: {} for name in games}
    plugged: dict[str, list[Device]] = {name: [] for name in games}
    for place, value in option_pairs(options, form="TABLE.NAME=VALUE").items():
        table, _, name = place.partition(".")
        _known(f"--option {place}", table, games)
        chosen[table][name] = value
    for place, value in option_pairs(devices, before="--device ", form="TABLE/DEVICE=DRIVER@URL").items():
        table, _, name = place.partition("/")
        _known(f"--device {place}", table, games)
        driver, _, url = value.partition("@")
        plugged[table].append(Device(name, driver, url))
    return tuple(FirstTable(name, game, chosen[name], tuple(plugged[name])) for name, game in games.items())


def _known(where: str, table: str, games: dict[str, str]) -> None:
    if table not in games:
        raise BadInputError(f"{where}: no table {table!r}; name it by --table {table}=RULESET")


def _name_typed(text: str, taken: frozenset[str] = frozenset()) -> str:
    """A name as it was typed. Raises UsageError, after which click asks again."""
    from daemon.config.model import NAMES
    from protocols.contract.topics import is_id

    if not is_id(text):
        raise click.UsageError(f"{text!r}: {NAMES}")
    if text in taken:
        raise click.UsageError(f"{text!r} is taken at this table")
    return text


def _asked(*, passwords: bool) -> Any:
    """All answers of a person: names, then a table for each link that is plugged in."""
    from daemon.cli.first_configuration import First, FirstTable
    from daemon.cli.listings import plugged
    from daemon.table_requests import Device

    site = click.prompt("Name of the casino (small letters, digits, hyphens)", value_proc=_name_typed)
    edge = click.prompt("Name of this computer", default=_host_name(), value_proc=_name_typed)
    games: dict[str, str] = {}
    devices: dict[str, list[Device]] = {}
    links = plugged()
    plural = "1 link is" if len(links) == 1 else f"{len(links)} links are"
    click.echo(f"{plural} plugged in." if links else "Nothing is plugged in.")
    for url, what in links:
        click.echo(f"\n{url}  {what}")
        _ask_of_device(url, games, devices)
    asked = "\nLink of a further device, for example tcp://10.0.0.5:4001 (empty: no more)"
    while url := click.prompt(asked, default="", show_default=False, value_proc=_link_typed):
        _ask_of_device(url, games, devices)
    tables = tuple(FirstTable(name, game, {}, tuple(devices[name])) for name, game in games.items())
    return First(site, edge, tables, passwords)


def _link_typed(text: str) -> str:
    """A link as it was typed. Raises UsageError, after which click asks again."""
    from daemon.config.model import Device
    from daemon.edge.links.link import BadUrl, check_url

    if not text:
        return text
    url = Device(name="device", driver="", url=text).url
    try:
        check_url(url)
    except BadUrl as error:
        raise click.UsageError(str(error)) from error
    return url


def _known_typed(text: str, what: str, known: Collection[str]) -> str:
    """One of `known`, as it was typed. Raises UsageError, after which click asks again."""
    from daemon.config.model import likely

    if text not in known:
        raise click.UsageError(f"no {what} {text!r}; {likely(text, known)}")
    return text


def _ask_of_device(url: str, games: dict[str, str], devices: dict[str, Any]) -> None:
    """Ask for table, game, driver and name of the device at a link, and add it to `devices`."""
    from daemon.table_requests import Device
    from drivers import DRIVERS
    from rules import RULESETS

    asked = "  Its table, for example rou-1 (empty: leave it out)"
    table = click.prompt(asked, default="", show_default=False, value_proc=lambda text: text and _name_typed(text))
    if not table:
        return
    if table not in games:
        games[table] = click.prompt(
            "  Game of the table (feltd rulesets lists them; empty: events only)",
            default="",
            show_default=False,
            value_proc=lambda text: text and _known_typed(text, "ruleset", RULESETS),
        )
    driver = click.prompt(
        "  Driver (feltd devices lists them)",
        default="hid_shoe" if url.startswith("usb:") else None,
        value_proc=lambda text: _known_typed(text, "driver", DRIVERS),
    )
    here = devices.setdefault(table, [])
    taken = frozenset({"round", *(one.name for one in here)})
    default = f"device-{len(here) + 1}"
    name = click.prompt("  Name of the device", default=default, value_proc=partial(_name_typed, taken=taken))
    here.append(Device(name, driver, url))


def _check(text: str, path: Path) -> None:
    """Refuse what `feltd check` would refuse, before anything is written. Raises BadInputError."""
    import tempfile

    from daemon.cli.configuration_check import device_mistakes, ruleset_mistakes

    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        try:
            draft.write_text(text, encoding="utf-8")
            config = load_config(draft)
            refuse(device_mistakes(config, draft) + ruleset_mistakes(config, draft))
        except UnicodeEncodeError as error:
            raise BadInputError("nothing is written: the options are no UTF-8 text") from error
        except BadInputError as error:
            raise BadInputError(f"nothing is written:\n{error.message.replace(str(draft), path.name)}") from error


def _write(path: Path, text: str) -> None:
    """Write a file for its owner and the group of the services, if that exists. Raises BadInputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = whole_files.begin(path, 0o640)
        beside.write_text(text, encoding="utf-8")
        with contextlib.suppress(LookupError):
            shutil.chown(beside, group=GROUP)
        whole_files.finish(path, new=True)
    except OSError as error:
        raise file_trouble(error, path) from error
