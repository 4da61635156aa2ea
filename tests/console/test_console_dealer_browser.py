"""The pages of the dealer, of a trace and of alerts in a real browser: an edge and the console, no broker, no rules."""

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from floor import Browser, InAThread, browser, opened
from selenium.webdriver.common.keys import Keys

from daemon.config.model import Config, parse
from daemon.console import app as app_module
from daemon.console.app import ConsoleProcess, serve
from daemon.console.auth.users import By, Hashed, Role, _scrypt
from daemon.console.dealer.keys import KEYS, Key
from daemon.edge.edge import Edge
from daemon.journal.rows import Row
from daemon.journal.store import Journal
from protocols import bee_tek_shoe
from protocols.contract.documents import Alert, TraceLine

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
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
cus-1 = "{path}/cus-1.sock"
[[table]]
name = "cus-1"
ruleset = "macau.cussec"
[[table.device]]
name = "page-1"
driver = "fdl_console"
url = "unix://{path}/cus-1.sock"
"""
# When a second stream has heard of line 5, so has the page's own.
HEARD = """
const done = arguments[0], source = new EventSource(location.pathname + "/stream");
source.onmessage = (message) => {
  if (JSON.parse(message.data).lines.some((line) => line.n === 5)) { source.close(); done(true); }
};
"""
PASSWORD = "twelve chars and more"
PEOPLE: dict[str, Role] = {"dora": "dealer", "sam": "supervisor", "tess": "technician"}


class Floor(InAThread):
    """A console that is served, and an edge that can be killed."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        super().__init__("dealer-page")
        self.folder = folder
        self.config: Config = parse(config.format(path=folder))
        self.house: ConsoleProcess
        self._edge: asyncio.Task[None]
        self._journal: Journal

    def secret(self, name: str) -> str:
        """The cookie of a new session of somebody."""
        return self.do(lambda: self.house.access.users.begin(name, "127.0.0.1", "test"))

    def start_edge(self) -> None:
        """The edge runs from now on."""
        self.do(self._start_edge)

    def kill_edge(self) -> None:
        """The edge is gone."""
        self.wait(self._kill_edge())

    def rows(self) -> list[Row]:
        """What the edge kept of the table, but what devices say of themselves."""
        rows = self.do(lambda: self._journal.range("cus-1", 1, 1000))
        return [row for row in rows if not row.type.startswith("device.")]

    def kept(self) -> list[str]:
        """The types of the events that the edge kept."""
        return [row.type for row in self.rows()]

    def _start_edge(self) -> None:
        self._journal = Journal(self.folder / "edge.db")
        self._edge = asyncio.create_task(Edge(self.config, self._journal).run())

    async def _kill_edge(self) -> None:
        self._edge.cancel()
        await asyncio.wait([self._edge])
        self._journal.close()

    async def _live(self) -> None:
        made: list[ConsoleProcess] = []

        def make(*words: Any, **more: Any) -> ConsoleProcess:
            made.append(ConsoleProcess(*words, **more))
            return made[-1]

        listening: asyncio.Future[int] = self._loop.create_future()
        with contextlib.closing(Journal(self.folder / "actions.db")) as actions:
            with patch.object(app_module, "ConsoleProcess", make):
                serving = asyncio.create_task(serve(self.config, actions, on_listening=listening.set_result))
                self.port = await listening
            [self.house] = made
            salt = b"salt of a test.."
            for name, role in PEOPLE.items():
                hashed = Hashed(2, 8, 1, salt, _scrypt(PASSWORD, 2, 8, 1, salt))
                self.house.access.users.add(By("root", "system"), name, role, (), hashed)
            self._start_edge()
            self._ready.set_result(None)
            await self._over.wait()
            await self._kill_edge()
            serving.cancel()
            await asyncio.wait([serving])


@contextlib.contextmanager
def looking(folder: Path, name: str, path: str, config: str = CONFIG) -> Iterator[tuple[Floor, Browser]]:
    """Somebody opens a page. The browser refuses nothing, and runs every script; a request may find nobody."""
    with opened(Floor(folder, config)) as floor, browser(floor, (1280, 1000)) as page:
        page.come_in(name)
        page.go(path)
        yield floor, page
        assert [one for one in page.complaints() if "ERR_" not in one] == []


# ---- what a dealer does at the page


def form(key: str) -> str:
    return f'form[data-key="{key}"]'


