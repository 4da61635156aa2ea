"""The dealers of stud poker for the frozen corpus (tests/support/corpus.py): Macau's and Angola's."""

import random
from collections.abc import Iterator
from typing import Final

from corpus_dealing import Dealer, Options, Sample, put_right, wagers
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardJammed,
    DealCorrected,
    Event,
    HandDispensed,
    RoundPaid,
    SeatActed,
    SeatOpened,
    ShoeStarted,
    ShuffleFailed,
    ShuffleFinished,
    WagerPlaced,
)
from rules.games.cards import DECK

POKER: Final = ("ante", "ante", "ante", "jackpot", "nothing")
GOOD_RANKS: Final = ("A23456789TJQK", "A23456789TJQK", "A23456789", "AKQJT98", "A234567")


def macau(rng: random.Random, options: Options) -> Dealer:
    return dealt(rng, options, burns=False)


def angola(rng: random.Random, options: Options) -> Dealer:
    """With a burnt card."""
    return dealt(rng, options, burns=options.get("burn", "counted") == "counted")


def dealt(rng: random.Random, options: Options, *, burns: bool) -> Dealer:
    ways = {"shoe": ("shoe",), "shuffler": ("shuffler", "mute")}.get(
        options.get("dealing", ""), ("shoe", "shuffler", "mute")
    )
    while True:
        way = rng.choice(ways)
        for _ in range(rng.randint(2, 8)):
            seats = sorted(rng.sample(range(1, 8), rng.choice((1, 1, 2, 2, 3, 4))))
            yield ShoeStarted(1) if way == "shoe" else ShuffleFinished(1, 52, verified=True)
            yield BetsOpened()
            for seat in seats:
                match rng.randrange(6):
                    case 0:
                        yield SeatActed(seat, "ante", 1, rng.choice((0, 100)))
                    case 1:
                        yield SeatOpened(seat)
                        yield WagerPlaced(seat, "ante", 100)
                    case _:
                        yield WagerPlaced(seat, "ante", rng.choice((50, 100)))
                if rng.random() < 0.4:
                    yield WagerPlaced(seat, "jackpot", 10)
            for one in wagers(rng, POKER, 1) if rng.random() < 0.1 else ():
                yield one
            shown = yield BetsClosed()
            cards = [card for card in DECK if card[0] in rng.choice(GOOD_RANKS)]
            rng.shuffle(cards)
            count = min(len(seats) + 1, len(cards) // 5)
            order = [*(f"seat_{seat}" for seat in seats[: count - 1]), "dealer"]
            hands = {name: tuple(cards[place : 5 * count : count]) for place, name in enumerate(order)}
            for one in _burnt(rng, way, cards[: 5 * count]) if burns else ():
                shown = yield one
            for place in range(5 * count) if way == "shoe" else ():
                shown = yield CardDrawn(cards[place], "up" if place == 5 * count - 1 and rng.random() < 0.5 else None)
            for _ in order if way == "shuffler" else ():
                shown = yield HandDispensed(5 if rng.random() < 0.995 else 4)
            if rng.random() < 0.05:
                name = rng.choice(order)
                yield CardExposed(name, rng.choice((None, hands[name][0])))
            if rng.random() < 0.01:
                yield rng.choice((ShuffleFailed(1, 52, "jam"), CardJammed("outfeed"), HandDispensed(5)))
            for seat in seats:
                action = rng.choice(("raise", "raise", "fold"))
                if action == "raise" and rng.random() < 0.2:
                    shown = yield WagerPlaced(seat, "raise", rng.choice((200, 100, 100)))
                shown = yield SeatActed(seat, action, 1, rng.choice((0, 200)))
                if rng.random() < 0.03:
                    shown = yield SeatActed(seat, rng.choice(("raise", "fold")))
            for _ in range(3):
                if shown["phase"] == "suspended" and shown["detail"]["reason"]["code"] == "ante_missing":
                    seat = int(shown["detail"]["reason"]["values"]["seat"])
                    shown = yield rng.choice((SeatActed(seat, "ante"), DealCorrected({f"seat_{seat}": ()})))
                elif shown["phase"] in ("suspended", "showdown", "deciding"):
                    for one in put_right(rng, hands) if shown["phase"] == "suspended" else (DealCorrected(hands),):
                        named = isinstance(one, DealCorrected) and rng.random() < 0.5
                        shown = yield replace(one, round=shown["round"]) if named else one
            if rng.random() < 0.9:
                yield RoundPaid()


def _burnt(rng: random.Random, way: str, dealt: list[str]) -> Iterator[Event]:
    """Once, seldom not at all or twice."""
    for _ in range(rng.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2))):
        if way == "shoe":
            yield CardDrawn(rng.choice([card for card in DECK if card not in dealt]))
        elif way == "shuffler":
            yield HandDispensed(1)


SAMPLES: Final[dict[str, Sample]] = {
    "macau.stud-poker": Sample(macau, ([], ["ante", "raise"])),
    "angola.stud-poker": Sample(
        angola,
        beside=({}, {"minimum": 60, "maximum": 100}, {"minimum": 5, "maximum": 99}, {"jackpot_bet": 10}),
        examples={
            "minimum": (0, 60),
            "maximum": (0, 99),
            "maximum_prizes": (0, 700),
            "jackpot_bet": (0, 9),
            "jackpot_seed": (0, 100_000),
            "jackpot_pays": (["royal_flush", "straight_flush", "straight"],),
        },
    ),
}
