"""The floor beside the site's ledger: whose figures count, and what the page says of it."""

import html
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from console_floor import CONFIG, Console

from daemon.console.live import Viewer
from daemon.console.site.floor import compared, starts, total
from daemon.console.site.turnover import Group

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
OWN = Group(
    *("bac-12", "macau.baccarat", 0, 40, 1, 39, 39_000, 30_000, 39_000, 30_000, 500_000_000, 9e6, 10, 1, 0),
    *(0, 3_600_000_000),
)  # fmt: skip
LEDGER = msgspec.structs.replace(OWN, figured=0, figured_paid=0, expected=0, off2=0.0, void_unknown=1, own=False)


def lines_of(own: list[Group], ledger: list[Group]) -> list[Group]:
    return compared(own, ledger, NOON).best(own)


def test_rounds_that_both_have_keep_their_expected_win() -> None:
    halves = [
        msgspec.structs.replace(LEDGER, rounds=20, void=n, with_bets=20 - n, turnover=19_500, paid=15_000)
        for n in (0, 1)
    ]
    found = compared([OWN], halves, NOON)
    assert (found.best([OWN]), found.behind) == ([OWN], frozenset())


@pytest.mark.parametrize("name", ["rounds", "void", "with_bets", "turnover", "paid"])
def test_a_difference_from_the_expected_win_is_not_known_where_the_console_lacks_rounds(name: str) -> None:
    """Win and expected win are of the same rounds, or there is no comparison: of the line, and of the total."""
    more = msgspec.structs.replace(LEDGER, **{name: getattr(LEDGER, name) + 1})
    other = msgspec.structs.replace(OWN, table="bac-13")
    [kept, replaced] = lines_of([OWN, other], [more, msgspec.structs.replace(LEDGER, table="bac-13")])
    assert (kept, replaced) == (other, more)
    for groups in ([more], [kept, more]):
        line = total("", groups, pars={}, waits={}, parts=range(1))
        assert (line.expected, line.compared, line.band, line.chance, line.void_expected) == (None,) * 3 + (
            "unknown",
            None,
        )
        assert line.turnover == sum(one.turnover for one in groups)
        assert line.rounds_per_hour == pytest.approx(sum(one.rounds - 1 for one in groups) / len(groups))


def test_a_ledger_with_fewer_rounds_does_not_count_and_its_table_is_named() -> None:
    fewer = msgspec.structs.replace(LEDGER, rounds=39, turnover=99_000)
    for ledger in ([fewer], []):
        found = compared([OWN], ledger, NOON)
        assert (found.best([OWN]), found.behind) == ([OWN], frozenset({"bac-12"}))


def test_a_table_of_which_the_console_received_nothing_has_the_figures_of_the_ledger() -> None:
    assert lines_of([], [LEDGER]) == [LEDGER]


@pytest.mark.parametrize(
    ("by", "long", "parts"), [("table", 4, [0, 1, 2, 3, 4, 5]), ("hour", 4, [0, 4]), ("day", 9, [0])]
)
def test_the_ledger_is_asked_for_the_parts_that_make_lines(by: str, long: int, parts: list[int]) -> None:
    assert starts(range(6), by, lambda group: group.part // long) == parts  # type: ignore[arg-type, return-value]


async def test_a_ledger_that_does_not_answer_leaves_the_figures_of_the_console(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")
    console = Console(tmp_path, config=f'{CONFIG}[ledger]\nreports = "host=/nowhere dbname=feltd"\n')
    try:
        with console.store.write() as db:
            at = int(console.now.timestamp()) * 1_000_000
            values = ("bac-12", "r", at, at, "macau.baccarat", 0, 1, 41_000, 0, 41_000, 0, 500)
            db.execute(f"INSERT INTO round_money VALUES ({', '.join('?' * 12)})", values)
        async with console.browser("manager") as browser:
            page = (await browser.get("/floor")).text
            file = (await browser.get("/floor.csv")).text
        [name] = re.findall('data-live="(floor/[^"]*)"', page)
        known = console.house.live.html(html.unescape(name), Viewer("en", "manager"))
        asked_never = console.house.live.html("floor/game/2026-11-20T00:00/2026-11-21T00:00", Viewer("en", "manager"))
    finally:
        console.house.close()
        console.store.close()
        console.journal.close()
    for text in (page, known):
        assert "The ledger gave no answer" in text
        assert "The figures are those that this console received." in text
        assert "410.00" in text
    assert "Load the page again to read the site" in asked_never
    assert file.splitlines()[1].endswith(","), "ledger_until is empty"
