"""`export` gives the rows of a table as lines of JSON, to readers without feltd; `verify_export` checks such a file."""

import contextlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from daemon.journal.findings import BAD_TIME, GIVE_KEY, UNDECODABLE, Finding, Report, Verifier
from daemon.journal.hash_chain import VERSION, Statement, chain_start, decode_statement, row_hash
from daemon.journal.reader import Files, open_closed, open_journal, open_live
from daemon.journal.rows import COLUMNS, Row, id_and_journal, instant, json_or_null, micros_of, no_time, row_of
from protocols.contract.jackpots import jackpot_topic
from protocols.contract.topics import EARLIEST, device_topic, table_topic

__all__ = ["Written", "export", "row_before", "rows_between", "verify_export"]

Written: TypeAlias = Literal["edge", "rules", "jackpots"]
"""The process whose journal it is, from which the sources of its rows follow."""

_PAGE = 500

# Other defects of a line: no hex digits, a time without a zone, an impossible number.
_NO_LINE = (*UNDECODABLE, ValueError, TypeError, OverflowError, struct.error)


RESTORE = "keep the file as it is, stop relying on it, and compare with an earlier copy or export"


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

    `micros` is set where the row's time is not plausible: it is hashed, and `time` is EARLIEST. The `cause` of a
    verdict is its id and `cause_journal`, which early versions did not write.
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
    cause_journal: str | msgspec.UnsetType = msgspec.UNSET


class _Seal(Struct, frozen=True, kw_only=True):
    """A checkpoint in an export: `statement` is exactly the text that was signed."""

    feltd: str = "checkpoint"
    statement: str
    signature: str


_HEXES = ("before", "wire", "hash", "datahex", "signature")


def _live(path: Path, closed: list[Path]) -> sqlite3.Connection | None:
    """The live file; None where further files were closed meanwhile: they were added to `closed`, to be read first."""
    live, before = open_live(path)
    # Older files that were put back meanwhile are not in this export: only the live file can have been closed.
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
            with contextlib.closing(open_closed(one)) as db:
                yield db
        at = len(closed)
        if (live := _live(path, closed)) is not None:
            with contextlib.closing(live):
                yield live
            return


