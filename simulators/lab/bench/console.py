"""`feltd bench console`: what the console costs and how late it is, with many tables looked at at once.

A real broker, a console as in production, browsers that follow the pit, a table and a device; the bench itself is the
edge and the rules that say what happens at each table, at a given rate. As theirs, the retained states follow the
events four times a second at most. The delay is from the publishing of an event to the arrival of the fragment that
shows it, at the browser of a table: tiles of the pit show no events. A bare reader of the same messages, all with QoS
1, is measured in the same run.
"""

import asyncio
import contextlib
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.broker.connection import stay_connected
from daemon.broker.retained import Retained
from daemon.broker.session import Session
from daemon.config.model import Mqtt
from daemon.console.auth.users import By, Users
from daemon.console.site.store import Store
from protocols.contract.documents import DeviceMeta, DeviceState, LastEvent
from protocols.contract.results import RoundState
from protocols.contract.topics import Wire, device_topic, edge_topic, encode_wire, table_topic
from simulators.lab.bench.machine import cpu_seconds, machine, resident
from simulators.lab.broker import Broker

__all__ = ["ConsoleReport", "ConsoleRow", "bench_console", "console_markdown"]

SITE, EDGE = "bench", "edge-1"
TABLES = 60
LOOKERS = 3
"""At the pit; one more at a table, and one at a device."""
A_ROUND = 20
"""Events."""


class ConsoleRow(Struct, frozen=True):
    """One rate, in events a second of the whole pit. Shares of one core; seconds."""

    rate: int
    core: float
    reader: float
    median: float
    p95: float
    worst: float
    rss: int


class ConsoleReport(Struct, frozen=True):
    """One run."""

    machine: str
    date: str
    tables: int
    viewers: int
    seconds: float
    rows: tuple[ConsoleRow, ...]


def _config(directory: Path, port: int, tables: int) -> str:
    lines = [
        f'[site]\nname = "{SITE}"\n[edge]\nname = "{EDGE}"\n[mqtt]\nport = {port}',
        f'[console]\nport = 0\nstore = "{directory}/console.db"\njournal = "{directory}/journal.db"',
    ]
    for number in range(1, tables + 1):
        lines.append(f'[[table]]\nname = "rou-{number}"\nruleset = "macau.roulette"')
        lines.append(f'[[table.device]]\nname = "wheel-1"\ndriver = "cammegh_ss2"\nurl = "serial:///dev/rou-{number}"')
    return "\n".join(lines)


@contextlib.asynccontextmanager
async def _console(directory: Path, config: Path) -> AsyncIterator[tuple[int, int]]:
    """A console as in production: its process id and its port."""
    log = directory / "console.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "daemon.cli", "console", "-c", str(config), stdout=out, stderr=out
        )
        try:
            async with asyncio.timeout(20):
                while not (port := _port(log)):
                    if process.returncode is not None:
                        raise RuntimeError(log.read_text(encoding="utf-8"))
                    await asyncio.sleep(0.05)
            yield process.pid, port
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


def _port(log: Path) -> int:
    for line in log.read_text(encoding="utf-8").splitlines():
        if '"console.started"' in line:
            return int(msgspec.json.decode(line)["port"])
    return 0


