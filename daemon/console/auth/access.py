"""Who comes in, and what they may do: log in and out, sessions as cookies, tokens of screens and programs, their pages.

A cookie is only ever sent to us by our own pages (SameSite=Strict), never shown to a script, and opens nothing once its
session ended in the store. Each form is taken only from a page of the same origin.
"""

import asyncio
import contextlib
import ipaddress
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Literal, ParamSpec, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from daemon import logs
from daemon.config.model import Console, is_loopback
from daemon.console.auth.users import LONGEST, ROLES, By, Hashed, Right, Role, Users, hash_password, may
from daemon.console.site.actions import Actions
from daemon.console.site.store import BadStore, Store

__all__ = [
    "Access",
    "Refused",
    "Right",
    "Role",
    "Throttle",
    "User",
    "Wait",
    "address_of",
    "agent_of",
    "clean",
    "home",
    "inside",
    "may",
    "of_the_same_origin",
    "role_of",
]

P = ParamSpec("P")
T = TypeVar("T")

# What one hash takes, 32 MiB, the process has twice; who comes while so many wait is told to come again.
_HASHING, _WAITING = 2, 8


class User(Struct, frozen=True):
    """Who asks. `tables` empty: all. `kind`: known here, to another provider, or a screen with a token.

    `session` names what let them in; it opens nothing.
    """

    name: str
    role: Role
    tables: tuple[str, ...] = ()
    kind: Literal["local", "outside", "token"] = "local"
    session: str = ""

    @property
    def by(self) -> By:
        """As the author of a change."""
        return By(self.name, self.role)


class Refused(Exception):
    """No such user, or not their password: nobody is told which."""


class Wait(Exception):
    """Too many tried. `seconds` until the next may."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"wait {seconds} s")
        self.seconds = seconds


# ---- too many tries


class _Tries(Struct):
    """How often, and when last, in seconds."""

    count: int
    last: float


class Throttle:
    """Counts the tries to log in that have not succeeded: of a name from an address, from an address, of a name.

    After some free tries each must wait twice as long as the one before. A stranger can make a name's owner wait no
    longer than a minute from elsewhere. Memory is bounded: the longest unused is forgotten first.
    """

    MOST = 4096
    FORGET = 3600.0
    # Free tries and the longest wait, seconds.
    LIMITS = (("pair", 3, 900), ("address", 10, 900), ("name", 10, 60))

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._tries: tuple[OrderedDict[str, _Tries], ...] = tuple(OrderedDict() for _ in self.LIMITS)

    def begin(self, name: str, address: str) -> int:
        """Seconds to wait; 0: this try is counted and may be made."""
        now = self._now().timestamp()
        waits = []
        for tries, key, (_, free, longest) in self._each(name, address):
            one = tries.get(key)
            if one is not None and one.count >= free:
                delay = min(2.0 ** min(one.count - free, 30), longest)
                waits.append(min(one.last + delay - now, delay))  # a clock set back makes nobody wait longer
        wait = math.ceil(max(waits, default=0))
        if wait > 0:
            return wait
        for tries, key, _ in self._each(name, address):
            one = tries.setdefault(key, _Tries(0, now))
            if now - one.last > self.FORGET:
                one.count = 0
            one.count, one.last = one.count + 1, now
            tries.move_to_end(key)
            while len(tries) > self.MOST:
                tries.popitem(last=False)
        return 0

    def passed(self, name: str, address: str) -> None:
        """The try that was begun succeeded. What the address tried with other names stays counted."""
        for tries, key, (kind, _, _) in self._each(name, address):
            if kind != "address":
                tries.pop(key, None)
            elif key in tries:
                tries[key].count -= 1

    def struck(self, name: str, address: str) -> list[str]:
        """Of what somebody should know: "pair", "address", "name", as its waiting begins and whenever tries double."""
        struck = []
        for tries, key, (kind, free, _) in self._each(name, address):
            count = tries[key].count if key in tries else 0
            if count >= free and count % free == 0 and (count // free).bit_count() == 1:
                struck.append(kind)
        return struck

    def _each(self, name: str, address: str) -> list[tuple[OrderedDict[str, _Tries], str, tuple[str, int, int]]]:
        net = _net(address)
        return list(zip(self._tries, (f"{net} {name}", net, name), self.LIMITS, strict=True))


def _net(address: str) -> str:
    """An address of IPv4, a network of IPv6: there each customer has a whole one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found.packed, 128)).supernet(new_prefix=64))
    return str(found)


# ---- in and out


