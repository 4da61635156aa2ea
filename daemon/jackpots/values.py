"""People's changes of a pool, before and after: the values of an entry. Pure; ledger and orders call it."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from msgspec.structs import asdict

from daemon.jackpots.book import HIDDEN, OF_POOL, OVERFLOW, TRANSFERRED, VISIBLE, Book
from protocols.contract.jackpots import (
    Adjust,
    Change,
    PoolTerms,
    PoolWin,
    Price,
    Prize,
    Reject,
    Reset,
    SetTerms,
    Transfer,
    ValueChange,
)

__all__ = ["of_accounts", "of_terms", "of_win", "proposed"]


def of_accounts(before: Mapping[str, int], postings: Mapping[str, int], unit: int) -> tuple[ValueChange, ...]:
    """The accounts of the pool that postings change; `before` and `postings` in 1/`unit`."""
    return tuple(
        _account(account, Fraction(before.get(account, 0), unit), Fraction(moved, unit))
        for account in (*OF_POOL, TRANSFERRED)
        if (moved := postings.get(account, 0))
    )


def _account(account: str, held: Fraction, moved: Fraction) -> ValueChange:
    return ValueChange(account, str(held), str(held + moved))


def of_win(old: PoolWin, new: PoolWin) -> tuple[ValueChange, ...]:
    """The state and the amount of a win, where they change."""
    both = (("win_state", old.state, new.state), ("win_amount", str(old.amount), str(new.amount)))
    return tuple(ValueChange(*one) for one in both if one[1] != one[2])


def of_terms(old: PoolTerms, new: PoolTerms) -> tuple[ValueChange, ...]:
    """Each term that changes."""
    was, now = dict(_terms(old)), dict(_terms(new))
    both = [(name, was.get(name, ""), now.get(name, "")) for name in dict.fromkeys((*was, *now))]
    return tuple(ValueChange(*one) for one in both if one[1] != one[2])


def _terms(terms: PoolTerms) -> Iterator[tuple[str, str]]:
    for name, value in asdict(terms).items():
        if name in (VISIBLE, HIDDEN):  # accounts have these names, too
            yield f"{name}_rate", str(value)
        elif name != "prizes":
            yield name, str(value)
    for name, prize in terms.prizes.items():
        yield f"prize:{name}", _prize(prize)


def _prize(prize: Prize) -> str:
    match prize.pays:
        case "pool":
            return "pool" if prize.share == "0" else f"pool::{prize.share}"
        case "fixed":
            return f"fixed:{prize.fixed}"
        case _:
            return f"larger:{prize.fixed}:{prize.share}"


def proposed(book: Book, change: Change) -> tuple[ValueChange, ...]:
    """The effect of a change on the present pool."""

    def moved(account: str, amount: Fraction) -> ValueChange:
        return _account(account, Fraction(book.balance(account), book.unit), amount)

    match change:
        case Adjust(account=account, amount=amount):
            return (moved(account, Fraction(amount)),)
        case Reset():
            more = book.terms.seed - Fraction(book.balance(VISIBLE), book.unit)
            return (moved(VISIBLE, more), *((moved(OVERFLOW, -more),) if more < 0 else ()))
        case SetTerms(terms=terms):
            return of_terms(book.terms, terms)
        case Reject(win=name):
            return (ValueChange("win_state", book.win(name).state, "reversed"),)
        case Price(win=name, amount=amount):
            return (ValueChange("win_amount", str(book.win(name).amount), str(amount)),)
        case Transfer():
            held = {account: Fraction(book.balance(account), book.unit) for account in (VISIBLE, HIDDEN, OVERFLOW)}
            given = [moved(account, -amount) for account, amount in held.items() if amount]
            return (*given, moved(TRANSFERRED, sum(held.values(), Fraction())))
