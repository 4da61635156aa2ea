"""Gaming machines: what the console knows of them."""

from typing import Any, Final

from daemon.console.games.game import ConsoleGame


def _return(facts: Any) -> str:
    """What came back of the bets of the period, in per cent."""
    bets = facts.counted.get("bets", 0)
    back = sum(facts.counted.get(name, 0) for name in ("prizes", "by_hand")) - facts.counted.get("jackpots", 0)
    return f"{100 * back // bets}%" if bets else "-"


GAMES: Final = {
    "angola.gaming-machines": ConsoleGame(
        "slot", ("bets_opened", "approve_machine", "void", "table_closed"), chip=_return
    ),
}
