"""Enumerates every coup that a shoe can deal: the exact probability of each outcome by the ruleset.

The ruleset itself deals and decides; this module only counts cards. Weights are integers and figures are fractions,
without rounding or random numbers.

Three prunings by symmetry. Totals depend only on points, so one card stands for each of the ten values, and of the
first two cards of a hand the lower goes first, counted twice. A pair depends on the ranks of two cards, which are any
two of the shoe, so it is counted over the thirteen ranks while the other hand ends the coup. A jackpot combination
depends only on ranks, with two exceptions: suits count if five cards are A K Q J T, or six have one rank.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from math import perm
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import CardDrawn
from protocols.contract.topics import Envelope
from rules.engine.facts import Table
from rules.engine.money import odds
from rules.engine.ruleset import Resolved, Result
from rules.games.baccarat_coups import Coups, Position
from rules.games.cards import POINTS, RANKS
from rules.macau.baccarat import Baccarat, BaccaratOptions
from simulators.lab.figures.figure import Weight

# Cards of a shoe by points, 0 to 9.
Counts: TypeAlias = tuple[int, ...]
Line: TypeAlias = tuple[Envelope, ...]

PAIRS: Final = ("player_pair", "banker_pair")
_ROYAL: Final = set("AKQJT")


def _seen(card: str) -> Envelope:
    return Envelope(card, "enumeration", datetime(2026, 1, 1, tzinfo=UTC), CardDrawn(card))


_BY_RANK: Final = {rank: _seen(f"{rank}S") for rank in RANKS}
_BY_POINTS: Final = tuple(_BY_RANK[rank] for rank in "TA23456789")


def first_coup(ruleset: Coups) -> Table[Position]:
    """A table before the first coup of a shoe, after the burn."""
    state = ruleset.start("shoe")
    return replace(state, position=replace(state.position, order="first"))


class Ending(Struct, frozen=True):
    """All coups with the same end apart from pairs: their probability, and one of them."""

    probability: Fraction
    result: Result
    line: Line


def shoe(decks: int) -> Counts:
    """The cards of `decks` decks by points."""
    values = [POINTS[f"{rank}S"] for rank in RANKS]
    return tuple(4 * decks * values.count(points) for points in range(10))


def endings(ruleset: Coups, counts: Counts) -> list[Ending]:
    """All ends of a coup from `counts`. Raises ValueError if the cards do not suffice for every coup."""
    weights: dict[tuple[object, ...], int] = defaultdict(int)
    ends: dict[tuple[object, ...], tuple[Result, Line]] = {}
    for weight, line, result in _coups(ruleset, first_coup(ruleset), list(counts), (), 1):
        facts = result.outcome
        totals, drawn = facts["totals"], tuple(len(hand) for hand in facts["hands"].values())
        key = (len(line), totals["player"], totals["banker"], drawn)
        weights[key] += weight
        ends.setdefault(key, (result, line))
    cards = sum(counts)
    return [Ending(Fraction(weights[key], perm(cards, len(ends[key][1]))), *ends[key]) for key in sorted(weights)]


def _coups(
    ruleset: Coups, state: Table[Position], counts: list[int], line: Line, weight: int
) -> Iterator[tuple[int, Line, Result]]:
    """Depth first: each coup with the number of ways the cards of the shoe can deal it."""
    dealt = len(line)
    # The third and fourth card are the second ones of their hands.
    lowest = POINTS[line[dealt - 2].id] if dealt in (2, 3) else 0
    if not any(counts):
        raise ValueError(f"a coup needs more than the {dealt} cards there are")
    for points in range(lowest, 10):
        if not (left := counts[points]):
            continue
        ways = weight * left * (2 if dealt in (2, 3) and points > lowest else 1)
        seen = _BY_POINTS[points]
        following, verdicts = ruleset.apply(state, seen)
        end = verdicts[-1] if verdicts else None
        if isinstance(end, Resolved):
            yield ways, (*line, seen), end.result
            continue
        counts[points] -= 1
        yield from _coups(ruleset, following, counts, (*line, seen), ways)
        counts[points] += 1


def pair_weights(ruleset: Coups, decks: int) -> dict[str, Weight]:
    """By the ruleset over every two ranks: the probability that the first two cards of a side are a pair, and the
    edge.
    """
    weights = dict.fromkeys(PAIRS, 0)
    nine, ten = _BY_RANK["9"], _BY_RANK["T"]
    for first in RANKS:
        for second in RANKS:
            ways = 4 * decks * (4 * decks - (first == second))
            one, two = _BY_RANK[first], _BY_RANK[second]
            # A natural of the other side ends the coup with these four cards.
            for pair, line in zip(PAIRS, ((one, nine, two, ten), (nine, one, ten, two)), strict=True):
                weights[pair] += ways * bool(played(ruleset, line).outcome[pair])
    paid = {win.bet: odds(win.pays) for win in played(ruleset, (nine,) * 4).winners}
    chances = {pair: Fraction(weight, perm(52 * decks, 2)) for pair, weight in weights.items()}
    return {pair: Weight(chance, 1 - chance * (paid[pair] + 1)) for pair, chance in chances.items()}


def played(ruleset: Coups, line: Line) -> Result:
    """The result of a coup of these cards from a fresh table."""
    state = first_coup(ruleset)
    for seen in line:
        state, verdicts = ruleset.apply(state, seen)
    (end,) = verdicts
    assert isinstance(end, Resolved)
    return end.result


def jackpot_probabilities(options: BaccaratOptions) -> dict[str, Fraction]:
    """The probability of each combination of the jackpot of `options`, from a full shoe, the rarest first."""
    ruleset = Baccarat(replace(options, opening="first_card", burn_each_coup=False))
    cards, copies = 52 * options.decks, 4 * options.decks
    weights: dict[str, Fraction] = defaultdict(Fraction)
    ways: dict[tuple[str, int], int] = defaultdict(int)
    for weight, ranks, result in _coups_by_rank(ruleset, first_coup(ruleset), [copies] * len(RANKS), "", 1):
        if len(set(ranks)) > 1 and set(ranks[:5]) != _ROYAL:
            if result.jackpots:
                ways[result.jackpots[0].combination, len(ranks)] += weight
            continue
        for share, suits in _suits(ranks, options.decks):
            line = tuple(_seen(rank + suit) for rank, suit in zip(ranks, suits, strict=True))
            for award in played(ruleset, line).jackpots:
                weights[award.combination] += share * Fraction(weight, perm(cards, len(ranks)))
    for (combination, dealt), weight in ways.items():
        weights[combination] += Fraction(weight, perm(cards, dealt))
    return dict(sorted(weights.items(), key=lambda item: item[1]))


def _coups_by_rank(
    ruleset: Coups, state: Table[Position], counts: list[int], ranks: str, weight: int
) -> Iterator[tuple[int, str, Result]]:
    """Depth first, as `_coups`, over the thirteen ranks; every card is a spade.

    A sixth card is the last: one rank that is not dealt yet stands for all of them.
    """
    dealt = len(ranks)
    lowest = RANKS.index(ranks[dealt - 2]) if dealt in (2, 3) else 0
    new = [place for place, rank in enumerate(RANKS) if rank not in ranks] if dealt == 5 else []
    for place in range(lowest, len(RANKS)):
        if place in new[1:]:
            continue
        rank, left = RANKS[place], sum(counts[one] for one in new) if place in new else counts[place]
        ways = weight * left * (2 if dealt in (2, 3) and place > lowest else 1)
        following, verdicts = ruleset.apply(state, _BY_RANK[rank])
        end = verdicts[-1] if verdicts else None
        if isinstance(end, Resolved):
            yield ways, ranks + rank, end.result
            continue
        counts[place] -= 1
        yield from _coups_by_rank(ruleset, following, counts, ranks + rank, ways)
        counts[place] += 1


def _suits(ranks: str, decks: int) -> Iterator[tuple[Fraction, str]]:
    """Representative suits with their shares, for cards of one rank, or cards of which the first five are A K Q J T."""
    if len(set(ranks)) == 1:
        one_colour = Fraction(2 * perm(2 * decks, len(ranks)), perm(4 * decks, len(ranks)))
        yield one_colour, "S" * len(ranks)
        yield 1 - one_colour, "S" * (len(ranks) - 1) + "H"
        return
    # Five ranks, each with any of four suits: all of one suit, four of one suit with another ace, or any others.
    ace = "".join("H" if rank == "A" else "S" for rank in ranks)
    king = "".join("H" if rank == "K" else "S" for rank in ranks)
    yield from ((Fraction(1, 256), "S" * len(ranks)), (Fraction(3, 256), ace), (Fraction(252, 256), king))
