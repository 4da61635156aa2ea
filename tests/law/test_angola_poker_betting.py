"""The betting rounds of Angola's poker without a bank: whose turn, how much, and what becomes of mistakes."""

import random
from importlib import import_module
from typing import Any

import pytest
from helpers import at_length
from hypothesis import given, strategies as st

from rules.games.poker_betting import (
    ACTIONS,
    Betting,
    Fault,
    Limits,
    act,
    actions,
    bind,
    blind_raise,
    kill,
    most,
    opened,
    post,
)

pokerkit: Any = import_module("pokerkit")
LAW = ("angola.holdem", "angola.omaha", "angola.synthetic-poker")
NO_LIMIT = Limits(100)


def hand(stacks: int = 10_000, seats: int = 4, limits: Limits = NO_LIMIT, **fields: Any) -> Betting:
    """Seat 1 has the hand and laid the small bet, seat 2 the big one; seat 3 is first to act."""
    order = tuple(range(1, seats + 1))
    small, big = limits.minimum // 2, limits.minimum
    b = Betting(order, dict.fromkeys(order, stacks), posts={1: small, 2: big}, level=big, **fields)
    for seat in (1, 2):
        b, faults = post(b, seat, 0)
        assert not faults
    return opened(b, order[2], big, fresh=False)


def played(b: Betting, *told: tuple[int, str, int], limits: Limits = NO_LIMIT) -> tuple[Betting, list[Fault]]:
    """Actions in turn."""
    found: list[Fault] = []
    for seat, action, chips in told:
        b, faults = act(b, seat, action, chips, limits)
        found += faults
    return b, found


def codes(faults: list[Fault]) -> list[str]:
    return [one.code for one in faults]


@pytest.mark.article("14(10)", "14(11)", "14(12)", "14(13)")
def test_the_big_bet_speaks_last_in_the_first_round() -> None:
    """Art. 14(10)-(13)."""
    b = hand()
    assert (b.bets, b.waiting) == ({1: 50, 2: 100}, (3, 4, 1, 2))
    assert actions(b, NO_LIMIT) == ("fold", "call", "raise")
    b, faults = played(b, (3, "call", 100), (4, "fold", 0), (1, "call", 0))
    assert (faults, b.bets[1], actions(b, NO_LIMIT)) == ([], 100, ("fold", "check", "raise"))
    b, _ = played(b, (2, "check", 0))
    assert b.waiting == ()
    assert b.pot() == 300


@pytest.mark.article("14(14)")
def test_later_rounds_begin_with_the_hand_or_the_next_that_is_in() -> None:
    """Art. 14(14)."""
    b, _ = played(hand(), (3, "call", 0), (4, "call", 0), (1, "fold", 0), (2, "check", 0))
    b = opened(b, 1)
    assert b.waiting == (2, 3, 4)
    assert actions(b, NO_LIMIT) == ("fold", "check", "bet")
    b, faults = played(b, (2, "check", 0), (3, "bet", 200), (4, "raise", 500), (2, "fold", 0), (3, "call", 0))
    assert (faults, b.waiting, b.bets[3], b.bets[4]) == ([], (), 600, 600)
    assert (b.opener, b.highest) == (3, 4)


@pytest.mark.article("14(16)", "14(17)", "13(47)")
def test_three_raises_a_round_and_any_number_where_two_are_left() -> None:
    """Art. 14(16), 14(17), 13(47)."""
    three = [(3, "raise", 200), (4, "raise", 300), (1, "raise", 350)]
    b, faults = played(hand(), *three)
    assert (faults, b.raises) == ([], 3)
    assert actions(b, NO_LIMIT) == ("fold", "call")
    b, faults = played(b, (2, "raise", 900))
    assert (codes(faults), faults[0].chips, b.bets[2]) == (["no_more_raises"], 600, 400)
    b, faults = played(hand(), *three, (2, "fold", 0), (3, "fold", 0), (4, "raise", 300), (1, "raise", 400))
    assert (faults, b.raises) == ([], 5)


