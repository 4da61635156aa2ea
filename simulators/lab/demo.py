"""`feltd demo`: a whole pit with one command.

Paced, it runs the processes of production as children (broker, edge, rules, jackpots, console), restarted when they
die, and shows what any client of the broker receives: kill any of them, or inject a fault by a key, and watch. Headless
without a pace, edge, rules and jackpots run in this process in virtual time, over real ttys and a real broker, as fast
as the machine allows. In both modes the results are compared with the truth of the simulators.
"""

import asyncio
import contextlib
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid

from daemon import logs
from daemon.broker.mac_keys import make_mac_keys
from daemon.config.model import Config, parse
from daemon.console.auth.users import Role
from daemon.journal.rows import Row
from daemon.journal.signing import make_key
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from daemon.virtual_clock import JumpingLoop
from simulators.clock import Pace
from simulators.devices.compare import Account
from simulators.lab.broker import Broker, free_port, tied
from simulators.lab.demo_screen import Lamp, Login, Screen
from simulators.lab.fault_injection import FaultInjector
from simulators.lab.keyboard import pressed
from simulators.lab.live_faults import LiveFaults
from simulators.lab.pit import EDGE, ORDER_KEY, PITS, SITE, Pit
from simulators.lab.pool_oracle import PoolAccount, judge_pools, pools_text
from simulators.lab.pools import Supervisors
from simulators.lab.virtual_time import RESULT_TIMEOUT_S, run_in_virtual_time, running_in_virtual_time, wait_for_results

__all__ = [
    "Child",
    "Settings",
    "Stage",
    "console_of",
    "demo",
    "end_by_signal",
    "judge",
    "report",
    "staged",
    "until_signal",
]

# Simulated seconds after the last round for every device to come back and every alert to close.
RECOVERY_S = 120.0
# Real seconds without a new result after Ctrl-C.
INTERRUPTED_RESULT_TIMEOUT_S = 1.0
RESTART_DELAY_S = 1.0
# Real seconds for the jackpots to use the last results.
POOLS_S = 2.0
PORT = 8080
ACCOUNTS: tuple[tuple[str, Role, str], ...] = (
    ("technician", "technician", "takes incidents, sends commands, reads the bytes"),
    ("dealer", "dealer", "deals the tables my-...; others play by themselves"),
    ("supervisor", "supervisor", "silences, corrections, orders of jackpots"),
    ("supervisor-2", "supervisor", "confirms what the first supervisor ordered"),
    ("inspector", "inspector", "rounds down to their bytes, books, log of actions"),
    ("manager", "manager", "openings, limits, counts, figures of the floor"),
    ("administrator", "administrator", "users and screens, nothing about money"),
    ("viewer", "viewer", "looks at everything except bytes"),
)
"""Name, role and what to try. They work only on loopback, where the console of the demo listens."""
PLAYED: Mapping[str, Mapping[str, str]] = {
    "macau": {"my-fan": "macau.fantan", "my-rou": "macau.roulette"},
    "angola": {"my-craps": "angola.craps", "my-rou": "angola.french-roulette"},
}
"""By pit, the tables without a simulated dealer: their only device is the dealer's page."""
DRAWN_S = 0.25
# Real seconds without a new result after the faults of a live demo were healed.
HEALED_S = 5.0
LUCK = 0.08
"""Probability that a round of a table with a linked jackpot has a hand that wins it."""
# Real seconds until a simulated supervisor confirms or pays a jackpot: people in the browser may be first.
PATIENCE_S = 45.0
# Real seconds a child has to end by itself.
CHILD_STOP_TIMEOUT_S = 10.0


class Settings(Struct, frozen=True):
    """The options of the command. `speed` None: as fast as possible."""

    rounds: int | None
    seed: int
    speed: float | None
    headless: bool
    copies: int
    embedded: bool
    faults: bool = False
    pit: str = "macau"


def demo(settings: Settings) -> int:
    """Run it; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="feltd-demo-") as directory:
        speed, in_one = settings.speed or 1.0, settings.speed is None
        kinds = PITS[settings.pit]
        pit = Pit(
            Path(directory), settings.seed, copies=settings.copies, kinds=kinds, speed=speed, usb=in_one, luck=LUCK
        )
        if settings.speed is None:
            return _fast(pit, settings)
        with asyncio.Runner() as runner:
            return runner.run(until_signal(_paced(pit, settings, settings.speed)))


async def until_signal(body: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.get_running_loop()
    task = loop.create_task(body)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        Console(stderr=True, soft_wrap=True).print("feltd demo: interrupted, the results were not compared")
        return 1


def end_by_signal(dealing: asyncio.Task[None]) -> None:
    """From here on a signal ends the dealing alone, so that the account is printed, too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, dealing.cancel)


