"""Thousands of jackpot wins that wait, on the console: the true count, pages, and one order for many."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from console_floor import Console, opened
from console_pools import PoolHouse, entries, outcome, pair, person, pool_house
from floor import browser
from full_pit import full_pit

from daemon.broker.session import Message
from daemon.console.alerts.pools import PoolAlerts
from daemon.console.site import pools as pools_module
from daemon.jackpots import process
from daemon.jackpots.book import Refused
from daemon.jackpots.ledger import open_wins
from daemon.jackpots.orders import obey
from protocols.contract.jackpots import Prize, Propose, SetTerms, jackpot_topic
from protocols.contract.results import Result
from protocols.contract.topics import LONGEST_DOCUMENT, Wire, encode_wire, table_topic

MANY = 5_020


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        yield one


@pytest.fixture
def house(console: Console, tmp_path: Path) -> Iterator[PoolHouse]:
    with pool_house(console, tmp_path) as one:
        yield one


def win(house: PoolHouse, number: int, *seats: int) -> None:
    """So many coups with a pair, used as one batch."""
    source = table_topic("lisboa", "bac-12", "round")
    messages = []
    for _ in range(number):
        seq = house.seq["bac-12"] = house.seq.get("bac-12", 0) + 1
        result = Result(round=f"bac-12:{seq}", ruleset="macau.baccarat", edition="2018", jackpots=(pair(*seats),))
        raw = msgspec.Raw(msgspec.json.encode({"result": result}))
        id_ = f"edge-7:bac-12:{seq}/0"
        wire = Wire("1.0", id_, source, "resolved", house.console.now, seq, "", "R", False, raw)
        messages.append(Message(f"{source}/event/resolved", encode_wire(wire)))
    house.keeper.take(messages)
    house.tell()


def ticked(page: str) -> dict[str, str]:
    """The hidden fields of the order, and the boxes of all wins that may be chosen."""
    form = re.search(r'<form[^>]*action="[^"]*/order/[a-z]+-many"(.*?)</form>', page, re.DOTALL)
    assert form is not None
    boxes = dict(re.findall(r'type="checkbox" name="([^"]+)" value="([^"]+)"', form[1]))
    return boxes | dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[1]))


async def test_the_console_counts_and_pages_thousands_of_wins(console: Console, house: PoolHouse) -> None:
    win(house, MANY, 2, 5)
    for value in (house.keeper.level("red"), house.keeper.books_of("red")):
        assert len(msgspec.json.encode(value)) < LONGEST_DOCUMENT / 20
    async with console.browser("inspector") as browser:
        assert "5020 wins wait" in (await browser.get("/jackpots")).text
        page = await browser.get("/jackpots/red")
        assert page.status_code == 200
        assert f'data-waiting="{MANY}"' in page.text
        assert "No win waits" not in page.text
        seen: list[str] = []
        path: str | None = "/jackpots/red/wins"
        while path is not None:
            text = (await browser.get(path)).text
            assert f'data-total="{MANY}"' in text
            assert "<form" not in text.split('data-total="')[1]  # an inspector looks
            seen += re.findall(r'<tr data-win="([^"]+)"', text)
            newer = re.search(r'href="(\?state=pending&first=\d+)">Newer', text)
            path = f"/jackpots/red/wins{newer[1]}" if newer else None
    assert seen == [one.id for one in open_wins(house.keeper.books["red"])]


async def test_many_wins_are_confirmed_and_paid_by_two_people_in_two_orders(console: Console, house: PoolHouse) -> None:
    win(house, 60, 2, 5)
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        first = ticked((await ana.get("/jackpots/red/wins")).text)
        said = await ana.post("/jackpots/red/order/confirm-many", data=first, follow_redirects=True)
        assert outcome(said.text) == ("done", "")
        assert 'data-total="10"' in said.text
        wins = entries(house, "confirmed")
        assert [one.people for one in wins] == [("ana",)] * 50
        assert len({one.win.id for one in wins if one.win}) == 50
        page = (await ana.get("/jackpots/red/wins?state=confirmed")).text
        assert "checkbox" not in page
        assert page.count("You confirmed this win: another person must pay it.") == 51  # 50 wins and the dead key
        assert '<button class="main" disabled' in page
        view = console.house.site.tables["bac-12"]
        view.round, view.phase = "bac-12:99", "dealing"
        page = (await rui.get("/jackpots/red/wins?state=confirmed")).text
        assert "checkbox" not in page
        assert "round bac-12:99 is open. Pay when it has ended." in page
        view.phase = "idle"
        theirs = ticked((await rui.get("/jackpots/red/wins?state=confirmed")).text)
        said = await ana.post("/jackpots/red/order/pay-many", data=theirs, follow_redirects=True)
        assert outcome(said.text) == ("refused", "ana confirmed it: another person must pay it")
        assert entries(house, "paid") == []
        his = ticked((await rui.get("/jackpots/red/wins?state=confirmed&all=1")).text)
        said = await rui.post("/jackpots/red/order/pay-many", data=his, follow_redirects=True)
        assert outcome(said.text) == ("done", "")
    assert [one.people for one in entries(house, "paid")] == [("ana", "rui")] * 50
    assert len(open_wins(house.keeper.books["red"])) == 10
    assert house.keeper.books["red"].balance("pending") == 10 * 5_000 * house.keeper.books["red"].unit


@pytest.mark.system
@pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed")
def test_the_page_of_many_wins_is_loaded_again_when_they_can_be_paid(tmp_path: Path) -> None:
    with full_pit(tmp_path, 6) as pit, browser(pit) as page:
        made = pool_house(pit.console, tmp_path)
        books = pit.do(made.__enter__)
        pit.do(lambda: win(books, 2, 2, 5))

        async def confirm() -> None:
            async with person(pit.console, "ana") as ana:
                form = ticked((await ana.get("/jackpots/red/wins")).text)
                await ana.post("/jackpots/red/order/confirm-many", data=form)

        pit.wait(confirm())
        page.come_in("sam")
        page.go("/jackpots/red/wins?state=confirmed")
        pay, box = "form[action$='/pay-many'] button.main", "input[type=checkbox]"
        page.until(f"{pay}:not([disabled])")
        pit.do(lambda: pit.phase("bac-12", "dealing"))
        page.until("#why-many", "round bac-12:2026-11-20:99 is open. Pay when it has ended.")
        assert page.there(f"{pay}[disabled]")
        pit.do(lambda: pit.phase("bac-12", "idle"))
        page.until(f"{pay}:not([disabled])")

        page.press(box)
        pit.do(lambda: pit.phase("bac-12", "dealing"))
        page.until("[data-reload*=':99']")
        assert page.there(f"{box}:checked"), "what somebody ticked is not taken away"
        pit.do(lambda: made.__exit__(None, None, None))


async def test_one_wrong_win_of_many_stops_all(console: Console, house: PoolHouse) -> None:
    win(house, 3, 2)
    async with person(console, "ana") as ana:
        form = ticked((await ana.get("/jackpots/red/wins")).text)
        wrong = {"win-9": "bac-12:99/1"}
        said = await ana.post("/jackpots/red/order/confirm-many", data=form | wrong, follow_redirects=True)
        assert outcome(said.text)[0] == "refused"
        said = await ana.post("/jackpots/red/order/confirm-many", data={"id": form["id"]})
        assert "Wins chosen at once: from 1 to 50." in said.text
        many = {f"win-{n}": f"bac-12:{n}/1" for n in range(51)}
        said = await ana.post("/jackpots/red/order/confirm-many", data=many | {"id": form["id"]})
        assert "Wins chosen at once: from 1 to 50." in said.text
    assert entries(house, "confirmed") == []


async def test_wins_whose_seats_or_amount_a_person_must_name_cannot_be_ticked(
    console: Console, house: PoolHouse
) -> None:
    win(house, 2)
    async with person(console, "ana") as ana:
        page = (await ana.get("/jackpots/red/wins")).text
    assert 'data-total="2"' in page
    assert "checkbox" not in page


async def test_books_that_do_not_answer_are_named(
    console: Console, house: PoolHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(topic: str, payload: bytes) -> None:
        return

    win(house, 3, 2)
    monkeypatch.setattr(pools_module, "RECALL_S", 0.01)
    console.house.site.publish = lost  # type: ignore[method-assign]
    async with console.browser("inspector") as browser:
        assert "The jackpots process did not answer" in (await browser.get("/jackpots/red/wins")).text


def test_requests_for_wins_that_cannot_be_read_are_not_answered(house: PoolHouse) -> None:
    topic = jackpot_topic("lisboa", "red", "cmd/wins")
    for payload in (b"", b"[]", b'{"id":""}', b'{"id":"a","most":101}', b'{"id":"a","first":-1}', b"\xff"):
        assert house.keeper.page("red", Message(topic, payload)) is None


@pytest.mark.parametrize(("leaf", "longest"), [("level", LONGEST_DOCUMENT), ("books", LONGEST_DOCUMENT)])
async def test_a_document_that_is_too_long_is_an_alert_until_a_shorter_one_comes(
    console: Console, house: PoolHouse, leaf: str, longest: int
) -> None:
    win(house, 1, 2)
    console.say(jackpot_topic("lisboa", "red", leaf), b" " * (longest + 1))
    alerts = PoolAlerts(console.house.pools, console.house.incidents)
    alerts.look(console.now)
    (one,) = [one for one in console.house.incidents.open(console.now) if one.incident.code == "jackpot.too_long"]
    assert f"{leaf} of {longest + 1} bytes" in one.incident.text
    async with console.browser("inspector") as browser:
        assert (await browser.get("/jackpots/red")).status_code == 200
    house.tell()
    alerts.look(console.now)
    assert not [one for one in console.house.incidents.open(console.now) if one.incident.code == "jackpot.too_long"]


@pytest.mark.parametrize(("prizes", "text"), [(1_000, "its entry"), (200, "the changes that wait")])
def test_orders_that_would_make_a_document_too_long_are_refused(house: PoolHouse, prizes: int, text: str) -> None:
    """Of one large change the entry is too long, of many the changes that wait together."""
    book = house.keeper.books["red"]
    terms = msgspec.structs.replace(book.terms, prizes={f"{'x' * 50}{n}": Prize(n) for n in range(prizes)})
    found = ""
    for number in range(20):
        step = obey(book, Propose("ana", SetTerms(terms, "many")), f"r-{number}", house.console.now)
        try:
            process._refuse_too_long(step)
        except Refused as error:
            found = str(error)
            break
        book = step[0]
    assert found.startswith(f"{text} would be longer than")
    assert len(msgspec.json.encode(book.proposals)) < LONGEST_DOCUMENT / 8
