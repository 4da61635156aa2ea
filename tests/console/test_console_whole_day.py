"""A whole day of a floor in Chromium over real processes: tables open, play, fills, two faults, a jackpot, a change of
shift, closing and count. The manager's numbers equal sums over the journals of edge, rules and jackpots to the coin.

Three tables in `make test`, twelve at length. Simulated dealers and players play at their devices all the time; what
people do at the console is done in the browser.
"""

import csv
import io
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from floor import Browser, browser, opened
from helpers import NIGHTLY, at_length
from jackpot_floor import TwoSupervisors, send
from manager_day import Sheets, by_counts, by_rounds

from daemon.config.model import parse
from daemon.jackpots.report import Pool, read_pools
from daemon.journal.signing import make_key
from simulators.lab.broker import find_mosquitto
from simulators.lab.pit import ORDER_KEY

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not NIGHTLY, reason="it plays a day, for minutes"),
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromium-driver is not installed"),
    pytest.mark.timeout(at_length(1200, 3600)),
]
LINKED = ("stud", "jstud")
KINDS = at_length(("fan", *LINKED), ("fan", *LINKED, "bj", "rou", "sat", "cus", "fpc", "bac", "scan", "csm", "text"))
TABLES = tuple(f"{kind}-1" for kind in KINDS)
POOL = "poker"
LINE = "article.line1"
JAM = "Cards stick in the outfeed"


class DayFloor(TwoSupervisors):
    """A pit with a dealer's page at each table and a linked jackpot. A shift begins at `change`."""

    def __init__(self, directory: Path) -> None:
        now = datetime.now(UTC)
        self.change = (now + timedelta(minutes=3)).replace(second=0, microsecond=0)
        make_key(directory / ORDER_KEY)
        shifts = [f"{at:%H:%M}" for at in (now - timedelta(hours=2), self.change)]
        more = f'shifts = {shifts}\norder_key = "{directory / ORDER_KEY}"'
        super().__init__(directory, kinds=KINDS, dealers=TABLES, console=more, luck=0.5)

    def pool(self) -> Pool:
        """The books of the jackpot, as `feltd jackpot` reads them."""
        config = parse(self.config.read_text(encoding="utf-8"))
        [found] = read_pools(self.directory / "jackpots.db", list(config.jackpot), 10_000, all_checked=True)
        return found

    def ended(self, table: str) -> int:
        """How many rounds ended there."""
        view = self.site_view.tables[table]
        return view.resolved + view.voided


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DayFloor]:
    with opened(DayFloor(tmp_path_factory.mktemp("day"))) as one:
        yield one


def fetched(floor: DayFloor, path: str, **asked: str) -> dict[str, dict[str, str]]:
    """The lines of a CSV, as the manager gets it."""
    cookies = {"feltd": floor.secret("mona")}
    text = httpx.get(f"{floor.url}{path}", params=asked, cookies=cookies, timeout=60).text
    return {one["line"]: one for one in csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))}


def plays(floor: DayFloor, page: Browser, more: int = 2) -> None:
    """Until so many more rounds ended at each table."""
    before = {table: floor.ended(table) for table in TABLES}
    for table in TABLES:
        page.when(lambda table=table: floor.ended(table) >= before[table] + more, patience=600)  # type: ignore[misc]


def fault(floor: DayFloor, page: Browser, table: str) -> None:
    """Its shuffler jams at the next packet; a technician takes the fault on the page of the device.

    On the pit another alert of the table may stand for it, and the jam has not begun then.
    """
    floor.breaks(table, "shuffler-1", "jam_outfeed")
    page.come_in("tess")
    page.go(f"/table/{table}/device/shuffler-1")
    page.until(LINE, JAM, patience=600)
    page.tap(f"{LINE} > form button", JAM)
    page.until(f"{LINE}.mine", JAM)


