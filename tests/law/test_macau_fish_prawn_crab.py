"""Macau fish-prawn-crab, article by article: Despacho 59/2004 with 69/2006."""

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial
from itertools import permutations, product
from typing import Any

import msgspec
import pytest
from helpers import at_length, game_of, only, play, results, script, virtual_time
from hypothesis import given, settings, strategies as st

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.reasons import say
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
from rules.macau.fish_prawn_crab import FAMILIES, FishPrawnCrab
from simulators.clock import Pace
from simulators.tables.fish_prawn_crab import LAYOUT, FishPrawnCrabTable
from simulators.tables.table import Floor, Look

LAW = "macau.fish-prawn-crab"
ART = "Despacho 59/2004 art. "
Dice = tuple[int, int, int]
THROWS: list[Dice] = list(product(range(1, 7), range(1, 7), range(1, 7)))
LEVER = DiceAgitated("lever", 3)
SHAKEN: tuple[Event, ...] = (DiceCovered(), LEVER, BetsOpened())
BELL: tuple[Event, ...] = (BetsClosed(), DiceUncovered())

# Art. 1(1), as printed.
FACES = """
fish     red    1
prawn    green  2
gourd    blue   3
coin     blue   4
crab     green  5
rooster  red    6
"""
FIGURE, COLOUR = (
    {int(n): line[i] for line in map(str.split, FACES.split("\n")[1:-1]) for n in line[2]} for i in (0, 1)
)


game = game_of(FishPrawnCrab)


def throw(faces: tuple[int, ...], *bets: Event) -> list[Event]:
    """One regular round without its payment."""
    return [*SHAKEN, *bets, *BELL, DiceRead(faces)]


def noted(result: Result) -> list[tuple[str, str]]:
    return [(note.code, note.law.removeprefix(ART)) for note in result.irregularities]


@cache
def paid() -> dict[Dice, dict[str, Fraction]]:
    """What wins on each of the 216 throws, and what it pays, as whole rounds say."""
    return {
        faces: {win.bet: Fraction(win.pays) for win in only(play(game(), throw(faces))).winners} for faces in THROWS
    }


# ---- art. 1: the dice, the cup, the board


@pytest.mark.article("1(1)")
@pytest.mark.parametrize("n", range(1, 7))
def test_art_1_1_each_face_has_a_figure_a_colour_and_a_number(n: int) -> None:
    result = only(play(game(), throw((n, n, n))))
    assert result.outcome["faces"] == (n, n, n)
    assert result.outcome["figures"] == (FIGURE[n],) * 3
    assert result.outcome["colours"] == {COLOUR[n]: 3}
    assert {f"figure:{FIGURE[n]}", f"triple:{FIGURE[n]}", f"three_colour:{COLOUR[n]}"} <= set(paid()[n, n, n])


@pytest.mark.article("1(2)")
@pytest.mark.parametrize("n", range(1, 4))
def test_art_1_2_opposite_faces_make_seven_and_so_are_of_one_colour(n: int) -> None:
    result = only(play(game(), throw((n, 7 - n, 7 - n))))
    assert result.outcome["total"] == n + 2 * (7 - n)
    assert result.outcome["colours"] == {COLOUR[n]: 3}
    assert "same_colour" in {win.bet for win in result.winners}


@pytest.mark.article("1(1)")
@pytest.mark.parametrize("dice", [0, 1, 2, 4, 5, 6])
def test_art_1_1_three_dice_make_a_throw(dice: int) -> None:
    assert [type(verdict) for verdict in play(game(), throw((1,) * dice))] == [Opened, Closed, Suspended]


@pytest.mark.article("1(4)")
def test_art_1_4_the_board_has_every_place() -> None:
    board = game().board
    assert len(board) == len(set(board))
    assert set(board) == set(EXPECTED)
    assert Counter(place.partition(":")[0] for place in board) == {
        **dict.fromkeys(("small", "big", "same_colour", "any_triple"), 1),
        **dict.fromkeys(("figure", "triple"), 6),
        **dict.fromkeys(("one_colour", "two_colour", "three_colour"), 3),
        "total": 14,
    }


# ---- arts. 5, 6, 7: an independent account of every bet, from the dice as they lie


TOTALS = {4: 50, 5: 18, 6: 14, 7: 12, 8: 8, 9: 6, 10: 6, 11: 6, 12: 6, 13: 8, 14: 12, 15: 14, 16: 18, 17: 50}


