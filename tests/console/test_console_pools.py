"""The pages of jackpots against real books: what they show, what two people order, and what the console checks."""

import ast
import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from console_floor import Console, opened
from console_pools import CONFIG, PoolHouse, entries, outcome, pair, person, pool_house

from daemon.config.model import parse
from daemon.console.alerts.pools import _late
from daemon.console.auth.users import BadUser, By
from daemon.console.live import Viewer
from daemon.console.pages import jackpots as pages
from daemon.console.site import pools as pools_module
from daemon.jackpots import ledger, orders, process, table_payments
from daemon.jackpots.book import OPEN
from daemon.jackpots.report import pool_json, read_pools
from daemon.words import words
from daemon.words.money import BadAmount, exact, minor_units, money
from protocols.contract.events import DisplayShown
from protocols.contract.jackpots import ENTRIES, BookEntry, PoolWin, jackpot_topic
from protocols.contract.results import Award
from protocols.contract.topics import Wire, encode_wire

BETS = ((1, 500), (3, 500))
OTHERS: list[words.Lang] = [lang for lang in words.LANGS if lang != "en"]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        yield one


@pytest.fixture
def house(console: Console, tmp_path: Path) -> Iterator[PoolHouse]:
    with pool_house(console, tmp_path) as one:
        yield one


def won(house: PoolHouse, *seats: int) -> str:
    """A pair is won; the id of the win."""
    house.round("bac-12", "bac-12:1", BETS, pair(*seats))
    house.tell()
    return "bac-12:1/1"


def drawn(page: str, form: str) -> dict[str, str]:
    """The hidden fields of the first form with this action."""
    found = re.search(rf'<form[^>]*action="[^"]*/order/{form}"(.*?)</form>', page, re.DOTALL)
    assert found is not None, form
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', found[1]))


async def press(browser: httpx.AsyncClient, form: str, *, pool: str = "red", **fields: str) -> str:
    """Open the page of the pool, send a form, and read the page that follows."""
    hidden = drawn((await browser.get(f"/jackpots/{pool}")).text, form)
    said = await browser.post(f"/jackpots/{pool}/order/{form}", data=hidden | fields, follow_redirects=True)
    return said.text


# ---- what is shown


async def test_the_page_shows_level_books_wins_and_rounds(console: Console, house: PoolHouse) -> None:
    won(house, 1, 3)
    async with console.browser("inspector") as browser:
        floor = (await browser.get("/jackpots")).text
        page = (await browser.get("/jackpots/red")).text
    book = house.keeper.books["red"]
    shown = money("en", book.amount, 2, "MOP")
    assert shown in floor
    assert shown in page
    assert "single pair" in page
    assert "MOP\u00a050.00" in page
    assert 'data-sum="0"' in page
    for account in ("players", "house", "visible", "hidden", "margin", "pending"):
        whole, fraction = exact(abs(sum(v for k, v in book.balances.items() if k.startswith(account))), book.unit)
        row = re.search(rf'<tr data-account="{account}">(.*?)</tr>', page, re.DOTALL)
        assert row is not None
        assert money("en", whole, 2) in row[1]
        assert fraction in row[1]
    assert 'href="/table/bac-12/round/bac-12%3A1"' in page
    assert "<form" not in page.split('data-live="poolhead')[1]  # an inspector looks


@pytest.mark.parametrize(
    ("lang", "amount"),
    [("en", "MOP\u00a010,004.28"), ("pt", "10\u00a0004,28\u00a0MOP"), ("zh-Hant", "MOP\u00a010,004.28")],
)
async def test_amounts_are_written_as_the_language_does(
    console: Console, house: PoolHouse, lang: str, amount: str
) -> None:
    house.round("bac-12", "bac-12:1", BETS)
    house.tell()
    async with console.browser("inspector", **{"accept-language": lang}) as browser:
        assert amount in (await browser.get("/jackpots")).text
        assert amount in (await browser.get("/jackpots/red")).text


@pytest.mark.parametrize("lang", OTHERS)
async def test_no_english_is_left(console: Console, house: PoolHouse, lang: words.Lang) -> None:
    """With a win, a proposal of each kind, and entries of the ledger with its own sentences."""
    won(house)
    async with person(console, "ana", lang=lang) as ana:
        await press(ana, "adjust", account="hidden", amount="5", reason="x")
        await press(ana, "reset", reason="x")
        await press(ana, "reject", reason="x")
        await press(ana, "set-terms", **TERMS)
        await press(ana, "transfer", to="blue", reason="x", authority="x")
        texts = [(await ana.get(path)).text for path in ("/jackpots", "/jackpots/red", "/jackpots/red/entries")]
    ours = {key: text for key, text in words.catalog("en").items() if key.startswith(("jackpots.", "told.jackpot"))}
    other = words.catalog(lang)
    for page in texts:
        plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
        english = [key for key, text in ours.items() if len(text) > 8 and other[key] != text and f" {text} " in plain]
        assert english == []


