"""The FDL drivers against the simulated devices over every kind of cable."""

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
from helpers import START, MemoryLink, Notebook, at_length, play, script, virtual_time
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from shuffler_bench import BYTE, LATENCY, Carry, byte_by_byte, lossy, whole

from drivers.driver import (
    Chunk,
    DeviceRefused,
    Driver,
    LinkLost,
    Sighting,
    decode_memory,
)
from drivers.fdl_console import FAULTS as CONSOLE_FAULTS, ConsoleOptions, FdlConsole
from drivers.fdl_session import (
    Heard,
    Memory,
    Session,
    SessionOptions,
)
from drivers.fdl_shaker import FdlShaker
from protocols.contract.commands import SelfTest
from protocols.contract.events import (
    BallChanged,
    BallLanded,
    BallLaunched,
    BallReplaced,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    CardDamaged,
    CardExposed,
    CutCardDrawn,
    DealCorrected,
    DealerRelieved,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceThrown,
    DiceUncovered,
    Event,
    EventsMissed,
    HandPassed,
    JackpotPaid,
    JackpotWon,
    RoundDemo,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeStarted,
    SupervisorKeyed,
    TableClosed,
    WagerPlaced,
    WagerWithdrawn,
    type_of,
)
from protocols.fdl import console as fdl_console, frame as fdl, shaker as fdl_shaker
from rules.engine.ruleset import Resolved, Suspended, Voided
from rules.macau.cussec import Cussec, CussecOptions
from simulators.devices.fdl_console import KEYS, Console
from simulators.devices.fdl_device import BOOT, RING, FdlDevice
from simulators.devices.fdl_shaker import CYCLE, Shaker
from simulators.devices.line import Line

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "protocols"
DOC = "".join((DOCS / name).read_text() for name in ("fdl.md", "fdl_shaker.md", "fdl_console.md"))
UNIT = ("Felt", "Console", "SIM-CONSOLE-1")

# ---- the mirror: simulator, cable, driver, in virtual time


def make(driver: type[FdlShaker | FdlConsole], memory: bytes | None) -> FdlShaker | FdlConsole:
    return FdlConsole(ConsoleOptions(), memory) if issubclass(driver, FdlConsole) else driver(SessionOptions(), memory)


class Bench:
    """A device, its cable and a supervisor that makes a new driver whenever the link is lost."""

    def __init__(
        self, device: FdlDevice, driver: type[FdlShaker | FdlConsole], notebook: Notebook, mangle: Carry
    ) -> None:
        self.device = device
        self.notebook = notebook
        self.line = Line(random.Random(1))
        self.lost: list[str] = []
        self.ended: list[str] = []
        self.spoken: FdlShaker | FdlConsole | None = None
        self._driver = driver
        self._mangle = mangle
        self._link: MemoryLink | None = None
        self._nudge = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._arrives_up = 0.0
        self._arrives_down = 0.0

    def stamp(self) -> Chunk:
        return Chunk(b"", START, self.now)

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

    def inject(self, fault: str) -> None:
        """A fault of the device or of its line."""
        if fault in self.device.line:
            self.line.inject(fault, self.now)
            if self.line.plug_at < float("inf"):
                self.cut()
        else:
            self.device.inject(fault, self.now)
        self._nudge.set()

    async def caught_up(self, seconds: float = 120) -> None:
        for _ in range(int(seconds * 100)):
            there = self._link is not None and self.spoken is not None and self.spoken._session.opening
            if there and not self.device.unacknowledged and self.notebook.sightings:
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"{self.device.unacknowledged} events left; lost: {self.lost}")

    async def live(self) -> None:
        """The device's side."""
        due = self.now
        while True:
            self._up(self.device.wake(max(due, self.now)))
            self._nudge.clear()
            due = min(self.device.due(), self.line.due())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._nudge.wait()
                    due = self.now

    async def supervise(self) -> None:
        """The host's side."""
        while True:
            if self.line.plug_at < float("inf"):
                await asyncio.sleep(self.line.plug_at - self.now)
                self.line.plug_at = float("inf")
            self._link = MemoryLink()
            self._link.on_write = self._down
            self.spoken = make(self._driver, self.notebook.memory)
            try:
                await self.spoken.run(self._link, self.notebook)
            except (LinkLost, DeviceRefused) as ended:
                self._link = None
                self.lost.append(str(ended))
                self.ended += ["device.refused"] * isinstance(ended, DeviceRefused) + ["device.offline"]
                await asyncio.sleep(0.5)

    def _up(self, data: bytes) -> None:
        link = self._link
        data = self.line.to_host(data, self.now)
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
            self._up(self.device.hear(self.line.to_device(data, self.now), self.now))
            self._nudge.set()


