"""An event passes few functions on its way through each process, and each process decodes it once.

Counted in memory with `sys.setprofile`: distinct functions of `daemon` and of the contract that run from the arrival of
bytes until the event was handed on. What a device's driver and a game's ruleset do with it is not counted here
(tests/rules/test_cost_of_an_event.py). The aim is 25 for each process; a limit above it is what was measured, and may
only fall.
"""

import asyncio
import contextlib
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
from helpers import START, virtual_time

from daemon.broker.session import Message, Session
from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.edge.links.link import StreamLink
from daemon.edge.supervisor import supervise
from daemon.journal.store import Journal
from protocols.contract.topics import Wire, encode_wire

LIMITS = {"edge": 37, "rules": 47, "console": 25}
ROOT = Path(__file__).parents[2]
OURS = (f"{ROOT}/daemon/", f"{ROOT}/protocols/contract/")
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
    """The calls of our functions, by file and name. Comprehensions and lambdas belong to the function around them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def _profile(self, frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(OURS)
            and code.co_filename != CLOCK
            and code.co_name[0] != "<"
        ):
            self.calls[f"{code.co_filename.removeprefix(f'{ROOT}/')}:{code.co_qualname}"] += 1

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)

    def times(self, name: str) -> int:
        """How often a function of the contract was called."""
        return sum(count for where, count in self.calls.items() if where.endswith(f":{name}"))

    def __str__(self) -> str:
        return f"{len(self.calls)} functions\n" + "\n".join(sorted(self.calls))


class Broker:
    """The far end of a session: it keeps what is published, and delivers what the test says."""

    room = True

    def __init__(self) -> None:
        self.said: list[str] = []
        self.arriving: asyncio.Queue[Message] = asyncio.Queue()

    def flush(self) -> None:
        """All is sent at once."""

    def send(self, topic: str, _payload: bytes, **_options: Any) -> None:
        self.said.append(topic)

    async def publish(self, topic: str, payload: bytes, **options: Any) -> None:
        self.send(topic, payload, **options)

    def publish_qos0(self, topic: str, _payload: bytes) -> bool:
        self.said.append(topic)
        return True

    async def until_room(self) -> None: ...

    async def drained(self) -> None: ...

    async def subscribe(self, *_topics: str) -> None: ...

    async def read_retained(self, *_topics: str) -> None: ...

    async def messages(self, at_once: object = None) -> list[Message]:
        del at_once
        return [await self.arriving.get()]

    def events(self) -> list[str]:
        return [topic for topic in self.said if "/event/" in topic]


async def turns() -> None:
    """Let the loop run until nothing is left to do now; no time passes."""
    for _ in range(30):
        await asyncio.sleep(0)


def message(type_: str, data: dict[str, Any], seq: int = 1) -> Message:
    source = "felt/1/lisboa/table/bac-1/device/wheel"
    wire = Wire(
        "1.0", f"e:bac-1:{seq}", source, type_, START, seq, "b", "j", data=msgspec.Raw(msgspec.json.encode(data))
    )
    return Message(f"{source}/event/{type_}", encode_wire(wire))


@virtual_time
async def test_from_the_link_to_the_broker(tmp_path: Path) -> None:
    """Read, decoded by the wire's codec, judged by the driver, durable, published."""
    edge = Edge(parse(CONFIG), Journal(tmp_path / "edge.db"), now=lambda: START)
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
    assert len(landed.calls) <= LIMITS["edge"], str(landed)
    assert landed.times("encode_wire") == 1
    assert landed.times("decode_wire") == landed.times("decode_data") == 0


@virtual_time
async def test_from_the_broker_to_a_verdict(tmp_path: Path) -> None:
    """Decoded, in order, used by the game, durable, published."""
    consumer = Consumer(parse(CONFIG), Journal(tmp_path / "rules.db"))
    broker = Broker()
    task = asyncio.create_task(consumer._serve(cast("Session", broker)))
    await asyncio.sleep(1)
    await broker.arriving.put(message("device.online", {"continuous": True}))
    await asyncio.sleep(0.1)
    passed = Passed()
    broker.arriving.put_nowait(message("spin.started", {}, 2))
    with passed.counted():
        await turns()
    task.cancel()
    await asyncio.wait([task])
    consumer.journal.close()
    assert len(passed.calls) <= LIMITS["rules"], str(passed)
    assert passed.times("decode_wire") == passed.times("decode_data") == 1


async def test_from_the_broker_to_the_page(tmp_path: Path) -> None:
    """Decoded, in the read model, and every page that shows it knows."""
    inn = Inn(tmp_path)
    try:
        inn.house.site._look(message("device.online", {"continuous": True, "serial": "1"}))
        changed: list[str] = []
        inn.house.site.on_change.append(changed.append)
        passed, writing = Passed(), Passed()
        arrived = message("device.online", {"continuous": True, "serial": "2"}, 2)
        with passed.counted():
            inn.house.site._look(arrived)
        assert "events/bac-1/wheel" in changed
        with writing.counted():  # every two seconds, for all events since
            inn.house.fairness.flush()
    finally:
        inn.close()
    assert len(passed.calls) <= LIMITS["console"], str(passed)
    assert passed.times("decode_wire") == passed.times("decode_data") == 1
    assert writing.times("Fairness._online") == 2
    assert writing.times("decode_wire") == writing.times("decode_data") == 0
