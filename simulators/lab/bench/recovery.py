"""`feltd bench recovery`: the time to recover from a crash, over real mosquitto on loopback.

An edge with a signed journal of very many events, whose last file has its full size: from the start of its process to
its first new event, durable and at a subscriber. A rules consumer that missed very many events of a table: from the
start of its process to the last verdict that they cause. The journal is written by the journal's own code; each round
in it is one of baccarat, eight events.
"""

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from daemon.broker.connection import connect
from daemon.broker.session import Session
from daemon.config.model import Keeping, Mqtt
from daemon.journal.rows import Entry
from daemon.journal.signing import make_key
from daemon.journal.store import Journal
from daemon.journal.verify import verify
from protocols.bee_tek_shoe import Drawn, encode
from protocols.contract.events import BetsClosed, BetsOpened, CardDrawn, Event, RoundPaid, encode_data, type_of
from protocols.contract.topics import decode_wire
from simulators.lab.bench.machine import machine
from simulators.lab.bench.spine import program
from simulators.lab.broker import Broker
from simulators.ports.port import Tcp

__all__ = ["EVENTS", "GAP", "RecoveryReport", "bench_recovery", "recovery_markdown", "write_journal"]

EVENTS, GAP = 10_000_000, 10_000
TABLES = 10
EDGE_GOAL, GAP_GOAL = 2.0, 5.0
TURNS = 5
FULL = 0.95
"""Share of the full size to which the last file of the journal is filled, as the start takes longest then."""
_BATCH = 125
_KEY = bytes((2, 16)) + b"\x10\x08\x00\x2a" * 3
_ROUND: tuple[tuple[str, Event, bytes], ...] = (
    ("console-1", BetsOpened(), _KEY),
    ("console-1", BetsClosed(), _KEY),
    *(("shoe-1", CardDrawn(card), encode(Drawn(card))) for card in ("2C", "3D", "4S", "2S", "5H")),
    ("console-1", RoundPaid(), _KEY),
)
_EVENT_TIMEOUT_S = 120.0


class RecoveryReport(Struct, frozen=True):
    """One run: seconds of each turn. `full_verify`: of all files, as `feltd journal verify` does it."""

    machine: str
    date: str
    events: int
    files: int
    last_file_rows: int
    megabytes: int
    gap: int
    edge: tuple[float, ...]
    consumer: tuple[float, ...]
    full_verify: float


# ---- the journal


def _rounds(began: datetime, first: int, count: int) -> Iterable[Entry]:
    """The rounds of each table, half a minute each."""
    for number in range(first, first + count):
        at = began + timedelta(seconds=30 * number)
        for table in range(1, TABLES + 1):
            for step, (device, event, wire) in enumerate(_ROUND):
                happened = at + timedelta(seconds=step)
                yield Entry(f"bac-{table}", device, type_of(event), happened, encode_data(event), wire)


