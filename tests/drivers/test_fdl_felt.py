"""What lies under the felt, over FDL: bet sensors, lamps, peek reader, timer, button counter.

Exact data both ways, every fault of each, every command, and what outlives a restart.
"""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import START, MemoryLink, Notebook, at_length, play, virtual_time
from hypothesis import given, settings, strategies as st
from shuffler_bench import Bench, Carry, bench as bench_of_shufflers, carrying, whole

from drivers.driver import Chunk, CommandFailed, CommandRefused, Sighting
from drivers.fdl_bets import BetOptions, FdlBets
from drivers.fdl_buttons import FdlButtons
from drivers.fdl_lamps import FdlLamps, LampOptions
from drivers.fdl_peek import FdlPeek
from drivers.fdl_session import COMMON_FAULTS, HOST_FAULTS, FdlDriver, SessionOptions
from drivers.fdl_timer import FdlTimer, TimerOptions
from protocols.contract.commands import ClearBets, Command, Light, LockBets, SelfTest, StartTimer, StopTimer
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BetsClosed,
    BetsOpened,
    ButtonsCounted,
    ButtonsSeparated,
    ButtonsUncovered,
    CardDrawn,
    DeviceFaulted,
    DeviceOffline,
    DeviceOnline,
    DeviceRecovered,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    HoleCardPeeked,
    JackpotContributed,
    JackpotPaid,
    JackpotWon,
    LampsLit,
    MachineReported,
    RoundPaid,
    RoundVoided,
    SpinStarted,
    SupervisorKeyed,
    WagerPlaced,
    type_of,
)
from protocols.fdl import (
    bets as fdl_bets,
    buttons as fdl_buttons,
    frame as fdl,
    lamps as fdl_lamps,
    peek as fdl_peek,
    timer as fdl_timer,
)
from rules.engine.ruleset import Resolved, Ruleset, Suspended, Verdict, Voided
from rules.macau.baccarat import Baccarat, BaccaratOptions
from rules.macau.cussec import Cussec, CussecOptions
from rules.macau.roulette import Roulette, RouletteOptions
from simulators.devices.device import ailments
from simulators.devices.fdl_bets import SEATS, BetSensors
from simulators.devices.fdl_buttons import ButtonCounter
from simulators.devices.fdl_device import FdlDevice
from simulators.devices.fdl_lamps import Lamps
from simulators.devices.fdl_peek import PeekReader
from simulators.devices.fdl_timer import Timer

DOCS = Path(__file__).parents[2] / "docs/reference/protocols"
CLEARED = MachineReported("bets_cleared", "the latched bets were cleared")


class Kind(msgspec.Struct, frozen=True):
    """One kind of device at both ends."""

    name: str
    driver: type[FdlDriver]
    device: Callable[[int], FdlDevice]
    number: int
    events: range
    faults: range
    commands: range
    happenings: dict[int, type[fdl.Happening]]
    orders: tuple[Command, ...] = ()

    @property
    def document(self) -> str:
        return (DOCS / f"{self.name}.md").read_text(encoding="utf-8")

    def make(self, memory: bytes | None = None, **options: Any) -> FdlDriver:
        return self.driver(msgspec.convert(options, self.driver.Options), memory)


BETS = Kind(
    FdlBets.name,
    FdlBets,
    lambda seed: BetSensors(random.Random(seed)),
    6,
    range(0x60, 0x68),
    range(0x50, 0x58),
    range(0x40, 0x50),
    fdl_bets.HAPPENINGS,
    (LockBets(), ClearBets(), Light(("1", "3"))),
)
LAMPS = Kind(
    FdlLamps.name,
    FdlLamps,
    lambda seed: Lamps(random.Random(seed)),
    7,
    range(0x68, 0x70),
    range(0x58, 0x60),
    range(0x50, 0x58),
    fdl_lamps.HAPPENINGS,
    (Light(("2", "3")),),
)
PEEK = Kind(
    FdlPeek.name,
    FdlPeek,
    lambda seed: PeekReader(random.Random(seed)),
    8,
    range(0x70, 0x74),
    range(0x60, 0x64),
    range(0x5C, 0x60),
    fdl_peek.HAPPENINGS,
)
TIMER = Kind(
    FdlTimer.name,
    FdlTimer,
    lambda seed: Timer(random.Random(seed)),
    9,
    range(0x74, 0x78),
    range(0x64, 0x68),
    range(0x58, 0x5C),
    fdl_timer.HAPPENINGS,
    (StartTimer(30), StopTimer()),
)
BUTTONS = Kind(
    FdlButtons.name,
    FdlButtons,
    lambda seed: ButtonCounter(random.Random(seed)),
    4,
    range(0x78, 0x7C),
    range(0x68, 0x6C),
    range(0),
    fdl_buttons.HAPPENINGS,
)
KINDS = {kind.name: kind for kind in (BETS, LAMPS, PEEK, TIMER, BUTTONS)}


def removed(seat: int) -> MachineReported:
    text = f"the chip of seat {seat} was taken away after the lock; its bet stays latched"
    return MachineReported("latched_chip_removed", text)


# What the documents' examples say, and how they are told.
EXAMPLES: dict[int, tuple[Kind, fdl.Happening, tuple[Event, ...]]] = {
    0x60: (
        BETS,
        fdl_bets.Locked((1, 3), (2,)),
        (
            WagerPlaced(1, "jackpot", 1000),
            JackpotContributed("table", 1000, 1),
            WagerPlaced(3, "jackpot", 1000),
            JackpotContributed("table", 1000, 3),
        ),
    ),
    0x61: (BETS, fdl_bets.Cleared(), (CLEARED,)),
    0x62: (BETS, fdl_bets.JackpotWon(3, 1), (JackpotWon("table", 1, 3),)),
    0x63: (BETS, fdl_bets.JackpotPaid(3, 1), (JackpotPaid("table", 1, 3),)),
    0x64: (BETS, fdl_bets.SupervisorKey(on=True), (SupervisorKeyed(present=True),)),
    0x65: (BETS, fdl_bets.Lit((1, 3)), (LampsLit(("1", "3")),)),
    0x66: (BETS, fdl_bets.Removed(3), (removed(3),)),
    0x68: (LAMPS, fdl_lamps.Lit((2, 3)), (LampsLit(("2", "3")),)),
    0x70: (PEEK, fdl_peek.Peeked(blackjack=True), (HoleCardPeeked(blackjack=True),)),
    0x74: (TIMER, fdl_timer.Running(30, fdl_timer.BY_HOST), ()),
    0x75: (TIMER, fdl_timer.Expired(), (BetsClosed(),)),
    0x76: (TIMER, fdl_timer.Stopped(7), ()),
    0x78: (BUTTONS, fdl_buttons.Separated(), (ButtonsSeparated(),)),
    0x79: (BUTTONS, fdl_buttons.Counted(119, 1), (ButtonsCounted(119, 1),)),
}


# ---- the wire and its documents


