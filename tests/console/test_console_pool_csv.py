"""The console gives a pool's books of any period as CSV, names who changed what, and says why a win is 0."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from console_floor import Console, opened
from console_pools import PoolHouse, pair, person, pool_house
from msgspec.structs import replace

from daemon.console.auth.users import Role
from daemon.console.pages import books_csv, jackpots as pages
from daemon.jackpots.books_table import changed_text
from daemon.jackpots.orders import obey
from daemon.words import words
from protocols.contract.jackpots import Adjust, Approve, Propose, ValueChange, WhyZero
from protocols.contract.results import Award

BETS = ((1, 500), (3, 500))
ROYAL = Award("A", "royal_flush", "pool", "law", "1", (1,))


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        yield one


@pytest.fixture
def house(console: Console, tmp_path: Path) -> Iterator[PoolHouse]:
    with pool_house(console, tmp_path) as one:
        yield one


def rounds(house: PoolHouse, table: str, first: int, last: int) -> None:
    for n in range(first, last + 1):
        house.round(table, f"{table}:{n}", BETS, pair(1) if table == "bac-12" and not n % 7 else None)
        house.console.now += timedelta(minutes=1)
    house.tell()


def table(text: str) -> list[dict[str, str]]:
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def adds_up(rows: list[dict[str, str]]) -> None:
    held: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        if row["type"] == "opening":
            held[row["account"]] = Decimal(row["balance"])
        elif row["amount"]:
            held[row["account"]] += Decimal(row["amount"])
            assert held[row["account"]] == Decimal(row["balance"]), row
    closing = {row["account"]: Decimal(row["balance"]) for row in rows if row["type"] == "closing"}
    assert closing == {account: held[account] for account in closing} != {}


async def test_any_period_is_downloaded_and_adds_up(console: Console, house: PoolHouse) -> None:
    began = console.now
    rounds(house, "bac-12", 1, 40)
    middle = (began + timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M:%S+00:00")
    async with console.browser("inspector") as browser:
        page = (await browser.get("/jackpots/red")).text
        assert 'href="/jackpots/red/books.csv"' in page
        whole = table((await browser.get("/jackpots/red/books.csv")).text)
        first = table((await browser.get("/jackpots/red/books.csv", params={"to": middle})).text)
        second = table((await browser.get("/jackpots/red/books.csv", params={"from": middle})).text)
        bad = [await browser.get("/jackpots/red/books.csv", params={"from": "x"})]
        bad.append(await browser.get("/jackpots/red/books.csv", params={"from": middle, "to": middle}))
    assert [one.status_code for one in bad] == [400, 400]
    for rows in (whole, first, second):
        adds_up(rows)
    ends = ("opening", "closing")
    parts = [row["entry"] for rows in (first, second) for row in rows if row["type"] not in ends]
    assert parts == [row["entry"] for row in whole if row["type"] not in ends]
    assert {row["entry"] for row in whole} - {""} == {str(n) for n in range(1, house.journal.last("red") + 1)}
    noted = [row for row in console.journal.after(0, 1000) if row.type == "console.jackpot.export"]
    assert len(noted) == 3


@pytest.mark.parametrize("role", ["viewer", "dealer", "technician", "supervisor"])
async def test_who_may_not_export_gets_no_file(console: Console, house: PoolHouse, role: Role) -> None:
    rounds(house, "bac-12", 1, 1)
    async with console.browser(role) as browser:
        assert (await browser.get("/jackpots/red/books.csv")).status_code == 403


async def test_a_file_is_bounded_and_says_what_it_lacks(
    console: Console, house: PoolHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds(house, "bac-12", 1, 10)
    monkeypatch.setattr(books_csv, "MOST_ENTRIES", 5)
    monkeypatch.setattr(books_csv, "PAGE", 2)
    async with console.browser("inspector") as browser:
        rows = table((await browser.get("/jackpots/red/books.csv")).text)
    adds_up(rows)
    last = house.journal.last("red")
    assert [row["text"] for row in rows if row["type"] == "missing"] == [f"entries 6 to {last} are not here"]


async def test_a_change_names_people_and_both_values_in_page_and_file(console: Console, house: PoolHouse) -> None:
    evil = '=cmd|"/c calc"!A1'
    for name, order in (("p", Propose("ana", Adjust("hidden", 12_345, evil))), ("q", Approve("rui", "p"))):
        house.keeper.books.apply(obey(house.keeper.books["red"], order, name, console.now), name, console.now)
    house.keeper._commit()
    house.tell()
    async with person(console, "ana") as ana:
        page = (await ana.get("/jackpots/red/entries")).text
        assert (await ana.get("/jackpots/red/books.csv")).status_code == 403
    async with console.browser("inspector") as browser:
        rows = table((await browser.get("/jackpots/red/books.csv")).text)
    adds_up(rows)
    adjusted = next(row for row in rows if row["type"] == "adjusted" and row["account"] == "hidden")
    assert (adjusted["people"], adjusted["changed"]) == ("ana, rui", "hidden: 0.00 -> 123.45")
    assert adjusted["reason"] == f"'{evil}"
    assert "ana, rui" in page
    assert "0.00 → MOP\u00a0123.45" in page


@pytest.mark.parametrize("lang", words.LANGS)
async def test_a_royal_that_wins_nothing_says_why(console: Console, house: PoolHouse, lang: words.Lang) -> None:
    """The pool was paid to an earlier winner and begins at 0: the second royal of the round has nothing left."""
    house.round("bac-12", "bac-12:1", BETS, ROYAL)
    first = house.keeper.books["red"].wins[0]
    assert first.amount > 0
    royal = {"jackpot": "A", "combination": "royal_flush", "pays": "pool", "law": "law"}
    house.verdict(
        "bac-12",
        "resolved",
        {
            "result": {
                "round": "bac-12:2",
                "jackpots": [
                    {**royal, "share": "1", "among": [1]},
                    {**royal, "among": [3]},
                ],
            }
        },
    )
    house.tell()
    last = house.keeper.books["red"].wins[-1]
    assert (last.amount, last.why_zero) == (0, "earlier_prize")
    async with person(console, "ana", lang=lang) as ana:
        page = (await ana.get("/jackpots/red")).text
        entries = (await ana.get("/jackpots/red/entries")).text
    async with console.browser("inspector") as browser:
        rows = table((await browser.get("/jackpots/red/books.csv")).text)
    said = words.say(lang, "jackpots.zero_earlier_prize")
    assert said in page
    assert said in entries
    assert "earlier_prize" in {row["why_zero"] for row in rows}


EVIL_VALUES = (
    ("visible", "x", "1/0"),
    ("visible", "9" * 5_000, "1"),
    ("prize:x", "fixed:x", "larger"),
    ("<b>", "<script>", "</td>"),
    ("win_state", "<i>", "y"),
)


async def test_values_that_cannot_be_are_shown_as_text(console: Console, house: PoolHouse) -> None:
    rounds(house, "bac-12", 1, 1)
    values = tuple(ValueChange(*one) for one in EVIL_VALUES)
    lines = [pages._of_value(one) for one in values]
    assert {one.kind for one in lines} == {"text", "word"}
    view = console.house.pools.get("red")
    assert view is not None
    assert view.last is not None
    entry = replace(view.last.entry, values=values, people=("ana",))
    view.lines.append(replace(view.last, entry=entry))
    async with console.browser("inspector") as browser:
        page = (await browser.get("/jackpots/red")).text
    assert "&lt;script&gt;" in page
    assert "<script></td>" not in page
    assert changed_text(values[0], 2) == "visible: x -> 1/0"


def test_every_reason_has_its_sentence() -> None:
    for code in get_args(WhyZero)[1:]:
        for lang in words.LANGS:
            assert f"jackpots.zero_{code}" in words.catalog(lang)
