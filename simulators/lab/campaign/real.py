"""`feltd campaign --real`: the processes of production, a real broker, and `kill -9`.

Child processes, ttys, sockets and files are real here, which the virtual campaign models. Night after night a simulated
pit plays fast, and edge, rules, jackpots and broker are killed at random and restarted, as systemd does it. At the end
of each night the judges of the virtual campaign check the journals, and the results from the broker are compared with
the truth of the simulators. The same seed gives the same pit and the same kills, but in real time no two runs are
equal, so the files of a failed night are kept.
"""

import asyncio
import contextlib
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table as Grid

from daemon import logs
from daemon.config.model import Config
from daemon.jackpots.books import check, read_book
from daemon.journal.rows import Row
from daemon.journal.store import Journal
from simulators.clock import Pace
from simulators.devices.compare import Account, spared
from simulators.lab.broker import Broker
from simulators.lab.campaign.disk import WrongError
from simulators.lab.campaign.judges import judge_journals
from simulators.lab.demo import Stage, staged
from simulators.lab.pit import EDGE, Pit
from simulators.lab.pool_oracle import PoolAccount, judge_pools, pools_text
from simulators.lab.pools import Sent

__all__ = ["Report", "real", "run"]

SPEED = 25.0
ROUNDS = 12
"""Rounds of each table in one night, at most."""
TABLES = ("rou", "sat", "cus", "fpc", "bac", "text", "scan", "csm", "stud", "jstud", "bj", "fan", "studio", "sfpc")
LUCK = 0.2
"""Probability that a round of the two poker tables has a hand that wins their jackpot."""
PATIENCE_S = 3.0
"""Seconds until a supervisor confirms or pays a jackpot."""
EVERY = 1.5
"""Seconds between two kills, on average."""
STILL = 120.0
"""Seconds without the end of a round at any table after which the dealers count as stuck. With dark displays a pit is
slow: on a busy machine a poker round with four hands took half a minute between two kills.
"""
RESULT_TIMEOUT_S = 40.0
"""Seconds after the last round until all results must have been published."""
QUIET = 3.0


class Kind(Struct):
    """The rounds of the tables of one kind."""

    rounds: int = 0
    right: int = 0
    void: int = 0


class Report(Struct):
    """The outcome of the campaign. `seconds`: real time."""

    seed: int
    nights: int = 0
    kills: dict[str, int] = {}
    rounds: int = 0
    events: int = 0
    right: int = 0
    void: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    seconds: float = 0.0
    broker: str = ""
    kinds: dict[str, Kind] = {}
    jackpots: PoolAccount = msgspec.field(default_factory=PoolAccount)
    failures: list[str] = []


class _Night:
    """One pit, from its opening to the judgement."""

    def __init__(
        self,
        report: Report,
        seed: int,
        directory: Path,
        kills: int,
        rounds: int,
        tables: tuple[str, ...],
        copies: int,
    ) -> None:
        self._report = report
        self._rng = random.Random(f"{seed} kills")
        self._left = kills
        self._rounds = rounds
        self._sent: dict[str, Sent] = {}
        self._pit = Pit(directory, seed, kinds=tables, copies=copies, speed=SPEED, luck=LUCK)
        self._broker = Broker(directory, persistence=True)
        report.broker = self._broker.name

    async def body(self) -> None:
        """Play the night and judge it. Raises WrongError."""
        pace = Pace(SPEED)
        try:
            async with staged(self._pit, pace, self._broker) as stage:
                await self._play(pace, stage)
                await self._wait_for_results(stage)
                self._sent = dict(stage.people.sent)
        finally:
            for name, dealt in self._pit.dealt().items():
                self._report.rounds += dealt
                self._kind(name).rounds += dealt
        await asyncio.to_thread(self._judge, stage.config)

    async def _play(self, pace: Pace, stage: Stage) -> None:
        site = stage.site
        await stage.people.until_begun([pool.name for pool in stage.config.jackpot])
        killing = asyncio.create_task(self._kill(stage))
        dealing = asyncio.create_task(self._pit.deal(pace, self._rounds * len(self._pit.tables), site))
        working = asyncio.create_task(stage.people.work(PATIENCE_S, changes=10.0))
        try:
            before = -1
            while not dealing.done():
                dealt = sum(self._pit.dealt().values())
                if dealt == before:
                    there = {name: f"{view.phase}, {view.online}" for name, view in site.tables.items()}
                    raise WrongError(
                        f"the dealers have stopped: {self._pit.dealt()} of {self._rounds} rounds dealt; "
                        f"the display shows {there}, {site.edges}"
                    )
                before = dealt
                await asyncio.wait([dealing], timeout=STILL)
            dealing.result()
        finally:
            tasks = (killing, dealing, working)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _kill(self, stage: Stage) -> None:
        """Kill processes from the moment when all run for the first time."""
        site, children = stage.site, {"edge": stage.edge, "rules": stage.rules}
        if stage.pools is not None:
            children["jackpots"] = stage.pools
        await site.until(lambda: all(map(site.is_online, (EDGE, *list(children)[1:]))))
        while self._left:
            await asyncio.sleep(self._rng.expovariate(1 / EVERY))
            victim = self._rng.choice((*children, "broker"))
            if victim == "broker":
                await site.until(lambda: site.connected)
                await self._broker.kill()
            else:
                process = children[victim].process
                if process is None or process.returncode is not None:
                    continue  # it is down already
                process.kill()
                await process.wait()
            self._left -= 1
            self._report.kills[victim] = self._report.kills.get(victim, 0) + 1

    async def _wait_for_results(self, stage: Stage) -> None:
        """Wait until each round has its result and no more messages come. The judges find missing results."""
        site, people = stage.site, stage.people
        dealt = self._pit.dealt()
        until = time.monotonic() + RESULT_TIMEOUT_S
        said, since = -1, 0.0
        while time.monotonic() < until:
            await asyncio.sleep(0.25)
            now = sum(view.events + view.resolved + view.voided for view in site.tables.values())
            now += sum(level.entry for level in people.levels.values())
            if now != said or not site.connected:
                said, since = now, time.monotonic()
            elif time.monotonic() - since > QUIET and not any(one.lost for one in self._accounts(dealt).values()):
                return

    def _accounts(self, dealt: dict[str, int]) -> dict[str, Account]:
        accounts = self._pit.accounts(dealt).items()
        return {name: spared(account, self._pit.outcomes[name]) for name, account in accounts}

    def _kind(self, table: str) -> Kind:
        return self._report.kinds.setdefault(table.rpartition("-")[0], Kind())

    def _judge(self, config: Config) -> None:
        for name, account in self._accounts(self._pit.dealt()).items():
            for count in (self._report, self._kind(name)):
                count.right += account.right
                count.void += account.voided + account.unseen
            self._report.lost += account.lost
            self._report.wrong += account.wrong
            if account.lost or account.wrong:
                raise WrongError(f"{name}: {account.lost} lost, {account.wrong} wrong, {account.right} right")
            for outcome in self._pit.outcomes[name]:
                if not outcome.void and not outcome.outcome:
                    raise WrongError(f"{name}: {outcome.round} has neither an outcome nor a reason")
        with (
            contextlib.closing(Journal(Path(config.edge.journal))) as edge,
            contextlib.closing(Journal(Path(config.rules.journal))) as rules,
        ):
            events = edge.after(0, sys.maxsize)
            self._report.events += len(events)
            verdicts = rules.after(0, sys.maxsize)
            judge_journals(config, events, {config.rules.name: verdicts})
        if config.jackpot:
            self._judge_pools(config, events, verdicts)

    def _judge_pools(self, config: Config, events: Sequence[Row], verdicts: Sequence[Row]) -> None:
        """The accounts agree with themselves and with the oracle."""
        with contextlib.closing(Journal(Path(config.jackpots.journal))) as journal:
            rows = journal.after(0, sys.maxsize)
            for pool in config.jackpot:
                book = read_book(journal.memories(f"book/{pool.name}/"), pool.name)
                if said := check([row for row in rows if row.place == pool.name], book):
                    raise WrongError(f"pool {pool.name}: {said}")
        account, wrong = judge_pools(config, verdicts, rows, self._pit.laid, self._sent, events, calm=False)
        self._report.jackpots.add(account)
        if wrong:
            raise WrongError("; ".join(wrong[:8]))