def rows(document: str, heading: str) -> dict[int, list[str]]:
    """The rows of the table under a heading that begin with a hex byte."""
    section = document.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch("[0-9A-F]{2}", cells[0]):
            found[int(cells[0], 16)] = cells
    return found


@pytest.mark.parametrize("name", KINDS)
def test_a_document_lists_every_event_fault_and_command(name: str) -> None:
    kind = KINDS[name]
    events = set(rows(kind.document, "Events"))
    assert events == set(kind.happenings) == {n for n, (own, *_) in EXAMPLES.items() if own is kind}
    assert events <= set(kind.events)
    assert kind.driver.kind == kind.number
    assert re.search(rf"`kind`\s+is\s+{kind.number}\b", kind.document)
    told = {code: row[1].strip("`") for code, row in rows(kind.document, "Faults").items()}
    assert told == {code: fault.code for code, fault in kind.driver.codes.items()}
    assert set(told) <= set(kind.faults)
    commands = {code: bytes.fromhex(row[3].strip("`")) for code, row in rows(kind.document, "Commands").items()}
    assert dict(kind.make().order(command) for command in kind.orders) == commands
    assert set(commands) <= set(kind.commands)
    assert {type(command) for command in kind.orders} | {SelfTest} == set(kind.driver.commands)
    for reason, text in kind.driver.reasons.items():
        assert f"{reason:02X} {text}" in " ".join(kind.document.split())


@pytest.mark.parametrize("number", EXAMPLES)
def test_each_example_both_ways(number: int) -> None:
    kind, happening, told = EXAMPLES[number]
    row = rows(kind.document, "Events")[number]
    data = bytes.fromhex(row[3].strip("`"))
    assert happening.to_bytes() == data
    assert fdl.read_happening(number, data, kind.happenings) == happening
    assert kind.make().translate(happening) == told
    assert {type_of(event) for event in told} <= set(re.findall("`([a-z_.]+)`", row[4]))


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0x60, "00 00 00 05"),
        (0x60, "00 00 00 05 00 00 00 04"),  # latched and doubtful
        (0x60, "00 00 00 05 00 00 00 02 00"),
        (0x61, "00"),
        (0x62, "00 01"),
        (0x62, "21 01"),
        (0x62, "03 00"),
        (0x62, "03 21"),
        (0x63, "03"),
        (0x64, "02"),
        (0x64, ""),
        (0x65, "00 00 00"),
        (0x66, "00"),
        (0x66, "21"),
        (0x66, "03 01"),
        (0x68, "00 00 00 00 00"),
        (0x70, "02"),
        (0x70, "11"),  # no card passes
        (0x70, "01 11"),
        (0x70, ""),
        (0x74, "00 00 01"),
        (0x74, "02 59 01"),
        (0x74, "00 1E 00"),
        (0x74, "00 1E"),
        (0x75, "00"),
        (0x76, "02 59"),
        (0x76, "07"),
        (0x78, "00"),
        (0x79, "00 00 01"),
        (0x79, "00 77"),
    ],
)
def test_impossible_values(number: int, data: str) -> None:
    assert isinstance(fdl.read_happening(number, bytes.fromhex(data), EXAMPLES[number][0].happenings), fdl.Malformed)


@given(st.sampled_from(sorted(EXAMPLES)), st.binary(max_size=10))
@settings(max_examples=at_length(75, 1_500), derandomize=True)
def test_any_data_is_read_or_refused_and_read_data_is_written_as_it_came(number: int, data: bytes) -> None:
    kind = EXAMPLES[number][0]
    happening = fdl.read_happening(number, data, kind.happenings)
    if not isinstance(happening, fdl.Malformed):
        assert happening.to_bytes() == data
        assert kind.make().translate(happening) is not None


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_no_happenings_of_another(name: str) -> None:
    for own, happening, _ in EXAMPLES.values():
        assert (KINDS[name].make().translate(happening) is None) == (own is not KINDS[name])


@pytest.mark.parametrize("place", [0, 33, -1])
def test_a_place_is_1_to_32(place: int) -> None:
    with pytest.raises(ValueError, match="a place is 1 to 32"):
        fdl_lamps.places_to_bytes([1, place])
    assert fdl_lamps.places_from_bytes(fdl_lamps.places_to_bytes([32, 1, 17])) == (1, 17, 32)


