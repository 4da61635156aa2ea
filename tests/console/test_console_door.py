"""What stands before the pages, over a real port: other names, lines that say nothing, forms that never end."""

import asyncio
import contextlib
import socket
import ssl
import tracemalloc
from asyncio import sslproto
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from console_floor import CONFIG, opened
from console_tour import ask
from helpers import PATIENCE
from starlette.types import Receive, Scope, Send

from daemon.config.model import Console, parse
from daemon.console import context as context_module, front_server
from daemon.console.app import serve
from daemon.console.auth.access import Access, User
from daemon.console.front_server import ConnectionLimiter, Forwarded, HeaderTimeoutProtocol, Hosts, names_of
from daemon.console.site.actions import read_actions
from daemon.journal.store import Journal
from simulators.lab.broker import free_port
from tests.broker.test_mqtt_tls import Authority


@pytest.fixture(autouse=True)
def clients_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test is about another limit."""
    monkeypatch.setattr(front_server, "REQUEST_TIMEOUT_S", PATIENCE)


@contextlib.asynccontextmanager
async def served(folder: Path, console: str = "") -> AsyncIterator[int]:
    """A console with its port, without a broker."""
    settings = f'port = 0\nstore = "{folder}/console.db"\n{console}'
    config = parse(CONFIG.format(console=settings) + f"[mqtt]\nport = {free_port()}\n")
    with contextlib.closing(Journal(folder / "actions.db")) as journal:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(serve(config, journal, on_listening=told.set_result))
        both: list[asyncio.Future[Any]] = [running, told]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield told.result()
        finally:
            running.cancel()
            await asyncio.wait([running])


async def said(port: int, text: str) -> bytes:
    """All that is answered until the line is cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(text.encode())
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


# ---- names


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("10.1.2.3", True),
        ("localhost:8080", True),
        ("LOCALHOST", True),
        ("pit.lisboa.example", True),
        ("pit.lisboa.example:443", True),
        (socket.gethostname(), True),
        ("evil.example", False),
        ("evil.example:8080", False),
        ("localhost.evil.example", False),
        ("pit.lisboa.example.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example@127.0.0.1.evil.example", False),
        ("[", False),
        ("2130706433", False),
    ],
)
async def test_only_what_was_meant_for_us_is_answered(tmp_path: Path, host: str, ours: bool) -> None:
    names = names_of(Console(url="https://Pit.Lisboa.example"))
    with opened(tmp_path) as console:
        got = await ask(Hosts(console.app, names), "/healthz", headers=[("host", host)])
    assert got.status == (200 if ours else 421)


@pytest.mark.parametrize(("console", "told"), [('url = "https://pit.lisboa.example"', True), ("", False)])
async def test_tls_responses_carry_strict_transport_security(tmp_path: Path, console: str, told: bool) -> None:
    with opened(tmp_path, console) as one:
        got = await ask(one.app, "/healthz")
    assert (b"strict-transport-security" in dict(got.headers)) is told


@pytest.mark.system
async def test_another_name_gets_no_page_and_no_login(tmp_path: Path) -> None:
    async with served(tmp_path) as port:
        head = "GET /login HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"
        assert b"421" in (await said(port, head.format("evil.example"))).partition(b"\r\n")[0]
        assert b"200" in (await said(port, head.format(f"127.0.0.1:{port}"))).partition(b"\r\n")[0]


# ---- who asks


def heard(*, proxies: tuple[str, ...] = (), client: str = "127.0.0.1", **headers: str) -> tuple[str, str]:
    """The address and the scheme that the pages are told."""
    told: list[tuple[str, str]] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        told.append((scope["client"][0], scope["scheme"]))

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "client": (client, 999), "scheme": "http", "headers": given}
    asyncio.run(Forwarded(app, proxies)(scope, None, None))  # type: ignore[arg-type]
    assert scope["client"] == (client, 999)
    return told[0]


