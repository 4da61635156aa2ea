"""`feltd bench`: the speed of feltd, compared in one run with programs that do less.

All get the same lines at the same pace through a real tty and the same mosquitto, in turns, so that the noise of the
machine affects all. A subscriber in C records what arrives (`outside.py`); before anything is measured it must find the
delay of a bridge whose delay is known. Times are milliseconds from the write of a line to the arrival of its event or
result, by one clock. CPU time an event is that of the process, which a busy machine changes less than latency.
"""

import asyncio
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from daemon.broker.mac_keys import make_mac_keys
from simulators.clock import Pace
from simulators.lab.bench.machine import cpu_seconds, machine, resident
from simulators.lab.bench.outside import (
    FLAT_OUT,
    CannotMeasureError,
    Feeder,
    Heard,
    NothingCameError,
    Program,
    Tap,
    build,
    last_evidence,
    mosquitto,
    node_command,
    python,
    wait,
)
from simulators.lab.broker import Broker, find_mosquitto
from simulators.lab.pit import Pit

__all__ = [
    "NICE",
    "SIDES",
    "Busy",
    "CannotMeasureError",
    "Figure",
    "NothingCameError",
    "Report",
    "bench",
    "markdown",
    "program",
    "quick_bench",
    "too_slow",
    "until",
]

SIDES = {
    "edge": "feltd's edge",
    "rules": "feltd's edge and rules",
    "before": "edge and rules of another checkout",
    "durable": "C bridge, durable",
    "synced": "aiomqtt, one fdatasync a line",
    "bare": "aiomqtt, nothing kept",
    "node": "Node.js, nothing kept",
    "c": "C bridge, nothing kept",
    "broker": "the broker alone",
}
FELTD = ("edge", "rules", "before")
TURNS = 3
KNOWN_MS, TOLERANCE_MS = 5.0, 0.75
QUIET_S, EVENT_TIMEOUT_S = 0.3, 30.0
ATTEMPTS = 3
BURST = 20_000
LOADS = 8
"""Load processes during the measurement: half of them compute, half of them sync."""
NICE = -5
"""The priority of edge, rules and broker in their systemd units."""
BUSY_RATE = 100
GROWTH = ((1, 1), (5, 5), (20, 20), (50, 50), (50, 200))
"""Tables and devices: each table has two events a second, spread over its devices."""
EVENTS, RESULTS = "card.drawn", "resolved"


class Figure(Struct, frozen=True):
    """One side at one rate (lines a second; 0: a burst). Times in ms, CPU in us an event.

    `p50`, `p99`, `per_s` and `cpu_us` are medians of the turns, `p999` is of all turns together, `spread` the lowest
    and the highest p50 of a turn. `repeated`: messages that came more than once.
    """

    side: str
    what: str
    rate: int
    lines: int
    p50: float
    p99: float
    p999: float
    spread: tuple[float, float]
    per_s: float
    cpu_us: dict[str, float]
    repeated: int


class Begun(Struct, frozen=True):
    """From the start of a program to its first message (the rules': the first event), and its memory after that."""

    side: str
    first_ms: float
    resident_mib: dict[str, float]


class Grown(Struct, frozen=True):
    """An edge with many devices; two events a second at each table."""

    tables: int
    devices: int
    p50: float
    p99: float
    cpu_us: float
    resident_mib: float


class Busy(Struct, frozen=True):
    """Edge and rules while other processes compute and sync: `what` is event or result, times in ms.

    `nice`: the priority of edge, rules and broker; 0 is that of all other processes.
    """

    loads: int
    nice: int
    what: str
    rate: int
    quiet_p99: float
    p50: float
    p99: float


class Report(Struct, frozen=True):
    """One run. `load`: the load average at its beginning and its end. `disk`: fdatasync, p50 and p99 in ms by rate.

    Events are signed with MAC keys, as an installed computer signs them.
    """

    machine: str
    date: str
    load: tuple[float, float]
    known_ms: float
    found_ms: float
    figures: tuple[Figure, ...]
    begun: tuple[Begun, ...]
    disk: dict[int, tuple[float, float]]
    grown: tuple[Grown, ...]
    busy: tuple[Busy, ...]
    resident_mib: float
    idle_cpu: float
    left_out: tuple[str, ...]


