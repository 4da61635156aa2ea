"""Fairness and wear: counts each device's results and times, over restarts, and detects what is not chance.

Pockets, faces and cards come from the results only, which are public; of an event that reports a card only the type is
used, so that no private card is known here. Counts wait in a bounded list and are written in one transaction by
`flush`, together with the position in each journal, so that repeated events and results count once, even after a crash.
A corrected result replaces the counts of the superseded one.

Counts are kept by day (UTC, as the rounds are named) and by the device's life: from one service to the next.

Faces are counted over all dice of a throw, because it is unknown which die showed which face: readers do not document
an order of the dice, and people type them in any order.

Each life of a chart is a separate test with a constant threshold, which it gets when it is first counted: its part of
ALPHA. The parts of all possible tests add up to ALPHA; other tests do not affect an alarm.
"""

import asyncio
import contextlib
import hashlib
import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.console.fairness import statistics
from daemon.console.fairness.charts import (
    AMERICAN_WHEEL,
    CARD_PLACE,
    DECK,
    WHEEL,
    Alarm,
    Chart,
    Phase,
    Ranges,
    Shoe,
    Span,
    Test,
    counted,
    shown,
)
from daemon.console.fairness.schema import RATED, TABLES
from daemon.console.games import family_of
from daemon.console.site.store import BadStore, Store
from protocols.contract.documents import Alert
from protocols.contract.events import DeviceOnline, Event
from protocols.contract.results import Result
from protocols.contract.topics import Wire
from rules.facts import facts_of_result

__all__ = ["Fairness"]

FLUSH: Final = 2.0  # seconds of counts that a crash may lose
EACH: Final = 5  # writes of counts for each run of the tests
WAITING: Final = 20_000  # rows that wait while the disk is not writable
REMEMBERED: Final = 5_000  # events: the evidence of a result names them, and so its device

GAP: Final = 100  # more unseen events than a round has cards and wagers: the phases are uncertain
KEPT_ROUNDS: Final = timedelta(days=100)  # older results are ignored; journals keep 90 days or more
KEPT_DAYS: Final = timedelta(days=31)  # one more than the longest span that is counted in days
KEPT_TIMES: Final = timedelta(days=400)
LONGEST: Final = 3600.0  # seconds; longer is a break and no phase of a round
SHOES: Final = 10
FOLDS: Final = 4  # charts whose old days become months in one flush, to keep it short
LOOKS: Final = 1  # charts that are tested in one call of `alarms`: a year of a wheel takes some 20 ms

# One false alarm in a hundred sites, ever; each chart's life gets its part.
ALPHA: Final = 0.01
# Accepted rates: one misread card of 200 (two in a shoe of eight decks), one failed shuffle of 50.
MISREAD: Final = 1 / 200
FAILED: Final = 1 / 50
_RATES: Final = {"reads": ("misread", "read", MISREAD), "shuffles": ("failed", "finished", FAILED)}
# Limit of the search for the number of spins, faces or cards at which the bet would alarm.
MOST_FORETOLD: Final = 10_000_000
# An alarm: the week's median shuffle is a quarter longer than the life's; at least so many shuffles of each.
SLOWER: Final = 1.25
SLOW_WEEK: Final = 20
SLOW_LIFE: Final = 100
SECTOR: Final = 9


