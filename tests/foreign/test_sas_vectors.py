"""SAS: bytes, lengths and tables of sources that nobody here wrote, read and written by our codec.

Sources, by the names used below:

    saspy     a host, Python     https://github.com/thomas-pythonas/saspy (sas.py and dictionaries/gpoll.json)
    twlv      a host, Python     https://github.com/TWLV-Gaming/sasprotocol (models/LPrealtime.py)
    ncompass  a host, C++        https://github.com/lakeshsharma/nCompass (Sentinel/SASProtocol/LongPollXXMessage.cpp)
    monaco    a machine, C#      the classes LPXX...Parser of the namespace Aristocrat.Sas.Client.LPParsers, and their
                                 tests in Aristocrat.SasClient.Tests.Parsers (public source; read in an index of public
                                 code that names the classes and not the repository)
    emulator  a machine, C++     https://github.com/louiev06/egm-emulator (POLL_IMPLEMENTATION_TODO.md)
    unity     a machine, C#      https://github.com/SeaweedZheng/u3d-psson152-dll-line (SasConstant.cs)
    montana   a regulator        Implementation Guide for SAS Serial Protocol 1.5.0, Montana Department of Justice,
                                 https://vdocuments.us/implementation-guide-sas-serial-protocol.html

The package `saspy` on PyPI is another program (SAS Institute's). Quoted are facts, not code. The tests of `monaco` end
before the checksum: it is added by crcmod, which nobody here wrote either.

Where the sources disagree:

    A0        saspy reads three bytes of flags; monaco, ncompass and the restated standard have six, 12 bytes in all.
    2D        saspy expects 8 bytes; ncompass and the standard's poll of type M 10, with the game's number.
    1B        a win that is not progressive has level 0 (monaco: NonProgressiveWin) or 40 (NonProgressiveTopWin; the
              comment of the same class says "40 = non progressive win"). Both are told as level 0.
    7B        ncompass sets bit 7 for the secure configuration and says itself that the standard has bit 15, as monaco.
    3D        ncompass copies from the first byte of the answer; the length of 13 is the same everywhere.
    6E, 55    unity queues exception 6E; it counts 55 among those that may be said first.
    52        emulator counts 20 bytes; the fields that it lists are 22, as in ncompass.
"""

import crcmod.predefined  # type: ignore[import-untyped]
import pytest
from helpers import at_length
from hypothesis import given, settings, strategies as st

from protocols.sas.frames import (
    HostDecoder,
    MachineDecoder,
    encode,
    game_poll,
    meters_poll,
)
from protocols.sas.messages import (
    Answer,
    Body,
    Clock,
    ExtendedMeters,
    Features,
    GameInfo,
    GeneralPoll,
    Handpay,
    Identity,
    LongPoll,
    Meters,
    Nack,
    Poll,
    RealTime,
    Reply,
    SelectedMeters,
    Ticket,
    Unknown,
    Validation,
    ValidationId,
    ValidationMeters,
    ValidationStatus,
)
from protocols.sas.tables import (
    CANCELLED_CREDITS,
    EXCEPTIONS,
    METER_CODES,
    NO_PROGRESSIVE,
    PRIORITY,
    VALIDATIONS,
)
from protocols.sas.values import crc

H = bytes.fromhex
KERMIT = crcmod.predefined.mkPredefinedCrcFun("kermit")


def sealed(data: str) -> bytes:
    """`data` with the checksum of a program of others."""
    return H(data) + int(KERMIT(H(data))).to_bytes(2, "little")


def heard(poll: Poll, data: bytes) -> list[Answer]:
    decoder = HostDecoder(1)
    decoder.expect(poll)
    return decoder.feed(data) + decoder.quiet()


# ---- checksum


@given(st.binary(max_size=300))
@settings(max_examples=at_length(200, 20_000), derandomize=True)
def test_the_checksum_is_that_of_crcmod(data: bytes) -> None:
    assert crc(data) == int(KERMIT(data)).to_bytes(2, "little")


