"""A simulated shuffler, a line with its faults, a driver and somebody who connects again, in virtual time."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from helpers import MemoryLink, Notebook

from drivers.driver import DeviceRefused, LinkLost, Sighting
from drivers.fdl_session import FdlDriver
from protocols.contract.commands import Command
from protocols.contract.events import DeviceFaulted, DeviceOffline, DeviceRecovered, Event, EventsMissed, type_of
from simulators.devices.fdl_device import FdlDevice
from simulators.devices.line import Line

LATENCY = 0.002
BYTE = 10 / 115_200
FOREVER = float("inf")

Carry = Callable[[bytes], list[bytes]]


def whole(data: bytes) -> list[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [bytes((byte,)) for byte in data]


def lossy(seed: int) -> Carry:
    """One byte in a hundred is lost, one in two hundred has a wrong bit."""
    rng = random.Random(seed)

    def carry(data: bytes) -> list[bytes]:
        kept = bytearray()
        for byte in data:
            fate = rng.random()
            if fate >= 0.01:
                kept.append(byte ^ 1 << rng.randrange(8) if fate < 0.015 else byte)
        return [bytes(kept)] if kept else []

    return carry


def carrying(cable: str) -> Carry:
    """A cable by its name: "whole", "byte by byte", "lossy SEED"."""
    match cable.split():
        case ["lossy", seed]:
            return lossy(int(seed))
        case ["byte", *_]:
            return byte_by_byte
        case _:
            return whole


class Tape(Notebook):
    """All that was told, in order, with what others told in between."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Event] = []

    async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        await super().__call__(sightings, memory)
        self.all += [sighting.event for sighting in sightings]


class Bench:
    """`tape` has what the driver told; of a lost session `device.offline`."""

    def __init__(self, device: FdlDevice, make: Callable[[bytes | None], FdlDriver], carry: Carry) -> None:
        self.device = device
        self.tape = Tape()
        self.line = Line(random.Random(device.name))
        self.lost: list[str] = []
        self.refused = False
        self.driver: FdlDriver | None = None
        self._make = make
        self._carry = carry
        self._link: MemoryLink | None = None
        self._stirred = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._up_at = self._down_at = 0.0

    @property
    def now(self) -> float:
        return self._loop.time()

    def do(self, action: Callable[[float], Any]) -> Any:
        """Let a hand do something at the device."""
        done = action(self.now)
        self._stirred.set()
        return done

    def inject(self, fault: str) -> None:
        if fault in self.device.line:
            self.line.inject(fault, self.now)
            if self.line.plug_at < FOREVER:
                self.cut()
        else:
            self.device.inject(fault, self.now)
        self._stirred.set()

    def cut(self) -> None:
        if self._link is not None:
            self._link.hang_up()
            self._link = None

    async def obey(self, command: Command) -> dict[str, Any]:
        assert self.driver is not None
        return await self.driver.obey(command)

    async def caught_up(self, seconds: float = 60) -> None:
        for _ in range(int(seconds * 20)):
            if self._link is not None and not self.device.unacknowledged and self.tape.sightings:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{self.device.unacknowledged} events left; lost: {self.lost}")

    def told(self, since: int = 0) -> set[str]:
        """Event types and fault codes from the tape's event number `since` on."""
        words = set()
        for event in self.tape.all[since:]:
            words.add(event.code if isinstance(event, DeviceFaulted) else type_of(event))
        return words | ({"device.refused"} if self.refused else set())

    def standing(self) -> set[str]:
        """Faults that were told and not seen to end."""
        codes: set[str] = set()
        for event in self.tape.all:
            if isinstance(event, DeviceFaulted):
                codes.add(event.code)
            elif isinstance(event, DeviceRecovered):
                codes.discard(event.code)
        return codes

    async def live(self) -> None:
        """The device's side."""
        while True:
            self._stirred.clear()
            if self.now >= self.line.plug_at:
                self.line.plug_at = FOREVER
            self._up(self.device.wake(self.now))
            due = min(self.device.due(), self.line.due())
            assert due > self.now, "it would spin"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due + 1e-9):
                    await self._stirred.wait()

    async def supervise(self) -> None:
        """The host's side."""
        while True:
            if self.line.plug_at < FOREVER:
                await asyncio.sleep(0.5)
                continue
            self._link = MemoryLink()
            self._link.on_write = self._down
            self.driver = self._make(self.tape.memory)
            try:
                await self.driver.run(self._link, self.tape)
            except (LinkLost, DeviceRefused) as ended:
                self.refused |= isinstance(ended, DeviceRefused)
                self._link = None
                self.lost.append(str(ended))
                self.tape.all.append(DeviceOffline(str(ended)))
                await asyncio.sleep(0.5)

    def _up(self, data: bytes) -> None:
        link = self._link
        for piece in self._carry(self.line.to_host(data, self.now)):
            if piece and link is not None:
                self._up_at = max(self._up_at, self.now + LATENCY) + len(piece) * BYTE
                self._loop.call_at(self._up_at, self._host_hears, link, piece)

    def _down(self, data: bytes) -> None:
        for piece in self._carry(self.line.to_device(data, self.now)):
            self._down_at = max(self._down_at, self.now + LATENCY) + len(piece) * BYTE
            self._loop.call_at(self._down_at, self._device_hears, self._link, piece)

    def _host_hears(self, link: MemoryLink, data: bytes) -> None:
        if link is self._link:
            link.feed(data)

    def _device_hears(self, link: MemoryLink | None, data: bytes) -> None:
        if link is not None and link is self._link:
            self._up(self.device.hear(data, self.now))
            self._stirred.set()


@contextlib.asynccontextmanager
async def bench(
    device: FdlDevice, make: Callable[[bytes | None], FdlDriver], carry: Carry = whole, memory: bytes | None = None
) -> AsyncIterator[Bench]:
    made = Bench(device, make, carry)
    made.tape.memory = memory
    tasks = [asyncio.create_task(made.live()), asyncio.create_task(made.supervise())]
    try:
        await made.caught_up()
        yield made
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        made.cut()
    for end in ends:
        if not isinstance(end, asyncio.CancelledError):
            assert isinstance(end, BaseException)
            raise end


def lossless(events: Sequence[Event]) -> bool:
    """Whether nothing was lost for ever."""
    return not any(isinstance(event, EventsMissed) for event in events)
