"""The console's data of each game: its family, the keys of the dealer's page, a short word for a result.

A file of this package holds the games of one family; a new game adds its own file. The files are found automatically.

Called by: the pages, the dealer's page, fairness and the drawings of rounds.
May import: the facts in protocols.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from daemon.console.games.game import ConsoleGame

__all__ = ["GAMES", "ConsoleGame", "family_of"]


def _games() -> dict[str, ConsoleGame]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [getattr(module, "GAMES", {}) for module in modules]
    return dict(sorted(one for games in found for one in games.items()))


GAMES: Final[Mapping[str, ConsoleGame]] = _games()
"""The games by ruleset."""


def family_of(ruleset: str) -> str:
    """The family of a game; "" for one without data here."""
    return GAMES[ruleset].family if ruleset in GAMES else ""
