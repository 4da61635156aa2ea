"""One simulated device without a table: made by its name, and played with when nobody tells it what to do."""

import random
from collections.abc import Callable

from simulators import SIMULATORS
from simulators.clock import Pace
from simulators.device import Device

__all__ = ["keep_busy", "make"]


def make(name: str, seed: int) -> Device:
    """A device by its driver's name."""
    return SIMULATORS[name](random.Random(seed))


async def keep_busy(device: Device, pace: Pace, stir: Callable[[], None]) -> None:
    """Play with it for ever, as its routine says. Some run by themselves."""
    hands = device.acts()
    while device.routine:
        for act, pause in device.routine:
            hands[act](pace.now())
            stir()
            await pace.sleep(pause)
