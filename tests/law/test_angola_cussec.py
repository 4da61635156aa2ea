"""Angola cussec, paragraph by paragraph: Decreto Executivo 261/22, article 5."""

from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from typing import Any

import pytest
from helpers import game_of, only, play, results, script

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
from rules.angola.cussec import FAMILIES, Cussec
from rules.engine.ruleset import (
    BadOption,
    Closed,
    Irregularity,
    Noted,
    Opened,
    Resolved,
    Result,
    Suspended,
    Void,
    Voided,
    options_from,
)

LAW = "angola.cussec"
TEXT = "Decreto Executivo 261/22 art. "
Dice = tuple[int, int, int]
THROWS: list[Dice] = list(product(range(1, 7), range(1, 7), range(1, 7)))
PULL = DiceAgitated("lever", 1)
SHAKEN: tuple[Event, ...] = (DiceCovered(), PULL, PULL, PULL)
BELL: tuple[Event, ...] = (BetsClosed(), DiceUncovered())


game = game_of(Cussec)


def throw(faces: tuple[int, ...], *bets: Event) -> list[Event]:
    """One regular round without its payment: no key opens the bets."""
    return [*SHAKEN, *bets, *BELL, DiceRead(faces)]


def notes(result: Result) -> list[tuple[str, str]]:
    return [(note.code, note.law.removeprefix(TEXT)) for note in result.irregularities]


@cache
def paid() -> dict[Dice, dict[str, Fraction]]:
    """What wins on each of the 216 throws, and what it pays, as whole rounds say."""
    return {
        faces: {win.bet: Fraction(win.pays) for win in only(play(game(), throw(faces))).winners} for faces in THROWS
    }


# ---- 5(1), 5(3): three dice under a dome, shaken by a lever


@pytest.mark.article("5(1)")
@pytest.mark.parametrize("dice", [0, 1, 2, 4, 5])
def test_three_dice_make_a_throw(dice: int) -> None:
    verdicts = play(game(), throw((6,) * dice))
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]


@pytest.mark.article("5(3)a", "5(3)b", "5(5)")
@pytest.mark.parametrize(
    ("events", "noted"),
    [
        ([DiceCovered(), DiceAgitated("lever", 3)], []),
        ([DiceCovered(), PULL, DiceAgitated("lever", 2)], []),
        ([DiceCovered(), DiceAgitated("lever", 4)], [("wrong_agitation", "5(5)")]),
        ([*SHAKEN, PULL], [("agitated_after_opening", "5(5)")]),
        ([DiceCovered(), PULL, PULL], [("bell_without_opening", "5(5)"), ("wrong_agitation", "5(5)")]),
        (
            [DiceCovered(), DiceAgitated("electronic")],
            [("wrong_mechanism", "5(3)a"), ("bell_without_opening", "5(5)")],
        ),
        ([PULL, *SHAKEN], [("agitated_uncovered", "5(5)")]),
        (
            [DiceCovered(), PULL, PULL, BetsOpened(), PULL],
            [("wrong_agitation", "5(5)"), ("agitated_after_opening", "5(5)")],
        ),
    ],
)
def test_three_pulls_under_the_dome(events: list[Event], noted: list[tuple[str, str]]) -> None:
    result = only(play(game(), [*events, *BELL, DiceRead((1, 2, 3))]))
    assert (result.void, notes(result)) == (None, noted)


@pytest.mark.article("5(5)")
def test_the_light_opens_the_bets() -> None:
    ruleset = game()
    state = ruleset.start("t-1")
    seen = []
    for one in script([*SHAKEN, BetsOpened(), BetsClosed()]):
        state, _ = ruleset.apply(state, one)
        view = ruleset.view(state)
        seen.append((view.phase, view.detail["panel"]))
    covered, betting = ("covered", False), ("betting", True)
    assert seen == [covered, covered, covered, betting, betting, ("closed", False)]
    result = only(play(ruleset, throw((1, 2, 3), WagerPlaced(1, "small", 10))))
    assert notes(result) == []


@pytest.mark.article("5(5)")
def test_a_bet_before_the_light_is_irregular_and_plays() -> None:
    early = [DiceCovered(), PULL, PULL, WagerPlaced(1, "small", 10), PULL, *BELL, DiceRead((1, 2, 3))]
    result = only(play(game(), early))
    assert notes(result) == [("early_bet", "5(5)")]
    assert [one.returned for one in result.settlements] == [20]


