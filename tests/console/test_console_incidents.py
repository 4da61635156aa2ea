"""One incident for each alert: begun, told again, acknowledged, silenced, ended, back again; over restarts."""

import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from sqlite3 import OperationalError
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import at_length
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from daemon.console.alerts.incidents import KEPT_FOR, LONGEST_SILENCE, SAME_INCIDENT_WITHIN, Incidents
from daemon.console.alerts.records import AlertKey, Filter, Incident, NotOpen
from daemon.console.site.store import BadStore, Store
from daemon.words import words
from protocols.contract.documents import Alert, EdgeInfo
from protocols.contract.reasons import say

T0 = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
KEY = ("bac-12", "shoe-1-card-jam")
JAM = Alert(code="card.jam", text="a card is stuck", remedy="open the shoe", severity="error", device="shoe-1")
SUSPENDED = Alert(code="round.suspended", text="a card was missed", remedy="count the cards", severity="error")


def later(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


class Floor:
    """The site as it is looked at: one edge, the rules, one table."""

    def __init__(self) -> None:
        self.connected = True
        self.lost: datetime | None = None
        self.stalled = False
        self.edges: dict[str, Any] = {}
        self.devices: dict[AlertKey, Any] = {
            ("bac-12", "shoe-1"): SimpleNamespace(meta=SimpleNamespace(edge="edge-7")),
        }

    def connect(self) -> None:
        self.connected, self.lost = True, None

    def lose(self, now: datetime) -> None:
        self.connected, self.lost = False, now
        for edge in self.edges.values():
            edge.online = None

    def edge(self, name: str, now: datetime, *, online: bool | None = True, **health: Any) -> None:
        said = SimpleNamespace(
            time=health.get("time", now),
            outbox=SimpleNamespace(depth=health.get("depth", 0), age_s=health.get("age_s", 0.0)),
            disk_free=health.get("disk_free", 50_000_000_000),
        )
        old = self.edges.get(name)
        kept = said if health.get("said", True) else (old.health if old is not None else None)
        info = health.get("info", EdgeInfo())
        self.edges[name] = SimpleNamespace(online=online, info=info, health=kept, heard=now, silent=False)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path / "console.db")
    yield one
    one.close()


def codes(incidents: Incidents, now: datetime) -> list[str]:
    return [one.incident.code for one in incidents.open(now)]


def only(incidents: Incidents, now: datetime) -> Incident:
    [shown] = incidents.open(now)
    return shown.incident


# ---- one for each alert


