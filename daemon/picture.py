"""The site as anybody on the broker sees it: devices, rounds, results, alerts. What `watch` and the demo show."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.config import Mqtt
from daemon.mqtt import UNREADABLE, Message, Session, stay_connected
from protocols.topics import BadEnvelope, Wire, decode_wire, table_topic

__all__ = ["Alert", "Picture", "TableView"]

LAST = 12


class Alert(Struct, frozen=True):
    """An open alert."""

    code: str
    text: str
    remedy: str
    severity: str = "error"


class _State(Struct, frozen=True):
    """What is looked at in `round/state`."""

    phase: str
    round: str


class _Ended(Struct, frozen=True):
    """What is looked at in the end of a round."""

    result: dict[str, Any]


class TableView:
    """One table."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.online: dict[str, bool] = {}
        self.phase = "-"
        self.round = ""
        self.events = 0
        self.last_event: datetime | None = None
        self.results: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.resolved = 0
        self.voided = 0
        self.alerts: dict[str, Alert] = {}


class Picture:
    """Kept up to date by `run`; everything in it came over MQTT."""

    def __init__(self, mqtt: Mqtt, site: str) -> None:
        """`on_event` and `on_result` hear of each once, by id."""
        self._mqtt = mqtt
        self._site = site
        self.tables: dict[str, TableView] = {}
        self.edges: dict[str, bool] = {}
        self.connected = False
        self.changed = asyncio.Event()
        self.on_event: Callable[[str, Wire], None] = lambda _table, _wire: None
        self.on_result: Callable[[str, str, dict[str, Any]], None] = lambda _table, _kind, _result: None
        self._seen: dict[str, None] = {}

    async def run(self, identifier: str = "") -> None:
        """Look for ever."""
        log = logs.get(client="picture")
        await stay_connected(self._mqtt, identifier, None, self._serve, log)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the picture shows `condition`."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def _serve(self, session: Session) -> None:
        await session.subscribe(table_topic(self._site, "+", "#"), f"felt/1/{self._site}/edge/+/availability")
        self.connected = True
        self.changed.set()
        try:
            while True:
                for message in await session.messages():
                    self._look(message)
                self.changed.set()
        finally:
            self.connected = False
            self.changed.set()

    def _look(self, message: Message) -> None:
        match message.topic.split("/")[3:]:
            case ["edge", edge, "availability"]:
                self.edges[edge] = message.payload == b"online"
            case ["table", table, "device", device, "availability"]:
                self._table(table).online[device] = message.payload == b"online"
            case ["table", table, "device", _, "event", _]:
                self._event(table, message)
            case ["table", table, "round", "state"]:
                view = self._table(table)
                with contextlib.suppress(*UNREADABLE):
                    state = msgspec.json.decode(message.payload, type=_State)
                    view.phase, view.round = state.phase, state.round
            case ["table", table, "round", "event", ("resolved" | "voided" | "corrected") as kind]:
                self._result(table, kind, message)
            case ["table", table, "alert", alert]:
                if message.payload:
                    with contextlib.suppress(*UNREADABLE):
                        self._table(table).alerts[alert] = msgspec.json.decode(message.payload, type=Alert)
                else:
                    self._table(table).alerts.pop(alert, None)
            case _:
                pass

    def _table(self, name: str) -> TableView:
        return self.tables.setdefault(name, TableView())

    def _once(self, message: Message) -> Wire | None:
        try:
            wire = decode_wire(message.payload)
        except (BadEnvelope, *UNREADABLE):
            return None
        if wire.id in self._seen:
            return None
        self._seen[wire.id] = None
        if len(self._seen) > 50_000:
            del self._seen[next(iter(self._seen))]
        return wire

    def _event(self, table: str, message: Message) -> None:
        if (wire := self._once(message)) is not None:
            view = self._table(table)
            view.events += 1
            view.last_event = wire.time
            self.on_event(table, wire)

    def _result(self, table: str, kind: str, message: Message) -> None:
        if (wire := self._once(message)) is not None:
            try:
                result = msgspec.json.decode(wire.data, type=_Ended).result
            except UNREADABLE:
                return
            view = self._table(table)
            view.results.append(result)
            if kind == "resolved":
                view.resolved += 1
            elif kind == "voided":
                view.voided += 1
            self.on_result(table, kind, result)
