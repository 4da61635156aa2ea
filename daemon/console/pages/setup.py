"""Pages that add, change and remove tables of this computer, each in one step with everything that belongs to it.

The console has no right to change the configuration: `feltd table answer` checks, shows and makes a change
(daemon/table_requests.py). A change that brings new bets, odds or limits to this computer must be made by a supervisor
other than the person who proposed it.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon import logs
from daemon.console.auth.access import User, may
from daemon.console.context import ConsoleContext
from daemon.table_requests import (
    CannotAsk,
    Device,
    Look,
    Made,
    Make,
    Mistake,
    Plan,
    Planned,
    Refused,
    Seen,
    Wanted,
    ask,
)
from daemon.words import words
from drivers import DRIVERS
from protocols.contract.people import may_be_one_person
from rules import RULESETS

__all__ = ["routes"]

MOST_DRAFTS: Final = 50
FREE_DEVICES: Final = 2
"""Empty rows for further devices in the form of a table."""
MOST_DEVICES: Final = 20
ACTS: Final = ("add", "twin", "change", "remove")


class _Draft(Struct, frozen=True):
    """A change that passed the check and is not made yet."""

    id: str
    at: datetime
    by: str
    why: str
    wanted: Wanted
    plan: Planned


class _BadForm(Exception):
    """A field cannot be read; `mistake` names it."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake.text)
        self.mistake = mistake


