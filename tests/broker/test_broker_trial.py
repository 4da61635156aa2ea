"""The trial of a broker at the start of a process: those that work pass it, others are refused with what they did."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from helpers import PATIENCE, virtual_time

from daemon import logs
from daemon.broker.broker_trial import trial_topic, try_broker
from daemon.broker.connection import connect, stay_connected
from daemon.broker.session import BrokerLost, BrokerRefused, Message, Session, Will
from daemon.config.model import Mqtt
from simulators.lab.broker import Broker, find_mosquitto

WILL = Will("felt/1/site/edge/edge-1/availability", b"offline")
TOPIC = trial_topic(WILL)


@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_mosquitto_passes_and_keeps_nothing(version: str, tmp_path: Path) -> None:
    await _passes(Broker(tmp_path), version)


async def test_the_embedded_broker_passes(tmp_path: Path) -> None:
    pytest.importorskip("amqtt")
    await _passes(Broker(tmp_path, embedded=True), "3.1.1")


async def _passes(broker: Broker, version: str) -> None:
    await broker.start()
    settings = Mqtt(port=broker.port, version=cast("Any", version))
    try:
        async with asyncio.timeout(PATIENCE):
            async with connect(settings, "") as session:
                assert await try_broker(session, TOPIC)
            async with connect(settings, "") as session:
                await session.subscribe("felt/1/site/edge/#")
                await session.publish("felt/1/site/edge/last", b"last")
                assert [message.topic for message in await session.messages()] == ["felt/1/site/edge/last"]
    finally:
        await broker.stop()


class Odd(Session):
    """A broker with a peculiarity, in memory."""

    def __init__(self, renamed: Callable[[str], str] = str, *, keeps: bool = True, closes: bool = False) -> None:
        super().__init__()
        self._renamed = renamed
        self._keeps = keeps
        self._closes = closes
        self._retained: dict[str, bytes] = {}
        self._reads = False

    def _transmit(self, number: int, topic: str, payload: bytes, *_: object) -> None:
        if self._closes:
            self._lose(BrokerLost("the broker closed the connection"))
            return
        self._retained[self._renamed(topic)] = payload
        if self._reads and payload:
            self._received(Message(self._renamed(topic), payload, False, "", b""))
        self._settle(number)

    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        raise NotImplementedError

    async def _subscribe(self, topics: Any, *_: object) -> list[str]:
        if self._reads and self._keeps:
            for topic, payload in self._retained.items():
                self._received(Message(topic, payload, True, "", b""))
        self._reads = True
        return [""] * len(topics)

    async def _unsubscribe(self, topics: Any) -> None:
        """Nothing more is published."""


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (lambda: Odd(lambda topic: topic.replace(".", "/")), "it changes topics: .* came back as .*/broker/trial"),
        (lambda: Odd(keeps=False), "gives no retained messages to a subscription with a wildcard; use mosquitto"),
        (lambda: Odd(closes=True), "it closed the connection at a topic with a dot, as NATS before 2.10 does"),
    ],
)
@virtual_time
async def test_a_broker_that_cannot_be_used_is_refused(odd: Callable[[], Session], said: str) -> None:
    with pytest.raises(BrokerRefused, match=said):
        await try_broker(odd(), TOPIC)


@virtual_time
async def test_a_process_serves_no_session_of_such_a_broker() -> None:
    connections = 0

    @asynccontextmanager
    async def connecting(settings: Mqtt, identifier: str, will: Will | None) -> AsyncIterator[Session]:
        nonlocal connections
        connections += 1
        yield Odd(lambda topic: topic.replace(".", "/"))

    async def serve(_: Session) -> None:
        raise AssertionError("it was served")

    staying = asyncio.create_task(stay_connected(Mqtt(), "feltd-edge-1", WILL, serve, logs.get(), connecting))
    await asyncio.sleep(60)
    assert not staying.done()
    assert connections > 5
    staying.cancel()
    await asyncio.wait([staying])


@pytest.mark.parametrize("answer", [b"\x20\x02\x00\x01", b"\x20\x02\x00\x84", b"\x20\x03\x00\x84\x00"])
async def test_a_broker_of_mqtt_3_1_1_is_named_as_such(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)
        while await reader.read(100):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = Mqtt(port=server.sockets[0].getsockname()[1])
        with pytest.raises(BrokerRefused, match="does not speak MQTT 5; set version ="):
            async with connect(where, "reader"):
                pass
