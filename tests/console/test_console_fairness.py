"""What the console counts: each round and event once whatever is told again, and alarms that are no accident."""

import asyncio
import math
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from helpers import result_of, virtual_time
from hypothesis import given, strategies as st
from structlog.testing import capture_logs

from daemon.console.fairness import fairness, statistics
from daemon.console.fairness.charts import AMERICAN_WHEEL, DECK, RANGES, SPANS, WHEEL, Alarm, Chart, Ranges
from daemon.console.fairness.fairness import ALPHA, EACH, FLUSH, GAP, Fairness
from daemon.console.site.store import BadStore, Store
from protocols.contract.documents import Alert
from protocols.contract.events import DeviceOnline
from protocols.contract.topics import Wire

NOW = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)
TABLE = "rou-1"
SPINS = Chart(TABLE, "wheel", "wheel-1")


@contextmanager
def opened() -> Iterator[Store]:
    with TemporaryDirectory() as directory:
        store = Store(Path(directory) / "console.db")
        try:
            yield store
        finally:
            store.close()


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as one:
        yield one


def house(store: Store) -> Fairness:
    return Fairness(store, lambda: NOW)


def wire(seq: int, kind: str, seconds: float = 0.0, device: str = "wheel-1", table: str = TABLE, **more: Any) -> Wire:
    data = msgspec.Raw(msgspec.json.encode(more.pop("data", {})))
    source = f"felt/1/site/table/{table}/device/{device}"
    return Wire("1.0", f"edge-1:{table}:{seq}", source, kind, NOW + timedelta(seconds=seconds), seq, data=data, **more)


def result(number: int, outcome: dict[str, Any], table: str = TABLE, **more: Any) -> dict[str, Any]:
    game = "macau.cussec" if "faces" in outcome else "macau.roulette"
    given_ = {"round": f"{table}:2026-11-20:{number}", "ruleset": game, "options": {}, "outcome": outcome}
    return given_ | {"void": None, "supersedes": "", "evidence": []} | more


def spin(number: int, pocket: str, **more: Any) -> dict[str, Any]:
    return result(number, {"pocket": pocket}, **more)


def spins(fair: Fairness, pockets: list[str], first: int = 1) -> None:
    """So many spins of wheel-1, with the events that say so."""
    for number, pocket in enumerate(pockets, first):
        fair.on_event(TABLE, wire(number, "ball.landed", data={"pocket": pocket}))
        fair.on_result(TABLE, "resolved", result_of(spin(number, pocket, evidence=[f"edge-1:{TABLE}:{number}"])))
    fair.flush()


# ---- once, whatever comes again


def test_pockets_are_counted_for_the_wheel_that_told_them(store: Store) -> None:
    fair = house(store)
    spins(fair, ["17", "0", "17"])
    assert fair.charts(TABLE) == [SPINS]
    assert fair.counts(SPINS, "all") == {"17": 2, "0": 1}
    # A result whose event was not seen belongs to the wheel that told the last one.
    fair.on_result(TABLE, "resolved", result_of(spin(4, "5")))
    fair.flush()
    assert fair.counts(SPINS, "all") == {"17": 2, "0": 1, "5": 1}


def test_results_of_before_the_first_start_are_the_first_tellers(store: Store) -> None:
    """A console that starts asks for the last results, and has seen none of their events."""
    fair = house(store)
    for number, pocket in ((1, "5"), (2, "6")):
        fair.on_result(TABLE, "resolved", result_of(spin(number, pocket)))
    fair.on_event(TABLE, wire(1, "bets.opened"))
    fair.on_event(TABLE, wire(2, "bets.opened", 60))
    fair.flush()
    fair.on_result(TABLE, "resolved", result_of(spin(3, "7")))
    fair.on_event(TABLE, wire(3, "ball.landed", 70))
    fair.on_result(TABLE, "resolved", result_of(spin(4, "8", evidence=[f"edge-1:{TABLE}:3"])))
    fair.flush()
    assert fair.charts(TABLE) == [Chart(TABLE, "phase.round"), SPINS]
    assert fair.counts(SPINS, "all") == {"5": 1, "6": 1, "7": 1, "8": 1}
    assert threshold(fair, SPINS) == pytest.approx(math.log(2 / ALPHA))  # the one test that was ever begun
    assert threshold(house(store), SPINS) == pytest.approx(math.log(2 / ALPHA))
    for number in (1, 3):
        name = f"{TABLE}:2026-11-20:{number}"
        fair.on_result(TABLE, "corrected", result_of(spin(number, "9", supersedes=name)))
    fair.flush()
    assert fair.counts(SPINS, "all") == {"6": 1, "8": 1, "9": 2}
    assert len(looked(fair)) == 0


def test_shoes_of_before_the_first_start_are_the_first_tellers_too(store: Store) -> None:
    fair = house(store)
    fair.on_result("bac-1", "resolved", result_of(coup(1, ["9D", "KC"])))
    fair.on_event("bac-1", wire(1, "card.drawn", table="bac-1", device="shoe-1"))
    fair.on_result("bac-1", "resolved", result_of(coup(2, ["2C"], evidence=["edge-1:bac-1:1"])))
    fair.flush()
    test = fair.test(Chart("bac-1", "cards", "shoe-1"))
    assert test is not None
    assert test.n == 3
    fair.on_result("bac-1", "corrected", result_of(coup(1, ["9D", "QC"], supersedes="bac-1:2026-11-20:1:1")))
    fair.flush()
    (shoe,) = fair.shoes("bac-1")
    assert (shoe.counts[DECK.index("KC")], shoe.drawn) == (0, 3)
    assert fair.counts(Chart("bac-1", "cards", "shoe-1"), "all") == {"9D": 1, "QC": 1, "2C": 1}


