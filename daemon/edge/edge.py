"""The edge process: all devices of this computer, one journal, one broker.

An event is durable in the journal before it is published; the outbox sends events in order. After each connection the
edge publishes meta, state, online, then the backlog. Readers request gaps by `cmd/replay`.
"""

import asyncio
import os
import resource
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from daemon import STARTED, logs, version
from daemon.broker.connection import Connect, stay_connected
from daemon.broker.heartbeat import beat
from daemon.broker.mac_keys import load_mac_key
from daemon.broker.outbox import Outbox
from daemon.broker.replay_service import ReplayService
from daemon.broker.restorer import Restorer
from daemon.broker.retained import Retained
from daemon.broker.session import Message, Session, Will, publish_offline_on_exit
from daemon.broker.stale_topics import METAS, STATE_FORGED, StaleTopics, alert_topic, clock_topic, stale_of_edge
from daemon.broker.suspensions import Suspensions
from daemon.config.model import Config, Device, Table, broker_of
from daemon.edge import home_assistant, pools
from daemon.edge.clock_watch import ClockWatch
from daemon.edge.commands import KEY, CommandService, obeyed
from daemon.edge.links.link import HostLink, open_link, utc_now
from daemon.edge.ordering import SIMULTANEOUS_S, EventOrdering
from daemon.edge.supervisor import Opener, supervise
from daemon.edge.tracing import Trace, publish
from daemon.journal.retention import disk_free
from daemon.journal.rows import Entry, Row
from daemon.journal.store import BadJournal, Journal
from daemon.pulse import next_pulse
from drivers import DRIVERS, FAULTS
from drivers.driver import CommandFailed, CommandRefused, Driver, Obeys, Sighting
from protocols.contract import commands
from protocols.contract.commands import Command, name_of
from protocols.contract.documents import (
    Alert,
    DeviceMeta,
    DeviceState,
    EdgeHealth,
    EdgeInfo,
    Fault,
    LastEvent,
    OutboxHealth,
)
from protocols.contract.events import (
    ASIDE,
    LONGEST_TEXT,
    DeviceCommanded,
    DeviceFaulted,
    DeviceOffline,
    DeviceOnline,
    DeviceRecovered,
    EventsMissed,
    encode_data,
    shortened,
    type_of,
)
from protocols.contract.topics import Wire, device_topic, edge_topic, encode_wire, mac_of, table_topic

__all__ = ["Edge"]

HEALTH_EVERY = 30.0
CLOCK_REMEDY = "check the computer's time service (timedatectl); results of this time need a look by a supervisor"
ONLINE, OFFLINE = b"online", b"offline"


# Events about the link only: they do not wait for backlogs and do not show that a backlog is complete.
_OF_THE_LINK = (DeviceOffline, DeviceFaulted, DeviceRecovered)
_OF_STATUS = frozenset({DeviceOnline, *_OF_THE_LINK})


Told: TypeAlias = Callable[[], tuple[list[Entry], dict[str, bytes]]]


class DeviceStatus(Struct, frozen=True):
    """The known status of a device, kept over restarts: a fault survives them until its end is seen."""

    online: bool = False
    model: str = ""
    serial: str = ""
    firmware: str = ""
    faults: tuple[Fault, ...] = ()
    reason: str = ""
    alerted: tuple[str, ...] = ()
    """The codes of all faults so far: the next process clears alerts whose end was not published."""
    driver: str = ""
    """The driver of these faults; "" is the configured one."""
    since: datetime | None = None
    """When it came online, or was lost."""


