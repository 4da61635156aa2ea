"""The batch shuffler over FDL: exact data both ways, every fault, every command, and what outlives a restart."""

import asyncio
import random
import re
from pathlib import Path

import pytest
from helpers import at_length, play, virtual_time
from hypothesis import given, settings, strategies as st
from shuffler_bench import Bench, bench, carrying, lossless

from drivers.driver import CommandRefused
from drivers.fdl_session import SessionOptions
from drivers.fdl_shuffler import FAULTS, FdlShuffler, checked
from protocols.contract.commands import Dispense, EmptyShuffler, SelfTest, Shuffle
from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardJammed,
    CardsLoaded,
    CardUnreadable,
    DeckChecked,
    DeckMiscounted,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    Event,
    HandDispensed,
    JamCleared,
    LampsLit,
    MachineReported,
    SeatActed,
    ShuffleFailed,
    ShuffleFinished,
    ShuffleStarted,
)
from protocols.fdl import frame as fdl, shuffler as fdl_shuffler
from protocols.fdl.cards import CARDS
from protocols.fdl.shuffler import Tally
from rules.engine.ruleset import Resolved, Suspended, Voided
from rules.macau.stud_poker import StudPoker, StudPokerOptions
from simulators.devices.fdl_shuffler import Shuffler
from tests.drivers.test_fdl_secrecy import told_of

DOC = (Path(__file__).parents[2] / "docs/reference/protocols/fdl_shuffler.md").read_text(encoding="utf-8")
WHOLE = Tally((1,) * 52)

# What the document's examples say, and how they are told.
EXAMPLES: dict[int, tuple[fdl.Happening, tuple[Event, ...]]] = {
    0x40: (fdl_shuffler.Loaded(1, 1, 52), (CardsLoaded(52),)),
    0x41: (fdl_shuffler.ShuffleStarted(2, 1, 52), (ShuffleStarted(1, 52),)),
    0x42: (fdl_shuffler.ShuffleFinished(1, 1, 52, 2), (ShuffleFinished(1, 52, verified=True),)),
    0x43: (fdl_shuffler.Failed(2, 1, 51, 2), (ShuffleFailed(1, 51, "wrong count"),)),
    0x44: (
        fdl_shuffler.Counted(2, 1, 52, 51, 1),
        (DeckChecked(52, 51, good=False, deck=2, wrong=1), DeckMiscounted(52, 51)),
    ),
    0x45: (fdl_shuffler.Jammed(2), (CardJammed("carousel"),)),
    0x46: (fdl_shuffler.JamCleared(2), (JamCleared("carousel"),)),
    0x47: (fdl_shuffler.Dispensed(5, 4), (HandDispensed(4),)),
    0x48: (fdl_shuffler.PacketTaken(), ()),
    0x49: (fdl_shuffler.Lamps(5), (LampsLit(("ready", "service")),)),
    0x4A: (fdl_shuffler.State(4), (MachineReported("state", "a shuffled deck is ready"),)),
    0x4B: (fdl_shuffler.Damaged(12), (CardDamaged("KS"),)),
    0x4C: (fdl_shuffler.DeckReplaced(2), (MachineReported("deck_replaced", "another deck is in the place of deck 2"),)),
    0x4D: (fdl_shuffler.Emptied(104), (MachineReported("emptied", "all 104 cards were given out"),)),
    0x4E: (fdl_shuffler.DeckTaken(1), (MachineReported("deck_taken", "the rest of deck 1 was taken out"),)),
}


def make(memory: bytes | None = None) -> FdlShuffler:
    return FdlShuffler(SessionOptions(), memory)


# ---- the wire


def rows(document: str, columns: int) -> dict[int, list[str]]:
    """The rows of all tables that begin with a hex byte and have so many columns."""
    found = {}
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == columns and re.fullmatch("[0-9A-F]{2}", cells[0]):
            found[int(cells[0], 16)] = cells
    return found


def test_the_document_has_an_example_of_every_event() -> None:
    assert set(rows(DOC, 5)) == set(EXAMPLES) == set(fdl_shuffler.HAPPENINGS)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_example_both_ways(kind: int) -> None:
    happening, told = EXAMPLES[kind]
    row = rows(DOC, 5)[kind]
    data = bytes.fromhex(row[3].strip("`"))
    assert happening.to_bytes() == data
    assert fdl.read_happening(kind, data, fdl_shuffler.HAPPENINGS) == happening
    assert make().translate(happening) == told
    names = {event.__struct_config__.tag for event in told}
    assert names <= set(re.findall("`([a-z_.]+)`", row[4]))
    assert {type(event) for event in told} <= set(FdlShuffler.emits)


