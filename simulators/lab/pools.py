"""The jackpots of a simulated pit: pools that two tables share, and supervisors who confirm and pay what is won.

The supervisors read the broker as any client does and send the same orders as the console: a request without an answer
is repeated unchanged, because it may have been executed.
"""

import asyncio
import contextlib
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.broker.connection import Connect, stay_connected
from daemon.broker.session import UNREADABLE, BrokerLost, Session
from daemon.config.model import Mqtt
from daemon.journal.signing import Key
from protocols.contract.commands import Reply, Request, signed_bytes
from protocols.contract.jackpots import (
    Account,
    Adjust,
    Approve,
    Confirm,
    ConfirmMany,
    Order,
    Pay,
    PayMany,
    PendingWin,
    PoolLevel,
    PoolTerms,
    PoolWin,
    Propose,
    Reject,
    WinsPage,
    WinsRequest,
    jackpot_topic,
)
from protocols.contract.topics import ROOT

__all__ = ["LINKED", "LinkedPool", "Sent", "Supervisors", "linked_pools"]

PEOPLE = ("ana", "rui")
LIFE = timedelta(minutes=9)
BATCHES = 0.3
"""Probability that the supervisors confirm and pay all waiting wins by one order each."""
ANSWER_S = 5.0
"""Seconds until a request without an answer is repeated."""


class LinkedPool(Struct, frozen=True):
    """A pool of several tables, with its part of the configuration."""

    name: str
    tables: tuple[str, ...]
    signs: tuple[str, ...]
    terms: str

    @property
    def toml(self) -> str:
        """Its part of the configuration."""
        names = [f"{key} = {msgspec.json.encode(getattr(self, key)).decode()}" for key in ("name", "tables", "signs")]
        rest, _, prizes = self.terms.strip().partition("[jackpot.prizes]")
        return "\n".join(("[[jackpot]]", *names, f"{rest}{_BY_ARRIVAL}", f"[jackpot.prizes]{prizes}"))


# Of two tables that win at nearly the same time the one whose result comes first is paid first.
_BY_ARRIVAL = "simultaneous_s = 0" if "simultaneous_s" in PoolTerms.__struct_fields__ else ""
# By the kinds of tables. A bet's parts are fractions of a minor unit, and the limit is near.
_POOLS = {
    ("stud", "jstud"): (
        "poker",
        """
seed = 100000
visible = "2/7"
hidden = "1/11"
limit = 110000
table_limit = 10000
[jackpot.prizes]
flush = { fixed = 5000 }
full_house = { fixed = 10000 }
four_of_a_kind = { fixed = 50001 }
straight_flush = { fixed = 9000 }
royal_flush = { fixed = 90000 }
""",
    ),
    ("astud", "jastud"): (
        "poquer",
        """
currency = "AOA"
chip = 1000
seed = 10000000
visible = "2/7"
hidden = "1/11"
limit = 10005000
odd = "first"
table_limit = 100000
[jackpot.prizes]
flush = { fixed = 50000 }
full_house = { fixed = 100000 }
four_of_a_kind = { fixed = 500000 }
straight_flush = { fixed = 0 }
royal_flush = { fixed = 0 }
""",
    ),
}
LINKED: tuple[tuple[str, str], ...] = tuple(_POOLS)
"""The kinds of two tables with one jackpot."""


def linked_pools(tables: Iterable[str]) -> list[LinkedPool]:
    """The pools of a pit with these tables: those whose kinds of tables are all there."""
    found = []
    for kinds, (name, terms) in _POOLS.items():
        mine = tuple(table for table in tables if table.rpartition("-")[0] in kinds)
        if {table.rpartition("-")[0] for table in mine} == {*kinds}:
            signs = tuple(f"{table}/sign-1" for table in mine if table.startswith("j"))
            found.append(LinkedPool(name, mine, signs, terms))
    return found


class Sent(Struct):
    """An order as it was sent, and the last answer to it, "" for none."""

    pool: str
    order: Order
    status: str = ""


