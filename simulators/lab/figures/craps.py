"""The figures of craps: the ruleset plays every throw from every point, and each bet is followed to its end.

A bet that stays or moves waits for the next throw with the next point. Its probability and its return are the solution
of the linear equations of that chain, in fractions.
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Final, TypeAlias

from protocols.contract.events import BetsOpened, DiceThrown, RoundPaid
from protocols.contract.results import Result
from rules.engine.money import odds
from rules.games.craps import POINTS
from simulators.lab.figures.figure import Game, Published, Variant, Weight, Weights, beside, played, ruleset_of

NAME: Final = "angola.craps"
THROWS: Final = tuple(product(range(1, 7), repeat=2))

Place: TypeAlias = tuple[str, int]
"""A state of the chain: the place of a bet before a throw, and the point."""
Row: TypeAlias = tuple[dict[Place, Fraction], Fraction, Fraction]
"""The probabilities of a bet's places after a throw, of a win with this throw, and its mean return."""


def _results(options: Mapping[str, str]) -> dict[int, list[Result]]:
    """The results of every throw from every point."""
    ruleset = ruleset_of(NAME, options)
    paid = RoundPaid()
    setting = {n: (BetsOpened(), DiceThrown((1, n - 1) if n < 8 else (n - 6, 6)), paid) for n in POINTS}
    return {
        point: [played(ruleset, (*setting.get(point, ()), BetsOpened(), DiceThrown(faces), paid)) for faces in THROWS]
        for point in (0, *POINTS)
    }


def _row(results: Mapping[int, list[Result]], place: Place) -> Row:
    bet, point = place
    after: dict[Place, Fraction] = defaultdict(Fraction)
    wins, back = Fraction(), Fraction()
    each = Fraction(1, len(THROWS))
    for result in results[point]:
        left = result.moves.get(bet, bet if bet in result.stands else "")
        if left:
            after[left, result.outcome["next_point"]] += each
        elif (win := next((one for one in result.winners if one.bet == bet), None)) is not None:
            wins += each
            back += each * (odds(win.pays) + 1)
        elif bet in result.pushes:
            back += each
    return after, wins, back


def followed(results: Mapping[int, list[Result]], place: Place) -> Weight:
    """Follow a bet from its place to its end, by elimination of the other places."""
    rows: dict[Place, Row] = {}
    waiting = [place]
    while waiting:
        if (one := waiting.pop()) not in rows:
            rows[one] = _row(results, one)
            waiting += rows[one][0]
    for one in [other for other in rows if other != place] + [place]:
        after, wins, back = rows.pop(one)
        stays = 1 / (1 - after.pop(one, Fraction()))
        after = {other: chance * stays for other, chance in after.items()}
        wins, back = wins * stays, back * stays
        if not after and not rows:
            return Weight(wins, 1 - back)
        for other, (theirs, their_wins, their_back) in rows.items():
            chance = theirs.pop(one, Fraction())
            for third, more in after.items():
                theirs[third] = theirs.get(third, Fraction()) + chance * more
            rows[other] = theirs, their_wins + chance * wins, their_back + chance * back
    raise AssertionError("never reached: the last place has no successor")


def weigh(options: Mapping[str, str]) -> Weights:
    """The figures of every bet; odds for each point or number, come bets with some point up."""
    results = _results(options)
    offered = [bet.id for bet in ruleset_of(NAME, options).bets()]
    weights: Weights = {}
    for id_ in offered:
        bet, _, numbered = id_.partition(":")
        if bet in ("come", "dont_come"):
            weights[bet] = followed(results, (bet, 6))
        elif bet in ("pass_odds", "dont_pass_odds"):
            weights |= {f"{bet}:{point}": followed(results, (bet, point)) for point in POINTS}
        elif numbered:
            weights |= {f"{bet}:{n}": followed(results, (f"{bet}:{n}", 0)) for n in POINTS}
        else:
            weights[bet] = followed(results, (bet, 0))
    return weights


WIZARD: Final = "Wizard of Odds, Craps"
_ODDS: Final = Published(WIZARD, edge_percent="0.00")
_DONT: Final = Published(WIZARD, edge_percent="1.36")

GAME: Final = Game(
    weigh,
    (Variant({}, None), Variant({"dont_odds": "as_printed"}), Variant({"place_4_10": "as_printed"})),
    beside(
        "",
        {
            "pass": Published(WIZARD, "0.4929", "1.41"),
            "dont_pass": _DONT,
            "come": Published(WIZARD, "0.4929", "1.41"),
            "dont_come": _DONT,
            "big_6": Published(WIZARD, "0.4545", "9.09"),
            "big_8": Published(WIZARD, "0.4545", "9.09"),
            **dict.fromkeys(("pass_odds", "dont_pass_odds", "come_odds", "dont_come_odds"), _ODDS),
            **dict.fromkeys(("hard_4", "hard_10"), Published(WIZARD, "0.1111", "11.11")),
            **dict.fromkeys(("hard_6", "hard_8"), Published(WIZARD, "0.0909", "9.09")),
            "any_craps": Published(WIZARD, "0.1111", "11.11"),
            "seven": Published(WIZARD, "0.1667", "16.67"),
            **dict.fromkeys(("two", "twelve"), Published(WIZARD, "0.0278", "13.89")),
            **dict.fromkeys(("three", "eleven"), Published(WIZARD, "0.0556", "11.11")),
            "place:4, place:10": Published(WIZARD, "0.3333", "6.67"),
            "place:5, place:9": Published(WIZARD, "0.4000", "4.00"),
            "place:6, place:8": Published(WIZARD, "0.4545", "1.52"),
            "place_lose:4, place_lose:10": Published(WIZARD, "0.6667", "3.03"),
            "place_lose:5, place_lose:9": Published(WIZARD, "0.6000", "2.50"),
            "place_lose:6, place_lose:8": Published(
                WIZARD, "0.5455", "1.82", "published for 4 to 5; this text pays 10 to 13"
            ),
            "field": Published(WIZARD, "0.4444", "5.56"),
        },
    ),
)
