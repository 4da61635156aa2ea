"""Simulated betting terminals of a table: players tap bets, the terminals send requests and repeat them.

A terminal repeats a request with the same id until it has a final answer. A request without a round is repeated only
until the round is over: later it would be a bet of the next round. `answers` holds the final answers by id, so a
table finds which bets count. The edge refuses an expired request, which is its final answer.
"""

from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import PlayerAction
from protocols.contract.wagers import (
    Act,
    Decoder,
    PlaceWager,
    WagerAnswer,
    WagerRequest,
    WithdrawWager,
    encode,
    encode_line,
)
from simulators.devices.device import Ailment

__all__ = ["BetTerminals"]

AGAIN: Final = 2.0
"""Seconds until a request without an answer is repeated."""
SLOWEST: Final = 30.0
SPACING: Final = 0.05
"""Seconds between two messages."""
LIFE: Final = timedelta(seconds=30)
SLOW: Final = timedelta(minutes=10)
IMPATIENT: Final = 10
FLOOD: Final = 300
OVERSIZE: Final = 9000
KEPT: Final = 500
NEVER: Final = float("inf")

_FAULTS = {
    "malformed": Ailment("the next request is sent torn, then whole", ("terminals.malformed",), "counts"),
    "oversize": Ailment("9000 bytes are sent before the next request", ("terminals.malformed",), "counts"),
    "impatient": Ailment("the next request is sent ten times at once", (), "counts"),
    "slow_clock": Ailment("a clock ten minutes slow: the next request has expired before it is sent", (), "counts"),
    "impostor": Ailment(
        "before the next request another terminal sends one in its name", ("terminals.impostor",), "counts"
    ),
    "flood": Ailment("the next request is sent three hundred times at once", ("terminals.flood",), "counts"),
}
_LINE = {
    "garbage": Ailment("a request is lost in noise: it is repeated", ("terminals.malformed",), "counts"),
    "half_frame": Ailment("a request is cut: it is repeated", ("terminals.malformed",), "counts"),
    "repeated": Ailment("requests are sent twice", (), "counts"),
    "silence": Ailment("requests and answers are lost: they are repeated", (), "counts"),
    "slow_drip": Ailment("requests come late", (), "counts"),
    "wrong_baud": Ailment("requests and answers are lost in noise: they are repeated", (), "counts"),
    "unplugged": Ailment("the broker is unreachable; requests are repeated", (), "counts"),
}


class _Pending(Struct):
    """A request without a final answer."""

    request: WagerRequest
    due: float
    pause: float = AGAIN


