"""The rounds of a table by date, and the page of one round with the rounds before and after it."""

import asyncio
import shlex
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console import shapes
from daemon.console.auth.access import Right, may
from daemon.console.context import ConsoleContext
from daemon.console.site.actions import Action, read_actions
from daemon.console.site.rounds import SHOWS, Asked, Ended, Position, Records, Rested, Rounds, Show
from daemon.words import words
from protocols.contract.results import LONGEST_ROUND, Result
from rules.facts import facts_of_result

__all__ = ["LONGEST", "Period", "acts_of", "period_of", "routes", "table_of", "time_asked"]

PAGE = 100
LONGEST = timedelta(days=31)
YEARS = range(2021, 2099)
BEFORE = timedelta(minutes=10)
"""Actions of the oldest known round are searched from so long before its end."""
AFTER = timedelta(minutes=1)
MOST_ACTS = 50
_FIELD = "%Y-%m-%dT%H:%M"
"""The format of a time in a form field."""


def routes(context: ConsoleContext, rounds: Rounds) -> list[Route]:
    """The routes of the tables with stored rounds, the rounds of one table, and one round."""
    pages = _Pages(context, rounds)
    return [
        Route("/rounds", pages.tables),
        Route("/table/{table}/rounds", pages.listed),
        Route("/table/{table}/round/{round:path}", pages.one),
    ]


class Period(Struct, frozen=True):
    """A requested period of rounds, and its query. `cut`: a longer period was requested and cut to LONGEST."""

    asked: Asked
    query: dict[str, str]
    zone: tzinfo
    cut: bool = False

    @property
    def words(self) -> str:
        """The period as the query string of an address."""
        return urlencode(self.query)

    def moved(self, by: int) -> str:
        """The query of the period before (-1) or after (1) this one, of the same length in local time."""
        since, until = (at.astimezone(self.zone).replace(tzinfo=None) for at in (self.asked.since, self.asked.until))
        step = (until - since) * by
        return urlencode({**self.query, "from": f"{since + step:{_FIELD}}", "to": f"{until + step:{_FIELD}}"})


class Version(Struct, frozen=True):
    """One version of a round's result: `whole` has all of it as JSON values, `drawn` is its drawing."""

    result: Result
    whole: Any
    drawn: shapes.RoundShape
    at: datetime | None = None
    kind: str = ""
    digest: str = ""


def table_of(context: ConsoleContext, request: Request, right: Right = "look") -> str:
    """The table of a page. Raises 404, 403, or Redirect to the login."""
    table: str = request.path_params["table"]
    context.needs(request, right, table)
    if table not in context.site.tables:
        raise HTTPException(404)
    return table


def period_of(request: Request, table: str, now: datetime, zone: tzinfo) -> Period:
    """The requested period; without one in the address, this day in the zone of the site."""
    asked = request.query_params
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    since = time_asked(asked.get("from", ""), zone) or today
    until = time_asked(asked.get("to", ""), zone) or since + timedelta(days=1)
    until, wanted = min(max(until, since), since + LONGEST), until
    show: Show = next((one for one in SHOWS if one == asked.get("show")), "all")
    query = {"from": _typed(since, zone), "to": _typed(until, zone), **({"show": show} if show != "all" else {})}
    return Period(Asked(table, since.astimezone(UTC), until.astimezone(UTC), show), query, zone, wanted > until)


async def acts_of(context: ConsoleContext, table: str, since: datetime, until: datetime, most: int) -> list[Action]:
    """The actions of the console's users at a table, the oldest first."""
    found = await asyncio.to_thread(
        read_actions, context.actions.journal.path, most, place=table, since=since, until=until
    )
    return found[::-1]