# ---- 5(6): bell, call, result


@pytest.mark.article("5(6)")
def test_the_bell_is_called_and_ends_the_bets() -> None:
    ruleset = game()
    state = ruleset.start("t-1")
    for one in script([*SHAKEN, BetsClosed()]):
        state, _ = ruleset.apply(state, one)
    assert ruleset.view(state).detail["say"] == {
        "pt": "Nada mais. Vou abrir.",
        "zh-Hant": "停止下注，開",
        "en": "No more bets. Opening.",
    }
    late = [*SHAKEN, BetsClosed(), WagerPlaced(1, "small", 5), DiceUncovered(), DiceRead((1, 2, 3))]
    assert notes(only(play(ruleset, late))) == [("late_bet", "5(6)")]


@pytest.mark.article("5(6)")
def test_a_regular_result_is_called_and_its_places_light() -> None:
    result = only(play(game(), throw((6, 1, 2), WagerPlaced(2, "small", 500), WagerPlaced(4, "double:6", 100))))
    assert (result.ruleset, result.edition, result.void) == (LAW, "2022", None)
    assert result.law == tuple(TEXT + at for at in ("5(6)", "5(8)", "5(9)"))
    assert result.announcements == {
        "pt": "1, 2 e 6, total 9, pequeno",
        "zh-Hant": "1、2、6，9點，小",
        "en": "1, 2 and 6, total 9, small",
    }
    lit = {"small", "single:1", "single:2", "single:6", "two_dice:1-2", "two_dice:1-6", "two_dice:2-6", "total:9"}
    assert {*result.outcome["lit"]} == lit
    assert [(one.seat, one.returned) for one in result.settlements] == [(2, 1000), (4, 0)]


@pytest.mark.article("5(6)")
@pytest.mark.parametrize(
    ("events", "reason", "article"),
    [
        ([*SHAKEN, DiceUncovered()], "uncovered_before_bell", "5(6)"),
        ([*SHAKEN, DiceRead((1, 2, 3))], "read_before_bell", "5(6)"),
        ([*SHAKEN, *BELL, PULL], "agitated_after_bell", "5(6)"),
        ([DiceCovered(), BetsClosed()], "not_agitated", "5(5)"),
    ],
)
def test_a_throw_that_may_have_been_known_to_bettors_is_void(events: list[Event], reason: str, article: str) -> None:
    result = only(play(game(), events))
    assert result.void == Void(say(reason), "may_change")
    assert result.law == (TEXT + article, TEXT + "5(7)")


# ---- 5(7): stacked dice


@pytest.mark.article("5(7)")
@pytest.mark.parametrize(("stacked", "leaning"), [(1, 0), (2, 0), (1, 1)])
def test_stacked_dice_make_the_throw_void_and_the_bets_may_change(stacked: int, leaning: int) -> None:
    bets: list[Event] = [WagerPlaced(1, "small", 10), WagerPlaced(2, "big", 20)]
    null: list[Event] = [*SHAKEN, *bets, *BELL, DiceRead((1, 2, 3), stacked, leaning)]
    (result,) = results(play(game(), null))
    assert result.void == Void(say("stacked"), "may_change")
    assert (result.law, result.settlements) == ((TEXT + "5(7)",), ())
    assert result.announcements["pt"] == "Golpe nulo"
    changes: list[Event] = [WagerWithdrawn(1, "small", 4), WagerWithdrawn(2, "big"), WagerPlaced(3, "any_triple", 5)]
    _, again = results(play(game(), [*null, *changes, *throw((1, 2, 3))]))
    assert [(one.bet, one.stake, one.returned) for one in again.settlements] == [("small", 6, 12), ("any_triple", 5, 0)]


