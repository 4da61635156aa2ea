"""The schema of a journal, compared with what this program writes before any row is read or written.

SQLite runs what stands in a file's schema: a trigger swallows rows, a view shows others, a default, a collation or a
generated column changes them. The hash chain covers rows and not the schema. So `store` and `inspection` compare all of
it, byte by byte: every object, its text, its page, and the header's settings.
"""

import functools
import sqlite3
import sys
from collections.abc import Iterable

from daemon.journal.hash_chain import VERSION

__all__ = ["SCHEMA", "WrongSchema", "check_readable", "connected", "differences"]

# Files hold these very bytes, line breaks too: a change here is a new version of the format.
SCHEMA = """
CREATE TABLE event (
    n INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    seq INTEGER NOT NULL,
    device TEXT NOT NULL,
    type TEXT NOT NULL,
    time INTEGER NOT NULL,
    data BLOB NOT NULL,
    wire BLOB NOT NULL,
    cause TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_by_seq ON event (place, seq);
CREATE TABLE memory (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoint (
    number INTEGER PRIMARY KEY,
    n INTEGER NOT NULL,
    statement BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT;
CREATE TABLE beginning (file INTEGER PRIMARY KEY, n INTEGER NOT NULL, time INTEGER NOT NULL) STRICT;
CREATE TABLE origin (place TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE earlier (
    place TEXT NOT NULL, type TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (place, type)
) STRICT, WITHOUT ROWID;
"""
_SCHEMAS = {0: "", VERSION: SCHEMA}
# The settings in the file's header that this program leaves as SQLite makes them.
_HEADER = {"application_id": 0, "encoding": "UTF-8", "page_size": 4096, "auto_vacuum": 0}
_MOST = 20  # differences of one file that are named
_SHOWN = 60  # characters of a planted name or text that a message repeats

TAMPERED = "somebody or something changed it after it was written: keep the file as it is and tell the inspector"
OTHER = "read it with the version of feltd that wrote it"
EMPTY = "put back the copy that you keep of it; if it is only just being made, try again"


class WrongSchema(sqlite3.DatabaseError):
    """The file's schema is not what this program writes. `remedy` says what to do."""

    def __init__(self, texts: Iterable[str], remedy: str = TAMPERED) -> None:
        """`texts` are the differences, each for itself."""
        self.texts = tuple(texts)
        self.remedy = remedy
        super().__init__("; ".join(self.texts))


def connected(db: sqlite3.Connection) -> None:
    """Make a connection careful with the file, and have SQLite read the schema. Raises WrongSchema, sqlite3.Error.

    Nothing in the schema may call a function that acts outside the file. From Python 3.12 on SQLite also refuses to run
    triggers and views at all, and statements that write the schema as rows; before, Python cannot set that.
    """
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    try:
        db.execute("SELECT 1 FROM main.sqlite_master LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        if "malformed database schema" not in str(error):
            raise
        raise WrongSchema([f"its schema cannot be read: {str(error)[:200]}"]) from error


def differences(db: sqlite3.Connection, version: int) -> list[str]:
    """How the file's schema differs from that of a version of the format, at most so many. Raises sqlite3.Error."""
    found = []
    for name, expected in _HEADER.items():
        value = db.execute(f"PRAGMA {name}").fetchone()[0]
        if value != expected:
            found.append(f"{name} is {value!r} and not {expected!r}")
    wanted = dict(_objects(version))
    pages: set[int] = set()
    query = (
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB), rootpage"
        " FROM main.sqlite_master ORDER BY rowid LIMIT ?"
    )
    for kind, name, table, sql, page in db.execute(query, (len(wanted) + _MOST,)):
        said = f"{_shown(kind)} {_shown(name)}"
        expected_object = wanted.pop((kind, name), None)
        if expected_object is None:
            found.append(f"{said} on {_shown(table)} was added")
        elif expected_object != (table, sql):
            found.append(f"{said} was changed: {_from_the_difference(sql, expected_object[1])}")
        elif not isinstance(page, int) or page < 2 or page in pages:
            found.append(f"{said} stands on page {_shown(page)}, which cannot be its own")
        else:
            pages.add(page)
    found += [f"{_shown(kind)} {_shown(name)} is missing" for kind, name in wanted]
    return found[:_MOST]


def check_readable(db: sqlite3.Connection) -> None:
    """Whether the file is a journal of this version, all of its schema. Raises WrongSchema, sqlite3.Error."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in _SCHEMAS:
        raise WrongSchema([f"version {version} of the format, this program reads version {VERSION}"], OTHER)
    if found := differences(db, version):
        raise WrongSchema([f"its schema is not what this program writes: {one}" for one in found])
    if version == 0:
        raise WrongSchema(["it is empty: no journal stands in it"], EMPTY)


@functools.cache
def _objects(version: int) -> tuple[tuple[tuple[bytes, bytes], tuple[bytes, bytes | None]], ...]:
    """By kind and name, each object's table and text, as SQLite keeps the schema of a version."""
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(_SCHEMAS[version])
        query = (
            "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB)"
            " FROM sqlite_master ORDER BY rowid"
        )
        return tuple(((kind, name), (table, sql)) for kind, name, table, sql in db.execute(query))
    finally:
        db.close()


def _shown(value: object) -> str:
    """A value of a planted row, short and on one line."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else repr(value)
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _from_the_difference(sql: object, expected: bytes | None) -> str:
    """What stands where the texts begin to differ."""
    if not isinstance(sql, bytes) or expected is None:
        return "its text"
    at = next((n for n, (a, b) in enumerate(zip(sql, expected, strict=False)) if a != b), min(len(sql), len(expected)))
    return f"{_shown(sql[max(at - 20, 0) :])} stands where {_shown(expected[max(at - 20, 0) :])} was written"
