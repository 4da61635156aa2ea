"""The report of a shift: its incidents, what is open at its end, response times; to print, as CSV and as JSON."""

from datetime import datetime, timedelta, tzinfo
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console.alerts.records import Incident
from daemon.console.alerts.report import Report, made, times
from daemon.console.auth.access import User
from daemon.console.context import ConsoleContext
from daemon.console.pages.alerts import said
from daemon.console.site.shifts import shift_of
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless

__all__ = ["routes"]

LONGEST = timedelta(days=31)
MOST = 2_000
MOST_SILENCES = 500
YEARS = range(2000, 9000)
COLUMNS = (
    "number",
    "table",
    "device",
    "kind",
    "severity",
    "code",
    "text",
    "state",
    "began",
    "ended",
    "times",
    "owner",
    "taken_s",
    "at_table_s",
    "done_s",
    "open_at_end",
    "handed_over",
    "steps",
)


def routes(context: ConsoleContext) -> list[Route]:
    """The report as a page, as CSV and as JSON."""
    pages = _Pages(context)
    return [
        Route("/alerts/report", pages.page),
        Route("/alerts/report.csv", pages.table),
        Route("/alerts/report.json", pages.document),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext) -> None:
        self._context = context

    async def page(self, request: Request) -> Response:
        context = self._context
        report = self._report(request, context.needs(request, "look"))
        lang = context.lang(request)
        begins, now = context.config.console.shifts, context.now()
        shifts = {"previous": shift_of(begins, report.since - timedelta(seconds=1), context.zone)}
        if report.until <= now:
            shifts["following"] = shift_of(begins, report.until, context.zone)
        return context.page(
            request,
            "alerts_report.html",
            report=report,
            words=lambda one: said(one, lang)[0],
            times=times,
            asked=_asked(report.since, report.until, context.zone),
            query=_query(report.since, report.until, context.zone),
            shifts={name: _query(*shift, context.zone) for name, shift in shifts.items()},
        )

    async def table(self, request: Request) -> Response:
        report = self._report(request, self._context.needs(request, "look"))
        rows = [COLUMNS, *(self._cells(one, report) for one in (*report.earlier, *report.began))]
        return self._file(report, "csv", "text/csv; charset=utf-8", (BYTE_ORDER_MARK + csv_text(rows)).encode())

    async def document(self, request: Request) -> Response:
        report = self._report(request, self._context.needs(request, "look"))
        return self._file(report, "json", "application/json", msgspec.json.format(msgspec.json.encode(report)))

    def _report(self, request: Request, user: User) -> Report:
        """The report of the times in the address; without them, of this shift."""
        context = self._context
        since, until = shift_of(context.config.console.shifts, context.now(), context.zone)
        since = _time(request.query_params.get("from", ""), context.zone) or since
        until = _time(request.query_params.get("to", ""), context.zone) or max(until, since)
        until = min(max(until, since), since + LONGEST)
        found = context.incidents.during(since, until, MOST + 1, user.tables)
        silences = [
            one
            for one in context.incidents.silenced_during(since, until, MOST_SILENCES)
            if not user.tables or one.table in user.tables
        ]
        return made(since, until, found[:MOST], silences, self._kind, zone=context.zone, cut=len(found) > MOST)

    def _kind(self, one: Incident) -> str:
        device = self._context.site.devices.get((one.table, one.device))
        return device.meta.driver if device is not None else ""

    def _cells(self, one: Incident, report: Report) -> tuple[str, ...]:
        took = times(one)
        ended = one.ended.isoformat() if one.ended is not None else ""
        steps = "; ".join(
            " ".join(filter(None, (step.time.isoformat(), step.kind, step.by, step.whom, step.note)))
            for step in one.steps
        )
        head = (str(one.n), one.table, one.device, self._kind(one), one.severity, one.code, one.text, one.state)
        seconds = ("" if value is None else f"{value:.0f}" for value in (took.taken, took.at_table, took.done))
        flags = (str(int(one in some)) for some in (report.open, report.handed))
        tail = (one.began.isoformat(), ended, str(one.times), one.by, *seconds, *flags, steps)
        return tuple(harmless(cell) for cell in head + tail)

    def _file(self, report: Report, kind: str, media: str, content: bytes) -> Response:
        name = f"shift-{self._context.site.site}-{report.since:%Y%m%dT%H%MZ}.{kind}"
        return Response(content, 200, {"content-disposition": f'attachment; filename="{name}"'}, media)


def _asked(since: datetime, until: datetime, zone: tzinfo) -> dict[str, str]:
    """The times of a form's fields, in the zone of the site."""
    return {"from": f"{since.astimezone(zone):%Y-%m-%dT%H:%M}", "to": f"{until.astimezone(zone):%Y-%m-%dT%H:%M}"}


def _time(text: str, zone: tzinfo) -> datetime | None:
    """The time; None for an invalid one, or an impossible year."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.year not in YEARS:
        return None
    return at if at.tzinfo else at.replace(tzinfo=zone)


def _query(since: datetime, until: datetime, zone: tzinfo) -> str:
    return urlencode(_asked(since, until, zone))
