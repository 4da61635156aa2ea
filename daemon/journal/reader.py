"""Reads journals without the right to write: one file or all files, also while the writer runs.

A reader holds a shared lock, so that its file keeps its name while it is open. It delays no writer.
"""

import contextlib
import fcntl
import os
import re
import sqlite3
import time
from base64 import b64encode
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from daemon.journal.rows import COLUMNS, Row, row_of
from daemon.journal.schema import check_readable, connected
from daemon.journal.wal import log_of
from daemon.progress import Progress, silent
from protocols.contract.documents import JournalHead

__all__ = [
    "FileLock",
    "Files",
    "Page",
    "Reading",
    "closed_files",
    "heads_at",
    "left_of",
    "note_of",
    "open_closed",
    "open_journal",
    "open_live",
    "open_to_read",
    "page_after",
    "readers_of",
]

# Seconds: a process that is being replaced may still be closing the file.
LOCKED_TIMEOUT = 5.0


class Reading(sqlite3.Connection):
    """A read-only connection. While it is open, its file keeps its name."""

    lock: "FileLock | None" = None

    def close(self) -> None:
        """Close, and allow the file to be renamed."""
        super().close()
        if self.lock is not None:
            self.lock.release()


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that never writes and delays no writer. Raises sqlite3.Error or OSError.

    Raises WrongSchema, a sqlite3.Error, for a file whose schema is not the one of this version. SQLite finds its log by
    the file's name, which must therefore not change under a reader. If this user may not create SQLite's shared index
    beside the file, it is read as immutable: right for a closed file or a copy on read-only media, refused beside a
    writer's log.
    """
    file = path.resolve()
    lock = None
    try:
        lock = FileLock(readers_of(file), fcntl.LOCK_SH, os.O_RDONLY)
    except BlockingIOError as error:
        raise sqlite3.OperationalError("its writer is just closing it; try again") from error
    except FileNotFoundError:
        pass  # without a lock file no writer has opened it
    try:
        try:
            return _connect(file, "mode=ro", lock)
        except sqlite3.OperationalError:
            if not file.exists() or file.with_name(file.name + "-wal").exists():
                raise
            return _connect(file, "mode=ro&immutable=1", lock)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def _connect(file: Path, how: str, lock: "FileLock | None") -> Reading:
    db = sqlite3.connect(
        f"{file.as_uri()}?{how}", timeout=LOCKED_TIMEOUT, isolation_level=None, uri=True, factory=Reading
    )
    try:
        connected(db)
        check_readable(db)
    except BaseException:
        db.close()
        raise
    db.lock = lock
    return db


def readers_of(file: Path) -> Path:
    """The lock of the readers: shared by them, exclusive while the file is renamed."""
    return file.with_name(file.name + "-readers")


class FileLock:
    """The lock of a file. The system releases it when the process ends."""

    def __init__(self, path: Path, kind: int, flags: int, patience: float | None = None) -> None:
        """Wait for the lock for the time that another process may need to end. Raises OSError, BlockingIOError after
        that.
        """
        self._file = -1
        self._file = os.open(path, flags | os.O_CLOEXEC)
        until = time.monotonic() + (LOCKED_TIMEOUT if patience is None else patience)
        while True:
            try:
                fcntl.flock(self._file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    self.release()
                    raise
                time.sleep(0.02)
            else:
                return

    def release(self) -> None:
        """Release it; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.release()


def heads_at(db: sqlite3.Connection, n: int = 2**63 - 1) -> list[tuple[str, int, bytes]]:
    """The last row of each table in this file up to row `n`: place, seq, hash.

    Uses the index from table to table, so that few rows are read.
    """
    found: list[tuple[str, int, bytes]] = []
    place = db.execute("SELECT min(place) FROM event").fetchone()[0]
    while place is not None:
        last = "SELECT place, seq, hash FROM event WHERE place = ? AND n <= ? ORDER BY seq DESC LIMIT 1"
        found += db.execute(last, (place, n)).fetchall()
        place = db.execute("SELECT min(place) FROM event WHERE place > ?", (place,)).fetchone()[0]
    return found


def note_of(path: Path) -> Path:
    """The path of the note with the last checkpoint."""
    file = path.resolve()
    return file.with_name(file.name + "-signed")


