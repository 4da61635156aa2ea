"""The dealer of a roulette table, at the end of his night."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from helpers import virtual_time

from simulators.clock import Pace
from simulators.port import Socket
from simulators.table_roulette import RouletteTable
from simulators.tables import Floor, Look

BEHIND = 55.0


@pytest.mark.parametrize("behind", [1.0, BEHIND])
@virtual_time
async def test_nobody_leaves_before_the_display_shows_the_end_of_the_last_spin(
    behind: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still, `behind` by a minute, and the last spin waits for a person. So it was in life 67000131."""
    table, pace = RouletteTable(1), Pace()
    pressed: list[str] = []
    monkeypatch.setattr(table.console, "press", lambda key, _now, _reason=0: pressed.append(key))
    fell = 0.0

    def look() -> Look:
        if not fell or pace.now() < fell + behind:
            return Look("idle", "", {}, {"rou-1:1": True})
        if "void" not in pressed:
            return Look("suspended", "rou-1:2", {}, {"rou-1:1": True})
        return Look("idle", "", {}, {"rou-1:1": True, "rou-1:2": False})

    async def ready() -> bool:
        return False

    async def tell(*_: Any) -> str:
        return "done"

    async def turn() -> None:
        nonlocal fell
        while True:
            table.wheel.wake(pace.now())
            if table.truth and not fell:
                fell = pace.now()
            await asyncio.sleep(0.1)

    socket = cast("Socket", SimpleNamespace(stir=lambda: None))
    turning = asyncio.create_task(turn())
    try:
        await table.deal(Floor({"wheel-1": socket, "console-1": socket}, pace, ready, look, tell), 1)
    finally:
        turning.cancel()
        await asyncio.wait([turning])
    assert pressed == ["bell", "paid", "void"]
    assert pace.now() < fell + behind + 30


@virtual_time
async def test_a_display_that_never_shows_it_keeps_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    table, pace = RouletteTable(1), Pace()
    monkeypatch.setattr(table.console, "press", lambda *_: None)

    async def ready() -> bool:
        return False

    async def tell(*_: Any) -> str:
        return "done"

    async def turn() -> None:
        while True:
            table.wheel.wake(pace.now())
            await asyncio.sleep(0.1)

    socket = cast("Socket", SimpleNamespace(stir=lambda: None))
    turning = asyncio.create_task(turn())
    try:
        await asyncio.wait_for(
            table.deal(Floor({"wheel-1": socket, "console-1": socket}, pace, ready, Look, tell), 1), 600
        )
    finally:
        turning.cancel()
        await asyncio.wait([turning])
