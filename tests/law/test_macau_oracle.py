"""Macau's articles on prizes written a second time, and compared with each settlement of the frozen corpus's tables.

The functions know only what lies on the table in the end and the texts (55, 57, 58, 59 and 60/2004, 30 and 31/2003);
they share nothing with the rulesets. The tables are those of the corpus: with losses, late events and corrections.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import corpus
import msgspec
import pytest
from helpers import at_length

from protocols.contract.facts import BaccaratFacts, FantanFacts, RouletteFacts, ShakenDiceFacts
from protocols.contract.results import Push, Result, decode_result
from rules import RULESETS
from rules.engine.ruleset import options_from
from rules.facts import facts_of_result

Options = dict[str, Any]
LOST, BACK = Fraction(0), Fraction(1)
"""What comes back of one unit that was staked."""
NET = Fraction(95, 100)
"""58/2004 art. 9: what is left of a prize at fantan."""


def won(odds: Fraction | int) -> Fraction:
    return 1 + Fraction(odds)


def places(bet: str) -> tuple[str, list[str]]:
    family, _, place = bet.partition(":")
    return family, place.split("-") if place else []


def fantan(bet: str, facts: FantanFacts, options: Options) -> Fraction:
    family, words = places(bet)
    numbers, left = [int(word) for word in words], facts.number
    comes_back = {"nim": 1, "nga": 1}.get(family, 0)
    odds = {"fan": Fraction(3), "nim": Fraction(2), "nga": Fraction(1, 2), "sesamhong": Fraction(1, 3), "kuoc": BACK}
    if left in numbers[len(numbers) - comes_back :] and comes_back:
        return BACK
    return won(odds[family] * NET) if left in numbers else LOST


SECTORS = {
    "sector_a": {1, 3, 5, 13, 15, 17, 20, 22, 24, 32, 34, 36},
    "sector_b": {2, 4, 6, 14, 16, 18, 19, 21, 23, 31, 33, 35},
}
BY_NUMBERS = {"straight": 35, "split": 17, "street": 11, "corner": 8, "line": 5, "nine": 3}
USUAL_RED = [1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36]


def roulette(bet: str, facts: RouletteFacts, options: Options) -> Fraction:
    family, words = places(bet)
    pocket = int(facts.pocket)
    if pocket == 0:
        return won(35) if bet == "straight:0" else LOST
    red = pocket in options.get("red", USUAL_RED)
    chances = {
        "even": pocket % 2 == 0,
        "odd": pocket % 2 == 1,
        "low": pocket <= 18,
        "high": pocket > 18,
        "red": red,
        "black": not red,
    }
    if family in chances:
        return won(1) if chances[family] else LOST
    if family in SECTORS:
        return won(2) if pocket in SECTORS[family] else LOST
    numbers = [int(word) for word in words]
    if family in ("dozen", "column"):
        mine = (pocket + 11) // 12 if family == "dozen" else (pocket - 1) % 3 + 1
        return won(2) if mine == numbers[0] else LOST
    return won(BY_NUMBERS[family]) if pocket in numbers else LOST


TOTALS = {4: 50, 17: 50, 5: 18, 16: 18, 6: 14, 15: 14, 7: 12, 14: 12, 8: 8, 13: 8, 9: 6, 10: 6, 11: 6, 12: 6}


def sizes(family: str, total: int, *, triple: bool) -> Fraction:
    wins = 4 <= total <= 10 if family == "small" else 11 <= total <= 17
    return won(1) if wins and not triple else LOST


def cussec(bet: str, facts: ShakenDiceFacts, options: Options) -> Fraction | None:
    """None where an option decides it: totals, even and odd on triples, doubles."""
    family, words = places(bet)
    count, total = Counter(str(face) for face in facts.faces), sum(facts.faces)
    triple = max(count.values()) == 3
    match family:
        case "small" | "big":
            return sizes(family, total, triple=triple)
        case "single":
            return won(count[words[0]]) if count[words[0]] else LOST
        case "triple":
            return won(150) if count[words[0]] == 3 else LOST
        case "any_triple":
            return won(24) if triple else LOST
        case "total":
            return None if total in (5, 6, 15, 16) and "total" in str(options) else _total(words, total)
        case "two_dice":
            return won(5) if all(count[word] for word in words) else LOST
        case "three_dice":
            return won(30) if all(count[word] for word in words) else LOST
        case "four_numbers":
            return won(7) if len(count) == 3 and set(count) <= set(words) else LOST
        case "double_and_single":
            return won(50) if count == Counter("".join(words)) else LOST
        case _:
            return None


def _total(words: list[str], total: int) -> Fraction:
    return won(TOTALS[total]) if words == [str(total)] else LOST


FIGURES = ("fish", "prawn", "gourd", "coin", "crab", "rooster")
COLOURS = {"fish": "red", "rooster": "red", "prawn": "green", "crab": "green", "gourd": "blue", "coin": "blue"}


def fish(bet: str, facts: ShakenDiceFacts, options: Options) -> Fraction:
    family, words = places(bet)
    figures = [FIGURES[face - 1] for face in facts.faces]
    count, total = Counter(figures), sum(facts.faces)
    colours, triple = Counter(COLOURS[figure] for figure in figures), max(count.values()) == 3
    match family:
        case "small" | "big":
            return sizes(family, total, triple=triple)
        case "figure":
            return won(count[words[0]]) if count[words[0]] else LOST
        case "one_colour" | "two_colour" | "three_colour":
            wanted = ("one_colour", "two_colour", "three_colour").index(family) + 1
            return won((1, 3, 20)[wanted - 1]) if colours[words[0]] == wanted else LOST
        case "same_colour":
            return won(7) if len(colours) == 1 else LOST
        case "triple":
            return won(150) if count[words[0]] == 3 else LOST
        case "any_triple":
            return won(24) if triple else LOST
        case _:
            assert family == "total"
            return _total(words, total)


def points(cards: tuple[str, ...]) -> int:
    return sum(1 if card[0] == "A" else 0 if card[0] in "TJQK" else int(card[0]) for card in cards) % 10


def baccarat(bet: str, facts: BaccaratFacts, options: Options) -> Fraction:
    player, banker = facts.hands["player"], facts.hands["banker"]
    mine, theirs = points(player), points(banker)
    dragon, six = theirs == 7 and mine < 7 and len(banker) == 3, theirs == 6 and mine < 6
    commission = options.get("commission", "5_percent")
    match bet:
        case "player":
            return BACK if mine == theirs else won(1) if mine > theirs else LOST
        case "banker" if mine == theirs or (dragon and commission == "dragon_7_push"):
            return BACK
        case "banker":
            pays = {"5_percent": NET, "six_pays_half": Fraction(1, 2) if six else BACK}.get(commission, BACK)
            return won(pays) if theirs > mine else LOST
        case "tie":
            return won(8) if mine == theirs else LOST
        case "dragon_7":
            return won(40) if dragon else LOST
        case "lucky_6":
            return (won(20) if len(banker) == 3 else won(12)) if six else LOST
        case "jackpot":
            return LOST
        case _:
            pair = player if bet == "player_pair" else banker
            return won(11) if pair[0][0] == pair[1][0] else LOST


Oracle = Callable[[str, Any, Options], Fraction | None]
ORACLES: dict[str, Oracle] = {
    "macau.baccarat": baccarat,
    "macau.cussec": cussec,
    "macau.fantan": fantan,
    "macau.fish-prawn-crab": fish,
    "macau.roulette": roulette,
}
EVENTS = at_length(250, 6_000)
"""Events of each table."""


def results(name: str, options: Options) -> Iterator[Result]:
    ruleset = RULESETS[name](options_from(RULESETS[name], options))
    for line, _types in corpus.table(ruleset, name, options, EVENTS):
        for said in msgspec.json.decode(line)["said"]:
            if said["type"] in ("resolved", "corrected") and said["result"]["void"] is None:
                yield decode_result(msgspec.json.encode(said["result"]))


@pytest.mark.parametrize("name", ORACLES)
def test_every_settlement_is_what_the_article_says(name: str) -> None:
    compared, families = 0, set()
    for options in corpus.option_sets(name):
        for result in results(name, options):
            facts = facts_of_result(result)
            alone = {(one.seat, one.bet) for one in result.pushes if isinstance(one, Push)}  # without a main bet
            for one in result.settlements:
                if (one.seat, one.bet) in alone and one.returned == one.stake:
                    continue
                back = ORACLES[name](one.bet, facts, options)
                if back is None:
                    continue
                got = Fraction(one.exact) if one.exact else Fraction(one.returned)
                assert got == back * one.stake, (one, back, result.outcome, options)
                families.add((one.bet.partition(":")[0], "wins" if back > 1 else "returns" if back == 1 else "loses"))
                compared += 1
    assert compared > EVENTS
    assert len(families) > 8
