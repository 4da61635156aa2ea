"""FDL's bytes: the document's examples in both directions, any chunking, any noise."""

import itertools
import re
from pathlib import Path

import pytest
from helpers import at_length
from hypothesis import assume, given, settings, strategies as st

from protocols.fdl import console as fdl_console, frame as fdl, shaker as fdl_shaker
from protocols.fdl.frame import Decoder, Frame, Garbage, Malformed

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "protocols"
DOC = (DOCS / "fdl.md").read_text()
PAGES = DOC + (DOCS / "fdl_shaker.md").read_text() + (DOCS / "fdl_console.md").read_text()
EPOCH = 0x1A2B3C4D


def acme(position: int) -> fdl.Identity:
    return fdl.Identity(fdl.SHAKER, EPOCH, 1, 43, position, "Acme", "DS-3", "00017", "2.1")


EXAMPLES: dict[str, tuple[fdl.Message, int]] = {
    "hello-first": (fdl.Hello(0, 0), 1),
    "identity-closed": (acme(0), 1),
    "hello-known": (fdl.Hello(EPOCH, 41), 2),
    "identity-open": (acme(42), 2),
    "event-read": (fdl.EventReport(42, 12, 0x13, fdl_shaker.Read((2, 5, 5)).to_bytes()), 7),
    "ack": (fdl.Ack(EPOCH, 42), 7),
    "nak-unreadable": (fdl.Nak(fdl.UNREADABLE, EPOCH, 43), 3),
    "heartbeat-open": (fdl.Heartbeat(61_000, 43), 8),
    "heartbeat-waiting": (fdl.Heartbeat(500, 1, fdl.WAITS_FOR_HELLO), 0),
    "event-bell": (fdl.EventReport(65_536, fdl.AGE_UNKNOWN, 0x21), 255),
    "heartbeat-faulty": (fdl.Heartbeat(62_000, 43, fdl.FAULTY), 9),
    "command-agitate": (fdl.Command(0x00C0FFEE, fdl_shaker.AGITATE, b"\x01"), 9),
    "answer-done": (fdl.Answer(0x00C0FFEE, fdl.DONE), 9),
    "answer-refused": (fdl.Answer(0x00C0FFEE, fdl.REFUSED, 5), 9),
    "command-self-test": (fdl.Command(0x00C0FFEF, fdl.SELF_TEST), 10),
    "answer-not-known": (fdl.Answer(0x00C0FFEF, fdl.NOT_KNOWN), 10),
}

PRINTED = dict(re.findall(r"^\| `([a-z-]+)` \|[^|]*\| `([0-9A-F ]+)` \|$", DOC, re.MULTILINE))

HAPPENINGS: dict[int, fdl.Happening] = {
    0x01: fdl.Fault(0x10, 2, 0),
    0x02: fdl.Recovered(0x10),
    0x03: fdl.Started(),
    0x10: fdl_shaker.Covered(),
    0x11: fdl_shaker.Uncovered(),
    0x12: fdl_shaker.Agitated(fdl_shaker.LEVER, 3),
    0x13: fdl_shaker.Read((2, 5, 5)),
    0x14: fdl_shaker.Lit(fdl_shaker.READING_LAMP),
    0x20: fdl_console.BetsOpened(),
    0x21: fdl_console.BetsClosed(),
    0x22: fdl_console.RoundVoid(2),
    0x23: fdl_console.Paid(),
    0x24: fdl_console.NewShoe(8),
    0x25: fdl_console.CutCard(),
    0x26: fdl_console.DemoRound(),
    0x27: fdl_console.SeatOpened(3),
    0x28: fdl_console.SeatClosed(3),
    0x29: fdl_console.SeatAction(3, 0x04, 2, 10_000),
    0x2A: fdl_console.HandPassed(5),
    0x2B: fdl_console.DealerRelieved(),
    0x2C: fdl_console.SupervisorKey(on=True),
    0x2D: fdl_console.Corrected((("player", ("9H", "KC")), ("banker", ("AS", "4H")))),
    0x2E: fdl_console.CardExposed("dealer", "AS"),
    0x2F: fdl_console.CardDamaged(),
    0x30: fdl_console.DiceEntered((2, 5, 5)),
    0x31: fdl_console.DiceThrown((3, 4)),
    0x32: fdl_console.DiceDisturbed(),
    0x33: fdl_console.DiceReplaced(),
    0x34: fdl_console.DiceSeized(),
    0x35: fdl_console.ButtonsSeparated(),
    0x36: fdl_console.ButtonsCounted(119, 1),
    0x37: fdl_console.BallLaunched(fdl_console.CLOCKWISE, fdl_console.ANTICLOCKWISE),
    0x38: fdl_console.BallEntered("17"),
    0x39: fdl_console.BallReplaced("17"),
    0x3A: fdl_console.JackpotWon(1, 3),
    0x3B: fdl_console.JackpotPaid(1, 3, 1_000_000),
    0x3C: fdl_console.BallChanged(),
    0x3D: fdl_console.TableClosed(),
    0x3E: fdl_console.BetPlaced(3, "fan:2", 1000),
    0x3F: fdl_console.BetWithdrawn(3, "fan:2"),
    0x40: fdl_console.DiceCovered(),
    0x41: fdl_console.DiceUncovered(),
    0x42: fdl_console.SeriesStated("ana", 6, "c:1", ((1, "pass", 3000),)),
    0x43: fdl_console.TableOpened("ana", 10_000, 500_000),
    0x44: fdl_console.LimitsChanged("ana", 20_000),
    0x45: fdl_console.TableClosedBy("ana"),
    0x46: fdl_console.TableCounted(0x03, 1_000_000, "0" * 32, "dora", "sam"),
    0x47: fdl_console.MachineApproved("ana", "m:1"),
}

