"""Looking into journals without a right to write: is everything as it was written, what happened, and why.

`verify` walks over every row of every file and compares it with its chain, each chain with what was signed. `export`
gives a table's rows to somebody who has nothing of ours; `verify_export` checks that file. `recall` goes from the last
results back to the bytes on the wire.
"""

import contextlib
import re
import shlex
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
from msgspec import Struct

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
from daemon.journal.schema import TAMPERED, WrongSchema
from daemon.journal.store import changed_log, closed_files, heads_at, instant, log_of, no_time, note_of, open_to_read
from protocols.contract.results import Result
from protocols.contract.topics import EARLIEST, device_topic, table_topic

__all__ = [
    "Finding",
    "Recalled",
    "Report",
    "Verifier",
    "export",
    "left_of",
    "recall",
    "recall_text",
    "report_text",
    "verify",
    "verify_export",
    "verify_recent",
]

KEPT_AT_LEAST = timedelta(days=90)
MOST_FINDINGS = 100
RECENT = 20_000
"""Rows that are looked at before a start: a tenth of a second."""
_PAGE = 500
_COLUMNS = "n, place, seq, device, type, time, data, wire, cause, hash"
_ENDED = "place = ? AND type IN ('resolved', 'voided', 'corrected')"
CORRECTIONS = 1000  # of one round, at most
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# What a line may be besides: no hex, a time without a zone, a number that no row has.
_NO_LINE = (*_UNREADABLE, ValueError, TypeError, OverflowError, struct.error)

RESTORE = "keep the file as it is, stop relying on it, and compare with a copy or an export of before"
DISK = "keep the file as it is, check the disk, and go on from a copy or in a new journal"
BACK = "put the missing file back beside the others"
APART = "move the files of one of them away together, and keep them"
LOST = "somebody changed it, or the disk lost what it had said was durable: keep all files as they are"
BAD_TIME = (
    "an earlier version wrote it: its round is void when the rules start; keep the file, and find out who published an"
    " event at such a time"
)
GIVE_KEY = "give the public key of the time with --public; if there is none, the signature proves nothing"


class Verifier(Protocol):
    """A public key; daemon/journal/signing.py has one."""

    @property
    def id(self) -> str:
        """As statements name it."""
        ...

    def signed(self, statement: bytes, signature: bytes) -> bool:
        """Whether its owner signed exactly these bytes."""
        ...


class Finding(Struct, frozen=True, omit_defaults=True):
    """Something that is not as it was written. `n` and `seq` are 0 where they cannot be known.

    `about_key`: it only says that the key which was given did not sign. `about_note`: the note beside the journal does
    not name its last checkpoint, which a person may say is right (`feltd journal accept`). `unreadable`: the row is as
    it was written, and no reader can decode it; it ends its round, and no start.
    """

    file: str
    text: str
    remedy: str
    place: str = ""
    seq: int = 0
    n: int = 0
    about_key: bool = False
    about_note: bool = False
    unreadable: bool = False

    def __str__(self) -> str:
        """One line."""
        where = [f"table {self.place}"] if self.place else []
        where += [f"seq {self.seq}"] if self.seq else []
        where += [f"row {self.n}"] if self.n else []
        return f"{self.file}: {', '.join(where) + ': ' if where else ''}{self.text}; {self.remedy}"


