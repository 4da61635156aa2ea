"""The common part of the two roulettes of Angola: Decreto Executivo 261/22, arts. 1 and 2.

The game is that of `rules/games/alternating_roulette.py`. The two articles print it in different paragraphs, which
`Paragraphs` names. The ball is launched once all was paid (1(22), 2(11)), each spin the other way round and against the
wheel (1(24), 2(13)); "Jogo feito. Nada mais." ends the bets while it runs (1(23), 2(12)).

Readings:

- 1(2), 1(6), 2(6): red and black alternate on the wheel. In the American order of the numbers this contradicts the
  colours of the cloth; here the usual eighteen numbers are red.
- 1(24), 2(13): a launch the same way round as the last spin's, or with the wheel, is irregular; the text makes null
  only what fell on the wheel. Whether a null spin counts in the alternation is not stated: `null_spin_alternates`.
- 1(27)a)viii-ix, 2(16)a)viii-ix: a cavalo lies between two dozens or columns that touch; the first with the third is
  an option (`doubles`).
- 1(31), 2(19): on zero, bets on chances, dozens, columns and doubles lose in full. Combinations with zero win.
- 1(32), 2(20): doubles have no place in the order of payment: they are paid with dozens and columns.
- 1(32)-(33), 2(20)-(21): losing bets first, then the prizes in the order printed; all prizes of one player are paid
  together, when the first of them is due.
- 1(35), 2(24): one minimum holds for every bet of a table. A maximum that is not given is the largest that the text
  allows. A chip above the maximum is refused; a bet below the minimum goes back when the bets close.
- 1(23), 2(12): a call before the launch is irregular, and closes the bets.
"""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct

from rules.engine.bets import Board, Family, numbers
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.ruleset import option
from rules.games.alternating_roulette import AlternatingRoulette
from rules.games.roulette import Articles
from rules.games.roulette_cloth import USUAL_RED, Numbers, cloth

TEXT: Final = "Decreto Executivo 261/22 art."
CHANCES: Final = ("even", "odd", "low", "high", "red", "black")

# Pattern of the bet, prize, its items in the lists of bets and of prizes, description.
PRINTED: Final = (
    ("column:n", "2", "a)vii", "a)vii", "one of the three columns, 12 numbers"),
    ("double_column:a-b", "1/2", "a)ix", "a)ix", "two columns, 24 numbers"),
    ("dozen:n", "2", "a)vi", "a)vi", "1-12, 13-24 or 25-36"),
    ("double_dozen:a-b", "1/2", "a)viii", "a)viii", "two dozens, 24 numbers"),
    ("even", "1", "b)i", "b)", "even numbers"),
    ("odd", "1", "b)ii", "b)", "odd numbers"),
    ("low", "1", "b)iii", "b)", "1 to 18"),
    ("high", "1", "b)iv", "b)", "19 to 36"),
    ("red", "1", "b)v", "b)", "red numbers"),
    ("black", "1", "b)vi", "b)", "black numbers"),
    ("line:a-b-c-d-e-f", "5", "a)v", "a)v", "two rows, six numbers"),
    ("street:a-b-c", "11", "a)iii", "a)iii", "three numbers, also 0-1-2 and 0-2-3"),
    ("corner:a-b-c-d", "8", "a)iv", "a)iv", "four numbers that meet, also 0-1-2-3"),
    ("split:a-b", "17", "a)ii", "a)ii", "two neighbours on the cloth, also 0-1, 0-2 and 0-3"),
    ("straight:n", "35", "a)i", "a)i", "one number, 0 included"),
)
# Option, families, and the largest multiple of the minimum that it may be: 1(35), 2(24).
MAXIMA: Final = (
    ("maximum_straight", ("straight",), 30),
    ("maximum_split", ("split",), 60),
    ("maximum_street", ("street",), 90),
    ("maximum_corner", ("corner",), 120),
    ("maximum_line", ("line",), 180),
    ("maximum_dozen", ("dozen", "column"), 360),
    ("maximum_double", ("double_dozen", "double_column"), 720),
    ("maximum_chance", CHANCES, 540),
)