def expected_bets() -> dict[str, Callable[[Dice], int]]:
    """Bet -> what it pays on a throw, 0 where it loses; by brute force over the arrangements of the dice."""

    def among(arrangements: Iterable[tuple[int, ...]], pays: int) -> Callable[[Dice], int]:
        winning = set(arrangements)
        return lambda dice: pays if dice in winning else 0

    triples = {(n, n, n) for n in FIGURE}
    bets = {
        "small": among((dice for dice in THROWS if 4 <= sum(dice) <= 10 and dice not in triples), 1),
        "big": among((dice for dice in THROWS if 11 <= sum(dice) <= 17 and dice not in triples), 1),
        "any_triple": among(triples, 24),
    }
    for n, figure in FIGURE.items():
        bets[f"figure:{figure}"] = partial(lambda n, dice: sum(face == n for face in dice), n)
        bets[f"triple:{figure}"] = among([(n, n, n)], 150)
    of_one: set[tuple[int, ...]] = set()
    for colour in set(COLOUR.values()):
        these = [n for n in COLOUR if COLOUR[n] == colour]
        others = [n for n in COLOUR if COLOUR[n] != colour]
        once = {order for a, b, c in product(these, others, others) for order in permutations((a, b, c))}
        twice = {order for a, b, c in product(these, these, others) for order in permutations((a, b, c))}
        bets[f"one_colour:{colour}"] = among(once, 1)
        bets[f"two_colour:{colour}"] = among(twice, 3)
        bets[f"three_colour:{colour}"] = among(product(these, repeat=3), 20)
        of_one |= set(product(these, repeat=3))
    bets["same_colour"] = among(of_one, 7)
    for total, pays in TOTALS.items():
        bets[f"total:{total}"] = among((dice for dice in THROWS if sum(dice) == total), pays)
    return bets


EXPECTED = expected_bets()


@pytest.mark.article("5(1)", "5(2)", "5(3)", "5(4)", "5(5)", "5(6)", "5(7)", "5(8)", "5(9)", "5(10)", "7")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_bet_wins_and_pays_as_an_independent_count_says_on_all_216_throws(family: str) -> None:
    mine = [place for place in EXPECTED if place.partition(":")[0] == family]
    assert mine
    for faces in THROWS:
        wins = {bet: pays for bet, pays in paid()[faces].items() if bet in mine}
        assert wins == {place: pays for place in mine if (pays := EXPECTED[place](faces))}, faces
        assert set(paid()[faces]) <= set(EXPECTED)


# Article 6, item by item: a bet, a throw it wins on, its odds; the odds are the printed words as numbers.
PRINTED: list[tuple[int, str, Dice, int]] = [
    (1, "small", (1, 1, 2), 1),
    (1, "small", (2, 3, 5), 1),
    (2, "big", (2, 4, 5), 1),
    (2, "big", (6, 6, 5), 1),
    (3, "figure:gourd", (3, 1, 2), 1),
    (3, "figure:gourd", (3, 3, 2), 2),
    (3, "figure:gourd", (3, 3, 3), 3),
    (4, "one_colour:red", (6, 2, 3), 1),
    (5, "two_colour:green", (2, 5, 6), 3),
    (6, "three_colour:blue", (3, 4, 4), 20),
    (7, "same_colour", (1, 6, 1), 7),
    (8, "triple:crab", (5, 5, 5), 150),
    (9, "any_triple", (4, 4, 4), 24),
    (10, "total:4", (1, 1, 2), 50),
    (10, "total:17", (6, 6, 5), 50),
    (10, "total:5", (1, 2, 2), 18),
    (10, "total:16", (6, 5, 5), 18),
    (10, "total:6", (2, 2, 2), 14),
    (10, "total:15", (4, 5, 6), 14),
    (10, "total:7", (1, 2, 4), 12),
    (10, "total:14", (3, 5, 6), 12),
    (10, "total:8", (1, 2, 5), 8),
    (10, "total:13", (1, 6, 6), 8),
    (10, "total:9", (3, 3, 3), 6),
    (10, "total:10", (1, 3, 6), 6),
    (10, "total:11", (1, 4, 6), 6),
    (10, "total:12", (4, 4, 4), 6),
]


