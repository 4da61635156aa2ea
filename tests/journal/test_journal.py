"""The journal: gapless, all or nothing, and what was acknowledged stands, whatever kills the writer."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import structlog
from helpers import virtual_time
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from daemon.broker.replay_service import ReplayService
from daemon.broker.retained import Retained
from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.console.site.actions import read_actions
from daemon.journal import reader as reader_module, store as journal_module
from daemon.journal.reader import closed_files, note_of, open_to_read
from daemon.journal.retention import kept
from daemon.journal.rows import Entry, Row
from daemon.journal.signing import make_key
from daemon.journal.store import BadJournal, Journal
from daemon.journal.verify import verify, verify_recent
from daemon.logs import get
from protocols.contract.documents import ReplayAnswer
from protocols.contract.topics import EARLIEST, LATEST
from tests.journal.test_inspection import cells, root_of, varint

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def entry(place: str = "t-1", data: bytes = b"{}", *, time: datetime = NOON, kind: str = "ball.landed") -> Entry:
    return Entry(place, "d-1", kind, time, data, b"wire", "cause")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    one = Journal(tmp_path / "journal.db")
    yield one
    one.close()


def rows(journal: Journal) -> list[Row]:
    return journal.after(0, 1_000_000)


# ---- counting


def test_seq_is_gapless_per_place_and_n_over_all(journal: Journal) -> None:
    written = journal.append([entry("a"), entry("b"), entry("a")])
    written += journal.append([entry("b")])
    assert [(row.n, row.place, row.seq) for row in written] == [(1, "a", 1), (2, "b", 1), (3, "a", 2), (4, "b", 2)]
    assert rows(journal) == written
    assert (journal.head, journal.last("a"), journal.last("b"), journal.last("c")) == (4, 2, 2, 0)


def test_an_entry_comes_back_as_it_was(journal: Journal) -> None:
    zones = [UTC, datetime.now(UTC).astimezone().tzinfo]
    for number, zone in enumerate(zones, 1):
        time = datetime(2026, 11, 20, 20, 32, 11, 123456, tzinfo=zone)
        journal.append([Entry("t", "d", "x", time, b"\x00\xff", b"\r\n", "e:t:1/0")])
        row = rows(journal)[-1]
        assert row == Row(number, "t", number, "d", "x", time, b"\x00\xff", b"\r\n", "e:t:1/0")
        assert row.time.utcoffset() == timedelta(0)


@pytest.mark.parametrize("time", [EARLIEST, EARLIEST + timedelta(microseconds=1), LATEST - timedelta(microseconds=1)])
def test_a_clock_that_was_never_set_is_written_as_it_is(journal: Journal, time: datetime) -> None:
    assert journal.append([entry(time=time)]) == rows(journal)
    assert rows(journal)[0].time == time


def test_reading(journal: Journal) -> None:
    written = journal.append([entry("ab"[n % 2], b"%d" % n, kind=f"k{n % 3}") for n in range(10)])
    assert journal.after(7, 2) == written[7:9]
    assert journal.after(10, 5) == []
    assert journal.range("a", 2, 4) == [row for row in written if row.place == "a"][1:4]
    assert journal.range("a", 4, 2) == journal.range("c", 1, 9) == []
    assert journal.latest("a", ("k0", "k1")) == written[6]
    assert journal.latest("a", ("k9",)) is None


def test_each_commit_is_on_the_disk_before_anybody_hears_of_it(journal: Journal) -> None:
    """FULL is 2; with less the log is written and not synced, and a power cut takes what was acknowledged."""
    for _ in range(2):
        assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        journal.append([entry()])
        journal.rotate()


def test_a_start_does_not_read_through_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of SQLite's machine: the same for a hundred times the rows."""
    connect = sqlite3.connect
    steps: Counter[int] = Counter()

    def counted(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **kwargs)
        db.set_progress_handler(lambda: steps.update([size]), 10)
        return db

    monkeypatch.setattr(sqlite3, "connect", counted)
    for size in (100, 10_000):
        journal = Journal(tmp_path / f"{size}.db")
        journal.append([entry(f"t-{n % 4}", b"%d" % n, kind=f"k{n % 7}") for n in range(size)])
        journal.close()
        steps.pop(size)
        journal = Journal(tmp_path / f"{size}.db")
        assert (journal.head, journal.last("t-3")) == (size, size // 4)
        assert journal.latest("t-3", ("k1", "k2", "k3", "k4", "k5", "k6")) is not None
        journal.close()
    assert steps[10_000] < steps[100] * 1.5


def test_memory_is_the_last_that_was_written(journal: Journal) -> None:
    journal.append((), {"a/1": b"x", "a/2": b"y", "b": b"z"})
    journal.append([entry()], {"a/1": b"w"})
    assert journal.memory("a/1") == b"w"
    assert journal.memory("c") is None
    assert journal.memories("a/") == {"a/1": b"w", "a/2": b"y"}


# ---- rights


def modes(folder: Path) -> dict[str, int]:
    return {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077])
def test_each_file_of_a_journal_is_for_its_owner_and_group_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        one = Journal(tmp_path / "made" / "journal.db")
        one.signed_by(make_key(tmp_path / "key.pem"), 2)
        one.append([entry() for _ in range(4)])
        assert one.rotate()
        one.append([entry()])
        with contextlib.closing(open_to_read(one.path)):
            in_use = modes(one.path.parent)
        one.close()
    finally:
        os.umask(before)
    names = ["-lock", "-readers", "-shm", "-signed", "-wal"]
    assert sorted(in_use) == ["journal.000001.db", "journal.db", *(f"journal.db{name}" for name in names)]
    for found in (in_use, modes(one.path.parent)):
        assert found.pop("journal.000001.db") == 0o440
        assert set(found.values()) == {0o640 & ~umask}
    assert (one.path.parent.stat().st_mode & 0o777) == 0o750 & ~umask


