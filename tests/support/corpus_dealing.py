"""What the dealers of the frozen corpus share (tests/support/corpus.py)."""

import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from protocols.contract.events import DealCorrected, Event, RoundVoided, WagerPlaced, WagerWithdrawn
from rules.games.cards import DECK

Options: TypeAlias = dict[str, Any]
Shown: TypeAlias = dict[str, Any]
"""A view as JSON has it: round, phase, detail."""
Dealer: TypeAlias = Generator[Event, Shown, None]


class Sample(Struct, frozen=True):
    """How a ruleset is sampled: its dealer, values of the option `bets_offered`, and what an option may need beside it.

    Of `beside` the first is taken with which the value of an option is allowed. `examples`: values of options that are
    free, by name.
    """

    dealer: Callable[[random.Random, Options], Dealer]
    bets_offered: tuple[list[str], ...] = ([],)
    beside: tuple[Options, ...] = ({},)
    examples: Mapping[str, tuple[Any, ...]] = {}


def wagers(rng: random.Random, bets: Sequence[str], most: int = 4, seats: int = 7) -> Generator[Event, Any, None]:
    """Some chips, some of them taken back."""
    for _ in range(rng.randint(0, most)):
        seat, bet = rng.randint(1, seats), rng.choice(bets)
        yield WagerPlaced(seat, bet, rng.choice((1, 5, 10, 25, 100, 333)))
        if rng.random() < 0.15:
            yield WagerWithdrawn(seat, bet, rng.choice((0, 0, 5, 500)))


def deck(rng: random.Random, ranks: str = "") -> Iterator[str]:
    """Cards without end, of these ranks or of a few: what is rare with all of them comes often."""
    while True:
        wanted = ranks or rng.choice(("A23456789TJQK", "A23456789TJQK", "A7T8", "KQ6", "A23456"))
        cards = [card for card in DECK if card[0] in wanted] * 4
        rng.shuffle(cards)
        yield from cards[: rng.randint(10, len(cards))]


def put_right(rng: random.Random, hands: dict[str, tuple[str, ...]]) -> Iterator[Event]:
    """What a person says of a round that waits: the hands, once or twice, in part, or that it is void."""
    match rng.randrange(6):
        case 0:
            yield RoundVoided("dealing error")
        case 1:
            pass
        case 2:
            some = rng.sample(sorted(hands), max(len(hands) - 1, 1))
            yield DealCorrected({name: hands[name] for name in sorted(some)})
        case 3:
            yield DealCorrected(hands)
            yield DealCorrected(hands)
        case _:
            yield DealCorrected(hands)
