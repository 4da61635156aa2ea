"""Sessions with a real broker: in order, acknowledged, within the window; refused, killed, and back."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import aiomqtt
import mqtt5
import pytest
import structlog
from helpers import PATIENCE

from daemon.broker import connection, mqtt5_session, mqtt311_session, session as session_module
from daemon.broker.connection import connect, stay_connected
from daemon.broker.mqtt5_session import Mqtt5Session
from daemon.broker.mqtt311_session import Mqtt311Session
from daemon.broker.retained import Retained
from daemon.broker.session import (
    RECEIVE_WINDOW,
    WINDOW,
    BrokerLost,
    BrokerRefused,
    Message,
    Session,
    Will,
    publish_last,
)
from daemon.config.model import Mqtt
from protocols.contract.topics import CONTENT_TYPE
from simulators.lab import broker as broker_module
from simulators.lab.broker import Broker, find_mosquitto, free_port

ACL = "topic readwrite ok/#\ntopic deny no/#\n"


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever happens to a broker is said once, by us: no traceback from a library or the loop."""
    yield
    gc.collect()
    said = [record.getMessage() for record in caplog.get_records("call") + caplog.records]
    # asyncio says so of a broker that ended while the test was sending it a signal.
    assert [one for one in said if not one.startswith("Unknown child process")] == []


@contextlib.asynccontextmanager
async def running(folder: Path, **options: Any) -> AsyncIterator[Broker]:
    broker = Broker(folder, **options)
    if broker.version == "5" and find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    await broker.start()
    try:
        yield broker
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(broker.pid, signal.SIGCONT)
        await broker.stop()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with running(tmp_path) as one:
        yield one


@pytest.fixture(params=["mosquitto", "embedded"])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Broker]:
    if request.param == "embedded":
        pytest.importorskip("amqtt")
    async with running(tmp_path, embedded=request.param == "embedded") as one:
        yield one


def settings(broker: Broker, **more: Any) -> Mqtt:
    version = cast("Any", broker.version)
    return Mqtt(port=broker.port, **{"version": version, **more})


async def some(session: Session, count: int) -> list[Message]:
    """The next `count` messages."""
    found: list[Message] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            found += await session.messages()
    return found


async def kept_by_broker(session: Session) -> None:
    """Return when the broker keeps what `session` sent retained. amqtt acknowledges before it does, but keeps order."""
    await session.subscribe("mark")
    await session.publish("mark", b".")
    assert await some(session, 1) == [Message("mark", b".")]