class Report(Struct):
    """What `verify` saw."""

    journal: str = ""
    files: int = 0
    rows: int = 0
    tables: int = 0
    checkpoints: int = 0
    signatures: int = 0
    signed_rows: int = 0
    findings: list[Finding] = []
    more: int = 0
    notes: list[str] = []

    @property
    def good(self) -> bool:
        """Nothing was found."""
        return not self.findings

    def find(self, finding: Finding) -> None:
        """Bounded: a ruined file has one for each row."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
            return
        self.more += 1
        if not finding.unreadable:  # those end no start, and must not take the place of one that does
            at = next((n for n, one in enumerate(self.findings) if one.unreadable), None)
            if at is not None:
                self.findings[at] = finding


def report_text(name: str, report: Report) -> str:
    """For a person to read: each finding, then the counts, then what the counts do not say."""
    lines = [str(finding) for finding in report.findings]
    said = f"{len(report.findings) + report.more} FINDINGS" if report.findings else "good"
    counts = f"{report.rows} rows, {report.tables} tables, {report.files} files, {report.checkpoints} checkpoints"
    lines.append(f"{name}: {said}: journal {report.journal}: {counts}, {report.signatures} signatures checked")
    return "\n".join([*lines, *(f"  note: {note}" for note in report.notes)])


class _Signed(Struct, frozen=True):
    number: int
    n: int
    statement: bytes
    signature: bytes


class _Walk:
    """Where every chain stands while rows and checkpoints go by."""

    def __init__(self, report: Report, keys: Sequence[Verifier]) -> None:
        self.report = report
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
        """Rows by n. The common case first: each follows from the one before it in its table."""
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

    def _broken(self, file: str, values: tuple[Any, ...], computed: bytes) -> None:
        """Say what is wrong with a row, and take the chain up as it stands: one change, one finding."""
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
            text = f"it stands behind row {self.n}: inserted or reordered"
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
        """What was signed when row `one.n` was the last one."""
        report = self.report

        def find(text: str, remedy: str, place: str = "", seq: int = 0) -> None:
            said = f"checkpoint {one.number}: {text}"
            report.find(Finding(file, said, remedy, place, seq, one.n, about_key=remedy == GIVE_KEY))

        report.checkpoints += 1
        try:
            said = decode_statement(one.statement)
        except _UNREADABLE:
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
        """What follows is of another journal, and goes on from nothing that was before it."""
        self.signed_to, self._number, self._previous, self._known = {}, 0, "", False

    def forget(self) -> None:
        """What follows goes on from files that are not there any more."""
        self.begin_anew()
        self.file = 0

    def same_checkpoint(self, statement: bytes) -> bool:
        """Whether a file begins with the very checkpoint that the file before ended with."""
        return self._known and fingerprint(statement) == self._previous


def verify(path: Path, keys: Sequence[Verifier] = (), *, now: datetime | None = None) -> Report:
    """Every row of the journal at `path` and of the closed files beside it."""
    return _verified(path, keys, now, closed=True)


def verify_recent(path: Path, keys: Sequence[Verifier] = ()) -> Report:
    """The journal at `path` from a checkpoint on that has RECENT rows after it; all of the file where it has no more.

    Where nothing is signed, as many rows: each follows from the one before it. However large a file is, this takes
    no longer.
    """
    return _verified(path, keys, None, closed=False)


def _verified(path: Path, keys: Sequence[Verifier], now: datetime | None, *, closed: bool) -> Report:
    report = Report()
    walk = _Walk(report, keys)
    with contextlib.ExitStack() as stack:
        live: sqlite3.Connection | None = None
        noted: Noted | str = ""
        before: list[Path] = []
        try:
            before = closed_files(path)
            if path.is_file():
                noted = _noted(path)  # before the journal: that only goes on
                if said := changed_log(path):
                    report.find(Finding(str(log_of(path)), said, LOST))
                opened, before = _opened(path)
                live = stack.enter_context(contextlib.closing(opened))
            elif left := left_of(path):
                are = "is" if len(left) == 1 else "are"
                text = f"there is no such file, and it was there: {', '.join(left[:3])} {are}"
                report.find(Finding(str(path), text, BACK))
            else:
                report.find(Finding(str(path), "there is no such file", "give the path of a journal"))
                return report
        except (sqlite3.Error, OSError) as error:
            _find_unread(report, path, error)
            with contextlib.suppress(OSError):
                before = closed_files(path)
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
                    walk.forget()  # deleted for room or moved to an archive just now, as all before it were
        if live is not None:
            _verify_file(walk, live, path, recent=0 if closed else RECENT)
            if closed and report.files and walk.file >= report.files:
                there = [one for one in before if one.exists()]
                _missing_files(report, path, there, live, walk, now or datetime.now(UTC))
            _compare_noted(report, path, live, noted, told=closed, keyed=bool(keys))
    _conclude(report, walk)
    return report


def _find_unread(report: Report, path: Path, error: Exception) -> None:
    """A file whose rows are not looked at. What a schema that is not ours shows of them proves nothing."""
    if not isinstance(error, WrongSchema):
        report.find(Finding(str(path), f"cannot be read: {error}", DISK))
        return
    report.files += 1
    for text in error.texts:
        report.find(Finding(str(path), text, error.remedy))


def left_of(path: Path) -> list[str]:
    """What shows that a journal was at `path`, where it is not any more: its closed files, its log, its lock."""
    beside = (log_of(path), path.with_name(path.name + "-lock"))
    return [one.name for one in (*closed_files(path), *beside) if one.exists()]


def _opened(path: Path) -> tuple[sqlite3.Connection, list[Path]]:
    """The file under `path` and the closed ones before it, at one moment of its writer."""
    db = open_to_read(path)  # from here on no writer closes it
    try:
        return db, closed_files(path)
    except BaseException:
        db.close()
        raise


def _noted(path: Path) -> Noted | str:
    """Which checkpoint was the last, as it stands beside the journal; or why that cannot be known."""
    try:
        return decode_noted(note_of(path).read_bytes()) or "is empty"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except _UNREADABLE as error:
        return f"cannot be read: {error}"


def _compare_noted(
    report: Report, path: Path, live: sqlite3.Connection, noted: Noted | str, *, told: bool, keyed: bool
) -> None:
    """The journal ends with the checkpoint that was noted beside it, or with the next one.

    A journal that was ever signed has a note, and one that has a key and rows: it is written before the first row. One
    that has neither may do without; `told`: what cannot be read is named all the same.
    """
    note = note_of(path)
    accept = f"where a copy was put back on purpose, `feltd journal accept {shlex.quote(str(path))}` takes it as it is"

    def find(file: Path, text: str, remedy: str, n: int = 0) -> None:
        report.find(Finding(str(file), text, f"{remedy}; {accept}", n=n, about_note=True))

    with contextlib.suppress(sqlite3.Error, TypeError, AttributeError, UnicodeDecodeError):  # each is a finding already
        name = live.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
        last = live.execute("SELECT max(number) FROM checkpoint").fetchone()[0] or 0
        rows = live.execute("SELECT max(n) FROM event").fetchone()[0] or 0
        before = live.execute("SELECT n FROM beginning").fetchone()[0]
        if isinstance(noted, str):
            needed = bool(last or (keyed and (rows or before))) and not re.search(r"\.\d{6}$", path.stem)
            if needed or (told and noted.startswith("cannot be read")):
                text = f"{noted}; it names the last checkpoint, and without it a cut end of {path.name} is not seen"
                find(note, text, "put it back, and give it to the user to whom the journal belongs")
            return
        if noted.number < last - 1:  # beside a writer: the note was read before the journal
            again = _noted(path)
            noted = again if isinstance(again, Noted) else noted
        at = f"checkpoint {noted.number} was made after row {noted.n}"
        found = live.execute("SELECT statement FROM checkpoint WHERE number = ?", (noted.number,)).fetchone()
        if noted.journal != name:
            text = f"it is of journal {noted.journal}, and {path.name} is journal {name}"
            find(note, text, f"{APART}; or put back the {path.name} that it belongs to")
        elif last < noted.number:
            text = f"it fell behind: {at} ({note.name} says so), the last one in it is {last or 'none'}"
            find(path, text, "put back what is missing, its log too", noted.n)
        elif found is not None and fingerprint(found[0]) != noted.statement:
            text = f"{at}, and it is not the one that stands in it ({note.name} says so)"
            report.find(Finding(str(path), text, TAMPERED, n=noted.n))
        elif noted.number < last - 1:
            text = f"it names checkpoint {noted.number}, the last one of {path.name} is {last}: it is an older one"
            find(note, text, "somebody put it back, as one who cuts the end off would: tell the inspector")


def _missing_files(
    report: Report, path: Path, before: list[Path], live: sqlite3.Connection, walk: _Walk, now: datetime
) -> None:
    """Files that are kept no more are no finding; that they are gone too early is one."""
    first = walk.file - len(before)
    if first <= 1:
        return
    if re.search(rf"\.{walk.file:06}$", path.stem):
        report.notes.append(f"a closed file, number {walk.file}; the others were not looked at")
        return
    oldest = next(iter(before), None)
    with (
        contextlib.suppress(sqlite3.Error, OSError, TypeError, ValueError, OverflowError),
        contextlib.ExitStack() as stack,
    ):
        db = live if oldest is None else stack.enter_context(contextlib.closing(open_to_read(oldest)))
        began = _EPOCH + timedelta(microseconds=db.execute("SELECT time FROM beginning").fetchone()[0])
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
            "nothing is signed: the chain shows every accident, but who can write the file can make a new chain, or cut"
            " its end off; configure a key"
        )
    elif report.checkpoints and not walk.keys:
        report.notes.append("signatures were not checked: give the public key with --public")
    elif walk.n > report.signed_rows and report.good:
        report.notes.append(f"the last {walk.n - report.signed_rows} rows are chained and not signed yet")


def _verify_file(walk: _Walk, db: sqlite3.Connection, path: Path, recent: int = 0) -> None:
    """One file after the one before it: its `recent` last rows at least, or all. Never raises for what stands there."""
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
    except (sqlite3.Error, *_UNREADABLE, TypeError, ValueError, AttributeError) as error:
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
    """Take the chains up where the last checkpoint up to row `n` says they stood, or where they stand at `n`.

    The checkpoints from that one on. What it was signed over is looked at with it; what was before it is not.
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
    walk.report.notes.append(f"only what stands after row {n} was looked at")
    walk.file = 0  # it does not begin with this file's first checkpoint
    return checkpoints[at:] if at is not None else [one for one in checkpoints if one[1] > n]


