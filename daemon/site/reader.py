"""Reads a stream in order, from a position that the caller keeps. Nothing is acknowledged or delivered twice.

Called by: the ledger, and a replica of the rules, which reads its events from the backbone (`Subscriptions`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import nats.errors
from msgspec import Struct
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from daemon import logs
from daemon.site.backbone import Connection, NotConfirmed
from daemon.site.streams import subject_of

__all__ = ["AGAIN_S", "FAILURES", "Batch", "Subscriptions", "batches", "stop_if_cancelled"]

AGAIN_S = 2.0
AT_ONCE = 50
"""Messages that are used in one turn of the loop."""
BATCH = 500
FAILURES = (nats.errors.Error, NotConfirmed, OSError, TimeoutError)
"""Errors after which a reader begins again from its position."""
FETCH_S = 2.0


class Batch(Struct, frozen=True):
    """Messages of a stream that follow each other; `last` is the number of the newest. `made`: when the stream was.

    `late`: the last of these was stored before the reading began. A batch without messages means that nothing waits.
    `complete_until`: all messages that were stored before it were read.
    """

    made: str
    messages: Sequence[Any]
    last: int
    late: bool
    complete_until: datetime


async def batches(
    connection: Connection,
    stream: str,
    position: Callable[[str, int], Awaitable[int]],
    subjects: Sequence[str] = (),
) -> AsyncIterator[Batch]:
    """All messages after `position(made, newest)`, of these subjects alone if some are named.

    A reader of all subjects gets a batch without messages each time that nothing waits, others once.

    Raises FAILURES.
    """
    jetstream, asked_at = connection.jetstream, datetime.now(UTC)
    found = await jetstream.stream_info(stream)
    made, newest = str(found.created), int(found.state.last_seq)
    last = await position(made, newest)
    is_behind = last < newest
    if not is_behind:
        yield Batch(made, (), last, late=False, complete_until=asked_at)
    while True:  # one consumer; a gap in its messages ends it, and the next begins after the position
        settings = ConsumerConfig(
            ack_policy=AckPolicy.NONE,  # the caller keeps the position
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=last + 1,
            inactive_threshold=60.0,
            filter_subjects=list(subjects) or None,
        )
        reader = await jetstream.pull_subscribe("", stream=stream, config=settings)
        delivered = 0
        while True:
            try:
                messages = await reader.fetch(BATCH, timeout=FETCH_S)
            except TimeoutError:  # asyncio's, or that of the library, which derives from it
                messages = []
            if not messages:  # the library also returns none where only status messages came
                asked_at = datetime.now(UTC)
                info = await reader.consumer_info()  # raises where the node that had the consumer lost it
                has_all = not info.num_pending and info.delivered.consumer_seq == delivered
                if has_all and (is_behind or not subjects):
                    is_behind = False  # all of the backlog was used; the newest message may be of another subject
                    yield Batch(made, (), last, late=False, complete_until=asked_at)
                continue
            numbers = [message.metadata.sequence for message in messages]
            if any(one.consumer != delivered + at for at, one in enumerate(numbers, 1)):
                break
            delivered += len(numbers)
            if not subjects and numbers[0].stream != last + 1:
                logs.get(stream=stream).error("stream.gone", after=last, before=numbers[0].stream)
            last = numbers[-1].stream
            stored_at = messages[-1].metadata.timestamp
            yield Batch(made, messages, last, late=last <= newest, complete_until=stored_at)
        await reader.unsubscribe()


def stop_if_cancelled() -> None:
    """nats-py turns a cancellation into an error where its connection was closed at the same time."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class Subscriptions:
    """The streams for a replica of the rules, each from a position that the rules keep."""

    def __init__(self, connection: Connection, site: str) -> None:
        """`connection` is run by the caller."""
        self._connection, self._site = connection, site
        self._log = logs.get(replica=site)

    async def follow(
        self,
        stream: str,
        tables: Sequence[str],
        position: Callable[[str, int], int],
        use: Callable[[str, Sequence[tuple[str, bytes]], int, bool], None],
    ) -> None:
        """Pass the messages of a stream to the rules. After each failure it begins again from the position."""
        subjects = {subject_of(stream, self._site, table): table for table in tables}
        reason = ""

        async def asked(made: str, newest: int) -> int:
            return position(made, newest)

        while True:
            try:
                await self._connection.until_up()
                async for batch in batches(self._connection, stream, asked, tuple(subjects)):
                    reason = ""
                    for first in range(0, max(len(batch.messages), 1), AT_ONCE):
                        some = batch.messages[first : first + AT_ONCE]
                        is_end = first + AT_ONCE >= len(batch.messages)
                        last = some[-1].metadata.sequence.stream if some else batch.last
                        stored = [(subjects[one.subject], one.data) for one in some]
                        use(batch.made, stored, last, batch.late or not is_end)
                        await asyncio.sleep(0)
            except FAILURES as error:
                stop_if_cancelled()
                if str(error) != reason:
                    self._log.warning("replica.waits", stream=stream, reason=str(error) or type(error).__name__)
                reason = str(error)
                await asyncio.sleep(AGAIN_S)
