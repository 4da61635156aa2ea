"""A simulated reader of the hole card that speaks FDL: a slot, a window, and a lamp that shows yes or no."""

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from protocols.fdl import frame as fdl, peek as fdl_peek
from simulators.devices.device import Ailment
from simulators.devices.fdl_device import COMMON_FAULTS, ERROR, FIRMWARE, WARNING, FdlDevice

__all__ = ["PeekReader"]

UNREADABLE, NOT_INSERTED, CARD_LEFT, WINDOW = range(0x60, 0x64)
LEFT: Final = 8.0  # seconds after which a card in the slot counts as forgotten


class PeekReader(FdlDevice):
    """The reader. It only reports whether the card makes blackjack; no game needs more."""

    name: ClassVar[str] = "fdl_peek"
    faults: ClassVar[Mapping[str, Ailment]] = {
        **COMMON_FAULTS,
        **FIRMWARE,
        "unreadable": Ailment("the next card cannot be read", ("peek.unreadable",), "counts"),
        "not_inserted": Ailment("the next card is not pushed in to the stop", ("peek.not_inserted",), "counts"),
        "card_left": Ailment("the next card is forgotten in the reader", ("peek.card_left",), "counts", person=True),
        "window_dirty": Ailment(
            "the window is dirty, no card can be read", ("peek.window", "peek.unreadable"), "suspended", person=True
        ),
    }
    routine: ClassVar[tuple[tuple[str, float], ...]] = (("peek", 12.0),)
    kind: ClassVar[int] = fdl.PEEK_READER
    model: ClassVar[str] = "Peek"

    def __init__(self, rng: random.Random, serial: str = "SIM-PEEK-1") -> None:
        super().__init__(rng, serial)
        self._awaited: list[str] = []
        self._forgotten_at: float | None = None

    def due(self) -> float:
        """When it next sends, or beeps for a forgotten card."""
        due = super().due()
        return due if self._forgotten_at is None or self._boots_at is not None else min(due, self._forgotten_at)

    def wake(self, now: float) -> bytes:
        """Simulate until `now` and return the bytes sent."""
        if self._forgotten_at is not None and now >= self._forgotten_at and self._boots(now):
            self._forgotten_at = None
            self._fail(CARD_LEFT, WARNING, now, person=True)
        return super().wake(now)

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "unreadable" | "not_inserted" | "card_left":
                self._awaited.append(fault)
            case "window_dirty":
                self._fail(WINDOW, ERROR, now, person=True)
            case _:
                super().inject(fault, now)

    def repair(self, now: float) -> None:
        """The window is wiped, the card taken out."""
        self._awaited.clear()
        self._forgotten_at = None
        super().repair(now)

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        """A random card goes in and out."""
        return {"peek": lambda now: self.peek(self._rng.random() < 16 / 52, now), "take_out": self.take_out}

    def take_out(self, now: float) -> None:
        """A forgotten card is taken out."""
        self._forgotten_at = None
        self._heal(CARD_LEFT, now)

    def peek(self, blackjack: bool, now: float) -> bool:
        """The hole card goes in; whether the reader reports its finding."""
        self.take_out(now)
        if not self._boots(now):
            return False
        trouble = self._awaited.pop(0) if self._awaited else ""
        if trouble == "not_inserted":
            self._again(NOT_INSERTED, now)
            return False
        self._heal(NOT_INSERTED, now)
        if trouble == "unreadable" or self._ails(WINDOW, now):
            self._again(UNREADABLE, now)
            return False
        self._heal(UNREADABLE, now)
        self.record(fdl_peek.Peeked(blackjack), now)
        if trouble == "card_left":
            self._forgotten_at = now + LEFT
        return True

    def power_cycle(self, now: float, *, lose_memory: bool) -> None:
        """After the start it detects a card in the slot again."""
        if self._forgotten_at is not None:
            self._forgotten_at = now + LEFT
        super().power_cycle(now, lose_memory=lose_memory)

    def _again(self, code: int, now: float) -> None:
        """Report each failed peek, also while the fault is open."""
        if self._ails(code, now):
            self.record(fdl.Fault(code, WARNING), now)
        self._fail(code, WARNING, now)