@contextlib.asynccontextmanager
async def bench(
    device: FdlDevice,
    mangle: Carry = whole,
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


def void(reason: int) -> RoundVoided:
    return RoundVoided(fdl_console.VOID_REASONS.get(reason, f"reason {reason} of the console"))


def happened(notebook: Notebook) -> list[Event]:
    """What it told beside the comings and goings of the device."""
    return [event for event in notebook.events if not isinstance(event, DeviceOnline)]


def onlines(notebook: Notebook) -> list[bool]:
    return [event.continuous for event in notebook.events if isinstance(event, DeviceOnline)]


def reading(device: Shaker, now: float) -> DiceRead:
    seen = device.read(now)
    assert seen is not None
    return DiceRead(*seen)


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
    table.do(lambda now: told.append(reading(device, now)))
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
async def test_a_console_that_names_the_round() -> None:
    device, named = console(), "bac-12:2026-11-20:1:7"
    async with bench(device) as table:
        await table.caught_up()
        table.do(functools.partial(device.press, "void", reason=2, named=named))
        table.do(functools.partial(device.press, "paid", named=named))
        table.do(lambda now: device.supervisor_key(on=True, now=now))
        table.do(functools.partial(device.correct, {"player": ("9H",)}, named=named))
        await table.caught_up()
    assert happened(table.notebook) == [
        RoundVoided("equipment_fault", named),
        RoundPaid(named),
        SupervisorKeyed(present=True),
        DealCorrected({"player": ("9H",)}, named),
    ]


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
        RoundVoided("equipment_fault"),
        RoundPaid(),
        ShoeStarted(8),
        CutCardDrawn(),
        RoundDemo(),
        DealerRelieved(),
        DiceCovered(),
        DiceUncovered(),
        DiceDisturbed(),
        DiceReplaced(),
        DiceSeized(),
        BallChanged(),
        TableClosed(),
        ButtonsSeparated(),
    ]