@pytest.mark.parametrize(
    "frame",
    [
        "01 01 51 08",  # a host script quoted in the facts: shut down
        "01 94 75 CB",  # tests of a public host with a mock port: remote handpay reset
        "01 21 00 00 5C 45",  # saspy's first sample: ROM signature
    ],
)
def test_frames_that_were_printed_with_their_checksum(frame: str) -> None:
    assert H(frame)[-2:] == crc(H(frame)[:-2])
    assert encode(MachineDecoder().feed(H(frame))[0]) == H(frame)


# ---- polls


@pytest.mark.parametrize(
    ("poll", "data"),
    [
        # monaco, LP4DSendEnhancedValidationInformationParserTests: 00 reads, FF looks ahead
        (LongPoll(1, 0x4D, b"\x00"), "01 4D 00"),
        (LongPoll(1, 0x4D, b"\xff"), "01 4D FF"),
        # monaco, LP7BExtendedValidationStatusParserTests; a mask of zero changes nothing
        (LongPoll(1, 0x7B, H("3F803F8099990999")), "01 7B 08 3F 80 3F 80 99 99 09 99"),
        # monaco, LP4CSetValidationIdParserTest; machine 0 asks (comment of LP4CSetValidationIdNumberParser)
        (LongPoll(1, 0x4C, H("001234112233")), "01 4C 00 12 34 11 22 33"),
        # monaco, LP50SendValidationMetersParserTests
        (LongPoll(1, 0x50, b"\x80"), "01 50 80"),
        # monaco, LP2FSendSelectedMetersForGameNParserTest: game 9876; two meters of game 1
        (meters_poll(1, 0x2F, (0x0C, 0x05, 0x1B, 0x0D), 9876), "01 2F 06 98 76 0C 05 1B 0D"),
        # monaco, SendExtendedMetersForGameNParserTests: codes of two bytes, low byte first
        (meters_poll(1, 0x6F, (0x0C, 0x05, 0x1B, 0x0D), 9876), "01 6F 0A 98 76 0C 00 05 00 1B 00 0D 00"),
        # ncompass, LongPollA0Message::Fill and LongPoll0EMessage::Fill
        (game_poll(1, 0xA0, 1), "01 A0 00 01"),
        (LongPoll(1, 0x0E, b"\x01"), "01 0E 01"),
        (LongPoll(1, 0x0E, b"\x00"), "01 0E 00"),
    ],
)
def test_polls_with_data(poll: LongPoll, data: str) -> None:
    assert encode(poll) == sealed(data)
    assert MachineDecoder().feed(sealed(data)) == [poll]


TYPES = {  # twlv, LPrealtime.STATUS_MAP: R has neither data nor checksum
    "R": "0F 10 11 12 13 14 15 16 17 18 19 1A 1B 1C 1E 1F 20 2A 2B 31 32 33 34 35 36 37 38 39 3A 3D 46 48 4F 51 54 55 "
    "56 7E 84 85 87 B1 B3",
    "S": "01 02 03 04 05 06 07 0E 21 4C 4D 50 7B 7F 80 86 94",
    "M": "2D 2F 52 53 6F 83 A0 AF",
}
DATA = {0x0E: 1, 0x21: 2, 0x4C: 6, 0x4D: 1, 0x50: 1, 0x7B: 8, 0x7F: 7, 0x80: 7, 0x86: 13, 0x2F: 3, 0x6F: 4, 0xAF: 4}


@pytest.mark.parametrize(("kind", "command"), [(k, int(c, 16)) for k, codes in TYPES.items() for c in codes.split()])
def test_polls_are_of_the_type_that_others_give_them(kind: str, command: int) -> None:
    data = bytes(DATA.get(command, 2 if kind == "M" else 0))
    sent = encode(LongPoll(1, command, data))
    assert sent == bytes((1, command)) if kind == "R" else sent[-2:] == crc(sent[:-2])


def test_polls_of_the_regulators_guide_are_known() -> None:
    required = "2F 31 32 33 34 35 36 37 3D 4C 4D 50 54 6F 7B 7E"
    for command in (int(code, 16) for code in required.split()):
        encode(LongPoll(1, command, bytes(DATA.get(command, 0))))


