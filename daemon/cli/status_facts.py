"""Measures what `feltd status` shows: the retained documents of the broker, systemd, and the journal of the edge.

It publishes nothing and writes nothing. The console is not asked.
"""

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from daemon import version
from daemon.broker.heartbeat import SILENT_S
from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session, UnreadableFile
from daemon.cli.site_brokers import at_brokers
from daemon.cli.status import BrokerState, Facts, Service, Wanted
from daemon.config.model import Config
from daemon.journal.reader import open_to_read
from protocols.contract.documents import Alert, DeviceMeta, DeviceState, EdgeInfo
from protocols.contract.jackpots import PoolLevel, jackpot_topic
from protocols.contract.topics import edge_topic, table_topic

__all__ = ["measured"]

CONNECT_TIMEOUT_S = 5.0
QUIET_S = 0.5
"""Seconds without a further document after which all retained documents were read."""
LONGEST_S = 15.0
SYSTEMD_TIMEOUT_S = 5.0
MOST_DOCUMENTS = 50_000
LONGEST_DOCUMENT = 256 * 1024
ALL_OF_EDGE = ("availability", "info", "alive")
ALL_OF_TABLE = ("device/+/availability", "device/+/state", "device/+/meta", "alert/+")


def measured(config: Config, *, with_console: bool) -> Facts:
    """Everything that the status needs. `with_console`: the configuration has the section."""
    wanted = [Wanted("edge", config.edge.name)]
    if any(table.ruleset for table in config.table):
        wanted.append(Wanted("rules", config.rules.name))
    if config.jackpot:
        wanted.append(Wanted("jackpots", config.jackpots.name))
    services = _services([*(one.part for one in wanted), "console"])
    if with_console or "console" in services:
        console = services.get("console")
        wanted.append(Wanted("console", needed=console is not None and console.enabled))
    broker_state, error, remedy = asyncio.run(_read_broker(config))
    return Facts(
        now=datetime.now(UTC),
        site=config.site.name,
        edge=config.edge.name,
        installed=version(),
        digest=config.digest,
        broker=f"{config.mqtt.host}:{config.mqtt.port}",
        broker_error=error,
        broker_remedy=remedy,
        wanted=tuple(wanted),
        devices=tuple((table.name, device.name) for table in config.table for device in table.device),
        tables=tuple(table.name for table in config.table),
        pools=tuple(one.name for one in config.jackpot),
        services=services,
        broker_state=broker_state,
        journal=_by_journal(config) if broker_state is None else None,
    )


# ---- the broker


async def _read_broker(config: Config) -> tuple[BrokerState | None, str, str]:
    """The broker's retained documents; or None, the reason and the remedy."""
    try:
        async with asyncio.timeout(LONGEST_S), at_brokers(config.mqtt, 1) as [session]:
            return await _documents(session, config), "", ""
    except UnreadableFile as error:
        return None, f"not asked: {error}", "run this with sudo, or correct the file or its path"
    except BrokerLost as error:
        return None, str(error), "systemctl status mosquitto; check host, port and users under [mqtt]; feltd doctor"
    except TimeoutError:
        return None, "no answer", "systemctl status mosquitto; check the network to the broker; feltd doctor"


async def _documents(session: Session, config: Config) -> BrokerState:
    """The retained documents, and heartbeats until each online process has sent one or is late."""
    site = config.site.name
    topics = [edge_topic(site, "+", leaf) for leaf in ALL_OF_EDGE]
    topics += [table_topic(site, "+", leaf) for leaf in ALL_OF_TABLE]
    topics += [jackpot_topic(site, one.name, "level") for one in config.jackpot]
    await session.subscribe(*topics)
    standing: dict[str, bytes] = {}
    beating: set[str] = set()
    loop = asyncio.get_running_loop()
    began = last = loop.time()
    while True:
        for message in await _next(session):
            words = message.topic.split("/")[3:]
            if words[-1:] == ["alive"]:
                beating.add(words[1])
            elif len(message.payload) <= LONGEST_DOCUMENT and len(standing) < MOST_DOCUMENTS:
                if message.topic not in standing:
                    last = loop.time()
                standing[message.topic] = message.payload
        online = {
            topic.split("/")[4]
            for topic, payload in standing.items()
            if payload == b"online" and topic.endswith("/availability") and topic.split("/")[3] == "edge"
        }
        now = loop.time()
        if now - last >= QUIET_S and (online <= beating or now - began >= SILENT_S):
            return _read(standing, frozenset(beating))


