"""The ended rounds of each table in the console's store, with their versions; found by date or one after the other.

Verdicts come in order and without a gap (`SiteState.on_verdict`). What was published while the console was offline is
requested again from the journal of the rules, up to MOST_AWAY. A `stretch` is a period of which every verdict was
received; rounds can be missing only between two stretches. Rows are written once a second; a killed console requests
the unwritten ones again. The last `keep` ends of each table stay.
"""

import asyncio
import contextlib
import sqlite3
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Literal, TypeAlias, get_args

import msgspec
import structlog
from msgspec import Struct

from daemon import logs
from daemon.broker.session import UNREADABLE
from daemon.console.site import turnover
from daemon.console.site.store import BadStore, Store
from daemon.journal.rows import EPOCH, cause_of, micros_of
from daemon.read_model import ROUNDS, SiteState
from protocols.contract.reasons import Reason
from protocols.contract.results import ENDS, BadRound, Result, Suspended
from protocols.contract.topics import Wire
from protocols.contract.wagers import WagerAnswer
from rules.facts import result_with_facts

__all__ = ["SHOWS", "Asked", "Ended", "Interval", "Note", "Position", "Records", "Rested", "Rounds", "Show"]

EVERY_S = 1.0
MOST_WAITING: Final = 15_000
"""Rows that wait to be written: for each round its end, its money and, where it has some, its evidence."""
MOST_NOTES: Final = 50
"""Suspensions and refused bets of one round."""
MOST_STRETCHES: Final = 1_000
MOST_AWAY: Final = timedelta(hours=12)
"""A console that was offline for longer leaves a gap, which pages and reports show."""
PRUNE_AFTER: Final = 64

Show: TypeAlias = Literal["all", "resolved", "void", "suspended", "corrected", "refused"]
SHOWS: tuple[Show, ...] = get_args(Show)
_FILTERS: Mapping[Show, str] = {
    "all": "1",
    "resolved": "l.void = 0",
    "void": "l.void = 1",
    "corrected": "f.newest != f.n",
    "suspended": "EXISTS (SELECT 1 FROM round_note WHERE place = f.place AND round = f.round AND kind = 'suspended')",
    "refused": "EXISTS (SELECT 1 FROM round_note WHERE place = f.place AND round = f.round AND kind = 'refused')",
}

# `again`: 1 if an earlier row is an end of the same round; `newest`: in the row of its first end, `n` of its last end.
SCHEMA = """
CREATE TABLE IF NOT EXISTS round_end (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
    round TEXT NOT NULL, journal TEXT NOT NULL, seq INTEGER NOT NULL, void INTEGER NOT NULL, again INTEGER NOT NULL,
    newest INTEGER NOT NULL, digest BLOB NOT NULL, data BLOB NOT NULL, UNIQUE (place, id, at)
) STRICT;
CREATE INDEX IF NOT EXISTS round_end_time ON round_end (place, again, at, n);
CREATE INDEX IF NOT EXISTS round_end_round ON round_end (place, round, n);
CREATE TABLE IF NOT EXISTS round_note (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, round TEXT NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL, id TEXT NOT NULL, said TEXT NOT NULL, UNIQUE (place, round, kind, id)
) STRICT;
CREATE TABLE IF NOT EXISTS round_seen (
    place TEXT NOT NULL, round TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, said BLOB NOT NULL,
    PRIMARY KEY (place, round, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS round_note_time ON round_note (place, at);
CREATE TABLE IF NOT EXISTS round_stretch (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, journal TEXT NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, UNIQUE (place, journal, first)
) STRICT;
"""
_END = "INSERT OR IGNORE INTO round_end VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?)"
_NOTE = "INSERT OR IGNORE INTO round_note VALUES (NULL, ?, ?, ?, ?, ?, ?)"
_SEEN = "INSERT OR IGNORE INTO round_seen VALUES (?, ?, ?, ?, ?)"
_STRETCH = (
    "INSERT INTO round_stretch VALUES (NULL, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (place, journal, first) DO UPDATE SET last = excluded.last, until = excluded.until"
)
_LINE = (
    "SELECT f.n, f.at, l.n, l.at, l.kind, f.round, l.journal, l.seq, l.digest, l.data, "
    "(SELECT count(*) FROM round_note WHERE place = f.place AND round = f.round AND kind = 'suspended'), "
    "(SELECT count(*) FROM round_note WHERE place = f.place AND round = f.round AND kind = 'refused') "
    "FROM round_end f JOIN round_end l ON l.n = f.newest WHERE f.place = ? AND f.again = 0 "
)