def repaired(floor: DayFloor, page: Browser, table: str) -> None:
    """Until no line tells of it."""
    floor.repairs(table, "shuffler-1")
    page.go(f"/table/{table}/device/shuffler-1")
    page.until(LINE, JAM, gone=True)


def jackpot(floor: DayFloor, page: Browser) -> None:
    """A win that is above what a table may pay is confirmed by one supervisor and paid by another."""

    def above() -> list[str]:
        return [one.id for one in floor.pool().book.wins if one.state == "pending" and not one.at_table]

    page.when(lambda: bool(above()), patience=600)
    within = f"[data-win='{above()[0]}']"
    page.come_in("sam")
    page.go(f"/jackpots/{POOL}")
    send(page, "confirm", within=within)
    page.come_in("sue")
    page.go(f"/jackpots/{POOL}")
    page.until(f"{within} form[action$='/order/pay'] button:not([disabled])")
    send(page, "pay", sure=True, within=within)


def compare(floor: DayFloor, page: Browser, since: datetime, until: datetime) -> dict[str, dict[str, str]]:
    """The manager's lines of a period, once they are those of the journal of the rules: corrections still come."""
    names = ("rounds", "void_rounds", "turnover", "win")
    lines: dict[str, dict[str, str]] = {}

    def equal() -> bool:
        nonlocal lines
        lines = fetched(floor, "/floor.csv", by="table", **{"from": since.isoformat(), "to": until.isoformat()})
        shown = {table: tuple(int(lines[table][name] or 0) for name in names) for table in TABLES if table in lines}
        return shown == by_rounds(floor.directory / "rules.db", since, until)

    page.when(equal)
    return lines


def test_the_managers_numbers_of_a_whole_day_are_those_of_the_journals(floor: DayFloor) -> None:
    began = datetime.now(UTC) - timedelta(hours=2)
    with browser(floor) as page:
        sheets = Sheets(page, lambda: floor.site_view.edges)
        for table in TABLES:
            sheets.open(table, "0.01", "900000.00")
            sheets.count(table, "opening", "10000.00")
        plays(floor, page)
        sheets.count(TABLES[0], "fill", "200.50")
        fault(floor, page, "stud-1")
        repaired(floor, page, "stud-1")
        fault(floor, page, "jstud-1")  # it stands over the change of shift
        page.when(lambda: datetime.now(UTC) >= floor.change, patience=300)
        page.come_in("mona")
        page.go("/alerts/report")
        page.until("main", "jstud-1")
        repaired(floor, page, "jstud-1")
        jackpot(floor, page)
        sheets.count(TABLES[1], "credit", "75.25")
        plays(floor, page)
        for table in TABLES:
            sheets.close(table)
        until = datetime.now(UTC)
        for n, table in enumerate(TABLES):
            sheets.count(table, "drop", f"{300 + n}.10")
            sheets.count(table, "closing", f"{9900 + n}.35")
        lines = compare(floor, page, began, until)
        later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        sheets_of = fetched(floor, "/floor.csv", by="table", **{"from": began.isoformat(), "to": later})
        shown = {table: (sheets_of[table]["counted_win"], sheets_of[table]["counts_missing"]) for table in TABLES}
        assert shown == {table: (str(win), "") for table, win in by_counts(floor.directory / "edge.db").items()}
        for name in ("turnover", "win"):
            known = [int(lines[table][name]) for table in TABLES if lines[table][name]]
            assert int(lines["total"][name]) == sum(known)
        assert int(lines["total"]["turnover"]) > 0
        for shift in ((began, floor.change), (floor.change, until)):
            compare(floor, page, *shift)
        books = floor.pool()
        assert books.wrong == ""
        assert books.book.balance("paid") > 0
        units = fetched(floor, "/devices.csv", by="unit")
        faulty = {line.split()[0] for line in units if " shuffler-1" in line and int(units[line]["faults"])}
        assert faulty == {f"{kind}-1" for kind in LINKED}, units
