"""`feltd table` and `feltd config`: add, change or remove a table as a whole; each version is kept."""

import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from daemon.cli.common import (
    AS_JSON,
    CONFIG,
    BadInputError,
    CommandGroup,
    echo_json,
    examples,
    file_trouble,
    load_config,
    option_pairs,
)
from daemon.cli.config_change import CannotChange, Change, Changes, difference
from daemon.config.model import BadConfig, Config

WHY = click.option("--why", required=True, help="the reason, which the log of versions keeps")
WHO = click.option("--who", default="", help="who wants it  [default: the person who called sudo]")
YES = click.option("--yes", is_flag=True, help="do not ask before the change is made")
OPTIONS = click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="of the game; may be repeated")
DEVICES = click.option(
    "--device", "devices", multiple=True, metavar="DEVICE=DRIVER@URL", help="a device and its link; may be repeated"
)
PROBE = click.option("--probe", is_flag=True, help="open the named devices first, and refuse where one does not answer")


@click.group("table", cls=CommandGroup, epilog=examples("sudo feltd table add rou-4=macau.roulette --why opening"))
def table() -> None:
    """Add, change or remove a table: file, access list, users and processes together, or nothing.

    The difference is shown before it is made. Other tables play on; a table with an open round changes after it.
    """


@table.command("add", epilog=examples("sudo feltd table add rou-4=macau.roulette --why opening"))
@CONFIG
@click.argument("table_name", metavar="TABLE[=RULESET]")
@click.option("--area", default="", help="of the pit, on the console's pages")
@OPTIONS
@DEVICES
@PROBE
@WHY
@WHO
@YES
def add(config_path: Path, table_name: str, area: str, **given: Any) -> None:
    """Add a table. Without --device it names what is plugged in and belongs to no table."""
    from daemon.cli.first_configuration import FirstTable
    from daemon.cli.table_edit import add_table

    name, _, ruleset = table_name.partition("=")
    _named(name)
    devices = _devices(given["devices"])
    if not devices:
        _free_ports(load_config(config_path))
    one = FirstTable(name, ruleset, option_pairs(given["options"]), devices, area)
    probed = [device.name for device in devices] if given["probe"] else []
    _edit(config_path, lambda text: add_table(text, one), name, probed, given)


@table.command("change", epilog=examples("sudo feltd table change rou-4 --option smallest_chip=50 --why limits"))
@CONFIG
@click.argument("name", metavar="TABLE")
@click.option("--ruleset", help="another game")
@click.option("--area", help="of the pit, on the console's pages")
@OPTIONS
@click.option("--no-option", "no_options", multiple=True, metavar="NAME", help="back to its default; may be repeated")
@DEVICES
@click.option("--without", multiple=True, metavar="DEVICE", help="remove a device; may be repeated")
@PROBE
@WHY
@WHO
@YES
def change(config_path: Path, name: str, **given: Any) -> None:
    """Change game, options and devices of a table; settings that are not named are kept."""
    from daemon.cli.table_edit import TableChange, change_table

    devices = _devices(given["devices"])
    options: dict[str, str | None] = {**option_pairs(given["options"]), **dict.fromkeys(given["no_options"])}
    wanted = TableChange(given["ruleset"], given["area"], options, devices, given["without"])
    if wanted == TableChange():
        raise BadInputError(f"nothing to change at {name}; name --ruleset, --area, --option, --device or --without")
    probed = [device.name for device in devices] if given["probe"] else []
    _edit(config_path, lambda text: change_table(text, name, wanted), name, probed, given)


@table.command("remove", epilog=examples("sudo feltd table remove rou-4 --why closed"))
@CONFIG
@click.argument("name", metavar="TABLE")
@WHY
@WHO
@YES
def remove(config_path: Path, name: str, **given: Any) -> None:
    """Remove a table. Its events stay in the journals."""
    from daemon.cli.table_edit import remove_table

    _edit(config_path, lambda text: remove_table(text, name), "", [], given)


@table.command("answer", hidden=True, epilog=examples("sudo feltd table answer -c /etc/feltd/feltd.toml"))
@CONFIG
def answer(config_path: Path) -> None:
    """Answer one request of the console about tables, on standard input."""
    from daemon.cli.table_answer import answer_once

    answer_once(config_path, Systemd())


@click.group("config", cls=CommandGroup, epilog=examples("sudo feltd config log"))
def config() -> None:
    """The versions of the configuration: who changed what, when and why."""