def test_repeated_alert_is_the_same_incident(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    incidents.on_alert(KEY, JAM, later(1))
    incidents.on_alert(
        KEY,
        Alert(code="card.jam", text="two cards are stuck", remedy="open the shoe", severity="error", device="shoe-1"),
        later(2),
    )
    one = only(incidents, later(3))
    assert (one.n, one.text, one.began, one.changed) == (1, "two cards are stuck", T0, later(2))
    assert one.times == 1


def test_it_began_when_the_device_says_so_but_never_in_the_future(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(("a", "x"), Alert(code="x", text="", remedy="", since=later(-60)), T0)
    incidents.on_alert(("b", "x"), Alert(code="x", text="", remedy="", since=later(60)), T0)
    assert {one.incident.table: one.incident.began for one in incidents.open(T0)} == {"a": later(-60), "b": T0}


def test_incident_that_returns_soon_is_the_same_one_reopened(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    incidents.acknowledge(1, "maria", "on my way", later(5))
    incidents.on_alert(KEY, None, later(10))
    assert incidents.open(later(11)) == []
    incidents.on_alert(KEY, JAM, later(10) + SAME_INCIDENT_WITHIN)
    one = only(incidents, later(700))
    assert (one.n, one.times, one.state, one.began, one.ended) == (1, 2, "open", T0, None)
    assert (one.by, one.note) == ("maria", "on my way")
    incidents.on_alert(KEY, None, later(800))
    incidents.on_alert(KEY, JAM, later(801) + SAME_INCIDENT_WITHIN)
    one = only(incidents, later(1500))
    assert (one.n, one.times) == (2, 1)


def test_two_people_acknowledge(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    one = incidents.acknowledge(1, "maria", "on my way", later(5))
    assert (one.state, one.by, one.acknowledged, one.note) == ("acknowledged", "maria", later(5), "on my way")
    with pytest.raises(NotOpen, match="maria was faster"):
        incidents.acknowledge(1, "joão", "", later(6))
    incidents.on_alert(KEY, None, later(7))
    with pytest.raises(NotOpen, match="over"):
        incidents.acknowledge(1, "joão", "", later(8))
    assert incidents.get(1) is not None
    assert incidents.get(2) is None


LOW = Alert(
    code="shoe.low", text="few cards are left", remedy="change the shoe", severity="warning", device="shoe-1", since=T0
)


@pytest.mark.parametrize(
    "new",
    [
        replace(LOW, severity="error"),
        replace(LOW, code="shoe.empty"),
        replace(LOW, since=later(20)),
        replace(LOW, severity="error", code="shoe.empty", since=later(20)),
    ],
)
def test_worse_or_changed_incident_opens_again_and_keeps_its_history(store: Store, new: Alert) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, LOW, T0)
    incidents.acknowledge(1, "maria", "on my way", later(5))
    incidents.on_alert(KEY, LOW, later(6))
    assert only(incidents, later(6)).state == "acknowledged"
    version = incidents.version
    incidents.on_alert(KEY, new, later(30))
    one = only(incidents, later(30))
    assert (one.n, one.state, one.times, one.began, one.changed) == (1, "open", 1, T0, later(30))
    assert (one.by, one.acknowledged, one.note) == ("maria", later(5), "on my way")
    assert (one.severity, one.code) == (new.severity, new.code)
    assert incidents.version > version
    assert sum(incidents.begun.values()) == 2
    assert only(Incidents(store), later(31)) == one
    incidents.acknowledge(1, "joão", "", later(40))
    incidents.on_alert(KEY, new, later(50))
    assert only(incidents, later(50)).by == "joão"
    assert only(incidents, later(50)).state == "acknowledged"


@pytest.mark.parametrize(
    "new",
    [
        replace(LOW, text="fewer cards are left", remedy="now"),
        replace(LOW, severity="warning", device="shoe-2"),
        replace(LOW, since=None),
        replace(LOW, since=T0.astimezone(timezone(timedelta(hours=8)))),
    ],
)
def test_unchanged_incident_stays_acknowledged(store: Store, new: Alert) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, LOW, T0)
    incidents.acknowledge(1, "maria", "on my way", later(5))
    incidents.on_alert(KEY, new, later(30))
    incidents.on_alert(KEY, LOW, later(31))
    assert only(incidents, later(31)).state == "acknowledged"
    incidents.on_alert(("bac-14", "x"), replace(JAM, since=None), later(40))
    incidents.acknowledge(2, "maria", "", later(41))
    incidents.on_alert(("bac-14", "x"), replace(JAM, severity="warning"), later(42))  # better, and not another
    incidents.on_alert(("bac-14", "x"), replace(JAM, severity="warning"), later(43))
    assert {one.incident.state for one in incidents.open(later(43))} == {"acknowledged"}


@pytest.mark.parametrize("restarted", [False, True])
def test_another_round_that_waits_is_not_the_one_that_somebody_saw(store: Store, restarted: bool) -> None:
    """The end of the first was never heard: without an instant only the round's name tells them apart."""
    key = ("bac-12", "round-suspended")
    incidents = Incidents(store)
    incidents.on_alert(key, Alert(code="round.suspended", text="a card was missed", remedy="count", round="5"), T0)
    incidents.acknowledge(1, "maria", "I count them", later(5))
    if restarted:
        incidents = Incidents(store)
    incidents.on_alert(
        key, Alert(code="round.suspended", text="a card was missed", remedy="count", round="5"), later(30)
    )
    assert only(incidents, later(30)).state == "acknowledged"
    incidents.on_alert(
        key, Alert(code="round.suspended", text="a card was missed", remedy="count", round="6"), later(40)
    )
    one = only(incidents, later(40))
    assert (one.n, one.state, one.round, one.by) == (1, "open", "6", "maria")
    incidents.look(Floor(), later(41))
    assert only(Incidents(store), later(42)) == one


def test_the_codes_of_an_alert_survive_a_restart(store: Store) -> None:
    alert = words.alert("events.conflict", say("text", seq=7, edge="edge-7"))
    Incidents(store).on_alert(("bac-12", "rules-events-conflict"), alert, T0)
    one = only(Incidents(store), later(1))
    assert (one.why, one.to_do, one.text) == (alert.why, alert.to_do, alert.text)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    ("name", "code", "texts"),
    [
        ("shoe-1-device-offline", "device.offline", ("does not answer: no such port", "does not answer: silent")),
        ("edge-7-journal-room", "journal.room", ("950 MB, 95% of its limit", "its limit is 1000 MB: play stops here")),
        ("round-suspended", "round.suspended", ("a card was missed", "seat 3 has too many cards")),
    ],
)
def test_without_an_instant_other_words_are_another_trouble(
    store: Store, name: str, code: str, texts: tuple[str, str], restarted: bool
) -> None:
    key = ("bac-12", name)
    incidents = Incidents(store)
    incidents.on_alert(key, Alert(code=code, text=texts[0], remedy=""), T0)
    incidents.acknowledge(1, "maria", "", later(5))
    if restarted:
        incidents = Incidents(store)
    incidents.on_alert(key, Alert(code=code, text=texts[0], remedy=""), later(30))
    assert only(incidents, later(30)).state == "acknowledged"
    incidents.on_alert(key, Alert(code=code, text=texts[1], remedy=""), later(40))
    assert (only(incidents, later(40)).state, only(incidents, later(40)).text) == ("open", texts[1])


def test_figures_that_move_and_a_round_that_an_older_version_did_not_note_are_no_other_trouble(store: Store) -> None:
    """The room of a journal is told anew at each start, for each table; 50 of them would open again."""
    key = ("bac-12", "edge-7-room")
    incidents = Incidents(store)
    for n, text in enumerate(("takes 801 MB, 80% of its limit", "takes 812 MB, 81% of its limit")):
        incidents.on_alert(key, Alert(code="journal.room", text=text, remedy="", severity="warning"), later(n))
        if not n:
            incidents.acknowledge(1, "maria", "", later(0.5))
    assert only(incidents, later(2)).state == "acknowledged"
    incidents.on_alert(
        key,
        Alert(code="journal.room", text="takes 812 MB, 81% of its limit", remedy="", severity="warning", round="r:5"),
        later(3),
    )
    assert only(incidents, later(3)).state == "acknowledged"
    incidents.on_alert(
        key,
        Alert(code="journal.room", text="takes 812 MB, 81% of its limit", remedy="", severity="warning", round="r:6"),
        later(4),
    )
    assert only(incidents, later(4)).state == "open"


def test_counting_incident_stays_acknowledged(store: Store) -> None:
    """Its own words have figures that move."""
    floor = Floor()
    incidents = Incidents(store)
    for seconds in (0, 30):
        floor.edge("edge-7", later(seconds), depth=200 + seconds, age_s=100.0 + seconds)
        incidents.look(floor, later(seconds))
    incidents.acknowledge(1, "maria", "", later(31))
    floor.edge("edge-7", later(60), depth=300, age_s=130.0)
    incidents.look(floor, later(60))
    assert "300 events" in only(incidents, later(60)).text
    assert only(incidents, later(60)).state == "acknowledged"


AS_SHOWN = [
    pytest.param(lambda one: one.on_alert(KEY, replace(LOW, severity="error"), later(9)), id="worse"),
    pytest.param(lambda one: one.on_alert(KEY, replace(LOW, code="shoe.empty"), later(9)), id="another"),
    pytest.param(lambda one: one.on_alert(KEY, replace(LOW, since=later(8)), later(9)), id="since"),
    pytest.param(lambda one: (one.on_alert(KEY, None, later(8)), one.on_alert(KEY, LOW, later(9))), id="came back"),
]


@pytest.mark.parametrize("happens", AS_SHOWN)
def test_incident_that_was_not_shown_is_not_acknowledged(store: Store, happens: Callable[[Incidents], object]) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, LOW, T0)
    seen, version = incidents.seen(only(incidents, T0)), incidents.version
    incidents.on_alert(KEY, replace(LOW, text="fewer cards are left"), later(5))  # the same trouble
    assert incidents.may_acknowledge(1, seen).n == 1
    happens(incidents)
    assert incidents.version > version + 1  # pages are drawn anew
    for other in (seen, ""):
        with pytest.raises(NotOpen, match="changed"):
            incidents.may_acknowledge(1, other)
    assert incidents.may_acknowledge(1, incidents.seen(only(incidents, later(9)))).n == 1


