"""`feltd campaign`: fault injection into a whole simulated pit in virtual time, from a seed.

A campaign is many short lives. In each, dealers play two or three games on simulated devices; drivers, edge, rules
consumer and their journals are the real ones, with a standby of the rules in every second life; broker,
cables, disks and clocks are models that fail. The seed of a life decides what fails in it, and how often. At the end
all faults are repaired, and the judges check: every round dealt has one result, right or void for a stated reason; no
durable row is missing; no message was duplicated; two consumers agree. The seed of a life replays it step by step.
"""

import asyncio
import contextlib
import gc
import itertools
import multiprocessing
import random
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid

from daemon import logs
from daemon.config.model import Config, Rules
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.jackpots.books import check
from daemon.jackpots.process import Jackpots
from daemon.journal.rows import Row
from daemon.journal.store import BadJournal
from daemon.read_model import SiteState
from protocols.contract.events import BallLanded, SpinMissed, SpinVoided, decode_data
from protocols.contract.jackpots import PoolLevel, jackpot_topic
from protocols.contract.results import ENDS
from rules import RULESETS
from rules.engine.ruleset import Ruleset
from simulators.devices.bet_terminals import BetTerminals
from simulators.devices.cammegh_ss2 import SpinTruth
from simulators.devices.compare import Account, compare, fits, spared
from simulators.lab.campaign.broker import Broker
from simulators.lab.campaign.disk import Disk, Fate, Ledger, WrongError
from simulators.lab.campaign.judges import done_by_people, judge_journals
from simulators.lab.campaign.loop import Process, StandingStillError, VirtualLoop
from simulators.lab.campaign.pit import HURRY, VirtualPit
from simulators.lab.pit import EDGE, KINDS, SITE
from simulators.lab.pool_oracle import PoolAccount, judge_pools, pools_text
from simulators.lab.pools import LINKED, Supervisors
from simulators.tables.devices import MachinePlace
from simulators.tables.roulette import RouletteTable
from simulators.tables.stud_poker import StudPokerTable

__all__ = ["Failure", "Life", "Report", "campaign", "forgot", "live", "replay", "run"]

ROUNDS = 24
"""Rounds of each table in one life."""
SETTLE_TIMEOUT_S = 300.0
"""Seconds after all faults are repaired until all results must have been published."""
ONE_AT_A_TIME = 45.0
OFTEN_S, SELDOM_S = 10.0, 400.0  # until supervisors handle waiting wins, on average
LONGEST = 6 * 3600.0
NEIGHBOUR_TIMEOUT_S = 5.0
"""Seconds until the broker has an event of a table while it refuses those of another one."""
STORY = 60
AHEAD = 32  # lives per process that may run before the oldest ends; at 2, four processes were idle 25 %
INTERRUPTED = 130  # the exit code after Ctrl-C, as in shells
_WAY = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("rounds"),
    TimeRemainingColumn(),
)
RULES = ("rules", "standby")
JACKPOTS = "jackpots"
PLAYED = tuple(kind for kind in KINDS if kind != "text")  # "text" has the driver and the dealer of "bac"
"""The kinds of tables in a life."""
POOLS, LUCK = 0.25, 0.3
"""Share of the lives with two tables on one jackpot, and probability that a round of theirs wins it."""
TAKEN_BACK = ("number_changed", "number_unsteady")
"""Reasons of a void spin that may have been reported with a number before."""


class Failure(Struct, frozen=True):
    """A life in which a judge found a broken promise."""

    seed: int
    step: int
    at: float
    what: str
    story: tuple[str, ...]


