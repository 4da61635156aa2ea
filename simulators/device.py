"""What every simulated device is: its own side of the wire and the physics behind it.

Rule of this floor: a simulator shares the codec with its driver and nothing else. Time is handed in (seconds of
simulated time), bytes go in and out; it opens nothing and never sleeps. What chance decides comes from a seeded
`random.Random`.
"""

from typing import ClassVar, Protocol


class Device(Protocol):
    """One simulated device."""

    name: ClassVar[str]
    faults: ClassVar[tuple[str, ...]]

    def due(self) -> float:
        """The simulated second at which it wants to be woken next; infinity if it only listens."""
        ...

    def wake(self, now: float) -> bytes:
        """Live until `now`; what it sends meanwhile."""
        ...

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host, split anyhow; what it answers at once."""
        ...

    def inject(self, fault: str, now: float) -> None:
        """Begin one of `faults`. Raises ValueError for a fault it does not have."""
        ...
