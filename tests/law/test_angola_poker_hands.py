"""Hands of Angola's poker without a bank: against PokerKit where the rules agree, else against a table written here."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib import import_module
from itertools import combinations, pairwise
from math import comb
from typing import Any

import pytest
from helpers import at_length

from rules.games.cards import DECK
from rules.games.poker import CATEGORIES, HEIGHT
from rules.games.poker_hands import HOLDEM, OMAHA, SYNTHETIC, SYNTHETIC_DECK, Ranking

pokerkit: Any = import_module("pokerkit")
LAW = ("angola.holdem", "angola.omaha", "angola.synthetic-poker")
LOOKUP = pokerkit.StandardLookup()
CARDS = {card: next(iter(pokerkit.Card.parse(card[0] + card[1].lower()))) for card in DECK}

# Of 28 cards: C(28, 5) = 98 280. Straights: A89TJ, 89TJQ, 9TJQK, TJQKA.
SYNTHETIC_COUNTS = {
    "royal_flush": 4,
    "straight_flush": 3 * 4,
    "four_of_a_kind": 7 * 24,
    "flush": (comb(7, 5) - 4) * 4,
    "full_house": 7 * 4 * 6 * 6,
    "straight": 4 * (4**5 - 4),
    "three_of_a_kind": 7 * 4 * comb(6, 2) * 16,
    "court_pairs": comb(4, 2) * 36 * 2 * 4,
    "court_cards": 4 * 6 * 4**3,
    "two_pairs": comb(7, 2) * 36 * 5 * 4 - comb(4, 2) * 36 * 2 * 4,
    "one_pair": 7 * 6 * comb(6, 3) * 4**3 - 4 * 6 * 4**3,
    "high_card": (comb(7, 5) - 4) * (4**5 - 4),
}


def cards(text: str) -> list[str]:
    return text.split()


def by_eye(cards: Iterable[str]) -> tuple[int, list[int]]:
    """Art. 16(9), 16(11), read from top to bottom: the place of the combination, and what breaks a tie."""
    heights = sorted((HEIGHT[card[0]] for card in cards), reverse=True)
    suited = len({card[1] for card in cards}) == 1
    times = Counter(heights)
    shape = sorted(times.values(), reverse=True)
    grouped = sorted(heights, key=lambda height: (times[height], height), reverse=True)
    straight: dict[tuple[int, ...], int] = {
        (14, 11, 10, 9, 8): 11,
        (12, 11, 10, 9, 8): 12,
        (13, 12, 11, 10, 9): 13,
        (14, 13, 12, 11, 10): 14,
    }
    top = straight.get(tuple(heights))
    courts = heights[-1] >= 11
    ladder = (
        (suited and top == 14, [0]),
        (suited and top is not None, [top or 0]),
        (shape == [4, 1], grouped),
        (suited, heights),
        (shape == [3, 2], grouped),
        (top is not None, [top or 0]),
        (shape == [3, 1, 1], grouped),
        (courts and shape == [2, 2, 1], grouped),
        (courts and shape == [2, 1, 1, 1], heights),
        (shape == [2, 2, 1], grouped),
        (shape == [2, 1, 1, 1], grouped),
        (True, heights),
    )
    place = next(n for n, (holds, _) in enumerate(ladder) if holds)
    return -place, ladder[place][1]


def agree(pairs: Iterable[tuple[int, Any]]) -> int:
    """Both evaluators order the hands in the same way; how many classes of equal hands there are."""
    classes: dict[int, set[Any]] = defaultdict(set)
    for found, other in pairs:
        classes[found].add(other)
    order = [next(iter(classes[found])) for found in sorted(classes)]
    assert all(len(one) == 1 for one in classes.values())
    assert all(low < high for low, high in pairwise(order))
    return len(classes)


@pytest.mark.article("14(1)")
def test_five_cards_rank_as_pokerkit_ranks_them() -> None:
    """Art. 13(17), 13(18), 14(1); at night all 2 598 960 hands."""
    rng = random.Random(13)
    hands = at_length((rng.sample(DECK, 5) for _ in range(20_000)), combinations(DECK, 5))
    classes = agree((HOLDEM.best((), hand), LOOKUP.get_entry([CARDS[card] for card in hand]).index) for hand in hands)
    assert classes >= at_length(2_000, 7_462)


@pytest.mark.article("16(1)", "16(9)(d)", "16(9)(e)", "16(11)(a)", "16(11)(b)")
def test_all_hands_of_the_28_cards_rank_as_the_table_says() -> None:
    counted: Counter[str] = Counter()
    strengths = []
    for hand in combinations(SYNTHETIC_DECK, 5):
        found = SYNTHETIC.best(hand[:2], hand[2:])
        counted[SYNTHETIC.category(found)] += 1
        strengths.append((found, hand))
    assert counted == SYNTHETIC_COUNTS
    assert sum(counted.values()) == comb(28, 5)
    rng = random.Random(16)
    chosen = at_length(rng.sample(strengths, 20_000), strengths)
    classes = agree((found, tuple(map(tuple, [[by_eye(hand)[0]], by_eye(hand)[1]]))) for found, hand in chosen)
    assert classes <= len({found for found, _ in strengths})


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("AS AH KS KH JS", "AS AH QS QH KS"),  # the higher pair, then the other pair
        ("KS KH QS QH AS", "KC KD QC QD JS"),  # then the fifth card
        ("AS AH KS QH JS", "KS KH AS QH JS"),  # card by card: A A K Q J above A K K Q J
        ("JS JH AS KH QS", "AS AH TS TH KS"),  # plain court cards above two pairs
        ("JS JH QS QH AS", "AS AC KS QH JS"),  # court cards with pairs above plain ones
        ("8S 8H 8D AS KH", "AS AH KS KH QS"),  # three of a kind above court cards
        ("AS KS QS JS 9S", "AS AH AD KS KH"),  # a flush above a full house
        ("QS JS TH 9S 8S", "AS JS TH 9S 8S"),  # the ace below the eight is the lowest straight
    ],
)
def test_the_order_of_synthetic_poker(better: str, worse: str) -> None:
    one, other = better.split(), worse.split()
    assert SYNTHETIC.best(one[:2], one[2:]) > SYNTHETIC.best(other[:2], other[2:])


LADDER = {
    "royal_flush": "AS KS QS JS TS",
    "straight_flush": "KH QH JH TH 9H",
    "four_of_a_kind": "8S 8H 8D 8C 9S",
    "full_house": "8S 8H 8D 9C 9S",
    "flush": "AS KS QS JS 9S",
    "straight": "QS JH TS 9S 8S",
    "three_of_a_kind": "8S 8H 8D AC KS",
    "two_pairs": "9S 9H 8D 8C AS",
    "one_pair": "8S 8H AD KC 9S",
    "high_card": "AS KS QD JC 9S",
}


@pytest.mark.article(
    "13(17)(a)", "13(17)(b)", "13(17)(c)", "13(17)(d)", "13(17)(e)", "13(17)(f)", "13(17)(g)", "13(17)(h)", "13(17)(i)"
)
@pytest.mark.article("13(17)(j)")
def test_the_order_of_the_combinations() -> None:
    strengths = [HOLDEM.best((), cards(one)) for one in LADDER.values()]
    assert strengths == sorted(strengths, reverse=True)
    assert [HOLDEM.category(one) for one in strengths] == list(LADDER)


@pytest.mark.article("16(9)(a)", "16(9)(b)", "16(9)(c)", "16(9)(d)", "16(9)(e)", "16(9)(f)", "16(9)(g)", "16(9)(h)")
@pytest.mark.article("16(9)(i)", "16(9)(j)", "16(9)(k)", "16(9)(l)", "16(11)(a)", "16(11)(b)")
def test_the_order_of_the_combinations_of_synthetic_poker() -> None:
    """A flush is above a full house; court cards stand between three of a kind and two pairs."""
    order = ["royal_flush", "straight_flush", "four_of_a_kind", "flush", "full_house", "straight", "three_of_a_kind"]
    found = {name: LADDER[name] for name in order}
    found |= {"court_pairs": "KS KH JD JC QS", "court_cards": "JS JH AD KC QS"}
    found |= {"two_pairs": LADDER["two_pairs"], "one_pair": LADDER["one_pair"], "high_card": "AS KS QD TC 9S"}
    strengths = [SYNTHETIC.best(cards(one)[:2], cards(one)[2:]) for one in found.values()]
    assert strengths == sorted(strengths, reverse=True)
    assert [SYNTHETIC.category(one) for one in strengths] == list(found)


@pytest.mark.parametrize("ranking", [HOLDEM, SYNTHETIC])
@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("9S 9H 9D 9C 8S", "8S 8H 8D 8C AS"),  # (a) the four, then the fifth card
        ("9S 9H 9D 9C AS", "9S 9H 9D 9C KS"),
        ("9S 9H 9D 8C 8S", "8S 8H 8D AC AS"),  # (b) the three, then the pair
        ("9S 9H 9D AC AS", "9S 9H 9D KC KS"),
        ("KS QH JD TC 9S", "QS JH TD 9C 8S"),  # (c) by its highest card
        ("AS QS JS TS 8S", "KS QS JS TS 8S"),  # (d) the highest card
        ("9S 9H 9D TC 8S", "8S 8H 8D AC KS"),  # (e) the three, the fourth card, the fifth
        ("9S 9H 9D AC TS", "9S 9H 9D KC QS"),
        ("9S 9H 9D AC QS", "9S 9H 9D AC JS"),
        ("AS AH 8D 8C 9S", "KS KH 9D 9C QS"),  # (f) the higher pair, the other, the last card
        ("AS AH 9D 9C 8S", "AS AH 8D 8C KS"),
        ("TS TH 9D 9C AS", "TS TH 9D 9C KS"),
        ("9S 9H TD JC 8S", "8S 8H AD KC QS"),  # (g) the pair, then card by card
        ("9S 9H AD TC 8S", "9S 9H KD QC JS"),
        ("9S 9H AD KC 8S", "9S 9H AD QC JS"),
        ("9S 9H AD KC TS", "9S 9H AD KC 8S"),
    ],
)
@pytest.mark.article("13(18)(a)", "13(18)(b)", "13(18)(c)", "13(18)(d)", "13(18)(e)", "13(18)(f)", "13(18)(g)")
def test_hands_of_one_combination(ranking: Ranking, better: str, worse: str) -> None:
    one, other = (ranking.best(cards(hand)[:2], cards(hand)[2:]) for hand in (better, worse))
    assert one > other
    assert ranking.category(one) == ranking.category(other)


@pytest.mark.article("15(3)")
def test_holdem_takes_any_five_of_seven() -> None:
    rng = random.Random(15)
    for _ in range(at_length(300, 5_000)):
        dealt = rng.sample(DECK, 9)
        one, other, board = dealt[:2], dealt[2:4], dealt[4:]
        mine, theirs = HOLDEM.best(one, board), HOLDEM.best(other, board)
        a, b = (_pokerkit("StandardHighHand", own, board) for own in (one, other))
        assert (mine > theirs, mine == theirs) == (a > b, a == b)
    assert HOLDEM.category(HOLDEM.best(["2S", "7H"], cards("AS KS QS JS TS"))) == "royal_flush"


@pytest.mark.article("14(2)")
def test_omaha_takes_two_own_cards_and_three_common_ones() -> None:
    rng = random.Random(14)
    for _ in range(at_length(200, 3_000)):
        dealt = rng.sample(DECK, 13)
        one, other, board = dealt[:4], dealt[4:8], dealt[8:]
        mine, theirs = OMAHA.best(one, board), OMAHA.best(other, board)
        a, b = (_pokerkit("OmahaHoldemHand", own, board) for own in (one, other))
        assert (mine > theirs, mine == theirs) == (a > b, a == b)
    assert OMAHA.category(OMAHA.best(cards("AS 2H 3D 4C"), cards("KS QS JS TS 9S"))) == "high_card"
    assert OMAHA.category(OMAHA.best(cards("AS AH AD AC"), cards("KS QH JD 9C 8C"))) == "one_pair"


@pytest.mark.article("16(3)")
def test_synthetic_poker_takes_both_own_cards() -> None:
    board = cards("AS KS QS JS TS")
    assert SYNTHETIC.category(SYNTHETIC.best(["8H", "8D"], board)) == "one_pair"
    assert SYNTHETIC.category(SYNTHETIC.best(["AH", "AD"], board)) == "three_of_a_kind"
    assert SYNTHETIC.category(SYNTHETIC.best(["9S", "8S"], board)) == "straight_flush"


def test_the_categories_are_those_of_the_texts() -> None:
    assert HOLDEM.categories == OMAHA.categories == CATEGORIES
    assert set(SYNTHETIC.categories) - set(CATEGORIES) == {"court_cards", "court_pairs"}


def _pokerkit(kind: str, own: Iterable[str], board: Iterable[str]) -> Any:
    mine, common = ([CARDS[card] for card in cards] for cards in (own, board))
    return getattr(pokerkit, kind).from_game(mine, common)
