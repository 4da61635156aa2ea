"""A live trace: what passes on a device's wire, for a while, bounded, and no private card before its time."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import START, virtual_time
from hypothesis import given, strategies as st

from daemon.broker.mqtt5_session import MAX_UNSENT_BYTES, Mqtt5Session
from daemon.broker.mqtt311_session import Mqtt311Session
from daemon.broker.session import Will
from daemon.edge.commands import BETWEEN_ROUNDS
from daemon.edge.links.link import Way
from daemon.edge.tracing import LINES, PIECE, SETTLED, WAITING, Trace, publish
from daemon.journal import store as journal
from daemon.virtual_clock import JumpingLoop
from drivers import DRIVERS
from protocols.contract.documents import TraceLine
from protocols.contract.events import CardDrawn, CardExposed, HandDispensed, HoleCardPeeked
from protocols.fdl import frame as fdl
from simulators.lab.broker import find_mosquitto
from simulators.lab.pit import Pit
from simulators.lab.virtual_time import RunningPit, run_in_virtual_time, running_in_virtual_time, wait_for_results
from tests.edge.test_commands import Bench, soon

mosquitto = pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
TOPIC = "felt/1/site/table/t-1/device/d-1/trace"


class Ear:
    """A session that takes what is told while it has room."""

    def __init__(self) -> None:
        self.room = True
        self.messages: list[bytes] = []

    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        assert topic == TOPIC
        if self.room:
            self.messages.append(payload)
        return self.room

    @property
    def frames(self) -> list[TraceLine]:
        return [msgspec.json.decode(line, type=TraceLine) for one in self.messages for line in one.split(b"\n")]


class Side:
    """One device's trace and who publishes it, in virtual time."""

    def __init__(self, shown: Callable[[], bool] | None = None) -> None:
        self.news = asyncio.Event()
        self.ended: list[float] = []
        self.trace = Trace(TOPIC, shown, lambda: self.ended.append(asyncio.get_running_loop().time()), self.news)
        self.ear = Ear()
        ear: Any = self.ear
        self.task = asyncio.create_task(publish(ear, [self.trace], self.news))

    def passes(self, data: bytes, way: Way = "in") -> None:
        tap = self.trace.tap
        assert tap is not None
        tap(way, START + timedelta(seconds=asyncio.get_running_loop().time()), data)

    async def end(self) -> list[TraceLine]:
        await asyncio.sleep(60)
        self.task.cancel()
        await asyncio.wait([self.task])
        return self.ear.frames


# ---- published traces


@virtual_time
async def test_trace_is_published_in_order_with_time_and_direction() -> None:
    side = Side()
    side.trace.begin(10, START)
    side.passes(b"*X\r\n", "out")
    await asyncio.sleep(0.5)
    side.passes(b"17")
    assert await side.end() == [
        TraceLine(START, "out", "2a580d0a", 1, 0),
        TraceLine(START + timedelta(seconds=0.5), "in", "3137", 2, 0),
    ]
    assert side.ended == [10.0]
    assert (side.trace.tap, side.trace.until) == (None, None)


@virtual_time
async def test_it_ends_when_it_is_told_to_and_goes_on_when_it_is_asked_again() -> None:
    side = Side()
    side.trace.begin(10, START)
    await asyncio.sleep(9)
    side.trace.begin(10, START)
    await asyncio.sleep(9)
    side.passes(b"still")
    side.trace.begin(0, START)
    assert side.trace.tap is None
    await side.end()
    assert side.ended == []  # nobody need be told of what he asked for


@given(data=st.lists(st.binary(min_size=1, max_size=3 * PIECE), max_size=20))
def test_pieces_together_are_the_bytes_whatever_their_size(data: list[bytes]) -> None:
    @virtual_time
    async def body() -> None:
        side = Side()
        side.trace.begin(600, START)
        for one in data:
            side.passes(one)
        frames = await side.end()
        assert b"".join(bytes.fromhex(frame.hex) for frame in frames) == b"".join(data)
        assert [frame.n for frame in frames] == list(range(1, len(frames) + 1))
        assert all(len(frame.hex) <= 2 * PIECE for frame in frames)

    body()


@virtual_time
async def test_more_than_there_is_room_for_is_left_out_and_counted() -> None:
    """The oldest goes; memory is bounded; nobody waits; what was left out is told with the next line."""
    side = Side()
    side.trace.begin(600, START)
    side.ear.room = False
    for n in range(3 * WAITING):
        side.passes(n.to_bytes(2))
    assert side.trace.waiting == WAITING
    await asyncio.sleep(5)
    assert side.trace.waiting == WAITING
    side.ear.room = True
    frames = await side.end()
    assert [frame.n for frame in frames] == list(range(2 * WAITING + 1, 3 * WAITING + 1))
    assert {frame.dropped for frame in frames} == {2 * WAITING}


