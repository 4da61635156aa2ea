"""Angola's American roulette, article by article: Decreto Executivo 261/22 art. 1."""

from collections import Counter
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
import roulettes
from helpers import at_length, codes, game_of, only, play, results, settled
from hypothesis import example, given, settings, strategies as st
from roulettes import (
    BACK,
    CLOTH,
    LARGEST,
    LAUNCH,
    WITH_ROTOR,
    chips_are_conserved,
    paid,
    returned,
    spin,
    spins,
)

from protocols.contract.events import (
    BallChanged,
    BallLanded,
    BallReplaced,
    BallSettling,
    BetsClosed,
    BetsOpened,
    DealerRelieved,
    DeviceOnline,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    SeatClosed,
    SeatOpened,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.payouts import payout_order
from protocols.contract.results import Result, Settlement
from rules.angola.american_roulette import DUTIES, FAMILIES, AmericanRoulette, AmericanRouletteOptions
from rules.engine.duties import Duty
from rules.engine.ruleset import BadOption, Noted, options_from, options_of
from rules.games.roulette_cloth import AMERICAN_ORDER, FRENCH_ORDER

LAW = "angola.american-roulette"
TEXT = "Decreto Executivo 261/22 art."


wheel = game_of(AmericanRoulette)


@pytest.mark.article("1(2)", "1(6)", "1(26)")
def test_thirty_seven_pockets_with_the_usual_colours() -> None:
    roulettes.pockets_and_colours(wheel())


@pytest.mark.article("1(27)a)i", "1(27)a)ii", "1(27)a)iii", "1(27)a)iv", "1(27)a)v", "1(27)a)vi", "1(27)a)vii")
@pytest.mark.article("1(27)a)viii", "1(27)a)ix", "1(27)b)i", "1(27)b)ii", "1(27)b)iii", "1(27)b)iv", "1(27)b)v")
@pytest.mark.article("1(27)b)vi", "1(29)", "1(30)a)i", "1(30)a)ii", "1(30)a)iii", "1(30)a)iv", "1(30)a)v")
@pytest.mark.article("1(30)a)vi", "1(30)a)vii", "1(30)a)viii", "1(30)a)ix", "1(30)b)")
@pytest.mark.parametrize("family", roulettes.COUNTS)
def test_every_bet_wins_on_its_numbers_and_pays_as_printed(family: str) -> None:
    roulettes.bets_pay_as_printed(wheel(), family)


@pytest.mark.article("1(30)")
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


@pytest.mark.article("1(27)a)viii", "1(27)a)ix")
def test_two_dozens_that_do_not_touch_are_a_double_where_the_house_says_so() -> None:
    apart = {"double_dozen:1-3", "double_column:1-3"}
    assert set(wheel(doubles="any").board) - set(wheel().board) == apart
    wins = paid(wheel(doubles="any"))
    covered = {pocket for pocket in range(37) if "double_dozen:1-3" in wins[pocket]}
    assert covered == {*range(1, 13), *range(25, 37)}


@pytest.mark.article("1(31)")
def test_zero_takes_the_outside_bets_whole() -> None:
    roulettes.zero_takes(wheel(), f"{TEXT} 1(31)")


@pytest.mark.article("1(22)")
def test_the_ball_is_launched_once_all_was_paid() -> None:
    roulettes.launch_waits_for_the_payment(wheel, f"{TEXT} 1(22)")


@pytest.mark.article("1(23)")
def test_the_call_ends_the_bets_while_the_ball_runs() -> None:
    roulettes.call_ends_the_bets(wheel(), f"{TEXT} 1(23)", "Jogo feito. Nada mais.")


@pytest.mark.article("1(24)")
def test_the_ball_runs_one_way_round_and_then_the_other() -> None:
    roulettes.ball_alternates(wheel, f"{TEXT} 1(24)")


@pytest.mark.article("1(24)")
def test_a_ball_that_runs_with_the_wheel_is_irregular_and_counts() -> None:
    roulettes.ball_with_the_wheel_is_irregular(wheel(), f"{TEXT} 1(24)")


@pytest.mark.article("1(25)")
def test_what_falls_on_the_wheel_makes_the_spin_null_and_the_bets_stand() -> None:
    roulettes.null_spin_leaves_the_bets(wheel(), f"{TEXT} 1(25)")


@pytest.mark.article("1(32)", "1(33)")
def test_losing_bets_then_prizes_in_the_printed_order_each_player_together() -> None:
    order = ["column", "double_column", "even", "odd", "low", "high", "red", "black", "dozen", "double_dozen"]
    order += ["neighbours", "large_series", "small_series", "orphans", "line", "street", "corner", "split", "straight"]
    assert list(FAMILIES) == order
    roulettes.prizes_stand_in_order(wheel(), order)
    ruleset = wheel(bets_offered=("straight", "red", "column"))  # whatever order the house names them in
    assert [bet.id.partition(":")[0] for bet in ruleset.bets()] == ["column", "red", "straight"]


@pytest.mark.article("1(33)")
def test_the_payments_of_each_player_are_called_together_with_their_values() -> None:
    bets = [("column:2", 4), ("red", 3), ("straight:17", 4), ("large_series", 5), ("black", 3)]
    laid = [WagerPlaced(seat, bet, 9 if bet == "large_series" else 10) for bet, seat in bets]
    payout = payout_order(only(play(wheel(), spin("17", *laid))))
    assert payout.calls == ("Lugar 4: coluna 20, pleno 350; total de 370", "Lugar 3: preto 10; total de 10")
    assert payout.calls_law == f"{TEXT} 1(33)"


def test_every_family_of_bets_has_a_word_for_the_call() -> None:
    for family in FAMILIES:
        won = Settlement(1, family, 10, 20)
        (call,) = payout_order(Result("r", "angola.american-roulette", settlements=(won,))).calls
        assert family not in call.split(), "the word for the call is missing"


@pytest.mark.article("1(34)")
def test_chips_moved_after_the_spin_was_decided_are_paid_as_they_lay() -> None:
    roulettes.marks_are_laid_again(wheel())


@pytest.mark.article("1(35)a)", "1(35)b)")
@pytest.mark.parametrize(("name", "bet", "ratio"), LARGEST)
def test_every_bet_has_its_smallest_and_largest(name: str, bet: str, ratio: int) -> None:
    roulettes.limits_are_kept(AmericanRoulette, name, bet, ratio, "art. 1(35)")


@pytest.mark.article("1(35)b)")
def test_bets_that_stand_after_a_null_spin_have_the_same_limits() -> None:
    roulettes.limits_hold_after_a_null_spin(wheel(minimum=10), 5400)


@pytest.mark.article("1(20)", "1(36)")
def test_ball_and_dealer_change_every_hour() -> None:
    assert (
        Duty("ball_change", f"{TEXT} 1(20)", (BallChanged,), timedelta(hours=1)),
        Duty("dealer_relief", f"{TEXT} 1(36)", (DealerRelieved,), timedelta(hours=1)),
    ) == DUTIES


@pytest.mark.article("1(21)")
def test_another_ball_disturbs_no_spin() -> None:
    roulettes.another_ball_disturbs_nothing(wheel())


# ---- announced bets: the chips written out once more, by the letter of 1(28)a)

CHIPS: dict[str, list[tuple[str, int]]] = {
    "large_series": [
        *(("street:0-2-3", 2), ("split:4-7", 1), ("split:12-15", 1), ("split:18-21", 1), ("split:19-22", 1)),
        *(("corner:25-26-28-29", 2), ("split:32-35", 1)),
    ],
    "small_series": [
        (bet, 1) for bet in ("split:5-8", "split:10-11", "split:13-16", "split:23-24", "split:27-30", "split:33-36")
    ],
    "orphans": [
        *(("straight:1", 1), ("split:6-9", 1), ("split:14-17", 1), ("split:17-20", 1), ("split:31-34", 1)),
    ],
}
FRENCH = [
    *("0", "32", "15", "19", "4", "21", "2", "25", "17", "34", "6", "27", "13", "36", "11", "30", "8", "23", "10"),
    *("5", "24", "16", "33", "1", "20", "14", "31", "9", "22", "18", "29", "7", "28", "12", "35", "3", "26"),
]
CHIPS |= {
    f"neighbours:{number}-{size}": [
        (f"straight:{FRENCH[(place + step) % 37]}", 1) for step in range(-(size // 2), size // 2 + 1)
    ]
    for place, number in enumerate(FRENCH)
    for size in (3, 5, 7)
}


@pytest.mark.article("1(28)a)i", "1(28)a)ii", "1(28)a)iii", "1(30)c)")
@pytest.mark.parametrize(
    ("series", "chips", "numbers"), [("large_series", 9, 17), ("small_series", 6, 12), ("orphans", 5, 8)]
)
def test_a_series_is_settled_as_its_chips_on_the_cloth(series: str, chips: int, numbers: int) -> None:
    assert sum(count for _, count in CHIPS[series]) == chips
    winning = 0
    for pocket in range(37):
        (one,) = returned(wheel(), pocket, WagerPlaced(1, series, chips * 10))
        laid = returned(wheel(), pocket, *(WagerPlaced(1, bet, count * 10) for bet, count in CHIPS[series]))
        assert one.returned == sum(chip.returned for chip in laid)
        assert one.stake == sum(chip.stake for chip in laid)
        winning += one.returned > 0
    assert winning == numbers


@pytest.mark.article("1(28)b)", "1(28)b)i", "1(28)b)ii", "1(28)b)iii", "1(30)d)")
@pytest.mark.parametrize("size", [3, 5, 7])
def test_a_number_and_its_neighbours_are_as_many_straights(size: int) -> None:
    on_board = [bet for bet in wheel().board if bet.startswith("neighbours:") and bet.endswith(f"-{size}")]
    assert len(on_board) == 37
    wins = paid(wheel())
    for bet in on_board:
        covered = {int(place.partition(":")[2]) for place, _ in CHIPS[bet]}
        assert {pocket for pocket in range(37) if bet in wins[pocket]} == covered
    for pocket, back in ((17, 360), (25, 360), (34, 360), (35, 0)):
        assert [
            one.returned for one in returned(wheel(), pocket, WagerPlaced(1, f"neighbours:17-{size}", 10 * size))
        ] == [back]


@pytest.mark.article("1(28)a)iii")
@pytest.mark.parametrize(("pocket", "back"), [(1, 360), (17, 360), (6, 180), (20, 180), (14, 180), (0, 0)])
def test_on_17_two_chips_of_the_orphans_win(pocket: int, back: int) -> None:
    assert [one.returned for one in returned(wheel(), pocket, WagerPlaced(1, "orphans", 50))] == [back]


@pytest.mark.article("1(30)c)")
@pytest.mark.parametrize(("pocket", "back"), [(0, 240), (3, 240), (28, 180), (12, 180), (35, 180), (1, 0)])
def test_of_the_large_series_two_chips_win_on_the_street_and_on_the_corner(pocket: int, back: int) -> None:
    """Two chips of 10 on 0-2-3 bring 2 x 120, two on 25-26-28-29 2 x 90, one on a split 180."""
    assert [one.returned for one in returned(wheel(), pocket, WagerPlaced(1, "large_series", 90))] == [back]


def test_each_chip_is_rounded_by_itself() -> None:
    """A chip of 30: the prize of 510 is paid as 500 and the chip comes back; the eight lost chips are no part of it."""
    (one,) = returned(wheel(smallest_chip=100), 12, WagerPlaced(1, "large_series", 270))
    assert (one.returned, one.exact) == (530, "540")
    (up,) = returned(wheel(smallest_chip=100, rounding="up"), 17, WagerPlaced(1, "orphans", 150))
    assert (up.returned, up.exact) == (2 * 630, "1080")


@pytest.mark.article("1(28)")
def test_a_result_with_an_announced_bet_cites_its_paragraph() -> None:
    laws = [only(play(wheel(), spin("5", WagerPlaced(1, bet, 10)))).law[-1] for bet in ("orphans", "red")]
    assert laws == [f"{TEXT} 1(28)", f"{TEXT} 1(30)"]


@pytest.mark.article("1(2)a)", "1(2)b)", "1(28)")
def test_announced_bets_need_the_french_order_of_the_pockets() -> None:
    announced = {"neighbours", "large_series", "small_series", "orphans"}
    for order, offered in (("french", announced), ("american", set())):
        assert {bet.partition(":")[0] for bet in wheel(order=order).board} & announced == offered
    assert set(wheel(order="american").board) == set(CLOTH)
    refused = only(play(wheel(order="american"), spin("5", WagerPlaced(1, "orphans", 50))))
    assert (codes(refused), refused.settlements) == (["bet_not_offered"], ())
    with pytest.raises(BadOption, match=r"art. 1\(28\): orphans need the French order"):
        options_from(AmericanRoulette, {"order": "american", "bets_offered": ["red", "orphans"]})


@pytest.mark.article("1(2)a)", "1(2)b)")
def test_both_orders_of_the_pockets_are_as_printed() -> None:
    american = "0-28-9-26-30-11-7-20-32-17-5-22-34-15-3-24-36-13-1-27-10-25-29-12-8-19-31-18-6-21-33-16-4-23-35-14-2"
    assert [str(number) for number in FRENCH_ORDER] == FRENCH
    assert "-".join(map(str, AMERICAN_ORDER)) == american
    assert sorted(FRENCH_ORDER) == sorted(AMERICAN_ORDER) == list(range(37))


def test_a_series_is_settled_also_where_its_places_are_not_offered() -> None:
    ruleset = wheel(bets_offered=("orphans", "red"))
    assert [one.returned for one in returned(ruleset, 17, WagerPlaced(1, "orphans", 5))] == [36]


@pytest.mark.article("1(35)c)i", "1(35)c)ii", "1(35)c)iii")
@pytest.mark.parametrize(
    ("series", "chips", "most"), [("large_series", 9, 135), ("small_series", 6, 120), ("orphans", 5, 50)]
)
def test_a_series_is_a_whole_multiple_of_its_chips(series: str, chips: int, most: int) -> None:
    limited = wheel(minimum=10)

    def taken(ruleset: AmericanRoulette, *bets: Event) -> tuple[list[str], list[int]]:
        result = only(play(ruleset, spin("36", *bets)))
        assert {note.law for note in result.irregularities} <= {f"{TEXT} 1(35)c)"}
        return codes(result), [one.stake for one in result.settlements]

    for times in (1, 2, most // chips):
        assert taken(limited, WagerPlaced(1, series, times * chips * 10)) == ([], [times * chips * 10])
    for amount in (chips * 10 - 10, chips * 10 + 10, chips * 5, most * 10 + chips * 10):
        assert taken(limited, WagerPlaced(1, series, amount)) == (["not_whole_chips"], [])
    back = (WagerPlaced(1, series, chips * 20), WagerWithdrawn(1, series, 10), WagerWithdrawn(1, series, chips * 10))
    assert taken(limited, *back) == (["not_whole_chips"], [chips * 10])
    for whole in (0, chips * 10):
        assert taken(limited, WagerPlaced(1, series, chips * 10), WagerWithdrawn(1, series, whole)) == ([], [])
    more = only(
        play(limited, spin("36", WagerPlaced(1, series, chips * 10), WagerWithdrawn(1, series, chips * 10 + 1)))
    )
    assert codes(more) == ["bet_not_placed"]
    # Another player's colour may be worth more: one of the values that the table has.
    posted = wheel(minimum=10, chip_values=(10, 50))
    assert taken(posted, WagerPlaced(1, series, most * 50)) == ([], [most * 50])
    assert taken(posted, WagerPlaced(1, series, most * 50 + chips * 50)) == (["not_whole_chips"], [])
    # Of what a chip is worth nothing is known: a whole multiple of anything.
    assert taken(wheel(), WagerPlaced(1, series, 1000 * chips)) == ([], [1000 * chips])
    assert taken(wheel(), WagerPlaced(1, series, 1000 * chips + 1)) == (["not_whole_chips"], [])


@pytest.mark.article("1(35)d)")
def test_neighbours_and_straights_of_one_player_stay_within_the_largest_straight() -> None:
    """Minimum 10, largest straight 300: on each number, for each player."""

    def refused(*bets: tuple[int, str, int]) -> list[tuple[str, str, int]]:
        result = only(play(wheel(minimum=10), spin("36", *(WagerPlaced(*bet) for bet in bets))))
        return [(one.code, one.law, int(one.reason.values["amount"])) for one in result.irregularities]

    law = f"{TEXT} 1(35)d)"
    assert refused((1, "neighbours:17-3", 900)) == []
    assert refused((1, "neighbours:17-3", 930)) == [("bet_outside_limits", law, 310)]
    assert refused((1, "neighbours:17-5", 1000), (1, "straight:25", 100)) == []
    assert refused((1, "neighbours:17-5", 1000), (1, "straight:25", 110)) == [("bet_outside_limits", law, 310)]
    assert refused((1, "straight:25", 110), (1, "neighbours:17-5", 1000)) == [("bet_outside_limits", law, 310)]
    assert refused((1, "neighbours:17-3", 600), (1, "neighbours:25-3", 600)) == [("bet_outside_limits", law, 400)]
    assert refused((1, "neighbours:17-3", 900), (2, "straight:17", 300), (1, "straight:32", 300)) == []
    assert refused((1, "neighbours:17-3", 31)) == [("not_whole_chips", law, 31)]
    for straight, notes in ((29, []), (30, [("bet_outside_limits", law, 31)])):  # minimum 1, largest straight 30
        bets = WagerPlaced(1, "straight:17", straight), WagerPlaced(1, "neighbours:17-3", 3)
        result = only(play(wheel(minimum=1), spin("36", *bets)))
        assert [(one.code, one.law, one.reason.values["amount"]) for one in result.irregularities] == notes


@pytest.mark.article("1(11)")
@pytest.mark.parametrize("value", [15, 0, 310, 5])
def test_a_chip_is_worth_a_whole_multiple_of_the_minimum_up_to_the_largest_straight(value: int) -> None:
    with pytest.raises(BadOption, match=rf"art. 1\(11\): chip_values: {value} is no whole multiple"):
        options_from(AmericanRoulette, {"minimum": 10, "chip_values": [10, value]})
    assert options_from(AmericanRoulette, {"minimum": 10, "chip_values": [10, 300]}).chip_values == (10, 300)
    with pytest.raises(BadOption, match=r"art. 1\(11\)"):
        options_from(AmericanRoulette, {"chip_values": [10]})
    with pytest.raises(BadOption, match=r"art. 1\(11\): chip_values names a value twice"):
        options_from(AmericanRoulette, {"minimum": 10, "chip_values": [10, 10]})


# ---- colours


def idle(*events: Event, **options: Any) -> list[int]:
    """The seats that lose their colour, in order."""
    notes = [one.irregularity for one in play(wheel(**options), events) if isinstance(one, Noted)]
    assert {note.law for note in notes if note.code == "colour_idle"} <= {f"{TEXT} 1(15)"}
    return [int(note.reason.values["seat"]) for note in notes if note.code == "colour_idle"]


@pytest.mark.article("1(15)")
def test_a_colour_that_did_not_bet_in_three_spins_is_named_once() -> None:
    three = spins("1", "2", "3")
    bet = spin("4", WagerPlaced(2, "red", 10))
    assert idle(SeatOpened(2), *three, *three, colours="watched") == [2]
    assert idle(SeatOpened(2), *spins("1", "2"), colours="watched") == []
    assert idle(SeatOpened(2), *spins("1", "2"), *bet, *spins("5", "6"), colours="watched") == []
    assert idle(*bet, *three, colours="watched") == [2]  # who bets is in play
    assert idle(SeatOpened(2), *three[:-1], SeatClosed(2), *three, colours="watched") == [2]
    assert idle(SeatOpened(2), SeatClosed(2), *three, colours="watched") == []
    assert idle(SeatOpened(2), *three) == []
    # A null spin is none of the three, and after a loss who bet is not known.
    null: list[Event] = [BetsOpened(), LAUNCH, SpinVoided("chip"), BACK]
    assert idle(SeatOpened(2), *spins("1", "2"), *null, colours="watched") == []
    taken_back = [*spins("1", "2")[:-1], RoundVoided("chip"), *spins("3")]
    assert idle(SeatOpened(2), *taken_back, colours="watched") == []
    assert idle(SeatOpened(2), *taken_back, *spins("4"), colours="watched") == [2]
    first_taken_back = [*spins("1")[:-1], RoundVoided("chip"), *spins("2", "3")]
    assert idle(SeatOpened(2), *first_taken_back, colours="watched") == []
    assert idle(SeatOpened(2), *spins("1", "2"), EventsMissed(1), *three, colours="watched") == []


def test_every_option_cites_the_article() -> None:
    cited = {one.name: one.law for one in options_of(AmericanRouletteOptions)}
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
        "order": "art. 1(2)",
        "chip_values": "art. 1(11)",
        "colours": "art. 1(15)",
        "bets_offered": "arts. 1(27)-(28)",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bets_offered": ["sector_a"]}, "art. 1(27) has no bet 'sector_a'"),
        ({"order": "italian"}, "order: french | american"),
        ({"maximum_chance": 5401, "minimum": 10}, "art. 1(35): maximum_chance"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(AmericanRoulette, given)
    assert says in str(refused.value)


def test_a_regular_spin() -> None:
    result = only(play(wheel(), spin("17", WagerPlaced(1, "straight:17", 100), WagerPlaced(2, "red", 300))))
    assert (result.ruleset, result.edition, result.void) == ("angola.american-roulette", "2022", None)
    assert result.law == tuple(f"{TEXT} 1({paragraph})" for paragraph in (26, 27, 30))
    assert settled(result) == [(2, "red", 300, 0), (1, "straight:17", 100, 3600)]
    assert result.evidence == ("e1", "e2", "e3", "e4", "e5", "e6")


def test_the_house_edge_is_one_in_37_on_every_bet() -> None:
    table = paid(wheel())
    for bet in wheel().board:
        gain = sum((table[pocket].get(bet, Fraction(-1)) for pocket in range(37)), Fraction())
        assert gain / 37 == Fraction(-1, 37), bet


# ---- properties

STEPS: list[Event] = [
    *(SpinStarted(), BetsOpened(), BetsClosed(), LAUNCH, BACK, WITH_ROTOR, BallSettling(), BallLanded("5")),
    *(
        BallLanded("17"),
        BallLanded("0"),
        SpinVoided("chip"),
        SpinMissed(2),
        BallReplaced(),
        RoundPaid(),
        RoundVoided(""),
    ),
    *(EventsMissed(1), DeviceOnline(continuous=False), BallChanged(), SeatOpened(1), SeatClosed(1)),
    *(WagerPlaced(seat, bet, 100) for seat in (1, 2) for bet in ("red", "straight:17", "straight:25", "nothing")),
    *(WagerPlaced(1, "orphans", 50), WagerPlaced(2, "large_series", 1350), WagerPlaced(1, "neighbours:17-5", 500)),
    *(WagerPlaced(1, "small_series", 61), WagerWithdrawn(1, "orphans", 10), WagerWithdrawn(2, "large_series", 90)),
    *(WagerWithdrawn(seat, bet, amount) for seat in (1, 2) for bet, amount in (("red", 0), ("straight:17", 95))),
]
PARTS = st.one_of(
    st.lists(st.sampled_from(STEPS), max_size=4),
    st.just(spin("17", WagerPlaced(1, "orphans", 50), WagerPlaced(2, "straight:17", 100))),
    st.just([BetsOpened(), WagerPlaced(1, "red", 10), WagerPlaced(2, "orphans", 50), LAUNCH, SpinVoided("chip")]),
)
PLAY = st.lists(PARTS, max_size=8).map(lambda parts: [event for part in parts for event in part])
HOUSES: list[dict[str, Any]] = [{}, {"minimum": 10}, {"colours": "watched", "payment": "console"}]


@given(PLAY, st.sampled_from(HOUSES))
@settings(max_examples=at_length(125, 2_500))
def test_no_chip_is_lost_or_made(events: list[Event], options: dict[str, Any]) -> None:
    chips_are_conserved(wheel(**options), events)


@given(PLAY)
@example([LAUNCH, WagerPlaced(1, "straight:17", 100), WagerWithdrawn(1, "straight:17", 95), SpinStarted(0)])
@settings(max_examples=at_length(75, 1_500))
def test_no_stake_of_a_result_is_outside_its_limits(events: list[Event]) -> None:
    """Minimum 10, no chip worth more: what a result rests on, whatever was laid, taken back, carried over or lost.

    A void spin returns what is on the table, also the rest of a bet of which a part was taken back (art. 1(26)).
    """
    chips = {"orphans": (5, 50), "large_series": (9, 135), "small_series": (6, 120), "neighbours:17-5": (5, 150)}
    most = {"red": 5400, "straight:17": 300, "straight:25": 300}
    for result in results(play(wheel(minimum=10), events)):
        on_number: Counter[tuple[int, str]] = Counter()
        for one in result.settlements:
            if result.void is not None:
                assert one.returned == one.stake
            elif one.bet in chips:
                each, largest = chips[one.bet]
                assert one.stake % (each * 10) == 0
                assert each * 10 <= one.stake <= largest * 10
            else:
                assert 10 <= one.stake <= most[one.bet]
            if result.void is None and one.bet.startswith(("straight:", "neighbours:")):
                for place, _ in CHIPS.get(one.bet, [(one.bet, 1)]):
                    on_number[one.seat, place] += one.stake // len(CHIPS.get(one.bet, [one.bet]))
        assert max(on_number.values(), default=0) <= 300