class Log:
    """What is logged, and a way to wait for it."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Event()

    def info(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))
        self._news.set()

    warning = info

    @property
    def words(self) -> list[str]:
        return [word for word, _ in self.said]

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.said) < count:
                self._news.clear()
                await self._news.wait()

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        return cast("structlog.typing.FilteringBoundLogger", self)


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([task])
    assert task.cancelled()


# ---- publishing and hearing


async def test_messages_arrive_and_are_acknowledged_in_order(either: Broker) -> None:
    acknowledged: list[int] = []
    async with connect(settings(either), "reader") as reader, connect(settings(either), "writer") as writer:
        await reader.subscribe("t/#", "u/+")
        for n in range(300):
            await writer.publish(f"t/{n % 3}", b"%d" % n, acknowledged=lambda n=n: acknowledged.append(n))  # type: ignore[misc]
            assert len(writer._in_flight) <= WINDOW
        async with asyncio.timeout(PATIENCE):
            await writer.drained()
        assert acknowledged == list(range(300))
        assert len(writer._in_flight) == 0
        assert await some(reader, 300) == [Message(f"t/{n % 3}", b"%d" % n) for n in range(300)]


async def test_only_an_event_says_that_it_is_one(broker: Broker) -> None:
    """Who unpacks CloudEvents by their content type finds none in a state, a result or a command."""
    told: list[tuple[str, str | None]] = []
    reader = aiomqtt.Client("127.0.0.1", broker.port, protocol=aiomqtt.ProtocolVersion.V5)
    async with reader, connect(settings(broker), "writer") as writer:
        await reader.subscribe("t/#", 1)
        await writer.publish("t/event", b"{}", event=True)
        await writer.publish("t/state", b"{}", retain=True)
        await writer.publish("t/reply", b"{}", correlation=b"7")
        messages = aiter(reader.messages)
        async with asyncio.timeout(PATIENCE):
            while len(told) < 3:
                message = await anext(messages)
                told.append((str(message.topic), getattr(message.properties, "ContentType", None)))
    assert told == [("t/event", CONTENT_TYPE), ("t/state", None), ("t/reply", None)]


async def test_retained_topics_stay_until_they_are_cleared(either: Broker) -> None:
    async with connect(settings(either), "writer") as writer:
        await writer.publish("r/a", b"1", retain=True)
        await writer.publish("r/b", b"2", retain=True)
        await writer.publish("r/c", b"3")
        await writer.publish("r/a", b"", retain=True)
        await kept_by_broker(writer)
        async with connect(settings(either), "late") as late:
            await late.subscribe("r/#")
            await writer.publish("r/end", b".")
            assert await some(late, 2) == [Message("r/b", b"2", retain=True), Message("r/end", b".")]


async def test_a_glance_hears_what_stands_and_nothing_that_comes_after(either: Broker) -> None:
    async with connect(settings(either), "writer") as writer, connect(settings(either), "reader") as reader:
        for n in range(50):  # more than a broker sends at once
            await writer.publish(f"r/{n}/x", b"%d" % n, retain=True)
        await kept_by_broker(writer)
        await reader.read_retained("r/+/x")
        await reader.subscribe("end")
        await writer.publish("r/0/x", b"new", retain=True)
        await writer.publish("end", b".")
        heard = await some(reader, 51)
        assert sorted(heard[:-1], key=lambda one: int(one.payload)) == [
            Message(f"r/{n}/x", b"%d" % n, retain=True) for n in range(50)
        ]
        assert heard[-1] == Message("end", b".")


async def test_any_bytes_pass_unchanged(either: Broker) -> None:
    blocks = [b"\x00\xff" * 100, bytes(range(256)), b"x" * 100_000]
    async with connect(settings(either), "both") as session:
        await session.subscribe("b")
        for block in blocks:
            await session.publish("b", block)
        assert [message.payload for message in await some(session, 3)] == blocks


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("pause", [0.0, 0.01])
async def test_messages_of_either_quality_arrive_unchanged_however_they_are_cut(
    broker: Broker, version: Literal["3.1.1", "5"], pause: float
) -> None:
    """Lengths about those where the length itself grows by a byte and where a reading of the socket ends."""
    sizes = [0, 1, 100, 127, 128, 129, 16_300, 16_383, 16_384, 65_530, 65_535, 65_536, 65_537, 200_000, 3, 2_097_152]
    async with connect(Mqtt(port=broker.port, version=version), "both") as session:
        session.set_read_interval(pause)
        await session.subscribe("plain/#", qos=0)
        await session.subscribe("sure/#")
        told: list[Message] = []
        for n in range(3):
            for size in sizes[: 15 + (n == 0)]:
                told.append(Message(f"{('plain', 'sure')[(n + len(told)) % 2]}/ä/{n}", bytes([n]) * size))
                await session.publish(told[-1].topic, told[-1].payload)
        said = await some(session, len(told))
        for kind in ("plain", "sure"):  # of each quality in order
            assert [one for one in said if one.topic.startswith(kind)] == [
                one for one in told if one.topic.startswith(kind)
            ]
        await session.drained()


async def test_retained_flag_is_seen_at_either_qos(broker: Broker) -> None:
    async with connect(settings(broker), "both") as session:
        await session.publish("plain", b"1", retain=True)
        await session.drained()
        await session.subscribe("plain", qos=0)
        await session.publish("plain", b"2", retain=True)
        assert await some(session, 2) == [Message("plain", b"1", retain=True), Message("plain", b"2")]


async def test_slow_reader_sees_the_broker_die(tmp_path: Path) -> None:
    async with running(tmp_path) as broker, connect(settings(broker), "reader") as session:
        session.set_read_interval(0.05)
        await session.subscribe("t")
        await session.publish("t", b"1")
        await some(session, 1)
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(BrokerLost):
            async with asyncio.timeout(PATIENCE):
                await session.until_lost()


async def test_between_two_readings_nothing_is_taken() -> None:
    go_on, sent = asyncio.Event(), asyncio.Event()

    async def says(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: bytes) -> None:
        writer.write(b"\x90\x04" + number + b"\x00\x00\x30\x05\x00\x01a\x00b")
        await go_on.wait()
        for _ in range(20):
            writer.write(b"\x30\x05\x00\x01a\x00c")
            await asyncio.sleep(0.005)
        sent.set()

    async with to_our_own(says, 0) as session:
        session.set_read_interval(PATIENCE)
        assert await some(session, 1) == [Message("a", b"b")]  # read before the interval was set
        go_on.set()
        await some(session, 1)  # its reading begins a pause
        waiting = len(session._waiting)
        await sent.wait()
        assert len(session._waiting) == waiting


Says = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def to_our_own(says: Says, qos: Literal[0, 1]) -> AsyncIterator[Session]:
    """A reader of "a" at a broker of our own: CONNACK, and what `says` answers to the number of its SUBSCRIBE.

    At the end the reader's line must be closed.
    """
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connect_packet = await reader.readuntil(b"reader")
        assert b"\x21" + RECEIVE_WINDOW.to_bytes(2, "big") in connect_packet  # Receive Maximum
        writer.write(b"\x20\x03\x00\x00\x00")
        await says(reader, writer, (await reader.readexactly(9))[2:4])
        with contextlib.suppress(ConnectionError):
            await reader.read()
            writer.close()
            await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(Mqtt(port=port), "reader") as session, asyncio.timeout(PATIENCE):
            await session.subscribe("a", qos=qos)
            yield session
        async with asyncio.timeout(PATIENCE):
            await ended.wait()


async def test_a_message_is_acknowledged_by_its_number_when_it_is_taken() -> None:
    """Until then it counts against Receive Maximum, so the broker slows down instead of piling up messages here."""
    acknowledged: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: bytes) -> None:
        told = [b"\x32\x07\x00\x01a\x00\x07\x00x", b"\x30\x05\x00\x01a\x00y", b"\x3b\x06\x00\x01a\x01\x02\x00"]
        writer.write(b"\x90\x04" + number + b"\x00\x01" + b"".join(told) + b"\x32\x07\x00\x01a\x00")
        acknowledged.set_result(await reader.readexactly(4))
        assert await reader.readexactly(4) == b"\x40\x02\x01\x02"
        writer.write(b"\x09\x00z")  # the rest of the last
        assert await reader.readexactly(4) == b"\x40\x02\x00\x09"

    async with to_our_own(says, 1) as session:
        while len(session._waiting) < 3:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not acknowledged.done()
        assert await some(session, 1) == [Message("a", b"x"), Message("a", b"y"), Message("a", b"", retain=True)]
        assert await acknowledged == b"\x40\x02\x00\x07"
        assert await some(session, 1) == [Message("a", b"z")]


class Exact:
    """A broker of MQTT 5 that goes by the letter: no more publishes at once than it said, and none where nobody `may`.

    A refusal does not end the connection; one publish too many does.
    """

    def __init__(self, receive_maximum: int | None = None, may: Callable[[str], bool] = lambda _: True) -> None:
        self.port = 0
        self.connections = 0
        self.most = 0
        self.said: list[tuple[str, bytes]] = []
        self.refused: list[str] = []
        self._maximum = receive_maximum
        self._may = may
        self._flying = 0
        self._writer: asyncio.StreamWriter | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Exact"]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield self

    def ask(self, topic: str, payload: bytes, reply_to: str) -> None:
        """Tell whoever came last, with a response topic."""
        assert self._writer is not None
        properties = b"\x08" + _text(reply_to)
        self._tell(self._writer, 0x30, _text(topic) + bytes([len(properties)]) + properties + payload)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writer = writer
        self._flying = 0
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while self._hear(writer, *await self._packet(reader)):
                await writer.drain()
        writer.close()

    def _hear(self, writer: asyncio.StreamWriter, first: int, packet: bytes) -> bool:
        """Whether it goes on."""
        match first >> 4:
            case 1:
                limit = b"" if self._maximum is None else b"\x21" + self._maximum.to_bytes(2, "big")
                self._tell(writer, 0x20, b"\x00\x00" + bytes([len(limit)]) + limit)
            case 3 if first & 6:
                return self._publish(writer, packet)
            case 8:  # as many codes as there are topics, each with its length before it and its options behind
                at, codes = 3 + packet[2], b""
                while at < len(packet):
                    at += 3 + int.from_bytes(packet[at : at + 2], "big")
                    codes += b"\x01"
                self._tell(writer, 0x90, packet[:2] + b"\x00" + codes)
            case 10:
                self._tell(writer, 0xB0, packet[:2] + b"\x00\x00")
            case 12:
                self._tell(writer, 0xD0, b"")
            case 14:
                return False
            case _:
                pass
        return True

    def _publish(self, writer: asyncio.StreamWriter, packet: bytes) -> bool:
        end = 2 + int.from_bytes(packet[:2], "big")
        topic, number = packet[2:end].decode(), packet[end : end + 2]
        self._flying += 1
        self.most = max(self.most, self._flying)
        if self._maximum is not None and self._flying > self._maximum:
            self._tell(writer, 0xE0, b"\x93\x00")
            return False
        may = self._may(topic)
        if may:
            self.said.append((topic, packet[end + 3 + packet[end + 2] :]))
        else:
            self.refused.append(topic)
        asyncio.get_running_loop().call_later(0.005, self._acknowledge, writer, number, may)
        return True

    def _acknowledge(self, writer: asyncio.StreamWriter, number: bytes, may: bool) -> None:
        self._flying -= 1
        if not writer.is_closing():
            self._tell(writer, 0x40, number + (b"\x00" if may else b"\x87") + b"\x00")

    @staticmethod
    async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
        first = (await reader.readexactly(1))[0]
        length = shift = 0
        while True:
            byte = (await reader.readexactly(1))[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return first, await reader.readexactly(length)

    @staticmethod
    def _tell(writer: asyncio.StreamWriter, first: int, packet: bytes) -> None:
        length, rest = b"", len(packet)
        while rest > 0x7F:
            length += bytes([rest & 0x7F | 0x80])
            rest >>= 7
        writer.write(bytes([first]) + length + bytes([rest]) + packet)


def _text(text: str) -> bytes:
    return len(text.encode()).to_bytes(2, "big") + text.encode()


@pytest.mark.parametrize("maximum", [1, 2, 10, WINDOW, WINDOW + 1, 65_535, None])
async def test_no_more_is_in_flight_than_the_broker_takes_at_once(maximum: int | None) -> None:
    """Its CONNACK says how many (Receive Maximum). aiomqtt and paho do not look; a broker ends the connection."""
    acknowledged: list[int] = []
    async with Exact(maximum).running() as broker, connect(Mqtt(port=broker.port), "writer") as session:
        async with asyncio.timeout(PATIENCE):
            for n in range(150):
                await session.publish("t", b"%d" % n, acknowledged=partial(acknowledged.append, n))
            await session.drained()
        assert broker.said == [("t", b"%d" % n) for n in range(150)]
        assert acknowledged == list(range(150))
        assert broker.most <= min(WINDOW, maximum or WINDOW)
        assert broker.connections == 1


async def test_first_publishes_respect_receive_maximum() -> None:
    retained = Retained()
    for n in range(50):
        retained.put(f"r/{n}", b"%d" % n)
    async with Exact(10).running() as broker, connect(Mqtt(port=broker.port), "edge") as session:
        async with asyncio.timeout(PATIENCE):
            await retained.publish_all(session)
            await session.drained()
        assert broker.said == [(f"r/{n}", b"%d" % n) for n in range(50)]


@pytest.mark.parametrize("maximum", [2, 10, WINDOW])
async def test_the_last_word_has_its_place_however_much_is_in_flight(maximum: int) -> None:
    """It waits for no room; a broker that ends the connection for it would not hear it."""
    async with Exact(maximum).running() as broker, connect(Mqtt(port=broker.port), "edge") as session:
        while len(session._in_flight) < session._window:
            session.send("t", b"x")
        async with asyncio.timeout(PATIENCE):
            await publish_last(session, "w", b"offline")
        assert broker.said[-1] == ("w", b"offline")
        assert broker.most == maximum
        assert len(session._in_flight) == 0


async def test_no_more_than_the_window_is_in_flight(broker: Broker) -> None:
    """The broker stands still: publishing waits, and goes on with it."""
    async with connect(settings(broker), "writer") as session:
        os.kill(broker.pid, signal.SIGSTOP)
        for n in range(WINDOW):
            await session.publish("t", b"%d" % n)
        waiting = asyncio.ensure_future(session.publish("t", b"more"))
        await asyncio.sleep(0)
        assert len(session._in_flight) == WINDOW
        assert not waiting.done()
        os.kill(broker.pid, signal.SIGCONT)
        async with asyncio.timeout(PATIENCE):
            await waiting
            await session.drained()


async def test_a_backlog_in_flight_does_not_delay_what_is_published(broker: Broker) -> None:
    """An outbox sends whenever there is room; the level of a pool must not wait behind it."""
    async with connect(settings(broker), "writer") as session:
        os.kill(broker.pid, signal.SIGSTOP)
        while session.room:
            session.send("row", b"x")
        behind = asyncio.ensure_future(session.until_room())
        for n in range(WINDOW // 4):
            level = asyncio.ensure_future(session.publish("level", b"%d" % n))
            await asyncio.sleep(0)
            assert level.done()
        assert len(session._in_flight) == WINDOW
        assert not behind.done()
        os.kill(broker.pid, signal.SIGCONT)
        async with asyncio.timeout(PATIENCE):
            await behind
            await session.drained()


async def test_publish_queue_is_bounded_in_bytes(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MAX_WAITING_BYTES", 1000)
    async with connect(settings(broker), "reader") as reader, connect(settings(broker), "writer") as writer:
        await reader.subscribe("t", qos=0)
        for n in range(20):
            await writer.publish("t", b"%300d" % n)
        await writer.drained()
        async with asyncio.timeout(PATIENCE):
            while not reader._waiting or int(reader._waiting[-1][0].payload) != 19:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        assert [int(one.payload) for one in await reader.messages()] == [17, 18, 19]
        await writer.publish("t", b"x" * 2000)  # one that is larger alone arrives: its reader says what is wrong
        assert [len(one.payload) for one in await reader.messages()] == [2000]
        assert reader._waiting_bytes == 0


async def test_a_slow_reader_slows_the_broker_down_and_loses_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker holds back what exceeds Receive Maximum until the reader has taken what it was sent."""
    monkeypatch.setattr(mqtt5_session, "RECEIVE_WINDOW", 10)
    async with connect(settings(broker), "reader") as reader, connect(settings(broker), "writer") as writer:
        await reader.subscribe("t")
        for n in range(50):
            await writer.publish("t", b"%d" % n)
        await writer.drained()
        taken: list[int] = []
        async with asyncio.timeout(PATIENCE):
            while len(taken) < 50:
                taken += [int(message.payload) for message in await reader.messages(3)]
        assert taken == list(range(50))


