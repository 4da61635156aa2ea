"""`feltd simulate`: one simulated device at a port; lines on standard input make its acts and faults happen."""

import asyncio
import contextlib
import os
import secrets
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from daemon.edge.links import mqtt as links_mqtt
from protocols.fdl import frame as fdl
from simulators.alone import keep_busy, make
from simulators.clock import Pace
from simulators.ports.control import Control
from simulators.ports.mqtt import Mqtt
from simulators.ports.port import Pty, Socket, Tcp

__all__ = ["BadControl", "simulate"]

CONTROL_LINE = 1000


class BadControl(Exception):
    """The control port cannot be opened. The message gives the reason."""


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
    """One device at `listen`, controlled by lines on standard input, and at `control` (HOST:PORT) if given."""
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
            say(f"it subscribes to {port.hears} and publishes on {port.says}")
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
            await asyncio.Event().wait()  # no standard input: run until killed
        for task in running:
            task.cancel()


@contextlib.asynccontextmanager
async def _control_port(hand: Control, control: str) -> AsyncIterator[asyncio.Server]:
    """Open the control port. Raises BadControl."""
    host, _, number = control.rpartition(":")
    talks: set[asyncio.Task[None]] = set()

    def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Own tasks: those of asyncio log an error when they are cancelled.
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
    """Lines of standard input, if it can be polled."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    try:
        if sys.stdin is None or (stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode) and not sys.stdin.isatty()):
            return  # standard input is closed or /dev/null
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    except ValueError:
        return  # a plain file, or nothing at all
    while line := await reader.readline():
        yield line.decode(errors="replace").strip()
