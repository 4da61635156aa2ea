"""What a studio's program exchanges with its image recogniser, from its source and its logs.

Source: https://github.com/ikigai-kevin-k/studio-sdp-mirror  mqtt/deviceController.py (the request; an answer counts
where `arg` has `res`, and `arg.get("err", 0)` is 0), IDP_RESULT_PROCESSING_FIX.md (an answer from a log)
"""

import json
from typing import Any

import pytest

from protocols.idp_dice import Decoder, Detect, Result, Stop, encode

REQUEST = {
    "command": "detect",
    "arg": {
        "round_id": "SBO-001-1",
        "input": "rtmp://192.168.88.54:1935/live/r14_sb",
        "output": "https://pull-tc.stream.iki-utl.cc/live/r456_dice.flv",
    },
}
# the log of a wheel's recogniser: the same service, another game
WHEEL = (
    b'{"response": "result", "arg": {"round_id": "ARO-001-64cb641c-549b-497d-a4cd-0b3376dce35f", "res": 35, "err": 0}}'
)


def test_the_request_as_the_program_writes_it() -> None:
    told = Decoder().feed(json.dumps(REQUEST).encode() + b"\n")
    arg = REQUEST["arg"]
    assert isinstance(arg, dict)
    assert told == [Detect(arg["round_id"], arg["input"], arg["output"])]
    ours = encode(Detect(arg["round_id"], arg["input"], arg["output"]))
    assert json.loads(ours) == REQUEST
    assert json.loads(encode(Stop())) == {"command": "timeout", "arg": {}}


def test_an_answer_of_another_game_is_no_reading() -> None:
    (told,) = Decoder().feed(WHEEL + b"\n")
    assert isinstance(told, Result)
    assert (told.round_id, told.err, told.faces) == ("ARO-001-64cb641c-549b-497d-a4cd-0b3376dce35f", 0, None)


def theirs(payload: dict[str, Any]) -> list[int] | None:
    """What the program takes for a reading, told in our words: three integers, and no error."""
    arg = payload.get("arg", {})
    res = arg.get("res")
    good = arg.get("err", 0) == 0 and isinstance(res, list) and len(res) == 3
    return res if good and all(isinstance(one, int) for one in res) else None


@pytest.mark.parametrize(
    "arg",
    [
        {"res": [1, 2, 6], "err": 0},
        {"res": [1, 2, 6]},
        {"res": [6, 6, 6], "err": -3},
        {"res": None, "err": -1},
        {"res": None},
        {"res": [1, 2], "err": 0},
        {"res": [1, 2, 3, 4]},
        {"res": ["9D", "KC", "", "AS", "4H", ""], "err": 0},
    ],
)
def test_the_program_and_our_codec_take_the_same_answers(arg: dict[str, Any]) -> None:
    payload = {"response": "result", "arg": {"round_id": "R", **arg}}
    (told,) = Decoder().feed(json.dumps(payload).encode() + b"\n")
    assert isinstance(told, Result)
    assert (None if told.faces is None else list(told.faces)) == theirs(payload)
