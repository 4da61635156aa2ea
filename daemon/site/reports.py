"""The reports of the ledger: a table of figures by groups, for days that are always named."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["AMOUNTS", "GROUPS", "REPORTS", "NoReport", "Played", "Report", "TooSlow", "played", "report", "statement"]

GROUPS: Final = {
    "day": "day",
    "hour": "hour",
    "site": "site",
    "table": "tbl",
    "game": "ruleset",
    "device": "device",
    "code": "code",
    "pool": "pool",
    "kind": "kind",
}
"""The columns by name of the group."""
_TEXTS: Final = {"day": "found.day::text", "hour": "to_char(found.hour, 'YYYY-MM-DD HH24:00')"}
_HOLD: Final = """sum(rounds::int) AS rounds, sum(voided::int) AS voided, sum(wagered) AS wagered,
    sum(paid) AS paid, sum(wagered) - sum(paid) AS hold"""
_ROUNDS: Final = """sum(rounds::int) AS rounds, sum(voided::int) AS voided, sum(corrected::int) AS corrected,
    sum(with_stakes::int) AS with_stakes"""
_SUMS: Final = """(SELECT * FROM feltd.hold_hour WHERE day = ANY(%(rolled)s)
    UNION ALL SELECT * FROM feltd.hold_of_days(%(days)s)) found"""
_FAULTS: Final = """(SELECT *, date_trunc('hour', at AT TIME ZONE 'UTC') AS hour FROM feltd.faults
    WHERE day = ANY(%(days)s)) found"""
_POOLS: Final = "feltd.jackpot_sums found WHERE day = ANY(%(days)s)"
_AMOUNTS: Final = ("staked", "from_house", "to_other_pools", "to_pool", "pending", "paid", "margin")
_BOOKS: Final = "sum(entries)::bigint AS entries, " + ", ".join(
    f"trim_scale(round(sum({one} / unit), 6)) AS {one}" for one in _AMOUNTS
)
AMOUNTS: Final = frozenset({"wagered", "paid", "hold", *_AMOUNTS})
"""The columns with amounts, in smallest units of the currency."""
_OF_ALL: Final = ("day", "hour", "site", "table")
REPORTS: Final = {
    "hold": (_SUMS, _HOLD, (*_OF_ALL, "game")),
    "rounds": (_SUMS, _ROUNDS, (*_OF_ALL, "game")),
    "faults": (_FAULTS, "count(*) AS faults", (*_OF_ALL, "device", "code")),
    "jackpots": (_POOLS, _BOOKS, (*_OF_ALL, "pool", "kind")),
}
"""Source, figures and groups of each. Days are named one by one, so that no partition of another day is read."""
LONGEST_ROUND: Final = timedelta(days=2)
"""A round has the day on which it was opened."""
JUST_NOW: Final = timedelta(minutes=1)
"""A table's computer may still be sending rounds that ended within this time."""
_PLAYED: Final = """
    SELECT tbl, ruleset, width_bucket(at, %(starts)s::timestamptz[]) - 1, count(*), count(*) FILTER (WHERE void),
        count(wagered) FILTER (WHERE NOT void), coalesce(sum(wagered) FILTER (WHERE NOT void), 0),
        coalesce(sum(paid) FILTER (WHERE NOT void), 0), min(at), max(at)
    FROM (
        SELECT tbl, ruleset, void, wagered, paid, CASE WHEN kind <> 'corrected' THEN ended_at ELSE (
            SELECT min(ended_at) FROM feltd.verdicts first WHERE first.day = one.day AND first.site = one.site
                AND first.tbl = one.tbl AND first.round = one.round) END AS at
        FROM feltd.verdicts one WHERE day = ANY(%(days)s) AND site = %(site)s AND ended_at >= %(since)s AND NOT EXISTS (
            SELECT FROM feltd.verdicts later
            WHERE later.kind = 'corrected' AND later.day = ANY(%(days)s) AND later.day = one.day
                AND later.site = one.site AND later.tbl = one.tbl AND later.round = one.round
                AND (later.ended_at, later.seq, later.n) > (one.ended_at, one.seq, one.n))
    ) rounds WHERE at >= %(since)s AND at < %(until)s GROUP BY 1, 2, 3 LIMIT %(most)s"""
"""As the console counts: the last verdict of each round, at the time of its first end."""


