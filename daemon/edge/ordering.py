"""The order of a table's past.

While the edge was away, each device with a memory of its own kept what happened at it. After a start they all tell it
at once, each in its own order, and the journal's order is the one the rules go by. So for a moment the oldest event
goes first: whoever still holds older ones is waited for, but not longer than PATIENCE.

A line that is dead for seconds does the same to one device at any time. Nobody is waited for then: what comes too late
is told with how much it is late, so that the rules know that the journal's order is not that of the table.
"""

import asyncio
from collections.abc import Iterable

__all__ = ["TOGETHER", "Gate"]

PATIENCE = 3.0
TOGETHER = 0.1
"""Seconds. Closer than this no hand follows another, and lines and clocks are not surer of what came first."""


class Gate:
    """One table's, for one life of the edge."""

    def __init__(self, expected: Iterable[str]) -> None:
        """`expected`: the devices that may have kept something: only they are waited for before they come."""
        self._behind = set(expected)
        self._heads: dict[str, tuple[float, str]] = {}
        self._moved = asyncio.Event()
        self._until: float | None = None
        self._newest: dict[str, float] = {}

    async def turn(self, device: str, happened: float) -> None:
        """Return when nothing older is still to come. `happened` is in the loop's seconds."""
        loop = asyncio.get_running_loop()
        if self._until is None:
            self._until = loop.time() + PATIENCE
        head = (happened, device)
        self._heads[device] = head
        self._moved.set()
        try:
            while any(self._may_be_older(other, head) for other in (self._behind | self._heads.keys()) - {device}):
                self._moved.clear()
                try:
                    # Whoever has come moves on by himself: only who may never come is waited for with a limit.
                    async with asyncio.timeout_at(self._until if self._behind else None):
                        await self._moved.wait()
                except TimeoutError:
                    self._behind.clear()
                    self._moved.set()
        finally:
            if self._heads.get(device) is head:  # else another of this device came meanwhile, and waits with its own
                del self._heads[device]
            self._moved.set()

    def caught_up(self, device: str) -> None:
        """It holds nothing from before any more."""
        if device in self._behind:
            self._behind.discard(device)
            self._moved.set()

    def overtaken(self, device: str, happened: float) -> int:
        """Note what `device` tells now. By how many ms something that another told before is newer; 0 for none.

        A device's own events are in the order of its counter, whatever its clock says.
        """
        others = (at for other, at in self._newest.items() if other != device)
        late = max(others, default=float("-inf")) - happened
        self._newest[device] = max(self._newest.get(device, float("-inf")), happened)
        return int(late * 1000) if late > TOGETHER else 0

    def _may_be_older(self, other: str, head: tuple[float, str]) -> bool:
        return other not in self._heads or self._heads[other] < head
