"""The shoe with a HID scanner: exact reports, any chunking, any noise, and the mirror from simulator to events."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from random import Random

import msgspec
import pytest
from helpers import MemoryLink, Notebook, at_length, seen, troubles, virtual_time
from hypothesis import given, settings, strategies as st

from drivers.driver import LinkLost, Sighting
from drivers.hid_shoe import GOOD_RUN, MODEL, HidShoe, HidShoeOptions
from protocols.contract.events import (
    CardDrawn,
    CardUnreadable,
    CutCardDrawn,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    Event,
    type_of,
)
from protocols.hid_cards import (
    LONGEST,
    MOST,
    RELEASED,
    REPORT,
    Broken,
    Code,
    Decoder,
    Message,
    card_in,
    code_of,
    encode,
    press,
)
from simulators.devices.hid_shoe import GAP, REBOOT_S, HidShoe as Shoe
from simulators.devices.line import Line

ONLINE = DeviceOnline(continuous=False, model=MODEL)
CARDS = [rank + suit for rank, suit in product("A23456789TJQK", "SHDC")]

# By hand from the usage tables: S is 16, H 0B, A 04, 1 1E, 0 27, Enter 28; left shift is 02.
UP = "0000000000000000"
ENTER = f"0000280000000000 {UP}"
SPADE_ACE = bytes.fromhex(f"0200160000000000 {UP} 0200040000000000 {UP} {ENTER}")
HEART_TEN = bytes.fromhex(f"02000B0000000000 {UP} 00001E0000000000 {UP} 0000270000000000 {UP} {ENTER}")


def decode(data: bytes, cuts: Sequence[int] = ()) -> list[Message]:
    """All messages, with `data` split at `cuts`."""
    decoder = Decoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    told = [message for a, b in pairwise(edges) for message in decoder.feed(data[a:b])] + decoder.quiet()
    assert not decoder.waiting
    return told


# ---- the wire


def test_exact_reports_both_ways() -> None:
    for code, reports in (("SA", SPADE_ACE), ("H10", HEART_TEN)):
        assert encode(Code(code)) == reports
        assert Decoder().feed(reports) == [Code(code, reports[:-REPORT])]  # the Enter's key going up adds nothing


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("0000040000000000", "a"),
        ("2000040000000000", "A"),  # right shift
        ("00001D0000000000", "z"),
        ("0200210000000000", "$"),
        ("0000260000000000", "9"),
        ("0000270000000000", "0"),
        ("0000590000000000", "1"),  # keypad
        ("0000620000000000", "0"),
        ("00002D0000000000", "-"),
        ("0200380000000000", "?"),
    ],
)
@pytest.mark.parametrize("enter", ["0000280000000000", "0000580000000000"])
def test_keys_of_the_usage_table(keys: str, text: str, enter: str) -> None:
    typed = bytes.fromhex(keys + UP + enter)
    assert Decoder().feed(typed) == [Code(text, typed)]


def test_an_equal_key_types_again_only_after_it_was_up() -> None:
    one, enter = press(0x1E), press(0x28) + RELEASED
    assert Decoder().feed(one + RELEASED + one + RELEASED + enter)[0].text == "11"
    assert Decoder().feed(one + one + one + RELEASED + enter)[0].text == "1"
    assert Decoder().feed(one + press(0x1F) + one + enter)[0].text == "121"  # it was up while 2 was down
    assert Decoder().feed(one + press(0x1F, 0, 0x1E) + press(0x20, 0, 0x1F) + enter)[0].text == "123"  # rolling over


@pytest.mark.parametrize(
    ("data", "why", "text"),
    [
        (SPADE_ACE[:-16], "unfinished", "SA"),
        (SPADE_ACE[:16], "unfinished", "S"),
        (SPADE_ACE[:3], "garbage", ""),
        (SPADE_ACE[-16:], "garbage", ""),  # an Enter alone may be what is left of a code
        (b"\xff" * 8 + SPADE_ACE, "garbage", "SA"),
        (b"\x00\x01\x04\x00\x00\x00\x00\x00" + SPADE_ACE, "garbage", "SA"),
        (SPADE_ACE[:16] + b"\x00\x00\x01\x01\x01\x01\x01\x01" + SPADE_ACE[16:], "garbage", "SA"),  # too many at once
        (b"\x00\x00\x04\x05\x00\x00\x00\x00" + encode(Code("1")), "garbage", "1"),  # A and B in one moment
        (press(0x04, 0x01) + RELEASED + encode(Code("1")), "garbage", "1"),  # control and A
        (press(0x3A) + RELEASED + encode(Code("1")), "garbage", "1"),  # F1
        (bytes((0, 0, 4, 4)) + bytes(4) + RELEASED + encode(Code("1")), "garbage", "1"),  # a key cannot be down twice
        (b"\x01" + bytes(7) + encode(Code("1")), "garbage", "1"),  # control alone
    ],
)
def test_invalid_codes(data: bytes, why: str, text: str) -> None:
    for cuts in ((), range(len(data))):
        (told,) = decode(data, cuts)
        assert isinstance(told, Broken)
        assert (told.why, told.text) == (why, text)
        assert len(told.raw) <= len(data)


def test_after_noise_and_a_quiet_moment_codes_are_read_again() -> None:
    decoder = Decoder()
    decoder.feed(SPADE_ACE[:21])
    assert decoder.waiting
    assert [type(message) for message in decoder.quiet()] == [Broken]
    assert decoder.feed(HEART_TEN)[0].text == "H10"


def test_a_key_held_from_before_makes_a_code_doubtful() -> None:
    decoder = Decoder()
    (code,) = decoder.feed(SPADE_ACE[:-REPORT] + press(0x0B))  # the next key is down already
    assert code == Code("SA", SPADE_ACE[:-REPORT])
    decoder.quiet()
    assert decoder.held == "H"
    h = 0x0B
    held = press(h) + press(0x1E, 0, h) + press(h) + press(0x28, 0, h) + press(h)
    assert [(one.why, one.text) for one in decoder.feed(held) if isinstance(one, Broken)] == [("held", "1")]
    enter = press(0x28, 0, h) + press(h)
    assert [one.why for one in decoder.feed(enter) if isinstance(one, Broken)] == ["held"]  # its code was "H"
    decoder.feed(RELEASED)
    assert decoder.held == ""
    assert decoder.feed(HEART_TEN)[0].text == "H10"


def test_endless_code_is_reported_in_bounded_pieces() -> None:
    decoder = Decoder()
    told = decoder.feed((press(0x04) + RELEASED) * 10 * LONGEST)
    assert {type(message) for message in told} == {Broken}
    assert max(len(message.raw) for message in told) < MOST + 2 * REPORT
    decoder.feed(press(0x28) + RELEASED)
    assert decoder.feed(SPADE_ACE)[0] == Code("SA", SPADE_ACE[:-REPORT])
    assert decode(encode(Code("x" * LONGEST)))[0].text == "x" * LONGEST


@pytest.mark.parametrize("text", ["", "é", "a\nb", "x" * (LONGEST + 1)])
def test_codes_that_no_scanner_can_type(text: str) -> None:
    with pytest.raises(ValueError, match="no scanner can type"):
        encode(Code(text))


TYPED = "".join(chr(n) for n in range(32, 127))


@given(st.lists(st.text(TYPED, min_size=1, max_size=LONGEST), max_size=6), st.lists(st.integers(0, 9999), max_size=20))
@settings(max_examples=at_length(25, 300))
def test_any_codes_in_any_chunks(codes: list[str], cuts: list[int]) -> None:
    data = b"".join(encode(Code(code)) for code in codes)
    told = decode(data, cuts)
    assert [message.text for message in told if isinstance(message, Code)] == codes
    assert len(told) == len(codes)


NOISE = st.lists(
    st.one_of(st.binary(max_size=20), st.sampled_from([SPADE_ACE, RELEASED, SPADE_ACE[:9], press(4, 0, 5), b"\0"])),
    max_size=12,
).map(b"".join)


@given(NOISE, st.lists(st.integers(0, 999), max_size=20))
@settings(max_examples=at_length(40, 750))
def test_any_noise_in_any_chunks_is_told_alike_and_bounded(noise: bytes, cuts: list[int]) -> None:
    told = decode(noise, cuts)
    assert told == decode(noise)
    decoder = Decoder()
    decoder.feed(noise)
    decoder.quiet()
    decoder.feed(RELEASED)
    assert decoder.feed(HEART_TEN)[-1].text == "H10"


# ---- what a code means


def test_every_card_has_its_code_both_ways() -> None:
    assert len(set(map(code_of, CARDS))) == 52
    for card in CARDS:
        assert card_in(code_of(card)) == card_in(code_of(card, ten="T")) == card
        assert card_in(code_of(card, "rank-suit"), "rank-suit") == card
    assert [code_of(card) for card in ("AS", "TH", "TD")] == ["SA", "H10", "D10"]
    assert [card_in(code) for code in ("SA", "H10", "DT", "C2", "AS", "S1", "S11", "SA ", "", "sa", "XA")] == [
        *("AS", "TH", "TD", "2C"),
        *[None] * 7,
    ]


def test_options_refuse_what_they_do_not_know() -> None:
    assert msgspec.convert({"codes": {"0042": "AS"}}, HidShoeOptions).codes == {"0042": "AS"}
    for wrong in (
        {"speed": 9600},
        {"quiet": 0},
        {"codes": {"0042": "XX"}},
        {"codes": {"": "AS"}},
        {"order": "either"},
        {"codes": {"cut": "AS"}},  # the cut card's
        {"cut_cards": ["SA"]},
        {"cut_cards": ["X"], "no_read": ["x"]},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, HidShoeOptions)
    HidShoeOptions(cut_cards=("X",), no_read=("x",), ignore_case=False)


# ---- the driver


class Session:
    """A driver on a link in memory."""

    def __init__(self, options: HidShoeOptions | None = None, memory: bytes | None = None) -> None:
        self.link = MemoryLink()
        self.notes = Notebook()
        self.task = asyncio.create_task(HidShoe(options or HidShoeOptions(), memory).run(self.link, self.notes))

    async def feed(self, data: bytes, then: float = 1.0) -> None:
        """Bytes at once, then `then` seconds of quiet."""
        self.link.feed(data)
        await asyncio.sleep(then)

    async def scan(self, *codes: str, then: float = 1.0) -> None:
        """Each code, and `then` seconds of quiet after it."""
        for code in codes:
            await self.feed(encode(Code(code)), then)

    async def end(self) -> list[Event]:
        """Hang up; every event but those of faults."""
        self.link.hang_up()
        with pytest.raises(LinkLost, match="hung up"):
            await self.task
        assert self.link.sent == b""
        return seen(self.notes.events)

    @property
    def fault(self) -> DeviceFaulted:
        """The last one."""
        return [event for event in self.notes.events if isinstance(event, DeviceFaulted)][-1]


@virtual_time
async def test_it_is_online_at_once_and_proves_nothing() -> None:
    session = Session()
    await asyncio.sleep(0.01)
    assert session.notes.events == [ONLINE]
    await asyncio.sleep(8 * 3600)
    await session.scan("SA", "h10", "DT")
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardDrawn("TH"), CardDrawn("TD")]
    assert session.notes.sightings[1].wire == SPADE_ACE[:-REPORT]
    assert session.notes.memory is None


@virtual_time
async def test_each_house_has_its_codes() -> None:
    session = Session(HidShoeOptions(order="rank-suit", cut_cards=("X9",), no_read=("?",)))
    await session.scan("AS", "10H", "X9", "?", "SA")
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardDrawn("TH"), CutCardDrawn(), *[CardUnreadable()] * 2]
    session = Session(HidShoeOptions(codes={"0042": "AS", "0043": "KC"}, ignore_case=False))
    await session.scan("0042", "0043", "SA", "CUT", "cut")
    expected = [CardDrawn("AS"), CardDrawn("KC"), CardUnreadable(), CutCardDrawn(), CardUnreadable()]
    assert await session.end() == [ONLINE, *expected]


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (encode(Code("4901234567894")), "shoe.unknown_code", "13 characters"),
        (encode(Code("NOREAD")), "shoe.unreadable", "NOREAD"),
        (SPADE_ACE[:-16], "shoe.unfinished", "typed 2 characters"),
        (SPADE_ACE[:5], "shoe.unreadable", "garbled"),
        (b"\xff" * 9 + SPADE_ACE, "shoe.unreadable", "garbled"),
        (encode(Code("x" * LONGEST))[:-16] + SPADE_ACE, "shoe.unreadable", "no end"),
    ],
)
@virtual_time
async def test_invalid_code_is_a_fault_until_a_card_is_read(data: bytes, code: str, said: str) -> None:
    session = Session()
    await session.feed(data)
    assert seen(session.notes.events) == [ONLINE, CardUnreadable()]
    assert (session.fault.code, session.fault.severity) == (code, "warning")
    assert said in session.fault.text
    assert "supervisor" in session.fault.remedy
    await session.feed(data)
    await session.scan("SA")
    await session.end()
    assert troubles(session.notes.events) == [f"{code} warning", f"{code} error", f"{code} over"]


@virtual_time
async def test_a_good_run_makes_the_next_fault_a_first_one() -> None:
    session = Session()
    await session.scan("X", "X", *["SA"] * (GOOD_RUN - 1), "X", *["SA"] * GOOD_RUN, "X")
    await session.end()
    told = [word for word in troubles(session.notes.events) if not word.endswith("over")]
    assert [word.split()[1] for word in told] == ["warning", "error", "error", "warning"]


@virtual_time
async def test_a_fault_outlives_a_restart_until_a_card_is_read() -> None:
    session = Session()
    await session.scan("X")
    await session.end()
    session = Session(memory=session.notes.memory)
    await asyncio.sleep(3600)
    assert session.notes.events == [ONLINE]
    await session.scan("SA", "X")
    await session.end()
    over, error = "shoe.unknown_code over", "shoe.unknown_code error"
    assert troubles(session.notes.events) == [over, error]


@virtual_time
async def test_no_card_is_counted_twice_and_none_left_out() -> None:
    session = Session()
    await session.scan("SA", "SA", then=0.41)  # another deck's
    assert seen(session.notes.events) == [ONLINE, CardDrawn("AS"), CardDrawn("AS")]
    await session.scan("SA", "SA", then=0.3)  # within 0.4 s of the one before, the second too
    assert seen(session.notes.events[3:]) == [CardDrawn("AS"), CardUnreadable()]
    assert session.fault.code == "shoe.repeated"
    await session.scan("SA", "SA", "SA", then=0.3)  # it stays there: told once
    assert seen(session.notes.events[3:]) == [CardDrawn("AS"), CardUnreadable()]
    await asyncio.sleep(1)
    await session.scan("SA")
    assert (await session.end())[-1] == CardDrawn("AS")
    assert troubles(session.notes.events) == ["shoe.repeated warning", "shoe.repeated over"]


@virtual_time
async def test_a_second_card_pulled_too_soon_has_no_place_in_the_coup() -> None:
    session = Session()
    await session.scan("SA", "H10", then=0.3)
    assert seen(session.notes.events) == [ONLINE, CardDrawn("AS"), CardUnreadable()]
    assert session.fault.code == "shoe.misscan"
    assert "TH" not in session.fault.text  # everybody reads a fault, and the card may lie face down
    await session.scan("CUT", then=0.3)  # the cut card is no second card
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardUnreadable(), CutCardDrawn()]
    session = Session(HidShoeOptions(repeat=0))
    await session.scan("SA", "H10", "H10", then=0.0)
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardDrawn("TH"), CardDrawn("TH")]


@virtual_time
async def test_half_a_code_joins_no_other() -> None:
    """Also where the disk stood still and both were there when the driver looked again."""
    free = asyncio.Event()

    class Slow(Notebook):
        async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            await super().__call__(sightings, memory)
            await free.wait()

    link, notes = MemoryLink(), Slow()
    task = asyncio.create_task(HidShoe(HidShoeOptions()).run(link, notes))
    link.feed(SPADE_ACE[:16])  # S and never the rest
    await asyncio.sleep(3)
    link.feed(encode(Code("A")))
    await asyncio.sleep(3)
    free.set()
    link.hang_up()
    with pytest.raises(LinkLost):
        await task
    assert seen(notes.events) == [ONLINE, CardUnreadable(), CardUnreadable()]
    assert [word.split()[0] for word in troubles(notes.events)] == ["shoe.unfinished", "shoe.unknown_code"]


@virtual_time
async def test_the_limit_of_a_held_key_ends_also_where_the_time_is_rounded_down() -> None:
    session, loop = Session(HidShoeOptions(stuck=0.9)), asyncio.get_running_loop()
    pressed = next(at for at in (loop.time() + n / 7 for n in range(1, 1000)) if (at + 0.9) - at < 0.9)
    await asyncio.sleep(pressed - loop.time())
    assert loop.time() == pressed
    await session.feed(press(0x0B))
    assert session.fault.code == "shoe.key_stuck"
    await session.end()


@virtual_time
async def test_a_key_that_is_held_is_told_until_it_is_up() -> None:
    session = Session()
    await session.feed(SPADE_ACE + press(0x0B), 0.9)
    assert troubles(session.notes.events) == ["shoe.unfinished warning"]
    await asyncio.sleep(0.2)
    assert (session.fault.code, session.fault.severity) == ("shoe.key_stuck", "warning")
    assert "key H" in session.fault.text
    await session.feed(press(0x1E, 0, 0x0B) + press(0x28, 0, 0x0B) + press(0x0B))
    assert (session.fault.code, session.fault.severity) == ("shoe.key_stuck", "error")
    await session.feed(RELEASED)
    assert session.notes.events[-1] == DeviceRecovered("shoe.key_stuck")
    await session.scan("SA")
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardUnreadable(), CardUnreadable(), CardDrawn("AS")]


@virtual_time
async def test_session_with_another_usb_device_is_refused() -> None:
    session = Session(HidShoeOptions(noise_limit=2000))
    session.link.feed(b"\xff" * 4000)
    await asyncio.sleep(1)
    with pytest.raises(LinkLost, match="set to type as a keyboard"):
        await session.task
    assert CardUnreadable() in session.notes.events


@virtual_time
async def test_half_a_code_is_told_when_the_plug_is_pulled() -> None:
    session = Session()
    await session.feed(SPADE_ACE[:20], 0)
    assert await session.end() == [ONLINE, CardUnreadable()]
    assert session.notes.memory is not None


# ---- the shoe


def said(shoe: Shoe, until: float = float("inf")) -> bytes:
    """Everything on the line."""
    data, before = b"", float("-inf")
    while (now := shoe.due()) < until:
        assert now > before
        before = now
        data += shoe.wake(now)
    return data


def test_a_shoe_types_each_card() -> None:
    shoe = Shoe(Random(1), 8)
    drawn = [shoe.draw(float(n)) for n in range(3)]
    assert said(shoe) == b"".join(encode(Code(code_of(card))) for card in drawn)
    assert (shoe.drawn, shoe.left) == (drawn, 413)
    for n in range(413):
        shoe.draw(float(n))
    assert sorted(shoe.drawn) == sorted(CARDS * 8)
    with pytest.raises(ValueError, match="empty"):
        shoe.draw(0.0)
    shoe.acts()["draw"](500.0)
    assert shoe.left == 415
    assert {act for act, _ in shoe.routine} <= set(shoe.acts())
    assert Shoe(Random(1)).draw(0) == Shoe(Random(1)).draw(0) != Shoe(Random(2)).draw(0)
    assert shoe.hear(b"anything", 0.0) == b""


def test_reports_take_their_time() -> None:
    shoe = Shoe(Random(1), 1)
    shoe.draw(10.0)
    times = []
    while (due := shoe.due()) < float("inf"):
        times.append(due)
        assert len(shoe.wake(due)) == REPORT
    assert all(b - a == pytest.approx(GAP) for a, b in pairwise(times))
    assert shoe.wake(11.0) == b""


def test_its_own_codes_and_the_cut_card() -> None:
    shoe = Shoe(Random(1), 1, codes={card: f"{n:04}" for n, card in enumerate(CARDS)})
    card = shoe.draw(0.0)
    shoe.draw_cut(1.0)
    assert [message.text for message in decode(said(shoe))] == [f"{CARDS.index(card):04}", "CUT"]
    assert shoe.left == 51


def test_a_fault_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="no fault 'fire', only unreadable"):
        Shoe(Random(1), 1).inject("fire", 0.0)


# ---- the mirror: simulator, line, driver, events


def whole(data: bytes) -> list[bytes]:
    return [data] if data else []


def byte_by_byte(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def lossy(rng: Random, loss: float) -> Callable[[bytes], list[bytes]]:
    """Reports lost whole, as on a bus with checksums, and bytes lost, as behind a bad bridge; none is changed."""

    def carry(data: bytes) -> list[bytes]:
        left = b"" if rng.random() < loss else bytes(byte for byte in data if rng.random() >= loss / 8)
        return [left] if left else []

    return carry


async def mirror(
    shoe: Shoe,
    cable: Callable[[bytes], list[bytes]],
    cards: int,
    *,
    fault: str = "",
    line_fault: str = "",
    repaired: int = -1,
) -> tuple[list[list[Event]], list[Event]]:
    """Draw `cards`, one a second, a fault with the third. What was told after each, and everything."""
    session = Session(HidShoeOptions(noise_limit=65536))
    loop = asyncio.get_running_loop()
    line = Line(Random(5))
    await asyncio.sleep(1.0)
    before = len(session.notes.events)
    told: list[list[Event]] = []
    for n in range(cards):
        if n == 2 and fault:
            shoe.inject(fault, loop.time())
        if n == 2 and line_fault:
            line.inject(line_fault, loop.time())
        if n == repaired:
            shoe.repair(loop.time())
        shoe.draw(loop.time() + 0.1)
        end = loop.time() + 1
        while (due := min(shoe.due(), line.due())) <= end:
            await asyncio.sleep(due - loop.time())
            now = loop.time() + 1e-9
            for piece in cable(line.to_host(shoe.wake(now), now)):
                session.link.feed(piece)
        await asyncio.sleep(end - loop.time())
        told.append(session.notes.events[before:])
        before = len(session.notes.events)
    await session.end()
    return told, session.notes.events


@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@virtual_time
async def test_mirror_over_a_good_line(cable: Callable[[bytes], list[bytes]]) -> None:
    shoe = Shoe(Random(7), 8)
    _, events = await mirror(shoe, cable, 416)
    assert events == [ONLINE, *(CardDrawn(card) for card in shoe.drawn)]


@pytest.mark.parametrize("seed", range(5))
@virtual_time
async def test_mirror_over_a_lossy_line_never_tells_a_wrong_card(seed: int) -> None:
    shoe = Shoe(Random(seed), 8)
    told, _ = await mirror(shoe, lossy(Random(seed), 0.03), 300)
    doubtful = 0
    for card, all_events in zip(shoe.drawn, told, strict=True):
        events = seen(all_events)
        assert events, "a card was swallowed"
        assert set(events) <= {CardDrawn(card), CardUnreadable()}
        assert events.count(CardDrawn(card)) <= 1
        doubtful += CardUnreadable() in events
    assert 0 < doubtful < 150


def outcome(events: Sequence[Event]) -> tuple[set[str], set[str]]:
    """The fault codes and event types told, but those of a good card; and the fault codes that are over."""
    codes = {event.code for event in events if isinstance(event, DeviceFaulted)}
    types = {type_of(event) for event in seen(events)} - {"device.online", "card.drawn"}
    return codes | types, {event.code for event in events if isinstance(event, DeviceRecovered)}


@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@pytest.mark.parametrize("fault", Shoe.faults)
@virtual_time
async def test_mirror_of_every_fault(fault: str, cable: Callable[[bytes], list[bytes]]) -> None:
    ailment = Shoe.faults[fault]
    shoe = Shoe(Random(3), 2)
    told, events = await mirror(shoe, cable, 40, fault=fault, repaired=6)
    found, over = outcome(events)
    assert set(ailment.told) <= found
    # A card that lies there comes between those that are drawn, and what a held key garbles looks like anything.
    assert found == set(ailment.told) or ailment.person
    assert over == {code for code in found if code.startswith("shoe.")}
    for card, news in zip(shoe.drawn, told, strict=True):
        assert set(seen(news)) <= {CardDrawn(card), CardUnreadable()}
    assert [seen(news) for news in told[7:]] == [[CardDrawn(card)] for card in shoe.drawn[7:]]
    if ailment.person:
        assert CardUnreadable() in [event for news in told[4:6] for event in news]  # not over by itself
    blind = {"missing_card": 1, "power_loss": int(REBOOT_S)}.get(fault, 0)
    assert [seen(news) for news in told].count([]) == (blind - 1 if fault == "power_loss" else blind)


@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@pytest.mark.parametrize("fault", sorted(set(Shoe.line) - {"unplugged"}))
@virtual_time
async def test_mirror_of_every_fault_of_the_line(fault: str, cable: Callable[[bytes], list[bytes]]) -> None:
    """What is not told costs nothing where no card is drawn meanwhile; where one is, it is never a wrong one."""
    shoe = Shoe(Random(3), 2)
    told, events = await mirror(shoe, cable, 40, line_fault=fault)
    found, over = outcome(events)
    if fault in {"wrong_baud", "slow_drip"}:
        assert found <= {"card.unreadable", "shoe.unreadable", "shoe.unfinished", "shoe.misscan", "shoe.repeated"}
    else:
        assert found == set(Shoe.line[fault].told)
    assert over == {code for code in found if code.startswith("shoe.")}
    drawn = [event for event in events if isinstance(event, CardDrawn)]
    cards = iter(shoe.drawn)
    assert all(event.card in cards for event in drawn)  # in order, none that was not drawn
    assert [seen(news) for news in told[25:]] == [[CardDrawn(card)] for card in shoe.drawn[25:]]


def test_every_fault_is_answered() -> None:
    assert set(Shoe.line) == set(Line.FAULTS)
    told = {code for ailment in (*Shoe.faults.values(), *Shoe.line.values()) for code in ailment.told}
    assert {fault.code for fault in HidShoe.faults} == {code for code in told if code.startswith("shoe.")}
