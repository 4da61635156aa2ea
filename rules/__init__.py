"""The games: one file for each text of the law, registered here. A text's duties by the clock are watched beside it."""

from typing import Any

from rules.angola import american_roulette, craps, french_bank, french_roulette
from rules.angola.baccarat import AngolaBaccarat
from rules.angola.baccarat_macau import AngolaBaccaratMacau
from rules.angola.blackjack import Blackjack as AngolaBlackjack
from rules.angola.cussec import Cussec as AngolaCussec
from rules.angola.stud_poker import StudPoker as AngolaStudPoker
from rules.engine.duties import watched
from rules.engine.ruleset import Ruleset
from rules.macau.baccarat import Baccarat
from rules.macau.blackjack import Blackjack
from rules.macau.cussec import Cussec
from rules.macau.fantan import Fantan
from rules.macau.fish_prawn_crab import FishPrawnCrab
from rules.macau.roulette import Roulette
from rules.macau.stud_poker import StudPoker

ANGOLA: tuple[type[Ruleset[Any]], ...] = (
    watched(american_roulette.AmericanRoulette, american_roulette.DUTIES),
    AngolaBaccarat,
    AngolaBaccaratMacau,
    AngolaBlackjack,
    watched(craps.Craps, craps.DUTIES),
    AngolaCussec,
    watched(french_bank.FrenchBank, french_bank.DUTIES),
    watched(french_roulette.FrenchRoulette, french_roulette.DUTIES),
    AngolaStudPoker,
)
MACAU: tuple[type[Ruleset[Any]], ...] = (Baccarat, Blackjack, Cussec, Fantan, FishPrawnCrab, Roulette, StudPoker)
RULESETS: dict[str, type[Ruleset[Any]]] = {ruleset.id: ruleset for ruleset in (*ANGOLA, *MACAU)}