def test_the_document_lists_every_fault_and_command() -> None:
    assert {code: row[1].strip("`") for code, row in rows(DOC, 3).items()} == {
        code: fault.code for code, fault in FAULTS.items()
    }
    commands = {code: bytes.fromhex(row[3].strip("`")) for code, row in rows(DOC, 4).items()}
    ordered = [make().order(command) for command in (Shuffle(), Dispense(5), EmptyShuffler())]
    assert dict(ordered) == commands
    for reason, text in FdlShuffler.reasons.items():
        assert f"{reason:02X} {text}" in " ".join(DOC.split())


def test_cards_are_numbered_as_printed() -> None:
    assert [CARDS[n] for n in (0, 12, 13, 25, 26, 38, 39, 51)] == ["AS", "KS", "AH", "KH", "AD", "KD", "AC", "KC"]
    assert len(set(CARDS)) == 52


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (0x40, "01 01 00"),
        (0x40, "03 01 00 34"),
        (0x40, "01 00 00 34"),
        (0x40, "01 01 00 34 00"),
        (0x42, "01 01 00 33 02"),  # every card read, and one is missing
        (0x42, "01 01 00 34 03"),
        (0x43, "01 01 00 34"),
        (0x44, "01 01 00 34 00 34"),
        (0x44, "01 01 00 34 00 34 00 00"),
        (0x44, "01 01 00 34 00 34 00 00" + " 01" * 51 + " 00"),  # does not add up
        (0x45, "00"),
        (0x45, "05"),
        (0x47, "00 05"),
        (0x48, "00"),
        (0x49, "08"),
        (0x4A, ""),
        (0x4B, "34"),
        (0x4C, "00"),
        (0x4D, "68"),
    ],
)
def test_impossible_values(kind: int, data: str) -> None:
    assert isinstance(fdl.read_happening(kind, bytes.fromhex(data), fdl_shuffler.HAPPENINGS), fdl.Malformed)


@pytest.mark.parametrize(
    "happening",
    [
        fdl_shuffler.Loaded(1, 1, 65536),
        fdl_shuffler.ShuffleFinished(256, 1, 52, 2),
        fdl_shuffler.Counted(1, 1, 52, -1),
        fdl_shuffler.Emptied(70000),
        fdl_shuffler.Dispensed(5, 300),
    ],
)
def test_values_that_no_wire_can_carry(happening: fdl.Happening) -> None:
    with pytest.raises(ValueError, match=r"fit|range"):
        happening.to_bytes()


@given(st.sampled_from(sorted(fdl_shuffler.HAPPENINGS)), st.binary(max_size=70))
@settings(max_examples=at_length(75, 1_500), derandomize=True)
def test_any_data_is_read_or_refused_and_read_data_is_written_as_it_came(kind: int, data: bytes) -> None:
    happening = fdl.read_happening(kind, data, fdl_shuffler.HAPPENINGS)
    if not isinstance(happening, fdl.Malformed):
        assert happening.to_bytes() == data
        assert make().translate(happening) is not None


# ---- counts


def counts(**changed: int) -> tuple[int, ...]:
    return tuple(changed.get(card, 1) for card in CARDS)


@pytest.mark.parametrize(
    ("counted", "tally", "good", "missing", "extra"),
    [
        (52, None, True, None, None),
        (51, None, False, (), ()),
        (52, WHOLE, True, None, None),
        (51, Tally(counts(KS=0)), False, ("KS",), ()),
        (53, Tally(counts(**{"9D": 2})), False, (), ("9D",)),
        (52, Tally(counts(KS=0, QH=2)), False, ("KS",), ("QH",)),
        (52, Tally(counts(KS=0), 1), False, None, None),  # that may be the king: nobody knows
        (52, Tally(counts(KS=0, AS=0, QH=2), 1), False, (), ("QH",)),
        (51, Tally(counts(KS=0, AS=0), 1), False, (), ()),
    ],
)
def test_count_reports(
    counted: int, tally: Tally | None, good: bool, missing: tuple[str, ...] | None, extra: tuple[str, ...] | None
) -> None:
    told = checked(52, counted, 1, tally, 1, 3)
    assert told[0] == DeckChecked(52, counted, good, 1, 3)
    wanted = () if missing is None or extra is None else (DeckMiscounted(52, counted, missing, extra),)
    assert told[1:] == wanted


