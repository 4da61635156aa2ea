"""Links over real ptys and TCP: bytes both ways, every way to lose one, and never more in memory than allowed."""

import asyncio
import contextlib
import fcntl
import gc
import os
import socket
import sys
import threading
import time
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import serial
from helpers import PATIENCE, at_length, virtual_time
from hypothesis import given, settings, strategies as st

from daemon.edge.links import link as links
from daemon.edge.links.link import MAX_WAITING, BadUrl, StreamLink, check_url, open_stream as open_link
from drivers.driver import DeviceRefused, LinkLost
from simulators.lab.broker import free_port
from simulators.ports.port import Pty, Tcp

# ---- URLs


@pytest.mark.parametrize(
    "url",
    [
        "serial:///dev/serial/by-id/usb-FTDI_A50285BI-if00-port0",
        "serial:///dev/ttyS0?baud=19200&parity=E",
        "serial:/dev/ttyS0",
        "serial:?vid=0403&pid=6001&serial=A50285BI",
        "serial:?serial=A5&baud=115200",
        "tcp://192.168.7.20:4001",
        "tcp://wheel.example:4001",
        "tcp://[fe80::1]:4001",
        "socket://192.168.7.20:4001",
        "rfc2217://192.168.7.20:4001",
        "rfc2217://moxa.example:4001?baud=19200&parity=E",
    ],
)
def test_a_url_that_can_be_meant(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "a link begins with serial:, tcp:, socket:, unix:, usb:, sas:, mqtt:, rfc2217:"),
        ("/dev/ttyUSB0", "write serial:///dev/ttyUSB0?baud=9600"),
        ("ttyUSB0", "did you mean /dev/ttyUSB0?"),
        ("COM3", "a link begins with serial:, tcp:, socket:, unix:, usb:, sas:, mqtt:, rfc2217:"),
        ("udp://a:1", "a link begins with serial:, tcp:, socket:, unix:, usb:, sas:, mqtt:, rfc2217:"),
        ("tcp://192.168.7.20", "write tcp://host:port"),
        ("tcp://:4001", "write tcp://host:port"),
        ("tcp:host:4001", "write tcp://host:port"),
        ("tcp://host:4001?baud=9600", "write tcp://host:port"),
        ("tcp://host:4001/dev", "write tcp://host:port"),
        ("tcp://me:secret@host:4001", "write tcp://host:port"),
        ("tcp://host:port", "Port could not be cast"),
        ("tcp://host:70000", "Port out of range"),
        ("tcp://[::1", "Invalid IPv6 URL"),
        (f"tcp://{'a' * 64}:1", "no host name"),
        ("tcp://a..b:1", "no host name"),
        ("socket://192.168.7.20", "write socket://host:port"),
        ("socket://host:4001?baud=9600", "write socket://host:port"),
        ("rfc2217://host", "write rfc2217://host:port?baud=9600"),
        ("rfc2217://host:4001/dev", "write rfc2217://host:port?baud=9600"),
        ("rfc2217://me:secret@host:4001", "write rfc2217://host:port?baud=9600"),
        ("rfc2217://host:99999", "Port out of range"),
        ("rfc2217://[::1", "Invalid IPv6 URL"),
        ("rfc2217://host:4001?baud=fast", "baud is a number"),
        ("rfc2217://host:4001?parity=e", "parity is one of E M N O S"),
        ("rfc2217://host:4001?logging=debug&ign_set_control", "unknown logging, ign_set_control; known: baud, parity"),
        ("serial:", "write serial:///dev/serial/by-id/NAME"),
        ("serial:///", "write serial:///dev/serial/by-id/NAME"),
        ("serial:ttyUSB0", "write serial:///dev/serial/by-id/NAME"),
        ("serial://dev/ttyUSB0", "write serial:///dev/serial/by-id/NAME"),
        ("serial:///dev/ttyUSB0#1", "write serial:///dev/serial/by-id/NAME"),
        ("serial:///dev/ttyUSB0?vid=0403", "write serial:///dev/serial/by-id/NAME"),
        ("serial:?vid=zz", "vid is four hexadecimal digits"),
        ("serial:?vid=0403&pid=123456", "pid is four hexadecimal digits"),
        ("serial:?vid=", "vid is four hexadecimal digits"),
        ("serial:///dev/ttyS0?baud=fast", "baud is a number"),
        ("serial:///dev/ttyS0?baud=1", "baud is a number"),
        ("serial:///dev/ttyS0?baud=" + "9" * 5000, "baud is a number"),
        ("serial:///dev/ttyS0?parity=e", "parity is one of E M N O S"),
        ("serial:///dev/ttyS0?speed=9600", "unknown speed; known: baud, parity, vid, pid, serial"),
    ],
)
def test_a_url_that_cannot_be_meant_says_what_is_expected(url: str, said: str) -> None:
    with pytest.raises(BadUrl) as caught:
        check_url(url)
    assert str(caught.value).startswith(f"{url}: ")
    assert said in str(caught.value)