# The events that begin and end a phase; a second beginning restarts it. "play" is from the bell until all is paid.
PHASES: Final[dict[Phase, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "round": (("bets.opened",), ("bets.opened",)),
    "betting": (("bets.opened", "spin.started"), ("bets.closed", "ball.settling")),
    "spin": (("ball.launched",), ("ball.landed",)),
    "shake": (("dice.covered",), ("dice.uncovered",)),
    "count": (("buttons.separated",), ("buttons.counted",)),
    "play": (("bets.closed",), ("round.paid",)),
}
_TIMES: Final = frozenset(("shuffle", *(f"phase.{phase}" for phase in PHASES)))
_DECIDING: Final = frozenset(("ball.landed", "dice.read", "dice.thrown", "buttons.counted", "card.drawn"))
_VOIDS: Final = frozenset(("round.voided", "spin.voided"))
_SHUFFLES: Final = frozenset(("shuffle.started", "shuffle.finished", "shuffle.failed"))
_WANTED: Final = (
    frozenset(one for both in PHASES.values() for types in both for one in types)
    | _DECIDING
    | _VOIDS
    | _SHUFFLES
    | {"card.unreadable", "shoe.started", "device.online"}
)


_DAYS: Final = {"today": 1, "week": 7, "month": 30}

Begin: TypeAlias = Callable[[tuple[str, str], Alert, datetime], None]
End: TypeAlias = Callable[[tuple[str, str], datetime], None]


class _Facts(Struct, frozen=True):
    """The counts of one round. `counts` by chart's name and key; a `shoe` by name, a block of `decks` by itself.

    `order`: of the pockets of the wheel, where the result has it.
    """

    device: str
    life: int
    day: str
    counts: dict[str, dict[str, int]]
    shoe: str = ""
    decks: int = 0
    order: str = ""


class _Options(Struct, frozen=True):
    """The options of a game that are read here."""

    decks: int = 0
    order: str = ""
    device: str = ""


class _Gap(Struct, frozen=True):
    """A gap with too many missing events: phases under way are uncertain."""


_Item: TypeAlias = tuple[str, tuple[Wire, str] | _Gap | tuple[str, Result]]
"""The queued inputs, each with its table: an event with its serial number, a gap, the end of a round."""


class Fairness:
    """The counts of a site. `on_event` and `on_result` take all messages; `flush` or `run` writes the counts."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        """Continue from the store. Raises BadStore."""
        self._store = store
        self._db = store.db
        self._now = now
        self._log = logs.get(console="fairness")
        store.has(TABLES)
        self._waiting: deque[_Item] = deque()
        self._positions: dict[str, Ranges] = {}
        self._moved: set[str] = set()
        self._recent: dict[str, str] = {}
        self._rings: dict[str, tuple[str, ...]] = {}
        self._since: dict[tuple[str, str], datetime] = {}
        self._changed: dict[Chart, None] = {
            Chart(*row): None
            for row in self._db.execute("SELECT DISTINCT tbl, chart, device FROM fair_chart")
            if row[1] not in _TIMES
        }
        self._adds: Counter[tuple[Chart, int, str, str]] = Counter()
        self._lives: dict[tuple[str, str], int] = {}
        self._pruned = date.min
        self._until = date.min
        self._foldable: list[tuple[str, str, str, int]] = []
        self._horizon = ""
        """The day before which rounds were deleted."""
        self._lost = 0

    # ---- incoming results

    def on_event(self, table: str, wire: Wire, event: Event | None = None) -> None:
        """One event of a device; `event` is decoded by the read model. Its card, if any, is not used."""
        edge = wire.id.partition(":")[0]
        source = f"{edge}/{table}/{wire.journal}"
        if wire.seq > 0:
            if (ranges := self._positions.get(source)) is None:
                row = self._db.execute("SELECT ranges FROM fair_position WHERE source = ?", (source,)).fetchone()
                ranges = self._positions[source] = Ranges(row[0] if row else "")
            beyond = ranges.take(wire.seq)
            if beyond is None:
                return
            self._moved.add(source)
            if beyond > GAP:
                self._wait((table, _Gap()))
        if wire.type in _WANTED:
            self._wait((table, (wire, event.serial if isinstance(event, DeviceOnline) else "")))

    def on_result(self, table: str, kind: str, result: Result) -> None:
        """The end of a round: resolved, voided or corrected."""
        self._wait((table, (kind, result)))

    def _wait(self, item: _Item) -> None:
        if len(self._waiting) >= WAITING:
            self._lost += 1
            return
        self._waiting.append(item)

    async def run(self, begin: Begin, end: End) -> None:
        """Write every FLUSH seconds and report alarms, until cancelled. A failed write is repeated."""
        failing, times = False, 0
        try:
            while True:
                await asyncio.sleep(FLUSH)
                failing = not self._written(say=not failing)
                times += 1
                if not failing and times % EACH == 0:
                    self.report_alarms(begin, end)
        finally:
            self._written(say=True)

    def report_alarms(self, begin: Begin, end: End) -> None:
        """Report each present alarm at every call, and the end of each one reported, also before a restart."""
        standing = {(alarm.table, alarm.name): alarm for alarm in self.alarms()}
        reported = set(self._db.execute("SELECT tbl, name FROM fair_alarm").fetchall())
        now = self._now()
        for key, alarm in standing.items():
            begin(key, alarm.alert, now)
        for key in reported - standing.keys():
            end(key, now)
        if reported != standing.keys():
            with contextlib.suppress(BadStore), self._store.write() as db:  # `run` reports the failure
                db.execute("DELETE FROM fair_alarm")
                db.executemany("INSERT INTO fair_alarm VALUES (?, ?)", list(standing))

    def _written(self, *, say: bool) -> bool:
        try:
            self.flush()
        except BadStore as error:
            if say:
                self._log.error("fairness.not_written", reason=str(error), waiting=len(self._waiting))
            return False
        return True

    def flush(self) -> None:
        """Write the waiting counts to the store, all or nothing. Raises BadStore; they keep waiting then."""
        if not (self._waiting or self._moved or self._foldable):
            return
        since, recent = dict(self._since), dict(self._recent)
        self._adds.clear()
        self._lives.clear()
        try:
            with self._store.write():
                for table, item in self._waiting:
                    match item:
                        case (Wire() as wire, str() as serial):
                            self._event(table, wire, serial)
                        case _Gap():
                            self._gap(table)
                        case (str() as kind, Result() as result):
                            self._result(table, kind, result)
                self._write_counts()
                self._db.executemany(
                    "INSERT OR REPLACE INTO fair_position VALUES (?, ?)",
                    [(source, str(self._positions[source])) for source in self._moved],
                )
                self._prune()
        except BadStore:
            self._since, self._recent = since, recent
            self._lives.clear()
            raise
        self._waiting.clear()
        self._moved.clear()
        if self._lost:
            self._log.error("fairness.lost", count=self._lost, remedy="the store could not be written for too long")
            self._lost = 0

    # ---- events

    def _event(self, table: str, wire: Wire, serial: str) -> None:
        device, day = wire.source.rpartition("/")[2], wire.time.date().isoformat()
        self._phases(table, wire, day)
        match wire.type:
            case "ball.landed" | "dice.read" | "dice.thrown" | "buttons.counted":
                self._remember(wire.id, device)
            case "card.drawn":
                self._remember(wire.id, device)
                self._add(Chart(table, "reads", device), self._life(table, device), day, "read")
            case "card.unreadable":
                self._add(Chart(table, "reads", device), self._life(table, device), day, "misread")
            case "shuffle.started":
                self._since[table, device] = wire.time
            case "shuffle.finished" | "shuffle.failed":
                self._shuffled(table, device, wire, day)
            case "shoe.started":
                name, edge = f"{wire.time:%Y-%m-%d %H:%M}", wire.id.partition(":")[0]
                self._db.execute(
                    "INSERT OR REPLACE INTO fair_standing VALUES (?, ?, ?, ?)", (table, name, edge, wire.seq)
                )
            case "device.online" if serial:
                self._online(table, device, serial, wire.time)

    def _remember(self, event: str, device: str) -> None:
        self._recent[event] = device
        if len(self._recent) > REMEMBERED:
            del self._recent[next(iter(self._recent))]

    def _gap(self, table: str) -> None:
        self._forget(table)
        self._db.execute("DELETE FROM fair_standing WHERE tbl = ?", (table,))

    def _forget(self, table: str) -> None:
        for key in [key for key in self._since if key[0] == table]:
            del self._since[key]

    def _phases(self, table: str, wire: Wire, day: str) -> None:
        """Measure the time between two events that arrived live, without a gap."""
        if wire.replay or wire.type in _VOIDS:
            self._forget(table)
        if wire.replay:
            return
        for phase, (begin, end) in PHASES.items():
            key = (table, f"phase.{phase}")
            if wire.type in end and (began := self._since.pop(key, None)) is not None:
                self._time(Chart(table, key[1]), 0, day, (wire.time - began).total_seconds())
            if wire.type in begin:
                self._since[key] = wire.time

    def _shuffled(self, table: str, device: str, wire: Wire, day: str) -> None:
        life = self._life(table, device)
        began = self._since.pop((table, device), None)
        good = wire.type == "shuffle.finished"
        self._add(Chart(table, "shuffles", device), life, day, "finished" if good else "failed")
        if good and began is not None and not wire.replay:
            self._time(Chart(table, "shuffle", device), life, day, (wire.time - began).total_seconds())

    def _time(self, chart: Chart, life: int, day: str, seconds: float) -> None:
        if 0 <= seconds <= LONGEST:
            self._add(chart, life, day, str(statistics.bucket(seconds)))

    # ---- results

    def _result(self, table: str, kind: str, result: Result) -> None:
        name = result.supersedes or result.round
        day = _day(name) or self._now().date().isoformat()
        if day < self._horizon:
            return  # counted long ago, and no longer kept
        mark = hashlib.sha256(msgspec.json.encode([kind, result], order="deterministic")).hexdigest()[:16]
        row = self._db.execute(
            "SELECT kind, said, facts FROM fair_round WHERE tbl = ? AND round = ?", (table, name)
        ).fetchone()
        said = ""
        if row is not None:
            before, said, facts = row
            if mark in said.split() or (before == "corrected" and kind != "corrected"):
                return  # a repetition
            self._count(table, msgspec.json.decode(facts, type=_Facts), -1)
        facts = self._facts(table, result, day)
        if facts.order:
            self._rings[table] = _ring(facts.order)
        self._count(table, facts, 1)
        self._db.execute(
            "INSERT OR REPLACE INTO fair_round VALUES (?, ?, ?, ?, ?, ?)",
            (table, name, day, kind, f"{said} {mark}".strip(), msgspec.json.encode(facts).decode()),
        )

    def _facts(self, table: str, result: Result, day: str) -> _Facts:
        outcome, shoe, decks, order = facts_of_result(result), "", 0, ""
        counts = counted(outcome, void=result.void is not None)
        if not counts:
            return _Facts("", 0, day, {})
        if "wheel" in counts:
            order = _options(result).order
        if "cards" in counts:
            shoe, decks = self._shoe_of(table, result)
        device = self._teller(table, next(iter(counts)), result.evidence)
        return _Facts(device, self._life(table, device), day, counts, shoe, decks, order)

    def _teller(self, table: str, chart: str, evidence: Sequence[str]) -> str:
        """The device that reported the result; where its event was not received, the last that reported one."""
        row = self._db.execute("SELECT device FROM fair_told WHERE tbl = ? AND chart = ?", (table, chart)).fetchone()
        device = next((self._recent[event] for event in reversed(evidence) if event in self._recent), "")
        if device and row is None:
            self._name(table, chart, device)
        if device:
            self._db.execute("INSERT OR REPLACE INTO fair_told VALUES (?, ?, ?)", (table, chart, device))
        return device or (row[0] if row else "")

    def _name(self, table: str, chart: str, device: str) -> None:
        """Assign earlier counts without a device to the first device that reports such results here."""
        self._write_counts()
        for one in ("fair_count", "fair_chart", "fair_limit"):
            self._db.execute(
                f"UPDATE {one} SET device = ? WHERE tbl = ? AND chart = ? AND device = ''",  # noqa: S608
                (device, table, chart),
            )
        self._db.execute(
            "UPDATE fair_round SET facts = json_set(facts, '$.device', ?) WHERE tbl = ? "
            "AND json_extract(facts, '$.device') = '' AND json_type(facts, '$.counts.' || ?) IS NOT NULL",
            (device, table, chart),
        )
        if chart == "cards":
            for one in ("fair_shoe", "fair_deck"):
                self._db.execute(
                    f"UPDATE {one} SET device = ? WHERE tbl = ? AND device = ''",  # noqa: S608
                    (device, table),
                )
        self._changed = {known: None for known in self._changed if (known.table, known.device) != (table, "")}

    def _shoe_of(self, table: str, result: Result) -> tuple[str, int]:
        """The shoe and its decks. Without a shoe: no name, and the decks that were all in play in this round.

        Stud poker is left out: it shows only some hands, which are no fair sample of a deck.
        """
        options = _options(result)
        decks = options.decks if 0 < options.decks <= 12 else 0
        match family_of(result.ruleset), options.device:
            case "baccarat" | "blackjack", "continuous" | "metal_box":
                return "", decks
            case "baccarat", _:
                return " ".join(result.round.split(":")[1:3]), decks
            case "blackjack", _:
                return self._standing(table, result), decks
            case _:
                return "", 0

    def _standing(self, table: str, result: Result) -> str:
        """The shoe that began before the round's events, where both were received."""
        row = self._db.execute("SELECT shoe, edge, seq FROM fair_standing WHERE tbl = ?", (table,)).fetchone()
        first = result.evidence[0].split("/")[0].split(":") if result.evidence else []
        if row and len(first) == 3 and first[0] == row[1] and first[2].isdecimal() and int(first[2]) > row[2]:
            return str(row[0])
        return "?"

    def _count(self, table: str, facts: _Facts, sign: int) -> None:
        for name, keys in facts.counts.items():
            for key, count in keys.items():
                self._add(Chart(table, name, facts.device), facts.life, facts.day, key, sign * count)
        cards = facts.counts.get("cards")
        if cards and facts.decks and facts.shoe != "?":
            counts = [cards.get(card, 0) for card in DECK]
            if facts.shoe:
                self._into_shoe(table, facts, [sign * count for count in counts])
            elif max(counts) <= facts.decks:
                bets = statistics.log_deck(counts, facts.decks)
                self._bet(table, facts.device, facts.life, facts.day, [sign * bet for bet in bets])

    def _into_shoe(self, table: str, facts: _Facts, counts: list[int]) -> None:
        row = self._db.execute(
            "SELECT counts FROM fair_shoe WHERE tbl = ? AND shoe = ?", (table, facts.shoe)
        ).fetchone()
        if row is not None:
            counts = [a + b for a, b in zip(counts, msgspec.json.decode(row[0], type=list[int]), strict=True)]
            text = msgspec.json.encode(counts).decode()
            self._db.execute("UPDATE fair_shoe SET counts = ? WHERE tbl = ? AND shoe = ?", (text, table, facts.shoe))
            return
        self._db.execute(
            "INSERT INTO fair_shoe (tbl, shoe, device, life, day, decks, counts, open) VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
            (table, facts.shoe, facts.device, facts.life, facts.day, facts.decks, msgspec.json.encode(counts).decode()),
        )
        rows = self._db.execute(
            "SELECT number, device, life, day, shoe, decks, counts FROM fair_shoe WHERE tbl = ? AND open = 1 "
            "ORDER BY number DESC LIMIT -1 OFFSET 2",  # the last coup of the shoe before may still be corrected
            (table,),
        ).fetchall()
        for number, device, life, day, name, decks, text in rows:
            shoe = Shoe(name, day, decks, tuple(msgspec.json.decode(text, type=list[int])))
            if (bets := _bets(shoe)) is not None:
                self._bet(table, device, life, day, bets)
            self._db.execute("UPDATE fair_shoe SET open = 0 WHERE number = ?", (number,))
        self._db.execute(
            "DELETE FROM fair_shoe WHERE tbl = ? AND number NOT IN "
            "(SELECT number FROM fair_shoe WHERE tbl = ? ORDER BY number DESC LIMIT ?)",
            (table, table, SHOES),
        )

    def _bet(self, table: str, device: str, life: int, day: str, bets: Sequence[float]) -> None:
        key = (table, device, life, day)
        row = self._db.execute(
            "SELECT bets FROM fair_deck WHERE tbl = ? AND device = ? AND life = ? AND day = ?", key
        ).fetchone()
        if row is not None:
            bets = [a + b for a, b in zip(bets, msgspec.json.decode(row[0], type=list[float]), strict=True)]
        self._db.execute(
            "INSERT OR REPLACE INTO fair_deck VALUES (?, ?, ?, ?, ?)", (*key, msgspec.json.encode(bets).decode())
        )

    def _add(self, chart: Chart, life: int, day: str, key: str, count: int = 1) -> None:
        self._adds[chart, life, day, key] += count

    def _write_counts(self) -> None:
        rows = [
            (chart.table, chart.name, chart.device, life, day, key, count)
            for (chart, life, day, key), count in self._adds.items()
        ]
        self._db.executemany(
            "INSERT INTO fair_count VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n", rows
        )
        keys = list(dict.fromkeys(row[:4] for row in rows))
        self._db.executemany("INSERT OR IGNORE INTO fair_chart VALUES (?, ?, ?, ?, 0.0)", keys)
        for one in keys:
            if one[1] not in _TIMES:
                self._limit(one)
        self._changed.update(dict.fromkeys(chart for chart, *_ in self._adds if chart.name not in _TIMES))
        self._adds.clear()

    def _limit(self, key: Sequence[str | int]) -> None:
        """Assign the next unused threshold to a chart's life, once."""
        known = "SELECT 1 FROM fair_limit WHERE tbl = ? AND chart = ? AND device = ? AND life = ?"
        if self._db.execute(known, key).fetchone() is None:
            self._db.execute("INSERT INTO fair_limit VALUES (?, ?, ?, ?, ?)", (*key, self._next_threshold()))

    def _next_threshold(self) -> float:
        """The threshold of the next test. A threshold is never reused, so that the parts of ALPHA add up."""
        begun: int = self._db.execute("SELECT COUNT(*) FROM fair_limit").fetchone()[0]
        return statistics.log_threshold(ALPHA, begun + 1)

    # ---- lives of devices

    def _life(self, table: str, device: str) -> int:
        key = table, device
        if (known := self._lives.get(key)) is not None:
            return known
        found = self._db.execute("SELECT MAX(life) FROM fair_life WHERE tbl = ? AND device = ?", key).fetchone()[0]
        self._lives[key] = found or 0
        return self._lives[key]

    def _online(self, table: str, device: str, serial: str, when: datetime) -> None:
        """Begin a new life for another serial number, which is another device."""
        row = self._db.execute(
            "SELECT life, serial, began, why FROM fair_life WHERE tbl = ? AND device = ? ORDER BY life DESC LIMIT 1",
            (table, device),
        ).fetchone()
        life, known, began, why = row or (0, "", "", "")
        if known == serial:
            return
        if known:
            life, began, why = life + 1, when.isoformat(), "serial"
        entry = (table, device, life, began or when.isoformat(), serial, why)
        self._db.execute("INSERT OR REPLACE INTO fair_life VALUES (?, ?, ?, ?, ?, ?)", entry)
        self._lives[table, device] = life

    def serviced(self, table: str, device: str, why: str) -> None:
        """Note a service of the device (repair, cleaning, levelling): its tests begin anew. Raises BadStore."""
        self.flush()
        serial = self._db.execute(
            "SELECT serial FROM fair_life WHERE tbl = ? AND device = ? ORDER BY life DESC LIMIT 1", (table, device)
        ).fetchone()
        entry = (
            table,
            device,
            self._life(table, device) + 1,
            self._now().isoformat(),
            serial[0] if serial else "",
            why,
        )
        with self._store.write() as db:
            db.execute("INSERT INTO fair_life VALUES (?, ?, ?, ?, ?, ?)", entry)
        self._lives.clear()

    def service(self, table: str, device: str) -> tuple[datetime, str] | None:
        """When the present life began and why; None for a device that was never serviced."""
        row = self._db.execute(
            "SELECT began, why FROM fair_life WHERE tbl = ? AND device = ? AND life > 0 ORDER BY life DESC LIMIT 1",
            (table, device),
        ).fetchone()
        return None if row is None else (datetime.fromisoformat(row[0]), row[1])

    def lives(self) -> dict[tuple[str, str], list[tuple[datetime, str, str]]]:
        """By table and device, when each life began, its serial number, and why."""
        found: dict[tuple[str, str], list[tuple[datetime, str, str]]] = {}
        query = "SELECT tbl, device, began, serial, why FROM fair_life ORDER BY life"
        for table, device, began, serial, why in self._db.execute(query):
            found.setdefault((table, device), []).append((datetime.fromisoformat(began), serial, why))
        return found

    # ---- findings

    def charts(self, table: str) -> list[Chart]:
        """Every chart of `table`."""
        rows = self._db.execute("SELECT DISTINCT tbl, chart, device FROM fair_chart WHERE tbl = ?", (table,))
        return sorted(Chart(*row) for row in rows)

    def counts(self, chart: Chart, span: Span, *, of_life: bool = False, rated: bool = False) -> dict[str, int]:
        """The count of each key in `span`; `of_life`: since the last service only.

        `rated`: only days on which a card was read. Where the access list withholds card events, misreads still come,
        without a total to compare them with.
        """
        days = _DAYS.get(span)
        first = (self._now().date() - timedelta(days=days - 1)).isoformat() if days else ""
        life = self._life(chart.table, chart.device) if of_life or span == "service" else 0
        rows = self._db.execute(
            "SELECT key, SUM(n) FROM fair_count WHERE tbl = ?1 AND chart = ?2 AND device = ?3 AND life >= ?4 "  # noqa: S608
            f"AND day >= ?5 {RATED if rated else ''} GROUP BY key HAVING SUM(n) > 0",
            (chart.table, chart.name, chart.device, life, first),
        )
        return dict(rows.fetchall())

    def times(self, chart: Chart, span: Span, *, of_life: bool = False) -> dict[int, int]:
        """The histogram of a chart of times, by the number of its bucket; `of_life` as in `counts`."""
        return {int(key): count for key, count in self.counts(chart, span, of_life=of_life).items()}

    def shoes(self, table: str) -> list[Shoe]:
        """The last shoes, the one in play first."""
        rows = self._db.execute(
            "SELECT shoe, day, decks, counts FROM fair_shoe WHERE tbl = ? ORDER BY number DESC", (table,)
        )
        return [
            Shoe(name, day, decks, tuple(msgspec.json.decode(text, type=list[int]))) for name, day, decks, text in rows
        ]

    # ---- tests

    def test(self, chart: Chart) -> Test | None:
        """The present test of a chart; None for one that is not tested."""
        bet = self._bet_of(chart)
        if bet is None:
            return None
        n, log_e = bet
        key = (chart.table, chart.name, chart.device, self._life(chart.table, chart.device))
        row = self._db.execute(
            "SELECT peak, threshold FROM fair_chart JOIN fair_limit USING (tbl, chart, device, life) "
            "WHERE tbl = ? AND chart = ? AND device = ? AND life = ?",
            key,
        ).fetchone()
        before, threshold = row or (0.0, self._next_threshold())
        if log_e > before:
            # `run` reports a failed write; the next call repeats it.
            with contextlib.suppress(BadStore), self._store.write() as db:
                db.execute(
                    "UPDATE fair_chart SET peak = ? WHERE tbl = ? AND chart = ? AND device = ? AND life = ?",
                    (log_e, *key),
                )
        return Test(n, log_e, max(log_e, before), threshold)

    def doubted_after(self, chart: Chart, test: Test) -> float | None:
        """The total count at which the bet would alarm, if the proportions of this life continue.

        It uses the bet that the trouble was there from the beginning, which is half of the whole bet. None: never, or
        later than any device lasts.
        """
        bet = self._bet_if_repeated(chart)
        if bet is None or not test.n:
            return None
        from_the_first = test.threshold + math.log(2)
        times = statistics.repeats(bet, from_the_first, MOST_FORETOLD / test.n)
        return None if times is None else times * test.n

    def _bet_if_repeated(self, chart: Chart) -> Callable[[float], float] | None:
        """A function from a factor to the logarithm of the bet on that many times the counts of this life."""
        match chart.name:
            case "wheel" | "dice":
                keys = self.ring(chart.table) if chart.name == "wheel" else tuple("123456")
                counts = [sum(column) for column in zip(*self._weeks(chart, keys), strict=True)]
                width = SECTOR if chart.name == "wheel" else 0

                def bet(times: float) -> float:
                    return statistics.log_e_even([times * count for count in counts], width)

                return bet
            case "cards":
                bets = [sum(column) for column in zip(*self._deck_bets(chart).values(), strict=True)]
            case "reads" | "shuffles":
                bad, good, accepted = _RATES[chart.name]
                weeks = self._weeks(chart, (bad, good), rated=chart.name == "reads")
                hits, others = (sum(column) for column in zip(*weeks, strict=True)) if weeks else (0, 0)
                bets = statistics.log_rate(hits, hits + others, accepted)
            case _:
                return None
        return (lambda times: statistics.log_mean([times * one for one in bets])) if bets else None

    def ring(self, table: str) -> tuple[str, ...]:
        """The pockets of the table's wheel in their order, by its last result."""
        if table not in self._rings:
            row = self._db.execute(
                "SELECT json_extract(facts, '$.order') FROM fair_round WHERE tbl = ? AND day = "
                "(SELECT max(day) FROM fair_round WHERE tbl = ?) AND json_extract(facts, '$.order') != '' LIMIT 1",
                (table, table),
            ).fetchone()
            self._rings[table] = _ring(row[0] if row is not None else "")
        return self._rings[table]

    def _bet_of(self, chart: Chart) -> tuple[int, float] | None:
        """The count of this life, and the logarithm of the bet."""
        match chart.name:
            case "wheel":
                weeks = self._weeks(chart, self.ring(chart.table))
                return _total(weeks), statistics.log_e_starts(weeks, [1 / 37] * 37, SECTOR)
            case "cards":
                return self._bet_on_decks(chart)
            case "reads" | "shuffles":
                return self._bet_on_rate(chart, *_RATES[chart.name])
            case "dice":
                weeks = self._weeks(chart, tuple("123456"))
                return _total(weeks), statistics.log_e_starts(weeks, [1 / 6] * 6)
            case _:
                return None

    def _bet_on_rate(self, chart: Chart, bad: str, good: str, accepted: float) -> tuple[int, float] | None:
        weeks = self._weeks(chart, (bad, good), rated=bad == "misread")
        if bad == "misread" and not weeks:
            return None  # the access list withholds card events
        bets = [statistics.log_rate(hits, hits + others, accepted) for hits, others in weeks]
        return _total(weeks), statistics.log_e_bets(bets)

    def _bet_on_decks(self, chart: Chart) -> tuple[int, float] | None:
        days = self._deck_bets(chart)
        if not days:
            return None
        weeks = statistics.weekly(days)
        return sum(self.counts(chart, "service").values()), statistics.log_e_bets(weeks)

    def _deck_bets(self, chart: Chart) -> dict[str, list[float]]:
        """The bets on the decks of this life by day, also those of shoes in play."""
        where = (chart.table, chart.device, self._life(chart.table, chart.device))
        rows = self._db.execute("SELECT day, bets FROM fair_deck WHERE tbl = ? AND device = ? AND life = ?", where)
        days: dict[str, list[float]] = {day: msgspec.json.decode(text, type=list[float]) for day, text in rows}
        for day, bets in self._open_bets(where):
            days[day] = [a + b for a, b in zip(days.get(day, [0.0] * 104), bets, strict=True)]
        return days

    def _open_bets(self, where: tuple[str, str, int]) -> list[tuple[str, list[float]]]:
        rows = self._db.execute(
            "SELECT shoe, day, decks, counts FROM fair_shoe WHERE tbl = ? AND device = ? AND life = ? AND open = 1",
            where,
        )
        found = []
        for name, day, decks, text in rows:
            bets = _bets(Shoe(name, day, decks, tuple(msgspec.json.decode(text, type=list[int]))))
            if bets is not None:
                found.append((day, bets))
        return found

    def deck_suspect(self, chart: Chart) -> tuple[str, Literal["lacks", "extra"]]:
        """The card with the strongest bet on the decks of this life, and whether it seems missing or extra."""
        where = (chart.table, chart.device, self._life(chart.table, chart.device))
        rows = self._db.execute("SELECT bets FROM fair_deck WHERE tbl = ? AND device = ? AND life = ?", where)
        every = [msgspec.json.decode(text, type=list[float]) for (text,) in rows]
        every += [bets for _, bets in self._open_bets(where)]
        sums = [sum(column) for column in zip(*every, strict=True)] or [0.0] * 104
        best = max(range(104), key=sums.__getitem__)
        return DECK[best % 52], "lacks" if best < 52 else "extra"

    def _weeks(self, chart: Chart, keys: Sequence[str], *, rated: bool = False) -> list[list[int]]:
        """The counts of this life by weeks from its first day, in the order of `keys`; `rated` as in `counts`."""
        life = self._life(chart.table, chart.device)
        rows = self._db.execute(
            "SELECT day, key, n FROM fair_count WHERE tbl = ?1 AND chart = ?2 AND device = ?3 AND life = ?4 "  # noqa: S608
            f"{RATED if rated else ''}",
            (chart.table, chart.name, chart.device, life),
        )
        place = {key: number for number, key in enumerate(keys)}
        days: dict[str, list[int]] = {}
        for day, key, n in rows:
            if key in place:
                days.setdefault(day, [0] * len(keys))[place[key]] += n
        return statistics.weekly(days)

    # ---- alarms

    def alarms(self) -> list[Alarm]:
        """All present alarms. Each call tests some of the changed charts; the test allows a look at any time."""
        for chart in list(self._changed)[:LOOKS]:
            self.test(chart)
            del self._changed[chart]
        rows = self._db.execute(
            "SELECT tbl, chart, device FROM fair_chart JOIN fair_limit USING (tbl, chart, device, life) "
            "WHERE peak >= threshold AND life = (SELECT COALESCE(MAX(life), 0) FROM fair_life "
            "WHERE fair_life.tbl = fair_chart.tbl AND fair_life.device = fair_chart.device)"
        ).fetchall()
        found = [self._alarm(Chart(*row)) for row in rows]
        return found + self._impossible() + self._slow()

    def _alarm(self, chart: Chart) -> Alarm:
        table, name, device = chart.table, chart.name, chart.device
        counts = self.counts(chart, "service", rated=name == "reads")
        total = sum(counts.values())
        values: dict[str, str | int]
        match name:
            case "wheel":
                code = "fairness.wheel"
                key, values = self._wheel_words(counts, self.ring(table))
            case "cards":
                card, wrong = self.deck_suspect(chart)
                code, key, values = "fairness.cards", f"fair.alarm_card_{wrong}", {"card": shown(card), "n": total}
            case "reads" | "shuffles":
                bad = counts.get("misread" if name == "reads" else "failed", 0)
                code, key, values = f"fairness.{name}", f"fair.alarm_{name}", {"bad": bad, "n": total}
            case _:
                face, count = statistics.farthest(counts, [str(one) for one in range(1, 7)])
                code, key = "fairness.dice", "fair.alarm_dice"
                values = {"face": face, "count": count, "due": round(total / 6), "n": total}
        return Alarm(table, device, code, key, values)

    @staticmethod
    def _wheel_words(counts: Mapping[str, int], ring: tuple[str, ...]) -> tuple[str, dict[str, str | int]]:
        """The alarm of a single pocket or of a sector of the wheel, whichever is less likely by chance."""
        values: dict[str, str | int]
        ordered = [counts.get(pocket, 0) for pocket in ring]
        total = sum(ordered)
        sector = statistics.fullest_sector(ordered, SECTOR)
        pocket, count = statistics.farthest(counts, WHEEL)
        if sector.p <= 37 * statistics.binomial_tail(count, total, 1 / 37) or count * 37 < total:
            first, last = ring[sector.first], ring[(sector.first + SECTOR - 1) % 37]
            values = {"first": first, "last": last, "count": sector.count, "due": round(sector.expected), "n": total}
            return "fair.alarm_sector", values
        return "fair.alarm_pocket", {"pocket": pocket, "count": count, "due": round(total / 37), "n": total}

    def _impossible(self) -> list[Alarm]:
        """The alarms of cards drawn more often than the decks contain them, in the shoe in play or the one before."""
        found = []
        for (table,) in self._db.execute("SELECT DISTINCT tbl FROM fair_shoe ORDER BY tbl").fetchall():
            for shoe in self.shoes(table)[:2]:
                for card in shoe.impossible[:1]:
                    count = shoe.counts[CARD_PLACE[card]]
                    values: dict[str, str | int] = {"card": shown(card), "count": count, "decks": shoe.decks}
                    found.append(Alarm(table, "", "fairness.too_often", "fair.alarm_too_often", values))
        return found

    def _slow(self) -> list[Alarm]:
        """The alarms of shuffles that take longer and longer, because something wears."""
        found = []
        rows = self._db.execute("SELECT DISTINCT tbl, chart, device FROM fair_chart WHERE chart = 'shuffle'").fetchall()
        for chart in (Chart(*row) for row in rows):
            week, life = self.times(chart, "week", of_life=True), self.times(chart, "service")
            if sum(week.values()) < SLOW_WEEK or sum(life.values()) < SLOW_LIFE:
                continue
            (now,), (usual,) = statistics.percentiles(week, [0.5]), statistics.percentiles(life, [0.5])
            if now > SLOWER * usual:
                values: dict[str, str | int] = {"now": round(now), "usual": round(usual)}
                found.append(Alarm(chart.table, chart.device, "fairness.slow_shuffle", "fair.alarm_slow", values))
        return found

    # ---- retention

    def _prune(self) -> None:
        today = self._now().date()
        if self._pruned != today:
            self._pruned = today
            # A wrong clock, here or at the edge, must not delete rounds that may still be repeated.
            newest = self._db.execute("SELECT MAX(day) FROM fair_round").fetchone()[0] or ""
            self._until = min(today, date.fromisoformat(newest)) if newest else today
            self._horizon = (self._until - KEPT_ROUNDS).isoformat()
            self._db.execute("DELETE FROM fair_round WHERE day < ?", (self._horizon,))
            rows = self._db.execute("SELECT tbl, chart, device, life FROM fair_chart").fetchall()
            self._foldable = [row for row in rows if row[1] == "cards" or row[1] in _TIMES]
        for row in self._foldable[:FOLDS]:
            self._fold((*row, (self._until - KEPT_DAYS).isoformat()))
            if row[1] in _TIMES:
                self._db.execute(
                    "DELETE FROM fair_count WHERE tbl = ? AND chart = ? AND device = ? AND life = ? AND day < ?",
                    (*row, (self._until - KEPT_TIMES).isoformat()),
                )
        del self._foldable[:FOLDS]

    def _fold(self, where: tuple[str, str, str, int, str]) -> None:
        """Merge old days into their month, where no test needs days: a histogram has many keys."""
        self._db.execute(
            "INSERT INTO fair_count SELECT tbl, chart, device, life, substr(day, 1, 8) || '01', key, SUM(n) "
            "FROM fair_count WHERE tbl = ? AND chart = ? AND device = ? AND life = ? AND day < ? "
            "AND day NOT LIKE '%-01' GROUP BY substr(day, 1, 8), key ON CONFLICT DO UPDATE SET n = n + excluded.n",
            where,
        )
        self._db.execute(
            "DELETE FROM fair_count WHERE tbl = ? AND chart = ? AND device = ? AND life = ? AND day < ? "
            "AND day NOT LIKE '%-01'",
            where,
        )


def _day(name: str) -> str:
    """The day in a round's name; "" where it has none."""
    parts = name.split(":")
    try:
        return date.fromisoformat(parts[1]).isoformat() if len(parts) > 2 else ""
    except ValueError:
        return ""


def _bets(shoe: Shoe) -> list[float] | None:
    """The bets on a shoe; None where its cards are not whole decks or come from several shoes."""
    if not shoe.decks or max(shoe.counts) > shoe.decks or min(shoe.counts) < 0:
        return None
    return statistics.log_deck(shoe.counts, shoe.decks)


def _total(weeks: Sequence[Sequence[int]]) -> int:
    return sum(map(sum, weeks))


def _options(result: Result) -> _Options:
    try:
        return msgspec.json.decode(result.options, type=_Options)
    except msgspec.DecodeError:
        return _Options()


def _ring(order: str) -> tuple[str, ...]:
    return AMERICAN_WHEEL if order == "american" else WHEEL
