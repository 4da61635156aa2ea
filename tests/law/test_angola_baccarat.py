"""Bacará ponto e banca, article 10 of Decreto Executivo 261/22, paragraph by paragraph.

What articles 10 and 11 both demand is checked by `tests/support/baccarat_articles.py`.
"""

from functools import cache
from typing import Any

import baccarat_articles as check
import pytest
from baccarat_articles import BANKER_5, BANKER_WINS, PLAYER_WINS, bet, laws, noted, only, refuses, returned, shoe
from helpers import play

from protocols.contract.events import Event, WagerWithdrawn
from rules.angola.baccarat import AngolaBaccarat, AngolaBaccaratOptions

LAW = "angola.baccarat"
SHUFFLER: dict[str, Any] = {"device": "continuous", "decks": 6}

_made = cache(AngolaBaccarat)


def game(**options: Any) -> AngolaBaccarat:
    """The ruleset; made once per options, it holds no state."""
    return _made(AngolaBaccaratOptions(**options))


@pytest.mark.article("10(1)")
def test_six_decks_or_eight() -> None:
    check.six_or_eight_decks(game, "10")
    assert game(decks=6).house.decks == 6


@pytest.mark.article("10(4)(a)")
def test_the_shuffler_has_no_burn_and_no_warning_card() -> None:
    check.shuffler_has_no_burn_and_no_warning_card(game, "10", **SHUFFLER)


@pytest.mark.article("10(4)(b)")
def test_the_shuffler_has_six_decks() -> None:
    check.shuffler_has_six_decks(game, "10", **SHUFFLER)


@pytest.mark.article("10(4)(c)")
def test_the_shuffler_takes_cards_back_after_the_coup() -> None:
    check.shuffler_takes_cards_back_after_the_coup(game, "10", **SHUFFLER)


@pytest.mark.article("10(5)")
def test_eight_cards_are_burnt_after_shuffling() -> None:
    check.eight_cards_are_burnt(game, "10")


@pytest.mark.article("10(5)")
def test_the_warning_card_lies_about_twelve_from_the_end() -> None:
    check.warning_card_lies_twelve_from_the_end(lambda **more: game(warn_card_within=more.pop("within"), **more), "10")


@pytest.mark.article("10(2)")
def test_a_deck_with_a_damaged_card_is_replaced() -> None:
    check.damaged_deck_is_replaced("angola.baccarat", "10")


@pytest.mark.article("10(6)")
def test_the_warning_card_makes_the_coup_the_last() -> None:
    check.warning_card_makes_the_coup_the_last(game, "10")
    check.warning_card_in_the_place_of_the_burnt_one(game)
    check.warning_card_before_a_coup_without_a_bell(game)
    check.empty_shoe(game, "10")


@pytest.mark.article("10(7)")
@pytest.mark.parametrize("options", [{}, SHUFFLER])
def test_a_card_face_up_is_valid(options: dict[str, Any]) -> None:
    check.face_up_card_is_valid(game, "10", **options)


@pytest.mark.article("10(8)(a)", "10(8)(b)", "10(8)(c)")
@pytest.mark.parametrize(("rank", "points"), check.values())
def test_the_value_of_each_card(rank: str, points: int) -> None:
    check.cards_have_their_values(game, rank, points)


@pytest.mark.article("10(9)")
def test_tens_of_a_total_do_not_count() -> None:
    check.tens_do_not_count(game)


@pytest.mark.article("10(10)")
def test_there_are_two_hands_only() -> None:
    check.two_hands_only(game)


@pytest.mark.article("10(11)")
def test_pairs_are_the_choice_of_the_house() -> None:
    check.pairs_are_the_house_s_choice(game, "10", bets_offered=("player", "banker", "tie"))


@pytest.mark.article("10(12)")
def test_a_bet_against_the_bet_of_its_seat_is_refused() -> None:
    check.bets_against_the_seat_are_refused(game, "10", both_sides="accepted")


@pytest.mark.article("10(13)")
def test_bets_close_at_nothing_more() -> None:
    check.bets_close_at_nothing_more(game, "10", opening="first_card")