# ---- answers

ANSWERS: list[tuple[str, Poll, str, Body]] = [
    (
        "monaco, LPA0SendEnabledFeaturesParserTest: four bytes of flags, two reserved",
        game_poll(1, 0xA0, 1),
        "01 A0 00 01 D5 C6 C7 00 00 00",
        Features(1, H("D5C6C7000000")),
    ),
    (
        "monaco, LP4DSendEnhancedValidationInformationParserTests: a cashable ticket",
        LongPoll(1, 0x4D, b"\x00"),
        "01 4D 00 0A 01032019 153058 6429188185446104 0000000100 0100 01 00009999 0300",
        Validation(0, 10, "2019-01-03T15:30:58", "6429188185446104", 100, 1, 1, "00009999", 3),
    ),
    (
        "the same: no record",
        LongPoll(1, 0x4D, b"\xff"),
        "01 4D" + "00" * 31,
        Validation(0, 0, "0000-00-00T00:00:00", "0" * 16, 0, 0, 0, "0" * 8, 0),
    ),
    (
        "monaco, LP50SendValidationMetersParserTests: cashable tickets redeemed",
        LongPoll(1, 0x50, b"\x80"),
        "01 50 80 00001254 0165241152",
        ValidationMeters(0x80, 1254, 165_241_152),
    ),
    (
        "monaco, LP7BExtendedValidationStatusParserTests: asset 123, all enabled",
        LongPoll(1, 0x7B, bytes(8)),
        "01 7B 0A 7B000000 3F80 9999 0999",
        ValidationStatus(123, 0x803F, 9999, 999),
    ),
    (
        "the same: the printer is a cash-out device",
        LongPoll(1, 0x7B, bytes(8)),
        "01 7B 0A 7B000000 0100 9999 0999",
        ValidationStatus(123, 0x0001, 9999, 999),
    ),
    (
        "monaco, LP4CSetValidationIdParserTest: 001234 and 112233, low byte first",
        LongPoll(1, 0x4C, bytes(6)),
        "01 4C 341200 332211",
        ValidationId(0x1234, 0x112233),
    ),
    (
        "monaco, LP2FSendSelectedMetersForGameNParserTest: the last one of five bytes",
        meters_poll(1, 0x2F, (0x0C, 0x05, 0x1B, 0x0D), 9876),
        "01 2F 17 9876 0C 00001234 05 00005678 1B 00009012 0D 0000006789",
        SelectedMeters(9876, {0x0C: 1234, 0x05: 5678, 0x1B: 9012, 0x0D: 6789}),
    ),
    (
        "monaco, SendExtendedMetersForGameNParserTests",
        meters_poll(1, 0x6F, (0x0C, 0x05, 0x1B, 0x0D), 9876),
        "01 6F 1F 9876 0C00 04 00001234 0500 04 00005678 1B00 04 00009012 0D00 05 0000006789",
        ExtendedMeters(9876, {0x0C: 1234, 0x05: 5678, 0x1B: 9012, 0x0D: 6789}),
    ),
    (
        "ncompass, LongPoll6FMessage: some machines send a meter of no bytes",
        meters_poll(1, 0x6F, (0x17, 0x00)),
        "01 6F 0C 0000 1700 00 0000 04 00000005",
        ExtendedMeters(0, {0x00: 5}),
    ),
    (
        "monaco, LP1BSendHandpayInfoParserTest: cancelled credits of group 81; ten bytes that older texts leave unused",
        LongPoll(1, 0x1B),
        "01 1B 51 80 0000001000 0000 00 0000000500 0000000000",
        Handpay(0x51, CANCELLED_CREDITS, 1000, 0, 0, H("00000005000000000000")),
    ),
    (
        "monaco, LevelId: a win that is not progressive",
        LongPoll(1, 0x1B),
        "01 1B 00 40 0000123456 0000 01" + "00" * 10,
        Handpay(0, NO_PROGRESSIVE, 123_456, 0, 1),
    ),
    (
        "monaco, LP1FSendMachineIdAndInfoParserTest: a paytable of three characters is filled with NUL",
        LongPoll(1, 0x1F),
        "01 1F" + b"AT012".hex() + "01 C9 12 0000" + b"123\0\0\x009050".hex(),
        GameInfo("AT", "012", 1, 0xC9, 0x12, 0, "123", "9050"),
    ),
    (
        "monaco, LP1FSendMachineIdAndInfoParser: game options are binary, so low byte first",
        LongPoll(1, 0x1F),
        "01 1F" + b"AT012".hex() + "01 C9 12 0100" + b"1234569050".hex(),
        GameInfo("AT", "012", 1, 0xC9, 0x12, 1, "123456", "9050"),
    ),
    (
        "the restated standard: a serial number of 0 to 40 bytes, here filled with NUL",
        LongPoll(1, 0x54),
        "01 54 0B" + b"602AB12\0\0\0\0".hex(),
        Identity("602", "AB12"),
    ),
    (
        "monaco, LP3DSendCashOutTicketInformationParserTest: 33761282 of 8012.50",
        LongPoll(1, 0x3D),
        "01 3D 33761282 0000801250",
        Ticket("33761282", 801_250),
    ),
    (
        "monaco, LP7ESendDateTimeParserTest: 10-23-1984 08:59:34",
        LongPoll(1, 0x7E),
        "01 7E 10231984085934",
        Clock("1984-10-23T08:59:34"),
    ),
    (
        "ncompass, LongPoll31Message: four bytes of BCD",
        LongPoll(1, 0x31),
        "01 31 00001234",
        Meters({"bills_1": 1234}),
    ),
]


