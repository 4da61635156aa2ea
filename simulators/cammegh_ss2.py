"""A Cammegh SS2 wheel: rotor, ball and controller, as its integrator information and captures describe them.

In arcade mode the wheel runs by itself; with mode bit 2 it waits in state 1 for `*u`. The counter goes on when state 5
ends, as captured; a spin that was void or closed is spun again under its number. What truly happened to each spin is
written in `truth`, for whoever checks what the host made of it.
"""

import random
from typing import ClassVar

from msgspec import Struct

from protocols.cammegh_ss2 import Decoder, Flag, Number, Packet, State, Status, encode

POCKETS = tuple(str(number) for number in range(37))
ARCADE = 1157
WAIT_FOR_START = 2
STARTED_AFTER_NUMBER = 1024
NO_NUMBER_LINE = 16
AUTOMATIC_STATUS = 128
STATUS_EVERY = 0.5
VOID_PATIENCE = 15.0
SILENT_AFTER_POWER_ON = 4.0

# Seconds in each state, shortest and longest, as captured.
PHASES = {
    State.STARTED: (5.0, 10.0),
    State.PLACE_BETS: (5.0, 8.0),
    State.BALL_IN_RIM: (6.0, 8.0),
    State.NO_MORE_BETS: (12.0, 18.0),
    State.WINNING_NUMBER: (0.6, 1.6),
}


class SpinTruth(Struct, frozen=True):
    """How one spin ended: in `pocket`, or void for `reason`."""

    spin: int
    pocket: str = ""
    reason: str = ""


