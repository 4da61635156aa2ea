"""The dealers of Angola's roulettes in the frozen corpus (tests/support/corpus.py)."""

import random
from collections.abc import Callable, Sequence
from typing import Final

from corpus_dealing import Dealer, Options, Sample, wagers

from protocols.contract.events import (
    BallChanged,
    BallLanded,
    BallLaunched,
    BallReplaced,
    BallSettling,
    BetsClosed,
    BetsOpened,
    DealerRelieved,
    RoundPaid,
    RoundVoided,
    SeatClosed,
    SeatOpened,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    WagerWithdrawn,
    WheelStarted,
    WheelStopped,
)

CLOTH: Final = (
    *("straight:0", "straight:17", "split:1-2", "split:0-1", "street:1-2-3", "corner:1-2-4-5", "line:1-2-3-4-5-6"),
    *("dozen:1", "column:3", "red", "black", "odd", "even", "low", "high", "double_dozen:1-2", "double_column:2-3"),
    *("double_dozen:1-3", "street:0-2-3", "corner:0-1-2-3", "straight:25", "nothing"),
)
ANNOUNCED: Final = (
    *(("large_series", 9), ("small_series", 6), ("orphans", 5), ("neighbours:17-3", 3), ("neighbours:0-5", 5)),
    ("neighbours:25-7", 7),
)
CLOCKWISE: Final = BallLaunched("clockwise", "anticlockwise")
ANTICLOCKWISE: Final = BallLaunched("anticlockwise", "clockwise")
WITH_ROTOR: Final = BallLaunched("clockwise", "clockwise")


def dealer(announced: Sequence[tuple[str, int]]) -> Callable[[random.Random, Options], Dealer]:
    """A dealer who lets the ball run one way round and then the other, mostly, and calls while it runs, mostly."""

    def deal(rng: random.Random, options: Options) -> Dealer:
        ball, spins = CLOCKWISE, 0
        while True:
            counted, opened, call = rng.random() < 0.5, rng.random() < 0.85, rng.random() < 0.7
            yield rng.choice((BallChanged(), DealerRelieved(), SeatOpened(rng.randint(1, 9)), SeatClosed(2)))
            for _ in range(rng.randint(3, 12)):
                spins += 1
                if counted:
                    yield SpinStarted(spins)
                if opened:
                    yield BetsOpened()
                for one in wagers(rng, CLOTH):
                    yield one
                for bet, chips in rng.sample(announced, min(len(announced), rng.randint(0, 2))):
                    yield WagerPlaced(
                        rng.randint(1, 7), bet, chips * rng.choice((1, 5, 10, 25, 50)) + (rng.random() < 0.1)
                    )
                    if rng.random() < 0.1:
                        yield WagerWithdrawn(rng.randint(1, 7), bet, rng.choice((0, chips, 1)))
                if rng.random() < 0.9:
                    ball = ANTICLOCKWISE if ball == CLOCKWISE else CLOCKWISE
                yield ball if rng.random() < 0.97 else WITH_ROTOR
                for one in wagers(rng, CLOTH, 1):
                    yield one
                if rng.random() < 0.05:
                    yield rng.choice((SpinVoided("chip"), RoundVoided("a chip"), WheelStopped(), BallReplaced("7")))
                    yield rng.choice((WheelStarted(), BallReplaced(), BallReplaced("12"), ball, BetsClosed()))
                if call:
                    yield BetsClosed() if rng.random() < 0.8 else BallSettling()
                shown = yield BallLanded(str(rng.randint(0, 36)) if rng.random() < 0.98 else "00")
                if rng.random() < 0.04:
                    yield BallLanded(str(rng.randint(0, 36)))
                if shown["phase"] == "suspended" and rng.random() < 0.5:
                    yield rng.choice((RoundVoided(""), BetsOpened(), SpinMissed(rng.randint(1, 3))))
                if rng.random() < 0.9:
                    yield RoundPaid()

    return deal


LIMITS: Final = {
    "minimum": (0, 5),
    "maximum_straight": (0, 100),
    "maximum_split": (0, 200),
    "maximum_street": (0, 300),
    "maximum_corner": (0, 500),
    "maximum_line": (0, 600),
    "maximum_dozen": (0, 1_000),
    "maximum_double": (0, 2_000),
    "maximum_chance": (0, 1_500),
    "chip_values": ([], [5, 25]),
}
SAMPLES: Final[dict[str, Sample]] = {
    "angola.american-roulette": Sample(
        dealer(ANNOUNCED), ([], ["straight", "red", "orphans", "neighbours"]), ({}, {"minimum": 5}), LIMITS
    ),
    "angola.french-roulette": Sample(dealer(()), ([], ["straight", "red", "dozen"]), ({}, {"minimum": 5}), LIMITS),
}