def _verify_rows(
    walk: _Walk, db: sqlite3.Connection, file: str, checkpoints: Sequence[tuple[Any, ...]], to: int | None
) -> None:
    """Rows and checkpoints, each checkpoint after the row that it was made after."""
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
    """Where the file says that it begins, beside where the one before ended."""
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
    """The rows up to `to`, in pages: no reader keeps the log of a writer from being emptied for long."""
    at = walk.n
    while at < to:
        try:
            rows = db.execute(f"SELECT {_COLUMNS} FROM event WHERE n > ? AND n <= ? ORDER BY n LIMIT {_PAGE}", (at, to))  # noqa: S608
            page = rows.fetchall()
        except (sqlite3.Error, OverflowError):
            at = _walk_damaged(walk, db, file, at, to)
            continue
        if not page:
            return
        walk.rows(file, page)
        # A key that was changed to one before it may lead back to itself, for ever.
        at = page[-1][0] if page[-1][0] > at else _walk_damaged(walk, db, file, at, to)


def _walk_damaged(walk: _Walk, db: sqlite3.Connection, file: str, at: int, to: int) -> int:
    """A page of rows one by one, as some of them cannot be read or found in their order. How far it came."""
    end, bad, found = min(at + _PAGE, to), 0, False
    before, db.text_factory = db.text_factory, lambda raw: raw.decode("utf-8", "backslashreplace")
    for n in range(at + 1, end + 1):
        try:
            values = db.execute(f"SELECT {_COLUMNS} FROM event WHERE n = ?", (n,)).fetchone()  # noqa: S608
        except (sqlite3.Error, OverflowError) as error:
            walk.report.find(Finding(file, f"cannot be read: {error}", DISK, n=n))
            bad += 1
            if bad == 20:  # then it is a page near the root, and would be the same for all
                end = to
                break
        else:
            if values is not None:
                found = True
                walk.rows(file, [values])
    db.text_factory = before
    return end if found or bad else to  # no journal has so many numbers without a row


