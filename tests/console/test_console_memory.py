"""The memory of the console over a day: what it keeps of events, results, faults and alerts is bounded."""

import gc
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from console_floor import Console
from helpers import at_length

from daemon import read_model
from daemon.console.live import Viewer
from protocols.contract.topics import Wire, device_topic, encode_wire, table_topic

TABLES = 4
ROUND = 20
"""Events of a round."""
WARM = 9_000
"""Events until every list is full."""
DAY = at_length(9_000, 300_000)
MOST_GROWTH = 250_000
"""Bytes. One small object for each event would be twice as much."""


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(read_model, "REMEMBERED", WARM // 40)  # with 50,000 ids it would take too long to fill
    tables = "".join(
        f'[[table]]\nname = "rou-{n}"\nruleset = "macau.roulette"\n'
        f'[[table.device]]\nname = "wheel-1"\ndriver = "cammegh_ss2"\nurl = "tcp://127.0.0.1:{4001 + n}"\n'
        for n in range(TABLES)
    )
    one = Console(tmp_path, config='[site]\nname = "lisboa"\n[edge]\nname = "edge-7"\n[console]\n{console}\n' + tables)
    try:
        yield one
    finally:
        one.house.close()
        one.store.close()
        one.journal.close()


class _Day:
    """Events, rounds, faults and alerts, one after the other."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.seq = [0] * TABLES

    def go_on(self, events: int) -> None:
        """So many events; now and then the pages are drawn and the counts are written."""
        for n in range(events):
            self._event(n % TABLES)
            if n % 1000 == 0:
                self.console.house.watch.look()
                self.console.house.fairness.flush()
                self.console.house.rounds.flush()
                for table in range(TABLES):
                    for kind in ("tile", "round", "history", "board"):
                        self.console.house.live.html(f"{kind}/rou-{table}", Viewer("en", "viewer"))

    def _event(self, n: int) -> None:
        console, table = self.console, f"rou-{n}"
        console.now += timedelta(milliseconds=50)
        self.seq[n] += 1
        seq, source = self.seq[n], device_topic("lisboa", table, "wheel-1", "")[:-1]
        type_, data = "ball.launched", b'{"direction":"cw","rotor":"ccw"}'
        if seq % 10 == 0:
            type_ = "device.faulted"
            data = msgspec.json.encode({"code": f"c{seq}", "text": "stuck", "severity": "error", "remedy": "open it"})
        wire = Wire("1.0", f"edge-7:{table}:{seq}", source, type_, console.now, seq, "b", "j", data=msgspec.Raw(data))
        console.say(f"{source}/event/{type_}", encode_wire(wire))
        if seq % ROUND == 0:
            self._result(table, seq // ROUND)
        if seq % 500 == 0:
            alert = {"code": "card.jam", "device": "wheel-1"} if seq % 1000 else {}
            console.alert(table, "wheel-1-x", **alert)

    def _result(self, table: str, number: int) -> None:
        said = {"round": f"{table}:2026-11-20:{number}", "ruleset": "macau.roulette", "outcome": {"pocket": "7"}}
        source = table_topic("lisboa", table, "round")
        data = msgspec.Raw(msgspec.json.encode({"result": said}))
        wire = Wire(
            "1.0", f"edge-7:{table}:{number}/0", source, "resolved", self.console.now, number, "b", "v", data=data
        )
        self.console.say(f"{source}/event/resolved", encode_wire(wire))
        state = {"phase": ("betting", "running")[number % 2], "round": f"{table}:{number}", "detail": {"count": number}}
        self.console.say(f"{source}/state", msgspec.json.encode(state))


def test_a_day_of_events_does_not_fill_the_memory(console: Console) -> None:
    console.begin()
    for n in range(TABLES):
        console.device(f"rou-{n}", "wheel-1", "cammegh_ss2")
    day = _Day(console)
    day.go_on(WARM)
    gc.collect()
    tracemalloc.start()
    try:
        day.go_on(WARM)  # what was allocated before and is replaced now counts only on one side
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        day.go_on(DAY)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < MOST_GROWTH
