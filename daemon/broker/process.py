"""The common part of edge, rules and jackpots: a journal whose rows are published, and the process's retained topics.

A subclass defines what it reads, retains and does while it is connected. This class keeps the order: the
topics of the process are read and everything retained is sent before it counts as connected; a row is durable before
it is published; `availability` becomes offline at the end, by the process or by the broker.
"""

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from daemon import STARTED, logs, version
from daemon.broker.connection import Connect, stay_connected
from daemon.broker.heartbeat import beat
from daemon.broker.outbox import Outbox
from daemon.broker.replay_service import ReplayService
from daemon.broker.restorer import Restorer
from daemon.broker.retained import PAUSE_S, Retained
from daemon.broker.session import Session, Will, publish_offline_on_exit
from daemon.broker.suspensions import Suspensions
from daemon.config.model import Config, Edge, Jackpots, Rules, broker_of
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from protocols.contract.documents import EdgeInfo
from protocols.contract.topics import Wire, edge_topic, encode_wire, mac_of

__all__ = ["OFFLINE", "ONLINE", "BrokerProcess"]

ONLINE, OFFLINE = b"online", b"offline"


class BrokerProcess(ABC):
    """One process: its journal, its outbox, its retained topics."""

    KIND: ClassVar[str]
    """The kind of the process in its client id and its log: edge, rules, jackpots."""

    def __init__(
        self,
        config: Config,
        section: Edge | Rules | Jackpots,
        journal: Journal,
        *,
        address_of: Callable[[Row], tuple[str, str, str | UnsetType]],
        replays: Sequence[str],
        alerts: Mapping[str, Sequence[str]],
        connect: Connect | None,
        mac_key: bytes = b"",
        boot: str = "",
        pause_s: float = PAUSE_S,
    ) -> None:
        """`address_of`: id, source and cause_journal of a row's message, always the same. `replays`: topics of requests
        for rows.

        `alerts`: by table or pool the topics of the alert that a retained topic was overwritten. `boot`: the id of this
        run, if the process continues with a new configuration; "" makes a new id.
        """
        self.config, self.journal = config, journal
        self.site, self.name = config.site.name, section.name
        self.boot: str = boot or uuid.uuid4().hex[:12]
        self._log = logs.get(**{self.KIND: self.name})
        self._broker, self._connect = broker_of(config, section), connect
        self._address_of, self._mac_key = address_of, mac_key
        self._presence, self._info = (edge_topic(self.site, self.name, leaf) for leaf in ("availability", "info"))
        self._suspensions = Suspensions(self._log, lambda: self.retained.touch(self._info))
        self.outbox = Outbox(journal, self._message_of, self._is_removed, self._suspensions.refused)
        self.retained = Retained(pause_s)
        self._restorer = Restorer(self.retained, alerts, (self._presence, OFFLINE), self._log)
        waiting = lambda: self.outbox.waiting  # noqa: E731
        self.replay = ReplayService(self.name, journal, replays, self._message_of, waiting, self._log, mac_key)
        self.connected = False

    # ---- hooks of a subclass

    @abstractmethod
    def _is_removed(self, row: Row) -> bool:
        """Whether the table, device or pool of a row is no longer configured."""

    @abstractmethod
    def _own_topics(self) -> Iterable[str]:
        """The topic filters of this process's retained topics."""

    @abstractmethod
    async def _prepare(self, session: Session) -> Iterable[str]:
        """Set what is retained, and return the topics to read besides its own."""

    @abstractmethod
    def _work(self, session: Session) -> Iterable[Coroutine[Any, Any, None]]:
        """The subclass's own work during a session."""

    def _disconnected(self) -> None:  # noqa: B027 - optional
        """Clean up after a session."""

    def _readable(self, row: Row) -> Row:
        """The message in place of an unreadable row."""
        return row

    def info(self) -> EdgeInfo:
        """The retained `info` of this process, with the tables and pools that the broker suspends."""
        return EdgeInfo(version(), self.config.digest, suspended=self._suspensions.reasons, started=STARTED)

    # ---- rows

    def append(self, entries: Sequence[Entry], memory: Mapping[str, bytes], *, exact: bool = False) -> list[Row]:
        """Write entries and values with the position of the outbox, then publish. Raises BadJournal.

        `exact`: write the position although few rows were acknowledged since; for the end of a process.
        """
        kept = {**memory, **self.outbox.memory(exact=exact)}
        if not entries and not kept:
            return []
        rows = self.journal.append(entries, kept)
        self.outbox.offer(rows)
        return rows

    def _message_of(self, row: Row, late: bool) -> tuple[str, bytes]:
        """Topic and payload of a row; `late`: it was written before this session, was held, or is sent again."""
        if row.unreadable:
            row = self._readable(row)
        (id_, source, cause), data = self._address_of(row), msgspec.Raw(row.data)
        boot = self.boot if self.KIND == "edge" else ""
        wire = Wire("1.0", id_, source, row.type, row.time, row.seq, boot, self.journal.name, late, data, UNSET, cause)
        if self._mac_key:
            wire = msgspec.structs.replace(wire, mac=mac_of(wire, self._mac_key))
        return f"{source}/event/{row.type}", encode_wire(wire)

    # ---- on the broker

    def _stay_connected(self, group: asyncio.TaskGroup) -> None:
        """Serve one session after the other in tasks of `group`; requests for rows have a connection of their own."""
        identifier = f"feltd-{self.KIND}-{self.name}"
        will = Will(self._presence, OFFLINE)
        group.create_task(self._answer_replays(identifier))
        group.create_task(stay_connected(self._broker, identifier, will, self._serve, self._log, self._connect))

    async def _answer_replays(self, identifier: str) -> None:
        await self.replay.listen(self._broker, identifier, self._connect)

    async def _serve(self, session: Session) -> None:
        async with publish_offline_on_exit(session, self._presence, OFFLINE):
            try:
                await self._served(session)
            finally:
                self.connected = False
                self._disconnected()

    async def _served(self, session: Session) -> None:
        session.tolerates = self._suspensions.refused
        topics = await self._prepare(session)
        self.retained.put(self._info, self.info)
        self.retained.put(self._presence, ONLINE)
        session.own_topics = frozenset((edge_topic(self.site, self.name, "+"), *self._own_topics()))
        await session.subscribe(*topics, *session.own_topics)
        await self.replay.until_subscribed()  # readers send requests as soon as it is reported online
        await self.retained.publish_all(session)
        self.connected = True
        async with asyncio.TaskGroup() as group:
            for work in (
                self.outbox.run(session),
                self.replay.run(session),
                self.retained.run(session),
                self._restorer.run(),
                self._suspensions.run(session, self.outbox, self.retained),
                beat(session, self.site, self.name),
                *self._work(session),
            ):
                group.create_task(work)
