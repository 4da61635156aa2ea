"""A process is killed, or the power fails, at any line of the journal: the next start raises no false alarm.

Every line of `journal.store` and `journal.retention` that runs while a journal is made, signed, noted, closed as a file
and closed at the end is a place to die at. What is on the disk there is what the next process finds.
"""

import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from daemon.config.model import Keeping
from daemon.journal import retention as keeping_module, store as journal_module
from daemon.journal.reader import note_of
from daemon.journal.retention import take_up
from daemon.journal.rows import Entry
from daemon.journal.signing import Key, make_key
from daemon.journal.store import Journal
from daemon.journal.verify import verify

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
Files = dict[str, tuple[int, bytes]]
"""By name the inode, as one file may have two names, and the content."""


@pytest.fixture(autouse=True)
def short_log() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "_WAL_PAGES", 10)
        yield


def started(path: Path, key: Path) -> Journal:
    journal = Journal(path)
    try:
        take_up(journal, Keeping(key=str(key), sign_rows=4))
    except BaseException:
        journal.close()
        raise
    return journal


def life(path: Path, key: Path) -> None:
    """Made, signed within and between writes, closed as a file, closed, and taken up again."""
    journal = started(path, key)
    for n in range(3):
        journal.append([Entry("t-1", "d", "x", NOON, b"%d" % n) for _ in range(3)])
    journal.sign()
    assert journal.rotate()
    for n in range(3):
        journal.append([Entry("t-2", "d", "x", NOON, b"%d" % n) for _ in range(4)])
    journal.close()
    journal = started(path, key)
    journal.append([Entry("t-1", "d", "x", NOON, b"") for _ in range(5)])
    journal.close()


class Disk:
    """What stands in a folder at each line, and what of the note would survive a power cut there."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.seen: list[tuple[Files, frozenset[bytes | None]]] = []
        self._durable: bytes | None = None
        self._named = False  # the folder was synced since the note was made
        self._sources = {journal_module.__file__, keeping_module.__file__}
        patch.setattr(os, "fdatasync", self._after(os.fdatasync))
        patch.setattr(os, "fsync", self._after(os.fsync))

    def _after(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(file: int) -> None:
            sync(file)
            path = Path(f"/proc/self/fd/{file}").readlink()
            if path.name.endswith("-signed"):
                self._durable = path.read_bytes()
            elif path == self.folder:
                self._named = True

        return synced

    def trace(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if frame.f_code.co_filename not in self._sources:
            return None
        if event in ("line", "return"):
            self._look()
        return self.trace

    def _look(self) -> None:
        there = [one for one in self.folder.iterdir() if not one.name.endswith("-shm")]
        files = {one.name: (one.stat().st_ino, one.read_bytes()) for one in there}
        _, note = files.pop("journal.db-signed", (0, None))
        notes = {note, self._durable}
        if note is not None and self._durable is None:
            notes |= {b"", bytes(len(note))}
        if not self._named:
            notes.add(None)
        if not self.seen or self.seen[-1] != (files, frozenset(notes)):
            self.seen.append((files, frozenset(notes)))


def put_back(folder: Path, files: Files) -> None:
    by_inode: dict[int, Path] = {}
    for name, (inode, raw) in files.items():
        if inode in by_inode:
            os.link(by_inode[inode], folder / name)
        else:
            by_inode[inode] = folder / name
            by_inode[inode].write_bytes(raw)


def test_no_place_to_die_at_raises_a_false_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_key(tmp_path / "key.pem")
    (tmp_path / "j").mkdir()
    with monkeypatch.context() as patch:
        disk = Disk(tmp_path / "j", patch)
        before = sys.gettrace()
        sys.settrace(disk.trace)
        try:
            life(tmp_path / "j" / "journal.db", tmp_path / "key.pem")
        finally:
            sys.settrace(before)
    key = Key.load(tmp_path / "key.pem").public
    assert verify(tmp_path / "j" / "journal.db", [key]).good
    tried = behind = absent = 0
    for at, (files, notes) in enumerate(disk.seen):
        for number, note in enumerate(notes):
            folder = tmp_path / f"{at}-{number}"
            folder.mkdir()
            path = folder / "journal.db"
            put_back(folder, files)
            if note is not None:
                note_of(path).write_bytes(note)
            journal = started(path, tmp_path / "key.pem")
            absent += note is None
            behind += note not in (None, note_of(path).read_bytes())
            journal.append([Entry("t-9", "d", "x", NOON, b"")])
            journal.close()
            report = verify(path, [key])
            assert report.good, (at, report)
            tried += 1
    assert (tried > 40, behind > 3, absent > 3) == (True, True, True), (tried, behind, absent)
