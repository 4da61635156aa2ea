"""What is stale, away, restarted or refused, as a real browser shows it."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import full_pit as full_pit_module
import pytest
from floor import Browser, browser
from full_pit import FullPit, full_pit

from protocols.contract.events import CardDrawn, RoundPaid, ShoeStarted
from protocols.contract.topics import device_topic, edge_topic, table_topic

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]
ROWS = "return [...document.querySelectorAll(\"[data-live='edges'] .panel .row\")].map((one) => one.textContent)"
ADD = "main form:has(input[name=do][value=add])"
EDGES = "[data-live='edges']"


@pytest.fixture(scope="module")
def pit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullPit]:
    with full_pit(tmp_path_factory.mktemp("pit"), 12) as one:
        yield one


@pytest.fixture(scope="module")
def page(pit: FullPit) -> Iterator[Browser]:
    with browser(pit) as one:
        yield one


def computers(page: Browser) -> list[str]:
    """The names of the computers in the order of the page."""
    return [re.findall(r"edge-\d+|rules", row)[0] for row in page.driver.execute_script(ROWS)]


def test_the_figures_of_a_computer_that_is_away_are_marked_as_stale(pit: FullPit, page: Browser) -> None:
    page.come_in("vera")
    page.go("/")
    pit.do(lambda: pit.console.edge("edge-8"))
    page.until(f"{EDGES} .num.soft")
    assert not page.there(f"{EDGES} .num.stale")
    pit.do(lambda: pit.console.edge("edge-8", online=False))
    page.until(f"{EDGES} .num.stale")
    stale = page.driver.execute_script(f'return document.querySelector("{EDGES} .num.stale").textContent')
    assert stale.startswith("last values, of")
    style = f'return getComputedStyle(document.querySelector("{EDGES} .num.stale")).fontStyle'
    assert page.driver.execute_script(style) == "italic"
    pit.do(lambda: pit.console.edge("edge-8"))
    page.until(f"{EDGES} .num.stale", gone=True)


def test_computers_keep_their_places_when_one_goes_and_comes(pit: FullPit, page: Browser) -> None:
    page.come_in("vera")
    page.go("/")
    before = computers(page)
    assert before == sorted(before)
    for name in ("edge-10", "edge-7", "rules"):  # a new one, and the first one after it went
        pit.do(lambda name=name: pit.console.say(edge_topic("lisboa", name, "availability"), b""))  # type: ignore[misc]
        pit.do(lambda name=name: pit.console.edge(name))  # type: ignore[misc]
        page.when(lambda name=name: name in computers(page))  # type: ignore[misc]
        assert computers(page) == sorted(computers(page))


def test_an_idle_table_is_not_shown_as_late(pit: FullPit, page: Browser) -> None:
    def long_ago() -> None:
        pit.console.now -= timedelta(minutes=11)
        pit.console.event("bac-01", "shoe-1", ShoeStarted())

    pit.do(long_ago)
    page.come_in("vera")
    page.go("/table/bac-01")
    page.until("[data-live='last/bac-01']", "11 min")
    assert page.there("[data-live='last/bac-01'] time")
    assert not page.there("[data-live='last/bac-01'] .old")


def test_a_table_without_a_game_shows_its_devices_on_its_tile(pit: FullPit, page: Browser) -> None:
    pit.do(lambda: pit.console.device("slot-9", "machine-1", "sas_machine"))
    page.come_in("vera")
    page.go("/")
    page.until("[data-live='tile/slot-9'] .plainly", "machine-1")


def test_marks_of_stud_poker_are_explained(page: Browser) -> None:
    page.come_in("vera")
    page.go("/table/stud-01")
    page.until("[data-live='history/stud-01']", "● the dealer opens · ○ the dealer does not open")


def test_a_console_that_started_again_knows_what_was_paid_restarted_and_reported(tmp_path: Path) -> None:
    table = "bac-01"

    def ends(pit: FullPit) -> None:
        pit.console.event(table, "shoe-1", CardDrawn("AS"))
        pit.result(table, "macau.baccarat", {"winner": "player"}, evidence=[f"edge-7:{table}:{pit.console._seq}"])
        pit.console.event(table, "console-1", RoundPaid())
        pit.restart("edge-8")

    def rests(pit: FullPit) -> None:
        """What the broker retains."""
        said = {"phase": "resolved", "round": f"{table}:2026-11-20:10", "detail": {}}
        pit.console.device(table, "shoe-1", "bee_tek_shoe")
        pit.console.say(table_topic("lisboa", table, "round/state"), json.dumps(said).encode())
        pit.console.say(edge_topic("lisboa", "edge-8", "info"), b'{"bootid":"b"}')

    with full_pit(tmp_path, 6, dealers=True) as pit, browser(pit) as page:
        pit.do(lambda: ends(pit))
        page.come_in("sam")
        for again in (False, True):
            if again:
                page.go("/static/icon.svg")  # a page that is open when the console ends loads itself again
                pit.do(pit.start_again)
            pit.do(lambda: rests(pit))
            page.go(f"/dealer/{table}")
            page.until("[data-next]", "open the bets")
            page.go("/")
            page.when(
                lambda: any("edge-8" in row and "restarted 1 time" in row for row in page.driver.execute_script(ROWS))
            )
            page.go(f"/table/{table}/round/{table}:2026-11-20:10")
            page.until("ul.evidence li", "shoe-1 card.drawn")


def test_the_dealers_page_shows_a_process_that_hangs(tmp_path: Path) -> None:
    """Its connections stay open: the heartbeats are missing."""
    with full_pit(tmp_path, 6, dealers=True) as pit, browser(pit) as page:
        unit = pit.console.house.dealers.units["bac-01"]
        pit.do(lambda: setattr(unit, "_open", True))
        page.come_in("dora")
        page.go("/dealer/bac-01")
        page.until("[data-there]:not([hidden])", "Connected to the table computer.")
        pit.hang("edge-7")
        page.until("[data-away]:not([hidden])", "No connection to the table computer")
        assert not page.there("[data-troubles]:not([hidden])")
        pit.hang("rules")
        page.until("[data-troubles]:not([hidden])", "The rules process is not running")


def test_an_edge_that_is_offline_is_one_line_and_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its devices are offline, too: each table has one line below it. The newest alerts are listed above."""
    hook = '[[console.webhook]]\nurl = "http://127.0.0.1:9/hook"\n'
    monkeypatch.setattr(full_pit_module, "HEAD", full_pit_module.HEAD + hook)

    def posted(pit: FullPit) -> list[str]:
        rows = pit.do(lambda: pit.console.store.db.execute("SELECT body FROM webhook_message ORDER BY n").fetchall())
        return [json.loads(body)["data"]["code"] for (body,) in rows]

    def away(pit: FullPit) -> None:
        console = pit.console
        console.edge("edge-8", online=False)
        inside = [key for key, one in console.house.site.devices.items() if one.meta.edge == "edge-8"]
        assert len(inside) == 2
        for table, device in inside:
            console.say(device_topic("lisboa", table, device, "availability"), b"offline")
            text = f"{device} does not answer: timeout"
            console.alert(table, f"{device}-offline", code="device.offline", text=text, device=device)
        console.house.watch._pending.look(console.now + timedelta(seconds=30))
        console.house.watch.look()

    line = "[data-live='alerts/worst'] .line1"
    with full_pit(tmp_path, 12) as pit, browser(pit) as page:
        page.come_in("tess")
        page.go("/")
        pit.do(lambda: away(pit))
        page.until(line, "2 devices")
        assert page.text(line).count("\n\n") == 0
        assert "does not answer" not in page.text(line)
        assert posted(pit) == ["edge.offline"]
        for name in ("stud-01", "bj-01", "fan-02", "rou-02"):
            pit.do(lambda name=name: pit.fault(name, {"s": "shuffler-1", "b": "shuffler-1"}.get(name[0], "lamps-1")))  # type: ignore[misc]
        page.when(lambda: len(page.driver.find_elements("css selector", line)) == 5)
        pit.do(lambda: pit.console.alert("bac-02", "x", code="shoe.dust", text="dusty", severity="warning"))
        page.until("[data-live='alerts/worst'] .fresh", "bac-02 dusty")


def test_a_refused_new_user_keeps_what_was_typed(page: Browser) -> None:
    page.come_in("ada")
    page.go("/users")
    page.driver.execute_script(f"document.querySelector({ADD!r}).closest('details')?.setAttribute('open', '')")
    entered = {"name": "rui", "tables": "bac-01", "password": "one of the words", "again": "one of the others"}
    for name, text in entered.items():
        page.write(f"{ADD} [name={name}]", text)
    page.driver.execute_script(f"document.querySelector({ADD!r}).requestSubmit()")
    page.until("main", "differ")
    kept = page.driver.execute_script(f"return Object.fromEntries(new FormData(document.querySelector({ADD!r})))")
    assert {name: kept[name] for name in entered} == entered | {"password": "", "again": ""}
