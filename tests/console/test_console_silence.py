"""Processes that hang: their heartbeat stops long before the broker publishes their last will."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from console_floor import Console, opened

from daemon.broker.heartbeat import SILENT_S
from daemon.console.live import Viewer
from daemon.pulse import PULSE_S
from protocols.contract.topics import edge_topic

EDGE, RULES = "edge-7", "rules"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device("bac-12", "shoe-1", "bee_tek_shoe")
        for name in (EDGE, RULES):
            beat(one, name)
        yield one


def beat(console: Console, *names: str) -> None:
    for name in names:
        console.say(edge_topic("lisboa", name, "alive"), b"alive")


def codes(console: Console) -> set[str]:
    console.house.watch.look()
    open_ = console.house.incidents.open(console.house.now())
    return {one.incident.code for one in open_} & {"edge.silent", "broker.silent", "edge.offline", "rules.offline"}


def lamps(console: Console) -> set[str]:
    site = console.house.site
    return {site.lamp(device) for device in site.devices.values() if device.online is not None}


def test_an_edge_that_stops_beating_is_shown_as_unknown_within_five_seconds(console: Console) -> None:
    assert lamps(console) == {"good"}
    for _ in range(3):
        console.wait(PULSE_S)
        beat(console, RULES)
    assert SILENT_S < 3 * PULSE_S <= 5
    assert codes(console) == {"edge.silent"}
    assert lamps(console) == {"unknown"}
    assert EDGE in console.house.live.html("top", Viewer("en", "viewer"))
    assert "no heartbeat for" in console.house.live.html("edges", Viewer("en", "viewer"))
    beat(console, EDGE)
    assert codes(console) == set()
    assert lamps(console) == {"good"}


def test_rules_that_hang_make_every_round_uncertain(console: Console) -> None:
    console.wait(SILENT_S + 0.1)
    beat(console, EDGE)
    assert codes(console) == {"edge.silent"}
    assert console.house.site.rules() is None


def test_when_nobody_is_heard_the_broker_hangs(console: Console) -> None:
    console.wait(SILENT_S + 0.1)
    assert codes(console) == {"broker.silent"}
    assert lamps(console) == {"unknown"}
    beat(console, EDGE, RULES)
    assert codes(console) == set()


def test_a_process_of_an_older_version_has_no_heartbeat_and_does_not_hang(tmp_path: Path) -> None:
    with opened(tmp_path) as console:
        console.begin()
        console.wait(60)
        assert codes(console) == set()


def test_the_last_will_takes_the_place_of_the_silence(console: Console) -> None:
    console.wait(SILENT_S + 0.1)
    beat(console, RULES)
    assert codes(console) == {"edge.silent"}
    console.edge(EDGE, online=False)
    assert codes(console) == {"edge.offline"}


def test_a_restart_is_counted_and_shown(console: Console) -> None:
    for boot in ("a", "a", "b", "c"):
        console.say(edge_topic("lisboa", EDGE, "info"), msgspec.json.encode({"bootid": boot}))
    edge = console.house.site.edges[EDGE]
    assert (edge.restarts, edge.restarted) == (2, console.house.now())
    assert "restarted 2 times" in console.house.live.html("edges", Viewer("en", "viewer"))
