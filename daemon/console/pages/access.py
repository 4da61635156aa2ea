"""The pages for login, logout, the own account, users, tokens, and the log of actions."""

import asyncio
import itertools
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, get_args
from urllib.parse import quote

import msgspec
import segno
from markupsafe import Markup
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.console.auth.access import (
    Refused,
    Throttle,
    User,
    Wait,
    address_of,
    agent_of,
    clean,
    home,
    inside,
    role_of,
)
from daemon.console.auth.second_factor import address_of as factor_address, new_secret
from daemon.console.auth.users import ROLES, BadUser, Role, Session, TokenRole, may, password_fault
from daemon.console.context import ConsoleContext
from daemon.console.pages import openid
from daemon.console.pages.pit import wall_page
from daemon.console.site.actions import Action, read_actions
from daemon.spreadsheet import BYTE_ORDER_MARK, csv_text, harmless
from protocols.contract.people import same_person

__all__ = ["routes"]

_SETS_PASSWORD = ("user.add", "user.password")
_YEAR = 365 * 86400
_PAGE = 100
_CSV_PAGE = 5000
ENROLLING = timedelta(minutes=10)
MOST_ENROLLING = 100
MOST_ACTIONS = 10_000
"""The number of last changes of users that are searched for the person who set a password."""
# The texts that a page may show after a redirect: a link must not be able to choose any text.
_DONE = (
    "factor_set",
    "factor_reset",
    "user_confirmed",
    "user_added",
    "user_removed",
    "password_set",
    "role_set",
    "sessions_ended",
    "token_removed",
)


def routes(context: ConsoleContext) -> list[Route]:
    """Login and logout, the own account, users, tokens, the log of actions."""
    pages = _Pages(context)
    return [
        Route("/login", pages.login, methods=["GET", "POST"]),
        *openid.routes(context),
        Route("/logout", pages.logout, methods=["POST"]),
        Route("/wall", pages.wall),
        Route("/account", pages.account, methods=["GET", "POST"]),
        Route("/users", pages.users, methods=["GET", "POST"]),
        Route("/tokens", pages.tokens, methods=["GET", "POST"]),
        Route("/actions", pages.actions),
        Route("/actions.csv", pages.actions_csv),
    ]


class _Enrolling(Struct, frozen=True):
    """A displayed secret, and the time until which its first code is awaited."""

    secret: str
    until: datetime


