"""What players ask at terminals: requests on `table/<table>/wager/<terminal>`, answers on `wager/<terminal>/result`.

A request that is kept in the edge's journal becomes one event `wager.placed`, `wager.withdrawn` or `player.acted`,
however often it is delivered. The rules decide whether it counts. Until the request expires, a terminal repeats it
with the same id while it has no answer, or the answer `failed`. The answers `accepted` and `refused` are final. The
broker lets a terminal write on its own topic only, so the topic names the sender. On a link each message is a line with
its terminal in front.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from protocols.contract.events import (
    LONGEST_NAME,
    Amount,
    Number,
    PlayerAction,
    RequestId,
    RoundName,
    Seat,
    TerminalId,
)
from protocols.contract.reasons import Reason
from protocols.contract.topics import is_id
from protocols.message_lines import Lines

LONGEST_REQUEST = 2048
"""Maximum bytes of a request."""
LONGEST_ANSWER = 8192
"""Maximum bytes of an answer."""
LONGEST_LINE = LONGEST_ANSWER + 64
"""Maximum bytes of a line: a terminal, a space and an answer."""

Status: TypeAlias = Literal["accepted", "refused", "failed"]
BetName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_NAME, description="the ruleset's name of the bet, such as `straight:17`")
]
Expiry: TypeAlias = Annotated[
    datetime, Meta(tz=True, description="when it expires: then it is refused, unless it was kept before")
]


class PlaceWager(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="action", tag="place"):
    """Put `amount` minor units on `bet` from `seat`, in `round`; where that is empty, in the round that is open."""

    id: RequestId
    terminal: TerminalId
    expires: Expiry
    seat: Seat
    bet: BetName
    amount: Amount
    round: RoundName = ""


class WithdrawWager(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="action", tag="withdraw"
):
    """Take `amount` minor units back from `bet`; 0 is all of it. `round` as of a bet that is placed."""

    id: RequestId
    terminal: TerminalId
    expires: Expiry
    seat: Seat
    bet: BetName
    amount: Number = 0
    round: RoundName = ""


class Act(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="action", tag="act"):
    """Do `act` in the turn of `seat` in `round`. `amount`: minor units that cross the line; with a call 0: as due."""

    id: RequestId
    terminal: TerminalId
    expires: Expiry
    seat: Seat
    act: PlayerAction
    round: Annotated[RoundName, Meta(min_length=1)]
    amount: Number = 0


WagerRequest: TypeAlias = PlaceWager | WithdrawWager | Act


class WagerAnswer(Struct, frozen=True, omit_defaults=True):
    """The decision about a request.

    `accepted`: the bet counts, by the event `event`, in the round `round`, whose result settles it. `refused`: it does
    not; `code` is the reason and is stable, `reason` is its sentence in the catalogues, `text` the same in English,
    `law` the article. An accepted bet has a code, too, where something about it was irregular. `failed`: it was not
    taken yet; repeat it with the same id. `id` is empty where it could not be read; `terminal` is that of the topic.
    """

    id: str
    terminal: str
    status: Status
    code: Annotated[str, Meta(max_length=64)] = ""
    reason: Reason | None = None
    text: str = ""
    law: str = ""
    event: str = ""
    round: str = ""


class Unreadable(Struct, frozen=True):
    """A message that is no request and no answer. `id` and `terminal` as far as they can be read."""

    text: str
    raw: bytes
    id: str = ""
    terminal: str = ""


class _Named(Struct):
    """The terminal and id of an invalid request, for its answer."""

    id: RequestId = ""
    terminal: TerminalId = ""


_ENCODER = msgspec.json.Encoder()
_REQUEST: msgspec.json.Decoder[WagerRequest] = msgspec.json.Decoder(PlaceWager | WithdrawWager | Act)
_ANSWER = msgspec.json.Decoder(WagerAnswer)
_NAMED = msgspec.json.Decoder(_Named)
_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_request(line: bytes) -> WagerRequest | Unreadable:
    """The request in `line`. Raises nothing."""
    if len(line) > LONGEST_REQUEST:
        return Unreadable(f"{len(line)} bytes: a request has at most {LONGEST_REQUEST}", line[:LONGEST_REQUEST])
    request: WagerRequest | Unreadable = _decoded(_REQUEST, line)
    return request


def decode_answer(line: bytes) -> WagerAnswer | Unreadable:
    """The answer in `line`. Raises nothing."""
    if len(line) > LONGEST_ANSWER:
        return Unreadable(f"{len(line)} bytes: an answer has at most {LONGEST_ANSWER}", line[:LONGEST_ANSWER])
    answer: WagerAnswer | Unreadable = _decoded(_ANSWER, line)
    return answer


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except _ERRORS as error:
        try:
            named = _NAMED.decode(line)
        except _ERRORS:
            named = _Named()
        return Unreadable(str(error)[:200], line, named.id, named.terminal)


def encode(message: WagerRequest | WagerAnswer) -> bytes:
    """One line without its end: JSON holds no line break."""
    return _ENCODER.encode(message)


class Addressed(Struct, frozen=True):
    """A message and the terminal of its topic; empty where the line has no valid terminal in front of the message."""

    terminal: str
    message: WagerRequest | WagerAnswer | Unreadable


def encode_line(terminal: str, message: WagerRequest | WagerAnswer) -> bytes:
    """A line of a link: the terminal of its topic, a space, the message."""
    return terminal.encode() + b" " + encode(message) + b"\n"


class Decoder:
    """Turns the bytes of a link in any pieces into requests and answers, one a line. Serves both ends."""

    def __init__(self) -> None:
        """Hold at most LONGEST_LINE bytes of an unfinished line."""
        self._lines = Lines(LONGEST_LINE + 1)

    def feed(self, data: bytes) -> list[Addressed]:
        """The messages completed by `data`."""
        return [_addressed(line) for line in self._lines.feed(data)]


def _addressed(line: bytes) -> Addressed:
    name, _, payload = line.partition(b" ")
    terminal = name.decode("ascii", "replace")
    return Addressed(terminal, _either(payload)) if is_id(terminal) else Addressed("", _either(line))


def _either(line: bytes) -> WagerRequest | WagerAnswer | Unreadable:
    request = decode_request(line)
    if isinstance(request, Unreadable) and isinstance(answer := decode_answer(line), WagerAnswer):
        return answer
    return request
