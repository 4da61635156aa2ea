"""The site as the console knows it: what the broker says, how old that is, and what follows for each lamp.

Truthful before all: what an absent edge once said of its devices is not known to be so now, and without the broker
nothing is.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from daemon import logs
from daemon import read_model as picture
from daemon.broker.connection import Connect
from daemon.broker.session import UNREADABLE, Message
from daemon.config.model import Config, Table
from daemon.read_model import Picture, TableView
from protocols.contract.documents import Alert, DeviceMeta, DeviceState, EdgeHealth, EdgeInfo, Whole
from protocols.contract.events import EVENT_TYPES
from protocols.contract.results import Result
from protocols.contract.topics import Wire, is_id

__all__ = ["AlertKey", "Amount", "Change", "DeviceNow", "EdgeNow", "Lamp", "Seen", "Site"]

Lamp: TypeAlias = Literal["good", "warning", "error", "offline", "unknown"]
AlertKey: TypeAlias = tuple[str, str]

ROUNDS = 100
CHANGES = 200
EVENTS = 50
MOST_DEVICES = 5000
MOST_EDGES = 500
MOST_AMOUNTS = 40
MOST_COMPLAINED = 1000
# Bytes of an event on a page, of which some are kept for each device.
LONGEST_SHOWN = 4096
JACKPOT = ("display.shown", "jackpot.won", "jackpot.paid", "jackpot.reset")
# What of an event may be a card: shown by the round's own view when its time has come, and nowhere else.
PRIVATE = frozenset(
    (
        *("card.damaged", "card.drawn", "card.exposed", "deal.corrected", "deck.miscounted", "hole_card.peeked"),
        *("wager.placed", "wager.withdrawn"),
    )
)
# Whatever a newer edge may tell besides is not known to hold none.
SHOWN = frozenset(EVENT_TYPES) - PRIVATE


class Change(Struct, frozen=True):
    """One line of a device's history."""

    at: datetime
    kind: str
    text: str


class Seen(Struct, frozen=True):
    """One event of a device. `data` is empty where it may hold a card."""

    at: datetime
    seq: int
    type: str
    data: str
    id: str
    replay: bool


class Amount(Struct, frozen=True):
    """A jackpot as told: what a display shows (`confirmed`: read back from it), or what became of a pool."""

    name: str
    at: datetime
    type: str
    text: str = ""
    amount: int = 0
    level: int = 0
    confirmed: bool = False


class DeviceNow:
    """One device."""

    def __init__(self, table: str, name: str) -> None:
        """Nothing is known yet."""
        self.table = table
        self.name = name
        self.online: bool | None = None
        self.meta = DeviceMeta()
        self.state = DeviceState()
        self.heard: datetime | None = None
        """When the broker last said something of it."""
        self.history: deque[Change] = deque(maxlen=CHANGES)
        self.events: deque[Seen] = deque(maxlen=EVENTS)
        self.count = 0

    @property
    def there(self) -> bool:
        """Whether anybody tells of it. Of one that was taken away only the past is known."""
        return self.online is not None or self.meta.edge != ""


class EdgeNow:
    """One edge, or the rules."""

    def __init__(self, name: str) -> None:
        """Nothing is known yet."""
        self.name = name
        self.online: bool | None = None
        self.info = EdgeInfo()
        self.health: EdgeHealth | None = None
        self.heard: datetime | None = None


class _AmountData(Struct, frozen=True):
    pool: str = ""
    text: str = ""
    amount: Whole = 0
    level: Whole = 0
    confirmed: bool = False


