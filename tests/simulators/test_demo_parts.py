"""What the demo is made of: time that jumps and overtakes nothing, ports, honest accounts, tables really played."""

import asyncio
import contextlib
import itertools
import os
import random
import socket
import termios
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest
from helpers import PATIENCE, at_length, result_of, virtual_time
from hypothesis import assume, given, settings, strategies as st
from structlog.testing import capture_logs

from daemon.broker.session import BrokerLost, Message, Session
from daemon.cli.configuration_check import device_mistakes, ruleset_mistakes
from daemon.config.model import Mqtt, load
from daemon.edge.edge import Edge
from daemon.edge.links import mqtt as links_mqtt, usb as links_usb
from daemon.edge.links.link import open_stream
from daemon.edge.supervisor import supervise
from daemon.journal.store import Journal
from daemon.logs import get
from daemon.read_model import SiteState
from daemon.virtual_clock import JumpingLoop
from drivers.driver import CommandFailed, CommandRefused, LinkLost
from protocols.contract.commands import Request, decode_command
from protocols.contract.events import decode_data
from protocols.contract.topics import Envelope
from protocols.fdl import frame as fdl
from rules import RULESETS
from rules.engine.ruleset import Resolved, Voided, options_from
from simulators.clock import Pace
from simulators.devices.compare import Account, Outcome, compare, fits, spared
from simulators.devices.device import Ailment
from simulators.devices.fdl_console import Console
from simulators.lab import demo, virtual_time as virtual_time_module
from simulators.lab.broker import find_mosquitto, free_port
from simulators.lab.pit import COMMAND_TIMEOUT_S, EDGE, KINDS, SITE, Pit, UnderWay
from simulators.lab.virtual_time import run_in_virtual_time, running_in_virtual_time
from simulators.ports.mqtt import Mqtt as MqttPort
from simulators.ports.port import MAX_UNSENT, Pty, Socket, Tcp
from simulators.tables.table import Floor, Look, Truth, open_bets, settle

# ---- accounts

HEADS, TAILS, VOID = Truth({"side": "heads"}), Truth({"side": "tails"}), Truth({}, void=True)


def out(word: str) -> Outcome:
    return Outcome("r", {}, "reason") if word == "void" else Outcome("r", {"side": word, "more": 1})


@pytest.mark.parametrize(
    ("truths", "words", "account"),
    [
        ([], "", Account()),
        ([HEADS, TAILS], "heads tails", Account(right=2)),
        ([HEADS, VOID], "heads void", Account(right=2)),
        ([HEADS, TAILS], "void tails", Account(right=1, voided=1)),
        ([HEADS, TAILS], "tails", Account(right=1, lost=1)),
        ([HEADS], "heads void", Account(right=1, extra=1)),
        ([HEADS], "", Account(lost=1)),
        ([HEADS], "tails", Account(lost=1, wrong=1)),
        ([VOID], "heads", Account(unseen=1, wrong=1)),
        ([VOID, TAILS], "void", Account(right=1, lost=1)),
        ([HEADS, TAILS], "tails heads", Account(right=1, lost=1, wrong=1)),
        ([HEADS], "heads heads", Account(right=1, wrong=1)),
        ([HEADS, TAILS, HEADS], "heads void void heads", Account(right=2, voided=1, extra=1)),
    ],
)
def test_an_account_of_what_came_out(truths: list[Truth], words: str, account: Account) -> None:
    assert compare(truths, [out(word) for word in words.split()]) == account


WORDS = st.lists(st.sampled_from(["heads", "tails", "void"]), max_size=6)


@given(WORDS, WORDS)
@settings(max_examples=at_length(50, 1_000))
def test_an_account_counts_everything_and_does_the_least_damage(happened: list[str], came: list[str]) -> None:
    truths = [VOID if word == "void" else Truth({"side": word}) for word in happened]
    account = compare(truths, [out(word) for word in came])
    assert account.right + account.voided + account.lost + account.unseen == len(truths)
    assert account.right + account.voided + account.wrong + account.extra == len(came)

    @cache
    def least(i: int, j: int) -> tuple[int, int]:
        """All alignments, one after the other."""
        if i == len(happened) and j == len(came):
            return 0, 0
        choices = []
        if i < len(happened):
            a, b = least(i + 1, j)
            choices.append((a + 1, b))
        if j < len(came):
            a, b = least(i, j + 1)
            choices.append((a, b + 1) if came[j] == "void" else (a + 2, b))
        if i < len(happened) and j < len(came) and (came[j] == "void" or came[j] == happened[i]):
            a, b = least(i + 1, j + 1)
            choices.append((a, b + (came[j] != happened[i])))
        return min(choices)

    missing = account.lost + account.unseen
    assert (2 * account.wrong + missing, account.voided + account.extra) == least(0, 0)


def at(word: str, opened: int, ended: int) -> Outcome:
    return msgspec.structs.replace(out(word), span=(opened, ended))


