"""The figures of Angola's dice games: cussec and French bank, every throw through the ruleset."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Final

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceThrown,
    DiceUncovered,
    Event,
    WagerPlaced,
)
from rules.engine.ruleset import Result, Ruleset
from simulators.lab.figures.figure import (
    Game,
    Published,
    UnresolvedError,
    Variant,
    Weight,
    Weights,
    beside,
    equally,
    played,
    ruleset_of,
)

SIC_BO: Final = "Wizard of Odds, Sic Bo"
BANK: Final = "Wizard of Odds, Banca Francesa"
STAKE: Final = 2  # chips, of which one counts on a line


def throws() -> Iterator[tuple[Event, ...]]:
    """The 216 throws of a cussec whose light opens the bets; opening by hand changes no probability."""
    for faces in product(range(1, 7), repeat=3):
        yield DiceCovered(), DiceAgitated("lever", 3), BetsClosed(), DiceUncovered(), DiceRead(faces)


def ended(ruleset: Ruleset[Any], events: Sequence[Event]) -> Iterator[Result]:
    """The result of a round, if these events decide it."""
    with contextlib.suppress(UnresolvedError):
        yield played(ruleset, events)


def french_bank(options: Mapping[str, str]) -> Weights:
    """An undecided throw is repeated: the round ends with one of the deciding throws, all equally likely.

    Every place has a wager, because only the settlement shows what a losing line returns.
    """
    ruleset = ruleset_of("angola.french-bank", options)
    places = [bet.id for bet in ruleset.bets()]
    laid: tuple[Event, ...] = (BetsOpened(), *(WagerPlaced(1, bet, STAKE) for bet in places), BetsClosed())
    ends = [result for faces in product(range(1, 7), repeat=3) for result in ended(ruleset, (*laid, DiceThrown(faces)))]
    won: dict[str, int] = defaultdict(int)
    back: dict[str, int] = defaultdict(int)
    for result in ends:
        for win in result.winners:
            won[win.bet] += 1
        for one in result.settlements:
            back[one.bet] += one.returned
    said = {True: "exact, of all chips on the line; half of them play", False: "exact"}
    return {
        bet: Weight(
            Fraction(won[bet], len(ends)), 1 - Fraction(back[bet], STAKE * len(ends)), said[bet.endswith("_line")]
        )
        for bet in places
    }


# The published edge is used if the odds are the same at other tables, otherwise only the probability.
PROBABILITIES: Final = {
    "triple": "0.0046",
    "any_triple": "0.0278",
    "total:4, total:17": "0.0139",
    "total:5, total:16": "0.0278",
    "total:6, total:15": "0.0463",
    "total:9, total:12": "0.1157",
}
TRIPLE: Final = "published for 10 on three equal dice too; this text pays 30"

GAMES: Final[dict[str, Game]] = {
    "angola.cussec": Game(
        equally("angola.cussec", throws()),
        (Variant({}, None),),
        beside(
            "",
            {
                "small": Published(SIC_BO, "0.4861", "2.78"),
                "big": Published(SIC_BO, "0.4861", "2.78"),
                "single": Published(SIC_BO, edge_percent="7.87"),
                "two_dice": Published(SIC_BO, "0.1389", "16.67"),
                "double": Published(SIC_BO, "0.0741", "18.52", TRIPLE),
                "total:7, total:14": Published(SIC_BO, "0.0694", "9.72"),
                "total:8, total:13": Published(SIC_BO, "0.0972", "12.50"),
                "total:10, total:11": Published(SIC_BO, "0.1250", "12.50"),
                **{bet: Published(SIC_BO, probability) for bet, probability in PROBABILITIES.items()},
            },
        ),
    ),
    "angola.french-bank": Game(
        french_bank,
        (Variant({}, None),),
        beside("", {bet: Published(BANK, edge_percent="1.59") for bet in ("aces", "small", "big")}),
    ),
}
