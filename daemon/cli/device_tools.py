"""Work in the field: a device recorded, a site watched, a device simulated."""

import asyncio
import contextlib
import os
import secrets
import stat
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from daemon import logs
from daemon.broker.connection import stay_connected
from daemon.broker.session import UNREADABLE, Message, Session
from daemon.cli.captures import CAPTURE_HEAD, Frame, capture_line
from daemon.config.model import Config, Device
from daemon.edge.links import mqtt as links_mqtt
from daemon.edge.links.link import open_link
from drivers import DRIVERS
from drivers.driver import Chunk, DeviceRefused, Link, LinkLost, Sighting
from protocols.contract.commands import Reply, Request, decode_command, typed
from protocols.contract.results import BadRound, decode_end
from protocols.contract.topics import BadEnvelope, decode_wire, device_topic, table_topic
from protocols.fdl import frame as fdl
from simulators.alone import keep_busy, make
from simulators.clock import Pace
from simulators.ports.control import Control
from simulators.ports.mqtt import Mqtt
from simulators.ports.port import Pty, Socket, Tcp

__all__ = ["BadControl", "command", "find_device", "record", "simulate", "watch"]


CONTROL_LINE = 1000


class BadControl(Exception):
    """The control port cannot be opened. The message says why."""


def find_device(config: Config, name: str) -> Device | None:
    """The device called "table/device"."""
    table_name, _, device_name = name.partition("/")
    return next(
        (one for table in config.table if table.name == table_name for one in table.device if one.name == device_name),
        None,
    )


class _RecordingLink:
    """A link that writes down all that passes."""

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
    """Speak with a device by its driver and write a capture, both ways, until the link ends; why it ended."""
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


async def watch(config: Config, what: str, say: Callable[[str], None]) -> None:
    """Say each event and each end of a round as it comes over the broker, for "table", "table/device" or all."""
    table, _, device = what.partition("/")

    def tell(message: Message) -> None:
        try:
            wire = decode_wire(message.payload)
        except (BadEnvelope, *UNREADABLE) as error:
            say(f"? {message.topic}: {error}")
            return
        words = message.topic.split("/")
        where = f"{words[4]}/{words[6] if words[5] == 'device' else 'round'}"
        text = bytes(wire.data).decode(errors="replace")
        if words[5] == "round":
            with contextlib.suppress(BadRound):
                result = decode_end(wire.data)
                said = msgspec.to_builtins(result.void) if result.void else result.announcements.get("en", "")
                text = f"{result.round} {said}"
        again = "  (replay)" if wire.replay else ""
        say(f"{wire.time:%H:%M:%S.%f} {where:24} {wire.type:18} {text}{again}")

    async def serve(session: Session) -> None:
        topics = [table_topic(config.site.name, table or "+", f"device/{device or '+'}/event/#")]
        if not device:
            topics.append(table_topic(config.site.name, table or "+", "round/event/#"))
        await session.subscribe(*topics)
        while True:
            for message in await session.messages():
                tell(message)

    await stay_connected(config.mqtt, "", None, serve, logs.get(client="watch"))


async def command(config: Config, device: str, name: str, args: Mapping[str, str], wait: float) -> Reply:
    """Ask, and wait for the answer. Raises BadCommand, or TimeoutError where nobody answered.

    Asked again on each new connection with the same id, so that it is done once however often the broker is lost.
    """
    encoded = msgspec.json.encode(typed(name, args))
    decode_command(name, encoded)
    table, _, which = device.partition("/")
    topic = device_topic(config.site.name, table, which, f"cmd/{name}")
    request = Request(uuid.uuid4().hex[:16], datetime.now(UTC) + timedelta(seconds=min(wait, 60)), msgspec.Raw(encoded))
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    async def serve(session: Session) -> None:
        await session.subscribe(f"{topic}/result")
        await session.publish(topic, msgspec.json.encode(request))
        while True:
            for message in await session.messages():
                with contextlib.suppress(*UNREADABLE):
                    reply = msgspec.json.decode(message.payload, type=Reply)
                    if reply.id == request.id and not answer.done():
                        answer.set_result(reply)

    asking = asyncio.create_task(stay_connected(config.mqtt, "", None, serve, logs.get(client="command")))
    try:
        async with asyncio.timeout(wait):
            return await answer
    finally:
        asking.cancel()
        await asyncio.wait([asking])


