"""The bytes of the Alpha protocol: exact frames both ways, any chunking, any noise."""

from itertools import pairwise

import msgspec
import pytest
from helpers import at_length
from hypothesis import given, settings, strategies as st

from protocols import alpha_sign as wire
from protocols.alpha_sign import (
    MAX_FRAME,
    Ack,
    Beep,
    Broken,
    ClearErrors,
    Command,
    ConfigureMemory,
    Decoder,
    Errors,
    File,
    Frame,
    Garbage,
    Message,
    Nak,
    Other,
    ReadErrors,
    ReadMemory,
    ReadRunSequence,
    ReadString,
    ReadText,
    RunSequence,
    Segment,
    SerialErrors,
    SoftReset,
    WriteString,
    WriteText,
    encode,
)
from tests.drivers.test_alpha_sign import HEAD, nak

# Recomputed from the public description: the commands of a frame and its bytes.
VECTORS: dict[str, tuple[tuple[Command, ...], bytes]] = {
    "string": (
        (WriteString("1", "$12,345.67"),),
        bytes.fromhex("000000000001 5A3030 02 4731 2431322C3334352E3637 03 30323637 04"),
    ),
    "text": (
        (WriteText("A", (Segment("\x101", " ", "b"),)),),
        bytes.fromhex("000000000001 5A3030 02 4141 1B20621031 03 30313635 04"),
    ),
    "memory": (
        (ConfigureMemory((File("A", "A", 256, False, "FF00"), File("1", "B", 32, True, "0000"))),),
        HEAD + b"\x02E$AAU0100FF001BL00200000\x030533\x04",
    ),
    "sequence": ((RunSequence("A"),), HEAD + b"\x02E.TUA\x030162\x04"),
    "reset": ((SoftReset(),), HEAD + b"\x02E,\x030076\x04"),
    "cancel": ((WriteText("0"),), HEAD + b"\x02A0\x030076\x04"),
}


def checksum(group: bytes) -> bytes:
    """By hand: everything from STX through ETX."""
    total = 0
    for byte in group:
        total += byte
    return f"{total % 65536:04X}".encode()


def nested(*bodies: bytes) -> bytes:
    return HEAD + b"".join(b"\x02" + body + b"\x03" + checksum(b"\x02" + body + b"\x03") for body in bodies) + b"\x04"


PLAIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)

LABEL = st.characters(min_codepoint=0x20, max_codepoint=0x7E)

SEGMENT = st.builds(Segment, PLAIN, st.sampled_from(wire.POSITIONS), st.sampled_from(["a", "b", "c", "n0", "nX", "nZ"]))

COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(WriteString, LABEL, PLAIN),
    st.builds(WriteText, LABEL, st.lists(SEGMENT, max_size=3).map(tuple)),
    st.builds(ReadString, LABEL),
    st.builds(ReadText, LABEL),
    st.builds(
        ConfigureMemory,
        st.lists(
            st.builds(
                File, LABEL, st.sampled_from("ABD"), st.integers(0, 65535), st.booleans(), st.sampled_from(["FF00"])
            ),
            max_size=4,
        ).map(tuple),
    ),
    st.builds(RunSequence, PLAIN, st.sampled_from("TSD"), st.booleans()),
    st.builds(Beep, st.integers(0, 255), st.integers(1, 15), st.integers(0, 15)),
    st.builds(SerialErrors, st.integers(0, 63).map(Errors)),
    st.sampled_from(
        [SoftReset(), ReadMemory(), ReadRunSequence(), ReadErrors(), ClearErrors(), Other("I", "1x"), Other("E", "/0")]
    ),
)

FRAMES = st.builds(
    Frame,
    st.lists(COMMANDS, min_size=1, max_size=3).map(tuple),
    st.sampled_from("Z!^0"),
    st.sampled_from(["00", "01", "FF", "?1"]),
    st.integers(1, 9),
)


def decode(data: bytes, cuts: list[int] | None = None) -> tuple[list[Message], bytes]:
    """All messages, with `data` split at `cuts`, and what is held; garbage in pieces put together again."""
    decoder = Decoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    joined: list[Message] = []
    for a, b in pairwise(edges):
        for message in decoder.feed(data[a:b]):
            if isinstance(message, Garbage) and joined and isinstance(before := joined[-1], Garbage):
                joined[-1] = Garbage(before.raw + message.raw)
            else:
                joined.append(message)
        assert decoder.waiting < MAX_FRAME
    return joined, decoder._held


# ---- the wire


@pytest.mark.parametrize("name", VECTORS)
def test_exact_frames_both_ways(name: str) -> None:
    commands, data = VECTORS[name]
    assert encode(Frame(commands)) == data
    (told,) = Decoder(unchecked=False).feed(data)
    assert told == Frame(commands, raw=data[5:])
    assert decode(data, [*range(len(data))]) == ([told], b"")