class _Pit:
    """Says what an edge and the rules would: events, and the states they lead to."""

    def __init__(self, tables: int) -> None:
        self.tables = tables
        self.seq = dict.fromkeys(range(1, tables + 1), 0)
        self.session: Session | None = None
        self.ready = asyncio.Event()
        self._retained = Retained()

    async def serve(self, session: Session) -> None:
        put = self._retained.put
        put(edge_topic(SITE, EDGE, "availability"), b"online")
        put(edge_topic(SITE, "rules", "availability"), b"online")
        for number in self.seq:
            place = f"rou-{number}"
            meta = DeviceMeta("cammegh_ss2", "Cammegh SS2", url="serial:", edge=EDGE)
            put(device_topic(SITE, place, "wheel-1", "meta"), msgspec.json.encode(meta))
            put(device_topic(SITE, place, "wheel-1", "state"), partial(self._state, number))
            put(device_topic(SITE, place, "wheel-1", "availability"), b"online")
            put(table_topic(SITE, place, "round/state"), partial(self._round, number))
        await self._retained.publish_all(session)
        await session.drained()
        self.session = session
        self.ready.set()
        await self._retained.run(session)

    def _state(self, number: int) -> DeviceState:
        seq = self.seq[number]
        last = LastEvent("ball.launched", datetime.now(UTC), seq)
        return DeviceState(online=True, counters={"events": seq}, last_event=last)

    def _round(self, number: int) -> RoundState:
        rounds, played = divmod(self.seq[number], A_ROUND)
        phase = "betting" if played * 2 < A_ROUND else "playing"
        detail = {"last_pocket": str(rounds % 37)}
        return RoundState(f"rou-{number}:2026-11-21:{rounds + 1}", phase, detail, {"j": self.seq[number]})

    async def say(self, number: int) -> None:
        """One event of one table."""
        assert self.session is not None
        self.seq[number] += 1
        place = f"rou-{number}"
        source = device_topic(SITE, place, "wheel-1", "")[:-1]
        id_ = f"{EDGE}:{place}:{self.seq[number]}"
        data = msgspec.Raw(b'{"direction":"cw","rotor":"ccw"}')
        wire = Wire("1.0", id_, source, "ball.launched", datetime.now(UTC), self.seq[number], "b", "j", data=data)
        await self.session.publish(f"{source}/event/ball.launched", encode_wire(wire))
        self._retained.touch(device_topic(SITE, place, "wheel-1", "state"))
        self._retained.touch(table_topic(SITE, place, "round/state"))


class _Browser:
    """Follows a page as a real one does, by the fragments the page holds, and notes when what shows a table came."""

    def __init__(self, port: int, cookie: str, page: str) -> None:
        self._port = port
        self._cookie = cookie
        self._page = page
        self.came: dict[str, asyncio.Event] = {}
        self.bytes = 0

    async def _ask(self, path: str, accept: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\naccept: {accept}\r\n"
        writer.write(f"{head}cookie: feltd={self._cookie}\r\n\r\n".encode())
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"the console says {status!r}")
        return reader, writer

    async def run(self) -> None:
        reader, writer = await self._ask(self._page, "text/html")
        names = re.findall('data-live="((?!last/)[^"]+)"', (await reader.read()).decode())
        writer.close()
        reader, writer = await self._ask("/live?" + "&".join(f"f={name}" for name in names), "text/event-stream")
        try:
            while line := await reader.readline():
                self.bytes += len(line)
                if line.startswith(b"data: {"):
                    for name in msgspec.json.decode(line[6:])["put"]:
                        if (event := self.came.get(name.rpartition("/")[2])) is not None:
                            event.set()
        finally:
            writer.close()

    async def until(self, number: int) -> None:
        """The next time that a fragment of this table comes."""
        event = self.came[f"rou-{number}"] = asyncio.Event()
        await event.wait()


async def _reader(port: int, seconds: float) -> None:
    """A bare reader: hears all and does nothing. Its own process measures itself."""

    async def serve(session: Session) -> None:
        await session.subscribe(table_topic(SITE, "+", "#"))
        while True:
            await session.messages()

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stay_connected(Mqtt(port=port), "", None, serve, logs.get(client="reader"))


async def _measure(pit: _Pit, browser: _Browser, rate: int, seconds: float) -> list[float]:
    """Events at `rate`, evenly over the tables; the delays of one table's, a few a second."""
    delays: list[float] = []
    quiet = pit.tables  # said only to be waited for
    loop = asyncio.get_running_loop()

    async def load() -> None:
        began, said = loop.time(), 0
        while loop.time() - began < seconds:
            due = int((loop.time() - began) * rate)
            while said < due:
                said += 1
                await pit.say(said % (pit.tables - 1) + 1)
            await asyncio.sleep(0.001)

    async def probe() -> None:
        while True:
            waiting = asyncio.ensure_future(browser.until(quiet))
            await asyncio.sleep(0)
            began = loop.time()
            await pit.say(quiet)
            await waiting
            delays.append(loop.time() - began)
            await asyncio.sleep(0.25)

    probing = asyncio.ensure_future(probe())
    try:
        await load()
    finally:
        probing.cancel()
        await asyncio.wait([probing])
    return delays


