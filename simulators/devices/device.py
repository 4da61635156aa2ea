"""The interface of a simulated device: its side of the wire, and its physics.

A simulator shares the codec with its driver and nothing else. Time is a parameter (seconds of simulated time), bytes go
in and out; it opens nothing and never sleeps. Chance comes from a seeded `random.Random`.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

__all__ = ["Ailment", "Device", "Effect", "ailments"]

Effect: TypeAlias = Literal["counts", "void", "suspended", "none"]


class Ailment(Struct, frozen=True):
    """One fault of a device, and what the host must report of it.

    `text`: what happens physically. `told`: the fault codes and event types that the host must report, in any order.
    `round`: the effect on a round: it counts, is void, is suspended, or is not affected because the device has no part
    in it. `person`: it stays until a person repairs it (`repair`).
    """

    text: str
    told: tuple[str, ...]
    round: Effect
    person: bool = False


class Device(Protocol):
    """One simulated device.

    `stands_in`, for a device that no table of simulators/tables has: the kind of table in which it is tested and the
    device there that it replaces: `("bac", "shoe-1")`.
    """

    name: ClassVar[str]
    """The name of its driver."""
    faults: ClassVar[Mapping[str, Ailment]]
    """Faults of the device."""
    line: ClassVar[Mapping[str, Ailment]]
    """Faults of the line (simulators/devices/line.py), and what the host must report of them."""
    routine: ClassVar[tuple[tuple[str, float], ...]]
    """What a person does with it by default: acts, and the seconds to wait after each. Empty: it runs by itself."""

    def __init__(self, rng: random.Random) -> None:
        """As it leaves the factory; further parameters have defaults."""
        ...

    def due(self) -> float:
        """The simulated second of its next action; infinity if it only listens."""
        ...

    def wake(self, now: float) -> bytes:
        """Act until `now`; returns the bytes sent meanwhile."""
        ...

    def hear(self, data: bytes, now: float) -> bytes:
        """Take bytes from the host, in any pieces; returns the immediate answer."""
        ...

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What a person can do to it, by name; each takes the simulated second."""
        ...

    def inject(self, fault: str, now: float) -> None:
        """Begin one of `faults`, at once or at the next occasion. Raises ValueError for an unknown fault."""
        ...

    def repair(self, now: float) -> None:
        """A person follows the remedy: all faults that need a person end."""
        ...


def ailments(device: Device | type[Device]) -> dict[str, Ailment]:
    """All faults of a device: its own, then those of its line."""
    return {**device.faults, **device.line}