CABLES: dict[str, tuple[Carry, bool]] = {
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
            device.press("void", table.now, reason=6 + n % 200)
        await table.caught_up()
    assert onlines(table.notebook) == [False, False]
    told = happened(table.notebook)
    assert told[:2] == [BetsClosed(), EventsMissed(44)]
    assert told[2:] == [void(6 + n % 200) for n in range(44, RING + 44)]


@virtual_time
async def test_a_full_ring_loses_nothing() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.cut()
        for n in range(RING):
            device.press("void", table.now, reason=6 + n % 200)
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
            table.do(functools.partial(device.press, "void", reason=6 + n % 200))
            await asyncio.sleep(0.025)
        assert happened(disk) == []
        disk.free.set()
        await table.caught_up()
    first, *rest = happened(disk)
    assert first == void(6)  # under way when the disk stopped
    assert sum(event.count for event in rest if isinstance(event, EventsMissed)) == 400 - RING - 1
    assert [event for event in rest if not isinstance(event, EventsMissed)] == [
        void(6 + n % 200) for n in range(400 - RING, 400)
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
    memory = decode_memory(table.notebook.memory, Memory)
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


# ---- every fault, of the devices and of their lines


def codes_of(events: Sequence[Event]) -> set[str]:
    return {event.code for event in events if isinstance(event, DeviceFaulted)}


def standing_of(events: Sequence[Event]) -> set[str]:
    """The faults told and not told to be over."""
    standing = set()
    for event in events:
        if isinstance(event, DeviceFaulted):
            standing.add(event.code)
        elif isinstance(event, DeviceRecovered):
            standing.discard(event.code)
    return standing


async def play_cussec(table: Bench, device: Shaker, strikes: str = "") -> None:
    """One round with a console whose keys are always told; `strikes` is a fault that comes when it has begun."""
    seen = table.notebook.sightings

    def press(event: Event) -> None:
        seen.append(Sighting(event, b"", table.stamp()))

    table.do(device.cover)
    await asyncio.sleep(0.1)
    if strikes:
        table.inject(strikes)
    await asyncio.sleep(1)
    for _ in range(3):
        table.do(device.pull_lever)
        await asyncio.sleep(1)
    press(BetsOpened())
    await asyncio.sleep(15)
    press(BetsClosed())
    await asyncio.sleep(1)
    table.do(device.uncover)
    await asyncio.sleep(1)
    table.do(device.read)
    await asyncio.sleep(3)
    press(RoundPaid())
    await asyncio.sleep(1)


async def play_console(table: Bench, device: Console, strikes: str = "") -> None:
    table.do(lambda now: device.press("bets_opened", now))
    await asyncio.sleep(0.1)
    if strikes:
        table.inject(strikes)
    await asyncio.sleep(15)
    table.do(lambda now: device.press("bell", now))
    await asyncio.sleep(12)
    table.do(lambda now: device.press("paid", now))
    await asyncio.sleep(2)


async def one_round(table: Bench, strikes: str = "") -> None:
    match table.device:
        case Shaker() as device:
            await play_cussec(table, device, strikes)
        case Console() as device:
            await play_console(table, device, strikes)


def types(events: Sequence[Event]) -> list[str]:
    """The events of the game."""
    return [type_of(event) for event in events if not type_of(event).startswith(("device.", "events."))]


def judged(before: Sequence[Event], during: Sequence[Event]) -> str:
    """What the ruleset makes of the round in `during`."""
    ruleset = Cussec(CussecOptions(payment="console"))
    assert len([one for one in play(ruleset, before) if isinstance(one, Resolved)]) == 1
    state = ruleset.start("t-1")
    verdicts: list[object] = []
    for n, seen in enumerate(script([*before, *during])):
        state, new = ruleset.apply(state, seen)
        verdicts += new if n >= len(before) else ()
    for one in verdicts:
        match one:
            case Resolved():
                return "counts"
            case Voided():
                return "void"
            case Suspended():
                return "suspended"
    assert state.round is not None  # never read: it waits
    return "suspended"


SUSPENDING = [name for name, ailment in Shaker.faults.items() if ailment.round == "suspended"]


@pytest.mark.parametrize("fault", SUSPENDING)
@virtual_time
async def test_a_fault_of_the_shaker_suspends_its_round(fault: str) -> None:
    device = shaker(3)
    async with bench(device) as table:
        await table.caught_up()
        await one_round(table)
        before = len(table.notebook.sightings)
        await one_round(table, fault)
        during = len(table.notebook.sightings)
        await asyncio.sleep(15)
    events = table.notebook.events
    assert judged(events[:before], events[before:during]) == "suspended"


def onlines_of(events: Sequence[Event]) -> list[bool]:
    return [event.continuous for event in events if isinstance(event, DeviceOnline)]


@virtual_time
async def test_many_events_on_a_line_slower_than_the_repeats_come_late_and_whole() -> None:
    """50 bytes a second: the repeats fill the line's queue, which drains long after the fault."""
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.inject("slow_drip")
        for n in range(6, 12):
            table.do(functools.partial(device.press, "void", reason=n))
        await asyncio.sleep(90)
        await table.caught_up()
    assert happened(table.notebook) == [void(n) for n in range(6, 12)]
    assert False not in onlines(table.notebook)[1:]


@virtual_time
async def test_a_power_loss_under_a_running_motor_is_told() -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        table.do(device.cover)
        assert device.agitate(table.now)
        await asyncio.sleep(CYCLE / 2)
        table.do(lambda now: device.inject("power_loss", now))
        await asyncio.sleep(BOOT + 1)
        await table.caught_up()
        assert standing_of(table.notebook.events) == {"shaker.not_finished"}
        table.do(device.pull_lever)
        await asyncio.sleep(1)
    # Only that of the lever counts.
    assert types(table.notebook.events) == ["dice.covered", "dice.disturbed", "dice.agitated"]
    assert standing_of(table.notebook.events) == set()


def test_dealer_reads_dice_that_the_shaker_cannot() -> None:
    device = shaker()
    device.cover(0)
    device.inject("dice_not_moved", 0)
    lay = device.lie()
    assert not device.pull_lever(1)
    assert device.lie() == lay
    assert device.pull_lever(2)
    device.inject("lever_stuck", 3)
    assert not device.lever_works(3)
    before = device._next
    assert device.pull_lever(4)  # the dice move, nobody counts it
    assert device._next == before
    device.uncover(5)
    device.inject("unreadable", 5)
    assert device.read(6) is None
    device.repair(7)
    assert device.lever_works(7)
    assert device.read(8) == device.lie() != lay
    device.inject("die_missing", 9)
    seen = device.read(10)
    assert seen == device.lie()
    assert len(seen[0]) == 2
    device.power_cycle(11, lose_memory=False)
    assert device.read(11.1) is None


@virtual_time
async def test_lifting_the_dome_stops_the_motor() -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        table.do(device.cover)
        assert device.agitate(table.now)
        assert not device.agitate(table.now)  # busy
        await asyncio.sleep(CYCLE / 2)
        table.do(device.uncover)
        await asyncio.sleep(CYCLE)
    assert types(table.notebook.events) == ["dice.covered", "dice.disturbed", "dice.uncovered"]
    assert codes_of(table.notebook.events) == {"shaker.not_finished"}


@virtual_time
async def test_a_second_failure_in_one_cycle_is_an_error_and_a_good_throw_begins_anew() -> None:
    device = shaker()
    async with bench(device) as table:
        await table.caught_up()
        for _ in range(2):
            device.inject("dice_not_moved", table.now)
            table.do(device.pull_lever)
            await asyncio.sleep(1)
        table.do(device.pull_lever)
        await asyncio.sleep(1)
        table.do(device.read)
        await asyncio.sleep(1)
        device.inject("dice_not_moved", table.now)
        table.do(device.pull_lever)
        await asyncio.sleep(1)
    faults = [event for event in table.notebook.events if isinstance(event, DeviceFaulted)]
    assert [fault.severity for fault in faults] == ["warning", "error", "warning"]
    assert {fault.code for fault in faults} == {"shaker.no_shake"}


@virtual_time
async def test_a_fault_outlives_the_restart_of_the_host_and_of_the_device() -> None:
    device = console()
    notebook = Notebook()
    async with bench(device, notebook=notebook) as table:
        await table.caught_up()
        table.do(lambda now: device.inject("key_stuck", now))
        await asyncio.sleep(1)
    [fault] = [event for event in happened(notebook) if isinstance(event, DeviceFaulted)]
    assert (fault.code, fault.severity) == ("console.key_stuck", "warning")
    assert fault.text.endswith("(place 4)")
    async with bench(device, notebook=notebook) as table:
        await asyncio.sleep(20)
        assert len(happened(notebook)) == 1  # not told again, not over
        table.do(lambda now: device.power_cycle(now, lose_memory=False))
        await asyncio.sleep(20)
        again = happened(notebook)[1]
        assert isinstance(again, DeviceFaulted)  # its self-test finds it again
        assert (again.code, again.severity, again.text[-9:]) == ("console.key_stuck", "error", "(place 4)")
        assert len(happened(notebook)) == 2
        device.repair(table.now)
        table.do(lambda _: None)
        await asyncio.sleep(1)
    assert happened(notebook)[2:] == [DeviceRecovered("console.key_stuck")]


@virtual_time
async def test_a_fault_that_was_lost_with_the_memory_ends_by_the_heartbeat() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        table.do(lambda now: device.inject("hot", now))
        await asyncio.sleep(1)
        table.do(lambda now: device.power_cycle(now, lose_memory=True))
        await asyncio.sleep(BOOT + 4.5)
        assert standing_of(table.notebook.events) == {"fdl.temperature"}
        await asyncio.sleep(2)
        assert standing_of(table.notebook.events) == set()
    assert len(happened(table.notebook)) == 2


@virtual_time
async def test_a_fault_from_before_the_first_contact_is_told_and_asked_for() -> None:
    device = console()
    device.inject("bell_dead", 0)
    async with bench(device) as table:
        await asyncio.sleep(8)
        assert standing_of(table.notebook.events) == {"fdl.untold_fault"}
        assert table.spoken is not None
        assert await table.spoken.obey(SelfTest()) == {}
        await asyncio.sleep(2)
        assert standing_of(table.notebook.events) == {"console.bell"}
        device.repair(table.now)
        await asyncio.sleep(3)
    assert standing_of(table.notebook.events) == set()


@virtual_time
async def test_a_spare_unit_ends_what_the_broken_one_had_reported() -> None:
    notebook = Notebook()
    async with bench(console(), notebook=notebook) as table:
        await table.caught_up()
        table.device.inject("bell_dead", table.now)
        await asyncio.sleep(2)
    async with bench(Console(random.Random(2), "SPARE"), notebook=notebook) as table:
        await asyncio.sleep(2)
        assert standing_of(notebook.events) == {"console.bell"}
        await asyncio.sleep(6)
    assert standing_of(notebook.events) == set()


@pytest.mark.parametrize("fault", ["counters_reset", "malformed_frame", "strange_event"])
@virtual_time
async def test_a_spare_unit_ends_what_the_host_had_found_of_the_broken_one(fault: str) -> None:
    """The spare is sound and starts before anybody listens: no start of it is ever told."""
    notebook = Notebook()
    async with bench(console(), notebook=notebook) as table:
        await one_round(table)
        await table.caught_up()
        table.inject(fault)
        await one_round(table)
        await table.caught_up()
    [found] = standing_of(notebook.events)
    spare = Console(random.Random(2), "SPARE")
    spare.power_cycle(0.0, lose_memory=True)
    spare.wake(BOOT)
    async with bench(spare, notebook=notebook) as table:
        await table.caught_up()
        await asyncio.sleep(10)
    assert standing_of(notebook.events) == set()
    assert notebook.events.count(DeviceRecovered(found)) == 1
    memory = decode_memory(notebook.memory, Memory)
    assert memory is not None
    assert memory.faults.open == ()


# ---- what is entered at the console


def reported(device: Console) -> list[Event]:
    """What its ring says, in the casino's words."""
    driver = make(FdlConsole, None)
    events: list[Event] = []
    for kept in device._ring:
        happening = fdl.read_happening(kept.kind, kept.data, fdl_console.HAPPENINGS)
        events += driver.translate(happening) or () if not isinstance(happening, fdl.Malformed) else ()
    return events


def test_a_value_is_reported_when_it_is_entered_twice_alike() -> None:
    device = console()
    assert not device.enter_dice((2, 5, 5), 0)
    assert not device.enter_dice((2, 5, 4), 1)  # takes the place of the first
    assert device.enter_dice((2, 5, 4), 2)
    assert not device.enter_dice((2, 5, 4), 3)  # a new value begins
    assert not device.enter_dice((2, 5, 4), 40)  # too late to confirm it
    assert device.enter_dice((2, 5, 4), 41, stacked=0)
    assert not device.enter_buttons(119, 1, 42)
    assert not device.enter_dice((2, 5, 4), 43)  # something else in between
    assert not device.enter_ball("17", 80)
    assert device.enter_ball("17", 81)
    assert not device.throw_dice((3, 4), 82)
    assert device.throw_dice((3, 4), 83)
    assert device.throw_dice((), 84, reason=3)  # no result: once is enough
    assert not device.enter_buttons(119, 1, 85)
    assert device.enter_buttons(119, 1, 86)
    assert reported(device) == [
        DiceRead((2, 5, 4)),
        DiceRead((2, 5, 4)),
        BallLanded("17"),
        DiceThrown((3, 4)),
        DiceThrown((), valid=False, reason="a_die_off_the_table"),
        ButtonsCounted(119, 1),
    ]


@pytest.mark.parametrize("entries", [(1, 2, 3), (1, 2, 1)])
def test_three_entries_each_unlike_the_one_before_are_a_fault(entries: tuple[int, ...]) -> None:
    device = console()
    for n in entries:
        assert not device.enter_dice((n,), 0)
    assert device._ails(0x25, 0)
    assert not device.enter_dice((3,), 1)  # begins anew
    assert device.enter_dice((3,), 2)
    assert not device._ails(0x25, 2)


def test_a_half_made_entry_does_not_outlive_the_power() -> None:
    device = console()
    device.enter_dice((1, 2, 3), 0)
    device.power_cycle(1, lose_memory=False)
    assert not device.enter_dice((1, 2, 3), 1.1)  # it is off
    assert not device.enter_dice((1, 2, 3), 4)
    assert device.enter_dice((1, 2, 3), 5)


def test_corrections_payments_and_the_supervisor_s_void_need_the_key() -> None:
    device = console()
    hands = {"player": ("9H", "KC"), "seat_3_2": ("AS",)}
    device.press("void", 0, reason=fdl_console.SUPERVISORS_DECISION)
    assert not device.correct(hands, 0)
    assert not device.pay_jackpot(1, 3, 0)
    assert reported(device) == []
    device.supervisor_key(on=True, now=1)
    device.supervisor_key(on=True, now=1)
    assert device.correct(hands, 2)
    assert device.pay_jackpot(1, 3, 2, amount=500)
    device.press("void", 2, reason=fdl_console.SUPERVISORS_DECISION)
    device.supervisor_key(on=False, now=3)
    assert not device.correct(hands, 4)
    assert reported(device) == [
        SupervisorKeyed(present=True),
        DealCorrected({"player": ("9H", "KC"), "seat_3_2": ("AS",)}),
        JackpotPaid("table", 1, 3, 500),
        RoundVoided("supervisors_decision"),
        SupervisorKeyed(present=False),
    ]
    with pytest.raises(ValueError, match="a card is"):
        device.correct({"player": ("1S",)}, 5)


def test_a_start_and_a_broken_switch_turn_the_key_off() -> None:
    device = console()
    device.supervisor_key(on=True, now=0)
    device.power_cycle(1, lose_memory=False)
    assert not device.correct({"player": ("9H",)}, 5)
    device.supervisor_key(on=True, now=6)
    device.inject("key_switch", 7)
    assert not device.correct({"player": ("9H",)}, 8)
    device.supervisor_key(on=True, now=9)
    assert not device.correct({"player": ("9H",)}, 10)
    device.repair(11)
    device.supervisor_key(on=True, now=12)
    assert device.correct({"player": ("9H",)}, 13)


def test_a_dark_display_takes_no_values_and_a_dead_keypad_nothing() -> None:
    device = console()
    device.supervisor_key(on=True, now=0)
    device.inject("display_dark", 1)
    assert not device.enter_dice((1,), 2)
    assert not device.enter_dice((1,), 3)
    assert not device.correct({"player": ("9H",)}, 4)
    device.press("bell", 5)
    device.inject("keypad_dead", 6)
    device.press("paid", 7)
    device.repair(8)
    device.press("demo", 9)
    assert reported(device) == [SupervisorKeyed(present=True), BetsClosed(), RoundDemo()]


@virtual_time
async def test_the_other_words_of_the_console() -> None:
    device = console()
    async with bench(device) as table:
        await table.caught_up()
        now = table.now
        device.seat(3, now, on=True)
        device.act(3, "double", now, hand=2, amount=10_000)
        device.seat(3, now, on=False)
        device.pass_hand(5, now)
        device.expose_card("dealer", "AS", now)
        device.expose_card("seat_3", None, now)
        device.damage_card("TD", now)
        device.launch_ball(fdl_console.CLOCKWISE, fdl_console.ANTICLOCKWISE, now)
        device.replace_ball("00", now)
        device.bet(3, "fan:2", 1000, now)
        device.take_back(3, "fan:2", 0, now)
        device.replace_ball(None, now)
        device.win_jackpot(1, 3, now, amount=5)
        table.do(lambda _: None)
        await table.caught_up()
    assert happened(table.notebook) == [
        SeatOpened(3),
        SeatActed(3, "double", 2, 10_000),
        SeatClosed(3),
        HandPassed(5),
        CardExposed("dealer", "AS"),
        CardExposed("seat_3"),
        CardDamaged("TD"),
        BallLaunched("clockwise", "anticlockwise"),
        BallReplaced("00"),
        WagerPlaced(3, "fan:2", 1000),
        WagerWithdrawn(3, "fan:2"),
        BallReplaced(),
        JackpotWon("table", 1, 3, 5),
    ]
    with pytest.raises(ValueError, match="no action 'wink'"):
        device.act(1, "wink", 0)


def test_every_act_is_an_event() -> None:
    for name in console().acts():
        device = console()
        device.acts()[name](0)
        assert len(reported(device)) == 1, name
    for name in shaker().acts():
        under = shaker()
        under.cover(0)
        under.acts()[name](1)
        assert len(under._ring) == 2 or name == "agitate"
    assert all(act in shaker().acts() for act, _ in Shaker.routine)
    assert all(act in console().acts() for act, _ in Console.routine)


def test_jackpot_pool_comes_from_the_options() -> None:
    driver = FdlConsole(msgspec.convert({"pool": "mega-1"}, ConsoleOptions))
    assert driver.translate(fdl_console.JackpotWon(2, 0, 7)) == (JackpotWon("mega-1", 2, 0, 7),)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"pool": "Mega 1"}, ConsoleOptions)


