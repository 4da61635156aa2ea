"""Limits of an edge that stands alone, without a reverse proxy: who asks, for which host, how many, how long.

Each part is here because the libraries have none that does the same:

- `Hosts`: Starlette's TrustedHostMiddleware cannot take every address in figures and refuse every other name.
- `Forwarded`: uvicorn's takes any text for an address, which then stands in the journal of actions, and does not know a
  proxy by its address mapped into IPv6.
- `ConnectionLimiter`: uvicorn's `limit_concurrency` answers 503 only after TLS, and counts no addresses.
- `HeaderTimeoutProtocol`: uvicorn limits the time between two requests, not the time for the head of one.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.config.model import Console

__all__ = ["ConnectionLimiter", "Forwarded", "HeaderTimeoutProtocol", "Hosts", "names_of"]

# Seconds for the greetings of TLS, and then for the head of a request, from there or from the answer before.
REQUEST_TIMEOUT_S = 10.0
UNREAD = 60.0
# All at once: pages that follow hold one each, and files need room below the 1024 that a process may have open.
MOST_CONNECTIONS = 600
# Of one address, lines on which nothing was asked yet: a browser opens six.
MOST_UNASKED = 32
# Bytes that asyncio holds for each line of TLS from its first moment, a record's; else 256 KiB, 150 MiB for all.
ROOM = 16 * 1024
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_ELSEWHERE = "this console has another name: [console] url says which, and should say what people type\n"


def names_of(console: Console) -> frozenset[str]:
    """By which names a browser may ask for us, besides any address in figures."""
    url = urlsplit(console.url).hostname or ""
    return frozenset({"localhost", console.listen.lower(), socket.gethostname().lower(), url} - {""})


class Hosts:
    """Answers only what was meant for us.

    A page elsewhere can let its own name point to this computer and ask from within a browser here (DNS rebinding): it
    then asks by that name. An address in figures is no name, and who says none is no browser.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        """`names` as from `names_of`."""
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """To the pages, or 421."""
        app = self._app
        if scope["type"] == "http" and not self._ours(Headers(scope=scope).get("host", "")):
            app = PlainTextResponse(_ELSEWHERE, 421)
        await app(scope, receive, send)

    def _ours(self, host: str) -> bool:
        if not host:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Forwarded:
    """Tells the pages whom a proxy speaks for, where it is one of ours: anybody else could name whom he likes.

    Each proxy adds whom it saw at the end; what stands before that is somebody's word. What is no address stands for
    nobody: the proxy itself is taken for who asks.
    """

    def __init__(self, app: ASGIApp, proxies: Iterable[str]) -> None:
        """`proxies` are addresses or networks."""
        self._app = app
        self._proxies = [ipaddress.ip_network(one) for one in proxies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """To the pages."""
        if scope["type"] == "http" and scope["client"] and self._ours(address := _address(scope["client"][0])):
            headers = Headers(scope=scope)
            for said in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
                before = _address(said.strip())
                if before is None or not self._ours(address):
                    break
                address = before
            scheme = headers.get("x-forwarded-proto", "").strip().lower()
            port = scope["client"][1]
            scope = {**scope, "client": (str(address), port)}
            if scheme in ("http", "https"):
                scope["scheme"] = scheme
        await self._app(scope, receive, send)

    def _ours(self, address: _Address | None) -> bool:
        return address is not None and any(address in proxy for proxy in self._proxies)


def _address(text: str) -> _Address | None:
    """An address without the name of a network card, which may be anything."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv4Address):
        return found
    return None if found.scope_id else found.ipv4_mapped or found


class ConnectionLimiter(socket.socket):
    """A socket to listen at: one too many at once is turned away before a word, of TLS too.

    One address may not take all places by opening lines and asking nothing, unless it is a proxy's.
    """

    def __init__(self, family: int, proxies: Iterable[str] = ()) -> None:
        """TCP, of that family. `proxies` are addresses or networks."""
        super().__init__(family, socket.SOCK_STREAM)
        self._lines: list[socket.socket] = []
        self._unasked: dict[tuple[Any, ...], socket.socket] = {}
        self._proxies = [ipaddress.ip_network(one) for one in proxies]

    def asked(self, peer: tuple[Any, ...]) -> None:
        """A whole question came from there."""
        self._unasked.pop(peer[:2], None)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next; who is turned away is as one who went by himself."""
        line, address = super().accept()
        self._lines = [one for one in self._lines if one.fileno() >= 0]
        self._unasked = {peer: one for peer, one in self._unasked.items() if one.fileno() >= 0}
        if len(self._lines) >= MOST_CONNECTIONS or not self._room(address[0]):
            line.close()
            raise ConnectionAbortedError
        self._lines.append(line)
        self._unasked[address[:2]] = line
        # Who asks and does not read holds it, too: the kernel ends what nobody has taken for so long.
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNREAD * 1000))
        return line, address

    def _room(self, host: str) -> bool:
        """Whether that address may have one more line on which nothing was asked."""
        if sum(peer[0] == host for peer in self._unasked) < MOST_UNASKED:
            return True
        address = _address(host)
        return address is not None and any(address in proxy for proxy in self._proxies)


class HeaderTimeoutProtocol(H11Protocol):
    """Closes a connection that sends no complete request within REQUEST_TIMEOUT_S."""

    _late: asyncio.TimerHandle | None = None
    on_asked: Callable[[tuple[Any, ...]], None] | None = None
    """Hears from where the first whole question came."""

    def data_received(self, data: bytes) -> None:
        """A piece of a question."""
        super().data_received(data)
        if self.on_asked is not None and self.cycle is not None and self.client is not None:
            self.on_asked(self.client)
            self.on_asked = None

    def connection_made(self, transport: Any) -> None:
        """Somebody is at the door."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """The next question may come by the same line."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """They went."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(REQUEST_TIMEOUT_S, self._look)

    def _look(self) -> None:
        asked: Any = self.cycle  # None before the first
        if asked is None or asked.response_complete:
            self.transport.close()