@pytest.mark.article("10(14)")
def test_two_cards_each_in_turn_the_player_first() -> None:
    check.two_cards_each_in_turn(game)


@pytest.mark.article("10(15)")
def test_a_card_is_burnt_before_each_coup_but_the_first() -> None:
    check.burns_before_each_coup_but_the_first(game, "10")
    check.void_first_coup_counts_once_a_card_was_dealt(game)


@pytest.mark.article("10(15)")
def test_where_the_burnt_card_is_in_doubt_the_coup_waits() -> None:
    check.unknown_whether_a_card_is_burnt(game)
    check.loss_in_a_coup_that_nobody_corrects(game)
    check.corrected_deal_goes_on(game)


@pytest.mark.article("10(16)")
def test_third_cards_follow_the_table() -> None:
    check.third_cards_follow_the_table(game)


@pytest.mark.article("10(17)")
def test_a_lapse_is_corrected_or_the_coup_is_null() -> None:
    check.lapse_is_corrected_or_the_coup_is_null(game, "10")


@pytest.mark.article("10(18)", "10(19)")
def test_the_highest_bettor_of_each_side_handles_its_cards() -> None:
    check.highest_bettors_handle_the_cards(game)


@pytest.mark.article("10(20)")
def test_the_dealer_alone_may_handle_the_cards() -> None:
    check.dealer_handles_the_cards(game, handling="dealer")


@pytest.mark.article("10(21)")
def test_winners_are_paid_even() -> None:
    check.winners_are_paid_even(game, "10(21)")


@pytest.mark.article("10(22)")
def test_the_tie_pays_eight_and_other_stakes_stay() -> None:
    check.tie_pays_eight_and_stakes_stay(game, "10(22)")


@pytest.mark.article("10(23)")
def test_pairs_pay_eleven_beside_the_rest() -> None:
    check.pairs_pay_eleven_beside_the_rest(game, "10(23)")


# ---- 10(24)


@pytest.mark.article("10(24)")
def test_without_a_deduction_the_banker_pays_even() -> None:
    for cards in (BANKER_WINS, BANKER_5):
        result = only(play(game(), shoe(cards, bet(1, "banker"))))
        assert returned(result) == [200]
        assert not [law for law in laws(result) if law.startswith("10(24)")]


@pytest.mark.article("10(24)", "10(24)(a)")
def test_two_percent_of_what_the_banker_wins() -> None:
    for cards in (BANKER_WINS, BANKER_5):
        result = only(play(game(deduction="2_percent"), shoe(cards, bet(1, "banker"), bet(2, "player"))))
        assert returned(result) == [198, 0]
        assert [(win.pays, win.gross) for win in result.winners] == [("49/50", "1")]
        assert "10(24)(a)" in laws(result)
    assert returned(only(play(game(deduction="2_percent"), shoe(PLAYER_WINS, bet(1, "player"))))) == [200]


@pytest.mark.article("10(24)", "10(24)(b)")
def test_twenty_percent_where_the_banker_wins_with_five() -> None:
    ruleset = game(deduction="20_percent_on_5")
    five, nine = (only(play(ruleset, shoe(cards, bet(1, "banker")))) for cards in (BANKER_5, BANKER_WINS))
    assert (returned(five), "10(24)(b)" in laws(five)) == ([180], True)
    assert (returned(nine), "10(24)(b)" in laws(nine)) == ([200], False)


def test_a_prize_is_rounded_to_the_smallest_chip() -> None:
    for rounding, back in (("down", 195), ("up", 200)):
        ruleset = game(deduction="2_percent", smallest_chip=5, rounding=rounding)
        assert returned(only(play(ruleset, shoe(BANKER_WINS, bet(1, "banker"))))) == [back]


