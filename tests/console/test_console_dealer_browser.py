"""The pages of the dealer, of a trace and of alerts in a real browser: an edge and the console, no broker, no rules."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By as Find
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from daemon.config.model import Config, parse
from daemon.console import app as app_module
from daemon.console.app import ConsoleProcess, serve
from daemon.console.auth.users import By, Hashed, _scrypt
from daemon.console.dealer.keys import KEYS, Key
from daemon.edge.edge import Edge
from daemon.journal.store import Journal
from protocols import bee_tek_shoe
from protocols.contract.documents import Alert, TraceLine
from simulators.lab.broker import free_port

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        shutil.which("chromium") is None or shutil.which("chromedriver") is None, reason="no Chromium on this computer"
    ),
]
CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-1"
journal = "{path}/edge.db"
[rules]
journal = "{path}/rules.db"
[mqtt]
port = 1
[console]
port = 0
store = "{path}/console.db"
journal = "{path}/actions.db"
[console.dealer]
cus-1 = "127.0.0.1:{port}"
[[table]]
name = "cus-1"
ruleset = "macau.cussec"
[[table.device]]
name = "page-1"
driver = "fdl_console"
url = "tcp://127.0.0.1:{port}"
"""
# When a second stream has heard of line 5, so has the page's own.
HEARD = """
const done = arguments[0], source = new EventSource(location.pathname + "/stream");
source.onmessage = (message) => {
  if (JSON.parse(message.data).lines.some((line) => line.n === 5)) { source.close(); done(true); }
};
"""
PASSWORD = "twelve chars and more"


class Floor:
    """A console that is served, an edge that can be killed, a browser."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.config: Config = parse(config.format(path=folder, port=free_port(self)))
        self.house: ConsoleProcess
        self.port = 0
        self._edge: asyncio.Task[None] | None = None
        self.journal: Journal

    def start_edge(self) -> None:
        self.journal = Journal(self.folder / "edge.db")
        self._edge = asyncio.create_task(Edge(self.config, self.journal).run())

    async def kill_edge(self) -> None:
        if self._edge is not None:
            self._edge.cancel()
            await asyncio.wait([self._edge])
            self.journal.close()
            self._edge = None

    def told(self) -> list[str]:
        rows = self.journal.range("cus-1", 1, 1000)
        return [row.type for row in rows if not row.type.startswith("device.")]


@contextlib.asynccontextmanager
async def running(folder: Path, monkeypatch: pytest.MonkeyPatch, config: str = CONFIG) -> AsyncIterator[Floor]:
    floor = Floor(folder, config)
    made: list[ConsoleProcess] = []
    real = ConsoleProcess.__init__

    def init(house: ConsoleProcess, *words: Any, **more: Any) -> None:
        real(house, *words, **more)
        made.append(house)

    monkeypatch.setattr(app_module.ConsoleProcess, "__init__", init)
    listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    journal = Journal(folder / "actions.db")
    serving = asyncio.create_task(serve(floor.config, journal, told=listening.set_result))
    floor.start_edge()
    try:
        floor.port = await listening
        [floor.house] = made
        yield floor
    finally:
        await floor.kill_edge()
        serving.cancel()
        await asyncio.wait([serving])
        journal.close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1280,1000",
        f"--user-data-dir={tmp_path}/chromium",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    one = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield one
    finally:
        one.quit()


async def until(come: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(come):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)


T = TypeVar("T")


def steady(act: Callable[[], T]) -> T:
    """`act`, again where a fragment was replaced between finding something in it and touching it."""
    for _ in range(20):
        with contextlib.suppress(StaleElementReferenceException):
            return act()
    return act()


def come_in(floor: Floor, browser: webdriver.Chrome, role: Any, path: str) -> Callable[[], None]:
    salt = b"salt of a test.."
    floor.house.access.users.add(
        By("root", "system"), role[:3], role, (), Hashed(2, 8, 1, salt, _scrypt(PASSWORD, 2, 8, 1, salt))
    )
    cookie = {"name": floor.house.access.cookie, "value": floor.house.access.users.begin(role[:3], "", "")}

    def go() -> None:
        browser.get(f"http://127.0.0.1:{floor.port}/static/icon.svg")
        browser.add_cookie(cookie)
        browser.get(f"http://127.0.0.1:{floor.port}{path}")

    return go


async def found(browser: webdriver.Chrome, css: str) -> WebElement:
    """The element there, asked for beside the loop: the console is served in it, and a browser may wait for that."""
    return await asyncio.to_thread(browser.find_element, Find.CSS_SELECTOR, css)


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the browser refused or could not run; not that a request found nobody."""
    return [one["message"] for one in browser.get_log("browser") if "ERR_" not in one["message"]]  # type: ignore[no-untyped-call]


