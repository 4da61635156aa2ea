"""Links to HID devices by their USB ids, through pyusb.

    usb:?vid=05e0&pid=1200                          the only one of its kind
    usb:?vid=05e0&pid=1200&serial=S1&interface=1    one of several, and not its first keyboard

The kernel would type a scanner's codes into the focused window. Its driver is therefore detached while the link is
open, and attached again at the end. One thread of the link finds, claims, reads and releases the device, so no other
thread uses it, and the loop never waits for it. Bytes are stamped in that thread as they arrive. The buffer is bounded:
beyond MAX_WAITING the device is not read, and keeps its reports.

A link never reconnects; its owner opens another one.
"""

import asyncio
import contextlib
import errno
import string
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import usb.core
import usb.util
from msgspec import Struct

from daemon.edge.links.link import CHECK_PORT, STOP_IT, BadUrl, Tap, opened, utc_now
from protocols.link import Chunk, DeviceRefused, LinkLost

__all__ = ["Plugged", "UsbLink", "check", "open_link", "plugged_in"]

MAX_WAITING = 65536
LOOK = 100  # milliseconds after which a read returns: the delay of closing a link
SETTLE = 0.5  # seconds after which a refusal is final
CLOSE_TIMEOUT = 5.0
CONTROL_TIMEOUT = 500

HID, BOOT, KEYBOARD = 3, 1, 1
SET_IDLE, SET_PROTOCOL, TO_INTERFACE = 0x0A, 0x0B, 0x21

REMEDY_LIBUSB = "no libusb on this computer: apt-get install libusb-1.0-0"
REMEDY_ACCESS = (
    "no permission: /etc/udev/rules.d/60-feltd.rules must list its vendor id, and this user must be in the group "
    "dialout; then `udevadm control --reload`, and plug it in again"
)

backend: Any = None
"""The pyusb backend; None is its default. A simulation sets its own."""


class _Target(Struct, frozen=True):
    vid: int
    pid: int
    serial: str | None = None
    interface: int | None = None

    @property
    def words(self) -> str:
        serial = "" if self.serial is None else f" serial={self.serial}"
        return f"usb vid={self.vid:04x} pid={self.pid:04x}{serial}"


class Plugged(NamedTuple):
    """One keyboard-like device: its ids, serial number and name, empty if it has none or they cannot be read."""

    vid: int
    pid: int
    serial: str
    product: str


def _target(url: str) -> _Target:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadUrl(f"{url}: {error}") from error
    query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if parts.scheme != "usb" or parts.netloc or parts.path or parts.fragment or not {"vid", "pid"} <= set(query):
        raise BadUrl(f"{url}: write usb:?vid=…&pid=…, and serial=… where there are two of a kind")
    ids = {key: query.pop(key) for key in ("vid", "pid")}
    for key, text in ids.items():
        if not 1 <= len(text) <= 4 or not set(text) <= set(string.hexdigits):
            raise BadUrl(f"{url}: {key} is four hexadecimal digits, as lsusb prints them")
    serial = query.pop("serial", None)
    if serial == "":
        raise BadUrl(f"{url}: serial is empty; leave it out, or write the serial that `feltd detect` prints")
    interface = query.pop("interface", None)
    if interface is not None and not (interface.isascii() and interface.isdecimal() and len(interface) <= 2):
        raise BadUrl(f"{url}: interface is a number, for example 0")
    if query:
        raise BadUrl(f"{url}: unknown {', '.join(query)}; known: vid, pid, serial, interface")
    number = None if interface is None else int(interface)
    return _Target(int(ids["vid"], 16), int(ids["pid"], 16), serial, number)


def check(url: str) -> None:
    """Raise BadUrl where `url` cannot be a USB link."""
    _target(url)