def test_amounts_that_people_write() -> None:
    for text, minor in (("12", 1200), ("12.50", 1250), ("12,50", 1250), ("-1", -100), ("\u22121", -100), (" 0 ", 0)):
        assert minor_units(text, 2) == minor
    assert (minor_units("12", 0), minor_units("1.234", 3)) == (12, 1234)
    for text in ("", "1,234", "1.234,50", "12.5", "1e3", "--1", "\u0661", "9" * 14, "x", "1.", ".5"):
        with pytest.raises(BadAmount):
            minor_units(text, 2)
    with pytest.raises(BadAmount):
        minor_units("1.0", 0)
    assert (exact(-7, 3), exact(7, 3), exact(6, 3)) == ((-2, "1/3"), (2, "1/3"), (2, ""))


async def test_pools_are_for_roles_that_see_all_tables(console: Console, house: PoolHouse) -> None:
    live = console.house.live
    for kind in ("tile", "head", "books", "wins", "changes", "terms", "rounds", "entries"):
        assert live.html(f"pool{kind}/red", Viewer("en", "inspector"))
        for role in ("viewer", "dealer", "technician", ""):
            with pytest.raises(KeyError):
                live.html(f"pool{kind}/red", Viewer("en", role))
        assert "<form" not in live.html(f"pool{kind}/red", Viewer("en", "inspector"))
    async with person(console, "ana") as ana:
        assert (await ana.get("/jackpots/none")).status_code == 404
        with pytest.raises(BadUser):
            console.house.access.users.set_role(By("root", "system"), "ana", "supervisor", ("bac-12",))


async def test_the_page_and_the_command_line_say_the_same(console: Console, house: PoolHouse) -> None:
    for n in range(2, 40):
        house.round("bac-12", f"bac-12:{n}", BETS, pair(1, 3) if n % 3 == 0 else None)
    house.tell()
    async with person(console, "ana") as ana:
        await press(ana, "adjust", account="hidden", amount="5", reason="x")
    jackpots = [one for one in parse(CONFIG).jackpot if one.name == "red"]
    [pool] = read_pools(house.journal.path, jackpots, 200, all_checked=True, rounds=100)
    told = msgspec.json.decode(msgspec.json.encode(pool_json(pool, wins=True)))
    view = said_of(house)
    assert view.level is not None
    assert view.books is not None
    shown = {
        "amount": view.level.amount,
        "balances": {name: str(value) for name, value in view.balances.items()},
        "unit": view.unit,
        "entries": view.newest,
        "terms": view.books.terms,
        "proposals": view.level.proposals,
        "rounds": list(reversed(view.rounds.values())),
        "tables": view.tables,
        "signs": list(view.signs),
        "machines": view.books.machines,
    }
    assert msgspec.json.decode(msgspec.json.encode(shown)) == {key: told[key] for key in shown}
    wins = sorted(view.books.wins, key=lambda win: win.state not in OPEN)  # those that wait come first
    assert list(msgspec.convert(told["wins"], tuple[PoolWin, ...])) == wins
    numbers = [one["seq"] for one in told["last"]]
    assert numbers == [line.seq for line in reversed(view.lines)][: len(numbers)]


# ---- orders of two people


async def test_one_confirms_and_another_pays(console: Console, house: PoolHouse) -> None:
    win = won(house, 1, 3)
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        assert outcome(await press(ana, "confirm")) == ("done", "")
        status, why = outcome(await press(ana, "pay"))
        assert (status, why) == ("refused", "ana confirmed it: another person must pay it")
        assert entries(house, "paid") == []
        house.opened("bac-12", "bac-12:2")
        status, why = outcome(await press(rui, "pay"))
        assert (status, why) == ("refused", "round bac-12:2 is open at bac-12: pay when it has ended")
        house.round("bac-12", "bac-12:2")
        page = await press(rui, "pay")
        assert outcome(page) == ("done", "")
        assert f'data-over="{win}"' in page
        assert "ana, rui" in page
    [paid] = entries(house, "paid")
    assert paid.people == ("ana", "rui")
    noted = [row for row in console.journal.after(0, 1000) if row.type.startswith("console.jackpot.")]
    assert [(row.device, row.type) for row in noted] == [
        ("ana", "console.jackpot.confirm"),
        ("ana", "console.jackpot.pay"),
        ("rui", "console.jackpot.pay"),
        ("rui", "console.jackpot.pay"),
    ]


async def test_pay_key_says_beforehand_why_it_is_dead_and_lives_when_it_can(console: Console, house: PoolHouse) -> None:
    """By person, and by the round that is played: what the books would answer."""
    won(house, 1, 3)
    console.edge("jackpots")

    def dead(name: str) -> str:
        console.house.site.notify("table/bac-12")
        page = console.house.live.html("poolwins/red", Viewer("en", "supervisor", name=name))
        button = re.search(r'/order/pay".*?<button class="main"([^>]*)>', page, re.DOTALL)
        assert button is not None
        why = re.search(r'class="whynot"[^>]*>([^<]*)<', page)
        assert ("disabled" in button[1]) == (why is not None)
        return why[1] if why else ""

    async with person(console, "ana") as ana:
        await press(ana, "confirm")
    assert dead("ana") == "You confirmed this win: another person must pay it."
    assert dead("rui") == ""
    view = console.house.site.tables["bac-12"]
    view.round, view.phase = "bac-12:2", "dealing"
    assert dead("rui") == "Not possible now: round bac-12:2 is open. Pay when it has ended."
    view.phase = "idle"
    assert dead("rui") == ""
    console.edge("jackpots", online=False)
    assert dead("rui") == "Not possible now: the jackpots process is offline."
    keys = console.house.live._kinds["poolwins"].keys("red")
    assert "table/bac-12" in keys, "the page follows the rounds of the tables"


