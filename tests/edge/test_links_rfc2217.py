"""Links through a serial server that is told how to set its port: pyserial's own server, and servers that misbehave."""

import asyncio
import contextlib
import gc
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from typing import Any, cast

import pytest
import serial
from helpers import PATIENCE, at_length
from hypothesis import given, settings, strategies as st
from serial import rfc2217

from daemon.config.model import BadConfig, load
from daemon.edge.links.link import StreamLink, open_link, utc_now
from daemon.edge.links.rfc2217 import MAX_COMMAND, Rfc2217Link, Telnet, TelnetCommand, _target
from drivers.driver import DeviceRefused, LinkLost

ALL = bytes(range(256)) * 3


class Server:
    """A serial server as pyserial's example has it: `PortManager` between a socket and a port, here one that echoes."""

    def __init__(self) -> None:
        self.port = serial.serial_for_url("loop://", timeout=0.05)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"rfc2217://127.0.0.1:{self._listening.getsockname()[1]}"
        self._client: socket.socket | None = None
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def write(self, data: bytes) -> None:
        """To the client; `PortManager` calls it, too."""
        if self._client is not None:
            with contextlib.suppress(OSError):
                self._client.sendall(data)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            self._client, _ = self._listening.accept()
            self.manager = rfc2217.PortManager(cast("Any", self.port), cast("Any", self))
            self._threads.append(threading.Thread(target=self._from_port, daemon=True))
            self._threads[1].start()
            while data := self._client.recv(1024):
                self.port.write(b"".join(self.manager.filter(data)))

    def _from_port(self) -> None:
        with contextlib.suppress(serial.SerialException, TypeError):  # closed under it
            while self.port.is_open:
                if data := self.port.read(self.port.in_waiting or 1):
                    self.write(b"".join(self.manager.escape(data)))

    def hang_up(self) -> None:
        """The cable to the server is cut."""
        if self._client is not None:
            with contextlib.suppress(OSError):
                self._client.shutdown(socket.SHUT_RDWR)
            self._client.close()

    def close(self) -> None:
        self._listening.close()
        self.hang_up()
        self.port.close()  # the thread that reads it ends by that
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


async def read(link: Any, count: int) -> bytes:
    data = b""
    async with asyncio.timeout(PATIENCE):
        while len(data) < count:
            data += (await link.read()).data
    return data


# ---- pyserial's server


@pytest.mark.parametrize(
    ("query", "baud", "parity"),
    [("", 9600, "N"), ("?baud=19200&parity=E", 19200, "E"), ("?baud=4800&parity=O", 4800, "O")],
)
async def test_the_port_is_set_and_every_byte_goes_both_ways(
    server: Server, query: str, baud: int, parity: str
) -> None:
    async with open_link(server.url + query) as link:
        assert (server.port.baudrate, server.port.parity) == (baud, parity)
        assert (server.port.bytesize, server.port.stopbits) == (8, 1)
        await link.write(ALL)
        assert await read(link, len(ALL)) == ALL
        assert (link.sent_bytes, link.received_bytes) == (len(ALL), len(ALL))


async def test_bytes_before_the_port_settings_are_discarded(server: Server) -> None:
    server.port.write(b"at another speed")
    async with open_link(server.url) as link:
        await link.write(b"now")
        assert (await read(link, 3))[-3:] == b"now"


async def test_a_tap_sees_what_the_device_sees(server: Server) -> None:
    seen: list[tuple[str, bytes]] = []
    async with open_link(server.url) as link:
        link.tap = lambda way, _, data: seen.append((way, data))
        await link.write(b"\xff\x01")
        await read(link, 2)
    assert seen[0] == ("out", b"\xff\x01")
    assert b"".join(data for way, data in seen if way == "in") == b"\xff\x01"


