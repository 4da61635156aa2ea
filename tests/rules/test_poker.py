"""Five cards at poker: each hand against an independent account, and exact counts of one deck."""

import random
from collections import Counter
from itertools import combinations, pairwise
from math import comb

import pytest
from hypothesis import given, strategies as st

from rules.games.cards import DECK
from rules.games.poker import CATEGORIES, HEIGHT, category, classes, hands_by_category, leading, packed, strength

# Published, for one deck of 52: they add up to 2 598 960.
PUBLISHED = {
    "royal_flush": 4,
    "straight_flush": 36,
    "four_of_a_kind": 624,
    "full_house": 3_744,
    "flush": 5_108,
    "straight": 10_200,
    "three_of_a_kind": 54_912,
    "two_pairs": 123_552,
    "one_pair": 1_098_240,
    "high_card": 1_302_540,
}


def by_eye(cards: tuple[str, ...]) -> tuple[str, list[int]]:
    """The category, and the heights in the order of comparison, as one reads a hand on the table."""
    heights = sorted((HEIGHT[card[0]] for card in cards), reverse=True)
    suited = len({card[1] for card in cards}) == 1
    if heights == [14, 5, 4, 3, 2]:
        heights = [5, 4, 3, 2, 1]
    groups = sorted(((heights.count(height), height) for height in set(heights)), reverse=True)
    order = [height for often, height in groups for _ in range(often)]
    straight = all(a - b == 1 for a, b in pairwise(heights))
    if straight and suited:
        return ("royal_flush" if heights[0] == 14 else "straight_flush"), order
    if suited:
        return "flush", order
    if straight:
        return "straight", order
    shapes = {
        (4, 1): "four_of_a_kind",
        (3, 2): "full_house",
        (3, 1, 1): "three_of_a_kind",
        (2, 2, 1): "two_pairs",
        (2, 1, 1, 1): "one_pair",
    }
    return shapes.get(tuple(often for often, _ in groups), "high_card"), order


HANDS = st.permutations(DECK).map(lambda deck: tuple(deck[:5]))


@given(HANDS)
def test_a_hand_is_what_it_looks_like(cards: tuple[str, ...]) -> None:
    name, order = by_eye(cards)
    assert category(strength(cards)) == name
    assert strength(cards) == packed(name, order)
    assert leading(strength(cards)) == order[0]


def test_thousands_of_hands_are_what_they_look_like_and_compare_so() -> None:
    rng = random.Random(61)
    before = (0, (0, [0]))
    for _ in range(20_000):
        cards = tuple(rng.sample(DECK, 5))
        name, order = by_eye(cards)
        found, seen = strength(cards), (CATEGORIES.index(name), order)
        assert found == packed(name, order)
        assert (found > before[0]) == (seen > before[1])
        before = (found, seen)


@pytest.mark.parametrize(
    "cards",
    [
        "AS KS QS JS TS",
        "5S 4S 3S 2S AS",
        "AS 2H 3C 4D 5S",
        "AS KH QC JD TS",
        "KS AH 2C 3D 4S",
        "QS KS AS 2S 3S",
        "9S 9H 9C 9D 2S",
        "9S 9H 9C 2D 2S",
        "9S 9H 9C 3D 2S",
        "9S 9H 3C 3D 2S",
        "9S 9H 3C 4D 2S",
        "2S 7H 9C JD KS",
    ],
)
def test_every_kind_of_hand_in_every_order(cards: str) -> None:
    rng = random.Random(cards)
    hand = cards.split()
    name, order = by_eye(tuple(hand))
    for _ in range(20):
        rng.shuffle(hand)
        assert strength(hand) == packed(name, order)


def test_the_hands_of_one_deck_are_counted_exactly() -> None:
    assert dict(hands_by_category()) == PUBLISHED
    assert sum(PUBLISHED.values()) == comb(52, 5) == sum(ways for _, ways in classes())
    assert list(CATEGORIES) == sorted(PUBLISHED, key=lambda name: PUBLISHED[name], reverse=True)


def test_there_are_7462_classes_of_equal_hands() -> None:
    strengths = [found for found, _ in classes()]
    assert len(strengths) == len(set(strengths)) == 7_462


def test_the_counts_are_those_of_hands_dealt_from_a_short_deck() -> None:
    """All hands of the cards from ten up, one by one: 15 504, against the classes that have only these ranks."""
    short = [card for card in DECK if card[0] in "TJQKA"]
    dealt = Counter(strength(hand) for hand in combinations(short, 5))
    high = {found: ways for found, ways in classes() if all((found >> 4 * place & 15) >= 10 for place in range(5))}
    assert dealt == high
    assert sum(dealt.values()) == comb(20, 5)


def test_the_least_hand_of_a_kind_is_packed_with_fewer_heights() -> None:
    least = packed("high_card", (14, 13))
    assert strength(("AS", "KH", "4C", "3D", "2S")) > least > strength(("AS", "QH", "JC", "TD", "9S"))
