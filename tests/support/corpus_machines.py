"""A gaming machine for tables of the corpus: periods with games, prizes, changes and doubts, and people who approve."""

import random
from typing import Final

from corpus_dealing import Dealer, Options, Sample
from msgspec.structs import replace

from protocols.contract.events import (
    BetsOpened,
    JackpotPaid,
    JackpotWon,
    MachineApproved,
    MachineIdentified,
    MachineMeters,
    MachineUnreliable,
    RoundVoided,
    TableClosed,
)

LUCKY: Final = MachineIdentified(serial="1", paytable="LUCKY", return_bp=9000, credit=1, max_bet=500)
NAMES: Final = ("coin_in", "coin_out", "jackpot", "drop", "games_played")


def machine(rng: random.Random, _options: Options) -> Dealer:
    """Each period is opened, played and closed; some wait for two people, or are void."""
    meters = dict.fromkeys(NAMES, 0)
    yield LUCKY
    while True:
        yield BetsOpened()
        for _ in range(rng.randint(3, 12)):
            games = rng.randint(1, 5)
            meters["games_played"] += games
            meters["coin_in"] += rng.randint(0, 80) * games
            meters["coin_out"] += rng.randint(0, 70) * games
            shown = yield MachineMeters(dict(meters))
            if rng.random() < 0.1:
                won = JackpotWon("hall", rng.choice((0, 1)), amount=rng.randint(1, 900))
                yield won
                meters["jackpot"] += won.amount
                yield MachineMeters(dict(meters))
                yield JackpotPaid(won.pool, won.level, amount=won.amount)
            if rng.random() < 0.03:
                yield MachineUnreliable(why=rng.choice(("cleared", "memory", "program")))
                meters = dict.fromkeys(NAMES, rng.choice((0, 50)))
                shown = yield MachineMeters(dict(meters))
            if rng.random() < 0.03:  # another paytable, or a plan that nobody may approve
                shown = yield replace(LUCKY, paytable=rng.choice(("LUCKY", "GOLD")), return_bp=rng.choice((9000, 7900)))
            if shown["phase"] == "suspended" or rng.random() < 0.01:
                for name in ("ana", "rui"):
                    shown = yield MachineApproved(by=name)
            if shown["phase"] == "suspended":
                yield LUCKY
                for name in ("ana", "rui"):
                    yield MachineApproved(by=name)
        if rng.random() < 0.1:
            yield RoundVoided("equipment_fault")
        yield TableClosed()


SAMPLES: Final[dict[str, Sample]] = {
    "angola.gaming-machines": Sample(
        machine, examples={"largest_bet": (0, 400), "largest_step": (10**9, 300), "free_games": (0, 100)}
    ),
}