async def test_seats_are_named_where_the_rules_do_not_know_them(console: Console, house: PoolHouse) -> None:
    won(house)
    async with person(console, "ana") as ana:
        assert outcome(await press(ana, "confirm", seats=""))[1].startswith(
            "the bettors of win bac-12:1/1 are not known"
        )
        assert "Seats are numbers" in await press(ana, "confirm", seats="2, x")
        assert outcome(await press(ana, "confirm", seats="2, 5 7")) == ("done", "")
    [confirmed] = entries(house, "confirmed")
    assert confirmed.win is not None
    assert confirmed.win.shares == ((2, 1666), (5, 1666), (7, 1666))


TERMS = {
    "seed": "2500.00",
    "limit": "900000",
    "visible": "3/100",
    "hidden": "1/100",
    "reseed": "below_seed",
    "odd": "first",
    "simultaneous_s": "5",
    "simultaneous": "share_equally",
    "reason": "approved by letter 7",
    "prize-0": "single_pair",
    "fixed-0": "75,00",
    "pays-0": "fixed",
    "share-0": "0",
    "prize-1": "level_1",
    "pays-1": "larger_of_fixed_and_share",
    "share-1": "1/4",
    "prize-2": "straight_flush",
    "pays-2": "pool",
    "share-2": "1/20",
    "prize-3": "royal_flush",
    "pays-3": "pool",
}


async def test_new_terms_wait_for_another_person_and_old_and_new_stand_in_the_entry(
    console: Console, house: PoolHouse
) -> None:
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        page = await press(ana, "set-terms", **TERMS)
        assert outcome(page) == ("done", "")
        changes = page.split('data-live="poolchanges')[1].split("</section>")[0]
        assert ">1/20 of the pool<" in changes
        assert ">the whole pool<" in changes
        for old, new in (
            ("MOP\u00a010,000.00", "MOP\u00a02,500.00"),
            ("3/7", "3/100"),
            ("MOP\u00a050.00", "MOP\u00a075.00"),
        ):
            assert re.search(rf"<td class=\"num\">{old}</td><td class=\"num new\">{new}</td>", changes), old
        assert outcome(await press(ana, "approve")) == ("refused", "ana proposed it: another person must approve it")
        house.opened("bac-12", "bac-12:9")
        refused = outcome(await press(rui, "approve"))
        assert refused == ("refused", "round bac-12:9 is open: approve it when no round is open")
        house.round("bac-12", "bac-12:9")
        assert outcome(await press(rui, "approve")) == ("done", "")
    [entry] = entries(house, "changed")
    assert entry.old is not None
    assert (entry.people, entry.old.seed, entry.old.visible) == (("ana", "rui"), 1_000_000, "3/7")
    terms = house.keeper.books["red"].terms
    assert (terms.seed, terms.limit, terms.visible, terms.hidden, terms.reseed, terms.odd) == (
        *(250_000, 90_000_000, "3/100", "1/100", "below_seed", "first"),
    )
    assert (terms.simultaneous_s, terms.simultaneous) == (5, "share_equally")
    assert terms.prizes["single_pair"].fixed == 7500
    assert (terms.prizes["level_1"].pays, terms.prizes["level_1"].share) == ("larger_of_fixed_and_share", "1/4")
    [first] = [row for row in console.journal.after(0, 1000) if row.type == "console.jackpot.set-terms"]
    assert msgspec.json.decode(first.data)["detail"]["old"]["seed"] == 1_000_000


async def test_an_adjustment_shows_old_and_new_to_both(console: Console, house: PoolHouse) -> None:
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        page = await press(ana, "adjust", account="hidden", amount="250,50", reason="audit")
        assert 'MOP\u00a00.00</td><td class="num new">MOP\u00a0250.50' in page
        page = await press(rui, "approve")
        assert outcome(page) == ("done", "")
        assert "MOP\u00a00.00 → MOP\u00a0250.50" in page.split('data-live="poolentries')[1]
        assert (
            "above its limit"
            in outcome(await press(ana, "adjust", account="visible", amount="99999999", reason="x"))[1]
        )
        page = await press(ana, "reset", reason="new season")
        assert outcome(await press(rui, "withdraw")) == ("done", "")
    [entry] = entries(house, "adjusted")
    unit = entry.unit
    assert (entry.people, entry.text, entry.after["hidden"]) == (("ana", "rui"), "audit", str(25_050 * unit))
    assert entry.postings == {"house": str(-25_050 * unit), "hidden": str(25_050 * unit)}


