"""Macau roulette, article by article: Despacho 60/2004 and Despacho 30/2003."""

from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from functools import cache
from typing import Any

import msgspec
import pytest
from helpers import START, at_length, codes, only, play, results, script, settled
from hypothesis import given, settings, strategies as st
from roulettes import chips_are_conserved

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallReplaced,
    BallSettling,
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
    WheelStarted,
    WheelStopped,
)
from protocols.contract.reasons import say
from protocols.contract.topics import Envelope
from rules.engine.ruleset import (
    BadOption,
    Closed,
    Corrected,
    Noted,
    Opened,
    Resolved,
    Result,
    Suspended,
    Void,
    Voided,
    options_from,
)
from rules.macau.roulette import FAMILIES, Roulette, RouletteOptions

LAW = "macau.roulette"
TEXTS = {"2004": "Despacho 60/2004", "2003": "Despacho 30/2003"}
LAUNCH = BallLaunched("clockwise", "anticlockwise")
OTHER_WAY = BallLaunched("anticlockwise", "clockwise")
WITH_ROTOR = BallLaunched("clockwise", "clockwise")
NINE = (22, 18, 29, 7, 28, 12, 35, 3, 26)

_made = cache(Roulette)


def wheel(**options: Any) -> Roulette:
    """The ruleset; made once per options, it holds no state."""
    return _made(RouletteOptions(**options))


def spin(pocket: str, *bets: Event) -> list[Event]:
    """One regular spin without its payment."""
    return [BetsOpened(), *bets, BetsClosed(), LAUNCH, BallSettling(), BallLanded(pocket)]


def laws(result: Result) -> list[str]:
    return [note.law for note in result.irregularities]


@cache
def _paid(options: RouletteOptions) -> dict[int, dict[str, Fraction]]:
    ruleset = _made(options)
    return {
        pocket: {win.bet: Fraction(win.pays) for win in only(play(ruleset, spin(str(pocket)))).winners}
        for pocket in range(37)
    }


def paid(**options: Any) -> dict[int, dict[str, Fraction]]:
    """What wins on each pocket, and what it pays, as whole spins say."""
    return _paid(RouletteOptions(**options))


both_editions = pytest.mark.parametrize("edition", ["2004", "2003"])


# ---- art. 1: the wheel


@pytest.mark.article("1(2)", "1(3)", "2003:1(2)")
@both_editions
def test_art_1_thirty_seven_pockets_each_with_its_number(edition: str) -> None:
    ruleset = wheel(edition=edition)
    for pocket in range(37):
        assert only(play(ruleset, spin(str(pocket)))).outcome["pocket"] == str(pocket)
    for none in ("00", "37", "-1"):
        verdicts = play(ruleset, spin(none))
        assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]


@pytest.mark.article("1(4)", "1(5)", "2003:1(2)")
@both_editions
def test_art_1_eighteen_red_eighteen_black_zero_neither(edition: str) -> None:
    for options in ({}, {"red": tuple(range(2, 37, 2))}):
        ruleset = wheel(edition=edition, **options)
        table = paid(edition=edition, **options)
        for pocket in range(37):
            colours = {"red", "black"} & set(table[pocket])
            assert len(colours) == (pocket > 0)
            assert {only(play(ruleset, spin(str(pocket)))).outcome.get("colour")} - {None} == colours
        assert sum("red" in table[pocket] for pocket in range(37)) == 18


# ---- arts. 6 and 7: the cloth written out by geometry: number n lies in row (n - 1) // 3, column (n - 1) % 3


def row(n: int) -> int:
    return (n - 1) // 3


def column(n: int) -> int:
    return (n - 1) % 3


def name(family: str, numbers: Iterable[int]) -> str:
    return f"{family}:{'-'.join(str(number) for number in sorted(numbers))}"


