"""Duties by the clock, watched beside a game: fan-tan with an hourly change and a last round before closing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from helpers import START

from protocols.contract.events import (
    BallChanged,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    DealerRelieved,
    DeviceOnline,
    Event,
    EventsMissed,
    TableClosed,
)
from protocols.contract.topics import Envelope
from rules.engine.duties import Duty, LastRound, closing_time, watched
from rules.engine.ruleset import Noted, Resolved, Ruleset, Suspended, judge
from rules.facts import facts_of
from rules.macau.fantan import Fantan, FantanOptions

DUTIES = (
    Duty("ball_change", "art. 1(20)", (BallChanged,)),
    Duty("dealer_relief", "art. 1(36)", (DealerRelieved,)),
    LastRound("last_throw", "art. 4(13)c", timedelta(minutes=5)),
)
ROUND: tuple[Event, ...] = (ButtonsSeparated(), BetsOpened(), BetsClosed(), ButtonsCounted(7))


class ClosingOptions(FantanOptions, frozen=True):
    """Fan-tan of a house that closes."""

    closes_at: str = ""


class Table:
    """A table whose clock the test moves."""

    def __init__(self, closes_at: str = "") -> None:
        self.ruleset: Ruleset[Any] = watched(Fantan, DUTIES)(ClosingOptions(closes_at=closes_at))
        self.state = self.ruleset.start("t-1")
        self.noted: list[tuple[str, dict[str, Any]]] = []
        self.verdicts: list[object] = []
        self._number = 0

    def at(self, minutes: float, *events: Event) -> None:
        for event in events:
            self._number += 1
            seen = Envelope(f"e:t-1:{self._number}", "s", START + timedelta(minutes=minutes), event)
            self.state, verdicts = judge(self.ruleset, self.state, seen)
            self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=self.ruleset.State)
            self.verdicts += verdicts
            self.noted += [
                (one.irregularity.code, one.irregularity.reason.values) for one in verdicts if isinstance(one, Noted)
            ]

    def due(self) -> dict[str, float]:
        """By duty, in how many minutes from the start it is due."""
        shown = facts_of("macau.fantan", msgspec.to_builtins(self.ruleset.view(self.state).detail))
        return {one.code: (one.at - START).total_seconds() / 60 for one in shown.duties if one.at is not None}


def test_clocks_start_with_the_first_round() -> None:
    table = Table()
    assert table.due() == {}
    table.at(0, *ROUND)
    assert table.due() == {"ball_change": 60, "dealer_relief": 60}


def test_a_round_that_begins_after_the_hour_is_noted_once() -> None:
    table = Table()
    for minutes in (0, 60, 61.5, 70):
        table.at(minutes, *ROUND)
    assert table.noted == [
        ("ball_change_late", {"duty": "ball_change", "minutes": 2}),
        ("dealer_relief_late", {"duty": "dealer_relief", "minutes": 2}),
    ]
    assert sum(isinstance(one, Resolved) for one in table.verdicts) == 4


def test_a_duty_that_was_done_is_due_an_hour_later() -> None:
    table = Table()
    table.at(0, *ROUND)
    table.at(50, BallChanged(), DealerRelieved())
    table.at(100, *ROUND)
    assert (table.noted, table.due()) == ([], {"ball_change": 110, "dealer_relief": 110})
    table.at(111, *ROUND)
    table.at(112, BallChanged(), DealerRelieved())
    table.at(173, *ROUND)
    assert [code for code, _ in table.noted] == ["ball_change_late", "dealer_relief_late"] * 2


def test_a_duty_that_is_told_late_was_done_when_it_happened_and_moves_no_clock_back() -> None:
    table = Table()
    table.at(0, *ROUND)
    table.at(50, BallChanged())
    table.at(55, BallChanged(overtaken=900, age_ms=20 * 60_000))
    assert table.due()["ball_change"] == 110
    table.at(100, BallChanged(overtaken=900, age_ms=20 * 60_000))
    assert table.due()["ball_change"] == 140


def test_the_clocks_stop_when_the_table_closes() -> None:
    table = Table()
    table.at(0, *ROUND, TableClosed())
    assert table.due() == {}
    table.at(600, *ROUND)
    assert (table.noted, table.due()["ball_change"]) == ([], 660)


def test_what_is_done_before_the_table_opens_starts_no_clock() -> None:
    table = Table()
    table.at(0, BallChanged(), DealerRelieved())
    assert table.due() == {}
    table.at(300, *ROUND)
    assert (table.noted, table.due()) == ([], {"ball_change": 360, "dealer_relief": 360})


@pytest.mark.parametrize("loss", [EventsMissed(3), DeviceOnline(continuous=False)])
def test_a_duty_may_have_been_done_among_lost_events(loss: Event) -> None:
    table = Table()
    table.at(0, *ROUND)
    table.at(50, loss)
    table.at(100, *ROUND)
    table.at(111, *ROUND)
    assert table.noted[0] == ("ball_change_late", {"duty": "ball_change", "minutes": 1})


def test_a_device_that_comes_back_whole_moves_no_clock() -> None:
    table = Table()
    table.at(0, *ROUND)
    table.at(50, DeviceOnline(continuous=True))
    assert table.due()["ball_change"] == 60


def test_the_last_round_begins_before_closing_and_the_next_day_is_a_new_one() -> None:
    closing = (START + timedelta(minutes=90)).strftime("%H:%M")
    table = Table(closing)
    table.at(0, *ROUND)
    assert table.due()["last_throw"] == 85
    table.at(84, BallChanged(), DealerRelieved(), *ROUND)
    assert table.noted == []
    table.at(86, *ROUND)
    table.at(95, *ROUND)
    assert table.noted == [("last_throw_late", {"minutes": 1})]
    table.at(96, TableClosed())
    table.at(86 + 1440, *ROUND)
    assert table.noted == [("last_throw_late", {"minutes": 1})] * 2


def test_a_house_that_names_no_closing_time_has_no_last_round() -> None:
    table = Table()
    table.at(0, *ROUND)
    assert "last_throw" not in table.due()


@pytest.mark.parametrize("text", ["24:00", "3", "03:30:00", "soon"])
def test_a_closing_time_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r'closes_at: a time of day in UTC, as in "03:30"'):
        closing_time(text)


def test_a_late_event_puts_the_game_in_doubt_as_without_duties() -> None:
    table = Table()
    table.at(0, ButtonsSeparated(), BetsOpened(), BetsClosed(), ButtonsCounted(7, overtaken=900))
    assert isinstance(table.verdicts[-1], Suspended)


def test_the_game_says_the_same_with_and_without_its_duties() -> None:
    table, bare = Table(), Fantan(ClosingOptions())
    state = bare.start("t-1")
    said: list[object] = []
    for number, event in enumerate(ROUND, 1):
        table.at(0, event)
        state, verdicts = judge(bare, state, Envelope(f"e:t-1:{number}", "s", datetime(2026, 1, 1, tzinfo=UTC), event))
        said += verdicts
    assert [type(one) for one in table.verdicts] == [type(one) for one in said]
    assert (table.ruleset.id, table.ruleset.bets()) == (bare.id, bare.bets())
