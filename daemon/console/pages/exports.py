"""Reports of rounds as files: PDF, CSV and JSON. For those who may export; each is noted in the journal of actions."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console import paper, reports
from daemon.console.context import ConsoleContext
from daemon.console.pages.alerts import alone
from daemon.console.pages.rounds import AFTER, BEFORE, LONGEST, acts_of, period_of, table_of
from daemon.console.reports import (
    COLUMNS,
    Alarm,
    Line,
    Made,
    Period,
    Printer,
    Round as RoundReport,
    Version,
    cells,
    digest_of,
    line_of,
    missing_rows,
)
from daemon.console.site.actions import Action
from daemon.console.site.rounds import Asked, Interval, Records, Rounds, Show
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless
from daemon.words import words
from daemon.words.local import Local
from protocols.contract.results import LONGEST_ROUND

__all__ = ["routes"]

MOST, MOST_ON_PAPER = 20_000, 3_000
"""Rounds in a file, and in a PDF."""
MOST_ACTS, MOST_ALERTS = 500, 500
MOST_ACTS_READ = 20_000
KINDS = {"pdf": "application/pdf", "csv": "text/csv; charset=utf-8", "json": "application/json"}


def routes(context: ConsoleContext, rounds: Rounds) -> list[Route]:
    """A table in a period, and a round."""
    pages = _Pages(context, rounds)
    return [
        Route("/table/{table}/rounds.{kind}", pages.period),
        Route("/table/{table}/report/{kind}/{round:path}", pages.round),
    ]


class _Found(Struct, frozen=True):
    """The stored data of a table in a period."""

    lines: tuple[Line, ...]
    cut: bool
    counts: dict[Show, int]
    complete_since: datetime | None
    received_until: datetime | None
    gaps: tuple[Interval, ...]


class _Pages:
    def __init__(self, context: ConsoleContext, rounds: Rounds) -> None:
        self._context = context
        self._rounds = rounds

    async def period(self, request: Request) -> Response:
        table, kind = table_of(self._context, request, "export"), _kind(request)
        context = self._context
        period = period_of(request, table, context.now(), context.zone)
        asked, lang = period.asked, context.lang(request)
        made = self._made(request, table, "rounds.export", {**period.query, "as": kind})
        self._rounds.flush()
        found = await asyncio.to_thread(self._found, asked, MOST_ON_PAPER if kind == "pdf" else MOST, made.at, lang)
        name = f"rounds-{made.site}-{table}-{asked.since:%Y%m%dT%H%MZ}"
        acts, acts_cut = await self._acts(table, asked.since, asked.until)
        alerts, alerts_cut = self._alerts(asked, lang)
        report = Period(
            made=made,
            since=asked.since,
            until=asked.until,
            show=asked.show,
            complete_since=found.complete_since,
            received_until=found.received_until,
            gaps=found.gaps,
            counts=found.counts,
            cut=found.cut,
            digest=digest_of(one.digest for one in found.lines),
            rounds=found.lines,
            acts=acts,
            acts_cut=acts_cut,
            alerts=alerts,
            alerts_cut=alerts_cut,
        )
        if kind == "csv":
            rows = [COLUMNS, *map(cells, found.lines), *missing_rows(report, lang)]
            return _file(name, kind, _csv(rows))
        return await self._answer(request, name, kind, report)

    async def round(self, request: Request) -> Response:
        table, kind = table_of(self._context, request, "export"), _kind(request)
        context, wanted = self._context, request.path_params["round"]
        self._rounds.flush()
        records = Records(context.store.db)
        line = records.one(table, wanted) if len(wanted) <= LONGEST_ROUND else None
        if line is None:
            raise HTTPException(404)
        made = self._made(request, table, "round.export", {"round": wanted, "as": kind})
        ever = Asked(table, line.position.at - LONGEST, line.at + timedelta(seconds=1))
        before = records.beside(ever, line.position, later=False)
        since = before.position.at if before is not None else line.position.at - BEFORE
        versions = tuple(
            Version(one.at, one.kind, one.journal, one.seq, one.digest.hex(), one.result)
            for one in records.versions(table, wanted)
        )
        acts, acts_cut = await self._acts(table, since, line.at + AFTER)
        report = RoundReport(
            made=made,
            digest=digest_of(one.digest for one in versions),
            versions=versions,
            notes=tuple(records.notes(table, wanted)),
            acts=acts,
            acts_cut=acts_cut,
        )
        name = "round-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in wanted)[:80]
        if kind == "csv":
            return _file(name, kind, _csv([COLUMNS, cells(line_of(line, context.lang(request)))]))
        return await self._answer(request, name, kind, report)

    def _made(self, request: Request, table: str, action: str, detail: dict[str, Any]) -> Made:
        """Note a report in the journal of actions; returns place, user and time. Raises 503 where a PDF cannot be
        made.
        """
        context = self._context
        user = context.needs(request, "export", table)
        if detail["as"] == "pdf" and not reports.printable():
            raise HTTPException(503, words.say(context.lang(request), "paper.not_installed"))
        context.actions.note(user.name, user.role, action, table, detail)
        ruleset = context.site.ruleset(table)
        game = words.say(context.lang(request), f"game.{ruleset}" if ruleset else "pit.no_game")
        return Made(context.site.site, table, game, user.name, user.role, context.now())

    def _found(self, asked: Asked, most: int, now: datetime, lang: words.Lang) -> _Found:
        """Read one snapshot of the store, with a connection of its own: made for a thread."""
        path = f"file:{quote(str(self._context.store.path))}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True)) as db:
            db.execute("BEGIN")
            records, place = Records(db), asked.place
            lines = [line_of(one, lang) for one in islice(records.in_order(asked, most + 1), most + 1)]
            return _Found(
                tuple(lines[:most]),
                len(lines) > most,
                records.counts(asked),
                records.since(place),
                records.received_until(place),
                tuple(records.gaps(place, asked.since, min(asked.until, now))),
            )

    async def _acts(self, table: str, since: datetime, until: datetime) -> tuple[tuple[Action, ...], bool]:
        """The users' actions at the table without reports; and whether some are left out.

        Decisions on a round have priority, because a report names their authors.
        """
        found = await acts_of(self._context, table, since, until, MOST_ACTS_READ)
        acts = [one for one in found if not one.action.endswith(".export")]
        decided = [one for one in acts if "round" in one.detail]
        others = [one for one in acts if "round" not in one.detail]
        kept = sorted((*decided[-MOST_ACTS:], *others[-MOST_ACTS:]), key=lambda one: one.n)
        cut = len(kept) < len(acts) or len(found) == MOST_ACTS_READ
        return tuple(kept), cut

    def _alerts(self, asked: Asked, lang: words.Lang) -> tuple[tuple[Alarm, ...], bool]:
        """The alerts of the table; and whether some are left out."""
        found = self._context.incidents.during(asked.since, asked.until, MOST_ALERTS + 1, (asked.place,))
        alerts = tuple(
            Alarm(one.began, one.ended, one.device, one.severity, one.code, alone(one, lang)[0], one.by)
            for one in found[:MOST_ALERTS]
            if one.table == asked.place
        )
        return alerts, len(found) > MOST_ALERTS

    async def _answer(self, request: Request, name: str, kind: str, report: Period | RoundReport) -> Response:
        if kind == "json":
            encoded = await asyncio.to_thread(lambda: msgspec.json.format(msgspec.json.encode(report)))
            return _file(name, kind, encoded)
        lang = self._context.lang(request)
        printer = Printer(Local(lang, self._context.zone))
        described = printer.period(report) if isinstance(report, Period) else printer.round(report)
        try:
            return _file(name, kind, await paper.made(described))
        except paper.Busy as error:
            raise HTTPException(503, words.say(lang, "paper.busy")) from error
        except paper.NotMade as error:
            raise HTTPException(500, words.say(lang, "paper.not_made", why=str(error))) from error


def _csv(rows: Iterable[tuple[str, ...]]) -> bytes:
    """The CSV, with the mark by which spreadsheets recognise UTF-8."""
    return (BYTE_ORDER_MARK + csv_text([tuple(map(harmless, row)) for row in rows])).encode()


def _kind(request: Request) -> str:
    kind: str = request.path_params["kind"]
    if kind not in KINDS:
        raise HTTPException(404)
    return kind


def _file(name: str, kind: str, content: bytes) -> Response:
    return Response(content, 200, {"content-disposition": f'attachment; filename="{name}.{kind}"'}, KINDS[kind])