async def test_a_transfer_shows_both_pools_before_and_after(console: Console, house: PoolHouse) -> None:
    house.round("bac-12", "bac-12:1", BETS)  # red holds parts of a minor unit
    house.tell()
    near = 90_000_000 - house.keeper.books["red"].amount - 50
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        await press(ana, "adjust", account="visible", amount=f"{near // 100}.{near % 100:02}", reason="x")
        await press(rui, "approve")
        await press(ana, "adjust", pool="blue", account="hidden", amount="3", reason="x")
        await press(rui, "approve", pool="blue")
        shown = house.keeper.books["red"].amount
        page = await press(ana, "transfer", pool="blue", to="red", reason="the hall burnt", authority="OSJ 12/26")
        assert outcome(page) == ("done", "")
        changes = page.split('data-live="poolchanges')[1].split("</section>")[0]
        assert "the hall burnt" in changes
        assert "OSJ 12/26" in changes
        expected = [
            ("Pool, as displayed blue", 200, 0),
            ("Reserve blue", 300, 0),
            ("Moved to other pools blue", 0, 500),
            ("Pool, as displayed red", shown, 90_000_000),
            ("Overflow red", 0, 450),
            ("Moved to other pools red", 0, -500),
        ]
        cells = re.findall(
            r'<tr><th scope="row">(.*?)</th><td class="num">(.*?)</td><td class="num new">(.*?)</td>', changes
        )
        assert cells == [(name, *(money("en", one, 2, "MOP") for one in values)) for name, *values in expected]
        assert outcome(await press(ana, "approve", pool="blue"))[0] == "refused"
        house.opened("bac-12", "bac-12:2")  # at the pool that would take it
        assert "round bac-12:2 is open" in outcome(await press(rui, "approve", pool="blue"))[1]
        house.round("bac-12", "bac-12:2")
        house.tell()
        left = await press(rui, "approve", pool="blue")
        assert outcome(left) == ("done", "")
        right = (await ana.get("/jackpots/red")).text
        assert (
            "holds nothing that could be transferred"
            in outcome(await press(ana, "transfer", pool="blue", to="red", reason="x", authority="x"))[1]
        )
    assert "to red: the hall burnt" in left.split('data-live="poolentries')[1]
    assert "from blue: the hall burnt" in right.split('data-live="poolentries')[1]
    held = {name: said_of(house, name.split()[-1]) for name, *_ in expected}
    accounts = ("visible", "hidden", "transferred", "visible", "overflow", "transferred")
    assert [int(view.exact(account)) for (_, view), account in zip(held.items(), accounts, strict=True)] == [
        new for *_, new in expected
    ]
    for page in (left, right):
        assert 'data-account="transferred"' in page
        assert 'data-sum="0"' in page
    [given], [taken] = (entries(house, "transferred", pool=name) for name in ("blue", "red"))
    assert given.people == taken.people == ("ana", "rui")
    assert said_of(house, "red").fault == said_of(house, "blue").fault == ""
    [noted] = [row for row in console.journal.after(0, 1000) if row.type == "console.jackpot.transfer"][:1]
    assert msgspec.json.decode(noted.data)["detail"]["old"] == {"visible": 200, "hidden": 300, "overflow": 0}


async def test_a_pool_is_transferred_to_one_of_its_currency(console: Console, house: PoolHouse) -> None:
    level = house.keeper.level("blue")
    console.say(
        jackpot_topic("lisboa", "blue", "level"), msgspec.json.encode(msgspec.structs.replace(level, currency="AOA"))
    )
    async with person(console, "ana") as ana:
        assert "/order/transfer" not in (await ana.get("/jackpots/red")).text


async def test_places_of_another_site_have_no_page_here(console: Console, house: PoolHouse) -> None:
    award = Award("red", "level_1", "pool", "", "0", (1,))
    win = PoolWin("porto/e:slot-1:7/1", "porto/slot-1", "porto/e:slot-1:7", console.now, award, 100)
    books = house.keeper.books_of("red")
    books = msgspec.structs.replace(
        books,
        tables=("bac-12", "porto/slot-1"),
        signs=("porto/slot-1/sign-1",),
        wins=(win,),
        machines=("porto/slot-1/egm-1",),
    )
    console.say(jackpot_topic("lisboa", "red", "books"), msgspec.json.encode(books))
    async with person(console, "ana") as ana:
        for path in ("/jackpots", "/jackpots/red"):
            page = (await ana.get(path)).text
            assert 'href="/table/bac-12"' in page
            assert "porto/slot-1" in page
            assert "/table/porto" not in page
            assert "at another site, no report here" in page
        assert "porto/slot-1/egm-1" in page