class Position(Struct, frozen=True):
    """The position of a round in the list of its table: the time and the number of its first end."""

    at: datetime
    n: int


class Ended(Struct, frozen=True):
    """A round: the time of its first end, and its last version. `digest`: SHA-256 of the data of the verdict."""

    position: Position
    at: datetime
    kind: str
    round: str
    journal: str
    seq: int
    digest: bytes
    result: Result
    corrected: bool
    suspended: int = 0
    refused: int = 0


class Note(Struct, frozen=True):
    """A suspension or a refused bet in a round before its end."""

    at: datetime
    kind: str
    reason: Reason | None
    law: str = ""
    terminal: str = ""


class Rested(Struct, frozen=True):
    """An event that a result rests on: its type and device, without its values."""

    id: str
    at: datetime
    device: str
    type: str


class Interval(Struct, frozen=True):
    """A period of which every verdict of a table was received."""

    since: datetime
    until: datetime


class Asked(Struct, frozen=True):
    """A selection of the rounds of a table."""

    place: str
    since: datetime
    until: datetime
    show: Show = "all"


class _NoteText(Struct, frozen=True):
    """The stored part of a suspension or a refused bet."""

    reason: Reason | None = None
    law: str = ""
    terminal: str = ""


class _Stretch(Struct):
    """The current stretch: its first and last seq, and their times."""

    first: int
    last: int
    since: datetime
    until: datetime


_Row: TypeAlias = tuple[str, tuple[str | int | bytes, ...], str, str, int]
"""Statement and values; place, journal and seq of the verdict. A new stretch begins where the row is lost.

Seq 0: no verdict.
"""


