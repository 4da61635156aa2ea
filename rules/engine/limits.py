"""The limits of the bets of a table, and the largest amount that a wager can bring back.

`Limits.refusal` gives the reason why a change of a bet is refused. Limits come from three sources: the articles of a
text, through the options that the text names; the option `limits`, which every ruleset has; and the sign of the table,
which people change while it is played on: the edge writes its limits into each bet. A wager is refused, too, if its
settlement, or the settlements of its round together, could exceed 2^53 - 1, because readers of JSON round larger
numbers.

A largest amount is judged as soon as a chip is laid. A bet may be laid in several chips: its smallest amount and its
steps are judged when the bets close (`Limits.left_at_close`). A betting terminal asks for a whole bet, so all limits
are checked at once.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Final

from msgspec import Struct

from protocols.contract.events import MOST, WagerPlaced, WagerWithdrawn
from protocols.contract.reasons import Reason, Value, say
from rules.engine.ruleset import Wager, option

SEAT: Final = "seat"
ROUND: Final = "round"
JACKPOT: Final = "jackpot"
PARTS: Final = 32
"""Maximum number of parts of one settlement; each may be rounded up to the smallest chip."""
_ONE: Final = re.compile(
    r"(?P<name>[a-z][a-z0-9_]*)=(?:(?P<least>[1-9][0-9]{0,15})-)?(?P<most>[1-9][0-9]{0,15})"
    r"(?:/(?P<step>[1-9][0-9]{0,15}))?"
)


class HouseOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The option that every ruleset has. Results leave it out where it is empty."""

    limits: Annotated[
        tuple[str, ...],
        option(
            "-",
            "limits of the table in minor units: straight=100-5000/100 takes bets of this family from 100 to 5000 in "
            "steps of 100; seat=50000 and round=900000 are the most that a seat, or all seats, may bet in a round. The "
            "most is judged at each chip, the least and the steps when the bets close",
        ),
    ] = ()


class Range(Struct, frozen=True):
    """A bet is between `least` and `most`, in multiples of `step`. `law`: the article, if one sets the range."""

    least: int
    most: int
    step: int = 1
    law: str = ""

    def holds(self, amount: int) -> bool:
        """Whether `least`, `most` and `step` allow an amount."""
        return self.least <= amount <= self.most and not amount % self.step


class Refusal(Struct, frozen=True):
    """Why a change of a bet is not taken."""

    code: str
    reason: Reason
    law: str


