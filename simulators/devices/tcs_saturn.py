"""A simulated TCS John Huxley Saturn wheel: rotor, ball, launcher and a controller that only answers polls.

It plays by itself, or launches on RC03 if it is `manual`; the number is shown for some seconds, then the counter
advances. Rotor and ball reverse in each game, the ball against the rotor. `truth` holds what really happened to each
spin. Its answers follow `layout`, of which only the position of the error flag is known; durations, the answer to RC03
and the texts in that to SR3 are assumed, too.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from protocols.contract.events import Turn
from protocols.tcs_saturn import (
    ERROR,
    ERROR_FIELD,
    ERROR_STATION,
    LAUNCH,
    LAUNCH_STATION,
    STATUS,
    STATUS_STATION,
    TEXT_AT,
    Decoder,
    Frame,
    Layout,
    State,
    Status,
    StatusCodec,
    encode,
)
from simulators.devices.cammegh_ss2 import POCKETS, SpinTruth
from simulators.devices.device import Ailment

__all__ = ["POCKETS", "Saturn", "SpinTruth"]

NEVER = float("inf")
SILENT_AFTER_POWER_ON = 5.0
REBOOT = 1.0
RETRY = 4.0  # seconds between two attempts of the lift or the launcher
SHOWN = 3.0  # seconds that an error is shown before the wheel starts again
BOUNCE = 0.6

# Seconds in each state, shortest and longest: about one game a minute.
PHASES = {
    State.STARTED: (3.0, 5.0),
    State.PLACE_BETS: (15.0, 20.0),
    State.BALL_IN_RIM: (8.0, 12.0),
    State.NO_MORE_BETS: (8.0, 14.0),
    State.WINNING_NUMBER: (5.0, 7.0),
}
# The shortest phase with `hurry`; the number is shown for its usual time, so that a poll finds it.
SHORTEST_PHASE_S = 1.2

# Faults while the ball slows down in the track: the error, and whether the wheel waits for a person.
_SLOW = {
    "no_ball_detect": ("NO BALL DETECT", True),
    "sensor_stuck_on": ("SENSOR STUCK", True),
    "sensor_stuck_off": ("NO BALL DETECT", True),
    "encoder_fail": ("ENCODER FAIL", True),
    "stuck_nmb": ("STUCK NMB", True),
    "foreign_object": ("NO WIN NUM", True),
    "no_win_num": ("NO WIN NUM", False),
    "camera": ("ARE.4", False),
}
_BEFORE_LAUNCH = ("not_reach_pos", "ball_drop_fail", "wrong_wheel_dir")
_AT_LAUNCH = ("launch_fail", "ball_not_launched", "invalid_after_relaunch", "wrong_ball_dir")
_AT_NUMBER = ("number_bounces",)


class Saturn:
    """The simulated wheel."""

    name: ClassVar[str] = "tcs_saturn"
    faults: ClassVar[Mapping[str, Ailment]] = {
        "no_ball_detect": Ailment(
            "the ball leaves the track", ("saturn.no_ball_detect", "spin.voided"), "void", person=True
        ),
        "no_win_num": Ailment(
            "the ball falls, and its pocket is not read", ("saturn.no_win_num", "spin.voided"), "void"
        ),
        "sensor_stuck_on": Ailment(
            "a rim sensor detects a ball all the time", ("saturn.sensor_stuck", "spin.voided"), "void", person=True
        ),
        "sensor_stuck_off": Ailment(
            "a rim sensor has failed: the ball is not detected",
            ("saturn.no_ball_detect", "spin.voided"),
            "void",
            person=True,
        ),
        "wrong_ball_dir": Ailment(
            "the ball is launched with the rotor", ("saturn.wrong_ball_dir", "spin.voided"), "void"
        ),
        "wrong_wheel_dir": Ailment("the rotor turns the wrong way", ("saturn.wrong_wheel_dir", "spin.voided"), "void"),
        "launch_fail": Ailment("the first launch fails, the second does not", ("saturn.launch_fail",), "counts"),
        "ball_not_launched": Ailment(
            "two launches fail and the wheel stops", ("saturn.launch_fail", "spin.voided"), "void", person=True
        ),
        "not_reach_pos": Ailment("the ball lift gets there only late", ("saturn.not_reach_pos",), "counts"),
        "hardware_fault": Ailment(
            "a board fails and the wheel stops", ("saturn.hardware_fault", "spin.voided"), "void", person=True
        ),
        "encoder_fail": Ailment(
            "the rotor's position is lost", ("saturn.encoder_fail", "spin.voided"), "void", person=True
        ),
        "ball_drop_fail": Ailment(
            "the ball stays in its pocket", ("saturn.ball_drop_fail", "spin.voided"), "void", person=True
        ),
        "compressor_leak": Ailment(
            "a hose leaks; there is still air enough", ("saturn.compressor_leak",), "counts", person=True
        ),
        "stuck_nmb": Ailment(
            "the ball lies on a diamond and does not fall", ("saturn.stuck_nmb", "spin.voided"), "void", person=True
        ),
        "invalid_after_relaunch": Ailment(
            "launched again, the ball falls and its number is not valid",
            ("saturn.launch_fail", "saturn.invalid_after_relaunch", "spin.voided"),
            "void",
        ),
        "foreign_object": Ailment(
            "something lies on the rotor: no number is read",
            ("saturn.no_win_num", "spin.voided"),
            "void",
            person=True,
        ),
        "number_bounces": Ailment(
            "the ball bounces into another pocket after it was read",
            ("saturn.number_changed", "spin.voided"),
            "void",
        ),
        "camera": Ailment("an error that no list has: ARE.4", ("saturn.error", "spin.voided"), "void"),
        "power_loss": Ailment(
            "no power for a moment; it starts again and counts from 1",
            ("device.offline", "saturn.counter_reset", "spin.missed"),
            "void",
        ),
        "counter_reset": Ailment(
            "the controller starts again in a second and counts from 1",
            ("saturn.counter_reset", "spin.missed"),
            "void",
        ),
    }
    line: ClassVar[Mapping[str, Ailment]] = {
        "garbage": Ailment("noise before an answer: the next poll is answered", (), "counts"),
        "half_frame": Ailment("half an answer: the next poll is answered", (), "counts"),
        "repeated": Ailment("answers come twice: the second is left out", (), "counts"),
        "silence": Ailment("no answers for longer than 3 s", ("device.offline",), "counts"),
        "slow_drip": Ailment("answers take a second: the next poll waits for them", (), "counts"),
        "wrong_baud": Ailment("nothing readable for longer than 3 s", ("device.offline",), "counts"),
        "unplugged": Ailment("the adapter is gone and comes back", ("device.offline",), "counts"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()

    def __init__(
        self,
        rng: random.Random,
        *,
        spin: int = 1,
        closed: bool = False,
        manual: bool = False,
        layout: Layout | None = None,
    ) -> None:
        """A wheel that has just been switched on and turns, or is `closed` until `open_table`.

        `manual`: it launches only on the host's RC03.
        """
        self._rng = rng
        self.hurry = 1.0
        """How many times shorter its phases are than those of a real wheel."""
        self._manual = manual
        self._decoder = Decoder()
        self._codec = StatusCodec(layout or Layout())
        self._spin = spin
        self._number = ""
        self._rotor: Turn = rng.choice(("clockwise", "anticlockwise"))
        self._ball: Turn = _other(self._rotor)
        self._error = ""
        self._leak = False
        self._broken = False
        self._open = not closed
        self._invalid = False
        self._troubles: list[str] = []
        self._silent_until = 0.0
        self._until = NEVER
        self._then: Callable[[float], None] = self._start
        self.state = State.TABLE_CLOSED
        self.truth: list[SpinTruth] = []
        self.restarted_at = 0  # number of ended spins when its counter last began again
        self.misfires = 0
        """Number of launches that the host ordered while a ball ran or the wheel was not ready, which no host may
        do.
        """
        self._start(0.0)

    # ---- time

    def due(self) -> float:
        """The end of its present state; infinity if it only answers."""
        return self._until

    def wake(self, now: float) -> bytes:
        """Simulate until `now`. It never sends by itself."""
        while self._until <= now:
            at, self._until = self._until, NEVER
            self._then(at)
        return b""

    def hear(self, data: bytes, now: float) -> bytes:
        """Take polls of the host; returns the answers."""
        self.wake(now)
        out = b""
        for message in self._decoder.feed(data):
            if isinstance(message, Frame) and now >= self._silent_until:
                out += self._answer(message, now)
        return out

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What the keys at the wheel do."""
        return {"open_table": self.open_table, "close_table": self.close_table}

    @property
    def no_more_bets(self) -> bool:
        """The ball slows down."""
        return self.state is State.NO_MORE_BETS

    def open_table(self, now: float) -> None:
        """The operator's key at the wheel. Nothing happens while it waits for a repair."""
        self._open = True
        if self.state is State.TABLE_CLOSED and not self._broken:
            self._start(now)

    def close_table(self, now: float = 0.0) -> None:  # noqa: ARG002 - as every act
        """The same key again. The table stays closed until it is opened, also over a reboot and a repair.

        A number that is being shown is shown to its end.
        """
        self._open = False
        if self.state is not State.WINNING_NUMBER:
            self._void("closed")
            self._stop()

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault: those of ball and rotor at their moment in this spin or the next, the others at once."""
        self.wake(now)
        match fault:
            case "compressor_leak":
                self._leak = True
            case "hardware_fault":
                self._break("HARDWARE FAULT", "hardware_fault")
            case "power_loss":
                self._reboot(now, SILENT_AFTER_POWER_ON, fault)
            case "counter_reset":
                self._reboot(now, REBOOT, fault)
            case _ if fault in self.faults:
                self._troubles.append(fault)
                if self.state is State.PLACE_BETS and self._then == self._fire and not self._error:
                    self._make_ready(now)
            case _:
                raise ValueError(f"{self.name} has no fault {fault!r}; it has {', '.join(self.faults)}")

    def repair(self, now: float) -> None:
        """Put the ball back, clean the sensors, tighten the hoses, start the wheel again."""
        self._leak = False
        if self._broken:
            self._broken = False
            self._error = ""
            self._start(now)

    # ---- the game

    def _wait(self, until: float, then: Callable[[float], None]) -> None:
        self._until, self._then = until, then

    def _phase(self, state: State, now: float, then: Callable[[float], None]) -> None:
        self.state = state
        self._wait(now + self._rng.uniform(*PHASES[state]), then)
        if self.hurry > 1.0 and state is not State.WINNING_NUMBER:
            self._until = now + max((self._until - now) / self.hurry, SHORTEST_PHASE_S)

    def _strike(self, names: tuple[str, ...]) -> str:
        """The first of these injected faults that applies now, else empty."""
        found = next((name for name in self._troubles if name in names), "")
        if found:
            self._troubles.remove(found)
        return found

    def _start(self, now: float) -> None:
        if not self._open:
            self._stop()
            return
        self._number = ""
        self._phase(State.STARTED, now, self._place_bets)

    def _place_bets(self, now: float) -> None:
        self._error = ""
        self._number = ""
        self._rotor = _other(self._rotor)
        self._ball = _other(self._rotor)
        self._phase(State.PLACE_BETS, now, self._fire)
        if self._manual:
            self._until = NEVER
        self._make_ready(now)

    def _make_ready(self, now: float) -> None:
        """The ball goes to the launcher, the rotor to its speed."""
        match self._strike(_BEFORE_LAUNCH):
            case "not_reach_pos":
                self._error = "NOT REACH POS"
                self._wait(now + RETRY, self._position_reached)
            case "ball_drop_fail":
                self._wait(now + RETRY, lambda _: self._break("BALL DROP FAIL", "ball_drop_fail"))
            case "wrong_wheel_dir":
                self._rotor = self._ball
                self._wait(now + RETRY, lambda at: self._again("WRONG WHEEL DIR", "wrong_wheel_dir", at))
            case _:
                pass

    def _position_reached(self, now: float) -> None:
        self._error = ""
        self._phase(State.PLACE_BETS, now, self._fire)
        if self._manual:
            self._until = NEVER

    def _fire(self, now: float) -> None:
        match self._strike(_AT_LAUNCH):
            case "launch_fail":
                self._error = "LAUNCH FAIL"
                self._wait(now + RETRY, self._launch)
            case "ball_not_launched":
                self._error = "LAUNCH FAIL"
                self._wait(now + RETRY, self._fire_again)
            case "invalid_after_relaunch":
                self._error = "LAUNCH FAIL"
                self._invalid = True
                self._wait(now + RETRY, self._launch)
            case "wrong_ball_dir":
                self._ball = self._rotor
                self._phase(State.BALL_IN_RIM, now, self._fire)
                self._wait(now + 1.5, lambda at: self._again("WRONG BALL DIR", "ball_with_rotor", at))
            case _:
                self._launch(now)

    def _fire_again(self, now: float) -> None:
        """The error disappears while the launcher fills; then it fails once more and stops trying."""
        self._error = ""
        self._wait(now + RETRY, self._fails_again)

    def _fails_again(self, _: float) -> None:
        self._break("LAUNCH FAIL", "ball_not_launched")

    def _launch(self, now: float) -> None:
        self._error = ""
        self._phase(State.BALL_IN_RIM, now, self._slow)

    def _slow(self, now: float) -> None:
        self._phase(State.NO_MORE_BETS, now, self._land)
        trouble = self._strike(tuple(_SLOW))
        if trouble:
            error, person = _SLOW[trouble]
            if trouble == "stuck_nmb":
                self._until += 15.0

            def fails(at: float) -> None:
                if person:
                    self._break(error, trouble, stop=False)
                else:
                    self._again(error, trouble, at)

            self._then = fails

    def _land(self, now: float) -> None:
        self._phase(State.WINNING_NUMBER, now, self._shown)
        if self._invalid:
            self._invalid = False
            self._again("INVALID AFTER RELAUNCH", "invalid_after_relaunch", now)
            return
        self._number = self._rng.choice(POCKETS)
        if self._strike(_AT_NUMBER):
            self._void("number_bounces")
            end = self._until

            def bounce(_: float) -> None:
                self._number = self._rng.choice([pocket for pocket in POCKETS if pocket != self._number])
                self.truth[-1] = SpinTruth(self._spin, self._number, "number_bounces")  # only the last number is shown
                self._wait(end, self._shown)

            self._wait(now + BOUNCE, bounce)
        else:
            self.truth.append(SpinTruth(self._spin, self._number))

    def _shown(self, now: float) -> None:
        self._count()
        self._number = ""
        self._start(now)

    def _count(self) -> None:
        self._spin = (self._spin + 1) % 10_000

    # ---- faults

    def _void(self, reason: str) -> None:
        """The spin under way, if there is one, does not count."""
        if self.state in (State.PLACE_BETS, State.BALL_IN_RIM, State.NO_MORE_BETS) or (
            self.state is State.WINNING_NUMBER and reason in ("number_bounces", "invalid_after_relaunch")
        ):
            self.truth.append(SpinTruth(self._spin, reason=reason))

    def _again(self, error: str, reason: str, now: float) -> None:
        """Show the error, then begin the same spin again."""
        self._void(reason)
        self._error = error
        self._wait(now + SHOWN, self._start)

    def _break(self, error: str, reason: str, *, stop: bool = True) -> None:
        """Wait for a person, with the rotor stopped or as it is."""
        self._void(reason)
        self._error = error
        self._broken = True
        self._invalid = False
        if stop:
            self._stop()

    def _stop(self) -> None:
        if self._number:
            self._count()
        self.state = State.TABLE_CLOSED
        self._number = ""
        self._until = NEVER

    def _reboot(self, now: float, silent: float, reason: str) -> None:
        self._void(reason)
        self.restarted_at = len(self.truth)
        self._spin = 1
        self._error = self._number = ""
        self._broken = self._invalid = False
        self._silent_until = now + silent
        self._start(now + silent)

    # ---- commands of the controller

    def _answer(self, question: Frame, now: float) -> bytes:
        match question.station, question.text:
            case station, text if (station, text) == (STATUS_STATION, STATUS):
                turning = 0 if self.state is State.TABLE_CLOSED else self._rng.randint(180, 260)
                error = bool(self._error or self._leak)
                return self._codec.write(
                    Status(self.state, self._spin, self._number, self._ball, self._rotor, turning, error)
                )
            case station, text if (station, text) == (ERROR_STATION, ERROR):
                return self._error_answer()
            case station, text if (station, text) == (LAUNCH_STATION, LAUNCH):
                if self.state is not State.PLACE_BETS or self._error:
                    self.misfires += 1
                else:
                    self._fire(now)
                return encode(Frame(station, "OK"))
            case _:
                return b""

    def _error_answer(self) -> bytes:
        text = self._error or ("COMPRESSOR LEAK" if self._leak else "")
        filler = "0" * (ERROR_FIELD.at - TEXT_AT)
        return encode(Frame(ERROR_STATION, filler + text[: ERROR_FIELD.length].ljust(ERROR_FIELD.length)))


def _other(turn: Turn) -> Turn:
    return "anticlockwise" if turn == "clockwise" else "clockwise"
