"""SAS 6.x: exact frames both ways, any pieces, any noise; and the link with its ninth bit."""

import asyncio
import contextlib
import os
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import PATIENCE, at_length
from hypothesis import given, settings, strategies as st

from daemon.cli.configuration_check import device_mistakes
from daemon.config.model import load
from daemon.edge.links import sas as links_sas
from daemon.edge.links.link import BadUrl, HostLink, check_url
from daemon.edge.links.sas import CMSPAR, SasLink, check, open_link, refusal
from protocols.link import LinkLost
from protocols.sas.frames import (
    MAX_FRAME,
    HostDecoder,
    MachineDecoder,
    broadcast,
    encode,
    game_poll,
    levels_of,
)
from protocols.sas.messages import (
    Ack,
    Answer,
    Bill,
    Body,
    Busy,
    Clock,
    Code,
    ExtendedMeters,
    Features,
    GameInfo,
    GameList,
    GameMeter,
    GameMeters,
    Garbage,
    GeneralPoll,
    Handpay,
    HandpayReset,
    Happened,
    Hopper,
    Identity,
    LongPoll,
    LoopBreak,
    Meters,
    Nack,
    Number,
    Poll,
    RealTime,
    Reply,
    SelectedMeters,
    Signature,
    Ticket,
    Unknown,
    Validation,
    ValidationId,
    ValidationMeters,
    ValidationStatus,
    Win,
    Wins,
)
from protocols.sas.tables import (
    EXCEPTIONS,
    METERS,
    PRIORITY,
    names,
)
from protocols.sas.values import crc

H = bytes.fromhex