class _Pages:
    def __init__(self, context: ConsoleContext, rounds: Rounds) -> None:
        self._context = context
        self._rounds = rounds
        self._records = Records(context.store.db)

    async def tables(self, request: Request) -> Response:
        user = self._context.needs(request, "look")
        self._rounds.flush()
        now = self._context.now()
        rows = []
        for table in sorted(self._context.site.tables):
            if not user.tables or table in user.tables:
                period = period_of(request, table, now, self._context.zone)
                rows.append((table, self._records.since(table), self._records.counts(period.asked)))
        period = period_of(request, "", now, self._context.zone)
        return self._context.page(request, "rounds_tables.html", rows=rows, period=period, longest=LONGEST.days)

    async def listed(self, request: Request) -> Response:
        table = table_of(self._context, request)
        period = period_of(request, table, self._context.now(), self._context.zone)
        self._rounds.flush()
        asked = period.asked
        found = self._records.listed(asked, PAGE + 1, _position(request.query_params.get("before", "")))
        rows = found[:PAGE]
        older = urlencode({**period.query, "before": _marked(rows[-1].position)}) if len(found) > PAGE else ""
        lang = self._context.lang(request)
        return self._context.page(
            request,
            "rounds.html",
            table=table,
            period=period,
            longest=LONGEST.days,
            rows=[(one, shapes.chip(one.result, lang)) for one in rows],
            counts=self._records.counts(asked),
            shows={show: urlencode({**period.query, "show": show}) for show in SHOWS},
            older=older,
            paged="before" in request.query_params,
            since=self._records.since(table),
            gaps=self._records.gaps(table, asked.since, min(asked.until, self._context.now())),
        )

    async def one(self, request: Request) -> Response:
        context = self._context
        table = table_of(context, request)
        wanted: str = request.path_params["round"]
        if len(wanted) > LONGEST_ROUND:
            raise HTTPException(404)
        self._rounds.flush()
        lang, line = context.lang(request), self._records.one(table, wanted)
        versions = self._versions(table, wanted, lang)
        if not versions:
            raise HTTPException(404)
        user = context.user(request)
        acts: list[Action] = []
        period = None
        beside: dict[str, Ended | None] = {}
        if line is not None:
            period = period_of(request, table, line.position.at, context.zone)
            if "from" not in request.query_params:  # the period is one day; the links may lead to other days
                ever = replace(period.asked, since=line.position.at - LONGEST, until=line.position.at + LONGEST)
            else:
                ever = period.asked
            for name, later in (("previous", False), ("next", True)):
                beside[name] = self._records.beside(ever, line.position, later=later)
            if user is not None and may(user.role, "actions"):
                before = self._records.beside(replace(ever, show="all"), line.position, later=False)
                since = before.position.at if before is not None else line.position.at - BEFORE
                acts = await acts_of(context, table, max(since, line.at - LONGEST), line.at + AFTER, MOST_ACTS)
        # The console must not read the journals, which hold the cards of open rounds: the page names the command.
        return context.page(
            request,
            "round.html",
            table=table,
            result=versions[0].result,
            versions=versions,
            line=line,
            notes=self._records.notes(table, wanted),
            evidence=self._evidence(table, versions[0].result),
            acts=[(one, msgspec.json.encode(one.detail).decode()) for one in acts],
            beside=beside,
            period=period,
            kept="?" + period.words if period is not None and "from" in request.query_params else "",
            recall=f"sudo feltd journal recall {table} --round {shlex.quote(wanted)}",
        )

    def _versions(self, table: str, wanted: str, lang: words.Lang) -> list[Version]:
        """The versions of a round, the newest first; from memory if the store has none."""

        def version(result: Result, *more: Any) -> Version:
            drawn = shapes.round_shape(facts_of_result(result), lang)
            return Version(result, msgspec.json.decode(msgspec.json.encode(result)), drawn, *more)

        stored = self._records.versions(table, wanted)
        if stored:
            return [version(one.result, one.at, one.kind, one.digest.hex()) for one in stored]
        results = self._context.site.tables[table].results
        return [version(one) for one in reversed(results) if one.round == wanted]

    def _evidence(self, table: str, result: Result) -> list[tuple[str, Rested | None]]:
        """Each event of a result's evidence, with its type where the console received it."""
        known = self._records.evidence(table, result.round)
        return [(one, known.get(one)) for one in result.evidence]


def _marked(position: Position) -> str:
    return f"{position.at.isoformat()}/{position.n}"


def _position(text: str) -> Position | None:
    """The position in a list; None for an invalid text."""
    at, _, n = text.partition("/")
    found = time_asked(at, UTC)
    return Position(found.astimezone(UTC), int(n)) if found and n.isascii() and n.isdigit() and len(n) < 16 else None


def _typed(at: datetime, zone: tzinfo) -> str:
    """The time as the text of a form field, in `zone`."""
    return f"{at.astimezone(zone):{_FIELD}}"


def time_asked(text: str, zone: tzinfo) -> datetime | None:
    """The time that a text names; None for an invalid text or an impossible year."""
    try:
        at = datetime.fromisoformat(text)
        if at.year not in YEARS:
            return None
        return at if at.tzinfo else at.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        return None
