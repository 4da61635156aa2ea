"""Tables without a ruleset: devices and hands, and what really happened, event by event."""

import random
from typing import Any, ClassVar

from simulators.devices.alpha_sign import Sign
from simulators.devices.device import Device
from simulators.devices.sas_machine import Machine
from simulators.tables.table import Floor, Truth

__all__ = ["MachinePlace"]

FIRST_AMOUNT = 1_000_000


class _Hands:
    """What these tables have in common: a seed, devices, a truth of events."""

    ruleset: ClassVar[str] = ""
    options: ClassVar[dict[str, Any]] = {}
    watched: ClassVar[tuple[str, ...]] = ()

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"{type(self).__name__} {seed}")
        self.truth: list[Truth] = []
        self.devices: dict[str, Device] = {}
        self._seed = seed

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{type(self).__name__} {what} {self._seed}")

    def _happened(self, type_: str, **data: Any) -> None:
        self.truth.append(Truth({"type": type_, **data}))

    def outcome(self, type_: str, data: dict[str, Any]) -> dict[str, Any] | None:
        """What an event says of a round, in the words of the truth; None where it says nothing."""
        return {"type": type_, **data} if type_ in self.watched else None

    async def _pause(self, floor: Floor, least: float, most: float) -> None:
        await floor.pace.sleep(self._rng.uniform(least, most))


class MachinePlace(_Hands):
    """A slot machine and the sign of its jackpot.

    Where `pooled`, a pool of `feltd jackpots` takes the bets from the machine's meter and sends the amount to both.
    Otherwise the place sends it itself: the bets above the first amount.
    """

    watched: ClassVar[tuple[str, ...]] = ("jackpot.won",)
    pooled: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        """The jackpot falls now and then."""
        super().__init__(seed)
        self.machine = Machine(self._chance("machine"))
        self.sign = Sign(self._chance("sign"))
        self.devices = {"slot-1": self.machine, "sign-1": self.sign}
        self._began = self.machine.meters["coin_in"]

    def outcome(self, type_: str, data: dict[str, Any]) -> dict[str, Any] | None:
        """A prize that a person pays is no jackpot of this place."""
        return super().outcome(type_, data) if data.get("level") else None

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Play; the jackpot grows, falls, is announced and begins again."""
        for _ in range(rounds):
            await floor.ready()
            for _ in range(self._rng.randint(2, 6)):
                self.machine.play(floor.pace.now(), bet=1 + self._rng.randint(1, 500) % 5)
                floor.stir("slot-1")
                await self._pause(floor, 2.0, 5.0)
            await self._show(floor)
            await floor.pace.sleep(6.0)
            await floor.ready()
            if self.machine.playable and (not self.pooled or 1 in self.machine.levels):
                self.machine.hit_progressive(floor.pace.now(), 1)
                self._happened("jackpot.won", level=1)
            floor.stir("slot-1")
            self._began = self.machine.meters["coin_in"]
            if not self.pooled:
                await floor.tell("sign-1", "announce", {"text": "JACKPOT", "seconds": 10})
            await self._pause(floor, 12.0, 15.0)
            await self._show(floor)

    async def _show(self, floor: Floor) -> None:
        if not self.pooled:
            amount = FIRST_AMOUNT + self.machine.meters["coin_in"] - self._began
            await floor.tell("sign-1", "show-amount", {"amount": amount})
            await floor.tell("slot-1", "show-amount", {"amount": amount})