# ---- export


class _Head(Struct, frozen=True, kw_only=True):
    """The first line of an export."""

    feltd: str = "export"
    version: int = VERSION
    journal: str
    site: str
    writer: str
    place: str
    first: int
    last: int
    before: str
    made: datetime


class _Line(Struct, frozen=True, kw_only=True):
    """A row as a CloudEvent: `data` to be read, `datahex` and `wire` to be hashed.

    `micros` stands where the row's time is not plausible: what is hashed, while `time` is EARLIEST.
    """

    specversion: str = "1.0"
    id: str
    source: str
    type: str
    time: datetime
    seq: int
    journal: str
    n: int
    place: str
    device: str
    cause: str
    wire: str
    hash: str
    datahex: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    micros: int | msgspec.UnsetType = msgspec.UNSET


class _Seal(Struct, frozen=True, kw_only=True):
    """A checkpoint in an export: `statement` is the very text that was signed."""

    feltd: str = "checkpoint"
    statement: str
    signature: str


_HEXES = ("before", "wire", "hash", "datahex", "signature")


class Files:
    """The files of a journal, to be looked into from the newest to the oldest: the live one is open, and one more."""

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.Error or OSError."""
        self.live, before, self.name = _begun(path)
        self._live_path = path
        self._paths = [*before, path]
        self._other: tuple[Path, sqlite3.Connection] | None = None
        self._origins: dict[Path, dict[str, int]] = {}

    def newest(self, most: int, which: str, *values: Any) -> list[tuple[Any, ...]]:
        """At most so many of the rows that `which` names, the newest first."""
        found: list[tuple[Any, ...]] = []
        query = f"SELECT {_COLUMNS} FROM event WHERE {which} ORDER BY seq DESC LIMIT ?"  # noqa: S608
        for path in reversed(self._paths):
            if len(found) >= most:
                break
            found += self._opened(path).execute(query, (*values, most - len(found))).fetchall()
        return found

    def row(self, place: str, seq: int) -> tuple[Any, ...] | None:
        """One row of a table. Each file is asked once from which seq on it goes."""
        query = f"SELECT {_COLUMNS} FROM event WHERE place = ? AND seq = ?"  # noqa: S608
        for path in reversed(self._paths):
            if path not in self._origins:
                self._origins[path] = dict(self._opened(path).execute("SELECT place, seq FROM origin"))
            if self._origins[path].get(place, 0) < seq:
                found: tuple[Any, ...] | None = self._opened(path).execute(query, (place, seq)).fetchone()
                return found
        return None

    def _opened(self, path: Path) -> sqlite3.Connection:
        """A process may have no more than 1024 files open, and a journal may have more."""
        if path == self._live_path:
            return self.live
        if self._other is None or self._other[0] != path:
            self._let_go()
            self._other = path, _reader(path)
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


def _begun(path: Path) -> tuple[sqlite3.Connection, list[Path], str]:
    """The live file, the closed ones before it, the journal's name. Raises sqlite3.Error or OSError."""
    if not path.is_file():
        raise FileNotFoundError(2, "there is no such journal", str(path))
    with contextlib.ExitStack() as stack:
        live, before = _opened(path)
        stack.callback(live.close)
        name: str = live.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
        stack.pop_all()
    return live, before, name


