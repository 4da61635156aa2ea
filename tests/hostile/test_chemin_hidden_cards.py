"""Of a coup of chemin de fer nothing that is published depends on cards that nobody has shown.

As `test_hidden_cards.py` does it: two tables play the same script, and at the second every card that lies face down is
another one. Everything that a reader of the broker may receive must be the same at both, byte for byte.
"""

import random

import pytest
from chemin_hands import CheminTable
from helpers import at_length
from msgspec.structs import replace

from protocols.contract.events import BetsClosed, CardDrawn, Event
from rules.games.cards import DECK
from tests.hostile.test_hidden_cards import Pair, compared

GAME = "angola.chemin-de-fer"
COUPS = at_length(40, 3_000)
STAGES = ("dealt", "said", "turned", "drawn", "discarded")
"""How far a coup goes: the first cards lie there; the punter has spoken; the banker's lie open; all but the end."""


def course(rng: random.Random, stage: str) -> list[Pair]:
    """The script of one coup, and that of the other table."""
    table, hidden = CheminTable(), dict[int, str]()
    table.opens(1000, "2 300", "3 200")
    if rng.random() < 0.3:
        table.acts("4 banco")
    table.tell(BetsClosed())
    for place in range(4):
        hidden[len(table.told)] = ("player", "banker")[place % 2]
        table.cards(rng.choice(DECK))
    if stage != "dealt":
        words = ["draw", "stand"] if rng.random() < 0.2 else [rng.choice(("draw", "stand"))]
        table.says(*(f"player {word}" for word in words))
    if stage in ("turned", "drawn"):
        table.says("banker show")
        hidden = {place: side for place, side in hidden.items() if side == "player"}
    while stage == "drawn" and table.view.phase in ("dealing", "deciding"):
        due = table.detail["due"]
        if due["kind"] == "card":
            table.cards(rng.choice(DECK))
        else:
            table.acts(f"{due['seat']} {rng.choice(due['actions'])}")
    if stage == "discarded":
        table.says(f"{rng.choice(('player', 'banker'))} discarded")
    pairs: list[Pair] = []
    for place, seen in enumerate(table.told):
        event: Event = seen.event
        other = event
        if isinstance(event, CardDrawn) and place in hidden:
            other = replace(event, card=rng.choice([card for card in DECK if card != event.card]))
        pairs.append((event, other))
    return pairs


@pytest.mark.parametrize("stage", STAGES)
def test_a_coup_tells_no_card_that_lies_face_down(stage: str) -> None:
    rng = random.Random(f"hidden cards {stage}")
    different = sum(compared(GAME, {}, course(rng, stage)) > 0 for _ in range(COUPS))
    assert different > COUPS // 2
