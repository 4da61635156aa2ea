"""The devices in C of docs/examples/fdl at a table of the real campaign, with kills of every process."""

import random
from pathlib import Path

import pytest
from fdl_in_c import ConsoleInC, ShakerInC, compiled
from helpers import at_length

from simulators.lab import pit as lab_pit
from simulators.lab.broker import find_mosquitto
from simulators.lab.campaign.real import real
from simulators.tables.cussec import CussecTable


class CussecInC(CussecTable):
    """A cussec table whose shaker and console are the C programs."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shaker = ShakerInC(random.Random(f"shaker in c {seed}"), f"C-S{seed}")
        self.console = ConsoleInC(random.Random(f"console in c {seed}"), f"C-C{seed}")
        self.devices |= {"shaker-1": self.shaker, "console-1": self.console}


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_the_devices_in_c_lose_no_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShakerInC, "library", compiled("shaker", tmp_path / "shaker"), raising=False)
    monkeypatch.setattr(ConsoleInC, "library", compiled("console", tmp_path / "console"), raising=False)
    tables = at_length(("cus",), tuple(f"cus{number}" for number in range(10)))
    for table in tables:
        monkeypatch.setitem(lab_pit.KINDS, table, CussecInC)
    kills = at_length(2, 60)
    report = await real(kills, 7, rounds=at_length(5, 100), tables=tables)
    assert report.failures == []
    assert sum(report.kills.values()) == kills
    assert report.lost == report.doubled == report.wrong == 0
    assert report.right > report.void
