"""The console's data of games with shaken dice."""

from typing import Final

from daemon.console.games.game import AFTER, BETS, DICE, DOME, ROUND, ConsoleGame

_KEYS: Final = (*ROUND, *DOME, *DICE, *AFTER, *BETS)

GAMES: Final = {
    "angola.cussec": ConsoleGame("shaken_dice", _KEYS, dice=3),
    "macau.cussec": ConsoleGame("shaken_dice", _KEYS, dice=3),
    "macau.fish-prawn-crab": ConsoleGame(
        "shaken_dice", _KEYS, dice=3, figures=("fish", "prawn", "gourd", "coin", "crab", "rooster")
    ),
}
