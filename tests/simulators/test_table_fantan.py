"""The dealer of a fantan table, who counts a second time."""

import pytest
from helpers import floor, virtual_time

from simulators.tables.fantan import FantanTable
from simulators.tables.table import Look


@pytest.mark.parametrize("shown", [True, False])
@virtual_time
async def test_count_over_a_dark_display_may_be_the_first_report(shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """He knows what is left, and no more; the result says that then. So it was in life 67002194."""
    table = FantanTable(1)
    entered: list[int] = []
    monkeypatch.setattr(table.console, "press", lambda *_: None)
    monkeypatch.setattr(table.console, "enter_buttons", lambda count, *_: entered.append(count))
    monkeypatch.setattr(table._rng, "random", lambda: 0.05)

    count = table.counter.count
    counted: list[float] = []

    def counts(now: float) -> int | None:
        counted.append(now)
        return count(now)

    monkeypatch.setattr(table.counter, "count", counts)

    def look() -> Look:
        """An old screen: no round is open. Or, after the count, the end of this one."""
        return Look("paying", "fan-1:1", {"separated": True}, {"fan-1:1": True} if shown and counted else {})

    await table.deal(floor(look), 1)
    [truth] = table.truth
    assert set(entered) == {truth.outcome["number"]}
    assert not truth.void
    assert ("count" in truth.outcome) == shown
