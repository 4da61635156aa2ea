"""A site with two brokers that have the same states: who reads goes to the next when one is lost, and back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import PATIENCE, broker_may_be_late

from daemon.broker import connection
from daemon.broker.connection import connect
from daemon.broker.retained import read_standing
from daemon.cli import fleet, status_facts
from daemon.cli.backbone import settle
from daemon.cli.forget import StillThere, forget
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


async def test_commands_that_read_once_ask_the_other_broker_and_name_the_first(
    two: list[Broker], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = parse(written(tmp_path, two).read_text(encoding="utf-8"))
    await stand(two[1], {"felt/1/s/edge/edge-9/availability": b"offline"})
    await two[0].kill()
    heard, error, _ = await status_facts._read_broker(config)
    assert heard is not None, error
    assert heard.online == {"edge-9": False}
    assert list(await fleet._standing(config)) == ["felt/1/s/edge/edge-9/availability"]
    assert capsys.readouterr().err.count(f"broker 127.0.0.1:{two[0].port}: ") == 2


async def test_what_is_cleared_is_cleared_at_each_broker_of_the_site(two: list[Broker], tmp_path: Path) -> None:
    """Each has the states from the bridges. What one of them takes for online is cleared at none."""
    path = written(tmp_path, two)
    config = parse(path.read_text(encoding="utf-8"))
    gone, alert = "felt/1/s/edge/edge-9/availability", "felt/1/s/table/t-1/alert/results-disagree"
    for broker, state in zip(two, (b"offline", b"online"), strict=True):
        await stand(broker, {gone: state, alert: b"{}"})
    with pytest.raises(StillThere):
        await forget(config, "edge-9")
    assert [sorted(await standing(one)) for one in two] == [[gone, alert]] * 2
    assert await forget(config, "edge-9", although_online=True) == [gone]
    ran = await asyncio.to_thread(CliRunner().invoke, settle, ["t-1", "-c", str(path)])
    assert ran.exit_code == 0, ran.output
    assert [await standing(one) for one in two] == [{}, {}]


def written(folder: Path, brokers: list[Broker]) -> Path:
    path = folder / "feltd.toml"
    path.write_text(
        f'[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\nport = {brokers[0].port}\n'
        f'others = ["127.0.0.1:{brokers[1].port}"]\n[[table]]\nname = "t-1"\n'
    )
    return path


async def stand(broker: Broker, topics: dict[str, bytes]) -> None:
    async with connect(Mqtt(port=broker.port), "") as session:
        for topic, payload in topics.items():
            await session.publish(topic, payload, retain=True)
        await session.drained()


async def standing(broker: Broker) -> dict[str, bytes]:
    async with connect(Mqtt(port=broker.port), "") as session:
        return await read_standing(session, "felt/#", quiet_s=0.5)


def test_the_edge_stays_with_the_first_broker_and_each_other_goes_through_all() -> None:
    config = parse(
        '[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\nhost = "a"\nport = 8883\ninsecure = true\n'
        'others = ["b", "[::1]:1884"]\n'
    )
    assert [(one.host, one.port) for one in brokers_of(broker_of(config, config.edge))] == [("a", 8883)]
    places = [(one.host, one.port) for one in brokers_of(broker_of(config, config.rules))]
    assert places == [("a", 8883), ("b", 8883), ("::1", 1884)]