@pytest.mark.parametrize(
    ("truths", "outcomes", "account"),
    [
        # The first spin was given up at the console before its ball lay; the third was over before anybody saw it.
        (
            [HEADS, VOID, VOID, TAILS],
            [at("void", 0, 0), at("void", 1, 2), at("tails", 3, 4)],
            Account(right=2, voided=1, unseen=1),
        ),
        # The same the other way round: the first was not seen, and the last given up before or after its ball lay.
        ([VOID, VOID, TAILS], [at("void", 1, 2), at("void", 2, 2)], Account(right=1, voided=1, unseen=1)),
        ([VOID, TAILS], [at("void", 1, 2)], Account(voided=1, unseen=1)),
        # And a loss: each void round came out in its own time, and of a number nothing came out.
        (
            [HEADS, VOID, VOID, TAILS],
            [at("void", 1, 2), at("void", 2, 3), at("tails", 3, 4)],
            Account(right=3, lost=1),
        ),
        ([HEADS, VOID], [at("void", 1, 1)], Account(right=1, lost=1)),
        ([VOID, TAILS], [at("void", 0, 0)], Account(right=1, lost=1)),
        # Where time says nothing a loss is a loss.
        ([VOID, TAILS], [at("void", 0, 1)], Account(right=1, lost=1)),
        ([HEADS, VOID], [at("void", 0, 1)], Account(right=1, lost=1)),
        # No time makes a number another one, or a missing one heard.
        ([HEADS], [at("tails", 0, 1)], Account(lost=1, wrong=1)),
        ([HEADS, TAILS], [at("tails", 9, 9)], Account(right=1, lost=1)),
        ([HEADS], [at("heads", 7, 7), at("heads", 0, 1)], Account(right=1, wrong=1)),
    ],
)
def test_of_two_accounts_alike_that_counts_which_fits_in_time(
    truths: list[Truth], outcomes: list[Outcome], account: Account
) -> None:
    assert compare(truths, outcomes) == account


@st.composite
def well_heard(draw: st.DrawFn) -> tuple[list[Truth], list[Outcome]]:
    """A night in which each number came out, or was void in its own time; of what was void not all was seen."""
    truths: list[Truth] = []
    outcomes: list[Outcome] = []
    for n, word in enumerate(draw(st.lists(st.sampled_from(["heads", "tails", "void"]), min_size=1, max_size=30))):
        truths.append(VOID if word == "void" else Truth({"side": word}))
        came = draw(st.sampled_from(["void", "nothing"] if word == "void" else [word, word, word, "void"]))
        if came != "nothing":
            ended = draw(st.sampled_from([n, n + 1]))
            outcomes.append(at(came, draw(st.integers(max(n - 1, 0), n)), ended))
    return truths, outcomes


@given(well_heard())
@settings(max_examples=at_length(75, 1_500))
def test_in_a_night_that_was_well_heard_nothing_is_wrong(night: tuple[list[Truth], list[Outcome]]) -> None:
    truths, outcomes = night
    account = compare(truths, outcomes)
    assert account.wrong == 0
    assert account.extra == 0
    missing = len(truths) - len(outcomes)
    assert account.lost + account.unseen == missing


@given(well_heard(), st.data())
@settings(max_examples=at_length(75, 1_500))
def test_a_number_that_does_not_come_out_is_always_found(
    night: tuple[list[Truth], list[Outcome]], data: st.DataObject
) -> None:
    """Whatever else was void or not seen that night: one result more that is missing is no round that was void."""
    truths, outcomes = night
    numbered = [n for n, outcome in enumerate(outcomes) if not outcome.void]
    assume(numbered)
    del outcomes[data.draw(st.sampled_from(numbered))]
    account = compare(truths, outcomes)
    assert account.lost + account.wrong >= 1


@given(st.lists(st.sampled_from([str(n) for n in range(37)]), max_size=40), st.data())
@settings(max_examples=at_length(25, 300))
def test_a_number_that_was_never_there_is_always_wrong(pockets: list[str], data: st.DataObject) -> None:
    truths = [Truth({"pocket": pocket}) for pocket in pockets]
    outcomes = [Outcome("r", {"pocket": pocket}) for pocket in pockets if data.draw(st.booleans())]
    assert compare(truths, outcomes).wrong == 0
    outcomes.insert(data.draw(st.integers(0, len(outcomes))), Outcome("r", {"pocket": "00"}))
    assert compare(truths, outcomes).wrong == 1


# ---- time that jumps


def in_jumping_time(body: Coroutine[Any, Any, None], **options: Any) -> float:
    """Run it; the real seconds it took."""
    began = time.monotonic()
    with asyncio.Runner(loop_factory=partial(JumpingLoop, **options)) as runner:
        runner.run(body)
    return time.monotonic() - began


def test_while_something_is_under_way_time_runs_as_on_the_wall() -> None:
    busy = True

    async def body() -> None:
        nonlocal busy
        loop = asyncio.get_running_loop()
        began, real = loop.time(), time.monotonic()
        await asyncio.sleep(0.1)
        assert 0.1 <= loop.time() - began <= time.monotonic() - real + 0.05
        busy = False
        await asyncio.sleep(86400)

    assert in_jumping_time(body(), busy=lambda: busy) >= 0.1  # the day after it would exceed the limit of a test


def test_the_wall_clock_belongs_to_the_loop() -> None:
    start = datetime(2026, 11, 20, tzinfo=UTC)

    async def body() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        await asyncio.sleep(90)
        assert loop.utc() == start + timedelta(seconds=loop.time())
        assert loop.time() == pytest.approx(90)

    in_jumping_time(body(), start=start)


def test_without_a_timer_it_waits_for_the_world() -> None:
    """A thread has something to say: nothing jumps past it."""

    async def body() -> None:
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        thread = threading.Timer(0.05, loop.call_soon_threadsafe, (heard.set,))
        thread.start()
        await heard.wait()
        thread.join()

    assert in_jumping_time(body()) >= 0.04


def test_every_kind_is_a_table() -> None:
    """A device says its kind too, as a number of its wire."""
    assert [kind for kind, table in KINDS.items() if not (isinstance(kind, str) and hasattr(table, "ruleset"))] == []


