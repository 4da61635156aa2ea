"""Gaming machines of Angola: Decreto Executivo 261/22, article 17, on the events of a machine; sums by hand."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from helpers import START, house_net
from msgspec.structs import replace

from protocols.contract.events import (
    DeviceOnline,
    Event,
    EventsMissed,
    JackpotPaid,
    JackpotWon,
    MachineApproved,
    MachineIdentified,
    MachineMeters,
    MachineUnreliable,
    RoundVoided,
    TableClosed,
    TableOpened,
)
from protocols.contract.results import Irregularity, Noted, Resolved, Result, Suspended, Verdict, Voided
from protocols.contract.topics import Envelope
from rules.angola.gaming_machines import GamingMachines, HouseMachineOptions, MachineState
from rules.engine.ruleset import BadOption, judge, options_from

LAW = "angola.gaming-machines"
LUCKY = MachineIdentified(serial="1", game="SI", paytable="LUCKY", return_bp=9000, credit=1, max_bet=500)
FIRST = {"coin_in": 1000, "coin_out": 900, "jackpot": 0, "drop": 500, "games_played": 100}


class Floor:
    """One machine and what the rules say of it."""

    def __init__(self, **options: Any) -> None:
        self.game = GamingMachines(HouseMachineOptions(**options))
        self.state: MachineState = self.game.start("m-1")
        self.said: list[Verdict] = []
        self.meters = dict(FIRST)
        self.at = START
        self._count = 0

    def tell(self, *events: Event, device: str = "egm-1") -> "Floor":
        for event in events:
            self._count += 1
            self.at += timedelta(seconds=5)
            source = f"felt/1/site/table/m-1/device/{device}"
            seen = Envelope(f"e{self._count}", source, self.at, event, self._count)
            self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=MachineState)
            self.state, verdicts = judge(self.game, self.state, seen)
            self.said += verdicts
        return self

    def read(self, **steps: int) -> "Floor":
        """The next reading: each meter advances so far."""
        self.meters |= {name: self.meters.get(name, 0) + step for name, step in steps.items()}
        return self.tell(MachineMeters(dict(self.meters)))

    def begin(self) -> "Floor":
        return self.tell(LUCKY).read()

    @property
    def phase(self) -> str:
        return self.game.view(self.state).phase

    @property
    def waits(self) -> list[str]:
        return [one.code for one in self.state.doubts]

    @property
    def noted(self) -> list[tuple[str, str]]:
        """All irregularities so far, of the open round too, with their paragraphs."""
        of_round = self.state.round.irregularities if self.state.round is not None else ()
        alone = [one.irregularity for one in self.said if isinstance(one, Noted)]
        ended = [note for result in self.results for note in result.irregularities]
        return [(one.code, paragraph(one)) for one in (*alone, *ended, *of_round)]

    @property
    def results(self) -> list[Result]:
        return [one.result for one in self.said if isinstance(one, Resolved | Voided)]


def paragraph(one: Irregularity) -> str:
    return one.law.rpartition("art. ")[2]


def approved(*names: str) -> Iterable[Event]:
    return [MachineApproved(by=name) for name in names]


@pytest.mark.article("17(10)")
def test_a_period_counts_from_the_first_reading_to_the_closing() -> None:
    floor = Floor().begin().read(coin_in=400, coin_out=250, drop=100, games_played=40)
    floor.read(coin_in=100, jackpot=60, games_played=10).tell(TableClosed())
    (result,) = floor.results
    assert result.void is None
    assert result.outcome["counted"] == {
        "bets": 500,
        "prizes": 250,
        "by_hand": 60,
        "jackpots": 0,
        "takings": 100,
        "games": 50,
    }
    assert house_net(result) == 500 - 250 - 60
    assert result.evidence == ("e2", "e5", "e4")
    floor.read(coin_in=7, games_played=1)
    assert floor.phase == "idle", "no period begins while the table is closed"
    floor.tell(TableOpened(by="ana")).read(coin_in=3, games_played=1).tell(TableClosed(by="ana"))
    assert floor.results[1].outcome["counted"]["bets"] == 10, "the last game before the closing is of the next period"


@pytest.mark.article("17(10)")
def test_another_day_begins_another_period_without_a_gap() -> None:
    floor = Floor().begin().read(coin_in=50, games_played=5)
    floor.at += timedelta(days=1)
    floor.read(coin_in=30, games_played=3).tell(TableClosed())
    assert [one.outcome["counted"]["bets"] for one in floor.results] == [50, 30]
    assert [one.round.split(":")[1:] for one in floor.results] == [["2026-11-20", "1"], ["2026-11-21", "1"]]


@pytest.mark.article("17(10)")
@pytest.mark.parametrize("missing", ["coin_in", "coin_out", "drop"])
def test_a_machine_without_one_of_the_three_meters_is_not_opened(missing: str) -> None:
    floor = Floor()
    del floor.meters[missing]
    floor.begin().read()
    assert floor.phase == "idle"
    assert floor.noted == [("meter_missing", "17(10)")]


@pytest.mark.article("17(10)")
@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ({"coin_in": -1}, "meters_back"),
        ({"drop": -1}, "meters_back"),
        ({"games_played": -1}, "meters_back"),
        ({"coin_in": -2000}, "meters_back"),
        ({"coin_in": 10**9 + 1}, "meters_jumped"),
        ({"coin_out": 10**9 + 1}, "meters_jumped"),
        ({"coin_in": 1001, "games_played": 1}, "meters_jumped"),
        ({"games_played": 101}, "meters_stuck"),
        ({"coin_in": 10**9}, "meters_jumped"),
        ({"coin_in": 1000, "games_played": 1}, ""),
        ({"coin_out": 10**9}, ""),
        ({"games_played": 100}, ""),
    ],
)
def test_a_meter_that_falls_jumps_or_stands_still_suspends_the_machine(steps: dict[str, int], code: str) -> None:
    floor = Floor(largest_bet=500, largest_step=10**9, free_games=100).begin().read(**steps)
    assert floor.phase == ("suspended" if code else "betting")
    assert floor.waits == ([code] if code else [])
    assert floor.noted == ([(code, "17(10)")] if code else [])


@pytest.mark.article("17(10)")
def test_games_without_a_bet_are_added_up_until_there_is_one() -> None:
    floor = Floor(free_games=100).begin().read(games_played=60).read(games_played=40).read(coin_in=1, games_played=1)
    assert floor.phase == "betting"
    assert floor.read(games_played=60).read(games_played=41).waits == ["meters_stuck"]


@pytest.mark.article("17(10)")
@pytest.mark.parametrize(("name", "unit"), [("coin_in", 5), ("games_played", 1)])
def test_a_meter_of_eight_digits_wraps_around(name: str, unit: int) -> None:
    floor = Floor()
    floor.meters[name] = (10**8 - 1) * unit
    floor.tell(replace(LUCKY, credit=5)).read()
    floor.meters[name] = 2 * unit
    floor.read(coin_in=0 if name == "coin_in" else 5).tell(TableClosed())
    (result,) = floor.results
    assert floor.noted == []
    assert result.outcome["counted"]["bets" if name == "coin_in" else "games"] == 3 * unit


@pytest.mark.article("17(10)")
def test_a_fall_by_more_than_can_be_played_meanwhile_is_no_wrap() -> None:
    floor = Floor()
    floor.meters["coin_in"] = 10**8 - 1
    floor.begin()
    floor.meters["coin_in"] = 10**7
    assert floor.read().waits == ["meters_back"]


@pytest.mark.article("17(10)", "17(8)")
@pytest.mark.parametrize(
    ("why", "code", "law"),
    [
        ("cleared", "meters_cleared", "17(10)"),
        ("memory", "memory_failed", "17(10)"),
        ("backwards", "meters_back", "17(10)"),
        ("program", "program_failed", "17(8)"),
    ],
)
def test_what_the_machine_says_of_its_memory_and_program_suspends_it(why: Any, code: str, law: str) -> None:
    floor = Floor().begin().tell(MachineUnreliable(why=why))
    assert (floor.phase, floor.noted) == ("suspended", [(code, law)])
    (waits,) = [one for one in floor.said if isinstance(one, Suspended)]
    assert (waits.reason.code, waits.remedy.code) == (code, "do_approve_machine")


@pytest.mark.article("17(10)", "17(15)")
def test_a_cleared_memory_is_approved_by_two_supervisors_and_counts_on_from_the_new_meters() -> None:
    floor = Floor().begin().read(coin_in=200, coin_out=100, games_played=20)
    floor.tell(MachineUnreliable(why="cleared"))
    floor.meters = dict.fromkeys(FIRST, 0)
    floor.read()
    assert floor.phase == "suspended"
    floor.tell(*approved("ana", "ana"))
    assert floor.phase == "suspended", "one person is not two"
    floor.tell(*approved("rui"))
    assert floor.phase == "betting"
    floor.read(coin_in=30, coin_out=10, games_played=3).tell(TableClosed())
    (result,) = floor.results
    assert (result.outcome["counted"]["bets"], result.outcome["counted"]["prizes"]) == (230, 110)
    assert [one.code for one in result.irregularities] == ["meters_cleared", "machine_approved", "meters_anew"]
    anew = result.irregularities[-1].reason.values
    assert (anew["before"], anew["now"]) == (1200, 0)


@pytest.mark.article("17(10)")
@pytest.mark.parametrize(
    ("first", "other"), [("ana", " Ana"), ("openid:Ana:7", "openid:Ana B:7"), ("ana", "openid:Ana:7")]
)
def test_two_names_of_one_person_approve_nothing(first: str, other: str) -> None:
    floor = Floor().begin().tell(MachineUnreliable(why="cleared"), *approved(first, other))
    assert floor.phase == "suspended"


def test_a_memory_that_is_cleared_once_more_after_the_approval_waits_again() -> None:
    floor = Floor().begin().tell(MachineUnreliable(why="cleared"), *approved("ana", "rui"))
    floor.meters = dict.fromkeys(FIRST, 0)
    assert floor.read().read(coin_in=5, games_played=1).phase == "betting", "the approved reset was read later"
    floor.meters["coin_in"] = 2
    assert floor.read().waits == ["meters_back"]


@pytest.mark.article("17(10)")
def test_a_jump_that_was_approved_is_not_counted() -> None:
    floor = Floor().begin().read(coin_in=10**9 + 1)
    floor.tell(*approved("ana", "rui")).read(coin_in=5, games_played=1).tell(TableClosed())
    assert floor.results[0].outcome["counted"]["bets"] == 5


@pytest.mark.article("17(10)")
def test_a_suspended_machine_that_is_played_is_noted_once() -> None:
    floor = Floor().begin().tell(MachineUnreliable(why="program"))
    floor.read().read(coin_in=5, games_played=1).read(coin_in=5, games_played=1)
    assert [code for code, _ in floor.noted] == ["program_failed", "played_while_closed"]
    floor.tell(*approved("ana", "rui")).read(coin_in=1).tell(TableClosed())
    assert floor.results[0].outcome["counted"]["bets"] == 11, "its meters went on: all of it is counted"


@pytest.mark.article("17(8)")
@pytest.mark.parametrize(
    "change",
    [
        {"serial": "2"},
        {"game": "SX"},
        {"paytable": "LUCKY2"},
        {"return_bp": 9100},
        {"credit": 5},
        {"max_bet": 600},
        {"options": "0001"},
        {"signature": "beef"},
    ],
)
def test_each_changed_characteristic_waits_for_two_supervisors(change: dict[str, Any]) -> None:
    other = replace(LUCKY, **change)
    floor = Floor().begin().tell(LUCKY).tell(other)
    assert (floor.phase, floor.noted) == ("suspended", [("machine_changed", "17(8)")])
    assert floor.state.doubts[0].values == {"names": next(iter(change))}
    floor.tell(*approved("ana"), replace(other, options="ff"), *approved("rui"))
    assert floor.phase == "suspended", "what the first one approved is not what it is now"
    floor.tell(*approved("ana"))
    assert floor.phase == "betting"
    assert floor.tell(replace(other, options="ff")).phase == "betting"
    assert floor.tell(LUCKY).phase == "suspended", "the old values are not the approved ones any more"


@pytest.mark.article("17(8)")
def test_what_differs_from_the_configuration_is_approved_by_nobody() -> None:
    wrong = replace(LUCKY, paytable="X", differs=("paytable",))
    floor = Floor().begin().tell(wrong, *approved("ana", "rui"))
    assert floor.phase == "suspended"
    assert ("approval_refused", "17(8)") in floor.noted
    floor.tell(LUCKY)
    assert floor.phase == "suspended", "that it was changed back two people look at"
    assert floor.tell(*approved("ana", "rui")).phase == "betting"


@pytest.mark.article("17(8)")
def test_a_machine_that_does_not_say_what_it_is_is_noted() -> None:
    assert Floor().read().noted == [("machine_unknown", "17(8)")]


@pytest.mark.article("17(8)")
def test_a_machine_that_changed_between_two_periods_waits_from_the_beginning() -> None:
    floor = Floor().begin().tell(TableClosed(), replace(LUCKY, paytable="X"), TableOpened(by="ana")).read()
    assert (floor.phase, floor.waits) == ("suspended", ["machine_changed"])
    floor.tell(RoundVoided("equipment_fault")).read()
    assert floor.phase == "suspended", "a void period approves nothing"
    assert [one.void is not None for one in floor.results] == [False, True]


@pytest.mark.article("17(8)")
def test_an_approval_is_of_a_machine_that_waits() -> None:
    floor = Floor().begin().tell(*approved("ana"))
    assert floor.noted == [("approval_not_due", "17(8)")]
    floor.tell(MachineUnreliable(why="program"), MachineApproved(by="ana", round="m-1:2026-11-20:7"), *approved("rui"))
    assert floor.phase == "suspended"


@pytest.mark.article("17(10)")
def test_a_period_that_waits_ends_after_its_approval_where_the_table_closed_meanwhile() -> None:
    floor = Floor().begin().read(coin_in=9, games_played=1).tell(MachineUnreliable(why="program"), TableClosed())
    assert not floor.results
    floor.tell(*approved("ana", "rui"))
    assert [one.outcome["counted"]["bets"] for one in floor.results] == [9]
    assert floor.phase == "idle"


@pytest.mark.article("17(2)")
@pytest.mark.parametrize(
    ("least_return", "return_bp", "plays"), [(80, 8000, True), (80, 7999, False), (85, 8400, False)]
)
def test_a_plan_below_the_least_return_is_suspended_and_never_approved(
    least_return: int, return_bp: int, plays: bool
) -> None:
    floor = Floor(least_return=least_return).tell(replace(LUCKY, return_bp=return_bp)).read()
    assert (floor.phase == "betting") is plays
    if not plays:
        assert floor.noted == [("plan_return_low", "17(2)")]
        assert floor.tell(*approved("ana", "rui")).phase == "suspended"
        assert ("approval_refused", "17(2)") in floor.noted
        floor.tell(LUCKY, *approved("ana", "rui"))
        assert floor.phase == "betting"


@pytest.mark.article("17(2)")
def test_no_house_may_ask_for_less_than_80_percent() -> None:
    with pytest.raises(BadOption, match="least_return"):
        options_from(GamingMachines, {"least_return": 79})
    with pytest.raises(BadOption, match="no limits"):
        options_from(GamingMachines, {"limits": ["seat=1"]})


@pytest.mark.article("17(2)")
@pytest.mark.parametrize(("prizes", "low"), [(728_000, False), (727_900, True)])
def test_the_measured_return_is_low_where_chance_does_not_explain_it(prizes: int, low: bool) -> None:
    """Three deviations of 8.00 bets in a million, of at most 9 each: 3 x 8 x sqrt(9 / 999 990) is 7.2 %."""
    floor = Floor(return_games=1000, deviation=800, largest_bet=9).begin()
    floor.read(coin_in=999_990, coin_out=prizes, games_played=111_111)
    (measured,) = [floor.game.view(floor.state).detail]
    assert measured["bound_bp"] == 720
    assert measured["measured_bp"] == 10_000 * prizes // 999_990
    assert floor.noted == ([("return_low", "17(2)")] if low else [])


@pytest.mark.article("17(2)")
def test_the_measured_return_is_judged_after_so_many_games_and_then_anew() -> None:
    floor = Floor(return_games=1000, deviation=100, largest_bet=10).begin()
    floor.read(coin_in=9_990, games_played=999)
    assert "measured_bp" not in floor.game.view(floor.state).detail, "too few games to say anything"
    floor.read(coin_in=10, games_played=1)
    assert floor.noted == [("return_low", "17(2)")]
    floor.read(coin_in=10_000, coin_out=9_000, games_played=1000)
    assert floor.game.view(floor.state).detail["measured_bp"] == 9000
    assert len(floor.noted) == 1
    floor.read(coin_in=10_000, games_played=1000)
    assert len(floor.noted) == 2


@pytest.mark.article("17(2)")
def test_without_the_deviation_of_the_model_the_return_is_shown_and_not_judged() -> None:
    floor = Floor(return_games=1000).begin().read(coin_in=10_000, games_played=1000)
    assert floor.game.view(floor.state).detail["measured_bp"] == 0
    assert floor.noted == []


@pytest.mark.article("17(3)", "17(4)", "17(2)")
@pytest.mark.parametrize("level", [1, 2])
def test_a_jackpot_is_no_return_and_is_paid_by_its_pool(level: int) -> None:
    floor = Floor(return_games=1000).begin().tell(JackpotWon("hall", level, 1, 5_000))
    floor.read(coin_in=10_000, coin_out=5_000 + 8_500, games_played=1000).tell(JackpotPaid("hall", level, 1, 5_000))
    assert floor.game.view(floor.state).detail["measured_bp"] == 8500
    (result,) = floor.tell(TableClosed()).results
    assert (result.outcome["counted"]["prizes"], result.outcome["counted"]["jackpots"]) == (13_500, 5_000)
    assert house_net(result) == 10_000 - 8_500


@pytest.mark.article("17(14)", "17(15)")
def test_a_prize_paid_by_hand_is_one_payment_with_the_readings_before_and_after() -> None:
    floor = Floor().begin().read(coin_in=10, games_played=1)
    floor.tell(JackpotWon("machine", 0, amount=700)).read(jackpot=700)
    floor.tell(JackpotPaid("machine", 0, amount=700)).read(coin_in=5, games_played=1)
    floor.tell(JackpotPaid("machine", 0, amount=700))
    (prize,) = floor.state.prizes
    assert (prize.won, prize.paid) == ("e4", "e6")
    assert (prize.before["coin_in"], prize.before["jackpot"]) == (1010, 0)
    assert (prize.after["coin_in"], prize.after["jackpot"]) == (1015, 700)
    assert floor.noted == [("prize_unknown", "17(14)")], "paid twice"
    (result,) = floor.tell(TableClosed()).results
    assert result.outcome["counted"]["by_hand"] == 700
    assert {"e4", "e6"} <= set(result.evidence)


@pytest.mark.article("17(14)")
def test_a_prize_that_is_paid_in_the_next_period_is_known_there_and_counted_once() -> None:
    floor = Floor().begin().tell(JackpotWon("hall", 1, amount=50), TableClosed(), TableOpened(by="ana")).read()
    floor.tell(JackpotPaid("hall", 1, amount=50), TableClosed())
    assert [one.outcome["counted"]["jackpots"] for one in floor.results] == [50, 0]
    assert floor.noted == []


@pytest.mark.article("17(15)")
@pytest.mark.parametrize("lost", [EventsMissed(1), DeviceOnline(continuous=False)])
def test_a_loss_of_events_loses_no_bet(lost: Event) -> None:
    floor = Floor().begin().tell(lost).read(coin_in=500, games_played=50).tell(lost, TableClosed())
    assert floor.results[0].outcome["counted"]["bets"] == 500
    assert floor.noted == [("prizes_missing", "17(15)")]


@pytest.mark.article("17(15)")
def test_a_void_period_has_its_readings_and_settles_nothing() -> None:
    floor = Floor().begin().read(coin_in=500, games_played=50)
    floor.tell(RoundVoided("", "m-1:2026-11-20:9"))
    assert floor.phase == "betting", "another period was named"
    (result,) = floor.tell(RoundVoided("equipment_fault")).results
    assert result.void is not None
    assert (result.void.bets, result.settlements) == ("stand", ())
    assert result.outcome["counted"]["bets"] == 500
    floor.read(coin_in=5, games_played=1).tell(TableClosed())
    assert floor.results[1].outcome["counted"]["bets"] == 5


def test_a_second_machine_at_the_table_is_noted_and_not_counted() -> None:
    floor = Floor().begin()
    floor.tell(MachineMeters({**FIRST, "coin_in": 10}), LUCKY, MachineUnreliable(why="cleared"), device="egm-2")
    assert (floor.phase, floor.noted) == ("betting", [("another_machine", "17(10)")])


def test_many_prizes_do_not_fill_the_memory() -> None:
    floor = Floor().begin()
    for number in range(100):
        floor.tell(JackpotWon("hall", 1, amount=number + 1))
    assert len(floor.state.prizes) == 40
    (result,) = floor.tell(TableClosed()).results
    assert result.outcome["counted"]["jackpots"] == 5050
