"""Macau cussec, article by article: Despacho 57/2004 with 69/2006 and Despacho 31/2003."""

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, permutations, product
from typing import Any

import msgspec
import pytest
from helpers import START, at_length, codes, only, play, results, script
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceUncovered,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
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
    Settlement,
    Suspended,
    Void,
    Voided,
    Wager,
    options_from,
)
from rules.macau.cussec import FAMILIES, FAMILIES_2003, Cussec, CussecOptions

LAW = "macau.cussec"
TEXTS = {"2004": "Despacho 57/2004 art. ", "2003": "Despacho 31/2003 art. "}
Dice = tuple[int, int, int]
THROWS: list[Dice] = list(product(range(1, 7), range(1, 7), range(1, 7)))
LEVER = DiceAgitated("lever", 3)
SHAKEN: tuple[Event, ...] = (DiceCovered(), LEVER, BetsOpened())
BELL: tuple[Event, ...] = (BetsClosed(), DiceUncovered())


_made = cache(Cussec)


def game(**options: Any) -> Cussec:
    """The ruleset; made once per options, it holds no state."""
    return _made(CussecOptions(**options))


def throw(faces: tuple[int, ...], *bets: Event) -> list[Event]:
    """One regular round without its payment."""
    return [*SHAKEN, *bets, *BELL, DiceRead(faces)]


def laws(result: Result) -> list[str]:
    return [note.law for note in result.irregularities]


@cache
def _paid(options: CussecOptions) -> dict[Dice, dict[str, Fraction]]:
    ruleset = _made(options)
    return {
        faces: {win.bet: Fraction(win.pays) for win in only(play(ruleset, throw(faces))).winners} for faces in THROWS
    }


def paid(**options: Any) -> dict[Dice, dict[str, Fraction]]:
    """What wins on each of the 216 throws, and what it pays, as whole rounds say."""
    return _paid(CussecOptions(**options))


# ---- art. 1: three dice under a dome


@pytest.mark.article("1(1)", "2003:1(1)")
@pytest.mark.parametrize("edition", ["2004", "2003"])
@pytest.mark.parametrize("dice", [0, 1, 2, 4, 5, 6])
def test_art_1_1_three_dice_make_a_throw(edition: str, dice: int) -> None:
    verdicts = play(game(edition=edition), throw((6,) * dice))
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Suspended]
    assert only(play(game(edition=edition), throw((6,) * 3))).outcome["faces"] == (6, 6, 6)


# ---- arts. 5, 6, 7: an independent account of every bet, from the dice as they lie, not from their counts

TOTALS_2004 = {4: 50, 5: 18, 6: 14, 7: 12, 8: 8, 9: 6, 10: 6, 11: 6, 12: 6, 13: 8, 14: 12, 15: 14, 16: 18, 17: 50}


def expected_bets() -> dict[str, Callable[[Dice], int]]:
    """Bet -> what it pays on a throw, 0 where it loses; by brute force over the arrangements of the dice."""

    def triple(dice: Dice) -> bool:
        return dice[0] == dice[1] == dice[2]

    def among(arrangements: Iterable[tuple[int, ...]], pays: int) -> Callable[[Dice], int]:
        winning = set(arrangements)
        return lambda dice: pays if dice in winning else 0

    faces = range(1, 7)
    bets: dict[str, Callable[[Dice], int]] = {
        "small": lambda dice: 1 if sum(dice) in range(4, 11) and not triple(dice) else 0,
        "big": lambda dice: 1 if sum(dice) in range(11, 18) and not triple(dice) else 0,
        "any_triple": among(((n, n, n) for n in faces), 24),
        "even": lambda dice: 1 if sum(dice) in range(4, 19, 2) else 0,
        "odd": lambda dice: 1 if sum(dice) in range(3, 18, 2) else 0,
    }
    for n in faces:
        bets[f"single:{n}"] = partial(lambda n, dice: sum(face == n for face in dice), n)
        bets[f"triple:{n}"] = among([(n, n, n)], 150)
        bets[f"double:{n}"] = among({two for m in faces for two in permutations((n, n, m))}, 8)
        for m in faces:
            if m != n:
                bets[f"double_and_single:{n}{n}-{m}"] = among([(n, n, m), (n, m, n), (m, n, n)], 50)
    for total, pays in TOTALS_2004.items():
        bets[f"total:{total}"] = among((dice for dice in THROWS if sum(dice) == total), pays)
    for m, n in combinations(faces, 2):
        bets[f"two_dice:{m}-{n}"] = among({three for k in faces for three in permutations((k, m, n))}, 5)
    for three in combinations(faces, 3):
        bets[f"three_dice:{'-'.join(map(str, three))}"] = among(permutations(three), 30)
    for four in combinations(faces, 4):
        bets[f"four_numbers:{'-'.join(map(str, four))}"] = among(permutations(four, 3), 7)
    return bets


EXPECTED = expected_bets()


@pytest.mark.article("1(3)", "2003:1(3)")
def test_the_board_has_every_place_of_art_5() -> None:
    board = game().board
    assert set(board) == set(EXPECTED)
    assert len(board) == len(set(board)) == 2 + 6 + 6 + 1 + 14 + 2 + 30 + 20 + 15 + 6 + 15
    counted = Counter(bet.partition(":")[0] for bet in board)
    assert counted == {
        **dict.fromkeys(("small", "big", "any_triple", "even", "odd"), 1),
        **dict.fromkeys(("single", "triple", "double"), 6),
        "total": 14,
        "double_and_single": 30,
        "three_dice": 20,
        "two_dice": 15,
        "four_numbers": 15,
    }
    older = game(edition="2003").board
    assert older == board[: len(older)]
    assert Counter(bet.partition(":")[0] for bet in older) == {
        **dict.fromkeys(("small", "big", "any_triple"), 1),
        **dict.fromkeys(("single", "triple"), 6),
        "total": 14,
    }


@pytest.mark.article(
    "5(1)", "5(2)", "5(3)", "5(4)", "5(5)", "5(6)", "5(7)", "5(8)", "5(9)", "5(10)", "5(11)", "5(12)", "5(13)", "7"
)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_bet_wins_and_pays_as_an_independent_count_says_on_all_216_throws(family: str) -> None:
    by_rules = paid()
    for faces in THROWS:
        wins = {bet: pays for bet, pays in by_rules[faces].items() if bet.partition(":")[0] == family}
        by_hand = {
            bet: Fraction(pays(faces))
            for bet, pays in EXPECTED.items()
            if bet.partition(":")[0] == family and pays(faces)
        }
        assert wins == by_hand, faces


@pytest.mark.article("2003:5(1)", "2003:5(2)", "2003:5(3)", "2003:5(4)", "2003:5(5)", "2003:5(6)", "2003:7")
@pytest.mark.parametrize("family", FAMILIES_2003)
def test_edition_2003_pays_the_same_on_the_six_bets_it_has(family: str) -> None:
    by_2004, by_2003 = paid(), paid(edition="2003")
    for faces in THROWS:
        assert {bet: pays for bet, pays in by_2003[faces].items() if bet.partition(":")[0] == family} == {
            bet: pays for bet, pays in by_2004[faces].items() if bet.partition(":")[0] == family
        }
        assert {bet.partition(":")[0] for bet in by_2003[faces]} <= set(FAMILIES_2003)


# Article 6, paragraph by paragraph: a bet, a throw it wins on, its odds; the odds are the printed words as numbers.
PRINTED: list[tuple[str, str, Dice, int]] = [
    ("6(1)", "small", (1, 1, 2), 1),
    ("6(1)", "small", (2, 3, 5), 1),
    ("6(2)", "big", (2, 4, 5), 1),
    ("6(2)", "big", (6, 6, 5), 1),
    ("6(3)", "single:3", (3, 1, 2), 1),
    ("6(3)", "single:3", (3, 3, 2), 2),
    ("6(3)", "single:3", (3, 3, 3), 3),
    ("6(4)", "triple:5", (5, 5, 5), 150),
    ("6(5)", "any_triple", (2, 2, 2), 24),
    ("6(6)(1)", "total:4", (1, 1, 2), 50),
    ("6(6)(1)", "total:17", (6, 6, 5), 50),
    ("6(6)(2)", "total:5", (1, 2, 2), 18),
    ("6(6)(2)", "total:16", (6, 5, 5), 18),
    ("6(6)(3)", "total:6", (2, 2, 2), 14),
    ("6(6)(3)", "total:15", (4, 5, 6), 14),
    ("6(6)(4)", "total:7", (1, 2, 4), 12),
    ("6(6)(4)", "total:14", (3, 5, 6), 12),
    ("6(6)(5)", "total:8", (1, 2, 5), 8),
    ("6(6)(5)", "total:13", (1, 6, 6), 8),
    ("6(6)(6)", "total:9", (3, 3, 3), 6),
    ("6(6)(6)", "total:10", (1, 3, 6), 6),
    ("6(6)(6)", "total:11", (1, 4, 6), 6),
    ("6(6)(6)", "total:12", (4, 4, 4), 6),
    ("6(7)", "even", (1, 1, 2), 1),
    ("6(8)", "odd", (1, 2, 2), 1),
    ("6(9)", "double_and_single:44-1", (4, 1, 4), 50),
    ("6(10)", "three_dice:1-3-6", (6, 1, 3), 30),
    ("6(11)", "two_dice:2-5", (5, 2, 2), 5),
    ("6(12)", "double:6", (6, 1, 6), 8),
    ("6(13)", "four_numbers:1-2-3-4", (4, 1, 3), 7),
]


