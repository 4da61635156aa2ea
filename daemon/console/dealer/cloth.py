"""The cloth of a table: bets by family, seats, and the chips that the page offers as keys."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from daemon.config.model import Table

__all__ = ["CHIPS", "SEATS", "Cloth", "cloth_of", "ruleset_of"]

SEATS = 9
CHIPS = (1, 5, 10, 50, 100, 500)
"""Chip keys as multiples of the smallest bet."""
SMALLEST = 100
"""The smallest chip key is at least this many times the smallest chip of the house, in minor units."""


class Cloth(Struct, frozen=True):
    """`families`: the places of each family of bets, `fan` with `1` to `4`; "" is a family without places.

    `standing`: players behind each seat; the first one behind seat 4 is 14.
    """

    seats: int = SEATS
    chips: tuple[int, ...] = tuple(SMALLEST * times for times in CHIPS)
    families: Mapping[str, tuple[str, ...]] = {}
    standing: int = 0

    @property
    def places(self) -> tuple[int, ...]:
        """Where a player may be: the seats, then behind them."""
        return tuple(10 * row + seat for row in range(self.standing + 1) for seat in range(1, self.seats + 1))


def ruleset_of(table: Table | None) -> tuple[Any, Any] | None:
    """The game of a table and its options; None without a game, or with a wrong option, which
    the rules process reports.
    """
    from rules import RULESETS
    from rules.engine.duties import without_duties
    from rules.engine.ruleset import BadOption, options_from

    kind = RULESETS.get(table.ruleset) if table is not None else None
    if table is None or kind is None:
        return None
    try:
        options: Any = options_from(kind, table.options)
    except BadOption:
        return None
    return without_duties(kind(options)), options


def cloth_of(table: Table | None) -> Cloth:
    """The cloth of a table as it is configured."""
    if table is None:
        return Cloth()
    found = ruleset_of(table)
    if found is None:
        return Cloth(chips=table.chips or Cloth().chips)
    game, options = found
    places = getattr(game, "board", None) or [one.id for one in game.bets() if not one.id.endswith(":n")]
    families: dict[str, list[str]] = {}
    for bet in places:
        family, _, place = bet.partition(":")
        families.setdefault(family, []).append(place)
    least = max(getattr(options, "minimum", 0), SMALLEST * getattr(options, "smallest_chip", 1))
    return Cloth(
        getattr(options, "seats", 0) or getattr(game, "seats", 7 if table.ruleset.endswith("stud-poker") else SEATS),
        table.chips or tuple(least * times for times in CHIPS),
        {name: tuple(found) for name, found in families.items()},
        getattr(game, "standing", 0),
    )
