"""The log beside a journal: what was changed in it is found and starts nothing, what a power cut tore is neither."""

import re
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from helpers import PATIENCE, at_length
from hypothesis import example, given, settings, strategies as st

from daemon.config.model import Keeping
from daemon.journal import store as journal_module, wal as wal_module
from daemon.journal.retention import take_up
from daemon.journal.store import BadJournal, Journal
from daemon.journal.verify import verify, verify_recent
from daemon.journal.wal import Log, changed_log, log_broken
from tests.journal.test_inspection import entries, keys

SECTOR = 512
FRAME = 24 + 4096


@pytest.fixture(autouse=True, scope="module")
def log_of_some_length() -> Iterator[None]:
    """Long enough for all that a test writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "_WAL_PAGES", 300)
        yield


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def left(journal: Journal, folder: Path) -> Path:
    """What a process leaves that is killed now: file, log and what else is beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in journal.path.parent.glob(f"{journal.path.name}*"):
        if not one.name.endswith("-shm"):
            shutil.copy(one, folder)
    return folder / journal.path.name


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Sixty rows and six signatures, all of them in the log."""
    journal = Journal(tmp_path / "lived" / "journal.db")
    journal.signed_by(keys(tmp_path), 10)
    for n in range(0, 60, 5):
        journal.append(entries(5, n), {"outbox": b"%d" % n})
    path = left(journal, tmp_path / "left")
    journal.close()
    return path


def flip(path: Path, at: int, bit: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        [byte] = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ bit]))


def frames(log: Path) -> list[tuple[int, int]]:
    """Of each frame of this round of the log where it begins, and the size of the file after its transaction."""
    raw = log.read_bytes()
    starts = range(32, len(raw) - FRAME + 1, FRAME)
    return [(at, int.from_bytes(raw[at + 4 : at + 8], "big")) for at in starts if raw[at + 8 : at + 16] == raw[16:24]]


def commits(log: Path) -> list[int]:
    """Where the last frame of each transaction begins."""
    return [at for at, size in frames(log) if size]


def test_a_log_as_it_was_written_starts(killed: Path) -> None:
    assert verify(killed, [keys(killed.parent.parent).public]).signatures == 6
    journal = Journal(killed)
    assert journal.head == 60
    journal.close()


# ---- changed

# Of a frame: page, size after its transaction, both salts, both sums, and the page itself.
PLACES = {"page": 3, "commit": 7, "salt": 8, "salt 2": 15, "sum": 16, "sum 2": 23, "first": 24, "last": FRAME - 1}


@pytest.mark.parametrize("place", PLACES)
def test_a_changed_byte_of_the_log_is_found_and_starts_nothing(killed: Path, place: str) -> None:
    """SQLite takes the log to end there: the rows behind it were gone, and their numbers were given again."""
    log = log_of(killed)
    at = frames(log)[4][0]
    flip(log, at + PLACES[place])
    was = log.read_bytes()
    for look in (verify, verify_recent):
        [finding, *_] = look(killed).findings
        assert finding.file == str(log)
        assert f"from byte {at} on" in finding.text
        assert not finding.about_key
    with pytest.raises(BadJournal, match=rf"journal\.db-wal: from byte {at} on.*; .*\n.*nothing was started.*`mv "):
        Journal(killed)
    assert log.read_bytes() == was  # it is what there is to look into


@pytest.mark.parametrize("at", range(32))
def test_a_changed_head_of_the_log_is_found_and_starts_nothing(killed: Path, at: int) -> None:
    flip(log_of(killed), at, 0x80)
    assert "from byte 0 on" in verify(killed).findings[0].text
    with pytest.raises(BadJournal, match="from byte 0 on"):
        Journal(killed)


def test_a_log_whose_file_is_gone_starts_nothing(killed: Path) -> None:
    """SQLite deletes it, and a new journal was begun. However long it is, it is looked at in pieces."""
    killed.rename(killed.with_name("aside"))
    was = log_of(killed).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", None)
        with pytest.raises(BadJournal, match=r"journal\.db: there is no such file, and its log is there; "):
            Journal(killed)
    assert log_of(killed).read_bytes() == was
    assert not killed.exists()
    killed.with_name("aside").rename(killed)
    Journal(killed).close()


@pytest.mark.parametrize("how", ["deleted", "cut", "zeros"])
def test_a_log_that_lost_what_was_signed_is_found_and_starts_nothing(tmp_path: Path, how: str) -> None:
    """Half of the rows were written back. What the log held shows nowhere but in the last checkpoint, noted beside."""
    journal = Journal(tmp_path / "lived" / "journal.db")
    journal.signed_by(keys(tmp_path), 10)
    journal.append(entries(30))
    journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for n in range(30, 60):
        journal.append(entries(1, n))
    assert not journal.sign()  # all is
    path = left(journal, tmp_path / "left")
    journal.close()
    assert verify(path).rows == 60
    raw = log_of(path).read_bytes()
    if how == "deleted":
        log_of(path).unlink()
    else:
        log_of(path).write_bytes(raw[: 32 + 3 * FRAME].ljust(len(raw) if how == "zeros" else 0, b"\0"))
    for look in (verify, verify_recent):
        [finding] = look(path, [keys(tmp_path).public]).findings
        assert (finding.file, finding.n) == (str(path), 60)
        text = r"its end is missing: checkpoint 4 was made after row 60 \(from journal\.db-signed\)"
        assert re.match(text, finding.text)
    journal = Journal(path)
    with pytest.raises(BadJournal, match="end is missing: checkpoint 4 was made after row 60"):
        take_up(journal, Keeping(key=str(tmp_path / "key.pem")))
    journal.close()


@pytest.fixture(scope="module")
def whole() -> Iterator[tuple[Path, bytes, bytes]]:
    """A log of many transactions, of one frame and of several; the file and its log as they were left."""
    with tempfile.TemporaryDirectory() as name:
        journal = Journal(Path(name) / "lived" / "journal.db")
        for n in range(20):
            journal.append(entries(1 + 60 * (n % 3 == 1), journal.head), {"k": bytes(5000 * (n % 4 == 1))})
        path = left(journal, Path(name) / "left")
        journal.close()
        yield path, path.read_bytes(), log_of(path).read_bytes()


def head(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT max(n) FROM event").fetchone()[0])


@given(data=st.data(), bit=st.integers(0, 7))
@settings(max_examples=at_length(40, 1500))
def test_any_flipped_bit_before_the_last_transaction_is_found(
    whole: tuple[Path, bytes, bytes], data: st.DataObject, bit: int
) -> None:
    """But for the mark of a commit that only the last transaction follows: that is one torn transaction, then."""
    path, _, log = whole
    log_of(path).write_bytes(log)
    *_, before, last = commits(log_of(path))
    assert frames(log_of(path))[-1][0] == last
    at = data.draw(st.integers(0, before + FRAME - 1).filter(lambda at: not before + 4 <= at < before + 8))
    flip(log_of(path), at, 1 << bit)
    start = (at - 32) // FRAME * FRAME + 32 if at >= 32 else 0
    assert f"from byte {start} on" in verify(path).findings[0].text


@given(first=st.integers(0, 19), count=st.integers(1, 6), seed=st.integers(0, 9))
@settings(max_examples=at_length(20, 600))
def test_a_lost_frame_before_the_last_transaction_is_found(
    whole: tuple[Path, bytes, bytes], first: int, count: int, seed: int
) -> None:
    """Zeros or noise over some of them, as a disk may give back; up to the mark of the commit before the last."""
    path, _, log = whole
    log_of(path).write_bytes(log)
    before = commits(log_of(path))[-2]
    at = min(32 + first * FRAME, before - FRAME)
    end = min(at + count * FRAME, before)
    noise = Random(seed).randbytes(end - at) if seed else bytes(end - at)
    log_of(path).write_bytes(log[:at] + noise + log[end:])
    assert f"from byte {at} on" in verify(path).findings[0].text


def test_a_log_with_sums_of_the_other_kind(whole: tuple[Path, bytes, bytes]) -> None:
    """As a computer writes it that begins numbers with the large end; SQLite reads both."""
    path, _, log = whole
    log_of(path).write_bytes(log)
    rows, starts, raw, sums = head(path), [at for at, _ in frames(log_of(path))], bytearray(log), (0, 0)
    raw[3] |= 1
    for at in (0, *starts):
        data = raw[:24] if not at else raw[at : at + 8] + raw[at + 24 : at + FRAME]
        for word in range(0, len(data), 8):
            a, b = (int.from_bytes(data[one : one + 4], "big") for one in (word, word + 4))
            one = (sums[0] + a + sums[1]) % 2**32
            sums = one, (sums[1] + b + one) % 2**32
        end = at + 24 if at else 32
        raw[end - 8 : end] = b"".join(one.to_bytes(4, "big") for one in sums)
    log_of(path).write_bytes(raw)
    assert head(path) == rows
    assert verify(path).good
    flip(log_of(path), starts[50] + 100)
    assert head(path) < rows
    assert f"from byte {starts[50]} on" in verify(path).findings[0].text
    log_of(path).write_bytes(log)


# ---- torn


def tear(before: bytes, after: bytes, kept: int) -> bytes:
    """Of what the last write changed, each sector is there or not: one bit of `kept` for each."""
    old = before.ljust(len(after), b"\0")
    torn = bytearray(after)
    for at in range(0, len(after), SECTOR):
        if after[at : at + SECTOR] != old[at : at + SECTOR]:
            if not kept & 1:
                torn[at : at + SECTOR] = old[at : at + SECTOR]
            kept >>= 1
    return bytes(torn)


def write(journal: Journal, large: int) -> None:
    """Of one frame or of many."""
    journal.append(entries(1 + 40 * large, journal.head), {"k": bytes(3000 * large)})


@pytest.fixture(scope="module", params=["zeros behind it", "an earlier round behind it", "at the beginning of a round"])
def torn(request: pytest.FixtureRequest) -> Iterator[tuple[Path, bytes, bytes, bytes, int]]:
    """File, log before the last transaction and after it, and how many rows were told to be durable."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "_WAL_PAGES", 60)
        journal = Journal(Path(name) / "lived" / "journal.db")
        log, again = log_of(journal.path), request.param != "zeros behind it"
        salts = log.read_bytes()[16:24]
        while again and log.read_bytes()[16:24] == salts:
            write(journal, 1)
        for _ in range(0 if "beginning" in request.param else 3):
            write(journal, 0)
        path = left(journal, Path(name) / "left")
        told, before = journal.head, log.read_bytes()
        write(journal, 3)
        after = log.read_bytes()
        journal.close()
        assert after[:32] == before[:32]
        yield path, path.read_bytes(), before, after, told


