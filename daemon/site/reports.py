"""The reports of the ledger: a table of figures by groups, for days that are always named."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final

import psycopg
from msgspec import Struct
from psycopg import sql

__all__ = ["GROUPS", "REPORTS", "Report", "report"]

_HOUR: Final = "to_char(date_trunc('hour', {at} AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:00')"
GROUPS: Final = {
    "day": ("day::text", "day::text"),
    "hour": (_HOUR.format(at="ended_at"), _HOUR.format(at="at")),
    "site": ("site", "site"),
    "table": ("tbl", "tbl"),
    "game": ("ruleset", ""),
    "device": ("", "device"),
    "code": ("", "code"),
}
"""By name: the expression over rounds and that over faults."""
_HOLD: Final = """count(*) AS rounds, count(*) FILTER (WHERE void) AS voided, sum(wagered) AS wagered,
    sum(paid) AS paid, sum(wagered) - sum(paid) AS hold"""
_ROUNDS: Final = """count(*) AS rounds, count(*) FILTER (WHERE void) AS voided,
    count(*) FILTER (WHERE kind = 'corrected') AS corrected, count(wagered) AS with_stakes"""
REPORTS: Final = {"hold": ("rounds", _HOLD), "rounds": ("rounds", _ROUNDS), "faults": ("faults", "count(*) AS faults")}


class Report(Struct, frozen=True):
    """`complete_until`: when the ledger read the stream last; None: never."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    complete_until: datetime | None


def report(database: str, kind: str, by: Sequence[str], first: date, until: date) -> Report:
    """The figures from day `first` to before `until`. Raises psycopg.Error, ValueError for a group that it has not."""
    source, figures = REPORTS[kind]
    expressions = [GROUPS[name][source == "faults"] for name in by]
    if missing := [name for name, expression in zip(by, expressions, strict=True) if not expression]:
        raise ValueError(f"{kind} has no {missing[0]}")
    groups = [
        f"{expression} AS {sql.Identifier(name).as_string()}" for name, expression in zip(by, expressions, strict=True)
    ]
    numbers = ", ".join(str(number) for number in range(1, len(by) + 1))
    query = f"SELECT {', '.join([*groups, figures])} FROM feltd.{source} WHERE day >= %s AND day < %s"  # noqa: S608 - ours
    if by:
        query += f" GROUP BY {numbers} ORDER BY {numbers}"
    stream = "EV" if source == "faults" else "RES"
    with psycopg.connect(database) as db:
        db.read_only = True
        cursor = db.execute(query.encode(), (first, until))
        columns = tuple(one.name for one in cursor.description or ())
        rows = tuple(cursor.fetchall())
        at = db.execute("SELECT at FROM feltd.position WHERE stream = %s", (stream,)).fetchone()
    return Report(columns, rows, at[0] if at else None)