def slow_crc(data: bytes) -> bytes:
    """CRC-16/KERMIT by its definition, bit by bit."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x8408 if value & 1 else 0)
    return value.to_bytes(2, "little")


POLLS: list[tuple[str, Poll]] = [
    ("81", GeneralPoll(1)),
    ("80", GeneralPoll(0)),
    ("01 01 51 08", LongPoll(1, 0x01)),
    ("01 02 CA 3A", LongPoll(1, 0x02)),
    ("01 06 EE 7C", LongPoll(1, 0x06)),
    ("01 07 67 6D", LongPoll(1, 0x07)),
    ("01 0E 01 45 D1", LongPoll(1, 0x0E, b"\x01")),
    ("01 21 00 00 5C 45", LongPoll(1, 0x21, b"\0\0")),
    ("01 2F 04 00 00 00 01 A5 1B", game_poll(1, 0x2F, 0, b"\x00\x01")),
    ("01 2D 00 00 FF E0", game_poll(1, 0x2D)),
    ("01 52 00 01 69 3B", game_poll(1, 0x52, 1)),
    ("01 53 00 01 B5 61", game_poll(1, 0x53, 1)),
    ("01 A0 00 00 6C 13", game_poll(1, 0xA0)),
    ("01 94 75 CB", LongPoll(1, 0x94)),
    ("01 83 00 00 33 FF", game_poll(1, 0x83)),
    ("00 80 01 01 00 00 12 34 56 40 86", broadcast(1, {1: 123_456})),
    ("00 86 0D 01 01 00 00 12 34 56 02 00 00 00 50 00 CB 0B", broadcast(1, {1: 123_456, 2: 5000})),
    ("00 7F 11 20 20 26 20 55 00 9B 9C", LongPoll(0, 0x7F, H("11202026205500"))),
    ("01 0F", LongPoll(1, 0x0F)),
    ("7F 54", LongPoll(127, 0x54)),
]
REPLIES: list[tuple[str, Reply]] = [
    ("01 11 00 01 23 45 01 FD", Reply(1, 0x11, Meters({"coin_in": 12345}))),
    ("01 85 01 01 00 00 12 34 56 DC 5C", Reply(1, 0x85, Win(1, 1, 123_456))),
    ("01 87 02 01 00 6B DD", Reply(1, 0x87, Wins(1, ()))),
    ("01 54 09 36 30 33 41 42 43 31 32 33 02 A5", Reply(1, 0x54, Identity("603", "ABC123"))),
]
GAME = GameInfo("SI", "MUL", 1, 5, 1, 0x0102, "LUCKY1", "9000")
BODIES: list[tuple[int, Body, int]] = [
    *(
        (command, Meters({name: n * 37 for n, (name, _) in enumerate(names_, 3)}), 0)
        for command, names_ in METERS.items()
    ),
    (0x1B, Handpay(1, 2, 123_456, 0, 7), 24),
    (0x1F, GAME, 24),
    (0x21, Signature(0xBEEF), 6),
    (0x2D, GameMeter(0, 12), 10),
    (0x2F, SelectedMeters(0, {0: 5, 1: 99_999_999}), 0),
    (0x48, Bill(37, 1, 12), 10),
    (0x4F, Hopper(0, 60, 600), 11),
    (0x4F, Hopper(7, 50, None), 7),
    (0x51, Number(9999), 6),
    (0x52, GameMeters(1, 1, 2, 3, 4), 22),
    (0x53, GameInfo("SI", "MUL", 1, 5, 1, 0, "LUCKY1", "9000", 12), 26),
    (0x54, Identity("602", ""), 8),
    (0x55, Number(1), 6),
    (0x56, GameList((1, 7, 12)), 12),
    (0x83, GameMeter(1, 5), 10),
    (0x84, Win(1, 32, 9_999_999_999), 11),
    (0x87, Wins(1, tuple((level, level) for level in range(1, 33))), 5 + 0xC2),
    (0x94, HandpayReset(2), 5),
    (0xA0, Features(0, b"\x24\x00\x01\x00\x00\x00"), 12),
    (0x2F, SelectedMeters(1, {0x0C: 5, 0x0D: 9_999_999_999}), 18),
    (0x6F, ExtendedMeters(1, {0x00: 5, 0x0D: 10**16}), 26),
    (0x3D, Ticket("00000012", 9_999_999_999), 13),
    (0x4C, ValidationId(0xFFFFFF, 1), 10),
    (0x4D, Validation(0x82, 31, "2026-11-22T23:59:59", "0" * 15 + "7", 5, 0xFFFF, 99, "12312026", 0x102), 35),
    (0x50, ValidationMeters(0x60, 99_999_999, 9_999_999_999), 14),
    (0x7B, ValidationStatus(0x01020304, 0x803F, 9999, 30), 15),
    (0x7E, Clock("2026-11-22T23:59:59"), 11),
    (0xB1, Code(1), 5),
]
LENGTHS = {0x0F: 28, 0x18: 8, 0x19: 24, 0x1A: 8, 0x1C: 36, 0x1E: 28, **dict.fromkeys(range(0x10, 0x18), 8)}


def asked(command: int) -> LongPoll:
    if command == 0x21:
        return LongPoll(1, command, b"\0\0")
    return LongPoll(1, command)


def host(poll: Poll, data: bytes, cuts: list[int] | None = None) -> list[Answer]:
    """All answers with garbage put together; `data` split at `cuts`, then a pause."""
    decoder = HostDecoder(1)
    decoder.expect(poll)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    told = [answer for a, b in pairwise(edges) for answer in decoder.feed(data[a:b])] + decoder.quiet()
    assert not decoder.waiting
    return joined(told)


def machine(data: bytes, cuts: list[int] | None = None) -> list[Any]:
    decoder = MachineDecoder()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    told = [poll for a, b in pairwise(edges) for poll in decoder.feed(data[a:b])] + decoder.quiet()
    assert not decoder.waiting
    return joined(told)


def joined(told: list[Any]) -> list[Any]:
    whole: list[Any] = []
    for one in told:
        if isinstance(one, Garbage) and whole and isinstance(whole[-1], Garbage):
            whole[-1] = Garbage(whole[-1].raw + one.raw)
        else:
            whole.append(one)
    return whole


# ---- the wire


def test_the_checksum_is_kermit() -> None:
    assert crc(b"123456789") == (0x2189).to_bytes(2, "little") == slow_crc(b"123456789")


@given(st.binary(max_size=60))
@settings(max_examples=at_length(25, 500), derandomize=True)
def test_the_checksum_by_its_definition(data: bytes) -> None:
    assert crc(data) == slow_crc(data)


@pytest.mark.parametrize(("frame", "poll"), POLLS)
def test_exact_polls_both_ways(frame: str, poll: Poll) -> None:
    assert encode(poll) == H(frame)
    assert machine(H(frame)) == [poll]
    assert machine(H(frame), [*range(30)]) == [poll]


@pytest.mark.parametrize(("frame", "reply"), REPLIES)
def test_exact_replies_both_ways(frame: str, reply: Reply) -> None:
    assert encode(reply) == H(frame)
    assert host(LongPoll(1, reply.command), H(frame)) == [reply]
    assert host(LongPoll(1, reply.command), H(frame), [*range(30)]) == [reply]


@pytest.mark.parametrize(("command", "body", "length"), BODIES)
def test_every_answer_both_ways_with_its_length(command: int, body: Body, length: int) -> None:
    frame = encode(Reply(1, command, body))
    assert len(frame) == (length or LENGTHS.get(command, len(frame)))
    assert slow_crc(frame[:-2]) == frame[-2:]
    assert len(frame) <= MAX_FRAME
    assert host(asked(command), frame) == [Reply(1, command, body)]
    assert host(asked(command), frame, [*range(len(frame))]) == [Reply(1, command, body)]


def test_a_whole_reply_needs_no_pause_and_what_follows_is_nobodys() -> None:
    decoder = HostDecoder(1)
    decoder.expect(LongPoll(1, 0x11))
    frame = H(REPLIES[0][0])
    assert decoder.feed(frame + b"\x01\x11") == [REPLIES[0][1], LoopBreak(1), Garbage(b"\x11")]
    assert not decoder.waiting
    decoder.expect(LongPoll(1, 0x11))
    assert decoder.feed(frame[:3]) == []
    decoder.expect(LongPoll(1, 0x11))  # asked again: the half that was there is forgotten
    assert decoder.feed(frame) == [REPLIES[0][1]]


@pytest.mark.parametrize(
    ("poll", "data", "expected"),
    [
        (GeneralPoll(1), "11", [Happened(0x11)]),
        (GeneralPoll(1), "00", [Happened(0)]),
        (GeneralPoll(1), "00 00", [Garbage(b"\0\0")]),  # one byte is an answer, two are noise
        (GeneralPoll(1), "", []),
        (GeneralPoll(1), "01 FF 11" + slow_crc(H("01FF11")).hex(), [RealTime(1, 0x11)]),
        (GeneralPoll(1), "01 FF 4F 37" + slow_crc(H("01FF4F37")).hex(), [RealTime(1, 0x4F, b"\x37")]),
        (GeneralPoll(1), "01 FF 11 00 00", [Garbage(H("01FF110000"))]),
        (GeneralPoll(1), "01 FF", [Garbage(b"\1\xff")]),
        (LongPoll(1, 0x01), "01", [Ack(1)]),
        (LongPoll(1, 0x01), "81", [Nack(1)]),
        (LongPoll(1, 0x01), "01 00", [Busy(1)]),
        (LongPoll(1, 0x01), "01 01", [Garbage(b"\1\1")]),
        (LongPoll(1, 0x0F), "01 00", [Busy(1)]),
        (LongPoll(1, 0x0F), "01 00 00", [Garbage(b"\1\0\0")]),
        (LongPoll(1, 0x0F), "01", [Garbage(b"\1")]),  # it has data to send, so this is no acknowledgement
        (LongPoll(1, 0x11), "02 11 00 01 23 45 01 FD", [Garbage(H("02110001234501FD"))]),
        (LongPoll(1, 0x11), "01 12 00 01 23 45 01 FD", [Garbage(H("01120001234501FD"))]),
        (LongPoll(1, 0x11), "01 11 00 01 23 45 01", [Garbage(H("01110001234501"))]),
        (LongPoll(1, 0x11), "01 11 00 01 23 45 01 FC", [Garbage(H("01110001234501FC"))]),
        (LongPoll(1, 0x99), "01 99 00", [Garbage(H("019900"))]),
        (LongPoll(1, 0x11), "01 FF 11" + slow_crc(H("01FF11")).hex(), [RealTime(1, 0x11)]),
        (LongPoll(1, 0x11), "01 FF 4F 37" + slow_crc(H("01FF4F37")).hex(), [RealTime(1, 0x4F, b"\x37")]),
        (LongPoll(1, 0x11), "01 FF 11 00 00", [Garbage(H("01FF110000"))]),
    ],
)
def test_what_a_host_hears(poll: Poll, data: str, expected: list[Answer]) -> None:
    assert host(poll, H(data)) == expected
    assert host(poll, H(data), [*range(30)]) == expected


@pytest.mark.parametrize(
    ("command", "data"),
    [
        (0x11, "01 11 00 01 2A 45"),  # a digit that is none
        (0x11, "01 11 00 01 23 45 67"),  # a meter of five bytes
        (0x11, "01 12 00 01 23 45"),  # another poll's answer
        (0x87, "01 87 03 01 02 00"),  # two wins are said, none follows
        (0x54, "01 54 40 36 30 32"),  # its length says more than there is
        (0x2F, "01 2F 07 00 00 EE 00 00 00 05"),  # a meter code that is not known here
        (0x01, "01 01 00"),  # an answer where only an acknowledgement is expected
    ],
)
def test_an_answer_with_a_good_checksum_that_is_not_understood_is_unknown_and_no_damage(
    command: int, data: str
) -> None:
    frame = H(data)
    told = host(LongPoll(1, command), frame + slow_crc(frame))
    assert told == [Unknown(1, frame[1], frame[2:])]
    assert encode(told[0]) == frame + slow_crc(frame)
    assert host(LongPoll(1, command), frame + slow_crc(frame), [*range(30)]) == told


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b"AB12\0\0", "AB12"), (b"  AB12 ", "AB12"), (b"\xff\xffAB\xff", "AB"), (b"A\x01B", "A\\x01B"), (b"\0\0\0", "")],
)
def test_text_is_read_leniently(raw: bytes, text: str) -> None:
    frame = b"\x01\x54" + bytes((3 + len(raw),)) + b"602" + raw
    assert host(LongPoll(1, 0x54), frame + slow_crc(frame)) == [Reply(1, 0x54, Identity("602", text))]


def test_an_old_machine_may_send_fewer_flags() -> None:
    frame = H("01 A0 00 00 24 00 00")
    assert host(LongPoll(1, 0xA0), frame + slow_crc(frame)) == [Reply(1, 0xA0, Features(0, b"\x24\0\0"))]


def test_unasked_addresses_are_chirps() -> None:
    assert HostDecoder(5).feed(b"\x05") == [LoopBreak(5)]
    assert joined(HostDecoder(5).feed(b"\x05\x05ab\x05")) == [LoopBreak(5), LoopBreak(5), Garbage(b"ab"), LoopBreak(5)]
    assert HostDecoder(0x5D).feed(b"]x") == [LoopBreak(0x5D), Garbage(b"x")]  # a character that patterns are made of


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("01 99 81", [Garbage(H("019981"))]),  # unknown: dropped until a pause
        ("01 01 51 09 81", [Garbage(H("0101510981"))]),
        ("01", [Garbage(b"\1")]),
        ("01 01 51", [Garbage(H("010151"))]),
        ("81 80 01 0F 81", [GeneralPoll(1), GeneralPoll(0), LongPoll(1, 0x0F), GeneralPoll(1)]),
    ],
)
def test_what_a_machine_hears(data: str, expected: list[Any]) -> None:
    assert machine(H(data)) == expected
    assert machine(H(data), [*range(30)]) == expected


def test_after_a_pause_a_machine_hears_again() -> None:
    decoder = MachineDecoder()
    assert decoder.feed(H("01 01 51 09 55")) == [Garbage(H("0101510955"))]
    assert decoder.feed(b"\x81") == [Garbage(b"\x81")]
    assert decoder.quiet() == []
    assert decoder.feed(b"\x81") == [GeneralPoll(1)]


@given(st.lists(st.sampled_from([poll for _, poll in POLLS]), max_size=15), st.lists(st.integers(0, 400), max_size=20))
@settings(max_examples=at_length(25, 400), derandomize=True)
def test_polls_in_any_pieces(polls: list[Poll], cuts: list[int]) -> None:
    assert machine(b"".join(map(encode, polls)), cuts) == polls


NOISE = st.binary(max_size=400) | st.lists(
    st.sampled_from([b"\x01", b"\x81", b"\x01\x0f", b"\x01\xff", b"\x01\x00", b"\x01\x54\xff", H(REPLIES[0][0])]),
    max_size=80,
).map(b"".join)


@given(NOISE, st.lists(st.integers(0, 900), max_size=20), st.sampled_from([p for _, p in POLLS] + [LongPoll(1, 0x54)]))
@settings(max_examples=at_length(50, 1_000), derandomize=True)
def test_any_noise_in_any_pieces_is_the_same_and_bounded(data: bytes, cuts: list[int], poll: Poll) -> None:
    if poll == GeneralPoll(1) or isinstance(poll, LongPoll):
        assert host(poll, data, cuts) == host(poll, data)
    assert machine(data, cuts) == machine(data)
    ours, theirs = HostDecoder(1), MachineDecoder()
    ours.expect(poll)
    for at in range(0, len(data), 7):
        ours.feed(data[at : at + 7])
        theirs.feed(data[at : at + 7])
        assert len(ours._held) <= MAX_FRAME
        assert len(theirs._held) <= MAX_FRAME


def damaged(frame: bytes) -> Iterator[bytes]:
    for at in range(len(frame)):
        yield frame[:at] + frame[at + 1 :]
        yield frame[:at] + frame[at : at + 1] + frame[at:]
        for bit in range(8):
            yield frame[:at] + bytes((frame[at] ^ 1 << bit,)) + frame[at + 1 :]


@pytest.mark.parametrize(("frame", "reply"), REPLIES)
def test_one_damaged_byte_is_never_another_reply(frame: str, reply: Reply) -> None:
    for bad in damaged(H(frame)):
        told = [answer for answer in host(LongPoll(1, reply.command), bad) if isinstance(answer, Reply)]
        assert told in ([], [reply]), bad


@pytest.mark.parametrize(
    "message",
    [
        GeneralPoll(128),
        LongPoll(1, 0x99),
        LongPoll(1, 0x01, b"x"),
        LongPoll(1, 0x86, bytes(256)),
        Happened(256),
        Ack(0),
        Busy(128),
        RealTime(1, 0x11, bytes(300)),
        Reply(1, 0x01, HandpayReset(0)),
        Reply(1, 0x11, Meters({"coin_in": 10**8})),
        Reply(1, 0x11, Meters({"coin_out": 1})),
        Reply(1, 0x54, Identity("6.02", "X")),
        Reply(1, 0x54, Identity("602", "\n")),
        Reply(1, 0x54, Identity("602", "x" * 41)),
        Reply(1, 0x94, Number(1)),
        Reply(1, 0x1B, Handpay(1, 1, 10**10)),
    ],
)
def test_values_that_no_wire_can_carry(message: Poll | Answer) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(message)


def test_broadcasts() -> None:
    assert levels_of(broadcast(3, {1: 5, 32: 10**10 - 1})) == (3, {1: 5, 32: 10**10 - 1})
    assert levels_of(LongPoll(0, 0x80, H("01010000123456"))) == (1, {1: 123_456})
    for nonsense in ("0001000012345A", "01210000123456", "0101", "00010000123456"):
        assert levels_of(LongPoll(0, 0x80, H(nonsense))) is None
    for group, levels in ((0, {1: 1}), (1, {}), (1, {33: 1}), (1, {1: 10**10})):
        with pytest.raises(ValueError, match=r"."):
            broadcast(group, levels)


def test_exceptions_have_names() -> None:
    assert set(EXCEPTIONS) >= PRIORITY
    assert names([0x11, 0xEE]) == "11 slot door opened, EE unknown"


# ---- the link


@pytest.mark.parametrize("url", ["sas:///dev/ttyS0", "sas:///dev/ttyS0?baud=9600", "sas:?vid=0403&pid=6001"])
def test_urls(url: str) -> None:
    check(url)
    check_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("serial:///dev/ttyS0", "write sas:"),
        ("sas:///dev/ttyS0?parity=E", "its own parity"),
        ("sas:///dev/ttyS0?speed=9", "unknown speed"),
        ("sas:", "write sas:///dev/serial"),
        ("sas:?vid=xyz", "four hexadecimal digits"),
    ],
)
def test_urls_that_cannot_be(url: str, reason: str) -> None:
    with pytest.raises(BadUrl, match=reason) as refused:
        check(url)
    assert "serial:" not in str(refused.value).replace(url, "")


@contextlib.contextmanager
def pty() -> Iterator[tuple[int, str]]:
    ours, theirs = open_pty()
    try:
        yield ours, os.ttyname(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def open_pty() -> tuple[int, int]:
    """At the speed of a machine: it stays so where a test takes `tcsetattr` away."""
    ours, theirs = os.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[4:6] = [termios.B19200] * 2
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


async def test_a_pty_has_no_ninth_bit_and_carries_the_bytes_all_the_same() -> None:
    with pty() as (ours, path):
        async with open_link(f"sas://{path}") as link:
            assert isinstance(link, SasLink)
            held: HostLink = link
            assert not link.ninth_bit
            await held.write(H("01 01 51 08"))
            await asyncio.sleep(0.05)
            assert os.read(ours, 100) == H("01 01 51 08")
            os.write(ours, b"\xff\x00\x01\xff\xff")
            assert (await held.read()).data == b"\xff\x00\x01\xff\xff"
            assert (held.sent_bytes, held.received_bytes) == (4, 5)


async def test_the_first_byte_of_a_message_has_mark_parity_and_the_rest_space(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[object] = []
    with pty() as (ours, path):
        state: list[list[Any]] = []
        get = termios.tcgetattr

        def fake_set(_: int, __: int, attributes: list[Any]) -> None:
            state[:] = [attributes]
            parity = attributes[2] & (termios.PARENB | CMSPAR | termios.PARODD)
            log.append(
                {
                    termios.PARENB | CMSPAR | termios.PARODD: "mark",
                    termios.PARENB | CMSPAR: "space",
                }.get(parity, "none")
            )

        write = os.write

        def fake_write(descriptor: int, data: bytes) -> int:
            log.append(bytes(data))
            return write(descriptor, data)

        async with open_link(f"sas://{path}") as link:
            assert isinstance(link, SasLink)
            monkeypatch.setattr(termios, "tcgetattr", lambda port: state[0] if state else get(port))
            monkeypatch.setattr(termios, "tcsetattr", fake_set)
            monkeypatch.setattr(termios, "tcdrain", lambda _: log.append("drained"))
            monkeypatch.setattr(os, "write", fake_write)
            link.set_up()
            assert link.ninth_bit
            assert state[0][0] & (termios.INPCK | termios.PARMRK | termios.IGNPAR) == termios.INPCK | termios.PARMRK
            await link.write(H("01 01 51 08"))
            await link.write(b"\x81")
            monkeypatch.undo()
            heard = b""
            while len(heard) < 5:  # a pty hands on what it has
                heard += os.read(ours, 100)
            assert heard == H("01 01 51 08 81")
            assert link.sent_bytes == 5
            expected = ["space", "mark", b"\x01", "drained", "space", H("015108"), "mark", b"\x81", "drained", "space"]
            assert log == expected
            for piece in (b"a\xff", b"\xffb\xff\x00", b"\x01", b"\xff\x00\x01\xff\x00\x02c"):
                os.write(ours, piece)
                await asyncio.sleep(0.02)
            got = b""
            while len(got) < 4:
                got += (await link.read()).data
            assert got == b"a\xffbc"
            assert link.chirps == 3


async def test_a_port_that_sends_nothing_is_a_lost_link_and_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """To drain it would never end."""
    monkeypatch.setattr(links_sas, "_unsent", lambda _: 1)
    monkeypatch.setattr(links_sas, "PART_TIMEOUT_S", 0.05)
    with pty() as (_, path):
        async with asyncio.timeout(PATIENCE), open_link(f"sas://{path}") as link:
            assert isinstance(link, SasLink)
            link.ninth_bit = True
            with pytest.raises(LinkLost, match="the port sends nothing"):
                await link.write(b"\x81")


DRAIN_HANGS = r"""
import asyncio, sys, termios, threading
from daemon.edge.links import link, sas
termios.tcdrain = lambda port: threading.Event().wait()
termios.tcsetattr = lambda *_: None

