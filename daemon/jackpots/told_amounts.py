"""The amount of a win that a device told, beside what the books have for it. Pure; the ledger calls it."""

from msgspec.structs import replace

from daemon.jackpots.book import Book, RoundBook
from protocols.contract.jackpots import PoolTerms, PoolWin, Prize

__all__ = ["as_told", "terms_of", "why_unpriced"]


def terms_of(terms: PoolTerms, known: RoundBook) -> PoolTerms:
    """With the amount that a device told, where the terms have none."""
    if known.reported < 0:
        return terms
    told = {one.combination: Prize(known.reported) for one in known.awards}
    return replace(terms, prizes={**told, **terms.prizes})


def as_told(known: RoundBook, wins: tuple[PoolWin, ...]) -> tuple[tuple[PoolWin, ...], str]:
    """A win that a device told: a whole pool as it was shown there; where the amounts differ two people price it."""
    if not known.told or len(wins) != 1:
        return wins, ""
    (win,) = wins
    if win.whole and known.told == known.shown <= win.amount:
        shares = tuple((seat, known.told) for seat in win.award.among)
        return (replace(win, amount=known.told, shares=shares),), ""
    if known.told == win.amount:
        return wins, ""
    sent = known.shown or "nothing"
    text = f"the device reports {known.told}, {sent} was sent to it, and the books have {win.amount}"
    return (replace(win, unpriced=True),), text


def why_unpriced(book: Book, win: PoolWin) -> str:
    """Why a win has no amount yet."""
    known = book.rounds.get(win.round)
    differ = "" if known is None else as_told(known, (win,))[1]
    return differ or f"the terms have no amount for {win.award.combination}"
