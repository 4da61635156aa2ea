"""Tables of shaken dice whose shaker and camera speak MQTT: a Billy-III, which detects no dice and no dome, and an IDP.

The dealer orders each shake and each reading. If the camera does not read the dice, he enters them by hand.
"""

import random
from typing import Any, ClassVar

from simulators.devices.billy_iii import Billy
from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.idp_dice import Recogniser
from simulators.tables.fish_prawn_crab import FACES, winning
from simulators.tables.table import PRESSES, Floor, Ruled, Truth, open_bets, settle, shows

__all__ = ["FixedDomeTable", "KeyedDomeTable"]


class _MotorTable(Ruled):
    """Each round: a shake that was reported as complete, bets, bell, a reading."""

    def __init__(self, seed: int, game: str) -> None:
        """The camera reads the shaker's dice."""
        self._seed = seed
        self._rng = random.Random(f"{game} {seed}")
        self.shaker = Billy(random.Random(f"{game} shaker {seed}"))
        self.reader = Recogniser(random.Random(f"{game} camera {seed}"), lambda: self.shaker.faces)
        self.console = Console(random.Random(f"{game} console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {
            "shaker-1": self.shaker,
            "reader-1": self.reader,
            "console-1": self.console,
        }
        self.truth: list[Truth] = []

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """The facts of a throw that counts."""
        return {"faces": sorted(faces)}

    async def _cover(self, floor: Floor) -> None:
        """Put the dome on, if it can be lifted."""

    async def _uncover(self, floor: Floor) -> None:
        """Lift the dome, if it can be lifted."""

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Arts. 2 to 4."""
        for _ in range(rounds):
            await floor.ready()
            await self._round(floor)

    async def _round(self, floor: Floor) -> None:
        rng = self._rng
        await self._cover(floor)
        await self._shake(floor)
        await floor.ready()
        await open_bets(floor, self.console)
        await floor.pace.sleep(rng.uniform(12.0, 20.0))
        await floor.ready()
        floor.press(self.console, "bell")
        await floor.pace.sleep(rng.uniform(1.0, 2.0))
        mine = floor.claim()
        await self._uncover(floor)
        await self._read(floor)
        flat = not self.reader.lie
        counts = await settle(floor, self.console, rng, mine) and flat
        self.truth.append(Truth(self._facts(self.shaker.faces), void=not counts))
        await floor.ready()
        if counts:
            floor.press(self.console, "paid")
        await floor.pace.sleep(1.0)

    async def _shake(self, floor: Floor) -> None:
        """Order shakes until one counts; an interrupted shake does not count."""
        for _ in range(PRESSES):
            await floor.ready()
            if await floor.tell("shaker-1", "agitate", {}) == "done":
                break
            await floor.pace.sleep(1.0)
        await floor.pace.sleep(self._rng.uniform(0.6, 1.4))

    async def _read(self, floor: Floor) -> None:
        """Read by the camera; enter by hand, twice, if it fails and the round still waits. Stacked or leaning dice do
        not decide.
        """
        await floor.ready()
        asked = {"round": f"{self._seed}-{len(self.truth)}"}
        if await floor.tell("reader-1", "read-dice", asked) == "done":
            return
        for _ in range(2):
            await floor.ready()
            if floor.look().over:
                return
            stacked, leaning = int(self.reader.lie == "stacked"), int(self.reader.lie == "leaning")
            self.console.enter_dice(self.shaker.faces, floor.pace.now(), stacked=stacked, leaning=leaning)
            floor.stir("console-1")
            await floor.pace.sleep(1.5)


class FixedDomeTable(_MotorTable):
    """Cussec with a dome that is a part of the shaker."""

    ruleset: ClassVar[str] = "macau.cussec"
    options: ClassVar[dict[str, Any]] = {"payment": "console", "agitation": "electronic", "dome": "fixed"}

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "studio cussec")


class KeyedDomeTable(_MotorTable):
    """Fish-prawn-crab with a dome that is lifted by hand: the dealer reports it by keys of the console."""

    ruleset: ClassVar[str] = "macau.fish-prawn-crab"
    options: ClassVar[dict[str, Any]] = {"payment": "console", "agitation": "electronic"}

    def __init__(self, seed: int) -> None:
        super().__init__(seed, "studio fish-prawn-crab")

    async def _cover(self, floor: Floor) -> None:
        await self._press(floor, "dice_covered", "covered")

    async def _uncover(self, floor: Floor) -> None:
        await self._press(floor, "dice_uncovered", "uncovered")

    async def _press(self, floor: Floor, key: str, phase: str) -> None:
        """Press the key, and again if the display does not follow because it was dark."""
        for _ in range(2):
            await floor.ready()
            floor.press(self.console, key)
            if await shows(floor, lambda look: look.phase in (phase, "suspended")):
                return

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """Figures as they lie, and the winning places in the order of the layout."""
        return {
            **super()._facts(faces),
            "figures": [FACES[face][0] for face in sorted(faces)],
            "lit": winning(faces),
        }
