"""The bets of a game as a table: each family of bets is declared once, with its article, places and winning condition.

A game lists its families in the order of its text; `Board` keeps the families that a house offers and gives what each
place returns on an outcome.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from rules.engine.ruleset import Bet, Win

ALONE: Final[Mapping[str, Any]] = {"": None}
"""The places of a family that is one place on the board."""


class Family(Struct, frozen=True):
    """One family of bets.

    `id` is its pattern ("split:a-b"), `pays` what it wins, x to 1, net of a commission; `gross` is the printed prize
    where that differs. `places` maps the text in place of the pattern's letters ("1-2") to what the place covers.
    `wins(covered, outcome)` is True where the place wins `pays`; a prize that depends on the outcome is returned itself
    ("" where it loses); `returns(covered, outcome)` is True where the bet comes back, and `stands(covered, outcome)`
    where this outcome does not decide it.
    """

    id: str
    pays: str
    article: str
    text: str
    places: Mapping[str, Any]
    wins: Callable[[Any, Any], bool | str]
    returns: Callable[[Any, Any], bool] | None = None
    gross: str = ""
    stands: Callable[[Any, Any], bool] | None = None

    @property
    def name(self) -> str:
        """The pattern without its letters."""
        return self.id.partition(":")[0]

    def on_board(self) -> dict[str, Any]:
        """Each place by its whole id, with what it covers."""
        return {f"{self.name}:{written}" if written else self.name: one for written, one in self.places.items()}


def prize(odds: int) -> str:
    """A prize that depends on the outcome, x to 1; "" for odds of 0, where the place loses."""
    return str(odds) if odds else ""


def numbers(combinations: Iterable[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Places that cover numbers, written "1-2-3"."""
    return {"-".join(map(str, one)): one for one in combinations}


def names(families: Iterable[Family]) -> tuple[str, ...]:
    """The names of these families in the option `bets_offered`."""
    return tuple(family.name for family in families)


def check_offered(offered: Iterable[str], known: Sequence[str], where: str) -> None:
    """Raise ValueError for a bet that the text does not have; `where` is the article."""
    for name in offered:
        if name not in known:
            raise ValueError(f"bets_offered: {where} has no bet {name!r}, it has {', '.join(known)}")


class Board:
    """The bets of one house: `places` in the order of the table. No family named means all."""

    def __init__(self, families: Iterable[Family], offered: Sequence[str] = ()) -> None:
        self._families = tuple(family for family in families if not offered or family.name in offered)
        self.bets = tuple(Bet(one.id, one.pays, one.article, one.text) for one in self._families)
        self.places = tuple(place for family in self._families for place in family.on_board())

    def ending(self, outcome: Any) -> tuple[tuple[Win, ...], tuple[str, ...]]:
        """The places that win on this outcome, and those whose bets come back."""
        winners, pushes = [], []
        for family in self._families:
            for place, covered in family.on_board().items():
                if won := family.wins(covered, outcome):
                    winners.append(Win(place, family.pays if won is True else won, family.gross))
                elif family.returns is not None and family.returns(covered, outcome):
                    pushes.append(place)
        return tuple(winners), tuple(pushes)

    def standing(self, outcome: Any) -> tuple[str, ...]:
        """The places that this outcome does not decide."""
        return tuple(
            place
            for family in self._families
            if family.stands is not None
            for place, covered in family.on_board().items()
            if family.stands(covered, outcome)
        )