async def _bench(rates: tuple[int, ...], seconds: float, tables: int, say: Callable[[str], None]) -> list[ConsoleRow]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="feltd-bench-") as text:
        directory = Path(text)
        broker = Broker(directory)
        await broker.start()
        try:
            config = directory / "feltd.toml"
            config.write_text(_config(directory, broker.port, tables), encoding="utf-8")
            pit = _Pit(tables)
            publishing = asyncio.ensure_future(
                stay_connected(Mqtt(port=broker.port), "", None, pit.serve, logs.get(client="bench"))
            )
            await pit.ready.wait()
            async with _console(directory, config) as (pid, port):
                cookie = _token(directory / "console.db")
                pages = ["/"] * LOOKERS + [f"/table/rou-{tables}", "/table/rou-2/device/wheel-1"]
                browsers = [_Browser(port, cookie, page) for page in pages]
                following = [asyncio.ensure_future(browser.run()) for browser in browsers]
                await asyncio.wait_for(browsers[LOOKERS].until(tables), 10)
                for rate in rates:
                    reader = await asyncio.create_subprocess_exec(
                        sys.executable, "-c", _READER.format(port=broker.port, seconds=seconds + 1), stdout=-1
                    )
                    before, began = cpu_seconds(pid), time.monotonic()
                    delays = await _measure(pit, browsers[LOOKERS], rate, seconds)
                    core = (cpu_seconds(pid) - before) / (time.monotonic() - began)
                    out, _ = await reader.communicate()
                    ordered = sorted(delays)
                    rows.append(
                        ConsoleRow(
                            rate,
                            round(core, 4),
                            round(float(out), 4),
                            round(statistics.median(ordered), 4),
                            round(ordered[int(len(ordered) * 0.95)], 4),
                            round(ordered[-1], 4),
                            resident(pid),
                        )
                    )
                    say(f"{rate} events/s: {core:.1%} of a core, seen after {statistics.median(ordered):.3f} s")
                for task in (*following, publishing):
                    task.cancel()
                await asyncio.wait([*following, publishing])
        finally:
            await broker.stop()
    return rows


_READER = """
import asyncio, time
from daemon import logs
from simulators.lab.bench.console import _reader
logs.set_up("error")
began, used = time.monotonic(), time.process_time()
asyncio.run(_reader({port}, {seconds}))
print((time.process_time() - used) / (time.monotonic() - began))
"""


def _token(store: Path) -> str:
    opened = Store(store)
    try:
        return Users(opened, lambda: datetime.now(UTC)).add_token(By("bench", "system"), "bench", "viewer")
    finally:
        opened.close()


def bench_console(
    say: Callable[[str], None], *, rates: tuple[int, ...] = (20, 200, 1200), seconds: float = 10.0, tables: int = TABLES
) -> ConsoleReport:
    """`rates` are events a second of the whole pit. Raises RuntimeError where the console does not serve."""
    rows = asyncio.run(_bench(rates, seconds, tables, say))
    return ConsoleReport(machine(), datetime.now(UTC).date().isoformat(), tables, LOOKERS, seconds, tuple(rows))


def console_markdown(report: ConsoleReport) -> str:
    """The report as `docs/explanation/performance.md` shows it."""
    lines = [
        f"| events/s at {report.tables} tables | core | a bare reader's | seen after, median | 95 % | worst | memory |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += (
        f"| {row.rate} | {row.core:.1%} | {row.reader:.1%} | {row.median * 1000:.0f} ms | {row.p95 * 1000:.0f} ms |"
        f" {row.worst * 1000:.0f} ms | {row.rss / 2**20:.0f} MiB |"
        for row in report.rows
    )
    viewers = f"{report.viewers} browsers follow the pit, one a table, one a device"
    lines += ["", f"{viewers}. Measured {report.date} on {report.machine}."]
    return "\n".join(lines)