@pytest.mark.parametrize(
    ("proxies", "said", "address"),
    [
        ((), "10.9.9.9", "127.0.0.1"),
        (("127.0.0.1",), "10.9.9.9", "10.9.9.9"),
        (("127.0.0.0/8", "10.0.0.3"), " 10.9.9.9 ", "10.9.9.9"),
        (("10.0.0.0/8",), "10.9.9.9", "127.0.0.1"),
        # Each proxy adds whom it saw: what stands before that is somebody's word.
        (("127.0.0.1",), "10.7.7.7, 10.9.9.9", "10.9.9.9"),
        (("127.0.0.1", "10.0.0.3"), "10.7.7.7, 10.9.9.9, 10.0.0.3", "10.9.9.9"),
        (("127.0.0.1", "10.0.0.3"), "10.0.0.3", "10.0.0.3"),
        (("127.0.0.1",), "2001:DB8::0:1", "2001:db8::1"),
        (("127.0.0.1",), "", "127.0.0.1"),
        (("127.0.0.1",), "10.9.9.9, ", "127.0.0.1"),
        (("127.0.0.1",), "10.9.9.9, unknown", "127.0.0.1"),
        (("127.0.0.1",), "10.0.0.7 (maria's tablet)", "127.0.0.1"),
        (("127.0.0.1",), "10.9.9.9:4711", "127.0.0.1"),
        (("127.0.0.1",), "x" * 15_000, "127.0.0.1"),
        (("127.0.0.1",), "fe80::1%" + "x" * 15_000, "127.0.0.1"),
        (("127.0.0.1",), "é", "127.0.0.1"),
    ],
)
def test_only_a_proxy_of_ours_says_who_asks(proxies: tuple[str, ...], said: str, address: str) -> None:
    assert heard(proxies=proxies, x_forwarded_for=said)[0] == address


@pytest.mark.parametrize(
    ("proxies", "said", "scheme"),
    [
        ((), "https", "http"),
        (("127.0.0.1",), "https", "https"),
        (("127.0.0.1",), "HTTPS", "https"),
        (("127.0.0.1",), "javascript", "http"),
        (("127.0.0.1",), "", "http"),
    ],
)
def test_only_a_proxy_of_ours_says_how_they_ask(proxies: tuple[str, ...], said: str, scheme: str) -> None:
    assert heard(proxies=proxies, x_forwarded_proto=said)[1] == scheme


def test_a_line_without_an_address_is_nobodys_proxy() -> None:
    told: list[Any] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        told.append(scope["client"])

    scope = {"type": "http", "client": None, "scheme": "http", "headers": [(b"x-forwarded-for", b"10.9.9.9")]}
    asyncio.run(Forwarded(app, ("127.0.0.1",))(scope, None, None))  # type: ignore[arg-type]
    assert told == [None]


@pytest.mark.system
@pytest.mark.parametrize(("console", "address"), [("", "127.0.0.1"), ('proxies = ["127.0.0.1"]', "10.9.9.9")])
async def test_failed_login_is_logged_with_its_own_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: str, address: str
) -> None:
    async with served(tmp_path, console) as port:
        form = (
            f"POST /login HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n"
            "X-Forwarded-For: 10.7.7.7, 10.9.9.9\r\nConnection: close\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 25\r\n\r\nname=sam&password=guessed!"
        )
        assert b"403" in (await said(port, form)).partition(b"\r\n")[0]
    [action] = read_actions(tmp_path / "actions.db", 9)
    assert (action.action, action.detail["address"]) == ("login.failed", address)


# ---- patience


