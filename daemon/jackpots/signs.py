"""Shows the amounts of pools on signs: a sign counts up to the newest amount; a sign that lags raises an alert.

A sign is a device of an edge and executes `show-amount` and `announce`. A rise is counted in steps that end at the
newest amount within COUNT_S, so a slow sign never falls behind; a lower amount is shown at once. A lost sign does not
affect the books. A slot machine shows amounts and no announcements; its amount is repeated, because it must stop
showing an amount that may be outdated.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

import msgspec
import structlog

from daemon.broker.retained import Retained
from daemon.broker.session import UNREADABLE, Message, Session
from daemon.config.model import Config, Jackpot
from daemon.jackpots.sites import display_topic, topic_at
from daemon.words import words
from protocols.contract.commands import Announce, Command, Reply, Request, ShowAmount, name_of
from protocols.contract.reasons import say

__all__ = ["Signs"]

ANSWER_S = 5.0
"""Seconds for a sign to answer."""
LIFE = timedelta(seconds=10)
PAUSE_S = 0.2
"""Seconds between two amounts on one sign, so that it is not flooded."""
COUNT_S = 0.5
"""Seconds in which a sign counts up to an amount that rose."""
LATE_S = 5.0
"""Seconds: a sign with an older amount raises an alert."""
ANNOUNCED_S = 60.0
"""Seconds for which a win is announced to a sign that does not answer."""
AGAIN_S = 5.0
"""Seconds until a sign that did not answer is tried again."""
RENEW_S = 15.0
"""Seconds until a slot machine is sent the same amount again."""
MOST_WAITING = 5


class _Sign:
    """One display of one pool. `shown`: its confirmed amount; None: unknown. `right_at`: the time of that amount."""

    def __init__(self, pool: Jackpot, place: str) -> None:
        self.pool = pool
        self.place = place
        self.table, _, self.device = place.rpartition("/")
        self.is_machine = place in pool.machines
        self.wanted: int | None = None
        self.shown: int | None = None
        self.right_at = 0.0
        self.due: float | None = None
        """The time by which it must show the wanted amount."""
        self.wins: deque[tuple[float, str]] = deque(maxlen=MOST_WAITING)
        self.changed = asyncio.Event()
        self.alerted: Literal["", "silent", "late"] | None = None
        """None: an alert of the last process may be open."""

    def want(self, amount: int) -> None:
        """Set a new amount of the pool."""
        if self.wanted == amount:
            return
        if self.shown is not None and self.shown == self.wanted:
            self.right_at = _time()
        self.wanted = amount
        self.changed.set()

    def step(self, wanted: int, now: float, pace_s: float) -> int:
        """The amount to show next on the way to `wanted`; each amount takes `pace_s`."""
        if self.shown is None or wanted <= self.shown:
            return wanted
        self.due = self.due or now + COUNT_S
        left_s = self.due - now
        last = left_s < 1.5 * pace_s
        return wanted if last else self.shown + max(int((wanted - self.shown) * pace_s / left_s), 1)

    def late_s(self, now: float) -> float:
        """The age of the displayed amount in seconds."""
        return 0.0 if self.shown == self.wanted else now - self.right_at


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
        """Whether an answer of a sign is awaited."""
        return bool(self._answers)

    def topics(self) -> list[str]:
        """The topics of the signs' answers."""
        kinds = (ShowAmount, Announce)
        return [
            display_topic(self._site, sign.place, f"cmd/{name_of(kind)}/result")
            for sign in self._signs
            for kind in kinds
        ]

    def show(self, pool: str, amount: int) -> None:
        """Show a new amount of a pool."""
        for sign in self._signs:
            if sign.pool.name == pool:
                sign.want(amount)

    def announce(self, pool: str, amount: int) -> None:
        """Announce the win of a pool."""
        for sign in self._signs:
            if sign.pool.name == pool and not sign.is_machine:
                whole, part = divmod(amount, 10**sign.pool.decimals)
                cents = f".{part:0{sign.pool.decimals}}" if sign.pool.decimals else ""
                sign.wins.append((_time(), f"{whole:,}{cents}"))
                sign.changed.set()

    def received(self, message: Message) -> None:
        """Take an answer of a sign."""
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
                sign.shown = sign.due = None
                sign.changed.set()
                group.create_task(self._drive(session, sign))

    async def _drive(self, session: Session, sign: _Sign) -> None:
        sign.right_at, pace_s = _time(), PAUSE_S
        while True:
            try:
                async with asyncio.timeout(RENEW_S if sign.is_machine else None):
                    if not sign.changed.is_set():
                        await sign.changed.wait()
                        pace_s = PAUSE_S
            except TimeoutError:
                sign.shown = None
            sign.changed.clear()
            said = await self._announce_wins(session, sign) if sign.wins else ""
            began, wanted = _time(), sign.wanted
            if not said and wanted is not None and wanted != sign.shown:
                amount = wanted if sign.is_machine else sign.step(wanted, began, pace_s)
                said = await self._send(session, sign, ShowAmount(amount, sign.pool.sign_level))
                pace_s = _time() - began + PAUSE_S
                if not said:
                    sign.shown = amount
            late_s = sign.late_s(_time())
            if not said and sign.shown == wanted:
                sign.right_at, sign.due = began, None
            if said:
                self._alert(sign, "silent", said)
            elif late_s > LATE_S:
                self._alert(sign, "late", f"it shows the amount of {late_s:.0f} s ago")
            else:
                self._alert(sign, "", "")
            if said or sign.shown != sign.wanted:
                sign.changed.set()
            await asyncio.sleep(AGAIN_S if said else PAUSE_S)

    async def _announce_wins(self, session: Session, sign: _Sign) -> str:
        """Announce all waiting wins in one text, because the next announcement would replace the one before."""
        wins = [one for one in sign.wins if _time() - one[0] < ANNOUNCED_S]
        said = ""
        if wins:
            said = await self._send(session, sign, Announce("JACKPOT " + " / ".join(amount for _, amount in wins)))
        sign.wins = deque((one for one in sign.wins if said or one not in wins), MOST_WAITING)
        return said

    async def _send(self, session: Session, sign: _Sign, command: Command) -> str:
        """Send a command to a sign; returns why it failed, or ""."""
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
        except TimeoutError:
            return f"no answer in {ANSWER_S:g} s"
        finally:
            del self._answers[id_]
        return "" if reply.status == "done" else f"{reply.status}: {reply.text}"

    @staticmethod
    def _refused(answer: asyncio.Future[Reply], id_: str, name: str, reason: str) -> None:
        """Fail a command that the broker refused."""
        if not answer.done():
            answer.set_result(Reply(id_, name, "failed", f"the broker refuses it: {reason}"))

    def _alert(self, sign: _Sign, kind: Literal["", "silent", "late"], text: str) -> None:
        if kind == sign.alerted:
            return
        was, sign.alerted = sign.alerted, kind
        topic = topic_at(self._site, sign.table, f"alert/{self._name}-sign-{sign.device}")
        if not kind:
            self._retained.put(topic, b"")
            if was is not None:
                self._log.info("jackpot.sign_shows", sign=sign.place)
            return
        why = say("text", pool=sign.pool.name, why=text)
        alert = words.alert("jackpot.sign", why, device=sign.device, severity="warning")
        self._log.warning(f"jackpot.sign_{kind}", sign=sign.place, text=alert.text, remedy=alert.remedy)
        self._retained.put(topic, msgspec.json.encode(alert))


def _time() -> float:
    return asyncio.get_running_loop().time()
