"""The games: one file for each text of the law, registered here, with a module for its duties by the clock.

A game is loaded on first use: all of them together take 4 MiB and a twentieth of a second.
"""

from collections.abc import MutableMapping
from importlib import import_module
from typing import Any

from protocols.on_demand import OnDemand
from rules.engine.duties import watched
from rules.engine.ruleset import Ruleset

__all__ = ["RULESETS"]

# By the ruleset's id, which is that of its file, the class in it.
_CLASSES = {
    "angola.american-roulette": "AmericanRoulette",
    "angola.baccarat": "AngolaBaccarat",
    "angola.baccarat-macau": "AngolaBaccaratMacau",
    "angola.blackjack": "Blackjack",
    "angola.chemin-de-fer": "CheminDeFer",
    "angola.craps": "Craps",
    "angola.cussec": "Cussec",
    "angola.french-bank": "FrenchBank",
    "angola.french-roulette": "FrenchRoulette",
    "angola.gaming-machines": "GamingMachines",
    "angola.holdem": "Holdem",
    "angola.omaha": "Omaha",
    "angola.stud-poker": "StudPoker",
    "angola.synthetic-poker": "SyntheticPoker",
    "macau.baccarat": "Baccarat",
    "macau.blackjack": "Blackjack",
    "macau.cussec": "Cussec",
    "macau.fantan": "Fantan",
    "macau.fish-prawn-crab": "FishPrawnCrab",
    "macau.roulette": "Roulette",
    "macau.stud-poker": "StudPoker",
}


def _ruleset(name: str) -> type[Ruleset[Any]]:
    module = import_module(f"rules.{name.replace('-', '_')}")
    kind: type[Ruleset[Any]] = getattr(module, _CLASSES[name])
    duties = getattr(module, "DUTIES", ())
    return watched(kind, duties) if duties else kind


RULESETS: MutableMapping[str, type[Ruleset[Any]]] = OnDemand(_CLASSES, _ruleset)
