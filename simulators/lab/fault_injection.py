"""Random faults in a pit, from a seed: every listed fault of every device of every table, at random moments."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable

from simulators.clock import Pace
from simulators.devices.device import Ailment, ailments
from simulators.lab.pit import Pit

__all__ = ["FaultInjector"]

# Simulated seconds between two faults on one table, and from a fault to its repair.
FAULT_INTERVAL_S = (30.0, 120.0)
REPAIR_DELAY_S = (15.0, 60.0)


class FaultInjector:
    """Injects the faults and counts them."""

    def __init__(self, pit: Pit, seed: int, hear: Callable[[str, str, str, Ailment], object] = lambda *_: None) -> None:
        """The same seed gives the same faults. `hear` gets the table, device, name and ailment of each."""
        self._pit = pit
        self._seed = seed
        self._hear = hear
        self.done: dict[str, Counter[str]] = {table: Counter() for table in pit.tables}
        """By table, the number of times each fault ("device.fault") was injected."""
        self.harmful: Counter[str] = Counter()
        """By table, the number of injected faults that may cost a round."""

    async def run(self, pace: Pace) -> None:
        """Inject faults until cancelled."""
        async with asyncio.TaskGroup() as group:
            for table in self._pit.tables:
                group.create_task(self._at(table, pace, group))

    async def _at(self, table: str, pace: Pace, group: asyncio.TaskGroup) -> None:
        rng = random.Random(f"mischief {self._seed} {table}")
        choices = [
            (name, fault, ailment)
            for name, socket in self._pit.sockets[table].items()
            for fault, ailment in ailments(socket.device).items()
        ]
        while True:
            await pace.sleep(rng.uniform(*FAULT_INTERVAL_S))
            name, fault, ailment = rng.choice(choices)
            socket = self._pit.sockets[table][name]
            socket.inject(fault)
            self._note(table, name, fault, ailment)
            if ailment.person:
                group.create_task(self._repair(table, name, pace, rng.uniform(*REPAIR_DELAY_S)))

    def _note(self, table: str, name: str, fault: str, ailment: Ailment) -> None:
        self.done[table][f"{name}.{fault}"] += 1
        self._hear(table, name, fault, ailment)
        if ailment.round in ("void", "suspended"):
            self.harmful[table] += 1

    async def _repair(self, table: str, name: str, pace: Pace, seconds: float) -> None:
        await pace.sleep(seconds)
        socket = self._pit.sockets[table][name]
        socket.device.repair(pace.now())
        socket.stir()

    def repair_all(self, pace: Pace) -> None:
        """Repair all devices at the end."""
        for sockets in self._pit.sockets.values():
            for socket in sockets.values():
                socket.device.repair(pace.now())
                socket.stir()