def test_every_event_of_the_two_devices_has_words() -> None:
    """And a driver knows only its own."""
    for driver, own in ((make(FdlShaker, None), fdl_shaker), (make(FdlConsole, None), fdl_console)):
        assert driver.happenings == own.HAPPENINGS
    assert make(FdlShaker, None).translate(fdl_console.BetsOpened()) is None
    assert make(FdlConsole, None).translate(fdl_shaker.Covered()) is None


def test_features_that_the_simulators_lack() -> None:
    for device in (shaker(), console(), FdlDevice(random.Random(1))):
        with pytest.raises(ValueError, match="has no fault 'flood'"):
            device.inject("flood", 0)
        for fault in device.faults:
            device.inject(fault, 0)
    with pytest.raises(ValueError, match="has no key"):
        console().press("coffee", 0)


def test_dice_are_the_seed_s() -> None:
    def throws(seed: int) -> list[DiceRead]:
        device = shaker(seed)
        seen = []
        for n in range(50):
            assert device.pull_lever(n)
            seen.append(reading(device, n))
        return seen

    assert throws(5) == throws(5) != throws(6)
    assert {face for seed in range(50) for face in reading(shaker(seed), 0).faces} == {
        1,
        2,
        3,
        4,
        5,
        6,
    }


def test_events_between_wakes_are_due_now() -> None:
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
    return FdlShaker(SessionOptions())


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
async def test_an_open_session_is_lost_three_seconds_after_the_last_heartbeat() -> None:
    """Also in noise, which is heard all the time."""
    device, rng, sound_s = Shaker(random.Random(1)), random.Random(1), 10.0

    def feed(link: MemoryLink, now: float) -> None:
        link.on_write = lambda data: link.feed(device.hear(data, asyncio.get_running_loop().time()))
        link.feed(device.wake(now) if now <= sound_s else rng.randbytes(500))

    error, at, _, notebook = await ends(shaker_driver(), feed)
    assert isinstance(error, LinkLost)
    assert sound_s + 2 <= at <= sound_s + 3.3
    assert any(isinstance(event, DeviceOnline) for event in notebook.events)


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