async def test_a_double_tap_is_one_order(console: Console, house: PoolHouse) -> None:
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        hidden = drawn((await ana.get("/jackpots/red")).text, "adjust")
        fields = hidden | {"account": "hidden", "amount": "5", "reason": "x"}
        first, second = await asyncio.gather(*(ana.post("/jackpots/red/order/adjust", data=fields) for _ in range(2)))
        third = await ana.post("/jackpots/red/order/adjust", data=fields)
        assert first.headers["location"] == second.headers["location"] == third.headers["location"]
        assert len(entries(house, "proposed")) == 1
        # The same page before another person, or with another amount, is another order.
        other = await rui.post("/jackpots/red/order/adjust", data=fields)
        more = await ana.post("/jackpots/red/order/adjust", data=fields | {"amount": "6"})
        assert len({one.headers["location"] for one in (first, other, more)}) == 3
        assert len(entries(house, "proposed")) == 3


async def test_an_order_without_an_answer_is_unknown_until_the_answer_comes(
    console: Console, house: PoolHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ANSWER_S", 0.05)
    won(house, 1)
    house.lost = True
    async with person(console, "ana") as ana:
        page = await press(ana, "confirm")
        status, text = outcome(page)
        assert (status, text) == ("unknown", "Look again")
        assert "no answer" in page
        topic, payload = house.orders[-1]
        assert len(entries(house, "confirmed")) == 1  # it had been kept
        order = msgspec.json.decode(payload)["id"]
        console.say(f"{topic}/result", msgspec.json.encode({"id": order, "command": "confirm", "status": "done"}))
        assert outcome((await ana.get(f"/jackpots/red?order={order}")).text) == ("done", "")


async def test_without_the_broker_nothing_is_sent(console: Console, house: PoolHouse) -> None:
    won(house, 1)
    async with person(console, "ana") as ana:
        hidden = drawn((await ana.get("/jackpots/red")).text, "confirm")
        console.lose()
        said = await ana.post("/jackpots/red/order/confirm", data=hidden, follow_redirects=True)
    assert outcome(said.text)[0] == "unsent"
    assert house.orders == []


MISTAKES: list[tuple[str, dict[str, str], str]] = [
    ("adjust", {"account": "paid", "amount": "5", "reason": "x"}, "value is not possible: Account"),
    ("adjust", {"account": "hidden", "amount": "1,234", "reason": "x"}, "“1,234” is no amount"),
    ("adjust", {"account": "hidden", "amount": "0", "reason": "x"}, "is no amount"),
    ("adjust", {"account": "hidden", "amount": "5", "reason": " "}, "Enter a reason"),
    ("reset", {"reason": "x" * 201}, "Enter a reason"),
    ("set-terms", {**TERMS, "visible": "1/0"}, "value is not possible: Of each bet, to the pool"),
    ("set-terms", {**TERMS, "visible": "1", "hidden": "1/2"}, "more than the bet"),
    ("set-terms", {**TERMS, "limit": "5"}, "below the seed"),
    ("set-terms", {**TERMS, "simultaneous_s": "99"}, "not possible: Wins count as simultaneous within (seconds)"),
    ("set-terms", {**TERMS, "odd": "me"}, "value is not possible: Odd coins"),
    ("set-terms", {**TERMS, "share-1": "<b>"}, "value is not possible: Prizes"),
    ("set-terms", {**TERMS, "prize-1": "single_pair"}, "is in two lines"),
    ("set-terms", {**TERMS, "seed": "-1"}, "is no amount"),
    ("transfer", {"to": "red", "reason": "x", "authority": "x"}, "value is not possible: To the pool"),
    ("transfer", {"to": "green", "reason": "x", "authority": "x"}, "value is not possible: To the pool"),
    ("transfer", {"to": "blue", "reason": "", "authority": "x"}, "Enter a reason"),
    ("transfer", {"to": "blue", "reason": "x", "authority": " "}, "Name the approval"),
]


@pytest.mark.parametrize(("form", "fields", "said"), MISTAKES)
async def test_a_form_with_a_mistake_is_shown_again_and_nothing_is_sent(
    console: Console, house: PoolHouse, form: str, fields: dict[str, str], said: str
) -> None:
    async with person(console, "ana") as ana:
        page = await press(ana, form, **fields)
    assert said in page
    assert "Nothing was sent" in page
    if form == "set-terms":
        assert 'value="approved by letter 7"' in page
    assert house.orders == []


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        ("/jackpots/red/order/nothing", {"id": "0" * 24}, 404),
        ("/jackpots/red/order/pay", {}, 400),
        ("/jackpots/red/order/pay", {"id": "../x", "win": "x"}, 400),
        ("/jackpots/nowhere/order/pay", {"id": "0" * 24}, 404),
    ],
)
async def test_orders_that_no_page_sends_are_refused(
    console: Console, house: PoolHouse, path: str, data: dict[str, str], status: int
) -> None:
    async with person(console, "ana") as ana:
        assert (await ana.post(path, data=data)).status_code == status
    assert house.orders == []


async def test_no_other_site_and_no_other_role_orders_anything(console: Console, house: PoolHouse) -> None:
    win = won(house, 1)
    data = {"id": "0" * 24, "win": win}
    for name in (
        "confirm",
        "pay",
        "approve",
        "withdraw",
        "adjust",
        "reset",
        "set-terms",
        "reject",
        "price",
        "transfer",
    ):
        path = f"/jackpots/red/order/{name}"
        async with person(console, "ana", origin="http://evil.example") as ana:
            assert (await ana.post(path, data=data)).status_code == 403
            del ana.headers["origin"]
            assert (await ana.post(path, data=data)).status_code == 403
        for role in ("viewer", "dealer", "technician", "inspector"):
            async with console.browser(role) as browser:
                assert (await browser.post(path, data=data)).status_code == 403
    assert house.orders == []
    assert [row for row in console.journal.after(0, 1000) if "jackpot" in row.type] == []


