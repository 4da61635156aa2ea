"""Reads pools and their books for people and programs, beside the running process and without a right to write."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon.config.model import Jackpot
from daemon.jackpots.books import check, read_book
from daemon.jackpots.ledger import OPEN, Book
from daemon.journal.reader import Files
from daemon.journal.rows import Row, row_of

__all__ = ["Pool", "pool_json", "pool_text", "read_pools"]

WINS = 25


class Pool(Struct, frozen=True):
    """A pool as its books stand, its last entries, the newest first, and why its books do not agree ("": they do)."""

    jackpot: Jackpot
    book: Book
    entries: tuple[Row, ...]
    wrong: str


def read_pools(path: Path, jackpots: Sequence[Jackpot], entries: int, *, all_checked: bool) -> list[Pool]:
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
            found.append(Pool(jackpot, book, tuple(rows[:entries]), wrong))
    return found


def _amount(pool: Pool, minor: int) -> str:
    """In the currency, with all decimals."""
    return f"{Decimal(minor).scaleb(-pool.jackpot.decimals):,.{pool.jackpot.decimals}f} {pool.jackpot.currency}"


def pool_text(pool: Pool, *, wins: bool) -> str:
    """For a person to read."""
    book, jackpot = pool.book, pool.jackpot
    lines = [f"{jackpot.name}  {_amount(pool, book.amount)}  tables {', '.join(jackpot.tables)}"]
    lines.append(
        f"  books       {pool.wrong or 'balance'}; {book.number} entries since {book.began:%Y-%m-%d %H:%M} UTC"
    )
    terms = book.terms
    limit = f", limit {_amount(pool, terms.limit)}" if terms.limit else ""
    lines.append(f"  terms       seed {_amount(pool, terms.seed)}{limit}; of each bet {terms.visible} to the pool,")
    lines.append(f"              {terms.hidden} to the reserve; begins again {terms.reseed}; odd coins {terms.odd}")
    lines.append(f"              wins within {terms.simultaneous_s} s: {terms.simultaneous}")
    for account in sorted(book.balances):
        whole, rest = divmod(book.balance(account), book.unit)
        exact = f" + {rest}/{book.unit} of a minor unit" if rest else ""
        lines.append(f"  {account:24} {_amount(pool, whole):>24}{exact}")
    shown = [one for one in book.wins if wins or one.state in OPEN][-WINS if wins else 0 :]
    for win in shown:
        seats = ", ".join(f"seat {seat} {_amount(pool, amount)}" for seat, amount in win.shares) or "seats not known"
        people = " and ".join(one for one in (win.confirmed_by, win.paid_by) if one)
        lines.append(f"  win {win.id}  {win.state}  {_amount(pool, win.amount)}  {win.award.combination}")
        lines.append(f"      {win.at:%Y-%m-%d %H:%M:%S} UTC  {seats}" + (f"  by {people}" if people else ""))
        if win.odd:
            lines.append(f"      odd coins {_amount(pool, win.odd)}, to the {terms.odd}")
    for one in book.proposals:
        change = msgspec.json.encode(one.change).decode()
        lines.append(f"  waits for a second person: {one.id} by {one.person}: {change}")
    for row in pool.entries:
        entry = msgspec.json.decode(row.data)
        moved = ", ".join(f"{account} {change}" for account, change in entry.get("postings", {}).items())
        said = " ".join(str(entry[key]) for key in ("table", "round", "text") if entry.get(key))
        lines.append(f"  {row.seq:8} {row.time:%Y-%m-%d %H:%M:%S} {row.type:12} {moved or '-'}  {said}".rstrip())
    return "\n".join(lines)


def pool_json(pool: Pool, *, wins: bool) -> dict[str, Any]:
    """The same for a program; balances in 1/`unit` of a minor unit, as text."""
    book = pool.book
    return {
        "pool": book.pool,
        "amount": book.amount,
        "currency": pool.jackpot.currency,
        "decimals": pool.jackpot.decimals,
        "tables": pool.jackpot.tables,
        "wrong": pool.wrong,
        "entries": book.number,
        "unit": book.unit,
        "balances": {account: str(value) for account, value in book.balances.items()},
        "terms": msgspec.to_builtins(book.terms),
        "wins": msgspec.to_builtins([one for one in book.wins if wins or one.state in OPEN][-WINS if wins else 0 :]),
        "proposals": msgspec.to_builtins(book.proposals),
        "last": [
            {"seq": row.seq, "type": row.type, "time": row.time.isoformat(), "cause": row.cause, **json.loads(row.data)}
            for row in pool.entries
        ],
    }
