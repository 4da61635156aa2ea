"""Links by URL.

    serial:///dev/serial/by-id/usb-…?baud=9600      a port by its stable name
    serial:?vid=0403&pid=6001&serial=A50285BI    a port by its adapter's USB ids, looked up at every opening
    tcp://192.168.7.20:4001                         a serial server's raw port, or a simulator
    socket://192.168.7.20:4001                      the same, as pyserial writes it
    rfc2217://192.168.7.20:4001?baud=9600           a serial server with line settings (daemon/edge/links/rfc2217.py)
    usb:?vid=05e0&pid=1200&serial=7                 a USB device read by libusb        (daemon/edge/links/usb.py)
    sas:///dev/serial/by-id/usb-…                   a serial port with SAS's ninth bit (daemon/edge/links/sas.py)
    unix:///run/feltd/console/rou-3.sock            the dealer's page of this computer's console
    mqtt://host:1883/?hear=…&say=…                  a device at a broker               (daemon/edge/links/mqtt.py)

A link never reconnects; its owner opens another one.
"""

import asyncio
import contextlib
import errno
import fcntl
import importlib
import os
import socket
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from daemon import local_peer
from daemon.edge.links.serial_port import SerialProtocol, SerialTransport
from protocols.link import Chunk, DeviceRefused, Link, LinkLost

__all__ = [
    "BadUrl",
    "HostLink",
    "SerialLink",
    "StreamLink",
    "Tap",
    "Way",
    "check_url",
    "hangs",
    "line_settings",
    "open_link",
    "open_tcp",
    "opened",
    "place_of",
    "plugged_in",
    "utc_now",
    "within",
]

MAX_WAITING = 65536
# Schemes with a file of their own: each has `check(url)` and `open_link(url, now)`. Loaded when a link of it is opened.
ELSEWHERE = {
    "usb": "daemon.edge.links.usb",
    "sas": "daemon.edge.links.sas",
    "mqtt": "daemon.edge.links.mqtt",
    "rfc2217": "daemon.edge.links.rfc2217",
}
SCHEMES = ("serial", "tcp", "socket", "unix", *ELSEWHERE)
PARITIES = {"N", "E", "O", "M", "S"}
CONNECT_TIMEOUT = 5.0
CLOSE_TIMEOUT = 5.0
OPEN_TIMEOUT = 15.0  # of a port: opening an adapter that hangs may never return
CHECK_NETWORK = "check its power, cable and address"
CHECK_CONSOLE = "check that feltd-console runs, and [console.dealer]"
CHECK_PORT = "check its cable and power; `feltd detect` lists what is plugged in"
STOP_IT = "stop it; a running edge holds the ports of its devices"
CONSOLE_USER = "feltd-console"  # the server of a unix socket whose URL names no user
STALL_TIMEOUT = 30.0  # without one byte leaving a full buffer
# The kernel checks a connection without traffic; it is lost after some 20 s.
PROBES = {socket.TCP_KEEPIDLE: 5, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}


T = TypeVar("T")
_hanging: dict[str, threading.Thread] = {}
"""Threads that have not returned from a call on a device, by the device's path or name."""


class BadUrl(ValueError):
    """An invalid link URL. The message gives the expected form."""