def _rows(path: Path, closed: list[Path], place: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """The rows from seq `first` to `last`, in pages. Between pages the live file is closed.

    A slow consumer (`| less`) thus delays neither the emptying of the log nor the closing of a file.
    """
    at, before = 0, first - 1
    while True:
        for one in closed[at:]:
            with contextlib.closing(open_closed(one)) as db:
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


def rows_between(path: Path, place: str, since: datetime | None, until: datetime | None) -> Iterator[Row]:
    """The rows of a table or a pool: from the first one at or after `since` up to the first one at or after `until`.

    Rows are in the order of their numbers, even if times are not: consecutive periods contain each row once. Raises
    sqlite3.Error or OSError.
    """
    live, closed, _ = open_journal(path)
    live.close()
    first, last = 1, 2**63 - 1
    if since is not None:
        first = _first_from(path, closed, place, since) or last
    if until is not None:
        last = (_first_from(path, closed, place, until) or 2**63) - 1
    for values in _rows(path, closed, place, first, last) if first <= last else ():
        yield row_of(values[:9])


def _first_from(path: Path, closed: list[Path], place: str, time: datetime) -> int:
    """The lowest number at or after this time; 0: none."""
    for db in _each(path, closed):
        query = "SELECT min(seq) FROM event WHERE place = ? AND time >= ?"
        (found,) = db.execute(query, (place, micros_of(time))).fetchone()
        if found is not None:
            return int(found)
    return 0


def row_before(path: Path, place: str, time: datetime) -> Row | None:
    """The last row before the first one at or after this time. Raises sqlite3.Error or OSError."""
    live, closed, _ = open_journal(path)
    live.close()
    first = _first_from(path, closed, place, time) or 2**63 - 1
    with Files(path) as files:
        found = files.newest(1, "place = ? AND seq < ?", place, first)
    return row_of(found[0][:9]) if found else None


def _page(db: sqlite3.Connection, place: str, before: int, last: int) -> list[tuple[Any, ...]]:
    query = f"SELECT {COLUMNS}, hash FROM event WHERE place = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT {_PAGE}"  # noqa: S608
    return db.execute(query, (place, before, last)).fetchall()


def _checkpoints(path: Path, closed: list[Path]) -> Iterator[tuple[_Seal, Statement]]:
    """Each checkpoint once, although a file begins with the last one of the file before it.

    Unreadable checkpoints are left out; `verify` of the journal names them.
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
            except (*UNDECODABLE, TypeError, AttributeError):
                continue
            yield seal, said


def export(
    path: Path, place: str, *, site: str, writer: str, since: datetime, until: datetime, of: Written
) -> Iterator[bytes]:
    """The rows of a table or a pool from `since` until before `until`, and on to the next checkpoint, as lines of JSON.

    `writer` is the name of the process that wrote them. Raises sqlite3.Error or OSError.
    """
    live, closed, name = open_journal(path)
    live.close()
    lo, hi = micros_of(since), micros_of(until)
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
            last = seq  # the last requested row is signed together with later ones
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
            line = _line(values, name, site, writer, of)
        except (TypeError, AttributeError, OverflowError) as error:
            raise sqlite3.DatabaseError(f"row {values[0]} cannot be read: {error}") from error
        yield msgspec.json.encode(line)
    yield from map(msgspec.json.encode, seals)


def _hash_before(db: sqlite3.Connection, place: str, seq: int) -> bytes | None:
    """The hash of the row before `seq`, from that row or from the origin of the file."""
    for table in ("event", "origin"):
        query = f"SELECT hash FROM {table} WHERE place = ? AND seq = ?"  # noqa: S608
        if found := db.execute(query, (place, seq - 1)).fetchone():
            hash_: bytes = found[0]
            return hash_
    return None


def _line(values: tuple[Any, ...], journal: str, site: str, writer: str, of: Written) -> _Line:
    n, place, seq, device, type_, time, data, wire, cause, hash_ = values
    source = {
        "edge": device_topic(site, place, device, "")[:-1],
        "rules": table_topic(site, place, "round"),
        "jackpots": jackpot_topic(site, place, "")[:-1],
    }[of]
    id_, cause_journal = (f"{writer}:{place}:{seq}", "") if of != "rules" else id_and_journal(cause)
    return _Line(
        id=id_,
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
        data=msgspec.Raw(json_or_null(data)),
        micros=time if instant(time) is None else msgspec.UNSET,
        cause_journal=cause_journal or msgspec.UNSET,
    )


def verify_export(lines: Iterable[bytes], file: str, keys: Sequence[Verifier] = ()) -> Report:
    """Verify a file of `export`, with the public key alone."""
    report = Report(files=1)
    by_id = {key.id: key for key in keys}
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
    report.journal, report.tables = head.journal, 1
    if last < head.last:
        text = f"rows are missing at the end (seq {last + 1} to {head.last})"
        report.find(Finding(file, text, RESTORE, head.place, head.last))
    if head.first > 1:
        report.notes.append(f"begins with seq {head.first}; earlier rows are not in it")
    signed = head.first - 1
    for seal, said in seals:
        signed = max(signed, _verify_seal(report, by_id, file, head, heads, seal, said))
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
    """Refuse a line that is not exactly as `export` writes it: a reader would use additional or doubled keys."""
    hexes = {name: bytes.fromhex(getattr(one, name)).hex() for name in _HEXES if hasattr(one, name)}
    if msgspec.json.encode(msgspec.structs.replace(one, **hexes)) != line.rstrip(b"\r\n"):
        place, seq, n = (one.place, one.seq, one.n) if isinstance(one, _Line) else ("", 0, 0)
        text = "the line is not as `feltd journal export` writes it: something was added, doubled or moved"
        report.find(Finding(file, text, RESTORE, place, seq, n))


def _verify_line(report: Report, head: _Head, heads: dict[int, bytes], before: int, one: _Line, file: str) -> int:
    """Verify a row after seq `before`; returns its seq."""
    data, wire, stored = bytes.fromhex(one.datahex), bytes.fromhex(one.wire), bytes.fromhex(one.hash)
    micros = micros_of(one.time) if one.micros is msgspec.UNSET else one.micros
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
    elif bytes(one.data) != json_or_null(data):
        find("`data` and `datahex` differ")
    elif one.journal != head.journal:
        find(f"it is of journal {one.journal}, the export of {head.journal}")
    elif not _named_well(one, head):
        find("its id or source does not follow from its columns")
    elif one.micros is not msgspec.UNSET and (instant(micros) is not None or one.time != EARLIEST):
        find("`time` and `micros` differ")
    elif instant(micros) is None:
        report.find(Finding(file, no_time(micros), BAD_TIME, one.place, one.seq, one.n, unreadable=True))
    heads[one.seq] = stored
    return one.seq


def _named_well(one: _Line, head: _Head) -> bool:
    """Whether `id` and `source` match the columns, because readers use them."""
    if one.specversion != "1.0":
        return False
    if one.source == table_topic(head.site, one.place, "round"):
        return (one.id, one.cause_journal or "") == id_and_journal(one.cause)
    books = one.device == "jackpot" and one.source == jackpot_topic(head.site, one.place, "")[:-1]
    source = one.source if books else device_topic(head.site, one.place, one.device, "")[:-1]
    return (one.id, one.source) == (f"{head.writer}:{one.place}:{one.seq}", source)


def _verify_seal(
    report: Report,
    keys: Mapping[str, Verifier],
    file: str,
    head: _Head,
    heads: dict[int, bytes],
    seal: _Seal,
    said: Statement,
) -> int:
    """The seq up to which the checkpoint proves the rows; 0 if it proves nothing."""
    report.checkpoints += 1
    seq, expected = said.heads.get(head.place, (0, ""))

    def find(text: str, remedy: str) -> None:
        report.find(Finding(file, f"checkpoint {said.number}: {text}", remedy, head.place, seq))

    key = keys.get(said.key)
    if said.journal != head.journal:
        find(f"it was made for journal {said.journal}, the export is of {head.journal}", RESTORE)
    elif key is None and keys:
        find(f"it is signed with key {said.key}, not with {', '.join(keys)}", GIVE_KEY)
    elif key is not None and not key.signed(seal.statement.encode(), bytes.fromhex(seal.signature)):
        find("the signature is false", RESTORE)
    elif seq not in heads:
        find(f"it names seq {seq}, which is not in the export", RESTORE)
    elif heads[seq].hex() != expected:
        find("the rows are not those that were signed", RESTORE)
    elif key is not None:
        report.signatures += 1
        return seq
    return 0