async def test_of_qos_0_the_newest_are_kept(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dropped is a gap, which the reader finds by seq."""
    monkeypatch.setattr(session_module, "MAX_WAITING", 10)
    async with connect(settings(broker), "reader") as reader, connect(settings(broker), "writer") as writer:
        await reader.subscribe("t", qos=0)
        for n in range(50):
            await writer.publish("t", b"%d" % n)
        await writer.drained()
        async with asyncio.timeout(PATIENCE):
            while not reader._waiting or reader._waiting[-1][0].payload != b"49":
                await asyncio.sleep(0.001)
                assert len(reader._waiting) <= 10
        assert [int(message.payload) for message in await reader.messages()] == list(range(40, 50))


async def test_messages_are_given_in_portions(broker: Broker) -> None:
    async with connect(settings(broker), "both") as session:
        await session.subscribe("t")
        for n in range(5):
            await session.publish("t", b"%d" % n)
        await session.drained()
        found: list[bytes] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < 5:
                portion = await session.messages(2)
                assert 1 <= len(portion) <= 2
                found += [message.payload for message in portion]
        assert found == [b"0", b"1", b"2", b"3", b"4"]


class Wire:
    """A transport: keeps each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return False


def on_wire() -> tuple[Mqtt5Session, Wire]:
    """A session whose reads a test brings: it said hello."""
    session, wire = Mqtt5Session(b"hello"), Wire()
    session._transport = cast("asyncio.Transport", wire)
    session.flush()
    wire.writes.clear()
    return session, wire


def read_of(*topics: str) -> bytes:
    """A message with QoS 1 under each topic, as one read brings them."""
    qos = mqtt5.QoS.AT_LEAST_ONCE
    return b"".join(mqtt5.PublishPacket(topic, b"", qos=qos, packet_id=n).write() for n, topic in enumerate(topics, 1))


def pubacks(*numbers: int) -> bytes:
    return b"".join(b"\x40\x02" + number.to_bytes(2, "big") for number in numbers)


async def test_messages_are_handled_in_the_turn_that_reads_them() -> None:
    """With the acknowledgements in one write, which follows the handler's work; the task sleeps on."""
    session, wire = on_wire()
    heard: list[str] = []

    def handle(messages: list[Message]) -> None:
        assert wire.writes == []
        heard.extend(message.topic for message in messages)
        session.send("result", b"")
        session.flush()

    waiting = asyncio.create_task(session.messages(at_once=handle))
    await asyncio.sleep(0)
    session.data_received(read_of("a", "b"))
    assert heard == ["a", "b"]
    [written] = wire.writes
    assert written.startswith(pubacks(1, 2))
    assert b"result" in written
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert len(wire.writes) == 1
    waiting.cancel()


async def test_acknowledgements_of_a_read_are_sent_at_its_end() -> None:
    session, wire = on_wire()
    waiting = asyncio.create_task(session.messages(at_once=lambda _: None))
    await asyncio.sleep(0)
    session.data_received(read_of("a", "b"))
    assert wire.writes == [pubacks(1, 2)]
    waiting.cancel()


async def test_what_a_handler_leaves_comes_to_the_task_before_what_follows() -> None:
    """While the task is busy nothing is handled at once, and nothing is acknowledged that it did not take."""
    session, wire = on_wire()
    at_once: list[str] = []

    def handle(messages: list[Message]) -> list[Message]:
        at_once.extend(message.topic for message in messages[:1])
        return messages[1:]

    waiting = asyncio.create_task(session.messages(at_once=handle))
    await asyncio.sleep(0)
    session.data_received(read_of("a", "b", "c"))
    session.data_received(read_of("d", "e"))
    assert [message.topic for message in await waiting] == ["b", "c"]
    session.data_received(read_of("f"))
    assert at_once == ["a"]
    assert wire.writes == [pubacks(1, 2, 3)]
    assert [message.topic for message in await session.messages(at_once=handle)] == ["d", "e", "f"]
    assert at_once == ["a"]


async def test_a_handler_may_wake_the_task_for_nothing_that_is_left() -> None:
    session, _ = on_wire()
    waiting = asyncio.create_task(session.messages(at_once=lambda _: []))
    await asyncio.sleep(0)
    session.data_received(read_of("a"))
    assert await waiting == []


async def test_what_a_handler_raises_is_raised_in_the_task_and_not_in_the_loop() -> None:
    session, _ = on_wire()
    called: list[int] = []

    def fail(messages: list[Message]) -> None:
        called.append(len(messages))
        raise ZeroDivisionError

    waiting = asyncio.create_task(session.messages(at_once=fail))
    await asyncio.sleep(0)
    session.data_received(read_of("a"))
    session.data_received(read_of("b"))  # before the task wakes
    with pytest.raises(ZeroDivisionError):
        await waiting
    assert called == [1]


async def test_a_cancelled_task_handles_nothing_more() -> None:
    """A read may come in the turn of the cancellation: its message stays unacknowledged."""
    session, wire = on_wire()
    called: list[list[Message]] = []
    waiting = asyncio.create_task(session.messages(at_once=called.append))
    await asyncio.sleep(0)
    waiting.cancel()
    session.data_received(read_of("a"))
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert (called, wire.writes) == ([], [])


async def test_messages_are_handled_at_once_with_either_version(either: Broker) -> None:
    """In order, none twice, whether at once or by the task."""
    async with connect(settings(either), "both") as session:
        await session.subscribe("t")
        found: list[int] = []

        def handle(messages: list[Message]) -> list[Message] | None:
            assert asyncio.current_task() is None
            few = messages[:3]
            found.extend(int(message.payload) for message in few)
            return messages[3:] or None

        async def receive() -> None:
            while True:
                found.extend(int(message.payload) for message in await session.messages(at_once=handle))

        receiving = asyncio.create_task(receive())
        for n in range(301):
            await session.publish("t", b"%d" % n)
        async with asyncio.timeout(PATIENCE):
            while len(found) < 301:  # noqa: ASYNC110 - the task may sleep on
                await asyncio.sleep(0.001)
        assert found == list(range(301))
        receiving.cancel()


async def test_mqtt311_hands_over_what_came_in_a_burst_together_and_in_portions() -> None:
    """Each portion is a commit of the rules. A broker that never stops sending delays none of it for long."""
    client = aiomqtt.Client("127.0.0.1")
    for n in range(250):
        client._queue.put_nowait(aiomqtt.Message("t", b"%d" % n, 1, False, n, None))
    session = Mqtt311Session(client)
    found: list[list[int]] = []
    waiting = asyncio.create_task(
        session.messages(at_once=lambda messages: found.append([int(message.payload) for message in messages]))
    )
    for _ in range(2000):  # aiomqtt takes three turns of the loop for each
        await asyncio.sleep(0)
    client._queue.put_nowait(aiomqtt.Message("t", b"250", 1, False, 251, None))
    for _ in range(10):
        await asyncio.sleep(0)
    waiting.cancel()
    await session.close()
    assert [len(portion) for portion in found] == [100, 100, 50, 1]
    assert [n for portion in found for n in portion] == list(range(251))


def cut_line(session: Session) -> None:
    """End its TCP connection without a word of MQTT."""
    if isinstance(session, Mqtt5Session):
        assert session._transport is not None
        session._transport.abort()
    else:
        sock: Any = cast("Any", session)._client._client.socket()
        sock.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_a_session_that_vanishes_leaves_its_last_word(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(mqtt5_session, "WILL_DELAY_S", 0)
    will = Will("w/availability", b"offline")
    async with connect(settings(broker), "reader") as reader:
        await reader.subscribe("w/#")
        with contextlib.suppress(BrokerLost):
            async with connect(settings(broker, version=version), "vanishes", will) as session:
                await session.publish("w/availability", b"online", retain=True)
                assert await some(reader, 1) == [Message("w/availability", b"online")]
                cut_line(session)
                async with asyncio.timeout(PATIENCE):
                    await session.until_lost()
        assert await some(reader, 1) == [Message("w/availability", b"offline")]


async def test_a_session_that_ends_in_order_leaves_no_last_word(broker: Broker) -> None:
    async with connect(settings(broker), "reader") as reader:
        await reader.subscribe("w/#")
        async with connect(settings(broker), "ends", Will("w/a", b"offline")):
            pass
        await reader.publish("w/end", b".")
        assert await some(reader, 1) == [Message("w/end", b".")]


# ---- refused


@pytest.fixture
async def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Broker]:
    """A broker that lets everybody use ok/# and nobody no/#."""
    acl = tmp_path / "acl"
    acl.write_text(ACL)
    acl.chmod(0o600)
    monkeypatch.setattr(broker_module, "_MOSQUITTO", f"{broker_module._MOSQUITTO}acl_file {acl}\n")
    async with running(tmp_path) as one:
        yield one


async def test_a_refused_publication_is_noticed_though_nothing_follows(strict: Broker) -> None:
    """aiomqtt takes it for a success."""
    acknowledged: list[str] = []
    async with connect(settings(strict), "writer") as session:
        await session.publish("ok/1", b"1", acknowledged=lambda: acknowledged.append("ok/1"))
        await session.publish("no/1", b"2", acknowledged=lambda: acknowledged.append("no/1"))
        said = "the broker refuses no/1: Not authorized; allow this client to write there"
        for attempt in (session.until_lost, session.drained, lambda: session.publish("ok/3", b"4")):
            with pytest.raises(BrokerRefused) as caught:
                async with asyncio.timeout(PATIENCE):
                    await attempt()
            assert str(caught.value) == said
        assert acknowledged == ["ok/1"]


async def test_refused_publish_that_is_not_vital_keeps_the_session(strict: Broker) -> None:
    acknowledged: list[str] = []
    async with connect(settings(strict), "writer") as session:
        for topic in ("ok/1", "no/1"):  # mosquitto 2.0.11 leaves who tries twice
            await session.publish(
                topic,
                b"1",
                vital=False,
                acknowledged=lambda topic=topic: acknowledged.append(topic),  # type: ignore[misc]
            )
        async with asyncio.timeout(PATIENCE):
            await session.drained()
        assert acknowledged == ["ok/1"]
        assert session.room


async def test_refused_publish_is_reported_and_the_session_goes_on() -> None:
    refused: list[str] = []
    acknowledged: list[str] = []
    async with (
        Exact(may=lambda topic: topic == "ok").running() as broker,
        connect(Mqtt(port=broker.port), "writer") as session,
    ):
        for topic in ("no", "ok"):
            done = partial(acknowledged.append, topic)
            await session.publish(topic, b"1", vital=False, acknowledged=done, refused=refused.append)
        async with asyncio.timeout(PATIENCE):
            await session.drained()
        assert (refused, acknowledged) == (["Not authorized"], ["ok"])
        await session.publish("ok", b"2")
        await session.drained()
        assert broker.said == [("ok", b"1"), ("ok", b"2")]


async def test_a_refusal_wakes_who_waits_and_nothing_counts_after_it(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows a refused message is sent again after it, in order, though the broker took it."""
    monkeypatch.setattr(mqtt5_session, "WINDOW", 4)
    acknowledged: list[int] = []
    async with connect(settings(broker), "writer") as session:
        os.kill(broker.pid, signal.SIGSTOP)
        for n in range(4):
            await session.publish("t", b"x", acknowledged=partial(acknowledged.append, n))
        numbers = list(session._in_flight)
        waiting = [asyncio.ensure_future(one) for one in (session.publish("t", b"x"), session.drained())]
        await asyncio.sleep(0)
        for number, refusal in zip(numbers, ("", "Not authorized", ""), strict=False):
            session._settle(number, refusal)
        async with asyncio.timeout(PATIENCE):
            for one in waiting:
                with pytest.raises(BrokerRefused):
                    await one
        assert acknowledged == [0]
        os.kill(broker.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("version", "answer", "said"),
    [
        ("5", b"\x90\x05%s\x00\x01\x87", "the broker refuses to let us read no/#: Not authorized; allow"),
        ("3.1.1", b"\x90\x04%s\x01\x80", "the broker refuses to let us read no/#: Not authorized; allow"),
    ],
)
async def test_a_refused_subscription_is_named(version: Literal["5", "3.1.1"], answer: bytes, said: str) -> None:
    """mosquitto 2.0 accepts every subscription and then says nothing; other brokers refuse, each version in its way."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"reader")
        writer.write(b"\x20\x03\x00\x00\x00" if version == "5" else b"\x20\x02\x00\x00")
        subscribe = await reader.readuntil(b"no/#")
        writer.write(answer % subscribe[2:4])
        while await reader.read(100):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = Mqtt(port=server.sockets[0].getsockname()[1], version=version)
        async with connect(where, "reader") as session, asyncio.timeout(PATIENCE):
            with pytest.raises(BrokerRefused) as caught:
                await session.subscribe("ok/#", "no/#")
            assert str(caught.value).startswith(said)


async def test_a_subscription_without_an_answer_is_a_lost_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that took the connection and then was silent ended the whole process."""
    monkeypatch.setattr(mqtt5_session, "ANSWER_TIMEOUT_S", 0.2)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"reader")
        writer.write(b"\x20\x03\x00\x00\x00")
        while await reader.read(100):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        session = Mqtt5Session(mqtt5.ConnectPacket("reader").write())
        await asyncio.get_running_loop().create_connection(lambda: session, *server.sockets[0].getsockname())
        await session.connected
        with pytest.raises(BrokerLost, match="does not answer"):
            await session.subscribe("a")
        await session.close()


@pytest.mark.parametrize(
    "packet",
    [
        b"\xf0\x00",  # AUTH, which nothing asked for
        b"\x34\x07\x00\x01a\x00\x01\x00x",  # QoS 2
        b"\x32\x07\x00\x01a\x00\x00\x00x",  # packet id 0
        b"\x30\x07\x00\x00\x03\x23\x00\x01x",  # no topic but an alias
        pytest.param(
            b"\x30\x05\x00\x02\xff\xfe\x00",  # a topic that is no UTF-8, at which the codec panics
            marks=pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        ),
        b"\x30\xff\xff\xff\xff\x7f",  # a length of five bytes
        b"\x30\x04\x00\x09a\x00",  # a topic longer than its packet
        b"\x10\x10\x00\x04MQTT\x05\x00\x00\x00\x00\x00\x03abc",  # CONNECT from a broker
        b"\x00\x00",
        b"\xe0\x01\x8b",  # DISCONNECT, the server is shutting down
    ],
)
async def test_malformed_mqtt_5_ends_the_connection(packet: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"reader")
        writer.write(b"\x20\x03\x00\x00\x00\x30\x05\x00\x01a\x00b" + packet)
        while await reader.read(100):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = Mqtt(port=server.sockets[0].getsockname()[1])
        async with connect(where, "reader") as session, asyncio.timeout(PATIENCE):
            assert await some(session, 1) == [Message("a", b"b")]
            with pytest.raises(BrokerLost):
                await session.until_lost()
            with pytest.raises(BrokerLost):
                session.send("t", b"")


async def test_a_message_larger_than_the_broker_takes_is_refused_with_its_size() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"writer")
        writer.write(b"\x20\x08\x00\x00\x05\x27\x00\x00\x00\x40")  # maximum packet size 64
        while await reader.read(100):
            pass
        writer.close()

    refused: list[str] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = Mqtt(port=server.sockets[0].getsockname()[1])
        async with connect(where, "writer") as session, asyncio.timeout(PATIENCE):
            session.send("t", bytes(100), vital=False, refused=refused.append)
            await session.drained()
    assert refused == ["108 bytes are more than the 64 that it takes"]


@pytest.mark.parametrize(("properties", "why"), [(b"\x24\x00", "support QoS 1"), (b"\x25\x00", "support QoS 1")])
async def test_a_broker_without_qos_1_or_retained_messages_is_not_used(properties: bytes, why: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"writer")
        writer.write(b"\x20\x05\x00\x00\x02" + properties)
        while await reader.read(100):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        with pytest.raises(BrokerLost, match=why):
            async with connect(Mqtt(port=server.sockets[0].getsockname()[1]), "writer"):
                raise AssertionError("it is of no use")


async def test_a_password_that_is_wrong_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text("")
    passwords.chmod(0o600)
    template = broker_module._MOSQUITTO.replace("allow_anonymous true", f"password_file {passwords}")
    monkeypatch.setattr(broker_module, "_MOSQUITTO", template)
    secret = tmp_path / "secret"
    async with running(tmp_path) as broker:
        with pytest.raises(BrokerLost, match="secret: No such file or directory"):
            async with connect(settings(broker, username="edge", password_file=str(secret)), "x"):
                pass
        secret.write_text("wrong\n")
        with pytest.raises(BrokerLost, match="Not authorized"):
            async with connect(settings(broker, username="edge", password_file=str(secret)), "x"):
                pass


async def test_a_password_that_is_no_text_is_named_and_can_be_mended(tmp_path: Path) -> None:
    """As one that is not there: said once, and looked at again and again. Nothing of it stands in the message."""
    secret = tmp_path / "secret"
    secret.write_bytes("contraseña".encode("latin-1"))
    log = Log()

    async def serve(_session: Session) -> None:
        await asyncio.Event().wait()

    async with Exact().running() as broker:
        user = Mqtt(port=broker.port, username="edge", password_file=str(secret))
        staying = asyncio.create_task(stay_connected(user, "edge", None, serve, log.log))
        await log.until(1)
        assert log.said[0][1]["reason"] == f"{secret}: the password is no UTF-8 text; write the file anew as UTF-8"
        await asyncio.sleep(0.5)
        assert log.words == ["broker.lost"]
        secret.write_text("contraseña", encoding="utf-8")
        await log.until(2)
        assert log.words == ["broker.lost", "broker.back"]
        await cancelled(staying)


async def test_a_broker_that_refuses_is_said_once_and_not_stormed(
    strict: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "TRIAL_S", PATIENCE)
    monkeypatch.setattr(connection, "LOST_AT_ONCE_S", PATIENCE)
    log = Log()
    began: list[float] = []
    sessions: list[Session] = []
    often, works = asyncio.Event(), asyncio.Event()

    async def serve(session: Session) -> None:
        sessions.append(session)
        began.append(asyncio.get_running_loop().time())
        if len(began) == 4:
            often.set()
        await session.publish("no/1", b"x")
        await session.drained()
        works.set()
        await asyncio.Event().wait()

    staying = asyncio.create_task(stay_connected(settings(strict), "edge", None, serve, log.log))
    async with asyncio.timeout(PATIENCE):
        await often.wait()
        waits = [b - a for a, b in pairwise(began)]
        assert all(wait >= least for wait, least in zip(waits, (0.1, 0.2, 0.4), strict=True))
        assert log.words == ["broker.connected", "broker.lost"]
        assert log.said[1][1]["reason"].startswith("the broker refuses no/1: Not authorized")
        (tmp_path / "acl").write_text("topic readwrite #\n")
        os.kill(strict.pid, signal.SIGHUP)  # mosquitto reads its list again
        await works.wait()
        monkeypatch.setattr(connection, "TRIAL_S", 0.3)  # of the next session: nothing refuses it any more
        cut_line(sessions[-1])
        await log.until(3)
    assert log.words == ["broker.connected", "broker.lost", "broker.back"]
    await cancelled(staying)


async def test_a_broker_that_drops_us_again_and_again_is_said_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client with our name, say: each takes the other's place. It is back when it lets us stay."""
    monkeypatch.setattr(connection, "TRIAL_S", 0.3)
    monkeypatch.setattr(connection, "LOST_AT_ONCE_S", PATIENCE)
    log = Log()
    sessions = 0

    async def serve(_session: Session) -> None:
        nonlocal sessions
        sessions += 1
        if sessions < 4:
            raise BrokerLost("dropped")
        await asyncio.Event().wait()

    staying = asyncio.create_task(stay_connected(settings(broker), "edge", None, serve, log.log))
    await log.until(3)
    await cancelled(staying)
    assert sessions == 4
    assert log.words == ["broker.connected", "broker.lost", "broker.back"]


# ---- a long backlog


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_any_packet_is_life_of_the_broker(
    version: Literal["5", "3.1.1"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PINGRESP stands behind the backlog: a connection on which messages flow is not given up for it."""
    monkeypatch.setattr(mqtt5_session, "KEEPALIVE_S", 1)
    monkeypatch.setattr(mqtt311_session, "KEEPALIVE_S", 1)
    pings, ended = 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pings
        await reader.read(1000)
        writer.write(b"\x20\x03\x00\x00\x00" if version == "5" else b"\x20\x02\x00\x00")
        reading = asyncio.create_task(reader.read(1000))
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"\x30\x05\x00\x01t\x00x" if version == "5" else b"\x30\x04\x00\x01tx")
                await writer.drain()
                await asyncio.sleep(0.05)
                if reading.done():
                    if not reading.result():
                        break
                    pings += reading.result().count(b"\xc0\x00")
                    reading = asyncio.create_task(reader.read(1000))
        await asyncio.wait([reading])
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(Mqtt(port=port, version=version), "x") as session:
            heard: list[Message] = []
            session.deliver_to(heard.append)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.until_lost(), 4.5)
            assert len(heard) > 10
            assert pings > 1
        await ended.wait()


async def test_a_subscription_is_waited_for_while_messages_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its SUBACK stands behind the backlog, too."""
    monkeypatch.setattr(mqtt5_session, "ANSWER_TIMEOUT_S", 0.4)
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"\x20\x03\x00\x00\x00")
        await reader.read(1000)
        for _ in range(20):
            writer.write(b"\x30\x05\x00\x01t\x00x")
            await asyncio.sleep(0.1)
        writer.write(b"\x90\x04\x00\x01\x00\x01")
        await reader.read(1000)
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(Mqtt(port=port), "x") as session:
            session.deliver_to(lambda _message: None)
            await session.subscribe("t")
        await ended.wait()


async def test_a_silent_broker_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt5_session, "KEEPALIVE_S", 1)
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x20\x03\x00\x00\x00")
        while await reader.read(1000):
            pass
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(Mqtt(port=port), "x") as session:
            with pytest.raises(BrokerLost, match="does not answer"):
                await asyncio.wait_for(session.until_lost(), PATIENCE)
        await ended.wait()


async def test_a_cut_connection_keeps_its_queue_and_an_orderly_end_drops_it(broker: Broker) -> None:
    async with connect(settings(broker), "writer") as writer:
        async with connect(settings(broker), "reader") as reader:
            await reader.subscribe("t")
            for n in range(3):
                await writer.publish("t", b"%d" % n)
            assert [one.payload for one in await some(reader, 3)] == [b"0", b"1", b"2"]
            await reader.subscribe("other")  # the broker has the acknowledgements
            cut_line(reader)
            with pytest.raises(BrokerLost):
                await reader.until_lost()
        for n in range(1000):
            await writer.publish("t", b"%d" % n)
        await writer.drained()
        async with connect(settings(broker), "reader") as reader:
            assert [one.payload for one in await some(reader, 1000)] == [b"%d" % n for n in range(1000)]
            await reader.subscribe("other")  # mosquitto read them: a new connection must not overtake them
        await writer.publish("t", b"lost")
        await writer.drained()
        async with connect(settings(broker), "reader") as reader:
            await reader.subscribe("t")
            await writer.publish("t", b"new")
            assert [one.payload for one in await some(reader, 1)] == [b"new"]


# ---- killed


async def test_a_broker_killed_while_we_publish_is_noticed_at_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publication in flight would wait for ever; nothing waits for a ping."""
    monkeypatch.setattr(mqtt5_session, "KEEPALIVE_S", 10 * int(PATIENCE))
    acknowledged = 0
    enough = asyncio.Event()

    def count() -> None:
        nonlocal acknowledged
        acknowledged += 1
        if acknowledged == 500:
            enough.set()

    async def publish(session: Session) -> None:
        while True:
            await session.publish("t", b"x" * 100, acknowledged=count)

    async def work() -> None:
        async with connect(settings(broker), "writer") as session, asyncio.TaskGroup() as group:
            group.create_task(session.until_lost())
            group.create_task(publish(session))

    working = asyncio.create_task(work())
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
        await broker.kill()
        with pytest.raises(ExceptionGroup) as caught:
            await working
    assert caught.group_contains(BrokerLost)
    lost, others = caught.value.split(BrokerLost)
    assert lost is not None
    assert others is None


async def test_it_comes_back_and_says_so_once(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TRIAL_S", 0.0)
    log = Log()
    sessions: list[Session] = []
    served = asyncio.Event()

    async def serve(session: Session) -> None:
        await session.subscribe("t")
        sessions.append(session)
        await session.publish("t", b"%d" % len(sessions))
        assert await session.messages() == [Message("t", b"%d" % len(sessions))]
        served.set()
        await asyncio.Event().wait()

    staying = asyncio.create_task(stay_connected(settings(broker), "edge", None, serve, log.log))
    for life in range(3):
        async with asyncio.timeout(PATIENCE):
            await served.wait()
            await log.until(1 + 2 * life)
            served.clear()
            if life == 2:
                break
            await broker.kill()
            await log.until(2 + 2 * life)
            await broker.start()
    where = f"127.0.0.1:{broker.port}"
    assert log.words == ["broker.connected", *["broker.lost", "broker.back"] * 2]
    assert all(fields["broker"] == where for _, fields in log.said)
    assert all(fields["reason"] for word, fields in log.said if word == "broker.lost")
    assert len({id(session) for session in sessions}) == 3
    await cancelled(staying)


@pytest.mark.parametrize("host", ["127.0.0.1", "nobody.invalid", "a" * 64])
async def test_a_broker_that_was_never_there_is_said_once(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    tries = 0
    enough = asyncio.Event()
    real = connection.connect

    def counted(*given: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 3:
            enough.set()
        return real(*given)

    async def serve(_session: Session) -> None:
        raise AssertionError

    monkeypatch.setattr(connection, "connect", counted)
    staying = asyncio.create_task(stay_connected(Mqtt(host=host, port=free_port()), "edge", None, serve, log.log))
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
    await cancelled(staying)
    assert log.words == ["broker.lost"]
    assert log.said[0][1]["reason"]
    assert "TaskGroup" not in log.said[0][1]["reason"]


async def test_the_reason_is_what_happened_not_where_it_was_caught(strict: Broker) -> None:
    """A session's work is tasks within tasks; the log says the innermost word."""
    log = Log()

    async def inner(session: Session) -> None:
        await session.publish("no/1", b"x")
        await session.drained()

    async def serve(session: Session) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(inner(session))

    staying = asyncio.create_task(stay_connected(settings(strict), "edge", None, serve, log.log))
    await log.until(2)
    await cancelled(staying)
    assert log.said[1][1]["reason"].startswith("the broker refuses no/1: Not authorized")


async def test_a_bug_in_the_work_is_not_taken_for_a_lost_broker(broker: Broker) -> None:
    async def serve(_session: Session) -> None:
        raise ZeroDivisionError

    log = Log()
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(PATIENCE):
            await stay_connected(settings(broker), "edge", None, serve, log.log)
    assert caught.group_contains(ZeroDivisionError, depth=1)
    assert "broker.lost" not in log.words


@pytest.mark.parametrize("when", ["serving", "connecting", "waiting"])
async def test_cancelled_it_ends_wherever_it_is(broker: Broker, when: str) -> None:
    log = Log()
    serving = asyncio.Event()

    async def serve(_session: Session) -> None:
        serving.set()
        await asyncio.Event().wait()

    if when == "waiting":
        await broker.kill()
    if when == "connecting":
        os.kill(broker.pid, signal.SIGSTOP)
    staying = asyncio.create_task(stay_connected(settings(broker), "edge", None, serve, log.log))
    async with asyncio.timeout(PATIENCE):
        if when == "serving":
            await serving.wait()
        elif when == "waiting":
            await log.until(1)
        else:
            await asyncio.sleep(0)
    await cancelled(staying)


async def test_cancelled_while_its_thread_still_connects_it_leaves_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiomqtt connects in a thread, which nobody can stop: it opens its socket after the cancellation."""
    opening, go_on, opened = threading.Event(), threading.Event(), threading.Event()
    connecting = aiomqtt.Client._client_connect

    def slowly(client: aiomqtt.Client) -> None:
        opening.set()
        go_on.wait(PATIENCE)
        connecting(client)
        opened.set()

    monkeypatch.setattr(aiomqtt.Client, "_client_connect", slowly)

    async def use() -> None:
        async with connect(settings(broker, version="3.1.1"), "edge"):
            raise AssertionError("nobody waits for it")

    using = asyncio.create_task(use())
    await asyncio.to_thread(opening.wait, PATIENCE)
    using.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await cancelled(using)
    await asyncio.to_thread(opened.wait, PATIENCE)
    async with asyncio.timeout(PATIENCE):  # what its thread still hands to the loop comes and is ended in turns
        while ours := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(ours)


# ---- the broker as a child


@pytest.mark.parametrize("embedded", [False, True])
async def test_a_port_in_use_is_said(tmp_path: Path, embedded: bool) -> None:
    if find_mosquitto() is None and not embedded:
        pytest.skip("no mosquitto on this computer")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        broker = Broker(tmp_path, port=taken.getsockname()[1], embedded=embedded)
        with pytest.raises(RuntimeError, match=r"the broker ended with \d+: (?s:.*)[Aa]ddress already in use"):
            await broker.start()


def test_a_brokers_port_is_nobody_elses_while_it_is_down(tmp_path: Path) -> None:
    """A port that was only looked up went to another's connection before the broker was there."""
    broker = Broker(tmp_path)
    port = broker.port
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
    del broker
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))


