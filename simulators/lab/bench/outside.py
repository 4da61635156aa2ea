"""Measures programs from outside: lines go into a tty, and a subscriber in C records what the broker delivers.

A subscriber in Python takes a millisecond a message at low rates, which hides the differences between the programs.
The C program is `outside.c`; it is built when a benchmark starts. The same file contains the bridge in C that feltd
is compared with.
"""

import contextlib
import heapq
import json
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from protocols.bee_tek_shoe import Drawn, encode
from simulators.lab.broker import free_port

__all__ = [
    "FLAT_OUT",
    "CannotMeasureError",
    "Feeder",
    "Heard",
    "NothingCameError",
    "Program",
    "Tap",
    "build",
    "cards",
    "last_evidence",
    "mosquitto",
    "node_command",
    "python",
    "wait",
]

HERE = Path(__file__).parent
FLAT_OUT = float("inf")
"""The rate of a burst: lines a second, as fast as the tty takes them."""
LOST_AFTER_S = 30.0
"""Seconds without any message after which missing messages count as lost."""
BLOCK = 64  # lines that a burst writes at once
START_TIMEOUT_S = 60.0


class CannotMeasureError(Exception):
    """A requirement of the measurement is not installed. The message names it."""


class NothingCameError(Exception):
    """The measured program does not answer. The message names it."""


class Heard(Struct, frozen=True):
    """A message and its time of arrival, nanoseconds of the monotonic clock."""

    at: int
    topic: str
    payload: bytes


