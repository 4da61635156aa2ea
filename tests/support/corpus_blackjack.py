"""Angola's blackjack in the frozen corpus (tests/support/corpus.py): its dealer and its samples."""

import random
from collections.abc import Iterator
from typing import Any, Final, Literal

from corpus_dealing import Dealer, Options, Sample, Shown, deck, wagers

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDamaged,
    CardDrawn,
    CardExposed,
    CardJammed,
    CardsLoaded,
    CardsReturned,
    CutCardDrawn,
    DealCorrected,
    DeckChecked,
    Event,
    JamCleared,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeStarted,
    SupervisorKeyed,
    TableClosed,
    WagerPlaced,
    WagerWithdrawn,
)

BETS: Final = ("main", "main:2", "main:5", "jackpot", "jackpot", "insurance", "nothing")
ACTIONS: Final = (
    *("stand", "stand", "stand", "stand", "hit", "hit", "hit", "hit", "split", "split", "split", "double", "double"),
    *("surrender", "insurance", "even_money", "five_cards", "decline"),
)
JACKPOT: Final[Options] = {
    "jackpot": "manual",
    "jackpot_bet": 5,
    "jackpot_seed": 50_000,
    "jackpot_prizes": ["AAAA=pool", "AAA/colour=1/3", "777=1/10", "AA=fixed", "88/suit=fixed"],
}


def _put_right(rng: random.Random, hands: dict[str, tuple[str, ...]]) -> Iterator[Event]:
    """What a person says of a round that waits."""
    chance = rng.random()
    if chance < 0.15:
        yield RoundVoided("dealing error")
    elif chance < 0.3:
        yield DealCorrected({**hands, "held": (rng.choice(("9D", "AC")),)})
    elif chance < 0.9:
        yield DealCorrected(hands)


def _shuffler(rng: random.Random) -> Iterator[Event]:
    """What happens at an automatic shuffler between two rounds."""
    chance = rng.random()
    if chance < 0.7:
        yield CardsReturned(rng.choice((0, 4, 6, 9)))
    elif chance < 0.8:
        yield from (CardJammed("infeed"), SupervisorKeyed(present=rng.random() < 0.7), JamCleared("infeed"))
    elif chance < 0.85:
        yield from (CardDamaged(), SupervisorKeyed(present=True), CardsLoaded(1), SupervisorKeyed(present=False))
    elif chance < 0.9:
        yield from (TableClosed(), SupervisorKeyed(present=rng.random() < 0.7))
        yield DeckChecked(312, rng.choice((312, 312, 311)), good=rng.random() < 0.8)
        for packet in range(1, rng.choice((1, 2, 2)) + 1):
            yield CardsLoaded(156, packet)
        yield SupervisorKeyed(present=False)


def _next(rng: random.Random, shown: Shown, hands: dict[str, tuple[str, ...]], cards: Iterator[str]) -> list[Event]:
    """What the table waits for, mostly; none where it waits for nothing."""
    due: dict[str, Any] = shown["detail"].get("due") or {}
    face: Literal["up", "down"] | None = rng.choice((*[None] * 12, "down", "up"))
    if due.get("kind") == "card":
        card, name = next(cards), due["hand"]
        if name != "burn":
            hands[name] = (*hands.get(name, ()), card)
        seat, bet = name.partition(".")[0], rng.choice(("double:2", "split:5", "double:5"))
        if seat.isdecimal() and rng.random() < 0.1:
            return [WagerPlaced(int(seat), bet, rng.choice((10, 25, 101))), CardDrawn(card, face)]
        return [CardDrawn(card, face)]
    if due.get("kind") == "decision":
        amount = rng.choice((0, 0, 0, 0, 0, 0, 0, 5))
        if rng.random() < 0.03:
            return [CardDrawn(next(cards), face)]  # without a request
        action = rng.choice(due["actions"]) if rng.random() < 0.85 else rng.choice(ACTIONS)
        acted = SeatActed(due["seat"], action, int(due["hand"].partition(".")[2]), amount)
        insured = [WagerPlaced(due["seat"], rng.choice(("insurance", "insurance:2")), 5)]
        return [*(insured if rng.random() < 0.05 else ()), acted]
    return []


def blackjack(rng: random.Random, options: Options) -> Dealer:
    shuffler = options.get("device") == "continuous"
    while True:
        cards = deck(rng)
        shown: Shown = yield ShoeStarted(options.get("decks", 6))
        for _ in range(rng.randint(2, 10)):
            for _ in range(3):
                if shown["phase"] == "burning":
                    shown = yield CardDrawn(next(cards))
            for seat in range(1, 8) if rng.random() < 0.1 else ():
                yield SeatOpened(seat) if rng.random() < 0.5 else SeatClosed(seat)
            shown = yield BetsOpened()
            hands: dict[str, tuple[str, ...]] = {"dealer": ()}
            for seat in sorted(rng.sample(range(1, 8), rng.choice((1, 1, 2, 3)))):
                hands[f"{seat}.1"] = ()
                shown = yield WagerPlaced(
                    seat, rng.choice(("main", "main", "main", "main:5")), rng.choice((10, 25, 101))
                )
                if rng.random() < 0.4:
                    shown = yield WagerPlaced(seat, "jackpot", 5)
            for one in wagers(rng, BETS):
                shown = yield one
            shown = yield BetsClosed()
            if rng.random() < 0.2:
                shown = yield WagerWithdrawn(rng.randint(1, 7), "jackpot")
            for _ in range(60):
                if shown["phase"] == "suspended":
                    for one in _put_right(rng, hands):
                        shown = yield one
                    if shown["phase"] == "suspended":
                        break
                    continue
                happens = _next(rng, shown, hands, cards)
                if not happens:
                    break
                for one in happens:
                    shown = yield one
                if rng.random() < 0.003:
                    shown = yield CardExposed("dealer")
            if rng.random() < 0.03:
                yield CutCardDrawn()
            if shown["phase"] == "resolved" and rng.random() < 0.06:
                name = rng.choice(sorted(hands))
                yield DealCorrected({name: (*hands[name][:-1], next(cards))})
            for one in _shuffler(rng) if shuffler else ():
                yield one
            if rng.random() < 0.85:
                shown = yield RoundPaid()


SAMPLES: Final[dict[str, Sample]] = {
    "angola.blackjack": Sample(
        blackjack,
        beside=({}, {"device": "continuous"}, {"minimum": 10}, JACKPOT),
        examples={
            "decks": (4, 6),
            "warn_card_within": (0, 10),
            "minimum": (0, 10),
            "maximum": (0, 300),
            "jackpot_bet": (0, 5),
            "jackpot_seed": (0, 50_000),
            "jackpot_prizes": ([], JACKPOT["jackpot_prizes"]),
        },
    )
}
