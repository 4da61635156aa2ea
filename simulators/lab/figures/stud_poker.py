"""The figures of stud poker, by each text: frequencies of hands are exact, figures that depend on decisions are
simulated.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

from rules.angola.stud_poker import StudPoker as AngolaStudPoker, StudPokerOptions as AngolaStudPokerOptions
from rules.games.poker import CATEGORIES, classes, hands_by_category
from rules.games.stud_poker_game import OPENING, VALUE_BITS
from rules.macau.stud_poker import JACKPOT
from simulators.lab.figures.cards import ROUNDS, Tally, measured, play_stud
from simulators.lab.figures.figure import Game, Published, Variant, Weight, Weights, beside

WIZARD: Final = "Wizard of Odds, Caribbean Stud Poker"
WIKIPEDIA: Final = "Wikipedia, Poker probability"
_ANGOLA_PAYS: Final = AngolaStudPoker(AngolaStudPokerOptions()).jackpot_pays


@lru_cache(maxsize=4)
def _rounds(name: str) -> Tally:
    return play_stud(name, ROUNDS)


def stud_exact(jackpot: Iterable[str] = JACKPOT) -> Weights:
    """The frequencies of five-card hands of one deck, by classes of equal hands; a jackpot's hand is always raised."""
    counted = hands_by_category()
    hands = sum(counted.values())
    opening = sum(ways for strength, ways in classes() if strength << VALUE_BITS >= OPENING)
    weights = {f"jackpot:{name}": Weight(Fraction(counted[name], hands), None) for name in jackpot}
    weights["dealer:opens"] = Weight(Fraction(opening, hands), None)
    return weights | {f"hand:{name}": Weight(Fraction(counted[name], hands), None) for name in reversed(CATEGORIES)}


def stud_simulated(tally: Tally, published: str) -> Weights:
    """The figures that depend on the player's decisions; `published`: the name of the published game."""
    as_published = (tally.edge().mean - tally.differs().mean) * 100
    how = f"; one ante with its raise, by three rules of thumb; the same rounds with {published}: {as_published:.4f} %"
    return {
        "ante": measured(tally.won, tally.rounds, tally, tally.edge(), how),
        "raise": measured(tally.bets_won, tally.bets, tally, tally.bets_edge(), "; where the rules of thumb raise"),
    }


def _weigh(name: str, jackpot: Iterable[str], published: str) -> Callable[[Mapping[str, str]], Weights]:
    return lambda _: stud_exact(jackpot) | stud_simulated(_rounds(name), published)


def _published(difference: str, more: Mapping[str, Published] = {}) -> dict[tuple[str, str], Published]:
    hands = {
        "royal_flush": "0.00000154",
        "straight_flush": "0.0000139",
        "four_of_a_kind": "0.0002401",
        "full_house": "0.001441",
        "flush": "0.001965",
        "straight": "0.003925",
        "three_of_a_kind": "0.021128",
        "two_pairs": "0.047539",
        "one_pair": "0.422569",
        "high_card": "0.501177",
    }
    return beside(
        "",
        {
            "ante": Published(WIZARD, edge_percent="5.225", difference=difference),
            **{f"hand:{name}": Published(WIKIPEDIA, probability) for name, probability in hands.items()},
            **more,
        },
    )


TIES_PUSH: Final = "ties that push"
GAMES: Final = {
    "angola.stud-poker": Game(
        _weigh("angola.stud-poker", [name for name in JACKPOT if name in _ANGOLA_PAYS], f"all {TIES_PUSH}"),
        (Variant({}, None),),
        _published(
            "published for the best strategy, all ties pushing; three of one suit decide equal odd cards as often for "
            "the player as against him, so the game is worth the same: the rest is the error of the simulation",
            {"dealer:opens": Published(WIZARD, "0.5632")},
        ),
    ),
    "macau.stud-poker": Game(
        _weigh("macau.stud-poker", JACKPOT, f"{TIES_PUSH} and a royal of 100"),
        (Variant({}, None),),
        _published("published with ties that push and a royal flush paid 100; exactly 0.0082 % less"),
    ),
}
