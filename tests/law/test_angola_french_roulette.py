"""Angola's French roulette, article by article: Decreto Executivo 261/22 art. 2."""

from datetime import timedelta
from typing import Any

import pytest
import roulettes
from helpers import codes, game_of, only, play, results, settled
from roulettes import BACK, CLOTH, LARGEST, paid, spin

from protocols.contract.events import (
    BallChanged,
    BallLanded,
    BallReplaced,
    BetsOpened,
    DealerRelieved,
    Event,
    RoundPaid,
    SpinVoided,
    WagerPlaced,
)
from protocols.contract.payouts import payout_order
from rules.angola.french_roulette import DUTIES, FAMILIES, FrenchRoulette, FrenchRouletteOptions
from rules.engine.duties import Duty
from rules.engine.ruleset import BadOption, Corrected, Noted, Suspended, options_from, options_of

LAW = "angola.french-roulette"
TEXT = "Decreto Executivo 261/22 art."


wheel = game_of(FrenchRoulette)


@pytest.mark.article("2(2)", "2(6)", "2(15)")
def test_thirty_seven_pockets_with_the_usual_colours() -> None:
    roulettes.pockets_and_colours(wheel())


@pytest.mark.article("2(16)a)i", "2(16)a)ii", "2(16)a)iii", "2(16)a)iv", "2(16)a)v", "2(16)a)vi", "2(16)a)vii")
@pytest.mark.article("2(16)a)viii", "2(16)a)ix", "2(16)b)i", "2(16)b)ii", "2(16)b)iii", "2(16)b)iv", "2(16)b)v")
@pytest.mark.article("2(16)b)vi", "2(17)", "2(18)a)i", "2(18)a)ii", "2(18)a)iii", "2(18)a)iv", "2(18)a)v")
@pytest.mark.article("2(18)a)vi", "2(18)a)vii", "2(18)a)viii", "2(18)a)ix", "2(18)b)")
@pytest.mark.parametrize("family", roulettes.COUNTS)
def test_every_bet_wins_on_its_numbers_and_pays_as_printed(family: str) -> None:
    roulettes.bets_pay_as_printed(wheel(), family)


@pytest.mark.article("2(18)")
@pytest.mark.parametrize(
    ("pocket", "bet"),
    [
        *((17, "straight:17"), (17, "split:17-18"), (0, "street:0-2-3"), (0, "corner:0-1-2-3"), (3, "split:0-3")),
        *((36, "line:31-32-33-34-35-36"), (12, "dozen:1"), (34, "column:1"), (24, "double_dozen:1-2")),
        *((35, "double_column:2-3"), (8, "even"), (9, "odd"), (18, "low"), (19, "high"), (32, "red"), (33, "black")),
    ],
)
def test_the_winner_keeps_the_stake_and_has_the_prize(pocket: int, bet: str) -> None:
    roulettes.winner_keeps_the_stake(wheel(), pocket, bet)


@pytest.mark.article("2(16)a)viii", "2(16)a)ix")
def test_two_dozens_that_do_not_touch_are_a_double_where_the_house_says_so() -> None:
    apart = {"double_dozen:1-3", "double_column:1-3"}
    assert set(wheel(doubles="any").board) - set(wheel().board) == apart
    assert set(wheel().board) <= set(wheel(doubles="any").board)
    wins = paid(wheel(doubles="any"))
    covered = {pocket for pocket in range(37) if "double_dozen:1-3" in wins[pocket]}
    assert covered == {*range(1, 13), *range(25, 37)}


@pytest.mark.article("2(19)")
def test_zero_takes_the_outside_bets_whole() -> None:
    roulettes.zero_takes(wheel(), f"{TEXT} 2(19)")


@pytest.mark.article("2(11)")
def test_the_ball_is_launched_once_all_was_paid() -> None:
    roulettes.launch_waits_for_the_payment(wheel, f"{TEXT} 2(11)")


@pytest.mark.article("2(12)")
def test_the_call_ends_the_bets_while_the_ball_runs() -> None:
    roulettes.call_ends_the_bets(wheel(), f"{TEXT} 2(12)", "Jogo feito, nada mais")


