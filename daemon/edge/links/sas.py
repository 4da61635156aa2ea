"""Links to SAS machines: a serial port with a ninth bit.

    sas:///dev/serial/by-id/usb-…[?baud=19200]      a port by its stable name
    sas:?vid=0403&pid=6001[&serial=…]               a port by its adapter's USB ids

Each `write` is one message: its first byte goes out with the ninth bit set (mark parity), the rest with it clear
(space parity). Reading expects it clear; a byte with it set (a loop break indication of an unpolled machine)
is counted and dropped, as is a break.

A port without such parity (a pseudo terminal) is used with eight bits: `ninth_bit` shows which it is.

A network link cannot do it: TCP carries no ninth bit, and a serial server does not change its parity between two bytes
(RFC 2217) within the 5 ms that a message may pause. `refusal` gives this reason.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import struct
import termios
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Any

from daemon.edge.links import link as links
from daemon.edge.links.link import BadUrl, HostLink, SerialLink, Tap
from protocols.link import Chunk, LinkLost

__all__ = ["SasLink", "check", "open_link", "refusal"]

BAUD = "19200"
CMSPAR = 0o10000000000  # mark and space instead of odd and even; the module termios has no name for it
IFLAG, CFLAG = 0, 2
PSEUDO_TERMINALS = "/dev/pts/"
NETWORK = frozenset({"tcp", "rfc2217", "socket"})
MARKED = 0xFF  # with PARMRK: FF FF is a byte FF, FF 00 X is X with a wrong parity
PART_TIMEOUT_S = 1.0  # for a part of a message to leave the port
HANG_TIMEOUT = 5.0  # of a message or a setting: a call on a port may never return from the kernel


def _serial(url: str) -> str:
    """The same port as a serial: URL. Raises BadUrl."""
    scheme, colon, rest = url.partition(":")
    if scheme != "sas" or not colon:
        raise BadUrl(f"{url}: write sas:///dev/serial/by-id/NAME, or sas:?vid=…&pid=…&serial=…")
    if "parity=" in rest:
        raise BadUrl(f"{url}: SAS has its own parity; leave it out")
    if "baud=" not in rest:
        rest += f"{'&' if '?' in rest else '?'}baud={BAUD}"
    return f"serial:{rest}"


def check(url: str) -> None:
    """Raise BadUrl where `url` cannot be a SAS port."""
    serial = _serial(url)
    try:
        links.check_url(serial)
    except BadUrl as error:
        raise BadUrl(
            str(error).replace(serial, url).replace("write serial:", "write sas:").replace("serial:?", "sas:?")
        ) from error


def refusal(url: str) -> str:
    """Why `url` can reach no machine; "" if it can. A simulated machine at a pseudo terminal needs no wakeup bit."""
    scheme, _, rest = url.partition(":")
    why = "which no link over the network carries in time; connect it to a serial port of this computer and"
    if scheme.lower() == "serial":
        path = rest.partition("?")[0].removeprefix("//")
        if path and os.path.realpath(path).startswith(PSEUDO_TERMINALS):
            return ""
        why = "which a plain serial port does not send;"
    elif scheme.lower() not in NETWORK:
        return ""
    return (
        f"{url}: a SAS machine needs the wakeup bit, {why} write sas:///dev/serial/by-id/NAME, or give the "
        "device the option adapter = true where its adapter sets that bit by itself"
    )


def open_link(url: str, now: Callable[[], datetime] = links.utc_now) -> AbstractAsyncContextManager[HostLink]:
    """The port under `url`, closed at the end. Raises LinkLost if it is missing, DeviceRefused if access is denied."""
    return _open(_serial(url), now)


@contextlib.asynccontextmanager
async def _open(url: str, now: Callable[[], datetime]) -> AsyncIterator[HostLink]:
    async with links.open_link(url, now) as stream:
        assert isinstance(stream, SerialLink)
        link = SasLink(stream, os.dup(stream.fileno()))
        try:
            await link.in_thread(link.set_up)
            yield link
        finally:
            await link.settle()


def _unsent(port: int) -> int:
    """Bytes that the kernel still holds."""
    return int(struct.unpack("i", fcntl.ioctl(port, termios.TIOCOUTQ, bytes(4)))[0])


class SasLink:
    """A serial stream whose messages begin with the ninth bit set."""

    tap: Tap | None = None

    def __init__(self, stream: SerialLink, port: int) -> None:
        """Without `set_up` there is no ninth bit.

        `port` is a descriptor of its own for the port of `stream`, which closes its descriptor at a hang-up: a message
        in progress must not go to another file that gets that descriptor. `settle` closes it.
        """
        self._stream = stream
        self._port = port
        self._mark: list[Any] = []
        self._space: list[Any] = []
        self._held = b""
        # A thread of its own, because a port may hang. It is never joined, so that loop and process do not wait for it.
        self._thread = threading.Thread(target=self._work, name=f"sas {stream.path}", daemon=True)
        self._jobs: SimpleQueue[tuple[Callable[[], None], asyncio.Future[None]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self.ninth_bit = False
        self.chirps = 0
        self.sent = 0

    @property
    def received_bytes(self) -> int:
        """What was read."""
        return self._stream.received_bytes

    @property
    def sent_bytes(self) -> int:
        """What was written."""
        return self._stream.sent_bytes + self.sent

    def stamp(self) -> Chunk:
        """An empty chunk with the present time."""
        return self._stream.stamp()

    def set_up(self) -> None:
        """Set space parity and marked errors; a port that does not keep them is left as it was."""
        plain = self._attributes()
        self._space = _with(plain, CFLAG, termios.PARENB | CMSPAR, termios.PARODD)
        self._space = _with(self._space, IFLAG, termios.INPCK | termios.PARMRK, termios.IGNPAR | termios.ISTRIP)
        self._mark = _with(self._space, CFLAG, termios.PARODD, 0)
        try:
            termios.tcsetattr(self._port, termios.TCSANOW, self._space)
            self.ninth_bit = self._attributes()[CFLAG] & (termios.PARENB | CMSPAR) == termios.PARENB | CMSPAR
        except termios.error as error:
            if error.args[0] != errno.EINVAL:
                raise LinkLost(str(error)) from error
        if not self.ninth_bit:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._port, termios.TCSANOW, plain)

    def _attributes(self) -> list[Any]:
        try:
            return list(termios.tcgetattr(self._port))
        except termios.error as error:
            raise LinkLost(str(error)) from error

    async def write(self, data: bytes) -> None:
        """One message. Raises LinkLost."""
        if self.tap is not None:
            self.tap("out", self.stamp().at, data)
        if not self.ninth_bit:
            await self._stream.write(data)
            return
        if self._stream.lost is not None:
            raise LinkLost(self._stream.lost)
        # In a thread, and to its end even if the driver waits no more: half a message would be worse than none.
        await self.in_thread(partial(self._send, data))
        self.sent += len(data)

    async def in_thread(self, job: Callable[[], None]) -> None:
        """Run a call that may block on the port in the thread. Raises LinkLost where it does not return."""
        done = self._loop.create_future()
        self._jobs.put((job, done))
        try:
            if not await links.within(done, HANG_TIMEOUT):
                raise LinkLost(f"{self._stream.path} hangs: unplug it, or its hub")
            done.result()
        finally:
            done.cancel()  # no task waits for its result any more

    def _work(self) -> None:
        """The thread: one job after the other."""
        while (one := self._jobs.get()) is not None:
            job, done = one
            error: BaseException | None = None
            try:
                job()
            except BaseException as failed:  # noqa: BLE001 - it is raised in the loop
                error = failed
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_finish, done, error)

    async def settle(self) -> None:
        """Close our descriptor when no write is in progress; where one hangs, refuse to open the port until it ends."""
        try:
            await self.in_thread(partial(os.close, self._port))  # after a message in progress
        except LinkLost:
            links.hangs(self._stream.path, self._thread)
        finally:
            self._jobs.put(None)

    def _send(self, data: bytes) -> None:
        try:
            self._leave()
            termios.tcsetattr(self._port, termios.TCSADRAIN, self._mark)
            self._write(data[:1])
            self._leave()
            termios.tcdrain(self._port)
            termios.tcsetattr(self._port, termios.TCSADRAIN, self._space)
            self._write(data[1:])
        except (OSError, termios.error) as error:
            raise LinkLost(str(error)) from error

    def _leave(self) -> None:
        """Return when the kernel has sent everything. tcdrain alone could hang for ever with the port."""
        until = time.monotonic() + PART_TIMEOUT_S
        while _unsent(self._port):
            if time.monotonic() > until:
                raise LinkLost("the port sends nothing")
            time.sleep(0.0002)

    def _write(self, data: bytes) -> None:
        until = time.monotonic() + PART_TIMEOUT_S
        while data:
            try:
                data = data[os.write(self._port, data) :]
            except BlockingIOError:
                if time.monotonic() > until:
                    raise LinkLost("the port takes no bytes") from None
                time.sleep(0.001)

    async def read(self) -> Chunk:
        """The next bytes with a clear ninth bit. Raises LinkLost."""
        while True:
            chunk = await self._stream.read()
            data = self._unmarked(chunk.data) if self.ninth_bit else chunk.data
            if data:
                if self.tap is not None:
                    self.tap("in", chunk.at, data)
                return Chunk(data, chunk.at, chunk.tick)

    def _unmarked(self, data: bytes) -> bytes:
        """Remove the marks of PARMRK, which may be split between two chunks."""
        data = self._held + data
        out = bytearray()
        at = 0
        while (mark := data.find(MARKED, at)) >= 0:
            out += data[at:mark]
            if data[mark + 1 : mark + 2] == b"\xff":
                out.append(MARKED)
                at = mark + 2
            elif len(data) - mark >= 3:
                self.chirps += 1
                at = mark + 3
            else:
                self._held = data[mark:]
                return bytes(out)
        self._held = b""
        return bytes(out) + data[at:]


def _finish(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _with(attributes: list[Any], which: int, on: int, off: int) -> list[Any]:
    changed = list(attributes)
    changed[which] = (changed[which] & ~off) | on
    return changed
