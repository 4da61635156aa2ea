"""The console process: follows the site over MQTT and serves the pages."""

import asyncio
import contextlib
import math
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path

import uvicorn
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon import logs
from daemon.broker.connection import Connect
from daemon.config.model import Config, Console, Table, broker_of
from daemon.console import assets, front_server
from daemon.console.alerts import metrics
from daemon.console.alerts.incidents import Incidents
from daemon.console.alerts.pending import Pending, devices_inside
from daemon.console.alerts.pools import PoolAlerts
from daemon.console.alerts.webhooks import Webhooks
from daemon.console.auth.access import Access, Right
from daemon.console.context import HERE, ConsoleContext, Redirect
from daemon.console.fairness.fairness import Fairness
from daemon.console.front_server import Forwarded, Hosts, names_of
from daemon.console.pages import (
    access as access_pages,
    alerts,
    books_csv,
    devices,
    exports,
    fairness as fair_pages,
    fleet as fleet_pages,
    floor as floor_pages,
    jackpots,
    labels,
    law,
    ledger,
    pit,
    report,
    rounds,
    setup,
    sheet,
    support,
    table as table_pages,
    timeline,
    trace,
    web,
)
from daemon.console.pages.dealer import Dealers
from daemon.console.site.actions import CONSOLE, Actions, take_up
from daemon.console.site.counts import Counts
from daemon.console.site.day import Days
from daemon.console.site.past import Past
from daemon.console.site.pools import Pools
from daemon.console.site.rounds import Rounds
from daemon.console.site.signs import Signs
from daemon.console.site.store import BadStore, Store
from daemon.console.site.watched import Watched
from daemon.journal import retention as keeping
from daemon.journal.store import BadJournal, Journal
from daemon.read_model import SiteState
from daemon.words import words

__all__ = ["CannotListen", "ConsoleProcess", "make_app", "open_console", "serve"]

SHUTDOWN_GRACE_S = 3
# Seconds until a journal without room is checked again.
RETRY_S = 30.0
# Content Security Policy: no foreign or inline content, and no framing.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
MENU: tuple[tuple[str, str, Right], ...] = (
    ("/", "menu.pit", "look"),
    ("/floor", "menu.floor", "floor"),
    ("/dealer", "menu.dealer", "deal"),
    ("/jackpots", "menu.jackpots", "books"),
    ("/alerts", "menu.alerts", "look"),
    ("/rounds", "menu.rounds", "export"),
    ("/reports", "menu.reports", "floor"),
    ("/law", "law.title", "export"),
    ("/support", "menu.support", "bundle"),
    ("/users", "menu.users", "vouch"),
    ("/tokens", "menu.tokens", "tokens"),
    ("/actions", "menu.actions", "actions"),
)


class _Headers:
    """Adds security headers to every response; `secure`: also Strict-Transport-Security."""

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        self._headers = HEADERS | ({"strict-transport-security": "max-age=31536000"} if secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in self._headers.items()
                        if name.encode() not in known
                    ),
                ]
            await send(message)

        await self._app(scope, receive, with_headers)


