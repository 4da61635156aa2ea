"""A loop whose clock jumps, so that hours of timers pass at once. For offline replays, simulations and tests.

If nothing is ready, the clock jumps to the next timer. With real terminals and sockets, `busy` is true while bytes are
under way; then time runs at its real speed, so that no time limit ends early.
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

__all__ = ["JumpingLoop"]


class _JumpingSelector(selectors.DefaultSelector):
    """Polls the system without waiting; if nothing is ready, it moves the loop's clock."""

    def __init__(self, loop: "JumpingLoop") -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        return self._loop.idle(timeout, super().select)


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps.

    `busy`: while true, time runs at its real speed, so that a time limit does not pass while the awaited bytes are
    still under way. Time in which this process cannot run does not count.
    """

    def __init__(
        self,
        *,
        busy: Callable[[], bool] = lambda: False,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
    ) -> None:
        self._now = 0.0
        self._busy = busy
        self._start = start
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """The loop's own seconds."""
        return self._now

    def utc(self) -> datetime:
        """The wall clock that belongs to this loop's time."""
        return self._start + timedelta(seconds=self._now)

    def idle(
        self, timeout: float | None, select: Callable[[float | None], list[tuple[selectors.SelectorKey, int]]]
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """If nothing is ready, wait in real time while something is under way or no timer is set, else jump."""
        if timeout is None or self._busy():
            began, wait_s = time.monotonic(), 0.05 if timeout is None else min(timeout, 0.05)
            ready = select(wait_s)
            self._now += min(time.monotonic() - began, wait_s)
            return ready
        self._now += timeout
        return []
