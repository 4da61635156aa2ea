"""The page of alerts: open incidents with remedies, the worst first; acknowledgements; silences; history."""

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.console.alerts.handling import STEPS, StepKind, following
from daemon.console.alerts.pending import PENDING, Pending, devices_inside, is_away
from daemon.console.alerts.records import Filter, Incident, NotOpen, Shown, Silence
from daemon.console.alerts.suspended import look_at_suspended
from daemon.console.auth.access import Right, User, inside, may
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Viewer
from daemon.console.site.shifts import shift_of
from daemon.console.site.store import BadStore
from daemon.read_model import SiteState
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless
from daemon.words import words
from drivers import DRIVERS
from protocols.contract.commands import name_of

__all__ = ["Watch", "fragment", "fragments", "routes", "said"]

SHOWN = 100
WORST = 4
"""The number of lines on the pit, above the tables, before one with the number of further ones."""
PAGE = 50
CSV_PAGE = 1_000
EVERY = 1.0
MINUTES = (15, 30, 60, 120, 240, 480, 720)
LONGEST_NOTE = 500
FRESH = timedelta(seconds=30)
"""The time for which a new incident has its own line, if it is not among the worst."""
MOST_FRESH = 4
OWN_ENDS = ("15", "60")
"""Ends of a silence by the technician who has taken the alert, in minutes."""
ENDS = (*OWN_ENDS, "shift", "at")
"""Ends of a silence from the line of an alert: in minutes, at the end of the shift, at a time."""


