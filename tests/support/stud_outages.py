"""Stud poker at a table whose lines hang: what its edge would tell, and what was truly dealt.

The same two seats play each round, and the dealer tells the hands at the showdown without naming the round. Lines are
dead as in `outages.py`; half of the outages lose events, often over the end of one round and the beginning of the next.
"""

import random
from typing import Any, NamedTuple

from outages import CONSOLE, SENSORS, Happened, dead, told as as_told

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    DealCorrected,
    Event,
    EventsMissed,
    HandDispensed,
    RoundPaid,
    SeatActed,
    WagerPlaced,
)
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Corrected, Resolved, Result, Ruleset, Suspended, Voided, judge
from rules.games.cards import DECK

SHUFFLER = "shuffler-1"
SEATS = (2, 5)


class Truth(NamedTuple):
    """A round as it was: its hands by their names, and the seats that folded."""

    hands: dict[str, tuple[str, ...]]
    folded: frozenset[str]


def played(
    rng: random.Random, rounds: int, *, burns: bool, shoe: bool = False
) -> tuple[list[Happened], dict[int, Truth]]:
    """Rounds as they are dealt, one event after the other; `burns`: a packet of one card comes first.

    `shoe`: it deals one card at a time, and nobody tells the hands.
    """
    at, truth, out = 0.0, dict[int, Truth](), list[Happened]()

    def then(device: str, event: Event, number: int, least: float, most: float) -> None:
        nonlocal at
        at += rng.uniform(least, most)
        out.append(Happened(at, device, event, number))

    for number in range(1, rounds + 1):
        cards = rng.sample(DECK, 16)
        names = (*(f"seat_{seat}" for seat in SEATS), "dealer")
        hands = {name: tuple(cards[5 * place : 5 * place + 5]) for place, name in enumerate(names)}
        folded = frozenset(f"seat_{seat}" for seat in SEATS if rng.random() < 0.25)
        truth[number] = Truth(hands, folded)
        then(CONSOLE, BetsOpened(), number, 3, 8)
        for seat in SEATS:
            then(SENSORS, WagerPlaced(seat, "ante", 100), number, 0.5, 4)
        then(CONSOLE, BetsClosed(), number, 1, 4)
        if burns:
            then(SHUFFLER, CardDrawn(cards[15]) if shoe else HandDispensed(1), number, 1, 3)
        for card in [hands[name][place] for place in range(5) for name in names] if shoe else ():
            then(SHUFFLER, CardDrawn(card), number, 0.7, 2)
        for _ in () if shoe else names:
            then(SHUFFLER, HandDispensed(5), number, 1, 3)
        for seat in SEATS:
            then(CONSOLE, SeatActed(seat, "fold" if f"seat_{seat}" in folded else "raise"), number, 1, 4)
        if not shoe:
            then(CONSOLE, DealCorrected(hands), number, 1, 4)
        then(CONSOLE, RoundPaid(), number, 1, 4)
    return out, truth


def night(
    seed: int, rounds: int, *, every: float = 60.0, burns: bool = False, lossy: bool = True, shoe: bool = False
) -> tuple[list[Envelope], dict[int, Truth]]:
    """One table, as its edge tells it. A dead edge loses what all devices told. `lossy`: else all is told, if late."""
    rng = random.Random(seed)
    true, truth = played(rng, rounds, burns=burns, shoe=shoe)
    edge = [(begin, end) for begin, end in dead(rng, true[-1].at, 4 * every) if lossy and rng.random() < 0.5]
    arrivals: list[tuple[float, int, Happened]] = []
    for device in (SHUFFLER, CONSOLE, SENSORS):
        mine = [one for one in true if one.device == device]
        outages = dead(rng, true[-1].at, every)
        for begin, end in sorted([*outages, *edge]):
            within = [one for one in mine if begin <= one.at < end]
            whole = (begin, end) in edge
            if within and lossy and (whole or rng.random() < 0.5):
                gone = within if whole else rng.sample(within, rng.randint(1, len(within)))
                mine = [one for one in mine if one not in gone]
                arrivals.append((end, len(arrivals), Happened(end, device, EventsMissed(len(gone)), 0)))
        for one in mine:
            arrives = next((end for begin, end in outages if begin <= one.at < end), one.at)
            arrivals.append((arrives, len(arrivals), one))
    arrivals.sort(key=lambda one: (one[0], one[1]))
    return as_told(arrivals)[0], truth


def ends(ruleset: Ruleset[Any], told: list[Envelope], truth: dict[int, Truth]) -> tuple[int, list[Result]]:
    """How many rounds count as they were dealt, and the results that are those of no round."""
    final: dict[str, Result] = {}
    doubted = set[str]()
    state = ruleset.start("t-1")
    for seen in told:
        state, verdicts = judge(ruleset, state, seen)
        for verdict in verdicts:
            if isinstance(verdict, Resolved | Voided | Corrected):
                final[verdict.result.round] = verdict.result
                doubted.discard(verdict.result.round)
            elif isinstance(verdict, Suspended) and verdict.round in final:
                doubted.add(verdict.round)
    counted = [result for result in final.values() if result.void is None]
    sure = [one for one in counted if one.round not in doubted]
    wrong = [one for one in sure if not any(_is_of(one, true) for true in truth.values())]
    return len(sure) - len(wrong), wrong


def _is_of(result: Result, true: Truth) -> bool:
    fates: dict[str, str] = result.outcome["seats"]
    folded = frozenset(hand for hand, fate in fates.items() if fate == "folded")
    shown = result.outcome["hands"].items()
    return folded == true.folded and all(true.hands[hand] == tuple(cards) for hand, cards in shown)