@pytest.mark.system
@pytest.mark.parametrize("text", ["", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
async def test_idle_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(front_server, "REQUEST_TIMEOUT_S", 0.2)
    async with served(tmp_path) as port:
        assert await said(port, text) == b""


@pytest.fixture
def short_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request of a connection may take its time, the next one may not."""
    answered = HeaderTimeoutProtocol.on_response_complete

    def on_response_complete(self: HeaderTimeoutProtocol) -> None:
        with patch.object(front_server, "REQUEST_TIMEOUT_S", 0.2):
            answered(self)

    monkeypatch.setattr(HeaderTimeoutProtocol, "on_response_complete", on_response_complete)


@pytest.mark.system
@pytest.mark.usefixtures("short_after_an_answer")
async def test_connection_with_half_a_second_request_is_closed(tmp_path: Path) -> None:
    async with served(tmp_path) as port:
        whole = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        got = await said(port, whole + "GET /healthz HTTP/1.1\r\nHost: ")
        assert got.count(b"alive") == 1


@pytest.mark.system
@pytest.mark.usefixtures("short_after_an_answer")
async def test_a_form_that_never_ends_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "FORM_TIMEOUT_S", 0.2)
    async with served(tmp_path) as port:
        form = (
            f"POST /login HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=sam"
        )
        assert b"408" in (await said(port, form)).partition(b"\r\n")[0]


def kernel_has(port: int, other: int) -> bool:
    """Whether the server's end of a connection is there."""
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    ends = [line.split()[1:3] for line in lines]
    return [f"0100007F:{port:04X}", f"0100007F:{other:04X}"] in ends


@pytest.mark.system
async def test_connection_that_does_not_read_its_answer_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_server, "UNREAD_ANSWER_TIMEOUT_S", 0.4)
    question = b"GET /static/console.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with served(tmp_path) as port:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(line, ("127.0.0.1", port))
        await loop.sock_sendall(line, question * 400)
        async with asyncio.timeout(PATIENCE):
            while kernel_has(port, line.getsockname()[1]):  # noqa: ASYNC110 - the kernel closes it
                await asyncio.sleep(0.05)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := await asyncio.wait_for(loop.sock_recv(line, 1 << 20), PATIENCE):
                got += piece
                if got.count(b"HTTP/1.1 200") == 400:
                    break
        line.close()
    assert got.count(b"HTTP/1.1 200") < 400


@pytest.mark.system
async def test_one_too_many_at_once_is_turned_away_and_the_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_server, "MOST_CONNECTIONS", 3)
    whole = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with served(tmp_path) as port:
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert await said(port, whole) == b""
        for reader, writer in lines:
            writer.write(whole.encode())
            assert b"alive" in await reader.read()
            writer.close()
        assert b"alive" in await said(port, whole)


@pytest.mark.system
async def test_requests_without_a_sign_in_take_no_more_than_a_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One address asks /healthz on many lines, and so do others: places are left for those who signed in."""
    monkeypatch.setattr(front_server, "MOST_OF_ADDRESS", 3)
    monkeypatch.setattr(front_server, "MOST_UNKNOWN", 5)
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lines: list[asyncio.StreamWriter] = []

    async def is_served(port: int, host: str) -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
        lines.append(writer)
        writer.write(ask)
        with contextlib.suppress(ConnectionResetError):
            return await asyncio.wait_for(reader.readline(), PATIENCE) == b"HTTP/1.1 200 OK\r\n"
        return False

    async with served(tmp_path) as port:
        assert [await is_served(port, "127.0.0.2") for _ in range(5)] == [True] * 3 + [False] * 2
        assert [await is_served(port, "127.0.0.3") for _ in range(3)] == [True] * 2 + [False]
        for writer in lines:
            writer.close()
        monkeypatch.setattr(Access, "who", lambda _self, _request: User("sup", "supervisor", ()))
        answer = b""
        while not answer:  # until the server has seen that the lines are closed
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.4", 0))
            writer.write(b"GET /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                answer = await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
        for host in ("127.0.0.2", "127.0.0.3"):
            for _ in range(5):
                await is_served(port, host)
        assert [await is_served(port, "127.0.0.4") for _ in range(10)] == [True] * 10
        assert not await is_served(port, "127.0.0.2")
        for writer in lines:
            writer.close()


def room(taken: list[str], known: tuple[str, ...], host: str) -> bool:
    """Whether `host` gets a connection beside those of the hosts `taken`, on each of which something was asked."""
    limiter = ConnectionLimiter(socket.AF_INET)
    limiter._connections = {(one, n): limiter for n, one in enumerate(taken)}
    for one in known:
        limiter.signed_in(one)
    try:
        return limiter._may_connect(host)
    finally:
        limiter.close()


def test_an_address_of_which_somebody_signed_in_has_a_share_too() -> None:
    """A viewer's telephone, or somebody behind the same router, must not take all places either."""
    most = front_server.MOST_OF_KNOWN
    known = ("10.0.0.1", "10.0.0.2")
    assert most < front_server.MOST_CONNECTIONS
    assert room(["10.0.0.1"] * (most - 1), known, "10.0.0.1")
    assert not room(["10.0.0.1"] * most, known, "10.0.0.1")
    assert room(["10.0.0.1"] * most, known, "10.0.0.2")


