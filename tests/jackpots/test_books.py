"""The books of the pools on disk: what a crash leaves at any line, and what books that do not agree are told by."""

import contextlib
import sqlite3
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from daemon.jackpots import books as books_module
from daemon.jackpots.book import Book, Ended, Seen, Step
from daemon.jackpots.books import BadBooks, Books, check, read_book
from daemon.jackpots.ledger import contribute, end_round, open_round, unbalanced
from daemon.jackpots.orders import obey
from daemon.journal import store as journal_module
from daemon.journal.store import Journal
from daemon.journal.verify import verify
from protocols.contract.jackpots import Adjust, Approve, Confirm, Order, Pay, PoolTerms, Prize, Propose
from protocols.contract.results import Award

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TERMS = PoolTerms(seed=1_000, visible="1/3", hidden="1/70", limit=1_100, prizes={"flush": Prize(50)})
FLUSH = Award("p", "flush", "fixed", "law", "", (1, 2, 3))
POOL = Award("p", "six", "pool", "law", "", (1, 2, 3))
Input = Callable[[Book], Step]


def seen(seq: int, stream: str = "rules/A/t-1") -> Seen:
    return Seen(stream, seq, f"e:t-1:{seq}", NOON + timedelta(seconds=seq))


def inputs() -> list[Input]:
    """A day of a pool: bets, wins, a correction, a void round, a payment, an adjustment."""

    def bet(n: int) -> Input:
        return lambda book: contribute(book, seen(n, "edge/A/t-2"), "t-2", 1, 100 + n)

    def opened(n: int, round_: str) -> Input:
        return lambda book: open_round(book, seen(n), "t-1", round_)

    def end(n: int, ended: Ended) -> Input:
        return lambda book: end_round(book, seen(n), ended)

    def ordered(name: str, order: Order) -> Input:
        return lambda book: obey(book, order, name, NOON)

    return [
        *map(bet, range(1, 5)),
        opened(1, "t-1:1"),
        end(2, Ended("t-1:1", "t-1", (FLUSH,), stakes=((1, 10), (2, 20)))),
        opened(3, "t-1:2"),
        end(4, Ended("t-1:2", "t-1", (POOL,), stakes=((1, 10), (2, 20)))),
        end(5, Ended("t-1:2", "t-1", (FLUSH,), stakes=((1, 10),), corrects="t-1:2")),
        opened(6, "t-1:3"),
        end(7, Ended("t-1:3", "t-1", (), "carried")),
        ordered("o-1", Confirm("ana", "t-1:1/1")),
        ordered("o-2", Pay("rui", "t-1:1/1")),
        ordered("o-3", Propose("ana", Adjust("visible", 5, "x"))),
        ordered("o-4", Approve("rui", "o-3")),
    ]


def live(path: Path, *, batch: int) -> dict[str, Any]:
    """Take up the books, use all inputs in batches, close; the state at the end."""
    journal = Journal(path)
    try:
        books = Books(journal, {"p": TERMS, "q": TERMS}, NOON)
        books.commit()
        for number, step in enumerate(inputs(), 1):
            books.apply(step(books["p"]), f"i-{number}", NOON)
            if number % batch == 0:
                books.commit()
        books.commit()
        return msgspec.structs.asdict(books["p"])
    finally:
        journal.close()


@pytest.fixture(autouse=True)
def short_log() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "_WAL_PAGES", 10)
        yield


@pytest.mark.parametrize("batch", [1, 5])
def test_books_balance_wherever_the_process_is_killed(tmp_path: Path, batch: int) -> None:
    """At every line of the store and the journal: what is on the disk there opens, balances, and reaches the same end
    when all inputs are delivered again."""
    (tmp_path / "j").mkdir()
    disk: list[dict[str, bytes]] = []
    sources = {journal_module.__file__, books_module.__file__}

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        if frame.f_code.co_filename not in sources:
            return None
        if event in ("line", "return"):
            there = {one.name: one.read_bytes() for one in (tmp_path / "j").iterdir() if not one.name.endswith("-shm")}
            if not disk or disk[-1] != there:
                disk.append(there)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        end = live(tmp_path / "j" / "books.db", batch=batch)
    finally:
        sys.settrace(before)
    for number, files in enumerate(disk):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, raw in files.items():
            (folder / name).write_bytes(raw)
        path = folder / "books.db"
        journal = Journal(path)
        opened = Books(journal, {"p": TERMS, "q": TERMS}, NOON)
        assert all(unbalanced(opened[pool]) == "" for pool in opened), number
        journal.close()
        assert live(path, batch=batch) == end, number
        assert verify(path, []).good, number
    assert len(disk) > (25 if batch == 1 else 12), len(disk)


