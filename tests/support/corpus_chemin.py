"""The dealer of chemin de fer for the frozen corpus (tests/support/corpus.py)."""

import random
from collections.abc import Generator
from typing import Any, Final

from corpus_dealing import Dealer, Options, Sample, put_right

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CutCardDrawn,
    DealCorrected,
    Event,
    HandPassed,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from rules.games.cards import DECK

SEATS: Final = (2, 3, 4, 5, 7, 9)
HOPELESS: Final = ("bank_missing", "cover_missing", "too_few_players", "pot_unbalanced", "stakes_unknown", "last_coup")
BETWEEN: Final = (
    *("pass", "pass", "take", "take", "auction", "bid", "bid", "bid_half", "garage", "halve", "reduce", "outside"),
    *("absent", "moved", "association", "bank", "banco"),
)
FAULTS: Final = (
    *(
        "by_table",
        "discarded",
        "cards_to",
        "looks",
        "banco_suivi",
        "fault_76",
        "fault_105b",
        "fault_105c",
        "fault_105d",
    ),
    *("fault_105e", "fault_105g", "fault_105i", "fault_105j", "fault_105m", "fault_107a", "fault_107c", "draw", "give"),
)


def dealt(rng: random.Random, options: Options) -> Dealer:
    least = options.get("minimum_bank", 1000)
    while True:
        for seat in SEATS:
            yield SeatOpened(seat)
        for _ in range(rng.randint(1, 3)):
            yield ShoeStarted(6)
            shown = yield CardDrawn(rng.choice(("KS", "2S")))
            if shown["phase"] == "burning":
                yield CardDrawn("5H")
            for _ in range(rng.randint(2, 8)):
                yield from _between(rng, shown, least)
                shown = yield from _coup(rng, least)
            if rng.random() < 0.5:
                shown = yield CutCardDrawn()
                shown = yield from _coup(rng, least)
        if rng.random() < 0.3:
            yield SeatClosed(rng.choice(SEATS))


def _between(rng: random.Random, shown: Any, least: int) -> Dealer:
    """What is decided of the bank, by whom it is and by others."""
    for _ in range(rng.randint(0, 4) if rng.random() < 0.4 else 0):
        seat = shown["detail"].get("banker") or 2
        seat = seat if rng.random() < 0.5 else rng.choice((*SEATS, 12, 23))
        shown = yield SeatActed(seat, rng.choice(BETWEEN), 1, least + 100 * rng.randint(-1, 5))
    if shown["detail"].get("offer") or rng.random() < 0.02:
        yield HandPassed(rng.choice((0, *SEATS)))


def _coup(rng: random.Random, least: int) -> Generator[Event, Any, Any]:
    shown = yield BetsOpened()
    if not shown["detail"].get("bank") and rng.random() < 0.99:
        banker = shown["detail"].get("banker") or 2
        shown = yield SeatActed(banker, "bank", 1, least * rng.randint(2, 8))
    punters = [seat for seat in SEATS if seat != shown["detail"].get("banker")]
    shown = yield WagerPlaced(rng.choice(punters), "cover", 100)
    for _ in range(rng.randint(1, 5)):
        seat, mood = rng.choice((*SEATS, *SEATS, 12, 23)), rng.random()
        if mood < 0.1:
            shown = yield SeatActed(seat, rng.choice(("banco", "banco_with_table", "banco_suivi")))
        elif mood < 0.2:
            shown = yield WagerWithdrawn(seat, "cover", 0)
        else:
            shown = yield WagerPlaced(seat, rng.choice(("cover", "cover", "half")), 50 * rng.randint(1, 12))
    shown = yield BetsClosed()
    for _ in range(40):
        detail, phase = shown["detail"], shown["phase"]
        due = detail.get("due") or {}
        if phase == "suspended" and detail["reason"]["code"] in HOPELESS:
            return (yield RoundVoided("declared"))
        if phase == "suspended":
            if rng.random() < 0.1:
                return (yield RoundVoided("declared"))
            for one in put_right(rng, {"player": _hand(rng), "banker": _hand(rng)}):
                shown = yield one
        elif phase in ("resolved", "idle", "ended"):
            break
        elif phase == "betting":  # the bank or the bell was lost
            bank = SeatActed(detail.get("banker") or 2, "bank", 1, least)
            shown = yield BetsClosed() if detail.get("bank") else bank
        elif rng.random() < 0.015:
            shown = yield SeatActed(rng.choice((detail["banker"], detail.get("punter") or 2)), rng.choice(FAULTS))
        elif due.get("kind") == "card":
            shown = yield CardDrawn(rng.choice(DECK), rng.choice((None,) * 40 + ("up",)))
        elif due:
            shown = yield SeatActed(due["seat"] or 2, rng.choice(due["actions"]))
        else:
            return (yield RoundVoided("declared"))
    if rng.random() < 0.05:
        shown = yield DealCorrected({"player": _hand(rng), "banker": _hand(rng)})
    if rng.random() < 0.9:
        shown = yield RoundPaid()
    return shown


def _hand(rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.sample(DECK, rng.choice((2, 2, 3, 4))))


SAMPLES: Final[dict[str, Sample]] = {
    "angola.chemin-de-fer": Sample(
        dealt,
        beside=({}, {"percentage": 50, "smallest_chip": 10}),
        examples={
            "minimum_bank": (1000, 2000),
            "minimum_bet": (50, 100),
            "auction_base": (0, 2000),
            "auction_step": (100, 500),
            "percentage": (0, 50),
        },
    )
}