class _Target:
    """A parsed URL: kind, then the arguments for opening it."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise BadUrl(f"{url}: {error}") from error
        query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.kind = parts.scheme
        self.match: dict[str, str] = {}
        match parts.scheme:
            case "tcp" | "socket":
                self.host, self.port = place_of(url, parts, f"{parts.scheme}://host:port")
                if parts.query:
                    raise BadUrl(f"{url}: write {parts.scheme}://host:port")
            case "unix":
                self.path, self.user = parts.path, query.pop("user", CONSOLE_USER)
                if parts.netloc or parts.fragment or query or not self.path.startswith("/") or not self.user:
                    raise BadUrl(f"{url}: write unix:///run/feltd/console/TABLE.sock, and ?user=NAME of its server")
            case "serial":
                self.path = parts.path
                self.match = {key: query.pop(key) for key in ("vid", "pid", "serial") if key in query}
                # serial://dev/ttyUSB0 would be the path /ttyUSB0 on a host "dev"
                named = self.path.startswith("/") and self.path != "/" and not parts.netloc and not parts.fragment
                if named == bool(self.match) or bool(self.path) != named:
                    raise BadUrl(f"{url}: write serial:///dev/serial/by-id/NAME, or serial:?vid=…&pid=…&serial=…")
                for key in ("vid", "pid"):
                    if key in self.match and not _is_hex(self.match[key]):
                        raise BadUrl(f"{url}: {key} is four hexadecimal digits, as lsusb prints them")
                self.baud, self.parity = line_settings(url, query)
                if query:
                    raise BadUrl(f"{url}: unknown {', '.join(query)}; known: baud, parity, vid, pid, serial")
            case _:
                if parts.path.startswith("/dev/"):
                    raise BadUrl(f"{url}: write serial://{parts.path}?baud=9600, with the speed of the device")
                import difflib  # as in daemon.config.model: a start without a mistake does not need it

                near = difflib.get_close_matches(parts.scheme, SCHEMES, 1)
                if url.startswith("tty"):
                    raise BadUrl(f"{url}: did you mean /dev/{url}?")
                meant = f"; did you mean {near[0]}:?" if near else ""
                raise BadUrl(f"{url}: a link begins with {':, '.join(SCHEMES)}:{meant}")


def place_of(url: str, parts: SplitResult, usage: str) -> tuple[str, int]:
    """Host and port of a URL without other parts before its query. Raises BadUrl with `usage`."""
    try:
        host, port = parts.hostname or "", parts.port or 0
    except ValueError as error:
        raise BadUrl(f"{url}: {error}") from error
    if not host or not port or parts.path or parts.fragment or "@" in parts.netloc:
        raise BadUrl(f"{url}: write {usage}")
    try:
        host.encode("idna")
    except UnicodeError as error:
        raise BadUrl(f"{url}: {host} is no host name") from error
    return host, port


def line_settings(url: str, query: dict[str, str]) -> tuple[int, str]:
    """Speed and parity, removed from `query`. Raises BadUrl."""
    parity = query.pop("parity", "N")
    if parity not in PARITIES:
        raise BadUrl(f"{url}: parity is one of {' '.join(sorted(PARITIES))}")
    baud = query.pop("baud", "9600")
    if not baud.isdecimal() or len(baud) > 7 or not 50 <= int(baud) <= 4_000_000:
        raise BadUrl(f"{url}: baud is a number, for example 9600")
    return int(baud), parity


def _is_hex(text: str) -> bool:
    try:
        return 0 <= int(text, 16) <= 0xFFFF
    except ValueError:
        return False


def _elsewhere(url: str) -> Any:
    """The module of the URL's scheme, if it is not this file."""
    module = ELSEWHERE.get(url.partition(":")[0].lower())
    return importlib.import_module(module) if module else None


def check_url(url: str) -> None:
    """Raise BadUrl for an invalid URL."""
    other = _elsewhere(url)
    if other is not None:
        other.check(url)
    else:
        _Target(url)


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


Way: TypeAlias = Literal["in", "out"]
Tap: TypeAlias = Callable[[Way, datetime, bytes], None]


class HostLink(Link, Protocol):
    """A link with byte counters and an optional `tap` that receives all bytes."""

    tap: Tap | None

    @property
    def received_bytes(self) -> int:
        """Bytes that a driver has read."""
        ...

    @property
    def sent_bytes(self) -> int:
        """Bytes that a driver has written."""
        ...