class _Turn(Struct, frozen=True):
    event_ms: list[float]
    result_ms: list[float]
    per_s: float
    cpu_us: dict[str, float]
    repeated: int


# ---- helpers of other benchmarks, too


async def until(reached: Callable[[], bool], came: Callable[[], int], what: str) -> None:
    """Wait until `reached`, as long as `came` grows. Raises NothingCameError."""
    loop = asyncio.get_running_loop()
    last, since = came(), loop.time()
    while not reached():
        await asyncio.sleep(0.01)
        if (now := came()) != last:
            last, since = now, loop.time()
        elif loop.time() - since > EVENT_TIMEOUT_S:
            raise NothingCameError(f"{what}; nothing more came for {EVENT_TIMEOUT_S:.0f} s")


@contextlib.asynccontextmanager
async def program(*words: str, core: int | None = None) -> AsyncIterator[int]:
    """A child of this Python, pinned to `core` if given; its pid."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", *words, stderr=asyncio.subprocess.DEVNULL)
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


# ---- the programs


def configuration(folder: Path, port: int, links: Sequence[Sequence[Path]]) -> Path:
    """Tables of baccarat, each with its shoes; journals are durable and events are signed, as in production."""
    make_mac_keys(folder, "edge-1", "bench")
    lines = [f'[site]\nname = "bench"\n[edge]\nname = "edge-1"\njournal = "{folder}/edge.db"']
    lines += [f'mac_key_file = "{folder}/edge-mac.key"\n[rules]\njournal = "{folder}/rules.db"']
    lines += [f'mac_key_folder = "{folder}/mac"\nmac_key_file = "{folder}/rules-mac.key"\n[mqtt]\nport = {port}']
    for table, shoes in enumerate(links, 1):
        lines.append(f'[[table]]\nname = "bench-{table}"\nruleset = "macau.baccarat"')
        for shoe, link in enumerate(shoes, 1):
            lines.append(f'[[table.device]]\nname = "shoe-{shoe}"\ndriver = "bee_tek_shoe"\nurl = "serial://{link}"')
            lines.append("options = { repeat = 0.0 }")
    path = folder / "feltd.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


class _Side:
    """One side in one turn: its programs, its tty and the subscriber."""

    def __init__(self, name: str, tool: Path, folder: Path, port: int, broker: Program, beside: Path | None) -> None:
        """`beside`: the checkout of the side `before`."""
        self.name, self.folder, self.broker = name, folder, broker
        self._port, self._tool = port, tool
        self.link = folder / "tty"
        self._feeder = Feeder([self.link])
        topics = ["felt/1/bench/table/+/device/+/event/card.drawn", "felt/1/bench/table/+/round/event/resolved"]
        self.tap = Tap(tool, folder / "tap.bin", port, *(topics if name in FELTD else ["bench/event"]))
        self.programs: dict[str, Program] = {}
        self._beside = beside

    def start(self, *, delay_us: int = 0) -> float:
        """Start the programs; milliseconds until the first message. Raises NothingCameError, CannotMeasureError."""
        began = time.monotonic_ns()
        for name, (command, env) in self._commands(delay_us).items():
            self.programs[name] = Program(command, self.folder / f"{name}.log", env)

        def ask() -> bool:
            for one in self.programs.values():
                one.check()
            self._feeder.write(1, FLAT_OUT)
            return self.tap.look() > 0

        wait(ask, lambda: 0, f"nothing of {SIDES[self.name]!r} came over the broker")
        return (self.tap.heard[0].at - began) / 1e6

    def _commands(self, delay_us: int) -> dict[str, tuple[list[str], dict[str, str] | None]]:
        link, port, file = str(self.link), str(self._port), str(self.folder / "lines")
        match self.name:
            case "edge" | "rules" | "before":
                config = str(configuration(self.folder, self._port, [[self.link]]))
                names = ("edge",) if self.name == "edge" else ("edge", "rules")
                beside = self._beside if self.name == "before" else None
                return {one: python("daemon.cli", one, "-c", config, beside=beside) for one in names}
            case "bare" | "synced":
                kept = file if self.name == "synced" else "-"
                return {"bridge": python("simulators.lab.bench.bare", link, port, "bench/event", kept)}
            case "node":
                return {"bridge": ([*node_command(), link, port, "bench/event"], None)}
            case _:
                kept = file if self.name == "durable" else "-"
                words = [str(self._tool), "bridge", port, link, "bench/event", kept, str(delay_us)]
                return {"bridge": (words, None)}

    def quiet(self) -> None:
        """Return when no more messages come and the programs are idle. Raises NothingCameError if one of them ended."""
        last, still = (-1, 0.0), 0
        while still < 2:  # a single idle moment may be a wait for the disk
            time.sleep(QUIET_S)
            for one in self.programs.values():
                one.check()
            now = (self.tap.look(), sum(one.cpu_us() for one in self.programs.values()))
            still = still + 1 if now[0] == last[0] and now[1] - last[1] < 20_000 else 0
            last = now

    def run(self, count: int, rate: float) -> _Turn:
        """Write lines and wait for all their messages. Raises NothingCameError."""
        if self.name == "broker":
            return self._paced(count, rate)
        for _ in range(ATTEMPTS):
            if (turn := self._run(count, rate)) is not None:
                return turn
        raise NothingCameError(f"{SIDES[self.name]}: more than {count} events came of {count} lines, {ATTEMPTS} times")

    def _run(self, count: int, rate: float) -> _Turn | None:
        """None if an event of earlier lines came so late that it cannot be distinguished from these."""
        self.quiet()
        first = self.tap.look()
        before = {name: one.cpu_us() for name, one in self.programs.items()}
        [written] = self._feeder.write(count, rate)
        look = self.tap.look

        def all_came() -> bool:
            if look() - first < count:
                return False
            return self.name not in FELTD or len(_distinct(self.tap.heard[first:])) >= count

        wait(all_came, look, f"{SIDES[self.name]}: not all of {count} lines came out")
        self.quiet()
        cpu = {name: round((one.cpu_us() - before[name]) / count, 1) for name, one in self.programs.items()}
        heard = self.tap.heard[first:]
        events = [one for one in heard if not one.topic.endswith(RESULTS)]
        if self.name not in FELTD:
            return _Turn(_latencies(written, [one.at for one in events]), [], _rate(events), cpu, 0)
        ids = _distinct(events)
        if len(ids) != count:
            return None
        which = {name: number for number, name in enumerate(ids)}
        results: dict[str, float] = {}
        for one in heard:
            if one.topic.endswith(RESULTS) and (evidence := last_evidence(one.payload)) in which:
                results.setdefault(evidence, (one.at - written[which[evidence]]) / 1e6)
        event_ms = _latencies(written, list(ids.values()))
        return _Turn(event_ms, list(results.values()), _rate(events), cpu, len(events) - len(ids))

    def _paced(self, count: int, rate: float) -> _Turn:
        """The broker alone: a publisher in C."""
        first = self.tap.look()
        file = self.folder / "paced"
        pace = "0" if rate == FLAT_OUT else str(rate)
        publisher = Program(
            [str(self._tool), "pace", str(self._port), "bench/event", str(file), pace, str(count)],
            self.folder / "pace.log",
        )
        wait(lambda: self.tap.look() - first >= count, self.tap.look, "the broker did not deliver everything")
        publisher.finish()
        raw = file.read_bytes()
        written = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8)]
        heard = self.tap.heard[first:]
        return _Turn(_latencies(written, [one.at for one in heard]), [], _rate(heard), {}, 0)

    def close(self) -> None:
        """End everything."""
        for one in self.programs.values():
            one.stop()
        self.tap.close()
        self._feeder.close()


def _distinct(heard: Iterable[Heard]) -> dict[str, int]:
    """The time of the first message of each event, by its id."""
    found: dict[str, int] = {}
    for one in heard:
        if not one.topic.endswith(RESULTS):
            start = one.payload.index(b'"id":"') + 6
            found.setdefault(one.payload[start : one.payload.index(b'"', start)].decode(), one.at)
    return found


def _latencies(written: Sequence[int], heard: Sequence[int]) -> list[float]:
    return [(there - here) / 1e6 for here, there in zip(written, heard, strict=True)]


def _rate(heard: Sequence[Heard]) -> float:
    """Events a second after the first tenth, when all buffers are full."""
    tenth = len(heard) // 10
    span = heard[-1].at - heard[tenth].at
    return (len(heard) - 1 - tenth) / (span / 1e9) if span else 0.0


# ---- what is measured


def at_percent(values: Sequence[float], percent: float) -> float:
    """That percentile; NaN of nothing."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)] if ordered else float("nan")


