"""The text wire of the Bee-Tek shoe: any chunking, any noise, and the mirror from simulator to events."""

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from random import Random

import msgspec
import pytest
from helpers import at_length, seen, virtual_time
from hypothesis import given, settings, strategies as st

from drivers.bee_tek_shoe import ShoeOptions
from protocols import bee_tek_shoe
from protocols.bee_tek_shoe import Broken, Drawn, Garbage, Other
from protocols.bee_tek_text import (
    GAME,
    LONGEST_MESSAGE,
    MANUAL_BURN,
    Alarm,
    Decoder,
    EitherDecoder,
    Message,
    NotRead,
    Warned,
    encode,
)
from protocols.contract.events import (
    CardDrawn,
    CardUnreadable,
    DeviceFaulted,
    DeviceOnline,
    DeviceRecovered,
    type_of,
)
from simulators.devices.bee_tek_shoe import Shoe, TextShoe
from simulators.devices.line import Line
from tests.drivers.test_bee_tek_shoe import Session, byte_by_byte, mirror, whole

CARDS = [rank + suit for rank, suit in product("23456789TJQKA", "CDHS")]
DRAWN = st.builds(Drawn, st.sampled_from(CARDS), st.just(b""), st.sampled_from([GAME, MANUAL_BURN]))
MESSAGES = st.one_of(
    DRAWN,
    st.builds(NotRead, st.sampled_from([GAME, MANUAL_BURN])),
    st.builds(Alarm, st.just("GameAlarm"), st.sampled_from(["E3", "E9"]), st.sampled_from(["", "Card Not Read"])),
    st.builds(Warned, st.sampled_from(["0x01", "0x2f"])),
)


def decode(data: bytes, cuts: list[int] | None = None) -> list[Message]:
    """All messages, with `data` split at `cuts`; garbage in pieces is joined."""
    decoder = Decoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    messages = [message for a, b in pairwise(edges) for message in decoder.feed(data[a:b])] + decoder.quiet()
    joined: list[Message] = []
    for message in messages:
        if isinstance(message, Garbage) and joined and isinstance(joined[-1], Garbage):
            joined[-1] = Garbage(joined[-1].raw + message.raw)
        else:
            joined.append(message)
    return joined


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"[Game]<Card:1S>", [Broken(b"[Game]<Card:1S>")]),
        (b"[Game]<Card:S4>", [Broken(b"[Game]<Card:S4>")]),
        (b"[Game]<Card:4S", [Broken(b"[Game]<Card:4S")]),
        (b"[Game<Card:4S>", [Broken(b"[Game"), Broken(b"<Card:4S>")]),
        (b"Game]<Card:4S>", [Garbage(b"Game]"), Broken(b"<Card:4S>")]),
        (b"[Gbme]<Card:4S>", [Broken(b"[Gbme]<Card:4S>")]),
        (b"[Gbme]<Game>", [Broken(b"[Gbme]<Game>")]),
        (b"[Game]<Gbme>", [Broken(b"[Game]<Gbme>")]),
        (b"[GameAlarm]<Card:4S>", [Broken(b"[GameAlarm]<Card:4S>")]),
        (b"[Game]\r\n<Card:4S>", [Broken(b"[Game]"), Broken(b"<Card:4S>")]),
        (b"[Shuffle Check]<Done>", [Other("Shuffle Check", "Done", b"[Shuffle Check]<Done>")]),
        (b"<W0x01><W0xzz>", [Warned("0x01", b"<W0x01>"), Broken(b"<W0xzz>")]),
        (b"\xff\x00", [Garbage(b"\xff\x00")]),
        (b" \r\n ", []),
    ],
)
def test_damaged_and_unknown_messages(data: bytes, expected: list[Message]) -> None:
    assert decode(data) == expected
    assert decode(data, [*range(len(data))]) == expected


@given(st.lists(MESSAGES, max_size=10), st.lists(st.integers(0, 2000), max_size=30), st.sampled_from([b"", b"\n"]))
@settings(max_examples=at_length(40, 750))
def test_any_chunking_gives_the_same_messages(
    sent: list[Drawn | NotRead | Alarm | Warned], cuts: list[int], line_end: bytes
) -> None:
    data = b"".join(encode(message, line_end=line_end) for message in sent)
    messages = decode(data, cuts)
    assert [msgspec.structs.replace(one, raw=b"") for one in messages] == sent
    decoder = EitherDecoder()
    either = [message for byte in data for message in decoder.feed(bytes([byte]))]
    assert either == messages
    assert decoder.wire == ("text" if sent else "")


