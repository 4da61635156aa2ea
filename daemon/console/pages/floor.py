"""The floor as its manager sees it: openness, pace, turnover, win against the expected win, and what was lost.

The page is live: its lines are drawn again while rounds end, at most every EVERY_S.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.auth.access import User, may
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.rounds import time_asked
from daemon.console.site.counts import Counts, Tally, tally
from daemon.console.site.floor import BY, By, Line, lines, namer, total
from daemon.console.site.rounds import Records, Rounds
from daemon.console.site.shifts import day_of_play, shift_of
from daemon.console.site.signs import sign_of
from daemon.console.site.turnover import groups, waits
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless
from daemon.words import words
from daemon.words.money import money

__all__ = ["Floor"]

LONGEST = timedelta(days=31)
EVERY_S = 10.0
PARTS = 24
SHORTEST_PART_S = 900
_FIELD = "%Y-%m-%dT%H:%M"
COLUMNS = (
    *("line", "tables", "rounds", "rounds_per_hour", "par", "rounds_with_bets", "turnover", "win", "hold"),
    *("compared_turnover", "compared_win", "expected_win", "chance_95", "judged"),
    *("void_rounds", "void_stakes", "void_expected_win", "rounds_that_waited", "waited_s", "rounds_not_played"),
    *("counted_win", "counts_missing", "currency", "decimals"),
)


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
        self.parts = range(0) if timed else range(first, last + 1)


class Floor:
    """The page, its live part, and the same as CSV."""

    def __init__(self, context: ConsoleContext, rounds: Rounds, counts: Counts) -> None:
        self._context = context
        self._rounds = rounds
        self._counts = counts
        self._records = Records(context.store.db)

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

    def _lines(self, asked: _Asked, user: User | Viewer) -> tuple[list[Line], Line]:
        context = self._context
        self._rounds.flush()
        db = context.store.db
        seen = [
            one
            for one in groups(db, asked.since, asked.until, asked.part_s)
            if not user.tables or one.table in user.tables
        ]
        areas = {table.name: table.area for table in context.config.table}
        pars = context.config.console.par
        named = namer(asked.by, areas, context.config.console.shifts, asked.part_s, context.zone)
        waited = waits(db, asked.since, asked.until)
        of_time = {} if asked.by in ("hour", "shift", "day") else waited
        found = lines(seen, named, pars=pars, waits=of_time, parts=asked.parts)
        return found, total("", seen, pars=pars, waits=waited, parts=asked.parts)

    def _tally(self, table: str, asked: _Asked) -> Tally:
        return tally(self._counts.entries(table, asked.since, asked.until))

    async def page(self, request: Request) -> Response:
        context = self._context
        context.needs(request, "floor")
        return context.page(request, "floor.html", asked=_Asked(context, request.query_params))

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
            "known": min((at for table in tables if (at := self._records.since(table))), default=None),
        }

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
        found, whole = self._lines(asked, user)
        rows: list[Sequence[str]] = [COLUMNS, *(self._cells(one, asked) for one in (*found, whole))]
        context.actions.note(user.name, user.role, "floor.export", "", {**asked.fields, "by": asked.by})
        name = f"floor-{context.site.site}-{asked.by}-{asked.since:%Y%m%dT%H%MZ}.csv"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response((BYTE_ORDER_MARK + csv_text(rows)).encode(), 200, headers, "text/csv; charset=utf-8")

    def _cells(self, one: Line, asked: _Asked) -> list[str]:
        counted = self._tally(one.name, asked) if asked.by == "table" and one.name else None
        site = self._context.config.site
        values: list[Any] = [
            *(one.name or "total", " ".join(one.tables), one.rounds, one.rounds_per_hour, one.par, one.with_bets),
            *(one.turnover, one.win, one.hold, one.figured or None, one.compared, one.expected, one.band, one.chance),
            *(one.void, one.void_stakes, one.void_expected, one.waits, one.waited_s, one.lost),
            *(counted.win if counted else None, " ".join(counted.missing) if counted else ""),
            *(site.currency_of(_law_of(one.rulesets)), site.decimals),
        ]
        return [_cell(value) for value in values]


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
