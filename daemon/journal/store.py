"""The journal: makes every event of a process durable before it is published, in a chain that shows any change.

SQLite in WAL mode with synchronous=FULL: a commit that returned survives a power cut. `seq` is gapless for each table
and is counted only here. The same transaction stores what must change with the events: a driver's memory, a ruleset's
open round, a consumer's offset. Commits run in the event loop, which was faster than a worker thread at every measured
rate; there is one caller and one connection. A lock file excludes a second writer; readers may read at any time.

Each row carries the hash of its table's chain (`hash_chain`). With a key the heads of all chains are signed from time
to time. The write-ahead log is checked before SQLite opens it, because SQLite ends it at the first damaged byte. A file
that has reached its size is closed, renamed and never written again: n, seq and chains continue in the next one. Reads
include the closed files, as far as they are there: they may be moved to an archive and put back at any time.
"""

import contextlib
import fcntl
import os
import shlex
import sqlite3
import stat
import time
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from daemon.journal import reader
from daemon.journal.hash_chain import (
    VERSION,
    Noted,
    Statement,
    chain_start,
    encode_noted,
    encode_statement,
    fingerprint,
    row_hash,
)
from daemon.journal.reader import FileLock, closed_files, heads_at, note_of, open_to_read, readers_of
from daemon.journal.rows import BEYOND, COLUMNS, FIRST, Entry, Row, instant, micros_of, row_of, time_of
from daemon.journal.schema import SCHEMA, TAMPERED, WrongSchema, connected, differences
from daemon.journal.wal import anything_in_log, changed_log, grow_log, log_of
from daemon.whole_files import sync_folder
from protocols.contract.documents import JournalHead
from protocols.contract.topics import EARLIEST, LATEST

__all__ = ["BadJournal", "ClosedFile", "Journal", "Signer", "moved_away", "not_started"]

_INSERT = f"INSERT INTO event ({COLUMNS}, hash) VALUES (?,?,?,?,?,?,?,?,?,?)"  # noqa: S608 - a constant
# Pages of the write-ahead log between checkpoints. The file is grown to that size beforehand: a commit that changes no
# file size took 0.33 ms where one that does took 0.52 (median of 300, ext4, one event each).
_WAL_PAGES = 4000
_PAGE = 4096
_MODE = 0o640  # of each file, or less: the umask may take more away
_TOO_OPEN = 0o037  # rights that group and others must not have

# Nanoseconds: a folder may change twice within one timestamp of its file system.
_SETTLED = 3_000_000_000
_UPTIME = "lived"
_CLOSED_REMEDY = "put back the copy that you keep of it, or move it away"
_WRITTEN = "nothing was lost that was written before"
# Errors of damaged content: text that is not UTF-8, a time outside the calendar.
_UNREADABLE = (sqlite3.Error, OSError, ValueError, TypeError, OverflowError)


class BadJournal(Exception):
    """The journal cannot be opened, written or read. The message names the file and the remedy."""


class Signer(Protocol):
    """Signs checkpoints; implemented in daemon/journal/signing.py."""

    @property
    def id(self) -> str:
        """The name of the public key."""
        ...

    def sign(self, statement: bytes) -> bytes:
        """The signature."""
        ...


class ClosedFile(Struct, frozen=True):
    """A closed file: rows `after` + 1 to `to`, and of each place those after the seq in `origin`.

    `ended` is the latest of all known times, because the clock may have been wrong: its beginning, its last row, the
    end of the file before it, the beginning of the next one. `uptime_s` is how long the journal's processes had run by
    then; None: an earlier release closed it.
    """

    path: Path
    journal: str
    number: int
    after: int
    to: int
    origin: dict[str, int]
    began: datetime
    ended: datetime
    size: int
    uptime_s: int | None