@pytest.mark.parametrize(("source", "poll", "data", "body"), ANSWERS)
def test_answers(source: str, poll: LongPoll, data: str, body: Body) -> None:
    assert heard(poll, sealed(data)) == [Reply(1, poll.command, body)], source
    assert MachineDecoder().feed(encode(poll)) == [poll]


LENGTHS = {  # of whole answers: what saspy and ncompass read, and what emulator counts
    **dict.fromkeys((0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1A), 8),  # saspy, emulator
    **dict.fromkeys((0x20, 0x2A, 0x2B, 0x46, *range(0x31, 0x3B)), 8),  # saspy, ncompass, emulator
    0x0F: 28,  # saspy
    0x19: 24,  # saspy
    0x1B: 24,  # ncompass
    0x1C: 36,  # saspy, ncompass, emulator
    0x1E: 28,  # saspy, emulator
    0x2D: 10,  # ncompass
    0x3D: 13,  # ncompass
    0x4D: 35,  # ncompass
    0x50: 14,  # saspy and ncompass by their fields
    0x51: 6,  # saspy, emulator
    0x52: 22,  # saspy
    0x55: 6,  # saspy, emulator
    0x7E: 11,  # saspy
    0x84: 11,  # emulator
    0x85: 11,  # emulator
    0xA0: 12,  # ncompass
    0xB1: 5,  # emulator
}


@pytest.mark.parametrize(("command", "length"), LENGTHS.items())
def test_answers_are_as_long_as_others_read_them(command: int, length: int) -> None:
    frame = sealed(f"01{command:02X}" + "00" * (length - 4))
    [answer] = heard(LongPoll(1, command), frame)
    assert isinstance(answer, Reply)
    assert encode(answer) == frame


def test_a_refused_poll_is_answered_with_the_address_and_80() -> None:
    """monaco answers each malformed poll so (SasConstants.Nack), for example an index that cannot be."""
    assert heard(LongPoll(1, 0x4D, b"\x20"), b"\x81") == [Nack(1)]


def test_a_real_time_event_comes_in_place_of_an_answer() -> None:
    """The restated standard, 12.5: address, FF, exception, data, checksum."""
    assert heard(LongPoll(1, 0x0F), sealed("01 FF 4F 37 01 00000012")) == [RealTime(1, 0x4F, H("370100000012"))]


