"""The page of the ledger's reports: who may open it, and its message where there is no report."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from console_floor import CONFIG, Console, opened

from daemon.console.auth.users import By, Hashed, Role

AWAY = '[ledger]\nreports = "host=/nowhere dbname=feltd"\n'
LINK = 'href="/reports"'


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Console]:
    """A console whose ledger does not answer."""
    pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")
    one = Console(tmp_path, config=CONFIG + AWAY)
    yield one
    one.house.close()
    one.store.close()
    one.journal.close()


async def test_a_console_without_a_ledger_says_what_is_missing(tmp_path: Path) -> None:
    with opened(tmp_path) as console:
        async with console.browser("manager") as browser:
            page = await browser.get("/reports")
            file = await browser.get("/reports.csv")
            assert LINK not in (await browser.get("/")).text
    assert page.status_code == 200
    assert "<code>reports</code> is missing under <code>[ledger]</code>" in page.text
    assert (file.status_code, file.headers["location"]) == (303, "/reports")


async def test_a_ledger_that_is_away_is_one_sentence(away: Console) -> None:
    async with away.browser("manager") as browser:
        page = await browser.get("/reports?kind=faults&by=code&from=0001-01-01&to=9999-12-31")
        file = await browser.get("/reports.csv")
        assert LINK in (await browser.get("/")).text
    assert (page.status_code, file.status_code) == (200, 503)
    for one in (page, file):
        assert "The ledger gave no answer: try again later." in one.text
        assert "nowhere" not in one.text, "the place of the database is for the log"


@pytest.mark.parametrize("path", ["/reports", "/reports.csv"])
async def test_only_those_who_may_see_the_floor_and_all_tables_get_reports(away: Console, path: str) -> None:
    others: tuple[Role, ...] = ("viewer", "dealer", "technician", "administrator")
    for role in others:
        async with away.browser(role) as browser:
            assert (await browser.get(path)).status_code == 403, role
            assert LINK not in (await browser.get("/account")).text, role
    users = away.house.access.users
    users.add(By("root", "system"), "part", "technician", ("bac-12",), Hashed(2, 8, 1, b"salt", b"hash"))
    with away.store.write() as db:
        db.execute("UPDATE user SET role = 'manager'")  # no page and no command makes such an account
    async with away.browser(secret=users.begin("part", "10.0.0.7", "test")) as browser:
        refused = await browser.get(path)
    assert (refused.status_code, "Reports are for accounts that may see all tables." in refused.text) == (403, True)
