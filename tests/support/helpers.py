"""What several test files need: scripts of events, links in memory, tests in virtual time."""

import asyncio
import functools
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

import msgspec
import pytest

from daemon.broker import mqtt5_session
from daemon.virtual_clock import JumpingLoop
from drivers.driver import Chunk, LinkLost, Sighting
from protocols.contract.events import DeviceFaulted, DeviceRecovered, Event
from protocols.contract.results import decode_result
from protocols.contract.topics import Envelope
from rules.engine.ruleset import Resolved, Result, Ruleset, Verdict, Voided
from simulators.clock import Pace
from simulators.tables.table import Floor, Look

NIGHTLY = os.environ.get("FELTD_NIGHTLY") == "1"
"""Whether `make nightly` runs the tests: those that can be small or long are long."""

MACHINES = "angola.gaming-machines"
"""Its rounds are periods of a machine, which takes the bets itself: none is laid, and no bell closes them."""

T = TypeVar("T")
Game = TypeVar("Game", bound=Ruleset[Any])
START = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)


def at_length(small: T, nightly: T) -> T:
    """What a test tries, or how much of it: `small` in `make test`, `nightly` in `make nightly`."""
    return nightly if NIGHTLY else small


def script(events: Iterable[Event], table: str = "t-1", device: str = "d-1") -> list[Envelope]:
    """Events as envelopes e1, e2, …, a second apart."""
    return [
        Envelope(f"e{n}", f"felt/1/site/table/{table}/device/{device}", START + timedelta(seconds=n), event, n)
        for n, event in enumerate(events, 1)
    ]


def play(ruleset: Ruleset[Any], events: Iterable[Event], table: str = "t-1") -> list[Verdict]:
    """All verdicts of a script from a fresh table."""
    state = ruleset.start(table)
    verdicts: list[Verdict] = []
    for seen in script(events, table):
        state, new = ruleset.apply(state, seen)
        verdicts += new
    return verdicts


def results(verdicts: Iterable[Verdict]) -> list[Result]:
    """The results among the verdicts, resolved and void."""
    return [verdict.result for verdict in verdicts if isinstance(verdict, Resolved | Voided)]


def only(verdicts: Iterable[Verdict]) -> Result:
    """The one result of a script."""
    (result,) = results(verdicts)
    return result


def house_net(result: Result) -> int:
    """The net win of the house in a round, negative for a loss: stakes less returns. A jackpot is paid by its pool."""
    return sum(one.stake - one.returned for one in result.settlements)


def codes(result: Result) -> list[str]:
    """The kinds of its irregularities."""
    return [note.code for note in result.irregularities]


def settled(result: Result) -> list[tuple[int, str, int, int]]:
    """Seat, bet, stake and what comes back, in order."""
    return [(one.seat, one.bet, one.stake, one.returned) for one in result.settlements]


def game_of(kind: type[Game]) -> Callable[..., Game]:
    """`game(**options)`: the ruleset, made once for each set of options; it holds no state."""
    made = functools.cache(kind)
    return lambda **options: made(kind.Options(**options))


class MemoryLink:
    """A link whose other end is the test: `feed` and `hang_up` from one side, `sent` from the other.

    `set`: by how many seconds the wall clock was set.
    """

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[Chunk | None] = asyncio.Queue(10_000)
        self.sent = bytearray()
        self.set = 0.0
        self.on_write: Callable[[bytes], None] = lambda _: None

    def stamp(self) -> Chunk:
        tick = asyncio.get_running_loop().time()
        return Chunk(b"", START + timedelta(seconds=tick + self.set), tick)

    def feed(self, data: bytes) -> None:
        now = self.stamp()
        self._chunks.put_nowait(Chunk(data, now.at, now.tick))

    def hang_up(self) -> None:
        self._chunks.put_nowait(None)

    async def read(self) -> Chunk:
        chunk = await self._chunks.get()
        if chunk is None:
            self._chunks.put_nowait(None)
            raise LinkLost("hung up")
        return chunk

    async def write(self, data: bytes) -> None:
        self.sent += data
        self.on_write(data)


