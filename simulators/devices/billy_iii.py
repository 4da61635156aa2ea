"""A simulated Billy-III dice shaker: a plate with a motor, three dice on it, and messages about its progress.

It sends its state when the state changes and, a moment later, when it is asked. `faces` are the true faces of the dice,
`shakes` the number of completed shakes. Every shake moves the dice from its first moment, also one that is interrupted.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

from protocols.billy_iii import ACCEPTED, IDLE, MOTION_ERROR, SHAKING, Ask, Cycle, Decoder, State, encode
from simulators.devices.device import Ailment

__all__ = ["Billy"]

LATENCY = 0.03
TAKING = 0.3  # seconds from an order to the first movement
BOOT = 25.0
BROWN_OUT = 2.5
MUTE = 20.0
SLOW, SLOWNESS = 30.0, 1.2
ODD, ODDITY = 7, 2.0
NEVER = float("inf")
DICE = 3
OWN = Cycle(0, 10, 0, 0.41, 9.59)

_FAULTS = {
    "not_accepted": Ailment("the next order is not taken", ("billy.not_accepted",), "counts"),
    "not_started": Ailment("the next order is taken, and nothing moves", ("billy.not_started",), "counts"),
    "not_finished": Ailment("the next shake does not end by itself", ("billy.not_finished",), "counts", person=True),
    "cut_short": Ailment("the next shake ends half way", ("billy.cut_short",), "counts"),
    "motion_error": Ailment(
        "the motor program fails in the middle of the next shake", ("billy.motion",), "counts", person=True
    ),
    "power_loss": Ailment(
        "the power fails in the middle of the next shake, for 25 s", ("device.offline",), "suspended"
    ),
    "brown_out": Ailment("it starts anew in the middle of the next shake", ("billy.cut_short",), "counts"),
    "mute": Ailment("it sends nothing for 20 s from the next order on, and shakes", ("device.offline",), "suspended"),
    "unknown_state": Ailment("it reports state S7 for 2 s before the next shake", ("billy.unknown_state",), "counts"),
    "slow": Ailment("for 30 s it sends every message 1.2 s late", (), "counts"),
}
_LINE = {
    "garbage": Ailment("one state is lost in noise: the host asks again", (), "counts"),
    "half_frame": Ailment("one state is lost: the host asks again", (), "counts"),
    "repeated": Ailment("states are sent twice", (), "counts"),
    "silence": Ailment("the order is lost", ("billy.not_accepted",), "counts"),
    "slow_drip": Ailment("states come late", (), "counts"),
    "wrong_baud": Ailment("the order is lost in noise", ("billy.not_accepted",), "counts"),
    "unplugged": Ailment("the order is lost; the broker is still reachable", ("billy.not_accepted",), "counts"),
}


class Billy:
    """The device."""

    name: ClassVar[str] = "billy_iii"
    faults: ClassVar[Mapping[str, Ailment]] = _FAULTS
    line: ClassVar[Mapping[str, Ailment]] = _LINE
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("press", 20.0),)

    def __init__(self, rng: Random) -> None:
        """Idle, with three dice."""
        self._rng = rng
        self._decoder = Decoder()
        self._said: deque[tuple[float, bytes]] = deque(maxlen=64)  # the oldest is lost if `wake` is not called
        self._plan: deque[tuple[float, str]] = deque()  # what happens when: steps of the shake under way
        self._waiting: deque[str] = deque(maxlen=16)
        self._boots_at = NEVER
        self._mute_until = 0.0
        self._slow_until = 0.0
        self.state = IDLE
        self.shakes = 0
        self.faces = self._roll()

    def _roll(self) -> tuple[int, ...]:
        return tuple(self._rng.randint(1, 6) for _ in range(DICE))

    # ---- Device

    def due(self) -> float:
        """The time of the next message or step."""
        words = self._said[0][0] if self._said else NEVER
        return min(words, self._plan[0][0] if self._plan else NEVER, self._boots_at)

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        if now >= self._boots_at:
            at, self._boots_at = self._boots_at, NEVER
            self._decoder = Decoder()
            self._becomes(IDLE, at)
        while self._plan and self._plan[0][0] <= now:
            at, step = self._plan.popleft()
            self._step(step, at)
        said = b""
        while self._said and self._said[0][0] <= now:
            said += self._said.popleft()[1]
        return said

    def hear(self, data: bytes, now: float) -> bytes:
        """Orders and queries. `wake` returns the answers a moment later."""
        if self._boots_at < NEVER:
            return b""
        for message in self._decoder.feed(data):
            match message:
                case Ask():
                    self._say(now)
                case Cycle() if self.state == IDLE and not self._plan:
                    self._take(message, now)
                case _:
                    pass
        return b""

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """The button on its side starts its own shaking program."""
        return {"press": self.press}

    def press(self, now: float) -> bool:
        """Press the button. False if it does not shake now."""
        free = self._boots_at == NEVER and self.state == IDLE and not self._plan
        if free:
            self._take(OWN, now)
        return free

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault: `slow` at once, the others with the next order."""
        if fault not in self.faults:
            raise ValueError(f"no fault {fault!r}, only {', '.join(self.faults)}")
        if fault == "slow":
            self._slow_until = now + SLOW
        else:
            self._waiting.append(fault)

    def repair(self, now: float) -> None:
        """A person frees the plate and switches the device off and on."""
        self._waiting.clear()
        self._plan.clear()
        if self.state != IDLE:
            self._becomes(IDLE, now)

    # ---- the motor

    def _take(self, program: Cycle, now: float) -> None:
        start, end = now + TAKING, now + TAKING + program.duration
        half = start + program.duration * self._rng.uniform(0.4, 0.6)
        steps = [(now, "accept"), (start, "start"), (end, "end")]
        match self._waiting.popleft() if self._waiting else "":
            case "not_accepted":
                steps = []
            case "not_started":
                steps = [(now, "accept"), (start, "idle")]
            case "not_finished":
                steps[2:] = []
            case "cut_short":
                steps[2:] = [(half, "idle")]
            case "motion_error":
                steps[2:] = [(half, "fail")]
            case "power_loss":
                steps[2:] = [(half, "power")]
            case "brown_out":
                steps[2:] = [(half, "reset")]
            case "mute":
                self._mute_until = now + MUTE
            case "unknown_state":
                steps = [(now, "accept"), (start, "odd"), (start + ODDITY, "start"), (end + ODDITY, "end")]
            case _:
                pass
        self._plan.extend(steps)
        while self._plan and self._plan[0][0] <= now:
            self._step(self._plan.popleft()[1], now)

    def _step(self, step: str, at: float) -> None:
        match step:
            case "accept":
                self._becomes(ACCEPTED, at)
            case "odd":
                self._becomes(ODD, at)
            case "start":
                self.faces = self._roll()
                self._becomes(SHAKING, at)
            case "end":
                self.shakes += 1
                self._becomes(IDLE, at)
            case "idle":
                self._becomes(IDLE, at)
            case "fail":
                self._becomes(MOTION_ERROR, at)
            case _:
                self._said.clear()
                self.state = IDLE
                self._boots_at = at + (BOOT if step == "power" else BROWN_OUT)

    def _becomes(self, state: int, at: float) -> None:
        self.state = state
        self._say(at)

    def _say(self, at: float) -> None:
        if at >= self._mute_until:
            late = SLOWNESS if at < self._slow_until else LATENCY
            self._said.append((max(at + late, self._said[-1][0] if self._said else 0.0), encode(State(self.state))))
