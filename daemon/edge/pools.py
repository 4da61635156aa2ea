"""Watches the owners of the jackpot pools that take bets at this edge's tables.

The owner of a pool is the jackpots process. While its heartbeat is missing, the jackpot bets of its tables are
closed: an alert at each table reports it, and the edge writes it into each bet meanwhile, so that rules and books
decide alike at any time. Bets that were taken before stay in the journal, and the owner counts them when it is back.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

import msgspec
import structlog

from daemon.broker.retained import Retained
from daemon.broker.session import UNREADABLE
from daemon.pulse import pulse
from daemon.words import words
from protocols.contract.events import Event, JackpotContributed, WagerPlaced
from protocols.contract.jackpots import PoolOwner, jackpot_topic
from protocols.contract.reasons import say
from protocols.contract.topics import edge_topic, table_topic

__all__ = ["KEY", "LOST_S", "Pools"]

KEY = "pool/"
LOST_S = 10.0
"""Seconds without a heartbeat after which betting is closed: longer than a restart of the owner."""
MOST_POOLS = 200
MOST_BYTES = 64 * 1024


class Pools:
    """The pools of one edge."""

    def __init__(
        self,
        site: str,
        edge: str,
        tables: Collection[str],
        stored: Mapping[str, bytes],
        store: Callable[[dict[str, bytes]], object],
        retained: Retained,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`stored` is what `store` kept under KEY: the pools are known before the broker is reached."""
        self._site, self._edge, self._tables = site, edge, frozenset(tables)
        self._store, self._retained, self._log = store, retained, log
        self._owners: dict[str, PoolOwner] = {}
        self.beats: dict[str, float] = {}
        self.closed: dict[str, float] = {}
        """By pool, since when its betting is closed, on the loop's clock."""
        self.since = 0.0
        for key, payload in stored.items():
            if (owner := self._read(key.removeprefix(KEY), payload)) is not None:
                self._owners[owner.pool] = owner
        for pool in self._owners:  # an alert of the last process
            for topic in self._alerts(pool):
                self._retained.put(topic, b"")

    def go_on(self, before: "Pools") -> None:
        """Continue with the heartbeats and closed pools of the configuration before."""
        self.beats, self.since = before.beats, before.since
        self.closed = {pool: since for pool, since in before.closed.items() if pool in self._owners}
        for pool in self.closed:
            self._show(pool, closed=True)

    def topics(self) -> list[str]:
        """The topics of owners, and of the heartbeats of the known ones."""
        beats = dict.fromkeys(edge_topic(self._site, one.owner, "alive") for one in self._owners.values())
        return [jackpot_topic(self._site, "+", "owner"), *beats]

    def is_owned(self, pool: str, payload: bytes) -> None:
        """Take the owner of a pool; with an empty payload it has none any more. `topics` may change."""
        owner, known = self._read(pool, payload), self._owners.get(pool)
        if owner is None and payload:
            return
        if owner is None or not self._tables.intersection(owner.tables):
            if known is not None:
                self._open(pool)
                del self._owners[pool]
                self._store({KEY + pool: b""})
            return
        if owner == known or (known is None and len(self._owners) >= MOST_POOLS):
            return
        self._open(pool)  # its tables may have changed
        self._owners[pool] = owner
        self.beats[owner.owner] = asyncio.get_running_loop().time()  # it has LOST_S for its first heartbeat
        self._store({KEY + pool: msgspec.json.encode(owner)})

    def _read(self, pool: str, payload: bytes) -> PoolOwner | None:
        """The owner in a payload; None if it names no owner of this pool, with a warning unless it is empty."""
        try:
            owner = msgspec.json.decode(payload, type=PoolOwner) if payload else None
        except UNREADABLE as error:
            self._log.warning("pool.unreadable", pool=pool, reason=str(error))
            return None
        if owner is not None and (owner.pool != pool or len(payload) > MOST_BYTES):
            self._log.warning("pool.unreadable", pool=pool, reason="it is of another pool, or too long")
            return None
        return owner

    def beat(self, owner: str) -> None:
        """A heartbeat was received."""
        if any(one.owner == owner for one in self._owners.values()):
            self.beats[owner] = asyncio.get_running_loop().time()

    async def watch(self) -> None:
        """Close and open the betting until cancelled."""
        self.since = self.since or asyncio.get_running_loop().time()
        while True:
            self.look()
            await pulse()

    def look(self) -> None:
        """Compare the heartbeats with the clock."""
        now = asyncio.get_running_loop().time()
        for pool, owner in self._owners.items():
            lost = now - max(self.beats.get(owner.owner, self.since), self.since) > LOST_S
            if lost and pool not in self.closed:
                self.closed[pool] = now
                self._show(pool, closed=True)
            elif not lost:
                self._open(pool)

    def _open(self, pool: str) -> None:
        if self.closed.pop(pool, None) is not None:
            self._show(pool, closed=False)

    def _show(self, pool: str, *, closed: bool) -> None:
        owner = self._owners[pool].owner
        alert = words.alert("jackpot.closed", say("text", pool=pool, owner=owner), say("remedy", owner=owner))
        value = msgspec.json.encode(alert) if closed else b""
        for topic in self._alerts(pool):
            self._retained.put(topic, value)
        write_log = self._log.warning if closed else self._log.info
        write_log("jackpot.closed" if closed else "jackpot.opened", pool=pool, owner=owner)

    def _alerts(self, pool: str) -> list[str]:
        tables = self._tables.intersection(self._owners[pool].tables)
        return [table_topic(self._site, table, f"alert/{self._edge}-pool-{pool}") for table in sorted(tables)]

    def mark(self, table: str, event: Event, happened: float) -> Event:
        """The event to write: a bet that `happened` while its pool was closed is marked.

        A slot machine's coin in has no seat: it was played and cannot be given back, so it counts.
        """
        if not isinstance(event, WagerPlaced | JackpotContributed):
            return event
        if isinstance(event, JackpotContributed) and not event.seat:
            return event
        for pool, since in self.closed.items():
            owner = self._owners[pool]
            bet = event.bet == owner.bet if isinstance(event, WagerPlaced) else event.pool == pool
            if bet and table in owner.tables and happened >= since:
                return msgspec.structs.replace(event, pool_closed=True)
        return event