async def _next(session: Session) -> list[Message]:
    try:
        async with asyncio.timeout(QUIET_S):
            return await session.messages()
    except TimeoutError:
        return []


def _read(standing: Mapping[str, bytes], beating: frozenset[str]) -> BrokerState:
    """The documents by their kind; unreadable ones are counted."""
    online: dict[str, bool] = {}
    infos: dict[str, EdgeInfo] = {}
    devices: dict[tuple[str, str], bool] = {}
    states: dict[tuple[str, str], DeviceState] = {}
    metas: dict[tuple[str, str], DeviceMeta] = {}
    alerts: dict[tuple[str, str], Alert] = {}
    levels: dict[str, PoolLevel] = {}
    unreadable = 0
    for topic, payload in standing.items():
        if not payload:
            continue
        try:
            match topic.split("/")[3:]:
                case ["edge", name, "availability"]:
                    online[name] = payload == b"online"
                case ["edge", name, "info"]:
                    infos[name] = msgspec.json.decode(payload, type=EdgeInfo)
                case ["table", table, "device", name, "availability"]:
                    devices[table, name] = payload == b"online"
                case ["table", table, "device", name, "state"]:
                    states[table, name] = msgspec.json.decode(payload, type=DeviceState)
                case ["table", table, "device", name, "meta"]:
                    metas[table, name] = msgspec.json.decode(payload, type=DeviceMeta)
                case ["table", table, "alert", name]:
                    alerts[table, name] = msgspec.json.decode(payload, type=Alert)
                case ["jackpot", pool, "level"]:
                    levels[pool] = msgspec.json.decode(payload, type=PoolLevel)
                case _:
                    pass
        except UNREADABLE:
            unreadable += 1
    return BrokerState(online, beating, infos, devices, states, metas, alerts, levels, unreadable)


# ---- systemd


def _services(parts: Iterable[str]) -> dict[str, Service]:
    """The units of feltd that systemd has here, by part."""
    found: dict[str, Service] = {}
    shown = "Id,LoadState,ActiveState,SubState,UnitFileState,StateChangeTimestamp"
    units = [f"feltd-{part}.service" for part in parts]
    for block in _said("systemctl", "show", "--timestamp=unix", f"--property={shown}", *units).split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines())
        if values.get("LoadState") != "loaded":
            continue
        part = values.get("Id", "").removeprefix("feltd-").removesuffix(".service")
        active = values.get("ActiveState", "")
        if values.get("SubState", "").startswith("auto-restart"):  # it ended by a failure, and waits
            active = "auto-restart"
        log = "" if active == "active" else _last_warning(f"feltd-{part}")
        since = _instant(values.get("StateChangeTimestamp", ""))
        found[part] = Service(active, values.get("UnitFileState") == "enabled", since, log)
    return found


def _last_warning(unit: str) -> str:
    """The last warning or error in the log of a unit, without its times and names."""
    line = _said("journalctl", "--no-pager", "-q", "-o", "cat", "-p", "warning", "-n", "1", "-u", unit).strip()
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except UNREADABLE:
        return line[-200:]
    left = {key: value for key, value in fields.items() if key not in {"level", "timestamp", "event", "exception"}}
    return " ".join((str(fields.get("event", "")), *(f"{key}={value}" for key, value in left.items())))[:200]


def _said(*words: str) -> str:
    """The output of a program of systemd; empty where it is missing or fails."""
    try:
        done = subprocess.run(words, capture_output=True, check=False, timeout=SYSTEMD_TIMEOUT_S)  # noqa: S603 - fixed words
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def _instant(text: str) -> datetime | None:
    """The time in `@1700000000`, from `--timestamp=unix`."""
    number = text.removeprefix("@")
    return datetime.fromtimestamp(int(number), UTC) if number.isascii() and number.isdigit() else None


# ---- the journal of the edge


def _by_journal(config: Config) -> dict[tuple[str, str], DeviceState] | None:
    """The devices by the edge's journal; None where its journal cannot be read."""
    try:
        journal = open_to_read(Path(config.edge.journal))
    except (OSError, sqlite3.Error):
        return None
    try:
        rows = journal.execute("SELECT key, value FROM memory WHERE key GLOB 'status/*/*'").fetchall()
    except sqlite3.Error:
        return None
    finally:
        journal.close()
    found: dict[tuple[str, str], DeviceState] = {}
    for key, value in rows:
        _, table, device = key.split("/", 2)
        try:
            found[table, device] = msgspec.json.decode(value, type=DeviceState)
        except UNREADABLE:
            continue
    return found
