"""A jackpot in a real browser: broker, jackpots and console run; two people confirm, pay, propose and approve."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from axe_core_python.selenium import Axe
from floor import Browser, opened
from jackpot_floor import JackpotFloor, send

from daemon.jackpots.book import TableBook
from daemon.words.money import money
from protocols.contract.jackpots import BookEntry
from protocols.contract.results import Award
from simulators.lab.broker import find_mosquitto

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]
PAGE = "/jackpots/dragon"
PAIR = Award("A", "single_pair", "fixed", "Despacho 55/2004 art. 17(8)", "", (1, 5))
TRIO = Award("A", "three_of_a_kind", "fixed", "Despacho 55/2004 art. 17(8)", "")
BETS = ((1, 10_000), (3, 20_000), (5, 10_000))
PHONE, TABLET, DESKTOP = (390, 844), (820, 1180), (1280, 800)


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JackpotFloor]:
    with opened(JackpotFloor(tmp_path_factory.mktemp("jackpots"))) as one:
        yield one


def shown(floor: JackpotFloor) -> str:
    return money("en", floor.books("dragon").book.amount, 2, "MOP")


def open_round(floor: JackpotFloor) -> str:
    """That of the second table, as the books have it."""
    return floor.books("dragon").book.tables.get("bac-2", TableBook()).open


def test_a_win_is_confirmed_by_one_and_paid_by_another(floor: JackpotFloor, page: Browser) -> None:
    page.come_in("sam")
    page.go("/jackpots")
    page.until("[data-live='pooltile/dragon'] .amount", "1,000,000.00")
    page.follow("[data-live='pooltile/dragon'] h2 a")
    page.until("[data-live='poolhead/dragon'] .amount", "1,000,000.00")
    for n in range(1, 4):
        floor.opened("bac-1", f"bac-1:{n}")
        floor.ended("bac-1", f"bac-1:{n}", BETS)
    page.until("[data-live='poolhead/dragon'] .amount", "1,000,018.00")  # 3/200 of 1,200.00, without a reload
    page.until("[data-live='poolrounds/dragon']", "bac-1:3")
    assert page.find("[data-sum]").get_attribute("data-sum") == "0"

    floor.ended("bac-2", "bac-2:1", ((1, 10_000), (5, 10_000)), PAIR)
    page.until("[data-win='bac-2:1/1']", "MOP\u00a01,000.00")
    send(page, "confirm")
    assert page.find("[data-outcome]").get_attribute("data-outcome") == "done"
    page.until("[data-win='bac-2:1/1'] .whynot", "You confirmed this win: another person must pay it.")
    assert page.there("form[action$='/order/pay'] button[disabled]")

    page.come_in("sue")
    page.go(PAGE)
    send(page, "pay", sure=True)
    assert page.find("[data-outcome]").get_attribute("data-outcome") == "done"
    page.until("[data-over='bac-2:1/1']", "sam, sue")
    assert not page.there("[data-win]")
    page.follow("[data-over='bac-2:1/1'] a")
    page.until("h1", "bac-2")  # the round that won it

    pool = floor.books("dragon")
    assert (pool.wrong, pool.book.balance("paid")) == ("", 100_000 * pool.book.unit)
    [paid] = [row for row in pool.entries if row.type == "paid"]
    assert msgspec.json.decode(paid.data, type=BookEntry).people == ("sam", "sue")


def test_a_change_is_proposed_by_one_and_approved_by_another(floor: JackpotFloor, page: Browser) -> None:
    page.come_in("sam")
    page.go(PAGE)
    page.press("#f-adjust summary")
    page.write("#f-adjust input[name=amount]", "250.50")
    page.write("#f-adjust input[name=reason]", "audit of November")
    before = floor.books("dragon").book
    send(page, "adjust")
    old, new = money("en", before.amount, 2, "MOP"), money("en", before.amount + 25_050, 2, "MOP")
    cells = "[data-live='poolchanges/dragon'] td"
    page.until(cells, old)
    page.until(cells, new)
    page.until("[data-proposal] .whynot", "You proposed this change: another person must approve it.")
    assert page.there("form[action$='/order/approve'] button[disabled]")

    page.come_in("sue")
    page.go(PAGE)
    floor.opened("bac-2", "bac-2:2")
    page.until("[data-proposal]", "audit of November")
    page.when(lambda: open_round(floor) == "bac-2:2")
    send(page, "approve", sure=True)  # this floor retains no state of a round: the books alone know
    assert "round bac-2:2 is open" in page.text("[data-outcome]")
    floor.ended("bac-2", "bac-2:2")
    page.when(lambda: not open_round(floor))
    send(page, "approve", sure=True)
    page.until("[data-live='poolhead/dragon'] .amount", new)
    page.until("[data-live='poolentries/dragon']", f"{old} → {new}")
    assert not page.there("[data-proposal]")
    rows = {row.type: row for row in floor.books("dragon").entries}
    adjusted = msgspec.json.decode(rows["adjusted"].data, type=BookEntry)
    assert (adjusted.people, adjusted.text) == (("sam", "sue"), "audit of November")


def test_a_pool_is_transferred_to_another_by_two_people(floor: JackpotFloor, page: Browser) -> None:
    page.come_in("sam")
    page.go("/jackpots/phoenix")
    page.press("#f-transfer summary")
    assert page.text("#f-transfer select") == "dragon"
    page.write("#f-transfer input[name=reason]", "the hall burnt")
    page.write("#f-transfer input[name=authority]", "OSJ 12/26")
    before = floor.books("dragon").book.amount
    given = floor.books("phoenix").book.amount
    send(page, "transfer")
    cells = "[data-live='poolchanges/phoenix'] td"
    for amount in (given, 0, before, before + given):
        page.until(cells, money("en", amount, 2, "MOP"))

    page.come_in("sue")
    page.go("/jackpots/phoenix")
    send(page, "approve", sure=True)
    page.until("[data-live='poolhead/phoenix'] .amount", money("en", 0, 2, "MOP"))
    page.until("[data-live='poolentries/phoenix']", "to dragon: the hall burnt")
    page.go(PAGE)
    page.until("[data-live='poolhead/dragon'] .amount", money("en", before + given, 2, "MOP"))
    page.until("[data-live='poolentries/dragon']", "from phoenix: the hall burnt")
    assert page.find("[data-sum]").get_attribute("data-sum") == "0"


def test_a_double_tap_on_a_slow_broker_is_one_proposal(floor: JackpotFloor, page: Browser) -> None:
    page.come_in("sam")
    page.go(PAGE)
    page.press("#f-reset summary")
    page.write("#f-reset input[name=reason]", "twice")
    count = len([row for row in floor.books("dragon").entries if row.type == "proposed"])
    script = """
      const form = document.querySelector("form[action$='/order/reset']");
      const body = new URLSearchParams(new FormData(form));
      body.set("code", arguments[0]);
      return Promise.all([1, 2].map(() => fetch(form.action, {method: "POST", body}).then((one) => one.url)));
    """
    first, second = page.driver.execute_script(script, floor.code())
    assert first == second
    assert len([row for row in floor.books("dragon").entries if row.type == "proposed"]) == count + 1
    page.go(PAGE)
    send(page, "withdraw")


def test_the_page_says_when_the_books_are_away(floor: JackpotFloor, page: Browser) -> None:
    import signal

    page.come_in("ines")
    page.go(PAGE)
    page.until("[data-live='poolhead/dragon'] .lamp.good")
    assert not page.there("main form")  # an inspector only looks
    floor.signals(floor.jackpots, signal.SIGSTOP)
    try:
        page.until("[data-live='poolhead/dragon'] .lamp.unknown")
    finally:
        floor.signals(floor.jackpots, signal.SIGCONT)
    page.until("[data-live='poolhead/dragon'] .lamp.good")


@pytest.mark.parametrize(
    ("lang", "theme", "size"),
    [("en", "light", DESKTOP), ("pt", "dark", PHONE), ("zh-Hant", "light", PHONE), ("zh-Hant", "dark", TABLET)],
)
def test_pages_of_jackpots_can_be_used_by_everybody(
    floor: JackpotFloor, page: Browser, lang: str, theme: str, size: tuple[int, int]
) -> None:
    """axe finds nothing serious, nothing is wider than the screen; with a win, a proposal and all forms open."""
    book = floor.books("dragon").book
    if not any(one.state == "pending" for one in book.wins):
        floor.ended("bac-1", "bac-1:20", BETS, TRIO)
    page.driver.set_window_size(*size)
    page.come_in("sam", lang=lang, theme=theme)
    page.go(PAGE)
    page.until("[data-win]")
    floor.sign_shows(re.sub(r"[^\d.,]", "", shown(floor)))
    if not page.there("[data-proposal]"):
        page.driver.execute_script("document.querySelector('#f-terms').open = true")
        page.find("form.terms input[name=visible]").clear()
        page.write("form.terms input[name=visible]", "1/100")
        page.write("form.terms input[name=reason]", "licence 7/2026")
        send(page, "set-terms")
    for path in ("/jackpots", PAGE, f"{PAGE}/entries"):
        page.go(path)
        page.until("main > *")
        page.driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
        found = Axe().run(page.driver)["violations"]
        worst = [
            (one["id"], one["nodes"][0]["html"][:160]) for one in found if one["impact"] in ("serious", "critical")
        ]
        assert worst == [], path
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.driver.execute_script(wide) <= 0, path
        _picture(page, f"{path.strip('/').replace('/', '-')}-{lang}-{theme}-{size[0]}")


def _picture(page: Browser, name: str) -> None:
    """For somebody who wants to look: FELTD_SHOTS names a folder."""
    if not (folder := os.environ.get("FELTD_SHOTS")):
        return
    page.driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = false")
    width = page.driver.get_window_size()["width"]
    height = page.driver.execute_script("return document.documentElement.scrollHeight")
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": min(height, 3000), "deviceScaleFactor": 1, "mobile": False},
    )
    page.driver.save_screenshot(f"{folder}/{name}.png")
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