class BetTerminals:
    """The terminals `t-1`, `t-2` … of the seats of a table."""

    name: ClassVar[str] = "bet_terminals"
    faults: ClassVar[Mapping[str, Ailment]] = _FAULTS
    line: ClassVar[Mapping[str, Ailment]] = _LINE
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("bet", 5.0), ("bet", 5.0), ("take_back", 10.0))

    def __init__(self, rng: Random, serial: str = "") -> None:
        """`serial` begins the ids, so that two sets of terminals draw different ones."""
        self._rng = rng
        self._decoder = Decoder()
        self._serial = serial or f"{rng.getrandbits(32):08x}"
        self._drawn = 0
        self._pending: dict[str, _Pending] = {}
        self._outgoing: deque[tuple[float, bytes]] = deque(maxlen=FLOOD * 2)
        self._next_at = 0.0
        self._waiting: deque[str] = deque(maxlen=16)
        self._last: PlaceWager | None = None
        self._requests: dict[str, WagerRequest] = {}
        self.contradicted: list[tuple[WagerAnswer, WagerAnswer]] = []
        """Different final answers to one request; must stay empty."""
        self.answers: dict[str, WagerAnswer] = {}
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        """The terminals' wall clock."""
        self.hurry = 1.0
        """Simulated seconds in a second of the terminals."""

    # ---- players

    def place(self, seat: int, bet: str, amount: int, now: float, round_: str = "") -> str:
        """Tap a bet, in this round if it is named; returns the id of the request."""
        request = PlaceWager(self._draw(), f"t-{seat}", self.clock() + LIFE, seat, bet, amount, round_)
        self._last = request
        return self._ask(request, now)

    def withdraw(self, seat: int, bet: str, amount: int, now: float, round_: str = "") -> str:
        """Take `amount` back, all of it with 0; returns the id of the request."""
        return self._ask(WithdrawWager(self._draw(), f"t-{seat}", self.clock() + LIFE, seat, bet, amount, round_), now)

    def act(self, seat: int, act: PlayerAction, amount: int, now: float, round_: str) -> str:
        """Decide in the turn of the seat; returns the id of the request."""
        return self._ask(Act(self._draw(), f"t-{seat}", self.clock() + LIFE, seat, act, round_, amount), now)

    def repeat(self, id_: str, now: float) -> None:
        """Send a request once more that was answered before."""
        if (request := self._requests.get(id_)) is not None:
            self._pending[id_] = _Pending(request, now + AGAIN * self.hurry)
            self._send(request.terminal, encode(request), now)

    def end_round(self) -> None:
        """Stop repeating requests without an answer that name no round, and those that are no longer in `_requests`."""
        self._pending = {id_: one for id_, one in self._pending.items() if one.request.round and id_ in self._requests}
        self._outgoing.clear()

    @property
    def waiting(self) -> bool:
        """Whether a request has no final answer."""
        return bool(self._pending)

    def accepted(self, id_: str) -> bool | None:
        """Whether the bet counts; None while unknown."""
        answer = self.answers.get(id_)
        return None if answer is None else answer.status == "accepted"

    def _draw(self) -> str:
        self._drawn += 1
        return f"{self._serial}-{self._drawn}"

    def _ask(self, request: WagerRequest, now: float) -> str:
        copies = 1
        line = encode(request)
        match self._waiting.popleft() if self._waiting else "":
            case "malformed":
                self._send(request.terminal, line[: len(line) // 2], now)
                copies = 0
            case "oversize":
                self._send(request.terminal, b"x" * OVERSIZE, now)
            case "impostor":
                self._send(f"t-{request.seat % 7 + 1}", line, now)
            case "impatient":
                copies = IMPATIENT
            case "slow_clock":
                request = replace(request, expires=request.expires - SLOW)
                line = encode(request)
            case "flood":
                copies = FLOOD
            case _:
                pass
        self._pending[request.id] = _Pending(request, now + AGAIN * self.hurry)
        self._requests[request.id] = request
        while len(self._requests) > KEPT:
            del self._requests[next(iter(self._requests))]
        if copies > 1:
            self._outgoing.extend([(max(now, self._next_at), encode_line(request.terminal, request))] * copies)
        elif copies:
            self._send(request.terminal, line, now)
        return request.id

    def _send(self, terminal: str, line: bytes, now: float) -> None:
        at = max(now, self._next_at)
        self._next_at = at + SPACING
        self._outgoing.append((at, terminal.encode() + b" " + line + b"\n"))

    # ---- Device

    def due(self) -> float:
        """The second of the next message."""
        first = self._outgoing[0][0] if self._outgoing else NEVER
        return min([first, *(one.due for one in self._pending.values())])

    def wake(self, now: float) -> bytes:
        """Repeat requests without an answer."""
        for pending in self._pending.values():
            if now >= pending.due:
                pending.pause = min(pending.pause * 1.5, SLOWEST)
                pending.due = now + pending.pause * self.hurry
                self._send(pending.request.terminal, encode(pending.request), now)
        said = b""
        while self._outgoing and self._outgoing[0][0] <= now:
            said += self._outgoing.popleft()[1]
        return said

    def hear(self, data: bytes, now: float) -> bytes:  # noqa: ARG002 - as every device
        """Take answers. A final one ends the repetition."""
        for one in self._decoder.feed(data):
            match one.message:
                case WagerAnswer(id_, terminal, "accepted" | "refused") as message if self._asked(id_, terminal):
                    self._pending.pop(id_, None)
                    first = self.answers.setdefault(id_, message)
                    if (first.status, first.event) != (message.status, message.event):
                        self.contradicted.append((first, message))
                    while len(self.answers) > KEPT:
                        del self.answers[next(iter(self.answers))]
                case _:
                    pass
        return b""

    def _asked(self, id_: str, terminal: str) -> bool:
        request = self._requests.get(id_)
        return request is not None and request.terminal == terminal

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """A player taps a bet, or takes the last one back."""
        return {"bet": lambda now: self.place(self._rng.randint(1, 7), "main", 1000, now), "take_back": self._take_back}

    def _take_back(self, now: float) -> str | Literal[False]:
        last, self._last = self._last, None
        return False if last is None else self.withdraw(last.seat, last.bet, 0, now)

    def inject(self, fault: str, now: float) -> None:  # noqa: ARG002 - as every device
        """Begin a fault at the next request. Raises ValueError for an unknown fault."""
        if fault not in self.faults:
            raise ValueError(f"no fault {fault!r}, only {', '.join(self.faults)}")
        self._waiting.append(fault)

    def repair(self, now: float) -> None:  # noqa: ARG002 - as every device
        """A person looks after the terminals."""
        self._waiting.clear()
