"""Synthetic poker, Angola: Decreto Executivo 261/22, articles 13 and 16.

28 cards from the ace to the eight (16(1)); each seat lays an ante (16(8)) and has two own cards, both of which are in
its hand with three of five common ones (16(2), 16(3)). No card is burnt (16(6)). The common cards come one by one, each
with a round of bets after it (16(13), 16(14)). The readings are in `rules/angola/unbanked_poker.py`; and:

- 16(10), 13(66): equal hands share a pot in equal parts either way, since all have put the same into it.
- 13(47): the text leaves the number of raises open; it is three here, too, and a raise is at least the minimum.
- 16(12): by option a blind raise is offered before the first common card. People see whether a seat looked at its
  cards.
- 16(14): a round begins with the seat that bet most in the round before; where nobody bet or that seat has no chips
  left, it begins like the first round.
- 16(15): a void hand is one in which a card was turned in the deal, or the deal went wrong as a person says.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from rules.angola.unbanked_poker import REPLACEMENT, WITHOUT_BLINDS, PokerOptions, UnbankedPoker
from rules.engine.duties import Duties
from rules.engine.ruleset import option
from rules.games.poker_hands import SYNTHETIC, SYNTHETIC_CATEGORIES
from rules.games.poker_table import Variant

COMBINATIONS: Final = {
    name: f"16(9)({letter})" for name, letter in zip(reversed(SYNTHETIC_CATEGORIES), "abcdefghijkl", strict=True)
}

DUTIES: Final[Duties] = (REPLACEMENT,)


class SyntheticOptions(PokerOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house."""

    minimum: Annotated[
        int, Meta(ge=2), option("arts. 13(20), 16(8)", "minor units, the table minimum and the ante")
    ] = 100
    pot: Annotated[Literal["with_call", "as_it_lies"], option("art. 13(21)", "the pot that bounds a raise")] = (
        "with_call"
    )
    entry: Annotated[int, Meta(ge=0), option("art. 16(4)", "minor units, the least that a new player brings")] = 0
    blind_raises: Annotated[bool, option("art. 16(12)", "whether blind raises are offered")] = False


class SyntheticPoker(UnbankedPoker):
    """The ruleset."""

    id: ClassVar[str] = "angola.synthetic-poker"
    title: ClassVar[str] = "Synthetic poker, Angola"
    Options: ClassVar[type[SyntheticOptions]] = SyntheticOptions
    article_void: ClassVar[str] = "16(15)"
    variant: ClassVar[Variant] = Variant(SYNTHETIC, seats=11, streets=(1, 2, 3, 4, 5), burns=False, ante=True)
    chosen: ClassVar[str] = "16(3)"
    combinations: ClassVar[Mapping[str, str]] = COMBINATIONS
    same_hands: ClassVar[tuple[str, ...]] = ("13(18)", "16(11)")
    instead: ClassVar[Mapping[str, str]] = WITHOUT_BLINDS
    ties: ClassVar[Mapping[str, str]] = dict.fromkeys(SYNTHETIC_CATEGORIES[:8], "16(10)")

    def __init__(self, options: SyntheticOptions) -> None:
        """Blind raises are an option."""
        super().__init__(options)
        self.blind_raises = options.blind_raises
