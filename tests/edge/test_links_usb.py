"""USB links through real pyusb on a simulated bus: every way to get a device, to be denied one, and to lose it."""

import asyncio
import contextlib
import errno
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
import usb.backend.libusb0
import usb.backend.libusb1
import usb.backend.openusb
from helpers import PATIENCE, Notebook, at_length, virtual_time
from hypothesis import given, settings, strategies as st

from daemon.edge.links import link as links, usb as links_usb
from daemon.edge.links.link import BadUrl, HostLink, check_url, open_link as open_any
from daemon.edge.links.usb import MAX_WAITING, Plugged, UsbLink, check, open_link, plugged_in
from daemon.virtual_clock import JumpingLoop
from drivers.driver import Chunk, DeviceRefused, LinkLost
from drivers.hid_shoe import HidShoe, HidShoeOptions
from protocols.contract.events import CardDrawn
from simulators.clock import Pace
from simulators.devices.hid_shoe import HidShoe as Shoe
from simulators.ports.port import Port, Socket
from simulators.ports.usb import MOUSE, Bus, Usb

KEY = bytes.fromhex("0200160000000000")
UP = bytes(8)


@pytest.fixture(autouse=True)
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    """A computer with nothing plugged in; in the end no thread of a link is left."""
    bus = Bus()
    monkeypatch.setattr(links_usb, "backend", bus)
    monkeypatch.setattr(links_usb, "SETTLE", 0.02)
    yield bus
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("usb")] == []
    assert all(port.opened == 0 for port in bus.ports)


@pytest.fixture
def port(bus: Bus) -> Usb:
    port = Usb(bus, serial="S1")
    port.plug()
    return port


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - it looks at a thread's doings
            await asyncio.sleep(0.002)


async def soon(what: Awaitable[Chunk]) -> Chunk:
    async with asyncio.timeout(PATIENCE):
        return await what


# ---- URLs


@pytest.mark.parametrize(
    "url",
    [
        "usb:?vid=05e0&pid=1200",
        "usb:?vid=5E0&pid=1&serial=A%201&interface=2",
        "usb:?pid=1200&vid=0000",
        "usb:?vid=f&pid=f",
    ],
)
def test_a_url_that_can_be_meant(url: str) -> None:
    check(url)
    check_url(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("usb:", "write usb:?vid=…&pid=…"),
        ("usb:?vid=05e0", "write usb:?vid=…&pid=…"),
        ("usb:?pid=05e0&serial=1", "write usb:?vid=…&pid=…"),
        ("usb://05e0:1200", "write usb:?vid=…&pid=…"),
        ("usb:/dev/hidraw0?vid=1&pid=2", "write usb:?vid=…&pid=…"),
        ("usb:?vid=1&pid=2#3", "write usb:?vid=…&pid=…"),
        ("serial:?vid=1&pid=2", "write usb:?vid=…&pid=…"),
        ("usb:?vid=zz&pid=1", "vid is four hexadecimal digits"),
        ("usb:?vid=&pid=1", "vid is four hexadecimal digits"),
        ("usb:?vid=1&pid=12345", "pid is four hexadecimal digits"),
        ("usb:?vid=1&pid=-1", "pid is four hexadecimal digits"),
        ("usb:?vid=1&pid=0x1", "pid is four hexadecimal digits"),
        ("usb:?vid=1&pid=2&serial=", "serial is empty"),
        ("usb:?vid=1&pid=2&interface=first", "interface is a number"),
        ("usb:?vid=1&pid=2&interface=", "interface is a number"),
        ("usb:?vid=1&pid=2&baud=9600", "unknown baud; known: vid, pid, serial, interface"),
        ("usb://[", "Invalid IPv6 URL"),
    ],
)
def test_a_url_that_cannot_be_meant_says_what_is_expected(url: str, said: str) -> None:
    with pytest.raises(BadUrl) as caught:
        check(url)
    assert str(caught.value).startswith(f"{url}: ")
    assert said in str(caught.value)


PARTS = st.sampled_from(
    ["usb:", "//", "?", "&", "=", "vid", "pid", "05e0", "serial", "interface", "²", "#", "[", "%", "0"]
)


@given(st.lists(st.one_of(PARTS, st.text(max_size=3)), max_size=12).map("".join))
@settings(max_examples=at_length(40, 750))
def test_any_text_is_a_url_or_is_refused(url: str) -> None:
    with contextlib.suppress(BadUrl):
        check(url)


