"""A console without its network: the broker's words are said to it, its pages asked for in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import httpx
import msgspec

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.console.app import ConsoleProcess, make_app
from daemon.console.auth.users import Role
from daemon.console.site.store import Store
from daemon.journal.store import Journal
from protocols.contract.events import Event
from protocols.contract.topics import Envelope, device_topic, edge_topic, encode_envelope, table_topic

T0 = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
[console]
{console}
[[table]]
name = "bac-12"
ruleset = "macau.baccarat"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:4001"
[[table]]
name = "rou-3"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:4002"
"""


class Console:
    """A house, what it hears, and browsers to look at it."""

    def __init__(self, folder: Path, console: str = "", config: str = CONFIG) -> None:
        self.now = T0
        self.journal = Journal(folder / "actions.db")
        self.store = Store(folder / "console.db")
        self.house = ConsoleProcess(parse(config.format(console=console)), self.store, self.journal, lambda: self.now)
        self.app = make_app(self.house)
        self._seq = 0

    def wait(self, seconds: float) -> None:
        """Time goes by, and the console looks."""
        self.now += timedelta(seconds=seconds)
        self.house.watch.look()

    def again(self, **later: float) -> Self:
        """The console as it starts again with the same store; the broker is there, and the edge, and the rules."""
        one = type(self).__new__(type(self))
        one.__dict__.update(self.__dict__)
        one.now = self.now + timedelta(**later)
        self.house.past.flush()
        self.house.rounds.flush()
        one.house = ConsoleProcess(self.house.config, self.store, self.journal, lambda: one.now)
        one.app = make_app(one.house)
        one.begin()
        return one

    def connect(self) -> None:
        """The broker is there."""
        self.house.site.set_connected(True)

    def begin(self) -> None:
        """The broker is there, and the edge, and the rules."""
        self.connect()
        self.edge()
        self.edge("rules")

    def lose(self) -> None:
        """The broker is gone."""
        self.house.site.set_connected(False)

    def say(self, topic: str, payload: bytes) -> None:
        """Something comes from the broker."""
        self.house.site._look(Message(topic, payload))

    def edge(self, name: str = "edge-7", online: bool = True, **health: Any) -> None:
        """An edge says how it is."""
        self.say(edge_topic("lisboa", name, "availability"), b"online" if online else b"offline")
        if online and name != "rules":
            said = {
                "time": self.now,
                "outbox": {"depth": 3, "age_s": 0.5},
                "loop_lag_ms": 1.5,
                "disk_free": 50_000_000_000,
                "cpu_s": 12.5,
                "rss": 40_000_000,
                "boots": 4,
            }
            self.say(edge_topic("lisboa", name, "health"), msgspec.json.encode(said | health))

    def device(self, table: str, name: str, driver: str, online: bool = True, edge: str = "edge-7") -> None:
        """A device says what it is."""
        meta = msgspec.json.encode({"driver": driver, "edge": edge})
        self.say(device_topic("lisboa", table, name, "meta"), meta)
        self.say(device_topic("lisboa", table, name, "availability"), b"online" if online else b"offline")

    def event(self, table: str, device: str, event: Event) -> None:
        """Something happens at a table."""
        self._seq += 1
        source = device_topic("lisboa", table, device, "")[:-1]
        envelope = Envelope(f"edge-7:{table}:{self._seq}", source, self.now, event, self._seq)
        self.say(f"{source}/event/x", encode_envelope(envelope))

    def alert(self, table: str, name: str, **alert: Any) -> None:
        """An alert stands on the broker; without a code, it ends."""
        said = {"text": "a card is stuck", "remedy": "open the shoe", "severity": "error"}
        payload = msgspec.json.encode(said | alert) if "code" in alert else b""
        self.say(table_topic("lisboa", table, f"alert/{name}"), payload)

    def browser(self, role: Role | None = None, *, secret: str = "", **headers: str) -> httpx.AsyncClient:
        """Of somebody with that role, or with the secret of a token; None: a stranger."""
        access = self.house.access
        cookies = httpx.Cookies()
        if role is not None:
            secret = access.users.begin(f"{role}@lisboa", "10.0.0.7", "test", outside=role)
        if secret:
            cookies.set(access.cookie, secret, domain="pit.test", path="/")
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, client=("10.0.0.7", 4711)),
            base_url="http://pit.test",
            cookies=cookies,
            headers={"accept-language": "en", "origin": "http://pit.test", **headers},
        )


@contextmanager
def opened(folder: Path, console: str = "") -> Iterator[Console]:
    """A console, closed at the end."""
    one = Console(folder, console)
    try:
        yield one
    finally:
        one.house.close()
        one.store.close()
        one.journal.close()
