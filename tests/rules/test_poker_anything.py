"""Whatever is told, in whatever order: poker without a bank never raises, ends each hand once and loses no chip."""

from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from helpers import at_length, script
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardExposed,
    CardUnreadable,
    DealCorrected,
    DeviceOnline,
    Event,
    EventsMissed,
    HandDispensed,
    HandPassed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
)
from rules.angola.holdem import Holdem
from rules.angola.omaha import Omaha
from rules.angola.synthetic_poker import SyntheticOptions, SyntheticPoker
from rules.engine.ruleset import Corrected, Opened, Resolved, Voided, judge
from tests.rules.test_rulesets import NIGHTS

GAMES: tuple[Any, ...] = (
    Holdem(Holdem.Options()),
    Omaha(Omaha.Options()),
    SyntheticPoker(SyntheticOptions(blind_raises=True)),
)
SEATS = st.integers(1, 5)
CARDS = st.sampled_from([rank + suit for rank in "89TJQKA" for suit in "SHDC"])
WORDS = ("fold", "check", "call", "bet", "raise", "post", "show", "muck", "dead", "absent", "skipped", "rest", "return")
ACTS = st.builds(
    SeatActed,
    seat=SEATS,
    action=st.sampled_from((*WORDS, "blind_raise", "blind_reraise", "leap")),
    amount=st.sampled_from((0, 0, 50, 100, 200, 500, 2000)),
)
HAND_NAMES = st.sampled_from(("board", "seat_1", "seat_2", "seat_3", "seat_9", "seat_²", "dealer"))
LAID = st.dictionaries(HAND_NAMES, st.lists(CARDS, max_size=7, unique=True).map(tuple), max_size=3)
RARE = st.one_of(
    st.just(BetsOpened()),
    st.just(BetsClosed()),
    st.just(RoundVoided()),
    st.just(RoundPaid()),
    st.just(EventsMissed(1)),
    st.just(DeviceOnline(continuous=False)),
    st.just(CardUnreadable()),
    st.just(CardDamaged()),
    st.builds(HandDispensed, st.integers(1, 4)),
    st.builds(HandPassed, SEATS),
    st.builds(SeatOpened, SEATS),
    st.builds(SeatClosed, SEATS),
    st.builds(CardExposed, HAND_NAMES, CARDS | st.none()),
    st.builds(DealCorrected, LAID),
    st.builds(DealCorrected, st.fixed_dictionaries({"board": st.lists(CARDS, max_size=7, unique=True).map(tuple)})),
    st.builds(SeatActed, seat=SEATS, action=st.just("stack"), amount=st.sampled_from((0, 90, 1000, 5000))),
)
LATE = st.builds(lambda event, ms: replace(event, overtaken=ms, age_ms=ms), ACTS | RARE, st.integers(1, 9_000))
EVENTS = st.one_of(ACTS, ACTS, st.builds(CardDrawn, CARDS), RARE, LATE)
SEATED = [event for seat in range(1, 6) for event in (SeatOpened(seat), SeatActed(seat, "stack", amount=1000))]


@pytest.mark.parametrize("ruleset", GAMES, ids=lambda one: one.id)
@settings(max_examples=at_length(60, 2_000))
@given(events=st.lists(EVENTS, max_size=60))
def test_whatever_is_told_each_hand_ends_once_and_no_chip_is_lost(ruleset: Any, events: list[Event]) -> None:
    state = ruleset.start("t-1")
    opened: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for seen in script([*SEATED, BetsOpened(), *events]):
        state, verdicts = judge(ruleset, state, replace(seen, time=seen.time + timedelta(seconds=1)))
        for one in verdicts:
            match one:
                case Opened(round=id_):
                    opened[id_] += 1
                case Resolved(result=result) | Voided(result=result):
                    ended[result.round] += 1
                    _balanced(result)
                case Corrected(result=result):
                    _balanced(result)
        assert state.open is not None or all(chips >= 0 for chips in state.position.stacks.values())
        ruleset.view(state)
    assert set(opened.values()) <= {1}
    assert set(ended.values()) <= {1}
    assert set(ended) <= set(opened)
    assert msgspec.json.decode(msgspec.json.encode(state), type=ruleset.State) == state


def _balanced(result: Any) -> None:
    back = sum(one.returned for one in result.settlements)
    assert sum(one.stake for one in result.settlements) == back + result.outcome.get("rake", 0)


@pytest.mark.parametrize("ruleset", GAMES, ids=lambda one: one.id)
@given(night=NIGHTS)
def test_events_of_other_games_break_nothing(ruleset: Any, night: list[Event]) -> None:
    state = ruleset.start("t-1")
    for seen in script(night):
        state, _ = judge(ruleset, state, seen)
        ruleset.view(state)