@pytest.mark.parametrize("poll", [LongPoll(1, 0x11), LongPoll(1, 0xA0, b"\0\0"), LongPoll(1, 0x54), GeneralPoll(1)])
@given(command=st.integers(1, 0xFE), data=st.binary(min_size=1, max_size=250))
@settings(max_examples=at_length(60, 5000), derandomize=True)
def test_a_good_checksum_is_never_damage(poll: Poll, command: int, data: bytes) -> None:
    [answer] = heard(poll, sealed(f"01{command:02X}" + data.hex()))
    assert isinstance(answer, Reply | Unknown)
    assert not isinstance(answer, Unknown) or (answer.command, answer.data) == (command, data)


# ---- tables

GPOLL = (  # saspy, dictionaries/gpoll.json, without its own "01: No Response"
    "00 11 12 13 14 15 16 17 18 19 1A 1B 1C 1D 1E 1F 20 21 22 23 24 25 27 28 29 2A 2B 2C 2D 2E 31 32 33 34 35 36 37 38 "
    "39 3A 3B 3C 3D 3E 3F 40 41 42 43 44 45 46 47 48 49 4A 4B 4C 4D 4E 4F 50 51 52 53 54 55 56 57 60 61 66 67 68 69 6A "
    "6B 6C 6D 6E 6F 70 71 72 74 75 76 77 78 79 7A 7B 7C 7E 7F 80 81 82 83 84 85 86 87 88 89 8A 8B 8C 8E 8F 98 99 9A 9B"
)
WORDS = {  # a word of each meaning that matters to money or doors, saspy's beside ours
    0x11: "slot door",
    0x14: "drop door",
    0x1B: "cashbox removed",
    0x2C: "counterfeit",
    0x3D: "ticket printed",
    0x3F: "validation id",
    0x48: "5",
    0x4D: "2",
    0x4E: "500",
    0x50: "200",
    0x51: "handpay pending",
    0x52: "handpay reset",
    0x57: "system validation request",
    0x67: "ticket inserted",
    0x70: "buffer overflow",
    0x77: "ribbon",
}
FIRST = "3F 56 57 67 68 69 6A 6B 6C 6D 6F 70 8F"  # unity: P
EITHER = "3D 3E 51 52 55"  # unity: Q/P


def test_the_table_of_exceptions_is_complete() -> None:
    assert {f"{code:02X}" for code in EXCEPTIONS} == set(GPOLL.split())
    for code, word in WORDS.items():
        assert word in EXCEPTIONS[code], code


def test_priority_exceptions() -> None:
    first, either = ({int(code, 16) for code in codes.split()} for codes in (FIRST, EITHER))
    assert first <= PRIORITY <= first | either


def test_meters_of_five_bytes_are_the_tickets_in_cents() -> None:
    """monaco, SasMeterCollection; ncompass, LongPoll2FMessage::MeterReceived."""
    assert {code for code, (_, width) in METER_CODES.items() if width == 5} == {0x0D, 0x0E, 0x0F, 0x10}
    assert {width for _, width in METER_CODES.values()} == {4, 5}


def test_kinds_of_validation() -> None:
    """monaco, comment of LP4DSendEnhancedValidationInformationParser (table 15.13c); ncompass, LongPoll4DMessage."""
    kinds = {0x00, 0x01, 0x02, 0x03, 0x04, 0x10, 0x20, 0x40, 0x60, 0x80, 0x81, 0x82}
    assert set(VALIDATIONS) == kinds
    assert "redeemed" in VALIDATIONS[0x80]
    assert "no receipt" in VALIDATIONS[0x60]


@pytest.mark.parametrize(
    ("first", "validation", "redemption"),
    [  # monaco, LPA0SendEnabledFeaturesHandler and Features1; saspy, enabled_features
        (0x00, "standard", False),
        (0x10 | 0x20, "system", False),
        (0x10 | 0x40, "secure", False),
        (0x10 | 0x20 | 0x80, "system", True),
    ],
)
def test_how_tickets_are_validated(first: int, validation: str, redemption: bool) -> None:
    features = Features(0, bytes((first, 0, 0, 0, 0, 0)))
    assert (features.validation, features.redemption) == (validation, redemption)