# ---- what the process says, in each language


def _sentences() -> Iterator[tuple[str, str]]:
    """Code and text of what the ledger and its process say, with a word for each value."""

    def text_of(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=parts):
                return "".join(str(part.value) if isinstance(part, ast.Constant) else "x1" for part in parts)
            case _:
                return ""

    unpriced = ": let two people set it (price)"
    yield "jackpot.entry", table_payments.AT_TABLE
    for module in (ledger, orders, process, table_payments):
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id="text")], value=ast.JoinedStr() as one) if module is not process:
                    yield "jackpot.entry", text_of(one)
                case ast.Assign(targets=[ast.Name(id="why")], value=ast.IfExp(body=one, orelse=other)):
                    yield "jackpot.refused", f"{text_of(one)}{unpriced}"
                    yield "jackpot.refused", f"{text_of(other)}{unpriced}"
                case ast.Raise(exc=ast.Call(func=ast.Name(id="Refused"), args=[one])) if (
                    text_of(one) != f"x1{unpriced}"
                ):
                    yield "jackpot.refused", text_of(one)
                case ast.Call(func=ast.Name(id="Reply"), args=[_, _, ast.Constant(value="refused"), one]):
                    yield "jackpot.refused", text_of(one)
                case ast.keyword(arg="text", value=one) if module is not process and text_of(one):
                    yield "jackpot.entry", text_of(one)
                case ast.Call(func=ast.Attribute(attr="return_stake" | "undo"), args=[_, one]) if text_of(one):
                    yield "jackpot.entry", text_of(one)
                case ast.Call(func=ast.Name(id="_unpay"), args=[_, _, one]):
                    yield "jackpot.entry", text_of(one)
                case _:
                    pass


@pytest.mark.parametrize("lang", OTHERS)
def test_every_sentence_of_the_books_is_translated(lang: words.Lang) -> None:
    found = {(code, text) for code, text in _sentences() if text}
    assert len(found) > 30
    for code, text in found:
        said = text.replace("x1x1", "x1; a person must confirm it first") if text.startswith("win x1 is x1x1") else text
        assert words.device_text(lang, code, said) != said, (code, said)
        assert words.device_text("en", code, said) == said
    for kind in ENTRIES:
        assert f"jackpots.entry_{kind}" in words.catalog("en")


# ---- what the console checks


def said_of(house: PoolHouse, pool: str = "red") -> pools_module.PoolView:
    view = house.console.house.pools.get(pool)
    assert view is not None
    return view


def codes(console: Console) -> set[str]:
    console.house.pool_alerts.look(console.now)
    return {one.incident.code for one in console.house.incidents.open(console.now)}


async def test_entries_that_the_broker_lost_are_requested(console: Console, house: PoolHouse) -> None:
    for n in range(1, 6):
        house.round("bac-12", f"bac-12:{n}", BETS)
        house.tell(events=n not in (2, 5))  # the last is shown by the level alone
    view = said_of(house)
    assert view.last is not None
    assert view.last.seq < house.journal.last("red")
    pools = console.house.pools
    await pools.ask_for_missing()
    assert house.replays == []  # they may be on their way
    console.now += timedelta(seconds=2)
    await pools.ask_for_missing()
    for _ in range(3):
        console.now += timedelta(seconds=2)
        await pools.ask_for_missing()
    assert view.last.seq == house.journal.last("red")
    assert view.fault == ""
    assert [one.staked for one in view.rounds.values()] == [1000] * 5
    house.replays.clear()
    await pools.ask_for_missing()
    assert house.replays == []


async def test_older_entries_come_from_the_journal_page_by_page(
    console: Console, house: PoolHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools_module, "MOST_LINES", 20)
    for n in range(1, 131):
        house.round("bac-12", f"bac-12:{n}", BETS)
    house.tell()
    assert len(said_of(house).rounds) == 130
    async with console.browser("inspector") as browser:
        seen: list[int] = []
        path: str | None = "/jackpots/red/entries"
        while path is not None:
            page = (await browser.get(path)).text
            seen += [int(n) for n in re.findall(r'<tr><td class="num">(\d+)</td>', page)]
            older = re.search(r'href="(\?before=\d+)">Older', page)
            path = f"/jackpots/red/entries{older[1]}" if older else None
        assert seen == list(range(house.journal.last("red"), 0, -1))
        monkeypatch.setattr(pools_module, "RECALL_S", 0.01)
        console.house.site.publish = _nothing  # type: ignore[method-assign,assignment]
        page = (await browser.get("/jackpots/red/entries?before=50")).text
        assert "49 entries were not received" in page
        for number in ("0", "-5", "9" * 30, "x"):
            assert (await browser.get(f"/jackpots/red/entries?before={number}")).status_code == 200


