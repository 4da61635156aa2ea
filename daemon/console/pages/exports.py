"""Reports of rounds as files: PDF, CSV and JSON. For those who may export; each is noted in the journal of actions."""

import asyncio
import contextlib
import sqlite3
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.console import paper, reports
from daemon.console.context import ConsoleContext
from daemon.console.pages.alerts import csv_text, harmless, said
from daemon.console.pages.rounds import AFTER, BEFORE, LONGEST, acts_of, period_of, table_of
from daemon.console.reports import COLUMNS, Act, Alarm, Line, Made, Period, Printer, Version, cells, digest_of, line_of
from daemon.console.reports import Round as RoundReport
from daemon.console.site.rounds import Asked, Records, Rounds
from daemon.console.words import words
from daemon.console.words.local import Local
from protocols.contract.results import LONGEST_ROUND

__all__ = ["routes"]

MOST, MOST_ON_PAPER = 20_000, 3_000
"""Rounds in a file, and in a PDF."""
MOST_ACTS, MOST_ALERTS = 500, 500
KINDS = {"pdf": "application/pdf", "csv": "text/csv; charset=utf-8", "json": "application/json"}


def routes(context: ConsoleContext, rounds: Rounds) -> list[Route]:
    """A table in a period, and a round."""
    pages = _Pages(context, rounds)
    return [
        Route("/table/{table}/rounds.{kind}", pages.period),
        Route("/table/{table}/report/{kind}/{round:path}", pages.round),
    ]


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
        most = MOST_ON_PAPER if kind == "pdf" else MOST
        lines = await asyncio.to_thread(self._lines, asked, most + 1, lang)
        name = f"rounds-{made.site}-{table}-{asked.since:%Y%m%dT%H%MZ}"
        if kind == "csv":
            rows = [COLUMNS, *(tuple(harmless(cell) for cell in cells(one)) for one in lines[:most])]
            return _file(name, kind, ("\ufeff" + csv_text(rows)).encode())
        records = Records(context.store.db)
        report = Period(
            made=made,
            since=asked.since,
            until=asked.until,
            show=asked.show,
            complete_since=records.since(table),
            gaps=tuple(records.gaps(table, asked.since, min(asked.until, made.at))),
            counts=records.counts(asked),
            cut=len(lines) > most,
            digest=digest_of(one.digest for one in lines[:most]),
            rounds=tuple(lines[:most]),
            acts=await self._acts(table, asked.since, asked.until),
            alerts=self._alerts(asked, lang),
        )
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
        report = RoundReport(
            made=made,
            digest=digest_of(one.digest for one in versions),
            versions=versions,
            notes=tuple(records.notes(table, wanted)),
            acts=await self._acts(table, since, line.at + AFTER),
        )
        name = "round-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in wanted)[:80]
        if kind == "csv":
            rows = [COLUMNS, tuple(harmless(cell) for cell in cells(line_of(line, context.lang(request))))]
            return _file(name, kind, ("\ufeff" + csv_text(rows)).encode())
        return await self._answer(request, name, kind, report)

    def _made(self, request: Request, table: str, action: str, detail: dict[str, Any]) -> Made:
        """Note that a report is made, and say where, by whom and when."""
        context = self._context
        user = context.needs(request, "export", table)
        context.actions.note(user.name, user.role, action, table, detail)
        ruleset = context.site.ruleset(table)
        game = words.say(context.lang(request), f"game.{ruleset}" if ruleset else "pit.no_game")
        return Made(context.site.site, table, game, user.name, user.role, context.now())

    def _lines(self, asked: Asked, most: int, lang: words.Lang) -> list[Line]:
        """Read beside the loop, with a connection of its own."""
        path = f"file:{quote(str(self._context.store.path))}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True)) as db:
            return [line_of(one, lang) for one in islice(Records(db).in_order(asked, most), most)]

    async def _acts(self, table: str, since: datetime, until: datetime) -> tuple[Act, ...]:
        """What users did at the table; but not that they made reports."""
        found = await acts_of(self._context, table, since, until, MOST_ACTS)
        return tuple(
            Act(one.time, one.user, one.role, one.action, one.target, one.detail)
            for one in found
            if not one.action.endswith(".export")
        )

    def _alerts(self, asked: Asked, lang: words.Lang) -> tuple[Alarm, ...]:
        found = self._context.incidents.during(asked.since, asked.until, MOST_ALERTS, (asked.place,))
        return tuple(
            Alarm(one.began, one.ended, one.device, one.severity, one.code, said(one, lang)[0], one.by)
            for one in found
            if one.table == asked.place
        )

    async def _answer(self, request: Request, name: str, kind: str, report: Period | RoundReport) -> Response:
        if kind == "json":
            encoded = await asyncio.to_thread(lambda: msgspec.json.format(msgspec.json.encode(report)))
            return _file(name, kind, encoded)
        lang = self._context.lang(request)
        if not reports.printable():
            raise HTTPException(503, words.say(lang, "paper.not_installed"))
        printer = Printer(Local(lang, self._context.zone))
        described = printer.period(report) if isinstance(report, Period) else printer.round(report)
        try:
            return _file(name, kind, await paper.made(described))
        except paper.Busy as error:
            raise HTTPException(503, words.say(lang, "paper.busy")) from error
        except paper.NotMade as error:
            raise HTTPException(500, words.say(lang, "paper.not_made", why=str(error))) from error


def _kind(request: Request) -> str:
    kind: str = request.path_params["kind"]
    if kind not in KINDS:
        raise HTTPException(404)
    return kind


def _file(name: str, kind: str, content: bytes) -> Response:
    return Response(content, 200, {"content-disposition": f'attachment; filename="{name}.{kind}"'}, KINDS[kind])
