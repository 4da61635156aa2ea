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

    def began_anew(self, tick: float | None) -> bool:
        """Whether the computer was off since `tick`."""
        return tick is not None and self.tick < tick

    def after_at_least(self, at: datetime, tick: float | None) -> timedelta:
        """How much time surely lies between the two.

        The wall clock may be set; the monotonic one begins anew with the computer, and is then what passed since.
        """
        if tick is None:
            return self.at - at
        if self.began_anew(tick):
            return max(self.at - at, timedelta(seconds=self.tick))
        return timedelta(seconds=self.tick - tick)

    def after_at_most(self, at: datetime, tick: float | None) -> timedelta:
        """How much time may lie between the two. No end to it where only a wall clock knows, and it went back."""
        proven = timedelta(seconds=self.tick if self.began_anew(tick) else 0.0)
        if (tick is None or self.began_anew(tick)) and self.at - at < proven:
            return timedelta.max
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
