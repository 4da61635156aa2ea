"""The jackpot on the first cards: each bettor is paid once, the smallest prize first and the pool last."""

from hypothesis import given, strategies as st

from rules.games.blackjack import Hand
from rules.games.blackjack_jackpot import awards, combinations, first_cards, hit
from rules.games.cards import DECK

OFFERED = combinations(("AAAA/suit=pool", "AAAA=1/2", "777=1/10", "AA/colour=fixed"), 4)


@given(st.lists(st.sampled_from(OFFERED), max_size=7))
def test_every_bettor_is_paid_once_and_the_pool_last(hits: list[object]) -> None:
    held = [(seat, one) for seat, one in enumerate(hits, 1)]
    found = awards(held, OFFERED, "art. 7(6)")  # type: ignore[arg-type]
    assert sorted(seat for award in found for seat in award.among) == [seat for seat, _ in held]
    order = [one.name for one in reversed(OFFERED)]
    places = [order.index(award.combination) for award in found]
    assert places == sorted(places)
    assert [award.pays == "pool" and not award.share for award in found].count(True) <= 1
    assert all(award.pays != "pool" or award.share or award is found[-1] for award in found)


@given(st.lists(st.sampled_from(DECK), min_size=2, max_size=9))
def test_a_combination_is_one_of_the_first_cards(cards: list[str]) -> None:
    found = hit(tuple(cards), OFFERED)
    ranks = "".join(card[0] for card in cards)
    if found is None:
        assert not ranks.startswith("AAAA")
        assert not ranks.startswith("777")
        return
    assert sorted(ranks[: len(found.ranks)]) == sorted(found.ranks)
    if found.of == "suit":
        assert len({card[1] for card in cards[: len(found.ranks)]}) == 1


def test_the_first_cards_of_splits_stand_in_the_order_of_the_deal() -> None:
    """7-7 split, 7 to the first hand, split again: the third card begins hand 3; then hand 1, hand 2, hand 3 go on."""
    hands = (
        Hand(1, 1, ("7S", "TS"), split=True),
        Hand(1, 2, ("7H", "2S", "TD"), split=True, split_from=1),
        Hand(1, 3, ("7D", "9S"), split=True, split_from=1),
    )
    assert first_cards(hands, 9) == ("7S", "7H", "7D", "TS", "2S", "TD", "9S")
    assert first_cards(hands, 4) == ("7S", "7H", "7D", "TS")
    assert first_cards((Hand(1, 1, ("AS", "AH", "9D")),), 2) == ("AS", "AH")