@pytest.mark.article("10(24)(c)")
@pytest.mark.parametrize(("chance", "ratio"), [("", 70), ("tie_", 15), ("pair_", 8)])
def test_the_maximum_is_a_multiple_of_the_minimum(chance: str, ratio: int) -> None:
    least, most = f"{chance}minimum", f"{chance}maximum"
    assert game(**{least: 5, most: 5 * ratio}).options.range_of(chance) == (5, 5 * ratio)
    for wrong in (5 * ratio - 1, 5 * ratio + 1):
        refuses(AngolaBaccarat, {least: 5, most: wrong}, rf"{most}: art. 10\(24\)\(c\): {ratio} times.*{5 * ratio}")
    refuses(AngolaBaccarat, {most: 100}, r"art. 10\(24\)\(c\)")


@pytest.mark.article("10(24)(c)", "10(12)")
@pytest.mark.parametrize(("on", "most"), [("player", 350), ("banker", 350), ("tie", 75), ("player_pair", 40)])
def test_a_seat_bets_up_to_the_maximum_whoever_bets_there(on: str, most: int) -> None:
    ruleset = game(minimum=5, maximum=350, tie_minimum=5, tie_maximum=75, pair_minimum=5, pair_maximum=40)
    bets = (bet(1, on, most - 10), bet(1, on, 10), bet(2, on, most), bet(1, on, 1), bet(3, on, most + 1))
    result = only(play(ruleset, shoe(PLAYER_WINS, *bets)))
    assert [(one.seat, one.stake) for one in result.settlements] == [(1, most), (2, most)]
    assert noted(result) == [("chance_maximum", "10(24)(c)")] * 2


@pytest.mark.article("10(24)(c)")
@pytest.mark.parametrize(
    ("back", "stake"),
    [
        ((WagerWithdrawn(1, "player", 20),), 340),
        ((WagerWithdrawn(1, "player", 5), WagerWithdrawn(1, "player", 15)), 340),
        ((WagerWithdrawn(1, "player", 60),), 300),  # the player takes 40 of the bet as well
        ((WagerWithdrawn(1, "player", 20), WagerWithdrawn(1, "player", 20)), 320),
        ((WagerWithdrawn(1, "player", 20), bet(1, "player", 10)), 350),
        ((WagerWithdrawn(1, "player"), bet(1, "player", 10), WagerWithdrawn(1, "player", 1)), 9),
    ],
)
def test_chips_that_were_refused_come_off_before_the_bet(back: tuple[Event, ...], stake: int) -> None:
    bets = (bet(1, "player", 340), bet(2, "banker", 50), bet(1, "player", 20), *back)
    result = only(play(game(minimum=5), shoe(PLAYER_WINS, *bets)))
    assert {(one.seat, one.stake) for one in result.settlements} == {(1, stake), (2, 50)}
    assert noted(result)[:1] == [("chance_maximum", "10(24)(c)")]


@pytest.mark.article("10(12)")
def test_a_bet_that_was_refused_and_is_taken_away_changes_nothing() -> None:
    result = only(play(game(), shoe(PLAYER_WINS, bet(3, "player"), bet(3, "banker"), WagerWithdrawn(3, "banker", 100))))
    assert [(one.seat, one.bet, one.stake) for one in result.settlements] == [(3, "player", 100)]
    assert noted(result) == [("against_seat", "10(12)")]


@pytest.mark.article("10(24)(c)")
def test_a_bet_below_the_minimum_goes_back_when_bets_are_closed() -> None:
    ruleset = game(minimum=50, tie_minimum=10, pair_minimum=5)
    bets = (
        bet(1, "player", 30),
        bet(1, "player", 20),
        bet(2, "banker", 49),
        bet(2, "tie", 10),
        bet(3, "banker_pair", 4),
    )
    result = only(play(ruleset, shoe(PLAYER_WINS, *bets)))
    assert [(one.seat, one.bet) for one in result.settlements] == [
        *((1, "player"), (2, "tie")),
        *((2, "banker"), (3, "banker_pair")),
    ]
    assert [(one.stake, one.returned) for one in result.settlements[2:]] == [(49, 49), (4, 4)]
    assert noted(result) == [("chance_minimum", "10(24)(c)")] * 2


@pytest.mark.article("10(24)(c)")
def test_after_a_loss_no_bet_is_said_to_be_too_small() -> None:
    check.bets_are_not_judged_after_a_loss(game, bet(1, "player", 49), minimum=50)
