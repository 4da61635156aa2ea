"""A link carries bytes to and from one device, over a tty, TCP, a Unix socket, USB, MQTT or memory.

A link never reconnects. It is open until `LinkLost`; its owner, the supervisor, then opens another one.
"""

from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

import msgspec


class LinkLost(Exception):
    """The connection to the device is gone (hang-up, unplugged, no data in time): retry soon."""


class DeviceRefused(Exception):
    """The device answers, but cannot be used (wrong model, locked, wrong setting): retry slowly, give the
    reason.
    """


class Chunk(msgspec.Struct, frozen=True):
    """Bytes as they arrived.

    `at` is the UTC time of arrival. `tick` is the monotonic second, for durations: setting the wall clock must not
    shorten a driver's time limit.
    """

    data: bytes
    at: datetime
    tick: float

    def began_anew(self, tick: float | None) -> bool:
        """Whether the computer was restarted since `tick`."""
        return tick is not None and self.tick < tick

    def after_at_least(self, at: datetime, tick: float | None) -> timedelta:
        """The time that has certainly passed between the two.

        The wall clock may be set. The monotonic clock restarts with the computer and then shows the time since.
        """
        if tick is None:
            return self.at - at
        if self.began_anew(tick):
            return max(self.at - at, timedelta(seconds=self.tick))
        return timedelta(seconds=self.tick - tick)

    def after_at_most(self, at: datetime, tick: float | None) -> timedelta:
        """The longest time that may have passed between the two; infinite if only the wall clock can give it and it
        went back.
        """
        proven = timedelta(seconds=self.tick if self.began_anew(tick) else 0.0)
        if (tick is None or self.began_anew(tick)) and self.at - at < proven:
            return timedelta.max
        return max(self.at - at, self.after_at_least(at, tick))


class Link(Protocol):
    """Both directions to one device."""

    async def read(self) -> Chunk:
        """The next bytes, never empty. Raises LinkLost when there will be no more."""
        ...

    async def write(self, data: bytes) -> None:
        """Send all of `data`. Raises LinkLost."""
        ...

    def stamp(self) -> Chunk:
        """An empty chunk with the present time, for what a driver derives from a pause."""
        ...


@runtime_checkable
class LocalLink(Protocol):
    """A link to a program of this computer. `peer_user`: the user that it runs as, checked with the kernel."""

    peer_user: str
