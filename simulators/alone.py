"""One simulated device without a table: what it can be told to do, and what it does by itself when nobody tells it."""

import random
from collections.abc import Callable
from typing import Any

from simulators.bee_tek_shoe import Shoe
from simulators.cammegh_ss2 import Wheel
from simulators.clock import Pace
from simulators.device import Device
from simulators.fdl_console import KEYS, Console
from simulators.fdl_shaker import Shaker

__all__ = ["acts", "keep_busy", "make"]


def make(name: str, seed: int) -> Device:
    """A device by its driver's name."""
    rng = random.Random(seed)
    match name:
        case Wheel.name:
            return Wheel(rng)
        case Shoe.name:
            return Shoe(rng)
        case Shaker.name:
            return Shaker(rng)
        case _:
            return Console(rng)


def acts(device: Device) -> dict[str, Callable[[float], Any]]:
    """What a hand can do to it, by name; each takes the simulated second."""
    match device:
        case Shoe():
            return {"draw": device.draw, "shuffle": device.shuffle}
        case Shaker():
            return {
                "cover": device.cover,
                "pull_lever": device.pull_lever,
                "agitate": device.agitate,
                "uncover": device.uncover,
                "read": device.read,
            }
        case Console():
            return {key: _key(device, key) for key in KEYS}
        case _:
            return {}


def _key(console: Console, key: str) -> Callable[[float], None]:
    def press(now: float) -> None:
        console.press(key, now)

    return press


async def keep_busy(device: Device, pace: Pace, stir: Callable[[], None]) -> None:
    """Play with it for ever. A wheel runs by itself."""
    routine: tuple[tuple[str, float], ...] = ()
    match device:
        case Shoe():
            routine = (("draw", 2.0),)
        case Shaker():
            routine = (
                ("cover", 1.0),
                ("pull_lever", 0.8),
                ("pull_lever", 0.8),
                ("pull_lever", 15.0),
                ("uncover", 1.0),
                ("read", 6.0),
            )
        case Console():
            routine = (("bets_opened", 15.0), ("bell", 12.0), ("paid", 2.0))
        case _:
            return
    hands = acts(device)
    while True:
        for act, pause in routine:
            if isinstance(device, Shoe) and not device.left:
                device.shuffle(pace.now())
            hands[act](pace.now())
            stir()
            await pace.sleep(pause)