def _reader(closed: Path) -> sqlite3.Connection:
    try:
        return open_to_read(closed)
    except (sqlite3.Error, OSError) as error:
        if closed.exists():
            raise
        raise FileNotFoundError(2, "was just moved away; run it again", str(closed)) from error


def _live(path: Path, closed: list[Path]) -> sqlite3.Connection | None:
    """The live file; None where others were closed meanwhile: they are in `closed` now, and come before it."""
    live, before = _opened(path)
    # What an older file's owner puts back meanwhile is not of this export: only what was live can have been closed.
    if not (new := [one for one in before if not closed or one.name > closed[-1].name]):
        return live
    live.close()
    closed += new
    return None


def _each(path: Path, closed: list[Path]) -> Iterator[sqlite3.Connection]:
    """One file after the other, one open at a time; those that are closed meanwhile are added to `closed`."""
    at = 0
    while True:
        for one in closed[at:]:
            with contextlib.closing(_reader(one)) as db:
                yield db
        at = len(closed)
        if (live := _live(path, closed)) is not None:
            with contextlib.closing(live):
                yield live
            return


def _rows(path: Path, closed: list[Path], place: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """The rows from seq `first` to `last`, in pages. Between them the live file is let go.

    Who takes them may wait for long (`| less`), and keeps no log from being emptied, and no file from being closed.
    """
    at, before = 0, first - 1
    while True:
        for one in closed[at:]:
            with contextlib.closing(_reader(one)) as db:
                while page := _page(db, place, before, last):
                    yield from page
                    before = page[-1][2]
            if before >= last:
                return
        at = len(closed)
        if (live := _live(path, closed)) is not None:
            with contextlib.closing(live):
                page = _page(live, place, before, last)
            if not page:
                return
            yield from page
            before = page[-1][2]


def _page(db: sqlite3.Connection, place: str, before: int, last: int) -> list[tuple[Any, ...]]:
    query = f"SELECT {_COLUMNS} FROM event WHERE place = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT {_PAGE}"  # noqa: S608
    return db.execute(query, (place, before, last)).fetchall()


def _checkpoints(path: Path, closed: list[Path]) -> Iterator[tuple[_Seal, Statement]]:
    """Each once, though a file begins with the last one of the file before it.

    What cannot be read proves nothing and is left out: `verify` of the journal names it.
    """
    numbers: set[int] = set()
    for db in _each(path, closed):
        found = db.execute("SELECT number, statement, signature FROM checkpoint ORDER BY number").fetchall()
        for number, statement, signature in found:
            if number in numbers:
                continue
            numbers.add(number)
            try:
                seal = _Seal(statement=statement.decode(), signature=signature.hex())
                said = decode_statement(statement)
            except (*_UNREADABLE, TypeError, AttributeError):
                continue
            yield seal, said


def export(
    path: Path, place: str, *, site: str, writer: str, since: datetime, until: datetime, edge: bool
) -> Iterator[bytes]:
    """The rows of a table from `since` until before `until`, and on to the next checkpoint, as lines of JSON.

    `writer` is the name of the edge, or of the rules (`edge` false). Raises sqlite3.Error or OSError.
    """
    live, closed, name = _begun(path)
    live.close()
    lo, hi = _micros(since), _micros(until)
    first, last, before = 0, 0, chain_start(name, place)
    for db in _each(path, closed):
        ends = db.execute(
            "SELECT min(seq), max(seq) FROM event WHERE place = ? AND time >= ? AND time < ?", (place, lo, hi)
        ).fetchone()
        if ends[0] is not None:
            if not first:
                first, before = ends[0], _hash_before(db, place, ends[0]) or before
            last = max(last, ends[1])
    seals: list[_Seal] = []
    for seal, said in _checkpoints(path, closed) if first else ():
        seq = said.heads.get(place, (0, ""))[0]
        if seq >= first:
            seals.append(seal)
        if seq >= last:
            last = seq  # the last row that is wanted is signed with the ones after it
            break
    head = _Head(
        journal=name,
        site=site,
        writer=writer,
        place=place,
        first=first or 1,  # 1 to 0: none
        last=last,
        before=before.hex(),
        made=datetime.now(UTC),
    )
    yield msgspec.json.encode(head)
    for values in _rows(path, closed, place, first, last) if first else ():
        try:
            line = _line(values, name, site, writer, edge=edge)
        except (TypeError, AttributeError, OverflowError) as error:
            raise sqlite3.DatabaseError(f"row {values[0]} cannot be read: {error}") from error
        yield msgspec.json.encode(line)
    yield from map(msgspec.json.encode, seals)


def _hash_before(db: sqlite3.Connection, place: str, seq: int) -> bytes | None:
    """Of the row before `seq`, in whose file it may stand, or as that file says that it begins."""
    for table in ("event", "origin"):
        query = f"SELECT hash FROM {table} WHERE place = ? AND seq = ?"  # noqa: S608
        if found := db.execute(query, (place, seq - 1)).fetchone():
            hash_: bytes = found[0]
            return hash_
    return None


def _line(values: tuple[Any, ...], journal: str, site: str, writer: str, *, edge: bool) -> _Line:
    n, place, seq, device, type_, time, data, wire, cause, hash_ = values
    source = device_topic(site, place, device, "")[:-1] if edge else table_topic(site, place, "round")
    return _Line(
        id=f"{writer}:{place}:{seq}" if edge else cause,
        source=source,
        type=type_,
        time=instant(time) or EARLIEST,
        seq=seq,
        journal=journal,
        n=n,
        place=place,
        device=device,
        cause=cause,
        wire=wire.hex(),
        hash=hash_.hex(),
        datahex=data.hex(),
        data=msgspec.Raw(data if _is_json(data) else b"null"),
        micros=time if instant(time) is None else msgspec.UNSET,
    )


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except _UNREADABLE:
        return False
    return b"\n" not in data


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def verify_export(lines: Iterable[bytes], file: str, keys: Sequence[Verifier] = ()) -> Report:
    """What `export` wrote, with nothing else at hand than the public key."""
    report = Report(files=1)
    walk = _Walk(report, keys)
    head: _Head | None = None
    heads: dict[int, bytes] = {}
    last = 0
    seals: list[tuple[_Seal, Statement]] = []
    for number, line in enumerate(lines, 1):
        try:
            if number == 1:
                head = msgspec.json.decode(line, type=_Head)
                if (head.feltd, head.version) != ("export", VERSION):
                    raise msgspec.ValidationError("no export of this version")
                last = head.first - 1
                heads[last] = bytes.fromhex(head.before)
                _verify_written(report, line, head, f"{file}:{number}")
            elif line.startswith(b'{"feltd"'):
                seal = msgspec.json.decode(line, type=_Seal)
                said = decode_statement(seal.statement.encode())
                _verify_written(report, line, seal, f"{file}:{number}")
                seals.append((seal, said))
            elif head is not None:
                one = msgspec.json.decode(line, type=_Line)
                last = _verify_line(report, head, heads, last, one, f"{file}:{number}")
                _verify_written(report, line, one, f"{file}:{number}")
        except _NO_LINE as error:
            report.find(Finding(f"{file}:{number}", f"no line of an export: {error}", RESTORE))
            if number == 1:
                return report
    if head is None:
        report.find(Finding(file, "is empty", RESTORE))
        return report
    walk.name = head.journal
    report.journal, report.tables = head.journal, 1
    if last < head.last:
        text = f"rows are missing at the end (seq {last + 1} to {head.last})"
        report.find(Finding(file, text, RESTORE, head.place, head.last))
    if head.first > 1:
        report.notes.append(f"begins with seq {head.first}; what was before is not in it")
    signed = head.first - 1
    for seal, said in seals:
        signed = max(signed, _verify_seal(walk, file, head, heads, seal, said))
    report.signed_rows = max(signed - head.first + 1, 0)
    if keys and report.rows and not report.signed_rows:
        report.find(Finding(file, "no row in it is signed by the key that was given", GIVE_KEY, head.place))
    elif not keys:
        text = "signatures were not checked: give the public key with --public" if seals else "nothing in it is signed"
        report.notes.append(text)
    elif signed < last:
        report.notes.append(f"the last {last - signed} rows are chained and not signed")
    return report


def _verify_written(report: Report, line: bytes, one: _Head | _Line | _Seal, file: str) -> None:
    """A reader takes for true what is read past here: a key more, one that is there twice. So none may be."""
    hexes = {name: bytes.fromhex(getattr(one, name)).hex() for name in _HEXES if hasattr(one, name)}
    if msgspec.json.encode(msgspec.structs.replace(one, **hexes)) != line.rstrip(b"\r\n"):
        place, seq, n = (one.place, one.seq, one.n) if isinstance(one, _Line) else ("", 0, 0)
        text = "the line is written as no export writes it: something was added, doubled or put elsewhere"
        report.find(Finding(file, text, RESTORE, place, seq, n))


def _verify_line(report: Report, head: _Head, heads: dict[int, bytes], before: int, one: _Line, file: str) -> int:
    """The seq up to which rows were seen, after seq `before`."""
    data, wire, stored = bytes.fromhex(one.datahex), bytes.fromhex(one.wire), bytes.fromhex(one.hash)
    micros = _micros(one.time) if one.micros is msgspec.UNSET else one.micros
    computed = row_hash(heads[before], one.n, one.place, one.seq, one.device, one.type, micros, data, wire, one.cause)

    def find(text: str) -> None:
        report.find(Finding(file, text, RESTORE, one.place, one.seq, one.n))

    report.rows += 1
    if one.seq > before + 1:
        find(f"rows before it are missing (seq {before + 1} to {one.seq - 1})")
    elif one.seq != before + 1:
        find(f"here must be seq {before + 1}: inserted or reordered")
        return before
    elif computed != stored or one.place != head.place:
        find("the row or its hash was changed: it does not follow from the row before")
    elif bytes(one.data) != (data if _is_json(data) else b"null"):
        find("`data` is not what `datahex` says")
    elif one.journal != head.journal:
        find(f"it is of journal {one.journal}, the export of {head.journal}")
    elif not _named_well(one, head):
        find("its id or source is not what its columns say")
    elif one.micros is not msgspec.UNSET and (instant(micros) is not None or one.time != EARLIEST):
        find("`time` is not what `micros` says")
    elif instant(micros) is None:
        report.find(Finding(file, no_time(micros), BAD_TIME, one.place, one.seq, one.n, unreadable=True))
    heads[one.seq] = stored
    return one.seq


def _named_well(one: _Line, head: _Head) -> bool:
    """`id` and `source` are made of the columns: a reader takes them for true."""
    if one.specversion != "1.0":
        return False
    if one.source == table_topic(head.site, one.place, "round"):
        return one.id == one.cause
    source = device_topic(head.site, one.place, one.device, "")[:-1]
    return (one.id, one.source) == (f"{head.writer}:{one.place}:{one.seq}", source)


def _verify_seal(walk: _Walk, file: str, head: _Head, heads: dict[int, bytes], seal: _Seal, said: Statement) -> int:
    """The seq up to which it proves the rows; 0 if it proves nothing."""
    report = walk.report
    report.checkpoints += 1
    seq, expected = said.heads.get(head.place, (0, ""))

    def find(text: str, remedy: str) -> None:
        report.find(Finding(file, f"checkpoint {said.number}: {text}", remedy, head.place, seq))

    key = walk.keys.get(said.key)
    if said.journal != head.journal:
        find(f"it was made for journal {said.journal}, the export is of {head.journal}", RESTORE)
    elif key is None and walk.keys:
        find(f"it is signed with key {said.key}, not with {', '.join(walk.keys)}", GIVE_KEY)
    elif key is not None and not key.signed(seal.statement.encode(), bytes.fromhex(seal.signature)):
        find("the signature is false", RESTORE)
    elif seq not in heads:
        find(f"it speaks of seq {seq}, which is not in the export", RESTORE)
    elif heads[seq].hex() != expected:
        find("the rows are not those that were signed", RESTORE)
    elif key is not None:
        report.signatures += 1
        return seq
    return 0


# ---- recall


class Evidence(Struct, frozen=True):
    """An event that a result rests on; without a type where the edge's journal has it no more."""

    id: str
    device: str = ""
    type: str = ""
    time: datetime | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    wire: str = ""
    hash: str = ""
    note: str = ""


class Recalled(Struct, frozen=True):
    """The end of a round, and what it rests on."""

    type: str
    time: datetime
    seq: int
    cause: str
    hash: str
    result: msgspec.Raw
    evidence: tuple[Evidence, ...]


def recall(rules: Path, edge: Path, table: str, rounds: int, only: str = "") -> list[Recalled]:
    """The last ends of rounds of a table, the newest first; of the round `only`. Raises sqlite3.Error or OSError."""
    with Files(rules) as verdicts:
        return _recalled(verdicts.newest(rounds, _ENDED, table), edge, table, only)


def recall_old(rules: Path, edge: Path, table: str, only: str) -> list[Recalled]:
    """The ends of one round, however old: all files are looked through. Raises sqlite3.Error or OSError."""
    member = b'"round":' + msgspec.json.encode(only)  # the whole name: others may begin with it
    with Files(rules) as verdicts:
        return _recalled(verdicts.newest(CORRECTIONS, f"{_ENDED} AND instr(data, ?)", table, member), edge, table, only)


def _recalled(ends: Iterable[tuple[Any, ...]], edge: Path, table: str, only: str) -> list[Recalled]:
    found: list[Recalled] = []
    with Files(edge) as events:
        for _n, _place, seq, _device, type_, time, data, _wire, cause, hash_ in ends:
            raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])["result"]
            result = msgspec.json.decode(raw, type=Result)
            if only and result.round != only:
                continue
            at = instant(time) or EARLIEST
            evidence = tuple(_evidence(events, one, table, at) for one in result.evidence)
            found.append(Recalled(type_, at, seq, cause, hash_.hex(), raw, evidence))
    return found