class StreamLink(asyncio.Protocol):
    """A tty, a TCP or a unix connection. Bytes are stamped when the loop receives them; the buffer is bounded."""

    tap: Tap | None = None

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        """`now` is the wall clock."""
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Chunk] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._lost: str | None = None
        self._reader: asyncio.Future[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._gone = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self.received_bytes = 0
        self.sent_bytes = 0

    @property
    def lost(self) -> str | None:
        """The reason of the loss; None while connected."""
        return self._lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Stamp and keep; stop reading when the buffer is full (the kernel's flow control then applies)."""
        self._waiting.append(Chunk(bytes(data), self._now(), self._loop.time()))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > MAX_WAITING and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """The other side closed."""
        self._end("the other side closed the connection")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Hang-up."""
        self._end(str(exc) if exc else "hung up")
        self._gone.set()

    def pause_writing(self) -> None:
        """The device does not accept our bytes."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """The device accepts our bytes again."""
        self._drained.set()

    def _end(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
        self._drained.set()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def read(self) -> Chunk:
        """The next bytes. Raises LinkLost."""
        while not self._waiting:
            if self._lost is not None:
                raise LinkLost(self._lost)
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        chunk = self._waiting.popleft()
        self._waiting_bytes -= len(chunk.data)
        self.received_bytes += len(chunk.data)
        if self.tap is not None:
            self.tap("in", chunk.at, chunk.data)
        if self._paused and self._waiting_bytes <= MAX_WAITING // 2 and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return chunk

    def stamp(self) -> Chunk:
        """An empty chunk with the present time."""
        return Chunk(b"", self._now(), self._loop.time())

    async def write(self, data: bytes) -> None:
        """Send. Raises LinkLost, also where the device takes no bytes for STALL_TIMEOUT."""
        if not self._drained.is_set():
            await self._room()
        if self._lost is not None or self._transport is None or self._transport.is_closing():
            raise LinkLost(self._lost or "hung up")
        self.sent_bytes += len(data)
        if self.tap is not None:
            self.tap("out", self._now(), data)
        self._transport.write(self.on_wire(data))

    async def _room(self) -> None:
        """Wait until the device takes bytes again."""
        while not self._drained.is_set():
            unsent = self._unsent()
            try:
                await asyncio.wait_for(self._drained.wait(), STALL_TIMEOUT)
            except TimeoutError:
                if self._unsent() == unsent:
                    self._end(
                        f"the device takes no bytes for {STALL_TIMEOUT:g} s; check its cable and its flow control"
                    )

    def _unsent(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def on_wire(self, data: bytes) -> bytes:
        """The bytes to send for `data`."""
        return data

    async def close(self) -> None:
        """Close the connection; return when it can be opened again."""
        assert self._transport is not None
        if not self._transport.is_closing() or self._transport.get_write_buffer_size():
            self._transport.abort()
        with contextlib.suppress(TimeoutError):  # with `timeout` Debian's Python would not go on (test_clean_up.py)
            await asyncio.wait_for(self._gone.wait(), CLOSE_TIMEOUT)


class SerialLink(StreamLink, SerialProtocol):
    """A tty. Its port is closed in a thread, later than its loss is reported."""

    def __init__(self, path: str, now: Callable[[], datetime] = utc_now) -> None:
        """`path` is the device file of the port."""
        super().__init__(now)
        self.path = path

    def connection_lost(self, exc: Exception | None) -> None:
        """Hang-up. The port is still open."""
        self._end(str(exc) if exc else "hung up")

    def port_closed(self) -> None:
        """The port can be opened again."""
        self._gone.set()

    def fileno(self) -> int:
        """The descriptor of the open port."""
        assert isinstance(self._transport, SerialTransport)
        return self._transport.fileno()


def open_link(url: str, now: Callable[[], datetime] = utc_now) -> AbstractAsyncContextManager[HostLink]:
    """The link under `url`, closed at the end. Raises LinkLost if it is missing, DeviceRefused if access is denied."""
    other = _elsewhere(url)
    return cast("AbstractAsyncContextManager[HostLink]", other.open_link(url, now)) if other else open_stream(url, now)


@contextlib.asynccontextmanager
async def open_stream(url: str, now: Callable[[], datetime] = utc_now) -> AsyncIterator[StreamLink]:
    """A tty, a TCP or a unix connection. Raises as `open_link`."""
    target = _Target(url)
    if target.kind == "serial":
        link = await _open_serial(target, now)
    elif target.kind == "unix":
        link = await _open_unix(target, now)
    else:
        link = await open_tcp(target.host, target.port, lambda: StreamLink(now))
    try:
        yield link
    finally:
        await link.close()


S = TypeVar("S", bound=StreamLink)


async def open_tcp(host: str, port: int, make: Callable[[], S]) -> S:
    """A connection with the link that `make` creates. Raises LinkLost."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            transport, link = await loop.create_connection(make, host, port)
    except TimeoutError as error:
        raise LinkLost(f"no answer from {host}:{port} in {CONNECT_TIMEOUT:g} s; {CHECK_NETWORK}") from error
    except socket.gaierror as error:
        raise LinkLost(f"{host}: {error.strerror}; check the name, or write the address") from error
    except ConnectionRefusedError as error:
        raise LinkLost(f"{host}:{port}: Connection refused; check that it is on, and its port number") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise LinkLost(f"{host}:{port}: {reason}; {CHECK_NETWORK}") from error
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in PROBES.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return link


class UnixLink(StreamLink):
    """A connection to a program of this computer, whose user was checked with the kernel (`LocalLink`)."""

    def __init__(self, peer_user: str, now: Callable[[], datetime] = utc_now) -> None:
        super().__init__(now)
        self.peer_user = peer_user


async def _open_unix(target: _Target, now: Callable[[], datetime]) -> StreamLink:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            transport, link = await loop.create_unix_connection(lambda: UnixLink(target.user, now), target.path)
    except TimeoutError as error:
        raise LinkLost(f"no answer from {target.path} in {CONNECT_TIMEOUT:g} s; {CHECK_CONSOLE}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise LinkLost(f"{target.path}: {reason}; {CHECK_CONSOLE}") from error
    uid = local_peer.uid_at_the_other_end(transport.get_extra_info("socket"))
    if not local_peer.is_trusted(uid, target.user):
        transport.abort()
        served = f"{target.path} is served by the user {local_peer.name_of(uid)} and not by {target.user}"
        raise DeviceRefused(f"{served}; nothing of it is accepted: find that program")
    return link


async def within(done: asyncio.Future[T], limit_s: float) -> bool:
    """Whether `done` ends within `limit_s` by the monotonic clock: the loop's clock may jump."""
    began = time.monotonic()
    while not done.done():
        await asyncio.wait([done], timeout=limit_s)
        if not done.done() and time.monotonic() - began >= limit_s:
            return False
    return True


def hangs(name: str, thread: threading.Thread) -> None:
    """Refuse to open the device `name` until `thread` ends, which hangs in a call on it."""
    _hanging[name] = thread


async def opened(thread: threading.Thread, done: asyncio.Future[T]) -> T:
    """The result of a thread that opens a device, reported by `done`. It may hang in the kernel and is never joined.

    Raises LinkLost after OPEN_TIMEOUT, and while an earlier one of this name still hangs, so that retries start no
    further threads.
    """
    last = _hanging.pop(thread.name, None)
    if last is not None and last.is_alive():
        _hanging[thread.name] = last
        raise LinkLost(f"{thread.name} does not open, and the last try still hangs: unplug it, or its hub")
    thread.start()
    try:
        if not await within(done, OPEN_TIMEOUT):
            hangs(thread.name, thread)
            raise LinkLost(f"{thread.name} does not open: unplug it, or its hub")
        return done.result()
    finally:
        done.cancel()  # no task waits for its result any more


async def _beside(name: str, work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """The result of `work` in a thread, as `opened`. A result that comes too late is undone."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if error is None and done.cancelled():
            threading.Thread(target=undo, args=(result,), daemon=True).start()
        elif error is None:
            done.set_result(cast("T", result))
        elif not done.cancelled():
            done.set_exception(error)

    def body() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as failed:  # noqa: BLE001 - it is raised in the loop
            error = failed
        try:
            loop.call_soon_threadsafe(finish, result, error)
        except RuntimeError:  # the loop is closed
            if error is None:
                undo(cast("T", result))

    try:
        return await opened(threading.Thread(target=body, name=name, daemon=True), done)
    except asyncio.CancelledError:
        if not done.cancelled() and done.exception() is None:
            undo(done.result())
        raise


_TCGETS2, _OUTPUT_SPEED = 0x802C542A, 40
"""ioctl_tty(2) and the place of `c_ospeed` in struct termios2: as it is on x86 and ARM."""
_SPEED_TOLERANCE = 0.03
"""Beyond it the last bit of a byte is read as the next one."""


def _refuse_another_speed(port: int, baud: int) -> None:
    """Raise ValueError where the port runs at another speed: a driver takes the nearest one that the port can do."""
    try:
        found = fcntl.ioctl(port, _TCGETS2, bytes(44))
    except OSError:
        return
    actual = int.from_bytes(found[_OUTPUT_SPEED:], sys.byteorder)
    if abs(actual - baud) > baud * _SPEED_TOLERANCE:
        raise ValueError(f"it can do {actual} baud")


async def _open_serial(target: _Target, now: Callable[[], datetime]) -> StreamLink:
    import serial

    path = target.path or await _beside(f"serial:?{target.match}", partial(_find, target.match), lambda _: None)

    def opened_port() -> serial.Serial:
        port = serial.Serial(path, target.baud, parity=target.parity, exclusive=True)
        try:  # the timeout sets the line again, which fails if the port did not keep its settings: close it then
            port.timeout = 0
            _refuse_another_speed(port.fileno(), target.baud)
        except BaseException:
            port.close()
            raise
        return port

    try:
        port = await _beside(path, opened_port, lambda port: port.close())
    except serial.SerialException as error:
        # pyserial has the error of the terminal in its text only
        match error.errno or getattr(error.__context__, "args", (None,))[0]:
            case errno.EACCES | errno.EPERM:
                raise DeviceRefused(
                    f"{path}: no permission; use sudo, or for a service see docs/how-to/install.md"
                ) from error
            case errno.EAGAIN | errno.EBUSY:
                raise DeviceRefused(f"{path} is in use by another program; {STOP_IT}") from error
            case errno.ENOTTY | errno.EISDIR:
                raise DeviceRefused(f"{path} is no serial port; `feltd detect` lists those that are") from error
            case errno.ENOENT | errno.ENODEV | errno.ENXIO | errno.EIO:
                raise LinkLost(f"{path} is not there; {CHECK_PORT}") from error
            case _:
                raise LinkLost(f"{path}: {error}") from error
    except (OSError, ValueError, termios.error) as error:
        raise DeviceRefused(f"{path}: the port refuses {target.baud} 8{target.parity}1: {error}") from error
    link = SerialLink(path, now)
    SerialTransport(port, link)
    return link


def plugged_in() -> list[Any]:
    """The serial ports of this computer, with VID, PID and serial number (pyserial's ListPortInfo)."""
    from serial.tools import list_ports

    return sorted(list_ports.comports(), key=lambda port: str(port.device))


def _find(match: dict[str, str]) -> str:
    wanted = {key: int(value, 16) if key != "serial" else value for key, value in match.items()}
    try:
        ports = plugged_in()
    except (TypeError, ValueError) as error:  # pyserial continues after one was just unplugged
        raise LinkLost("a device was just plugged in or unplugged") from error
    found = [
        str(port.device)
        for port in ports
        if all(
            (port.serial_number if key == "serial" else getattr(port, key)) == value for key, value in wanted.items()
        )
    ]
    words = " ".join(f"{key}={value}" for key, value in match.items())
    if not found:
        raise LinkLost(f"nothing with {words} is plugged in; {CHECK_PORT}")
    if len(found) > 1:
        raise DeviceRefused(f"{words} fits {', '.join(found)}; add serial=… to tell them apart")
    return found[0]
