"""A simulated dealer's console that speaks FDL: seven keys."""

import random
from typing import ClassVar

from protocols import fdl
from simulators.fdl_device import COMMON_FAULTS, FdlDevice

KEY_STUCK = 0x20
WARNING = 1

KEYS = ("bets_opened", "bell", "void", "paid", "new_shoe", "cut_card", "demo")


class Console(FdlDevice):
    """The keys of a table. Its own fault, "key_stuck", recovers after 20 s; the other keys work meanwhile."""

    name: ClassVar[str] = "fdl_console"
    faults: ClassVar[tuple[str, ...]] = (*COMMON_FAULTS, "key_stuck")
    kind: ClassVar[int] = fdl.CONSOLE
    model: ClassVar[str] = "Console"

    def __init__(self, rng: random.Random, serial: str = "SIM-CONSOLE-1", decks: int = 8) -> None:
        super().__init__(rng, serial)
        self._decks = decks

    def inject(self, fault: str, now: float) -> None:
        """Begin a fault. Raises ValueError for one it does not have."""
        match fault:
            case "key_stuck":
                self._fail(KEY_STUCK, WARNING, now, where=KEYS.index("paid") + 1)
            case _:
                super().inject(fault, now)

    def press(self, key: str, now: float, reason: int = 0) -> None:
        """Press one of KEYS; `reason` goes with "void". Raises ValueError for a key it does not have."""
        happenings: dict[str, fdl.Happening] = {
            "bets_opened": fdl.BetsOpened(),
            "bell": fdl.BetsClosed(),
            "void": fdl.RoundVoid(reason),
            "paid": fdl.Paid(),
            "new_shoe": fdl.NewShoe(self._decks),
            "cut_card": fdl.CutCard(),
            "demo": fdl.DemoRound(),
        }
        if key not in happenings:
            raise ValueError(f"the console has no key {key!r}; it has: {', '.join(KEYS)}")
        self.record(happenings[key], now)