def test_a_correction_takes_back_and_a_void_counts_nothing(store: Store) -> None:
    fair = house(store)
    spins(fair, ["17"])
    name = f"{TABLE}:2026-11-20:1"
    void = {"reason": {"code": "declared_for", "values": {"text": "an object on the wheel"}}, "bets": "stand"}
    fair.on_result(TABLE, "corrected", result_of(spin(1, "17", supersedes=name) | {"outcome": {}, "void": void}))
    fair.on_result(TABLE, "voided", result_of(result(2, {}, void=void)))
    fair.flush()
    assert fair.counts(SPINS, "all") == {}
    fair.on_result(
        TABLE, "resolved", result_of(spin(1, "17", evidence=[f"edge-1:{TABLE}:1"]))
    )  # told again, after all that
    fair.flush()
    assert fair.counts(SPINS, "all") == {}


def test_superseded_result_may_arrive_after_its_correction(store: Store) -> None:
    fair = house(store)
    fair.on_result(TABLE, "corrected", result_of(spin(1, "5", supersedes=f"{TABLE}:2026-11-20:1")))
    fair.on_result(TABLE, "resolved", result_of(spin(1, "17")))
    fair.flush()
    assert fair.counts(Chart(TABLE, "wheel"), "all") == {"5": 1}


def test_the_first_of_two_corrections_told_again_changes_nothing(store: Store) -> None:
    fair = house(store)
    first = spin(1, "5", supersedes=f"{TABLE}:2026-11-20:1")
    for one in (first, spin(1, "6", supersedes=f"{TABLE}:2026-11-20:1"), first):
        fair.on_result(TABLE, "corrected", result_of(one))
    fair.flush()
    assert fair.counts(Chart(TABLE, "wheel"), "all") == {"6": 1}


ending = st.tuples(st.sampled_from(["resolved", "voided"]), st.sampled_from(WHEEL[:5]))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("end"), ending),
        st.tuples(st.just("correct"), st.tuples(st.integers(0, 3), st.sampled_from(["", *WHEEL[:5]]))),
        st.tuples(st.just("again"), st.integers(0, 20)),
        st.tuples(st.just("once more"), st.integers(0, 20)),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("crash"), st.none()),
    ),
    max_size=60,
)


@given(actions)
def test_each_round_counts_once_as_it_stands_at_last(script: list[tuple[str, Any]]) -> None:
    """Rounds end, are corrected and told again from any point on; the process ends well or is killed."""
    with opened() as store:
        fair = house(store)
        told: list[tuple[str, dict[str, Any]]] = []
        safe = 0  # so many were written down
        stands: dict[int, str] = {}
        void = {"reason": {"code": "x"}, "bets": "returned"}
        for act, what in script:
            match act:
                case "end":
                    kind, pocket = what
                    number = len(stands) + 1
                    stands[number] = pocket if kind == "resolved" else ""
                    one = spin(number, pocket) if kind == "resolved" else result(number, {}, void=void)
                    told.append((kind, one))
                    fair.on_result(TABLE, told[-1][0], result_of(told[-1][1]))
                case "correct" if stands:
                    back, pocket = what
                    number = max(1, len(stands) - back)
                    stands[number] = pocket
                    outcome = {"pocket": pocket} if pocket else {}
                    # No two corrections of a round are the same: their evidence grows.
                    more: dict[str, Any] = {
                        "void": None if pocket else void,
                        "evidence": [f"edge-1:{TABLE}:{1000 + len(told)}"],
                    }
                    one = result(number, outcome, supersedes=f"{TABLE}:2026-11-20:{number}", **more)
                    told.append(("corrected", one))
                    fair.on_result(TABLE, told[-1][0], result_of(told[-1][1]))
                case "again":
                    for one_ in told[max(0, len(told) - what) :]:
                        fair.on_result(TABLE, one_[0], result_of(one_[1]))
                case "once more" if told:
                    kind, one = told[what % len(told)]
                    fair.on_result(TABLE, kind, result_of(one))
                case "flush":
                    fair.flush()
                    safe = len(told)
                case "restart":
                    fair.flush()
                    safe = len(told)
                    fair = house(store)
                case "crash":
                    fair = house(store)
                    for one_ in told[safe:]:  # who was away asks for what it missed
                        fair.on_result(TABLE, one_[0], result_of(one_[1]))
        fair.flush()
        expected = Counter(pocket for pocket in stands.values() if pocket)
        assert fair.counts(Chart(TABLE, "wheel"), "all") == dict(expected)


@given(st.lists(st.integers(1, 40), max_size=80), st.sets(st.integers(0, 80)), st.sets(st.integers(0, 80)))
def test_each_event_counts_once_in_whatever_order(seqs: list[int], flushes: set[int], crashes: set[int]) -> None:
    with opened() as store:
        fair = house(store)
        waiting: list[int] = []
        for step, seq in enumerate(seqs):
            fair.on_event(TABLE, wire(seq, "card.unreadable", device="shoe-1"))
            waiting.append(seq)
            if step in flushes:
                fair.flush()
                waiting.clear()
            if step in crashes:
                fair = house(store)
                for lost in waiting:
                    fair.on_event(TABLE, wire(lost, "card.unreadable", device="shoe-1"))
        fair.flush()
        found = fair.counts(Chart(TABLE, "reads", "shoe-1"), "all")
        assert found == ({"misread": len(set(seqs))} if seqs else {})


def test_a_new_journal_counts_anew(store: Store) -> None:
    fair = house(store)
    for journal in ("one", "two", "one"):
        fair.on_event(TABLE, wire(1, "card.unreadable", device="shoe-1", journal=journal))
    fair.flush()
    assert fair.counts(Chart(TABLE, "reads", "shoe-1"), "all") == {"misread": 2}