@pytest.mark.parametrize(("position", "at"), [(5, 11), (0, 10)])
@virtual_time
async def test_a_device_that_heard_us_once_and_no_more_is_refused_with_that_reason(position: int, at: float) -> None:
    """It was told to answer otherwise than FDL says, by what it had said before the host's line broke.

    Position 0 is what FDL says at the first meeting: it asks for a HELLO that names where to go on.
    """

    def feed(link: MemoryLink, now: float) -> None:
        beat = fdl.Heartbeat(500, 5, fdl.WAITS_FOR_HELLO if now > 1 else 0)
        link.feed(identity(position=position) if now < 0.1 else fdl.encode(beat, 2))

    error, ended, _, _ = await ends(shaker_driver(), feed)
    assert isinstance(error, DeviceRefused)
    assert "transmit line" in str(error)
    assert ended == pytest.approx(at, abs=0.5)


def identity(**changes: object) -> bytes:
    fields = {"kind": fdl.SHAKER, "epoch": 7, "oldest": 1, "next": 5, "position": 0, "vendor": "Acme", "model": "DS-3"}
    return fdl.encode(msgspec.convert({**fields, **changes}, fdl.Identity), 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (identity(kind=fdl.CONSOLE), r"Acme DS-3  is a console \(kind 2\), not a shaker \(kind 1\): check the port"),
        (identity(kind=99), "device of an unknown kind"),
        (identity(version=2), "speaks FDL version 2, this driver version 1"),
        (identity(oldest=6), "does not identify itself as FDL requires"),
        (identity(epoch=0), "does not identify itself as FDL requires"),
    ],
)
@virtual_time
async def test_refused_devices(answer: bytes, reason: str) -> None:
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
    assert "does not continue at the requested position" in str(error)
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