@contextlib.contextmanager
def _side(name: str, tool: Path, beside: Path | None) -> Iterator[_Side]:
    """A side with its broker, in a folder of its own."""
    broker = find_mosquitto()
    if broker is None:
        raise CannotMeasureError("the benchmark needs mosquitto: apt-get install mosquitto")
    with tempfile.TemporaryDirectory(prefix="feltd-bench-", dir="/var/tmp") as directory:
        folder = Path(directory)
        with (
            mosquitto(folder, broker) as (port, running),
            contextlib.closing(_Side(name, tool, folder, port, running, beside)) as one,
        ):
            yield one


def known_delay(tool: Path) -> float:
    """The delay that the subscriber finds between two bridges, of which one waits KNOWN_MS. Raises CannotMeasureError.

    It compares the tenth percentiles, because load only adds delay.
    """
    found = float("nan")
    for _ in range(3):
        p10: list[float] = []
        for delay_us in (0, int(KNOWN_MS * 1000)):
            with _side("c", tool, None) as one:
                one.start(delay_us=delay_us)
                p10.append(at_percent(one.run(60, 40).event_ms, 10))
        found = round(p10[1] - p10[0], 3)
        if abs(found - KNOWN_MS) <= TOLERANCE_MS:
            return found
    raise CannotMeasureError(f"the subscriber found {found} ms where {KNOWN_MS} were added: the machine is too busy")


