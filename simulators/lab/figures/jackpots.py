"""The exact cost of each jackpot of the law: the probability of its combinations, and the mean payment for each bet.

Frequencies are counted over every hand of a full shoe, through the functions that decide awards. A play is one bet in
one round. The pool then is a chain of plays, whose mean has an exact formula:

- A bet adds `c` to the pool and `r` to the reserve. A fixed prize takes its amount, a share `s` its part.
- After the whole pool was won it begins again with the larger of seed and reserve, which holds `r` for each play since.
- With the frequencies p of the whole pool and q of shares, E the mean pool when it begins again and F the mean of the
  fixed prizes, the mean pool when a play is decided is L = (p E + c - F) / (p + s q).
- The house adds to the seed what the reserve lacks. The mean payment for a play is c + r and that amount.

Two conditions: c is more than F, so that the pool grows and its fixed prizes do not empty it; and where a prize is the
larger of a fixed amount and a share, the same one of them is larger at every level. Parts below one minor unit, which
stay in the pool, are left out.
"""

import sys
from collections.abc import Callable, Iterator
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Final, Literal

from msgspec import Struct

from protocols.contract.jackpots import PoolTerms, Prize
from rules.angola.blackjack import BlackjackOptions
from rules.angola.stud_poker import (
    JACKPOT as ANGOLA_STUD,
    StudPoker as AngolaStudPoker,
    StudPokerOptions as AngolaStudPokerOptions,
)
from rules.games.blackjack_jackpot import Combination, combinations, hit
from rules.games.cards import DECK, POINTS, colour, suit
from rules.games.poker import hands_by_category
from rules.games.stud_poker_game import Prize as StudPrize
from rules.macau.baccarat import JACKPOTS, PARADISE_SHARE, BaccaratOptions
from rules.macau.stud_poker import JACKPOT as MACAU_STUD
from simulators.lab.figures.enumerate_baccarat import jackpot_probabilities

BET: Final = 1_000
SEED: Final = 10_000 * BET
"""The least seed that Angola allows, used for all jackpots here."""
BLACKJACK_PRIZES: Final = ("AAAA=pool", "777/suit=1/10", "777=fixed", "AA/suit=fixed", "AA=fixed")


class Hit(Struct, frozen=True):
    """A combination: its probability in a play, and its prize; `share` 1 is the whole pool."""

    name: str
    probability: Fraction
    fixed: int = 0
    share: Fraction = Fraction(0)

    def prize(self, level: Fraction) -> Fraction:
        """The prize of a pool of `level`."""
        return max(Fraction(self.fixed), self.share * level)


class House(Struct, frozen=True):
    """An example of a house's terms for a jackpot; the law leaves amounts and rates to the house."""

    name: str
    law: str
    ruleset: str
    hits: Callable[[], tuple[Hit, ...]]
    terms: PoolTerms


class Cost(Struct, frozen=True):
    """The means of a jackpot per play, in minor units. `level`: the pool when a play is decided."""

    hits: tuple[Hit, ...]
    prizes: tuple[Fraction, ...]
    contribution: Fraction
    reserve: Fraction
    level: Fraction
    begins: Fraction
    whole: Fraction

    @property
    def paid(self) -> Fraction:
        """The mean payment for a play."""
        return sum((one.probability * prize for one, prize in zip(self.hits, self.prizes, strict=True)), Fraction(0))

    @property
    def seed(self) -> Fraction:
        """The mean amount for a play that the house adds to the seed."""
        return self.whole * self.begins - self.reserve


# ---- probabilities of combinations


def _hit(name: str, probability: Fraction, pays: str, share: str, fixed: int) -> Hit:
    match pays:
        case "pool":
            return Hit(name, probability, 0, Fraction(share or 1))
        case "fixed":
            return Hit(name, probability, fixed)
        case _:
            return Hit(name, probability, fixed, Fraction(share))


def baccarat_hits(which: Literal["A", "B", "C"], terms: PoolTerms) -> tuple[Hit, ...]:
    """Art. 13(1)(4)(4), from a full shoe of eight decks."""
    options = BaccaratOptions(jackpot=which)
    share = options.c_six_share if which == "C" else PARADISE_SHARE
    found = []
    for name, probability in jackpot_probabilities(options).items():
        pays = JACKPOTS[which][name][0]
        found.append(_hit(name, probability, pays, "" if pays == "pool" else share, _fixed(terms, name)))
    return tuple(found)


def stud_hits(prizes: dict[str, StudPrize], terms: PoolTerms) -> tuple[Hit, ...]:
    """Five cards of one deck; a hand of the jackpot is always raised."""
    counted = hands_by_category()
    total = sum(counted.values())
    return tuple(
        _hit(name, Fraction(counted[name], total), one.pays, one.share, _fixed(terms, name))
        for name, one in prizes.items()
    )