@pytest.mark.parametrize("kind", ["pty", "tcp"])
def test_no_time_limit_ends_while_its_bytes_are_under_way(tmp_path: Path, kind: str) -> None:
    """A thousand answers through the kernel, each due within a millisecond of time that could jump a day."""
    port = Pty(tmp_path / "tty") if kind == "pty" else Tcp("127.0.0.1", 0)
    seen = {"read": 0, "written": 0}

    def busy() -> bool:
        return (port.sent_bytes, port.received_bytes) != (seen["read"], seen["written"])

    async def body() -> None:
        port.received = port.send
        port.plug()
        url = f"tcp://127.0.0.1:{port.port}" if isinstance(port, Tcp) else f"serial://{port.path}"
        async with open_stream(url) as link:
            late = asyncio.create_task(asyncio.sleep(86400))
            for n in range(1000):
                word = b"%05d" % n
                seen["written"] += len(word)
                await link.write(word)
                got = b""
                async with asyncio.timeout(PATIENCE):
                    while len(got) < len(word):
                        got += (await link.read()).data
                        seen["read"] = link.received_bytes
                assert got == word
            assert not late.done()
            await late
        port.unplug()

    in_jumping_time(body(), busy=busy)  # the day would exceed the limit of a test, if it did not jump


@virtual_time
async def test_a_pace_is_seconds_of_play_to_a_second() -> None:
    pace = Pace(5.0)
    await asyncio.sleep(2)
    assert pace.now() == pytest.approx(10)
    await pace.sleep(20)
    assert pace.now() == pytest.approx(30)
    assert pace.real(10) == 2


# ---- ports


@pytest.fixture(params=["pty", "tcp"])
async def port(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pty | Tcp]:
    one = Pty(tmp_path / "tty") if request.param == "pty" else Tcp("127.0.0.1", 0)
    one.plug()
    yield one
    one.unplug()


def url_of(port: Pty | Tcp) -> str:
    return f"tcp://127.0.0.1:{port.port}" if isinstance(port, Tcp) else f"serial://{port.path}"