class Report(Struct, frozen=True):
    """`complete_until`: all that the backbone had stored before this time was read; None: nothing was read yet."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    complete_until: datetime | None


class Played(Struct, frozen=True):
    """The rounds of a table and a game in one part of a period. Amounts and `with_bets` are those of valid rounds."""

    table: str
    ruleset: str
    part: int
    rounds: int
    void: int
    with_bets: int
    turnover: int
    paid: int
    first: datetime
    last: datetime


class NoReport(Exception):
    """PostgreSQL does not answer, or refuses; the message is that of PostgreSQL."""


class TooSlow(NoReport):
    """A query took longer than it may."""


def statement(kind: str, by: Sequence[str]) -> str:
    """The query, with `rolled` and `days` as parameters. Raises ValueError for a group not in the report."""
    source, figures, known = REPORTS[kind]
    if missing := [name for name in by if name not in known]:
        raise ValueError(f"{kind} has no {missing[0]}")
    keys = ", ".join(f"found.{GROUPS[name]}" for name in by)
    groups = [f'{_TEXTS.get(name, f"found.{GROUPS[name]}")} AS "{name}"' for name in by]
    if {"table", "hour"} <= set(by):  # nearly a group for each row: to sort them is cheaper than a large hash table
        source = f"(SELECT * FROM {source} ORDER BY {keys}) found"  # noqa: S608 - ours
    order = f" GROUP BY {keys} ORDER BY {keys}" if by else ""
    return f"SELECT {', '.join([*groups, figures])} FROM {source}{order}"  # noqa: S608 - ours


def report(
    database: str, kind: str, by: Sequence[str], first: date, until: date, *, most: int | None = None, limit_s: int = 0
) -> Report:
    """The figures from day `first` to before `until`.

    At most `most` rows. `limit_s`: seconds to connect, for each query, and without the network. None and 0: any.

    Raises NoReport, ValueError for a group not in the report, ModuleNotFoundError where psycopg is not installed.
    """
    query = statement(kind, by).encode() + b" LIMIT %(most)s"  # None: all
    from_rounds = REPORTS[kind][0] == _SUMS
    days = {first + timedelta(days=number) for number in range((until - first).days)}
    with _reading(database, limit_s) as db:
        closed = db.execute("SELECT day FROM feltd.rolled WHERE day >= %s AND day < %s", (first, until)).fetchall()
        rolled = {day for (day,) in closed}
        asked = {"rolled": sorted(rolled), "days": sorted(days - rolled if from_rounds else days), "most": most}
        cursor = db.execute(query, asked)
        columns = tuple(one.name for one in cursor.description or ())
        return Report(columns, tuple(cursor.fetchall()), _complete_until(db, "EV" if kind == "faults" else "RES"))


def played(
    database: str, site: str, since: datetime, until: datetime, starts: Sequence[datetime], *, most: int, limit_s: int
) -> tuple[datetime, list[Played]]:
    """The rounds of a site that ended from `since` to before the returned time, which is not after `until`.

    `starts`: when each part of the period begins, the first at `since` or earlier. At most `most` groups.

    Raises NoReport, ModuleNotFoundError where psycopg is not installed.
    """
    with _reading(database, limit_s) as db:
        complete = _complete_until(db, "RES")
        until = max(since, min(until, complete - JUST_NOW)) if complete else since
        opened = (since - LONGEST_ROUND).date()
        days = [opened + timedelta(days=number) for number in range((until.date() - opened).days + 1)]
        asked = {"days": days, "site": site, "since": since, "until": until, "starts": list(starts), "most": most}
        rows = db.execute(_PLAYED.encode(), asked).fetchall()
    return until, [
        Played(table, game, part, rounds, void, bets, int(turnover), int(paid), first, last)
        for table, game, part, rounds, void, bets, turnover, paid, first, last in rows
    ]


@contextlib.contextmanager
def _reading(database: str, limit_s: int) -> Iterator["Connection[Any]"]:
    """One transaction that reads. Raises NoReport, ModuleNotFoundError."""
    import psycopg  # a console without a ledger loads none of it

    limits = dict.fromkeys(("connect_timeout", "keepalives_idle", "keepalives_interval"), limit_s)
    limits["tcp_user_timeout"] = limit_s * 1000
    try:
        with psycopg.connect(database, **limits if limit_s else {}) as db:
            db.read_only, db.isolation_level = True, psycopg.IsolationLevel.REPEATABLE_READ
            db.execute("SET LOCAL work_mem = '128MB'")  # enough for a plan without a sort; a report takes 30 MB
            db.execute("SELECT set_config('statement_timeout', %s, true)", (f"{limit_s}s",))
            yield db
    except psycopg.errors.QueryCanceled as error:
        raise TooSlow(str(error).strip()) from error
    except psycopg.Error as error:
        raise NoReport(str(error).strip()) from error


def _complete_until(db: "Connection[Any]", stream: str) -> datetime | None:
    at = db.execute("SELECT at FROM feltd.position WHERE stream = %s", (stream,)).fetchone()
    return at[0] if at else None
