"""The sheet of a table: its sign (open or closed, limits), and the chips and money that two people count.

Entries take the way of the dealer's page: the console is a device of the table (docs/decisions/0035), and its edge
keeps them in the journal. So the sheet of a table without a dealer's page is read-only.
"""

import asyncio
import sqlite3
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon import logs
from daemon.console.auth.access import Right, User
from daemon.console.context import ConsoleContext
from daemon.console.dealer.unit import By, Full, Other, Press, Unit
from daemon.console.live import Fragment, Viewer
from daemon.console.pages.dealer import ID, Dealers
from daemon.console.site.counts import COUNTS, BadCount, Counts, Entry, tally
from daemon.console.site.shifts import day_of_play
from daemon.console.site.signs import sign_of
from daemon.console.site.store import BadStore
from daemon.words import words
from daemon.words.money import BadAmount, minor_units, money
from protocols.fdl import console as fdl_console, frame as fdl

__all__ = ["Sheets"]

ACTS = ("open", "limits", "close")
EVERY_S = 5.0
"""Seconds after which a count that could not be handed over is tried again."""
_CODES = {kind: code for code, kind in fdl_console.COUNTS.items()}


class Sheets:
    """The sheets of all tables."""

    def __init__(self, context: ConsoleContext, dealers: Dealers, counts: Counts) -> None:
        self._context = context
        self._dealers = dealers
        self._counts = counts
        self._failed: set[str] = set()
        self._log: structlog.typing.FilteringBoundLogger = logs.get(console="sheets")

    async def run(self) -> None:
        """Hand over the counts that could not be, until cancelled."""
        while True:
            self.hand_over()
            await asyncio.sleep(EVERY_S)

    def hand_over(self) -> None:
        """Give the dealer's pages the confirmed counts that they lack: a process ended, or the store refused them."""
        failed: set[str] = set()
        for entry in self._counts.unsent():
            if (unit := self._dealers.units.get(entry.table)) is not None:
                try:
                    self._send(unit, entry, "")
                except (BadCount, BadStore) as error:
                    failed.add(entry.id)
                    if entry.id not in self._failed:
                        self._log.error(
                            "count.unsent", table=entry.table, entry=entry.id, reason=str(error.__cause__ or error)
                        )
        self._failed = failed

    def routes(self) -> list[Route]:
        """The page, and its forms."""
        return [
            Route("/floor/{table}", self.page),
            Route("/floor/{table}/sign/{act}", self.sign, methods=["POST"]),
            Route("/floor/{table}/count", self.enter, methods=["POST"]),
            Route("/floor/{table}/count/{id}/{act}", self.decide, methods=["POST"]),
        ]

    def fragments(self) -> tuple[Fragment, ...]:
        """`sign`: whether a table is open, and its limits, on its page."""

        def drawn(table: str, viewer: Viewer) -> str:
            site = self._context.site
            if table not in site.tables:
                raise KeyError(table)
            values = {"table": table, "sign": sign_of(site, table), "ruleset": site.ruleset(table)}
            return self._context.render(
                "_sign.html", viewer.lang, **values, amount=partial(self._context.amount, viewer.lang)
            )

        return (Fragment("sign", lambda table: (f"sign/{table}", "broker"), drawn, lambda table: table),)

    def _table(self, request: Request, right: Right) -> tuple[User, str]:
        """The user and the table of a request. Raises 404, 403, or Redirect to the login."""
        table: str = request.path_params["table"]
        user = self._context.needs(request, right, table)
        if table not in self._context.site.tables:
            raise HTTPException(404)
        return user, table

    def _written(self, request: Request, right: Right) -> tuple[User, str, Unit]:
        """User, table and unit of a form. Raises 404 also if the table has no dealer's page."""
        user, table = self._table(request, right)
        unit = self._dealers.units.get(table)
        if unit is None:
            raise HTTPException(404)
        return user, table, unit

    async def page(self, request: Request) -> Response:
        _, table = self._table(request, "sheet")
        return self._drawn(request, table)

    def _drawn(self, request: Request, table: str, wrong: str = "", typed: Mapping[str, str] | None = None) -> Response:
        """The sheet. `typed`: a refused input, and `wrong`: the reason."""
        context = self._context
        lang, site = context.lang(request), context.config.site
        ruleset, unit = context.site.ruleset(table), self._dealers.units.get(table)
        since, until = day_of_play(context.config.console.shifts, context.now(), context.zone)
        entries = self._counts.entries(table, since, until)
        user = context.user(request)
        if wrong:  # in the user's language
            wrong = words.say(lang, wrong)
        values: dict[str, Any] = {
            "sign": sign_of(context.site, table),
            "here": unit is not None,
            "met": unit is not None and unit.met,
            "waiting": self._counts.waiting(table),
            "entries": [(one, _place(unit, one)) for one in reversed(entries) if one.state != "waiting"],
            "reversed": {one.reverses for one in entries if one.reverses and one.state != "withdrawn"},
            "tally": tally(entries),
            "kinds": COUNTS,
            "amount": lambda minor: context.amount(lang, minor, ruleset),
            "bare": lambda minor: money("en", minor, site.decimals).replace(",", "") if minor else "",
            "currency": site.currency_of(ruleset),
            "money_right": context.access.may_decide(user) if user is not None else "",
            "id": uuid.uuid4().hex,
            "fresh": lambda: uuid.uuid4().hex,
        }
        status = 400 if wrong else 200
        return context.page(
            request,
            "sheet.html",
            status,
            table=table,
            ruleset=ruleset,
            since=since,
            wrong=wrong,
            typed=dict(typed or {}),
            **values,
        )

    # ---- the sign

    async def sign(self, request: Request) -> Response:
        """Open or close the table, or change its limits."""
        user, table, unit = self._written(request, "open")
        act = request.path_params["act"]
        if act not in ACTS:
            raise HTTPException(404)
        given = await self._context.form(request)
        try:
            happening = self._decision(act, given, user)
            shown = {name: given[name] for name in ("minimum", "maximum") if given.get(name) and act != "close"}
            self._press(unit, Press(_id(given), f"sign_{act}", (happening,), shown), By(user.name, user.role))
        except BadCount as error:
            return self._drawn(request, table, error.key, given)
        return RedirectResponse(f"/floor/{table}", 303)

    def _decision(self, act: str, given: Mapping[str, str], user: User) -> fdl.Happening:
        """Raises BadCount."""
        if act == "close":
            return _fitting(fdl_console.TableClosedBy(user.name))
        decimals = self._context.config.site.decimals
        minimum, maximum = (_amount(given.get(name, ""), decimals, 0) for name in ("minimum", "maximum"))
        if 0 < maximum < minimum:
            raise BadCount("floor.bad_limits")
        kind = fdl_console.TableOpened if act == "open" else fdl_console.LimitsChanged
        return _fitting(kind(user.name, minimum, maximum))

    def _press(self, unit: Unit, press: Press, by: By) -> None:
        """Store a press, durable on return. Raises BadCount."""
        try:
            unit.press(press, by, asyncio.get_running_loop().time())
        except Other as error:
            raise BadCount("floor.bad_form") from error
        except Full as error:
            raise BadCount("dealer.full") from error
        except (BadStore, sqlite3.Error) as error:
            raise BadCount("floor.not_stored") from error
        self._context.actions.collect()

    # ---- counts

    async def enter(self, request: Request) -> Response:
        """Take a count of the first person, or the reversal of an earlier one."""
        user, table, _ = self._written(request, "count")
        given = await self._context.form(request)
        try:
            self._enter(table, given, user)
        except BadCount as error:
            return self._drawn(request, table, error.key, given)
        return RedirectResponse(f"/floor/{table}#counts", 303)

    def _enter(self, table: str, given: Mapping[str, str], user: User) -> None:
        """Raises BadCount."""
        context, reverses = self._context, given.get("reverses", "")
        earlier = self._counts.one(reverses) if reverses else None
        if reverses and earlier is None:
            raise BadCount("floor.bad_form")
        kind = earlier.kind if earlier else next((one for one in COUNTS if one == given.get("kind")), None)
        if kind is None:
            raise BadCount("floor.bad_kind")
        amount = earlier.amount if earlier else _amount(given.get("amount", ""), context.config.site.decimals)
        _fitting(fdl_console.TableCounted(_CODES[kind], amount, "0" * 32, user.name, "x"))
        id_ = _id(given)
        detail = {"entry": id_, "kind": kind, "amount": amount, "reverses": reverses}
        context.actions.note(user.name, user.role, "count.enter", table, detail)
        self._counts.enter(id_, table, kind, amount, at=context.now(), by=user.name, reverses=reverses)

    async def decide(self, request: Request) -> Response:
        """Confirm another person's entry as a supervisor, or withdraw it."""
        act, id_ = request.path_params["act"], request.path_params["id"]
        user, table, unit = self._written(request, "decide" if act == "confirm" else "count")
        if act not in ("confirm", "withdraw"):
            raise HTTPException(404)
        await self._context.form(request)
        try:
            if act == "confirm":
                self._confirm(unit, id_, user)
            else:
                self._context.actions.note(user.name, user.role, "count.withdraw", table, {"entry": id_})
                self._counts.decide(id_, table, "withdrawn", user.name, self._context.now())
        except BadCount as error:
            return self._drawn(request, table, error.key)
        self._context.site.notify("floor")
        return RedirectResponse(f"/floor/{table}#counts", 303)

    def _confirm(self, unit: Unit, id_: str, user: User) -> None:
        """Raises BadCount."""
        if why := self._context.access.may_decide(user):
            raise BadCount(why)
        known = self._counts.one(id_)
        if known is not None:
            _fitting(_counted(known, user.name))
        entry = self._counts.decide(id_, unit.table, "confirmed", user.name, self._context.now())
        self._send(unit, entry, user.role)

    def _send(self, unit: Unit, entry: Entry, role: str) -> None:
        """Hand a confirmed entry to the dealer's page, once. Raises BadCount."""
        values = {"kind": entry.kind, "amount": str(entry.amount), "entered": entry.by}
        press = Press(entry.id, "count", (_counted(entry, entry.second),), values)
        self._press(unit, press, By(entry.second, role or "supervisor"))
        self._counts.was_sent(entry.id)


