"""All computers of a site at a glance, worst first, from the retained documents of their edges and rules."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec import Struct

from daemon.cli.common import AS_JSON, CONFIG, echo_json, examples, load_config
from daemon.config.model import Config
from protocols.contract.documents import EdgeHealth, EdgeInfo
from protocols.contract.topics import edge_topic

__all__ = ["Computer", "Doubt", "fleet", "fleet_of", "text_of"]

QUIET_S: Final = 0.5
"""Seconds without a further document after which all that stands on the broker was read."""
CONNECT_TIMEOUT_S: Final = 15.0
OLD_HEALTH: Final = timedelta(minutes=2)
"""Health comes every 30 s."""
LITTLE_ROOM: Final = 2_000_000_000
LATE_S, SLOW_MS = 10.0, 250.0
_COLUMNS: Final = ("computer", "state", "version", "up", "tables", "devices", "free", "restarts")


class Doubt(Struct, frozen=True):
    """Why somebody should look at it. `rank`: 0 is worst."""

    rank: int
    text: str


class Computer(Struct, frozen=True, kw_only=True):
    """One process of the site. What it has not said is None; `free` in bytes, `up_s` in seconds."""

    name: str
    online: bool
    version: str = ""
    config: str = ""
    started: datetime | None = None
    tables: int = 0
    devices: int | None = None
    devices_online: int | None = None
    free: int | None = None
    restarts: int = 0
    doubts: tuple[Doubt, ...] = ()


def fleet_of(standing: Mapping[str, bytes], now: datetime) -> list[Computer]:
    """All of them, worst first. `standing`: retained documents of edges by topic; what cannot be read is left out."""
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
    versions = Counter(one.version for one in infos.values())
    usual = versions.most_common(1)[0][0] if versions else ""
    found = [
        _computer(name, online.get(name, False), infos.get(name, EdgeInfo()), healths.get(name), usual, now)
        for name in sorted(online | infos)
    ]
    return sorted(found, key=lambda one: min((doubt.rank for doubt in one.doubts), default=9))


def _computer(
    name: str, online: bool, info: EdgeInfo, health: EdgeHealth | None, usual: str, now: datetime
) -> Computer:
    doubts = sorted(_doubts(online, info, health, usual, now), key=lambda one: one.rank)
    return Computer(
        name=name,
        online=online,
        version=info.version,
        config=info.config,
        started=info.started,
        tables=len(info.tables),
        devices=len(health.devices) if health else None,
        devices_online=sum(health.devices.values()) if health else None,
        free=health.disk_free if health else None,
        restarts=max(info.boots - 1, 0),
        doubts=tuple(doubts),
    )


def _doubts(online: bool, info: EdgeInfo, health: EdgeHealth | None, usual: str, now: datetime) -> Iterator[Doubt]:
    if not online:
        yield Doubt(0, "offline")
    for table, reason in info.suspended.items():
        yield Doubt(1, f"{table} suspended: {reason}")
    if info.version != usual:
        yield Doubt(4, f"version {info.version or 'unknown'}, most have {usual}")
    if health is None:
        return
    if online and now - health.time > OLD_HEALTH:
        yield Doubt(1, f"no health since {health.time:%H:%M:%S}")
    if health.outbox.age_s > LATE_S:
        yield Doubt(2, f"{health.outbox.depth} events wait for the broker, the oldest {health.outbox.age_s:.0f} s")
    if health.disk_free < LITTLE_ROOM:
        yield Doubt(2, f"{health.disk_free // 1_000_000} MB free")
    away = [name for name, there in health.devices.items() if not there]
    if away:
        yield Doubt(3, f"offline: {', '.join(away[:3])}{' and others' if len(away) > 3 else ''}")
    if health.loop_lag_ms > SLOW_MS:
        yield Doubt(3, f"busy: {health.loop_lag_ms:.0f} ms late")


def text_of(found: list[Computer], now: datetime) -> str:
    """A table of 80 columns, the reason of each that needs a look below it."""
    well = sum(not one.doubts for one in found)
    rows = [_COLUMNS, *(_row(one, now) for one in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    text = [f"{len(found)} processes, {well} without a finding"]
    for row, one in zip(rows, (None, *found), strict=True):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        text += [f"    {doubt.text}" for doubt in (one.doubts if one else ())]
    return "\n".join(text)


def _row(one: Computer, now: datetime) -> tuple[str, ...]:
    devices = "-" if one.devices is None else f"{one.devices_online}/{one.devices}"
    free = "-" if one.free is None else f"{one.free / 1e9:.0f} GB"
    up = "-" if one.started is None or not one.online else _since(now - one.started)
    state = "offline" if not one.online else "look" if one.doubts else "ok"
    return one.name, state, one.version or "-", up, str(one.tables), devices, free, str(one.restarts)


def _since(time: timedelta) -> str:
    hours = int(time.total_seconds()) // 3600
    return f"{hours // 24} d" if hours >= 48 else f"{hours} h" if hours else f"{int(time.total_seconds()) // 60} min"


async def _standing(config: Config) -> dict[str, bytes]:
    """The retained documents of all edges and rules of the site. Raises BrokerLost, TimeoutError."""
    from daemon.broker.connection import connect
    from daemon.broker.retained import read_standing

    topics = [edge_topic(config.site.name, "+", leaf) for leaf in ("availability", "info", "health")]
    async with asyncio.timeout(CONNECT_TIMEOUT_S), connect(config.mqtt, "") as session:
        return await read_standing(session, *topics, quiet_s=QUIET_S)


@click.command(epilog=examples("sudo feltd fleet", "sudo feltd fleet --json"))
@CONFIG
@AS_JSON
def fleet(config_path: Path, as_json: bool) -> None:
    """Show all computers of the site, worst first: version, devices, room, restarts; a version that differs is named.

    It asks the broker. Exit code 0: nothing was found; 1: something was.
    """
    from daemon import logs
    from daemon.broker.session import BrokerLost

    logs.set_up("error")
    config = load_config(config_path)
    try:
        standing = asyncio.run(_standing(config))
    except (BrokerLost, TimeoutError) as error:
        place = f"{config.mqtt.host}:{config.mqtt.port}"
        raise click.ClickException(f"broker {place}: {error or 'no answer'}; feltd doctor says more") from error
    now = datetime.now(UTC)
    found = fleet_of(standing, now)
    if as_json:
        echo_json(found)
    else:
        click.echo(text_of(found, now))
    if any(one.doubts for one in found):
        raise click.exceptions.Exit(1)