class Limits:
    """The limits of one house. `best`: the largest prize of each place or family, x to 1; 0 where none is named."""

    def __init__(
        self,
        given: Sequence[str] = (),
        families: Iterable[str] = (),
        *,
        articles: Mapping[str, Range] | None = None,
        fixed: Iterable[str] = (),
        best: Callable[[], Mapping[str, Fraction]] = dict,
        chip: int = 1,
        rounds_up: bool = False,
    ) -> None:
        """Raise ValueError for a limit of `given` that is malformed, of no family, or outside its article.

        `fixed`: families whose amount follows from another bet, so that they have no limits of their own.
        """
        self._ranges = dict(articles or {})
        self._caps: dict[str, int] = {}
        self._fixed = frozenset(fixed)
        self._own = set[str]()
        """Families that the option gives limits of their own."""
        self._best = best
        self._slack = PARTS * chip if rounds_up else 0
        known = frozenset(families)
        named = set[str]()
        for text in given:
            name, one = _parsed(text)
            if name in named:
                raise ValueError(f"limits: {name} is named twice")
            named.add(name)
            if name in (SEAT, ROUND):
                if one.least > 1 or one.step > 1:
                    raise ValueError(f"limits: {text!r}: {name} has a largest amount only, as in {name}=50000")
                self._caps[name] = one.most
            elif name in self._fixed:
                raise ValueError(f"limits: {name} is as large as the text makes it by another bet: limit that bet")
            elif name not in known:
                raise ValueError(f"limits: no bet {name!r}; it has {', '.join(sorted(known))}, {SEAT}, {ROUND}")
            else:
                self._ranges[name] = _within(text, one, self._ranges.get(name))
                self._own.add(name)

    @cached_property
    def _returns(self) -> tuple[int, dict[str, int]]:
        """The common denominator of the odds, and by bet the largest return of one unit, times this denominator."""
        best = self._best()
        whole = math.lcm(*(odds.denominator for odds in best.values()))
        return whole, {bet: int((1 + odds) * whole) for bet, odds in best.items()}

    @cached_property
    def _safe(self) -> int:
        """Sum of at most 1000 wagers up to which no settlement is too large, whatever the bets are."""
        whole, returns = self._returns
        return (MOST - 1000 * self._slack) * whole // max((whole, *returns.values()))

    @cached_property
    def _watched(self) -> int:
        """Bets up to this sum need no check of their limits; -1: each needs it."""
        return -1 if self._ranges or self._caps else self._safe

    def range_of(self, family: str) -> Range | None:
        """The limits of a family's bets, where it has any."""
        return self._ranges.get(family)

    def follows_table(self, bet: str) -> bool:
        """Whether the limits on the table's sign apply to a bet: only if it has no limits of its own and is not fixed.

        A bet on a jackpot is one chip, whatever the table's smallest bet is.
        """
        family = bet.partition(":")[0]
        return family not in self._own and family not in self._fixed and family != JACKPOT

    def beyond_table(self, change: WagerPlaced, left: int, law: str) -> Refusal | None:
        """Why the limits on the sign of the table, which the event carries, refuse a bet of `left` in all."""
        if not (change.minimum or change.maximum) or not self.follows_table(change.bet):
            return None
        allowed = Range(change.minimum, change.maximum or MOST)
        fits = left <= allowed.most and (left >= allowed.least or not from_terminal(change))
        return None if fits else _outside(allowed, Wager(change.seat, change.bet, left), law)

    def watches(self, total: int) -> bool:
        """Whether a change that leads to this sum must be checked."""
        return total > self._watched

    def most_returned(self, wagers: Iterable[Wager]) -> Fraction:
        """The most that these wagers can bring back together."""
        whole, returns = self._returns
        parts = [
            one.amount * returns.get(one.bet, returns.get(one.bet.partition(":")[0], whole)) + self._slack * whole
            for one in wagers
        ]
        return Fraction(sum(parts), whole)

    def refusal(self, lying: Sequence[Wager], change: WagerPlaced | WagerWithdrawn, law: str) -> Refusal | None:
        """Why this change of the laid bets is refused; `law`: the article of the bets.

        A bet may always be taken back whole. A withdrawal of more than is laid is checked elsewhere.
        """
        held = sum([one.amount for one in lying if one.seat == change.seat and one.bet == change.bet])
        return self.refusal_beside(held, sum([one.amount for one in lying]), lying, change, law)

    def refusal_beside(
        self, held: int, total: int, lying: Sequence[Wager], change: WagerPlaced | WagerWithdrawn, law: str
    ) -> Refusal | None:
        """`refusal` where the amount on the bet, and of all bets, is known."""
        placed, seat, bet = change if isinstance(change, WagerPlaced) else None, change.seat, change.bet
        left = held + change.amount if placed else held - (change.amount or held)
        if left <= 0:
            return None
        if placed and total + change.amount > self._safe and self.too_large(lying, placed):
            reason = say("settlement_too_large", seat=seat, bet=bet, amount=change.amount)
            return Refusal("settlement_too_large", reason, law)
        allowed = self._ranges.get(bet.partition(":")[0])
        if allowed is not None:
            whole = from_terminal(change)
            if (placed and left > allowed.most) or (whole and left < allowed.least):
                return _outside(allowed, Wager(seat, bet, left), law)
            if whole and left % allowed.step:
                return _not_in_steps(allowed, Wager(seat, bet, left), law)
        return self._over_cap(lying, placed, law) if self._caps and placed else None

    def left_at_close(self, one: Wager, law: str) -> tuple[int, Refusal | None]:
        """What is left of a bet when the bets close, and why the rest goes back."""
        if one.amount < one.minimum:
            return 0, _outside(Range(one.minimum, MOST), one, law)
        allowed = self._ranges.get(one.bet.partition(":")[0])
        if allowed is None:
            return one.amount, None
        if rest := one.amount % allowed.step:
            left = one.amount - rest
            return left if left >= allowed.least else 0, _not_in_steps(allowed, one, law)
        return (0, _outside(allowed, one, law)) if one.amount < allowed.least else (one.amount, None)

    def too_large(self, lying: Sequence[Wager], change: WagerPlaced) -> bool:
        """Whether a settlement, or those of the round together, could pass the largest number."""
        return self.most_returned((*lying, Wager(change.seat, change.bet, change.amount))) > MOST

    def _over_cap(self, lying: Sequence[Wager], change: WagerPlaced, law: str) -> Refusal | None:
        """The refusal of a bet by which a seat, or all seats together, would exceed the house's maximum."""
        laid: dict[str, Value] = {"seat": change.seat, "bet": change.bet, "amount": change.amount}
        most = self._caps.get(SEAT)
        if most is not None and sum([one.amount for one in lying if one.seat == change.seat]) + change.amount > most:
            return Refusal("over_seat_maximum", say("over_seat_maximum", **laid, most=most), law)
        most = self._caps.get(ROUND)
        if most is not None and sum([one.amount for one in lying]) + change.amount > most:
            return Refusal("over_round_maximum", say("over_round_maximum", **laid, most=most), law)
        return None


