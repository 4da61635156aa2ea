"""Gaps and how they close: whoever reads finds them by seq, whoever wrote answers from its journal.

The same for the events of an edge (`cmd/replay`) and for what the rules made of them (`round/cmd/replay`): nothing that
a broker forgot, or that was published while nobody listened, is lost to a reader.
"""

from typing import Generic, Protocol, TypeVar

import msgspec

from daemon.broker.session import Session
from protocols.contract.documents import ReplayRequest

__all__ = ["ASK_AGAIN", "BUFFER", "PAGE", "Again", "Stream", "ask"]

BUFFER = 2000
PAGE = 500
ASK_AGAIN, ASK_AT_LEAST = 2.0, 30.0
"""Seconds until what is still missing is asked for again, at first and after many times in vain."""


class Numbered(Protocol):
    """Anything with a seq."""

    @property
    def seq(self) -> int:
        """Gapless, from 1."""
        ...


T = TypeVar("T", bound=Numbered)


class Again:
    """When to ask: a request or its answer may be lost, too. What nobody can answer is asked for ever more seldom."""

    def __init__(self, due: float = float("-inf")) -> None:
        """`due` is when to ask first."""
        self._due = due
        self._first = 0
        self._wait = ASK_AGAIN

    def due(self, first: int, now: float) -> bool:
        """Whether to ask at `now` for what is missing from `first` on. True counts as asked."""
        if now < self._due:
            return False
        self._wait = min(self._wait * 2, ASK_AT_LEAST) if first == self._first else ASK_AGAIN
        self._first = first
        self._due = now + self._wait
        return True


class Stream(Generic[T]):
    """What one journal says of one table: each once, in order, whatever way it comes."""

    def __init__(self, expected: int = 1) -> None:
        """`expected` is the next seq."""
        self.expected = expected
        self._early: dict[int, T] = {}
        self._again = Again()

    def take(self, item: T) -> list[T]:
        """What may be used now, in order. A duplicate gives nothing; an early one waits, as far as there is room."""
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
        """Go on from `to`, before or behind what was expected: what is there from it on, in order."""
        if to < self.expected:
            self._early.clear()  # of another count
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
        """First and last seq missing before what waits."""
        return (self.expected, min(self._early) - 1) if self._early else None

    def to_ask(self, now: float) -> tuple[int, int] | None:
        """What of the gap to ask for at `now`: at once, and again for as long as it stays."""
        gap = self.gap
        if gap is None:
            self._again = Again()
            return None
        return (gap[0], min(gap[1], gap[0] + PAGE - 1)) if self._again.due(gap[0], now) else None


async def ask(session: Session, topic: str, writer: str, first: int, last: int | None = None) -> None:
    """Ask for a gap under `topic` (…/cmd/replay). Raises BrokerLost."""
    await session.publish(topic, msgspec.json.encode(ReplayRequest(first, last, writer)))
