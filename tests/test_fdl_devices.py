"""The FDL drivers against the simulated devices over every kind of cable, and the session by itself."""

import asyncio
import contextlib
import functools
import random
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from drivers import fdl_console, fdl_shaker
from drivers.driver import Chunk, DeviceRefused, Driver, LinkLost, Sighting
from drivers.fdl_console import FdlConsole
from drivers.fdl_session import COMMON_FAULTS, Heard, Memory, Options, Session, remembered
from drivers.fdl_shaker import FdlShaker
from protocols import fdl
from protocols.events import (
    BetsClosed,
    BetsOpened,
    CutCardDrawn,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    EventsMissed,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    ShoeStarted,
)
from simulators.fdl_console import KEYS, Console
from simulators.fdl_device import BOOT, RING, FdlDevice
from simulators.fdl_shaker import Shaker

DOC = (Path(__file__).parent.parent / "docs" / "protocols" / "fdl.md").read_text()
LATENCY = 0.002
BYTE = 10 / 115_200
UNIT = ("Felt", "Console", "SIM-CONSOLE-1")

# ---- the mirror: simulator, cable, driver, in virtual time

Mangle = Callable[[bytes], list[bytes]]


def whole(data: bytes) -> list[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [bytes((byte,)) for byte in data]


def lossy(seed: int) -> Mangle:
    """One byte in a hundred is lost, one in two hundred has a wrong bit."""
    rng = random.Random(seed)

    def mangle(data: bytes) -> list[bytes]:
        kept = bytearray()
        for byte in data:
            fate = rng.random()
            if fate >= 0.01:
                kept.append(byte ^ 1 << rng.randrange(8) if fate < 0.015 else byte)
        return [bytes(kept)] if kept else []

    return mangle


class Bench:
    """A device, its cable and a supervisor that makes a new driver whenever the link is lost."""

    def __init__(
        self, device: FdlDevice, driver: type[FdlShaker | FdlConsole], notebook: Notebook, mangle: Mangle
    ) -> None:
        self.device = device
        self.notebook = notebook
        self.lost: list[str] = []
        self._driver = driver
        self._mangle = mangle
        self._link: MemoryLink | None = None
        self._nudge = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._arrives_up = 0.0
        self._arrives_down = 0.0

    @property
    def now(self) -> float:
        return self._loop.time()

    def cut(self) -> None:
        """Whatever is on its way is lost too."""
        if self._link is not None:
            self._link.hang_up()
            self._link = None

    def do(self, action: Callable[[float], object]) -> None:
        """Let something happen at the device."""
        action(self.now)
        self._nudge.set()

    async def caught_up(self, seconds: float = 120) -> None:
        for _ in range(int(seconds * 100)):
            if not self.device.unacknowledged and self._link is not None and self.notebook.sightings:
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"{self.device.unacknowledged} events left; lost: {self.lost}")

    async def live(self) -> None:
        """The device's side."""
        due = self.now
        while True:
            self._up(self.device.wake(max(due, self.now)))
            self._nudge.clear()
            due = self.device.due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._nudge.wait()
                    due = self.now

    async def supervise(self) -> None:
        """The host's side."""
        while True:
            self._link = MemoryLink()
            self._link.on_write = self._down
            try:
                await self._driver(Options(), self.notebook.memory).run(self._link, self.notebook)
            except (LinkLost, DeviceRefused) as ended:
                self._link = None
                self.lost.append(str(ended))
                await asyncio.sleep(0.5)

    def _up(self, data: bytes) -> None:
        link = self._link
        if data and link is not None:
            for piece in self._mangle(data):
                self._arrives_up = max(self._arrives_up, self.now + LATENCY) + len(piece) * BYTE
                self._loop.call_at(self._arrives_up, self._host_hears, link, piece)

    def _down(self, data: bytes) -> None:
        link = self._link
        for piece in self._mangle(data):
            self._arrives_down = max(self._arrives_down, self.now + LATENCY) + len(piece) * BYTE
            self._loop.call_at(self._arrives_down, self._device_hears, link, piece)

    def _host_hears(self, link: MemoryLink, data: bytes) -> None:
        if link is self._link:
            link.feed(data)

    def _device_hears(self, link: MemoryLink | None, data: bytes) -> None:
        if link is not None and link is self._link:
            self._up(self.device.hear(data, self.now))
            self._nudge.set()


@contextlib.asynccontextmanager
async def bench(
    device: FdlDevice,
    mangle: Mangle = whole,
    notebook: Notebook | None = None,
    *,
    driver: type[FdlShaker | FdlConsole] | None = None,
) -> AsyncIterator[Bench]:
    own = FdlShaker if isinstance(device, Shaker) else FdlConsole
    made = Bench(device, driver or own, notebook or Notebook(), mangle)
    tasks = [asyncio.create_task(made.live()), asyncio.create_task(made.supervise())]
    try:
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


