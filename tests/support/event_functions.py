"""Which functions an event passes in each process: counted in memory with `sys.setprofile`, on every floor.

A function counts once, however often it runs: drivers, codecs, rules, the contract and the processes alike.
Comprehensions and lambdas belong to the function around them.
"""

import asyncio
import contextlib
import gc
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, cast
from unittest.mock import Mock

import msgspec
import structlog
from console_inn import Inn
from helpers import START

from daemon.broker.session import AtOnce, Message, Session
from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.edge.links.link import StreamLink
from daemon.edge.supervisor import supervise
from daemon.journal.store import Journal
from protocols.contract.topics import Wire, encode_wire

ROOT = Path(__file__).parents[2]
FLOORS = tuple(f"{ROOT}/{floor}/" for floor in ("daemon", "drivers", "protocols", "rules"))
CLOCK = f"{ROOT}/daemon/virtual_clock.py"
CAPTURE = ROOT / "tests" / "captures" / "ss2-simulated.wire"
CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "e"
[[table]]
name = "bac-1"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel"
driver = "cammegh_ss2"
url = "tcp://localhost:1"
"""


class Passed:
    """The calls of our functions, by file and name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def _profile(self, frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(FLOORS)
            and code.co_filename != CLOCK
            and code.co_name[0] != "<"
        ):
            self.calls[f"{code.co_filename.removeprefix(f'{ROOT}/')}:{code.co_qualname}"] += 1

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        gc.collect()  # what ends with an earlier object is no part of the way of an event
        gc.disable()
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            gc.enable()

    def times(self, name: str) -> int:
        """How often a function of the contract was called."""
        return sum(count for where, count in self.calls.items() if where.endswith(f":{name}"))

    def __str__(self) -> str:
        return f"{len(self.calls)} functions\n" + "\n".join(sorted(self.calls))


class Broker:
    """The far end of a session: it keeps what is published, and delivers what the test says."""

    room = True

    def __init__(self) -> None:
        self.published: list[Message] = []
        self.arriving: asyncio.Queue[Message] = asyncio.Queue()

    def flush(self) -> None:
        """All is sent at once."""

    def send(self, topic: str, payload: bytes, *, retain: bool = False, **_options: Any) -> None:
        self.published.append(Message(topic, payload, retain))

    async def publish(self, topic: str, payload: bytes, **options: Any) -> None:
        self.send(topic, payload, **options)

    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        self.published.append(Message(topic, payload))
        return True

    async def until_room(self) -> None: ...

    async def drained(self) -> None: ...

    async def subscribe(self, *_topics: str) -> None: ...

    async def read_retained(self, *_topics: str) -> None: ...

    async def messages(self, at_once: AtOnce | None = None) -> list[Message]:
        """As `Session.messages`: the task is not woken for what `at_once` handles."""
        while True:
            arrived = [await self.arriving.get()]
            left = arrived if at_once is None else at_once(arrived)
            if left is not None:
                return left

    def events(self) -> list[str]:
        return [
            message.topic for message in self.published if "/device/" in message.topic and "/event/" in message.topic
        ]


async def turns() -> None:
    """Let the loop run until nothing is left to do now; no time passes."""
    for _ in range(30):
        await asyncio.sleep(0)


def event(type_: str, data: dict[str, Any], seq: int = 1) -> Message:
    """An event of the wheel as the edge publishes it."""
    source = "felt/1/lisboa/table/bac-1/device/wheel"
    wire = Wire(
        "1.0", f"e:bac-1:{seq}", source, type_, START, seq, "b", "j", data=msgspec.Raw(msgspec.json.encode(data))
    )
    return Message(f"{source}/event/{type_}", encode_wire(wire))


async def of_the_edge(folder: Path) -> Passed:
    """From the bytes of a ball that landed to the published event. In virtual time."""
    edge = Edge(parse(CONFIG), Journal(folder / "edge.db"), now=lambda: START)
    broker, [session] = Broker(), edge.sessions
    link = StreamLink(lambda: START)
    link.connection_made(Mock(**{"is_closing.return_value": False, "get_write_buffer_size.return_value": 0}))

    @contextlib.asynccontextmanager
    async def opener(_url: str) -> AsyncIterator[StreamLink]:
        yield link

    tasks = [
        asyncio.create_task(edge._serve(cast("Session", broker))),
        asyncio.create_task(supervise(session.device, session, opener, lambda: START, structlog.get_logger())),
    ]
    await turns()
    landed: Passed | None = None
    for line in CAPTURE.read_bytes().splitlines(keepends=True):
        passed, before = Passed(), len(broker.events())
        with passed.counted():
            link.data_received(line)
            await turns()
        await asyncio.sleep(0.2)
        if [topic.rpartition("/")[2] for topic in broker.events()[before:]] == ["ball.landed"]:
            landed = passed
            break
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    edge.journal.close()
    assert landed is not None
    return landed


async def of_the_rules(folder: Path) -> tuple[Passed, list[Message]]:
    """From a ball that landed, as it arrives, to the published verdict; and what was published. In virtual time."""
    consumer = Consumer(parse(CONFIG), Journal(folder / "rules.db"))
    broker = Broker()
    task = asyncio.create_task(consumer._serve(cast("Session", broker)))
    await asyncio.sleep(1)
    for before in (
        event("device.online", {"continuous": True}),
        event("spin.started", {}, 2),
        event("ball.launched", {"direction": "clockwise", "rotor": "anticlockwise"}, 3),
    ):
        await broker.arriving.put(before)
        await asyncio.sleep(0.1)
    await broker.arriving.put(event("bets.closed", {}, 4))
    await asyncio.sleep(0.1)
    passed, before_it = Passed(), len(broker.published)
    broker.arriving.put_nowait(event("ball.landed", {"pocket": "7"}, 5))
    with passed.counted():
        await turns()
    await asyncio.sleep(1)  # the retained result and state follow
    task.cancel()
    await asyncio.wait([task])
    consumer.journal.close()
    return passed, broker.published[before_it:]


def of_the_page(folder: Path, arrived: list[Message], before: list[Message]) -> tuple[Passed, Passed, list[str]]:
    """From messages as they arrive to what the pages show; what is written later; what changed on the pages."""
    inn = Inn(folder)
    try:
        for message in before:
            inn.house.site._look(message)
        changed: list[str] = []
        inn.house.site.on_change.append(changed.append)
        passed, written = Passed(), Passed()
        with passed.counted():
            for message in arrived:
                inn.house.site._look(message)
        with written.counted():  # every two seconds, for all events since
            inn.house.fairness.flush()
    finally:
        inn.close()
    return passed, written, changed
