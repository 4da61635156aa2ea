"""A small pit with everything real, for tests that look at it with a browser: broker, edge, rules and console run.

It lives in a thread of its own, so that a test may wait for a browser. The pit is played at a pace; devices are broken
and mended from the test.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar
from unittest.mock import patch

import msgspec
from helpers import PATIENCE
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.alert import Alert
from selenium.webdriver.common.by import By as Find
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import alert_is_present
from selenium.webdriver.support.wait import WebDriverWait

from daemon.broker.mac_keys import make_mac_keys
from daemon.config.model import parse
from daemon.console.auth.users import By, Role, Users, hash_password
from daemon.console.site.store import Store
from daemon.read_model import SiteState
from simulators.clock import Pace
from simulators.lab.broker import Broker
from simulators.lab.demo import Child
from simulators.lab.pit import EDGE, SITE, Pit

T = TypeVar("T")

KINDS = ("rou", "cus", "bac", "stud")
PASSWORD = "a felt of many colours"
PEOPLE: dict[str, Role] = {
    "vera": "viewer",
    "dora": "dealer",
    "tess": "technician",
    "sam": "supervisor",
    "ines": "inspector",
    "ada": "administrator",
    "mona": "manager",
}
# Seconds until all processes of a floor are there.
OPENS_WITHIN_S = 180.0
# A page on its way to what a test waits for.
NOT_YET = (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)


FLOOR_PATIENCE_S = 3 * PATIENCE
"""How long a test waits for one state of a pit: its five processes and a browser share a busy computer."""


class InAThread(ABC):
    """Something that lives in a thread of its own, so that a test may wait for a browser."""

    def __init__(self, name: str) -> None:
        """Nothing runs yet."""
        self.port = 0
        self._ready: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._thread = threading.Thread(target=lambda: asyncio.run(self._whole()), name=name)

    @property
    def url(self) -> str:
        """Where the console is."""
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Return when all of it is there."""
        self._thread.start()
        self._ready.result(OPENS_WITHIN_S + PATIENCE)

    def close(self) -> None:
        """End all of it."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(OPENS_WITHIN_S)
        assert not self._thread.is_alive()

    def do(self, work: Callable[[], T]) -> T:
        """In the thread itself."""

        async def body() -> T:
            return work()

        return self.wait(body())

    def wait(self, body: Coroutine[Any, Any, T]) -> T:
        """Something there that takes time."""
        return asyncio.run_coroutine_threadsafe(body, self._loop).result(FLOOR_PATIENCE_S + PATIENCE)

    async def _whole(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        try:
            await self._live()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    @abstractmethod
    async def _live(self) -> None:
        """Set `_ready` once all is there, and live until `_over`."""


L = TypeVar("L", bound=InAThread)


@contextmanager
def opened(one: L) -> Iterator[L]:
    """It lives for a while."""
    one.open()
    try:
        yield one
    finally:
        one.close()


class Floor(InAThread):
    """The pit and its processes, from `open` to `close`."""

    def __init__(
        self,
        directory: Path,
        *,
        kinds: tuple[str, ...] = KINDS,
        speed: float = 10,
        dealers: tuple[str, ...] = (),
        console: str = "",
        luck: float = 0.0,
    ) -> None:
        """`dealers`: the tables that have a dealer's page beside their console. `console`: more lines of [console]."""
        super().__init__("floor")
        self._settings = console
        self.directory = directory
        self.pace: Pace
        self._speed = speed
        self._dealers = dealers
        self.pit = Pit(directory, 5, kinds=kinds, speed=speed, luck=luck)
        self.broker = Broker(directory)
        self.config = directory / "feltd.toml"
        self.edge, self.rules, self.console = (Child(name, self.config) for name in ("edge", "rules", "console"))
        self.jackpots = Child("jackpots", self.config)
        self.site_view: SiteState
        self._broken: dict[tuple[str, str], Any] = {}

    def open(self) -> None:
        """Return when every device of the pit is online and the console serves."""
        self._users()
        super().open()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the floor's own picture shows it. Raises AssertionError with the state of the tables."""

        async def body() -> None:
            async with asyncio.timeout(FLOOR_PATIENCE_S):
                await self.site_view.until(condition)

        try:
            self.wait(body())
        except TimeoutError as error:
            tables = {name: (one.phase, one.round, one.detail) for name, one in self.site_view.tables.items()}
            raise AssertionError(tables) from error

    def breaks(self, table: str, device: str, fault: str) -> None:
        """Something happens to a simulated device, and no dealer or supervisor mends it before `repairs`."""
        one = self.pit.sockets[table][device]
        self._broken[table, device] = patch.object(one.device, "repair")
        self._broken[table, device].start()
        self.do(lambda: one.inject(fault))

    def repairs(self, table: str, device: str) -> None:
        """Somebody puts right what `breaks` broke."""
        one = self.pit.sockets[table][device]
        self._broken.pop((table, device)).stop()

        def mend() -> None:
            one.device.repair(self.pace.now())
            one.stir()

        self.do(mend)

    @contextmanager
    def without_broker(self) -> Iterator[None]:
        """The broker was killed, and is started again at the end only: a page may be slow to show that it is gone."""
        start, back = self.broker.start, self.do(asyncio.Event)

        async def held() -> None:
            await back.wait()
            await start()

        with patch.object(self.broker, "start", held):
            self.wait(self.broker.kill())
            try:
                yield
            finally:
                self.do(back.set)

    def signals(self, child: Child, number: int) -> None:
        """Something happens to a process."""
        assert child.process is not None
        child.process.send_signal(number)

    def secret(self, name: str) -> str:
        """The cookie of a new session of somebody."""
        store = Store(self.directory / "console.db")
        try:
            return Users(store, _now).begin(name, "127.0.0.1", "test")
        finally:
            store.close()

    def token(self, name: str, tables: tuple[str, ...] = ()) -> str:
        """The token of a new screen on the wall."""
        store = Store(self.directory / "console.db")
        try:
            return Users(store, _now).add_token(By("test", "system"), name, "viewer", tables)
        finally:
            store.close()

    def _users(self) -> None:
        store = Store(self.directory / "console.db")
        try:
            users, hashed = Users(store, _now), hash_password(PASSWORD)
            for name, role in PEOPLE.items():
                users.add(By("test", "system"), name, role, (), hashed)
        finally:
            store.close()

    async def _live(self) -> None:
        self.pace = Pace(self._speed)
        await self.broker.start()
        try:
            self.pit.open(self.pace, self.broker.port, self.broker.version)
            console = f'store = "{self.directory}/console.db"\njournal = "{self.directory}/console-journal.db"'
            text = f"{self.pit.config(self.broker.port, self.broker.version)}\n[console]\nport = 0\n{console}\n"
            text = _with_dealers(f"{text}{self._settings}\n", self._dealers, self.directory)
            make_mac_keys(self.directory, EDGE, SITE)
            self.config.write_text(text, encoding="utf-8")
            mqtt = parse(self.config.read_text(encoding="utf-8")).mqtt
            self.site_view = SiteState(mqtt, SITE, from_start=True)
            self.site_view.on_result.append(self.pit.heard)
            self.site_view.on_event.append(self.pit.saw)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(body)
                    for body in (
                        self.pit.live(),
                        self.pit.serve(mqtt),
                        self.site_view.run(),
                        self.broker.keep(),
                        self.edge.keep(),
                        self.rules.keep(),
                        self.console.keep(),
                        *((self.jackpots.keep(),) if self.pit.pools else ()),
                        self.pit.deal(self.pace, 10**9, self.site_view),
                    )
                ]
                try:
                    await self._until_ready()
                    self._ready.set_result(None)
                    await self._over.wait()
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            await self.broker.stop()

    async def _until_ready(self) -> None:
        async with asyncio.timeout(OPENS_WITHIN_S):
            names = {f"{table}/{device}" for table, one in self.pit.tables.items() for device in one.devices}
            await self.site_view.until(lambda: names <= self._online())
            while not (port := self._console_port()):  # noqa: ASYNC110 - a process says it in its log
                await asyncio.sleep(0.05)
        self.port = port

    def _online(self) -> set[str]:
        views = self.site_view.tables.items()
        return {f"{table}/{device}" for table, view in views for device, there in view.online.items() if there}

    def _console_port(self) -> int:
        log = self.directory / "console.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        started = [msgspec.json.decode(line) for line in lines if '"console.started"' in line]
        return int(started[-1]["port"]) if started else 0


