"""The Saturn's frames that a public program sends to real wheels, and those of its first tries that did not work.

Source: https://github.com/deanhutt85/saturnfire  SaturnFireCommandLine.py, SaturnFire.py
"""

import pytest

from protocols.tcs_saturn import Broken, Decoder, Frame, encode

WORKING = [
    ("01 30 32 02 53 52 31 03 7e 04", Frame("02", "SR1")),
    ("01 30 32 02 53 52 32 03 7f 04", Frame("02", "SR2")),
    ("01 30 34 02 53 52 33 03 42 04", Frame("04", "SR3")),
    ("01 30 34 02 52 43 30 33 03 62 04", Frame("04", "RC03")),
]


@pytest.mark.parametrize(("text", "frame"), WORKING)
def test_public_program_vectors_both_ways(text: str, frame: Frame) -> None:
    data = bytes.fromhex(text)
    assert Decoder().feed(data) == [Frame(frame.station, frame.text, data)]
    assert encode(frame) == data


def test_a_first_try_with_a_wrong_checksum_is_no_frame() -> None:
    data = bytes.fromhex("01 30 34 02 53 52 33 03 82 04")  # left in the program as a comment
    assert Decoder().feed(data) == [Broken(data)]
