"""The money of each round: stakes, payments and the expected win of the house, one row for each round.

`Rounds` writes the rows in the transaction of the rounds themselves, so both are there or neither. A corrected result
replaces the row of its round. All amounts are whole minor units; expected wins are millionths of one, from the house
edge of each bet (rules/figures). A bet whose edge is not computed is counted apart and has no expected win.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from daemon.journal.rows import EPOCH, micros_of
from protocols.contract.results import Result, Settlement
from rules.figures import figures

__all__ = [
    "COUNT",
    "DAY",
    "MICRO",
    "SCHEMA",
    "UPSERT",
    "Brought",
    "Edges",
    "Group",
    "brought",
    "edges_of",
    "groups",
    "played",
    "rounds_since",
    "row_of",
    "waits",
]

MICRO: Final = 1_000_000
MOST_GAMES: Final = 500
"""Games and options whose edges are kept in memory."""
_PATTERN: Final = re.compile("[a-z](-[a-z])*")
"""The part of a bet that means any place, as the figures write it: n in straight:n, a-b in split:a-b."""
_WITHIN: Final = {"blackjack": "double", "stud-poker": "raise"}
"""By game the bets that belong to the figure of the main bet: its edge is that of a whole hand."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS round_money (
    place TEXT NOT NULL, round TEXT NOT NULL, at INTEGER NOT NULL, ended INTEGER NOT NULL, ruleset TEXT NOT NULL,
    void INTEGER NOT NULL, bets INTEGER NOT NULL, turnover INTEGER NOT NULL, paid INTEGER NOT NULL,
    figured INTEGER NOT NULL, figured_paid INTEGER NOT NULL, expected INTEGER NOT NULL, PRIMARY KEY (place, round)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS round_money_time ON round_money (place, at);
CREATE TABLE IF NOT EXISTS round_day (
    place TEXT NOT NULL, day INTEGER NOT NULL, rounds INTEGER NOT NULL, PRIMARY KEY (place, day)
) STRICT, WITHOUT ROWID;
"""
COUNT = "INSERT INTO round_day VALUES (?, ?, 1) ON CONFLICT (place, day) DO UPDATE SET rounds = rounds + 1"
"""Counts the first end of a round by the number of its day (UTC). These counts stay when the rounds are deleted."""
DAY: Final = 86_400 * MICRO
UPSERT = (
    "INSERT INTO round_money VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (place, round) "
    "DO UPDATE SET ended = excluded.ended, ruleset = excluded.ruleset, void = excluded.void, bets = excluded.bets, "
    "turnover = excluded.turnover, paid = excluded.paid, figured = excluded.figured, "
    "figured_paid = excluded.figured_paid, expected = excluded.expected WHERE excluded.ended >= round_money.ended"
)
_GROUPS = (
    "SELECT place, ruleset, at / ?3 AS part, count(*), sum(void), sum(bets > 0 AND NOT void), "
    "sum(CASE WHEN void THEN 0 ELSE turnover END), sum(CASE WHEN void THEN 0 ELSE paid END), "
    "sum(CASE WHEN void THEN 0 ELSE figured END), sum(CASE WHEN void THEN 0 ELSE figured_paid END), "
    "sum(CASE WHEN void THEN 0 ELSE expected END), "
    "sum(CASE WHEN void THEN 0 ELSE (figured - figured_paid - expected / 1e6) * "
    "(figured - figured_paid - expected / 1e6) END), "
    "sum(CASE WHEN void THEN turnover ELSE 0 END), sum(CASE WHEN void THEN expected ELSE 0 END), "
    "sum(void AND bets = 0), min(at), max(at) "
    "FROM round_money WHERE at >= ?1 AND at < ?2 GROUP BY place, ruleset, part"
)
_WAITS = (
    "SELECT n.place, count(*), sum(max(m.ended - n.began, 0)) FROM (SELECT place, round, min(at) AS began FROM "
    "round_note WHERE kind = 'suspended' AND at >= ?1 AND at < ?2 GROUP BY place, round) n "
    "LEFT JOIN round_money m ON m.place = n.place AND m.round = n.round GROUP BY n.place"
)


class Brought(Struct, frozen=True):
    """The money of one round. `figured`, `figured_paid`: the stakes and payments of the bets whose edge is known."""

    bets: int
    turnover: int
    paid: int
    figured: int
    figured_paid: int
    expected: int


class Group(Struct, frozen=True):
    """The rounds of a table and a game in one part of the requested time.

    `with_bets`: valid rounds with known bets. `off2`: the sum of the squares of their wins less their expected wins.
    `void_stakes`, `void_expected`: the stakes and the expected win of void rounds. `void_unknown`: void rounds without
    known bets. `own`: as this console received them; those of the ledger have no expected win.
    """

    table: str
    ruleset: str
    part: int
    rounds: int
    void: int
    with_bets: int
    turnover: int
    paid: int
    figured: int
    figured_paid: int
    expected: int
    off2: float
    void_stakes: int
    void_expected: int
    void_unknown: int
    first: int
    last: int
    own: bool = True


class Edges:
    """The house edges of one game under one house's options, in millionths of a stake."""

    def __init__(self, ruleset: str, options: Mapping[str, Any]) -> None:
        """If the figures are computed for several sets of options, the set that shares most with `options` counts."""
        said = {name: _in_words(value) for name, value in options.items()}
        best: dict[str, tuple[int, int]] = {}
        for one in figures(ruleset):
            terms = [term.partition("=")[::2] for term in one.options.split(", ") if term]
            if one.edge_percent and all(said.get(name) == value for name, value in terms):
                best[one.bet] = max(best.get(one.bet, (-1, 0)), (len(terms), round(float(one.edge_percent) * 10_000)))
        self._bets = {bet: edge for bet, (_, edge) in best.items()}
        families: dict[str, set[int]] = {}
        for bet, edge in self._bets.items():
            family, _, place = bet.partition(":")
            if _PATTERN.fullmatch(place):
                families.setdefault(family, set()).add(edge)
        self._families = {family: min(found) for family, found in families.items() if len(found) == 1}
        game = ruleset.partition(".")[2]
        self._within = _WITHIN.get(game, "")
        self._splits = game == "blackjack"

    def of(self, one: Settlement) -> int | None:
        """The edge of a bet; None if it is not computed; 0 for a bet that the figure of the main bet includes."""
        family = one.bet.partition(":")[0]
        if family == self._within or (self._splits and one.hand > 1):
            return 0
        return self._bets.get(one.bet, self._families.get(family))