@given(st.lists(st.integers(1, 60), max_size=120), st.sets(st.integers(0, 120)))
def test_ranges_know_what_they_took(numbers: list[int], kept: set[int]) -> None:
    ranges, taken = Ranges(), set[int]()
    for step, number in enumerate(numbers):
        if step in kept:
            ranges = Ranges(str(ranges))
        before = max(taken, default=0)
        beyond = ranges.take(number)
        assert (beyond is None) == (number in taken)
        if beyond is not None and taken:
            assert beyond == number - before
        taken.add(number)
    spans = [tuple(map(int, one.split("-"))) for one in str(ranges).split(",") if one]
    assert [n for first, last in spans for n in range(first, last + 1)] == sorted(taken)
    assert all(b[0] > a[1] + 1 for a, b in pairwise(spans))


def test_ranges_are_bounded_and_give_up_the_oldest_gap() -> None:
    ranges = Ranges()
    for number in range(3, 3 * RANGES + 30, 3):
        assert ranges.take(number) is not None
    assert len(str(ranges).split(",")) == RANGES
    assert ranges.take(4) is None
    assert ranges.take(1) is None
    assert ranges.take(3 * RANGES + 25) is not None


class Breaking:
    """A store whose disk is full while `broken`."""

    def __init__(self, store: Store) -> None:
        self.store, self.db, self.broken = store, store.db, False
        self.has = store.has

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        with self.store.write() as db:
            yield db
            if self.broken:
                db.execute("INSERT INTO nowhere VALUES (1)")


def test_results_wait_for_a_full_disk_and_count_once(store: Store) -> None:
    breaking = Breaking(store)
    fair = Fairness(breaking, lambda: NOW)  # type: ignore[arg-type]
    spins(fair, ["17"])
    fair.on_event(TABLE, wire(2, "bets.opened"))
    fair.flush()
    breaking.broken = True
    fair.on_event(TABLE, wire(3, "bets.closed", 12))
    for _ in range(2):
        fair.on_result(TABLE, "resolved", result_of(spin(2, "5")))
        with pytest.raises(BadStore):
            fair.flush()
    assert fair.counts(SPINS, "all") == {"17": 1}
    breaking.broken = False
    fair.flush()
    assert fair.counts(SPINS, "all") == {"17": 1, "5": 1}
    assert sum(fair.times(Chart(TABLE, "phase.betting"), "all").values()) == 1


def test_waiting_queue_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "WAITING", 3)
    fair = house(store)
    for number in range(1, 10):
        fair.on_result(TABLE, "resolved", result_of(spin(number, "5")))
    fair.flush()
    assert fair.counts(Chart(TABLE, "wheel"), "all") == {"5": 3}


def test_rounds_too_old_to_come_again_are_forgotten_and_stay_counted(store: Store) -> None:
    fair = Fairness(store, lambda: NOW)
    fair.on_result(TABLE, "resolved", result_of(spin(1, "5")))
    fair.flush()
    later = Fairness(store, lambda: NOW + timedelta(days=200))
    new = {"round": f"{TABLE}:2027-06-08:1"}
    later.on_result(TABLE, "resolved", result_of(spin(1, "6") | new))
    later.flush()  # the newest round says that the clock is right
    again = Fairness(store, lambda: NOW + timedelta(days=200))
    again.on_result(TABLE, "resolved", result_of(spin(2, "7") | {"round": f"{TABLE}:2027-06-08:2"}))
    again.flush()
    again.on_result(TABLE, "resolved", result_of(spin(1, "5")))
    again.flush()
    assert again.counts(Chart(TABLE, "wheel"), "all") == {"5": 1, "6": 1, "7": 1}
    assert store.db.execute("SELECT COUNT(*) FROM fair_round").fetchone() == (2,)


def test_a_clock_that_was_set_wrong_forgets_nothing(store: Store) -> None:
    spins(house(store), ["5"])
    wrong = Fairness(store, lambda: NOW + timedelta(days=2000))
    wrong.on_result(TABLE, "resolved", result_of(spin(1, "5")))
    wrong.flush()
    assert wrong.counts(SPINS, "all") == {"5": 1}


def test_documents_that_are_no_results_are_left_out(store: Store) -> None:
    fair = house(store)
    fair.on_result(TABLE, "resolved", result_of(spin(1, "99")))
    fair.on_result(TABLE, "resolved", result_of(result(3, {"faces": [1, 7, 6]})))
    fair.on_result(TABLE, "resolved", result_of(result(4, {"hands": {"player": ["ZZ"], "banker": []}})))
    fair.on_event(TABLE, wire(1, "dice.read", data={"faces": "many"}))
    fair.flush()
    assert fair.charts(TABLE) == []


# ---- spans and lives


def test_spans_by_day_and_since_the_service(store: Store) -> None:
    fair = house(store)
    for number, day in enumerate(("2026-11-20", "2026-11-15", "2026-10-25", "2026-01-01")):
        fair.on_result(TABLE, "resolved", result_of(spin(number, "5") | {"round": f"{TABLE}:{day}:{number}"}))
    fair.flush()
    chart = Chart(TABLE, "wheel")
    counted = {span: sum(fair.counts(chart, span).values()) for span in SPANS}
    assert counted == {"today": 1, "week": 2, "month": 3, "all": 4, "service": 4}
    fair.serviced(TABLE, "", "levelled")
    fair.on_result(TABLE, "resolved", result_of(spin(9, "5")))
    fair.flush()
    counted = {span: sum(fair.counts(chart, span).values()) for span in SPANS}
    assert counted == {"today": 2, "week": 3, "month": 4, "all": 5, "service": 1}
    assert fair.service(TABLE, "") == (NOW, "levelled")


def test_another_serial_number_is_another_wheel(store: Store) -> None:
    fair = house(store)
    for seq, serial in enumerate(("A1", "A1", "", "B2"), 1):
        fair.on_event(TABLE, wire(seq, "device.online"), DeviceOnline(continuous=True, serial=serial))
        spins(fair, ["5"], first=100 + seq)
    assert sum(fair.counts(SPINS, "all").values()) == 4
    assert sum(fair.counts(SPINS, "service").values()) == 1
    found = fair.service(TABLE, "wheel-1")
    assert found is not None
    assert found[1] == "serial"


