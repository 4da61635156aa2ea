"""`feltd table answer`: answers one request of the console about tables, as root.

systemd starts it for each connection (`feltd-change@.service`): the request comes on standard input, the answer goes to
standard output. The rights of the socket decide which processes may ask; the console decides which people may.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import msgspec

from daemon.cli.common import BadInputError, file_trouble, load_config
from daemon.cli.config_change import CannotChange, Change, Changes, Services, difference
from daemon.cli.first_configuration import FirstTable
from daemon.cli.listings import plugged
from daemon.cli.table_check import Checked, check, field_of, probed
from daemon.cli.table_edit import CannotEdit, TableChange, add_table, change_table, remove_table, tables_of
from daemon.config.model import NAMES, BadConfig, Config
from daemon.table_requests import (
    MOST,
    Device,
    Look,
    Made,
    Make,
    Mistake,
    Plan,
    Planned,
    Port,
    Refused,
    Request,
    Response,
    Seen,
    Wanted,
)
from protocols.contract.topics import is_id

__all__ = ["answer_once"]


def answer_once(path: Path, services: Services) -> None:
    """Answer the request on standard input."""
    line = sys.stdin.buffer.readline(MOST)
    try:
        request = msgspec.json.decode(line, type=Request)
        config = load_config(path)
        match request:
            case Look():
                _say(seen(config, path))
            case Plan():
                _say(planned(request, path, services))
            case Make():
                _make(request, path, services)
    except (CannotEdit, CannotChange, BadConfig, BadInputError, msgspec.DecodeError) as error:
        _say(Refused(getattr(error, "message", "") or str(error)))
    except OSError as error:
        _say(Refused(file_trouble(error, path).message))


def _say(said: Response) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def seen(config: Config, path: Path) -> Seen:
    """The tables of the configuration, and the ports that are plugged in. Raises OSError."""
    used = {device.url.partition("?")[0]: f"{one.name}/{device.name}" for one in config.table for device in one.device}
    ports = (Port(url, what, used.get(url.partition("?")[0], "")) for url, what in plugged())
    tables = tables_of(path.read_text(encoding="utf-8"))
    return Seen(tuple(map(_wanted, tables)), tuple(ports))


def planned(request: Plan, path: Path, services: Services) -> Planned:
    """What this change would do. Raises CannotEdit, CannotChange, BadConfig, BadInputError, OSError."""
    changes, wanted = Changes(path, services), request.wanted
    with changes.locked():
        before = path.read_text(encoding="utf-8")
        if wanted.act != "remove" and not is_id(wanted.name):
            return Planned(mistakes=(Mistake("name", NAMES),))
        if files := _naming_files(wanted, before):
            return Planned(mistakes=files)
        text = _edited(wanted, before)
        if text == before:
            return Planned(mistakes=(Mistake("", "that changes nothing"),))
        found = check(text, path, wanted.name)
        if found.config is None or found.mistakes:
            at = (Mistake(field_of(line, text, wanted.name), said) for line, said in found.mistakes)
            return Planned(mistakes=tuple(at), lacks=found.lacks)
        plan = changes.plan(text)
        said = _answers(found, wanted, before) if request.probe else ()
        return Planned(
            _digest(before, text),
            difference(before, text),
            (),
            found.lacks,
            said,
            (*(one.path for one in plan.files[1:]), *(f"user {one}" for one in plan.users), *plan.notes),
            _new_terms(wanted, before),
        )


def _make(request: Make, path: Path, services: Services) -> None:
    """Make a planned change and answer; restart the console only after that, because it reads the answer."""
    changes, wanted = Changes(path, services), request.wanted
    with changes.locked():
        before = path.read_text(encoding="utf-8")
        if files := _naming_files(wanted, before):
            raise CannotChange(files[0].text)
        text = _edited(wanted, before)
        if _digest(before, text) != request.digest:
            raise CannotChange("the configuration was changed meanwhile; check the change again")
        found = check(text, path, wanted.name)
        if found.config is None or found.mistakes:
            raise CannotChange("\n".join(said for _, said in found.mistakes))
        plan: Change = changes.plan(text)
        version = changes.make(plan, request.who, request.why)
        _say(Made(version.number, (*plan.notes, *services.console_notes(plan.config))))
        services.restart_console(plan.config)
        try:
            changes.settle(plan)
        except (CannotChange, OSError) as error:  # already answered; the next change removes the old grants
            click.echo(str(error), err=True)


def _naming_files(wanted: Wanted, before: str) -> tuple[Mistake, ...]:
    """New links that name a file: the edge could be made to send a key of its own to a foreign broker."""
    known = {one["url"] for table in tables_of(before) for one in table.get("device", [])}
    said = "a link that names a file is added by `sudo feltd table` alone"
    new = ((n, unquote(one.url)) for n, one in enumerate(wanted.devices) if one.url not in known)
    return tuple(Mistake(f"device-{n}", said) for n, url in new if "_file" in url)


def _digest(before: str, after: str) -> str:
    return hashlib.sha256(f"{before}\0{after}".encode()).hexdigest()


def _wanted(table: dict[str, Any]) -> Wanted:
    """A table of the file, as a `Wanted` that changes nothing."""
    devices = (
        Device(
            one["name"], one["driver"], one["url"], {key: json.dumps(it) for key, it in one.get("options", {}).items()}
        )
        for one in table.get("device", [])
    )
    options = {key: _typed(one) for key, one in table.get("options", {}).items() if not isinstance(one, list | dict)}
    return Wanted("change", table["name"], table.get("ruleset", ""), table.get("area", ""), options, tuple(devices))


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _edited(wanted: Wanted, text: str) -> str:
    """The text of the file with the change. Raises CannotEdit."""
    if wanted.act == "remove":
        return remove_table(text, wanted.name)
    if wanted.act == "add":
        return add_table(text, FirstTable(wanted.name, wanted.ruleset, wanted.options, wanted.devices, wanted.area))
    now = next((_wanted(one) for one in tables_of(text) if one["name"] == wanted.name), None)
    if now is None:
        raise CannotEdit(f"no table {wanted.name!r} any more")
    there = {one.name: one for one in now.devices}
    changed = tuple(one for one in wanted.devices if there.get(one.name) != one)
    fixed = [one.name for one in changed if one.name in there and there[one.name].options != one.options]
    if fixed:
        raise CannotEdit(f"options of {', '.join(fixed)}: edit the file, then `feltd reload`; or remove the device")
    return change_table(
        text,
        wanted.name,
        TableChange(
            wanted.ruleset if wanted.ruleset != now.ruleset else None,
            wanted.area if wanted.area != now.area else None,
            {key: one for key, one in wanted.options.items() if now.options.get(key) != one}
            | dict.fromkeys(key for key in now.options if key not in wanted.options),
            changed,
            tuple(name for name in there if name not in {one.name for one in wanted.devices}),
        ),
    )


def _new_terms(wanted: Wanted, before: str) -> bool:
    """Whether no table so far has this game with these options: its bets, odds or limits may be new."""
    if wanted.act == "remove":
        return False
    known = [(one.ruleset, one.options) for one in map(_wanted, tables_of(before))]
    is_new = (wanted.ruleset, wanted.options) not in known
    return is_new and (wanted.act == "change" or bool(wanted.ruleset))


def _answers(found: Checked, wanted: Wanted, before: str) -> tuple[str, ...]:
    """The answers of the devices with new links; the edge has the other links open."""
    taken = {one["url"] for table in tables_of(before) for one in table.get("device", [])}
    new = [one.name for one in wanted.devices if one.url not in taken]
    if found.config is None or not new:
        return ()
    return tuple(f"{one.device}: {one.text}" for one in probed(found.config, wanted.name, new))
