"""The page of a table in a real browser, in a pit in which everything is real but the devices: decisions by clicks."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from floor import Browser, Floor, opened
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from simulators.lab.broker import find_mosquitto
from simulators.tables.baccarat import BaccaratTable

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]
TABLE = "bac-1"
NOTE = """document.querySelector('main').insertAdjacentHTML('beforeend',
    '<ul><li>12:00:00 a card too few was burnt <a href="/law/macau.baccarat#art-2-1">art. 2(1)</a></ul>')"""
"""An irregularity with its article, as _noted.html and _result_body.html list it: a table has one now and then."""


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Floor]:
    """Its dealer corrects nothing: a suspended coup waits for somebody at the console."""

    async def waits(_table: BaccaratTable, floor: Any, _hands: Any) -> bool:
        await floor.ready()
        if floor.look().phase != "suspended":
            return True  # the display was late
        while floor.look().phase == "suspended":  # noqa: ASYNC110 - the pit's own time
            await asyncio.sleep(0.05)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaccaratTable, "_correct", waits)
        with opened(Floor(tmp_path_factory.mktemp("floor"), kinds=("bac", "slot"), dealers=(TABLE,))) as one:
            yield one


def serious(page: Browser) -> list[str]:
    """What axe finds."""
    found = Axe().run(page.driver)["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"][:3]]


def suspend(floor: Floor) -> str:
    """A card that cannot be read suspends a coup; its round. On a busy computer another doubt may be faster."""

    def suspended() -> bool:
        """Whether a round waits that nobody decided yet: a state may come after the result."""
        view = floor.site_view.tables[TABLE]
        return view.phase == "suspended" and all(one.round != view.round for one in view.results)

    # On a busy computer no state may be published while bets are open: any phase of a coup will do.
    phases = "betting", "closed", "dealing", "resolved"
    floor.until(lambda: suspended() or floor.site_view.tables[TABLE].phase in phases)
    if not suspended():
        floor.do(lambda: floor.pit.sockets[TABLE]["shoe-1"].inject("unreadable"))
    floor.until(suspended)
    return floor.site_view.tables[TABLE].round


def test_a_supervisor_voids_a_suspended_round_from_the_page_of_the_table(floor: Floor, page: Browser) -> None:
    page.come_in("sam")
    page.go(f"/table/{TABLE}")
    page.until("#decide details[open] summary", suspend(floor))
    page.until("[data-live^='round/'] .alert.waits")
    assert serious(page) == []
    round_ = suspend(floor)  # on a busy computer a late event may have ended the other doubt meanwhile
    page.until("#decide details[open] summary", round_)
    page.write("#decide details[open] form[action$='/void'] [name=why]", "a card fell on the floor")
    question = page.ask("#decide details[open] form[action$='/void'] button")
    assert round_ in question.text
    assert TABLE in question.text
    question.accept()
    page.until("#decide .done", "done.")
    assert round_ in page.text("#decide .done")
    floor.until(lambda: any(one.round == round_ and one.void for one in floor.site_view.tables[TABLE].results))
    page.until(f"[data-live='history/{TABLE}'] td", round_.partition(":")[2])
    page.come_in("dora")
    page.go(f"/dealer/{TABLE}")
    page.until("[data-there]:not([hidden])", "Connected to the table computer.")
    page.until("[data-last] tr", "Void")


def test_a_supervisor_corrects_the_cards_of_a_suspended_round(floor: Floor, page: Browser) -> None:
    page.come_in("sam")
    page.go(f"/table/{TABLE}")
    round_ = suspend(floor)
    page.until("#decide details[open] summary", round_)
    form = "#decide details[open] form[action$='/correct']"
    page.find(f"{form} [name=hands]").clear()
    page.write(f"{form} [name=hands]", "player 9D KC\nbanker 2S 4H")
    page.write(f"{form} [name=why]", "counted on the table")
    page.follow(f"{form} button", sure=True)
    page.until("#decide .done", "done.")
    floor.until(lambda: any(one.round == round_ and not one.void for one in floor.site_view.tables[TABLE].results))
    result = next(one for one in floor.site_view.tables[TABLE].results if one.round == round_)
    assert result.outcome["hands"] == {"player": ["9D", "KC"], "banker": ["2S", "4H"]}


def test_a_refused_decision_stays_until_somebody_acts_on_it(floor: Floor, page: Browser) -> None:
    """Two supervisors decide about one round: who is second reads who was first, and keeps the text."""
    page.come_in("sam")
    page.go(f"/table/{TABLE}")
    round_ = suspend(floor)
    form = "#decide details[open] form[action$='/void']"
    page.until("#decide details[open] summary", round_)
    page.write(f"{form} [name=why]", "I was second")
    first = """const form = document.querySelector(arguments[0]), data = new URLSearchParams(new FormData(form));
        data.set("why", "I was first");
        return fetch(form.action, {method: "POST", body: data, redirect: "manual"}).then(() => true);"""
    assert page.driver.execute_script(first, form)
    floor.until(lambda: any(one.round == round_ and one.void for one in floor.site_view.tables[TABLE].results))
    page.follow(f"{form} button", sure=True)
    page.until("#decide [data-refused]", "sam has decided this round already: I was first")
    page.when(lambda: page.driver.execute_script("return !document.getElementById('waits').hidden"))
    assert "done." in page.driver.execute_script(
        "return [...document.querySelectorAll('#decide .done')].map((one) => one.innerText).join()"
    )
    assert page.there("#decide [data-refused]")
    assert all("400 (Bad Request)" in one for one in page.complaints())
    page.go(f"/table/{TABLE}/decide/void")  # the address of a form leads back to its page
    assert page.driver.current_url.endswith(f"/table/{TABLE}")
    page.until("#decide .done", round_)


def test_a_text_survives_a_session_that_ends_while_it_is_written(floor: Floor, page: Browser) -> None:
    page.come_in("sam")
    page.go(f"/table/{TABLE}")
    round_ = suspend(floor)
    why = "#decide details[open] form[action$='/void'] [name=why]"
    page.until("#decide details[open] summary", round_)
    page.write(why, "a card fell on the floor")
    page.driver.delete_all_cookies()
    page.follow("#decide details[open] form[action$='/void'] button", sure=True)
    page.until("form[action='/login']")
    page.come_in("sam")
    page.go(f"/table/{TABLE}")
    page.until("#kept", "Your text from before is in the form again.")
    assert page.find(why).get_attribute("value") == "a card fell on the floor"
    page.follow("#decide details[open] form[action$='/void'] button", sure=True)
    page.until("#decide .done", round_)
    assert page.driver.execute_script("return document.getElementById('kept').hidden")


def test_a_page_of_an_older_version_is_loaded_again_when_nothing_is_typed(floor: Floor, page: Browser) -> None:
    older = "document.documentElement.dataset.version = 'older'; window.before = true"
    page.come_in("sam")
    page.go("/alerts")
    page.write("form.stack input[name=why]", "a new felt")
    page.driver.execute_script(older)
    page.until("html[data-version=older]")
    assert page.driver.execute_async_script("setTimeout(() => arguments[0](window.before), 3500)")
    page.driver.execute_script(
        "document.querySelector('form.stack input[name=why]').value = ''; document.activeElement.blur()"
    )
    page.when(lambda: not page.driver.execute_script("return window.before"))
    page.until("html[data-version=older]", gone=True)


def test_a_technician_reads_that_a_supervisor_decides(floor: Floor, page: Browser) -> None:
    page.come_in("tess")
    page.go(f"/table/{TABLE}")
    suspend(floor)
    page.until("#decide", "A supervisor can void or correct this round here.")
    assert not page.there("#decide form")


# ---- the timeline


def test_a_mark_of_the_timeline_tells_its_time_and_text_by_pointer_keys_and_finger(floor: Floor, page: Browser) -> None:
    page.come_in("vera")
    page.go(f"/table/{TABLE}")
    page.until("[data-mark]")
    page.until(".day .bar")

    def said(n: int) -> bool:
        """The text is that of the first mark (0) or the last (-1). The table plays on: both are read in one step."""
        script = (
            "const all = [...document.querySelectorAll('[data-mark]')];"
            "return [all.at(arguments[0]).getAttribute('aria-label'), document.querySelector('[data-say]').innerText]"
        )
        label, text = page.driver.execute_script(script, n)
        return bool(label == text)

    def keyed(key: str, n: int) -> bool:
        """By a key from the mark at the other end; a new mark may come between."""
        page.driver.execute_script("[...document.querySelectorAll('[data-mark]')].at(arguments[0]).focus()", -1 - n)
        ActionChains(page.driver).send_keys(key).perform()
        return said(n)

    page.when(lambda: keyed(Keys.HOME, 0))
    page.when(lambda: keyed(Keys.END, -1))
    touch = "new PointerEvent('click', {bubbles: true, cancelable: true, pointerType: 'touch'})"
    touched = f"return !document.querySelector('[data-mark]').dispatchEvent({touch})"
    page.when(lambda: page.driver.execute_script(touched) and said(0))
    page.press(".day details summary")
    page.until(".day details[open] ol li")
    assert serious(page) == []


# ---- the page of a device


MACHINE = "/table/slot-1/device/slot-1"


def test_a_device_page_begins_with_its_state_and_fits_two_screens(floor: Floor, page: Browser) -> None:
    page.come_in("tess")
    page.go(MACHINE)
    page.until(".state .lamp")
    assert page.driver.execute_script("return document.documentElement.scrollHeight") < 2000
    page.driver.execute_script("for (const one of document.querySelectorAll('main details')) one.open = true")
    assert serious(page) == []


def test_a_command_is_not_part_of_the_story_of_a_device(floor: Floor, page: Browser) -> None:
    page.come_in("tess")
    page.go(MACHINE)
    page.follow("form[action$='/read-meters'] button", sure=True)
    page.until("[role=status]", "Read the meters:")
    page.press("#d-history summary")
    page.until("[data-live^='devicelog/']", "device.commanded")
    assert "commanded" not in page.text("[data-live^='story/']")


def jams_until_told(floor: Floor, page: Browser) -> None:
    """On a busy computer polls come late, and the machine's queue may lose its report. A machine that is jammed reports
    no second jam, so it is put right before it jams again.
    """
    for _ in range(12):
        with contextlib.suppress(AssertionError):
            page.until("article", "A bill is jammed", patience=10)
            return
        floor.repairs("slot-1", "slot-1")
        floor.breaks("slot-1", "slot-1", "bill_jam")
    page.until("article", "A bill is jammed")


def test_a_fault_is_taken_and_silenced_on_the_page_of_its_device(floor: Floor, page: Browser) -> None:
    page.come_in("tess")
    page.go(MACHINE)
    floor.breaks("slot-1", "slot-1", "bill_jam")
    try:
        jams_until_told(floor, page)
        # The machine may have another alert before or after it.
        ids = "return [...document.querySelectorAll('article')].filter((one) => one.innerText.includes('jammed'))[0].id"
        alert = f"#{page.driver.execute_script(ids)}"
        page.press(f"{alert} > form button")
        page.until(f"{alert}.mine")
        assert page.driver.current_url.endswith(MACHINE)
        page.driver.execute_script("document.querySelector(arguments[0]).open = true", f"{alert} details")
        page.write(f"{alert} .hush [name=why]", "a new reader is on its way")
        page.press(f"{alert} .hush button")
        page.until(f"{alert}.silenced")
        assert page.driver.current_url.endswith(MACHINE)
    finally:
        floor.repairs("slot-1", "slot-1")


@pytest.mark.parametrize(
    "path", [f"/table/{TABLE}", MACHINE, f"/table/{TABLE}/labels", "/users", "/law/macau.baccarat"]
)
def test_a_phone_shows_the_whole_width_with_targets_that_a_finger_meets(page: Browser, path: str) -> None:
    """Marks of the timeline are narrower: its list below has the same links."""
    page.come_in("sam")
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.go(path)
        page.until("main h1")
        page.driver.execute_script("for (const one of document.querySelectorAll('main details')) one.open = true")
        page.driver.execute_script(NOTE)
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= 390
        small = (
            "return [...document.querySelectorAll('main a:not([data-mark]), main button, main summary')]"
            ".filter((one) => one.checkVisibility())"
            ".filter((one) => one.getBoundingClientRect().height < (one.matches('button') ? 43.5 : 24))"
            ".map((one) => one.outerHTML.slice(0, 120))"
        )
        assert page.driver.execute_script(small) == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
