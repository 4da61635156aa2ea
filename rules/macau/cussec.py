"""Macau cussec: Despacho Regulamentar Externo 57/2004 with 69/2006 (edition 2004) and 31/2003 (edition 2003).

The ceremony of arts. 2 to 4 is that of `games/shaken_dice`. In edition 2004 the bets of a void throw may be taken
back, kept or changed (3(4)); in edition 2003 they may only be added to (3(3)). Edition 2003 knows the lever alone
(1(2)(1), 2), lights its panel and the winning places always (2, 3(2)), and has the first six bets.

Readings. `single` pays by how many dice show the number (6(3)). `double` is "combinação de dois dados": at least two by
the letter, exactly two as an option. Even and odd win on a triple, since art. 7 takes only small and big away: without
a house edge; losing on a triple is an option.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rules.engine.money import Rounding
from rules.engine.ruleset import Bet, option
from rules.games.shaken_dice import BIG, FACES, SMALL, TOTALS, Articles, ShakenDice, Words

# In the order of arts. 5 and 6 of edition 2004; edition 2003 has the first six, under the same numbers.
PAYTABLE = (
    Bet("small", "1", "arts. 5(1), 6(1), 7", "total 4 to 10; loses on a triple"),
    Bet("big", "1", "arts. 5(2), 6(2), 7", "total 11 to 17; loses on a triple"),
    Bet("single:n", "1, 2 or 3", "arts. 5(3), 6(3)", "n on one, two or three dice"),
    Bet("triple:n", "150", "arts. 5(4), 6(4)", "n on all three dice"),
    Bet("any_triple", "24", "arts. 5(5), 6(5)", "any number on all three dice"),
    Bet("total:n", "50, 18, 14, 12, 8 or 6", "arts. 5(6), 6(6)", "the sum of the dice, 4 to 17"),
    Bet("even", "1", "arts. 5(7), 6(7)", "an even total"),
    Bet("odd", "1", "arts. 5(8), 6(8)", "an odd total"),
    Bet("double_and_single:nn-m", "50", "arts. 5(9), 6(9)", "n on two dice and m on the third"),
    Bet("three_dice:l-m-n", "30", "arts. 5(10), 6(10)", "these three different numbers"),
    Bet("two_dice:m-n", "5", "arts. 5(11), 6(11)", "these two different numbers on two of the dice"),
    Bet("double:n", "8", "arts. 5(12), 6(12)", "n on two dice"),
    Bet("four_numbers:k-l-m-n", "7", "arts. 5(13), 6(13)", "three different numbers, all of them among these four"),
)
FAMILIES = tuple(bet.id.partition(":")[0] for bet in PAYTABLE)
FAMILIES_2003 = FAMILIES[:6]
# Art. 6(6): what the totals pay; 5, 16 and 6, 15 are the house's choice in edition 2004.
TOTAL_PAYS = {4: 50, 5: 18, 6: 14, 7: 12, 8: 8, 9: 6, 10: 6, 11: 6, 12: 6, 13: 8, 14: 12, 15: 14, 16: 18, 17: 50}

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


class CussecOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the texts leave to the house (art. 8), and the readings that are possible."""

    edition: Annotated[
        Literal["2004", "2003"], option("57/2004 with 69/2006, 31/2003", "which text is in force at the table")
    ] = "2004"
    agitation: Annotated[
        Literal["lever", "electronic", "either"],
        option("arts. 1(2)(1), 2(1)", "three pulls of the lever or one electronic agitation (2003: lever only)"),
    ] = "lever"
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
        families = FAMILIES
        if self.edition == "2003":
            families = FAMILIES_2003
            self._check_2003()
        unknown = [family for family in self.bets_offered if family not in families]
        if unknown:
            text = f"art. 5 of edition {self.edition} has no bet {unknown[0]!r}, it has {', '.join(families)}"
            raise ValueError(f"bets_offered: {text}")

    def _check_2003(self) -> None:
        if self.agitation != "lever":
            raise ValueError("agitation: 31/2003 arts. 1(2)(1), 2: the dice are shaken by the lever only")
        if not self.panel:
            raise ValueError("panel: 31/2003 art. 2: the panel always lights")
        if self.announces:
            raise ValueError("announces: 31/2003 art. 2: the panel opens the bets, nobody announces it")
        if not self.lights:
            raise ValueError("lights: 31/2003 art. 3(2): the winning places always light")
        if self.total_5_16 != 18:
            raise ValueError("total_5_16: 31/2003 art. 6(6): the totals 5 and 16 pay 18")
        if self.total_6_15 != 14:
            raise ValueError("total_6_15: 31/2003 art. 6(6): the totals 6 and 15 pay 14")
        if self.even_odd_on_triple != "win":
            raise ValueError("even_odd_on_triple: 31/2003 art. 5 has no even and odd")
        if self.double != "at_least_two":
            raise ValueError("double: 31/2003 art. 5 has no double")


