"""The Bee-Tek shoe: exact lines, any chunking, any noise, and the mirror from simulator to events over bad cables."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random

import msgspec
import pytest
from helpers import MemoryLink, Notebook, at_length, seen, troubles, virtual_time
from hypothesis import given, settings, strategies as st

from drivers.bee_tek_shoe import GOOD_RUN, BeeTekShoe, ShoeOptions
from drivers.driver import LinkLost, Sighting
from protocols.bee_tek_shoe import (
    FRAME_LENGTH,
    Broken,
    Decoder,
    Drawn,
    Echo,
    Garbage,
    Message,
    Other,
    encode,
    encode_echo,
)
from protocols.contract.events import (
    CardDrawn,
    CardUnreadable,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    Event,
    type_of,
)
from simulators.devices.bee_tek_shoe import REBOOT_S, Shoe, TextShoe
from simulators.devices.line import Line

ONLINE = DeviceOnline(False, "USPC Bee-Tek")
ACE_OF_SPADES = b"*0D31D8\r\n"

# As printed in the public code.
EXAMPLES = {"AS": b"*0D31D8", "KH": b"*0D0DE8", "TC": b"*0D2AE7", "AD": b"*0D11D6"}


def table() -> Iterator[tuple[str, bytes]]:
    """All 52 lines, counted by hand: 0, D and the two digits as ASCII, added up."""
    ascii_of = {"0": 48, "1": 49, "2": 50, "3": 51, "4": 52, "5": 53, "6": 54, "7": 55, "8": 56, "9": 57}
    ascii_of |= {"A": 65, "B": 66, "C": 67, "D": 68}
    for suit, suit_digit in (("H", "0"), ("D", "1"), ("C", "2"), ("S", "3")):
        ranks = [("A", "1"), *((n, n) for n in "23456789"), ("T", "A"), ("J", "B"), ("Q", "C"), ("K", "D")]
        for rank, rank_digit in ranks:
            total = 48 + 68 + ascii_of[suit_digit] + ascii_of[rank_digit]
            yield rank + suit, f"*0D{suit_digit}{rank_digit}{total % 256:02X}".encode()


LINES = dict(table())
CARDS = st.sampled_from(sorted(LINES))
OTHERS = st.builds(
    Other,
    st.text("0123456789ABCEF", min_size=2, max_size=2),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters="*"), min_size=2, max_size=2),
)


def decode(data: bytes, cuts: list[int] | None = None) -> list[Message]:
    """All messages, with `data` split at `cuts`; garbage that was told in pieces put together again."""
    decoder = Decoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    told = [message for a, b in pairwise(edges) for message in decoder.feed(data[a:b])] + decoder.quiet()
    assert not decoder.waiting
    joined: list[Message] = []
    for message in told:
        if isinstance(message, Garbage) and joined and isinstance(before := joined[-1], Garbage):
            joined[-1] = Garbage(before.raw + message.raw)
        else:
            joined.append(message)
    return joined


# ---- the wire


def test_the_table_has_every_card_and_the_printed_examples() -> None:
    assert len(LINES) == len(set(LINES.values())) == 52
    assert {card: LINES[card] for card in EXAMPLES} == EXAMPLES


@pytest.mark.parametrize("card", LINES)
def test_exact_line_of_each_card_both_ways(card: str) -> None:
    line = LINES[card]
    assert encode(Drawn(card)) == line + b"\r\n"
    for end in (b"", b"\r", b"\n", b"\r\n"):
        assert Decoder().feed(line + end) == [Drawn(card, line)]


@pytest.mark.parametrize("between", [b"", b"\r\n", b"\n\r\n"])
@pytest.mark.parametrize("after", [b"", b"\r\n"])
def test_game_mode_repeats_two_digits_with_or_without_line_ends(between: bytes, after: bytes) -> None:
    data = LINES["AS"] + between + b"31" + after + LINES["KH"] + between + b"0D" + after
    expected = [Drawn("AS", LINES["AS"]), Echo(b"31"), Drawn("KH", LINES["KH"]), Echo(b"0D")]
    assert decode(data) == expected
    assert decode(data, [*range(len(data))]) == expected
    assert encode_echo("KH") == b"0D"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"*0D31D9\r\n", [Broken(b"*0D31D9")]),  # wrong checksum
        (b"*0D31d8\r\n", [Broken(b"*0D31d8")]),  # the shoe writes upper case
        (b"*0D41D9\r\n", [Broken(b"*0D41D9")]),  # no suit 4
        (b"*0D30D7\r\n", [Broken(b"*0D30D7")]),  # no rank 0
        (b"*0D3EEC\r\n", [Broken(b"*0D3EEC")]),  # no rank E
        (b"*0D31\r\n", [Broken(b"*0D31")]),
        (b"*\r\n", [Broken(b"*")]),
        (b"*0D3*0D31D8", [Broken(b"*0D3"), Drawn("AS", b"*0D31D8")]),
        (b"**0D31D8", [Broken(b"*"), Drawn("AS", b"*0D31D8")]),
        (b"*0D31D8F\r\n", [Drawn("AS", b"*0D31D8"), Garbage(b"F")]),
        (b"0D31D8\r\n", [Garbage(b"0D31D8")]),  # its star was lost
        (b"*0D31D8\r\n32\r\n", [Drawn("AS", b"*0D31D8"), Garbage(b"32")]),  # not that card's digits
        (b"*0D31D8\r\n3\r\n", [Drawn("AS", b"*0D31D8"), Garbage(b"3")]),
        (b"*0D31D83131", [Drawn("AS", b"*0D31D8"), Garbage(b"3131")]),
        (b"*0D31D8\r\n31\r\n31", [Drawn("AS", b"*0D31D8"), Echo(b"31"), Garbage(b"31")]),
        (b"*0D31D9\r\n31\r\n", [Broken(b"*0D31D9"), Garbage(b"31")]),  # the echo of a card that nobody knows
        (b"31", [Garbage(b"31")]),
        (b"\r\n\r\n", []),
        (b"*0E31D9\r\n", [Other("0E", "31", b"*0E31D9")]),
        (b"*0E31D8\r\n", [Broken(b"*0E31D8")]),
        (b"*0E75\r\n", [Broken(b"*0E75")]),  # no such length is known
        (b"*0E31231F\r\n", [Broken(b"*0E3123"), Garbage(b"1F")]),
    ],
)
def test_invalid_cards(data: bytes, expected: list[Message]) -> None:
    assert decode(data) == expected
    assert decode(data, [*range(len(data))]) == expected


@given(st.lists(CARDS.map(Drawn) | OTHERS, max_size=12), st.lists(st.integers(0, 2000), max_size=30), st.booleans())
@settings(max_examples=at_length(40, 750))
def test_any_chunking_gives_the_same_messages(sent: list[Drawn | Other], cuts: list[int], game_mode: bool) -> None:
    data = b""
    expected: list[Message] = []
    for message in sent:
        line = encode(message)
        data += line
        expected.append(msgspec.structs.replace(message, raw=line[:-2]))
        if game_mode and isinstance(message, Drawn):
            data += encode_echo(message.card) + b"\r\n"
            expected.append(Echo(encode_echo(message.card)))
    assert decode(data, cuts) == expected


NOISE = st.binary(max_size=30) | st.text("*0D31DE8\r\n", max_size=20).map(str.encode) | st.binary(max_size=200)


@given(st.lists(NOISE | CARDS.map(LINES.__getitem__), max_size=12), st.lists(st.integers(0, 3000), max_size=30))
@settings(max_examples=at_length(75, 1_500))
def test_any_noise_is_told_whole_and_never_held_for_long(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    whole = decode(data)
    assert decode(data, cuts) == whole
    assert b"".join(message.raw for message in whole) == data.translate(None, b"\r\n")
    for message in whole:
        if isinstance(message, Drawn):
            assert LINES[message.card] == message.raw
    decoder = Decoder()
    for start in range(0, len(data), 7):
        decoder.feed(data[start : start + 7])
        assert len(decoder._held) < FRAME_LENGTH


@given(st.binary(max_size=100).map(lambda noise: noise.replace(b"*", b"")), CARDS)
@settings(max_examples=at_length(25, 500))
def test_after_any_noise_the_next_star_is_read(noise: bytes, card: str) -> None:
    assert decode(noise + LINES[card])[-1] == Drawn(card, LINES[card])
    assert decode(b"*" + noise + b"\r\n" + LINES[card])[-1] == Drawn(card, LINES[card])


def damaged(line: bytes) -> Iterator[bytes]:
    """`line` with one byte lost, doubled or changed."""
    for at in range(len(line)):
        yield line[:at] + line[at + 1 :]
        yield line[:at] + line[at : at + 1] + line[at:]
        for bit in range(8):
            yield line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]
        for byte in b"*0123456789ABCDEF\r\n\x00\xff":
            yield line[:at] + bytes([byte]) + line[at + 1 :]


@pytest.mark.parametrize("echoed", [False, True])
def test_one_damaged_byte_is_never_another_card_and_never_swallowed(echoed: bool) -> None:
    for card, frame in LINES.items():
        for bad in damaged(frame):
            told = decode(bad + (encode_echo(card) if echoed else b"") + b"\r\n")
            assert {message.card for message in told if isinstance(message, Drawn)} <= {card}, bad
            assert any(isinstance(message, Drawn | Broken | Garbage) for message in told), bad
            # A lost byte and the first digit of an echo can add up to an unknown frame; the second digit gives it away.
            assert echoed or not any(isinstance(message, Other) for message in told), bad


@pytest.mark.parametrize(
    "message",
    [
        Drawn("1S"),
        Drawn(""),
        Other("0D", "31"),
        Other("0", ""),
        Other("0E", "x" * 60),
        Other("0E", "\n"),
        Other("zz", ""),
    ],
)
def test_values_that_no_line_can_carry(message: Drawn | Other) -> None:
    with pytest.raises(ValueError, match="no line can carry"):
        encode(message)


# ---- the driver


class Session:
    """A driver on a link in memory."""

    def __init__(self, options: ShoeOptions | None = None, memory: bytes | None = None) -> None:
        self.link = MemoryLink()
        self.notes = Notebook()
        driver = BeeTekShoe(options or ShoeOptions(), memory)
        self.task = asyncio.create_task(driver.run(self.link, self.notes))

    async def feed(self, data: bytes, then: float = 0.0) -> None:
        """Bytes at once, then `then` seconds of quiet."""
        self.link.feed(data)
        await asyncio.sleep(then)

    async def end(self) -> list[Event]:
        """Hang up; everything that was told."""
        self.link.hang_up()
        with pytest.raises(LinkLost, match="hung up"):
            await self.task
        assert self.link.sent == b""
        return self.cards

    @property
    def cards(self) -> list[Event]:
        return seen(self.notes.events)

    @property
    def wires(self) -> list[bytes]:
        """The bytes of each of them."""
        return [one.wire for one in self.notes.sightings if seen([one.event])]


@virtual_time
async def test_silence_settles_and_is_online_but_proves_nothing() -> None:
    session = Session()
    await asyncio.sleep(0.99)
    assert session.notes.events == []
    await asyncio.sleep(0.02)
    assert session.notes.events == [ONLINE]
    await asyncio.sleep(8 * 3600)
    await session.feed(ACE_OF_SPADES, 1)
    assert await session.end() == [ONLINE, CardDrawn("AS")]
    online, card = session.notes.sightings
    assert online.wire == b""
    assert (card.wire, card.chunk.data) == (b"*0D31D8", ACE_OF_SPADES)


@virtual_time
async def test_a_frame_ends_the_settling_at_once() -> None:
    session = Session()
    await asyncio.sleep(0.3)
    await session.feed(ACE_OF_SPADES, 0.01)
    assert session.notes.events == [ONLINE, CardDrawn("AS")]
    await asyncio.sleep(2)
    assert await session.end() == [ONLINE, CardDrawn("AS")]


@virtual_time
async def test_noise_alone_is_no_session() -> None:
    session = Session()
    await session.feed(b"\x00\xf8")
    with pytest.raises(LinkLost, match=r"noise on the line.*9600 8N1"):
        await session.task
    assert session.notes.events == []


@virtual_time
async def test_noise_before_the_first_frame_may_have_been_a_card() -> None:
    session = Session()
    await session.feed(b"D8\r\n", 0.5)
    await session.feed(ACE_OF_SPADES)
    assert await session.end() == [ONLINE, CardUnreadable(), CardDrawn("AS")]
    assert session.wires == [b"", b"D8", b"*0D31D8"]
    instants = [sighting.chunk.at for sighting in session.notes.sightings]
    assert instants == sorted(instants)


@virtual_time
async def test_a_frame_over_the_end_of_the_settling() -> None:
    session = Session()
    await asyncio.sleep(0.95)
    await session.feed(b"*0D3", 0.1)
    assert session.notes.events == [ONLINE]
    await session.feed(b"1D8\r\n", 1)
    assert await session.end() == [ONLINE, CardDrawn("AS")]


@virtual_time
async def test_a_burst_counts_once_until_a_good_frame_or_quiet() -> None:
    session = Session()
    await asyncio.sleep(2)
    for _ in range(10):
        await session.feed(b"\xff\x00", 0.1)
    assert session.cards == [ONLINE, CardUnreadable()]
    await asyncio.sleep(0.2)
    await session.feed(b"\xff\r\n*0D31D9\r\n", 0.1)
    assert session.cards[2:] == [CardUnreadable()]
    await session.feed(b"*0D0DE8\r\n*0D31D9\r\n")
    assert (await session.end())[3:] == [CardDrawn("KH"), CardUnreadable()]
    assert session.wires[-1] == b"*0D31D9"


@virtual_time
async def test_half_a_frame_is_told_without_waiting_for_the_next() -> None:
    session = Session()
    await asyncio.sleep(2)
    await session.feed(b"*0D3", 0.19)
    assert session.notes.events == [ONLINE]
    await asyncio.sleep(0.02)
    assert session.cards == [ONLINE, CardUnreadable()]
    await session.feed(b"*0D")
    assert await session.end() == [ONLINE, CardUnreadable(), CardUnreadable()]
    assert session.wires[-1] == b"*0D"


@virtual_time
async def test_more_noise_than_the_limit_is_a_lost_line() -> None:
    session = Session(ShoeOptions(noise_limit=100))
    await asyncio.sleep(2)
    await session.feed(b"\xff" * 90 + ACE_OF_SPADES, 1)  # a good frame begins the count again
    for _ in range(10):
        await session.feed(b"\xff" * 10, 1)
    assert not session.task.done()
    await session.feed(b"\xff", 1)
    with pytest.raises(LinkLost, match="noise on the line: 101 bytes"):
        await session.task
    assert session.cards == [ONLINE, CardUnreadable(), CardDrawn("AS"), *[CardUnreadable()] * 11]


@virtual_time
async def test_too_much_noise_ends_the_settling() -> None:
    session = Session(ShoeOptions(settle=30))
    await session.feed(b"\xff" * 300, 0.1)
    assert session.task.done()
    with pytest.raises(LinkLost, match="300 bytes"):
        await session.task


@virtual_time
async def test_the_echo_is_no_card() -> None:
    session = Session()
    await session.feed(LINES["AS"] + b"31\r\n", 0.5)
    await session.feed(LINES["KH"] + b"\r\n0D", 2)
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardDrawn("KH")]


@virtual_time
async def test_the_same_card_again_is_a_card_but_not_at_once() -> None:
    session = Session()
    await session.feed(ACE_OF_SPADES, 0.25)
    await session.feed(ACE_OF_SPADES, 0.25)  # another deck's
    await session.feed(ACE_OF_SPADES, 0.01)
    await session.feed(ACE_OF_SPADES, 1)
    await session.feed(LINES["KH"], 0.1)
    await session.feed(ACE_OF_SPADES, 1)
    expected = [ONLINE, *[CardDrawn("AS")] * 3, CardUnreadable(), CardDrawn("KH"), CardDrawn("AS")]
    assert await session.end() == expected


@virtual_time
async def test_repeat_off_believes_every_frame() -> None:
    session = Session(ShoeOptions(repeat=0))
    await session.feed(ACE_OF_SPADES * 2 + LINES["KH"])
    assert await session.end() == [ONLINE, CardDrawn("AS"), CardDrawn("AS"), CardDrawn("KH")]


@virtual_time
async def test_two_cards_in_one_pull_are_no_two_cards_of_a_coup() -> None:
    session = Session()
    await session.feed(LINES["KH"] + LINES["AS"], 1)
    await session.feed(LINES["9D"], 1)
    assert await session.end() == [ONLINE, CardDrawn("KH"), CardUnreadable(), CardDrawn("9D")]
    (fault,) = [event for event in session.notes.events if isinstance(event, DeviceFaulted)]
    assert fault.code == "shoe.misscan"
    assert "AS" not in fault.text  # everybody reads a fault, and the card may lie face down


@virtual_time
async def test_an_unknown_message_is_told_once_until_a_good_run() -> None:
    session = Session()
    await session.feed(encode(Other("0E", "31")))
    await session.feed(encode(Other("0F", "  ")) + ACE_OF_SPADES, 1)
    _, fault, card = session.notes.events
    assert card == CardDrawn("AS")
    assert isinstance(fault, DeviceFaulted)
    assert (fault.code, fault.severity) == ("shoe.unknown_message", "warning")
    assert "'0E'" in fault.text
    assert fault.remedy
    assert session.notes.sightings[1].wire == b"*0E31D9"
    for _ in range(GOOD_RUN - 1):
        assert session.notes.events[-1] == CardDrawn("AS")
        await session.feed(ACE_OF_SPADES, 1)
    assert session.notes.events[-1] == DeviceRecovered("shoe.unknown_message")
    await session.end()


@virtual_time
async def test_first_a_warning_then_an_error_until_a_good_run() -> None:
    session = Session()
    await asyncio.sleep(1.5)
    for _ in range(2):
        await session.feed(b"*0D31D9\r\n", 1)
        await session.feed(ACE_OF_SPADES, 1)
    for _ in range(GOOD_RUN):
        await session.feed(ACE_OF_SPADES, 1)
    await session.feed(b"*0D31D9\r\n", 1)
    await session.end()
    warning, error, over = "shoe.unreadable warning", "shoe.unreadable error", "shoe.unreadable over"
    assert troubles(session.notes.events) == [warning, over, error, over, warning]


@virtual_time
async def test_a_fault_outlives_a_restart_until_a_card_is_read() -> None:
    session = Session()
    await session.feed(ACE_OF_SPADES, 1)
    assert session.notes.memory is None  # nothing to remember
    await session.feed(b"*0D31D9\r\n", 1)
    await session.end()
    session = Session(memory=session.notes.memory)
    await asyncio.sleep(3600)
    assert session.notes.events == [ONLINE]
    await session.feed(ACE_OF_SPADES, 1)
    assert session.notes.events[1:] == [CardDrawn("AS"), DeviceRecovered("shoe.unreadable")]
    await session.feed(b"*0D31D9\r\n", 1)
    await session.end()
    assert troubles(session.notes.events)[-1] == "shoe.unreadable error"  # no good run lies between
    session = Session(memory=session.notes.memory)
    assert await session.end() == []


@virtual_time
async def test_the_cards_of_one_chunk_are_told_together() -> None:
    batches: list[int] = []

    class Counting(Notebook):
        async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
            batches.append(len(sightings))
            await super().__call__(sightings, memory)

    link = MemoryLink()
    task = asyncio.create_task(BeeTekShoe(ShoeOptions()).run(link, Counting()))
    await asyncio.sleep(2)
    link.feed(LINES["AS"] + b"\r\n" + LINES["KH"] + b"\r\n*0D")
    link.feed(b"\r\n")
    link.hang_up()
    with pytest.raises(LinkLost):
        await task
    assert batches == [1, 3, 2]  # a doubt is told together with its fault


def test_options_refuse_what_they_do_not_know() -> None:
    assert msgspec.convert({"settle": 2}, BeeTekShoe.Options) == ShoeOptions(settle=2)
    for wrong in ({"speed": 9600}, {"settle": 0}, {"noise_limit": 0}, {"repeat": 5}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, BeeTekShoe.Options)


# ---- the shoe


def said(shoe: Shoe) -> bytes:
    """Everything on the line, until nothing is."""
    data = b""
    while (now := shoe.due()) != float("inf"):
        data += shoe.wake(now)
    return data


def test_a_shoe_holds_its_decks_and_says_each_card() -> None:
    shoe = Shoe(Random(1), 8)
    for _ in range(2):
        assert shoe.left == 416
        drawn = [shoe.draw(float(n)) for n in range(416)]
        assert drawn == shoe.drawn
        assert sorted(drawn) == sorted([*LINES] * 8)
        assert said(shoe) == b"".join(LINES[card] + b"\r\n" for card in drawn)
        with pytest.raises(ValueError, match="empty"):
            shoe.draw(416.0)
        shoe.shuffle(417.0)
        assert shoe.drawn == shoe.strays == []
    assert Shoe(Random(1), 8).draw(0) == Shoe(Random(1), 8).draw(0) != Shoe(Random(2), 8).draw(0)


def test_the_line_takes_its_time() -> None:
    shoe = Shoe(Random(1), 1)
    shoe.draw(10.0)
    shoe.draw(10.0)
    assert shoe.wake(10.04) == b""
    half = shoe.wake(10.045)
    assert 3 <= len(half) <= 5
    assert shoe.due() == pytest.approx(10.04 + 18 * 10 / 9600)
    rest = shoe.wake(shoe.due())
    assert len(half + rest) == 18
    assert shoe.due() == float("inf")
    assert shoe.hear(b"anything", 11.0) == b""


def drawn_with(fault: str, seed: int, game_mode: bool = False) -> tuple[Shoe, list[Message]]:
    shoe = Shoe(Random(seed), 2, game_mode=game_mode)
    shoe.inject(fault, 0.0)
    shoe.draw(1.0)
    shoe.draw(2.0 + REBOOT_S)
    return shoe, decode(said(shoe))


@pytest.mark.parametrize("seed", range(10))
def test_faults_on_the_wire(seed: int) -> None:
    def names(messages: list[Message]) -> list[str]:
        return [message.card if isinstance(message, Drawn) else type(message).__name__ for message in messages]

    for fault in ("cut_short", "unreadable", "power_loss"):
        shoe, told = drawn_with(fault, seed)
        assert names(told) == ["Broken", shoe.drawn[1]]
        assert shoe.left == 102
    shoe, told = drawn_with("dirty_window", seed)
    assert names(told) == ["Broken", "Broken"]
    shoe.repair(9.0)
    shoe.draw(9.0)
    assert names(decode(said(shoe))) == shoe.drawn[2:]
    shoe, told = drawn_with("unknown_message", seed)
    assert names(told) == ["Other", *shoe.drawn]
    shoe, told = drawn_with("missing_card", seed)
    assert names(told) == shoe.drawn[1:]
    shoe, told = drawn_with("repeat_frame", seed)
    assert names(told) == [shoe.drawn[0], *shoe.drawn]
    shoe, told = drawn_with("double_draw", seed)
    assert names(told) == [shoe.drawn[0], *shoe.strays, shoe.drawn[1]]
    assert shoe.strays[0] != shoe.drawn[0]
    assert shoe.left == 101
    shoe, told = drawn_with("double_draw", seed, game_mode=True)
    first, stray, second = shoe.drawn[0], shoe.strays[0], shoe.drawn[1]
    assert names(told) == [first, "Echo", stray, "Echo", second, "Echo"]


def test_a_loss_of_power_ends() -> None:
    shoe = Shoe(Random(1), 1)
    shoe.inject("power_loss", 0.0)
    shoe.draw(0.0)
    assert len(said(shoe)) < FRAME_LENGTH
    shoe.draw(REBOOT_S - 0.1)
    assert said(shoe) == b""
    card = shoe.draw(REBOOT_S)
    assert said(shoe) == encode(Drawn(card))
    assert len(shoe.drawn) == 3


def test_a_hand_that_finds_the_shoe_empty_shuffles() -> None:
    shoe = Shoe(Random(1), 1)
    acts = shoe.acts()
    assert {act for act, _ in shoe.routine} <= set(acts)
    for n in range(53):
        acts["draw"](float(n))
    assert (shoe.left, len(shoe.drawn)) == (51, 1)


def test_a_fault_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="no fault 'fire', only unreadable"):
        Shoe(Random(1), 1).inject("fire", 0.0)


# ---- the mirror: simulator, cable, driver, events


def whole(data: bytes) -> list[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def lossy(rng: Random, loss: float) -> Callable[[bytes], list[bytes]]:
    """A cable that loses bytes and turns bits."""

    def carry(data: bytes) -> list[bytes]:
        kept = bytes(byte ^ (1 << rng.randrange(8)) if rng.random() < loss else byte for byte in data)
        left = bytes(byte for byte in kept if rng.random() >= loss)
        return [left] if left else []

    return carry


async def mirror(
    shoe: Shoe,
    cable: Callable[[bytes], list[bytes]],
    cards: int,
    *,
    faults: dict[int, str] | None = None,
    line: Line | None = None,
    line_faults: dict[int, str] | None = None,
    repaired: int = -1,
) -> tuple[list[list[Event]], list[Event]]:
    """Draw `cards`, one a second, with faults of the shoe and of the line. What was told after each, and everything."""
    session = Session(ShoeOptions(noise_limit=65536))
    told: list[list[Event]] = []
    loop = asyncio.get_running_loop()
    line = line or Line(Random(0))
    await asyncio.sleep(1.5)
    before = len(session.notes.events)
    for n in range(cards):
        if n in (faults or {}):
            shoe.inject((faults or {})[n], loop.time())
        if n in (line_faults or {}):
            line.inject((line_faults or {})[n], loop.time())
        if n == repaired:
            shoe.repair(loop.time())
        shoe.draw(loop.time())
        end = loop.time() + 1
        while (due := min(shoe.due(), line.due())) <= end:
            await asyncio.sleep(due - loop.time())
            if line.plug_at <= loop.time():
                break
            now = loop.time() + 1e-9
            for piece in cable(line.to_host(shoe.wake(now), now)):
                session.link.feed(piece)
        await asyncio.sleep(end - loop.time())
        told.append(session.notes.events[before:])
        before = len(session.notes.events)
    await session.end()
    return told, session.notes.events


@pytest.mark.parametrize("game_mode", [False, True])
@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@virtual_time
async def test_mirror_over_a_good_cable(cable: Callable[[bytes], list[bytes]], game_mode: bool) -> None:
    shoe = Shoe(Random(7), 8, game_mode=game_mode)
    _, events = await mirror(shoe, cable, 416)
    assert events == [ONLINE, *(CardDrawn(card) for card in shoe.drawn)]


@pytest.mark.parametrize("game_mode", [False, True])
@pytest.mark.parametrize("seed", range(5))
@virtual_time
async def test_mirror_over_a_lossy_cable_never_tells_a_wrong_card(seed: int, game_mode: bool) -> None:
    shoe = Shoe(Random(seed), 8, game_mode=game_mode)
    told, _ = await mirror(shoe, lossy(Random(seed), 0.01), 400)
    doubtful = 0
    for card, all_events in zip(shoe.drawn, told, strict=True):
        events = seen(all_events)
        assert events, "a card was swallowed"
        assert set(events) <= {CardDrawn(card), CardUnreadable()}
        assert events.count(CardDrawn(card)) <= 1
        doubtful += CardUnreadable() in events
    assert 0 < doubtful < 200


@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@pytest.mark.parametrize("fault", Shoe.faults)
@virtual_time
async def test_mirror_of_every_fault(fault: str, cable: Callable[[bytes], list[bytes]]) -> None:
    ailment = Shoe.faults[fault]
    shoe = Shoe(Random(3), 2)
    told, events = await mirror(shoe, cable, 40, faults={2: fault}, repaired=7)
    codes = {event.code for event in events if isinstance(event, DeviceFaulted)}
    types = {type_of(event) for event in seen(events)} - {"device.online", "card.drawn"}
    assert codes | types == set(ailment.told)
    over = [event.code for event in events if isinstance(event, DeviceRecovered)]
    assert set(over) == codes  # all of it is over at the end
    assert [CardDrawn(card) for card in shoe.drawn[8:]] == [*seen([one for card in told[8:] for one in card])]
    believed = [event for event in events if isinstance(event, CardDrawn)]
    lost = {"missing_card": 1, "repeat_frame": 0, "double_draw": 0, "unknown_message": 0, "dirty_window": 5}
    blind = 2 if fault == "power_loss" else 0
    assert len(believed) == 40 - blind - lost.get(fault, 1)
    assert seen(told[1]) == [CardDrawn(shoe.drawn[1])]


@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@pytest.mark.parametrize("fault", sorted(set(Shoe.line) - {"unplugged"}))
@virtual_time
async def test_mirror_of_every_fault_of_the_line(fault: str, cable: Callable[[bytes], list[bytes]]) -> None:
    """What is not told costs no card where none is drawn meanwhile; where one is, it is never a wrong one."""
    ailment = Shoe.line[fault]
    shoe = Shoe(Random(3), 2)
    told, events = await mirror(shoe, cable, 40, line_faults={2: fault})
    codes = {event.code for event in events if isinstance(event, DeviceFaulted)}
    types = {type_of(event) for event in seen(events)} - {"device.online", "card.drawn"}
    if fault == "wrong_baud":
        assert types == {"card.unreadable"}
    else:
        assert codes | types == set(ailment.told)
    assert {event.code for event in events if isinstance(event, DeviceRecovered)} == codes
    for card, news in zip(shoe.drawn, told, strict=True):
        assert set(seen(news)) <= {CardDrawn(card), CardUnreadable()}
        assert seen(news) or fault == "silence"
    assert [news[-1] for news in told[13:]] == [CardDrawn(card) for card in shoe.drawn[13:]]


@virtual_time
async def test_mirror_with_garbage_on_the_line() -> None:
    shoe = Shoe(Random(4), 8)
    told, _ = await mirror(shoe, whole, 200, line_faults=dict.fromkeys(range(0, 200, 2), "garbage"))
    for n, (card, events) in enumerate(zip(shoe.drawn, map(seen, told), strict=True)):
        assert events[-1] == CardDrawn(card)
        assert set(events[:-1]) <= {CardUnreadable()}
        assert len(events) <= 2
        assert n % 2 == 0 or len(events) == 1


def test_every_fault_of_a_line_is_answered() -> None:
    assert set(Shoe.line) == set(Line.FAULTS)
    told = {code for ailment in (*TextShoe.faults.values(), *Shoe.line.values()) for code in ailment.told}
    assert {fault.code for fault in BeeTekShoe.faults} == {code for code in told if code.startswith("shoe.")}
