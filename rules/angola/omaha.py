"""Omaha, Angola: Decreto Executivo 261/22, articles 13 and 14.

Four own cards and five common ones: two of the own and three of the common ones are the hand (14(2), 14(6)). The rest
is as in `rules/angola/holdem.py`. The readings: `rules/angola/unbanked_poker.py`.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from rules.angola.holdem import COMBINATIONS
from rules.angola.unbanked_poker import REPLACEMENT, STREETS, BlindsOptions, UnbankedPoker
from rules.engine.duties import Duties
from rules.games.poker_hands import OMAHA
from rules.games.poker_table import Variant

DUTIES: Final[Duties] = (REPLACEMENT,)


class Omaha(UnbankedPoker):
    """The ruleset."""

    id: ClassVar[str] = "angola.omaha"
    title: ClassVar[str] = "Omaha, Angola"
    Options: ClassVar[type[BlindsOptions]] = BlindsOptions
    article_void: ClassVar[str] = "13(69)"
    variant: ClassVar[Variant] = Variant(OMAHA, seats=10, streets=STREETS, burns=True)
    chosen: ClassVar[str] = "14(2)"
    combinations: ClassVar[Mapping[str, str]] = COMBINATIONS
