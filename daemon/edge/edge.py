"""The edge process: all devices of this computer, one journal, one broker.

An event is durable in the journal before it is published; the outbox sends events in order. After each connection the
edge publishes meta, state, online, then the backlog. Readers request gaps by `cmd/replay`.
"""

import asyncio
import os
import resource
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from daemon import logs, version
from daemon.broker.connection import Connect
from daemon.broker.mac_keys import load_mac_key
from daemon.broker.process import OFFLINE, ONLINE, BrokerProcess
from daemon.broker.session import Message, Session
from daemon.broker.stale_topics import METAS, STATE_FORGED, StaleTopics, alert_topic, clock_topic, stale_of_edge
from daemon.config.model import Config
from daemon.edge import home_assistant, pools
from daemon.edge.clock_watch import ClockWatch
from daemon.edge.commands import KEY, CommandService
from daemon.edge.device_session import DeviceSession, DeviceStatus
from daemon.edge.floor import Signs
from daemon.edge.links.link import open_link, utc_now
from daemon.edge.ordering import EventOrdering, reported_before
from daemon.edge.supervisor import Opener, supervise
from daemon.edge.tracing import publish
from daemon.journal.retention import disk_free
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from daemon.journal.verified import examined
from daemon.pulse import next_pulse
from daemon.words import words
from drivers import FAULTS
from protocols.contract.documents import (
    Alert,
    EdgeHealth,
    EdgeInfo,
    OutboxHealth,
)
from protocols.contract.events import (
    EventsMissed,
    encode_data,
    type_of,
)
from protocols.contract.reasons import say
from protocols.contract.topics import device_topic, edge_topic, table_topic

__all__ = ["Edge"]

HEALTH_EVERY = 30.0

Commit: TypeAlias = Callable[[], tuple[list[Entry], dict[str, bytes]]]


