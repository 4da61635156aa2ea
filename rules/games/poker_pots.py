"""The pot of one hand of poker where players play each other: the payments, and the house's part. Pure.

`pots` layers the contributions of a hand: one pot for each amount for which somebody is all-in (13(38)). `pay` gives
each pot to its best hands. Paid, kept and returned chips together equal those that were put in.

Readings of Decreto Executivo 261/22:

- 13(7)(a), 13(65): the percentage is taken from each payment, rounded down to the smallest chip, the main pot first
  where the house caps it. Chips that nobody called go back whole.
- 13(38), 13(50): an all-in player wins one bet of his from each of the others. What folded hands put in is layered by
  amount, too; `proportional` lays it into each pot in the proportion of the bets, as 13(50) has it by the letter.
- 13(66), 16(10): in one pot all winners have put in the same, so their parts are equal.
- 13(67): parts are whole units of the table minimum. Odd units go one each to the hand and then clockwise; a remainder
  below a unit goes to the first of these parts.
- 13(71)(b), (g), (h): a dead hand wins nothing and gets nothing back. Where no live hand is left in a pot, it joins the
  one below it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

Layering: TypeAlias = Literal["layered", "proportional"]


class Pot(Struct, frozen=True):
    """Chips that the seats `among` play for."""

    amount: int
    among: tuple[int, ...]


class Put(Struct, frozen=True):
    """The chips that the seats put into a hand. `bets`: those that count as bets; `dead`: antes and missed blinds,
    14(19).
    """

    bets: Mapping[int, int]
    dead: Mapping[int, int] = {}

    def total(self) -> int:
        """All chips."""
        return sum(self.bets.values()) + sum(self.dead.values())

    def by_seat(self) -> dict[int, int]:
        """The chips of each seat that put any in."""
        chips = dict(self.bets)
        for seat, amount in self.dead.items():
            chips[seat] = chips.get(seat, 0) + amount
        return {seat: amount for seat, amount in chips.items() if amount}


class Rake(Struct, frozen=True):
    """The house's percentage of a hand, in per mille; `cap`: the most that it takes of a hand, 0: no limit."""

    per_mille: int = 0
    cap: int = 0
    chip: int = 1


class Payment(Struct, frozen=True):
    """A part of one pot (0: the main one) for one seat. `kept`: the house's part, already taken off `amount`."""

    seat: int
    pot: int
    amount: int
    kept: int = 0


def pots(put: Put, live: Collection[int], layering: Layering = "layered") -> tuple[tuple[Pot, ...], dict[int, int]]:
    """The pots, the main one first, and the uncalled chips that go back."""
    bets = {seat: amount for seat, amount in put.bets.items() if amount}
    back = _uncalled(bets, live)
    for seat, amount in back.items():
        bets[seat] -= amount
    levels = sorted({bets.get(seat, 0) for seat in live})
    top = max((*levels, *bets.values()), default=0)
    found: list[Pot] = []
    below = 0  # the chips in the pots below
    for level in levels if levels[-1:] == [top] else [*levels, top]:
        upto = sum([_upto(one, level, top, seat in live, layering) for seat, one in bets.items()])
        amount, below = upto - below, upto
        among = tuple([seat for seat in live if bets.get(seat, 0) >= level])
        if not found:
            amount += sum(put.dead.values())
        if found and (not among or among == found[-1].among):
            found[-1] = replace(found[-1], amount=found[-1].amount + amount)
        else:
            found.append(Pot(amount, among))
    return tuple([pot for pot in found if pot.amount]), back


def _upto(bet: int, level: int, top: int, live: bool, layering: Layering) -> int:
    """The part of a bet that is in the pots up to `level`."""
    if live or layering == "layered" or not top:
        return min(bet, level)
    return bet * level // top


def _uncalled(bets: Mapping[int, int], live: Collection[int]) -> dict[int, int]:
    """The excess of the highest live bet over all other bets."""
    if not bets:
        return {}
    highest = max(bets, key=bets.__getitem__)
    rest = max((amount for seat, amount in bets.items() if seat != highest), default=0)
    return {highest: bets[highest] - rest} if highest in live and bets[highest] > rest else {}


def shares(amount: int, winners: Sequence[int], unit: int) -> list[int]:
    """The parts of the winners, who are in the order from the hand on (13(67))."""
    units, rest = divmod(amount, unit)
    each, odd = divmod(units, len(winners))
    parts = [(each + (place < odd)) * unit for place in range(len(winners))]
    parts[0] += rest
    return parts


def pay(
    found: Sequence[Pot], strengths: Mapping[int, int], order: Sequence[int], unit: int, rake: Rake
) -> tuple[Payment, ...]:
    """The payments to each pot's winners. `strengths`: of the shown hands; `order`: the seats, from the hand on."""
    left = rake.cap
    paid: list[Payment] = []
    for number, pot in enumerate(found):
        best = max(strengths[seat] for seat in pot.among)
        winners = [seat for seat in order if seat in pot.among and strengths[seat] == best]
        for seat, part in zip(winners, shares(pot.amount, winners, unit), strict=True):
            kept = part * rake.per_mille // 1000 // rake.chip * rake.chip
            kept = min(kept, left) if rake.cap else kept
            left -= kept
            paid.append(Payment(seat, number, part - kept, kept))
    return tuple(paid)