class ConsoleProcess:
    """The parts of the console, their connections, and their tasks."""

    def __init__(
        self,
        config: Config,
        store: Store,
        journal: Journal,
        now: Callable[[], datetime],
        connect: Connect | None = None,
        *,
        full: str = "",
    ) -> None:
        """`journal`: the journal of actions; `full`: why it may not be written. Raises BadStore, BadWebhook, BadKey."""
        self.config = config
        self.now = now
        self.actions = Actions(journal, store, now=now, full=full)
        self.access = Access(config.console, store, self.actions, now)
        self.answers = web.Answers()
        self.site = SiteState.of_console(replace(config, mqtt=broker_of(config, config.console)), now, connect)
        self.site.on_reply.append(self.answers.received)
        self.past, self.rounds = Past(store, self.site), Rounds(store, self.site, config.console.rounds_kept)
        self.pools = Pools(self.site, now)
        inside = partial(devices_inside, self.site)
        self.webhooks = Webhooks(store, config.console.webhook, config.site.name, now, inside=inside)
        self.incidents = Incidents(
            store,
            edges=_expected(config),
            rules=config.rules.name,
            jackpots=config.jackpots.name,
            notifier=self.webhooks,
        )
        self.context = ConsoleContext(
            config, store, now, actions=self.actions, access=self.access, site=self.site, incidents=self.incidents
        )
        self.live = self.context.live
        self.site.on_change.append(self.live.changed)
        self.pending = Pending(self.incidents, self.site)
        self.site.on_alert.append(self.pending.on_alert)
        self.watch = alerts.Watch(self.context, self.pending)
        self.pool_alerts = PoolAlerts(self.pools, self.incidents)
        self.orders = jackpots.Orders(self.context, self.pools)
        self.fairness = Fairness(store, now)
        self.site.on_event.append(self.fairness.on_event)
        self.site.on_result.append(self.fairness.on_result)
        self.ready = metrics.Ready(self.site, self.incidents, store, now)
        figures = metrics.Figures(
            sessions=lambda: len(self.access.users.sessions()),
            streams=lambda: self.live.viewers,
            gaps=lambda: self.site.gaps,
            lag=lambda: self.watch.lag,
            disk_free=self.watch.disk_free,
        )
        self.metrics = metrics.Metrics(self.site, self.incidents, self.webhooks, self.pools, figures, now)
        self.dealers = Dealers(self.context, self.past.paid, self.pools)
        self.decisions = table_pages.Decisions(self.context, self.dealers)
        self.counts, self.signs = Counts(store), Signs(self.site)
        self.floor = floor_pages.Floor(self.context, self.rounds, self.counts)
        self.sheets = sheet.Sheets(self.context, self.dealers, self.counts)
        self.days = Days(store, self.site, self.actions, now)
        self.bundles, self.watched = support.Bundles(self.context), Watched(store, self.site, now)
        self.context.share(menu=MENU, dealers=self.dealers)
        self._add_fragments()

    def _add_fragments(self) -> None:
        for fragment in (
            *web.fragments(self.context, self.days),
            *pit.fragments(self.context),
            *fleet_pages.fragments(self.context),
            *self.decisions.fragments(),
            *self.sheets.fragments(),
            *self.floor.fragments(),
            *timeline.fragments(self.context, self.days),
            *alerts.fragments(self.context),
            *jackpots.fragments(self.context, self.pools),
            *trace.fragments(self.context),
            *support.fragments(self.context, self.bundles),
        ):
            self.live.add(fragment)

    def close(self) -> None:
        """End all pages and threads."""
        self.live.close()
        self.bundles.close()
        self.access.close()

    async def run(self) -> None:
        """Follow the site until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.site.run("feltd-console-" + self.site.site))
            group.create_task(self.past.run())
            group.create_task(self.days.run())
            group.create_task(self.watched.run())
            group.create_task(self.rounds.run())
            group.create_task(self.watch.run())
            group.create_task(self.signs.run())
            group.create_task(self.sheets.run())
            group.create_task(self.pools.run())
            group.create_task(self.pool_alerts.run(self.now))
            group.create_task(self.webhooks.run())
            group.create_task(self.fairness.run(self.incidents.begin, self.incidents.end))

    async def keep(self) -> None:
        """Maintain the journal of actions until cancelled. Raises BadJournal, except when there is no room.

        Its alert is an incident of the console itself and needs neither the broker nor a right to publish.
        """
        journal, how, actions = self.actions.journal, self.config.journal, self.actions
        log = logs.get(console=self.config.site.name)

        def update_incident(_topic: str, _value: bytes) -> None:
            """Update the incident of a nearly full journal, in place of an alert on the broker."""
            self.incidents.journal(keeping.room(journal, how).share, self.now())

        once = replace(self.config, table=(Table(name=CONSOLE),))  # alerts are reported by table
        said = False
        while True:
            if actions.full:
                if not said:
                    log.error("console.full", reason=actions.full)
                said = True
                self.incidents.journal(1.0, self.now())
                await asyncio.sleep(RETRY_S)
                actions.full = take_up(journal, how)
                continue
            if said:
                log.info("console.writable")
            said = False
            try:
                await keeping.kept(asyncio.sleep(math.inf), journal, once, CONSOLE, update_incident, log)
            except* BadJournal as errors:
                if keeping.room(journal, how).share < keeping.URGENT:
                    raise
                actions.full = str(logs.first(errors))


def _expected(config: Config) -> list[str]:
    """The clients that must be online: the edge of the configured tables, the rules where rounds are resolved, and the
    jackpots where pools are configured.
    """
    edge = [config.edge.name] if any(table.device for table in config.table) else []
    rules = [config.rules.name] if any(table.ruleset for table in config.table) else []
    return [*edge, *rules, *([config.jackpots.name] if config.jackpot else [])]


# ---- the process


def make_app(console: ConsoleProcess) -> Starlette:
    """All pages."""
    context = console.context

    async def redirected(_request: Request, error: Exception) -> Response:
        assert isinstance(error, Redirect)
        return RedirectResponse(error.to, 303)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and request.method == "GET":
            return RedirectResponse(_page_above(request), 303)
        detail = error.detail
        if detail in words.catalog("en"):
            detail = words.say(context.lang(request), detail)
        elif detail == HTTPStatus(error.status_code).phrase:  # in English; the title of the page names the error
            detail = ""
        return context.page(request, "error.html", error.status_code, code=error.status_code, detail=detail)

    async def unwritten(request: Request, error: Exception) -> Response:
        """The error page for a full or failing disk. The action was not executed; reading still works."""
        logs.get(console=console.config.site.name).error("console.unwritten", path=request.url.path, reason=str(error))
        detail = words.say(context.lang(request), "site.unwritten")
        return context.page(request, "error.html", 503, code=503, detail=detail)

    return Starlette(
        routes=_routes(console, context),
        middleware=[Middleware(_Headers, secure=console.access.secure)],
        exception_handlers={
            Redirect: redirected,
            HTTPException: refused,
            BadStore: unwritten,
            BadJournal: unwritten,
        },
    )


def _routes(console: ConsoleProcess, context: ConsoleContext) -> list[BaseRoute]:
    """All pages."""
    return [
        *web.routes(context, console.answers),
        *pit.routes(context),
        *console.decisions.routes(),
        *labels.routes(context),
        *fleet_pages.routes(context),
        *setup.routes(context),
        *access_pages.routes(context),
        *trace.routes(context, console.answers),
        *support.routes(context, console.bundles),
        *books_csv.routes(context, console.pools),
        *jackpots.routes(context, console.pools, console.orders),
        *console.dealers.routes(),
        *console.floor.routes(),
        *ledger.routes(context),
        *console.sheets.routes(),
        Route("/favicon.ico", lambda _request: FileResponse(HERE / "static/icon.svg")),
        *alerts.routes(context, console.watch),
        *report.routes(context),
        *devices.routes(context, console.watched, console.fairness),
        *law.routes(context),
        *rounds.routes(context, console.rounds),
        *exports.routes(context, console.rounds),
        *fair_pages.routes(context, console.fairness),
        *metrics.routes(console.access, console.metrics, console.ready),
        assets.route,
    ]


def _page_above(request: Request) -> str:
    """The page to which the form of this address belongs: the nearest address above it that can be read."""
    path = request.url.path
    while path.strip("/"):
        path = path.rpartition("/")[0] or "/"
        if any(route.matches({**request.scope, "path": path})[0] is Match.FULL for route in request.app.routes):
            return path
    return "/"


class CannotListen(Exception):
    """The pages cannot be served there. The message names key, path or address."""


def _check_certificate(console: Console) -> None:
    """Raises CannotListen."""
    if not console.certificate:
        return
    for key, file in (("certificate", console.certificate), ("key", console.key)):
        try:
            Path(file).open("rb").close()
        except OSError as error:
            raise CannotListen(f"console.{key}: {file}: {error.strerror}") from error
    try:
        # A key with a password would prompt for it at the terminal of a service.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(console.certificate, console.key, password="")
    except (ssl.SSLError, OSError) as error:
        files = f"console.certificate: {console.certificate}, console.key: {console.key}"
        raise CannotListen(f"{files}: no certificate and its key in PEM: {error.strerror or error}") from error


def _bound(console: Console) -> socket.socket:
    """Raises CannotListen."""
    family = socket.AF_INET6 if ":" in console.listen else socket.AF_INET
    listening = front_server.ConnectionLimiter(family, console.proxies)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((console.listen, console.port))
    except (OSError, UnicodeError) as error:
        listening.close()
        said = error.strerror if isinstance(error, OSError) else "not a valid host name"
        remedy = "take an address of this computer and a port that is free, under [console]"
        raise CannotListen(f"console.listen: {console.listen}:{console.port}: {said}; {remedy}") from error
    return listening


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with a shorter TLS handshake timeout than asyncio's."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's startup with given sockets; uvicorn has no option for the TLS handshake timeout."""
        config, loop = self.config, asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            patient = front_server.HeaderTimeoutProtocol(config, self.server_state, self.lifespan.state)
            if sockets and isinstance(sockets[0], front_server.ConnectionLimiter):
                patient.on_first_request = sockets[0].request_received
                patient.app_state["signed_in"] = sockets[0].signed_in
            return patient

        tls_timeout_s = front_server.REQUEST_TIMEOUT_S if config.ssl else None
        if config.ssl:
            sslproto.SSLProtocol.max_size = front_server.TLS_BUFFER_BYTES
        self.servers = [
            await loop.create_server(
                protocol,
                sock=sock,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=tls_timeout_s,
                ssl_shutdown_timeout=tls_timeout_s,
            )
            for sock in sockets or ()
        ]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@contextlib.asynccontextmanager