# ---- times


def test_phases_are_measured_between_events_as_they_happen(store: Store) -> None:
    fair = house(store)
    script = [
        ("bets.opened", 0),
        ("bets.closed", 20),
        ("ball.launched", 22),
        ("ball.landed", 40),
        ("round.paid", 50),
        ("bets.opened", 60),
        ("round.voided", 70),
        ("bets.closed", 75),  # of a void round
        ("bets.opened", 80),
        ("bets.closed", 5000),  # a break
    ]
    for seq, (kind, seconds) in enumerate(script, 1):
        fair.on_event(TABLE, wire(seq, kind, seconds))
    fair.flush()
    found = {chart.name: [statistics.duration(one) for one in fair.times(chart, "all")] for chart in fair.charts(TABLE)}
    expected = {"phase.betting": 20, "phase.spin": 18, "phase.play": 30, "phase.round": 60}
    assert found == {name: [pytest.approx(seconds, rel=0.021)] for name, seconds in expected.items()}


def test_no_time_is_measured_over_a_gap_or_from_what_is_told_late(store: Store) -> None:
    fair = house(store)
    fair.on_event(TABLE, wire(1, "bets.opened", 0))
    fair.on_event(TABLE, wire(1 + GAP + 1, "bets.closed", 20))
    fair.on_event(TABLE, wire(500, "bets.opened", 30, replay=True))
    fair.on_event(TABLE, wire(501, "bets.closed", 50))
    fair.on_event(TABLE, wire(502, "bets.opened", 60))
    fair.on_event(TABLE, wire(503, "bets.closed", 70, replay=True))
    fair.on_event(TABLE, wire(504, "bets.opened", 80, replay=True))
    fair.on_event(TABLE, wire(505, "bets.closed", 90))
    fair.flush()
    assert fair.charts(TABLE) == []


def test_old_times_become_months_and_then_nothing(store: Store) -> None:
    chart = Chart(TABLE, "phase.betting")

    def rows() -> list[str]:
        found = store.db.execute("SELECT day FROM fair_count WHERE chart = 'phase.betting' ORDER BY day")
        return [day for (day,) in found]

    fair = house(store)
    spins(fair, ["5"])  # the newest round
    seq = 10
    for days in (500, 60, 58, 20):
        for kind, seconds in (("bets.opened", 0), ("bets.closed", 20)):
            seq += 1
            fair.on_event(TABLE, wire(seq, kind, seconds - 86400 * days))
    fair.flush()
    assert len(rows()) == 4
    before = sum(fair.times(chart, "all").values())
    again = house(store)
    spins(again, ["5"], first=100)
    assert rows() == ["2026-09-01", "2026-10-31"]
    assert before - 1 == sum(again.times(chart, "all").values())
    assert sum(again.times(chart, "month").values()) == 1


def test_shuffles_take_time_and_fail(store: Store) -> None:
    fair = house(store)
    for seq, (kind, seconds) in enumerate(
        [("shuffle.started", 0), ("shuffle.finished", 90), ("shuffle.started", 100), ("shuffle.failed", 130)], 1
    ):
        fair.on_event(TABLE, wire(seq, kind, seconds, device="shuffler-1"))
    fair.flush()
    assert fair.counts(Chart(TABLE, "shuffles", "shuffler-1"), "all") == {"finished": 1, "failed": 1}
    (one,) = fair.times(Chart(TABLE, "shuffle", "shuffler-1"), "all")
    assert statistics.duration(one) == pytest.approx(90, rel=0.021)


def test_a_shuffler_that_grows_slow_is_told(store: Store) -> None:
    fair = house(store)
    seq = 0
    for number in range(120):
        begun = (number - 120) * 40_000.0  # two a day
        for kind, later in (("shuffle.started", 0.0), ("shuffle.finished", 90.0 if number < 104 else 130.0)):
            seq += 1
            fair.on_event(TABLE, wire(seq, kind, begun + later, device="shuffler-1"))
    fair.flush()
    assert fair.alarms() == []  # too few in this week
    for number in range(8):
        for kind, later in (("shuffle.started", 0.0), ("shuffle.finished", 130.0)):
            seq += 1
            fair.on_event(TABLE, wire(seq, kind, number * 200 + later, device="shuffler-1"))
    fair.flush()
    (alarm,) = fair.alarms()
    assert (alarm.code, alarm.device) == ("fairness.slow_shuffle", "shuffler-1")
    assert int(alarm.values["usual"]) == pytest.approx(90, abs=2)
    assert int(alarm.values["now"]) == pytest.approx(130, abs=3)


def shuffled(fair: Fairness, first: int, times: list[float], since: float) -> None:
    """So many shuffles of shuffler-1, one every 300 s."""
    for number, seconds in enumerate(times):
        for step, kind, later in ((0, "shuffle.started", 0.0), (1, "shuffle.finished", seconds)):
            at = since + 300 * number + later
            fair.on_event(TABLE, wire(first + 2 * number + step, kind, at, device="shuffler-1"))
    fair.flush()


def test_the_week_of_a_serviced_shuffler_begins_with_its_service(store: Store) -> None:
    fair = house(store)
    shuffled(fair, 1, [60.0] * 150, -20 * 86_400)
    shuffled(fair, 301, [81.0] * 130, -86_400)
    assert [alarm.code for alarm in fair.alarms()] == ["fairness.slow_shuffle"]
    fair.serviced(TABLE, "shuffler-1", "a new belt")
    assert fair.alarms() == []
    shuffled(fair, 1001, [59.0] * 100, 0)
    assert fair.alarms() == []
    assert sum(fair.times(Chart(TABLE, "shuffle", "shuffler-1"), "week").values()) == 230  # the page shows them all


# ---- dice