# ---- a link's life


async def test_reports_come_as_they_are_sent(port: Usb) -> None:
    assert [port.kernel_driver] == [True]
    async with open_link(port.url) as link:
        held: HostLink = link
        assert [port.kernel_driver] == [False]
        assert [*port.claims] == [0]
        assert port.requests == [0x0B, 0x0A]  # the boot protocol, and reports only where something changes
        before = link.stamp()
        port.send(KEY + UP)
        chunks = [await soon(held.read()), await soon(held.read())]
        assert [chunk.data for chunk in chunks] == [KEY, UP]
        assert before.tick <= chunks[0].tick <= chunks[1].tick <= link.stamp().tick
        assert before.at <= chunks[0].at
        assert chunks[0].at.tzinfo is UTC
        assert (link.received_bytes, link.sent_bytes, port.sent_bytes) == (16, 0, 16)
        await asyncio.sleep(3 * links_usb.LOOK / 1000)  # reads that end by themselves
        port.send(KEY)
        assert (await soon(link.read())).data == KEY
    assert port.kernel_driver
    assert (port.claims, port.opened) == ({}, 0)
    with pytest.raises(LinkLost, match="closed"):
        await link.read()


async def test_the_dispatch_finds_it(port: Usb) -> None:
    async with open_any(port.url) as link:
        port.send(KEY)
        assert (await soon(link.read())).data == KEY


async def test_the_clock_that_is_handed_in_stamps(port: Usb) -> None:
    then = datetime(2026, 11, 20, tzinfo=UTC)
    async with open_link(port.url, lambda: then) as link:
        port.send(KEY)
        assert (await soon(link.read())).at == link.stamp().at == then


async def test_a_reader_that_is_cancelled_loses_nothing(port: Usb) -> None:
    async with open_link(port.url) as link:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await link.read()
        port.send(KEY)
        assert (await soon(link.read())).data == KEY


async def test_unplugged_while_it_is_read(port: Usb) -> None:
    async with open_link(port.url) as link:
        port.send(KEY)
        await until(lambda: not port.unsent)
        reading = asyncio.create_task(soon(link.read()))
        assert (await reading).data == KEY
        reading = asyncio.create_task(soon(link.read()))
        await asyncio.sleep(0.02)
        port.unplug()
        with pytest.raises(LinkLost, match="usb vid=05e0 pid=1200 serial=S1: unplugged"):
            await reading
        with pytest.raises(LinkLost):
            await link.read()
        with pytest.raises(LinkLost):
            await link.write(b"x")
    with pytest.raises(LinkLost, match="nothing with usb vid=05e0 pid=1200 serial=S1 is plugged in"):
        async with open_link(port.url):
            pass
    port.plug()
    async with open_link(port.url) as link:
        port.send(UP)
        assert (await soon(link.read())).data == UP
    assert port.kernel_driver


async def test_bytes_before_the_plug_was_pulled_are_still_read(port: Usb) -> None:
    async with open_link(port.url) as link:
        port.send(KEY + UP)
        await until(lambda: not port.unsent)
        port.unplug()
        await until(lambda: link._lost)
        assert [(await link.read()).data, (await link.read()).data] == [KEY, UP]
        with pytest.raises(LinkLost):
            await link.read()


async def test_pulled_and_put_back_between_two_reads_is_another_device(port: Usb) -> None:
    async with open_link(port.url) as link:
        port.unplug()
        port.plug()
        with pytest.raises(LinkLost, match="unplugged"):
            await soon(link.read())
    assert port.kernel_driver


@pytest.mark.parametrize(
    ("code", "said"), [(errno.EIO, "Input/Output"), (errno.EPIPE, "Pipe error"), (errno.ENODEV, "unplugged")]
)
async def test_a_bus_that_fails_is_a_lost_link(port: Usb, code: int, said: str) -> None:
    async with open_link(port.url) as link:
        port.fail(code)
        with pytest.raises(LinkLost, match=said):
            await soon(link.read())
    assert port.kernel_driver
    assert (port.fault is None) == (code == errno.EPIPE)  # a halt is cleared for the next session