class UsbLink:
    """The interrupt endpoint of one interface as a stream of bytes, one report after the other."""

    tap: Tap | None = None

    def __init__(self, target: _Target, now: Callable[[], datetime]) -> None:
        """The device is not touched before `open`."""
        self._target = target
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Chunk] = deque()
        self._waiting_bytes = 0
        self._room = threading.Event()
        self._room.set()
        self._stop = threading.Event()
        self._lost: str | None = None
        self._reader: asyncio.Future[None] | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._live, name=target.words, daemon=True)
        self.received_bytes = 0
        self.sent_bytes = 0

    async def open(self) -> None:
        """Find and claim the device. Raises LinkLost if it is missing, hangs or fails, DeviceRefused if it is denied,
        in use or without a fitting interface, if several fit, and without libusb.
        """
        await opened(self._thread, self._opened)

    # ---- the loop's side

    async def read(self) -> Chunk:
        """The next bytes. Raises LinkLost."""
        while True:
            with self._lock:
                if self._waiting:
                    chunk = self._waiting.popleft()
                    self._waiting_bytes -= len(chunk.data)
                    if self._waiting_bytes <= MAX_WAITING // 2:
                        self._room.set()
                    self.received_bytes += len(chunk.data)
                    if self.tap is not None:
                        self.tap("in", chunk.at, chunk.data)
                    return chunk
            if self._lost is not None:
                raise LinkLost(self._lost)
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    async def write(self, data: bytes) -> None:  # noqa: ARG002 - as every link
        """Scanners take no commands. Raises DeviceRefused, LinkLost."""
        if self._lost is not None:
            raise LinkLost(self._lost)
        raise DeviceRefused(f"{self._target.words} only types: nothing can be sent to it")

    def stamp(self) -> Chunk:
        """An empty chunk with the present time."""
        return Chunk(b"", self._now(), self._loop.time())

    async def close(self) -> None:
        """Release the device to the kernel; return when it can be opened again, or after CLOSE_TIMEOUT."""
        self._stop.set()
        self._room.set()
        if self._thread.ident is not None:  # by the real clock, which may differ from the loop's
            await self._loop.run_in_executor(None, self._thread.join, CLOSE_TIMEOUT)
        self._ended("closed")

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _answer(self, trouble: BaseException | None) -> None:
        if self._opened.done():
            return
        if trouble is None:
            self._opened.set_result(None)
        else:
            self._opened.set_exception(trouble)

    def _ended(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
        self._wake()

    # ---- the thread's side

    def _call_soon(self, what: Callable[..., None], *words: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(what, *words)

    def _live(self) -> None:
        """The thread: from claiming the device to its release."""
        try:
            with contextlib.ExitStack() as held:
                try:
                    device, endpoint = held.enter_context(_claimed(self._target))
                except DeviceRefused:  # udev may be changing its group just now
                    if self._stop.wait(SETTLE):
                        raise
                    device, endpoint = held.enter_context(_claimed(self._target))
                self._call_soon(self._answer, None)
                self._listen(device, endpoint)
        except (LinkLost, DeviceRefused) as trouble:
            self._call_soon(self._answer, trouble)
            self._call_soon(self._ended, str(trouble))
        except BaseException as bug:  # noqa: BLE001 - it is raised where the link is opened or read
            self._call_soon(self._answer, bug)
            self._call_soon(self._ended, f"{type(bug).__name__}: {bug}")

    def _listen(self, device: Any, endpoint: Any) -> None:
        while not self._stop.is_set():
            if not self._room.wait(LOOK / 1000):
                continue
            try:
                data = bytes(endpoint.read(endpoint.wMaxPacketSize, LOOK))
            except usb.core.USBError as error:
                if isinstance(error, usb.core.USBTimeoutError) or error.errno in {errno.ETIMEDOUT, errno.EINTR}:
                    continue
                if error.errno == errno.EPIPE:  # the next session can use it again
                    with contextlib.suppress(usb.core.USBError, NotImplementedError):
                        device.clear_halt(endpoint)
                raise _trouble(error, self._target.words) from error
            if data:
                self._keep(Chunk(data, self._now(), self._loop.time()))

    def _keep(self, chunk: Chunk) -> None:
        with self._lock:
            self._waiting.append(chunk)
            self._waiting_bytes += len(chunk.data)
            if self._waiting_bytes > MAX_WAITING:
                self._room.clear()
        self._call_soon(self._wake)


@contextlib.asynccontextmanager
async def open_link(url: str, now: Callable[[], datetime] = utc_now) -> AsyncIterator[UsbLink]:
    """The link under `url`, given back at the end. Raises BadUrl, and as `UsbLink.open`."""
    link = UsbLink(_target(url), now)
    try:
        await link.open()
        yield link
    finally:
        await link.close()


# ---- pyusb


def _trouble(error: usb.core.USBError, words: str) -> LinkLost | DeviceRefused:
    """An error of the bus as LinkLost or DeviceRefused."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return DeviceRefused(f"{words}: {REMEDY_ACCESS}")
        case errno.EBUSY:
            return DeviceRefused(f"{words} is in use by another program; {STOP_IT}")
        case errno.ENODEV | errno.ENOENT | errno.ENXIO | errno.ESHUTDOWN:
            return LinkLost(f"{words}: unplugged or switched off")
        case _:
            return LinkLost(f"{words}: {error.strerror or error}")


@contextlib.contextmanager
def _claimed(target: _Target) -> Iterator[tuple[Any, Any]]:
    """The device and its endpoint. At the end a detached kernel driver is attached again, unless the device is gone."""
    words = target.words
    device = _find(target)
    interface = 0
    taken = False
    try:
        try:
            interface, endpoint = _endpoint(device, target)
            if _has_kernel_driver(device, interface):
                device.detach_kernel_driver(interface)
                taken = True
            usb.util.claim_interface(device, interface)
            _speak_boot(device, interface)
        except usb.core.USBError as error:
            raise _trouble(error, words) from error
        yield device, endpoint
    finally:
        with contextlib.suppress(usb.core.USBError):
            usb.util.release_interface(device, interface)
        if taken:
            with contextlib.suppress(usb.core.USBError, NotImplementedError):
                device.attach_kernel_driver(interface)
        with contextlib.suppress(usb.core.USBError):
            usb.util.dispose_resources(device)


def _find(target: _Target) -> Any:
    words = target.words
    try:
        found = list(usb.core.find(find_all=True, backend=backend, idVendor=target.vid, idProduct=target.pid) or ())
    except usb.core.NoBackendError as error:
        raise DeviceRefused(REMEDY_LIBUSB) from error
    except usb.core.USBError as error:
        raise _trouble(error, words) from error
    if target.serial is not None and found:
        serials = [_text(device, "serial_number") for device in found]
        fitting = [device for device, serial in zip(found, serials, strict=True) if serial == target.serial]
        if not fitting and None in serials:
            raise DeviceRefused(f"{words}: its serial number cannot be read: {REMEDY_ACCESS}")
        found = fitting
    if not found:
        raise LinkLost(f"nothing with {words} is plugged in; {CHECK_PORT}")
    if len(found) > 1:
        names = ", ".join(_text(device, "serial_number") or f"one without at bus {device.bus}" for device in found)
        raise DeviceRefused(f"{words} fits {len(found)} devices, with the serial numbers {names}; add serial=…")
    return found[0]


def _text(device: Any, which: str) -> str | None:
    """A string of the device: empty if it has none, None if it is unreadable."""
    try:
        return str(getattr(device, which) or "")
    except (usb.core.USBError, ValueError, NotImplementedError, UnicodeDecodeError, IndexError):
        return None
    finally:
        with contextlib.suppress(usb.core.USBError):
            usb.util.dispose_resources(device)


def _types(interface: Any) -> bool:
    return (interface.bInterfaceClass, interface.bInterfaceSubClass, interface.bInterfaceProtocol) == (
        HID,
        BOOT,
        KEYBOARD,
    )


def _endpoint(device: Any, target: _Target) -> tuple[int, Any]:
    """The number of the interface and its interrupt endpoint."""
    interfaces = [one for one in device.get_active_configuration() if one.bAlternateSetting == 0]
    if target.interface is None:
        fitting = [one for one in interfaces if _types(one)]
        wanted = "interface that types as a keyboard; set the scanner to HID keyboard mode"
    else:
        fitting = [one for one in interfaces if one.bInterfaceNumber == target.interface]
        numbers = ", ".join(str(one.bInterfaceNumber) for one in interfaces)
        wanted = f"interface {target.interface}; it has {numbers}"
    if not fitting:
        raise DeviceRefused(f"{target.words} has no {wanted}")
    for endpoint in fitting[0]:
        into = usb.util.endpoint_direction(endpoint.bEndpointAddress) == usb.util.ENDPOINT_IN
        if into and usb.util.endpoint_type(endpoint.bmAttributes) == usb.util.ENDPOINT_TYPE_INTR:
            return int(fitting[0].bInterfaceNumber), endpoint
    raise DeviceRefused(f"{target.words}: interface {fitting[0].bInterfaceNumber} has no interrupt endpoint to read")


def _has_kernel_driver(device: Any, interface: int) -> bool:
    try:
        return bool(device.is_kernel_driver_active(interface))
    except NotImplementedError:
        return False


def _speak_boot(device: Any, interface: int) -> None:
    """Set the boot protocol, and reports only on changes. A device without another protocol refuses, which is fine."""
    for request in (SET_PROTOCOL, SET_IDLE):
        try:
            device.ctrl_transfer(TO_INTERFACE, request, 0, interface, None, CONTROL_TIMEOUT)
        except usb.core.USBError as error:
            if error.errno == errno.ENODEV:
                raise


def plugged_in() -> list[Plugged]:
    """The keyboard-like devices, keyboards of people included. Empty without USB or libusb."""
    try:
        found = list(usb.core.find(find_all=True, backend=backend) or ())
    except (usb.core.NoBackendError, usb.core.USBError, NotImplementedError):
        return []
    seen = []
    for device in found:
        with contextlib.suppress(usb.core.USBError, NotImplementedError):
            if any(_types(interface) for configuration in device for interface in configuration):
                serial, product = _text(device, "serial_number"), _text(device, "product")
                seen.append(Plugged(device.idVendor, device.idProduct, serial or "", product or ""))
    return sorted(seen)