class Report(Struct):
    """The outcome of a campaign. `seconds`: CPU time; `after`: lives that earlier campaigns of the seed played."""

    seed: int
    after: int = 0
    lives: int = 0
    rounds: int = 0
    right: int = 0
    void: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    forgotten: int = 0
    """Spins that a wheel reported while no driver listened and lost when it was switched off: undetectable."""
    events: int = 0
    play: float = 0.0
    seconds: float = 0.0
    jackpots: PoolAccount = msgspec.field(default_factory=PoolAccount)
    faults: dict[str, int] = {}
    survived: dict[str, int] = {}
    failures: list[Failure] = []

    def add(self, other: "Report") -> None:
        """Add one more life, or several."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.jackpots.add(other.jackpots)
        for mine, its in ((self.faults, other.faults), (self.survived, other.survived)):
            for fault, count in its.items():
                mine[fault] = mine.get(fault, 0) + count
        self.failures += other.failures


_SUMS = ("lives", "rounds", "right", "void", "lost", "doubled", "wrong", "forgotten", "events", "play", "seconds")


class _Nature:
    """The faults of one life. A tenth are calm: at most the broker refuses a table, or the jackpots are killed."""

    def __init__(self, rng: random.Random) -> None:
        calm = rng.random() < 0.1

        def often(share: float) -> bool:
            return not calm and rng.random() < share

        self.rules = RULES if rng.random() < 0.5 else RULES[:1]
        self.killed = {name: often(0.5) for name in (EDGE, *RULES)}
        self.steps = rng.choice((500, 2500, 8000))
        self.writes = rng.choice((15, 60, 200))
        self.disk = often(0.3)
        self.lines = rng.choice((8.0, 25.0, 60.0)) if often(0.5) else 0.0
        self.devices = rng.choice((25.0, 60.0)) if often(0.3) else 0.0
        self.broker = rng.choice((15.0, 60.0)) if often(0.4) else 0.0
        self.cuts = rng.choice((8.0, 40.0)) if often(0.4) else 0.0
        self.clock = rng.choice((10.0, 60.0)) if often(0.3) else 0.0
        self.doubled, self.delayed, self.swapped, self.dropped = (
            rng.choice((0.002, 0.02, 0.2)) if often(0.3) else 0.0 for _ in range(4)
        )
        self.refused = 0.001 if often(0.1) else 0.0
        self.hung = 0.2 if often(0.2) else 0.0
        self.calm = calm
        self.denied = rng.choice((30.0, 90.0)) if rng.random() < (0.8 if calm else 0.3) else 0.0
        self.echoes = rng.random() < 0.125


class Life:
    """One pit, from its opening to the judgement."""

    def __init__(self, seed: int, directory: Path, rounds: int) -> None:
        """Files go to `directory`."""
        self.seed = seed
        self.loop = VirtualLoop()
        self._directory = directory
        self._rounds = rounds
        self._nature = _Nature(self._chance("nature"))
        rng = self._chance("jackpots")
        linked = [kinds for kinds in LINKED if kinds[0] in PLAYED]
        self._linked = rng.choice(linked) if linked and rng.random() < POOLS else ()
        self._nature.killed[JACKPOTS] = rng.random() < 0.7
        self._slow = bool(self._linked) and rng.random() < 0.4
        """Whether supervisors come seldom, while many small prizes are won that the payment key did not pay."""
        self.injected: Counter[str] = Counter()
        self.story: list[str] = []
        self._kills = self._chance("kills")
        self.broker = Broker(self.loop, self._chance("broker"), self._count)
        names = (EDGE, *self._nature.rules, *([JACKPOTS] if self._linked else []))
        self.ledgers = {name: Ledger(name) for name in names}
        self._processes: dict[str, Process] = {}
        self._bodies: dict[str, Any] = {}
        self._disks: dict[str, Disk] = {}
        self._clock_s = 0.0
        self._clock = timedelta()
        self._line_sound: dict[str, float] = {}
        self._healing = False
        self._wrong: list[str] = []
        self._files = 0
        self.accounts: dict[str, Account] = {}
        self.pools = PoolAccount()
        self.forgotten = 0
        self._unheard: defaultdict[str, set[int]] = defaultdict(set)
        self._told: Counter[str] = Counter()
        """By table of a wheel, the number of spins that the edge reported."""

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")

    def _count(self, fault: str) -> None:
        self.injected[fault] += 1

    def _tell(self, text: str) -> None:
        self.story.append(f"{self.loop.time():9.3f} s, step {self.loop.steps}: {text}")

    def now(self) -> Any:
        """The edge's wall clock, with its changes."""
        return self.loop.utc() + self._clock

    @property
    def rounds(self) -> int:
        """Number of rounds dealt."""
        return sum(self.pit.dealt().values()) if hasattr(self, "pit") else 0

    @property
    def events(self) -> int:
        """Number of events in the edge's journal."""
        return len(self.ledgers[EDGE].rows)

    # ---- processes

    async def _keep(self, name: str, body: Callable[[Disk, Process], Coroutine[Any, Any, None]]) -> None:
        """Run one process and restart it whenever it ends, as its systemd unit does."""
        rng = self._chance(f"keep {name}")
        path = self._file(name)
        while True:
            process = Process(name, self.loop)
            self._processes[name] = process
            fate = self._fate(process, name)
            process.start(self._run(name, path, process, fate, body))
            error = await process.over
            disk = self._disks.pop(name, None)
            self._bodies.pop(name, None)
            if disk is not None:
                path = self._file(name)
                disk.leave(path)
            if process.how:
                self._count(f"{name.removesuffix('-1')}: {process.how}")
                self._tell(f"{name}: {process.how}")
            wrong = self.ledgers[name].wrong
            if error is not None and not (process.how.startswith("disk") and _is_bad_journal(error)):
                wrong = f"{name} crashed: {logs.first(error)!r}"
            if wrong:
                self._wrong.append(wrong)
                raise WrongError(wrong)
            await asyncio.sleep(rng.uniform(0.05, 1.0) if rng.random() < 0.8 else rng.uniform(1.0, 20.0))

    def _file(self, name: str) -> Path:
        self._files += 1
        return self._directory / f"{name}-{self._files}.db"

    def _fate(self, process: Process, name: str) -> Fate:
        """Draw when the process will die, if at all."""
        rng, nature = self._kills, self._nature
        if self._healing:
            return Fate()
        if nature.disk and rng.random() < 0.3:
            return Fate(2 + int(rng.expovariate(1 / nature.writes)), rng.choice(("error", "full", "power")))
        if not nature.killed[name]:
            return Fate()
        if rng.random() < 0.5:
            process.kill_at = 1 + int(rng.expovariate(1 / nature.steps))
            return Fate()
        return Fate(1 + int(rng.expovariate(1 / nature.writes)), rng.choice(("before", "after")))

    async def _run(
        self,
        name: str,
        path: Path,
        process: Process,
        fate: Fate,
        body: Callable[[Disk, Process], Coroutine[Any, Any, None]],
    ) -> None:
        source = f"{name}:" if name in (EDGE, JACKPOTS) else ""
        disk = Disk(path, process, fate, self.ledgers[name], source, self._chance(f"disk {path.name}"))
        self._disks[name] = disk
        self._tell(f"{name} starts with {disk.head} rows")
        await body(disk, process)

    async def _edge(self, disk: Disk, _process: Process) -> None:
        edge = Edge(self._config, disk, now=self.now, opener=self.pit.opener(self.now), connect=self.broker.connect)
        self._bodies[EDGE] = edge
        await edge.run()

    async def _rules(self, name: str, disk: Disk, _process: Process) -> None:
        config = msgspec.structs.replace(self._config, rules=Rules(name=name))
        consumer = Consumer(config, disk, connect=self.broker.connect)
        self._bodies[name] = consumer
        await consumer.run()

    async def _pools(self, disk: Disk, _process: Process) -> None:
        jackpots = Jackpots(self._config, disk, connect=self.broker.connect, now=self.loop.utc)
        self._bodies[JACKPOTS] = jackpots
        await jackpots.run()

    # ---- faults

    async def _strike(self, every: float, what: str, do: Callable[[random.Random], str]) -> None:
        rng = self._chance(what)
        while True:
            await asyncio.sleep(rng.expovariate(1 / every))
            if done := do(rng):
                self._count(done.partition(" at ")[0])
                self._tell(done)

    def _line(self, rng: random.Random) -> str:
        table = rng.choice(list(self.pit.sockets))
        device = rng.choice(list(self.pit.sockets[table]))
        socket = self.pit.sockets[table][device]
        fault = rng.choice(list(socket.device.line))
        # The expected effects of faults of a line are known only for one fault at a time.
        if self.loop.time() < self._line_sound.get(f"{table}/{device}", 0.0):
            return ""
        self._line_sound[f"{table}/{device}"] = self.loop.time() + ONE_AT_A_TIME
        socket.inject(fault)
        return f"line: {fault} at {table}/{device}"

    def _device(self, rng: random.Random) -> str:
        table = rng.choice(list(self.pit.sockets))
        device = rng.choice(list(self.pit.sockets[table]))
        socket = self.pit.sockets[table][device]
        fault, ailment = rng.choice(list(socket.device.faults.items()))
        socket.inject(fault)
        if ailment.person:
            self.loop.call_later(rng.uniform(5.0, 20.0), self._repair, table, device)
        return f"device: {socket.device.name} {fault} at {table}/{device}"

    def _repair(self, table: str, device: str) -> None:
        socket = self.pit.sockets[table][device]
        socket.device.repair(self.loop.time())
        socket.stir()

    def _cut(self, rng: random.Random) -> str:
        clients = self.broker.clients()
        if not clients:
            return ""
        client = rng.choice(clients)
        self.broker.cut(client)
        return f"network: connection cut at {client}"

    def _restart(self, rng: random.Random) -> str:
        if not self.broker.up:
            return ""
        self.broker.kill()
        memory = rng.choice(("all", "old", "none"))
        self.loop.call_later(rng.uniform(0.05, 8.0), self.broker.start, memory)
        return f"broker: killed, back with {memory} of its memory"

    def _set_clock(self, rng: random.Random) -> str:
        step = rng.choice((0.05, 1.0, 30.0, 3600.0)) * rng.uniform(-1.0, 1.0)
        if self._linked and not self._pools_began():
            step = abs(step)  # a table's first result that is older than the pool counts as its past
        self._clock_s += step
        self._clock = timedelta(seconds=1) * self._clock_s
        return f"clock: set {'back' if step < 0 else 'forward'} at {step:+.3f} s"

    def _deny(self, rng: random.Random) -> str:
        """The broker's access list loses one table for a while. The neighbours must not be affected."""
        if self.broker.denied or not self.broker.up:
            return ""
        table = self.broker.denied = rng.choice(list(self.pit.tables))
        self.loop.call_later(rng.uniform(1.0, 40.0), self._soon_allowed)
        return f"access list: loses a table at {table}"

    def _soon_allowed(self) -> None:
        self.loop.call_later(NEIGHBOUR_TIMEOUT_S, self._allow, len(self.ledgers[EDGE].rows))

    def _allow(self, due: int) -> None:
        """Restore the list. In a life without other faults the neighbours' first `due` events have arrived."""
        denied, self.broker.denied = self.broker.denied, ""
        late = [place for place in self.ledgers[EDGE].unsent(due) if place != denied]
        if late and denied and self._nature.calm:
            self._wrong.append(f"{len(late)} events of {late[0]} were late while the broker refused {denied}")

    # ---- the life

    async def _body(self) -> None:
        nature, broker = self._nature, self.broker
        rng = self._chance("tables")
        kinds: Sequence[str] = self._linked or rng.sample(PLAYED, min(rng.randint(2, 3), len(PLAYED)))
        luck = 0.0 if not self._linked else 1.0 if self._slow else LUCK
        self.pit = VirtualPit(self.loop, self.seed, kinds, connect=broker.connect, hurry=HURRY, luck=luck)
        for table in self.pit.tables.values():
            if isinstance(table, StudPokerTable) and self._linked:
                table.second_looks, table.forgets_to_pay = True, 0.8 if self._slow else 0.0
        self._config: Config = self.pit.parsed()
        broker.on_taken = self._taken
        self.site = SiteState(self._config.mqtt, SITE, from_start=True, connect=broker.connect)
        self.site.on_opened.append(self.pit.opened)
        self.site.on_result.append(self.pit.heard)
        self.site.on_event.append(self.pit.saw)
        self._tell(f"tables {', '.join(self.pit.tables)}; {vars(nature)}")
        tasks = await self._begin_pools() if self._linked else []
        tasks += [
            asyncio.create_task(one)
            for one in (
                self._keep(EDGE, self._edge),
                *(self._keep(name, partial(self._rules, name)) for name in nature.rules),
                self.site.run("picture"),
                self.pit.serve(self._config.mqtt, broker.connect),
            )
        ]
        strikes = [
            asyncio.create_task(self._strike(every, what, do))
            for every, what, do in (
                (nature.lines, "lines", self._line),
                (nature.devices, "devices", self._device),
                (nature.cuts, "cuts", self._cut),
                (nature.broker, "restarts", self._restart),
                (nature.clock, "clock", self._set_clock),
                (nature.denied, "denied", self._deny),
            )
            if every
        ]
        for name in ("doubled", "delayed", "swapped", "dropped", "refused", "hung", "echoes"):
            setattr(broker.weather, name, getattr(nature, name))
        writing = asyncio.create_task(self._write_down())
        listening = asyncio.create_task(self._listen())
        playing = asyncio.create_task(self.pit.play(self._rounds, self.site, self.now))
        await asyncio.wait([playing, *tasks], timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
        for one in (*tasks, playing):
            if one.done() and (error := one.exception()) is not None:
                raise error
        if not playing.done():
            raise WrongError(f"the dealers have stopped: {self.pit.dealt()} of {self._rounds} rounds dealt")
        self._tell("all faults are repaired")
        for task in (*strikes, writing, listening):
            task.cancel()
        await self._heal()

    async def _begin_pools(self) -> list[asyncio.Task[None]]:
        """Start the pools before the tables play: a pool does not count what happened before its beginning."""
        self.people = people = Supervisors(SITE, self._chance("supervisors"), self.loop.utc)
        parts = (
            self._keep(JACKPOTS, self._pools),
            people.run(self._config.mqtt, self.broker.connect),
            people.work(SELDOM_S if self._slow else OFTEN_S, changes=5.0),
        )
        tasks = [asyncio.create_task(one) for one in parts]
        for _ in range(int(LONGEST)):
            await asyncio.sleep(1.0)
            if self.ledgers[JACKPOTS].rows or self._wrong:
                break
        return tasks

    async def _write_down(self) -> None:
        while True:
            await asyncio.sleep(20.0)
            self.broker.write_down()

    async def _listen(self) -> None:
        """Record which spins of a wheel ended while no edge listened."""
        wheels = {name: table for name, table in self.pit.tables.items() if isinstance(table, RouletteTable)}
        ended = dict.fromkeys(wheels, 0)
        away = False
        while wheels:
            await asyncio.sleep(0.5)
            was_away, away = away, EDGE not in self._bodies
            for name, wheel in wheels.items():
                if away or was_away:
                    self._unheard[name].update(range(ended[name], len(wheel.truth)))
                ended[name] = len(wheel.truth)

    async def _heal(self) -> None:
        """End all faults and restart all processes; then every round must get its result."""
        self._healing = True
        weather = self.broker.weather
        weather.doubled = weather.delayed = weather.swapped = weather.dropped = weather.refused = weather.hung = 0.0
        self.broker.denied = ""
        for process in self._processes.values():
            process.kill_at = 0
        for disk in self._disks.values():
            disk.spare()
        for sockets in self.pit.sockets.values():
            for socket in sockets.values():
                socket.device.repair(self.loop.time())
                socket.stir()
        until = self.loop.time() + SETTLE_TIMEOUT_S
        quiet = 0
        while quiet < 12:  # a device that lost its power, or is on a line without data, reports within some seconds
            await asyncio.sleep(1.0)
            why = self._not_out()
            quiet = 0 if why else quiet + 1
            if self.loop.time() > until:
                raise WrongError(f"not everything was published: {why}")

    def _not_out(self) -> str:
        if self._wrong:
            raise WrongError(self._wrong[0])
        if set(self._bodies) != set(self.ledgers):
            return "a process is not up"
        edge = self._bodies[EDGE]
        for name, body in self._bodies.items():
            if not body.connected:
                return f"{name} is not connected"
            if body.outbox.depth:
                return f"{name} has {body.outbox.depth} rows to send"
            if body.outbox.held:
                return f"{name} holds rows of {', '.join(sorted(body.outbox.held))}"
        if not self.site.connected:
            return "the display is not connected"
        for name, account in self._jackpots():  # a machine that answered no long poll reports them later
            if account.lost:
                return f"a jackpot of {name} was not reported"
        if self._linked and (why := self._pools_not_out(self._bodies[JACKPOTS])):
            return why
        for table in self._resolved():
            newest = edge.journal.last(table)
            for name in self._nature.rules:
                if self._bodies[name].position(table) != newest:
                    return f"{name} used {self._bodies[name].position(table)} of {newest} events of {table}"
            if self.site.tables[table].resolved + self.site.tables[table].voided != self._ended(table):
                return f"the display does not show every end of a round of {table}"
        return ""

    def _pools_began(self) -> bool:
        """Whether the jackpots process is up, and each pool has used a verdict of each of its tables."""
        jackpots = self._bodies.get(JACKPOTS)
        return jackpots is not None and all(
            jackpots.books[pool.name].tables[table].last for pool in self._config.jackpot for table in pool.tables
        )

    def _pools_not_out(self, jackpots: Jackpots) -> str:
        """The first level that differs from its account, or the first consumer with unused verdicts; empty if there is
        none.
        """
        for pool in self._config.jackpot:
            book = jackpots.books[pool.name]
            retained = self.broker.retained.get(jackpot_topic(SITE, pool.name, "level"))
            level = msgspec.json.decode(retained, type=PoolLevel) if retained else None
            if level is None or (level.amount, level.entry) != (book.amount, book.number):
                return f"the level of {pool.name} is not {book.amount}"
            for table in pool.tables:
                for name in self._nature.rules:
                    journal = self._bodies[name].journal
                    used, newest = book.heard.get(f"rules/{journal.name}/{table}", 0), journal.last(table)
                    if used != newest:
                        return f"{pool.name} used {used} of {newest} verdicts that {name} published of {table}"
        return ""

    def _resolved(self) -> list[str]:
        """The tables with rules."""
        return [name for name, table in self.pit.tables.items() if table.ruleset]

    def _ended(self, table: str) -> int:
        return sum(1 for place, _, type_, _ in self.ledgers["rules"].rows if place == table and type_ in ENDS[:2])

    def _taken(self, identifier: str, topic: str, payload: bytes) -> None:
        if "/event/" in topic:
            ledger = self.ledgers.get(_WRITERS.get(identifier, ""))
            if ledger is not None:
                at = payload.index(b'"id":"') + 6
                ledger.taken.add(payload[at : payload.index(b'"', at)].decode())

    # ---- the judges

    def judge(self) -> None:
        """Raises WrongError."""
        if self._wrong:
            raise WrongError(self._wrong[0])
        if self.loop.trouble:
            raise WrongError(self.loop.trouble[0])
        events = self._disks[EDGE].after(0, sys.maxsize)
        told = {name: self._disks[name].after(0, sys.maxsize) for name in self._nature.rules}
        judge_journals(self._config, events, told)
        for ledger in self.ledgers.values():
            ledger.cursor(len(ledger.rows), {})  # at the end the broker has received all rows
        self._no_spin_invented(events)
        if self._linked:
            self._pools_right(events, told["rules"])
        self._answers_agree()
        self._rounds_right()
        self.accounts.update(self._jackpots())
        bad = [
            f"{name}: {account.lost} lost, {account.wrong} wrong, {account.right} right"
            for name, account in self.accounts.items()
            if account.lost or account.wrong
        ]
        if bad:
            raise WrongError("; ".join(bad))

    def _pools_right(self, events: Sequence[Row], verdicts: Sequence[Row]) -> None:
        """The accounts agree with themselves and with the oracle."""
        rows = self._disks[JACKPOTS].after(0, sys.maxsize)
        for pool in self._config.jackpot:
            mine = [row for row in rows if row.place == pool.name]
            if said := check(mine, self._bodies[JACKPOTS].books[pool.name]):
                raise WrongError(f"pool {pool.name}: {said}")
        self.pools, wrong = judge_pools(
            self._config, verdicts, rows, self.pit.laid, self.people.sent, events, calm=not self.injected
        )
        self.injected.update(done_by_people(self.pit.tables.values(), self.people))
        if wrong:
            raise WrongError("; ".join(wrong[:8]))

    def _answers_agree(self) -> None:
        """A betting terminal got the same final answer, however often it asked."""
        for name, table in self.pit.tables.items():
            for device in table.devices.values():
                if isinstance(device, BetTerminals) and device.contradicted:
                    raise WrongError(f"{name}: two answers to one request: {device.contradicted[0]}")

    def _no_spin_invented(self, events: Sequence[Row]) -> None:
        """A spin is reported once: with its number, as void or as missed. Additional void results are no error."""
        told = self._told
        for row in events:
            match decode_data(row.type, row.data) if row.type.startswith(("spin.", "ball.")) else None:
                case SpinMissed(count=count):
                    told[row.place] += count
                case SpinVoided(reason=reason) if reason in TAKEN_BACK:
                    pass
                case BallLanded() | SpinVoided():
                    told[row.place] += 1
                case _:
                    pass
        for name, table in self.pit.tables.items():
            if isinstance(table, RouletteTable) and told[name] > len(table.truth):
                raise WrongError(f"{name}: {told[name]} spins were reported as ended, and {len(table.truth)} had")

    def _rounds_right(self) -> None:
        for name in self._resolved():
            table, outcomes = self.pit.tables[name], self.pit.outcomes[name]
            quick = len(outcomes) == len(table.truth) and all(
                not one.void and not truth.void and fits(truth, one)
                for truth, one in zip(table.truth, outcomes, strict=True)
            )
            account = Account(right=len(outcomes)) if quick else compare(table.truth, outcomes)
            account = spared(account, outcomes)
            gone = 0
            if isinstance(table, RouletteTable):
                wheel = table.wheel
                began_again = wheel.restarted_at == len(wheel.truth)
                forgotten = forgot(wheel.truth, self._unheard[name], began_again=began_again)
                gone = min(account.lost, forgotten, len(wheel.truth) - self._told[name])
            account = msgspec.structs.replace(account, lost=account.lost - gone)
            self.forgotten += gone
            self.accounts[name] = account

    def _jackpots(self) -> Iterator[tuple[str, Account]]:
        for name, table in self.pit.tables.items():
            if isinstance(table, MachinePlace):
                rows = self.ledgers[EDGE].rows
                yield name, table.account([(type_, data) for place, _, type_, data in rows if place == name])

    def run(self) -> Failure | None:
        """Run the life from its first step to the judgement."""
        loop = self.loop
        try:
            with _chance(self.seed), _made_once():
                loop.run_until_complete(self._body())
                self.judge()
        except Exception as error:  # noqa: BLE001 - any failure is replayed by its seed
            what = str(error) if isinstance(error, WrongError | StandingStillError) else f"{logs.first(error)!r}"
            return Failure(self.seed, loop.steps, loop.time(), what, tuple(self.story[:1] + self.story[1:][-STORY:]))
        finally:
            for process in self._processes.values():
                process.alive = False
            loop.close()
            for disk in self._disks.values():
                disk.close()
        return None


def forgot(spins: Sequence[SpinTruth], unheard: Container[int], *, began_again: bool) -> int:
    """The number of spins with a number that no driver received before the wheel's counter restarted.

    `unheard`: indexes of the spins that ended while no edge listened. Each number that the counter skips between
    two received spins reveals one of them; before the first received spin none is revealed. The same number again is a
    repeated void spin, or proves that the counter restarted. `began_again`: the counter restarted after the last spin.
    """
    count = run = 0
    heard: SpinTruth | None = None
    for place, one in enumerate(spins):
        if place in unheard:
            run += bool(one.pocket)
            continue
        skipped = one.spin - 1
        if heard is None or (heard.spin == one.spin and not heard.pocket):
            skipped = 0
        elif heard.spin < one.spin:
            skipped -= heard.spin
        count += max(run - skipped, 0)
        run, heard = 0, one
    return count + (run if began_again else 0)


_WRITERS = {
    f"feltd-edge-{EDGE}": EDGE,
    f"feltd-jackpots-{JACKPOTS}": JACKPOTS,
    **{f"feltd-rules-{name}": name for name in RULES},
}


class _Made:
    """A ruleset's class that builds each table's rules once: they are pure, so all consumers and lives share them."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._made: dict[str, Ruleset[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def __call__(self, options: Any) -> Ruleset[Any]:
        key = repr(options)
        if key not in self._made:
            self._made[key] = self._kind(options)
        return self._made[key]


@contextlib.contextmanager
def _made_once() -> Iterator[None]:
    before = dict(RULESETS)
    RULESETS.update({name: cast("Any", _MADE.setdefault(name, _Made(kind))) for name, kind in before.items()})
    try:
        yield
    finally:
        RULESETS.update(before)


_MADE: dict[str, _Made] = {}


def _is_bad_journal(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(BadJournal) is not None
    return isinstance(error, BadJournal)


@contextlib.contextmanager
def _chance(seed: int) -> Iterator[None]:
    """Replace the system's random numbers by those of the seed."""
    rng = random.Random(f"{seed} system")
    uuid4, system = uuid.uuid4, random.SystemRandom
    try:
        uuid.uuid4 = lambda: uuid.UUID(int=rng.getrandbits(128), version=4)
        random.SystemRandom = lambda: random.Random(rng.getrandbits(64))  # type: ignore[misc, assignment]
        yield
    finally:
        uuid.uuid4, random.SystemRandom = uuid4, system  # type: ignore[misc]


# ---- many lives


def live(seed: int, rounds: int = 0) -> tuple[Life, Failure | None]:
    """One life of `rounds` rounds a table, by default ROUNDS."""
    shared = Path("/dev/shm")  # noqa: S108 - where there is one, it is as fast as memory
    with tempfile.TemporaryDirectory(prefix="feltd-", dir=shared if shared.is_dir() else None) as directory:
        life = Life(seed, Path(directory), rounds or ROUNDS)
        return life, life.run()


def _lived(seed: int) -> Report:
    """Play one life; its figures."""
    began = time.process_time()
    collecting = gc.isenabled()
    gc.disable()  # no garbage collection during a life
    try:
        life, failure = live(seed)
        report = Report(
            seed,
            lives=1,
            rounds=life.rounds,
            right=sum(one.right for one in life.accounts.values()),
            void=sum(one.voided + one.unseen for one in life.accounts.values()),
            lost=sum(one.lost for one in life.accounts.values()),
            doubled=int(failure is not None and "twice" in failure.what),
            wrong=sum(one.wrong for one in life.accounts.values()),
            forgotten=life.forgotten,
            jackpots=life.pools,
            events=life.events,
            play=life.loop.time(),
            faults=dict(life.injected),
            survived={fault: 0 if failure else count for fault, count in life.injected.items()},
            failures=[failure] if failure else [],
        )
        del life
        if seed % 10 == 9:
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    report.seconds = time.process_time() - began
    return report


def _in_order(first: int, jobs: int) -> Generator[Report, None, None]:
    """The lives from `first` on, in this process or in workers."""
    if jobs == 1:
        yield from map(_lived, itertools.count(first))
        return
    alone = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process; running lives end
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), signal.signal, alone) as pool:
        try:
            # The first submission forks all workers. A Ctrl-C waits until each of them ignores it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            ahead = deque(pool.submit(_lived, first + n) for n in range(AHEAD * jobs))
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for following in itertools.count(first + len(ahead)):
                yield ahead.popleft().result()
                ahead.append(pool.submit(_lived, following))
        finally:
            pool.shutdown(cancel_futures=True)


