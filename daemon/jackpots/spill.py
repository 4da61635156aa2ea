"""The effect of a correction on bets above the limit of a pool, which went to the overflow. Pure; the ledger calls it.

The last bets after a round may be above the limit. A correction of the round makes room for them, or takes room away.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from daemon.jackpots.book import OVERFLOW, VISIBLE, RoundBook, Stake

__all__ = ["moved", "spilled"]


def spilled(held: Mapping[str, int], change: Mapping[str, int], overflow: int, most: int) -> int:
    """The amount that returns from the overflow into the pool; negative: the amount above the pool's limit.

    `held`: the accounts before a correction of an earlier round, which has the effect `change`; `overflow`: its balance
    after that round. Its balance from before the round stays there.
    """
    room = most - held.get(VISIBLE, 0) - change[VISIBLE]
    since, there = held.get(OVERFLOW, 0) - overflow, held.get(OVERFLOW, 0) + change[OVERFLOW]
    return room if room < 0 else max(min(since, -change[VISIBLE], room, there), 0)


def moved(round_: RoundBook, change: Mapping[str, int], overflow: int, most: int, unit: int) -> RoundBook:
    """A round after the corrected one, with the new balances after it and the new accounts of its bets' parts.

    All in 1/`unit`. Its bets count as the last ones before its end.
    """
    back = spilled(round_.after, change, overflow, most)
    after = {account: value + change[account] for account, value in round_.after.items()}
    after[VISIBLE], after[OVERFLOW] = after[VISIBLE] + back, after[OVERFLOW] - back
    stakes = [_in_unit(one, unit) for one in round_.stakes]
    own = sum(one.legs.get(OVERFLOW, 0) for one in stakes)
    if back < 0:
        stakes = _legs_moved(stakes[::-1], VISIBLE, OVERFLOW, -back)[::-1]
    else:
        stakes = _legs_moved(stakes, OVERFLOW, VISIBLE, back - max(round_.after[OVERFLOW] - overflow - own, 0))
    return replace(round_, after=after, stakes=tuple(stakes))


def _in_unit(stake: Stake, unit: int) -> Stake:
    legs = {account: value * unit // stake.unit for account, value in stake.legs.items()}
    return replace(stake, legs=legs, unit=unit)


def _legs_moved(stakes: list[Stake], giver: str, taker: str, amount: int) -> list[Stake]:
    """The parts of the bets, in this order, that add up to the amount."""
    done = []
    for one in stakes:
        part = max(min(amount, one.legs.get(giver, 0)), 0)
        amount -= part
        legs = {**one.legs, giver: one.legs.get(giver, 0) - part, taker: one.legs.get(taker, 0) + part}
        done.append(replace(one, legs={account: value for account, value in legs.items() if value}))
    return done
