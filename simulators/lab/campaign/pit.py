"""The pit of the campaign: the usual tables, devices and dealers, with cables in memory and fast hands."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from daemon.broker.connection import Connect
from daemon.broker.session import BrokerLost, Message, Session
from daemon.config.model import Config, Mqtt, parse
from daemon.edge.links import mqtt as links_mqtt
from daemon.edge.links.link import HostLink, StreamLink
from daemon.read_model import SiteState
from protocols.contract.topics import table_topic
from protocols.link import LinkLost
from simulators.clock import Pace
from simulators.devices.device import Device
from simulators.devices.line import Line
from simulators.lab.campaign.loop import Process, VirtualLoop
from simulators.lab.pit import KINDS, SIGNED, SITE, Pit
from simulators.ports.mqtt import line_of, message_of
from simulators.ports.port import Port, Socket
from simulators.tables.table import Table

__all__ = ["HURRY", "Cable", "Hands", "Plug", "Radio", "VirtualPit"]

LATENCY = 0.001
HURRY = 5.0
"""How many times faster than at a real table machines run and dealers act."""


class Hands(Pace):
    """The pace of the campaign in seconds of the loop: dealers hardly wait for players."""

    LEAST: ClassVar[float] = 0.25

    async def sleep(self, seconds: float) -> None:
        """Sleep for a short pause, the dealer's own work; shorten a long one, which waits for players."""
        await asyncio.sleep(seconds if seconds <= self.LEAST else max(seconds / HURRY, self.LEAST))