async def use(url):
    try:
        async with sas.open_link(url) as machine:
            sas.HANG_TIMEOUT = 0.2  # from here on nothing returns: before, a busy machine may be slow
            machine.ninth_bit = True
            await machine.write(b"\x81")
    except link.LinkLost as lost:
        print(lost)

async def twice(url):
    await use(url)
    await use(url)

asyncio.run(twice(sys.argv[1]))
"""


def test_port_that_hangs_while_it_sends_is_a_lost_link_and_the_process_ends() -> None:
    """A hanging adapter never returns from tcdrain."""
    with pty() as (_, path):
        ended = subprocess.run(
            [sys.executable, "-c", DRAIN_HANGS, f"sas://{path}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        f"{path} hangs: unplug it, or its hub",
        f"{path} does not open, and the last try still hangs: unplug it, or its hub",
    ]


async def test_message_in_progress_at_a_hang_up_reaches_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the port's descriptor is used again as soon as the port is closed."""
    waits, go_on = threading.Event(), threading.Event()

    def unsent(_: int) -> int:
        waits.set()
        go_on.wait(PATIENCE)
        return 0

    monkeypatch.setattr(links_sas, "_unsent", unsent)
    ours, theirs = open_pty()
    for name in ("tcsetattr", "tcdrain"):
        monkeypatch.setattr(termios, name, lambda *_: None)
    other, ends_here = os.pipe()
    os.set_blocking(other, False)
    async with asyncio.timeout(PATIENCE), open_link(f"sas://{os.ttyname(theirs)}") as link:
        assert isinstance(link, SasLink)
        link.ninth_bit = True
        number = link._stream.fileno()
        writing = asyncio.ensure_future(link.write(b"\x81"))
        await asyncio.to_thread(waits.wait)
        os.close(theirs)
        os.close(ours)
        await link._stream._gone.wait()
        os.dup2(ends_here, number)
        go_on.set()
        with pytest.raises(LinkLost):
            await writing
        with pytest.raises(BlockingIOError):
            os.read(other, 1)
    for descriptor in (other, ends_here, number):
        os.close(descriptor)


