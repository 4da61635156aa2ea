"""A place without a ruleset: a slot machine, and the jackpots that were truly won, each compared with its event."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from simulators.devices.alpha_sign import Sign
from simulators.devices.compare import Account
from simulators.devices.device import Device
from simulators.devices.sas_machine import Machine
from simulators.tables.table import Floor, Truth

__all__ = ["IN_DOUBT", "MachinePlace"]

FIRST_AMOUNT = 1_000_000
IN_DOUBT = ("sas.doubtful", "sas.exceptions_lost")
"""Faults by which a slot machine's driver reports that a jackpot may be missing."""


class MachinePlace:
    """A slot machine and the sign of its jackpot.

    With `pooled` a pool of `feltd jackpots` takes the bets from the machine's meter and sends the amount to both.
    Otherwise the place sends the amount itself: the first amount and the bets since.
    """

    ruleset: ClassVar[str] = ""
    options: ClassVar[dict[str, Any]] = {}
    pooled: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        """The jackpot is won now and then."""
        self._rng = random.Random(f"Slot {seed}")
        self.truth: list[Truth] = []
        self.machine = Machine(random.Random(f"Slot machine {seed}"))
        self.sign = Sign(random.Random(f"Slot sign {seed}"))
        self.devices: dict[str, Device] = {"slot-1": self.machine, "sign-1": self.sign}
        self._began = self.machine.meters["coin_in"]

    def hurry(self, times: float) -> None:
        """No effect: the dealer waits for no machine here."""

    def outcome(self, type_: str, data: dict[str, Any]) -> dict[str, Any] | None:
        """A reported jackpot, in the form of the truth. A handpay is no jackpot of this place."""
        return {"type": type_, **data} if type_ == "jackpot.won" and data.get("level") else None

    def account(self, told: Sequence[tuple[str, bytes]]) -> Account:
        """Each jackpot must be reported once. An unreported one is lost, unless a doubt was reported."""
        wins = [one.split()[2] for one in self.machine.truth if one.startswith("hit ")]
        events = [(type_, msgspec.json.decode(data)) for type_, data in told]
        won = Counter(str(data["amount"]) for type_, data in events if type_ == "jackpot.won" and data.get("level"))
        doubts = sum(type_ == "device.faulted" and data["code"] in IN_DOUBT for type_, data in events)
        missing = (Counter(wins) - won).total()
        return Account(
            right=(won & Counter(wins)).total(),
            voided=min(missing, doubts),
            lost=max(missing - doubts, 0),
            wrong=(won - Counter(wins)).total(),
        )

    async def deal(self, floor: Floor, rounds: int) -> None:
        """Play; the jackpot grows, is won, is announced and begins again."""
        for _ in range(rounds):
            await floor.ready()
            for _ in range(self._rng.randint(2, 6)):
                self.machine.play(floor.pace.now(), bet=1 + self._rng.randint(1, 500) % 5)
                floor.stir("slot-1")
                await floor.pace.sleep(self._rng.uniform(2.0, 5.0))
            await self._show(floor)
            await floor.pace.sleep(6.0)
            await floor.ready()
            if self.machine.playable and (not self.pooled or 1 in self.machine.levels):
                self.machine.hit_progressive(floor.pace.now(), 1)
                self.truth.append(Truth({"type": "jackpot.won", "level": 1}))
            floor.stir("slot-1")
            self._began = self.machine.meters["coin_in"]
            if not self.pooled:
                await floor.tell("sign-1", "announce", {"text": "JACKPOT", "seconds": 10})
            await floor.pace.sleep(self._rng.uniform(12.0, 15.0))
            await self._show(floor)

    async def _show(self, floor: Floor) -> None:
        if not self.pooled:
            amount = FIRST_AMOUNT + self.machine.meters["coin_in"] - self._began
            await floor.tell("sign-1", "show-amount", {"amount": amount})
            await floor.tell("slot-1", "show-amount", {"amount": amount})
