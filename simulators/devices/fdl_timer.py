"""A simulated betting timer that speaks FDL: a display, a beeper, one key."""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from protocols.fdl import frame as fdl, timer as fdl_timer
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING, FdlDevice

__all__ = ["Timer"]

DISPLAY, BEEPER, INTERRUPTED, KEY = range(0x64, 0x68)
BUSY, STANDING_FAULT, RANGE = 0x01, 0x02, 0x04
BY_KEY_SECONDS: Final = 15


class Timer(FdlDevice):
    """The timer; its key starts 15 s, or stops the running time."""

    name: ClassVar[str] = "fdl_timer"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "deaf": replace(COMMON_FAULTS["deaf"], round="counts"),
        "display_dark": Ailment("the display goes dark", ("timer.display",), "counts", person=True),
        "beeper_dead": Ailment("the beeper does not sound", ("timer.beeper",), "counts", person=True),
        "key_stuck": Ailment("its key stays down", ("timer.key",), "counts", person=True),
        "power_loss_running": Ailment(
            "somebody starts the time, and 5 s later there is no power for 1.5 s",
            ("device.online", "timer.interrupted"),
            "suspended",
        ),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("start", 25.0),)
    kind: ClassVar[int] = fdl.TIMER
    model: ClassVar[str] = "Timer"

    def __init__(self, rng: random.Random, serial: str = "SIM-TIMER-1") -> None:
        super().__init__(rng, serial)
        self._ends_at: float | None = None
        self._fails_at: float | None = None
        self._cut_off = False

    @property
    def running(self) -> bool:
        """Whether the time runs."""
        return self._ends_at is not None

    def due(self) -> float:
        """When it next sends, or the time is over."""
        due = super().due()
        return due if self._boots_at is not None else min(due, self._ends_at or due, self._fails_at or due)

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        self._run(now)
        return super().wake(now)

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes from the host; what it answers at once."""
        self._run(now)
        return super().hear(data, now)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        self._run(now)
        match fault:
            case "display_dark":
                self._fail(DISPLAY, ERROR, now, person=True)
            case "beeper_dead":
                self._fail(BEEPER, WARNING, now, person=True)
            case "key_stuck":
                self._fail(KEY, WARNING, now, person=True)
            case "power_loss_running":
                self.start(now)
                self._fails_at = now + 5.0
            case _:
                super().inject(fault, now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """Its key."""
        return {"start": self.start, "stop": self.stop}

    def start(self, now: float, seconds: int = BY_KEY_SECONDS, by: int = fdl_timer.BY_KEY) -> bool:
        """Start the time. False if it runs already, the display is unreadable, or there is no power."""
        self._run(now)
        if not self._boots(now) or self.running or self._ails(DISPLAY, now):
            return False
        self._ends_at = now + seconds
        self.record(fdl_timer.Running(seconds, by), now)
        self._heal(INTERRUPTED, now)
        return True

    def stop(self, now: float) -> bool:
        """Stop it without closing the bets."""
        self._run(now)
        if not self._boots(now) or self._ends_at is None:
            return False
        self.record(fdl_timer.Stopped(math.ceil(self._ends_at - now)), now)
        self._ends_at = None
        return True

    def do(self, code: int, data: bytes, now: float) -> tuple[int, int, bytes]:
        """A command of the host."""
        match code:
            case fdl_timer.START:
                seconds = int.from_bytes(data)
                if len(data) != 2 or not 1 <= seconds <= fdl_timer.MAX_SECONDS:
                    return fdl.REFUSED, RANGE, b""
                if self.running:
                    return fdl.REFUSED, BUSY, b""
                done = self.start(now, seconds, fdl_timer.BY_HOST)
                return (fdl.DONE, 0, b"") if done else (fdl.REFUSED, STANDING_FAULT, b"")
            case fdl_timer.STOP if not data:
                return (fdl.DONE, 0, b"") if self.stop(now) else (fdl.REFUSED, fdl_timer.NOT_RUNNING, b"")
            case _:
                return super().do(code, data, now)

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """The time is lost. A device that kept a running time reports it, and does not close the bets."""
        self._run(now)
        self._cut_off = (self._cut_off or self.running) and not lose_memory
        self._ends_at = None
        super().power_cycle(now, lose_memory=lose_memory)

    def _started(self, now: float) -> None:
        if self._cut_off:
            self._cut_off = False
            self._fail(INTERRUPTED, WARNING, now)

    def _run(self, now: float) -> None:
        """Run the time until `now`."""
        if not self._boots(now):
            return
        if self._fails_at is not None and now >= self._fails_at:
            self._fails_at = None
            self.power_cycle(now, lose_memory=False)
        elif self._ends_at is not None and now >= self._ends_at:
            at, self._ends_at = self._ends_at, None
            self.record(fdl_timer.Expired(), at)
