"""What every simulated device is: its own side of the wire and the physics behind it.

Rule of this floor: a simulator shares the codec with its driver and nothing else. Time is handed in (seconds of
simulated time), bytes go in and out; it opens nothing and never sleeps. What chance decides comes from a seeded
`random.Random`.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

__all__ = ["Ailment", "Device", "Effect", "ailments"]

Effect: TypeAlias = Literal["counts", "void", "suspended", "none"]


class Ailment(Struct, frozen=True):
    """One thing that goes wrong with a device, and what must be seen of it at the other end.

    `text`: what happens physically. `told`: the fault codes and event types the host must tell, in any order.
    `round`: what becomes of a round in which it happens: it counts, is void, waits for a person, or is not touched
    because the device has no part in it. `person`: it stays until somebody puts it right (`repair`).
    """

    text: str
    told: tuple[str, ...]
    round: Effect
    person: bool = False


class Device(Protocol):
    """One simulated device."""

    name: ClassVar[str]
    """That of its driver."""
    faults: ClassVar[Mapping[str, Ailment]]
    """What may go wrong in the device."""
    line: ClassVar[Mapping[str, Ailment]]
    """What each fault of simulators/devices/line.py between it and the host must look like."""
    routine: ClassVar[tuple[tuple[str, float], ...]]
    """What a hand does with it when nobody tells it: acts, and the seconds after each. Empty: it runs by itself."""

    def __init__(self, rng: random.Random) -> None:
        """As it leaves the factory; what it may be made with beside chance has defaults."""
        ...

    def due(self) -> float:
        """The simulated second at which it wants to be woken next; infinity if it only listens."""
        ...

    def wake(self, now: float) -> bytes:
        """Live until `now`; what it sends meanwhile."""
        ...

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host, split anyhow; what it answers at once."""
        ...

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What a hand can do to it, by name; each takes the simulated second."""
        ...

    def inject(self, fault: str, now: float) -> None:
        """Begin one of `faults`: at once, or at the next occasion. Raises ValueError for a fault it does not have."""
        ...

    def repair(self, now: float) -> None:
        """A person does what the remedy says: faults that need one are over."""
        ...


def ailments(device: Device | type[Device]) -> dict[str, Ailment]:
    """Everything that may go wrong between the table and the host: in the device, then on its line."""
    return {**device.faults, **device.line}
