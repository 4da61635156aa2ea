"""Thousands of small wins that wait: no entry or document grows with them, and a restart reads each of them once."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from daemon.jackpots.book import Ended, Seen
from daemon.jackpots.books import CHECKED, Books
from daemon.jackpots.ledger import end_round, level_of, open_wins
from daemon.jackpots.orders import obey
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from protocols.contract.jackpots import Confirm, Pay, PoolTerms, Prize
from protocols.contract.results import Award

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TERMS = PoolTerms(1_000_000, "3/200", "1/200", prizes={"single_pair": Prize(1_000)})
PAIR = Award("A", "single_pair", "fixed", "art. 17(8)", "", (2, 5))
MANY = 5_000


@contextmanager
def books_in(folder: Path) -> Iterator[Books]:
    """The books of one pool in a journal, closed at the end."""
    journal = Journal(folder / "books.db")
    try:
        yield Books(journal, {"red": TERMS}, NOON)
    finally:
        journal.close()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Books in which MANY wins wait."""
    folder = tmp_path_factory.mktemp("many")
    with books_in(folder) as books:
        for number in range(1, MANY + 1):
            win(books, number)
            if number % 100 == 0:
                books.commit()
    return folder


def win(books: Books, number: int) -> None:
    """A coup with a pair ends."""
    seen = Seen("rules/A/t-1", number, f"e:t-1:{number}/0", NOON + timedelta(seconds=10 * number))
    ended = Ended(f"t-1:{number}", "t-1", (PAIR,), stakes=((2, 1_000), (5, 1_000)), until=number)
    books.apply(end_round(books["red"], seen, ended), "c", seen.at)


def test_an_entry_does_not_grow_with_the_wins_that_wait(many: Path) -> None:
    with books_in(many) as books:
        rows = list(books.journal.after(0, 1_000_000))
        assert [one.state for one in books["red"].wins] == ["pending"] * MANY
        assert max(len(row.data) for row in rows) < 1_000
        pairs = [row for row in rows if row.type == "won"]
        assert len(pairs[-1].data) - len(pairs[10].data) < 50  # longer numbers


def test_the_level_counts_the_wins_that_it_does_not_show(many: Path) -> None:
    with books_in(many) as books:
        level = level_of(books["red"], "MOP", 2, NOON)
        assert (level.waiting, level.set_aside, len(level.pending)) == (MANY, str(1_000 * MANY), 10)
        assert len(msgspec.json.encode(level)) < 4_000
        assert [one.win for one in level.pending] == [f"t-1:{number}/1" for number in range(1, 11)]


def test_a_restart_reads_each_waiting_win_once(many: Path) -> None:
    """Counted: the bytes of the entries that are compared, and of the state."""
    with books_in(many) as books:
        journal, book = books.journal, books["red"]
        compared = journal.range("red", max(book.number - CHECKED + 1, 1), book.number)
        assert sum(len(row.data) for row in compared) < CHECKED * 1_000
        state = journal.memories("book/red/")
        assert sum(map(len, state.values())) < 500 * MANY
        assert sum("/win/" in key for key in state) == MANY


def test_one_more_win_writes_itself_alone(many: Path) -> None:
    """Counted: the bytes that its transaction writes."""
    with books_in(many) as books:
        append, written = books.journal.append, list[Mapping[str, bytes | None]]()

        def counted(entries: Iterable[Entry], memory: Mapping[str, bytes | None] | None = None) -> list[Row]:
            written.append(memory or {})
            return append(entries, memory)

        books.journal.append = counted  # type: ignore[method-assign]
        number = books["red"].heard["rules/A/t-1"] + 1
        win(books, number)
        books.commit()
        assert sum(len(value or b"") for memory in written for value in memory.values()) < 10_000
        assert open_wins(books["red"])[-1].id == f"t-1:{number}/1"


def test_a_closed_win_is_forgotten_in_the_journal_too(tmp_path: Path) -> None:
    with books_in(tmp_path) as books:
        for number in range(1, 61):
            win(books, number)
            books.apply(obey(books["red"], Confirm("ana", f"t-1:{number}/1"), f"c{number}", NOON), "c", NOON)
            books.apply(obey(books["red"], Pay("rui", f"t-1:{number}/1"), f"p{number}", NOON), "p", NOON)
            books.commit()
        kept = {one.id for one in books["red"].wins}
        assert len(kept) == 25
        written = {key.partition("/win/")[2] for key in books.journal.memories("book/red/win/")}
        assert written == kept
    with books_in(tmp_path) as books:
        assert {one.id for one in books["red"].wins} == kept


def test_books_of_an_older_program_are_taken_up(tmp_path: Path) -> None:
    """It had an account for each win that waited, and all wins in one field."""
    with books_in(tmp_path) as books:
        for number in range(1, 4):
            win(books, number)
        books.commit()
        book = books["red"]
        older = {**book.balances, **{f"pending:{one.id}": one.amount * book.unit for one in book.wins}}
        del older["pending"]
        older_wins = msgspec.to_builtins(book.wins)
        for one in older_wins:
            del one["entry"]
        memory: dict[str, bytes | None] = {f"book/red/win/{one.id}": None for one in book.wins}
        memory["book/red/wins"] = msgspec.json.encode(older_wins)
        memory["book/red/balances"] = msgspec.json.encode(older)
        books.journal.append([], memory)
    with books_in(tmp_path) as books:
        assert books["red"].balances == book.balances
        assert [one.id for one in books["red"].wins] == [one.id for one in book.wins]
        win(books, 4)
        books.commit()
    with books_in(tmp_path) as books:
        assert [one.id for one in open_wins(books["red"])] == [f"t-1:{number}/1" for number in range(1, 5)]
        assert books.journal.memory("book/red/wins") is None
