"""What every page of the console needs: the site, who asks, how a page is made. `daemon/console/app.py` builds it."""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import jinja2
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from daemon.config.model import Config
from daemon.console import shapes
from daemon.console.alerts.incidents import Incidents
from daemon.console.auth.access import Access, Right, User, may, of_the_same_origin
from daemon.console.live import Live, Viewer
from daemon.console.site.actions import Actions
from daemon.console.site.store import Store
from daemon.console.words import words
from daemon.read_model import SiteState, utc

__all__ = ["HERE", "ConsoleContext", "Redirect"]

HERE = Path(__file__).parent
LONGEST_FORM = 64 * 1024
FORM_TIMEOUT_S = 10.0
LINES = 2_000


class Redirect(Exception):
    """Somewhere else first: to the login."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.to = to


class ConsoleContext:
    """The parts that pages share, and what they do with a request."""

    def __init__(
        self,
        config: Config,
        store: Store,
        now: Callable[[], datetime],
        *,
        actions: Actions,
        access: Access,
        site: SiteState,
        incidents: Incidents,
    ) -> None:
        self.config = config
        self.store = store
        self.now = now
        self.actions = actions
        self.access = access
        self.site = site
        self.incidents = incidents
        self.live = Live(lambda: utc(now()))
        # One set of templates for each language: macros are then imported once and not for each rendering.
        shared = {"may": may, "pips": shapes.pips, "site": site}
        self._templates = {
            lang: _templates(
                t=partial(words.say, lang),
                told=partial(words.told, lang),
                noted=partial(words.noted, lang),
                reason=partial(words.reason, lang),
                lang=lang,
                **shared,
            )
            for lang in words.LANGS
        }

    def share(self, **values: Any) -> None:
        """Values that every template sees; before the first is rendered."""
        for templates in self._templates.values():
            templates.globals.update(values)

    # ---- pages

    def lang(self, request: Request) -> words.Lang:
        """In which language this browser reads."""
        return words.choose(request.cookies.get("lang", ""), request.headers.get("accept-language", ""))

    def render(self, template: str, lang: words.Lang, **values: Any) -> str:
        """A piece of HTML."""
        return self._templates[lang].get_template(template).render(**values)

    def macro(self, name: str, lang: words.Lang, *values: Any) -> str:
        """A small piece that is needed often: a macro of `_shapes.html` alone takes a third of a template's time."""
        return str(getattr(self._templates[lang].get_template("_shapes.html").module, name)(*values))

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A whole page."""
        user = self.user(request)
        lang = self.lang(request)
        theme = request.cookies.get("theme", "")
        viewer = Viewer(lang, user.role, user.tables) if user else None
        text = self.render(
            template,
            lang,
            user=user,
            path=request.url.path,
            theme=theme if theme in ("light", "dark") else "auto",
            live=lambda name: Markup(self.live.html(name, viewer)) if viewer else "",  # noqa: S704 - rendered by us
            **values,
        )
        return HTMLResponse(text, status)

    # ---- who asks

    def user(self, request: Request) -> User | None:
        """Who asks, if they came in and their session goes on."""
        if not hasattr(request.state, "user"):
            request.state.user = self.access.who(request)
        user: User | None = request.state.user
        return user

    def needs(self, request: Request, right: Right, table: str = "") -> User:
        """Who asks, if they may. Raises Redirect to the login, or 403."""
        user = self.user(request)
        if user is None:
            raise Redirect("/login?to=" + quote(request.url.path))
        if not may(user.role, right) or (table and user.tables and table not in user.tables):
            raise HTTPException(403)
        return user

    def still(self, request: Request) -> bool:
        """Whether what let them in still would."""
        user = self.user(request)
        return user is not None and self.access.goes_on(request, user)

    def viewer(self, request: Request) -> Viewer:
        """For whom fragments are rendered."""
        user = self.needs(request, "look")
        return Viewer(self.lang(request), user.role, user.tables)

    async def form(self, request: Request) -> dict[str, str]:
        """The fields of a form of our own pages. Raises 400, 403, 408, 413.

        Who was asked before whether they may is asked again: while a form comes a session ends, or a role is taken.
        """
        if not of_the_same_origin(request, self.config.console.url):
            raise HTTPException(403, "this form was not ours")
        body = b""
        try:
            async with asyncio.timeout(FORM_TIMEOUT_S):
                async for piece in request.stream():
                    body += piece
                    if len(body) > LONGEST_FORM:
                        raise HTTPException(413)
        except TimeoutError as error:
            raise HTTPException(408) from error
        if getattr(request.state, "user", None) is not None and not self.still(request):
            request.state.user = None  # what they are told is a stranger's page
            raise HTTPException(403)
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=200))
        except ValueError as error:
            raise HTTPException(400, "not a form") from error

    def login_page(
        self, request: Request, to: str, status: int = 200, *, name: str = "", said: str = "", seconds: int = 0
    ) -> Response:
        """Where people come in; `said` is the key of what went wrong."""
        return self.page(
            request,
            "access_login.html",
            status,
            to=to,
            name=name[:64],
            said=said,
            seconds=seconds,
            openid=bool(self.config.console.openid.issuer),
        )


def _templates(**more: Any) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["utc"] = utc
    made.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False, indent=2)
    made.globals.update(more)

    @lru_cache(LINES)
    def line(macro: str, value: Any) -> Markup:
        """A line of a log: it never changes, and logs are drawn anew with each one that is added."""
        drawn: Markup = getattr(made.get_template("_shapes.html").module, macro)(value)
        return drawn

    made.globals["line"] = line
    return made