@pytest.mark.article("13(21)(a)", "13(21)(b)", "13(21)(c)")
@pytest.mark.parametrize(
    ("limit", "with_call", "bound"),
    [("half_pot", True, 175), ("pot", True, 350), ("pot", False, 250), ("stack", True, 9900)],
)
def test_the_limits_of_a_raise(limit: Any, with_call: bool, bound: int) -> None:
    """Art. 13(21): seat 4 calls 100 into a pot of 250, and may raise by half of it, all of it, or its stack."""
    limits = Limits(100, limit, pot_with_call=with_call)
    b, _ = played(hand(), (3, "call", 0))
    assert most(b, 4, limits) == bound
    b, faults = played(b, (4, "raise", 10_000), limits=limits)
    assert b.level == 100 + bound
    assert codes(faults) == ([] if limit == "stack" else ["above_maximum"])


@pytest.mark.article("14(15)")
def test_a_raise_below_the_minimum_is_not_taken() -> None:
    """Art. 14(15)."""
    b, faults = played(hand(), (3, "raise", 199))
    assert (codes(faults), b) == (["below_minimum"], hand())
    b, faults = played(hand(), (3, "raise", 200))
    assert (faults, b.level) == ([], 200)


@pytest.mark.article("13(19)", "13(39)(d)")
def test_the_house_may_have_a_maximum() -> None:
    """Art. 13(19), 13(39)(d)."""
    limits = Limits(100, maximum=400)
    b, faults = played(hand(), (3, "raise", 900), limits=limits)
    assert (codes(faults), faults[0].chips, b.level) == (["above_maximum"], 400, 500)


@pytest.mark.article("13(39)(b)")
def test_a_check_needs_a_round_without_a_bet() -> None:
    """Art. 13(39)(b)."""
    b, faults = played(hand(), (3, "check", 0))
    assert (codes(faults), b.waiting[0]) == (["check_not_possible"], 3)


@pytest.mark.article("13(48)", "13(49)")
def test_an_all_in_below_a_raise_lets_those_who_acted_only_call() -> None:
    """Art. 13(48), 13(49)."""
    b = hand()
    b, _ = played(
        Betting(b.order, {**b.stacks, 4: 150}, b.bets, b.street, waiting=b.waiting, level=100), (3, "call", 0)
    )
    b, faults = played(b, (4, "raise", 150))
    assert (faults, b.level, b.raises, b.waiting) == ([], 150, 0, (1, 2, 3))
    assert actions(b, NO_LIMIT) == ("fold", "call", "raise")
    b, _ = played(b, (1, "call", 0), (2, "call", 0))
    assert actions(b, NO_LIMIT) == ("fold", "call")


@pytest.mark.article("13(49)")
def test_nobody_is_asked_where_one_has_chips_and_owes_nothing() -> None:
    """Art. 13(49)."""
    b, faults = played(hand(500), (3, "raise", 500), (4, "fold", 0), (1, "call", 0), (2, "fold", 0))
    assert (faults, b.waiting) == ([], ())
    assert opened(b, 1).waiting == ()


@pytest.mark.article("13(71)(c)")
def test_too_few_chips_for_a_call_stay() -> None:
    """Art. 13(71)(c): complete or give up, never raise."""
    b, faults = played(hand(), (3, "raise", 400), (4, "call", 100))
    assert (codes(faults), b.waiting[0], b.bets[4]) == (["call_not_complete"], 4, 100)
    assert actions(b, NO_LIMIT) == ("fold", "call")
    b, faults = played(b, (4, "call", 0))
    assert (faults, b.bets[4], b.waiting[0]) == ([], 400, 1)


@pytest.mark.article("13(71)(d)")
def test_a_raise_that_was_not_announced_is_a_call() -> None:
    """Art. 13(71)(d)."""
    b, faults = played(hand(), (3, "call", 350))
    assert faults == [Fault("not_announced", "13(71)(d)", 250)]
    assert b.bets[3] == 100


