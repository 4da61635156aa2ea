"""A French bank table: dice thrown by hand, a console, the lamps of the chances, at some tables a dice recogniser."""

import random
from typing import Any, ClassVar, Final

from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_lamps import Lamps
from simulators.devices.idp_dice import Recogniser
from simulators.tables.table import Floor, Ruled, Truth, open_bets, settle, shows

__all__ = ["FrenchBankTable"]

CHANCES: Final = {"aces": range(3, 4), "small": range(5, 8), "big": range(14, 17)}
# The console's reasons for a null throw: those after which the dice stay, and those after which another set is used.
SAME_SET, NEW_SET = (0x01, 0x05, 0x06, 0x07), (0x02, 0x03, 0x04)
HOUR_S = 3600.0
TRIES = 3


class FrenchBankTable(Ruled):
    """The dealer enters each throw, or has it read; after a total that does not decide he throws again."""

    ruleset: ClassVar[str] = "angola.french-bank"
    options: ClassVar[dict[str, Any]] = {"minimum": 100, "reading_seconds": 10.0}

    def __init__(self, seed: int) -> None:
        """Every second table has a recogniser."""
        self._rng = random.Random(f"french bank {seed}")
        self.console = Console(random.Random(f"french bank console {seed}"), f"SIM-C{seed}")
        self.lamps = Lamps(random.Random(f"french bank lamps {seed}"), f"SIM-L{seed}")
        self.devices: dict[str, Device] = {"console-1": self.console, "lamps-1": self.lamps}
        self._reads = bool(seed % 2)
        if self._reads:
            reader = Recogniser(random.Random(f"french bank camera {seed}"), lambda: self._faces)
            self.devices["reader-1"] = reader
        self._faces: tuple[int, ...] = (1, 2, 6)
        self._seed = seed
        self._throws = 0
        self._changed_at: float | None = None
        self.truth: list[Truth] = []

    def hurry(self, times: float) -> None:  # noqa: ARG002 - as every table
        """The dealer enters each throw and does not wait for a camera."""
        self._reads = False
        self.devices.pop("reader-1", None)

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Art. 3: bets, then throws until one decides; losers, prizes."""
        for _ in range(rounds):
            await self._hourly(floor)
            await self._round(floor)

    async def _press(self, floor: Floor, key: str) -> None:
        await floor.ready()
        floor.press(self.console, key)
        await self._pause(floor, 0.6, 1.2)

    async def _hourly(self, floor: Floor) -> None:
        """Art. 3(4), 3(17): another set and another thrower."""
        now = floor.pace.now()
        if self._changed_at is None:
            self._changed_at = now
        if now - self._changed_at > HOUR_S - 300:
            self._changed_at = now
            await self._press(floor, "dice_replaced")
            await self._press(floor, "dealer_relieved")

    async def _round(self, floor: Floor) -> None:
        rng = self._rng
        await floor.ready()
        await open_bets(floor, self.console)
        await self._pause(floor, 12.0, 18.0)
        await self._press(floor, "bell")
        mine = floor.claim()
        if rng.random() < 0.01:
            await self._press(floor, "dice_seized")
            await self._press(floor, "dice_replaced")
        while True:
            await self._pause(floor, 17.0, 22.0)
            self._faces = (rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 6))
            if rng.random() < 0.05:
                await self._null(floor)
                continue
            if rng.random() < 0.02:
                await self._press(floor, "dice_disturbed")
            chance = next((name for name, totals in CHANCES.items() if sum(self._faces) in totals), "")
            await self._tell(floor, decides=bool(chance))
            if chance:
                break
        counts = await settle(floor, self.console, rng, mine)
        self.truth.append(Truth({"faces": sorted(self._faces), "chance": chance}, void=not counts))
        if counts:
            await floor.tell("lamps-1", "light", {"lamps": [str([*CHANCES].index(chance) + 1)]})
            await self._pause(floor, 3.0, 5.0)
            await self._press(floor, "paid")
            await floor.tell("lamps-1", "light", {"lamps": []})
        await floor.pace.sleep(1.0)

    async def _null(self, floor: Floor) -> None:
        """Art. 3(8)."""
        await floor.ready()
        reason = self._rng.choice((*SAME_SET, *NEW_SET))
        self.console.throw_dice((), floor.pace.now(), reason=reason)
        floor.stir("console-1")
        await self._pause(floor, 1.0, 2.0)
        if reason in NEW_SET:
            await self._press(floor, "dice_replaced")

    async def _tell(self, floor: Floor, *, decides: bool) -> None:
        """The recogniser reads; the dealer enters the throw if it fails or the display does not show it."""
        self._throws += 1
        await floor.ready()
        if self._reads:
            asked = {"round": f"{self._seed}-{self._throws}"}
            if await floor.tell("reader-1", "read-dice", asked) != "done":
                await self._enter(floor)
        else:
            await self._enter(floor)
        for _ in range(TRIES):
            await self._pause(floor, 1.0, 2.0)
            waits = floor.look().phase == "suspended"
            if (not waits and not decides) or (decides and await shows(floor, lambda look: look.over)):
                return
            await self._enter(floor)

    async def _enter(self, floor: Floor) -> None:
        """Enter the throw twice: the console reports it when both entries are the same."""
        for _ in range(2):
            await floor.ready()
            self.console.throw_dice(self._faces, floor.pace.now())
            floor.stir("console-1")
            await floor.pace.sleep(1.5)