def _port_at(listen: str) -> Pty | Tcp | Mqtt:
    if listen.startswith("tcp://"):
        host, _, number = listen.removeprefix("tcp://").rpartition(":")
        return Tcp(host, int(number))
    if listen.startswith("mqtt://"):
        links_mqtt.check(listen)
        parts = urlsplit(listen)
        words = parse_qs(parts.query)
        return Mqtt(parts.hostname or "", parts.port or 1883, words["say"][0], words["hear"][0])
    return Pty(Path(listen.removeprefix("tty:")).absolute())


async def simulate(
    name: str, listen: str, *, seed: int, speed: float, manual: bool, control: str, say: Callable[[str], None]
) -> None:
    """One device at `listen`, told what to do by lines on standard input, and at `control` (HOST:PORT) if given."""
    device = make(name, seed, secrets.randbelow(fdl.MAX_COUNTER) + 1)
    pace = Pace(speed)
    port = _port_at(listen)
    socket = Socket(device, port, pace)
    hand = Control(socket, pace)
    async with contextlib.AsyncExitStack() as stack:
        server = None
        if control:
            server = await stack.enter_async_context(_control_port(hand, control))
        port.plug()
        stack.callback(port.unplug)
        say(f"{name} at {port.url}")
        if isinstance(port, Mqtt):
            say(f"it hears {port.hears} and says {port.says}")
        say(hand.help())
        if server is not None:
            host, number = server.sockets[0].getsockname()[:2]
            say(f"control at {host}:{number}")
        group = await stack.enter_async_context(asyncio.TaskGroup())
        running = [group.create_task(socket.live())]
        if not manual:
            running.append(group.create_task(keep_busy(device, pace, socket.stir)))
        async for line in _lines():
            answer = hand.do(line)
            if answer is None:
                break
            say(answer)
        else:
            await asyncio.Event().wait()  # nobody types: live until killed
        for task in running:
            task.cancel()


@contextlib.asynccontextmanager
async def _control_port(hand: Control, control: str) -> AsyncIterator[asyncio.Server]:
    """Raises BadControl."""
    host, _, number = control.rpartition(":")
    talks: set[asyncio.Task[None]] = set()

    def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Tasks of ours: asyncio's own complain when they are cancelled.
        talk = asyncio.create_task(_controlled(hand, reader, writer))
        talks.add(talk)
        talk.add_done_callback(talks.discard)

    try:
        server = await asyncio.start_server(met, host, int(number), limit=CONTROL_LINE)
    except OSError as error:
        raise BadControl(error.strerror or str(error)) from error
    try:
        yield server
    finally:
        server.close()
        for talk in talks:
            talk.cancel()
        if talks:
            await asyncio.wait(talks)


async def _controlled(hand: Control, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: a line in, a line out. `quit` ends the connection, not the device."""
    try:
        while line := await reader.readline():
            answer = hand.do(line.decode(errors="replace").strip())
            if answer is None:
                break
            writer.write(f"{answer}\n".encode())
            await writer.drain()
    except ConnectionError:
        pass  # gone
    except ValueError:
        writer.write(b"a line without end; good-bye\n")
    finally:
        writer.close()


async def _lines() -> AsyncIterator[str]:
    """Lines of standard input, where it can be waited for."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    try:
        if sys.stdin is None or (stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode) and not sys.stdin.isatty()):
            return  # closed, or /dev/null: nobody is there to type
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    except ValueError:
        return  # a plain file, or nothing at all
    while line := await reader.readline():
        yield line.decode(errors="replace").strip()
