"""Baccarat at a table whose lines hang: what its edge would tell, and what was truly dealt.

Each device has a line that is dead now and then. What happened meanwhile is told when the line is back, in the device's
own order and with its age, or some of it is lost, which is proven before the next event of that device. The edge says
of each event what others have overtaken it by, as `daemon/edge/ordering.py` does.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from helpers import START
from msgspec import structs

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    Event,
    EventsMissed,
    RoundPaid,
    ShoeStarted,
    WagerPlaced,
)
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Corrected, Resolved, Result, Ruleset, Suspended, Voided, judge
from rules.games.cards import DECK, POINTS

SHOE, CONSOLE, SENSORS = "shoe-1", "console-1", "sensors-1"
TOGETHER_S = 0.1
Hands: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class Happened(NamedTuple):
    """One event where it happened: `at` in seconds, `coup` from 1, 0 for none."""

    at: float
    device: str
    event: Event
    coup: int


class Night(NamedTuple):
    """What was told, to which coup each event belongs by its id, and the hands of each coup."""

    told: list[Envelope]
    coups: dict[str, int]
    hands: dict[int, Hands]


def played(rng: random.Random, coups: int, *, bell: bool, angola: bool) -> tuple[list[Happened], dict[int, Hands]]:
    """A shoe as it is dealt, by art. 9 in other words than the ruleset's.

    `angola`: eight cards are burnt, and one before each coup but the first.
    """
    at, hands = 0.0, dict[int, Hands]()
    cards = [card for card in DECK * 8 if card in POINTS]
    rng.shuffle(cards)
    out: list[Happened] = []

    def then(device: str, event: Event, coup: int, least: float, most: float) -> None:
        nonlocal at
        at += rng.uniform(least, most)
        out.append(Happened(at, device, event, coup))

    then(CONSOLE, ShoeStarted(8), 0, 1, 2)
    for _ in range(8 if angola else 1):
        then(SHOE, CardDrawn(cards.pop()), 0, 1, 2)
    for coup in range(1, coups + 1):
        if bell:
            then(CONSOLE, BetsOpened(), coup, 3, 8)
            then(SENSORS, WagerPlaced(1, "player", 100), coup, 0.5, 6)
            then(CONSOLE, BetsClosed(), coup, 1, 8)
        if angola and coup > 1:
            then(SHOE, CardDrawn(cards.pop()), coup, 0.7, 2)
        player, banker = list[str](), list[str]()
        for turn in range(4):
            (banker if turn % 2 else player).append(cards.pop())
            then(SHOE, CardDrawn((banker if turn % 2 else player)[-1]), coup, 0.7, 2)
        totals = [sum(POINTS[card] for card in hand) % 10 for hand in (player, banker)]
        if max(totals) < 8:
            third = 10
            if totals[0] < 6:
                player.append(cards.pop())
                then(SHOE, CardDrawn(player[-1]), coup, 0.7, 2)
                third = POINTS[player[-1]]
            least = {3: {8}, 4: {0, 1, 8, 9}, 5: {0, 1, 2, 3, 8, 9}, 6: set(range(10)) - {6, 7}}.get(totals[1], set())
            draws = totals[1] < 6 if third == 10 else totals[1] < 7 and third not in least
            if draws:
                banker.append(cards.pop())
                then(SHOE, CardDrawn(banker[-1]), coup, 0.7, 2)
        hands[coup] = (tuple(player), tuple(banker))
        then(CONSOLE, RoundPaid(), coup, 2, 10)
        at += rng.uniform(1, 5)
    return out, hands


def dead(rng: random.Random, until: float, every: float) -> list[tuple[float, float]]:
    """When a line is dead: from, to."""
    found, at = [], rng.expovariate(1 / every)
    while at < until:
        length = rng.choice((0.5, 2.0, 6.0, 20.0)) * rng.uniform(0.5, 1.5)
        found.append((at, at + length))
        at += length + rng.expovariate(1 / every)
    return found


def night(seed: int, coups: int, *, bell: bool, lossy: bool, every: float = 120.0, angola: bool = False) -> Night:
    """`lossy`: half of the outages lose some of what happened in them."""
    rng = random.Random(seed)
    true, hands = played(rng, coups, bell=bell, angola=angola)
    return Night(*interrupted(rng, true, lossy=lossy, every=every), hands)


def interrupted(
    rng: random.Random, true: list[Happened], *, lossy: bool, every: float
) -> tuple[list[Envelope], dict[str, int]]:
    """What the edge says where each line is dead now and then, and the coup of each event by its id."""
    arrivals: list[tuple[float, int, Happened]] = []
    for device in (SHOE, CONSOLE, SENSORS):
        mine = [one for one in true if one.device == device]
        outages = dead(rng, true[-1].at, every)
        for begin, end in outages:
            within = [one for one in mine if begin <= one.at < end]
            if lossy and within and rng.random() < 0.5:
                gone = rng.sample(within, rng.randint(1, len(within)))
                mine = [one for one in mine if one not in gone]
                arrivals.append((end, len(arrivals), Happened(end, device, EventsMissed(len(gone)), 0)))
        for one in mine:
            arrives = next((end for begin, end in outages if begin <= one.at < end), one.at)
            arrivals.append((arrives, len(arrivals), one))
    arrivals.sort(key=lambda one: (one[0], one[1]))
    return told(arrivals)


def told(arrivals: list[tuple[float, int, Happened]]) -> tuple[list[Envelope], dict[str, int]]:
    """What the edge says of what arrives, and the coup of each event by its id."""
    envelopes, coups, newest = list[Envelope](), dict[str, int](), dict[str, float]()
    known = {field.name for field in structs.fields(BetsOpened)}
    for number, (arrives, _, one) in enumerate(arrivals, 1):
        late = max((at for device, at in newest.items() if device != one.device), default=one.at) - one.at
        newest[one.device] = max(newest.get(one.device, one.at), one.at)
        said: dict[str, Any] = {"overtaken": int(late * 1000)} if late > TOGETHER_S else {}
        if "age_ms" in known and arrives - one.at > TOGETHER_S:
            said["age_ms"] = int((arrives - one.at) * 1000)
        event = structs.replace(one.event, **said)
        at: datetime = START + timedelta(seconds=arrives)
        envelopes.append(Envelope(f"e{number}", f"felt/1/site/table/t-1/device/{one.device}", at, event, number))
        coups[f"e{number}"] = one.coup
    return envelopes, coups


class Count(NamedTuple):
    """Coups by how they ended: with the true hands; void or in doubt; with other hands than were dealt."""

    right: int
    void: int
    wrong: int


def count(ruleset: Ruleset[Any], one: Night) -> Count:
    """What the ruleset made of a night in which nobody corrects anything."""
    return Count(*map(len, ends(ruleset, one)))


def ends(ruleset: Ruleset[Any], one: Night) -> tuple[set[int], set[int], list[Result]]:
    """The coups that count as they were dealt, those that do not, and the results with hands that were not dealt.

    A result that was put in doubt is not wrong: a person was asked, and here the dealer only pays.
    """
    final: dict[str, Result] = {}
    doubted = set[str]()
    state = ruleset.start("t-1")
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
        hands = (tuple(result.outcome["hands"]["player"]), tuple(result.outcome["hands"]["banker"]))
        its = {one.coups[id_] for id_ in result.evidence if kinds.get(id_) is CardDrawn}
        truly = {coup for coup in its - right if one.hands.get(coup) == hands}
        right |= truly
        if not truly and result.round not in doubted:
            wrong.append(result)
    return right, set(one.hands) - right, wrong


def nights(seeds: range, coups: int, *, bell: bool, lossy: bool) -> Iterator[Night]:
    """As many nights as seeds."""
    for seed in seeds:
        yield night(seed, coups, bell=bell, lossy=lossy)