async def _nothing(_topic: str, _payload: bytes) -> None:
    return


def forged(house: PoolHouse, **fields: Any) -> None:
    """The next entry of `red` as somebody else would write it."""
    last = said_of(house).last
    assert last is not None
    entry = msgspec.structs.replace(last.entry, **{"number": last.seq + 1, "postings": {}, **fields})
    source = jackpot_topic("lisboa", "red", "")[:-1]
    data = msgspec.Raw(msgspec.json.encode(entry))
    wire = Wire("1.0", "x", source, "noted", house.console.now, last.seq + 1, "", house.journal.name, False, data)
    house.console.say(f"{source}/event/noted", encode_wire(wire))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"after": {"visible": "5"}}, "its balances sum to 5 and not to zero"),
        ({"after": {"visible": "5", "house": "-5"}}, "is not its previous balance plus its posting"),
        ({"postings": {"visible": "1"}}, "its postings sum to 1 and not to zero"),
        ({"number": 99}, "it is numbered 99"),
    ],
)
async def test_books_that_do_not_balance_are_an_alert(
    console: Console, house: PoolHouse, fields: dict[str, Any], said: str
) -> None:
    won(house, 1)
    assert "jackpot.unbalanced" not in codes(console)
    forged(house, **fields)
    assert said in said_of(house).fault
    assert "jackpot.unbalanced" in codes(console)
    async with console.browser("inspector") as browser:
        page = (await browser.get("/jackpots/red")).text
        assert "Pay nothing from this pool" in page
        assert 'class="badge error">The books do not balance' in page
        alerts = (await browser.get("/alerts")).text
        assert "The books of the jackpot red do not balance" in alerts
    for lang in OTHERS:
        assert words.device_text(lang, "jackpot.books", said_of(house).fault) != said_of(house).fault


async def test_the_alert_of_a_pool_that_is_removed_ends(console: Console, house: PoolHouse) -> None:
    won(house, 1)
    forged(house, number=99)
    assert "jackpot.unbalanced" in codes(console)
    console.say(jackpot_topic("lisboa", "red", "level"), b"")
    assert "jackpot.unbalanced" not in codes(console)


async def test_a_level_that_the_books_do_not_have_is_an_alert(console: Console, house: PoolHouse) -> None:
    won(house, 1)
    level = house.keeper.level("red")
    for wrong in (
        msgspec.structs.replace(level, amount=level.amount + 1),
        msgspec.structs.replace(level, set_aside="0"),
    ):
        said_of(house).fault = ""
        console.say(jackpot_topic("lisboa", "red", "level"), msgspec.json.encode(wrong))
        assert said_of(house).fault
        assert "jackpot.unbalanced" in codes(console)


async def test_missing_entries_waiting_wins_and_slow_signs_are_alerts_until_they_are_over(
    console: Console, house: PoolHouse
) -> None:
    won(house, 1)
    console.event("bac-12", "sign-1", DisplayShown("9,950.00", confirmed=True))
    sign = said_of(house).signs["bac-12/sign-1"]
    level = said_of(house).level
    assert level is not None
    console.event("bac-12", "sign-1", DisplayShown(money("en", level.amount, 2), confirmed=True))
    assert sign.behind is None
    console.event("bac-12", "sign-1", DisplayShown("JACKPOT 50.00", confirmed=True))
    assert sign.behind is None
    assert codes(console) == set()
    house.round("bac-12", "bac-12:2", BETS)
    house.tell(events=False)
    assert sign.behind == console.now
    await console.house.pools.ask_for_missing()
    console.now += timedelta(seconds=9)
    assert codes(console) == set()
    console.now += timedelta(seconds=22)
    assert codes(console) == {"jackpot.sign_behind", "jackpot.missing"}
    console.now += timedelta(minutes=15)
    assert codes(console) == {"jackpot.sign_behind", "jackpot.missing", "jackpot.win_waits"}
    console.event("bac-12", "sign-1", DisplayShown(money("en", house.keeper.level("red").amount, 2), confirmed=True))
    await console.house.pools.ask_for_missing()
    await console.house.pools.ask_for_missing()
    async with person(console, "ana") as ana, person(console, "rui") as rui:
        await press(ana, "confirm")
        assert outcome(await press(rui, "pay"))[0] == "done"
    assert codes(console) == set()


async def test_prizes_that_the_dealer_pays_wait_for_no_supervisor(console: Console, house: PoolHouse) -> None:
    """They were counted with the wins that two people confirm and pay."""
    won(house, 1)
    view = said_of(house)
    assert view.books is not None
    wins = tuple(msgspec.structs.replace(one, at_table=True) for one in view.books.wins)
    view.books = msgspec.structs.replace(view.books, wins=wins)
    console.now += timedelta(minutes=16)
    assert "jackpot.key_waits" in codes(console)
    assert "jackpot.win_waits" not in codes(console)