@pytest.mark.article(
    "6(1)",
    "6(2)",
    "6(3)",
    "6(4)",
    "6(5)",
    "6(6)(1)",
    "6(6)(2)",
    "6(6)(3)",
    "6(6)(4)",
    "6(6)(5)",
    "6(6)(6)",
    "6(7)",
    "6(8)",
    "6(9)",
    "6(10)",
    "6(11)",
    "6(12)",
    "6(13)",
    "2003:6(1)",
    "2003:6(2)",
    "2003:6(3)",
    "2003:6(4)",
    "2003:6(5)",
    "2003:6(6)",
)
@pytest.mark.parametrize(("article", "bet", "faces", "pays"), PRINTED)
def test_printed_odds(article: str, bet: str, faces: Dice, pays: int) -> None:
    for edition in ("2004", "2003") if bet in game(edition="2003").board else ("2004",):
        result = only(play(game(edition=edition), throw(faces, WagerPlaced(3, bet, 1000))))
        assert {win.bet: win.pays for win in result.winners}[bet] == str(pays)
        assert [(one.stake, one.returned) for one in result.settlements] == [(1000, 1000 + 1000 * pays)]
    (row,) = [row for row in game().bets() if row.id.partition(":")[0] == bet.partition(":")[0]]
    paragraph = article.removeprefix("6(").partition(")")[0]
    assert f"6({paragraph})" in row.law
    assert f"5({paragraph})" in row.law


def test_printed_odds_cover_every_paragraph_of_art_6() -> None:
    assert {article.split(")")[0] for article, *_ in PRINTED} == {f"6({n}" for n in range(1, 14)}


@pytest.mark.article("7", "2003:7")
@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_art_7_small_and_big_lose_on_a_triple_and_the_rest_wins(edition: str, n: int) -> None:
    total = 3 * n
    bets = (WagerPlaced(1, "small", 10), WagerPlaced(1, "big", 10))
    result = only(play(game(edition=edition), throw((n, n, n), *bets)))
    wins = {"single", "triple", "any_triple"}
    wins |= {"double", "even" if total % 2 == 0 else "odd"} if edition == "2004" else set()
    wins |= {"total"} if 4 <= total <= 17 else set()
    assert {win.bet.partition(":")[0] for win in result.winners} == wins
    assert [one.returned for one in result.settlements] == [0, 0]
    assert f"{TEXTS[edition]}7" in result.law


# ---- the house's choices, art. 8


@pytest.mark.article("6(6)(2)", "8")
@pytest.mark.parametrize(("pays", "total"), [(18, 5), (24, 16), (30, 5), (30, 16)])
def test_art_6_6_2_the_house_chooses_18_to_30(pays: int, total: int) -> None:
    faces: Dice = (1, 2, 2) if total == 5 else (5, 5, 6)
    assert paid(total_5_16=pays)[faces][f"total:{total}"] == pays
    assert f"{pays}," in next(bet.pays for bet in game(total_5_16=pays).bets() if bet.id == "total:n")


@pytest.mark.article("6(6)(3)", "8")
@pytest.mark.parametrize(("pays", "total"), [(14, 6), (16, 15), (18, 6), (18, 15)])
def test_art_6_6_3_the_house_chooses_14_to_18(pays: int, total: int) -> None:
    faces: Dice = (1, 2, 3) if total == 6 else (4, 5, 6)
    assert paid(total_6_15=pays)[faces][f"total:{total}"] == pays


def test_even_and_odd_may_lose_on_a_triple() -> None:
    for n in range(1, 7):
        parity = "odd" if n % 2 else "even"
        assert parity in paid()[n, n, n]
        assert not {"even", "odd"} & set(paid(even_odd_on_triple="lose")[n, n, n])
    assert "even" in paid(even_odd_on_triple="lose")[1, 1, 2]
    assert "parity" not in only(play(game(even_odd_on_triple="lose"), throw((2, 2, 2)))).outcome


def test_even_and_odd_are_told_of_two_equal_dice_where_they_lose_on_a_triple_alone() -> None:
    ruleset = game(even_odd_on_triple="lose")
    for faces in THROWS:
        told = only(play(ruleset, throw(faces))).outcome.get("parity")
        assert told == (None if len({*faces}) == 1 else "odd" if sum(faces) % 2 else "even"), faces


def test_a_double_may_ask_for_exactly_two() -> None:
    assert "double:4" in paid()[4, 4, 4]
    assert "double:4" not in paid(double="exactly_two")[4, 4, 4]
    assert paid(double="exactly_two")[4, 4, 1]["double:4"] == 8


@pytest.mark.article("8")
def test_bets_offered_leaves_the_others_out() -> None:
    ruleset = game(bets_offered=("total", "small"))
    assert [bet.id for bet in ruleset.bets()] == ["small", "total:n"]
    result = only(play(ruleset, throw((1, 1, 2), WagerPlaced(1, "big", 5), WagerPlaced(1, "small", 5))))
    assert [win.bet for win in result.winners] == ["small", "total:4"]
    assert codes(result) == ["bet_not_offered"]
    assert [one.bet for one in result.settlements] == ["small"]


@pytest.mark.article("8", "2003:1(2)(1)", "2003:2", "2003:3(2)", "2003:6(6)")
@pytest.mark.parametrize(
    ("given_options", "says"),
    [
        ({"edition": "2003", "agitation": "electronic"}, "31/2003 arts. 1(2)(1), 2"),
        ({"edition": "2003", "agitation": "either"}, "31/2003 arts. 1(2)(1), 2"),
        ({"edition": "2003", "panel": False}, "31/2003 art. 2"),
        ({"edition": "2003", "announces": True}, "31/2003 art. 2"),
        ({"edition": "2003", "lights": False}, "31/2003 art. 3(2)"),
        ({"edition": "2003", "total_5_16": 19}, "31/2003 art. 6(6)"),
        ({"edition": "2003", "total_6_15": 15}, "31/2003 art. 6(6)"),
        ({"edition": "2003", "even_odd_on_triple": "lose"}, "31/2003 art. 5"),
        ({"edition": "2003", "double": "exactly_two"}, "31/2003 art. 5"),
        ({"edition": "2003", "bets_offered": ["even"]}, "art. 5 of edition 2003 has no bet 'even'"),
        ({"bets_offered": ["tie"]}, "art. 5 of edition 2004 has no bet 'tie'"),
        ({"total_5_16": 31}, "18..30"),
        ({"total_5_16": 17}, "18..30"),
        ({"total_6_15": 19}, "14..18"),
        ({"total_6_15": 13}, "14..18"),
        ({"edition": "1975"}, "2004 | 2003"),
        ({"cover": "glass"}, "no option 'cover'"),
    ],
)
def test_what_the_text_excludes_is_refused_with_its_article(given_options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(Cussec, given_options)
    assert says in str(refused.value)
    assert next(reversed(given_options)) in str(refused.value)


def test_every_option_that_both_editions_know_is_accepted() -> None:
    for edition in ("2004", "2003"):
        options = options_from(Cussec, {"edition": edition, "payment": "console", "bets_offered": ["small", "total"]})
        assert Cussec(options).board[0] == "small"
    assert options_from(Cussec, {"total_5_16": "30"}, text=True).total_5_16 == 30


# ---- house edges by enumeration

EDGES: list[tuple[dict[str, Any], str, Fraction]] = [
    ({}, "small", Fraction(1, 36)),  # 2.778 %
    ({}, "big", Fraction(1, 36)),
    ({}, "single", Fraction(17, 216)),  # 7.870 %
    ({}, "triple", Fraction(65, 216)),
    ({}, "any_triple", Fraction(11, 36)),
    ({}, "total:4", Fraction(7, 24)),
    ({}, "total:5", Fraction(17, 36)),
    ({"total_5_16": 30}, "total:5", Fraction(5, 36)),
    ({}, "total:6", Fraction(11, 36)),
    ({"total_6_15": 18}, "total:6", Fraction(13, 108)),
    ({}, "total:7", Fraction(7, 72)),
    ({}, "total:8", Fraction(1, 8)),
    ({}, "total:9", Fraction(41, 216)),
    ({}, "total:10", Fraction(1, 8)),
    ({}, "even", Fraction(0)),  # by the letter of art. 7 no edge
    ({}, "odd", Fraction(0)),
    ({"even_odd_on_triple": "lose"}, "even", Fraction(1, 36)),
    ({"even_odd_on_triple": "lose"}, "odd", Fraction(1, 36)),
    ({}, "double_and_single", Fraction(7, 24)),
    ({}, "three_dice", Fraction(5, 36)),
    ({}, "two_dice", Fraction(1, 6)),  # 16.667 %
    ({}, "double", Fraction(1, 3)),  # 33.333 %
    ({"double": "exactly_two"}, "double", Fraction(3, 8)),
    ({}, "four_numbers", Fraction(1, 9)),
]


@pytest.mark.parametrize(("options", "family", "edge"), EDGES)
def test_house_edge(options: dict[str, Any], family: str, edge: Fraction) -> None:
    table = paid(**options)
    bets = [bet for bet in game(**options).board if family in (bet, bet.partition(":")[0])]
    assert bets
    for bet in bets:
        gain = sum((table[faces].get(bet, Fraction(-1)) for faces in THROWS), Fraction())
        assert -gain / len(THROWS) == edge, bet


def test_opposite_totals_have_the_same_edge() -> None:
    table = paid()
    for total in range(4, 11):
        low, high = (
            sum((table[faces].get(f"total:{side}", Fraction(-1)) for faces in THROWS), Fraction())
            for side in (total, 21 - total)
        )
        assert low == high


# ---- the result


@pytest.mark.article("2(1)", "3(2)")
def test_a_regular_round() -> None:
    verdicts = play(game(), throw((6, 1, 2), WagerPlaced(2, "small", 500), WagerPlaced(4, "double:6", 100)))
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved]
    result = only(verdicts)
    assert result.round == "t-1:2026-11-20:1"
    assert (result.ruleset, result.edition, result.demo, result.void) == ("macau.cussec", "2004", False, None)
    assert msgspec.json.decode(result.options)["total_5_16"] == 18
    assert result.evidence == tuple(f"e{n}" for n in range(1, 9))
    assert result.law == tuple(f"Despacho 57/2004 art. {article}" for article in ("3(2)", "5", "6"))
    assert result.irregularities == ()
    assert [(one.seat, one.bet, one.returned) for one in result.settlements] == [(2, "small", 1000), (4, "double:6", 0)]
    assert {key: result.outcome[key] for key in ("faces", "total", "triple", "size", "parity")} == {
        "faces": (1, 2, 6),
        "total": 9,
        "triple": False,
        "size": "small",
        "parity": "odd",
    }