def test_another_round_was_not_shown(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(
        ("bac-12", "round-suspended"), Alert(code="round.suspended", text="missed", remedy="count", round="5"), T0
    )
    seen = incidents.seen(only(incidents, T0))
    incidents.on_alert(
        ("bac-12", "round-suspended"), Alert(code="round.suspended", text="missed", remedy="count", round="6"), T0
    )
    with pytest.raises(NotOpen, match="changed"):
        incidents.may_acknowledge(1, seen)


@pytest.mark.parametrize(("since", "state"), [(-60, "acknowledged"), (0, "acknowledged"), (20, "open")])
def test_another_trouble_that_began_while_nobody_listened_is_open(store: Store, since: int, state: str) -> None:
    """After a start only its instant tells: what began before somebody saw it may be what they saw."""
    incidents = Incidents(store)
    incidents.on_alert(KEY, replace(LOW, since=later(-60)), T0)
    incidents.acknowledge(1, "maria", "on my way", later(5))
    again = Incidents(store)
    for seconds in (30, 40):
        again.on_alert(KEY, replace(LOW, since=later(since)), later(seconds))
        assert only(again, later(seconds)).state == state


def test_steps_are_bounded_kept_and_forgotten_with_their_incident(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    incidents.acknowledge(1, "ana", "", later(1))
    for second in range(2, 100):
        incidents.step(1, "handed", "ana", later(second), whom="rui" if second % 2 else "ana")
    again = only(Incidents(store), later(100))  # as after a restart
    assert again == only(incidents, later(100))
    assert len(again.steps) == 40
    assert [step.time for step in (again.steps[0], again.steps[-1])] == [later(1), later(99)]
    assert (again.by, again.stage) == ("rui", "handed")
    incidents.end(KEY, later(100))
    incidents.look(Floor(), later(100) + KEPT_FOR + timedelta(hours=2))
    assert store.db.execute("SELECT count(*) FROM incident_steps").fetchone() == (0,)


def test_incident_that_comes_back_belongs_to_nobody_and_keeps_its_steps(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    incidents.acknowledge(1, "ana", "", later(1))
    incidents.step(1, "on_way", "ana", later(2))
    incidents.on_alert(KEY, None, later(3))
    incidents.on_alert(KEY, JAM, later(4))
    one = only(incidents, later(5))
    assert (one.stage, [step.kind for step in one.steps]) == ("", ["taken", "on_way"])
    with pytest.raises(NotOpen, match="take it first"):
        incidents.may_step(1, "at_table", "ana", "", None)
    incidents.acknowledge(1, "rui", "", later(6))
    assert only(incidents, later(7)).stage == "taken"


def test_incident_reported_again_after_a_start_is_the_same(store: Store) -> None:
    """That the broker is lost it says since its own start."""
    floor = Floor()
    incidents = Incidents(store)
    floor.lose(T0)
    incidents.look(floor, later(3))
    incidents.acknowledge(1, "maria", "on my way", later(5))
    floor.lost = later(60)
    again = Incidents(store)
    again.look(floor, later(63))
    assert only(again, later(63)).state == "acknowledged"


def test_the_worst_stands_first(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(("t-1", "warn"), Alert(code="w", text="", remedy="", severity="warning"), T0)
    incidents.on_alert(("t-2", "old"), Alert(code="e", text="", remedy=""), later(1))
    incidents.on_alert(("t-3", "new"), Alert(code="e", text="", remedy=""), later(2))
    incidents.on_alert(("t-4", "known"), Alert(code="e", text="", remedy=""), T0)
    incidents.on_alert(("t-5", "quiet"), Alert(code="e", text="", remedy=""), T0)
    incidents.acknowledge(4, "maria", "", later(3))
    incidents.silence("t-5", "", "", later(600), "ana", "new felt", later(3))
    assert [one.incident.table for one in incidents.open(later(4))] == ["t-2", "t-3", "t-4", "t-1", "t-5"]
    assert [one.incident.table for one in incidents.open(later(4), "t-3")] == ["t-3"]


def test_a_flood_of_alerts_has_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.console.alerts.incidents.MOST_OPEN", 3)
    incidents = Incidents(store)
    for number in range(20):
        incidents.on_alert(("t", f"x-{number}"), Alert(code="x" * 5000, text="t" * 5000, remedy=""), T0)
    assert len(incidents.open(T0)) == 3
    assert max(len(one.incident.text) for one in incidents.open(T0)) == 2000
    incidents.on_alert(("t", "x-0"), None, T0)
    incidents.on_alert(("t", "y"), JAM, T0)
    assert len(incidents.open(T0)) == 3


# ---- silence


def test_a_silence_hides_what_it_names_until_it_ends(store: Store) -> None:
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    incidents.on_alert(("bac-14", "x"), JAM, T0)
    incidents.silence("bac-12", "shoe-1", "", later(60), "ana", "the shoe is changed", T0)
    long = incidents.silence("bac-12", "", "card.jam", later(90), "ana", "the felt too", T0)
    hidden = {one.incident.table: one.silence for one in incidents.open(later(59))}
    assert hidden == {"bac-12": long, "bac-14": None}
    again = Incidents(store)
    assert {one.incident.table: one.silence for one in again.open(later(89))} == hidden
    assert {one.silence for one in again.open(later(90))} == {None}
    assert again.silences(later(89)) == [long]
    over = again.unsilence(long.n, later(30))
    assert over.until == later(30)
    with pytest.raises(NotOpen):
        again.unsilence(long.n, later(31))
    assert [one.until for one in Incidents(store).silences(later(31))] == [later(60)]


def test_a_silence_is_short_and_names_something_and_says_why(store: Store) -> None:
    incidents = Incidents(store)
    incidents.silence("a", "", "", T0 + LONGEST_SILENCE, "ana", "new felt", T0)
    for table, until, why in (
        ("a", T0 + LONGEST_SILENCE + timedelta(seconds=1), "new felt"),
        ("a", T0, "new felt"),
        ("", later(60), "new felt"),
        ("a", later(60), "  "),
    ):
        with pytest.raises(NotOpen):
            incidents.silence(table, "", "", until, "ana", why, T0)
    assert len(incidents.silences(T0)) == 1


# ---- over restarts and reconnections


def test_after_a_restart_what_stands_goes_on_and_what_ended_has_ended(store: Store) -> None:
    floor = Floor()
    floor.edge("edge-7", T0)
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    incidents.on_alert(
        ("bac-12", "shoe-1-lid"), Alert(code="lid.open", text="", remedy="", severity="warning", device="shoe-1"), T0
    )
    incidents.acknowledge(1, "maria", "on my way", later(1))
    again = Incidents(store)
    assert [one.incident for one in again.open(later(5))] == [one.incident for one in incidents.open(later(5))]
    floor.edge("edge-7", later(5))
    again.look(floor, later(6))
    again.on_alert(KEY, JAM, later(6))
    again.look(floor, later(7))
    assert len(again.open(later(7))) == 2  # the edge has not had the time to say all it has to say
    again.look(floor, later(11))
    one = only(again, later(12))
    assert (one.n, one.state, one.times) == (1, "acknowledged", 1)
    ended = again.get(2)
    assert ended is not None
    assert (ended.state, ended.ended) == ("resolved", later(11))


def test_after_a_restart_the_oldest_ended_incident_makes_room_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.console.alerts.incidents.MOST_OPEN", 3)
    incidents = Incidents(store)
    for number in range(3):
        incidents.on_alert(("t", f"x-{number}"), JAM, T0)
        incidents.on_alert(("t", f"x-{number}"), None, later(number))
    again = Incidents(store)
    again.on_alert(("t", "y"), JAM, later(3))
    again.on_alert(("t", "y"), None, later(3))
    for number in range(3):
        again.on_alert(("t", f"x-{number}"), JAM, later(4))
    times = {one.incident.name: one.incident.times for one in again.open(later(4))}
    assert times == {"x-0": 1, "x-1": 2, "x-2": 2}


def test_a_broker_that_forgot_everything_is_not_all_is_well(store: Store) -> None:
    floor = Floor()
    floor.edge("edge-7", T0)
    incidents = Incidents(store, edges=["edge-7"])
    incidents.look(floor, T0)
    incidents.on_alert(KEY, JAM, T0)
    floor.lose(later(10))
    incidents.look(floor, later(10))
    floor.connect()
    for seconds in range(11, 200):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(200)) == ["card.jam", "edge.offline"]
    floor.edge("edge-7", later(200))
    incidents.look(floor, later(200))
    incidents.look(floor, later(204))
    assert codes(incidents, later(204)) == ["card.jam"]
    incidents.look(floor, later(205))
    assert codes(incidents, later(205)) == []


def test_retained_documents_do_not_make_an_edge_present(store: Store) -> None:
    """Its retained "online" and health may be of before: only health that is new, or said again, is a sign of life."""
    floor = Floor()
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, later(-500))
    incidents = Incidents(store)
    floor.edge("edge-7", T0, time=later(-400))
    for seconds in range(100):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(100)) == ["card.jam"]
    floor.edge("edge-7", later(100), time=later(-300))
    incidents.look(floor, later(100))
    floor.edge("edge-7", later(101), time=later(-299))
    incidents.look(floor, later(101))
    assert codes(incidents, later(101)) == []


def test_the_rules_end_what_is_theirs(store: Store) -> None:
    floor = Floor()
    floor.edge("edge-7", T0)
    floor.edges["rules"] = SimpleNamespace(online=False, info=EdgeInfo(), health=None, heard=T0, silent=False)
    incidents = Incidents(store)
    incidents.on_alert(("bac-12", "round-suspended"), SUSPENDED, later(-100))
    incidents.on_alert(("bac-12", "rules-journal-room"), Alert(code="journal.room", text="", remedy=""), later(-99))
    incidents = Incidents(store)
    for seconds in range(60):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(60)) == ["round.suspended", "journal.room", "rules.offline"]
    floor.edges["rules"].online = True
    incidents.look(floor, later(60))
    incidents.look(floor, later(65))
    assert codes(incidents, later(65)) == []
    assert incidents.suspended == {}


