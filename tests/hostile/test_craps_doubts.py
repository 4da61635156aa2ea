"""Craps under losses, late events, disputes and null throws: no throw from a wrong point, no chip lost or doubled.

The point is followed here from the published results alone, the chips from what the state took and gave.
"""

from collections import Counter
from functools import cache
from typing import Any

import pytest
from helpers import at_length, script
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DeviceOnline,
    DiceRead,
    DiceThrown,
    Event,
    EventsMissed,
    HandPassed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.results import Result
from protocols.contract.topics import Envelope
from rules.angola.craps import Craps, CrapsOptions, CrapsState
from rules.engine.ruleset import Corrected, Resolved, Verdict, Voided, judge

BETS = ("pass", "dont_pass", "come", "dont_come", "place:6", "hard_8", "field", "pass_odds", "come_odds:6", "come:5")
FACES = st.tuples(st.integers(1, 6), st.integers(1, 6))
NULL = DiceThrown((), valid=False, reason="short_of_the_middle")

THROWS = FACES.map(DiceThrown)
WAGERS: st.SearchStrategy[Event] = st.builds(
    WagerPlaced, st.integers(1, 2), st.sampled_from(BETS), st.just(10)
) | st.builds(WagerWithdrawn, st.integers(1, 2), st.sampled_from(BETS), st.sampled_from((0, 5)))
RARE: tuple[Event, ...] = (
    *(EventsMissed(1), DeviceOnline(continuous=False), RoundVoided(""), RoundVoided(""), NULL, NULL),
    *(BetsOpened(), BetsClosed(), RoundPaid(), HandPassed(2)),
)
ENDS: tuple[Event, ...] = (RoundPaid(), RoundPaid(), RoundPaid(), RoundVoided(""))
TROUBLE: st.SearchStrategy[Event] = st.one_of(st.sampled_from(RARE), THROWS, FACES.map(DiceRead))


@st.composite
def rounds(draw: st.DrawFn) -> list[Event]:
    """A round; now and then something else happens in it, or one of its events comes late."""
    thrown = draw(st.one_of(THROWS, THROWS, THROWS, st.just(NULL)))
    end = draw(st.sampled_from(ENDS))
    events: list[Event] = [BetsOpened(), *draw(st.lists(WAGERS, max_size=4)), thrown, end]
    if draw(st.integers(0, 2)) == 0:
        for event in draw(st.lists(TROUBLE, min_size=1, max_size=3)):
            events.insert(draw(st.integers(0, len(events))), event)
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, len(events) - 1))
        events[place] = replace(events[place], overtaken=250)
    return events


NIGHTS = st.lists(rounds(), min_size=2, max_size=7).map(lambda all_: [event for one in all_ for event in one])
pace = settings(max_examples=at_length(150, 20_000), deadline=None)


@cache
def game() -> Craps:
    """With its default options."""
    return Craps(CrapsOptions())


def steps(night: list[Event]) -> list[tuple[CrapsState, Envelope, CrapsState, tuple[Verdict, ...]]]:
    """Each event with the state before and after it."""
    state, taken = game().start("t-1"), []
    for seen in script(night):
        after, verdicts = judge(game(), state, seen)
        taken.append((state, seen, after, verdicts))
        state = after
    return taken


def ended(verdicts: tuple[Verdict, ...]) -> list[Result]:
    return [one.result for one in verdicts if isinstance(one, Resolved | Voided | Corrected)]


def chips(state: CrapsState) -> int:
    """What lies on the table."""
    laid = state.round.wagers if state.round is not None else ()
    return sum(one.amount for one in (*laid, *state.standing))


@given(NIGHTS)
@pace
def test_no_throw_is_resolved_from_a_point_that_the_results_do_not_give(night: list[Event]) -> None:
    """A round that was given back ends the series; a loss lets no throw be resolved before that."""
    points: dict[str, int] = {}
    order: list[str] = []
    lost = False
    for before, seen, _, verdicts in steps(night):
        if isinstance(seen.event, EventsMissed | DeviceOnline) and before.count:
            lost = True
        for result in ended(verdicts):
            earlier = [name for name in order if name != result.round]
            previous = points[earlier[-1]] if earlier else 0
            if result.round not in order:
                order.append(result.round)
            if result.void is not None:
                points[result.round] = previous if result.void.bets == "stand" else 0
                continue
            assert result.outcome["point"] == previous
            points[result.round] = result.outcome["next_point"]
        if any(isinstance(one, Resolved) for one in verdicts):
            assert not lost
        if isinstance(seen.event, RoundVoided) and any(isinstance(one, Voided) for one in verdicts):
            lost = False


@given(NIGHTS)
@pace
def test_every_chip_is_settled_once_or_still_lies_there(night: list[Event]) -> None:
    laid = 0
    settled: Counter[str] = Counter()
    for before, seen, after, verdicts in steps(night):
        if isinstance(seen.event, WagerPlaced | WagerWithdrawn):
            laid += chips(after) - chips(before)
        for result in ended(verdicts):
            settled[result.round] = sum(one.stake for one in result.settlements)
        assert settled.total() + chips(after) == laid, seen.event


@pytest.mark.parametrize("between", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("loss", [EventsMissed(1), DeviceOnline(continuous=False)])
def test_a_loss_anywhere_in_a_series_stops_it(between: int, loss: Event) -> None:
    events: list[Event] = [BetsOpened(), DiceThrown((2, 2)), RoundPaid(), BetsOpened()]
    told: Any = steps([*events[:between], loss, *events[between:], DiceThrown((2, 2))])
    results = [result for *_, verdicts in told for result in ended(verdicts)]
    expected = {0: [0, 4], 1: [], 2: [0], 3: [0], 4: [0]}[between]
    assert [one.outcome["point"] for one in results] == expected
