"""Five cards at poker: categories, their order, and how many hands of one deck each has. Shared by the poker games.

This file has only rules that are the same in every text. The treatment of equal hands (suits, shares, a push) is in the
file of the game.

A hand's `strength` is a number: category first, then the ranks in the order in which they are compared (those that
repeat most, then the highest). It is looked up by the sum of five card values, which encodes the number of each rank,
in one of two tables: of cards of one suit, and of others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from math import comb, prod
from typing import Final

from rules.games.cards import DECK

# Lowest first: a category's index is the most significant part of a strength.
CATEGORIES: Final = (
    "high_card",
    "one_pair",
    "two_pairs",
    "three_of_a_kind",
    "straight",
    "flush",
    "full_house",
    "four_of_a_kind",
    "straight_flush",
    "royal_flush",
)
CATEGORY: Final[dict[str, int]] = {name: place for place, name in enumerate(CATEGORIES)}

# Ranks by height: 2 is 2, the ace 14. In A 2 3 4 5 the ace is 1.
HEIGHTS: Final = range(2, 15)
HEIGHT: Final[dict[str, int]] = {rank: height for height, rank in enumerate("23456789TJQKA", 2)}
WHEEL: Final = (14, 5, 4, 3, 2)

_TIMES: Final = 5
"""No rank comes as often as this among five cards of one deck."""


def ranks_of(heights: Iterable[int]) -> int:
    """How often each rank comes, as one integer: a digit for each. It is below 2**30, where Python computes fastest."""
    return sum(_TIMES ** (height - 2) for height in heights)


VALUE: Final[dict[str, int]] = {card: ranks_of([HEIGHT[card[0]]]) for card in DECK}
"""What a card adds to such a number."""


def packed(category: str, heights: Sequence[int]) -> int:
    """The strength of a category with these ranks, in the order of comparison; fewer than five: the least such hand."""
    number = CATEGORY[category]
    for place in range(5):
        number = number << 4 | (heights[place] if place < len(heights) else 0)
    return number


def read(heights: Sequence[int], *, suited: bool, wheel: tuple[int, ...] = WHEEL) -> tuple[str, list[int]]:
    """The category of five ranks, and their order of comparison. `wheel`: the straight in which the ace is lowest."""
    order = sorted(heights, key=lambda height: (heights.count(height), height), reverse=True)
    shape = [heights.count(height) for height in order]
    low = tuple(order) == wheel
    run = shape[0] == 1 and (low or order[0] - order[4] == 4)
    if run:
        order = [*order[1:], order[4] - 1] if low else order
        royal = suited and order[0] == HEIGHT["A"]
        return ("royal_flush" if royal else "straight_flush" if suited else "straight"), order
    if suited:
        return "flush", order
    names = {4: "four_of_a_kind", 3: "full_house" if shape[3] == 2 else "three_of_a_kind", 1: "high_card"}
    names[2] = "two_pairs" if shape[2] == 2 else "one_pair"
    return names[shape[0]], order


def _strength(heights: Sequence[int], *, suited: bool) -> int:
    """The computed strength of five ranks, for the tables."""
    return packed(*read(heights, suited=suited))


_MIXED: Final[dict[int, int]] = {
    ranks_of(heights): _strength(heights, suited=False)
    for heights in combinations_with_replacement(HEIGHTS, 5)
    if heights[0] != heights[4]
}
_SUITED: Final[dict[int, int]] = {
    ranks_of(heights): _strength(heights, suited=True) for heights in combinations(HEIGHTS, 5)
}


TABLES: Final = (_MIXED, _SUITED)
"""The strengths by `ranks_of`: of cards of several suits, of cards of one suit."""


def strength(cards: Sequence[str]) -> int:
    """The strength of five different cards of one deck; hands of equal strength differ only in suits."""
    a, b, c, d, e = cards
    suited = a[1] == b[1] == c[1] == d[1] == e[1]
    return (_SUITED if suited else _MIXED)[VALUE[a] + VALUE[b] + VALUE[c] + VALUE[d] + VALUE[e]]


def category(strength_: int) -> str:
    """The category's name."""
    return CATEGORIES[strength_ >> 20]


def leading(strength_: int) -> int:
    """The height that is compared first: of the four, the three, the (higher) pair, or the highest card."""
    return strength_ >> 16 & 15


def classes() -> Iterator[tuple[int, int]]:
    """Each of the 7462 strengths, with the number of hands of one deck that have it. They add up to 2 598 960.

    A rank that occurs k times can do so in C(4, k) ways; five different ranks can be of one suit in 4 ways.
    """
    for key, found in _MIXED.items():
        times = [key // _TIMES**place % _TIMES for place in range(len(HEIGHTS))]
        ways = prod(comb(4, often) for often in times)
        yield found, ways - 4 if max(times) == 1 else ways
    for found in _SUITED.values():
        yield found, 4


def hands_by_category() -> Mapping[str, int]:
    """How many of the 2 598 960 hands of one deck are of each category: exact, by classes of equal hands."""
    counted = dict.fromkeys(CATEGORIES, 0)
    for found, ways in classes():
        counted[category(found)] += ways
    return counted
