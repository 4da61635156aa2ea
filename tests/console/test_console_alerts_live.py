"""Incidents of a real edge through a real broker that dies and forgets everything: nothing ends that is still so."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers import PATIENCE

from daemon.config.model import Config, parse
from daemon.console.alerts.records import Filter
from daemon.console.app import ConsoleProcess, open_console
from daemon.edge.edge import Edge
from daemon.journal.store import Journal
from simulators.lab.broker import Broker, free_port

CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
journal = "{folder}/edge.db"
[mqtt]
port = {port}
[console]
store = "{folder}/console.db"
[[table]]
name = "bac-12"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:{device}"
"""


@contextlib.asynccontextmanager
async def running(process: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(process)
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def living(config: Config) -> AsyncIterator[None]:
    """An edge over its journal."""
    with contextlib.closing(Journal(Path(config.edge.journal))) as journal:
        async with running(Edge(config, journal).run()):
            yield


@contextlib.asynccontextmanager
async def there(port: int) -> AsyncIterator[None]:
    """A device that answers and says nothing."""
    connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: connections.append(writer), "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for writer in connections:
            writer.transport.abort()
        await server.wait_closed()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    one = Broker(tmp_path)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


async def until(house: ConsoleProcess, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            house.watch.look()
            await asyncio.sleep(0.02)  # its own look is a second apart


@pytest.mark.system
async def test_over_a_broker_that_forgets_and_an_edge_that_dies(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PEERS_REPORT_WITHIN", "BROKER_LOST", "ALERTS_REPEATED_WITHIN"):
        monkeypatch.setattr(f"daemon.console.alerts.processes.{name}", timedelta(seconds=0.5))
    device = free_port()
    config = parse(CONFIG.format(folder=tmp_path, port=broker.port, device=device))
    with contextlib.closing(Journal(tmp_path / "actions.db")) as actions:
        async with open_console(config, actions) as house, running(house.run()):
            await _lived(house, config, broker, device)


async def _lived(house: ConsoleProcess, config: Config, broker: Broker, device: int) -> None:
    incidents = house.incidents

    def codes() -> set[str]:
        return {one.incident.code for one in incidents.open(house.now())}

    async with living(config):
        await until(house, lambda: codes() == {"device.offline"})
        [first] = [one.incident for one in incidents.open(house.now())]
        incidents.acknowledge(first.n, "maria", "on my way", house.now())
    await until(house, lambda: codes() == {"device.offline", "edge.offline"})
    await broker.kill()
    await until(house, lambda: "broker.lost" in codes())

    await broker.start()
    await until(house, lambda: "broker.lost" not in codes())
    connected = incidents.connected
    assert connected is not None
    # Nothing is retained any more, and nobody is there to say anything: what was so is not over.
    await until(house, lambda: house.now() - connected > timedelta(seconds=2))
    assert codes() == {"device.offline", "edge.offline"}

    async with living(config):
        await until(house, lambda: codes() == {"device.offline"})
        [shown] = incidents.open(house.now())
        assert (shown.incident.n, shown.incident.times) == (first.n, 1)
        assert (shown.incident.state, shown.incident.by) == ("acknowledged", "maria")
        async with there(device):
            await until(house, lambda: codes() == set())
    history = incidents.history(Filter(code="device.offline"), 9)
    assert [(one.n, one.state, one.times) for one in history] == [(first.n, "resolved", 1)]
