"""The entries of a pool as a table for spreadsheets: a row for each account that an entry moves, with its balance.

Opening rows, entries, closing rows: for each account the opening balance and the amounts add up to the closing balance,
to the last digit. The command line and the console write it, entry by entry. Pure.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from daemon.jackpots.book import (
    HIDDEN,
    HOUSE,
    MARGIN,
    OF_POOL,
    OVERFLOW,
    PAID,
    PENDING,
    PLAYERS,
    TRANSFERRED,
    VISIBLE,
)
from daemon.jackpots.books import exact_units, read_entry
from daemon.journal.rows import Row
from daemon.spreadsheet import harmless
from protocols.contract.jackpots import BookEntry, ValueChange

__all__ = ["BooksTable", "changed_text"]

ACCOUNTS = (PLAYERS, HOUSE, VISIBLE, HIDDEN, OVERFLOW, MARGIN, PENDING, PAID, TRANSFERRED)
MONEY = (*OF_POOL, TRANSFERRED, "win_amount", "seed", "limit", "table_limit")
"""Values that are amounts."""
MOST_PLACES = 9
ROUNDED_PLACES = 6

Cells = tuple[str, ...]


class BooksTable:
    """The table of one pool in a period, written row by row.

    Amounts are in the currency, with as many places as the parts of the bets need. For a rate without a finite decimal,
    such as 3/7, each balance is cut after 6 more places; an amount is the difference of two balances, so the sums
    still agree.
    """

    COLUMNS: ClassVar[Cells] = (
        *("pool", "entry", "time", "type", "account", "amount", "balance", "currency", "table", "round", "seat"),
        *("people", "changed", "reason", "win", "win_amount", "why_zero", "text"),
    )

    def __init__(
        self, pool: str, currency: str, decimals: int, unit: int, since: datetime | None, until: datetime | None
    ) -> None:
        """`unit`: of the last entry of the books; those of all entries before it divide it."""
        more: int = next((n for n in range(MOST_PLACES + 1) if 10**n % unit == 0), ROUNDED_PLACES)
        self._pool, self._currency, self._decimals = pool, currency, decimals
        self._places, self._times = decimals + more, int(10**more)
        self._since, self._until = since, until
        self._held: dict[str, int] = {}
        self._last: int | None = None

    def add_row(self, row: Row) -> Iterator[Cells]:
        """The rows of an entry from the journal. Raises BadBooks."""
        return self.add(row.seq, row.time, row.type, read_entry(row))

    def add(self, number: int, at: datetime, kind: str, entry: BookEntry) -> Iterator[Cells]:
        """The rows of the next entry; before the first one, and after a gap, the balances before it."""
        postings, after = exact_units(entry.postings), exact_units(entry.after)
        if self._last is None or number != self._last + 1:
            if self._last is not None:
                text = f"entries {self._last + 1} to {number - 1} are not here"
                yield self._cells("missing", text=text)
            before = {name: after.get(name, 0) - postings.get(name, 0) for name in (*after, *postings)}
            yield from self._opening(before, entry.unit, number - 1)
        self._last = number
        facts = self._facts(number, at, entry)
        moved = [name for name in postings if postings[name]]
        for name in moved:
            balance = self._scaled(after.get(name, 0), entry.unit)
            amount = balance - self._held.get(name, 0)
            self._held[name] = balance
            sums = {"account": name, "amount": self._decimal(amount), "balance": self._decimal(balance)}
            yield self._cells(kind, **facts, **sums)
        if not moved:
            yield self._cells(kind, **facts)

    def lacks(self, first: int, last: int) -> Iterator[Cells]:
        """A row that names the entries from `first` to `last` that are missing at the end."""
        here = self._last if self._last is not None else first - 1
        if here < last:
            yield self._cells("missing", text=f"entries {here + 1} to {last} are not here")

    def end(self, held: Mapping[str, int], unit: int = 1) -> Iterator[Cells]:
        """The closing rows. `held`: the balances in 1/`unit` where the period has no entry."""
        if self._last is None:
            yield from self._opening(held, unit, 0)
        at = self._until.isoformat() if self._until else ""
        for name in self._names():
            balance = self._decimal(self._held.get(name, 0))
            yield self._cells("closing", entry=str(self._last or ""), time=at, account=name, balance=balance)

    def _opening(self, held: Mapping[str, int], unit: int, number: int) -> Iterator[Cells]:
        self._held = {name: self._scaled(value, unit) for name, value in held.items()}
        at = self._since.isoformat() if self._since and self._last is None else ""
        for name in self._names():
            balance = self._decimal(self._held.get(name, 0))
            yield self._cells("opening", entry=str(number or ""), time=at, account=name, balance=balance)

    def _names(self) -> list[str]:
        return [*ACCOUNTS, *sorted(name for name in self._held if name not in ACCOUNTS)]

    def _facts(self, number: int, at: datetime, entry: BookEntry) -> dict[str, str]:
        win, change = entry.win, entry.change
        return {
            "entry": str(number),
            "time": at.isoformat(),
            "table": entry.table,
            "round": entry.round,
            "seat": str(entry.seat or ""),
            "people": ", ".join(entry.people),
            "changed": "; ".join(changed_text(one, self._decimals) for one in entry.values),
            "reason": change.reason if change is not None else "",
            "win": win.id if win is not None else "",
            "win_amount": self._money(win.amount) if win is not None else "",
            "why_zero": win.why_zero if win is not None else "",
            "text": "" if change is not None and entry.text == change.reason else entry.text,
        }

    def _cells(self, kind: str, **known: str) -> Cells:
        """A row; amounts are numbers, every other cell is text that no spreadsheet executes."""
        known |= {"pool": self._pool, "type": kind, "currency": self._currency}
        numbers = ("amount", "balance", "win_amount")
        return tuple(known.get(name, "") if name in numbers else harmless(known.get(name, "")) for name in self.COLUMNS)

    def _scaled(self, value: int, unit: int) -> int:
        return value * self._times // unit

    def _decimal(self, scaled: int) -> str:
        return f"{Decimal(scaled).scaleb(-self._places):f}"

    def _money(self, minor: int) -> str:
        return f"{Decimal(minor).scaleb(-self._decimals):f}"


def changed_text(one: ValueChange, decimals: int, currency: str = "") -> str:
    """A value before and after, amounts in the currency."""
    old, new = (_value(one.what, text, decimals, currency) for text in (one.old, one.new))
    return f"{one.what}: {old} -> {new}".replace(":  ->", ": ->").rstrip()


def _value(what: str, text: str, decimals: int, currency: str) -> str:
    """Amounts of minor units as decimals; what is below the last place is cut towards zero."""
    if what.startswith("prize:") and text:
        return _prize(text, decimals, currency)
    if what not in MONEY or not text:
        return text
    try:
        amount = Decimal(int(Fraction(text))).scaleb(-decimals)
    except (ValueError, ZeroDivisionError):  # a value of another version
        return text
    return f"{amount:,f} {currency}" if currency else f"{amount:f}"


def _prize(text: str, decimals: int, currency: str) -> str:
    pays, _, rest = text.partition(":")
    fixed, _, share = rest.partition(":")
    amount = _value("seed", fixed, decimals, currency)
    match pays:
        case "pool":
            return f"{share} of the pool" if share else "the pool"
        case "fixed":
            return amount
        case _:
            return f"the larger of {amount} and {share} of the pool"
