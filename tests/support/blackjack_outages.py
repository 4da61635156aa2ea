"""Blackjack at a table whose lines hang: what its edge would tell, and what each round truly came to.

The lines hang as in `outages.py`. What a round truly came to is what the ruleset says of it where no line hangs; the
tests of the law prove that.
"""

import random
from datetime import timedelta
from typing import Any, NamedTuple

from helpers import START
from outages import CONSOLE, SENSORS, SHOE, Happened, interrupted

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    Event,
    HoleCardPeeked,
    RoundPaid,
    SeatActed,
    ShoeStarted,
    WagerPlaced,
)
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Corrected, Resolved, Result, Ruleset, Suspended, Voided, judge
from rules.games.cards import DECK, PIPS, UNKNOWN


class Night(NamedTuple):
    """What was told, to which round each event belongs by its id, and what the rounds truly came to."""

    told: list[Envelope]
    rounds: dict[str, int]
    truth: dict[int, Result]


class Ends(NamedTuple):
    """Rounds that count as they were played; that do not count; results of a round that was not played so."""

    right: set[int]
    void: set[int]
    wrong: list[Result]


def _action(rng: random.Random, due: dict[str, Any], cards: tuple[str, ...]) -> str:
    actions: tuple[str, ...] = due["actions"]
    if UNKNOWN in cards:
        return rng.choice(actions)
    low = sum(PIPS[card] for card in cards) + (10 if any(card[0] == "A" for card in cards) else 0) < 14
    wanted = rng.choice(("split", "double", "surrender", "hit" if low else "stand", "hit" if low else "stand"))
    return wanted if wanted in actions else "stand"


def played(ruleset: Ruleset[Any], rng: random.Random, rounds: int) -> tuple[list[Happened], dict[int, Result]]:
    """Rounds from a full shoe, as the ruleset asks for them."""
    at, truth, out, state = 0.0, dict[int, Result](), list[Happened](), ruleset.start("t-1")
    shoe = list(DECK) * 40  # no second white card comes
    rng.shuffle(shoe)

    def then(device: str, event: Event, number: int, least: float, most: float) -> None:
        nonlocal at, state
        at += rng.uniform(least, most)
        out.append(Happened(at, device, event, number))
        seen = Envelope(f"p{len(out)}", device, START + timedelta(seconds=at), event, len(out))
        state, verdicts = ruleset.apply(state, seen)
        for one in verdicts:
            if isinstance(one, Resolved):
                truth[number] = one.result

    then(CONSOLE, ShoeStarted(6), 0, 1, 2)
    while ruleset.view(state).phase == "burning":
        then(SHOE, CardDrawn(shoe.pop()), 0, 0.7, 2)
    for number in range(1, rounds + 1):
        then(CONSOLE, BetsOpened(), number, 3, 8)
        for seat in sorted(rng.sample(range(1, 8), rng.choice((1, 2, 3)))):
            then(SENSORS, WagerPlaced(seat, "main", 100), number, 0.5, 4)
        then(CONSOLE, BetsClosed(), number, 1, 8)
        bank = list[str]()
        while number not in truth:
            detail = ruleset.view(state).detail
            due = detail["due"]
            if due["kind"] == "peek":
                then(CONSOLE, HoleCardPeeked(blackjack=sorted(PIPS[card] for card in bank) == [1, 10]), number, 1, 3)
            elif due["kind"] == "card":
                bank += shoe[-1:] if due["hand"] == "dealer" else []
                then(SHOE, CardDrawn(shoe.pop()), number, 0.7, 2)
            else:
                hand = int(due["hand"].partition(".")[2])
                action = _action(rng, due, detail["hands"][due["hand"]])
                then(CONSOLE, SeatActed(due["seat"], action, hand), number, 0.7, 4)
        then(CONSOLE, RoundPaid(), number, 2, 10)
        at += rng.uniform(1, 5)
    return out, truth


def night(ruleset: Ruleset[Any], seed: int, rounds: int, *, lossy: bool, every: float = 120.0) -> Night:
    """`lossy`: half of the outages lose some of what happened in them."""
    rng = random.Random(seed)
    true, truth = played(ruleset, rng, rounds)
    return Night(*interrupted(rng, true, lossy=lossy, every=every), truth)


def ends(ruleset: Ruleset[Any], one: Night) -> Ends:
    """What the ruleset made of a night in which no person corrects anything, and the dealer only pays."""
    final, doubted, state = dict[str, Result](), set[str](), ruleset.start("t-1")
    for seen in one.told:
        state, verdicts = judge(ruleset, state, seen)
        for verdict in verdicts:
            if isinstance(verdict, Resolved | Voided | Corrected):
                final[verdict.result.round] = verdict.result
            elif isinstance(verdict, Suspended) and verdict.round in final:
                doubted.add(verdict.round)
    right, wrong = set[int](), list[Result]()
    kinds = {seen.id: type(seen.event) for seen in one.told}
    for result in final.values():
        if result.void is not None:
            continue
        its = {one.rounds[id_] for id_ in result.evidence if kinds.get(id_) is CardDrawn}
        same = {number for number in its - right - {0} if _same(one.truth[number], result)}
        right |= same
        if not same and result.round not in doubted:
            wrong.append(result)
    return Ends(right, set(one.truth) - right, wrong)


def _same(truth: Result, result: Result) -> bool:
    """The same hands with the same ends, and the same money where the bets are known."""
    if truth.outcome["hands"] != result.outcome["hands"] or truth.outcome["ended"] != result.outcome["ended"]:
        return False
    known = {(one.seat, one.bet, one.hand): one.returned for one in truth.settlements}
    told_ = {(one.seat, one.bet, one.hand): one.returned for one in result.settlements}
    return not told_ or told_ == known
