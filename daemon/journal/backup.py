"""Copies of SQLite files in use: a journal with its closed files and a note that fits, or the console's store."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

from daemon.journal.hash_chain import Noted, encode_noted, fingerprint
from daemon.journal.reader import note_of, open_live

__all__ = ["BadBackup", "back_up_file", "back_up_journal"]

_PAGES = 500
"""Pages that are copied at once: a writer waits no longer than for these."""


class BadBackup(Exception):
    """A copy could not be made. The message names the file and the remedy."""


def back_up_journal(path: Path, folder: Path) -> int:
    """Copy the journal at `path`, which may be in use, to `folder`. Returns the files that were copied.

    A closed file never changes: one that is in `folder` with its size is not copied again. Raises BadBackup.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        live, before = open_live(path)
        with contextlib.closing(live):
            count = sum(_copy_closed(one, folder) for one in before)
            copy = folder / path.name
            with contextlib.closing(_copied(live, copy)) as db:
                name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
                last = db.execute("SELECT number, n, statement FROM checkpoint ORDER BY number DESC LIMIT 1").fetchone()
            noted = Noted(name, last[0], last[1], fingerprint(last[2])) if last else Noted(name, 0, 0, "")
            _finish(copy)
            _write(note_of(copy), encode_noted(noted))
    except (sqlite3.Error, OSError) as error:
        raise BadBackup(f"{path}: {error}; check disk, owner and rights of both folders") from error
    return count + 1


def back_up_file(path: Path, folder: Path) -> None:
    """Copy a SQLite file that may be in use. Raises BadBackup."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            _copied(db, folder / path.name).close()
        _finish(folder / path.name)
    except (sqlite3.Error, OSError) as error:
        raise BadBackup(f"{path}: {error}; check disk, owner and rights of both folders") from error


def _copy_closed(one: Path, folder: Path) -> int:
    there = folder / one.name
    if there.exists() and there.stat().st_size == one.stat().st_size:
        return 0
    beside = _beside(there)
    shutil.copyfile(one, beside)
    _finish(there)
    return 1


def _beside(copy: Path) -> Path:
    """The file that becomes `copy` when it is whole, made for its owner alone."""
    beside = copy.with_name(f".{copy.name}.new")
    beside.unlink(missing_ok=True)
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return beside


def _copied(db: sqlite3.Connection, copy: Path) -> sqlite3.Connection:
    to = sqlite3.connect(_beside(copy), isolation_level=None)
    try:
        db.backup(to, pages=_PAGES)
    except BaseException:
        to.close()
        raise
    return to


def _finish(copy: Path) -> None:
    """Make the new copy durable and put it in the place of an earlier one."""
    beside = copy.with_name(f".{copy.name}.new")
    for rest in ("-wal", "-shm"):
        beside.with_name(beside.name + rest).unlink(missing_ok=True)
        copy.with_name(copy.name + rest).unlink(missing_ok=True)
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    beside.replace(copy)
    parent = os.open(copy.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _write(path: Path, raw: bytes) -> None:
    beside = _beside(path)
    beside.write_bytes(raw)
    _finish(path)
