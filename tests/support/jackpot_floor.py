"""Broker, jackpots and console as processes, for a browser. The test plays the rules and the edge of the sign."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyotp
from floor import OPENS_WITHIN_S, Browser, Floor

from daemon.config.model import parse
from daemon.console.auth.users import By, Users, hash_password
from daemon.console.site.store import Store
from daemon.jackpots.report import Pool, read_pools
from daemon.journal.signing import make_key
from daemon.read_model import SiteState
from protocols.contract.events import DisplayShown, encode_data
from protocols.contract.results import Award, Opened, Result, Settlement
from protocols.contract.topics import Wire, device_topic, encode_wire, table_topic
from simulators.lab.pit import SITE

CONFIG = """
[site]
name = "{site}"
[edge]
name = "edge-9"
[mqtt]
port = {port}
version = "{version}"
[jackpots]
journal = "{folder}/jackpots.db"
order_public_key = "{folder}/orders.pem.pub"
insecure = true
[console]
port = 0
order_key = "{folder}/orders.pem"
store = "{folder}/console.db"
journal = "{folder}/console-journal.db"
[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
options = {{ jackpot = "A" }}
[[table.device]]
name = "sign-1"
driver = "alpha_sign"
url = "tcp://127.0.0.1:9"
[[table]]
name = "bac-2"
ruleset = "macau.baccarat"
options = {{ jackpot = "A" }}
[[jackpot]]
name = "dragon"
tables = ["bac-1", "bac-2"]
award = "A"
seed = 100000000
visible = "3/200"
hidden = "1/300"
limit = 5000000000
signs = ["bac-1/sign-1"]
[jackpot.prizes]
four_of_a_kind = {{ fixed = 50000000 }}
double_pairs = {{ fixed = 10000000 }}
three_of_a_kind = {{ fixed = 5000000 }}
single_pair = {{ fixed = 100000 }}
paradise_straight = {{ fixed = 25000000 }}
[[table]]
name = "slot-9"
[[jackpot]]
name = "phoenix"
tables = ["slot-9"]
counts = "devices"
wins = "devices"
seed = 2500000
visible = "0.01"
"""
PEOPLE = ("sam", "sue")


def _now() -> datetime:
    return datetime.now(UTC)


class TwoSupervisors(Floor):
    """A floor on which two supervisors with confirmed accounts and second factors decide about money."""

    def __init__(self, directory: Path, **more: Any) -> None:
        """As a Floor."""
        super().__init__(directory, **more)
        self.factors: dict[str, str] = {}
        self.present = ""
        self._sessions: dict[str, str] = {}

    def _users(self) -> None:
        """The supervisors have second factors, and the inspector confirmed them."""
        super()._users()
        store = Store(self.directory / "console.db")
        try:
            users = Users(store, _now)
            users.add(By("test", "system"), "sue", "supervisor", (), hash_password("a pool of many coins"))
            for name in ("ines", *PEOPLE):
                secret = self.factors[name] = pyotp.random_base32()
                users.set_factor(
                    By(name, users.find(name).role), name, secret, pyotp.TOTP(secret).at(_now() - timedelta(seconds=30))
                )
                users.confirm(By("test", "system") if name == "ines" else By("ines", "inspector"), name)
        finally:
            store.close()

    def secret(self, name: str) -> str:
        """One session for each person: a code opens its orders for some minutes."""
        self.present = name
        if name not in self._sessions:
            self._sessions[name] = super().secret(name)
        return self._sessions[name]

    def code(self) -> str:
        """What the device of who came in last shows."""
        return pyotp.TOTP(self.factors[self.present]).now()


class JackpotFloor(TwoSupervisors):
    """Two tables with a linked pool."""

    def __init__(self, directory: Path) -> None:
        """Nothing runs yet."""
        super().__init__(directory, kinds=("bac",))
        make_key(directory / "orders.pem")
        self._seq: dict[str, int] = {}

    async def _live(self) -> None:
        await self.broker.start()
        try:
            given = {"site": SITE, "port": self.broker.port, "version": self.broker.version, "folder": self.directory}
            self.config.write_text(CONFIG.format(**given), encoding="utf-8")
            self.site_view = SiteState(parse(self.config.read_text(encoding="utf-8")).mqtt, SITE)
            async with asyncio.TaskGroup() as group:
                bodies = (self.site_view.run(), self.broker.keep(), self.jackpots.keep(), self.console.keep())
                tasks = [group.create_task(body) for body in bodies]
                try:
                    async with asyncio.timeout(OPENS_WITHIN_S):
                        await self.site_view.until(lambda: self.site_view.is_online("jackpots"))
                        while not (port := self._console_port()):  # noqa: ASYNC110 - a process says it in its log
                            await asyncio.sleep(0.05)
                    self.port = port
                    self._ready.set_result(None)
                    await self._over.wait()
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            await self.broker.stop()

    # ---- the rules and the edge

    def _publish(self, table: str, source: str, kind: str, data: bytes, journal: str, behind: str) -> None:
        key = f"{journal}/{table}"
        seq = self._seq[key] = self._seq.get(key, 0) + 1
        raw = msgspec.Raw(data)
        wire = Wire("1.0", f"edge-9:{table}:{seq}{behind}", source, kind, _now(), seq, "", journal, False, raw)
        self.wait(self.site_view.publish(f"{source}/event/{kind}", encode_wire(wire)))

    def opened(self, table: str, name: str) -> None:
        """A round opens at a table."""
        data = msgspec.json.encode(Opened(name))
        self._publish(table, table_topic(SITE, table, "round"), "opened", data, "R", "/0")

    def ended(self, table: str, name: str, bets: Sequence[tuple[int, int]] = (), *awards: Award) -> None:
        """A round ends, with these bets on the jackpot."""
        settled = tuple(Settlement(seat, "jackpot", stake, 0) for seat, stake in bets)
        said = {"en": "Banker wins", "pt": "Ganha a banca", "zh-Hant": "莊贏"}
        result = Result(
            round=name,
            ruleset="macau.baccarat",
            edition="2018",
            outcome={"winner": "banker"},
            settlements=settled,
            jackpots=awards,
            announcements=said,
        )
        data = msgspec.json.encode({"result": result})
        self._publish(table, table_topic(SITE, table, "round"), "resolved", data, "R", "/0")

    def sign_shows(self, text: str) -> None:
        """The sign of the pool shows a text."""
        data = encode_data(DisplayShown(text, confirmed=True))
        source = device_topic(SITE, "bac-1", "sign-1", "")[:-1]
        self._publish("bac-1", source, "display.shown", data, "E", "")

    def books(self, pool: str) -> Pool:
        """What `feltd jackpot` reads."""
        jackpots = [one for one in parse(self.config.read_text(encoding="utf-8")).jackpot if one.name == pool]
        [found] = read_pools(self.directory / "jackpots.db", jackpots, 1000, all_checked=True)
        return found


def send(page: Browser, form: str, *, sure: bool = False, within: str = "") -> None:
    """Press the button of an order, give the code where one is asked for, and wait for the outcome.

    `within`: what the form is in, as a selector.
    """
    page.follow(f"{within} form[action$='/order/{form}'] button:not([disabled])", sure=sure)
    page.until("[data-outcome], #code")
    if page.there("#code"):
        assert isinstance(page.floor, TwoSupervisors)
        page.write("#code", page.floor.code())
        page.follow("form:has(#code) button")
    page.until("[data-outcome]")
