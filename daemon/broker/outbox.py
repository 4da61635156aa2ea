"""The outbox: publishes the rows of a journal in order.

The journal is the queue; a cursor marks what the broker has acknowledged. Memory stays bounded whatever the broker
does. After a crash, unacknowledged rows are sent again with the same id, and those acknowledged since the cursor was
written: it is written with new entries, once SAVED_EVERY rows were acknowledged.

If the broker refuses a row, the rows of its table are held from there on, and those of other tables go on. `resend`
tries the first held row again, and sends the others once the broker takes it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from daemon import logs
from daemon.broker.session import BrokerLost, Session
from daemon.journal.rows import Row
from daemon.journal.sent import HELD, KEY
from daemon.journal.store import Journal

__all__ = ["Outbox"]

PAGE = 200
MOST_KEPT = 1000
"""New rows that are kept in memory until they are sent; further ones are read back from the journal."""
SAVED_EVERY = 64
"""Acknowledged rows between two writes of the cursor, at least. Written with each event it adds a page to each commit:
7.1 writes to the log instead of 4.5 (counted with strace at 100 events a second).
"""


class Outbox:
    """The outbox of one journal. `message_of(row, late)` gives topic and payload of a row.

    `is_removed(row)`: whether its table or device was removed from the configuration. A newer access list refuses such
    a row: it stays in the journal, and later rows are sent.
    """

    def __init__(
        self,
        journal: Journal,
        message_of: Callable[[Row, bool], tuple[str, bytes]],
        is_removed: Callable[[Row], bool] = lambda _: False,
        suspend: Callable[[str, str], object] = lambda _topic, _reason: None,
    ) -> None:
        """Continue where the last process stopped. `suspend` gets each refused topic, and the reason."""
        self._journal = journal
        self._message_of = message_of
        self._is_removed = is_removed
        self._suspend = suspend
        self._news = asyncio.Event()
        self._flying: deque[int] = deque()
        self._done: set[int] = set()
        self._session: Session | None = None
        self._sent = 0
        self._backlog = 0
        self._unsent: deque[Row] = deque()
        self.cursor = self._saved = int(journal.memory(KEY) or b"0")
        self._held = msgspec.json.decode(journal.memory(HELD) or b"{}", type=dict[str, int])
        """By suspended table, the seq of its first row that the broker refused."""
        self._held_changed = False
        self._resent: dict[str, int] = {}
        """By table that was suspended, the number of the last row that `resend` sent."""

    @property
    def held(self) -> frozenset[str]:
        """The tables whose rows are held."""
        return frozenset(self._held)

    @property
    def depth(self) -> int:
        """The number of rows that the broker has not acknowledged."""
        return self._journal.head - self.cursor

    @property
    def waiting(self) -> bool:
        """Whether there are rows that were not sent in this session."""
        return self._sent != self._journal.head

    def memory(self, *, exact: bool = False) -> dict[str, bytes]:
        """The cursor, to be written with the next entries: now and then, or `exact` at the end of a process."""
        if not self._held_changed and self.cursor - self._saved < (1 if exact else SAVED_EVERY):
            return {}
        self._saved = self.cursor
        kept = {KEY: b"%d" % self.cursor}
        if self._held_changed:  # with the cursor, which has passed the rows that are held
            self._held_changed = False
            kept[HELD] = msgspec.json.encode(self._held)
        return kept

    def offer(self, rows: list[Row]) -> None:
        """New rows. They are sent at once if no row waits before them, otherwise in their turn.

        Sending in the turn of the commit saves two turns of the loop, a tenth of a millisecond on an idle machine.
        """
        sent = 0
        if self._session is not None and rows and self._sent == rows[0].n - 1:
            self._unsent.clear()
            for row in rows:
                if not self._session.room:
                    break
                try:
                    self._send(self._session, row)
                except BrokerLost:
                    break  # `run` gets the same error and ends the session
                sent += 1
            self._session.flush()
        if self._sent != self._journal.head:
            self._keep(rows[sent:])
            self._news.set()

    def _keep(self, rows: list[Row]) -> None:
        """Keep rows for `run`, which then need not read them back, as long as they follow each other without a gap."""
        if self._unsent and rows and rows[0].n != self._unsent[-1].n + 1:
            return
        self._unsent.extend(rows[: MOST_KEPT - len(self._unsent)])

    async def run(self, session: Session) -> None:
        """Send for as long as the session lasts. Raises BrokerLost."""
        self._flying.clear()
        self._done.clear()
        self._sent = self.cursor
        self._backlog = self._journal.head
        self._session = session
        try:
            while True:
                while self._sent == self._journal.head:
                    self._news.clear()
                    await self._news.wait()
                for row in self._next():
                    await session.until_room()
                    if row.n == self._sent + 1:  # otherwise it was sent at once
                        self._send(session, row)
        finally:
            self._session = None

    def _next(self) -> Sequence[Row]:
        """Rows after the last one sent, in order."""
        while self._unsent and self._unsent[0].n <= self._sent:
            self._unsent.popleft()
        if self._unsent and self._unsent[0].n == self._sent + 1:
            return tuple(self._unsent)
        return self._journal.after(self._sent, PAGE)

    def _send(self, session: Session, row: Row) -> None:
        if row.place in self._held or row.n <= self._resent.get(row.place, 0):
            self._flying.append(row.n)
            self._sent = row.n
            self._acknowledged(row.n)
            return
        topic, payload = self._message_of(row, row.n <= self._backlog)
        acknowledged = partial(self._acknowledged, row.n)
        session.send(
            topic, payload, acknowledged=acknowledged, event=True, refused=partial(self._refused, session, row, topic)
        )
        self._flying.append(row.n)
        self._sent = row.n

    def _refused(self, session: Session, row: Row, topic: str, reason: str) -> None:
        if session is not self._session:  # a late answer of an ended session: the row is sent again
            return
        self._hold(row, topic, reason)
        self._acknowledged(row.n)

    def _hold(self, row: Row, topic: str, reason: str) -> bool:
        """Whether the rows of its table are held from this one on; a row of a removed table or device is left out."""
        if self._is_removed(row):
            remedy = "nothing: its table or device is no longer configured, and the event stays in the journal"
            logs.get().warning("outbox.refused", topic=topic, reason=reason, remedy=remedy)
            return False
        self._held[row.place] = min(row.seq, self._held.get(row.place, row.seq))
        self._held_changed = True
        self._suspend(topic, reason)
        return True

    async def resend(self, session: Session) -> None:
        """Try the first held row of each suspended table, and send all others where the broker takes it.

        Raises BrokerLost.
        """
        for place in list(self._held):
            most = 1
            while (first := self._held[place]) <= (newest := self._journal.last(place)):
                last = min(first + most - 1, newest)
                if not await self._are_taken(session, self._journal.range(place, first, last)):
                    break
                self._held[place] = last + 1
                self._held_changed, most = True, PAGE
            else:
                del self._held[place]
                self._held_changed = True
                self._resent[place] = self._journal.head
                self._journal.append([], self.memory())

    async def _are_taken(self, session: Session, rows: Sequence[Row]) -> bool:
        """Send rows of one table; return whether the broker took them all."""
        left, done, taken = len(rows), asyncio.Event(), True

        def answered(row: Row, topic: str, reason: str = "") -> None:
            nonlocal left, taken
            if reason and self._hold(row, topic, reason):
                taken = False
            left -= 1
            if not left:
                done.set()

        for row in rows:
            await session.until_room()
            topic, payload = self._message_of(row, True)
            answer = partial(answered, row, topic)
            session.send(topic, payload, acknowledged=answer, event=True, refused=answer)
        if rows:
            await done.wait()
        return taken

    def _acknowledged(self, n: int) -> None:
        self._done.add(n)
        while self._flying and self._flying[0] in self._done:
            self.cursor = self._flying.popleft()
            self._done.discard(self.cursor)