def test_files_that_others_may_read_are_tightened_at_the_start_and_that_is_said_once(tmp_path: Path) -> None:
    one = Journal(tmp_path / "journal.db")
    one.append([entry()])
    assert one.rotate()
    one.close()
    for file in tmp_path.iterdir():
        file.chmod(0o644)
    one = Journal(tmp_path / "journal.db")
    assert {mode & 0o037 for mode in modes(tmp_path).values()} == {0}
    config = parse('[site]\nname = "s"\n[edge]\nname = "e"\n')
    with structlog.testing.capture_logs() as logs:
        asyncio.run(kept(asyncio.sleep(0), one, config, "e", Retained().put, get()))
    [said] = [line for line in logs if line["event"] == "journal.tightened"]
    names = ("journal.000001.db", "journal.db", "journal.db-lock", "journal.db-readers", "journal.db-signed")
    assert {Path(file).name for file in said["files"]} >= set(names)
    one.close()
    again = Journal(tmp_path / "journal.db")
    assert again.tightened == []
    again.close()


# ---- all or nothing


@pytest.mark.parametrize(
    ("bad", "memory", "raised"),
    [
        (entry(data="text"), {}, BadJournal),  # type: ignore[arg-type]
        (entry(time=datetime(2026, 1, 1)), {}, TypeError),  # noqa: DTZ001 - without a zone, on purpose
        (entry(place="\ud800"), {}, UnicodeEncodeError),
        (entry(), {"k": "text"}, BadJournal),
        (entry(), {"\ud800": b""}, UnicodeEncodeError),
    ],
)
def test_a_batch_that_fails_leaves_nothing(
    journal: Journal, bad: Entry, memory: dict[str, Any], raised: type[Exception]
) -> None:
    before = journal.append([entry()], {"k": b"old"})
    with pytest.raises(raised):
        journal.append([entry(), bad, entry("b")], {"j": b"new", "k": b"new", **memory})
    assert rows(journal) == before
    assert (journal.head, journal.last("t-1"), journal.last("b")) == (1, 1, 0)
    assert (journal.memory("j"), journal.memory("k")) == (None, b"old")
    after = journal.append([entry(), entry("b")], {"k": b"newer"})  # and the journal goes on
    assert [(row.n, row.seq) for row in after] == [(2, 2), (3, 1)]
    assert journal.memory("k") == b"newer"


def test_entries_that_fail_while_they_are_made_leave_nothing(journal: Journal) -> None:
    def entries() -> Iterator[Entry]:
        yield entry()
        raise LookupError

    with pytest.raises(LookupError):
        journal.append(entries(), {"k": b"new"})
    assert (rows(journal), journal.head, journal.memory("k")) == ([], 0, None)
    assert [row.seq for row in journal.append([entry()])] == [1]


def test_a_full_disk_leaves_nothing(journal: Journal) -> None:
    journal.append([entry()])
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count={pages + 2}")
    big = [entry(data=b"x" * 4000) for _ in range(20)]
    with pytest.raises(BadJournal, match=r"journal\.db: database or disk is full; nothing was lost"):
        journal.append(big, {"k": b"v"})
    assert (journal.head, journal.last("t-1"), len(rows(journal)), journal.memory("k")) == (1, 1, 1, None)
    journal._db.execute("PRAGMA max_page_count=1000000")
    assert [row.n for row in journal.append(big)] == list(range(2, 22))


class Failing:
    """The journal's connection on a disk that does not take some statements, `times` times each."""

    def __init__(self, real: sqlite3.Connection, *refused: str, times: int = 1_000) -> None:
        self.real, self.left = real, dict.fromkeys(refused, times)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def execute(self, sql: str, *values: Any) -> Any:
        if self.left.get(sql):
            self.left[sql] -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return self.real.execute(sql, *values)


def test_a_disk_that_fails_the_rollback_too_is_one_message_and_nothing_half_is_ever_written(journal: Journal) -> None:
    real, journal._db = journal._db, Failing(journal._db, "COMMIT", "ROLLBACK")  # type: ignore[assignment]
    for message in ("disk I/O error; nothing was lost", "transaction"):
        with pytest.raises(BadJournal, match=message):
            journal.append([entry()])
    journal._db = real
    path = journal.path
    journal.close()
    again = Journal(path)
    assert (again.head, again.last("t-1")) == (0, 0)
    again.close()


def test_a_signature_that_could_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    """Else the next checkpoint would follow from one that is nowhere, and look like a forgery for ever."""
    path, key = tmp_path / "journal.db", make_key(tmp_path / "key")
    journal = Journal(path)
    journal.signed_by(key, 1000)
    journal.append([entry()])
    assert journal.sign()
    before = journal.checkpoint
    journal.append([entry()])
    real, journal._db = journal._db, Failing(journal._db, "COMMIT", times=1)  # type: ignore[assignment]
    with pytest.raises(BadJournal, match="disk I/O error; nothing was lost"):
        journal.sign()
    journal._db = real
    assert journal.checkpoint == before
    journal.append([entry()])
    journal.close()
    assert verify_recent(path, [key.public]).findings == []
    again = Journal(path)
    assert again.checkpoint.number == before.number + 1
    again.close()


# ---- opening


def test_it_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "journal.db"
    first = Journal(path)
    written = first.append([entry("a"), entry("b"), entry("a")], {"k": b"v"})
    name = first.name
    first.close()
    second = Journal(path)
    assert (second.name, rows(second), second.head, second.last("a"), second.memory("k")) == (name, written, 3, 2, b"v")
    assert [(row.n, row.seq) for row in second.append([entry("a")])] == [(4, 3)]
    second.close()


def test_each_journal_has_a_name_of_its_own(tmp_path: Path) -> None:
    names = set()
    for n in range(5):
        journal = Journal(tmp_path / f"{n}.db")
        names.add(journal.name)
        journal.close()
    assert len(names) == 5
    assert all(len(name) == 8 and name.isalnum() for name in names)


def test_a_second_opener_is_refused_and_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Journal
) -> None:
    monkeypatch.setattr(reader_module, "LOCKED_TIMEOUT", 0.01)
    with pytest.raises(BadJournal) as caught:
        Journal(journal.path)
    assert str(caught.value) == f"{journal.path}: database is locked; another process may be using it"
    journal.append([entry()])
    assert journal.head == 1
    journal.close()
    again = Journal(journal.path)
    assert again.head == 1
    again.close()


