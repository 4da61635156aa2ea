"""The witness: signed checkpoints of journals, kept on another computer, so that a cut end of a journal is found.

A file for each process and day holds a line for each checkpoint (`JournalHead`). A head is checked before it is stored:
where keys are given it must be signed with one of them. Files and memory are bounded. `compare` compares the lines with
a journal, which must still have the last checkpoint that the witness received.
"""

import contextlib
import os
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from daemon.journal.findings import GIVE_KEY, UNDECODABLE, Finding, Report, Verifier
from daemon.journal.hash_chain import decode_statement, fingerprint
from daemon.journal.reader import open_live
from daemon.journal.schema import TAMPERED
from protocols.contract.documents import JournalHead

__all__ = ["MOST_BYTES", "BadWitness", "HeadRefused", "Witness", "compare", "heads_in"]

LONGEST = 256 * 1024
"""Maximum bytes of a head: a statement names each table of its journal."""
LONGEST_NAME = 64
REMEMBERED = 1000
"""Digests kept of a journal's heads, which distinguish a repeated head from one that is behind."""
MOST_JOURNALS = 1000
MOST_PROCESSES = 200
MOST_DAY_BYTES = 8 * 1024 * 1024
"""Bytes of one process and day. A checkpoint of 40 tables has about 4 KiB; a minute may have one."""
MOST_BYTES = 4 * 1024**3
"""Bytes of all files in the folder."""
COUNTED_AGAIN_S = 60.0
"""Seconds between two counts of a full folder: files may have been moved to an archive."""
ARCHIVE = "move its oldest files to an archive"


class BadWitness(Exception):
    """The files of a witness cannot be read or written. The message names the file and the remedy."""


class HeadRefused(Exception):
    """A head is not stored. The message gives the reason."""


class _Seen(Struct):
    """The last checkpoint of a journal with its row, and the digests of its last heads."""

    checkpoint: int = -1
    row: int = 0
    digests: dict[str, None] = {}


class Witness:
    """Appends heads to files in `folder`."""

    def __init__(self, folder: Path, keys: Sequence[Verifier] = (), most_bytes: int = MOST_BYTES) -> None:
        """Continue existing files. Without `keys` each head that matches its statement is kept. Raises BadWitness."""
        self.folder = folder
        self._keys = keys
        self._most_bytes = most_bytes
        self._journals: dict[str, _Seen] = {}
        self._processes = {file.stem[: -len("-2026-11-20")] for file in folder.glob("*-????-??-??.ndjson")}
        self._counted: tuple[int, datetime] | None = None
        """The bytes of all files, and the time of counting."""
        _end_last_lines(folder)
        for head in heads_in([folder]) if folder.is_dir() else ():
            if not _problem(head, keys) and self._has_place(head):
                self._remember(head)

    def take(self, process: str, raw: bytes, now: datetime) -> str:
        """Store a new head. Returns a contradiction, or "". Raises HeadRefused, BadWitness.

        A head that is behind the last one or contradicts it is stored as evidence, too.
        """
        if len(raw) > LONGEST:
            raise HeadRefused(f"a head of {len(raw)} bytes is not kept; {LONGEST} are allowed")
        try:
            head = msgspec.json.decode(raw, type=JournalHead)
        except UNDECODABLE as error:
            raise HeadRefused(f"a head cannot be read: {error}") from error
        if problem := _problem(head, self._keys):
            raise HeadRefused(f"a head, checkpoint {head.checkpoint}, {problem}")
        seen = self._journals.get(head.journal, _Seen())
        if _digest(head) in seen.digests:  # a broker may deliver it twice
            return ""
        if not self._has_place(head):
            raise HeadRefused(f"a head is of a new journal; at most {MOST_JOURNALS} journals are kept")
        self._write(process, head, now)
        last, row = seen.checkpoint, seen.row
        self._remember(head)
        if head.checkpoint <= last:
            return (
                f"journal {head.journal}: checkpoint {head.checkpoint} (row {head.row}) after checkpoint"
                f" {last} (row {row}): an end was cut off, or an older copy was put back"
            )
        return ""

    def _has_place(self, head: JournalHead) -> bool:
        return head.journal in self._journals or len(self._journals) < MOST_JOURNALS

    def _remember(self, head: JournalHead) -> None:
        seen = self._journals.setdefault(head.journal, _Seen())
        seen.digests[_digest(head)] = None
        if len(seen.digests) > REMEMBERED:
            del seen.digests[next(iter(seen.digests))]
        if head.checkpoint > seen.checkpoint:
            seen.checkpoint, seen.row = head.checkpoint, head.row

    def _write(self, process: str, head: JournalHead, now: datetime) -> None:
        path = self.folder / f"{process}-{now.astimezone(UTC):%Y-%m-%d}.ndjson"
        line = msgspec.json.encode(head) + b"\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            self._refuse_too_much(process, path, len(line), now)
            with path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadWitness(f"{path}: {error.strerror}; give a folder that this user may write") from error
        self._processes.add(process)
        if self._counted is not None:
            self._counted = self._counted[0] + len(line), self._counted[1]

    def _refuse_too_much(self, process: str, path: Path, more: int, now: datetime) -> None:
        """Raises HeadRefused where the files would get too many or too long."""
        if process not in self._processes and len(self._processes) >= MOST_PROCESSES:
            raise HeadRefused(f"a head is of a new process; at most {MOST_PROCESSES} processes are kept")
        if path.exists() and path.stat().st_size + more > MOST_DAY_BYTES:
            raise HeadRefused(f"{path} is full: {MOST_DAY_BYTES} bytes of one process and day")
        if self._counted is None or (
            self._counted[0] + more > self._most_bytes
            and abs((now - self._counted[1]).total_seconds()) >= COUNTED_AGAIN_S
        ):
            self._counted = sum(file.stat().st_size for file in self.folder.glob("*.ndjson")), now
        if self._counted[0] + more > self._most_bytes:
            raise HeadRefused(f"{self.folder} is full: {self._most_bytes} bytes; {ARCHIVE}")