@pytest.mark.article("6(1)", "6(2)", "6(3)", "6(4)", "6(5)", "6(6)", "6(7)", "6(8)", "6(9)", "6(10)")
@pytest.mark.parametrize(("item", "bet", "faces", "pays"), PRINTED)
def test_printed_odds(item: int, bet: str, faces: Dice, pays: int) -> None:
    result = only(play(game(), throw(faces, WagerPlaced(3, bet, 1000))))
    assert {win.bet: win.pays for win in result.winners}[bet] == str(pays)
    assert [(one.stake, one.returned) for one in result.settlements] == [(1000, 1000 + 1000 * pays)]
    (row,) = [row for row in game().bets() if row.id.partition(":")[0] == bet.partition(":")[0]]
    assert f"5({item})" in row.law
    assert f"6({item})" in row.law
    assert str(pays) in row.pays


def test_printed_odds_cover_every_item_of_art_6() -> None:
    assert {item for item, *_ in PRINTED} == set(range(1, 11))
    assert {bet.partition(":")[0] for _, bet, *_ in PRINTED} == set(FAMILIES)


@pytest.mark.article("5(4)", "5(5)")
def test_art_5_4_and_5_one_and_two_dice_of_a_colour_and_no_more() -> None:
    reds = {0: (2, 3, 4), 1: (1, 3, 4), 2: (1, 6, 4), 3: (1, 6, 1)}
    won = {count: {bet for bet in paid()[faces] if bet.endswith(":red")} for count, faces in reds.items()}
    assert won == {0: set(), 1: {"one_colour:red"}, 2: {"two_colour:red"}, 3: {"three_colour:red"}}


@pytest.mark.article("5(8)", "5(9)", "6(9)")
def test_any_triple_wins_on_all_six_the_chosen_one_included() -> None:
    bets = (WagerPlaced(1, "triple:fish", 1), WagerPlaced(2, "any_triple", 1))
    for n in FIGURE:
        result = only(play(game(), throw((n, n, n), *bets)))
        assert [one.returned for one in result.settlements] == [151 if n == 1 else 0, 25]


@pytest.mark.article("7")
@pytest.mark.parametrize("n", range(1, 7))
def test_art_7_small_and_big_lose_on_three_equal_figures_and_the_rest_wins(n: int) -> None:
    result = only(play(game(), throw((n, n, n), WagerPlaced(1, "small", 10), WagerPlaced(1, "big", 10))))
    wins = {"figure", "three_colour", "same_colour", "triple", "any_triple"}
    wins |= {"total"} if 4 <= 3 * n <= 17 else set()
    assert {win.bet.partition(":")[0] for win in result.winners} == wins
    assert [one.returned for one in result.settlements] == [0, 0]
    assert "size" not in result.outcome
    assert f"{ART}7" in result.law


EDGES = {
    "small": Fraction(1, 36),  # 2.778 %
    "big": Fraction(1, 36),
    "figure": Fraction(17, 216),  # 7.870 %
    "one_colour": Fraction(1, 9),
    "two_colour": Fraction(1, 9),
    "three_colour": Fraction(2, 9),
    "same_colour": Fraction(1, 9),
    "triple": Fraction(65, 216),
    "any_triple": Fraction(11, 36),
    "total:4": Fraction(7, 24),
    "total:5": Fraction(17, 36),
    "total:6": Fraction(11, 36),
    "total:7": Fraction(7, 72),
    "total:8": Fraction(1, 8),
    "total:9": Fraction(41, 216),
    "total:10": Fraction(1, 8),
}


@pytest.mark.parametrize("family", EDGES)
def test_house_edge(family: str) -> None:
    bets = [bet for bet in game().board if family in (bet, bet.partition(":")[0])]
    if family.startswith("total:"):
        bets.append(f"total:{21 - int(family[6:])}")
    for bet in bets:
        gain = sum((paid()[faces].get(bet, Fraction(-1)) for faces in THROWS), Fraction())
        assert -gain / len(THROWS) == EDGES[family], bet


# ---- the house's choices, art. 8


