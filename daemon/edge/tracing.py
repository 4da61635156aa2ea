"""Wire traces: the bytes between a device and its driver are published for a limited time.

The command `trace` starts one for any device. A trace delays nothing: at most WAITING pieces of a device are queued,
and the oldest are dropped and counted when the queue is full.

A trace of a device that reports cards is held back while a round is open. The rules must have reported that no round is
open after they processed all events of that table, and the bytes must be so old that the driver has turned them into
events. While the rules are offline nothing of it is published, nor at a game whose cards stay hidden after a round.
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
# Seconds. A driver emits at once what it read; after a start the edge keeps it up to three seconds for older events.
SETTLED = 5.0

Shown: TypeAlias = Callable[[], bool]


class _Piece(Struct, frozen=True):
    at: datetime
    tick: float
    way: Way
    data: bytes
    n: int


class Trace:
    """The trace of one device."""

    def __init__(self, topic: str, shown: Shown | None, changed: Callable[[], None], news: asyncio.Event) -> None:
        """`shown`: whether no round is open, for a device that reports cards. `changed`: called when it has expired."""
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
        """The number of unpublished pieces."""
        return len(self._waiting)

    @property
    def tap(self) -> Callable[[Way, datetime, bytes], None] | None:
        """The callback for a link; None without a trace."""
        return self._pass if self._end is not None else None

    def begin(self, seconds: int, until: datetime) -> None:
        """Trace for `seconds` from now, `until`; 0 ends the trace."""
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
        """The publishable pieces as JSON lines, and their number."""
        if self._shown is None:
            ready = min(len(self._waiting), LINES)
        elif self._waiting and self._waiting[0].tick <= now - SETTLED and self._shown():
            ready = sum(piece.tick <= now - SETTLED for piece, _ in zip(self._waiting, range(LINES), strict=False))
        else:
            ready = 0
        pieces = [self._waiting[index] for index in range(ready)]
        frames = [TraceLine(one.at, one.way, one.data.hex(), one.n, self._dropped) for one in pieces]
        return b"\n".join(map(msgspec.json.encode, frames)), ready

    def sent(self, pieces: int) -> None:
        """The first `pieces` were sent."""
        for _ in range(pieces):
            self._waiting.popleft()


async def publish(session: Session, traces: Iterable[Trace], news: asyncio.Event) -> None:
    """Publish traces while the session lasts. Raises BrokerLost."""
    loop = asyncio.get_running_loop()
    known = tuple(traces)
    while True:
        await news.wait()
        news.clear()
        while waiting := [trace for trace in known if trace.waiting]:
            for trace in waiting:
                lines, pieces = trace.lines(loop.time())
                if pieces and session.publish_qos0(trace.topic, lines):
                    trace.sent(pieces)
            await asyncio.sleep(PAUSE)