@config.command("log", epilog=examples("sudo feltd config log"))
@CONFIG
@AS_JSON
def log(config_path: Path, as_json: bool) -> None:
    """List the versions, the newest first."""
    versions = Changes(config_path, Systemd()).versions()[::-1]
    if as_json:
        echo_json(versions)
        return
    if not versions:
        click.echo("no version is kept yet: `feltd table` keeps one before and after each change")
    for one in versions:
        click.echo(f"{one.number:4d}  {one.at:%Y-%m-%d %H:%M:%SZ}  {one.who or '-'}: {one.why}")


@config.command("diff", epilog=examples("sudo feltd config diff", "sudo feltd config diff 3 5"))
@CONFIG
@click.argument("numbers", type=int, nargs=-1, metavar="[FROM [TO]]")
def diff(config_path: Path, numbers: tuple[int, ...]) -> None:
    """Show what differs between two versions; without TO between FROM and the file as it is now.

    Without numbers it is what was edited by hand since the last version.
    """
    changes = Changes(config_path, Systemd())
    try:
        if len(numbers) > 2:
            raise BadInputError("name at most two versions")
        known = [one.number for one in changes.versions()]
        if not known and not numbers:
            raise BadInputError("no version is kept yet: `feltd table` keeps one before and after each change")
        first = numbers[0] if numbers else known[-1]
        then = changes.text_of(numbers[1]) if len(numbers) == 2 else config_path.read_text(encoding="utf-8")
        names = f"version {first}", f"version {numbers[1]}" if len(numbers) == 2 else str(config_path)
        said = difference(changes.text_of(first), then, names)
        click.echo(said or "no difference")
    except CannotChange as error:
        raise BadInputError(str(error)) from error
    except OSError as error:
        raise file_trouble(error, config_path) from error


@config.command("undo", epilog=examples("sudo feltd config undo --why mistake"))
@CONFIG
@click.option("--to", type=int, metavar="NUMBER", help="the version to return to  [default: the one before the last]")
@WHY
@WHO
@YES
def undo(config_path: Path, to: int | None, **given: Any) -> None:
    """Return to an earlier version, as a new version."""
    changes = Changes(config_path, Systemd())

    def earlier(_text: str) -> str:
        known = [one.number for one in changes.versions()]
        if to is None and len(known) < 2:
            raise CannotChange("there is no earlier version")
        return changes.text_of(known[-2] if to is None else to)

    _edit(config_path, earlier, "", [], given)


class Systemd:
    """The broker and the processes, under systemd."""

    def refusals(self, config: Config, path: Path) -> list[str]:
        """The mistakes that a reload would refuse."""
        from daemon.reload import start_mistakes

        return [mistake for part in self._running() for mistake in start_mistakes(config, path, part)]

    def reload_broker(self) -> None:
        """Mosquitto reads its access list and passwords again on SIGHUP. A reload of its unit needs procps."""
        if _systemctl("is-active", "--quiet", "mosquitto") == 0 and _systemctl("kill", "-s", "HUP", "mosquitto") != 0:
            raise CannotChange("mosquitto did not read its list again: journalctl -n 20 -u mosquitto shows why")

    def reload(self) -> None:
        """Edge and rules read the file again."""
        units = [f"feltd-{part}" for part in self._running()]
        if units and _systemctl("reload", *units) != 0:
            raise CannotChange(f"a process refused it: journalctl -n 20 -u {' -u '.join(units)} shows why")

    def console_notes(self, config: Config) -> tuple[str, ...]:
        """What a person must do for the console to use the new version: its dealer pages are devices of tables."""
        return ("restart feltd-console between two rounds: it has dealer pages",) if config.console.dealer else ()

    def restart_console(self, config: Config) -> None:
        """Restart the console, which reads its configuration at its start alone, unless `console_notes` has a step."""
        if not self.console_notes(config) and _systemctl("is-active", "--quiet", "feltd-console") == 0:
            _systemctl("restart", "feltd-console")

    def use(self, digest: str) -> bool:
        """Whether the logs of all running processes report that they use this version."""
        for part in self._running():
            words = ["journalctl", "-u", f"feltd-{part}", "-n", "500", "-o", "cat", "--no-pager"]
            said = subprocess.run(words, check=False, capture_output=True, text=True).stdout  # noqa: S603 - root's own
            used = [line for line in said.splitlines() if '"config.used"' in line or '"config.unchanged"' in line]
            if not used or ('"config.used"' in used[-1] and digest not in used[-1]):
                return False
        return True

    def _running(self) -> list[str]:
        from daemon.cli.processes import RELOADABLE

        return [part for part in RELOADABLE if _systemctl("is-active", "--quiet", f"feltd-{part}") == 0]


