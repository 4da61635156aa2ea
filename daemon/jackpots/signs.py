"""Shows the amounts of pools on signs: the last amount counts, a sign that does not answer is an alert.

A sign is a device of an edge and obeys `show-amount` and `announce`. A slow sign is sent the newest amount only, so it
never falls behind, and a sign that is gone changes nothing in the books. A slot machine shows amounts and announces
nothing; it is sent its amount again and again, because it must stop when nobody knows whether the amount still stands.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import msgspec
import structlog

from daemon.broker.retained import Retained
from daemon.broker.session import UNREADABLE, Message, Session
from daemon.config.model import Config, Jackpot
from daemon.jackpots.sites import display_topic, topic_at
from protocols.contract.commands import Announce, Command, Reply, Request, ShowAmount, name_of
from protocols.contract.documents import Alert

__all__ = ["Signs"]

ANSWER_S = 5.0
"""Seconds for a sign to answer."""
LIFE = timedelta(seconds=10)
PAUSE_S = 0.2
"""Seconds between two amounts on one sign: it counts up smoothly and is not flooded."""
AGAIN_S = 5.0
"""Seconds until a sign that did not answer is tried again."""
RENEW_S = 15.0
"""Seconds until a slot machine is sent the same amount again."""
MOST_WAITING = 5
REMEDY = "check the sign's power, cable and edge (feltd detect); the pool and its books are right without it"


class _Sign:
    """One display of one pool. `shown`: what it confirmed; None: not known."""

    def __init__(self, pool: Jackpot, place: str) -> None:
        self.pool = pool
        self.place = place
        self.table, _, self.device = place.rpartition("/")
        self.is_machine = place in pool.machines
        self.wanted: int | None = None
        self.shown: int | None = None
        self.announcements: deque[str] = deque(maxlen=MOST_WAITING)
        self.changed = asyncio.Event()
        self.silent = False


class Signs:
    """The signs of all pools."""

    def __init__(
        self,
        config: Config,
        retained: Retained,
        log: structlog.typing.FilteringBoundLogger,
        now: Callable[[], datetime],
    ) -> None:
        """`now` is the clock for the expiry of commands."""
        self._site = config.site.name
        self._name = config.jackpots.name
        self._retained = retained
        self._log = log
        self._now = now
        self._count = 0
        self._boot = f"{now():%H%M%S%f}"
        self._signs = [_Sign(pool, place) for pool in config.jackpot for place in pool.displays]
        self._answers: dict[str, asyncio.Future[Reply]] = {}

    @property
    def asking(self) -> bool:
        """Whether the answer of a sign is awaited."""
        return bool(self._answers)

    def topics(self) -> list[str]:
        """Where signs answer."""
        kinds = (ShowAmount, Announce)
        return [
            display_topic(self._site, sign.place, f"cmd/{name_of(kind)}/result")
            for sign in self._signs
            for kind in kinds
        ]

    def show(self, pool: str, amount: int) -> None:
        """The amount of a pool changed."""
        for sign in self._signs:
            if sign.pool.name == pool and sign.wanted != amount:
                sign.wanted = amount
                sign.changed.set()

    def announce(self, pool: str, amount: int) -> None:
        """A pool was won."""
        for sign in self._signs:
            if sign.pool.name == pool and not sign.is_machine:
                whole, part = divmod(amount, 10**sign.pool.decimals)
                cents = f".{part:0{sign.pool.decimals}}" if sign.pool.decimals else ""
                sign.announcements.append(f"JACKPOT {whole:,}{cents}")
                sign.changed.set()

    def heard(self, message: Message) -> None:
        """An answer of a sign."""
        try:
            reply = msgspec.json.decode(message.payload, type=Reply)
        except UNREADABLE:
            return
        answer = self._answers.get(reply.id)
        if answer is not None and not answer.done():
            answer.set_result(reply)

    async def run(self, session: Session) -> None:
        """Drive all signs while the session lasts."""
        async with asyncio.TaskGroup() as group:
            for sign in self._signs:
                sign.shown = None
                sign.changed.set()
                group.create_task(self._drive(session, sign))

    async def _drive(self, session: Session, sign: _Sign) -> None:
        while True:
            try:
                async with asyncio.timeout(RENEW_S if sign.is_machine else None):
                    await sign.changed.wait()
            except TimeoutError:
                sign.shown = None
            sign.changed.clear()
            while sign.announcements:
                await self._tell(session, sign, Announce(sign.announcements.popleft()))
            if (amount := sign.wanted) is None or amount == sign.shown:
                continue
            if await self._tell(session, sign, ShowAmount(amount, sign.pool.sign_level)):
                sign.shown = amount
            else:
                sign.changed.set()
            await asyncio.sleep(AGAIN_S if sign.silent else PAUSE_S)

    async def _tell(self, session: Session, sign: _Sign, command: Command) -> bool:
        """Whether the sign did it."""
        self._count += 1
        id_ = f"{self._name}-{self._boot}-{self._count}"[-64:]
        name = name_of(command)
        args = msgspec.to_builtins(command)
        del args["command"]
        request = Request(id_, self._now() + LIFE, msgspec.Raw(msgspec.json.encode(args)))
        self._answers[id_] = answer = asyncio.get_running_loop().create_future()
        topic = display_topic(self._site, sign.place, f"cmd/{name}")
        try:
            refused = partial(self._refused, answer, id_, name)
            await session.publish(topic, msgspec.json.encode(request), vital=False, refused=refused)
            async with asyncio.timeout(ANSWER_S):
                reply = await answer
            text = "" if reply.status == "done" else f"{reply.status}: {reply.text}"
        except TimeoutError:
            text = f"no answer in {ANSWER_S:g} s"
        finally:
            del self._answers[id_]
        self._alert(sign, text)
        return not text

    @staticmethod
    def _refused(answer: asyncio.Future[Reply], id_: str, name: str, reason: str) -> None:
        """The broker took the command not."""
        if not answer.done():
            answer.set_result(Reply(id_, name, "failed", f"the broker refuses it: {reason}"))

    def _alert(self, sign: _Sign, text: str) -> None:
        if bool(text) == sign.silent:
            return
        sign.silent = bool(text)
        topic = topic_at(self._site, sign.table, f"alert/{self._name}-sign-{sign.device}")
        if not text:
            self._retained.put(topic, b"")
            self._log.info("jackpot.sign_shows", sign=sign.place)
            return
        said = f"the sign does not show the amount of {sign.pool.name}: {text}"
        self._log.warning("jackpot.sign_silent", sign=sign.place, text=said, remedy=REMEDY)
        alert = Alert(device=sign.device, code="jackpot.sign", text=said, severity="warning", remedy=REMEDY)
        self._retained.put(topic, msgspec.json.encode(alert))
