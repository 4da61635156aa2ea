"""Bacará ponto e banca/Macau, article 11 of Decreto Executivo 261/22, paragraph by paragraph.

What articles 10 and 11 both demand is checked by `tests/support/baccarat_articles.py`.
"""

from functools import cache
from typing import Any

import baccarat_articles as check
import pytest
from baccarat_articles import BANKER_5, BANKER_WINS, PLAYER_WINS, bet, laws, noted, only, refuses, returned, shoe
from helpers import play

from rules.angola.baccarat_macau import AngolaBaccaratMacau, AngolaBaccaratMacauOptions

LAW = "angola.baccarat-macau"
SHUFFLER: dict[str, Any] = {"device": "continuous", "decks": 6}

_made = cache(AngolaBaccaratMacau)


def game(**options: Any) -> AngolaBaccaratMacau:
    """The ruleset; made once per options, it holds no state."""
    return _made(AngolaBaccaratMacauOptions(**options))


@pytest.mark.article("11(1)")
def test_six_decks_or_eight() -> None:
    check.six_or_eight_decks(game, "11")
    assert game(decks=6).house.decks == 6


@pytest.mark.article("11(4)(a)")
def test_the_shuffler_has_no_burn_and_no_warning_card() -> None:
    check.shuffler_has_no_burn_and_no_warning_card(game, "11", **SHUFFLER)


@pytest.mark.article("11(4)(b)")
def test_the_shuffler_has_six_decks() -> None:
    check.shuffler_has_six_decks(game, "11", **SHUFFLER)


@pytest.mark.article("11(4)(c)")
def test_the_shuffler_takes_cards_back_after_the_coup() -> None:
    check.shuffler_takes_cards_back_after_the_coup(game, "11", **SHUFFLER)


@pytest.mark.article("11(5)")
def test_eight_cards_are_burnt_after_shuffling() -> None:
    check.eight_cards_are_burnt(game, "11")


@pytest.mark.article("11(5)")
def test_the_warning_card_lies_about_twelve_from_the_end() -> None:
    check.warning_card_lies_twelve_from_the_end(lambda **more: game(warn_card_within=more.pop("within"), **more), "11")


@pytest.mark.article("11(2)")
def test_a_deck_with_a_damaged_card_is_replaced() -> None:
    check.damaged_deck_is_replaced("angola.baccarat-macau", "11")


@pytest.mark.article("11(6)")
def test_the_warning_card_makes_the_coup_the_last() -> None:
    check.warning_card_makes_the_coup_the_last(game, "11")
    check.warning_card_in_the_place_of_the_burnt_one(game)
    check.warning_card_before_a_coup_without_a_bell(game)
    check.empty_shoe(game, "11")


@pytest.mark.article("11(7)")
@pytest.mark.parametrize("options", [{}, SHUFFLER])
def test_a_card_face_up_is_valid(options: dict[str, Any]) -> None:
    check.face_up_card_is_valid(game, "11", **options)


@pytest.mark.article("11(8)(a)", "11(8)(b)", "11(8)(c)")
@pytest.mark.parametrize(("rank", "points"), check.values())
def test_the_value_of_each_card(rank: str, points: int) -> None:
    check.cards_have_their_values(game, rank, points)


@pytest.mark.article("11(9)")
def test_tens_of_a_total_do_not_count() -> None:
    check.tens_do_not_count(game)


@pytest.mark.article("11(10)")
def test_there_are_two_hands_only() -> None:
    check.two_hands_only(game)


@pytest.mark.article("11(11)")
def test_pairs_are_the_choice_of_the_house() -> None:
    check.pairs_are_the_house_s_choice(game, "11", bets_offered=("player", "banker", "tie"))


@pytest.mark.article("11(12)")
def test_a_bet_against_the_bet_of_its_seat_is_refused() -> None:
    check.bets_against_the_seat_are_refused(game, "11", both_sides="accepted")