class Ear:
    """What the device's end hears."""

    def __init__(self, port: Pty | Tcp) -> None:
        self.heard = bytearray()
        self._news = asyncio.Event()
        port.received = self._received

    def _received(self, data: bytes) -> None:
        self.heard += data
        self._news.set()

    async def until(self, words: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.heard.endswith(words):
                self._news.clear()
                await self._news.wait()


async def test_hosts_come_and_go(port: Pty | Tcp) -> None:
    ear = Ear(port)
    for n in range(3):
        word = b"host %d" % n
        async with open_stream(url_of(port)) as link:
            await link.write(word)
            await ear.until(word)
            port.send(word)
            async with asyncio.timeout(PATIENCE):
                assert (await link.read()).data == word
    assert port.received_bytes == port.sent_bytes == len(ear.heard)


async def test_plugging_twice_and_pulling_twice_change_nothing(port: Pty | Tcp) -> None:
    url = url_of(port)
    port.plug()
    assert url_of(port) == url
    port.unplug()
    port.unplug()
    port.send(b"into the air")
    assert port.sent_bytes == 0
    port.plug()
    assert url_of(port) == url
    ear = Ear(port)
    async with open_stream(url) as link:
        await link.write(b"back")
        await ear.until(b"back")


async def test_waiting_bytes_are_lost_with_the_cable(port: Pty | Tcp) -> None:
    """A device's buffer is bounded, and a new cable brings nothing of the old."""
    ear = Ear(port)
    async with open_stream(url_of(port)) as link:
        await link.write(b"?")
        await ear.until(b"?")
        assert link._transport is not None
        link._transport.pause_reading()
        while len(port._unsent) != MAX_UNSENT:
            port.send(b"x" * 4096)
        port.send(b"more")
        assert len(port._unsent) == MAX_UNSENT
        port.unplug()
        assert not port._unsent
    port.plug()
    async with open_stream(url_of(port)) as link:
        await link.write(b"!")
        await ear.until(b"!")
        port.send(b"fresh")
        async with asyncio.timeout(PATIENCE):
            assert (await link.read()).data == b"fresh"


async def test_a_pty_is_raw_and_has_its_name(tmp_path: Path) -> None:
    """Neither echo nor line ends made of others."""
    port = Pty(tmp_path / "tty")
    (tmp_path / "tty").symlink_to("left-by-a-crash")
    port.plug()
    assert port.path.readlink().is_char_device()
    fd = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    lflag = termios.tcgetattr(fd)[3]
    assert not lflag & (termios.ECHO | termios.ICANON | termios.ISIG)
    os.close(fd)
    port.unplug()
    assert not port.path.is_symlink()


async def test_a_new_host_takes_the_place_of_the_old() -> None:
    port = Tcp("127.0.0.1", 0)
    port.plug()
    ear = Ear(port)
    async with open_stream(url_of(port)) as old:
        await old.write(b"old")
        await ear.until(b"old")
        async with open_stream(url_of(port)) as new:
            await new.write(b"new")
            await ear.until(b"new")
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(LinkLost):
                    await old.read()
            port.send(b"yours")
            async with asyncio.timeout(PATIENCE):
                assert (await new.read()).data == b"yours"
    port.unplug()


async def test_a_host_that_vanishes_is_no_error_of_the_device() -> None:
    """A reset in the middle of what it says."""
    port = Tcp("127.0.0.1", 0)
    port.plug()
    ear = Ear(port)
    with socket.create_connection(("127.0.0.1", port.port)) as host:
        host.send(b"hello")
        await ear.until(b"hello")
        host.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    async with asyncio.timeout(PATIENCE):
        while port._host is not None:
            port.send(b"x" * 1000)
            await asyncio.sleep(0)
    async with open_stream(url_of(port)) as link:
        await link.write(b"next")
        await ear.until(b"next")
    port.unplug()


class Clockwork:
    """A device that says its second every ten, answers with what it hears, and stops when it is told."""

    name: ClassVar[str] = "clockwork"
    faults: ClassVar[Mapping[str, Ailment]] = {"stopped": Ailment("it stops", (), "none")}
    line: ClassVar[Mapping[str, Ailment]] = {}
    routine: ClassVar[tuple[tuple[str, float], ...]] = ()

    def __init__(self, rng: random.Random) -> None:  # noqa: ARG002
        self._next = 10.0
        self.woken: list[float] = []

    def due(self) -> float:
        return self._next

    def wake(self, now: float) -> bytes:
        self.woken.append(now)
        out = b""
        while self._next <= now:
            out += b"%d;" % self._next
            self._next += 10.0
        return out

    def hear(self, data: bytes, now: float) -> bytes:  # noqa: ARG002
        return data.upper()

    def acts(self) -> Mapping[str, Callable[[float], Any]]:
        return {}

    def inject(self, fault: str, now: float) -> None:  # noqa: ARG002
        self._next = float("inf")

    def repair(self, now: float) -> None: ...


class Wire:
    """A port in memory."""

    url = "memory:"

    def __init__(self) -> None:
        self.sent_bytes = self.received_bytes = 0
        self.received: Callable[[bytes], None] = lambda _: None
        self.sent: list[tuple[float, bytes]] = []
        self.plugged = False

    def plug(self) -> None:
        self.plugged = True

    def unplug(self) -> None:
        self.plugged = False

    def send(self, data: bytes) -> None:
        self.sent.append((asyncio.get_running_loop().time(), data))


@virtual_time
async def test_a_socket_wakes_its_device_when_it_is_due() -> None:
    device, wire = Clockwork(random.Random(1)), Wire()
    one = Socket(device, wire, Pace(2.0))
    living = asyncio.create_task(one.live())
    await asyncio.sleep(16)
    assert wire.plugged
    assert wire.sent == [(5.0, b"10;"), (10.0, b"20;"), (15.0, b"30;")]
    assert len(device.woken) == 4
    wire.received(b"hello")
    assert wire.sent[3:] == [(16.0, b"HELLO")]
    one.inject("stopped")
    await asyncio.sleep(3600)
    assert len(wire.sent) == 4
    living.cancel()
    await asyncio.wait([living])
    assert not wire.plugged


# ---- what is under way between two ends


def test_undelivered_event_does_not_stay_under_way(tmp_path: Path) -> None:
    clock = 100.0
    pit = Pit(tmp_path, 1, kinds=("cus",))
    port = Pty(tmp_path / "tty")
    pit.ports = {"cus-1/shaker-1": port}
    read = written = 0
    under_way = UnderWay(pit, lambda _: (read, written), lambda: clock)
    seen = [under_way()]
    port.sent_bytes = 10
    seen.append(under_way())  # ten bytes to the host
    read = 10
    seen.append(under_way())  # arrived
    written = 5
    seen.append(under_way())  # five bytes to the device
    clock += UnderWay.SETTLED / 2
    seen.append(under_way())
    clock += UnderWay.SETTLED
    seen.append(under_way())  # swallowed: nobody waits for them any more
    port.sent_bytes += 3
    seen.append(under_way())  # but for what comes after them
    read += 3
    seen.append(under_way())
    assert seen == [False, True, False, True, True, False, True, False]


# ---- a whole pit


@pytest.mark.parametrize(("usb", "speed"), [(False, 1.0), (True, 1.0), (False, 25.0)])
def test_a_pits_configuration_passes_its_own_check(
    tmp_path: Path, usb: bool, speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_usb, "backend", links_usb.backend)  # a pit with USB plugs its own bus in

    async def body() -> None:
        pit = Pit(tmp_path, 1, copies=2, kinds=tuple(KINDS), usb=usb, speed=speed)
        kinds = tuple(KINDS)
        pit = Pit(tmp_path, 1, copies=2, kinds=kinds, usb=usb, speed=speed)
        port = free_port()  # nobody answers there
        pit.open(Pace(), port, "5")
        path = tmp_path / "feltd.toml"
        path.write_text(pit.config(port, "5"), encoding="utf-8")
        config = load(path)
        assert device_mistakes(config, path) + ruleset_mistakes(config, path) == []
        assert [table.name for table in config.table] == [f"{kind}-{copy}" for copy in (1, 2) for kind in KINDS]
        assert {table.ruleset for table in config.table} <= {"", *RULESETS}
        wheels = [device for table in config.table for device in table.device if device.name == "wheel-1"]
        assert {device.options.get("shortest_spin", 15.0) for device in wheels} == {15.0 / speed}
        schemes = {device.url.partition(":")[0] for table in config.table for device in table.device}
        assert schemes == {"serial", "tcp", "mqtt"} | ({"usb"} if usb else set())
        for one in pit.ports.values():
            one.unplug()
        for one in pit.ports.values():
            if isinstance(one, MqttPort):
                await one.unplugged()

    asyncio.run(body())


class Intercom:
    """The dealers' session without a broker: an order goes straight to the device's post, and its end comes back."""

    def __init__(self, pit: Pit, edge: Edge) -> None:
        self._pit = pit
        self._posts = {(post.table, post.device.name): post for post in edge.sessions}
        self.ends: list[str] = []

    async def publish(self, topic: str, payload: bytes) -> None:
        words = topic.split("/")
        request = msgspec.json.decode(payload, type=Request)
        try:
            await self._posts[words[4], words[6]].obey(decode_command(words[8], request.args))
            self.ends.append("done")
        except (CommandRefused, CommandFailed) as error:
            self.ends.append(f"{topic}: {error}")
        self._pit._asked[request.id].set_result(self.ends[-1])


async def play(pit: Pit, journal: Journal, rounds: int) -> None:
    """Real ports, real drivers, the edge's journal; nobody but the test tells the dealers that the tables are lit."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    pace = Pace()
    pit.open(pace, 1, "5")
    path = pit.directory / "feltd.toml"
    path.write_text(pit.config(1, "5"), encoding="utf-8")
    config = load(path)
    edge = Edge(config, journal, now=loop.utc)
    posts = {f"{post.table}/{post.device.name}": post for post in edge.sessions}
    under_way = UnderWay(pit, lambda name: posts[name].traffic, loop.time)
    loop._busy = under_way
    site = SiteState(config.mqtt, SITE)
    site.connected = True
    for name in (EDGE, "rules"):
        site._edge(name, "availability", b"online")
    intercom = Intercom(pit, edge)
    pit._session = cast("Session", intercom)

    def opener(url: str) -> Any:
        return open_stream(url, loop.utc)

    async def lights() -> None:
        for _ in itertools.count():
            for post in edge.sessions:
                site._table(post.table).online[post.device.name] = post.online
            site.changed.set()
            await asyncio.sleep(0.5)

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(pit.live()), group.create_task(lights())]
        running += [group.create_task(supervise(post.device, post, opener, loop.utc, get())) for post in edge.sessions]
        await pit.deal(pace, rounds, site)
        await asyncio.sleep(30)
        for task in running:
            task.cancel()
    assert set(intercom.ends) <= {"done"}


def resolved(pit: Pit, journal: Journal, name: str) -> list[Outcome]:
    """What the rules make of a table's journal."""
    kind = RULESETS[pit.tables[name].ruleset]
    ruleset = kind(options_from(kind, pit.tables[name].options))
    state = ruleset.start(name)
    outcomes = []
    for row in journal.range(name, 1, 10**9):
        event = decode_data(row.type, row.data)
        seen = Envelope(
            f"e:{name}:{row.seq}", f"felt/1/demo/table/{name}/device/{row.device}", row.time, event, row.seq
        )
        state, verdicts = ruleset.apply(state, seen)
        for verdict in verdicts:
            if isinstance(verdict, Resolved | Voided):
                result = verdict.result
                facts = msgspec.json.decode(msgspec.json.encode(result.outcome))
                outcomes.append(Outcome(result.round, facts, result.void.reason.code if result.void else ""))
    return outcomes


@pytest.mark.parametrize("seed", [1, 2])
def test_every_round_of_a_pit_comes_out_as_it_was(tmp_path: Path, seed: int) -> None:
    pit = Pit(tmp_path, seed, kinds=("rou", "cus", "bac"))
    journal = Journal(tmp_path / "edge.db")
    with capture_logs() as logs:
        in_jumping_time(play(pit, journal, 12))
    assert {entry["event"] for entry in logs} == {"device.online"}
    for name, table in pit.tables.items():
        assert len(table.truth) == 4
        assert compare(table.truth, resolved(pit, journal, name)) == Account(right=4)
        assert pit.dealt()[name] == 4
    types = {row.type for row in journal.after(0, 10_000)}
    assert not types & {"events.missed", "spin.missed", "card.unreadable", "device.faulted", "device.offline"}
    journal.close()


def test_the_same_seed_plays_the_same_pit(tmp_path: Path) -> None:
    truths = []
    for n, seed in enumerate((3, 3, 4)):
        folder = tmp_path / str(n)
        folder.mkdir()
        pit = Pit(folder, seed, kinds=("cus", "bac"))
        journal = Journal(folder / "edge.db")
        with capture_logs():
            in_jumping_time(play(pit, journal, 6))
        truths.append({name: table.truth for name, table in pit.tables.items()})
        journal.close()
    assert truths[0] == truths[1] != truths[2]


@pytest.mark.skipif(find_mosquitto() is None, reason="no mosquitto on this computer")
@pytest.mark.system
def test_no_dealer_corrects_what_a_slow_display_has_yet_to_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next card is not compared with a display whose last message is still under way."""
    arrived = SiteState._arrived

    async def slowly(site: SiteState, session: Session) -> list[Message]:
        messages = await arrived(site, session)
        await asyncio.to_thread(time.sleep, 0.02)
        return messages

    monkeypatch.setattr(SiteState, "_arrived", slowly)
    monkeypatch.setattr(virtual_time_module, "DELIVERY_TIMEOUT_S", PATIENCE)  # no message is lost here
    pit = Pit(tmp_path, 1, kinds=("bac",), usb=True)

    async def body(busy: list[Callable[[], bool]]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        async with running_in_virtual_time(pit, busy) as running_pit:
            await pit.deal(running_pit.pace, 2, running_pit.site, loop.utc)

    with capture_logs():
        run_in_virtual_time(body)
    assert pit.told["bac-1"].count("card.drawn") >= 8
    assert "deal.corrected" not in pit.told["bac-1"]


@pytest.mark.parametrize("how", ["it cannot be sent", "the broker dies", "nobody answers"])
def test_an_order_that_gets_no_answer_has_failed_and_the_dealer_goes_on(tmp_path: Path, how: str) -> None:
    pit = Pit(tmp_path, 1, kinds=("cus",), speed=10.0)
    sent = asyncio.Event()

    class Line:
        async def publish(self, _topic: str, _payload: bytes) -> None:
            if how == "it cannot be sent":
                raise BrokerLost("gone")
            sent.set()

        async def subscribe(self, *_topics: str) -> None: ...

        async def messages(self) -> list[Message]:
            await sent.wait()
            if how == "the broker dies":
                raise BrokerLost("gone")
            await asyncio.sleep(float("inf"))
            raise AssertionError

    async def once(
        _mqtt: Any, _name: str, _will: Any, serve: Callable[[Any], Coroutine[Any, Any, None]], *_: Any
    ) -> None:
        with contextlib.suppress(BrokerLost):
            await serve(Line())

    async def body() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        serving = asyncio.create_task(pit.serve(Mqtt()))
        await asyncio.sleep(0)
        assert await pit._tell("cus-1", Pace(10.0), loop.utc, "lamps-1", "light", {"lamps": []}) == "failed"
        assert loop.time() == pytest.approx(COMMAND_TIMEOUT_S + 3.0 if how == "nobody answers" else 0.0, abs=0.1)
        assert not pit._asked
        serving.cancel()
        await asyncio.wait([serving])
        assert await pit._tell("cus-1", Pace(10.0), loop.utc, "lamps-1", "light", {"lamps": []}) == "failed"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simulators.lab.pit.stay_connected", once)
        in_jumping_time(body())


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_device_behind_an_old_broker_is_reached_by_its_url(version: str) -> None:
    """The embedded broker speaks MQTT 3.1.1 only: a link that tried 5 would never be let in."""
    port = MqttPort("127.0.0.1", 1, "listens", "says", version=version)
    assert links_mqtt._Target(port.url).settings.version == version


@pytest.mark.parametrize(
    ("dark", "late", "counts"),
    [(0.0, 0.0, True), (0.0, 5.0, True), (60.0, 5.0, True), (60.0, 7.0, False), (0.0, 7.0, False)],
)
@virtual_time
async def test_no_dealer_voids_a_round_whose_end_the_display_could_not_show(
    dark: float, late: float, counts: bool
) -> None:
    """Broker or rules were away: he waits until it is lit again, and the time a person gives it begins then."""
    loop = asyncio.get_running_loop()
    pace = Pace(25.0)  # hands are fast here, processes are not
    console = Console(random.Random(1))
    pressed: list[str] = []

    async def ready() -> bool:
        wait = max(dark - loop.time(), 0.0)
        await asyncio.sleep(wait)
        return wait > 0

    def look() -> Look:
        return Look("resolved" if loop.time() >= dark + late + 0.2 else "dealing")

    floor = Floor({}, pace, ready, look, cast("Any", None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Floor, "press", lambda _self, _console, key, _reason=0: pressed.append(key))
        assert await settle(floor, console, random.Random(1)) is counts
    assert pressed == ([] if counts else ["void"])


async def test_a_dealer_whose_clock_is_that_of_the_wall_voids_a_round_that_waits() -> None:
    """Time goes by while he looks at a lit table, too: he took that for a dark one, and waited for ever."""
    console = Console(random.Random(1))
    pressed: list[str] = []

    async def ready() -> bool:
        return False

    floor = Floor({}, Pace(100.0), ready, lambda: Look("suspended" if not pressed else "idle"), cast("Any", None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Floor, "press", lambda _self, _console, key, _reason=0: pressed.append(key))
        patch.setattr("simulators.tables.table.DISPLAY_TIMEOUT_S", 0.05)
        async with asyncio.timeout(PATIENCE):
            assert not await settle(floor, console, random.Random(1))
    assert pressed == ["void"]


@virtual_time
async def test_dealer_does_not_take_an_outdated_screen_for_the_end_of_a_round() -> None:
    """The screen of the round before, from a broker with an old memory: he paid a round that was suspended."""
    console = Console(random.Random(1))
    pressed: list[str] = []

    async def ready() -> bool:
        return False

    outdated = Look("paying", "t:1", ended={"t:1": True})
    voided = Look("void", "t:2", ended={"t:1": True, "t:2": False})
    floor = Floor({}, Pace(), ready, lambda: voided if pressed else outdated, cast("Any", None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Floor, "press", lambda _self, _console, key, _reason=0: pressed.append(key))
        assert not await settle(floor, console, random.Random(1), "t:2")
    assert pressed == ["void"]


@virtual_time
async def test_dealer_does_not_take_the_round_before_for_his_own() -> None:
    """It was void, which he heard while he dealt the next one: that one he took for void, and its result for wrong."""
    console = Console(random.Random(1))
    screen = Look("suspended", "t:1")

    async def ready() -> bool:
        return False

    floor = Floor({}, Pace(), ready, lambda: screen, cast("Any", None))
    assert floor.claim() == "t:1"
    mine = floor.claim()  # the screen is outdated: he deals the second round
    screen = Look("paying", "t:2", ended={"t:1": False, "t:2": True})
    assert await settle(floor, console, random.Random(1), mine)


@pytest.mark.parametrize(("phases", "presses"), [(["covered"], 1), (["paying", "paying", "betting"], 3)])
@virtual_time
async def test_opened_bets_are_seen_as_open(phases: list[str], presses: int) -> None:
    """An old screen showed the round before; it was taken for his, and its end for the end of his: life 22112."""
    console = Console(random.Random(1))
    pressed: list[str] = []

    async def ready() -> bool:
        return False

    floor = Floor({}, Pace(), ready, lambda: Look(phases[len(pressed) - 1]), cast("Any", None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Floor, "press", lambda _self, _console, key, _reason=0: pressed.append(key))
        await open_bets(floor, console)
    assert pressed == ["bets_opened"] * presses


def test_a_pits_account_is_of_the_rounds_asked_for(tmp_path: Path) -> None:
    pit = Pit(tmp_path, 1, kinds=("cus",))
    pit.tables["cus-1"].truth[:] = [Truth({"faces": [1, 2, 3]}), Truth({}, void=True), Truth({"faces": [4, 5, 6]})]
    pit.heard("cus-1", "resolved", result_of({"round": "1", "outcome": {"faces": [1, 2, 9]}, "void": None}))
    pit.heard(
        "cus-1",
        "voided",
        result_of({"round": "2", "outcome": {}, "void": {"reason": {"code": "leaning"}, "bets": "returned"}}),
    )
    assert pit.accounts({"cus-1": 2}) == {"cus-1": Account(right=1, lost=1, wrong=1)}
    pit.heard("cus-1", "corrected", result_of({"round": "1", "outcome": {"faces": [1, 2, 3]}, "void": None}))
    pit.heard("elsewhere", "resolved", result_of({"round": "1", "outcome": {}, "void": None}))
    assert pit.accounts({"cus-1": 2}) == {"cus-1": Account(right=2)}
    assert pit.accounts(pit.dealt()) == {"cus-1": Account(right=2, lost=1)}


def test_a_round_that_was_void_because_its_dealer_was_sent_away_is_no_result(tmp_path: Path) -> None:
    """A live demo was interrupted in its second second: nothing was dealt, and one round was void."""
    pit = Pit(tmp_path, 1, kinds=("cus",))
    pit.heard(
        "cus-1",
        "voided",
        result_of({"round": "1", "outcome": {}, "void": {"reason": {"code": "leaning"}, "bets": "returned"}}),
    )
    assert pit.accounts(pit.dealt(), cut_short=True) == {"cus-1": Account()}
    assert pit.accounts(pit.dealt()) == {"cus-1": Account(extra=1)}


def test_wheels_that_spin_on_without_a_dealer_are_no_wrong_results() -> None:
    """While a late result is waited for, such wheels have further ones. A result before the last truth still counts."""
    spun = [out("heads"), out("tails"), out("tails")]
    assert compare([HEADS], spun, cut_short=True) == Account(right=1)
    assert compare([HEADS], spun) == Account(right=1, wrong=2)
    assert compare([HEADS, HEADS], [out("heads"), out("tails"), out("heads")], cut_short=True) == Account(
        right=2, wrong=1
    )
    assert compare([HEADS, TAILS], [out("heads")], cut_short=True) == Account(right=1, lost=1)


def test_a_pit_knows_when_a_round_opened_and_ended(tmp_path: Path) -> None:
    """By how many rounds had truly ended: the spin that was given up early is the one that was under way."""
    pit = Pit(tmp_path, 1, kinds=("cus",))
    truth = pit.tables["cus-1"].truth
    void: dict[str, Any] = {"outcome": {}, "void": {"reason": {"code": "equipment_fault"}, "bets": "returned"}}
    pit.opened("cus-1", "1")
    pit.heard("cus-1", "voided", result_of({"round": "1", **void}))
    truth += [Truth({"faces": [1, 2, 3]})]
    pit.opened("cus-1", "2")
    truth += [Truth({}, void=True)]
    pit.heard("cus-1", "voided", result_of({"round": "2", **void}))
    pit.heard("cus-1", "voided", result_of({"round": "3", **void}))
    pit.opened("elsewhere", "1")
    assert [outcome.span for outcome in pit.outcomes["cus-1"]] == [(0, 0), (1, 2), (0, 2)]
    truth += [Truth({}, void=True)]
    del pit.outcomes["cus-1"][2]
    assert pit.accounts(pit.dealt()) == {"cus-1": Account(right=1, voided=1, unseen=1)}


@pytest.mark.parametrize(("late_s", "lost"), [(50.0, 0), (70.0, 1)])
@virtual_time
async def test_a_result_that_would_be_missing_is_waited_for(tmp_path: Path, late_s: float, lost: int) -> None:
    """An interrupted demo on a busy computer said that a result was lost that came two seconds later."""
    loop = asyncio.get_running_loop()
    pit, site = Pit(tmp_path, 1, kinds=("cus",)), SiteState(Mqtt(), SITE)
    pit.tables["cus-1"].truth[:] = [Truth({"faces": [1, 2, 3]})]
    result = result_of({"round": "1", "outcome": {"faces": [1, 2, 3]}, "void": None})
    late = loop.call_later(late_s, pit.heard, "cus-1", "resolved", result)

    def is_lost() -> bool:
        return any(one.lost for one in pit.accounts(pit.dealt()).values())

    await virtual_time_module.wait_for_results(pit, site, pit.dealt(), 1.0, is_lost)
    assert pit.accounts(pit.dealt())["cus-1"].lost == lost
    late.cancel()


@pytest.mark.parametrize("rounds", [1, 2])
@virtual_time
async def test_wheels_that_spin_on_hold_up_no_end(tmp_path: Path, rounds: int) -> None:
    """A result is lost, and others come for ever: the demo ended no more."""
    loop = asyncio.get_running_loop()
    pit, site = Pit(tmp_path, 1, kinds=("cus",)), SiteState(Mqtt(), SITE)
    pit.tables["cus-1"].truth[:] = [Truth({"faces": [1, 2, 3]})] * rounds

    async def spin_on() -> None:
        while True:
            await asyncio.sleep(10.0)
            outcome = {"round": str(loop.time()), "outcome": {"faces": [6, 6, 6]}, "void": None}
            pit.heard("cus-1", "resolved", result_of(outcome))

    spinning = loop.create_task(spin_on())
    async with asyncio.timeout(200):
        await virtual_time_module.wait_for_results(pit, site, pit.dealt(), 1.0, lambda: True)
    spinning.cancel()
    await asyncio.wait([spinning])


# ---- the picture


@virtual_time
async def test_edge_unknown_to_a_new_broker_is_absent() -> None:
    """It was killed and forgot what it kept: until somebody says so again, nobody is online."""
    site = SiteState(Mqtt(), SITE)
    edge, device = f"felt/1/{SITE}/edge/{EDGE}/availability", f"felt/1/{SITE}/table/t/device/d/availability"
    said = [[Message(edge, b"online"), Message(device, b"online")], [], [Message(edge, b"online")]]
    seen = []
    for words in said:

        class Once:
            def __init__(self, messages: list[Message]) -> None:
                self._messages = messages

            async def subscribe(self, *_topics: str) -> None: ...

            async def messages(self) -> list[Message]:
                if not self._messages:
                    seen.append((site.is_online(EDGE), site.tables["t"].online.get("d", False)))
                    raise BrokerLost("gone")
                return [self._messages.pop(0)]

        with contextlib.suppress(BrokerLost):
            await site._serve(cast("Session", Once(words)))
        assert (site.is_online(EDGE), site.tables["t"].online, site.connected) == (False, {}, False)
    assert seen == [(True, True), (False, False), (True, False)]


TOPICS = [
    f"felt/1/demo/{rest}"
    for rest in (
        "edge/e/availability",
        "table/t/device/d/availability",
        "table/t/device/d/event/ball.landed",
        "table/t/round/state",
        "table/t/round/event/resolved",
        "table/t/round/event/voided",
        "table/t/alert/a",
        "table/t/what/ever",
    )
]
GOOD_WIRE = b'{"specversion":"1.0","id":"i","source":"s","type":"resolved","time":"2026-01-01T00:00:00Z","data":%s}'
PAYLOADS = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            b"{}",
            b"null",
            b'{"phase":1}',
            b'{"phase":"\xff","round":""}',
            b'{"code":"\xff","text":"","remedy":""}',
            b"[" * 100_000 + b"]" * 100_000,
            *(GOOD_WIRE % data for data in (b"{}", b"1", b'{"result":1}', b'{"result":{"x":"\xff"}}', b'{"\xff":1}')),
        ]
    ),
)


@given(st.lists(st.tuples(st.sampled_from(TOPICS), PAYLOADS), max_size=10))
@settings(max_examples=at_length(40, 750))
def test_site_state_survives_any_message(them: list[tuple[str, bytes]]) -> None:
    site = SiteState(Mqtt(), SITE)
    for topic, payload in them:
        site._look(Message(topic, payload))
    site._look(Message("felt/1/demo/table/t/round/state", b'{"round":"t:1","phase":"betting","detail":{}}'))
    result = GOOD_WIRE.replace(b'"data"', b'"seq":1,"data"') % b'{"result":{"round":"t:1"}}'
    for _ in range(2):
        site._look(Message("felt/1/demo/table/t/round/event/resolved", result))
    view = site.tables["t"]
    assert (view.phase, view.round) == ("betting", "t:1")
    assert view.resolved == 1  # said twice, counted once


@virtual_time
async def test_a_device_at_many_times_its_speed_tells_its_ages_in_the_seconds_of_the_host(tmp_path: Path) -> None:
    """Else a host that is busy for a moment is told of events long past, overtaken by all that has no age."""
    pit = Pit(tmp_path, 1, kinds=("cus",), speed=40.0)
    pace = Pace(40.0)
    pit.open(pace, 1883, "5")
    console = pit.tables["cus-1"].devices["console-1"]
    assert isinstance(console, Console)
    frames = fdl.Decoder()
    [who] = said(frames, console.hear(fdl.encode(fdl.Hello(0, 0), 1), pace.now()))
    assert isinstance(who, fdl.Identity)
    console.hear(fdl.encode(fdl.Hello(who.epoch, who.next - 1), 2), pace.now())
    console.press("bell", pace.now())
    await asyncio.sleep(2.0)
    told = said(frames, console.wake(pace.now()))
    assert [one.age for one in told if isinstance(one, fdl.EventReport)] == [2000]
    for port in pit.ports.values():
        port.unplug()


def said(frames: fdl.Decoder, sent: bytes) -> list[Any]:
    return [fdl.read(one) for one in frames.feed(sent) if isinstance(one, fdl.Frame)]


def test_a_void_round_that_nobody_saw_and_a_void_result_are_taken_for_each_other() -> None:
    """A spin missed, which is void, and one cut short while nobody was there: which of them came out nobody can say."""
    truths = [Truth({"pocket": "1"}), Truth({"pocket": "2"}), Truth({}, void=True)]
    outcomes = [Outcome("r:1", {"pocket": "1"}, ""), Outcome("r:2", {}, "spin_missed")]
    assert spared(compare(truths, outcomes), outcomes).lost == 0
    # Of two, one had a number, and nothing came of it.
    assert spared(compare(truths, outcomes[:1]), outcomes[:1]).lost == 1
    assert spared(compare(truths[:2], outcomes[:1]), outcomes[:1]).lost == 1


def test_two_demos_that_start_together_take_two_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither listens yet when the other looks."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        free = one.getsockname()[1]
    monkeypatch.setattr(demo, "PORT", free)
    first, second = demo._console_port(), demo._console_port()
    assert first == free
    assert second != free


@pytest.mark.parametrize(
    ("told", "same"),
    [
        ((3, 0, "any_pair", 350, 350), True),  # it went back: no main bet lay there
        ((3, 0, "any_pair", 350, 0), False),
        ((7, 0, "any_pair", 350, 350), False),  # beside a main bet a table counts it
    ],
)
def test_a_side_bet_that_went_back_alone_is_not_counted_by_a_table(
    told: tuple[int, int, str, int, int], same: bool
) -> None:
    main = (7, 1, "main", 1500, 750)
    truth = Truth({"hands": {}}, settled=(main,))
    assert fits(truth, Outcome("r", {"hands": {}}, settled=(told, main))) is same


def test_a_bet_that_went_back_counts_where_the_game_has_no_main_bet() -> None:
    back = (1, 0, "fan:2", 100, 100)
    assert fits(Truth({"count": 8}, settled=(back,)), Outcome("r", {"count": 8}, settled=(back,)))
