"""Line outages that make events late or lost: no coup ever counts with other hands than were dealt."""

import outages
import pytest
from helpers import at_length

from rules.macau.baccarat import Baccarat, BaccaratOptions

NIGHTS = at_length(20, 400)
COUPS = 60
# Right of 1200 coups (20 nights) at least: what the rules gave that did not put a late event at its time.
BEFORE = {("bell", False): 1074, ("bell", True): 1031, ("first_card", False): 694, ("first_card", True): 284}


@pytest.mark.parametrize(("opening", "lossy"), sorted(BEFORE))
def test_baccarat_counts_no_coup_wrongly_and_most_of_them_rightly(opening: str, lossy: bool) -> None:
    ruleset = Baccarat(BaccaratOptions(opening="bell" if opening == "bell" else "first_card", burn="fixed"))
    right = 0
    for seed in range(NIGHTS):
        night = outages.night(seed, COUPS, bell=opening == "bell", lossy=lossy)
        counted, _, wrong = outages.ends(ruleset, night)
        assert not wrong, f"night {seed}: {wrong[0].round} rests on {wrong[0].evidence}"
        right += len(counted)
    assert right * 20 >= BEFORE[opening, lossy] * NIGHTS
