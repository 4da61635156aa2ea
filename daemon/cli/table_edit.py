"""Adds, changes and removes a table in the text of a configuration. Pure; config_change writes the text.

Everything outside of the table stays byte for byte, comments too. The result is parsed and compared with the requested
change: if a file has an unsupported form, `CannotEdit` is raised and nothing is changed.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from msgspec import Struct

from daemon.cli.first_configuration import FirstTable, device_lines, pair, table_lines, value
from daemon.table_requests import Device

__all__ = ["CannotEdit", "TableChange", "add_table", "change_table", "remove_table", "tables_of"]

_HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_.-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"[A-Za-z0-9_-]+")
_UNKNOWN_FORM = "this command does not support the form of the file: edit it by hand, then `feltd reload`"


class CannotEdit(Exception):
    """The text cannot be changed in this way. The message gives the remedy."""


class TableChange(Struct, frozen=True):
    """The changes of a table. Options are as they were typed; `None` removes a key."""

    ruleset: str | None = None
    area: str | None = None
    options: dict[str, str | None] = {}
    devices: tuple[Device, ...] = ()
    """New devices, and those that get another driver or link."""
    without: tuple[str, ...] = ()


def add_table(text: str, table: FirstTable) -> str:
    """The text with a new table at its end. Raises CannotEdit."""
    if any(one.get("name") == table.name for one in tables_of(text)):
        raise CannotEdit(f"table {table.name!r} is there already; `feltd table change {table.name}` changes it")
    _option_names(table.options)
    added = "\n".join(table_lines(table)).rstrip("\n") + "\n"
    new = f"{text.rstrip()}\n\n{added}"
    expected = tomllib.loads(text)
    expected.setdefault("table", []).extend(tomllib.loads(added)["table"])
    return _as_expected(new, expected)


def remove_table(text: str, name: str) -> str:
    """The text without a table. Raises CannotEdit."""
    lines = text.split("\n")
    at, begin, end = _place(text, name)
    expected = tomllib.loads(text)
    del expected["table"][at]
    if not expected["table"]:
        del expected["table"]
    return _as_expected("\n".join(lines[:begin] + lines[end:]).rstrip("\n") + "\n", expected)


def change_table(text: str, name: str, change: TableChange) -> str:
    """The text with a changed table. Raises CannotEdit."""
    _option_names(change.options)
    lines = text.split("\n")
    at, begin, end = _place(text, name)
    expected = tomllib.loads(text)
    block = _Block(lines[begin:end], expected["table"][at])
    for key in ("ruleset", "area"):
        if (typed := getattr(change, key)) is not None:
            block.set("table", key, pair(key, typed), typed)
    for key, typed in change.options.items():
        block.set_option(key, typed)
    for device in change.devices:
        block.put(device)
    for one in change.without:
        block.drop(one)
    return _as_expected("\n".join(lines[:begin] + block.lines + lines[end:]), expected)


def _option_names(options: Iterable[str]) -> None:
    wrong = next((name for name in options if not _KEY.fullmatch(name)), None)
    if wrong is not None:
        raise CannotEdit(f"{wrong!r} is no name of an option: letters, digits, hyphens and underscores")


class _Block:
    """The lines of one table and its values, changed together."""

    def __init__(self, lines: list[str], values: dict[str, Any]) -> None:
        self.lines = lines
        self._values = values

    def set(self, header: str, key: str, line: str, typed: str) -> None:
        begin, end = self._section(header)
        self._set_line(begin, end, key, line)
        self._values[key] = typed

    def set_option(self, key: str, typed: str | None) -> None:
        options = self._values.setdefault("options", {})
        if typed is None:
            if key not in options:
                raise CannotEdit(f"option {key!r} is not set at this table; set here: {', '.join(options) or 'none'}")
            del options[key]
            begin, end = self._section("table.options")
            self._set_line(begin, end, key, None)
            return
        line = f"{key} = {value(typed)}"
        if (found := self._find("table.options")) is None:
            after = self._section("table")[1]
            self.lines[after:after] = ["", "[table.options]", line]
        else:
            self._set_line(*found, key, line)
        options[key] = tomllib.loads(line)[key]

    def put(self, device: Device) -> None:
        known = self._values.setdefault("device", [])
        at = next((n for n, one in enumerate(known) if one["name"] == device.name), None)
        if at is None:
            while self.lines and not self.lines[-1].strip():
                self.lines.pop()
            added = device_lines(device)
            self.lines += ["", *added, ""]
            known += tomllib.loads("\n".join(["[[table]]", *added]))["table"][0]["device"]
            return
        for key in ("driver", "url"):
            begin, end = self._device(at)
            self._set_line(begin, end, key, pair(key, getattr(device, key)))
            known[at][key] = getattr(device, key)

    def drop(self, name: str) -> None:
        known = self._values.get("device", [])
        at = next((n for n, one in enumerate(known) if one["name"] == name), None)
        if at is None:
            names = ", ".join(one["name"] for one in known) or "none"
            raise CannotEdit(f"no device {name!r} is at this table; its devices: {names}")
        start, _ = self._device(at)
        later = [one for one, header in _headers(self.lines) if one > start and header != "table.device.options"]
        begin, end = _span(self.lines, start, later[0] if later else len(self.lines))
        del self.lines[begin:end]
        del known[at]
        if not known:
            del self._values["device"]

    def _find(self, header: str) -> tuple[int, int] | None:
        """First and one past the last line of a section, without the blank lines and comments at its end."""
        headers = [*_headers(self.lines), (len(self.lines), "")]
        for (begin, found), (end, _) in pairwise(headers):
            if found == header:
                return begin, _trimmed(self.lines, begin, end)
        return None

    def _section(self, header: str) -> tuple[int, int]:
        if (found := self._find(header)) is None:
            raise CannotEdit(f"this table has no section [{header}]; edit the file by hand, then `feltd reload`")
        return found

    def _device(self, number: int) -> tuple[int, int]:
        headers = [*_headers(self.lines), (len(self.lines), "")]
        found = [n for n, (_, header) in enumerate(headers) if header == "table.device"]
        if number >= len(found):
            raise CannotEdit("the devices of this table have no sections of their own; edit the file by hand")
        begin = headers[found[number]][0]
        return begin, _trimmed(self.lines, begin, headers[found[number] + 1][0])

    def _set_line(self, begin: int, end: int, key: str, line: str | None) -> None:
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        for at in range(begin + 1, end):
            if pattern.match(self.lines[at]):
                self.lines[at : at + 1] = [] if line is None else [line]
                return
        if line is not None:
            self.lines.insert(end, line)


def tables_of(text: str) -> list[dict[str, Any]]:
    """The tables of a text, as TOML has them."""
    tables: list[dict[str, Any]] = tomllib.loads(text).get("table", [])
    return tables


def _place(text: str, name: str) -> tuple[int, int, int]:
    """The number of a table, its first line, and one past its last. Raises CannotEdit."""
    names = [one.get("name") for one in tables_of(text)]
    if name not in names:
        raise CannotEdit(f"no table {name!r}; tables: {', '.join(map(str, names)) or 'none'}")
    blocks = _blocks(text.split("\n"))
    if len(blocks) != len(names):  # `table = [{ … }]`, or [["table"]]
        raise CannotEdit(_UNKNOWN_FORM)
    at = names.index(name)
    return at, *blocks[at]


def _headers(lines: list[str]) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(lines):
        if found := _HEADER.fullmatch(line):
            yield at, found[1]


def _trimmed(lines: list[str], begin: int, end: int) -> int:
    """One past the last line between these that is neither blank nor a comment."""
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _span(lines: list[str], at: int, below: int) -> tuple[int, int]:
    """First and one past the last line of what begins at `at`, with the comments directly above it; `below` comes next.

    Comments directly below its last line are its own, too, but not those after a blank line.
    """
    begin, end = at, _trimmed(lines, at, below)
    blank = next((one for one in range(end, below) if not lines[one].strip()), None)
    if blank is not None:
        end = next((one for one in range(blank, below) if lines[one].strip()), below)
    while begin and lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
    return begin, end


def _blocks(lines: list[str]) -> list[tuple[int, int]]:
    """First and one past the last line of each table."""
    headers = [*_headers(lines), (len(lines), "")]
    blocks = []
    for number, (at, header) in enumerate(headers):
        if header != "table":
            continue
        below = next(one for one, name in headers[number + 1 :] if not name.startswith("table."))
        blocks.append(_span(lines, at, below))
    return blocks


def _as_expected(text: str, expected: dict[str, Any]) -> str:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        found = None
    if found != expected:
        raise CannotEdit(_UNKNOWN_FORM)
    return text
