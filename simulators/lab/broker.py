"""A broker for the demo and the tests, as a child process: mosquitto if it is installed, else the embedded one."""

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Broker", "find_mosquitto", "free_port", "no_broker", "tied"]

_MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence {persistence}
persistence_location {directory}/
autosave_interval 5
set_tcp_nodelay true
max_queued_messages 1000000
max_inflight_messages 0
log_type error
log_type warning
"""
START_TIMEOUT = 60.0
SAID_AGAIN = 2.0


def find_mosquitto() -> str | None:
    """The mosquitto program, also in Debian's place for it."""
    return shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def no_broker(*, embedded: bool = False) -> str:
    """The remedy if there is neither mosquitto nor the embedded broker; empty if a `Broker` can start."""
    if (not embedded and find_mosquitto()) or importlib.util.find_spec("amqtt"):
        return ""
    return "there is no MQTT broker here: apt-get install mosquitto, or use `make demo`, which brings a built-in one"


def tied() -> list[str]:
    """The prefix that ends a command when the process that started it ends, even if that process is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def free_port(owner: object = None) -> int:
    """A TCP port of loopback, reserved for the lifetime of `owner`, or of this process.

    It is bound without listening; a server with SO_REUSEADDR can still bind it. A free port without a reservation could
    be taken a moment later by an outgoing connection or another broker.
    """
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", 0))
    port: int = sock.getsockname()[1]
    weakref.finalize(owner or free_port, os.close, sock.detach())
    return port


class Broker:
    """One broker on one port of loopback, which may be killed and started again."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        embedded: bool = False,
        persistence: bool = False,
        more: str = "",
        before: Sequence[str] = (),
    ) -> None:
        """Files go to `directory`. `embedded` forces the built-in broker. `more` ends mosquitto's configuration.

        `before`: a prefix of the command, such as `tied()`.
        """
        self._before = before
        self.port = port or free_port(self)
        self._directory = directory
        self._program = None if embedded else find_mosquitto()
        self._persistence = persistence
        self._more = more
        self._process: asyncio.subprocess.Process | None = None

    @property
    def name(self) -> str:
        """The broker's name."""
        return "mosquitto" if self._program else "embedded broker (amqtt)"

    @property
    def version(self) -> str:
        """The MQTT version it speaks."""
        return "5" if self._program else "3.1.1"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it answers. Raises RuntimeError with its output."""
        if self._program:
            config = self._directory / "mosquitto.conf"
            text = _MOSQUITTO.format(
                port=self.port, directory=self._directory, persistence="true" if self._persistence else "false"
            )
            if os.geteuid() == 0:
                text += "user root\n"  # otherwise it would change to a user that cannot read our directory
            config.write_text(text + self._more, encoding="utf-8")
            command = [self._program, "-c", str(config)]
        else:
            command = [sys.executable, "-m", "simulators.lab.embedded_broker", str(self.port)]
        log = (self._directory / "broker.log").open("ab")
        try:
            # In a session of its own: only this process handles Ctrl-C in the terminal, and it ends the broker last.
            self._process = await asyncio.create_subprocess_exec(
                *self._before,
                *command,
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            log.close()
        async with asyncio.timeout(START_TIMEOUT):
            while not await self._answers():
                if self._process.returncode is not None:
                    said = (self._directory / "broker.log").read_text(encoding="utf-8", errors="replace")[-500:]
                    raise RuntimeError(f"the broker ended with {self._process.returncode}: {said}")
                await asyncio.sleep(0.02)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def kill(self) -> None:
        """Kill the broker, as a crash does."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """Stop the broker in order."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        """Send the signal again and again: mosquitto ignores one in its first milliseconds, when it already listens."""
        while self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), SAID_AGAIN)

    async def keep(self) -> None:
        """Restart it whenever it ends, as systemd does."""
        assert self._process is not None
        while True:
            await self._process.wait()
            await asyncio.sleep(0.5)
            await self.start()
