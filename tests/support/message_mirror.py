"""A simulated message device, a line and its driver in virtual time; a driver whose link is lost is made again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

from helpers import MemoryLink, Notebook

from drivers.driver import Driver, LinkLost, Obeys, Sighting
from protocols.contract.commands import Command
from protocols.contract.events import DeviceFaulted, DeviceOffline, DeviceRecovered, type_of
from simulators.devices.device import Device
from simulators.devices.line import Line

Carry = Callable[[bytes], list[bytes]]
TICK = 1e-9  # a timer that is due is over


def whole(data: bytes) -> list[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def lossy(rng: Random, loss: float) -> Carry:
    """Whole messages get lost: TCP below the broker guards the bytes."""

    def carry(data: bytes) -> list[bytes]:
        return [line for line in data.splitlines(keepends=True) if rng.random() >= loss]

    return carry


class Mirror:
    """`notes` holds all that was told, over all sessions."""

    def __init__(self, device: Device, make: Callable[[bytes | None], Driver], carry: Carry = whole) -> None:
        self.device = device
        self.notes = Notebook()
        self.line = Line(Random(1))
        self._make = make
        self._carry = carry
        self._stirred = asyncio.Event()
        self._link = MemoryLink()
        self.driver: Driver | None = None
        self.sessions = 0

    @property
    def told(self) -> list[str]:
        """Event types; a fault by its code, its end by code and a minus before it."""
        words = []
        for event in self.notes.events:
            match event:
                case DeviceFaulted(code):
                    words.append(code)
                case DeviceRecovered(code):
                    words.append(f"-{code}")
                case _:
                    words.append(type_of(event))
        return words

    @property
    def severities(self) -> list[tuple[str, str]]:
        return [(event.code, event.severity) for event in self.notes.events if isinstance(event, DeviceFaulted)]

    def now(self) -> float:
        return asyncio.get_running_loop().time() + TICK

    def stir(self) -> None:
        self._stirred.set()

    def inject(self, fault: str) -> None:
        (self.line if fault in self.device.line else self.device).inject(fault, self.now())

    async def order(self, command: Command) -> dict[str, Any]:
        driver: Any = self.driver
        assert isinstance(driver, Obeys)
        return await driver.obey(command)

    def cut(self) -> None:
        """The broker is gone."""
        self._link.hang_up()

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Device and driver live meanwhile."""
        tasks = [asyncio.create_task(self._device()), asyncio.create_task(self._sessions())]
        try:
            yield
        finally:
            assert not [task.exception() for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _sessions(self) -> None:
        while True:
            self.sessions += 1
            self._link = MemoryLink()
            self._link.on_write = self._to_device
            self.driver = self._make(self.notes.memory)
            try:
                await self.driver.run(self._link, self.notes)
            except LinkLost as error:
                self.driver = None
                await self.notes([Sighting(DeviceOffline(str(error)), b"", self._link.stamp())])
                await asyncio.sleep(0.25)

    def _to_device(self, data: bytes) -> None:
        now = self.now()
        if self._is_in(now) and (heard := self.line.to_device(data, now)):
            self._to_host(self.device.hear(heard, now), now)
        self.stir()

    def _to_host(self, data: bytes, now: float) -> None:
        for piece in self._carry(self.line.to_host(data, now)):
            if piece and self._is_in(now):
                self._link.feed(piece)

    def _is_in(self, now: float) -> bool:
        if now >= self.line.plug_at:
            self.line.plug_at = float("inf")
        return self.line.plug_at == float("inf")

    async def _device(self) -> None:
        while True:
            self._stirred.clear()
            now = self.now()
            self._to_host(self.device.wake(now), now)
            self._is_in(now)
            wait = min(self.device.due(), self.line.due()) - now
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if wait == float("inf") else max(wait, TICK)):
                    await self._stirred.wait()