class _End(asyncio.Transport):
    """The host's end of a cable, below the real link."""

    def __init__(self, cable: "Cable", link: StreamLink) -> None:
        super().__init__()
        self._cable = cable
        self._link = link
        self._closing = False
        self.process = Process.current()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._cable.from_host(bytes(data))

    def hear(self, data: bytes) -> None:
        if self._cable.end is self:
            self._link.data_received(data)

    def abort(self) -> None:
        self._hang_up(None)

    def close(self) -> None:
        self._hang_up(None)

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def pulled(self) -> None:
        """The cable was pulled."""
        self._hang_up(OSError("device reports readiness to read but returned no data"))

    def _hang_up(self, error: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            if self._cable.end is self:
                self._cable.end = None
            loop = self._cable.loop
            context = loop.world if self.process is None else self.process.context
            loop.call_soon(self._link.connection_lost, error, context=context)


class Cable:
    """A serial cable in memory, with a device's end like every port."""

    def __init__(self, loop: VirtualLoop, url: str, rng: random.Random) -> None:
        """Nothing appears before `plug`."""
        self.loop = loop
        self.url = url
        self._rng = rng
        self._plugged = False
        self._free_at = 0.0
        self.end: _End | None = None
        self.received: Callable[[bytes], None] = lambda _: None
        self.sent_bytes = 0
        self.received_bytes = 0

    def plug(self) -> None:
        """Plug the cable in."""
        self._plugged = True

    def unplug(self) -> None:
        """Pull the cable; the host's end hangs up."""
        self._plugged = False
        if self.end is not None:
            self.end.pulled()
            self.end = None

    def send(self, data: bytes) -> None:
        """Send to the host in one or two pieces; lost while the port is closed."""
        end = self.end
        if not self._plugged or end is None:
            return
        self.sent_bytes += len(data)
        context = self.loop.world if end.process is None else end.process.context
        at = max(self.loop.time() + LATENCY, self._free_at)
        if len(data) > 1 and self._rng.random() < 0.05:
            middle = self._rng.randrange(1, len(data))
            self.loop.call_at(at, end.hear, data[:middle], context=context)
            at += self._rng.random() * 0.02
            data = data[middle:]
        self.loop.call_at(at, end.hear, data, context=context)
        self._free_at = at

    def from_host(self, data: bytes) -> None:
        """Deliver bytes to the device."""
        if self._plugged:
            self.loop.call_later(LATENCY, self._arrived, data, context=self.loop.world)

    def _arrived(self, data: bytes) -> None:
        self.received_bytes += len(data)
        self.received(data)

    def open(self, link: StreamLink) -> None:
        """A host opens it. Raises LinkLost."""
        if not self._plugged:
            raise LinkLost(f"{self.url} is not there")
        end = _End(self, link)
        self.end = end
        if end.process is not None:
            end.process.on_death.append(lambda: self._left(end))
        link.connection_made(end)

    def _left(self, end: _End) -> None:
        if self.end is end:
            self.end = None


class _Opening(AbstractAsyncContextManager[HostLink]):
    """A link from its opening to its end."""

    def __init__(self, cable: Cable, now: Callable[[], Any]) -> None:
        self._cable = cable
        self._now = now
        self._link: StreamLink | None = None
        self._process = Process.current()

    async def __aenter__(self) -> HostLink:
        await asyncio.sleep(LATENCY)
        link = StreamLink(self._now)
        self._cable.open(link)
        self._link = link
        return link

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._link is not None and (self._process is None or self._process.alive):
            await self._link.close()


class Radio:
    """A device's own connection to the broker in memory, as `simulators.ports.mqtt.Mqtt`: one line a message."""

    def __init__(self, loop: VirtualLoop, connect: Connect, name: str, hear: str, say: str) -> None:
        """Nothing connects before `plug`."""
        self._loop = loop
        self._connect = connect
        self._name = name
        self._hear, self._say = hear, say
        self._task: asyncio.Task[None] | None = None
        self._unsent = bytearray()
        self._news = asyncio.Event()
        self._connected = False
        self.received: Callable[[bytes], None] = lambda _: None
        self.sent_bytes = 0
        self.received_bytes = 0

    @property
    def url(self) -> str:
        """The host's link to this device."""
        return f"mqtt://127.0.0.1:1883/?hear={self._say}&say={self._hear}"

    def plug(self) -> None:
        """Connect, and reconnect after each loss of the broker."""
        if self._task is None:
            self._task = self._loop.create_task(self._stay(), context=self._loop.world)

    def unplug(self) -> None:
        """Pull the cable. Unsent lines are lost."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._connected = False
        self._unsent.clear()

    def send(self, data: bytes) -> None:
        """Send lines to the host; they are lost without a broker."""
        if self._connected:
            self._unsent += data
            self._news.set()

    async def _stay(self) -> None:
        while True:
            with contextlib.suppress(BrokerLost):
                async with self._connect(Mqtt(), self._name, None) as session:
                    session.deliver_to(self._heard)
                    await session.subscribe(self._hear.replace("*", "+"))
                    self._connected = True
                    await self._talk(session)
            self._connected = False
            self._unsent.clear()
            await asyncio.sleep(0.5)

    async def _talk(self, session: Session) -> None:
        """Publish until the session is lost. Raises BrokerLost."""
        lost = asyncio.create_task(session.until_lost())
        try:
            while not lost.done():
                news = asyncio.create_task(self._news.wait())
                try:
                    await asyncio.wait([lost, news], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                self._news.clear()
                while (end := self._unsent.find(b"\n")) >= 0:
                    line = bytes(self._unsent[:end])
                    del self._unsent[: end + 1]
                    self.sent_bytes += end + 1
                    await session.publish(*message_of(self._say, line), vital=False)
        finally:
            lost.cancel()
            await asyncio.wait([lost])
            if not lost.cancelled():
                lost.exception()  # the broker is lost: publishing raises the same

    def _heard(self, message: Message) -> None:
        if not message.retain:
            data = line_of(self._hear, message.topic, message.payload)
            self.received_bytes += len(data)
            self.received(data)


class Plug(Socket):
    """A device on its cable: as Socket, without a task of its own."""

    def __init__(self, device: Device, port: Port, pace: Pace, line: Line, loop: VirtualLoop) -> None:
        """Plug it in with `stir`."""
        super().__init__(device, port, pace, line)
        self._loop = loop
        self._timer: asyncio.Handle | None = None

    def stir(self) -> None:
        """Wake the device, and again when it is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._wake()
        if due < float("inf"):
            self._timer = self._loop.call_at(max(due, self._loop.time()), self.stir, context=self._loop.world)


_CONFIGS: dict[str, Config] = {}


class VirtualPit(Pit):
    """A pit on cables in memory."""

    def __init__(
        self,
        loop: VirtualLoop,
        seed: int,
        kinds: Sequence[str],
        tables: Mapping[str, type[Table]] = KINDS | SIGNED,
        *,
        connect: Connect,
        hurry: float = 1.0,
        luck: float = 0.0,
    ) -> None:
        """One table of each of `kinds`. `tables`: their classes.

        `connect`: to the broker in memory, for devices that speak MQTT. `hurry`: how many times faster than real ones
        the tables' machines run. `luck`: as in `Pit`.
        """
        super().__init__(Path("/"), seed, kinds=())
        self._loop = loop
        self._connect = connect
        self.pace = Hands()
        self.tables = {f"{kind}-1": tables[kind](seed) for kind in kinds}
        self._bring_luck(luck)
        if hurry > 1.0:
            for table in self.tables.values():
                table.hurry(hurry)
        self.outcomes = {name: [] for name in self.tables}
        self.told = {name: [] for name in self.tables}
        self.cables: dict[str, Cable] = {}
        number = 4000
        for table_name, table in self.tables.items():
            self.sockets[table_name] = {}
            for device_name, device in table.devices.items():
                number += 1
                place = f"{table_name}/{device_name}"
                port: Port
                if device.name == "bet_terminals":
                    bets = table_topic(SITE, table_name, "wager/*")
                    port = Radio(loop, connect, f"simulator-{table_name}", f"{bets}/result", bets)
                elif device.name in ("billy_iii", "idp_dice"):
                    topic = f"studio/{table_name}/{device_name}"
                    port = Radio(loop, connect, f"simulator-{place}", f"{topic}/listens", f"{topic}/says")
                else:
                    port = Cable(loop, f"tcp://127.0.0.1:{number}", random.Random(f"{seed} cable {place}"))
                    self.cables[port.url] = port
                self.ports[place] = port
                line = Line(random.Random(f"{seed} {place}"))
                plug = Plug(device, port, self.pace, line, loop)
                port.plug()
                self.sockets[table_name][device_name] = plug
                plug.stir()

    def parsed(self) -> Config:
        """The configuration of edge, rules and jackpots: the same for the same kinds of tables."""
        text = self.config(1883, "5")
        if text not in _CONFIGS:
            _CONFIGS[text] = parse(text)
        return _CONFIGS[text]

    def opener(self, now: Callable[[], Any]) -> Callable[[str], AbstractAsyncContextManager[HostLink]]:
        """The opener of links for an edge."""
        cables, connect = self.cables, self._connect
        return lambda url: _Opening(cables[url], now) if url in cables else links_mqtt.open_link(url, now, connect)

    async def play(self, rounds: int, site: SiteState, now: Callable[[], Any]) -> None:
        """Play `rounds` rounds at each table."""
        await self.deal(self.pace, rounds * len(self.tables), site, now)