def _now() -> datetime:
    return datetime.now(UTC)


def _with_dealers(text: str, tables: tuple[str, ...], folder: Path) -> str:
    """These tables have one more device, behind the console's page for their dealer."""
    pages = "[console.dealer]\n" if tables else ""
    for table in tables:
        address = f"{folder}/{table}.sock"
        device = f'[[table.device]]\nname = "page-1"\ndriver = "fdl_console"\nurl = "unix://{address}"\n\n'
        before, name, after = text.partition(f'[[table]]\nname = "{table}"')
        end = min(at for one in ("[[table]]", "[jackpots]", "[console]") if (at := after.find(one)) >= 0)
        text = f"{before}{name}{after[:end]}{device}{after[end:]}"
        pages += f'{table} = "{address}"\n'
    return text + pages


class Served(Protocol):
    """A console that serves pages, and the sessions of its users."""

    @property
    def url(self) -> str:
        """Where it is."""
        ...

    def secret(self, name: str) -> str:
        """The cookie of a new session of somebody."""
        ...


class Browser:
    """A real browser, and what somebody does with it."""

    def __init__(self, floor: Served, size: tuple[int, int] = (1280, 900)) -> None:
        """Nobody has come in yet."""
        self.floor = floor
        options = webdriver.ChromeOptions()
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en"):
            options.add_argument(option)
        options.add_argument(f"--window-size={size[0]},{size[1]}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        self.driver.set_script_timeout(2 * PATIENCE)

    def close(self) -> None:
        """End it."""
        self.driver.quit()

    def come_in(self, name: str, *, lang: str = "en", theme: str = "light") -> None:
        """As somebody who logged in."""
        self.driver.get(f"{self.floor.url}/static/icon.svg")
        self.driver.delete_all_cookies()
        for key, value in (("feltd", self.floor.secret(name)), ("lang", lang), ("theme", theme)):
            self.driver.add_cookie({"name": key, "value": value})

    def go(self, path: str) -> None:
        """Open a page of the console."""
        self.driver.get(self.floor.url + path)

    def find(self, css: str) -> WebElement:
        """The first element, at once."""
        return self.driver.find_element(Find.CSS_SELECTOR, css)

    def text(self, css: str) -> str:
        """What stands in all such elements; "" where there is none."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText).join('\\n')"
        return str(self.driver.execute_script(script, css))

    def until(self, css: str, words: str = "", *, gone: bool = False, patience: float = PATIENCE) -> None:
        """Wait until `words` stand in such an element, or do no longer."""
        try:
            self.when(lambda: (words in self.text(css) if words else self.there(css)) != gone, patience)
        except AssertionError as error:
            raise AssertionError(f"{css} {words!r} {'stays' if gone else 'is missing'}; {error}") from error

    def when(self, condition: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait until it is so. An element that was replaced while it was looked at is looked for again.

        Raises AssertionError with what the page shows instead.
        """
        try:
            WebDriverWait(self.driver, patience, 0.05, NOT_YET).until(lambda _: condition())
        except TimeoutException as error:
            raise AssertionError(f"{self.driver.current_url} shows: {self.text('main')[:1000]}") from error

    def press(self, css: str) -> None:
        """Press an element as soon as it is there, found and pressed in one step: a fragment may be replaced."""
        press = "const one = document.querySelector(arguments[0]); one?.click(); return one !== null"
        self.when(lambda: bool(self.driver.execute_script(press, css)))

    def follow(self, css: str, *, sure: bool = False) -> None:
        """Press what leads to another page or sends a form, and wait for the next page. `sure`: the page asks first."""
        with self.left():
            if sure:
                self.ask(css).accept()
            else:
                self.press(css)

    @contextmanager
    def left(self) -> Iterator[None]:
        """Wait at the end for the next page."""
        self.driver.execute_script("window.before = true")
        yield
        there = "return !window.before && document.readyState === 'complete'"
        self.when(lambda: bool(self.driver.execute_script(there)))

    def ask(self, css: str) -> Alert:
        """Press what the page asks about first, and return its question."""
        self.until(css)
        self.driver.execute_script("setTimeout(() => document.querySelector(arguments[0]).click())", css)
        WebDriverWait(self.driver, PATIENCE, 0.05).until(alert_is_present())
        return self.driver.switch_to.alert

    def tap(self, css: str, words: str = "") -> float:
        """Press an element, the first with `words`, as soon as a finger can; its height in pixels.

        It is shown and enabled then, and covered by nothing.
        """
        tap = (
            "const all = [...document.querySelectorAll(arguments[0])];"
            "const one = all.find((one) => one.innerText.includes(arguments[1]) && !one.matches(':disabled'));"
            "if (!one) return 0;"
            "one.scrollIntoView({block: 'center'});"
            "const box = one.getBoundingClientRect(), goal = one.closest('label') ?? one;"
            "const met = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);"
            "if (!met || !goal.contains(met)) return 0;"
            "const height = goal.getBoundingClientRect().height;"
            "one.click(); return height"
        )
        waiting = WebDriverWait(self.driver, PATIENCE, 0.05)
        return float(waiting.until(lambda _: self.driver.execute_script(tap, css, words)))

    def click(self, css: str) -> None:
        """Click with the pointer, for what a browser allows to a person only. Elsewhere use `press`."""
        self._once_possible(lambda: self.find(css).click())

    def write(self, css: str, text: str) -> None:
        """Write into a field as soon as it can be written into: what was pressed before may not have shown it yet."""
        self._once_possible(lambda: self.find(css).send_keys(text))

    def choose(self, css: str, value: str) -> None:
        """Choose from a list as a person does, in one step: keys that come slowly would choose something else."""
        choose = (
            "const one = document.querySelector(arguments[0]); if (!one) return false; one.value = arguments[1];"
            "for (const name of ['input', 'change']) one.dispatchEvent(new Event(name, {bubbles: true}));"
            "return true"
        )
        self.when(lambda: bool(self.driver.execute_script(choose, css, value)))

    def _once_possible(self, act: Callable[[], None]) -> None:
        def done() -> bool:
            act()
            return True

        self.when(done)

    def there(self, css: str) -> bool:
        """Whether there is such an element."""
        return bool(self.driver.find_elements(Find.CSS_SELECTOR, css))

    def complaints(self) -> list[str]:
        """What the browser itself found wrong since it was asked last: scripts, styles, policies, missing files."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


@contextmanager
def browser(floor: Served, size: tuple[int, int] = (1280, 900)) -> Iterator[Browser]:
    """A browser for a while."""
    one = Browser(floor, size)
    try:
        yield one
    finally:
        one.close()
