"""`feltd bench console`: CPU and delay of the console with many tables and several open pages.

A real broker, a console as in production, and five pages of five technicians: three follow the pit, one a table, one a
device. The benchmark publishes in place of the edge and the rules of all tables, at a given rate: events, rounds that
begin, change with each event and end with a result. As in production, retained states are published at most four times
a second.

Two delays are measured at a table that has no other load: from the publishing of a new phase to the arrival of its tile
at a page of the pit, and from the publishing of an event to the arrival of its time at the page of the table. A bare
reader, which only decodes the JSON of the same messages, all with QoS 1, is measured in the same run. Then one alert
comes and goes on an idle site: its CPU cost with five pages of one user, and with five pages of five users, who each
get a fragment of their own.
"""

import asyncio
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon import logs
from daemon.broker.connection import stay_connected
from daemon.broker.retained import Retained
from daemon.broker.session import Session
from daemon.config.model import Mqtt
from daemon.console.auth.users import By, Users, hash_password
from daemon.console.site.store import Store
from protocols.contract.documents import Alert, DeviceMeta, DeviceState, LastEvent
from protocols.contract.results import Result, RoundState
from protocols.contract.topics import Wire, device_topic, edge_topic, encode_wire, table_topic
from simulators.lab.bench.machine import cpu_seconds, machine, resident
from simulators.lab.broker import Broker

__all__ = ["ConsoleReport", "ConsoleRow", "bench_console", "console_markdown"]

SITE, EDGE = "bench", "edge-1"
TABLES = 60
PAGES = ("/", "/", "/", "/table/rou-{last}", "/table/rou-2/device/wheel-1")
PIT, TABLE = 0, 3
"""The pages at which the delays are measured."""
ROUND_EVENTS = 40
"""Events of a round: at 20 a second each table has a result every two seconds."""
ALERTS_S = 5
"""Changes of an alert a second."""
PROBE_S = 0.23
PATIENCE_S = 10.0
REQUESTS = 20


class ConsoleRow(Struct, frozen=True):
    """One rate, in events a second of the whole pit. Shares of one core; seconds.

    `sent`: the rate that was really published. `tile` and `event`: delays, median and 99th percentile.
    """

    rate: int
    sent: float
    core: float
    reader: float
    tile: tuple[float, float]
    event: tuple[float, float]
    rss: int