@pytest.mark.article("8")
@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"bets_offered": ["even"]}, "art. 5 has no bet 'even'"),
        ({"bets_offered": ["small", "tie"]}, "art. 5 has no bet 'tie'"),
        ({"total_5_16": 30}, "no option 'total_5_16'"),
        ({"edition": "2003"}, "edition"),
        ({"agitation": "hand"}, "lever | electronic | either"),
        ({"payment": "later"}, "implied | console"),
        ({"smallest_chip": 0}, "smallest_chip"),
    ],
)
def test_what_the_text_excludes_is_refused(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(FishPrawnCrab, given_options)
    assert says in str(refused.value)


def test_bets_offered_leaves_the_others_out() -> None:
    ruleset = game(bets_offered=("total", "small"))
    assert [bet.id for bet in ruleset.bets()] == ["small", "total:n"]
    result = only(play(ruleset, throw((1, 1, 2), WagerPlaced(1, "big", 5), WagerPlaced(1, "small", 5))))
    assert [win.bet for win in result.winners] == ["small", "total:4"]
    assert noted(result) == [("bet_not_offered", "5")]
    assert [one.bet for one in result.settlements] == ["small"]


def test_a_prize_the_smallest_chip_cannot_pay_is_rounded_in_the_stated_direction() -> None:
    for rounding, returned in (("down", 205), ("up", 305)):
        ruleset = game(smallest_chip=100, rounding=rounding)
        result = only(play(ruleset, throw((1, 1, 2), WagerPlaced(1, "small", 105))))
        assert [(one.returned, one.exact) for one in result.settlements] == [(returned, "210")]


# ---- the result


@pytest.mark.article("2(1)", "3(2)")
def test_a_regular_round() -> None:
    bets = (WagerPlaced(2, "one_colour:blue", 500), WagerPlaced(4, "figure:crab", 100))
    verdicts = play(game(), throw((6, 4, 1), *bets))
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    assert result.round == "t-1:2026-11-20:1"
    assert (result.ruleset, result.edition, result.demo, result.void) == (LAW, "2004", False, None)
    assert result.evidence == tuple(f"e{n}" for n in range(1, 9))
    assert result.law == tuple(f"{ART}{article}" for article in ("3(2)", "5", "6"))
    assert result.irregularities == ()
    assert [(one.seat, one.bet, one.returned) for one in result.settlements] == [
        (2, "one_colour:blue", 1000),
        (4, "figure:crab", 0),
    ]
    assert result.outcome == {
        "faces": (1, 4, 6),
        "total": 11,
        "triple": False,
        "size": "big",
        "figures": ("fish", "coin", "rooster"),
        "colours": {"red": 2, "blue": 1},
        "lit": tuple(win.bet for win in result.winners),
    }
    assert result == only(play(game(), throw((1, 6, 4), *bets)))


@pytest.mark.article("3(2)")
@pytest.mark.parametrize(
    ("faces", "words"),
    [
        (
            (1, 1, 4),
            (
                "Peixe, peixe e moeda, total 6, pequeno, duas vermelhas, uma azul",
                "魚、魚、金錢，6點，小，二紅，一藍",
                "Fish, fish and coin, total 6, small, two red, one blue",
            ),
        ),
        (
            (5, 6, 3),
            (
                "Cabaço, caranguejo e galo, total 14, grande, uma azul, uma verde, uma vermelha",
                "葫蘆、蟹、雞，14點，大，一藍，一綠，一紅",
                "Gourd, crab and rooster, total 14, big, one blue, one green, one red",
            ),
        ),
        (
            (2, 5, 5),
            (
                "Camarão, caranguejo e caranguejo, total 12, grande, três verdes",
                "蝦、蟹、蟹，12點，大，三綠",
                "Prawn, crab and crab, total 12, big, three green",
            ),
        ),
        (
            (2, 2, 2),
            (
                "Três dados com camarão, total 6, três verdes",
                "圍骰蝦，6點，三綠",
                "Three dice with prawn, total 6, three green",
            ),
        ),
    ],
)
def test_the_result_is_announced_in_three_languages(faces: Dice, words: tuple[str, str, str]) -> None:
    assert only(play(game(), throw(faces))).announcements == dict(zip(("pt", "zh-Hant", "en"), words, strict=True))


@pytest.mark.article("3(2)")
def test_art_3_2_the_winning_places_may_light() -> None:
    result = only(play(game(), throw((2, 2, 3))))
    assert result.outcome["lit"] == tuple(win.bet for win in result.winners)
    assert set(result.outcome["lit"]) == set(paid()[2, 2, 3])
    assert "lit" not in only(play(game(lights=False), throw((2, 2, 3)))).outcome


# ---- the ceremony, arts. 2 to 4; more of it stands in test_macau_cussec.py


@pytest.mark.article("1(3)(1)", "2(1)")
@pytest.mark.parametrize(
    ("agitation", "shaking", "codes"),
    [
        ("lever", [LEVER], []),
        ("lever", [DiceAgitated("lever", 1)] * 3, []),
        ("electronic", [DiceAgitated("electronic", 5)], []),
        ("either", [LEVER], []),
        ("either", [DiceAgitated("electronic")], []),
        ("lever", [DiceAgitated("lever", 2)], [("wrong_agitation", "2(1)")]),
        ("lever", [DiceAgitated("lever", 4)], [("wrong_agitation", "2(1)")]),
        ("either", [LEVER, DiceAgitated("electronic")], [("wrong_agitation", "2(1)")]),
        ("lever", [DiceAgitated("electronic")], [("wrong_mechanism", "1(3)(1)")]),
        ("electronic", [LEVER], [("wrong_mechanism", "1(3)(1)")]),
    ],
)
def test_three_pulls_or_one_electronic_agitation(
    agitation: str, shaking: list[Event], codes: list[tuple[str, str]]
) -> None:
    result = only(play(game(agitation=agitation), [DiceCovered(), *shaking, BetsOpened(), *BELL, DiceRead((1, 2, 3))]))
    assert result.void is None
    assert noted(result) == codes


@pytest.mark.article("2(1)", "3(1)", "4")
@pytest.mark.parametrize(
    ("events", "codes"),
    [
        (
            [DiceCovered(), BetsOpened(), LEVER, *BELL],
            [("bets_before_agitation", "2(1)"), ("agitated_after_opening", "2(1)")],
        ),
        ([DiceCovered(), LEVER, *BELL], [("bell_without_opening", "2(1)")]),
        ([DiceCovered(), LEVER, WagerPlaced(1, "small", 5), BetsOpened(), *BELL], [("early_bet", "2(1)")]),
        ([*SHAKEN, BetsClosed(), WagerPlaced(1, "small", 5), DiceUncovered()], [("late_bet", "3(1)")]),
        ([*SHAKEN, BetsClosed(), WagerWithdrawn(1, "small"), DiceUncovered()], [("late_bet", "3(1)")]),
        ([*SHAKEN, BetsClosed(), BetsOpened(), DiceUncovered()], [("bets_reopened", "3(1)")]),
    ],
)
def test_where_only_the_ceremony_was_off_the_throw_counts(events: list[Event], codes: list[tuple[str, str]]) -> None:
    result = only(play(game(), [*events, DiceRead((6, 6, 5))]))
    assert result.void is None
    assert noted(result) == codes
    assert {"big", "figure:rooster"} <= {win.bet for win in result.winners}


@pytest.mark.article("1(3)(2)", "2(1)", "3(2)")
def test_a_shake_shuts_a_fixed_dome_and_the_bell_opens_it() -> None:
    cast: list[Event] = [DiceAgitated("electronic"), BetsOpened(), BetsClosed(), DiceRead((1, 2, 4))]
    result = only(play(game(agitation="electronic", dome="fixed"), cast))
    assert (result.void, result.irregularities, result.outcome["faces"]) == (None, (), (1, 2, 4))
    unshaken = only(play(game(agitation="electronic", dome="fixed"), cast[1:]))
    assert unshaken.void == Void(say("not_agitated"), "may_change")
    lifted = only(play(game(agitation="electronic"), cast))
    assert lifted.void == Void(say("not_agitated"), "may_change")


@pytest.mark.article("1(3)(2)", "2(1)", "3(1)")
@pytest.mark.parametrize(
    ("events", "reason", "article"),
    [
        ([*SHAKEN, DiceUncovered()], "uncovered_before_bell", "3(1)"),
        ([*SHAKEN, DiceRead((1, 2, 3))], "read_before_bell", "3(1)"),
        ([*SHAKEN, *BELL, LEVER], "agitated_after_bell", "3(1)"),
        ([DiceCovered(), BetsOpened(), BetsClosed()], "not_agitated", "2(1)"),
        ([LEVER, BetsOpened(), BetsClosed()], "not_agitated", "2(1)"),
    ],
)
def test_where_the_dice_may_have_been_known_the_throw_is_void(events: list[Event], reason: str, article: str) -> None:
    verdicts = play(game(), events)
    assert isinstance(verdicts[-1], Voided)
    result = only(verdicts)
    assert result.void == Void(say(reason), "may_change")
    assert (result.winners, result.settlements) == ((), ())
    assert result.law == tuple(f"{ART}{at}" for at in (article, "3(3)", "3(4) (69/2006)"))


@pytest.mark.article("2(2)", "2(3)", "3(1)", "3(2)")
def test_the_view_follows_the_round() -> None:
    ruleset = game(announces=True)
    state = ruleset.start("t-1")
    shown = []
    for seen in script([*throw((1, 2, 3)), RoundPaid()]):
        state, _ = ruleset.apply(state, seen)
        shown.append(ruleset.view(state))
    phases = [view.phase for view in shown]
    assert phases == ["covered", "covered", "betting", "closed", "uncovered", "paying", "idle"]
    assert [view.detail.get("panel") for view in shown[:5]] == [False, True, True, False, False]
    assert shown[2].detail["say"]["en"] == "Place your bets"
    assert shown[3].detail["say"] == {"pt": "Abertura da jogada", "zh-Hant": "開", "en": "Opening"}
    assert shown[5].detail["say"]["pt"].startswith("Peixe, camarão e cabaço, total 6, pequeno")
    assert shown[5].detail["figures"] == ("fish", "prawn", "gourd")


@pytest.mark.article("2(2)", "2(3)")
def test_the_panel_and_the_opening_call_are_the_houses_choice() -> None:
    ruleset = game(panel=False)
    state = ruleset.start("t-1")
    for seen in script(SHAKEN):
        state, _ = ruleset.apply(state, seen)
    assert ruleset.view(state).detail == {"pulls": 3, "agitations": 0}


VOID_THROW: list[Event] = [
    *SHAKEN,
    WagerPlaced(1, "same_colour", 10),
    WagerPlaced(2, "figure:fish", 20),
    *BELL,
    DiceRead((1, 2, 3), stacked=1),
]


@pytest.mark.article("3(3)", "3(4)")
@pytest.mark.parametrize(("stacked", "leaning"), [(1, 0), (2, 0), (0, 1), (1, 2)])
def test_art_3_3_stacked_or_leaning_dice(stacked: int, leaning: int) -> None:
    result = only(play(game(), [*VOID_THROW[:-1], DiceRead((1, 2), stacked, leaning)]))
    assert result.void == Void(say("stacked_or_leaning"), "may_change")
    assert result.law == (f"{ART}3(3)", f"{ART}3(4) (69/2006)")
    assert (result.winners, result.settlements, result.irregularities) == ((), (), ())
    assert result.announcements == {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}


@pytest.mark.article("3(3)", "3(4)")
@pytest.mark.parametrize("moment", [0, 1, 2, 3])
def test_art_3_4_the_bets_of_a_void_throw_are_taken_back_kept_or_changed(moment: int) -> None:
    """At once, with the dice covered again, or after the bets were opened again."""
    changes: list[Event] = [
        WagerWithdrawn(1, "same_colour", 4),
        WagerWithdrawn(2, "figure:fish"),
        WagerPlaced(2, "figure:crab", 30),
    ]
    again = [*SHAKEN[:moment], *changes, *SHAKEN[moment:], *BELL, DiceRead((5, 2, 2))]
    _, result = results(play(game(), [*VOID_THROW, *again]))
    assert [(one.bet, one.stake, one.returned) for one in result.settlements] == [
        ("same_colour", 6, 48),
        ("figure:crab", 30, 60),
    ]
    assert result.irregularities == ()
    _, kept = results(play(game(), [*VOID_THROW, *throw((1, 1, 1))]))
    assert [(one.stake, one.returned) for one in kept.settlements] == [(10, 80), (20, 80)]


@pytest.mark.article("4")
def test_art_4_covered_before_the_payment() -> None:
    ruleset = game(payment="console")
    early = results(play(ruleset, [*throw((1, 2, 3)), *throw((4, 5, 6))]))
    assert [noted(result) for result in early] == [[], [("covered_before_payment", "4")]]
    regular = results(play(ruleset, [*throw((1, 2, 3)), RoundPaid(), *throw((4, 5, 6))]))
    assert [noted(result) for result in regular] == [[], []]
    lost, _ = results(play(game(), [*SHAKEN, WagerPlaced(1, "small", 10), *BELL, *throw((1, 2, 3))]))
    assert lost.void == Void(say("never_read"), "returned")
    assert noted(lost) == [("covered_before_reading", "4")]
    assert [(one.stake, one.returned) for one in lost.settlements] == [(10, 10)]


# ---- doubt


@pytest.mark.parametrize(
    "events",
    [
        [*SHAKEN, *BELL, DiceRead((1, 2))],
        [*SHAKEN, BetsClosed(), DiceRead((1, 2, 3))],
        [*SHAKEN, EventsMissed(1)],
        [*SHAKEN, *BELL, DeviceOnline(continuous=False)],
    ],
)
def test_a_doubtful_round_waits_for_a_person_and_never_resolves(events: list[Event]) -> None:
    waiting = play(game(), [*events, DiceRead((1, 2, 3))])
    assert isinstance(waiting[-1], Suspended)
    assert not results(waiting)
    assert only(play(game(), [*events, RoundVoided("")])).void == Void(say("declared"), "may_change")
    first, second = results(play(game(), [*events, *throw((4, 5, 6))]))
    assert first.void is not None
    assert first.void.bets == "returned"
    assert second.void is None


def test_a_second_reading_that_contradicts_puts_the_result_in_doubt() -> None:
    doubt = [*throw((1, 2, 3), WagerPlaced(1, "figure:gourd", 10)), DiceRead((1, 2, 4))]
    assert isinstance(play(game(), doubt)[-1], Suspended)
    *_, stands = play(game(), [*doubt, RoundPaid()])
    assert isinstance(stands, Corrected)
    assert [one.returned for one in stands.result.settlements] == [20]
    *_, void = play(game(), [*doubt, RoundVoided("look")])
    assert isinstance(void, Corrected)
    assert void.result.void == Void(say("look"), "may_change")
    same = play(game(), [*throw((1, 2, 3)), DiceRead((3, 2, 1)), DiceRead((1, 2, 3))])
    assert [type(verdict) for verdict in same] == [Opened, Closed, Resolved]


@pytest.mark.parametrize(
    "event", [BetsClosed(), DiceRead((1, 2, 3)), WagerPlaced(1, "small", 5), WagerWithdrawn(1, "small"), RoundVoided()]
)
def test_what_needs_a_round_is_noted_where_there_is_none(event: Event) -> None:
    (verdict,) = play(game(), [event])
    assert isinstance(verdict, Noted)
    assert verdict.irregularity.law.startswith(ART)


# ---- properties

STEPS: list[Event] = [
    *(DiceCovered(), LEVER, DiceAgitated("lever", 1), DiceAgitated("electronic"), BetsOpened(), BetsClosed()),
    *(DiceUncovered(), DiceRead((1, 2, 3)), DiceRead((6, 6, 6)), DiceRead((1, 2)), DiceRead((1, 2, 3), leaning=1)),
    *(RoundPaid(), RoundVoided(""), EventsMissed(1), DeviceOnline(continuous=False)),
    *(WagerPlaced(seat, bet, 10) for seat in (1, 2) for bet in ("small", "figure:fish", "nothing")),
    *(WagerWithdrawn(1, "small", amount) for amount in (0, 4)),
]
PARTS = st.one_of(
    st.lists(st.sampled_from(STEPS), max_size=4),
    st.just(throw((1, 2, 3), WagerPlaced(1, "small", 10))),
    st.just(list(VOID_THROW)),
)
PLAY = st.lists(PARTS, max_size=8).map(lambda parts: [event for part in parts for event in part])


@given(PLAY, st.sampled_from([{}, {"agitation": "either", "payment": "console"}]))
@settings(max_examples=at_length(75, 1_500))
def test_every_round_ends_once_pays_what_it_should_and_its_state_may_be_written_down(
    events: list[Event], options: dict[str, Any]
) -> None:
    ruleset = game(**options)
    state = ruleset.start("t-1")
    opened: list[str] = []
    ended: list[str] = []
    for seen in script(events):
        assert msgspec.json.decode(msgspec.json.encode(state), type=ruleset.State) == state
        state, verdicts = ruleset.apply(state, seen)
        for verdict in verdicts:
            match verdict:
                case Opened(round=round_):
                    opened.append(round_)
                case Resolved(result=result):
                    ended.append(result.round)
                    faces = result.outcome["faces"]
                    for one in result.settlements:
                        pays = EXPECTED[one.bet](faces)
                        assert one.returned == (one.stake * (1 + pays) if pays else 0)
                case Voided(result=result):
                    ended.append(result.round)
                    assert all(one.returned == one.stake for one in result.settlements)
                case _:
                    pass
    assert opened[: len(ended)] == ended
    assert len(opened) - len(ended) == (state.round is not None)


NIGHT: list[Event] = [
    *throw((1, 2, 3), WagerPlaced(1, "total:6", 10), WagerPlaced(2, "total:7", 20), WagerWithdrawn(2, "total:7", 5)),
    RoundPaid(),
    *VOID_THROW,
    *throw((6, 6, 6), WagerPlaced(3, "any_triple", 1)),
    RoundPaid(),
    *throw((4, 5, 6), WagerPlaced(1, "one_colour:red", 2)),
    RoundPaid(),
]


@pytest.mark.article("2(1)", "3(4)")
@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(continuous=False)])
def test_after_a_loss_the_bets_of_a_void_throw_come_back_and_the_next_throw_counts(loss: Event) -> None:
    """Its shaking was seen whole since then: only the bets that lay there before are in doubt."""
    verdicts = play(game(), [*VOID_THROW, loss, *throw((5, 5, 1), WagerPlaced(3, "figure:crab", 4))])
    *_, back, good = results(verdicts)
    assert (back.void and back.void.bets, {one.seat for one in back.settlements}) == ("returned", {1, 2})
    assert (good.void, good.irregularities) == (None, ())
    assert [(one.seat, one.returned) for one in good.settlements] == [(3, 12)]


