"""The ledger: writes results, books of jackpots and faults from the backbone to PostgreSQL, each once, in any order.

A batch is one transaction with the position in the stream. Two writers may run. The ledger is for reports; the signed
journals are the evidence.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta

import psycopg
from msgspec import Struct
from msgspec.structs import astuple
from psycopg import sql

from daemon import logs
from daemon.site.backbone import Connection
from daemon.site.ledger_rows import Fault, LedgerRow, PoolEntry, Verdict, fault_of, result_of
from daemon.site.ledger_schema import MIGRATIONS
from daemon.site.reader import AGAIN_S, FAILURES, Batch, batches, stop_if_cancelled
from daemon.site.streams import EV, RES

__all__ = ["Ledger", "Store", "migrate"]

AHEAD = timedelta(days=31)
CLOSED = timedelta(days=2)
"""A day of play is over then in every time zone."""
ROLL_UP_S = 900.0
_LOCK = 7206537


class _Table(Struct, frozen=True):
    """A table with rows of one kind. `differing` keeps other contents of a `key`; in a batch the lowest `by` counts."""

    name: str
    by: str
    differing: str = ""
    key: tuple[str, ...] = ()


_TABLES: dict[type[LedgerRow], _Table] = {
    Verdict: _Table("verdicts", "ended_at", "disagreements", ("site", "tbl", "day", "journal", "seq", "n")),
    PoolEntry: _Table("jackpot_entries", "at", "jackpot_disagreements", ("site", "pool", "journal", "seq")),
    Fault: _Table("faults", "at"),
}


def migrate(database: str) -> list[str]:
    """Make or change the schema, as its owner. Raises psycopg.Error."""
    with psycopg.connect(database) as db:
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        db.execute(
            "CREATE TABLE IF NOT EXISTS public.feltd_schema (version integer PRIMARY KEY, at timestamptz NOT NULL)"
        )
        row = db.execute("SELECT coalesce(max(version), 0) FROM public.feltd_schema").fetchone()
        there = int(row[0]) if row else 0
        for version, text in list(enumerate(MIGRATIONS, 1))[there:]:
            db.execute(text)
            db.execute("INSERT INTO public.feltd_schema VALUES (%s, now())", (version,))
        return [f"the ledger has version {len(MIGRATIONS)} of its schema; it had {there}"]


class Store:
    """The writer's connection, for one thread at a time."""

    def __init__(self, database: str) -> None:
        """Raises psycopg.Error."""
        self._db = psycopg.connect(database)
        self._days: set[date] = set()

    def close(self) -> None:
        self._db.close()

    def position(self, stream: str, made: str) -> int:
        """The position in a stream; 0 where the stream was made anew. Raises psycopg.Error."""
        with self._db.transaction():
            query = "SELECT seq FROM feltd.position WHERE stream = %s AND made = %s"
            found = self._db.execute(query, (stream, made)).fetchone()
        return int(found[0]) if found else 0

    def write(self, rows: Sequence[LedgerRow], stream: str, made: str, seq: int, complete_until: datetime) -> int:
        """Write a batch and its position, or nothing. Returns the number of new disagreements. Raises psycopg.Error.

        A writer that is behind the other one does not change the position.
        """
        by_kind = {kind: [one for one in rows if type(one) is kind] for kind in _TABLES}
        with self._db.transaction():
            self._make_days({one.day for one in rows if not isinstance(one, PoolEntry)})
            if days := {one.day for one in by_kind[Verdict]}:
                self._db.execute("SELECT feltd.reopen(%s)", (sorted(days),))
            disagreements = sum(self._enter(kind, some) for kind, some in by_kind.items() if some)
            self._db.execute(
                "INSERT INTO feltd.position VALUES (%s, %s, %s, %s) ON CONFLICT (stream) DO UPDATE"
                " SET seq = excluded.seq, made = excluded.made, at = excluded.at"
                " WHERE position.made <> excluded.made OR position.seq <= excluded.seq",
                (stream, made, seq, complete_until),
            )
        return disagreements

    def roll_up(self, today: date) -> list[date]:
        """Sum up each past day that has no sums yet, in a transaction. Raises psycopg.Error."""
        with self._db.transaction():
            found = self._db.execute(
                "SELECT day FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid, "
                "to_date(right(relname, 8), 'YYYYMMDD') AS day "
                "WHERE inhparent = 'feltd.verdicts'::regclass AND day <= %s "
                "AND day NOT IN (SELECT rolled.day FROM feltd.rolled) ORDER BY day",
                (today - CLOSED,),
            ).fetchall()
        for (day,) in found:
            with self._db.transaction():
                self._db.execute("SELECT feltd.roll_up(%s)", (day,))
        return [day for (day,) in found]

    def _make_days(self, days: set[date]) -> None:
        """Make the partitions of these days and of a month ahead. After a failed commit a new Store makes them
        again.
        """
        today = datetime.now(UTC).date()
        if today not in self._days:
            self._db.execute("SELECT feltd.make_days(%s, %s)", (today, today + AHEAD))
            self._days |= {today + timedelta(days=ahead) for ahead in range(AHEAD.days + 1)}
        for day in sorted(days - self._days):
            self._db.execute("SELECT feltd.make_days(%s, %s)", (day, day))
        self._days |= days

    def _enter(self, kind: type[LedgerRow], rows: Sequence[LedgerRow]) -> int:
        """COPY rows into a temporary table, then insert the new ones. Another content under a key becomes a
        disagreement.
        """
        table = _TABLES[kind]
        target, staged = sql.Identifier("feltd", table.name), sql.Identifier(f"staged_{table.name}")
        columns = sql.SQL(", ").join(map(sql.Identifier, kind.__struct_fields__))
        statement = sql.SQL("CREATE TEMPORARY TABLE {} (LIKE {}) ON COMMIT DROP").format(staged, target)
        self._db.execute(statement)
        with self._db.cursor() as cursor:
            with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(staged, columns)) as copy:
                for row in rows:
                    copy.write_row(astuple(row))
            into = sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ORDER BY {3} ON CONFLICT DO NOTHING")
            cursor.execute(into.format(target, columns, staged, sql.Identifier(table.by)))
            if not table.differing:
                return 0
            named = sql.SQL(", ").join(sql.SQL("s.{}").format(sql.Identifier(one)) for one in kind.__struct_fields__)
            other = sql.SQL(
                "INSERT INTO {} ({}) SELECT {} FROM {} s JOIN {} v USING ({}) WHERE v.digest <> s.digest"
                " ON CONFLICT DO NOTHING"
            )
            key = sql.SQL(", ").join(map(sql.Identifier, table.key))
            kept = sql.Identifier("feltd", table.differing)
            cursor.execute(other.format(kept, columns, named, staged, target, key))
            return int(cursor.rowcount)