# ---- as fast as possible


def _fast(pit: Pit, settings: Settings) -> int:
    logs.set_up("error" if settings.faults else "warning")
    return run_in_virtual_time(lambda busy: until_signal(_play_fast(pit, settings, busy)))


async def _play_fast(pit: Pit, settings: Settings, busy: list[Callable[[], bool]]) -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    began = time.monotonic()
    injector = FaultInjector(pit, settings.seed) if settings.faults else None
    async with running_in_virtual_time(pit, busy, embedded=settings.embedded) as running_pit:
        doing = asyncio.create_task(injector.run(running_pit.pace)) if injector else None
        await pit.deal(running_pit.pace, settings.rounds or 60, running_pit.site, loop.utc)
        if injector is not None and doing is not None:
            doing.cancel()
            await asyncio.wait([doing])
            injector.repair_all(running_pit.pace)
            await running_pit.pace.sleep(RECOVERY_S)
        dealt = pit.dealt()
        running_pit.settling = True
        await wait_for_results(pit, running_pit.site, dealt)
        await running_pit.until_pools_are_through()
        events, broker, simulated = running_pit.edge.journal.head, running_pit.broker, running_pit.pace.now()
        standing = [
            f"{name}: {alert.code}: {alert.text}"
            for name, view in running_pit.site.tables.items()
            for alert in view.alerts.values()
        ]
    accounts = pit.accounts(dealt)
    pools = judge(running_pit.config, pit, running_pit.people, calm=injector is None)
    code = report(accounts, pit, broker, events, simulated, time.monotonic() - began, injector is None, pools)
    if injector is not None:
        _report_faults(accounts, injector, standing)
    return code


def _report_faults(accounts: dict[str, Account], injector: FaultInjector, standing: list[str]) -> None:
    """Print the number of faults, the rounds they voided and the alerts that are still open."""
    console = Console(highlight=False, soft_wrap=True)
    total = sum(count.total() for count in injector.done.values())
    kinds = {fault for counts in injector.done.values() for fault in counts}
    voided = sum(account.voided + account.extra for account in accounts.values())
    harmful = injector.harmful.total()
    console.print(
        f"{total} faults of {len(kinds)} kinds, {harmful} that may cost a round: {voided} rounds void by them"
    )
    for text in standing:
        console.print(f"open until the next good round: {text}")


def report(
    accounts: dict[str, Account],
    pit: Pit,
    broker: Broker,
    events: int,
    simulated: float,
    real: float,
    strict: bool = True,
    pools: tuple[PoolAccount, list[str]] | None = None,
) -> int:
    console = Console(highlight=False, soft_wrap=True)
    grid = Grid(title="feltd demo", title_justify="left")
    for head in ("table", "game", "dealt", "right", "void", "lost", "wrong"):
        grid.add_column(head, justify="left" if head in ("table", "game") else "right")
    good = True
    for name, account in accounts.items():
        dealt = account.right + account.voided + account.lost + account.unseen
        row = (dealt, account.right, account.voided + account.extra + account.unseen, account.lost, account.wrong)
        grid.add_row(name, pit.tables[name].ruleset, *map(str, row))
        good &= not (
            _lost(pit, name, account, strict)
            or account.wrong
            or (strict and (account.voided or account.extra or account.unseen))
        )
    console.print(grid)
    if pools is not None:
        good &= not pools[1]
        console.print(f"{pools_text(pools[0])}: the books {'do not ' * bool(pools[1])}agree with an independent model")
        for wrong in pools[1]:
            console.print(wrong, markup=False)
    total = sum(one.right + one.voided + one.lost + one.unseen for one in accounts.values())
    console.print(
        f"{total} rounds, {events} events, {simulated / 60:.0f} minutes of play in {real:.1f} s over {broker.name}: "
        + ("every result is what the simulators did" if good else "NOT every result is what the simulators did")
    )
    return 0 if good else 1


def _lost(pit: Pit, table: str, account: Account, strict: bool) -> int:
    """Rounds without a result. A table without a game has no rounds: events missing there count only if `strict`."""
    return account.lost if strict or pit.tables[table].ruleset else 0


def judge(config: Config, pit: Pit, people: Supervisors | None, *, calm: bool) -> tuple[PoolAccount, list[str]] | None:
    """Compare the accounts of the jackpots with the oracle; None if there are none."""
    if not config.jackpot or people is None:
        return None
    journals = (config.edge.journal, config.rules.journal, config.jackpots.journal)
    events, verdicts, books = (_rows(Path(one)) for one in journals)
    return judge_pools(config, verdicts, books, pit.laid, people.sent, events, calm=calm, strangers=True)


def _rows(path: Path) -> list[Row]:
    with contextlib.closing(Journal(path)) as journal:
        return journal.after(0, sys.maxsize)