def says(page: Browser, key: str, text: str) -> None:
    """Wait until the answer stands at the key."""
    said = "return document.querySelector(arguments[0]).textContent"
    page.when(lambda: page.driver.execute_script(said, f"{form(key)} [data-said]").startswith(text))


def ready(page: Browser, key: str) -> None:
    """Wait until the key may be pressed again."""
    page.until(f"{form(key)}:not([data-busy])")


def enter(page: Browser, faces: str) -> None:
    """Enter three dice."""
    for die, face in enumerate(faces, 1):
        page.tap(f'{form("dice")} [name=face_{die}][value="{face}"]')
    page.tap(f"{form('dice')} button")


def fill(page: Browser, field: str, value: str) -> None:
    """Fill in a field, whatever its kind."""
    kind = page.driver.execute_script("return document.querySelector(arguments[0]).type", field)
    if kind == "select-one":
        page.choose(field, value)
    elif kind == "radio":
        page.tap(f'{field}[value="{value}"]')
    else:
        page.find(field).clear()
        page.write(field, value)


def test_a_dealer_presses_keys_without_a_broker(tmp_path: Path) -> None:
    with looking(tmp_path, "dora", "/dealer/cus-1") as (floor, page):
        page.until("[data-there]:not([hidden])")
        for key in ("bell", "paid"):
            assert page.find(f"{form(key)} button").size["height"] >= 44
        # At once: the driver may be slower than a finger.
        thrice = "for (let n = 0; n < 3; n += 1) document.querySelector(arguments[0]).click()"
        page.driver.execute_script(thrice, f"{form('bell')} button")
        says(page, "bell", "recorded")
        assert floor.kept() == ["bets.closed"]

        enter(page, "255")
        says(page, "dice", "enter it once more")
        ready(page, "dice")
        assert not page.there(f"{form('dice')} .dice :checked")
        enter(page, "255")
        says(page, "dice", "recorded")

        floor.kill_edge()
        page.until("[data-away]:not([hidden])")
        page.tap(f"{form('paid')} button")
        says(page, "paid", "stored here, not recorded yet")
        floor.start_edge()
        says(page, "paid", "recorded")
        assert floor.kept() == ["bets.closed", "dice.read", "round.paid"]

        page.tap("#key-void summary")
        page.tap(f"{form('void')} button")
        page.when(lambda: floor.kept()[-1] == "round.voided")

        # What another build stored in another form takes no page down, and an open page goes on.
        floor.do(lambda: floor.house.context.store.db.execute("UPDATE dealer_press SET detail = '5: spilt'"))
        page.tap(f"{form('bell')} button")
        page.when(lambda: floor.kept()[-1] == "bets.closed")
        says(page, "bell", "recorded")
        page.driver.refresh()
        page.until("[data-last] tr", "Void")


# What is filled in for each field, and how often a key is pressed: a value that is entered twice counts once.
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


def test_each_key_reaches_the_journal_by_clicks(tmp_path: Path) -> None:
    """A table without a game has all keys of all games."""
    config = CONFIG.replace('ruleset = "macau.cussec"\n', "")

    def press(page: Browser, key: Key, place: str) -> None:
        if page.there(f"#key-{key.name} > summary"):
            page.tap(f"#key-{key.name} > summary")
        for fields in [FILLED[field] for field in key.fields if field in FILLED and key.name not in SINGLE]:
            for name, value in fields.items():
                fill(page, f"{place} [name={name}]", value)
        if key.name == "bet":
            page.tap(f'{place} [data-chip="1000"]')
        page.tap(f"{place} button{BUTTONS.get(key.name, ':not([type=button], [formaction])')}")

    with looking(tmp_path, "sam", "/dealer/cus-1", config) as (floor, page):
        page.until("[data-there]:not([hidden])")
        pressed = [key for key in KEYS.values() if key.name != "showdown"]  # it has the hands that a result lacks
        for key in pressed:
            name = "bet" if key.name == "bet_back" else key.name
            for _ in range(2 if key.name in TWICE else 1):
                press(page, key, form(name))
                ready(page, name)
            says(page, name, "recorded")
        kept = [one for one in floor.kept() if one != "supervisor.keyed"]
        assert len(kept) == len(pressed)
        assert len(set(kept)) == len(pressed) - 1  # a reversed fold is an action of a seat, too
        acted = next(row for row in floor.rows() if row.type == "seat.acted")
        said = msgspec.json.decode(acted.data)
        said.pop("age_ms", None)  # the page was slow to say it
        assert said == {"seat": 3, "action": "hit"}


