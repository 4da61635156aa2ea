"""The configuration that `feltd init` writes, as text. Pure; `operations` prompts for the values."""

import json
import re
import tomllib
from collections.abc import Iterable

from msgspec import Struct

from daemon.table_requests import Device

__all__ = ["First", "FirstTable", "configuration", "device_lines", "pair", "table_lines", "value"]

PASSWORDS = "/etc/feltd/mqtt"
ORDER_KEY = "/etc/feltd/orders/console.pem"
"""The console's, made by the package; its public half is in the same folder."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


class FirstTable(Struct, frozen=True):
    """One table, its game (empty: events only), the options of the game as they were typed, its devices."""

    name: str
    ruleset: str
    options: dict[str, str] = {}
    devices: tuple[Device, ...] = ()
    area: str = ""


class First(Struct, frozen=True):
    """The values of a first configuration. `passwords`: use those that the package made."""

    site: str
    edge: str
    tables: tuple[FirstTable, ...] = ()
    passwords: bool = True


def configuration(first: First) -> str:
    """The file. Further settings keep their defaults; the example in /usr/share/doc/feltd/examples shows them all."""
    lines = ["# Written by feltd init. All settings: /usr/share/doc/feltd/examples/feltd.toml", ""]
    lines += ["[site]", pair("name", first.site), ""]
    lines += ["[edge]", pair("name", first.edge), *_user("edge", first), ""]
    lines += ["[rules]", *_user("rules", first), ""]
    lines += ["[mqtt]", *_user("console", first), ""]
    lines += ["[console]", *([pair("order_key", ORDER_KEY)] if first.passwords else []), ""]
    if first.passwords:
        lines += ["[jackpots]", *_user("jackpots", first), pair("order_public_key", f"{ORDER_KEY}.pub"), ""]
        lines += ["[maintenance]", *_user("maintenance", first), ""]
    for table in first.tables:
        lines += table_lines(table)
    return "\n".join(lines[:-1]) + "\n"


def table_lines(table: FirstTable) -> list[str]:
    """The section of a table, its options and its devices; an empty line after each."""
    lines = ["[[table]]", pair("name", table.name)]
    if table.ruleset:
        lines.append(pair("ruleset", table.ruleset))
    if table.area:
        lines.append(pair("area", table.area))
    lines.append("")
    if table.options:
        lines += ["[table.options]", *(f"{name} = {value(text)}" for name, text in table.options.items()), ""]
    for device in table.devices:
        lines += [*device_lines(device), ""]
    return lines


def device_lines(device: Device) -> list[str]:
    """The section of a device."""
    lines = ["[[table.device]]", pair("name", device.name), pair("driver", device.driver), pair("url", device.url)]
    if device.options:
        options = (f"{_string(name)} = {_as_written(text)}" for name, text in device.options.items())
        lines.append(f"options = {{ {', '.join(options)} }}")
    return lines


def _as_written(text: str) -> str:
    """A value of TOML as it is, all else as a string."""
    try:
        return text if list(tomllib.loads(f"x = {{ a = {text} }}")["x"]) == ["a"] else _string(text)
    except tomllib.TOMLDecodeError:
        return _string(text)


def _user(name: str, first: First) -> Iterable[str]:
    return [pair("username", name), pair("password_file", f"{PASSWORDS}/{name}")] if first.passwords else []


def pair(key: str, text: str) -> str:
    """A line of the file with a text."""
    return f"{key} = {_string(text)}"


def _string(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON. DEL is the one character that JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def value(text: str) -> str:
    """A value of an option: a whole number or truth value as such, anything else as a string."""
    return text if text in {"true", "false"} or _NUMBER.fullmatch(text) else _string(text)
