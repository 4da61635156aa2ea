"""The tables with topics that the broker refuses to one process. The other tables of the process go on.

The usual cause is an access list that is older than the configuration. A refused table is tried again every RETRY_S
seconds: its retained topics, its subscriptions, and the first of its rows that the outbox holds. It goes on by itself
once the broker refuses nothing of it any more.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from daemon.broker.outbox import Outbox
from daemon.broker.retained import Retained
from daemon.broker.session import Session

__all__ = ["LIST_REMEDY", "RETRY_S", "Suspensions", "place_of"]

RETRY_S = 5.0
LIST_REMEDY: Final = (
    "print the access list from the configurations of all computers (feltd acl), install it and restart mosquitto; the "
    "table goes on by itself, and no event is lost"
)


def place_of(topic: str) -> str:
    """The table of a topic, or `jackpot` with the name of its pool; "" where it belongs to neither."""
    match topic.split("/")[3:]:
        case ["table", table, *_] if table != "+":
            return table
        case ["jackpot", pool, *_] if pool != "+":
            return f"jackpot {pool}"
        case _:
            return ""


class Suspensions:
    """The suspended tables of one process."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger, changed: Callable[[], None]) -> None:
        """No table is suspended. `changed` is called when `reasons` changes."""
        self._log = log
        self._changed = changed
        self._refused: dict[str, dict[str, None]] = {}
        """By table, the topics that the broker refused."""
        self._again: set[str] = set()
        """The tables that were refused since the last try."""
        self.reasons: dict[str, str] = {}
        """By suspended table, what the broker refuses and why."""

    def refused(self, topic: str, reason: str) -> bool:
        """The broker refuses `topic`. Whether the session can go on: the topic belongs to one table or pool."""
        place = place_of(topic)
        if not place:
            return False
        self._again.add(place)
        self._refused.setdefault(place, {})[topic] = None
        if place not in self.reasons:
            self.reasons[place] = f"{topic}: {reason}"
            self._log.error("table.suspended", table=place, topic=topic, reason=reason, remedy=LIST_REMEDY)
            self._changed()
        return True

    async def run(self, session: Session, outbox: Outbox, retained: Retained) -> None:
        """Try suspended tables again while the session lasts. Raises BrokerLost."""
        while True:
            self._again.clear()
            await outbox.resend(session)
            for topics in self._refused.values():
                retained.resend(topics)
            await self._subscribe(session, set(self.reasons))
            await asyncio.sleep(RETRY_S)
            good = self.reasons.keys() - self._again
            for place in good:
                del self.reasons[place], self._refused[place]
                self._log.info("table.resumed", table=place)
            if good:
                self._changed()
                await self._subscribe(session, good)  # the messages retained there could not be read before

    @staticmethod
    async def _subscribe(session: Session, places: set[str]) -> None:
        if places:
            await session.subscribe_again(lambda topic: place_of(topic) in places)
