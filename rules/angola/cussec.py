"""Angola cussec: Decreto Executivo 261/22, article 5.

The ceremony is that of `games/shaken_dice`. The dealer covers the dice and pulls the lever three times (5(5)). The
light that follows opens the bets; a key of the console is not needed. A bell and "Nada mais. Vou abrir." close them
(5(6)).

Readings:

- 5(3)a, 5(5): the lever alone shakes the dice, and the dome is the movable one of 5(3)b. A shaker with a motor is no
  shaker of this text: each of its shakes is irregular.
- 5(5): the light comes with the third pull; a fourth one is irregular and counts.
- 5(7): only dice that lie on each other make the throw void. The bets may be kept, taken back or changed.
- 5(6), 5(7): a leaning die is not void by this text. Faces that a device reads while a die leans are not reliable: they
  decide nothing, which is noted, and the round waits for the three faces that the dealer enters at the console. Where
  he cannot enter them either, he declares the round void.
- 5(8)e, 5(9)e: a double wins on two or three dice; on three it pays 30 instead of 10.
- 5(8)g: "suas combinações" are the six triples.
- 5(10): a triple takes small and big alone; all other bets win on it too.
- 5(12): dice covered before all prizes are paid are irregular.
"""

from typing import Annotated, ClassVar, Final, Literal

import msgspec

from rules.engine.bets import Board, Family, check_offered, names, prize
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.ruleset import option
from rules.games import cussec as game
from rules.games.cussec import EACH, single, sizes, total, triples, two_dice
from rules.games.shaken_dice import Articles
from rules.needs import Needs, shaken

# 5(9)h: what the totals pay.
TOTAL_PAYS: Final = {4: 65, 5: 32, 6: 19, 7: 12, 8: 8, 9: 7, 10: 6, 11: 6, 12: 7, 13: 8, 14: 12, 15: 19, 16: 32, 17: 65}
_DOUBLE: Final = {2: 10, 3: 30}

# In the order of 5(8).
PAYTABLE: Final = (
    *sizes("art. 5(8)a, 5(9)a, 5(10)", "art. 5(8)b, 5(9)b, 5(10)"),
    single("art. 5(8)c, 5(9)c"),
    two_dice("art. 5(8)d, 5(9)d"),
    Family(
        *("double:n", "10 or 30", "art. 5(8)e, 5(9)e", "n on two dice, or on three", EACH),
        lambda n, faces: prize(_DOUBLE.get(faces.count(n), 0)),
    ),
    *triples("190", "art. 5(8)f, 5(9)f", "32", "art. 5(8)g, 5(9)g"),
    total(TOTAL_PAYS, "65, 32, 19, 12, 8, 7 or 6", "art. 5(8)h, 5(9)h"),
)
FAMILIES: Final = names(PAYTABLE)

TEXT: Final = "Decreto Executivo 261/22 art."
ARTICLES: Final = Articles(
    null_bets="may_change",
    mechanism=f"{TEXT} 5(3)a",
    shaking=f"{TEXT} 5(5)",
    bell=f"{TEXT} 5(6)",
    reading=f"{TEXT} 5(6)",
    null=f"{TEXT} 5(7)",
    bets_after_null=f"{TEXT} 5(7)",
    payment=f"{TEXT} 5(12)",
    bets=f"{TEXT} 5(8)",
    prizes=f"{TEXT} 5(9)",
    triple=f"{TEXT} 5(10)",
    leaning_is_null=False,
    light_opens=True,
)


class CussecOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house. Its mechanism, its light and its lit places are printed."""

    edition: ClassVar[str] = "2022"
    agitation: ClassVar[Literal["lever", "electronic", "either"]] = "lever"
    dome: ClassVar[Literal["movable", "fixed"]] = "movable"
    panel: ClassVar[bool] = True
    announces: ClassVar[bool] = False
    lights: ClassVar[bool] = True

    payment: Annotated[
        Literal["implied", "console"],
        option("art. 5(12)", "whether the dealer console reports the payment before the dice may be covered again"),
    ] = "implied"
    bets_offered: Annotated[
        tuple[str, ...], option("art. 5(8)", f"bet families offered, of {' '.join(FAMILIES)}; empty: all")
    ] = ()
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a bet that the text does not have."""
        check_offered(self.bets_offered, FAMILIES, "art. 5(8)")


class Cussec(game.Cussec):
    """The ruleset."""

    id: ClassVar[str] = "angola.cussec"
    title: ClassVar[str] = "Cussec, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22 art. 5"
    Options: ClassVar[type[CussecOptions]] = CussecOptions
    needs: ClassVar[Needs] = shaken("art. 5(3)a", "art. 5(5)", "art. 5(6)", "art. 5(6)", "art. 5(12)", light=True)
    bell_words: ClassVar[dict[str, str]] = {
        "pt": "Nada mais. Vou abrir.",
        "zh-Hant": "停止下注，開",
        "en": "No more bets. Opening.",
    }
    void_words: ClassVar[dict[str, str]] = {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "Void"}

    def __init__(self, options: CussecOptions) -> None:
        self.options = options
        super().__init__(options, Board(PAYTABLE, options.bets_offered), ARTICLES)