@pytest.mark.article("2(13)")
def test_the_ball_runs_one_way_round_and_then_the_other() -> None:
    roulettes.ball_alternates(wheel, f"{TEXT} 2(13)")


@pytest.mark.article("2(13)")
def test_a_ball_that_runs_with_the_wheel_is_irregular_and_counts() -> None:
    roulettes.ball_with_the_wheel_is_irregular(wheel(), f"{TEXT} 2(13)")


@pytest.mark.article("2(14)")
def test_what_falls_on_the_wheel_makes_the_spin_null_and_the_bets_stand() -> None:
    roulettes.null_spin_leaves_the_bets(wheel(), f"{TEXT} 2(14)")


@pytest.mark.article("2(20)", "2(21)")
def test_losing_bets_then_prizes_in_the_printed_order_each_player_together() -> None:
    order = ["column", "double_column", "dozen", "double_dozen", "even", "odd", "low", "high", "red", "black"]
    order += ["line", "street", "corner", "split", "straight"]
    assert list(FAMILIES) == order
    roulettes.prizes_stand_in_order(wheel(), order)
    ruleset = wheel(bets_offered=("straight", "red", "column"))  # whatever order the house names them in
    assert [bet.id.partition(":")[0] for bet in ruleset.bets()] == ["column", "red", "straight"]


@pytest.mark.article("2(23)")
def test_chips_moved_after_the_spin_was_decided_are_paid_as_they_lay() -> None:
    roulettes.marks_are_laid_again(wheel())


@pytest.mark.article("2(24)a)", "2(24)b)")
@pytest.mark.parametrize(("name", "bet", "ratio"), LARGEST)
def test_every_bet_has_its_smallest_and_largest(name: str, bet: str, ratio: int) -> None:
    roulettes.limits_are_kept(FrenchRoulette, name, bet, ratio, "art. 2(24)")


@pytest.mark.article("2(24)b)")
def test_bets_that_stand_after_a_null_spin_have_the_same_limits() -> None:
    roulettes.limits_hold_after_a_null_spin(wheel(minimum=10), 5400)


@pytest.mark.article("2(9)", "2(25)")
def test_ball_and_dealer_change_every_hour() -> None:
    assert (
        Duty("ball_change", f"{TEXT} 2(9)", (BallChanged,), timedelta(hours=1)),
        Duty("dealer_relief", f"{TEXT} 2(25)", (DealerRelieved,), timedelta(hours=1)),
    ) == DUTIES


@pytest.mark.article("2(10)")
def test_another_ball_disturbs_no_spin() -> None:
    roulettes.another_ball_disturbs_nothing(wheel())


@pytest.mark.article("2(22)")
def test_each_payment_stands_by_itself_with_its_bet_and_prize() -> None:
    bets = [WagerPlaced(1, "straight:5", 10), WagerPlaced(1, "red", 20), WagerPlaced(1, "straight:5", 5)]
    result = only(play(wheel(), spin("5", *bets)))
    assert settled(result) == [(1, "red", 20, 40), (1, "straight:5", 15, 540)]
    assert {win.bet: win.pays for win in result.winners}["straight:5"] == "35"


@pytest.mark.article("2(22)")
def test_each_payment_is_called_in_the_printed_sequence() -> None:
    bets = [WagerPlaced(2, "straight:5", 15), WagerPlaced(1, "red", 20), WagerPlaced(1, "black", 20)]
    payout = payout_order(only(play(wheel(), spin("5", *bets))))
    assert payout.calls == ("encarnado de 20, lugar 1, total de 20", "pleno de 15, lugar 2, total de 525")
    assert payout.calls_law == f"{TEXT} 2(22)"
    assert payout_order(only(play(wheel(), spin("8", *bets[:2])))).calls == ()


