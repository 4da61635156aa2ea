"""Orders the events of a table after an outage of the edge, and measures how late other events come.

While the edge is down, devices with a memory keep their events. After a start they all report their backlogs at once.
The rules go by the order of the journal, so the edge merges the backlogs by event time: the oldest event goes first,
and a device that may hold an older one is waited for, at most MAX_WAIT_S.

Later, one bad line can delay the events of a single device. These are not waited for: the event contains its lateness,
and the rules decide. After a start the journal shows which events had been reported before: chips that a sensor kept
from before the bell are late, although the bell was read by the process before.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import DecodeError, Struct, json

from daemon.journal.store import Journal
from protocols.contract.events import ASIDE
from protocols.link import Chunk

__all__ = ["SIMULTANEOUS_S", "EventOrdering", "reported_before"]

MAX_WAIT_S = 3.0
SIMULTANEOUS_S = 0.1
"""Events closer than this are not ordered: lines and clocks are no more precise."""
RECALLED = 100
"""Rows of a table that are read at a start for the times of its devices' newest events."""
_NOT_ORDERED = frozenset(str(event.__struct_config__.tag) for event in ASIDE)


class _Age(Struct):
    age_ms: int = 0


def reported_before(journal: Journal, table: str) -> dict[str, datetime]:
    """By device, the time of its newest event among the last rows of the table. Raises BadJournal."""
    newest: dict[str, datetime] = {}
    last = journal.last(table)
    for row in journal.range(table, last - RECALLED + 1, last):
        if row.type in _NOT_ORDERED or row.unreadable:
            continue
        with contextlib.suppress(DecodeError):  # not written by an edge
            happened = row.time - timedelta(milliseconds=json.decode(row.data, type=_Age).age_ms)
            newest[row.device] = max(newest.get(row.device, happened), happened)
    return newest


class EventOrdering:
    """The order of one table, for one run of the edge."""

    def __init__(self, expected: Iterable[str], before: Mapping[str, datetime] | None = None) -> None:
        """`expected`: the devices that may have a backlog. Other devices are not waited for before they report.

        `before`: the times of the newest events that the process before has reported, by device.
        """
        self.behind = set(expected)
        """Devices whose backlog is not complete."""
        self.heads: dict[str, tuple[float, str]] = {}
        """By device, the time of the event that waits for its turn. Nearly always both are empty."""
        self._moved = asyncio.Event()
        self._until: float | None = None
        self._newest: dict[str, float] = {}
        self._before = dict(before or {})

    async def wait_turn(self, device: str, happened: float) -> None:
        """Return when no older event can still come. `happened` is in seconds of the loop's clock."""
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + MAX_WAIT_S
        if not self.behind and not self.heads:
            return
        head = (happened, device)
        self.heads[device] = head
        self._moved.set()
        try:
            while any(self._may_be_older(other, head) for other in (self.behind | self.heads.keys()) - {device}):
                self._moved.clear()
                try:
                    # The limit applies only to devices that may never report.
                    async with asyncio.timeout_at(self._until if self.behind else None):
                        await self._moved.wait()
                except TimeoutError:
                    self.behind.clear()
                    self._moved.set()
        finally:
            if self.heads.get(device) is head:  # otherwise a newer event of this device waits with its own head
                del self.heads[device]
            self._moved.set()

    def caught_up(self, device: str) -> None:
        """The device has reported its backlog."""
        if device in self.behind:
            self.behind.discard(device)
            self._moved.set()

    def late_ms(self, device: str, chunk: Chunk, age: float) -> int:
        """The ms by which a newer event of another device was reported earlier; 0 for none. Keeps this event's time.

        The event happened `age` seconds before `chunk` arrived. A device's own events are ordered by its counter,
        independent of its clock.
        """
        while self._before:  # if the clock was set back since then, that time is in the future: now is used
            other, at = self._before.popitem()
            self._newest[other] = chunk.tick - max((chunk.at - at).total_seconds(), 0.0)
        happened = chunk.tick - age
        others = (at for other, at in self._newest.items() if other != device)
        late = max(others, default=float("-inf")) - happened
        self._newest[device] = max(self._newest.get(device, float("-inf")), happened)
        return int(late * 1000) if late > SIMULTANEOUS_S else 0

    def _may_be_older(self, other: str, head: tuple[float, str]) -> bool:
        return other not in self.heads or self.heads[other] < head
