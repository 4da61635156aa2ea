"""The amount of a win that a device reported, compared with the books. Pure; the ledger calls it."""

from msgspec.structs import replace

from daemon.jackpots.book import Book, RoundBook
from protocols.contract.jackpots import PoolTerms, PoolWin, Prize
from protocols.contract.reasons import Reason, say

__all__ = ["as_reported", "terms_of", "why_unpriced"]


def terms_of(terms: PoolTerms, known: RoundBook) -> PoolTerms:
    """The terms with the amount that a device reported, where they have none."""
    if known.reported < 0:
        return terms
    told = {one.combination: Prize(known.reported) for one in known.awards}
    return replace(terms, prizes={**told, **terms.prizes})


def as_reported(known: RoundBook, wins: tuple[PoolWin, ...]) -> tuple[tuple[PoolWin, ...], str]:
    """A win of a whole pool gets the amount that the device reported, if that was sent to the device.

    Otherwise, if the amounts differ, two people price the win; the text names the difference.
    """
    if not known.told or len(wins) != 1:
        return wins, ""
    (win,) = wins
    if win.whole and known.told == known.shown <= win.amount:
        shares = tuple((seat, known.told) for seat in win.award.among)
        return (replace(win, amount=known.told, shares=shares),), ""
    if known.told == win.amount:
        return wins, ""
    text = f"the device reports {known.told}, {_sent(known)} was sent to it, and the books have {win.amount}"
    return (replace(win, unpriced=True),), text


def _sent(known: RoundBook) -> int | str:
    return known.shown or "nothing"


def why_unpriced(book: Book, win: PoolWin) -> Reason:
    """Why a win has no amount yet, for the alert `jackpot.unpriced`."""
    known = book.rounds.get(win.round)
    if known is not None and as_reported(known, (win,))[1]:
        return say("device", win=win.id, amount=known.told, shown=_sent(known), held=win.amount)
    return say("text", win=win.id, combination=win.award.combination)
