"""Compares the configuration with the access list of a mosquitto on the same computer.

Also its settings with those of the package. Used by `feltd check`, `feltd doctor` and a reload. Processes suspend
a table that is not in the list.
"""

from collections.abc import Sequence
from pathlib import Path

from daemon.cli.access_list import BadSite, access_list
from daemon.config.model import Config, broker_of

__all__ = ["INSTALLED", "edited_settings", "not_granted", "old_list"]

INSTALLED = Path("/etc/mosquitto/feltd.acl")
SHIPPED, SETTINGS = Path("usr/share/feltd/mosquitto.conf"), Path("etc/mosquitto/conf.d/feltd.conf")
HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def old_list(config: Config, path: Path, installed: Path | None = None) -> list[str]:
    """The grants that the installed list lacks for this configuration, for people; a line for each user.

    Empty where the broker is on another computer, the list cannot be read, or the configuration gives no list.
    """
    installed = installed or INSTALLED
    if broker_of(config, config.edge).host not in HERE:
        return []
    try:
        found, wanted = installed.read_text(encoding="utf-8"), access_list([(path, config)])
    except (OSError, UnicodeDecodeError, BadSite):
        return []
    devices = {table.name: [device.name for device in table.device] for table in config.table}
    lines = []
    for user, missing in not_granted(found, wanted, devices).items():
        tables = dict.fromkeys(name for topic in missing if (name := _table(topic)))
        what = f"table {', '.join(tables)}" if tables else missing[0]
        lines.append(f"{installed} does not grant user {user} all of {what} ({len(missing)} topics, as {missing[0]})")
    return lines


def edited_settings(root: Path = Path("/")) -> bool:
    """Whether the broker's file of the Debian package was edited here. An upgrade leaves such a file as it is."""
    try:
        return (root / SETTINGS).read_bytes() != (root / SHIPPED).read_bytes()
    except OSError:  # installed without the package
        return False


def not_granted(found: str, wanted: str, devices: dict[str, list[str]]) -> dict[str, list[str]]:
    """The grants of the list `wanted` that the list `found` lacks, by user, as `write TOPIC`.

    Of a table that two edges share a list names each device: `devices` are those of each table here.
    """
    have, need = _rights(found), _rights(wanted)
    missing: dict[str, list[str]] = {}
    for user, rights in need.items():
        for right, topic in rights:
            if right != "deny" and not all(
                _is_granted(have.get(user, []), right, one) for one in _named(topic, devices)
            ):
                missing.setdefault(user, []).append(f"{right} {topic}")
    return missing


def _rights(text: str) -> dict[str, list[tuple[str, str]]]:
    """The rights of a list by user: read, write, readwrite or deny, and a topic."""
    rights: dict[str, list[tuple[str, str]]] = {}
    user = ""
    for line in text.splitlines():
        match line.split():
            case ["user", name]:
                user = name
            case ["topic", ("read" | "write" | "readwrite" | "deny") as right, topic]:
                rights.setdefault(user, []).append((right, topic))
            case ["topic", topic]:
                rights.setdefault(user, []).append(("readwrite", topic))
            case _:
                pass
    return rights


def _is_granted(have: Sequence[tuple[str, str]], right: str, topic: str) -> bool:
    if any(one == "deny" and _covers(filter_, topic) for one, filter_ in have):
        return False
    return any(one in (right, "readwrite") and _covers(filter_, topic) for one, filter_ in have)


def _named(topic: str, devices: dict[str, list[str]]) -> list[str]:
    """The topic with each device of its table in place of `+`, as far as they are known here."""
    match topic.split("/"):
        case [root, version, site, "table", table, "device", "+", *leaves] if devices.get(table):
            return ["/".join([root, version, site, "table", table, "device", one, *leaves]) for one in devices[table]]
        case _:
            return [topic]


def _covers(filter_: str, topic: str) -> bool:
    """Whether `filter_` grants all that `topic`, which may be a filter, grants."""
    have, need = filter_.split("/"), topic.split("/")
    for at, level in enumerate(have):
        if level == "#":
            return True
        if at >= len(need) or need[at] == "#" or (level != "+" and level != need[at]):
            return False
    return len(have) == len(need)


def _table(right: str) -> str:
    match right.partition(" ")[2].split("/"):
        case [_, _, _, "table", table, *_] if table != "+":
            return table
        case _:
            return ""
