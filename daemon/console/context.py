"""The context that all pages share: the site, the user, the templates. `daemon/console/app.py` builds it."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, MutableMapping
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import jinja2
from jinja2.ext import Extension
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from daemon.config.model import Config
from daemon.console import assets, shapes
from daemon.console.alerts.incidents import Incidents
from daemon.console.articles import cited
from daemon.console.auth.access import Access, Refused, Right, User, Wait, address_of, may, of_the_same_origin
from daemon.console.live import Live, Viewer
from daemon.console.site.actions import Actions
from daemon.console.site.store import Store
from daemon.read_model import SiteState
from daemon.views import utc
from daemon.words import words
from daemon.words.citations import cite
from daemon.words.local import Local, zone_of
from daemon.words.money import money
from protocols.contract.payouts import payout_order

__all__ = ["HERE", "ConsoleContext", "Redirect"]

HERE = Path(__file__).parent
LONGEST_FORM = 64 * 1024
FORM_TIMEOUT_S = 10.0
LINES = 2_000


class Redirect(Exception):
    """Redirect to the login."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.to = to


class ConsoleContext:
    """The parts that pages share, and the common handling of requests."""

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
        self.live = Live(lambda: utc(now()), assets.VERSION)
        self.zone = zone_of(config.site.timezone)
        # One template environment per language: macros are imported once instead of for each rendering.
        icons = {"device_icon": shapes.device_icon, "game_icon": shapes.game_icon}
        shared = {
            "version": assets.VERSION,
            "may": may,
            "pips": shapes.pips,
            "site": site,
            "config": config,
            "cited": cited,
            **icons,
        }
        self._templates = {
            lang: _templates(
                t=partial(words.say, lang),
                device_text=lambda code, said, lang=lang: _code(words.device_text(lang, code, said)),
                fault_text=partial(words.fault_text, lang),
                noted=partial(words.noted, lang),
                reason=partial(words.reason, lang),
                money=partial(money, lang),
                amount=partial(self.amount, lang),
                local=Local(lang, self.zone),
                colon=words.say(lang, "site.colon"),
                stop=words.say(lang, "site.stop"),
                space="" if lang == "zh-Hant" else " ",  # between two sentences
                cite=partial(cite, lang),
                lang=lang,
                **shared,
            )
            for lang in words.LANGS
        }

    def local(self, lang: words.Lang) -> Local:
        """The format of dates and times in this language and the zone of the site."""
        return Local(lang, self.zone)

    def amount(self, lang: words.Lang, minor: int, ruleset: str) -> str:
        """An amount at a table with these rules, with its currency."""
        site = self.config.site
        return money(lang, minor, site.decimals, site.currency_of(ruleset))

    def share(self, **values: Any) -> None:
        """Add values for all templates. Call it before the first rendering."""
        for templates in self._templates.values():
            templates.globals.update(values)

    # ---- pages

    def lang(self, request: Request) -> words.Lang:
        """The language of the request."""
        return words.choose(request.cookies.get("lang", ""), request.headers.get("accept-language", ""))

    def render(self, template: str, lang: words.Lang, **values: Any) -> str:
        """Render a template."""
        return self._templates[lang].get_template(template).render(**values)

    def macro(self, name: str, lang: words.Lang, *values: Any) -> str:
        """Render a macro of `_shapes.html`. A macro takes a third of the time of a template."""
        return str(getattr(self._templates[lang].get_template("_shapes.html").module, name)(*values))

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a whole page."""
        user = self.user(request)
        lang = self.lang(request)
        theme = request.cookies.get("theme", "")
        viewer = Viewer(lang, user.role, user.tables, user.name) if user else None
        text = self.render(
            template,
            lang,
            user=user,
            path=request.url.path,
            theme=theme if theme in ("light", "dark") else "auto",
            live=lambda name: Markup(self.live.on_page(name, viewer)) if viewer else "",  # noqa: S704 - rendered by us
            **values,
        )
        return HTMLResponse(text, status)

    # ---- users

    def user(self, request: Request) -> User | None:
        """The user of the request, if there is a valid session."""
        if not hasattr(request.state, "user"):
            request.state.user = self.access.who(request)
            known: Callable[[str], None] | None = getattr(request.state, "signed_in", None)
            if request.state.user is not None and known is not None and request.client is not None:
                known(request.client.host)
        user: User | None = request.state.user
        return user

    def needs(self, request: Request, right: Right, table: str = "") -> User:
        """The user, if they have the right. Raises Redirect to the login, or 403."""
        user = self.user(request)
        if user is None:
            raise Redirect("/login?to=" + quote(request.url.path))
        if not may(user.role, right) or (table and user.tables and table not in user.tables):
            raise HTTPException(403)
        return user

    def prove(self, request: Request, user: User, form: Mapping[str, str]) -> str:
        """Why this user may not decide about money now, as a key of the catalogs; "" where they may.

        Called for orders about jackpots, new terms of a table and the confirmation of an account; counts of a table and
        statements of a series need only `may_decide`. A code in the form counts for some minutes. Raises Wait.
        """
        if why := self.access.may_decide(user):
            return why
        if self.access.is_proven(user):
            return ""
        if not form.get("code"):
            return "access.needs_code"
        try:
            self.access.prove(user, form["code"], address_of(request))
        except Refused:
            return "access.code_wrong"
        return ""

    def proof(self, request: Request, user: User, given: Mapping[str, str], back: str) -> Response | str:
        """As `prove`, with the page that asks for the code where that is missing, wrong or too early."""
        seconds = 0
        try:
            why = self.prove(request, user, given)
        except Wait as wait:
            why, seconds = "access.wait", wait.seconds
        if why not in ("access.needs_code", "access.code_wrong", "access.wait"):
            return why
        said = "" if why == "access.needs_code" else words.say(self.lang(request), why, seconds=seconds)
        kept = {key: value for key, value in given.items() if key != "code"}
        status, to = 403 if said else 200, request.url.path
        return self.page(request, "access_code.html", status, said=said, kept=kept, to=to, back=back)

    def still(self, request: Request) -> bool:
        """Whether the session or token of the user is still valid."""
        user = self.user(request)
        return user is not None and self.access.goes_on(request, user)

    def viewer(self, request: Request) -> Viewer:
        """The viewer for fragments."""
        user = self.needs(request, "look")
        return Viewer(self.lang(request), user.role, user.tables, user.name)

    async def form(self, request: Request) -> dict[str, str]:
        """The fields of a form of our own pages. Raises 400, 403, 408, 413.

        The right is checked again after the form has arrived: a session or a role may end meanwhile.
        """
        if not of_the_same_origin(request, self.config.console.url):
            raise HTTPException(403, "error.not_ours")
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
            request.state.user = None  # the answer is the page for visitors without a session
            raise HTTPException(403)
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=200))
        except ValueError as error:
            raise HTTPException(400, "error.no_form") from error

    def login_page(
        self, request: Request, to: str, status: int = 200, *, name: str = "", said: str = "", seconds: int = 0
    ) -> Response:
        """The login page; `said` is the key of the error text."""
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


def _code(text: str) -> Markup:
    """A sentence with `names` between backticks, as HTML."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped here


class _Digests(Extension):
    """Puts the digest of each asset behind its address, once when a template is compiled."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        """The source with digests."""
        return assets.with_digests(source)


class _Environment(jinja2.Environment):
    """Templates without globals of their own: all share the environment's.

    Jinja lays a ChainMap over them for each template, which it copies for each rendering: a third of the CPU of a tile.
    """

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The globals of a template."""
        return super().make_globals(d) if d else self.globals


def _templates(**more: Any) -> jinja2.Environment:
    made = _Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        extensions=[_Digests],
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["utc"] = utc
    made.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False, indent=2)
    made.filters["code"] = _code
    made.filters["sentence"] = words.sentence
    made.globals.update(more)

    @lru_cache(LINES)
    def line(macro: str, value: Any) -> Markup:
        """One line of a log, cached: lines never change, and the log is rendered again for each new line."""
        drawn: Markup = getattr(made.get_template("_shapes.html").module, macro)(value)
        return drawn

    made.globals["line"] = line
    made.globals["payout_order"] = payout_order
    return made
