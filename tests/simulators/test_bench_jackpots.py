"""The benchmark of jackpots, short: it measures what it says, and pools that are not exact are no figure."""

import pytest
from helpers import broker_may_be_late

from simulators.lab.bench.jackpots import (
    BET,
    SEATS,
    Bets,
    JackpotRow,
    JackpotsReport,
    Levels,
    bench_jackpots,
    jackpots_markdown,
)
from simulators.lab.bench.spine import NothingCameError
from simulators.lab.broker import find_mosquitto


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_each_bet_comes_into_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    broker_may_be_late(monkeypatch)
    cases = (("devices", 1), ("rules", 4))
    report = await bench_jackpots(lambda _: None, rate=500, seconds=0.5, turns=1, cases=cases)
    assert [(row.counts, row.pools) for row in report.rows] == list(cases)
    for row in report.rows:
        assert 0 < row.level[0] <= row.level[1] <= row.level[2]
        assert min(*row.bare, *row.synced, row.rate, row.sustained) > 0


@pytest.mark.parametrize("counts", ["devices", "rules"])
def test_bets_are_shared_evenly_among_pools(counts: str) -> None:
    fed: dict[str, int] = {}
    for _, _, pool, bets in Bets(counts, 4).next(32):
        fed[pool] = fed.get(pool, 0) + bets
    assert fed == {f"p-{pool}": 8 * SEATS for pool in range(4)}


def test_a_pool_that_is_not_what_was_bet_is_an_error() -> None:
    levels = Levels()
    levels.published("p-0", 10)
    levels.amounts["p-0"] = 1_000_000 + 10 * BET * 3 // 200 - 1
    with pytest.raises(NothingCameError, match="p-0 is 1000149 after 10 bets and should be 1000150"):
        levels.check()


def test_the_report_says_what_is_met() -> None:
    quick = JackpotRow("devices", 4, 2_000.0, (10.0, 49.0, 60.0), (1.0, 4.0, 5.0), (2.0, 3.0, 4.0), 99.0, 4_000.0)
    slow = JackpotRow("rules", 1, 2_000.0, (10.0, 51.0, 60.0), (1.0, 4.0, 5.0), (2.0, 3.0, 4.0), 99.0, 4_000.0)
    text = jackpots_markdown(JackpotsReport("m", "2026-11-23", (quick, slow)))
    assert "| devices | 4 | 2,000 | 10.0 / 49.0 / 60.0 ms | 1.0 / 4.0 / 5.0 ms | 2.0 / 3.0 / 4.0 ms | 7.0 |" in text
    assert text.count("| met |") == 1
    assert text.count("| **not met** |") == 1