async def test_a_device_that_hangs_is_a_lost_link_and_no_try_costs_a_thread(
    port: Usb, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = threading.Event()
    claimed = links_usb._claimed

    def slow(target: Any) -> Any:
        hold.wait(PATIENCE)
        return claimed(target)

    monkeypatch.setattr(links_usb, "_claimed", slow)
    with monkeypatch.context() as patch:
        patch.setattr(links_usb, "CLOSE_TIMEOUT", 0.05)
        patch.setattr(links, "OPEN_TIMEOUT", 0.1)
        for said in ("does not open: ", "the last try still hangs", "the last try still hangs"):
            with pytest.raises(LinkLost, match=said):
                async with open_link(port.url):
                    pass
            assert len([one for one in threading.enumerate() if one.name.startswith("usb")]) == 1
    hold.set()
    await until(lambda: not [one for one in threading.enumerate() if one.name.startswith("usb")])
    async with open_link(port.url):
        pass


async def test_nothing_can_be_sent(port: Usb) -> None:
    async with open_link(port.url) as link:
        with pytest.raises(DeviceRefused, match="only types"):
            await link.write(b"x")


async def test_a_driver_that_does_not_read_holds_the_device_back_and_loses_nothing(port: Usb) -> None:
    reports = [n.to_bytes(2, "little") + bytes(6) for n in range(MAX_WAITING // 8 + 500)]
    async with open_link(port.url) as link:
        for n in range(0, len(reports), 1000):
            await until(lambda: len(port.unsent) < 4000)
            port.send(b"".join(reports[n : n + 1000]))
        await until(lambda: link._waiting_bytes > MAX_WAITING)
        await asyncio.sleep(0.05)
        assert link._waiting_bytes <= MAX_WAITING + 8
        assert len(port.unsent) > 400
        assert [(await soon(link.read())).data for _ in reports] == reports


# ---- who may not have it


async def refused(url: str) -> str:
    with pytest.raises(DeviceRefused) as caught:
        async with open_link(url):
            pass
    return str(caught.value)


async def test_two_of_one_kind_are_told_apart_by_their_serial_numbers(bus: Bus, port: Usb) -> None:
    other = Usb(bus, serial="S2")
    other.plug()
    assert "S1, S2; add serial=" in await refused("usb:?vid=05e0&pid=1200")
    async with open_link(other.url) as link:
        assert (port.kernel_driver, other.kernel_driver) == (True, False)
        other.send(KEY)
        assert (await soon(link.read())).data == KEY
        async with open_link(port.url):
            assert not port.kernel_driver
    nameless = Usb(bus)
    nameless.plug()
    assert "S1, S2, one without at bus 1" in await refused("usb:?vid=05e0&pid=1200")


async def test_permission_is_missing(port: Usb) -> None:
    port.denied = True
    assert "60-feltd.rules" in await refused("usb:?vid=05e0&pid=1200")
    said = await refused(port.url)
    assert "serial number cannot be read" in said
    assert "60-feltd.rules" in said
    assert port.kernel_driver


async def test_a_device_that_was_plugged_in_a_moment_ago_is_asked_again(
    port: Usb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node is root's until udev has seen it: that is no reason to wait half a minute."""
    monkeypatch.setattr(links_usb, "SETTLE", PATIENCE)
    port.denied = True
    opening = asyncio.create_task(refused(port.url))
    await asyncio.sleep(0.05)
    assert not opening.done()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    monkeypatch.setattr(links_usb, "SETTLE", 0.02)
    claimed, tries = links_usb._claimed, 0

    def watched(target: Any) -> Any:
        nonlocal tries
        tries += 1
        port.denied = tries == 1  # udev sees it before the second
        return claimed(target)

    monkeypatch.setattr(links_usb, "_claimed", watched)
    async with open_link(port.url):
        assert port.claims


async def test_another_program_has_it(port: Usb) -> None:
    port.busy = True
    assert "in use by another program" in await refused(port.url)
    assert port.kernel_driver  # given back, though it never was ours
    port.busy = False
    async with open_link(port.url):
        assert "in use by another program" in await refused(port.url)


async def test_an_interface_is_chosen(bus: Bus) -> None:
    port = Usb(bus, kinds=(MOUSE, (255, 0, 0)))
    port.plug()
    assert "set the scanner to HID keyboard mode" in await refused(port.url)
    assert "no interface 3; it has 0, 1" in await refused(f"{port.url}&interface=3")
    async with open_link(f"{port.url}&interface=1"):
        assert [*port.claims] == [1]
    assert port.kernel_driver


async def test_no_libusb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_usb, "backend", None)
    for module in (usb.backend.libusb0, usb.backend.libusb1, usb.backend.openusb):
        monkeypatch.setattr(module, "get_backend", lambda: None)
    assert "apt-get install libusb-1.0-0" in await refused("usb:?vid=05e0&pid=1200")
    assert plugged_in() == []


async def test_a_bug_of_ours_is_not_hidden_in_a_thread(port: Usb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_usb, "_endpoint", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        async with open_link(port.url):
            pass


@pytest.fixture
async def slow_bus(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[threading.Event]:
    """A bus that answers when it is let."""
    let = threading.Event()
    attach = bus.get_configuration
    monkeypatch.setattr(bus, "get_configuration", lambda handle: (let.wait(PATIENCE), attach(handle))[1])
    yield let
    let.set()


async def test_cancelled_wait_for_a_slow_bus_leaves_nothing_behind(port: Usb, slow_bus: threading.Event) -> None:
    async def open_it() -> None:
        async with open_link(port.url):
            pytest.fail("it was not awaited any more")

    opening = asyncio.create_task(open_it())
    await asyncio.sleep(0.05)  # the loop is not held up meanwhile
    opening.cancel()
    asyncio.get_running_loop().call_later(0.05, slow_bus.set)
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert port.kernel_driver
    assert port.claims == {}


# ---- what is plugged in


def test_connected_ports_are_listed(bus: Bus, port: Usb) -> None:
    Usb(bus, 0x0C2E, 0x0B61, product="Barcode Reader").plug()
    Usb(bus, 0x046D, 0xC077, product="Mouse", kinds=(MOUSE,)).plug()
    both = Usb(bus, 0x1EAB, 0x22, "N7", product="Scanner", kinds=(MOUSE, (3, 1, 1)))
    both.plug()
    scanner = Plugged(0x05E0, 0x1200, "S1", "Simulated scanner")
    reader, newland = Plugged(0x0C2E, 0x0B61, "", "Barcode Reader"), Plugged(0x1EAB, 0x22, "N7", "Scanner")
    assert plugged_in() == [scanner, reader, newland]
    both.denied = True
    assert plugged_in() == [scanner, reader, Plugged(0x1EAB, 0x22, "", "")]
    assert port.kernel_driver


# ---- a whole shoe, plugged in


async def deal(port: Usb, cards: int) -> tuple[Shoe, UsbLink, Notebook]:
    """A dealer, the shoe, the bus, pyusb, the link, the driver."""
    fits: Port = port
    shoe, notes = Shoe(Random(1), 8), Notebook()
    socket = Socket(shoe, fits, Pace())
    pace = Pace()
    living = asyncio.create_task(socket.live())
    await asyncio.sleep(0)
    async with open_link(port.url) as link:
        driving = asyncio.create_task(HidShoe(HidShoeOptions()).run(link, notes))
        for _ in range(cards):
            shoe.draw(pace.now())
            socket.stir()
            await pace.sleep(0.6)
        await until(lambda: len(notes.events) > len(shoe.drawn))  # the first is that it is online
        driving.cancel()
    living.cancel()
    await asyncio.gather(driving, living, return_exceptions=True)
    return shoe, link, notes


def test_a_shoe_plugged_in(bus: Bus) -> None:
    """As in the demo: while bytes are under way time runs as on the wall, else it jumps.

    On the wall's clock alone a busy computer holds a key down for seconds, and the driver says that it is stuck.
    """
    port = Usb(bus)
    links: list[UsbLink] = []
    played = asyncio.Event()

    class Watched(UsbLink):
        async def open(self) -> None:
            links.append(self)
            await super().open()

    def busy() -> bool:
        """At the end, too: Python 3.13 gives the executor's threads 300 s to finish, which must not pass in a jump."""
        on_its_way = any(not link._opened.done() or link.received_bytes != port.sent_bytes for link in links)
        return on_its_way or played.is_set()

    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=lambda: JumpingLoop(busy=busy)) as runner:
        patch.setattr(links_usb, "UsbLink", Watched)
        shoe, link, notes = runner.run(deal(port, 200))
        assert runner.get_loop().time() > 100
        played.set()
    assert notes.events[1:] == [CardDrawn(card) for card in shoe.drawn]
    assert link.received_bytes == port.sent_bytes
    assert port.claims == {}


@virtual_time
async def test_a_port_that_nobody_opened_loses_what_it_sends() -> None:
    port = Usb(Bus())
    port.send(KEY)
    port.plug()
    port.plug()
    port.send(KEY)
    port.unplug()
    port.unplug()
    assert (port.sent_bytes, len(port.unsent)) == (0, 0)