def cloth() -> dict[str, tuple[set[int], int]]:
    """Bet -> its numbers and the odds of art. 7."""
    every = range(1, 37)
    bets: dict[str, tuple[set[int], int]] = {f"straight:{n}": ({n}, 35) for n in range(37)}
    for a in every:
        for b in every:
            beside = row(a) == row(b) and b - a == 1
            below = column(a) == column(b) and b - a == 3
            if beside or below:
                bets[name("split", (a, b))] = ({a, b}, 17)
            if row(b) - row(a) == 1 and column(b) - column(a) == 1:
                bets[name("corner", (a, a + 1, b - 1, b))] = ({a, a + 1, b - 1, b}, 8)
    for at in range(12):
        street = {n for n in every if row(n) == at}
        bets[name("street", street)] = (street, 11)
        if at < 11:
            line = street | {n for n in every if row(n) == at + 1}
            bets[name("line", line)] = (line, 5)
    bets["sector_a"] = ({1, 3, 5, 13, 15, 17, 20, 22, 24, 32, 34, 36}, 2)
    bets["sector_b"] = ({2, 4, 6, 14, 16, 18, 19, 21, 23, 31, 33, 35}, 2)
    for place in range(3):
        bets[f"column:{place + 1}"] = ({n for n in every if column(n) == place}, 2)
        bets[f"dozen:{place + 1}"] = ({n for n in every if (n - 1) // 12 == place}, 2)
    red = {1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36}
    bets["even"] = ({n for n in every if n % 2 == 0}, 1)
    bets["odd"] = ({n for n in every if n % 2 == 1}, 1)
    bets["low"] = (set(range(1, 19)), 1)
    bets["high"] = (set(range(19, 37)), 1)
    bets["red"] = (red, 1)
    bets["black"] = (set(every) - red, 1)
    return bets


CLOTH = cloth()
# Family -> paragraph of art. 6 (all that lie in it), paragraph of art. 7, odds, how many such bets there are.
PRINTED = {
    "straight": ("6(1)", "7(1)", 35, 37),
    "split": ("6(2)", "7(2)", 17, 57),
    "street": ("6(3)", "7(3)", 11, 12),
    "corner": ("6(4)", "7(4)", 8, 22),
    "line": ("6(5)", "7(5)", 5, 11),
    "sector_a": ("6(7)", "7(7)", 2, 1),
    "sector_b": ("6(7)", "7(7)", 2, 1),
    "column": ("6(8)", "7(7)", 2, 3),
    "dozen": ("6(9)-(11)", "7(7)", 2, 3),
    "even": ("6(12)", "7(8)", 1, 1),
    "odd": ("6(13)", "7(8)", 1, 1),
    "low": ("6(14)", "7(8)", 1, 1),
    "high": ("6(15)", "7(8)", 1, 1),
    "red": ("6(16)", "7(8)", 1, 1),
    "black": ("6(17)", "7(8)", 1, 1),
}


@pytest.mark.article(
    "6(1)",
    "6(2)",
    "6(3)",
    "6(4)",
    "6(5)",
    "6(7)",
    "6(8)",
    "6(9)",
    "6(10)",
    "6(11)",
    "6(12)",
    "6(13)",
    "6(14)",
    "6(15)",
    "6(16)",
    "6(17)",
    "2003:6(1)",
    "2003:6(2)",
    "2003:6(3)",
    "2003:6(4)",
    "2003:6(5)",
    "2003:6(7)",
    "2003:6(8)",
    "2003:6(9)",
    "2003:6(10)",
    "2003:6(11)",
    "2003:6(12)",
    "2003:6(13)",
    "2003:6(14)",
    "2003:6(15)",
    "2003:6(16)",
    "2003:6(17)",
    "7(1)",
    "7(2)",
    "7(3)",
    "7(4)",
    "7(5)",
    "7(7)",
    "7(8)",
    "2003:7(1)",
    "2003:7(2)",
    "2003:7(3)",
    "2003:7(4)",
    "2003:7(5)",
    "2003:7(7)",
    "2003:7(8)",
)
@pytest.mark.parametrize("family", PRINTED)
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_every_bet_wins_on_its_numbers_and_pays_as_printed(edition: str, family: str) -> None:
    where, pays_by, pays, count = PRINTED[family]
    expected = {bet: one for bet, one in CLOTH.items() if bet.partition(":")[0] == family}
    assert len(expected) == count
    ruleset = wheel(edition=edition)
    assert {bet for bet in ruleset.board if bet.partition(":")[0] == family} == set(expected)
    table = paid(edition=edition)
    for pocket in range(37):
        wins = {bet: odds for bet, odds in table[pocket].items() if bet.partition(":")[0] == family}
        assert wins == {bet: odds for bet, (numbers, odds) in expected.items() if pocket in numbers}
        assert set(wins.values()) <= {pays}
    (printed,) = [bet for bet in ruleset.bets() if bet.id.partition(":")[0] == family]
    assert printed.pays == str(pays)
    assert printed.law == f"arts. {where}, {pays_by}"


@pytest.mark.article("6(1)", "6(2)", "6(3)", "6(4)", "6(5)")
def test_the_cloth_holds_nothing_else() -> None:
    assert set(wheel().board) == set(CLOTH)
    for pocket in range(37):
        assert set(paid()[pocket]) <= set(CLOTH)


@pytest.mark.article("6(9)", "2003:6(9)", "6(10)", "2003:6(10)", "6(11)", "2003:6(11)")
@both_editions
@pytest.mark.parametrize("bet", ["dozen:1", "dozen:2", "dozen:3"])
def test_art_6_9_to_11_the_dozens_are_pequeno_medio_grande(bet: str, edition: str) -> None:
    first = {"dozen:1": 1, "dozen:2": 13, "dozen:3": 25}[bet]
    table = paid(edition=edition)
    assert [pocket for pocket in range(37) if bet in table[pocket]] == list(range(first, first + 12))


@pytest.mark.article("7", "2003:7")
@both_editions
@pytest.mark.parametrize(("bet", "returned"), [("straight:17", 3600), ("split:17-18", 1800), ("black", 200)])
def test_art_7_the_winner_keeps_the_stake_and_has_the_prize(bet: str, returned: int, edition: str) -> None:
    result = only(play(wheel(edition=edition), spin("17", WagerPlaced(1, bet, 100))))
    assert settled(result) == [(1, bet, 100, returned)]


# ---- art. 8


@pytest.mark.article("8", "2003:8")
@both_editions
def test_art_8_on_zero_only_the_straight_on_zero_wins(edition: str) -> None:
    bets = [WagerPlaced(1, bet, 10) for bet in ("straight:0", "red", "black", "even", "low", "column:1", "straight:7")]
    result = only(play(wheel(edition=edition), spin("0", *bets)))
    assert [(win.bet, win.pays) for win in result.winners] == [("straight:0", "35")]
    assert [one.returned for one in result.settlements] == [360, 0, 0, 0, 0, 0, 0]
    assert result.outcome == {"pocket": "0"}
    assert result.law == tuple(f"{TEXTS[edition]} art. {article}" for article in ("4", "6", "7", "8"))
    assert result.announcements == {"pt": "Zero", "zh-Hant": "零", "en": "Zero"}


@pytest.mark.article("8", "2003:8")
@both_editions
def test_combinations_with_zero_are_an_option_and_lose_on_zero(edition: str) -> None:
    with_zero = {"split:0-1", "split:0-2", "split:0-3", "street:0-1-2", "street:0-2-3", "corner:0-1-2-3"}
    assert set(wheel(zero_combinations=True).board) - set(wheel().board) == with_zero
    table = paid(zero_combinations=True, edition=edition)
    assert set(table[0]) == {"straight:0"}
    assert {bet for bet in table[2] if bet in with_zero} == {
        "split:0-2",
        "street:0-1-2",
        "street:0-2-3",
        "corner:0-1-2-3",
    }
    refused = only(play(wheel(), spin("1", WagerPlaced(1, "split:0-1", 10))))
    assert (codes(refused), refused.settlements) == (["bet_not_offered"], ())


# ---- house edges by enumeration


@pytest.mark.parametrize("options", [{}, {"edition": "2003"}, {"nines": (NINE,)}])
def test_the_house_edge_is_one_in_37_on_every_bet(options: dict[str, Any]) -> None:
    table = paid(**options)
    for bet in wheel(**options).board:
        gain = sum((table[pocket].get(bet, Fraction(-1)) for pocket in range(37)), Fraction())
        assert gain / 37 == Fraction(-1, 37), bet


@pytest.mark.parametrize(
    ("bet", "edge"),
    [
        ("split:0-1", Fraction(19, 37)),
        ("street:0-1-2", Fraction(13, 37)),
        ("street:0-2-3", Fraction(13, 37)),
        ("corner:0-1-2-3", Fraction(10, 37)),
        ("straight:0", Fraction(1, 37)),
        ("split:1-2", Fraction(1, 37)),
    ],
)
def test_a_combination_with_zero_costs_more(bet: str, edge: Fraction) -> None:
    """By the letter of art. 8 it loses on the 0 it covers: one number fewer, the same odds. Hence an option."""
    table = paid(zero_combinations=True)
    gain = sum((table[pocket].get(bet, Fraction(-1)) for pocket in range(37)), Fraction())
    assert -gain / 37 == edge


# ---- art. 6(6), bets offered, colours


@pytest.mark.article("6(6)", "2003:6(6)", "7(6)", "2003:7(6)")
@both_editions
def test_art_6_6_a_sector_of_nine_is_offered_where_it_is_named(edition: str) -> None:
    bet = "nine:3-7-12-18-22-26-28-29-35"
    assert not [one for one in wheel(edition=edition).bets() if one.id.startswith("nine")]
    table = paid(nines=(NINE,), edition=edition)
    assert {pocket for pocket in range(37) if bet in table[pocket]} == set(NINE)
    assert table[22][bet] == 3
    (printed,) = [one for one in wheel(nines=(NINE,), edition=edition).bets() if one.id.startswith("nine")]
    assert (printed.pays, printed.law) == ("3", "arts. 6(6), 7(6)")


@pytest.mark.article("9")
@pytest.mark.article("1(4)", "6(6)")
def test_sectors_of_nine_and_red_are_numbers_from_1_to_36() -> None:
    """Zero is of no colour and in no sector; 36 is the last number."""
    ends = (1, 2, 3, 4, 5, 6, 7, 8, 36)
    assert RouletteOptions(nines=(ends,)).nines == (ends,)
    for wrong in (0, 37):
        with pytest.raises(ValueError, match=r"art\. 6\(6\)"):
            RouletteOptions(nines=((wrong, *ends[1:]),))
        with pytest.raises(ValueError, match=r"art\. 1\(4\)"):
            RouletteOptions(red=(wrong, *range(2, 36, 2)))
    assert 36 in RouletteOptions(red=tuple(range(2, 37, 2))).red


def test_bets_offered_leaves_the_others_out() -> None:
    ruleset = wheel(bets_offered=("straight", "red"))
    assert [bet.id for bet in ruleset.bets()] == ["red", "straight:n"]
    result = only(play(ruleset, spin("1", WagerPlaced(1, "low", 5), WagerPlaced(1, "red", 5))))
    assert [win.bet for win in result.winners] == ["red", "straight:1"]
    assert (codes(result), settled(result)) == (["bet_not_offered"], [(1, "red", 5, 10)])


@pytest.mark.article("1(4)", "6(16)")
def test_the_red_numbers_come_with_the_wheel() -> None:
    red = tuple(range(2, 37, 2))
    result = only(play(wheel(red=red), spin("2")))
    assert result.outcome["colour"] == "red"
    assert "red" in {win.bet for win in result.winners}
    assert only(play(wheel(), spin("2"))).outcome["colour"] == "black"


@pytest.mark.article("9", "1(4)")
@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"edition": "2003", "betting": "no_more_bets"}, "30/2003 art. 3"),
        ({"bets_offered": ["basket"]}, "art. 6 has no bet 'basket'"),
        ({"bets_offered": ["nine"]}, "art. 6(6)"),
        ({"nines": [[1, 2, 3]]}, "art. 6(6)"),
        ({"nines": [[0, 1, 2, 3, 4, 5, 6, 7, 8]]}, "art. 6(6)"),
        ({"nines": [[1, 1, 2, 3, 4, 5, 6, 7, 8, 9]]}, "art. 6(6)"),
        ({"red": [1, 2, 3]}, "art. 1(4)"),
        ({"red": [0, *range(2, 36, 2)]}, "art. 1(4)"),
        ({"edition": "1975"}, "edition: 2004 | 2003"),
        ({"betting": "late"}, "betting: bell | no_more_bets"),
        ({"smallest_chip": 0}, "smallest_chip"),
        ({"pockets": 38}, "no option 'pockets'"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(Roulette, given_options)
    assert says in str(refused.value)


# ---- the result


@pytest.mark.article("7")
def test_a_regular_spin() -> None:
    bets = [WagerPlaced(1, "straight:17", 100), WagerPlaced(2, "red", 300), WagerPlaced(1, "split:14-17", 10)]
    verdicts = play(wheel(), spin("17", *bets))
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    assert result.round == "t-1:2026-11-20:1"
    assert (result.ruleset, result.edition, result.demo, result.void) == ("macau.roulette", "2004", False, None)
    assert result.evidence == tuple(f"e{n}" for n in range(1, 9))
    assert settled(result) == [(1, "straight:17", 100, 3600), (2, "red", 300, 0), (1, "split:14-17", 10, 180)]
    assert result.outcome == {
        "pocket": "17",
        "colour": "black",
        "parity": "odd",
        "half": "low",
        "dozen": 2,
        "column": 2,
    }
    assert result.law == tuple(f"Despacho 60/2004 art. {article}" for article in ("4", "6", "7"))
    assert msgspec.json.decode(result.options)["betting"] == "bell"


def test_edition_2003_cites_its_own_text() -> None:
    result = only(play(wheel(edition="2003"), spin("36")))
    assert result.edition == "2003"
    assert result.law == tuple(f"Despacho 30/2003 art. {article}" for article in ("4", "6", "7"))


@pytest.mark.article("4", "2003:4")
@both_editions
@pytest.mark.parametrize(
    ("pocket", "words"),
    [
        ("1", {"pt": "1, encarnado, ímpar, menor", "zh-Hant": "1號，紅，單，小", "en": "1, red, odd, low"}),
        ("20", {"pt": "20, preto, par, maior", "zh-Hant": "20號，黑，雙，大", "en": "20, black, even, high"}),
    ],
)
def test_art_4_the_number_is_announced_in_three_languages(pocket: str, words: dict[str, str], edition: str) -> None:
    assert only(play(wheel(edition=edition), spin(pocket))).announcements == words


@pytest.mark.article("4", "2003:4")
@both_editions
def test_art_4_nothing_is_decided_before_the_ball_lies_still(edition: str) -> None:
    ruleset = wheel(edition=edition)
    running: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, BallSettling(), BallSettling()]
    assert not results(play(ruleset, running))
    assert settled(only(play(ruleset, [*running, BallLanded("5")]))) == [(1, "red", 10, 20)]