async def test_a_server_that_goes_away_is_a_lost_link(server: Server) -> None:
    async with open_link(server.url) as link:
        server.hang_up()
        with pytest.raises(LinkLost):
            async with asyncio.timeout(PATIENCE):
                await link.read()


async def test_refused_connection_is_a_lost_link() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
    with pytest.raises(LinkLost, match="refused"):
        async with open_link(f"rfc2217://127.0.0.1:{number}"):
            pass


# ---- servers that are none, or lie

IAC_WILL, IAC_DO, IAC_WONT, IAC_DONT = b"\xff\xfb", b"\xff\xfd", b"\xff\xfc", b"\xff\xfe"
AGREED = IAC_DO + b"\x2c" + IAC_DO + b"\x00" + IAC_WILL + b"\x00"


def answer(number: int, value: bytes) -> bytes:
    return b"\xff\xfa\x2c" + bytes([100 + number]) + value + b"\xff\xf0"


SET = answer(1, (9600).to_bytes(4, "big")) + answer(2, b"\x08") + answer(3, b"\x01") + answer(4, b"\x01")

PURGE = b"\xff\xfa\x2c\x0c\x03\xff\xf0"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@contextlib.asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    done: set[asyncio.Task[None]] = set()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                await talk(reader, writer)
                await reader.read()
        finally:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(met(reader, writer))
        done.add(task)

    one = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"rfc2217://127.0.0.1:{one.sockets[0].getsockname()[1]}"
    finally:
        one.close()
        await asyncio.sleep(0)  # who was accepted has a task
        for task in done:
            task.cancel()
        await asyncio.gather(*done, return_exceptions=True)


def says(*parts: bytes) -> Talk:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return talk


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"*X;2;011;34;0;157;0\r\n", "does not answer as an RFC 2217 server; a raw port is tcp://host:port"),
        (IAC_DONT + b"\x2c", "refuses RFC 2217; a raw port is tcp://host:port"),
        (IAC_DO + b"\x2c", "does not carry binary data"),
        (IAC_DO + b"\x2c" + IAC_DONT + b"\x00", "refuses to carry binary data"),
        (AGREED, "does not confirm the port's settings"),
        (AGREED + answer(1, (300).to_bytes(4, "big")), "runs at 300 baud, not as in the URL"),
        (AGREED + answer(2, b"\x07"), "has 7 data bits, not 8"),
        (AGREED + answer(3, b"\x03"), "has parity E, not as in the URL"),
        (AGREED + answer(4, b"\x02"), "more than one stop bit"),
        (b"\xff\xfa\x2c" + b"x" * 1000, "a telnet command without end"),
    ],
)
async def test_a_server_that_does_not_set_the_port_is_refused(
    monkeypatch: pytest.MonkeyPatch, said: bytes, why: str
) -> None:
    monkeypatch.setattr("daemon.edge.links.rfc2217.ANSWER_TIMEOUT", 0.5)
    async with talking(says(said)) as url:
        with pytest.raises(DeviceRefused, match=why):
            async with open_link(url):
                pass


async def test_a_port_that_is_set_otherwise_later_is_a_lost_link() -> None:
    async with talking(says(AGREED + SET, b"*X;", answer(1, (300).to_bytes(4, "big")))) as url, open_link(url) as link:
        with pytest.raises(LinkLost, match="300 baud"):
            await read(link, 100)


async def test_a_server_that_asks_for_ever_gets_each_answer_once() -> None:
    """It reads nothing: answers to all it asks would pile up in memory."""
    asks = b"".join(IAC_DO + bytes([one]) + IAC_WILL + bytes([one]) for one in range(256) if one != 255)
    async with talking(says(AGREED + SET, *[asks] * 500, b"end")) as url, open_link(url) as link:
        assert await read(link, 3) == b"end"
        assert isinstance(link, StreamLink)
        assert link._transport is not None
        assert link._transport.get_write_buffer_size() < 4096


