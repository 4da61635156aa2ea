"""Restores the retained topics of a process that another client of the broker wrote or cleared.

A process subscribes to what it retains itself. With MQTT 5 its own messages do not come back; otherwise they are
recognised by the last value sent. A different value is published again: at once, and each topic at most once in
RESTORE_S. The log and an alert at the table report it. A standby of the rules retains the state of the same rounds;
while it is online, a state with its name is not foreign, because it restores its own topics. A topic that was cleared
once may have moved here from another computer, or `feltd forget` cleared it: this is logged only.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import structlog
from msgspec import Struct

from daemon.broker.retained import Retained
from daemon.broker.session import UNREADABLE, Message
from daemon.broker.stale_topics import DISAGREE_LEAF, STATE_FORGED
from daemon.broker.suspensions import place_of
from daemon.words import words
from protocols.contract.documents import EdgeInfo
from protocols.contract.reasons import Reason, say

__all__ = ["ALERT_S", "Restorer"]

RESTORE_S = 1.0
ECHO_S = 0.5
"""Seconds in which the echo of the last value follows that of an earlier one (MQTT 3.1.1)."""
ALERT_S = 600.0
"""Seconds for which an alert remains after the last change."""
_How = Literal["written", "cleared"]
_SHARED = ("/round/result", "/alert/round-suspended", f"/{DISAGREE_LEAF}")
"""The topics that two rules processes of a table share, besides its state."""
MOST_PROCESSES = 1000
"""Maximum number of processes whose availability is kept."""


class _State(Struct):
    """The part of a round's state that names the rules process which retained it."""

    rules: str = ""


class _Overwritten(Struct):
    """The changes of the topics of one table or pool, until none happens for ALERT_S."""

    count: int = 0
    cleared: set[str] = set()
    why: Reason | None = None
    until: float = 0.0


class Restorer:
    """The retained topics of one process."""

    def __init__(
        self,
        retained: Retained,
        alerts: Mapping[str, Sequence[str]],
        will: tuple[str, bytes],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`alerts`: by table or pool (`place_of`) the topics of its alert. `will`: the message that the broker itself
        may write.
        """
        self._retained, self._alerts, self._will, self._log = retained, alerts, will, log
        self._own = will[0].split("/")[-2]
        self._due: dict[str, tuple[float, _How]] = {}
        """The time at which each topic is to be restored, and its change."""
        self._last: dict[str, float] = {}
        """The time of the last repair of each topic."""
        self._places: dict[str, _Overwritten] = {}
        self._online: set[str] = set()
        self._tables: dict[str, tuple[str, ...]] = {}
        """By other rules, the tables whose rounds they resolve."""
        self._changed = asyncio.Event()
        for topic in (topic for topics in alerts.values() for topic in topics):
            retained.put(topic, b"")  # of the last run of this process

    def received(self, message: Message) -> None:
        """Take a message of any topic: the availability of another process, or a topic that this one retains."""
        self._watch_processes(message)
        stood_before = message.retain  # before this process subscribed and published
        if stood_before or self._of_standby(message):
            return
        topic, now = message.topic, asyncio.get_running_loop().time()
        match self._retained.compare(topic, message.payload):
            case "other":
                return
            case "current":
                self._due.pop(topic, None)
                return
            case "earlier":
                at = now + ECHO_S
            case "foreign":
                at = max(now, self._last.get(topic, now - RESTORE_S) + RESTORE_S)
        how: _How = "written" if message.payload else "cleared"
        if at > now:
            self._due.setdefault(topic, (at, how))
            self._changed.set()
        else:
            self._restore(topic, how, now)

    def _watch_processes(self, message: Message) -> None:
        match message.topic.split("/")[3:]:
            case ["edge", self._own, _]:
                pass
            case ["edge", name, "availability"] if message.payload != b"online":
                if name in self._online:  # the states that it retained may be older than ours
                    root = message.topic.partition("/edge/")[0]
                    below = (f"{root}/table/{table}/" for table in self._tables.get(name, ()))
                    self._retained.again(*(one + leaf for one in below for leaf in ("round/", "alert/round-suspended")))
                self._online.discard(name)
            case ["edge", name, "availability"] if len(self._online) < MOST_PROCESSES:
                self._online.add(name)
            case ["edge", name, "info"]:
                self._tables.pop(name, None)
                with contextlib.suppress(*UNREADABLE):
                    info = msgspec.json.decode(message.payload, type=EdgeInfo)
                    if info.rules and len(self._tables) < MOST_PROCESSES:
                        self._tables[name] = info.tables

    def _of_standby(self, message: Message) -> bool:
        """Whether other rules of this table that are online retained this: a state names them."""
        table = place_of(message.topic)
        if message.topic.endswith("/round/state"):
            with contextlib.suppress(*UNREADABLE):
                name = msgspec.json.decode(message.payload, type=_State).rules
                return name in self._online and table in self._tables.get(name, ())
            return False
        return message.topic.endswith(_SHARED) and any(self._others(table))

    def _others(self, table: str) -> Iterator[str]:
        """Other rules of a table that are online."""
        return (name for name, tables in self._tables.items() if name in self._online and table in tables)

    def is_first(self, table: str, *, ready: bool) -> bool:
        """Whether this process is the first online rules process of a table; the last one while not `ready`."""
        others = list(self._others(table))
        return not others or (ready and self._own < min(others))

    async def run(self) -> None:
        """Restore topics that had to wait, and end alerts."""
        loop = asyncio.get_running_loop()
        while True:
            times = [at for at, _ in self._due.values()] + [one.until for one in self._places.values()]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(times, default=None)):
                    await self._changed.wait()
            self._changed.clear()
            now = loop.time()
            for topic, (at, how) in list(self._due.items()):
                if at <= now:
                    self._restore(topic, how, now)
            for place, one in list(self._places.items()):
                if one.until <= now:
                    del self._places[place]
                    self._show(place, b"")

    def _restore(self, topic: str, how: _How, now: float) -> None:
        self._due.pop(topic, None)
        self._last[topic] = now
        self._retained.touch(topic)
        if topic == self._will[0] and how == "written":  # the broker may have written it after a lost connection
            return
        place = place_of(topic)
        one = self._places.setdefault(place, _Overwritten())
        why = say(how, topic="/".join(topic.split("/")[5 if place else 3 :]))
        if not one.count:
            alert = words.alert(STATE_FORGED, why)
            self._log.warning("state.overwritten", place=place, topic=topic, text=alert.text, remedy=alert.remedy)
        one.count, one.until = one.count + 1, now + ALERT_S
        if how == "written" or topic in one.cleared:
            one.why = why
        if how == "cleared":
            one.cleared.add(topic)
        if one.why is not None:
            self._show(place, msgspec.json.encode(words.alert(STATE_FORGED, one.why, count=one.count)))
        self._changed.set()

    def _show(self, place: str, value: bytes) -> None:
        for topic in self._alerts.get(place, ()):
            self._retained.put(topic, value)
