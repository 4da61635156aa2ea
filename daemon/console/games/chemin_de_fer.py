"""The console's data of chemin de fer."""

from typing import Final

from daemon.console.games.game import BETS, ROUND, SHOE, ConsoleGame
from protocols.fdl.console import ACTIONS

_KEYS: Final = (*ROUND, "action", "seat_opened", "seat_closed", "hand_passed", *SHOE, "dealer_relieved", *BETS)
_IN_A_COUP: Final = ("show", "draw", "stand", "give", "refuse", "looks", "cards_to", "by_table", "discarded")
_BEFORE: Final = (
    *("bank", "banco", "banco_with_table", "banco_suivi", "association", "pass", "take", "auction", "bid", "bid_half"),
    *("garage", "halve", "reduce", "outside", "absent", "moved"),
)
FAULTS: Final = tuple(word for word in ACTIONS.values() if word.startswith("fault_"))


def _winner(facts: object) -> str:
    """Player, banker or tie, by its first letter."""
    winner: str = getattr(facts, "winner", "")
    return winner[:1].upper() or "?"


GAMES: Final = {
    "angola.chemin-de-fer": ConsoleGame("chemin_de_fer", _KEYS, (*_BEFORE, *_IN_A_COUP, *FAULTS), chip=_winner),
}
