"""The console's data of French bank."""

from typing import Final

from daemon.console.games.game import BETS, DICE, ROUND, ConsoleGame

GAMES: Final = {
    "angola.french-bank": ConsoleGame(
        "french_bank", (*ROUND, "throw", *DICE[1:], "dealer_relieved", "table_closed", *BETS), dice=3
    ),
}