class Access:
    """Lets people in, and knows who they are."""

    def __init__(self, config: Console, store: Store, actions: Actions, now: Callable[[], datetime]) -> None:
        """Raises BadStore."""
        self.config = config
        self.actions = actions
        idle, longest = timedelta(minutes=config.idle_minutes), timedelta(hours=config.session_hours)
        self.users = Users(store, now, idle=idle, longest=longest, told=actions.collect)
        self.throttle = Throttle(now)
        self.secure = bool(config.certificate) or config.url.lower().startswith("https:")
        # No other host or path can set a cookie of that name, and no plain line carries it.
        self.cookie = "__Host-feltd" if self.secure else "feltd"
        if not self.secure and not is_loopback(config.listen):
            remedy = "give [console] certificate and key, or let it listen on 127.0.0.1 behind a proxy that has them"
            logs.get().warning("console.plain", text="passwords cross the network in the clear", remedy=remedy)
        self._pool = ThreadPoolExecutor(_HASHING, "password")
        self._waiting = 0
        # Of nobody: who asks for an unknown name waits as long as for a known one.
        self._nobody = Hashed(2**15, 8, 1, secrets.token_bytes(16), secrets.token_bytes(32))

    def close(self) -> None:
        """End its threads."""
        self._pool.shutdown(cancel_futures=True)

    async def hash(self, password: str) -> Hashed:
        """Of a new password. Raises Wait."""
        return await self._in_thread(hash_password, password)

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._waiting >= _WAITING:
            raise Wait(1)
        future = self._pool.submit(work, *args, **kwargs)
        self._waiting += 1
        try:
            return await asyncio.wrap_future(future)
        finally:
            self._waiting -= 1

    async def check(self, name: str, password: str, address: str) -> None:
        """Whether this is the password of `name`. Raises Refused, Wait, BadJournal."""
        if self._waiting >= _WAITING:
            raise Wait(1)
        wait = self.throttle.begin(name, address)
        if wait:
            raise Wait(wait)
        known = self.users.hashed(name)
        right = await self._in_thread((known or self._nobody).fits, password[: LONGEST + 1])
        # Meanwhile the user may have been removed, or have another password.
        if right and known is not None and self.users.hashed(name) == known:
            self.throttle.passed(name, address)
            return
        # A name nobody has may be a password typed into the wrong field: it is written nowhere.
        detail = {"name": name if known is not None else "", "address": address}
        self.actions.note("", "", "login.failed", "", detail)
        for kind in self.throttle.struck(name, address):
            self.actions.note("", "", "login.throttled", "", {**detail, "by": kind})
        raise Refused

    async def log_in(self, name: str, password: str, address: str, agent: str) -> str:
        """The secret of a new session. Raises Refused, Wait, BadJournal, BadStore."""
        name = clean(name.strip().lower())
        await self.check(name, password, address)
        self.actions.note(name, self.users.find(name).role, "login", "", {"address": address})
        return self.users.begin(name, address, agent)

    def who(self, request: Request) -> User | None:
        """Whose cookie came with this. A stream that comes again by itself keeps no session alive.

        A store that cannot be written keeps nobody from reading.
        """
        return self._who(request, used=request.headers.get("accept") != "text/event-stream")

    def goes_on(self, request: Request, user: User) -> bool:
        """Whether what let them in still would, as the same: to be asked now and then for each open stream.

        By the secret itself: of a screen's token that was replaced the name is what it was.
        """
        return self._who(request, used=False) == user

    def _who(self, request: Request, *, used: bool) -> User | None:
        secret = request.cookies.get(self.cookie, "")
        session = self.users.session(secret) if secret else None
        if session is not None:
            if used:
                with contextlib.suppress(BadStore):
                    self.users.used(session)
            role = role_of(session.role)
            kind: Literal["local", "outside"] = "outside" if session.outside else "local"
            return User(session.user, role, session.tables, kind, session.id) if role else None
        token = self.users.token(secret) if secret else None
        if token is None or token.role != "viewer":
            return None
        return User(token.name, "viewer", token.tables, "token", token.name)

    def may_scrape(self, request: Request) -> bool:
        """Whether /metrics is for them: a token as a bearer's, or somebody who may look at everything."""
        if self.config.metrics == "open":
            return True
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            token = self.users.token(secret.strip())
            return token is not None and not token.tables
        user = self.who(request)
        return user is not None and may(user.role, "look") and not user.tables

    def let_in(self, response: Response, secret: str, *, seconds: int | None = None) -> None:
        """Give the browser the cookie, until it is closed, or for `seconds`."""
        response.set_cookie(
            self.cookie, secret, max_age=seconds, path="/", secure=self.secure, httponly=True, samesite="strict"
        )

    def let_out(self, response: Response) -> None:
        """Take it away."""
        response.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")


def role_of(text: str) -> Role | None:
    return next((role for role in ROLES if role == text), None)


def clean(text: str) -> str:
    """What a stranger wrote, for a key and a journal."""
    return text.encode(errors="replace").decode()[:64]


def address_of(request: Request) -> str:
    """Of the browser, or of what stands before us."""
    return request.client.host if request.client else ""


def of_the_same_origin(request: Request, url: str = "") -> bool:
    """Whether a form comes from a page of our own. `url` is what people type, where that differs from Host.

    Browsers say where a POST comes from, and no page can make them say something else; who says nothing is no browser
    of today.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None and origin is None:
        return False
    if site not in (None, "same-origin"):
        return False
    own = {f"{request.url.scheme}://{request.headers.get('host', '')}".lower(), _origin(url)}
    return origin is None or origin.lower() in own - {""}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""


def inside(to: str) -> str:
    """A path of ours, for a redirect: never another site's."""
    return to if re.fullmatch(r"/(?![/\\])[!-~]*", to) else "/"


def home(console: Console, role: str, tables: tuple[str, ...]) -> str:
    """Where somebody begins: a dealer at the table, at the first that has a dealer's page."""
    if may(role, "look"):
        return "/"
    if not may(role, "deal"):
        return "/account"
    pages = [one for one in console.dealer if one in tables or not tables]
    return f"/dealer/{pages[0]}" if pages else "/account"


def agent_of(request: Request) -> str:
    """What the browser calls itself."""
    return request.headers.get("user-agent", "")
