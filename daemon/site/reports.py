"""The reports of the ledger: a table of figures by groups, for days that are always named."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

import psycopg
from msgspec import Struct
from psycopg import sql

__all__ = ["GROUPS", "REPORTS", "Report", "report", "statement"]

GROUPS: Final = {
    "day": ("day::text", "day::text"),
    "hour": ("to_char(hour, 'YYYY-MM-DD HH24:00')", "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:00')"),
    "site": ("site", "site"),
    "table": ("tbl", "tbl"),
    "game": ("ruleset", ""),
    "device": ("", "device"),
    "code": ("", "code"),
}
"""The expressions over rounds and over faults, by name of the group."""
_HOLD: Final = """sum(rounds)::bigint AS rounds, sum(voided)::bigint AS voided, sum(wagered) AS wagered,
    sum(paid) AS paid, sum(wagered) - sum(paid) AS hold"""
_ROUNDS: Final = """sum(rounds)::bigint AS rounds, sum(voided)::bigint AS voided, sum(corrected)::bigint AS corrected,
    sum(with_stakes)::bigint AS with_stakes"""
_SUMS: Final = """(SELECT * FROM feltd.hold_hour WHERE day = ANY(%(rolled)s)
    UNION ALL SELECT * FROM feltd.hold_of_rounds WHERE day = ANY(%(days)s)) sums"""
_FAULTS: Final = "feltd.faults WHERE day = ANY(%(days)s)"
REPORTS: Final = {"hold": (_SUMS, _HOLD), "rounds": (_SUMS, _ROUNDS), "faults": (_FAULTS, "count(*) AS faults")}
"""Days are named one by one: of the others no partition is read."""


class Report(Struct, frozen=True):
    """`complete_until`: the last time at which the ledger read the stream; None: never."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    complete_until: datetime | None


def statement(kind: str, by: Sequence[str]) -> str:
    """The query, with `rolled` and `days` as parameters. Raises ValueError for a group that the report has not."""
    source, figures = REPORTS[kind]
    expressions = {name: GROUPS[name][source == _FAULTS] for name in by}
    if missing := [name for name, expression in expressions.items() if not expression]:
        raise ValueError(f"{kind} has no {missing[0]}")
    groups = [f"{expression} AS {sql.Identifier(name).as_string()}" for name, expression in expressions.items()]
    numbers = ", ".join(str(number) for number in range(1, len(groups) + 1))
    order = f" GROUP BY {numbers} ORDER BY {numbers}" if by else ""
    return f"SELECT {', '.join([*groups, figures])} FROM {source}{order}"  # noqa: S608 - ours


def report(database: str, kind: str, by: Sequence[str], first: date, until: date) -> Report:
    """The figures from day `first` to before `until`. Raises psycopg.Error, ValueError for a group that it has not."""
    query = statement(kind, by).encode()
    of_faults = kind == "faults"
    days = {first + timedelta(days=number) for number in range((until - first).days)}
    with psycopg.connect(database) as db:
        db.read_only, db.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ
        closed = db.execute("SELECT day FROM feltd.rolled WHERE day >= %s AND day < %s", (first, until)).fetchall()
        rolled = {day for (day,) in closed}
        cursor = db.execute(query, {"rolled": sorted(rolled), "days": sorted(days if of_faults else days - rolled)})
        columns = tuple(one.name for one in cursor.description or ())
        rows = tuple(cursor.fetchall())
        at = db.execute("SELECT at FROM feltd.position WHERE stream = %s", ("EV" if of_faults else "RES",)).fetchone()
    return Report(columns, rows, at[0] if at else None)
