"""The dealers of baccarat for the frozen corpus."""

import random
from collections.abc import Iterator
from typing import Final

from corpus_dealing import Dealer, Options, Sample, Shown, deck, wagers

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardsReturned,
    CutCardDrawn,
    DealCorrected,
    Event,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
)

BETS: Final = ("player", "banker", "tie", "player", "banker", "player_pair", "banker_pair", "nothing")
SHUFFLER: Final[Options] = {"device": "continuous", "decks": 6}


def angola(rng: random.Random, options: Options) -> Dealer:
    """Who burns a card where the display asks for it."""
    cards = deck(rng)
    shuffler = options.get("device") == "continuous"
    bell = options.get("opening") != "first_card"
    shown: Shown = {"phase": "idle", "detail": {}}
    while True:
        shown = yield ShoeStarted(options.get("decks", 8) if rng.random() < 0.97 else 6)
        for _ in range(9):
            if shown["phase"] == "burning":
                shown = yield CardDrawn(next(cards))
        for _ in range(rng.randint(2, 15)):
            if bell or rng.random() < 0.5:
                shown = yield BetsOpened()
                for one in wagers(rng, BETS):
                    yield one
            if rng.random() < 0.02:
                shown = yield RoundVoided("nobody bets")
                continue
            if bell or rng.random() < 0.2:
                shown = yield BetsClosed()
            if shown["detail"].get("next") == "burn" or (not bell and not shuffler):
                if rng.random() < 0.05:
                    yield CutCardDrawn()
                shown = yield CardDrawn(next(cards))
            hands: dict[str, list[str]] = {"player": [], "banker": []}
            for turn in range(6):
                side = ("player", "banker")[turn % 2] if turn < 4 else shown["detail"].get("next")
                if side in hands:
                    card = next(cards)
                    hands[side].append(card)
                    shown = yield CardDrawn(card, "up" if rng.random() < 0.03 else None)
            if rng.random() < 0.05:
                shown = yield CutCardDrawn()
            if shown["phase"] == "suspended":
                for one in _put_right(rng, {name: tuple(hand) for name, hand in hands.items()}):
                    shown = yield one
            if shuffler:
                yield CardsReturned(sum(map(len, hands.values())))
            if rng.random() < 0.9:
                shown = yield RoundPaid()
            if shown["phase"] == "ended":
                break
        if rng.random() < 0.05:
            yield ShoeEmptied()


def _put_right(rng: random.Random, hands: dict[str, tuple[str, ...]]) -> Iterator[Event]:
    """What a person says of a coup that waits: the hands, in part, or that it is void."""
    match rng.randrange(5):
        case 0:
            yield RoundVoided("dealing error")
        case 1:
            yield DealCorrected({"player": hands["player"][:1], "banker": ()})
        case _:
            yield DealCorrected(hands)


OFFERED: Final[tuple[list[str], ...]] = ([], ["player", "banker", "tie"])
SAMPLES: Final[dict[str, Sample]] = {
    "angola.baccarat": Sample(
        angola,
        OFFERED,
        ({}, SHUFFLER, {"minimum": 5}, {"tie_minimum": 5}, {"pair_minimum": 5}),
        {
            "minimum": (0, 5),
            "tie_minimum": (0, 5),
            "pair_minimum": (0, 5),
            "maximum": (0, 350),
            "tie_maximum": (0, 75),
            "pair_maximum": (0, 40),
        },
    ),
    "angola.baccarat-macau": Sample(angola, OFFERED, ({}, SHUFFLER), {"maximum_difference": (0, 200)}),
}