@pytest.mark.article("5(1)", "2003:5(1)")
def test_art_5_1_winners_stand_in_the_order_of_payment() -> None:
    order = ["column", "dozen", "sector_a", "sector_b", "nine"]
    order += ["even", "odd", "low", "high", "red", "black"]
    order += ["line", "street", "corner", "split", "straight"]
    assert list(FAMILIES) == order
    for options in ({}, {"edition": "2003"}, {"nines": (NINE,), "zero_combinations": True}):
        for pocket, wins in paid(**options).items():
            places = [order.index(bet.partition(":")[0]) for bet in wins]
            assert places == sorted(places), pocket
    seen = {bet.partition(":")[0] for wins in paid(nines=(NINE,)).values() for bet in wins}
    assert seen == set(order)
    # Whatever order the configuration names them in.
    ruleset = wheel(bets_offered=("straight", "red", "column"))
    assert [bet.id.partition(":")[0] for bet in ruleset.bets()] == ["column", "red", "straight"]


@pytest.mark.article("5(2)", "2003:5(2)")
@both_editions
def test_art_5_2_each_prize_names_its_player(edition: str) -> None:
    bets = [WagerPlaced(seat, bet, 10) for seat, bet in ((3, "red"), (1, "straight:5"), (3, "low"), (1, "red"))]
    result = only(play(wheel(edition=edition), spin("5", *bets)))
    assert sorted(settled(result)) == [
        *((1, "red", 10, 20), (1, "straight:5", 10, 360)),
        *((3, "low", 10, 20), (3, "red", 10, 20)),
    ]


@pytest.mark.article("5(3)", "2003:5(3)")
@pytest.mark.parametrize(("edition", "betting"), [("2004", "bell"), ("2004", "no_more_bets"), ("2003", "bell")])
def test_art_5_3_chips_moved_after_the_spin_was_decided_change_nothing(edition: str, betting: str) -> None:
    moved: list[Event] = [WagerWithdrawn(1, "red"), WagerPlaced(1, "black", 10), WagerPlaced(2, "straight:5", 10)]
    verdicts = play(wheel(edition=edition, betting=betting), [*spin("5", WagerPlaced(1, "red", 10)), *moved])
    assert settled(only(verdicts)) == [(1, "red", 10, 20)]
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Noted, Noted, Noted]
    # Declared null after that, the bets stand as they lay at the launch, not as they were moved.
    again: list[Event] = [SpinVoided("chip"), LAUNCH, BallLanded("7")]
    after = play(wheel(edition=edition, betting=betting), [*spin("5", WagerPlaced(1, "red", 10)), *moved, *again])
    assert settled(results(after)[-1]) == [(1, "red", 10, 20)]


# ---- art. 2(1): the ball runs against the wheel


@pytest.mark.article("2(1)", "2003:2(1)")
@both_editions
@pytest.mark.parametrize("launch", [LAUNCH, OTHER_WAY])
def test_art_2_1_the_ball_may_run_either_way_round(launch: BallLaunched, edition: str) -> None:
    result = only(play(wheel(edition=edition), [BetsOpened(), launch, BallLanded("5")]))
    assert (result.void, result.irregularities) == (None, ())


@pytest.mark.article("2(1)", "2003:2(1)")
@pytest.mark.parametrize("edition", ["2004", "2003"])
@pytest.mark.parametrize("turn", ["clockwise", "anticlockwise"])
def test_art_2_1_a_ball_that_runs_with_the_wheel_makes_the_spin_null(edition: str, turn: Any) -> None:
    wrong = BallLaunched(turn, turn)
    events: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), wrong, BallLanded("5"), LAUNCH, BallLanded("5")]
    verdicts = play(wheel(edition=edition), events)
    null, good = results(verdicts)
    text = "Despacho 60/2004" if edition == "2004" else "Despacho 30/2003"
    assert null.void == Void(say("ball_with_rotor"), "stand")
    assert (codes(null), laws(null)) == (["ball_with_rotor"], [f"{text} art. 2(1)"])
    assert settled(good) == [(1, "red", 10, 20)]
    notes = [verdict.irregularity.code for verdict in verdicts if isinstance(verdict, Noted)]
    assert notes == ["landing_without_spin"]


# ---- art. 2(2)-(3): the null spin


@pytest.mark.article("2(2)", "2003:2(2)")
@pytest.mark.parametrize(("edition", "law"), [("2004", "60/2004 art. 2(2)-(3)"), ("2003", "30/2003 art. 2(2)")])
@pytest.mark.parametrize("word", [SpinVoided("a chip fell in"), RoundVoided("a chip fell in")])
def test_art_2_2_an_object_on_the_wheel(edition: str, law: str, word: Event) -> None:
    bets = [WagerPlaced(1, "red", 10), WagerPlaced(2, "straight:5", 3)]
    verdicts = play(wheel(edition=edition), [BetsOpened(), *bets, LAUNCH, word, LAUNCH, BallLanded("5")])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Voided, Opened, Closed, Resolved]
    null, good = results(verdicts)
    assert null.void == Void(say("declared_for", text="a chip fell in"), "stand")
    assert null.law == (f"Despacho {law}",)
    assert (null.winners, null.pushes, null.settlements) == ((), (), ())
    assert null.announcements == {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "No spin"}
    assert settled(good) == [(1, "red", 10, 20), (2, "straight:5", 3, 108)]
    assert good.round.endswith(":2")


