"""Cussec, also sic bo: the bets and the calls that the texts of two jurisdictions share.

A text gives each family its odds and its articles; `rules/games/shaken_dice.py` has the course of a round.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Final

from rules.engine.bets import ALONE, Family, numbers, prize
from rules.games.shaken_dice import FACES, TOTALS, Faces, ShakenDice, Words, is_big, is_small, is_triple

EACH: Final = {str(n): n for n in FACES}
"""One place for each face."""


def sizes(small_article: str, big_article: str) -> tuple[Family, Family]:
    """The bets on small and big; both lose on a triple."""
    return (
        Family("small", "1", small_article, "total 4 to 10; loses on a triple", ALONE, is_small),
        Family("big", "1", big_article, "total 11 to 17; loses on a triple", ALONE, is_big),
    )


def single(article: str) -> Family:
    """The bet on one number; its prize depends on how many dice show it."""
    return Family(
        *("single:n", "1, 2 or 3", article, "n on one, two or three dice", EACH),
        lambda n, faces: prize(faces.count(n)),
    )


def triples(pays: str, article: str, any_pays: str, any_article: str) -> tuple[Family, Family]:
    """The bets on a chosen triple and on any triple."""
    return (
        Family("triple:n", pays, article, "n on all three dice", EACH, lambda n, faces: faces.count(n) == 3),
        Family("any_triple", any_pays, any_article, "any number on all three dice", ALONE, is_triple),
    )


def total(pays: Mapping[int, int], printed: str, article: str) -> Family:
    """The bet on the sum of the dice; `pays` by the sum, `printed` as the text lists it."""
    return Family(
        *("total:n", printed, article, "the sum of the dice, 4 to 17", {str(n): n for n in TOTALS}),
        lambda n, faces: prize(pays[n] if sum(faces) == n else 0),
    )


def two_dice(article: str) -> Family:
    """The bet on two different numbers."""
    return Family(
        *("two_dice:m-n", "5", article, "these two different numbers on two of the dice"),
        *(numbers(combinations(FACES, 2)), lambda place, faces: {*place} <= {*faces}),
    )


class Cussec(ShakenDice):
    """The part of cussec that both texts share. The croupier calls "5, 5 and 6", or "triple 5"."""

    def _facts(self, faces: Faces) -> dict[str, Any]:
        """Cussec adds no facts to those of every dice game."""
        return {}

    def _calls(self, faces: Faces, facts: dict[str, Any]) -> tuple[Words, tuple[Words, ...]]:
        """The call of the dice; nothing is called after total and size."""
        a, b, c = faces
        if a == c:
            return (f"Tripla de {a}", f"圍骰{a}", f"Triple {a}"), ()
        return (f"{a}, {b} e {c}", f"{a}、{b}、{c}", f"{a}, {b} and {c}"), ()