def blackjack_hits(decks: int, written: tuple[str, ...], terms: PoolTerms) -> tuple[Hit, ...]:
    """Art. 7(5): the first cards of a seat that takes cards as long as they can make a combination."""
    offered = combinations(written, 4)
    weights = {one.name: Fraction(0) for one in offered}
    for cards, probability in _first_cards((), Fraction(1), decks, offered):
        if found := hit(cards, offered):
            weights[found.name] += probability
    return tuple(
        Hit(
            one.name,
            weights[one.name],
            _fixed(terms, one.name) if one.pays == "fixed" else 0,
            Fraction(1) if one.pays == "pool" else Fraction(0) if one.pays == "fixed" else Fraction(one.pays),
        )
        for one in offered
    )


def _first_cards(
    cards: tuple[str, ...], probability: Fraction, decks: int, offered: tuple[Combination, ...]
) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    if not takes_another(cards, offered):
        yield cards, probability
        return
    left = 52 * decks - len(cards)
    for card in DECK:
        copies = decks - cards.count(card)
        if copies:
            yield from _first_cards((*cards, card), probability * Fraction(copies, left), decks, offered)


def takes_another(cards: tuple[str, ...], offered: tuple[Combination, ...]) -> bool:
    """Whether a seat takes another card: after two cards, while one is allowed and can complete a combination."""
    if len(cards) < 2:
        return True
    total = sum(POINTS[card] or 10 for card in cards)
    if total >= 21 or (total == 11 and any(card[0] == "A" for card in cards)):
        return False
    return any(len(one.ranks) > len(cards) and _begins(cards, one) for one in offered)


def _begins(cards: tuple[str, ...], one: Combination) -> bool:
    ranks = [card[0] for card in cards]
    kinds = {suit(card) if one.of == "suit" else colour(card) for card in cards} if one.of else {""}
    return len(kinds) == 1 and all(ranks.count(rank) <= one.ranks.count(rank) for rank in ranks)


def _fixed(terms: PoolTerms, name: str) -> int:
    return terms.prizes[name].fixed if name in terms.prizes else 0


# ---- cost


def cost(hits: tuple[Hit, ...], terms: PoolTerms, bet: int = BET) -> Cost:
    """The means of the steady state."""
    contribution, reserve = bet * Fraction(terms.visible), bet * Fraction(terms.hidden)
    whole = sum((one.probability for one in hits if one.share == 1), Fraction(0))
    begins = _begins_with(whole, Fraction(terms.seed), reserve)
    level = Fraction(terms.seed)
    by_share: list[Hit] = []
    while True:  # the larger of fixed amount and share depends on the level, and the level on that choice
        shares = [one for one in hits if one.share and one.share * level >= one.fixed]
        if shares == by_share:
            break
        by_share = shares
        fixed = sum((one.probability * one.fixed for one in hits if one not in shares), Fraction(0))
        parts = sum((one.probability * one.share for one in shares), Fraction(0))
        level = (whole * begins + contribution - fixed) / parts
    return Cost(hits, tuple(one.prize(level) for one in hits), contribution, reserve, level, begins, whole)


def _begins_with(whole: Fraction, seed: Fraction, reserve: Fraction) -> Fraction:
    """The mean of the larger of the seed and the reserve after a geometric number of plays."""
    if not reserve:
        return seed
    getcontext().prec = 50
    covered = floor(seed / reserve)
    rest = Fraction((1 - Decimal(whole.numerator) / Decimal(whole.denominator)) ** covered)
    return seed + rest * (reserve * (covered + 1 / whole) - seed)


# ---- an example of terms for each


