"""Incidents and silences as values, and as rows of the console's store."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from daemon.console.alerts.handling import Stage, Step, decode_steps, encode_steps
from daemon.journal.rows import EPOCH, micros_of
from protocols.contract.reasons import Reason

__all__ = ["AlertKey", "Filter", "Incident", "NotOpen", "Shown", "Silence", "time_of"]

AlertKey: TypeAlias = tuple[str, str]
"""Table and name of an alert; the table is "" for a process or the broker."""


SCHEMA = """
CREATE TABLE IF NOT EXISTS incident (
    n INTEGER PRIMARY KEY, place TEXT NOT NULL, name TEXT NOT NULL, heard TEXT NOT NULL, code TEXT NOT NULL,
    text TEXT NOT NULL, remedy TEXT NOT NULL, severity TEXT NOT NULL, device TEXT NOT NULL, state TEXT NOT NULL,
    began INTEGER NOT NULL, changed INTEGER NOT NULL, ended INTEGER, times INTEGER NOT NULL,
    by TEXT NOT NULL, acknowledged INTEGER, note TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS incident_round (n INTEGER PRIMARY KEY, round TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS incident_steps (n INTEGER PRIMARY KEY, steps TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS incident_reasons (n INTEGER PRIMARY KEY, reasons TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS incident_by_place ON incident (place, n);
CREATE INDEX IF NOT EXISTS incident_by_end ON incident (state, ended);
CREATE TABLE IF NOT EXISTS silence (
    n INTEGER PRIMARY KEY, place TEXT NOT NULL, device TEXT NOT NULL, code TEXT NOT NULL,
    began INTEGER NOT NULL, until INTEGER NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL
) STRICT;
"""


COLUMNS = (
    "n, place, name, heard, code, text, remedy, severity, device, state, began, changed, ended, times, by, "
    "acknowledged, note"
)


# These have tables of their own: a file of the build of 2026-11-24 has the table above.
MORE_COLUMNS = ("round", "steps", "reasons")
MORE = ", ".join(
    f"coalesce((SELECT {column} FROM incident_{column} AS of WHERE of.n = incident.n), '')"  # noqa: S608 - constants
    for column in MORE_COLUMNS
)
UPSERT = f"INSERT OR REPLACE INTO incident ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608
_Reasons: TypeAlias = tuple[Reason | None, Reason | None]


class NotOpen(Exception):
    """The incident or silence no longer exists, is not open, or does not allow this action.

    `key` and `values` are its words in the catalogs; the message is English.
    """

    def __init__(self, key: str, message: str, **values: str | int) -> None:
        super().__init__(message)
        self.key = key
        self.values = values


class Incident(Struct, frozen=True):
    """One incident. Times are the console's, UTC; `began` is the device's own, where the alert has it.

    `heard`: "broker" for an alert of the broker, "console" for the console's own. `times`: how often it began. `by`:
    who has it, or had it last; `acknowledged`: when it was last taken or closed by hand; `note`: the last one; all stay
    when it is open again. `round`: which one waits, where the alert names it. `steps`: what people did, the oldest
    first. `why` and `to_do`: text and remedy as codes, where the alert has them.
    """

    n: int
    table: str
    name: str
    heard: Literal["broker", "console"]
    code: str
    text: str
    remedy: str
    severity: Literal["warning", "error"]
    device: str
    state: Literal["open", "acknowledged", "resolved"]
    began: datetime
    changed: datetime
    ended: datetime | None = None
    times: int = 1
    by: str = ""
    acknowledged: datetime | None = None
    note: str = ""
    round: str = ""
    steps: tuple[Step, ...] = ()
    why: Reason | None = None
    to_do: Reason | None = None

    @property
    def key(self) -> AlertKey:
        """The key of its alert."""
        return self.table, self.name

    @property
    def stage(self) -> Stage:
        """The stage of the person who has taken it (`by`)."""
        if self.state != "acknowledged":
            return ""
        last = self.steps[-1].kind if self.steps else "taken"
        return "taken" if last == "released" else last


class Silence(Struct, frozen=True):
    """Maintenance: matching incidents are hidden from lamps and webhooks. "" matches every table, device or code."""

    n: int
    table: str
    device: str
    code: str
    began: datetime
    until: datetime
    by: str
    why: str

    def fits(self, table: str, device: str, code: str) -> bool:
        """Whether the silence matches, at any time."""
        return self.table in ("", table) and self.device in ("", device) and self.code in ("", code)


class Shown(Struct, frozen=True):
    """An incident as pages show it."""

    incident: Incident
    silence: Silence | None


class Filter(Struct, frozen=True):
    """A selection of incidents, open or over; "" and None match everything. `since` and `until`: of their beginning.

    `among`: only these tables, and incidents without a table.
    """

    among: tuple[str, ...] = ()
    table: str = ""
    device: str = ""
    code: str = ""
    severity: str = ""
    since: datetime | None = None
    until: datetime | None = None


def time_of(micros: int) -> datetime:
    """The time that the store keeps as microseconds since 1970, UTC."""
    return EPOCH + timedelta(microseconds=micros)


def incident_values(one: Incident) -> tuple[str | int | None, ...]:
    """A row in the order of COLUMNS: the fields without the last four."""
    ended = None if one.ended is None else micros_of(one.ended)
    acknowledged = None if one.acknowledged is None else micros_of(one.acknowledged)
    return (
        one.n,
        one.table,
        one.name,
        one.heard,
        one.code,
        one.text,
        one.remedy,
        one.severity,
        one.device,
        one.state,
        micros_of(one.began),
        micros_of(one.changed),
        ended,
        one.times,
        one.by,
        acknowledged,
        one.note,
    )


def more_values(one: Incident) -> Iterator[tuple[str, tuple[int, str]]]:
    """The rows of the tables of MORE_COLUMNS, each with the name of its column."""
    if one.round:
        yield "round", (one.n, one.round)
    if one.steps:
        yield "steps", (one.n, encode_steps(one.steps))
    reasons = "" if one.why is None else msgspec.json.encode((one.why, one.to_do)).decode()
    yield "reasons", (one.n, reasons)


def incident_of(row: tuple[Any, ...]) -> Incident:
    n, place, name, heard, code, text, remedy, severity, device, state, began, changed, ended, times = row[:14]
    by, acknowledged, note, round_, steps, reasons = row[14:]
    why, to_do = msgspec.json.decode(reasons, type=_Reasons) if reasons else (None, None)
    return Incident(
        n,
        place,
        name,
        heard,
        code,
        text,
        remedy,
        severity,
        device,
        state,
        time_of(began),
        time_of(changed),
        None if ended is None else time_of(ended),
        times,
        by,
        None if acknowledged is None else time_of(acknowledged),
        note,
        round_,
        decode_steps(steps),
        why,
        to_do,
    )


def silence_of_row(row: tuple[Any, ...]) -> Silence:
    n, table, device, code, began, until, by, why = row
    return Silence(n, table, device, code, time_of(began), time_of(until), by, why)
