"""The money that each round brought a pool and took from it, by the entries of its books. For console and report."""

from collections import OrderedDict
from datetime import datetime

from msgspec import Struct

from protocols.contract.jackpots import BookEntry

__all__ = ["MOVES", "RoundMoney", "add_entry"]

MOVES = ("contributed", "returned", "carried", "won", "reversed")
"""Entries that move money of a round; a win is confirmed and paid long after it."""


class RoundMoney(Struct):
    """One round of a table, in minor units. `last`: the number of its last entry."""

    table: str
    round: str
    at: datetime
    bets: int = 0
    staked: int = 0
    returned: int = 0
    carried: int = 0
    won: int = 0
    last: int = 0


def add_entry(rounds: OrderedDict[str, RoundMoney], kind: str, at: datetime, entry: BookEntry) -> None:
    """Count an entry to its round; the rounds stay in the order of their first entries."""
    if not entry.round or kind not in MOVES:
        return
    one = rounds.get(entry.round)
    if one is None:
        rounds[entry.round] = one = RoundMoney(entry.table, entry.round, at)
    one.at, one.last = at, entry.number
    match kind:
        case "contributed":
            one.bets += 1
            one.staked += entry.amount
        case "returned":
            one.returned += entry.amount
        case "carried":
            one.carried += entry.amount
        case "won":
            one.won += entry.amount
        case "reversed":
            one.won -= entry.amount
        case _:
            pass