def build(folder: Path) -> Path:
    """Compile `outside.c`. Raises CannotMeasureError."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise CannotMeasureError("the subscriber is a C program: apt-get install gcc libmosquitto-dev")
    program = folder / "outside"
    command = [compiler, "-O2", "-o", str(program), str(HERE / "outside.c"), "-lmosquitto"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise CannotMeasureError(f"the subscriber cannot be built: {reason}; apt-get install libmosquitto-dev")
    return program


def node_command() -> list[str]:
    """The Node.js bridge, without its arguments. Raises CannotMeasureError if Node or a library of it is missing."""
    node = shutil.which("node")
    if node is None:
        raise CannotMeasureError("no bridge in Node.js: node is not installed")
    libraries = [node, "-e", "require('serialport'); require('mqtt')"]
    if subprocess.run(libraries, capture_output=True, check=False, timeout=60).returncode:  # noqa: S603
        text = "no bridge in Node.js: npm install serialport mqtt, and name that node_modules folder in NODE_PATH"
        raise CannotMeasureError(text)
    return [node, str(HERE / "node_bridge.js")]


def cards(count: int) -> list[bytes]:
    """Lines of a shoe, no two alike in a row."""
    rng = random.Random(1)
    deck = [rank + suit for rank in "A23456789TJQK" for suit in "SHDC"]
    drawn = [rng.choice(deck)]
    while len(drawn) < count:
        drawn.append(rng.choice([card for card in deck if card != drawn[-1]]))
    return [encode(Drawn(card)) for card in drawn]


def wait(reached: Callable[[], bool], came: Callable[[], int], what: str) -> None:
    """Wait until `reached`, as long as `came` grows. Raises NothingCameError."""
    last, since = came(), time.monotonic()
    while not reached():
        time.sleep(0.02)
        if (now := came()) != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > LOST_AFTER_S:
            raise NothingCameError(f"{what}; nothing more came for {LOST_AFTER_S:.0f} s")


class Program:
    """A child process with its log, its CPU time and its memory."""

    def __init__(self, command: Sequence[str], log: Path, env: dict[str, str] | None = None) -> None:
        """Start the process; `log` receives its output."""
        self._log, self._name = log, " ".join(command[:3])
        with log.open("wb") as file:
            self._process = subprocess.Popen(  # noqa: S603
                command, stdout=file, stderr=file, env=env, start_new_session=True
            )

    def cpu_us(self) -> float:
        """CPU time of all its threads so far."""
        total = 0
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # the thread has ended
                total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e3

    def resident_mib(self) -> float:
        """Its resident memory."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def set_nice(self, nice: int) -> None:
        """Give all its threads this priority. Raises PermissionError."""
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), nice)

    @property
    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-500:]

    def check(self) -> None:
        """Raises NothingCameError if it has ended."""
        if self._process.poll() is not None:
            raise NothingCameError(f"{self._name} ended: {self.said}")

    def finish(self) -> None:
        """Wait until it ends by itself."""
        self._process.wait(START_TIMEOUT_S)

    def stop(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Tap:
    """The subscriber."""

    def __init__(self, tool: Path, file: Path, port: int, *topics: str) -> None:
        """Subscribed when it returns. Raises NothingCameError."""
        self.heard: list[Heard] = []
        self._rest = b""
        command = [str(tool), "tap", str(port), str(file), *topics]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise NothingCameError("the subscriber cannot connect to the broker")
        self._file = file.open("rb")

    def look(self) -> int:
        """Read what arrived; how many messages there are."""
        data, at = self._rest + self._file.read(), 0
        while at + 16 <= len(data):
            time_ns, topic, payload = struct.unpack_from("<qii", data, at)
            end = at + 16 + topic + payload
            if end > len(data):
                break
            self.heard.append(Heard(time_ns, data[at + 16 : at + 16 + topic].decode(), data[at + 16 + topic : end]))
            at = end
        self._rest = data[at:]
        return len(self.heard)

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._file.close()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Feeder:
    """Ttys into which lines are written at a pace; the program's answers are discarded."""

    def __init__(self, links: Sequence[Path]) -> None:
        """The measured program opens `links`; `write` returns its times in their order."""
        self._masters: list[int] = []
        self._slaves: list[int] = []
        for link in links:
            master, slave = os.openpty()
            tty.setraw(slave, termios.TCSANOW)
            os.set_blocking(master, False)
            link.symlink_to(os.ttyname(slave))
            self._masters.append(master)
            self._slaves.append(slave)
        self._lines = cards(1000)
        self._at = 0
        self._ended = threading.Event()
        self._drain = threading.Thread(target=self._drained)
        self._drain.start()

    def _drained(self) -> None:
        poller = select.poll()
        for master in self._masters:
            poller.register(master, select.POLLIN)
        while not self._ended.is_set():
            for master, _ in poller.poll(200):
                with contextlib.suppress(OSError):
                    os.read(master, 4096)

    def _line(self) -> bytes:
        self._at += 1
        return self._lines[self._at % len(self._lines)]

    def write(self, count: int, rate: float) -> list[list[int]]:
        """Write `count` lines into each tty at `rate` a second each; the times of each tty's lines."""
        times: list[list[int]] = [[] for _ in self._masters]
        jitter, began = random.Random(count), time.monotonic()
        if rate == FLAT_OUT:
            for _ in range(0, count, BLOCK):
                for which, master in enumerate(self._masters):
                    size = min(BLOCK, count - len(times[which]))
                    times[which] += [time.monotonic_ns()] * size
                    _write_all(master, b"".join(self._line() for _ in range(size)))
            return times
        due = [(began + jitter.random() / rate, which) for which in range(len(self._masters))]
        heapq.heapify(due)
        for _ in range(count * len(self._masters)):
            at, which = heapq.heappop(due)
            time.sleep(max(at - time.monotonic(), 0.0))
            times[which].append(time.monotonic_ns())
            _write_all(self._masters[which], self._line())
            heapq.heappush(due, (at + jitter.uniform(0.5, 1.5) / rate, which))
        return times

    def close(self) -> None:
        """Close the ttys."""
        self._ended.set()
        self._drain.join()
        for one in (*self._masters, *self._slaves):
            os.close(one)


def _write_all(master: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(master, data) :]
        except BlockingIOError:
            select.select([], [master], [], 1.0)


@contextlib.contextmanager
def mosquitto(folder: Path, program: str) -> Iterator[tuple[int, Program]]:
    """A broker without limits on loopback: its port and process."""
    port = free_port()
    config = folder / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nlog_type error\n"
        "max_inflight_messages 0\nmax_queued_messages 0\n",
        encoding="utf-8",
    )
    broker = Program([program, "-c", str(config)], folder / "mosquitto.log")
    try:
        _until_open(port, broker)
        yield port, broker
    finally:
        broker.stop()


def _until_open(port: int, broker: Program) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until:
        broker.check()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.02)
    raise NothingCameError(f"mosquitto does not listen: {broker.said}")


def python(*words: str, beside: Path | None = None) -> tuple[list[str], dict[str, str]]:
    """A module of this Python with its arguments, and its environment; `beside`: from another checkout."""
    env = dict(os.environ)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program starts from compiled modules
    env["PYTHONSAFEPATH"] = "1"  # not from the current folder
    if beside is not None:
        env["PYTHONPATH"] = str(beside.resolve())
    return [sys.executable, "-m", *words], env


def last_evidence(payload: bytes) -> str:
    """The id of the event that completed a result."""
    return str(json.loads(payload)["data"]["result"]["evidence"][-1])
