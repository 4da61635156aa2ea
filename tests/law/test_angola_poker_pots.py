"""Pots and payments of Angola's poker without a bank: no chip is lost, and each goes to whom the text gives it."""

import random
from collections import defaultdict
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest
from helpers import at_length
from hypothesis import given, strategies as st

from rules.games.poker_hands import HOLDEM
from rules.games.poker_pots import Payment, Pot, Put, Rake, pay, pots, shares

pokerkit: Any = import_module("pokerkit")
LAW = ("angola.holdem", "angola.omaha", "angola.synthetic-poker")
FREE = Rake()


def chip_by_chip(
    bets: dict[int, int], live: tuple[int, ...], strengths: dict[int, int], chip: int
) -> dict[int, Fraction]:
    """Who gets what, each layer of one chip by itself, with parts of chips: written from 13(38), 13(49) and 13(66)."""
    gets: dict[int, Fraction] = defaultdict(Fraction)
    orphans = 0
    for level in range(0, max(bets.values()), chip):
        betting = [seat for seat, amount in bets.items() if amount > level]
        playing = [seat for seat in live if bets.get(seat, 0) > level]
        if not playing:  # a dead hand's chips: they join the pot below
            orphans += chip * len(betting)
            continue
        best = max(strengths[seat] for seat in playing)
        winners = [seat for seat in playing if strengths[seat] == best]
        for seat in winners:
            gets[seat] += Fraction(chip * len(betting), len(winners))
        below = winners
    for seat in below if orphans else ():
        gets[seat] += Fraction(orphans, len(below))
    return dict(gets)


@st.composite
def hands(draw: st.DrawFn) -> tuple[Put, tuple[int, ...], dict[int, int], tuple[int, ...]]:
    """Contributions, the seats that are still in, how strong they are, and the order from the hand on."""
    order = tuple(draw(st.permutations(range(1, 11)))[: draw(st.integers(2, 10))])
    bets = {seat: draw(st.integers(0, 60)) * 50 for seat in order}
    dead = {seat: draw(st.sampled_from((0, 50, 100))) for seat in order}
    live = tuple(seat for seat in order if draw(st.booleans())) or order[:1]
    strengths = {seat: draw(st.integers(1, 4)) for seat in live}
    return Put(bets, dead), live, strengths, order


@given(
    hands(),
    st.sampled_from((1, 50, 100, 130)),
    st.integers(0, 50),
    st.sampled_from((0, 30, 500)),
    st.sampled_from(("layered", "proportional")),
)
def test_what_is_paid_kept_and_given_back_is_what_was_put_in(
    hand: Any, unit: int, per_mille: int, cap: int, layering: Any
) -> None:
    put, live, strengths, order = hand
    found, back = pots(put, live, layering)
    rake = Rake(per_mille, cap, 10)
    paid = pay(found, strengths, order, unit, rake)
    kept = sum(one.kept for one in paid)
    assert sum(pot.amount for pot in found) + sum(back.values()) == put.total()
    assert sum(one.amount for one in paid) + kept + sum(back.values()) == put.total()
    assert kept * 1000 <= per_mille * (put.total() - sum(back.values()))
    assert not cap or kept <= cap
    assert all(one.kept % 10 == 0 and one.amount >= 0 and one.seat in live for one in paid)


def test_no_chip_is_lost_in_random_hands() -> None:
    """At night in 1 000 000 of them."""
    rng = random.Random(38)
    for _ in range(at_length(5_000, 1_000_000)):
        order = rng.sample(range(1, 11), rng.randint(2, 10))
        put = Put({seat: rng.choice((0, 1, 2, 3, 5, 8, rng.randrange(500))) for seat in order}, {order[0]: 7})
        live = tuple(seat for seat in order if rng.random() < 0.6) or (order[0],)
        found, back = pots(put, live)
        paid = pay(found, {seat: rng.randrange(4) for seat in live}, order, rng.choice((1, 5)), FREE)
        assert sum(one.amount for one in paid) + sum(back.values()) == put.total()
        assert [pot.among for pot in found] == sorted({pot.among for pot in found}, key=len, reverse=True)