def closed_files(path: Path) -> list[Path]:
    """The closed files of the journal at `path`, in order: journal.db has journal.000001.db and so on beside it.

    Raises OSError if the folder cannot be listed.
    """
    pattern = re.compile(re.escape(path.stem) + r"\.\d{6}" + re.escape(path.suffix))
    try:
        return sorted(one for one in path.resolve().parent.iterdir() if pattern.fullmatch(one.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def left_of(path: Path) -> list[str]:
    """The files that show that a missing journal was at `path`: its closed files, its log, its lock."""
    beside = (log_of(path), path.with_name(path.name + "-lock"))
    return [one.name for one in (*closed_files(path), *beside) if one.exists()]


def open_live(path: Path) -> tuple[sqlite3.Connection, list[Path]]:
    """The file under `path` and the closed ones before it, consistent with each other."""
    db = open_to_read(path)  # from here on no writer closes it
    try:
        return db, closed_files(path)
    except BaseException:
        db.close()
        raise


def open_journal(path: Path) -> tuple[sqlite3.Connection, list[Path], str]:
    """The live file, the closed ones before it, the journal's name. Raises sqlite3.Error or OSError."""
    if not path.is_file():
        raise FileNotFoundError(2, "there is no such journal", str(path))
    with contextlib.ExitStack() as stack:
        live, before = open_live(path)
        stack.callback(live.close)
        name: str = live.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
        stack.pop_all()
    return live, before, name


def open_closed(closed: Path) -> sqlite3.Connection:
    try:
        return open_to_read(closed)
    except (sqlite3.Error, OSError) as error:
        if closed.exists():
            raise
        raise FileNotFoundError(2, "was just moved away; run it again", str(closed)) from error


class Page(Struct, frozen=True):
    """Rows of a journal in the order of their numbers, its name, its last row and its last signed checkpoint."""

    journal: str
    head: int
    rows: tuple[Row, ...]
    head_signed: JournalHead | None


def page_after(path: Path, journal: str, n: int, most: int) -> Page:
    """At most `most` rows after row `n`, of one file; none where the journal has another name.

    Raises sqlite3.Error or OSError, also where the closed file with row `n` + 1 is not there.
    """
    live, closed, name = open_journal(path)
    with contextlib.closing(live):
        began = int(live.execute("SELECT n FROM beginning").fetchone()[0])
        head = int(live.execute("SELECT max(n) FROM event").fetchone()[0] or began)
        signed = _signed_head(live, name)
        if name != journal:
            return Page(name, head, (), signed)
        if n >= began:
            return Page(name, head, _rows_after(live, n, most), signed)
    for one in closed:
        with contextlib.closing(open_closed(one)) as db:
            if rows := _rows_after(db, n, most):
                if rows[0].n == n + 1:
                    return Page(name, head, rows, signed)
                break
    raise sqlite3.DatabaseError(f"the closed file with row {n + 1} is not there; put it back beside {path}")


def _rows_after(db: sqlite3.Connection, n: int, most: int) -> tuple[Row, ...]:
    query = f"SELECT {COLUMNS} FROM event WHERE n > ? ORDER BY n LIMIT ?"  # noqa: S608 - a constant
    return tuple(row_of(values) for values in db.execute(query, (n, most)))


def _signed_head(db: sqlite3.Connection, name: str) -> JournalHead | None:
    found = db.execute("SELECT number, n, statement, signature FROM checkpoint ORDER BY number DESC LIMIT 1").fetchone()
    if found is None:
        return None
    number, row, statement, signature = found
    return JournalHead(name, number, row, statement.decode(), b64encode(signature).decode())


class Files:
    """The files of a journal, searched from the newest to the oldest. The live file and one other are open."""

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.Error or OSError."""
        self.live, before, self.name = open_journal(path)
        self._live_path = path
        self._paths = [*before, path]
        self._other: tuple[Path, sqlite3.Connection] | None = None
        self._origins: dict[Path, dict[str, int]] = {}

    def newest(self, most: int, which: str, *values: Any, progress: Progress = silent) -> list[tuple[Any, ...]]:
        """At most `most` of the rows that `which` selects, the newest first. `progress` gets the searched part."""
        found: list[tuple[Any, ...]] = []
        query = f"SELECT {COLUMNS}, hash FROM event WHERE {which} ORDER BY seq DESC LIMIT ?"  # noqa: S608
        for done, path in enumerate(reversed(self._paths)):
            if len(found) >= most:
                break
            progress(done / len(self._paths))
            found += self._opened(path).execute(query, (*values, most - len(found))).fetchall()
        return found

    def row(self, place: str, seq: int) -> tuple[Any, ...] | None:
        """One row of a table. The first seq of each file is read once."""
        query = f"SELECT {COLUMNS}, hash FROM event WHERE place = ? AND seq = ?"  # noqa: S608
        for path in reversed(self._paths):
            if path not in self._origins:
                self._origins[path] = dict(self._opened(path).execute("SELECT place, seq FROM origin"))
            if self._origins[path].get(place, 0) < seq:
                found: tuple[Any, ...] | None = self._opened(path).execute(query, (place, seq)).fetchone()
                return found
        return None

    def _opened(self, path: Path) -> sqlite3.Connection:
        """The connection to a file. Only one is kept open: a process may open 1024 files, and a journal may have
        more.
        """
        if path == self._live_path:
            return self.live
        if self._other is None or self._other[0] != path:
            self._let_go()
            self._other = path, open_closed(path)
        return self._other[1]

    def _let_go(self) -> None:
        if self._other is not None:
            self._other[1].close()
            self._other = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()
        self.live.close()