def _seconds(raw: bytes | None) -> int | None:
    return int(raw) if raw is not None and raw.isdigit() else None


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _made(path: Path, journal: Path) -> int:
    """Open a file of a journal; create it if it is missing, for owner and group. Raises OSError.

    It belongs to the journal's owner, also if root creates it, as SQLite does with its own files.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        if os.geteuid() == 0:
            owner = (journal if journal.exists() else journal.parent).stat()
            os.fchown(file, owner.st_uid, owner.st_gid)
    except BaseException:
        os.close(file)
        raise
    return file


def moved_away(path: Path) -> str:
    """The remedy for beginning a new journal at `path`: closed files that stay behind would be in its way."""
    file = path.resolve()
    names = [shlex.quote(str(file)), shlex.quote(f"{file}-") + "*"]
    try:
        any_closed = bool(closed_files(file))
    except OSError:
        any_closed = True  # as far as is known
    if any_closed:
        before, after = shlex.quote(f"{file.with_suffix('')}."), file.suffix and shlex.quote(file.suffix)
        names.append(f"{before}{'[0-9]' * 6}{after}")
    return f"move all its files away together and keep them (`mv {' '.join(names)} PLACE`): a new one is made"


def not_started(path: Path) -> str:
    """The consequence if the journal at `path` is not as it was written."""
    return f"The journal is not as it was written, and nothing was started. To play on, {moved_away(path)}"


class Journal:
    """One file with one writer, and the closed files before it."""

    def __init__(self, path: Path, *, now: Callable[[], datetime] = _utc_now) -> None:
        """Open or create it. `now` is the wall clock, for the age of files. Raises BadJournal."""
        self.path = path
        self._now = now
        self._signer: Signer | None = None
        self._sign_rows = 0
        self._noting = False
        self._noted = -1
        self._closed: list[ClosedFile] = []
        self._foreign: list[ClosedFile] = []
        self._unread: list[BadJournal] = []
        self._failed: dict[Path, str] = {}
        self._known: dict[Path, tuple[tuple[int, ...], ClosedFile]] = {}
        self._looked = 0
        self._reading: tuple[Path, sqlite3.Connection] | None = None
        try:
            path.parent.mkdir(0o750, parents=True, exist_ok=True)
            self._file = path.resolve()
            lock, readers = self._file.with_name(self._file.name + "-lock"), readers_of(self._file)
            for one in (lock, readers):
                os.close(_made(one, self._file))
            self._lock = FileLock(lock, fcntl.LOCK_EX, os.O_RDWR)
        except BlockingIOError as error:
            raise BadJournal(f"{path}: database is locked; another process may be using it") from error
        except OSError as error:
            raise BadJournal(f"{path}: {error.strerror}; check disk, owner and rights") from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        self.tightened = self._tighten()
        """Files whose rights were reduced at this start, because other users could read or write them."""
        self._stood, self._since = self._newest, time.monotonic()
        self._uptime_s = _seconds(self._memory.get(_UPTIME)) or 0

    def _open(self) -> None:
        """Read the state of the file, also after a crash of the last process. Raises BadJournal."""
        self._check_log()
        try:
            os.close(_made(self._file, self._file))  # SQLite gives the files beside it the same rights
        except OSError as error:
            raise BadJournal(f"{self.path}: {error.strerror}; check disk, owner and rights") from error
        try:
            self._db = sqlite3.connect(
                self._file, timeout=reader.LOCKED_TIMEOUT, isolation_level=None, cached_statements=32
            )
        except sqlite3.Error as error:
            raise BadJournal(f"{self.path}: {error}; check disk, owner and rights") from error
        try:
            self._take_up()
        except WrongSchema as error:
            self._db.close()
            raise BadJournal(self._tampered(error.texts)) from error
        except sqlite3.Error as error:
            self._db.close()
            remedy = "another process may be using it" if "locked" in str(error) else "check disk, owner and rights"
            raise BadJournal(f"{self.path}: {error}; {remedy}") from error
        except BaseException:
            self._db.close()
            raise
        self._grow_log()

    def _check_log(self) -> None:
        """Check the log before SQLite reads it and overwrites or deletes the rest. Raises BadJournal."""
        log = log_of(self._file)
        try:
            if said := changed_log(self._file):
                raise BadJournal(
                    f"{log}: {said}; it was changed, or the disk lost data that it had reported as durable"
                    f": keep all files as they are and tell the inspector\n{not_started(self.path)}"
                )
            there = self._file.exists() and self._file.stat().st_size
            if not there and anything_in_log(self._file):
                remedy = f"put it back beside {log}, or move that away and keep it: a new journal is begun"
                raise BadJournal(f"{self.path}: there is no such file, and its log is there; {remedy}")
        except OSError as error:
            raise BadJournal(f"{log}: {error.strerror}; check disk, owner and rights") from error

    def _take_up(self) -> None:
        """Read the state. Raises BadJournal for another version, WrongSchema, sqlite3.Error."""
        db = self._db
        connected(db)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            remedy = f"run that version, or {moved_away(self.path)}"
            raise BadJournal(f"{self.path} was written by version {version}; {remedy}")
        if found := differences(db, version):  # before anything is written
            raise WrongSchema(found)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
        db.execute("PRAGMA cache_size=-2048")
        if version == 0:
            name = uuid.uuid4().hex[:8].encode()
            _begin(db, self._now(), {"journal": name})
            with contextlib.suppress(OSError):  # `noted` reports a note that cannot be written
                note = note_of(self._file)
                self._noting = not note.exists() or not note.read_bytes().strip(b"\0")
        self._schema_checked = -1
        self._check_schema()
        self._memory: dict[str, bytes] = dict(db.execute("SELECT key, value FROM memory"))
        self.name = self._memory["journal"].decode()
        file, n, at = db.execute("SELECT file, n, time FROM beginning").fetchone()
        self._number: int = file
        self._after: int = n
        self._began = time_of(at)
        self._origin: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._heads: dict[str, bytes] = {}
        for place, seq, head in db.execute("SELECT place, seq, hash FROM origin"):
            self._origin[place] = self._last[place] = seq
            self._heads[place] = head
        for place, seq, head in heads_at(db):
            self._last[place] = seq
            self._heads[place] = head
        newest = db.execute("SELECT n, time FROM event ORDER BY n DESC LIMIT 1").fetchone()
        self.head: int
        self._newest: int  # microseconds
        self.head, self._newest = newest or (self._after, at)
        if instant(self._newest) is None:
            self._newest = at
        found = db.execute("SELECT number, n, statement FROM checkpoint ORDER BY number DESC LIMIT 1").fetchone()
        self._checkpoint: int = found[0] if found else 0
        self._signed: int = found[1] if found else 0
        self._statement: str = fingerprint(found[2]) if found else ""
        new, twin = (self._file.with_name(name) for name in _names(self._file, self._number))
        self.note()
        with contextlib.suppress(OSError):  # the last process ended between closing this file and using the next one
            new.unlink(missing_ok=True)
            if twin.samefile(self._file):
                twin.unlink()

    def _check_schema(self) -> None:
        """Check that the schema did not change since it was compared. Within a transaction it cannot. Raises
        WrongSchema.

        A change through SQLite raises this counter; otherwise SQLite continues with the schema that it has read.
        """
        counter = self._db.execute("PRAGMA schema_version").fetchone()[0]
        if counter == self._schema_checked:
            return
        if found := differences(self._db, VERSION):
            raise WrongSchema(found)
        self._schema_checked = counter

    def _tampered(self, texts: Iterable[str]) -> str:
        """The differences of the schema, one on each line, and the remedy."""
        lines = [f"{self.path}: its schema is not what this program writes: {one}; {TAMPERED}" for one in texts]
        return "\n".join([*lines, not_started(self.path)])

    def _unwritten(self, error: sqlite3.Error) -> BadJournal:
        if isinstance(error, WrongSchema):
            said = f"its schema was changed while it was in use: {error}; {TAMPERED}"
            return BadJournal(f"{self.path}: {said}; {_WRITTEN}")
        return BadJournal(f"{self.path}: {error}; {_WRITTEN}")

    def _grow_log(self) -> None:
        grow_log(self._file, _WAL_PAGES * (_PAGE + 24))

    def _tighten(self) -> list[str]:
        beside = [self._file.with_name(self._file.name + end) for end in ("-wal", "-shm", "-lock")]
        tightened: list[str] = []
        with contextlib.suppress(OSError):  # an unreadable file is reported when it is needed
            for one in (self._file, *beside, readers_of(self._file), note_of(self._file), *closed_files(self._file)):
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    mode = stat.S_IMODE(one.stat().st_mode)
                    if mode & _TOO_OPEN:
                        one.chmod(mode & ~_TOO_OPEN)
                        tightened.append(str(one))
        return tightened

    def memory(self, key: str) -> bytes | None:
        """The last value of `key`."""
        return self._memory.get(key)

    def memories(self, prefix: str) -> dict[str, bytes]:
        """All values whose keys begin with `prefix`."""
        return {key: value for key, value in self._memory.items() if key.startswith(prefix)}

    def last(self, place: str) -> int:
        """The highest seq of a table; 0 before the first."""
        seq: int = self._last.get(place, 0)
        return seq

    # ---- writing

    def append(self, entries: Iterable[Entry], memory: Mapping[str, bytes | None] | None = None) -> list[Row]:
        """Write everything in one transaction and return when it is durable; None deletes a key. Raises BadJournal."""
        rows: list[Row] = []
        values: list[tuple[object, ...]] = []
        n, last, heads = self.head, dict[str, int](), dict[str, bytes]()
        for entry in entries:
            n += 1
            place, device, type_, at, data, wire, cause = (
                entry.place,
                entry.device,
                entry.type,
                entry.time,
                entry.data,
                entry.wire,
                entry.cause,
            )
            if type(data) is not bytes or type(wire) is not bytes:
                raise BadJournal(f"{self.path}: data and wire must be bytes; {_WRITTEN}")
            if not EARLIEST <= at < LATEST:
                text = f"time {at.isoformat()} is not between {EARLIEST.year} and {LATEST.year}"
                raise BadJournal(f"{self.path}: {text}; set the clock of this computer; nothing was written")
            seq = (last.get(place) or self._last.get(place, 0)) + 1
            last[place] = seq
            before = heads.get(place) or self._heads.get(place) or chain_start(self.name, place)
            micros = micros_of(at)
            heads[place] = head = row_hash(before, n, place, seq, device, type_, micros, data, wire, cause)
            rows.append(Row(n, place, seq, device, type_, at, data, wire, cause))
            values.append((n, place, seq, device, type_, micros, data, wire, cause, head))
        kept = {key: value for key, value in (memory or {}).items() if value is not None}
        gone = [key for key, value in (memory or {}).items() if value is None]
        signed: tuple[int, str] | None = None
        signer = self._signer if n - self._signed >= self._sign_rows and self.note() == "" else None
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._check_schema()
            self._db.executemany(_INSERT, values)
            if kept:
                self._db.executemany("INSERT OR REPLACE INTO memory VALUES (?,?)", kept.items())
            if gone:
                self._db.executemany("DELETE FROM memory WHERE key = ?", [(key,) for key in gone])
            if signer is not None:
                signed = self._write_checkpoint(signer, n, {**self._last, **last}, {**self._heads, **heads})
            self._db.execute("COMMIT")
        except BaseException as error:
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise self._unwritten(error) from error
            raise  # a value that cannot be written is a bug of the caller
        self.head = n
        self._last.update(last)
        self._heads.update(heads)
        if rows:
            self._newest = micros
        self._memory.update(kept)
        for key in gone:
            self._memory.pop(key, None)
        if signed is not None:
            self._checkpoint, self._statement = signed
            self._signed = n
        return rows

    def _write_checkpoint(
        self, signer: Signer, n: int, last: dict[str, int], heads: dict[str, bytes]
    ) -> tuple[int, str]:
        """Write a checkpoint within a transaction; returns its number and the hash that the next one names."""
        number = self._checkpoint + 1
        named = {place: (last[place], heads[place].hex()) for place in sorted(heads)}
        raw = encode_statement(
            Statement("checkpoint", VERSION, self.name, number, n, self._now(), named, self._statement, signer.id)
        )
        self._db.execute("INSERT INTO checkpoint VALUES (?,?,?,?)", (number, n, raw, signer.sign(raw)))
        return number, fingerprint(raw)

    def signed_by(self, signer: Signer, rows: int) -> None:
        """From now on sign the heads of all chains after `rows` rows, and at the end."""
        self._signer, self._sign_rows, self._noting = signer, rows, True

    @property
    def newest_time(self) -> datetime:
        """The time of the newest row; of an empty journal that of its beginning."""
        return instant(self._newest) or EARLIEST

    @property
    def unsigned(self) -> int:
        """The number of rows since the last checkpoint."""
        return self.head - self._signed

    def sign(self) -> bool:
        """Sign the heads of all chains, if there is a key and a new row. Raises BadJournal.

        A checkpoint needs a note of the one before, so a note is never more than one behind.
        """
        if self.note() or self._signer is None or not self.unsigned:
            return False
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._check_schema()
            signed = self._write_checkpoint(self._signer, self.head, self._last, self._heads)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._unwritten(error) from error
        self._checkpoint, self._statement = signed
        self._signed = self.head
        self.note()
        return True

    @property
    def checkpoint(self) -> Noted:
        """The last checkpoint; number 0 before the first."""
        return Noted(self.name, self._checkpoint, self._signed, self._statement)

    def signed_checkpoint(self) -> JournalHead | None:
        """The last checkpoint with its statement and signature; None before the first."""
        sql = "SELECT statement, signature FROM checkpoint WHERE number = ?"
        row = self._db.execute(sql, (self._checkpoint,)).fetchone()
        if row is None:
            return None
        return JournalHead(self.name, self._checkpoint, self._signed, row[0].decode(), b64encode(row[1]).decode())

    def noted(self) -> str:
        """From now on keep a note of the last checkpoint beside the file, with or without a key; see `note`."""
        self._noting = True
        return self.note()

    def note(self) -> str:
        """Write the note of the last checkpoint. Returns the reason of a failure, or nothing.

        The checkpoint is durable before, so a note is at most one behind and never ahead, unless the journal lost
        signed rows. A note is one sector that is written in place, so it is never torn. A journal without a checkpoint
        has a note with number 0, from its first row on.
        """
        if not self._noting or self._noted == self._checkpoint:
            return ""
        path = note_of(self._file)
        try:
            new = not path.exists()
            file = _made(path, self._file)
            try:
                os.pwrite(file, encode_noted(self.checkpoint), 0)
                os.fdatasync(file)
            finally:
                os.close(file)
            if new:
                sync_folder(self._file)
        except OSError as error:
            return f"{path}: {error.strerror}; check disk, owner and rights"
        self._noted = self._checkpoint
        return ""

    def accept(self) -> Path | None:
        """Write the note again, because a person accepts the journal as it is. Raises BadJournal.

        The old note is kept under another name, which is returned.
        """
        note = note_of(self._file)
        kept = note.with_name(f"{note.name}-{self._now():%Y%m%dT%H%M%SZ}") if os.path.lexists(note) else None
        try:
            if kept is not None:
                note.rename(kept)
        except OSError as error:
            raise BadJournal(f"{note}: {error.strerror}; check disk, owner and rights") from error
        if said := self.noted():
            raise BadJournal(said)
        return kept

    def _roll_back(self) -> None:
        """Roll the transaction back. If that fails, too, no later transaction can begin, and each reports why."""
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    # ---- reading

    def after(self, n: int, limit: int) -> list[Row]:
        """At most `limit` rows after the n-th, in order. Raises BadJournal, also if a closed file is missing."""
        if n >= self._after:
            return self._in_order(n, self._read("n > ? ORDER BY n LIMIT ?", n, limit))
        rows: list[Row] = []
        for one in self.closed:
            if one.to > n + len(rows) and len(rows) < limit:
                self._read_closed(rows, one.path, "n > ? ORDER BY n LIMIT ?", n + len(rows), limit - len(rows))
        if (rows[0].n if rows else self._after + 1) != n + 1:
            missing = f"the closed file that holds row {n + 1} is missing"
            raise BadJournal(f"{self.path}: {missing}; put it back beside this one")
        if len(rows) < limit:
            rows += self._read("n > ? ORDER BY n LIMIT ?", self._after, limit - len(rows))
        return self._in_order(n, rows)

    def _in_order(self, n: int, rows: list[Row]) -> list[Row]:
        """Refuse rows out of order: the sender would otherwise send the same rows for ever."""
        if rows and (rows[0].n, rows[-1].n) != (n + 1, n + len(rows)):
            raise BadJournal(f"{self.path}: row {n + 1} or a later one is out of order; run feltd journal verify")
        return rows

    def range(self, place: str, first: int, last: int) -> list[Row]:
        """The rows of a table from seq `first` to `last`, as far as their files are readable."""
        which = "place = ? AND seq BETWEEN ? AND ? ORDER BY seq"
        rows: list[Row] = []
        if first <= self._origin.get(place, 0):
            closed = self.closed
            ends = [*(one.origin.get(place, 0) for one in closed), self._origin.get(place, 0)][1:]
            for one, end in zip(closed, ends, strict=True):
                if first <= end and one.origin.get(place, 0) < last:
                    self._read_back(rows, one.path, which, place, first, last)
        return rows + self._read(which, place, first, last)

    def latest(self, place: str, types: tuple[str, ...], since: int = 0) -> Row | None:
        """The last row of a table with one of `types` after seq `since`.

        None if it was, or may have been, in a missing or unreadable file: an older row would not be the last. Files
        without a row after `since` are not opened.
        """
        which = f"place = ? AND seq > ? AND type IN ({','.join('?' * len(types))}) ORDER BY seq DESC LIMIT 1"
        found = self._read(which, place, since, *types)
        before, n = self._origin.get(place, 0), self._after
        for one in reversed(self.closed):
            if found or before <= since or one.to != n:
                break
            if not self._read_back(found, one.path, which, place, since, *types):
                break
            before, n = one.origin.get(place, 0), one.after
        return found[0] if found else None

    def unreadable(self, place: str, first: int) -> Row | None:
        """The first row of a table from seq `first` on that cannot be read as it is."""
        found = self._read(
            "place = ? AND seq >= ? AND (time < ? OR time >= ?) ORDER BY seq LIMIT 1", place, first, FIRST, BEYOND
        )
        if first <= self._origin.get(place, 0):
            found = [one for one in self.range(place, first, self._origin[place]) if one.unreadable] + found
        return found[0] if found else None

    def oldest(self, place: str) -> int:
        """The seq of a table from which on no row is missing, closed files included; 0 if there never was a row.

        Rows before a gap do not count, because a reader would request the gap for ever. While a closed file is
        unreadable, no row is reported as gone (1). No row is read for this.
        """
        before, n = self._origin.get(place, 0), self._after
        for one in reversed(self.closed):
            if one.to != n:
                break
            before, n = one.origin.get(place, 0), one.after
        if self._unread:
            before = 0
        return before + 1 if self.last(place) else 0

    def _read(self, which: str, *values: str | int) -> list[Row]:
        """The rows of this file that `which` selects. Raises BadJournal."""
        try:
            found = self._db.execute(f"SELECT {COLUMNS} FROM event WHERE {which}", values).fetchall()  # noqa: S608
            return [row_of(one) for one in found]
        except _UNREADABLE as error:
            raise BadJournal(f"{self.path}: {error}; {moved_away(self.path)}") from error

    def _read_closed(self, rows: list[Row], of: Path, which: str, *values: str | int) -> None:
        """Add the rows of a closed file to `rows`; none of a file that was just moved away. Raises BadJournal.

        Rows before an unreadable page are added.
        """
        try:
            for one in self._reader(of).execute(f"SELECT {COLUMNS} FROM event WHERE {which}", values):  # noqa: S608
                rows.append(row_of(one))  # noqa: PERF401 - keeps the rows before an error
        except _UNREADABLE as error:
            self._stop_reading()
            if of.exists():
                raise BadJournal(_unread(of, error)) from error
            self._looked = 0

    def _read_back(self, rows: list[Row], of: Path, which: str, *values: str | int) -> bool:
        """Add rows of a closed file for history, which must not stop play. False if a part was unreadable."""
        try:
            self._read_closed(rows, of, which, *values)
        except BadJournal as error:
            self._failed[of] = str(error)
            return False
        return True

    def _reader(self, path: Path) -> sqlite3.Connection:
        """Keeps one closed file open for sequential reads."""
        if self._reading is None or self._reading[0] != path:
            self._stop_reading()
            self._reading = path, open_to_read(path)
        return self._reading[1]

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading[1].close()
            self._reading = None

    # ---- files

    @property
    def closed(self) -> list[ClosedFile]:
        """The readable closed files of this journal, in order. Raises BadJournal."""
        self._look()
        return self._closed

    @property
    def foreign(self) -> list[Path]:
        """Files named like closed files that do not precede this one, usually of another journal.

        Raises BadJournal.
        """
        self._look()
        return [one.path for one in self._foreign]

    @property
    def unread(self) -> list[str]:
        """The closed files that could not be read, with the reasons, until they are moved or replaced.

        Their rows are not reported as gone: they exist, and a copy may be put back later. Raises BadJournal.
        """
        self._look()
        return list(self._failed.values())

    def check_closed(self) -> None:
        """Before a start: every closed file is readable and belongs to this journal. Raises BadJournal."""
        self._look()
        if self._unread:
            raise self._unread[0]
        if self._foreign:
            lines = [f"{self.path} is file {self._number} of journal {self.name}; these are no files before it:"]
            lines += [f"{one.path}, file {one.number} of journal {one.journal}" for one in self._foreign[:5]]
            lines += [f"and {len(self._foreign) - 5} more"] if len(self._foreign) > 5 else []
            files = shlex.join(str(one.path) for one in self._foreign)
            lines.append(
                "They would be in the way when this one is closed, and nothing was started. Move them away and keep"
                f" them (`mv {files} PLACE`), or put back the {self.path.name} that they belong to"
            )
            raise BadJournal("\n".join(lines))

    def _look(self) -> None:
        """List the closed files if the folder changed. Raises BadJournal only for the folder.

        An unreadable file is left out: it may just be copied.
        """
        try:
            changed = self._file.parent.stat().st_ctime_ns
        except OSError as error:
            raise BadJournal(f"{self._file.parent}: {error.strerror}; check disk, owner and rights") from error
        if changed == self._looked:
            return
        try:
            paths = closed_files(self._file)
        except OSError as error:  # files listed before may still be there, so nothing is reported as gone
            self._unread = [BadJournal(f"{self._file.parent}: {error.strerror}; check disk, owner and rights")]
            self._looked = 0
            return
        closed: list[ClosedFile] = []
        known: dict[Path, tuple[tuple[int, ...], ClosedFile]] = {}
        self._foreign, self._unread = [], []
        for path in paths:
            try:
                known[path] = self._known_file(path)
            except BadJournal as error:
                if path.exists():
                    self._unread.append(error)
                continue
            one = known[path][1]
            mine = one.journal == self.name and one.number < self._number
            which = closed if mine and path.name == _names(self._file, one.number)[1] else self._foreign
            which.append(one)
        ended = datetime.min.replace(tzinfo=UTC)
        next_began = [*(one.began for one in closed), self._began][1:]
        for at, one in enumerate(closed):
            ended = max(ended, one.ended, next_began[at])
            closed[at] = replace(one, ended=ended)
        if closed != self._closed:
            self._stop_reading()  # an open file would keep its room on the disk
        self._failed = {path: said for path, said in self._failed.items() if known.get(path) is self._known.get(path)}
        self._closed, self._known = closed, known
        # What is being copied grows without a change of the folder.
        self._looked = 0 if self._unread or time.time_ns() - changed < _SETTLED else changed

    def _known_file(self, path: Path) -> tuple[tuple[int, ...], ClosedFile]:
        """A closed file; it is read only if it changed. Raises BadJournal."""
        try:
            now = path.stat()
        except OSError as error:
            raise BadJournal(f"{path}: {error.strerror}; {_CLOSED_REMEDY}") from error
        mark = (now.st_dev, now.st_ino, now.st_size)
        before = self._known.get(path)
        return before if before is not None and before[0] == mark else (mark, _closed_file(path, now.st_size))

    def age(self, one: ClosedFile, now: datetime) -> timedelta:
        """The minimum time since it was closed, even if a clock was wrong.

        By the wall clock (`now`), by the newest row, by the row that was the newest when this process started plus the
        time since, and by the uptime of the journal's processes since it was closed. A wrong clock is also in the next
        row, and in the row that the next process finds. While the computer is off, files do not age.
        """
        since = round((time.monotonic() - self._since) * 1_000_000)
        ages = [at - micros_of(one.ended) for at in (micros_of(now), self._newest, self._stood + since)]
        if one.uptime_s is not None:
            ages.append((self.uptime_s - one.uptime_s) * 1_000_000)
        return timedelta(microseconds=min(ages))

    @property
    def uptime_s(self) -> int:
        """Seconds that the journal's processes ran, as far as they were recorded."""
        return self._uptime_s + int(time.monotonic() - self._since)

    def record_uptime(self) -> None:
        """Record the uptime; unrecorded time does not count. Raises BadJournal."""
        self.append((), {_UPTIME: b"%d" % self.uptime_s})

    @property
    def size(self) -> int:
        """Bytes that this file, its log and the closed files use on the disk."""
        files = (self._file, log_of(self._file))
        return sum(one.size for one in self.closed) + sum(one.stat().st_size for one in files if one.exists())

    @property
    def file_size(self) -> int:
        """Bytes in this file, some of which may still be in its log. Raises BadJournal."""
        try:
            pages: int = self._db.execute("PRAGMA page_count").fetchone()[0]
        except sqlite3.Error as error:
            raise BadJournal(f"{self.path}: {error}; check disk, owner and rights") from error
        return pages * _PAGE

    def rotate(self) -> bool:
        """Close this file and continue in the next one. Raises BadJournal.

        False if it has no row, a reader has it open, or a foreign file has its new name: try again later. A closed file
        has no log beside it and can be read anywhere without a right to write. If the process is killed here, the next
        one finds the old file or the new one under the name, complete.
        """
        if self.head == self._after or os.path.lexists(self._file.with_name(_names(self._file, self._number)[1])):
            return False
        try:
            readers = FileLock(readers_of(self._file), fcntl.LOCK_EX, os.O_RDWR, 0.0)
        except BlockingIOError:
            return False
        except OSError as error:
            raise BadJournal(f"{readers_of(self._file)}: {error.strerror}; check disk, owner and rights") from error
        try:
            self.sign()  # only now, so that a retry adds no entry each time
            self.record_uptime()
            return self._rotate()
        finally:
            readers.release()

    def _rotate(self) -> bool:
        try:
            self._db.execute("PRAGMA busy_timeout=0")
            try:
                self._db.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                self._db.execute(f"PRAGMA busy_timeout={reader.LOCKED_TIMEOUT * 1000:.0f}")
                return False
            checkpoint = self._db.execute("SELECT * FROM checkpoint ORDER BY number DESC LIMIT 1").fetchone()
            self._db.close()
            new, closed = (self._file.with_name(name) for name in _names(self._file, self._number))
            new.unlink(missing_ok=True)  # its content does not become a part of the journal
            os.close(_made(new, self._file))
            with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous=FULL")
                origin = [(place, seq, self._heads[place]) for place, seq in self._last.items()]
                _begin(db, self._now(), self._memory, self._number + 1, self.head, origin, checkpoint)
            os.link(self._file, closed)
            new.replace(self._file)
            closed.chmod(0o440)
            sync_folder(self._file)
        except (sqlite3.Error, OSError) as error:
            self._db.close()
            self._looked = 0
            with contextlib.suppress(BadJournal):  # the console continues with it when there is room again
                self._open()
            raise BadJournal(f"{self.path}: cannot begin the next file: {error}; nothing was lost") from error
        self._looked = 0
        self._open()
        return True

    def forget(self, oldest: ClosedFile) -> None:
        """Delete a closed file. Raises BadJournal."""
        self._stop_reading()
        try:
            oldest.path.unlink(missing_ok=True)
        except OSError as error:
            raise BadJournal(f"{oldest.path}: {error.strerror}; check owner and rights") from error
        self._looked = 0

    def close(self) -> None:
        """Sign unsigned rows and close the file."""
        with contextlib.suppress(BadJournal, sqlite3.ProgrammingError):  # closed before, or a full disk
            self.sign()
        self._stop_reading()
        self._db.close()
        self._lock.release()


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: committed at the end, rolled back on an error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _begin(
    db: sqlite3.Connection,
    now: datetime,
    memory: Mapping[str, bytes],
    file: int = 1,
    n: int = 0,
    origin: Iterable[tuple[str, int, bytes]] = (),
    checkpoint: tuple[object, ...] | None = None,
) -> None:
    """Create a new file in one transaction, with what it inherits from the one before."""
    with _transaction(db):
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        db.execute("INSERT INTO beginning VALUES (?,?,?)", (file, n, micros_of(now)))
        db.executemany("INSERT INTO memory VALUES (?,?)", memory.items())
        db.executemany("INSERT INTO origin VALUES (?,?,?)", origin)
        if checkpoint is not None:
            db.execute("INSERT INTO checkpoint VALUES (?,?,?,?)", checkpoint)
        db.execute(f"PRAGMA user_version={VERSION}")