@pytest.mark.article("3(2)", "2003:3(2)")
@pytest.mark.parametrize(
    ("options", "faces", "words"),
    [
        (
            {},
            (6, 1, 2),
            {
                "pt": "1, 2 e 6, total 9, pequeno, ímpar",
                "zh-Hant": "1、2、6，9點，小，單",
                "en": "1, 2 and 6, total 9, small, odd",
            },
        ),
        (
            {},
            (6, 5, 5),
            {
                "pt": "5, 5 e 6, total 16, grande, par",
                "zh-Hant": "5、5、6，16點，大，雙",
                "en": "5, 5 and 6, total 16, big, even",
            },
        ),
        (
            {},
            (4, 4, 4),
            {
                "pt": "Tripla de 4, total 12, par",
                "zh-Hant": "圍骰4，12點，雙",
                "en": "Triple 4, total 12, even",
            },
        ),
        (
            {"edition": "2003"},
            (1, 1, 1),
            {"pt": "Tripla de 1, total 3", "zh-Hant": "圍骰1，3點", "en": "Triple 1, total 3"},
        ),
        (
            {"edition": "2003"},
            (1, 2, 1),
            {"pt": "1, 1 e 2, total 4, pequeno", "zh-Hant": "1、1、2，4點，小", "en": "1, 1 and 2, total 4, small"},
        ),
    ],
)
def test_the_result_is_announced_in_three_languages(
    options: dict[str, Any], faces: Dice, words: dict[str, str]
) -> None:
    assert only(play(game(**options), throw(faces))).announcements == words


@pytest.mark.article("3(2)", "2003:3(2)")
def test_art_3_2_the_winning_places_light() -> None:
    for options in ({}, {"edition": "2003"}, {"bets_offered": ("small", "double")}):
        result = only(play(game(**options), throw((2, 2, 3))))
        assert result.outcome["lit"] == tuple(win.bet for win in result.winners)
        assert "small" in result.outcome["lit"]
    assert "lit" not in only(play(game(lights=False), throw((2, 2, 3)))).outcome


def test_the_order_of_the_dice_does_not_matter() -> None:
    one, other = (only(play(game(), throw(faces))) for faces in ((3, 1, 5), (5, 3, 1)))
    assert one == other


def test_results_of_edition_2003_cite_it() -> None:
    result = only(play(game(edition="2003"), throw((3, 3, 3))))
    assert result.edition == "2003"
    assert result.law == tuple(f"Despacho 31/2003 art. {article}" for article in ("3(2)", "5", "6", "7"))


def test_rounds_are_counted_by_the_day() -> None:
    ruleset = game()
    state = ruleset.start("cus-1")
    rounds = []
    for n, day in enumerate((20, 20, 21)):
        for event in [*throw((1, 2, 3)), RoundPaid()]:
            seen = Envelope(f"e{n}", "felt/1/s/table/cus-1/device/d", START.replace(day=day), event)
            state, verdicts = ruleset.apply(state, seen)
            rounds += [verdict.round for verdict in verdicts if isinstance(verdict, Opened)]
    assert rounds == ["cus-1:2026-11-20:1", "cus-1:2026-11-20:2", "cus-1:2026-11-21:1"]


def test_a_prize_the_smallest_chip_cannot_pay_is_rounded_in_the_stated_direction() -> None:
    for rounding, returned in (("down", 105), ("up", 205)):
        result = only(play(game(smallest_chip=100, rounding=rounding), throw((1, 1, 2), WagerPlaced(1, "small", 105))))
        assert [(one.returned, one.exact) for one in result.settlements] == [(returned + 100, "210")]


# ---- the shaking, art. 2(1)


@pytest.mark.article("1(2)(1)", "2(1)", "2003:2")
@pytest.mark.parametrize(
    ("options", "shaking"),
    [
        ({}, [DiceAgitated("lever", 3)]),
        ({}, [DiceAgitated("lever", 1)] * 3),
        ({}, [DiceAgitated("lever", 1), DiceAgitated("lever", 2)]),
        ({"edition": "2003"}, [DiceAgitated("lever", 3)]),
        ({"agitation": "electronic"}, [DiceAgitated("electronic")]),
        ({"agitation": "electronic"}, [DiceAgitated("electronic", 5)]),
        ({"agitation": "either"}, [DiceAgitated("electronic")]),
        ({"agitation": "either"}, [DiceAgitated("lever", 3)]),
    ],
)
def test_art_2_1_three_pulls_or_one_electronic_agitation(options: dict[str, Any], shaking: list[Event]) -> None:
    result = only(play(game(**options), [DiceCovered(), *shaking, BetsOpened(), *BELL, DiceRead((1, 2, 3))]))
    assert (result.void, result.irregularities) == (None, ())


@pytest.mark.article("1(2)(1)", "2(1)", "2003:1(2)(1)", "2003:2")
@pytest.mark.parametrize(
    ("options", "shaking", "code", "law"),
    [
        ({}, [DiceAgitated("lever", 1)], "wrong_agitation", "Despacho 57/2004 art. 2(1)"),
        ({}, [DiceAgitated("lever", 2)], "wrong_agitation", "Despacho 57/2004 art. 2(1)"),
        ({}, [DiceAgitated("lever", 4)], "wrong_agitation", "Despacho 57/2004 art. 2(1)"),
        ({}, [DiceAgitated("lever", 1)] * 4, "wrong_agitation", "Despacho 57/2004 art. 2(1)"),
        ({"edition": "2003"}, [DiceAgitated("lever", 2)], "wrong_agitation", "Despacho 31/2003 art. 2"),
        ({"edition": "2003"}, [DiceAgitated("electronic")], "wrong_mechanism", "Despacho 31/2003 art. 1(2)(1)"),
        ({}, [DiceAgitated("electronic")], "wrong_mechanism", "Despacho 57/2004 art. 1(2)(1)"),
        ({"agitation": "electronic"}, [LEVER], "wrong_mechanism", "Despacho 57/2004 art. 1(2)(1)"),
        ({"agitation": "either"}, [LEVER, DiceAgitated("electronic")], "wrong_agitation", "Despacho 57/2004 art. 2(1)"),
        ({"agitation": "either"}, [DiceAgitated("electronic")] * 2, "wrong_agitation", "Despacho 57/2004 art. 2(1)"),
    ],
)
def test_a_wrong_shaking_is_an_irregularity_and_the_throw_counts(
    options: dict[str, Any], shaking: list[Event], code: str, law: str
) -> None:
    result = only(play(game(**options), [DiceCovered(), *shaking, BetsOpened(), *BELL, DiceRead((1, 2, 3))]))
    assert result.void is None
    assert (codes(result), laws(result)) == ([code], [law])
    assert {win.bet for win in result.winners} >= {"small", "total:6"}


# ---- any other order: what still counts


