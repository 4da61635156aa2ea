"""Virtual time: hours in no time, and never past what is still under way."""

import asyncio
import time

from helpers import virtual_time


@virtual_time
async def test_hours_pass_at_once() -> None:
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    await asyncio.sleep(7200)
    assert loop.time() >= 7200
    assert time.monotonic() - began < 60


@virtual_time
async def test_timers_fire_in_order() -> None:
    seen: list[int] = []

    async def one(n: int) -> None:
        await asyncio.sleep(n)
        seen.append(n)

    async with asyncio.TaskGroup() as group:
        for n in (3, 1, 2):
            group.create_task(one(n))
    assert seen == [1, 2, 3]