def test_incident_without_a_source_is_closed_by_hand(store: Store) -> None:
    floor = Floor()
    floor.edge("edge-7", T0)
    incidents = Incidents(store)
    incidents.on_alert(("gone-1", "x"), JAM, later(-100))
    incidents.on_alert(KEY, JAM, later(-100))
    incidents = Incidents(store)
    with pytest.raises(NotOpen, match="state is unknown"):
        incidents.close(1, "ana", "table taken away", T0)
    incidents.look(floor, T0)
    incidents.on_alert(KEY, JAM, T0)
    incidents.look(floor, later(600))
    assert len(incidents.open(later(600))) == 2
    with pytest.raises(NotOpen, match="cause persists"):
        incidents.close(2, "ana", "", later(601))
    one = incidents.close(1, "ana", "table taken away", later(601))
    assert (one.state, one.by, one.note, one.ended) == ("resolved", "ana", "table taken away", later(601))
    assert incidents.get(1) == one
    with pytest.raises(NotOpen, match="over"):
        incidents.close(1, "ana", "", later(602))


def test_an_alarm_of_fairness_that_stands_is_not_closed_by_hand(store: Store) -> None:
    """The console says it itself, of a device: no edge that went away. That of an edge of this name was cleared."""
    floor = Floor()
    incidents = Incidents(store)
    incidents.begin(
        ("rou-3", "wheel-1-fair"),
        Alert(code="fairness.bias", text="the wheel bends", remedy="", severity="error", device="wheel-1"),
        T0,
    )
    floor.edge("wheel-1", T0)
    for seconds in range(30):
        incidents.look(floor, later(seconds))
        assert not incidents.closable(only(incidents, later(seconds)))
    del floor.edges["wheel-1"]
    incidents.look(floor, later(30))
    with pytest.raises(NotOpen, match="cause persists"):
        incidents.close(1, "ana", "", later(31))


