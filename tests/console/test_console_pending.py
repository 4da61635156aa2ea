"""Pending and keep-firing times of alerts, devices inside the incident of their edge, one line for each table."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_floor import Console, opened

from daemon.console.live import Viewer

OFFLINE = {"code": "device.offline", "text": "shoe-1 does not answer: timeout", "device": "shoe-1"}
NEVER = {"code": "device.offline", "text": "shoe-1 does not answer: never seen", "device": "shoe-1"}
NAME = "shoe-1-device-offline"
VIEWER = Viewer("en", "viewer")
WEBHOOK = '[[console.webhook]]\nurl = "http://127.0.0.1:9/hook"'


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path, WEBHOOK) as one:
        one.begin()
        one.device("bac-12", "shoe-1", "bee_tek_shoe")
        one.device("rou-3", "wheel-1", "cammegh_ss2")
        yield one


def codes(console: Console) -> list[str]:
    return [shown.incident.code for shown in console.house.incidents.open(console.now)]


def sent(console: Console) -> list[tuple[str, str, list[str]]]:
    """The messages of the webhook: kind, code, and the devices inside."""
    bodies = [json.loads(body) for (body,) in console.store.db.execute("SELECT body FROM webhook_message ORDER BY n")]
    return [(one["type"].partition(".")[2], one["data"]["code"], one["data"].get("inside", [])) for one in bodies]


def lines(console: Console, name: str = "alerts/worst") -> list[str]:
    """The lines as a person reads them."""
    html = console.house.live.html(name, VIEWER)
    found = re.findall(r'<summary id="s-.*?<span class="sr">\w+</span>(.*?)<span class="do">', html, re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", one).split()) for one in found]


@pytest.mark.parametrize(("alert", "pending"), [(OFFLINE, 4), (NEVER, 20)])
def test_device_is_an_incident_after_its_pending_time(console: Console, alert: dict[str, str], pending: int) -> None:
    console.alert("bac-12", NAME, **alert)
    console.wait(pending - 1)
    assert codes(console) == []
    console.wait(1)
    assert codes(console) == ["device.offline"]


def test_device_that_is_away_for_a_second_is_no_incident(console: Console) -> None:
    """As all devices after their edge hung; its lamp shows it meanwhile."""
    console.alert("bac-12", NAME, **OFFLINE)
    console.wait(1)
    console.alert("bac-12", NAME)
    console.wait(60)
    assert codes(console) == []
    assert sent(console) == []
    assert console.house.incidents.begun == {"warning": 0, "error": 0}


def test_alert_that_comes_back_within_the_keep_firing_time_goes_on(console: Console) -> None:
    console.alert("bac-12", NAME, **OFFLINE)
    console.wait(4)
    [one] = console.house.incidents.open(console.now)
    console.alert("bac-12", NAME)
    console.wait(3)
    console.alert("bac-12", NAME, **OFFLINE)
    console.wait(30)
    assert [shown.incident for shown in console.house.incidents.open(console.now)] == [one.incident]
    console.alert("bac-12", NAME)
    console.wait(4)
    assert codes(console) == []


def test_faults_begin_at_once(console: Console) -> None:
    console.alert("bac-12", "shoe-1-fault", code="shoe.jam", device="shoe-1")
    assert codes(console) == ["shoe.jam"]


def test_devices_of_an_edge_that_is_offline_are_inside_its_incident(console: Console) -> None:
    console.alert("bac-12", NAME, **OFFLINE)
    console.edge(online=False)
    console.wait(30)
    assert codes(console) == ["edge.offline"]
    [line] = lines(console)
    assert line.endswith("2 devices")
    html = console.house.live.html("alerts", VIEWER)
    assert "bac-12/shoe-1, rou-3/wheel-1" in html
    told = ("opened", "edge.offline", ["bac-12/shoe-1", "rou-3/wheel-1"])
    assert sent(console) == [told]
    console.edge()
    console.wait(3)
    assert codes(console) == [], "the edge is back; its devices have their pending time"
    assert [kind for kind, _, _ in sent(console)] == ["opened", "resolved"]
    console.wait(2)
    assert codes(console) == ["device.offline"]
    assert sent(console)[2:] == [("opened", "device.offline", [])]


def test_broker_says_again_what_stands_after_it_was_lost(console: Console) -> None:
    console.alert("bac-12", NAME, **OFFLINE)
    console.lose()
    console.wait(1)
    console.begin()
    console.wait(20)
    assert codes(console) == []


def test_one_line_stands_for_a_table_with_its_worst_alert(console: Console) -> None:
    console.alert("bac-12", "a", code="shoe.dust", text="dusty", severity="warning")
    console.alert("bac-12", "b", code="shoe.jam", text="a card is stuck")
    console.wait(40)
    console.alert("rou-3", "c", code="wheel.slow", text="the wheel is slow", severity="warning")
    assert lines(console) == ["bac-12 A card is stuck and 1 more at this table", "rou-3 The wheel is slow"]
    assert len(lines(console, "alerts")) == 3


def test_one_webhook_message_stands_for_a_table_with_its_worst_alert(console: Console) -> None:
    """A message is posted when the line of the table on the pit becomes that of another alert."""
    console.alert("bac-12", "a", code="shoe.dust", text="dusty", severity="warning")
    console.alert("bac-12", "b", code="shoe.jam", text="a card is stuck")
    console.alert("bac-12", "c", code="shoe.lid", text="the lid is open")
    console.alert("bac-12", "d", code="shoe.worn", text="the belt is worn", severity="warning")
    console.wait(40)
    assert lines(console) == ["bac-12 A card is stuck and 3 more at this table"]
    assert sent(console) == [("opened", "shoe.dust", []), ("opened", "shoe.jam", [])]
    console.alert("rou-3", "e", code="wheel.slow", text="the wheel is slow", severity="warning")
    console.alert("bac-12", "b")
    assert lines(console)[0] == "bac-12 The lid is open and 2 more at this table"
    assert sent(console)[2:] == [
        ("opened", "wheel.slow", []),
        ("resolved", "shoe.jam", []),
        ("opened", "shoe.lid", []),
    ]
    for name in ("d", "c", "a"):
        console.alert("bac-12", name)
    assert sent(console)[5:] == [("resolved", "shoe.lid", []), ("resolved", "shoe.dust", [])]


def test_a_receiver_of_warnings_gets_that_of_a_table_with_a_fault(tmp_path: Path) -> None:
    with opened(tmp_path, f'{WEBHOOK}\nseverities = ["warning"]') as console:
        console.begin()
        console.alert("bac-12", "b", code="shoe.jam", text="a card is stuck")
        console.alert("bac-12", "a", code="shoe.dust", text="dusty", severity="warning")
        assert sent(console) == [("opened", "shoe.dust", [])]


def test_what_is_seconds_old_stands_first_where_it_is_not_among_the_worst(console: Console) -> None:
    for number in range(6):
        console.alert(f"t-{number}", "a", code="shoe.jam", text="a card is stuck")
    console.wait(60)
    console.alert("rou-3", "c", code="wheel.slow", text="the wheel is slow", severity="warning")
    console.wait(1)

    def fresh() -> str:
        html = console.house.live.html("alerts/worst", VIEWER)
        return "".join(re.findall('<p class="fresh">(.*?)</p>', html, re.DOTALL))

    assert "the wheel is slow" in fresh()
    console.alert("t-6", "a", code="shoe.dust", text="dusty", severity="warning")
    console.wait(1)
    console.alert("rou-3", "d", code="wheel.stopped", text="the wheel stands", severity="warning")
    assert re.findall("the wheel is slow|dusty|the wheel stands", fresh()) == ["the wheel stands", "dusty"]
    console.wait(31)
    assert fresh() == ""
