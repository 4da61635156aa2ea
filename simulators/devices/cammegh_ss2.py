"""A simulated Cammegh SS2 wheel: rotor, ball and controller, from its integrator information and captures.

In arcade mode the wheel runs by itself; with mode bit 2 it waits in state 2 for `*u`, as captured. The counter advances
when state 5 ends, as captured; a spin that was void or closed is repeated under its number. `truth` holds what really
happened to each spin, to compare with the host's events.

Invented, because it is undocumented: the layout of the tables of `*w`, `*W` and `*M`, the values of `*T`, that the
controller sends nothing during a self-test, and that it answers `*P NO` while a sensor fault is open.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct

from protocols.cammegh_ss2 import (
    LICENCE_EXPIRED,
    PARAMETERS,
    Decoder,
    Flag,
    Mode,
    Number,
    Packet,
    State,
    Status,
    encode,
)
from simulators.devices.device import Ailment

POCKETS = tuple(str(number) for number in range(37))
ARCADE = 1157
HOST_DRIVEN = 1159
ONE_DIRECTION = 1158
WAIT_FOR_START = Mode.WAIT_FOR_START.value
STARTED_AFTER_NUMBER = Mode.STARTED_AFTER_NUMBER.value
NO_NUMBER_LINE = Mode.NO_NUMBER_LINE.value
AUTOMATIC_STATUS = Mode.AUTOMATIC_STATUS.value
SELF_TEST_IN_PLAY = Mode.SELF_TEST_IN_PLAY.value
BONUS = Mode.BONUS.value
STATUS_EVERY = 0.5
VOID_TIMEOUT_S = 15.0
SILENT_AFTER_POWER_ON = 5.0
SELF_TEST_TAKES = (20.0, 60.0)
BONUS_DAYS = 30

# Seconds in each state, shortest and longest, as captured.
PHASES = {
    State.STARTED: (5.0, 10.0),
    State.PLACE_BETS: (5.0, 8.0),
    State.BALL_IN_RIM: (6.0, 8.0),
    State.NO_MORE_BETS: (12.0, 18.0),
    State.WINNING_NUMBER: (0.6, 1.6),
}
# The shortest state also with `hurry`: two status lines fit into it.
SHORTEST_PHASE_S = 1.2
# Result of the self-test for each fault that it detects.
SELF_TEST_CODES = {"sensor": 11, "sensor_blind": 22, "motor": 5, "encoder": 6, "no_ball": 2}
STOPPING = ("sensor", "sensor_blind", "motor", "encoder")
# For so many seconds after the table was opened no wheel closes by itself.
SETTLED = 32.0

# The controller's own tries before the ball runs in the rim: how long, and how often their flag is shown.
RETRIED = (25.0, 29.0)
MISFIRES = 10.0
NOW_AND_THEN, FAILED_LAUNCHES = 120.0, 19

_STOPPED = ("wheel.sensor_or_motor", "spin.voided")


class SpinTruth(Struct, frozen=True):
    """How one spin ended: in `pocket`, or void for `reason`."""

    spin: int
    pocket: str = ""
    reason: str = ""


class Wheel:
    """The simulated wheel."""

    name: ClassVar[str] = "cammegh_ss2"
    faults: ClassVar[Mapping[str, Ailment]] = {
        "ball_with_rotor": Ailment(
            "the ball is launched with the rotor instead of against it",
            ("wheel.ball_with_rotor", "spin.voided"),
            "void",
        ),
        "foreign_object": Ailment(
            "something lies on the track: in each spin the ball hits it, until it is taken away",
            ("wheel.ball_with_rotor", "spin.voided"),
            "void",
            person=True,
        ),
        "launch_failed": Ailment("the launch fails for long, then succeeds", ("wheel.launch_failed",), "counts"),
        "launch_failed_briefly": Ailment("the launch fails for less than 3 s", (), "counts"),
        "launch_retried": Ailment(
            "the controller tries to launch for 25 to 29 s, as seen on real wheels", ("wheel.launch_failed",), "counts"
        ),
        "launch_retried_now_and_then": Ailment(
            "nineteen failed launches within two minutes, each flagged in one line, as seen on a real wheel",
            ("wheel.launch_failed",),
            "counts",
        ),
        "misfires": Ailment(
            "the ball runs with the rotor at each launch for 10 s; the controller tries again before the rim",
            ("wheel.launch_failed",),
            "counts",
        ),
        "ball_not_detected": Ailment(
            "the ball leaves the track after no more bets", ("wheel.ball_not_detected", "spin.voided"), "void"
        ),
        "no_ball": Ailment("the ball is not found for the launch", ("wheel.no_ball", "spin.voided"), "void", True),
        "sensor": Ailment("a rim sensor is stuck on; the wheel powers down", _STOPPED, "void", person=True),
        "sensor_blind": Ailment("a rim sensor detects nothing; the wheel powers down", _STOPPED, "void", person=True),
        "motor": Ailment("the rotor's motor fails; the wheel powers down", _STOPPED, "void", person=True),
        "encoder": Ailment("the rotor's encoder fails; the wheel powers down", _STOPPED, "void", person=True),
        "number_bounces": Ailment(
            "the ball jumps to another pocket when its number was sent once; the later lines have the last one",
            ("wheel.number_unsteady", "ball.landed"),
            "counts",
        ),
        "drops_to_closed": Ailment(
            "the controller closes the table after no more bets",
            ("wheel.dropped", "spin.voided"),
            "void",
            person=True,
        ),
        "restart_refused": Ailment(
            "the ball is launched with the rotor, and the controller does not take the restart",
            ("wheel.ball_with_rotor", "spin.voided", "wheel.restart_refused"),
            "void",
            person=True,
        ),
        "wrong_direction": Ailment(
            "the rotor does not turn back for the next game; reported only where the driver's `alternating` is set",
            (),
            "counts",
        ),
        "bonus_licence": Ailment(
            "the licence of the bonus numbers runs out", ("wheel.bonus_licence",), "counts", person=True
        ),
        "power_loss": Ailment(
            "mains off and on: it sends nothing for some seconds, and the counter begins again",
            ("device.offline",),
            "void",
        ),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before a status line: the next one comes half a second later", (), "counts"),
        "half_frame": Ailment("half a status line is lost: the next one comes half a second later", (), "counts"),
        "repeated": Ailment("a state that comes twice counts once", (), "counts"),
        "silence": Ailment("no line for longer than the heartbeat; the spin goes on", ("device.offline",), "counts"),
        "slow_drip": Ailment("the lines come late, but whole", (), "counts"),
        "wrong_baud": Ailment(
            "no valid line for longer than the heartbeat; the spin goes on", ("device.offline",), "counts"
        ),
        "unplugged": Ailment("the cable is pulled and put back; the spin goes on", ("device.offline",), "counts"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()

    def __init__(
        self,
        rng: random.Random,
        *,
        mode: int = ARCADE,
        spin: int = 1,
        closed: bool = False,
        port: Literal[1, 2, 3] = 1,
    ) -> None:
        """A wheel that has just been switched on and turns, or is `closed` until `open_table`.

        `port`: that of the controller; 2 and 3 send data for displays and ignore input.
        """
        self._rng = rng
        self.hurry = 1.0
        """How many times shorter its phases are than those of a real wheel."""
        self._mode = mode
        self._port = port
        self._decoder = Decoder()
        self.state = State.TABLE_CLOSED if closed else State.STARTED
        self._open = not closed
        self._opened_at = 0.0
        self._until = float("inf") if closed else rng.uniform(*PHASES[State.STARTED])
        self._spin = spin
        self._number = ""
        self._clockwise = rng.random() < 0.5
        self._flags = Flag(0)
        self._next_status = 0.0
        self._silent_until = 0.0
        self._void_since = 0.0
        self._retrying = self._waits = False
        self._pending: set[str] = set()
        self._standing: set[str] = set()
        self._alarm: tuple[float, str] = (float("inf"), "")
        self._test_until = float("inf")
        self._unsaid = b""
        self._misfires: Counter[str] = Counter()
        self._parameters = dict.fromkeys(PARAMETERS.values(), "0") | {
            "H": "60",
            "N": "15",
            "S": "14.0 17.50000",
            "Z": "37",
        }
        self.truth: list[SpinTruth] = []
        self.restarted_at = 0  # number of ended spins when its counter last began again

    # ---- time

    def due(self) -> float:
        """The time of the next status line, of the end of the state, or of the ball's next event."""
        return max(min(self._until, self._next_status, self._alarm[0], self._test_until), 0.0)

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        out = b""
        if not self._mode & AUTOMATIC_STATUS:
            self._next_status = float("inf")
        # In the order of time, also where many seconds passed at once: each state shows its own lines.
        while (next_ := min(self._until, self._next_status, self._alarm[0], self._test_until)) <= now:
            if next_ == self._test_until:
                out += self._test_over()
            elif next_ == self._alarm[0]:
                self._alarmed(next_)
            elif next_ == self._until:
                out += self._advance(next_)
            else:
                out += self._unsaid
                self._unsaid = b""
                out += self._status_line() if self._test_until == float("inf") else b""
                self._next_status += STATUS_EVERY
        return out if now >= self._silent_until else b""

    def hear(self, data: bytes, now: float) -> bytes:
        """A command of the host."""
        out = b""
        if self._port != 1:
            return out
        for message in self._decoder.feed(data):
            if isinstance(message, Packet) and now >= self._silent_until and self._test_until == float("inf"):
                out += self._command(message, now)
        return out

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What the operator's key does."""
        return {"open_table": self.open_table, "close_table": self.close_table}

    def open_table(self, now: float) -> None:
        """Open the table with the operator's key at the wheel."""
        self._open = True
        if self.state is State.TABLE_CLOSED and not self._flags:
            self._opened_at = now
            self._enter(State.STARTED, now)

    @property
    def no_more_bets(self) -> bool:
        """The ball slows down."""
        return self.state is State.NO_MORE_BETS

    def close_table(self, now: float = 0.0) -> None:  # noqa: ARG002 - as every act
        """Close the table with the operator's key."""
        self._open = False
        self._stop("closed")

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault: those of the ball in this spin or the next, the others at once."""
        match fault:
            case "sensor" | "sensor_blind" | "motor" | "encoder":
                self._standing.add(fault)
                self._flags |= Flag.SENSOR_OR_MOTOR
                self._stop(fault)
                if self._mode & SELF_TEST_IN_PLAY:
                    self._unsaid = encode(Packet("F", str(SELF_TEST_CODES[fault])))
            case "power_loss":
                self._stop("power_loss")
                self.restarted_at = len(self.truth)
                self._spin = 1
                self._number = ""
                self._test_until = float("inf")
                self._silent_until = now + SILENT_AFTER_POWER_ON
                if self._open and not self._flags:
                    self._opened_at = now
                    self._enter(State.STARTED, now + SILENT_AFTER_POWER_ON)
            case "foreign_object":
                self._standing.add(fault)
            case "bonus_licence":
                self._standing.add(fault)
                self._mode |= BONUS  # only a wheel with bonus numbers has a licence for them
            case _ if fault in self.faults:
                self._pending.add(fault)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}; it has {', '.join(self.faults)}")

    def repair(self, now: float) -> None:
        """Take away the object, put the ball back, clean the sensors, switch it on again."""
        for fault in self.faults:
            if self.faults[fault].person:
                self._pending.discard(fault)
                self._standing.discard(fault)
        self._flags &= ~Flag.SENSOR_OR_MOTOR
        if self.state is State.NO_BALL:
            self._begin_spin(now)
        if self._open and self._test_until == float("inf"):
            self.open_table(now)

    # ---- physics

    def _enter(self, state: State, now: float) -> None:
        self.state = state
        self._until = now + self._rng.uniform(*PHASES[state])
        if self.hurry > 1.0 and state is not State.WINNING_NUMBER:
            self._until = now + max((self._until - now) / self.hurry, SHORTEST_PHASE_S)

    def _stop(self, reason: str) -> None:
        if self.state in (State.PLACE_BETS, State.BALL_IN_RIM, State.NO_MORE_BETS) and not self._void_since:
            self.truth.append(SpinTruth(self._spin, reason=reason))
        if self.state is State.WINNING_NUMBER:
            self._count()
        self._flags &= Flag.SENSOR_OR_MOTOR
        self._retrying = self._waits = False
        self.state = State.TABLE_CLOSED
        self._until = float("inf")
        self._alarm = (float("inf"), "")
        self._void_since = 0.0

    def _advance(self, now: float) -> bytes:
        """The present state ends."""
        match self.state:
            case State.STARTED | State.WINNING_NUMBER if self._mode & WAIT_FOR_START:
                if self.state is State.WINNING_NUMBER:
                    self._count()
                self._enter(State.PLACE_BETS, now)
                self._waits = True
                self._until = float("inf")
            case State.WINNING_NUMBER:
                self._count()
                if self._mode & STARTED_AFTER_NUMBER:
                    self._enter(State.STARTED, now)
                else:
                    self._begin_spin(now)
            case State.STARTED:
                self._begin_spin(now)
            case State.PLACE_BETS if self._takes("no_ball"):
                self.truth.append(SpinTruth(self._spin, reason="no_ball"))
                self._standing.add("no_ball")
                self.state = State.NO_BALL
                self._until = float("inf")
            case State.PLACE_BETS if not self._retrying and self._retries(now):
                self._retrying = True
            case State.PLACE_BETS:
                self._retrying = False
                self._flags &= ~(Flag.LAUNCH_FAILED | Flag.BALL_WITH_ROTOR)
                self._alarm = (float("inf"), "")
                self._launch(now)
            case State.BALL_IN_RIM if self._void_since:
                self._void_since = 0.0  # not acknowledged in time: the table closes
                self._flags &= ~Flag.BALL_WITH_ROTOR
                self.state = State.TABLE_CLOSED
                self._until = float("inf") if "restart_refused" in self._standing else now + 10.0
            case State.BALL_IN_RIM:
                self._flags &= ~Flag.LAUNCH_FAILED
                self._alarm = (float("inf"), "")
                self._enter(State.NO_MORE_BETS, now)
                if self._takes("ball_not_detected"):
                    self._flags |= Flag.BALL_NOT_DETECTED
                    self._until = now + 75.0  # the controller stops by itself after 75 s
                elif self._takes("drops_to_closed"):
                    self._alarm = (max(now + 3.0, self._opened_at + SETTLED), "drops_to_closed")
                    self._until = float("inf")
                return self._bonus_line()
            case State.NO_MORE_BETS if Flag.BALL_NOT_DETECTED in self._flags:
                self._flags &= ~Flag.BALL_NOT_DETECTED
                self._stop("ball_not_detected")
                self._until = now + 10.0
            case State.NO_MORE_BETS:
                return self._fall(now)
            case _:
                self._opened_at = now
                self._enter(State.STARTED, now)
        return b""

    def _retries(self, now: float) -> bool:
        """Whether the controller fails to launch and tries again for a while; the state stays 2."""
        if self._takes("launch_retried"):
            self._flags |= Flag.LAUNCH_FAILED
            self._until = now + self._rng.uniform(*RETRIED)
        elif self._takes("misfires"):
            self._flags |= Flag.BALL_WITH_ROTOR
            self._until = now + MISFIRES
        elif self._takes("launch_retried_now_and_then"):
            self._until = now + NOW_AND_THEN
            self._alarm = (now, "launch_fails")
        else:
            return False
        return True

    def _launch(self, now: float) -> None:
        self._flags &= ~Flag.BALL_NOT_DETECTED
        self._enter(State.BALL_IN_RIM, now)
        if self._takes("restart_refused"):
            self._standing.add("restart_refused")
            self._misfire("restart_refused", now)
        elif self._takes("ball_with_rotor"):
            self._misfire("ball_with_rotor", now)
        elif "foreign_object" in self._standing:
            self._alarm = (now + 3.0, "foreign_object")
        elif self._takes("launch_failed"):
            self._flags |= Flag.LAUNCH_FAILED
            self._until += 4.0
        elif self._takes("launch_failed_briefly"):
            self._flags |= Flag.LAUNCH_FAILED
            self._alarm = (now + 2.2, "launched")

    def _misfire(self, reason: str, now: float) -> None:
        """The ball turns with the rotor: the spin is void, and the wheel waits for *R."""
        self._flags |= Flag.BALL_WITH_ROTOR
        self.truth.append(SpinTruth(self._spin, reason=reason))
        self._misfires[self._number or "0"] += 1
        self._void_since = now
        self._until = now + VOID_TIMEOUT_S

    def _fall(self, now: float) -> bytes:
        """The ball lies in a pocket; a bouncing one was seen in another just before."""
        self._number = self._rng.choice(POCKETS)
        self.truth.append(SpinTruth(self._spin, self._number))
        self._enter(State.WINNING_NUMBER, now)
        seen = self._number
        if self._takes("number_bounces"):
            seen = POCKETS[(POCKETS.index(seen) + 1) % len(POCKETS)]
        number = b"" if self._mode & NO_NUMBER_LINE else encode(Number(seen))
        if not self._mode & AUTOMATIC_STATUS:
            return number
        self._next_status = now + STATUS_EVERY
        return number + self._status_line(self._number if number else seen)

    def _alarmed(self, now: float) -> None:
        _, what = self._alarm
        self._alarm = (float("inf"), "")
        match what:
            case "launched":
                self._flags &= ~Flag.LAUNCH_FAILED
            case "foreign_object":
                self._misfire("foreign_object", now)
            case "launch_fails":
                self._flags |= Flag.LAUNCH_FAILED
                self._alarm = (now + STATUS_EVERY, "launched_again")
            case "launched_again":
                self._flags &= ~Flag.LAUNCH_FAILED
                self._alarm = (now + NOW_AND_THEN / FAILED_LAUNCHES - STATUS_EVERY, "launch_fails")
            case _:
                self._standing.add(what)
                self._stop(what)

    def _takes(self, fault: str) -> bool:
        """Whether this injected fault was pending; it is removed."""
        waits = fault in self._pending
        self._pending.discard(fault)
        return waits

    def _count(self) -> None:
        self._spin = self._spin % 256 + 1

    def _begin_spin(self, now: float) -> None:
        if self._mode & 1 and not self._takes("wrong_direction"):
            self._clockwise = not self._clockwise
        self._enter(State.PLACE_BETS, now)

    # ---- commands of the controller

    def _status_line(self, number: str | None = None) -> bytes:
        turning = 0 if self.state is State.TABLE_CLOSED else self._rng.randint(135, 165)
        shown = self._number if number is None else number
        return encode(Status(self.state, self._spin, shown, self._flags, turning, self._clockwise))

    def _bonus_line(self) -> bytes:
        if not self._mode & BONUS:
            return b""
        days = LICENCE_EXPIRED if "bonus_licence" in self._standing else f"{BONUS_DAYS:03d}"
        return encode(Packet("Y", f"{self._rng.randint(1, 6)};{self._rng.randint(1, 500):03d};{days}"))

    def _test_over(self) -> bytes:
        self._test_until = float("inf")
        codes = sorted(SELF_TEST_CODES[fault] for fault in self._standing if fault in SELF_TEST_CODES) or [0]
        return b"".join(encode(Packet("F", str(code))) for code in codes)

    def _command(self, packet: Packet, now: float) -> bytes:  # noqa: C901 - a case for each command
        idle = self.state in (State.STARTED, State.TABLE_CLOSED)
        counted = self.state in (State.WINNING_NUMBER, State.TABLE_CLOSED)
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
                if Flag.SENSOR_OR_MOTOR in self._flags:
                    return encode(Packet("P", "NO"))
                self.open_table(now)
                return encode(Packet("P", "OK"))
            case "P", "0":
                self._open = False
                self._stop("powered_off")
                return encode(Packet("P", "OK"))
            case "R", "":
                if "restart_refused" in self._standing:
                    return encode(Packet("R", "NO"))
                self._restart(now)
                return encode(Packet("R", "OK"))
            case "u", "1" | "3" as way:
                if not (self._waits or (self.state is State.STARTED and self._mode & WAIT_FOR_START)):
                    return encode(Packet("u", "NO"))
                self._waits = False
                self._clockwise = way == "1"
                self._enter(State.PLACE_BETS, now)
                return encode(Packet("u", "OK"))
            case "o", "":
                return encode(Packet("o", str(self._mode)))
            case "o", mode if mode.isdecimal():
                if not idle:
                    return encode(Packet("o", "BUSY"))
                self._mode = int(mode)
                self._next_status = now + STATUS_EVERY
                if self.state is State.STARTED:
                    self._enter(State.STARTED, now)
                return encode(Packet("o", mode))
            case "O", "":
                return encode(Packet("O", f"{self.state.value} 1 {self._parameters['H']} {self._mode}"))
            case "F", "":
                if self.state is not State.TABLE_CLOSED:
                    return encode(Packet("F", "BUSY"))
                self._test_until = now + self._rng.uniform(*SELF_TEST_TAKES)
                return b""
            case "w" | "W" | "M" as letter, "":
                return self._table(letter) if counted else encode(Packet(letter, "BUSY"))
            case "T", text:
                return self._parameter(text)
            case letter, _:
                return encode(Packet(letter, "NO"))

    def _table(self, letter: str) -> bytes:
        counts = Counter(spin.pocket for spin in self.truth if spin.pocket)
        if letter == "w":
            expected = max(counts.total(), 1) / len(POCKETS)
            chi = sum((counts[pocket] - expected) ** 2 / expected for pocket in POCKETS)
            return encode(Packet("w", f"{chi:.1f}"))
        if letter == "M":
            counts = self._misfires
        rows = [POCKETS[first : first + 10] for first in range(0, len(POCKETS), 10)]
        return b"".join(encode(Packet(letter, " ".join(f"{one}:{counts[one]}" for one in row))) for row in rows)

    def _parameter(self, text: str) -> bytes:
        """`H` reads, `h 60` sets, `f` stores."""
        letter, _, value = text.partition(" ")
        if letter == "f" and not value:
            return encode(Packet("T", "f OK"))
        if letter.upper() not in self._parameters or letter.islower() != bool(value):
            return encode(Packet("T", "NO"))
        if value:
            self._parameters[letter.upper()] = value
        return encode(Packet("T", f"{letter.lower()} {self._parameters[letter.upper()]}"))

    def _restart(self, now: float) -> None:
        """`*R`: the game starts again from state 2, with the same counter."""
        if self.state in (State.BALL_IN_RIM, State.NO_MORE_BETS):
            if not self._void_since:
                self.truth.append(SpinTruth(self._spin, reason="restarted"))
            self._void_since = 0.0
            self._alarm = (float("inf"), "")
            self._flags &= Flag.SENSOR_OR_MOTOR
            self._begin_spin(now)
