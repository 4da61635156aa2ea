"""A simulated counter of fantan buttons that speaks FDL: a heap, a cup with a contact, a camera."""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from protocols.fdl import buttons as fdl_buttons, frame as fdl
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING, FdlDevice

__all__ = ["ButtonCounter"]

UNSTEADY, LIFTED_EARLY, CAMERA, FOREIGN = range(0x68, 0x6C)


class ButtonCounter(FdlDevice):
    """The dealer sets a heap apart under the cup, and asks for the count when he lifts it."""

    name: ClassVar[str] = "fdl_buttons"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "unsteady": Ailment("two buttons of the next heap lie on each other", ("buttons.unsteady",), "counts"),
        "lifted_early": Ailment(
            "the next cup is knocked over before the count", ("buttons.lifted_early", "buttons.uncovered"), "void"
        ),
        "camera_dirty": Ailment("the camera's window is dirty", ("buttons.camera",), "counts", person=True),
        "foreign": Ailment("a coin lies among the next buttons", ("buttons.foreign",), "counts"),
        "broken_button": Ailment("a button of the next heap is broken in two", (), "counts"),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("separate", 15.0), ("count", 10.0))
    kind: ClassVar[int] = fdl.BUTTON_COUNTER
    model: ClassVar[str] = "Buttons"

    def __init__(self, rng: random.Random, serial: str = "SIM-BUTTONS-1") -> None:
        super().__init__(rng, serial)
        self._awaited: list[str] = []
        self._heap = 0
        self._fragments = 0
        self._covered = False
        self.knocked_over = False

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "unsteady" | "lifted_early" | "foreign" | "broken_button":
                self._awaited.append(fault)
            case "camera_dirty":
                self._fail(CAMERA, ERROR, now, person=True)
            case _:
                super().inject(fault, now)

    def repair(self, now: float) -> None:
        """The window is wiped, and injected faults that have not occurred yet are dropped."""
        self._awaited.clear()
        super().repair(now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """What the dealer does."""
        return {"separate": self.separate, "count": self.count}

    def separate(self, now: float) -> None:
        """The cup goes over a new heap. It is detected only if the counter has power."""
        self._heal(LIFTED_EARLY, now)
        self._heap, self._fragments = self._rng.randint(40, 160), 0
        self._covered = self._boots(now)
        self.record(fdl_buttons.Separated(), now)
        self.knocked_over = bool(self._occasion("lifted_early"))
        if self.knocked_over:
            self._covered = False
            self._fail(LIFTED_EARLY, ERROR, now)

    def count(self, now: float) -> int | None:
        """The cup is lifted and the camera counts; None if no count is reported."""
        trouble = self._occasion("unsteady", "foreign", "broken_button") if self._covered else ""
        if trouble == "broken_button":
            self._heap, self._fragments = self._heap - 1, 2
        covered, self._covered = self._covered, False
        if not covered or not self._boots(now) or self._ails(CAMERA, now):
            return None
        if trouble in {"unsteady", "foreign"}:
            self._again(UNSTEADY if trouble == "unsteady" else FOREIGN, WARNING, now)
            return None
        for code in (UNSTEADY, FOREIGN):
            self._heal(code, now)
        self.record(fdl_buttons.Counted(self._heap, self._fragments), now)
        return self._heap

    def lie(self) -> tuple[int, int]:
        """The true heap: number of whole buttons and of fragments."""
        return self._heap, self._fragments

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """Its covered state is lost: the heap is then counted by hand."""
        self._covered = False
        super().power_cycle(now, lose_memory=lose_memory)

    def _again(self, code: int, severity: int, now: float) -> None:
        """Report each failure, also while the fault is open."""
        if self._ails(code, now):
            self.record(fdl.Fault(code, severity), now)
        self._fail(code, severity, now)

    def _occasion(self, *faults: str) -> str:
        """Remove and return the first of these injected faults that is pending, else empty."""
        found = next((fault for fault in self._awaited if fault in faults), "")
        if found:
            self._awaited.remove(found)
        return found
