"""The books of a pool in a period, as a file for spreadsheets: for those who may export, noted among the actions.

The entries come page by page from the process that keeps the books, and leave page by page.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, tzinfo

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from daemon.console.context import ConsoleContext
from daemon.console.pages.rounds import time_asked
from daemon.console.site.pools import BookLine, Pools, PoolView
from daemon.jackpots.books import exact_units
from daemon.jackpots.books_table import BooksTable
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text

__all__ = ["routes"]

PAGE = 500
MOST_ENTRIES = 200_000
"""Entries in one file; a longer period is exported on the computer of the books (`feltd jackpot --csv`)."""
MOST_SILENT = 2
"""The most requests without an answer; with one more the answer is 503."""


def routes(context: ConsoleContext, pools: Pools) -> list[Route]:
    """The file."""
    return [Route("/jackpots/{pool}/books.csv", _Pages(context, pools).books)]


class _Pages:
    def __init__(self, context: ConsoleContext, pools: Pools) -> None:
        self._context = context
        self._pools = pools

    async def books(self, request: Request) -> Response:
        context = self._context
        context.needs(request, "books")
        user = context.needs(request, "export")
        view = self._pools.get(request.path_params["pool"])
        if view is None or view.level is None or view.last is None:
            raise HTTPException(404)
        since, until = (_asked(request, name, context.zone) for name in ("from", "to"))
        if since is not None and until is not None and until <= since:
            raise HTTPException(400)
        first, last = await self._numbers(view, since, until)
        table = BooksTable(view.name, view.level.currency, view.level.decimals, view.unit, since, until)
        detail = {name: value for name, value in request.query_params.items() if name in ("from", "to") and value}
        context.actions.note(user.name, user.role, "jackpot.export", f"jackpot:{view.name}", detail)
        name = f"jackpot-{context.site.site}-{view.name}-{context.now():%Y%m%dT%H%M%SZ}.csv"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(
            self._lines(view, table, first, last), media_type="text/csv; charset=utf-8", headers=headers
        )

    async def _lines(self, view: PoolView, table: BooksTable, first: int, last: int) -> AsyncIterator[str]:
        yield BYTE_ORDER_MARK + csv_text([table.COLUMNS])
        most = min(last, first + MOST_ENTRIES - 1)
        for start in range(first, most + 1, PAGE):
            for line in reversed(await self._pools.recall(view, start, min(start + PAGE - 1, most))):
                yield csv_text(table.add(line.seq, line.at, line.type, line.entry))
        yield csv_text(table.lacks(first, last))
        before = (await self._pools.recall(view, first - 1, first - 1) if first > 1 else []) if last < first else []
        entry = before[0].entry if before else None
        yield csv_text(table.end(exact_units(entry.after) if entry else {}, entry.unit if entry else 1))

    async def _numbers(self, view: PoolView, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """The first and the last entry of a period. Raises HTTPException (503) without an answer of their process."""
        assert view.last is not None
        newest = view.last.seq
        first = 1 if since is None else await self._first_from(view, since, newest)
        last = newest if until is None else await self._first_from(view, until, newest) - 1
        return first, last

    async def _first_from(self, view: PoolView, time: datetime, newest: int) -> int:
        """The lowest number at or after this time; one more than the newest where there is none."""
        low, high, silent = 1, newest + 1, 0
        while low < high:
            middle = (low + high) // 2
            found = await self._pools.recall(view, middle, middle)
            if not found:  # its file was archived, or the process is offline
                silent += 1
                if silent > MOST_SILENT:
                    raise HTTPException(503)
            if found and found[0].at >= time:
                high = middle
            else:
                low = middle + 1
        while low > 1:  # entries of late events have higher numbers than those of later events
            page = await self._pools.recall(view, low - PAGE, low - 1)
            late: list[BookLine] = [line for line in page if line.at >= time]
            if not late:
                break
            low = min(line.seq for line in late)
        return low


def _asked(request: Request, name: str, zone: tzinfo) -> datetime | None:
    """Raises HTTPException (400) for a time that cannot be read."""
    text = request.query_params.get(name, "")[:40]
    at = time_asked(text, zone)
    if text and at is None:
        raise HTTPException(400)
    return at.astimezone(UTC) if at is not None else None