NOISE = st.binary(max_size=30) | st.text("[]<>Game Card:4S", max_size=30).map(str.encode) | st.binary(max_size=200)


@given(st.lists(NOISE | DRAWN.map(encode), max_size=12), st.lists(st.integers(0, 3000), max_size=30))
@settings(max_examples=at_length(75, 1_500))
def test_any_noise_is_reported_whole_and_never_held_for_long(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    messages = decode(data)
    assert decode(data, cuts) == messages
    told = b"".join(message.raw for message in messages)
    assert told.translate(None, b" \r\n") == data.translate(None, b" \r\n")
    decoder = Decoder()
    for start in range(0, len(data), 7):
        decoder.feed(data[start : start + 7])
        assert len(decoder._held) < LONGEST_MESSAGE


def damaged(line: bytes) -> Iterator[bytes]:
    """`line` with one byte lost, doubled or changed."""
    for at in range(len(line)):
        yield line[:at] + line[at + 1 :]
        yield line[:at] + line[at : at + 1] + line[at:]
        for byte in {*b"[]<> 0A\r\n\x00\xff", *(line[at] ^ 1 << bit for bit in range(8))}:
            yield line[:at] + bytes([byte]) + line[at + 1 :]


@pytest.mark.parametrize("operation", [GAME, MANUAL_BURN])
def test_one_damaged_byte_is_never_swallowed(operation: str) -> None:
    """Only a rank or a suit that became another one is another card: this wire has no checksum."""
    for card in CARDS:
        line = encode(Drawn(card, b"", operation), line_end=b"").strip()
        for bad in damaged(line):
            messages = decode(bad + b"\r\n")
            assert any(isinstance(one, Drawn | NotRead | Broken | Garbage) for one in messages), bad
            assert not any(isinstance(one, Other | Alarm | Warned) for one in messages), bad
            differs = [one.card for one in messages if isinstance(one, Drawn) and one.card != card]
            assert all(bad[:-3].lower() == line[:-3].lower() for _ in differs), bad


@pytest.mark.parametrize(
    "message",
    [Drawn("1S", b"", GAME), Drawn("4S"), NotRead("x]"), Warned("1"), Other(GAME, "a"), Other("a" * 40, "b" * 53)],
)
def test_values_that_no_line_can_carry(message: Drawn | NotRead | Warned | Other) -> None:
    with pytest.raises(ValueError, match="no line can carry"):
        encode(message)
    longest = Other("a" * 40, "b" * 52)
    assert decode(encode(longest)) == [Other(longest.kind, longest.text, encode(longest).strip())]


# ---- which wire


@pytest.mark.parametrize(("shoe", "wire"), [(Shoe, "checksum"), (TextShoe, "text")])
@pytest.mark.parametrize("noise", [b"", b"\xff\x00", b"*0D", b" [Ga"])
def test_the_first_whole_message_says_which_wire_it_is(shoe: type[Shoe], wire: str, noise: bytes) -> None:
    one = shoe(Random(1), 1)
    card = one.draw(0.0)
    data = noise + b"\r\n" + one.wake(9.0)
    decoder = EitherDecoder()
    messages = [message for byte in data for message in decoder.feed(bytes([byte]))]
    assert decoder.wire == wire
    assert [message.card for message in messages if isinstance(message, Drawn)] == [card]
    assert any(isinstance(message, Broken | Garbage) for message in messages) == bool(noise)


def test_a_shoe_that_is_switched_over_is_read_on() -> None:
    decoder = EitherDecoder()
    for line in (bee_tek_shoe.encode(Drawn("AS")), encode(Drawn("AS", b"", GAME))) * 2:
        assert any(isinstance(message, Drawn) for message in decoder.feed(line))


# ---- the driver


@virtual_time
async def test_the_wire_that_was_met_is_reported() -> None:
    session = Session()
    await session.feed(encode(Drawn("4S", b"", MANUAL_BURN)), 1)
    online, card = await session.end()
    assert online == DeviceOnline(False, "USPC Bee-Tek, text wire")
    assert card == CardDrawn("4S", operation=MANUAL_BURN)
    again = Session(memory=session.notes.memory)
    await again.feed(b"", 2)
    assert await again.end() == [online]


@pytest.mark.parametrize("second_s", [0.0, 0.5])
@virtual_time
async def test_a_failed_read_and_its_alarm_are_one_card(second_s: float) -> None:
    failed, alarm = encode(NotRead(GAME)), encode(Alarm("GameAlarm", "E3", "Card Not Read"))
    for lines in ((failed, alarm), (alarm, failed)):
        session = Session()
        await session.feed(b"", 2)
        for line in lines:
            await session.feed(line, second_s)
        await session.feed(b"", 3)
        assert (await session.end())[1:] == [CardUnreadable()]


@virtual_time
@pytest.mark.parametrize("repeat", [0.0, 0.03])
async def test_two_cards_in_one_chunk_are_in_doubt_only_where_repeat_says_so(repeat: float) -> None:
    session = Session(ShoeOptions(repeat=repeat))
    await session.feed(encode(Drawn("KH", b"", GAME)) + encode(Drawn("9D", b"", GAME)), 1)
    second = CardUnreadable() if repeat else CardDrawn("9D", operation=GAME)
    assert (await session.end())[1:] == [CardDrawn("KH", operation=GAME), second]


@virtual_time
async def test_two_failed_reads_are_two_cards() -> None:
    session = Session()
    await session.feed(encode(NotRead(GAME)), 0.3)
    await session.feed(encode(NotRead(GAME)), 2.0)
    await session.feed(encode(Alarm("GameAlarm", "E3", "Card Not Read")), 2.0)
    assert (await session.end())[1:] == [CardUnreadable()] * 3


@virtual_time
async def test_alarms_and_warnings_are_faults_until_the_next_card() -> None:
    session = Session()
    await session.feed(encode(Drawn("4S", b"", GAME)), 1)
    await session.feed(encode(Alarm("GameAlarm", "E9", "Door Open")) + encode(Warned("0x01")), 1)
    faults = [one for one in session.notes.events if isinstance(one, DeviceFaulted)]
    assert [one.code for one in faults] == ["shoe.alarm", "shoe.warning"]
    assert "(E9 Door Open)" in faults[0].text
    assert "(0x01)" in faults[1].text
    await session.feed(encode(Drawn("4S", b"", GAME)), 1)  # the same card of another deck
    assert session.notes.events[-3:] == [
        CardDrawn("4S", operation=GAME),
        DeviceRecovered("shoe.alarm"),
        DeviceRecovered("shoe.warning"),
    ]
    await session.end()


# ---- the mirror


@pytest.mark.parametrize("operation", [GAME, MANUAL_BURN])
@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@virtual_time
async def test_mirror_over_a_good_cable(cable: Callable[[bytes], list[bytes]], operation: str) -> None:
    shoe = TextShoe(Random(7), 8, operation=operation, ten="10")
    _, events = await mirror(shoe, cable, 416)
    assert seen(events)[1:] == [CardDrawn(card, operation=operation) for card in shoe.drawn]


@pytest.mark.parametrize("cable", [whole, byte_by_byte])
@pytest.mark.parametrize("operation", [GAME, MANUAL_BURN])
@pytest.mark.parametrize("fault", TextShoe.faults)
@virtual_time
async def test_mirror_of_every_fault(fault: str, operation: str, cable: Callable[[bytes], list[bytes]]) -> None:
    ailment = TextShoe.faults[fault]
    shoe = TextShoe(Random(3), 2, operation=operation)
    told, events = await mirror(shoe, cable, 40, faults={2: fault}, repaired=7)
    codes = {event.code for event in events if isinstance(event, DeviceFaulted)}
    types = {type_of(event) for event in seen(events)} - {"device.online", "card.drawn"}
    assert codes | types == set(ailment.told)
    assert {event.code for event in events if isinstance(event, DeviceRecovered)} == codes
    for card, news in zip(shoe.drawn, told, strict=True):
        assert set(seen(news)) <= {CardDrawn(card, operation=operation), CardUnreadable()}
    assert [one for news in told[8:] for one in seen(news)] == [
        CardDrawn(card, operation=operation) for card in shoe.drawn[8:]
    ]


@pytest.mark.parametrize("fault", sorted(set(Shoe.line) - {"unplugged"}))
@virtual_time
async def test_mirror_of_every_fault_of_the_line(fault: str) -> None:
    shoe = TextShoe(Random(3), 2)
    told, _ = await mirror(shoe, whole, 40, line=Line(Random(0)), line_faults={2: fault})
    for card, news in zip(shoe.drawn, told, strict=True):
        assert set(seen(news)) <= {CardDrawn(card, operation=GAME), CardUnreadable()}
        assert seen(news) or fault == "silence"
    assert [news[-1] for news in told[13:]] == [CardDrawn(card, operation=GAME) for card in shoe.drawn[13:]]