@pytest.mark.article("13(71)(f)")
def test_a_bet_out_of_turn_stands_and_is_not_raised() -> None:
    """Art. 13(71)(f): seat 1 raises before 3 and 4; they answer first, and seat 1 may only call a raise of theirs."""
    b, faults = played(hand(), (1, "raise", 250))
    assert (codes(faults), b.level, b.waiting) == (["out_of_turn"], 300, (3, 4, 2))
    b, _ = played(b, (3, "raise", 600), (4, "fold", 0), (2, "fold", 0))
    assert (b.waiting, actions(b, NO_LIMIT)) == ((1,), ("fold", "call"))
    b, faults = played(b, (1, "raise", 900))
    assert (codes(faults), b.bets[1], b.waiting) == (["may_only_call"], 600, ())


@pytest.mark.article("13(70)(h)", "13(71)(i)")
def test_who_let_others_pass_him_by_may_not_raise() -> None:
    """Art. 13(70)(h), 13(71)(i)."""
    assert actions(bind(hand(), (3,)), NO_LIMIT) == ("fold", "call")


@pytest.mark.article("13(55)")
def test_who_has_acted_may_not_act_again() -> None:
    """Art. 13(55)."""
    b, faults = played(hand(), (3, "call", 0), (3, "raise", 500))
    assert (codes(faults), faults[0].taken, b.bets[3]) == (["acted_twice"], False, 100)


@pytest.mark.article("13(14)(e)")
def test_chips_are_not_added_in_a_hand() -> None:
    """Art. 13(14)(e)."""
    b, faults = played(hand(500), (3, "raise", 800))
    assert (codes(faults), faults[0].chips, b.bets[3]) == (["more_than_stack"], 300, 500)


@pytest.mark.article("13(71)(g)")
def test_dead_hands_are_out() -> None:
    """Art. 13(71)(g)."""
    b = kill(hand(), (3, 2))
    assert (b.live(), b.waiting) == ((1, 4), (4, 1))
    assert kill(b, (4,)).waiting == ()


@pytest.mark.article("14(20)", "16(17)")
def test_a_missing_first_bet_is_due_with_the_next_chips() -> None:
    """Art. 14(20), 16(17): who gives up leaves the pot reduced."""
    b = Betting((1, 2, 3, 4), dict.fromkeys(range(1, 5), 1000), owed=dict.fromkeys(range(1, 5), 100))
    for seat in (1, 2):
        b, _ = post(b, seat, 0)
    b = opened(b, 2)
    assert actions(b, NO_LIMIT) == ("fold", "check", "bet")
    b, faults = played(b, (2, "check", 0), (3, "check", 0))
    assert codes(faults) == ["check_not_possible"]
    b, faults = played(b, (3, "call", 0), (4, "fold", 0), (1, "bet", 200))
    assert (faults, b.dead, b.bets, b.pot()) == ([], {1: 100, 2: 100, 3: 100}, {1: 200}, 500)


@pytest.mark.article("14(19)")
def test_missed_blinds_do_not_count_as_a_bet() -> None:
    """Art. 14(19): seat 3 puts in the 150 that it missed, and still has the whole call before it."""
    order = (1, 2, 3, 4)
    b = Betting(order, dict.fromkeys(order, 1000), posts={1: 50, 2: 100}, owed={3: 150}, level=100)
    for seat in (1, 2, 3):
        b, faults = post(b, seat, 0)
        assert not faults
    b = opened(b, 3, 100, fresh=False)
    assert (b.dead, b.due(3), b.stacks[3]) == ({3: 150}, 100, 850)


