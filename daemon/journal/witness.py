"""The witness: signed checkpoints of journals, kept on another computer, so that a cut end of a journal is found.

A file for each process and day holds a line for each checkpoint (`JournalHead`). `compare` holds the lines against a
journal: it must still have the last checkpoint that the witness saw.
"""

import contextlib
import os
import sqlite3
from base64 import b64decode
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from daemon.journal.findings import GIVE_KEY, UNDECODABLE, Finding, Report, Verifier
from daemon.journal.hash_chain import decode_statement, fingerprint
from daemon.journal.reader import open_live
from daemon.journal.schema import TAMPERED
from protocols.contract.documents import JournalHead

__all__ = ["BadWitness", "Witness", "compare", "heads_in"]

LONGEST = 256 * 1024
"""Maximum bytes of a head: a statement names each table of its journal."""
REMEMBERED = 1000
"""Heads of a journal that are remembered, to tell one that is delivered twice from one that is behind."""


class BadWitness(Exception):
    """The files of a witness cannot be read or written. The message names the file and the remedy."""


class Witness:
    """Appends heads to files in `folder`."""

    def __init__(self, folder: Path) -> None:
        """Take up the files that are there. Raises BadWitness."""
        self.folder = folder
        self._seen: dict[str, deque[JournalHead]] = {}
        _end_last_lines(folder)
        for head in heads_in([folder]) if folder.is_dir() else ():
            self._remember(head)

    def _remember(self, head: JournalHead) -> None:
        self._seen.setdefault(head.journal, deque(maxlen=REMEMBERED)).append(head)

    def take(self, process: str, raw: bytes, now: datetime) -> str:
        """Keep a head that is new. Returns what is wrong with it, or nothing. Raises BadWitness.

        One that is behind the last or contradicts it is kept as evidence, too.
        """
        if len(raw) > LONGEST:
            return f"a head of {len(raw)} bytes is not kept; {LONGEST} are allowed"
        try:
            head = msgspec.json.decode(raw, type=JournalHead)
        except UNDECODABLE as error:
            return f"a head cannot be read: {error}"
        seen = self._seen.get(head.journal, ())
        if head in seen:  # a broker may deliver it twice
            return ""
        self._write(process, head, now)
        before = max(seen, key=lambda one: one.checkpoint, default=None)
        self._remember(head)
        if before is not None and head.checkpoint <= before.checkpoint:
            return (
                f"journal {head.journal}: checkpoint {head.checkpoint} (row {head.row}) after checkpoint"
                f" {before.checkpoint} (row {before.row}): an end was cut off, or an older copy was put back"
            )
        return ""

    def _write(self, process: str, head: JournalHead, now: datetime) -> None:
        path = self.folder / f"{process}-{now.astimezone(UTC):%Y-%m-%d}.ndjson"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            with path.open("ab") as file:
                file.write(msgspec.json.encode(head) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadWitness(f"{path}: {error.strerror}; give a folder that this user may write") from error


def _end_last_lines(folder: Path) -> None:
    """The next head begins a line of its own: a last line that a kill cut is removed. Raises BadWitness."""
    for path in sorted(folder.glob("*.ndjson")):
        try:
            raw = path.read_bytes()
            begins = raw.rfind(b"\n") + 1
            last = raw[begins:]
            if not last:
                continue
            with path.open("ab") as file:
                if _is_head(last):
                    file.write(b"\n")
                else:
                    file.truncate(begins)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadWitness(f"{path}: {error.strerror}; give a folder that this user may write") from error


def _is_head(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=JournalHead)
    except UNDECODABLE:
        return False
    return True


def heads_in(paths: Iterable[Path]) -> Iterator[JournalHead]:
    """The heads in files, or in the files of folders, in the order of their names. Raises BadWitness."""
    for path in paths:
        for file in sorted(path.glob("*.ndjson")) if path.is_dir() else [path]:
            try:
                lines = file.read_bytes().splitlines()
            except OSError as error:
                text = f"{file}: {error.strerror}; give files or the folder of `feltd journal witness`"
                raise BadWitness(text) from error
            for number, line in enumerate(lines, 1):
                try:
                    yield msgspec.json.decode(line, type=JournalHead)
                except UNDECODABLE as error:
                    if number == len(lines):  # the witness was killed while it wrote
                        continue
                    text = f"{file}:{number}: no head of a journal: {error}; restore it from a copy"
                    raise BadWitness(text) from error


def compare(path: Path, heads: Iterable[JournalHead], keys: Sequence[Verifier], report: Report) -> None:
    """Hold the journal at `path` against what a witness saw; findings go to its report."""
    with contextlib.closing(open_live(path)[0]) as db:
        name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
        mine = {head.checkpoint: head for head in heads if head.journal == name}
        if not mine:
            report.notes.append("the witness has no checkpoint of this journal")
            return
        last = mine[max(mine)]
        at = f"checkpoint {last.checkpoint} after row {last.row}, which the witness saw"
        there = db.execute("SELECT max(number) FROM checkpoint").fetchone()[0] or 0
        if there < last.checkpoint:
            text = f"{at}, is missing: the last one here is {there or 'none'}"
            remedy = "the end was cut off: put back what is missing, and tell the inspector"
            report.find(Finding(str(path), text, remedy))
        for head in mine.values():
            _compare_one(db, path, head, keys, report)
        report.notes.append(f"compared with {len(mine)} checkpoints of a witness, the last one {last.checkpoint}")


def _compare_one(
    db: sqlite3.Connection, path: Path, head: JournalHead, keys: Sequence[Verifier], report: Report
) -> None:
    raw = head.statement.encode()
    try:
        said = decode_statement(raw)
        signature = b64decode(head.signature, validate=True)
    except (*UNDECODABLE, ValueError):
        report.find(Finding(str(path), f"the witness's checkpoint {head.checkpoint} cannot be read", TAMPERED))
        return
    if (said.journal, said.number, said.n) != (head.journal, head.checkpoint, head.row):
        report.find(Finding(str(path), f"the witness's checkpoint {head.checkpoint} is of another place", TAMPERED))
        return
    key = next((one for one in keys if one.id == said.key), None)
    if keys and key is None:
        text = f"the witness's checkpoint {head.checkpoint} is signed with key {said.key}"
        report.find(Finding(str(path), text, GIVE_KEY, about_key=True))
    elif key is not None and not key.signed(raw, signature):
        report.find(Finding(str(path), f"the witness's checkpoint {head.checkpoint} has a wrong signature", TAMPERED))
    found = db.execute("SELECT statement FROM checkpoint WHERE number = ?", (head.checkpoint,)).fetchone()
    if found is not None and fingerprint(found[0]) != fingerprint(raw):
        text = f"checkpoint {head.checkpoint} is not the one that the witness saw"
        report.find(Finding(str(path), text, TAMPERED, n=head.row))