@pytest.mark.article("2(15)")
def test_of_two_numbers_that_were_entered_the_one_entered_again_stands() -> None:
    events = [*spin("17", WagerPlaced(1, "straight:27", 10)), BallLanded("27")]
    doubted = play(wheel(), events)
    assert isinstance(doubted[-1], Suspended)
    assert doubted[-1].remedy.code == "do_enter_ball"
    (ended,) = [one.result for one in play(wheel(), [*events, BallLanded("27")]) if isinstance(one, Corrected)]
    assert (ended.outcome["pocket"], settled(ended)) == ("27", [(1, "straight:27", 10, 360)])
    assert codes(ended) == ["landings_contradict"]
    (first,) = [one.result for one in play(wheel(), [*events, RoundPaid()]) if isinstance(one, Corrected)]
    assert first.outcome["pocket"] == "17"


def test_the_direction_of_a_spin_whose_number_was_corrected_counts_once() -> None:
    events = [*spin("17"), BallLanded("27"), BallLanded("27"), RoundPaid()]
    assert codes(results(play(wheel(), [*events, *spin("5")]))[-1]) == ["ball_not_alternated"]
    assert codes(results(play(wheel(), [*events, *spin("5", launch=BACK)]))[-1]) == []


@pytest.mark.article("2(14)", "2(15)")
def test_after_a_null_spin_the_ball_goes_back_to_the_corrected_number() -> None:
    corrected = [*spin("17"), BallLanded("27"), BallLanded("27"), RoundPaid()]
    null: list[Event] = [BetsOpened(), BACK, SpinVoided("chip")]
    for pocket, notes in (("27", []), ("17", ["ball_in_wrong_pocket"])):
        verdicts = play(wheel(), [*corrected, *null, BallReplaced(pocket)])
        assert [one.irregularity.code for one in verdicts if isinstance(one, Noted)] == notes


def test_the_french_cloth_holds_nothing_else() -> None:
    assert set(wheel().board) == set(CLOTH)


def test_every_option_cites_the_article() -> None:
    cited = {one.name: one.law for one in options_of(FrenchRouletteOptions)}
    assert cited == {
        "limits": "-",
        "payment": "arts. 1(22), 2(11)",
        "null_spin_alternates": "arts. 1(24), 2(13)",
        "doubles": "arts. 1(27), 2(16)",
        "minimum": "arts. 1(35), 2(24)",
        **dict.fromkeys(("maximum_straight", "maximum_split", "maximum_street"), "arts. 1(35)a), 2(24)a)"),
        **dict.fromkeys(("maximum_corner", "maximum_line", "maximum_dozen"), "arts. 1(35)a), 2(24)a)"),
        "maximum_double": "arts. 1(35)a), 2(24)a)",
        "maximum_chance": "arts. 1(35)b), 2(24)b)",
        "smallest_chip": "-",
        "rounding": "-",
        "bets_offered": "art. 2(16)",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bets_offered": ["orphans"]}, "art. 2(16) has no bet 'orphans'"),
        ({"order": "american"}, "no option 'order'"),
        ({"maximum_split": 100}, "art. 2(24): maximum_split"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(FrenchRoulette, given)
    assert says in str(refused.value)


def test_a_prize_the_smallest_chip_cannot_pay_is_rounded_in_the_stated_direction() -> None:
    for rounding, returned in (("down", 205 + 100), ("up", 205 + 200)):
        ruleset = wheel(smallest_chip=100, rounding=rounding)
        result = only(play(ruleset, spin("5", WagerPlaced(1, "double_dozen:1-2", 205))))
        assert [(one.returned, one.exact) for one in result.settlements] == [(returned, "615/2")]


@pytest.mark.article("2(24)a)", "2(24)b)")
@pytest.mark.parametrize("name", [one for one, _, _ in LARGEST])
def test_options_are_taken_to_their_ends(name: str) -> None:
    ratio = next(ratio for one, _, ratio in LARGEST if one == name)
    most = 10 * ratio
    for given in ({"minimum": 0}, {"smallest_chip": 1}, {"minimum": 10, name: 10}, {"minimum": 10, name: most}):
        assert options_from(FrenchRoulette, given)
    for wrong in (
        {"minimum": -1},
        {"smallest_chip": 0},
        {"minimum": 10, name: 9},
        {"minimum": 10, name: most + 1},
    ):
        with pytest.raises(BadOption):
            options_from(FrenchRoulette, wrong)
