"""A site with two brokers that have the same states: who reads goes to the next when one is lost, and back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from helpers import PATIENCE, broker_may_be_late

from daemon.broker import connection
from daemon.broker.connection import connect
from daemon.config.model import Mqtt, broker_of, brokers_of, parse
from daemon.read_model import SiteState
from simulators.lab.broker import Broker, find_mosquitto

ONLINE = "felt/1/s/table/t-{}/device/wheel-1/availability"
TABLES = 50


@pytest.fixture
async def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Broker]]:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    broker_may_be_late(monkeypatch)
    brokers = []
    for name in "ab":
        (tmp_path / name).mkdir()
        brokers.append(Broker(tmp_path / name))
        await brokers[-1].start()
    yield brokers
    for broker in brokers:
        await broker.stop()


async def tell(broker: Broker, state: bytes) -> None:
    """What the bridges of the tables bring to a broker."""
    async with connect(Mqtt(port=broker.port), "bridge") as bridge:
        for number in range(TABLES):
            await bridge.publish(ONLINE.format(number), state, retain=True)
        await bridge.drained()


async def test_a_reader_has_all_states_from_the_other_broker_and_returns(
    two: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(connection, "RETURN_S", 0.3)
    state = SiteState(Mqtt(port=one.port, others=(f"127.0.0.1:{other.port}",)), "s")
    running = asyncio.create_task(state.run("console"))

    def shows(online: bool) -> bool:
        return [device.online for device in state.devices.values()] == [online] * TABLES

    try:
        async with asyncio.timeout(PATIENCE):
            await tell(one, b"online")
            await state.until(lambda: shows(True))
            await tell(other, b"offline")  # so that it is seen which one is read
            await one.kill()
            await state.until(lambda: shows(False))
            await one.start()
            await tell(one, b"online")
            await state.until(lambda: shows(True))
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def test_the_edge_stays_with_the_first_broker_and_each_other_goes_through_all() -> None:
    config = parse(
        '[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\nhost = "a"\nport = 8883\ninsecure = true\n'
        'others = ["b", "[::1]:1884"]\n'
    )
    assert [(one.host, one.port) for one in brokers_of(broker_of(config, config.edge))] == [("a", 8883)]
    places = [(one.host, one.port) for one in brokers_of(broker_of(config, config.rules))]
    assert places == [("a", 8883), ("b", 8883), ("::1", 1884)]