@pytest.mark.article("5(6)", "5(7)")
def test_a_leaning_die_is_not_void_and_its_reading_decides_nothing() -> None:
    bet = WagerPlaced(1, "small", 10)
    leaning = [*SHAKEN, bet, *BELL, DiceRead((1, 2, 3), leaning=1)]
    verdicts = play(game(), leaning)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed]
    # The dealer enters what lies up; a reader that sees it leaning again disputes nothing.
    verdicts = play(game(), [*leaning, DiceRead((1, 2, 4)), DiceRead((1, 2, 3), leaning=1), RoundPaid()])
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Noted]
    result = only(verdicts)
    assert result.outcome["faces"] == (1, 2, 4)
    assert notes(result) == [("dice_leaning", "5(6)")]
    assert verdicts[-1] == Noted(Irregularity("dice_leaning", say("dice_leaning"), TEXT + "5(6)", "e10"))
    (void,) = results(play(game(), [*leaning, RoundVoided("")]))
    assert void.void == Void(say("declared"), "may_change")


# ---- 5(8) to 5(11): bets and prizes

PRINTED: list[tuple[str, str, Dice, int]] = [
    ("a", "small", (1, 1, 2), 1),
    ("a", "small", (2, 3, 5), 1),
    ("b", "big", (2, 4, 5), 1),
    ("b", "big", (6, 6, 5), 1),
    ("c", "single:3", (3, 1, 2), 1),
    ("c", "single:3", (3, 3, 2), 2),
    ("c", "single:3", (3, 3, 3), 3),
    ("d", "two_dice:2-5", (5, 2, 2), 5),
    ("e", "double:6", (6, 1, 6), 10),
    ("e", "double:6", (6, 6, 6), 30),
    ("f", "triple:5", (5, 5, 5), 190),
    ("g", "any_triple", (2, 2, 2), 32),
    ("h", "total:4", (1, 1, 2), 65),
    ("h", "total:17", (6, 6, 5), 65),
    ("h", "total:5", (1, 2, 2), 32),
    ("h", "total:16", (6, 5, 5), 32),
    ("h", "total:6", (2, 2, 2), 19),
    ("h", "total:15", (4, 5, 6), 19),
    ("h", "total:7", (1, 2, 4), 12),
    ("h", "total:14", (3, 5, 6), 12),
    ("h", "total:8", (1, 2, 5), 8),
    ("h", "total:13", (1, 6, 6), 8),
    ("h", "total:9", (3, 3, 3), 7),
    ("h", "total:12", (4, 4, 4), 7),
    ("h", "total:10", (1, 3, 6), 6),
    ("h", "total:11", (1, 4, 6), 6),
]


def expected() -> dict[str, set[Dice]]:
    """Bet -> the throws it wins on, by brute force over the arrangements of the dice."""
    faces = range(1, 7)
    triples = {(n, n, n) for n in faces}
    pairs = {n: {dice for m in faces for dice in permutations((n, n, m))} for n in faces}
    return {
        "small": {dice for dice in THROWS if 4 <= sum(dice) <= 10} - triples,
        "big": {dice for dice in THROWS if 11 <= sum(dice) <= 17} - triples,
        **{f"single:{n}": {dice for dice in THROWS if n in dice} for n in faces},
        **{
            f"two_dice:{m}-{n}": {dice for k in faces for dice in permutations((k, m, n))}
            for m, n in combinations(faces, 2)
        },
        **{f"double:{n}": pairs[n] for n in faces},
        **{f"triple:{n}": {(n, n, n)} for n in faces},
        "any_triple": triples,
        **{f"total:{total}": {dice for dice in THROWS if sum(dice) == total} for total in range(4, 18)},
    }


@pytest.mark.article("5(8)a", "5(8)b", "5(8)c", "5(8)d", "5(8)e", "5(8)f", "5(8)g", "5(8)h")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_bet_wins_where_an_independent_count_says_so(family: str) -> None:
    assert [*game().board] == [*expected()]
    for bet, throws in expected().items():
        if bet.partition(":")[0] == family:
            assert {faces for faces in THROWS if bet in paid()[faces]} == throws, bet


@pytest.mark.article("5(9)a", "5(9)b", "5(9)c", "5(9)d", "5(9)e", "5(9)f", "5(9)g", "5(9)h", "5(11)")
@pytest.mark.parametrize(("letter", "bet", "faces", "pays"), PRINTED)
def test_printed_odds_and_the_stake_comes_back(letter: str, bet: str, faces: Dice, pays: int) -> None:
    result = only(play(game(), throw(faces, WagerPlaced(3, bet, 1000))))
    assert {win.bet: win.pays for win in result.winners}[bet] == str(pays)
    assert [(one.stake, one.returned) for one in result.settlements] == [(1000, 1000 + 1000 * pays)]
    (row,) = [row for row in game().bets() if row.id.partition(":")[0] == bet.partition(":")[0]]
    assert f"5(8){letter}" in row.law
    assert f"5(9){letter}" in row.law