async def open_console(
    config: Config,
    journal: Journal,
    now: Callable[[], datetime] = utc_now,
    connect: Connect | None = None,
    *,
    full: str = "",
) -> AsyncIterator[ConsoleProcess]:
    """The console with its store. Raises BadStore, BadWebhook, BadKey."""
    store = Store(Path(config.console.store))
    try:
        opened = ConsoleProcess(config, store, journal, now, connect, full=full)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        store.close()


async def serve(
    config: Config, journal: Journal, *, full: str = "", on_listening: Callable[[int], None] = lambda _port: None
) -> None:
    """Follow the site and serve its pages until cancelled. `on_listening` is called with the port. `full`: as in the
    process.

    Raises BadStore, BadJournal, BadWebhook, BadKey, BadDealer, CannotListen.
    """
    console = config.console
    _check_certificate(console)
    async with (
        open_console(config, journal, full=full) as opened,
        opened.dealers.serve(),
        contextlib.AsyncExitStack() as stack,
    ):
        settings = uvicorn.Config(
            Forwarded(Hosts(make_app(opened), names_of(console)), console.proxies),
            console.listen,
            console.port,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            http=front_server.HeaderTimeoutProtocol,
            ws="none",
            proxy_headers=False,  # `Forwarded` does this, and checks the address
            timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
            ssl_certfile=console.certificate or None,
            ssl_keyfile=console.key or None,
        )
        listening = stack.enter_context(contextlib.closing(_bound(console)))
        listening.listen(128)  # connections are accepted before the start is reported
        port: int = listening.getsockname()[1]
        server = _Server(settings)
        logs.get(console=config.site.name).info("console.started", listen=console.listen, port=port)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(opened.run())
            keeper = group.create_task(opened.keep())
            serving = group.create_task(server.serve([listening]))
            on_listening(port)
            try:
                await asyncio.wait([serving])
            finally:
                server.should_exit = True
                opened.live.close()
                await asyncio.wait([serving], timeout=SHUTDOWN_GRACE_S + 1)
                following.cancel()
                keeper.cancel()
