"""Faults that a person injects into a running pit, and heals."""

from typing import ClassVar

from msgspec import Struct

from simulators.clock import Pace
from simulators.devices.device import Ailment, ailments
from simulators.lab.pit import Pit

__all__ = ["Injected", "LiveFaults"]


class Injected(Struct, frozen=True):
    """One injected fault, and the simulated second. `stays`: until a person heals it."""

    table: str
    device: str
    fault: str
    text: str
    stays: bool
    at: float


class LiveFaults:
    """Injects faults of the devices at a table, and heals them."""

    KEPT: ClassVar[int] = 100
    FLEETING_S: ClassVar[float] = 60.0
    """A fault that ends by itself counts as open for so many simulated seconds."""

    def __init__(self, pit: Pit, pace: Pace) -> None:
        """The random numbers of `inject_any` come from the pit's seed."""
        self._pit = pit
        self._pace = pace
        self._rng = pit.chance("live faults")
        self._injected: list[Injected] = []
        self.count = 0

    @property
    def open(self) -> list[Injected]:
        """The faults that are not healed yet, the oldest first."""
        since = self._pace.now() - self.FLEETING_S
        return [one for one in self._injected if one.stays or one.at > since]

    def choices(self, table: str) -> list[tuple[str, str, Ailment]]:
        """The device, the name and what happens, of each fault that is possible at a table."""
        return [
            (name, fault, ailment)
            for name, socket in self._pit.sockets.get(table, {}).items()
            for fault, ailment in ailments(socket.device).items()
        ]

    def inject(self, table: str, device: str, fault: str) -> Injected:
        """Begin a fault. A pulled cable stays out until a person heals it."""
        socket = self._pit.sockets[table][device]
        ailment = ailments(socket.device)[fault]
        socket.inject(fault)
        pulled = socket.line.plug_at < float("inf")
        if pulled:
            socket.line.plug_at = float("inf")
        return self.note(table, device, fault, ailment, stays=pulled)

    def note(self, table: str, device: str, fault: str, ailment: Ailment, *, stays: bool = False) -> Injected:
        """Record a fault that began."""
        one = Injected(table, device, fault, ailment.text, stays or ailment.person, self._pace.now())
        self._injected = [*self.open, one][-self.KEPT :]
        self.count += 1
        return one

    def inject_any(self, table: str) -> Injected | None:
        """Begin a random fault of a table; None if it has no simulated device."""
        choices = self.choices(table)
        if not choices:
            return None
        device, fault, _ = self._rng.choice(choices)
        return self.inject(table, device, fault)

    def heal(self, *tables: str) -> int:
        """Follow the remedies at these tables, or at all tables; returns the number of faults that were open."""
        places = tables or tuple(self._pit.sockets)
        for table in places:
            for socket in self._pit.sockets.get(table, {}).values():
                socket.port.plug()
                socket.device.repair(self._pace.now())
                socket.stir()
        healed = [one for one in self.open if one.table in places]
        self._injected = [one for one in self._injected if one.table not in places]
        return len(healed)