PRINTED_DATA = {
    int(kind, 16): bytes.fromhex(data)
    for kind, data in re.findall(
        r"^\| ([0-9A-F]{2}) \| (?:all|shaker|console) \|[^|]*\|[^|]*\| `([0-9A-F ]*)` \|[^|]*\|$", PAGES, re.MULTILINE
    )
}

# The kinds of these two devices do not overlap; those of others may.
OWN = {**fdl_shaker.HAPPENINGS, **fdl_console.HAPPENINGS}


def naive_crc(data: bytes) -> int:
    """Bit by bit, from the document's words."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def naive_body(on_line: bytes) -> bytes:
    """One good frame without its stuffing, byte by byte, from the document's words."""
    stuffed = list(on_line[1:-1])
    body: list[int] = []
    while stuffed:
        body += [stuffed.pop(0) for _ in range(stuffed.pop(0) - 1)]
        if stuffed:
            body.append(0)
    return bytes(body)


def test_the_document_prints_every_example() -> None:
    assert set(PRINTED) == set(EXAMPLES)
    assert {type(message) for message, _ in EXAMPLES.values()} == set(fdl._MESSAGES.values())
    assert set(PRINTED_DATA) == set(HAPPENINGS) == {*fdl.COMMON, *OWN}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_both_ways(name: str) -> None:
    message, seq = EXAMPLES[name]
    printed = bytes.fromhex(PRINTED[name])
    assert fdl.encode(message, seq) == printed
    [frame] = Decoder().feed(printed)
    assert isinstance(frame, Frame)
    assert (fdl.read(frame), frame.seq, frame.raw) == (message, seq, printed[1:])


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_by_the_words_of_the_document(name: str) -> None:
    """Without our codec: a mistake in it cannot agree with itself here."""
    body = naive_body(bytes.fromhex(PRINTED[name]))
    assert body[0] == len(body) - 5
    assert naive_crc(body[:-2]) == body[-2] << 8 | body[-1]


@pytest.mark.parametrize("kind", HAPPENINGS)
def test_event_data_both_ways(kind: int) -> None:
    happening = HAPPENINGS[kind]
    assert kind == happening.KIND
    assert happening.to_bytes() == PRINTED_DATA[kind]
    assert fdl.read_happening(kind, PRINTED_DATA[kind], OWN) == happening


def test_worked_example_of_the_document() -> None:
    steps = dict(re.findall(r"^    (body|crc|on line) +([0-9A-F ]+?)(?:   .*)?$", DOC, re.MULTILINE))
    body, check, line = (bytes.fromhex(steps[step]) for step in ("body", "crc", "on line"))
    assert naive_crc(body) == int.from_bytes(check)
    assert naive_body(line) == body + check
    assert fdl.encode_frame(body[1], body[2], body[3:]) == line


def test_check_value_of_the_crc() -> None:
    assert fdl.crc(b"123456789") == naive_crc(b"123456789") == 0x29B1


FRAMES = st.tuples(st.integers(0, 255), st.integers(0, 255), st.binary(max_size=fdl.MAX_PAYLOAD))


@settings(max_examples=at_length(25, 500))
@given(FRAMES)
def test_any_frame_there_and_back(frame: tuple[int, int, bytes]) -> None:
    on_line = fdl.encode_frame(*frame)
    assert on_line.count(0) == 2
    assert len(on_line) <= fdl.MAX_STUFFED + 2
    assert naive_body(on_line)[:-2] == bytes((len(frame[2]), *frame[:2])) + frame[2]
    assert Decoder().feed(on_line) == [Frame(*frame, on_line[1:])]


