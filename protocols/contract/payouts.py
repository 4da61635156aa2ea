"""The order in which the dealer collects lost bets and pays won ones, as the article of the game says it.

Called by the console, which lists the payments of a round. The settlements of Angola's roulettes, French bank and
chemin de fer are in the order of their articles; those of Macau's roulette are in the order of laying, and are put into
the order of its article here. The settlements of all other games are given as they are, without an article.

Angola's roulettes also have each payment called out; the words are given in the language of that text, Portuguese. The
amounts are those of the settlements. The seat is named instead of the colour of the chip, which no event has.
"""

from itertools import groupby
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
    "angola.chemin-de-fer": (f"{_DECREE} art. 12(96)",),
}
_BET_WORDS: Final = {
    "column": "coluna",
    "double_column": "cavalo de coluna",
    "dozen": "dúzia",
    "double_dozen": "cavalo de dúzia",
    "even": "par",
    "odd": "ímpar",
    "low": "menor",
    "high": "maior",
    "red": "encarnado",
    "black": "preto",
    "neighbours": "número e vizinhos",
    "large_series": "série grande",
    "small_series": "série pequena",
    "orphans": "série órfãos",
    "line": "linha",
    "street": "rua",
    "corner": "quadro",
    "split": "cavalo",
    "straight": "pleno",
}
"""The families of Angola's roulettes as arts. 1(27)-(28) and 2(16) name them."""


class Payout(Struct, frozen=True):
    """The settlements in the order in which the dealer takes and pays them; `law` is empty where none is named here.

    `calls`: what the dealer calls out at the payments, in Portuguese, with the article `calls_law`.
    """

    settlements: tuple[Settlement, ...]
    law: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    calls_law: str = ""


def payout_order(result: Result) -> Payout:
    """The settlements of a round in the payer's order. A void round has none: its bets come back."""
    if result.void is not None:
        return Payout(result.settlements)
    if result.ruleset == "macau.roulette":
        text = "30/2003" if result.edition == "2003" else "60/2004"
        return Payout(tuple(sorted(result.settlements, key=_roulette)), (f"Despacho {text} art. 5(1)",))
    law = _IN_ORDER.get(result.ruleset, ())
    paid = [one for one in result.settlements if one.returned > one.stake]
    match result.ruleset:
        case "angola.american-roulette":
            players = groupby(paid, key=lambda one: one.seat)
            calls = tuple(_player_call(seat, tuple(wins)) for seat, wins in players)
            return Payout(result.settlements, law, calls, f"{_DECREE} art. 1(33)")
        case "angola.french-roulette":
            return Payout(result.settlements, law, tuple(map(_bet_call, paid)), f"{_DECREE} art. 2(22)")
        case _:
            return Payout(result.settlements, law)


def _bet_word(one: Settlement) -> str:
    family = one.bet.partition(":")[0]
    return _BET_WORDS.get(family, family)


def _player_call(seat: int, wins: tuple[Settlement, ...]) -> str:
    """The payments of one player together, each with its value."""
    prizes = ", ".join(f"{_bet_word(one)} {one.returned - one.stake}" for one in wins)
    return f"Lugar {seat}: {prizes}; total de {sum(one.returned - one.stake for one in wins)}"


def _bet_call(one: Settlement) -> str:
    """One payment with its bet, value, player and prize, in the sequence that the text prints."""
    return f"{_bet_word(one)} de {one.stake}, lugar {one.seat}, total de {one.returned - one.stake}"


def _roulette(one: Settlement) -> tuple[bool, int]:
    return bool(one.returned), _RANKS.get(one.bet.partition(":")[0], len(ROULETTE)) if one.returned else 0