def _systemctl(*words: str) -> int:
    """The exit code of systemctl; 1 where there is no systemd."""
    try:
        return subprocess.run(["systemctl", *words], check=False, stderr=subprocess.DEVNULL).returncode  # noqa: S603, S607 - root's own
    except FileNotFoundError:
        return 1


def _named(name: str) -> None:
    from daemon.config.model import NAMES
    from protocols.contract.topics import is_id

    if not is_id(name):
        raise BadInputError(f"TABLE {name!r}: {NAMES}")


def _devices(words: tuple[str, ...]) -> tuple[Any, ...]:
    from daemon.table_requests import Device

    devices = []
    for name, link in option_pairs(words, "--device ", "DEVICE=DRIVER@URL").items():
        driver, at, url = link.partition("@")
        if not at:
            raise BadInputError(f"--device {name}={link}: write DEVICE=DRIVER@URL")
        devices.append(Device(name, driver, url))
    return tuple(devices)


def _free_ports(config: Config) -> None:
    from daemon.cli.listings import plugged

    used = {device.url.partition("?")[0] for one in config.table for device in one.device}
    free = [f"{url}  {what}" for url, what in plugged() if url.partition("?")[0] not in used]
    said = ["plugged in and at no table (name one by --device DEVICE=DRIVER@URL):", *free] if free else []
    click.echo("\n".join(said or ["nothing is plugged in that belongs to no table"]), err=True)


def _person() -> str:
    return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name


def _edit(path: Path, edited: Callable[[str], str], name: str, probed: list[str], given: dict[str, Any]) -> None:
    """Show and make a change of the file. Raises BadInputError, with everything as it was."""
    from daemon.cli.table_edit import CannotEdit

    services = Systemd()
    changes = Changes(path, services)
    try:
        load_config(path)
        with changes.locked() as left:
            click.echo("\n".join(left), nl=bool(left), err=True)
            before = path.read_text(encoding="utf-8")
            text = edited(before)
            if text == before:
                raise BadInputError("that changes nothing")
            _checked(text, path, name, probed)
            planned = changes.plan(text)
            _show(before, planned)
            if not given["yes"] and not click.confirm("Make this change?"):
                raise click.exceptions.Exit(1)
            version = changes.make(planned, given["who"] or _person(), given["why"])
            click.echo(f"{path}: version {version.number} is in use")
            for note in services.console_notes(planned.config):
                click.echo(note, err=True)
            services.restart_console(planned.config)
            if not changes.settle(planned):
                click.echo("a round is still open at the changed table: it changes after it", err=True)
    except (CannotEdit, CannotChange, BadConfig) as error:
        raise BadInputError(f"nothing is changed:\n{error}") from error
    except OSError as error:
        raise file_trouble(error, path) from error


def _show(before: str, planned: Change) -> None:
    click.echo(difference(before, planned.text))
    for one in planned.files[1:]:
        click.echo(f"{one.path}: {'changes' if one.before is not None else 'is made'}")
    for user in planned.users:
        click.echo(f"user {user} of the broker is made")
    for note in planned.notes:
        click.echo(f"note: {note}", err=True)


def _checked(text: str, path: Path, name: str, wanted: list[str]) -> None:
    """Refuse what `feltd check` refuses; name what a table lacks; ask its devices. Raises CannotChange."""
    from daemon.cli.table_check import check, probed

    lines = text.splitlines()
    found = check(text, path, name)
    if found.mistakes or found.config is None:
        raise CannotChange("\n".join(_at_field(line, said, lines) for line, said in found.mistakes))
    for line in found.lacks:
        click.echo(f"warning: {line}", err=True)
    if wanted:
        answers = probed(found.config, name, wanted)
        for answer in answers:
            click.echo(f"{answer.device}: {'answers' if answer.answers else 'FAILS'}: {answer.text}", err=True)
        if len(answers) < len(wanted) or not all(answer.answers for answer in answers):
            raise CannotChange("a device does not answer; without --probe the table is added all the same")


def _at_field(line: int, said: str, lines: list[str]) -> str:
    """A mistake, with its line in the new text."""
    return f"{lines[line - 1].strip()}\n  {said}" if 0 < line <= len(lines) else said
