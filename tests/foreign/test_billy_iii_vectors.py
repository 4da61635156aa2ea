"""What a studio's program publishes to its shakers, and the states that it knows of them.

Source: https://github.com/ikigai-kevin-k/studio-sdp-mirror  mqtt/deviceController.py, and its earlier shaker programs
"""

import pytest

from protocols.billy_iii import Ask, Cycle, Decoder, Message, State, encode

SENT = [
    (b"/state", Ask()),
    (b"/cycle/?pattern=0&parameter1=10&parameter2=0&amplitude=0.41&duration=9.59", Cycle(0, 10, 0, 0.41, 9.59)),
    (b"/cycle/?pattern=0&parameter1=10&parameter2=0&amplitude=0.41&duration=6", Cycle(0, 10, 0, 0.41, 6)),
]


@pytest.mark.parametrize(("text", "message"), SENT)
def test_public_program_vectors_both_ways(text: bytes, message: Ask | Cycle) -> None:
    told: list[Message] = Decoder().feed(text + b"\n")
    assert told == [message]
    assert encode(message) == text + b"\n"


@pytest.mark.parametrize(("text", "code"), [(b"S0", 0), (b"S1", 1), (b"S2", 2), (b"S90", 90)])
def test_the_states_it_knows(text: bytes, code: int) -> None:
    assert Decoder().feed(text + b"\n") == [State(code, text)]
    assert encode(State(code)) == text + b"\n"
