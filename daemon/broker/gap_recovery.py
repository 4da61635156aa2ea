"""Gap recovery: readers find gaps by `seq`, and the writer of the stream replays them from its journal.

It serves events of an edge and entries of a pool (`cmd/replay`), and verdicts (`round/cmd/replay`). A reader therefore
loses nothing that the broker lost or that was published while the reader was offline.
"""

from typing import Generic, Protocol, TypeVar

import msgspec

from daemon.broker.session import Session
from protocols.contract.documents import ReplayRequest

__all__ = ["ASK_AGAIN", "BUFFER", "PAGE", "Again", "Stream", "ask"]

BUFFER = 2000
PAGE = 500
ASK_AGAIN, ASK_AT_LEAST = 2.0, 30.0
"""Seconds until a request is repeated: the first interval, and the longest."""


class Numbered(Protocol):
    """An item with a `seq`."""

    @property
    def seq(self) -> int:
        """Gapless, from 1."""
        ...


T = TypeVar("T", bound=Numbered)


class Again:
    """When to repeat a request, because a request or its answer may be lost. The interval grows."""

    def __init__(self, due: float = float("-inf")) -> None:
        """`due`: when to request first."""
        self._due = due
        self._first = 0
        self._wait = ASK_AGAIN

    def due(self, first: int, now: float) -> bool:
        """Whether to request at `now` what is missing from `first` on. True counts as requested."""
        if now < self._due:
            return False
        self._wait = min(self._wait * 2, ASK_AT_LEAST) if first == self._first else ASK_AGAIN
        self._first = first
        self._due = now + self._wait
        return True


class Stream(Generic[T]):
    """The events of one journal for one table: deduplicated and in order."""

    def __init__(self, expected: int = 1) -> None:
        """`expected`: the next seq."""
        self.expected = expected
        self._early: dict[int, T] = {}
        self._again: Again | None = None

    def take(self, item: T) -> list[T]:
        """The events that can be used now, in order. A duplicate gives nothing; an early event waits, if there is
        room.
        """
        if item.seq < self.expected:
            return []
        if item.seq > self.expected:
            if len(self._early) >= BUFFER and item.seq not in self._early:
                last = max(self._early)
                if item.seq > last:
                    return []
                del self._early[last]
            self._early[item.seq] = item
            return []
        self.expected += 1
        return [item, *self._following()]

    def skip(self, to: int) -> list[T]:
        """Continue from `to`, before or after the expected seq: the events that wait from there on, in order."""
        if to < self.expected:
            self._early.clear()  # they belong to the old count
        self._early = {seq: item for seq, item in self._early.items() if seq >= to}
        self.expected = to
        return self._following()

    def _following(self) -> list[T]:
        ready = []
        while (item := self._early.pop(self.expected, None)) is not None:
            ready.append(item)
            self.expected += 1
        return ready

    @property
    def gap(self) -> tuple[int, int] | None:
        """First and last seq that are missing before the waiting events."""
        return (self.expected, min(self._early) - 1) if self._early else None

    @property
    def unsettled(self) -> bool:
        """Whether `to_ask` has something to do: there is a gap, or one that was requested has closed."""
        return bool(self._early) or self._again is not None

    def to_ask(self, now: float) -> tuple[int, int] | None:
        """The part of the gap to request at `now`: at once, and again while it stays."""
        if not self._early:  # the usual case: called for each table and batch of messages
            self._again = None
            return None
        first, last = self.expected, min(self._early) - 1
        if self._again is None:
            self._again = Again()
        return (first, min(last, first + PAGE - 1)) if self._again.due(first, now) else None


async def ask(session: Session, topic: str, writer: str, first: int, last: int | None = None) -> None:
    """Request a gap under `topic` (.../cmd/replay). Raises BrokerLost."""
    await session.publish(topic, msgspec.json.encode(ReplayRequest(first, last, writer)))
