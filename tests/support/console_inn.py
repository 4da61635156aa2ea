"""A console with its pages and browsers that come to it, for several test files. Time is handed in."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from daemon.config.model import parse
from daemon.console.app import ConsoleProcess, make_app
from daemon.console.auth.users import ROLES, By, Hashed, Role, _scrypt
from daemon.console.site.actions import read_actions
from daemon.console.site.store import Store
from daemon.journal.store import Journal

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BY = By("root", "system")
PASSWORD = "twelve chars and more"
NEW = "another dozen of chars"
ORIGIN = {"origin": "http://pit.test", "sec-fetch-site": "same-origin"}
CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-1"
[console]
{console}
[[table]]
name = "bac-1"
[[table]]
name = "bac-2"
"""


def cheap(password: str) -> Hashed:
    """The same with parameters that take no time."""
    salt = b"salt of a test.."
    return Hashed(2, 8, 1, salt, _scrypt(password, 2, 8, 1, salt))


class Clock:
    """Time as a test hands it in."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def on(self, **passed: float) -> None:
        self.now += timedelta(**passed)


class Inn:
    """A console with its pages, and browsers that come to it."""

    def __init__(self, folder: Path, console: str = "") -> None:
        self.clock = Clock()
        self.store = Store(folder / "console.db")
        self.journal = Journal(folder / "journal.db")
        self.house = ConsoleProcess(parse(CONFIG.format(console=console)), self.store, self.journal, self.clock)
        self.access = self.house.access
        self.users = self.access.users
        self.app = make_app(self.house)
        for role in ROLES:
            self.users.add(BY, role[:3], role, (), cheap(PASSWORD))

    def browser(self, secret: str = "", address: str = "10.0.0.7", base: str = "http://pit.test") -> httpx.AsyncClient:
        cookies = httpx.Cookies()
        if secret:
            cookies.set(self.access.cookie, secret, domain="pit.test", path="/")
        transport = httpx.ASGITransport(self.app, client=(address, 4711))
        return httpx.AsyncClient(transport=transport, base_url=base, cookies=cookies, headers={"accept-language": "en"})

    def as_(self, role: Role) -> httpx.AsyncClient:
        """A browser of somebody who came in."""
        return self.browser(self.users.begin(role[:3], "10.0.0.7", "browser"))

    def said(self) -> list[tuple[str, str, str]]:
        """The log of actions, the oldest first, without how the test began."""
        found = reversed(read_actions(self.journal.path, 1000))
        return [(one.user, one.action, one.target) for one in found if one.user != "root"]

    def close(self) -> None:
        self.house.close()
        self.journal.close()
        self.store.close()


async def post(browser: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    return await browser.post(path, data=form, headers=ORIGIN)


async def log_in(browser: httpx.AsyncClient, name: str, password: str = PASSWORD, **form: str) -> httpx.Response:
    return await post(browser, "/login", name=name, password=password, **form)


def text(response: httpx.Response) -> str:
    """What a person reads."""
    main = response.text.partition("<main")[2]
    return " ".join(re.sub(r"<[^>]*>", " ", main).split())
