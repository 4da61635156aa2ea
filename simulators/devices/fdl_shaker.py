"""A simulated dice shaker that speaks FDL: three dice under a dome, a lever, a motor, a reader, a lamp."""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from protocols.fdl import frame as fdl, shaker as fdl_shaker
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING, FdlDevice

MOTOR, NOT_STARTED, NOT_FINISHED, NO_SHAKE, LEVER_SENSOR, CLASP, DICE_COUNT, READER, LAMP, FOREIGN = range(0x10, 0x1A)

CYCLE = 2.0  # seconds of one agitation by the motor
STARTS_IN = 1.0  # seconds after which an agitation that did not begin is a fault
ENDS_IN = 5.0  # seconds beyond its time after which an agitation that did not end is a fault
BUSY, STANDING_FAULT, RANGE, OPEN = 0x01, 0x02, 0x04, 0x05


class Shaker(FdlDevice):
    """Three fair dice. The methods are what the dealer does; each is an event unless the shaker is off.

    A fault of the next electronic agitation appears when the dealer, with the dome on, presses its key; then he pulls
    the lever.
    """

    name: ClassVar[str] = "fdl_shaker"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "deaf": replace(COMMON_FAULTS["deaf"], round="void"),  # the shaking is not reported before the bell
        "dice_stacked": Ailment("two dice lie on each other at the next reading", (), "void"),
        "dice_leaning": Ailment("a die leans at the next reading", (), "void"),
        "dice_not_moved": Ailment("the next pull does not move the dice", ("shaker.no_shake",), "counts"),
        "motor_fault": Ailment("the motor does not turn for 20 s", ("shaker.motor",), "counts"),
        "not_started": Ailment("the next electronic agitation does not begin", ("shaker.not_started",), "counts"),
        "not_finished": Ailment("the next electronic agitation does not end", ("shaker.not_finished",), "counts"),
        "lever_stuck": Ailment(
            "the lever's sensor is stuck, pulls are not counted", ("shaker.lever_sensor",), "void", person=True
        ),
        "clasp_open": Ailment(
            "a clasp springs open, or does not shut: the dice count as not covered",
            ("shaker.clasp",),
            "void",
            person=True,
        ),
        "die_missing": Ailment(
            "a die is missing at the next reading", ("shaker.dice_count",), "suspended", person=True
        ),
        "unreadable": Ailment(
            "the reader detects nothing at the next reading", ("shaker.reader",), "suspended", person=True
        ),
        "foreign_object": Ailment(
            "a chip lies beside the dice at the next reading", ("shaker.foreign_object",), "suspended", person=True
        ),
        "lamp_out": Ailment("the reading lamp burns out", ("shaker.lamp",), "counts", person=True),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (
        ("cover", 1.0),
        ("pull_lever", 0.8),
        ("pull_lever", 0.8),
        ("pull_lever", 15.0),
        ("uncover", 1.0),
        ("read", 6.0),
    )
    kind: ClassVar[int] = fdl.SHAKER
    model: ClassVar[str] = "Shaker"

    def __init__(self, rng: random.Random, serial: str = "SIM-SHAKER-1") -> None:
        super().__init__(rng, serial)
        self._faces = self._roll()
        self._stacked = 0
        self._leaning = 0
        self._next_lie: tuple[int, int] | None = None
        self._next_sight: int | None = None  # the fault of the next reading
        self._next_motor: int | None = None  # the fault of the next electronic agitation
        self._next_still = False
        self._clasp_bends = False
        self._covered = False
        self._shut = False
        self._lamps = 0
        self._motor: tuple[float, int, int | None] | None = None  # when it ends, cycles, the fault it ends with
        self._cut_off = False

    def due(self) -> float:
        """Seconds of the next message, or of the end of the motor's run."""
        due = super().due()
        return due if self._motor is None or self._boots_at is not None else min(due, self._motor[0])

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        self._turn(now)
        return super().wake(now)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "dice_stacked":
                self._next_lie = (2, 0)
            case "dice_leaning":
                self._next_lie = (0, 1)
            case "dice_not_moved":
                self._next_still = True
            case "motor_fault":
                self._motor = None
                self._fail(MOTOR, ERROR, now)
            case "not_started":
                self._next_motor = NOT_STARTED
                self._press_key(now)
            case "not_finished":
                self._next_motor = NOT_FINISHED
                self._press_key(now)
            case "lever_stuck":
                self._fail(LEVER_SENSOR, ERROR, now, person=True)
            case "clasp_open":
                self._clasp_bends = True
                if self._covered:
                    self._close(now)
            case "die_missing":
                self._next_sight = DICE_COUNT
            case "unreadable":
                self._next_sight = READER
            case "foreign_object":
                self._next_sight = FOREIGN
            case "lamp_out":
                self._lamps = 0
                self._fail(LAMP, WARNING, now, person=True)
            case _:
                super().inject(fault, now)

    def repair(self, now: float) -> None:
        """A person frees, cleans and replaces parts; a dome that is on is pressed down."""
        self._clasp_bends = False
        self._next_sight = None
        super().repair(now)
        if self._covered and not self._shut:
            self._close(now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What the dealer does."""
        return {
            "cover": self.cover,
            "pull_lever": self.pull_lever,
            "agitate": self.agitate,
            "uncover": self.uncover,
            "read": self.read,
        }

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host."""
        match code:
            case fdl_shaker.AGITATE:
                if len(data) != 1 or not 1 <= data[0] <= 10:
                    return fdl.REFUSED, RANGE, b""
                reason = self._refusal(now)
                if reason:
                    return fdl.REFUSED, reason, b""
                self.agitate(now, data[0])
                return fdl.DONE, 0, b""
            case fdl_shaker.LIGHT:
                if len(data) != 1 or data[0] > fdl_shaker.READING_LAMP:
                    return fdl.REFUSED, RANGE, b""
                if data[0] and self._ails(LAMP, now):
                    return fdl.REFUSED, STANDING_FAULT, b""
                if data[0] != self._lamps:
                    self._lamps = data[0]
                    self.record(fdl_shaker.Lit(self._lamps), now)
                return fdl.DONE, 0, b""
            case _:
                return super().do(code, data, now)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """The motor stops where it is, the lamp goes dark; a shaker that kept its memory reports the agitation."""
        self._cut_off = self._motor is not None and not lose_memory
        self._motor = None
        self._lamps = 0
        super().power_cycle(now, lose_memory=lose_memory)

    # ---- the dealer's hands

    def cover(self, now: float) -> None:
        """Put the dome on and shut its clasps."""
        self._turn(now)
        self._covered = True
        self._close(now)
        self._press_key(now)

    def uncover(self, now: float) -> None:
        """Lift the dome. A motor that still runs stops."""
        self._turn(now)
        self._covered = self._shut = False
        if self._motor is not None:
            self._motor = None
            self._troubled(NOT_FINISHED, now)
        self.record(fdl_shaker.Uncovered(), now)

    def pull_lever(self, now: float) -> bool:
        """One pull. False if the dealer sees that the dice did not move."""
        self._turn(now)
        if self._next_still:
            self._next_still = False
            self._troubled(NO_SHAKE, now)
            return False
        self._throw()
        if not self._ails(LEVER_SENSOR, now):
            self._agitated(fdl_shaker.Agitated(fdl_shaker.LEVER), now)
        return True

    def lever_works(self, now: float) -> bool:
        """Whether pulls are counted, as the shaker's own lamp shows."""
        return not self._ails(LEVER_SENSOR, now)

    def lie(self) -> tuple[tuple[int, ...], int, int]:
        """The true state of the dice: faces, number of stacked dice, number of leaning dice."""
        faces = self._faces[:-1] if DICE_COUNT in self._standing else self._faces
        return faces, self._stacked, self._leaning

    def agitate(self, now: float, cycles: int = 1) -> bool:
        """Start the motor; the outcome is reported at the end. False if it may not or cannot start."""
        self._turn(now)
        if not self._boots(now) or self._refusal(now):
            return False
        trouble, self._next_motor = self._next_motor, None
        seconds = {None: cycles * CYCLE, NOT_STARTED: STARTS_IN}.get(trouble, cycles * CYCLE + ENDS_IN)
        self._motor = (now + seconds, cycles, trouble)
        return True

    def read(self, now: float) -> tuple[tuple[int, ...], int, int] | None:
        """The reader reports the true faces; None if it cannot read them or is off."""
        self._turn(now)
        if self._next_lie is not None:
            self._stacked, self._leaning = self._next_lie
            self._next_lie = None
        if self._next_sight is not None:
            self._fail(self._next_sight, ERROR, now, person=True)
            self._next_sight = None
        if not self._boots(now) or self._ails(READER, now) or self._ails(FOREIGN, now):
            return None
        self.record(fdl_shaker.Read(*self.lie()), now)
        return self.lie()

    # ---- inside

    def _refusal(self, now: float) -> int:
        """Why the motor may not turn now; 0 if it may."""
        self._turn(now)
        if self._motor is not None:
            return BUSY
        if not self._shut:
            return OPEN
        return STANDING_FAULT if self._ails(MOTOR, now) else 0

    def _press_key(self, now: float) -> None:
        """Press the dealer's key for an electronic agitation, so that its injected fault appears."""
        if self._next_motor is not None and self._shut:
            self.agitate(now)

    def _close(self, now: float) -> None:
        was_shut, self._shut = self._shut, not self._clasp_bends
        if self._shut:
            self.record(fdl_shaker.Covered(), now)
            return
        self._fail(CLASP, WARNING, now, person=True)
        if was_shut:
            self.record(fdl_shaker.Uncovered(), now)

    def _turn(self, now: float) -> None:
        """Simulate the motor until `now`."""
        if self._motor is None or now < self._motor[0] or not self._boots(now):
            return
        at, cycles, trouble = self._motor
        self._motor = None
        if trouble != NOT_STARTED:
            self._throw()
        if trouble is None:
            self._agitated(fdl_shaker.Agitated(fdl_shaker.ELECTRONIC, cycles), at)
        else:
            self._troubled(trouble, at)

    def _agitated(self, agitation: fdl_shaker.Agitated, now: float) -> None:
        """The dice were shaken: the faults of a failed agitation end."""
        self.record(agitation, now)
        for code in (NOT_STARTED, NOT_FINISHED, NO_SHAKE):
            self._heal(code, now)

    def _troubled(self, code: int, now: float) -> None:
        """An agitation failed. The fault lasts until one succeeds; a second failure is reported again."""
        if self._ails(code, now):
            self.record(fdl.Fault(code, WARNING), now)
        self._fail(code, WARNING, now, person=True)

    def _started(self, now: float) -> None:
        if self._cut_off:
            self._cut_off = False
            self._troubled(NOT_FINISHED, now)

    def _roll(self) -> tuple[int, ...]:
        return tuple(self._rng.randint(1, 6) for _ in range(3))

    def _throw(self) -> None:
        self._faces = self._roll()
        self._stacked = self._leaning = 0