@pytest.mark.article("2(1)", "3(1)", "2003:2", "2003:3(1)")
@pytest.mark.parametrize(
    ("events", "noted"),
    [
        # bets before the shaking
        ([DiceCovered(), BetsOpened(), LEVER], {"bets_before_agitation": "2(1)", "agitated_after_opening": "2(1)"}),
        # the third pull after the opening
        (
            [DiceCovered(), DiceAgitated("lever", 2), BetsOpened(), DiceAgitated("lever", 1)],
            {"wrong_agitation": "2(1)", "agitated_after_opening": "2(1)"},
        ),
        # shaken again after the opening
        ([*SHAKEN, LEVER], {"agitated_after_opening": "2(1)"}),
        # bets before the dome
        (
            [BetsOpened(), DiceCovered(), LEVER],
            {"bets_before_agitation": "2(1)", "agitated_after_opening": "2(1)"},
        ),
        # shaken in sight, then once more as it should be
        ([LEVER, DiceCovered(), LEVER, BetsOpened()], {"agitated_uncovered": "2(1)"}),
        # nobody opened the bets
        ([DiceCovered(), LEVER], {"bell_without_opening": "2(1)"}),
        (
            [DiceCovered(), DiceAgitated("lever", 2)],
            {"bell_without_opening": "2(1)", "wrong_agitation": "2(1)"},
        ),
        # opened again after the bell
        ([*SHAKEN, BetsClosed(), BetsOpened()], {"bets_reopened": "3(1)"}),
        # a chip before the opening
        ([DiceCovered(), LEVER, WagerPlaced(1, "small", 10), BetsOpened()], {"early_bet": "2(1)"}),
        # said twice: no irregularity
        ([DiceCovered(), DiceCovered(), LEVER, BetsOpened(), BetsOpened(), BetsClosed()], {}),
    ],
)
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_where_only_the_ceremony_was_off_the_throw_counts(
    events: list[Event], noted: dict[str, str], edition: str
) -> None:
    verdicts = play(game(edition=edition), [*events, *BELL, DiceRead((6, 6, 5))])
    result = only(verdicts)
    assert result.void is None
    assert {win.bet for win in result.winners} >= {"big", "total:17"}
    text = TEXTS[edition]
    articles = {code: "2" if edition == "2003" and article == "2(1)" else article for code, article in noted.items()}
    assert dict(zip(codes(result), laws(result), strict=True)) == {code: text + at for code, at in articles.items()}
    assert sum(isinstance(verdict, Opened) for verdict in verdicts) == 1
    assert sum(isinstance(verdict, Closed) for verdict in verdicts) == 1
    assert len(set(result.evidence)) == len(result.evidence)


# ---- any other order: what cannot count, since a bet may have been made knowing the dice


@pytest.mark.article("1(2)(2)", "2(1)", "3(1)", "2003:1(2)(2)", "2003:2", "2003:3(1)")
@pytest.mark.parametrize(
    ("events", "reason", "article"),
    [
        ([*SHAKEN, DiceUncovered()], "uncovered_before_bell", "3(1)"),
        ([DiceCovered(), LEVER, DiceUncovered()], "uncovered_before_bell", "3(1)"),
        ([*SHAKEN, DiceRead((1, 2, 3))], "read_before_bell", "3(1)"),
        ([*SHAKEN, BetsClosed(), LEVER], "agitated_after_bell", "3(1)"),
        ([*SHAKEN, *BELL, LEVER], "agitated_after_bell", "3(1)"),
        ([DiceCovered(), BetsOpened(), BetsClosed()], "not_agitated", "2(1)"),
        ([DiceCovered(), BetsClosed()], "not_agitated", "2(1)"),
        ([BetsOpened(), BetsClosed()], "not_agitated", "2(1)"),
        ([LEVER, BetsOpened(), BetsClosed()], "not_agitated", "2(1)"),
        ([LEVER, DiceCovered(), BetsOpened(), BetsClosed()], "not_agitated", "2(1)"),
    ],
)
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_where_the_dice_may_have_been_known_the_throw_is_void(
    events: list[Event], reason: str, article: str, edition: str
) -> None:
    verdicts = play(game(edition=edition), events)
    result = only(verdicts)
    assert isinstance(verdicts[-1], Voided)
    assert result.void == Void(say(reason), "may_change" if edition == "2004" else "stand_may_add")
    assert (result.winners, result.settlements) == ((), ())
    if edition == "2004":
        cited = tuple(f"Despacho 57/2004 art. {at}" for at in (article, "3(3)", "3(4) (69/2006)"))
    else:
        cited = tuple(f"Despacho 31/2003 art. {at}" for at in ("2" if article == "2(1)" else article, "3(3)"))
    assert result.law == cited
    assert cited[0] in laws(result)
    assert len(set(result.evidence)) == len(result.evidence)


def test_what_follows_a_throw_voided_early_is_noted_and_resolves_nothing() -> None:
    verdicts = play(game(), [*SHAKEN, DiceUncovered(), BetsClosed(), DiceRead((1, 2, 3))])
    assert [type(verdict) for verdict in verdicts] == [Opened, Voided, Noted, Noted]
    notes = [verdict.irregularity for verdict in verdicts if isinstance(verdict, Noted)]
    assert [(note.code, note.law) for note in notes] == [
        ("bell_without_round", "Despacho 57/2004 art. 3(1)"),
        ("reading_without_round", "Despacho 57/2004 art. 3(2)"),
    ]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (BetsClosed(), "bell_without_round"),
        (DiceRead((1, 2, 3)), "reading_without_round"),
        (WagerPlaced(1, "small", 5), "bet_without_round"),
        (WagerWithdrawn(1, "small"), "bet_without_round"),
        (RoundVoided(), "void_without_round"),
    ],
)
def test_what_needs_a_round_is_noted_where_there_is_none(event: Event, code: str) -> None:
    ruleset = game()
    (seen,) = script([event])
    state, (verdict,) = ruleset.apply(ruleset.start("t-1"), seen)
    assert isinstance(verdict, Noted)
    assert (verdict.irregularity.code, verdict.irregularity.event) == (code, "e1")
    chips = (Wager(event.seat, event.bet, event.amount),) if isinstance(event, WagerPlaced) else ()
    assert state == replace(ruleset.start("t-1"), refused=chips)


@pytest.mark.article("3(1)", "2003:3(1)")
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_late_bets_are_refused(edition: str) -> None:
    late: list[Event] = [WagerPlaced(1, "small", 5), WagerWithdrawn(2, "big")]
    events = [*SHAKEN, WagerPlaced(2, "big", 7), BetsClosed(), *late, DiceUncovered(), DiceRead((1, 2, 3))]
    result = only(play(game(edition=edition), events))
    assert codes(result) == ["late_bet", "late_bet"]
    assert set(laws(result)) == {f"{TEXTS[edition]}3(1)"}
    assert [(one.seat, one.stake, one.returned) for one in result.settlements] == [(2, 7, 0)]


# ---- art. 4: covered only when paid


@pytest.mark.article("4", "2003:4")
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_art_4_covered_before_the_payment(edition: str) -> None:
    ruleset = game(edition=edition, payment="console")
    first, second = results(play(ruleset, [*throw((1, 2, 3)), *throw((4, 5, 6)), RoundPaid()]))
    assert first.irregularities == ()
    assert second.void is None
    assert codes(second) == ["covered_before_payment"]
    assert laws(second)[0].endswith("art. 4")
    assert second.irregularities[0].reason.values["round"] == first.round
    paid_first = results(play(ruleset, [*throw((1, 2, 3)), RoundPaid(), *throw((4, 5, 6))]))
    assert [codes(result) for result in paid_first] == [[], []]


def test_art_4_payment_is_implied_by_the_covering_where_no_console_reports_it() -> None:
    both = results(play(game(), [*throw((1, 2, 3)), *throw((4, 5, 6))]))
    assert [codes(result) for result in both] == [[], []]


def test_covered_again_without_a_reading() -> None:
    bets = [WagerPlaced(1, "small", 10), WagerPlaced(2, "big", 20)]
    lost, good = results(play(game(), [*SHAKEN, *bets, *BELL, *throw((1, 2, 3))]))
    assert lost.void == Void(say("never_read"), "returned")
    assert (codes(lost), laws(lost)) == (["covered_before_reading"], ["Despacho 57/2004 art. 4"])
    assert [(one.stake, one.returned) for one in lost.settlements] == [(10, 10), (20, 20)]
    assert (good.void, good.settlements) == (None, ())


# ---- art. 3(3)-(4): void throws


@pytest.mark.article("3(3)", "2003:3(3)")
@pytest.mark.parametrize(("stacked", "leaning"), [(1, 0), (2, 0), (0, 1), (1, 2)])
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_art_3_3_stacked_or_leaning_dice(edition: str, stacked: int, leaning: int) -> None:
    ruleset = game(edition=edition)
    bet = WagerPlaced(1, "small", 10)
    (result,) = results(play(ruleset, [*SHAKEN, bet, *BELL, DiceRead((1, 2, 3), stacked, leaning)]))
    assert result.void == Void(say("stacked_or_leaning"), "may_change" if edition == "2004" else "stand_may_add")
    assert result.law == (
        ("Despacho 57/2004 art. 3(3)", "Despacho 57/2004 art. 3(4) (69/2006)")
        if edition == "2004"
        else ("Despacho 31/2003 art. 3(3)",)
    )
    assert result.outcome == {"faces": (1, 2, 3), "stacked": stacked, "leaning": leaning}
    assert (result.winners, result.settlements, result.irregularities) == ((), (), ())
    assert set(result.announcements) == {"pt", "zh-Hant", "en"}


