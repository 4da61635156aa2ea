"""Which game a ruleset is. How a result is drawn and counted depends on the game, not on the text of the law."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Game: TypeAlias = Literal[
    "baccarat", "blackjack", "craps", "fantan", "french_bank", "roulette", "shaken_dice", "stud_poker"
]

GAMES: Final[Mapping[str, Game]] = {
    "angola.american-roulette": "roulette",
    "angola.baccarat": "baccarat",
    "angola.baccarat-macau": "baccarat",
    "angola.blackjack": "blackjack",
    "angola.craps": "craps",
    "angola.cussec": "shaken_dice",
    "angola.french-bank": "french_bank",
    "angola.french-roulette": "roulette",
    "angola.stud-poker": "stud_poker",
    "macau.baccarat": "baccarat",
    "macau.blackjack": "blackjack",
    "macau.cussec": "shaken_dice",
    "macau.fantan": "fantan",
    "macau.fish-prawn-crab": "shaken_dice",
    "macau.roulette": "roulette",
    "macau.stud-poker": "stud_poker",
}
"""By ruleset."""
