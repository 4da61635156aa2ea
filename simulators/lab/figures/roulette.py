"""The figures of Angola's roulettes: every bet is laid, the ball falls into each pocket, the settlements are counted.

The figure of an announced bet is therefore that of the sum of its chips, as a table pays it. All neighbours of one size
have the same figures and share a row.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from protocols.contract.events import BallLanded, BallLaunched, BetsClosed, BetsOpened, Event, WagerPlaced
from rules.angola.roulette import AngolanRoulette
from simulators.lab.figures.figure import Game, Published, Variant, Weight, Weights, beside, played, ruleset_of

# Divisible by 3, 5, 6, 7 and 9 chips, and by 2 for half of a prize.
STAKE: Final = 1260
POCKETS: Final = 37

_CLOTH: Final = (
    *("column", "dozen", "even", "odd", "low", "high", "red", "black"),
    *("line", "street", "corner", "split", "straight"),
)
_PUBLISHED: Final = dict.fromkeys(_CLOTH, Published("Wizard of Odds, Roulette", edge_percent="2.70"))


def _settled(name: str, options: Mapping[str, str]) -> Weights:
    ruleset = ruleset_of(name, options)
    game = getattr(ruleset, "game", ruleset)  # without the monitor of its duties
    assert isinstance(game, AngolanRoulette)
    bets: Sequence[Event] = [WagerPlaced(1, bet, STAKE) for bet in game.board]
    won: dict[str, int] = defaultdict(int)
    back: dict[str, int] = defaultdict(int)
    for pocket in range(POCKETS):
        launch = BallLaunched("clockwise", "anticlockwise")
        result = played(ruleset, (BetsOpened(), *bets, launch, BetsClosed(), BallLanded(str(pocket))))
        for one in result.settlements:
            won[one.bet] += one.returned > 0
            back[one.bet] += one.returned
    weights: Weights = {}
    for bet in game.board:
        weight = Weight(Fraction(won[bet], POCKETS), 1 - Fraction(back[bet], STAKE * POCKETS))
        row = f"neighbours:n-{bet.rpartition('-')[2]}" if bet.startswith("neighbours:") else bet
        if weights.setdefault(row, weight) != weight:
            raise RuntimeError(f"{name}: {bet} is not like the others of {row}")
    return weights


def _game(name: str) -> Game:
    def weigh(options: Mapping[str, str]) -> Weights:
        return _settled(name, options)

    return Game(weigh, (Variant({}, None), Variant({"doubles": "any"})), beside("", _PUBLISHED))


GAMES: Final[dict[str, Game]] = {name: _game(name) for name in ("angola.american-roulette", "angola.french-roulette")}