def test_two_packs_and_a_count_without_a_wrong_card() -> None:
    assert checked(104, 104, 2, Tally((2,) * 52)) == (DeckChecked(104, 104, good=True),)
    [_, wrong] = checked(104, 103, 2, Tally((1, *(2,) * 51)))
    assert wrong == DeckMiscounted(104, 103, ("AS",))


def test_the_codec_judges_no_deck() -> None:
    """Driver and simulator share it: who judges there judges both, and neither shows the other's mistake."""
    assert {name for name in vars(Tally) if not name.startswith("_")} == {
        *("counts", "unreadable", "FIELDS"),
    }


def test_an_empty_packet_is_no_hand() -> None:
    assert make().translate(fdl_shuffler.Dispensed(5, 0)) == ()


def test_only_a_taken_packet_lets_the_next_one_be_asked_for() -> None:
    driver = make()
    driver.translate(fdl_shuffler.Dispensed(5, 5))
    driver.translate(fdl_shuffler.State(fdl_shuffler.READY))  # the other deck is mixed
    with pytest.raises(CommandRefused, match="a packet of 5 cards lies in the tray"):
        driver.order(Dispense(5))
    driver.translate(fdl_shuffler.PacketTaken())
    assert driver.order(Dispense(5)) == (fdl_shuffler.DISPENSE, b"\x05")


# ---- the mirror


async def routine(table: Bench) -> None:
    hands = table.device.acts()
    for act, pause in table.device.routine:
        table.do(hands[act])
        await asyncio.sleep(pause)


CABLES = ["whole", "byte by byte", "lossy 1", "lossy 2", "lossy 3"]


@pytest.mark.parametrize("cable", at_length(["whole", "lossy 1"], CABLES))
@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_a_session_of_deals(cable: str, cut: bool) -> None:
    device = Shuffler(random.Random(1))
    async with bench(device, make, carrying(cable)) as table:
        for n in range(4):
            if cut:
                asyncio.get_running_loop().call_later(3.7 * n, table.cut)
            await routine(table)
        await table.caught_up()
        events = [event for event in table.tape.events if not isinstance(event, DeviceOnline)]
        online = [event.continuous for event in table.tape.events if isinstance(event, DeviceOnline)]
    assert [event.cards for event in events if isinstance(event, HandDispensed)] == device.packets == [5] * 12
    assert sum(isinstance(event, ShuffleFinished) and event.verified for event in events) == 5
    checks = [event.deck for event in events if isinstance(event, DeckChecked) and event.good]
    assert checks == [1, 2, 1, 2, 1]  # by turns
    assert online == [False] + [True] * (len(online) - 1)
    assert lossless(events)
    assert not table.standing()


@pytest.mark.parametrize("fault", ["missing_card", "extra_card", "duplicate_card"])
@virtual_time
async def test_a_wrong_deck_is_named_and_leaves_the_table(fault: str) -> None:
    device = Shuffler(random.Random(3))
    async with bench(device, make) as table:
        table.inject(fault)
        table.do(device.load)
        true = list(device._cards[1])
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        missing = tuple(card for card in CARDS if card not in true)
        extra = tuple(card for card in CARDS if true.count(card) == 2)
        assert DeckMiscounted(52, len(true), missing, extra) in table.tape.all
        assert DeckChecked(52, len(true), good=False, deck=1, wrong=1) in table.tape.all
        fault_told = next(event for event in table.tape.all if isinstance(event, DeviceFaulted))
        assert fault_told.severity == "error"
        table.do(device.load)  # the other deck; the wrong one stays away
        table.do(device.load)
        await asyncio.sleep(1)
        assert device._at == {1: "table", 2: "infeed"}
        table.do(device.repair)
        await asyncio.sleep(1)
        assert MachineReported("deck_replaced", "another deck is in the place of deck 1") in table.tape.all
        assert not table.standing()


@virtual_time
async def test_a_short_packet_is_never_a_five() -> None:
    device = Shuffler(random.Random(4))
    async with bench(device, make) as table:
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        table.inject("packet_short")
        await table.obey(Dispense(5))
        await asyncio.sleep(3)
        assert [event for event in table.tape.all if isinstance(event, HandDispensed)] == [HandDispensed(4)]
        assert device.packets == [4]
        assert "shuffler.packet" in table.standing()