def test_faces_are_counted_for_the_device_that_told_them_and_for_no_single_die(store: Store) -> None:
    fair = house(store)
    fair.on_event(TABLE, wire(1, "dice.read", device="shaker-1", data={"faces": [6, 1, 6]}))
    fair.on_result(TABLE, "resolved", result_of(result(1, {"faces": [1, 6, 6]}, evidence=[f"edge-1:{TABLE}:1"])))
    fair.on_result(TABLE, "resolved", result_of(result(2, {"faces": [1, 2, 3]})))  # its reading was not seen
    void = {"reason": {"code": "stacked_or_leaning"}, "bets": "may_change"}
    fair.on_result(TABLE, "voided", result_of(result(3, {"faces": [4, 4, 4], "stacked": 1}, void=void)))
    fair.flush()
    assert {chart: fair.counts(chart, "all") for chart in fair.charts(TABLE)} == {
        Chart(TABLE, "dice", "shaker-1"): {"1": 2, "2": 1, "3": 1, "6": 2},
    }


def test_a_throw_that_ends_a_round_of_many_is_no_fair_sample_of_the_dice(store: Store) -> None:
    """French bank throws again until a total of 3, 5 to 7 or 14 to 16: ones and sixes decide more often than others."""
    fair = house(store)
    decided = result_of(result(1, {"faces": [1, 1, 3], "total": 5}) | {"ruleset": "angola.french-bank"})
    fair.on_result(TABLE, "resolved", decided)
    fair.flush()
    assert fair.charts(TABLE) == []
    # All its throws are.
    facts = {"faces": [1, 1, 3], "total": 5, "shown": [2, 1, 1, 0, 1, 1]}
    fair.on_result(TABLE, "resolved", result_of(result(2, facts) | {"ruleset": "angola.french-bank"}))
    fair.flush()
    assert fair.counts(Chart(TABLE, "dice", ""), "all") == {"1": 2, "2": 1, "3": 1, "5": 1, "6": 1}
    for wrong in ([], [2, 1], [0] * 6, [3, -1, 1, 1, 1, 1]):
        other = result(3, facts | {"shown": wrong}) | {"ruleset": "angola.french-bank"}
        fair.on_result(TABLE, "resolved", result_of(other))
    fair.flush()
    assert sum(fair.counts(Chart(TABLE, "dice", ""), "all").values()) == 6


def throws(
    fair: Fairness,
    rng: random.Random,
    count: int,
    weights: list[float],
    *,
    device: str = "shaker-1",
    seen: float = 1.0,
    table: str = TABLE,
) -> None:
    """So many throws of three dice, the second loaded; `seen`: the part of them told in the order seen, not by size."""
    first = sum(fair.counts(Chart(table, "dice", device), "all").values()) // 3
    for number in range(first + 1, first + count + 1):
        faces = [rng.choices(range(1, 7), weights if die == 1 else None)[0] for die in range(3)]
        told = faces if rng.random() < seen else sorted(faces)
        fair.on_event(table, wire(number, "dice.read", device=device, table=table, data={"faces": told}))
        one = result(number, {"faces": sorted(faces)}, table, evidence=[f"edge-1:{table}:{number}"])
        fair.on_result(table, "resolved", result_of(one))
    fair.flush()


def looked(fair: Fairness) -> list[Alarm]:
    """The alarms when every chart was tested."""
    for _ in range(20):
        fair.alarms()
    return fair.alarms()


FAIR = [1.0] * 6


@pytest.mark.parametrize("seen", [0.0, 0.05, 0.3, 0.7, 1.0])
def test_fair_dice_are_not_accused_in_whatever_order_they_are_told(store: Store, seen: float) -> None:
    """What people type is neither sorted nor at random."""
    fair, rng = house(store), random.Random(2)
    for _ in range(20):
        throws(fair, rng, 40, FAIR, device="console-1", seen=seen)
        assert looked(fair) == []


@pytest.mark.parametrize(("device", "seen"), [("shaker-1", 1.0), ("shaker-1", 0.0), ("console-1", 0.3)])
def test_a_loaded_die_is_found_among_all_dice(store: Store, device: str, seen: float) -> None:
    fair = house(store)
    throws(fair, random.Random(1), 600, [1, 1, 1, 1, 1, 3], device=device, seen=seen)
    (alarm,) = looked(fair)
    assert (alarm.code, alarm.device, alarm.key) == ("fairness.dice", device, "fair.alarm_dice")
    assert (alarm.values["face"], alarm.values["due"], alarm.values["n"]) == ("6", 300, 1800)


# ---- the wheel


def test_a_fair_wheel_is_not_accused_and_a_worn_one_is(store: Store) -> None:
    fair, rng = house(store), random.Random(3)
    spins(fair, rng.choices(WHEEL, k=3000))
    assert looked(fair) == []
    worn = [1.6 if 10 <= place < 19 else 1.0 for place in range(37)]
    spins(fair, rng.choices(WHEEL, worn, k=2500), first=3001)
    (alarm,) = looked(fair)
    assert (alarm.table, alarm.device, alarm.code) == (TABLE, "wheel-1", "fairness.wheel")
    assert alarm.key == "fair.alarm_sector"
    assert abs(WHEEL.index(str(alarm.values["first"])) - 10) <= 3
    assert alarm.values["n"] == 5500


def test_a_sector_is_one_of_the_order_of_the_pockets_on_the_wheel(store: Store) -> None:
    fair, rng = house(store), random.Random(3)
    worn = [1.8 if 10 <= place < 19 else 1.0 for place in range(37)]
    for number, pocket in enumerate(rng.choices(AMERICAN_WHEEL, worn, k=2500), 1):
        fair.on_event(TABLE, wire(number, "ball.landed", data={"pocket": pocket}))
        told = spin(number, pocket, evidence=[f"edge-1:{TABLE}:{number}"], options={"order": "american"})
        fair.on_result(TABLE, "resolved", result_of(told))
    fair.flush()
    again = house(store)
    assert again.ring(TABLE) == AMERICAN_WHEEL
    for one in (fair, again):
        (alarm,) = looked(one)
        assert alarm.key == "fair.alarm_sector"
        assert abs(AMERICAN_WHEEL.index(str(alarm.values["first"])) - 10) <= 3