_A: Final = PoolTerms(
    SEED,
    "3/5",
    "1/10",
    prizes={
        "paradise_straight": Prize(500_000),
        "four_of_a_kind": Prize(100_000),
        "double_pairs": Prize(10_000),
        "three_of_a_kind": Prize(8_000),
        "single_pair": Prize(1_000),
    },
)
_B: Final = PoolTerms(
    SEED,
    "3/5",
    "1/10",
    prizes={
        "five_same": Prize(500_000),
        "double_three": Prize(50_000),
        "four_same": Prize(20_000),
        "three_same": Prize(1_500),
    },
)
_C: Final = PoolTerms(SEED, "3/5", "1/10", prizes={**_B.prizes, "six_same": Prize(900_000)})
_STUD: Final = PoolTerms(
    SEED,
    "3/5",
    "1/10",
    prizes={
        "royal_flush": Prize(5_000_000),
        "straight_flush": Prize(500_000),
        "four_of_a_kind": Prize(250_000),
        "full_house": Prize(75_000),
        "flush": Prize(50_000),
    },
)
_BLACKJACK: Final = PoolTerms(
    SEED,
    "3/5",
    "1/10",
    prizes={"777": Prize(100_000), "AA/suit": Prize(40_000), "AA": Prize(20_000)},
)
ANGOLA_DECKS: Final = BlackjackOptions().decks
_ANGOLA_PAYS: Final = AngolaStudPoker(AngolaStudPokerOptions()).jackpot_pays
HOUSES: Final = {
    "baccarat-a": House(
        "Baccarat, jackpot A", "Macau, Despacho 55/2004, arts. 13 and 17(6)-(8)", "macau.baccarat",
        lambda: baccarat_hits("A", _A), _A,
    ),
    "baccarat-b": House(
        "Baccarat, jackpot B", "Macau, Despacho 55/2004, arts. 13 and 17(6), (9)", "macau.baccarat",
        lambda: baccarat_hits("B", _B), _B,
    ),
    "baccarat-c": House(
        "Baccarat, jackpot C", "Macau, Despacho 55/2004, arts. 13 and 17(10)-(12)", "macau.baccarat",
        lambda: baccarat_hits("C", _C), _C,
    ),
    "stud-poker": House(
        "Stud poker", "Macau, Despacho 61/2004, art. 10", "macau.stud-poker",
        lambda: stud_hits(MACAU_STUD, _STUD), _STUD,
    ),
    "angola-stud-poker": House(
        "Stud poker of Angola", "Decreto Executivo 261/22, art. 9", "angola.stud-poker",
        lambda: stud_hits({name: one for name, one in ANGOLA_STUD.items() if name in _ANGOLA_PAYS}, _STUD), _STUD,
    ),
    "angola-blackjack": House(
        "Blackjack of Angola", "Decreto Executivo 261/22, art. 7", "angola.blackjack",
        lambda: blackjack_hits(ANGOLA_DECKS, BLACKJACK_PRIZES, _BLACKJACK), _BLACKJACK,
    ),
}  # fmt: skip
"""By name."""


@lru_cache
def cost_of(name: str) -> Cost:
    """The cost of an example."""
    house = HOUSES[name]
    return cost(house.hits(), house.terms)


# ---- the page


def page() -> str:
    """docs/reference/jackpots.md."""
    parts = [_HEAD]
    for name, house in HOUSES.items():
        found = cost_of(name)
        parts += [f"## {house.name}", f"{house.law}; ruleset `{house.ruleset}`.", _table(found), _sums(found)]
    return "\n\n".join(parts) + "\n"


_HEAD: Final = f"""# What jackpots cost

Made by `python -m simulators.lab.figures.jackpots`: every hand of a full shoe, through the functions that decide
awards.

The law leaves rates, seed and fixed amounts to the house. Each jackpot is shown with an example: a bet of {BET} minor
units, 3/5 of it to the pool and 1/10 to the reserve, and a seed of {SEED}. One bet in a round is a play. The amounts
are means of the steady state in minor units; the derivation is in `simulators/lab/figures/jackpots.py`, and
`tests/jackpots/test_jackpot_cost.py` plays rounds of each through the rules and the books, a million in `make nightly`.

With several bets in a coup of baccarat they share the same prizes: a coup then adds more to the pool and its fixed
prizes cost the same. In stud poker and blackjack each hand has the frequencies of the table."""


def _table(found: Cost) -> str:
    lines = [
        "| combination | frequency | once in | prize | mean prize | per play |",
        "| --- | --- | ---: | --- | ---: | ---: |",
    ]
    for one, prize in zip(found.hits, found.prizes, strict=True):
        kind = "the pool" if one.share == 1 else f"{one.share} of the pool" if one.share else ""
        fixed = str(one.fixed) if one.fixed else ""
        often = f"{float(1 / one.probability):,.1f}"
        said = ", at least ".join(part for part in (kind, fixed) if part)
        lines.append(
            f"| {one.name} | {one.probability} | {often} | {said} | {float(prize):,.2f} | "
            f"{float(one.probability * prize):.4f} |"
        )
    return "\n".join(lines)


def _sums(found: Cost) -> str:
    by_fixed = sum(
        (one.probability * prize for one, prize in zip(found.hits, found.prizes, strict=True) if not one.share),
        Fraction(0),
    )
    rows = (
        ("paid per play", found.paid),
        ("of it fixed amounts", by_fixed),
        ("to the pool per play", found.contribution),
        ("to the reserve per play", found.reserve),
        ("from the house for seeds per play", found.seed),
        ("the pool when a play is decided", found.level),
        ("the pool when it begins again", found.begins),
    )
    return "\n".join(
        ("| | minor units |", "| --- | ---: |", *(f"| {text} | {float(value):,.4f} |" for text, value in rows))
    )


if __name__ == "__main__":
    sys.stdout.write(page())