@pytest.mark.article("11(13)")
def test_bets_close_at_nothing_more() -> None:
    check.bets_close_at_nothing_more(game, "11", opening="first_card")


@pytest.mark.article("11(14)")
def test_two_cards_each_in_turn_the_player_first() -> None:
    check.two_cards_each_in_turn(game)


@pytest.mark.article("11(15)")
def test_a_card_is_burnt_before_each_coup_but_the_first() -> None:
    check.burns_before_each_coup_but_the_first(game, "11")
    check.void_first_coup_counts_once_a_card_was_dealt(game)


@pytest.mark.article("11(15)")
def test_where_the_burnt_card_is_in_doubt_the_coup_waits() -> None:
    check.unknown_whether_a_card_is_burnt(game)
    check.loss_in_a_coup_that_nobody_corrects(game)
    check.corrected_deal_goes_on(game)


@pytest.mark.article("11(16)")
def test_third_cards_follow_the_table() -> None:
    check.third_cards_follow_the_table(game)


@pytest.mark.article("11(17)")
def test_a_lapse_is_corrected_or_the_coup_is_null() -> None:
    check.lapse_is_corrected_or_the_coup_is_null(game, "11")


@pytest.mark.article("11(18)", "11(19)", "11(21)")
def test_the_highest_bettor_of_each_side_handles_its_cards() -> None:
    check.highest_bettors_handle_the_cards(game)


@pytest.mark.article("11(22)")
def test_the_dealer_alone_may_handle_the_cards() -> None:
    check.dealer_handles_the_cards(game, handling="dealer")


@pytest.mark.article("11(23)")
def test_winners_are_paid_even() -> None:
    check.winners_are_paid_even(game, "11(23)")


@pytest.mark.article("11(24)")
def test_the_tie_pays_eight_and_other_stakes_stay() -> None:
    check.tie_pays_eight_and_stakes_stay(game, "11(24)")


@pytest.mark.article("11(25)")
def test_pairs_pay_eleven_beside_the_rest() -> None:
    check.pairs_pay_eleven_beside_the_rest(game, "11(25)")


# ---- 11(26) to 11(31)


@pytest.mark.article("11(26)", "11(26)(a)")
def test_five_percent_of_what_the_banker_wins() -> None:
    for cards in (BANKER_WINS, BANKER_5):
        result = only(play(game(deduction="5_percent"), shoe(cards, bet(1, "banker"))))
        assert (returned(result), "11(26)(a)" in laws(result)) == ([195], True)
    assert returned(only(play(game(deduction="5_percent"), shoe(PLAYER_WINS, bet(1, "player"))))) == [200]


@pytest.mark.article("11(26)", "11(26)(b)")
def test_fifty_percent_where_the_banker_wins_with_five() -> None:
    ruleset = game(deduction="50_percent_on_5", smallest_chip=10, rounding="up")
    five, nine = (only(play(ruleset, shoe(cards, bet(1, "banker", 50)))) for cards in (BANKER_5, BANKER_WINS))
    assert (returned(five), "11(26)(b)" in laws(five)) == ([80], True)
    assert (returned(nine), "11(26)(b)" in laws(nine)) == ([100], False)


@pytest.mark.article("11(26)")
def test_without_a_deduction_the_banker_pays_even() -> None:
    assert returned(only(play(game(), shoe(BANKER_5, bet(1, "banker"))))) == [200]


@pytest.mark.article("11(27)")
def test_no_bet_has_a_limit_of_its_own() -> None:
    bets = (bet(1, "player", 10**9), bet(2, "banker", 10**9), bet(1, "tie", 10), bet(1, "player_pair", 8))
    result = only(play(game(maximum_difference=100), shoe(PLAYER_WINS, *bets)))
    assert (len(result.settlements), noted(result)) == (4, [])
    refuses(AngolaBaccaratMacau, {"maximum": 100}, "no option 'maximum'")


