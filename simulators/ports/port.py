"""The port of a simulated device: a pty or a TCP port.

`live` joins device, port and clock. Unplugging closes the device's end, which looks to the host like a pulled cable;
plugging in again makes a new one under the same name.
"""

import asyncio
import contextlib
import os
import random
import socket
import termios
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from simulators.clock import Pace
from simulators.devices.device import Device
from simulators.devices.line import Line

MAX_UNSENT = 65536
# A loop runs a timer that is nearer than its clock's resolution at once. A virtual clock would stand still then.
MOMENT = 1e-6


class Port(Protocol):
    """The device's end of a cable."""

    received: Callable[[bytes], None]
    sent_bytes: int
    received_bytes: int

    @property
    def url(self) -> str:
        """Its link in the host's configuration."""
        ...

    def plug(self) -> None:
        """Make the port appear."""
        ...

    def unplug(self) -> None:
        """Pull the cable."""
        ...

    def send(self, data: bytes) -> None:
        """Send to the host; lost without a listener, as on a real wire."""
        ...


class Pty:
    """A pseudo terminal, reachable under `path` (a symbolic link)."""

    def __init__(self, path: Path) -> None:
        """Nothing appears before `plug`."""
        self.path = path
        self._ends: tuple[int, int] | None = None
        self._unsent = bytearray()
        self.received: Callable[[bytes], None] = lambda _: None
        self.sent_bytes = 0
        self.received_bytes = 0

    @property
    def url(self) -> str:
        """A serial link."""
        return f"serial://{self.path}"

    def plug(self) -> None:
        """Make the tty appear, in raw mode as for a serial port."""
        if self._ends is not None:
            return
        # Replace only links to a pty and dangling links, as an earlier simulator leaves them: never a file or a device.
        if self.path.is_symlink() and (str(self.path.readlink()).startswith("/dev/pts/") or not self.path.exists()):
            self.path.unlink()
        master, slave = os.openpty()
        try:
            tty.setraw(slave, termios.TCSANOW)
            os.set_blocking(master, False)
            self.path.symlink_to(os.ttyname(slave))
        except OSError:
            os.close(slave)
            os.close(master)
            raise
        # The device's own open slave end keeps the pty alive while the host comes and goes.
        self._ends = master, slave
        asyncio.get_running_loop().add_reader(master, self._readable)

    def unplug(self) -> None:
        """Pull the cable: the host's end hangs up."""
        if self._ends is None:
            return
        master, slave = self._ends
        loop = asyncio.get_running_loop()
        loop.remove_reader(master)
        loop.remove_writer(master)
        if self.path.is_symlink() and str(self.path.readlink()) == os.ttyname(slave):
            self.path.unlink()
        os.close(slave)
        os.close(master)
        self._ends = None
        self._unsent.clear()

    def send(self, data: bytes) -> None:
        """Send bytes to the host. Bytes that the host does not read are lost beyond MAX_UNSENT, as in a real buffer."""
        if self._ends is None:
            return
        self._unsent += data[: MAX_UNSENT - len(self._unsent)]
        self._flush()

    def _flush(self) -> None:
        if self._ends is None:
            return
        master, _ = self._ends
        loop = asyncio.get_running_loop()
        try:
            written = os.write(master, self._unsent)
        except BlockingIOError:
            written = 0
        self.sent_bytes += written
        del self._unsent[:written]
        if self._unsent:
            loop.add_writer(master, self._flush)
        else:
            loop.remove_writer(master)

    def _readable(self) -> None:
        if self._ends is None:
            return
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._ends[0], 4096)
            if data:
                self.received_bytes += len(data)
                self.received(data)


class Tcp:
    """A TCP port for one host at a time; a new host replaces the old one."""

    def __init__(self, host: str, port: int) -> None:
        """Nothing listens before `plug`."""
        self._address = host, port
        self._listener: socket.socket | None = None
        self._host: socket.socket | None = None
        self._unsent = bytearray()
        self.received: Callable[[bytes], None] = lambda _: None
        self.sent_bytes = 0
        self.received_bytes = 0

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self._address[0]

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._address[1]

    @property
    def url(self) -> str:
        """A TCP link."""
        return f"tcp://{self.host}:{self.port}"

    def plug(self) -> None:
        """Listen."""
        if self._listener is not None:
            return
        self._listener = socket.create_server(self._address, reuse_port=False)
        self._address = self._listener.getsockname()[:2]
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def unplug(self) -> None:
        """Close everything."""
        self._drop()
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def send(self, data: bytes) -> None:
        """Bytes to the host."""
        if self._host is not None:
            self._unsent += data[: MAX_UNSENT - len(self._unsent)]
            self._flush()

    def _accept(self) -> None:
        if self._listener is None:
            return
        with contextlib.suppress(BlockingIOError):
            host, _ = self._listener.accept()
            self._drop()
            host.setblocking(False)
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._host = host
            asyncio.get_running_loop().add_reader(host, self._readable)

    def _drop(self) -> None:
        if self._host is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._host)
            loop.remove_writer(self._host)
            self._host.close()
            self._host = None
        self._unsent.clear()

    def _flush(self) -> None:
        if self._host is None:
            return
        loop = asyncio.get_running_loop()
        try:
            written = self._host.send(self._unsent)
        except BlockingIOError:
            written = 0
        except OSError:
            self._drop()
            return
        self.sent_bytes += written
        del self._unsent[:written]
        if self._unsent:
            loop.add_writer(self._host, self._flush)
        else:
            loop.remove_writer(self._host)

    def _readable(self) -> None:
        if self._host is None:
            return
        try:
            data = self._host.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.received_bytes += len(data)
            self.received(data)
        else:
            self._drop()


class Socket:
    """One device on one port over one line, at one pace."""

    def __init__(self, device: Device, port: Port, pace: Pace, line: Line | None = None) -> None:
        """Plug it in with `live`."""
        self.device = device
        self.port = port
        self.line = line or Line(random.Random(device.name))
        self._pace = pace
        self._stirred = asyncio.Event()
        port.received = self._received

    def inject(self, fault: str) -> None:
        """Begin a fault of the device or of its line. Raises ValueError if neither has it."""
        now = self._pace.now()
        if fault in self.device.line:
            self.line.inject(fault, now)
            if self.line.plug_at < float("inf"):
                self.port.unplug()
        else:
            self.device.inject(fault, now)
        self.stir()

    def stir(self) -> None:
        """The device was changed from outside: recompute its next wake time."""
        self._stirred.set()

    def _received(self, data: bytes) -> None:
        now = self._pace.now()
        heard = self.line.to_device(data, now)
        answer = self.line.to_host(self.device.hear(heard, now) if heard else b"", now)
        if answer:
            self.port.send(answer)
        self.stir()

    def _wake(self) -> float:
        """Send what is due of the device; returns when to wake it next."""
        now = self._pace.now()
        if now >= self.line.plug_at:
            self.line.plug_at = float("inf")
            self.port.plug()
        out = self.line.to_host(self.device.wake(now), now)
        if out:
            self.port.send(out)
        return min(self.device.due(), self.line.due())

    async def live(self) -> None:
        """Wake the device whenever it is due, until cancelled."""
        self.port.plug()
        try:
            while True:
                self._stirred.clear()
                wait = self._wake() - self._pace.now()
                if self._stirred.is_set():
                    continue
                limit = None if wait == float("inf") else max(self._pace.real(wait), MOMENT)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(limit):
                        await self._stirred.wait()
        finally:
            self.port.unplug()