def test_that_it_may_be_closed_is_known_only_when_all_was_said_and_is_told(store: Store) -> None:
    """After a reconnection the broker first says what stands there; what is shown later is drawn anew for it."""
    floor = Floor()
    incidents = Incidents(store)
    incidents.on_alert(("gone-1", "x"), JAM, later(-100))
    floor.edge("edge-8", later(-100), online=False)
    incidents.look(floor, later(-100))
    incidents = Incidents(store)
    del floor.edges["edge-8"]
    seen = []
    for seconds in range(30):
        before = incidents.version
        incidents.look(floor, later(seconds))
        may = {shown.incident.code for shown in incidents.open(later(seconds)) if incidents.closable(shown.incident)}
        seen.append((may, incidents.version > before))
    assert seen[1:10] == [(set(), False)] * 9
    assert seen[10] == ({"card.jam", "edge.offline"}, True)
    assert seen[11:] == [({"card.jam", "edge.offline"}, False)] * 19
    incidents.on_alert(("gone-1", "x"), JAM, later(30))
    floor.edge("edge-8", later(30), online=False)
    version = incidents.version
    incidents.look(floor, later(30))
    assert incidents.version > version
    assert not any(incidents.closable(shown.incident) for shown in incidents.open(later(30)))


# ---- what the console itself sees


