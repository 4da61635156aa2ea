"""Virtual time: hours in no time, and never past what is still under way."""

import asyncio
from pathlib import Path
from random import Random

from helpers import virtual_time

from simulators.clock import Pace
from simulators.devices.fdl_timer import Timer
from simulators.ports.port import Pty, Socket


@virtual_time
async def test_hours_pass_at_once() -> None:
    """On the wall clock this would exceed the time limit of a test."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(7200)
    assert loop.time() >= 7200


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


@virtual_time
async def test_a_device_that_is_due_in_less_than_a_moment_does_not_hold_the_clock(tmp_path: Path) -> None:
    """Nearer than the resolution of the loop's clock, a timer fires before time has passed."""

    class Hasty(Timer):
        woken = 0

        def due(self) -> float:
            return 2.0 if self.woken < 2 else self.last + 3e-10

        def wake(self, now: float) -> bytes:
            self.woken += 1
            self.last = now
            if self.woken > 10:
                raise AssertionError("it is woken again and again while no time passes")
            return b""

    device = Hasty(Random(1))
    living = asyncio.create_task(Socket(device, Pty(tmp_path / "tty"), Pace()).live())
    await asyncio.sleep(2.000_005)
    assert not living.done(), living.exception()
    living.cancel()
    await asyncio.gather(living, return_exceptions=True)