@pytest.mark.article("2(2)")
def test_bets_that_stand_after_a_null_spin_cannot_be_changed() -> None:
    late: list[Event] = [WagerPlaced(2, "black", 5), WagerWithdrawn(1, "red")]
    events = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip"), SpinStarted(), *late, LAUNCH]
    null, good = results(play(wheel(), [*events, BallLanded("5")]))
    assert null.irregularities == ()
    assert codes(good) == ["late_bet", "late_bet"]
    assert settled(good) == [(1, "red", 10, 20)]


@pytest.mark.article("2(2)", "2(3)")
def test_bets_that_stand_are_carried_through_more_than_one_null_spin() -> None:
    again: list[Event] = [LAUNCH, SpinVoided("again")]
    *nulls, good = results(
        play(wheel(), [BetsOpened(), WagerPlaced(1, "red", 10), *again, *again, *again, LAUNCH, BallLanded("2")])
    )
    assert [null.void for null in nulls] == [Void(say("again"), "stand")] * 3
    assert settled(good) == [(1, "red", 10, 0)]


def test_a_spin_null_while_bets_are_open_stays_open() -> None:
    events: list[Event] = [
        BetsOpened(),
        WagerPlaced(1, "red", 10),
        SpinVoided("chip"),
        BetsOpened(),
        WagerWithdrawn(1, "red", 4),
    ]
    *_, good = results(play(wheel(), [*events, LAUNCH, BallLanded("5")]))
    assert (settled(good), good.irregularities) == ([(1, "red", 6, 12)], ())


FIRST: list[Event] = [*spin("12"), RoundPaid()]
NULL: list[Event] = [BetsOpened(), LAUNCH, SpinVoided("chip")]


@pytest.mark.article("2(3)", "2003:2(2)")
@pytest.mark.parametrize(("edition", "law"), [("2004", "60/2004 art. 2(3)"), ("2003", "30/2003 art. 2(2)")])
@pytest.mark.parametrize("started", [[], [SpinStarted()]])
def test_art_2_3_the_ball_goes_back_into_the_last_numbers_pocket(edition: str, law: str, started: list[Event]) -> None:
    ruleset = wheel(edition=edition)

    def noted(*events: Event) -> list[tuple[str, str]]:
        verdicts = play(ruleset, [*events, LAUNCH, BallLanded("5")])
        alone = [verdict.irregularity for verdict in verdicts if isinstance(verdict, Noted)]
        within = [note for result in results(verdicts) for note in result.irregularities]
        return [(note.code, note.law) for note in alone + within]

    for right in (BallReplaced("12"), BallReplaced()):
        assert noted(*FIRST, *NULL, *started, right) == []
    assert noted(*FIRST, *NULL, *started, BallReplaced("13")) == [("ball_in_wrong_pocket", f"Despacho {law}")]
    # Nobody knows where it lay before the first spin: no accusation. Nor between regular spins.
    assert noted(*NULL, *started, BallReplaced("13")) == []
    for opened in ([], [BetsOpened()], [BetsOpened(), BetsClosed()]):
        assert noted(*FIRST, *started, *opened, BallReplaced("13")) == []


@pytest.mark.article("2(1)", "2(3)", "4")
@pytest.mark.parametrize("pocket", [None, "12", "7"])
def test_a_ball_put_back_while_it_ran_has_no_number_until_it_is_launched_again(pocket: str | None) -> None:
    """It left the wheel and the croupier laid it there: what the wheel sees lying is a hand's work."""
    laid: list[Event] = [BetsOpened(), WagerPlaced(1, "straight:12", 100), LAUNCH, BallReplaced(pocket)]
    verdicts = play(wheel(), [*FIRST, *laid, BallLanded("12")])
    assert isinstance(verdicts[-1], Suspended)
    assert verdicts[-1].reason.code == "no_launch"
    good = results(play(wheel(), [*FIRST, *laid, LAUNCH, BallLanded("12")]))[-1]
    assert (good.void, settled(good)) == (None, [(1, "straight:12", 100, 3600)])
    assert "ball_replaced_while_it_ran" in codes(good)


@pytest.mark.article("3(2)(2)")
@pytest.mark.parametrize("betting", ["bell", "no_more_bets"])
def test_chips_on_an_open_cloth_may_be_moved_after_a_null_spin(betting: str) -> None:
    """No more bets was not called, or under the bell it has not rung: what was moved is settled as it lies."""
    null: list[Event] = [LAUNCH, SpinVoided("chip")] if betting == "no_more_bets" else [SpinVoided("chip")]
    moved: list[Event] = [
        WagerWithdrawn(1, "straight:17"),
        WagerPlaced(2, "straight:17", 50),
        WagerPlaced(3, "nothing", 5),
    ]
    events: list[Event] = [SpinStarted(1), WagerPlaced(1, "straight:17", 100), *null, *moved]
    verdicts = play(wheel(betting=betting), [*events, SpinStarted(2), LAUNCH, BetsClosed(), BallLanded("17")])
    good = results(verdicts)[-1]
    assert settled(good) == [(2, "straight:17", 50, 1800)]
    assert {"e5", "e6"} <= set(good.evidence) or {"e4", "e5"} <= set(good.evidence)
    assert [one.irregularity.code for one in verdicts if isinstance(one, Noted)] == ["bet_not_offered"]


@pytest.mark.article("3(2)(2)")
@pytest.mark.parametrize("betting", ["bell", "no_more_bets"])
def test_a_call_between_a_null_spin_and_the_next_launch_closes_the_bets(betting: str) -> None:
    before: list[Event] = [SpinStarted(1), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip"), BetsClosed()]
    after: list[Event] = [LAUNCH, WagerPlaced(2, "straight:17", 50), BallSettling(), BallLanded("17")]
    good = results(play(wheel(betting=betting), [*before, *after]))[-1]
    assert (settled(good), codes(good)) == ([(1, "red", 10, 0)], ["late_bet"])


# ---- art. 3: when bets may be placed


@pytest.mark.article("3(2)(1)", "2003:3")
@both_editions
def test_art_3_2_1_under_the_bell_the_launch_closes_at_the_latest(edition: str) -> None:
    early: list[Event] = [
        BetsOpened(),
        WagerPlaced(1, "low", 10),
        WagerPlaced(1, "low", 5),
        WagerWithdrawn(1, "low", 3),
    ]
    late: list[Event] = [WagerPlaced(1, "red", 10), WagerPlaced(1, "low", 1), WagerWithdrawn(1, "low")]
    orders: list[list[Event]] = [[*early, BetsClosed(), *late, LAUNCH], [*early, LAUNCH, *late]]
    for events in orders:
        verdicts = play(wheel(edition=edition), [*events, BallLanded("5")])
        result = only(verdicts)
        assert (codes(result), laws(result)) == (["late_bet"] * 3, [f"{TEXTS[edition]} art. 3"] * 3)
        assert settled(result) == [(1, "low", 12, 24)]
        assert sum(isinstance(verdict, Closed) for verdict in verdicts) == 1


@pytest.mark.article("3(2)(1)", "2003:3")
@pytest.mark.parametrize(("edition", "law"), [("2004", "60/2004 art. 3(2)(1)"), ("2003", "30/2003 art. 3")])
def test_art_3_2_1_a_bell_after_the_launch_is_irregular(edition: str, law: str) -> None:
    result = only(play(wheel(edition=edition), [BetsOpened(), LAUNCH, BetsClosed(), BallLanded("5")]))
    assert (codes(result), laws(result)) == (["bell_after_launch"], [f"Despacho {law}"])
    assert result.void is None


@pytest.mark.article("3(2)(2)")
@pytest.mark.parametrize("closing", [BetsClosed(), BallSettling()])
def test_art_3_2_2_until_no_more_bets_while_the_ball_runs(closing: Event) -> None:
    ruleset = wheel(betting="no_more_bets")
    during: list[Event] = [WagerPlaced(1, "red", 10), WagerWithdrawn(2, "black", 2)]
    after: list[Event] = [WagerPlaced(3, "red", 10), WagerWithdrawn(1, "red")]
    events = [BetsOpened(), WagerPlaced(2, "black", 5), LAUNCH, *during, closing, *after, BallLanded("5")]
    verdicts = play(ruleset, events)
    result = only(verdicts)
    assert settled(result) == [(2, "black", 3, 0), (1, "red", 10, 20)]
    assert codes(result) == ["late_bet", "late_bet"]
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]


