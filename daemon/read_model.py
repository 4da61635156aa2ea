"""The site as anybody on the broker sees it: devices, rounds, results, alerts. What `watch` and the demo show."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from daemon import logs
from daemon.broker.connection import Connect, stay_connected
from daemon.broker.gap_recovery import ASK_AGAIN, Again, Stream, ask
from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session
from daemon.config.model import Mqtt
from protocols.contract.documents import Alert
from protocols.contract.results import ENDS, BadRound, Irregularity, Noted, Opened, Result, decode_end, decode_state
from protocols.contract.topics import (
    LONGEST_DOCUMENT,
    LONGEST_EVENT,
    BadEnvelope,
    Wire,
    decode_wire,
    edge_topic,
    is_id,
    table_topic,
)

__all__ = ["Picture", "TableView"]

LAST = 12
RULES = "rules"
UNHURRIED = 0.02
EVENTS = "device/+/event/+"
# No two of these filters may fit one topic: a broker may then say it twice.
ALL_BUT_EVENTS = (
    *("device/+/+", "device/+/cmd/+/result", "alert/+"),
    *("round/+", "round/event/+", "round/cmd/replay/result"),
)
REMEMBERED = 50_000
MOST_TABLES = 500
MOST_ALERTS = 200

# Bytes of what is said of a device or an edge.
LONGEST_SAID = 256 * 1024
T = TypeVar("T", bound=Hashable)


class TableView:
    """One table."""

    def __init__(self, keep: int = LAST) -> None:
        """Nothing is known yet. Of results `keep` are kept."""
        self.online: dict[str, bool] = {}
        self.phase = "-"
        self.round = ""
        self.detail: dict[str, Any] = {}
        self.events = 0
        self.last_event: datetime | None = None
        self.lately: deque[Wire] = deque(maxlen=LAST)
        """The last events of its devices; not what they say of themselves."""
        self.results: deque[Result] = deque(maxlen=keep)
        self.noted: deque[tuple[datetime, Irregularity]] = deque(maxlen=LAST)
        """Irregularities while no round was open, the oldest first."""
        self.resolved = 0
        self.voided = 0
        self.alerts: dict[str, Alert] = {}

    @property
    def latest(self) -> list[str]:
        """The last events of its devices, in words."""
        return [_in_words(wire) for wire in self.lately]


class Picture:
    """Kept up to date by `run`; everything in it came over MQTT."""

    def __init__(
        self,
        mqtt: Mqtt,
        site: str,
        *,
        from_start: bool = False,
        back: int = 0,
        keep: int = LAST,
        sparing: bool = False,
        connect: Connect | None = None,
    ) -> None:
        """`on_event` hears of each event once; `on_opened` and `on_result` of each round, in order and without a gap.

        `sparing`: hear of events with QoS 0, and not at every moment; verdicts, states and alerts as ever.
        `from_start`: of those, too, that ended before we looked; `back`: of what the last so many verdicts before the
        first we hear say. `on_message` hears of every message, before it is looked at; `on_round` when a round stands
        otherwise than before, `on_noted` when something irregular was noted between two.
        """
        self._from_start = from_start
        self._back = back
        self._keep = keep
        self._session: Session | None = None
        self._sparing = sparing
        self._connect = connect
        self._rounds: dict[tuple[str, str], Stream[Wire]] = {}
        self._asked: dict[tuple[str, str], int] = {}
        self._standing: dict[str, tuple[int, Again | None]] = {}
        """By table, the result that stands on the broker while the end of its round has not come."""
        self._known: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._recalled: dict[str, deque[Result]] = {}
        self._mqtt = mqtt
        self._site = site
        self.tables: dict[str, TableView] = {}
        self.edges: dict[str, bool] = {}
        self.connected = False
        self.refused = 0
        """How many messages nobody could read."""
        self.changed = asyncio.Event()
        self.on_message: Callable[[Message], None] = lambda _message: None
        self.on_event: Callable[[str, Wire], None] = lambda _table, _wire: None
        self.on_round: Callable[[str], None] = lambda _table: None
        self.on_noted: Callable[[str], None] = lambda _table: None
        self.on_opened: Callable[[str, str], None] = lambda _table, _round: None
        self.on_result: Callable[[str, str, Result], None] = lambda _table, _kind, _result: None
        self.on_refused: Callable[[str, str], None] = lambda _topic, _why: None
        """Hears of what nobody could read of a round: its topic, and why."""
        self._seen: OrderedDict[tuple[str, str, datetime], None] = OrderedDict()

    async def run(self, identifier: str = "") -> None:
        """Look for ever."""
        log = logs.get(client="picture")
        await stay_connected(self._mqtt, identifier, None, self._serve, log, self._connect)

    async def publish(self, topic: str, payload: bytes) -> None:
        """Say something on the same connection. Raises BrokerLost."""
        if self._session is None:
            raise BrokerLost("the broker is not there")
        await self._session.publish(topic, payload)

    def recall(self, table: str, result: Result) -> None:
        """A result of before we looked: it is shown, and not told again should it come."""
        self._table(table).results.append(result)
        self._recalled.setdefault(table, deque(maxlen=self._keep)).append(result)

    @property
    def gaps(self) -> int:
        """For how many tables some verdict is missing now."""
        return sum(stream.gap is not None for stream in self._rounds.values())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the picture shows `condition`."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def _serve(self, session: Session) -> None:
        self.edges.clear()  # a broker that forgot says nothing of who is there: then nobody knows
        for view in self.tables.values():
            view.online.clear()
        if self._sparing:
            session.set_read_interval(UNHURRIED)
            await session.subscribe(table_topic(self._site, "+", EVENTS), qos=0)
            leaves = (table_topic(self._site, "+", leaf) for leaf in ALL_BUT_EVENTS)
            await session.subscribe(*leaves, edge_topic(self._site, "+", "+"))
        else:
            await session.subscribe(table_topic(self._site, "+", "#"), edge_topic(self._site, "+", "+"))
        self.connected = True
        self._session = session
        self.changed.set()
        try:
            self._asked.clear()
            await self._ask_for_rest(session)
            while True:
                for message in await self._arrived(session):
                    self._look(message)
                    if message.topic.endswith(f"/edge/{RULES}/availability"):
                        self._asked.clear()  # who was away did not hear us
                    if message.topic.endswith((f"/edge/{RULES}/availability", "/round/cmd/replay/result")):
                        await self._ask_for_rest(session)
                self.changed.set()
                await self._ask_again(session)
        finally:
            self.connected = False
            self._session = None
            self.changed.set()

    async def _ask_for_rest(self, session: Session) -> None:
        """What ended while we did not look, as far as that was not asked for already."""
        for table in self.tables:
            known = [(stream.expected, journal) for (journal, name), stream in self._rounds.items() if name == table]
            if known or self._from_start:
                expected, journal = max(known, default=(1, ""))
                await self._ask(session, (journal, table), expected, None)

    async def _arrived(self, session: Session) -> list[Message]:
        """What came; nothing, after a while in which something was missing."""
        if not self._standing and not any(stream.gap for stream in self._rounds.values()):
            return await session.messages()
        try:
            async with asyncio.timeout(ASK_AGAIN):
                return await session.messages()
        except TimeoutError:
            return []

    async def _ask_again(self, session: Session) -> None:
        """For gaps, and for the ends of rounds whose results are there: nothing later may ever show that gap."""
        now = asyncio.get_running_loop().time()
        for (_, table), stream in self._rounds.items():
            if (gap := stream.to_ask(now)) is not None:
                await ask(session, table_topic(self._site, table, "round/cmd/replay"), "", *gap)
        for table, (mark, again) in list(self._standing.items()):
            nexts = {stream.expected for (_, name), stream in self._rounds.items() if name == table}
            if (table, mark) in self._known or not (nexts or self._from_start):
                del self._standing[table]
            elif again is None:  # it may be under way
                self._standing[table] = mark, Again(now + ASK_AGAIN)
            elif again.due(mark, now):
                for first in sorted(nexts or {1}):
                    await ask(session, table_topic(self._site, table, "round/cmd/replay"), "", first)

    async def _ask(self, session: Session, key: tuple[str, str], first: int, last: int | None) -> None:
        """Each journal's next is asked for once: another journal may answer, and will not have it."""
        if self._asked.get(key) != first:
            self._asked[key] = first
            await ask(session, table_topic(self._site, key[1], "round/cmd/replay"), "", first, last)

    def _look(self, message: Message) -> None:
        words = message.topic.split("/")[3:]
        longest = LONGEST_DOCUMENT if words[2:3] == ["round"] else LONGEST_SAID
        if not _named(words) or len(message.payload) > longest:
            self.refused += 1
            return
        self.on_message(message)
        match words:
            case ["edge", edge, "availability"]:
                self.edges[edge] = message.payload == b"online"
            case ["table", table, "device", device, "availability"]:
                if message.payload:
                    self._table(table).online[device] = message.payload == b"online"
                else:
                    self._table(table).online.pop(device, None)
            case ["table", table, "device", _, "event", _]:
                self._event(table, message)
            case ["table", table, "round", "state"]:
                self._state(table, message)
            case ["table", table, "round", "result"]:
                if not message.payload:
                    self._standing.pop(table, None)
                elif (mark := hash(b'{"result":%b}' % message.payload)) != self._standing.get(table, (None, None))[0]:
                    self._standing[table] = mark, None
            case ["table", table, "round", "event", _]:
                self._verdict(table, message)
            case ["table", table, "alert", alert]:
                if message.payload:
                    alerts = self._table(table).alerts
                    with contextlib.suppress(*UNREADABLE):
                        if alert in alerts or len(alerts) < MOST_ALERTS:
                            alerts[alert] = msgspec.json.decode(message.payload, type=Alert)
                else:
                    self._table(table).alerts.pop(alert, None)
            case _:
                pass

    def _refuse(self, topic: str, why: object) -> None:
        self.refused += 1
        self.on_refused(topic, str(why))

    def _state(self, table: str, message: Message) -> None:
        view = self._table(table)
        stood = view.phase, view.round, view.detail
        try:
            state = decode_state(message.payload)
        except BadRound as error:  # what stood before is no longer so
            view.phase, view.round, view.detail = "-", "", {}
            if message.payload:  # else it was cleared: the rules no longer have this table
                self._refuse(message.topic, error)
        else:
            view.phase, view.round, view.detail = state.phase, state.round, state.detail
        if stood != (view.phase, view.round, view.detail):
            self.on_round(table)

    def _table(self, name: str) -> TableView:
        view = self.tables.get(name)
        if view is None:
            view = TableView(self._keep)
            if len(self.tables) < MOST_TABLES:  # whoever may write on the broker must not fill our memory
                self.tables[name] = view
        return view

    def _first_time(self, kind: str, wire: Wire) -> bool:
        """Who counts in a new journal gives its ids once more, but not for what happened at the same time."""
        return _first_time(self._seen, (kind, wire.id, wire.time))

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
            self.on_event(table, wire)

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
            if ready.type == "opened" and self._first_time("opened", ready):  # a standby says the same
                self._begun(table, ready)
            elif ready.type in ENDS and self._first_time("end", ready):
                self._ended(table, ready)
            elif ready.type == "irregular" and self._first_time("irregular", ready):
                self._noted(table, ready)

    def _begun(self, table: str, wire: Wire) -> None:
        try:
            opened = msgspec.json.decode(wire.data, type=Opened)
        except UNREADABLE:
            return
        self.on_opened(table, opened.round)

    def _noted(self, table: str, wire: Wire) -> None:
        try:
            noted = msgspec.json.decode(wire.data, type=Noted)
        except UNREADABLE as error:
            self._refuse(table_topic(self._site, table, "round/event/irregular"), error)
            return
        self._table(table).noted.append((wire.time, noted.irregularity))
        self.on_noted(table)

    def _ended(self, table: str, wire: Wire) -> None:
        try:
            result = decode_end(wire.data)
        except BadRound as error:
            self._refuse(table_topic(self._site, table, f"round/event/{wire.type}"), error)
            return
        _first_time(self._known, (table, hash(bytes(wire.data))))
        if result in self._recalled.get(table, ()):
            return
        view = self._table(table)
        view.results.append(result)
        view.resolved += wire.type == "resolved"
        view.voided += wire.type == "voided"
        self.on_result(table, wire.type, result)


def _in_words(wire: Wire) -> str:
    data = bytes(wire.data).decode(errors="replace")
    return f"{wire.time:%H:%M:%S} {wire.type} {data if data != '{}' else ''}"[:64].rstrip()


def _named(words: list[str]) -> bool:
    """Whether what a topic speaks of has a name that the configuration could give it: it becomes part of addresses."""
    match words:
        case ["table", table, "device", device, *_]:
            return is_id(table) and is_id(device)
        case ["table" | "edge", name, *_]:
            return is_id(name)
        case _:
            return False


def _first_time(seen: OrderedDict[T, None], key: T) -> bool:
    """Whether `key` is new, as far as one remembers."""
    if key in seen:
        return False
    seen[key] = None
    if len(seen) > REMEMBERED:
        seen.popitem(last=False)
    return True
