"""`verify`: checks that a journal is as it was written.

It reads every row of every file and compares it with its hash chain, the chains with the signed checkpoints, the files
with each other, and the end with the note beside the journal. `verify_recent` checks the end alone, before a start.
"""

import contextlib
import re
import shlex
import sqlite3
import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon.journal.findings import BAD_TIME, GIVE_KEY, UNDECODABLE, Finding, Report, Verifier
from daemon.journal.hash_chain import (
    VERSION,
    Noted,
    Statement,
    chain_start,
    decode_noted,
    decode_statement,
    fingerprint,
    row_hash,
)
from daemon.journal.reader import closed_files, heads_at, left_of, note_of, open_live, open_to_read
from daemon.journal.rows import COLUMNS, EPOCH, instant, no_time
from daemon.journal.schema import TAMPERED, WrongSchema
from daemon.journal.wal import changed_log, log_of
from daemon.progress import Progress

__all__ = ["verify", "verify_recent"]

KEPT_AT_LEAST = timedelta(days=90)


RECENT = 20_000
"""Rows that are verified before a start: this takes a tenth of a second."""


_PAGE = 500


DISK = "keep the file as it is, check the disk, and go on from a copy or in a new journal"


BACK = "put the missing file back beside the others"


APART = "move the files of one of them away together, and keep them"


LOST = "it was changed, or the disk lost data that it had reported as durable: keep all files as they are"


class _Signed(Struct, frozen=True):
    number: int
    n: int
    statement: bytes
    signature: bytes


