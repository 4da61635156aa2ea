"""Retained topics: what is so now. The last word wins, so only that is sent, and not more often than people can look.

After a reconnection all of it is sent again, in the order in which it was first put, and what was cleared is cleared
again: the broker may have died before it heard of that, or come back with what it had written down long before.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from daemon.broker.session import Session

__all__ = ["Retained"]

PAUSE = 0.25


class Retained:
    """Topics and what should stand there: bytes, or a function that says it when it is sent."""

    def __init__(self) -> None:
        """Nothing stands anywhere."""
        self._wanted: dict[str, bytes | Callable[[], Any]] = {}
        self._dirty: dict[str, None] = {}
        self._changed = asyncio.Event()

    def put(self, topic: str, value: bytes | Callable[[], Any]) -> None:
        """`value` should stand under `topic`; empty bytes clear it."""
        if isinstance(value, bytes) and self._wanted.get(topic) == value:
            return
        self._wanted[topic] = value
        self.touch(topic)

    def touch(self, topic: str) -> None:
        """What stands under `topic` is no longer so."""
        self._dirty[topic] = None
        self._changed.set()

    def again(self, *beginnings: str) -> None:
        """What stands under topics that begin so may be gone: say it again."""
        for topic in self._wanted:
            if topic.startswith(beginnings):
                self.touch(topic)

    @property
    def waiting(self) -> bool:
        """Whether something changed and is not yet sent."""
        return bool(self._dirty)

    async def publish_all(self, session: Session) -> None:
        """Everything, in the order in which it was first put."""
        self._dirty = dict.fromkeys(self._wanted)
        await self._publish(session)

    async def run(self, session: Session) -> None:
        """Send what changes, at most every PAUSE seconds."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._publish(session)
            await asyncio.sleep(PAUSE)

    async def _publish(self, session: Session) -> None:
        while self._dirty:
            topic = next(iter(self._dirty))
            del self._dirty[topic]
            value = self._wanted[topic]
            payload = value if isinstance(value, bytes) else msgspec.json.encode(value())
            await session.publish(topic, payload, retain=True)
