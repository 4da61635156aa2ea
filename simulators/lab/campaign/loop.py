"""Virtual time, and processes that can be killed between any two of their steps.

One loop runs everything. Each simulated process has a context of its own, which its tasks and callbacks inherit; code
without one belongs to the world. A killed process gets no chance to clean up: from that instant none of its callbacks
runs, and its journal, links and connections are closed, so that no `finally` of its code has an effect that a killed
process could not have. Its tasks are kept until the world ends, so that they are not garbage-collected before.
"""

# ruff: noqa: SLF001 - a loop uses the fields of its handles, as asyncio's own do

import asyncio
import contextlib
import contextvars
import heapq
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from msgspec import Struct
from structlog.testing import capture_logs

__all__ = ["Killed", "Process", "StandingStillError", "VirtualLoop"]

START = datetime(2026, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process died here. No code in a process catches it and goes on."""


class StandingStillError(Exception):
    """The loop has nothing left to run, or ran too many steps. The message names the case."""


class Process:
    """One run of one process: from its start until it is killed or ends."""

    def __init__(self, name: str, loop: "VirtualLoop") -> None:
        """It runs from `start` on. `kill_at`: the process is killed before this step; 0: never."""
        self.name = name
        self.loop = loop
        self.alive = True
        self.steps = 0
        self.kill_at = 0
        self.how = ""
        """How it was killed, or how its disk failed; else empty."""
        self.tasks: list[asyncio.Task[Any]] = []
        self.on_death: list[Callable[[], None]] = []
        self.context = contextvars.copy_context()
        self.context.run(_PROCESS.set, self)
        self.over: asyncio.Future[BaseException | None] = loop.create_future()
        """Done when the process was killed or ended by itself; its result is the exception."""

    @staticmethod
    def current() -> "Process | None":
        """The process whose code runs now; None for the world."""
        return _PROCESS.get()

    def start(self, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start the process with this coroutine."""
        task = self.loop.create_task(body, context=self.context)
        task.add_done_callback(self._ended, context=self.loop.world)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self.alive:
            error = None if task.cancelled() else task.exception()
            self._finish()
            self.over.set_result(error)

    def die(self, how: str) -> None:
        """Kill the process at this instant."""
        if not self.alive:
            return
        self.how = how
        self._finish()
        self.loop.call_soon(self.over.set_result, None, context=self.loop.world)

    def _finish(self) -> None:
        self.alive = False
        self.loop.graves += [task for task in self.tasks if not task.done()]
        self.tasks.clear()
        for told in self.on_death:
            told()


_PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def _nothing() -> None:
    """The callback of a cancelled timer."""


class _Handle(Struct):
    """A waiting callback, as asyncio's handles, without their fields for the debug mode."""

    _when: float
    _callback: Callable[..., Any]
    _args: tuple[Any, ...]
    _context: contextvars.Context
    _cancelled: bool = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = _nothing, ()

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when


class _Task(asyncio.Task[Any]):
    """A task that is hashed by its number, so that sets of tasks have the same order in each run."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """Jumps from one timer to the next; deterministic, without files, threads or a real clock."""

    def __init__(self, most_steps: int = 20_000_000) -> None:
        """`most_steps`: a run with more steps is an endless loop."""
        super().__init__()
        self._now = 0.0
        self._utc = 0.0, START
        self._timers: list[tuple[float, int, _Handle]] = []
        self._number = count(1)
        self._queue: deque[_Handle] = deque()
        self.steps = 0
        self._most_steps = most_steps
        self.graves: list[asyncio.Task[Any]] = []
        self.world = contextvars.copy_context()
        self.trouble: list[str] = []
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._troubled)

    def time(self) -> float:
        """Seconds since the beginning."""
        return self._now

    def utc(self) -> datetime:
        """A wall clock that is never adjusted."""
        at, utc = self._utc
        if at != self._now:
            utc = START + timedelta(seconds=self._now)
            self._utc = self._now, utc
        return utc

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Any,
        context: contextvars.Context | None = None,
        **more: Any,
    ) -> asyncio.Task[Any]:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        # Python 3.11 has no eager tasks: a task does not run before it has its number.
        task = _Task.__new__(_Task)
        task.number = next(self._number)
        task.__init__(coro, loop=loop, context=context, **more)  # type: ignore[misc]
        if process is not None:
            tasks = process.tasks
            tasks.append(task)
            if len(tasks) > 200:
                process.tasks = [one for one in tasks if not one.done()]
        return task

    def _troubled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An unhandled exception."""
        error = context.get("exception")
        if not isinstance(error, Killed):
            self.trouble.append(f"{context.get('message')}: {error!r}")

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Run in the next turn of the loop."""
        handle = _Handle(self._now, callback, args, contextvars.copy_context() if context is None else context)
        self._queue.append(handle)
        return handle  # type: ignore[return-value]

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """As `call_soon`: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call after `delay` seconds."""
        when = self._now + delay
        timer = _Handle(when, callback, args, contextvars.copy_context() if context is None else context)
        heapq.heappush(self._timers, (when, next(self._number), timer))
        return timer  # type: ignore[return-value]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call at `when`."""
        timer = _Handle(when, callback, args, contextvars.copy_context() if context is None else context)
        heapq.heappush(self._timers, (when, next(self._number), timer))
        return timer  # type: ignore[return-value]

    def _run_once(self) -> None:
        """Run the due callbacks until the loop is stopped."""
        queue, timers, process_of, take = self._queue, self._timers, _PROCESS, heapq.heappop
        take_first = queue.popleft
        most = self._most_steps
        while not self._stopping:  # type: ignore[attr-defined]
            if queue:
                handle = take_first()
            elif timers:
                when, _, handle = take(timers)
                if when > self._now and not handle._cancelled:
                    self._now = when
            else:
                raise StandingStillError("nothing is due and nothing will ever be")
            if handle._cancelled:
                continue
            self.steps += 1
            context = handle._context
            process = context.get(process_of)
            if process is not None:
                if not process.alive:
                    continue
                process.steps += 1
                if process.steps == process.kill_at:
                    process.die("killed at an await")
                    continue
            try:
                context.run(handle._callback, *handle._args)
            except Killed:
                pass
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio does
                self.call_exception_handler({"message": "callback failed", "exception": error})
            if self.steps > most:
                raise StandingStillError(f"{most} steps, and no end at {self._now:.1f} s")

    def bury(self) -> None:
        """End all waiting tasks at the end of the world. Nothing is logged: closing a waiting coroutine is not a
        bug.
        """
        asyncio._set_running_loop(self)  # closed coroutines may call get_running_loop()
        try:
            with capture_logs():
                for task in sorted({*self.graves, *asyncio.all_tasks(self)}, key=hash):
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    coro: Any = task.get_coro()
                    with contextlib.suppress(BaseException):
                        coro.close()
        finally:
            asyncio._set_running_loop(None)
        self.graves.clear()
        self._queue.clear()
        self._timers.clear()

    def close(self) -> None:
        """End all waiting tasks and close the loop."""
        self.bury()
        sys.set_asyncgen_hooks(None, None)
        super().close()