def _evidence(events: Files, id_: str, table: str, before: datetime) -> Evidence:
    _edge, _, rest = id_.partition(":")
    place, _, seq = rest.rpartition(":")
    if place != table or not seq.isdecimal() or len(seq) > 15:
        return Evidence(id_, note="no event of this table")
    found = events.row(table, int(seq))
    if found is None:
        return Evidence(id_, note="the edge's journal does not have it (any more)")
    _n, _place, _seq, device, type_, time, data, wire, _cause, hash_ = found
    at = instant(time)
    if at is None:  # nor is known whether it is older than the result
        return Evidence(id_, note=no_time(time))
    if at > before:  # another event, and what it tells may be a card of the round that is open
        return Evidence(id_, note="it is younger than the result: was the edge's journal replaced since?")
    kept = msgspec.Raw(data if _is_json(data) else b"null")
    return Evidence(id_, device, type_, at, kept, wire.hex(), hash_.hex())


def recall_text(recalled: Sequence[Recalled]) -> str:
    """For a person to read."""
    lines: list[str] = []
    for one in recalled:
        result = msgspec.json.decode(one.result, type=Result)
        said = result.announcements.get("en", "")
        at = "at an unknown time" if one.time == EARLIEST else f"{one.time:%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"round {result.round}  {one.type} {at}  {said}".rstrip())
        lines.append(f"  game      {result.ruleset} {result.edition}".rstrip())
        if result.supersedes:
            lines.append(f"  instead of {result.supersedes}")
        if result.void is not None:
            lines.append(f"  void      {result.void.reason}; bets {result.void.bets}")
        if result.outcome:
            lines.append(f"  outcome   {msgspec.json.encode(result.outcome).decode()}")
        lines += [f"  law       {article}" for article in result.law]
        lines += [f"  irregular {note.text} ({note.law})" for note in result.irregularities]
        for event in one.evidence:
            if event.time is None:
                lines.append(f"  event     {event.id}: {event.note}")
                continue
            at = event.time.strftime("%H:%M:%S.%f")[:-3]
            lines.append(f"  event     {at} {event.device} {event.type} {bytes(event.data).decode()}  {event.id}")
            if event.note:
                lines.append(f"            {event.note}")
            wire = bytes.fromhex(event.wire)
            lines += [f"    wire    {_dump(wire[at : at + 16])}" for at in range(0, len(wire), 16)]
        lines.append("")
    return "\n".join(lines)


def _dump(piece: bytes) -> str:
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
    return f"{piece.hex(' '):47}  {letters}"
