"""The reliability of devices, from the stored incidents: faults, time between them, time to repair, lost rounds.

A fault is an incident of a device with severity error. One that comes back within ten minutes is the same incident,
and one that began during a silence is maintenance. Unknown figures are None, not 0: a repair while the console was off,
the rounds of a time that is no longer recorded, the time between faults of a device without one.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from daemon.console.alerts.records import AlertKey, time_of
from daemon.console.site.rounds import Records
from daemon.console.site.turnover import played
from daemon.journal.rows import micros_of

__all__ = ["BY", "By", "Fault", "Line", "Unit", "faults", "lines", "units_of", "worst"]

By: TypeAlias = Literal["unit", "model", "kind", "fault"]
BY: tuple[By, ...] = get_args(By)
Times: TypeAlias = Sequence[tuple[datetime, datetime]]
"""When the site was watched, in order."""
WORST = 10
BEFORE = timedelta(hours=1)
"""The time before a fault over which the pace of a table is measured."""
_FAULTS = (
    "SELECT place, device, code, began, ended FROM incident AS i WHERE heard = 'broker' AND severity = 'error' "
    "AND place != '' AND device != '' AND began >= ? AND began < ? AND NOT EXISTS (SELECT 1 FROM silence AS s "
    "WHERE s.began <= i.began AND s.until > i.began AND s.place IN ('', i.place) AND s.device IN ('', i.device) "
    "AND s.code IN ('', i.code)) ORDER BY n DESC LIMIT ?"
)


class Unit(Struct, frozen=True):
    """A device at its place from `since` to `until`. `model` and `serial` are "" where they are not known."""

    table: str
    device: str
    kind: str
    model: str
    serial: str
    since: datetime
    until: datetime


class Fault(Struct, frozen=True):
    """`lost`: the rounds that were not played meanwhile, at the earlier pace. `void`: the void rounds."""

    table: str
    device: str
    code: str
    began: datetime
    ended: datetime | None
    lost: float | None
    void: int | None


class Line(Struct, frozen=True):
    """Some units together, or one kind of fault. `name`: kind; kind and model; table, device and serial; kind and code.

    `watched_s`: the sum of the times for which the units were watched. `down_s`: the sum of the known times to repair.
    `unknown`: the faults with unknown costs.
    """

    name: tuple[str, ...]
    units: int
    watched_s: float
    faults: int
    open: int
    between_s: float | None
    repair_s: float | None
    down_s: float
    lost: float | None
    void: int | None
    unknown: int


def units_of(
    devices: Mapping[AlertKey, tuple[str, str, str]],
    seen: Mapping[AlertKey, datetime],
    lives: Mapping[AlertKey, Sequence[tuple[datetime, str]]],
    until: datetime,
) -> list[Unit]:
    """The units of the present devices: a device with another serial number is another unit.

    `devices`: present kind, model and serial number. `seen`: since when each is known; a device without an entry, from
    `until` on. `lives`: the times from which each serial number was known. Only the last unit of a place has the
    model that its device reports now.
    """
    found: list[Unit] = []
    for (table, device), (kind, model, known) in devices.items():
        since = seen.get((table, device), until)
        serials = [(since, "")]
        for began, serial in lives.get((table, device), ()):
            if not serial or serial == serials[-1][1]:
                continue
            if serials[-1][1]:
                serials.append((began, serial))
            else:
                serials[-1] = serials[-1][0], serial
        if not serials[-1][1]:
            serials[-1] = serials[-1][0], known
        ends = [*(began for began, _ in serials[1:]), until]
        for n, (begin, serial) in enumerate(serials):
            of_now = n == len(serials) - 1
            found.append(Unit(table, device, kind, model if of_now else "", serial, begin, max(ends[n], begin)))
    return found


def faults(
    db: sqlite3.Connection,
    since: datetime,
    until: datetime,
    limit: int,
    *,
    now: datetime,
    shift_end: Callable[[datetime], datetime],
) -> Iterator[Fault]:
    """The newest `limit` faults that began in a period. Their costs count up to the end of the shift at most."""
    records, gaps = Records(db), dict[str, list[tuple[datetime, datetime]]]()
    rows = db.execute(_FAULTS, (micros_of(since), micros_of(until), limit)).fetchall()
    for table, device, code, began_us, ended_us in rows:
        began, ended = time_of(began_us), None if ended_us is None else time_of(ended_us)
        if table not in gaps:
            gaps[table] = [(one.since, one.until) for one in records.gaps(table, since - BEFORE, now)]
        stop = min(ended or now, shift_end(began), now)
        lost: float | None = None
        void: int | None = None
        if not any(gap < stop and began - BEFORE < over for gap, over in gaps[table]):
            before, _ = played(db, table, began - BEFORE, began)
            rounds, void = played(db, table, began, stop)
            lost = before * ((stop - began) / BEFORE) - rounds
        yield Fault(table, device, code, began, ended, lost, void)


def lines(by: By, units: Sequence[Unit], found: Iterable[Fault], watched: Times) -> list[Line]:
    """One line for each unit, model, kind, or kind of fault; the most faults first."""
    at: dict[AlertKey, list[Unit]] = {}
    for unit in units:
        at.setdefault((unit.table, unit.device), []).append(unit)
    placed = [(_unit_of(at.get((one.table, one.device), ()), one), one) for one in found]
    of_units: dict[tuple[str, ...], list[Unit]] = {}
    of_faults: dict[tuple[str, ...], list[Fault]] = {}
    if by == "fault":
        kinds: dict[str, list[Unit]] = {}
        for unit in units:
            kinds.setdefault(unit.kind, []).append(unit)
        for place, one in placed:
            kind = place.kind if place else ""
            of_units[kind, one.code] = kinds.get(kind, [])
            of_faults.setdefault((kind, one.code), []).append(one)
    else:
        for unit in units:
            of_units.setdefault(_name(by, unit), []).append(unit)
        for place, one in placed:
            name = _name(by, place) if place else _elsewhere(by, one)
            of_faults.setdefault(name, []).append(one)
    names = {*of_units, *of_faults}
    all_lines = [_line(name, of_units.get(name, ()), of_faults.get(name, ()), watched) for name in names]
    return sorted(all_lines, key=lambda one: (-one.faults, one.name))


def worst(of_units: Iterable[Line]) -> list[Line]:
    """The ten units whose faults cost the most rounds; then those with most faults, and longest out of order."""
    some = (one for one in of_units if one.faults)
    return sorted(some, key=lambda one: (-(one.lost or 0), -one.faults, -one.down_s, one.name))[:WORST]


def _unit_of(there: Sequence[Unit], fault: Fault) -> Unit | None:
    """The unit at that place at that time; earlier faults belong to the first known unit."""
    return next((one for one in reversed(there) if one.since <= fault.began), there[0] if there else None)


def _name(by: By, unit: Unit) -> tuple[str, ...]:
    match by:
        case "kind":
            return (unit.kind,)
        case "model":
            return unit.kind, unit.model
        case _:
            return unit.table, unit.device, unit.serial


def _elsewhere(by: By, fault: Fault) -> tuple[str, ...]:
    """The group of a fault of a removed device, whose kind is unknown."""
    return {"kind": ("",), "model": ("", "")}.get(by, (fault.table, fault.device, ""))


def _line(name: tuple[str, ...], units: Sequence[Unit], some: Sequence[Fault], watched: Times) -> Line:
    watched_s = sum(_within(watched, one.since, one.until) for one in units)
    heard = sum(any(begin <= one.began <= end for begin, end in watched) for one in some)
    repairs = [
        (one.ended - one.began).total_seconds()
        for one in some
        if one.ended and any(begin <= one.began and one.ended <= end for begin, end in watched)
    ]
    lost = [one.lost for one in some if one.lost is not None]
    void = [one.void for one in some if one.void is not None]
    return Line(
        name,
        len({(one.table, one.device) for one in units}),
        watched_s,
        len(some),
        sum(one.ended is None for one in some),
        watched_s / heard if watched_s and heard else None,
        sum(repairs) / len(repairs) if repairs else None,
        sum(repairs),
        max(sum(lost), 0.0) if lost or not some else None,
        sum(void) if void or not some else None,
        len(some) - len(lost),
    )


def _within(watched: Times, since: datetime, until: datetime) -> float:
    return sum(max((min(end, until) - max(begin, since)).total_seconds(), 0.0) for begin, end in watched)
