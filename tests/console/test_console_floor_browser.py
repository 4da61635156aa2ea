"""A day on the floor in a real browser: tables open, play, fills, doubt, closing and count.

Broker, edge, rules and console are real. At the end the manager's numbers equal a sum over the journals of edge and
rules, made here without the console's code.
"""

import csv
import io
import itertools
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import httpx
import pyotp
import pytest
from axe_core_python.selenium import Axe
from dealer_floor import DealerFloor, table_of
from floor import Browser, browser, opened
from manager_day import Sheets, by_counts, by_rounds

from daemon.console.auth.users import By
from protocols.contract.events import EventsMissed
from simulators.lab.broker import find_mosquitto

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromium-driver is not installed"),
]
FANTAN, ROULETTE = "macau.fantan", "macau.roulette"
TABLES = table_of(FANTAN), table_of(ROULETTE)
LAUNCHED = ("ball_launched", {"ball": "1", "rotor": "2"})
NUMBER = itertools.count(1)


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DealerFloor]:
    with opened(DealerFloor(tmp_path_factory.mktemp("floor"), (FANTAN, ROULETTE))) as one:
        users = one.house.access.users

        def factors() -> None:
            secret = pyotp.random_base32()
            code = pyotp.TOTP(secret).at(datetime.now(UTC) - timedelta(seconds=30))
            users.set_factor(By("sam", "supervisor"), "sam", secret, code)
            users.confirm(By("test", "system"), "sam")

        one.do(factors)
        yield one


class Day(Sheets):
    """The people of a day, and what they do."""

    def __init__(self, floor: DealerFloor, page: Browser) -> None:
        super().__init__(page, lambda: floor.house.site.edges)
        self.floor = floor

    def keys(self, table: str, *keys: tuple[str, dict[str, str]], who: str = "dora") -> None:
        """Press keys of the dealer's page."""
        cookies = {"feltd": self.floor.secret(who)}
        with httpx.Client(base_url=self.floor.url, cookies=cookies, headers={"origin": self.floor.url}) as browser:
            for key, values in keys:
                form = {"id": f"press-{next(NUMBER):08d}"} | values
                answer = browser.post(f"/dealer/{table}/key/{key}", data=form)
                assert answer.status_code == 303, (key, answer.text[-400:])
                assert "wrong" not in answer.headers.get("location", ""), (key, answer.headers)

    def fantan(self, bet: str, amount: str, buttons: str) -> None:
        table = TABLES[0]
        before = self.floor.view(table).resolved
        counted = {"count": buttons}
        self.keys(
            table,
            ("buttons_separated", {}),
            ("bets_opened", {}),
            ("bet", {"seat": "1", "bet": bet, "amount": amount}),
            ("bell", {}),
            ("buttons", counted),
            ("buttons", counted),
            ("paid", {}),
        )
        self.page.when(lambda: self.floor.view(table).resolved > before)

    def roulette(self, *bets: tuple[str, str], pocket: str) -> None:
        table = TABLES[1]
        before = self.floor.view(table).resolved
        laid = [
            ("bet", {"seat": str(seat), "bet": bet, "amount": amount}) for seat, (bet, amount) in enumerate(bets, 1)
        ]
        ball = ("ball", {"pocket": pocket})
        self.keys(table, ("bets_opened", {}), *laid, ("bell", {}), LAUNCHED, ball, ball, ("paid", {}))
        self.page.when(lambda: self.floor.view(table).resolved > before)


def test_the_managers_numbers_of_a_day_are_those_of_the_journals(floor: DealerFloor) -> None:
    with browser(floor) as page:
        day = Day(floor, page)
        for table in TABLES:
            day.open(table, "1.00", "50.00")
            day.count(table, "opening", "10000.00")
        page.go("/wall")
        page.until(f"[data-live='tile/{TABLES[0]}'] .sign", "1–50")
        for buttons, amount in (("101", "1000"), ("102", "2000"), ("103", "5000")):
            day.fantan("fan:2", amount, buttons)
        day.roulette(("red", "3000"), ("straight:17", "500"), pocket="17")
        day.roulette(("red", "5001"), ("black", "2500"), pocket="8")
        assert floor.view(TABLES[1]).results[-1].settlements[0].stake == 2500, "red was above the maximum"
        day.count(TABLES[1], "fill", "200.00")
        # Events are lost while a round is open: it waits, and the supervisor declares it void.
        day.keys(TABLES[1], ("bets_opened", {}), ("bet", {"seat": "1", "bet": "red", "amount": "700"}), ("bell", {}))
        floor.report(TABLES[1], "page-1", EventsMissed(1))
        page.when(lambda: floor.view(TABLES[1]).phase == "suspended")
        day.keys(TABLES[1], ("void", {"reason": "5"}), who="sam")
        page.when(lambda: floor.view(TABLES[1]).voided == 1)
        for table in TABLES:
            day.close(table)
        day.keys(TABLES[1], ("bets_opened", {}), ("bet", {"seat": "2", "bet": "red", "amount": "700"}))
        page.when(lambda: any(one.code == "bet_at_closed_table" for one in floor.view(TABLES[1]).refusals))
        for table, drop, closing_ in ((TABLES[0], "80.00", "9961.25"), (TABLES[1], "300.00", "9870.00")):
            day.count(table, "drop", drop)
            day.count(table, "closing", closing_)
        page.come_in("mona")
        # Twelve hours: the first hour of a day of play has no line of rounds over time.
        since = {"from": (datetime.now(UTC) - timedelta(hours=12)).isoformat()}
        page.go(f"/floor?{urlencode(since)}")
        page.until("table.floor tbody th", TABLES[0])
        page.until("table.floor svg.spark")
        assert Axe().run(page.driver)["violations"] == []
        cookies = {"feltd": floor.secret("mona")}
        text = httpx.get(f"{floor.url}/floor.csv", params={"by": "table"} | since, cookies=cookies).text
        lines = {one["line"]: one for one in csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))}
        rules, edge = by_rounds(floor.directory / "rules.db"), by_counts(floor.directory / "edge.db")
        assert set(rules) == set(edge) == set(TABLES)
        for table in TABLES:
            line = lines[table]
            shown = tuple(int(line[name]) for name in ("rounds", "void_rounds", "turnover", "win"))
            assert shown == rules[table]
            assert int(line["counted_win"]) == edge[table]
            assert line["counts_missing"] == ""
        assert int(lines["total"]["turnover"]) == sum(turnover for _, _, turnover, _ in rules.values())
