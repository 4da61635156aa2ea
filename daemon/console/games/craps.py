"""The console's data of craps."""

from typing import Final

from daemon.console.games.game import AFTER, BETS, ROUND, ConsoleGame

GAMES: Final = {
    "angola.craps": ConsoleGame(
        "craps",
        (*ROUND, "throw", "hand_passed", "dice_replaced", "dice_seized", "table_closed", *AFTER, *BETS),
        dice=2,
        null_throws=("", "a_die_off_the_table", "short_of_the_middle"),
        again_stands=True,
    ),
}
