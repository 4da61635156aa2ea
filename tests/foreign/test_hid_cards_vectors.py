"""Keys of a scanner as others map them, and card codes as a studio prints them.

Sources, all public: the kernel's table from HID usages to key codes (drivers/hid/usbhid/usbkbd.c, usb_kbd_keycode), a
studio's two readers of the same scanners, https://github.com/ikigai-kevin-k/studio-sdp-mirror  proto/hid.py (by the
kernel's codes) and mqtt/deviceController.py (by the usages of raw reports), and its card codes.
"""

import re

import pytest

from protocols.hid_cards import Code, Decoder, card_in, code_of, encode, strokes_of

# usbkbd.c, from usage 0 to usage 40 (Enter)
KERNEL = re.findall(
    "[0-9]+",
    """
0 0 0 0 30 48 46 32 18 33 34 35 23 36 37 38 50 49 24 25 16 19 31 20 22 47 17 45 21 44 2 3 4 5 6 7 8 9 10 11 28
""",
)
# proto/hid.py: the kernel's codes of the keys it knows
STUDIO = dict(zip(range(2, 12), "1234567890", strict=True))
STUDIO |= {30: "A", 31: "S", 32: "D", 33: "F", 34: "G", 35: "H", 36: "J", 37: "K", 38: "L"}
STUDIO |= {44: "Z", 45: "X", 46: "C", 47: "V", 48: "B", 49: "N", 50: "M"}
# mqtt/deviceController.py: usages of raw reports
RAW = {0x04 + n: chr(ord("A") + n) for n in range(26)} | {0x1E + n: digit for n, digit in enumerate("1234567890")}
ENTER = 0x28


def typed(*usages: int) -> bytes:
    """Reports as the studio's reader takes them: each key down, then all up."""
    return b"".join(bytes((0, 0, usage, 0, 0, 0, 0, 0)) + bytes(8) for usage in usages)


@pytest.mark.parametrize("usage", RAW)
def test_a_raw_report_s_key(usage: int) -> None:
    (told,) = Decoder().feed(typed(usage, ENTER))
    assert isinstance(told, Code)
    assert told.text.upper() == RAW[usage]
    assert strokes_of(RAW[usage].lower()) == [(0, usage)]


@pytest.mark.parametrize("usage", [usage for usage, code in enumerate(KERNEL) if int(code) in STUDIO])
def test_the_kernel_s_table_and_the_studio_s_second_reader_agree_with_ours(usage: int) -> None:
    (told,) = Decoder().feed(typed(usage, ENTER))
    assert isinstance(told, Code)
    assert told.text.upper() == STUDIO[int(KERNEL[usage])]


def test_enter_is_the_same_key_everywhere() -> None:
    assert KERNEL[ENTER] == "28"
    assert encode(Code("sa"))[-16:] == typed(ENTER)


@pytest.mark.parametrize(("code", "card"), [("SA", "AS"), ("H10", "TH"), ("DT", "TD"), ("C2", "2C"), ("HK", "KH")])
def test_a_studio_s_card_codes(code: str, card: str) -> None:
    assert card_in(code) == card
    assert code_of(card, ten="T" if code.endswith("T") else "10") == code


@pytest.mark.parametrize("code", ["AS", "S1", "H100", "X2", "SAA", ""])
def test_codes_that_the_studio_takes_for_no_card(code: str) -> None:
    assert card_in(code) is None