@pytest.mark.article("14(11)", "14(12)")
def test_a_first_bet_has_its_amount() -> None:
    """Art. 14(11), 14(12)."""
    b = Betting((1, 2, 3), dict.fromkeys((1, 2, 3), 1000), posts={1: 50, 2: 100}, level=100)
    assert codes(list(post(b, 1, 100)[1])) == ["wrong_post"]
    assert post(b, 1, 50)[0].bets == {1: 50}
    assert codes(list(post(b, 3, 100)[1])) == ["no_post_due"]


@pytest.mark.article("16(12)", "16(12)(b)")
def test_a_blind_raise_has_the_others_lay_twice_as_much() -> None:
    """Art. 16(12): 3 lays 200; who plays lays 400; 1 lays these blind in turn, so that all lay 800."""
    start = Betting((1, 2, 3, 4), dict.fromkeys(range(1, 5), 5000), dead=dict.fromkeys(range(1, 5), 100))
    b, faults = blind_raise(start, 3, "blind_raise", 200)
    assert (faults, b.waiting, b.due(4), b.due(3)) == ((), (4, 1, 2, 3), 400, 200)
    assert actions(b, NO_LIMIT) == ("fold", "call")
    b, _ = played(b, (4, "call", 0))
    b, faults = blind_raise(b, 1, "blind_reraise", 400)
    assert (faults, b.waiting, b.due(2), b.due(4)) == ((), (2, 3, 4, 1), 800, 400)
    b, more = played(b, (2, "fold", 0), (3, "fold", 0), (4, "call", 0))
    assert (more, b.bets[3], actions(b, NO_LIMIT)) == ([], 200, ("fold", "call", "raise"))
    b, _ = played(b, (1, "call", 0))
    assert (b.bets, b.waiting) == ({3: 200, 4: 800, 1: 800}, ())


@pytest.mark.article("16(12)(c)")
def test_a_stack_too_small_for_a_blind_raise_is_all_in() -> None:
    """Art. 16(12)(c)."""
    b, _ = blind_raise(Betting((1, 2, 3, 4), {1: 5000, 2: 5000, 3: 5000, 4: 300}), 3, "blind_raise", 200)
    b, faults = played(b, (4, "call", 0))
    assert (faults, b.bets[4], b.waiting) == ([], 300, (1, 2, 3))


@pytest.mark.article("16(12)(a)", "16(12)(c)")
def test_a_blind_raise_is_of_the_stack_at_most() -> None:
    """Art. 16(12)(a): 3 has 300 and says 5000; who plays lays 600, and 3 plays for his part."""
    b, faults = blind_raise(Betting((1, 2, 3, 4), {1: 5000, 2: 5000, 3: 300, 4: 5000}), 3, "blind_raise", 5000)
    assert faults == (Fault("more_than_stack", "13(14)(e)", 4700),)
    assert (b.stacks[3], b.bets, b.waiting, b.due(4)) == (0, {3: 300}, (4, 1, 2), 600)


@pytest.mark.article("16(12)(a)", "16(17)")
def test_a_missing_ante_is_paid_out_of_a_blind_raise() -> None:
    """Art. 16(12)(a), 16(17): of 300 chips 100 are the ante; the raise is of 200."""
    b, _ = blind_raise(Betting((1, 2, 3, 4), dict.fromkeys(range(1, 5), 5000), owed={3: 100}), 3, "blind_raise", 300)
    assert (b.dead, b.bets, b.due(4), b.due(3)) == ({3: 100}, {3: 200}, 400, 200)


@pytest.mark.article("16(12)(b)")
@pytest.mark.parametrize(
    ("seat", "chips", "code"),
    [
        (3, 0, "no_blind_raise"),  # another player, the text says
        (4, 0, "wrong_blind_raise"),  # 300 chips do not double 200
        (1, 300, "wrong_blind_raise"),
        (1, 400, ""),
        (1, 0, ""),
    ],
)
def test_another_player_doubles_a_blind_raise_whole(seat: int, chips: int, code: str) -> None:
    """Art. 16(12)(b): 3 has laid 200, so 400 double it; what is not taken goes back."""
    b, _ = blind_raise(Betting((1, 2, 3, 4), {1: 5000, 2: 5000, 3: 5000, 4: 300}), 3, "blind_raise", 200)
    after, faults = blind_raise(b, seat, "blind_reraise", chips)
    assert codes(list(faults)) == ([code] if code else [])
    assert (after == b) == bool(code)


