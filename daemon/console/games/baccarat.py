"""The console's data of baccarat."""

from typing import Final

from daemon.console.games.game import AFTER, BETS, ROUND, SHOE, ConsoleGame

_ANGOLA: Final = ConsoleGame("baccarat", (*ROUND, *SHOE, "dealer_relieved", "table_closed", *BETS))

GAMES: Final = {
    "angola.baccarat": _ANGOLA,
    "angola.baccarat-macau": _ANGOLA,
    "macau.baccarat": ConsoleGame("baccarat", (*ROUND, *SHOE, "jackpot_won", "jackpot_paid", *AFTER, *BETS)),
}
