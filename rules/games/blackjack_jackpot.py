"""A jackpot on the first cards of a blackjack player: the house's combinations, and the seats that hit them.

A prize is written `cards=what`: `AAAA/suit=pool`, `777=1/10`, `AA/colour=fixed`. The cards are ranks in any order, with
`/suit` or `/colour` of one suit or colour; `what` is the rest of the pool, a share of it, or a fixed amount. The house
lists its combinations from the highest to the lowest; the highest takes the rest of the pool.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, Literal

from msgspec import Struct

from rules.engine.ruleset import Award
from rules.games.blackjack import Hands
from rules.games.cards import colour, suit

POOL: Final = "blackjack"
_PRIZE: Final = re.compile(r"([A2-9TJQK]{2,4})(?:/(suit|colour))?=(pool|fixed|[1-9][0-9]?/[1-9][0-9]{0,3})", re.ASCII)
_HOLDS: Final = {"": ("",), "colour": ("", "colour"), "suit": ("", "colour", "suit")}
"""The weaker conditions that cards of a kind satisfy, too: cards of one suit are of one colour."""


class Combination(Struct, frozen=True):
    """One combination. `of` is "suit", "colour" or "" where suits do not matter."""

    name: str
    ranks: str
    of: str
    pays: str


def combinations(written: Iterable[str], cards: int) -> tuple[Combination, ...]:
    """The combinations as the house lists them, the highest first. Raises ValueError with the fault."""
    found: list[Combination] = []
    for one in written:
        match = _PRIZE.fullmatch(one)
        if match is None:
            raise ValueError(f"{one!r} is no prize: write cards=pool, cards=fixed or cards=1/10, as in AAAA/suit=pool")
        if len(match[1]) > cards:
            raise ValueError(f"{one!r}: only the first {cards} cards count")
        if (match[3] == "pool") != (not found):
            raise ValueError(f"{one!r}: the first combination, and no other, takes the rest of the pool")
        if "/" in match[3] and Fraction(match[3]) >= 1:
            raise ValueError(f"{one!r}: a share is less than the pool")
        ranks, of = "".join(sorted(match[1])), match[2] or ""
        if higher := next((held for held in found if held.ranks == ranks and held.of in _HOLDS[of]), None):
            raise ValueError(f"{one!r}: it is {higher.name} already, which is listed higher")
        found.append(Combination(one.partition("=")[0], ranks, of, match[3]))
    return tuple(found)


def first_cards(mine: Hands, most: int) -> tuple[str, ...]:
    """The first cards dealt to a seat, in their order. A seat plays the hands of a split one after the other."""
    if len(mine) == 1:
        return mine[0].cards[:most]
    cards = [mine[0].cards[0], mine[1].cards[0]]
    for hand in mine:
        cards += [one.cards[0] for one in mine[2:] if one.split_from == hand.number]
        cards += hand.cards[1:]
    return tuple(cards[:most])


def hit(cards: tuple[str, ...], offered: tuple[Combination, ...]) -> Combination | None:
    """The highest combination that these first cards make."""
    for one in offered:
        mine = cards[: len(one.ranks)]
        if "".join(sorted(card[0] for card in mine)) != one.ranks:
            continue
        kinds = {suit(card) if one.of == "suit" else colour(card) for card in mine} if one.of else {""}
        if len(kinds) == 1:
            return one
    return None


def awards(held: Iterable[tuple[int, Combination]], offered: tuple[Combination, ...], law: str) -> tuple[Award, ...]:
    """The awards of the seats, in the order of payment: the smallest first, the rest of the pool last and shared.

    Seat 0 means seats whose bets are unknown.
    """
    found: list[Award] = []
    hits = list(held)
    for one in reversed(offered):
        seats = [seat for seat, combination in hits if combination == one]
        if not seats:
            continue
        if one.pays == "pool":
            after = found[-1].combination if found else ""
            found.append(Award(POOL, one.name, "pool", law, among=tuple(seat for seat in seats if seat), after=after))
            continue
        pays: Literal["pool", "fixed"] = "fixed" if one.pays == "fixed" else "pool"
        share = "" if pays == "fixed" else one.pays
        found += [Award(POOL, one.name, pays, law, share, (seat,) if seat else ()) for seat in seats]
    return tuple(found)
