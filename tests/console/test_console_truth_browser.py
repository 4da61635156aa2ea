"""What is stale, away, restarted or refused, as a real browser shows it."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from floor import Browser, browser
from full_pit import FullPit, full_pit

from protocols.contract.events import ShoeStarted
from protocols.contract.topics import edge_topic

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
