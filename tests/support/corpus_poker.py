"""The dealers of poker without a bank for the frozen corpus (tests/support/corpus.py): hold'em, Omaha and synthetic."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from corpus_dealing import Dealer, Options, Sample, put_right

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardExposed,
    DealCorrected,
    HandDispensed,
    HandPassed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
)
from rules.games.cards import DECK

CHIPS: Final = 5_000
HOPELESS: Final = ("stacks_unknown", "too_few_players", "hand_incomplete", "pot_unbalanced", "no_hand_left")
SEATS: Final = (4, 4, 4, 5, 7)
FIRST_WORDS: Final = ("post", "post", "post", "post", "post", "post", "call", "nothing")
OUT_OF_PLACE: Final = (
    *("fold", "check", "call", "raise", "all_in", "show", "muck", "dead", "absent", "skipped", "rest", "return"),
    *("stack", "blind_raise", "blind_reraise", "post", "hit"),
)


def holdem(rng: random.Random, options: Options) -> Dealer:
    return dealt(rng, options, DECK, 2, ante=False)


def omaha(rng: random.Random, options: Options) -> Dealer:
    return dealt(rng, options, DECK, 4, ante=False)


def synthetic(rng: random.Random, options: Options) -> Dealer:
    return dealt(rng, options, [card for card in DECK if card[0] in "AKQJT98"], 2, ante=True)


def dealt(rng: random.Random, options: Options, deck: Any, own: int, *, ante: bool) -> Dealer:
    minimum = options.get("minimum", 100)
    while True:
        seats = list(range(1, rng.choice(SEATS) + 1))
        for seat in range(1, 12):
            yield (
                SeatActed(seat, "stack", 1, CHIPS + 10 * minimum * rng.randint(0, 9))
                if seat in seats
                else SeatClosed(seat)
            )
        for _ in range(rng.randint(2, 6)):
            yield from _between(rng, seats, minimum)
            shown = yield BetsOpened()
            if shown["phase"] == "suspended":
                yield from _again(rng, shown)
                shown = yield BetsOpened()
            cards = iter(rng.sample(deck, len(deck)))
            yield from _hand(rng, shown, cards, own, minimum, ante=ante)
            if rng.random() < 0.9:
                yield RoundPaid()


def _again(rng: random.Random, shown: Any) -> Dealer:
    """A hand that waits is declared void, and the chips of each seat are told again."""
    yield RoundVoided("declared")
    for name in shown["detail"].get("stacks", {}):
        seat = int(name.removeprefix("seat_"))
        yield SeatActed(seat, "return")
        yield SeatActed(seat, "stack", 1, CHIPS * rng.randint(1, 3))


def _between(rng: random.Random, seats: list[int], minimum: int) -> Dealer:
    """Players buy, rest, come back and sit down."""
    if rng.random() < 0.1:
        yield SeatActed(rng.choice(seats), rng.choice(("rest", "return")))
    if rng.random() < 0.1:
        yield rng.choice((SeatOpened(rng.randint(1, 11)), HandPassed(rng.choice(seats))))
    for seat in seats:
        if rng.random() < 0.08:
            yield SeatActed(seat, "stack", 1, minimum * rng.choice((0, 5, 50, 50, 50, 50)))


def _hand(rng: random.Random, shown: Any, cards: Iterator[str], own: int, minimum: int, *, ante: bool) -> Dealer:
    order = list(shown["detail"].get("players", ()))
    if not order:
        yield RoundVoided("declared")
        return
    held: dict[str, list[str]] = {f"seat_{seat}": [] for seat in order}
    way = rng.choice(("shoe", "packets", "told"))
    for seat in order if ante else order[:2]:
        shown = yield SeatActed(seat, rng.choice(FIRST_WORDS), 1, rng.choice((0, 0, minimum // 2, minimum)))
    if way == "told" or rng.random() < 0.3:
        shown = yield BetsClosed()
    for place in range(len(order) * own):
        card = next(cards)
        held[f"seat_{order[place % len(order)]}"].append(card)
        if way == "shoe":
            shown = yield CardDrawn(card)
    for _ in order if way == "packets" else ():
        shown = yield HandDispensed(own if rng.random() < 0.99 else own + 1)
    if rng.random() < 0.04:
        shown = yield rng.choice((CardExposed(f"seat_{rng.choice(order)}", None), CardDamaged()))
    board: list[str] = []
    for _ in range(150):
        due, phase = shown["detail"].get("due") or {}, shown["phase"]
        if phase == "suspended" and shown["detail"]["reason"]["code"] in HOPELESS:
            yield from _again(rng, shown)
            return
        if phase == "suspended":
            hands = {**held, "board": board} if rng.random() < 0.8 else held
            for one in put_right(rng, {name: tuple(laid) for name, laid in hands.items()}):
                shown = yield one
        elif phase in ("resolved", "idle"):
            if phase == "resolved" and rng.random() < 0.06:
                yield DealCorrected({name: tuple(laid) for name, laid in held.items()})
            return
        elif due.get("kind") == "card":
            further = next(cards, None)
            if further is None:
                yield RoundVoided("declared")
                return
            if way == "shoe":
                board += [further] if due["hand"] == "board" else []
                shown = yield CardDrawn(further, rng.choice((None, None, None, "up")))
            else:
                flop = 0 if board or ante else 2
                board += [further, *islice(cards, flop)]
                shown = yield DealCorrected({"board": tuple(board)})
        elif phase == "showdown" and way != "shoe":
            shown = yield DealCorrected({f"seat_{seat}": tuple(held[f"seat_{seat}"]) for seat in [due["seat"]]})
        elif due:
            seat, word = due["seat"], rng.choice(due["actions"])
            word = "fold" if "fold" in due["actions"] and rng.random() < 0.4 else word
            if rng.random() < 0.06:
                seat, word = rng.choice(order), rng.choice(OUT_OF_PLACE)
            amount = minimum * rng.choice((1, 2, 3, 8)) if word in ("bet", "raise", "stack", "blind_raise") else 0
            shown = yield SeatActed(seat, word, 1, amount)
            if rng.random() < 0.01:
                shown = yield CardDrawn(next(cards, "AS"))
        else:
            return


_BESIDE: Final[tuple[dict[str, Any], ...]] = ({}, {"minimum": 100, "maximum": 400})
_EXAMPLES: Final[dict[str, tuple[Any, ...]]] = {
    "minimum": (2, 100),
    "maximum": (0, 400),
    "percentage_cap": (0, 30),
    "entry": (0, 4_000),
}
SAMPLES: Final[dict[str, Sample]] = {
    "angola.holdem": Sample(holdem, beside=_BESIDE, examples=_EXAMPLES),
    "angola.omaha": Sample(omaha, beside=_BESIDE, examples=_EXAMPLES),
    "angola.synthetic-poker": Sample(synthetic, beside=_BESIDE, examples=_EXAMPLES),
}
