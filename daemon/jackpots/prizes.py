"""The prizes of one round's combinations: amounts, equal shares, and matching wins of two results. Pure."""

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from msgspec.structs import replace

from protocols.contract.jackpots import PoolTerms, PoolWin, WhyZero
from protocols.contract.results import Award
from protocols.contract.topics import EARLIEST

__all__ = ["decide", "equal_shares", "gross", "matched", "takes_all"]


def decide(terms: PoolTerms, base: int, awards: Sequence[Award]) -> tuple[PoolWin, ...]:
    """The wins for the awards of one round, in their order, from a pool of `base` minor units.

    A share is a part of the pool before the round, less the prizes of the combination in `after`. `pool` without a
    share is the rest of the pool after the earlier prizes. Equal shares are whole minor units: the odd coins stay in
    the pool, or go to the first seats.
    """
    spent: dict[str, int] = {}
    left = base
    wins = []
    for award in awards:
        prize = terms.prize(award.jackpot, award.combination)
        fixed = prize.fixed if prize is not None else 0
        share = int(Fraction(award.share or "0") * max(base - spent.get(award.after, 0), 0))
        match award.pays:
            case "pool":
                amount = share if award.share else left
            case "fixed":
                amount = fixed
            case "larger_of_fixed_and_share":
                amount = max(fixed, share)
            case _:  # a new kind of award needs a case here
                assert_never(award.pays)
        whole = takes_all(award)
        why = _why_zero(award, amount, base - spent.get(award.after, 0) if award.share else left, base)
        unpriced = award.pays != "pool" and prize is None
        shares, odd = equal_shares(amount, award.among, terms.odd)
        if award.among and terms.odd == "pool":
            amount -= odd
            why = why or ("more_seats_than_coins" if odd and not amount else "")
        spent[award.combination] = spent.get(award.combination, 0) + amount
        left = max(left - amount, 0)
        by_dealer = bool(award.among and award.law) and not (whole or unpriced) and 0 < amount <= terms.table_limit
        win = PoolWin("", "", "", EARLIEST, award, amount, shares=shares, odd=odd, unpriced=unpriced, whole=whole)
        wins.append(replace(win, at_table=by_dealer, why_zero="" if unpriced else why))
    return tuple(wins)


def _why_zero(award: Award, amount: int, there: int, base: int) -> WhyZero:
    """Why an award wins nothing, as a code; "" where it wins. `there`: the part of the pool that is left for it."""
    if amount:
        return ""
    if award.pays == "fixed":
        return "set_to_zero"
    if base <= 0:
        return "pool_empty"
    return "earlier_prize" if there <= 0 else "below_a_coin"


def equal_shares(amount: int, seats: Sequence[int], odd: str) -> tuple[tuple[tuple[int, int], ...], int]:
    """Equal shares in whole minor units, and the number of odd coins; `odd` "first" adds those to the first shares."""
    if not seats:
        return (), 0
    each, rest = divmod(amount, len(seats))
    first = rest if odd == "first" else 0
    return tuple((seat, each + (place < first)) for place, seat in enumerate(seats)), rest


def takes_all(award: Award) -> bool:
    """Whether the prize is the whole pool, or what is left of it."""
    return award.share == "1" or (award.pays == "pool" and not award.share)


def matched(
    terms: PoolTerms,
    bases: tuple[int, int],
    before: Sequence[Award],
    mine: Sequence[PoolWin],
    awards: Sequence[Award],
) -> tuple[list[PoolWin], list[PoolWin]]:
    """The earlier wins that a corrected result contains with the same amount, and the wins that are new in it.

    Each result is decided with the same terms and with the pool at its own time, from `bases`. Later changes of a win
    (new terms, its price, its odd coins) therefore do not matter.
    """
    was = list(decide(terms, bases[0], before))
    left: list[tuple[PoolWin, int]] = []
    for win in mine:
        decided = next((one for one in was if one.award == win.award), None)
        if decided is not None:
            was.remove(decided)
        left.append((win, gross(decided or win, terms)))
    kept, added = [], []
    for one in decide(terms, bases[1], awards):
        same = next((had for had in left if had[1] == gross(one, terms) and _names(had[0], one.award)), None)
        if same is None:
            added.append(one)
        else:
            left.remove(same)
            kept.append(same[0])
    return kept, added


def gross(win: PoolWin, terms: PoolTerms) -> int:
    """The prize including the odd coins that stay in the pool."""
    return win.amount + (win.odd if win.award.among and terms.odd == "pool" else 0)


def _names(win: PoolWin, award: Award) -> bool:
    """Whether `award` is that of the win. A person may have entered the seats of the win later."""
    seats = tuple(sorted(seat for seat, _ in win.shares))
    named = replace(win.award, among=award.among)
    return win.award == award or (not win.award.among and award == named and seats == tuple(sorted(award.among)))