@pytest.mark.article("3(3)")
def test_a_die_hidden_under_another_is_void_and_no_doubt() -> None:
    result = only(play(game(), [*SHAKEN, *BELL, DiceRead((1, 2), stacked=1)]))
    assert result.void is not None
    assert result.void.reason.code == "stacked_or_leaning"


VOID_THROW: list[Event] = [
    *SHAKEN,
    WagerPlaced(1, "small", 10),
    WagerPlaced(2, "big", 20),
    *BELL,
    DiceRead((1, 2, 3), stacked=1),
]


def settled(result: Result) -> dict[tuple[int, str], int]:
    return {(one.seat, one.bet): one.stake for one in result.settlements}


@pytest.mark.article("3(3)", "3(4)", "2003:3(3)")
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_after_a_void_throw_the_bets_are_carried_as_they_stand(edition: str) -> None:
    ruleset = game(edition=edition)
    _, again = results(play(ruleset, [*VOID_THROW, *throw((1, 2, 3))]))
    assert again.void is None
    assert [(one.seat, one.bet, one.stake, one.returned) for one in again.settlements] == [
        (1, "small", 10, 20),
        (2, "big", 20, 0),
    ]
    # Carried through one void throw after another.
    _, _, last = results(
        play(ruleset, [*VOID_THROW, *throw((1, 2))[:-1], DiceRead((5, 5, 5), 0, 1), *throw((1, 2, 3))])
    )
    assert settled(last) == {(1, "small"): 10, (2, "big"): 20}


# When the bets are changed: at once, with the dice covered again, or after the bets were opened again.
MOMENTS = pytest.mark.parametrize("moment", [0, 1, 2, 3])


def changed_at(moment: int, changes: list[Event]) -> list[Event]:
    return [*VOID_THROW, *SHAKEN[:moment], *changes, *SHAKEN[moment:], *BELL, DiceRead((1, 2, 3))]


@pytest.mark.article("3(4)")
@MOMENTS
def test_art_3_4_edition_2004_bets_may_be_taken_back_kept_or_changed(moment: int) -> None:
    changes: list[Event] = [
        WagerWithdrawn(1, "small", 4),
        WagerWithdrawn(2, "big"),
        WagerPlaced(2, "odd", 20),
        WagerPlaced(3, "even", 5),
    ]
    _, again = results(play(game(), changed_at(moment, changes)))
    assert settled(again) == {(1, "small"): 6, (2, "odd"): 20, (3, "even"): 5}
    assert again.irregularities == ()
    assert len(again.evidence) == len(SHAKEN) + len(changes) + len(BELL) + 1


@pytest.mark.article("2003:3(3)")
@MOMENTS
def test_art_3_3_edition_2003_bets_stand_and_may_be_added_to(moment: int) -> None:
    changes: list[Event] = [
        WagerWithdrawn(1, "small", 4),
        WagerWithdrawn(2, "big"),
        WagerPlaced(2, "big", 5),
        WagerPlaced(3, "total:6", 7),
        WagerWithdrawn(2, "big", 5),
        WagerWithdrawn(3, "total:6"),
        WagerPlaced(4, "single:1", 9),
    ]
    _, again = results(play(game(edition="2003"), changed_at(moment, changes)))
    assert settled(again) == {(1, "small"): 10, (2, "big"): 20, (4, "single:1"): 9}
    assert codes(again) == ["bet_stands", "bet_stands"]
    assert set(laws(again)) == {"Despacho 31/2003 art. 3(3)"}


def test_edition_2003_bets_are_free_again_once_the_throw_counts() -> None:
    bets: list[Event] = [WagerPlaced(1, "small", 10), WagerWithdrawn(1, "small")]
    *_, last = results(play(game(edition="2003"), [*VOID_THROW, *throw((1, 2, 3)), *throw((1, 2, 3), *bets)]))
    assert (last.settlements, last.irregularities) == ((), ())


@pytest.mark.article("2003:3(3)")
def test_edition_2003_what_was_added_stands_too_after_the_next_void_throw() -> None:
    added: list[Event] = [*SHAKEN, WagerPlaced(1, "small", 5), *BELL, DiceRead((1, 1, 1), leaning=1)]
    *_, last = results(
        play(game(edition="2003"), [*VOID_THROW, *added, *throw((1, 2, 3), WagerWithdrawn(1, "small", 5))])
    )
    assert settled(last)[1, "small"] == 15
    assert codes(last) == ["bet_stands"]


def test_after_a_void_throw_under_the_dome_the_shaking_alone_begins_the_next_round() -> None:
    again: list[Event] = [LEVER, BetsOpened(), *BELL, DiceRead((1, 2, 3))]
    void, good = results(play(game(), [*SHAKEN, RoundVoided("dispute"), *again]))
    assert void.void == Void(say("dispute"), "may_change")
    assert (good.void, good.irregularities) == (None, ())


# ---- declared void by the dealer


@pytest.mark.parametrize("place", range(1, 6))
@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_a_round_declared_void_at_any_time_before_its_reading(edition: str, place: int) -> None:
    events = [*SHAKEN, *BELL][:place]
    verdicts = play(game(edition=edition), [*events, RoundVoided("supervisor")])
    assert isinstance(verdicts[-1], Voided)
    assert only(verdicts).void == Void(say("supervisor"), "may_change" if edition == "2004" else "stand_may_add")


@pytest.mark.parametrize("edition", ["2004", "2003"])
def test_a_round_declared_void_between_its_reading_and_its_payment_is_corrected(edition: str) -> None:
    ruleset = game(edition=edition, payment="console")
    verdicts = play(
        ruleset, [*throw((1, 2, 3), WagerPlaced(1, "small", 10)), RoundVoided("misread"), *throw((4, 5, 6))]
    )
    first, corrected, again = [v.result for v in verdicts if isinstance(v, Resolved | Corrected | Voided)]
    assert isinstance(verdicts[3], Corrected)
    assert (corrected.round, corrected.supersedes) == (first.round, first.round)
    assert corrected.void == Void(say("misread"), "may_change" if edition == "2004" else "stand_may_add")
    assert (corrected.winners, corrected.settlements) == ((), ())
    assert corrected.evidence == (*first.evidence, "e8")
    assert [(one.bet, one.stake, one.returned) for one in again.settlements] == [("small", 10, 0)]
    assert again.irregularities == ()


@pytest.mark.parametrize("end", [RoundPaid(), DiceCovered()])
def test_a_paid_round_is_not_corrected(end: Event) -> None:
    verdicts = play(game(), [*throw((1, 2, 3)), end, RoundVoided("too late")])
    assert not [verdict for verdict in verdicts if isinstance(verdict, Corrected)]


# ---- doubt


@pytest.mark.parametrize(
    "events",
    [
        [*SHAKEN, *BELL, DiceRead(())],
        [*SHAKEN, *BELL, DiceRead((1, 2))],
        [*SHAKEN, *BELL, DiceRead((1, 2, 3, 4))],
        [*SHAKEN, BetsClosed(), DiceRead((1, 2, 3))],
        [*SHAKEN, BetsClosed(), DiceRead((1, 2, 3), stacked=1)],
        [*SHAKEN, EventsMissed(1)],
        [*SHAKEN, *BELL, DeviceOnline(continuous=False)],
    ],
)
@pytest.mark.parametrize(
    ("then", "bets"),
    [
        ([RoundVoided("")], "may_change"),
        (throw((4, 5, 6)), "returned"),
        ([BetsOpened()], "returned"),
    ],
)
def test_a_doubtful_round_waits_for_a_person_and_never_resolves(
    events: list[Event], then: list[Event], bets: str
) -> None:
    ruleset = game()
    suspended = play(ruleset, [*events, DiceRead((1, 2, 3)), DiceUncovered(), DiceRead((1, 2, 3))])
    assert isinstance(suspended[-1], Suspended)
    assert sum(isinstance(verdict, Suspended) for verdict in suspended) == 1
    assert not results(suspended)
    verdicts = play(ruleset, [*events, DiceRead((1, 2, 3)), *then])
    first = results(verdicts)[0]
    assert first.round.endswith(":1")
    assert first.void is not None
    assert first.void.bets == bets
    ended = [verdict for verdict in verdicts if isinstance(verdict, Voided)]
    assert len(ended) == 1
    # The old round ends before the new one opens.
    if bets == "returned":
        assert isinstance(verdicts[verdicts.index(ended[0]) + 1], Opened)


def test_a_suspended_round_returns_the_bets_that_lie_on_it() -> None:
    bets = [WagerPlaced(1, "small", 10), WagerPlaced(1, "triple:6", 1)]
    void, again = results(play(game(), [*SHAKEN, *bets, *BELL, EventsMissed(2), *throw((6, 6, 6))]))
    assert void.void == Void(say("round_events"), "returned")
    assert [(one.stake, one.returned) for one in void.settlements] == [(10, 10), (1, 1)]
    assert again.settlements == ()


