"""The console's own database: users, sessions, incidents, statistics. One SQLite file for its owner only.

WAL with synchronous=FULL: what was committed survives a power cut. One connection, used by the loop's thread; the
command line (`feltd console user …`) has its own, for transactions of milliseconds. Each part of the console
creates its tables with `has`, reads with `db` and writes within `write`. Opening writes only missing tables, so the
data can be read on a full disk, too.
"""

import contextlib
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

__all__ = ["BadStore", "Store"]

# Raise this number when an existing table changes, and add the migration of the old table here.
VERSION = 1
_FELT = 0x66656C74  # SQLite's application_id: a journal or a file of another program is not accepted as a store
_ABOUT = "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"
_BUSY_TIMEOUT_MS = 2000  # milliseconds for the transaction of another process
_ANEW = "move it and the files that begin with its name away and keep them, then put a copy back, or begin anew with \
`feltd console user add`"


class BadStore(Exception):
    """The store cannot be opened, read or written. The message names the file and the remedy."""


class Store:
    """One file, open until `close`. `name` is random and permanent: a new store has a different one."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises BadStore."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
            with contextlib.suppress(FileExistsError):  # SQLite gives the files beside it the same rights
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            mode = path.stat().st_mode
        except OSError as error:
            raise BadStore(f"{path}: {error.strerror}; check disk, owner and rights") from error
        if mode & 0o077:
            raise BadStore(f"{path}: other users may read or write it; chmod 600 {path}")
        try:
            self.db = sqlite3.connect(
                path, timeout=_BUSY_TIMEOUT_MS / 1000, isolation_level=None, cached_statements=256
            )
        except sqlite3.Error as error:
            raise BadStore(f"{path}: {error}; check disk, owner and rights") from error
        try:
            self.name = self._take_up()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # damaged texts, and SQLite's messages about them
            self.db.close()
            raise BadStore(f"{path}: {error}; {_remedy(error)}") from error
        except BaseException:
            self.db.close()
            raise

    def _take_up(self) -> str:
        db = self.db
        db.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
        (version,), (kind,) = (db.execute(f"PRAGMA {one}").fetchone() for one in ("user_version", "application_id"))
        if (version or db.execute("SELECT 1 FROM sqlite_master").fetchone()) and kind != _FELT:
            raise BadStore(f"{self.path} is no store of the console; [console] store must name a file of its own")
        if version not in (0, VERSION):
            raise BadStore(f"{self.path} was written by version {version}; run that version, or {_ANEW}")
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise BadStore(f"{self.path} is damaged ({' '.join(found.split())}); {_ANEW}")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA foreign_keys=ON")
        if version == 0 or self._name() is None:
            with self.write():
                db.execute(_ABOUT)
                db.execute("INSERT OR IGNORE INTO about VALUES ('name', ?)", (secrets.token_hex(4),))
                db.execute(f"PRAGMA application_id={_FELT}")
                db.execute(f"PRAGMA user_version={VERSION}")
        name = self._name()
        assert name is not None
        return name

    def _name(self) -> str | None:
        if not self._there(_ABOUT):
            return None
        found: tuple[str] | None = self.db.execute("SELECT value FROM about WHERE key = 'name'").fetchone()
        return None if found is None else found[0]

    def _there(self, statements: str) -> bool:
        """Whether everything that these statements create exists already."""
        known = {name for (name,) in self.db.execute("SELECT name FROM sqlite_master")}
        return known.issuperset(re.findall(r"IF NOT EXISTS (\w+)", statements))

    def has(self, statements: str) -> None:
        """Create the missing tables: CREATE … IF NOT EXISTS, all or none. Raises BadStore."""
        with contextlib.suppress(sqlite3.Error):  # if it cannot be read, `write` raises with the reason
            if self._there(statements):
                return
        with self.write() as db:
            statement = ""
            for piece in statements.split(";"):  # a semicolon within a word or a comment ends no statement
                statement += piece + ";"
                if sqlite3.complete_statement(statement):
                    db.execute(statement)
                    statement = ""

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: durable when the block has ended, undone when it raises.

        Raises BadStore; sqlite3.IntegrityError of the block's own statements passes through.
        """
        db = self.db
        try:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):  # if the disk fails here too, the next BEGIN reports it
                if db.in_transaction:
                    db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                raise BadStore(f"{self.path}: {error}; {_remedy(error)}; nothing of it was written") from error
            raise

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self.db.close()


def _remedy(error: Exception) -> str:
    if isinstance(error, sqlite3.OperationalError):
        return "another process holds it; try again" if "locked" in str(error) else "check disk, owner and rights"
    return _ANEW
