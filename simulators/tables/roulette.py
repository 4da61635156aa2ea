"""Roulette tables: an automatic wheel that runs by itself, or one that the dealer turns and reads by hand."""

import random
from collections.abc import Container
from typing import Any, ClassVar, Protocol

from protocols.fdl.console import ANTICLOCKWISE, CLOCKWISE
from simulators.devices.cammegh_ss2 import ARCADE, STARTED_AFTER_NUMBER, SpinTruth, Wheel
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_timer import Timer
from simulators.devices.tcs_saturn import Saturn
from simulators.tables.table import Floor, Ruled, Truth, open_bets, settle, shows

__all__ = ["AmericanRouletteTable", "FrenchRouletteTable", "RouletteTable", "SaturnTable"]

# Seconds that a round stays suspended before the dealer declares it void.
SUSPENDED_S = 4.0
TRIES = 30
# How often the dealer checks before he accepts that no round is open: after an outage the broker shows an old state.
LOOKS = 3
# Seconds after which Angola's tables change ball and dealer: within the hour.
CHANGE_EVERY_S = 3300.0
OBJECT = 3  # the console's reason of a void round: a foreign object


class _Wheel(Device, Protocol):
    """Either wheel, as its dealer sees it."""

    truth: list[SpinTruth]
    restarted_at: int
    hurry: float

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
        """Odd seeds show the wheel's pause before each game; seeds 0, 1, 4, 5 … start near the end of its counter."""
        self._rng = random.Random(f"roulette {seed}")
        self.wheel = self._make_wheel(seed)
        self.console = Console(random.Random(f"roulette console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"wheel-1": self.wheel, "console-1": self.console}

    def _make_wheel(self, seed: int) -> _Wheel:
        mode = ARCADE if seed % 2 else ARCADE - STARTED_AFTER_NUMBER
        return Wheel(random.Random(f"wheel {seed}"), mode=mode, spin=1 if seed // 2 % 2 else 247, closed=True)

    @property
    def truth(self) -> list[Truth]:
        """The truth of the wheel."""
        return [Truth({"pocket": one.pocket} if one.pocket else {}, void=bool(one.reason)) for one in self.wheel.truth]

    def hurry(self, times: float) -> None:
        """Its spins become shorter."""
        self.wheel.hurry = times

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Open the table; ring at no more bets; pay, and open the bets again; close after the last round."""
        pace = floor.pace
        await floor.ready()
        self.wheel.open_table(pace.now())
        floor.stir("wheel-1")
        paid = len(self.wheel.truth)
        before = False
        known: Container[str] = ()  # rounds that the display showed as ended when the last ball slowed down
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
            if doubt > SUSPENDED_S:
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
            await pace.sleep(SUSPENDED_S)
            await floor.ready()
            look = floor.look()
            over = over + 1 if look.over else 0
            if look.phase == "suspended":
                floor.press(self.console, "void", 2)
            elif over >= LOOKS and any(one not in known for one in look.ended):
                return

    async def _opened(self, floor: Floor) -> None:
        """Further acts of the dealer when bets are open."""


class SaturnTable(RouletteTable):
    """A Saturn wheel, a console and a betting timer."""

    def __init__(self, seed: int) -> None:
        """The timer shows the players how long they may bet."""
        super().__init__(seed)
        self.timer = Timer(random.Random(f"timer {seed}"), f"SIM-T{seed}")
        self.devices["timer-1"] = self.timer

    async def _opened(self, floor: Floor) -> None:
        await floor.tell("timer-1", "start-timer", {"seconds": 10})

    def _make_wheel(self, seed: int) -> _Wheel:
        return Saturn(random.Random(f"saturn {seed}"), closed=True)


class _Hourly:
    """Change ball and dealer every hour."""

    console: Console
    _changed_at: float | None = None

    def _change(self, floor: Floor) -> None:
        now = floor.pace.now()
        if self._changed_at is None:
            self._changed_at = now
        if now - self._changed_at >= CHANGE_EVERY_S:
            self._changed_at = now
            floor.press(self.console, "ball_changed")
            floor.press(self.console, "dealer_relieved")


class AmericanRouletteTable(_Hourly, RouletteTable):
    """Angola's table: rotor and ball reverse in each game, and the call comes while the ball runs."""

    ruleset: ClassVar[str] = "angola.american-roulette"
    options: ClassVar[dict[str, Any]] = {}

    async def _opened(self, floor: Floor) -> None:
        self._change(floor)


class FrenchRouletteTable(_Hourly, Ruled):
    """Angola's table: the dealer turns the wheel by hand, and enters each launch and each number at the console."""

    ruleset: ClassVar[str] = "angola.french-roulette"
    options: ClassVar[dict[str, Any]] = {"payment": "console"}

    def __init__(self, seed: int) -> None:
        """No ball has run yet."""
        self._rng = random.Random(f"french roulette {seed}")
        self.console = Console(random.Random(f"french roulette console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"console-1": self.console}
        self.truth: list[Truth] = []
        self._turns = CLOCKWISE, ANTICLOCKWISE
        self._pocket: str | None = None

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Art. 2(11)-(15): bets, launch, call, number, payment. After a null spin the bets stand."""
        stand = False
        for _ in range(rounds):
            await floor.ready()
            if not stand:
                self._change(floor)
                await open_bets(floor, self.console)
                await self._pause(floor, 12.0, 18.0)
            mine = await self._launch(floor)
            await self._pause(floor, 4.0, 8.0)
            fell = self._rng.random() < 0.04
            stand = fell and await self._null(floor, mine)
            if not fell:
                await self._number(floor, mine)

    async def _launch(self, floor: Floor) -> str:
        """Launch the ball against the wheel and enter it until the display shows it; returns the round."""
        for _ in range(TRIES):
            await floor.ready()
            self.console.launch_ball(*self._turns, floor.pace.now())
            floor.stir("console-1")
            if await shows(floor, lambda look: look.phase in ("running", "suspended")):
                break
        return floor.look().mine

    async def _null(self, floor: Floor, mine: str) -> bool:
        """A chip falls on the wheel. Whether the display shows the end of the spin: otherwise the bets do not stand."""
        await floor.ready()
        floor.press(self.console, "void", OBJECT)
        await settle(floor, self.console, self._rng, mine)
        self.truth.append(Truth({}, void=True))
        await floor.ready()
        self.console.replace_ball(self._pocket, floor.pace.now())
        floor.stir("console-1")
        await self._pause(floor, 4.0, 6.0)
        return floor.look().over

    async def _number(self, floor: Floor, mine: str) -> None:
        """ "Jogo feito. Nada mais.", the number, entered twice, and the payment. The next ball runs the other way."""
        await floor.ready()
        floor.press(self.console, "bell")
        await self._pause(floor, 6.0, 10.0)
        pocket = str(self._rng.randint(0, 36))
        for _ in range(2):
            await floor.ready()
            self.console.enter_ball(pocket, floor.pace.now())
            floor.stir("console-1")
            await floor.pace.sleep(1.5)
        counts = await settle(floor, self.console, self._rng, mine)
        self.truth.append(Truth({"pocket": pocket}, void=not counts))
        self._pocket, self._turns = pocket if counts else None, self._turns[::-1]
        await self._pause(floor, 3.0, 5.0)
        floor.press(self.console, "paid")
        await floor.pace.sleep(1.0)