URLISH = st.lists(
    st.one_of(
        st.sampled_from(
            ["serial:", "tcp:", "//", "/", "dev", "[", "]", ":", "?", "&", "=", "baud", "vid", "9", "@", "#", "%", "."]
        ),
        st.text(max_size=5),
    ),
    max_size=12,
).map("".join)


@given(URLISH)
@settings(max_examples=at_length(75, 1_500))
def test_any_text_is_a_url_or_is_refused(url: str) -> None:
    with contextlib.suppress(BadUrl):
        check_url(url)


# ---- both kinds of link, the device's end in the test's hand


class Far:
    """The device's end: a port of the simulators, with what it heard."""

    def __init__(self, port: Pty | Tcp) -> None:
        self.port = port
        self.heard = bytearray()
        self._news = asyncio.Event()
        port.received = self._received

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port.port}" if isinstance(self.port, Tcp) else f"serial://{self.port.path}"

    def _received(self, data: bytes) -> None:
        self.heard += data
        self._news.set()

    async def hears(self, count: int) -> bytes:
        """All it heard, once that is `count` bytes."""
        async with asyncio.timeout(PATIENCE):
            while len(self.heard) < count:
                self._news.clear()
                await self._news.wait()
        return bytes(self.heard)

    async def ready(self, link: StreamLink) -> None:
        """Both ends know of each other."""
        before = len(self.heard)
        await link.write(b"?")
        await self.hears(before + 1)
        del self.heard[before:]


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a link goes through, its owner says it once: no traceback from a library."""
    yield
    gc.collect()  # asyncio speaks of a forgotten error when the task goes
    assert [record.getMessage() for record in caplog.get_records("call") + caplog.records] == []


@pytest.fixture(params=["pty", "tcp"])
async def far(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Far]:
    far = Far(Pty(tmp_path / "tty") if request.param == "pty" else Tcp("127.0.0.1", 0))
    far.port.plug()
    yield far
    far.port.unplug()


async def read(link: StreamLink, count: int) -> bytes:
    """At least `count` bytes."""
    data = b""
    async with asyncio.timeout(PATIENCE):
        while len(data) < count:
            chunk = await link.read()
            assert chunk.data
            data += chunk.data
    return data


async def test_bytes_go_both_ways(far: Far) -> None:
    every = bytes(range(256))
    async with open_link(far.url) as link:
        await link.write(every)
        assert await far.hears(256) == every
        far.port.send(every)
        assert await read(link, 256) == every
        assert (link.received_bytes, link.sent_bytes) == (256, 256)


async def test_the_first_word_is_sent_at_once(far: Far) -> None:
    """A driver greets before the loop turned once."""
    async with open_link(far.url) as link:
        await link.write(b"*K\r")
        assert await far.hears(3) == b"*K\r"


async def test_bytes_may_come_split_and_keep_their_order(far: Far) -> None:
    async with open_link(far.url) as link:
        await far.ready(link)
        got = b""
        for n in range(50):
            far.port.send(bytes([n]))
            got += await read(link, 1)
        assert got == bytes(range(50))


async def test_an_arrival_is_stamped_when_it_arrives(far: Far) -> None:
    clock = [datetime(2026, 11, 20, 20, 0, tzinfo=UTC)]
    async with open_link(far.url, lambda: clock[0]) as link:
        await far.ready(link)
        loop = asyncio.get_running_loop()
        before = loop.time()
        arrived = asyncio.Event()
        take = link.data_received

        def watched(data: bytes) -> None:
            take(data)
            arrived.set()

        link.data_received = watched  # type: ignore[method-assign]
        far.port.send(b"x")
        async with asyncio.timeout(PATIENCE):
            await arrived.wait()
        after, first = loop.time(), clock[0]
        clock[0] = datetime(2026, 11, 20, 20, 30, tzinfo=UTC)  # it lay there for half an hour
        chunk = await link.read()
        assert (chunk.data, chunk.at) == (b"x", first)
        assert before <= chunk.tick <= after
        stamp = link.stamp()
        assert (stamp.data, stamp.at) == (b"", clock[0])
        assert stamp.tick >= chunk.tick


async def test_a_pulled_cable_is_a_lost_link(far: Far) -> None:
    async with open_link(far.url) as link:
        await far.ready(link)
        far.port.unplug()
        with pytest.raises(LinkLost, match=r"."):
            await read(link, 1)
        with pytest.raises(LinkLost):  # it does not revive
            await link.read()
        with pytest.raises(LinkLost):
            await link.write(b"x")


async def test_a_waiting_read_ends_with_the_link(far: Far) -> None:
    async with open_link(far.url) as link:
        await far.ready(link)
        reading = asyncio.ensure_future(link.read())
        await asyncio.sleep(0)
        far.port.unplug()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(LinkLost):
                await reading


async def test_a_read_given_up_loses_nothing(far: Far) -> None:
    async with open_link(far.url) as link:
        await far.ready(link)
        for n in range(20):
            reading = asyncio.ensure_future(link.read())
            await asyncio.sleep(0)
            far.port.send(bytes([n]))
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            assert await read(link, 1) == bytes([n])


async def test_it_may_be_opened_again_at_once(far: Far) -> None:
    for n in range(5):
        async with open_link(far.url) as link:
            await link.write(bytes([n]))
            await far.hears(n + 1)
    assert far.heard == bytes(range(5))


async def test_it_is_back_when_it_is_plugged_in_again(far: Far) -> None:
    async with open_link(far.url) as link:
        await far.ready(link)
        far.port.unplug()
        with pytest.raises(LinkLost):
            await read(link, 1)
    with pytest.raises(LinkLost, match=r"is not there|Connection refused"):
        async with open_link(far.url):
            pass
    far.port.plug()
    async with open_link(far.url) as link:
        await far.ready(link)
        far.port.send(b"again")
        assert await read(link, 5) == b"again"


def waiting(link: StreamLink) -> tuple[int, bool]:
    """Bytes in memory, and whether the kernel keeps what follows."""
    return link._waiting_bytes, link._paused


async def test_unread_bytes_wait_in_the_kernel(far: Far) -> None:
    """The device sends without end and nobody reads: what waits here is bounded; nothing of it is lost or reordered."""
    most = 0
    async with open_link(far.url) as link:
        await far.ready(link)
        arrived = link.data_received

        def watched(data: bytes) -> None:
            nonlocal most
            arrived(data)
            most = max(most, link._waiting_bytes)

        link.data_received = watched  # type: ignore[method-assign]
        block = bytes(range(256)) * 64
        sent = 0
        async with asyncio.timeout(PATIENCE):
            while not (link._paused and far.port._unsent):
                room = links.MAX_WAITING - len(far.port._unsent)
                far.port.send(block[: min(len(block), room // 256 * 256)])
                sent += min(len(block), room // 256 * 256)
                await asyncio.sleep(0)
        assert MAX_WAITING < most <= MAX_WAITING + 256 * 1024
        assert waiting(link) == (most, True)
        got = await read(link, sent)
        assert got == block[:256] * (sent // 256)
        assert waiting(link) == (0, False)


@pytest.mark.parametrize("size", [4096, 16])
async def test_a_device_that_takes_nothing_holds_the_writer(tmp_path: Path, size: int) -> None:
    """Neither does the other way fill the memory. Sixteen bytes are taken whole or not at all: nobody asks for ever."""
    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        async with open_link(f"serial://{os.ttyname(slave)}") as link:
            block = b"x" * size
            async with asyncio.timeout(PATIENCE):
                while link._drained.is_set():
                    await link.write(block)
            assert link._transport is not None
            assert link._transport.get_write_buffer_size() <= 64 * 1024 + len(block)
            writing = asyncio.ensure_future(link.write(b"y"))
            await asyncio.sleep(0)
            assert not writing.done()
            os.close(slave)
            os.close(master)
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(LinkLost):
                    await writing
    finally:
        for fd in (slave, master):
            with contextlib.suppress(OSError):
                os.close(fd)


async def test_a_device_that_takes_bytes_again_gets_them_and_nobody_asks_on(tmp_path: Path) -> None:
    """Twice: the kernel's queue was full for a moment."""
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    wrong: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
    try:
        async with open_link(f"serial://{os.ttyname(slave)}") as link:
            transport: Any = link._transport
            for _ in range(2):
                sent, heard = 0, b""
                async with asyncio.timeout(PATIENCE):
                    while not transport.get_write_buffer_size():
                        await link.write(b"sixteen bytes...")
                        sent += 16
                    while len(heard) < sent or transport.get_write_buffer_size():
                        with contextlib.suppress(BlockingIOError):
                            heard += os.read(master, 4096)
                        await asyncio.sleep(0)
                assert heard == b"sixteen bytes..." * (sent // 16)
                port = transport.fileno()
                assert not asyncio.get_running_loop().remove_writer(port)
        assert not wrong
    finally:
        asyncio.get_running_loop().set_exception_handler(None)
        for fd in (slave, master):
            with contextlib.suppress(OSError):
                os.close(fd)


# ---- a link that cannot be had


async def refusal(url: str, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        async with open_link(url):
            pass
    assert type(caught.value) is kind
    return str(caught.value)


async def test_refused_connection_is_a_lost_link() -> None:
    port = free_port()
    said = await refusal(f"tcp://127.0.0.1:{port}", LinkLost)
    assert said == f"127.0.0.1:{port}: Connection refused; check that it is on, and its port number"


async def test_a_host_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    said = await refusal("tcp://wheel.example:4001", LinkLost)
    assert said == "wheel.example: Name or service not known; check the name, or write the address"


async def test_a_host_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "CONNECT_TIMEOUT", 0.05)
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for one in (first, second):  # the queue is full: further calls are not answered
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        assert await refusal(f"tcp://127.0.0.1:{port}", LinkLost) == (
            f"no answer from 127.0.0.1:{port} in 0.05 s; check its power, cable and address"
        )


async def test_a_port_that_is_not_there(tmp_path: Path) -> None:
    assert await refusal(f"serial://{tmp_path}/tty", LinkLost) == f"{tmp_path}/tty is not there; {links.CHECK_PORT}"


@pytest.mark.parametrize("what", ["file", "folder", "/dev/null"])
async def test_missing_port_is_reported(tmp_path: Path, what: str) -> None:
    path = Path(what) if what.startswith("/") else tmp_path / what
    if what == "file":
        path.write_bytes(b"")
    elif what == "folder":
        path.mkdir()
    said = await refusal(f"serial://{path}", DeviceRefused)
    assert said.startswith(f"{path} is no serial port")


@pytest.fixture
def terminal() -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)
    yield os.ttyname(slave)
    os.close(slave)
    os.close(master)


