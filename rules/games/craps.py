"""The effect of a throw of two dice on the bets of craps, without articles and prizes.

`rules/angola/craps.py` uses it. A fate is a function of the covered numbers of a bet and of the throw.
"""

from collections.abc import Callable, Container
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

POINTS: Final = (4, 5, 6, 8, 9, 10)
Outcome: TypeAlias = Literal["wins", "loses", "returns", "stands", "moves"]
Series: TypeAlias = Literal["natural", "craps", "point_set", "point_continues", "point_made", "seven_out"]


class Throw(Struct, frozen=True):
    """Two dice, and the point before them: 0 on the first throw of a series."""

    point: int
    faces: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.faces)

    @property
    def series(self) -> Series:
        """The effect on the series."""
        match line(self.point, self.total):
            case "wins":
                return "point_made" if self.point else "natural"
            case "loses":
                return "seven_out" if self.point else "craps"
            case _:
                return "point_continues" if self.point else "point_set"

    @property
    def next_point(self) -> int:
        """The point after the throw."""
        if self.series == "point_set":
            return self.total
        return self.point if self.series == "point_continues" else 0


Fate: TypeAlias = Callable[[Any, Throw], Outcome]


def line(point: int, total: int) -> Outcome:
    """The shooter's side: 7 and 11 against 2, 3 and 12 without a point, then the point against 7."""
    if not point:
        return "wins" if total in (7, 11) else "loses" if total in (2, 3, 12) else "stands"
    return "wins" if total == point else "loses" if total == 7 else "stands"


def against(outcome: Outcome) -> Outcome:
    """The other side of a bet."""
    return "loses" if outcome == "wins" else "wins" if outcome == "loses" else outcome


def pass_line(_: object, throw: Throw) -> Outcome:
    """The shooter's side of the series."""
    return line(throw.point, throw.total)


def dont_pass(bar: int) -> Fate:
    """The bet against the shooter; on the first throw the total `bar` returns it."""

    return lambda _, throw: _barred(bar, throw.point, throw.total)


def come(number: int, throw: Throw) -> Outcome:
    """The shooter's side of a series of its own; `number` is its point, 0 before it has travelled to one."""
    return _travelling(number, throw, line(number, throw.total))


def dont_come(bar: int) -> Fate:
    """The bet against `come`."""

    return lambda number, throw: _travelling(number, throw, _barred(bar, number, throw.total))


def beside(fate: Fate) -> Fate:
    """Odds of the line; they lie there only with a point."""
    return lambda covered, throw: fate(covered, throw) if throw.point else "stands"


def before_seven(number: int, throw: Throw) -> Outcome:
    """The number comes before 7."""
    return line(number, throw.total)


def seven_before(number: int, throw: Throw) -> Outcome:
    """7 comes before the number."""
    return against(line(number, throw.total))


def hardway(number: int, throw: Throw) -> Outcome:
    """The number comes as a pair, before 7 and before it comes in another way."""
    outcome = line(number, throw.total)
    return "loses" if outcome == "wins" and throw.faces[0] != throw.faces[1] else outcome


def one_of(totals: Container[int]) -> Fate:
    """This throw alone decides."""
    return lambda _, throw: "wins" if throw.total in totals else "loses"


def _barred(bar: int, point: int, total: int) -> Outcome:
    return "returns" if not point and total == bar else against(line(point, total))


def _travelling(number: int, throw: Throw, outcome: Outcome) -> Outcome:
    if number:
        return outcome
    if not throw.point:  # taken only with a point up, so no bet lies there
        return "stands"
    return "moves" if outcome == "stands" else outcome
