"""`feltd bench tables`: how many simulated seconds each kind of table plays in one real second.

One table alone with all its devices, over real ttys and a real broker, edge and rules in the same process, in virtual
time, as in the headless demo. The time is that of the whole turn, from the start of the broker to the last result;
medians over turns. A turn whose results differ from the simulators' truth ends as an error, without a figure.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from daemon.virtual_clock import JumpingLoop
from simulators.lab.bench.machine import machine
from simulators.lab.pit import KINDS, Pit
from simulators.lab.virtual_time import run_in_virtual_time, running_in_virtual_time, wait_for_results

__all__ = ["GOAL", "TableReport", "TableRow", "bench_tables", "tables_markdown"]

GOAL = 200.0
ROUNDS = 30
TURNS = 3


class TableRow(Struct, frozen=True):
    """One kind of table: its devices by name, simulated seconds of a turn, and each turn's multiple of real time."""

    kind: str
    devices: tuple[str, ...]
    simulated: float
    turns: tuple[float, ...]

    @property
    def times(self) -> float:
        """The median."""
        return statistics.median(self.turns)


class TableReport(Struct, frozen=True):
    """One run of `rounds` rounds a turn."""

    machine: str
    date: str
    rounds: int
    rows: tuple[TableRow, ...]


def play(kind: str, rounds: int, seed: int) -> tuple[float, float]:
    """Simulated and real seconds of one turn. Raises RuntimeError if a result differs from the truth."""

    async def body(busy: list[Callable[[], bool]]) -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        async with running_in_virtual_time(pit, busy) as running_pit:
            await pit.deal(running_pit.pace, rounds, running_pit.site, loop.utc)
            dealt, simulated = pit.dealt(), running_pit.pace.now()
            running_pit.settling = True
            await wait_for_results(pit, running_pit.site, dealt)
        return simulated

    with tempfile.TemporaryDirectory(prefix="feltd-bench-") as directory:
        pit = Pit(Path(directory), seed, kinds=(kind,), usb=True)
        began = time.monotonic()
        simulated = run_in_virtual_time(body)
        real = time.monotonic() - began
        (account,) = pit.accounts(pit.dealt()).values()
    if account.right != rounds or account.voided or account.extra or account.lost or account.wrong:
        raise RuntimeError(f"{kind}, seed {seed}: not every result is what the simulators did: {account}")
    return simulated, real


def bench_tables(
    say: Callable[[str], None], *, kinds: Sequence[str] = tuple(KINDS), rounds: int = ROUNDS, turns: int = TURNS
) -> TableReport:
    """Each kind in turn, `turns` times over, so that the machine's noise affects all. A turn's number is its seed."""
    played: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for turn in range(1, turns + 1):
        for kind in kinds:
            played[kind].append(play(kind, rounds, turn))
        say(f"turn {turn} of {turns}: done")
    rows = (
        TableRow(
            kind,
            tuple(device.name for device in KINDS[kind](1).devices.values()),
            round(statistics.median(simulated for simulated, _ in seconds), 1),
            tuple(round(simulated / real, 1) for simulated, real in seconds),
        )
        for kind, seconds in played.items()
    )
    return TableReport(
        machine(),
        datetime.now(UTC).date().isoformat(),
        rounds,
        tuple(rows),
    )


def tables_markdown(report: TableReport) -> str:
    """The report in Markdown, as docs/explanation/performance.md has its tables."""
    lines = [
        f"| table | devices | {report.rounds} rounds take | times real time, each turn | median | {GOAL:.0f} times |",
        "|---|---|---|---|---|---|",
    ]
    for row in report.rows:
        turns = " ".join(f"{times:.0f}" for times in row.turns)
        met = "met" if row.times >= GOAL else "**not met**"
        play_ = f"{row.simulated / 60:.0f} min"
        lines.append(f"| {row.kind} | {', '.join(row.devices)} | {play_} | {turns} | {row.times:.0f} | {met} |")
    lines += ["", f"Measured {report.date} on {report.machine}."]
    return "\n".join(lines)
