"""A roulette table: an automatic wheel that runs by itself, and a dealer who rings, pays and opens."""

import random
from collections.abc import Container
from typing import Any, ClassVar, Protocol

from simulators.devices.cammegh_ss2 import ARCADE, STARTED_AFTER_NUMBER, SpinTruth, Wheel
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_timer import Timer
from simulators.devices.tcs_saturn import Saturn
from simulators.tables.table import Floor, Ruled, Truth

__all__ = ["RouletteTable", "SaturnTable"]

# Seconds that a round waits for a person before the dealer declares it void.
SUSPENDED = 4.0
TRIES = 30
# How often he looks before he believes that no round is open: a broker that was away shows what it knows of before.
LOOKS = 3


class _Wheel(Device, Protocol):
    """Either wheel, as its dealer sees it."""

    truth: list[SpinTruth]
    restarted_at: int

    @property
    def no_more_bets(self) -> bool:
        """The ball slows down."""
        ...

    def open_table(self, now: float) -> None: ...
    def close_table(self, now: float = 0.0) -> None: ...


class RouletteTable(Ruled):
    """A Cammegh wheel and a console."""

    ruleset: ClassVar[str] = "macau.roulette"
    options: ClassVar[dict[str, Any]] = {"betting": "no_more_bets"}

    def __init__(self, seed: int) -> None:
        """Odd seeds show the wheel's pause before each game; every other pair of wheels goes round in the night."""
        self._rng = random.Random(f"roulette {seed}")
        self.wheel = self._make_wheel(seed)
        self.console = Console(random.Random(f"roulette console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"wheel-1": self.wheel, "console-1": self.console}

    def _make_wheel(self, seed: int) -> _Wheel:
        mode = ARCADE if seed % 2 else ARCADE - STARTED_AFTER_NUMBER
        return Wheel(random.Random(f"wheel {seed}"), mode=mode, spin=1 if seed // 2 % 2 else 247, closed=True)

    @property
    def truth(self) -> list[Truth]:
        """The wheel knows."""
        return [Truth({"pocket": one.pocket} if one.pocket else {}, void=bool(one.reason)) for one in self.wheel.truth]

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Open the table; ring at no more bets; pay, and open the bets again; close after the last round."""
        pace = floor.pace
        await floor.ready()
        self.wheel.open_table(pace.now())
        floor.stir("wheel-1")
        paid = len(self.wheel.truth)
        before = False
        known: Container[str] = ()  # what had ended by the display when the last ball fell
        doubt = 0.0
        while len(self.wheel.truth) < rounds or paid < len(self.wheel.truth):
            await pace.sleep(0.25)
            settling = self.wheel.no_more_bets
            if settling and not before:
                known = frozenset(floor.look().ended)
                await pace.sleep(self._rng.uniform(0.2, 1.0))
                floor.press(self.console, "bell")
            before = settling
            doubt = doubt + 0.25 if floor.look().phase == "suspended" else 0.0
            if doubt > SUSPENDED:
                doubt = 0.0
                floor.press(self.console, "void", 2)
            if len(self.wheel.truth) > paid:
                paid = len(self.wheel.truth)
                if paid >= rounds:
                    self.wheel.close_table(pace.now())
                    floor.stir("wheel-1")
                await pace.sleep(self._rng.uniform(2.0, 4.0))
                floor.press(self.console, "paid")
                await pace.sleep(1.0)
                if paid < rounds:
                    known = frozenset(floor.look().ended)
                    floor.press(self.console, "bets_opened")
                    await self._opened(floor)
        over = 0
        for _ in range(TRIES):  # stay until the display shows that no round waits for the dealer
            await pace.sleep(SUSPENDED)
            await floor.ready()
            look = floor.look()
            over = over + 1 if look.over else 0
            if look.phase == "suspended":
                floor.press(self.console, "void", 2)
            elif over >= LOOKS and any(one not in known for one in look.ended):
                return

    async def _opened(self, floor: Floor) -> None:
        """What else the dealer does when bets are open."""


class SaturnTable(RouletteTable):
    """A Saturn wheel, a console and a betting timer."""

    def __init__(self, seed: int) -> None:
        """The timer stands beside the console and shows the players how long they may bet."""
        super().__init__(seed)
        self.timer = Timer(random.Random(f"timer {seed}"), f"SIM-T{seed}")
        self.devices["timer-1"] = self.timer

    async def _opened(self, floor: Floor) -> None:
        await floor.tell("timer-1", "start-timer", {"seconds": 10})

    def _make_wheel(self, seed: int) -> _Wheel:
        return Saturn(random.Random(f"saturn {seed}"), closed=True)
