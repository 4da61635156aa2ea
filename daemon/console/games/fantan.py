"""Fantan: what the console knows of its games."""

from typing import Final

from daemon.console.games.game import AFTER, BETS, ROUND, ConsoleGame

GAMES: Final = {
    "macau.fantan": ConsoleGame("fantan", (*ROUND, "buttons_separated", "buttons", *AFTER, *BETS), again_stands=True),
}
