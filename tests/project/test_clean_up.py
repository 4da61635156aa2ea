"""What is left to do when a task was cancelled is done to its end, on Debian 12's own Python too.

asyncio.timeout of Python 3.11.2 takes its own end for a cancellation where its task was cancelled before, and what
comes after it in a `finally` is not done. What waits there with a limit waits with asyncio.wait_for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import SimpleNamespace, TracebackType
from typing import cast

import pytest
from helpers import virtual_time

from daemon.broker.session import Session, publish_last
from daemon.edge.links.link import StreamLink
from simulators.lab.broker import Broker


@pytest.fixture(autouse=True)
def of_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio.timeout as it is there."""
    leave = asyncio.Timeout.__aexit__

    async def leaves(
        self: asyncio.Timeout,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await leave(self, kind, error, trace)
        except TimeoutError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                return
            raise

    monkeypatch.setattr(asyncio.Timeout, "__aexit__", leaves)


async def cancelled(clean: Callable[[], Awaitable[None]]) -> bool:
    """Whether what comes after `clean` in the end of a cancelled task is still done."""
    done = False

    async def work() -> None:
        nonlocal done
        try:
            await asyncio.Event().wait()
        finally:
            await clean()
            done = True

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    return done


@virtual_time
async def test_the_timeout_of_debian_is_as_it_is_said_to_be() -> None:
    async def clean() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.Event().wait()

    assert not await cancelled(clean)


@virtual_time
async def test_a_link_whose_transport_does_not_end() -> None:
    link = StreamLink(lambda: datetime.now(UTC))
    link.connection_made(
        cast(
            "asyncio.Transport",
            SimpleNamespace(is_closing=lambda: False, abort=lambda: None, get_write_buffer_size=lambda: 0),
        )
    )
    assert await cancelled(link.close)


@virtual_time
async def test_a_broker_that_does_not_take_a_last_word() -> None:
    sent: list[str] = []

    async def never() -> None:
        await asyncio.Event().wait()

    session = SimpleNamespace(send=lambda topic, *_args, **_options: sent.append(topic), drained=never)
    assert await cancelled(lambda: publish_last(cast("Session", session), "felt/1/x", b"offline"))
    assert sent == ["felt/1/x"]


@virtual_time
async def test_a_broker_that_forgets_its_first_signal(tmp_path_factory: pytest.TempPathFactory) -> None:
    told: list[int] = []
    over = asyncio.Event()

    def signalled(number: int) -> None:
        told.append(number)
        if len(told) == 3:
            process.returncode = 0
            over.set()

    process = SimpleNamespace(returncode=None, send_signal=signalled, wait=over.wait)
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker._process = cast("asyncio.subprocess.Process", process)
    assert await cancelled(broker.stop)
    assert len(told) == 3