async def test_a_dealer_presses_keys_without_a_broker(
    tmp_path: Path, browser: webdriver.Chrome, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as floor:
        await asyncio.to_thread(come_in(floor, browser, "dealer", "/dealer/cus-1"))

        def form(key: str) -> WebElement:
            return browser.find_element(Find.CSS_SELECTOR, f'form[action$="/key/{key}"]')

        def said(key: str) -> str:
            return form(key).find_element(Find.CSS_SELECTOR, "[data-said]").text

        def tap(key: str, times: int = 1) -> None:
            button = form(key).find_element(Find.TAG_NAME, "button")
            assert button.size["height"] >= 44
            # At once: the driver may be slower than a finger.
            browser.execute_script("for (let n = 0; n < arguments[1]; n += 1) arguments[0].click()", button, times)

        await until((await found(browser, "[data-there]")).is_displayed)
        await asyncio.to_thread(tap, "bell", 3)
        await until(lambda: said("bell") == "kept by the edge")
        assert floor.told() == ["bets.closed"]

        def enter(faces: str) -> None:
            for die, face in enumerate(faces, 1):
                form("dice").find_element(Find.CSS_SELECTOR, f'[name=face_{die}][value="{face}"]').click()
            form("dice").find_element(Find.CSS_SELECTOR, "button").click()

        await asyncio.to_thread(enter, "255")
        await until(lambda: said("dice") == "once more, please")
        await until(lambda: form("dice").get_attribute("data-busy") is None)
        tapped = 'form[action$="/key/dice"] .dice :checked'
        assert await asyncio.to_thread(browser.find_elements, Find.CSS_SELECTOR, tapped) == []
        await asyncio.to_thread(enter, "255")
        await until(lambda: said("dice") == "kept by the edge")

        await floor.kill_edge()
        await until((await found(browser, "[data-away]")).is_displayed)
        await asyncio.to_thread(tap, "paid")
        await until(lambda: said("paid") == "kept here, not recorded yet")
        floor.start_edge()
        await until(lambda: said("paid") == "kept by the edge")
        assert floor.told() == ["bets.closed", "dice.read", "round.paid"]

        def void() -> None:
            browser.find_element(Find.CSS_SELECTOR, "#key-void summary").click()
            tap("void")

        await asyncio.to_thread(void)
        async with asyncio.timeout(20):
            while floor.told()[-1] != "round.voided":  # noqa: ASYNC110 - in another task
                await asyncio.sleep(0.02)
        assert await asyncio.to_thread(complaints, browser) == []


# What is filled in for each field, and how often a key is pressed: a value that is entered twice counts once.
CENTRE = "(arguments[0].closest('details') || arguments[0]).scrollIntoView({block: 'center'})"
FILLED = {
    "bet": {"bet": "fan:2"},
    "seat": {"seat": "3"},
    "seat_or_none": {"seat": "3"},
    "decks": {"decks": "8"},
    "faces": {"faces": "2 5"},
    "owner": {"owner": "seat_3"},
    "card": {"rank": "A", "suit": "S"},
    "hands": {"hands": "player 9D KC"},
    "pocket_or_none": {"pocket": "17"},
    "throw_reason": {"throw_reason": "0"},
    "action": {"action": "hit"},
}
BUTTONS = {
    **dict.fromkeys(("seat_opened", "seat_closed", "hand_passed"), '[name=seat][value="3"]'),
    "ball": '[name=pocket][value="17"]',
    "buttons": '[name=count][value="2"]',
    "bet_back": "[formaction]",
}
"""The button that says more than that the key is pressed."""
SINGLE = ("seat_opened", "seat_closed", "hand_passed")
"""One button a seat."""
TWICE = ("dice", "throw", "buttons", "ball")


async def test_each_key_reaches_the_journal_by_clicks(
    tmp_path: Path, browser: webdriver.Chrome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without a game has all keys of all games."""
    config = CONFIG.replace('ruleset = "macau.cussec"\n', "")
    async with running(tmp_path, monkeypatch, config) as floor:
        await asyncio.to_thread(come_in(floor, browser, "supervisor", "/dealer/cus-1"))
        await until((await found(browser, "[data-there]")).is_displayed)

        def form(key: Key) -> str:
            return f'form[data-key="{"bet" if key.name == "bet_back" else key.name}"]'

        def fill(one: WebElement, name: str, value: str) -> None:
            field = one.find_element(Find.NAME, name)
            if field.tag_name == "select":
                field.find_element(Find.CSS_SELECTOR, f'option[value="{value}"]').click()
            elif field.get_attribute("type") == "radio":
                one.find_element(Find.CSS_SELECTOR, f'[name={name}][value="{value}"]').click()
            else:
                field.clear()
                field.send_keys(value)

        def press(key: Key) -> None:
            one = browser.find_element(Find.CSS_SELECTOR, form(key))
            browser.execute_script(CENTRE, one)
            for summary in browser.find_elements(Find.CSS_SELECTOR, f"#key-{key.name} > summary"):
                summary.click()
            for fields in [FILLED[field] for field in key.fields if field in FILLED and key.name not in SINGLE]:
                for name, value in fields.items():
                    fill(one, name, value)
            if key.name == "bet":
                one.find_element(Find.CSS_SELECTOR, '[data-chip="1000"]').click()
            button = BUTTONS.get(key.name, ":not([type=button], [formaction])")
            one.find_element(Find.CSS_SELECTOR, f"button{button}").click()

        def ready(key: Key) -> bool:
            return browser.find_element(Find.CSS_SELECTOR, form(key)).get_attribute("data-busy") is None

        def said(key: Key) -> str:
            one = browser.find_element(Find.CSS_SELECTOR, form(key) + " [data-said]")
            return one.get_attribute("textContent") or ""

        for key in KEYS.values():
            for _ in range(2 if key.name in TWICE else 1):
                await asyncio.to_thread(press, key)
                await until(lambda key=key: ready(key))  # type: ignore[misc]
            await until(lambda key=key: said(key) == "kept by the edge")  # type: ignore[misc]
        kept = [one for one in floor.told() if one != "supervisor.keyed"]
        assert len(kept) == len(KEYS)
        assert len(set(kept)) == len(KEYS)
        acted = next(row for row in floor.journal.range("cus-1", 1, 1000) if row.type == "seat.acted")
        assert msgspec.json.decode(acted.data) == {"seat": 3, "action": "hit"}
        assert await asyncio.to_thread(complaints, browser) == []


async def test_changed_value_after_no_answer_is_another_press(
    tmp_path: Path, browser: webdriver.Chrome, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as floor:
        # Answers are lost, and the stream says nothing of keys.
        monkeypatch.setattr(floor.house.dealers.units["cus-1"], "last", lambda _most: [])
        await asyncio.to_thread(come_in(floor, browser, "dealer", "/dealer/cus-1"))
        lost = """
            const real = window.fetch, now = performance.now.bind(performance), later = window.setTimeout;
            performance.now = () => 20 * now(); // a key gives up after ten seconds
            window.setTimeout = (what, milliseconds) => later(what, milliseconds / 20);
            window.cut = true;
            window.fetch = async (...words) => {
              const answer = await real(...words);
              if (window.cut) throw new TypeError("cut");
              return answer;
            };
        """
        await asyncio.to_thread(browser.execute_script, lost)
        place = await found(browser, "#key-void")

        def said() -> str:
            return place.find_element(Find.CSS_SELECTOR, "[data-said]").text

        def void(reason: str) -> None:
            if place.get_attribute("open") is None:
                place.find_element(Find.TAG_NAME, "summary").click()
            place.find_element(Find.CSS_SELECTOR, f'option[value="{reason}"]').click()
            place.find_element(Find.TAG_NAME, "button").click()

        for _ in range(2):  # unchanged it is the same press
            await asyncio.to_thread(void, "1")
            await until(lambda: said().startswith("No answer"))
            await until(lambda: place.find_element(Find.TAG_NAME, "form").get_attribute("data-busy") is None)
        await asyncio.to_thread(browser.execute_script, "window.cut = false")
        await asyncio.to_thread(void, "2")
        async with asyncio.timeout(20):
            while len(floor.told()) < 2:  # noqa: ASYNC110 - in another task
                await asyncio.sleep(0.02)
        rows = [msgspec.json.decode(row.data) for row in floor.journal.range("cus-1", 1, 1000)]
        assert [row["reason"] for row in rows if "reason" in row] == ["dealing_error", "equipment_fault"]


async def test_a_trace_is_shown_filtered_and_paused(
    tmp_path: Path, browser: webdriver.Chrome, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as floor:
        floor.house.site.devices["cus-1", "page-1"].meta = msgspec.structs.replace(
            floor.house.site.devices["cus-1", "page-1"].meta, driver="bee_tek_shoe"
        )
        await asyncio.to_thread(come_in(floor, browser, "technician", "/table/cus-1/device/page-1/trace"))

        def pass_(n: int, card: str) -> None:
            data = bee_tek_shoe.encode(bee_tek_shoe.Drawn(card))
            frame = TraceLine(datetime.now(UTC), "in", data.hex(), n, 0)
            for hear in floor.house.site.on_trace:
                hear("cus-1", "page-1", msgspec.json.encode(frame))

        def shown() -> list[str]:
            rows = browser.find_elements(Find.CSS_SELECTOR, "[data-lines] tr")
            return [row.text for row in rows if row.is_displayed()]

        pass_(1, "KH")
        pass_(4, "9D")
        await until(lambda: len(shown()) == 3)
        rows = await asyncio.to_thread(shown)
        assert "drawn: card KH" in rows[0]
        assert "Pieces missing here: 2" in rows[1]

        words = await found(browser, "[data-filter]")
        await asyncio.to_thread(words.send_keys, "card 9d")
        await until(lambda: len(shown()) == 1)
        await asyncio.to_thread(words.send_keys, Keys.BACKSPACE * 7)
        await until(lambda: len(shown()) == 3)
        pause = await found(browser, "[data-pause]")
        await asyncio.to_thread(pause.click)
        pass_(5, "AS")
        assert await asyncio.to_thread(browser.execute_async_script, HEARD)
        assert len(await asyncio.to_thread(shown)) == 3
        await asyncio.to_thread(pause.click)
        await until(lambda: len(shown()) == 4)
        assert await asyncio.to_thread(complaints, browser) == []


async def test_a_new_alert_waits_for_who_writes_a_note_and_no_longer(
    tmp_path: Path, browser: webdriver.Chrome, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as floor:

        def begin(name: str) -> int:
            key = "cus-1", name
            alert = Alert(code=name, text=f"the {name} is stuck", remedy="free it", severity="error", device="page-1")
            floor.house.incidents.on_alert(key, alert, floor.house.now())
            floor.house.watch.look()
            one = floor.house.incidents.of(key)
            assert one is not None
            return one.n

        n = begin("first")
        await asyncio.to_thread(come_in(floor, browser, "technician", "/alerts"))

        def note() -> WebElement:
            return browser.find_element(Find.CSS_SELECTOR, f"#note-{n}")

        def shown(text: str) -> bool:
            # In one step: the fragment may be replaced at any moment.
            return text in browser.execute_script("return document.querySelector('[data-live=\"alerts\"]').innerText")

        def waits() -> bool:
            return steady(lambda: browser.find_element(Find.CSS_SELECTOR, "#waits").is_displayed())

        fold = f"document.querySelector('#alert-{n} summary').click()"
        await asyncio.to_thread(browser.execute_script, fold)
        await asyncio.to_thread(steady, lambda: note().click())
        begin("second")
        await until(lambda: shown("the second is stuck"))  # nothing is written yet
        focused = await asyncio.to_thread(steady, lambda: browser.switch_to.active_element.get_attribute("id"))
        assert focused == f"note-{n}"
        await asyncio.to_thread(steady, lambda: note().send_keys("on my"))
        begin("third")
        await until(waits)
        await asyncio.to_thread(lambda: note().send_keys(" way"))
        assert not await asyncio.to_thread(shown, "the third is stuck")
        await asyncio.to_thread(lambda: browser.find_element(Find.CSS_SELECTOR, "h1").click())
        await until(lambda: shown("the third is stuck") and not waits())
        assert await asyncio.to_thread(steady, lambda: note().get_attribute("value")) == "on my way"
        button = f'form[action="/alerts/{n}/acknowledge"] button'
        await asyncio.to_thread(steady, lambda: browser.find_element(Find.CSS_SELECTOR, button).click())
        await until(lambda: shown("on my way"))
        assert floor.house.incidents.of(("cus-1", "first")).state == "acknowledged"  # type: ignore[union-attr]
        assert await asyncio.to_thread(complaints, browser) == []
