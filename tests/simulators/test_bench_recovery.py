"""The recovery benchmark, on a small journal: it measures what it says, and a journal that is not good is no figure."""

import asyncio
from pathlib import Path

import pytest
from helpers import broker_may_be_late

from daemon.journal.signing import PublicKey, make_key, public_path
from daemon.journal.verify import verify
from simulators.lab.bench import recovery as bench_module
from simulators.lab.bench.recovery import RecoveryReport, bench_recovery, recovery_markdown, write_journal
from simulators.lab.broker import find_mosquitto


def test_the_journal_is_one_that_the_edge_would_have_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "TABLES", 3)
    make_key(tmp_path / "k")
    said: list[str] = []
    last, rows = write_journal(tmp_path / "edge.db", tmp_path / "k", 5_000, said.append)
    assert last == rows >= 5_000
    report = verify(tmp_path / "edge.db", [PublicKey.load(public_path(tmp_path / "k"))])
    assert report.good
    assert (report.rows, report.signed_rows, report.tables) == (rows, rows, 3)


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_an_edge_and_a_consumer_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker_may_be_late(monkeypatch)
    monkeypatch.chdir(tmp_path)
    report = await bench_recovery(lambda _: None, events=20_000, gap=1_000, turns=1)
    assert report.events >= 20_000
    assert report.edge[0] > 0
    assert report.consumer[0] > 0
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


def test_the_report_says_what_is_met() -> None:
    report = RecoveryReport("m", "2026-11-21", 10_000_000, 5, 1_900_000, 1284, 10_000, (0.4, 3.0, 0.5), (6.0,), 60.0)
    text = recovery_markdown(report)
    assert "| 0.40 3.00 0.50 | 0.50 | 2 s: met |" in text
    assert "| 6.00 | 6.00 | 5 s: **not met** |" in text
