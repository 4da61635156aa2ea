"""The benchmark from outside, short: its subscriber finds a known delay, and what is many times too slow is named."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from simulators.lab.bench import outside
from simulators.lab.bench.spine import (
    KNOWN_MS,
    TOLERANCE_MS,
    Busy,
    Figure,
    Report,
    at_percent,
    markdown,
    quick_bench,
    too_slow,
)
from simulators.lab.bench.targets import targets, targets_markdown
from simulators.lab.broker import find_mosquitto


def _can_build() -> bool:
    if shutil.which("gcc") is None or find_mosquitto() is None:
        return False
    asked = subprocess.run(["gcc", "-E", "-"], input=b"#include <mosquitto.h>", capture_output=True, check=False)
    return asked.returncode == 0


def figure(side: str, rate: int, p50: float, per_s: float, cpu: dict[str, float]) -> Figure:
    return Figure(side, "event", rate, 100, p50, p50 * 2, p50 * 3, (p50, p50), per_s, cpu, 0)


def report(*figures: Figure, busy: tuple[Busy, ...] = ()) -> Report:
    return Report(
        "m", "2026-11-23", (0.1, 0.2), 5.0, 5.1, figures, (), {100: (0.5, 1.0)}, (), busy, 36.0, 0.001, ("no node",)
    )


@pytest.mark.system
@pytest.mark.skipif(not _can_build(), reason="mosquitto, gcc or libmosquitto-dev is not installed")
def test_quick_run_measures_every_line() -> None:
    try:
        found = quick_bench([50], 1.0, lambda _: None)
    except outside.CannotMeasureError as error:
        pytest.skip(str(error))  # the machine is too busy
    assert abs(found.found_ms - KNOWN_MS) <= TOLERANCE_MS
    assert {(one.side, one.rate, one.lines) for one in found.figures if one.what == "event"} == {
        (side, rate, lines) for side in ("edge", "rules", "durable") for rate, lines in ((50, 50), (0, 3_000))
    }
    assert any(one.what == "result" and one.side == "rules" for one in found.figures)
    assert all(0 < one.p50 <= one.p99 <= one.p999 and min(one.cpu_us.values()) > 0 for one in found.figures)
    assert [(one.tables, one.devices) for one in found.grown] == [(2, 4)]
    assert "C bridge, durable, wire to event" in markdown(found)


def test_edge_that_is_many_times_slower_is_named() -> None:
    yard = [figure("durable", 100, 1.0, 100, {"bridge": 30.0}), figure("durable", 0, 9.0, 15_000, {"bridge": 30.0})]
    good = [figure("edge", 100, 14.0, 100, {"edge": 800.0}), figure("edge", 0, 9.0, 1_100, {"edge": 90.0})]
    assert too_slow(report(*yard, *good)) == []
    slow = [figure("edge", 100, 16.0, 100, {"edge": 1000.0}), figure("edge", 0, 9.0, 900, {"edge": 90.0})]
    assert too_slow(report(*yard, *slow)) == [
        "feltd's edge in 100 lines a second: cpu 1000 beside 30, over 30 times",
        "feltd's edge in 100 lines a second: p50 16 beside 1, over 15 times",
        "feltd's edge in a burst: burst 15000 beside 900, over 15 times",
    ]


def test_report_shows_ratios_to_the_durable_bridge_and_what_was_left_out() -> None:
    yard = [figure("durable", 100, 2.0, 100, {"bridge": 30.0}), figure("durable", 0, 9.0, 15_000, {"bridge": 30.0})]
    text = markdown(report(*yard, figure("edge", 100, 3.0, 100, {"edge": 300.0}), figure("edge", 0, 9, 7_500, {})))
    assert (
        "| feltd's edge, wire to event | 100 | 3.00 / 6.00 / 9.00 | 3.00 to 3.00 | 1.50 / 1.50 | edge 300 µs |" in text
    )
    assert "| feltd's edge, wire to event | burst | 7,500 events/s | | 0.50 | - |" in text
    assert "Left out: no node." in text


def test_targets_are_met_not_met_or_not_measured() -> None:
    yard = figure("durable", 100, 2.0, 100, {"bridge": 30.0})
    burst = figure("rules", 0, 9.0, 30_000, {"edge": 40.0, "rules": 50.0})
    busy = tuple(Busy(8, nice, "result", 100, 2.0, 3.0, p99) for nice, p99 in ((0, 99.0), (-5, 6.5)))
    found: dict[str, tuple[Any, ...]] = {
        one.what: (one.limit, one.measured, one.met)
        for one in targets(report(yard, figure("edge", 100, 3.0, 100, {"edge": 300.0}), burst, busy=busy))
    }
    assert found["wire to event at 100/s, p50, times the durable C bridge"] == (1.5, 1.5, True)
    assert found["wire to event at 2/s, p50, times the durable C bridge"] == (1.4, None, None)
    assert found["wire to result at 100/s, p50, times wire to event"] == (1.7, None, None)
    assert found["edge: events/s of a core"] == (25_000, 25_000, True)
    assert found["rules: events/s of a core"] == (22_000, 20_000, False)
    assert found["memory of an edge with three devices, MiB"] == (33.0, 36.0, False)
    assert found["wire to result under a load of 8, p99, ms"] == (10.0, 6.5, True)
    assert found["wire to result under a load of 8, p99, times that of an idle machine"] == (3.0, 3.25, False)
    text = targets_markdown(report(burst))
    assert "| rules: events/s of a core | at least 22,000 | 20,000 | **not met** |" in text
    assert "| wire to event at 2/s, p50, times the durable C bridge | at most 1.4 | - | not measured |" in text


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("simulators.lab.bench.outside.shutil.which", lambda _: None)
    with pytest.raises(outside.CannotMeasureError, match="apt-get install gcc libmosquitto-dev"):
        outside.build(tmp_path)


def test_percentiles_are_values_that_occurred() -> None:
    assert [at_percent([3.0, 1.0, 2.0, 4.0], percent) for percent in (0, 50, 99)] == [1.0, 3.0, 4.0]
