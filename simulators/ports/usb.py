"""A simulated USB bus: a backend for pyusb, and its ports with the interface of simulators/ports/port.py.

With a `Bus` as its backend pyusb finds devices that come and go, keyboards held by the kernel's driver, interfaces
claimed by another program and missing permissions, with the errors of libusb on Linux. The device's side runs in an
event loop, the host reads from any thread; one lock protects both.
"""

import errno
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import NoReturn

import usb.backend
import usb.core

__all__ = ["Bus", "Usb"]

PACKET = 8
MAX_UNSENT = 65536
IN, ENGLISH = 0x81, 0x0409
KEYBOARD, MOUSE = (3, 1, 1), (3, 1, 2)

_ERRORS = {
    errno.EACCES: (-3, "Access denied (insufficient permissions)"),
    errno.ENODEV: (-4, "No such device (it may have been disconnected)"),
    errno.ENOENT: (-5, "Entity not found"),
    errno.EBUSY: (-6, "Resource busy"),
    errno.EPIPE: (-9, "Pipe error"),
    errno.EIO: (-1, "Input/Output Error"),
}


def _fail(code: int) -> NoReturn:
    number, words = _ERRORS[code]
    raise usb.core.USBError(words, number, code)


class Usb:
    """One device's plug: interfaces, each with one interrupt endpoint; the first of them sends the device's reports.

    `denied`: opening is not permitted. `busy`: another program has claimed it. `kernel_driver`: the kernel's driver
    holds it, as after every plugging in.
    """

    def __init__(
        self,
        bus: "Bus",
        vid: int = 0x05E0,
        pid: int = 0x1200,
        serial: str = "",
        *,
        product: str = "Simulated scanner",
        kinds: tuple[tuple[int, int, int], ...] = (KEYBOARD,),
    ) -> None:
        """Nothing appears before `plug`. `kinds`: class, subclass and protocol of each interface."""
        self.bus = bus
        self.vid, self.pid, self.serial, self.product, self.kinds = vid, pid, serial, product, kinds
        self.received: Callable[[bytes], None] = lambda _: None
        self.sent_bytes = 0
        self.received_bytes = 0
        self.denied = False
        self.busy = False
        self.kernel_driver = False
        self.fault: int | None = None
        self.requests: list[int] = []
        self.address = 0
        self.opened = 0
        self.claims: dict[int, _Handle] = {}
        self.unsent: deque[bytes] = deque()

    @property
    def url(self) -> str:
        """The URL for a host."""
        serial = f"&serial={self.serial}" if self.serial else ""
        return f"usb:?vid={self.vid:04x}&pid={self.pid:04x}{serial}"

    def plug(self) -> None:
        """Make it appear; the kernel's driver takes it."""
        with self.bus.lock:
            if self not in self.bus.ports:
                self.bus.addresses += 1
                self.address = self.bus.addresses
                self.kernel_driver = True
                self.fault = None
                self.bus.ports.append(self)

    def unplug(self) -> None:
        """Unplug it: a pending read fails at once."""
        with self.bus.lock:
            if self in self.bus.ports:
                self.bus.ports.remove(self)
            self.address = 0
            self.kernel_driver = False
            self.claims.clear()
            self.unsent.clear()
            self.bus.lock.notify_all()

    def send(self, data: bytes) -> None:
        """Send reports to the claimer of the first interface, else to the kernel, or drop them."""
        with self.bus.lock:
            if 0 not in self.claims:
                return
            for start in range(0, len(data), PACKET):
                if len(self.unsent) < MAX_UNSENT // PACKET:
                    packet = data[start : start + PACKET]
                    self.unsent.append(packet)
                    self.sent_bytes += len(packet)
            self.bus.lock.notify_all()

    def fail(self, code: int) -> None:
        """Every read ends with this errno, until it is plugged in again or the halt is cleared."""
        with self.bus.lock:
            self.fault = code
            self.bus.lock.notify_all()


class _Handle:
    """One opening of a device; it ends with the unplugging, because an address is given once."""

    def __init__(self, port: Usb) -> None:
        self.port = port
        self.address = port.address


