"""Prizes from stakes and odds. Money is integer minor units, odds are fractions; only this module multiplies them."""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from rules.engine.ruleset import Push, Settlement, Wager, Win

Rounding: TypeAlias = Literal["down", "up"]


@lru_cache(maxsize=256)
def odds(pays: str) -> Fraction:
    """The odds "19/20" as a fraction."""
    return Fraction(pays)


def settle(
    wagers: Iterable[Wager],
    winners: Iterable[Win],
    pushes: Iterable[str | Push],
    *,
    chip: int = 1,
    rounding: Rounding = "down",
) -> tuple[Settlement, ...]:
    """The amount returned for each wager, in the order placed: stake and prize, the stake alone, or nothing.

    A win or push that names a seat, or a seat's hand, applies to it alone; without a name it applies to all.

    A prize that the smallest `chip` cannot pay is rounded to it in the house's stated direction, and the exact amount
    (a fraction of minor units, stake included) is added to the settlement. Negative odds are the part of the stake that
    is lost: it is rounded in the same way, and is never more than the stake.
    """
    won = {(win.bet, win.seat, win.hand): win for win in winners}
    back = {(push, 0, 0) if isinstance(push, str) else (push.bet, push.seat, push.hand) for push in pushes}
    settled = []
    for wager in wagers:
        keys = ((wager.bet, wager.seat, wager.hand), (wager.bet, wager.seat, 0), (wager.bet, 0, 0))
        win = next((won[key] for key in keys if key in won), None)
        settled.append(_settled(wager, win, any(key in back for key in keys), chip, rounding))
    return tuple(settled)


def _settled(wager: Wager, win: Win | None, push: bool, chip: int, rounding: Rounding) -> Settlement:
    if win is None:
        return Settlement(wager.seat, wager.bet, wager.amount, wager.amount if push else 0, hand=wager.hand)
    pays = odds(win.pays)
    chips, rest = divmod(pays.numerator * wager.amount, pays.denominator * chip)
    if not rest:
        return Settlement(wager.seat, wager.bet, wager.amount, wager.amount + chips * chip, hand=wager.hand)
    paid = (chips + (1 if rounding == "up" else 0)) * chip
    exact = str(wager.amount + pays * wager.amount)
    return Settlement(wager.seat, wager.bet, wager.amount, max(wager.amount + paid, 0), exact, wager.hand)