class _Pages:
    """The handlers of requests."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._access = context.access
        self._users = context.access.users
        self._enrolling: OrderedDict[str, _Enrolling] = OrderedDict()
        """By session, the secret of a second factor that was shown and not yet proven."""
        self._enrol_tries = Throttle(context.now)

    # ---- login and logout

    async def login(self, request: Request) -> Response:
        context, access = self._context, self._access
        if request.method != "POST":
            user = context.user(request)
            to = request.query_params.get("to", "")
            if user is not None and user.kind != "token":
                return RedirectResponse(inside(to) if to else home(context.config.console, user.role, user.tables), 303)
            return self._context.login_page(request, to)
        form = await context.form(request)
        to, name = form.get("to", ""), form.get("name", "")
        try:
            secret = await access.log_in(name, form.get("password", ""), address_of(request), agent_of(request))
        except Refused:
            return self._context.login_page(request, to, 403, name=name, said="access.refused")
        except Wait as wait:
            answer = self._context.login_page(request, to, 429, name=name, said="access.wait", seconds=wait.seconds)
            answer.headers["retry-after"] = str(wait.seconds)
            return answer
        old = context.user(request)
        if old is not None and old.kind != "token":  # a browser has one user at a time
            self._users.end(old.by, user=old.name, session=old.session)
        came = self._users.session(secret)
        assert came is not None
        answer = RedirectResponse(self._landing(to, came), 303)
        access.let_in(answer, secret)
        return answer

    def _landing(self, to: str, came: Session) -> str:
        """The page that the user asked for, if the user may see it."""
        wanted = inside(to)
        if to and (may(came.role, "look") or (may(came.role, "deal") and wanted.startswith("/dealer/"))):
            return wanted
        return home(self._context.config.console, came.role, came.tables)

    async def logout(self, request: Request) -> Response:
        await self._context.form(request)
        user = self._context.user(request)
        if user is not None and user.kind != "token":
            self._users.end(user.by, user=user.name, session=user.session)
        answer = RedirectResponse("/login", 303)
        self._access.let_out(answer)
        return answer

    async def wall(self, request: Request) -> Response:
        """The pit for a wall. A token does not stay in the address, which a camera or a log may record."""
        secret = request.query_params.get("token", "")
        if not secret:
            return wall_page(self._context, request)
        token = self._users.token(secret)
        if token is None or token.role != "viewer":
            return RedirectResponse("/login", 303)
        # With a request from another site a browser does not send our strict cookie, so a session would not be found.
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HTTPException(403)
        user = self._context.user(request)
        if user is not None and user.kind != "token":
            return RedirectResponse("/wall", 303)
        answer = RedirectResponse("/wall", 303)
        self._access.let_in(answer, secret, seconds=_YEAR)
        return answer

    # ---- the own account

    async def account(self, request: Request) -> Response:
        user = self._context.user(request)
        if user is None:
            return RedirectResponse("/login?to=/account", 303)
        if user.kind == "token":
            raise HTTPException(403)
        if request.method != "POST":
            return self._account_page(request, user)
        form = await self._context.form(request)
        match form.get("do"):
            case "end":
                self._users.end(user.by, user=user.name, session=form.get("session", ""))
                if self._access.goes_on(request, user):
                    return _done("/account", "sessions_ended")
                return RedirectResponse("/login", 303)
            case "password" if user.kind == "local":
                return await self._own_password(request, user, form)
            case "factor_begin" if user.kind == "local":
                return await self._begin_factor(request, user, form)
            case "factor_set" if user.kind == "local":
                return self._set_factor(request, user, form)
        raise HTTPException(400)

    async def _own_password(self, request: Request, user: User, form: dict[str, str]) -> Response:
        """Change the password: every session ends, and this browser gets a new one."""
        password = form.get("password", "")
        try:
            self._check_password(user.name, password, form.get("again", ""))
            await self._access.check(user.name, form.get("old", ""), address_of(request))
            hashed = await self._access.hash(password)
            self._needs_still(request, user)
            self._users.set_password(user.by, user.name, hashed)
        except BadUser as error:
            return self._account_page(request, user, 400, said=error.key)
        except Refused:
            return self._account_page(request, user, 403, said="access.old_wrong")
        except Wait as wait:
            return self._account_page(request, user, 429, said="access.wait", seconds=wait.seconds)
        answer = _done("/account", "password_set")
        self._access.let_in(answer, self._users.begin(user.name, address_of(request), agent_of(request)))
        return answer

    async def _begin_factor(self, request: Request, user: User, form: dict[str, str]) -> Response:
        """Show a new secret, once, after the password was given."""
        try:
            await self._access.check(user.name, form.get("old", ""), address_of(request))
        except Refused:
            return self._account_page(request, user, 403, said="access.old_wrong")
        except Wait as wait:
            return self._account_page(request, user, 429, said="access.wait", seconds=wait.seconds)
        self._needs_still(request, user)
        secret = new_secret()
        self._enrolling[user.session] = _Enrolling(secret, self._context.now() + ENROLLING)
        self._enrolling.move_to_end(user.session)
        if len(self._enrolling) > MOST_ENROLLING:
            self._enrolling.popitem(last=False)
        return self._account_page(request, user, secret=secret)

    def _set_factor(self, request: Request, user: User, form: dict[str, str]) -> Response:
        """Set the second factor, after a code of the new secret, and one of the replaced secret."""
        enrolling = self._enrolling.get(user.session)
        if enrolling is None or enrolling.until <= self._context.now():
            return self._account_page(request, user, 400, said="access.factor_again")
        if wait := self._enrol_tries.begin(user.name, address_of(request)):
            secret = enrolling.secret
            return self._account_page(request, user, 429, said="access.wait", seconds=wait, secret=secret)
        try:
            self._users.set_factor(user.by, user.name, enrolling.secret, form.get("code", ""), form.get("old_code", ""))
        except BadUser as error:
            return self._account_page(request, user, 403, said=error.key, secret=enrolling.secret)
        self._enrol_tries.passed(user.name, address_of(request))
        del self._enrolling[user.session]
        return _done("/account", "factor_set")

    def _account_page(
        self, request: Request, user: User, status: int = 200, *, said: str = "", seconds: int = 0, secret: str = ""
    ) -> Response:
        """`secret`: of the second factor that is being set up."""
        enrolling = {"secret": secret, "drawn": self._drawn(secret, user)} if secret else None
        return self._context.page(
            request,
            "access_account.html",
            status,
            me=user,
            has_factor=user.kind == "local" and self._users.has_factor(user.name),
            enrolling=enrolling,
            state=self._access.may_decide(user),
            sessions=self._users.sessions(user.name),
            said=said,
            seconds=seconds,
            done=_said(request),
        )

    def _drawn(self, secret: str, user: User) -> Markup:
        """The QR code of a secret, for the application on the person's telephone."""
        code = segno.make(factor_address(secret, user.name, self._context.config.site.name), error="m", micro=False)
        drawn = code.svg_inline(border=4, scale=4, svgclass="qr", lineclass=None)
        return Markup(drawn)  # noqa: S704 - drawn here; the address is squares of a code, not text

    @staticmethod
    def _check_password(name: str, password: str, again: str) -> None:
        fault = password_fault(name, password)
        if fault is not None:
            raise fault
        if password != again:
            raise BadUser("access.passwords_differ", "the passwords differ")

    def _needs_still(self, request: Request, user: User) -> None:
        """Check the session again, which may have ended while a password was hashed. Raises 403."""
        if not self._access.goes_on(request, user):
            raise HTTPException(403)

    # ---- users and tokens

    async def users(self, request: Request) -> Response:
        user = self._context.needs(request, "vouch")
        if request.method != "POST":
            return self._users_page(request)
        form = await self._context.form(request)
        try:
            done = await self._change_user(request, user, form)
        except BadUser as error:
            return self._users_page(request, 400, said=error.key, kept=form)
        except Wait as wait:
            return self._users_page(request, 429, said="access.wait", seconds=wait.seconds, kept=form)
        return _done("/users", done)

    async def _change_user(self, request: Request, user: User, form: dict[str, str]) -> str:
        name = form.get("name", "")
        if form.get("do") == "confirm":
            if why := self._context.prove(request, user, form):
                raise BadUser(why, "a confirmed user confirms, with a code of the second factor")
            self._users.confirm(user.by, name, await self._set_password_of(name))
            return "user_confirmed"
        self._context.needs(request, "users")
        match form.get("do"):
            case "factor_reset":
                self._users.reset_factor(user.by, name)
                return "factor_reset"
            case "add":
                self._check_password(name, form.get("password", ""), form.get("again", ""))
                role, tables = self._role_and_tables(form)
                hashed = await self._access.hash(form["password"])
                self._needs_still(request, user)
                self._users.add(user.by, name, role, tables, hashed)
                return "user_added"
            case "role":
                role, tables = self._role_and_tables(form)
                self._users.set_role(user.by, name, role, tables)
                return "role_set"
            case "password":
                self._users.find(name)
                self._check_password(name, form.get("password", ""), form.get("again", ""))
                hashed = await self._access.hash(form["password"])
                self._needs_still(request, user)
                self._users.set_password(user.by, name, hashed)
                return "password_set"
            case "remove":
                self._users.remove(user.by, name)
                return "user_removed"
            case "end":
                self._users.end(user.by, user=name)
                return "sessions_ended"
            case "end_all":
                self._users.end(user.by)
                return "sessions_ended"
        raise HTTPException(400)

    async def _set_password_of(self, name: str) -> set[str]:
        """The people who set the password of an account since it was confirmed, by the log of actions."""
        self._access.actions.collect()
        path = self._access.actions.journal.path
        found = await asyncio.to_thread(read_actions, path, MOST_ACTIONS, action="user")
        of_account = (one for one in found if one.target == f"user:{name}")
        since = itertools.takewhile(lambda one: one.action != "user.confirm", of_account)
        return {one.user for one in since if one.action in _SETS_PASSWORD and not same_person(one.user, name)}

    def _role_and_tables(self, form: dict[str, str]) -> tuple[Role, tuple[str, ...]]:
        role = role_of(form.get("role", ""))
        if role is None:
            raise HTTPException(400)
        return role, self._tables(form)

    def _tables(self, form: dict[str, str]) -> tuple[str, ...]:
        """The names, with commas or spaces. Raises BadUser."""
        tables = tuple(re.findall(r"[^\s,]+", form.get("tables", "")))
        known = {one.name for one in self._context.config.table}
        if not known.issuperset(tables):
            raise BadUser("access.no_table", f"no such table: {', '.join(sorted(set(tables) - known))}")
        return tables

    def _users_page(
        self,
        request: Request,
        status: int = 200,
        *,
        said: str = "",
        seconds: int = 0,
        kept: Mapping[str, str] | None = None,
    ) -> Response:
        """`kept`: the form that was refused. Its passwords are not sent back."""
        user = self._context.needs(request, "vouch")
        shown = {key: value[:200] for key, value in (kept or {}).items() if key in ("do", "name", "role", "tables")}
        return self._context.page(
            request,
            "access_users.html",
            status,
            people=self._users.all(),
            confirmed={one.name for one in self._users.all() if self._users.is_confirmed(one.name)},
            factors={one.name for one in self._users.all() if self._users.has_factor(one.name)},
            touched=self._users.touched_by,
            me=user,
            proven=self._access.is_proven(user),
            sessions=self._users.sessions(),
            roles=ROLES,
            said=said,
            seconds=seconds,
            kept={"do": "", "name": "", "role": "", "tables": ""} | shown,
            done=_said(request),
        )

    async def tokens(self, request: Request) -> Response:
        user = self._context.needs(request, "tokens")
        if request.method != "POST":
            return self._tokens_page(request)
        form = await self._context.form(request)
        name = form.get("name", "")
        try:
            match form.get("do"):
                case "add":
                    role = next((one for one in get_args(TokenRole) if one == form.get("role")), None)
                    if role is None:
                        raise HTTPException(400)
                    secret = self._users.add_token(user.by, name, role, self._tables(form))
                    base = self._context.config.console.url.rstrip("/") or str(request.base_url).rstrip("/")
                    address = f"{base}/wall?token={secret}" if role == "viewer" else ""
                    return self._tokens_page(request, secret=secret, address=address, new=name)
                case "remove":
                    self._users.remove_token(user.by, name)
                    return _done("/tokens", "token_removed")
        except BadUser as error:
            return self._tokens_page(request, 400, said=error.key)
        raise HTTPException(400)

    def _tokens_page(self, request: Request, status: int = 200, **values: str) -> Response:
        shown = {"said": "", "secret": "", "address": "", "new": "", "done": _said(request)} | values
        tokens = self._users.tokens()
        return self._context.page(
            request, "access_tokens.html", status, tokens=tokens, roles=get_args(TokenRole), **shown
        )

    # ---- the log of actions

    async def actions(self, request: Request) -> Response:
        self._context.needs(request, "actions")
        self._access.actions.collect()
        which = _filter(request, self._context.zone)
        before = request.query_params.get("before", "")
        if before.isascii() and before.isdigit():
            which["before"] = int(before[:18])
        found = await asyncio.to_thread(read_actions, self._access.actions.journal.path, _PAGE + 1, **which)
        query = {key: value for key, value in request.query_params.items() if key in _FILTERS and value}
        words = "&".join(f"{key}={quote(value)}" for key, value in query.items())
        return self._context.page(
            request,
            "access_actions.html",
            found=[(one, _detail(one)) for one in found[:_PAGE]],
            query=query,
            words=words,
            older=found[_PAGE - 1].n if len(found) > _PAGE else 0,
            tables=[one.name for one in self._context.config.table],
        )

    async def actions_csv(self, request: Request) -> Response:
        user = self._context.needs(request, "actions")
        which = _filter(request, self._context.zone)
        path = self._access.actions.journal.path
        detail = {key: clean(value) for key, value in request.query_params.items() if key in _FILTERS and value}
        self._access.actions.note(user.name, user.role, "actions.export", "", detail)

        async def lines() -> AsyncIterator[str]:
            yield BYTE_ORDER_MARK + csv_text([("n", "time", "user", "role", "action", "target", "detail")])
            before: int | None = None
            while before != 0:
                found = await asyncio.to_thread(read_actions, path, _CSV_PAGE, before=before, **which)
                yield csv_text([_cells(one) for one in found])
                before = found[-1].n if len(found) == _CSV_PAGE else 0

        name = f'attachment; filename="actions-{self._context.now():%Y%m%d-%H%M%S}.csv"'
        return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers={"content-disposition": name})


