"""Compares devices with games: the drivers that serve a game, and the needs that a table's devices leave open.

`feltd check` reports the open needs of a table; docs/reference/devices-and-games.md is made by the same comparison.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from daemon.config.lines import line_of
from daemon.config.model import Config
from drivers import DRIVERS
from protocols.contract.events import DiceThrown, Told
from rules import RULESETS
from rules.engine.ruleset import BadOption, options_from
from rules.needs import Need, met, unmet

__all__ = ["missing", "needs_of", "others", "serving"]

UNDER_A_DOME: Final = ("fdl_shaker",)
"""Readers of dice that are not thrown by hand."""
CONTINUOUS: Final = ("fdl_continuous",)
"""Machines that mix the cards of several rounds."""


def needs_of(ruleset: str, options: Mapping[str, Any]) -> tuple[Need, ...]:
    """The needs of a table; none where its options are invalid, or it has no known ruleset."""
    if ruleset not in RULESETS:
        return ()
    try:
        chosen = options_from(RULESETS[ruleset], dict(options))
    except BadOption:
        return ()
    wanted: tuple[Need, ...] = RULESETS[ruleset].needs(chosen)
    return wanted


def others(need: Need) -> list[str]:
    """The drivers that meet the need."""
    return [name for name, driver in DRIVERS.items() if met(need, driver.emits)]


def serving(wanted: Sequence[Need]) -> dict[str, list[Need]]:
    """The drivers that report what decides a round of this game, each with the needs that it leaves open."""
    by_hand = any(DiceThrown in need.events for need in wanted)
    found: dict[str, list[Need]] = {}
    for name, driver in DRIVERS.items():
        if (name in UNDER_A_DOME and by_hand) or (name in CONTINUOUS and any(need.one_deck for need in wanted)):
            continue
        if any(need.decides and met(need, driver.emits) for need in wanted):
            found[name] = unmet(wanted, driver.emits)
    return found


def missing(config: Config, path: Path) -> list[str]:
    """The open needs of each table, as "file:line: text".

    A table without devices in this file has them on another computer. A table with an unknown driver is skipped.
    """
    lines = []
    for number, table in enumerate(config.table):
        kinds = [DRIVERS[device.driver] for device in table.device if device.driver in DRIVERS]
        if not kinds or len(kinds) < len(table.device):
            continue
        emitted: list[Told] = [one for kind in kinds for one in kind.emits]
        at = f"{path}:{line_of(path, ('table', number, 'ruleset'))}"
        for need in unmet(needs_of(table.ruleset, table.options), emitted):
            effect = "no round can be decided" if need.decides else "rounds are void, irregular or wait for a person"
            lines.append(
                f"{at}: {table.name}: no device here reports {need.what} ({table.ruleset} {need.law}): {effect}; "
                f"{' or '.join(others(need))} reports it"
            )
    return lines