def test_the_broker_is_lost_and_back(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    floor.lose(T0)
    incidents.look(floor, later(1))
    assert incidents.open(later(1)) == []
    incidents.look(floor, later(3))
    one = only(incidents, later(3))
    assert (one.code, one.began, one.severity) == ("broker.lost", T0, "error")
    floor.connect()
    incidents = Incidents(store)
    incidents.look(floor, later(4))
    assert incidents.open(later(4)) == []


def test_an_edge_and_the_rules_are_offline(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store, edges=["edge-7", "rules"])
    incidents.look(floor, T0)
    incidents.look(floor, later(9))
    assert incidents.open(later(9)) == []  # what the broker has to say of them may be under way
    incidents.look(floor, later(10))
    assert sorted(codes(incidents, later(10))) == ["edge.offline", "rules.offline"]
    floor.edge("edge-7", later(11))
    floor.edge("rules", later(11), said=False)
    incidents.look(floor, later(11))
    assert codes(incidents, later(11)) == []
    floor.edge("edge-8", later(12), online=False)
    incidents.look(floor, later(12))
    one = only(incidents, later(12))
    assert (one.code, one.device, one.table) == ("edge.offline", "edge-8", "")
    floor.lose(later(13))
    incidents.look(floor, later(14))
    assert codes(incidents, later(14)) == ["edge.offline"]  # nobody can know


def test_of_two_rules_of_a_table_one_is_missed_and_both_are_an_error(store: Store) -> None:
    floor, info = Floor(), EdgeInfo(rules=True, tables=("bac-12",))
    incidents = Incidents(store, edges=["rules-a"], rules="rules-a")

    def told(at: int, one: bool, other: bool) -> list[str]:
        floor.edge("rules-a", later(at), online=one, said=False, info=info)
        floor.edge("rules-b", later(at), online=other, said=False, info=info)
        incidents.look(floor, later(at))
        open_ = [view.incident for view in incidents.open(later(at))]
        return [f"{one.code} {one.severity} {one.device}" for one in open_]

    assert told(0, one=True, other=True) == []
    assert told(20, one=True, other=False) == ["rules.single warning rules-b"]
    assert sorted(told(21, one=False, other=False)) == ["rules.offline error rules-a", "rules.offline error rules-b"]
    assert told(22, one=False, other=True) == ["rules.single warning rules-a"]
    assert told(23, one=True, other=True) == []


def test_an_edge_that_was_cleared_from_the_broker_is_gone_for_good(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    for seconds in (0, 30):
        floor.edge("edge-8", later(seconds), depth=200 + seconds, age_s=100.0)
        incidents.look(floor, later(seconds))
    floor.edge("edge-8", later(31), online=False, said=False)
    incidents.look(floor, later(31))
    assert sorted(codes(incidents, later(31))) == ["edge.backlog", "edge.offline"]
    assert "feltd forget edge-8" in incidents.open(later(31))[0].incident.remedy
    del floor.edges["edge-8"]
    for seconds in range(32, 60):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(60)) == []


def test_an_edge_that_must_be_there_is_missed_though_it_was_cleared(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store, edges=["edge-7"])
    floor.edge("edge-7", T0)
    incidents.look(floor, T0)
    del floor.edges["edge-7"]
    for seconds in range(1, 30):
        incidents.look(floor, later(seconds))
    assert only(incidents, later(30)).code == "edge.offline"
    with pytest.raises(NotOpen, match="cause persists"):
        incidents.close(1, "ana", "", later(30))


def test_an_edge_that_was_cleared_while_nobody_looked_is_closed_by_hand(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    floor.edge("edge-8", T0, online=False)
    incidents.look(floor, T0)
    assert not incidents.closable(only(incidents, T0))  # the broker says so
    del floor.edges["edge-8"]
    incidents = Incidents(store)
    for seconds in range(60):
        incidents.look(floor, later(seconds))
    assert only(incidents, later(60)).code == "edge.offline"  # a broker that forgot says as little
    incidents.close(1, "ana", "taken away", later(60))
    for seconds in range(60, 90):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(90)) == []


def test_an_edge_that_was_cleared_while_the_console_was_away_is_closed_by_hand(store: Store) -> None:
    """The console ran all the time, and still has what it knew of the edge before it lost the broker."""
    floor = Floor()
    incidents = Incidents(store)
    floor.edge("edge-8", T0, disk_free=100)
    incidents.look(floor, T0)
    floor.edge("edge-8", later(30), disk_free=101)
    incidents.look(floor, later(30))
    floor.lose(later(40))
    incidents.look(floor, later(44))
    floor.connect()
    for seconds in range(50, 70):
        incidents.look(floor, later(seconds))
    assert sorted(codes(incidents, later(70))) == ["disk.full", "edge.offline"]
    for shown in incidents.open(later(70)):
        incidents.close(shown.incident.n, "ana", "taken away", later(70))
    for seconds in range(70, 100):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(100)) == []
    floor.edge("edge-8", later(100), online=False)  # it is not gone after all
    incidents.look(floor, later(100))
    assert codes(incidents, later(100)) == ["edge.offline"]