def test_too_long_a_payload_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 200"):
        fdl.encode_frame(1, 0, bytes(201))


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


PIECES = st.lists(st.one_of(FRAMES.map(lambda one: fdl.encode_frame(*one)), st.binary(max_size=300)), max_size=6)


@settings(max_examples=at_length(40, 750))
@given(PIECES.map(b"".join), st.lists(st.integers(0, 5000), max_size=12))
def test_any_chunking(data: bytes, at: list[int]) -> None:
    """Noise or frames: the pieces tell what the whole tells."""
    decoder = Decoder()
    found = [one for piece in cut(data, at) for one in decoder.feed(piece)]
    assert found == Decoder().feed(data)
    assert len(decoder._partial) <= fdl.MAX_STUFFED


@settings(max_examples=at_length(40, 750))
@given(st.lists(FRAMES, max_size=5), st.lists(st.binary(max_size=400), min_size=6, max_size=6))
def test_noise_between_frames_costs_no_frame(frames: list[tuple[int, int, bytes]], noise: list[bytes]) -> None:
    stream = noise[0] + b"".join(fdl.encode_frame(*one) + dirt for one, dirt in zip(frames, noise[1:], strict=False))
    noises = [part for dirt in noise for part in Decoder().feed(dirt + b"\0")]
    assume(not any(isinstance(part, Frame) for part in noises))
    found = [one for one in Decoder().feed(stream) if isinstance(one, Frame)]
    assert [(one.type, one.seq, one.payload) for one in found] == frames


@settings(max_examples=at_length(25, 500))
@given(FRAMES, st.data())
def test_a_broken_bit_is_found(frame: tuple[int, int, bytes], data: st.DataObject) -> None:
    body = naive_body(fdl.encode_frame(*frame))
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    broken = (int.from_bytes(body) ^ 1 << bit).to_bytes(len(body))
    stuffed = b"".join(bytes((len(block) + 1,)) + block for block in broken.split(b"\0"))
    [found] = Decoder().feed(b"\0" + stuffed + b"\0")
    assert isinstance(found, Garbage)
    assert found.why in {"crc", "length"}


def test_garbage_names_its_defect() -> None:
    good = fdl.encode(fdl.Ack(EPOCH, 42), 7)
    bad_crc = good.replace(b"\xe4", b"\xe5")
    assert Decoder().feed(bad_crc) == [Garbage(bad_crc[1:-1], "crc")]
    assert Decoder().feed(b"\x09\x01\x02\0") == [Garbage(b"\x09\x01\x02", "stuffing")]
    body = b"\x09" + naive_body(good)[1:-2]
    wrong_len = body + naive_crc(body).to_bytes(2)
    stuffed = b"".join(bytes((len(block) + 1,)) + block for block in wrong_len.split(b"\0"))
    assert Decoder().feed(stuffed + b"\0") == [Garbage(stuffed, "length")]
    assert Decoder().feed(b"\x01\0") == [Garbage(b"\x01", "length")]
    assert Decoder().feed(b"\0\0\0\0") == []


def test_endless_noise_is_told_once_and_not_kept() -> None:
    decoder = Decoder()
    found = [one for _ in range(1000) for one in decoder.feed(b"\x55" * 100)]
    assert found == [Garbage(b"\x55" * fdl.MAX_STUFFED, "too long")]
    assert decoder._partial == b""
    assert decoder.feed(fdl.encode(fdl.Ack(EPOCH, 42), 7))  # the 00 before the frame ends the noise


def test_longest_frame_is_no_garbage() -> None:
    on_line = fdl.encode_frame(0x82, 1, bytes(range(1, 201)))
    assert len(on_line) == fdl.MAX_STUFFED + 2
    assert Decoder().feed(on_line) == [Frame(0x82, 1, bytes(range(1, 201)), on_line[1:])]


@settings(max_examples=at_length(50, 1_000))
@given(st.integers(0, 255), st.binary(max_size=fdl.MAX_PAYLOAD))
def test_any_payload_is_a_value(type_: int, payload: bytes) -> None:
    """Whatever is read can be written, and reads the same again."""
    message = fdl.read(Frame(type_, 0, payload, b""))
    match message:
        case fdl.UnknownType() | fdl.OtherVersion() | Malformed():
            pass
        case _:
            [again] = Decoder().feed(fdl.encode(message, 0))
            assert isinstance(again, Frame)
            assert fdl.read(again) == message