class Ledger:
    """The process: reads both streams, each from a stored position."""

    def __init__(self, database: str, connection: Connection) -> None:
        """`database`: libpq's connection string of the writer."""
        self._database, self._connection = database, connection
        self._log = logs.get(ledger="writer")

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(RES, result_of))
            group.create_task(self._follow(EV, fault_of))
            group.create_task(self._roll_up())

    async def _roll_up(self) -> None:
        def once() -> None:
            with contextlib.closing(Store(self._database)) as store:
                store.roll_up(datetime.now(UTC).date())

        reason = ""
        while True:
            await asyncio.sleep(ROLL_UP_S)
            try:
                await asyncio.to_thread(once)
                reason = ""
            except psycopg.Error as error:
                if str(error) != reason:
                    remedy = "it tries again; meanwhile reports read the rounds of these days"
                    self._log.warning("ledger.sums_wait", reason=str(error), remedy=remedy)
                reason = str(error)

    async def _follow(self, stream: str, row_of: Callable[[str, bytes], LedgerRow | None]) -> None:
        """Follow a stream; after each failure of database or backbone begin again from the position."""
        reason = ""
        while True:
            try:
                await self._connection.until_up()
                store = await asyncio.to_thread(Store, self._database)
                try:
                    await self._read(store, stream, row_of)
                finally:
                    await asyncio.to_thread(store.close)
            except (psycopg.Error, *FAILURES) as error:
                stop_if_cancelled()
                if str(error) != reason:
                    self._log.warning(
                        "ledger.waits", stream=stream, reason=str(error), remedy="it tries again; nothing is lost"
                    )
                reason = str(error)
                await asyncio.sleep(AGAIN_S)

    async def _read(self, store: Store, stream: str, row_of: Callable[[str, bytes], LedgerRow | None]) -> None:
        async def position(made: str, _newest: int) -> int:
            return await asyncio.to_thread(store.position, stream, made)

        async for batch in batches(self._connection, stream, position):
            await self._write(store, stream, batch, row_of)

    async def _write(
        self, store: Store, stream: str, batch: Batch, row_of: Callable[[str, bytes], LedgerRow | None]
    ) -> None:
        rows = []
        for message in batch.messages:
            try:
                row = row_of(message.subject, message.data)
            except ValueError as error:
                self._log.error("ledger.refused", subject=message.subject, reason=str(error))
                continue
            if row is not None:
                rows.append(row)
        position = batch.made, batch.last, batch.complete_until
        if disagreeing := await asyncio.to_thread(store.write, rows, stream, *position):
            remedy = (
                "look at feltd.disagreements and feltd.jackpot_disagreements: the first counts until a person decides"
            )
            self._log.error("results.disagree", count=disagreeing, remedy=remedy)