@given(kept=st.integers(0, 2**80 - 1))
@settings(max_examples=at_length(30, 1200))
def test_what_a_power_cut_tore_is_no_finding(torn: tuple[Path, bytes, bytes, bytes, int], kept: int) -> None:
    path, file, before, after, told = torn
    path.write_bytes(file)
    log_of(path).write_bytes(tear(before, after, kept))
    assert verify(path).good
    assert head(path) >= told


@given(kept=st.integers(0, 2**80 - 1))
@settings(max_examples=at_length(8, 200))
def test_what_a_power_cut_tore_starts(torn: tuple[Path, bytes, bytes, bytes, int], kept: int) -> None:
    path, file, before, after, told = torn
    path.write_bytes(file)
    log_of(path).write_bytes(tear(before, after, kept))
    journal = Journal(path)
    assert journal.head >= told
    journal.close()


@given(seed=st.integers(0, 2**32))
@example(seed=10425491)  # an old mark of a commit in a sector of its own, before the sums of the new frame
@settings(max_examples=at_length(5, 150))
def test_power_cuts_one_after_the_other_are_no_finding(seed: int) -> None:
    """Behind the end of the log stands what several of them tore, with the salts of this round."""
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "_WAL_PAGES", 60)
        path, told = Path(name) / "0" / "journal.db", 0
        for life in range(1, 8):
            journal = Journal(path)
            assert journal.head >= told
            for _ in range(rng.randrange(4)):
                write(journal, rng.choice((0, 0, 1)))
            told = journal.head
            # What is written back to the file itself was in the log before.
            journal._db.execute("PRAGMA wal_autocheckpoint=0")
            before = log_of(path).read_bytes()
            write(journal, rng.choice((0, 2, 4)))
            after = log_of(path).read_bytes()
            path = left(journal, Path(name) / str(life))
            journal.close()
            if after[:32] == before[:32]:
                log_of(path).write_bytes(tear(before, after, rng.getrandbits(200)))
            assert verify(path).good


