"""The console in a real browser, against a pit in which everything is real but the devices."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_core_python.selenium import Axe
from floor import PASSWORD, Browser, Floor, opened
from helpers import at_length

from daemon.journal.recall import recall_old
from protocols.contract.topics import device_topic
from simulators.lab.broker import find_mosquitto
from simulators.lab.pit import EDGE, SITE

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]

TABLET, WALL = (820, 1180), (1920, 1080)
# Who looks at which pages; together all there are.
PAGES = {
    "vera": ("/", "/alerts", "/table/rou-1", "/table/cus-1/device/shaker-1", "/table/bac-1/fairness", "/account"),
    "tess": ("/table/stud-1/device/shuffler-1", "/table/bac-1/device/shoe-1/trace", "/support"),
    "sam": ("/users", "/tokens", "/actions", "/alerts", "/table/rou-1/fairness"),
    "ines": ("/table/bac-1", "/table/stud-1", "/table/cus-1", "/rounds", "/table/rou-1/rounds", "/law/macau.baccarat"),
}


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Floor]:
    with opened(Floor(tmp_path_factory.mktemp("floor"))) as one:
        yield one


def serious(page: Browser) -> list[str]:
    """What axe finds serious or critical."""
    found = Axe().run(page.driver)["violations"]
    return [
        f"{one['id']}: {one['help']}: {node['html'][:120]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


# ---- in and out


def test_password_login_shows_the_pit_and_logs_out(floor: Floor, page: Browser) -> None:
    page.driver.delete_all_cookies()
    page.go("/table/bac-1")
    assert "/login" in page.driver.current_url
    page.write("input[name=name]", "tess")
    page.write("input[name=password]", PASSWORD)
    page.follow("main form button")
    page.until("h1", "bac-1")
    page.press(".me summary")
    page.follow("form[action='/logout'] button")
    page.until("input[name=password]")
    page.go("/")
    assert "/login" in page.driver.current_url


def test_a_screen_on_the_wall_sees_its_tables_and_may_do_nothing(floor: Floor, page: Browser) -> None:
    page.driver.delete_all_cookies()
    page.go(f"/wall?token={floor.token('wall', ('rou-1', 'bac-1'))}")
    page.until("[data-live='tile/rou-1']")
    assert "token" not in page.driver.current_url
    assert not page.there("[data-live='tile/cus-1']")
    page.go("/table/rou-1/device/wheel-1")
    assert not page.there("form[action*='/command/']")
    page.go("/table/cus-1")
    assert page.text("h1") == "Not permitted"
    page.complaints()  # of the page it may not see


def test_the_language_and_the_colours_are_chosen_and_stay(page: Browser) -> None:
    page.come_in("vera")
    page.go("/")
    page.press(".me summary")
    page.choose("#lang", "zh-Hant")
    page.until("h1", "賭場現況")
    page.press(".me summary")
    page.choose("#theme", "dark")
    page.until("html[data-theme='dark']")
    page.go("/alerts")
    assert page.there("html[data-theme='dark'][lang='zh-Hant']")


# ---- the round as it happens


@pytest.mark.parametrize(("table", "shown"), [("rou-1", ".chip"), ("cus-1", ".die"), ("bac-1", ".playing")])
def test_a_table_shows_its_rounds_as_they_end(page: Browser, table: str, shown: str) -> None:
    page.come_in("vera")
    page.go(f"/table/{table}")
    last = "return document.querySelector(\"[data-live^='history/'] tbody a\")?.textContent"
    before = page.driver.execute_script(last)
    page.until(f"[data-live='result/{table}'] .badge", "Despacho")
    page.until(f"main {shown}")
    page.when(lambda: page.driver.execute_script(last) != before)
    assert page.there(f"[data-live='board/{table}'] table")


def test_an_inspector_goes_from_a_result_to_the_command_that_shows_the_bytes(page: Browser) -> None:
    page.come_in("ines")
    page.go("/table/bac-1")
    page.until("[data-live='result/bac-1'] a.button")
    page.follow("[data-live='result/bac-1'] a.button")
    page.until("pre.wire", "sudo feltd journal recall bac-1 --round bac-1:")
    assert "Despacho 55/2004" in page.text(".badge")
    way = page.driver.current_url.removeprefix(page.floor.url)
    page.come_in("vera")
    page.go(way)
    page.until("h1", "bac-1")
    assert not page.there("pre.wire")


def test_an_inspector_goes_from_round_to_round_and_finds_the_digest_in_the_journal(floor: Floor, page: Browser) -> None:
    page.come_in("ines")
    page.go("/table/rou-1")
    page.until("[data-live='history/rou-1'] tbody tr:nth-child(4)")  # the list by date stands still
    page.go("/table/rou-1/rounds")
    page.until(".rounds tbody tr:nth-child(3) a")
    page.follow(".rounds tbody tr:nth-child(2) a")
    asked = urlsplit(page.driver.current_url)
    page.follow("a[rel='prev']")
    assert urlsplit(page.driver.current_url).path != asked.path
    assert urlsplit(page.driver.current_url).query == asked.query
    page.follow("a[rel='next']")
    page.until(".digest code")
    assert urlsplit(page.driver.current_url).path == asked.path
    name, digest = unquote(asked.path).partition("/round/")[2], page.text(".digest code")
    files = floor.directory / "rules.db", floor.directory / "edge.db"
    assert digest in [one.digest for one in recall_old(*files, "rou-1", name)]
    page.follow("ul.chips a.badge")
    page.until(".articles tr:target, .articles tr:has(.spot:target)")


# ---- trouble


def test_a_jam_turns_the_lamp_and_shows_the_remedy_until_it_is_cleared(floor: Floor, page: Browser) -> None:
    page.come_in("tess")
    page.go("/table/stud-1/device/shuffler-1")
    here = "[data-live='device/stud-1/shuffler-1']"
    page.until(f"{here} .lamp.good")
    floor.breaks("stud-1", "shuffler-1", "jam_outfeed")
    fault = "[data-live='alerts/device/stud-1/shuffler-1']"
    page.until(fault, "outfeed", patience=80)  # with the next packet: a round may be waiting for somebody
    page.until(f"{here} .lamp.error, {here} .lamp.warning")
    assert page.text(f"{fault} [open] .more p").strip()
    page.go("/")
    page.until("[data-live='tile/stud-1'] .why", "shuffler-1")
    assert page.there("[data-live='tile/stud-1'].error, [data-live='tile/stud-1'].warning")
    floor.repairs("stud-1", "shuffler-1")
    page.until("[data-live='tile/stud-1'] .why", gone=True)
    page.go("/table/stud-1/device/shuffler-1")
    page.until(f"{here} .lamp.good")
    page.until("[data-live='story/stud-1/shuffler-1'] li", "outfeed")
    page.press("#d-history summary")
    page.until("[data-live='devicelog/stud-1/shuffler-1']", "device.recovered")


def test_a_cable_that_is_pulled_is_an_incident_until_it_is_back(floor: Floor, page: Browser) -> None:
    port = floor.pit.ports["rou-1/wheel-1"]
    page.come_in("tess")
    page.go("/alerts")
    floor.do(port.unplug)
    try:
        page.until("[data-live='alerts']", "wheel-1 does not answer")
        page.go("/")
        page.until("[data-live='tile/rou-1'].offline")
    finally:
        floor.do(port.plug)
    page.until("[data-live='tile/rou-1'].good")

    def over() -> bool:
        page.go("/alerts")
        text = "wheel-1 does not answer"
        return text not in page.text("[data-live='alerts']") and text in page.text("#history")

    page.when(over)


def test_a_command_is_asked_twice_done_and_written_down(page: Browser) -> None:
    page.come_in("tess")
    page.go("/table/cus-1/device/lamps-1")
    page.ask("form[action$='/command/self-test'] button").dismiss()
    assert not page.there("[role=status]")
    page.ask("form[action$='/command/self-test'] button").accept()
    page.until("[role=status]", "Self-test")
    page.come_in("sam")
    page.go("/actions")
    page.until("main", "self-test")
    assert "tess" in page.text("main")


def test_without_the_broker_nothing_looks_well(floor: Floor, page: Browser) -> None:
    page.come_in("vera")
    page.go("/")
    page.until(".tile.good")
    with floor.without_broker():
        page.until("[data-live='top'] .banner", "lost the broker")
        page.when(lambda: not page.there(".tile.good"))
    page.until(".tile.good")
    page.until("[data-live='top'] .banner", gone=True)


def test_a_table_that_is_taken_away_leaves_the_pit(floor: Floor, page: Browser) -> None:
    """As an edge does it whose configuration no longer has the table."""

    def say(leaf: str, payload: bytes) -> None:
        floor.wait(floor.site_view.publish(device_topic(SITE, "rou-9", "wheel-1", leaf), payload))

    def shown() -> bool:
        page.go("/")
        return page.there("[data-live='tile/rou-9']")

    page.come_in("vera")
    say("meta", b'{"driver":"cammegh_ss2","edge":"edge-9"}')
    say("availability", b"offline")
    page.when(shown)
    for leaf in ("availability", "state", "meta"):
        say(leaf, b"")
    page.until("[data-live='tile/rou-9'] h2", gone=True)
    assert not page.find("[data-live='tile/rou-9']").is_displayed()
    say("availability", b"online")
    page.until("[data-live='tile/rou-9'] h2", "rou-9")
    assert page.find("[data-live='tile/rou-9']").is_displayed()
    say("availability", b"")
    assert page.there("[data-live='tile/rou-1']")
    assert not page.complaints()


HANGS = ("sends no heartbeat", "No process sends heartbeats", "no process sends heartbeats")


@pytest.mark.parametrize("which", ["edge", "rules", "broker"])
def test_a_process_that_hangs_is_seen_before_its_last_will(floor: Floor, page: Browser, which: str) -> None:
    page.come_in("vera")
    page.go("/")
    page.until("[data-live='tile/rou-1'].good")
    # The console listens: the next beat is one that it has heard.
    heard = floor.site_view.edges[{"edge": EDGE, "rules": "rules", "broker": EDGE}[which]]
    before = heard.beat
    floor.until(lambda: heard.beat != before)
    process = floor.broker.pid if which == "broker" else getattr(floor, which).process.pid
    os.kill(process, signal.SIGSTOP)
    try:
        # On a machine under load the other process may be late, too: then the broker is named.
        page.when(lambda: any(one in page.text("[data-live='alerts/worst']") for one in HANGS))
        page.when(lambda: not page.there("[data-live='tile/rou-1'].good"))
    finally:
        os.kill(process, signal.SIGCONT)
    page.until("[data-live='tile/rou-1'].good")
    page.when(lambda: not any(one in page.text("[data-live='alerts/worst']") for one in HANGS))


@pytest.mark.parametrize("which", ["edge", "rules"])
def test_a_process_that_was_killed_and_started_again_is_counted(floor: Floor, page: Browser, which: str) -> None:
    """It is back before its last will: the lamps never show it."""
    name = {"edge": EDGE, "rules": "rules"}[which]
    row = f"//*[@data-live='edges']//*[contains(@class, 'row')][contains(., '{name}')]"

    def said() -> str:
        script = "return document.evaluate(arguments[0], document).iterateNext()?.textContent ?? ''"
        return str(page.driver.execute_script(script, row))

    page.come_in("vera")
    page.go("/")
    page.when(lambda: name in said())
    times = int(found[1]) if (found := re.search(r"restarted (\d+) time", said())) else 0
    floor.signals(getattr(floor, which), signal.SIGKILL)
    page.when(lambda: f"restarted {times + 1} time" in said())
    page.until("[data-live='edges'] summary .badge", "restarted")


def test_a_page_whose_console_is_gone_says_so(floor: Floor, page: Browser) -> None:
    page.come_in("vera")
    page.go("/")
    page.until(".tile")
    floor.signals(floor.console, signal.SIGSTOP)
    try:
        page.until("html.cut #cut:not([hidden])", "No connection to the console")
    finally:
        floor.signals(floor.console, signal.SIGCONT)
    page.until("html:not(.cut) #cut[hidden]")


# ---- all pages


@pytest.mark.parametrize(
    ("theme", "lang", "size"),
    [("light", "en", WALL), ("dark", "zh-Hant", TABLET), *at_length([], [("dark", "pt", WALL)])],
)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_used_by_everybody(
    page: Browser, name: str, theme: str, lang: str, size: tuple[int, int]
) -> None:
    """axe finds nothing serious, nothing is wider than the screen, the language is that of the page."""
    page.driver.set_window_size(*size)
    page.come_in(name, lang=lang, theme=theme)
    for path in PAGES[name]:
        page.go(path)
        page.until("main > *")
        assert page.find("html").get_attribute("lang") == lang
        if lang != "pt":  # but for its words it is the first
            assert serious(page) == [], path
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.driver.execute_script(wide) <= 0, path


def test_the_login_can_be_used_by_everybody(page: Browser) -> None:
    page.driver.delete_all_cookies()
    page.go("/login")
    assert serious(page) == []
