"""Tampering is found and named; what an inspector gets can be checked; a result leads back to the wire."""

import asyncio
import contextlib
import hashlib
import itertools
import os
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from click.testing import CliRunner, Result
from helpers import PATIENCE, at_length, virtual_time
from hypothesis import HealthCheck, example, given, settings, strategies as st

from daemon.broker.retained import Retained
from daemon.cli.main import main
from daemon.config.model import BadConfig, Keeping, parse
from daemon.journal import (
    reader as reader_module,
    retention as keeping,
    store as journal_module,
    verify as verify_module,
)
from daemon.journal.export import export, verify_export
from daemon.journal.findings import Finding, report_text
from daemon.journal.forwarded import NONE_WAITS
from daemon.journal.hash_chain import chain_start, decode_statement, row_hash
from daemon.journal.reader import Files, Reading, closed_files, note_of, open_to_read
from daemon.journal.recall import recall, recall_old, recall_text
from daemon.journal.retention import room, take_up
from daemon.journal.rows import Entry
from daemon.journal.signing import BadKey, Key, PublicKey, make_key, public_path
from daemon.journal.store import BadJournal, Journal
from daemon.journal.verify import verify, verify_recent
from daemon.journal.wal import log_of
from daemon.logs import get
from daemon.pulse import PULSE_S

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ALWAYS = {"since": datetime(1, 1, 1, tzinfo=UTC), "until": datetime.max.replace(tzinfo=UTC)}


@pytest.fixture(autouse=True, scope="module")
def short_wait() -> Iterator[None]:
    """For whoever has the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_module, "LOCKED_TIMEOUT", 0.01)
        yield


def entries(count: int, first: int = 0) -> list[Entry]:
    return [
        Entry(f"t-{n % 3}", f"d-{n % 2}", "ball.landed", NOON + timedelta(seconds=n), b'{"n":%d}' % n, b"*X;%d\r" % n)
        for n in range(first, first + count)
    ]


def keys(folder: Path) -> Key:
    path = folder / "key.pem"
    return Key.load(path) if path.exists() else make_key(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Sixty rows of three tables, checkpoints after 10, 20, … 60, closed."""
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(keys(tmp_path), 10)
    for n in range(0, 60, 5):
        journal.append(entries(5, n), {"outbox": b"%d" % n})
    journal.close()
    return tmp_path / "journal.db"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """As somebody would who may write the file."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        yield db
    finally:
        db.close()


def said(path: Path, *, signed: bool = True) -> list[str]:
    report = verify(path, [keys(path.parent).public] if signed else [])
    assert report.good == (not report.findings)
    return [str(one).removeprefix(f"{path}: ") for one in report.findings]


# ---- good


def test_a_journal_as_it_was_written_is_good(path: Path) -> None:
    report = verify(path, [keys(path.parent).public])
    assert report.good, report
    assert (report.rows, report.tables, report.files, report.checkpoints, report.signatures) == (60, 3, 1, 6, 6)
    assert (report.signed_rows, report.notes) == (60, [])
    assert "good: journal" in report_text("x", report)


def test_without_the_key_that_is_said(path: Path) -> None:
    assert verify(path).good
    assert "signatures were not checked" in verify(path).notes[0]


def test_a_journal_without_a_key_is_chained_and_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.append(entries(5))
    report = verify(tmp_path / "j.db")  # while it is in use
    assert report.good
    assert report.rows == 5
    assert "nothing is signed" in report.notes[0]
    journal.close()
    [finding] = verify(tmp_path / "j.db", [keys(tmp_path).public]).findings
    assert "nothing in it is signed" in finding.text
    assert finding.about_key


def test_an_empty_journal_is_good(tmp_path: Path) -> None:
    Journal(tmp_path / "j.db").close()
    assert verify(tmp_path / "j.db", [keys(tmp_path).public]).good


def test_rows_after_the_last_checkpoint_are_counted(path: Path) -> None:
    journal = Journal(path)
    journal.append(entries(4, 60))
    assert verify(path, [keys(path.parent).public]).notes == ["the last 4 rows are chained and not signed yet"]
    journal.close()


def test_the_format_is_what_the_document_says(path: Path) -> None:
    """Worked out again from SQLite and hashlib alone, as docs/explanation/journal.md tells an inspector."""
    with opened(path) as db:
        name = db.execute("SELECT value FROM memory WHERE key='journal'").fetchone()[0].decode()
        heads: dict[str, bytes] = {}
        for *row, stored in db.execute(
            "SELECT n,place,seq,device,type,time,data,wire,cause,hash FROM event ORDER BY n"
        ):
            n, place, seq, device, type_, time, data, wire, cause = row
            start = hashlib.sha256(b"feltd journal 2\0" + name.encode() + b"\0" + place.encode()).digest()
            assert start == chain_start(name, place)
            parts = [place.encode(), device.encode(), type_.encode(), cause.encode(), data, wire]
            numbers = b"".join(number.to_bytes(8, "big", signed=True) for number in (n, seq, time))
            sizes = b"".join(len(part).to_bytes(4, "big") for part in parts)
            heads[place] = hashlib.sha256(heads.get(place, start) + numbers + sizes + b"".join(parts)).digest()
            assert heads[place] == stored


def test_openssl_checks_a_checkpoint(path: Path, tmp_path: Path) -> None:
    """A standard signature: nobody needs us to check it."""
    with opened(path) as db:
        statement, signature = db.execute("SELECT statement, signature FROM checkpoint").fetchone()
    (tmp_path / "s").write_bytes(statement)
    (tmp_path / "sig").write_bytes(signature)
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(public_path(tmp_path / "key.pem")), "-rawin"]
    done = subprocess.run(
        [*command, "-in", str(tmp_path / "s"), "-sigfile", str(tmp_path / "sig")], capture_output=True, check=False
    )
    assert b"Verified Successfully" in done.stdout
    assert decode_statement(statement).heads["t-0"][0] == 4


# ---- tampered

CHANGES: dict[str, tuple[str, str]] = {
    "place": ("UPDATE event SET place='t-9' WHERE n=20", "row 20"),
    "seq": ("UPDATE event SET seq=700 WHERE n=20", "row 20"),
    "device": (
        "UPDATE event SET device='d-9' WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "type": (
        "UPDATE event SET type='ball.lost' WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "time": (
        "UPDATE event SET time=time+1 WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "data": ("UPDATE event SET data='{\"n\":91}' WHERE n=20", "cannot be"),
    "data bytes": (
        "UPDATE event SET data=x'7b7d' WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "wire": (
        "UPDATE event SET wire=x'00' WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "cause": (
        "UPDATE event SET cause='c' WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "hash": (
        "UPDATE event SET hash=zeroblob(32) WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "moved bytes": (
        "UPDATE event SET device='d-1b', type='all.landed' WHERE n=20",
        "table or pool t-1, seq 7, row 20: the row or its hash was changed",
    ),
    "a missing row": ("DELETE FROM event WHERE n=20", "1 rows before it are missing (seq 7 to 7)"),
    "a missing row, closed up": (
        "DELETE FROM event WHERE n=20; UPDATE event SET n=n-1, seq=seq-(place='t-1') WHERE n>20",
        "the row or its hash was changed",
    ),
    "a tail": ("DELETE FROM event WHERE n>51", "rows were removed: seq 18 to 20 were there when it was made"),
    "a whole table": (
        "DELETE FROM event WHERE place='t-2'",
        "table or pool t-2, seq 3, row 10: checkpoint 1: rows were removed",
    ),
    "two rows swapped": (
        "UPDATE event SET n=-1 WHERE n=20; UPDATE event SET n=20 WHERE n=23; UPDATE event SET n=23 WHERE n=-1",
        "row 20: 1 rows before it are missing (seq 7 to 7)",
    ),
    "an inserted row": (
        "INSERT INTO event SELECT 61,place,21,device,type,time,data,wire,cause,hash FROM event WHERE n=58",
        "row 61: the row or its hash was changed",
    ),
    "the journal's name": ("UPDATE memory SET value=x'3131313131313131' WHERE key='journal'", "row 1: the row"),
    "a statement": (
        "UPDATE checkpoint SET statement=x'7b7d' WHERE number=3",
        "checkpoint 3: its statement cannot be read",
    ),
    "a signature": (
        "UPDATE checkpoint SET signature=zeroblob(64) WHERE number=3",
        "checkpoint 3: the signature is false",
    ),
    "a checkpoint taken out": ("DELETE FROM checkpoint WHERE number=3", "checkpoint 4: the one before it here is 2"),
    "the first checkpoint": ("DELETE FROM checkpoint WHERE number=1", "checkpoint 2: the first ones are missing"),
    "where it begins": ("UPDATE beginning SET n=5", "the first file cannot begin in the middle"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_found_and_named(path: Path, what: str) -> None:
    script, expected = CHANGES[what]
    with opened(path) as db:
        try:
            db.executescript(script)
        except sqlite3.IntegrityError:  # the schema itself refuses text where bytes belong
            assert expected == "cannot be"
            return
    findings = said(path)
    assert any(expected in one for one in findings), findings
    assert all(";" in one for one in findings)  # each says what to do


def forge(path: Path, n: int, name: str) -> None:
    """Change a row and make all hashes anew, as somebody would who knows the format and not the key."""
    with opened(path) as db:
        db.execute("UPDATE event SET data=x'7b7d' WHERE n=?", (n,))
        heads: dict[str, bytes] = {}
        rows = db.execute("SELECT n,place,seq,device,type,time,data,wire,cause FROM event ORDER BY n").fetchall()
        for row in rows:
            heads[row[1]] = row_hash(heads.get(row[1]) or chain_start(name, row[1]), *row)
            db.execute("UPDATE event SET hash=? WHERE n=?", (heads[row[1]], row[0]))


def test_a_forged_chain_is_found_by_its_signature(path: Path) -> None:
    name = verify(path).journal
    forge(path, 32, name)
    findings = said(path)
    assert findings[0].startswith(
        "table or pool t-1, seq 13, row 40: checkpoint 4: the chain was forged: something from seq 11"
    )
    with opened(path) as db:
        db.execute("DELETE FROM checkpoint")
    assert ["end is missing" in one for one in said(path, signed=False)] == [True]
    note_of(path).unlink()
    assert said(path, signed=False) == []  # nothing but the key shows it
    assert "is missing; it names the last checkpoint" in said(path)[0]
    assert "nothing in it is signed" in said(path)[1]


def test_statements_of_another_hand_are_no_proof(path: Path, tmp_path: Path) -> None:
    """Everything made anew and signed with a key of one's own."""
    (tmp_path / "other").mkdir()
    other = keys(tmp_path / "other")
    with opened(path) as db:
        for number, statement in db.execute("SELECT number, statement FROM checkpoint").fetchall():
            forged = statement.replace(keys(path.parent).id.encode(), other.id.encode())
            db.execute(
                "UPDATE checkpoint SET statement=?, signature=? WHERE number=?", (forged, other.sign(forged), number)
            )
    assert any(f"it is signed with key {other.id}, not with" in one for one in said(path))


