"""The books of all pools on disk: entries are rows of a journal, chained by hash; the state is in its memory.

One transaction holds the entries of a batch, the books after them and the numbers up to which inputs were used. After
a crash the books are either before the batch or after it, and unused inputs are requested again. `check` compares each
entry with the one before and the last one with the state; contradictory books are not opened.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, get_type_hints

import msgspec
from msgspec.structs import fields

from daemon.jackpots.book import Book, Refused, Step
from daemon.jackpots.ledger import begin, unbalanced, unwritable
from daemon.journal.findings import UNDECODABLE
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from protocols.contract.jackpots import BookEntry, PoolTerms, PoolWin

__all__ = ["BadBooks", "Books", "check", "compared", "exact_units", "read_book", "read_entry"]

CHECKED = 10_000
"""Entries of a pool that are compared when the books are opened; `feltd jackpot --check` compares all."""
DEVICE = "jackpot"
BETS = ("contributed", "returned", "carried")
"""Kinds of entries that change neither terms nor wins."""
REMEDY = "pay nothing from this pool: keep the journal as it is and tell the inspector; run `feltd journal verify`"
_KINDS = get_type_hints(Book)
_FIELDS = tuple(one.name for one in fields(Book) if one.name not in ("rounds", "wins"))
"""Parts of a book, each written when it changed; the rounds of each table and each win separately, as they are its
bulk.
"""


class BadBooks(Exception):
    """The books of a pool contradict themselves. The message names the place and the remedy."""


def read_book(memory: Mapping[str, bytes], pool: str) -> Book | None:
    """The state of a pool as it was written; None before its first entry. Raises BadBooks."""
    parts = {name: memory.get(_key(pool, name)) for name in _FIELDS}
    if all(part is None for part in parts.values()):
        return None
    try:
        values = {name: msgspec.convert(json.loads(part or b""), _KINDS[name]) for name, part in parts.items()}
        values["balances"] = _folded(values["balances"])
        wins = [*_wins_of_one_field(memory, pool), *(_win(part) for part in _under(memory, _key(pool, "win/")))]
        values["wins"] = tuple(sorted(wins, key=lambda one: one.entry))
        values["rounds"] = {
            name: round_
            for part in _under(memory, _key(pool, "rounds/"))
            for name, round_ in msgspec.convert(json.loads(part), _KINDS["rounds"]).items()
        }
    except (ValueError, RecursionError) as error:  # msgspec's, json's and Unicode's errors are ValueErrors
        raise BadBooks(f"pool {pool}: its state cannot be read: {error}; {REMEDY}") from error
    return Book(**values)


def _under(memory: Mapping[str, bytes], prefix: str) -> Iterator[bytes]:
    return (part for key, part in memory.items() if key.startswith(prefix))


def _win(part: bytes) -> PoolWin:
    return msgspec.json.decode(part, type=PoolWin)


def _wins_of_one_field(memory: Mapping[str, bytes], pool: str) -> list[PoolWin]:
    """The wins in the format of older versions; the first commit of other wins replaces it."""
    part = memory.get(_key(pool, "wins"))
    return msgspec.json.decode(part, type=list[PoolWin]) if part else []


def _folded(units: Mapping[str, int]) -> dict[str, int]:
    """The balances of an entry; older entries have an account for each win that waits."""
    found: dict[str, int] = {}
    for account, value in units.items():
        name = account.partition(":")[0]
        found[name] = found.get(name, 0) + value
    return found


def read_entry(row: Row) -> BookEntry:
    """The entry in a row. Raises BadBooks."""
    try:
        return msgspec.json.decode(row.data, type=BookEntry)
    except UNDECODABLE as error:
        raise BadBooks(f"entry {row.seq} cannot be read: {error}") from error


def check(rows: Sequence[Row], book: Book | None = None) -> str:
    """Why consecutive entries of one pool, or the state after them, do not agree; "" where they do."""
    before: BookEntry | None = None
    for row in rows:
        try:
            entry = read_entry(row)
        except BadBooks as error:
            return str(error)
        if found := compared(before, entry, row.seq):
            return f"entry {row.seq}: {found}"
        before = entry
    if book is None:
        return ""
    if said := unbalanced(book):
        return said
    if before is None:  # its files were archived
        return ""
    if (before.number, exact_units(before.after)) != (book.number, book.balances):
        return f"the state is after entry {book.number} and not as entry {before.number} left it"
    return ""


def compared(before: BookEntry | None, entry: BookEntry, seq: int) -> str:
    """Why an entry contradicts itself or the one before; "" where it does not."""
    postings, after = exact_units(entry.postings), exact_units(entry.after)
    if entry.number != seq:
        return f"it is numbered {entry.number}"
    if total := sum(postings.values()):
        return f"its postings sum to {total} and not to zero"
    if total := sum(after.values()):
        return f"its balances sum to {total} and not to zero"
    if before is None:
        return ""
    if entry.unit % before.unit:
        return f"it counts in 1/{entry.unit}, in which 1/{before.unit} is not exact"
    was = {account: value * (entry.unit // before.unit) for account, value in exact_units(before.after).items()}
    for account in was.keys() | postings.keys() | after.keys():
        if was.get(account, 0) + postings.get(account, 0) != after.get(account, 0):
            return f"{account} is not its previous balance plus its posting"
    return ""


def exact_units(units: Mapping[str, str]) -> dict[str, int]:
    """The balances or postings of an entry by account."""
    return _folded({account: int(value) for account, value in units.items()})


def _key(pool: str, name: str) -> str:
    return f"book/{pool}/{name}"


def _win_key(pool: str, win: str) -> str:
    return _key(pool, f"win/{win}")


class Books:
    """The pools of one process. `apply` changes them in memory, `commit` makes it durable."""

    def __init__(self, journal: Journal, pools: Mapping[str, PoolTerms], at: datetime) -> None:
        """Continue each pool from the journal; a new one begins `at` this time. Raises BadBooks, BadJournal."""
        self.journal = journal
        self._books: dict[str, Book] = {}
        self._written: dict[str, Book] = {}
        self._entries: list[Entry] = []
        for pool, terms in pools.items():
            book = read_book(journal.memories(f"book/{pool}/"), pool)
            last = journal.last(pool)
            if book is None and last:
                raise BadBooks(f"{journal.path}: pool {pool}: {last} entries are there, and no state; {REMEDY}")
            if book is None:
                self.apply(begin(pool, terms, at), "", at)
                continue
            if book.number != last:
                said = f"the state is after entry {book.number}, and {last} entries are there"
                raise BadBooks(f"{journal.path}: pool {pool}: {said}; {REMEDY}")
            if said := check(journal.range(pool, max(last - CHECKED + 1, 1), last), book):
                raise BadBooks(f"{journal.path}: pool {pool}: {said}; {REMEDY}")
            self._books[pool] = self._written[pool] = book

    def __getitem__(self, pool: str) -> Book:
        """The present book of the pool, with changes that are not durable yet."""
        return self._books[pool]

    def __iter__(self) -> Iterator[str]:
        """The names of the pools."""
        return iter(self._books)

    @staticmethod
    def refuse(step: Step) -> None:
        """Raises Refused where a step would break the books. Bets are skipped: each was checked when it was posted."""
        if any(kind not in BETS for kind, _ in step[1]) and (said := unwritable(step)):
            raise Refused(f"pool {step[0].pool}: it would break the books: {said}")

    def apply(self, step: Step, cause: str, at: datetime) -> None:
        """Take over the next book of a pool; `cause` is the id of its input.

        Raises Refused, and changes nothing, if the books could not be opened again with it.
        """
        self.refuse(step)
        book, entries = step
        self._books[book.pool] = book
        self._entries += [
            Entry(book.pool, DEVICE, kind, at, msgspec.json.encode(entry), cause=cause) for kind, entry in entries
        ]

    def commit(self, more: Mapping[str, bytes] | None = None, *, idle: bool = True) -> list[Row]:
        """Write all changes in one transaction; `more` goes with them. Raises BadJournal.

        Changes without an entry are written only if `idle`: after a crash their inputs give the same again.
        """
        if not (self._entries or idle):
            return []
        memory: dict[str, bytes | None] = {}
        for pool, book in self._books.items():
            before = self._written.get(pool)
            if book is before:
                continue
            written = {} if before is None else _parts(before)
            for key, value in _parts(book).items():
                if key not in written or value != written[key]:
                    memory[key] = msgspec.json.encode(value)
            if before is None or book.wins is not before.wins:
                memory |= self._changed_wins(book)
        if not memory and not self._entries:
            return []
        rows = self.journal.append(self._entries, {**memory, **(more or {})})
        self._entries = []
        self._written = dict(self._books)
        return rows

    def _changed_wins(self, book: Book) -> dict[str, bytes | None]:
        """Each win that changed since the last commit, and None for those that are no longer kept."""
        before = self._written.get(book.pool)
        was = {one.id: one for one in before.wins} if before is not None else {}
        now = {one.id: one for one in book.wins}
        changed = [one for name, one in now.items() if was.get(name) is not one]
        written: dict[str, bytes | None] = {_win_key(book.pool, one.id): msgspec.json.encode(one) for one in changed}
        written |= {_win_key(book.pool, name): None for name in was if name not in now}
        if self.journal.memory(_key(book.pool, "wins")) is not None:
            written |= {_win_key(book.pool, one.id): msgspec.json.encode(one) for one in book.wins}
            written[_key(book.pool, "wins")] = None
        return written


def _parts(book: Book) -> dict[str, Any]:
    """The stored parts of a book, by key."""
    parts = {_key(book.pool, name): getattr(book, name) for name in _FIELDS}
    for name, round_ in book.rounds.items():
        parts.setdefault(_key(book.pool, f"rounds/{round_.table}"), {})[name] = round_
    return parts
