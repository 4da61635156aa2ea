"""Statements of two supervisors about the bets on a table of craps after a loss (decision 0123)."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from daemon.config.model import Table
from daemon.console.dealer.cloth import ruleset_of
from daemon.console.pages.dealer import BadPress
from daemon.views import TableView
from protocols.contract.events import LaidBet, SeriesStated
from protocols.contract.facts import CrapsFacts, Stated, of_kind
from protocols.contract.people import may_be_one_person
from protocols.fdl import console as fdl_console, frame as fdl

__all__ = ["POINTS", "State", "first_of", "line_of", "lines_of", "pressed", "state_of", "waits"]

POINTS = (0, 4, 5, 6, 8, 9, 10)
"""The possible points; 0: the next throw is the first of a series."""
LONGEST = 8000
MOST = 256
State: TypeAlias = Literal["second", "differs", "edge", "taken"]


def waits(view: TableView) -> bool:
    """Whether the round on the table waits for a statement."""
    reason = view.facts.reason
    return view.phase == "suspended" and reason is not None and reason.code == "series_unknown"


def first_of(view: TableView) -> Stated | None:
    """What the last supervisor stated of the round that waits."""
    return of_kind(CrapsFacts, view.facts).stated if waits(view) else None


def lines_of(bets: tuple[LaidBet, ...]) -> str:
    """The bets in the format of the form, one a line."""
    return "\n".join(f"{one.seat} {one.bet} {one.amount}" for one in bets)


def line_of(stated: Stated) -> str:
    """The whole statement in one line."""
    return f"{stated.point or '-'}: {lines_of(stated.bets).replace(chr(10), ', ')}"


def typed(given: Mapping[str, str], by: str) -> Stated:
    """The typed statement. Raises BadPress."""
    point = given.get("point", "").strip()
    if point not in map(str, POINTS):
        raise BadPress("decide.bad_point")
    bets: list[LaidBet] = []
    for line in filter(str.strip, given.get("bets", "")[:LONGEST].splitlines()):
        match line.lower().split():
            case [seat, bet, amount] if _whole(seat, fdl_console.MAX_SEAT) and _whole(amount, fdl.MAX_COUNTER):
                bets.append(LaidBet(int(seat), bet, int(amount)))
            case _:
                raise BadPress("decide.bad_bets")
    if len(bets) > MOST:
        raise BadPress("decide.too_many_bets")
    return Stated(by, int(point), tuple(sorted(bets, key=lambda one: (one.seat, one.bet))))


def _whole(text: str, most: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= most


def pressed(stated: Stated, view: TableView, table: Table | None) -> tuple[fdl.Happening, ...]:
    """The statement as keys of the console. Raises BadPress for one that the rules would refuse."""
    first = first_of(view)
    if first is not None and may_be_one_person(first.by, stated.by) and _same(first, stated):
        raise BadPress("decide.series_yourself")
    game = found[0] if (found := ruleset_of(table)) is not None else None
    said = SeriesStated(by=stated.by, point=stated.point, bets=stated.bets)
    if game is None or not hasattr(game, "can_stand") or not game.can_stand(said):
        raise BadPress("decide.series_impossible")
    bets = tuple((one.seat, one.bet, one.amount) for one in stated.bets)
    try:
        parts = fdl_console.stated(stated.by, stated.point, view.round, bets)
    except ValueError as error:
        raise BadPress("decide.too_many_bets") from error
    return (fdl_console.SupervisorKey(on=True), *parts, fdl_console.SupervisorKey(on=False))


def state_of(view: TableView, round_: str, stated: str, by: str) -> tuple[State, str]:
    """The outcome of the statement `stated` in one line, and the person who stated a different one last."""
    if view.round != round_ or not waits(view):
        return "taken", ""
    last = first_of(view)
    if last is None:
        return "edge", ""
    if may_be_one_person(last.by, by):
        return ("second" if line_of(last) == stated else "edge"), ""
    return "differs", last.by


def _same(one: Stated, other: Stated) -> bool:
    return one.point == other.point and set(one.bets) == set(other.bets)