async def test_a_port_that_is_not_there_is_a_lost_link() -> None:
    with pytest.raises(LinkLost, match="is not there"):
        async with open_link("sas:///dev/serial/by-id/nothing"):
            pass


async def test_a_pulled_cable_is_a_lost_link() -> None:
    ours, theirs = os.openpty()
    path = os.ttyname(theirs)
    async with open_link(f"sas://{path}") as link:
        os.close(theirs)
        os.close(ours)
        with pytest.raises(LinkLost):
            await link.read()


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        ("tcp://10.0.7.3:4001", True),
        ("rfc2217://10.0.7.3:4001", True),
        ("socket://10.0.7.3:4001", True),
        ("sas:///dev/ttyS0", False),
        ("serial:///dev/ttyS0", True),
        ("serial:?vid=0403&pid=6001", True),
        ("serial:///dev/pts/999", False),  # a simulated machine on a pseudo terminal
    ],
)
def test_a_machine_without_the_wakeup_bit_is_refused_with_the_reason(tmp_path: Path, url: str, mistake: bool) -> None:
    """No network link carries the ninth bit in time, no plain port sends it: the machine would hear no poll."""
    path = tmp_path / "feltd.toml"
    path.write_text(
        '[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\nhost = "127.0.0.1"\n[[table]]\nname = "t"\n'
        f'[[table.device]]\nname = "slot"\ndriver = "sas_machine"\nurl = "{url}"\n',
        encoding="utf-8",
    )
    mistakes = device_mistakes(load(path), path)
    reasons = [one for one in mistakes if "wakeup bit" in one]
    assert len(reasons) == len(mistakes) == mistake
    if mistake:
        assert f"{path}:12: {url}: " in reasons[0]
        assert "write sas:///dev/serial/by-id/NAME" in reasons[0]
        with_adapter = path.read_text(encoding="utf-8") + "[table.device.options]\nadapter = true\n"
        path.write_text(with_adapter, encoding="utf-8")
        assert not any("wakeup bit" in one for one in device_mistakes(load(path), path))


def test_a_simulated_machine_is_known_through_the_link_that_names_its_port(tmp_path: Path) -> None:
    port = tmp_path / "slot"
    port.symlink_to("/dev/pts/999")
    assert refusal(f"serial://{port}") == ""
