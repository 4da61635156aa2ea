"""The connection of a simulated MQTT device: a client of the broker, like the real device.

One received message is one line for the device; each line that the device sends is one message. A `*` in a topic stands
for the name in front of a line, for several devices with a topic each.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable

import aiomqtt

from protocols.contract.topics import is_id

__all__ = ["Mqtt", "line_of", "message_of"]

MAX_UNSENT = 65536
AGAIN = 0.5
# TCP_NODELAY: without it a message waits for the acknowledgement of earlier ones.
NODELAY = ((6, 1, 1),)  # IPPROTO_TCP, TCP_NODELAY
NOISE = "noise"
SPACES = bytes.maketrans(b"\r\n", b"  ")
_SILENT = logging.getLogger("feltd.simulators.mqtt.silent")
_SILENT.disabled = True  # a device does not log a lost broker: it connects again


def line_of(pattern: str, topic: str, payload: bytes) -> bytes:
    """The line of a message for the device."""
    levels = pattern.split("/")
    name = topic.split("/")[levels.index("*")].encode() + b" " if "*" in levels else b""
    return name + payload.translate(SPACES) + b"\n"


def message_of(pattern: str, line: bytes) -> tuple[str, bytes]:
    """Topic and payload of a line of the device. A line without a name was damaged by noise."""
    if "*" not in pattern:
        return pattern, line
    name, _, payload = line.partition(b" ")
    terminal = name.decode("ascii", "replace")
    return (pattern.replace("*", terminal), payload) if is_id(terminal) else (pattern.replace("*", NOISE), line)


class Mqtt:
    """The device's end: it receives `hear` and publishes on `say`. While it is plugged in, it reconnects."""

    def __init__(self, host: str, port: int, hear: str, say: str, *, version: str = "5") -> None:
        """Set up without connecting: `plug` does that."""
        self._address = host, port
        self.hears, self.says = hear, say
        self._version = aiomqtt.ProtocolVersion.V5 if version == "5" else aiomqtt.ProtocolVersion.V311
        self._task: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._unsent = bytearray()
        self._news = asyncio.Event()
        self.received: Callable[[bytes], None] = lambda _: None
        self.connected = asyncio.Event()
        self.sent_bytes = 0
        self.received_bytes = 0

    @property
    def url(self) -> str:
        """The host's link to this device."""
        host, port = self._address
        old = "" if self._version is aiomqtt.ProtocolVersion.V5 else "&version=3.1.1"
        return f"mqtt://{host}:{port}/?hear={self.says}&say={self.hears}{old}"

    @property
    def connecting(self) -> bool:
        """Whether it is plugged in and not yet connected."""
        return self._task is not None and not self.connected.is_set()

    def plug(self) -> None:
        """Connect, and reconnect after each loss of the broker."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._stay())

    def unplug(self) -> None:
        """Pull the cable. Unsent lines are lost."""
        if self._task is not None:
            self._task.cancel()
            self._leaving.add(self._task)
            self._task.add_done_callback(self._leaving.discard)
            self._task = None
        self._unsent.clear()
        self.connected.clear()

    async def unplugged(self) -> None:
        """Return when the tasks that `unplug` cancelled have ended."""
        if self._leaving:
            await asyncio.wait(self._leaving)

    def send(self, data: bytes) -> None:
        """Send lines to the host; they are lost without a broker, and beyond MAX_UNSENT."""
        if self.connected.is_set():
            self._unsent += data[: MAX_UNSENT - len(self._unsent)]
            self._news.set()

    async def _stay(self) -> None:
        while True:
            with contextlib.suppress(aiomqtt.MqttError):
                await self._session()
            self.connected.clear()
            self._unsent.clear()
            await asyncio.sleep(AGAIN)

    async def _session(self) -> None:
        host, port = self._address
        identifier = f"simulator-{secrets.token_hex(8)}"
        async with aiomqtt.Client(
            host,
            port,
            identifier=identifier,
            protocol=self._version,
            keepalive=15,
            timeout=5,
            socket_options=NODELAY,
            logger=_SILENT,
        ) as client:
            await client.subscribe(self.hears.replace("*", "+"), 1)
            _still_wanted()
            self.connected.set()
            sender = asyncio.create_task(self._publish(client))
            try:
                async for message in client.messages:
                    if not message.retain:
                        self._heard(message.topic.value, message.payload)
            finally:
                sender.cancel()
                await asyncio.wait([sender])
                if not sender.cancelled():
                    sender.exception()  # it ended for the same reason

    def _heard(self, topic: str, payload: object) -> None:
        data = line_of(self.hears, topic, payload if isinstance(payload, bytes) else str(payload).encode())
        self.received_bytes += len(data)
        self.received(data)

    async def _publish(self, client: aiomqtt.Client) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while (end := self._unsent.find(b"\n")) >= 0:
                line = bytes(self._unsent[:end])
                del self._unsent[: end + 1]
                self.sent_bytes += end + 1
                await client.publish(*message_of(self.says, line), 1)
                _still_wanted()


def _still_wanted() -> None:
    """asyncio.wait_for of Python 3.11, which aiomqtt uses, loses a cancellation that arrives with the answer: raise "
    "it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
