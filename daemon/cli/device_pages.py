"""`feltd devices`: the page of one device, made from what its driver says, and from the sections that others add.

A distribution that knows more of a device names a function in the entry-point group `feltd.device_page`: it takes the
driver's name and returns the paragraphs of a section. The laboratory adds what a simulator can do wrong.
`feltd devices --pages docs/reference/devices` writes all pages; a test fails when they differ from those in the tree.
"""

import inspect
import re
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from drivers import DRIVERS
from drivers.driver import Driver
from drivers.faults import Fault
from protocols.contract.commands import COMMANDS, Command, name_of
from protocols.contract.events import EVENT_TYPES

__all__ = ["EDGE_FAULTS", "device_page", "fault_text", "index_page", "known_words", "markdown_table", "options_of"]

EDGE_FAULTS = (
    Fault(
        "device.offline",
        "the device does not answer",
        "check power and cable; it comes back by itself",
        "by itself",
        "waits, where what happened meanwhile is not known; else goes on",
        "error",
    ),
    Fault(
        "device.refused",
        "the device, or its port, will not work with us; the text says why",
        "mend what the text says; it is tried again every 30 s",
        "by a person",
        "as device.offline",
        "error",
    ),
    Fault(
        "driver.bug",
        "the driver failed",
        "send the log to the maintainers; it is tried again by itself",
        "by itself",
        "as device.offline",
        "error",
    ),
)
RULE = (
    "The first time in a cycle a fault is told as said here, the second time as an error; its end is told, too. "
    "What is open stays open over a restart until it is seen to be over."
)
TELL = "`feltd command -c FILE TABLE/DEVICE NAME KEY=VALUE …`, or a message under `cmd/<name>`."
CARDS = (
    "What it sends may tell a card before its time: a trace of it is held back until no round is open, and some "
    "seconds longer."
)

MADE = "Made by `feltd devices --pages docs/reference/devices`."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def markdown_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in lines)


def options_of(driver: type[Driver]) -> list[tuple[str, str, str]]:
    """Name, what it may be, default as the configuration has it, of each option of a driver."""
    hints = get_type_hints(driver.Options, include_extras=True)
    defaults = msgspec.to_builtins(driver.Options())
    return [(name, _kind(hint), _default(defaults[name])) for name, hint in hints.items()]


def _default(value: Any) -> str:
    """As it is written in TOML, where that fits into a table."""
    match value:
        case {} if value:
            return "see its text"
        case [_, _, _, _, *_]:
            return f"[{_default(value[0])}, … {_default(value[-1])}]"
        case _:
            return msgspec.json.encode(value).decode()


def _kind(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Annotated and get_origin(get_args(hint)[0]) is tuple:
        return _kind(get_args(hint)[0])
    if origin is Annotated:
        metas = [meta for meta in get_args(hint)[1:] if isinstance(meta, Meta)]
        words = [_bounds(meta) for meta in metas] + [meta.description or "" for meta in metas]
        return ", ".join(filter(None, [_kind(get_args(hint)[0]), *words]))
    if origin is Literal:
        return " or ".join(map(str, get_args(hint)))
    if origin is tuple:
        return f"list of {_kind(get_args(hint)[0])}"
    names = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    return names.get(hint, "table")


def _bounds(meta: Meta) -> str:
    if meta.max_length is not None:
        return f"{meta.max_length} character{'s' if meta.max_length > 1 else ''} at most"
    low = "" if meta.ge is None and meta.gt is None else f"from {meta.ge}" if meta.ge is not None else f"over {meta.gt}"
    return f"{low} to {meta.le}".strip() if meta.le is not None else low


def _listed(text: str) -> str:
    """What explains options one by one becomes a list, the rest stays as it stands."""
    parts: list[str] = []
    for paragraph in text.split("\n\n"):
        head, *points = re.split(r"(?:(?m:^)|(?<=[.;]\s))(?=`\w+`(?:,\s`\w+`)*:)", paragraph)
        lines = [f"- {' '.join(point.split()).rstrip(';')}" for point in points]
        if head.strip():
            parts.append(head.strip())
        if lines and parts and parts[-1].startswith("- ") and not head.strip():
            parts[-1] = "\n".join((parts[-1], *lines))
        elif lines:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _command(kind: type[Command]) -> tuple[str, str, str, str]:
    fields = ", ".join(field.encode_name + ("" if field.required else "?") for field in msgspec.structs.fields(kind))
    when = "between two rounds" if kind.between_rounds else "always" if kind.of_edge else "whenever it is safe"
    return f"`{name_of(kind)}`", fields or "-", inspect.getdoc(kind) or "", when


def _title(driver: type[Driver]) -> str:
    return driver.title[:1].upper() + driver.title[1:]


def fault_text(code: str) -> str:
    """What a fault is and what to do about it, for a terminal; empty where no device tells it."""
    told: dict[Fault, list[str]] = {fault: ["every device"] for fault in EDGE_FAULTS if fault.code == code}
    for name, driver in DRIVERS.items():
        for fault in driver.faults:
            if fault.code == code:
                told.setdefault(fault, []).append(name)
    return "\n\n".join(
        f"{code}  {fault.severity} at first  ({', '.join(who)})\n"
        f"  what it means  {fault.text}\n"
        f"  what to try    {fault.remedy}\n"
        f"  ends           {fault.clears}\n"
        f"  the round      {fault.round}"
        for fault, who in told.items()
    )


def device_page(name: str) -> str:
    """The page of one device, Markdown."""
    driver = DRIVERS[name]
    own = [kind.__module__ for kind in driver.__mro__ if kind.__module__.startswith(driver.__module__)]
    parts = [
        f"# {_title(driver)}",
        f"Driver `{name}`. Evidence: *{', '.join(driver.evidence)}*. {MADE}",
        *(inspect.getdoc(sys.modules[one]) or "" for one in dict.fromkeys(own)),
        "## Options",
        _listed(inspect.getdoc(driver.Options) or ""),
        markdown_table(
            ("option", "value", "default"),
            [(f"`{one}`", kind, f"`{default}`") for one, kind, default in options_of(driver)],
        ),
    ]
    parts += ["## Commands"]
    everybodys = [kind for kind in COMMANDS.values() if kind.of_edge]
    parts += [
        TELL,
        markdown_table(
            ("command", "values", "what it does", "when"),
            [_command(kind) for kind in (*driver.commands, *everybodys)],
        ),
    ]
    if driver.tells_cards:
        parts += [CARDS]
    parts += [
        "## Faults and what to do",
        RULE,
        markdown_table(
            ("code", "what it means", "what to try", "at first", "ends", "the round"),
            [
                (f"`{fault.code}`", fault.text, fault.remedy, fault.severity, fault.clears, fault.round)
                for fault in (*driver.faults, *EDGE_FAULTS)
            ],
        ),
    ]
    for section in entry_points(group="feltd.device_page"):
        parts += section.load()(name)
    return "\n\n".join(part for part in parts if part) + "\n"


def index_page() -> str:
    """The list of all devices."""
    rows = [
        (f"[{_title(driver)}]({name}.md)", f"`{name}`", ", ".join(driver.evidence)) for name, driver in DRIVERS.items()
    ]
    return f"# Devices\n\n{markdown_table(('device', 'driver', 'evidence'), rows)}\n"


def known_words(driver: type[Driver]) -> set[str]:
    """What an `Ailment.told` of this device may name."""
    return {fault.code for fault in (*driver.faults, *EDGE_FAULTS)} | set(EVENT_TYPES)
