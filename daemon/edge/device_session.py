"""One device in the edge: its events go to the journal, its state to the broker, commands to its driver."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.config.model import Device, Table
from daemon.edge import home_assistant
from daemon.edge.commands import obeyed
from daemon.edge.floor import DECISIONS
from daemon.edge.links.link import HostLink
from daemon.edge.ordering import SIMULTANEOUS_S
from daemon.edge.tracing import Trace
from daemon.journal.rows import Entry, Row
from daemon.journal.store import BadJournal
from drivers import DRIVERS
from drivers.driver import CommandFailed, CommandRefused, Driver, Obeys, Sighting
from protocols.contract import commands
from protocols.contract.commands import Command, name_of
from protocols.contract.documents import DeviceMeta, DeviceState, Fault, LastEvent
from protocols.contract.events import (
    ASIDE,
    LONGEST_TEXT,
    DeviceCommanded,
    DeviceFaulted,
    DeviceOffline,
    DeviceOnline,
    DeviceRecovered,
    WagerPlaced,
    encode_data,
    shortened,
    type_of,
)
from protocols.contract.topics import device_topic

if TYPE_CHECKING:
    from daemon.edge.edge import Edge

__all__ = ["DeviceSession", "DeviceStatus"]

# Before any other event these do not wait for backlogs, and do not show that a backlog is complete.
_OF_THE_LINK = (DeviceOffline, DeviceFaulted, DeviceRecovered)
_OF_STATUS = frozenset({DeviceOnline, *_OF_THE_LINK})


class DeviceStatus(Struct, frozen=True):
    """The status of a device, kept over restarts: a fault remains until its end is reported."""

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
        """Restore the stored status."""
        self._edge = edge
        self.task: asyncio.Task[None] | None = None
        """The supervisor's task, once the device is served."""
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
        self.on_online: Callable[[Sighting, int], Awaitable[None]] | None = None
        self._has_reported = False
        """Whether it reported anything since the edge started; until then its backlog is waited for."""
        self._bytes = (0, 0)
        self._changed = False
        """Whether the status changed with the transaction that is being written."""
        self._decided = False
        """Whether the transaction that is being written has a decision about the table."""
        self.events = 0
        self.last: Row | None = None
        self._reports_cards = DRIVERS[device.driver].tells_cards
        self.trace = Trace(
            device_topic(edge.site, table.name, device.name, "trace"),
            self._no_round if self._reports_cards else None,
            self._untraced,
            edge.traced,
        )

    def move_to(self, edge: "Edge") -> None:
        """Continue under the edge of another configuration in which this device is unchanged: its link stays open."""
        self._edge = edge

    @property
    def online(self) -> bool:
        """Whether the device is online by its last event."""
        return self.status.online

    def memory(self) -> bytes | None:
        """The driver's memory, as it was last committed, with events or without."""
        return self._edge.journal.memory(f"driver/{self._key}") or None  # b"": another driver's, dropped

    def taken_up(self) -> tuple[list[Entry], dict[str, bytes]]:
        """Assign the status to the configured driver; returns the events and values for one transaction.

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
        logs.get(edge=self._edge.name).info("device.exchanged", **place, was=was.driver, driver=driver, ended=codes)
        ends = [DeviceRecovered(code) for code in codes]
        now = self._edge.now()
        entries = [Entry(self.table, self.device.name, type_of(end), now, encode_data(end)) for end in ends]
        return entries, {f"status/{self._key}": msgspec.json.encode(self.status), f"driver/{self._key}": b""}

    @property
    def may_have_kept_events(self) -> bool:
        """Whether it was online when the last process ended, and its driver has a memory to continue from."""
        return self.status.online and self.memory() is not None

    def has_fault(self, code: str) -> bool:
        """Whether `code` is open."""
        return any(fault.code == code for fault in self.status.faults)

    def linked(self, link: HostLink | None) -> None:
        """The link of the new session, for the byte counters and the trace; None at its end."""
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
        """Execute a command. Raises CommandRefused, CommandFailed or BadJournal."""
        if isinstance(command, commands.Trace):
            return self._traced(command.seconds)
        driver, ended = self._driver, self._session_ended
        if (
            driver is None or ended is None or not self._online_this_session
        ):  # the status may still be that from before a restart
            raise CommandRefused(f"the device is offline: {self.status.reason or 'not connected yet'}")
        if not isinstance(driver, Obeys) or type(command) not in driver.commands:
            known = ", ".join(map(name_of, driver.commands)) or "none"
            raise CommandRefused(f"such a device does not take this command; it takes: {known}")
        try:
            return await obeyed(driver.obey, command, ended)
        except (CommandRefused, CommandFailed, BadJournal):
            raise
        except Exception as error:
            logs.get(edge=self._edge.name).exception("driver.bug", driver=driver.name, command=name_of(command))
            raise CommandFailed(f"the driver failed: {type(error).__name__}: {error}") from error

    def _traced(self, seconds: int) -> dict[str, Any]:
        """Begin or end a trace. Raises CommandRefused."""
        if seconds and self._reports_cards and not self._edge.commands.is_ruled(self.table):
            raise CommandRefused("it reports cards, and without a ruleset it is unknown when a round is over")
        if seconds and self._reports_cards and self._edge.commands.keeps_cards(self.table):
            raise CommandRefused("it reports cards, and at this game those that nobody has shown stay hidden")
        self.trace.begin(seconds, self._edge.now() + timedelta(seconds=seconds))
        if self._link is not None:
            self._link.tap = self.trace.tap
        self._edge.retained.touch(self.state_topic)
        return {"held_back": self._reports_cards} if seconds else {}

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

    def commanded(self, event: DeviceCommanded, order: bytes, kept: Mapping[str, bytes]) -> None:
        """Commit the event of a command. It happens now, so it is not ordered with backlogs."""
        entry = Entry(
            self.table,
            self.device.name,
            type_of(event),
            self._edge.now(),
            encode_data(shortened(event)),
            order,
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
        """Commit the events, the driver's memory and the status in one transaction."""
        if not sightings and memory is None:
            return
        ordering = self._edge.ordering[self.table]
        self._has_reported = self._has_reported or any(type(one.event) not in _OF_THE_LINK for one in sightings)
        if sightings and self._has_reported and (ordering.behind or ordering.heads):
            await ordering.wait_turn(self.device.name, _happened(sightings))
        await self._edge.commit(partial(self._entries_of, sightings, memory), partial(self._durable, sightings))
        for one in sightings:
            if self.on_online is not None and type(one.event) is DeviceOnline:
                await self.on_online(one, sightings[-1].behind)

    def _entries_of(self, sightings: Sequence[Sighting], memory: bytes | None) -> tuple[list[Entry], dict[str, bytes]]:
        """The entries and values of one transaction. From here on the status is that after it."""
        entries: list[Entry] = []
        kept: dict[str, bytes] = {} if memory is None else {f"driver/{self._key}": memory}
        for one in sightings:
            entries.append(self._entry(one))
            if isinstance(one.event, DECISIONS):
                kept |= self._edge.signs.decide(self.table, one.event, one.chunk.at)
                self._decided = True
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
        ordering = self._edge.ordering[self.table]
        if sightings and self._has_reported and ordering.behind and not sightings[-1].behind:
            ordering.caught_up(self.device.name)
        self._online_this_session = self._online_this_session or any(
            isinstance(one.event, DeviceOnline) for one in sightings
        )
        self.events += len(rows)
        self.last = rows[-1] if rows else self.last
        if self._decided:
            self._decided = False
            self._edge.show_info()
        if self._changed:
            self._changed = False
            self._edge.show(self)
        else:
            self._edge.retained.touch(self.state_topic)

    def _entry(self, one: Sighting) -> Entry:
        """The event with its lateness, a bet with the state of table and pool, so that rules and books decide alike."""
        event = one.event
        if one.age >= SIMULTANEOUS_S:
            event = msgspec.structs.replace(event, age_ms=int(one.age * 1000))
        ordering, happened = self._edge.ordering[self.table], one.chunk.tick - one.age
        if type(event) not in ASIDE and (late_ms := ordering.late_ms(self.device.name, one.chunk, one.age)):
            event = msgspec.structs.replace(event, overtaken=late_ms)
        if self._edge.pools.closed:
            event = self._edge.pools.mark(self.table, event, happened)
        if isinstance(event, WagerPlaced):
            event = self._edge.signs.mark(self.table, event, one.chunk.at - timedelta(seconds=one.age))
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
        # The number of bytes may reveal a card: `H10` is longer than `HK`.
        traffic = {} if self._reports_cards else {"bytes_received": received, "bytes_sent": sent}
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
    """The time of the first event, on the loop's clock. `device.online` before a backlog does not wait."""
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
