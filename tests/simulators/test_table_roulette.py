"""The dealer of a roulette table, at the end of his night."""

import asyncio
from collections.abc import Callable

import pytest
from helpers import floor, virtual_time

from simulators.clock import Pace
from simulators.tables.roulette import RouletteTable
from simulators.tables.table import Look

FIRST = {"rou-1:1": True}


class Night:
    """One spin. `look` is given the seconds since the ball fell, None before, and the keys pressed."""

    def __init__(self, look: Callable[[float | None, list[str]], Look], monkeypatch: pytest.MonkeyPatch) -> None:
        self.pressed: list[str] = []
        self._pace = Pace()
        self._fell = float("inf")
        self._table = RouletteTable(1)
        self._look = look
        monkeypatch.setattr(self._table.console, "press", lambda key, _now, _reason=0: self.pressed.append(key))

    @property
    def since(self) -> float | None:
        """Seconds since the ball fell."""
        return None if self._pace.now() < self._fell else self._pace.now() - self._fell

    async def _turn(self) -> None:
        while True:
            self._table.wheel.wake(self._pace.now())
            if self._table.truth:
                self._fell = min(self._fell, self._pace.now())
            await asyncio.sleep(0.1)

    async def deal(self) -> None:
        """Until the dealer leaves."""

        turning = asyncio.create_task(self._turn())
        try:
            await self._table.deal(floor(lambda: self._look(self.since, self.pressed), self._pace), 1)
        finally:
            turning.cancel()
            await asyncio.wait([turning])


@pytest.mark.parametrize("behind", [1.0, 55.0])
@virtual_time
async def test_table_stays_until_the_display_shows_the_end_of_the_last_spin(
    behind: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still, `behind` by a minute, and the last spin waits for a person. So it was in life 67000131."""

    def look(since: float | None, pressed: list[str]) -> Look:
        if since is None or since < behind:
            return Look("idle", "", {}, FIRST)
        if "void" not in pressed:
            return Look("suspended", "rou-1:2", {}, FIRST)
        return Look("idle", "", {}, {**FIRST, "rou-1:2": False})

    night = Night(look, monkeypatch)
    await night.deal()
    assert night.pressed == ["bell", "paid", "void"]
    assert night.since is not None
    assert behind < night.since < behind + 30


@virtual_time
async def test_a_display_that_never_shows_it_keeps_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    night = Night(lambda *_: Look(), monkeypatch)
    await night.deal()
    assert night.since is not None
    assert 60 < night.since < 180