@settings(max_examples=at_length(50, 1_000))
@given(st.integers(0, 255) | st.sampled_from(sorted(HAPPENINGS)), st.binary(max_size=20))
def test_any_event_data_is_a_value(kind: int, data: bytes) -> None:
    happening = fdl.read_happening(kind, data, OWN)
    if not isinstance(happening, Malformed):
        assert (happening.KIND, happening.to_bytes()) == (kind, data)


@pytest.mark.parametrize("type_", [0x01, 0x02, 0x03, 0x10, 0x81, 0x82, 0x83])
def test_a_short_payload_is_malformed(type_: int) -> None:
    assert isinstance(fdl.read(Frame(type_, 0, b"\x01\x01", b"")), Malformed)
    assert isinstance(fdl.read(Frame(type_, 0, b"", b"")), Malformed)


def test_another_version_is_told_by_its_number() -> None:
    assert fdl.read(Frame(0x81, 0, b"\x02", b"")) == fdl.OtherVersion(2)
    assert fdl.read(Frame(0x01, 0, b"\x09whatever", b"")) == fdl.OtherVersion(9)


def test_fields_of_a_later_version_are_ignored() -> None:
    for message, _ in EXAMPLES.values():
        if not isinstance(message, fdl.EventReport | fdl.Command | fdl.Answer):
            assert fdl.read(Frame(message.TYPE, 0, message.to_bytes() + b"more", b"")) == message


@pytest.mark.parametrize(
    "wrong",
    [
        fdl.Identity(1, 0, 1, 1, 0),  # no epoch
        fdl.Identity(1, 5, 0, 1, 0),  # counters begin with 1
        fdl.Identity(1, 5, 9, 8, 0),  # the oldest after the next
        fdl.Identity(1, 5, 1, 8, 9),  # a position that nothing has
    ],
)
def test_an_identity_that_cannot_be(wrong: fdl.Identity) -> None:
    assert isinstance(fdl.read(Frame(0x81, 0, wrong.to_bytes(), b"")), Malformed)


def test_identity_cut_in_its_texts() -> None:
    payload = acme(0).to_bytes()
    for end in range(len(payload)):
        assert isinstance(fdl.read(Frame(0x81, 0, payload[:end], b"")), Malformed)


def test_names_are_fit_for_a_screen() -> None:
    payload = fdl.Identity(1, 5, 1, 1, 0, "Acmé\x1b[31m", "骰" * 20, "", "").to_bytes()
    read = fdl.read(Frame(0x81, 0, payload.replace("é".encode(), b"\xc3("), b""))
    assert isinstance(read, fdl.Identity)
    assert read.vendor == "Acm�([31m"
    assert read.model == "骰" * 13  # 40 bytes hold 13 of them


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (0x01, "10 03 00"),  # no such severity
        (0x12, "03 01"),  # no such mode
        (0x12, "01 00"),  # no pull is no agitation
        (0x13, "00 00 03 02 05"),  # a face is missing
        (0x13, "00 00 03 02 05 07"),  # no die has a seven
        (0x13, "00 00 01 00"),
        (0x14, "02"),  # a lamp that no shaker has
        (0x14, ""),
        (0x24, "0D"),  # too many decks
        (0x27, "00"),  # nobody sits at seat 0
        (0x28, "64"),  # nor at seat 100
        (0x2A, "64"),
        (0x29, "03 01 7E 00 00 00 00"),  # no such action
        (0x29, "03 00 01 00 00 00 00"),  # hands begin with 1
        (0x29, "00 01 01 00 00 00 00"),
        (0x29, "03 01 01 00 00 00"),
        (0x2C, "02"),  # a key is on or off
        (0x2D, ""),  # a correction of nothing
        (0x2D, "80 01 01 11 80 01 01 21"),  # one hand twice
        (0x2D, "80 01 02 11"),  # a card is missing
        (0x2D, "80 01 01 11 81"),  # a hand is cut off
        (0x2D, "80 01 01 00"),  # a card that is none
        (0x2D, "80 02 01 11"),  # the player of baccarat has one hand
        (0x2D, "84 01 01 11"),  # nobody's hand
        (0x2E, "82 01 15"),  # no such suit
        (0x2E, "00 01 11"),
        (0x2E, "82 01"),
        (0x2F, "E1"),  # no such rank
        (0x30, "00 00 01 07"),
        (0x31, "00 00"),  # a throw that counts, without dice
        (0x31, "00 01 00"),
        (0x36, "00 00 00"),  # no button at all
        (0x36, "01 01"),
        (0x37, "01 03"),
        (0x38, "25"),  # there is no 37
        (0x38, "FF"),  # a result is said
        (0x39, "26"),
        (0x3A, "21 01 00 00 00 00"),  # no such level
        (0x3B, "01 64 00 00 00 00"),
        (0x3B, "01 01 00 00 00"),
        (0x21, "00"),  # the bell has no data
        (0x7F, ""),  # no such kind
    ],
)
def test_event_data_that_the_document_does_not_allow(kind: int, data: str) -> None:
    assert isinstance(fdl.read_happening(kind, bytes.fromhex(data), OWN), Malformed)