class Bus(usb.backend.IBackend):  # type: ignore[misc]
    """All ports of one computer."""

    def __init__(self) -> None:
        """Nothing is plugged in."""
        self.lock = threading.Condition()
        self.ports: list[Usb] = []
        self.addresses = 0

    # ---- calls of pyusb

    def enumerate_devices(self) -> Iterator[_Handle]:
        with self.lock:
            return iter([_Handle(port) for port in self.ports])

    def get_parent(self, dev: _Handle) -> None:  # noqa: ARG002 - as pyusb calls it
        return None

    def get_device_descriptor(self, dev: _Handle) -> SimpleNamespace:
        port = dev.port
        return SimpleNamespace(
            bLength=18,
            bDescriptorType=1,
            bcdUSB=0x0200,
            bDeviceClass=0,
            bDeviceSubClass=0,
            bDeviceProtocol=0,
            bMaxPacketSize0=64,
            idVendor=port.vid,
            idProduct=port.pid,
            bcdDevice=0x0100,
            iManufacturer=0,
            iProduct=1,
            iSerialNumber=2 if port.serial else 0,
            bNumConfigurations=1,
            address=dev.address,
            bus=1,
            port_number=dev.address,
            port_numbers=(dev.address,),
            speed=2,
        )

    def get_configuration_descriptor(self, dev: _Handle, config: int) -> SimpleNamespace:
        if config:
            raise IndexError(config)
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=2,
            wTotalLength=9,
            bNumInterfaces=len(dev.port.kinds),
            bConfigurationValue=1,
            iConfiguration=0,
            bmAttributes=0x80,
            bMaxPower=50,
            extra_descriptors=[],
        )

    def get_interface_descriptor(self, dev: _Handle, intf: int, alt: int, config: int) -> SimpleNamespace:
        if config or alt or intf >= len(dev.port.kinds):
            raise IndexError(intf)
        kind, subclass, protocol = dev.port.kinds[intf]
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=4,
            bInterfaceNumber=intf,
            bAlternateSetting=0,
            bNumEndpoints=1,
            bInterfaceClass=kind,
            bInterfaceSubClass=subclass,
            bInterfaceProtocol=protocol,
            iInterface=0,
            extra_descriptors=[],
        )

    def get_endpoint_descriptor(self, dev: _Handle, ep: int, intf: int, alt: int, config: int) -> SimpleNamespace:  # noqa: ARG002
        if ep:
            raise IndexError(ep)
        return SimpleNamespace(
            bLength=7,
            bDescriptorType=5,
            bEndpointAddress=IN + intf,
            bmAttributes=3,
            wMaxPacketSize=PACKET,
            bInterval=8,
            bRefresh=0,
            bSynchAddress=0,
            extra_descriptors=[],
        )

    def open_device(self, dev: _Handle) -> _Handle:
        with self.lock:
            self._there(dev)
            if dev.port.denied:
                _fail(errno.EACCES)
            dev.port.opened += 1
            return _Handle(dev.port)

    def close_device(self, dev_handle: _Handle) -> None:
        with self.lock:
            port = dev_handle.port
            port.opened -= 1
            for interface in [number for number, owner in port.claims.items() if owner is dev_handle]:
                del port.claims[interface]

    def get_configuration(self, dev_handle: _Handle) -> int:
        with self.lock:
            self._there(dev_handle)
            return 1

    def is_kernel_driver_active(self, dev_handle: _Handle, intf: int) -> bool:  # noqa: ARG002 - one driver for all
        with self.lock:
            self._there(dev_handle)
            return dev_handle.port.kernel_driver

    def detach_kernel_driver(self, dev_handle: _Handle, intf: int) -> None:  # noqa: ARG002
        with self.lock:
            self._there(dev_handle)
            if not dev_handle.port.kernel_driver:
                _fail(errno.ENOENT)
            dev_handle.port.kernel_driver = False

    def attach_kernel_driver(self, dev_handle: _Handle, intf: int) -> None:
        with self.lock:
            self._there(dev_handle)
            if intf in dev_handle.port.claims:
                _fail(errno.EBUSY)
            dev_handle.port.kernel_driver = True

    def claim_interface(self, dev_handle: _Handle, intf: int) -> None:
        with self.lock:
            port = self._there(dev_handle)
            if port.busy or port.kernel_driver or port.claims.get(intf, dev_handle) is not dev_handle:
                _fail(errno.EBUSY)
            port.claims[intf] = dev_handle

    def release_interface(self, dev_handle: _Handle, intf: int) -> None:
        with self.lock:
            port = self._there(dev_handle)
            if port.claims.get(intf) is not dev_handle:
                _fail(errno.ENOENT)
            del port.claims[intf]
            port.unsent.clear()

    def clear_halt(self, dev_handle: _Handle, ep: int) -> None:  # noqa: ARG002
        with self.lock:
            if self._there(dev_handle).fault == errno.EPIPE:
                dev_handle.port.fault = None

    def intr_read(self, dev_handle: _Handle, ep: int, intf: int, buff: "array[int]", timeout: int) -> int:  # noqa: ARG002
        """The next report, into `buff`; waits `timeout` real milliseconds for it."""
        until = time.monotonic() + timeout / 1000
        with self.lock:
            while True:
                port = self._there(dev_handle)
                if port.fault is not None:
                    _fail(port.fault)
                if port.claims.get(intf) is not dev_handle:
                    _fail(errno.EBUSY)
                if port.unsent and not intf:
                    packet = port.unsent.popleft()
                    buff[: len(packet)] = array("B", packet)
                    return len(packet)
                rest = until - time.monotonic()
                if rest <= 0 or not self.lock.wait(rest):
                    raise usb.core.USBTimeoutError("Operation timed out", -7, errno.ETIMEDOUT)

    def ctrl_transfer(
        self,
        dev_handle: _Handle,
        bmRequestType: int,  # noqa: N803 - pyusb calls it by its name in the standard
        bRequest: int,  # noqa: N803
        wValue: int,  # noqa: N803
        wIndex: int,  # noqa: ARG002, N803
        data: "array[int]",
        timeout: int,  # noqa: ARG002
    ) -> int:
        """Answer string descriptors, and record class requests."""
        with self.lock:
            port = self._there(dev_handle)
            if bmRequestType == 0x80 and bRequest == 6 and wValue >> 8 == 3:
                texts = {1: port.product, 2: port.serial}
                number = wValue & 0xFF
                body = ENGLISH.to_bytes(2, "little") if not number else texts[number].encode("utf-16-le")
                answer = bytes((len(body) + 2, 3)) + body
                data[: len(answer)] = array("B", answer)
                return len(answer)
            if bmRequestType == 0x21:
                port.requests.append(bRequest)
                return 0
            _fail(errno.EPIPE)

    def _there(self, handle: _Handle) -> Usb:
        if handle.port not in self.ports or handle.port.address != handle.address:
            _fail(errno.ENODEV)
        return handle.port