FORGETFUL = """\
#!{python}
import signal, socket, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1) if not told else exit())
port = next(line.split()[1] for line in open({config!r}) if line.startswith("listener"))
server = socket.create_server(("127.0.0.1", int(port)))
while True:
    time.sleep(60)
"""


async def test_a_broker_that_forgets_the_first_word_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As mosquitto does with what comes between its listening and its loop."""
    program = tmp_path / "forgetful"
    program.write_text(FORGETFUL.format(python=sys.executable, config=str(tmp_path / "mosquitto.conf")))
    program.chmod(0o700)
    monkeypatch.setattr(broker_module, "find_mosquitto", lambda: str(program))
    monkeypatch.setattr(broker_module, "SAID_AGAIN", 0.05)
    broker = Broker(tmp_path)
    await broker.start()
    pid = broker.pid
    async with asyncio.timeout(PATIENCE):
        await broker.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_it_is_kept_alive(broker: Broker) -> None:
    keeping = asyncio.create_task(broker.keep())
    first = broker.pid
    assert broker._process is not None
    ended = broker._process.wait()
    os.kill(first, signal.SIGKILL)
    await ended
    log = Log()
    served = asyncio.Event()

    async def serve(_session: Session) -> None:
        served.set()
        await asyncio.Event().wait()

    staying = asyncio.create_task(stay_connected(settings(broker), "edge", None, serve, log.log))
    async with asyncio.timeout(PATIENCE):
        await served.wait()
    assert broker.pid != first
    await cancelled(staying)
    await cancelled(keeping)


def test_where_no_mosquitto_is_installed_the_embedded_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "find_mosquitto", lambda: None)
    broker = Broker(tmp_path)
    assert (broker.name, broker.version) == ("embedded broker (amqtt)", "3.1.1")


async def test_a_connection_cancelled_before_the_answer_leaves_no_complaint() -> None:
    """A broker that takes the connection and says nothing, and a Ctrl-C meanwhile."""
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    asked, ended = asyncio.Event(), asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        asked.set()
        while await reader.read(4096):
            pass
        ended.set()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)

    async def look() -> None:
        async with connect(Mqtt(port=server.sockets[0].getsockname()[1]), "cancelled"):
            raise AssertionError("it never answered")

    async with server:
        task = asyncio.create_task(look())
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await ended.wait()
    assert complaints == []


async def test_an_end_that_meets_the_brokers_answer_is_not_lost(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As wait_for of Python 3.11 does it: told to stop in the moment of the answer, it gives the answer."""
    answered = asyncio.Event()
    plain = aiomqtt.Client.subscribe

    async def drops_a_cancellation(*arguments: Any) -> Any:
        answer = await plain(*arguments)
        answered.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return answer

    async def serve(session: Session) -> None:
        await session.subscribe("a/#")
        await asyncio.Event().wait()

    monkeypatch.setattr(aiomqtt.Client, "subscribe", drops_a_cancellation)
    task = asyncio.create_task(
        connection.stay_connected(settings(broker, version="3.1.1"), "late", None, serve, structlog.get_logger())
    )
    async with asyncio.timeout(PATIENCE):
        await answered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