# ---- paced, as in production


class Child:
    """One production process, restarted when it ends."""

    def __init__(self, command: str, config: Path) -> None:
        self.command = command
        self._config = config
        self.process: asyncio.subprocess.Process | None = None
        self.starts = 0

    async def keep(self) -> None:
        log = (self._config.parent / f"{self.command}.log").open("ab")
        try:
            while True:
                self.starts += 1
                # In a session of its own: only the demo handles Ctrl-C, and then ends its children in order.
                self.process = await asyncio.create_subprocess_exec(
                    *tied(),
                    sys.executable,
                    "-m",
                    "daemon.cli",
                    self.command,
                    "-c",
                    str(self._config),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
                await self.process.wait()
                await asyncio.sleep(RESTART_DELAY_S)
        finally:
            if self.process is not None and self.process.returncode is None:
                self.process.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.process.wait(), CHILD_STOP_TIMEOUT_S)
            if self.process is not None and self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            log.close()


class Stage(Struct):
    """A pit with the production processes, while they run. `pools`: the process of its jackpots, if it has any."""

    config: Config
    site: SiteState
    edge: Child
    rules: Child
    pools: Child | None
    people: Supervisors


@contextlib.asynccontextmanager
async def staged(pit: Pit, pace: Pace, broker: Broker, more: str = "") -> AsyncIterator[Stage]:
    """Broker, edge, rules and jackpots as separate processes, each restarted when it ends; all are stopped in order.

    `more` is appended to the configuration.
    """
    await broker.start()
    if not (key := pit.directory / ORDER_KEY).exists():
        make_key(key)
    try:
        pit.open(pace, broker.port, broker.version)
        path = pit.directory / "feltd.toml"
        make_mac_keys(pit.directory, EDGE, SITE)
        path.write_text(pit.config(broker.port, broker.version) + more, encoding="utf-8")
        config = parse(path.read_text(encoding="utf-8"))
        site = SiteState(config.mqtt, SITE, from_start=True)
        site.on_opened.append(pit.opened)
        site.on_result.append(pit.heard)
        site.on_event.append(pit.saw)
        pools = Child("jackpots", path) if config.jackpot else None
        people = Supervisors(SITE, pit.chance("people"), lambda: datetime.now(UTC), key=key)
        stage = Stage(config, site, Child("edge", path), Child("rules", path), pools, people)
        async with asyncio.TaskGroup() as group:
            world = [
                group.create_task(one)
                for one in (
                    pit.live(),
                    pit.serve(config.mqtt),
                    site.run("demo-picture"),
                    broker.keep(),
                    stage.edge.keep(),
                    stage.rules.keep(),
                    *((pools.keep(), people.run(config.mqtt)) if pools is not None else ()),
                )
            ]
            try:
                yield stage
            finally:
                for task in world:
                    task.cancel()
    finally:
        await broker.stop()


async def _paced(pit: Pit, settings: Settings, speed: float) -> int:
    pace = Pace(speed)
    began = time.monotonic()
    broker = Broker(pit.directory, embedded=settings.embedded, persistence=True, before=tied())
    logs.set_up("warning" if settings.headless else "error")
    played = PLAYED[settings.pit]
    login, more = console_of(pit.directory, played, broker.port)
    async with staged(pit, pace, broker, more) as stage, asyncio.TaskGroup() as group:
        console = Child("console", pit.directory / "feltd.toml")
        site, children = stage.site, [stage.edge, stage.rules, console]
        beside = [group.create_task(console.keep()), group.create_task(stage.people.work(PATIENCE_S))]
        if stage.pools is not None:
            children.append(stage.pools)
        await stage.people.until_begun([pool.name for pool in stage.config.jackpot])
        dealing = group.create_task(pit.deal(pace, settings.rounds or 10**9, site))
        faults = LiveFaults(pit, pace)
        injecting = None
        if settings.faults:
            injecting = group.create_task(FaultInjector(pit, settings.seed, faults.note).run(pace))
        end_by_signal(dealing)
        if settings.headless or not sys.stdout.isatty():
            plain = Console(stderr=settings.headless, highlight=False, soft_wrap=True)
            plain.print(f"console: {login}\n{login.others}\n{login.broker}")
        else:
            screen = Screen(
                site,
                {**{name: table.ruleset for name, table in pit.tables.items()}, **played},
                faults,
                login,
                title=f"{settings.pit} at {speed:g}x",
                edge=EDGE,
                lamps=lambda: _lamps(site, broker, children),
                levels=stage.people.levels.values,
                played=played,
                seconds=time.monotonic,
            )
            beside.append(group.create_task(_show(screen, dealing.cancel)))
        await asyncio.wait([dealing])
        dealt = pit.dealt()
        if injecting is not None:
            injecting.cancel()
        faults.heal()
        # The broker or the edge may have been killed on purpose: rounds then under way are void, never lost.
        strict = all(child.starts == 1 for child in children) and not faults.count
        unhurried = RESULT_TIMEOUT_S if not dealing.cancelled() else INTERRUPTED_RESULT_TIMEOUT_S

        def is_lost() -> bool:
            return any(_lost(pit, name, account, strict) for name, account in pit.accounts(dealt).items())

        await wait_for_results(pit, site, dealt, max(unhurried, HEALED_S if faults.count else 0), is_lost)
        await asyncio.sleep(POOLS_S if stage.pools is not None else 0)
        for task in beside:
            task.cancel()
    events = sum(view.events for view in site.tables.values())
    accounts = pit.accounts(dealt, cut_short=dealing.cancelled())
    pools = judge(stage.config, pit, stage.people, calm=False)
    return report(accounts, pit, broker, events, pace.now(), time.monotonic() - began, strict, pools)


