"""The console's data of roulette."""

from typing import Final

from daemon.console.games.game import AFTER, BALL, BETS, ROUND, ConsoleGame

_ANGOLA: Final = (*ROUND, *BALL, "ball_changed", "dealer_relieved", "table_closed")
_POCKETS: Final = tuple(map(str, range(37)))

GAMES: Final = {
    "angola.american-roulette": ConsoleGame(
        "roulette", (*_ANGOLA, "seat_opened", "seat_closed", *BETS), pockets=_POCKETS
    ),
    "angola.french-roulette": ConsoleGame("roulette", (*_ANGOLA, *BETS), pockets=_POCKETS, again_stands=True),
    "macau.roulette": ConsoleGame("roulette", (*ROUND, *BALL, *AFTER, *BETS), pockets=_POCKETS),
}
