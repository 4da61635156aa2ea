"""The Bee-Tek shoe's 52 codes as a program that reads a real one has them.

Source: https://github.com/rahulwilful/AndarBaharSoftware  src/components/Cards.jsx; its order is kept: clubs, diamonds,
spades, hearts, each from the ace to the king.
"""

import re

import pytest

from protocols.bee_tek_shoe import Decoder, Drawn, encode

CODES = re.findall(
    "[0-9A-F]{6}",
    """
0D21D7 0D22D8 0D23D9 0D24DA 0D25DB 0D26DC 0D27DD 0D28DE 0D29DF 0D2AE7 0D2BE8 0D2CE9 0D2DEA
0D11D6 0D12D7 0D13D8 0D14D9 0D15DA 0D16DB 0D17DC 0D18DD 0D19DE 0D1AE6 0D1BE7 0D1CE8 0D1DE9
0D31D8 0D32D9 0D33DA 0D34DB 0D35DC 0D36DD 0D37DE 0D38DF 0D39E0 0D3AE8 0D3BE9 0D3CEA 0D3DEB
0D01D5 0D02D6 0D03D7 0D04D8 0D05D9 0D06DA 0D07DB 0D08DC 0D09DD 0D0AE5 0D0BE6 0D0CE7 0D0DE8
""",
)
CARDS = [rank + suit for suit in "CDSH" for rank in "A23456789TJQK"]


@pytest.mark.parametrize(("code", "card"), list(zip(CODES, CARDS, strict=True)))
def test_each_card_both_ways(code: str, card: str) -> None:
    line = f"*{code}\r\n".encode()
    assert Decoder().feed(line) == [Drawn(card, line.strip())]
    assert encode(Drawn(card)) == line


def test_a_whole_deck_in_one_piece() -> None:
    data = b"".join(f"*{code}\r\n".encode() for code in CODES)
    assert [one.card for one in Decoder().feed(data) if isinstance(one, Drawn)] == CARDS
