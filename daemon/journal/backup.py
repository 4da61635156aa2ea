"""Copies of SQLite files in use: a journal with its closed files and a note that fits, or the console's store."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

from daemon.journal.hash_chain import Noted, encode_noted, fingerprint
from daemon.journal.reader import note_of, open_live
from daemon.progress import Progress, silent
from daemon.whole_files import begin, finish, write

__all__ = ["BadBackup", "back_up_file", "back_up_journal"]

_PAGES = 500
"""Pages that are copied at once: a writer waits no longer than for these."""


class BadBackup(Exception):
    """A copy could not be made. The message names the file and the remedy."""


def _words(error: sqlite3.Error | OSError) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)


def back_up_journal(path: Path, folder: Path, progress: Progress = silent) -> int:
    """Copy the journal at `path`, which may be in use, to `folder`. Returns the number of copied files.

    A closed file never changes: one that is in `folder` with its size is not copied again. `progress` is called with
    the copied part of the files. Raises BadBackup.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        live, before = open_live(path)
        with contextlib.closing(live):
            count, files = 0, len(before) + 1
            for done, one in enumerate(before):
                progress(done / files)
                count += _copy_closed(one, folder)
            copy = folder / path.name
            with contextlib.closing(_copied(live, copy, lambda part: progress((len(before) + part) / files))) as db:
                name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
                last = db.execute("SELECT number, n, statement FROM checkpoint ORDER BY number DESC LIMIT 1").fetchone()
            noted = Noted(name, last[0], last[1], fingerprint(last[2])) if last else Noted(name, 0, 0, "")
            _finish(copy)
            write(note_of(copy), encode_noted(noted), 0o600)
    except (sqlite3.Error, OSError) as error:
        raise BadBackup(f"{path}: {_words(error)}; check disk, owner and rights of both folders") from error
    return count + 1


def back_up_file(path: Path, folder: Path, progress: Progress = silent) -> None:
    """Copy a SQLite file that may be in use. `progress` is called with the copied part. Raises BadBackup."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            _copied(db, folder / path.name, progress).close()
        _finish(folder / path.name)
    except (sqlite3.Error, OSError) as error:
        raise BadBackup(f"{path}: {_words(error)}; check disk, owner and rights of both folders") from error


def _copy_closed(one: Path, folder: Path) -> int:
    there = folder / one.name
    if there.exists() and there.stat().st_size == one.stat().st_size:
        return 0
    shutil.copyfile(one, begin(there))
    finish(there)
    return 1


def _copied(db: sqlite3.Connection, copy: Path, progress: Progress) -> sqlite3.Connection:
    def copied(_status: int, remaining: int, total: int) -> None:
        progress(1 - remaining / max(total, 1))

    to = sqlite3.connect(begin(copy), isolation_level=None)
    try:
        db.backup(to, pages=_PAGES, progress=copied)
    except BaseException:
        to.close()
        raise
    return to


def _finish(copy: Path) -> None:
    """Put the new copy in the place of an earlier one, whose log would not fit it."""
    for path in (copy.with_name(f".{copy.name}.new"), copy):
        for rest in ("-wal", "-shm"):
            path.with_name(path.name + rest).unlink(missing_ok=True)
    finish(copy)
