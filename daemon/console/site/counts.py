"""Chips and money counted at the tables: openings, closings, fills, credits and drops, each entered by two people.

One person enters a count and it waits here; a second one confirms it. Then it goes to the edge as an event of the
dealer's page (`table.counted`), where the journal keeps it. An entry is never changed: another one takes it back, also
by two people. What a table won follows from its counts as the trade computes it:

    win = closing + credits + drop - opening - fills
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from daemon.console.site.store import Store
from daemon.journal.rows import EPOCH, micros_of
from protocols.contract.people import may_be_one_person
from protocols.fdl.console import Count

__all__ = ["COUNTS", "BadCount", "Counts", "Entry", "Tally", "tally"]

COUNTS: tuple[Count, ...] = get_args(Count)
MOST_WAITING = 50
"""Entries of one table that wait for a second person."""
State: TypeAlias = Literal["waiting", "confirmed", "withdrawn"]
_SCHEMA = """
CREATE TABLE IF NOT EXISTS table_count (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, place TEXT NOT NULL, kind TEXT NOT NULL,
    amount INTEGER NOT NULL, reverses TEXT NOT NULL, at INTEGER NOT NULL, by TEXT NOT NULL, state TEXT NOT NULL,
    second TEXT NOT NULL, decided INTEGER, sent INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS table_count_time ON table_count (place, at);
CREATE INDEX IF NOT EXISTS table_count_unsent ON table_count (n) WHERE state = 'confirmed' AND sent = 0;
"""
_COLUMNS = "id, place, kind, amount, reverses, at, by, state, second, decided, sent"


class BadCount(Exception):
    """The entry is not taken. `key` is its words in the catalogs."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class Entry(Struct, frozen=True):
    """One count. `reverses`: the entry that it takes back. `sent`: whether it was handed to the dealer's page."""

    id: str
    table: str
    kind: Count
    amount: int
    reverses: str
    at: datetime
    by: str
    state: State
    second: str
    decided: datetime | None
    sent: bool


class Tally(Struct, frozen=True):
    """The counts of a table in a period. `win` is None while a needed one is `missing`."""

    sums: dict[Count, int]
    missing: tuple[Count, ...]

    @property
    def win(self) -> int | None:
        """The win by the formula of the trade."""
        of = self.sums
        return None if self.missing else of["closing"] + of["credit"] + of["drop"] - of["opening"] - of["fill"]


def tally(entries: Iterable[Entry]) -> Tally:
    """Add up the confirmed entries of one table, without those that were taken back.

    It needs as many openings as closings, at least one of each, and a drop. Fills and credits are optional.
    """
    confirmed = [one for one in entries if one.state == "confirmed"]
    gone = {one.reverses for one in confirmed if one.reverses}
    standing = [one for one in confirmed if not one.reverses and one.id not in gone]
    times = Counter(one.kind for one in standing)
    sums = {kind: sum(one.amount for one in standing if one.kind == kind) for kind in COUNTS}
    needed = max(times["opening"], times["closing"], 1)
    missing = tuple(kind for kind in COUNTS if kind in ("opening", "closing") and times[kind] < needed)
    return Tally(sums, missing if times["drop"] else (*missing, "drop"))


class Counts:
    """The counts in the console's store."""

    def __init__(self, store: Store) -> None:
        """Raises BadStore."""
        self._store = store
        store.has(_SCHEMA)

    def enter(
        self, id_: str, table: str, kind: Count, amount: int, *, at: datetime, by: str, reverses: str = ""
    ) -> None:
        """Enter a count by the first person; a repeated form changes nothing. Raises BadCount, BadStore."""
        known = self.one(id_)
        if known is not None:
            if (known.table, known.kind, known.amount, known.reverses, known.by) != (table, kind, amount, reverses, by):
                raise BadCount("floor.bad_form")
            return
        if reverses:
            self._may_be_reversed(reverses, table, kind, amount)
        waiting = "SELECT count(*) FROM table_count WHERE place = ? AND state = 'waiting'"
        if self._store.db.execute(waiting, (table,)).fetchone()[0] >= MOST_WAITING:
            raise BadCount("floor.too_many_wait")
        values = (id_, table, kind, amount, reverses, micros_of(at), by)
        with self._store.write() as db:
            db.execute(
                f"INSERT INTO table_count ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', '', NULL, 0)",  # noqa: S608
                values,
            )

    def _may_be_reversed(self, id_: str, table: str, kind: Count, amount: int) -> None:
        """Raises BadCount."""
        earlier = self.one(id_)
        fits = earlier is not None and (earlier.table, earlier.kind, earlier.amount) == (table, kind, amount)
        if earlier is None or not fits or earlier.state != "confirmed" or earlier.reverses:
            raise BadCount("floor.bad_form")
        taken = "SELECT count(*) FROM table_count WHERE reverses = ? AND state != 'withdrawn'"
        if self._store.db.execute(taken, (id_,)).fetchone()[0]:
            raise BadCount("floor.reversed_already")

    def decide(self, id_: str, table: str, state: Literal["confirmed", "withdrawn"], by: str, at: datetime) -> Entry:
        """Confirm an entry by a second person, or withdraw it. Raises BadCount, BadStore."""
        entry = self.one(id_)
        if entry is None or entry.table != table:
            raise BadCount("floor.bad_form")
        if state == "confirmed" and may_be_one_person(entry.by, by):
            raise BadCount("floor.second_person")
        if entry.state != "waiting":
            if (entry.state, entry.second) == (state, by):
                return entry
            raise BadCount("floor.decided_already")
        with self._store.write() as db:
            db.execute(
                "UPDATE table_count SET state = ?, second = ?, decided = ? WHERE id = ? AND state = 'waiting'",
                (state, by, micros_of(at), id_),
            )
        decided = self.one(id_)
        assert decided is not None
        return decided

    def was_sent(self, id_: str) -> None:
        """Note that an entry was handed to the dealer's page, which keeps it until the edge has it. Raises BadStore."""
        with self._store.write() as db:
            db.execute("UPDATE table_count SET sent = 1 WHERE id = ?", (id_,))

    def unsent(self) -> list[Entry]:
        """The confirmed entries that were not handed over yet."""
        return self._found("state = 'confirmed' AND sent = 0", ())

    def one(self, id_: str) -> Entry | None:
        """The entry; None where there is none."""
        return next(iter(self._found("id = ?", (id_,))), None)

    def entries(self, table: str, since: datetime, until: datetime) -> list[Entry]:
        """The entries of a table from `since` to before `until`, the oldest first, with their later reversals."""
        within = "place = ?1 AND at >= ?2 AND at < ?3"
        later = f"reverses IN (SELECT id FROM table_count WHERE {within})"  # noqa: S608 - a constant
        return self._found(f"({within}) OR {later}", (table, micros_of(since), micros_of(until)))

    def waiting(self, table: str) -> list[Entry]:
        """All entries that wait for a second person."""
        return self._found("place = ? AND state = 'waiting'", (table,))

    def _found(self, where: str, values: tuple[Any, ...]) -> list[Entry]:
        query = f"SELECT {_COLUMNS} FROM table_count WHERE {where} ORDER BY n"  # noqa: S608 - constants
        return [_entry(row) for row in self._store.db.execute(query, values)]


def _entry(row: tuple[Any, ...]) -> Entry:
    id_, table, kind, amount, reverses, at, by, state, second, decided, sent = row
    when = None if decided is None else _time(decided)
    return Entry(id_, table, kind, amount, reverses, _time(at), by, state, second, when, bool(sent))


def _time(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)