class Supervisors:
    """Two people. The first confirms a win and proposes changes, the second pays and approves."""

    def __init__(
        self,
        site: str,
        rng: random.Random,
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        key: Path | None = None,
    ) -> None:
        """`run` connects them, `work` lets them act. `key`: the console's key, which signs their orders."""
        self._key = Key.load(key) if key is not None else None
        self._site = site
        self._rng = rng
        self._now = now
        self._sleep = sleep
        self._session: Session | None = None
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._began = f"{uuid.uuid4().hex[:8]}"
        self.levels: dict[str, PoolLevel] = {}
        self._pages: dict[str, asyncio.Future[WinsPage]] = {}
        self.done: Counter[str] = Counter()
        """Number of each kind of order for many wins at once."""
        self.most_waiting = 0
        self._heard = asyncio.Event()
        self.sent: dict[str, Sent] = {}
        """All orders, by the id of the request."""

    @property
    def asking(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._answers)

    async def run(self, mqtt: Mqtt, connect: Connect | None = None) -> None:
        """Receive levels and answers until cancelled."""
        await stay_connected(mqtt, "supervisors", None, self._serve, logs.get(client="supervisors"), connect)

    async def _serve(self, session: Session) -> None:
        await session.subscribe(f"{ROOT}/{self._site}/jackpot/+/level", f"{ROOT}/{self._site}/jackpot/+/cmd/+/result")
        self._session = session
        try:
            while True:
                for message in await session.messages():
                    try:
                        if message.topic.endswith("/level"):
                            level = msgspec.json.decode(message.payload, type=PoolLevel)
                            self.levels[level.pool] = level
                            self.most_waiting = max(self.most_waiting, level.waiting)
                            self._heard.set()
                        elif message.topic.endswith("/cmd/wins/result"):
                            self._turned(msgspec.json.decode(message.payload, type=WinsPage))
                        else:
                            self._answered(msgspec.json.decode(message.payload, type=Reply))
                    except UNREADABLE:
                        continue
        finally:
            self._session = None

    def _answered(self, reply: Reply) -> None:
        if (sent := self.sent.get(reply.id)) is not None:
            sent.status = reply.status
        answer = self._answers.get(reply.id)
        if answer is not None and not answer.done():
            answer.set_result(reply.status)

    async def until_begun(self, pools: Collection[str]) -> None:
        """Wait until these pools have begun: they do not count earlier play."""
        while not self.levels.keys() >= set(pools):
            self._heard.clear()
            await self._heard.wait()

    async def work(self, patience: float, *, changes: float = 0.0) -> None:
        """Confirm and pay each win some seconds after it appears, and sometimes propose a change.

        `patience`: the seconds for each step, on average. `changes`: how many of a hundred steps are changes.
        """
        while True:
            await self._sleep(self._rng.uniform(0.5, 1.5) * patience)
            for pool in list(self.levels):
                for order in self._due(pool, changes):
                    await self.give(pool, order)
                if self.levels[pool].waiting > len(self.levels[pool].pending):
                    for order in await self._whole_pages(pool):
                        await self.give(pool, order)

    async def _whole_pages(self, pool: str) -> list[Order]:
        """If more wins wait than the level shows: all wins of a page in one order for each step."""
        first, second = PEOPLE
        known = [one.id for one in await self._page(pool, "pending") if one.shares]
        confirmed = [one.id for one in await self._page(pool, "confirmed")]
        self.done["a page of wins decided by one order"] += bool(known) + bool(confirmed)
        orders: list[Order] = [ConfirmMany(first, tuple(known))] if known else []
        return orders + ([PayMany(second, tuple(confirmed))] if confirmed else [])

    async def _page(self, pool: str, state: Literal["pending", "confirmed"]) -> tuple[PoolWin, ...]:
        """The oldest wins in this state; none without an answer."""
        if self._session is None:
            return ()
        request = WinsRequest(uuid.uuid4().hex[:16], 0, 100, state)
        answer: asyncio.Future[WinsPage] = asyncio.get_running_loop().create_future()
        self._pages[request.id] = answer
        try:
            await self._session.publish(jackpot_topic(self._site, pool, "cmd/wins"), msgspec.json.encode(request))
            await asyncio.wait([answer], timeout=ANSWER_S)
        except BrokerLost:
            return ()
        finally:
            del self._pages[request.id]
        return answer.result().wins if answer.done() else ()

    def _turned(self, page: WinsPage) -> None:
        answer = self._pages.get(page.id)
        if answer is not None and not answer.done():
            answer.set_result(page)

    def _due(self, pool: str, changes: float) -> list[Order]:
        """Orders for the waiting wins of a pool, and sometimes a change."""
        first, second = PEOPLE
        level, rng = self.levels[pool], self._rng
        orders: list[Order] = [Approve(second, one.id) for one in level.proposals if one.person != second]
        orders += self._batches(level) if rng.random() < BATCHES else [self._step(one) for one in level.pending]
        if rng.random() < changes / 100 and not level.proposals:
            account: Account = rng.choice(("visible", "hidden", "overflow"))
            reason = f"count of the box {len(self.sent)}"
            change: Any = Adjust(account, rng.choice((1, 7, 500, -1, -300)), reason)
            doubtful = [one.win for one in level.pending if one.combination != "royal_flush"]
            if doubtful and rng.random() < 0.3:
                change = Reject(rng.choice(doubtful), "the video shows another hand")
            orders.append(Propose(first, change))
        return orders

    @staticmethod
    def _batches(level: PoolLevel) -> list[Order]:
        """Two orders for all waiting wins, without those whose seats a person must name."""
        first, second = PEOPLE
        known = [one.win for one in level.pending if one.state == "pending" and one.shares]
        confirmed = [one.win for one in level.pending if one.state == "confirmed"]
        orders: list[Order] = [ConfirmMany(first, tuple(known))] if known else []
        return orders + ([PayMany(second, tuple(confirmed))] if confirmed else [])

    @staticmethod
    def _step(win: PendingWin) -> Order:
        first, second = PEOPLE
        if win.state == "confirmed":
            return Pay(second, win.win)
        return Confirm(first, win.win, () if win.shares else (4,))

    async def give(self, pool: str, order: Order) -> str:
        """Repeat an order until it is answered; the answer, "" if it expired without one."""
        name = str(type(order).__struct_config__.tag)
        args = msgspec.to_builtins(order)
        del args["order"]
        id_ = f"{self._began}-{len(self.sent)}"
        expires = self._now() + LIFE
        topic = jackpot_topic(self._site, pool, f"cmd/{name}")
        unsigned = Request(id_, expires, msgspec.Raw(msgspec.json.encode(args)))
        signature = self._key.sign(signed_bytes(topic, unsigned)).hex() if self._key is not None else ""
        request = msgspec.json.encode(msgspec.structs.replace(unsigned, signature=signature))
        self.sent[id_] = sent = Sent(pool, order)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[id_] = answer
        try:
            while not answer.done() and self._now() < expires - LIFE / 9:
                if self._session is not None:
                    with contextlib.suppress(BrokerLost):
                        await self._session.publish(topic, request)
                await asyncio.wait([answer], timeout=ANSWER_S)
        finally:
            del self._answers[id_]
        return sent.status