class Notebook:
    """An `Emit` that writes down what the driver told."""

    def __init__(self) -> None:
        self.sightings: list[Sighting] = []
        self.memory: bytes | None = None
        self.commits = 0

    async def __call__(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        self.commits += 1
        self.sightings += sightings
        if memory is not None:
            self.memory = memory

    @property
    def events(self) -> list[Event]:
        return [sighting.event for sighting in self.sightings]


def seen(events: Sequence[Event]) -> list[Event]:
    """What a device told, without its faults and their ends."""
    return [event for event in events if not isinstance(event, DeviceFaulted | DeviceRecovered)]


def troubles(events: Sequence[Event]) -> list[str]:
    """The faults that began, with their severity, and those that ended."""
    return [
        f"{event.code} {event.severity}" if isinstance(event, DeviceFaulted) else f"{event.code} over"
        for event in events
        if isinstance(event, DeviceFaulted | DeviceRecovered)
    ]


class _Sockets(dict[str, Any]):
    """Whatever a hand stirs has been told already."""

    def __missing__(self, _: str) -> "_Sockets":
        return self

    def stir(self) -> None:
        """Nothing."""


def floor(look: Callable[[], Look], pace: Pace | None = None) -> Floor:
    """What a dealer stands at where nothing goes over a wire: no table is dark, and every command is done."""

    async def ready() -> bool:
        return False

    async def tell(*_: Any) -> str:
        return "done"

    return Floor(_Sockets(), pace or Pace(), ready, look, tell)


PATIENCE = 60.0
"""Seconds a test waits for one state of a process, a broker or a page. It goes on as soon as the state is there."""
IDLE_S = 120.0
"""How long a test waits without any progress. A busy machine is slow, and still something moves."""


def broker_may_be_late(patch: pytest.MonkeyPatch) -> None:
    """The sessions of the test's own process wait for a broker on a busy computer, and outlive a stop of their own."""
    patch.setattr(mqtt5_session, "ANSWER_TIMEOUT_S", PATIENCE)
    patch.setattr(mqtt5_session, "KEEPALIVE_S", 600)


async def patient(work: Coroutine[Any, Any, T], progress: Callable[[], object], idle_s: float = IDLE_S) -> T:
    """The result of `work`, waited for as long as `progress()` changes. Raises TimeoutError after `idle_s` of none."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    last, since = progress(), loop.time()
    try:
        while not task.done():
            await asyncio.wait([task], timeout=min(idle_s, 0.5))
            if (now := progress()) != last:
                last, since = now, loop.time()
            elif loop.time() - since > idle_s and not task.done():
                raise TimeoutError(f"no progress for {idle_s:.0f} s: {last}")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
    return task.result()


def said_by(process: "subprocess.Popen[str]", until: str = "", idle_s: float = IDLE_S) -> str:
    """What a process writes, up to the line with `until`, else to its end; waited for as long as it writes at all."""
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    stdout = process.stdout

    def read() -> None:
        while line := stdout.readline():
            lines.put(line)
            if until and until in line:
                return
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    said = []
    while True:
        try:
            said.append(lines.get(timeout=idle_s))
        except queue.Empty:
            raise TimeoutError(f"the process wrote nothing for {idle_s:.0f} s") from None
        if not said[-1] or (until and until in said[-1]):
            return "".join(said)


P = ParamSpec("P")


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a loop whose clock jumps: hours pass in no time. Fails a test that leaves a task running."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def body() -> None:
            await test(*args, **kwargs)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks left running: {left}"

        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(body())

    return run


def result_of(given: Mapping[str, Any]) -> Result:
    """A result as it is read from the broker."""
    return decode_result(msgspec.json.encode(given))