def campaign(rounds: int, seed: int, *, after: int = 0, jobs: int = 1, most_failures: int = 10) -> Iterator[Report]:
    """Play lives until `rounds` rounds were dealt, with seeds derived from `seed`. Yields the sum after each life.

    `after`: lives that an interrupted campaign of this seed has played; both sums together are those of an
    uninterrupted campaign. `jobs` processes share the lives; the outcome does not depend on their number.
    """
    report = Report(seed, after)
    with contextlib.closing(_in_order(seed * 1_000_000 + after, jobs)) as lives:
        while report.rounds < rounds and len(report.failures) < most_failures:
            report.add(next(lives))
            yield report


def run(rounds: int, seed: int, jobs: int = 1, *, after: int = 0, as_json: bool) -> int:
    """`feltd campaign`; the exit code. An interrupted campaign prints its outcome so far."""
    logs.set_up("critical")
    began = time.monotonic()
    report = Report(seed, after)
    interrupted = False
    way = Console(stderr=True)
    with Progress(*_WAY, console=way, transient=True, disable=not way.is_terminal) as progress:
        task = progress.add_task("", total=rounds)
        try:
            for report in campaign(rounds, seed, after=after, jobs=jobs):
                bad = f", {len(report.failures)} failed" if report.failures else ""
                progress.update(task, completed=report.rounds, description=f"{report.lives} lives{bad}")
        except KeyboardInterrupt:
            interrupted = report.rounds < rounds
    took = time.monotonic() - began
    code = 1 if report.failures else INTERRUPTED if interrupted else 0
    rest = f"--rounds {rounds - report.rounds} --seed {seed} --after {after + report.lives}"
    rest = f"interrupted after {report.rounds} of {rounds} rounds; the rest: feltd campaign {rest}"
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        if interrupted:
            sys.stderr.write(rest + "\n")
        return code
    console = Console(highlight=False, soft_wrap=True)
    grid = Grid(title="feltd campaign", title_justify="left")
    grid.add_column("fault")
    for head in ("injected", "survived"):
        grid.add_column(head, justify="right")
    for fault, count in sorted(report.faults.items()):
        grid.add_row(fault, str(count), str(report.survived[fault]))
    console.print(grid)
    console.print(
        f"{report.rounds} rounds in {report.lives} lives, {report.events} events, "
        f"{report.play / 3600:.1f} hours of play: "
        f"{report.right} right, {report.void} void for a stated reason, "
        f"{report.lost} lost, {report.doubled} doubled, {report.wrong} wrong"
        + (f"; {report.forgotten} lost by a wheel while no edge listened" if report.forgotten else "")
    )
    console.print(pools_text(report.jackpots))
    console.print(
        f"seed {seed}, {report.rounds / max(report.seconds, 1e-9):.0f} rounds a second of one core, "
        f"{report.rounds / max(took, 1e-9):.0f} a second with {jobs} processes"
    )
    if interrupted:
        console.print(rest)
    for failure in report.failures:
        _print(console, failure)
    return code


def replay(seed: int) -> int:
    """`feltd campaign --replay`: replay one life and print its steps; the exit code."""
    logs.set_up("warning")
    life, failure = live(seed)
    console = Console(highlight=False, soft_wrap=True)
    if failure is not None:
        _print(console, failure)
        return 1
    for line in life.story:
        console.print(line, markup=False)
    console.print(f"life {seed}: {life.rounds} rounds, {life.loop.steps} steps, nothing lost, doubled or wrong")
    return 0


def _print(console: Console, failure: Failure) -> None:
    console.print(f"life {failure.seed}, step {failure.step}, {failure.at:.3f} s: {failure.what}", markup=False)
    for line in failure.story:
        console.print("  " + line, markup=False)
    console.print(f"again: feltd campaign --replay {failure.seed}")
