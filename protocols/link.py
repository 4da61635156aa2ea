"""A link carries bytes to and from one device; nobody above it knows whether it is a tty, TCP, USB or memory.

Rule of this file: a link never reconnects. It lives until `LinkLost`; its owner (the supervisor) makes another.
"""

from datetime import datetime, timedelta
from typing import Protocol

import msgspec


class LinkLost(Exception):
    """The way to the device is gone (hang-up, unplugged, silent beyond its heartbeat): try again soon."""


class DeviceRefused(Exception):
    """The device answers, but will not work with us (wrong model, locked, wrong setting): try again slowly, say why."""


class Chunk(msgspec.Struct, frozen=True):
    """Bytes as they arrived.

    `at` is the UTC instant of their arrival; `tick` the monotonic second of it, for durations (a stepped wall clock
    must not shorten a time limit of a driver).
    """

    data: bytes
    at: datetime
    tick: float

    def after_at_least(self, at: datetime, tick: float | None) -> timedelta:
        """How much time surely lies between the two: what a missed spin may be proven by.

        The monotonic clock begins anew with the computer: then it says less than that, or nothing.
        """
        return self.at - at if tick is None or self.tick < tick else timedelta(seconds=self.tick - tick)

    def after_at_most(self, at: datetime, tick: float | None) -> timedelta:
        """How much time may lie between the two, as far as either clock knows: what continuity may be proven by."""
        return max(self.at - at, self.after_at_least(at, tick))


class Link(Protocol):
    """Both ways to one device."""

    async def read(self) -> Chunk:
        """The next bytes, never empty. Raises LinkLost when there will be no more."""
        ...

    async def write(self, data: bytes) -> None:
        """Send all of `data`. Raises LinkLost."""
        ...

    def stamp(self) -> Chunk:
        """No bytes, now: for what a driver sees in silence."""
        ...