def _names(file: Path, number: int) -> tuple[str, str]:
    """The name of the file after `file` before it is used, and that of `file` when it is closed."""
    return f"{file.name}-new", f"{file.stem}.{number:06}{file.suffix}"


def _closed_file(path: Path, size: int) -> ClosedFile:
    """The record of a closed file by itself, without the next one. Raises BadJournal."""
    try:
        with contextlib.closing(open_to_read(path)) as db:
            name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
            number, after, at = db.execute("SELECT file, n, time FROM beginning").fetchone()
            origin = dict(db.execute("SELECT place, seq FROM origin"))
            to, last = db.execute("SELECT n, time FROM event ORDER BY n DESC LIMIT 1").fetchone() or (after, at)
            ran = db.execute("SELECT value FROM memory WHERE key = ?", (_UPTIME,)).fetchone()
            began, ended, uptime_s = time_of(at), max(time_of(at), time_of(last)), _seconds(ran and ran[0])
            return ClosedFile(path, name, number, after, to, origin, began, ended, size, uptime_s)
    except (*_UNREADABLE, AttributeError) as error:
        raise BadJournal(_unread(path, error)) from error


def _unread(closed: Path, error: Exception) -> str:
    """The reason why a closed file is not read, and the remedy."""
    remedy = f"{error.remedy}; then {_CLOSED_REMEDY}" if isinstance(error, WrongSchema) else _CLOSED_REMEDY
    return f"{closed}: {error}; {remedy}"
