"""The continuous shuffler over FDL: exact data both ways, every fault at a baccarat table, masked cards, balance."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from helpers import at_length, play, virtual_time
from hypothesis import given, settings, strategies as st
from shuffler_bench import Bench, bench, carrying, lossless

from drivers.driver import CommandRefused
from drivers.fdl_continuous import FAULTS, ContinuousOptions, FdlContinuous
from protocols.contract.commands import EmptyShuffler, SelfTest
from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardJammed,
    CardsLoaded,
    CardsReturned,
    CardUnreadable,
    DeckChecked,
    DeckMiscounted,
    DeviceFaulted,
    DeviceOnline,
    Event,
    HandDispensed,
    JamCleared,
    LampsLit,
    MachineReported,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
)
from protocols.fdl import continuous as fdl_continuous, frame as fdl
from protocols.fdl.cards import CARDS
from protocols.fdl.shuffler import Tally
from rules.engine.ruleset import Resolved, Suspended, Voided
from rules.games.baccarat import deal, due, hands
from rules.macau.baccarat import Baccarat, BaccaratOptions
from simulators.devices.fdl_continuous import ContinuousShuffler
from tests.drivers.test_fdl_secrecy import told_of
from tests.drivers.test_fdl_shuffler import rows

DOC = (Path(__file__).parents[2] / "docs/reference/protocols/fdl_continuous.md").read_text(encoding="utf-8")
TABLE = BaccaratOptions(device="continuous", opening="bell")

EXAMPLES: dict[int, tuple[fdl.Happening, tuple[Event, ...]]] = {
    0x50: (fdl_continuous.Loaded(2, 208), (CardsLoaded(208, 2),)),
    0x51: (fdl_continuous.Ready(8, 416), (ShoeStarted(8),)),
    0x52: (fdl_continuous.Drawn(13), (CardDrawn("AH"),)),
    0x53: (fdl_continuous.Returned(5, 416, 416), (CardsReturned(5),)),
    0x54: (fdl_continuous.Jammed(4), (CardJammed("shoe"),)),
    0x55: (fdl_continuous.JamCleared(4), (JamCleared("shoe"),)),
    0x56: (fdl_continuous.Damaged(), (CardDamaged(),)),
    0x57: (fdl_continuous.Lamps(0x12), (LampsLit(("jam", "service")),)),
    0x58: (
        fdl_continuous.Emptied(8, 415),
        (DeckChecked(416, 415, good=False), DeckMiscounted(416, 415), ShoeEmptied()),
    ),
    0x59: (fdl_continuous.Activity(3), (MachineReported("state", "ready to deal"),)),
}


def maker(
    *, reads: bool = True, masked: bool = False, all_return: bool = True
) -> Callable[[bytes | None], FdlContinuous]:
    options = ContinuousOptions(reads=reads, masked=masked, all_return=all_return)
    return lambda memory: FdlContinuous(options, memory)


make = maker()


# ---- the wire


def test_the_document_has_an_example_of_every_event() -> None:
    assert set(rows(DOC, 5)) == set(EXAMPLES) == set(fdl_continuous.HAPPENINGS)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_example_both_ways(kind: int) -> None:
    happening, told = EXAMPLES[kind]
    row = rows(DOC, 5)[kind]
    data = bytes.fromhex(row[3].strip("`"))
    assert happening.to_bytes() == data
    assert fdl.read_happening(kind, data, fdl_continuous.HAPPENINGS) == happening
    assert make(None).translate(happening) == told
    assert {event.__struct_config__.tag for event in told} <= set(re.findall("`([a-z_.]+)`", row[4]))
    assert {type(event) for event in told} <= set(FdlContinuous.emits)


def test_the_document_lists_every_fault_and_command() -> None:
    assert {code: row[1].strip("`") for code, row in rows(DOC, 3).items()} == {
        code: fault.code for code, fault in FAULTS.items()
    }
    assert {code: bytes.fromhex(row[3].strip("`")) for code, row in rows(DOC, 4).items()} == dict(
        [make(None).order(EmptyShuffler())]
    )
    for reason, text in FdlContinuous.reasons.items():
        assert f"{reason:02X} {text.partition(':')[0]}" in " ".join(DOC.split())


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (0x50, "00 00 10"),
        (0x50, "01 10"),
        (0x51, "00 01 A0"),
        (0x51, "0D 01 A0"),
        (0x52, "34"),
        (0x52, "FC"),
        (0x52, "00 00"),
        (0x53, "00 05 01 A0"),
        (0x54, "00"),
        (0x57, "20"),
        (0x58, "08 01"),
        (0x58, "01 00 34 00"),
        (0x58, "01 00 34 01" + " 01" * 52),  # does not add up
        (0x59, ""),
    ],
)
def test_impossible_values(kind: int, data: str) -> None:
    assert isinstance(fdl.read_happening(kind, bytes.fromhex(data), fdl_continuous.HAPPENINGS), fdl.Malformed)


@pytest.mark.parametrize(
    "happening",
    [
        fdl_continuous.Loaded(256, 1),
        fdl_continuous.Ready(8, 65536),
        fdl_continuous.Returned(5, -1, 4),
        fdl_continuous.Drawn(256),
        fdl_continuous.Emptied(8, 70000),
    ],
)
def test_values_that_no_wire_can_carry(happening: fdl.Happening) -> None:
    with pytest.raises(ValueError, match=r"fit|range"):
        happening.to_bytes()


@given(st.sampled_from(sorted(fdl_continuous.HAPPENINGS)), st.binary(max_size=70))
@settings(max_examples=at_length(75, 1_500), derandomize=True)
def test_any_data_is_read_or_refused_and_read_data_is_written_as_it_came(kind: int, data: bytes) -> None:
    happening = fdl.read_happening(kind, data, fdl_continuous.HAPPENINGS)
    if not isinstance(happening, fdl.Malformed):
        assert happening.to_bytes() == data
        assert make(None).translate(happening) is not None


@pytest.mark.parametrize("card", range(52))
def test_every_card(card: int) -> None:
    happening = fdl.read_happening(0x52, bytes((card,)), fdl_continuous.HAPPENINGS)
    assert isinstance(happening, fdl_continuous.Drawn)
    assert make(None).translate(happening) == (CardDrawn("A23456789TJQK"[card % 13] + "SHDC"[card // 13]),)


# ---- what the driver makes of it


@pytest.mark.parametrize(
    ("byte", "read", "unread", "masked"),
    [
        (0, CardDrawn("AS"), HandDispensed(1), HandDispensed(1)),
        (fdl_continuous.TWO_OR_MORE, CardUnreadable(), CardUnreadable(), CardUnreadable()),
        (fdl_continuous.NOT_TOLD, CardUnreadable(), HandDispensed(1), HandDispensed(1)),
        (fdl_continuous.UNREADABLE, CardUnreadable(), HandDispensed(1), HandDispensed(1)),
    ],
)
def test_a_card_by_the_machine_and_the_game(byte: int, read: Event, unread: Event, masked: Event) -> None:
    drawn = fdl_continuous.Drawn(byte)
    for driver, told in (
        (make(None), read),
        (maker(reads=False)(None), unread),
        (maker(masked=True)(None), masked),
        (maker(reads=False, masked=True)(None), masked),
    ):
        events = driver.translate(drawn)
        assert events is not None
        assert events[0] == told


@pytest.mark.parametrize(
    ("inside", "all_return", "wrong"),
    [(416, True, False), (415, True, True), (417, True, True), (415, False, False), (417, False, True)],
)
def test_the_balance(inside: int, all_return: bool, wrong: bool) -> None:
    driver = maker(all_return=all_return)(None)
    told = driver.translate(fdl_continuous.Returned(5, 416, inside))
    assert told == (CardsReturned(5), DeckMiscounted(416, inside)) if wrong else (CardsReturned(5),)
    assert driver.ends_cycle(CardsReturned(5)) is not wrong


def test_a_loading_that_is_not_whole() -> None:
    assert make(None).translate(fdl_continuous.Ready(8, 415)) == (ShoeStarted(8), DeckMiscounted(416, 415))


def test_the_deck_check_names_the_cards() -> None:
    counts = [8] * 52
    counts[CARDS.index("KS")] -= 1
    counts[CARDS.index("9D")] += 1
    told = make(None).translate(fdl_continuous.Emptied(8, 416, Tally(tuple(counts))))
    assert told == (
        DeckChecked(416, 416, good=False),
        DeckMiscounted(416, 416, ("KS",), ("9D",)),
        ShoeEmptied(),
    )


def test_options() -> None:
    assert msgspec.convert({"masked": True}, FdlContinuous.Options) == ContinuousOptions(masked=True)
    for wrong in ({"mask": True}, {"silence": 0.1}, {"reads": "yes"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, FdlContinuous.Options)


# ---- the mirror: a dealer of baccarat, and the rules at the other end


class Dealer:
    """Deals coups from the machine; `truth` is what lay on the table in each."""

    def __init__(self, table: Bench, device: ContinuousShuffler) -> None:
        self.table = table
        self.device = device
        self.truth: list[dict[str, tuple[str, ...]]] = []

    def say(self, event: Event) -> None:
        self.table.tape.all.append(event)

    async def coup(self, mishap: Callable[[], object] = lambda: None, *, ended: Callable[[], Awaitable[None]]) -> None:
        """`mishap` at its beginning; `ended` before the payment, for who waits for events that are late."""
        self.say(BetsOpened())
        mishap()
        await asyncio.sleep(12)
        self.say(BetsClosed())
        await asyncio.sleep(1)
        cards: tuple[str, ...] = ()
        while due(cards) is not None:
            cards += (self.table.do(self.device.draw),)
            await asyncio.sleep(1.2)
        player, banker = hands(cards)
        self.truth.append({"player": player, "banker": banker})
        await asyncio.sleep(4)
        await ended()
        self.say(RoundPaid())
        await asyncio.sleep(1)
        self.table.do(self.device.return_cards)
        await asyncio.sleep(4)


async def nothing() -> None:
    """The dealer waits for nobody."""


CABLES = ["whole", "byte by byte", "lossy 1", "lossy 2", "lossy 3"]


@pytest.mark.parametrize("cable", at_length(["whole", "lossy 1"], CABLES))
@pytest.mark.parametrize("cut", [False, True])
@virtual_time
async def test_coups_come_out_as_they_were_dealt(cable: str, cut: bool) -> None:
    device = ContinuousShuffler(random.Random(1))
    async with bench(device, make, carrying(cable)) as table:
        dealer = Dealer(table, device)
        table.do(device.shuffle)
        await asyncio.sleep(3)
        await table.caught_up()
        for n in range(12):
            if cut:
                asyncio.get_running_loop().call_later(13 + n % 7, table.cut)
            await dealer.coup(ended=table.caught_up)
        await table.caught_up()
        events = table.tape.all
        assert [event.card for event in events if isinstance(event, CardDrawn)] == device.drawn
        assert [event for event in events if isinstance(event, CardsLoaded)] == [
            CardsLoaded(52, n) for n in range(1, 9)
        ]
        assert events.count(ShoeStarted(8)) == 1
        assert sum(event.count for event in events if isinstance(event, CardsReturned)) == len(device.drawn)
        assert device.left == 416
        assert not table.standing()
        results = [
            verdict.result for verdict in play(Baccarat(TABLE), events) if isinstance(verdict, Resolved | Voided)
        ]
    assert [result.outcome["hands"] for result in results] == dealer.truth
    assert lossless(events)


@pytest.mark.parametrize("fault", [*ContinuousShuffler.faults, *ContinuousShuffler.line])
@virtual_time
async def test_every_fault_is_told_and_ends_and_no_result_is_wrong(fault: str) -> None:
    device = ContinuousShuffler(random.Random(2))
    ailment = {**device.faults, **device.line}[fault]
    late = fault == "deaf"
    async with bench(device, make) as table:
        dealer = Dealer(table, device)
        table.do(device.shuffle)
        await asyncio.sleep(3)
        await table.caught_up()
        await dealer.coup(ended=nothing)
        await table.caught_up()
        since = len(table.tape.all)
        await dealer.coup(lambda: table.inject(fault), ended=nothing if late else table.caught_up)
        told = table.told(since)
        assert set(ailment.told) <= told
        assert not {word for word in told if word.startswith(("continuous.", "fdl."))} - set(ailment.told)
        before = play(Baccarat(TABLE), table.tape.all)
        assert bool(table.standing()) == (ailment.person and fault != "deaf") or not ailment.person
        table.do(device.repair)
        await asyncio.sleep(25)
        await table.caught_up()
        if ailment.round == "suspended":
            dealer.say(RoundVoided("seen by the supervisor"))
        await dealer.coup(ended=table.caught_up)
        await dealer.coup(ended=table.caught_up)
        await table.caught_up()
        assert not table.standing()
        assert lossless(table.tape.all)
        verdicts = play(Baccarat(TABLE), table.tape.all)
    seen = [*(verdict for verdict in before if isinstance(verdict, Resolved | Suspended))]
    if ailment.round == "counts":
        assert [type(verdict) for verdict in seen] == [Resolved, Resolved]
    elif not late:
        assert [type(verdict) for verdict in seen] == [Resolved, Suspended]
    resolved = [verdict.result.outcome["hands"] for verdict in verdicts if isinstance(verdict, Resolved)]
    wanted = dealer.truth if ailment.round == "counts" or late else [dealer.truth[0], *dealer.truth[2:]]
    assert resolved == wanted


@virtual_time
async def test_a_double_draw_and_a_missed_card_are_known_to_the_simulator() -> None:
    device = ContinuousShuffler(random.Random(3))
    device.inject("double_card", 0)
    first = device.draw(1)
    assert device.strays
    assert device.drawn == [first]
    assert device.on_table == 2
    assert device.left == 414
    assert device.return_cards(5) == 2
    assert device.left == 416


@virtual_time
async def test_a_jam_lights_its_lamp_until_it_is_cleared() -> None:
    device = ContinuousShuffler(random.Random(4))
    async with bench(device, make) as table:
        table.inject("jam_shoe")
        table.do(device.draw)
        await asyncio.sleep(2)
        table.do(device.repair)
        await asyncio.sleep(2)
        lamps = [event.lamps for event in table.tape.all if isinstance(event, LampsLit)]
        words = [event for event in table.tape.all if isinstance(event, CardJammed | JamCleared | CardUnreadable)]
    assert lamps == [("jam", "service"), ("ready",)]
    assert words == [CardJammed("shoe"), CardUnreadable(), JamCleared("shoe")]


@virtual_time
async def test_a_damaged_card_is_named_beside_its_lamp() -> None:
    device = ContinuousShuffler(random.Random(5))
    async with bench(device, make) as table:
        table.inject("damaged_card")
        card = table.do(device.draw)
        await asyncio.sleep(2)
        told = table.tape.all
        assert told.index(CardDrawn(card)) < told.index(CardDamaged(card))
        assert LampsLit(("ready", "damaged", "service")) in told


@virtual_time
async def test_cards_that_leave_without_power_are_unreadable_in_their_place() -> None:
    device = ContinuousShuffler(random.Random(6))
    async with bench(device, make) as table:
        first = table.do(device.draw)
        await asyncio.sleep(1)
        table.do(device.draw)
        await asyncio.sleep(0.02)  # left, and not yet told
        table.inject("power_loss")
        await asyncio.sleep(0.5)
        table.do(device.draw)
        await asyncio.sleep(3)
        last = table.do(device.draw)
        await asyncio.sleep(1)
        cards = [event for event in table.tape.all if isinstance(event, CardDrawn | CardUnreadable)]
        assert cards == [CardDrawn(first), CardUnreadable(), CardUnreadable(), CardDrawn(last)]
        table.do(device.return_cards)
        await asyncio.sleep(5)
        assert CardsReturned(4) in table.tape.all
        assert not any(isinstance(event, DeckMiscounted) for event in table.tape.all)


@pytest.mark.parametrize("data", ["", "0D 01", "34", "FC", "0D 0D 0D"])
@pytest.mark.parametrize("masked", [False, True])
@virtual_time
async def test_a_card_whose_event_cannot_be_read_is_one_card_and_the_coup_waits(masked: bool, data: str) -> None:
    """Without it the next card lies in its place."""
    cards = [bytes((CARDS.index(card),)) for card in ("9D", "2C", "KS", "5H", "7C")]
    cards[2] = bytes.fromhex(data)
    reports = [fdl.encode(fdl.EventReport(n, 0, 0x52, card), 3) for n, card in enumerate(cards, 6)]
    told = [one.event for one in await told_of("fdl_continuous", {"masked": masked}, *reports)]
    there = [event for event in told if isinstance(event, CardDrawn | CardUnreadable | HandDispensed)]
    seen = [HandDispensed(1)] * 4 if masked else [CardDrawn(card) for card in ("9D", "2C", "5H", "7C")]
    assert there == [*seen[:2], CardUnreadable(), *seen[2:]]
    coup = [BetsOpened(), BetsClosed(), *told, RoundPaid()]
    ends = [one for one in play(Baccarat(TABLE), coup) if isinstance(one, Resolved | Suspended | Voided)]
    assert [type(end) for end in ends] == [Suspended]


@virtual_time
async def test_a_masked_machine_tells_no_card() -> None:
    device = ContinuousShuffler(random.Random(7), masked=True)
    async with bench(device, maker(masked=True)) as table:
        for _ in range(20):
            table.do(device.draw)
            await asyncio.sleep(1)
        await table.caught_up()
        cards = [event for event in table.tape.events if isinstance(event, HandDispensed | CardDrawn | CardUnreadable)]
        assert cards == [HandDispensed(1)] * 20
        assert not any(isinstance(event, MachineReported) and event.code == "unmasked" for event in table.tape.all)


@virtual_time
async def test_a_machine_that_is_not_masked_is_told_once_and_its_values_go_no_further() -> None:
    device = ContinuousShuffler(random.Random(8))
    async with bench(device, maker(masked=True)) as table:
        table.inject("damaged_card")
        for _ in range(20):
            table.do(device.draw)
            await asyncio.sleep(1)
        await table.caught_up()
        assert sum(isinstance(event, HandDispensed) for event in table.tape.all) == 20
        assert sum(isinstance(event, MachineReported) and event.code == "unmasked" for event in table.tape.all) == 1
        assert CardDamaged() in table.tape.all
        values = {fdl.encode(fdl.EventReport(n, 0, 0x52, bytes((card,))), 0) for n in range(9) for card in range(52)}
        assert values
        for sighting in table.tape.sightings:
            for found in fdl.Decoder().feed(sighting.wire + b"\0"):
                if isinstance(found, fdl.Frame):
                    report = fdl.read(found)
                    assert not isinstance(report, fdl.EventReport) or report.kind not in {0x52, 0x56}
            if isinstance(sighting.event, HandDispensed | CardDamaged):
                assert sighting.wire == sighting.chunk.data == b""


@virtual_time
async def test_a_machine_without_a_reader_tells_that_a_card_left() -> None:
    device = ContinuousShuffler(random.Random(9), reads=False)
    async with bench(device, maker(reads=False)) as table:
        table.do(device.draw)
        await asyncio.sleep(1)
        assert table.tape.all[-1] == HandDispensed(1)


@pytest.mark.parametrize("wrong", [False, True])
@virtual_time
async def test_emptying_at_closing_checks_the_decks(wrong: bool) -> None:
    device = ContinuousShuffler(random.Random(10), decks=6)
    async with bench(device, make) as table:
        table.do(device.draw)
        await asyncio.sleep(1)
        with pytest.raises(CommandRefused, match="put them back first"):
            await table.obey(EmptyShuffler())
        table.do(device.return_cards)
        await asyncio.sleep(3)
        if wrong:
            device._inside[0] = "9D"
            missing, extra = ("AS",), ("9D",)
        assert await table.obey(EmptyShuffler()) == {}
        with pytest.raises(CommandRefused, match="busy"):
            await table.obey(EmptyShuffler())
        await asyncio.sleep(70)
        told = [event for event in table.tape.all if isinstance(event, DeckChecked | DeckMiscounted | ShoeEmptied)]
        if wrong:
            assert told == [DeckChecked(312, 312, good=False), DeckMiscounted(312, 312, missing, extra), ShoeEmptied()]
            assert table.standing() == {"continuous.deck"}
        else:
            assert told == [DeckChecked(312, 312, good=True), ShoeEmptied()]
            assert not table.standing()
        with pytest.raises(CommandRefused, match="no card is inside"):
            await table.obey(EmptyShuffler())
        with pytest.raises(ValueError, match="empty"):
            device.draw(table.now)
        table.do(device.shuffle)
        await asyncio.sleep(3)
        await table.caught_up()
        assert device.left == 312


@pytest.mark.parametrize(("fault", "why"), [("door_open", "cover or door"), ("motor_fault", "a fault is open")])
@virtual_time
async def test_emptying_is_refused_while_it_is_unsafe(fault: str, why: str) -> None:
    device = ContinuousShuffler(random.Random(11))
    async with bench(device, make) as table:
        table.inject(fault)
        await asyncio.sleep(1)
        with pytest.raises(CommandRefused, match=why):
            await table.obey(EmptyShuffler())
        assert await table.obey(SelfTest()) == {}
        table.cut()
        await asyncio.sleep(0.1)
        with pytest.raises(CommandRefused, match="no session"):
            await table.obey(EmptyShuffler())


@virtual_time
async def test_the_second_unreadable_card_of_a_round_is_an_error_and_a_restart_does_not_forget_it() -> None:
    device = ContinuousShuffler(random.Random(12))
    async with bench(device, make) as table:
        for n in range(4):
            table.inject("unreadable_card")
            table.do(device.draw)
            await asyncio.sleep(25)
            if n == 0:
                table.cut()
                await asyncio.sleep(3)
            if n == 1:
                table.do(device.return_cards)
                await asyncio.sleep(5)
        severities = [event.severity for event in table.tape.all if isinstance(event, DeviceFaulted)]
        online = [event.continuous for event in table.tape.all if isinstance(event, DeviceOnline)]
    assert severities == ["warning", "error", "warning", "error"]
    assert online == [False, True]


@virtual_time
async def test_a_stack_that_does_not_fit_goes_in_with_the_next() -> None:
    device = ContinuousShuffler(random.Random(13))
    async with bench(device, make) as table:
        table.inject("full")
        table.do(device.draw)
        assert table.do(device.return_cards) == 0
        await asyncio.sleep(25)
        table.do(device.draw)
        assert table.do(device.return_cards) == 2
        await asyncio.sleep(5)
        assert [event for event in table.tape.all if isinstance(event, CardsReturned)] == [CardsReturned(2)]
        assert not any(isinstance(event, DeckMiscounted) for event in table.tape.all)
        assert not table.standing()


def test_it_never_wants_to_be_woken_at_once() -> None:
    device = ContinuousShuffler(random.Random(14))
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
        now = min(device.due(), now + 3)
        assert device.left + device.on_table + len(device._stuck) + len(device._lost) == 416 + len(device._foreign)


def test_a_loading_is_at_least_two_packets() -> None:
    device = ContinuousShuffler(random.Random(15), decks=1)
    device.shuffle(0)
    while device.due() < 5:
        device.wake(device.due())
    loaded = [kept.data for kept in device._ring if kept.kind == 0x50]
    assert loaded == [bytes.fromhex("01 00 1A"), bytes.fromhex("02 00 1A")]


def test_a_fault_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="no fault 'fire'"):
        ContinuousShuffler(random.Random(1)).inject("fire", 0)


def test_the_dealer_of_this_test_deals_as_the_article_says() -> None:
    assert deal({"player": ("9D", "KC"), "banker": ("AS", "4H")}) == ("9D", "AS", "KC", "4H")
