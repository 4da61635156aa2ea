"""The text wire of the Bee-Tek shoe, with lines as programs that read a real one expect them.

Source: five public programs, two independent families: a monitor of the shoe with its installation guide, and the
servers of live dealing tables, which share the expression that takes the card out of a line. They are known by their
text `Manual Burn Cards]`; the index that shows them does not name their repositories.
"""

import msgspec
import pytest

from protocols.bee_tek_shoe import Drawn
from protocols.bee_tek_text import Alarm, Decoder, EitherDecoder, Message, NotRead, Warned

GAME, BURN = "Game", "Manual Burn Cards"
LINES: dict[bytes, Message] = {
    b"[Game]<Card:4S>": Drawn("4S", b"", GAME),
    b"[Manual Burn Cards]<Card:4S>": Drawn("4S", b"", BURN),
    b"[Game]<Card:10H>": Drawn("TH", b"", GAME),
    b"[Game]<Card:TH>": Drawn("TH", b"", GAME),
    b"[game]<card:kd>": Drawn("KD", b"", GAME),
    b"[Game]<Game>": NotRead(GAME),
    b"[Manual Burn Cards]<Game>": NotRead(BURN),
    b"[GameAlarm]<Alarm:E3 Card Not Read>": Alarm("GameAlarm", "E3", "Card Not Read"),
    b"[Game]<Alarm:E3 Card Not Read>": Alarm(GAME, "E3", "Card Not Read"),
    b"[Manual Burn Cards]<Alarm:E3 Card Not Read>": Alarm(BURN, "E3", "Card Not Read"),
    b"<W0x01>": Warned("0x01"),
}


@pytest.mark.parametrize("end", [b"", b" ", b"\n", b" \r\n"])
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("decoder", [Decoder, EitherDecoder])
def test_each_line(decoder: type[Decoder] | type[EitherDecoder], line: bytes, end: bytes) -> None:
    [message] = decoder().feed(b" " + line + end)
    assert message.raw == line
    assert msgspec.structs.replace(message, raw=b"") == LINES[line]
