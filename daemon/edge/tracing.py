"""Traces: for a while, what passes between a device and its driver is published as it passes.

Asked for by the command `trace`, of any device. A trace keeps nobody waiting: what passes is put aside, at most WAITING
pieces a device, and published when there is room; what finds none is left out, the oldest first, and counted.

What tells cards is held back while a round is open. Nobody is believed that none is: the rules must have said so after
they had heard of everything that stands in the journal of that table, and what passed must be so old that its driver
has made of it what it ever will. With the rules away nothing of it is shown.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeAlias

import msgspec
from msgspec import Struct

from daemon.broker.session import Session
from daemon.edge.links.link import Way
from protocols.contract.documents import TraceLine

__all__ = ["SETTLED", "WAITING", "Trace", "publish"]

# Pieces of one device, each of PIECE bytes at most: some 2 MB.
WAITING = 2000
PIECE = 512
# Lines in one message, and seconds between two messages of a device: 500 lines a second.
LINES = 50
PAUSE = 0.1
# Seconds. A driver tells what it read at once; behind a table's gate it waits three seconds.
SETTLED = 5.0

Shown: TypeAlias = Callable[[], bool]


class _Piece(Struct, frozen=True):
    at: datetime
    tick: float
    way: Way
    data: bytes
    n: int


class Trace:
    """One device's."""

    def __init__(self, topic: str, shown: Shown | None, changed: Callable[[], None], news: asyncio.Event) -> None:
        """`shown`: whether no round is open, where the device tells cards. `changed` is told when a trace ends."""
        self.topic = topic
        self._shown = shown
        self._changed = changed
        self._news = news
        self._waiting: deque[_Piece] = deque()
        self._passed = 0
        self._dropped = 0
        self._end: asyncio.TimerHandle | None = None
        self.until: datetime | None = None

    @property
    def waiting(self) -> int:
        """How many pieces are not yet published."""
        return len(self._waiting)

    @property
    def tap(self) -> Callable[[Way, datetime, bytes], None] | None:
        """What a link is to call with all that passes; None while nobody asked."""
        return self._pass if self._end is not None else None

    def begin(self, seconds: int, until: datetime) -> None:
        """For `seconds` from now, `until`; 0 ends it."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self.until = None
        if seconds:
            self._end = asyncio.get_running_loop().call_later(seconds, self._over)
            self.until = until

    def _over(self) -> None:
        self._end = self.until = None
        self._changed()

    def _pass(self, way: Way, at: datetime, data: bytes) -> None:
        tick = asyncio.get_running_loop().time()
        for start in range(0, len(data), PIECE):
            self._passed += 1
            if len(self._waiting) >= WAITING:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(_Piece(at, tick, way, data[start : start + PIECE], self._passed))
        self._news.set()

    def lines(self, now: float) -> tuple[bytes, int]:
        """What may be published now, as JSON lines, and how many pieces that is."""
        if self._shown is None:
            ready = min(len(self._waiting), LINES)
        elif self._waiting and self._waiting[0].tick <= now - SETTLED and self._shown():
            ready = sum(piece.tick <= now - SETTLED for piece, _ in zip(self._waiting, range(LINES), strict=False))
        else:
            ready = 0
        pieces = [self._waiting[index] for index in range(ready)]
        frames = [TraceLine(one.at, one.way, one.data.hex(), one.n, self._dropped) for one in pieces]
        return b"\n".join(map(msgspec.json.encode, frames)), ready

    def told(self, pieces: int) -> None:
        """The first `pieces` are on their way."""
        for _ in range(pieces):
            self._waiting.popleft()


async def publish(session: Session, traces: Iterable[Trace], news: asyncio.Event) -> None:
    """Everything that may be shown, for as long as the session lasts. Raises BrokerLost."""
    loop = asyncio.get_running_loop()
    known = tuple(traces)
    while True:
        await news.wait()
        news.clear()
        while waiting := [trace for trace in known if trace.waiting]:
            for trace in waiting:
                lines, pieces = trace.lines(loop.time())
                if pieces and session.publish_qos0(trace.topic, lines):
                    trace.told(pieces)
            await asyncio.sleep(PAUSE)