@virtual_time
async def test_no_more_lines_a_second_than_people_can_use() -> None:
    side = Side()
    side.trace.begin(600, START)
    for n in range(1000):
        side.passes(n.to_bytes(2))
    await asyncio.sleep(0.95)
    assert len(side.ear.messages) == 10
    assert len(side.ear.frames) == 10 * LINES
    assert len(await side.end()) == 1000


# ---- traces of cards


@virtual_time
async def test_trace_of_cards_waits_until_after_the_round() -> None:
    opens: list[bool] = [False]
    side = Side(lambda: not opens[0])
    side.trace.begin(600, START)
    side.passes(b"burn")
    await asyncio.sleep(SETTLED - 0.5)
    assert side.ear.messages == []
    opens[0] = True
    side.passes(b"first card")
    await asyncio.sleep(300)
    assert side.ear.messages == []
    opens[0] = False
    side.passes(b"a card of the next round, nobody knows it yet")
    await asyncio.sleep(1)
    assert [bytes.fromhex(frame.hex) for frame in side.ear.frames] == [b"burn", b"first card"]
    assert len(await side.end()) == 3


@virtual_time
async def test_held_back_trace_is_bounded() -> None:
    opens = [True]
    side = Side(lambda: not opens[0])
    side.trace.begin(600, START)
    for n in range(WAITING + 7):
        side.passes(n.to_bytes(2))
    await asyncio.sleep(60)
    opens[0] = False
    frames = await side.end()
    assert (len(frames), frames[0].n, frames[0].dropped) == (WAITING, 8, 7)


OF_CARDS = (CardDrawn, CardExposed, HandDispensed, HoleCardPeeked)
"""A device with one of these events sees cards, and its bytes may tell one."""


@pytest.mark.parametrize("name", DRIVERS)
def test_a_driver_that_tells_of_cards_says_so(name: str) -> None:
    told = {one if isinstance(one, type) else type(one) for one in DRIVERS[name].emits}
    assert DRIVERS[name].tells_cards == (not told.isdisjoint(OF_CARDS))


class Watcher:
    """Hears all that is told of devices that tell cards, at the moment it is told."""

    def __init__(self, running_pit: RunningPit) -> None:
        self.running_pit = running_pit
        self.told: dict[str, list[TraceLine]] = {}
        self.early: list[str] = []

    def heard(self, topic: str, payload: bytes) -> None:
        words = topic.split("/")
        table, device = words[4], words[6]
        driver = next(
            one.device.driver for one in self.running_pit.edge.sessions if one.state_topic.startswith(topic[:-5])
        )
        self.told.setdefault(f"{table}/{device}", []).extend(
            msgspec.json.decode(line, type=TraceLine) for line in payload.split(b"\n")
        )
        phase = self.running_pit.consumer.view(table).phase
        known = self.running_pit.consumer.position(table) == self.running_pit.edge.journal.last(table)
        if DRIVERS[driver].tells_cards and not (known and phase in BETWEEN_ROUNDS):
            self.early.append(f"{topic} in {phase}")