def test_an_alarm_stays_until_the_service_and_over_a_restart(store: Store) -> None:
    fair, rng = house(store), random.Random(4)
    spins(fair, rng.choices(WHEEL, [10.0] + [1.0] * 36, k=600))
    assert [alarm.key for alarm in looked(fair)] == ["fair.alarm_pocket"]
    spins(fair, rng.choices(WHEEL, k=4000), first=601)
    again = house(store)
    (alarm,) = looked(again)
    assert alarm.values["pocket"] == "0"
    again.serviced(TABLE, "wheel-1", "frets tightened")
    assert looked(again) == []
    spins(again, rng.choices(WHEEL, k=500), first=5001)
    assert looked(again) == []
    test = again.test(SPINS)
    assert test is not None
    assert test.n == 500
    assert not test.alarmed


def threshold(fair: Fairness, chart: Chart) -> float:
    test = fair.test(chart)
    assert test is not None
    return test.threshold


def test_each_chart_keeps_the_threshold_it_began_with(store: Store) -> None:
    fair = house(store)
    spins(fair, ["5"])
    first = threshold(fair, SPINS)
    assert first == pytest.approx(math.log(2 / ALPHA))
    for number, table in enumerate(("a", "b", "c"), 2):
        fair.on_result(table, "resolved", result_of(spin(1, "5", table=table)))
        fair.flush()
        assert threshold(fair, Chart(table, "wheel")) == pytest.approx(math.log(number * (number + 1) / ALPHA))
    again = house(store)
    assert threshold(again, SPINS) == first
    again.serviced(TABLE, "wheel-1", "levelled")
    assert threshold(again, SPINS) == pytest.approx(math.log(30 / ALPHA))  # what it will have with its first spin
    spins(again, ["5"], first=2)
    again.on_result("d", "resolved", result_of(spin(1, "5", table="d")))
    again.flush()
    assert threshold(again, SPINS) == pytest.approx(math.log(30 / ALPHA))


tables = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)
beginnings = st.lists(
    st.one_of(
        st.tuples(st.just("spin"), tables),
        st.tuples(st.just("service"), tables),
        st.tuples(st.just("restart"), st.just([])),
    ),
    max_size=40,
)


@given(beginnings)
def test_the_parts_of_all_charts_ever_begun_are_at_most_alpha(script: list[tuple[str, list[str]]]) -> None:
    with opened() as store:
        fair = house(store)
        lives: Counter[str] = Counter()
        found: dict[tuple[str, int], float] = {}
        for number, (act, where) in enumerate(script, 1):
            match act:
                case "spin":
                    for table in where:
                        fair.on_result(table, "resolved", result_of(spin(number, "5", table=table)))
                    fair.flush()
                    for table in where:
                        now = threshold(fair, Chart(table, "wheel"))
                        assert found.setdefault((table, lives[table]), now) == now
                case "service":
                    for table in where:
                        fair.serviced(table, "", "levelled")
                        lives[table] += 1
                case _:
                    fair = house(store)
        parts = [math.exp(-one) for one in found.values()]
        assert len(set(parts)) == len(parts)
        assert sum(parts) <= ALPHA


def test_an_alarm_outlives_what_is_begun_and_serviced_elsewhere(store: Store) -> None:
    """A worn wheel is taken out of play, as the remedy says: nothing is counted there any more."""
    fair, told, rng = house(store), Told(), random.Random(7)
    worn = [1.6 if 10 <= place < 19 else 1.0 for place in range(37)]
    fair.on_result("other", "resolved", result_of(spin(1, "5", table="other")))
    number = 0
    while number < 3000 and not looked(fair):
        spins(fair, rng.choices(WHEEL, worn, k=5), first=number + 1)
        number += 5
    fair.report_alarms(told.begin, told.end)
    assert list(told.standing) == [(TABLE, "wheel-1-fairness-wheel")]
    for table in range(40):
        fair.on_result(f"new-{table}", "resolved", result_of(spin(1, "5", table=f"new-{table}")))
    for turn in range(5):
        fair.serviced("other", "", "cleaned")
        fair.on_result("other", "resolved", result_of(spin(2 + turn, "5", table="other")))
        fair.flush()
        fair.report_alarms(told.begin, told.end)
    again = house(store)
    again.report_alarms(told.begin, told.end)
    test = again.test(SPINS)
    assert test is not None
    assert test.alarmed
    assert told.ended == []
    again.serviced(TABLE, "wheel-1", "frets tightened")
    again.report_alarms(told.begin, told.end)
    assert told.ended == [(TABLE, "wheel-1-fairness-wheel")]


# ---- cards


def coup(number: int, cards: list[str], shoe: int = 1, **more: Any) -> dict[str, Any]:
    options = {"decks": 8, "device": "shoe"}
    hands = {"player": cards[::2], "banker": cards[1::2]}
    return {
        "round": f"bac-1:2026-11-20:{shoe}:{number}",
        "ruleset": "macau.baccarat",
        "options": options,
        "outcome": {"hands": hands},
        "void": None,
    } | more


def deal(fair: Fairness, rng: random.Random, shoe: int, cards: list[str], seen: int = 400) -> None:
    """A shoe of so many cards, dealt by five."""
    dealt = rng.sample(cards, seen)
    for number, first in enumerate(range(0, seen, 5), 1):
        fair.on_result("bac-1", "resolved", result_of(coup(number, dealt[first : first + 5], shoe)))
    fair.flush()


CARDS = Chart("bac-1", "cards")