@given(st.data(), st.sampled_from(("half_pot", "pot", "stack")), st.integers(2, 8))
def test_whatever_is_told_no_chip_is_lost_and_a_round_ends_even(data: st.DataObject, limit: Any, seats: int) -> None:
    limits = Limits(100, limit)
    stacks = data.draw(st.lists(st.integers(100, 2000), min_size=seats, max_size=seats))
    order = tuple(range(1, seats + 1))
    b = Betting(order, dict(zip(order, stacks, strict=True)), posts={1: 50, 2: 100}, level=100)
    b, _ = post(post(b, 1, 0)[0], 2, 0)
    b = opened(b, order[2 % seats], 100, fresh=False)
    for _ in range(data.draw(st.integers(0, 40))):
        seat = data.draw(st.sampled_from((*b.waiting[:1] * 3, *order)))
        action = data.draw(st.sampled_from(ACTIONS))
        b, _ = act(b, seat, action, data.draw(st.integers(0, 900)), limits)
        assert sum(b.stacks.values()) + b.pot() == sum(stacks)
        assert min(b.stacks.values()) >= 0
        assert limit == "stack" or b.raises <= 3 or len(b.live()) == 2 or b.folded
    for _ in range(100):
        if not b.waiting:
            break
        b, _ = act(b, b.waiting[0], "call" if b.due(b.waiting[0]) else "check", 0, limits)
    assert b.waiting == ()
    if len(b.live()) > 1:
        assert len({b.street.get(seat, 0) for seat in b.can_bet()}) <= 1


def test_the_turn_goes_as_at_pokerkit() -> None:
    """Random play without limit, three players and more: the same seat is asked, the same chips are called."""
    rng = random.Random(39)
    asked = 0
    for _ in range(at_length(60, 2_000)):
        count = rng.randint(3, 8)
        stacks = [rng.randint(200, 3_000) for _ in range(count)]
        state = pokerkit.NoLimitTexasHoldem.create_state(
            tuple(pokerkit.Automation), True, 0, (50, 100), 100, stacks, count
        )
        order = tuple(range(1, count + 1))
        limits = Limits(100, raises=0)
        b = Betting(order, dict(zip(order, stacks, strict=True)), posts={1: 50, 2: 100}, level=100)
        b, _ = post(post(b, 1, 0)[0], 2, 0)
        b = opened(b, 3, 100, fresh=False)
        while state.status:
            seat = state.actor_index + 1
            while not b.waiting:
                b = opened(b, 1)
            assert b.waiting[0] == seat
            assert b.due(seat) == state.checking_or_calling_amount
            asked += 1
            chosen, least = rng.random(), state.min_completion_betting_or_raising_to_amount
            if chosen < 0.15 and b.due(seat):
                state.fold()
                b, faults = act(b, seat, "fold", 0, limits)
            elif chosen < 0.45 and least is not None and "raise" in actions(b, limits) + ("raise",) * (not b.level):
                most_ = state.max_completion_betting_or_raising_to_amount
                to = rng.choice((least, least, most_, rng.randint(least, most_)))
                chips = to - b.street.get(seat, 0)
                if chips - b.due(seat) < 100 and chips < b.stacks[seat]:
                    continue  # PokerKit's minimum is another
                state.complete_bet_or_raise_to(to)
                b, faults = act(b, seat, "raise", chips, limits)
            else:
                state.check_or_call()
                b, faults = act(b, seat, "call" if b.due(seat) else "check", 0, limits)
            assert not faults
    assert asked > at_length(400, 15_000)