class Site:
    """Kept up to date by `picture.run`. Who listens hears of what changed by its key.

    Keys: `broker`; `present`, which edges and rules are there; `edges`, also what they say of themselves; `alerts`;
    `table/<table>`, the round, the lamps, the alerts; `results/<table>`; `last/<table>`, there was an event;
    `devices/<table>` and `device/<table>/<device>`, what devices say of themselves; `events/<table>/<device>`.
    """

    def __init__(self, config: Config, now: Callable[[], datetime], *, connect: Connect | None = None) -> None:
        """Tables and devices of the configuration are there from the start, unknown until the broker speaks of them."""
        self.config = config
        self.now = now
        self.site = config.site.name
        self._log = logs.get(console=self.site)
        self.picture = Picture(config.mqtt, config.site.name, back=ROUNDS, keep=ROUNDS, sparing=True, connect=connect)
        self.picture.on_message = self._look
        self.picture.on_event = self._event
        self.picture.on_result = self._result
        self.picture.on_round = self._round
        self.picture.on_noted = self._noted
        self.picture.on_refused = self._refused
        self._complained: set[str] = set()
        self.devices: dict[tuple[str, str], DeviceNow] = {}
        self.edges: dict[str, EdgeNow] = {}
        self.configured: dict[str, Table] = {table.name: table for table in config.table}
        self._configured: dict[tuple[str, str], DeviceMeta] = {}
        self.on_event: list[Callable[[str, Wire], None]] = []
        self.on_result: list[Callable[[str, str, Result], None]] = []
        self.on_alert: list[Callable[[AlertKey, Alert | None, datetime], None]] = []
        self.on_trace: list[Callable[[str, str, bytes], None]] = []
        self.on_reply: list[Callable[[str, str, bytes], None]] = []
        self.on_history: list[Callable[[str, str, Change], None]] = []
        self.on_change: list[Callable[[str], None]] = []
        self.amounts: dict[str, dict[str, Amount]] = {}
        """By table, by display or pool, the last that was told."""
        self.lost: datetime | None = now()
        """Since when the broker has been away; None while it is there."""
        self.messages = 0
        for table in config.table:
            self.picture.tables.setdefault(table.name, TableView(ROUNDS))
            for device in table.device:
                known = self._device(table.name, device.name)
                known.meta = self._configured[table.name, device.name] = DeviceMeta(
                    driver=device.driver, url=device.url, edge=config.edge.name
                )

    # ---- what is asked of it

    @property
    def broker(self) -> bool:
        """Whether the broker is there."""
        return self.picture.connected

    @property
    def tables(self) -> dict[str, TableView]:
        """All tables by name."""
        return self.picture.tables

    def devices_of(self, table: str) -> list[DeviceNow]:
        """The devices that are at one table, in the order of the configuration."""
        return [device for (name, _), device in self.devices.items() if name == table and device.there]

    def there(self, table: str) -> bool:
        """Whether the table is: in the configuration, or by what the broker says. Of others only the past is known."""
        view = self.tables.get(table)
        ruled = view is not None and view.phase != "-"
        return ruled or table in self.configured or bool(self.devices_of(table))

    def ruleset(self, table: str) -> str:
        """The game of a table, as the configuration or its last result says; "" where none is played."""
        if table in self.configured:
            return self.configured[table].ruleset
        results = self.tables[table].results
        return results[-1].ruleset if results else ""

    def known(self, device: DeviceNow) -> bool:
        """Whether what is known of a device is known to be so now."""
        edge = self.edges.get(device.meta.edge)
        return self.broker and device.online is not None and edge is not None and edge.online is True

    def lamp(self, device: DeviceNow) -> Lamp:
        """What a device's lamp shows."""
        if not self.known(device):
            return "unknown"
        if not device.online:
            return "offline"
        severities = {fault.severity for fault in device.state.faults}
        return "error" if "error" in severities else "warning" if severities else "good"

    def rules(self) -> bool | None:
        """Whether the rules resolve rounds now; None: not known."""
        one = self.edges.get(self.config.rules.name)
        return one.online if self.broker and one is not None else None

    # ---- what was before

    def remember_result(self, table: str, result: Result) -> None:
        """A result of before the start, the oldest first."""
        if self._room(table):
            self.picture.recall(table, result)

    def remember_change(self, table: str, device: str, change: Change) -> None:
        """A line of a device's history of before the start, the oldest first."""
        if self._room(table, device):
            self._device(table, device).history.append(change)

    # ---- what the broker says

    def changed(self, key: str) -> None:
        """Tell who listens."""
        for hear in self.on_change:
            hear(key)

    def connection(self) -> None:
        """To be called after each change of the picture: notes when the broker comes and goes."""
        if self.broker == (self.lost is None):
            return
        self.lost = None if self.broker else self.now()
        for edge in self.edges.values():
            edge.online = None  # until the broker says so again
        for device in self.devices.values():
            device.online = None
        self.changed("broker")

    def _device(self, table: str, name: str) -> DeviceNow:
        key = table, name
        if key not in self.devices:
            self.devices[key] = DeviceNow(table, name)
        return self.devices[key]

    def _room(self, table: str, device: str = "") -> bool:
        """Whether one more may be remembered: whoever may write on the broker must not fill our memory."""
        if device and (table, device) not in self.devices and len(self.devices) >= MOST_DEVICES:
            return False
        return table in self.tables or len(self.tables) < picture.MOST_TABLES

    def _look(self, message: Message) -> None:
        self.messages += 1
        self.connection()
        match message.topic.split("/")[3:]:
            case ["edge", name, leaf] if name in self.edges or len(self.edges) < MOST_EDGES:
                self._edge(name, leaf, message.payload)
            case ["table", table, "device", name, "trace"]:
                for hear in self.on_trace:
                    hear(table, name, message.payload)
            case ["table", table, "device", name, "cmd", _, "result"]:
                for hear in self.on_reply:
                    hear(table, name, message.payload)
            case ["table", table, "device", name, leaf] if self._room(table, name):
                self._device_says(table, name, leaf, message.payload)
            case ["table", table, "alert", alert] if self._room(table):
                self._alert(table, alert, message.payload)
            case _:
                pass

    def _refused(self, topic: str, why: str) -> None:
        """Said once of each topic: who says nonsense may say it all night."""
        if topic not in self._complained and len(self._complained) < MOST_COMPLAINED:
            self._complained.add(topic)
            self._log.warning("console.unreadable", topic=topic, reason=why)

    @contextlib.contextmanager
    def _reading(self, payload: bytes) -> Iterator[None]:
        """What cannot be read is counted; what was cleared says nothing."""
        try:
            yield
        except UNREADABLE:
            self.picture.refused += bool(payload)

    def _edge(self, name: str, leaf: str, payload: bytes) -> None:
        if not payload:
            if leaf == "availability" and self.edges.pop(name, None) is not None:  # cleared: it is gone for good
                self.changed("present")
                self.changed("edges")
            return
        edge = self.edges.setdefault(name, EdgeNow(name))
        with self._reading(payload):
            match leaf:
                case "availability":
                    edge.online = payload == b"online"
                    for device in self.devices.values():
                        if device.meta.edge == name:
                            self._told(device, lamp=True)
                    self.changed("present")
                case "info":
                    edge.info = msgspec.json.decode(payload, type=EdgeInfo)
                case "health":
                    edge.health = msgspec.json.decode(payload, type=EdgeHealth)
                case _:
                    return
        edge.heard = self.now()
        self.changed("edges")

    def _device_says(self, table: str, name: str, leaf: str, payload: bytes) -> None:
        device = self._device(table, name)
        shown = device.online, device.meta, device.state.faults
        with self._reading(payload):
            match leaf:
                case "availability":
                    device.online = payload == b"online" if payload else None
                case "meta":
                    configured = self._configured.get((table, name), DeviceMeta())
                    device.meta = msgspec.json.decode(payload, type=DeviceMeta) if payload else configured
                case "state":
                    device.state = msgspec.json.decode(payload, type=DeviceState) if payload else DeviceState()
                case _:
                    return
        device.heard = self.now()
        self._told(device, lamp=shown != (device.online, device.meta, device.state.faults))

    def _told(self, device: DeviceNow, *, lamp: bool) -> None:
        """Something of a device is otherwise; `lamp`: also what its table shows of it. Its counters always move."""
        self.changed(f"device/{device.table}/{device.name}")
        self.changed(f"devices/{device.table}")
        if lamp:
            self.changed(f"table/{device.table}")

    def _alert(self, table: str, name: str, payload: bytes) -> None:
        alert = None
        if payload:
            try:
                alert = msgspec.json.decode(payload, type=Alert)
            except UNREADABLE:
                self.picture.refused += 1
                return
        for hear in self.on_alert:
            hear((table, name), alert, self.now())
        self.changed("alerts")
        self.changed(f"table/{table}")

    def _event(self, table: str, wire: Wire) -> None:
        name = wire.source.rpartition("/")[2]
        if is_id(name) and self._room(table, name):
            device = self._device(table, name)
            device.count += 1
            data = bytes(wire.data)[:LONGEST_SHOWN].decode(errors="replace") if wire.type in SHOWN else ""
            device.events.append(
                Seen(wire.time, wire.seq, wire.type, "" if data == "{}" else data, wire.id, wire.replay)
            )
            if wire.type.startswith("device."):
                self._happened(device, wire)
            elif wire.type in JACKPOT:
                self._told_amount(table, name, wire)
            self.changed(f"events/{table}/{name}")
            self.changed(f"last/{table}")
        for hear in self.on_event:
            hear(table, wire)

    def _told_amount(self, table: str, device: str, wire: Wire) -> None:
        with contextlib.suppress(*UNREADABLE):
            data = msgspec.json.decode(wire.data, type=_AmountData)
            name = data.pool or device
            known = self.amounts.setdefault(table, {})
            if name in known or len(known) < MOST_AMOUNTS:
                known[name] = Amount(
                    name, wire.time, wire.type, data.text, data.amount, data.level, confirmed=data.confirmed
                )
                self.changed(f"table/{table}")

    def _happened(self, device: DeviceNow, wire: Wire) -> None:
        with contextlib.suppress(*UNREADABLE):
            data = msgspec.json.decode(wire.data, type=dict[str, Any])
            words = [
                str(data[key]) for key in ("code", "text", "reason", "command", "status", "model") if data.get(key)
            ]
            change = Change(wire.time, wire.type, " · ".join(words))
            if change not in device.history:  # replayed, or kept from before
                device.history.append(change)
                for hear in self.on_history:
                    hear(device.table, device.name, change)

    def _round(self, table: str) -> None:
        if table in self.tables:
            self.changed(f"table/{table}")

    def _noted(self, table: str) -> None:
        if table in self.tables:
            self.changed(f"noted/{table}")

    def _result(self, table: str, kind: str, result: Result) -> None:
        for hear in self.on_result:
            hear(table, kind, result)
        if self._room(table):
            self.changed(f"results/{table}")
            self.changed(f"table/{table}")


def utc(at: datetime) -> str:
    """An instant as pages carry it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
