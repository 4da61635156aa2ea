"""The reliability of devices: time between faults and to repair, the ten worst, lost rounds, and service due."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.alerts.reliability import BY, By, Fault, Line, Unit, faults, lines, units_of, worst
from daemon.console.auth.access import User
from daemon.console.context import ConsoleContext
from daemon.console.fairness.fairness import Fairness
from daemon.console.pages.rounds import time_asked
from daemon.console.site.shifts import shift_of
from daemon.console.site.turnover import rounds_since
from daemon.console.site.watched import Watched
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless

__all__ = ["routes"]

USUAL, LONGEST = timedelta(days=30), timedelta(days=92)
MOST = 2_000
SOON = 0.9
"""A service is announced from this part of its interval."""
COLUMNS = (
    *("line", "devices", "watched_s", "faults", "open", "between_faults_s", "to_repair_s", "out_of_order_s"),
    *("rounds_not_played", "void_rounds", "faults_of_unknown_cost"),
)


def routes(context: ConsoleContext, watched: Watched, fairness: Fairness) -> list[Route]:
    """The page, and its lines as CSV."""
    pages = _Pages(context, watched, fairness)
    return [Route("/devices", pages.page), Route("/devices.csv", pages.table)]


class Due(Struct, frozen=True):
    """A device whose driver has a service interval. `at` None: no service is recorded, rounds count since `known`."""

    table: str
    device: str
    kind: str
    rounds: int
    limit: int
    known: datetime
    at: datetime | None
    why: str

    @property
    def share(self) -> float:
        """The used part of the service interval; 1: service is due."""
        return self.rounds / self.limit


class _Asked:
    """The request in the address."""

    def __init__(self, context: ConsoleContext, request: Request) -> None:
        given, zone, now = request.query_params, context.zone, context.now()
        self.by: By = next((one for one in BY if one == given.get("by")), "unit")
        until = time_asked(given.get("to", ""), zone) or now
        since = time_asked(given.get("from", ""), zone) or until - USUAL
        self.until = until.astimezone(UTC)
        self.since = max(min(since.astimezone(UTC), self.until), self.until - LONGEST)
        self.fields = {"from": _typed(self.since, zone), "to": _typed(self.until, zone)}
        self.query = urlencode({**self.fields, "by": self.by})
        self.spans = {days: urlencode({"from": _typed(now - timedelta(days=days), zone)}) for days in (7, 30, 90)}


def _typed(at: datetime, zone: tzinfo) -> str:
    """A time in the format of a form field."""
    return f"{at.astimezone(zone):%Y-%m-%dT%H:%M}"


class _Pages:
    def __init__(self, context: ConsoleContext, watched: Watched, fairness: Fairness) -> None:
        self._context = context
        self._watched = watched
        self._fairness = fairness

    async def page(self, request: Request) -> Response:
        context = self._context
        user, asked = context.needs(request, "look"), _Asked(self._context, request)
        units, found = self._found(user, asked)
        times = self._watched.times(asked.since, asked.until)
        by_unit = lines("unit", units, found, times)
        return context.page(
            request,
            "devices.html",
            asked=asked,
            bys=BY,
            lines=by_unit if asked.by == "unit" else lines(asked.by, units, found, times),
            worst=worst(by_unit),
            due=self._due(user),
            service=context.config.console.service,
            watched_s=sum((end - begin).total_seconds() for begin, end in times),
            cut=len(found) >= MOST,
            soon=SOON,
        )

    async def table(self, request: Request) -> Response:
        context = self._context
        user, asked = context.needs(request, "look"), _Asked(self._context, request)
        units, found = self._found(user, asked)
        some = lines(asked.by, units, found, self._watched.times(asked.since, asked.until))
        rows: list[Sequence[str]] = [COLUMNS, *(_cells(one) for one in some)]
        name = f"devices-{context.site.site}-{asked.by}-{asked.since:%Y%m%dT%H%MZ}.csv"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response((BYTE_ORDER_MARK + csv_text(rows)).encode(), 200, headers, "text/csv; charset=utf-8")

    def _found(self, user: User, asked: _Asked) -> tuple[list[Unit], list[Fault]]:
        context = self._context
        db, now, begins, zone = context.store.db, context.now(), context.config.console.shifts, context.zone
        devices = {
            key: (one.meta.driver, one.meta.model, one.meta.serial)
            for key, one in context.site.devices.items()
            if one.there and (not user.tables or key[0] in user.tables)
        }
        lives = {key: [(at, serial) for at, serial, _ in some] for key, some in self._fairness.lives().items()}
        units = units_of(devices, self._watched.seen(), lives, asked.until)
        found = faults(db, asked.since, asked.until, MOST, now=now, shift_end=lambda at: shift_of(begins, at, zone)[1])
        return units, [one for one in found if not user.tables or one.table in user.tables]

    def _due(self, user: User) -> list[Due]:
        """The devices with a service interval, the most due first."""
        context, lives, seen = self._context, self._fairness.lives(), self._watched.seen()
        found = []
        for (table, device), view in context.site.devices.items():
            limit = context.config.console.service.get(view.meta.driver)
            known = seen.get((table, device))
            if limit is None or known is None or not view.there or (user.tables and table not in user.tables):
                continue
            last = next((one for one in reversed(lives.get((table, device), ())) if one[2]), None)
            begin = last[0] if last else known
            rounds = rounds_since(context.store.db, table, begin)
            at, why = (last[0], last[2]) if last else (None, "")
            found.append(Due(table, device, view.meta.driver, rounds, limit, begin, at, why))
        return sorted(found, key=lambda one: (-one.share, one.table, one.device))


def _cells(one: Line) -> list[str]:
    values: list[Any] = [
        *(" ".join(filter(None, one.name)) or "", one.units, one.watched_s, one.faults, one.open, one.between_s),
        *(one.repair_s, one.down_s, one.lost, one.void, one.unknown),
    ]
    return [_cell(value) for value in values]


def _cell(value: str | float | None) -> str:
    """The cell of a value; empty where it is unknown."""
    if value is None:
        return ""
    if isinstance(value, str):
        return harmless(value)
    return f"{value:.1f}" if isinstance(value, float) else str(value)
