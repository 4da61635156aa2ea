"""One simulated device without a table: made by its name, and played at random when it gets no commands."""

import random
from collections.abc import Callable

from simulators import EACH_MODE
from simulators.clock import Pace
from simulators.devices.device import Device
from simulators.devices.fdl_device import FdlDevice

__all__ = ["keep_busy", "make"]


def make(name: str, seed: int, epoch: int = 0) -> Device:
    """A device by its driver's name, or by that of another mode of it.

    One that speaks FDL begins in `epoch`: it comes without the counter that it had, so not in the epoch it had. 0: one
    of the seed's, for who makes it once.
    """
    device = EACH_MODE[name](random.Random(seed))
    if isinstance(device, FdlDevice) and epoch:
        device.begin_in(epoch)
    return device


async def keep_busy(device: Device, pace: Pace, stir: Callable[[], None]) -> None:
    """Play with it for ever, as its routine says. Some run by themselves."""
    hands = device.acts()
    while device.routine:
        for act, pause in device.routine:
            hands[act](pace.now())
            stir()
            await pace.sleep(pause)