@pytest.mark.parametrize("proof", [EventsMissed(1), DeviceOnline(continuous=False)])
@pytest.mark.parametrize("lost", range(len(NIGHT)))
def test_an_event_proven_lost_never_gives_a_wrong_result(lost: int, proof: Event) -> None:
    true = {result.evidence[-1]: result for result in results(play(game(), NIGHT)) if result.void is None}
    seen = results(play(game(), [*NIGHT[:lost], proof, *NIGHT[lost + 1 :]]))
    for result in (one for one in seen if one.void is None):
        expected = true[result.evidence[-1]]
        assert (result.outcome, result.winners) == (expected.outcome, expected.winners)
        back, meant = ({(one.seat, one.bet): one for one in ended.settlements} for ended in (result, expected))
        assert all(back[key] == meant[key] for key in back.keys() & meant.keys())
    assert any(one.void is None for one in seen)


# ---- the dealer of the demo, who knows the game by heart


def test_the_simulated_dealer_and_the_ruleset_agree_on_every_throw() -> None:
    table = FishPrawnCrabTable(1)
    assert tuple(LAYOUT) == game().board
    for faces in THROWS:
        outcome = msgspec.to_builtins(only(play(game(), throw(faces))).outcome)
        knows = table._facts(faces)
        assert knows == {key: list(outcome[key]) if key != "colours" else outcome[key] for key in knows}


@virtual_time
async def test_the_winning_places_are_lit_on_two_sets_of_lamps_until_the_prizes_are_paid() -> None:
    told: list[tuple[str, list[str]]] = []

    async def ready() -> bool:
        return False

    async def tell(device: str, _name: str, args: dict[str, Any]) -> str:
        told.append((device, args["lamps"]))
        return "done"

    table = FishPrawnCrabTable(1)
    floor = Floor({}, Pace(), ready, Look, tell)
    await table._show(floor, (1, 1, 1))
    await table._show(floor, (6, 6, 5))
    await table._show(floor, ())
    lit = [
        [LAYOUT[int(lamp) - 2 + (32 if device == "lamps-2" else 0)] for device, lamps in pair for lamp in lamps]
        for pair in zip(told[::2], told[1::2], strict=True)
    ]
    assert [device for device, _ in told] == ["lamps-1", "lamps-2"] * 3
    assert lit == [
        ["figure:fish", "three_colour:red", "same_colour", "triple:fish", "any_triple"],
        ["big", "figure:crab", "figure:rooster", "one_colour:green", "two_colour:red", "total:17"],
        [],
    ]
