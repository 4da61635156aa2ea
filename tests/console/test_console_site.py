"""What the console knows of the site, and that it says no more than it knows."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import structlog
from helpers import virtual_time
from hypothesis import given, strategies as st
from paho.mqtt.client import topic_matches_sub

from daemon import read_model
from daemon.broker import gap_recovery
from daemon.broker.session import BrokerLost, Message, Session
from daemon.config.model import parse
from daemon.console.site.past import Past
from daemon.console.site.store import Store
from daemon.read_model import LONGEST_RETAINED, SiteState
from daemon.views import CHANGES, Lamp
from protocols.contract.documents import Alert, EdgeInfo
from protocols.contract.topics import LONGEST_DOCUMENT, Wire, encode_wire

CONFIG = parse(
    """
[site]
name = "lisboa"
[edge]
name = "edge-7"
[[table]]
name = "bac-12"
ruleset = "macau.baccarat"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "serial:///dev/shoe"
"""
)
NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
SHOE = "table/bac-12/device/shoe-1"


class Heard:
    """A site that hears what it is told, without a broker."""

    def __init__(self) -> None:
        self.site = SiteState.of_console(CONFIG, lambda: NOW)
        self.changed: list[str] = []
        self.site.on_change.append(self.changed.append)

    def broker(self, there: bool) -> None:
        self.site.set_connected(there)

    def says(self, topic: str, payload: Any) -> None:
        data = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
        self.site._look(Message(f"felt/1/lisboa/{topic}", data))

    def event(self, type_: str, data: dict[str, Any], seq: int = 1, at: datetime = NOW) -> None:
        source = f"felt/1/lisboa/{SHOE}"
        wire = Wire("1.0", f"edge-7:bac-12:{seq}", source, type_, at, seq, data=msgspec.Raw(msgspec.json.encode(data)))
        self.says(f"{SHOE}/event/{type_}", encode_wire(wire))

    def result(self, number: int, **more: Any) -> dict[str, Any]:
        return {"round": f"bac-12:2026-11-20:1:{number}", "ruleset": "macau.baccarat", "void": None, **more}

    def ended(self, seq: int, result: dict[str, Any]) -> None:
        data = msgspec.Raw(msgspec.json.encode({"result": result}))
        wire = Wire(
            "1.0", f"edge-7:bac-12:{seq}/0", "felt/1/lisboa/table/bac-12/round", "resolved", NOW, seq, data=data
        )
        self.says("table/bac-12/round/event/resolved", encode_wire(wire))

    def all_well(self) -> None:
        self.broker(True)
        self.says("edge/edge-7/availability", b"online")
        self.says("edge/rules/availability", b"online")
        self.says(f"{SHOE}/meta", {"driver": "bee_tek_shoe", "edge": "edge-7"})
        self.says(f"{SHOE}/state", {"online": True})
        self.says(f"{SHOE}/availability", b"online")

    def lamp(self) -> Lamp:
        return self.site.lamp(self.site.devices["bac-12", "shoe-1"])


def fault(severity: str) -> dict[str, Any]:
    return {"code": "jam", "text": "a card is stuck", "severity": severity, "remedy": "open it", "since": NOW}


# ---- lamps


def test_configured_devices_start_in_unknown_state() -> None:
    heard = Heard()
    assert list(heard.site.tables) == ["bac-12"]
    assert heard.lamp() == "unknown"
    heard.broker(True)
    assert heard.lamp() == "unknown"


def test_a_device_that_answers_is_good() -> None:
    heard = Heard()
    heard.all_well()
    assert heard.lamp() == "good"
    assert heard.site.rules() is True


@pytest.mark.parametrize(("severity", "lamp"), [("warning", "warning"), ("error", "error")])
def test_a_fault_turns_the_lamp_and_its_end_turns_it_back(severity: str, lamp: Lamp) -> None:
    heard = Heard()
    heard.all_well()
    heard.says(f"{SHOE}/state", {"online": True, "faults": [fault(severity)]})
    assert heard.lamp() == lamp
    assert heard.changed[-4:] == ["device/bac-12/shoe-1", "devices/bac-12", "table/bac-12", "tile/bac-12"]
    heard.says(f"{SHOE}/state", {"online": True, "faults": []})
    assert heard.lamp() == "good"


def test_listeners_receive_only_changes() -> None:
    """What is not otherwise is not drawn anew: at fifty tables that is most of the work."""
    heard = Heard()
    heard.all_well()
    heard.says("table/bac-12/round/state", {"phase": "open", "round": "bac-12:1", "detail": {}})

    def told(topic: str, payload: Any) -> list[str]:
        heard.changed.clear()
        heard.says(topic, payload)
        return heard.changed

    device = ["device/bac-12/shoe-1", "devices/bac-12"]
    lamp = [*device, "table/bac-12", "tile/bac-12"]
    assert told(f"{SHOE}/state", {"online": True, "counters": {"events": 7}}) == device
    assert told(f"{SHOE}/state", {"online": True, "faults": [fault("warning")]}) == lamp
    assert told(f"{SHOE}/state", {"online": True, "faults": [fault("warning")], "counters": {"events": 8}}) == device
    assert told(f"{SHOE}/availability", b"offline") == lamp
    assert told(f"{SHOE}/meta", {"driver": "hid_shoe", "edge": "edge-7"}) == lamp
    assert told("edge/edge-7/health", {"time": NOW}) == ["edges"]
    assert told("edge/edge-7/availability", b"offline") == [*lamp, "present", "edges"]
    standing = {"phase": "open", "round": "bac-12:1", "detail": {}, "heard": {"j": 8}}
    assert told("table/bac-12/round/state", standing) == []
    assert told("table/bac-12/round/state", standing | {"detail": {"hands": {}}}) == ["table/bac-12"]
    assert told("table/bac-12/round/state", standing | {"phase": "closed"}) == ["table/bac-12", "tile/bac-12"]
    heard.changed.clear()
    heard.event("shoe.started", {})
    assert heard.changed == ["events/bac-12/shoe-1", "last/bac-12"]


def test_round_state_of_a_lagging_standby_does_not_replace_a_later_one() -> None:
    """A standby that was away publishes where it stands before it catches up: the table showed the round before."""
    heard = Heard()
    heard.all_well()

    def state(rules: str, number: int, journal: str, seq: int) -> str:
        document = {"phase": "betting", "round": f"bac-12:{number}", "heard": {journal: seq}, "rules": rules}
        heard.says("table/bac-12/round/state", document)
        return heard.site.tables["bac-12"].round

    heard.says("edge/standby/availability", b"online")
    heard.says("edge/rules/availability", b"online")
    assert state("rules", 2, "j", 80) == "bac-12:2"
    assert state("standby", 1, "j", 70) == "bac-12:2"
    assert state("standby", 2, "j", 80) == "bac-12:2"
    assert state("rules", 1, "j", 70) == "bac-12:2"
    assert state("standby", 3, "j", 90) == "bac-12:3"
    assert state("rules", 4, "another", 1) == "bac-12:4", "the edge has another journal"
    assert state("rules", 3, "another", 0) == "bac-12:3", "what a process says of itself holds"
    assert state("rules", 5, "another", 9) == "bac-12:5"
    heard.says("edge/rules/availability", b"offline")
    assert state("standby", 4, "another", 3) == "bac-12:4", "the one that was ahead is gone"
    heard.changed.clear()
    heard.ended(1, heard.result(1))
    assert heard.changed == ["results/bac-12", "table/bac-12", "tile/bac-12"]


def test_the_worst_of_several_faults_counts() -> None:
    heard = Heard()
    heard.all_well()
    heard.says(f"{SHOE}/state", {"online": True, "faults": [fault("warning"), {**fault("error"), "code": "x"}]})
    assert heard.lamp() == "error"


def test_a_port_that_is_lost_is_offline() -> None:
    heard = Heard()
    heard.all_well()
    heard.says(f"{SHOE}/availability", b"offline")
    assert heard.lamp() == "offline"


def test_state_of_an_absent_edge_is_unknown() -> None:
    heard = Heard()
    heard.all_well()
    heard.says("edge/edge-7/availability", b"offline")
    assert heard.lamp() == "unknown"
    heard.says("edge/edge-7/availability", b"online")
    assert heard.lamp() == "good"


def test_without_the_broker_nothing_is_known_and_after_it_only_what_it_says() -> None:
    heard = Heard()
    heard.all_well()
    heard.broker(False)
    assert (heard.lamp(), heard.site.rules(), heard.site.lost) == ("unknown", None, NOW)
    heard.broker(True)
    assert heard.site.lost is None
    assert heard.lamp() == "unknown"  # a broker that forgot says nothing of anybody
    heard.says("edge/edge-7/availability", b"online")
    heard.says(f"{SHOE}/availability", b"online")
    assert heard.lamp() == "good"


# ---- events and cards


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("card.drawn", {"card": "9D"}),
        ("card.exposed", {"hand": "player", "card": "9D"}),
        ("card.damaged", {"card": "9D"}),
        ("deck.miscounted", {"expected": 52, "counted": 51, "missing": ["9D"]}),
        ("card.of_another_version", {"rank": "9", "suit": "D"}),
        ("hole_card.peeked", {"blackjack": True}),
        ("wager.placed", {"seat": 1, "bet": "banker", "amount": 1000}),
    ],
)
def test_no_card_and_no_wager_is_shown_with_an_event(type_: str, data: dict[str, Any]) -> None:
    heard = Heard()
    heard.event(type_, data)
    (seen,) = heard.site.devices["bac-12", "shoe-1"].events
    assert (seen.type, seen.data) == (type_, "")


def test_reports_of_a_device_join_its_history_once() -> None:
    heard = Heard()
    told = {"code": "jam", "text": "a card is stuck", "severity": "error", "remedy": "open it"}
    heard.event("device.faulted", told, 1)
    heard.event("device.faulted", told, 1)  # replayed
    heard.event("device.recovered", {"code": "jam"}, 2, NOW + timedelta(seconds=9))
    history = heard.site.devices["bac-12", "shoe-1"].history
    assert [(one.kind, one.text) for one in history] == [
        ("device.faulted", "jam · a card is stuck"),
        ("device.recovered", "jam"),
    ]


def test_an_alert_is_told_as_it_begins_and_as_it_ends() -> None:
    heard = Heard()
    told: list[tuple[tuple[str, str], Alert | None]] = []
    heard.site.on_alert.append(lambda key, alert, _at: told.append((key, alert)))
    heard.says("table/bac-12/alert/shoe-1-jam", {"code": "jam", "text": "stuck", "remedy": "open", "device": "shoe-1"})
    heard.says("table/bac-12/alert/shoe-1-jam", b"")
    key = ("bac-12", "shoe-1-jam")
    assert told == [(key, Alert(code="jam", text="stuck", remedy="open", device="shoe-1")), (key, None)]


def test_a_jackpot_is_shown_as_its_table_tells_it() -> None:
    heard = Heard()
    heard.event("display.shown", {"text": "MOP 12,345.00", "confirmed": True}, 1)
    heard.event("jackpot.reset", {"pool": "bac-12", "amount": 500_000}, 2)
    heard.event("display.shown", {"text": "MOP 12,350.00"}, 3)
    told = heard.site.amounts["bac-12"]
    assert [(one.name, one.text, one.amount, one.confirmed) for one in told.values()] == [
        ("shoe-1", "MOP 12,350.00", 0, False),
        ("bac-12", "", 500_000, False),
    ]


# ---- what was taken away


def test_a_device_that_was_taken_away_is_there_no_more_and_its_past_is_known() -> None:
    heard = Heard()
    heard.all_well()
    other = "table/bac-12/device/shoe-2"
    heard.says(f"{other}/meta", {"driver": "bee_tek_shoe", "edge": "edge-7"})
    heard.says(f"{other}/availability", b"offline")
    assert [one.name for one in heard.site.devices_of("bac-12")] == ["shoe-1", "shoe-2"]
    for place in (other, SHOE):
        for leaf in ("availability", "state", "meta"):
            heard.says(f"{place}/{leaf}", b"")
    assert [one.name for one in heard.site.devices_of("bac-12")] == ["shoe-1"]  # our configuration still has it
    assert heard.lamp() == "unknown"
    assert ("bac-12", "shoe-2") in heard.site.devices


def test_a_table_that_was_taken_away_is_there_no_more() -> None:
    heard = Heard()
    heard.all_well()
    device = "table/rou-9/device/wheel-1"
    heard.says(f"{device}/meta", {"driver": "cammegh_ss2", "edge": "edge-9"})
    assert heard.site.there("rou-9")
    heard.says("table/rou-9/round/state", {"phase": "idle", "round": "", "detail": {}})
    heard.says(f"{device}/meta", b"")
    assert heard.site.there("rou-9")
    heard.changed.clear()
    heard.says("table/rou-9/round/state", b"")
    assert heard.changed == ["table/rou-9", "tile/rou-9"]
    assert not heard.site.there("rou-9")
    assert heard.site.there("bac-12")
    assert heard.site.refused == 0


def test_an_edge_that_was_cleared_is_there_no_more() -> None:
    heard = Heard()
    heard.all_well()
    for leaf in ("info", "availability", "health"):
        heard.says(f"edge/edge-9/{leaf}", b"offline" if leaf == "availability" else {})
    assert "edge-9" in heard.site.edges
    heard.changed.clear()
    for leaf in ("info", "availability", "health"):
        heard.says(f"edge/edge-9/{leaf}", b"")
    assert set(heard.site.edges) == {"edge-7", "rules"}
    assert heard.changed == ["present", "edges"]


# ---- over restarts


def test_history_is_there_after_a_restart_and_not_told_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "console.db")
    first = Heard()
    Past(store, first.site)
    first.event("device.offline", {"reason": "unplugged"}, 9)
    second = Heard()
    Past(store, second.site)
    assert [one.text for one in second.site.devices["bac-12", "shoe-1"].history] == ["unplugged"]
    second.event("device.offline", {"reason": "unplugged"}, 9)
    assert len(second.site.devices["bac-12", "shoe-1"].history) == 1
    store.close()


def test_as_much_is_kept_as_pages_show(tmp_path: Path) -> None:
    store = Store(tmp_path / "console.db")
    heard = Heard()
    Past(store, heard.site)
    for number in range(1, 231):
        heard.event("device.offline", {"reason": f"{number}"}, number)
    assert len(heard.site.devices["bac-12", "shoe-1"].history) == CHANGES
    assert store.db.execute("SELECT count(*), min(n) FROM past_change").fetchone() == (CHANGES, 31)
    store.close()


def test_history_is_shown_and_written_later_when_the_store_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "console.db")
    heard = Heard()
    past = Past(store, heard.site)
    heard.event("device.offline", {"reason": "1"}, 1)
    tried = 0
    write = store.write

    def counted() -> Any:
        nonlocal tried
        tried += 1
        return write()

    def history(one: Heard) -> list[str]:
        return [change.text for change in one.site.devices["bac-12", "shoe-1"].history]

    monkeypatch.setattr(store, "write", counted)
    store.db.execute("PRAGMA query_only=ON")
    with structlog.testing.capture_logs() as logs:
        for number in range(2, 6):
            heard.event("device.offline", {"reason": str(number)}, number)
        past.flush()
        past.flush()
    assert history(heard) == ["1", "2", "3", "4", "5"]
    assert tried == 3  # at once, then as often as it is asked to: a store that is held makes each try wait
    assert [(one["event"], one["log_level"]) for one in logs] == [("past.unwritten", "error")]
    store.db.execute("PRAGMA query_only=OFF")
    with structlog.testing.capture_logs() as logs:
        past.flush()
    assert [(one["event"], one["log_level"]) for one in logs] == [("past.written", "info")]
    heard.event("device.offline", {"reason": "6"}, 6)
    assert tried == 5
    again = Heard()
    Past(store, again.site)
    assert history(again) == ["1", "2", "3", "4", "5", "6"]
    store.close()


def test_rows_waiting_for_the_store_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.console.site.past.MOST_WAITING", 3)
    store = Store(tmp_path / "console.db")
    heard = Heard()
    past = Past(store, heard.site)
    store.db.execute("PRAGMA query_only=ON")
    for number in range(1, 10):
        heard.event("device.offline", {"reason": str(number)}, number)
    store.db.execute("PRAGMA query_only=OFF")
    past.flush()
    kept = store.db.execute("SELECT said FROM past_change ORDER BY n").fetchall()
    assert [said for (said,) in kept] == ["7", "8", "9"]
    store.close()


# ---- whatever comes

WORDS = st.sampled_from(
    [
        "table",
        "edge",
        "bac-12",
        "x",
        "device",
        "shoe-1",
        "state",
        "meta",
        "availability",
        "event",
        "alert",
        "round",
        "result",
        "info",
        "health",
        "card.drawn",
        "cmd",
        "agitate",
        "trace",
        "resolved",
        "rules",
        "edge-7",
    ]
)
PAYLOADS = st.one_of(
    st.binary(max_size=40),
    st.just(b""),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["online", "faults", "code", "text", "remedy", "time", "data", "id"]), inner
            )
        ),
        max_leaves=5,
    ).map(msgspec.json.encode),
)


@given(st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=7), PAYLOADS), max_size=30))
def test_nothing_on_the_broker_can_end_it(messages: list[tuple[list[str], bytes]]) -> None:
    heard = Heard()
    heard.broker(True)
    for words, payload in messages:
        heard.says("/".join(words), payload)
    assert heard.lamp() in ("good", "offline", "warning", "error", "unknown")


@pytest.mark.parametrize("at", ["2026-11-20T20:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("edge/edge-7/health", {"time": None}),
        (f"{SHOE}/state", {"online": True, "last_event": {"type": "x", "seq": 1, "time": None}}),
        (f"{SHOE}/state", {"faults": [{"code": "c", "text": "t", "severity": "error", "remedy": "r", "since": None}]}),
        ("table/bac-12/alert/jam", {"code": "c", "text": "t", "remedy": "r", "since": None}),
    ],
)
def test_a_document_with_a_time_that_is_none_is_refused(topic: str, said: dict[str, Any], at: str) -> None:
    heard = Heard()
    heard.all_well()
    refused = heard.site.refused
    heard.says(topic.removeprefix("felt/1/lisboa/"), json.dumps(said).replace("null", f'"{at}"').encode())
    assert heard.site.refused > refused


def test_a_document_that_is_too_long_is_refused() -> None:
    heard = Heard()
    heard.all_well()
    for topic, longest in (("edge/edge-7/info", LONGEST_RETAINED), ("table/bac-12/round/state", LONGEST_DOCUMENT)):
        refused = heard.site.refused
        heard.says(topic, b'{"phase":"x","round":"x","y":"%s"}' % (b"x" * longest))
        assert heard.site.refused == refused + 1
    assert heard.site.edges["edge-7"].info == EdgeInfo()


def test_forged_topics_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_DEVICES", "MOST_EDGES"):
        monkeypatch.setattr(read_model, name, 10)
    monkeypatch.setattr(read_model, "MOST_TABLES", 10)
    heard = Heard()
    for number in range(50):
        heard.says(f"table/t-{number}/device/d-{number}/availability", b"online")
        heard.says(f"edge/e-{number}/availability", b"online")
    assert len(heard.site.tables) == 10
    assert len(heard.site.devices) <= 10
    assert len(heard.site.edges) <= 10


# ---- who may write on the broker


@pytest.mark.parametrize("name", ["", "..", "BAC", "a b", "<b>", "bac_1", "é", "x" * 65, "a\n"])
def test_a_name_that_is_none_is_nobodys(name: str) -> None:
    heard = Heard()
    heard.all_well()
    known = set(heard.site.tables), set(heard.site.devices), set(heard.site.edges)
    refused = heard.site.refused
    changed = len(heard.changed)
    heard.says(f"table/{name}/round/state", {"phase": "open", "round": "x"})
    heard.says(f"table/{name}/device/shoe-1/availability", b"online")
    heard.says(f"table/{name}/alert/jam", {"code": "jam", "text": "stuck", "remedy": "open"})
    heard.says(f"edge/{name}/availability", b"online")
    assert (set(heard.site.tables), set(heard.site.devices), set(heard.site.edges)) == known
    assert len(heard.changed) == changed
    assert heard.site.refused == refused + 4


@pytest.mark.parametrize("name", ["..", "<b>", "shoe 1", ""])
def test_an_event_of_a_device_without_a_name_makes_no_device(name: str) -> None:
    heard = Heard()
    known = set(heard.site.devices)
    wire = Wire("1.0", "edge-7:bac-12:1", f"felt/1/lisboa/table/bac-12/device/{name}", "paid", NOW, 1)
    heard.says(f"{SHOE}/event/paid", encode_wire(wire))
    assert set(heard.site.devices) == known


# ---- what it subscribes to


async def test_the_console_hears_each_topic_once_and_only_events_with_less_care() -> None:
    """Two filters that fit one topic may have it said twice; one that is forgotten leaves a page without it."""

    class Subscriber:
        def __init__(self) -> None:
            self.filters: dict[str, int] = {}
            self.pause = 0.0

        def set_read_interval(self, pause: float) -> None:
            self.pause = pause

        async def subscribe(self, *topics: str, qos: int = 1) -> None:
            self.filters |= dict.fromkeys(topics, qos)

        async def messages(self) -> list[Message]:
            raise BrokerLost("gone")

    session = Subscriber()
    with pytest.raises(BrokerLost):
        await SiteState.of_console(CONFIG, lambda: NOW)._serve(cast("Session", session))
    assert 0 < session.pause <= 0.05
    published = json.loads((Path(__file__).parents[2] / "docs/reference/asyncapi.json").read_text(encoding="utf-8"))
    heard: dict[str, int] = {}
    for channel in published["channels"].values():
        topic = re.sub(r"\{\w+\}", "x", channel["address"].replace("{site}", "lisboa"))
        fitting = [qos for filter_, qos in session.filters.items() if topic_matches_sub(filter_, topic)]
        assert len(fitting) <= 1, topic
        if fitting:
            heard[topic.removeprefix("felt/1/lisboa/")] = fitting[0]
    device = "table/x/device/x"
    sure = ("availability", "meta", "state", "trace", "cmd/x/result")
    assert heard == {
        "table/x/wager/x/result": 1,
        **dict.fromkeys(("edge/x/availability", "edge/x/info", "edge/x/health", "edge/x/alive", "edge/x/head"), 1),
        **{f"{device}/{leaf}": 1 for leaf in sure},
        f"{device}/event/x": 0,
        **{f"table/x/{leaf}": 1 for leaf in ("round/state", "round/result", "round/event/x", "alert/x")},
        "table/x/round/cmd/replay/result": 1,
    }


class _Asked:
    """A session that keeps which topics were published."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    async def publish(self, topic: str, _payload: bytes) -> None:
        self.topics.append(topic)


@virtual_time
async def test_a_retained_result_is_paired_with_its_verdict_however_it_is_written() -> None:
    """By round and version: the verdict of another version of the round is asked for."""
    heard, session = Heard(), _Asked()
    first = heard.result(1, evidence=["e:bac-12:7"])
    heard.ended(1, first)
    heard.says("table/bac-12/round/result", json.dumps(dict(reversed(first.items())), indent=1).encode())
    await heard.site._ask_again(cast("Session", session))
    assert heard.site._standing == {}
    heard.says("table/bac-12/round/result", {**first, "supersedes": first["round"]})
    for _ in range(2):
        await heard.site._ask_again(cast("Session", session))
        await asyncio.sleep(gap_recovery.ASK_AGAIN)
    assert session.topics == ["felt/1/lisboa/table/bac-12/round/cmd/replay"]


def test_a_retained_result_that_nobody_can_read_is_counted() -> None:
    heard = Heard()
    heard.says("table/bac-12/round/result", b'{"round":')
    assert heard.site.refused == 1
    assert heard.site._standing == {}