def test_nested_strings_as_a_public_program_sends_them() -> None:
    texts = ["11045.28 ", "2.41 ", "-0.02 ", "1.3 ", "5 ", "6 "]
    commands = tuple(WriteString(str(n), text) for n, text in enumerate(texts))
    data = nested(*(f"G{n}{text}".encode() for n, text in enumerate(texts)))
    assert encode(Frame(commands)) == data
    assert data.startswith(HEAD + b"\x02G011045.28 \x03")
    assert Decoder().feed(data) == [Frame(commands, raw=data[5:])]


@pytest.mark.parametrize(
    ("data", "commands", "checked"),
    [
        (HEAD + b"\x02G1x\x04", (WriteString("1", "x"),), False),  # no ETX: one command alone may
        (HEAD + b"\x02G1x\x03\x04", (WriteString("1", "x"),), False),
        (HEAD + b"\x02G1x\x03\x02H1\x03\x04", (WriteString("1", "x"), ReadString("1")), False),
        (HEAD + b"\x02H1\x03" + checksum(b"\x02H1\x03") + b"\x04", (ReadString("1"),), True),
        (HEAD + b"\x02B0\x04", (ReadText("0"),), False),
        (HEAD + b"\x02F$\x04", (ReadMemory(),), False),
        (HEAD + b"\x02F.\x04", (ReadRunSequence(),), False),
        (HEAD + b"\x02F*\x04", (ReadErrors(),), False),
        (HEAD + b"\x02E4\x04", (ClearErrors(),), False),
        (HEAD + b"\x02E*@\x04", (SerialErrors(Errors(0)),), False),
        (HEAD + b"\x02E*h\x04", (SerialErrors(Errors.ILLEGAL | Errors.OVERFLOW),), False),
        (HEAD + b"\x02E*0\x04", (Other("E", "*0"),), False),  # bit 6 is always set
        (HEAD + b"\x02E$\x04", (ConfigureMemory(),), False),
        (HEAD + b"\x02E(24001\x04", (Other("E", "(24001"),), False),  # no digit may be 0 where it is a duration
        (HEAD + b"\x02E(24011\x04", (Beep(0x40, 1, 1),), False),
        (HEAD + b"\x02E 1530\x04", (Other("E", " 1530"),), False),
        (HEAD + b"\x02\xffG1x\x04", (WriteString("1", "x"),), False),  # the faked pause
        (HEAD + b"\x02A0\x1b0nXWIN\x04", (WriteText("0", (Segment("WIN", "0", "nX"),)),), False),
        (HEAD + b"\x02AAx\x1b bY\x04", (WriteText("A", (Segment("x", "", ""), Segment("Y"))),), False),
        (HEAD + b"\x02AA\x1b!bY\x04", (Other("A", "A\x1b!bY"),), False),  # no such position
        (HEAD + b"\x02AA\x1b n7\x1c1RED\x04", (WriteText("A", (Segment("\x1c1RED", " ", "n7"),)),), False),
        (HEAD + b"\x02G1" + b"x" * 126 + b"\x04", (Other("G", "1" + "x" * 126),), False),
        (HEAD + b"\x02E$AAU01\x04", (Other("E", "$AAU01"),), False),
        (HEAD + b"\x02Q\x04", (Other("Q"),), False),
    ],
)
def test_frame_forms(data: bytes, commands: tuple[Command, ...], checked: bool) -> None:
    assert Decoder().feed(data) == [Frame(commands, checked=checked, raw=data[5:])]
    if not checked:
        assert Decoder(unchecked=False).feed(data) == [Broken(data[5:], "no checksum")]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x01Z00\x02G1x\x030000\x04", [Broken(b"\x01Z00\x02G1x\x030000\x04", "wrong checksum")]),
        (b"\x01Z0\x02G1x\x04", [Broken(b"\x01Z0\x02G1x\x04", "no such frame")]),
        (b"\x01Z00\x04", [Broken(b"\x01Z00\x04", "no such frame")]),
        (b"\x01Z00\x02G1\x02G2\x04", [Broken(b"\x01Z00\x02G1\x02G2\x04", "nested commands without ETX")]),
        (b"\x01Z00\x02G1\x00", [Broken(b"\x01Z00\x02G1", "a frame begins within a frame")]),
        (b"\x06\x00\x15\x00", [Ack(), Nak()]),
        (b"\x06\x40", [Ack(Errors(0), b"\x06\x40")]),
        (b"\x15\x50\x15\x61", [nak(Errors.CHECKSUM), nak(Errors.ILLEGAL | Errors.PARITY)]),
        (b"\x15\x7f\x06\x15\x48\x00", [nak(Errors(63)), Ack(), nak(Errors.OVERFLOW)]),
        (b"\x15\x3f", [Nak(), Garbage(b"\x3f")]),  # bit 6 is always set
        (b"\x06\xc0", [Ack(), Garbage(b"\xc0")]),
        (b"x\x06", [Garbage(b"x\x06")]),  # in the midst of noise it says nothing
        (b"\x01\x04\x06", [Broken(b"\x01\x04", "no such frame"), Garbage(b"\x06")]),
        (b"\x00\x00\x01\x00", []),
        (b"hello", [Garbage(b"hello")]),
    ],
)
def test_invalid_frames(data: bytes, expected: list[Message]) -> None:
    assert decode(data) == (expected, b"")
    assert decode(data, [*range(len(data))]) == (expected, b"")


