"""A terminal lays side bets without their main bet: each bet that was taken stands in the round's result.

They were accepted, went back when the bets closed, and stood in no settlement: whoever keeps the terminal's account
never got the money back.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers import play, results

from protocols.contract.events import BetsClosed, BetsOpened, CardDrawn, Event, SeatActed, WagerPlaced
from rules import RULESETS
from rules.engine.ruleset import Push, options_from

STUD = "2S 2H 3S 3H 5S 5H 7S 7H 9S 8H"
COUP = "TS KS 9S 7S"
BLACKJACK = "TS 7H 9S TD"
ROUNDS: dict[str, tuple[dict[str, Any], str, str, str, list[str]]] = {
    "macau.stud-poker": ({}, "ante", STUD, "raise", ["jackpot"]),
    "angola.stud-poker": ({}, "ante", f"KC {STUD}", "raise", ["jackpot"]),
    "macau.baccarat": (
        {"opening": "bell", "jackpot": "A", "additional_bets": "with_main_bet"},
        "player",
        COUP,
        "",
        ["jackpot", "player_pair", "banker_pair", "dragon_7"],
    ),
    "macau.blackjack": ({}, "main", "TS 7H 9S", "stand", ["sevens"]),
    "angola.blackjack": (
        {"jackpot": "automatic", "jackpot_bet": 5, "jackpot_seed": 50_000, "jackpot_prizes": ("AAAA=pool",)},
        "main",
        BLACKJACK,
        "stand",
        ["jackpot"],
    ),
}


def laid(seat: int, bet: str, amount: int) -> WagerPlaced:
    return WagerPlaced(seat, bet, amount, request=f"r-{seat}-{bet}", terminal="t-9")


def one_round(main: str, cards: str, act: str, sides: list[str]) -> Iterator[Event]:
    yield BetsOpened()
    yield laid(1, main, 100)
    yield from (laid(2, side, 5) for side in sides)
    yield BetsClosed()
    yield from (CardDrawn(card) for card in cards.split())
    if act:
        yield SeatActed(1, act)
    if main == "main":
        yield CardDrawn("TC")


def test_insurance_that_stays_too_small_is_returned() -> None:
    kind = RULESETS["macau.blackjack"]
    round_: list[Event] = [
        BetsOpened(),
        laid(1, "main", 100),
        BetsClosed(),
        *(CardDrawn(card) for card in ("TS", "AH", "9S")),
    ]
    rest: list[Event] = [laid(1, "insurance", 49), SeatActed(1, "stand"), CardDrawn("TC")]
    (result,) = results(play(kind(options_from(kind, {})), [*round_, *rest]))
    assert [(one.bet, one.stake, one.returned) for one in result.settlements] == [
        ("main", 100, 0),
        ("insurance", 49, 49),
    ]


@pytest.mark.parametrize("ruleset", ROUNDS)
def test_a_side_bet_without_its_main_bet_stands_in_the_result_as_returned(ruleset: str) -> None:
    options, main, cards, act, sides = ROUNDS[ruleset]
    kind = RULESETS[ruleset]
    game = kind(options_from(kind, options))
    (result,) = results(play(game, one_round(main, cards, act, sides)))
    assert result.void is None
    back = {one.bet: (one.stake, one.returned) for one in result.settlements if one.seat == 2}
    assert back == dict.fromkeys(sides, (5, 5))
    assert {one.bet for one in result.pushes if isinstance(one, Push) and one.seat == 2} == set(sides)
    assert [one.bet for one in result.settlements if one.seat == 1][:1] == [main]
