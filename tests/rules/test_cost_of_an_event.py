"""The cost of an event: a bounded number of calls, the same after a long night as in the first round.

Counted calls, not seconds: a busy computer cannot fail it. `test_rulesets.py` bounds the memory beside it.
"""

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from helpers import script

from protocols.contract.topics import Envelope
from rules.engine.ruleset import Ruleset
from tests.rules.test_rulesets import ROUNDS, decided, every_game, game

CALLS = 105
"""Of Python functions and of built-in ones, for each event; measured: 5 to 35. Each takes about 0.1 microseconds."""


def counted(ruleset: Ruleset[Any], state: Any, seen: Sequence[Envelope]) -> tuple[Any, int]:
    """The state after the events, and how many calls they took."""
    calls = 0

    def count(_frame: FrameType, what: str, _of: Any) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for one in seen:
            state, _ = ruleset.apply(state, one)
    finally:
        sys.setprofile(before)
    return state, calls


@every_game
def test_an_event_costs_a_bounded_number_of_calls_all_night(name: str) -> None:
    ruleset = game(name)
    for round_ in [one for one in ROUNDS if decided(ruleset, one)]:
        night = script(round_ * 60)
        third = len(night) // 3
        state, _ = counted(ruleset, ruleset.start("t-1"), night[:third])
        state, early = counted(ruleset, state, night[third : 2 * third])
        state, late = counted(ruleset, state, night[2 * third :])
        assert early <= CALLS * third
        assert late <= early * 1.01