def test_an_ack_waits_for_its_status_and_a_frame_ends_that() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x06") == []
    assert decoder.feed(b"\x40") == [Ack(Errors(0), b"\x06\x40")]
    assert decoder.feed(b"\x15") == []
    told = decoder.feed(VECTORS["reset"][1])
    assert [type(message) for message in told] == [Nak, Frame]
    assert encode(Ack(Errors(0))) == b"\x06\x40"
    assert encode(nak(Errors.CHECKSUM)) == b"\x15\x50"
    assert encode(Nak()) == b"\x15"


def test_sync_may_be_nul_or_soh_and_is_counted() -> None:
    body = b"\x01Z00\x02E,\x04"
    for sync in (b"", b"\x00" * 5, b"\x01" * 5, b"\x00\x01\x00\x00", b"\x00" * 300):
        for cuts in ([], [*range(400)]):
            frame = Frame((SoftReset(),), sync=len(sync), checked=False, raw=body)
            assert decode(b"x" + sync + body, cuts) == ([Garbage(b"x"), frame], b"")


def test_ack_directly_after_a_frame() -> None:
    data = VECTORS["reset"][1] + b"\x06" + VECTORS["reset"][1] + b"\x15\x50"
    assert [type(message) for message in decode(data)[0]] == [Frame, Ack, Frame, Nak]


def test_a_frame_without_end_is_given_up() -> None:
    data = b"\x01" + b"a" * 10_000
    expected = [Broken(data[:MAX_FRAME], "no end in 4096 bytes"), Garbage(b"a" * (10_001 - MAX_FRAME))]
    assert decode(data) == (expected, b"")
    assert decode(data, [*range(10_001)]) == (expected, b"")
    assert Decoder().feed(data + VECTORS["reset"][1])[-1] == Frame((SoftReset(),), raw=VECTORS["reset"][1][5:])


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(0, 2000), max_size=20))
@settings(max_examples=at_length(25, 500), derandomize=True)
def test_any_chunking_gives_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encode, frames))
    expected = [msgspec.structs.replace(frame, raw=encode(frame).lstrip(b"\x00")) for frame in frames]
    assert decode(data, cuts) == (expected, b"")


NOISE = st.binary(max_size=30) | st.lists(
    st.sampled_from([b"\x00", b"\x01", b"\x02", b"\x03", b"\x04", b"\x06", b"\x15", b"Z00", b"G1", b"\x03"]),
    max_size=20,
).map(b"".join)


@given(st.lists(NOISE | FRAMES.map(encode), max_size=8), st.lists(st.integers(0, 3000), max_size=30))
@settings(max_examples=at_length(50, 1_000), derandomize=True)
def test_any_noise_is_told_whole(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    told, held = decode(data)
    assert decode(data, cuts) == (told, held)
    whole = b"".join(message.raw for message in told) + held
    assert whole.translate(None, b"\x00\x01") == data.translate(None, b"\x00\x01")
    after = decode(data + b"\x00" + VECTORS["string"][1])[0][-1]
    assert isinstance(after, Frame)
    assert after.commands == VECTORS["string"][0]


@given(st.sampled_from(sorted(VECTORS)), st.integers(9, 200), st.integers(0, 7))
@settings(max_examples=at_length(40, 750), derandomize=True)
def test_one_flipped_bit_is_never_another_command(name: str, at: int, bit: int) -> None:
    commands, data = VECTORS[name]
    at = 9 + at % (len(data) - 9)
    bad = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
    for message in Decoder(unchecked=False).feed(bad):
        assert not isinstance(message, Frame), (message, commands)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(()),
        Frame((WriteString("1", "é"),)),
        Frame((WriteString("1", "a\x04"),)),
        Frame((WriteString("1", "x" * 126),)),
        Frame((WriteString("", ""),)),
        Frame((WriteText("A", (Segment("x", "!"),)),)),
        Frame((WriteText("A", (Segment("x", " ", "z"),)),)),
        Frame((WriteText("A", (Segment("x"), Segment("y", "", ""))),)),
        Frame((ConfigureMemory((File("A", "A", 65536),)),)),
        Frame((ConfigureMemory((File("A", "X", 1),)),)),
        Frame((Beep(256),)),
        Frame((Beep(0, 0),)),
        Frame((Other("G", "1x"),)),
        Frame((SoftReset(),), address="1"),
        Frame((SoftReset(),), kind=""),
        Frame((SoftReset(),), sync=-1),
        Frame((WriteString("1", "x" * 120),) * 40),
        Frame((SoftReset(), SoftReset()), checked=False),
    ],
)
def test_values_that_no_frame_can_carry(frame: Frame) -> None:
    with pytest.raises(ValueError, match=r"no frame can carry|need their checksums"):
        encode(frame)
