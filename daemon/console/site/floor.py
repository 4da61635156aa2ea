"""The figures of tables in a period, by table, game, area, hour, shift or day of play. Pure.

Unknown figures are None, not 0: bets that were not entered, a game without a par, one round in an hour.

The difference between win and expected win is judged by the rounds themselves. Each round won an amount more or less
than expected; if these differences are chance alone, their sum lies within 1.96 times the root of the sum of their
squares in 95 of 100 such periods. The bets of one round are decided by one outcome, so rounds are compared and not
bets.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from daemon.console.site.shifts import day_of_play, shift_of
from daemon.console.site.turnover import MICRO, Group
from daemon.journal.rows import EPOCH

__all__ = ["BY", "LEAST_ROUNDS", "By", "Compared", "Line", "Named", "compared", "lines", "namer", "starts", "total"]

By: TypeAlias = Literal["table", "game", "area", "hour", "shift", "day"]
BY: tuple[By, ...] = get_args(By)
Chance: TypeAlias = Literal["unknown", "few", "within", "above", "below"]
LEAST_ROUNDS = 30
"""The least number of rounds for a statement about chance."""
_DEVIATIONS = 1.96
_HOUR_US = 3600 * MICRO
_NO_ROUNDS = Group("", "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0)


class Named(Struct, frozen=True, order=True):
    """A line of the list: `order` sorts it, `name` is a table, a ruleset, an area, or a time as text."""

    order: str
    name: str


class Line(Struct, frozen=True):
    """Rounds and money of one line. Amounts in minor units; None is unknown.

    `rounds_per_hour`: between the first and the last round of each table. `expected`: the expected win of the bets
    whose edge is known, `compared`: the win of these bets, `band`: its deviation by chance alone. `waited_s`: the time
    for which rounds waited for a person. `lost`: the rounds that were not played meanwhile, at the pace of the line.
    """

    name: str
    tables: tuple[str, ...]
    rulesets: tuple[str, ...]
    rounds: int
    rounds_per_hour: float | None
    par: float | None
    with_bets: int
    turnover: int | None
    win: int | None
    compared: int | None
    figured: int
    expected: float | None
    band: float | None
    chance: Chance
    void: int
    void_stakes: int | None
    void_expected: float | None
    waits: int
    waited_s: float | None
    lost: float | None
    parts: tuple[int, ...]

    @property
    def hold(self) -> float | None:
        """The win as a part of the turnover."""
        return self.win / self.turnover if self.win is not None and self.turnover else None

    @property
    def expected_hold(self) -> float | None:
        """The expected hold of the bets whose edge is known."""
        return self.expected / self.figured if self.expected is not None and self.figured else None


def namer(
    by: By, areas: Mapping[str, str], begins: Sequence[str], part_s: int, zone: tzinfo
) -> Callable[[Group], Named]:
    """The line to which a group belongs."""

    def at(group: Group) -> datetime:
        return (EPOCH + timedelta(seconds=group.part * part_s)).astimezone(zone)

    def named(group: Group) -> Named:
        match by:
            case "table":
                return Named(group.table, group.table)
            case "game":
                return Named(group.ruleset, group.ruleset)
            case "area":
                return Named(areas.get(group.table, ""), areas.get(group.table, ""))
            case "hour":
                return _of_time(at(group).replace(minute=0, second=0, microsecond=0))
            case "shift":
                return _of_time(shift_of(begins, at(group), zone)[0])
            case "day":
                return _of_time(day_of_play(begins, at(group), zone)[0])

    return named


def _of_time(at: datetime) -> Named:
    return Named(at.isoformat(), at.isoformat())


def starts(span: range, by: By, named: Callable[[Group], Named]) -> list[int]:
    """The first part of each line of a list by time; all parts for other lists."""
    if by in ("table", "game", "area"):
        return list(span)
    names = [named(replace(_NO_ROUNDS, part=part)) for part in span]
    return [part for at, part in enumerate(span) if at == 0 or names[at] != names[at - 1]]


class Compared(Struct, frozen=True):
    """The ledger's figures of a period, beside the rounds that the console received.

    `groups`: those of a table and a game of which the console lacks rounds or corrections, before `until`. `behind`:
    the tables of which the ledger has fewer rounds than the console.
    """

    until: datetime
    groups: Mapping[tuple[str, str], Sequence[Group]]
    behind: frozenset[str]

    def best(self, own: Iterable[Group]) -> list[Group]:
        """The console's groups before `until`, with the ledger's in place of those that are incomplete."""
        kept = [one for one in own if (one.table, one.ruleset) not in self.groups]
        return kept + [one for some in self.groups.values() for one in some]


def compared(own: Iterable[Group], ledger: Iterable[Group], until: datetime) -> Compared:
    """Compare both by table and game. Each counts a round once, so the one with more rounds is the more complete."""
    ours, theirs = _by_game(own), _by_game(ledger)
    differ = {key: some for key, some in theirs.items() if _sums(some) != _sums(ours.get(key, []))}
    fewer = {key for key, some in ours.items() if _sums(some)["rounds"] > _sums(theirs.get(key, []))["rounds"]}
    better = {key: some for key, some in differ.items() if key not in fewer}
    return Compared(until, better, frozenset(table for table, _ in fewer))


def _by_game(groups: Iterable[Group]) -> dict[tuple[str, str], list[Group]]:
    found: dict[tuple[str, str], list[Group]] = {}
    for one in groups:
        found.setdefault((one.table, one.ruleset), []).append(one)
    return found


def _sums(groups: Iterable[Group]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in groups:
        for name in ("rounds", "void", "with_bets", "turnover", "paid"):
            found[name] += getattr(one, name)
    return found


def lines(
    groups: Iterable[Group],
    named: Callable[[Group], Named],
    *,
    pars: Mapping[str, float],
    waits: Mapping[str, tuple[int, int | None]],
    parts: range,
) -> list[Line]:
    """One line for each name, sorted. `waits` by table are used for lines of tables, not of times."""
    found: dict[Named, list[Group]] = {}
    for group in groups:
        found.setdefault(named(group), []).append(group)
    return [total(name.name, some, pars=pars, waits=waits, parts=parts) for name, some in sorted(found.items())]


def total(
    name: str,
    groups: Sequence[Group],
    *,
    pars: Mapping[str, float],
    waits: Mapping[str, tuple[int, int | None]],
    parts: range,
) -> Line:
    """One line for all groups."""
    tables = tuple(sorted({one.table for one in groups}))
    rounds, with_bets = sum(one.rounds for one in groups), sum(one.with_bets for one in groups)
    pace = _pace(groups)
    is_own = all(one.own for one in groups)
    figured = sum(one.figured for one in groups) if is_own else 0
    expected = sum(one.expected for one in groups) / MICRO
    compared = figured - sum(one.figured_paid for one in groups)
    turnover = sum(one.turnover for one in groups)
    band = _DEVIATIONS * math.sqrt(sum(one.off2 or 0.0 for one in groups))
    waited = [waits[table] for table in tables if table in waits]
    waited_s = sum(us or 0 for _, us in waited) / MICRO if all(us is not None for _, us in waited) else None
    known = with_bets > 0
    void = sum(one.void for one in groups)
    void_known = not any(one.void_unknown for one in groups)
    return Line(
        name,
        tables,
        tuple(sorted({one.ruleset for one in groups})),
        rounds,
        pace,
        _par(groups, pars),
        with_bets,
        turnover if known else None,
        turnover - sum(one.paid for one in groups) if known else None,
        compared if figured else None,
        figured,
        expected if figured else None,
        band if figured else None,
        _chance(with_bets, compared - expected, band) if figured else "unknown",
        void,
        sum(one.void_stakes for one in groups) if void_known else None,
        sum(one.void_expected for one in groups) / MICRO if void_known else None,
        sum(count for count, _ in waited),
        waited_s,
        waited_s / 3600 * pace if waited_s is not None and pace is not None else None,
        _spark(groups, parts),
    )


def _pace(groups: Sequence[Group]) -> float | None:
    """Rounds an hour at one table; None where no table had two rounds at different times."""
    spans: dict[str, tuple[int, int, int]] = {}
    for one in groups:
        count, first, last = spans.get(one.table, (0, one.first, one.last))
        spans[one.table] = count + one.rounds, min(first, one.first), max(last, one.last)
    hours = sum(last - first for _, first, last in spans.values()) / _HOUR_US
    between = sum(count - 1 for count, first, last in spans.values() if last > first)
    return between / hours if hours > 0 else None


def _par(groups: Sequence[Group], pars: Mapping[str, float]) -> float | None:
    """The par of the games, each by its rounds; None where one of them has none."""
    if not groups or any(one.ruleset not in pars for one in groups):
        return None
    return sum(pars[one.ruleset] * one.rounds for one in groups) / sum(one.rounds for one in groups)


def _chance(rounds: int, off: float, band: float) -> Chance:
    if rounds < LEAST_ROUNDS:
        return "few"
    if abs(off) <= band:
        return "within"
    return "above" if off > 0 else "below"


def _spark(groups: Sequence[Group], parts: range) -> tuple[int, ...]:
    """The rounds in each part of the requested time."""
    counts = dict.fromkeys(parts, 0)
    for one in groups:
        if one.part in counts:
            counts[one.part] += one.rounds
    return tuple(counts.values())
