"""Macau fish-prawn-crab: Despacho Regulamentar Externo 59/2004 with 69/2006.

Three dice with a figure, a colour and a number on each face (1(1)): fish red 1, prawn green 2, gourd blue 3, coin blue
4, crab green 5, rooster red 6; opposite faces make seven (1(2)), and so are of one colour. The ceremony of arts. 2 to 4
is that of `rules/games/shaken_dice.py`; the bets of a void throw may be taken back, kept or changed (3(4)).

Readings. Dice events carry the numbers of the faces. `figure` pays by how many dice show the figure (6(3)). A colour is
bet for exactly one die ("um e só um"), exactly two ("dois e só dois") or all three; three dice of a colour win
`three_colour` and `same_colour`, never the first two. The bet of 5(9), which 6(9) calls "igual figura não escolhida",
wins with any of the six figures, also with that of a `triple`. Art. 7 takes only small and big away from three equal
figures, so the other bets win on them. The totals are fixed: art. 8 leaves to the house only the alternatives of arts.
1 and 2, and none of arts. 5 and 6. A layout with fewer bets than art. 5 is not mentioned: it is possible as an option.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from rules.engine.bets import ALONE, Board, Family, check_offered, names, prize
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.ruleset import option
from rules.games.shaken_dice import TOTALS, Articles, Faces, ShakenDice, Words, is_big, is_small, is_triple
from rules.needs import Needs, shaken

# Art. 1(1): the six faces in the order of their numbers, 1 to 6.
FIGURES: Final = ("fish", "prawn", "gourd", "coin", "crab", "rooster")
COLOUR: Final = {1: "red", 2: "green", 3: "blue", 4: "blue", 5: "green", 6: "red"}
COLOURS: Final = ("red", "green", "blue")

# Art. 6(10): the prizes of the totals.
TOTAL_PAYS: Final = {4: 50, 5: 18, 6: 14, 7: 12, 8: 8, 9: 6, 10: 6, 11: 6, 12: 6, 13: 8, 14: 12, 15: 14, 16: 18, 17: 50}
_EACH: Final = {figure: number for number, figure in enumerate(FIGURES, 1)}
_HUES: Final = {colour: colour for colour in COLOURS}


def _colours(faces: Iterable[int]) -> Counter[str]:
    return Counter(COLOUR[face] for face in faces)


def _shown(count: int) -> Callable[[str, Faces], bool]:
    """Wins where exactly `count` dice show the colour."""
    return lambda colour, faces: _colours(faces)[colour] == count


# In the order of arts. 5 and 6.
PAYTABLE: Final = (
    Family("small", "1", "arts. 5(1), 6(1), 7", "total 4 to 10; loses on three equal figures", ALONE, is_small),
    Family("big", "1", "arts. 5(2), 6(2), 7", "total 11 to 17; loses on three equal figures", ALONE, is_big),
    Family(
        *("figure:f", "1, 2 or 3", "arts. 5(3), 6(3)", "the figure f on one, two or three dice", _EACH),
        lambda n, faces: prize(faces.count(n)),
    ),
    Family("one_colour:c", "1", "arts. 5(4), 6(4)", "the colour c on one die and no more", _HUES, _shown(1)),
    Family("two_colour:c", "3", "arts. 5(5), 6(5)", "the colour c on two dice and no more", _HUES, _shown(2)),
    Family("three_colour:c", "20", "arts. 5(6), 6(6)", "the colour c on all three dice", _HUES, _shown(3)),
    Family(
        *("same_colour", "7", "arts. 5(7), 6(7)", "any one colour on all three dice", ALONE),
        lambda _, faces: len(_colours(faces)) == 1,
    ),
    Family(
        *("triple:f", "150", "arts. 5(8), 6(8)", "the figure f on all three dice", _EACH),
        lambda n, faces: faces.count(n) == 3,
    ),
    Family("any_triple", "24", "arts. 5(9), 6(9)", "any one figure on all three dice", ALONE, is_triple),
    Family(
        *("total:n", "50, 18, 14, 12, 8 or 6", "arts. 5(10), 6(10)", "the sum of the dice, 4 to 17"),
        {str(n): n for n in TOTALS},
        lambda n, faces: prize(TOTAL_PAYS[n] if sum(faces) == n else 0),
    ),
)
FAMILIES: Final = names(PAYTABLE)

TEXT: Final = "Despacho 59/2004 art."
ARTICLES: Final = Articles(
    null_bets="may_change",
    mechanism=f"{TEXT} 1(3)(1)",
    shaking=f"{TEXT} 2(1)",
    bell=f"{TEXT} 3(1)",
    reading=f"{TEXT} 3(2)",
    null=f"{TEXT} 3(3)",
    bets_after_null=f"{TEXT} 3(4) (69/2006)",
    payment=f"{TEXT} 4",
    bets=f"{TEXT} 5",
    prizes=f"{TEXT} 6",
    triple=f"{TEXT} 7",
)

_FIGURES: Final[dict[int, Words]] = {
    1: ("peixe", "魚", "fish"),
    2: ("camarão", "蝦", "prawn"),
    3: ("cabaço", "葫蘆", "gourd"),
    4: ("moeda", "金錢", "coin"),
    5: ("caranguejo", "蟹", "crab"),
    6: ("galo", "雞", "rooster"),
}
# How many dice show a colour: for one die, and for more.
_COUNTS: Final[tuple[Words, ...]] = (("uma", "一", "one"), ("duas", "二", "two"), ("três", "三", "three"))
_COLOURS: Final[dict[str, tuple[Words, Words]]] = {
    "red": (("vermelha", "紅", "red"), ("vermelhas", "紅", "red")),
    "green": (("verde", "綠", "green"), ("verdes", "綠", "green")),
    "blue": (("azul", "藍", "blue"), ("azuis", "藍", "blue")),
}


class FishPrawnCrabOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house (art. 8)."""

    edition: Annotated[Literal["2004"], option("59/2004 with 69/2006", "which text is in force at the table")] = "2004"
    agitation: Annotated[
        Literal["lever", "electronic", "either"],
        option("arts. 1(3)(1), 2(1)", "three pulls of the lever or one electronic agitation"),
    ] = "lever"
    dome: Annotated[
        Literal["movable", "fixed"],
        option(
            "arts. 1(3)(2), 2(1)",
            "movable: the shaker or a key reports when it is put on and lifted; fixed: a part of the shaker, shut by a "
            "shake, opened by the bell",
        ),
    ] = "movable"
    panel: Annotated[bool, option("art. 2(2)", "the panel lights when the dice are shaken")] = True
    announces: Annotated[bool, option("art. 2(3)", "the croupier also announces the opening of the bets")] = False
    lights: Annotated[bool, option("art. 3(2)", "the winning places light up on the board")] = True
    payment: Annotated[
        Literal["implied", "console"],
        option("art. 4", "whether the dealer console reports the payment before the dice may be covered again"),
    ] = "implied"
    bets_offered: Annotated[
        tuple[str, ...], option("art. 5", f"bet families on the layout, of {' '.join(FAMILIES)}; empty: all")
    ] = ()
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a bet that art. 5 does not have."""
        check_offered(self.bets_offered, FAMILIES, "art. 5")


class FishPrawnCrab(ShakenDice):
    """The ruleset."""

    id: ClassVar[str] = "macau.fish-prawn-crab"
    title: ClassVar[str] = "Fish-prawn-crab, Macau"
    law: ClassVar[str] = "Despacho 59/2004 with 69/2006"
    Options: ClassVar[type[FishPrawnCrabOptions]] = FishPrawnCrabOptions
    needs: ClassVar[Needs] = shaken("art. 1(3)(1)", "art. 2(1)", "art. 3(1)", "art. 3(2)", "art. 4")

    def __init__(self, options: FishPrawnCrabOptions) -> None:
        self.options = options
        super().__init__(options, Board(PAYTABLE, options.bets_offered), ARTICLES)

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """The figures in the order of their numbers, and how many dice show each colour."""
        figures = tuple(FIGURES[face - 1] for face in faces)
        return {"figures": figures, "colours": dict(_colours(faces))}

    def _calls(self, faces: tuple[int, ...], facts: dict[str, Any]) -> tuple[Words, tuple[Words, ...]]:
        """ "Fish, fish and coin", and the colours."""
        (a, aa, aaa), (b, bb, bbb), (c, cc, ccc) = (_FIGURES[face] for face in faces)
        named = (f"{a}, {b} e {c}", f"{aa}、{bb}、{cc}", f"{aaa}, {bbb} and {ccc}")
        if faces[0] == faces[2]:
            named = (f"três dados com {a}", f"圍骰{aa}", f"three dice with {aaa}")
        pt, zh, en = named
        return (pt.capitalize(), zh, en.capitalize()), tuple(_shows(*one) for one in facts["colours"].items())


def _shows(colour: str, count: int) -> Words:
    (pt, zh, en), (many, many_zh, many_en) = _COUNTS[count - 1], _COLOURS[colour][count > 1]
    return f"{pt} {many}", f"{zh}{many_zh}", f"{en} {many_en}"
