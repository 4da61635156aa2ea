"""Roulette with one zero: the places of the cloth, the order of the pockets on the wheel, announced bets.

The ruleset of a law uses the families from here and adds their prizes.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias

from rules.engine.bets import ALONE, numbers

Numbers: TypeAlias = tuple[int, ...]

USUAL_RED: Final = (1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36)
FRENCH_ORDER: Final = (
    *(0, 32, 15, 19, 4, 21, 2, 25, 17, 34, 6, 27, 13, 36, 11, 30, 8, 23, 10),
    *(5, 24, 16, 33, 1, 20, 14, 31, 9, 22, 18, 29, 7, 28, 12, 35, 3, 26),
)
AMERICAN_ORDER: Final = (
    *(0, 28, 9, 26, 30, 11, 7, 20, 32, 17, 5, 22, 34, 15, 3, 24, 36, 13, 1),
    *(27, 10, 25, 29, 12, 8, 19, 31, 18, 6, 21, 33, 16, 4, 23, 35, 14, 2),
)
ZERO_STREETS: Final = ((0, 1, 2), (0, 2, 3))
ZERO_SPLITS: Final = ((0, 1), (0, 2), (0, 3))
ZERO_CORNER: Final = (0, 1, 2, 3)


def alone(covered: Iterable[int]) -> dict[str, Numbers]:
    """One place without a number in its id."""
    return dict.fromkeys(ALONE, tuple(covered))


def cloth(red: Numbers, *, zero: bool) -> dict[str, dict[str, Numbers]]:
    """The numbers that each place covers, by family. `zero`: also the combinations of numbers that meet at 0."""
    every = range(1, 37)
    rows: list[Numbers] = [(n, n + 1, n + 2) for n in range(1, 37, 3)]
    corners = [square for (a, b, c), (d, e, f) in pairwise(rows) for square in ((a, b, d, e), (b, c, e, f))]
    splits = [pair for n in every for pair in ((n, n + 1), (n, n + 3)) if _neighbours(*pair)]
    return {
        "column": {str(n): tuple(row[n - 1] for row in rows) for n in (1, 2, 3)},
        "dozen": {str(n): tuple(range(n * 12 - 11, n * 12 + 1)) for n in (1, 2, 3)},
        "even": alone(every[1::2]),
        "odd": alone(every[::2]),
        "low": alone(every[:18]),
        "high": alone(every[18:]),
        "red": alone(red),
        "black": alone(n for n in every if n not in red),
        "line": numbers(above + below for above, below in pairwise(rows)),
        "street": numbers([*rows, *ZERO_STREETS] if zero else rows),
        "corner": numbers([ZERO_CORNER, *corners] if zero else corners),
        "split": numbers([*ZERO_SPLITS, *splits] if zero else splits),
        "straight": numbers((n,) for n in range(37)),
    }


def _neighbours(one: int, other: int) -> bool:
    return other <= 36 and (other == one + 3 or one % 3 != 0)


# ---- announced bets: the chips of each, by the place that they lie on; a place that holds two is named twice


Chips: TypeAlias = tuple[str, ...]

SERIES: Final[Mapping[str, Chips]] = {
    "large_series": (
        *("street:0-2-3", "street:0-2-3", "split:4-7", "split:12-15", "split:18-21", "split:19-22"),
        *("corner:25-26-28-29", "corner:25-26-28-29", "split:32-35"),
    ),
    "small_series": ("split:5-8", "split:10-11", "split:13-16", "split:23-24", "split:27-30", "split:33-36"),
    "orphans": ("straight:1", "split:6-9", "split:14-17", "split:17-20", "split:31-34"),
}
"""On the French order: a third of the wheel around 0, the third across from it, and what lies between."""


def neighbours(order: Numbers, sizes: Iterable[int] = (3, 5, 7)) -> dict[str, Chips]:
    """A number and as many on either side of it on the wheel: "17-5" is 17 and two on either side."""
    return {
        f"{number}-{size}": tuple(
            f"straight:{order[(order.index(number) + step) % len(order)]}"
            for step in range(-(size // 2), size // 2 + 1)
        )
        for size in sizes
        for number in sorted(order)
    }


def chips_win(chips: Iterable[tuple[Numbers, Fraction]], pocket: int) -> str:
    """The total prize of a bet of equal chips, x to 1, from each chip's covered numbers and odds."""
    chips = tuple(chips)
    back = sum(pays + 1 for covered, pays in chips if pocket in covered)
    return str(Fraction(back, len(chips)) - 1) if back else ""
