"""What a process does from time to time happens at common moments."""

import asyncio

from helpers import virtual_time
from hypothesis import given, strategies as st

from daemon.pulse import PULSE_S, next_pulse, pulse


@given(st.floats(0, 1e8), st.sampled_from([0.001, 0.2, PULSE_S]))
def test_next_pulse_is_the_first_after_now(now: float, every_s: float) -> None:
    due = next_pulse(now, every_s)
    assert now < due <= now + every_s + 1e-4
    assert abs(due / every_s - round(due / every_s)) < 1e-3
    # A timer that fires early by the resolution of the clock is not followed by another at once.
    assert next_pulse(due - 1e-9, every_s) > due


@virtual_time
async def test_loops_that_began_at_different_times_wake_together() -> None:
    woken: list[float] = []

    async def look() -> None:
        for _ in range(3):
            await pulse()
            woken.append(round(asyncio.get_running_loop().time(), 3))

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(look())
            await asyncio.sleep(0.3)
    assert sorted(set(woken)) == [woken[0], woken[0] + PULSE_S, woken[0] + 2 * PULSE_S]