@pytest.mark.article("3(2)(2)")
def test_art_3_2_2_without_a_call_the_landing_closes() -> None:
    events: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, BallLanded("5")]
    verdicts = play(wheel(betting="no_more_bets"), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    assert (codes(only(verdicts)), laws(only(verdicts))) == (["no_call"], ["Despacho 60/2004 art. 3(2)(2)"])
    assert settled(only(verdicts)) == [(1, "red", 10, 20)]


@pytest.mark.article("3(2)(2)")
@pytest.mark.parametrize("late", [WagerPlaced(1, "straight:5", 10), WagerWithdrawn(2, "black")])
def test_art_3_2_2_without_a_call_a_bet_during_the_run_may_know_the_number(late: Event) -> None:
    """A console enters the number seconds after the ball lies still."""
    events: list[Event] = [BetsOpened(), WagerPlaced(2, "black", 5), LAUNCH, late, BallLanded("5")]
    verdicts = play(wheel(betting="no_more_bets"), events)
    assert [type(verdict) for verdict in verdicts] == [Opened, Suspended]
    called = only(play(wheel(betting="no_more_bets"), [*events[:-1], BallSettling(), events[-1]]))
    assert (called.void, codes(called)) == (None, [])


@pytest.mark.article("3(2)(1)", "2003:3")
@pytest.mark.parametrize(("edition", "law"), [("2004", "60/2004 art. 3(1)"), ("2003", "30/2003 art. 3")])
def test_art_3_bets_opened_again_after_the_bell(edition: str, law: str) -> None:
    events: list[Event] = [BetsOpened(), BetsClosed(), BetsOpened(), WagerPlaced(1, "red", 1), LAUNCH, BallLanded("5")]
    result = only(play(wheel(edition=edition), events))
    assert codes(result) == ["bets_reopened", "late_bet"]
    assert laws(result)[0] == f"Despacho {law}"


@pytest.mark.article("3(1)", "2003:3")
@pytest.mark.parametrize(("edition", "law"), [("2004", "60/2004 art. 3(1)"), ("2003", "30/2003 art. 3")])
@pytest.mark.parametrize("begins", [[], [SpinStarted(2)]])
def test_art_3_1_bets_only_once_the_last_spin_is_paid(edition: str, law: str, begins: list[Event]) -> None:
    ruleset = wheel(edition=edition, payment="console")
    first, second, third = results(
        play(ruleset, [*spin("1"), *begins, BetsOpened(), *spin("2"), RoundPaid(), *begins, *spin("3"), RoundPaid()])
    )
    assert [codes(one) for one in (first, second, third)] == [[], ["bets_before_payment"], []]
    assert laws(second) == [f"Despacho {law}"]
    assert second.irregularities[0].reason.values["round"] == first.round


def test_art_3_1_payment_is_implied_where_no_console_reports_it() -> None:
    assert [codes(one) for one in results(play(wheel(), [*spin("1"), *spin("2")]))] == [[], []]


def test_a_bet_without_a_round_is_noted() -> None:
    for event in (WagerPlaced(1, "red", 1), WagerWithdrawn(1, "red")):
        (verdict,) = play(wheel(), [event])
        assert isinstance(verdict, Noted)
        assert verdict.irregularity.code == "bet_without_round"


@pytest.mark.parametrize("bet", ["straight:37", "split:1-36", "corner:1-2-3-4", "basket", "split:2-1", ""])
def test_a_bet_that_is_not_on_the_cloth_is_refused(bet: str) -> None:
    result = only(play(wheel(), spin("5", WagerPlaced(1, bet, 1))))
    assert (codes(result), result.settlements) == (["bet_not_offered"], ())


# ---- doubt: nothing is guessed


@pytest.mark.parametrize(
    "events",
    [
        [BetsOpened(), BetsClosed(), BallLanded("5")],  # no launch was seen
        [BetsOpened(), LAUNCH, BallLanded("00")],  # no such pocket in this text
        [BetsOpened(), LAUNCH, EventsMissed(1)],
        [BetsOpened(), LAUNCH, DeviceOnline(continuous=False)],
    ],
)
@pytest.mark.parametrize("then", [[SpinStarted()], [BetsOpened()], [LAUNCH]])
def test_a_doubtful_spin_waits_for_a_person_and_never_resolves(events: list[Event], then: list[Event]) -> None:
    bets = [WagerPlaced(1, "red", 10)]
    waiting = play(wheel(), [events[0], *bets, *events[1:], BallLanded("5"), EventsMissed(1)])
    assert isinstance(waiting[-1], Suspended)
    assert sum(isinstance(verdict, Suspended) for verdict in waiting) == 1
    assert not results(waiting)
    verdicts = play(wheel(), [events[0], *bets, *events[1:], *then])
    void = only(verdicts)
    assert void.void is not None
    assert void.void.bets == "returned"
    assert settled(void) == [(1, "red", 10, 10)]
    assert isinstance(verdicts[len(waiting)], Voided)
    assert isinstance(verdicts[len(waiting) + 1], Opened)


@pytest.mark.parametrize("word", [RoundVoided(""), SpinVoided("")])
def test_a_doubtful_spin_may_be_declared_null(word: Event) -> None:
    void = only(play(wheel(), [BetsOpened(), LAUNCH, EventsMissed(3), word]))
    assert void.void == Void(say("declared"), "stand")


LOSSES = pytest.mark.parametrize("loss", [EventsMissed(5), DeviceOnline(continuous=False)])


@LOSSES
@pytest.mark.parametrize(
    "null",
    [
        [LAUNCH, SpinVoided("chip"), "loss"],  # between two spins
        [LAUNCH, "loss", RoundVoided("")],  # the open one, declared null
        [BallLanded("5"), "loss", RoundVoided("")],  # and where it waited for something else
        [LAUNCH, BallLanded("1"), "loss", RoundVoided("")],  # a result that is taken back
        [LAUNCH, BallLanded("1"), "loss", SpinVoided("")],
    ],
)
@pytest.mark.parametrize(
    "begins", [[SpinStarted(2), LAUNCH], [SpinStarted(2), BetsOpened(), LAUNCH], [BetsOpened(), LAUNCH]]
)
def test_after_a_loss_the_bets_of_a_null_spin_are_given_back(
    loss: Event, null: list[Event | str], begins: list[Event]
) -> None:
    """They may have been taken off unseen: the next number does not decide them."""
    before: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), BetsClosed()]
    steps = [loss if isinstance(one, str) else one for one in null]
    verdicts = play(wheel(), [*before, *steps, *begins, BallSettling(), BallLanded("2")])
    waits = [one for one in verdicts if isinstance(one, Suspended)]
    assert waits[-1].remedy.code == "do_give_back"
    back, good = results(verdicts)[-2:]
    assert settled(back) == [(1, "red", 10, 10)]
    assert (good.void, good.settlements, good.outcome["pocket"]) == (None, (), "2")


@pytest.mark.article("2(2)", "3(1)", "2003:2(2)")
@LOSSES
@pytest.mark.parametrize("betting", ["bell", "no_more_bets"])
@pytest.mark.parametrize(
    "begins",
    [
        ["bets", SpinStarted(2), LAUNCH],  # laid while the cloth of the null spin lies there
        [SpinStarted(2), "bets", LAUNCH],
        [SpinStarted(2), "bets", BetsOpened(), LAUNCH],
        [SpinStarted(2), BetsOpened(), "bets", LAUNCH],
        [BetsOpened(), "bets", LAUNCH],
        [BetsOpened(), "bets", SpinStarted(2), LAUNCH],
        [BetsOpened(), "bets", SpinStarted(2), BetsClosed(), LAUNCH],
        [SpinStarted(2), RoundVoided("chip"), "bets", SpinStarted(3), BetsClosed(), LAUNCH],
    ],
)
def test_bets_laid_after_a_loss_are_decided_by_the_next_spin(
    loss: Event, begins: list[Event | str], betting: str
) -> None:
    """Only the bets that lay there before the loss are doubtful and come back; what was laid since is known."""
    laid: list[Event] = [
        WagerPlaced(1, "red", 5),
        WagerPlaced(2, "black", 7),
        WagerPlaced(3, "straight:2", 4),
        WagerWithdrawn(3, "straight:2", 3),
    ]
    before: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), BetsClosed(), LAUNCH, SpinVoided("chip"), loss]
    steps: list[Event] = []
    for one in begins:
        steps += laid if isinstance(one, str) else [one]
    verdicts = play(wheel(betting=betting), [*before, *steps, BallSettling(), BallLanded("2")])
    back, good = results(verdicts)[-2:]
    assert (settled(back), codes(back)) == ([(1, "red", 10, 10)], [])
    assert (good.void, codes(good)) == (None, [])
    assert settled(good) == [(1, "red", 5, 0), (2, "black", 7, 14), (3, "straight:2", 1, 36)]
    assert {f"e{7 + steps.index(one)}" for one in laid} <= set(good.evidence)