def shaker(seed: int = 1) -> Shaker:
    return Shaker(random.Random(seed))


def console(seed: int = 1) -> Console:
    return Console(random.Random(seed))


def happened(notebook: Notebook) -> list[Event]:
    """What it told beside the comings and goings of the device."""
    return [event for event in notebook.events if not isinstance(event, DeviceOnline)]


def onlines(notebook: Notebook) -> list[bool]:
    return [event.continuous for event in notebook.events if isinstance(event, DeviceOnline)]


async def deal(table: Bench, device: Shaker) -> list[Event]:
    """One round of dice, as a dealer does it; what must be told."""
    told: list[Event] = []
    table.do(device.cover)
    for _ in range(3):
        await asyncio.sleep(0.3)
        table.do(device.pull_lever)
    await asyncio.sleep(1)
    table.do(device.uncover)
    await asyncio.sleep(0.5)
    table.do(lambda now: told.append(DiceRead(*device.read(now))))
    return [DiceCovered(), *[DiceAgitated("lever", 1)] * 3, DiceUncovered(), *told]


@virtual_time
async def test_a_round_of_dice() -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        wanted = await deal(table, device)
        await table.caught_up()
    first, *rest = table.notebook.events
    assert first == DeviceOnline(continuous=False, model="Felt Shaker", serial="SIM-SHAKER-1", firmware="1.0")
    assert rest == wanted
    assert table.lost == []


@virtual_time
async def test_every_key_of_the_console() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        for key in KEYS:
            table.do(functools.partial(device.press, key, reason=2))
        await table.caught_up()
    assert happened(table.notebook) == [
        BetsOpened(),
        BetsClosed(),
        RoundVoided("equipment fault"),
        RoundPaid(),
        ShoeStarted(8),
        CutCardDrawn(),
        RoundDemo(),
    ]


CABLES: dict[str, tuple[Mangle, bool]] = {
    "whole": (whole, False),
    "byte by byte": (byte_by_byte, False),
    **{f"lossy {seed}": (lossy(seed), False) for seed in range(6)},
    "cut": (whole, True),
    "cut byte by byte": (byte_by_byte, True),
    **{f"lossy {seed} and cut": (lossy(seed), True) for seed in range(6, 9)},
}


@pytest.mark.parametrize("cable", CABLES)
@virtual_time
async def test_every_event_once_and_in_order(cable: str) -> None:
    mangle, cuts = CABLES[cable]
    rng = random.Random(cable)
    device = shaker()
    wanted: list[Event] = []
    async with bench(device, mangle) as table:
        await table.caught_up()
        for _ in range(15):
            if cuts:
                asyncio.get_running_loop().call_later(rng.uniform(0, 3), table.cut)
            wanted += await deal(table, device)
        await table.caught_up()
    assert happened(table.notebook) == wanted
    assert onlines(table.notebook) == [False] + [True] * (len(onlines(table.notebook)) - 1)
    assert len(onlines(table.notebook)) > 3 or not cuts


@virtual_time
async def test_the_wire_is_the_evidence() -> None:
    device = shaker()
    async with bench(device, byte_by_byte) as table:
        await table.caught_up()
        table.do(device.read)
        await table.caught_up()
    online, read = table.notebook.sightings
    for sighting, kind in ((online, fdl.Identity), (read, fdl.EventReport)):
        [frame] = fdl.Decoder().feed(sighting.wire)
        assert isinstance(frame, fdl.Frame)
        assert isinstance(fdl.read(frame), kind)
    assert read.chunk.data == b"\0"  # the last byte of the frame


@virtual_time
async def test_a_cut_cable_loses_nothing_but_an_overrun_ring_is_counted() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.press("bell", now))
        await table.caught_up()
        table.cut()
        for n in range(RING + 44):
            device.press("void", table.now, reason=n % 200)
        await table.caught_up()
    assert onlines(table.notebook) == [False, False]
    told = happened(table.notebook)
    assert told[:2] == [BetsClosed(), EventsMissed(44)]
    assert told[2:] == [fdl_console.translate(fdl.RoundVoid(n % 200)) for n in range(44, RING + 44)]


@virtual_time
async def test_a_full_ring_loses_nothing() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.cut()
        for n in range(RING):
            device.press("void", table.now, reason=n % 200)
        await table.caught_up()
    assert onlines(table.notebook) == [False, True]
    assert len(happened(table.notebook)) == RING