@pytest.mark.parametrize("data", ["", "05", "00 05", "05 05 0D"])
@virtual_time
async def test_a_packet_whose_event_cannot_be_read_is_there_and_the_round_waits(data: str) -> None:
    """Without it the next packet is taken for that of its seat."""
    packets = [b"\5\5", bytes.fromhex(data), b"\5\5"]
    reports = [fdl.encode(fdl.EventReport(n, 0, 0x47, packet), 3) for n, packet in enumerate(packets, 6)]
    told = [one.event for one in await told_of("fdl_shuffler", {}, *reports)]
    there = [event for event in told if isinstance(event, HandDispensed | CardUnreadable)]
    assert there == [HandDispensed(5), CardUnreadable(), HandDispensed(5)]
    antes = [SeatActed(seat, "ante") for seat in (1, 2)]
    verdicts = play(StudPoker(StudPokerOptions()), [BetsOpened(), *antes, BetsClosed(), *told])
    assert [type(one) for one in verdicts if isinstance(one, Resolved | Suspended | Voided)] == [Suspended]


@pytest.mark.parametrize("fault", ["jam_outfeed", "door_open", "power_loss_dealing"])
@virtual_time
async def test_a_fault_during_the_deal_says_that_it_may_not_go_on(fault: str) -> None:
    device = Shuffler(random.Random(5))
    async with bench(device, make) as table:
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        await table.obey(Dispense(5))
        await asyncio.sleep(3)
        table.do(device.take)
        await asyncio.sleep(1)
        since = len(table.tape.all)
        table.inject(fault)
        if fault != "door_open":
            await table.obey(Dispense(5))
        await asyncio.sleep(5)
        told = table.tape.all[since:]
        assert any(isinstance(event, ShuffleFailed) for event in told)
        assert not any(isinstance(event, HandDispensed) for event in told)
        with pytest.raises(CommandRefused):
            await table.obey(Dispense(5))


@virtual_time
async def test_each_command_and_why_it_is_refused() -> None:
    device = Shuffler(random.Random(6))
    async with bench(device, make) as table:

        async def refused(command: Shuffle | Dispense | EmptyShuffler, why: str) -> None:
            with pytest.raises(CommandRefused, match=why):
                await table.obey(command)

        await refused(Shuffle(), "no deck is loaded")
        await refused(Dispense(5), "no shuffled deck is ready")
        await refused(EmptyShuffler(), "no deck is loaded")
        table.do(device.load)
        assert await table.obey(Shuffle()) == {}
        await refused(Shuffle(), "busy")
        await refused(EmptyShuffler(), "busy")
        await asyncio.sleep(60)
        await table.obey(Dispense(5))
        await refused(Dispense(5), "busy")
        await asyncio.sleep(3)
        await refused(Dispense(5), "a packet of 5 cards lies in the tray")
        table.do(device.take)
        await asyncio.sleep(1)
        for _ in range(4):
            await table.obey(Dispense(10))
            await asyncio.sleep(5)
            table.do(device.take)
            await asyncio.sleep(1)
        await table.obey(Dispense(5))
        await asyncio.sleep(5)
        table.inject("power_loss")
        await asyncio.sleep(5)
        await refused(Dispense(5), "the device refused: the last packet was not taken")  # only it knows its tray now
        table.do(device.take)
        await asyncio.sleep(1)
        await refused(Dispense(10), "fewer cards are left")
        table.inject("door_open")
        await asyncio.sleep(1)
        await refused(Shuffle(), "cover or door is open")
        await refused(Dispense(5), "the ready lamp is dark")
        await refused(EmptyShuffler(), "cover or door is open")
        table.do(device.repair)
        await asyncio.sleep(1)
        table.inject("motor_fault")
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        await refused(Shuffle(), "a fault is open")
        table.do(device.repair)
        await asyncio.sleep(1)
        table.inject("jam_carousel")
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        for command in (Shuffle(), Dispense(5), EmptyShuffler()):
            await refused(command, "clear the jam first")
        since = len(table.tape.all)
        assert await table.obey(SelfTest()) == {}
        await asyncio.sleep(1)
        again = [event for event in table.tape.all[since:] if isinstance(event, DeviceFaulted)]
        assert [(event.code, event.severity) for event in again] == [("shuffler.jam_carousel", "error")]
        table.do(device.repair)
        await asyncio.sleep(1)
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        await table.obey(EmptyShuffler())
        await refused(EmptyShuffler(), "busy")
        await asyncio.sleep(15)
        assert MachineReported("emptied", "all 52 cards were given out") in table.tape.all


