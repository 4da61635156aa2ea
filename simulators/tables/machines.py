"""A gaming machine of Angola: periods of play, prizes that the cashier pays, and the console at its place."""

import random
from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any, ClassVar

from simulators.devices.device import Device
from simulators.devices.fdl_console import Console
from simulators.devices.sas_machine import Machine
from simulators.tables.table import PRESSES, Floor, Ruled, Truth, shows

__all__ = ["GamingMachinePlace"]

WRAPS = 10**8
NAMES: Mapping[str, str] = {
    "bets": "coin_in",
    "prizes": "coin_out",
    "by_hand": "jackpot",
    "takings": "drop",
    "games": "games_played",
}


class GamingMachinePlace(Ruled):
    """An attendant opens and closes the machine; the truth is the advance of its own meters meanwhile.

    Its coin in wraps around in the first period. Games that are not on the display at the closing may be of either
    period. So may those of a period that ended at midnight, or by a key whose effect was not displayed: the rules begin
    another one.
    """

    kind: ClassVar[str] = "mach"
    ruleset: ClassVar[str] = "angola.gaming-machines"
    options: ClassVar[dict[str, Any]] = {"largest_bet": 500}

    def __init__(self, seed: int) -> None:
        """The meter of coin in will wrap around after a few games."""
        self._rng = random.Random(f"gaming machine {seed}")
        self.machine = Machine(random.Random(f"slot machine {seed}"), serial=f"SIM-GM{seed}")
        self.machine.meters["coin_in"] = WRAPS - self._rng.randint(1, 20)
        self.console = Console(random.Random(f"machine console {seed}"), f"SIM-C{seed}")
        self.devices: dict[str, Device] = {"slot-1": self.machine, "console-1": self.console}
        self.truth: list[Truth] = []
        self._from = self._read()
        self._known = True  # whether the display showed the last meters of the last period

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Open, play, now and then a prize for the cashier, close."""
        for _ in range(rounds):
            await floor.ready()
            await self._open(floor)
            for _ in range(self._rng.randint(3, 9)):
                await self._game(floor)
            await self._game(floor, by_hand=self._rng.random() < 0.4)
            self.truth += await self._close(floor)

    async def _open(self, floor: Floor) -> None:
        """Press the key and play until the display shows the period: it begins with the next reading of the meters.

        It may count from any meters since the last closing, because games went on while the key was on its way.
        """
        readings = [self._from]
        for _ in range(PRESSES):
            floor.press(self.console, "bets_opened")
            await self._game(floor)
            readings.append(self._read())
            if await shows(floor, lambda look: not look.over):
                break
        first = _counted_from(floor.look().detail)
        found = [one for one in readings if {word: count % WRAPS for word, count in one.items()} == first]
        self._known = self._known or bool(found)
        self._from = found[0] if found else self._from

    def _read(self) -> dict[str, int]:
        return {word: self.machine.meters[name] for word, name in NAMES.items()}

    async def _game(self, floor: Floor, *, by_hand: bool = False) -> None:
        await floor.ready()
        now = floor.pace.now()
        played = self.machine.win(now) if self._rng.random() < 0.4 else self.machine.play(now, self._rng.randint(1, 5))
        if played and by_hand:
            self.machine.handpay(now, self._rng.randint(500, 5000))
        floor.stir("slot-1")
        await floor.pace.sleep(self._rng.uniform(2.0, 5.0))
        if by_hand:
            await floor.pace.sleep(8.0)
            while self.machine.reset(floor.pace.now()):
                floor.stir("slot-1")
                await floor.pace.sleep(8.0)

    async def _close(self, floor: Floor) -> list[Truth]:
        """Close once the display shows the last game. Returns the periods that ended at midnight before it, that
        period, and later ones: where the display does not show its end, another begins, and a further press ends it.

        A machine that waits for approval is declared void.
        """
        await floor.pace.sleep(8.0)
        now = self._read()
        wire = {name: self.machine.meters[name] % WRAPS for name in NAMES.values()}
        shown = await shows(floor, lambda look: _shows(look.detail, wire) or look.phase == "suspended")
        mine = floor.claim()
        shown = shown and _shows(floor.look().detail, wire)
        for key in islice(cycle(("table_closed", "void")), PRESSES):
            await floor.ready()
            floor.press(self.console, key, 2)
            if await shows(floor, lambda look: look.settled(mine)):
                break
        counted = {word: now[word] - self._from[word] for word in NAMES} | {"jackpots": 0}
        shown = shown and self._read() == now  # a repair includes a test game
        ended = floor.look().ended
        unasked = [one for one in ended if one not in floor.claimed]
        before = [one for one in unasked if _place(one)[0] < _place(mine)[0]]
        after = [one for one in unasked if mine and _place(one) > _place(mine)]
        floor.claimed.update(before, after)
        sure = shown and self._known and not before
        self._from, self._known = now, shown
        unsure = {"return_bp": 9000}
        return [
            *(Truth(unsure, not ended[one]) for one in before),
            Truth({"counted": counted} if sure else unsure, not ended.get(mine, False)),
            *(Truth(unsure, not ended[one]) for one in after),
        ]


def _place(round_: str) -> tuple[str, int]:
    """Table and day in the name of a period, and its number in the day."""
    day, _, number = round_.rpartition(":")
    return day, int(number or 0)


def _counted_from(detail: dict[str, Any]) -> dict[str, int]:
    """The meters from which the display counts the open period, as the wire has them."""
    meters, counted = detail.get("meters", {}), detail.get("counted", {})
    return {word: (meters.get(name, 0) - counted.get(word, 0)) % WRAPS for word, name in NAMES.items()}


def _shows(detail: dict[str, Any], meters: dict[str, int]) -> bool:
    return bool(meters.items() <= detail.get("meters", {}).items())
