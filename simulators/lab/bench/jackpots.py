"""`feltd bench jackpots`: how many durable contributions the jackpots process takes, and how late a pool's level is.

The process runs as in production, pinned to one core, with a real mosquitto. Sixteen tables bet at a fixed pace, five
bets a round: as devices report them (an event for each bet, a verdict for each round) or as the rules settle them (one
verdict with five bets). Milliseconds are from the publication of a bet to the arrival of the first level that includes
it, by the number of the pool's last entry. Two yardsticks are measured in the same turn: a message of the same
size that is published and received at the same pace, and one page that is written and synced to the same disk, at most
two hundred times a second.

A turn whose pools are not exact ends as an error, without a figure.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import msgspec
from msgspec import Struct

from daemon.broker.connection import connect
from daemon.broker.session import Message, Session
from daemon.config.model import Mqtt
from protocols.contract.events import JackpotContributed, encode_data
from protocols.contract.jackpots import PoolLevel, jackpot_topic
from protocols.contract.results import Resolved, Result, Settlement, encode_verdict
from protocols.contract.topics import Wire, device_topic, encode_wire, table_topic
from simulators.lab.bench.machine import cpu_seconds, machine
from simulators.lab.bench.spine import NothingCameError, program, until
from simulators.lab.broker import Broker

__all__ = ["JackpotRow", "JackpotsReport", "bench_jackpots", "jackpots_markdown"]

GOAL_RATE, GOAL_MS = 2_000, 50.0
SITE, EDGE = "bench", "edge-1"
TABLES, SEATS = 16, 5
SEED, VISIBLE, BET = 1_000_000, "3/200", 1_000
CASES = (("devices", 1), ("devices", 4), ("devices", 16), ("rules", 1), ("rules", 4), ("rules", 16))
TURNS = 3
SYNC_EVERY_S = 0.005
WARM_UP = 50
"""Rounds before the measurements of a turn."""
YARD = "yard"

Latencies = tuple[float, float, float]
"""Milliseconds: p50, p99, p99.9."""


class JackpotRow(Struct, frozen=True):
    """One case: `pools` that count by `counts`. Figures are medians of the turns.

    `rate`: bets published a second; `sustained`: bets a second from a queue that is never empty.
    `level`, `bare`, `synced`: latencies of the pools' levels and of the yardsticks. `cpu_us`: CPU time of the process
    for each bet.
    """

    counts: str
    pools: int
    rate: float
    level: Latencies
    bare: Latencies
    synced: Latencies
    cpu_us: float
    sustained: float


class JackpotsReport(Struct, frozen=True):
    """One run."""

    machine: str
    date: str
    rows: tuple[JackpotRow, ...]


class Bets(Struct):
    """The bets of the tables: messages in order, each with its pool and the number of its entries."""

    counts: str
    pools: int
    rounds: int = 0
    seqs: dict[str, int] = {}

    def config(self, directory: Path, port: int) -> str:
        """The configuration of the process."""
        blocks = [
            f'[site]\nname = "{SITE}"\n[edge]\nname = "{EDGE}"\n[mqtt]\nport = {port}',
            f'[jackpots]\njournal = "{directory}/jackpots.db"\ninsecure = true',
        ]
        blocks += [
            f'[[table]]\nname = "t-{number}"\nruleset = "macau.baccarat"\noptions = {{ jackpot = "A" }}'
            for number in range(TABLES)
        ]
        for pool in range(self.pools):
            tables = ", ".join(f'"t-{number}"' for number in range(TABLES) if number % self.pools == pool)
            terms = f'seed = {SEED}\nvisible = "{VISIBLE}"\nhidden = "1/200"'
            blocks.append(f'[[jackpot]]\nname = "p-{pool}"\ntables = [{tables}]\ncounts = "{self.counts}"\n{terms}')
        return "\n".join(blocks)

    def _wire(self, source: str, kind: str, counter: str, data: bytes, id_: str) -> tuple[str, bytes]:
        seq = self.seqs[counter] = self.seqs.get(counter, 0) + 1
        wire = Wire("1.0", id_.format(seq=seq), source, kind, _later(), seq, "", "J", False, msgspec.Raw(data))
        return f"{source}/event/{kind}", encode_wire(wire)

    def next(self, count: int) -> list[tuple[str, bytes, str, int]]:
        """The messages of `count` rounds: topic, payload, pool, bets."""
        messages = []
        for _ in range(count):
            number, self.rounds = self.rounds % TABLES, self.rounds + 1
            table, pool = f"t-{number}", f"p-{number % self.pools}"
            edge = device_topic(SITE, table, "bets", "")[:-1]
            told = f"event {table}"
            settlements: tuple[Settlement, ...] = ()
            if self.counts == "devices":
                for seat in range(1, SEATS + 1):
                    data = encode_data(JackpotContributed(pool, BET, seat))
                    message = self._wire(edge, "jackpot.contributed", told, data, f"{EDGE}:{table}:{{seq}}")
                    messages.append((*message, pool, 1))
            else:
                settlements = tuple(Settlement(seat, "jackpot", BET, 0) for seat in range(1, SEATS + 1))
            end = Resolved(Result(f"{table}:{self.rounds}", settlements=settlements))
            source = table_topic(SITE, table, "round")
            cause = f"{EDGE}:{table}:{self.seqs.get(told, 0)}/1"
            message = self._wire(source, "resolved", f"verdict {table}", encode_verdict(end), cause)
            messages.append((*message, pool, len(settlements)))
        return messages


def _later() -> datetime:
    """A time that is certainly after the start of the pools."""
    return datetime.now(UTC) + timedelta(minutes=1)


class Levels:
    """The arriving levels, and the bets that no level includes yet."""

    def __init__(self) -> None:
        """Without bets."""
        self.bets: dict[str, int] = {}
        """The number of all bets, by pool."""
        self.amounts: dict[str, int] = {}
        self.waits: dict[str, list[tuple[int, int]]] = {}
        """By pool the numbers of entries that no level includes yet, with the time when their bet was published."""
        self.times: list[tuple[int, int]] = []
        self.yards: list[tuple[int, int]] = []
        self.heard = 0

    def published(self, pool: str, bets: int) -> None:
        """A message with `bets` of a pool is published now."""
        if bets:
            self.bets[pool] = self.bets.get(pool, 0) + bets
            self.waits.setdefault(pool, []).append((self.bets[pool] + 1, time.monotonic_ns()))

    def hear(self, message: Message) -> None:
        """Take a level, or a bare message, which holds its time of publication."""
        now = time.monotonic_ns()
        if message.topic == YARD:
            self.yards.append((int(message.payload[:20]), now))
            return
        level = msgspec.json.decode(message.payload, type=PoolLevel)
        self.amounts[level.pool] = level.amount
        waits = self.waits.get(level.pool, [])
        done = sum(entry <= level.entry for entry, _ in waits)
        self.times += [(at, now) for _, at in waits[:done]]
        del waits[:done]
        self.heard += 1

    @property
    def waiting(self) -> int:
        """Number of messages whose bets no level includes yet."""
        return sum(map(len, self.waits.values()))

    def check(self) -> None:
        """Raises NothingCameError if a pool differs from the bets."""
        for pool, bets in self.bets.items():
            right = SEED + int(bets * BET * Fraction(VISIBLE))
            if self.amounts.get(pool) != right:
                raise NothingCameError(f"{pool} is {self.amounts.get(pool)} after {bets} bets and should be {right}")


@asynccontextmanager
async def playing(directory: Path, bets: Bets) -> AsyncIterator[tuple[int, Session, Levels]]:
    """Start broker and process; yields its pid, a session and the levels received."""
    broker = Broker(directory)
    await broker.start()
    (directory / "feltd.toml").write_text(bets.config(directory, broker.port), encoding="utf-8")
    levels = Levels()
    core = max(os.sched_getaffinity(0))
    try:
        config = str(directory / "feltd.toml")
        async with (
            program("daemon.cli", "jackpots", "-c", config, core=core) as pid,
            connect(Mqtt(port=broker.port), "bench") as session,
        ):
            session.deliver_to(levels.hear)
            await session.subscribe(jackpot_topic(SITE, "+", "level"), YARD)
            said = "the jackpots process published no level"
            # It receives bets before it publishes levels.
            await until(lambda: len(levels.amounts) == bets.pools, lambda: len(levels.amounts), said)
            yield pid, session, levels
    finally:
        await broker.stop()


async def publish(session: Session, levels: Levels, messages: list[tuple[str, bytes, str, int]], rate: float) -> float:
    """Publish at `rate` bets a second (infinity: as fast as the broker takes them); returns the real rate."""
    loop = asyncio.get_running_loop()
    began = due = loop.time()
    count = 0
    for topic, payload, pool, bets in messages:
        if rate != float("inf") and due > loop.time():
            await asyncio.sleep(due - loop.time())
        due += bets / rate
        count += bets
        await session.until_room()
        levels.published(pool, bets)
        session.send(topic, payload)
    return count / (loop.time() - began)


async def publish_bare(session: Session, levels: Levels, count: int, rate: float, size: int) -> None:
    """The yardstick: messages of `size` bytes at the same pace."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    levels.yards = []
    for _ in range(count):
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        due += 1 / rate
        await session.until_room()
        session.send(YARD, b"%020d" % time.monotonic_ns() + bytes(size - 20))
    await until(lambda: len(levels.yards) >= count, lambda: len(levels.yards), "not all bare messages came back")


