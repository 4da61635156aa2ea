"""Angola's articles written a second time, and compared with each settlement of the frozen corpus's tables.

The functions below know only what lies on the table in the end and the text of Decreto Executivo 261/22; they share
nothing with the rulesets. The tables are those of the corpus: with losses, late events and corrections.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import corpus
import msgspec
import pytest
from helpers import at_length

from protocols.contract.facts import (
    BaccaratFacts,
    CrapsFacts,
    FrenchBankFacts,
    RouletteFacts,
    ShakenDiceFacts,
    StudPokerFacts,
    of_kind,
)
from protocols.contract.results import Push, Result, decode_result
from rules import RULESETS
from rules.engine.ruleset import options_from
from rules.facts import facts_of_result

Options = dict[str, Any]
LOST, BACK = Fraction(0), Fraction(1)
"""What comes back of one unit that was staked."""


def won(odds: Fraction | int) -> Fraction:
    return 1 + Fraction(odds)


# ---- articles 1 and 2: roulette

FRENCH = [
    int(n)
    for n in [
        "0",
        "32",
        "15",
        "19",
        "4",
        "21",
        "2",
        "25",
        "17",
        "34",
        "6",
        "27",
        "13",
        "36",
        "11",
        "30",
        "8",
        "23",
        "10",
        "5",
        "24",
        "16",
        "33",
        "1",
        "20",
        "14",
        "31",
        "9",
        "22",
        "18",
        "29",
        "7",
        "28",
        "12",
        "35",
        "3",
        "26",
    ]
]
REDS = {1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36}
ODDS_BY_NUMBERS = {1: 35, 2: 17, 3: 11, 4: 8, 6: 5}
SERIES: dict[str, list[tuple[int, ...]]] = {
    "large_series": [(0, 2, 3), (0, 2, 3), (4, 7), (12, 15), (18, 21), (19, 22), *((25, 26, 28, 29),) * 2, (32, 35)],
    "small_series": [(5, 8), (10, 11), (13, 16), (23, 24), (27, 30), (33, 36)],
    "orphans": [(1,), (6, 9), (14, 17), (17, 20), (31, 34)],
}
EVEN_CHANCES: dict[str, Callable[[int], bool]] = {
    "even": lambda n: n % 2 == 0,
    "odd": lambda n: n % 2 == 1,
    "low": lambda n: n <= 18,
    "high": lambda n: n >= 19,
    "red": lambda n: n in REDS,
    "black": lambda n: n not in REDS,
}


def numbers(chip: tuple[int, ...], pocket: int) -> Fraction:
    return won(ODDS_BY_NUMBERS[len(chip)]) if pocket in chip else LOST


def roulette(bet: str, facts: RouletteFacts, options: Options) -> Fraction:
    pocket, (family, _, place) = int(facts.pocket), bet.partition(":")
    dozen, column = (pocket + 11) // 12, (pocket - 1) % 3 + 1
    if family in EVEN_CHANCES:
        return won(1) if pocket and EVEN_CHANCES[family](pocket) else LOST
    if family in SERIES:
        chips = [numbers(chip, pocket) for chip in SERIES[family]]
        return sum(chips, start=LOST) / len(chips)
    wanted = [int(word) for word in place.split("-")]
    match family:
        case "dozen" | "column":
            return won(2) if pocket and (dozen if family == "dozen" else column) == wanted[0] else LOST
        case "double_dozen" | "double_column":
            return won(Fraction(1, 2)) if pocket and (dozen if family == "double_dozen" else column) in wanted else LOST
        case "neighbours":
            number, count = wanted
            at = FRENCH.index(number)
            ring = [FRENCH[(at + step) % 37] for step in range(-(count // 2), count // 2 + 1)]
            return won(35) / count if pocket in ring else LOST
        case _:
            return numbers(tuple(wanted), pocket)


# ---- article 3: French bank


def french_bank(bet: str, facts: FrenchBankFacts, options: Options) -> Fraction:
    total = sum(facts.faces)
    half = bet.endswith("_line")
    name = bet.removesuffix("_line")
    wins = {"aces": total == 3, "small": total in (5, 6, 7), "big": total in (14, 15, 16)}[name]
    decided = total in (3, 5, 6, 7, 14, 15, 16)
    if not decided:
        return BACK
    back = won(61 if name == "aces" else 1) if wins else BACK if facts.disturbed else LOST
    return (back + 1) / 2 if half else back


# ---- article 5: cussec

CUSSEC_TOTALS = {4: 65, 17: 65, 5: 32, 16: 32, 6: 19, 15: 19, 7: 12, 14: 12, 8: 8, 13: 8, 9: 7, 12: 7, 10: 6, 11: 6}


def cussec(bet: str, facts: ShakenDiceFacts, options: Options) -> Fraction:
    count, total = Counter(facts.faces), sum(facts.faces)
    triple = max(count.values()) == 3
    family, _, place = bet.partition(":")
    wanted = [int(word) for word in place.split("-")] if place else []
    match family:
        case "small":
            return won(1) if 4 <= total <= 10 and not triple else LOST
        case "big":
            return won(1) if 11 <= total <= 17 and not triple else LOST
        case "single":
            return won(count[wanted[0]]) if count[wanted[0]] else LOST
        case "two_dice":
            return won(5) if all(count[one] for one in wanted) else LOST
        case "double":
            return {2: won(10), 3: won(30)}.get(count[wanted[0]], LOST)
        case "triple":
            return won(190) if count[wanted[0]] == 3 else LOST
        case "any_triple":
            return won(32) if triple else LOST
        case _:
            assert family == "total"
            return won(CUSSEC_TOTALS[total]) if total == wanted[0] else LOST


# ---- articles 10 and 11: baccarat


def points(cards: tuple[str, ...]) -> int:
    return sum(1 if card[0] == "A" else 0 if card[0] in "TJQK" else int(card[0]) for card in cards) % 10


def baccarat(bet: str, facts: BaccaratFacts, options: Options) -> Fraction:
    player, banker = facts.hands["player"], facts.hands["banker"]
    mine, theirs = points(player), points(banker)
    deduction = {
        "2_percent": Fraction(2, 100),
        "5_percent": Fraction(5, 100),
        "20_percent_on_5": Fraction(20, 100) if theirs == 5 else Fraction(0),
        "50_percent_on_5": Fraction(50, 100) if theirs == 5 else Fraction(0),
    }.get(options.get("deduction", "none"), Fraction(0))
    match bet:
        case "player":
            return BACK if mine == theirs else won(1) if mine > theirs else LOST
        case "banker":
            return BACK if mine == theirs else won(1 - deduction) if theirs > mine else LOST
        case "tie":
            return won(8) if mine == theirs else LOST
        case _:
            pair = player if bet == "player_pair" else banker
            return won(11) if pair[0][0] == pair[1][0] else LOST


# ---- article 4: craps


def craps(bet: str, facts: CrapsFacts, options: Options) -> Fraction | None:
    """None where the throw does not decide the bet. `facts.point` is the point before the throw, 0 at a come-out."""
    total, hard = sum(facts.faces), facts.faces[0] == facts.faces[1]
    family, _, place = bet.partition(":")
    number = int(place) if place else facts.point if family in ("pass_odds", "dont_pass_odds") else 0
    bar = int(options.get("bar", "12"))
    odds = {4: Fraction(2), 10: Fraction(2), 5: Fraction(3, 2), 9: Fraction(3, 2), 6: Fraction(6, 5), 8: Fraction(6, 5)}
    laid = {n: one if options.get("dont_odds") == "as_printed" else 1 / one for n, one in odds.items()}
    four = {"9_to_5": Fraction(9, 5), "as_printed": Fraction(9, 15)}[options.get("place_4_10", "9_to_5")]
    places = {4: four, 10: four, 5: Fraction(7, 5), 9: Fraction(7, 5), 6: Fraction(7, 6), 8: Fraction(7, 6)}
    losing = {4: (5, 11), 10: (5, 11), 5: (5, 8), 9: (5, 8), 6: (10, 13), 8: (10, 13)}

    def race(wins: int, loses: int, pays: Fraction | int) -> Fraction | None:
        return won(pays) if total == wins else LOST if total == loses else None

    def one_throw(wins: bool, pays: int) -> Fraction:
        return won(pays) if wins else LOST

    def first(natural: tuple[int, ...], craps_: tuple[int, ...], push: int = 0) -> Fraction | None:
        return won(1) if total in natural else LOST if total in craps_ else BACK if total == push else None

    dont = tuple(n for n in (2, 3, 12) if n != bar)
    match family:
        case "pass" if facts.point:
            return race(facts.point, 7, 1)
        case "dont_pass" if facts.point:
            return race(7, facts.point, 1)
        case "come" if number:
            return race(number, 7, 1)
        case "dont_come" if number:
            return race(7, number, 1)
        case "pass" | "come":
            return first((7, 11), (2, 3, 12))
        case "dont_pass" | "dont_come":
            return first(dont, (7, 11), bar)
        case "pass_odds" | "come_odds":
            return race(number, 7, odds[number])
        case "dont_pass_odds" | "dont_come_odds":
            return race(7, number, laid[number])
        case "big_6" | "big_8":
            return race(int(family[-1]), 7, 1)
        case "under_7" | "over_7":
            return one_throw(total < 7 if family == "under_7" else total > 7, 1)
        case "any_craps":
            return one_throw(total in (2, 3, 12), 7)
        case "seven":
            return one_throw(total == 7, 4)
        case "two" | "twelve" | "three" | "eleven":
            wanted = {"two": 2, "three": 3, "eleven": 11, "twelve": 12}[family]
            return one_throw(total == wanted, 30 if wanted in (2, 12) else 15)
        case "hard_4" | "hard_6" | "hard_8" | "hard_10":
            wanted = int(family[5:])
            if total == wanted:
                return won(7 if wanted in (4, 10) else 9) if hard else LOST
            return LOST if total == 7 else None
        case "place":
            return race(number, 7, places[number])
        case "place_lose":
            return race(7, number, Fraction(*losing[number]))
        case _:
            assert family == "field"
            return won(2) if total in (2, 12) else won(1) if total in (3, 4, 9, 10, 11) else LOST


# ---- article 9: stud poker

ORDER = "23456789TJQKA"
PRIZES = (1, 1, 2, 3, 4, 5, 7, 20, 50, 100)


def rank_of(cards: tuple[str, ...]) -> tuple[int, tuple[int, ...], bool]:
    """The combination from 0, high cards, to 9; what compares equal ones; whether three cards have one suit."""
    ranks = sorted((ORDER.index(card[0]) for card in cards), reverse=True)
    count = Counter(ranks)
    shape = sorted(count.values(), reverse=True)
    sorted_ranks = tuple(sorted(ranks, key=lambda one: (-count[one], -one)))
    flush = len({card[1] for card in cards}) == 1
    wheel = ranks == [12, 3, 2, 1, 0]
    straight = len(count) == 5 and (ranks[0] - ranks[4] == 4 or wheel)
    key = (3,) if wheel else (ranks[0],) if straight else sorted_ranks
    three = max(Counter(card[1] for card in cards).values()) >= 3
    if flush and straight:
        return (9 if ranks[4] == 8 else 8), key, three
    if shape[0] == 4:
        return 7, key[:1], three
    if shape == [3, 2]:
        return 6, key[:1], three
    if flush:
        return 5, key, three
    if straight:
        return 4, key, three
    return {(3, 1): 3, (2, 2): 2, (2, 1): 1, (1, 1): 0}[shape[0], shape[1]], key, three


def stud_poker(bet: str, facts: StudPokerFacts, options: Options, seat: int) -> Fraction | None:
    """None where the hands do not say it: a hand that was forfeited, a jackpot bet."""
    fates = facts.seats if isinstance(facts.seats, dict) else {}
    name = f"seat_{seat}"
    if fates.get(name) == "folded":
        return LOST
    if (
        bet == "jackpot"
        or fates.get(name) not in ("wins", "loses", "ties", "not_opened")
        or "dealer" not in facts.hands
    ):
        return None
    theirs = rank_of(facts.hands["dealer"])
    held = {card[0] for card in facts.hands["dealer"]}
    if theirs[0] == 0 and not {"A", "K"} <= held:
        return won(1) if bet == "ante" else BACK
    mine = rank_of(facts.hands[name])
    if mine[:2] == theirs[:2]:
        if mine[0] == 0 and mine[2] != theirs[2]:
            better = mine[2]
        else:
            return BACK
    else:
        better = mine[:2] > theirs[:2]
    return won(1 if bet == "ante" else PRIZES[mine[0]]) if better else LOST


# ---- the comparison

Oracle = Callable[[str, Any, Options], Fraction | None]
ORACLES: dict[str, Oracle] = {
    "angola.american-roulette": roulette,
    "angola.baccarat": baccarat,
    "angola.baccarat-macau": baccarat,
    "angola.craps": craps,
    "angola.cussec": cussec,
    "angola.french-bank": french_bank,
    "angola.french-roulette": roulette,
}
EVENTS = at_length(300, 6_000)
"""Events of each table."""


def results(name: str, options: Options) -> Iterator[Result]:
    ruleset = RULESETS[name](options_from(RULESETS[name], options))
    for line, _types in corpus.table(ruleset, name, options, EVENTS):
        for said in msgspec.json.decode(line)["said"]:
            if said["type"] in ("resolved", "corrected") and said["result"]["void"] is None:
                yield decode_result(msgspec.json.encode(said["result"]))


@pytest.mark.parametrize("name", ORACLES)
def test_every_settlement_is_what_the_article_says(name: str) -> None:
    compared = 0
    for options in corpus.option_sets(name):
        for result in results(name, options):
            facts = facts_of_result(result)
            gone = {(one.seat, one.bet) for one in result.pushes if isinstance(one, Push)}  # it was too small
            for one in result.settlements:
                if (one.seat, one.bet) in gone and one.returned == one.stake:
                    continue
                back = ORACLES[name](one.bet, facts, options)
                got = Fraction(one.exact) if one.exact else Fraction(one.returned)
                assert back is not None, (one, result.outcome)
                assert got == back * one.stake, (one, back, result.outcome, options)
                compared += 1
    assert compared > EVENTS


def test_every_settlement_of_stud_poker_is_what_the_article_says() -> None:
    compared = 0
    for options in corpus.option_sets("angola.stud-poker"):
        if options.get("maximum_prizes") or options.get("tie_break") == "letter":
            continue
        for result in results("angola.stud-poker", options):
            facts = of_kind(StudPokerFacts, facts_of_result(result))
            for one in result.settlements:
                back = stud_poker(one.bet, facts, options, one.seat)
                if back is not None:
                    got = Fraction(one.exact) if one.exact else Fraction(one.returned)
                    assert got == back * one.stake, (one, back, result.outcome, options)
                    compared += 1
    assert compared > EVENTS


@pytest.mark.parametrize("name", ["angola.american-roulette", "angola.cussec", "angola.craps", "angola.baccarat"])
def test_the_winners_of_a_round_are_those_of_the_article(name: str) -> None:
    """Every place on the board, not only those with chips."""
    for options in corpus.option_sets(name)[:2]:
        for result in results(name, options):
            facts = facts_of_result(result)
            for win in result.winners:
                assert ORACLES[name](win.bet, facts, options) == 1 + Fraction(win.pays), (win, result.outcome)