def _digest(head: JournalHead) -> str:
    return fingerprint(msgspec.json.encode(head))


def _problem(head: JournalHead, keys: Sequence[Verifier]) -> str:
    """Why a head proves nothing; "" if it matches its statement, signed by one of `keys` if there are any."""
    raw = head.statement.encode()
    try:
        said = decode_statement(raw)
        signature = b64decode(head.signature, validate=True)
    except (*UNDECODABLE, ValueError):
        return "cannot be read"
    if len(head.journal) > LONGEST_NAME or (said.journal, said.number, said.n) != (
        head.journal,
        head.checkpoint,
        head.row,
    ):
        return "differs from its statement"
    if not keys:
        return ""
    key = next((one for one in keys if one.id == said.key), None)
    if key is None:
        return f"is signed with key {said.key!r:.40}"
    return "" if key.signed(raw, signature) else "has a wrong signature"


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
    """Compare the journal at `path` with the witness's heads; findings go to the report.

    An invalid head is a finding and is not used.
    """
    with contextlib.closing(open_live(path)[0]) as db:
        name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
        mine = [head for head in heads if head.journal == name]
        if not mine:
            report.notes.append("the witness has no checkpoint of this journal")
            return
        proven = {}
        for head in mine:
            if not (problem := _problem(head, keys)):
                proven[head.checkpoint, head.statement] = head
                continue
            text = f"the witness's checkpoint {head.checkpoint} {problem}"
            of_key = problem.startswith("is signed with key")
            report.find(Finding(str(path), text, GIVE_KEY if of_key else TAMPERED, about_key=of_key))
        if not proven:
            return
        last = max(proven.values(), key=lambda head: head.checkpoint)
        at = f"checkpoint {last.checkpoint} after row {last.row}, which the witness received"
        there = db.execute("SELECT max(number) FROM checkpoint").fetchone()[0] or 0
        if there < last.checkpoint:
            text = f"{at}, is missing: the last one here is {there or 'none'}"
            remedy = "the end was cut off: put back what is missing, and tell the inspector"
            report.find(Finding(str(path), text, remedy))
        for head in proven.values():
            found = db.execute("SELECT statement FROM checkpoint WHERE number = ?", (head.checkpoint,)).fetchone()
            if found is not None and fingerprint(found[0]) != fingerprint(head.statement.encode()):
                text = f"checkpoint {head.checkpoint} is not the one that the witness received"
                report.find(Finding(str(path), text, TAMPERED, n=head.row))
        report.notes.append(f"compared with {len(proven)} checkpoints of a witness, the last one {last.checkpoint}")
