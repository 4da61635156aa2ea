"""Answers replay requests during live traffic: edges replay events, rules verdicts, jackpots the entries of pools.

Every client with a password may request replays, so the number of requests must not delay live traffic:

- Requests arrive on a connection of their own, which is read slowly. A storm waits in the broker's queue for that
  connection and not in front of live events.
- Requests are coalesced: the union of the requested ranges is kept for each table. A row is published at most once in
  COOLDOWN.
- Rows are published in portions, at most RATE a second over all tables and STORM_RATE in a storm, and only while the
  outbox is empty and the broker has acknowledged the portion before.
- Memory is bounded: at most MOST_REQUESTS distinct requests of a table are answered at a time. Rows of further requests
  are published without an answer; their readers request again.
"""

import asyncio
import contextlib
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
import structlog

from daemon.broker.connection import Connect, stay_connected
from daemon.broker.gap_recovery import PAGE
from daemon.broker.session import UNREADABLE, Message, Session
from daemon.config.model import Mqtt
from daemon.journal.rows import Row
from daemon.journal.store import Journal
from protocols.contract.documents import ReplayAnswer, ReplayRequest, mac_of_answer

__all__ = ["COOLDOWN", "MOST_REQUESTS", "PORTION", "RATE", "STORM", "STORM_RATE", "ReplayService"]

RATE = 3000.0
"""Rows and answers a second that one process replays, over all tables."""
STORM_RATE = 250.0
"""The same in a storm of requests."""
PORTION = 16
"""Rows in a portion. A live event never waits behind more rows."""
COOLDOWN = 1.0
"""Seconds within which a row is replayed at most once; less than the 2 s after which readers request again."""
MOST_REQUESTS = 64
"""Distinct requests of a table that wait for their answer."""
MOST_RANGES = 64
"""Ranges of a table that are kept apart; beyond that the two nearest become one."""
MOST_BYTES = 1024
"""Length of a request; a longer one is unreadable."""
READ_INTERVAL_S = 0.1
"""Seconds between two reads of the socket. More messages wait in the broker and do not delay the live session."""
AT_ONCE = 32
"""Requests taken from the session at a time."""
READY_S = 1.0
"""Seconds that a session waits for the connection of the requests before it reports itself online."""
CHECK_INTERVAL_S = 10.0
"""Seconds between two checks of that connection; the second failed one in a row is logged."""
STORM, STORM_S = 1000, 10.0
"""STORM requests within STORM_S seconds are a storm; it ends after STORM_S seconds with fewer requests."""


def _start(span: tuple[int, int]) -> int:
    return span[0]


def _end(span: tuple[int, int]) -> int:
    return span[1]


