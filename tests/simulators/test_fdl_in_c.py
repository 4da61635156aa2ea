"""Both wires of the shoe, the fixed dome, and the FDL devices in C of docs/examples, with kills of every process."""

import shutil
from pathlib import Path

import pytest
from campaign_in_c import CussecInC, compile_devices
from helpers import at_length

from simulators.lab import pit as lab_pit
from simulators.lab.broker import find_mosquitto
from simulators.lab.campaign.real import real


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is not installed")
async def test_both_wires_of_the_shoe_the_fixed_dome_and_the_devices_in_c_lose_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_devices(tmp_path)
    monkeypatch.setitem(lab_pit.KINDS, "cusc", CussecInC)
    kinds = ("bac", "text", "studio", "cusc")
    kills, copies = at_length(2, 60), at_length(1, 5)
    report = await real(kills, 7, rounds=at_length(3, 12), tables=kinds, copies=copies, least=at_length(0, 1000))
    assert report.failures == []
    assert sum(report.kills.values()) == kills
    assert report.lost == report.doubled == report.wrong == 0
    assert set(report.kinds) == set(kinds)
    for kind, count in report.kinds.items():
        assert count.rounds == count.right + count.void, kind
        assert count.right > count.void, kind