class DeviceSession:
    """One device in the edge: writes its events to the journal and its state to the broker."""

    def __init__(self, edge: "Edge", table: Table, device: Device) -> None:
        """Restore what the journal remembers."""
        self._edge = edge
        self.task: asyncio.Task[None] | None = None
        """That of the supervisor, once the device is served."""
        self.table = table.name
        self.device = device
        self._key = f"{table.name}/{device.name}"
        stored = edge.journal.memory(f"status/{self._key}")
        self.status = msgspec.json.decode(stored, type=DeviceStatus) if stored else DeviceStatus()
        self.state_topic = device_topic(edge.site, table.name, device.name, "state")
        self._link: HostLink | None = None
        self._driver: Driver | None = None
        self._session_ended: asyncio.Future[None] | None = None
        self._online_this_session = False
        self._has_reported = False
        """Whether it told anything in this life of the edge: until then what it may have kept is waited for."""
        self._bytes = (0, 0)
        self._changed = False
        """Whether the status changed with the transaction that is being written."""
        self.events = 0
        self.last: Row | None = None
        self._tells_cards = DRIVERS[device.driver].tells_cards
        self.trace = Trace(
            device_topic(edge.site, table.name, device.name, "trace"),
            self._no_round if self._tells_cards else None,
            self._untraced,
            edge.traced,
        )

    def move_to(self, edge: "Edge") -> None:
        """The edge of another configuration, in which this device is the same: its link stays open."""
        self._edge = edge

    @property
    def online(self) -> bool:
        """By its last event."""
        return self.status.online

    def memory(self) -> bytes | None:
        """The driver's memory, as of its last durable event."""
        return self._edge.journal.memory(f"driver/{self._key}") or None  # b"": another driver's, dropped

    def taken_up(self) -> tuple[list[Entry], dict[str, bytes]]:
        """The status belongs to the configured driver from now on: the events and values for one transaction.

        If it belonged to another driver, that device was replaced: its faults end, and its memory is dropped. The new
        driver reports whether the new device is there.
        """
        was, driver = self.status, self.device.driver
        if was.driver == driver:
            return [], {}
        if not was.driver:
            self.status = msgspec.structs.replace(was, driver=driver)
            return [], {f"status/{self._key}": msgspec.json.encode(self.status)}
        codes = [fault.code for fault in was.faults]
        self.status = DeviceStatus(was.online, reason=was.reason, alerted=was.alerted, driver=driver, since=was.since)
        place = {"table": self.table, "device": self.device.name}
        self._edge.log.info("device.exchanged", **place, was=was.driver, driver=driver, ended=codes)
        ends = [DeviceRecovered(code) for code in codes]
        now = self._edge.now()
        entries = [Entry(self.table, self.device.name, type_of(end), now, encode_data(end)) for end in ends]
        return entries, {f"status/{self._key}": msgspec.json.encode(self.status), f"driver/{self._key}": b""}

    @property
    def may_have_kept_events(self) -> bool:
        """It was online when the last process ended, and its driver has a memory to continue from."""
        return self.status.online and self.memory() is not None

    def has_fault(self, code: str) -> bool:
        """Whether `code` is open."""
        return any(fault.code == code for fault in self.status.faults)

    def linked(self, link: HostLink | None) -> None:
        """The link of the new session, for the byte counters."""
        if link is None and self._link is not None:
            self._bytes = (self._bytes[0] + self._link.received_bytes, self._bytes[1] + self._link.sent_bytes)
        self._link = link
        if link is not None:
            link.tap = self.trace.tap

    def driven(self, driver: Driver | None) -> None:
        """The driver that takes commands now."""
        if self._session_ended is not None and not self._session_ended.done():
            self._session_ended.set_result(None)
        self._driver = driver
        self._online_this_session = False
        self._session_ended = asyncio.get_running_loop().create_future()

    async def obey(self, command: Command) -> dict[str, Any]:
        """Execute a command. Raises CommandRefused or CommandFailed."""
        if isinstance(command, commands.Trace):
            return self._traced(command.seconds)
        driver, ended = self._driver, self._session_ended
        if (
            driver is None or ended is None or not self._online_this_session
        ):  # the status may still be that from before a restart
            raise CommandRefused(f"the device is offline: {self.status.reason or 'not met yet'}")
        if not isinstance(driver, Obeys) or type(command) not in driver.commands:
            known = ", ".join(map(name_of, driver.commands)) or "none"
            raise CommandRefused(f"such a device does not take this command; it takes: {known}")
        try:
            return await obeyed(driver.obey, command, ended)
        except (CommandRefused, CommandFailed, BadJournal):
            raise
        except Exception as error:
            self._edge.log.exception("driver.bug", driver=driver.name, command=name_of(command))
            raise CommandFailed(f"the driver failed: {type(error).__name__}: {error}") from error

    def _traced(self, seconds: int) -> dict[str, Any]:
        """Begin or end a trace. Raises CommandRefused."""
        if seconds and self._tells_cards and not self._edge.commands.is_ruled(self.table):
            raise CommandRefused("it tells cards, and without a ruleset nobody knows when a round is over")
        self.trace.begin(seconds, self._edge.now() + timedelta(seconds=seconds))
        if self._link is not None:
            self._link.tap = self.trace.tap
        self._edge.retained.touch(self.state_topic)
        return {"held_back": self._tells_cards} if seconds else {}

    def _untraced(self) -> None:
        """A trace has expired."""
        if self._link is not None:
            self._link.tap = None
        self._edge.retained.touch(self.state_topic)

    def newest(self) -> tuple[str, int]:
        """The name of the journal, and the newest seq of this table in it."""
        journal = self._edge.journal
        return journal.name, journal.last(self.table)

    def _no_round(self) -> bool:
        """Whether the rules have processed all events of the table and no round is open."""
        journal, newest = self.newest()
        return self._edge.commands.no_round_after(self.table, journal) == newest

    def commanded(self, told: DeviceCommanded, order: bytes, kept: Mapping[str, bytes]) -> None:
        """Durable when it returns. A command happens now, so it is not ordered with backlogs."""
        entry = Entry(
            self.table, self.device.name, type_of(told), self._edge.now(), encode_data(shortened(told)), order
        )
        [self.last] = self._edge.append([entry], kept)
        self.events += 1
        self._edge.retained.touch(self.state_topic)

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes received and sent since the process began."""
        now = (self._link.received_bytes, self._link.sent_bytes) if self._link else (0, 0)
        return self._bytes[0] + now[0], self._bytes[1] + now[1]

    async def emit(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        """Durable when it returns. One transaction: the events, the driver's memory, the status."""
        if not sightings and memory is None:
            return
        self._has_reported = self._has_reported or any(type(one.event) not in _OF_THE_LINK for one in sightings)
        if sightings and self._has_reported:
            await self._edge.ordering[self.table].wait_turn(self.device.name, _happened(sightings))
        await self._edge.commit(partial(self._told, sightings, memory), partial(self._durable, sightings))

    def _told(self, sightings: Sequence[Sighting], memory: bytes | None) -> tuple[list[Entry], dict[str, bytes]]:
        """The entries and values of one transaction. From here on the status is that after it."""
        entries = [self._entry(one) for one in sightings]
        kept: dict[str, bytes] = {} if memory is None else {f"driver/{self._key}": memory}
        status = self.status
        for one in sightings:
            if type(one.event) in _OF_STATUS:
                status = _after(status, _shortened(one))
        if status is not self.status:
            kept[f"status/{self._key}"] = msgspec.json.encode(status)
            self.status = status
            self._changed = True
        return entries, kept

    def _durable(self, sightings: Sequence[Sighting], rows: list[Row]) -> None:
        """The transaction is written."""
        if sightings and self._has_reported and not sightings[-1].behind:
            self._edge.ordering[self.table].caught_up(self.device.name)
        self._online_this_session = self._online_this_session or any(
            isinstance(one.event, DeviceOnline) for one in sightings
        )
        self.events += len(rows)
        self.last = rows[-1] if rows else self.last
        if self._changed:
            self._changed = False
            self._edge.show(self)
        else:
            self._edge.retained.touch(self.state_topic)

    def _entry(self, one: Sighting) -> Entry:
        """Writes into the event how late it came, and whether its bet was closed, so that rules always decide alike."""
        event = one.event
        if one.age >= SIMULTANEOUS_S:
            event = msgspec.structs.replace(event, age_ms=int(one.age * 1000))
        ordering, happened = self._edge.ordering[self.table], one.chunk.tick - one.age
        if type(event) not in ASIDE and (late_ms := ordering.late_ms(self.device.name, happened)):
            event = msgspec.structs.replace(event, overtaken=late_ms)
        if self._edge.pools.closed:
            event = self._edge.pools.mark(self.table, event, happened)
        data = encode_data(event)
        if len(data) > LONGEST_TEXT:
            data = encode_data(shortened(event))
        return Entry(self.table, self.device.name, type_of(event), one.chunk.at, data, one.wire)

    def meta(self) -> DeviceMeta:
        """The retained `meta`."""
        status, device = self.status, self.device
        return DeviceMeta(device.driver, status.model, status.serial, status.firmware, device.url, self._edge.name)

    @property
    def found(self) -> home_assistant.FoundDevice:
        """The description of the device for Home Assistant."""
        status = self.status
        device = self.device
        return home_assistant.FoundDevice(
            self.table, device.name, device.driver, status.model, status.serial, status.firmware
        )

    def state(self) -> DeviceState:
        """The retained `state`: a full snapshot."""
        received, sent = self.traffic
        # How many bytes a card took says which it may be: `H10` is longer than `HK`.
        traffic = {} if self._tells_cards else {"bytes_received": received, "bytes_sent": sent}
        last = self.last
        return DeviceState(
            self.status.online,
            self.status.reason,
            self.status.faults,
            {"events": self.events, **traffic},
            LastEvent(last.type, last.time, last.seq) if last else None,
            self.trace.until,
            self.status.since,
        )