async def test_a_port_without_permission(terminal: str) -> None:
    os.chmod(terminal, 0)  # noqa: PTH101
    was = os.geteuid()
    if was == 0:  # root may open anything
        os.seteuid(65534)
    try:
        said = await refusal(f"serial://{terminal}", DeviceRefused)
    finally:
        os.seteuid(was)
    assert said == f"{terminal}: no permission; use sudo, or for a service see docs/how-to/install.md"


async def test_a_port_belongs_to_one_program(terminal: str) -> None:
    async with open_link(f"serial://{terminal}"):
        said = await refusal(f"serial://{terminal}", DeviceRefused)
        assert said == f"{terminal} is in use by another program; {links.STOP_IT}"
    async with open_link(f"serial://{terminal}"):
        pass


async def test_line_settings_the_port_cannot_have(terminal: str) -> None:
    """A pty refuses parity."""
    said = await refusal(f"serial://{terminal}?baud=19200&parity=E", DeviceRefused)
    assert said.startswith(f"{terminal}: the port refuses 19200 8E1: ")
    async with open_link(f"serial://{terminal}?baud=19200"):
        pass


async def test_a_port_that_runs_at_another_speed_than_it_was_told_is_refused(
    terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver of the kernel takes the nearest speed that its port can do, and says nothing."""
    ioctl = fcntl.ioctl

    def nearest(port: int, request: int, *more: Any) -> Any:
        if request == links._TCGETS2:
            return bytes(40) + (28800).to_bytes(4, sys.byteorder)
        return ioctl(port, request, *more)

    monkeypatch.setattr(fcntl, "ioctl", nearest)
    said = await refusal(f"serial://{terminal}?baud=31250", DeviceRefused)
    assert said == f"{terminal}: the port refuses 31250 8N1: it can do 28800 baud"
    async with open_link(f"serial://{terminal}?baud=28800"):
        pass


# ---- a device that takes no bytes


@virtual_time
@pytest.mark.parametrize("bytes_a_look", [0, 1])
async def test_device_that_takes_no_bytes_is_a_lost_link(bytes_a_look: int) -> None:
    """One that takes them slowly is not."""
    unsent = [100]

    def size() -> int:
        unsent[0] -= bytes_a_look
        return unsent[0]

    transport = SimpleNamespace(get_write_buffer_size=size, is_closing=lambda: False, write=lambda _: None)
    link = StreamLink(lambda: datetime.now(UTC))
    link.connection_made(cast("asyncio.Transport", transport))
    link.pause_writing()
    if bytes_a_look:
        asyncio.get_running_loop().call_later(10 * links.STALL_TIMEOUT, link.resume_writing)
        await link.write(b"x")
    else:
        with pytest.raises(LinkLost, match="takes no bytes for 30 s; check its cable and its flow control"):
            await link.write(b"x")


@virtual_time
async def test_device_that_takes_bytes_for_a_moment_is_no_lost_link() -> None:
    """A serial server may resume and suspend in one read (RFC 2217), with nothing unsent here."""
    sent: list[bytes] = []
    transport = SimpleNamespace(get_write_buffer_size=lambda: 0, is_closing=lambda: False, write=sent.append)
    link = StreamLink(lambda: datetime.now(UTC))
    link.connection_made(cast("asyncio.Transport", transport))
    link.pause_writing()
    writing = asyncio.create_task(link.write(b"x"))
    await asyncio.sleep(1)
    link.resume_writing()
    link.pause_writing()
    await asyncio.sleep(links.STALL_TIMEOUT / 2)
    assert (link.lost, sent) == (None, [])
    link.resume_writing()
    await writing
    assert sent == [b"x"]


# ---- what is plugged in


def ports(*them: tuple[str, int | None, int | None, str | None]) -> Callable[[], list[SimpleNamespace]]:
    return lambda: [SimpleNamespace(device=d, vid=v, pid=p, serial_number=s) for d, v, p, s in them]


async def test_a_port_that_hangs_is_a_lost_link_and_no_try_costs_a_thread(
    terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the loop goes on. What opens at last is closed, and may be opened again."""
    hold, closed = threading.Event(), threading.Event()
    whole = serial.Serial

    def slow(path: str, *args: Any, **options: Any) -> Any:
        if not hold.is_set():
            hold.wait(PATIENCE)
            return SimpleNamespace(close=closed.set)
        return whole(path, *args, **options)

    monkeypatch.setattr(serial, "Serial", slow)
    with monkeypatch.context() as patch:
        patch.setattr(links, "OPEN_TIMEOUT", 0.1)
        assert await refusal(f"serial://{terminal}", LinkLost) == f"{terminal} does not open: unplug it, or its hub"
        threads = threading.active_count()
        for _ in range(9):
            assert "the last try still hangs" in await refusal(f"serial://{terminal}", LinkLost)
        assert threading.active_count() == threads
    [hanging] = [thread for thread in threading.enumerate() if thread.name == terminal]
    hold.set()
    assert await asyncio.to_thread(closed.wait, PATIENCE)
    await asyncio.to_thread(hanging.join, PATIENCE)
    async with open_link(f"serial://{terminal}"):
        pass


@pytest.fixture
def hanging_close(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The close of a port hangs in the kernel until this is set."""
    hold = threading.Event()

    class Hanging(serial.Serial):
        def close(self) -> None:
            hold.wait(2 * PATIENCE)
            super().close()

    monkeypatch.setattr(serial, "Serial", Hanging)
    yield hold
    hold.set()


async def test_loss_of_a_port_is_reported_while_its_close_hangs(tmp_path: Path, hanging_close: threading.Event) -> None:
    port = Pty(tmp_path / "tty")
    port.plug()
    async with open_link(f"serial://{port.path}") as link:
        port.unplug()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(LinkLost):
                await read(link, 1)
        hanging_close.set()


def test_process_ends_while_the_close_of_a_port_hangs(
    terminal: str, hanging_close: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "CLOSE_TIMEOUT", 0.1)

    async def use() -> None:
        async with open_link(f"serial://{terminal}"):
            pass

    process = threading.Thread(target=asyncio.run, args=(use(),))
    process.start()
    process.join(PATIENCE)
    ended = not process.is_alive()
    hanging_close.set()
    process.join()
    assert ended


async def test_line_of_a_port_is_set_beside_the_loop(terminal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter answers such a request over USB, or hangs."""
    threads: list[threading.Thread] = []

    class Watched(serial.Serial):
        def _reconfigure_port(self, force_update: bool = False) -> None:
            threads.append(threading.current_thread())
            super()._reconfigure_port(force_update)  # type: ignore[misc]

    monkeypatch.setattr(serial, "Serial", Watched)
    async with open_link(f"serial://{terminal}"):
        assert len(threads) == 2
        assert threading.current_thread() not in threads


async def test_two_who_open_a_port_at_once_are_no_sign_that_it_hangs(
    terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = serial.Serial

    def slow(*args: Any, **options: Any) -> Any:
        time.sleep(0.05)
        return whole(*args, **options)

    monkeypatch.setattr(serial, "Serial", slow)
    refused = asyncio.Event()

    async def use() -> str:
        try:
            async with open_link(f"serial://{terminal}"), asyncio.timeout(PATIENCE):
                await refused.wait()
        except DeviceRefused as error:
            refused.set()
            return str(error)
        return "used"

    assert sorted(await asyncio.gather(use(), use())) == [
        f"{terminal} is in use by another program; {links.STOP_IT}",
        "used",
    ]


async def test_the_loop_runs_while_ports_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may block the listing while it asks another device that does not answer."""
    loop = asyncio.get_running_loop()
    loop_ran = threading.Event()

    def blocked() -> list[Any]:
        loop.call_soon_threadsafe(loop_ran.set)
        assert loop_ran.wait(60), "listing the ports blocked the event loop"
        return []

    monkeypatch.setattr(links, "plugged_in", blocked)
    assert "is plugged in" in await refusal("serial:?vid=0403&pid=6001", LinkLost)


async def test_port_unplugged_during_the_search_is_a_lost_link(monkeypatch: pytest.MonkeyPatch) -> None:
    def vanishes() -> list[Any]:
        raise TypeError("int() can't convert non-string with explicit base")

    monkeypatch.setattr(links, "plugged_in", vanishes)
    assert await refusal("serial:?vid=0403&pid=6001", LinkLost) == "a device was just plugged in or unplugged"


async def test_a_port_is_found_by_what_is_plugged_in(terminal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugged = ports(("/dev/ttyS0", None, None, None), (terminal, 0x0403, 0x6001, "A5"), ("/dev/x", 0x0403, 0x6001, "B"))
    monkeypatch.setattr("serial.tools.list_ports.comports", plugged)
    for url in ("serial:?vid=0403&pid=6001&serial=A5", "serial:?serial=A5", "serial:?serial=A5&vid=0403&baud=19200"):
        async with open_link(url):
            pass
    said = await refusal("serial:?vid=0403&pid=6001&serial=C", LinkLost)
    assert said == f"nothing with vid=0403 pid=6001 serial=C is plugged in; {links.CHECK_PORT}"
    said = await refusal("serial:?vid=0403", DeviceRefused)
    assert said == f"vid=0403 fits {', '.join(sorted((terminal, '/dev/x')))}; add serial=… to tell them apart"
