"""The games: one file each, registered here."""

from typing import Any

from rules.macau_baccarat import Baccarat
from rules.macau_blackjack import Blackjack
from rules.macau_cussec import Cussec
from rules.macau_fantan import Fantan
from rules.macau_fish_prawn_crab import FishPrawnCrab
from rules.macau_roulette import Roulette
from rules.macau_stud_poker import StudPoker
from rules.ruleset import Ruleset

RULESETS: dict[str, type[Ruleset[Any]]] = {
    ruleset.id: ruleset for ruleset in (Baccarat, Blackjack, Cussec, Fantan, FishPrawnCrab, Roulette, StudPoker)
}
