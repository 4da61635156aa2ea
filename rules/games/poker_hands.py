"""Hands at poker where players play each other: Angola's hold'em, Omaha and synthetic poker. Pure.

`Ranking.best` takes a player's own cards and the common cards, and gives the strength of the best five that the text
allows. Equal strengths share the pot: suits decide nothing.

Readings of Decreto Executivo 261/22:

- 13(17)(j), 13(18)(d): the highest card is named alone; all five are compared in turn.
- 14(1), 16(1): the ace is the lowest card of a straight of either kind below the 2, in synthetic poker below the 8.
- 16(9): a flush is above a full house; hands of court cards rank between three of a kind and two pairs.
- 16(11)(b): five cards of four ranks "without pairs" do not exist: exactly one pair is meant, compared card by card.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from typing import Final

from msgspec import Struct

from rules.games.cards import DECK, SUITS
from rules.games.poker import CATEGORIES, HEIGHT, TABLES, VALUE, ranks_of, read

SYNTHETIC_CATEGORIES: Final = (
    "high_card",
    "one_pair",
    "two_pairs",
    "court_cards",
    "court_pairs",
    "three_of_a_kind",
    "straight",
    "full_house",
    "flush",
    "four_of_a_kind",
    "straight_flush",
    "royal_flush",
)
"""Art. 16(9), the lowest first."""
SYNTHETIC_DECK: Final = tuple(card for card in DECK if card[0] in "AKQJT98")
"""Art. 16(1)."""
SYNTHETIC_WHEEL: Final = (14, 11, 10, 9, 8)
_HEIGHTS: Final = range(HEIGHT["8"], HEIGHT["A"] + 1)
_COMMON: Final = 3
"""How many common cards of one suit a flush has at least."""
_CATEGORY: Final = {name: place for place, name in enumerate(SYNTHETIC_CATEGORIES)}


def _synthetic(heights: Sequence[int], *, suited: bool) -> int:
    """The strength of five ranks by art. 16(9)-(11), packed as in `rules/games/poker.py`."""
    name, order = read(heights, suited=suited, wheel=SYNTHETIC_WHEEL)
    if min(heights) >= HEIGHT["J"] and name == "two_pairs":
        name = "court_pairs"
    elif min(heights) >= HEIGHT["J"] and name == "one_pair":
        name, order = "court_cards", sorted(heights, reverse=True)
    number = _CATEGORY[name]
    for height in order:
        number = number << 4 | height
    return number


_MIXED: Final[dict[int, int]] = {
    ranks_of(heights): _synthetic(heights, suited=False)
    for heights in combinations_with_replacement(_HEIGHTS, 5)
    if heights[0] != heights[4]
}
_SUITED: Final[dict[int, int]] = {
    ranks_of(heights): _synthetic(heights, suited=True) for heights in combinations(_HEIGHTS, 5)
}


class Ranking(Struct, frozen=True):
    """The hands of one game and their order. `own`: the number of own cards among the five; 0: any number."""

    deck: frozenset[str]
    categories: tuple[str, ...]
    cards: int
    own: int
    tables: tuple[Mapping[int, int], Mapping[int, int]] = TABLES

    def category(self, strength_: int) -> str:
        """The category's name."""
        return self.categories[strength_ >> 20]

    def best(self, own: Sequence[str], board: Sequence[str]) -> int:
        """The strength of the best five cards that the text lets a player choose. At most two of them are own cards."""
        return self.strengths({0: own}, board)[0]

    def strengths(self, hands: Mapping[int, Sequence[str]], board: Sequence[str]) -> dict[int, int]:
        """The strength of the best five cards of each hand, with the same common cards."""
        mixed, suited = self.tables
        suits = [card[1] for card in board]
        flush = max(SUITS, key=suits.count)
        common = self._sums(board)
        of_suit = self._sums([card for card in board if card[1] == flush]) if suits.count(flush) >= _COMMON else []
        found = {}
        for seat, own in hands.items():
            strengths = [mixed[total] for total in _totals(own, common)]
            if of_suit:  # of one suit a hand is stronger than its ranks are otherwise
                strengths += [suited[total] for total in _totals([card for card in own if card[1] == flush], of_suit)]
            found[seat] = max(strengths)
        return found

    def _sums(self, board: Sequence[str]) -> list[tuple[int, list[int]]]:
        """For each number of own cards that the text allows: what the common cards add to them."""
        counts = (self.own,) if self.own else range(self.cards + 1)
        values = [VALUE[card] for card in board]
        return [(count, [*map(sum, combinations(values, 5 - count))]) for count in counts]


def _totals(own: Sequence[str], common: Sequence[tuple[int, list[int]]]) -> list[int]:
    """The sums of five cards that a player may choose."""
    mine = [VALUE[card] for card in own]
    return [some + rest for count, sums in common for some in map(sum, combinations(mine, count)) for rest in sums]


HOLDEM: Final = Ranking(frozenset(DECK), CATEGORIES, cards=2, own=0)
"""Art. 15(2), 15(3): any five of seven."""
OMAHA: Final = Ranking(frozenset(DECK), CATEGORIES, cards=4, own=2)
"""Art. 14(2), 14(6): two of four own cards, three common ones."""
SYNTHETIC: Final = Ranking(frozenset(SYNTHETIC_DECK), SYNTHETIC_CATEGORIES, cards=2, own=2, tables=(_MIXED, _SUITED))
"""Art. 16(2), 16(3): both own cards, three common ones."""
