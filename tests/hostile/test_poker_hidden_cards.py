"""Of a hand of poker nothing that is published depends on cards that nobody has shown.

As `test_hidden_cards.py` does it: two tables play the same script, and at the second every card that lies face down is
another one. Everything that a reader of the broker may receive must be the same at both, byte for byte.
"""

import random
from typing import Any

import pytest
from helpers import at_length
from msgspec.structs import replace
from poker_hands import PokerTable

from protocols.contract.events import CardDrawn, Event
from rules.angola.holdem import Holdem
from rules.angola.omaha import Omaha
from rules.angola.synthetic_poker import SyntheticPoker
from tests.hostile.test_hidden_cards import Pair, compared

GAMES = (Holdem, Omaha, SyntheticPoker)
DEALS = at_length(40, 3_000)


class Hand:
    """One hand; `hidden` are the places of the script at which a card lies face down, and of whose hand it is."""

    def __init__(self, kind: Any, rng: random.Random) -> None:
        self.rng = rng
        ruleset = kind(kind.Options())
        self.poker = PokerTable(ruleset, [5_000] * rng.randint(4, 7))
        self.deck = sorted(kind.variant.ranking.deck)
        rng.shuffle(self.deck)
        self.hidden: dict[int, int] = {}
        self.shown: set[int] = set()
        self.seats = len(self.poker.stacks)
        self.cards = kind.variant.ranking.cards
        self.ante = kind.variant.ante

    def card(self, owner: int = -1) -> None:
        if owner >= 0:
            self.hidden[len(self.poker.told)] = owner
        self.poker.cards(self.deck.pop())

    def play(self, *, to_the_end: bool) -> None:
        poker, order = self.poker, list(range(1, self.seats + 1))
        poker.open(*(order if self.ante else order[:2]))
        for place in range(self.seats * self.cards):
            self.card(order[place % self.seats])
        while poker.view.phase not in ("showdown", "resolved"):
            due = poker.detail["due"]
            if due["kind"] == "card":
                self.card(0) if due["hand"] == "burn" else self.card()
                continue
            seat, able = poker.due
            word = self.rng.choice(able)
            poker.acts(f"{seat} {word} {self.rng.choice((200, 400, 5000)) if word in ('bet', 'raise') else 0}")
            if self.rng.random() < 0.05:
                poker.acts(f"{seat} show")  # too early: the hand goes on
        while to_the_end and poker.view.phase == "showdown":
            seat, word = poker.due[0], self.rng.choice(("show", "show", "muck"))
            self.shown |= {seat} if word == "show" else set()
            poker.acts(f"{seat} {word}")

    def course(self) -> list[Pair]:
        """The script, and that of the other table: cards that were shown in the end are the same."""
        spare = iter(self.rng.sample(self.deck, len(self.deck)))
        pairs: list[Pair] = []
        for place, seen in enumerate(self.poker.told):
            event: Event = seen.event
            other = event
            if (
                isinstance(event, CardDrawn)
                and self.hidden.get(place, -1) >= 0
                and self.hidden[place] not in self.shown
            ):
                other = replace(event, card=next(spare, event.card))
            pairs.append((event, other))
        return pairs


@pytest.mark.parametrize("kind", GAMES)
@pytest.mark.parametrize("to_the_end", [False, True])
def test_a_hand_tells_no_card_that_nobody_has_shown(kind: Any, to_the_end: bool) -> None:
    """Before the showdown no own card; after it none of a hand given up, nor of a winner whom nobody called."""
    rng = random.Random(f"{kind.id} {to_the_end}")
    different = 0
    for _ in range(DEALS):
        hand = Hand(kind, rng)
        hand.play(to_the_end=to_the_end)
        if to_the_end or hand.poker.view.phase == "showdown":
            different += compared(kind.id, {}, hand.course()) > 0
    assert different > DEALS // 10
