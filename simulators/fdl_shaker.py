"""A simulated dice shaker that speaks FDL: three dice under a dome, a lever, a motor, a reader."""

import random
from typing import ClassVar

from protocols import fdl
from simulators.fdl_device import COMMON_FAULTS, FdlDevice

MOTOR = 0x10
ERROR = 2


class Shaker(FdlDevice):
    """Three fair dice. The methods are what the dealer does; each is an event unless the shaker is off.

    Its own faults: "dice_stacked" and "dice_leaning": so lie the dice at the next reading, until they are agitated;
    "motor_fault": a fault that recovers after 20 s, the motor does not turn meanwhile.
    """

    name: ClassVar[str] = "fdl_shaker"
    faults: ClassVar[tuple[str, ...]] = (*COMMON_FAULTS, "dice_stacked", "dice_leaning", "motor_fault")
    kind: ClassVar[int] = fdl.SHAKER
    model: ClassVar[str] = "Shaker"

    def __init__(self, rng: random.Random, serial: str = "SIM-SHAKER-1") -> None:
        super().__init__(rng, serial)
        self._faces = self._roll()
        self._stacked = 0
        self._leaning = 0
        self._next_lie: tuple[int, int] | None = None

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "dice_stacked":
                self._next_lie = (2, 0)
            case "dice_leaning":
                self._next_lie = (0, 1)
            case "motor_fault":
                self._fail(MOTOR, ERROR, now)
            case _:
                super().inject(fault, now)

    def cover(self, now: float) -> None:
        """Put the dome on and shut its clasps."""
        self.record(fdl.Covered(), now)

    def uncover(self, now: float) -> None:
        """Lift the dome."""
        self.record(fdl.Uncovered(), now)

    def pull_lever(self, now: float) -> None:
        """One pull."""
        self._throw()
        self.record(fdl.Agitated(fdl.LEVER), now)

    def agitate(self, now: float) -> bool:
        """One agitation by the motor; False where it cannot turn and the dice lie as they lay."""
        if not self._boots(now) or MOTOR in self._standing:
            return False
        self._throw()
        self.record(fdl.Agitated(fdl.ELECTRONIC), now)
        return True

    def read(self, now: float) -> tuple[tuple[int, ...], int, int]:
        """The reader looks: faces, how many are stacked, how many lean; what truly lies there."""
        if self._next_lie is not None:
            self._stacked, self._leaning = self._next_lie
            self._next_lie = None
        self.record(fdl.Read(self._faces, self._stacked, self._leaning), now)
        return self._faces, self._stacked, self._leaning

    def _roll(self) -> tuple[int, ...]:
        return tuple(self._rng.randint(1, 6) for _ in range(3))

    def _throw(self) -> None:
        self._faces = self._roll()
        self._stacked = self._leaning = 0