@pytest.mark.parametrize("name", KINDS)
def test_the_fault_list_of_a_driver(name: str) -> None:
    kind = KINDS[name]
    assert kind.driver.faults == (*kind.driver.codes.values(), *COMMON_FAULTS.values(), *HOST_FAULTS)
    simulated = {code for ailment in kind.device(1).faults.values() for code in ailment.told}
    assert {one.code for one in kind.driver.faults} - simulated == {"fdl.untold_fault"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fdl_bets", {"seats": 0}),
        ("fdl_bets", {"seats": 33}),
        ("fdl_bets", {"chip": 0}),
        ("fdl_bets", {"pool": "No"}),
        ("fdl_bets", {"lamps": []}),
        ("fdl_lamps", {"lamps": []}),
        ("fdl_lamps", {"lamps": ["a", "b", "a"]}),
        ("fdl_lamps", {"lamps": [str(n) for n in range(33)]}),
        ("fdl_timer", {"stale": 0}),
        ("fdl_timer", {"opens": "yes"}),
        ("fdl_peek", {"blackjack": True}),
        ("fdl_buttons", {"silence": 0.1}),
    ],
)
def test_options_that_cannot_be(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(options, KINDS[name].driver.Options)


# ---- the mirror


@contextlib.asynccontextmanager
async def bench(
    device: FdlDevice, make: Callable[[bytes | None], FdlDriver], carry: Carry = whole, memory: bytes | None = None
) -> AsyncIterator[Bench]:
    """With a session that is open: commands are taken."""
    async with bench_of_shufflers(device, make, carry, memory) as table:
        await asyncio.sleep(2)
        yield table


async def lamps_routine(table: Bench) -> None:
    """A layout of fantan: one lamp after the other, then dark."""
    for lamps in (("1",), ("1", "4"), ()):
        with contextlib.suppress(CommandFailed, CommandRefused):  # for who waits until it is repaired
            await table.obey(Light(lamps))
        await asyncio.sleep(4.0)


async def routine(table: Bench) -> None:
    if isinstance(table.device, Lamps):
        await lamps_routine(table)
        return
    hands = table.device.acts()
    for act, pause in table.device.routine:
        table.do(hands[act])
        await asyncio.sleep(pause)


@pytest.mark.parametrize("cable", ["whole", "byte by byte", "lossy 1", "lossy 2"])
@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_a_round_of_jackpot_bets_over_every_cable(cable: str, cut: bool) -> None:
    device = BetSensors(random.Random(1))
    wanted: list[Event] = []
    async with bench(device, BETS.make, carrying(cable)) as table:
        for n in range(6):
            if cut:
                asyncio.get_running_loop().call_later(2.3 * n, table.cut)
            seats = sorted(random.Random(n).sample(range(1, SEATS + 1), n))
            for seat in seats:
                table.do(partial(device.place, seat))
                await asyncio.sleep(1)
            table.do(device.lock)
            assert device.latched == set(seats)
            await asyncio.sleep(5)
            table.do(device.remove_all)
            table.do(device.clear)
            await asyncio.sleep(4)
            for seat in seats:
                wanted += [WagerPlaced(seat, "jackpot", 1000), JackpotContributed("table", 1000, seat)]
            if seats:
                wanted.append(LampsLit(tuple(str(seat) for seat in seats)))
            wanted += map(removed, seats)
            wanted.append(CLEARED)
            if seats:
                wanted.append(LampsLit())
        await table.caught_up()
        assert [event for event in table.tape.events if not isinstance(event, DeviceOnline)] == wanted
        onlines = [event.continuous for event in table.tape.events if isinstance(event, DeviceOnline)]
    assert onlines == [False] + [True] * (len(onlines) - 1)


def wagers(table: Bench, since: int = 0) -> list[int]:
    return [event.seat for event in table.tape.all[since:] if isinstance(event, WagerPlaced)]


def faults(table: Bench, since: int = 0) -> list[tuple[str, str, str]]:
    """Code, severity, place of each."""
    return [
        (event.code, event.severity, event.text.rpartition("(")[2].rstrip(")"))
        for event in table.tape.all[since:]
        if isinstance(event, DeviceFaulted)
    ]


@virtual_time
async def test_a_late_chip_is_told_with_its_seat_and_never_counts() -> None:
    device = BetSensors(random.Random(3))
    async with bench(device, BETS.make) as table:
        table.do(lambda now: device.place(2, now))
        table.do(device.lock)
        await asyncio.sleep(1)
        table.do(lambda now: device.place(5, now))
        table.do(lambda now: device.place(6, now))
        table.do(lambda now: device.place(2, now))  # a second chip on the first is not seen
        await asyncio.sleep(1)
        assert wagers(table) == [2]
        assert faults(table) == [("bets.late", "warning", "seat 5"), ("bets.late", "error", "seat 6")]
        table.do(lambda now: device.remove(5, now))
        await asyncio.sleep(1)
        assert table.standing() == {"bets.late"}
        table.do(lambda now: device.remove(6, now))
        await asyncio.sleep(1)
        assert not table.standing()
        table.do(device.remove_all)
        table.do(device.clear)
        await asyncio.sleep(5)
        assert wagers(table) == [2]
        # Another round, another first time.
        table.do(device.lock)
        table.do(lambda now: device.place(1, now))
        await asyncio.sleep(1)
        assert faults(table)[-1] == ("bets.late", "warning", "seat 1")
        table.do(device.clear)
        await asyncio.sleep(1)
        assert table.standing() == set()
        await asyncio.sleep(4)
        assert faults(table)[-1] == ("bets.blocked", "warning", "seat 1")


@virtual_time
async def test_a_chip_taken_away_after_the_lock_is_told_and_its_bet_stands() -> None:
    device = BetSensors(random.Random(3))
    async with bench(device, BETS.make) as table:
        for seat in (2, 3):
            table.do(partial(device.place, seat))
        table.do(partial(device.remove, 3))  # before the lock: no bet, and nothing to tell
        table.do(partial(device.place, 3))
        table.do(device.lock)
        await asyncio.sleep(1)
        table.do(partial(device.remove, 2))
        table.do(partial(device.place, 2))  # and put back
        table.do(partial(device.place, 5))
        await asyncio.sleep(1)
        assert wagers(table) == [2, 3]
        contributed = [event.seat for event in table.tape.all if isinstance(event, JackpotContributed)]
        assert contributed == [2, 3]
        assert [event for event in table.tape.all if isinstance(event, MachineReported)] == [removed(2)]
        assert device.latched == {2, 3}
        assert faults(table) == [("bets.late", "warning", "seat 5")]


@virtual_time
async def test_a_late_chip_waits_for_a_table_with_room() -> None:
    """With a chip in every place it found no seat, and the simulated table ended of it."""
    device = BetSensors(random.Random(3))
    async with bench(device, BETS.make) as table:
        device.inject("late_chip", 0.0)
        for seat in range(1, SEATS + 1):
            table.do(partial(device.place, seat))
        await asyncio.sleep(4)
        table.do(device.lock)
        await asyncio.sleep(1)
        assert wagers(table) == list(range(1, SEATS + 1))
        assert faults(table) == []
        table.do(device.clear)
        table.do(device.remove_all)
        table.do(device.lock)
        await asyncio.sleep(1)
        assert faults(table) == [("bets.late", "warning", f"seat {SEATS}")]


@virtual_time
async def test_a_chip_left_blocks_its_seat_until_it_is_gone() -> None:
    device = BetSensors(random.Random(4))
    async with bench(device, BETS.make) as table:
        table.do(lambda now: device.place(3, now))
        table.do(lambda now: device.place(4, now))
        table.do(device.lock)
        table.do(device.clear)
        await asyncio.sleep(2.9)
        assert not faults(table)
        await asyncio.sleep(1)
        assert faults(table) == [("bets.blocked", "warning", "seat 3"), ("bets.blocked", "error", "seat 4")]
        since = len(table.tape.all)
        table.do(device.lock)
        await asyncio.sleep(1)
        assert wagers(table, since) == []  # not guessed
        assert [(code, seat) for code, _, seat in faults(table, since)] == [
            ("bets.doubtful", "seat 3"),
            ("bets.doubtful", "seat 4"),
        ]
        table.do(device.remove_all)
        table.do(device.clear)
        await asyncio.sleep(5)
        assert not table.standing()


@virtual_time
async def test_a_chip_that_settles_before_the_lock_counts_and_one_that_does_not_is_doubtful() -> None:
    device = BetSensors(random.Random(5))
    async with bench(device, BETS.make) as table:
        table.inject("flicker")
        table.do(lambda now: device.place(3, now))
        await asyncio.sleep(8)
        table.inject("flicker")
        table.do(lambda now: device.place(4, now))
        await asyncio.sleep(1)
        locked = await table.obey(LockBets())
        assert locked == {"seats": [3], "doubtful": [4]}
        await asyncio.sleep(10)
        assert wagers(table) == [3]
        assert ("bets.doubtful", "error", "seat 4") in faults(table)
        assert DeviceRecovered("bets.flicker") in table.tape.all


@virtual_time
async def test_the_latched_bets_outlive_a_loss_of_power_and_are_told_once() -> None:
    device = BetSensors(random.Random(6))
    async with bench(device, BETS.make) as table:
        table.do(lambda now: device.place(3, now))
        table.do(device.lock)
        await asyncio.sleep(1)
        table.inject("power_loss")
        await asyncio.sleep(10)
        assert device.latched == {3}
        assert wagers(table) == [3]
        assert table.tape.all[-1] == LampsLit(("3",))
        with pytest.raises(CommandRefused, match="locked already"):
            await table.obey(LockBets())
        table.inject("memory_loss")
        await asyncio.sleep(10)
        assert device.latched == set()
        assert wagers(table) == [3]
        assert table.tape.all[-1] == LampsLit()


@virtual_time
async def test_a_jackpot_is_won_on_a_latched_bet_and_paid_under_the_key() -> None:
    device = BetSensors(random.Random(7))
    async with bench(device, BETS.make) as table:
        assert device.win(3, 1, table.now) is False
        table.do(lambda now: device.place(3, now))
        table.do(device.lock)
        assert table.do(lambda now: device.win(4, 1, now)) is False
        assert table.do(lambda now: device.win(3, 2, now)) is True
        assert table.do(device.pay) is False
        assert table.do(device.clear) is False
        with pytest.raises(CommandRefused, match="not paid yet"):
            await table.obey(ClearBets())
        table.do(lambda now: device.supervisor_key(on=True, now=now))
        assert table.do(device.pay) is True
        assert table.do(device.pay) is False
        table.do(lambda now: device.supervisor_key(on=False, now=now))
        await asyncio.sleep(2)
        assert await table.obey(ClearBets()) == {}
        await table.caught_up()
        told = [event for event in table.tape.events if not isinstance(event, DeviceOnline | LampsLit)]
    assert told == [
        WagerPlaced(3, "jackpot", 1000),
        JackpotContributed("table", 1000, 3),
        JackpotWon("table", 2, 3),
        SupervisorKeyed(present=True),
        JackpotPaid("table", 2, 3),
        SupervisorKeyed(present=False),
        CLEARED,
    ]


@virtual_time
async def test_the_supervisor_clears_a_win_that_was_keyed_by_mistake() -> None:
    device = BetSensors(random.Random(8))
    async with bench(device, BETS.make) as table:
        table.do(lambda now: device.place(3, now))
        table.do(device.lock)
        table.do(lambda now: device.win(3, 1, now))
        table.do(lambda now: device.supervisor_key(on=True, now=now))
        assert await table.obey(ClearBets()) == {}
        assert table.do(device.pay) is False


@virtual_time
async def test_the_commands_of_the_bet_sensors() -> None:
    device = BetSensors(random.Random(9))
    async with bench(device, BETS.make) as table:
        with pytest.raises(CommandRefused, match="no bets are locked"):
            await table.obey(ClearBets())
        table.do(lambda now: device.place(2, now))
        assert await table.obey(LockBets()) == {"seats": [2], "doubtful": []}
        with pytest.raises(CommandRefused, match="locked already"):
            await table.obey(LockBets())
        with pytest.raises(CommandRefused, match=r"no seat lamp 'bar'; there are: 1, 2, 3, 4, 5, 6, 7"):
            await table.obey(Light(("1", "bar")))
        with pytest.raises(CommandRefused, match="stays lit until the bets are cleared"):
            await table.obey(Light(("1",)))
        assert await table.obey(Light(("2", "7", "2"))) == {"lamps": ["2", "7"]}
        assert await table.obey(ClearBets()) == {}
        table.inject("lamp_out")
        with pytest.raises(CommandFailed, match="ordered: 1, 2; lit: 2"):
            await table.obey(Light(("1", "2")))
        await asyncio.sleep(1)
        since = len(table.tape.all)
        assert await table.obey(SelfTest()) == {}
        await asyncio.sleep(1)
        assert faults(table, since) == [("bets.lamp", "error", "seat 1")]
        assert device.do(fdl_bets.LIGHT, bytes(3), table.now)[:2] == (fdl.REFUSED, 4)
        assert device.do(fdl_bets.LIGHT, b"\0\0\0\x80", table.now)[:2] == (fdl.REFUSED, 4)
        assert device.do(0x4F, b"", table.now)[0] == fdl.NOT_KNOWN


@virtual_time
async def test_the_self_test_and_a_start_tell_every_seat() -> None:
    device = BetSensors(random.Random(10))
    seats = {("bets.blocked", "seat 3"), ("bets.blocked", "seat 4"), ("bets.blocked", "seat 6")}
    async with bench(device, BETS.make) as table:
        for seat in (3, 4, 6):
            table.do(partial(device.place, seat))
        table.do(device.lock)
        table.do(device.clear)
        await asyncio.sleep(5)
        for again in (lambda: table.obey(SelfTest()), lambda: table.inject("power_loss")):
            since = len(table.tape.all)
            waiting = again()
            if isinstance(waiting, Awaitable):
                await waiting
            await asyncio.sleep(8)
            assert {(code, seat) for code, _, seat in faults(table, since)} == seats
            assert table.standing() == {"bets.blocked"}


def test_an_answer_that_says_nothing_is_no_success() -> None:
    for kind, command in ((BETS, LockBets()), (BETS, Light(("1",))), (LAMPS, Light(("1",)))):
        with pytest.raises(CommandFailed):
            kind.make().answered(command, b"\1")
    assert LAMPS.make().answered(SelfTest(), b"") == {}


def test_chip_values_come_from_the_configuration() -> None:
    driver = BETS.make(chip=500, bet="progressive", pool="stud-1")
    assert driver.translate(fdl_bets.Locked((9,))) == (
        WagerPlaced(9, "progressive", 500),
        JackpotContributed("stud-1", 500, 9),
    )
    assert BETS.make().translate(fdl_bets.Locked(())) == ()
    assert BetOptions() == BetOptions(3.0, 7, "jackpot", 1000, "table")


# ---- lamps


@virtual_time
async def test_lamps_by_name() -> None:
    device = Lamps(random.Random(11))
    names = ["start", "small", "big"]
    async with bench(device, lambda memory: LAMPS.make(memory, lamps=names)) as table:
        assert await table.obey(Light(("big", "start", "big"))) == {"lamps": ["start", "big"]}
        with pytest.raises(CommandRefused, match="there is no lamp 'tiger'; there are: start, small, big"):
            await table.obey(Light(("start", "tiger")))
        assert device.lit == {1, 3}
        table.inject("burnt_out")
        await asyncio.sleep(1)
        assert faults(table) == [("lamps.burnt_out", "warning", "start")]
        with pytest.raises(CommandFailed, match="ordered: start; lit: none"):
            await table.obey(Light(("start",)))
        table.do(device.repair)
        await asyncio.sleep(1)
        assert [event for event in table.tape.all if isinstance(event, LampsLit)] == [
            LampsLit(("start", "big")),
            LampsLit(("big",)),
            LampsLit(),
            LampsLit(("start",)),
        ]
        assert not table.standing()
        table.inject("stuck_on")
        with pytest.raises(CommandFailed, match="ordered: none; lit: start"):
            await table.obey(Light(()))
        table.do(device.repair)
        await asyncio.sleep(1)
        table.inject("driver_dead")
        with pytest.raises(CommandRefused, match="a fault is open"):
            await table.obey(Light(("small",)))
        table.do(device.repair)
        table.inject("sensing_broken")
        with pytest.raises(CommandFailed, match="does not name the lamps that are lit"):
            await table.obey(Light(("small",)))
        assert device.lit == {2}
        assert device.do(fdl_lamps.LIGHT, bytes(3), table.now)[:2] == (fdl.REFUSED, 4)
    unnamed = LAMPS.make(lamps=names).translate(fdl_lamps.Lit((2, 4)))
    assert unnamed == (LampsLit(("small", "lamp 4, which has no name here")),)


@virtual_time
async def test_a_lamp_that_is_dark_is_found_by_the_self_test() -> None:
    device = Lamps(random.Random(12))
    async with bench(device, LAMPS.make) as table:
        table.inject("burnt_out")
        await asyncio.sleep(2)
        assert not faults(table)
        await table.obey(SelfTest())
        await asyncio.sleep(1)
        assert ("lamps.burnt_out", "1") in [(code, place) for code, _, place in faults(table)]


@pytest.mark.parametrize("fault", ["power_loss", "memory_loss"])
@virtual_time
async def test_lamps_come_on_again_once_after_a_loss_of_power(fault: str) -> None:
    device = Lamps(random.Random(13))
    async with bench(device, LAMPS.make) as table:
        await table.obey(Light(("2", "5")))
        with pytest.raises(CommandRefused):
            await table.obey(Light(("nine",)))
        table.inject(fault)
        assert device.lit == set()
        await asyncio.sleep(10)
        assert device.lit == {2, 5}
        lit = [event for event in table.tape.all if isinstance(event, LampsLit)]
        assert lit == [LampsLit(("2", "5")), LampsLit(), LampsLit(("2", "5"))]


@virtual_time
async def test_the_last_order_outlives_a_restart_of_the_host_and_is_repeated_only_where_it_may_be_lost() -> None:
    device = Lamps(random.Random(14))
    async with bench(device, LAMPS.make) as table:
        await table.obey(Light(("2",)))
        table.do(lambda now: device.do(fdl_lamps.LIGHT, fdl_lamps.places_to_bytes((4,)), now))  # somebody else's tool
        table.cut()
        await asyncio.sleep(5)
        assert device.lit == {4}  # continuous: nothing is repeated
        memory = table.tape.memory
    spare = Lamps(random.Random(15), "SIM-LAMPS-2")
    async with bench(spare, LAMPS.make, memory=memory) as table:
        await asyncio.sleep(3)
        assert spare.lit == {2}
        await table.obey(Light(("7",)))
        table.inject("memory_loss")
        await asyncio.sleep(5)
        assert spare.lit == {7}
    # The lamps were given other names since.
    renamed = Lamps(random.Random(15), "SIM-LAMPS-3")
    async with bench(renamed, lambda kept: LAMPS.make(kept, lamps=["one", "two"]), memory=memory) as table:
        table.do(lambda now: renamed.do(fdl_lamps.LIGHT, fdl_lamps.places_to_bytes((1,)), now))
        table.inject("power_loss")
        await asyncio.sleep(5)
        assert renamed.lit == set()
    # Without a memory nothing is ordered.
    fresh = Lamps(random.Random(16))
    async with bench(fresh, LAMPS.make) as table:
        await asyncio.sleep(3)
        assert fresh.lit == set()
        assert not [event for event in table.tape.all if isinstance(event, LampsLit)]


class Tottering(Lamps):
    """Its power fails once more as the repeated order comes."""

    totters = False

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        if self.totters:
            self.totters = False
            self.power_cycle(now, lose_memory=False)
            return fdl.NOT_KNOWN, 0, b""
        return super().do(code, data, now)

    def hear(self, data: bytes, now: float) -> bytes:
        """Without power it answers nothing."""
        answer = super().hear(data, now)
        return answer if self._boots_at is None else b""


@virtual_time
async def test_lamps_come_on_again_where_the_power_fails_twice() -> None:
    """The second start is told while the repeat of the first waits for its answer, which will never come."""
    device = Tottering(random.Random(36))
    async with bench(device, LAMPS.make) as table:
        await table.obey(Light(("2", "5")))
        device.totters = True
        table.inject("power_loss")
        await asyncio.sleep(10)
        assert not device.totters
        assert device.lit == {2, 5}


@virtual_time
async def test_an_order_that_the_device_did_not_take_is_never_repeated() -> None:
    device = Lamps(random.Random(17))
    async with bench(device, LAMPS.make) as table:
        await table.obey(Light(("2",)))
        table.inject("no_supply")
        with pytest.raises(CommandRefused, match="a fault is open"):
            await table.obey(Light(("3",)))
        table.do(device.repair)
        await asyncio.sleep(1)
        table.inject("power_loss")
        await asyncio.sleep(10)
        assert device.lit == {2}


@settings(max_examples=at_length(25, 300), derandomize=True)
@given(st.binary(max_size=60))
def test_a_corrupt_memory_of_the_lamps_is_none(junk: bytes) -> None:
    for memory in (junk, b'{"session":null,"ordered":["1"' + junk):
        driver = LAMPS.make(memory)
        assert isinstance(driver, FdlLamps)
        assert driver._kept.session is None


def test_the_lamps_options() -> None:
    assert LampOptions().lamps == tuple(str(n) for n in range(1, 33))


# ---- peek


@virtual_time
async def test_a_peek_says_yes_or_no_and_nothing_else() -> None:
    device = PeekReader(random.Random(18))
    async with bench(device, PEEK.make) as table:
        for blackjack in (True, False, True):
            assert table.do(partial(device.peek, blackjack)) is True
            await asyncio.sleep(2)
        for fault in ("unreadable", "not_inserted", "window_dirty"):
            table.inject(fault)
            assert table.do(lambda now: device.peek(True, now)) is False
            await asyncio.sleep(1)
        told = [event.blackjack for event in table.tape.all if isinstance(event, HoleCardPeeked)]
    assert told == [True, False, True]


@virtual_time
async def test_a_card_left_in_the_reader_is_told_and_taken_out_with_the_next() -> None:
    device = PeekReader(random.Random(19))
    async with bench(device, PEEK.make) as table:
        table.inject("card_left")
        assert table.do(lambda now: device.peek(False, now)) is True
        await asyncio.sleep(7.5)
        assert not faults(table)
        await asyncio.sleep(1)
        assert table.standing() == {"peek.card_left"}
        table.do(lambda now: device.peek(True, now))
        await asyncio.sleep(1)
        assert not table.standing()


@pytest.mark.parametrize("told", [fdl.EventReport(6, 0, 0x70, b"\xc1"), fdl.EventReport(6, 0, 0x71, b"\1\xc1")])
@virtual_time
async def test_a_reader_that_tells_a_card_is_not_passed_on(told: fdl.EventReport) -> None:
    book, link = Notebook(), MemoryLink()
    task = asyncio.create_task(PEEK.make().run(link, book))
    link.feed(fdl.encode(fdl.Identity(fdl.PEEK_READER, 7, 1, 6, 0), 1))
    await asyncio.sleep(0.2)
    link.feed(fdl.encode(fdl.Identity(fdl.PEEK_READER, 7, 1, 6, 6), 2) + fdl.encode(told, 3))
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    last = book.sightings[-1]
    assert isinstance(last.event, DeviceFaulted)
    assert last.event.code == "fdl.unknown_event"
    assert "[withheld]" in last.event.text
    assert last.wire == b""
    assert all("C1" not in str(one.event) and b"\xc1" not in one.wire for one in book.sightings)


# ---- timer


@virtual_time
async def test_the_time_runs_and_closes_the_bets() -> None:
    device = Timer(random.Random(20))
    async with bench(device, TIMER.make) as table:
        assert await table.obey(StartTimer(30)) == {}
        await asyncio.sleep(29.9)
        assert BetsClosed() not in table.tape.all
        await asyncio.sleep(0.3)
        assert table.tape.all[1:] == [BetsClosed()]


@pytest.mark.parametrize(("opens", "told"), [(False, [BetsClosed()]), (True, [BetsOpened(), BetsClosed()])])
@virtual_time
async def test_whether_the_start_opens_the_bets_is_an_option(opens: bool, told: list[Event]) -> None:
    device = Timer(random.Random(21))
    async with bench(device, lambda memory: TIMER.make(memory, opens=opens)) as table:
        table.do(device.start)
        await asyncio.sleep(16)
        assert table.tape.all[1:] == told


@virtual_time
async def test_the_commands_of_the_timer() -> None:
    device = Timer(random.Random(22))
    async with bench(device, TIMER.make) as table:
        with pytest.raises(CommandRefused, match="no time is running"):
            await table.obey(StopTimer())
        await table.obey(StartTimer(5))
        with pytest.raises(CommandRefused, match="busy"):
            await table.obey(StartTimer(5))
        await table.obey(StopTimer())
        await asyncio.sleep(10)
        assert BetsClosed() not in table.tape.all
        table.inject("display_dark")
        with pytest.raises(CommandRefused, match="a fault is open"):
            await table.obey(StartTimer(5))
        for seconds in (b"\0\0", b"\x02\x59", b"\5"):
            assert device.do(fdl_timer.START, seconds, table.now)[:2] == (fdl.REFUSED, 4)


@virtual_time
async def test_a_loss_of_power_closes_nothing() -> None:
    device = Timer(random.Random(23))
    async with bench(device, TIMER.make) as table:
        table.do(device.start)
        await asyncio.sleep(5)
        table.inject("power_loss")
        await asyncio.sleep(15)
        assert BetsClosed() not in table.tape.all
        assert table.standing() == {"timer.interrupted"}
        table.do(device.start)
        await asyncio.sleep(1)
        assert not table.standing()
        table.inject("memory_loss")
        await asyncio.sleep(20)
        assert BetsClosed() not in table.tape.all


@virtual_time
async def test_an_end_that_comes_late_closes_nothing() -> None:
    device = Timer(random.Random(24))
    async with bench(device, TIMER.make) as table:
        table.do(device.start)
        await asyncio.sleep(14)
        table.inject("unplugged")  # 5 s: still the same round
        await asyncio.sleep(10)
        assert table.tape.all.count(BetsClosed()) == 1
        table.do(device.start)
        await asyncio.sleep(14)
        table.line.plug_at = table.now + 20  # out for 20 s
        table.cut()
        await asyncio.sleep(25)
        assert table.tape.all.count(BetsClosed()) == 1
        [late] = [event for event in table.tape.all if isinstance(event, MachineReported)]
        assert late.code == "timer_late"
        assert re.fullmatch(r"the betting time ended, reported \d\d s late: the bets are not closed by it", late.text)


@pytest.mark.parametrize(
    ("happening", "age", "told"),
    [
        (fdl_timer.Expired(), 10_000, "bets.closed"),
        (fdl_timer.Expired(), 10_001, "machine.reported"),
        (fdl_timer.Expired(), fdl.AGE_UNKNOWN, "machine.reported"),
        (fdl_timer.Running(30), 10_000, "bets.opened"),
        (fdl_timer.Running(30), 10_001, "machine.reported"),
    ],
)
def test_how_late_is_late(happening: fdl.Happening, age: int, told: str) -> None:
    driver = TIMER.make(opens=True)
    assert isinstance(driver, FdlTimer)
    events = driver.translate(happening)
    assert events is not None
    wire = fdl.encode(fdl.EventReport(6, age, happening.KIND, happening.to_bytes()), 1)
    seconds = 0.0 if age == fdl.AGE_UNKNOWN else age / 1000
    assert type_of(driver._timely(Sighting(events[0], wire, Chunk(wire, START, 0.0), seconds)).event) == told
    assert TimerOptions() == TimerOptions(3.0, opens=False, stale=10.0)


# ---- buttons


@virtual_time
async def test_buttons_are_counted_or_not_told() -> None:
    device = ButtonCounter(random.Random(25))
    counted: list[int | None] = []
    async with bench(device, BUTTONS.make) as table:

        async def heap() -> None:
            table.do(device.separate)
            await asyncio.sleep(5)
            counted.append(table.do(device.count))
            await asyncio.sleep(2)

        await heap()
        for fault in ("unsteady", "foreign", "lifted_early", "camera_dirty"):
            table.inject(fault)
            await heap()
        assert counted[1:] == [None] * 4
        table.do(device.repair)
        table.inject("broken_button")
        await heap()
        await heap()
        assert table.do(device.count) is None  # no heap
        events = [event for event in table.tape.all if isinstance(event, ButtonsCounted | ButtonsSeparated)]
    assert events.count(ButtonsSeparated()) == 7
    told = [event for event in events if isinstance(event, ButtonsCounted)]
    assert [event.count for event in told] == [count for count in counted if count is not None]
    assert [event.fragments for event in told] == [0, 2, 0]


LIFTED = "buttons.lifted_early"


def heaps(events: Sequence[Event]) -> list[str]:
    """What was told of the heaps, and of cups that were lifted."""
    told = [event.code if isinstance(event, DeviceFaulted) else type_of(event) for event in events]
    return [word for word in told if word in (LIFTED, "buttons.separated", "buttons.uncovered", "buttons.counted")]


@virtual_time
async def test_a_cup_that_was_lifted_early_is_told_to_the_rules_once_for_each_heap() -> None:
    """Not again where the fault only still stands: after the cable, a start, a self-test, a restart of the host."""
    device = ButtonCounter(random.Random(35))
    async with bench(device, BUTTONS.make) as table:
        table.inject("lifted_early")
        table.do(device.separate)
        await asyncio.sleep(1)
        once = ["buttons.separated", "buttons.uncovered", LIFTED]
        assert heaps(table.tape.all) == once
        [before, fault] = [table.tape.sightings[-2], table.tape.sightings[-1]]
        assert (before.wire, before.event) == (fault.wire, ButtonsUncovered())
        table.cut()  # and with it a driver that has nothing but its memory
        await asyncio.sleep(2)
        assert heaps(table.tape.all) == once
        await table.obey(SelfTest())
        await asyncio.sleep(1)
        assert heaps(table.tape.all) == [*once, LIFTED]
        # A second heap is knocked over, while the first fault still stands.
        table.inject("lifted_early")
        table.do(device.separate)
        await asyncio.sleep(1)
        assert heaps(table.tape.all) == [*once, LIFTED, *once]
        table.do(device.separate)
        await asyncio.sleep(5)
        table.do(device.count)
        await asyncio.sleep(1)
        assert heaps(table.tape.all)[-2:] == ["buttons.separated", "buttons.counted"]
        assert not table.standing()


def counter_met() -> FdlDriver:
    """A driver that has just met its device: event 6 is the next."""
    driver = BUTTONS.make()
    driver._session.begin(0)
    hears(driver, fdl.Identity(fdl.BUTTON_COUNTER, 7, 1, 6, 0))
    hears(driver, fdl.Identity(fdl.BUTTON_COUNTER, 7, 1, 6, 6))
    return driver


def hears(driver: FdlDriver, *messages: fdl.Message, now: float = 0.0) -> list[Event]:
    line = b"".join(fdl.encode(message, 1) for message in messages)
    return [one.event for one in driver._session.hear(Chunk(line, START, now), now).sightings]


def reports(first: int, *happenings: fdl.Happening) -> list[fdl.EventReport]:
    return [fdl.EventReport(n, 0, one.KIND, one.to_bytes()) for n, one in enumerate(happenings, first)]


EARLY = fdl.Fault(0x69, 2)


def test_a_start_that_finds_a_lifted_cup_again_tells_no_other_one() -> None:
    driver = counter_met()
    told = hears(driver, *reports(6, fdl_buttons.Separated(), EARLY, fdl.Started(), EARLY))
    assert heaps(told) == ["buttons.separated", "buttons.uncovered", LIFTED, LIFTED]
    # Nor where it is over, and another heap is lifted before anybody heard a heartbeat.
    assert heaps(hears(driver, *reports(10, fdl_buttons.Separated(), EARLY))) == [
        *("buttons.separated", "buttons.uncovered", LIFTED)
    ]


def test_the_next_heap_ends_a_lifted_cup_also_where_the_device_does_not_say_so() -> None:
    """Else its own lifting would be taken for the one that stands."""
    driver = counter_met()
    hears(driver, *reports(6, fdl_buttons.Separated(), EARLY))
    told = hears(driver, *reports(8, fdl_buttons.Separated(), EARLY))
    assert told[:2] == [DeviceRecovered(LIFTED), ButtonsSeparated()]
    assert heaps(told) == ["buttons.separated", "buttons.uncovered", LIFTED]
    over = hears(driver, *reports(10, fdl_buttons.Separated(), fdl_buttons.Counted(7)))
    assert over == [DeviceRecovered(LIFTED), ButtonsSeparated(), ButtonsCounted(7)]


def test_a_lifted_cup_that_the_host_ended_is_no_untold_fault_while_the_device_still_says_that_one_stands() -> None:
    """Older firmware ends it only with the next count."""
    driver = counter_met()
    hears(driver, *reports(6, fdl_buttons.Separated(), EARLY, fdl_buttons.Separated()))
    assert hears(driver, fdl.Heartbeat(60_000, 9, fdl.FAULTY)) == []
    hears(driver, *reports(9, fdl_buttons.Separated()))
    assert hears(driver, fdl.Heartbeat(60_000, 10, fdl.FAULTY)) == []
    assert driver._session._memory is not None
    driver = BUTTONS.make(memory=msgspec.json.encode(driver._session._memory))
    driver._session.begin(0)
    hears(driver, fdl.Identity(fdl.BUTTON_COUNTER, 7, 1, 10, 10))
    assert hears(driver, fdl.Heartbeat(60_000, 10, fdl.FAULTY)) == []
    # Once it was over, what stands is another one.
    hears(driver, fdl.Heartbeat(60_000, 10))
    [told] = hears(driver, fdl.Heartbeat(60_000, 10, fdl.FAULTY))
    assert isinstance(told, DeviceFaulted)
    assert told.code == "fdl.untold_fault"


@pytest.mark.parametrize("told", [fdl.Started(), fdl.Recovered(0x69)])
def test_a_fault_that_the_host_ended_is_forgotten_when_the_device_speaks_of_it_or_starts(told: fdl.Happening) -> None:
    driver = counter_met()
    hears(driver, *reports(6, fdl_buttons.Separated(), EARLY, fdl_buttons.Separated(), told))
    [untold] = hears(driver, fdl.Heartbeat(60_000, 10, fdl.FAULTY))
    assert isinstance(untold, DeviceFaulted)
    assert untold.code == "fdl.untold_fault"


def test_a_lifted_cup_is_told_where_events_before_it_are_lost_or_another_unit_tells_it() -> None:
    driver = counter_met()
    hears(driver, *reports(6, fdl_buttons.Separated(), EARLY))
    hears(driver, fdl.Heartbeat(60_000, 21), fdl.Identity(fdl.BUTTON_COUNTER, 7, 15, 21, 8), now=1)
    told = hears(driver, fdl.Identity(fdl.BUTTON_COUNTER, 7, 15, 21, 15), *reports(15, EARLY), now=2)
    assert heaps(told) == ["buttons.uncovered", LIFTED]
    spare = ("Felt", "Buttons", "SPARE")
    hears(driver, fdl.Identity(fdl.BUTTON_COUNTER, 9, 1, 3, 0, *spare), now=3)
    told = hears(driver, fdl.Identity(fdl.BUTTON_COUNTER, 9, 1, 3, 3, *spare), *reports(3, EARLY, EARLY), now=4)
    assert heaps(told) == ["buttons.uncovered", LIFTED, LIFTED]


@virtual_time
async def test_a_heap_over_a_loss_of_power_is_not_counted() -> None:
    device = ButtonCounter(random.Random(26))
    async with bench(device, BUTTONS.make) as table:
        table.do(device.separate)
        table.inject("power_loss")
        await asyncio.sleep(5)
        assert table.do(device.count) is None
        table.inject("power_loss")
        table.do(device.separate)  # nobody sees it
        await asyncio.sleep(5)
        assert table.do(device.count) is None
        assert not [event for event in table.tape.all if isinstance(event, ButtonsCounted)]


# ---- all of them


@pytest.mark.parametrize("name", KINDS)
@virtual_time
async def test_a_fault_outlives_a_restart_until_it_is_seen_to_end(name: str) -> None:
    kind = KINDS[name]
    device = kind.device(27)
    async with bench(device, kind.make) as table:
        await routine(table)
        table.inject("door_open")
        await asyncio.sleep(1)
        memory = table.tape.memory
        assert table.standing() == {"fdl.door"}
        table.cut()
        await asyncio.sleep(20)
        assert faults(table).count(("fdl.door", "error", "a door or cover of the device is open")) == 1
        assert memory is not None
        assert b"fdl.door" in memory
        table.do(device.repair)
        await asyncio.sleep(1)
        assert table.tape.all[-1] == DeviceRecovered("fdl.door")


@pytest.mark.parametrize("name", KINDS)
@virtual_time
async def test_the_second_time_in_a_round_is_an_error_and_the_next_round_begins_anew(name: str) -> None:
    kind = KINDS[name]
    device = kind.device(33)
    async with bench(device, kind.make) as table:

        async def dirty() -> None:
            table.inject("sensor_dirty")
            await asyncio.sleep(1)
            table.do(device.repair)
            await asyncio.sleep(1)

        await dirty()
        await dirty()
        await routine(table)
        await dirty()
        assert [severity for _, severity, _ in faults(table)] == ["warning", "error", "warning"]


@pytest.mark.parametrize(
    ("name", "fault"), [("fdl_bets", "late_chip"), ("fdl_peek", "unreadable"), ("fdl_buttons", "unsteady")]
)
@virtual_time
async def test_a_fault_that_ends_with_the_round_is_a_first_time_in_the_next(name: str, fault: str) -> None:
    kind = KINDS[name]
    device = kind.device(34)
    async with bench(device, kind.make) as table:
        for _ in range(2):
            table.inject(fault)
            await routine(table)
            await routine(table)
        assert [severity for _, severity, _ in faults(table)] == ["warning", "warning"]
        assert not table.standing()


@pytest.mark.parametrize("name", KINDS)
def test_a_device_has_no_fault_of_another(name: str) -> None:
    device = KINDS[name].device(28)
    with pytest.raises(ValueError, match="has no fault 'nothing'"):
        device.inject("nothing", 0.0)
    assert {act for act, _ in device.routine} <= set(device.acts())
    assert issubclass(KINDS[name].driver.Options, SessionOptions)


@pytest.mark.parametrize("name", KINDS)
def test_acts_at_any_time_do_no_harm(name: str) -> None:
    """Hands do what they like, also without power; the device always wants to be woken later than now."""
    for seed in range(20):
        rng = random.Random(seed)
        device = KINDS[name].device(seed)
        now = 0.0
        acts = device.acts() or {"nothing": lambda _: None}
        for _ in range(60):
            now += rng.choice((0.0, 0.1, 2.0, 7.0))
            acts[rng.choice(sorted(acts))](now)
            if rng.random() < 0.3:
                device.inject(rng.choice(sorted(device.faults)), now)
            if rng.random() < 0.2:
                device.repair(now)
            if rng.random() < 0.5:
                device.wake(now)
                assert device.due() > now


# ---- rounds that a fault suspends

GAMES: dict[str, Ruleset[Any]] = {
    "fdl_bets": Baccarat(BaccaratOptions(opening="bell", device="continuous", jackpot="A")),
    "fdl_lamps": Cussec(CussecOptions(agitation="either", payment="console")),
    "fdl_timer": Roulette(RouletteOptions(betting="bell")),
}
BEGINNING: dict[str, tuple[Event, ...]] = {
    "fdl_bets": (BetsOpened(),),
    "fdl_lamps": (DiceCovered(), *[DiceAgitated("lever", 1)] * 3, BetsOpened()),
    "fdl_timer": (SpinStarted(0), BetsOpened()),
}
AFTER_THE_BELL: dict[str, tuple[Event, ...]] = {
    "fdl_bets": tuple(CardDrawn(card) for card in ("9D", "2C", "KS", "5H")),
    "fdl_lamps": (DiceUncovered(), DiceRead((1, 2, 5))),
    "fdl_timer": (BallLaunched("clockwise", "anticlockwise"), BallLanded("17")),
}


async def played(table: Bench, name: str, fault: str = "") -> None:
    """One round, in which the device does its part; `fault` at its beginning."""
    device, say = table.device, table.tape.all.append
    for event in BEGINNING[name]:
        say(event)
    if fault:
        table.inject(fault)
    match device:
        case BetSensors():
            for seat in (1, 2):
                say(WagerPlaced(seat, "player", 5000))
                table.do(partial(device.place, seat))
                await asyncio.sleep(8)
            table.do(device.lock)
        case Lamps():
            for lamps in (("1",), ("1", "2"), ("1",)):
                with contextlib.suppress(CommandFailed, CommandRefused):
                    await table.obey(Light(lamps))
                await asyncio.sleep(5)
        case Timer():
            table.do(device.start)
            await asyncio.sleep(16)
    await asyncio.sleep(1)
    say(BetsClosed())
    for event in AFTER_THE_BELL[name]:
        await asyncio.sleep(1)
        say(event)
    await asyncio.sleep(4)
    say(RoundPaid())
    if isinstance(device, BetSensors):
        table.do(device.remove_all)
        table.do(device.clear)
        await asyncio.sleep(4)
        table.do(device.remove_all)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (name, fault)
        for name in GAMES
        for fault, ailment in ailments(type(KINDS[name].device(1))).items()
        if ailment.round == "suspended"
    ],
)
@virtual_time
async def test_a_fault_suspends_the_round_in_which_it_happens(name: str, fault: str) -> None:
    kind = KINDS[name]
    device = kind.device(30)
    async with bench(device, kind.make) as table:
        await played(table, name)
        await table.caught_up()
        assert [type(verdict) for verdict in ends(name, table)] == [Resolved]
        await played(table, name, fault)
        [_, end, *_] = ends(name, table)
        assert isinstance(end, Suspended)
        table.do(device.repair)
        await asyncio.sleep(30)
        table.tape.all.append(RoundVoided("seen by the supervisor"))
        await asyncio.sleep(1)
        await played(table, name)
        await table.caught_up()
        assert isinstance(ends(name, table)[-1], Resolved)


def ends(name: str, table: Bench) -> list[Verdict]:
    verdicts = play(GAMES[name], [event for event in table.tape.all if not isinstance(event, DeviceOffline)])
    return [verdict for verdict in verdicts if isinstance(verdict, Resolved | Suspended | Voided)]


@virtual_time
async def test_a_latched_chip_is_a_jackpot_bet_of_its_seat_at_a_baccarat_table() -> None:
    device = BetSensors(random.Random(32))
    async with bench(device, BETS.make) as table:
        await played(table, "fdl_bets")
        await table.caught_up()
        [resolved] = [verdict for verdict in play(GAMES["fdl_bets"], table.tape.all) if isinstance(verdict, Resolved)]
    staked = [(one.seat, one.stake) for one in resolved.result.settlements if one.bet == "jackpot"]
    assert staked == [(1, 1000), (2, 1000)]
