"""`feltd bench`: how fast the spine is, beside yardsticks in the same run.

The yardstick is the loop everybody writes first: a tty's lines published one by one with the same client, nothing kept,
nothing understood. Beside it stands the same loop with the one thing that durability cannot do without, an fdatasync
before each publish. All get the same bytes at the same pace through a real tty and the same mosquitto, in turns, so
that the machine's noise meets all. Figures are milliseconds from the write of a line to the arrival of what came of it,
by one clock; what is compared are ratios.
"""

import asyncio
import contextlib
import os
import random
import select
import signal
import statistics
import sys
import tempfile
import termios
import threading
import time
import tty
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from daemon.broker.connection import connect
from daemon.broker.session import Message, Session
from daemon.config.model import Mqtt
from protocols.bee_tek_shoe import Drawn, encode
from protocols.contract.results import decode_end
from protocols.contract.topics import decode_wire
from simulators.clock import Pace
from simulators.devices.fdl_console import Console
from simulators.lab.bench.machine import cpu_seconds, machine, resident
from simulators.lab.broker import Broker
from simulators.lab.pit import Pit
from simulators.ports.port import Socket, Tcp

__all__ = ["NothingCameError", "Report", "bench", "markdown"]

TABLE, DEVICE = "bench-1", "shoe-1"
EVENTS = f"felt/1/bench/table/{TABLE}/device/{DEVICE}/event/card.drawn"
RESULTS = f"felt/1/bench/table/{TABLE}/round/event/resolved"
OPENINGS = f"felt/1/bench/table/{TABLE}/round/event/opened"
YARDS = ("bare", "synced")
TURNS = 3
# After QUIET_S without an event none is under way. An event that does not arrive within EVENT_TIMEOUT_S is lost.
QUIET_S, EVENT_TIMEOUT_S = 0.3, 30.0
NODELAY = ((6, 1, 1),)  # IPPROTO_TCP, TCP_NODELAY


class Pair(Struct, frozen=True):
    """feltd beside the yardsticks at one rate (lines a second).

    p50 and p99 in milliseconds, medians over the turns; `ratios` are feltd to each yardstick, medians of the turns'.
    """

    what: str
    rate: int
    lines: int
    feltd: tuple[float, float]
    yards: dict[str, tuple[float, float]]
    ratios: dict[str, tuple[float, float]]


class Report(Struct, frozen=True):
    """One run. Throughput in events a second on one core; memory in bytes; idle CPU as a share of one core."""

    machine: str
    date: str
    pairs: tuple[Pair, ...]
    sustained: float
    sustained_bare: float
    resident: int
    idle_cpu: float


def cards(count: int) -> list[bytes]:
    """Lines of a shoe, no two alike in a row."""
    rng = random.Random(1)
    deck = [rank + suit for rank in "A23456789TJQK" for suit in "SHDC"]
    drawn = [rng.choice(deck)]
    while len(drawn) < count:
        drawn.append(rng.choice([card for card in deck if card != drawn[-1]]))
    return [encode(Drawn(card)) for card in drawn]


# ---- the yardstick, run as `python -m daemon.bench NAME TTY PORT LOG` and `python -m daemon.bench NAME relay PORT LOG`


class Log:
    """An append-only file: the least that makes a line survive a power cut. Nothing where no `path` is given."""

    def __init__(self, path: str) -> None:
        """Opened for appending."""
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600) if path else None

    def write(self, line: bytes) -> None:
        """Return when it is durable."""
        if self._fd is not None:
            os.write(self._fd, line)
            os.fdatasync(self._fd)


async def bare(name: str, path: str, port: int, log: Log) -> None:
    """Lines of a tty, one by one, to the broker."""
    import aiomqtt
    import serial_asyncio_fast

    reader, _ = await serial_asyncio_fast.open_serial_connection(url=path, baudrate=9600)
    version = aiomqtt.ProtocolVersion.V5
    async with aiomqtt.Client("127.0.0.1", port, protocol=version, socket_options=NODELAY) as client:
        while True:
            line = await reader.readuntil(b"\n")
            log.write(line)
            await client.publish(f"{name}/event", line, qos=1)


async def relay(name: str, port: int, log: Log) -> None:
    """What was published is published again: the bare way of a consumer."""
    import aiomqtt

    version = aiomqtt.ProtocolVersion.V5
    async with aiomqtt.Client("127.0.0.1", port, protocol=version, socket_options=NODELAY) as client:
        await client.subscribe(f"{name}/event", qos=1)
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            log.write(message.payload)
            await client.publish(f"{name}/result", message.payload, qos=1)


# ---- one side of a comparison