async def test_a_server_may_ask_to_wait_and_to_go_on() -> None:
    heard = asyncio.Event()
    go_on = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(AGREED + SET)
        await reader.readuntil(PURGE)  # the port is set
        writer.write(answer(8, b"") + b"wait")
        await go_on.wait()
        writer.write(answer(9, b""))
        await reader.readuntil(b"question")
        heard.set()

    async with talking(talk) as url, open_link(url) as link:
        await read(link, 4)
        asking = asyncio.create_task(link.write(b"question"))
        await asyncio.sleep(0.05)
        assert not asking.done()
        go_on.set()
        async with asyncio.timeout(PATIENCE):
            await asking
            await heard.wait()


async def test_cancelled_opening_leaves_nothing_behind() -> None:
    async with talking(says(AGREED)) as url:
        opening = asyncio.create_task(_opened(url))
        await asyncio.sleep(0.1)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening


async def test_connection_that_came_too_late_and_was_cut_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The opening was given up: nothing waits for the settings of the port any more."""
    link = Rfc2217Link(_target("rfc2217://127.0.0.1:1"), utc_now)
    link.connection_lost(ConnectionResetError("gone"))
    del link
    gc.collect()
    assert not caplog.records


async def _opened(url: str) -> None:
    async with open_link(url):
        pass


# ---- telnet

PIECE = st.one_of(
    st.binary(max_size=10).map(lambda data: data.replace(b"\xff", b"\xff\xff")),
    st.builds(lambda command, option: bytes([255, command, option]), st.integers(251, 254), st.integers(0, 254)),
    st.builds(
        lambda value: b"\xff\xfa\x2c" + value.replace(b"\xff", b"\xff\xff") + b"\xff\xf0",
        st.binary(min_size=1, max_size=6),
    ),
    st.sampled_from([b"\xff\xf1", b"\xff\xf9"]),
)


@given(st.lists(PIECE, max_size=12).map(b"".join), st.lists(st.integers(0, 200), max_size=12))
@settings(max_examples=at_length(50, 1_000), derandomize=True)
def test_any_chunking_gives_the_same(data: bytes, cuts: list[int]) -> None:
    whole = Telnet().feed(data)
    telnet = Telnet()
    payload, said = b"", []
    for a, b in pairwise(sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})):
        more, commands = telnet.feed(data[a:b])
        payload += more
        said += commands
    assert (payload, said) == whole


@given(st.lists(st.binary(max_size=200), max_size=10))
@settings(max_examples=at_length(50, 1_000), derandomize=True)
def test_any_bytes_hold_a_bounded_rest(chunks: list[bytes]) -> None:
    telnet = Telnet()
    with contextlib.suppress(ValueError):
        for chunk in chunks:
            telnet.feed(chunk)
            assert len(telnet._held) <= MAX_COMMAND


def test_exact_commands() -> None:
    assert Telnet().feed(b"a\xff\xffb" + IAC_DO + b"\x2c" + answer(1, b"\x00\x00\x25\x80") + b"\xff\xf9c") == (
        b"a\xffbc",
        [TelnetCommand(0xFD, 44), TelnetCommand(0xFA, 44, b"\x65\x00\x00\x25\x80")],
    )


def test_a_raw_port_and_a_told_port_are_one(tmp_path: Any) -> None:
    path = tmp_path / "feltd.toml"
    device = '[[table.device]]\nname = "{}"\ndriver = "cammegh_ss2"\nurl = "{}"\n'
    path.write_text(
        '[site]\nname = "lisboa"\n[edge]\nname = "e-1"\n[[table]]\nname = "t-1"\n'
        + device.format("wheel-1", "socket://10.0.0.2:4001")
        + device.format("wheel-2", "rfc2217://10.0.0.2:4001"),
        encoding="utf-8",
    )
    with pytest.raises(BadConfig, match=r"already belongs to t-1/wheel-1, as socket://10\.0\.0\.2:4001"):
        load(path)