def test_a_log_that_is_written_is_looked_at_without_a_false_alarm(tmp_path: Path) -> None:
    """It grows, and it begins again, while it is read."""
    path = tmp_path / "journal.db"
    enough, began = threading.Event(), threading.Event()

    def body() -> None:
        writer = Journal(path)
        began.set()
        while not enough.is_set():
            write(writer, writer.head % 3)
        writer.close()

    thread = threading.Thread(target=body)
    thread.start()
    try:
        assert began.wait(PATIENCE)
        rounds = set()
        for _ in range(60):
            assert changed_log(path) == ""
            rounds.add(log_of(path).read_bytes()[12:24])
    finally:
        enough.set()
        thread.join()
    assert len(rounds) > 1
    assert verify(path).good


def test_what_is_just_being_written_is_looked_at_again(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer is through with it by then."""
    log = log_of(killed)
    at = frames(log)[4][0]
    flip(log, at + 500)
    looks: list[int | None] = []

    def looked(raw: Log) -> int | None:
        looks.append(log_broken(raw))
        if len(looks) == 1:
            flip(log, at + 500)
        return looks[-1]

    monkeypatch.setattr(wal_module, "log_broken", looked)
    assert changed_log(killed) == ""
    assert looks == [at, None]


class Pieces:
    """A log that remembers the longest piece that was asked for."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.longest = 0

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, part: slice, /) -> bytes:
        piece = self.raw[part]
        self.longest = max(self.longest, len(piece))
        return piece


