"""Line outages that make events late or lost: no round of stud poker counts with another one's hands or players."""

from typing import Any

import pytest
import stud_outages
from helpers import at_length

from rules.angola.stud_poker import StudPoker as AngolaStudPoker, StudPokerOptions as AngolaStudPokerOptions
from rules.engine.ruleset import Ruleset
from rules.macau.stud_poker import StudPoker, StudPokerOptions

NIGHTS = at_length(60, 600)
ROUNDS = 60
LEAST_RIGHT = 0.7
"""Of all rounds, though nobody answers a question here: the share measured was 0.73."""


@pytest.mark.parametrize(
    ("ruleset", "burns"),
    [(StudPoker(StudPokerOptions()), False), (AngolaStudPoker(AngolaStudPokerOptions()), True)],
    ids=["macau", "angola"],
)
def test_stud_poker_counts_no_round_wrongly_and_most_of_them_rightly(ruleset: Ruleset[Any], burns: bool) -> None:
    right = 0
    for seed in range(NIGHTS):
        told, truth = stud_outages.night(seed, ROUNDS, burns=burns)
        counted, wrong = stud_outages.ends(ruleset, told, truth)
        assert not wrong, f"night {seed}: {wrong[0].round} rests on {wrong[0].evidence}"
        right += counted
    for seed in range(5000, 5000 + at_length(25, 100)):  # outages so often that an ante comes after its round
        told, truth = stud_outages.night(seed, ROUNDS, every=12.0, burns=burns)
        assert not stud_outages.ends(ruleset, told, truth)[1], f"night {seed}"
    assert right >= LEAST_RIGHT * NIGHTS * ROUNDS