async def test_a_second_process_is_refused(journal: Journal) -> None:
    code = (
        "import sys; from pathlib import Path; from daemon.journal import reader, store as journal\n"
        "reader.LOCKED_TIMEOUT = 0.01\n"
        "try: journal.Journal(Path(sys.argv[1]))\n"
        "except journal.BadJournal as error: print(error)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(journal.path), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said.decode() == f"{journal.path}: database is locked; another process may be using it\n"


@pytest.mark.parametrize("version", [1, 7])
def test_another_version_is_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "journal.db"
    Journal(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={version}")
    db.close()
    for _ in range(2):  # the refusal itself locks nobody out
        with pytest.raises(
            BadJournal, match=f"was written by version {version}; run that version, or move all its files away"
        ):
            Journal(path)


def test_readers_look_on_and_keep_nobody_waiting(journal: Journal) -> None:
    journal.append([entry()])
    reader = open_to_read(journal.path)
    reader.execute("BEGIN")
    assert reader.execute("SELECT max(n) FROM event").fetchone() == (1,)
    journal.append([entry()])
    assert reader.execute("SELECT max(n) FROM event").fetchone() == (1,)
    reader.execute("COMMIT")
    assert reader.execute("SELECT max(n) FROM event").fetchone() == (2,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM event")
    assert not journal.rotate()  # not under somebody's eyes
    journal.append([entry()])
    reader.close()
    assert journal.rotate()
    assert [row.n for row in rows(journal)] == [1, 2, 3]


# ---- one file after the other


def test_counting_and_reading_go_on_over_files(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    assert not journal.rotate()  # nothing in it
    written: list[Row] = []
    for number in range(4):
        written += journal.append(
            [entry("ab"[n % 2], b"%d" % n, kind=f"k{number}") for n in range(6)], {"k": b"%d" % number}
        )
        assert journal.rotate() or number == 3
    assert [one.name for one in closed_files(journal.path)] == [f"journal.00000{n}.db" for n in (1, 2, 3, 4)]
    assert journal.path.with_name("journal.000001.db").stat().st_mode & 0o222 == 0
    for _ in range(2):
        assert journal.after(0, 100) == written
        assert journal.after(7, 9) == written[7:16]
        assert journal.after(23, 2) == written[23:]
        assert journal.range("a", 2, 11) == [row for row in written if row.place == "a"][1:11]
        assert journal.range("a", 0, 0) == journal.range("c", 1, 9) == []
        assert journal.latest("b", ("k0", "k1")) == written[11]
        assert (journal.head, journal.last("a"), journal.memory("k")) == (24, 12, b"3")
        assert [(one.number, one.after, one.to) for one in journal.closed] == [
            (1, 0, 6),
            (2, 6, 12),
            (3, 12, 18),
            (4, 18, 24),
        ]
        assert journal.size > sum(one.size for one in journal.closed)
        journal.close()
        journal = Journal(tmp_path / "journal.db")
    journal.forget(journal.closed[0])
    assert journal.latest("b", ("k0",)) is None
    assert [row.seq for row in journal.range("a", 1, 5)] == [4, 5]
    with pytest.raises(BadJournal, match="row 1 is missing; put it back"):
        journal.after(0, 1)
    journal.close()


@pytest.mark.parametrize("step", ["_begin", "link", "replace", "chmod", "fsync"])
def test_a_process_killed_between_two_files_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append([entry()], {"k": b"v"})

    class Killed(BaseException):
        """Nobody catches it."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        owner = {"_begin": journal_module, "link": os, "fsync": os}.get(step, Path)
        patch.setattr(owner, step, killed)
        with pytest.raises(Killed):
            journal.rotate()
    journal.close()
    again = Journal(tmp_path / "journal.db")
    assert (again.head, again.memory("k"), [row.n for row in rows(again)]) == (1, b"v", [1])
    assert [row.n for row in again.append([entry()])] == [2]
    assert len(again.closed) == (step in ("chmod", "fsync"))
    again.rotate()
    again.close()
    assert verify(tmp_path / "journal.db").good
    assert not list(tmp_path.glob("*-new"))


@pytest.mark.parametrize("step", ["_begin", "link", "replace", "chmod", "fsync"])
def test_a_file_that_could_not_be_closed_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The console outlives a disk that is full, and writes on when there is room."""
    journal = Journal(tmp_path / "journal.db")
    journal.append([entry()], {"k": b"v"})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        owner = {"_begin": journal_module, "link": os, "fsync": os}.get(step, Path)
        patch.setattr(owner, step, full)
        with pytest.raises(BadJournal, match=r"cannot begin the next file: .*No space left"):
            journal.rotate()
    assert journal.file_size > 0
    assert len(journal.closed) == (step in ("chmod", "fsync"))
    journal.append([entry()])
    assert journal.rotate()
    assert ([row.n for row in rows(journal)], journal.memory("k")) == ([1, 2], b"v")
    journal.close()
    assert verify(tmp_path / "journal.db").good


def test_a_journal_that_cannot_even_be_gone_on_with_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append([entry()])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def refused(_: Journal) -> None:
        raise BadJournal("unable to open database file")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        patch.setattr(Journal, "_open", refused)
        with pytest.raises(BadJournal, match="cannot begin the next file"):
            journal.rotate()
    for use in (lambda: journal.file_size, lambda: journal.append([entry()]), journal.record_uptime):
        with pytest.raises(BadJournal, match=r"journal\.db: Cannot operate on a closed database"):
            use()
    journal.close()


def test_while_somebody_reads_no_checkpoint_is_made_for_a_file_that_is_not_closed(tmp_path: Path) -> None:
    """The keeper tries again each second."""
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(make_key(tmp_path / "key"), 1000)
    reader = open_to_read(journal.path)
    for _ in range(3):
        journal.append([entry()])
        assert not journal.rotate()
    assert journal.checkpoint.number == 0
    reader.close()
    assert journal.rotate()
    assert journal.checkpoint.number == 1
    journal.close()


# ---- closed files that somebody moves, puts back, or leaves behind


FILES = 4


def several(path: Path) -> tuple[Journal, list[Row]]:
    """A journal of four closed files of six rows, and three rows: in each file table "a", in the first two "b"."""
    journal = Journal(path)
    written: list[Row] = []
    for number in range(FILES):
        written += journal.append([entry("ab"[n % 2 and number < 2], kind=f"k{number}") for n in range(6)])
        assert journal.rotate()
    written += journal.append([entry("a", kind="now")] * 3)
    return journal, written


def seqs(journal: Journal, place: str) -> list[int]:
    return [row.seq for row in journal.range(place, 1, 1000)]


def test_files_may_be_moved_to_an_archive_and_put_back_under_a_process(tmp_path: Path) -> None:
    journal, written = several(tmp_path / "journal.db")
    (tmp_path / "archive").mkdir()
    size, every = journal.size, [row.seq for row in written if row.place == "a"]
    assert seqs(journal, "a") == every
    moved = closed_files(journal.path)[:3]
    for at, path in enumerate(moved, 2):
        path.rename(tmp_path / "archive" / path.name)
        assert [one.number for one in journal.closed] == list(range(at, FILES + 1))
        assert seqs(journal, "a") == [row.seq for row in written if row.place == "a" and row.n > (at - 1) * 6]
        assert journal.latest("a", (f"k{at - 2}",)) is None
        assert journal.latest("a", ("k3",)) == written[23]
    assert size > journal.size > sum(one.stat().st_size for one in closed_files(journal.path))
    with pytest.raises(BadJournal, match="row 1 is missing; put it back"):  # who sends on from there must have it
        journal.after(0, 1)
    for path in reversed(moved):
        (tmp_path / "archive" / path.name).rename(path)
    assert (journal.size, seqs(journal, "a"), journal.after(0, 100)) == (size, every, written)
    assert journal.latest("a", ("k0",)) == [row for row in written if row.type == "k0" and row.place == "a"][-1]
    journal.close()


@pytest.mark.parametrize("gone", range(FILES))
def test_a_file_that_goes_while_it_is_read_is_read_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    """It goes after it was looked for, and before it is opened."""
    journal, written = several(tmp_path / "journal.db")
    paths = [one.path for one in journal.closed]

    def opened(path: Path) -> sqlite3.Connection:
        paths[gone].unlink(missing_ok=True)
        return open_to_read(path)

    left = [row for row in written if row.place == "a" and not gone * 6 < row.n <= gone * 6 + 6]
    for ask in ("range", "latest"):
        shelf = tmp_path / "shelf.db"
        os.link(paths[gone], shelf)
        assert len(journal.closed) == FILES
        with monkeypatch.context() as patch:
            patch.setattr(journal_module, "open_to_read", opened)
            if ask == "range":
                assert journal.range("a", 1, 1000) == left
            else:
                assert journal.latest("a", (f"k{gone}",)) is None
        assert len(journal.closed) == FILES - 1
        shelf.rename(paths[gone])
    journal.close()


def test_an_archived_file_is_held_open_no_longer(tmp_path: Path) -> None:
    """Else the disk would not have its room back before the process ends."""
    journal, _ = several(tmp_path / "journal.db")
    first = closed_files(journal.path)[0]
    assert journal.range("a", 1, 1) != []
    first.unlink()
    assert journal.size
    held = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            held.append(str(one.readlink()))
    assert not [one for one in held if one.startswith(str(first))]
    journal.close()


def test_a_file_that_is_still_being_copied_back_is_waited_for(tmp_path: Path) -> None:
    journal, written = several(tmp_path / "journal.db")
    first = closed_files(journal.path)[0]
    whole = first.read_bytes()
    for length in (0, 100, 4096, 8192, 20_000, len(whole) - 4096):
        first.unlink()
        assert [one.number for one in journal.closed] == [2, 3, 4]
        first.write_bytes(whole[:length])
        assert journal.latest("b", ("k0",)) is None
        assert seqs(journal, "b") == [4, 5, 6]
        first.write_bytes(whole)
        assert [one.number for one in journal.closed] == [1, 2, 3, 4]
        assert journal.after(0, 100) == written
    journal.close()


def test_a_file_that_is_copied_for_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What grows changes no folder."""
    monkeypatch.setattr(journal_module, "_SETTLED", 0)
    journal, written = several(tmp_path / "journal.db")
    first = closed_files(journal.path)[0]
    whole = first.read_bytes()
    first.unlink()
    first.write_bytes(whole[:4096])
    time.sleep(0.05)  # the folder's time is another one from here on
    assert [one.number for one in journal.closed] == [2, 3, 4]
    with first.open("ab") as file:
        file.write(whole[4096:])
    assert journal.after(0, 100) == written
    journal.close()


def test_a_file_that_goes_while_it_is_looked_for_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several(tmp_path / "journal.db")[0].close()
    journal = Journal(tmp_path / "journal.db")

    def opened(path: Path) -> sqlite3.Connection:
        closed_files(journal.path)[0].unlink()
        return open_to_read(path)

    monkeypatch.setattr(journal_module, "open_to_read", opened)
    journal.check_closed()
    assert journal.closed == []
    journal.close()


def test_a_damaged_closed_file_has_a_remedy_of_its_own(tmp_path: Path) -> None:
    journal, _ = several(tmp_path / "journal.db")
    first = journal.closed[0].path
    first.chmod(0o600)
    with first.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (first.stat().st_size - 4096))
    words = r"journal\.000001\.db: .*malformed; put back the copy that you keep of it, or move it away"
    with pytest.raises(BadJournal, match=words) as caught:
        journal.after(0, 9)
    assert "a new one is made" not in str(caught.value)
    journal.close()
    again = Journal(journal.path)
    with pytest.raises(BadJournal, match=r"journal\.000001\.db: .*; put back the copy"):
        again.check_closed()
    again.close()


BIG = 60


def with_a_bad_page(path: Path) -> tuple[Journal, list[Row]]:
    """Three closed files of BIG rows of table "a", and three rows; in the second one a page in the middle is bad.

    Row 1 of the first two begins a round, row 40 ends it. The bad page is that of row 30.
    """
    journal = Journal(path)
    written: list[Row] = []
    for file in range(3):
        kinds = {1: "opened", 40: "resolved"} if file < 2 else {}
        data = [b"%d-%d-" % (file, n) + b"x" * 500 for n in range(1, BIG + 1)]
        written += journal.append([entry("a", one, kind=kinds.get(n, "x")) for n, one in enumerate(data, 1)])
        assert journal.rotate()
    written += journal.append([entry("a", kind="now")] * 3)
    second = closed_files(path)[1]
    second.chmod(0o600)
    with second.open("r+b") as file_:
        file_.seek(second.read_bytes().index(b"1-30-x") // 4096 * 4096)
        file_.write(b"\xff" * 4096)
    return journal, written


def test_a_bad_page_of_a_closed_file_stops_nobody(tmp_path: Path) -> None:
    """History must not stop play: what can be read is told, nothing is said to be gone, and it is said where it is."""
    path = tmp_path / "journal.db"
    with_a_bad_page(path)[0].close()
    journal = Journal(path)
    journal.check_closed()  # the start does not read through
    [second] = closed_files(path)[1:2]
    written = [*journal.range("a", 1, BIG), *journal.range("a", 3 * BIG + 1, 9999)]
    assert (len(written), journal.unread) == (BIG + 3, [])
    for _ in range(2):
        found = seqs(journal, "a")
        assert found == sorted(found)
        assert {*range(1, BIG + 20), *range(2 * BIG + 1, 3 * BIG + 4)} <= {*found}
        assert BIG + 30 not in found
        assert [row.seq for row in journal.range("a", BIG + 1, BIG + 5)] == [BIG + n for n in range(1, 6)]
        assert journal.unread == [
            f"{second}: database disk image is malformed; put back the copy that you keep of it, or move it away"
        ]
        assert journal.oldest("a") == 1
    with pytest.raises(BadJournal, match="malformed; put back the copy"):  # who sends on from there must have it
        journal.after(BIG, BIG)
    closed_files(path)[0].unlink()
    assert journal.oldest("a") == BIG + 1
    second.unlink()
    assert (journal.oldest("a"), journal.unread) == (2 * BIG + 1, [])
    journal.close()


def test_nothing_older_is_the_latest_where_a_file_cannot_be_read(tmp_path: Path) -> None:
    """An old result that is shown as the last one, or an old round that is ended again, is worse than none."""
    journal, written = with_a_bad_page(tmp_path / "journal.db")
    assert journal.latest("a", ("now",)) == written[-1]
    assert journal.latest("a", ("resolved",)) == written[BIG + 39]
    assert journal.unread == []
    assert journal.latest("a", ("opened",)) is None  # the last one stands before the bad page, if there is none on it
    assert len(journal.unread) == 1
    closed_files(journal.path)[1].unlink()
    assert journal.latest("a", ("opened",)) is None  # nor where it is not there any more
    assert journal.latest("a", ("resolved",)) is None
    assert journal.unread == []
    journal.close()


def test_the_latest_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, written = several(tmp_path / "journal.db")
    of_a = [row for row in written if row.place == "a"]
    last = [row for row in of_a if row.type == "k2"][-1]
    assert journal.latest("a", ("k2",), since=last.seq - 1) == last
    assert journal.latest("a", ("k2",), since=last.seq) is None
    assert journal.latest("a", ("now",), since=len(of_a)) is None
    opened: list[str] = []

    def opened_(path: Path) -> sqlite3.Connection:
        opened.append(path.name)
        return open_to_read(path)

    monkeypatch.setattr(journal_module, "open_to_read", opened_)
    journal._stop_reading()
    assert journal.latest("a", ("k0",), since=len(of_a) - 3) is None
    assert opened == []  # all that is younger stands in the live file
    assert journal.latest("a", ("k0",), since=len(of_a) - 4) is None
    assert opened == ["journal.000004.db"]
    journal.close()


def test_no_more_files_may_be_opened_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, written = several(tmp_path / "journal.db")
    every = [row for row in written if row.place == "a"]
    assert journal.oldest("a") == 1

    def no(path: Path) -> sqlite3.Connection:
        raise OSError(24, "Too many open files", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "open_to_read", no)
        assert journal.range("a", 1, 1000) == every[-3:]
        assert journal.latest("a", ("k3",)) is None
        assert journal.oldest("a") == 1
        assert all("Too many open files" in one for one in journal.unread)
        with pytest.raises(BadJournal, match=r"^.*journal\.000001\.db: .*Too many open files.*; put back"):
            journal.after(0, 9)
    assert (journal.range("a", 1, 1000), journal.after(0, 99)) == (every, written)
    journal.close()


def test_a_row_that_cannot_be_is_damage_too(tmp_path: Path) -> None:
    """SQLite sees nothing wrong with a text that is none."""
    journal, _ = several(tmp_path / "journal.db")
    third = closed_files(journal.path)[2]
    third.chmod(0o600)
    with sqlite3.connect(third) as db:
        db.execute("UPDATE event SET cause = CAST(x'ff' AS TEXT) WHERE n = 16")
    db.close()
    assert [row.n for row in journal.range("a", 1, 1000) if row.n > 12] == [13, 14, 15, *range(19, 28)]
    [said] = journal.unread
    assert said.startswith(f"{third}: ")
    with pytest.raises(BadJournal, match=r"journal\.000003\.db: .*; put back the copy"):
        journal.after(12, 6)
    journal._db.execute("UPDATE event SET cause = CAST(x'ff' AS TEXT) WHERE n = 26")
    with pytest.raises(BadJournal, match=r"journal\.db: "):
        journal.after(24, 6)
    journal.close()


class Heard:
    """What is published, without a broker."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bytes]] = []

    async def publish(self, topic: str, payload: bytes, *, acknowledged: Callable[[], None], **_: bool) -> None:
        self.said.append((topic, payload))
        asyncio.get_running_loop().call_soon(acknowledged)


@virtual_time
async def test_who_asks_for_what_stands_on_a_bad_page_is_answered(tmp_path: Path) -> None:
    journal, _ = with_a_bad_page(tmp_path / "journal.db")
    session: Any = Heard()
    topic = "felt/1/s/table/a/cmd/replay"
    ask = Message(topic, b'{"from":%d,"to":%d}' % (BIG + 25, 2 * BIG + 5))
    service = ReplayService(
        "e", journal, [topic], lambda row, _: (str(row.seq), b""), lambda: False, structlog.get_logger()
    )
    answering = asyncio.create_task(service.run(session))
    service.receive(ask)
    await asyncio.sleep(10)
    answering.cancel()
    await asyncio.wait([answering])
    *events, (last, payload) = session.said
    assert last == topic + "/result"
    said = msgspec.json.decode(payload, type=ReplayAnswer)
    assert (said.first, said.last, said.oldest) == (BIG + 25, 2 * BIG + 5, 1)
    assert [seq for seq, _ in events][-5:] == [str(2 * BIG + n) for n in range(1, 6)]
    journal.close()


def test_closed_files_of_another_journal_are_not_taken_for_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    several(path)[0].close()
    path.unlink()
    note_of(path).unlink()
    journal = Journal(path)
    assert len(closed_files(path)) == FILES
    assert journal.closed == []
    assert journal.latest("b", ("k0",)) is None
    assert journal.size < 2 * 2**24
    with pytest.raises(BadJournal, match=r"journal\.000001\.db, file 1 of journal \w{8}\n(.*\n)*.*nothing was"):
        journal.check_closed()
    written = journal.append([entry("a")])
    assert not journal.rotate()  # its place is taken: nothing is lost, nobody stops
    written += journal.append([entry("a")])
    assert [one.name for one in journal.foreign] == [f"journal.00000{n}.db" for n in (1, 2, 3, 4)]
    for one in closed_files(path):
        one.unlink()
    assert journal.rotate()
    assert (journal.foreign, journal.after(0, 9)) == ([], written)
    journal.check_closed()
    journal.close()
    assert verify(path).good


def test_later_files_of_the_same_journal_are_no_files_before_it(tmp_path: Path) -> None:
    """An older copy of journal.db was put back, and what was closed since lies beside it."""
    path = tmp_path / "journal.db"
    journal = Journal(path)
    journal.append([entry()])
    journal.rotate()
    journal.append([entry()])
    journal.close()
    copy = path.read_bytes()
    journal = Journal(path)
    journal.rotate()
    journal.append([entry()])
    journal.close()
    path.write_bytes(copy)
    journal = Journal(path)
    assert [one.number for one in journal.closed] == [1]
    with pytest.raises(BadJournal, match=r"db is file 2 of (.*\n).*\.000002\.db, file 2 of"):
        journal.check_closed()
    assert not journal.rotate()
    journal.close()


@pytest.mark.parametrize("how", ["of another journal", "under another name"])
def test_a_file_in_the_place_of_an_earlier_one_is_no_file_before_it(tmp_path: Path, how: str) -> None:
    journal, _ = several(tmp_path / "journal.db")
    first, second, *_ = closed_files(journal.path)
    if how == "under another name":
        second.rename(first)
    else:
        several(tmp_path / "other" / "journal.db")[0].close()
        (tmp_path / "other" / first.name).rename(first)
    assert journal.foreign == [first]
    assert [one.number for one in journal.closed] == ([3, 4] if how == "under another name" else [2, 3, 4])
    with pytest.raises(BadJournal, match="no files before it"):
        journal.check_closed()
    journal.close()


# ---- the oldest row that is there


def test_the_oldest_row_that_is_there(tmp_path: Path) -> None:
    journal, _ = several(tmp_path / "journal.db")
    assert [journal.oldest(place) for place in "abc"] == [1, 1, 0]
    for left, a, b in ((3, 4, 4), (2, 7, 7), (1, 13, 7), (0, 19, 7)):  # of b there are 6: the next one is the oldest
        journal.forget(journal.closed[0])
        assert (len(journal.closed), journal.oldest("a"), journal.oldest("b")) == (left, a, b)
        for one, place in ((a, "a"), (b, "b")):
            assert (seqs(journal, place) or [journal.last(place) + 1])[0] == one
    journal.close()
    journal = Journal(tmp_path / "journal.db")
    assert [journal.oldest(place) for place in "abc"] == [19, 7, 0]
    journal.append([entry("b"), entry("c")])
    assert [journal.oldest(place) for place in "abc"] == [19, 7, 1]
    assert journal.rotate()
    assert [journal.oldest(place) for place in "abc"] == [19, 7, 1]
    journal.forget(journal.closed[0])
    assert [journal.oldest(place) for place in "abc"] == [journal.last(place) + 1 for place in "abc"]
    journal.close()


def test_the_oldest_row_where_files_were_moved_away(tmp_path: Path) -> None:
    """From that one on nothing is missing: what stands before a gap closes none."""
    journal, _ = several(tmp_path / "journal.db")
    first, second, third, _ = closed_files(journal.path)
    aside = third.rename(tmp_path / "aside")
    assert (journal.oldest("a"), journal.oldest("b")) == (13, 7)
    aside.rename(third)
    assert (journal.oldest("a"), journal.oldest("b")) == (1, 1)
    first.rename(aside)
    assert (journal.oldest("a"), journal.oldest("b")) == (4, 4)
    second.unlink()
    assert (journal.oldest("a"), journal.oldest("b")) == (7, 7)
    journal.close()


def test_nothing_is_said_to_be_gone_while_a_file_cannot_be_read(tmp_path: Path) -> None:
    """It may be just being copied back, and who hears that its rows are gone asks for them no more."""
    journal, _ = several(tmp_path / "journal.db")
    first, second, *_ = closed_files(journal.path)
    whole = second.read_bytes()
    second.unlink()
    assert (journal.oldest("a"), journal.oldest("b"), journal.oldest("c")) == (7, 7, 0)
    second.write_bytes(whole[:4096])
    assert (journal.oldest("a"), journal.oldest("b"), journal.oldest("c")) == (1, 1, 0)
    second.write_bytes(whole)
    first.unlink()
    assert (journal.oldest("a"), journal.oldest("b"), journal.oldest("c")) == (4, 4, 0)
    journal.close()


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more files may be opened, or the right to look was taken: nothing is gone, and who asks must not hear so."""
    journal, written = several(tmp_path / "journal.db")
    every = [row for row in written if row.place == "a"]
    assert journal.oldest("a") == 1

    def no(self: Path) -> Iterator[Path]:
        raise OSError(24, "Too many open files", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", no)
        os.utime(tmp_path)
        assert (journal.oldest("a"), journal.range("a", 1, 1000), len(journal.closed)) == (1, every, FILES)
        journal.close()
        assert "Too many open files" in verify(journal.path).findings[0].text
        with pytest.raises(BadJournal, match=rf"^{tmp_path}: Too many open files; check disk, owner and rights"):
            read_actions(journal.path, 9)
        assert "[0-9][0-9]" in journal_module.moved_away(journal.path)
        journal = Journal(tmp_path / "journal.db")
        with pytest.raises(BadJournal, match=rf"^{tmp_path}: Too many open files; check disk, owner and rights"):
            journal.check_closed()
        assert journal.oldest("a") == 1
    journal.check_closed()
    assert (journal.oldest("a"), journal.range("a", 1, 1000)) == (1, every)
    journal.close()


def test_the_oldest_row_is_known_without_opening_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, _ = several(tmp_path / "journal.db")
    assert journal.oldest("a") == 1

    def no(*_: object, **__: object) -> sqlite3.Connection:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(journal_module, "open_to_read", no)
    journal._db, db = None, journal._db  # type: ignore[assignment]
    assert [journal.oldest(place) for place in "abc"] == [1, 1, 0]
    journal._db = db
    journal.close()


# ---- when a file ended

DAY = timedelta(days=1)


def ended(path: Path, *files: tuple[datetime, datetime]) -> list[datetime]:
    """Of closed files, each with the time that the clock showed at its beginning and that of its last row."""
    clock = [files[0][0]]
    journal = Journal(path, now=lambda: clock[0])
    for at, (_, row) in enumerate(files):
        journal.append([entry(time=row)])
        clock[0] = files[at + 1][0] if at + 1 < len(files) else clock[0]
        journal.rotate()
    found = [one.ended for one in journal.closed]
    journal.close()
    return found


def test_a_file_ended_as_the_next_one_began(tmp_path: Path) -> None:
    assert ended(tmp_path / "j.db", *((NOON + n * DAY, NOON + n * DAY) for n in range(3))) == [
        NOON + DAY,
        NOON + 2 * DAY,
        NOON + 2 * DAY,
    ]


@pytest.mark.parametrize("wrong", [0, 1, 2, 3])
def test_a_clock_that_stood_in_2000_makes_no_file_old(tmp_path: Path, wrong: int) -> None:
    """A file ended no earlier than it began, than its last row and than the file before it."""
    past = datetime(2000, 1, 1, tzinfo=UTC)
    files = [(past if n == wrong else NOON + n * DAY, NOON + n * DAY + DAY / 2) for n in range(4)]
    found = ended(tmp_path / "j.db", *files)
    assert found == sorted(found)
    assert all(one >= NOON + n * DAY + DAY / 2 for n, one in enumerate(found))
    only_the_clock = ended(tmp_path / "k.db", *((began, past) for began, _ in files))
    assert only_the_clock == sorted(only_the_clock)
    assert min(only_the_clock[wrong:]) >= NOON + max(wrong - 1, 0) * DAY
    assert min(only_the_clock) >= NOON


@pytest.mark.parametrize(
    ("clock", "newest", "stood", "ran", "lived", "age"),
    [
        (5, 100, 100, 0, 100, 5),
        (100, 5, 100, 0, 100, 5),
        (100, 100, 5, 0, 100, 5),
        (100, 100, 5, 10, 100, 15),
        (-9, 100, 100, 0, 100, -9),
        (100, 100, 100, 0, 7, 7),
        (100, 100, 100, 2, 7, 9),
    ],
)
def test_the_age_of_a_file_is_what_all_agree_to(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: int,
    newest: int,
    stood: int,
    ran: int,
    lived: int,
    age: int,
) -> None:
    """In days: the clock's, the newest row's, the row's that stood there at the start, and how long this ran since.

    And how long all ran since the file was closed: those before this one for `lived` days.
    """
    ended(tmp_path / "j.db", (NOON, NOON))
    journal = Journal(tmp_path / "j.db")
    journal.append([entry(time=NOON + stood * DAY)], {"lived": b"%d" % (lived * 86400)})
    journal.close()
    journal = Journal(tmp_path / "j.db")
    journal.append([entry(time=NOON + newest * DAY)])
    since = time.monotonic() + ran * 86400
    monkeypatch.setattr(time, "monotonic", lambda: since)
    found = journal.age(journal.closed[0], NOON + clock * DAY)
    assert timedelta(0) <= found - age * DAY < timedelta(minutes=1)
    journal.close()


def test_times_that_no_clock_shows_are_no_reason_not_to_start(tmp_path: Path) -> None:
    """As an earlier version wrote them: such a row makes its file neither older nor younger."""
    for number, micros in enumerate((-(2**63), 2**63 - 1, -62_135_596_800_000_000, 253_402_300_799_999_999)):
        path = tmp_path / f"{number}.db"
        assert len(ended(path, (NOON, NOON), (NOON, NOON))) == 2
        for file in (*closed_files(path), path):
            file.chmod(0o600)
            with closing(sqlite3.connect(file)) as db, db:
                db.execute("UPDATE event SET time = ?", (micros,))
        journal = Journal(path)
        assert [one.ended for one in journal.closed] == [NOON, NOON]
        assert [journal.age(one, NOON + DAY) for one in journal.closed] == [timedelta(0)] * 2
        journal.close()


def damaged(path: Path, how: str) -> None:
    journal = Journal(path)
    journal.append([entry(data=b"x" * 500) for _ in range(200)], {"k": b"v" * 5000})
    journal.close()
    raw = bytearray(path.read_bytes())
    match how:
        case "no database":
            raw[:] = b"2026-11-20 20:00:00 edge.started\n" * 300
        case "cut":
            del raw[8192 + 100 :]
        case "zeroed":
            raw[4096:] = bytes(len(raw) - 4096)
        case "noise":
            raw[4096:] = Random(1).randbytes(len(raw) - 4096)
    path.write_bytes(raw)


@pytest.mark.parametrize("how", ["no database", "cut", "zeroed", "noise"])
def test_a_damaged_file_is_named(tmp_path: Path, how: str) -> None:
    path = tmp_path / "journal.db"
    damaged(path, how)
    with pytest.raises(BadJournal, match=r"journal\.db: .*; "):
        rows(Journal(path))


def test_a_file_damaged_under_way_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(path)
    journal.append([entry(data=b"x" * 2000) for _ in range(100)])
    journal.close()
    journal = Journal(path)
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (path.stat().st_size - 8192))
    with pytest.raises(BadJournal, match=r"journal\.db: .*malformed; move all its files away together and keep them"):
        rows(journal)
    journal.close()


def test_a_row_that_leads_back_to_itself_is_not_sent_for_ever(tmp_path: Path) -> None:
    """The number of row 50 was changed to 49: what is after 49 is asked for, and 49 comes, again and again."""
    path = tmp_path / "journal.db"
    journal = Journal(path)
    journal.append([entry(data=b"x" * 500) for _ in range(100)])
    journal.close()
    raw = path.read_bytes()
    [at] = [key for cell in cells(raw, root_of(path)) if varint(raw, key := varint(raw, cell)[1])[0] == 50]
    journal = Journal(path)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\x31")
    assert [row.n for row in journal.after(0, 49)] == [*range(1, 50)]
    with pytest.raises(BadJournal, match="row 50 or a later one is out of order; run feltd journal verify"):
        journal.after(49, 10)
    journal.close()


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BadJournal, match=r"file/journal\.db: .*; check disk, owner and rights"):
        Journal(tmp_path / "file" / "journal.db")
    with pytest.raises(BadJournal, match="Is a directory; check disk, owner and rights"):
        Journal(tmp_path)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, where tests have them."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.mark.parametrize("what", ["the folder", "the file", "the folder above"])
def test_what_may_not_be_written(what: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        path = folder / "journal.db"
        if what == "the file":
            Journal(path).close()
            path.chmod(0o444)
        if what == "the folder above":
            path = folder / "new" / "journal.db"
        folder.chmod(0o555)
        try:
            with as_nobody(), pytest.raises(BadJournal, match=r"journal\.db: .*; check disk, owner and rights"):
                Journal(path)
        finally:
            folder.chmod(0o755)


# ---- killed

WRITER = """
import random, sys
from datetime import UTC, datetime
from pathlib import Path
from daemon.journal.rows import Entry
from daemon.journal.store import Journal

journal = Journal(Path(sys.argv[1]))
rng = random.Random(int(sys.argv[2]))
now = datetime.now(UTC)
while True:
    batch = [Entry(rng.choice("ab"), "d", "x", now, b"%d" % rng.randrange(10**6)) for _ in range(rng.randint(1, 4))]
    journal.append(batch, {"head": b"%d" % (journal.head + len(batch))})
    sys.stdout.write(f"{journal.head}\\n")
    sys.stdout.flush()
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """After each kill: what was acknowledged, at most one batch more, no gap, the memory of the same instant."""
    path = tmp_path / "journal.db"
    rng = Random(7)
    before: list[Row] = []
    for life in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(life)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            told = [int(writer.stdout.readline()) for _ in range(rng.randint(1, 120))]
            writer.kill()
            told += [int(word) for word in writer.stdout.read().split("\n")[:-1]]
        journal = Journal(path)
        now = rows(journal)
        assert told == sorted(told)
        assert told[-1] <= journal.head <= told[-1] + 4
        assert journal.memory("head") == b"%d" % journal.head
        assert [row.n for row in now] == list(range(1, journal.head + 1))
        for place in "ab":
            assert [row.seq for row in now if row.place == place] == list(range(1, journal.last(place) + 1))
        assert now[: len(before)] == before
        assert len(now) > len(before)
        before = now
        assert verify(path).good
        if life % 3 == 1:
            assert journal.rotate()
        journal.close()


# ---- any order of writing, failing and opening again

PLACES = st.sampled_from(["a", "b", "c"])
MEMORIES = st.dictionaries(st.sampled_from(["k1", "k2"]), st.binary(max_size=4), max_size=2)


class Writing(RuleBasedStateMachine):
    """A journal beside a list and a dictionary."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal.db"
        self.journal = Journal(self.path)
        self.name = self.journal.name
        self.entries: list[Entry] = []
        self.kept: dict[str, bytes] = {}

    @rule(batch=st.lists(st.builds(entry, PLACES, st.binary(max_size=3)), max_size=4), memory=MEMORIES)
    def append(self, batch: list[Entry], memory: dict[str, bytes]) -> None:
        written = self.journal.append(batch, memory)
        assert [(row.place, row.data) for row in written] == [(one.place, one.data) for one in batch]
        self.entries += batch
        self.kept |= memory

    @rule(batch=st.lists(st.builds(entry, PLACES), max_size=2), memory=MEMORIES, naive=st.booleans())
    def fail(self, batch: list[Entry], memory: dict[str, bytes], naive: bool) -> None:
        bad = entry(time=NOON.replace(tzinfo=None)) if naive else entry(data="no bytes")  # type: ignore[arg-type]
        with pytest.raises(TypeError if naive else BadJournal):
            self.journal.append([*batch, bad], memory)

    @rule()
    def rotate(self) -> None:
        anything = self.journal.head > self.journal._after
        assert self.journal.rotate() == anything

    @rule()
    def check(self) -> None:
        report = verify(self.path)
        assert report.good, report
        assert report.rows == len(self.entries)

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self.journal = Journal(self.path)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(0, len(self.entries) + 1))
        assert [row.n for row in self.journal.after(n, 2)] == list(range(n + 1, len(self.entries) + 1))[:2]
        place, first, last = data.draw(PLACES), data.draw(st.integers(0, 5)), data.draw(st.integers(0, 9))
        of_place = [one.data for one in self.entries if one.place == place]
        found = self.journal.range(place, first, last)
        assert [row.data for row in found] == of_place[max(first - 1, 0) : max(last, 0)]
        assert self.journal.oldest(place) == bool(of_place)

    @invariant()
    def they_agree(self) -> None:
        seqs: dict[str, int] = {}
        for row, one in zip(rows(self.journal), self.entries, strict=True):
            seqs[row.place] = seqs.get(row.place, 0) + 1
            assert (row.place, row.data, row.time, row.seq) == (one.place, one.data, one.time, seqs[one.place])
        assert self.journal.head == len(self.entries)
        assert all(self.journal.last(place) == seqs.get(place, 0) for place in "abc")
        assert self.journal.memories("k") == self.kept
        assert self.journal.name == self.name

    def teardown(self) -> None:
        self.journal.close()
        self.folder.cleanup()


TestWriting = Writing.TestCase
TestWriting.settings = settings(max_examples=25, stateful_step_count=20)