def quantiles(times: list[tuple[int, int]]) -> Latencies:
    """Median, 99th and 99.9th percentile in milliseconds."""
    ordered = sorted((there - here) / 1e6 for here, there in times)
    p50, p99, p999 = (ordered[min(int(len(ordered) * part), len(ordered) - 1)] for part in (0.5, 0.99, 0.999))
    return p50, p99, p999


def sync_pages(directory: Path, seconds: float) -> list[tuple[int, int]]:
    """The yardstick of the disk: pages written and synced at a pace."""
    times = []
    count = max(int(seconds / SYNC_EVERY_S), 1)
    file = os.open(directory / "yard", os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, bytes(4096 * count))  # the file has its full size before, as the journal's log
        os.fsync(file)
        for number in range(count):
            began = time.monotonic_ns()
            os.pwrite(file, b"x" * 4096, 4096 * number)
            os.fdatasync(file)
            times.append((began, time.monotonic_ns()))
            time.sleep(SYNC_EVERY_S)
    finally:
        os.close(file)
    return times


async def turn(counts: str, pools: int, rate: int, seconds: float) -> JackpotRow:
    """One turn of a case. Raises NothingCameError."""
    bets = Bets(counts, pools)

    def rest() -> int:
        return levels.heard

    with tempfile.TemporaryDirectory(prefix="feltd-bench-") as name:
        directory = Path(name)
        async with playing(directory, bets) as (pid, session, levels):
            lost = "not all bets came into a level"
            await publish(session, levels, bets.next(WARM_UP), rate)
            await until(lambda: not levels.waiting, rest, lost)
            messages = bets.next(max(int(rate * seconds) // SEATS, 1))
            count = sum(one[3] for one in messages)
            pace = len(messages) * rate / count  # the same number of messages
            syncing = asyncio.create_task(asyncio.to_thread(sync_pages, directory, seconds))
            await publish_bare(session, levels, len(messages), pace, len(messages[0][1]))
            synced = quantiles(await syncing)
            levels.times, before = [], cpu_seconds(pid)
            kept = await publish(session, levels, messages, rate)
            await until(lambda: not levels.waiting, rest, lost)
            cpu, level = cpu_seconds(pid) - before, quantiles(levels.times)
            levels.check()
            messages, levels.times = bets.next(2 * count // SEATS), []
            began = time.monotonic_ns()
            await publish(session, levels, messages, float("inf"))
            await until(lambda: not levels.waiting, rest, lost)
            levels.check()
            took = (levels.times[-1][1] - began) / 1e9
            return JackpotRow(
                counts,
                pools,
                kept,
                level,
                quantiles(levels.yards),
                synced,
                cpu / count * 1e6,
                sum(one[3] for one in messages) / took,
            )


def _medians(rows: list[JackpotRow]) -> JackpotRow:
    def of(values: list[float]) -> float:
        return round(statistics.median(values), 3)

    def each(values: list[Latencies]) -> Latencies:
        a, b, c = (of(list(one)) for one in zip(*values, strict=True))
        return a, b, c

    return JackpotRow(
        rows[0].counts,
        rows[0].pools,
        of([one.rate for one in rows]),
        each([one.level for one in rows]),
        each([one.bare for one in rows]),
        each([one.synced for one in rows]),
        of([one.cpu_us for one in rows]),
        of([one.sustained for one in rows]),
    )


async def bench_jackpots(
    say: Callable[[str], None],
    *,
    rate: int = GOAL_RATE,
    seconds: float = 10.0,
    turns: int = TURNS,
    cases: tuple[tuple[str, int], ...] = CASES,
) -> JackpotsReport:
    """Each case in turn, `turns` times over, so that the machine's noise affects all. Raises NothingCameError."""
    rows: dict[tuple[str, int], list[JackpotRow]] = {}
    for number in range(1, turns + 1):
        for case in cases:
            rows.setdefault(case, []).append(await turn(*case, rate, seconds))
        say(f"turn {number} of {turns}: done")
    return JackpotsReport(
        machine(),
        datetime.now(UTC).date().isoformat(),
        tuple(_medians(each) for each in rows.values()),
    )


def jackpots_markdown(report: JackpotsReport) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    head = "| bets reported by | pools | bets/s | level p50 / p99 / p99.9 | bare | synced | p99 to both | CPU of a bet"
    lines = [
        f"{head} | sustained | p99 under {GOAL_MS:.0f} ms at {GOAL_RATE:,}/s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in report.rows:
        met = "met" if row.level[1] <= GOAL_MS and row.rate >= 0.98 * GOAL_RATE else "**not met**"
        times = " | ".join(
            " / ".join(f"{one:.1f}" for one in each) + " ms" for each in (row.level, row.bare, row.synced)
        )
        ratio = row.level[1] / (row.bare[1] + row.synced[1])
        lines.append(
            f"| {row.counts} | {row.pools} | {row.rate:,.0f} | {times} | {ratio:.1f} | {row.cpu_us:.0f} µs |"
            f" {row.sustained:,.0f}/s | {met} |"
        )
    lines += ["", f"Measured {report.date} on {report.machine}."]
    return "\n".join(lines)
