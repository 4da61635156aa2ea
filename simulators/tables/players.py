"""Players who bet at terminals, for the simulated tables: their requests, and which of them count.

The terminals' answers name the bets that were taken, with the round. The table itself computes what they return.
Terminals of odd seats name the round that the display shows; the others name none.
"""

import random
from collections import Counter
from typing import Final, TypeAlias

from msgspec import Struct

from simulators.devices.bet_terminals import BetTerminals
from simulators.tables.table import Floor

__all__ = ["Laid", "Players"]

Laid: TypeAlias = dict[tuple[int, str], int]
"""The amounts on the table, by seat and bet."""
ANSWERED_WITHIN_S: Final = 120.0
DEVICE: Final = "terminals-1"


class _Tap(Struct, frozen=True):
    """One request: `amount` is negative for a withdrawal. `late`: the round whose bets the display showed as closed
    when it was tapped.
    """

    seat: int
    bet: str
    amount: int
    late: str = ""


class Players:
    """The players at the terminals of one table."""

    def __init__(self, rng: random.Random, terminals: BetTerminals) -> None:
        """`rng`: the random numbers of these players alone."""
        self.rng = rng
        self.terminals = terminals
        self._taps: dict[str, _Tap] = {}

    def begin(self) -> None:
        """Begin a round: clear the requests of the last one."""
        self._taps.clear()
        self.terminals.end_round()

    def repeat(self, floor: Floor) -> None:
        """A terminal repeats a request of this round that was already answered."""
        if answered := [id_ for id_ in self._taps if id_ in self.terminals.answers]:
            self.terminals.repeat(self.rng.choice(answered), floor.pace.now())
            floor.stir(DEVICE)

    def place(self, floor: Floor, seat: int, bet: str, amount: int, late: str = "") -> None:
        """Tap a bet."""
        id_ = self.terminals.place(seat, bet, amount, floor.pace.now(), _named(floor, seat))
        self._taps[id_] = _Tap(seat, bet, amount, late)
        floor.stir(DEVICE)

    def withdraw(self, floor: Floor, seat: int, bet: str, amount: int, late: str = "") -> None:
        """Take a part of a bet back."""
        id_ = self.terminals.withdraw(seat, bet, amount, floor.pace.now(), _named(floor, seat))
        self._taps[id_] = _Tap(seat, bet, -amount, late)
        floor.stir(DEVICE)

    async def laid(self, floor: Floor, round_: str = "") -> Laid | None:
        """The bets of this round by the answers; None if they are not known.

        A late bet never counts, whatever its answer: if the rules took it, their settlement differs. Bets are not known
        if they were taken in two rounds or not in `round_`: then the rules took them in another round than the dealer.
        """
        until = floor.pace.now() + ANSWERED_WITHIN_S
        while not all(id_ in self.terminals.answers for id_ in self._taps):
            if floor.pace.now() > until:
                return None
            await floor.pace.sleep(0.5)
        answered = [(tap, self.terminals.answers[id_]) for id_, tap in self._taps.items()]
        taken = [(tap, answer) for tap, answer in answered if answer.status == "accepted"]
        rounds = {answer.round for _, answer in taken}
        if len(rounds) > 1 or (round_ and rounds - {round_}):
            return None
        laid: Counter[tuple[int, str]] = Counter()
        for tap, answer in taken:
            if tap.late != answer.round:
                laid[tap.seat, tap.bet] += tap.amount
        return {place: amount for place, amount in laid.items() if amount}


def _named(floor: Floor, seat: int) -> str:
    """The round that the terminal of a seat names; none if the last one is over, because a bet may begin the next."""
    look = floor.look()
    return look.round if seat % 2 and not look.over else ""
