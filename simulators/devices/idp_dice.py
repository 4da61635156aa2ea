"""A simulated dice recogniser (IDP): it reads the dice on the table at each request, and answers.

It reads them by `look`, a parameter: the faces of all dice, or None if they are unreadable (stacked, leaning, out
of the picture). Without it, it has dice of its own, which `shake` throws.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar, TypeAlias

from protocols.idp_dice import DICE, NO_RESULT, NO_SHAKE, OK, Decoder, Detect, Result, Stop, encode
from simulators.devices.device import Ailment

__all__ = ["Look", "Recogniser"]

Look: TypeAlias = Callable[[], tuple[int, ...] | None]

QUICK, SLOWEST = 0.8, 2.0  # seconds that a reading takes
AGAIN = 12.0  # seconds after which a late answer comes
OFF = 25.0
WAITING = 16
NEVER = float("inf")

_FAILS = ("idp.no_result", "idp.failed")
_FAULTS = {
    "no_result": Ailment("the next reading finds no dice", ("idp.no_result",), "counts"),
    "two_dice": Ailment("the next reading finds a die fewer", ("idp.no_result",), "counts"),
    "bad_face": Ailment("the next reading finds a seven", ("idp.no_result",), "counts"),
    "stacked": Ailment("a die lies on another until the next shake", _FAILS, "void"),
    "leaning": Ailment("a die leans until the next shake", _FAILS, "void"),
    "no_shake": Ailment("the next reading reports dice that did not move", ("idp.no_shake",), "counts"),
    "late_answer": Ailment("the next answer is sent once more, 12 s later", ("idp.late",), "counts"),
    "wrong_round": Ailment("the next result is sent for the round before", ("idp.late", "idp.timeout"), "counts"),
    "not_json": Ailment("the next answer is cut off", ("idp.unreadable", "idp.timeout"), "counts"),
    "other_game": Ailment("the next answer has cards instead of dice", ("idp.no_result",), "counts"),
    "no_err": Ailment("the next answer leaves `err` out, as one version does where nothing is wrong", (), "counts"),
    "timeout": Ailment("the next request is not received", ("idp.timeout",), "counts"),
    "two_answers": Ailment(
        "the next request is answered twice, each time with other faces", ("idp.contradiction",), "suspended"
    ),
    "power_loss": Ailment("the power fails with the next request, for 25 s", ("idp.timeout", "idp.failed"), "counts"),
    "camera_dark": Ailment("the camera shows nothing until somebody mends it", _FAILS, "counts", person=True),
}
_LINE = {
    "garbage": Ailment(
        "the answer is lost in noise: it is requested again", ("idp.unreadable", "idp.timeout"), "counts"
    ),
    "half_frame": Ailment("the answer is cut off and spoils the next", ("idp.unreadable", "idp.timeout"), "counts"),
    "repeated": Ailment("the answer comes twice", (), "counts"),
    "silence": Ailment("the request is lost: it is sent again", ("idp.timeout",), "counts"),
    "slow_drip": Ailment("the answer comes late, but before the timeout", (), "counts"),
    "wrong_baud": Ailment(
        "the request is lost in noise, which spoils the next ones", ("idp.timeout", "idp.failed"), "counts"
    ),
    "unplugged": Ailment("the request is lost: it is sent again", ("idp.timeout",), "counts"),
}


class Recogniser:
    """The device."""

    name: ClassVar[str] = "idp_dice"
    faults: ClassVar[Mapping[str, Ailment]] = _FAULTS
    line: ClassVar[Mapping[str, Ailment]] = _LINE
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()

    def __init__(self, rng: Random, look: Look | None = None, dice: int = DICE) -> None:
        """`dice`: number of its own dice, without `look`."""
        self._rng = rng
        self.dice = dice
        self._look = look or self._own
        self._decoder = Decoder()
        self._saying: deque[tuple[float, bytes]] = deque(maxlen=WAITING)
        self._later: deque[tuple[float, bytes]] = deque(maxlen=WAITING)
        self._waiting: deque[str] = deque(maxlen=WAITING)
        self._off_until = float("-inf")
        self._dark = False
        self._lie_round: str | None = None  # the round in which the dice cannot be read
        self._lie = ""
        self._before = "0"
        self._round = ""
        self.faces = self._roll()

    def _roll(self) -> tuple[int, ...]:
        return tuple(self._rng.randint(1, 6) for _ in range(self.dice))

    @property
    def lie(self) -> str:
        """Why the dice of the last request cannot be read, "stacked" or "leaning"; "" if they lie flat."""
        return self._lie if self._lie_round is not None and self._lie_round == self._round else ""

    def _own(self) -> tuple[int, ...]:
        return self.faces

    # ---- Device

    def due(self) -> float:
        """When the next answer is sent."""
        return min((queue[0][0] for queue in (self._saying, self._later) if queue), default=NEVER)

    def wake(self, now: float) -> bytes:
        """The answers that are ready by `now`."""
        said = b""
        for queue in (self._later, self._saying):
            while queue and queue[0][0] <= now:
                said += queue.popleft()[1]
        return said

    def hear(self, data: bytes, now: float) -> bytes:
        """Requests. `wake` returns the answers after the reading."""
        if now < self._off_until:
            return b""
        for message in self._decoder.feed(data):
            match message:
                case Detect():
                    self._detect(message.round_id, now)
                case Stop():
                    self._saying.clear()
                case _:
                    pass
        return b""

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """Its own dice are shaken."""
        return {"shake": self.shake}

    def shake(self, now: float) -> None:  # noqa: ARG002 - as every act
        """Throw its own dice."""
        self.faces = self._roll()

    def inject(self, fault: str, now: float) -> None:  # noqa: ARG002 - as every device
        """Begin a fault with the next request."""
        if fault not in self.faults:
            raise ValueError(f"no fault {fault!r}, only {', '.join(self.faults)}")
        self._waiting.append(fault)

    def repair(self, now: float) -> None:  # noqa: ARG002 - as every device
        """A person repairs the camera."""
        self._waiting.clear()
        self._dark = False
        self._lie_round = None

    # ---- the camera

    def _detect(self, number: str, now: float) -> None:
        if number != self._round:
            self._before, self._round = self._round or self._before, number
        at = now + self._rng.uniform(QUICK, SLOWEST)
        fault = self._waiting.popleft() if self._waiting else ""
        self._dark = self._dark or fault == "camera_dark"
        if fault in {"stacked", "leaning"}:
            self._lie_round, self._lie = number, fault
        faces = None if self._dark or self._lie_round == number else self._look()
        seen = Result(number, None, NO_RESULT) if faces is None else Result(number, faces, OK)
        match fault:
            case "power_loss":
                self._off_until = now + OFF
                self._saying.clear()
                self._later.clear()
                self._decoder = Decoder()
            case "timeout":
                pass
            case "not_json":
                self._saying.append((at, encode(seen)[:-9] + b"\n"))
            case "late_answer":
                self._saying.append((at, encode(seen)))
                self._later.append((at + AGAIN, encode(seen)))
            case "two_answers":
                other = tuple(7 - face for face in faces or ())
                self._saying.extend([(at, encode(seen)), (at + 1.0, encode(Result(number, other, OK)))])
            case _:
                self._saying.append((at, self._answer(fault, seen)))

    def _answer(self, fault: str, seen: Result) -> bytes:
        number = seen.round_id
        match fault:
            case "no_result":
                return encode(Result(number, None, NO_RESULT))
            case "two_dice":
                return encode(Result(number, self._roll()[:-1], OK))
            case "bad_face":
                return encode(Result(number, (7, *self._roll()[1:]), OK))
            case "no_shake":
                return encode(Result(number, None, NO_SHAKE))
            case "no_err":
                arg = b'{"round_id":"%b","res":%b}' % (number.encode(), str(list(seen.res or ())).encode())
                return b'{"response":"result","arg":' + arg + b"}\n"
            case "wrong_round":
                return encode(Result(self._before, self._roll(), OK))
            case "other_game":
                arg = b'{"round_id":"%b","res":["9D","KC","","AS","4H",""],"err":0}' % number.encode()
                return b'{"response":"result","arg":' + arg + b"}\n"
            case _:
                return encode(seen)
