"""Macau roulette: Despacho Regulamentar Externo 60/2004 (edition 2004) and 30/2003 (edition 2003).

The game is that of `rules/games/roulette.py`. Bets open once the last spin is paid (3(1)); they close at the bell
before the launch, or, in edition 2004 as the house chooses, at "no more bets" while the ball runs (3(2)). A null spin
is declared by 2(2)-(3); the number stands when the ball rests (4).

Readings:

- 3(2): an automatic wheel has no croupier at its bell: under `bell` its launch closes the bets, under `no_more_bets`
  its threshold, unless the console's bell came before.
- 8: by the letter, on 0 only the straight on 0 wins: a combination with 0 (`zero_combinations`, off) loses on it.
- 6(6): the nine numbers are printed nowhere: a sector of nine is offered only when `nines` names it.
- 1(4): colours and the order of the pockets are not in the text: `red` comes with the wheel.
- 2(1): a ball launched with the wheel makes the spin null, like an object on it: the text forbids it and names no
  consequence.
"""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from protocols.contract.facts import RouletteFacts, RoundFacts
from rules.engine.bets import Board, Family, check_offered, names, numbers
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.ruleset import option
from rules.games.roulette import Articles, RouletteGame, SpinState
from rules.games.roulette_cloth import USUAL_RED, Numbers, alone, cloth
from rules.needs import Needs, roulette

# Art. 6(7) of both editions.
SECTOR_A: Final = (1, 3, 5, 13, 15, 17, 20, 22, 24, 32, 34, 36)
SECTOR_B: Final = (2, 4, 6, 14, 16, 18, 19, 21, 23, 31, 33, 35)


def _wins(covered: Numbers, pocket: int) -> bool:
    """Art. 8: on 0 only the straight on 0 wins."""
    return pocket in covered and (pocket != 0 or covered == (0,))


# Arts. 6 and 7, in the order of payment of art. 5(1).
PRINTED: Final = (
    ("column:n", "2", "6(8), 7(7)", "one of the three columns, 12 numbers"),
    ("dozen:n", "2", "6(9)-(11), 7(7)", "1-12, 13-24 or 25-36"),
    ("sector_a", "2", "6(7), 7(7)", " ".join(map(str, SECTOR_A))),
    ("sector_b", "2", "6(7), 7(7)", " ".join(map(str, SECTOR_B))),
    ("nine:a-b-…", "3", "6(6), 7(6)", "a sector of nine numbers, as configured"),
    ("even", "1", "6(12), 7(8)", "even numbers"),
    ("odd", "1", "6(13), 7(8)", "odd numbers"),
    ("low", "1", "6(14), 7(8)", "1 to 18"),
    ("high", "1", "6(15), 7(8)", "19 to 36"),
    ("red", "1", "6(16), 7(8)", "red numbers"),
    ("black", "1", "6(17), 7(8)", "black numbers"),
    ("line:a-b-c-d-e-f", "5", "6(5), 7(5)", "two rows, six numbers"),
    ("street:a-b-c", "11", "6(3), 7(3)", "one row, three numbers"),
    ("corner:a-b-c-d", "8", "6(4), 7(4)", "four numbers that meet"),
    ("split:a-b", "17", "6(2), 7(2)", "two neighbours on the cloth"),
    ("straight:n", "35", "6(1), 7(1)", "one number, 0 included"),
)


def families(red: Numbers = USUAL_RED, nines: tuple[Numbers, ...] = (), *, zero: bool = False) -> tuple[Family, ...]:
    """Arts. 6 and 7, in the order of payment of art. 5(1)."""
    places = cloth(red, zero=zero) | {
        "sector_a": alone(SECTOR_A),
        "sector_b": alone(SECTOR_B),
        "nine": numbers(tuple(sorted(nine)) for nine in nines),
    }
    return tuple(
        Family(id_, pays, f"arts. {article}", text, places[id_.partition(":")[0]], _wins)
        for id_, pays, article, text in PRINTED
    )


FAMILIES: Final = names(families())


class RouletteOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the texts leave to the house (art. 9), and the properties of the wheel."""

    edition: Annotated[Literal["2004", "2003"], option("60/2004, 30/2003", "which text is in force at the table")] = (
        "2004"
    )
    betting: Annotated[
        Literal["bell", "no_more_bets"],
        option(
            "art. 3(2)",
            "bets close at the bell before the launch, or at 'no more bets' while the ball runs (2004 only)",
        ),
    ] = "bell"
    payment: Annotated[
        Literal["implied", "console"],
        option("art. 3(1)", "whether the dealer console reports that the last spin was paid before bets may open"),
    ] = "implied"
    bets_offered: Annotated[
        tuple[str, ...],
        option("arts. 6, 9", f"bet families offered, of {' '.join(FAMILIES)}; empty: all (nine only with `nines`)"),
    ] = ()
    nines: Annotated[
        tuple[tuple[int, ...], ...], option("art. 6(6)", "the sectors of nine numbers of this table, each a list")
    ] = ()
    zero_combinations: Annotated[
        bool, option("arts. 6, 8", "also splits, streets and the corner with 0; by art. 8 they lose on 0")
    ] = False
    red: Annotated[tuple[int, ...], option("art. 1(4)", "the eighteen red numbers of the wheel")] = USUAL_RED
    smallest_chip: Annotated[int, msgspec.Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.edition == "2003" and self.betting == "no_more_bets":
            raise ValueError(
                "30/2003 art. 3: bets close at the bell; betting = no_more_bets exists in edition 2004 only"
            )
        check_offered(self.bets_offered, FAMILIES, "art. 6")
        if "nine" in self.bets_offered and not self.nines:
            raise ValueError("art. 6(6): the nine numbers are printed nowhere; name them in `nines` to offer `nine`")
        for nine in self.nines:
            if len(nine) != 9 or len(set(nine)) != 9 or not all(1 <= number <= 36 for number in nine):
                raise ValueError(
                    f"art. 6(6): a sector of nine is nine different numbers from 1 to 36, not {list(nine)}"
                )
        if len(set(self.red)) != 18 or not all(1 <= number <= 36 for number in self.red):
            raise ValueError("art. 1(4): red is eighteen different numbers from 1 to 36")


def _articles(text: str, opening: str, bell: str, no_more_bets: str, null: str, put_back: str) -> Articles:
    """The articles of an edition: the editions differ in arts. 2 and 3 alone."""
    return Articles(
        bets=f"{text} art. 6",
        prizes=f"{text} art. 7",
        zero=f"{text} art. 8",
        late=f"{text} art. 3",
        payment=f"{text} art. {opening}",
        bell=f"{text} art. {bell}",
        no_more_bets=f"{text} art. {no_more_bets}",
        direction=f"{text} art. 2(1)",
        null=f"{text} art. {null}",
        put_back=f"{text} art. {put_back}",
        rest=f"{text} art. 4",
        paid_before="bets",
        with_rotor="null",
    )


ARTICLES: Final = {
    "2004": _articles("Despacho 60/2004", "3(1)", "3(2)(1)", "3(2)(2)", "2(2)-(3)", "2(3)"),
    "2003": _articles("Despacho 30/2003", "3", "3", "3(2)(2)", "2(2)", "2(2)"),
}


class Roulette(RouletteGame[SpinState]):
    """The ruleset."""

    id: ClassVar[str] = "macau.roulette"
    title: ClassVar[str] = "Roulette, Macau"
    law: ClassVar[str] = "Despacho 60/2004; edition 2003: Despacho 30/2003"
    Options: ClassVar[type[RouletteOptions]] = RouletteOptions
    needs: ClassVar[Needs] = roulette("art. 3(2)", "art. 4", "art. 3(1)")
    State: ClassVar[type[SpinState]] = SpinState
    Facts: ClassVar[type[RoundFacts]] = RouletteFacts

    def __init__(self, options: RouletteOptions) -> None:
        """Lay the cloth."""
        self.options = options
        offered = options.bets_offered or tuple(name for name in FAMILIES if name != "nine" or options.nines)
        board = Board(families(options.red, options.nines, zero=options.zero_combinations), offered)
        at, bell = ARTICLES[options.edition], options.betting == "bell"
        super().__init__(options, options.edition, board, at, red=options.red, launch_closes=bell)

    def calls(self, pocket: int, facts: dict[str, Any]) -> dict[str, str]:
        """Number, colour, parity and half."""
        red, odd, high = facts["colour"] == "red", facts["parity"] == "odd", facts["half"] == "high"
        return {
            "pt": (
                f"{pocket}, {'encarnado' if red else 'preto'}, "
                f"{'ímpar' if odd else 'par'}, {'maior' if high else 'menor'}"
            ),
            "zh-Hant": f"{pocket}號，{'紅' if red else '黑'}，{'單' if odd else '雙'}，{'大' if high else '小'}",
            "en": f"{pocket}, {'red' if red else 'black'}, {'odd' if odd else 'even'}, {'high' if high else 'low'}",
        }
