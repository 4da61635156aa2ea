"""Compares the schema of a journal with the one that this program writes, before any row is read or written.

SQLite executes the schema of a file: a trigger can drop rows, a view can show other rows, a default, a collation or
a generated column can change them. The hash chain covers rows and not the schema. `store` and `reader` therefore
compare all of it byte by byte: every object, its text, its page, and the settings in the header.
"""

import functools
import sqlite3
import sys
from collections.abc import Iterable

from daemon.journal.hash_chain import VERSION

__all__ = ["SCHEMA", "WrongSchema", "check_readable", "connected", "differences"]

# Files contain these exact bytes, with line breaks: a change here is a new format version.
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
# Settings in the header that keep SQLite's default.
_HEADER = {"application_id": 0, "encoding": "UTF-8", "page_size": 4096, "auto_vacuum": 0}
_MOST = 20  # differences that are reported for one file
_SHOWN = 60  # characters of a name or text of the file in a message

TAMPERED = "it was changed after it was written: keep the file as it is and tell the inspector"
OTHER = "read it with the version of feltd that wrote it"
EMPTY = "put back the copy that you keep of it; if it is only just being made, try again"


class WrongSchema(sqlite3.DatabaseError):
    """The schema of the file is not the one that this program writes. `remedy`: what to do."""

    def __init__(self, texts: Iterable[str], remedy: str = TAMPERED) -> None:
        """`texts`: the differences, one by one."""
        self.texts = tuple(texts)
        self.remedy = remedy
        super().__init__("; ".join(self.texts))


def connected(db: sqlite3.Connection) -> None:
    """Protect a connection against the file's schema and make SQLite read it. Raises WrongSchema, sqlite3.Error.

    Functions in the schema cannot act outside the file. From Python 3.12 on SQLite also refuses triggers, views, and
    statements that write the schema as rows; earlier Python versions cannot set this.
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
    """The differences between the file's schema and that of a format version, at most _MOST. Raises sqlite3.Error."""
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
            found.append(f"{said} is on page {_shown(page)}, which cannot be its own")
        else:
            pages.add(page)
    found += [f"{_shown(kind)} {_shown(name)} is missing" for kind, name in wanted]
    return found[:_MOST]


def check_readable(db: sqlite3.Connection) -> None:
    """Check that the file is a journal of this version with its exact schema. Raises WrongSchema, sqlite3.Error."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in _SCHEMAS:
        raise WrongSchema([f"version {version} of the format, this program reads version {VERSION}"], OTHER)
    if found := differences(db, version):
        raise WrongSchema([f"its schema is not what this program writes: {one}" for one in found])
    if version == 0:
        raise WrongSchema(["it is empty: it contains no journal"], EMPTY)


@functools.cache
def _objects(version: int) -> tuple[tuple[tuple[bytes, bytes], tuple[bytes, bytes | None]], ...]:
    """For each kind and name, the table and text of the object, as SQLite stores them for a version."""
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
    """A value from the schema of the file, which may be any text, shortened to one printable line."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else repr(value)
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _from_the_difference(sql: object, expected: bytes | None) -> str:
    """Describe the first difference between the two texts."""
    if not isinstance(sql, bytes) or expected is None:
        return "its text"
    at = next((n for n, (a, b) in enumerate(zip(sql, expected, strict=False)) if a != b), min(len(sql), len(expected)))
    return f"{_shown(sql[max(at - 20, 0) :])} in place of {_shown(expected[max(at - 20, 0) :])}"