def test_the_addresses_of_one_network_by_ipv6_share() -> None:
    """Everybody there has 2^64 of them."""
    taken = [f"2001:db8::{n:x}" for n in range(front_server.MOST_OF_NETWORK)]
    assert room(taken[1:], (), "2001:db8::ffff")
    assert not room(taken, (), "2001:db8::ffff")
    assert room(taken, (), "2001:db8:0:1::1")
    assert room(taken, (), "10.0.0.1")
    assert room(taken, ("2001:db8::ffff",), "2001:db8::ffff")


@pytest.mark.system
async def test_a_request_with_two_lengths_is_refused(tmp_path: Path) -> None:
    """A proxy before the console may take the other one, and see a second request in the body."""
    both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    async with served(tmp_path) as port:
        answer = await said(port, f"POST /healthz HTTP/1.1\r\nHost: localhost\r\n{both}")
    assert answer.startswith(b"HTTP/1.1 400")


@pytest.mark.system
@pytest.mark.parametrize("by", ["plain", "tls"])
async def test_one_address_cannot_take_all_lines_by_asking_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Another address is served meanwhile, and so are lines on which something was asked."""
    monkeypatch.setattr(front_server, "MOST_WITHOUT_REQUEST", 3)
    head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    async with served(tmp_path, tls(tmp_path) if by == "tls" else "") as port:
        if by == "plain":
            asked = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for reader, writer in asked:
                writer.write(f"{head}\r\n".encode())
                assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        silent[0][1].write(head.encode())  # half a question is none
        assert await said(port, f"{head}Connection: close\r\n\r\n") == b""
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        if by == "plain":
            other[1].write(f"{head}\r\n".encode())
            assert await other[0].readline() == b"HTTP/1.1 200 OK\r\n"
            silent[1][1].write(f"{head}\r\n".encode())
            assert await silent[1][0].readline() == b"HTTP/1.1 200 OK\r\n"
            assert b"alive" in await said(port, f"{head}Connection: close\r\n\r\n")  # there is room again
        for _, writer in (*silent, other, *(asked if by == "plain" else ())):
            writer.close()


@pytest.mark.system
async def test_a_proxy_may_have_more_lines_than_one_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_server, "MOST_WITHOUT_REQUEST", 3)
    async with served(tmp_path, 'proxies = ["127.0.0.0/8"]\n') as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        assert b"alive" in await said(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        for _, writer in silent:
            writer.close()


@pytest.mark.system
async def test_connection_without_a_tls_handshake_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that no page and no protocol of ours hears of the line."""
    monkeypatch.setattr(front_server, "REQUEST_TIMEOUT_S", 2.0)
    async with served(tmp_path, tls(tmp_path)) as port:
        assert await said(port, "") == b""
        assert await said(port, "\x16\x03\x01") == b""  # the beginning of a greeting
        await alive_by_tls(tmp_path, port)


@pytest.mark.system
async def test_connections_without_a_tls_handshake_count_toward_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_server, "MOST_CONNECTIONS", 3)
    async with served(tmp_path, tls(tmp_path)) as port:
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert await said(port, "") == b""  # at once
        lines[0][1].close()
        await alive_by_tls(tmp_path, port)
        for _, writer in lines:
            writer.close()


@pytest.mark.system
async def test_connection_without_a_tls_handshake_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six hundred of them, and the service may have 256 MiB."""
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)
    async with served(tmp_path, tls(tmp_path)) as port:
        tracemalloc.start()
        try:
            lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
            assert b"alive" in await asyncio.to_thread(by_tls, tmp_path, port)  # they were met
            assert tracemalloc.get_traced_memory()[0] < 20 * 128 * 1024
        finally:
            tracemalloc.stop()
        for _, writer in lines:
            writer.close()


def tls(folder: Path) -> str:
    """The settings for it, with a certificate of our own."""
    certificate, key = Authority(folder, "ours").sign("pit")
    return f'certificate = "{certificate}"\nkey = "{key}"\n'


async def alive_by_tls(folder: Path, port: int) -> None:
    """A page is answered, sooner or later: a handshake on a busy computer may be too slow, or have no room yet."""
    async with asyncio.timeout(PATIENCE):
        answer = b""
        while b"alive" not in answer:
            with contextlib.suppress(OSError):
                answer = await asyncio.to_thread(by_tls, folder, port)


def by_tls(folder: Path, port: int) -> bytes:
    """The answer of a page."""
    context = ssl.create_default_context(cafile=folder / "ours.crt")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as line,
    ):
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: line.recv(4096), b""))