class SlowDisk(Notebook):
    """A journal that stands still when asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()
        self.free.set()

    async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        await self.free.wait()
        await super().__call__(sightings, memory)


@virtual_time
async def test_a_ring_overrun_while_the_disk_stands_still() -> None:
    """Also: ten seconds of a busy disk are not ten seconds of a silent device."""
    device = console()
    disk = SlowDisk()
    async with bench(device, notebook=disk) as table:
        await table.caught_up()
        disk.free.clear()
        for n in range(400):
            table.do(functools.partial(device.press, "void", reason=n % 200))
            await asyncio.sleep(0.025)
        assert happened(disk) == []
        disk.free.set()
        await table.caught_up()
    first, *rest = happened(disk)
    assert first == fdl_console.translate(fdl.RoundVoid(0))  # under way when the disk stopped
    assert sum(event.count for event in rest if isinstance(event, EventsMissed)) == 400 - RING - 1
    assert [event for event in rest if not isinstance(event, EventsMissed)] == [
        fdl_console.translate(fdl.RoundVoid(n % 200)) for n in range(400 - RING, 400)
    ]
    assert onlines(disk) == [False]
    assert table.lost == []


@virtual_time
async def test_power_loss_is_told_in_its_place() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.press("bets_opened", now))  # not yet sent when the power goes
        table.do(lambda now: device.inject("power_loss", now))
        await asyncio.sleep(BOOT / 2)
        table.do(lambda now: device.press("bell", now))  # unseen: it is off
        await asyncio.sleep(BOOT)
        table.do(lambda now: device.press("paid", now))
        await table.caught_up()
    assert [type(event) for event in table.notebook.events] == [DeviceOnline, BetsOpened, DeviceOnline, RoundPaid]
    assert onlines(table.notebook) == [False, False]
    assert table.lost == []


@virtual_time
async def test_memory_loss_begins_a_new_epoch() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.press("bets_opened", now))
        table.do(lambda now: device.inject("memory_loss", now))  # the press is gone for good
        await asyncio.sleep(BOOT)
        table.do(lambda now: device.press("paid", now))
        await table.caught_up()
    assert [type(event) for event in table.notebook.events] == [DeviceOnline, DeviceOnline, DeviceOnline, RoundPaid]
    assert onlines(table.notebook) == [False, False, False]  # first contact; new epoch; the start itself
    memory = remembered(table.notebook.memory)
    assert memory is not None
    assert memory.last == 2


@virtual_time
async def test_old_events_of_an_unknown_table_are_not_played_back() -> None:
    device = console()
    device.press("bets_opened", 0)
    device.press("bell", 0)
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.press("paid", now))
        await table.caught_up()
    assert happened(table.notebook) == [RoundPaid()]


@virtual_time
async def test_a_spare_unit_is_a_first_contact_even_in_the_same_epoch() -> None:
    spare = Console(random.Random(1), serial="SPARE")
    for _ in range(5):
        spare.press("bell", 0)
    notebook = Notebook()
    notebook.memory = msgspec.json.encode(Memory(spare._epoch, 2, UNIT))
    async with bench(spare, notebook=notebook) as table:
        await table.caught_up()
        table.do(lambda now: spare.press("paid", now))
        await table.caught_up()
    assert onlines(notebook) == [False]
    assert happened(notebook) == [RoundPaid()]


@virtual_time
async def test_a_host_restored_from_a_backup_is_told_again() -> None:
    """Acknowledged events stay in the ring."""
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        backup = table.notebook.memory
        table.do(lambda now: device.press("bets_opened", now))
        table.do(lambda now: device.press("bell", now))
        await table.caught_up()
        table.cut()
        table.notebook.memory = backup
        await asyncio.sleep(1)
        await table.caught_up()
    assert happened(table.notebook) == [BetsOpened(), BetsClosed()] * 2
    assert onlines(table.notebook) == [False, True]


@pytest.mark.parametrize("fault", ["garbage", "duplicate_frames"])
@virtual_time
async def test_faults_of_the_line_lose_nothing(fault: str) -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        wanted: list[Event] = []
        for _ in range(10):
            table.do(lambda now: device.inject(fault, now))
            wanted += await deal(table, device)
        await table.caught_up()
    assert happened(table.notebook) == wanted
    assert table.lost == []


@virtual_time
async def test_a_silent_device_is_lost_and_comes_back() -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.inject("silence", now))
        wanted = await deal(table, device)
        await table.caught_up()
    assert table.lost == ["no FDL frame for 3 s"]
    assert onlines(table.notebook) == [False, True]
    assert happened(table.notebook) == wanted


@virtual_time
async def test_faults_of_the_shaker() -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.inject("motor_fault", now))
        assert not device.agitate(table.now)
        await asyncio.sleep(21)
        assert device.agitate(table.now)
        table.do(lambda now: device.inject("dice_stacked", now))
        table.do(device.read)
        table.do(device.pull_lever)
        table.do(lambda now: device.inject("dice_leaning", now))
        table.do(device.read)
        table.do(device.pull_lever)
        table.do(device.read)
        await table.caught_up()
    fault, recovered, agitated, stacked, _, leaning, _, flat = happened(table.notebook)
    assert isinstance(fault, DeviceFaulted)
    assert (fault.code, fault.severity) == ("shaker.motor", "error")
    assert recovered == DeviceRecovered("shaker.motor")
    assert agitated == DiceAgitated("electronic", 1)
    assert [(one.stacked, one.leaning) for one in (stacked, leaning, flat) if isinstance(one, DiceRead)] == [
        (2, 0),
        (0, 1),
        (0, 0),
    ]


@virtual_time
async def test_a_fault_that_a_restart_mends_is_over() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.inject("key_stuck", now))
        await asyncio.sleep(1)
        table.do(lambda now: device.power_cycle(now, lose_memory=False))
        await asyncio.sleep(BOOT + 0.1)
        await table.caught_up()
    fault, recovered = happened(table.notebook)
    assert isinstance(fault, DeviceFaulted)
    assert (fault.code, fault.severity) == ("console.key_stuck", "warning")
    assert fault.text.endswith("(place 4)")
    assert recovered == DeviceRecovered("console.key_stuck")


def test_what_the_simulators_do_not_have() -> None:
    for device in (shaker(), console(), FdlDevice(random.Random(1))):
        with pytest.raises(ValueError, match="has no fault 'flood'"):
            device.inject("flood", 0)
        for fault in device.faults:
            device.inject(fault, 0)
    with pytest.raises(ValueError, match="has no key"):
        console().press("coffee", 0)


def test_dice_are_the_seed_s() -> None:
    def throws(seed: int) -> list[tuple[tuple[int, ...], int, int]]:
        device = shaker(seed)
        seen = []
        for n in range(50):
            device.pull_lever(n)
            seen.append(device.read(n))
        return seen

    assert throws(5) == throws(5) != throws(6)
    assert {face for faces, _, _ in (shaker(seed).read(0) for seed in range(50)) for face in faces} == {
        1,
        2,
        3,
        4,
        5,
        6,
    }


def test_what_happens_between_wakes_is_due_now() -> None:
    device = console()
    device.wake(0)
    epoch = device._epoch
    device.hear(fdl.encode(fdl.Hello(epoch, 0), 1), 0.1)
    assert device.due() == 1.0
    device.press("bell", 0.4)
    assert device.due() <= 0.4
    assert device.unacknowledged == 1
    assert device.wake(0.4)
    assert device.due() == pytest.approx(0.6)
    device.hear(fdl.encode(fdl.Ack(epoch + 1, 1), 1), 0.5)  # of another epoch: not for this event
    assert device.unacknowledged == 1
    device.hear(fdl.encode(fdl.Ack(epoch, 2), 1), 0.5)  # of an event that has not happened
    assert device.unacknowledged == 1
    device.hear(fdl.encode(fdl.Ack(epoch, 1), 1), 0.5)
    assert (device.unacknowledged, device.due()) == (0, 1.0)


# ---- drivers on a bare link


async def ends(
    driver: Driver, feed: Callable[[MemoryLink, float], None], seconds: float = 60
) -> tuple[Exception, float, MemoryLink, Notebook]:
    """Run the driver, feed its link each 0.2 s; how it ended, and when."""
    loop = asyncio.get_running_loop()
    link, notebook = MemoryLink(), Notebook()
    task = asyncio.create_task(driver.run(link, notebook))
    async with asyncio.timeout(seconds):
        while not task.done():
            feed(link, loop.time())
            await asyncio.wait({task}, timeout=0.2)
    error = task.exception()
    assert isinstance(error, Exception)
    return error, loop.time(), link, notebook


def shaker_driver() -> FdlShaker:
    return FdlShaker(Options())


@virtual_time
async def test_silence_is_a_lost_link_after_three_seconds() -> None:
    error, at, link, _ = await ends(shaker_driver(), lambda *_: None)
    assert isinstance(error, LinkLost)
    assert at == pytest.approx(3, abs=0.01)
    asked = [fdl.read(found) for found in fdl.Decoder().feed(bytes(link.sent)) if isinstance(found, fdl.Frame)]
    assert asked == [fdl.Hello(0, 0)] * 6


@virtual_time
async def test_noise_is_no_sign_of_life() -> None:
    rng = random.Random(1)
    error, at, _, notebook = await ends(shaker_driver(), lambda link, _: link.feed(rng.randbytes(500)))
    assert isinstance(error, LinkLost)
    assert at < 3.3
    assert notebook.events == []


@virtual_time
async def test_a_looped_cable_is_no_sign_of_life() -> None:
    def loop_back(link: MemoryLink, now: float) -> None:
        link.on_write = link.feed

    error, at, _, _ = await ends(shaker_driver(), loop_back)
    assert isinstance(error, LinkLost)
    assert at < 3.3


@virtual_time
async def test_a_hang_up_is_a_lost_link() -> None:
    error, _, _, _ = await ends(shaker_driver(), lambda link, _: link.hang_up())
    assert isinstance(error, LinkLost)


@virtual_time
async def test_a_device_that_does_not_hear_us_is_refused_with_the_reason() -> None:
    deaf = shaker()
    error, at, _, notebook = await ends(
        shaker_driver(), lambda link, now: link.feed(data) if (data := deaf.wake(now)) else None
    )
    assert isinstance(error, DeviceRefused)
    assert "transmit line" in str(error)
    assert at == pytest.approx(10, abs=0.5)
    assert notebook.events == []


def identity(**changes: object) -> bytes:
    fields = {"kind": fdl.SHAKER, "epoch": 7, "oldest": 1, "next": 5, "position": 0, "vendor": "Acme", "model": "DS-3"}
    return fdl.encode(msgspec.convert({**fields, **changes}, fdl.Identity), 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (identity(kind=fdl.CONSOLE), r"Acme DS-3  is a console \(kind 2\), not a shaker \(kind 1\): check the port"),
        (identity(kind=9), "device of an unknown kind"),
        (identity(version=2), "speaks FDL version 2, this driver version 1"),
        (identity(oldest=6), "does not say who it is as FDL says"),
        (identity(epoch=0), "does not say who it is as FDL says"),
    ],
)
@virtual_time
async def test_who_is_refused(answer: bytes, reason: str) -> None:
    error, at, _, notebook = await ends(shaker_driver(), lambda link, _: link.feed(answer))
    assert isinstance(error, DeviceRefused)
    assert re.search(reason, str(error))
    assert at < 1
    assert notebook.events == []


@virtual_time
async def test_a_device_that_never_goes_where_it_is_asked_is_refused() -> None:
    answer = identity(position=3)
    error, at, link, notebook = await ends(shaker_driver(), lambda link, _: link.feed(answer))
    assert isinstance(error, DeviceRefused)
    assert "does not go on from where it is asked" in str(error)
    assert len(notebook.events) == 1
    assert len(link.sent) < 30 * 20  # no storm of HELLOs
    assert at < 11


@virtual_time
async def test_the_wrong_driver_is_refused_on_the_bench() -> None:
    async with bench(console(), driver=FdlShaker) as table:
        await asyncio.sleep(1)
    assert table.lost
    assert "is a console (kind 2), not a shaker (kind 1)" in table.lost[0]
    assert table.notebook.events == []


class Crash(Exception):
    """The program dies here."""


class CrashingDisk(Notebook):
    """Dies at the second call, before or after it is durable."""

    def __init__(self, *, durable: bool) -> None:
        super().__init__()
        self._durable = durable
        self._calls = 0

    async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        self._calls += 1
        if self._calls != 2 or self._durable:
            await super().__call__(sightings, memory)
        if self._calls == 2:
            raise Crash


@pytest.mark.parametrize("durable", [False, True])
@virtual_time
async def test_an_event_is_acknowledged_only_when_durable_and_told_once(durable: bool) -> None:
    device = console()
    disk = CrashingDisk(durable=durable)

    async def until_it_dies() -> None:
        async with bench(device, notebook=disk) as table:
            await table.caught_up()
            table.do(lambda now: device.press("bell", now))
            await asyncio.sleep(1)

    with pytest.raises(Crash):
        await until_it_dies()
    assert device.unacknowledged == 1
    assert len(happened(disk)) == int(durable)
    async with bench(device, notebook=disk) as table:
        await asyncio.sleep(1)
        await table.caught_up()
    assert happened(disk) == [BetsClosed()]
    assert onlines(disk) == [False, True]


# ---- the session by itself


def session(memory: Memory | None = None, kind: int = fdl.CONSOLE) -> Session:
    made = Session(
        kind,
        fdl_console.FAULTS if kind == fdl.CONSOLE else fdl_shaker.FAULTS,
        fdl_console.translate if kind == fdl.CONSOLE else fdl_shaker.translate,
        Options(),
        msgspec.json.encode(memory) if memory else None,
    )
    made.begin(0)
    return made


def opened(last: int = 10, kind: int = fdl.CONSOLE) -> Session:
    made = session(Memory(7, last, UNIT), kind)
    heard = hear(made, fdl.Identity(kind, 7, 1, last + 1, last + 1, *UNIT))
    assert [event.continuous for event in events_of(heard) if isinstance(event, DeviceOnline)] == [True]
    return made


def hear(host: Session, *messages: fdl.Message, now: float = 0.0) -> Heard:
    return host.hear(Chunk(b"".join(fdl.encode(message, 1) for message in messages), START, now), now)


def events_of(heard: Heard) -> list[Event]:
    return [sighting.event for sighting in heard.sightings]


def said(data: bytes) -> list[object]:
    return [fdl.read(found) for found in fdl.Decoder().feed(data) if isinstance(found, fdl.Frame)]


def bell(counter: int) -> fdl.EventReport:
    return fdl.EventReport(counter, 0, fdl.BetsClosed.KIND)


def test_one_chunk_is_one_batch_and_one_ack() -> None:
    heard = hear(opened(), bell(11), bell(12), bell(12), bell(13))
    assert events_of(heard) == [BetsClosed()] * 3
    assert said(heard.answer) == [fdl.Ack(7, 13)]
    assert remembered(heard.memory) == Memory(7, 13, UNIT)


def test_a_duplicate_is_acknowledged_and_dropped() -> None:
    heard = hear(opened(), bell(9))
    assert heard == Heard((), None, heard.answer)
    assert said(heard.answer) == [fdl.Ack(7, 10)]


def test_a_gap_is_asked_for_and_not_told() -> None:
    host = opened()
    heard = hear(host, bell(12), bell(13))
    assert events_of(heard) == []
    assert said(heard.answer) == [fdl.Nak(fdl.GAP, 7, 11)]
    assert said(hear(host, bell(12), now=0.05).answer) == []
    assert said(hear(host, bell(12), now=0.1).answer) == [fdl.Nak(fdl.GAP, 7, 11)]


def test_garbage_is_asked_for_again_but_not_for_each_piece() -> None:
    host = opened()
    noise = Chunk(b"\x09noise\0" * 20, START, 0)
    assert said(host.hear(noise, 0.5).answer) == [fdl.Nak(fdl.UNREADABLE, 7, 11)]
    assert said(host.hear(noise, 0.59).answer) == []
    assert said(host.hear(noise, 0.6).answer) == [fdl.Nak(fdl.UNREADABLE, 7, 11)]
    hear(host, bell(11), now=0.6)
    assert said(host.hear(noise, 0.61).answer) == [fdl.Nak(fdl.UNREADABLE, 7, 12)]


def test_no_event_counts_before_the_session_is_open() -> None:
    host = session(Memory(7, 10, UNIT))
    heard = hear(host, bell(11))
    assert heard == Heard((), None, b"")


def test_a_heartbeat_that_waits_is_answered_with_hello() -> None:
    host = opened()
    assert host.wake(0.9) == b""
    hear(host, fdl.Heartbeat(0, 11, fdl.WAITS_FOR_HELLO), now=1.0)
    assert host.due() == 1.0
    assert said(host.wake(1.0)) == [fdl.Hello(7, 10)]
    assert said(host.wake(1.5)) == [fdl.Hello(7, 10)]


def test_no_event_counts_while_the_device_is_asked_again() -> None:
    host = opened()
    hear(host, fdl.Heartbeat(0, 11, fdl.WAITS_FOR_HELLO), now=1.0)
    assert hear(host, bell(11), now=1.1) == Heard((), None, b"")
    hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 12, 11, *UNIT), now=1.2)
    assert events_of(hear(host, bell(11), now=1.3)) == [BetsClosed()]


def test_a_device_that_stands_elsewhere_is_asked_again() -> None:
    host = opened()
    assert events_of(hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 12, 5, *UNIT), now=1.0)) == []
    assert said(host.wake(1.0)) == [fdl.Hello(7, 10)]


def test_hello_does_not_follow_hello_at_once() -> None:
    host = session()
    heard = hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 12, 0, *UNIT), now=0.01)
    assert remembered(heard.memory) == Memory(7, 11, UNIT)
    assert host.due() == pytest.approx(0.1)
    assert said(host.wake(0.05)) == []
    assert said(host.wake(0.1)) == [fdl.Hello(7, 11)]


def test_events_that_do_not_get_through_end_the_link() -> None:
    host = opened()
    for second in range(1, 10):
        hear(host, fdl.Heartbeat(0, 12), now=second)
    with pytest.raises(LinkLost, match="does it hear us"):
        hear(host, fdl.Heartbeat(0, 12), now=10)


def test_a_counter_that_goes_back_is_a_fault_and_no_proof() -> None:
    host = opened()
    heard = hear(host, fdl.Heartbeat(0, 5), now=1)
    assert said(host.wake(1)) == [fdl.Hello(7, 10)]
    heard = hear(host, fdl.Identity(fdl.CONSOLE, 7, 1, 5, 0, *UNIT), now=1)
    online, fault = events_of(heard)
    assert isinstance(online, DeviceOnline)
    assert not online.continuous
    assert isinstance(fault, DeviceFaulted)
    assert fault.code == "fdl.counter_back"
    assert said(host.wake(1.2)) == [fdl.Hello(7, 4)]


def test_malformed_frames_are_told_once() -> None:
    host = opened()
    short = fdl.encode_frame(fdl.EventReport.TYPE, 1, b"\x00\x00")
    heard = host.hear(Chunk(short * 3, START, 0), 0)
    [fault] = events_of(heard)
    assert isinstance(fault, DeviceFaulted)
    assert fault.code == "fdl.malformed"
    assert said(heard.answer) == [fdl.Nak(fdl.MALFORMED, 7, 11)]
    assert host.hear(Chunk(short, START, 1), 1).sightings == ()


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (0x7F, b"\x01\x02", "event 11 of kind 7F with data [01 02]: this kind of event is not known"),
        (0x24, b"\x63", "event 11 of kind 24 with data [63]: a new shoe is 0 to 12 decks"),
        (
            0x13,
            b"\x00\x00\x00",
            "event 11 of kind 13 with data [00 00 00]: such a device does not have this kind of event",
        ),
    ],
)
def test_what_nobody_can_read_is_told_and_acknowledged(kind: int, data: bytes, words: str) -> None:
    heard = hear(opened(), fdl.EventReport(11, 0, kind, data))
    [fault] = events_of(heard)
    assert isinstance(fault, DeviceFaulted)
    assert (fault.code, fault.text, fault.severity) == ("fdl.unknown_event", words, "warning")
    assert said(heard.answer) == [fdl.Ack(7, 11)]


@pytest.mark.parametrize(("kind", "faults"), [(fdl.SHAKER, fdl_shaker.FAULTS), (fdl.CONSOLE, fdl_console.FAULTS)])
def test_every_fault_has_its_code_and_ends_by_it(kind: int, faults: dict[int, object]) -> None:
    host = opened(kind=kind)
    codes = set()
    for n, code in enumerate(range(256)):
        begins = fdl.EventReport(11 + 2 * n, 0, fdl.Fault.KIND, fdl.Fault(code, 1).to_bytes())
        over = fdl.EventReport(12 + 2 * n, 0, fdl.Recovered.KIND, fdl.Recovered(code).to_bytes())
        fault, recovered = events_of(hear(host, begins, over))
        assert isinstance(fault, DeviceFaulted)
        assert recovered == DeviceRecovered(fault.code)
        assert fault.text
        assert fault.remedy
        assert fault.code.startswith("fdl.fault_") == (code not in COMMON_FAULTS and code not in faults)
        codes.add(fault.code)
    assert len(codes) == 256


def test_the_document_lists_every_fault() -> None:
    rows = re.findall(r"^\| ([0-9A-F]{2}) \| (all|shaker|console) \| `([a-z_.]+)`", DOC, re.MULTILINE)
    printed = {(device, int(code, 16), name) for code, device, name in rows}
    tables = {"all": COMMON_FAULTS, "shaker": fdl_shaker.FAULTS, "console": fdl_console.FAULTS}
    assert printed == {
        (device, code, fault.code) for device, faults in tables.items() for code, fault in faults.items()
    }


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_a_corrupt_memory_is_no_memory(junk: bytes) -> None:
    assert remembered(junk) is None
    assert remembered(b'{"epoch":7,"last":3,"unit":["a","b","' + junk) is None


@pytest.mark.parametrize(
    "memory",
    [
        None,
        b"",
        b'{"epoch":0,"last":3,"unit":["","",""]}',
        b'{"epoch":1,"last":-3,"unit":["","",""]}',
        b'{"epoch":1,"last":4294967296,"unit":["","",""]}',
        b'{"epoch":1,"last":3}',
        b'{"epoch":1,"last":3,"unit":["\xff","",""]}',
    ],
)
def test_a_memory_that_cannot_be_is_none(memory: bytes | None) -> None:
    assert remembered(memory) is None


def test_options() -> None:
    for driver in (FdlShaker, FdlConsole):
        assert msgspec.convert({}, driver.Options) == Options(silence=3.0)
        with pytest.raises(msgspec.ValidationError, match="silense"):
            msgspec.convert({"silense": 3}, driver.Options)


ANY_FRAMES = st.lists(
    st.binary(max_size=40)
    | st.builds(
        fdl.encode_frame,
        st.sampled_from([1, 2, 3, 0x81, 0x82, 0x83, 0x99]),
        st.integers(0, 255),
        st.binary(max_size=60) | st.binary(max_size=60).map(lambda data: b"\x01\x02" + data),
    )
    | st.builds(
        lambda counter, kind, data: fdl.encode(fdl.EventReport(counter, 0, kind, data), 0),
        st.integers(9, 14),
        st.sampled_from([*fdl.HAPPENINGS, 0x7F]),
        st.binary(max_size=6),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(ANY_FRAMES)
def test_whatever_comes_the_session_ends_only_as_a_driver_may(frames: list[bytes]) -> None:
    for host in (session(), opened()):
        with contextlib.suppress(LinkLost, DeviceRefused):
            for n, frame in enumerate(frames):
                heard = host.hear(Chunk(frame, START, n), n)
                assert (heard.memory is None) or heard.sightings
                host.wake(n)


@settings(max_examples=150, deadline=None)
@given(ANY_FRAMES)
def test_whatever_comes_the_device_lives(frames: list[bytes]) -> None:
    device = console()
    device.press("bell", 0)
    for n, frame in enumerate(frames):
        device.hear(frame, n)
    assert said(device.wake(100))


# ---- any order of mishaps


class Mishaps(RuleBasedStateMachine):
    """One console and one session after another over a line that loses frames; nothing is told twice, wrong or late.

    The evidence judges: each event told stands on the wire frame that it was read from, with its counter.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.device = console()
        self.memory: bytes | None = None
        self.truth: dict[int, dict[int, tuple[int, bytes]]] = {}
        self.epoch = 0
        self.expected = 0
        self.pressed = 0
        self.dies: str = ""
        self.connect()

    def connect(self) -> None:
        self.host = Session(fdl.CONSOLE, fdl_console.FAULTS, fdl_console.translate, Options(), self.memory)
        self.line: deque[tuple[str, bytes]] = deque([("down", self.host.begin(self.now))])

    def watch(self) -> None:
        """What the device has truly seen."""
        seen = self.truth.setdefault(self.device._epoch, {})
        for kept in reversed(self.device._ring):
            if kept.counter in seen:
                break
            seen[kept.counter] = (kept.kind, kept.data)

    def durable(self, heard: Heard) -> None:
        for sighting in heard.sightings:
            [frame] = fdl.Decoder().feed(sighting.wire)
            assert isinstance(frame, fdl.Frame)
            message, event = fdl.read(frame), sighting.event
            match message, event:
                case fdl.Identity(), DeviceOnline(continuous=True):
                    assert message.epoch == self.epoch
                    assert message.oldest <= self.expected <= message.next
                case fdl.Identity(), DeviceOnline():
                    if message.epoch != self.epoch:
                        self.expected = message.oldest if self.epoch else message.next
                        self.epoch = message.epoch
                case fdl.Identity(), EventsMissed(count):
                    self.expected += count
                    assert self.expected == message.oldest
                case fdl.EventReport(), _:
                    assert message.counter == self.expected
                    assert (message.kind, message.data) == self.truth[self.epoch][self.expected]
                    if message.kind == fdl.Started.KIND:
                        assert isinstance(event, DeviceOnline)
                        assert not event.continuous
                    else:
                        assert event == fdl_console.translate(fdl.RoundVoid(message.data[0]))
                    self.expected += 1
                case _:
                    pytest.fail(f"told {event} on the evidence of {message}")
        if heard.memory is not None:
            self.memory = heard.memory

    def carry(self, loses: Callable[[], bool]) -> None:
        """Until nothing is on the line."""
        while self.line:
            way, data = self.line.popleft()
            if not data or loses():
                continue
            if way == "down":
                self.line.append(("up", self.device.hear(data, self.now)))
                self.watch()
                continue
            heard = self.host.hear(Chunk(data, START, self.now), self.now)
            if self.dies == "before" and heard.sightings:
                self.dies = ""
                self.connect()
                continue
            self.durable(heard)
            if self.dies == "after" and heard.sightings:
                self.dies = ""
                self.connect()
                continue
            self.line.append(("down", heard.answer))

    def live(self, seconds: float, loses: Callable[[], bool]) -> None:
        end = self.now + seconds
        while True:
            try:
                self.line.append(("up", self.device.wake(self.now)))
                self.watch()
                self.line.append(("down", self.host.wake(self.now)))
                self.carry(loses)
            except (LinkLost, DeviceRefused):
                self.connect()
            if self.now >= end:
                return
            self.now = min(end, max(self.now + 0.001, min(self.device.due(), self.host.due())))

    @rule(
        seconds=st.sampled_from([0.01, 0.15, 0.4, 1.1, 4.0]),
        seed=st.integers(0, 9),
        odds=st.sampled_from([0, 0.2, 0.6]),
    )
    def time_passes(self, seconds: float, seed: int, odds: float) -> None:
        rng = random.Random(seed)
        self.live(seconds, lambda: rng.random() < odds)

    @rule(times=st.sampled_from([1, 2, 5, RING, RING + 50]))
    def keys_are_pressed(self, times: int) -> None:
        for _ in range(times):
            self.pressed += 1
            self.device.press("void", self.now, reason=self.pressed % 256)
            self.watch()

    @rule()
    def the_cable_is_cut(self) -> None:
        self.connect()

    @rule(lose_memory=st.booleans())
    def the_power_fails(self, lose_memory: bool) -> None:
        self.device.power_cycle(self.now, lose_memory=lose_memory)

    @rule(fault=st.sampled_from(["silence", "garbage", "duplicate_frames"]))
    def the_line_is_bad(self, fault: str) -> None:
        self.device.inject(fault, self.now)

    @precondition(lambda self: not self.dies)
    @rule(when=st.sampled_from(["before", "after"]))
    def the_host_will_die(self, when: str) -> None:
        """Before or after the next event is durable."""
        self.dies = when

    def teardown(self) -> None:
        self.dies = ""
        self.live(30, lambda: False)
        assert (self.epoch, self.expected) == (self.device._epoch, self.device._next)
        assert self.device.unacknowledged == 0


TestMishaps = Mishaps.TestCase
TestMishaps.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)