@pytest.mark.article("11(28)", "11(29)")
@pytest.mark.parametrize(("heavy", "light"), [("player", "banker"), ("banker", "player")])
def test_the_sides_differ_by_no_more_than_the_table_bears(heavy: str, light: str) -> None:
    """The latest bets on the heavier side go back; a later bet on the other side covers an earlier one."""
    ruleset = game(maximum_difference=300)
    bets = (bet(1, heavy, 500), bet(2, heavy, 250), bet(3, light, 200), bet(4, heavy, 60), bet(5, "tie", 30))
    result = only(play(ruleset, shoe(PLAYER_WINS, *bets)))
    kept = [one for one in result.settlements if one.seat not in (2, 4)]
    assert [(one.seat, one.stake) for one in kept] == [(1, 500), (3, 200), (5, 30)]
    whole = [one for one in result.settlements if one.seat in (2, 4)]
    assert [(one.seat, one.bet, one.stake, one.returned) for one in whole] == [
        (4, heavy, 60, 60),
        (2, heavy, 250, 250),
    ], "what was taken and goes back as a whole stands in the result"
    assert noted(result) == [("side_difference", "11(29)")] * 2
    exact = only(play(ruleset, shoe(PLAYER_WINS, *bets[:1], bet(3, light, 200))))
    assert (len(exact.settlements), noted(exact)) == (2, [])
    alone = only(play(game(), shoe(PLAYER_WINS, *bets)))
    assert (len(alone.settlements), noted(alone)) == (5, [])


@pytest.mark.article("11(29)")
@pytest.mark.parametrize(
    ("bets", "smallest_chip", "stakes"),
    [
        # one bet that the other side mostly covers: without it that side would be too heavy
        ([("banker", 1000), ("player", 1400)], 1, [1000, 1300]),
        ([("player", 250), ("banker", 100), ("banker", 500)], 1, [250, 100, 450]),
        ([("banker", 1000), ("player", 1305)], 10, [1000, 1295]),  # chips that can be given back
        ([("banker", 1000), ("player", 1300), ("player", 4)], 10, [1000, 1300, 4]),  # the last one goes back as a whole
    ],
)
def test_of_the_latest_bet_only_what_is_too_much_goes_back(
    bets: list[tuple[str, int]], smallest_chip: int, stakes: list[int]
) -> None:
    ruleset = game(maximum_difference=300, smallest_chip=smallest_chip)
    laid = [bet(seat, on, amount) for seat, (on, amount) in enumerate(bets, 1)]
    result = only(play(ruleset, shoe(PLAYER_WINS, *laid)))
    assert [one.stake for one in result.settlements] == stakes
    assert noted(result) == [("side_difference", "11(29)")]


@pytest.mark.article("11(29)")
def test_after_a_loss_no_side_is_said_to_exceed_the_other() -> None:
    check.bets_are_not_judged_after_a_loss(game, bet(1, "player", 301), maximum_difference=300)


@pytest.mark.article("11(30)")
def test_all_bets_on_the_tie_are_a_tenth_of_it() -> None:
    bets = (bet(1, "tie", 20), bet(2, "tie", 11), bet(3, "tie", 10), bet(3, "tie", 1))
    result = only(play(game(maximum_difference=309), shoe(PLAYER_WINS, *bets)))
    assert [(one.seat, one.stake) for one in result.settlements] == [(1, 20), (3, 10)]
    assert noted(result) == [("chance_total", "11(30)")] * 2


@pytest.mark.article("11(31)")
@pytest.mark.parametrize(("pairs_limit", "kept"), [("each", [8, 8]), ("together", [8])])
def test_all_bets_on_a_pair_are_eight_percent_of_it(pairs_limit: str, kept: list[int]) -> None:
    bets = (bet(1, "player_pair", 8), bet(2, "banker_pair", 8), bet(3, "player_pair", 1))
    result = only(play(game(maximum_difference=100, pairs_limit=pairs_limit), shoe(PLAYER_WINS, *bets)))
    assert [one.stake for one in result.settlements] == kept
    assert noted(result) == [("chance_total", "11(31)")] * (3 - len(kept))
