"""Limits for a console without a reverse proxy: client address, host name, number of connections, time for a request.

Each part exists because the libraries have no equivalent:

- `Hosts`: Starlette's TrustedHostMiddleware cannot accept every IP address and refuse all foreign names.
- `Forwarded`: uvicorn's accepts any text as an address, which would then be in the journal of actions, and does not
  recognise a proxy by its address mapped into IPv6.
- `ConnectionLimiter`: uvicorn's `limit_concurrency` answers 503 only after TLS, and counts no addresses.
- `HeaderTimeoutProtocol`: uvicorn limits the time between two requests, not the time for the head of one.
"""

import asyncio
import ipaddress
import socket
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from daemon.config.model import Console

__all__ = ["ConnectionLimiter", "Forwarded", "HeaderTimeoutProtocol", "Hosts", "names_of"]

# Seconds for the TLS handshake, and for the head of a request after the handshake or the previous answer.
REQUEST_TIMEOUT_S = 10.0
# Seconds after which the kernel closes the connection of a client that does not read its answer.
UNREAD_ANSWER_TIMEOUT_S = 60.0
# Connections at once. Each live page holds one, and files need room below the limit of 1024 descriptors.
MOST_CONNECTIONS = 600
# Connections of one address without a request so far; a browser opens six.
MOST_WITHOUT_REQUEST = 32
# Connections of one address from which somebody signed in; many people may be behind one router.
MOST_OF_KNOWN = 300
# Connections from addresses without a signed-in user: of one address, of one IPv6 network, and of all together.
MOST_OF_ADDRESS = 64
MOST_OF_NETWORK = 225
MOST_UNKNOWN = 450
# Number of kept addresses from which somebody signed in.
MOST_REMEMBERED = 1000
# Bytes that asyncio allocates per TLS connection: one record. The default of 256 KiB would be 150 MiB for all.
TLS_BUFFER_BYTES = 16 * 1024
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_ELSEWHERE = "this console has another host name: the one in [console] url, which must be the one that people type\n"


def names_of(console: Console) -> frozenset[str]:
    """The host names accepted from browsers, besides any IP address."""
    url = urlsplit(console.url).hostname or ""
    return frozenset({"localhost", console.listen.lower(), socket.gethostname().lower(), url} - {""})


class Hosts:
    """Refuses requests for other host names.

    A foreign page can resolve its own name to this computer and send requests from a local browser (DNS rebinding);
    those carry the foreign name. IP addresses are accepted; a request without a host does not come from a browser.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        """`names` as from `names_of`."""
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421; 400 for two lengths: a proxy may use the other one."""
        app = self._app
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "content-length" in headers and "transfer-encoding" in headers:
            app = PlainTextResponse("two lengths of one request\n", 400, {"connection": "close"})
        elif scope["type"] == "http" and not self._ours(headers.get("host", "")):
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
    """Takes the client address from X-Forwarded-For, only from configured proxies: clients can forge it.

    Each proxy appends the address of its client; earlier entries are unverified. If the entry is no address, the proxy
    itself counts as the client.
    """

    def __init__(self, app: ASGIApp, proxies: Iterable[str]) -> None:
        """`proxies` are addresses or networks."""
        self._app = app
        self._proxies = [ipaddress.ip_network(one) for one in proxies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http" and scope["client"] and self._ours(address := _address(scope["client"][0])):
            headers = Headers(scope=scope)
            for entry in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
                before = _address(entry.strip())
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
    """The address, None if it is none; also with an interface name (IPv6 zone), which may be any text."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv4Address):
        return found
    return None if found.scope_id else found.ipv4_mapped or found


def _network(host: str) -> str:
    """The network of an IPv6 address, in which a computer can choose its address; otherwise the address."""
    address = _address(host) if ":" in host else None
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed, 128)).supernet(new_prefix=64))
    return host


class ConnectionLimiter(socket.socket):
    """A listening socket that closes excess connections before the TLS handshake.

    Each address has a share, with or without requests; only a proxy may take all places. The last places are kept for
    addresses from which somebody signed in.
    """

    def __init__(self, family: int, proxies: Iterable[str] = ()) -> None:
        """A TCP socket of that family. `proxies` are addresses or networks."""
        super().__init__(family, socket.SOCK_STREAM)
        self._connections: dict[tuple[Any, ...], socket.socket] = {}
        self._known: OrderedDict[str, None] = OrderedDict()
        self._without_request: dict[tuple[Any, ...], socket.socket] = {}
        self._proxies = [ipaddress.ip_network(one) for one in proxies]

    def request_received(self, peer: tuple[Any, ...]) -> None:
        """Record that the head of a request arrived on the connection from `peer`."""
        self._without_request.pop(peer[:2], None)

    def signed_in(self, host: str) -> None:
        """Record a request of a signed-in user from the address `host`."""
        self._known[host] = None
        self._known.move_to_end(host)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next accepted connection. Raises ConnectionAbortedError for a refused one, as if the client closed it."""
        connection, address = super().accept()
        self._connections = {peer: one for peer, one in self._connections.items() if one.fileno() >= 0}
        self._without_request = {peer: one for peer, one in self._without_request.items() if one.fileno() >= 0}
        if len(self._connections) >= MOST_CONNECTIONS or not self._may_connect(address[0]):
            connection.close()
            raise ConnectionAbortedError
        self._connections[address[:2]] = connection
        self._without_request[address[:2]] = connection
        # A client that does not read its answer also holds a connection: the kernel closes it after this time.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNREAD_ANSWER_TIMEOUT_S * 1000))
        return connection, address

    def _may_connect(self, host: str) -> bool:
        """Whether that address may have one more connection."""
        address = _address(host)
        if address is not None and any(address in proxy for proxy in self._proxies):
            return True
        if sum(peer[0] == host for peer in self._without_request) >= MOST_WITHOUT_REQUEST:
            return False
        if host in self._known:
            return [peer[0] for peer in self._connections].count(host) < MOST_OF_KNOWN
        unknown = [peer[0] for peer in self._connections if peer[0] not in self._known]
        network = _network(host)
        of_network = sum(_network(one) == network for one in unknown)
        return len(unknown) < MOST_UNKNOWN and of_network < MOST_OF_NETWORK and unknown.count(host) < MOST_OF_ADDRESS


class HeaderTimeoutProtocol(H11Protocol):
    """Closes a connection that sends no complete head of a request within REQUEST_TIMEOUT_S."""

    _late: asyncio.TimerHandle | None = None
    on_first_request: Callable[[tuple[Any, ...]], None] | None = None
    """Reports the address when the head of the first request is complete."""

    def data_received(self, data: bytes) -> None:
        """Bytes of a request arrived."""
        super().data_received(data)
        if self.on_first_request is not None and self.cycle is not None and self.client is not None:
            self.on_first_request(self.client)
            self.on_first_request = None

    def connection_made(self, transport: Any) -> None:
        """A client connected."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """The next request may come on the same connection."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client disconnected."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(REQUEST_TIMEOUT_S, self._look)

    def _look(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        if cycle is None or cycle.response_complete:
            self.transport.close()