def test_cards_are_counted_by_shoe_from_results_only(store: Store) -> None:
    fair = house(store)
    fair.on_event("bac-1", wire(1, "card.drawn", table="bac-1", device="shoe-1", data={"card": "AS"}))
    fair.on_result("bac-1", "resolved", result_of(coup(1, ["9D", "9D", "KC", "2H"])))
    # What a void coup showed came out of the shoe, too.
    fair.on_result(
        "bac-1", "voided", result_of(coup(2, ["3D"], void={"reason": {"code": "card_unreadable"}, "bets": "returned"}))
    )
    fair.on_result("bac-1", "resolved", result_of(coup(1, ["AC", "AD", "AH", "5S"], shoe=2)))
    fair.flush()
    second, first = fair.shoes("bac-1")
    assert (first.name, first.decks, first.drawn) == ("2026-11-20 1", 8, 5)
    assert {card: count for card, count in zip(DECK, first.counts, strict=True) if count} == {
        "9D": 2,
        "KC": 1,
        "2H": 1,
        "3D": 1,
    }
    assert second.drawn == 4
    everything = "".join(str(row) for row in store.db.iterdump())
    assert '"AS"' not in everything
    assert "'AS'" not in everything
    assert fair.counts(Chart("bac-1", "reads", "shoe-1"), "all") == {"read": 1}


def test_fair_shoes_are_not_accused_and_a_lacking_card_is_named(store: Store) -> None:
    fair, rng = house(store), random.Random(5)
    whole = list(DECK) * 8
    for shoe in range(1, 21):
        deal(fair, rng, shoe, whole)
    assert looked(fair) == []
    lacking = list(whole)
    lacking.remove("7H")
    for shoe in range(21, 36):
        deal(fair, rng, shoe, lacking)
    assert looked(fair) == []  # twenty good shoes still outweigh it; the cards are new, says the technician
    fair.serviced("bac-1", "", "new cards")
    for shoe in range(36, 51):
        deal(fair, rng, shoe, lacking)
    (alarm,) = looked(fair)
    assert (alarm.code, alarm.key, alarm.values["card"]) == ("fairness.cards", "fair.alarm_card_lacks", "7♥")


def test_a_ninth_card_of_eight_decks_is_told_at_once(store: Store) -> None:
    fair = house(store)
    for number in range(1, 4):
        fair.on_result("bac-1", "resolved", result_of(coup(number, ["9D"] * 3)))
    fair.flush()
    (alarm,) = fair.alarms()
    assert (alarm.code, alarm.values) == ("fairness.too_often", {"card": "9♦", "count": 9, "decks": 8})
    assert fair.test(CARDS) is None  # no test of what cannot be


def test_a_corrected_coup_is_taken_out_of_its_shoe(store: Store) -> None:
    fair = house(store)
    fair.on_result("bac-1", "resolved", result_of(coup(1, ["9D", "KC"])))
    fair.on_result("bac-1", "corrected", result_of(coup(1, ["9D", "QC"], supersedes="bac-1:2026-11-20:1:1")))
    fair.flush()
    (shoe,) = fair.shoes("bac-1")
    assert (shoe.counts[DECK.index("KC")], shoe.counts[DECK.index("QC")], shoe.drawn) == (0, 1, 2)


def blackjack(number: int, cards: list[str], device: str = "shoe", seq: int = 0) -> dict[str, Any]:
    return {
        "round": f"bj-1:2026-11-20:{number}",
        "ruleset": "macau.blackjack",
        "options": {"decks": 1 if device == "metal_box" else 6, "device": device},
        "outcome": {"hands": {"dealer": cards}},
        "evidence": [f"edge-1:bj-1:{seq}"],
    }


def test_blackjack_belongs_to_the_shoe_that_was_begun_before(store: Store) -> None:
    fair = house(store)
    fair.on_result("bj-1", "resolved", result_of(blackjack(1, ["9D"], seq=5)))  # of a shoe that nobody saw begin
    fair.on_event("bj-1", wire(10, "shoe.started", 0, "console-1", "bj-1"))
    fair.on_result("bj-1", "resolved", result_of(blackjack(2, ["8D"], seq=11)))
    fair.on_result("bj-1", "resolved", result_of(blackjack(3, ["7D"], seq=9)))  # told late
    fair.on_event("bj-1", wire(12 + GAP, "bets.opened", 0, "console-1", "bj-1"))  # who knows what was meanwhile
    fair.on_result("bj-1", "resolved", result_of(blackjack(4, ["6D"], seq=12 + GAP)))
    fair.flush()
    (shoe,) = fair.shoes("bj-1")
    assert [card for card, count in zip(DECK, shoe.counts, strict=True) if count] == ["8D"]
    assert fair.counts(Chart("bj-1", "cards"), "all") == {"9D": 1, "8D": 1, "7D": 1, "6D": 1}


def test_each_round_of_a_metal_box_is_a_deck_of_its_own(store: Store) -> None:
    fair, rng = house(store), random.Random(6)
    lacking = [card for card in DECK if card != "AS"]
    for number in range(1, 401):
        fair.on_result("bj-1", "resolved", result_of(blackjack(number, rng.sample(lacking, 15), "metal_box")))
    fair.flush()
    (alarm,) = looked(fair)
    assert (alarm.key, alarm.values["card"]) == ("fair.alarm_card_lacks", "A♠")
    # What is taken back leaves no trace in the bets.
    before = fair.test(Chart("bj-1", "cards"))
    extra = blackjack(500, rng.sample(lacking, 15), "metal_box")
    fair.on_result("bj-1", "resolved", result_of(extra))
    fair.on_result("bj-1", "corrected", result_of(extra | {"supersedes": extra["round"], "outcome": {}}))
    fair.flush()
    after = fair.test(Chart("bj-1", "cards"))
    assert before is not None
    assert after is not None
    assert after.log_e == pytest.approx(before.log_e)


