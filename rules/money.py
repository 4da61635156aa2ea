"""Money is integer minor units, odds are fractions; they meet here and nowhere else."""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from rules.ruleset import Settlement, Wager, Win

Rounding: TypeAlias = Literal["down", "up"]


@lru_cache(maxsize=256)
def odds(pays: str) -> Fraction:
    """ "19/20" as the fraction it is."""
    return Fraction(pays)


def settle(
    wagers: Iterable[Wager],
    winners: Iterable[Win],
    pushes: Iterable[str],
    *,
    chip: int = 1,
    rounding: Rounding = "down",
) -> tuple[Settlement, ...]:
    """What each wager brings back, in the order placed: stake and prize, the stake alone, or nothing.

    A prize that the smallest `chip` cannot pay is rounded to it in the house's stated direction, and the exact amount
    (a fraction of minor units, stake included) stands beside it.
    """
    won = {win.bet: win for win in winners}
    back = frozenset(pushes)
    return tuple(_settled(wager, won.get(wager.bet), wager.bet in back, chip, rounding) for wager in wagers)


def _settled(wager: Wager, win: Win | None, push: bool, chip: int, rounding: Rounding) -> Settlement:
    if win is None:
        return Settlement(wager.seat, wager.bet, wager.amount, wager.amount if push else 0)
    prize = odds(win.pays) * wager.amount
    chips, rest = divmod(prize, chip)
    if not rest:
        return Settlement(wager.seat, wager.bet, wager.amount, wager.amount + int(prize))
    paid = (chips + (1 if rounding == "up" else 0)) * chip
    return Settlement(wager.seat, wager.bet, wager.amount, wager.amount + int(paid), str(wager.amount + prize))