@given(hands())
def test_each_layer_goes_to_its_best_hands(hand: Any) -> None:
    """Amounts that ten players can share without a rest."""
    put, live, strengths, order = hand
    bets = {seat: amount * 252 for seat, amount in put.bets.items()}
    if not any(bets[seat] for seat in live):
        return
    expected = chip_by_chip(bets, live, strengths, 50 * 252)
    found, back = pots(Put(bets), live)
    gets: dict[int, int] = defaultdict(int, back)
    for one in pay(found, strengths, order, 1, FREE):
        gets[one.seat] += one.amount
    assert {seat: amount for seat, amount in gets.items() if amount} == expected


def test_whole_hands_end_as_pokerkit_ends_them() -> None:
    """Random bets without limit, all-ins and folds; the stacks after the hand are the same."""
    rng = random.Random(49)
    side_pots = 0
    for _ in range(at_length(60, 3_000)):
        state, stacks = _played(rng)
        put, live, board, own = _laid(state)
        strengths = {seat: HOLDEM.best(own[seat], board) if len(board) == 5 else 0 for seat in live}
        found, back = pots(put, live)
        side_pots += len(found) > 1
        after = {seat: stacks[seat] - put.by_seat().get(seat, 0) + back.get(seat, 0) for seat in range(len(stacks))}
        for one in pay(found, strengths, sorted(after), 1, FREE):
            after[one.seat] += one.amount
        assert list(after.values()) == list(state.stacks)
    assert side_pots > at_length(10, 500)


