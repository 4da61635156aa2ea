"""The Alpha sign protocol as others wrote it down, and alphasignpy run against our codec, both ways.

Vectors, all public:
  https://github.com/tenderlove/betabrite  test/test_memory.rb, test/test_set_string.rb
  https://github.com/mjaksn/readerboard  tests/test_frames.py, tests/test_replies.py, readerboard/protocol/constants.py
  https://github.com/lancereinsmith/alphasignpy  docs/protocol-reference.md, and the package itself (PyPI)
"""

from collections.abc import Callable
from typing import Any

import alphasign
import msgspec
import pytest
from alphasign.commands.special import ReadSpecialFunction, WriteSpecialFunction
from alphasign.commands.string_file import (
    ReadString as TheirReadString,
    WriteString as TheirWriteString,
    parse_read_string_response,
)
from alphasign.commands.text import ReadText as TheirReadText, WriteText as TheirWriteText, parse_read_text_response
from alphasign.exceptions import NAKError
from alphasign.packet import Packet
from alphasign.protocol import (
    DELAY,
    DisplayMode,
    DisplayPosition,
    FileProtection,
    FileType,
    SpecialFunction,
    SpecialMode,
)
from hypothesis import given, settings, strategies as st

from protocols.alpha_sign import (
    Ack,
    Beep,
    ClearErrors,
    Command,
    ConfigureMemory,
    Decoder,
    Errors,
    File,
    Frame,
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

HEAD = b"\x00" * 5 + b"\x01Z00"
BETABRITE = b"\x00" * 6 + b"\x01^00"
PRICES = ("11045.28 ", "2.41 ", "19.92 ", "16.56 ", "3.37 ", "16.47 ")

# test_memory.rb, as the decimal bytes stand there
TEXT_FILE = bytes([0, 0, 0, 0, 0, 1, 90, 48, 48, 2, 69, 36, 65, 65, 85, 48, 49, 48, 48, 70, 70, 48, 48, 4])
STRING_FILE = bytes([0, 0, 0, 0, 0, 1, 90, 48, 48, 2, 69, 36, 48, 66, 76, 48, 48, 50, 48, 48, 48, 48, 48, 4])
DOTS_FILE = bytes([0, 0, 0, 0, 0, 1, 90, 48, 48, 2, 69, 36, 49, 68, 85, 48, 55, 48, 55, 52, 48, 48, 48, 4])
# test_set_string.rb: six strings nested, with ETX and without checksums
PRICE_BOARD = bytes.fromhex(
    "00 00 00 00 00 01 5a 30 30 02 47 30 31 31 30 34 35 2e 32 38 20 03 02 47 31 32 2e 34 31 20 03 02"
    "47 32 31 39 2e 39 32 20 03 02 47 33 31 36 2e 35 36 20 03 02 47 34 33 2e 33 37 20 03 02 47 35 31"
    "36 2e 34 37 20 03 04"
)

VECTORS: list[tuple[bytes, tuple[Command, ...]]] = [
    (TEXT_FILE, (ConfigureMemory((File("A", "A", 256, False, "FF00"),)),)),
    (STRING_FILE, (ConfigureMemory((File("0", "B", 32, True, "0000"),)),)),
    (DOTS_FILE, (ConfigureMemory((File("1", "D", 0x0707, False, "4000"),)),)),
    (PRICE_BOARD, tuple(WriteString(str(n), price) for n, price in enumerate(PRICES))),
    # test_frames.py
    (BETABRITE + b"\x02AA\x1b bHI\x04", (WriteText("A", (Segment("HI"),)),)),
    (BETABRITE + b"\x02AB\x1b0aHI\x04", (WriteText("B", (Segment("HI", "0", "a"),)),)),
    (BETABRITE + b"\x02AC\x1b n7HI\x04", (WriteText("C", (Segment("HI", " ", "n7"),)),)),
    (BETABRITE + b"\x02A0\x04", (WriteText("0"),)),
    (BETABRITE + b"\x02E$AAU0100FFFF\x04", (ConfigureMemory((File("A", "A", 256, False, "FFFF"),)),)),
    (BETABRITE + b"\x02E$\x04", (ConfigureMemory(),)),
    (BETABRITE + b"\x02E.SUABC\x04", (RunSequence("ABC", "S"),)),
    (BETABRITE + b"\x02E.TUA\x04", (RunSequence("A"),)),
    (BETABRITE + b"\x02E.SLA\x04", (RunSequence("A", "S", True),)),
    (BETABRITE + b"\x02E.SU\x04", (RunSequence("", "S"),)),
    (BETABRITE + b"\x02E,\x04", (SoftReset(),)),
    (BETABRITE + b"\x02E 0905\x04", (Other("E", " 0905"),)),
    (
        BETABRITE + b"\x02AA\x1b b\x1c218.4\x08I \x1c1\x13\x04",  # a colour, a degree sign, the time of day
        (WriteText("A", (Segment("\x1c218.4\x08I \x1c1\x13"),)),),
    ),
    # the read of the error register, its clearing, and ACK/NAK switched on: constants.py and protocol.py agree on codes
    (HEAD + b"\x02F*\x04", (ReadErrors(),)),
    (HEAD + b"\x02E4\x04", (ClearErrors(),)),
    (HEAD + b"\x02Es1\x04", (Other("E", "s1"),)),
]


@pytest.mark.parametrize(("data", "commands"), VECTORS)
def test_public_vectors_both_ways(data: bytes, commands: tuple[Command, ...]) -> None:
    (frame,) = Decoder().feed(data)
    assert isinstance(frame, Frame)
    assert (frame.commands, frame.sync) == (commands, len(data) - len(data.lstrip(b"\x00")))
    if len(commands) == 1:  # several at once are sent with their checksums, which this source leaves out
        assert encode(frame) == data
    else:
        checked = Decoder(unchecked=False).feed(encode(msgspec.structs.replace(frame, checked=True)))
        assert [one.commands for one in checked if isinstance(one, Frame)] == [commands]


def test_an_answer_as_the_manual_s_example_has_it() -> None:
    """test_replies.py: twenty NULs, type and address 0 00, the write command's code."""
    said = '"1044-160B01931433M004000,0BB8'
    data = (
        b"\x00" * 20 + b"\x01000\x02E" + said.encode() + b"\x03" + b"%04X" % (sum(b"E" + said.encode()) + 5) + b"\x04"
    )
    (frame,) = Decoder(unchecked=False).feed(data)
    assert isinstance(frame, Frame)
    assert (frame.kind, frame.address, frame.sync, frame.commands) == ("0", "00", 20, (Other("E", said),))


# ---- alphasignpy

MODES = {mode: mode.value.decode() for mode in DisplayMode if mode is not DisplayMode.SPECIAL}
SPECIALS = {mode: "n" + mode.value.decode() for mode in SpecialMode}


def sent(command: Any, **kind: Any) -> bytes:
    """What its Sign sends: the pauses are taken out."""
    packet = Packet(**kind)
    packet.add(command)
    return bytes(packet.to_bytes()).replace(bytes(DELAY), b"")


PAIRS: list[tuple[Callable[[], Any], Command]] = [
    (lambda: TheirWriteString("$12,345.67", label="a"), WriteString("a", "$12,345.67")),
    (lambda: TheirReadString("a"), ReadString("a")),
    (lambda: TheirReadText("A"), ReadText("A")),
    (lambda: TheirReadText("0"), ReadText("0")),
    (lambda: WriteSpecialFunction.soft_reset(), SoftReset()),
    (lambda: WriteSpecialFunction.set_run_sequence("TUA"), RunSequence("A")),
    (lambda: WriteSpecialFunction.clear_error_status(), ClearErrors()),
    (lambda: WriteSpecialFunction.generate_tone(2, 0x40, 1, 2), Beep(0x40, 1, 2)),
    (lambda: ReadSpecialFunction(SpecialFunction.SERIAL_ERROR_STATUS), ReadErrors()),
    (lambda: ReadSpecialFunction(SpecialFunction.MEMORY_CONFIG), ReadMemory()),
    (lambda: ReadSpecialFunction(SpecialFunction.RUN_SEQUENCE), ReadRunSequence()),
    (
        lambda: WriteSpecialFunction.configure_memory(
            [
                {"label": "A", "type": FileType.TEXT, "size": 256, "stop_time": 0},
                {"label": "a", "type": FileType.STRING, "size": 64, "protection": FileProtection.LOCKED},
            ]
        ),
        ConfigureMemory((File("A", "A", 256, times="FF00"), File("a", "B", 64, locked=True))),
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_alphasignpy_and_our_codec_send_the_same_bytes(theirs: Callable[[], Any], ours: Command) -> None:
    data = sent(theirs())
    assert encode(Frame((ours,))) == data
    (frame,) = Decoder(unchecked=False).feed(data)
    assert isinstance(frame, Frame)
    assert frame.commands == (ours,)


@pytest.mark.parametrize("mode", [*MODES, *SPECIALS])
@pytest.mark.parametrize("position", list(DisplayPosition))
def test_every_mode_and_position_of_alphasignpy(mode: Any, position: DisplayPosition) -> None:
    special = isinstance(mode, SpecialMode)
    command = TheirWriteText(
        "JACKPOT",
        label="0",
        position=position,
        mode=DisplayMode.SPECIAL if special else mode,
        special_mode=mode if special else None,
    )
    code = SPECIALS[mode] if special else MODES[mode]
    ours = WriteText("0", (Segment("JACKPOT", position.value.decode(), code),))
    assert Decoder(unchecked=False).feed(sent(command))[0] == Frame((ours,), raw=sent(command)[5:])
    assert encode(Frame((ours,))) == sent(command)


LABELS = st.sampled_from([chr(code) for code in range(0x20, 0x7F) if chr(code) != "?"])
TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=100)


@given(LABELS, TEXTS, st.sampled_from("0123456789ABCDEF"), st.sampled_from("0123456789ABCDEF"))
@settings(max_examples=200, derandomize=True)
def test_any_string_for_any_sign_is_the_same_by_both(label: str, text: str, high: str, low: str) -> None:
    data = sent(TheirWriteString(text, label=label), type_code=b"^", address=high + low)
    assert encode(Frame((WriteString(label, text),), "^", high + low)) == data
    answer = encode(Frame((WriteString(label, text),), "0", "00", 20))
    assert parse_read_string_response(answer) == (label, text.encode())
    shown = encode(Frame((WriteText(label, (Segment(text),)),), "0", "00", 20))
    assert parse_read_text_response(shown) == (label, DisplayPosition.MIDDLE_LINE, DisplayMode.HOLD, text.encode())


# docs/protocol-reference.md, the table of the serial error status register
REGISTER = [
    (0x20, Errors.ILLEGAL, "illegal command/label"),
    (0x10, Errors.CHECKSUM, "checksum error"),
    (0x08, Errors.OVERFLOW, "buffer overflow"),
    (0x04, Errors.TIMEOUT, "serial timeout"),
    (0x02, Errors.FRAMING, "bit framing error"),
    (0x01, Errors.PARITY, "parity error"),
]


@pytest.mark.parametrize(("mask", "error", "words"), REGISTER)
def test_each_bit_of_the_error_register(mask: int, error: Errors, words: str) -> None:
    assert Decoder().feed(bytes([0x15, 0x40 | mask])) == [Nak(error, bytes([0x15, 0x40 | mask]))]
    assert words in str(NAKError(0x40 | mask))
    (frame,) = Decoder().feed(HEAD + b"\x02E*" + bytes([0x40 | mask]) + b"\x04")
    assert isinstance(frame, Frame)
    assert frame.commands == (SerialErrors(error),)


def test_an_ack_without_error_has_status_40() -> None:
    assert Decoder().feed(b"\x06\x40") == [Ack(Errors(0), b"\x06\x40")]
    assert "no specific error bits" in str(NAKError(0x40))


class Port:
    """The serial port under alphasignpy's Sign: our simulated sign would answer what is read here."""

    is_open = True

    def __init__(self, answers: bytes) -> None:
        self.answers = answers
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def read(self, size: int = 1) -> bytes:
        said, self.answers = self.answers[:size], self.answers[size:]
        return said


@pytest.mark.parametrize(("answer", "refused"), [(Ack(Errors(0)), False), (Nak(Errors.ILLEGAL), True)])
def test_alphasignpy_s_sign_understands_our_ack_and_nak(answer: Ack | Nak, refused: bool) -> None:
    alphasign.Sign._reset()
    sign = alphasign.Sign()
    port = Port(encode(answer))
    sign._ser = port
    sign.enable_ack_nak(strict=True)
    packet = Packet()
    packet.add(TheirWriteString("1.00", label="a"))
    if refused:
        with pytest.raises(NAKError, match="illegal command/label"):
            sign.send(packet)
    else:
        sign.send(packet)
    assert port.answers == b""  # the status byte was taken, too
    (frame,) = Decoder(unchecked=False).feed(port.written)
    assert isinstance(frame, Frame)
    assert frame.commands == (WriteString("a", "1.00"),)
    alphasign.Sign._reset()