@virtual_time
async def test_a_driver_that_knows_nothing_leaves_it_to_the_machine() -> None:
    """After a restart: the machine's own refusals hold."""
    device = Shuffler(random.Random(7))
    async with bench(device, make) as table:
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        await table.obey(Dispense(5))
        await asyncio.sleep(3)
        table.cut()
        await asyncio.sleep(2)
        with pytest.raises(CommandRefused, match="the device refused: the last packet was not taken"):
            await table.obey(Dispense(5))


@virtual_time
async def test_a_found_wrong_deck_is_refused_until_it_is_replaced() -> None:
    device = Shuffler(random.Random(8))
    async with bench(device, make) as table:
        table.inject("missing_card")
        table.do(device.load)
        await table.obey(Shuffle())
        await asyncio.sleep(60)
        with pytest.raises(CommandRefused, match="found wrong and was not replaced"):
            await table.obey(Shuffle())


@virtual_time
async def test_a_fault_outlives_a_restart_until_it_is_seen_to_end() -> None:
    device = Shuffler(random.Random(9))
    async with bench(device, make) as table:
        table.inject("jam_carousel")
        table.do(device.load)
        table.do(device.shuffle)
        await asyncio.sleep(60)
        table.cut()
        await asyncio.sleep(30)
        assert table.standing() == {"shuffler.jam_carousel"}
        told = [event for event in table.tape.all if isinstance(event, DeviceFaulted)]
        assert len(told) == 1
        table.cut()
        table.do(device.repair)  # while nobody listens
        await asyncio.sleep(30)
        assert DeviceRecovered("shuffler.jam_carousel") in table.tape.all
        assert not table.standing()


@virtual_time
async def test_the_first_time_warns_and_the_second_before_a_good_shuffle_is_an_error() -> None:
    device = Shuffler(random.Random(10))
    async with bench(device, make) as table:
        for n in range(3):
            table.inject("hopper_empty")
            await asyncio.sleep(25)
            if n == 1:
                table.do(device.load)
                table.do(device.shuffle)
                await asyncio.sleep(60)
        severities = [event.severity for event in table.tape.all if isinstance(event, DeviceFaulted)]
        assert severities == ["warning", "error", "warning"]
        assert not table.standing()


def test_a_machine_without_a_reader_only_counts() -> None:
    device = Shuffler(random.Random(11), reads=False)
    device.inject("duplicate_card", 0)
    device.load(0)
    device.shuffle(1)
    while device.due() < 60:
        device.wake(device.due())
    finished = next(kept for kept in device._ring if kept.kind == fdl_shuffler.ShuffleFinished.KIND)
    assert finished.data == bytes.fromhex("01 01 00 34 01")  # counted, not verified: it cannot see the double


def test_a_dealer_deals_packets_until_the_deck_is_spent_and_takes_the_other() -> None:
    device = Shuffler(random.Random(13))
    now = 0.0
    for _ in range(2):
        for _ in range(4):
            device.load(now)
            device.shuffle(now)
            while device.due() < now + 60:
                device.wake(device.due())
            now += 60
            if device.ready(now):
                break
        given = []
        while device.ready(now):
            given.append(device.dispense(now, 5))
            now += 2
            device.wake(now)
        assert given == [5] * 10
    assert device.dispense(now, 5) == 0
    assert device.packets == [5] * 20


def test_it_never_wants_to_be_woken_at_once() -> None:
    device = Shuffler(random.Random(12), decks=2)
    now = 0.0
    for n in range(3000):
        if n % 50 == 0:
            device.inject(random.Random(n).choice(sorted(device.faults)), now)
        if n % 120 == 0:
            device.repair(now)
        act, _ = device.routine[n % len(device.routine)]
        device.acts()[act](now)
        device.wake(now)
        assert device.due() > now
        now = min(device.due(), now + 7)


def test_a_fault_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="no fault 'fire'"):
        Shuffler(random.Random(1)).inject("fire", 0)
