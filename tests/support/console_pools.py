"""Pools for a console without its network: real books, whose process hears and answers within this process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
from console_floor import Console

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.jackpots.process import Jackpots
from daemon.journal.signing import Key, make_key, public_path
from daemon.journal.store import Journal
from protocols.contract.documents import ReplayAnswer, ReplayRequest
from protocols.contract.jackpots import BookEntry, jackpot_topic
from protocols.contract.results import Award, Opened, Result, Settlement
from protocols.contract.topics import Wire, edge_topic, encode_wire, table_topic

CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
[[table]]
name = "bac-12"
ruleset = "macau.baccarat"
[[table.device]]
name = "sign-1"
driver = "alpha_sign"
url = "tcp://127.0.0.1:4003"
[[table]]
name = "rou-3"
ruleset = "macau.roulette"
[[jackpot]]
name = "red"
tables = ["bac-12"]
seed = 1000000
visible = "3/7"
hidden = "1/11"
limit = 90000000
signs = ["bac-12/sign-1"]
[jackpot.prizes]
single_pair = { fixed = 5000 }
[[jackpot]]
name = "blue"
tables = ["rou-3"]
seed = 200
visible = "0.5"
"""


class PoolHouse:
    """The books of the pools `red` and `blue`, and their way to the console."""

    def __init__(self, console: Console, journal: Journal, folder: Path) -> None:
        self.console = console
        self.journal = journal
        self.key = make_key(path) if not (path := folder / "orders.pem").exists() else Key.load(path)
        signed = f'[jackpots]\norder_public_key = "{public_path(folder / "orders.pem")}"\n'
        self.keeper = Jackpots(parse(CONFIG + signed), journal, now=lambda: console.now)
        console.house.orders._key = self.key
        self.sent = 0
        self.seq: dict[str, int] = {}
        self.lost = False
        """Whether orders reach the books and their answers do not come back."""
        self.orders: list[tuple[str, bytes]] = []
        self.replays: list[ReplayRequest] = []
        console.house.site.publish = self.publish  # type: ignore[method-assign]

    async def publish(self, topic: str, payload: bytes) -> None:
        """As the broker and the process would do it."""
        pool, _, name = topic.split("/")[4:7]
        if name == "replay":
            request = msgspec.json.decode(payload, type=ReplayRequest)
            self.replays.append(request)
            last = request.last or self.journal.last(pool)
            for row in self.journal.range(pool, request.first, last):
                self.console.say(*self.keeper._message_of(row, True))
            answer = ReplayAnswer("jackpots", self.journal.name, request.first, last, self.journal.last(pool), 1)
            self.console.say(f"{topic}/result", msgspec.json.encode(answer))
            return
        if name == "wins":
            page = self.keeper.page(pool, Message(topic, payload))
            self.console.say(f"{topic}/result", msgspec.json.encode(page))
            return
        self.orders.append((topic, payload))
        reply = self.keeper.obey(pool, name, Message(topic, payload))
        if not self.lost and reply is not None:
            self.console.say(f"{topic}/result", msgspec.json.encode(reply))
        self.tell()

    def tell(self, *, events: bool = True) -> None:
        """Publish what the books have new."""
        rows = list(self.journal.after(self.sent, 1_000_000))
        for row in rows if events else ():
            self.console.say(*self.keeper._message_of(row, False))
        self.sent = rows[-1].n if rows else self.sent
        for pool in self.keeper.books:
            for leaf, value in (("level", self.keeper.level(pool)), ("books", self.keeper.books_of(pool))):
                self.console.say(jackpot_topic("lisboa", pool, leaf), msgspec.json.encode(value))
        self.console.house.pools.notify()

    def verdict(self, table: str, kind: str, data: object) -> None:
        """The rules say something of a table."""
        seq = self.seq[table] = self.seq.get(table, 0) + 1
        source = table_topic("lisboa", table, "round")
        raw = msgspec.Raw(msgspec.json.encode(data))
        wire = Wire("1.0", f"edge-7:{table}:{seq}/0", source, kind, self.console.now, seq, "", "R", False, raw)
        self.keeper.take([Message(f"{source}/event/{kind}", encode_wire(wire))])

    def opened(self, table: str, name: str) -> None:
        """A round opened."""
        self.verdict(table, "opened", Opened(name))

    def round(self, table: str, name: str, bets: tuple[tuple[int, int], ...] = (), award: Award | None = None) -> None:
        """A round ended with these bets on the jackpot, by seat and amount."""
        settled = tuple(Settlement(seat, "jackpot", stake, 0) for seat, stake in bets)
        result = Result(
            round=name,
            ruleset="macau.baccarat",
            edition="2018",
            settlements=settled,
            jackpots=(award,) if award else (),
        )
        self.verdict(table, "resolved", {"result": result})


def pair(*seats: int) -> Award:
    """A single pair: a fixed amount."""
    return Award("A", "single_pair", "fixed", "Despacho 55/2004 art. 17(8)", "", seats)


def person(console: Console, name: str, *, lang: str = "en", origin: str = "http://pit.test") -> httpx.AsyncClient:
    """The browser of a supervisor of that name, whom an OpenID provider proved."""
    secret = console.house.access.users.begin(name, "10.0.0.7", "test", outside="supervisor")
    browser = console.browser(secret=secret, origin=origin)
    browser.headers["accept-language"] = lang
    return browser


def outcome(page: str) -> tuple[str, str]:
    """Status and text of the order that the page tells of."""
    found = re.search(r'data-outcome="(\w+)"><strong>.*?</strong>(.*?)</p>', page, re.DOTALL)
    assert found is not None
    return found[1], re.sub(r"<[^>]*>", "", found[2]).strip()


def entries(house: PoolHouse, *kinds: str, pool: str = "red") -> list[BookEntry]:
    """Of these types, from the journal itself."""
    rows = house.journal.range(pool, 1, 1_000_000)
    return [msgspec.json.decode(row.data, type=BookEntry) for row in rows if row.type in kinds]


@contextmanager
def pool_house(console: Console, folder: Path, *, alive: bool = True) -> Iterator[PoolHouse]:
    """Books for a console; the broker is there. `alive`: it says that their process is online."""
    console.connect()
    journal = Journal(folder / "books.db")
    try:
        one = PoolHouse(console, journal, folder)
        if alive:
            console.say(edge_topic("lisboa", "jackpots", "availability"), b"online")
        one.tell()
        yield one
    finally:
        journal.close()