@LOSSES
def test_chips_taken_back_after_a_loss_are_the_known_ones_first(loss: Event) -> None:
    """Chips of one colour look alike: the pile holds what was laid since, and on it or under it what is doubtful."""
    before: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip"), loss]
    begin: list[Event] = [SpinStarted(2), LAUNCH, BallLanded("1")]
    expected: dict[tuple[int, ...], tuple[list[Any], list[Any]]] = {
        (3,): ([(1, "red", 10, 10)], [(1, "red", 2, 4)]),
        (5,): ([(1, "red", 10, 10)], []),
        (7,): ([(1, "red", 8, 8)], []),
    }
    for taken, (back, good) in expected.items():
        moved: list[Event] = [WagerPlaced(1, "red", 5), *(WagerWithdrawn(1, "red", amount) for amount in taken)]
        _, returned, decided = results(play(wheel(), [*before, *moved, *begin]))
        assert (settled(returned), settled(decided), codes(decided)) == (back, good, [])
    last = play(wheel(), [*before, WagerPlaced(1, "red", 5), WagerWithdrawn(1, "red"), *begin])
    assert isinstance(last[-1], Resolved), "nothing lies there, so nothing is in doubt"
    verdicts = play(wheel(), [*before, WagerPlaced(1, "red", 5), WagerWithdrawn(1, "red", 16), *begin])
    assert [one.irregularity.code for one in verdicts if isinstance(one, Noted)] == ["bet_not_placed"]
    assert settled(results(verdicts)[-1]) == [(1, "red", 5, 10)]


@LOSSES
def test_a_second_loss_makes_what_was_laid_since_the_first_doubtful_too(loss: Event) -> None:
    before: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip"), loss]
    more: list[Event] = [WagerPlaced(1, "red", 5), WagerPlaced(2, "odd", 3)]
    for again in ([*more, loss, SpinStarted(2)], [SpinStarted(2), *more, loss], [*more, SpinStarted(2), loss]):
        _, back, good = results(play(wheel(), [*before, *again, LAUNCH, BallLanded("1")]))
        assert settled(back) == [(1, "red", 15, 15), (2, "odd", 3, 3)]
        assert (good.void, good.settlements) == (None, ())


@LOSSES
def test_bets_laid_after_a_loss_come_back_where_their_own_spin_ended_unseen(loss: Event) -> None:
    before: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip"), loss]
    for begin in ([WagerPlaced(2, "odd", 3)], [SpinStarted(2), WagerPlaced(2, "odd", 3)]):
        _, missed, good = results(play(wheel(), [*before, *begin, SpinMissed(1), *spin("1")]))
        assert missed.void == Void(say("spin_missed"), "returned")
        assert settled(missed) == [(1, "red", 10, 10), (2, "odd", 3, 3)]
        assert good.settlements == ()
    # A launch alone: the spin of which the beginning may be lost is theirs, and waits.
    _, missed, good = results(
        play(wheel(), [*before, WagerPlaced(2, "odd", 3), LAUNCH, BallLanded("1"), LAUNCH, BallLanded("1")])
    )
    assert settled(missed) == [(1, "red", 10, 10), (2, "odd", 3, 3)]
    assert (good.void, good.settlements) == (None, ())


@pytest.mark.article("3(2)(1)", "4")
@LOSSES
@pytest.mark.parametrize("bell", [[], [BetsClosed()]])
def test_a_loss_before_the_first_launch_of_a_spin_voids_nothing_by_itself(loss: Event, bell: list[Event]) -> None:
    """No wheel says where a spin begins: whether the ball that runs now is this spin's, a person says."""
    bets: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10)]
    ran: list[Event] = [LAUNCH, BallSettling(), BallLanded("1")]
    for events in ([*bets, loss, *bell, *ran], [*bets, *bell, loss, *ran]):
        verdicts = play(wheel(), events)
        assert not results(verdicts)
        (waits,) = [one for one in verdicts if isinstance(one, Suspended)]
        assert waits.remedy.code == "do_open_bets"
        for then in ([BetsOpened()], [LAUNCH], [SpinStarted(2)]):
            (void,) = results(play(wheel(), [*events, *then]))
            assert (void.void and void.void.bets, settled(void)) == ("returned", [(1, "red", 10, 10)])
        (null,) = results(play(wheel(), [*events, RoundVoided("")]))
        assert null.void == Void(say("declared"), "stand")


@LOSSES
def test_after_a_loss_nobody_knows_that_the_bets_of_a_null_spin_are_still_closed(loss: Event) -> None:
    events: list[Event] = [BetsOpened(), BetsClosed(), LAUNCH, SpinVoided("chip"), loss]
    events += [SpinStarted(2), BetsOpened(), WagerPlaced(1, "black", 5), BetsClosed(), LAUNCH, BallLanded("2")]
    good = results(play(wheel(), events))[-1]
    assert (good.void, codes(good), settled(good)) == (None, [], [(1, "black", 5, 10)])


def test_a_device_that_proves_nothing_was_lost_suspends_nothing() -> None:
    result = only(play(wheel(), [BetsOpened(), LAUNCH, DeviceOnline(continuous=True), BallLanded("5")]))
    assert result.void is None


def test_a_new_spin_over_one_that_ran_voids_it() -> None:
    lost, good = results(
        play(wheel(), [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinStarted(), LAUNCH, BallLanded("5")])
    )
    assert lost.void == Void(say("spin_superseded"), "returned")
    assert settled(lost) == [(1, "red", 10, 10)]
    assert (good.void, good.settlements) == (None, ())


def test_a_launch_again_is_the_same_spin() -> None:
    result = only(play(wheel(), [BetsOpened(), LAUNCH, LAUNCH, BallLanded("5")]))
    assert result.void is None
    assert result.evidence == ("e1", "e2", "e3", "e4")


@pytest.mark.article("2(1)")
def test_a_launch_again_with_the_wheel_makes_the_spin_null_too() -> None:
    verdicts = play(wheel(), [BetsOpened(), LAUNCH, WITH_ROTOR, BallLanded("5")])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Voided, Noted]
    assert only(verdicts).void == Void(say("ball_with_rotor"), "stand")


def test_a_landing_without_a_spin_is_noted_and_resolves_nothing() -> None:
    verdicts = play(wheel(), [BallLanded("5"), *spin("7"), RoundPaid(), BallLanded("8")])
    assert [type(verdict) for verdict in verdicts] == [Noted, Opened, Closed, Resolved, Noted]


@pytest.mark.article("3(2)(2)")
@pytest.mark.parametrize("betting", ["bell", "no_more_bets"])
def test_a_late_bell_of_a_null_spin_does_not_close_the_bets_of_the_next(betting: str) -> None:
    """The wheel said so first, and goes on by itself: who has not noticed rings for the spin that was."""
    null: list[Event] = [SpinStarted(1), BetsOpened(), WagerPlaced(1, "red", 100), SpinVoided("no_ball"), BetsClosed()]
    again: list[Event] = [SpinStarted(2), BetsOpened(), WagerPlaced(1, "black", 200), BetsClosed(), LAUNCH]
    good = results(play(wheel(betting=betting), [*null, *again, BallLanded("2")]))[-1]
    assert (settled(good), codes(good)) == ([(1, "red", 100, 0), (1, "black", 200, 400)], [])


