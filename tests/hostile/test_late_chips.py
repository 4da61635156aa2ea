"""Late chips: a player lays chips after "no more bets", and the dealer hands them back when it suits him.

Whenever that is, it never lowers the bet that stands, and no chip wins that was laid too late.
"""

from typing import Any

import pytest
from helpers import play, results

from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BetsClosed,
    BetsOpened,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceThrown,
    DiceUncovered,
    Event,
    RoundPaid,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from rules import RULESETS
from rules.engine.ruleset import Ruleset, options_from

SHAKEN: list[Event] = [DiceCovered(), DiceAgitated("lever", 3), BetsOpened()]
LAUNCH, BACK = BallLaunched("clockwise", "anticlockwise"), BallLaunched("anticlockwise", "clockwise")
NULL: list[Event] = [DiceUncovered(), DiceRead((1, 1, 2), stacked=True)]
READ: list[Event] = [*SHAKEN, BetsClosed(), DiceUncovered(), DiceRead((1, 2, 3))]

CASES: dict[str, Any] = {
    # ruleset, options, events to the bets, the bet, no more bets and what leaves the bets there, the end, brings back
    "craps, a throw that decides nothing": (
        *("angola.craps", {}, [BetsOpened()], "big_6"),
        *([DiceThrown((1, 3)), RoundPaid(), BetsOpened()], [BetsClosed(), DiceThrown((3, 3))], 280),
    ),
    "craps, a null throw": (
        *("angola.craps", {}, [BetsOpened()], "pass"),
        *([DiceThrown((), valid=False, reason="short_of_the_middle"), BetsOpened()], [DiceThrown((3, 4))], 280),
    ),
    "craps, the line with a point up": (
        *("angola.craps", {}, [BetsOpened()], "pass"),
        *([DiceThrown((2, 4)), RoundPaid(), BetsOpened()], [DiceThrown((2, 4))], 280),
    ),
    "craps, before the bets are opened again": (
        *("angola.craps", {}, [BetsOpened()], "big_6"),
        *([DiceThrown((1, 3)), RoundPaid()], [BetsOpened(), DiceThrown((3, 3))], 280),
    ),
    "Macau's cussec of 2003": (
        *("macau.cussec", {"edition": "2003"}, SHAKEN, "small", NULL),
        *(READ, 280),
    ),
    "Macau's cussec": ("macau.cussec", {}, SHAKEN, "small", NULL, READ, 280),
    "Angola's cussec": ("angola.cussec", {}, SHAKEN, "small", NULL, READ, 280),
    "fish-prawn-crab": (
        *("macau.fish-prawn-crab", {}, SHAKEN, "small", NULL),
        *(READ, 280),
    ),
    "French bank, after the bell": (
        *("angola.french-bank", {}, [BetsOpened()], "small", [], [DiceThrown((1, 2, 3))], 280),
    ),
    "French bank, where bets may be moved": (
        *("angola.french-bank", {"between_throws": "bets_may_change"}, [BetsOpened()], "small"),
        *([DiceThrown((3, 3, 3))], [BetsClosed(), DiceThrown((1, 2, 3))], 280),
    ),
    "French roulette, a null spin": (
        *("angola.french-roulette", {}, [BetsOpened(), LAUNCH], "red"),
        *([SpinVoided("chip")], [BACK, BetsClosed(), BallLanded("1")], 280),
    ),
    "Macau's roulette, a null spin": (
        *("macau.roulette", {}, [BetsOpened()], "red"),
        *([LAUNCH, SpinVoided("chip")], [LAUNCH, BallLanded("1")], 280),
    ),
}


def ruleset(name: str, options: dict[str, Any]) -> Ruleset[Any]:
    return RULESETS[name](options_from(RULESETS[name], options))


@pytest.mark.parametrize("late", [140, 60, 200])
@pytest.mark.parametrize("name", CASES)
def test_a_late_chip_that_is_handed_back_later_does_not_lower_the_bet(name: str, late: int) -> None:
    game, options, before, bet, then, end, brings = CASES[name]
    chips: list[Event] = [WagerPlaced(1, bet, late)]
    back: list[Event] = [WagerWithdrawn(1, bet, late)]
    laid: list[Event] = [*before, WagerPlaced(1, bet, 140), BetsClosed()]
    for events in (
        [*laid, *chips, *back, *then, *end],
        [*laid, *chips, *then, *back, *end],
        [*laid, *chips, *then, WagerWithdrawn(1, bet, late - 1), WagerWithdrawn(1, bet, 1), *end],
        [*laid, *chips, *then, *end],
    ):
        result = results(play(ruleset(game, options), events))[-1]
        assert [(one.bet, one.stake, one.returned) for one in result.settlements] == [(bet, 140, brings)]
        codes = [one.code for one in result.irregularities]
        assert "bet_not_placed" not in codes
        assert codes.count("late_bet") <= 1


@pytest.mark.parametrize("name", CASES)
def test_chips_laid_before_the_bets_are_opened_are_no_bet_either(name: str) -> None:
    game, options, before, bet, then, end, brings = CASES[name]
    early: list[Event] = [WagerPlaced(1, bet, 60)]
    laid: list[Event] = [*before, WagerPlaced(1, bet, 140), WagerWithdrawn(1, bet, 60), BetsClosed()]
    result = results(play(ruleset(game, options), [*early, *laid, *then, *end]))[-1]
    assert [(one.bet, one.stake, one.returned) for one in result.settlements] == [(bet, 140, brings)]


def test_a_late_chip_of_one_round_does_not_lower_the_bet_of_the_next() -> None:
    first: list[Event] = [BetsOpened(), WagerPlaced(1, "red", 140), LAUNCH, BetsClosed(), WagerPlaced(1, "red", 60)]
    handed: list[Event] = [WagerWithdrawn(1, "red", 60), BACK, BetsClosed(), BallLanded("1")]
    events = [*first, BallLanded("2"), RoundPaid(), BetsOpened(), WagerPlaced(1, "red", 100), *handed]
    results_ = results(play(ruleset("angola.french-roulette", {}), events))
    assert [[(one.stake, one.returned) for one in each.settlements] for each in results_] == [[(140, 0)], [(100, 200)]]