@pytest.mark.article("5(10)")
@pytest.mark.parametrize("n", range(1, 7))
def test_a_triple_takes_small_and_big_alone(n: int) -> None:
    result = only(play(game(), throw((n, n, n), WagerPlaced(1, "small", 10), WagerPlaced(1, "big", 10))))
    wins = {"single", "double", "triple", "any_triple"} | ({"total"} if 4 <= 3 * n <= 17 else set())
    assert {win.bet.partition(":")[0] for win in result.winners} == wins
    assert [one.returned for one in result.settlements] == [0, 0]
    assert TEXT + "5(10)" in result.law


# By hand: 216 throws; what is lost of one unit.
EDGES = {
    "small": Fraction(1, 36),
    "big": Fraction(1, 36),
    "single": Fraction(17, 216),
    "two_dice": Fraction(1, 6),
    "double": Fraction(216 - 15 * 11 - 1 * 31, 216),
    "triple": Fraction(216 - 191, 216),
    "any_triple": Fraction(216 - 6 * 33, 216),
    "total:4": Fraction(216 - 3 * 66, 216),
    "total:5": Fraction(216 - 6 * 33, 216),
    "total:6": Fraction(216 - 10 * 20, 216),
    "total:7": Fraction(216 - 15 * 13, 216),
    "total:8": Fraction(216 - 21 * 9, 216),
    "total:9": Fraction(216 - 25 * 8, 216),
    "total:10": Fraction(216 - 27 * 7, 216),
}


@pytest.mark.parametrize("family", EDGES)
def test_house_edge(family: str) -> None:
    bets = [bet for bet in game().board if family in (bet, bet.partition(":")[0])]
    assert bets
    for bet in bets:
        gain = sum((paid()[faces].get(bet, Fraction(-1)) for faces in THROWS), Fraction())
        assert -gain / len(THROWS) == EDGES[family], bet


# ---- 5(12): covered only when all is paid


@pytest.mark.article("5(12)")
def test_dice_covered_before_the_payment_are_irregular() -> None:
    ruleset = game(payment="console")
    first, second = results(play(ruleset, [*throw((1, 2, 3)), *throw((4, 5, 6)), RoundPaid()]))
    assert (notes(first), notes(second)) == ([], [("covered_before_payment", "5(12)")])
    both = results(play(ruleset, [*throw((1, 2, 3)), RoundPaid(), *throw((4, 5, 6))]))
    assert [notes(result) for result in both] == [[], []]


# ---- options


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bets_offered": ["even"]}, "art. 5(8) has no bet 'even'"),
        ({"agitation": "electronic"}, "no option 'agitation'"),
        ({"smallest_chip": 0}, "smallest_chip"),
        ({"rounding": "near"}, "down | up"),
    ],
)
def test_what_the_text_excludes_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption, match=says.replace("(", "\\(").replace(")", "\\)").replace("|", "\\|")):
        options_from(Cussec, given)


def test_bets_offered_leaves_the_others_out() -> None:
    ruleset = game(bets_offered=("total", "small"))
    assert [bet.id for bet in ruleset.bets()] == ["small", "total:n"]
    result = only(play(ruleset, throw((1, 1, 2), WagerPlaced(1, "big", 5))))
    assert notes(result) == [("bet_not_offered", "5(8)")]


# ---- doubt


def test_bets_opened_by_hand_after_a_loss_begin_no_round_before_the_bell() -> None:
    """The light opened them: the key says nothing of another round."""
    lost: list[Event] = [*SHAKEN, DeviceOnline(continuous=False), BetsOpened()]
    assert [type(one) for one in play(game(), lost)] == [Opened, Suspended]
    verdicts = play(game(), [*lost, BetsClosed(), BetsOpened()])
    assert [type(one) for one in verdicts] == [Opened, Suspended, Closed, Voided, Opened, Suspended]