class Watch:
    """Checks the site every second and notifies the pages of changed incidents."""

    def __init__(self, context: ConsoleContext, pending: Pending) -> None:
        self._context = context
        self._pending = pending
        self._fresh: list[int] = []
        self._seen = -1
        self._hiding: tuple[int, ...] = ()
        self._shown: dict[str, list[Shown | Silence]] = {}
        """By table, what its tile shows of incidents and silences."""
        self.lag = 0.0
        """Seconds by which the loop was late, at the last `look`."""
        context.site.on_change.append(self._changed)

    def disk_free(self) -> int:
        """The free bytes on the disk of the store."""
        return shutil.disk_usage(self._context.store.path.parent).free

    async def run(self) -> None:
        """Check the site every second until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self.look()
            due = loop.time() + EVERY
            await asyncio.sleep(EVERY)
            self.lag = max(loop.time() - due, 0.0)

    def look(self) -> None:
        """Check the site now."""
        context = self._context
        context.site.look_for_silence()
        self._pending.look(context.now())
        look_at_suspended(context.incidents, context.site.edges, context.now())
        context.incidents.look(context.site, context.now(), disk_free=self.disk_free(), refused=context.site.refused)
        fresh = [one.n for one in _fresh(context.incidents.open(context.now()), context.now())]
        if (context.incidents.version, fresh) != (self._seen, self._fresh):
            self._seen, self._fresh = context.incidents.version, fresh
            context.site.notify("alerts")
        if context.incidents.hiding != self._hiding:
            self._hiding = context.incidents.hiding
            self._notify_tiles()
            for table in context.site.tables:  # a silence changes the lamps of its devices
                context.site.notify(f"table/{table}")

    def _changed(self, key: str) -> None:
        match key:
            case "broker":
                self.look()
            case "alerts":
                self._notify_tiles()

    def _notify_tiles(self) -> None:
        """Notify the tiles of the tables whose incidents or silences changed: sixty are costly to draw."""
        context, shown = self._context, dict[str, list[Shown | Silence]]()
        now = context.now()
        for one in context.incidents.open(now):
            shown.setdefault(one.incident.table, []).append(one)
        for silence in context.incidents.silences(now):
            shown.setdefault(silence.table, []).append(silence)
        before, self._shown = self._shown, shown
        for table in before.keys() | shown.keys():
            if before.get(table) != shown.get(table):
                for name in (table,) if table else tuple(context.site.tables):  # a silence may fit all tables
                    context.site.notify(f"tile/{name}")


# ---- open incidents


def _fresh(shown: Iterable[Shown], now: datetime) -> list[Incident]:
    """The incidents that began seconds ago, the newest first, one of each table."""
    new = [one.incident for one in shown if one.silence is None and now - one.incident.began <= FRESH]
    newest: dict[str | int, Incident] = {}
    for one in sorted(new, key=lambda one: (one.began, one.n), reverse=True):
        newest.setdefault(one.table or one.n, one)
    return list(newest.values())[:MOST_FRESH]


class Line(Struct, frozen=True):
    """An incident in the language of the reader."""

    one: Incident
    text: str
    remedy: str
    silenced: datetime | None
    hush: Silence | None = None
    """Who silenced it, and why."""
    closable: bool = False
    seen: str = ""
    """The version that was shown, sent with the form."""
    after: str = ""
    """The last step that was shown, sent with the forms of the next."""
    mine: bool = False
    step: StepKind | None = None
    """The next step of the reader who has taken it."""
    may_silence: bool = False
    ends: int = 0
    """The silence that hides it, by its number, where the reader may end it."""
    people: tuple[str, ...] = ()
    """The people to whom it can be handed over."""
    others: int = 0
    """Further incidents of the same table, which have no line of their own."""
    inside: tuple[str, ...] = ()
    """The devices of an offline edge."""


def _line(shown: Shown, lang: words.Lang) -> Line:
    text, remedy = alone(shown.incident, lang)
    return Line(shown.incident, text, remedy, shown.silence.until if shown.silence is not None else None, shown.silence)


def said(one: Incident, lang: words.Lang) -> tuple[str, str]:
    """Text and remedy in the language of the reader, as they follow a colon."""
    key = f"alerts.code.{one.code}"
    if one.heard == "console" and key in words.catalog("en"):
        return words.say(lang, key, name=one.device), words.say(lang, f"alerts.remedy.{one.code}", name=one.device)
    if one.why is not None:
        return words.reason(lang, one.why, one.code), words.reason(lang, one.to_do, one.code)
    return words.device_text(lang, one.code, one.text), words.device_text(lang, one.code, one.remedy)


def alone(one: Incident, lang: words.Lang) -> tuple[str, str]:
    """Text and remedy as sentences that stand alone."""
    text, remedy = said(one, lang)
    return words.sentence(text, one.device), words.sentence(remedy)


def fragment(
    context: ConsoleContext,
    lang: words.Lang,
    role: str,
    tables: tuple[str, ...] = (),
    most: int = SHOWN,
    kept: tuple[int, str] = (0, ""),
    *,
    name: str = "",
    acts: bool = True,
    at: tuple[str, str] | None = None,
    by_table: bool = False,
) -> dict[str, Any]:
    """The values of _alerts.html for a role and its tables (none: all), for the worst `most` incidents.

    `kept`: a note typed for one of them, by its number. `name`: the reader. `acts`: with buttons, where the role may.
    `at`: only those of this device, by table and name (name "": of the table). `by_table`: one line for each table.
    """
    known = context.incidents
    everything = _shown(context, tables, at)
    counts = Counter(one.incident.table for one in everything)
    shown = _worst_of_tables(everything) if by_table else everything
    most += len(shown) == most + 1  # the line of a single further one takes no more room than its count
    loud = [one.incident.severity for one in everything if one.silence is None]
    handles, longer = acts and may(role, "acknowledge"), may(role, "silence")
    people = _people(context) if handles else []

    def line(of: Shown) -> Line:
        one = of.incident
        mine = handles and one.stage != "" and one.by == name
        hands = handles and one.stage != "" and (mine or longer)
        return replace(
            _line(of, lang),
            closable=known.closable(one),
            seen=known.seen(one),
            after=known.handled(one),
            mine=mine,
            step=following(one.stage) if mine else None,
            may_silence=handles and of.silence is None and (longer or mine),
            ends=of.silence.n if of.silence is not None and handles and (longer or of.silence.by == name) else 0,
            others=counts[one.table] - 1 if by_table and one.table else 0,
            inside=devices_inside(context.site, one),
            people=_whom(people, one) if hands else (),
        )

    lines = [line(one) for one in shown[:most]]
    return {
        "lines": lines,
        "kept": kept,
        "loud": len(loud),
        "worst": "error" if "error" in loud else "warning",
        "acts": acts,
        "more": max(len(everything) - sum(1 + one.others for one in lines), 0),
        "fresh": _news(context, lang, everything, {line.one.n for line in lines}) if by_table else [],
        **_rights(role),
        "sure": context.site.connected,
        "at": at,
        "helps": _helps(context, *at) if at is not None and at[1] and may(role, "command") else {},
    }


def _rights(role: str) -> dict[str, Any]:
    longer = may(role, "silence")
    return {"may_acknowledge": may(role, "acknowledge"), "may_close": longer, "ends": ENDS if longer else OWN_ENDS}


def _whom(people: Iterable[tuple[str, tuple[str, ...]]], one: Incident) -> tuple[str, ...]:
    """The people to whom an incident can be handed over."""
    return tuple(who for who, theirs in people if who != one.by and (not theirs or one.table in ("", *theirs)))


def _news(
    context: ConsoleContext, lang: words.Lang, shown: Sequence[Shown], lines: set[int]
) -> list[tuple[Incident, str]]:
    """The incidents that are seconds old and not among the lines, with their texts."""
    return [(one, said(one, lang)[0]) for one in _fresh(shown, context.now()) if one.n not in lines]


def _shown(context: ConsoleContext, tables: tuple[str, ...], at: tuple[str, str] | None) -> list[Shown]:
    """The open incidents; the incident of an edge that is offline or hangs includes those of its devices."""
    shown = [one for one in context.incidents.open(context.now()) if not tables or one.incident.table in ("", *tables)]
    if at is not None:
        return [one for one in shown if one.incident.table == at[0] and at[1] in ("", one.incident.device)]
    return [one for one in shown if one.incident.code not in PENDING or not _in_edge(context.site, one.incident)]


def _worst_of_tables(shown: Sequence[Shown]) -> list[Shown]:
    """The first incident of each table, which is the worst; and each without a table."""
    firsts = {one.incident.table or one.incident.n: one for one in reversed(shown)}
    return [one for one in shown if firsts[one.incident.table or one.incident.n] is one]


def _in_edge(site: SiteState, one: Incident) -> bool:
    return is_away(site, one.table, one.device)


def _helps(context: ConsoleContext, table: str, name: str) -> dict[str, str]:
    """The command that shows whether a fault is mended, by the code of the fault."""
    device = context.site.devices.get((table, name))
    kind = DRIVERS.get(device.meta.driver) if device is not None else None
    if kind is None or "self-test" not in {name_of(one) for one in kind.commands}:
        return {}
    return {fault.code: "self-test" for fault in kind.faults if fault.clears == "by a person"}


def _people(context: ConsoleContext) -> list[tuple[str, tuple[str, ...]]]:
    """The people who may handle incidents, with their tables: users of the console, and signed-in ones of a
    provider.
    """
    users = context.access.users
    found = {one.name: one.tables for one in users.all() if may(one.role, "acknowledge")}
    for session in users.sessions():
        if may(session.role, "acknowledge"):
            found.setdefault(session.user, session.tables)
    return sorted(found.items())


def fragments(context: ConsoleContext) -> tuple[Fragment, ...]:
    """`alerts`: open incidents for the page of alerts; the worst for the pit and a wall; of a table, of a device."""

    def render(argument: str, viewer: Viewer) -> str:
        kind, _, rest = argument.partition("/")
        table, _, device = rest.partition("/")
        places = {"device": table != "" and device != "", "table": rest != "" and not device}
        if kind not in ("", "worst", "wall", *places) or not places.get(kind, rest == ""):
            raise KeyError(argument)
        most, name = (WORST if kind in ("worst", "wall") else SHOWN), f"alerts/{argument}".rstrip("/")
        at = (table, device) if kind in places else None
        values = fragment(
            context,
            viewer.lang,
            viewer.role,
            viewer.tables,
            most,
            name=viewer.name,
            acts=argument != "wall",
            at=at,
            by_table=kind in ("worst", "wall"),
        )
        return context.render("_alerts.html", viewer.lang, live_name=name, **values)

    return (Fragment("alerts", lambda _: ("alerts", "broker"), render, personal=True),)


# ---- the page


def routes(context: ConsoleContext, watch: Watch) -> list[Route]:
    """The page, its actions, and the history as CSV."""
    pages = _Pages(context, watch)
    return [
        Route("/alerts", pages.page),
        Route("/alerts.csv", pages.table),
        Route("/alerts/silence", pages.silence, methods=["POST"]),
        Route("/alerts/silence/{n}/end", pages.unsilence, methods=["POST"]),
        Route("/alerts/{n}/acknowledge", pages.acknowledge, methods=["POST"]),
        Route("/alerts/{n}/step/{step}", pages.step, methods=["POST"]),
        Route("/alerts/{n}/silence", pages.silence_one, methods=["POST"]),
        Route("/alerts/{n}/close", pages.close, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext, watch: Watch) -> None:
        self.context = context
        self.watch = watch

    async def page(self, request: Request) -> Response:
        return self._page(request, self.context.needs(request, "look"))

    def _page(
        self,
        request: Request,
        user: User,
        error: NotOpen | None = None,
        kept: tuple[int, str] = (0, ""),
        typed: Mapping[str, str] | None = None,
    ) -> Response:
        """`kept`: a typed note and the number of its incident; `typed`: a silence that was refused."""
        context, now = self.context, self.context.now()
        lang = context.lang(request)
        asked = _asked(request)
        before = _number(request.query_params.get("before", ""))
        past = context.incidents.history(replace(_filter(asked, context.zone), among=user.tables), PAGE + 1, before)
        rows = [_line(Shown(one, None), lang) for one in past[:PAGE]]
        silences = [one for one in context.incidents.silences(now) if not user.tables or one.table in user.tables]
        tables = [table for table in context.site.tables if not user.tables or table in user.tables]
        return context.page(
            request,
            "alerts_page.html",
            200 if error is None else 409,
            error=words.say(lang, error.key, **error.values) if error is not None else "",
            open=Markup(self._with_note(lang, user, kept)) if kept[0] else "",  # noqa: S704 - rendered by us
            rows=rows,
            silences=silences,
            asked=asked,
            query=urlencode({key: value for key, value in asked.items() if value}),
            older=past[PAGE - 1].n if len(past) > PAGE else None,
            first=before is None,
            minutes=MINUTES,
            typed={"table": "", "device": "", "code": "", "minutes": "60", "why": ""} | dict(typed or {}),
            tables=tables,
            devices=sorted({name for table, name in context.site.devices if table in tables}),
            codes=sorted({shown.incident.code for shown in context.incidents.open(now)}),
        )

    def _with_note(self, lang: words.Lang, user: User, kept: tuple[int, str]) -> str:
        """The open incidents with the note this user typed; the shared fragment has no notes."""
        values = fragment(self.context, lang, user.role, user.tables, SHOWN, kept, name=user.name)
        return self.context.render("_alerts.html", lang, live_name="alerts", **values)

    async def acknowledge(self, request: Request) -> Response:
        one = self._one(request)
        user = self.context.needs(request, "acknowledge", one.table)
        given = await self.context.form(request)
        now = self.context.now()
        one = self._one(request)  # a slow form: it may have ended meanwhile
        note = given.get("note", "").strip()[:LONGEST_NOTE]
        try:
            self.context.incidents.may_acknowledge(one.n, given.get("seen", ""))
            self._note(user, "acknowledge", one, {"note": note})
            with contextlib.suppress(BadStore):  # done in memory, and written later
                self.context.incidents.acknowledge(one.n, user.name, note, now)
        except NotOpen as error:
            return self._page(request, user, error, (one.n, note))
        return self._done(given.get("to", ""))

    async def step(self, request: Request) -> Response:
        one = self._one(request)
        user = self.context.needs(request, "acknowledge", one.table)
        kind = next((step for step in STEPS if step == request.path_params["step"]), None)
        if kind is None:
            raise HTTPException(404)
        given = await self.context.form(request)
        note = given.get("note", "").strip()[:LONGEST_NOTE]
        whom = given.get("whom", "") if kind == "handed" else ""
        known, now = self.context.incidents, self.context.now()
        try:
            others = may(user.role, "silence")
            one = known.may_step(one.n, kind, user.name, whom, given.get("after", ""), others=others)
            if kind == "handed":
                self._may_have(whom, one.table)
            detail = {"whom": whom} if whom else {}
            self._note(user, f"alert.{kind}", one, {"note": note, **detail})
            with contextlib.suppress(BadStore):  # as above
                known.step(one.n, kind, user.name, now, whom=whom, note=note)
        except NotOpen as error:
            return self._page(request, user, error, (one.n, note))
        return self._done(given.get("to", ""))

    def _may_have(self, whom: str, table: str) -> None:
        """Raises NotOpen for a person who may not handle incidents of the table."""
        people = _people(self.context)
        if not any(name == whom and (not tables or table in ("", *tables)) for name, tables in people):
            raise NotOpen("alerts.hand_to_whom", "it is handed over to a person who may handle it")

    async def silence_one(self, request: Request) -> Response:
        """Silence the code and device of an alert; a technician who has taken it, for an hour at most."""
        one = self._one(request)
        user = self.context.needs(request, "acknowledge", one.table)
        given = await self.context.form(request)
        now, known = self.context.now(), self.context.incidents
        why = given.get("why", "").strip()[:LONGEST_NOTE]
        until = self._end(given, now)
        try:
            if not may(user.role, "silence"):
                known.may_silence_own(one.n, user.name, until, now)
            known.may_silence(one.table, one.device, one.code, until, why, now)
            self._note(user, "silence", one, {"until": until, "why": why})
            known.silence(one.table, one.device, one.code, until, user.name, why, now)
        except NotOpen as error:
            return self._page(request, user, error, (one.n, ""))
        return self._done(given.get("to", ""))

    def _end(self, given: Mapping[str, str], now: datetime) -> datetime:
        """The end of a silence; `now` for invalid input, which is then refused."""
        match given.get("end", ""):
            case "shift":
                return shift_of(self.context.config.console.shifts, now, self.context.zone)[1]
            case "at":
                try:
                    at = time.fromisoformat(given.get("at", ""))
                except ValueError:
                    return now
                zone = self.context.zone
                today = now.astimezone(zone).date()
                days = (datetime.combine(today + timedelta(days=n), at, zone) for n in (0, 1))
                return next((one for one in days if one > now), now)
            case minutes:
                return now + timedelta(minutes=min(_number(minutes) or 0, 10_000))

    async def close(self, request: Request) -> Response:
        one = self._one(request)
        user = self.context.needs(request, "silence", one.table)
        given = await self.context.form(request)
        note = given.get("note", "").strip()[:LONGEST_NOTE]
        try:
            self.context.incidents.may_close(one.n)
            self._note(user, "alert.close", one, {"note": note})
            with contextlib.suppress(BadStore):  # as in `acknowledge`
                self.context.incidents.close(one.n, user.name, note, self.context.now())
        except NotOpen as error:
            return self._page(request, user, error)
        return self._done()

    async def silence(self, request: Request) -> Response:
        user = self.context.needs(request, "silence")
        given = await self.context.form(request)
        table, device, code = (given.get(key, "").strip()[:200] for key in ("table", "device", "code"))
        self.context.needs(request, "silence", table)
        if user.tables and not table:
            raise HTTPException(403)
        minutes, why = _number(given.get("minutes", "")) or 0, given.get("why", "").strip()[:LONGEST_NOTE]
        now = self.context.now()
        until = now + timedelta(minutes=min(minutes, 10_000))
        try:
            self._known(table, device)
            self.context.incidents.may_silence(table, device, code, until, why, now)
            detail = {"code": code, "until": until, "why": why}
            target = f"{table}/{device}" if table and device else table or f"device:{device}" if device else table
            self.context.actions.note(user.name, user.role, "silence", target, detail)
            self.context.incidents.silence(table, device, code, until, user.name, why, now)
        except NotOpen as error:
            typed = {"table": table, "device": device, "code": code, "minutes": str(minutes), "why": why}
            return self._page(request, user, error, typed=typed)
        return self._done()

    async def unsilence(self, request: Request) -> Response:
        n = _number(request.path_params["n"]) or 0
        now = self.context.now()
        found = next((one for one in self.context.incidents.silences(now) if one.n == n), None)
        right: Right = "silence"
        who = self.context.user(request)
        if found is not None and who is not None and found.by == who.name:
            right = "acknowledge"  # a technician ends what they began
        user = self.context.needs(request, right, found.table if found is not None else "")
        given = await self.context.form(request)
        try:
            if found is not None:
                self.context.actions.note(user.name, user.role, "silence.end", found.table, {"silence": n})
            self.context.incidents.unsilence(n, self.context.now())
        except NotOpen as error:
            return self._page(request, user, error)
        return self._done(given.get("to", ""))

    async def table(self, request: Request) -> Response:
        """The whole filtered history as CSV."""
        user = self.context.needs(request, "look")
        which = replace(_filter(_asked(request), self.context.zone), among=user.tables)

        async def lines() -> AsyncIterator[str]:
            yield BYTE_ORDER_MARK + csv_text([_COLUMNS])
            before: int | None = None
            while True:
                found = self.context.incidents.history(which, CSV_PAGE, before)
                yield csv_text([_cells(one) for one in found])
                if len(found) < CSV_PAGE:
                    return
                before = found[-1].n
                await asyncio.sleep(0)  # other requests may be waiting

        name = f"alerts-{self.context.site.site}-{self.context.now():%Y%m%dT%H%M%SZ}.csv"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=headers)

    def _known(self, table: str, device: str) -> None:
        """Check that table and device exist: otherwise a silence hides nothing, or later the wrong thing. Raises
        NotOpen.
        """
        site = self.context.site
        if table and table not in site.tables:
            raise NotOpen("alerts.silence_no_table", f"there is no table {table}", name=table)
        devices = {name for place, name in site.devices if table in ("", place)}
        open_ = {one.incident.device for one in self.context.incidents.open(self.context.now())}  # of edges, too
        if device and device not in devices | (set() if table else open_ | set(site.edges)):
            raise NotOpen("alerts.silence_no_device", f"there is no device {device}", name=device)

    def _one(self, request: Request) -> Incident:
        """The incident of a request. Raises Redirect to the login, 403, 404 in this order, so that visitors learn
        nothing.
        """
        self.context.needs(request, "look")
        one = self.context.incidents.get(_number(request.path_params["n"]) or 0)
        if one is None:
            raise HTTPException(404)
        return one

    def _note(self, user: User, action: str, one: Incident, detail: dict[str, Any]) -> None:
        target = f"{one.table}/{one.device}" if one.table and one.device else one.table
        self.context.actions.note(
            user.name, user.role, action, target, {"incident": one.n, "name": one.name, "code": one.code, **detail}
        )

    def _done(self, to: str = "") -> Response:
        """The redirect to the page of the form, or to the alerts."""
        self.watch.look()
        return RedirectResponse(inside(to) if to else "/alerts", 303)


_COLUMNS = (
    "number",
    "table",
    "device",
    "severity",
    "code",
    "text",
    "remedy",
    "state",
    "began",
    "ended",
    "seconds",
    "times",
    "acknowledged",
    "by",
    "note",
)


def _cells(one: Incident) -> tuple[str, ...]:
    ended = one.ended.isoformat() if one.ended is not None else ""
    seconds = f"{(one.ended - one.began).total_seconds():.0f}" if one.ended is not None else ""
    acknowledged = one.acknowledged.isoformat() if one.acknowledged is not None else ""
    head = (str(one.n), one.table, one.device, one.severity, one.code, one.text, one.remedy, one.state)
    tail = (one.began.isoformat(), ended, seconds, str(one.times), acknowledged, one.by, one.note)
    return tuple(harmless(cell) for cell in head + tail)


_ASKED = ("table", "device", "code", "severity", "since", "until")


def _asked(request: Request) -> dict[str, str]:
    """The filter as it was typed."""
    return {key: request.query_params.get(key, "").strip()[:200] for key in _ASKED}


def _filter(asked: dict[str, str], zone: tzinfo) -> Filter:
    """`since` and `until` are days of the zone, both included. An invalid day is ignored."""
    until = _midnight(asked["until"], 1, zone)
    return Filter(
        (), asked["table"], asked["device"], asked["code"], asked["severity"], _midnight(asked["since"], 0, zone), until
    )


def _midnight(text: str, days: int, zone: tzinfo) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text) + timedelta(days=days), time(), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
