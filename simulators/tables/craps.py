"""A craps table: a recogniser over the dice, the stickman's keypad, and players who throw in turn."""

import random
from typing import Any, ClassVar

from protocols.fdl.console import THROW_REASONS
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.idp_dice import Recogniser
from simulators.tables.table import PRESSES, Floor, Ruled, Truth, open_bets, settle

__all__ = ["CrapsTable"]

SEATS = 6
NULL = {word: code for code, word in THROW_REASONS.items()}
OFF_TABLE, SHORT = NULL["a_die_off_the_table"], NULL["short_of_the_middle"]


class CrapsTable(Ruled):
    """The stickman enters what the recogniser does not read. `marker` is the point that lies on the layout, 0 for none.

    If the display shows another point, all bets are given back and the series ends.
    """

    ruleset: ClassVar[str] = "angola.craps"
    options: ClassVar[dict[str, Any]] = {"handling": "console"}

    def __init__(self, seed: int) -> None:
        """Now and then a throw is null."""
        self._seed = seed
        self._rng = random.Random(f"craps {seed}")
        self.console = Console(random.Random(f"craps console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"console-1": self.console}
        self.devices["reader-1"] = Recogniser(random.Random(f"craps camera {seed}"), lambda: self.faces, dice=2)
        self.truth: list[Truth] = []
        self.faces = (1, 1)
        self.marker = 0
        self.shooter = 1

    def hurry(self, times: float) -> None:  # noqa: ARG002 - as every table
        """The camera would be too slow: the stickman enters each throw."""
        del self.devices["reader-1"]

    async def deal(self, floor: Floor, rounds: int) -> None:
        """A throw for each round."""
        for _ in range(rounds):
            await floor.ready()
            await self._round(floor)

    async def _round(self, floor: Floor) -> None:
        await open_bets(floor, self.console)
        await self._pause(floor, 8.0, 15.0)
        await floor.ready()
        look = floor.look()
        if look.phase != "betting" or look.detail.get("point") != self.marker:
            await self._give_back(floor)
            return
        mine = look.mine
        floor.press(self.console, "bell")
        await self._pause(floor, 2.0, 4.0)
        await floor.ready()
        if self._rng.random() < 0.06:
            await self._null(floor, mine)
            return
        self.faces = (self._rng.randint(1, 6), self._rng.randint(1, 6))
        if not await self._read(floor):
            await self._enter(floor)
        counts = await settle(floor, self.console, self._rng, mine)
        before = self.marker
        facts = self._move_marker()
        self.truth.append(Truth(facts, void=not counts))
        if not counts:
            self.marker = 0  # all bets were given back
            return
        await self._pause(floor, 2.0, 4.0)
        await floor.ready()
        floor.press(self.console, "paid")
        await floor.pace.sleep(1.0)
        if before and sum(self.faces) == 7:
            await self._pass_dice(floor)

    def _move_marker(self) -> dict[str, Any]:
        """The facts of a throw that counts; moves the marker accordingly."""
        before, total = self.marker, sum(self.faces)
        if before:
            self.marker = 0 if total in (before, 7) else before
        elif total in (4, 5, 6, 8, 9, 10):
            self.marker = total
        return {"faces": sorted(self.faces), "total": total, "point": before, "next_point": self.marker}

    async def _read(self, floor: Floor) -> bool:
        """Read the dice by the recogniser, if there is one."""
        if "reader-1" not in self.devices:
            return False
        number = f"{self._seed}-{len(self.truth)}"
        return await floor.tell("reader-1", "read-dice", {"round": number}) == "done"

    async def _enter(self, floor: Floor) -> None:
        for _ in range(2):
            await floor.ready()
            self.console.throw_dice(self.faces, floor.pace.now())
            floor.stir("console-1")
            await floor.pace.sleep(1.5)

    async def _null(self, floor: Floor, mine: str) -> None:
        """A die left the table and is replaced, or the dice stayed short of the middle: bets and point stand."""
        reason = self._rng.choice((OFF_TABLE, SHORT))
        self.console.throw_dice((), floor.pace.now(), reason=reason)
        floor.stir("console-1")
        await settle(floor, self.console, self._rng, mine)
        self.truth.append(Truth({}, void=True))
        if reason == OFF_TABLE:
            await floor.ready()
            floor.press(self.console, "dice_replaced")
            await floor.pace.sleep(1.0)

    async def _give_back(self, floor: Floor) -> None:
        """The round is suspended, or the display shows another point: declare it void until it is over."""
        for _ in range(PRESSES):
            await floor.ready()
            floor.press(self.console, "void", 2)
            await floor.pace.sleep(2.0)
            if floor.look().over:
                break
        self.marker = 0
        self.truth.append(Truth({}, void=True))

    async def _pass_dice(self, floor: Floor) -> None:
        await floor.ready()
        self.shooter = self.shooter % SEATS + 1
        self.console.pass_hand(self.shooter, floor.pace.now())
        floor.stir("console-1")
        await floor.pace.sleep(1.0)