class Cussec(ShakenDice):
    """The ruleset."""

    id: ClassVar[str] = "macau.cussec"
    title: ClassVar[str] = "Cussec, Macau"
    law: ClassVar[str] = "Despacho 57/2004 with 69/2006; edition 2003: Despacho 31/2003"
    Options: ClassVar[type[CussecOptions]] = CussecOptions

    def __init__(self, options: CussecOptions) -> None:
        self.options = options
        self._2003 = options.edition == "2003"
        self._total_pays = {
            **TOTAL_PAYS,
            **dict.fromkeys((5, 16), options.total_5_16),
            **dict.fromkeys((6, 15), options.total_6_15),
        }
        families = options.bets_offered or (FAMILIES_2003 if self._2003 else FAMILIES)
        totals = f"50, {options.total_5_16}, {options.total_6_15}, 12, 8 or 6"
        bets = tuple(
            replace(bet, pays=totals) if bet.id == "total:n" else bet
            for bet in PAYTABLE
            if bet.id.partition(":")[0] in families
        )
        board = tuple(bet for bet in places() if bet.partition(":")[0] in families)
        super().__init__(options, bets, board, ARTICLES[options.edition])

    def _facts(self, faces: tuple[int, ...]) -> dict[str, Any]:
        """Even and odd are named where they are bets of the edition and this throw decides them for the players."""
        if self._2003 or (faces[0] == faces[2] and self.options.even_odd_on_triple == "lose"):
            return {}
        return {"parity": "odd" if sum(faces) % 2 else "even"}

    def _calls(self, faces: tuple[int, ...], facts: dict[str, Any]) -> tuple[Words, tuple[Words, ...]]:
        """ "5, 5 and 6", and even or odd."""
        a, b, c = faces
        named = (f"{a}, {b} e {c}", f"{a}、{b}、{c}", f"{a}, {b} and {c}")
        if a == c:
            named = (f"Tripla de {a}", f"圍骰{a}", f"Triple {a}")
        return named, (_PARITIES[facts["parity"]],) if facts else ()

    def _pays(self, place: str, dice: Counter[int], total: int) -> int:
        """Arts. 5 to 7."""
        family, _, numbers = place.partition(":")
        triple = len(dice) == 1
        match family:
            case "small":
                return int(total in SMALL and not triple)
            case "big":
                return int(total in BIG and not triple)
            case "single":
                return dice[int(numbers)]
            case "triple":
                return 150 * (dice[int(numbers)] == 3)
            case "any_triple":
                return 24 * triple
            case "total":
                return self._total_pays[total] if total == int(numbers) else 0
            case "even" | "odd":
                wins = (total % 2 == 0) == (family == "even")
                return int(wins and not (triple and self.options.even_odd_on_triple == "lose"))
            case "double_and_single":
                pair, single = int(numbers[0]), int(numbers[3])
                return 50 * (dice[pair] == 2 and dice[single] == 1)
            case "three_dice":
                return 30 * (set(dice) == _set(numbers))
            case "two_dice":
                return 5 * (_set(numbers) <= set(dice))
            case "double":
                enough = (2,) if self.options.double == "exactly_two" else (2, 3)
                return 8 * (dice[int(numbers)] in enough)
            case _:  # four_numbers
                return 7 * (len(dice) == 3 and set(dice) <= _set(numbers))


def _set(numbers: str) -> set[int]:
    return {int(number) for number in numbers.split("-")}


def places() -> Iterator[str]:
    """Every place on the board, in the order of art. 5."""
    yield from ("small", "big")
    yield from (f"single:{n}" for n in FACES)
    yield from (f"triple:{n}" for n in FACES)
    yield "any_triple"
    yield from (f"total:{n}" for n in TOTALS)
    yield from ("even", "odd")
    yield from (f"double_and_single:{n}{n}-{m}" for n in FACES for m in FACES if m != n)
    yield from (f"three_dice:{a}-{b}-{c}" for a, b, c in combinations(FACES, 3))
    yield from (f"two_dice:{m}-{n}" for m, n in combinations(FACES, 2))
    yield from (f"double:{n}" for n in FACES)
    yield from (f"four_numbers:{a}-{b}-{c}-{d}" for a, b, c, d in combinations(FACES, 4))
