"""The console's data of fantan."""

from typing import Any, Final

from daemon.console.games.game import AFTER, BETS, ROUND, ConsoleGame


def _chip(facts: Any) -> str:
    return "?" if facts.number is None else str(facts.number)


_KEYS: Final = (*ROUND, "buttons_separated", "buttons", *AFTER, *BETS)
GAMES: Final = {"macau.fantan": ConsoleGame("fantan", _KEYS, again_stands=True, chip=_chip, chips=("1", "2", "3", "4"))}