class ConsoleReport(Struct, frozen=True):
    """One run. CPU seconds: of a request for the pit, and of one change of an alert with five pages.

    `load`: of the machine, its mean over the last minute at the end of the run.
    """

    machine: str
    date: str
    load: float
    tables: int
    seconds: float
    rows: tuple[ConsoleRow, ...]
    pit_cpu: float
    pit_bytes: int
    alert_one_user: float
    alert_five_users: float


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
    """Publishes what an edge and the rules would: events, and the resulting states."""

    def __init__(self, tables: int) -> None:
        self.tables = tables
        self.seq = dict.fromkeys(range(1, tables + 1), 0)
        self.session: Session | None = None
        self.ready = asyncio.Event()
        self._retained = Retained()
        self._turned = False

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
        """A round is bets, then play; each event changes its state."""
        rounds, played = divmod(self.seq[number], ROUND_EVENTS)
        phase = "betting" if played * 2 < ROUND_EVENTS else "playing"
        return RoundState(f"rou-{number}:2026-11-21:{rounds + 1}", phase, {"count": played}, {"j": self.seq[number]})

    async def event(self, number: int) -> None:
        """Publish one event of one table."""
        assert self.session is not None
        self.seq[number] += 1
        place = f"rou-{number}"
        source = device_topic(SITE, place, "wheel-1", "")[:-1]
        id_ = f"{EDGE}:{place}:{self.seq[number]}"
        data = msgspec.Raw(b'{"direction":"cw","rotor":"ccw"}')
        wire = Wire("1.0", id_, source, "ball.launched", datetime.now(UTC), self.seq[number], "b", "j", data=data)
        await self.session.publish(f"{source}/event/ball.launched", encode_wire(wire))

    async def say(self, number: int) -> None:
        """Publish one event of one table, the resulting states, and the result if it ends the round."""
        await self.event(number)
        place = f"rou-{number}"
        self._retained.touch(device_topic(SITE, place, "wheel-1", "state"))
        self._retained.touch(table_topic(SITE, place, "round/state"))
        if self.seq[number] % ROUND_EVENTS == 0:
            await self._end(place, f"{EDGE}:{place}:{self.seq[number]}", self.seq[number] // ROUND_EVENTS)

    async def _end(self, place: str, event: str, number: int) -> None:
        assert self.session is not None
        outcome = {"pocket": str(number % 37), "colour": ("black", "red")[number % 2]}
        result = msgspec.json.encode(
            Result(f"{place}:2026-11-21:{number}", "macau.roulette", outcome=outcome, evidence=(event,))
        )
        source = table_topic(SITE, place, "round")
        data = msgspec.Raw(b'{"result":%b}' % result)
        wire = Wire("1.0", f"{event}/0", source, "resolved", datetime.now(UTC), number, "b", "v", data=data)
        await self.session.publish(f"{source}/event/resolved", encode_wire(wire))
        await self.session.publish(f"{source}/result", result, retain=True)

    async def turn(self, number: int) -> None:
        """A table enters another phase, which the rules publish at once."""
        assert self.session is not None
        self._turned = not self._turned
        state = RoundState(f"rou-{number}:2026-11-21:1", "playing" if self._turned else "betting", {}, {})
        await self.session.publish(
            table_topic(SITE, f"rou-{number}", "round/state"), msgspec.json.encode(state), retain=True
        )

    async def alert(self, *, stands: bool) -> None:
        """The alert of a table comes or goes."""
        assert self.session is not None
        one = Alert(device="wheel-1", code="card.jam", text="a card is stuck", remedy="open the lid")
        payload = msgspec.json.encode(one) if stands else b""
        await self.session.publish(table_topic(SITE, "rou-1", "alert/wheel-1-jam"), payload, retain=True)


class _Browser:
    """Follows a page like a real browser, by its fragments, and records when each fragment arrives."""

    def __init__(self, port: int, cookie: str, page: str) -> None:
        self._port = port
        self._cookie = cookie
        self._page = page
        self._waiting: dict[str, asyncio.Event] = {}
        self.ready = asyncio.Event()

    async def _ask(self, path: str, accept: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\naccept: {accept}\r\n"
        writer.write(f"{head}cookie: feltd={self._cookie}\r\n\r\n".encode())
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"the console answered {status!r}")
        return reader, writer

    async def read(self) -> bytes:
        """Read the page once."""
        reader, writer = await self._ask(self._page, "text/html")
        try:
            return await reader.read()
        finally:
            writer.close()

    async def run(self) -> None:
        names = re.findall('data-live="((?!last/)[^"]+)"', (await self.read()).decode())
        reader, writer = await self._ask("/live?" + "&".join(f"f={name}" for name in names), "text/event-stream")
        try:
            while line := await reader.readline():
                if line.startswith(b"data: {"):
                    self.ready.set()
                    for name in msgspec.json.decode(line[6:])["put"]:
                        if (event := self._waiting.pop(name, None)) is not None:
                            event.set()
        finally:
            writer.close()

    def next(self, fragment: str) -> asyncio.Event:
        """Set at the next arrival of this fragment."""
        event = self._waiting[fragment] = asyncio.Event()
        return event


@contextlib.asynccontextmanager
async def _browsers(port: int, cookies: Sequence[str], pages: Sequence[str]) -> AsyncIterator[list[_Browser]]:
    """Open pages, each with its own cookie of `cookies`."""
    made = [_Browser(port, cookie, page) for cookie, page in zip(cookies, pages, strict=True)]
    following = [asyncio.ensure_future(one.run()) for one in made]
    try:
        async with asyncio.timeout(30):
            for one in made:
                await one.ready.wait()
        yield made
    finally:
        for task in following:
            task.cancel()
        await asyncio.wait(following)


async def _reader(port: int, seconds: float) -> None:
    """A bare reader: decodes all and does nothing else. It runs in its own process, which measures its CPU time."""

    async def serve(session: Session) -> None:
        await session.subscribe(table_topic(SITE, "+", "#"))
        while True:
            for message in await session.messages():
                with contextlib.suppress(msgspec.DecodeError):  # availability is not JSON
                    msgspec.json.decode(message.payload)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stay_connected(Mqtt(port=port), "", None, serve, logs.get(client="reader"))


class _Turn(Struct):
    """The measurements of one turn."""

    sent: int = 0
    tile: list[float] = []
    event: list[float] = []


async def _measure(pit: _Pit, browsers: Sequence[_Browser], rate: int, seconds: float) -> _Turn:
    """Events at `rate`, evenly over the tables; the delays of one table's, a few a second."""
    found = _Turn()
    quiet = pit.tables  # has only the events that are timed
    loop = asyncio.get_running_loop()

    async def load() -> None:
        began = loop.time()
        while loop.time() - began < seconds:
            due = int((loop.time() - began) * rate)
            while found.sent < due:
                found.sent += 1
                await pit.say(found.sent % (pit.tables - 1) + 1)
            await asyncio.sleep(0.001)

    async def delay(browser: _Browser, fragment: str, cause: Callable[[int], Coroutine[Any, Any, None]]) -> float:
        came, began = browser.next(fragment), loop.time()
        await cause(quiet)
        async with asyncio.timeout(PATIENCE_S):
            await came.wait()
        took = loop.time() - began
        await asyncio.sleep(PROBE_S)
        return took

    async def probe() -> None:
        while True:
            found.tile.append(await delay(browsers[PIT], f"tile/rou-{quiet}", pit.turn))
            found.event.append(await delay(browsers[TABLE], f"last/rou-{quiet}", pit.event))

    probing = asyncio.ensure_future(probe())
    try:
        await load()
    finally:
        probing.cancel()
        await asyncio.wait([probing])
    if probing.done() and not probing.cancelled():
        probing.result()
    return found


def _two(delays: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    ordered = sorted(delays)
    return round(statistics.median(ordered), 4), round(ordered[int(len(ordered) * 0.99)], 4)


async def _row(pit: _Pit, browsers: Sequence[_Browser], pid: int, port: int, rate: int, seconds: float) -> ConsoleRow:
    reader = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _READER.format(port=port, seconds=seconds + 1), stdout=-1
    )
    before, began = cpu_seconds(pid), time.monotonic()
    found = await _measure(pit, browsers, rate, seconds)
    took = time.monotonic() - began
    core = (cpu_seconds(pid) - before) / took
    out, _ = await reader.communicate()
    sent = round(found.sent / took, 1)
    return ConsoleRow(rate, sent, round(core, 4), float(out), _two(found.tile), _two(found.event), resident(pid))


async def _cost_of_alerts(pit: _Pit, pid: int, port: int, cookies: Sequence[str], seconds: float) -> float:
    """CPU seconds of one change of an alert with so many pages of the pit, less their cost on an idle site."""
    count = int(seconds * ALERTS_S)
    async with _browsers(port, cookies, ["/"] * len(cookies)):
        before = cpu_seconds(pid)
        await asyncio.sleep(seconds)
        quiet = cpu_seconds(pid) - before
        before = cpu_seconds(pid)
        for n in range(count):
            await pit.alert(stands=n % 2 == 0)
            await asyncio.sleep(1 / ALERTS_S)
        return max(cpu_seconds(pid) - before - quiet, 0.0) / count


async def _bench(rates: tuple[int, ...], seconds: float, tables: int, say: Callable[[str], None]) -> ConsoleReport:
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
                cookies = _sessions(directory / "console.db", len(PAGES))
                pages = [page.format(last=tables) for page in PAGES]
                async with _browsers(port, cookies, pages) as browsers:
                    for rate in rates:
                        row = await _row(pit, browsers, pid, broker.port, rate, seconds)
                        rows.append(row)
                        say(f"{row.sent:.0f} events/s: {row.core:.1%} of a core, a tile after {row.tile[0]:.3f} s")
                before = cpu_seconds(pid)
                for _ in range(REQUESTS):
                    page = await _Browser(port, cookies[0], "/").read()
                pit_cpu = (cpu_seconds(pid) - before) / REQUESTS
                costs = [
                    await _cost_of_alerts(pit, pid, port, who, seconds)
                    for who in ([cookies[0]] * len(cookies), cookies)
                ]
            publishing.cancel()
            await asyncio.wait([publishing])
        finally:
            await broker.stop()
    date = datetime.now(UTC).date().isoformat()
    load = round(os.getloadavg()[0], 1)
    return ConsoleReport(machine(), date, load, tables, seconds, tuple(rows), pit_cpu, len(page), *costs)


_READER = """
import asyncio, time
from daemon import logs
from simulators.lab.bench.console import _reader
logs.set_up("error")
began, used = time.monotonic(), time.process_time()
asyncio.run(_reader({port}, {seconds}))
print((time.process_time() - used) / (time.monotonic() - began))
"""


def _sessions(store: Path, count: int) -> list[str]:
    """The cookies of so many technicians."""
    opened = Store(store)
    try:
        users, hashed = Users(opened, lambda: datetime.now(UTC)), hash_password("a felt of many colours")
        for n in range(count):
            users.add(By("bench", "system"), f"tech-{n}", "technician", (), hashed)
        return [users.begin(f"tech-{n}", "127.0.0.1", "bench") for n in range(count)]
    finally:
        opened.close()


def bench_console(
    say: Callable[[str], None], *, rates: tuple[int, ...] = (60, 240, 1200), seconds: float = 10.0, tables: int = TABLES
) -> ConsoleReport:
    """`rates` are events a second of the whole pit. Raises RuntimeError if the console does not serve."""
    return asyncio.run(_bench(rates, seconds, tables, say))


def console_markdown(report: ConsoleReport) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    lines = [
        f"| events/s at {report.tables} tables | core | a bare reader's | tile p50 / p99 | event p50 / p99 | memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += (
        f"| {row.sent:.0f} | {row.core:.1%} | {row.reader:.1%} | {_ms(row.tile)} | {_ms(row.event)} |"
        f" {row.rss / 2**20:.0f} MiB |"
        for row in report.rows
    )
    alerts = f"{report.alert_one_user * 1000:.1f} ms of CPU, of five users: {report.alert_five_users * 1000:.1f} ms"
    lines += [
        "",
        f"The pit: {report.pit_cpu * 1000:.1f} ms of CPU a request, {report.pit_bytes / 1000:.0f} kB.",
        f"One change of an alert with five pages of one user: {alerts}.",
        "",
        f"Measured {report.date} on {report.machine}, load {report.load}.",
    ]
    return "\n".join(lines)


def _ms(two: tuple[float, float]) -> str:
    return f"{two[0] * 1000:.0f} / {two[1] * 1000:.0f} ms"
