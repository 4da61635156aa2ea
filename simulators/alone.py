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

    An FDL device begins in `epoch`. Its counter starts anew, so its epoch must differ from its last one. 0: an epoch
    from the seed, for a device that is made once.
    """
    device = EACH_MODE[name](random.Random(seed))
    if isinstance(device, FdlDevice) and epoch:
        device.begin_in(epoch)
    return device


async def keep_busy(device: Device, pace: Pace, stir: Callable[[], None]) -> None:
    """Repeat the device's routine for ever. Some devices run by themselves."""
    hands = device.acts()
    while device.routine:
        for act, pause in device.routine:
            hands[act](pace.now())
            stir()
            await pace.sleep(pause)
