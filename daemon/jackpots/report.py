"""Reads pools and their books for people and programs, while the process runs and without a right to write."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon.config.model import Jackpot
from daemon.jackpots.book import OPEN, Book
from daemon.jackpots.books import BadBooks, check, read_book, read_entry
from daemon.jackpots.books_table import changed_text
from daemon.jackpots.ledger import open_wins
from daemon.jackpots.rounds import MOVES, RoundMoney, add_entry
from daemon.jackpots.values import proposed
from daemon.journal.reader import Files
from daemon.journal.rows import Row, row_of
from protocols.contract.jackpots import PoolWin, Prize, ValueChange

__all__ = ["Pool", "pool_json", "pool_text", "read_pools"]

ZERO = {
    "pool_empty": "the pool was paid to an earlier winner, and it begins without a seed",
    "earlier_prize": "the prizes of this round that are paid first took the pool",
    "below_a_coin": "its share of the pool is less than one coin",
    "more_seats_than_coins": "more seats share it than it has coins",
    "set_to_zero": "the amount is set to 0",
}
"""Why a win has the amount 0."""
WINS = 25
CHUNK = 2_000
MOST_ROWS = 1_000_000
"""Entries that are searched for rounds at most."""


class Pool(Struct, frozen=True):
    """A pool with its books, and its last entries and rounds, the newest first.

    `wrong`: why its books contradict themselves; "" where they do not.
    """

    jackpot: Jackpot
    book: Book
    entries: tuple[Row, ...]
    wrong: str
    rounds: tuple[RoundMoney, ...] = ()


def read_pools(
    path: Path, jackpots: Sequence[Jackpot], entries: int, *, all_checked: bool, rounds: int = 0
) -> list[Pool]:
    """The pools whose books have begun. `all_checked`: compare all entries, not only the last ones.

    Raises BadBooks, sqlite3.Error or OSError.
    """
    found = []
    with Files(path) as files:
        memory = dict(files.live.execute("SELECT key, value FROM memory WHERE key LIKE 'book/%'"))
        for jackpot in jackpots:
            book = read_book(memory, jackpot.name)
            if book is None:
                continue
            most = 2**31 if all_checked else max(entries, WINS)
            rows = [row_of(one[:9]) for one in files.newest(most, "place = ?", jackpot.name)]
            rows = [row for row in rows if row.seq <= book.number]  # written since the state was read
            whole = bool(rows) and rows[0].seq == book.number
            wrong = check(rows[::-1], book if whole else None)
            try:
                last = _last_rounds(files, book, rounds)
            except BadBooks as error:
                last, wrong = (), wrong or str(error)
            found.append(Pool(jackpot, book, tuple(rows[:entries]), wrong, last))
    return found


def _last_rounds(files: Files, book: Book, most: int) -> tuple[RoundMoney, ...]:
    """The last rounds, the newest first. One more than requested is read, so that the oldest one is complete.

    Raises BadBooks where an entry cannot be read.
    """
    rows: list[Row] = []
    names: set[str] = set()
    below = book.number + 1
    while most and len(names) <= most and len(rows) < MOST_ROWS:
        chunk = [row_of(one[:9]) for one in files.newest(CHUNK, "place = ? AND seq < ?", book.pool, below)]
        if not chunk:
            break
        rows += chunk
        below = chunk[-1].seq
        names |= {read_entry(row).round for row in chunk if row.type in MOVES} - {""}
    found: OrderedDict[str, RoundMoney] = OrderedDict()
    for row in reversed(rows):
        add_entry(found, row.type, row.time, read_entry(row))
    return tuple(reversed(found.values()))[:most]


def _with_the_last(book: Book) -> list[PoolWin]:
    """All wins that wait, then the last that are over."""
    return [*open_wins(book), *[win for win in book.wins if win.state not in OPEN][-WINS:]]


def _amount(pool: Pool, minor: int) -> str:
    """The amount in the currency, with all decimals."""
    return f"{Decimal(minor).scaleb(-pool.jackpot.decimals):,.{pool.jackpot.decimals}f} {pool.jackpot.currency}"


def pool_text(pool: Pool, *, wins: bool) -> str:
    """The pool as text for people."""
    book, jackpot = pool.book, pool.jackpot
    lines = [f"{jackpot.name}  {_amount(pool, book.amount)}  tables {', '.join(jackpot.tables)}"]
    lines.append(
        f"  books       {pool.wrong or 'balance'}; {book.number} entries since {book.began:%Y-%m-%d %H:%M} UTC"
    )
    terms = book.terms
    limit = f", limit {_amount(pool, terms.limit)}" if terms.limit else ""
    lines.append(f"  terms       seed {_amount(pool, terms.seed)}{limit}; of each bet {terms.visible} to the pool,")
    lines.append(f"              {terms.hidden} to the reserve; begins again {terms.reseed}; odd coins {terms.odd}")
    lines += [f"    {name:24} {_prize(pool, one)}" for name, one in terms.prizes.items()]
    lines.append(f"              wins within {terms.simultaneous_s} s: {terms.simultaneous}")
    if terms.table_limit:
        lines.append(f"              paid at the table by the dealer up to {_amount(pool, terms.table_limit)}")
    for account in sorted(book.balances):
        whole, rest = divmod(book.balance(account), book.unit)
        exact = f" + {rest}/{book.unit} of a minor unit" if rest else ""
        lines.append(f"  {account:24} {_amount(pool, whole):>24}{exact}")
    waiting = open_wins(book)
    if waiting:
        amount = _amount(pool, sum(one.amount for one in waiting))
        oldest = len(waiting) > WINS and not wins
        lines.append(f"  {len(waiting)} wins wait, {amount}" + (f"; the oldest {WINS}:" if oldest else ""))
    for win in _with_the_last(book) if wins else waiting[:WINS]:
        seats = ", ".join(f"seat {seat} {_amount(pool, amount)}" for seat, amount in win.shares) or "seats not known"
        people = " and ".join(one for one in (win.confirmed_by, win.paid_by) if one)
        lines.append(f"  win {win.id}  {win.state}  {_amount(pool, win.amount)}  {win.award.combination}")
        lines.append(f"      {win.at:%Y-%m-%d %H:%M:%S} UTC  {seats}" + (f"  by {people}" if people else ""))
        if win.why_zero:
            lines.append(f"      {ZERO[win.why_zero]}")
        if win.odd:
            lines.append(f"      odd coins {_amount(pool, win.odd)}, to the {terms.odd}")
    for one in book.proposals:
        tag = one.change.__struct_config__.tag
        lines.append(f"  waits for a second person: {one.id} by {one.person}: {tag}: {one.change.reason}")
        lines += [f"      {_changed(pool, value)}" for value in proposed(book, one.change)]
    for money in pool.rounds:
        parts = [f"{money.bets} bets {_amount(pool, money.staked)}"]
        if money.returned:
            parts.append(f"returned {_amount(pool, money.returned)}")
        if money.carried:
            parts.append(f"carried {_amount(pool, money.carried)}")
        if money.won:
            parts.append(f"won {_amount(pool, money.won)}")
        lines.append(f"  round {money.round}  {money.at:%Y-%m-%d %H:%M:%S} UTC  {', '.join(parts)}")
    for row in pool.entries:
        lines += _entry_lines(pool, row)
    return "\n".join(lines)


def _entry_lines(pool: Pool, row: Row) -> list[str]:
    """The lines of an entry: amounts, people, and each value before and after."""
    at = f"  {row.seq:8} {row.time:%Y-%m-%d %H:%M:%S} {row.type:12}"
    try:
        entry = read_entry(row)
    except BadBooks as error:
        return [f"{at} {error}"]
    moved = ", ".join(f"{account} {change}" for account, change in entry.postings.items())
    people = f"by {' and '.join(entry.people)}" if entry.people else ""
    said = " ".join(one for one in (entry.table, entry.round, entry.text, people) if one)
    lines = [f"{at} {moved or '-'}  {said}".rstrip()]
    lines += [f"           {_changed(pool, value)}" for value in entry.values]
    if entry.win is not None and entry.win.why_zero:
        lines.append(f"           {ZERO[entry.win.why_zero]}")
    return lines


def _changed(pool: Pool, value: ValueChange) -> str:
    return changed_text(value, pool.jackpot.decimals, pool.jackpot.currency)


def _prize(pool: Pool, prize: Prize) -> str:
    match prize.pays:
        case "pool":
            return "the whole pool" if prize.share == "0" else f"{prize.share} of the pool"
        case "fixed":
            return _amount(pool, prize.fixed)
        case _:
            return f"the larger of {_amount(pool, prize.fixed)} and {prize.share} of the pool"


def pool_json(pool: Pool, *, wins: bool) -> dict[str, Any]:
    """The pool for programs; balances in 1/`unit` of a minor unit, as text."""
    book = pool.book
    return {
        "pool": book.pool,
        "amount": book.amount,
        "currency": pool.jackpot.currency,
        "decimals": pool.jackpot.decimals,
        "tables": pool.jackpot.tables,
        "signs": pool.jackpot.signs,
        "machines": pool.jackpot.machines,
        "began": book.began.isoformat(),
        "wrong": pool.wrong,
        "entries": book.number,
        "unit": book.unit,
        "balances": {account: str(value) for account, value in book.balances.items()},
        "terms": msgspec.to_builtins(book.terms),
        "waiting": len(open_wins(book)),
        "wins": msgspec.to_builtins(_with_the_last(book) if wins else open_wins(book)),
        "proposals": msgspec.to_builtins(book.proposals),
        "rounds": msgspec.to_builtins(pool.rounds),
        "last": [
            {"seq": row.seq, "type": row.type, "time": row.time.isoformat(), "cause": row.cause, **_fields(row)}
            for row in pool.entries
        ],
    }


def _fields(row: Row) -> dict[str, Any]:
    """The fields of an entry; why it cannot be read, under `unreadable`."""
    try:
        read_entry(row)
    except BadBooks as error:
        return {"unreadable": str(error)}
    fields: dict[str, Any] = json.loads(row.data)
    return fields
