"""Hold'em, Angola: Decreto Executivo 261/22, articles 13 and 15, and the parts of article 14 that 15(1) takes over.

Two own cards and five common ones, any five of which are the hand (15(2), 15(3)). The seat that has the hand lays the
small bet, its left neighbour the big one (14(10)-(12)); the left neighbour of the big bet speaks first, in later rounds
the hand (14(13), 14(14)). A burnt card and three common ones, then twice a burnt card and one, with a round of bets
after each (13(41)-(46)). The readings: `rules/angola/unbanked_poker.py`.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from rules.angola.unbanked_poker import REPLACEMENT, STREETS, BlindsOptions, UnbankedPoker
from rules.engine.duties import Duties
from rules.games.poker import CATEGORIES
from rules.games.poker_hands import HOLDEM
from rules.games.poker_table import Variant

COMBINATIONS: Final = {
    name: f"13(17)({letter})" for name, letter in zip(reversed(CATEGORIES), "abcdefghij", strict=True)
}

DUTIES: Final[Duties] = (REPLACEMENT,)


class Holdem(UnbankedPoker):
    """The ruleset."""

    id: ClassVar[str] = "angola.holdem"
    title: ClassVar[str] = "Hold'em, Angola"
    Options: ClassVar[type[BlindsOptions]] = BlindsOptions
    article_void: ClassVar[str] = "13(69)"
    variant: ClassVar[Variant] = Variant(HOLDEM, seats=10, streets=STREETS, burns=True)
    chosen: ClassVar[str] = "15(3)"
    combinations: ClassVar[Mapping[str, str]] = COMBINATIONS
