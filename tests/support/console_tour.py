"""A walk through everything that a console says to anybody, for several test files."""

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import ASGIApp

from daemon.console.app import ConsoleProcess


def fragments(house: ConsoleProcess) -> list[str]:
    """Every fragment of every page, by its name."""
    site = house.site
    kinds = ("tile", "round", "result", "history", "board", "devices")
    of_tables = [f"{kind}/{table}" for table in site.tables for kind in kinds]
    of_tables += [f"alerts/table/{table}" for table in site.tables]
    of_devices = [
        f"{kind}/{table}/{name}" for table, name in site.devices for kind in ("device", "devicelog", "tracing")
    ]
    parts = ("tile", "head", "books", "wins", "changes", "terms", "rounds", "entries", "ready")
    of_pools = [f"pool{part}/{pool.name}" for pool in house.pools for part in parts]
    ours = ["top", "edges", "counts", "alerts", "alerts/worst", "alerts/wall", "bundle"]
    return [*ours, *of_tables, *of_devices, *of_pools]


def streams(house: ConsoleProcess) -> list[str]:
    """The path of every stream of events, the first with all fragments."""
    places = [f"/table/{quote(table)}/device/{quote(name)}/trace/stream" for table, name in house.site.devices]
    live = "/live?" + urlencode([("f", name) for name in fragments(house)])
    return [live, *places, *(f"/dealer/{quote(table)}/stream" for table in house.dealers.units)]


def pages(house: ConsoleProcess, rounds: Iterable[tuple[str, str]] = ()) -> list[str]:
    """The path of every page that is looked at by GET; `rounds` by table and name."""
    site = house.site
    found = ["/", "/login", "/account", "/wall", "/users", "/tokens", "/support", "/bundle", "/tables", "/favicon.ico"]
    found += ["/alerts", "/alerts.csv", "/actions", "/actions.csv", "/metrics", "/healthz", "/readyz", "/nowhere"]
    found += ["/jackpots", *(f"/jackpots/{quote(pool.name)}" for pool in house.pools)]
    found += [f"/jackpots/{quote(pool.name)}/{page}" for pool in house.pools for page in ("entries", "wins")]
    for table in site.tables:
        place = f"/table/{quote(table)}"
        found += [place, f"{place}/fairness", f"{place}/fairness?span=all", f"/dealer/{quote(table)}"]
    for table, name in site.devices:
        place = f"/table/{quote(table)}/device/{quote(name)}"
        found += [place, f"{place}/trace", f"{place}/trace/text"]
    return [*found, *(f"/table/{quote(table)}/round/{quote(name)}" for table, name in rounds)]


async def bundle_made(house: ConsoleProcess) -> None:
    """Wait for the support bundle that is being made."""
    async with asyncio.timeout(60):
        while house.bundles.busy:  # noqa: ASYNC110 - it is made in a thread
            await asyncio.sleep(0.01)


class Said:
    """An answer, as far as it was waited for."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    @property
    def all(self) -> bytes:
        """Headers and body."""
        return b"\n".join([*(b"%s: %s" % header for header in self.headers), b"", self.body])


async def ask(
    app: ASGIApp, path: str, method: str = "GET", headers: Iterable[tuple[str, str]] = (), body: bytes = b""
) -> Said:
    """What `app` answers; of a stream its first piece."""
    asking = _Asking(body)
    said, running = await _asked(app, path, method, headers, asking)
    asking.gone.set()
    await asyncio.wait([running], timeout=5)  # a stream hears that we are gone
    assert running.done(), path
    running.result()
    return said


async def follow(app: ASGIApp, path: str, headers: Iterable[tuple[str, str]] = ()) -> tuple[Said, asyncio.Task[None]]:
    """A stream: what is said grows until the task ends."""
    return await _asked(app, path, "GET", headers, _Asking(b""))


class _Asking:
    """A browser's side of one request."""

    def __init__(self, body: bytes) -> None:
        self.said = Said()
        self.heard = asyncio.Event()
        self.gone = asyncio.Event()
        self._body: bytes | None = body

    async def receive(self) -> dict[str, Any]:
        if self._body is None:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        said = self.said
        match message["type"]:
            case "http.response.start":
                said.status, said.headers = message["status"], list(message["headers"])
            case "http.response.body":
                said.body += message.get("body", b"")
                if not message.get("more_body") or (said.body and b"text/event-stream" in said.all):
                    self.heard.set()


async def _asked(
    app: ASGIApp, path: str, method: str, headers: Iterable[tuple[str, str]], asking: _Asking
) -> tuple[Said, asyncio.Task[None]]:
    """Once all is said, or of a stream the first piece; and what answers still."""
    place, _, query = path.partition("?")
    given = {"host": "pit.test"} | dict(headers)
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": place,
        "raw_path": place.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("10.0.0.7", 4711),
        "server": ("10.0.0.1", 8080),
    }

    async def answer() -> None:
        await app(scope, asking.receive, asking.send)

    running = asyncio.create_task(answer())
    heard = asyncio.create_task(asking.heard.wait())
    await asyncio.wait([running, heard], return_when=asyncio.FIRST_COMPLETED)
    heard.cancel()
    return asking.said, running