@LOSSES
def test_after_a_loss_a_launch_alone_does_not_play_an_unseen_cloth(loss: Event) -> None:
    """That the bets were opened, and what was laid then, may be among what was lost."""
    verdicts = play(wheel(), [loss, LAUNCH, BallLanded("17")])
    assert [type(verdict) for verdict in verdicts] == [Opened, Suspended, Closed]
    assert only(play(wheel(), [loss, BetsOpened(), LAUNCH, BallLanded("17")])).void is None


@LOSSES
def test_the_launch_of_a_counted_spin_that_waits_is_its_own(loss: Event) -> None:
    """Nobody decided it: the wheel goes on by itself, and its counter knows of one spin."""
    first: list[Event] = [SpinStarted(7), WagerPlaced(1, "straight:17", 100), loss]
    ran: list[Event] = [*first, WagerPlaced(1, "red", 50), LAUNCH, BallSettling(), BallLanded("17")]
    assert not results(play(wheel(), ran))
    (void,) = results(play(wheel(), [*ran, SpinStarted(8)]))
    assert (void.void and void.void.bets, len(void.settlements)) == ("returned", 2)
    # Launched again without having begun: another spin, of whose beginning nothing was heard.
    _, *others = results(play(wheel(), [*ran, LAUNCH, BallLanded("3")]))
    assert not others


@pytest.mark.article("2(1)", "4")
@pytest.mark.parametrize("stops", [WheelStopped(), WheelStarted()])
def test_a_wheel_that_stops_while_the_ball_runs_gives_no_number(stops: Event) -> None:
    verdicts = play(wheel(), [SpinStarted(1), WagerPlaced(1, "red", 10), LAUNCH, stops, BallLanded("5")])
    assert isinstance(verdicts[-1], Suspended)
    assert not results(verdicts)
    assert only(play(wheel(), [WheelStopped(), WheelStarted(), SpinStarted(1), LAUNCH, BallLanded("5")])).void is None


@pytest.mark.article("3(1)")
def test_on_an_automatic_wheel_a_bet_before_the_payment_is_noted_once() -> None:
    bets: list[Event] = [WagerPlaced(1, "red", 10), WagerPlaced(1, "red", 10)]
    before: list[Event] = [SpinStarted(1), LAUNCH, BallLanded("5")]
    late = results(play(wheel(payment="console"), [*before, SpinStarted(2), *bets, LAUNCH, BallLanded("5")]))[-1]
    assert codes(late) == ["bets_before_payment"]
    paid_first: list[Event] = [*before, SpinStarted(2), RoundPaid(), *bets, LAUNCH, BallLanded("5")]
    assert codes(results(play(wheel(payment="console"), paid_first))[-1]) == []


# ---- a number that is told twice


@pytest.mark.article("4", "2003:4")
def test_the_same_number_told_twice_changes_nothing() -> None:
    verdicts = play(wheel(), [*spin("7"), BallLanded("7")])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]


@pytest.mark.article("4", "2003:4")
@pytest.mark.parametrize(
    ("then", "outcome", "void", "returned"),
    [
        ([RoundPaid()], {"pocket": "7"}, None, [20]),  # who sees the ball lets the first stand
        ([RoundVoided("")], {}, Void(say("declared"), "stand"), []),
        ([SpinStarted()], {}, Void(say("numbers_contradict"), "returned"), [10]),
        ([BallLanded("7"), LAUNCH], {}, Void(say("numbers_contradict"), "returned"), [10]),
    ],
)
def test_another_number_before_the_payment_puts_the_result_in_doubt(
    then: list[Event], outcome: dict[str, str], void: Void | None, returned: list[int]
) -> None:
    """A croupier's key, or a wheel beside a console: which of them is right, a person says."""
    doubted = play(wheel(), [*spin("7", WagerPlaced(1, "red", 10)), BallLanded("8"), BallLanded("9")])
    assert [type(verdict) for verdict in doubted] == [Opened, Closed, Resolved, Suspended]
    verdicts = play(wheel(), [*spin("7", WagerPlaced(1, "red", 10)), BallLanded("8"), *then])
    (ended,) = [verdict.result for verdict in verdicts if isinstance(verdict, Corrected)]
    assert (ended.supersedes, ended.void) == (only(doubted).round, void)
    assert {key: ended.outcome[key] for key in outcome} == outcome
    assert [one.returned for one in ended.settlements] == returned
    assert codes(ended) == ["landings_contradict"]


def test_the_view_says_that_a_result_is_in_doubt() -> None:
    ruleset = wheel()
    state = ruleset.start("t-1")
    for seen in script([*spin("7"), BallLanded("8")]):
        state, _ = ruleset.apply(state, seen)
    view = ruleset.view(state)
    assert (view.phase, view.round, view.detail["reason"]) == (
        "suspended",
        "t-1:2026-11-20:1",
        say("numbers_contradict"),
    )


def test_after_a_loss_another_number_may_be_another_spins() -> None:
    verdicts = play(wheel(), [*spin("7"), EventsMissed(3), BallLanded("8"), RoundPaid()])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Noted]


def test_after_a_loss_a_payment_ends_no_doubt() -> None:
    events = [*spin("7", WagerPlaced(1, "red", 10)), BallLanded("8"), EventsMissed(3), RoundPaid()]
    assert not [one for one in play(wheel(), events) if isinstance(one, Corrected)]
    (ended,) = [one.result for one in play(wheel(), [*events, SpinStarted()]) if isinstance(one, Corrected)]
    assert settled(ended) == [(1, "red", 10, 10)]


@pytest.mark.parametrize("then", [[], [DeviceOnline(continuous=False), RoundPaid()]])
def test_a_result_in_doubt_whose_bets_came_back_is_not_called_unpaid(then: list[Event]) -> None:
    ruleset = wheel(payment="console")
    verdicts = play(ruleset, [*spin("7"), BallLanded("8"), *then, *spin("9")])
    assert codes(results(verdicts)[-1]) == []


@pytest.mark.article("3(1)")
@pytest.mark.parametrize("loss", [EventsMissed(3), DeviceOnline(continuous=False)])
def test_a_payment_that_may_be_among_lost_events_is_not_called_missing(loss: Event) -> None:
    verdicts = play(wheel(payment="console"), [*spin("7"), loss, BetsOpened(), *spin("9")])
    assert codes(results(verdicts)[-1]) == []


# ---- spins whose end was not told


@pytest.mark.parametrize("bells", [[], [BetsClosed()]])
@pytest.mark.parametrize("betting", ["bell", "no_more_bets"])
def test_bets_that_are_opened_while_the_ball_runs_are_the_next_spins(bells: list[Event], betting: str) -> None:
    """A table whose croupier tells everything, and once forgot the number: it is not the next one."""
    first: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), *bells, LAUNCH]
    second: list[Event] = [BetsOpened(), WagerPlaced(2, "black", 5), *bells, LAUNCH, BallLanded("2")]
    lost, good = results(play(wheel(betting=betting), [*first, *second]))
    assert lost.void == Void(say("spin_superseded"), "returned")
    assert settled(lost) == [(1, "red", 10, 10)]
    assert (good.void, settled(good)) == (None, [(2, "black", 5, 10)])


@pytest.mark.parametrize("betting", ["bell", "no_more_bets"])
def test_a_wheel_that_counts_needs_no_such_proof(betting: str) -> None:
    """Its spin began and its ball ran before the croupier's key: one spin, whose end its counter proves."""
    events: list[Event] = [SpinStarted(1), LAUNCH, BetsOpened(), BallSettling(), BallLanded("5")]
    assert only(play(wheel(betting=betting), events)).void is None


# ---- spins that ended unseen


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_missed_spin_is_a_void_round(count: int) -> None:
    verdicts = play(wheel(), [*spin("7"), SpinMissed(count), *spin("8")])
    good, *missed, last = results(verdicts)
    assert (good.void, last.void) == (None, None)
    assert [one.void for one in missed] == [Void(say("spin_missed"), "returned")] * count
    assert [one.round.rpartition(":")[2] for one in (good, *missed, last)] == [str(n) for n in range(1, count + 3)]


def test_the_open_spin_is_the_first_that_was_missed() -> None:
    events: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinMissed(2)]
    first, second = results(play(wheel(), events))
    assert (settled(first), settled(second)) == ([(1, "red", 10, 10)], [])
    assert first.evidence == ("e1", "e2", "e3", "e4")


