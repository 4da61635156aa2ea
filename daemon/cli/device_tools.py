"""Tools for a running site: record a device, send a command."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from daemon.broker.connection import stay_connected
from daemon.broker.session import UNREADABLE, BrokerLost, BrokerRefused, Session
from daemon.captures import CAPTURE_HEAD, Frame, capture_line
from daemon.config.model import Config, Device
from daemon.edge.links.link import open_link
from drivers import DRIVERS
from drivers.driver import Chunk, DeviceRefused, Link, LinkLost, Sighting
from protocols.contract.commands import Reply, Request, decode_command, typed
from protocols.contract.topics import device_topic

__all__ = ["command", "find_device", "record"]


def find_device(config: Config, name: str) -> Device | None:
    """The device called "table/device"."""
    table_name, _, device_name = name.partition("/")
    return next(
        (one for table in config.table if table.name == table_name for one in table.device if one.name == device_name),
        None,
    )


class _RecordingLink:
    """A link that records all bytes."""

    def __init__(self, link: Link, write: Callable[[Frame], None]) -> None:
        self._link = link
        self._write = write

    async def read(self) -> Chunk:
        chunk = await self._link.read()
        self._write(Frame(chunk.at, True, chunk.data))
        return chunk

    async def write(self, data: bytes) -> None:
        self._write(Frame(self._link.stamp().at, False, data))
        await self._link.write(data)

    def stamp(self) -> Chunk:
        return self._link.stamp()


async def record(device: Device, write: Callable[[str], None]) -> str:
    """Run a device's driver and write a capture of both directions until the link ends; returns why it ended."""
    kind = DRIVERS[device.driver]
    write(f"{CAPTURE_HEAD} driver={device.driver}")

    async def emit(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:  # noqa: ARG001 - bytes are enough
        return None

    try:
        async with open_link(device.url) as link:
            recording = _RecordingLink(link, lambda frame: write(capture_line(frame)))
            await kind(msgspec.convert(device.options, kind.Options)).run(recording, emit)
    except (LinkLost, DeviceRefused) as error:
        return str(error)
    return "the driver ended"


class _LastReason:
    """A log that keeps only the reason of a lost connection."""

    reason = ""

    def info(self, _event: str, **_: str) -> None:
        """Ignored: only a lost connection has a reason."""

    def warning(self, _event: str, *, reason: str, **_: str) -> None:
        self.reason = reason


async def command(config: Config, device: str, name: str, args: Mapping[str, str], wait: float) -> Reply:
    """Send a command and wait for the answer. Raises BadCommand, TimeoutError (no answer), BrokerLost (no broker).

    It is sent again on each new connection with the same id, so that it is executed once.
    """
    encoded = msgspec.json.encode(typed(name, args))
    decode_command(name, encoded)
    table, _, which = device.partition("/")
    topic = device_topic(config.site.name, table, which, f"cmd/{name}")
    request = Request(uuid.uuid4().hex[:16], datetime.now(UTC) + timedelta(seconds=min(wait, 60)), msgspec.Raw(encoded))
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    asked = False
    log = _LastReason()

    def refuse(reason: str) -> None:
        if not answer.done():
            answer.set_exception(BrokerRefused(f"it refuses {topic}: {reason}"))

    async def serve(session: Session) -> None:
        nonlocal asked
        await session.subscribe(f"{topic}/result")
        asked = True
        await session.publish(topic, msgspec.json.encode(request), vital=False, refused=refuse)
        while True:
            for message in await session.messages():
                with contextlib.suppress(*UNREADABLE):
                    reply = msgspec.json.decode(message.payload, type=Reply)
                    if reply.id == request.id and not answer.done():
                        answer.set_result(reply)

    asking = asyncio.create_task(stay_connected(config.mqtt, "", None, serve, cast("Any", log)))
    try:
        async with asyncio.timeout(wait):
            return await answer
    except TimeoutError as error:
        if asked:
            raise
        raise BrokerLost(log.reason or "no answer") from error
    finally:
        asking.cancel()
        await asyncio.wait([asking])