class _Walk:
    """The state of every chain while rows and checkpoints are read."""

    def __init__(self, report: Report, keys: Sequence[Verifier]) -> None:
        self.report = report
        self.read: Callable[[int], None] = lambda _: None
        self.keys = {key.id: key for key in keys}
        self.name = ""
        self.n = 0
        self.last: dict[str, int] = {}
        self.heads: dict[str, bytes] = {}
        self.file = 0
        self.signed_to: dict[str, int] = {}
        self._number = 0
        self._previous = ""
        self._known = False
        self._unknown_keys: set[str] = set()

    def rows(self, file: str, page: Iterable[tuple[Any, ...]]) -> None:
        """Verify rows in the order of n. The common case comes first: each follows from the one before it in its
        table.
        """
        n, last, heads, count = self.n, self.last, self.heads, 0
        for values in page:
            count += 1
            place, seq = values[1], values[2]
            try:
                before = heads.get(place) or chain_start(self.name, place)
                head = row_hash(before, *values[:9])
            except (TypeError, AttributeError, ValueError, struct.error):  # a value of a kind that was never written
                head = b""
            if head == values[9] and values[0] == n + 1 and seq == last.get(place, 0) + 1:
                n, last[place], heads[place] = values[0], seq, head
                if instant(values[5]) is None:
                    text = no_time(values[5])
                    self.report.find(Finding(file, text, BAD_TIME, place, seq, n, unreadable=True))
            else:
                self.n = n
                self._broken(file, values, head)
                n = self.n
        self.n = n
        self.report.rows += count
        self.read(self.report.rows)

    def _broken(self, file: str, values: tuple[Any, ...], computed: bytes) -> None:
        """Report the defect of a row, and continue the chain from it, so that one change gives one finding."""
        n, place, seq, *_, stored = values
        report = self.report
        expected = self.last.get(place, 0) + 1
        place_, seq_ = (place if isinstance(place, str) else repr(place)), (seq if isinstance(seq, int) else 0)
        if seq_ > expected:
            text = f"{seq_ - expected} rows before it are missing (seq {expected} to {seq_ - 1})"
            report.find(Finding(file, text, TAMPERED, place_, seq_, n))
        elif seq != expected:
            report.find(Finding(file, f"here must be seq {expected}: inserted or reordered", TAMPERED, place_, seq_, n))
        elif n <= self.n:
            text = f"its row number is not above {self.n}, that of the row before it: inserted or reordered"
            report.find(Finding(file, text, TAMPERED, place_, seq_, n))
        elif n != self.n + 1:
            report.find(Finding(file, f"rows {self.n + 1} to {n - 1} are missing", TAMPERED, place_, seq_, n))
        else:
            text = "the row or its hash was changed: it does not follow from the row before"
            report.find(Finding(file, text, TAMPERED, place_, seq_, n))
        self.n = n
        if isinstance(place, str) and isinstance(seq, int):
            self.last[place] = seq
            self.heads[place] = stored if isinstance(stored, bytes) else computed

    def checkpoint(self, file: str, one: _Signed) -> None:
        """Verify a checkpoint, which was signed after row `one.n`."""
        report = self.report

        def find(text: str, remedy: str, place: str = "", seq: int = 0) -> None:
            said = f"checkpoint {one.number}: {text}"
            report.find(Finding(file, said, remedy, place, seq, one.n, about_key=remedy == GIVE_KEY))

        report.checkpoints += 1
        try:
            said = decode_statement(one.statement)
        except UNDECODABLE:
            find("its statement cannot be read", TAMPERED)
            return
        if (said.number, said.n, said.feltd, said.version) != (one.number, one.n, "checkpoint", VERSION):
            find("its columns and its statement differ", TAMPERED)
        if said.journal != self.name:
            find(f"it was made for journal {said.journal}, this is {self.name}", TAMPERED)
        if self._known and said.number != self._number + 1:
            find(f"the one before it here is {self._number}", TAMPERED)
        elif self._known and said.previous != self._previous:
            find("it does not follow from the checkpoint before", TAMPERED)
        elif not self._known and self.file == 1 and (said.number, said.previous) != (1, ""):
            find("the first ones are missing", TAMPERED)
        self._known, self._number, self._previous = True, said.number, fingerprint(one.statement)
        key = self.keys.get(said.key)
        if key is not None and not key.signed(one.statement, one.signature):
            find("the signature is false", TAMPERED)
            return
        if key is None and self.keys and said.key not in self._unknown_keys:
            self._unknown_keys.add(said.key)
            find(f"it is signed with key {said.key}, not with {', '.join(self.keys)}", GIVE_KEY)
        self._compare(said, find, trusted=key is not None)

    def _compare(self, said: Statement, find: Any, *, trusted: bool) -> None:
        good = True
        for place, (seq, head) in said.heads.items():
            last = self.last.get(place, 0)
            if last < seq:
                find(f"rows were removed: seq {last + 1} to {seq} were there when it was made", TAMPERED, place, seq)
            elif last > seq:
                find(f"rows were inserted: only seq 1 to {seq} were there when it was made", TAMPERED, place, seq)
            elif self.heads[place].hex() != head:
                since = self.signed_to.get(place, 0) + 1
                find(f"the chain was forged: something from seq {since} to {seq} was changed", TAMPERED, place, seq)
            else:
                continue
            good = False
        for place in self.last.keys() - said.heads.keys():
            find("the table's rows were inserted: there were none when it was made", TAMPERED, place, self.last[place])
            good = False
        if trusted:
            self.report.signatures += 1
            if good:
                self.report.signed_rows = said.n
                self.signed_to = {place: seq for place, (seq, _) in said.heads.items()}

    def begin_anew(self) -> None:
        """Begin with another journal, which continues no earlier chain."""
        self.signed_to, self._number, self._previous, self._known = {}, 0, "", False

    def forget(self) -> None:
        """Continue with a file whose predecessors are missing."""
        self.begin_anew()
        self.file = 0

    def same_checkpoint(self, statement: bytes) -> bool:
        """Whether a file begins with the very checkpoint that the file before ended with."""
        return self._known and fingerprint(statement) == self._previous


def verify(
    path: Path,
    keys: Sequence[Verifier] = (),
    *,
    now: datetime | None = None,
    progress: Progress | None = None,
) -> Report:
    """Verify every row of the journal at `path` and of its closed files. `progress` gets the part that was read."""
    return _verified(path, keys, now, closed=True, progress=progress)


def verify_recent(path: Path, keys: Sequence[Verifier] = ()) -> Report:
    """Verify the end of the journal at `path`: from the last checkpoint with RECENT rows after it, or the whole file.

    Without signatures the last RECENT rows are verified by their chain. The time does not grow with the file.
    """
    return _verified(path, keys, None, closed=False)


