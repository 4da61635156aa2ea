"""The console's data of gaming machines."""

from typing import Any, Final

from daemon.console.games.game import ConsoleGame


def _return(facts: Any) -> str:
    """The return of the period: prizes as a percentage of the bets."""
    bets = facts.counted.get("bets", 0)
    back = sum(facts.counted.get(name, 0) for name in ("prizes", "by_hand")) - facts.counted.get("jackpots", 0)
    return f"{100 * back // bets}%" if bets else "-"


GAMES: Final = {
    "angola.gaming-machines": ConsoleGame(
        "slot", ("bets_opened", "approve_machine", "void", "table_closed"), chip=_return
    ),
}
