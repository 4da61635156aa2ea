"""A simulated pit in virtual time: edge, rules, devices and dealers in one process, as fast as the machine allows.

Over real ttys, real pyusb and a real broker, by the same drivers as in production. Used by the headless demo, by the
benchmark of tables and by the tests of every device's faults.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from daemon.broker import mqtt5_session
from daemon.config.model import Config, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.edge.links import usb as links_usb
from daemon.jackpots.process import Jackpots
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from daemon.virtual_clock import JumpingLoop
from simulators.clock import Pace
from simulators.lab.broker import Broker
from simulators.lab.pit import SITE, Pit, UnderWay
from simulators.lab.pools import Supervisors

__all__ = ["RunningPit", "run_in_virtual_time", "running_in_virtual_time", "wait_for_results"]

# Seconds without a new result after which the missing results count as lost.
RESULT_TIMEOUT_S = 15.0
# The same if the account would be wrong without them.
LOST_TIMEOUT_S = 60.0
# Seconds within which a message between two parts of one process arrives.
DELIVERY_TIMEOUT_S = 2.0

# Virtual time may jump over the broker's answer to a ping, or to a subscription of a device's link.
MQTT_TIMEOUT_S = 60_000

# Simulated seconds until a supervisor confirms or pays a jackpot.
PATIENCE_S = 20.0

T = TypeVar("T")


class RunningPit(Struct):
    """The parts of a running pit."""

    pit: Pit
    config: Config
    edge: Edge
    consumer: Consumer
    site: SiteState
    pace: Pace
    broker: Broker
    pools: Jackpots | None = None
    people: Supervisors | None = None
    waiting_since: float | None = None
    settling: bool = False
    """True: time runs in step with the wall clock from now on."""

    @property
    def busy(self) -> bool:
        """Whether a message is still under way between two parts. Virtual time does not jump meanwhile."""
        if self.settling or not (self.edge.connected and self.consumer.connected and self.site.connected):
            return True
        if self.edge.outbox.depth or self.consumer.outbox.depth:
            return True
        asking = self.pit.asking
        if self.pools is not None and self.people is not None:
            if not self.pools.connected or self.pools.outbox.depth or self.pools.retained.waiting:
                return True
            asking = asking or self.pools.signs.asking or self.people.asking
        waits = (asking and not self.edge.commands.at_work) or any(map(self._behind, self.pit.tables))
        if not waits:
            self.waiting_since = None
            return False
        # Seconds of the loop, which stop while this process cannot run.
        now = self.pace.now()
        if self.waiting_since is None:
            self.waiting_since = now
        # A message that does not arrive in this time was lost by an injected fault.
        return now - self.waiting_since < DELIVERY_TIMEOUT_S

    def _behind(self, name: str) -> bool:
        """Whether the rules or the read model lag behind the edge or the rules for a table."""
        newest = self.edge.journal.last(name)
        view = self.site.tables.get(name)
        if view is None or view.events < newest:
            return True
        if not self.edge.retained.waiting and any(
            session.online != view.online.get(session.device.name)
            for session in self.edge.sessions
            if session.table == name
        ):
            return True
        if not self.pit.tables[name].ruleset:
            return False
        if self.consumer.position(name) < newest or self.pools_behind(name):
            return True
        # Dealers compare the cards on the display, not only the phase.
        shown = {"round": view.round, "phase": view.phase, "detail": view.detail}
        stands = msgspec.json.decode(msgspec.json.encode(self.consumer.view(name)))
        return not self.consumer.retained.waiting and stands != shown

    async def until_pools_are_through(self) -> None:
        """Wait until the jackpots have used all results, for at most the time that messages take."""
        for _ in range(int(RESULT_TIMEOUT_S / 0.05)):
            if not any(map(self.pools_behind, self.pit.tables)):
                return
            await asyncio.sleep(0.05)

    def pools_behind(self, table: str) -> bool:
        """Whether a jackpot has not yet used all verdicts of the rules on this table."""
        if self.pools is None:
            return False
        newest = self.consumer.journal.last(table)
        used = f"rules/{self.consumer.journal.name}/{table}"
        books = [self.pools.books[one.name] for one in self.pools.config.jackpot if table in one.tables]
        return any(book.heard.get(used, 0) < newest for book in books)


def run_in_virtual_time(body: Callable[[list[Callable[[], bool]]], Coroutine[Any, Any, T]]) -> T:
    """Run `body` on a loop with virtual time. It gets a list with one function: whether a message is under way."""
    busy: list[Callable[[], bool]] = [lambda: True]
    with asyncio.Runner(loop_factory=partial(JumpingLoop, busy=lambda: busy[0]())) as runner:
        return runner.run(body(busy))


@contextlib.asynccontextmanager
async def running_in_virtual_time(
    pit: Pit, busy: list[Callable[[], bool]], *, embedded: bool = False
) -> AsyncIterator[RunningPit]:
    """Start broker, edge, rules, jackpots, devices and read model; stop them at the end, and kill the broker last."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    pace = Pace()
    broker = Broker(pit.directory, embedded=embedded)
    await broker.start()
    usb_before, mqtt_before = links_usb.backend, (mqtt5_session.KEEPALIVE_S, mqtt5_session.ANSWER_TIMEOUT_S)
    mqtt5_session.KEEPALIVE_S = mqtt5_session.ANSWER_TIMEOUT_S = MQTT_TIMEOUT_S
    try:
        pit.open(pace, broker.port, broker.version)
        config = parse(pit.config(broker.port, broker.version))
        edge_journal, rules_journal = Journal(Path(config.edge.journal)), Journal(Path(config.rules.journal))
        edge = Edge(config, edge_journal, now=loop.utc)
        consumer = Consumer(config, rules_journal)
        site = SiteState(config.mqtt, SITE, from_start=True)
        site.on_opened.append(pit.opened)
        site.on_result.append(pit.heard)
        site.on_event.append(pit.saw)
        sessions = {f"{session.table}/{session.device.name}": session for session in edge.sessions}
        under_way = UnderWay(pit, lambda name: sessions[name].traffic, loop.time)
        running_pit = RunningPit(pit, config, edge, consumer, site, pace, broker)
        busy[0] = lambda: running_pit.busy or under_way()
        parts = [pit.live(), pit.serve(config.mqtt), edge.run(), consumer.run(), site.run("demo-picture")]
        books = None
        if config.jackpot:
            books = Journal(Path(config.jackpots.journal))
            pools, people = Jackpots(config, books, now=loop.utc), Supervisors(SITE, pit.chance("people"), loop.utc)
            running_pit.pools, running_pit.people = pools, people
            parts += [pools.run(), people.run(config.mqtt), people.work(PATIENCE_S)]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(part) for part in parts]
            try:
                yield running_pit
            finally:
                busy[0] = lambda: True
                for task in running:
                    task.cancel()
        edge_journal.close()
        rules_journal.close()
        if books is not None:
            books.close()
    finally:
        links_usb.backend = usb_before
        mqtt5_session.KEEPALIVE_S, mqtt5_session.ANSWER_TIMEOUT_S = mqtt_before
        await broker.kill()  # it has nothing to store, and an orderly end takes a tenth of a second


async def wait_for_results(
    pit: Pit,
    site: SiteState,
    dealt: dict[str, int],
    timeout_s: float = RESULT_TIMEOUT_S,
    is_lost: Callable[[], bool] = lambda: False,
) -> None:
    """Wait for the results of all rounds dealt, until none came for `timeout_s`.

    A void round may have no result. While `is_lost()` is true, a result is missing: on a busy computer it may be late,
    so the wait ends only when none came for LOST_TIMEOUT_S. Results beyond the number of dealt rounds come from wheels
    that spin without a dealer; they are not waited for.
    """
    clock = asyncio.get_running_loop().time
    count, since, judged, lost = -1, clock(), -1, False
    while True:
        now = sum(min(len(pit.outcomes[name]), rounds) for name, rounds in dealt.items())
        if now != count:
            count, since = now, clock()
        idle_s = clock() - since
        complete = all(len(pit.outcomes[name]) >= dealt[name] for name in dealt if pit.tables[name].ruleset)
        if complete or idle_s > timeout_s:
            if (results := sum(map(len, pit.outcomes.values()))) != judged:
                judged, lost = results, is_lost()
            if not lost or idle_s > LOST_TIMEOUT_S:
                return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                site.changed.clear()
                await site.changed.wait()