_FILTERS = ("user", "action", "table", "from", "to")


def _filter(request: Request, zone: tzinfo) -> dict[str, Any]:
    """The filter for `read_actions`; days are those of the zone. Raises 400."""
    asked = request.query_params
    which: dict[str, Any] = {
        "user": clean(asked.get("user", "").strip()),
        "action": clean(asked.get("action", "").strip()),
        "place": clean(asked.get("table", "")),
    }
    for key, name, days in (("from", "since", 0), ("to", "until", 1)):
        if asked.get(key):
            try:
                day = date.fromisoformat(asked[key]) + timedelta(days=days)
                which[name] = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
            except (ValueError, OverflowError) as error:
                raise HTTPException(400, "error.day") from error
    return which


def _detail(action: Action) -> str:
    return msgspec.json.encode(action.detail).decode() if action.detail else ""


def _cells(one: Action) -> tuple[str, ...]:
    cells = (str(one.n), one.time.isoformat(), one.user, one.role, one.action, one.target, _detail(one))
    return tuple(map(harmless, cells))


def _done(path: str, word: str) -> Response:
    return RedirectResponse(f"{path}?done={word}", 303)


def _said(request: Request) -> str:
    word = request.query_params.get("done", "")
    return f"access.{word}" if word in _DONE else ""
