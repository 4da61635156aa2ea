"""The configuration that `feltd init` writes, as text. Pure; operations asks for the values."""

import json
import re
from collections.abc import Iterable

from msgspec import Struct

__all__ = ["First", "FirstDevice", "FirstTable", "configuration"]

PASSWORDS = "/etc/feltd/mqtt"
ORDER_KEY = "/etc/feltd/orders/console.pem"
"""The console's, made by the package; its public half stands beside it."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


class FirstDevice(Struct, frozen=True):
    """One device: its name, driver and link."""

    name: str
    driver: str
    url: str


class FirstTable(Struct, frozen=True):
    """One table, its game (empty: events only), the options of the game as they were typed, its devices."""

    name: str
    ruleset: str
    options: dict[str, str] = {}
    devices: tuple[FirstDevice, ...] = ()


class First(Struct, frozen=True):
    """Everything that a first configuration says. `passwords`: use those that the package made."""

    site: str
    edge: str
    tables: tuple[FirstTable, ...] = ()
    passwords: bool = True


def configuration(first: First) -> str:
    """The file. Further settings keep their defaults; the example in /usr/share/doc/feltd/examples shows them all."""
    lines = ["# Written by feltd init. All settings: /usr/share/doc/feltd/examples/feltd.toml", ""]
    lines += ["[site]", _pair("name", first.site), ""]
    lines += ["[edge]", _pair("name", first.edge), *_user("edge", first), ""]
    lines += ["[rules]", *_user("rules", first), ""]
    lines += ["[mqtt]", *_user("console", first), ""]
    lines += ["[console]", *([_pair("order_key", ORDER_KEY)] if first.passwords else []), ""]
    if first.passwords:
        lines += ["[jackpots]", *_user("jackpots", first), _pair("order_public_key", f"{ORDER_KEY}.pub"), ""]
        lines += ["[maintenance]", *_user("maintenance", first), ""]
    for table in first.tables:
        lines += ["[[table]]", _pair("name", table.name)]
        if table.ruleset:
            lines.append(_pair("ruleset", table.ruleset))
        lines.append("")
        if table.options:
            lines += ["[table.options]", *(f"{name} = {_value(text)}" for name, text in table.options.items()), ""]
        for device in table.devices:
            lines += ["[[table.device]]", _pair("name", device.name), _pair("driver", device.driver)]
            lines += [_pair("url", device.url), ""]
    return "\n".join(lines[:-1]) + "\n"


def _user(name: str, first: First) -> Iterable[str]:
    return [_pair("username", name), _pair("password_file", f"{PASSWORDS}/{name}")] if first.passwords else []


def _pair(key: str, text: str) -> str:
    return f"{key} = {_string(text)}"


def _string(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON. DEL is the one character that JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _value(text: str) -> str:
    """Numbers and truth values as such, all else as a string."""
    return text if text in {"true", "false"} or _NUMBER.fullmatch(text) else _string(text)