def test_changed_value_after_no_answer_is_another_press(tmp_path: Path) -> None:
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

    def void(page: Browser, reason: str) -> None:
        if not page.there("#key-void[open]"):
            page.tap("#key-void summary")
        page.choose("#key-void [name=reason]", reason)
        page.tap(f"{form('void')} button")

    with looking(tmp_path, "dora", "/dealer/cus-1") as (floor, page):
        # Answers are lost, and the stream says nothing of keys.
        with patch.object(floor.house.dealers.units["cus-1"], "last", lambda _most: []):
            page.driver.execute_script(lost)
            for _ in range(2):  # unchanged it is the same press
                void(page, "1")
                says(page, "void", "No answer")
                ready(page, "void")
            page.driver.execute_script("window.cut = false")
            void(page, "2")
            page.when(lambda: len(floor.kept()) >= 2)
        rows = [msgspec.json.decode(row.data) for row in floor.rows()]
        assert [row["reason"] for row in rows if "reason" in row] == ["dealing_error", "equipment_fault"]


# ---- traces and alerts


def test_a_trace_is_shown_filtered_and_paused(tmp_path: Path) -> None:
    shown = (
        "return [...document.querySelectorAll('[data-lines] tr')].filter((one) => one.checkVisibility())"
        ".map((one) => one.innerText)"
    )
    with looking(tmp_path, "tess", "/account") as (floor, page):

        def rows(count: int) -> list[str]:
            page.when(lambda: len(page.driver.execute_script(shown)) == count)
            return list(page.driver.execute_script(shown))

        def pass_(n: int, card: str) -> None:
            data = bee_tek_shoe.encode(bee_tek_shoe.Drawn(card))
            frame = TraceLine(datetime.now(UTC), "in", data.hex(), n, 0)
            for hear in floor.house.site.on_trace:
                hear("cus-1", "page-1", msgspec.json.encode(frame))

        def is_a_shoe() -> None:
            device = floor.house.site.devices["cus-1", "page-1"]
            device.meta = msgspec.structs.replace(device.meta, driver="bee_tek_shoe")

        floor.do(is_a_shoe)
        page.go("/table/cus-1/device/page-1/trace")
        for n, card in ((1, "KH"), (4, "9D")):
            floor.do(lambda n=n, card=card: pass_(n, card))  # type: ignore[misc]
        first, second, _ = rows(3)
        assert "drawn: card KH" in first
        assert "Pieces missing here: 2" in second

        page.write("[data-filter]", "card 9d")
        rows(1)
        page.write("[data-filter]", Keys.BACKSPACE * 7)
        rows(3)
        page.tap("[data-pause]")
        floor.do(lambda: pass_(5, "AS"))
        assert page.driver.execute_async_script(HEARD)
        assert len(page.driver.execute_script(shown)) == 3
        page.tap("[data-pause]")
        rows(4)


def test_a_new_alert_waits_for_who_writes_a_note_and_no_longer(tmp_path: Path) -> None:
    with looking(tmp_path, "tess", "/account") as (floor, page):

        def begin(name: str) -> int:
            key = "cus-1", name
            alert = Alert(code=name, text=f"the {name} is stuck", remedy="free it", severity="error", device="page-1")
            floor.house.incidents.on_alert(key, alert, floor.house.now())
            floor.house.watch.look()
            one = floor.house.incidents.of(key)
            assert one is not None
            return one.n

        n = floor.do(lambda: begin("first"))
        note, alerts = f"#note-{n}", "[data-live='alerts']"
        page.go("/alerts")
        page.press(f"#alert-{n} summary")
        page.driver.execute_script("document.querySelector(arguments[0]).focus()", note)
        floor.do(lambda: begin("second"))
        page.until(alerts, "The second is stuck")  # nothing is written yet
        assert page.driver.execute_script("return document.activeElement.id") == f"note-{n}"
        page.write(note, "on my")
        floor.do(lambda: begin("third"))
        page.until("#waits:not([hidden])")
        page.write(note, " way")
        assert "The third is stuck" not in page.text(alerts)
        page.driver.execute_script("document.activeElement.blur()")
        page.until(alerts, "The third is stuck")
        page.until("#waits[hidden]")
        assert page.driver.execute_script("return document.querySelector(arguments[0]).value", note) == "on my way"
        page.follow(f"form[action='/alerts/{n}/acknowledge'] button")
        page.until(alerts, "on my way")
        assert floor.house.incidents.of(("cus-1", "first")).state == "acknowledged"  # type: ignore[union-attr]