class Side:
    """A tty with a program at its other end, and what the broker says came of it."""

    def __init__(self, path: Path) -> None:
        """The program opens `path`."""
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave, termios.TCSANOW)
        os.set_blocking(self.master, False)
        path.symlink_to(os.ttyname(self._slave))
        self._lines = cards(1000)
        self._at = 0
        self.written: list[int] = []
        self.heard: list[int] = []
        self.resolved: list[tuple[int, int]] = []
        self.opened = 0
        self._which: dict[str, int] = {}

    def hear(self, message: Message) -> None:
        """A message arrived. A round belongs to the last line it rests on."""
        now = time.monotonic_ns()
        if message.topic == OPENINGS:
            self.opened += 1
        elif message.topic == RESULTS:
            evidence = decode_end(decode_wire(message.payload).data).evidence
            if evidence[-1] in self._which:
                self.resolved.append((self._which[evidence[-1]], now))
        elif message.topic.endswith("/result"):
            self.resolved.append((len(self.resolved), now))
        elif message.topic.startswith(YARDS):
            self.heard.append(now)
        else:
            id_ = decode_wire(message.payload).id
            if id_ not in self._which:
                self._which[id_] = len(self.heard)
                self.heard.append(now)

    def forget(self) -> None:
        """Begin a measurement."""
        self.written, self.heard, self.resolved = [], [], []
        self._which = {}

    def write(self, count: int, rate: float) -> None:
        """Write lines at `rate` a second (infinity: as fast as they are taken), in a thread: the pace is its own."""
        due = time.monotonic()
        jitter = random.Random(count)
        for _ in range(count):
            if rate != float("inf"):
                due += jitter.uniform(0.5, 1.5) / rate
                time.sleep(max(due - time.monotonic(), 0.0))
            line = self._lines[self._at % len(self._lines)]
            self._at += 1
            self.written.append(time.monotonic_ns())
            while line:
                try:
                    line = line[os.write(self.master, line) :]
                except BlockingIOError:
                    select.select([], [self.master], [], 1.0)

    def drain(self) -> None:
        """What the program says to the device is read and thrown away."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.master, 4096)

    def close(self) -> None:
        """Give the tty back."""
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self._slave)
        os.close(self.master)


class NothingCameError(Exception):
    """The measured part does not answer. The message names it."""


async def until(reached: Callable[[], bool], came: Callable[[], int], what: str) -> None:
    """Wait for as long as more comes. Raises NothingCameError."""
    loop = asyncio.get_running_loop()
    last, since = came(), loop.time()
    while not reached():
        await asyncio.sleep(0.01)
        if (now := came()) != last:
            last, since = now, loop.time()
        elif loop.time() - since > EVENT_TIMEOUT_S:
            raise NothingCameError(f"{what}; nothing more came for {EVENT_TIMEOUT_S:.0f} s")


async def until_quiet(side: Side) -> None:
    """Until nothing more comes of what was written."""
    last = -1
    while last != (last := len(side.heard) + len(side.resolved)):
        await asyncio.sleep(QUIET_S)


async def until_it_answers(side: Side, name: str, *, rounds: bool) -> None:
    """Until the program reads its tty and what comes of its lines arrives. Raises NothingCameError."""
    loop = asyncio.get_running_loop()
    loop.add_reader(side.master, side.drain)

    async def ask() -> None:
        for _ in range(int(EVENT_TIMEOUT_S * 5)):  # fewer than fill an unread tty
            side.write(1, float("inf"))
            await asyncio.sleep(0.2)

    asking = loop.create_task(ask())
    what = f"no {'result' if rounds else 'event'} of {name!r} came over the broker"
    try:
        await until(lambda: bool(side.resolved if rounds else side.heard), lambda: len(side.heard), what)
    finally:
        asking.cancel()
    await until_quiet(side)


async def run_side(side: Side, count: int, rate: float) -> None:
    """Write and wait for all that comes of it. Raises NothingCameError."""
    side.forget()
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def write() -> None:
        side.write(count, rate)
        loop.call_soon_threadsafe(done.set_result, None)

    thread = threading.Thread(target=write)
    thread.start()
    await done
    thread.join()
    await until(lambda: len(side.heard) >= count, lambda: len(side.heard), f"not all of {count} lines came out")
    await until_quiet(side)  # the last round
    if not side.resolved:
        raise NothingCameError(f"{count} lines came out, and no round ended")


def percentiles(values: list[float]) -> tuple[float, float]:
    """Median and 99th."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]


def latencies(side: Side, what: str) -> list[float]:
    """Milliseconds of each event, or of each round by the line that ended it."""
    if what == "event":
        return [(there - here) / 1e6 for here, there in zip(side.written, side.heard, strict=True)]
    return [(there - side.written[which]) / 1e6 for which, there in side.resolved]