def _console_port() -> int:
    """PORT, else a free one.

    Two demos may start in the same moment, before either console listens: the one with PORT holds a socket name until
    it ends.
    """
    name = socket.socket(socket.AF_UNIX)
    try:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            name.bind(f"\0feltd-demo-{PORT}")
            one.bind(("127.0.0.1", PORT))
    except OSError:
        name.close()
        return free_port()
    name.detach()  # the kernel closes it with the process
    return PORT


def console_of(directory: Path, played: Mapping[str, str], broker_port: int) -> tuple[Login, str]:
    """The users with one random password; the console's configuration, with the tables that a person deals."""
    from daemon.console.auth.second_factor import PERIOD_S, code_at, new_secret
    from daemon.console.auth.users import By, Users, hash_password, may
    from daemon.console.site.store import Store

    port = _console_port()
    login = Login(port, secrets.token_urlsafe(9), ACCOUNTS, broker_port, SITE, new_secret())
    store = Store(directory / "console.db")
    try:
        users, hashed = Users(store, lambda: datetime.now(UTC)), hash_password(login.password)
        for name, role, _ in ACCOUNTS:
            users.add(By("demo", "system"), name, role, tuple(played) if role == "dealer" else (), hashed)
        people = [(name, role) for name, role, _ in ACCOUNTS if may(role, "vouch")]
        for name, role in sorted(people, key=lambda one: one[1] != "inspector"):  # the inspector vouches for the others
            code = code_at(login.secret, datetime.now(UTC) - timedelta(seconds=PERIOD_S))  # the next code is valid, too
            users.set_factor(By(name, role), name, login.secret, code)
            users.confirm(By("demo", "system") if role == "inspector" else By("inspector", "inspector"), name)
    finally:
        store.close()
    lines = ["", "[console]", f"port = {port}", f'order_key = "{directory / ORDER_KEY}"']
    lines += [f'store = "{directory}/console.db"', f'journal = "{directory}/console-journal.db"', "[console.dealer]"]
    doors = {name: f"{directory}/{name}.sock" for name in played}
    lines += [f'{name} = "{door}"' for name, door in doors.items()]
    for name, ruleset in played.items():
        lines += ["[[table]]", f'name = "{name}"', f'ruleset = "{ruleset}"']
        lines += ["[[table.device]]", 'name = "page-1"', 'driver = "fdl_console"', f'url = "unix://{doors[name]}"']
    return login, "\n".join(lines) + "\n"


# ---- the live view


async def _show(screen: Screen, end: Callable[[], object]) -> None:
    """Draw until cancelled; a key that ends the demo calls `end`. The terminal is always restored."""
    drawn = asyncio.Event()

    def press(key: str) -> None:
        if screen.press(key):
            end()
        drawn.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, drawn.set)
    console = Console(highlight=False)
    try:
        with (
            Live(screen, console=console, auto_refresh=False, screen=console.is_terminal) as live,
            pressed(sys.stdin.fileno(), press),
        ):
            while True:
                drawn.clear()
                live.refresh()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(DRAWN_S):  # Python 3.11's wait_for may swallow a cancellation
                        await drawn.wait()
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def _lamps(site: SiteState, broker: Broker, children: list[Child]) -> list[Lamp]:
    """The broker and the processes, with their process ids."""
    lamps = [(site.connected, f"broker {broker.pid}")]
    for child in children:
        name = {"edge": EDGE, "rules": "rules", "jackpots": "jackpots"}.get(child.command, "")
        alive = child.process is not None and child.process.returncode is None
        pid = child.process.pid if child.process else "-"
        again = f" x{child.starts}" if child.starts > 1 else ""
        good = alive and site.connected and (not name or site.is_online(name))
        lamps.append((good, f"{child.command} {pid}{again}"))
    return lamps