class Rounds:
    """Writes the received rounds; `records` reads them."""

    def __init__(self, store: Store, site: SiteState, keep: int) -> None:
        """Load the last results into the site, and request the rounds that ended since. Raises BadStore."""
        self._store = store
        self._site = site
        self._keep = keep
        self._waiting: deque[_Row] = deque()
        self._stretches: dict[tuple[str, str], _Stretch] = {}
        self._closed: deque[tuple[str, str, _Stretch]] = deque(maxlen=MOST_STRETCHES)
        self._unwritten: set[tuple[str, str]] = set()
        self._written: dict[str, int] = {}
        self._notes: dict[str, tuple[str, int]] = {}
        self._failing = False
        self._log: structlog.typing.FilteringBoundLogger = logs.get(console="rounds")
        store.has(SCHEMA)
        store.has(turnover.SCHEMA)
        for (place,) in store.db.execute("SELECT DISTINCT place FROM round_end").fetchall():
            for result in self._last(place):
                site.remember_result(place, result)
        self._take_up()
        site.on_verdict.append(self._on_verdict)
        site.on_refused.append(self._on_refused)

    def _last(self, place: str) -> Iterator[Result]:
        query = "SELECT data FROM round_end WHERE place = ? ORDER BY n DESC LIMIT ?"
        for (data,) in reversed(self._store.db.execute(query, (place, ROUNDS)).fetchall()):
            try:
                yield _result(data)
            except BadRound as error:
                self._log.warning("console.unreadable", table=place, reason=str(error))

    def _take_up(self) -> None:
        """Continue the last stretch of each table; request the missing verdicts unless they are too old."""
        query = (
            "SELECT place, journal, first, last, since, until FROM round_stretch WHERE n IN "
            "(SELECT max(n) FROM round_stretch GROUP BY place)"
        )
        for place, journal, first, last, since, until in self._store.db.execute(query).fetchall():
            self._stretches[place, journal] = _Stretch(first, last, _time(since), _time(until))
            if self._site.now() - _time(until) < MOST_AWAY:
                self._site.resume(place, journal, last + 1)

    async def run(self) -> None:
        """Write once a second, until cancelled."""
        try:
            while True:
                await asyncio.sleep(EVERY_S)
                self.flush()
        finally:
            self.flush()

    # ---- incoming verdicts

    def _on_verdict(self, place: str, wire: Wire) -> None:
        if place not in self._site.tables:  # beyond the limit
            return
        key = place, wire.journal
        stretch = self._stretches.get(key)
        if stretch is None or wire.seq > stretch.last + 1:
            if stretch is not None:
                self._closed.append((*key, stretch))
            self._stretches[key] = _Stretch(wire.seq, wire.seq, wire.time, wire.time)
        elif wire.seq == stretch.last + 1:
            stretch.last, stretch.until = wire.seq, max(stretch.until, wire.time)
        self._unwritten.add(key)
        if wire.type in ENDS:
            self._ended(place, wire)
        elif wire.type == "suspended":
            with contextlib.suppress(*UNREADABLE):
                said = msgspec.json.decode(wire.data, type=Suspended)
                id_ = cause_of(wire.id, wire.cause_journal)
                self._note(
                    place, said.round, wire.time, "suspended", id_, _NoteText(said.reason), (wire.journal, wire.seq)
                )

    def _ended(self, place: str, wire: Wire) -> None:
        data = bytes(wire.data)
        try:
            result = result_with_facts(data)
        except BadRound:  # the read model has logged it
            return
        digest, packed = sha256(data).digest(), zlib.compress(data, 1)
        row = (
            place,
            cause_of(wire.id, wire.cause_journal),
            micros_of(wire.time),
            wire.type,
            result.round,
            wire.journal,
            wire.seq,
        )
        values = (*row, int(result.void is not None), digest, packed)
        self._keep_row((_END, values, place, wire.journal, wire.seq))
        self._keep_row((turnover.UPSERT, turnover.row_of(place, wire.time, result), place, wire.journal, wire.seq))
        if seen := self._evidence(place, result):
            packed = zlib.compress(msgspec.json.encode(seen), 1)
            self._keep_row((_SEEN, (place, result.round, *row[1:3], packed), place, wire.journal, wire.seq))

    def _evidence(self, place: str, result: Result) -> list[Rested]:
        """The events that the result rests on, as far as they were received recently."""
        named = set(result.evidence)
        return [
            Rested(one.id, one.at, device.name, one.type)
            for device in self._site.devices_of(place)
            for one in device.events
            if one.id in named
        ]

    def _on_refused(self, place: str, answer: WagerAnswer) -> None:
        said = _NoteText(answer.reason, answer.law, answer.terminal)
        if answer.round:
            self._note(
                place, answer.round, self._site.now(), "refused", f"{answer.terminal}/{answer.id}", said, ("", 0)
            )

    def _note(
        self, place: str, round_: str, at: datetime, kind: str, id_: str, said: _NoteText, source: tuple[str, int]
    ) -> None:
        of, count = self._notes.get(place, ("", 0))
        count = count + 1 if of == round_ else 1
        self._notes[place] = round_, count
        if count <= MOST_NOTES:
            values = (place, round_, micros_of(at), kind, id_, msgspec.json.encode(said).decode())
            self._keep_row((_NOTE, values, place, *source))

    def _keep_row(self, row: _Row) -> None:
        self._waiting.append(row)
        while len(self._waiting) > MOST_WAITING:
            _, _, place, journal, seq = self._waiting.popleft()
            stretch = self._stretches.get((place, journal))
            if stretch is not None and stretch.first <= seq < stretch.last:  # a new stretch begins after the lost rows
                self._stretches[place, journal] = _Stretch(seq + 1, stretch.last, stretch.until, stretch.until)

    # ---- writing

    def flush(self) -> None:
        """Write all waiting rows, or none of them if the store fails."""
        if not self._unwritten and not self._waiting:
            return
        try:
            with self._store.write() as db:
                self._write(db)
        except BadStore as error:
            if not self._failing:
                self._log.error("rounds.unwritten", reason=str(error))
            self._failing = True
            return
        if self._failing:
            self._log.info("rounds.written", rows=len(self._waiting))
        self._failing = False
        ended = bool(self._waiting)
        for written in (self._waiting, self._closed, self._unwritten):
            written.clear()
        if ended:
            self._site.notify("floor")

    def _write(self, db: sqlite3.Connection) -> None:
        for statement, values, place, _, _ in self._waiting:
            done = db.execute(statement, values)
            if statement is _END and done.rowcount:
                if _chain(db, done.lastrowid or 0, place, str(values[4])):
                    db.execute(turnover.COUNT, (place, int(values[2]) // turnover.DAY))
                self._written[place] = self._written.get(place, 0) + 1
        now = ((place, journal, self._stretches[place, journal]) for place, journal in self._unwritten)
        for place, journal, one in (*self._closed, *now):
            db.execute(_STRETCH, (place, journal, one.first, one.last, micros_of(one.since), micros_of(one.until)))
        for place in [place for place, count in self._written.items() if count >= PRUNE_AFTER]:
            del self._written[place]
            _prune(db, place, self._keep)


def _chain(db: sqlite3.Connection, n: int, place: str, round_: str) -> bool:
    """Store the number of a round's newest end in the row of its first end. Returns whether this end is the first."""
    query = "SELECT n FROM round_end WHERE place = ? AND round = ? AND again = 0 AND n < ? ORDER BY n DESC LIMIT 1"
    first = db.execute(query, (place, round_, n)).fetchone()
    db.execute("UPDATE round_end SET again = ?, newest = ? WHERE n = ?", (int(first is not None), n, n))
    if first is not None:
        db.execute("UPDATE round_end SET newest = ? WHERE n = ?", (n, first[0]))
    return first is None


def _prune(db: sqlite3.Connection, place: str, keep: int) -> None:
    query = "SELECT n FROM round_end WHERE place = ? ORDER BY n DESC LIMIT 1 OFFSET ?"
    last = db.execute(query, (place, keep)).fetchone()
    if last is None:
        return
    db.execute("DELETE FROM round_end WHERE place = ? AND n <= ?", (place, last[0]))
    (oldest,) = db.execute("SELECT min(at) FROM round_end WHERE place = ?", (place,)).fetchone()
    db.execute("DELETE FROM round_note WHERE place = ? AND at < ?", (place, oldest))
    db.execute("DELETE FROM round_money WHERE place = ? AND at < ?", (place, oldest))
    db.execute("DELETE FROM round_seen WHERE place = ? AND at < ?", (place, oldest))
    db.execute("UPDATE round_stretch SET since = max(since, ?) WHERE place = ?", (oldest, place))
    db.execute(
        "DELETE FROM round_stretch WHERE place = ?1 AND (until < ?2 OR n NOT IN "
        "(SELECT n FROM round_stretch WHERE place = ?1 ORDER BY n DESC LIMIT ?3))",
        (place, oldest, MOST_STRETCHES),
    )


# ---- reading


class Records:
    """Reads the stored rounds."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """`db`: the store's connection, or in a thread one of its own."""
        self._db = db

    def listed(self, asked: Asked, limit: int, before: Position | None = None) -> list[Ended]:
        """At most `limit`, the newest first; those before a position."""
        where, values = _where(asked)
        if before is not None:
            where += " AND (f.at, f.n) < (?, ?)"
            values += [micros_of(before.at), before.n]
        query = f"{_LINE} AND {where} ORDER BY f.at DESC, f.n DESC LIMIT ?"
        return list(_each(self._db.execute(query, (asked.place, *values, limit))))

    def in_order(self, asked: Asked, limit: int) -> Iterator[Ended]:
        """At most `limit`, the oldest first, read as they are taken."""
        where, values = _where(asked)
        query = f"{_LINE} AND {where} ORDER BY f.at, f.n LIMIT ?"
        return _each(self._db.execute(query, (asked.place, *values, limit)))

    def counts(self, asked: Asked) -> dict[Show, int]:
        """The number of rounds of each kind; `asked.show` is ignored."""
        columns = ", ".join(f"count(*) FILTER (WHERE {_FILTERS[show]})" for show in SHOWS)
        where, values = _where(msgspec.structs.replace(asked, show="all"))
        query = (
            f"SELECT {columns} FROM round_end f JOIN round_end l ON l.n = f.newest "  # noqa: S608 - constants
            f"WHERE f.place = ? AND f.again = 0 AND {where}"
        )
        return dict(zip(SHOWS, self._db.execute(query, (asked.place, *values)).fetchone(), strict=True))

    def beside(self, asked: Asked, of: Position, *, later: bool) -> Ended | None:
        """The next selected round after or before `of`."""
        where, values = _where(asked)
        sign, order = (">", "") if later else ("<", "DESC")
        query = f"{_LINE} AND {where} AND (f.at, f.n) {sign} (?, ?) ORDER BY f.at {order}, f.n {order} LIMIT 1"
        return next(_each(self._db.execute(query, (asked.place, *values, micros_of(of.at), of.n))), None)

    def one(self, place: str, round_: str) -> Ended | None:
        """The last version of a round; None if it is not stored."""
        query = f"{_LINE} AND f.round = ? ORDER BY f.n DESC LIMIT 1"
        return next(_each(self._db.execute(query, (place, round_))), None)

    def versions(self, place: str, round_: str, limit: int = 100) -> list[Ended]:
        """All ends of a round, the newest first."""
        query = (
            "SELECT n, at, n, at, kind, round, journal, seq, digest, data, 0, 0 FROM round_end "
            "WHERE place = ? AND round = ? ORDER BY n DESC LIMIT ?"
        )
        return list(_each(self._db.execute(query, (place, round_, limit))))

    def notes(self, place: str, round_: str) -> list[Note]:
        """The suspensions and refused bets of a round."""
        query = "SELECT at, kind, said FROM round_note WHERE place = ? AND round = ? ORDER BY n LIMIT ?"
        found = []
        for at, kind, text in self._db.execute(query, (place, round_, 2 * MOST_NOTES)):
            said = msgspec.json.decode(text, type=_NoteText)
            found.append(Note(_time(at), kind, said.reason, said.law, said.terminal))
        return found

    def evidence(self, place: str, round_: str) -> dict[str, Rested]:
        """By id, the events that the results of a round rest on, as far as they had been received when it ended."""
        query = "SELECT said FROM round_seen WHERE place = ? AND round = ?"
        rows = self._db.execute(query, (place, round_)).fetchall()
        found = (msgspec.json.decode(zlib.decompress(said), type=list[Rested]) for (said,) in rows)
        return {one.id: one for some in found for one in some}

    def since(self, place: str) -> datetime | None:
        """The time since which the records of a table are complete; None without records."""
        query = "SELECT since FROM round_stretch WHERE place = ? ORDER BY n DESC LIMIT 1"
        found = self._db.execute(query, (place,)).fetchone()
        return None if found is None else _time(found[0])

    def received_until(self, place: str) -> datetime | None:
        """The time of the last received verdict of a table; None if there is none."""
        (until,) = self._db.execute("SELECT max(until) FROM round_stretch WHERE place = ?", (place,)).fetchone()
        return None if until is None else _time(until)

    def ends(self, place: str, since: datetime, until: datetime, limit: int) -> list[tuple[datetime, str, str]]:
        """Time, kind and round of the newest `limit` ends of a period, the oldest first; a corrected round has
        several.
        """
        query = "SELECT at, kind, round FROM round_end WHERE place = ? AND at >= ? AND at < ? ORDER BY n DESC LIMIT ?"
        rows = self._db.execute(query, (place, micros_of(since), micros_of(until), limit)).fetchall()
        return [(_time(at), kind, round_) for at, kind, round_ in reversed(rows)]

    def gaps(self, place: str, since: datetime, until: datetime) -> list[Interval]:
        """The parts of a period in which verdicts may be missing, up to the last received one."""
        query = "SELECT since, until FROM round_stretch WHERE place = ? ORDER BY since, n"
        found, at, recorded = [], since, False
        for began, ended in self._db.execute(query, (place,)):
            if at < min(_time(began), until):
                found.append(Interval(at, min(_time(began), until)))
            if _time(began) >= until:
                break
            at = max(at, _time(ended))
            recorded = recorded or _time(ended) >= since
        return found if recorded else [Interval(since, until)]


def _where(asked: Asked) -> tuple[str, list[str | int]]:
    where = f"f.at >= ? AND f.at < ? AND {_FILTERS[asked.show]}"
    return where, [micros_of(asked.since), micros_of(asked.until)]


def _each(rows: sqlite3.Cursor) -> Iterator[Ended]:
    for n, first_at, newest, at, kind, round_, journal, seq, digest, data, suspended, refused in rows:
        yield Ended(
            Position(_time(first_at), n),
            _time(at),
            kind,
            round_,
            journal,
            seq,
            digest,
            _result(data),
            corrected=newest != n,
            suspended=suspended,
            refused=refused,
        )


def _result(data: bytes) -> Result:
    return result_with_facts(zlib.decompress(data))


def _time(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)
