"""The console's data of poker without a bank: hold'em, Omaha and synthetic poker."""

from typing import Any, Final

from daemon.console.games.game import ROUND, ConsoleGame

_KEYS: Final = (
    *(*ROUND, "action", "seat_opened", "seat_closed", "hand_passed", "card_exposed", "card_damaged", "correct"),
    *("new_shoe", "dealer_relieved"),
)
_IN_A_HAND: Final = ("post", "fold", "check", "call", "bet", "raise", "all_in", "show", "muck")
_BY_THE_DEALER: Final = ("dead", "absent", "skipped")
_BETWEEN: Final = ("stack", "rest", "return")


def _won(facts: Any) -> str:
    """The seats that won a pot."""
    return " ".join(seat.removeprefix("seat_") for seat, fate in facts.seats.items() if fate == "wins") or "?"


GAMES: Final = {
    "angola.holdem": ConsoleGame("poker", _KEYS, (*_IN_A_HAND, *_BY_THE_DEALER, *_BETWEEN), chip=_won),
    "angola.omaha": ConsoleGame("poker", _KEYS, (*_IN_A_HAND, *_BY_THE_DEALER, *_BETWEEN), chip=_won),
    "angola.synthetic-poker": ConsoleGame(
        "poker", _KEYS, (*_IN_A_HAND, "blind_raise", "blind_reraise", *_BY_THE_DEALER, *_BETWEEN), chip=_won
    ),
}