def test_a_device_that_proves_nothing_was_lost_suspends_nothing() -> None:
    result = only(play(game(), [*SHAKEN, DeviceOnline(continuous=True), *BELL, DiceRead((1, 2, 3))]))
    assert result.void is None


def test_a_dome_that_may_have_been_lifted_unseen_does_not_cover() -> None:
    events: list[Event] = [*SHAKEN, RoundVoided(""), EventsMissed(1), LEVER, BetsOpened(), BetsClosed()]
    verdicts = play(game(), [*events, DiceUncovered(), DiceRead((1, 2, 3))])
    assert [type(one) for one in verdicts] == [Opened, Voided, Opened, Suspended, Closed]


@pytest.mark.parametrize("again", [(1, 2, 3), (3, 1, 2)])
def test_the_same_reading_again_changes_nothing(again: Dice) -> None:
    ruleset = game()
    state = ruleset.start("t-1")
    *events, repeated = script([*throw((1, 2, 3)), DiceRead(again)])
    for seen in events:
        state, _ = ruleset.apply(state, seen)
    assert ruleset.apply(state, repeated) == (state, ())
    stacked = play(ruleset, [*VOID_THROW, DiceRead((1, 2, 3), stacked=1)])
    assert isinstance(stacked[-1], Voided)


def test_the_same_reading_told_late_changes_nothing() -> None:
    """Entered at a console that was dumb for a moment: the same dice contradict nobody."""
    regular: list[Event] = throw((4, 5, 6), WagerPlaced(1, "big", 100))
    verdicts = play(game(), [*regular, DiceRead((4, 5, 6), overtaken=250), RoundPaid(), DiceCovered()])
    assert [type(one) for one in verdicts] == [Opened, Closed, Resolved, Opened]


@pytest.mark.article("2(1)", "3(2)", "4")
@pytest.mark.parametrize("touched", [DiceDisturbed(), DiceReplaced(), DiceSeized()])
@pytest.mark.parametrize("place", [3, 4, 5, 6])
def test_dice_that_were_touched_after_they_were_shaken_give_no_result(touched: Event, place: int) -> None:
    """Those that count are those that were shaken under the dome."""
    events = throw((4, 5, 6), WagerPlaced(1, "big", 100))
    verdicts = play(game(), [*events[:place], touched, *events[place:]])
    assert sum(isinstance(one, Suspended) for one in verdicts) == 1
    assert not results(verdicts)


@pytest.mark.parametrize("touched", [DiceDisturbed(), DiceReplaced(), DiceSeized()])
def test_dice_may_be_exchanged_before_they_are_shaken_and_after_the_result(touched: Event) -> None:
    regular = throw((4, 5, 6))
    assert only(play(game(), [regular[0], touched, *regular[1:], touched])).void is None
    cover, shake, *rest = regular
    assert only(play(game(), [cover, shake, touched, shake, *rest])).irregularities == ()
    [void] = results(play(game(), [cover, shake, touched, *rest[:-1]]))
    assert void.void is not None
    assert void.void.reason.code == "not_agitated"


# ---- a dome that is a part of the shaker

MOTOR = DiceAgitated("electronic")
FIXED: dict[str, Any] = {"agitation": "electronic", "dome": "fixed"}
CAST: list[Event] = [MOTOR, BetsOpened(), BetsClosed(), DiceRead((1, 2, 4))]


@pytest.mark.article("1(2)(2)", "2(1)", "3(2)")
def test_a_shake_shuts_a_fixed_dome_and_the_bell_opens_it() -> None:
    first, second = results(play(game(**FIXED), [*CAST, RoundPaid(), *CAST]))
    for result in (first, second):
        assert (result.void, result.irregularities) == (None, ())
        assert result.outcome["faces"] == (1, 2, 4)
    seen = play(game(), CAST)  # a movable dome that nobody put on
    assert only(seen).void == Void(say("not_agitated"), "may_change")


@pytest.mark.article("1(2)(2)", "2(1)", "3(1)")
@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([BetsOpened(), BetsClosed()], "not_agitated"),
        ([MOTOR, BetsOpened(), BetsClosed(), MOTOR], "agitated_after_bell"),
        ([MOTOR, BetsOpened(), DiceRead((1, 2, 4))], "read_before_bell"),
        ([MOTOR, BetsOpened(), DiceUncovered()], "uncovered_before_bell"),
        ([MOTOR, DiceDisturbed(), BetsOpened(), BetsClosed()], "not_agitated"),
    ],
)
def test_a_fixed_dome_excuses_nothing_else(events: list[Event], reason: str) -> None:
    result = only(play(game(**FIXED), events))
    assert result.void == Void(say(reason), "may_change")


@pytest.mark.article("2(1)", "3(2)", "4")
def test_the_next_shake_under_a_fixed_dome_is_the_next_throw() -> None:
    unpaid = results(play(game(payment="console", **FIXED), [*CAST, *CAST]))
    assert [codes(result) for result in unpaid] == [[], ["covered_before_payment"]]
    unread = [MOTOR, BetsOpened(), BetsClosed(), DiceRead((1, 2)), *CAST]
    doubtful, good = results(play(game(**FIXED), unread))
    assert doubtful.void is not None
    assert (good.void, good.irregularities) == (None, ())
    lost = [MOTOR, BetsOpened(), EventsMissed(1), *CAST]
    doubtful, good = results(play(game(**FIXED), lost))
    assert doubtful.void is not None
    assert (good.void, good.irregularities) == (None, ())


def test_edition_2003_has_the_movable_dome() -> None:
    with pytest.raises(ValueError, match=r"dome: 31/2003 arts\. 1\(2\)\(2\), 3\(2\)"):
        CussecOptions(edition="2003", dome="fixed")


DOUBT: list[Event] = [*throw((1, 2, 3), WagerPlaced(1, "small", 10), WagerPlaced(1, "big", 3)), DiceRead((1, 2, 4))]


@pytest.mark.parametrize("reading", [DiceRead((1, 2, 4)), DiceRead((1, 2)), DiceRead((1, 2, 3), leaning=1)])
def test_a_contradictory_reading_before_the_payment_puts_the_result_in_doubt(reading: DiceRead) -> None:
    verdicts = play(game(), [*throw((1, 2, 3)), reading, DiceRead((1, 2, 3)), DiceRead((5, 5, 5))])
    first = only(verdicts)
    assert [verdict.round for verdict in verdicts if isinstance(verdict, Suspended)] == [first.round]
    assert isinstance(verdicts[-1], Suspended)


def test_a_result_in_doubt_stands_when_the_croupier_pays() -> None:
    verdicts = play(game(), [*DOUBT, RoundPaid(), DiceCovered()])
    first = only(verdicts)
    (corrected,) = [verdict.result for verdict in verdicts if isinstance(verdict, Corrected)]
    assert corrected.supersedes == corrected.round == first.round
    assert (corrected.winners, corrected.settlements) == (first.winners, first.settlements)
    assert (codes(corrected), laws(corrected)) == (["readings_contradict"], ["Despacho 57/2004 art. 3(2)"])


def test_a_result_in_doubt_is_void_when_declared_so() -> None:
    (corrected,) = [v.result for v in play(game(), [*DOUBT, RoundVoided("look")]) if isinstance(v, Corrected)]
    assert corrected.void == Void(say("look"), "may_change")
    assert codes(corrected) == ["readings_contradict"]


@pytest.mark.parametrize("event", [DiceCovered(), BetsOpened(), LEVER])
def test_a_result_in_doubt_is_void_when_the_next_round_begins(event: Event) -> None:
    verdicts = play(game(), [*DOUBT, event])
    *_, corrected, opened = verdicts
    assert isinstance(corrected, Corrected)
    assert isinstance(opened, Opened)
    assert corrected.result.void == Void(say("readings"), "returned")
    assert [(one.stake, one.returned) for one in corrected.result.settlements] == [(10, 10), (3, 3)]


def test_a_contradictory_reading_after_the_payment_is_noted() -> None:
    verdicts = play(game(), [*throw((1, 2, 3)), RoundPaid(), DiceRead((1, 2, 3)), DiceRead((1, 2, 4))])
    assert isinstance(verdicts[-1], Noted)
    assert [type(verdict) for verdict in verdicts] == [Opened, Closed, Resolved, Noted]


# ---- what may be shown


