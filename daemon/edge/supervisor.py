"""The supervisor: the only place in the edge that opens links and creates drivers, again and again.

There are three kinds of errors. LinkLost: retry soon. DeviceRefused: retry slowly, give the reason. Anything else is a
bug: log the traceback, report the device as lost, back off; other devices continue. A loss and a return are logged once
each.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, NoReturn, Protocol

import msgspec
import structlog

from daemon.config.model import Device
from daemon.edge.links.link import HostLink
from daemon.journal.store import BadJournal
from drivers import DRIVERS
from drivers.driver import Chunk, DeviceRefused, Driver, Emit, LinkLost, Sighting
from protocols.contract.events import DeviceFaulted, DeviceOffline, DeviceOnline, DeviceRecovered, Event

__all__ = ["Opener", "SupervisedDevice", "supervise"]

SOON, SOON_MOST = 0.25, 5.0
SLOWLY = 30.0
AFTER_BUG, AFTER_BUG_MOST = 1.0, 60.0
# Seconds after which a session counts as good: the next failure starts the backoff anew.
GOOD_SESSION = 10.0

REFUSED = "device.refused"
BUG = "driver.bug"

Opener = Callable[[str], AbstractAsyncContextManager[HostLink]]


class SupervisedDevice(Protocol):
    """What the supervisor needs of a device's session: its events, memory, link and driver."""

    on_online: Callable[[Sighting, int], Awaitable[None]] | None
    """Called after `device.online` was written; with the number of events that the device still keeps."""

    @property
    def online(self) -> bool:
        """Whether the device is online by the last event."""
        ...

    @property
    def emit(self) -> Emit:
        """The function that writes to the journal."""
        ...

    def memory(self) -> bytes | None:
        """The driver's memory."""
        ...

    def has_fault(self, code: str) -> bool:
        """Whether `code` is open."""
        ...

    def linked(self, link: HostLink | None) -> None:
        """The link in use, for its counters."""
        ...

    def driven(self, driver: Driver | None) -> None:
        """The running driver, for commands."""
        ...


def _printable(text: str) -> str:
    """The text without characters that cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


async def supervise(  # noqa: PLR0915 - every way a session can end is handled in one place
    device: Device,
    supervised: SupervisedDevice,
    opener: Opener,
    now: Callable[[], datetime],
    log: structlog.typing.FilteringBoundLogger,
) -> None:
    """Keep one device connected until cancelled."""
    driver_type = DRIVERS[device.driver]
    options: Any = msgspec.convert(device.options, driver_type.Options)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    logged_lost = False
    soon, after_bug = SOON, AFTER_BUG

    def sighting(event: Event, behind: int = 0) -> Sighting:
        return Sighting(event, b"", Chunk(b"", now(), loop.time()), behind=behind)

    async def came_online(online: Sighting, behind: int) -> None:
        nonlocal logged_lost
        model = online.event.model if isinstance(online.event, DeviceOnline) else ""
        log.info("device.back" if logged_lost else "device.online", model=model, url=device.url)
        logged_lost = False
        cleared = [code for code in (REFUSED, BUG) if supervised.has_fault(code)]
        await supervised.emit([sighting(DeviceRecovered(code), behind) for code in cleared])

    supervised.on_online = came_online

    async def session() -> NoReturn:
        nonlocal soon, after_bug
        began = loop.time()
        try:
            async with opener(device.url) as link:
                supervised.linked(link)
                driver = driver_type(options, supervised.memory())
                supervised.driven(driver)
                await driver.run(link, supervised.emit)
            raise RuntimeError("it ended by itself")
        finally:
            supervised.driven(None)
            supervised.linked(None)
            if loop.time() - began > GOOD_SESSION:
                soon, after_bug = SOON, AFTER_BUG

    while True:
        fault: DeviceFaulted | None = None
        try:
            await session()
        except LinkLost as error:
            reason, wait = str(error), soon
            soon = min(soon * 2, SOON_MOST)
        except DeviceRefused as error:
            reason, wait = str(error), SLOWLY
            fault = DeviceFaulted(REFUSED, reason, "error", "mend the reported cause; it is tried again every 30 s")
        except BadJournal:
            raise  # the journal failed: the process must end
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise  # otherwise it came out of the driver: this task was not cancelled
            log.exception("driver.bug", driver=device.driver)
            reason, wait = _printable(f"{type(error).__name__}: {error}"), after_bug
            after_bug = min(after_bug * 2, AFTER_BUG_MOST)
            text = f"the driver failed: {reason}"
            fault = DeviceFaulted(BUG, text, "error", "send the log to the maintainers; it is tried again by itself")
        if task is not None and task.cancelling():
            raise asyncio.CancelledError  # cancelled while a lost link was closed: `wait_for` may swallow it
        events: list[Event] = [DeviceOffline(reason)] if supervised.online else []
        if fault is not None and not supervised.has_fault(fault.code):
            events.append(fault)
        await supervised.emit([sighting(event) for event in events])
        if not logged_lost:
            log.warning("device.lost", reason=reason, url=device.url)
            logged_lost = True
        await asyncio.sleep(wait)