def _counted(entry: Entry, second: str) -> fdl.Happening:
    return fdl_console.TableCounted(_CODES[entry.kind], entry.amount, entry.id, entry.by, second, entry.reverses)


def _id(given: Mapping[str, str]) -> str:
    """The id that the form drew. Raises BadCount."""
    text = given.get("id", "")
    if not ID.fullmatch(text) or len(text) != 32 or set(text) - set("0123456789abcdef"):
        raise BadCount("floor.bad_form")
    return text


def _amount(text: str, decimals: int, default: int | None = None) -> int:
    """Raises BadCount."""
    if not text.strip() and default is not None:
        return default
    try:
        amount = minor_units(text, decimals)
    except BadAmount as error:
        raise BadCount("floor.bad_amount") from error
    if amount < 0:
        raise BadCount("floor.bad_amount")
    return amount


def _fitting(happening: fdl.Happening) -> fdl.Happening:
    """Raises BadCount for a name that an event cannot carry."""
    try:
        data = happening.to_bytes()
    except ValueError as error:
        raise BadCount("floor.long_name") from error
    if len(data) > fdl.MAX_DATA:
        raise BadCount("floor.long_name")
    return happening


def _place(unit: Unit | None, entry: Entry) -> str:
    """The place of an entry: `edge` if it is in the edge's journal, `here`, or "" if it is no event."""
    if entry.state != "confirmed":
        return ""
    found = unit.find(entry.id) if unit is not None else None
    return "edge" if entry.sent and (found is None or found.state == "edge") else "here"
