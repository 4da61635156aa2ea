"""Authentication and authorization: login, logout, session cookies, tokens of screens and programs.

A cookie is sent only by our own pages (SameSite=Strict), is hidden from scripts, and is void once its session has ended
in the store. Forms are accepted only from pages of the same origin.
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

PROVEN = timedelta(minutes=5)
"""The time for which a code of the second factor allows orders in a session."""
MOST_PROVEN = 1000
# At most two hashes run at once, 32 MiB each. A login beyond the waiting ones is refused with a time to wait.
_HASHING, _WAITING = 2, 8


class User(Struct, frozen=True):
    """The user of a request. `tables` empty: all. `kind`: local, of an OpenID provider, or a screen with a token.

    `session` is the id of the session or token; it is not a secret.
    """

    name: str
    role: Role
    tables: tuple[str, ...] = ()
    kind: Literal["local", "outside", "token"] = "local"
    session: str = ""

    @property
    def by(self) -> By:
        """The user as the author of a change."""
        return By(self.name, self.role)


class Refused(Exception):
    """Unknown user or wrong password, which the answer does not distinguish; or a wrong code of the second factor."""


class Wait(Exception):
    """Rate limit of logins and codes, or too many passwords to hash. `seconds` until the next attempt."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"wait {seconds} s")
        self.seconds = seconds


# ---- rate limit of logins


class _Tries(Struct):
    """The number of failures and the time of the last one in seconds."""

    count: int
    last: float


