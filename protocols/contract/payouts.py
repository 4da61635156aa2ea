"""The order in which the dealer collects lost bets and pays won ones, as the article of the game says it.

Called by the console, which lists the payments of a round. The settlements of Angola's roulettes and French bank stand
in the order of their articles; those of Macau's roulette stand in the order in which the bets were laid, and are put
into the order of its article here. The other texts print no order: their settlements are listed as they stand.
"""

from typing import Final

from msgspec import Struct

from protocols.contract.results import Result, Settlement

ROULETTE: Final = (
    ("column", "dozen"),
    ("sector_a", "sector_b", "nine"),
    ("even", "odd", "low", "high", "red", "black"),
    ("line",),
    ("street",),
    ("corner",),
    ("split",),
    ("straight",),
)
"""Despacho 60/2004 and 30/2003, art. 5(1): lost bets are collected, then these are paid one after the other."""
_RANKS: Final = {family: rank for rank, families in enumerate(ROULETTE) for family in families}
_DECREE: Final = "Decreto Executivo 261/22"
_IN_ORDER: Final = {
    "angola.american-roulette": (f"{_DECREE} art. 1(32)-(33)",),
    "angola.french-roulette": (f"{_DECREE} art. 2(20)-(21)",),
    "angola.french-bank": (f"{_DECREE} art. 3(11)", f"{_DECREE} art. 3(14)"),
}


class Payout(Struct, frozen=True):
    """The settlements in the order in which the dealer takes and pays them; `law` is empty where no article says it."""

    settlements: tuple[Settlement, ...]
    law: tuple[str, ...] = ()


def payout_order(result: Result) -> Payout:
    """The settlements of a round in the payer's order. A void round has none: its bets come back."""
    if result.void is not None:
        return Payout(result.settlements)
    if result.ruleset == "macau.roulette":
        text = "30/2003" if result.edition == "2003" else "60/2004"
        return Payout(tuple(sorted(result.settlements, key=_roulette)), (f"Despacho {text} art. 5(1)",))
    return Payout(result.settlements, _IN_ORDER.get(result.ruleset, ()))


def _roulette(one: Settlement) -> tuple[bool, int]:
    return bool(one.returned), _RANKS.get(one.bet.partition(":")[0], len(ROULETTE)) if one.returned else 0
