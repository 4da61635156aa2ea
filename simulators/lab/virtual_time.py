"""A pit that runs as fast as the machine goes: edge, rules, devices and dealers in one process, on a clock that jumps.

Over real ttys, real pyusb and a real broker, by the same drivers as in production. Used by the headless demo, by the
fault campaign and by the tests of every device's faults.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.edge.links import usb as links_usb
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from daemon.virtual_clock import JumpingLoop
from simulators.clock import Pace
from simulators.lab.broker import Broker
from simulators.lab.pit import SITE, Pit, UnderWay

__all__ = ["House", "all_out", "jumping", "run_jumping"]

# Real seconds without any new result after which what is missing counts as lost.
PATIENCE = 15.0
# Real seconds in which whatever is under way in one process arrives.
GIVEN_UP = 2.0

T = TypeVar("T")


class House(Struct):
    """All that runs."""

    pit: Pit
    edge: Edge
    consumer: Consumer
    picture: SiteState
    pace: Pace
    broker: Broker
    waiting_since: float | None = None
    settling: bool = False
    """Time runs as on the wall from now on."""

    @property
    def busy(self) -> bool:
        """Whether something is still under way between any two of them: then no time limit may pass meanwhile."""
        if self.settling or not (self.edge.connected and self.consumer.connected and self.picture.connected):
            return True
        if self.edge.outbox.depth or self.consumer.outbox.depth:
            return True
        waits = (self.pit.asking and not self.edge.desk.at_work) or any(map(self._behind, self.pit.tables))
        if not waits:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = time.monotonic()
        # What does not come in this time was lost, by a fault that was made on purpose: nobody waits for it.
        return waits and time.monotonic() - (self.waiting_since or 0.0) < GIVEN_UP

    def _behind(self, name: str) -> bool:
        """Whether rules or display have not yet heard what the edge or the rules said of a table."""
        newest = self.edge.journal.last(name)
        view = self.picture.tables.get(name)
        if view is None or view.events < newest:
            return True
        if not self.edge.retained.waiting and any(
            post.online != view.online.get(post.device.name) for post in self.edge.sessions if post.table == name
        ):
            return True
        if not self.pit.tables[name].ruleset:
            return False
        if self.consumer.position(name) < newest:
            return True
        # Dealers compare the cards on the display too, not the phase alone.
        shown = {"round": view.round, "phase": view.phase, "detail": view.detail}
        stands = msgspec.json.decode(msgspec.json.encode(self.consumer.view(name)))
        return not self.consumer.retained.waiting and stands != shown


def run_jumping(body: Callable[[list[Callable[[], bool]]], Coroutine[Any, Any, T]]) -> T:
    """Run `body` on a loop whose clock jumps; what it is given holds the question whether anything is under way."""
    busy: list[Callable[[], bool]] = [lambda: True]
    with asyncio.Runner(loop_factory=partial(JumpingLoop, busy=lambda: busy[0]())) as runner:
        return runner.run(body(busy))


@contextlib.asynccontextmanager
async def jumping(pit: Pit, busy: list[Callable[[], bool]], *, embedded: bool = False) -> AsyncIterator[House]:
    """Everything running and connected; ended in order."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    pace = Pace()
    broker = Broker(pit.directory, embedded=embedded)
    await broker.start()
    usb_before = links_usb.backend
    try:
        pit.open(pace, broker.port, broker.version)
        config = parse(pit.config(broker.port, broker.version))
        edge_journal, rules_journal = Journal(Path(config.edge.journal)), Journal(Path(config.rules.journal))
        edge = Edge(config, edge_journal, now=loop.utc)
        consumer = Consumer(config, rules_journal)
        picture = SiteState(config.mqtt, SITE, from_start=True)
        picture.on_opened.append(pit.opened)
        picture.on_result.append(pit.heard)
        picture.on_event.append(pit.saw)
        posts = {f"{post.table}/{post.device.name}": post for post in edge.sessions}
        under_way = UnderWay(pit, lambda name: posts[name].traffic)
        house = House(pit, edge, consumer, picture, pace, broker)
        busy[0] = lambda: house.busy or under_way()
        parts = (pit.live(), pit.serve(config.mqtt), edge.run(), consumer.run(), picture.run("demo-picture"))
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(part) for part in parts]
            try:
                yield house
            finally:
                busy[0] = lambda: True
                for task in running:
                    task.cancel()
        edge_journal.close()
        rules_journal.close()
    finally:
        links_usb.backend = usb_before
        await broker.kill()  # it has nothing to keep, and takes a tenth of a second to end in order


async def all_out(pit: Pit, picture: SiteState, dealt: dict[str, int], patience: float = PATIENCE) -> None:
    """Wait for the results of all rounds dealt, as long as some still come."""
    count, since = -1, time.monotonic()
    while any(len(pit.outcomes[name]) < dealt[name] for name in dealt if pit.tables[name].ruleset):
        now = sum(map(len, pit.outcomes.values()))
        if now != count:
            count, since = now, time.monotonic()
        if time.monotonic() - since > patience:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                picture.changed.clear()
                await picture.changed.wait()