@pytest.mark.system
@mosquitto
@pytest.mark.parametrize("seed", [3, 4])
def test_in_a_whole_pit_no_card_is_told_before_its_round_is_over(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every device of four card tables traced: what is told of cards is told between rounds, and all of it is told."""

    async def body(busy: list[Any]) -> tuple[Watcher, dict[str, int]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        pit = Pit(tmp_path, seed, kinds=("bac", "csm", "bj", "stud"))
        async with running_in_virtual_time(pit, busy) as running_pit:
            watcher = Watcher(running_pit)
            for kind in (Mqtt5Session, Mqtt311Session):
                publish = kind.publish_qos0

                def told(session: Any, topic: str, payload: bytes, publish: Any = publish) -> bool:
                    if topic.endswith("/trace"):
                        watcher.heard(topic, payload)
                    return bool(publish(session, topic, payload))

                monkeypatch.setattr(kind, "publish_qos0", told)
            for post in running_pit.edge.sessions:
                post._traced(600)

            async def again() -> None:
                while True:
                    await asyncio.sleep(500)
                    for post in running_pit.edge.sessions:
                        post._traced(600)

            extending = asyncio.create_task(again())
            await pit.deal(running_pit.pace, 8, running_pit.site, loop.utc)
            running_pit.settling = True
            await wait_for_results(pit, running_pit.site, pit.dealt())
            running_pit.settling = False
            await asyncio.sleep(2 * SETTLED)
            extending.cancel()
            await asyncio.wait([extending])
            cards: dict[str, int] = {}
            for row in running_pit.edge.journal.after(0, 100_000):
                if row.type == "card.drawn":
                    place = f"{row.place}/{row.device}"
                    cards[place] = cards.get(place, 0) + 1
                    frames = watcher.told.get(place, [])
                    assert row.wire in b"".join(bytes.fromhex(one.hex) for one in frames if one.way == "in"), row
        return watcher, cards

    watcher, cards = run_in_virtual_time(body)
    assert not watcher.early
    assert len(cards) >= 3
    assert sum(cards.values()) > 30


# ---- with everything real


@pytest.fixture
async def bench(tmp_path: Path) -> Any:
    made = Bench(tmp_path)
    await made.broker.start()
    from tests.edge.test_commands import config_at

    made.config = config_at(tmp_path, made.broker.port)
    living = asyncio.create_task(made.socket.live())
    try:
        yield made
    finally:
        living.cancel()
        await asyncio.wait([living])
        await made.broker.stop()


@pytest.mark.system
@mosquitto
async def test_over_a_real_broker_a_trace_is_asked_for_told_and_ended(bench: Bench) -> None:
    """FDL frames of a shaker on a tty, as mosquitto_sub hears them; the command is answered and in the journal."""
    async with bench.running():
        listening, began = await bench.subscribed(TOPIC, 5), datetime.now(UTC)
        reply = await bench.rr("trace", {"id": "t", "expires": soon(), "args": {"seconds": 60}})
        assert (reply.status, reply.data) == ("done", {"held_back": False})
        assert bench.post.state().traced_until is not None
        frames = [msgspec.json.decode(line, type=TraceLine) for line in (await listening).splitlines()]
        assert [frame.n for frame in frames] == list(range(1, len(frames) + 1))
        came = b"".join(bytes.fromhex(frame.hex) for frame in frames if frame.way == "in")
        beats = [fdl.read(one) for one in fdl.Decoder().feed(came) if isinstance(one, fdl.Frame)]
        assert any(isinstance(beat, fdl.Heartbeat) for beat in beats)
        assert began <= frames[0].at <= datetime.now(UTC)

        assert (await bench.rr("trace", {"id": "e", "expires": soon(), "args": {"seconds": 0}})).status == "done"
        assert bench.post.trace.tap is None
        assert bench.post.state().traced_until is None
        too_long = await bench.rr("trace", {"id": "x", "expires": soon(), "args": {"seconds": 601}})
        assert too_long.status == "refused"
        orders = [json.loads(row.wire) for row in bench.rows() if row.type == "device.commanded"]
        assert orders == [{"command": "trace", "seconds": 60}, {"command": "trace", "seconds": 0}]


@pytest.mark.system
@mosquitto
async def test_a_device_that_is_away_can_be_traced_too(bench: Bench) -> None:
    """What is tried is seen: that is what a trace is for."""
    async with bench.running():
        bench.socket.port.unplug()
        await bench.until(lambda: not bench.post.online)
        reply = await bench.rr("trace", {"id": "t", "expires": soon(), "args": {}})
        assert reply.status == "done"
        bench.socket.port.plug()
        listening = await bench.subscribed(TOPIC)
        await bench.until(lambda: bench.post.online)
        await listening


@virtual_time
async def test_without_a_ruleset_what_tells_cards_is_not_traced(tmp_path: Path) -> None:
    from daemon.config.model import parse
    from daemon.edge.edge import Edge
    from tests.edge.test_commands import CONFIG, ask

    text = CONFIG.format(path=tmp_path, port=1).replace("fdl_shaker", "bee_tek_shoe")
    kept = journal.Journal(tmp_path / "edge.db")
    edge = Edge(parse(text), kept)
    from tests.edge.test_commands import Wire

    wire: Any = Wire()
    edge.commands.connected(wire)
    async with asyncio.TaskGroup() as group:
        life = (datetime.now(UTC) - datetime(2026, 11, 20, 20, tzinfo=UTC)).total_seconds() + 10
        await edge.commands.take(ask("trace", life=life), group)
    assert [(reply.status, reply.text[:17]) for reply in wire.replies] == [("refused", "it reports cards,")]
    kept.close()


@pytest.mark.system
@mosquitto
async def test_trace_is_dropped_when_the_socket_is_full(tmp_path: Path) -> None:
    """A broker that stopped reading: `publish_qos0` says no instead of growing."""
    from daemon.broker.connection import connect
    from daemon.config.model import Mqtt
    from simulators.lab.broker import Broker

    broker = Broker(tmp_path)
    await broker.start()
    try:
        async with connect(Mqtt(port=broker.port), "test", Will("x", b"")) as session:
            assert session.publish_qos0("a/b", b"x")
            took = 0
            while session.publish_qos0("a/b", bytes(1_000)):  # without a turn of the loop nothing is sent
                took += 1
                assert took < 1_000
            assert took * 1_000 <= MAX_UNSENT_BYTES
    finally:
        await broker.stop()
