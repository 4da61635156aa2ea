"""All computers of a site: the state that each publishes, and its findings, the worst first. Pure.

`feltd fleet` writes it for a terminal, the console's page /fleet shows it live. The texts of the findings are in
daemon/words/fleet.*.toml.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from protocols.contract.documents import EdgeExamination, EdgeHealth, EdgeInfo

__all__ = ["Computer", "Finding", "Process", "fleet"]

OLD_HEALTH: Final = timedelta(minutes=2)
"""Health comes every 30 s."""
LITTLE_ROOM: Final = 2_000_000_000
LATE_S, SLOW_MS = 10.0, 250.0
NAMED: Final = 3
"""The most devices or checks that are named."""
_RANKS: Final = ("offline", "suspended", "old_health", "backlog", "disk", "examined", "devices", "slow", "version")
"""The findings, worst first."""


class Process(Struct, frozen=True):
    """The retained documents of one process: edge, rules or jackpots."""

    name: str
    online: bool
    info: EdgeInfo = EdgeInfo()
    health: EdgeHealth | None = None


class Finding(Struct, frozen=True):
    """Something that needs attention: its code, with the values of its text."""

    code: str
    values: Mapping[str, Any] = {}


class Computer(Struct, frozen=True, kw_only=True):
    """A computer of the site, by one of its processes. An unpublished value is None; `free` in bytes."""

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
    examination: EdgeExamination | None = None
    findings: tuple[Finding, ...] = ()


def fleet(processes: Collection[Process], now: datetime) -> list[Computer]:
    """All processes, those with the worst finding first, else by name."""
    versions = Counter(one.info.version for one in processes if one.info.version)
    usual = versions.most_common(1)[0][0] if versions else ""
    found = [_computer(one, usual, now) for one in sorted(processes, key=lambda one: one.name)]
    return sorted(found, key=lambda one: _RANKS.index(one.findings[0].code) if one.findings else len(_RANKS))


def _computer(one: Process, usual: str, now: datetime) -> Computer:
    health = one.health
    return Computer(
        name=one.name,
        online=one.online,
        version=one.info.version,
        config=one.info.config,
        started=one.info.started,
        tables=len(one.info.tables or (health.newest if health else ())),
        devices=len(health.devices) if health else None,
        devices_online=sum(health.devices.values()) if health else None,
        free=health.disk_free if health else None,
        restarts=max(one.info.boots - 1, 0),
        examination=health.examination if health else None,
        findings=tuple(sorted(_findings(one, usual, now), key=lambda found: _RANKS.index(found.code))),
    )


def _findings(one: Process, usual: str, now: datetime) -> Iterator[Finding]:
    if not one.online:
        yield Finding("offline")
    for table, reason in one.info.suspended.items():
        yield Finding("suspended", {"table": table, "reason": reason})
    if one.info.version != usual:
        yield Finding("version", {"version": one.info.version or "-", "usual": usual})
    health = one.health
    if health is None:
        return
    if one.online and now - health.time > OLD_HEALTH:
        yield Finding("old_health", {"time": f"{health.time:%H:%M:%S} UTC", "at": health.time})
    if health.outbox.age_s > LATE_S:
        yield Finding("backlog", {"n": health.outbox.depth, "age": round(health.outbox.age_s)})
    if health.disk_free < LITTLE_ROOM:
        yield Finding("disk", {"mb": health.disk_free // 1_000_000})
    if health.examination and health.examination.problems:
        yield Finding("examined", {"names": _named(health.examination.problems)})
    away = [name for name, there in health.devices.items() if not there]
    if away and one.online:
        yield Finding("devices", {"n": len(away), "names": _named(away)})
    if health.loop_lag_ms > SLOW_MS:
        yield Finding("slow", {"ms": round(health.loop_lag_ms)})


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