def routes(context: ConsoleContext) -> list[Route]:
    """The routes of the tables and ports, the form of a change, and a checked change."""
    pages = _Pages(context)
    return [
        Route("/tables", pages.all),
        Route("/tables/draft/{id}", pages.draft),
        Route("/tables/draft/{id}", pages.make, methods=["POST"]),
        Route("/tables/{act}", pages.form),
        Route("/tables/{act}", pages.check, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._log = logs.get(console=context.site.site)
        self._drafts: OrderedDict[str, _Draft] = OrderedDict()
        """In memory only: each change puts the earlier checks out of date."""

    async def all(self, request: Request) -> Response:
        self._user(request)
        found, said = await self._seen(request)
        return self._context.page(
            request, "tables.html", seen=found, said=said, drafts=list(self._drafts.values()), lamp=self._lamp
        )

    async def form(self, request: Request) -> Response:
        self._user(request)
        act, name = request.path_params["act"], request.query_params.get("table", "")
        if act not in ACTS:
            raise HTTPException(404)
        found, said = await self._seen(request)
        one = next((one for one in found.tables if one.name == name), None) if found else None
        if act != "add" and one is None and not said:
            raise HTTPException(404)
        wanted = one or Wanted("add", "")
        return self._form(request, act, replace(wanted, name="") if act == "twin" else wanted, found, said=said)

    async def check(self, request: Request) -> Response:
        """Check the form. Returns the form with its mistakes, or the page of the checked change."""
        user, act = self._user(request), request.path_params["act"]
        given = await self._context.form(request)
        if act not in ACTS:
            raise HTTPException(404)
        found, said = await self._seen(request)
        try:
            wanted = _wanted(act, given)
        except _BadForm as error:
            bare = Wanted("add", given.get("name", ""))
            return self._form(request, act, bare, found, given=given, mistakes=(error.mistake,), status=400)
        try:
            answer = await ask(Plan(wanted, "probe" in given))
        except CannotAsk as error:
            answer = Refused(self._away(request, error))
        if isinstance(answer, Planned) and not answer.mistakes:
            draft = _Draft(secrets.token_hex(8), self._context.now(), user.name, given["why"].strip(), wanted, answer)
            self._drafts[draft.id] = draft
            if len(self._drafts) > MOST_DRAFTS:
                self._drafts.popitem(last=False)
            return self._shown(request, user, draft)
        mistakes = answer.mistakes if isinstance(answer, Planned) else ()
        said = answer.why if isinstance(answer, Refused) else said
        lacks = answer.lacks if isinstance(answer, Planned) else ()
        return self._form(
            request, act, wanted, found, given=given, mistakes=mistakes, lacks=lacks, said=said, status=400
        )

    async def draft(self, request: Request) -> Response:
        user = self._user(request)
        return self._shown(request, user, self._draft(request))

    async def make(self, request: Request) -> Response:
        """Make a checked change, completely or not at all."""
        user = self._user(request)
        given = await self._context.form(request)
        draft = self._draft(request)
        if draft.plan.terms:
            if (why := self._waits(user, draft)) is not None:
                raise HTTPException(403, why)
            if (page := self._unproven(request, user, given, draft)) is not None:
                return page
        people = draft.by if draft.by == user.name else f"{draft.by}, {user.name}"
        wanted = draft.wanted
        detail = {"by": draft.by, "why": draft.why, "difference": draft.plan.difference}
        self._context.actions.note(user.name, user.role, f"table.{wanted.act}", wanted.name, detail)
        del self._drafts[draft.id]
        try:
            answer = await ask(Make(wanted, draft.plan.digest, people, draft.why))
        except CannotAsk as error:
            answer = Refused(self._away(request, error))
        made = answer if isinstance(answer, Made) else None
        said = answer.why if isinstance(answer, Refused) else ""
        return self._context.page(request, "tables_made.html", 200 if made else 409, made=made, said=said, draft=draft)

    def _user(self, request: Request) -> User:
        """The user, who must have the right to change all tables. Raises Redirect, 403."""
        user = self._context.needs(request, "setup")
        if user.tables:
            raise HTTPException(403)
        return user

    def _draft(self, request: Request) -> _Draft:
        draft = self._drafts.get(request.path_params["id"])
        if draft is None:
            raise HTTPException(404, "setup.gone")
        return draft

    async def _seen(self, request: Request) -> tuple[Seen | None, str]:
        """The tables and ports of this computer, or the reason why they are not known."""
        try:
            answer = await ask(Look())
        except CannotAsk as error:
            return None, self._away(request, error)
        if isinstance(answer, Refused):
            return None, answer.why
        return (answer, "") if isinstance(answer, Seen) else (None, "")

    def _away(self, request: Request, error: CannotAsk) -> str:
        self._log.warning("tables.no_answer", reason=str(error))
        return words.say(self._context.lang(request), "setup.away")

    def _lamp(self, table: str, device: str) -> tuple[str, str]:
        """The state of a device, and the model and serial number that it reports."""
        one = self._context.site.devices.get((table, device))
        if one is None:
            return "unknown", ""
        return self._context.site.lamp(one), " ".join(filter(None, (one.meta.model, one.meta.serial)))

    def _waits(self, user: User, draft: _Draft) -> Literal["setup.supervisor", "setup.yourself"] | None:
        """Why this person may not make a change of bets, odds or limits."""
        if not may(user.role, "settle"):
            return "setup.supervisor"
        return "setup.yourself" if may_be_one_person(user.name, draft.by) else None

    def _unproven(self, request: Request, user: User, given: Mapping[str, str], draft: _Draft) -> Response | None:
        """The page that asks for a code; None if the user may decide now. Raises 403 for any other obstacle."""
        found = self._context.proof(request, user, given, f"/tables/draft/{draft.id}")
        if isinstance(found, Response):
            return found
        if found:
            raise HTTPException(403, found)
        return None

    def _shown(self, request: Request, user: User, draft: _Draft) -> Response:
        waits = self._waits(user, draft) if draft.plan.terms else None
        return self._context.page(request, "tables_draft.html", draft=draft, waits=waits)

    def _form(
        self,
        request: Request,
        act: str,
        wanted: Wanted,
        found: Seen | None,
        *,
        given: Mapping[str, str] | None = None,
        mistakes: tuple[Mistake, ...] = (),
        lacks: tuple[str, ...] = (),
        said: str = "",
        status: int = 200,
    ) -> Response:
        fields = dict(given) if given is not None else _fields(wanted)
        at: dict[str, list[str]] = {}
        for one in mistakes:
            at.setdefault(one.field, []).append(one.text)
        rows = next(n for n in count() if f"device-{n}-name" not in fields) + (FREE_DEVICES if given is None else 0)
        values: dict[str, Any] = {
            "act": act,
            "fields": fields,
            "rows": min(max(rows, FREE_DEVICES), MOST_DEVICES),
            "at": at,
            "lacks": lacks,
            "said": said,
            "ports": found.ports if found else (),
            "rulesets": RULESETS,
            "drivers": DRIVERS,
        }
        return self._context.page(request, "tables_form.html", status, **values)


def _fields(wanted: Wanted) -> dict[str, str]:
    """The form fields of a table."""
    fields = {"name": wanted.name, "ruleset": wanted.ruleset, "area": wanted.area, "options": _lines(wanted.options)}
    for n, one in enumerate(wanted.devices):
        for key, value in (("name", one.name), ("driver", one.driver), ("url", one.url)):
            fields[f"device-{n}-{key}"] = value
        fields[f"device-{n}-options"] = _lines(one.options)
    return fields


def _lines(options: Mapping[str, str]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in options.items())


def _wanted(act: str, given: Mapping[str, str]) -> Wanted:
    """The change that the form requests. Raises _BadForm, 400."""
    name = given.get("name", "").strip()
    if not given.get("why", "").strip():
        raise HTTPException(400)
    if act == "remove":
        return Wanted("remove", name)
    devices = []
    for n in range(MOST_DEVICES):
        device = given.get(f"device-{n}-name", "").strip()
        if device:
            options = _options(given.get(f"device-{n}-options", ""), f"device-{n}")
            driver, url = (given.get(f"device-{n}-{key}", "").strip() for key in ("driver", "url"))
            devices.append(Device(device, driver, url, options))
    ruleset, area = given.get("ruleset", ""), given.get("area", "").strip()
    options = _options(given.get("options", ""), "options")
    return Wanted("change" if act == "change" else "add", name, ruleset, area, options, tuple(devices))


def _options(text: str, field: str) -> dict[str, str]:
    """Lines of NAME = VALUE. Raises _BadForm."""
    options = {}
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise _BadForm(Mistake(field, f"{line.strip()}: write NAME = VALUE"))
        options[name] = value
    return options