def _shortened(one: Sighting) -> Sighting:
    event = shortened(one.event)
    return one if event is one.event else msgspec.structs.replace(one, event=event)


def _happened(sightings: Sequence[Sighting]) -> float:
    """The time of the first one, on the loop's clock. `device.online` before a backlog waits for nothing."""
    return min((one.chunk.tick - one.age for one in sightings if one.age or not one.behind), default=float("-inf"))


def _after(status: DeviceStatus, one: Sighting) -> DeviceStatus:
    match one.event:
        case DeviceOnline(model=model, serial=serial, firmware=firmware):
            since = status.since if status.online and status.since else one.chunk.at
            return msgspec.structs.replace(
                status, online=True, reason="", model=model, serial=serial, firmware=firmware, since=since
            )
        case DeviceOffline(reason=reason):
            since = one.chunk.at if status.online or status.since is None else status.since
            return msgspec.structs.replace(status, online=False, reason=reason, since=since)
        case DeviceFaulted(code=code, text=text, severity=severity, remedy=remedy):
            others = tuple(fault for fault in status.faults if fault.code != code)
            faults = (*others, Fault(code, text, severity, remedy, one.chunk.at))
            return msgspec.structs.replace(status, faults=faults, alerted=_with(status.alerted, code))
        case DeviceRecovered(code=code):
            faults = tuple(fault for fault in status.faults if fault.code != code)
            return msgspec.structs.replace(status, faults=faults, alerted=_with(status.alerted, code))
        case _:
            return status