def said(data: bytes) -> list[object]:
    return [fdl.read(found) for found in fdl.Decoder().feed(data) if isinstance(found, fdl.Frame)]


# ---- any order of mishaps


class Mishaps(RuleBasedStateMachine):
    """One console and one session after another over a line that loses frames; nothing is told twice, wrong or late.

    The evidence judges: each event told stands on the wire frame that it was read from, with its counter.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.device = console()
        self.cable = Line(random.Random(1))
        self.memory: bytes | None = None
        self.truth: dict[int, dict[int, tuple[int, bytes]]] = {}
        self.epoch = 0
        self.expected = 0
        self.pressed = 0
        self.dies: str = ""
        self.connect()

    def connect(self) -> None:
        self.host = Session(
            fdl.CONSOLE,
            CONSOLE_FAULTS,
            fdl_console.HAPPENINGS,
            make(FdlConsole, None).translate,
            SessionOptions(),
            self.memory,
        )
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
                        assert event == void(message.data[0])
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
                heard_there = self.cable.to_device(data, self.now)
                self.line.append(("up", self.cable.to_host(self.device.hear(heard_there, self.now), self.now)))
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
                self.line.append(("up", self.cable.to_host(self.device.wake(self.now), self.now)))
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

    @rule(fault=st.sampled_from(["silence", "garbage", "half_frame", "repeated", "wrong_baud"]))
    def the_line_is_bad(self, fault: str) -> None:
        self.cable.inject(fault, self.now)

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
TestMishaps.settings = settings(max_examples=at_length(50, 2000), stateful_step_count=20)