class _Ranges:
    """A set of seqs as ordered, disjoint ranges. Above MOST_RANGES the two nearest ranges are joined over their gap."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def add(self, first: int, last: int) -> None:
        spans = self.spans
        low, high = bisect_left(spans, first - 1, key=_end), bisect_right(spans, last + 1, key=_start)
        if low < high:
            first, last = min(first, spans[low][0]), max(last, spans[high - 1][1])
        spans[low:high] = [(first, last)]
        while len(spans) > MOST_RANGES:
            at = min(range(len(spans) - 1), key=lambda one: spans[one + 1][0] - spans[one][1])
            spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]

    def remove(self, first: int, last: int) -> None:
        low, high = self._overlapping(first, last)
        met = self.spans[low:high]
        before = [(met[0][0], first - 1)] if met and met[0][0] < first else []
        behind = [(last + 1, met[-1][1])] if met and met[-1][1] > last else []
        self.spans[low:high] = before + behind

    def inside(self, first: int, last: int) -> list[tuple[int, int]]:
        """The part of a range that is in the set."""
        low, high = self._overlapping(first, last)
        return [(max(start, first), min(end, last)) for start, end in self.spans[low:high]]

    def _overlapping(self, first: int, last: int) -> tuple[int, int]:
        return bisect_left(self.spans, first, key=_end), bisect_right(self.spans, last, key=_start)


class _Wanted:
    """The requested rows of one table. The caller passes the time."""

    def __init__(self) -> None:
        self._now = _Ranges()
        self._served = _Ranges()
        """Rows published since the present cooldown began."""
        self._later = _Ranges()
        """Rows requested again since then: published when the next cooldown begins."""
        self._asked: dict[tuple[int, int], _Ranges] = {}
        """Requests without an answer yet, the oldest first: the range of the answer, and its unpublished part."""
        self._crowded = False
        """Whether there were more requests than `_asked` holds."""
        self._turn = self._cursor = 0
        self._until = float("-inf")

    def want(self, requested: tuple[int, int], first: int, last: int, now: float) -> bool:
        """Request rows for the answer `requested`. Returns False if too many requests wait: no answer will be sent."""
        self._begin_cooldown(now)
        new = _Ranges()
        new.add(first, last)
        for part in self._served.inside(first, last):
            self._later.add(*part)
            new.remove(*part)
        for part in new.spans:
            self._now.add(*part)
        if requested in self._asked:
            return True
        if len(self._asked) >= MOST_REQUESTS:
            self._crowded = True
            return False
        self._asked[requested] = _Ranges()
        self._asked[requested].add(first, last)
        return True

    def wait(self, now: float) -> float | None:
        """Seconds until there is something to publish; None if nothing is requested."""
        self._begin_cooldown(now)
        if self._now.spans:
            return 0.0
        return self._until - now if self._later.spans else None

    def portion(self) -> tuple[int, int]:
        """The next rows to publish, after `wait` has returned 0. They no longer count as requested."""
        first, last = self._next()
        self._now.remove(first, last)
        self._served.add(first, last)
        return first, last

    def _next(self) -> tuple[int, int]:
        """The oldest request goes first, from its beginning.

        With more requests than are kept, two of three portions serve the others: one the newest rows, because most gaps
        are recent, one the next in turn, so that each row is published in bounded time.
        """
        self._turn = (self._turn + 1) % 3 if self._crowded else 0
        spans = self._now.spans
        if self._turn == 0:
            for left in self._asked.values():
                for span in left.spans:
                    if parts := self._now.inside(*span):
                        first, last = parts[0]
                        return first, min(last, first + PORTION - 1)
        if self._turn == 1:
            first, last = spans[-1]
            return max(first, last - PORTION + 1), last
        first, last = next((span for span in spans if span[1] > self._cursor), spans[0])
        if first <= self._cursor < last:
            first = self._cursor + 1
        self._cursor = last = min(last, first + PORTION - 1)
        return first, last

    def published(self, first: int, last: int) -> list[tuple[int, int]]:
        """Record a published portion. Returns the answers of the requests that are now complete."""
        for left in self._asked.values():
            left.remove(first, last)
        complete = [requested for requested, left in self._asked.items() if not left.spans]
        for requested in complete:
            del self._asked[requested]
        return complete

    def failed(self, first: int, last: int) -> None:
        """Request a portion again that may not have been published."""
        self._now.add(first, last)

    def _begin_cooldown(self, now: float) -> None:
        if now < self._until:
            return
        for span in self._later.spans:
            self._now.add(*span)
        self._crowded = self._crowded and bool(self._now.spans)
        self._served, self._later = _Ranges(), _Ranges()
        self._until = now + COOLDOWN


class ReplayService:
    """The replay service of one process: `listen` receives requests, `run` publishes rows while a session lasts."""

    def __init__(
        self,
        writer: str,
        journal: Journal,
        topics: Iterable[str],
        message_of: Callable[[Row, bool], tuple[str, bytes]],
        busy: Callable[[], bool],
        log: structlog.typing.FilteringBoundLogger,
        mac_key: bytes = b"",
    ) -> None:
        """`topics`: .../cmd/replay of each table or pool. `busy`: whether live events wait to be sent.

        `mac_key`: authenticates the answers.
        """
        self._mac_key = mac_key
        self._writer = writer
        self._journal = journal
        self._topics = {topic.split("/")[4]: topic for topic in topics}
        self._table_of = {topic: table for table, topic in self._topics.items()}
        self._message_of = message_of
        self._busy = busy
        self._log = log
        self._wanted: dict[str, _Wanted] = {table: _Wanted() for table in self._topics}
        self._tables = list(self._topics)
        self._news = asyncio.Event()
        self._session: Session | None = None
        self._unacknowledged = 0
        self._acknowledged_all = asyncio.Event()
        self._subscribed = asyncio.Event()
        self._subscribed.set()  # nothing to wait for unless `listen` runs
        self._why = ""
        self._storm = asyncio.Event()
        self._requests = self._unreadable = self._unanswered = 0
        self._window_ends = float("-inf")

    # ---- requests

    async def listen(self, settings: Mqtt, identifier: str, connecting: Connect | None) -> None:
        """Receive requests until cancelled, on a second connection, `<identifier>-replay`."""
        if not self._topics:
            return
        self._subscribed.clear()
        log: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            None, processors=[self._silenced], wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
        )
        await stay_connected(settings, f"{identifier}-replay", None, self._receive_all, log, connecting)

    def _silenced(self, _logger: Any, _method: str, fields: Any) -> Any:
        """Drop a log line: the live connection reports a lost broker, `_watch` the loss of this connection alone."""
        self._why = fields.get("reason", "")
        raise structlog.DropEvent

    async def _receive_all(self, session: Session) -> None:
        try:
            session.set_read_interval(READ_INTERVAL_S)
            await session.subscribe(*self._topics.values())
            self._subscribed.set()
            while True:
                for message in await session.messages(AT_ONCE):
                    self.receive(message)
                await asyncio.sleep(0)
        finally:
            self._subscribed.clear()

    async def until_subscribed(self) -> None:
        """Wait until requests can be received, at most READY_S seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_S):
                await self._subscribed.wait()

    def receive(self, message: Message) -> None:
        """Coalesce a request with the others."""
        now = _now()
        self._count(now)
        table = self._table_of.get(message.topic)
        if table is None:  # a broker may deliver messages of another client's subscription
            return
        try:
            if len(message.payload) > MOST_BYTES:
                raise msgspec.DecodeError(f"a request has at most {MOST_BYTES} bytes")
            request = msgspec.json.decode(message.payload, type=ReplayRequest)
        except UNREADABLE as error:
            if not self._unreadable and not self._storm.is_set():
                self._log.warning("command.refused", topic=message.topic, reason=str(error))
            self._unreadable += 1
            return
        if request.edge not in ("", self._writer):
            return
        newest = self._journal.last(table)
        first = max(request.first, 1)
        start = max(first, self._journal.oldest(table))
        last = min(newest if request.last is None else request.last, start + PAGE - 1, newest)
        span = (start, last)
        if last < start:  # no such rows: an unused number instead, so that COOLDOWN limits this answer, too
            span = (newest + 1, newest + 1)
        if not self._wanted[table].want((first, last), *span, now):
            self._unanswered += 1
            self._storm.set()
        self._news.set()

    def _count(self, now: float) -> None:
        if now >= self._window_ends:
            self._window_ends = now + STORM_S
            if not self._storm.is_set():
                self._requests = self._unreadable = 0
        self._requests += 1
        if self._requests >= STORM:
            self._storm.set()

    # ---- rows

    async def run(self, session: Session) -> None:
        """Publish the requested rows while the session lasts. Raises BrokerLost."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish_all(session))
            group.create_task(self._log_storms())
            group.create_task(self._watch())

    async def _publish_all(self, session: Session) -> None:
        self._session, self._unacknowledged = session, 0
        loop = asyncio.get_running_loop()
        while True:
            waits = {table: wait for table in self._tables if (wait := self._wanted[table].wait(_now())) is not None}
            if not waits or (soonest := min(waits.values())) > 0:
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(soonest if waits else None):
                        await self._news.wait()
                continue
            while self._busy():  # noqa: ASYNC110 - the outbox signals no end; waits are rare and short
                await asyncio.sleep(PORTION / RATE)
            table = next(table for table, wait in waits.items() if not wait)
            self._tables.remove(table)
            self._tables.append(table)  # the next portion is another table's
            began = loop.time()
            sent = await self._publish(session, table)
            due = began + max(sent, 1) / (STORM_RATE if self._storm.is_set() else RATE)
            await asyncio.sleep(max(due - loop.time(), 0.0))

    async def _publish(self, session: Session, table: str) -> int:
        """Publish a portion of a table and the answers it completes. Returns how many messages were acknowledged."""
        wanted, sent, done = self._wanted[table], 0, False
        first, last = wanted.portion()
        try:
            for row in self._journal.range(table, first, last):
                await self._send(session, *self._message_of(row, True), event=True)
                sent += 1
            await self._until_acknowledged()
            done = True
        finally:
            if not done:
                wanted.failed(first, last)
        for requested in wanted.published(first, last):
            newest, oldest = self._journal.last(table), self._journal.oldest(table)
            answer = ReplayAnswer(self._writer, self._journal.name, *requested, newest, oldest)
            topic = self._topics[table] + "/result"
            if self._mac_key:
                answer = msgspec.structs.replace(answer, mac=mac_of_answer(answer, topic, self._mac_key))
            await self._send(session, topic, msgspec.json.encode(answer))
            sent += 1
        await self._until_acknowledged()
        return sent

    async def _until_acknowledged(self) -> None:
        while self._unacknowledged:
            self._acknowledged_all.clear()
            await self._acknowledged_all.wait()

    async def _send(self, session: Session, topic: str, payload: bytes, *, event: bool = False) -> None:
        self._unacknowledged += 1
        acknowledged = partial(self._acknowledged, session)
        refused = partial(self._refused, session, topic)
        await session.publish(topic, payload, acknowledged=acknowledged, refused=refused, event=event)

    def _refused(self, session: Session, topic: str, reason: str) -> None:
        session.tolerates(topic, reason)  # the reader requests it again
        self._acknowledged(session)

    def _acknowledged(self, session: Session) -> None:
        if session is self._session:  # otherwise a late acknowledgement of an ended session
            self._unacknowledged -= 1
            self._acknowledged_all.set()

    # ---- logs

    async def _log_storms(self) -> None:
        """Log a line when a storm of requests begins, and one when it is over."""
        while True:
            await self._storm.wait()
            self._log.warning(
                "replay.storm",
                requests=self._requests,
                remedy="a client requests many more replays than a reader needs; live events are not delayed. Find the "
                "client in the broker's log and change its password",
            )
            requests = unreadable = unanswered = 0
            storm = True
            while storm:
                storm = self._requests >= STORM or self._unanswered > 0
                requests += self._requests
                unreadable += self._unreadable
                unanswered += self._unanswered
                self._requests = self._unreadable = self._unanswered = 0
                if storm:
                    await asyncio.sleep(STORM_S)
            self._storm.clear()
            self._log.info("replay.storm_over", requests=requests, unreadable=unreadable, unanswered=unanswered)

    async def _watch(self) -> None:
        """Log when requests cannot be received although the broker is connected, and when they can again."""
        looks = 0
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            if self._subscribed.is_set():
                if looks > 1:
                    self._log.info("replay.heard")
                looks = 0
            else:
                looks += 1
                if looks == 2:  # one failed check may be a reconnection
                    remedy = "allow a second connection of this user, <client id>-replay; live events are not affected"
                    self._log.warning("replay.unheard", reason=self._why, remedy=remedy)


def _now() -> float:
    return asyncio.get_running_loop().time()
