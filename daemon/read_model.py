"""A site's state, built from what the broker publishes: edges, devices, tables, rounds, results, alerts.

One place turns messages into state: the console, the metrics, the demo, the simulated dealers and the campaign read it.
State from an offline edge is stale; while the broker is disconnected, all state is.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self, TypeAlias, TypeVar

import msgspec
from msgspec import Struct, UnsetType

from daemon import logs
from daemon.broker.connection import Connect, stay_connected
from daemon.broker.gap_recovery import ASK_AGAIN, Again, Stream, ask
from daemon.broker.heartbeat import SILENT_S
from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session
from daemon.config.model import Config, Mqtt, Table
from daemon.views import LAST, Amount, Change, DeviceView, EdgeView, Lamp, Seen, TableView
from protocols.contract.documents import Alert, DeviceMeta, DeviceState, EdgeHealth, EdgeInfo, Whole
from protocols.contract.events import EVENT_TYPES, Event
from protocols.contract.facts import RoundFacts
from protocols.contract.jackpots import jackpot_topic
from protocols.contract.results import (
    ENDS,
    BadRound,
    Noted,
    Opened,
    Result,
    RoundState,
    decode_state_as,
    facts_as,
)
from protocols.contract.topics import (
    LONGEST_DOCUMENT,
    LONGEST_EVENT,
    BadEnvelope,
    Wire,
    about_device,
    decode_wire,
    edge_topic,
    is_id,
    table_topic,
)
from protocols.contract.wagers import Unreadable, WagerAnswer, decode_answer
from protocols.plain_errors import plain as plain_error
from rules.facts import facts_kind, result_with_facts

__all__ = ["AlertKey", "SiteState"]

AlertKey: TypeAlias = tuple[str, str]

UNHURRIED = 0.02
EVENT_TOPICS = "device/+/event/+"
# The filters must not overlap: a broker may deliver a message once for each matching filter.
ALL_BUT_EVENTS = (
    *("device/+/+", "device/+/cmd/+/result", "alert/+", "wager/+/result"),
    *("round/+", "round/event/+", "round/cmd/replay/result"),
)
JACKPOTS = ("level", "books", "cmd/+/result")
"""Of each pool. Its entries are read with QoS 0, as events are."""
REMEMBERED = 50_000
MOST_TABLES = 500
MOST_ALERTS = 200

# Maximum bytes of a document of a device or an edge.
LONGEST_RETAINED = 256 * 1024
ROUNDS = 100
MOST_DEVICES = 5000
MOST_EDGES = 500
MOST_AMOUNTS = 40
MOST_COMPLAINED = 1000
# Maximum bytes of an event on a page; some are kept for each device.
LONGEST_SHOWN = 4096
JACKPOT = ("display.shown", "jackpot.won", "jackpot.paid", "jackpot.reset")
# Events that may hold a card, and the bets of players. Only the view of the round shows cards.
PRIVATE = frozenset(
    (
        *("card.damaged", "card.drawn", "card.exposed", "deal.corrected", "deck.miscounted", "hole_card.peeked"),
        *("wager.placed", "wager.withdrawn"),
    )
)
# The allowed events: unknown events of a newer edge may hold cards.
SHOWN = frozenset(EVENT_TYPES) - PRIVATE

T = TypeVar("T", bound=Hashable)


class _AmountData(Struct, frozen=True):
    pool: str = ""
    text: str = ""
    amount: Whole = 0
    level: Whole = 0
    confirmed: bool = False


class _ResultVersion(Struct, frozen=True):
    """Distinguishes the results of a round: a correction names the one that it supersedes, or has other evidence."""

    round: str = ""
    supersedes: str = ""
    evidence: tuple[str, ...] = ()


class SiteState:
    """Kept up to date by `run` from MQTT only. Listeners are called with the key of each change.

    Keys: `broker`; `present`, the edges and rules that are online; `edges`, also their own reports; `alerts`;
    `table/<table>`, the round, the lamps, the alerts; `tile/<table>`, the phase, the lamps, the results;
    `results/<table>`; `last/<table>`, its last event;
    `noted/<table>`; `devices/<table>` and `device/<table>/<device>`, the reports of devices about themselves;
    `events/<table>/<device>`.
    """

    def __init__(  # over 60 lines: each attribute with its meaning
        self,
        mqtt: Mqtt,
        site: str,
        *,
        tables: Sequence[Table] = (),
        edge: str = "",
        rules: str = "rules",
        from_start: bool = False,
        back: int = 0,
        keep: int = LAST,
        sparing: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        connect: Connect | None = None,
    ) -> None:
        """`on_event` gets each event once; `on_opened` and `on_result` each round, in order and without a gap.

        `tables` of the configuration, with devices of `edge`, exist from the start, unknown until their first message.
        `sparing`: read events with QoS 0, in batches; verdicts, states and alerts as usual. `from_start`: read also the
        rounds that ended before; `back`: the number of verdicts to read before the first received one.
        """
        self.site = site
        self.now = now
        self.rules_name = rules
        self._log = logs.get(site=site)
        self._mqtt = mqtt
        self._from_start = from_start
        self._back = back
        self._keep = keep
        self._session: Session | None = None
        self._sparing = sparing
        self._connect = connect
        self._rounds: dict[tuple[str, str], Stream[Wire]] = {}
        self._asked: dict[tuple[str, str], int] = {}
        self._standing: dict[str, tuple[_ResultVersion, Again | None]] = {}
        """By table, the version of the retained result while the verdict that ends its round has not arrived."""
        self._recalled: dict[str, deque[Result]] = {}
        self._seen: OrderedDict[tuple[str, str, str | UnsetType, datetime], None] = OrderedDict()
        self._complained: set[str] = set()
        self.tables: dict[str, TableView] = {}
        self.devices: dict[tuple[str, str], DeviceView] = {}
        self.edges: dict[str, EdgeView] = {}
        self.configured: dict[str, Table] = {table.name: table for table in tables}
        self._configured: dict[tuple[str, str], DeviceMeta] = {}
        self.amounts: dict[str, dict[str, Amount]] = {}
        """By table, by display or pool, the last report."""
        self.connected = False
        self.lost: datetime | None = now()
        """Time since when the broker has been lost; None while connected."""
        self.messages = 0
        self.refused = 0
        """The number of unreadable messages."""
        self.changed = asyncio.Event()
        self.on_message: list[Callable[[Message], None]] = []
        self.on_event: list[Callable[[str, Wire, Event | None], None]] = []
        """Called with the decoded event if it is a `device.*` event that this version can read."""
        self.on_opened: list[Callable[[str, str], None]] = []
        self.on_result: list[Callable[[str, str, Result], None]] = []
        self.on_verdict: list[Callable[[str, Wire], None]] = []
        """Called with every verdict of a journal, in order, also if another journal has it already."""
        self.on_refused: list[Callable[[str, WagerAnswer], None]] = []
        """Called with each refused bet."""
        self.on_alert: list[Callable[[AlertKey, Alert | None, datetime], None]] = []
        self.on_trace: list[Callable[[str, str, bytes], None]] = []
        self.on_reply: list[Callable[[str, str, bytes], None]] = []
        self.on_history: list[Callable[[str, str, Change], None]] = []
        self.on_jackpot: list[Callable[[str, list[str], bytes], None]] = []
        """Called with the pool, the rest of the topic and the payload. Pools are read only if this is set."""
        self.on_change: list[Callable[[str], None]] = []
        for table in tables:
            self.tables[table.name] = TableView(keep)
            self.tables[table.name].kind = facts_kind(table.ruleset)
            for device in table.device:
                known = self._device(table.name, device.name)
                known.meta = self._configured[table.name, device.name] = DeviceMeta(
                    driver=device.driver, url=device.url, edge=edge
                )

    @classmethod
    def of_console(cls, config: Config, now: Callable[[], datetime], connect: Connect | None = None) -> Self:
        """The site for the console's pages: with the configured tables and the last rounds of each."""
        return cls(
            config.mqtt,
            config.site.name,
            tables=config.table,
            edge=config.edge.name,
            rules=config.rules.name,
            back=ROUNDS,
            keep=ROUNDS,
            sparing=True,
            now=now,
            connect=connect,
        )

    async def run(self, identifier: str = "") -> None:
        """Follow the broker until cancelled."""
        log = logs.get(client="site")
        await stay_connected(self._mqtt, identifier, None, self._serve, log, self._connect)

    async def publish(self, topic: str, payload: bytes) -> None:
        """Publish on the same connection. Raises BrokerLost."""
        if self._session is None:
            raise BrokerLost("the broker is not connected")
        await self._session.publish(topic, payload)

    @property
    def gaps(self) -> int:
        """The number of tables with a missing verdict."""
        return sum(stream.gap is not None for stream in self._rounds.values())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` is true of the state."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def _serve(self, session: Session) -> None:
        if self._sparing:
            session.set_read_interval(UNHURRIED)
            await session.subscribe(table_topic(self.site, "+", EVENT_TOPICS), qos=0)
            leaves = (table_topic(self.site, "+", leaf) for leaf in ALL_BUT_EVENTS)
            await session.subscribe(*leaves, edge_topic(self.site, "+", "+"))
        else:
            await session.subscribe(table_topic(self.site, "+", "#"), edge_topic(self.site, "+", "+"))
        if self.on_jackpot:
            await session.subscribe(jackpot_topic(self.site, "+", "event/+"), qos=0)
            await session.subscribe(*(jackpot_topic(self.site, "+", leaf) for leaf in JACKPOTS))
        self._session = session
        self.set_connected(True)
        try:
            self._asked.clear()
            await self._ask_for_rest(session)
            of_rules, answer = f"/edge/{self.rules_name}/availability", "/round/cmd/replay/result"
            while True:
                for message in await self._arrived(session):
                    self._look(message)
                    if message.topic.endswith((of_rules, answer)):
                        if not message.topic.endswith(answer):
                            self._asked.clear()  # a writer that was offline missed the request
                        await self._ask_for_rest(session)
                self.changed.set()
                await self._ask_again(session)
        finally:
            self._session = None
            self.set_connected(False)

    async def _ask_for_rest(self, session: Session) -> None:
        """Request the rounds that ended while we were disconnected, unless already requested."""
        for table in self.tables:
            known = [(stream.expected, journal) for (journal, name), stream in self._rounds.items() if name == table]
            if known or self._from_start:
                expected, journal = max(known, default=(1, ""))
                await self._ask(session, (journal, table), expected, None)

    async def _arrived(self, session: Session) -> list[Message]:
        """The messages that arrived; empty when a gap is still open after a while."""
        if not self._standing and not any(stream.gap for stream in self._rounds.values()):
            return await session.messages()
        try:
            async with asyncio.timeout(ASK_AGAIN):
                return await session.messages()
        except TimeoutError:
            return []

    async def _ask_again(self, session: Session) -> None:
        """Request gaps, and the ends of rounds whose results are retained: no later event may reveal that gap."""
        now = asyncio.get_running_loop().time()
        for (_, table), stream in self._rounds.items():
            if (gap := stream.to_ask(now)) is not None:
                await ask(session, table_topic(self.site, table, "round/cmd/replay"), "", *gap)
        for table, (version, again) in list(self._standing.items()):
            nexts = {stream.expected for (_, name), stream in self._rounds.items() if name == table}
            if self._has_result(table, version) or not (nexts or self._from_start):
                del self._standing[table]
            elif again is None:  # the answer may be under way
                self._standing[table] = version, Again(now + ASK_AGAIN)
            elif again.due(1, now):
                for first in sorted(nexts or {1}):
                    await ask(session, table_topic(self.site, table, "round/cmd/replay"), "", first)

    def _has_result(self, table: str, version: _ResultVersion) -> bool:
        """Whether the verdict with this result arrived. Tables beyond the limit have none."""
        if table not in self.tables:
            return True
        return any(
            (one.round, one.supersedes, one.evidence) == (version.round, version.supersedes, version.evidence)
            for one in self.tables[table].results
        )

    async def _ask(self, session: Session, key: tuple[str, str], first: int, last: int | None) -> None:
        """Request rows from `first` on, once for each `first`: the answer may come from a journal without them."""
        if self._asked.get(key) != first:
            self._asked[key] = first
            await ask(session, table_topic(self.site, key[1], "round/cmd/replay"), "", first, last)

    # ---- queries

    def devices_of(self, table: str) -> list[DeviceView]:
        """The devices of one table, in the order of the configuration."""
        return [device for (name, _), device in self.devices.items() if name == table and device.there]

    def there(self, table: str) -> bool:
        """Whether the table exists in the configuration or on the broker. Of other tables only the history remains."""
        view = self.tables.get(table)
        ruled = view is not None and view.phase != "-"
        return ruled or table in self.configured or bool(self.devices_of(table))

    def ruleset(self, table: str) -> str:
        """The game of a table by the configuration or its last result; "" without a game."""
        if table in self.configured:
            return self.configured[table].ruleset
        results = self.tables[table].results
        return results[-1].ruleset if results else ""

    def known(self, device: DeviceView) -> bool:
        """Whether the known state of a device is current."""
        edge = self.edges.get(device.meta.edge)
        return self.connected and device.online is not None and edge is not None and edge.current is True

    def lamp(self, device: DeviceView) -> Lamp:
        """The colour of a device's lamp."""
        if not self.known(device):
            return "unknown"
        if not device.online:
            return "offline"
        severities = {fault.severity for fault in device.state.faults}
        return "error" if "error" in severities else "warning" if severities else "good"

    def is_online(self, edge: str) -> bool:
        """Whether an edge, or the rules, is known to be online."""
        return edge in self.edges and self.edges[edge].current is True

    def rules(self) -> bool | None:
        """Whether the rules resolve rounds now; None if unknown."""
        one = self.edges.get(self.rules_name)
        return one.current if self.connected and one is not None else None

    # ---- history from before the start

    def remember_result(self, table: str, result: Result) -> None:
        """Add a result from before the start, the oldest first. Listeners are not called if it is replayed."""
        if self._room(table):
            self._table(table).results.append(result)
            self._recalled.setdefault(table, deque(maxlen=self._keep)).append(result)

    def resume(self, table: str, journal: str, expected: int) -> None:
        """Request the verdicts of a journal from a seq on, as if this process had received the earlier ones."""
        self._rounds[journal, table] = Stream(expected)

    def remember_change(self, table: str, device: str, change: Change) -> None:
        """Add a line of a device's history from before the start, the oldest first."""
        if self._room(table, device):
            self._device(table, device).history.append(change)

    # ---- messages of the broker

    def notify(self, key: str) -> None:
        """Call the listeners."""
        for listener in self.on_change:
            listener(key)

    def set_connected(self, connected: bool) -> None:
        """The broker was connected or lost: the online states are unknown until they arrive again."""
        if connected == self.connected:
            return
        self.connected = connected
        self.lost = None if connected else self.now()
        for edge in self.edges.values():
            edge.online, edge.beat, edge.silent = None, None, False
        for device in self.devices.values():
            device.online = None
        for view in self.tables.values():
            view.online.clear()
        self.notify("broker")
        self.changed.set()

    def _device(self, table: str, name: str) -> DeviceView:
        key = table, name
        if key not in self.devices:
            self.devices[key] = DeviceView(table, name)
        return self.devices[key]

    def _room(self, table: str, device: str = "") -> bool:
        """Whether one more may be stored. Clients that may publish must not fill the memory."""
        if device and (table, device) not in self.devices and len(self.devices) >= MOST_DEVICES:
            return False
        return table in self.tables or len(self.tables) < MOST_TABLES

    @contextlib.contextmanager
    def _reading(self, payload: bytes) -> Iterator[None]:
        """Apply a message. Unreadable messages are counted; an empty payload clears."""
        try:
            yield
        except UNREADABLE:
            self.refused += bool(payload)

    def _edge(self, name: str, leaf: str, payload: bytes) -> None:
        if leaf == "alive":
            self._beats(name)
            return
        if not payload:
            if leaf == "availability" and self.edges.pop(name, None) is not None:  # cleared: the edge was removed
                self.notify("present")
                self.notify("edges")
            return
        edge = self.edges.setdefault(name, EdgeView(name))
        with self._reading(payload):
            match leaf:
                case "availability":
                    edge.online = payload == b"online"
                    edge.silent = False
                    if not edge.online:
                        edge.beat = None
                    for device in self.devices.values():
                        if device.meta.edge == name:
                            self._notify_device(device, lamp=True)
                    self.notify("present")
                case "info":
                    edge.info = msgspec.json.decode(payload, type=EdgeInfo)
                case "health":
                    edge.health = msgspec.json.decode(payload, type=EdgeHealth)
                case _:
                    return
        edge.heard = self.now()
        self.notify("edges")

    def _beats(self, name: str) -> None:
        edge = self.edges.get(name)
        if edge is None:
            return
        edge.beat = self.now()
        if edge.silent:
            self._silent(edge, silent=False)

    def look_for_silence(self) -> None:
        """Find the processes whose heartbeat stopped. Must be called every second."""
        latest = self.now() - timedelta(seconds=SILENT_S)
        for edge in self.edges.values():
            if edge.online and not edge.silent and edge.beat is not None and edge.beat < latest:
                self._silent(edge, silent=True)

    def _silent(self, edge: EdgeView, *, silent: bool) -> None:
        """Show the tables and devices of a process without heartbeat as unknown."""
        edge.silent = silent
        for device in self.devices.values():
            if device.meta.edge == edge.name:
                self._notify_device(device, lamp=True)
        self.notify("present")
        self.notify("edges")

    @property
    def stalled(self) -> bool:
        """Whether no heartbeat arrives any more: the broker or the network hangs."""
        beating = [edge for edge in self.edges.values() if edge.online and edge.beat is not None]
        return self.connected and bool(beating) and all(edge.silent for edge in beating)

    def _device_says(self, table: str, name: str, leaf: str, payload: bytes) -> None:
        device = self._device(table, name)
        shown = device.online, device.meta, device.state.faults
        with self._reading(payload):
            match leaf:
                case "availability":
                    device.online = payload == b"online" if payload else None
                    online = self._table(table).online
                    if device.online is None:
                        online.pop(name, None)
                    else:
                        online[name] = device.online
                case "meta":
                    configured = self._configured.get((table, name), DeviceMeta())
                    device.meta = msgspec.json.decode(payload, type=DeviceMeta) if payload else configured
                case "state":
                    device.state = msgspec.json.decode(payload, type=DeviceState) if payload else DeviceState()
                case _:
                    return
        device.heard = self.now()
        self._notify_device(device, lamp=shown != (device.online, device.meta, device.state.faults))

    def _notify_device(self, device: DeviceView, *, lamp: bool) -> None:
        """Notify the listeners of a device, whose counters change each time; `lamp`: also those of its table."""
        self.notify(f"device/{device.table}/{device.name}")
        self.notify(f"devices/{device.table}")
        if lamp:
            self.notify(f"table/{device.table}")
            self.notify(f"tile/{device.table}")

    def _alert(self, table: str, name: str, payload: bytes) -> None:
        alert = None
        if payload:
            try:
                alert = msgspec.json.decode(payload, type=Alert)
            except UNREADABLE:
                self.refused += 1
                return
        if not self._room(table):
            return
        alerts = self._table(table).alerts
        if alert is None:
            alerts.pop(name, None)
        elif name in alerts or len(alerts) < MOST_ALERTS:
            alerts[name] = alert
        for listener in self.on_alert:
            listener((table, name), alert, self.now())
        self.notify("alerts")
        self.notify(f"table/{table}")

    def _device_event(self, table: str, wire: Wire, event: Event | None) -> None:
        name = wire.source.rpartition("/")[2]
        if not is_id(name) or not self._room(table, name):
            return
        device = self._device(table, name)
        device.count += 1
        data = bytes(wire.data)[:LONGEST_SHOWN].decode(errors="replace") if wire.type in SHOWN else ""
        device.events.append(Seen(wire.time, wire.seq, wire.type, "" if data == "{}" else data, wire.id, wire.replay))
        if event is not None:
            self._happened(device, wire, event)
        elif wire.type in JACKPOT:
            self._reported_amount(table, name, wire)
        self.notify(f"events/{table}/{name}")
        self.notify(f"last/{table}")

    def _reported_amount(self, table: str, device: str, wire: Wire) -> None:
        with contextlib.suppress(*UNREADABLE):
            data = msgspec.json.decode(wire.data, type=_AmountData)
            name = data.pool or device
            known = self.amounts.setdefault(table, {})
            if name in known or len(known) < MOST_AMOUNTS:
                known[name] = Amount(
                    name, wire.time, wire.type, data.text, data.amount, data.level, confirmed=data.confirmed
                )
                self.notify(f"table/{table}")

    def _happened(self, device: DeviceView, wire: Wire, event: Event) -> None:
        fields = ("code", "text", "reason", "command", "status", "model")
        change = Change(
            wire.time, wire.type, " · ".join(str(said) for key in fields if (said := getattr(event, key, "")))
        )
        if change not in device.history:  # replayed, or kept from before
            device.history.append(change)
            for listener in self.on_history:
                listener(device.table, device.name, change)

    # ---- rounds

    def _look(self, message: Message) -> None:  # noqa: C901 - one table of topics
        words = message.topic.split("/")[3:]
        longest = LONGEST_DOCUMENT if words[2:3] == ["round"] else LONGEST_RETAINED
        of_pool = words[:1] == ["jackpot"]  # its reader limits the length
        if not _named(words) or (len(message.payload) > longest and not of_pool):
            self.refused += 1
            return
        self.messages += 1
        for listener in self.on_message:
            listener(message)
        match words:
            case ["edge", name, leaf] if name in self.edges or len(self.edges) < MOST_EDGES:
                self._edge(name, leaf, message.payload)
            case ["table", table, "device", _, "event", _]:
                self._event(table, message)
            case ["table", table, "device", name, "trace"]:
                for watcher in self.on_trace:
                    watcher(table, name, message.payload)
            case ["table", table, "device", name, "cmd", _, "result"]:
                for watcher in self.on_reply:
                    watcher(table, name, message.payload)
            case ["table", table, "device", name, leaf] if self._room(table, name):
                self._device_says(table, name, leaf, message.payload)
            case ["table", table, "round", "state"]:
                self._state(table, message)
            case ["table", table, "round", "result"]:
                self._result_stands(table, message.payload)
            case ["table", table, "round", "event", _]:
                self._verdict(table, message)
            case ["table", table, "wager", _, "result"]:
                self._wager_answer(table, message)
            case ["table", table, "alert", name]:
                self._alert(table, name, message.payload)
            case ["jackpot", pool, *leaves]:
                for hear_pool in self.on_jackpot:
                    hear_pool(pool, leaves, message.payload)
            case _:
                pass

    def _wager_answer(self, table: str, message: Message) -> None:
        """A bet was refused; a repeated answer is shown once."""
        answer = decode_answer(message.payload)
        if message.retain or isinstance(answer, Unreadable) or answer.status != "refused" or not self._room(table):
            return
        refusals = self._table(table).refusals
        if all((one.terminal, one.id) != (answer.terminal, answer.id) for one in refusals):
            refusals.append(answer)
            for listener in self.on_refused:
                listener(table, answer)
            self._notify_of(table, "table")

    def _result_stands(self, table: str, payload: bytes) -> None:
        """Note a retained result: the verdict that ends its round is missing until it arrives."""
        if not payload:
            self._standing.pop(table, None)
            return
        with self._reading(payload):
            version = msgspec.json.decode(payload, type=_ResultVersion)
            if version != self._standing.get(table, (None, None))[0]:
                self._standing[table] = version, None

    def _refuse(self, topic: str, why: object) -> None:
        """Log once per topic: a broken writer may repeat itself without end."""
        self.refused += 1
        if topic not in self._complained and len(self._complained) < MOST_COMPLAINED:
            self._complained.add(topic)
            self._log.warning("console.unreadable", topic=topic, reason=plain_error(str(why)))

    def _state(self, table: str, message: Message) -> None:
        view = self._table(table)
        stood = view.phase, view.round, view.detail
        try:
            state, facts = decode_state_as(view.kind, message.payload)
        except BadRound as error:  # the earlier state is no longer valid
            view.stand = None
            view.phase, view.round, view.detail, view.facts = "-", "", {}, RoundFacts()
            if message.payload:  # empty: cleared, the rules no longer have this table
                self._refuse(message.topic, error)
        else:
            if view.stand is not None and self._lags(state, view.stand):
                return
            view.stand = state
            view.phase, view.round, view.detail, view.facts = state.phase, state.round, state.detail, facts
        if stood != (view.phase, view.round, view.detail):
            self._notify_of(table, "table")
        if stood[0] != view.phase:
            self._notify_of(table, "tile")

    def _lags(self, state: RoundState, stand: RoundState) -> bool:
        """Whether another rules process, which is online, published a state after later events of the table."""
        behind = any(seq < stand.heard.get(journal, 0) for journal, seq in state.heard.items())
        return behind and state.rules != stand.rules and self.is_online(stand.rules)

    def _table(self, name: str) -> TableView:
        view = self.tables.get(name)
        if view is None:
            view = TableView(self._keep)
            if len(self.tables) < MOST_TABLES:  # clients that may publish must not fill the memory
                self.tables[name] = view
        return view

    def _first_time(self, kind: str, wire: Wire) -> bool:
        """A new journal assigns its ids again, but never with the same time; a verdict names that journal."""
        return _first_time(self._seen, (kind, wire.id, wire.cause_journal, wire.time))

    def _event(self, table: str, message: Message) -> None:
        if len(message.payload) > LONGEST_EVENT:
            self.refused += 1
            return
        try:
            wire = decode_wire(message.payload)
        except BadEnvelope:
            self.refused += 1
            return
        if self._first_time("event", wire):
            view = self._table(table)
            view.events += 1
            if not wire.type.startswith("device."):
                view.lately.append(wire)
            view.last_event = wire.time
            event = about_device(wire)
            self._device_event(table, wire, event)
            for listener in self.on_event:
                listener(table, wire, event)

    def _verdict(self, table: str, message: Message) -> None:
        try:
            wire = decode_wire(message.payload)
        except BadEnvelope as error:
            self._refuse(message.topic, error)
            return
        if wire.seq < 1:
            return
        key = wire.journal, table
        if key not in self._rounds:
            self._rounds[key] = Stream(1 if self._from_start else max(1, wire.seq - self._back))
        for ready in self._rounds[key].take(wire):
            if ready.type == "opened" and self._first_time("opened", ready):  # a standby publishes the same
                self._begun(table, ready)
            elif ready.type in ENDS and self._first_time("end", ready):
                self._ended(table, ready)
            elif ready.type == "irregular" and self._first_time("irregular", ready):
                self._noted(table, ready)
            for listener in self.on_verdict:
                listener(table, ready)

    def _begun(self, table: str, wire: Wire) -> None:
        try:
            opened = msgspec.json.decode(wire.data, type=Opened)
        except UNREADABLE:
            return
        for listener in self.on_opened:
            listener(table, opened.round)

    def _noted(self, table: str, wire: Wire) -> None:
        try:
            noted = msgspec.json.decode(wire.data, type=Noted)
        except UNREADABLE as error:
            self._refuse(table_topic(self.site, table, "round/event/irregular"), error)
            return
        self._table(table).noted.append((wire.time, noted.irregularity))
        self._notify_of(table, "noted")

    def _ended(self, table: str, wire: Wire) -> None:
        try:
            result = result_with_facts(wire.data)
        except BadRound as error:
            self._refuse(table_topic(self.site, table, f"round/event/{wire.type}"), error)
            return
        if result in self._recalled.get(table, ()):
            return
        view = self._table(table)
        view.results.append(result)
        if table not in self.configured and view.kind is not facts_kind(result.ruleset):
            view.kind = facts_kind(result.ruleset)
            with contextlib.suppress(BadRound):  # the shown state may be of the previous game
                view.facts = facts_as(view.kind, view.detail)
        view.resolved += wire.type == "resolved"
        view.voided += wire.type == "voided"
        for listener in self.on_result:
            listener(table, wire.type, result)
        self._notify_of(table, "results", "table", "tile")

    def _notify_of(self, table: str, *kinds: str) -> None:
        """Call the listeners of a table; tables beyond the limit have no page and are ignored."""
        if table in self.tables:
            for kind in kinds:
                self.notify(f"{kind}/{table}")


def _named(words: list[str]) -> bool:
    """Whether the names in a topic are valid by the configuration's rules. They become part of URLs."""
    match words:
        case ["table", table, "device", device, *_]:
            return is_id(table) and is_id(device)
        case ["table" | "edge" | "jackpot", name, *_]:
            return is_id(name)
        case _:
            return False


def _first_time(seen: OrderedDict[T, None], key: T) -> bool:
    """Whether `key` is new, within the bounded memory."""
    if key in seen:
        return False
    seen[key] = None
    if len(seen) > REMEMBERED:
        seen.popitem(last=False)
    return True
