"""Streams of a backbone and journals for its tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from helpers import PATIENCE, START

from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from simulators.lab.site.nodes import Nodes, no_nodes
from simulators.lab.site.postgres import no_postgres

NEEDS_NODES = pytest.mark.skipif(bool(no_nodes()), reason=no_nodes() or "-")
NEEDS_POSTGRES = pytest.mark.skipif(bool(no_postgres()), reason=no_postgres() or "-")


def fill(path: Path, rows: int, kind: str = "ball.landed") -> Journal:
    """A journal of two tables with so many rows; it stays open."""
    journal = Journal(path)
    for number in range(rows):
        entry = Entry(f"t-{number % 2 + 1}", "wheel", kind, START, b'{"pocket":"%d"}' % (number % 37))
        journal.append([entry], {})
    return journal


@contextlib.asynccontextmanager
async def jetstream(nodes: Nodes) -> AsyncIterator[Any]:
    """The JetStream context of an administrator."""
    import nats

    connection = await nats.connect(nodes.servers, max_reconnect_attempts=-1)
    try:
        yield connection.jetstream(timeout=60)
    finally:
        await connection.close()


async def stored(nodes: Nodes, stream: str) -> list[Any]:
    """All messages of a stream, in its order. A node that comes back may end a reader: another one begins anew."""
    from nats.js.api import AckPolicy, ConsumerConfig
    from nats.js.errors import APIError

    async with asyncio.timeout(PATIENCE), jetstream(nodes) as there:
        while True:
            found: list[Any] = []
            try:
                count = (await there.stream_info(stream)).state.messages
                reader = await there.pull_subscribe("", stream=stream, config=ConsumerConfig(ack_policy=AckPolicy.NONE))
                while len(found) < count:
                    found += await reader.fetch(min(count - len(found), 500), timeout=10)
            except (TimeoutError, APIError):  # the library raises asyncio's and, derived from it, its own
                continue
            return found