@lru_cache(MOST_GAMES)
def edges_of(ruleset: str, options: bytes) -> Edges:
    """The edges of bets by the options of a result."""
    known = msgspec.json.decode(options) if options else {}
    return Edges(ruleset, known if isinstance(known, dict) else {})


def _in_words(value: object) -> str:
    """An option as the figures write it."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return ",".join(map(str, value))
        case _:
            return str(value)


def brought(result: Result) -> Brought:
    """Stakes, payments and expected win of a round."""
    edges = edges_of(result.ruleset, bytes(result.options))
    turnover = paid = figured = figured_paid = expected = 0
    for one in result.settlements:
        turnover += one.stake
        paid += one.returned
        edge = edges.of(one)
        if edge is not None:
            figured += one.stake
            figured_paid += one.returned
            expected += one.stake * edge
    return Brought(len(result.settlements), turnover, paid, figured, figured_paid, expected)


def row_of(place: str, at: datetime, result: Result) -> tuple[str | int, ...]:
    """The values of UPSERT."""
    one = brought(result)
    money = (one.bets, one.turnover, one.paid, one.figured, one.figured_paid, one.expected)
    return (place, result.round, micros_of(at), result.ruleset, int(result.void is not None), *money)


def groups(db: sqlite3.Connection, since: datetime, until: datetime, part_s: int) -> Iterator[Group]:
    """The counts by table, game and part of `part_s` seconds since 1970."""
    for row in db.execute(_GROUPS, (micros_of(since), micros_of(until), part_s * MICRO)):
        yield Group(*row)


def waits(db: sqlite3.Connection, since: datetime, until: datetime) -> dict[str, tuple[int, int | None]]:
    """By table, the number of rounds that waited for a person, and the microseconds of waiting; None if unknown."""
    found = db.execute(_WAITS, (micros_of(since), micros_of(until)))
    return {place: (count, waited) for place, count, waited in found}


def played(db: sqlite3.Connection, place: str, since: datetime, until: datetime) -> tuple[int, int]:
    """The number of rounds of a table that ended in a period, and the number of void ones among them."""
    query = "SELECT count(*), coalesce(sum(void), 0) FROM round_money WHERE place = ? AND at >= ? AND at < ?"
    count, void = db.execute(query, (place, micros_of(since), micros_of(until))).fetchone()
    return count, void


def rounds_since(db: sqlite3.Connection, place: str, since: datetime) -> int:
    """The number of rounds of a table that ended since then; for a distant time without those of its first day."""
    day = micros_of(since) // DAY
    query = "SELECT coalesce(sum(rounds), 0) FROM round_day WHERE place = ? AND day > ?"
    (later,) = db.execute(query, (place, day)).fetchone()
    return int(later) + played(db, place, since, EPOCH + timedelta(microseconds=(day + 1) * DAY))[0]
