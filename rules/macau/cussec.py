"""Macau cussec: Despacho Regulamentar Externo 57/2004 with 69/2006 (edition 2004) and 31/2003 (edition 2003).

The ceremony of arts. 2 to 4 is that of `games/shaken_dice`. In edition 2004 the bets of a void throw may be taken
back, kept or changed (3(4)); in edition 2003 they may only be added to (3(3)). Edition 2003 allows the lever alone
(1(2)(1), 2), the panel and the winning places always light (2, 3(2)), and it has the first six bets.

Readings. `single` pays by how many dice show the number (6(3)). `double` is "combinação de dois dados": at least two by
the letter, exactly two as an option. Even and odd win on a triple, since art. 7 takes only small and big away: without
a house edge; losing on a triple is an option.
"""

from itertools import combinations, permutations
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from rules.engine.bets import Board, Family, check_offered, names, numbers
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.ruleset import option
from rules.games import cussec as game
from rules.games.cussec import EACH, single, sizes, total, triples, two_dice
from rules.games.shaken_dice import FACES, Articles, Faces, Words, is_triple
from rules.needs import Needs, shaken

# Art. 6(6): the prizes of the totals that are no choice of the house in edition 2004.
TOTAL_PAYS: Final = {4: 50, 7: 12, 8: 8, 9: 6, 10: 6, 11: 6, 12: 6, 13: 8, 14: 12, 17: 50}


def families(
    total_5_16: int = 18, total_6_15: int = 14, *, even_odd_on_triple: bool = True, double_on_triple: bool = True
) -> tuple[Family, ...]:
    """In the order of arts. 5 and 6 of edition 2004; edition 2003 has the first six, under the same numbers."""
    chosen = dict.fromkeys((5, 16), total_5_16) | dict.fromkeys((6, 15), total_6_15)
    pays = dict(sorted((TOTAL_PAYS | chosen).items()))
    totals = f"50, {total_5_16}, {total_6_15}, 12, 8 or 6"

    def parity(wanted: int, faces: Faces) -> bool:
        return sum(faces) % 2 == wanted and (even_odd_on_triple or not is_triple(None, faces))

    pairs = {f"{n}{n}-{m}": (n, n, m) for n, m in permutations(FACES, 2)}
    three, four = (numbers(combinations(FACES, count)) for count in (3, 4))
    return (
        *sizes("arts. 5(1), 6(1), 7", "arts. 5(2), 6(2), 7"),
        single("arts. 5(3), 6(3)"),
        *triples("150", "arts. 5(4), 6(4)", "24", "arts. 5(5), 6(5)"),
        total(pays, totals, "arts. 5(6), 6(6)"),
        Family("even", "1", "arts. 5(7), 6(7)", "an even total", {"": 0}, parity),
        Family("odd", "1", "arts. 5(8), 6(8)", "an odd total", {"": 1}, parity),
        Family(
            *("double_and_single:nn-m", "50", "arts. 5(9), 6(9)", "n on two dice and m on the third", pairs),
            lambda place, faces: sorted(place) == [*faces],
        ),
        Family(
            *("three_dice:l-m-n", "30", "arts. 5(10), 6(10)", "these three different numbers", three),
            lambda place, faces: place == faces,
        ),
        two_dice("arts. 5(11), 6(11)"),
        Family(
            *("double:n", "8", "arts. 5(12), 6(12)", "n on two dice", EACH),
            lambda n, faces: faces.count(n) == 2 or (double_on_triple and faces.count(n) == 3),
        ),
        Family(
            *("four_numbers:k-l-m-n", "7", "arts. 5(13), 6(13)"),
            *("three different numbers, all of them among these four", four),
            lambda place, faces: len({*faces}) == 3 and {*faces} <= {*place},
        ),
    )


FAMILIES: Final = names(families())
FAMILIES_2003: Final = FAMILIES[:6]

TEXT_2004: Final = "Despacho 57/2004 art."
TEXT_2003: Final = "Despacho 31/2003 art."
ARTICLES: Final = {
    "2004": Articles(
        null_bets="may_change",
        mechanism=f"{TEXT_2004} 1(2)(1)",
        shaking=f"{TEXT_2004} 2(1)",
        bell=f"{TEXT_2004} 3(1)",
        reading=f"{TEXT_2004} 3(2)",
        null=f"{TEXT_2004} 3(3)",
        bets_after_null=f"{TEXT_2004} 3(4) (69/2006)",
        payment=f"{TEXT_2004} 4",
        bets=f"{TEXT_2004} 5",
        prizes=f"{TEXT_2004} 6",
        triple=f"{TEXT_2004} 7",
    ),
    "2003": Articles(
        null_bets="stand_may_add",
        mechanism=f"{TEXT_2003} 1(2)(1)",
        shaking=f"{TEXT_2003} 2",
        bell=f"{TEXT_2003} 3(1)",
        reading=f"{TEXT_2003} 3(2)",
        null=f"{TEXT_2003} 3(3)",
        bets_after_null=f"{TEXT_2003} 3(3)",
        payment=f"{TEXT_2003} 4",
        bets=f"{TEXT_2003} 5",
        prizes=f"{TEXT_2003} 6",
        triple=f"{TEXT_2003} 7",
    ),
}
_PARITIES: Final[dict[str, Words]] = {"even": ("par", "雙", "even"), "odd": ("ímpar", "單", "odd")}


class CussecOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the texts leave to the house (art. 8), and the readings that are possible."""

    edition: Annotated[
        Literal["2004", "2003"], option("57/2004 with 69/2006, 31/2003", "which text is in force at the table")
    ] = "2004"
    agitation: Annotated[
        Literal["lever", "electronic", "either"],
        option("arts. 1(2)(1), 2(1)", "three pulls of the lever or one electronic agitation (2003: lever only)"),
    ] = "lever"
    dome: Annotated[
        Literal["movable", "fixed"],
        option(
            "arts. 1(2)(2), 2(1)",
            "movable: the shaker or a key reports when it is put on and lifted; fixed: a part of the shaker, shut by a "
            "shake, opened by the bell (2003: movable only)",
        ),
    ] = "movable"
    panel: Annotated[bool, option("art. 2(2)", "the panel lights when the dice are shaken (2003: always)")] = True
    announces: Annotated[bool, option("art. 2(3)", "the croupier also announces the opening of the bets (2004)")] = (
        False
    )
    lights: Annotated[bool, option("art. 3(2)", "the winning places light up on the board (2003: always)")] = True
    payment: Annotated[
        Literal["implied", "console"],
        option("art. 4", "whether the dealer console reports the payment before the dice may be covered again"),
    ] = "implied"
    bets_offered: Annotated[
        tuple[str, ...],
        option("arts. 5, 8", f"bet families offered, of {' '.join(FAMILIES)}; empty: all of the edition"),
    ] = ()
    total_5_16: Annotated[
        int, msgspec.Meta(ge=18, le=30), option("art. 6(6)(2)", "what the totals 5 and 16 pay (2003: 18)")
    ] = 18
    total_6_15: Annotated[
        int, msgspec.Meta(ge=14, le=18), option("art. 6(6)(3)", "what the totals 6 and 15 pay (2003: 14)")
    ] = 14
    even_odd_on_triple: Annotated[
        Literal["win", "lose"], option("arts. 5(7)-(8), 7", "even and odd on a triple: by the text they win")
    ] = "win"
    double: Annotated[
        Literal["at_least_two", "exactly_two"], option("art. 5(12)", "whether a double also wins on its triple")
    ] = "at_least_two"
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.edition == "2003":
            self._check_2003()
        known = FAMILIES_2003 if self.edition == "2003" else FAMILIES
        check_offered(self.bets_offered, known, f"art. 5 of edition {self.edition}")

    def _check_2003(self) -> None:
        fixed: tuple[tuple[str, object, str], ...] = (
            ("agitation", "lever", "arts. 1(2)(1), 2: the dice are shaken by the lever only"),
            ("dome", "movable", "arts. 1(2)(2), 3(2): the croupier lifts the movable dome"),
            ("panel", True, "art. 2: the panel always lights"),
            ("announces", False, "art. 2: the panel opens the bets, nobody announces it"),
            ("lights", True, "art. 3(2): the winning places always light"),
            ("total_5_16", 18, "art. 6(6): the totals 5 and 16 pay 18"),
            ("total_6_15", 14, "art. 6(6): the totals 6 and 15 pay 14"),
            ("even_odd_on_triple", "win", "art. 5 has no even and odd"),
            ("double", "at_least_two", "art. 5 has no double"),
        )
        for name, value, why in fixed:
            if getattr(self, name) != value:
                raise ValueError(f"{name}: 31/2003 {why}")


class Cussec(game.Cussec):
    """The ruleset."""

    id: ClassVar[str] = "macau.cussec"
    title: ClassVar[str] = "Cussec, Macau"
    law: ClassVar[str] = "Despacho 57/2004 with 69/2006; edition 2003: Despacho 31/2003"
    Options: ClassVar[type[CussecOptions]] = CussecOptions
    needs: ClassVar[Needs] = shaken("art. 1(2)(1)", "art. 2(1)", "art. 3(1)", "art. 3(2)", "art. 4")

    def __init__(self, options: CussecOptions) -> None:
        self.options = options
        self._2003 = options.edition == "2003"
        table = families(
            options.total_5_16,
            options.total_6_15,
            even_odd_on_triple=options.even_odd_on_triple == "win",
            double_on_triple=options.double == "at_least_two",
        )
        offered = options.bets_offered or (FAMILIES_2003 if self._2003 else FAMILIES)
        super().__init__(options, Board(table, offered), ARTICLES[options.edition])

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """Even and odd are named where they are bets of the edition and this throw decides them for the players."""
        if self._2003 or (faces[0] == faces[2] and self.options.even_odd_on_triple == "lose"):
            return {}
        return {"parity": "odd" if sum(faces) % 2 else "even"}

    def _calls(self, faces: tuple[int, ...], facts: dict[str, Any]) -> tuple[Words, tuple[Words, ...]]:
        """Even and odd come after total and size."""
        named, _ = super()._calls(faces, facts)
        return named, (_PARITIES[facts["parity"]],) if facts else ()