# ---- the processes


@contextlib.asynccontextmanager
async def program(*words: str, core: int | None = None) -> AsyncIterator[int]:
    """A child of this Python, pinned to a core where one is named; its pid."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", *words, stderr=asyncio.subprocess.DEVNULL)
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


def configuration(directory: Path, port: int, console: int) -> Path:
    """A table with a shoe and a console, journal durable as always."""
    path = directory / "feltd.toml"
    path.write_text(
        f"""
[site]
name = "bench"
[edge]
name = "edge-1"
journal = "{directory}/edge.db"
[rules]
journal = "{directory}/rules.db"
[mqtt]
port = {port}
[[table]]
name = "{TABLE}"
ruleset = "macau.baccarat"
[[table.device]]
name = "{DEVICE}"
driver = "bee_tek_shoe"
url = "serial://{directory}/felt"
options = {{ repeat = 0.0 }}
[[table.device]]
name = "console-1"
driver = "fdl_console"
url = "tcp://127.0.0.1:{console}"
""",
        encoding="utf-8",
    )
    return path


async def compare(directory: Path, rates: list[int], seconds: float, say: Callable[[str], None]) -> tuple[Pair, ...]:
    """All sides, in turns, at each rate."""
    broker = Broker(directory)
    await broker.start()
    sides = {name: Side(directory / name) for name in (*YARDS, "felt")}
    loop = asyncio.get_running_loop()
    pairs: list[Pair] = []
    console, socket, pace = make_console()
    living = loop.create_task(socket.live())
    try:
        config = configuration(directory, broker.port, console_port(socket))
        async with contextlib.AsyncExitStack() as stack:
            for words in (("edge", "-c", str(config)), ("rules", "-c", str(config))):
                await stack.enter_async_context(program("daemon.cli", *words))
            for name in YARDS:
                for what in (str(directory / name), "relay"):
                    log = str(directory / f"{name}-{what[-5:]}.log") if name == "synced" else ""
                    await stack.enter_async_context(
                        program("simulators.lab.bench.spine", name, what, str(broker.port), log)
                    )
            session = await stack.enter_async_context(connect(Mqtt(port=broker.port), "bench"))
            await session.subscribe(EVENTS, RESULTS, OPENINGS, *(f"{name}/+" for name in YARDS))
            listener = loop.create_task(listen(session, sides))
            for name, side in sides.items():
                await until_it_answers(side, name, rounds=True)
                await run_side(side, 200, 100)
            opened = (felt := sides["felt"]).opened
            # Whatever was doubtful before is over. Pressed now: a key of long ago would put the round in doubt.
            console.press("bets_opened", pace.now())
            socket.stir()
            await until(lambda: felt.opened > opened, lambda: felt.opened, "the console's key opened no round")
            for rate in rates:
                pairs += await compare_at(sides, rate, max(int(rate * seconds), 40))
                say(f"{rate} lines a second: done")
            listener.cancel()
    finally:
        living.cancel()
        await broker.stop()
        for side in sides.values():
            side.close()
    return tuple(pairs)


async def listen(session: Session, sides: dict[str, Side]) -> None:
    """Give each side what is its own."""
    while True:
        for message in await session.messages():
            sides[message.topic.partition("/")[0]].hear(message)


def make_console() -> tuple[Console, Socket, Pace]:
    """A console, plugged in, and its clock."""
    console, pace = Console(random.Random(1)), Pace()
    socket = Socket(console, Tcp("127.0.0.1", 0), pace)
    socket.port.plug()
    return console, socket, pace


def console_port(socket: Socket) -> int:
    """Where it listens."""
    assert isinstance(socket.port, Tcp)
    return socket.port.port


async def compare_at(sides: dict[str, Side], rate: int, count: int) -> list[Pair]:
    """Turns at one rate."""
    figures: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(TURNS):
        for name, side in sides.items():
            await run_side(side, count, rate)
            for what in ("event", "result"):
                figures.setdefault((what, name), []).append(percentiles(latencies(side, what)))
    pairs = []
    for what in ("event", "result"):
        mine = figures[what, "felt"]
        ratios = {
            name: medians([(a[0] / b[0], a[1] / b[1]) for a, b in zip(mine, figures[what, name], strict=True)])
            for name in YARDS
        }
        yards = {name: medians(figures[what, name]) for name in YARDS}
        pairs.append(Pair(f"wire to {what}", rate, count * TURNS, medians(mine), yards, ratios))
    return pairs


def medians(turns: list[tuple[float, float]]) -> tuple[float, float]:
    """Of the p50s and of the p99s."""
    return round(statistics.median(p50 for p50, _ in turns), 3), round(statistics.median(p99 for _, p99 in turns), 3)


async def sustained(directory: Path, bare_loop: bool, count: int) -> float:
    """Events a second through one process on one core, as fast as the tty gives them."""
    broker = Broker(directory)
    await broker.start()
    name = "bare" if bare_loop else "felt"
    side = Side(directory / name)
    loop = asyncio.get_running_loop()
    core = max(os.sched_getaffinity(0))
    try:
        words = (
            ("simulators.lab.bench.spine", name, str(directory / name), str(broker.port), "")
            if bare_loop
            else ("daemon.cli", "edge", "-c", str(configuration(directory, broker.port, 1)))
        )
        async with program(*words, core=core), connect(Mqtt(port=broker.port), "bench") as session:
            await session.subscribe("bare/event" if bare_loop else EVENTS)
            listener = loop.create_task(listen(session, {name: side}))
            await until_it_answers(side, name, rounds=False)
            for size, pace in ((200, 100.0), (count, float("inf"))):
                side.forget()
                await asyncio.to_thread(side.write, size, pace)
                heard = side.heard
                await until(lambda: len(heard) >= size, lambda: len(heard), f"not all of {size} lines came out")  # noqa: B023 - awaited here
            listener.cancel()
            # The pipe was full from the first tenth on; the rest shows the steady rate.
            tenth = len(side.heard) // 10
            return (len(side.heard) - tenth) / ((side.heard[-1] - side.heard[tenth]) / 1e9)
    finally:
        await broker.stop()
        side.close()


async def idle(directory: Path, seconds: float) -> tuple[int, float]:
    """Resident memory and CPU share of an edge with three devices that are there and do what devices do when idle."""
    broker = Broker(directory)
    await broker.start()
    pit = Pit(directory, 1, kinds=("rou", "cus"))
    pace = Pace()
    try:
        pit.open(pace, broker.port, broker.version)
        config = directory / "feltd.toml"
        text = pit.config(broker.port, broker.version)
        blocks = text.split("[[table.device]]")
        config.write_text("[[table.device]]".join(blocks[:4]), encoding="utf-8")
        async with program("daemon.cli", "edge", "-c", str(config)) as pid:
            living = asyncio.get_running_loop().create_task(pit.live())
            await asyncio.sleep(4.0)
            before = cpu_seconds(pid)
            await asyncio.sleep(seconds)
            share = (cpu_seconds(pid) - before) / seconds
            memory = resident(pid)
            living.cancel()
            return memory, share
    finally:
        await broker.stop()


async def bench(rates: list[int], seconds: float, say: Callable[[str], None]) -> Report:
    """Everything; `seconds` of each turn, and the other measurements in proportion. Raises NothingCameError."""

    def folder() -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="feltd-bench-")

    with folder() as directory:
        pairs = await compare(Path(directory), rates, seconds, say)
    with folder() as directory:
        rate = await sustained(Path(directory), False, int(4_000 * seconds))
    say(f"sustained: {rate:,.0f} events a second on one core")
    with folder() as directory:
        rate_bare = await sustained(Path(directory), True, int(1_000 * seconds))
    with folder() as directory:
        memory, share = await idle(Path(directory), 3 * seconds)
    return Report(
        machine(),
        datetime.now(UTC).date().isoformat(),
        pairs,
        rate,
        rate_bare,
        memory,
        share,
    )


def markdown(report: Report) -> str:
    """The report as `docs/explanation/performance.md` shows it."""
    lines = [
        "| | lines/s | feltd p50 / p99 | bare p50 / p99 | synced p50 / p99 | feltd to bare | feltd to synced |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair in report.pairs:
        figures = [pair.feltd, pair.yards["bare"], pair.yards["synced"]]
        times = " | ".join(f"{p50:.2f} / {p99:.2f} ms" for p50, p99 in figures)
        ratios = " | ".join(f"{pair.ratios[name][0]:.2f} / {pair.ratios[name][1]:.2f}" for name in YARDS)
        lines.append(f"| {pair.what} | {pair.rate} | {times} | {ratios} |")
    yard = f"the bare loop, keeping nothing: {report.sustained_bare:,.0f}"
    memory = f"{report.resident / 2**20:.1f} MiB"
    lines += [
        "",
        f"Sustained on one core, journal durable: **{report.sustained:,.0f} events/s** ({yard}).",
        "",
        f"An edge with three devices: **{memory}** resident, **{report.idle_cpu:.2%}** of a core when idle.",
        "",
        f"Measured {report.date} on {report.machine}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [name, "relay", port, log]:
            asyncio.run(relay(name, int(port), Log(log)))
        case [name, path, port, log]:
            asyncio.run(bare(name, path, int(port), Log(log)))