def test_books_are_killed_between_writes_of_one_batch_and_keep_all_or_nothing(tmp_path: Path) -> None:
    """The disk fails at any statement of a commit: nothing of the batch stands, and the next commit takes it all."""
    journal = Journal(tmp_path / "books.db")
    books = Books(journal, {"p": TERMS}, NOON)
    books.commit()
    stood = read_book(journal.memories("book/p/"), "p")
    books.apply(contribute(books["p"], seen(1), "t-1", 1, 100), "e", NOON)
    journal._db.execute("PRAGMA query_only=ON")
    with pytest.raises(Exception, match="nothing was lost"):
        books.commit()
    assert read_book(journal.memories("book/p/"), "p") == stood
    journal._db.execute("PRAGMA query_only=OFF")
    assert [row.type for row in books.commit()] == ["contributed"]
    assert read_book(journal.memories("book/p/"), "p") == books["p"]
    assert books.commit() == []
    journal.close()


def damaged(path: Path, statement: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(statement, values)
        db.commit()


def entries(path: Path) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [
            msgspec.json.decode(one[0]) for one in db.execute("SELECT data FROM event WHERE place='p' ORDER BY seq")
        ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"postings": {"players": "-1", "visible": "2"}}, "entry 4: its postings sum to 1 and not to zero"),
        ({"after": {"visible": "7"}}, "entry 4: its balances sum to 7 and not to zero"),
        ({"postings": {}}, "entry 4: .* is not its previous balance plus its posting"),
        ({"number": 3}, "entry 4: it is numbered 3"),
        ({"unit": 4}, "in which 1/210 is not exact"),
        ({"unit": "x"}, "entry 4 cannot be read"),
    ],
)
def test_an_entry_that_was_changed_is_named(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    path = tmp_path / "books.db"
    live(path, batch=1)
    raw = msgspec.json.encode({**entries(path)[3], **change})
    damaged(path, "UPDATE event SET data=? WHERE place='p' AND seq=4", raw)
    journal = Journal(path)
    with pytest.raises(BadBooks, match=rf"books.db: pool p: .*{text}.*tell the inspector"):
        Books(journal, {"p": TERMS}, NOON)
    journal.close()


@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ("balances", b'{"visible":5}', "the accounts sum to 5"),
        ("balances", b'{"visible":-5,"hidden":5}', "visible is -5"),
        ("balances", b'{"visible":5,"house":-5}', "0 is set aside for wins, but the open wins are 10080"),
        ("unit", b"420", "the open wins are"),
        ("number", b"3", "the state is after entry 3"),
        ("terms", b"{", "cannot be read"),
        ("terms", b'{"seed":1,"visible":"2","hidden":"0"}', "cannot be read"),
    ],
)
def test_a_state_that_was_changed_is_named(tmp_path: Path, part: str, value: bytes, text: str) -> None:
    path = tmp_path / "books.db"
    live(path, batch=1)
    damaged(path, "UPDATE memory SET value=? WHERE key=?", value, f"book/p/{part}")
    journal = Journal(path)
    with pytest.raises(BadBooks, match=f"pool p: .*{text}.*tell the inspector"):
        Books(journal, {"p": TERMS}, NOON)
    journal.close()


def test_a_win_that_was_lost_is_named(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    live(path, batch=1)
    damaged(path, "DELETE FROM memory WHERE key LIKE 'book/p/win/%'")
    journal = Journal(path)
    with pytest.raises(BadBooks, match="is set aside for wins, but the open wins are 0"):
        Books(journal, {"p": TERMS}, NOON)
    journal.close()


def test_entries_without_a_state_are_named(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    live(path, batch=1)
    damaged(path, "DELETE FROM memory WHERE key LIKE 'book/p/%'")
    journal = Journal(path)
    with pytest.raises(BadBooks, match="entries are there, and no state"):
        Books(journal, {"p": TERMS}, NOON)
    journal.close()


def test_amounts_beyond_64_bits_survive(tmp_path: Path) -> None:
    terms = PoolTerms(seed=2**53 - 1, visible="1/999983", hidden="1/999979")
    journal = Journal(tmp_path / "books.db")
    books = Books(journal, {"p": terms}, NOON)
    for number in range(1, 4):
        books.apply(contribute(books["p"], seen(number), "t-1", 1, 2**53 - 1), "e", NOON)
    books.commit()
    stood = books["p"]
    journal.close()
    journal = Journal(tmp_path / "books.db")
    assert Books(journal, {"p": terms}, NOON)["p"] == stood
    assert check(journal.range("p", 1, 9), stood) == ""
    journal.close()


def test_books_go_on_in_the_next_file_of_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    live(path, batch=1)
    journal = Journal(path)
    assert journal.rotate()
    stood = Books(journal, {"p": TERMS}, NOON)["p"]
    journal.close()
    for one in tmp_path.glob("books.0*.db"):  # archived
        one.unlink()
    journal = Journal(path)
    books = Books(journal, {"p": TERMS}, NOON)
    assert books["p"] == stood
    books.apply(contribute(books["p"], seen(99, "edge/A/t-2"), "t-2", 1, 100), "e", NOON)
    books.commit()
    journal.close()
    journal = Journal(path)
    assert Books(journal, {"p": TERMS}, NOON)["p"] == books["p"]
    journal.close()
