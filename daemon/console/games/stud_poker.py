"""The console's data of stud poker."""

from typing import Final

from daemon.console.games.game import AFTER, BETS, ROUND, SHOE, ConsoleGame

_KEYS: Final = (
    *(*ROUND, "action", "seat_opened", "seat_closed", *SHOE, "card_exposed", "showdown"),
    *("jackpot_won", "jackpot_paid", *AFTER),
)
_ACTIONS: Final = ("ante", "raise", "fold")

GAMES: Final = {
    "angola.stud-poker": ConsoleGame("stud_poker", (*_KEYS, "fold_reversed", *BETS), _ACTIONS),
    "macau.stud-poker": ConsoleGame("stud_poker", (*_KEYS, *BETS), _ACTIONS),
}