def _verified(
    path: Path,
    keys: Sequence[Verifier],
    now: datetime | None,
    *,
    closed: bool,
    progress: Progress | None = None,
) -> Report:
    report = Report()
    walk = _Walk(report, keys)
    with contextlib.ExitStack() as stack:
        live: sqlite3.Connection | None = None
        noted: Noted | str = ""
        before: list[Path] = []
        try:
            before = closed_files(path)
            if path.is_file():
                noted = _noted(path)  # before the journal, which can only grow meanwhile
                if said := changed_log(path):
                    report.find(Finding(str(log_of(path)), said, LOST))
                opened, before = open_live(path)
                live = stack.enter_context(contextlib.closing(opened))
            elif left := left_of(path):
                are = "is" if len(left) == 1 else "are"
                text = f"there is no such file any more: {', '.join(left[:3])} {are} left"
                report.find(Finding(str(path), text, BACK))
            else:
                report.find(Finding(str(path), "there is no such file", "give the path of a journal"))
                return report
        except (sqlite3.Error, OSError) as error:
            _find_unread(report, path, error)
            with contextlib.suppress(OSError):
                before = closed_files(path)
        if progress is not None and live is not None and (total := _rows_in(before, live)):
            walk.read = lambda rows: progress(min(rows / total, 1.0))
        for one in before if closed else []:
            try:
                with contextlib.closing(open_to_read(one)) as db:
                    _verify_file(walk, db, one)
            except WrongSchema as error:
                _find_unread(report, one, error)
                walk.forget()  # the next file goes on from rows that were not read
            except (sqlite3.Error, OSError) as error:
                if one.exists():
                    report.find(Finding(str(one), f"cannot be read: {error}", DISK))
                elif not any(earlier.exists() for earlier in before[: before.index(one)]):
                    walk.forget()  # just deleted for room or moved to an archive, like all files before it
        if live is not None:
            _verify_file(walk, live, path, recent=0 if closed else RECENT)
            if closed and report.files and walk.file >= report.files:
                there = [one for one in before if one.exists()]
                _missing_files(report, path, there, live, walk, now or datetime.now(UTC))
            _compare_noted(report, path, live, noted, report_unreadable=closed, keyed=bool(keys))
    _conclude(report, walk)
    return report


def _rows_in(before: Sequence[Path], live: sqlite3.Connection) -> int:
    """The expected number of rows in these files; 0 where it is unknown."""
    with contextlib.suppress(sqlite3.Error, OSError, TypeError), contextlib.ExitStack() as stack:
        oldest = stack.enter_context(contextlib.closing(open_to_read(before[0]))) if before else live
        first = oldest.execute("SELECT n FROM beginning").fetchone()[0]
        last = live.execute("SELECT max(n) FROM event").fetchone()[0]
        if isinstance(first, int) and isinstance(last, int):
            return max(last - first, 0)
    return 0


def _find_unread(report: Report, path: Path, error: Exception) -> None:
    """Report a file whose rows are not verified: a foreign schema could show false rows."""
    if not isinstance(error, WrongSchema):
        report.find(Finding(str(path), f"cannot be read: {error}", DISK))
        return
    report.files += 1
    for text in error.texts:
        report.find(Finding(str(path), text, error.remedy))


def _noted(path: Path) -> Noted | str:
    """The last checkpoint by the note beside the journal; or why the note cannot be read."""
    try:
        return decode_noted(note_of(path).read_bytes()) or "is empty"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except UNDECODABLE as error:
        return f"cannot be read: {error}"


def _compare_noted(
    report: Report, path: Path, live: sqlite3.Connection, noted: Noted | str, *, report_unreadable: bool, keyed: bool
) -> None:
    """Check that the journal ends with the checkpoint in the note, or with the next one.

    A signed journal has a note, and so has one with a key and rows, because it is written before the first row. Others
    may have none; `report_unreadable`: an unreadable note is reported all the same.
    """
    note = note_of(path)
    accept = f"where a copy was put back on purpose, `feltd journal accept {shlex.quote(str(path))}` takes it as it is"

    def find(file: Path, text: str, remedy: str, n: int = 0) -> None:
        report.find(Finding(str(file), text, f"{remedy}; {accept}", n=n, about_note=True))

    with contextlib.suppress(sqlite3.Error, TypeError, AttributeError, UnicodeDecodeError):  # already findings
        name = live.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
        last = live.execute("SELECT max(number) FROM checkpoint").fetchone()[0] or 0
        rows = live.execute("SELECT max(n) FROM event").fetchone()[0] or 0
        before = live.execute("SELECT n FROM beginning").fetchone()[0]
        if isinstance(noted, str):
            needed = bool(last or (keyed and (rows or before))) and not re.search(r"\.\d{6}$", path.stem)
            if needed or (report_unreadable and noted.startswith("cannot be read")):
                text = f"{noted}; it names the last checkpoint, and without it a cut end of {path.name} is not detected"
                find(note, text, "put it back, and give it to the user to whom the journal belongs")
            return
        if noted.number < last - 1:  # while a writer runs: the note was read before the journal
            again = _noted(path)
            noted = again if isinstance(again, Noted) else noted
        at = f"checkpoint {noted.number} was made after row {noted.n}"
        found = live.execute("SELECT statement FROM checkpoint WHERE number = ?", (noted.number,)).fetchone()
        if noted.journal != name:
            text = f"it is of journal {noted.journal}, and {path.name} is journal {name}"
            find(note, text, f"{APART}; or put back the {path.name} that it belongs to")
        elif last < noted.number:
            text = f"its end is missing: {at} (from {note.name}), the last one in it is {last or 'none'}"
            find(path, text, "put back what is missing, its log too", noted.n)
        elif found is not None and fingerprint(found[0]) != noted.statement:
            text = f"{at}, and the one in the file differs (from {note.name})"
            report.find(Finding(str(path), text, TAMPERED, n=noted.n))
        elif noted.number < last - 1:
            text = f"it names checkpoint {noted.number}, the last one of {path.name} is {last}: it is an older one"
            find(note, text, "an older copy was put back, which can hide a cut end: tell the inspector")