def disk(folder: Path, rate: int, count: int) -> tuple[float, float]:
    """fdatasync of 200 bytes at `rate` a second: p50 and p99 in ms."""
    file = os.open(folder / "synced", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, bytes(4 << 20), 0)
        os.fsync(file)
        taken, due = [], time.monotonic()
        for number in range(count):
            due += 1 / rate
            time.sleep(max(due - time.monotonic(), 0.0))
            began = time.monotonic_ns()
            os.pwrite(file, b"x" * 200, number * 200 % (4 << 20))
            os.fdatasync(file)
            taken.append((time.monotonic_ns() - began) / 1e6)
    finally:
        os.close(file)
    return round(at_percent(taken, 50), 3), round(at_percent(taken, 99), 3)


def grow(tool: Path, tables: int, devices: int, seconds: float) -> Grown:
    """An edge with many devices. Raises NothingCameError."""
    program_of_broker = find_mosquitto()
    assert program_of_broker is not None
    with (
        tempfile.TemporaryDirectory(prefix="feltd-bench-", dir="/var/tmp") as directory,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(directory)
        links = [[folder / f"tty-{table}-{shoe}" for shoe in range(devices // tables)] for table in range(tables)]
        port, _ = stack.enter_context(mosquitto(folder, program_of_broker))
        feeder = stack.enter_context(contextlib.closing(Feeder([link for shoes in links for link in shoes])))
        topic = "felt/1/bench/table/+/device/+/event/"
        tap = Tap(tool, folder / "tap.bin", port, topic + "card.drawn", topic + "device.online")
        stack.enter_context(contextlib.closing(tap))
        command, env = python("daemon.cli", "edge", "-c", str(configuration(folder, port, links)))
        edge = Program(command, folder / "edge.log", env)
        stack.callback(edge.stop)
        wait(lambda: tap.look() >= devices, tap.look, f"not all of {devices} devices came online")
        time.sleep(2.0)
        first, before = tap.look(), edge.cpu_us()
        rate = 2.0 * tables / devices
        count = max(int(rate * seconds), 2)
        written = iter(feeder.write(count, rate))
        wait(lambda: tap.look() - first >= count * devices, tap.look, "not all lines came out")
        cpu = (edge.cpu_us() - before) / (count * devices)
        by_topic: dict[str, list[int]] = {}
        for one in tap.heard[first:]:
            by_topic.setdefault(one.topic, []).append(one.at)
        taken: list[float] = []
        for table, shoes in enumerate(links, 1):
            for shoe, _link in enumerate(shoes, 1):
                came = by_topic[f"felt/1/bench/table/bench-{table}/device/shoe-{shoe}/event/card.drawn"]
                taken += _latencies(next(written), came)
        p50, p99 = (round(at_percent(taken, percent), 3) for percent in (50, 99))
        return Grown(tables, devices, p50, p99, round(cpu, 1), round(edge.resident_mib(), 1))


def busy(tool: Path, seconds: float, nice: int) -> list[Busy]:
    """Edge and rules without and with a load. Raises NothingCameError, CannotMeasureError, PermissionError."""
    count = max(int(BUSY_RATE * seconds), 12)
    with _side("rules", tool, None) as one, contextlib.ExitStack() as stack:
        one.start()
        one.run(100, 100)
        if nice:
            for program in one.programs.values():
                program.set_nice(nice)
            one.broker.set_nice(nice)
        quiet = one.run(count, BUSY_RATE)
        for number in range(LOADS):
            words = ["disk", str(one.folder / f"load-{number}")] if number % 2 else ["cpu"]
            command, env = python("simulators.lab.bench.load", *words)
            load = Program(command, one.folder / f"load-{number}.log", env)
            stack.callback(load.stop)
        loaded = one.run(count, BUSY_RATE)
    found = []
    for what, before, after in (
        ("event", quiet.event_ms, loaded.event_ms),
        ("result", quiet.result_ms, loaded.result_ms),
    ):
        p99, p50 = round(at_percent(after, 99), 3), round(at_percent(after, 50), 3)
        found.append(Busy(LOADS, nice, what, BUSY_RATE, round(at_percent(before, 99), 3), p50, p99))
    return found


async def idle(directory: Path, seconds: float) -> tuple[int, float]:
    """Resident memory and CPU share of an edge with three connected, idle devices."""
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


# ---- one run


def bench(
    rates: Sequence[int],
    seconds: float,
    say: Callable[[str], None],
    *,
    turns: int = TURNS,
    sides: Sequence[str] = (),
    beside: Path | None = None,
    burst: int = BURST,
    growth: Sequence[tuple[int, int]] = GROWTH,
    niced: Sequence[int] = (0, NICE),
) -> Report:
    """Run all measurements; `seconds` at each rate of each turn. Raises NothingCameError, CannotMeasureError."""
    began = os.getloadavg()[0]
    wanted = [one for one in (sides or SIDES) if one != "before" or beside is not None]
    left_out: list[str] = []
    if "node" in wanted:
        try:
            node_command()
        except CannotMeasureError as error:
            wanted.remove("node")
            left_out.append(str(error))
    run = _Run(rates, seconds, burst, beside)
    with tempfile.TemporaryDirectory(prefix="feltd-bench-", dir="/var/tmp") as directory:
        tool = build(Path(directory))
        found = known_delay(tool)
        say(f"the subscriber finds {found} ms where {KNOWN_MS} were added")
        for turn in range(turns):
            run.turn(wanted, tool, Path(directory))
            say(f"turn {turn + 1} of {turns}: done")
        grown = tuple(grow(tool, tables, devices, seconds) for tables, devices in growth)
        loaded: list[Busy] = []
        for nice in niced:
            try:
                loaded += busy(tool, seconds, nice)
            except PermissionError:
                left_out.append(f"a load at nice {nice}: only root may raise a priority")
    with tempfile.TemporaryDirectory(prefix="feltd-bench-") as directory:
        memory_bytes, share = asyncio.run(idle(Path(directory), 3 * seconds))
    return Report(
        machine(),
        datetime.now(UTC).date().isoformat(),
        (round(began, 2), round(os.getloadavg()[0], 2)),
        KNOWN_MS,
        found,
        run.figures(),
        run.begun(),
        {rate: _medians(several) for rate, several in run.synced.items()},
        grown,
        tuple(loaded),
        round(memory_bytes / 2**20, 1),
        round(share, 5),
        tuple(left_out),
    )


class _Run:
    """The measurements of the turns of one run."""

    def __init__(self, rates: Sequence[int], seconds: float, burst: int, beside: Path | None) -> None:
        self._rates, self._seconds, self._burst, self._beside = rates, seconds, burst, beside
        self._measured: dict[tuple[str, float], list[_Turn]] = {}
        self._starts: dict[str, list[tuple[float, dict[str, float]]]] = {}
        self.synced: dict[int, list[tuple[float, float]]] = {}

    def turn(self, sides: Sequence[str], tool: Path, folder: Path) -> None:
        """Measure each side once."""
        for name in sides:
            with _side(name, tool, self._beside) as one:
                if name != "broker":
                    first = one.start()
                    one.run(100, 100)
                    memory = {which: round(it.resident_mib(), 1) for which, it in one.programs.items()}
                    self._starts.setdefault(name, []).append((first, memory))
                for rate in (*self._rates, FLAT_OUT):
                    count = self._burst if rate == FLAT_OUT else max(int(rate * self._seconds), 12)
                    self._measured.setdefault((name, rate), []).append(one.run(count, rate))
        for pace in self._rates:
            self.synced.setdefault(pace, []).append(disk(folder, pace, max(int(pace * self._seconds), 12)))

    def figures(self) -> tuple[Figure, ...]:
        """The figures of each side at each rate."""
        return tuple(
            one
            for (name, rate), several in self._measured.items()
            for one in _figures(name, 0 if rate == FLAT_OUT else int(rate), several)
        )

    def begun(self) -> tuple[Begun, ...]:
        """How each side started."""
        return tuple(
            Begun(name, round(statistics.median(ms for ms, _ in several), 1), several[-1][1])
            for name, several in self._starts.items()
        )


def quick_bench(rates: Sequence[int], seconds: float, say: Callable[[str], None]) -> Report:
    """One short turn of the sides that `too_slow` compares. Raises NothingCameError, CannotMeasureError."""
    return bench(
        rates, seconds, say, turns=1, sides=("edge", "rules", "durable"), burst=3_000, growth=((2, 4),), niced=()
    )


def _medians(turns: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return round(statistics.median(p50 for p50, _ in turns), 3), round(statistics.median(p99 for _, p99 in turns), 3)


def _figures(side: str, rate: int, turns: Sequence[_Turn]) -> list[Figure]:
    found = []
    for what in ("event", "result"):
        taken = [turn.event_ms if what == "event" else turn.result_ms for turn in turns]
        if not all(taken):
            continue
        p50s = [at_percent(one, 50) for one in taken]
        found.append(
            Figure(
                side,
                what,
                rate,
                sum(map(len, taken)),
                round(statistics.median(p50s), 3),
                round(statistics.median(at_percent(one, 99) for one in taken), 3),
                round(at_percent([ms for one in taken for ms in one], 99.9), 3),
                (round(min(p50s), 3), round(max(p50s), 3)),
                round(statistics.median(turn.per_s for turn in turns)),
                {name: round(statistics.median(turn.cpu_us[name] for turn in turns), 1) for name in turns[0].cpu_us},
                sum(turn.repeated for turn in turns),
            )
        )
    return found


# ---- the report


MARGINS = {"p50": 15.0, "cpu": 30.0, "burst": 15.0}
"""Of `--quick`: how many times worse than the durable C bridge the edge may be on a busy machine."""


def too_slow(report: Report) -> list[str]:
    """The rates at which the edge is slower than the durable C bridge by more than a smoke test's margin."""
    of = {(one.side, one.rate): one for one in report.figures if one.what == "event"}
    said = []
    for (side, rate), mine in of.items():
        if side not in ("edge", "rules"):
            continue
        yard = of["durable", rate]
        pairs = {"cpu": (mine.cpu_us["edge"], yard.cpu_us["bridge"])}
        pairs |= {"p50": (mine.p50, yard.p50)} if rate else {"burst": (yard.per_s, mine.per_s)}
        for what, (here, there) in pairs.items():
            if here > MARGINS[what] * there:
                at = f"{rate} lines a second" if rate else "a burst"
                said.append(f"{SIDES[side]} in {at}: {what} {here:g} beside {there:g}, over {MARGINS[what]:g} times")
    return said


def _rows(report: Report) -> list[str]:
    lines = [
        "| | lines/s | p50 / p99 / p99.9 ms | spread of p50 | to the durable C bridge | CPU an event |",
        "|---|---|---|---|---|---|",
    ]
    yards = {one.rate: one for one in report.figures if one.side == "durable"}
    for what in ("event", "result"):
        for one in sorted(report.figures, key=lambda one: (one.rate == 0, one.rate)):
            if one.what != what:
                continue
            cpu = ", ".join(f"{name} {us:.0f}" for name, us in one.cpu_us.items())
            cpu = f"{cpu} µs" if cpu else "-"
            name = f"{SIDES[one.side]}, wire to {what}"
            yard = yards.get(one.rate)
            if one.rate == 0:
                ratio = f"{one.per_s / yard.per_s:.2f}" if yard else "-"
                lines.append(f"| {name} | burst | {one.per_s:,.0f} events/s | | {ratio} | {cpu} |")
            else:
                ratio = f"{one.p50 / yard.p50:.2f} / {one.p99 / yard.p99:.2f}" if yard else "-"
                times = f"{one.p50:.2f} / {one.p99:.2f} / {one.p999:.2f}"
                spread = f"{one.spread[0]:.2f} to {one.spread[1]:.2f}"
                lines.append(f"| {name} | {one.rate} | {times} | {spread} | {ratio} | {cpu} |")
    return lines


def markdown(report: Report) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    lines = _rows(report)
    lines += ["", "| one core of | events/s | start to the first message | memory |", "|---|---|---|---|"]
    bursts = {one.side: one for one in report.figures if one.rate == 0 and one.what == "event"}
    for begun in report.begun:
        cpu = bursts[begun.side].cpu_us
        rate = ", ".join(f"{name} {1e6 / us:,.0f}" for name, us in cpu.items() if us)
        memory = ", ".join(f"{name} {mib:.1f}" for name, mib in begun.resident_mib.items())
        lines.append(f"| {SIDES[begun.side]} | {rate} | {begun.first_ms:.0f} ms | {memory} MiB |")
    if report.grown:
        lines += ["", "| tables | devices | p50 / p99 ms | CPU an event | memory |", "|---|---|---|---|---|"]
        for grown in report.grown:
            lines.append(
                f"| {grown.tables} | {grown.devices} | {grown.p50:.2f} / {grown.p99:.2f} | {grown.cpu_us:.0f} µs"
                f" | {grown.resident_mib:.1f} MiB |"
            )
    if report.busy:
        lines += ["", "| under a load | nice | idle p99 ms | p50 / p99 ms |", "|---|---|---|---|"]
        for one in report.busy:
            name = f"wire to {one.what}, {one.rate}/s, {one.loads} processes"
            lines.append(f"| {name} | {one.nice} | {one.quiet_p99:.2f} | {one.p50:.2f} / {one.p99:.2f} |")
    lines += ["", "fdatasync of 200 bytes, p50 / p99: "]
    lines[-1] += "; ".join(f"{p50:.2f} / {p99:.2f} ms at {rate}/s" for rate, (p50, p99) in report.disk.items()) + "."
    lines.append(
        f"\nAn edge with three devices: **{report.resident_mib} MiB**, **{report.idle_cpu:.2%}** of a core when idle."
    )
    found = f"The subscriber found {report.found_ms} ms where {report.known_ms} were added"
    lines.append(f"\n{found}. Measured {report.date} on {report.machine}, load {report.load[0]} to {report.load[1]}.")
    lines += [f"Repeated messages of {SIDES[one.side]}: {one.repeated}." for one in report.figures if one.repeated]
    lines += [f"Left out: {text}." for text in report.left_out]
    return "\n".join(lines)
