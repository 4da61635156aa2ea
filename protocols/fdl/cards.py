"""The two bytes with which FDL devices write a card, and its names everywhere else: rank then suit, as in TD."""

from typing import Final

_RANKS, _SUITS = "A23456789TJQK", "SHDC"

CARDS: Final = tuple(rank + suit for suit in _SUITS for rank in _RANKS)
"""Shufflers write the place of a card here: 0 the ace of spades, 12 the king of spades, 51 the king of clubs."""
PLACES_OF_CARDS: Final = {card: place for place, card in enumerate(CARDS)}
CARDS_BY_RANK_AND_SUIT: Final = {
    rank << 4 | suit: r + s for rank, r in enumerate(_RANKS, 1) for suit, s in enumerate(_SUITS, 1)
}
"""The console writes the rank, 1 ace to D king, then the suit, 1 spades, 2 hearts, 3 diamonds, 4 clubs."""
