"""The outbox: what stands in the journal, to the broker, in order.

There is no queue: the journal is the queue, and a cursor says how far the broker acknowledged. Memory stays bounded
whatever the broker does; what was unacknowledged at a crash is sent again with the same id.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from daemon.journal import Journal, Row
from daemon.mqtt import Session

__all__ = ["Outbox"]

PAGE = 200
KEY = "outbox"


class Outbox:
    """One journal's way to the broker. `message_of(row, late)` is the topic and payload of a row."""

    def __init__(self, journal: Journal, message_of: Callable[[Row, bool], tuple[str, bytes]]) -> None:
        """Go on where the last process stopped."""
        self._journal = journal
        self._message_of = message_of
        self._news = asyncio.Event()
        self._flying: deque[int] = deque()
        self._done: set[int] = set()
        self._fresh: deque[Row] = deque(maxlen=PAGE)
        self.cursor = int(journal.memory(KEY) or b"0")

    @property
    def depth(self) -> int:
        """How many rows the broker has not acknowledged."""
        return self._journal.head - self.cursor

    def memory(self) -> dict[str, bytes]:
        """The cursor, to be written with the next entries: it costs no commit of its own."""
        return {KEY: b"%d" % self.cursor}

    def offer(self, rows: list[Row]) -> None:
        """These were just written: send them. Kept in memory only as far as they need not be read back."""
        self._fresh.extend(rows)
        self._news.set()

    async def run(self, session: Session) -> None:
        """Send for as long as the session lasts. Raises BrokerLost."""
        self._flying.clear()
        self._done.clear()
        sent = self.cursor
        backlog = self._journal.head
        while True:
            rows = self._next(sent)
            for row in rows:
                topic, payload = self._message_of(row, row.n <= backlog)
                self._flying.append(row.n)
                await session.publish(topic, payload, acknowledged=partial(self._acknowledged, row.n))
                sent = row.n
            if not rows:
                self._news.clear()
                await self._news.wait()

    def _next(self, sent: int) -> list[Row]:
        if sent == self._journal.head:
            return []
        while self._fresh and self._fresh[0].n <= sent:
            self._fresh.popleft()
        if self._fresh and self._fresh[0].n == sent + 1:
            return list(self._fresh)
        return self._journal.after(sent, PAGE)

    def _acknowledged(self, n: int) -> None:
        self._done.add(n)
        while self._flying and self._flying[0] in self._done:
            self.cursor = self._flying.popleft()
            self._done.discard(self.cursor)
