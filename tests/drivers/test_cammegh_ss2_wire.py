"""The bytes of the Cammegh SS2: exact lines both ways, any chunking, any noise."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, strategies as st

from protocols.cammegh_ss2 import MAX_LINE, Decoder, Flag, Garbage, Message, Number, Packet, State, Status, encode
from tests.drivers.test_cammegh_ss2 import ALL_POCKETS

# ---- the wire

# Every message of the integrator information, as both ends write it.
EXACT: list[tuple[bytes, Message]] = [
    (b"*X;1;011;34;0;057;0", Status(State.STARTED, 11, "34", Flag(0), 57, True)),
    (b"*X;2;001;  ;0;000;1", Status(State.PLACE_BETS, 1, "", Flag(0), 0, False)),
    (b"*X;3;256; 7;8;150;1", Status(State.BALL_IN_RIM, 256, "7", Flag.LAUNCH_FAILED, 150, False)),
    (b"*X;4;099;00;1;150;0", Status(State.NO_MORE_BETS, 99, "00", Flag.BALL_NOT_DETECTED, 150, True)),
    (b"*X;5;100;000;2;999;0", Status(State.WINNING_NUMBER, 100, "000", Flag.BALL_WITH_ROTOR, 999, True)),
    (b"*X;6;017;0000;4;000;0", Status(State.TABLE_CLOSED, 17, "0000", Flag.SENSOR_OR_MOTOR, 0, True)),
    (b"*X;7;000; 0;F;000;0", Status(State.NO_BALL, 0, "0", Flag(15), 0, True)),
    (b"*X;3;012;36;A;157;0", Status(State.BALL_IN_RIM, 12, "36", Flag.BALL_WITH_ROTOR | Flag.LAUNCH_FAILED, 157, True)),
    (b" 7", Number("7")),
    (b" 0", Number("0")),
    (b"27", Number("27")),
    (b"00", Number("00")),
    (b"000", Number("000")),
    (b"0000", Number("0000")),
    (b"*X", Packet("X", "")),
    (b"*K", Packet("K", "")),
    (b"*K CAM", Packet("K", "CAM")),
    (b"*S 2.52", Packet("S", "2.52")),
    (b"*V Cammegh SS2", Packet("V", "Cammegh SS2")),
    (b"*P 1", Packet("P", "1")),
    (b"*P OK", Packet("P", "OK")),
    (b"*P NO", Packet("P", "NO")),
    (b"*u 3", Packet("u", "3")),
    (b"*u OK", Packet("u", "OK")),
    (b"*R", Packet("R", "")),
    (b"*R OK", Packet("R", "OK")),
    (b"*o", Packet("o", "")),
    (b"*o 1157", Packet("o", "1157")),
    (b"*o BUSY", Packet("o", "BUSY")),
    (b"*F BUSY", Packet("F", "BUSY")),
    (b"*F 21", Packet("F", "21")),
    (b"*T h 60", Packet("T", "h 60")),
    (b"*O 2 1 60 1157", Packet("O", "2 1 60 1157")),
    (b"*w NO", Packet("w", "NO")),
    (b"*Y;3;250", Packet("Y", "3;250")),
    (b"*Y;6;999;030", Packet("Y", "6;999;030")),
]

# What some firmware writes otherwise, and what no wheel writes.
ONE_WAY: list[tuple[bytes, Message]] = [
    (b"*X:5;011;27;0;157;0", Status(State.WINNING_NUMBER, 11, "27", Flag(0), 157, True)),
    (b"*X:4;011; 7;a;157;1", Status(State.NO_MORE_BETS, 11, "7", Flag(10), 157, False)),
    (b"*P1", Packet("P", "1")),
]

BROKEN = [
    *(b"*X;0;011;34;0;057;0", b"*X;8;011;34;0;057;0", b"*X;1;11;34;0;057;0", b"*X;1;257;34;0;057;0"),
    *(b"*X;1;011;37;0;057;0", b"*X;1;011;07;0;057;0", b"*X;1;011;7 ;0;057;0", b"*X;1;011;34;G;057;0"),
    *(b"*X;1;011;34;0;57;0", b"*X;1;011;34;0;057;2", b"*X;1;011;34;0;057;", b"*X;1;011;34;0;057;0;", b"*X 1", b"*X;"),
    *(b"37", b"07", b"7", b"7 ", b"  ", b"00000", b"270", b"abc", b"*", b"* P", b"*1", b"*P \xff", b"\x00", b"2\x007"),
]

STATUSES = st.builds(
    Status,
    st.sampled_from(State),
    st.integers(0, 256),
    st.sampled_from(["", *ALL_POCKETS]),
    st.integers(0, 15).map(Flag),
    st.integers(0, 999),
    st.booleans(),
)

NUMBERS = st.sampled_from(ALL_POCKETS).map(Number)

PACKETS = st.one_of(
    st.builds(
        Packet,
        st.sampled_from("KSVPuRoFwWMTOYZab"),
        st.from_regex(r"[!-)+-9<-~]{1,20}", fullmatch=True),
    ),
    st.sampled_from([Packet("X", ""), Packet("R", "")]),
)


def bare(message: Message) -> Message:
    """Without the bytes it was read from."""
    return message if isinstance(message, Garbage) else msgspec.structs.replace(message, raw=b"")


def decode(data: bytes, cuts: Sequence[int] = ()) -> list[Message]:
    """All messages, with `data` split at `cuts`."""
    decoder = Decoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [message for a, b in pairwise(edges) for message in decoder.feed(data[a:b])]


@pytest.mark.parametrize(("line", "message"), EXACT, ids=lambda one: repr(one) if isinstance(one, bytes) else "")
@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"], ids=["crlf", "cr", "lf"])
def test_exact_bytes_both_ways(line: bytes, message: Message, end: bytes) -> None:
    (read,) = decode(line + end)
    assert not isinstance(message, Garbage)
    assert read == msgspec.structs.replace(message, raw=line)
    assert encode(message) == line + b"\r\n"


@pytest.mark.parametrize(("line", "message"), ONE_WAY, ids=repr)
def test_what_some_firmware_writes(line: bytes, message: Message) -> None:
    assert [bare(one) for one in decode(line + b"\r\n")] == [message]


@pytest.mark.parametrize("line", BROKEN, ids=repr)
def test_what_no_wheel_writes_is_garbage(line: bytes) -> None:
    assert decode(line + b"\r\n") == [Garbage(line)]


@pytest.mark.parametrize("number", [b" 7", b"27", b"00", b"000", b"0000"])
@pytest.mark.parametrize("end", [b"", b"\r", b"\n", b"\r\n"])
def test_the_bare_number_with_and_without_an_end(number: bytes, end: bytes) -> None:
    line = b"*X;5;011;27;0;157;0"
    first, second = decode(number + end + line + b"\r\n")
    assert first == Number(number.decode().strip(), number)
    assert isinstance(second, Status)


@pytest.mark.parametrize(
    "message",
    [
        Status(State.STARTED, 257, "7", Flag(0), 0, True),
        Status(State.STARTED, -1, "7", Flag(0), 0, True),
        Status(State.STARTED, 1, "37", Flag(0), 0, True),
        Status(State.STARTED, 1, "7", Flag(0), 1000, True),
        Status(State.STARTED, 1, "7", Flag(16), 0, True),
        Number(""),
        Number("99"),
        Packet("P", "1\r\n*R"),
        Packet("P", "a*b"),
        Packet("P", "\N{SNOWMAN}"),
        Packet("P", "x" * MAX_LINE),
        Packet("PP", ""),
        Packet("X", "1"),
    ],
    ids=repr,
)
def test_a_value_that_no_line_carries_is_refused(message: Status | Number | Packet) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its text is for people
        encode(message)


@given(
    st.lists(st.one_of(STATUSES, NUMBERS, PACKETS), max_size=8),
    st.lists(st.integers(0, 1000), max_size=12),
)
def test_any_chunking_gives_the_same(messages: list[Status | Number | Packet], cuts: list[int]) -> None:
    data = b"".join(map(encode, messages))
    assert [bare(one) for one in decode(data, cuts)] == messages


@given(st.lists(st.one_of(STATUSES, PACKETS), max_size=6), st.data())
def test_whole_lines_between_any_noise_are_recovered(messages: list[Status | Packet], data: st.DataObject) -> None:
    noise = st.binary(max_size=2 * MAX_LINE)
    lines = b"".join(data.draw(noise) + encode(message) for message in messages) + data.draw(noise)
    told = iter(bare(one) for one in decode(lines, data.draw(st.lists(st.integers(0, 2000), max_size=5))))
    for message in messages:
        assert message in told


@given(st.lists(st.binary(max_size=400), max_size=8))
def test_any_bytes_never_raise_and_the_buffer_is_bounded(chunks: list[bytes]) -> None:
    decoder = Decoder()
    told: list[Message] = []
    for chunk in chunks:
        told += decoder.feed(chunk)
        assert len(decoder._buffer) <= MAX_LINE
    told += decoder.feed(b"\n")
    ends = b"".join(chunks).translate(None, b"\r\n")
    assert b"".join(message.raw for message in told) == ends


def test_the_end_of_a_line_that_was_too_long_is_no_line() -> None:
    assert decode(b"x" * (MAX_LINE + 1) + b"27\r\n") == [Garbage(b"x" * (MAX_LINE + 1)), Garbage(b"27")]
    assert decode(b"x" * (MAX_LINE + 1) + b"*P OK\r\n")[1:] == [Packet("P", "OK", b"*P OK")]