@pytest.mark.parametrize(
    ("at_table", "state", "code"),
    [
        (False, "pending", "jackpot.win_waits"),
        (False, "confirmed", "jackpot.win_waits"),
        (True, "pending", "jackpot.key_waits"),
        (True, "confirmed", "jackpot.win_waits"),  # two people took it over
    ],
)
async def test_a_late_win_is_told_after_15_minutes_by_the_oldest(
    console: Console, house: PoolHouse, at_table: bool, state: str, code: str
) -> None:
    won(house, 1)
    view = said_of(house)
    assert view.books is not None
    began = console.now
    wins = tuple(
        msgspec.structs.replace(
            view.books.wins[0], id=f"bac-12:1/{n}", at=began + timedelta(seconds=n), at_table=at_table, state=state
        )
        for n in (0, 1)
    )
    view.books = msgspec.structs.replace(view.books, wins=wins)
    for seconds, expected in ((899, []), (900, [0]), (901, [0])):
        late = [alert for _, _, alert in _late(view, began + timedelta(seconds=seconds))]
        assert [(one.code, one.text.endswith("bac-12:1/0"), one.since) for one in late] == [
            (code, True, began) for _ in expected
        ]


def test_a_sign_that_the_process_already_reports_is_one_alert(console: Console, house: PoolHouse) -> None:
    console.event("bac-12", "sign-1", DisplayShown("10,000.00", confirmed=True))
    house.round("bac-12", "bac-12:1", BETS)
    house.tell()
    console.now += timedelta(seconds=20)
    assert codes(console) == {"jackpot.sign_behind"}
    said = {"code": "jackpot.sign", "device": "sign-1", "text": "the sign does not show the amount of red: no answer"}
    console.alert("bac-12", "jackpots-sign-sign-1", **said)
    assert codes(console) == {"jackpot.sign"}
    console.alert("bac-12", "jackpots-sign-sign-1")
    assert codes(console) == {"jackpot.sign_behind"}
    console.lose()
    console.connect()  # what it showed meanwhile is not known
    assert codes(console) == set()


async def test_an_alert_of_before_the_start_ends_when_the_pool_is_known(tmp_path: Path) -> None:
    with opened(tmp_path) as first, pool_house(first, tmp_path) as house:
        won(house, 1)
        forged(house, number=99)
        assert "jackpot.unbalanced" in codes(first)
    (tmp_path / "actions.db").unlink()
    with opened(tmp_path) as second:
        second.connect()
        assert "jackpot.unbalanced" in codes(second)
        with pool_house(second, tmp_path):
            assert "jackpot.unbalanced" not in codes(second)


def test_the_process_that_is_away_is_told_by_its_name(console: Console, house: PoolHouse) -> None:
    console.edge("jackpots", online=False)
    console.wait(1)
    assert "jackpots.offline" in codes(console)
    console.say("felt/1/lisboa/edge/jackpots/availability", b"online")
    console.wait(1)
    assert "jackpots.offline" not in codes(console)


def test_garbage_is_counted_and_fills_nothing(
    console: Console, house: PoolHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools_module, "MOST_POOLS", 5)
    monkeypatch.setattr(pools_module, "MOST_ROUNDS", 10)
    monkeypatch.setattr(pools_module, "MOST_LINES", 10)
    before = console.house.site.refused
    level = msgspec.to_builtins(house.keeper.level("red"))
    wrong = [
        *(b"{", b"\xff", b"[" * 100_000, b'{"pool":"red"}', b"x" * 2**20),
        *(msgspec.json.encode({**level, "decimals": n}) for n in (-1, 5, 10**9)),
    ]
    for payload in wrong:
        for leaf in ("level", "books", "event/won", "cmd/pay/result", "cmd/replay/result"):
            console.say(jackpot_topic("lisboa", "red", leaf), payload)
    assert console.house.site.refused > before + 20
    for entry in ({"unit": 0}, {"after": {"visible": "9" * 6000}}, {"unit": -7}):
        forged(house, **entry)
    assert said_of(house).last == said_of(house).lines[-1]
    for n in range(50):
        named = {**level, "pool": f"p-{n}"}
        console.say(jackpot_topic("lisboa", f"p-{n}", "level"), msgspec.json.encode(named))
        house.round("bac-12", f"bac-12:{n}", BETS)
    house.tell()
    assert len(list(console.house.pools)) == 5
    assert (len(said_of(house).rounds), len(said_of(house).lines)) == (10, 10)
    console.say(jackpot_topic("lisboa", "p-1", "level"), b"")
    assert console.house.pools.get("p-1") is None


async def test_books_begun_anew_are_not_compared_with_the_old_ones(console: Console, house: PoolHouse) -> None:
    won(house, 1)
    view = said_of(house)
    entry = BookEntry(1, 7, {})
    wire = Wire("1.0", "x", "felt/1/lisboa/jackpot/red", "noted", console.now, 1, "", "another", False)
    wire = msgspec.structs.replace(wire, data=msgspec.Raw(msgspec.json.encode(entry)))
    console.say(jackpot_topic("lisboa", "red", "event/noted"), encode_wire(wire))
    assert (view.fault, view.journal, len(view.lines)) == ("", "another", 1)
