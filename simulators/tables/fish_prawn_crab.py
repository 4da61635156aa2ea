"""A fish-prawn-crab table: the shaker of a cussec table, and a layout whose winning places light up."""

import random
from collections import Counter
from typing import Any, ClassVar, Final

from protocols.fdl.lamps import MAX_PLACES
from simulators.devices.fdl_lamps import Lamps
from simulators.tables.cussec import ShakenTable
from simulators.tables.table import Floor

__all__ = ["FishPrawnCrabTable"]

# The symbols on the dice, by their numbers.
FACES: Final = {
    1: ("fish", "red"),
    2: ("prawn", "green"),
    3: ("gourd", "blue"),
    4: ("coin", "blue"),
    5: ("crab", "green"),
    6: ("rooster", "red"),
}
_FIGURES: Final = [figure for figure, _ in FACES.values()]
_COLOURED: Final = [
    f"{many}_colour:{colour}" for many in ("one", "two", "three") for colour in ("red", "green", "blue")
]
# The layout from its upper left corner. Lamp 1 shows that bets may be placed, lamp 2 is that of the first place; places
# beyond the first set of lamps are on the second.
LAYOUT: Final = [
    *("small", "big"),
    *(f"figure:{figure}" for figure in _FIGURES),
    *_COLOURED,
    "same_colour",
    *(f"triple:{figure}" for figure in _FIGURES),
    "any_triple",
    *(f"total:{total}" for total in range(4, 18)),
]


class FishPrawnCrabTable(ShakenTable):
    """The dealer knows which places win, and lights them."""

    ruleset: ClassVar[str] = "macau.fish-prawn-crab"

    def __init__(self, seed: int) -> None:
        """A second set of lamps."""
        super().__init__(seed, "fish-prawn-crab", "fish-prawn-crab shaker")
        self.more_lamps = Lamps(random.Random(f"fish-prawn-crab more lamps {seed}"), f"SIM-LL{seed}")
        self.devices["lamps-2"] = self.more_lamps

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """Figures and colours as they lie, and the winning places in the order of the layout."""
        figures = [FACES[face][0] for face in sorted(faces)]
        colours = Counter(FACES[face][1] for face in faces)
        return {**super()._facts(faces), "figures": figures, "colours": dict(colours), "lit": winning(faces)}

    async def _show(self, floor: Floor, faces: tuple[int, ...]) -> None:
        lamps = [LAYOUT.index(place) + 2 for place in (winning(faces) if faces else ())]
        await floor.tell("lamps-1", "light", {"lamps": [str(lamp) for lamp in lamps if lamp <= MAX_PLACES]})
        await floor.tell("lamps-2", "light", {"lamps": [str(lamp - MAX_PLACES) for lamp in lamps if lamp > MAX_PLACES]})


def winning(faces: tuple[int, ...]) -> list[str]:
    """The places that win on this throw."""
    total, figures, colours = sum(faces), {FACES[face][0] for face in faces}, [FACES[face][1] for face in faces]
    places = {f"figure:{figure}" for figure in figures}
    places |= {_COLOURED[3 * colours.count(colour) - 3 + ("red", "green", "blue").index(colour)] for colour in colours}
    places |= {"same_colour"} if len(set(colours)) == 1 else set()
    if len(figures) == 1:
        places |= {f"triple:{figures.pop()}", "any_triple"}
    else:
        places |= {"big" if total > 10 else "small"}
    return [place for place in LAYOUT if place in {*places, f"total:{total}"}]
