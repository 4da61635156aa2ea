"""The books of a pool as CSV: a spreadsheet finds the closing balances by adding up, for any period."""

import csv
import io
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pool_files import CONFIG, NOON, play, run

from daemon.config.model import load
from daemon.jackpots.books import Books
from daemon.jackpots.books_table import BooksTable
from daemon.jackpots.orders import obey
from daemon.jackpots.report import read_pools
from daemon.journal.store import Journal
from protocols.contract.jackpots import Adjust, Approve, Propose, Reset, SetTerms

EVIL = '=HYPERLINK("http://x","pay")'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    return path


def decide(config: Path, *changes: Any, at: datetime = NOON + timedelta(hours=1)) -> None:
    """Ana proposes, Rui approves."""
    terms = load(config).jackpot[0].terms()
    journal = Journal(config.parent / "jackpots.db")
    books = Books(journal, {"red": terms}, NOON)
    for n, change in enumerate(changes):
        books.apply(obey(books["red"], Propose("ana", change), f"q{n}", at), f"q{n}", at)
        books.apply(obey(books["red"], Approve("rui", f"q{n}"), f"r{n}", at), f"r{n}", at)
    books.commit()
    journal.close()


def table(text: str) -> list[dict[str, str]]:
    assert text.startswith("\ufeff")  # by which spreadsheets know UTF-8
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def written(config: Path, *words: str) -> list[dict[str, str]]:
    found = run("jackpot", "red", "--csv", "-c", config, *words)
    assert found.exit_code == 0, found.output
    return table(found.stdout)


def closing(rows: list[dict[str, str]]) -> dict[str, Decimal]:
    return {row["account"]: Decimal(row["balance"]) for row in rows if row["type"] == "closing"}


def add_up(rows: list[dict[str, str]]) -> dict[str, Decimal]:
    """What a spreadsheet does; each running balance is compared on the way."""
    held: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        if row["type"] == "opening":
            held[row["account"]] = Decimal(row["balance"])
        elif row["amount"]:
            held[row["account"]] += Decimal(row["amount"])
            assert held[row["account"]] == Decimal(row["balance"]), row
    return {account: held[account] for account in closing(rows)}


def test_any_period_adds_up_and_periods_follow_each_other(config: Path) -> None:
    play(config, 30)
    whole = written(config)
    assert add_up(whole) == closing(whole)
    assert {row["currency"] for row in whole} == {"MOP"}
    assert {row["pool"] for row in whole} == {"red"}
    first = written(config, "--to", "2026-11-20T12:10:00")
    second = written(config, "--from", "2026-11-20T12:10:00", "--to", "2026-11-20T12:20:00")
    third = written(config, "--from", "2026-11-20T12:20:00")
    for part in (first, second, third):
        assert add_up(part) == closing(part)
    opened = {row["account"]: Decimal(row["balance"]) for row in second if row["type"] == "opening"}
    assert opened == closing(first)
    numbers = [row["entry"] for part in (first, second, third) for row in part if row["type"] not in ENDS]
    assert numbers == [row["entry"] for row in whole if row["type"] not in ENDS]
    assert abs(sum(closing(whole).values(), Decimal(0))) < Decimal("0.0001")  # 3/7 of a bet has no end as decimals
    paid = [row for row in whole if row["type"] == "paid"]
    assert [(row["account"], row["amount"]) for row in paid] == [("pending", "-49.98000000"), ("paid", "49.98000000")]


ENDS = ("opening", "closing")


def test_a_period_without_entries_opens_and_closes_alike(config: Path) -> None:
    play(config, 3)
    later = written(config, "--from", "2026-12-01", "--to", "2026-12-02")
    assert {row["type"] for row in later} == set(ENDS)
    assert closing(later) == closing(written(config))
    before = written(config, "--to", "2026-11-01")
    assert set(closing(before).values()) == {Decimal(0)}


def test_entries_of_people_name_them_and_the_old_and_the_new_value(config: Path) -> None:
    play(config, 2)
    terms = load(config).jackpot[0].terms()
    prizes = {**terms.prizes, "double_pairs": terms.prizes["single_pair"]}
    new = replace(terms, limit=5_000_000, visible="1/2", prizes=prizes)
    decide(config, Adjust("hidden", 500, EVIL), SetTerms(new, "new year"), Reset("closed"))
    rows = written(config)
    of_two = [row for row in rows if row["people"] == "ana, rui"]
    adjusted = next(row for row in of_two if row["type"] == "adjusted")
    assert adjusted["changed"] == "hidden: 0.00 -> 5.00"
    assert adjusted["reason"] == f"'{EVIL}"  # no formula
    changed = next(row for row in of_two if row["type"] == "changed")
    assert changed["changed"] == "visible_rate: 3/7 -> 1/2; limit: 0.00 -> 50000.00; prize:double_pairs: -> 50.00"
    proposed = [row["changed"] for row in rows if row["type"] == "proposed"]
    assert proposed[1:3] == ["hidden: 0.00 -> 5.00", changed["changed"]]
    states = [
        (row["type"], row["people"], row["changed"]) for row in rows if row["win"] == "bac-1:1/1" and row["people"]
    ]
    assert states[0] == ("confirmed", "ana", "win_state: pending -> confirmed")
    assert states[1] == ("paid", "ana, rui", "win_state: confirmed -> paid")
    said = run("jackpot", "red", "--entries", "100", "-c", config).stdout
    assert "by ana and rui" in said
    assert "hidden: 0.00 MOP -> 5.00 MOP" in said
    assert "visible_rate: 3/7 -> 1/2" in said


def test_what_cannot_be_exported_is_said(config: Path) -> None:
    play(config, 1)
    other = '[[jackpot]]\nname = "blue"\ntables = ["bac-1"]\nseed = 0\nvisible = "0"\n'
    other += 'counts = "devices"\nwins = "devices"\n'
    config.write_text(config.read_text(encoding="utf-8") + other, encoding="utf-8")
    assert "name one pool of red, blue" in run("jackpot", "--csv", "-c", config).output
    assert "the pool blue has not begun yet" in run("jackpot", "blue", "--csv", "-c", config).output
    assert (
        "--to must be after --from"
        in run("jackpot", "red", "--csv", "--from", "2026-11-21", "--to", "2026-11-20", "-c", config).output
    )
    assert "--csv" in run("jackpot", "red", "--from", "2026-11-21", "-c", config).output


def test_entries_that_are_gone_are_named_and_the_rest_adds_up(config: Path) -> None:
    play(config, 5)
    one = load(config).jackpot
    (pool,) = read_pools(config.parent / "jackpots.db", one, 100, all_checked=True)
    made = BooksTable("red", "MOP", 2, pool.book.unit, None, None)
    lines = [row for row in reversed(pool.entries) if row.seq not in (4, 5)]
    rows = [dict(zip(BooksTable.COLUMNS, row, strict=True)) for line in lines for row in made.add_row(line)]
    rows += [dict(zip(BooksTable.COLUMNS, row, strict=True)) for row in made.end({})]
    assert [row["text"] for row in rows if row["type"] == "missing"] == ["entries 4 to 5 are not here"]
    assert add_up(rows) == closing(rows)
