"""Baccarat as it is dealt everywhere: who receives the next card, and hands in the order of the deal.

This file cites no paragraphs: all texts share the drawing table, and each numbers its lines in its own way. The life of
a coup is in `baccarat_coups.py`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, TypeAlias

from rules.games.cards import POINTS

Side: TypeAlias = Literal["player", "banker"]
Line: TypeAlias = Literal["natural", "0 to 2", "3", "4", "5", "6", "7 to 9", "no card"]
"""A line of the drawing table for the banker's side: its total, the player's `natural`, or `no card` of the player."""

# The player's side received no third card.
NO_CARD: Final = -1


@cache
def player_draws(player: int, banker: int) -> bool:
    """Whether the player's side receives a third card, from both totals of two cards."""
    return player < 6 and banker < 8


@cache
def banker_rule(player: int, banker: int, third: int) -> tuple[bool, Line]:
    """Whether the banker's side receives a third card, and by which line.

    `third`: the player's, in points, or NO_CARD.
    """
    if player >= 8:
        return False, "natural"
    if banker >= 7:
        return False, "7 to 9"
    if third == NO_CARD:
        return banker < 6, "no card"
    match banker:
        case 3:
            return third != 8, "3"
        case 4:
            return 2 <= third <= 7, "4"
        case 5:
            return 4 <= third <= 7, "5"
        case 6:
            return third in (6, 7), "6"
        case _:
            return True, "0 to 2"


def due(cards: tuple[str, ...]) -> Side | None:
    """The side that receives the next card, after `cards` in the order of the deal; None when the coup is complete."""
    dealt = len(cards)
    if dealt < 4:
        return "banker" if dealt % 2 else "player"
    player = (POINTS[cards[0]] + POINTS[cards[2]]) % 10
    banker = (POINTS[cards[1]] + POINTS[cards[3]]) % 10
    draws = player_draws(player, banker)
    if dealt == 4 and draws:
        return "player"
    if dealt == 6 or (dealt == 5 and not draws):
        return None
    third = POINTS[cards[4]] if draws else NO_CARD
    return "banker" if banker_rule(player, banker, third)[0] else None


def hands(cards: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The player's and the banker's cards, from the order of the deal."""
    player, banker = cards[:4][::2], cards[:4][1::2]
    if len(cards) > 4 and due(cards[:4]) == "player":
        return (*player, cards[4]), banker + cards[5:]
    return player, banker + cards[4:]


def deal(laid: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Hands as they lie, in the order of the deal; None where the drawing table cannot give such hands."""
    rest = {side: list(laid.get(side, ())) for side in ("player", "banker")}
    if set(laid) - set(rest) or any(card not in POINTS for cards in laid.values() for card in cards):
        return None
    cards: tuple[str, ...] = ()
    while (side := due(cards)) is not None and rest[side]:
        cards += (rest[side].pop(0),)
    return None if rest["player"] or rest["banker"] else cards


def beyond(laid: tuple[str, ...], told: tuple[str, ...]) -> tuple[str, ...]:
    """The entered cards that the shoe did not report."""
    left = list(told)
    entered = []
    for card in laid:
        if card in left:
            left.remove(card)
        else:
            entered.append(card)
    return tuple(entered)


def told_again(told: tuple[str, ...], laid: tuple[str, ...]) -> bool:
    """Whether the reported cards are the entered ones in the order of the deal, apart from repetitions."""
    left = list(laid)
    before = ""
    for card in told:
        if left and card == left[0]:
            left.pop(0)
        elif card != before:
            return False
        before = card
    return not left
