"""A cussec table: a shaker with its reader, the console, and the lamps of the layout.

Its dealer is the dealer of every game whose three dice are shaken under a dome.
"""

import random
from collections.abc import Callable
from typing import Any, ClassVar

from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_lamps import Lamps
from simulators.devices.fdl_shaker import Shaker
from simulators.tables.table import Floor, Ruled, Truth, open_bets, settle, shows

__all__ = ["AngolaCussecTable", "CussecTable", "ShakenTable"]


class ShakenTable(Ruled):
    """Three pulls of the lever, or one electronic agitation if the lever's sensor is known to be stuck."""

    options: ClassVar[dict[str, Any]] = {"payment": "console", "agitation": "either"}

    def __init__(self, seed: int, game: str, dice: str) -> None:
        """Some throws end stacked or leaning. `game` and `dice` name the random numbers of this table."""
        self._rng = random.Random(f"{game} {seed}")
        self.shaker = Shaker(random.Random(f"{dice} {seed}"), f"SIM-S{seed}")
        self.console = Console(random.Random(f"{game} console {seed}"), f"SIM-C{seed}")
        self.lamps = Lamps(random.Random(f"{game} lamps {seed}"), f"SIM-L{seed}")
        self.devices: dict[str, Device] = {
            "shaker-1": self.shaker,
            "console-1": self.console,
            "lamps-1": self.lamps,
        }
        self.truth: list[Truth] = []

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """The facts of a throw that counts."""
        return {"faces": sorted(faces)}

    async def _show(self, floor: Floor, faces: tuple[int, ...]) -> None:
        """Light the winning places; none without faces."""

    async def _open(self, floor: Floor) -> None:
        """Open the bets by the console's key."""
        await open_bets(floor, self.console)

    async def _read(self, floor: Floor) -> tuple[tuple[int, ...], int, int] | None:
        """Let the reader read; None if it detects nothing."""
        seen: tuple[tuple[int, ...], int, int] | None = await self._act(floor, self.shaker.read)
        return seen

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Arts. 2 to 4: cover, three pulls, bets, bell, uncover, read, pay."""
        for _ in range(rounds):
            await floor.ready()
            if self._rng.random() < 0.04:
                self.shaker.inject(self._rng.choice(("dice_stacked", "dice_leaning")), floor.pace.now())
            await self._round(floor)

    async def _act(self, floor: Floor, do: Callable[[float], Any]) -> Any:
        await floor.ready()
        done = do(floor.pace.now())
        floor.stir("shaker-1")
        await floor.pace.sleep(self._rng.uniform(0.6, 1.4))
        return done

    async def _round(self, floor: Floor) -> None:
        pace, rng = floor.pace, self._rng
        await self._act(floor, self.shaker.cover)
        await self._shake(floor)
        await floor.ready()
        await self._open(floor)
        await floor.tell("lamps-1", "light", {"lamps": ["1"]})
        await pace.sleep(rng.uniform(12.0, 20.0))
        await floor.ready()
        floor.press(self.console, "bell")
        await floor.tell("lamps-1", "light", {"lamps": []})
        await pace.sleep(rng.uniform(1.0, 2.0))
        mine = floor.claim()
        await self._act(floor, self.shaker.uncover)
        seen = await self._read(floor)
        if seen is None:  # the reader detects nothing: entered by hand, twice, if the round still waits for it
            seen = self.shaker.lie() if floor.look().over else await self._by_hand(floor)
        faces, stacked, leaning = seen
        void = bool(stacked or leaning) or len(faces) != 3
        counts = await settle(floor, self.console, rng, mine)
        if void:
            self.truth.append(Truth({}, void=True))
        else:
            self.truth.append(Truth(self._facts(faces), void=not counts))
        void = void or not counts
        await floor.ready()
        if not void:
            await self._show(floor, faces)
            floor.press(self.console, "paid")
            await self._show(floor, ())
        await pace.sleep(1.0)

    async def _shake(self, floor: Floor) -> None:
        """Three pulls. If the dice did not move the dealer pulls once more; if the lever fails he uses the motor."""
        if self.shaker.lever_works(floor.pace.now()):
            pulls = 0
            while pulls < 3:
                pulls += bool(await self._act(floor, self.shaker.pull_lever))
        else:
            await self._act(floor, self.shaker.agitate)

    async def _by_hand(self, floor: Floor) -> tuple[tuple[int, ...], int, int]:
        lie = self.shaker.lie()
        for _ in range(2):
            await floor.ready()
            self.console.enter_dice(lie[0], floor.pace.now(), stacked=lie[1], leaning=self._entered(lie[2]))
            floor.stir("console-1")
            await floor.pace.sleep(1.5)
        return lie[0], lie[1], self._entered(lie[2])

    def _entered(self, leaning: int) -> int:
        """How many leaning dice the dealer enters."""
        return leaning


class CussecTable(ShakenTable):
    """Its lamp shows that bets may be placed; the croupier announces the rest."""

    ruleset: ClassVar[str] = "macau.cussec"

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "cussec", "shaker")


class AngolaCussecTable(ShakenTable):
    """The light that follows the third pull opens the bets, and a leaning die is read by the dealer."""

    ruleset: ClassVar[str] = "angola.cussec"
    options: ClassVar[dict[str, Any]] = {"payment": "console"}

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "angola cussec", "angola shaker")

    async def _open(self, floor: Floor) -> None:
        """Open the bets by the console's key if the light does not do it."""
        if not await shows(floor, lambda look: look.phase == "betting"):
            await super()._open(floor)

    async def _read(self, floor: Floor) -> tuple[tuple[int, ...], int, int] | None:
        seen = await super()._read(floor)
        if seen is None or not seen[2] or seen[1]:
            return seen
        return await self._by_hand(floor)

    def _entered(self, leaning: int) -> int:  # noqa: ARG002 - as every table
        """None: he enters the faces that lie up."""
        return 0
