"""What a manager, a dealer and a supervisor do on the sheets of the tables in a browser, and sums over the journals.

The sums are made without the console's code: its numbers are compared with them.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from floor import Browser
from selenium.webdriver.support.ui import Select

from daemon.views import EdgeView

__all__ = ["Sheets", "by_counts", "by_rounds"]

BEGAN = datetime(1970, 1, 1, tzinfo=UTC)
EVER = BEGAN, datetime(9000, 1, 1, tzinfo=UTC)


class Sheets:
    """The people at the sheets of the tables: mona manages, dora deals, sam supervises."""

    def __init__(self, page: Browser, edges: Callable[[], Mapping[str, EdgeView]]) -> None:
        """`edges`: what they publish of the signs of their tables."""
        self.page, self.edges = page, edges

    def sheet(self, who: str, table: str) -> None:
        self.page.come_in(who)
        self.page.go(f"/floor/{table}")

    def open(self, table: str, minimum: str, maximum: str) -> None:
        self.sheet("mona", table)
        for name, value in (("minimum", minimum), ("maximum", maximum)):
            self.page.find(f"[name={name}]").clear()
            self.page.find(f"[name={name}]").send_keys(value)
        self.page.follow("form[action$='/sign/open'] button")
        self.until_sign(table, "open")

    def close(self, table: str) -> None:
        self.sheet("mona", table)
        self.page.follow("form[action$='/sign/close'] button", sure=True)
        self.until_sign(table, "closed")

    def until_sign(self, table: str, state: str) -> None:
        """As the edge publishes it."""

        def shown() -> bool:
            signs = [one.info.signs.get(table) for one in self.edges().values()]
            return any(one is not None and one.state == state for one in signs)

        self.page.when(shown)

    def count(self, table: str, kind: str, amount: str) -> None:
        """The dealer enters it, the supervisor confirms it."""
        self.sheet("dora", table)
        Select(self.page.find("[name=kind]")).select_by_value(kind)
        self.page.find("[name=amount]").send_keys(amount)
        self.page.follow("form.ask[action$='/count'] button.main")
        self.sheet("sam", table)
        self.page.follow(".waiting form[action$='/confirm'] button")
        self.page.until("#counts tbody", "dora")


def rows(path: Path, *types: str) -> list[tuple[str, str, dict[str, Any], datetime]]:
    """Table, type, data and time of the rows of a journal, in order."""
    marks = ",".join("?" * len(types))
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        found = db.execute(f"SELECT place, type, data, time FROM event WHERE type IN ({marks}) ORDER BY n", types)
        return [(place, kind, json.loads(data), BEGAN + timedelta(microseconds=at)) for place, kind, data, at in found]


def by_rounds(path: Path, since: datetime = EVER[0], until: datetime = EVER[1]) -> dict[str, tuple[int, int, int, int]]:
    """By table rounds, void ones, turnover and win, of the last result of each round that ended first in a period."""
    first: dict[tuple[str, str], datetime] = {}
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for table, _, data, time in rows(path, "resolved", "voided", "corrected"):
        key = table, data["result"]["round"]
        if since <= first.setdefault(key, time) < until:
            last[key] = data["result"]
    sums: dict[str, tuple[int, int, int, int]] = {}
    for (table, _), result in last.items():
        count, void, turnover, win = sums.get(table, (0, 0, 0, 0))
        if result["void"]:
            void += 1
        else:
            stakes = sum(one["stake"] for one in result["settlements"])
            turnover, win = turnover + stakes, win + stakes - sum(one["returned"] for one in result["settlements"])
        sums[table] = count + 1, void, turnover, win
    return sums


def by_counts(path: Path) -> dict[str, int]:
    """By table the win of the counts."""
    signs = {"closing": 1, "credit": 1, "drop": 1, "opening": -1, "fill": -1}
    entries = rows(path, "table.counted")
    gone = {data["reverses"] for _, _, data, _ in entries if data.get("reverses")}
    wins: dict[str, int] = {}
    for table, _, data, _ in entries:
        if not data.get("reverses") and data["entry"] not in gone:
            wins[table] = wins.get(table, 0) + signs[data["kind"]] * data["amount"]
    return wins
