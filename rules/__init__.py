"""The games: one file each, registered here."""

from typing import Any

from rules.angola.blackjack import Blackjack as AngolaBlackjack
from rules.engine.ruleset import Ruleset
from rules.macau.baccarat import Baccarat
from rules.macau.blackjack import Blackjack
from rules.macau.cussec import Cussec
from rules.macau.fantan import Fantan
from rules.macau.fish_prawn_crab import FishPrawnCrab
from rules.macau.roulette import Roulette
from rules.macau.stud_poker import StudPoker

RULESETS: dict[str, type[Ruleset[Any]]] = {
    ruleset.id: ruleset
    for ruleset in (AngolaBlackjack, Baccarat, Blackjack, Cussec, Fantan, FishPrawnCrab, Roulette, StudPoker)
}