@pytest.mark.parametrize("page", [2, 3, 4])
def test_a_ruined_page_is_found(path: Path, page: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[(page - 1) * 4096 : page * 4096] = random.Random(page).randbytes(4096)
    path.write_bytes(raw)
    assert said(path)


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_cut_file_is_found(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    assert said(path)


def test_no_file_is_a_finding(tmp_path: Path) -> None:
    assert said(tmp_path / "none.db", signed=False) == ["there is no such file; give the path of a journal"]


# ---- any byte


def varint(raw: bytes | bytearray, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        value = value << 7 | raw[at + index] & 0x7F
        if raw[at + index] < 0x80:
            return value, at + index + 1
    return value << 8 | raw[at + 8], at + 9


def cells(raw: bytes | bytearray, root: int) -> Iterator[int]:
    """Offsets of the rows of a table."""
    base = (root - 1) * 4096
    kind, count = raw[base], int.from_bytes(raw[base + 3 : base + 5], "big")
    head = 12 if kind == 5 else 8
    for index in range(count):
        cell = base + int.from_bytes(raw[base + head + 2 * index : base + head + 2 * index + 2], "big")
        if kind == 5:
            yield from cells(raw, int.from_bytes(raw[cell : cell + 4], "big"))
        else:
            yield cell
    if kind == 5:
        yield from cells(raw, int.from_bytes(raw[base + 8 : base + 12], "big"))


def row_bytes(raw: bytes, root: int) -> list[int]:
    """Offsets of every byte of every row of a table: lengths, record headers, values, and what overflowed."""
    found: list[int] = []
    for cell in cells(raw, root):
        size, at = varint(raw, cell)
        _, at = varint(raw, at)
        least = (4096 - 12) * 32 // 255 - 23
        local = least + (size - least) % 4092
        local = size if size <= 4096 - 35 else (local if local <= 4096 - 35 else least)
        found += range(cell, at + local + 4 * (local < size))
        after, left = int.from_bytes(raw[at + local : at + local + 4], "big") if local < size else 0, size - local
        while after:
            start = (after - 1) * 4096
            found += range(start, start + 4 + min(left, 4092))
            after, left = int.from_bytes(raw[start : start + 4], "big"), left - 4092
    return found


@pytest.fixture(scope="module")
def whole() -> Iterator[tuple[Path, bytes, list[int], Key]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journal = Journal(folder / "j.db")
        journal.signed_by(keys(folder), 40)
        journal.append([*entries(70), Entry("t-1", "d", "big", NOON, b'"' + b"x" * 9000 + b'"', b"w" * 300, "c")])
        journal.append(entries(70, 70))
        journal.close()
        raw = (folder / "j.db").read_bytes()
        yield folder / "j.db", raw, row_bytes(raw, root_of(folder / "j.db")), keys(folder)


def root_of(path: Path) -> int:
    """The page that the table of events begins with."""
    with opened(path) as db:
        return int(db.execute("SELECT rootpage FROM sqlite_master WHERE name='event'").fetchone()[0])


def all_rows(path: Path) -> object:
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute("SELECT * FROM event ORDER BY n").fetchall()


@given(place=st.integers(0, 1_000_000), flip=st.integers(1, 255))
@example(place=332, flip=12)
@example(place=332, flip=13)
@settings(
    max_examples=at_length(200, 12_000),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_flipped_byte_of_any_row_is_found(whole: tuple[Path, bytes, list[int], Key], place: int, flip: int) -> None:
    """But for one byte a row that SQLite never reads: the place of `n` in a record, which stands in its key."""
    path, good, places, key = whole
    at = places[place % len(places)]
    raw = bytearray(good)
    raw[at] ^= flip
    path.write_bytes(raw)
    try:
        if verify(path, [key.public]).good:
            assert good[at] == 0
            assert raw[at] in range(8, 14)  # the types of SQLite that take no room
            changed = all_rows(path)
            path.write_bytes(good)
            assert changed == all_rows(path)
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize(("row", "flip"), [(71, 1), (71, 2), (71, 7), (72, 8)])
def test_a_key_that_leads_back_to_itself_is_found(
    whole: tuple[Path, bytes, list[int], Key], row: int, flip: int
) -> None:
    """What is after it was asked for, and it came again, for ever."""
    path, good, _, key = whole
    [at] = [after for cell in cells(good, root_of(path)) if varint(good, after := varint(good, cell)[1])[0] == row]
    raw = bytearray(good)
    raw[at] ^= flip
    path.write_bytes(raw)
    try:
        found = [finding.text for finding in verify(path, [key.public]).findings if finding.n == row ^ flip]
        assert found[0] == f"its row number is not above {row - 1}, that of the row before it: inserted or reordered"
    finally:
        path.write_bytes(good)


# ---- files


@pytest.fixture
def rotated(tmp_path: Path) -> Path:
    """Three files: forty rows each, the last one of twenty."""
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(keys(tmp_path), 15)
    for n in range(0, 100, 5):
        journal.append(entries(5, n), {"outbox": b"100"})
        if n in (35, 75):
            assert journal.rotate()
    journal.close()
    return tmp_path / "journal.db"


def test_closed_files_are_walked_over_too(rotated: Path) -> None:
    report = verify(rotated, [keys(rotated.parent).public])
    assert report.good, report
    assert (report.rows, report.files, report.checkpoints, report.notes) == (100, 3, 8, [])
    [one] = [verify(one, [keys(rotated.parent).public]) for one in closed_files(rotated)[1:]]
    assert (one.good, one.rows, one.files) == (True, 40, 1)  # a closed file by itself


def test_a_closed_file_needs_nothing_beside_it_and_no_right_to_write(rotated: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    copy = Path(shutil.copy(closed_files(rotated)[0], archive))
    archive.chmod(0o555)
    assert verify(copy, [keys(rotated.parent).public]).rows == 40
    assert [one.name for one in archive.iterdir()] == ["journal.000001.db"]
    archive.chmod(0o755)


def test_a_missing_file_is_found(rotated: Path) -> None:
    first, second = closed_files(rotated)
    aside = second.rename(second.with_suffix(".aside"))
    assert any("it is file 3, the one before it here is 1: files between are missing" in one for one in said(rotated))
    aside.rename(second)
    assert said(rotated) == []
    first.unlink()
    assert any("file 1 is missing" in one and "less than 90 days ago" in one for one in said(rotated))
    later = datetime.now(UTC) + timedelta(days=91)
    report = verify(rotated, [keys(rotated.parent).public], now=later)
    assert report.good
    assert "begins with file 2" in report.notes[0]
    assert (report.rows, report.signed_rows) == (60, 100)


@pytest.mark.parametrize(("going", "gone"), [(1, 1), (2, 2), (2, 1)])
def test_files_that_are_forgotten_while_they_are_verified(
    rotated: Path, monkeypatch: pytest.MonkeyPatch, going: int, gone: int
) -> None:
    """They go, the oldest first, before file `going` is opened: no disk is to be checked for that."""
    files = closed_files(rotated)
    leaving = files[:gone] if going == gone else files[1:2]

    def opened_(path: Path) -> sqlite3.Connection:
        if path == files[going - 1]:
            for one in leaving:
                one.unlink(missing_ok=True)
        return open_to_read(path)

    monkeypatch.setattr(verify_module, "open_to_read", opened_)
    report = verify(rotated, [keys(rotated.parent).public], now=datetime.now(UTC) + timedelta(days=91))
    if going != gone:  # one from the middle was taken
        assert "files between are missing" in report.findings[0].text
        assert not [one for one in report.findings if "cannot be read" in one.text]
        return
    assert report.good, report
    assert f"begins with file {gone + 1}" in report.notes[0]
    assert (report.rows, report.signed_rows) == (60, 100)


def test_files_of_two_journals_are_told_apart(rotated: Path) -> None:
    """journal.db was moved away alone, and a new one was begun: nothing is missing."""
    rotated.unlink()
    new = Journal(rotated)
    new.signed_by(keys(rotated.parent), 2)
    for _ in range(3):
        new.append(entries(2))
    new.close()
    [one] = said(rotated)
    assert f"it is of journal {new.name}, the closed files before it are of " in one
    assert "missing" not in one
    assert "move the files of one of them away together" in one


def test_a_closed_file_cut_short_is_found(rotated: Path) -> None:
    first = closed_files(rotated)[0]
    first.chmod(0o600)
    with opened(first) as db:
        db.execute("DELETE FROM event WHERE n>36")
    assert any("does not begin where the file before ends" in one for one in said(rotated, signed=False))
    assert any("rows were removed: seq 13 to 14" in one for one in said(rotated))


# ---- the inspector's file


def exported(path: Path, table: str = "t-1", **span: datetime) -> list[bytes]:
    return list(export(path, table, site="s", writer="edge-7", of="edge", **{**ALWAYS, **span}))


@pytest.mark.parametrize("fixture", ["path", "rotated"])
def test_an_export_is_checked_with_nothing_but_the_public_key(fixture: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(fixture)
    lines = exported(path)
    report = verify_export(lines, "x", [keys(path.parent).public])
    assert report.good, report
    assert report.rows == report.signed_rows == len(lines) - 1 - report.checkpoints
    second = msgspec.json.decode(lines[1])
    assert (second["id"], second["source"], second["wire"]) == (
        "edge-7:t-1:1",
        "felt/1/s/table/t-1/device/d-1",
        "2a583b310d",
    )
    assert second["data"] == {"n": 1}


def test_a_part_is_exported_up_to_where_it_is_signed(rotated: Path) -> None:
    lines = exported(rotated, since=NOON + timedelta(seconds=50), until=NOON + timedelta(seconds=56))
    head = msgspec.json.decode(lines[0])
    assert (head["first"], head["last"]) == (18, 23)  # seconds 52 and 55; the checkpoint behind them speaks of seq 23
    report = verify_export(lines, "x", [keys(rotated.parent).public])
    assert report.good, report
    assert report.signed_rows == report.rows
    assert report.notes == ["begins with seq 18; earlier rows are not in it"]


def test_an_export_of_verdicts_names_the_journal_of_their_events(tmp_path: Path) -> None:
    """Rows of early builds, which have none, are exported and verified beside new ones."""
    path = tmp_path / "rules.db"
    journal = Journal(path)
    causes = ["edge-7:t-1:1/0", "edge-7:t-1:2/0@J1", "edge-7:t-1:2/0@J2"]
    journal.append([Entry("t-1", "round", "opened", NOON, b"{}", cause=cause) for cause in causes], {})
    journal.close()
    always: Any = {"since": NOON, "until": NOON + timedelta(days=1)}
    lines = list(export(path, "t-1", site="s", writer="rules", of="rules", **always))
    told = [msgspec.json.decode(line) for line in lines[1:4]]
    assert [one["id"] for one in told] == ["edge-7:t-1:1/0", "edge-7:t-1:2/0", "edge-7:t-1:2/0"]
    assert [one.get("cause_journal") for one in told] == [None, "J1", "J2"]
    assert verify_export(lines, "x").good
    assert not verify_export(
        [line.replace(b'"cause_journal":"J2"', b'"cause_journal":"J1"') for line in lines], "x"
    ).good


def test_an_export_of_nothing(path: Path) -> None:
    lines = exported(path, "t-1", since=NOON + timedelta(days=1))
    assert len(lines) == 1
    assert verify_export(lines, "x").good


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "wire": lambda lines: [line.replace(b'"wire":"2a583b34', b'"wire":"2a583b35') for line in lines],
    "data": lambda lines: [line.replace(b'"data":{"n":4}', b'"data":{"n":5}') for line in lines],
    "datahex": lambda lines: [
        line.replace(b'"datahex":"7b226e223a347d"', b'"datahex":"7b226e223a357d"') for line in lines
    ],
    "time": lambda lines: [line.replace(b"12:00:04Z", b"12:00:05Z") for line in lines],
    "id": lambda lines: [line.replace(b'"id":"edge-7:t-1:2"', b'"id":"edge-7:t-1:3"') for line in lines],
    "source": lambda lines: [line.replace(b"table/t-1/device/d-0", b"table/t-2/device/d-0") for line in lines],
    "a row taken out": lambda lines: lines[:3] + lines[4:],
    "a row twice": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "two rows swapped": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "the end": lambda lines: [line for line in lines if b'"seq":20' not in line],
    "the head": lambda lines: [lines[0].replace(b'"first":1', b'"first":2'), *lines[1:]],
    "the beginning": lambda lines: [lines[0][:-80] + b"}", *lines[1:]],
    "a signature": lambda lines: [line.replace(b'"signature":"', b'"signature":"00') for line in lines],
    "no signatures": lambda lines: [line for line in lines if b'"checkpoint"' not in line],
    "noise": lambda lines: [*lines[:4], b"hello", *lines[4:]],
    "nothing": lambda _: [],
    "a key added": lambda lines: [line.replace(b',"seq":', b',"remark":"a misdeal","seq":') for line in lines],
    "a key twice": lambda lines: [line.replace(b',"seq":', b',"type":"ball.landed","seq":') for line in lines],
    "a key added to the head": lambda lines: [lines[0][:-1] + b',"remark":"x"}', *lines[1:]],
    "a key added to a signature": lambda lines: [*lines[:-1], lines[-1][:-1] + b',"remark":"x"}'],
    "a blank": lambda lines: [line.replace(b',"seq":', b', "seq":') for line in lines],
    "a statement that is none": lambda lines: [line.replace(b'"statement":"{', b'"statement":"x{') for line in lines],
    "a statement of another kind": lambda lines: [
        line.replace(b'\\"number\\":1,', b'\\"number\\":[],') for line in lines
    ],
    "a signature that is no hex": lambda lines: [line.replace(b'"signature":"', b'"signature":"xy') for line in lines],
    "a hash that is no hex": lambda lines: [line.replace(b'"hash":"', b'"hash":"xy') for line in lines],
    "a time without a zone": lambda lines: [line.replace(b"12:00:04Z", b"12:00:04") for line in lines],
    "a number that no row has": lambda lines: [line.replace(b'"n":5,', b'"n":99999999999999999999,') for line in lines],
    "a seq that no row has": lambda lines: [line.replace(b'"seq":2,', b'"seq":9223372036854775809,') for line in lines],
    "a head that no row has": lambda lines: [
        lines[0].replace(b'"first":1,', b'"first":-99999999999999999999,'),
        *lines[1:],
    ],
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_export_is_found(path: Path, what: str) -> None:
    lines = EDITS[what](exported(path))
    assert lines != exported(path)
    assert not verify_export(lines, "x", [keys(path.parent).public]).good


@pytest.mark.parametrize("key", ["statement", "signature"])
def test_a_seal_that_is_none_is_one_finding_with_its_line(path: Path, key: str) -> None:
    """The rows are still proven by those that are left."""
    lines = exported(path)
    [at, *_] = [number for number, line in enumerate(lines) if b'"checkpoint"' in line]
    seal = msgspec.json.decode(lines[at])
    lines[at] = msgspec.json.encode({**seal, key: "nothing"})
    report = verify_export(lines, "x", [keys(path.parent).public])
    [finding] = report.findings
    assert finding.file == f"x:{at + 1}"
    assert "no line of an export: " in finding.text
    assert report.signed_rows == report.rows


@pytest.mark.parametrize("column", ["statement=x'7b7d'", "statement=x'ff'", "signature=1"])
def test_a_damaged_checkpoint_is_left_out_of_an_export(path: Path, column: str) -> None:
    """It proves nothing, and `verify` of the journal names it; the rows are proven by the next one."""
    change = "PRAGMA writable_schema=1; UPDATE sqlite_master SET sql={} WHERE name='checkpoint';"
    with opened(path) as db:
        db.executescript(change.format("replace(sql, ') STRICT', ')')"))
    with opened(path) as db:
        db.execute(f"UPDATE checkpoint SET {column} WHERE number=3")
        db.executescript(change.format("sql || ' STRICT'"))
    lines = exported(path)
    report = verify_export(lines, "x", [keys(path.parent).public])
    assert report.good, report
    assert (report.rows, report.signed_rows, report.checkpoints) == (20, 20, 5)


def test_a_damaged_row_ends_an_export_with_a_message(path: Path) -> None:
    with opened(path) as db:
        db.execute("UPDATE event SET cause = CAST(x'ff' AS TEXT) WHERE n = 20")
    with pytest.raises(sqlite3.Error, match="Could not decode to UTF-8 column 'cause'"):
        exported(path)


def test_a_time_that_no_clock_shows_is_exported_as_it_stands_and_found(path: Path) -> None:
    with opened(path) as db:
        db.execute("UPDATE event SET time = 1 << 62 WHERE n = 20")
    [line] = [one for one in exported(path) if b'"n":20,' in one]
    assert b'"time":"1970-01-01T00:00:00Z"' in line
    assert line.endswith(b',"micros":4611686018427387904}')
    assert [one.n for one in verify_export(exported(path), "x").findings] == [20]


def test_an_export_whose_time_is_not_what_its_microseconds_say_is_found(path: Path) -> None:
    """A reader takes `time` for true, and what is hashed is `micros`."""
    lines = exported(path)
    micros = int((NOON + timedelta(seconds=4)).timestamp()) * 1_000_000
    at = next(n for n, one in enumerate(lines) if b'"n":5,' in one)
    assert b'"time":"2026-11-20T12:00:04Z"' in lines[at]
    lines[at] = lines[at].replace(b"12:00:04", b"13:00:04")[:-1] + b',"micros":%d}' % micros
    assert [(one.n, one.text) for one in verify_export(lines, "x").findings] == [(5, "`time` and `micros` differ")]


PAGES = 4


@pytest.fixture
def long(tmp_path: Path) -> Iterator[Journal]:
    """Some pages of rows of one table in a closed file, and as many in the live one."""
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(keys(tmp_path), 700)
    for _ in range(2):
        journal.append([one for one in entries(3 * PAGES * 500) if one.place == "t-1"])
        if not journal.closed:
            assert journal.rotate()
    yield journal
    journal.close()


def test_an_export_that_nobody_reads_on_keeps_nobody_waiting(long: Journal) -> None:
    """`| less`, ^Z: the log is emptied, the file is closed, and what is exported is still one thing."""
    rows = 2 * PAGES * 500
    lines: list[bytes] = []
    closed = 0
    for line in export(long.path, "t-1", site="s", writer="edge-7", of="edge", **ALWAYS):
        lines.append(line)
        if len(lines) % 800 == 1 or len(lines) in (1, 2, rows, rows + 1, rows + 2):
            long.append([one for one in entries(12) if one.place == "t-1"])
            assert long._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
            assert long.rotate()
            closed += 1
    assert closed > 7
    report = verify_export(lines, "x", [keys(long.path.parent).public])
    assert report.good, report
    assert rows <= report.rows == report.signed_rows


@pytest.mark.parametrize("what", ["export", "recall"])
def test_of_many_closed_files_few_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A process may have 1024 files open, and a journal may have more."""
    rules, edge = played(tmp_path)
    for path in (rules, edge):
        journal = Journal(path)
        for n in range(20):
            journal.append([Entry("t-1", "d", "x", NOON + timedelta(days=1 + n), b"{}")])
            assert journal.rotate()
        journal.close()
    there: set[sqlite3.Connection] = set()
    most = 0
    close = Reading.close

    def opened_(path: Path) -> sqlite3.Connection:
        nonlocal most
        db = open_to_read(path)
        there.add(db)
        most = max(most, len(there))
        return db

    def closed_(db: Reading) -> None:
        there.discard(db)
        close(db)

    monkeypatch.setattr(reader_module, "open_to_read", opened_)
    monkeypatch.setattr(Reading, "close", closed_)
    if what == "export":
        assert verify_export(exported(edge), "x").rows > 20
        assert most == 1
    else:
        [found] = recall(rules, edge, "t-1", 1)
        assert [one.type for one in found.evidence] == ["ball.landed", "spin.ended", "", ""]
        assert most == 4  # of each journal the live one, and one more
    assert not there


def test_evidence_that_is_kept_no_more_is_not_looked_for_in_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, edge = played(tmp_path)
    journal = Journal(edge)
    for n in range(20):
        assert journal.rotate()
        journal.append([Entry("t-1", "d", "x", NOON + timedelta(days=1 + n), b"{}")])
    journal.close()
    closed_files(edge)[0].unlink()
    looked: list[Path] = []

    def opened_(path: Path) -> sqlite3.Connection:
        looked.append(path)
        return open_to_read(path)

    monkeypatch.setattr(reader_module, "open_to_read", opened_)
    with Files(edge) as files:
        assert files.row("t-1", 10**9) is None
        assert looked == [edge]
        for _ in range(3):
            assert files.row("t-1", 1) is None
        assert looked == [edge, *reversed(closed_files(edge))]
        found = files.row("t-1", 7)
        assert found is not None
        assert found[2] == 7


def test_a_closed_file_that_goes_while_it_is_exported_is_one_message(rotated: Path) -> None:
    lines = export(rotated, "t-1", site="s", writer="e", of="edge", **ALWAYS)
    next(lines)
    second = closed_files(rotated)[1]
    second.unlink()
    with pytest.raises(FileNotFoundError, match=r"was just moved away; run it again: .*000002\.db"):
        list(lines)


@pytest.mark.parametrize("number", [1, 20])
def test_any_changed_byte_of_a_row_of_an_export_is_found(path: Path, number: int) -> None:
    lines, key = exported(path), keys(path.parent)
    for at in range(len(lines[number])):
        for flip in at_length((0x20,), (0x01, 0x20, 0x80)):
            raw = bytearray(lines[number])
            raw[at] ^= flip
            report = verify_export([*lines[:number], bytes(raw), *lines[number + 1 :]], "x", [key.public])
            assert not report.good, bytes(raw)


def test_what_was_added_to_a_line_is_one_finding(path: Path) -> None:
    """The row itself still stands in its chain; line ends are nobody's words."""
    lines = exported(path)
    lines[3] = lines[3].replace(b',"seq":', b',"remark":"a misdeal","seq":')
    [finding] = verify_export(lines, "x", [keys(path.parent).public]).findings
    assert (finding.file, finding.place, finding.seq) == ("x:4", "t-1", 3)
    assert "not as `feltd journal export` writes it" in finding.text
    assert verify_export([line + b"\r\n" for line in exported(path)], "x", [keys(path.parent).public]).good


# ---- from the result to the wire


def played(folder: Path) -> tuple[Path, Path]:
    edge = Journal(folder / "edge.db")
    edge.append(
        [
            Entry("t-1", "wheel-1", "ball.landed", NOON + timedelta(seconds=n), b'{"number":%d}' % n, b"*X;%d\r" % n)
            for n in range(6)
        ]
    )
    edge.rotate()
    edge.append([Entry("t-1", "wheel-1", "spin.ended", NOON + timedelta(seconds=9), b"{}", bytes(40))])
    edge.close()
    rules = Journal(folder / "rules.db")
    for number, evidence in enumerate((["e:t-1:1", "e:t-1:2"], ["e:t-1:6", "e:t-1:7", "e:t-1:99", "e:t-2:1"]), 1):
        result = {
            "round": f"t-1/2026-11-20/{number}",
            "ruleset": "macau.roulette",
            "edition": "2004",
            "outcome": {"number": 17},
            "announcements": {"en": "17, black"},
            "evidence": evidence,
            "law": ["Despacho 60/2004 art. 5(1)"],
            "void": None,
        }
        at = NOON + timedelta(seconds=10 * number)
        cause = f"{evidence[1]}/0"
        rules.append([Entry("t-1", "round", "opened", at, b'{"round":"x"}', cause=cause)])
        rules.append([Entry("t-1", "round", "resolved", at, msgspec.json.encode({"result": result}), cause=cause)])
        rules.rotate()
    rules.close()
    return rules.path, edge.path


def test_a_result_leads_back_to_the_wire(tmp_path: Path) -> None:
    rules, edge = played(tmp_path)
    found = recall(rules, edge, "t-1", 5)
    assert [msgspec.json.decode(one.result)["round"] for one in found] == ["t-1/2026-11-20/2", "t-1/2026-11-20/1"]
    assert [(one.id, one.wire[:8], one.note[:11]) for one in found[0].evidence] == [
        ("e:t-1:6", "2a583b35", ""),
        ("e:t-1:7", "00000000", ""),
        ("e:t-1:99", "", "the edge's "),
        ("e:t-2:1", "", "no event of"),
    ]
    assert recall(rules, edge, "t-1", 1) == found[:1]
    assert recall(rules, edge, "t-2", 1) == []
    assert recall(rules, edge, "t-1", 1, "t-1/2026-11-20/1") == []
    assert recall_old(rules, edge, "t-1", "t-1/2026-11-20/1") == found[1:]
    assert recall_old(rules, edge, "t-1", "t-1/2026-11-20/") == []
    text = recall_text(found)
    for words in (
        "17, black",
        "Despacho 60/2004 art. 5(1)",
        "2a 58 3b 35 0d",
        "*X;5.",
        "12:00:05.000 wheel-1 ball.landed",
    ):
        assert words in text
    assert "younger than the result" not in text


def test_a_round_is_found_however_many_begin_with_its_name(tmp_path: Path) -> None:
    rules, edge = Journal(tmp_path / "rules.db"), Journal(tmp_path / "edge.db")
    results = [
        {"round": f"t-1:2026-11-20:{number}", "ruleset": "macau.roulette", "edition": "2004"}
        for number in (1, *range(10, 20), *range(100, 200), *range(1000, 2000))
    ]
    entries = [Entry("t-1", "round", "resolved", NOON, msgspec.json.encode({"result": one})) for one in results]
    rules.append(entries)
    for one in (rules, edge):
        one.close()
    [found] = recall_old(rules.path, edge.path, "t-1", "t-1:2026-11-20:1")
    assert found.seq == 1


def test_events_younger_than_their_result_are_doubted(tmp_path: Path) -> None:
    rules, edge = played(tmp_path)
    edge.unlink()
    for one in closed_files(edge):
        one.unlink()
    new = Journal(edge)
    new.append([Entry("t-1", "w", "x", NOON + timedelta(days=1), b"{}")])
    new.close()
    assert "younger than the result" in recall_text(recall(rules, edge, "t-1", 2))


# ---- keys


def test_a_key_is_for_its_owner_only_and_never_overwritten(tmp_path: Path) -> None:
    key = make_key(tmp_path / "k")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert PublicKey.load(public_path(tmp_path / "k")).id == Key.load(tmp_path / "k").id == key.id
    with pytest.raises(BadKey, match="exists already"):
        make_key(tmp_path / "k")
    (tmp_path / "k").chmod(0o640)
    with pytest.raises(BadKey, match="other users may read"):
        Key.load(tmp_path / "k")


RSA_PUBLIC = b"""-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----
"""


def test_what_is_no_key_is_named(tmp_path: Path) -> None:
    for raw, words in ((b"hello", "no public key in PEM"), (RSA_PUBLIC, "not an Ed25519 key")):
        (tmp_path / "x").write_bytes(raw)
        with pytest.raises(BadKey, match=words):
            PublicKey.load(tmp_path / "x")
    (tmp_path / "x").chmod(0o600)
    with pytest.raises(BadKey, match="no private key in PEM"):
        Key.load(tmp_path / "x")
    for load in (Key.load, PublicKey.load):
        with pytest.raises(BadKey, match="No such file"):
            load(tmp_path / "none")
    with pytest.raises(BadKey, match="No such file"):
        make_key(tmp_path / "none" / "k")


# ---- before the start, and while it runs


def test_a_tampered_journal_starts_nothing(path: Path) -> None:
    with opened(path) as db:
        db.execute("UPDATE event SET wire=x'00' WHERE n=20")
    journal = Journal(path)
    with pytest.raises(BadJournal, match=r"seq 7, row 20: the row .*\n.*nothing was started"):
        take_up(journal, Keeping())
    journal.close()


def filled(journal: Journal) -> None:
    """Until it is closed."""
    journal.append(entries(10), {"outbox": b"%d" % (journal.head + 10)})
    assert journal.rotate()
    journal.append(entries(3))


def follow(message: str, folder: Path) -> None:
    """The command in a message, as a person types it; PLACE is the folder."""
    [command] = re.findall(r"`(mv .* PLACE)`", message)
    folder.mkdir()
    subprocess.run(command.replace("PLACE", f"'{folder}'"), shell=True, check=True, capture_output=True)


@pytest.mark.parametrize("closed", [0, 2])
@pytest.mark.parametrize("name", ["journal.db", "the table's.db", "edge"])
def test_the_remedy_for_a_bad_journal_may_be_followed_to_the_letter(tmp_path: Path, name: str, closed: int) -> None:
    """The new journal is closed as it grows, and both are what they were."""
    folder, aside = tmp_path / "of the pit", tmp_path / "kept aside"
    journal = Journal(folder / name)
    for _ in range(closed):
        filled(journal)
    journal.append(entries(3))
    journal.close()
    (folder / "rules.db").write_bytes(b"somebody else's")
    with opened(folder / name) as db:
        db.execute("UPDATE event SET wire=x'00' WHERE n=?", (journal.head,))
    before = verify(folder / name)
    journal = Journal(folder / name)
    with pytest.raises(BadJournal, match="nothing was started") as caught:
        take_up(journal, Keeping())
    journal.close()
    follow(str(caught.value), aside)
    assert [one.name for one in folder.iterdir()] == ["rules.db"]
    journal = Journal(folder / name)
    take_up(journal, Keeping())
    for _ in range(3):
        filled(journal)
    journal.close()
    report = verify(folder / name)
    assert (report.good, report.files, report.rows) == (True, 4, 39)
    after = verify(aside / name)
    assert (after.rows, [one.text for one in after.findings]) == (before.rows, [one.text for one in before.findings])


def test_closed_files_of_another_journal_start_nothing(rotated: Path, tmp_path: Path) -> None:
    """`mv journal.db*` leaves them behind, and weeks later the first file to be closed would have no place."""
    public = [keys(tmp_path).public]
    aside = tmp_path / "aside"
    aside.mkdir()
    subprocess.run(f"mv {rotated}* {aside}", shell=True, check=True)
    journal = Journal(rotated)
    with pytest.raises(BadJournal, match=r"journal\.000001\.db, file 1 of (.*\n)*.*nothing was start") as caught:
        take_up(journal, Keeping())
    assert "journal.000002.db" in str(caught.value)
    journal.close()
    follow(str(caught.value), tmp_path / "closed")
    for one in (tmp_path / "closed").iterdir():
        one.rename(aside / one.name)
    journal = Journal(rotated)
    take_up(journal, Keeping())
    filled(journal)
    journal.close()
    assert verify(rotated).good
    assert verify(aside / "journal.db", public).good


@virtual_time
async def test_closed_files_of_another_journal_end_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody puts them there while it runs. It says so, once, and grows on."""
    monkeypatch.setattr(keeping, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(keeping, "EVERY", 0.001)
    other = Journal(tmp_path / "other" / "j.db")
    filled(other)
    other.close()
    journal = Journal(tmp_path / "j.db")

    async def process() -> None:
        journal.append([Entry("t-1", "d", "x", NOON, bytes(1000)) for _ in range(1100)])
        shutil.copy(tmp_path / "other" / "j.000001.db", tmp_path)
        await asyncio.sleep(0.1)
        assert [one.name for one in journal.foreign] == ["j.000001.db"]
        (tmp_path / "j.000001.db").unlink()
        await asyncio.sleep(0.1)

    with structlog.testing.capture_logs() as logs:
        await keeping.kept(process(), journal, parse(CONFIG + "[journal]\nfile_mb = 1\n"), "e", Retained().put, get())
    assert [one["event"] for one in logs] == ["journal.unsigned", "journal.foreign", "journal.rotated"]
    assert logs[1]["file"] == str(tmp_path / "j.000001.db")
    journal.close()
    assert verify(tmp_path / "j.db").good


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("recent", [13, 20, 59])
def test_of_a_large_file_the_end_is_looked_at_before_a_start(
    path: Path, recent: int, signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a checkpoint on, where there is one; whatever is changed after it is found, and by whoever has no key."""
    monkeypatch.setattr(verify_module, "RECENT", recent)
    public = [keys(path.parent).public] if signed else []
    if not signed:
        with opened(path) as db:
            db.execute("DELETE FROM checkpoint")
        note_of(path).unlink()
    report = verify_recent(path, public)
    first = (60 - recent) // 10 * 10 if signed and recent <= 50 else 60 - recent
    assert report.good, report
    assert report.rows == 60 - first
    assert (f"only the rows after row {first} were verified" in report.notes) is (first > 0)
    for n in range(1, 61):
        with opened(path) as db:
            [(wire,)] = db.execute("SELECT wire FROM event WHERE n=?", (n,)).fetchall()
            db.execute("UPDATE event SET wire=x'00' WHERE n=?", (n,))
            found = verify_recent(path, public).findings
            assert [one.n for one in found] == ([n] if n > first else [])
            db.execute("UPDATE event SET wire=? WHERE n=?", (wire, n))


def test_of_a_large_file_a_forged_chain_and_a_forged_checkpoint_are_found(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_module, "RECENT", 20)
    public = [keys(path.parent).public]
    with opened(path) as db:
        [(statement,)] = db.execute("SELECT statement FROM checkpoint WHERE number=4").fetchall()
        db.execute("UPDATE checkpoint SET statement=? WHERE number=4", (statement.replace(b"t-0", b"t-9"),))
        texts = [one.text for one in verify_recent(path, public).findings]
        assert any("checkpoint 4: the signature is false" in text for text in texts)
        db.execute("UPDATE checkpoint SET statement=x'00' WHERE number=4")
        assert ["cannot be read" in one.text for one in verify_recent(path, public).findings] == [True]
        db.execute("UPDATE checkpoint SET statement=? WHERE number=4", (statement,))
        assert verify_recent(path, public).good
        db.execute("DELETE FROM event WHERE n > 55")
        assert "rows were removed" in verify_recent(path, public).findings[0].text


def test_a_first_key_and_a_new_key_are_no_reason_not_to_start(tmp_path: Path) -> None:
    for name in ("", "one", "two"):
        journal = Journal(tmp_path / "j.db")
        if name:
            make_key(tmp_path / name)
        take_up(journal, Keeping(key=str(tmp_path / name) if name else "", sign_rows=2))
        journal.append(entries(3))
        journal.close()
    public = [PublicKey.load(public_path(tmp_path / name)) for name in ("one", "two")]
    assert verify(tmp_path / "j.db", public).good
    assert not verify(tmp_path / "j.db", public[1:]).good


# ---- the last checkpoint, noted beside the journal


def taken_up(path: Path) -> Journal:
    """With the key, as each process does it. Raises BadJournal."""
    journal = Journal(path)
    try:
        take_up(journal, Keeping(key=str(path.with_name("key.pem")), sign_rows=10))
    except BadJournal:
        journal.close()
        raise
    return journal


@pytest.mark.parametrize("left", [0, 3, 5])
def test_who_has_no_key_cannot_have_a_forgery_signed(path: Path, left: int) -> None:
    """Checkpoints are deleted, a row behind the last one left is changed, all hashes are made anew."""
    name, row = verify(path).journal, left * 10 + 2
    with opened(path) as db:
        db.execute("DELETE FROM checkpoint WHERE number > ?", (left,))
    forge(path, row, name)
    for signed in (True, False):
        found = [one for one in said(path, signed=signed) if "nothing in it is signed" not in one]
        assert len(found) == 1
        assert found[0].startswith(
            "row 60: its end is missing: checkpoint 6 was made after row 60 (from journal.db-signed)"
        )
        assert f"the last one in it is {left or 'none'}; " in found[0]
    for _ in range(2):  # nor at the next start
        with pytest.raises(BadJournal, match=r"end is missing: checkpoint 6 (.*\n)*.*nothing was started"):
            taken_up(path)
    with opened(path) as db:
        assert db.execute("SELECT count(*) FROM checkpoint").fetchone() == (left,)


def test_another_checkpoint_under_the_number_of_the_last_one_is_found(path: Path) -> None:
    """Also by who has no key."""
    with opened(path) as db:
        [(statement,)] = db.execute("SELECT statement FROM checkpoint WHERE number=6").fetchall()
        db.execute("UPDATE checkpoint SET statement=? WHERE number=6", (statement + b" ",))
    [finding] = said(path, signed=False)
    assert finding.startswith("row 60: checkpoint 6 was made after row 60, and the one in the file differs")


def accept(path: Path) -> Result:
    """As a person types it."""
    return CliRunner().invoke(main, ["journal", "accept", str(path)])


def test_an_older_copy_that_was_put_back_starts_when_a_person_says_so(path: Path) -> None:
    copy = path.read_bytes()
    journal = taken_up(path)
    journal.append(entries(20, 60))
    journal.close()
    path.write_bytes(copy)
    with pytest.raises(BadJournal, match="a copy was put back on purpose") as caught:
        taken_up(path)
    [command] = re.findall(r"on purpose, `feltd (journal accept .*?)` takes", str(caught.value))
    was = note_of(path).read_bytes()
    done = CliRunner().invoke(main, shlex.split(command))
    assert done.exit_code == 0, done.output
    assert "ends with checkpoint 6 after row 60; 60 rows are in its files" in done.output
    [kept] = re.findall(r"the old note is kept: (.*)", done.output)
    assert Path(kept).read_bytes() == was
    journal = taken_up(path)
    journal.append(entries(20, 60))
    journal.close()
    assert said(path) == []


def test_no_more_is_accepted_than_a_note(path: Path) -> None:
    """What was changed or taken out stays a finding; a journal that is in use, or is not there, stays as it is."""
    note = note_of(path).read_bytes()
    with opened(path) as db:
        db.execute("UPDATE event SET wire=x'00' WHERE n=20")
    done = accept(path)
    assert done.exit_code == 2
    assert "row 20: the row or its hash was changed" in done.output
    assert accept(path.with_name("none.db")).exit_code == 2
    assert not path.with_name("none.db").exists()
    journal = Journal(path)
    assert "another process may be using it" in accept(path).output
    journal.close()
    assert note_of(path).read_bytes() == note


def test_a_process_that_dies_between_signing_and_noting_is_followed_by_the_next(path: Path, tmp_path: Path) -> None:
    """The note may be behind the journal by one checkpoint, and by no more."""
    notes = [note_of(path).read_bytes()]
    journal = taken_up(path)
    for n in range(60, 100, 10):
        journal.append(entries(10, n))
        assert journal.note() == ""
        notes.append(note_of(path).read_bytes())
    journal.close()
    for behind, raw in enumerate(reversed(notes)):
        note_of(path).write_bytes(raw)
        found = verify(path, [keys(tmp_path).public]).findings
        if behind <= 1:
            assert found == []
            continue
        [finding] = found
        assert (
            finding.text == f"it names checkpoint {10 - behind}, the last one of journal.db is 10: it is an older one"
        )
        assert "tell the inspector; where a copy was put back on purpose, `feltd journal accept " in finding.remedy
        with pytest.raises(BadJournal, match="it is an older one"):
            taken_up(path)
    note_of(path).write_bytes(notes[-2])
    taken_up(path).close()
    assert said(path) == []


@pytest.mark.parametrize("how", ["missing", "empty", "zeros"])
@pytest.mark.parametrize("cut", ["nothing", "rows", "checkpoints", "all that was signed"])
def test_a_note_that_was_taken_away_is_found_and_starts_nothing(path: Path, how: str, cut: str) -> None:
    """With it the only word of what was behind a cut is gone; so it is a finding by itself."""
    with opened(path) as db:
        if cut in ("rows", "checkpoints"):
            db.execute("DELETE FROM checkpoint WHERE number > 4")
            db.execute("DELETE FROM event WHERE n > ?", (40 if cut == "rows" else 60,))
        elif cut == "all that was signed":
            db.execute("DELETE FROM checkpoint")
    match how:
        case "missing":
            note_of(path).unlink()
        case "empty":
            note_of(path).write_bytes(b"")
        case _:
            note_of(path).write_bytes(bytes(256))
    [finding] = [one for one in verify(path, [keys(path.parent).public]).findings if not one.about_key]
    assert finding.file == str(note_of(path))
    assert finding.text.startswith("is missing; " if how == "missing" else "is empty; ")
    assert "put it back, " in finding.remedy
    for _ in range(2):
        with pytest.raises(BadJournal, match=r"journal\.db-signed: is (missing|empty); (.*\n)*.*nothing was started"):
            taken_up(path)
    assert accept(path).exit_code == 0
    journal = taken_up(path)
    journal.append(entries(10, journal.head))
    journal.close()
    assert said(path) == []


def test_a_journal_that_was_never_signed_has_a_note_from_its_beginning(tmp_path: Path) -> None:
    """So the first key may be named at any time, and a note that is taken away then is found as well."""
    journal = Journal(tmp_path / "journal.db")
    take_up(journal, Keeping())
    journal.append(entries(5))
    journal.close()
    assert msgspec.json.decode(note_of(tmp_path / "journal.db").read_bytes())["number"] == 0
    keys(tmp_path)
    shutil.copytree(tmp_path, tmp_path / "again")
    taken_up(tmp_path / "journal.db").close()
    note_of(tmp_path / "again" / "journal.db").unlink()
    with pytest.raises(BadJournal, match=r"journal\.db-signed: is missing; "):
        taken_up(tmp_path / "again" / "journal.db")


def test_a_closed_file_by_itself_needs_no_note(rotated: Path) -> None:
    assert verify(rotated.with_name("journal.000001.db"), [keys(rotated.parent).public]).good


def test_a_note_that_cannot_be_read_or_is_of_another_journal_is_named(path: Path) -> None:
    raw = note_of(path).read_bytes()
    name = verify(path).journal
    for changed, words in (
        (raw.replace(b'"n"', b"'n'"), "cannot be read: "),
        (raw.replace(name.encode(), b"01234567"), f"it is of journal 01234567, and journal.db is journal {name}; "),
    ):
        note_of(path).write_bytes(changed)
        [finding] = verify(path).findings
        assert (finding.file, finding.text.startswith(words.rstrip("; "))) == (str(note_of(path)), True)
        with pytest.raises(BadJournal, match=words):
            taken_up(path)


def test_a_note_that_may_not_be_read_starts_nothing_and_is_named(path: Path) -> None:
    """Somebody else's, or on a bad sector: it says as little as none."""
    note_of(path).unlink()
    note_of(path).mkdir()
    [finding] = verify(path).findings
    assert (finding.file, "cannot be read: Is a directory" in finding.text) == (str(note_of(path)), True)
    assert "give it to the user" in finding.remedy
    with pytest.raises(BadJournal, match="cannot be read: Is a directory"):
        taken_up(path)
    assert accept(path).exit_code == 0
    taken_up(path).close()
    assert said(path) == []


def test_a_note_that_cannot_be_made_starts_nothing(tmp_path: Path) -> None:
    """Rows would be written that the next start does not believe."""
    keys(tmp_path)
    note_of(tmp_path / "journal.db").mkdir()
    with pytest.raises(BadJournal, match=r"journal\.db-signed: Is a directory; check disk, owner and rights"):
        taken_up(tmp_path / "journal.db")


@virtual_time
async def test_a_note_that_cannot_be_written_ends_nothing_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "EVERY", 0.001)
    journal = Journal(tmp_path / "j.db")
    journal.signed_by(keys(tmp_path), 10)
    journal.append(entries(10))
    journal.append(entries(3))
    note_of(journal.path).unlink()
    note_of(journal.path).mkdir()
    config = parse(f"{CONFIG}[journal]\nkey = '{tmp_path}/key.pem'\n")
    with structlog.testing.capture_logs() as logs:
        await keeping.kept(asyncio.sleep(0.05), journal, config, "e", Retained().put, get())
        note_of(journal.path).rmdir()
        assert journal.checkpoint.number == 1  # the next one is made when this one is noted
    assert [one["event"] for one in logs] == ["journal.note", "journal.signed"]
    assert logs[0]["text"] == f"{tmp_path}/j.db-signed: Is a directory; check disk, owner and rights"
    journal.close()
    assert said(journal.path) == []


@virtual_time
async def test_a_closed_file_that_cannot_be_read_is_said_once(rotated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(keeping, "EVERY", 0.001)
    journal = Journal(rotated)
    journal.check_closed()

    async def process() -> None:
        def no(path: Path) -> sqlite3.Connection:
            raise sqlite3.DatabaseError("database disk image is malformed")

        with monkeypatch.context() as patch:
            patch.setattr(journal_module, "open_to_read", no)
            for last in (1, 99):  # of the first file, of all
                for _ in range(3):
                    journal.range("t-1", 1, last)
                    await asyncio.sleep(0.02)

    with structlog.testing.capture_logs() as logs:
        await keeping.kept(process(), journal, parse(CONFIG), "e", Retained().put, structlog.get_logger())
    said = [line for line in logs if line["event"] == "journal.unread"]
    assert [line["log_level"] for line in said] == ["error", "error"]
    for number, line in enumerate(said, 1):
        assert line["text"].startswith(f"{rotated.with_name(f'journal.00000{number}.db')}: database disk image is mal")
    journal.close()


@virtual_time
async def test_the_log_knows_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who keeps logs elsewhere sees a journal fall behind; and one that was never signed before."""
    monkeypatch.setattr(keeping, "EVERY", 0.001)
    config = parse(f"{CONFIG}[journal]\nkey = '{tmp_path}/key.pem'\n")
    key = keys(tmp_path)
    journal = Journal(tmp_path / "j.db")
    for life in range(3):
        journal.append(entries(7, journal.head))
        journal.close()
        journal = Journal(tmp_path / "j.db")
        if life:
            journal.signed_by(key, 10)
        with structlog.testing.capture_logs() as logs:
            config_of = config if life else parse(CONFIG)
            await keeping.kept(asyncio.sleep(0.02), journal, config_of, "e", Retained().put, get())
        expected = (["journal.unsigned"], ["journal.never_signed", "journal.signed"], ["journal.signed"])[life]
        assert [one["event"] for one in logs] == expected
        last = journal.checkpoint
        assert (last.number, last.n) == ((0, 0), (1, 14), (2, 21))[life]
        if life:
            found = [logs[-1][name] for name in ("journal", "checkpoint", "row", "statement")]
            assert found == [journal.name, last.number, last.n, last.statement]
    journal.close()


def test_a_key_that_others_may_read_starts_nothing(tmp_path: Path) -> None:
    make_key(tmp_path / "k")
    (tmp_path / "k").chmod(0o644)
    journal = Journal(tmp_path / "j.db")
    with pytest.raises(BadJournal, match="chmod 600"):
        take_up(journal, Keeping(key=str(tmp_path / "k")))
    journal.close()


CONFIG = """
[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "t-1"
"""


class Keeper:
    """A journal that is kept, on a disk of a size of our own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, limit: int, now: datetime = NOON) -> None:
        self.now = now
        self.ran = 0.0
        patch.setattr(time, "monotonic", lambda: self.ran)
        self.journal = Journal(folder / "j.db", now=lambda: self.now)
        self.retained = Retained()
        self.limit = limit
        patch.setattr(keeping, "EVERY", 0.001)
        patch.setattr(
            keeping,
            "room",
            lambda journal, _: keeping.Room(sum(c.size for c in journal.closed), self.limit, False),
        )

    def passes(self, time: timedelta) -> None:
        """It runs, and its clock goes on."""
        self.ran += time.total_seconds()
        self.now += time

    def begin_anew(self) -> None:
        """The process ends, and the next one begins."""
        self.journal.record_uptime()
        self.journal.close()
        self.journal = Journal(self.journal.path, now=lambda: self.now)

    def forget(self) -> list[str]:
        """What is deleted at this instant, by the clock that the process sees."""
        return [path.name for path in keeping._forget(self.journal, Keeping(), self.now, NONE_WAITS)]

    def alert(self) -> dict[str, str] | None:
        raw = self.retained._wanted.get("felt/1/s/table/t-1/alert/e-journal-room", b"")
        assert isinstance(raw, bytes)
        found: dict[str, str] | None = msgspec.json.decode(raw) if raw else None
        return found


def test_only_what_is_old_and_published_is_forgotten_and_only_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Keeper(tmp_path, monkeypatch, 10**9)
    for n in range(3):
        one.journal.append(entries(10), {"outbox": b"%d" % (20 if n else 0)})
        one.passes(timedelta(days=10))
        one.journal.rotate()
    assert [c.ended for c in one.journal.closed] == [NOON + timedelta(days=days) for days in (10, 20, 30)]

    def at(days: int) -> list[str]:
        one.passes(NOON + timedelta(days=days, minutes=1) - one.now)
        one.journal.append([a_row(one.now)])
        one.begin_anew()
        return one.forget()

    assert at(99) == []  # there is room
    one.limit = 1
    assert at(99) == []  # 89 days old
    assert at(101) == ["j.000001.db"]
    assert at(200) == ["j.000002.db"]
    assert [c.number for c in one.journal.closed] == [3]  # its rows were not published yet
    with pytest.raises(BadJournal, match="row 6 is missing; put it back"):
        one.journal.after(5, 3)
    assert [row.n for row in one.journal.after(20, 3)] == [21, 22, 23]
    one.journal.close()


def a_row(at: datetime) -> Entry:
    return Entry("t-1", "d-1", "x", at, b"{}")


AHEAD = timedelta(days=20 * 365)


def week(one: Keeper) -> None:
    """Four closed files of two days each, all of it published, and a row of today; from now on room is short."""
    for _ in range(4):
        one.journal.append([a_row(one.now)] * 10, {"outbox": b"%d" % (one.journal.head + 10)})
        one.passes(timedelta(days=2))
        assert one.journal.rotate()
    one.journal.append([a_row(one.now)])
    one.limit = 1


def test_a_clock_twenty_years_ahead_deletes_nothing_of_this_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a start, and while it runs: nor after events were written with that time, nor after a file was closed."""
    one = Keeper(tmp_path, monkeypatch, 1)
    week(one)
    right = one.now
    for start in (True, False):
        one.now = right + AHEAD
        if start:
            one.begin_anew()
        assert one.forget() == []
        one.journal.append([a_row(one.now)], {"outbox": b"%d" % (one.journal.head + 1)})
        assert one.forget() == []
        assert one.journal.rotate()
        assert one.forget() == []
        one.now = right
        one.journal.append([a_row(one.now)])
        assert one.forget() == []
        one.begin_anew()
        assert one.forget() == []
    assert [c.number for c in one.journal.closed] == [1, 2, 3, 4, 5, 6]
    assert verify(one.journal.path, now=right).good
    one.journal.close()


def test_a_clock_that_stays_twenty_years_ahead_deletes_nothing_of_this_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second start on the clock, the newest row and the one that stood there at the start agree."""
    one = Keeper(tmp_path, monkeypatch, 1)
    week(one)
    one.now += AHEAD
    for _ in range(3):
        one.begin_anew()
        assert one.forget() == []
        one.journal.append([a_row(one.now)], {"outbox": b"%d" % (one.journal.head + 1)})
        assert one.forget() == []
    assert [c.number for c in one.journal.closed] == [1, 2, 3, 4]
    one.passes(timedelta(days=84, minutes=1))
    assert one.forget() == ["j.000001.db"]
    one.journal.close()


def test_a_clock_that_is_set_right_deletes_nothing_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal was begun while it stood in 2020."""
    one = Keeper(tmp_path, monkeypatch, 1, datetime(2020, 1, 1, tzinfo=UTC))
    for _ in range(3):
        one.journal.append([a_row(one.now)] * 10, {"outbox": b"%d" % (one.journal.head + 10)})
        one.passes(timedelta(hours=1))
        assert one.journal.rotate()
    one.now = NOON
    for _ in range(2):
        one.journal.append([a_row(one.now)])
        one.begin_anew()
        assert one.forget() == []
    one.journal.close()


def test_time_switched_off_makes_no_file_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock alone says that it passed, and it may be wrong."""
    one = Keeper(tmp_path, monkeypatch, 1)
    week(one)
    for days, deleted in ((50, []), (40, ["j.000001.db", "j.000002.db", "j.000003.db", "j.000004.db"])):
        one.now += timedelta(days=500)
        one.passes(timedelta(days=days, minutes=1))
        one.journal.append([a_row(one.now)])
        one.begin_anew()
        assert one.forget() == deleted
    one.journal.close()


def test_files_closed_by_an_earlier_release_are_judged_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody noted how long it had run: else a site whose room is used up stops on the day that it is brought up."""
    one = Keeper(tmp_path, monkeypatch, 1)
    week(one)
    for path in closed_files(one.journal.path)[:2]:
        path.chmod(0o600)
        with opened(path) as db:
            db.execute("DELETE FROM memory WHERE key = 'lived'")
    one.now += timedelta(days=200)
    one.journal.append([a_row(one.now)])
    one.begin_anew()
    assert one.forget() == ["j.000001.db", "j.000002.db"]
    one.journal.close()


@virtual_time
async def test_a_process_notes_how_long_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hour, when it closes a file, and when it ends; a killed one counts up to its last note."""
    one = Keeper(tmp_path, monkeypatch, 10**9)
    monkeypatch.setattr(keeping, "CHECKPOINT_LOGGED_EVERY_S", 10.0)
    monkeypatch.setattr(keeping, "EVERY", 1.0)

    async def process() -> None:
        one.ran += 8
        await asyncio.sleep(8)
        assert one.journal.memory("lived") is None
        one.ran += 8
        await asyncio.sleep(8)
        assert one.journal.memory("lived") == b"16"
        one.ran += 8

    await keeping.kept(process(), one.journal, parse(CONFIG), "e", one.retained.put, get())
    assert one.journal.memory("lived") == b"24"
    one.journal.append([a_row(one.now)])
    one.ran += 100
    assert one.journal.rotate()
    assert ([c.uptime_s for c in one.journal.closed], one.journal.uptime_s) == ([124], 124)
    one.journal.close()
    one.journal = Journal(one.journal.path)
    assert one.journal.uptime_s == 124
    one.journal.close()


@pytest.mark.parametrize("wrong", range(5))
def test_a_file_begun_while_the_clock_stood_in_2000_makes_none_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    one = Keeper(tmp_path, monkeypatch, 1)
    for n in range(5):
        right, one.now = one.now, datetime(2000, 1, 1, tzinfo=UTC) if n == wrong else one.now
        assert one.journal.rotate() == bool(n)
        one.now = right
        one.journal.append([a_row(one.now)] * 10, {"outbox": b"%d" % (one.journal.head + 10)})
        one.now += timedelta(days=2)
    one.begin_anew()
    assert one.forget() == []
    assert verify(one.journal.path, now=one.now).good
    one.journal.close()


def test_what_is_old_by_the_clock_must_be_old_by_the_rows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that was closed for a season writes again before its files count as older."""
    one = Keeper(tmp_path, monkeypatch, 1)
    week(one)
    one.passes(timedelta(days=200))
    one.begin_anew()
    assert one.forget() == []
    one.journal.append([a_row(one.now)])
    one.begin_anew()
    assert one.forget() == [f"j.00000{n}.db" for n in (1, 2, 3, 4)]
    assert verify(one.journal.path, now=one.now).good
    one.journal.close()


def test_a_process_that_runs_for_months_counts_them_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Keeper(tmp_path, monkeypatch, 1)
    week(one)
    one.begin_anew()
    for days, deleted in ((83, []), (5, ["j.000001.db", "j.000002.db", "j.000003.db"]), (2, ["j.000004.db"])):
        one.passes(timedelta(days=days, minutes=1))
        one.journal.append([a_row(one.now)])
        assert one.forget() == deleted
    one.journal.close()


@virtual_time
async def test_files_that_are_moved_to_an_archive_end_the_alert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a restart, also at 100 %; and what is still there is answered."""
    one = Keeper(tmp_path, monkeypatch, 10**9)
    for _ in range(3):
        one.journal.append(entries(30), {"outbox": b"%d" % (one.journal.head + 30)})
        assert one.journal.rotate()
    one.journal.append(entries(30))
    one.limit = sum(c.size for c in one.journal.closed) * 100 // 97
    said: list[str] = []
    (tmp_path / "archive").mkdir()

    async def process() -> None:
        for path in (None, *closed_files(one.journal.path)):
            if path is not None:
                path.rename(tmp_path / "archive" / path.name)
            await asyncio.sleep(0.05)
            alert = one.alert()
            said.append(alert["severity"] if alert else "")
            if path is None:
                assert len(one.journal.range("t-1", 1, 99)) == 40
        assert [row.seq for row in one.journal.range("t-1", 1, 99)] == list(range(31, 41))
        assert one.journal.latest("t-9", ("resolved",)) is None

    await keeping.kept(process(), one.journal, parse(CONFIG), "e", one.retained.put, get())
    assert said == ["error", "", "", ""]
    one.journal.close()


@virtual_time
async def test_at_100_percent_there_is_a_moment_to_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Keeper(tmp_path, monkeypatch, 1)
    one.journal.append(entries(30))
    assert one.journal.rotate()
    monkeypatch.setattr(keeping, "EVERY", 0.2)

    async def process() -> None:
        await asyncio.sleep(0.1)
        alert = one.alert()
        assert alert is not None
        assert "play stops here" in alert["text"]
        closed_files(one.journal.path)[0].rename(tmp_path / "aside")
        await asyncio.sleep(0.4)

    await keeping.kept(process(), one.journal, parse(CONFIG), "e", one.retained.put, get())
    assert one.alert() is None
    one.journal.close()


@virtual_time
async def test_room_is_announced_before_it_ends_and_then_play_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Keeper(tmp_path, monkeypatch, 10**9)
    monkeypatch.setattr(keeping, "LOOK_EVERY_S", 0.0)
    one.journal.append(entries(30))
    one.journal.rotate()
    used = one.journal.closed[0].size
    said: list[str] = []

    async def process() -> None:
        for limit in (used * 2, used * 100 // 85, used * 100 // 97, used * 2, used * 100 // 97, used):
            one.limit = limit
            await asyncio.sleep(0.05)
            alert = one.alert()
            said.append(alert["severity"] if alert else "")
        await asyncio.sleep(60)

    config = parse(CONFIG)
    with pytest.raises(BaseExceptionGroup) as caught:
        await keeping.kept(process(), one.journal, config, "e", one.retained.put, get())
    assert caught.group_contains(BadJournal, match="play stops here; give more room")
    assert said == ["", "warning", "error", "", "error"]
    alert = one.alert()
    assert alert is not None
    assert (alert["code"], alert["severity"]) == ("journal.room", "error")
    assert "play stops here" in alert["text"]
    one.journal.close()


@virtual_time
async def test_quiet_journal_looks_at_the_disk_seldom_and_notices_that_others_fill_it(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        one = Keeper(tmp_path, patch, 10**9)
        patch.setattr(keeping, "EVERY", PULSE_S)
        looks, measured = [0], keeping.room

        def counted(journal: Journal, config: Any) -> keeping.Room:
            looks[0] += 1
            return measured(journal, config)

        patch.setattr(keeping, "room", counted)

        async def process() -> None:
            one.journal.append(entries(30))
            one.journal.rotate()
            await asyncio.sleep(5)
            seldom = 2 * 40 * PULSE_S / keeping.LOOK_EVERY_S  # for what may be deleted, and for the alert
            for rows, most in ((0, seldom), (3, seldom), (keeping.LOOK_EVERY_ROWS, 2 * 41)):
                looks[0] = 0
                for _ in range(40):
                    one.journal.append(entries(rows))
                    await asyncio.sleep(PULSE_S)
                assert looks[0] <= most
            assert looks[0] >= 40
            one.limit = one.journal.closed[0].size * 100 // 97
            await asyncio.sleep(keeping.LOOK_EVERY_S + 2 * PULSE_S)
            assert (one.alert() or {})["severity"] == "error"

        await keeping.kept(process(), one.journal, parse(CONFIG), "e", one.retained.put, get())
        one.journal.close()


@virtual_time
async def test_quiet_hours_are_signed_and_grown_files_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "EVERY", 0.001)
    journal = Journal(tmp_path / "j.db")
    journal.signed_by(keys(tmp_path), 10_000)
    config = parse(CONFIG + "[journal]\nfile_mb = 1\nsign_seconds = 1\n")

    async def process() -> None:
        journal.append([Entry("t-1", "d", "x", NOON, bytes(1000)) for _ in range(1100)])
        await asyncio.sleep(0.1)
        journal.append(entries(3))
        await asyncio.sleep(1.2)

    await keeping.kept(process(), journal, config, "e", Retained().put, get())
    report = verify(tmp_path / "j.db", [keys(tmp_path).public])
    assert (report.good, report.files, report.rows, report.checkpoints) == (True, 2, 1103, 2)
    assert report.signed_rows == 1103
    journal.close()


@virtual_time
async def test_what_a_killed_process_left_unsigned_the_next_one_signs_at_once(tmp_path: Path) -> None:
    """And what was written before there was a key."""
    path = tmp_path / "j.db"
    Journal(path).append(entries(5))  # no close
    journal = Journal(path)
    journal.signed_by(keys(tmp_path), 10_000)
    await keeping.kept(asyncio.sleep(0.01), journal, parse(CONFIG), "e", Retained().put, get())
    assert not journal.unsigned
    journal.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keep_days = 89", "'journal.keep_days': must be at least 90"),
        ("limit_mb = 1040", "journal.limit_mb must be at least 1041: four files of journal.file_mb and their log"),
        ("keys = 1", "unknown key 'journal.keys'; did you mean 'key'?"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse(f"{CONFIG}[journal]\nsign_rows = 5\n{text}\n")
    assert str(caught.value).startswith("configuration:10: ")
    assert said in str(caught.value)


def test_the_least_limit_is_enough_to_begin(tmp_path: Path) -> None:
    """The log alone takes more than four files of 1 MB."""
    kept = parse(CONFIG + "[journal]\nfile_mb = 1\nlimit_mb = 21\n").journal
    for _ in range(3):
        journal = Journal(tmp_path / "j.db")
        take_up(journal, kept)
        journal.append([Entry("t-1", "d", "x", NOON, bytes(1000)) for _ in range(1000)])
        assert journal.rotate()
        assert log_of(journal.path).stat().st_size < 17 * 10**6
        journal.close()


def look(path: Path) -> None:
    """All that an inspector does beside a writer; the journal is found good."""
    report = verify(path)
    assert report.good, report_text("x", report)
    assert list(export(path, "t-1", site="s", writer="e", of="edge", **ALWAYS))


class Closing(threading.Thread):
    """A writer that closes its files as fast as it can, ten for each look: else each look would have more to read."""

    MOST_ROWS = 700

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.closed = 0
        self.most = 10
        self.first = threading.Event()
        self.enough = threading.Event()

    def run(self) -> None:
        journal, rows = Journal(self.path), 0
        while not self.enough.is_set():
            if rows < self.MOST_ROWS:
                rows += len(journal.append(entries(7)))
            if self.closed < self.most and journal.rotate():
                self.closed += 1
                self.first.set()
                rows = 0
            elif rows >= self.MOST_ROWS:
                time.sleep(0.001)
        journal.close()


def test_a_journal_may_be_verified_while_its_files_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No false alarm, and who looks all the time keeps no file from being closed."""
    monkeypatch.setattr(reader_module, "LOCKED_TIMEOUT", 5.0)
    for n in range(at_length(1, 2)):
        writer = Closing(tmp_path / f"{n}.db")
        writer.start()
        try:
            assert writer.first.wait(PATIENCE)
            looks = 0
            while looks < 10 or writer.closed < at_length(20, 60):
                look(writer.path)
                looks += 1
                writer.most += 10
                time.sleep(0.001)  # between processes there is such a moment; between threads nobody gives way
        finally:
            writer.enough.set()
            writer.join()


# What a look takes hold of: its writer may close a file before and after each.
HOLDS = (
    (reader_module, "FileLock"),
    (reader_module, "_connect"),
    (reader_module, "open_to_read"),
    (reader_module, "closed_files"),
    (verify_module, "open_to_read"),
    (verify_module, "closed_files"),
)


def test_a_journal_may_be_verified_at_any_moment(tmp_path: Path) -> None:
    """The writer tries to close a file before or after anything that a look takes hold of: no false alarm."""
    moments, closed = 0, 0
    for turn in itertools.count():
        journal = Journal(tmp_path / f"{turn}.db")
        journal.append(entries(7))
        assert journal.rotate()
        journal.append(entries(7))
        moments = 0

        def moment(journal: Journal = journal, turn: int = turn) -> None:
            nonlocal moments, closed
            moments += 1
            if moments == turn + 1:
                journal.append(entries(7))
                closed += journal.rotate()

        with pytest.MonkeyPatch.context() as patch:
            for module, name in HOLDS:
                patch.setattr(module, name, beside(moment, getattr(module, name)))
            look(journal.path)
        look(journal.path)
        journal.close()
        if moments <= turn:
            break
    assert moments > 20
    assert closed >= 4, closed


def beside(moment: Callable[[], None], body: Callable[..., Any]) -> Callable[..., Any]:
    """`body`, with a moment before it and one after it."""

    def both(*args: Any, **more: Any) -> Any:
        moment()
        result = body(*args, **more)
        moment()
        return result

    return both


def test_room_is_the_limit_or_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j.db")
    assert abs(keeping.disk_free(journal) / shutil.disk_usage(tmp_path).free - 1) < 0.5  # others use it, too
    monkeypatch.setattr(keeping, "disk_free", lambda _: 10**12)
    assert (room(journal, Keeping(limit_mb=2000)).limit, room(journal, Keeping()).by_disk) == (2 * 10**9, False)
    monkeypatch.setattr(keeping, "disk_free", lambda _: 0)
    now = room(journal, Keeping())
    assert (now.by_disk, now.share) == (True, 1.0)
    with pytest.raises(BadJournal, match="the disk is full, and nothing is lost: play stops here"):
        take_up(journal, Keeping())
    journal.close()


# ---- the command line


@pytest.fixture
def site(tmp_path: Path) -> Path:
    rules, edge = played(tmp_path)
    make_key(tmp_path / "key")
    for one in (rules, edge):
        journal = Journal(one)
        take_up(journal, Keeping(key=str(tmp_path / "key"), sign_rows=2))
        journal.append([Entry("t-2", "d", "x", NOON, b"{}")], {"outbox": b"0"})
        journal.close()
    config = tmp_path / "feltd.toml"
    config.write_text(
        f'[site]\nname="s"\n[edge]\nname="e"\njournal="{edge}"\n[rules]\njournal="{rules}"\n'
        f'[journal]\nkey="{tmp_path}/key"\n[[table]]\nname="t-1"\n[[table]]\nname="t-2"\n'
    )
    return config


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["journal", *map(str, words)])


def test_verify_on_the_command_line(site: Path, tmp_path: Path) -> None:
    result = run("verify", "-c", site)
    assert result.exit_code == 0, result.output
    assert [line.split(": ")[1] for line in result.stdout.splitlines()] == ["good", "good"]
    document = msgspec.json.decode(run("verify", "-c", site, "--json").stdout)
    assert document[str(tmp_path / "edge.db")]["rows"] == 8
    with opened(tmp_path / "edge.db") as db:
        db.execute("UPDATE event SET cause='x' WHERE n=8")
    result = run("verify", tmp_path / "edge.db", "--public", tmp_path / "key.pub")
    assert result.exit_code == 1
    assert "edge.db: table or pool t-2, seq 1, row 8: the row or its hash was changed" in result.stdout
    assert "FINDINGS: journal" in result.stdout


@pytest.mark.parametrize("words", [("verify",), ("export", "t-1")])
def test_verify_and_export_run_behind_the_processes_of_the_tables(
    words: tuple[str, ...], site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, int, int]] = []
    monkeypatch.setattr("daemon.cli.common.os.setpriority", lambda *values: given.append(values))
    assert run(words[0], "-c", site, *words[1:]).exit_code == 0
    assert [(which, who) for which, who, _ in given] == [(os.PRIO_PROCESS, 0)]
    assert given[0][2] >= 10


def test_an_export_that_is_none_takes_no_other_report_with_it(site: Path, tmp_path: Path) -> None:
    lines = run("export", "-c", site, "t-1").stdout_bytes.splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"statement":"{', b'"statement":"')
    (tmp_path / "x.ndjson").write_bytes(b"".join(lines))
    result = run("verify", tmp_path / "edge.db", tmp_path / "x.ndjson", tmp_path / "rules.db")
    assert (result.exit_code, result.exception.__class__) == (1, SystemExit)
    assert f"x.ndjson:{len(lines)}: no line of an export: " in result.stdout
    assert [line.split(": ")[1] for line in result.stdout.splitlines() if ": journal" in line] == [
        "good",
        "1 FINDINGS",
        "good",
    ]


def test_export_and_recall_on_the_command_line(site: Path, tmp_path: Path) -> None:
    for extra in ([], ["--rules"], ["--from", "2026-11-20T20:00:02+08:00", "--to", "2026-11-21"]):
        result = run("export", "-c", site, "t-1", *extra)
        assert result.exit_code == 0, result.output
        (tmp_path / "x.ndjson").write_bytes(result.stdout_bytes)
        checked = run("verify", tmp_path / "x.ndjson")
        assert checked.exit_code == 0, checked.output
    result = run("recall", "-c", site, "t-1")
    assert result.stdout.startswith("round t-1/2026-11-20/2  resolved")
    assert len(msgspec.json.decode(run("recall", "-c", site, "t-1", "--rounds", "9", "--json").stdout)) == 2
    assert "no round has ended yet" in run("recall", "-c", site, "t-2").stderr
    [old] = msgspec.json.decode(run("recall", "-c", site, "t-1", "--round", "t-1/2026-11-20/1", "--json").stdout)
    assert old["result"]["round"] == "t-1/2026-11-20/1"


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")
def test_recall_on_paper_has_the_bytes_on_the_wire(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("reportlab")
    [found] = msgspec.json.decode(run("recall", "-c", site, "t-1", "--json").stdout)
    done = run("recall", "-c", site, "t-1", "--pdf", tmp_path / "round.pdf", "--lang", "pt")
    assert done.stdout == f"{tmp_path / 'round.pdf'}: 1 rounds\n"
    command = ["pdftotext", "-layout", str(tmp_path / "round.pdf"), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found["digest"] in text
    wires = [bytes.fromhex(event["wire"])[:16].hex(" ") for event in found["evidence"] if event["wire"]]
    assert wires
    assert all(wire in text for wire in wires)
    assert run("recall", "-c", site, "t-1", "--pdf", tmp_path / "none" / "round.pdf").exit_code != 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("export", "-c", "CONFIG", "t-9"), "no table or pool 't-9'"),
        (("recall", "-c", "CONFIG", "t-9"), "no table 't-9'"),
        (("recall", "-c", "CONFIG", "t-1", "--round", "t-1:x"), "no round 't-1:x' has ended"),
        (("recall", "-c", "CONFIG", "t-1", "--round", "t-1:x", "--rounds", "3"), "--round: not with --rounds"),
        (("export", "-c", "CONFIG", "t-1", "--from", "yesterday"), "write 2026-11-20"),
        (("export", "-c", "CONFIG", "t-1", "--from", "0001-01-01T00:00:00+08:00"), "write 2026-11-20"),
        (("export", "-c", "CONFIG", "t-1", "--from", "2026-11-22", "--to", "2026-11-20"), "--to must be after --from"),
        (("export", "-c", "CONFIG", "t-1", "--from", "2026-11-22", "--to", "2026-11-22"), "--to must be after --from"),
        (("verify", "/nowhere.db"), "No such file"),
        (("verify", "-c", "CONFIG", "--public", "CONFIG"), "no public key in PEM"),
        (("key", "FOLDER/key"), "exists already"),
    ],
)
def test_bad_input_is_one_message(site: Path, words: tuple[str, ...], expected: str) -> None:
    result = run(*(word.replace("CONFIG", str(site)).replace("FOLDER", str(site.parent)) for word in words))
    assert result.exit_code == 2
    assert expected in result.stderr
    assert "Traceback" not in result.output


def test_no_journal_yet(site: Path, tmp_path: Path) -> None:
    for one in [*tmp_path.glob("edge.*"), *tmp_path.glob("rules.*")]:
        one.unlink()
    result = run("verify", "-c", site)
    remedy = "start the services, or name a journal"
    said = f"Error: {site}: neither {tmp_path}/edge.db nor {tmp_path}/rules.db is there yet; {remedy}\n"
    assert (result.exit_code, result.stderr) == (2, said)
    assert run("recall", "-c", site, "t-1").exit_code == 2
    assert run("export", "-c", site, "t-1").exit_code == 2


def test_a_key_on_the_command_line(tmp_path: Path) -> None:
    result = run("key", tmp_path / "k")
    assert result.exit_code == 0
    assert Key.load(tmp_path / "k").id in result.stdout
    assert Finding("f", "t", "r").place == ""


def test_an_export_without_rows_says_so(site: Path) -> None:
    result = run("export", "-c", site, "t-1", "--from", "2031-01-01")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)
    assert result.stderr.startswith("t-1: no row of that time")
    assert run("export", "-c", site, "t-1").stderr == ""


def test_an_export_resolves_as_it_is(site: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "edge.db")
    spin = [
        ("spin.started", b"{}"),
        ("ball.launched", b'{"direction":"clockwise","rotor":"anticlockwise"}'),
        ("ball.landed", b'{"pocket":"17"}'),
    ]
    journal.append([Entry("t-9", "wheel-1", type_, NOON, data) for type_, data in spin])
    journal.close()
    site.write_text(site.read_text() + '[[table]]\nname="t-9"\n')
    (tmp_path / "x.ndjson").write_bytes(run("export", "-c", site, "t-9").stdout_bytes)
    words = ["resolve", "--ruleset", "macau.roulette", "--option", "betting=no_more_bets", str(tmp_path / "x.ndjson")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert msgspec.json.decode(result.stdout)["outcome"]["pocket"] == "17"
    with_one = (tmp_path / "x.ndjson").read_text().replace(',"seq":', ',"remark":"x","seq":')
    assert "unknown 'remark'" in CliRunner().invoke(main, [*words[:-1], "-"], input=with_one).stderr


def test_a_journal_that_is_gone_is_named(site: Path, tmp_path: Path) -> None:
    """With nothing beside it, it was perhaps never there; with its lock or closed files it was."""
    for one in list(tmp_path.glob("edge.*")):
        one.rename(one.with_name("away-" + one.name))
    result = run("verify", "-c", site)
    assert result.exit_code == 0, result.output
    assert result.stderr == f"{tmp_path}/edge.db: is not there yet; other journals are\n"
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == [f"{tmp_path}/rules.db"]
    (tmp_path / "edge.db-lock").touch()
    result = run("verify", "-c", site)
    assert result.exit_code == 1
    assert f"{tmp_path}/edge.db: there is no such file any more: edge.db-lock is left; " in result.stdout
    assert f"{tmp_path}/edge.db: 1 FINDINGS" in result.stdout
    assert run("verify", tmp_path / "edge.db").stdout.startswith(f"{tmp_path}/edge.db: there is no such file any ")


def test_closed_files_without_their_journal_are_looked_at(rotated: Path) -> None:
    rotated.unlink()
    [finding] = verify(rotated, [keys(rotated.parent).public]).findings
    assert finding.text.startswith("there is no such file any more: journal.000001.db")
    assert verify(rotated).rows
    first = rotated.with_name("journal.000001.db")
    first.chmod(0o600)
    first.write_bytes(b"")
    assert len(verify(rotated).findings) == 2


def test_a_journal_that_may_not_be_seen_is_one_message(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 300)  # as root may look into every other
    site.write_text(site.read_text().replace(f"{tmp_path}/edge.db", f"{folder}/edge.db"))
    result = run("verify", "-c", site)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {folder}/edge.db: ")
    assert result.stderr.count("\n") == 1


def test_the_console_s_journal_is_verified_where_there_is_a_console(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "actions.db"
    text = site.read_text()
    site.write_text(text + f'[console]\njournal="{path}"\n')
    result = run("verify", "-c", site)
    assert (result.exit_code, result.stderr) == (0, f"{path}: is not there yet; other journals are\n")
    Journal(path).close()
    result = run("verify", "-c", site)
    assert [line.split(": ")[0] for line in result.stdout.splitlines() if ": good" in line] == [
        str(tmp_path / name) for name in ("edge.db", "rules.db", "actions.db")
    ]
    with opened(path) as db:
        db.execute("INSERT INTO event VALUES (1, 'console', 1, 'd', 'x', 0, x'', x'', '', x'')")
    assert run("verify", "-c", site).exit_code == 1
    site.write_text(text)
    assert run("verify", "-c", site).exit_code == 0


def test_an_empty_file_is_no_journal_of_an_earlier_version(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_bytes(b"")
    [finding] = verify(tmp_path / "j.db").findings
    assert finding.text == "it is empty: it contains no journal"
    assert "version" not in str(finding)