def write_journal(path: Path, key: Path, events: int, say: Callable[[str], None]) -> tuple[int, int]:
    """Write at least `events` rows; from EVENTS on the last file is FULL. Returns the rows of the last file and of
    all.
    """
    from daemon.journal.signing import Key

    keeping = Keeping()
    began = datetime(2026, 1, 1, tzinfo=UTC)
    with closing(Journal(path)) as journal:
        journal.signed_by(Key.load(key), keeping.sign_rows)
        number, said = 0, 0
        while True:
            if journal.file_size >= keeping.file_mb * 1_000_000:
                journal.rotate()
            if journal.head >= events and (events < EVENTS or journal.file_size >= FULL * keeping.file_mb * 1_000_000):
                break
            journal.append(_rounds(began, number, _BATCH // TABLES))
            number += _BATCH // TABLES
            if journal.head // 1_000_000 > said:
                said = journal.head // 1_000_000
                say(f"{said} million events written")
        before = journal.closed[-1].to if journal.closed else 0
        return journal.head - before, journal.head


# ---- the processes


def _configuration(directory: Path, port: int, shoe: int, key: Path) -> Path:
    tables = "".join(
        f"""
[[table]]
name = "bac-{number}"
{'ruleset = "macau.baccarat"' if number == TABLES else ""}
{'options = { opening = "bell", device = "continuous" }' if number == TABLES else ""}
[[table.device]]
name = "{"shoe-1" if number == 1 else "shoe-2"}"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:{shoe if number == 1 else number}"
"""
        for number in range(1, TABLES + 1)
    )
    path = directory / "feltd.toml"
    path.write_text(
        f"""
[site]
name = "bench"
[edge]
name = "edge-1"
journal = "{directory}/edge.db"
[rules]
insecure = true
journal = "{directory}/rules.db"
[journal]
key = "{key}"
[mqtt]
port = {port}
{tables}""",
        encoding="utf-8",
    )
    return path


@asynccontextmanager
async def _shoe() -> AsyncIterator[Tcp]:
    """A shoe that deals ten cards a second, also without a listener."""
    rng = random.Random(1)
    port = Tcp("127.0.0.1", 0)
    port.plug()

    async def deal() -> None:
        while True:
            port.send(encode(Drawn(rng.choice("A23456789TJQK") + rng.choice("SHDC"))))
            await asyncio.sleep(0.1)

    dealing = asyncio.create_task(deal())
    try:
        yield port
    finally:
        dealing.cancel()
        port.unplug()


async def _heard(session: Session, what: Callable[[str, bytes], bool]) -> float:
    """The time of the first message for which `what` is true. Raises RuntimeError."""
    try:
        async with asyncio.timeout(_EVENT_TIMEOUT_S):
            while True:
                for message in await session.messages():
                    if what(message.topic, message.payload):
                        return time.monotonic()
    except TimeoutError:
        raise RuntimeError(f"nothing came in {_EVENT_TIMEOUT_S:.0f} s") from None


async def _edge_turn(config: Path, broker: Broker, turn: int) -> float:
    """Seconds from the start of the process to its first new card at a subscriber; events are durable before they are
    published.
    """
    topic = "felt/1/bench/table/bac-1/device/shoe-1/event/card.drawn"
    async with connect(Mqtt(port=broker.port), f"bench-{turn}") as session:
        await session.subscribe(topic)
        began = time.monotonic()
        async with program("daemon.cli", "edge", "-c", str(config)):
            return await _heard(session, lambda heard, _: heard == topic) - began


async def _consumer_turn(config: Path, broker: Broker, turn: int, missed: int, newest: int, edge: str) -> float:
    """Seconds from the start of the process to the end of the last round that it missed."""
    path = config.with_name("rules.db")
    for suffix in ("", "-wal", "-shm", "-lock", "-readers", "-signed"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with closing(Journal(path)) as rules:
        rules.append([], {f"stream/edge-1/{edge}/bac-{TABLES}": b'{"seq":%d}' % (newest - missed)})
    last = f"edge-1:bac-{TABLES}:{newest - 1}/"  # the payment after it causes no verdict
    topic = f"felt/1/bench/table/bac-{TABLES}/round/event/resolved"
    async with connect(Mqtt(port=broker.port), f"bench-rules-{turn}") as session:
        await session.subscribe(topic)
        began = time.monotonic()
        async with program("daemon.cli", "rules", "-c", str(config)):
            ended = await _heard(session, lambda _, text: decode_wire(text).id.startswith(last))
            return ended - began


async def bench_recovery(
    say: Callable[[str], None], *, events: int = EVENTS, gap: int = GAP, turns: int = TURNS
) -> RecoveryReport:
    """Write the journal once, then run all turns."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="feltd-bench-", dir=Path.cwd())))
        key = directory / "key.pem"
        public = make_key(key).public
        rows, head = await asyncio.to_thread(write_journal, directory / "edge.db", key, events, say)
        with closing(Journal(directory / "edge.db")) as journal:
            # The journal's events are already published: this measures a restart, not a backlog.
            journal.append([], {"outbox": b"%d" % head})
            name, newest, files, size = (
                journal.name,
                journal.last(f"bac-{TABLES}"),
                len(journal.closed) + 1,
                journal.size,
            )
        broker = Broker(directory)
        await broker.start()
        edge, consumer = [], []
        try:
            async with _shoe() as shoe:
                config = _configuration(directory, broker.port, shoe.port, key)
                for turn in range(turns):
                    edge.append(await _edge_turn(config, broker, turn))
                    say(f"edge, turn {turn + 1} of {turns}: {edge[-1]:.2f} s")
                async with program("daemon.cli", "edge", "-c", str(config)):
                    for turn in range(turns):
                        consumer.append(await _consumer_turn(config, broker, turn, gap, newest, name))
                        say(f"consumer, turn {turn + 1} of {turns}: {consumer[-1]:.2f} s")
        finally:
            await broker.stop()
        began = time.monotonic()
        report = await asyncio.to_thread(verify, directory / "edge.db", [public])
        if not report.good:
            raise RuntimeError("\n".join(map(str, report.findings)))
        return RecoveryReport(
            machine(),
            datetime.now(UTC).date().isoformat(),
            head,
            files,
            rows,
            size // 1_000_000,
            gap,
            tuple(round(seconds, 2) for seconds in edge),
            tuple(round(seconds, 2) for seconds in consumer),
            round(time.monotonic() - began, 1),
        )


def recovery_markdown(report: RecoveryReport) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    lines = ["| | each turn, s | median | goal |", "|---|---|---|---|"]
    for what, turns, goal in (
        (f"an edge with {report.events:,} events, process to first new event", report.edge, EDGE_GOAL),
        (f"a consumer that missed {report.gap:,} events, process to last verdict", report.consumer, GAP_GOAL),
    ):
        median = statistics.median(turns)
        met = "met" if median < goal else "**not met**"
        lines.append(f"| {what} | {' '.join(f'{one:.2f}' for one in turns)} | {median:.2f} | {goal:g} s: {met} |")
    lines += [
        "",
        f"The journal: {report.files} files, {report.megabytes:,} MB, {report.last_file_rows:,} rows in the last one.",
        f"`feltd journal verify` of all of it: {report.full_verify:.0f} s.",
        "",
        f"Measured {report.date} on {report.machine}.",
    ]
    return "\n".join(lines)