@pytest.mark.article("2(2)", "2(3)", "3(1)", "3(2)")
def test_the_view_follows_the_round() -> None:
    ruleset = game(announces=True)
    state = ruleset.start("t-1")
    shown = [ruleset.view(state)]
    for seen in script([*throw((1, 2, 3)), DiceRead((1, 1, 1)), RoundPaid()]):
        state, _ = ruleset.apply(state, seen)
        shown.append(ruleset.view(state))
    phases = [view.phase for view in shown]
    assert phases == ["idle", "covered", "covered", "betting", "closed", "uncovered", "paying", "suspended", "idle"]
    # Art. 2(2): the panel lights with the shaking; art. 2(3), 3(1): what the croupier calls.
    assert [view.detail.get("panel") for view in shown[1:6]] == [False, True, True, False, False]
    assert shown[3].detail["say"]["en"] == "Place your bets"
    assert shown[4].detail["say"]["zh-Hant"] == "開"
    assert shown[6].detail["say"]["en"] == "1, 2 and 3, total 6, small, even"
    assert "small" in shown[6].detail["lit"]
    assert all(msgspec.json.encode(view) for view in shown)


@pytest.mark.article("2(2)", "2(3)")
def test_the_panel_and_the_opening_call_are_the_houses_choice() -> None:
    ruleset = game(panel=False)
    state = ruleset.start("t-1")
    for seen in script(SHAKEN):
        state, _ = ruleset.apply(state, seen)
    assert ruleset.view(state).detail == {"pulls": 3, "agitations": 0}
    state, _ = ruleset.apply(state, script([EventsMissed(1)])[0])
    assert ruleset.view(state).phase == "suspended"


@pytest.mark.article("2003:2", "2003:3(1)")
def test_edition_2003_the_panel_opens_the_bets_and_the_bell_is_called_in_chinese() -> None:
    ruleset = game(edition="2003")
    state = ruleset.start("t-1")
    shown = []
    for seen in script([*SHAKEN, BetsClosed()]):
        state, _ = ruleset.apply(state, seen)
        shown.append(ruleset.view(state).detail)
    assert [detail["panel"] for detail in shown] == [False, True, True, False]
    assert "say" not in shown[2]
    assert shown[3]["say"]["zh-Hant"] == "開"


# ---- properties

STEPS: list[Event] = [
    DiceCovered(),
    DiceAgitated("lever", 1),
    LEVER,
    DiceAgitated("electronic"),
    BetsOpened(),
    BetsClosed(),
    DiceUncovered(),
    DiceRead((1, 2, 3)),
    DiceRead((6, 6, 6)),
    DiceRead((1, 2)),
    DiceRead((1, 2, 3), stacked=1),
    RoundPaid(),
    RoundVoided(""),
    EventsMissed(1),
    DeviceOnline(continuous=False),
    *(WagerPlaced(seat, bet, 10) for seat in (1, 2) for bet in ("small", "big", "nothing")),
    *(WagerWithdrawn(seat, bet, amount) for seat in (1, 2) for bet, amount in (("small", 0), ("big", 4))),
]
PARTS = st.one_of(
    st.lists(st.sampled_from(STEPS), max_size=4),
    st.just(throw((1, 2, 3), WagerPlaced(1, "small", 10))),
    st.just(list(VOID_THROW)),
    st.just([*SHAKEN, WagerPlaced(2, "big", 7)]),
)
PLAY = st.lists(PARTS, max_size=8).map(lambda parts: [event for part in parts for event in part])


def lying(wagers: Iterable[Wager]) -> int:
    return sum(wager.amount for wager in wagers)


def stakes(result: Result) -> int:
    return sum(one.stake for one in result.settlements)


@given(PLAY, st.sampled_from([{}, {"edition": "2003"}, {"agitation": "either", "payment": "console"}]))
@settings(max_examples=at_length(125, 2_500))
def test_no_chip_is_lost_or_made(events: list[Event], options: dict[str, Any]) -> None:
    """Every chip on the cloth was laid there, and leaves it only when taken back or settled, once."""
    ruleset = game(**options)
    state = ruleset.start("t-1")
    on_cloth = 0
    settled_in: dict[str, int] = {}
    for seen in script(events):
        before = on_cloth
        state, verdicts = ruleset.apply(state, seen)
        now = state.round or state.carried
        on_cloth = (lying(now.wagers) if now else 0) + (lying(state.laid.wagers) if state.laid else 0)
        match seen.event:
            case WagerPlaced(amount=amount):
                assert on_cloth - before in (0, amount)
            case WagerWithdrawn():
                assert on_cloth <= before
            case _:
                gone = back = 0
                for verdict in verdicts:
                    match verdict:
                        case Resolved(result=result) | Voided(result=result):
                            gone += stakes(result)
                            settled_in[result.round] = stakes(result)
                            assert result.void is None or result.void.bets == "returned" or not result.settlements
                        case Corrected(result=result) if result.void and result.void.bets != "returned":
                            # Before the payment: all that had been settled lies on the cloth again.
                            assert not result.settlements
                            back += settled_in.pop(result.round)
                        case Corrected(result=result):
                            assert stakes(result) == settled_in[result.round]
                        case _:
                            pass
                assert on_cloth == before - gone + back


@pytest.mark.article("1(2)(2)", "3(1)")
@given(PLAY)
@settings(max_examples=at_length(100, 2_000))
def test_a_throw_counts_only_where_the_dice_were_hidden_from_the_shaking_to_the_bell(events: list[Event]) -> None:
    """An independent watcher of the dome: what resolves was shaken under it, and hidden until the bell."""
    ruleset = game()
    state = ruleset.start("t-1")
    hidden = shaken = hidden_at_bell = False
    for seen in script(events):
        state, verdicts = ruleset.apply(state, seen)
        match seen.event:
            case DiceCovered() if not hidden:
                hidden, shaken = True, False
            case DiceAgitated():
                shaken = hidden
            case DiceUncovered() | EventsMissed() | DeviceOnline():
                hidden = False
            case _:
                pass
        for verdict in verdicts:
            if isinstance(verdict, Closed):
                hidden_at_bell = hidden and shaken
            if isinstance(verdict, Resolved):
                assert hidden_at_bell
                assert not hidden
                assert len(verdict.result.outcome["faces"]) == 3


@pytest.mark.article("2003:3(3)")
@given(PLAY)
@settings(max_examples=at_length(50, 1_000))
def test_edition_2003_never_gives_back_what_stands(events: list[Event]) -> None:
    ruleset = game(edition="2003")
    state = ruleset.start("t-1")
    for seen in script(events):
        state, _ = ruleset.apply(state, seen)
        cloth = state.round or state.carried
        held = {(one.seat, one.bet): one.amount for one in cloth.wagers} if cloth else {}
        for locked in state.locked:
            assert held.get((locked.seat, locked.bet), 0) >= locked.amount


NIGHT: list[Event] = [
    *throw((1, 2, 3), WagerPlaced(1, "total:6", 10), WagerPlaced(2, "total:7", 20), WagerWithdrawn(2, "total:7", 5)),
    RoundPaid(),
    *VOID_THROW,
    *throw((6, 6, 6), WagerPlaced(3, "any_triple", 1)),
    RoundPaid(),
    *throw((4, 5, 6), WagerPlaced(1, "single:4", 2)),
    RoundPaid(),
]


@pytest.mark.parametrize("proof", [EventsMissed(1), DeviceOnline(continuous=False)])
@pytest.mark.parametrize("lost", range(len(NIGHT)))
@pytest.mark.parametrize("options", [{}, {"edition": "2003"}, {"payment": "console"}])
def test_an_event_proven_lost_never_gives_a_wrong_result(options: dict[str, Any], lost: int, proof: Event) -> None:
    """What resolves, resolves as it would have with nothing lost; the event of its reading says which it is."""
    true = {result.evidence[-1]: result for result in results(play(game(**options), NIGHT)) if result.void is None}
    seen = results(play(game(**options), [*NIGHT[:lost], proof, *NIGHT[lost + 1 :]]))
    assert len({result.round for result in seen}) == len(seen)
    for result in (one for one in seen if one.void is None):
        expected = true[result.evidence[-1]]
        assert (result.outcome, result.winners) == (expected.outcome, expected.winners)
        # The cloth of a throw that is void by the loss lies on the next; that of a void one may have come back.
        back, meant = ({(one.seat, one.bet): one for one in ended.settlements} for ended in (result, expected))
        assert all(back[key] == meant[key] for key in back.keys() & meant.keys())
    assert any(one.void is None for one in seen)


PULLS: list[Event] = [DiceAgitated("lever", 1)] * 3
LOST_ON_THE_CLOTH: list[Event] = [*throw((1, 2, 3), WagerPlaced(1, "small", 100))[:-1], DiceRead((1, 2, 3), stacked=1)]


@pytest.mark.parametrize("begin", [[DiceCovered()], [DiceAgitated("lever", 3)], [BetsOpened()]])
def test_a_loss_while_bets_lie_on_the_cloth_of_a_void_throw_is_waited_for(begin: list[Event]) -> None:
    """A bet taken off unseen would be settled: nothing is, until the next covering gives the bets back."""
    verdicts = play(game(), [*LOST_ON_THE_CLOTH, EventsMissed(1), *begin, BetsClosed(), DiceRead((1, 2, 3))])
    assert [type(one) for one in verdicts[-3:]] == [Opened, Suspended, Closed]
    ended = results(play(game(), [*LOST_ON_THE_CLOTH, EventsMissed(1), *begin, BetsClosed(), *throw((1, 1, 3))]))
    assert [(one.void.bets if one.void else "", one.settlements) for one in ended] == [
        ("may_change", ()),
        ("returned", (Settlement(1, "small", 100, 100),)),
        ("", ()),
    ]