class Throttle:
    """Counts failed logins per name and address, per address, and per name.

    After some free attempts the waiting time doubles with each. Failures from other addresses delay the owner of a name
    by at most a minute. Memory is bounded: the least recently used entry is dropped first.
    """

    MOST = 4096
    FORGET = 3600.0
    # Free attempts and the longest wait in seconds.
    LIMITS = (("pair", 3, 900), ("address", 10, 900), ("name", 10, 60))

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._tries: tuple[OrderedDict[str, _Tries], ...] = tuple(OrderedDict() for _ in self.LIMITS)

    def begin(self, name: str, address: str) -> int:
        """Seconds to wait; 0: the attempt is counted and allowed."""
        now = self._now().timestamp()
        waits = []
        for tries, key, (_, free, longest) in self._each(name, address):
            one = tries.get(key)
            if one is not None and one.count >= free:
                delay = min(2.0 ** min(one.count - free, 30), longest)
                waits.append(min(one.last + delay - now, delay))  # a clock set back does not prolong the wait
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
        """The login succeeded. Failures of the address with other names stay counted."""
        for tries, key, (kind, _, _) in self._each(name, address):
            if kind != "address":
                tries.pop(key, None)
            elif key in tries:
                tries[key].count -= 1

    def struck(self, name: str, address: str) -> list[str]:
        """The limits to log: "pair", "address", "name", when a wait begins and whenever the attempts double."""
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
    """The address for IPv4, the network for IPv6, where each customer has a whole network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found.packed, 128)).supernet(new_prefix=64))
    return str(found)


# ---- login and logout


class Access:
    """Checks passwords, sessions and tokens."""

    def __init__(self, config: Console, store: Store, actions: Actions, now: Callable[[], datetime]) -> None:
        """Raises BadStore."""
        self.config = config
        self.actions = actions
        idle, longest = timedelta(minutes=config.idle_minutes), timedelta(hours=config.session_hours)
        self.users = Users(store, now, idle=idle, longest=longest, on_change=actions.collect)
        self.throttle = Throttle(now)
        self._codes = Throttle(now)
        self._now = now
        self._proven: OrderedDict[str, datetime] = OrderedDict()
        """By session, the time until which its last code counts."""
        self.secure = bool(config.certificate) or config.url.lower().startswith("https:")
        # With the prefix __Host- no other host or path can set the cookie, and it is sent only over TLS.
        self.cookie = "__Host-feltd" if self.secure else "feltd"
        if not self.secure and not is_loopback(config.listen):
            remedy = "give [console] certificate and key, or let it listen on 127.0.0.1 behind a proxy that has them"
            logs.get().warning("console.plain", text="passwords cross the network in the clear", remedy=remedy)
        people = self.users.all()
        if people and not config.openid.issuer and not any(may(one.role, "users") for one in people):
            remedy = "feltd console user add NAME --role administrator; supervisors no longer manage users"
            logs.get().warning("console.no_administrator", text="nobody manages the users", remedy=remedy)
        self._pool = ThreadPoolExecutor(_HASHING, "password")
        self._waiting = 0
        # Random bytes for a hash: checking an unknown name takes as long as a known one.
        self._nobody = Hashed(2**15, 8, 1, secrets.token_bytes(16), secrets.token_bytes(32))

    def close(self) -> None:
        """End the hashing threads."""
        self._pool.shutdown(cancel_futures=True)

    async def hash(self, password: str) -> Hashed:
        """The hash of a new password. Raises Wait."""
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
        """Check the password of `name`. Raises Refused, Wait, BadJournal, BadStore."""
        if self._waiting >= _WAITING:
            raise Wait(1)
        wait = self.throttle.begin(name, address)
        if wait:
            raise Wait(wait)
        known = self.users.hashed(name)
        right = await self._in_thread((known or self._nobody).fits, password[: LONGEST + 1])
        # The user may have been removed or changed the password meanwhile.
        if right and known is not None and self.users.hashed(name) == known:
            self.throttle.passed(name, address)
            return
        # An unknown name may be a password typed into the wrong field: it is not logged.
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

    def may_decide(self, user: User) -> str:
        """Why this user may not decide about money yet, as a key of the catalogs; "" where they may.

        Users of an OpenID provider were authenticated by it, and their accounts cannot be changed here.
        """
        if user.kind == "outside":
            return ""
        if not self.users.has_factor(user.name):
            return "access.needs_factor"
        return "" if self.users.is_confirmed(user.name) else "access.needs_confirmation"

    def is_proven(self, user: User) -> bool:
        """Whether the person at this session gave a code a short time ago, or an OpenID provider authenticated them."""
        until = self._proven.get(user.session)
        return user.kind == "outside" or (until is not None and self._now() < until)

    def prove(self, user: User, code: str, address: str) -> None:
        """Check a code of the second factor. Raises Refused, Wait, BadJournal, BadStore."""
        if wait := self._codes.begin(user.name, address):
            raise Wait(wait)
        if not self.users.use_code(user.name, code):
            self.actions.note(user.name, user.role, "code.failed", "", {"address": address})
            raise Refused
        self._codes.passed(user.name, address)
        self._proven[user.session] = self._now() + PROVEN
        self._proven.move_to_end(user.session)
        if len(self._proven) > MOST_PROVEN:
            self._proven.popitem(last=False)

    def who(self, request: Request) -> User | None:
        """The user of the request's cookie. A stream that reconnects by itself does not prolong the session.

        Reading works also when the store cannot be written.
        """
        return self._who(request, used=request.headers.get("accept") != "text/event-stream")

    def goes_on(self, request: Request, user: User) -> bool:
        """Whether the session or token of an open stream is still valid for the same user. Called at intervals.

        It compares the secret: a replaced token of a screen keeps its name.
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
        """Whether the request may read /metrics: if open, with a bearer token or as a user, both for all tables."""
        if self.config.metrics == "open":
            return True
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            token = self.users.token(secret.strip())
            return token is not None and not token.tables
        user = self.who(request)
        return user is not None and may(user.role, "look") and not user.tables

    def let_in(self, response: Response, secret: str, *, seconds: int | None = None) -> None:
        """Set the cookie until the browser is closed, or for `seconds`."""
        response.set_cookie(
            self.cookie, secret, max_age=seconds, path="/", secure=self.secure, httponly=True, samesite="strict"
        )

    def let_out(self, response: Response) -> None:
        """Delete the cookie."""
        response.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")


def role_of(text: str) -> Role | None:
    return next((role for role in ROLES if role == text), None)


def clean(text: str) -> str:
    """Unverified text, shortened for a key and the journal."""
    return text.encode(errors="replace").decode()[:64]


def address_of(request: Request) -> str:
    """The address of the browser, or of the proxy in front of the console."""
    return request.client.host if request.client else ""


def of_the_same_origin(request: Request, url: str = "") -> bool:
    """Whether a form comes from one of our pages. `url` is the public address, where it differs from Host.

    Browsers send Origin or Sec-Fetch-Site with a POST, and no page can forge them. A request without both is refused.
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
    """A path of this site for a redirect; never another site."""
    return to if re.fullmatch(r"/(?![/\\])[!-~]*", to) else "/"


def home(console: Console, role: str, tables: tuple[str, ...]) -> str:
    """The start page of a role: for a dealer the first of their tables with a dealer's page."""
    if may(role, "look"):
        return "/"
    if not may(role, "deal"):
        return "/account"
    pages = [one for one in console.dealer if one in tables or not tables]
    return f"/dealer/{pages[0]}" if pages else "/account"


def agent_of(request: Request) -> str:
    """The User-Agent of the request."""
    return request.headers.get("user-agent", "")