def test_bets_that_stood_after_a_null_spin_come_back_when_the_next_is_missed() -> None:
    events = [BetsOpened(), WagerPlaced(1, "red", 10), LAUNCH, SpinVoided("chip"), SpinMissed(1), *spin("5")]
    null, missed, good = results(play(wheel(), events))
    assert null.settlements == ()
    assert settled(missed) == [(1, "red", 10, 10)]
    assert good.settlements == ()


def test_a_counter_that_jumps_beyond_belief_is_bounded_and_noted() -> None:
    verdicts = play(wheel(), [SpinMissed(10**12), *spin("5")])
    *missed, good = results(verdicts)
    assert len(missed) == 100
    assert good.void is None
    (note,) = [verdict.irregularity for verdict in verdicts if isinstance(verdict, Noted)]
    assert note.reason.values["n"] == 10**12


# ---- rounds and views


def test_an_automatic_wheel_needs_no_console() -> None:
    verdicts = play(wheel(), [SpinStarted(1), LAUNCH, BallSettling(), BallLanded("5"), SpinStarted(2)])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Opened]


def test_a_launch_alone_opens_a_round() -> None:
    verdicts = play(wheel(), [LAUNCH, BallLanded("5")])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]


def test_rounds_are_counted_by_the_day() -> None:
    ruleset = wheel()
    state = ruleset.start("rou-1")
    rounds = []
    for n, day in enumerate((20, 20, 21)):
        for event in spin("5"):
            seen = Envelope(f"e{n}", "felt/1/s/table/rou-1/device/d", START.replace(day=day), event)
            state, verdicts = ruleset.apply(state, seen)
            rounds += [verdict.round for verdict in verdicts if isinstance(verdict, Opened)]
    assert rounds == ["rou-1:2026-11-20:1", "rou-1:2026-11-20:2", "rou-1:2026-11-21:1"]


def test_the_view_follows_the_spin() -> None:
    ruleset = wheel()
    state = ruleset.start("t-1")
    shown = [ruleset.view(state)]
    for seen in script([BetsOpened(), BetsClosed(), LAUNCH, BallLanded("5"), BetsOpened(), EventsMissed(1)]):
        state, _ = ruleset.apply(state, seen)
        shown.append(ruleset.view(state))
    phases = ["idle", "betting", "closed", "running", "idle", "betting", "suspended"]
    assert [view.phase for view in shown] == phases
    assert shown[4].detail["last_pocket"] == "5"
    assert shown[6].detail["reason"] == say("round_events")


def test_a_prize_the_smallest_chip_cannot_pay_is_rounded_in_the_stated_direction() -> None:
    for rounding, returned in (("down", 205), ("up", 305)):
        result = only(play(wheel(smallest_chip=100, rounding=rounding), spin("5", WagerPlaced(1, "red", 205))))
        assert [(one.returned, one.exact) for one in result.settlements] == [(returned + 200, "410")]


# ---- properties

STEPS: list[Event] = [
    SpinStarted(),
    BetsOpened(),
    BetsClosed(),
    LAUNCH,
    WITH_ROTOR,
    BallSettling(),
    BallLanded("5"),
    BallLanded("0"),
    BallLanded("00"),
    SpinVoided("chip"),
    SpinMissed(1),
    SpinMissed(3),
    BallReplaced("5"),
    BallReplaced(),
    WheelStopped(),
    WheelStarted(),
    RoundPaid(),
    RoundVoided(""),
    EventsMissed(1),
    DeviceOnline(continuous=False),
    *(WagerPlaced(seat, bet, 10) for seat in (1, 2) for bet in ("red", "black", "nothing")),
    *(WagerWithdrawn(seat, bet, amount) for seat in (1, 2) for bet, amount in (("red", 0), ("black", 4))),
]
PARTS = st.one_of(
    st.lists(st.sampled_from(STEPS), max_size=4),
    st.just(spin("5", WagerPlaced(1, "red", 10))),
    st.just([BetsOpened(), WagerPlaced(1, "red", 10), WagerPlaced(2, "black", 7), LAUNCH, SpinVoided("chip")]),
)
PLAY = st.lists(PARTS, max_size=8).map(lambda parts: [event for part in parts for event in part])


@pytest.mark.article("2(2)")
def test_a_bet_laid_since_a_loss_can_be_taken_back_after_the_doubtful_ones_were() -> None:
    """The bets of a null spin are in doubt after a loss; the last of them is taken back, and the doubt is over."""
    null: tuple[Event, ...] = (BetsOpened(), WagerPlaced(1, "red", 5), SpinVoided("chip"), EventsMissed(1))
    known: tuple[Event, ...] = (WagerPlaced(2, "black", 10), WagerWithdrawn(1, "red"), WagerWithdrawn(2, "black", 4))
    verdicts = play(wheel(), [*null, *known, BetsOpened(), LAUNCH, BallLanded("2")])
    assert not [verdict for verdict in verdicts if isinstance(verdict, Noted)]
    assert [(one.seat, one.bet, one.stake) for one in results(verdicts)[-1].settlements] == [(2, "black", 6)]


@given(PLAY, st.sampled_from([{}, {"edition": "2003"}, {"betting": "no_more_bets", "payment": "console"}]))
@settings(max_examples=at_length(125, 2_500))
def test_no_chip_is_lost_or_made(events: list[Event], options: dict[str, Any]) -> None:
    chips_are_conserved(wheel(**options), events)


@given(PLAY)
@settings(max_examples=at_length(75, 1_500))
def test_a_spin_resolves_only_to_the_pocket_reported_after_its_own_launch(events: list[Event]) -> None:
    """An independent watcher of the ball: nothing doubtful lies between the launch and the landing."""
    ruleset = wheel()
    state = ruleset.start("t-1")
    running = False
    for seen in script(events):
        state, verdicts = ruleset.apply(state, seen)
        resolved = [verdict.result for verdict in verdicts if isinstance(verdict, Resolved)]
        match seen.event:
            case BallLaunched():
                running = seen.event != WITH_ROTOR
            case BallLanded(pocket=pocket):
                for result in resolved:
                    assert running
                    assert result.outcome["pocket"] == pocket
                resolved = []
                running = False
            case BetsOpened():
                running = running and state.counted  # else the ball that ran was another spin's
            case EventsMissed() | DeviceOnline() | SpinMissed() | SpinVoided() | RoundVoided() | SpinStarted():
                running = False
            case BallReplaced() | WheelStopped() | WheelStarted():
                running = False
            case _:
                pass
        assert not resolved


@pytest.mark.article("2(2)")
def test_art_2_2_declared_null_before_the_payment_takes_the_result_back() -> None:
    """The croupier saw the object only after the ball had come to rest: the bets stand, launched again."""
    events: list[Event] = [
        BetsOpened(),
        WagerPlaced(1, "straight:7", 100),
        BetsClosed(),
        BallLaunched("clockwise", "anticlockwise"),
        BallLanded("7"),
        RoundVoided("chip on the wheel"),
        BallLaunched("clockwise", "anticlockwise"),
        BallLanded("8"),
    ]
    verdicts = play(Roulette(RouletteOptions()), events)
    first, corrected, second = [one.result for one in verdicts if isinstance(one, Resolved | Corrected)]
    assert first.outcome["pocket"] == "7"
    assert corrected.void == Void(say("declared_for", text="chip on the wheel"), "stand")
    assert corrected.supersedes == first.round
    assert [one.returned for one in second.settlements] == [0]


def test_a_clock_set_back_over_midnight_repeats_no_round() -> None:
    """Round ids stay unique."""
    ruleset = Roulette(RouletteOptions())
    state = ruleset.start("t-1")
    ids = []
    for hours in (0, 2, 5, 4, 3, 1, 6):
        for seen in script([SpinStarted(1), BallLaunched("clockwise", "anticlockwise"), BallLanded("7")]):
            late = msgspec.structs.replace(seen, time=seen.time + timedelta(hours=hours))
            state, verdicts = ruleset.apply(state, late)
            ids += [one.round for one in verdicts if isinstance(one, Opened)]
    assert len(set(ids)) == len(ids) == 7