class Paragraphs(Struct, frozen=True):
    """The numbers of the paragraphs in one of the two articles, by subject."""

    article: int
    launch: int
    call: int
    direction: int
    null: int
    rest: int
    bets: int
    prizes: int
    zero: int
    limits: int

    def cite(self, paragraph: int | str) -> str:
        """One paragraph as a result cites it."""
        return f"{TEXT} {self.article}({paragraph})"

    def articles(self) -> Articles:
        """The articles that the result of a spin cites."""
        call, null = self.cite(self.call), self.cite(self.null)
        return Articles(
            bets=self.cite(self.bets),
            prizes=self.cite(self.prizes),
            zero=self.cite(self.zero),
            late=call,
            payment=self.cite(self.launch),
            bell=call,
            no_more_bets=call,
            direction=self.cite(self.direction),
            null=null,
            put_back=null,
            rest=self.cite(self.rest),
            paid_before="launch",
            with_rotor="irregular",
        )

    def printed(self, doubles: Literal["adjacent", "any"]) -> dict[str, Family]:
        """The families that both articles print, by name."""
        places = cloth(USUAL_RED, zero=True)
        pairs = ((1, 2), (2, 3)) if doubles == "adjacent" else ((1, 2), (1, 3), (2, 3))
        for name in ("dozen", "column"):
            one = places[name]
            places[f"double_{name}"] = {at: one[at[0]] + one[at[2]] for at in numbers(pairs)}
        return {
            name: Family(id_, pays, f"art. {self.article}({self.bets}){bet}, ({self.prizes}){prize}", text, at, _covers)
            for id_, pays, bet, prize, text in PRINTED
            for name, at in ((id_.partition(":")[0], places[id_.partition(":")[0]]),)
        }


def _covers(covered: Numbers, pocket: int) -> bool:
    return pocket in covered


_AMOUNT: Final = msgspec.Meta(ge=0)
_MAXIMUM: Final = "largest bet, minor units; 0: the printed ratio times `minimum`:"


class TableOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """The options that both articles leave to the house."""

    at: ClassVar[Paragraphs]

    payment: Annotated[
        Literal["implied", "console"],
        option("arts. 1(22), 2(11)", "whether the dealer console reports the payment before the ball may be launched"),
    ] = "implied"
    null_spin_alternates: Annotated[
        bool, option("arts. 1(24), 2(13)", "whether a null spin counts in the alternation of the ball's direction")
    ] = False
    doubles: Annotated[
        Literal["adjacent", "any"],
        option("arts. 1(27), 2(16)", "which two dozens or columns make a double: those that touch, or any"),
    ] = "adjacent"
    minimum: Annotated[
        int, _AMOUNT, option("arts. 1(35), 2(24)", "the smallest bet, minor units; 0: no limits are watched")
    ] = 0
    maximum_straight: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 30")] = 0
    maximum_split: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 60")] = 0
    maximum_street: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 90")] = 0
    maximum_corner: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 120")] = 0
    maximum_line: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 180")] = 0
    maximum_dozen: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 360; columns too")] = 0
    maximum_double: Annotated[int, _AMOUNT, option("arts. 1(35)a), 2(24)a)", f"{_MAXIMUM} 720")] = 0
    maximum_chance: Annotated[int, _AMOUNT, option("arts. 1(35)b), 2(24)b)", f"{_MAXIMUM} 540; even chances")] = 0
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a maximum that the text excludes, naming the article."""
        where = f"art. {self.at.article}({self.at.limits})"
        for name, _, ratio in MAXIMA:
            maximum = getattr(self, name)
            if maximum and not self.minimum <= maximum <= ratio * self.minimum:
                raise ValueError(f"{where}: {name} is from `minimum` ({self.minimum}) to {ratio} times as much")

    def maxima(self) -> dict[str, int]:
        """The largest bet of each family; none where no limits are watched."""
        if not self.minimum:
            return {}
        return {
            family: getattr(self, name) or ratio * self.minimum
            for name, families, ratio in MAXIMA
            for family in families
        }


class AngolanRoulette(AlternatingRoulette):
    """The rules that both roulettes share; each subclass adds those of its own article."""

    closing_words: ClassVar[dict[str, str]] = {
        "pt": "Jogo feito. Nada mais.",
        "zh-Hant": "停止投注",
        "en": "No more bets",
    }

    def __init__(self, options: TableOptions, families: Iterable[Family], offered: tuple[str, ...]) -> None:
        self.options = options
        at = options.at
        super().__init__(options, "2022", Board(families, offered), at.articles(), at.cite(at.limits))

    def calls(self, pocket: int, facts: dict[str, Any]) -> dict[str, str]:
        """The number and its colour."""
        red = facts["colour"] == "red"
        return {
            "pt": f"{pocket}, {'encarnado' if red else 'preto'}",
            "zh-Hant": f"{pocket}號，{'紅' if red else '黑'}",
            "en": f"{pocket}, {'red' if red else 'black'}",
        }