def _played(rng: random.Random) -> tuple[Any, list[int]]:
    """A whole hand of PokerKit. Stacks and bets are multiples of 2520: no part has a rest."""
    count = rng.randint(2, 8)
    stacks = [2520 * rng.randint(3, 60) for _ in range(count)]
    automatic = tuple(pokerkit.Automation)
    state = pokerkit.NoLimitTexasHoldem.create_state(
        automatic, True, 0, (2520, 5040), 5040, stacks, count, mode=pokerkit.Mode.TOURNAMENT
    )
    while state.status:
        least, most = (
            state.min_completion_betting_or_raising_to_amount,
            state.max_completion_betting_or_raising_to_amount,
        )
        chosen = rng.random()
        if chosen < 0.2 and state.can_fold():
            state.fold()
        elif chosen < 0.5 and least is not None:
            to = rng.choice((least, most, rng.randint(least // 2520, most // 2520) * 2520))
            state.complete_bet_or_raise_to(max(to, least))
        else:
            state.check_or_call()
    return state, stacks


def _laid(state: Any) -> tuple[Put, tuple[int, ...], list[str], dict[int, list[str]]]:
    """What was put in, by PokerKit's own log; the hands that were not folded; the board; the cards."""
    bets: dict[int, int] = defaultdict(int)
    street: dict[int, int] = defaultdict(int)
    folded, board = set(), []
    own: dict[int, list[str]] = defaultdict(list)
    for one in state.operations:
        match type(one).__name__:
            case "BlindOrStraddlePosting" | "CheckingOrCalling":
                street[one.player_index] += one.amount
                bets[one.player_index] += one.amount
            case "CompletionBettingOrRaisingTo":
                bets[one.player_index] += one.amount - street[one.player_index]
                street[one.player_index] = one.amount
            case "Folding":
                folded.add(one.player_index)
            case "HoleDealing":
                own[one.player_index] += [_ours(card) for card in one.cards]
            case "BoardDealing":
                board += [_ours(card) for card in one.cards]
                street.clear()
    live = tuple(seat for seat in range(state.player_count) if seat not in folded)
    return Put(bets), live, board, own


def _ours(card: Any) -> str:
    return f"{card.rank.value}{card.suit.value.upper()}"


@pytest.mark.article("13(38)", "13(49)")
def test_an_all_in_player_wins_his_bet_from_each_of_the_others() -> None:
    """Art. 13(38), 13(49): 3 is all-in for 300, 2 folded after 200, 1 and 4 bet 1000."""
    put = Put({1: 1000, 2: 200, 3: 300, 4: 1000})
    found, back = pots(put, (1, 3, 4))
    assert found == (Pot(1100, (1, 3, 4)), Pot(1400, (1, 4)))
    assert back == {}
    assert pay(found, {1: 1, 3: 9, 4: 2}, (1, 2, 3, 4), 100, FREE) == (Payment(3, 0, 1100), Payment(4, 1, 1400))


@pytest.mark.article("13(50)")
def test_by_the_letter_folded_chips_lie_in_the_pots_in_proportion() -> None:
    """Art. 13(50): 300 of 1000 are three tenths: of the 200 that folded, 60 are in the main pot."""
    found, _ = pots(Put({1: 1000, 2: 200, 3: 300, 4: 1000}), (1, 3, 4), "proportional")
    assert found == (Pot(960, (1, 3, 4)), Pot(1540, (1, 4)))


@pytest.mark.article("13(7)(a)", "13(51)")
def test_a_bet_that_nobody_called_goes_back_without_a_percentage() -> None:
    """Art. 13(7)(a), 13(51)."""
    found, back = pots(Put({1: 50, 2: 100, 3: 500}, {1: 20}), (3,))
    assert (found, back) == ((Pot(270, (3,)),), {3: 400})
    assert pay(found, {3: 0}, (1, 2, 3), 100, Rake(50, 0, 1)) == (Payment(3, 0, 257, 13),)


@pytest.mark.article("13(71)(b)", "13(71)(h)")
def test_a_dead_hand_loses_what_nobody_called() -> None:
    """Art. 13(71)(b), (h)."""
    assert pots(Put({1: 500, 2: 100}), (2,)) == ((Pot(600, (2,)),), {})


@pytest.mark.article("13(71)(g)")
def test_the_chips_of_dead_hands_go_to_one_who_has_put_in_nothing() -> None:
    """Art. 13(71)(g): seat 1 has not bet yet when the others are out."""
    assert pots(Put({1: 0, 2: 50, 3: 100}), (1,)) == ((Pot(150, (1,)),), {})
    assert pots(Put({2: 50, 3: 100}), (1, 2)) == ((Pot(150, (2,)),), {})
    assert pots(Put({1: 50}), (1, 2)) == ((), {1: 50})


@pytest.mark.article("13(67)")
@pytest.mark.parametrize(
    ("amount", "winners", "unit", "parts"),
    [
        (1000, 2, 100, [500, 500]),
        (1100, 2, 100, [600, 500]),  # the odd unit to the hand
        (1100, 3, 100, [400, 400, 300]),  # then clockwise
        (1150, 3, 100, [450, 400, 300]),  # less than a unit: with the first part
        (50, 2, 100, [50, 0]),
        (7, 3, 1, [3, 2, 2]),
    ],
)
def test_parts_are_whole_units_of_the_minimum(amount: int, winners: int, unit: int, parts: list[int]) -> None:
    """Art. 13(67)."""
    assert shares(amount, range(winners), unit) == parts


@pytest.mark.article("13(66)", "13(67)")
def test_the_largest_part_goes_to_the_hand() -> None:
    """Art. 13(67): the order is that from the hand on, not that of the numbers."""
    found = (Pot(700, (2, 5, 8)),)
    paid = pay(found, {2: 3, 5: 3, 8: 3}, (8, 9, 2, 5), 100, FREE)
    assert paid == (Payment(8, 0, 300), Payment(2, 0, 200), Payment(5, 0, 200))


@pytest.mark.article("13(7)(a)", "13(65)")
def test_the_percentage_is_taken_from_each_payment_up_to_its_cap() -> None:
    """Art. 13(7)(a), 13(65): five per cent of 1100 and of 1400, rounded down to 10; at most 100 of the hand."""
    found = (Pot(1100, (1, 3, 4)), Pot(1400, (1, 4)))
    strengths, order = {1: 1, 3: 9, 4: 2}, (1, 3, 4)
    free = pay(found, strengths, order, 100, Rake(50, 0, 10))
    assert [(one.amount, one.kept) for one in free] == [(1050, 50), (1330, 70)]
    capped = pay(found, strengths, order, 100, Rake(50, 100, 10))
    assert [(one.amount, one.kept) for one in capped] == [(1050, 50), (1350, 50)]


@pytest.mark.article("13(7)(a)")
def test_five_tenths_of_a_cent_are_not_taken() -> None:
    """Art. 13(7)(a): at most five per cent."""
    assert pay((Pot(19, (1,)),), {1: 0}, (1,), 1, Rake(50)) == (Payment(1, 0, 19, 0),)
