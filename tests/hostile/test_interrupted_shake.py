"""Dice that an interrupted shake moved, after a whole one or after the bell: they are not those that count."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest
from memory_pit import in_memory

from simulators.lab.campaign.loop import VirtualLoop
from simulators.tables.studio import FixedDomeTable
from simulators.tables.table import Floor


class _Interrupts(FixedDomeTable):
    """In its second round the dealer begins another shake and pulls the plug of it."""

    when: ClassVar[str] = ""

    async def _interrupt(self, floor: Floor) -> None:
        if len(self.truth) == 1:
            self.shaker.inject("cut_short", floor.pace.now())
            assert await floor.tell("shaker-1", "agitate", {}) == "failed"

    async def _shake(self, floor: Floor) -> None:
        await super()._shake(floor)
        if self.when == "before the bets":
            await self._interrupt(floor)

    async def _read(self, floor: Floor) -> None:
        if self.when == "after the bell":
            await self._interrupt(floor)
        await super()._read(floor)


class _BeforeTheBets(_Interrupts):
    when: ClassVar[str] = "before the bets"


class _AfterTheBell(_Interrupts):
    when: ClassVar[str] = "after the bell"


@pytest.mark.parametrize(("kind", "reason"), [(_BeforeTheBets, "not_agitated"), (_AfterTheBell, "equipment_fault")])
def test_no_round_is_decided_by_dice_that_an_interrupted_shake_left(kind: Any, reason: str, tmp_path: Path) -> None:
    async def body() -> list[str]:
        async with in_memory("t", 7, tmp_path, {"t": kind}) as world:
            await world.pit.deal(world.pace, 3, world.site, world.utc)
            await world.settle(world.pit.dealt())
            [outcomes] = world.pit.outcomes.values()
            return [one.void for one in outcomes]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(body()) == ["", reason, ""]
