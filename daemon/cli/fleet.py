"""`feltd fleet`: all computers of a site in a terminal, from the retained documents of their processes."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click
import msgspec

from daemon.cli.common import AS_JSON, CONFIG, echo_json, examples, load_config
from daemon.config.model import Config
from daemon.fleet import Computer, Process, fleet as fleet_of
from protocols.contract.documents import EdgeHealth, EdgeInfo
from protocols.contract.topics import edge_topic

__all__ = ["fleet", "processes_of", "text_of"]

QUIET_S: Final = 0.5
"""Seconds without a further document after which all retained documents were read."""
CONNECT_TIMEOUT_S: Final = 15.0
_COLUMNS: Final = ("computer", "state", "version", "up", "tables", "devices", "free", "restarts")


def processes_of(standing: Mapping[str, bytes]) -> list[Process]:
    """Edges, rules and jackpots by their retained documents. Unreadable documents are left out."""
    infos: dict[str, EdgeInfo] = {}
    healths: dict[str, EdgeHealth] = {}
    online: dict[str, bool] = {}
    for topic, payload in standing.items():
        *_, name, leaf = topic.split("/")
        try:
            match leaf:
                case "availability":
                    online[name] = payload == b"online"
                case "info":
                    infos[name] = msgspec.json.decode(payload, type=EdgeInfo)
                case "health":
                    healths[name] = msgspec.json.decode(payload, type=EdgeHealth)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            continue
    return [
        Process(name, online.get(name, False), infos.get(name, EdgeInfo()), healths.get(name))
        for name in online | infos
    ]


def text_of(found: list[Computer], now: datetime) -> str:
    """A table, as wide as its longest cells; below each computer its findings."""
    from daemon.words import words

    well = sum(not one.findings for one in found)
    rows = [_COLUMNS, *(_row(one, now) for one in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    text = [f"{len(found)} processes, {well} without a finding"]
    for row, one in zip(rows, (None, *found), strict=True):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        said = (words.say("en", f"fleet.{it.code}", **it.values) for it in (one.findings if one else ()))
        text.extend(f"    {line}" for line in said)
    return "\n".join(text)


def _row(one: Computer, now: datetime) -> tuple[str, ...]:
    devices = "-" if one.devices is None else f"{one.devices_online}/{one.devices}"
    free = "-" if one.free is None else f"{one.free / 1e9:.0f} GB"
    up = "-" if one.started is None or not one.online else _since(now - one.started)
    state = "offline" if not one.online else "look" if one.findings else "ok"
    return one.name, state, one.version or "-", up, str(one.tables), devices, free, str(one.restarts)


def _since(time: timedelta) -> str:
    hours = int(time.total_seconds()) // 3600
    return f"{hours // 24} d" if hours >= 48 else f"{hours} h" if hours else f"{int(time.total_seconds()) // 60} min"


async def _standing(config: Config) -> dict[str, bytes]:
    """The retained documents of all edges, rules and jackpots of the site. Raises BrokerLost, TimeoutError."""
    from daemon.broker.retained import read_standing
    from daemon.cli.site_brokers import at_brokers

    topics = [edge_topic(config.site.name, "+", leaf) for leaf in ("availability", "info", "health")]
    async with asyncio.timeout(CONNECT_TIMEOUT_S), at_brokers(config.mqtt, 1) as [session]:
        return await read_standing(session, *topics, quiet_s=QUIET_S)


@click.command(epilog=examples("sudo feltd fleet", "sudo feltd fleet --json"))
@CONFIG
@AS_JSON
def fleet(config_path: Path, as_json: bool) -> None:
    """Show all computers of the site, worst first: version, devices, room, restarts; a version that differs is named.

    It reads the broker's retained messages. Exit code 0: nothing was found; 1: something was.
    """
    from daemon import logs
    from daemon.broker.session import BrokerLost

    logs.set_up("error")
    config = load_config(config_path)
    try:
        standing = asyncio.run(_standing(config))
    except (BrokerLost, TimeoutError) as error:
        place = f"{config.mqtt.host}:{config.mqtt.port}"
        raise click.ClickException(f"broker {place}: {error or 'no answer'}; run feltd doctor for details") from error
    now = datetime.now(UTC)
    found = fleet_of(processes_of(standing), now)
    if as_json:
        echo_json(found)
    else:
        click.echo(text_of(found, now))
    if any(one.findings for one in found):
        raise click.exceptions.Exit(1)
