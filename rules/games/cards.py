"""Cards, for every game that has them: rank then suit, `AS TD 9H KC`.

This file has facts about cards only. Values are in the file of the game, unless several games share them.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

Colour: TypeAlias = Literal["black", "red"]

RANKS: Final = "A23456789TJQK"
SUITS: Final = "SHDC"
FIGURES: Final = "JQK"
# A card that lies face down, in public views.
UNKNOWN: Final = "??"

# One deck, in the order of the ranks.
DECK: Final[tuple[str, ...]] = tuple(rank + suit for rank in RANKS for suit in SUITS)

# The printed value: ace 1, ten and figures 10.
PIPS: Final[dict[str, int]] = {card: min(RANKS.index(card[0]) + 1, 10) for card in DECK}

# Baccarat: tens and figures are nothing.
POINTS: Final[dict[str, int]] = {card: pips % 10 for card, pips in PIPS.items()}


def rank(card: str) -> str:
    """A, 2 to 9, T, J, Q or K."""
    return card[0]


def suit(card: str) -> str:
    """S, H, D or C."""
    return card[1]


def colour(card: str) -> Colour:
    """Spades and clubs are black, hearts and diamonds red."""
    return "black" if card[1] in "SC" else "red"


def points(cards: Sequence[str]) -> int:
    """The last digit of the sum: what a hand counts at baccarat."""
    return sum([POINTS[card] for card in cards]) % 10
