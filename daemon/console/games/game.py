"""The console's data of a game, and the keys that many games have."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

ROUND: Final = ("bets_opened", "bell", "paid", "void")
BETS: Final = ("bet", "bet_back")
"""The keys of bets, for a table without sensors and terminals."""
AFTER: Final = ("dealer_relieved", "demo")
SHOE: Final = ("new_shoe", "cut_card", "correct", "card_damaged")
DICE: Final = ("dice", "dice_disturbed", "dice_replaced", "dice_seized")
DOME: Final = ("dice_covered", "dice_uncovered")
"""The keys for putting a dome on and lifting it, at a table whose shaker does not report it."""
BALL: Final = ("ball_launched", "ball", "ball_replaced")


class ConsoleGame(Struct, frozen=True):
    """One game. `family`: how its page behaves; a game unlike all others has its own family.

    `keys` of daemon/console/dealer/keys.py are those of the dealer's page, `actions` the decisions of a player there.
    `dice` are tapped die by die, a throw without effect has a reason of `null_throws`; `pockets` or `figures` are the
    choices of its result key. `again_stands`: a disputed result that is entered once more stands; in other games a
    payment or a void ends the dispute. `chip`: the shortest word for the facts of a result, where the family has none;
    `chips`: all of these words, where they are few.
    """

    family: str
    keys: tuple[str, ...]
    actions: tuple[str, ...] = ()
    dice: int = 0
    null_throws: tuple[str, ...] = ()
    pockets: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    again_stands: bool = False
    chip: Callable[[Any], str] | None = None
    chips: tuple[str, ...] = ()