def test_incidents_of_an_edge_can_be_closed_after_its_offline_incident(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    floor.edge("edge-8", T0)
    incidents.look(floor, T0)
    floor.edge("edge-8", later(30), disk_free=100)
    incidents.look(floor, later(30))
    del floor.edges["edge-8"]
    incidents = Incidents(store)
    for seconds in range(60, 90):
        incidents.look(floor, later(seconds))
    [one] = [shown.incident for shown in incidents.open(later(90)) if shown.incident.code == "disk.full"]
    assert codes(incidents, later(90)) == ["disk.full"]
    incidents.close(one.n, "ana", "taken away", later(90))
    for seconds in range(90, 120):
        incidents.look(floor, later(seconds))
    assert codes(incidents, later(120)) == []


def test_a_backlog_grows_and_goes(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    seen = []
    for seconds, depth, age in ((0, 0, 0), (30, 50, 30), (60, 200, 61), (90, 120, 70), (120, 30, 21), (150, 5, 20)):
        floor.edge("edge-7", later(seconds), depth=depth, age_s=age)
        incidents.look(floor, later(seconds))
        seen.append(codes(incidents, later(seconds)))
    assert seen == [[], [], ["edge.backlog"], ["edge.backlog"], ["edge.backlog"], []]
    floor.edge("edge-7", later(180), depth=200, age_s=100.0)
    incidents.look(floor, later(180))
    assert "200 events" in only(incidents, later(180)).text


def test_a_clock_is_off(store: Store) -> None:
    """What was said before the console connected, or once came late, is no clock that is off."""
    floor = Floor()
    floor.edge("edge-7", T0, time=later(-25))
    incidents = Incidents(store)
    seen = []
    for seconds, off in ((0, -25), (30, -20), (60, 0), (90, 9), (120, 9), (150, 4), (180, 2)):
        floor.edge("edge-7", later(seconds), time=later(seconds + off))
        incidents.look(floor, later(seconds))
        seen.append(codes(incidents, later(seconds)))
    assert seen == [[], [], [], [], ["edge.clock"], ["edge.clock"], []]


@pytest.mark.parametrize("off", [-60, 60])
def test_which_way_a_clock_is_off(store: Store, off: int) -> None:
    floor = Floor()
    incidents = Incidents(store)
    for seconds in range(0, 150, 30):
        floor.edge("edge-7", later(seconds), time=later(seconds + off))
        incidents.look(floor, later(seconds))
    assert only(incidents, later(150)).text.startswith(
        f"the clock of edge edge-7 is 60 s {'ahead of' if off > 0 else 'behind'}"
    )


def test_disks_fill(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    seen = []
    for seconds, free in ((0, 3.0), (30, 1.9), (60, 0.4), (90, 2.1), (120, 2.3)):
        floor.edge("edge-7", later(seconds), disk_free=int(free * 1e9))
        incidents.look(floor, later(seconds), disk_free=int(free * 1e9))
        seen.append([(one.incident.device, one.incident.severity) for one in incidents.open(later(seconds))])
    warned, bad = ([(name, severity) for name in ("edge-7", "console")] for severity in ("warning", "error"))
    assert seen == [[], warned, bad, bad, []]


def test_messages_are_refused(store: Store) -> None:
    floor = Floor()
    incidents = Incidents(store)
    incidents.look(floor, T0)
    incidents.look(floor, later(1), refused=3)
    assert only(incidents, later(1)).code == "messages.refused"
    incidents.look(floor, later(2), refused=3)
    incidents.look(floor, later(1) + SAME_INCIDENT_WITHIN, refused=3)
    assert incidents.open(later(700)) == []


# ---- the store


def test_history_is_filtered_and_paged(store: Store) -> None:
    incidents = Incidents(store)
    for number in range(10):
        table = "bac-12" if number % 2 else "rou-3"
        alert = Alert(code="x", text="", remedy="", severity="warning" if number < 4 else "error", device=f"d-{number}")
        incidents.on_alert((table, f"x-{number}"), alert, later(number))
    incidents.on_alert(("bac-12", "x-1"), None, later(20))
    numbers = [one.n for one in incidents.history(Filter(), 4)]
    assert numbers == [10, 9, 8, 7]
    assert [one.n for one in incidents.history(Filter(), 4, before=7)] == [6, 5, 4, 3]
    assert [one.n for one in incidents.history(Filter(table="bac-12", severity="warning"), 9)] == [4, 2]
    assert [one.n for one in incidents.history(Filter(device="d-3"), 9)] == [4]
    assert [one.n for one in incidents.history(Filter(code="y"), 9)] == []
    between = Filter(since=later(2), until=later(4))
    assert [one.n for one in incidents.history(between, 9)] == [4, 3]
    assert [one.state for one in incidents.history(Filter(device="d-1"), 1)] == ["resolved"]


def test_history_is_kept_400_days_and_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = Floor()
    incidents = Incidents(store)
    for number in range(6):
        key = ("bac-12", f"x-{number}")
        incidents.on_alert(key, JAM, later(number))
        if number:
            incidents.on_alert(key, None, later(number))
    incidents.look(floor, later(3) + KEPT_FOR)
    assert [one.n for one in incidents.history(Filter(), 9)] == [6, 5, 4, 1]  # what is open stays
    monkeypatch.setattr("daemon.console.alerts.incidents.MOST_KEPT", 2)
    Incidents(store).look(floor, later(3) + KEPT_FOR)
    assert [one.n for one in incidents.history(Filter(), 9)] == [6, 5, 1]


def test_a_store_that_cannot_be_written_hides_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = Floor()
    incidents = Incidents(store)

    def full() -> None:
        raise BadStore("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(store, "write", full)
        incidents.on_alert(KEY, JAM, T0)
        incidents.look(floor, later(1))
        assert codes(incidents, later(1)) == ["card.jam"]
        with pytest.raises(BadStore):
            incidents.acknowledge(1, "maria", "", later(2))
    assert Incidents(store).open(later(3)) == []
    incidents.look(floor, later(3))
    assert only(Incidents(store), later(3)).by == "maria"


def test_words_that_change_all_the_time_do_not_wear_the_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = Floor()
    incidents = Incidents(store)
    incidents.on_alert(KEY, JAM, T0)
    writes = 0
    write = store.write

    def counted() -> Any:
        nonlocal writes
        writes += 1
        return write()

    monkeypatch.setattr(store, "write", counted)
    for number in range(100):
        incidents.on_alert(
            KEY,
            Alert(code="card.jam", text=f"{number} cards are stuck", remedy="", severity="error", device="shoe-1"),
            later(number),
        )
    assert writes == 0
    incidents.look(floor, later(100))
    assert only(Incidents(store), later(100)).text == "99 cards are stuck"
    worse = Alert(code="card.jam", text="99 cards are stuck", remedy="", severity="warning", device="shoe-1")
    before = writes
    incidents.on_alert(KEY, worse, later(101))
    assert writes == before + 1


def test_an_index_serves_the_history_of_a_table(store: Store) -> None:
    Incidents(store)
    query = "SELECT * FROM incident WHERE place = 'x' AND n < 9 ORDER BY n DESC LIMIT 3"
    try:
        [plan] = store.db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
    except OperationalError as error:  # pragma: no cover - a SQLite without EXPLAIN
        pytest.skip(str(error))
    assert "incident_by_place" in plan[3]


# ---- against a model


class _Known:
    """What the model knows of one alert."""

    def __init__(self, n: int, began: datetime) -> None:
        self.n, self.began, self.times, self.state = n, began, 1, "open"
        self.severity = self.heard = "warning"
        """As it stands on the broker, in truth, and as the console heard it last."""
        self.ended: datetime | None = None
        self.standing = True
        """Whether it stands on the broker, in truth."""


class Life(RuleBasedStateMachine):
    """Alerts come and go, people acknowledge, the console restarts, the broker is lost and forgets."""

    KEYS = st.sampled_from([("bac-12", f"shoe-1-{code}") for code in ("jam", "lid", "door")])

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name) / "console.db")
        self.now = T0
        self.floor = Floor()
        self.incidents = Incidents(self.store)
        self.known: dict[AlertKey, _Known] = {}
        self.past: list[_Known] = []
        self.count = 0
        self.online = True
        """Whether the edge is connected to the broker: else nothing is said there."""
        self.floor.edge("edge-7", self.now)
        self.incidents.look(self.floor, self.now)

    def says(self, key: AlertKey) -> str:
        """The severity that stands on the broker: of an edge that is away, as it was heard last."""
        one = self.known.get(key)
        if one is None or (self.online and not one.standing):
            return "warning"
        return one.severity if self.online else one.heard

    def hear(self, key: AlertKey) -> None:
        """The broker says that it stands."""
        severity = self.says(key)
        self.incidents.on_alert(
            key, Alert(code=key[1], text="text", remedy="remedy", severity=severity, device="shoe-1"), self.now
        )
        one = self.begun(key, severity)
        if not one.standing:
            one.standing, one.severity = True, severity
        one.heard = severity

    def begun(self, key: AlertKey, severity: str) -> _Known:
        one = self.known.get(key)
        if one is not None and one.ended is None:
            if (one.heard, severity) == ("warning", "error") and one.state == "acknowledged":
                one.state = "open"
            return one
        if one is not None and one.ended is not None and self.now - one.ended <= SAME_INCIDENT_WITHIN:
            one.ended, one.state, one.times = None, "open", one.times + 1
        else:
            if one is not None:
                self.past.append(one)
            self.count += 1
            one = self.known[key] = _Known(self.count, self.now)
        return one

    def over(self, key: AlertKey) -> None:
        one = self.known.get(key)
        if one is not None and one.ended is None:
            one.ended, one.state = self.now, "resolved"

    @precondition(lambda self: self.online and self.floor.connected)
    @rule(key=KEYS)
    def begin(self, key: AlertKey) -> None:
        self.hear(key)

    @rule(key=KEYS)
    def worse(self, key: AlertKey) -> None:
        """A warning becomes an error; heard at once, or when somebody says so again."""
        one = self.known.get(key)
        if one is not None and one.standing:
            one.severity = "error"
            if self.online and self.floor.connected:
                self.hear(key)

    @precondition(lambda self: self.online and self.floor.connected)
    @rule(key=KEYS)
    def end(self, key: AlertKey) -> None:
        self.incidents.on_alert(key, None, self.now)
        self.over(key)
        if key in self.known:
            self.known[key].standing = False

    @precondition(lambda self: not (self.online and self.floor.connected))
    @rule(key=KEYS)
    def end_unheard(self, key: AlertKey) -> None:
        if key in self.known:
            self.known[key].standing = False

    @rule(key=KEYS)
    def acknowledge(self, key: AlertKey) -> None:
        one = self.known.get(key)
        shown = self.incidents.of(key)
        n = shown.n if shown is not None else 999
        if one is not None and one.state == "open":
            self.incidents.acknowledge(n, "maria", "", self.now)
            one.state = "acknowledged"
        else:
            with pytest.raises(NotOpen):
                self.incidents.acknowledge(n, "maria", "", self.now)

    @rule(seconds=st.sampled_from([1, 30, 299, 600, 601, 4000]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        if self.floor.connected and self.online:
            self.floor.edge("edge-7", self.now)
        self.incidents.look(self.floor, self.now)

    @precondition(lambda self: self.floor.connected)
    @rule()
    def lose_broker(self) -> None:
        self.floor.lose(self.now)
        self.incidents.look(self.floor, self.now)

    @precondition(lambda self: not self.floor.connected)
    @rule(forgetful=st.booleans(), online=st.booleans())
    def broker_is_back(self, forgetful: bool, online: bool) -> None:
        """It says what stands there; without the edge, what stood there when it was lost, or nothing at all."""
        self.floor.connect()
        self.floor.edges.clear()
        self.online = online
        self.incidents.look(self.floor, self.now)
        if online or not forgetful:
            self.floor.edge("edge-7", self.now, online=online)
            for key, one in self.known.items():
                if one.standing and (online or one.ended is None):
                    self.hear(key)
        self.incidents.look(self.floor, self.now)
        if online:
            self.settle()

    @precondition(lambda self: self.floor.connected and not self.online)
    @rule()
    def edge_is_back(self) -> None:
        self.online = True
        self.floor.edge("edge-7", self.now)
        for key, one in self.known.items():
            if one.standing:
                self.hear(key)
            else:
                self.incidents.on_alert(key, None, self.now)
                self.over(key)
        self.incidents.look(self.floor, self.now)
        self.settle()

    def settle(self) -> None:
        """Some seconds after the edge was seen, what does not stand on the broker is over, and not before."""
        waiting = [key for key, one in self.known.items() if not one.standing and one.ended is None]
        assert all(self.incidents.of(key) is not None for key in waiting)
        self.now += timedelta(seconds=6)
        self.floor.edge("edge-7", self.now)
        self.incidents.look(self.floor, self.now)
        for key in waiting:
            self.over(key)

    @rule()
    def restart(self) -> None:
        """A new process: it hears what stands on the broker, if that is there."""
        self.store.close()
        self.store = Store(Path(self.folder.name) / "console.db")
        self.incidents = Incidents(self.store)
        self.incidents.look(self.floor, self.now)
        if self.floor.connected:
            for key, one in self.known.items():
                if one.ended is None and (one.standing or not self.online):
                    self.incidents.on_alert(
                        key,
                        Alert(code=key[1], text="text", remedy="remedy", severity=self.says(key), device="shoe-1"),
                        self.now,
                    )
            if self.online:
                self.settle()

    @invariant()
    def they_agree(self) -> None:
        shown = {one.incident.key: one.incident for one in self.incidents.open(self.now) if one.incident.table}
        assert set(shown) == {key for key, one in self.known.items() if one.ended is None}
        for key, one in shown.items():
            known = self.known[key]
            assert (one.state, one.times, one.ended) == (known.state, known.times, None)
            assert one.severity == known.heard
        every = sorted((*self.past, *self.known.values()), key=lambda one: one.n)
        of_table = self.incidents.history(Filter(table="bac-12"), 1000)[::-1]
        assert [(one.began, one.times, one.state, one.ended) for one in of_table] == [
            (one.began, one.times, one.state, one.ended) for one in every
        ]

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=at_length(25, 300), stateful_step_count=30)