class Edge(BrokerProcess):
    """The process."""

    KIND = "edge"

    def __init__(
        self,
        config: Config,
        journal: Journal,
        *,
        now: Callable[[], datetime] = utc_now,
        opener: Opener | None = None,
        connect: Connect | None = None,
        before: "Edge | None" = None,
    ) -> None:
        """`now` is the wall clock, `opener` opens links, `connect` connects to the broker: parameters for simulations.

        `before`: the edge of the configuration before, whose unchanged devices go on. Raises BadMacKey, BadJournal.
        """
        self.now = now
        self._opener: Opener = opener or partial(open_link, now=now)
        site, name = config.site.name, config.edge.name
        super().__init__(
            config,
            config.edge,
            journal,
            address_of=lambda row: (
                f"{name}:{row.place}:{row.seq}",
                device_topic(site, row.place, row.device, "")[:-1],
                msgspec.UNSET,
            ),
            replays=[table_topic(site, table.name, "cmd/replay") for table in config.table],
            alerts={table.name: [alert_topic(site, table.name, name, STATE_FORGED)] for table in config.table},
            connect=connect,
            mac_key=load_mac_key(Path(config.edge.mac_key_file)) if config.edge.mac_key_file else b"",
            boot=before.boot if before else "",
        )
        self._configured = {(table.name, device.name) for table in config.table for device in table.device}
        self._stale_topics = StaleTopics(self._log)
        self.traced: asyncio.Event = before.traced if before else asyncio.Event()
        self.sessions = self._sessions(before)
        self.boots: int = before.boots if before else int(journal.memory("boots") or b"0") + 1
        self.signs = Signs([table.name for table in config.table], journal.memory)
        self._take_up()
        kept = [session for session in self.sessions if session.may_have_kept_events]
        self.ordering: dict[str, EventOrdering] = {
            table.name: EventOrdering(
                (session.device.name for session in kept if session.table == table.name),
                reported_before(journal, table.name),
            )
            for table in config.table
            if not before or table.name not in before.ordering
        }
        self.pools = self._watched_pools()
        if before:
            tables = {table.name for table in config.table}
            self.ordering |= {name: one for name, one in before.ordering.items() if name in tables}
            self.pools.go_on(before.pools)
        self.commands = self._command_service()
        self._discovery = self._home_assistant()
        for session in self.sessions:
            self.show(session)
        self._group: asyncio.TaskGroup | None = None
        self._waiting: list[tuple[Commit, Callable[[list[Row]], None], asyncio.Future[None]]] = []
        self._lag = 0.0

    def _sessions(self, before: "Edge | None") -> list[DeviceSession]:
        """The sessions of all devices; devices with the same configuration keep theirs."""
        known = before.sessions if before else []
        found = []
        for table in self.config.table:
            for device in table.device:
                same = [session for session in known if (session.table, session.device) == (table.name, device)]
                found += same or [DeviceSession(self, table, device)]
        for session in found:
            session.move_to(self)
        return found

    def _is_removed(self, row: Row) -> bool:
        return (row.place, row.device) not in self._configured

    def _command_service(self) -> CommandService:
        return CommandService(
            {(session.table, session.device.name): session for session in self.sessions},
            frozenset(table.name for table in self.config.table if table.ruleset),
            self.journal.memories(KEY),
            partial(self.append, []),
            self.now,
            self._log,
        )

    def _watched_pools(self) -> pools.Pools:
        tables = [table.name for table in self.config.table]
        stored = self.journal.memories(pools.KEY)
        store = partial(self.append, [])
        return pools.Pools(self.site, self.name, tables, stored, store, self.retained, self._log)

    def _home_assistant(self) -> home_assistant.Discovery:
        return home_assistant.Discovery(
            self._found,
            self.journal.memory(home_assistant.KEY),
            lambda kept: self.append([], {home_assistant.KEY: kept}),
            f"let the edge's user write {home_assistant.writes(self.site, self.name)}, or set home_assistant to false",
            self._log,
        )

    def _take_up(self) -> None:
        """In one transaction: record the start, and end the faults of devices that were exchanged."""
        kept = {"boots": b"%d" % self.boots}
        closing: list[tuple[DeviceSession, Entry]] = []
        for session in [one for one in self.sessions if one.task is None]:
            entries, left = session.taken_up()
            closing += [(session, entry) for entry in entries]
            kept |= left
        rows = self.journal.append([entry for _, entry in closing], kept)
        for (session, _), row in zip(closing, rows, strict=True):
            session.events += 1
            session.last = row

    async def run(self) -> None:
        """Serve all devices until cancelled."""
        async with asyncio.TaskGroup() as group:
            self.supervise(group)
            await self.serve()

    def supervise(self, group: asyncio.TaskGroup) -> None:
        """Connect the devices that are not served yet; their tasks belong to `group`."""
        for session in self.sessions:
            if session.task is None:
                log = logs.get(edge=self.name, table=session.table, device=session.device.name)
                session.task = group.create_task(supervise(session.device, session, self._opener, self.now, log))

    def _gone(self, new: Config) -> list[DeviceSession]:
        """The devices that are missing in `new` or configured differently there."""
        kept = [(table.name, device) for table in new.table for device in table.device]
        return [session for session in self.sessions if (session.table, session.device) not in kept]

    def busy(self, new: Config) -> list[str]:
        """The tables where `new` would take a device out of an open round, or end a command."""
        tables = {session.table for session in self._gone(new)}
        return [*filter(self.commands.may_be_in_round, tables), *self.commands.tables_at_work]

    async def release(self, new: Config) -> None:
        """Close the devices that are missing in `new` or configured differently there."""
        gone = [session.task for session in self._gone(new) if session.task is not None]
        for task in gone:
            task.cancel()
        if gone:
            await asyncio.wait(gone)

    def followed_by(self, new: Config) -> "Edge":
        """The edge of `new`; devices that stay the same are not touched. Raises BadMacKey, BadJournal."""
        return Edge(new, self.journal, now=self.now, opener=self._opener, connect=self._connect, before=self)

    async def serve(self) -> None:
        """Publish, answer and watch until cancelled. The devices are served by `supervise`."""
        self._log.info(
            "edge.started",
            site=self.site,
            tables=len(self.config.table),
            devices=len(self.sessions),
            journal=str(self.journal.path),
            seq=self.journal.head,
        )
        self.commands.recover()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._stay_connected(group)
                group.create_task(self._watch())
                group.create_task(self.pools.watch())
        except asyncio.CancelledError:
            self.append([], {}, exact=True)
            raise

    async def commit(self, content: Commit, durable: Callable[[list[Row]], None]) -> None:
        """Commit what `content` returns, then call `durable` with the rows. Raises BadJournal.

        Events of several devices in one turn of the loop share one transaction: with 50 tables one fdatasync and not
        50. A lone event waits for one turn, 6 us. Both functions are called even if the caller is cancelled.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._commit)
        self._waiting.append((content, durable, done))
        await done

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        entries: list[Entry] = []
        memory: dict[str, bytes] = {}
        written: list[tuple[int, Callable[[list[Row]], None], asyncio.Future[None]]] = []
        for content, durable, done in waiting:
            try:
                new, kept = content()
            except Exception as error:  # noqa: BLE001 - a bug of one driver: only its caller gets the error
                _fail(done, error)
                continue
            entries += new
            memory |= kept
            written.append((len(new), durable, done))
        try:
            rows = self.append(entries, memory)
        except BaseException as error:
            for _, _, done in written:
                _fail(done, error)
            if not isinstance(error, Exception):
                raise
            return
        at = 0
        for count, durable, done in written:
            try:
                durable(rows[at : at + count])
            except Exception as error:  # noqa: BLE001 - the same
                _fail(done, error)
            at += count
            if not done.done():  # otherwise its caller was cancelled
                done.set_result(None)

    def show(self, session: DeviceSession) -> None:
        """Update a device's retained topics."""
        place = partial(device_topic, self.site, session.table, session.device.name)
        self.retained.put(place("meta"), session.meta)
        self.retained.put(session.state_topic, session.state)
        self.retained.put(place("availability"), ONLINE if session.status.online else OFFLINE)
        alerts = dict.fromkeys((*session.status.alerted, "device.offline"), b"")
        for fault in session.status.faults:
            alert = Alert(device=session.device.name, **msgspec.structs.asdict(fault))
            alerts[fault.code] = msgspec.json.encode(alert)
        if not session.status.online:
            name, reason = session.device.name, session.status.reason
            why = say("text", device=name, reason=reason) if reason else say("never", device=name)
            offline = words.alert("device.offline", why, device=name)
            alerts["device.offline"] = msgspec.json.encode(offline)
        self._discovery.touch()
        for code, value in alerts.items():
            self.retained.put(alert_topic(self.site, session.table, session.device.name, code), value)

    def _found(self) -> dict[str, bytes]:
        """The discovery messages for Home Assistant, by topic."""
        if not self.config.edge.home_assistant:
            return {}
        document_of = partial(home_assistant.device_config, self.site, self.name, version())
        games = [table.name for table in self.config.table if table.ruleset]
        rules = self.config.rules.name
        return {
            **dict(home_assistant.table_config(self.site, self.name, version(), game, rules) for game in games),
            **dict(document_of(session.found) for session in self.sessions),
        }

    def _readable(self, row: Row) -> Row:
        """An event without a plausible time is published as `events.missed`, so that readers treat it as lost."""
        missed = EventsMissed(1)
        return msgspec.structs.replace(row, type=type_of(missed), data=encode_data(missed))

    # ---- on the broker

    async def _prepare(self, session: Session) -> list[str]:
        self.commands.connected(session)
        self.retained.put(edge_topic(self.site, self.name, "health"), self.health)
        for one in self.sessions:
            self.show(one)
        topics = [edge_topic(self.site, "+", "availability"), *self.pools.topics()]
        for table in self.config.table:
            topics += [table_topic(self.site, table.name, leaf) for leaf in ("round/state", METAS)]
            topics.append(device_topic(self.site, table.name, "+", "cmd/+"))
        return topics

    def _work(self, session: Session) -> list[Coroutine[Any, Any, None]]:
        every = table_topic(self.site, "+", METAS)
        return [
            self._discovery.run(session),
            self._commands(session),
            self._health(),
            publish(session, [one.trace for one in self.sessions], self.traced),
            self._stale_topics.look(session, every, own=bool(self.sessions)),
        ]

    def _disconnected(self) -> None:
        self.commands.disconnected()

    def _own_topics(self) -> list[str]:
        """The topics of tables and devices that this edge retains; `_prepare` reads `meta`."""
        topics = [table_topic(self.site, table.name, "alert/+") for table in self.config.table]
        for session in self.sessions:
            topics += [
                device_topic(self.site, session.table, session.device.name, leaf) for leaf in ("availability", "state")
            ]
        return topics

    async def _commands(self, session: Session) -> None:
        while True:
            for message in await session.messages():
                self._restorer.received(message)
                match message.topic.split("/")[3:]:
                    case ["edge", name, "availability"]:
                        if not message.payload:  # `feltd forget` may have cleared topics that are ours now
                            self.retained.again("")
                        if name == self.config.rules.name:
                            self.commands.rules_are(message.payload == ONLINE)
                    case ["edge", name, "alive"]:
                        self.pools.beat(name)
                    case ["jackpot", pool, "owner"]:
                        subscribed = self.pools.topics()
                        self.pools.is_owned(pool, message.payload)
                        if new := [topic for topic in self.pools.topics() if topic not in subscribed]:
                            await session.subscribe(*new)
                    case ["table", table, "round", "state"]:
                        self.commands.round_is(table, message.payload)
                    case ["table", table, "device", device, "meta"]:
                        await self._met(session, table, device, message)
                    case ["table", _, "device", _, "cmd", _] if self._group is not None:
                        await self.commands.take(message, self._group)
                    case _:  # a broker may deliver messages of another client's subscription
                        pass

    async def _met(self, session: Session, table: str, device: str, message: Message) -> None:
        """A retained topic of a device: cleared if the device was ours and was removed."""
        if any((one.table, one.device.name) == (table, device) for one in self.sessions):
            self._stale_topics.received_own()
            return
        stored = self.journal.memory(f"status/{table}/{device}")
        alerted = msgspec.json.decode(stored, type=DeviceStatus).alerted if stored else ()
        tables = {one.name for one in self.config.table}
        left = stale_of_edge(self.site, self.name, message, FAULTS, alerted=alerted, tables=tables)
        await self._stale_topics.clear(session, left)

    # ---- health

    def info(self) -> EdgeInfo:
        """The retained `info` of this edge, with the tables that the broker suspends."""
        drivers = tuple(sorted({session.device.driver for session in self.sessions}))
        return msgspec.structs.replace(
            super().info(),
            drivers=drivers,
            bootid=self.boot,
            journal=self.journal.name,
            boots=self.boots,
            signs=self.signs.tables,
        )

    def show_info(self) -> None:
        """Publish it again: the sign of a table changed."""
        self.retained.touch(self._info)

    def health(self) -> EdgeHealth:
        """Health of the edge: outbox, loop lag, room."""
        oldest = self.journal.after(self.outbox.cursor, 1) if self.outbox.depth else []
        usage = resource.getrusage(resource.RUSAGE_SELF)
        age_s = (self.now() - oldest[0].time).total_seconds() if oldest else 0.0
        return EdgeHealth(
            time=self.now(),
            outbox=OutboxHealth(self.outbox.depth, age_s),
            loop_lag_ms=round(self._lag * 1000, 1),
            disk_free=disk_free(self.journal),
            cpu_s=round(usage.ru_utime + usage.ru_stime, 3),
            rss=_resident(),
            boots=self.boots,
            devices={f"{session.table}/{session.device.name}": session.status.online for session in self.sessions},
            newest={table.name: self.journal.last(table.name) for table in self.config.table},
            examination=examined(self.journal.path),
        )

    async def _health(self) -> None:
        while True:
            await asyncio.sleep(HEALTH_EVERY)
            self.retained.touch(edge_topic(self.site, self.name, "health"))

    async def _watch(self) -> None:
        """At each pulse: how late this loop is, and whether the clock went back."""
        loop = asyncio.get_running_loop()
        clock = ClockWatch(self.journal.newest_time if self.journal.head else self.now(), loop.time())
        was: datetime | None = None
        self._show_clock(was)  # an alert of an earlier process ends
        while True:
            if (back := clock.look(self.now(), loop.time())) != was:
                was = back
                self._show_clock(was)
            due = next_pulse(loop.time())
            await asyncio.sleep(due - loop.time())
            self._lag = max(loop.time() - due, 0.0)

    def _show_clock(self, was: datetime | None) -> None:
        value = b""
        if was is not None:
            alert = words.alert("clock.back", say("text", day=f"{was:%Y-%m-%d}", time=f"{was:%H:%M:%S}"))
            self._log.error(alert.code, text=alert.text, remedy=alert.remedy)
            value = msgspec.json.encode(alert)
        for table in self.config.table:
            self.retained.put(clock_topic(self.site, table.name, self.name), value)


def _fail(done: asyncio.Future[None], error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
