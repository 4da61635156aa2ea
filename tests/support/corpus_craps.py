"""The dealer of craps in the frozen corpus (tests/support/corpus.py)."""

import random
from typing import Final

from corpus_dealing import Dealer, Options, Sample, wagers

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DiceRead,
    DiceReplaced,
    DiceThrown,
    HandPassed,
    RoundPaid,
    RoundVoided,
)

BETS: Final = (
    *("pass", "pass", "dont_pass", "come", "dont_come", "big_6", "big_8", "under_7", "over_7", "pass_odds"),
    *("dont_pass_odds", "come_odds:6", "come_odds:9", "dont_come_odds:4", "come:5", "any_craps", "hard_4", "hard_8"),
    *(
        "seven",
        "two",
        "three",
        "eleven",
        "twelve",
        "place:6",
        "place:4",
        "place_lose:10",
        "place_lose:5",
        "field",
        "odd",
    ),
)
NULLS: Final = ("a_die_off_the_table", "short_of_the_middle", "foreign_object", "")


def craps(rng: random.Random, options: Options) -> Dealer:
    """Most rounds are throws that count; each player bets on a few things, and takes some of them back."""
    while True:
        shown = yield BetsOpened()
        if shown["phase"] == "suspended" and rng.random() < 0.7:
            yield RoundVoided("supervisors_decision")
            continue
        for one in wagers(rng, BETS):  # noqa: UP028 - a view is sent to whoever yields
            yield one
        if rng.random() < 0.3:
            yield BetsClosed()
        faces = rng.choices(range(1, 7), k=2)
        odd = rng.random()
        if odd < 0.06:
            shown = yield DiceThrown(tuple(faces), valid=False, reason=rng.choice(NULLS))
            if rng.random() < 0.5:
                yield DiceReplaced()
        elif odd < 0.1:
            shown = yield DiceRead((*faces, 3)[: rng.randint(1, 3)], stacked=rng.randint(0, 1))
            shown = yield DiceThrown(tuple(faces))
        else:
            shown = yield DiceThrown(tuple(faces)) if rng.random() < 0.5 else DiceRead(tuple(faces))
        if rng.random() < 0.06:
            yield DiceThrown(tuple(rng.choices(range(1, 7), k=2)))
        if rng.random() < 0.03:
            yield RoundVoided("")
        if shown["detail"].get("series") == "seven_out" and rng.random() < 0.9:
            yield HandPassed(rng.randint(0, 7))
        if rng.random() < 0.9:
            yield RoundPaid()


SAMPLES: Final = {
    "angola.craps": Sample(
        craps,
        ([], ["pass", "dont_pass", "pass_odds", "field"]),
        ({},),
        examples={"minimum": (1, 5), "maximum_payment": (0, 300), "closes_at": ("", "02:00")},
    ),
}