def test_stud_poker_shows_a_chosen_part_of_the_deck_and_is_not_tested(store: Store) -> None:
    fair = house(store)
    shown = {"ruleset": "macau.stud-poker", "outcome": {"hands": {"dealer": ["AS", "AH", "AD", "AC", "KS"]}}}
    for number in range(1, 200):
        fair.on_result("stud-1", "resolved", result_of(result(number, {}, "stud-1") | shown))
    fair.flush()
    assert fair.test(Chart("stud-1", "cards")) is None
    assert looked(fair) == []


# ---- readers


def test_a_shoe_that_misreads_is_told_and_a_usual_one_is_not(store: Store) -> None:
    fair = house(store)
    seq = 0
    for misread_every, device in ((400, "good"), (40, "bad")):
        for number in range(1, 4001):
            seq += 1
            kind = "card.unreadable" if number % misread_every == 0 else "card.drawn"
            fair.on_event(TABLE, wire(seq, kind, device=device, data={"card": "AS"} if kind == "card.drawn" else {}))
    fair.flush()
    (alarm,) = looked(fair)
    assert (alarm.device, alarm.code, alarm.values) == ("bad", "fairness.reads", {"bad": 100, "n": 4000})


def test_without_card_events_nobody_knows_a_rate(store: Store) -> None:
    fair = house(store)
    for seq in range(1, 50):
        fair.on_event(TABLE, wire(seq, "card.unreadable", device="shoe-1"))
    fair.flush()
    assert looked(fair) == []


def test_misreads_of_days_without_cards_belong_to_no_rate(store: Store) -> None:
    """The access list may come during a reader's life: then its cards are withheld and its misreads are not."""
    fair, chart = house(store), Chart(TABLE, "reads", "shoe-1")
    day = 86_400.0
    kinds = [("card.drawn", -12 * day)] * 1000 + [("card.unreadable", -12 * day)]
    kinds += [("card.unreadable", (number - 10) * day) for number in range(10) for _ in range(2)]
    for seq, (kind, seconds) in enumerate(kinds, 1):
        fair.on_event(TABLE, wire(seq, kind, seconds, device="shoe-1"))
    fair.flush()
    assert looked(fair) == []
    test = fair.test(chart)
    assert test is not None
    assert test.n == 1001
    assert fair.counts(chart, "service", rated=True) == {"read": 1000, "misread": 1}
    assert fair.counts(chart, "service") == {"read": 1000, "misread": 21}
    assert fair.counts(chart, "week", rated=True) == {}


# ---- the process


class Told:
    """What stands, as the incidents hear it."""

    def __init__(self) -> None:
        self.standing: dict[tuple[str, str], Alert] = {}
        self.ended: list[tuple[str, str]] = []

    def begin(self, key: tuple[str, str], alert: Alert, _now: datetime) -> None:
        self.standing[key] = alert

    def end(self, key: tuple[str, str], _now: datetime) -> None:
        self.ended.append(key)
        self.standing.pop(key, None)


def test_alarms_become_alerts_and_end(store: Store) -> None:
    fair, told = house(store), Told()
    spins(fair, random.Random(7).choices(WHEEL, [10.0] + [1.0] * 36, k=600))
    fair.report_alarms(told.begin, told.end)
    fair.report_alarms(told.begin, told.end)
    key = (TABLE, "wheel-1-fairness-wheel")
    alert = told.standing[key]
    assert (alert.code, alert.severity, alert.device) == ("fairness.wheel", "error", "wheel-1")
    assert alert.text.startswith("Look at the wheel: pocket 0 came ")
    assert "check its level" in alert.remedy
    fair.serviced(TABLE, "wheel-1", "levelled")
    again = house(store)  # who told it is not there any more
    again.report_alarms(told.begin, told.end)
    again.report_alarms(told.begin, told.end)
    assert told.ended == [key]


def test_alarms_of_several_devices_have_names_of_their_own(store: Store) -> None:
    """The reader's dice and those that were entered by hand at the same table."""
    fair, rng = house(store), random.Random(8)
    for first, device in enumerate(("shaker-1", "console-1")):
        for number in range(1 + 600 * first, 601 + 600 * first):
            faces = sorted(rng.choices(range(1, 7), [1, 1, 1, 1, 1, 2], k=3))
            fair.on_event(TABLE, wire(number, "dice.read", device=device, data={"faces": faces}))
            fair.on_result(
                TABLE, "resolved", result_of(result(number, {"faces": faces}, evidence=[f"edge-1:{TABLE}:{number}"]))
            )
    fair.flush()
    names = {alarm.name for alarm in looked(fair)}
    assert names == {"shaker-1-fairness-dice", "console-1-fairness-dice"}


@virtual_time
async def test_it_writes_every_few_seconds_and_at_the_end() -> None:
    with opened() as store:
        breaking, told = Breaking(store), Told()
        fair = Fairness(breaking, lambda: NOW)  # type: ignore[arg-type]
        running = asyncio.create_task(fair.run(told.begin, told.end))

        def written() -> int:
            return sum(fair.counts(Chart(TABLE, "wheel"), "all").values())

        fair.on_result(TABLE, "resolved", result_of(spin(1, "5")))
        await asyncio.sleep(FLUSH + 0.1)
        assert written() == 1
        breaking.broken = True
        fair.on_result(TABLE, "resolved", result_of(spin(2, "5")))
        with capture_logs() as logged:
            await asyncio.sleep(10 * FLUSH)
            breaking.broken = False
            await asyncio.sleep(FLUSH)
        assert [one["event"] for one in logged] == ["fairness.not_written"]  # once, however often it was tried
        assert written() == 2
        fair.on_result("bac-1", "resolved", result_of(coup(1, ["9D"] * 9)))
        await asyncio.sleep(2 * EACH * FLUSH)
        assert list(told.standing) == [("bac-1", "fairness-too_often")]
        fair.on_result(TABLE, "resolved", result_of(spin(3, "5")))
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert written() == 3
