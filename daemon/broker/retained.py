"""Publishes retained topics: the last value wins, with a limited rate.

After a reconnection all topics are sent again in the order in which they were first set, and cleared topics are cleared
again: the broker may have lost them, or come back with an old state. Refused topics are sent again by `resend`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from daemon.broker.session import Session

__all__ = ["Retained", "read_standing"]

PAUSE_S = 0.25
KEPT_HASHES = 8
"""Number of last values of each topic that are kept as keyed hashes."""


async def read_standing(session: Session, *topics: str, quiet_s: float) -> dict[str, bytes]:
    """The retained payloads by topic: those that arrive until `quiet_s` pass without a message. Raises BrokerLost."""
    await session.read_retained(*topics)
    retained: dict[str, bytes] = {}
    try:
        while True:
            async with asyncio.timeout(quiet_s):
                retained |= {one.topic: one.payload for one in await session.messages()}
    except TimeoutError:
        return {topic: payload for topic, payload in retained.items() if payload}


class Retained:
    """The retained topics of a process. A value is bytes, or a function that is called when it is sent."""

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        """Begin without topics. Changes are sent at most every `pause_s` seconds."""
        self._pause_s = pause_s
        self._wanted: dict[str, bytes | Callable[[], Any]] = {}
        self._dirty: dict[str, None] = {}
        self._sent: dict[str, deque[int]] = {}
        self._changed = asyncio.Event()
        self.is_muted: Callable[[str], bool] = lambda _topic: False
        """Whether another process retains a topic now; `again` publishes it when this one takes over."""

    def put(self, topic: str, value: bytes | Callable[[], Any]) -> None:
        """Set the value of `topic`; empty bytes clear it."""
        if isinstance(value, bytes) and self._wanted.get(topic) == value:
            return
        self._wanted[topic] = value
        self.touch(topic)

    def touch(self, topic: str) -> None:
        """The value of `topic` changed."""
        self._dirty[topic] = None
        self._changed.set()

    def compare(self, topic: str, payload: bytes) -> Literal["other", "current", "earlier", "foreign"]:
        """The origin of a delivered payload: the value that was sent last, an earlier one, or another client's.

        "other": the topic is none of ours, was not sent yet, or is muted.
        """
        sent = self._sent.get(topic)
        if sent is None:
            return "other"
        found = hash(payload)
        return "current" if found == sent[-1] else "earlier" if found in sent else "foreign"

    def again(self, *beginnings: str) -> None:
        """Topics with this prefix may have been cleared by others: send them again."""
        for topic in self._wanted:
            if topic.startswith(beginnings):
                self.touch(topic)

    def resend(self, topics: Iterable[str]) -> None:
        """The broker refused these topics: try again with those that are ours."""
        for topic in topics:
            if topic in self._wanted:
                self.touch(topic)

    @property
    def waiting(self) -> bool:
        """Whether a change is not sent yet."""
        return bool(self._dirty)

    async def publish_all(self, session: Session) -> None:
        """Send all topics in the order in which they were first set."""
        self._dirty = dict.fromkeys(self._wanted)
        await self._publish(session)

    async def run(self, session: Session) -> None:
        """Send changes, with a pause between two times. A change after the pause is sent at once."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self._changed.wait()
            if (early_s := due - loop.time()) > 0:
                await asyncio.sleep(early_s)
            self._changed.clear()
            await self._publish(session)
            due = loop.time() + self._pause_s

    async def _publish(self, session: Session) -> None:
        while self._dirty:
            topic = next(iter(self._dirty))
            del self._dirty[topic]
            if self.is_muted(topic):
                self._sent.pop(topic, None)
                continue
            value = self._wanted[topic]
            payload = value if isinstance(value, bytes) else msgspec.json.encode(value())
            self._sent.setdefault(topic, deque(maxlen=KEPT_HASHES)).append(hash(payload))
            await session.publish(topic, payload, retain=True)
