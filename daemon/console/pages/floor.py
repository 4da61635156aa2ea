"""The floor as its manager sees it: open tables, pace, turnover, win against the expected win, and what was lost.

The page is live: its lines are drawn again while rounds end, at most every EVERY_S. Where `[ledger] reports` is
configured the ledger is queried when the page is opened: its figures replace those of a table of which this console
lacks rounds, without an expected win. Rounds that end later are those that the console receives.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.auth.access import User, may
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.ledger import LIMIT_S, MOST_IN_FILE, Asking
from daemon.console.pages.rounds import time_asked
from daemon.console.site.counts import Counts, Tally, tally
from daemon.console.site.floor import BY, By, Compared, Line, Named, compared, lines, namer, starts, total
from daemon.console.site.rounds import Records, Rounds
from daemon.console.site.shifts import day_of_play, shift_of
from daemon.console.site.signs import sign_of
from daemon.console.site.turnover import Group, groups, waits
from daemon.journal.rows import EPOCH, micros_of
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless
from daemon.words import words
from daemon.words.money import money

if TYPE_CHECKING:
    from daemon.site.reports import Played

__all__ = ["Floor"]

LONGEST = timedelta(days=31)
EVERY_S = 10.0
PARTS = 24
SHORTEST_PART_S = 900
MOST_KNOWN = 32
"""The most lists whose ledger answer is kept while they are displayed."""
_FIELD = "%Y-%m-%dT%H:%M"
COLUMNS = (
    *("line", "tables", "rounds", "rounds_per_hour", "par", "rounds_with_bets", "turnover", "win", "hold"),
    *("compared_turnover", "compared_win", "expected_win", "chance_95", "judged"),
    *("void_rounds", "void_stakes", "void_expected_win", "rounds_that_waited", "waited_s", "rounds_not_played"),
    *("counted_win", "counts_missing", "currency", "decimals", "ledger_until"),
)


class Source(Struct, frozen=True):
    """The time up to which the ledger is complete; tables of which this console lacks rounds, or the ledger."""

    until: datetime
    partly: Sequence[str]
    behind: Sequence[str]


class _Asked:
    """The request in the address."""

    def __init__(self, context: ConsoleContext, given: Mapping[str, str]) -> None:
        zone, begins = context.zone, context.config.console.shifts
        self.by: By = next((one for one in BY if one == given.get("by")), "table")
        since, until = day_of_play(begins, context.now(), zone)
        since = time_asked(given.get("from", ""), zone) or since
        until = time_asked(given.get("to", ""), zone) or max(until, since)
        self.since, wanted = since.astimezone(UTC), until.astimezone(UTC)
        self.until = min(max(wanted, self.since), self.since + LONGEST)
        self.cut = wanted > self.until
        fields = {"from": f"{since.astimezone(zone):{_FIELD}}", "to": f"{self.until.astimezone(zone):{_FIELD}}"}
        self.fields = fields
        self.query = urlencode({**fields, "by": self.by})
        self.live = f"floor/{self.by}/{fields['from']}/{fields['to']}"
        self.bys = {one: urlencode({**fields, "by": one}) for one in BY}
        day, shift = day_of_play(begins, context.now(), zone), shift_of(begins, context.now(), zone)
        before = day_of_play(begins, day[0] - timedelta(seconds=1), zone)
        spans = {"today": day, "yesterday": before, "shift": shift}
        self.spans = {
            name: urlencode({"from": f"{a.astimezone(zone):{_FIELD}}", "to": f"{b.astimezone(zone):{_FIELD}}"})
            for name, (a, b) in spans.items()
        }
        length = (self.until - self.since).total_seconds()
        timed = self.by in ("hour", "shift", "day")
        self.part_s = SHORTEST_PART_S if timed else max(SHORTEST_PART_S, int(length) // PARTS)
        first = int(self.since.timestamp()) // self.part_s
        last = int(min(self.until, max(context.now(), self.since)).timestamp()) // self.part_s
        self.span = range(first, last + 1)
        self.parts = range(0) if timed else self.span


class Floor:
    """The page, its live part, and the same as CSV."""

    def __init__(self, context: ConsoleContext, rounds: Rounds, counts: Counts) -> None:
        self._context = context
        self._rounds = rounds
        self._counts = counts
        self._records = Records(context.store.db)
        self._ledger = Asking(context)
        self._known: dict[str, Compared | str] = {}

    def routes(self) -> list[Route]:
        """The page, and its lines as CSV."""
        return [Route("/floor", self.page), Route("/floor.csv", self.table)]

    def fragments(self) -> tuple[Fragment, ...]:
        """`floor`: its lines, by what, from when, to when."""

        def render(argument: str, viewer: Viewer) -> str:
            if not may(viewer.role, "floor"):
                raise KeyError(argument)
            by, _, period = argument.partition("/")
            since, _, until = period.partition("/")
            asked = _Asked(self._context, {"by": by, "from": since, "to": until})
            if asked.live != f"floor/{argument}":
                raise KeyError(argument)
            return self._context.render("_floor.html", viewer.lang, **self._values(asked, viewer))

        return (Fragment("floor", lambda _: ("floor", "broker"), render, every=EVERY_S),)

    def _named(self, asked: _Asked) -> Callable[[Group], Named]:
        context = self._context
        areas = {table.name: table.area for table in context.config.table}
        return namer(asked.by, areas, context.config.console.shifts, asked.part_s, context.zone)

    async def _ask(self, asked: _Asked) -> None:
        """Query the ledger, where there is one, and compare its answer with the rounds that were received."""
        if not self._context.config.ledger.reports:
            return
        from daemon.site.reports import played

        def query(database: str) -> tuple[datetime, list[Group]]:
            parts = starts(asked.span, asked.by, self._named(asked))
            at = [EPOCH + timedelta(seconds=part * asked.part_s) for part in parts]
            site, most = self._context.site.site, MOST_IN_FILE + 1
            until, found = played(database, site, asked.since, asked.until, at, most=most, limit_s=LIMIT_S)
            return until, [_of_ledger(parts[one.part], one) for one in found]

        found = await self._ledger.ask(query)
        known: Compared | str
        if isinstance(found, str):
            known = found
        elif found[0] <= asked.since:
            known = "floor.ledger_none"
        elif len(found[1]) > MOST_IN_FILE:
            known = "floor.ledger_long"
        else:
            self._rounds.flush()
            own = groups(self._context.store.db, asked.since, found[0], asked.part_s)
            known = compared(own, found[1], found[0])
        if known == "reports.busy" and asked.live in self._known:
            return
        self._known.pop(asked.live, None)
        self._known[asked.live] = known
        self._context.live.changed("floor")
        for old in list(self._known)[:-MOST_KNOWN]:
            del self._known[old]

    def _groups(self, asked: _Asked, user: User | Viewer) -> list[Group]:
        self._rounds.flush()
        db, known = self._context.store.db, self._known.get(asked.live)
        if isinstance(known, Compared):
            before = groups(db, asked.since, known.until, asked.part_s)
            found = [*known.best(before), *groups(db, known.until, asked.until, asked.part_s)]
        else:
            found = list(groups(db, asked.since, asked.until, asked.part_s))
        return [one for one in found if not user.tables or one.table in user.tables]

    def _lines(self, asked: _Asked, user: User | Viewer) -> tuple[list[Line], Line]:
        context = self._context
        seen = self._groups(asked, user)
        db, pars, named = context.store.db, context.config.console.par, self._named(asked)
        waited = waits(db, asked.since, asked.until)
        of_time = {} if asked.by in ("hour", "shift", "day") else waited
        found = lines(seen, named, pars=pars, waits=of_time, parts=asked.parts)
        return found, total("", seen, pars=pars, waits=waited, parts=asked.parts)

    def _tally(self, table: str, asked: _Asked) -> Tally:
        return tally(self._counts.entries(table, asked.since, asked.until))

    async def page(self, request: Request) -> Response:
        context = self._context
        context.needs(request, "floor")
        asked = _Asked(context, request.query_params)
        await self._ask(asked)
        return context.page(request, "floor.html", asked=asked)

    def _values(self, asked: _Asked, user: Viewer) -> dict[str, Any]:
        context, lang = self._context, user.lang
        found, whole = self._lines(asked, user)
        tables = [one for one in sorted(context.site.tables) if not user.tables or one in user.tables]
        played = {one.name for one in found} if asked.by == "table" else set()
        signs = {table: sign_of(context.site, table) for table in tables}
        site = context.config.site

        def currency_of(line: Line) -> str:
            return site.currency_of(_law_of(line.rulesets))

        one = currency_of(whole)  # one currency for all lines: it is in the heading
        return {
            "asked": asked,
            "lines": found,
            "whole": whole,
            "idle": [table for table in tables if table not in played] if asked.by == "table" else [],
            "signs": signs,
            "opened": sum(sign is not None and sign.state == "open" for sign in signs.values()),
            "closed": sum(sign is not None and sign.state == "closed" for sign in signs.values()),
            "seats": {table: self._seats(table) for table in tables},
            "tallies": {table: self._tally(table, asked) for table in tables} if asked.by == "table" else {},
            "amount": lambda minor, line: money(lang, round(minor), site.decimals, "" if one else currency_of(line)),
            "currency": one,
            "spark": spark,
            "title": lambda line: self._title(line, asked.by, lang),
            "source": self._source(asked, user.tables),
            "known": min((at for table in tables if (at := self._records.since(table))), default=None),
        }

    def _source(self, asked: _Asked, tables: Sequence[str] = ()) -> Source | str | None:
        """The ledger's source, or the key of a notice; None without a ledger."""
        if not self._context.config.ledger.reports:
            return None
        known = self._known.get(asked.live, "floor.ledger_reload")
        if isinstance(known, str):
            return known
        partly, behind = (
            [table for table in sorted(some) if not tables or table in tables]
            for some in ({table for table, _ in known.groups}, known.behind)
        )
        return Source(known.until, partly, behind)

    def _seats(self, table: str) -> int | None:
        """The seats with a bet in the last round; None where its bets are not known."""
        results = self._context.site.tables[table].results
        return len({one.seat for one in results[-1].settlements}) or None if results else None

    def _title(self, line: Line, by: By, lang: words.Lang) -> str:
        local = self._context.local(lang)
        match by:
            case "game":
                return words.say(lang, f"game.{line.name}")
            case "area":
                return line.name or words.say(lang, "floor.no_area")
            case "hour" | "shift":
                at = datetime.fromisoformat(line.name)
                return f"{local.short_day(at)} {local.minute(at)}"
            case "day":
                return local.day(datetime.fromisoformat(line.name))
            case _:
                return line.name

    async def table(self, request: Request) -> Response:
        context = self._context
        user, asked = context.needs(request, "floor"), _Asked(context, request.query_params)
        await self._ask(asked)
        found, whole = self._lines(asked, user)
        rows: list[Sequence[str]] = [COLUMNS, *(self._cells(one.name or "no area", one, asked) for one in found)]
        rows.append(self._cells("total", whole, asked))
        context.actions.note(user.name, user.role, "floor.export", "", {**asked.fields, "by": asked.by})
        name = f"floor-{context.site.site}-{asked.by}-{asked.since:%Y%m%dT%H%MZ}.csv"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response((BYTE_ORDER_MARK + csv_text(rows)).encode(), 200, headers, "text/csv; charset=utf-8")

    def _cells(self, name: str, one: Line, asked: _Asked) -> list[str]:
        counted = self._tally(one.name, asked) if asked.by == "table" and one.name else None
        site, source = self._context.config.site, self._source(asked)
        until = source.until.isoformat() if isinstance(source, Source) else ""
        values: list[Any] = [
            *(name, " ".join(one.tables), one.rounds, one.rounds_per_hour, one.par, one.with_bets),
            *(one.turnover, one.win, one.hold, one.figured or None, one.compared, one.expected, one.band, one.chance),
            *(one.void, one.void_stakes, one.void_expected, one.waits, one.waited_s, one.lost),
            *(counted.win if counted else None, " ".join(counted.missing) if counted else ""),
            *(site.currency_of(_law_of(one.rulesets)), site.decimals, until),
        ]
        return [_cell(value) for value in values]


def _of_ledger(part: int, one: "Played") -> Group:
    """The expected win is unknown, also that of void rounds."""
    money = (one.turnover, one.paid, 0, 0, 0, 0.0, 0, 0)
    times = micros_of(one.first), micros_of(one.last)
    return Group(one.table, one.ruleset, part, one.rounds, one.void, one.with_bets, *money, one.void, *times, own=False)


def _cell(value: str | float | None) -> str:
    """The cell of a value; empty where it is unknown. A number with a minus is not marked as a formula."""
    if value is None:
        return ""
    if isinstance(value, str):
        return harmless(value)
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _law_of(rulesets: Sequence[str]) -> str:
    """A ruleset whose law names the currency; "" for games of several laws."""
    laws = {one.partition(".")[0] for one in rulesets}
    return rulesets[0] if len(laws) == 1 else ""


def spark(parts: Sequence[int]) -> str:
    """The points of a line, 100 wide and 20 high; "" for fewer than two parts."""
    if len(parts) < 2:
        return ""
    top = max(*parts, 1)
    return " ".join(f"{100 * n / (len(parts) - 1):.1f},{19 - 18 * count / top:.1f}" for n, count in enumerate(parts))
