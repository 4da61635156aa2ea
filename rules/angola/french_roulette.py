"""Angola's French roulette: Decreto Executivo 261/22, art. 2.

Its readings are those of `rules/angola/roulette.py`, and:

- 2(7), 2(15): the wheel is turned by hand and the dealer enters the number. Where two numbers of a spin were entered,
  the one that is entered again stands; so does the first when the prizes are paid.
"""

from typing import Annotated, ClassVar, Final

from protocols.contract.events import BallChanged, DealerRelieved
from protocols.contract.reasons import Reason, say
from rules.angola.roulette import CHANCES, AngolanRoulette, Paragraphs, TableOptions
from rules.engine.bets import check_offered
from rules.engine.duties import Duties, Duty
from rules.engine.ruleset import option
from rules.needs import Needs, roulette

AT: Final = Paragraphs(
    article=2,
    launch=11,
    call=12,
    direction=13,
    null=14,
    rest=15,
    bets=16,
    prizes=18,
    zero=19,
    limits=24,
)
# In the order of payment: 2(20).
FAMILIES: Final = (
    *("column", "double_column", "dozen", "double_dozen", *CHANCES),
    *("line", "street", "corner", "split", "straight"),
)
DUTIES: Final[Duties] = (
    Duty("ball_change", AT.cite(9), (BallChanged,)),
    Duty("dealer_relief", AT.cite(25), (DealerRelieved,)),
)


class FrenchRouletteOptions(TableOptions, frozen=True, forbid_unknown_fields=True):
    """What the article leaves to the house."""

    at: ClassVar[Paragraphs] = AT

    bets_offered: Annotated[
        tuple[str, ...], option("art. 2(16)", f"bet families offered, of {' '.join(FAMILIES)}; empty: all")
    ] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        super().__post_init__()
        check_offered(self.bets_offered, FAMILIES, AT.cite(AT.bets))


class FrenchRoulette(AngolanRoulette):
    """The ruleset."""

    id: ClassVar[str] = "angola.french-roulette"
    title: ClassVar[str] = "French roulette, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22 art. 2"
    Options: ClassVar[type[FrenchRouletteOptions]] = FrenchRouletteOptions
    needs: ClassVar[Needs] = roulette("art. 2(12)", "art. 2(15)", "art. 2(11)")
    told_again_stands: ClassVar[bool] = True
    look: ClassVar[Reason] = say("do_enter_ball")
    closing_words: ClassVar[dict[str, str]] = AngolanRoulette.closing_words | {"pt": "Jogo feito, nada mais"}

    def __init__(self, options: FrenchRouletteOptions) -> None:
        """Lay the cloth."""
        printed = AT.printed(options.doubles)
        super().__init__(options, tuple(printed[name] for name in FAMILIES), options.bets_offered)
