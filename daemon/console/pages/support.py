"""The page of the support bundle, which is made in a thread, one at a time, while the page shows the progress.

A bundle is kept for KEPT_S seconds, or until the next one is begun. A user who may make one may also cancel and
download it.
"""

import asyncio
import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from daemon import logs
from daemon.console.alerts.records import Filter
from daemon.console.auth.access import User, may
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.bundle import STEPS, Cancelled, Given, known_logs, make
from daemon.words import words

__all__ = ["Bundles", "fragments", "routes"]

INCIDENTS = 500
KEPT_S = 600.0
SHOWN_STEPS = tuple(step for step in STEPS if step != "journals")  # this process may not read them
State: TypeAlias = Literal["running", "ready", "failed", "cancelled"]


class Job(Struct, frozen=True):
    """A bundle under way or finished. `part`: the finished part, 0 to 1; `why`: the reason of a failure."""

    by: str
    began: datetime
    path: Path
    name: str
    state: State = "running"
    step: str = SHOWN_STEPS[0]
    part: float = 0.0
    size: int = 0
    why: str = ""


class Bundles:
    """The one bundle of a console."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._log = logs.get(console="bundle")
        self._pool = ThreadPoolExecutor(1, "bundle")
        self._cancel = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self.job: Job | None = None

    @property
    def busy(self) -> bool:
        """Whether one is being made."""
        return self.job is not None and self.job.state == "running"

    def begin(self, user: User) -> None:
        """Begin one; the one before is deleted."""
        assert not self.busy
        self.discard()
        context = self._context
        given = self._given()
        handle, path = tempfile.mkstemp(prefix="feltd-bundle-", suffix=".zip")
        os.close(handle)
        name = f"feltd-{context.config.site.name}-{given.made:%Y%m%dT%H%M%SZ}.zip"
        self._loop = asyncio.get_running_loop()
        self._cancel.clear()
        self._set(Job(user.name, given.made, Path(path), name))
        self._pool.submit(self._make, Path(path), given).add_done_callback(self._done)

    def cancel(self) -> None:
        """End the one under way, or delete the finished one."""
        if self.busy:
            self._cancel.set()
        else:
            self.discard()

    def discard(self) -> None:
        """Delete the finished bundle."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self.job is not None:
            self.job.path.unlink(missing_ok=True)
            self._set(None)

    def close(self) -> None:
        """End the thread, and leave no file."""
        self._cancel.set()
        self._pool.shutdown()
        if self.job is not None:
            self.job.path.unlink(missing_ok=True)

    # ---- in the thread

    def _make(self, path: Path, given: Given) -> int:
        config = self._context.config
        make(path, config, replace(given, logs=known_logs(config.console.journal)), self._at)
        return path.stat().st_size

    def _at(self, step: str, part: float) -> None:
        """Raises Cancelled."""
        if self._cancel.is_set():
            raise Cancelled
        job = self.job
        if job is not None and (job.step != step or round(100 * job.part) != round(100 * part)):
            self._on_loop(lambda: self._set(replace(job, step=step, part=part)))

    def _done(self, made: Future[int]) -> None:
        self._on_loop(lambda: self._ended(made))

    def _on_loop(self, what: Callable[[], None]) -> None:
        """Run a function in the thread of the pages, unless that has ended."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what)

    # ---- in the thread of the pages

    def _set(self, job: Job | None) -> None:
        self.job = job
        self._context.live.changed("bundle")

    def _ended(self, made: Future[int]) -> None:
        job = self.job
        assert job is not None
        match made.exception():
            case None:
                self._set(replace(job, state="ready", part=1.0, size=made.result()))
                self._expiry = asyncio.get_running_loop().call_later(KEPT_S, self.discard)
            case Cancelled():
                self._set(replace(job, state="cancelled"))
            case error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self._log.error("bundle.failed", reason=why, exc_info=None if isinstance(error, OSError) else error)
                self._set(replace(job, state="failed", why=why))

    def _given(self) -> Given:
        context = self._context
        devices = (
            {"table": one.table, "device": one.name, "online": one.online, "meta": one.meta, "state": one.state}
            for one in context.site.devices.values()
        )
        edges = (
            {"name": one.name, "online": one.online, "info": one.info, "health": one.health}
            for one in context.site.edges.values()
        )
        incidents = _builtins(map(msgspec.structs.asdict, context.incidents.history(Filter(), INCIDENTS)))
        return Given(context.now(), _builtins(devices), _builtins(edges), incidents, journals=False)


def _builtins(found: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple(msgspec.to_builtins(one) for one in found)


def fragments(context: ConsoleContext, bundles: Bundles) -> tuple[Fragment, ...]:
    """`bundle`: the present bundle, for users who may make one."""

    def render(argument: str, viewer: Viewer) -> str:
        if argument or viewer.tables or not may(viewer.role, "bundle"):
            raise KeyError(argument)
        return context.render("_bundle.html", viewer.lang, job=bundles.job, steps=SHOWN_STEPS, kept=round(KEPT_S / 60))

    return (Fragment("bundle", lambda _: ("bundle",), render),)


def routes(context: ConsoleContext, bundles: Bundles) -> list[Route]:
    """The page, the beginning of a bundle, its end, and the file."""
    pages = _Pages(context, bundles)
    return [
        Route("/support", pages.page),
        Route("/bundle", pages.file),
        Route("/bundle", pages.begin, methods=["POST"]),
        Route("/bundle/cancel", pages.cancel, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext, bundles: Bundles) -> None:
        self._context = context
        self._bundles = bundles

    async def page(self, request: Request) -> Response:
        self._context.needs(request, "bundle")
        return self._context.page(request, "trace_bundle.html")

    def _needs(self, request: Request) -> User:
        """A user who may see all tables, as the bundle holds all. Raises Redirect, 403."""
        user = self._context.needs(request, "bundle")
        if user.tables:
            raise HTTPException(403)
        return user

    async def begin(self, request: Request) -> Response:
        """Begin a bundle, one at a time."""
        user = self._needs(request)
        await self._context.form(request)
        if self._bundles.busy:
            raise HTTPException(503, words.say(self._context.lang(request), "trace.bundle_busy"))
        self._context.actions.note(user.name, user.role, "bundle", "", {})
        self._bundles.begin(user)
        return RedirectResponse("/support", 303)

    async def cancel(self, request: Request) -> Response:
        self._needs(request)
        await self._context.form(request)
        self._bundles.cancel()
        return RedirectResponse("/support", 303)

    async def file(self, request: Request) -> Response:
        self._needs(request)
        job = self._bundles.job
        if job is None or job.state != "ready":
            raise HTTPException(404)
        return FileResponse(job.path, media_type="application/zip", filename=job.name)
