"""Supported and plugged-in devices and games, as text for people and as values for programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import msgspec

from daemon.edge.links import usb as links_usb
from daemon.edge.links.link import plugged_in
from drivers import DRIVERS
from protocols.contract.commands import name_of
from rules import RULESETS
from rules.engine.ruleset import Ruleset, options_of

__all__ = ["detected", "device_list", "device_table", "plugged", "ruleset_info", "ruleset_page", "ruleset_table"]

BY_ID = Path("/dev/serial/by-id")


def device_list() -> list[dict[str, Any]]:
    """Every driver: name, title, evidence, commands, fault list."""
    return [
        {
            "driver": name,
            "title": kind.title,
            "evidence": list(kind.evidence),
            "commands": [name_of(command) for command in kind.commands],
            "faults": msgspec.to_builtins(kind.faults),
        }
        for name, kind in DRIVERS.items()
    ]


def device_table() -> str:
    """Every driver as a text table: name, title, evidence."""
    rows = [("driver", "device", "evidence")]
    rows += [(one["driver"], one["title"], ", ".join(one["evidence"])) for one in device_list()]
    return _columns(rows)


def plugged() -> list[tuple[str, str]]:
    """Plugged-in devices with their links: serial ports by stable names, then keyboard-like devices such as
    scanners.
    """
    stable = {str(link.resolve()): str(link) for link in BY_ID.iterdir()} if BY_ID.is_dir() else {}
    rows: list[tuple[str, str]] = []
    for port in plugged_in():
        url = f"serial://{stable.get(port.device, port.device)}"
        words = port.description if port.description not in (None, "n/a") else ""
        if port.vid is not None:
            words += f"  (or serial:?vid={port.vid:04x}&pid={port.pid:04x}"
            words += f"&serial={port.serial_number})" if port.serial_number else ")"
        rows.append((url, words))
    for one in links_usb.plugged_in():
        url = f"usb:?vid={one.vid:04x}&pid={one.pid:04x}" + (f"&serial={quote_plus(one.serial)}" if one.serial else "")
        rows.append((url, one.product))
    return rows


def detected() -> str:
    """The plugged-in devices as a text table; one sentence if there are none."""
    rows = plugged()
    return _columns([("link", "what"), *rows]) if rows else "no serial port and no scanner is plugged in"


def ruleset_info(kind: type[Ruleset[Any]]) -> dict[str, Any]:
    """One game: law, bets, options."""
    return {
        "ruleset": kind.id,
        "title": kind.title,
        "law": kind.law,
        "bets": kind(kind.Options()).bets(),
        "options": options_of(kind.Options),
    }


def ruleset_table() -> str:
    """All games as a text table: name, title, law."""
    return _columns([("ruleset", "game", "law"), *((kind.id, kind.title, kind.law) for kind in RULESETS.values())])


def ruleset_page(kind: type[Ruleset[Any]]) -> str:
    """The page of one game for people: law, bets and options as text tables."""
    bets = [("bet", "pays", "article", "")]
    bets += [(bet.id, f"{bet.pays} to 1", bet.law, bet.text) for bet in kind(kind.Options()).bets()]
    options = [("option", "default", "article", "values")]
    for one in options_of(kind.Options):
        default = str(one.default)
        if isinstance(one.default, list | tuple):
            default = ",".join(map(str, one.default)) or "empty"
        options.append((one.name, default.lower() if isinstance(one.default, bool) else default, one.law, one.values))
        options.append(("", "", "", f"  {one.text}"))
    return f"{kind.id}  {kind.title}\n{kind.law}\n\n{_columns(bets)}\n\n{_columns(options)}"


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
