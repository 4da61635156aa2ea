"""Work in the field: a device recorded, a site watched, a device simulated."""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.config import Config, Device
from daemon.links import open_link
from daemon.mqtt import UNREADABLE, Message, Session, stay_connected
from daemon.offline import CAPTURE_HEAD, Frame, capture_line
from drivers import DRIVERS
from drivers.driver import Chunk, DeviceRefused, Link, LinkLost, Sighting
from protocols.topics import BadEnvelope, decode_wire, table_topic
from simulators.alone import acts, keep_busy, make
from simulators.clock import Pace
from simulators.device import Device as SimulatedDevice
from simulators.port import Pty, Socket, Tcp

__all__ = ["find_device", "record", "simulate", "watch"]


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


class _Result(Struct, frozen=True):
    """What is shown of a result."""

    round: str
    void: dict[str, Any] | None = None
    announcements: dict[str, str] = {}


class _Ended(Struct, frozen=True):
    """The data of the end of a round."""

    result: _Result


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
            with contextlib.suppress(*UNREADABLE):
                result = msgspec.json.decode(wire.data, type=_Ended).result
                text = f"{result.round} {result.void or result.announcements.get('en', '')}"
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


def _port_at(listen: str) -> Pty | Tcp:
    if listen.startswith("tcp://"):
        host, _, number = listen.removeprefix("tcp://").rpartition(":")
        return Tcp(host, int(number))
    return Pty(Path(listen.removeprefix("tty:")).absolute())


async def simulate(
    name: str, listen: str, *, seed: int, speed: float, manual: bool, say: Callable[[str], None]
) -> None:
    """One device at `listen` (tty:PATH or tcp://HOST:PORT), told what to do by lines on standard input."""
    device = make(name, seed)
    pace = Pace(speed)
    port = _port_at(listen)
    socket = Socket(device, port, pace)
    port.plug()
    at = f"tcp://{port.host}:{port.port}" if isinstance(port, Tcp) else f"serial://{port.path}"
    say(f"{name} at {at}")
    say(f"acts: {', '.join(acts(device)) or 'none'}; faults: {', '.join(device.faults)}; unplug, plug, quit")
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(socket.live())]
        if not manual:
            running.append(group.create_task(keep_busy(device, pace, socket.stir)))
        async for line in _lines():
            answer = _obey(line, device, port, pace.now())
            socket.stir()
            if answer is None:
                break
            say(answer)
        else:
            await asyncio.Event().wait()  # nobody types: live until killed
        for task in running:
            task.cancel()


def _obey(line: str, device: SimulatedDevice, port: Pty | Tcp, now: float) -> str | None:
    """Do one line; the answer, or None to end."""
    hands = acts(device)
    match line.split():
        case []:
            return ""
        case ["quit" | "exit"]:
            return None
        case ["unplug"]:
            port.unplug()
            return "unplugged"
        case ["plug"]:
            try:
                port.plug()
            except OSError as error:
                return f"cannot be plugged in: {error.strerror}"
            return "plugged in"
        case [act] if act in hands:
            done = hands[act](now)
            return f"{act}: {done}" if done is not None else act
        case ["fault", fault] | [fault] if fault in device.faults:
            device.inject(fault, now)
            return f"fault {fault}"
        case _:
            return f"unknown {line!r}; acts: {', '.join(hands)}; faults: {', '.join(device.faults)}"


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
