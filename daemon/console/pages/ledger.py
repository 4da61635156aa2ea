"""Reports of the ledger for the manager: figures of all computers of the site by groups, as a table and as CSV.

They come from PostgreSQL in a thread, one report at a time, and only where `[ledger] reports` is configured. The
modules of a site are imported when somebody opens the page.
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon import logs
from daemon.console.auth.access import User
from daemon.console.context import ConsoleContext
from daemon.console.site.shifts import day_of_play
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless
from daemon.words.local import Local

if TYPE_CHECKING:
    from daemon.site.reports import Report

__all__ = ["LIMIT_S", "MOST_IN_FILE", "Asking", "routes"]

T = TypeVar("T")

DAY = timedelta(days=1)
LONGEST = 400 * DAY
MOST, MOST_IN_FILE = 5_000, 20_000
"""Rows on the page, and in a file: the console has little memory; `feltd report` prints more."""
LIMIT_S = 10


def routes(context: ConsoleContext) -> list[Route]:
    """The page, and its report as CSV."""
    pages = _Pages(context)
    return [Route("/reports", pages.page), Route("/reports.csv", pages.table)]


class Asking:
    """Queries the ledger in a thread, one query at a time."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._one = asyncio.Lock()

    async def ask(self, query: Callable[[str], T]) -> T | str:
        """The result of a function of daemon/site/reports.py with the address of the database; without one the key of
        the sentence with the reason.
        """
        from daemon.site.reports import NoReport, TooSlow

        database = self._context.config.ledger.reports
        if not database:
            return "reports.no_ledger"
        if self._one.locked():
            return "reports.busy"
        async with self._one:
            try:
                return await asyncio.to_thread(query, database)
            except ModuleNotFoundError:
                return "reports.not_installed"
            except NoReport as error:
                logs.get(console=self._context.site.site).warning("console.no_report", reason=str(error))
                return "reports.slow" if isinstance(error, TooSlow) else "reports.away"


class _Asked:
    """The report in the address, with the days of play from `first` to `last`."""

    def __init__(self, context: ConsoleContext, given: QueryParams) -> None:
        from daemon.site.reports import AMOUNTS, GROUPS, REPORTS

        today = day_of_play(context.config.console.shifts, context.now(), context.zone)[0].date()
        newest = today + DAY  # another computer may have begun it
        self.kind = next((one for one in REPORTS if one == given.get("kind")), "hold")
        self.groups = REPORTS[self.kind][2]
        by = given.getlist("by") if "kind" in given else ["table"]
        self.by = [one for one in self.groups if one in by]
        self.first = min(_day(given.get("from", "")) or today - DAY, newest)
        last = min(max(_day(given.get("to", "")) or self.first, self.first), newest)
        self.last = min(last, self.first + LONGEST - DAY)
        self.cut = last > self.last
        self.known, self.amounts = GROUPS, AMOUNTS
        self.kinds = {kind: self._query(kind, one[2]) for kind, one in REPORTS.items()}
        self.query = self.kinds[self.kind]

    def _query(self, kind: str, groups: Sequence[str]) -> str:
        by = [one for one in self.by if one in groups]
        return urlencode({"kind": kind, "from": self.first, "to": self.last, "by": by}, doseq=True)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


class _Pages:
    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._ledger = Asking(context)

    def _user(self, request: Request) -> User:
        """Raises Redirect, HTTPException: the figures are those of all tables."""
        user = self._context.needs(request, "floor")
        if user.tables:
            raise HTTPException(403, "reports.all_tables")
        return user

    async def page(self, request: Request) -> Response:
        self._user(request)
        asked = _Asked(self._context, request.query_params)
        return self._page(request, asked, await self._report(asked, MOST))

    def _page(self, request: Request, asked: _Asked, found: "Report | str", status: int = 200) -> Response:
        said, made = (found, None) if isinstance(found, str) else ("", found)
        rows = made.rows[:MOST] if made else ()
        more = made is not None and len(made.rows) > MOST
        shown = {"asked": asked, "said": said, "found": made, "rows": rows, "more": more}
        money = self._money(made.columns if made else (), rows, asked.amounts)
        return self._context.page(request, "reports.html", status, **shown, **money)

    def _money(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], amounts: Container[str]) -> dict[str, Any]:
        """The currency of all tables of this console, "" where they have several; how an amount is written."""
        site = self._context.config.site
        found = {site.currency_of(table.ruleset) for table in self._context.config.table if table.ruleset}
        currency = found.pop() if len(found) == 1 else site.currency

        decimals: dict[str, int] = {}
        for n, column in enumerate(columns):
            if column in amounts:
                exact = [Decimal(row[n]).scaleb(-site.decimals) for row in rows if row[n] is not None]
                decimals[column] = max([site.decimals, *(-int(one.as_tuple().exponent) for one in exact)])

        def amount(local: Local, column: str, minor: int | Decimal) -> str:
            """With the decimals of the whole column: a pool also has parts of a smallest unit."""
            return local.number(Decimal(minor).scaleb(-site.decimals), decimals[column])

        return {"currency": currency, "amount": amount}

    async def table(self, request: Request) -> Response:
        context, user = self._context, self._user(request)
        asked = _Asked(context, request.query_params)
        if not context.config.ledger.reports:
            return RedirectResponse("/reports", 303)
        found = await self._report(asked, MOST_IN_FILE)
        if not isinstance(found, str) and len(found.rows) > MOST_IN_FILE:
            found = "reports.long_file"
        if isinstance(found, str):
            return self._page(request, asked, found, 503)
        days = {"from": str(asked.first), "to": str(asked.last)}
        context.actions.note(user.name, user.role, "ledger.export", "", {"kind": asked.kind, "by": asked.by, **days})
        name = f"report-{asked.kind}-{asked.first}-{asked.last}.csv"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        text = csv_text([found.columns, *([_cell(one) for one in row] for row in found.rows)])
        return Response((BYTE_ORDER_MARK + text).encode(), 200, headers, "text/csv; charset=utf-8")

    async def _report(self, asked: _Asked, most: int) -> "Report | str":
        """With one row more than `most` where there are more; else the key of the sentence with the reason."""
        from daemon.site.reports import report

        until = asked.last + DAY
        return await self._ledger.ask(
            lambda database: report(database, asked.kind, asked.by, asked.first, until, most=most + 1, limit_s=LIMIT_S)
        )


def _cell(value: Any) -> str:
    """Empty where it is not known. A number with a minus is not marked as a formula."""
    return harmless(value) if isinstance(value, str) else "" if value is None else str(value)