def _with(codes: tuple[str, ...], code: str) -> tuple[str, ...]:
    return codes if code in codes else (*codes, code)


class Edge:
    """The process."""

    def __init__(  # over 60 lines: it connects the parts of the process
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

        `before`: the edge of the configuration before, whose unchanged devices go on. Raises BadMacKey.
        """
        self.config, self.journal = config, journal
        self.name, self.site = config.edge.name, config.site.name
        self.now = now
        self._opener: Opener = opener or partial(open_link, now=now)
        self._connect = connect
        self._mac_key = load_mac_key(Path(config.edge.mac_key_file)) if config.edge.mac_key_file else b""
        self.boot: str = before.boot if before else uuid.uuid4().hex[:12]
        self.log = logs.get(edge=self.name)
        self._suspensions = Suspensions(self.log, self._tell_suspended)
        self.outbox = self._own_outbox()
        self.replay = ReplayService(
            self.name,
            journal,
            [table_topic(self.site, table.name, "cmd/replay") for table in config.table],
            self._message_of,
            lambda: self.outbox.waiting,
            self.log,
            self._mac_key,
        )
        self.retained = Retained()
        alerts = {table.name: [alert_topic(self.site, table.name, self.name, STATE_FORGED)] for table in config.table}
        will = edge_topic(self.site, self.name, "availability"), OFFLINE
        self._restorer = Restorer(self.retained, alerts, will, self.log)
        self._stale_topics = StaleTopics(self.log)
        self.traced: asyncio.Event = before.traced if before else asyncio.Event()
        self.sessions = self._sessions(before)
        self.boots: int = before.boots if before else int(journal.memory("boots") or b"0") + 1
        self._take_up()
        kept = [session for session in self.sessions if session.may_have_kept_events]
        self.ordering = {
            table.name: EventOrdering(session.device.name for session in kept if session.table == table.name)
            for table in config.table
        }
        self.pools = self._watched_pools()
        if before:
            self.ordering |= {name: one for name, one in before.ordering.items() if name in self.ordering}
            self.pools.go_on(before.pools)
        self.commands = self._command_service()
        self._discovery = self._home_assistant()
        for session in self.sessions:
            self.show(session)
        self.connected = False
        self._group: asyncio.TaskGroup | None = None
        self._waiting: list[tuple[Told, Callable[[list[Row]], None], asyncio.Future[None]]] = []
        self._lag = 0.0

    def _sessions(self, before: "Edge | None") -> list[DeviceSession]:
        """Of all devices; those that are configured as before go on."""
        known = before.sessions if before else []
        found = []
        for table in self.config.table:
            for device in table.device:
                same = [session for session in known if (session.table, session.device) == (table.name, device)]
                found += same or [DeviceSession(self, table, device)]
        for session in found:
            session.move_to(self)
        return found

    def _own_outbox(self) -> Outbox:
        configured = {(table.name, device.name) for table in self.config.table for device in table.device}
        removed = lambda row: (row.place, row.device) not in configured  # noqa: E731
        return Outbox(self.journal, self._message_of, removed, self._suspensions.refused)

    def _command_service(self) -> CommandService:
        return CommandService(
            {(session.table, session.device.name): session for session in self.sessions},
            frozenset(table.name for table in self.config.table if table.ruleset),
            self.journal.memories(KEY),
            partial(self.append, []),
            self.now,
            self.log,
        )

    def _watched_pools(self) -> pools.Pools:
        tables = [table.name for table in self.config.table]
        stored = self.journal.memories(pools.KEY)
        store = partial(self.append, [])
        return pools.Pools(self.site, self.name, tables, stored, store, self.retained, self.log)

    def _home_assistant(self) -> home_assistant.Discovery:
        return home_assistant.Discovery(
            self._found,
            self.journal.memory(home_assistant.KEY),
            lambda kept: self.append([], {home_assistant.KEY: kept}),
            f"let the edge's user write {home_assistant.writes(self.site, self.name)}, or set home_assistant to false",
            self.log,
        )

    def _take_up(self) -> None:
        """In one transaction: record the start, and end what the configuration no longer contains."""
        kept = {"boots": b"%d" % self.boots}
        told: list[tuple[DeviceSession, Entry]] = []
        for session in [one for one in self.sessions if one.task is None]:
            entries, left = session.taken_up()
            told += [(session, entry) for entry in entries]
            kept |= left
        rows = self.journal.append([entry for _, entry in told], kept)
        for (session, _), row in zip(told, rows, strict=True):
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
        """The devices that `new` no longer has, or has otherwise."""
        kept = [(table.name, device) for table in new.table for device in table.device]
        return [session for session in self.sessions if (session.table, session.device) not in kept]

    def busy(self, new: Config) -> list[str]:
        """The tables where `new` would take a device out of an open round, or end a command."""
        tables = {session.table for session in self._gone(new)}
        return [*filter(self.commands.may_be_in_round, tables), *self.commands.tables_at_work]

    async def release(self, new: Config) -> None:
        """Close the devices that `new` no longer has, or has otherwise."""
        gone = [session.task for session in self._gone(new) if session.task is not None]
        for task in gone:
            task.cancel()
        if gone:
            await asyncio.wait(gone)

    def followed_by(self, new: Config) -> "Edge":
        """The edge of `new`; devices that stay the same are not touched. Raises BadMacKey."""
        return Edge(new, self.journal, now=self.now, opener=self._opener, connect=self._connect, before=self)

    async def serve(self) -> None:
        """Publish, answer and watch until cancelled. The devices are served by `supervise`."""
        self.log.info(
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
                will = Will(edge_topic(self.site, self.name, "availability"), OFFLINE)
                identifier = f"feltd-edge-{self.name}"
                broker = broker_of(self.config, self.config.edge)
                group.create_task(self.replay.listen(broker, identifier, self._connect))
                group.create_task(stay_connected(broker, identifier, will, self._serve, self.log, self._connect))
                group.create_task(self._watch())
                group.create_task(self.pools.watch())
        except asyncio.CancelledError:
            if sent := self.outbox.memory(exact=True):
                self.journal.append([], sent)
            raise

    async def commit(self, told: Told, durable: Callable[[list[Row]], None]) -> None:
        """Write what `told` returns; durable when it returns, and `durable` has had the rows. Raises BadJournal.

        What comes from several devices in one turn of the loop shares one transaction: with 50 tables one fdatasync
        and not 50. A lone event waits for one turn, 6 us. Both functions are called although the caller is cancelled
        meanwhile.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._commit)
        self._waiting.append((told, durable, done))
        await done

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        entries: list[Entry] = []
        memory: dict[str, bytes] = {}
        written: list[tuple[int, Callable[[list[Row]], None], asyncio.Future[None]]] = []
        for told, durable, done in waiting:
            try:
                new, kept = told()
            except Exception as error:  # noqa: BLE001 - a bug of one driver: it gets it, and the others go on
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

    def append(self, entries: list[Entry], memory: Mapping[str, bytes]) -> list[Row]:
        """Write entries to the journal and offer them to the outbox."""
        rows = self.journal.append(entries, {**memory, **self.outbox.memory()})
        self.outbox.offer(rows)
        return rows

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
            text = f"{session.device.name} does not answer: {session.status.reason or 'never seen'}"
            remedy = "check power and cable; it comes back by itself"
            offline = Alert(device=session.device.name, code="device.offline", text=text, remedy=remedy)
            alerts["device.offline"] = msgspec.json.encode(offline)
        self._discovery.touch()
        for code, value in alerts.items():
            self.retained.put(alert_topic(self.site, session.table, session.device.name, code), value)

    def _found(self) -> dict[str, bytes]:
        """The discovery messages for Home Assistant, by topic."""
        if not self.config.edge.home_assistant:
            return {}
        told = partial(home_assistant.device_config, self.site, self.name, version())
        games = [table.name for table in self.config.table if table.ruleset]
        rules = self.config.rules.name
        return {
            **dict(home_assistant.table_config(self.site, self.name, version(), game, rules) for game in games),
            **dict(told(session.found) for session in self.sessions),
        }

    def _message_of(self, row: Row, late: bool) -> tuple[str, bytes]:
        source = device_topic(self.site, row.place, row.device, "")[:-1]
        if row.unreadable:  # readers cannot use an event without a time, and must learn that there was one
            missed = EventsMissed(1)
            row = msgspec.structs.replace(row, type=type_of(missed), data=encode_data(missed))
        wire = Wire(
            "1.0",
            f"{self.name}:{row.place}:{row.seq}",
            source,
            row.type,
            row.time,
            row.seq,
            self.boot,
            self.journal.name,
            late,
            msgspec.Raw(row.data),
        )
        if self._mac_key:
            wire = msgspec.structs.replace(wire, mac=mac_of(wire, self._mac_key))
        return f"{source}/event/{row.type}", encode_wire(wire)

    # ---- on the broker

    async def _serve(self, session: Session) -> None:
        async with publish_offline_on_exit(session, edge_topic(self.site, self.name, "availability"), OFFLINE):
            try:
                await self._served(session)
            finally:
                self.connected = False
                self.commands.disconnected()

    async def _served(self, session: Session) -> None:
        tables = [table.name for table in self.config.table]
        session.tolerates = self._suspensions.refused
        self.commands.connected(session)
        topics = [edge_topic(self.site, "+", "availability"), *self.pools.topics()]
        for table in tables:
            topics += [table_topic(self.site, table, leaf) for leaf in ("round/state", METAS)]
            topics.append(device_topic(self.site, table, "+", "cmd/+"))
        session.own_topics = frozenset(self._own_topics())
        await session.subscribe(*topics, *session.own_topics)
        self.retained.put(edge_topic(self.site, self.name, "info"), self.info)
        self.retained.put(edge_topic(self.site, self.name, "health"), self.health)
        for one in self.sessions:
            self.show(one)
        self.retained.put(edge_topic(self.site, self.name, "availability"), ONLINE)
        await self.replay.until_heard()  # readers that see us online send requests at once
        await self.retained.publish_all(session)
        self.connected = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self.outbox.run(session))
            group.create_task(self.replay.run(session))
            group.create_task(self.retained.run(session))
            group.create_task(self._restorer.run())
            group.create_task(self._suspensions.run(session, self.outbox, self.retained))
            group.create_task(self._discovery.run(session))
            group.create_task(self._commands(session))
            group.create_task(self._health())
            group.create_task(beat(session, self.site, self.name))
            group.create_task(publish(session, [one.trace for one in self.sessions], self.traced))
            every = table_topic(self.site, "+", METAS)
            group.create_task(self._stale_topics.look(session, every, own=bool(self.sessions)))

    def _own_topics(self) -> list[str]:
        """The topics that this edge retains."""
        topics = [edge_topic(self.site, self.name, "+")]
        topics += [table_topic(self.site, table.name, "alert/+") for table in self.config.table]
        for session in self.sessions:
            topics += [
                device_topic(self.site, session.table, session.device.name, leaf) for leaf in ("availability", "state")
            ]
        return topics

    async def _commands(self, session: Session) -> None:
        while True:
            for message in await session.messages():
                self._restorer.heard(message)
                match message.topic.split("/")[3:]:
                    case ["edge", name, "availability"]:
                        if not message.payload:  # `feltd forget` may have cleared topics that are ours now
                            self.retained.again("")
                        if name == self.config.rules.name:
                            self.commands.rules_are(message.payload == ONLINE)
                    case ["edge", name, "alive"]:
                        self.pools.beat(name)
                    case ["jackpot", pool, "owner"]:
                        heard = self.pools.topics()
                        self.pools.is_owned(pool, message.payload)
                        if new := [topic for topic in self.pools.topics() if topic not in heard]:
                            await session.subscribe(*new)
                    case ["table", table, "round", "state"]:
                        self.commands.round_is(table, message.payload)
                    case ["table", table, "device", device, "meta"]:
                        await self._met(session, table, device, message)
                    case ["table", _, "device", _, "cmd", _] if self._group is not None:
                        await self.commands.take(message, self._group)
                    case _:  # a broker may deliver what another client subscribed to
                        pass

    async def _met(self, session: Session, table: str, device: str, message: Message) -> None:
        """A retained topic of a device: cleared if the device was ours and was removed."""
        if any((one.table, one.device.name) == (table, device) for one in self.sessions):
            self._stale_topics.heard_own()
            return
        stored = self.journal.memory(f"status/{table}/{device}")
        alerted = msgspec.json.decode(stored, type=DeviceStatus).alerted if stored else ()
        tables = {one.name for one in self.config.table}
        left = stale_of_edge(self.site, self.name, message, FAULTS, alerted=alerted, tables=tables)
        await self._stale_topics.clear(session, left)

    # ---- health

    def _tell_suspended(self) -> None:
        self.retained.touch(edge_topic(self.site, self.name, "info"))

    def info(self) -> EdgeInfo:
        """What this edge is, and which tables the broker suspends."""
        drivers = tuple(sorted({session.device.driver for session in self.sessions}))
        return EdgeInfo(
            version(),
            self.config.digest,
            drivers,
            self.boot,
            self.journal.name,
            self.boots,
            suspended=self._suspensions.reasons,
            started=STARTED,
        )

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
        self._show_clock(was)  # the alert of an earlier life ends
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
            text = f"the clock went back: it was {was:%Y-%m-%d %H:%M:%S} UTC already"
            self.log.error("clock.back", text=text, remedy=CLOCK_REMEDY)
            value = msgspec.json.encode(Alert(code="clock.back", text=text, remedy=CLOCK_REMEDY))
        for table in self.config.table:
            self.retained.put(clock_topic(self.site, table.name, self.name), value)


def _fail(done: asyncio.Future[None], error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