class Wheel:
    """The simulated wheel."""

    name: ClassVar[str] = "cammegh_ss2"
    faults: ClassVar[tuple[str, ...]] = (
        "ball_with_rotor",
        "launch_failed",
        "ball_not_detected",
        "sensor",
        "power_loss",
        "garbage",
        "silence",
        "repeat_lines",
    )

    def __init__(self, rng: random.Random, *, mode: int = ARCADE, spin: int = 1, closed: bool = False) -> None:
        """A wheel that has just been switched on and turns, or stands `closed` until `open_table`."""
        self._rng = rng
        self._mode = mode
        self._decoder = Decoder()
        self.state = State.TABLE_CLOSED if closed else State.STARTED
        self._until = float("inf") if closed else rng.uniform(*PHASES[State.STARTED])
        self._spin = spin
        self._number = ""
        self._clockwise = rng.random() < 0.5
        self._flags = Flag(0)
        self._next_status = 0.0
        self._silent_until = 0.0
        self._void_since = 0.0
        self._pending: set[str] = set()
        self._noise = b""
        self._again = 0
        self.truth: list[SpinTruth] = []

    # ---- time

    def due(self) -> float:
        """The next status line or the end of the state."""
        return max(min(self._until, self._next_status), 0.0)

    def wake(self, now: float) -> bytes:
        """Live until `now`."""
        out = self._noise
        self._noise = b""
        if not self._mode & AUTOMATIC_STATUS:
            self._next_status = float("inf")
        # In the order of time, also where many seconds passed at once: each state shows its own lines.
        while min(self._until, self._next_status) <= now:
            if self._until <= self._next_status:
                out += self._advance(self._until)
            else:
                out += self._status_line() * (2 if self._again else 1)
                self._again = max(self._again - 1, 0)
                self._next_status += STATUS_EVERY
        return out if now >= self._silent_until else b""

    def hear(self, data: bytes, now: float) -> bytes:
        """A command of the host."""
        out = b""
        for message in self._decoder.feed(data):
            if isinstance(message, Packet) and now >= self._silent_until:
                out += self._command(message, now)
        return out

    def open_table(self, now: float) -> None:
        """The operator's key at the wheel."""
        if self.state is State.TABLE_CLOSED:
            self._enter(State.STARTED, now)

    def close_table(self) -> None:
        """The same key again."""
        self._stop("closed")

    def inject(self, fault: str, now: float) -> None:
        """Faults of the ball take the next spin; the others begin at once."""
        match fault:
            case "ball_with_rotor" | "launch_failed" | "ball_not_detected":
                self._pending.add(fault)
            case "sensor":
                self._flags |= Flag.SENSOR_OR_MOTOR
                self._stop("sensor")
                self._until = now + 20.0
            case "power_loss":
                self._stop("power_loss")
                self._spin = 1
                self._number = ""
                self._flags = Flag(0)
                self._silent_until = now + SILENT_AFTER_POWER_ON
                self._enter(State.STARTED, now + SILENT_AFTER_POWER_ON)
            case "garbage":
                self._noise = self._rng.randbytes(self._rng.randint(5, 60))
            case "silence":
                self._silent_until = now + 6.0
            case "repeat_lines":
                self._again = 6
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}; it has {', '.join(self.faults)}")

    # ---- physics

    def _enter(self, state: State, now: float) -> None:
        self.state = state
        self._until = now + self._rng.uniform(*PHASES[state])

    def _stop(self, reason: str) -> None:
        if self.state in (State.PLACE_BETS, State.BALL_IN_RIM, State.NO_MORE_BETS) and not self._void_since:
            self.truth.append(SpinTruth(self._spin, reason=reason))
        if self.state is State.WINNING_NUMBER:
            self._count()
        self._flags &= Flag.SENSOR_OR_MOTOR
        self.state = State.TABLE_CLOSED
        self._until = float("inf")
        self._void_since = 0.0

    def _advance(self, now: float) -> bytes:
        """The present state is over."""
        match self.state:
            case State.STARTED if self._mode & WAIT_FOR_START:
                self._until = float("inf")
            case State.WINNING_NUMBER:
                self._count()
                if self._mode & STARTED_AFTER_NUMBER:
                    self._enter(State.STARTED, now)
                else:
                    self._begin_spin(now)
            case State.STARTED:
                self._begin_spin(now)
            case State.PLACE_BETS:
                self._flags &= ~Flag.BALL_NOT_DETECTED
                self._enter(State.BALL_IN_RIM, now)
                if "ball_with_rotor" in self._pending:
                    self._pending.remove("ball_with_rotor")
                    self._flags |= Flag.BALL_WITH_ROTOR
                    self.truth.append(SpinTruth(self._spin, reason="ball_with_rotor"))
                    self._void_since = now
                    self._until = now + VOID_PATIENCE
                elif "launch_failed" in self._pending:
                    self._flags |= Flag.LAUNCH_FAILED
                    self._until += 4.0
            case State.BALL_IN_RIM if self._void_since:
                self._void_since = 0.0  # nobody acknowledged: the table closes
                self._flags &= ~Flag.BALL_WITH_ROTOR
                self.state = State.TABLE_CLOSED
                self._until = now + 10.0
            case State.BALL_IN_RIM:
                self._flags &= ~Flag.LAUNCH_FAILED
                self._pending.discard("launch_failed")
                self._enter(State.NO_MORE_BETS, now)
                if "ball_not_detected" in self._pending:
                    self._pending.remove("ball_not_detected")
                    self._flags |= Flag.BALL_NOT_DETECTED
                    self._until = now + 75.0  # the controller stops by itself after 75 s
            case State.NO_MORE_BETS if Flag.BALL_NOT_DETECTED in self._flags:
                self._flags &= ~Flag.BALL_NOT_DETECTED
                self._stop("ball_not_detected")
                self._until = now + 10.0
            case State.NO_MORE_BETS:
                self._number = self._rng.choice(POCKETS)
                self.truth.append(SpinTruth(self._spin, self._number))
                self._enter(State.WINNING_NUMBER, now)
                number = b"" if self._mode & NO_NUMBER_LINE else encode(Number(self._number))
                if not self._mode & AUTOMATIC_STATUS:
                    return number
                self._next_status = now + STATUS_EVERY
                return number + self._status_line()
            case _:
                self._flags &= ~Flag.SENSOR_OR_MOTOR
                self._enter(State.STARTED, now)
        return b""

    def _count(self) -> None:
        self._spin = self._spin % 256 + 1

    def _begin_spin(self, now: float) -> None:
        if self._mode & 1:
            self._clockwise = not self._clockwise
        self._enter(State.PLACE_BETS, now)

    # ---- the controller's words

    def _status_line(self) -> bytes:
        turning = 0 if self.state is State.TABLE_CLOSED else self._rng.randint(135, 165)
        return encode(Status(self.state, self._spin, self._number, self._flags, turning, self._clockwise))

    def _command(self, packet: Packet, now: float) -> bytes:
        match packet.letter, packet.text:
            case "X", "":
                return self._status_line()
            case "K", "":
                return encode(Packet("K", "CAM"))
            case "S", "":
                return encode(Packet("S", "2.52"))
            case "V", "":
                return encode(Packet("V", "feltd simulated wheel"))
            case "P", "1":
                self.open_table(now)
                return encode(Packet("P", "OK"))
            case "P", "0":
                self._stop("powered_off")
                return encode(Packet("P", "OK"))
            case "R", "":
                self._restart(now)
                return encode(Packet("R", "OK"))
            case "u", "1" | "3" as way:
                if self.state is State.STARTED:
                    self._clockwise = way == "1"
                    self._enter(State.PLACE_BETS, now)
                return encode(Packet("u", "OK"))
            case "o", "":
                return encode(Packet("o", str(self._mode)))
            case "o", mode if mode.isdecimal():
                self._mode = int(mode)
                self._next_status = now
                return encode(Packet("o", mode))
            case letter, _:
                return encode(Packet(letter, "NO"))

    def _restart(self, now: float) -> None:
        """`*R`: the game starts again from state 2, with the same counter."""
        if self.state in (State.BALL_IN_RIM, State.NO_MORE_BETS):
            if not self._void_since:
                self.truth.append(SpinTruth(self._spin, reason="restarted"))
            self._void_since = 0.0
            self._flags &= Flag.SENSOR_OR_MOTOR
            self._begin_spin(now)