@pytest.mark.article("2(1)", "3(4)", "2003:2", "2003:3(3)")
@pytest.mark.parametrize("options", [{}, {"edition": "2003"}])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([DiceCovered(), *PULLS], [BetsOpened()]),  # opened over the bets that are in doubt
        ([DiceCovered()], [DiceCovered(), *PULLS, BetsOpened()]),
        ([DiceCovered(), *PULLS], [DiceCovered(), BetsOpened()]),  # covered already: the same shaking
        ([DiceCovered(), RoundVoided("look"), DiceUncovered(), DiceCovered(), *PULLS], [BetsOpened()]),
    ],
)
def test_after_a_loss_a_regular_shaking_counts_and_so_do_the_bets_laid_since(
    options: dict[str, Any], before: list[Event], after: list[Event]
) -> None:
    """Only the bets that lay there before the loss come back: the throw is regular, and it is not void."""
    lost: list[Event] = [*LOST_ON_THE_CLOTH, EventsMissed(1)]
    since, opened = WagerPlaced(2, "small", 7), WagerPlaced(3, "big", 5)
    rest: list[Event] = [opened, BetsClosed(), DiceUncovered(), DiceRead((1, 1, 3))]
    verdicts = play(game(**options), [*lost, since, *before, *after, *rest])
    *_, back, good = results(verdicts)
    assert (back.void and back.void.bets, back.settlements) == ("returned", (Settlement(1, "small", 100, 100),))
    assert (good.void, good.irregularities) == (None, ())
    assert good.settlements == (Settlement(2, "small", 7, 14), Settlement(3, "big", 5, 0))
    shaken = (n for n, one in enumerate([*lost, since, *before, *after], 1) if isinstance(one, DiceAgitated))
    assert {f"e{n}" for n in shaken if n > len(lost)} <= set(good.evidence), "it rests on its shaking"


@pytest.mark.article("2(1)", "3(2)")
@pytest.mark.parametrize("loss", [EventsMissed(9), DeviceOnline(continuous=False)])
@pytest.mark.parametrize("first", [[], LOST_ON_THE_CLOTH, [*throw((5, 5, 6)), RoundPaid()]])
@pytest.mark.parametrize("heard", [[], [LEVER], PULLS])
def test_a_throw_whose_covering_may_have_been_lost_waits_and_is_not_called_unshaken(
    loss: Event, first: list[Event], heard: list[Event]
) -> None:
    rest: list[Event] = [BetsOpened(), WagerPlaced(2, "small", 7), BetsClosed(), DiceUncovered(), DiceRead((1, 1, 3))]
    verdicts = play(game(), [*first, loss, *heard, *rest])
    (waits,) = [one for one in verdicts if isinstance(one, Suspended)]
    assert waits.reason == say("round_events")
    assert not results(verdicts)[len(results(play(game(), first))) :]
    back, good = results(play(game(), [*first, loss, *heard, *rest, *throw((1, 2, 3))]))[-2:]
    assert (back.void and back.void.bets, back.irregularities) == ("returned", ())
    assert Settlement(2, "small", 7, 7) in back.settlements
    assert (good.void, good.irregularities) == (None, ())


@pytest.mark.article("2(1)")
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_loss_in_the_shaking_waits_through_the_opening_of_the_bets(place: int) -> None:
    """The bets are opened once: it is this round that waits, not another one that was never shaken."""
    events = throw((1, 1, 3), WagerPlaced(2, "small", 7))
    verdicts = play(game(), [*events[:place], EventsMissed(1), *events[place:]])
    assert [type(one) for one in verdicts] == [Opened, Suspended, Closed]
    back, good = results(play(game(), [*events[:place], EventsMissed(1), *events[place:], *throw((1, 2, 3))]))
    assert (back.void and back.void.reason, back.irregularities) == (say("round_events"), ())
    assert back.settlements == (Settlement(2, "small", 7, 7),)
    assert good.void is None


@pytest.mark.article("3(1)", "3(4)")
@pytest.mark.parametrize(
    ("seen", "reason"), [(DiceUncovered(), "uncovered_before_bell"), (DiceRead((1, 1, 3)), "read_before_bell")]
)
def test_dice_seen_before_the_bell_are_void_also_where_bets_are_in_doubt(seen: Event, reason: str) -> None:
    """Who laid a bet then may have known them; what lay there before the loss stays in doubt."""
    lost: list[Event] = [*LOST_ON_THE_CLOTH, EventsMissed(1), *SHAKEN[:-1], WagerPlaced(2, "small", 7), seen]
    void, back, good = results(play(game(), [*lost, *throw((1, 2, 3))]))[1:]
    assert (void.void and void.void.reason, void.settlements) == (say(reason), ())
    assert (back.void and back.void.bets, back.settlements) == ("returned", (Settlement(1, "small", 100, 100),))
    assert (good.void, good.irregularities, good.settlements) == (None, (), (Settlement(2, "small", 7, 14),))


def test_declared_void_the_doubt_stays_with_the_cloth() -> None:
    doubtful = [*LOST_ON_THE_CLOTH, EventsMissed(1), DiceCovered(), RoundVoided("supervisor"), *throw((1, 1, 3))]
    _, declared, back, good = results(play(game(), doubtful))
    assert (declared.void, declared.settlements) == (Void(say("supervisor"), "may_change"), ())
    assert back.settlements == (Settlement(1, "small", 100, 100),)
    assert (good.void, good.settlements) == (None, ())


LOSSES = pytest.mark.parametrize("loss", [EventsMissed(9), DeviceOnline(continuous=False)])


@LOSSES
def test_after_a_loss_another_reading_may_be_another_throws(loss: Event) -> None:
    """The result that was right stands, whatever comes after it."""
    verdicts = play(game(), [*throw((5, 5, 6)), loss, DiceRead((1, 2, 3)), DiceCovered()])
    assert [type(one) for one in verdicts[3:]] == [Noted, Opened]


@LOSSES
def test_after_a_loss_a_payment_ends_no_doubt(loss: Event) -> None:
    """It may be of a throw that nobody heard of: the next covering gives the bets back."""
    verdicts = play(game(), [*DOUBT, loss, RoundPaid()])
    assert not [one for one in verdicts if isinstance(one, Corrected)]
    (ended,) = [v.result for v in play(game(), [*DOUBT, loss, RoundPaid(), DiceCovered()]) if isinstance(v, Corrected)]
    assert ended.void == Void(say("readings"), "returned")


@LOSSES
def test_after_a_loss_the_bets_of_a_result_taken_back_are_given_back(loss: Event) -> None:
    """Declared void, its bets lie for the next throw; but whether they still do, nobody knows."""
    bet = WagerPlaced(1, "small", 100)
    night = [*throw((5, 5, 6), bet), loss, RoundVoided("look"), DiceCovered(), *throw((1, 1, 3))]
    verdicts = play(game(), night)
    (taken_back,) = [one.result for one in verdicts if isinstance(one, Corrected)]
    assert (taken_back.void, taken_back.settlements) == (Void(say("look"), "may_change"), ())
    back, good = results(verdicts)[1:]
    assert back.settlements == (Settlement(1, "small", 100, 100),)
    assert (good.void, good.settlements) == (None, ())


@LOSSES
def test_a_loss_while_a_round_waits_for_something_else_leaves_its_bets_in_doubt(loss: Event) -> None:
    covered: list[Event] = [DiceCovered(), *[LEVER] * 3, BetsOpened(), WagerPlaced(1, "small", 100), BetsClosed()]
    waits = [*covered, DiceRead((1, 2, 3)), loss, RoundVoided("look")]
    verdicts = play(game(), [*waits, DiceCovered(), *throw((5, 5, 6))])
    back, good = results(verdicts)[1:]
    assert back.settlements == (Settlement(1, "small", 100, 100),)
    assert (good.void, good.settlements) == (None, ())


def test_without_chips_a_loss_between_rounds_doubts_nothing() -> None:
    night = [*throw((1, 2, 3))[:-1], DiceRead((1, 2, 3), stacked=1), EventsMissed(1), *throw((1, 1, 3))]
    assert results(play(game(), night))[-1].void is None


def test_a_payment_that_may_have_been_lost_is_not_noted_as_missing() -> None:
    seen = play(game(payment="console"), [*throw((1, 2, 3)), EventsMissed(1), *throw((1, 1, 3))])
    assert results(seen)[-1].irregularities == ()
    seen = play(game(payment="console"), [*throw((1, 2, 3)), *throw((1, 1, 3))])
    assert [one.code for one in results(seen)[-1].irregularities] == ["covered_before_payment"]


def test_more_taken_off_than_lay_there_is_no_bet_that_stands() -> None:
    bets = (WagerPlaced(1, "small", 100), WagerWithdrawn(1, "small", 200))
    (result,) = results(play(game(), throw((1, 2, 3), *bets)))
    assert [one.code for one in result.irregularities] == ["bet_not_placed"]