def test_an_answer_that_is_none() -> None:
    assert isinstance(fdl.read(Frame(0x90, 0, bytes(5), b"")), Malformed)
    assert isinstance(fdl.read(Frame(0x90, 0, bytes((0, 0, 0, 1, 3, 0)), b"")), Malformed)


@pytest.mark.parametrize(
    "wrong",
    [
        fdl_console.Corrected(()),
        fdl_console.Corrected((("player", ("AS",)), ("player", ("AS",)))),
        fdl_console.Corrected((("dealers", ("AS",)),)),
        fdl_console.Corrected((("seat_0", ("AS",)),)),
        fdl_console.Corrected((("seat_3_1", ("AS",)),)),
        fdl_console.Corrected((("player", ("10S",)),)),
        fdl_console.Corrected(tuple((f"seat_{n}", ("AS",) * 9) for n in range(1, 30))),
        fdl_console.RoundVoid(1, "Bac-12"),
        fdl_console.Paid("a" * 101),
        fdl_console.Corrected((("player", ("AS",)),), "bac 12"),
        fdl_console.CardExposed("player", "A"),
        fdl_console.BallEntered("37"),
    ],
)
def test_values_beyond_the_wire(wrong: fdl.Happening) -> None:
    with pytest.raises(ValueError, match=r"a hand is|a round's id|a correction|a card is|a pocket is"):
        wrong.to_bytes()


def test_the_cards_of_a_deck_have_a_byte_each() -> None:
    assert len(set(fdl_console.CARDS.values())) == len(fdl_console.CARDS) == 52
    assert {byte: fdl_console.CARDS[byte] for byte in (0x11, 0xD4, 0xA3)} == {0x11: "AS", 0xD4: "KC", 0xA3: "TD"}


def test_the_lists_of_the_document_are_those_of_the_codec() -> None:
    def words(title: str, base: int) -> dict[int, str]:
        [line] = re.findall(rf"^- \*{title}\*: (.*)$", PAGES, re.MULTILINE)
        return {
            int(code, base): text
            for code, text in re.findall(
                r"([0-9A-F]+) ([a-z][a-z0-9_' ]*?)(?:[,.;]|$)", line.split(". ")[0].split(";")[0]
            )
        }

    def coded(begins: str) -> dict[int, str]:
        return {n: text.replace(" ", "_").replace("'", "") for n, text in words(begins, 10).items()}

    assert words("Actions", 16) == fdl_console.ACTIONS
    assert {**coded("Reasons of void"), 0: ""} == fdl_console.VOID_REASONS
    assert {**coded("Reasons of a throw"), 0: ""} == fdl_console.THROW_REASONS
    printed = re.findall(r"^\| ([0-9A-F]{2}) \| (it is [^|]+?|a [^|]+?|its [^|]+?) \|$", DOC, re.MULTILINE)
    assert {int(code, 16): text for code, text in printed} == fdl.REASONS
    kinds = re.findall(r"^\| (0[1-9]) \| ([a-z ]+?) \|$", DOC, re.MULTILINE)
    assert {int(kind, 16): text for kind, text in kinds if text in fdl.KINDS.values()} == fdl.KINDS


@pytest.mark.parametrize(
    ("happening", "data"),
    [
        (fdl_console.RoundVoid(1, "bac-12:2026-11-20:1:7"), "01" + b"bac-12:2026-11-20:1:7".hex()),
        (fdl_console.Paid("bac-12:2026-11-20:1:7"), b"bac-12:2026-11-20:1:7".hex()),
        (fdl_console.Corrected((("player", ("9H",)),), "t:1"), "8001019200" + b"t:1".hex()),
    ],
)
def test_a_console_may_name_the_round(happening: fdl.Happening, data: str) -> None:
    assert happening.to_bytes().hex() == data
    assert type(happening).from_bytes(bytes.fromhex(data)) == happening


def test_a_round_that_is_none_is_malformed() -> None:
    for kind, data in (
        (fdl_console.RoundVoid, "0120"),
        (fdl_console.Paid, "C3A9"),
        (fdl_console.Corrected, "8001019200"),
    ):
        assert isinstance(kind.from_bytes(bytes.fromhex(data)), fdl.Malformed)