UNLIMITED: Final = Limits()


def from_terminal(one: WagerPlaced | WagerWithdrawn) -> bool:
    """Whether a betting terminal asked for it."""
    return bool(getattr(one, "terminal", ""))


def _outside(allowed: Range, one: Wager, law: str) -> Refusal:
    least, most = allowed.least, min(allowed.most, MOST)
    reason = say("stake_limits", seat=one.seat, bet=one.bet, amount=one.amount, least=least, most=most)
    return Refusal("bet_outside_limits", reason, allowed.law or law)


def _not_in_steps(allowed: Range, one: Wager, law: str) -> Refusal:
    reason = say("bet_not_in_steps", seat=one.seat, bet=one.bet, amount=one.amount, step=allowed.step)
    return Refusal("bet_not_in_steps", reason, allowed.law or law)


def largest_odds(pays: str) -> Fraction:
    """The largest prize that a printed text names: "50, 150 or 500" is 500, "pool, share or fixed" none."""
    return max(map(Fraction, re.findall(r"[0-9]+(?:/[0-9]+)?", pays)), default=Fraction(0))


def _parsed(text: str) -> tuple[str, Range]:
    match = _ONE.fullmatch(text)
    if match is None:
        raise ValueError(f"limits: {text!r}: write family=least-most, family=least-most/step, or seat=most")
    step = int(match["step"] or 1)
    least, most = int(match["least"] or step), int(match["most"])
    if most > MOST:
        raise ValueError(f"limits: {text!r}: no amount is above {MOST}")
    if least > most:
        raise ValueError(f"limits: {text!r}: the least is above the most")
    if least % step:
        raise ValueError(f"limits: {text!r}: the least is no multiple of the step")
    return match["name"], Range(least, most, step)


def _within(text: str, one: Range, article: Range | None) -> Range:
    """The range of a house, which must be within the article's. Raises ValueError."""
    if article is None:
        return one
    if one.least < article.least or one.most > article.most or one.step % article.step:
        allowed = f"{article.least}-{article.most}" + (f"/{article.step}" if article.step > 1 else "")
        raise ValueError(f"limits: {text!r}: {article.law}: within {allowed}")
    return Range(one.least, one.most, one.step, article.law)
