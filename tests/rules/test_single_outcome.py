"""The life of a round that one event decides: what each event does in each phase, shown with fantan."""

import pytest
from helpers import script

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    DeviceOnline,
    Event,
    EventsMissed,
    RoundPaid,
    RoundVoided,
    WagerPlaced,
    WagerWithdrawn,
)
from rules.engine.bets import Board, Family, check_offered, names, numbers, prize
from rules.engine.ruleset import Bet, Noted, Win
from rules.engine.single_outcome import PHASES
from rules.macau.fantan import Fantan, FantanOptions

BETTING: tuple[Event, ...] = (ButtonsSeparated(), BetsOpened(), WagerPlaced(1, "fan:1", 5))
CLOSED: tuple[Event, ...] = (*BETTING, BetsClosed())
RESOLVED: tuple[Event, ...] = (*CLOSED, ButtonsCounted(5))
# How each phase is reached.
REACHED: dict[str, tuple[Event, ...]] = {
    "idle": (),
    "open": BETTING,
    "closed": CLOSED,
    "suspended": (*BETTING, EventsMissed(1)),
    "resolved": RESOLVED,
    "disputed": (*RESOLVED, ButtonsCounted(6)),
}
# Each event with the phase after it, for the phases in the order of PHASES.
TRANSITIONS: list[tuple[Event, str]] = [
    (BetsOpened(), "open open closed suspended open open"),
    (WagerPlaced(2, "fan:2", 10), "idle open closed suspended resolved disputed"),
    (WagerWithdrawn(1, "fan:1"), "idle open closed suspended resolved disputed"),
    (BetsClosed(), "idle closed closed suspended resolved disputed"),
    (ButtonsCounted(5), "idle idle resolved suspended resolved resolved"),
    (ButtonsCounted(6), "idle idle resolved suspended disputed resolved"),
    (ButtonsCounted(7), "idle idle resolved suspended disputed disputed"),
    (ButtonsCounted(0), "idle idle closed suspended resolved disputed"),
    (RoundPaid(), "idle open closed suspended idle idle"),
    (RoundPaid(overtaken=50), "idle open closed suspended idle disputed"),
    (RoundVoided(), "idle idle idle idle idle idle"),
    (RoundVoided(overtaken=50), "idle idle idle idle disputed disputed"),
    (EventsMissed(1), "idle suspended suspended suspended resolved disputed"),
    (DeviceOnline(continuous=False), "idle suspended suspended suspended resolved disputed"),
    (DeviceOnline(continuous=True), "idle open closed suspended resolved disputed"),
    (ButtonsSeparated(), "open suspended open open open open"),
]


@pytest.mark.parametrize(("event", "after"), TRANSITIONS, ids=[repr(event) for event, _ in TRANSITIONS])
def test_each_event_leads_from_each_phase_to_the_one_of_the_table(event: Event, after: str) -> None:
    ruleset = Fantan(FantanOptions())
    reached = []
    for phase in PHASES:
        state = ruleset.start("t-1")
        *before, last = script([*REACHED[phase], event])
        for seen in before:
            state, _ = ruleset.apply(state, seen)
        assert state.phase == phase
        state, _ = ruleset.apply(state, last)
        reached.append(state.phase)
    assert reached == after.split()


@pytest.mark.parametrize("phase", PHASES)
def test_a_void_that_names_another_round_voids_none(phase: str) -> None:
    ruleset, state = Fantan(FantanOptions()), Fantan(FantanOptions()).start("t-1")
    *before, other = script([*REACHED[phase], RoundVoided("a button fell", "t-1:2026-11-20:7")])
    for seen in before:
        state, _ = ruleset.apply(state, seen)
    after, said = ruleset.apply(state, other)
    assert after == state
    [note] = said
    assert isinstance(note, Noted)
    assert (note.irregularity.code, note.irregularity.law) == ("round_unknown", "Despacho 58/2004 art. 5(1)")
    assert "t-1:2026-11-20:7" in str(note.irregularity.reason.values)


@pytest.mark.parametrize(("phase", "after"), [("open", "idle"), ("closed", "idle"), ("resolved", "idle")])
def test_a_void_that_names_the_round_on_the_table_voids_it(phase: str, after: str) -> None:
    ruleset, state = Fantan(FantanOptions()), Fantan(FantanOptions()).start("t-1")
    *before, own = script([*REACHED[phase], RoundVoided("a button fell", "t-1:2026-11-20:1")])
    for seen in before:
        state, _ = ruleset.apply(state, seen)
    state, said = ruleset.apply(state, own)
    assert state.phase == after
    assert len(said) == 1


# ---- bets as a table

PAIRS = numbers([(1, 2), (1, 3)])
FAMILIES = (
    Family("high", "1", "art. 1", "more than 3", {"": 3}, lambda low, thrown: thrown > low, lambda low, n: n == low),
    Family("pair:a-b", "2", "art. 2", "a or b", PAIRS, lambda pair, thrown: thrown in pair, gross="21/10"),
    Family("less:n", "1 or 2", "art. 3", "n less", {"4": 4}, lambda n, thrown: prize(max(n - thrown, 0))),
)


def test_a_board_offers_the_families_and_names_winners_and_returned_bets() -> None:
    board = Board(FAMILIES)
    assert board.places == ("high", "pair:1-2", "pair:1-3", "less:4")
    assert board.bets[1] == Bet("pair:a-b", "2", "art. 2", "a or b")
    assert board.ending(3) == ((Win("pair:1-3", "2", "21/10"), Win("less:4", "1")), ("high",))
    assert board.ending(5) == ((Win("high", "1"),), ())


def test_a_house_offers_some_families_in_the_order_of_the_text() -> None:
    board = Board(FAMILIES, ("less", "high"))
    assert board.places == ("high", "less:4")
    assert [bet.id for bet in board.bets] == ["high", "less:n"]


def test_a_bet_that_the_text_does_not_have_is_refused() -> None:
    check_offered(("high", "less"), names(FAMILIES), "art. 9")
    with pytest.raises(ValueError, match=r"bets_offered: art\. 9 has no bet 'low', it has high, pair, less"):
        check_offered(("high", "low"), names(FAMILIES), "art. 9")