@pytest.mark.parametrize("where", [None, 0, 30, 300, 700])
def test_a_log_that_a_reader_held_for_long_is_never_whole_in_memory(tmp_path: Path, where: int | None) -> None:
    """It grows past all bounds until he is gone: who is started then has little memory, and looks at all of it."""
    journal = Journal(tmp_path / "journal.db")
    with closing(sqlite3.connect(tmp_path / "journal.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event").fetchone()
        for n in range(300):
            journal.append(entries(1, n), {"outbox": b"%d" % n})
        raw = log_of(journal.path).read_bytes()
    journal.close()
    assert len(raw) > 800 * FRAME
    if where is not None:
        at = 32 + where * FRAME + 700 if where else 20
        raw = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
    pieces = Pieces(raw)
    assert log_broken(pieces) == (None if where is None else 32 + where * FRAME if where else 0)
    assert pieces.longest <= 256 * FRAME


@pytest.mark.parametrize("step", [FRAME, 8192, 1_000_003])
def test_log_grows_beside_commits_and_is_gone_with_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """A thread appends zeros while rows are written: no byte of a row is lost, and no log is left behind."""
    monkeypatch.setattr(journal_module, "_WAL_PAGES", 300)
    monkeypatch.setattr(wal_module, "_STEP", step)
    monkeypatch.setattr(wal_module, "_PAUSE_S", 0.0)
    journal = Journal(tmp_path / "j.db")
    growing = [one for one in threading.enumerate() if one.name == "journal log"]
    for n in range(0, 200, 2):
        journal.append(entries(2, n))
    left_behind = left(journal, tmp_path / "left")
    for one in growing:
        one.join(PATIENCE)
    assert log_of(journal.path).stat().st_size >= 300 * FRAME
    assert verify(journal.path).good
    with closing(Journal(left_behind)) as again:
        take_up(again, Keeping())
        assert again.head == 200
    journal.close()
    assert not log_of(journal.path).exists()
    assert verify(journal.path).good


def test_log_of_a_closed_journal_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_WAL_PAGES", 300)
    monkeypatch.setattr(wal_module, "_STEP", FRAME)
    monkeypatch.setattr(wal_module, "_PAUSE_S", 0.0)
    journal = Journal(tmp_path / "j.db")
    growing = [one for one in threading.enumerate() if one.name == "journal log"]
    journal.append(entries(3))
    journal.close()
    for one in growing:
        one.join(PATIENCE)
        assert not one.is_alive()
    assert not log_of(journal.path).exists()
