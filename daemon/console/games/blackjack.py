"""The console's data of blackjack."""

from typing import Final

from daemon.console.games.game import AFTER, BETS, ROUND, SHOE, ConsoleGame

_SEATS: Final = ("action", "seat_opened", "seat_closed", *SHOE, "card_exposed")
_ACTIONS: Final = ("hit", "stand", "double", "split", "insurance", "even_money", "surrender")

GAMES: Final = {
    "angola.blackjack": ConsoleGame(
        "blackjack", (*ROUND, *_SEATS, "jackpot_won", "jackpot_paid", "table_closed", *AFTER, *BETS), _ACTIONS
    ),
    "macau.blackjack": ConsoleGame("blackjack", (*ROUND, *_SEATS, *AFTER, *BETS), (*_ACTIONS, "five_cards", "decline")),
}