def _missing_files(
    report: Report, path: Path, before: list[Path], live: sqlite3.Connection, walk: _Walk, now: datetime
) -> None:
    """Report files that are missing too early; files beyond their retention are no finding."""
    first = walk.file - len(before)
    if first <= 1:
        return
    if re.search(rf"\.{walk.file:06}$", path.stem):
        report.notes.append(f"a closed file, number {walk.file}; the others were not verified")
        return
    oldest = next(iter(before), None)
    with (
        contextlib.suppress(sqlite3.Error, OSError, TypeError, ValueError, OverflowError),
        contextlib.ExitStack() as stack,
    ):
        db = live if oldest is None else stack.enter_context(contextlib.closing(open_to_read(oldest)))
        began = EPOCH + timedelta(microseconds=db.execute("SELECT time FROM beginning").fetchone()[0])
        if now - began < KEPT_AT_LEAST:
            text = f"file {first - 1} is missing, which was closed {began:%Y-%m-%d}, less than 90 days ago"
            report.find(Finding(str(path), text, BACK))
        else:
            report.notes.append(f"begins with file {first}, of {began:%Y-%m-%d}; the files before it are kept no more")


def _conclude(report: Report, walk: _Walk) -> None:
    report.journal = walk.name
    report.tables = len(walk.last)
    if walk.keys and report.rows and not report.checkpoints:
        text = "nothing in it is signed, although a public key was given"
        remedy = "was a key configured? If so: " + TAMPERED
        report.find(Finding(walk.name, text, remedy, about_key=True))
    elif not report.checkpoints and report.rows:
        report.notes.append(
            "nothing is signed: the chain shows every accident, but every user that may write the file can make a new"
            " chain, or cut its end off; configure a key"
        )
    elif report.checkpoints and not walk.keys:
        report.notes.append("signatures were not checked: give the public key with --public")
    elif walk.n > report.signed_rows and report.good:
        report.notes.append(f"the last {walk.n - report.signed_rows} rows are chained and not signed yet")


def _verify_file(walk: _Walk, db: sqlite3.Connection, path: Path, recent: int = 0) -> None:
    """Verify a file after its predecessor: at least its `recent` last rows, or all. Never raises for its content."""
    report, file = walk.report, str(path)
    report.files += 1
    try:
        checkpoints: list[tuple[Any, ...]] = db.execute(
            "SELECT number, n, statement, signature FROM checkpoint ORDER BY number"
        ).fetchall()
        to = db.execute("SELECT max(n) FROM event").fetchone()[0]
        _take_origin(walk, db, file)
        part = bool(recent) and (to or walk.n) - walk.n > recent
        if part:
            checkpoints = _skip(walk, db, checkpoints, to - recent)
    except (sqlite3.Error, *UNDECODABLE, TypeError, ValueError, AttributeError) as error:
        report.find(Finding(file, f"cannot be read: {error}", DISK))
        return
    try:
        for (said,) in [] if part else db.execute("PRAGMA integrity_check(20)").fetchall():
            if said != "ok":
                report.find(Finding(file, f"SQLite: {said}", DISK))
    except sqlite3.Error as error:
        report.find(Finding(file, f"SQLite: {error}", DISK))
    _verify_rows(walk, db, file, checkpoints, to)


