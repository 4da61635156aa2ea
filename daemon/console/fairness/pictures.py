"""Pictures of counts: the place of each bar and wedge. Pure values; the templates draw them as SVG.

Lengths are in units of each picture's own view box. Colours are classes: a page allows no style of its own in the SVG.
"""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

HEIGHT: Final = 200.0
_FOOT: Final = 20.0
_LEFT: Final = 4.0

HUB: Final = 34.0
DUE: Final = 66.0
_MOST: Final = 98.0
NAMES: Final = 108.0
RIM: Final = 117.0


class Bar(Struct, frozen=True):
    """One bar: its place and its text. `odd`: outside the limits of 95 of 100 such counts."""

    x: float
    y: float
    width: float
    height: float
    name: str
    count: int
    kind: str
    odd: bool


class Bars(Struct, frozen=True):
    """A histogram `width` wide and HEIGHT high. `due` is the y of the expected count, `low` and `high` those of its
    usual band.
    """

    width: float
    bars: tuple[Bar, ...]
    due: float
    low: float
    high: float


class Wedge(Struct, frozen=True):
    """One pocket of a wheel: the outline of its wedge, and the place of its number."""

    path: str
    x: float
    y: float
    name: str
    count: int
    kind: str
    odd: bool


class Circle(Struct, frozen=True):
    """A wheel seen from above, its centre in 0, 0; a wedge up to DUE has the expected count.

    `sector` is the arc outside the fullest neighbours; `x` and `y` are the end of the pointer in the preferred
    direction.
    """

    wedges: tuple[Wedge, ...]
    sector: str
    x: float
    y: float


def usual(total: int, share: float) -> tuple[float, float]:
    """The limits between which 95 of 100 counts lie, if `share` of `total` is due."""
    aside = 1.96 * math.sqrt(total * share * (1 - share))
    return total * share - aside, total * share + aside


def bars(names: Sequence[str], counts: Sequence[int], kinds: Sequence[str] = (), step: float = 18.0) -> Bars:
    """A bar for each of equally likely names."""
    total = sum(counts)
    share = 1 / max(len(names), 1)
    low, high = usual(total, share)
    most = max(*counts, high, 1.0) if counts else 1.0
    room = HEIGHT - _FOOT

    def top(value: float) -> float:
        return round(room - room * max(value, 0.0) / most * 0.95, 1)

    made = tuple(
        Bar(
            round(_LEFT + place * step + step * 0.1, 1),
            top(count),
            round(step * 0.8, 1),
            round(room - top(count), 1),
            name,
            count,
            kinds[place] if kinds else "",
            bool(total) and not low <= count <= high,
        )
        for place, (name, count) in enumerate(zip(names, counts, strict=True))
    )
    return Bars(round(2 * _LEFT + step * len(names), 1), made, top(total * share), top(low), top(high))


def circle(
    names: Sequence[str],
    counts: Sequence[int],
    kinds: Sequence[str],
    sector: tuple[int, int],
    lean: tuple[float, float],
) -> Circle:
    """A wheel, its first pocket on top and the others clockwise.

    `sector`: first place and number of the fullest neighbours; `lean`: place and length (0 to 1) of the pointer.
    """
    size, total = len(names), sum(counts)
    due = total / size
    low, high = usual(total, 1 / size)
    wedges = []
    for place, (name, count, kind) in enumerate(zip(names, counts, kinds, strict=True)):
        far = min(HUB + (DUE - HUB) * (count / due if due else 0.0), _MOST)
        x, y = _at(place, size, NAMES)
        odd = bool(total) and not low <= count <= high
        wedges.append(Wedge(_wedge(place - 0.5, place + 0.5, size, far), x, y, name, count, kind, odd))
    first, width = sector
    ends = _at(first - 0.5, size, RIM), _at(first + width - 0.5, size, RIM)
    large = int(width * 2 > size)
    arc = f"M{ends[0][0]} {ends[0][1]}A{RIM} {RIM} 0 {large} 1 {ends[1][0]} {ends[1][1]}" if total else ""
    x, y = _at(lean[0], size, HUB * min(lean[1], 1.0))
    return Circle(tuple(wedges), arc, x, y)


def _at(place: float, size: int, far: float) -> tuple[float, float]:
    """The point `far` from the centre towards a place; 0 is on top."""
    angle = 2 * math.pi * place / size
    return round(far * math.sin(angle), 2), round(-far * math.cos(angle), 2)


def _wedge(begin: float, end: float, size: int, far: float) -> str:
    a, b = _at(begin, size, HUB), _at(begin, size, far)
    c, d = _at(end, size, far), _at(end, size, HUB)
    outside = f"A{round(far, 2)} {round(far, 2)} 0 0 1 {c[0]} {c[1]}"
    return f"M{a[0]} {a[1]}L{b[0]} {b[1]}{outside}L{d[0]} {d[1]}A{HUB} {HUB} 0 0 0 {a[0]} {a[1]}Z"