async def real(
    kills: int,
    seed: int,
    *,
    rounds: int = ROUNDS,
    tables: tuple[str, ...] = TABLES,
    copies: int = 1,
    least: int = 0,
    most_failures: int = 3,
) -> Report:
    """Play nights until `kills` processes were killed and at least `least` rounds were dealt, with the kills spread
    over them.

    `rounds`: of each table in one night. `copies`: tables of each kind.
    """
    report = Report(seed)
    began = time.monotonic()
    while len(report.failures) < most_failures:
        left, missing = kills - sum(report.kills.values()), least - report.rounds
        if left <= 0 and missing <= 0:
            break
        directory = Path(tempfile.mkdtemp(prefix="feltd-campaign-"))
        night = seed * 1000 + report.nights
        report.nights += 1
        tonight = math.ceil(left * min(1.0, rounds * len(tables) * copies / max(missing, 1)))
        try:
            await _Night(report, night, directory, tonight, rounds, tables, copies).body()
        except Exception as error:  # noqa: BLE001 - any failure is found in the files of that night
            what = logs.first(error)
            said = str(what) if isinstance(what, WrongError) else repr(what)
            report.doubled += "twice" in said
            report.failures.append(f"night {night}: {said}; its files: {directory}")
        else:
            await asyncio.to_thread(shutil.rmtree, directory)
    report.seconds = time.monotonic() - began
    return report


def _named(broker: str) -> str:
    return broker if broker == "mosquitto" else f"the {broker}"


def run(kills: int, seed: int, *, tables: tuple[str, ...], copies: int, least: int, as_json: bool) -> int:
    """`feltd campaign --real`; the exit code."""
    logs.set_up("critical")
    rounds = ROUNDS if least else min(ROUNDS, kills)
    report = asyncio.run(real(kills, seed, rounds=rounds, tables=tables or TABLES, copies=copies, least=least))
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        return 1 if report.failures else 0
    console = Console(highlight=False, soft_wrap=True)
    grid = Grid(title="feltd campaign --real", title_justify="left")
    grid.add_column("victim")
    grid.add_column("kill -9", justify="right")
    for victim, count in sorted(report.kills.items()):
        grid.add_row(victim, str(count))
    grid.add_row("all", str(sum(report.kills.values())))
    console.print(grid)
    by_kind = Grid()
    for head in ("table", "rounds", "right", "void"):
        by_kind.add_column(head, justify="left" if head == "table" else "right")
    for kind, dealt in report.kinds.items():
        by_kind.add_row(kind, *map(str, (dealt.rounds, dealt.right, dealt.void)))
    console.print(by_kind)
    console.print(
        f"{report.rounds} rounds in {report.nights} nights over {_named(report.broker)}, "
        f"{report.events} events, {report.seconds:.0f} s: "
        f"{report.right} right, {report.void} void for a stated reason, "
        f"{report.lost} lost, {report.doubled} doubled, {report.wrong} wrong"
    )
    console.print(pools_text(report.jackpots))
    console.print(f"seed {seed}")
    for failure in report.failures:
        console.print(failure, markup=False)
    return 1 if report.failures else 0