def _skip(walk: _Walk, db: sqlite3.Connection, checkpoints: list[tuple[Any, ...]], n: int) -> list[tuple[Any, ...]]:
    """Start the chains from the last checkpoint up to row `n`, or else from the rows at `n`.

    Returns the checkpoints from that one on. Its signed rows are verified with it, earlier rows are not.
    """
    at = next((index for index in range(len(checkpoints) - 1, -1, -1) if walk.n <= checkpoints[index][1] <= n), None)
    if at is None:
        heads = heads_at(db, n)
    else:
        said = decode_statement(checkpoints[at][2])
        n, heads = said.n, [(place, seq, bytes.fromhex(head)) for place, (seq, head) in said.heads.items()]
    walk.n = n
    walk.last.update({place: seq for place, seq, _ in heads})
    walk.heads.update({place: head for place, _, head in heads})
    walk.report.notes.append(f"only the rows after row {n} were verified")
    walk.file = 0  # it does not begin with this file's first checkpoint
    return checkpoints[at:] if at is not None else [one for one in checkpoints if one[1] > n]


def _verify_rows(
    walk: _Walk, db: sqlite3.Connection, file: str, checkpoints: Sequence[tuple[Any, ...]], to: int | None
) -> None:
    """Verify rows and checkpoints in the order in which they were written."""
    report = walk.report
    for index, values in enumerate(checkpoints):
        try:
            one = msgspec.convert(dict(zip(_Signed.__struct_fields__, values, strict=True)), _Signed, strict=True)
        except msgspec.ValidationError:
            report.find(Finding(file, "a checkpoint cannot be read", TAMPERED))
            continue
        if index or not walk.same_checkpoint(one.statement):
            _walk_rows(walk, db, file, min(one.n, to or walk.n))
            walk.checkpoint(file, one)
    _walk_rows(walk, db, file, to or walk.n)


def _take_origin(walk: _Walk, db: sqlite3.Connection, file: str) -> None:
    """Compare the origin of the file with the end of the file before."""
    name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
    number, n, _ = db.execute("SELECT file, n, time FROM beginning").fetchone()
    origin = {place: (seq, head) for place, seq, head in db.execute("SELECT place, seq, hash FROM origin")}
    if walk.file:
        if name != walk.name:
            text = f"it is of journal {name}, the closed files before it are of {walk.name}"
            walk.report.find(Finding(file, text, APART))
            walk.begin_anew()
        elif number != walk.file + 1:
            text = f"it is file {number}, the one before it here is {walk.file}: files between are missing"
            walk.report.find(Finding(file, text, BACK))
        elif n != walk.n or origin != {place: (seq, walk.heads[place]) for place, seq in walk.last.items()}:
            text = "it does not begin where the file before ends: rows of that were added, removed or changed"
            walk.report.find(Finding(file, text, TAMPERED, n=n))
    elif number == 1 and (n or origin):
        walk.report.find(Finding(file, "the first file cannot begin in the middle", TAMPERED, n=n))
    walk.name, walk.file, walk.n = name, number, n
    walk.last = {place: seq for place, (seq, _) in origin.items()}
    walk.heads = {place: head for place, (_, head) in origin.items()}


def _walk_rows(walk: _Walk, db: sqlite3.Connection, file: str, to: int) -> None:
    """Verify the rows up to `to`, in pages, so that the writer's log can be emptied in between."""
    at = walk.n
    while at < to:
        try:
            query = f"SELECT {COLUMNS}, hash FROM event WHERE n > ? AND n <= ? ORDER BY n LIMIT {_PAGE}"  # noqa: S608 - constants
            page = db.execute(query, (at, to)).fetchall()
        except (sqlite3.Error, OverflowError):
            at = _walk_damaged(walk, db, file, at, to)
            continue
        if not page:
            return
        walk.rows(file, page)
        # A key that was changed to a lower one could make this loop endless.
        at = page[-1][0] if page[-1][0] > at else _walk_damaged(walk, db, file, at, to)


def _walk_damaged(walk: _Walk, db: sqlite3.Connection, file: str, at: int, to: int) -> int:
    """Verify a page row by row, because some are unreadable or out of order. Returns the last number reached."""
    end, bad, found = min(at + _PAGE, to), 0, False
    before, db.text_factory = db.text_factory, lambda raw: raw.decode("utf-8", "backslashreplace")
    for n in range(at + 1, end + 1):
        try:
            values = db.execute(f"SELECT {COLUMNS}, hash FROM event WHERE n = ?", (n,)).fetchone()  # noqa: S608
        except (sqlite3.Error, OverflowError) as error:
            walk.report.find(Finding(file, f"cannot be read: {error}", DISK, n=n))
            bad += 1
            if bad == 20:  # an unreadable page near the root would fail for all rows
                end = to
                break
        else:
            if values is not None:
                found = True
                walk.rows(file, [values])
    db.text_factory = before
    return end if found or bad else to  # a longer run of numbers without rows does not occur
