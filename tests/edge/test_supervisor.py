"""The supervisor in virtual time: it comes back by itself, says each thing once, and no driver takes another along."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest
import structlog
from helpers import PATIENCE, MemoryLink, at_length, virtual_time
from hypothesis import given, settings, strategies as st
from structlog.testing import capture_logs

from daemon.broker import session as mqtt
from daemon.config.model import Device, parse
from daemon.edge.edge import Edge
from daemon.edge.links.link import HostLink, open_link
from daemon.edge.supervisor import (
    AFTER_BUG_MOST,
    BUG,
    GOOD_SESSION,
    REFUSED,
    SLOWLY,
    SOON,
    SOON_MOST,
    SupervisedDevice,
    supervise,
)
from daemon.journal.store import BadJournal, Journal
from drivers import DRIVERS
from drivers.driver import DeviceRefused, Driver, Emit, Evidence, Link, LinkLost, Sighting
from protocols.contract.events import (
    DeviceFaulted,
    DeviceOffline,
    DeviceOnline,
    DeviceRecovered,
    Event,
    WheelStarted,
    WheelStopped,
    type_of,
)

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
Session = Callable[[Link, Emit], Awaitable[None]]


class ActorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the actor may be told."""

    greeting: str = "hello"


class Actor:
    """A driver that does what the test says, one session after the other."""

    name: ClassVar[str] = "actor"
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual",)
    Options: ClassVar[type[ActorOptions]] = ActorOptions
    tells_cards: ClassVar[bool] = False
    sessions: ClassVar[list[Session]] = []
    memories: ClassVar[list[bytes | None]] = []

    def __init__(self, options: ActorOptions, memory: bytes | None = None) -> None:
        self.options = options
        self.memories.append(memory)

    async def run(self, link: Link, emit: Emit) -> None:
        session = self.sessions.pop(0) if self.sessions else stay()
        await session(link, emit)


class Understudy(Actor):
    """Another driver, for the device that took the place."""

    name: ClassVar[str] = "understudy"
    sessions: ClassVar[list[Session]] = []
    memories: ClassVar[list[bytes | None]] = []


@pytest.fixture(autouse=True)
def actor(monkeypatch: pytest.MonkeyPatch) -> type[Actor]:
    for kind in (Actor, Understudy):
        monkeypatch.setitem(DRIVERS, kind.name, kind)
        kind.sessions, kind.memories = [], []
    return Actor


def saw(link: Link, *events: Event) -> list[Sighting]:
    return [Sighting(event, b"", link.stamp()) for event in events]


def session(end: Exception | None, *, online: bool = True, lasts: float = 0.0) -> Session:
    """A session that comes online, or not, and ends by `end` after `lasts` seconds."""

    async def run(link: Link, emit: Emit) -> None:
        if online:
            await emit(saw(link, DeviceOnline(True, "model")))
        await asyncio.sleep(lasts)
        if end is not None:
            raise end

    return run


def stay() -> Session:
    return session(None, lasts=float("inf"))


class Place:
    """A device's post that keeps its events in memory, each with the second in which it came."""

    def __init__(self) -> None:
        self.told: list[tuple[float, Event]] = []
        self.online = False
        self.faults: set[str] = set()
        self.links: list[HostLink | None] = []
        self.drivers: list[Driver | None] = []
        self.kept: bytes | None = None
        self.emit_fails: Exception | None = None
        self.on_online: Callable[[Sighting, int], Awaitable[None]] | None = None

    async def emit(self, sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        if self.emit_fails is not None:
            raise self.emit_fails
        self.kept = memory if memory is not None else self.kept
        for one in sightings:
            self.told.append((asyncio.get_running_loop().time(), one.event))
            match one.event:
                case DeviceOnline():
                    self.online = True
                case DeviceOffline():
                    self.online = False
                case DeviceFaulted(code=code):
                    self.faults.add(code)
                case DeviceRecovered(code=code):
                    self.faults.remove(code)
                case _:
                    pass
        for one in sightings:
            if self.on_online is not None and isinstance(one.event, DeviceOnline):
                await self.on_online(one, sightings[-1].behind)

    def memory(self) -> bytes | None:
        return self.kept

    def has_fault(self, code: str) -> bool:
        return code in self.faults

    def linked(self, link: HostLink | None) -> None:
        self.links.append(link)

    def driven(self, driver: Driver | None) -> None:
        self.drivers.append(driver)

    @property
    def post(self) -> SupervisedDevice:
        return self

    @property
    def types(self) -> list[str]:
        return [type_of(event) for _, event in self.told]


class CountedLink(MemoryLink):
    """Counts as a real one does."""

    received_bytes = sent_bytes = 0
    tap = None


class Cable:
    """An opener: what it raises, or a link in memory. It knows when it was tried, and what is open."""

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self.raises: list[Exception | None] = []
        self.tried: list[float] = []
        self.links: list[MemoryLink] = []
        self.open = 0

    @contextlib.asynccontextmanager
    async def __call__(self, url: str) -> AsyncIterator[HostLink]:
        assert url == self.url
        self.tried.append(asyncio.get_running_loop().time())
        error = self.raises.pop(0) if self.raises else None
        if error is not None:
            raise error
        link = CountedLink()
        self.links.append(link)
        self.open += 1
        try:
            yield cast("HostLink", link)
        finally:
            self.open -= 1

    @property
    def waits(self) -> list[float]:
        """Seconds between the attempts."""
        return [round(b - a, 6) for a, b in zip(self.tried, self.tried[1:], strict=False)]


def now() -> datetime:
    return NOON + timedelta(seconds=asyncio.get_running_loop().time())


def supervised(place: Place, cable: Cable, driver: str = "actor", **options: Any) -> asyncio.Task[None]:
    device = Device(name="d-1", driver=driver, url="memory:", options=options)
    return asyncio.create_task(supervise(device, place.post, cable, now, structlog.get_logger()))


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def said(logs: Sequence[Any]) -> list[str]:
    return [entry["event"] for entry in logs]


# ---- lost and back


@virtual_time
async def test_a_device_that_stays_is_logged_once(actor: type[Actor]) -> None:
    place, cable = Place(), Cable()
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(86400)
        await cancelled(task)
    assert said(logs) == ["device.online"]
    assert place.types == ["device.online"]
    assert cable.tried == [0.0]


@virtual_time
async def test_lost_and_back_is_logged_once_each(actor: type[Actor]) -> None:
    actor.sessions = [session(LinkLost("hung up"), lasts=100)]
    place, cable = Place(), Cable()
    cable.raises = [None, *[LinkLost("not there")] * 50]
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(3600)
        await cancelled(task)
    assert said(logs) == ["device.online", "device.lost", "device.back"]
    assert logs[1] == {"event": "device.lost", "log_level": "warning", "reason": "hung up", "url": "memory:"}
    assert logs[2]["log_level"] == "info"
    assert [event for _, event in place.told] == [
        DeviceOnline(True, "model"),
        DeviceOffline("hung up"),
        DeviceOnline(True, "model"),
    ]


@virtual_time
async def test_a_device_never_seen_is_logged_once_and_tells_nothing(actor: type[Actor]) -> None:
    place, cable = Place(), Cable()
    cable.raises = [LinkLost("not there")] * 1000
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(1800)
        await cancelled(task)
    assert said(logs) == ["device.lost"]
    assert place.told == []


@virtual_time
async def test_an_open_port_is_not_yet_a_device_that_is_back(actor: type[Actor]) -> None:
    """A serial server answers while the wheel behind it is dark."""
    actor.sessions = [session(LinkLost("silent"), online=False, lasts=3)] * 50
    place, cable = Place(), Cable()
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(120)
        await cancelled(task)
    assert said(logs) == ["device.lost"]
    assert place.told == []


@virtual_time
async def test_a_real_driver_in_front_of_a_silent_wheel(actor: type[Actor]) -> None:
    place, cable = Place(), Cable()
    with capture_logs() as logs:
        task = supervised(place, cable, "cammegh_ss2", silence=2.0)
        await asyncio.sleep(600)
        await cancelled(task)
    assert said(logs) == ["device.lost"]
    assert logs[0]["reason"] == "no valid line for 2 s"
    assert len(cable.tried) > 50
    assert all(link.sent for link in cable.links)


@virtual_time
async def test_events_carry_the_wall_clock(actor: type[Actor]) -> None:
    actor.sessions = [session(LinkLost("x"), lasts=5)]
    kept: list[Sighting] = []
    place, cable = Place(), Cable()
    emit = place.emit

    async def watched(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        kept.extend(sightings)
        await emit(sightings, memory)

    place.emit = watched  # type: ignore[method-assign]
    task = supervised(place, cable)
    await asyncio.sleep(5.1)
    await cancelled(task)
    assert kept[1].event == DeviceOffline("x")
    assert (kept[1].chunk.at, kept[1].chunk.tick) == (NOON + timedelta(seconds=5), 5.0)


# ---- how soon again


@virtual_time
async def test_waits_grow_and_stay_bounded(actor: type[Actor]) -> None:
    place, cable = Place(), Cable()
    cable.raises = [LinkLost("not there")] * 12
    task = supervised(place, cable)
    await asyncio.sleep(60)
    await cancelled(task)
    assert cable.waits == [0.25, 0.5, 1.0, 2.0, 4.0, *[SOON_MOST] * 7]


@virtual_time
async def test_after_a_good_session_the_first_wait_is_short_again(actor: type[Actor]) -> None:
    good = GOOD_SESSION + 1
    actor.sessions = [session(LinkLost("x"), lasts=good)]
    place, cable = Place(), Cable()
    cable.raises = [*[LinkLost("not there")] * 8, None, LinkLost("not there")]
    task = supervised(place, cable)
    await asyncio.sleep(120)
    await cancelled(task)
    assert cable.waits[7:] == [SOON_MOST, good + SOON, 2 * SOON]


@virtual_time
async def test_short_sessions_do_not_make_it_hurry(actor: type[Actor]) -> None:
    """A device that comes and goes is not tried a hundred times a second."""
    actor.sessions = [session(LinkLost("x"), lasts=1)] * 100
    place, cable = Place(), Cable()
    task = supervised(place, cable)
    await asyncio.sleep(60)
    await cancelled(task)
    assert cable.waits[:7] == [1.25, 1.5, 2.0, 3.0, 5.0, 6.0, 6.0]


# ---- refused


@virtual_time
async def test_a_device_that_refuses_is_tried_slowly_and_says_why(actor: type[Actor]) -> None:
    actor.sessions = [
        session(LinkLost("x"), lasts=20),
        *[session(DeviceRefused("locked by its key"), online=False)] * 3,
    ]
    place, cable = Place(), Cable()
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(300)
        await cancelled(task)
    assert cable.waits == [20 + SOON, SLOWLY, SLOWLY, SLOWLY]
    assert place.types == ["device.online", "device.offline", "device.faulted", "device.online", "device.recovered"]
    fault = place.told[2][1]
    assert isinstance(fault, DeviceFaulted)
    assert (fault.code, fault.text, fault.severity) == (REFUSED, "locked by its key", "error")
    assert fault.remedy
    assert place.told[4][1] == DeviceRecovered(REFUSED)
    assert said(logs) == ["device.online", "device.lost", "device.back"]


@virtual_time
async def test_refused_while_online_is_offline_then_the_fault(actor: type[Actor]) -> None:
    actor.sessions = [session(DeviceRefused("setting changed"), lasts=20)]
    place, cable = Place(), Cable()
    task = supervised(place, cable)
    await asyncio.sleep(21)
    await cancelled(task)
    assert place.types == ["device.online", "device.offline", "device.faulted"]


@virtual_time
async def test_the_end_of_a_refusal_does_not_say_that_nothing_is_behind(actor: type[Actor]) -> None:
    """It is told between the device's first word and its past, for which the others wait."""

    async def past(link: Link, emit: Emit) -> None:
        await emit([Sighting(DeviceOnline(True), b"", link.stamp(), behind=2)])
        await asyncio.sleep(float("inf"))

    actor.sessions = [session(DeviceRefused("no group"), online=False), past]
    place, cable = Place(), Cable()
    behind: dict[str, int] = {}
    emit = place.emit

    async def watched(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        behind.update({type_of(one.event): one.behind for one in sightings})
        await emit(sightings, memory)

    place.emit = watched  # type: ignore[method-assign]
    task = supervised(place, cable)
    await asyncio.sleep(SLOWLY + 1)
    await cancelled(task)
    assert behind == {"device.faulted": 0, "device.online": 2, "device.recovered": 2}


# ---- bugs


@virtual_time
async def test_a_bug_has_a_traceback_a_fault_and_another_try(actor: type[Actor]) -> None:
    actor.sessions = [session(ZeroDivisionError("in a driver"), lasts=1)] * 3
    place, cable = Place(), Cable()
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(100)
        await cancelled(task)
    bugs = [entry for entry in logs if entry["event"] == "driver.bug"]
    assert len(bugs) == 3
    assert all(entry["log_level"] == "error" and entry["exc_info"] and entry["driver"] == "actor" for entry in bugs)
    assert cable.waits == [2.0, 3.0, 5.0]
    fault = next(event for _, event in place.told if isinstance(event, DeviceFaulted))
    assert (fault.code, fault.severity) == (BUG, "error")
    assert fault.text == "the driver failed: ZeroDivisionError: in a driver"
    assert place.types == [
        *("device.online", "device.offline", "device.faulted"),
        *("device.online", "device.recovered", "device.offline", "device.faulted") * 2,
        *("device.online", "device.recovered"),
    ]


@virtual_time
async def test_a_driver_that_simply_ends_is_a_bug(actor: type[Actor]) -> None:
    actor.sessions = [session(None)] * 9
    place, cable = Place(), Cable()
    with capture_logs() as logs:
        task = supervised(place, cable)
        await asyncio.sleep(1000)
        await cancelled(task)
    assert cable.waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[AFTER_BUG_MOST] * 3]
    assert said(logs).count("driver.bug") == 9
    assert place.types[:3] == ["device.online", "device.offline", "device.faulted"]


@virtual_time
async def test_the_others_keep_running(actor: type[Actor]) -> None:
    """One driver fails all night; the one beside it does not notice."""
    ticks = 0

    async def works(link: Link, emit: Emit) -> None:
        nonlocal ticks
        await emit(saw(link, DeviceOnline(True)))
        while True:
            await asyncio.sleep(1)
            await emit(saw(link, WheelStarted()))
            ticks += 1

    actor.sessions = [works]
    good, bad = Place(), Place()
    cables = [Cable(), Cable()]
    cables[1].raises = [ValueError("a bug in an opener")] * 10_000
    with capture_logs() as logs:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    supervise(
                        Device(name="d", driver="actor", url="memory:"), place.post, cable, now, structlog.get_logger()
                    )
                )
                for place, cable in zip((good, bad), cables, strict=True)
            ]
            await asyncio.sleep(3600.5)
            for task in tasks:
                task.cancel()
    assert ticks == 3600
    assert good.types.count("wheel.started") == 3600
    assert bad.types == ["device.faulted"]
    assert said(logs).count("driver.bug") == len(cables[1].tried) > 50


@virtual_time
async def test_a_journal_that_fails_is_no_bug_of_the_driver_and_ends_the_process(actor: type[Actor]) -> None:
    place, cable = Place(), Cable()
    place.emit_fails = BadJournal("journal.db: disk full")
    with capture_logs() as logs, pytest.raises(BadJournal, match="disk full"):
        await supervised(place, cable)
    assert said(logs) == []
    assert cable.open == 0


# ---- sessions


@virtual_time
async def test_each_session_has_its_own_driver_and_the_memory_of_the_last(actor: type[Actor]) -> None:
    async def remembers(link: Link, emit: Emit) -> None:
        await emit(saw(link, DeviceOnline(True)), b"one")
        await emit([], b"two")
        raise LinkLost("x")

    actor.sessions = [session(LinkLost("x")), remembers, session(LinkLost("x"))]
    place, cable = Place(), Cable()
    task = supervised(place, cable)
    await asyncio.sleep(60)
    await cancelled(task)
    assert actor.memories == [None, None, b"two", b"two"]
    assert place.links == [cast("HostLink | None", link) for one in cable.links for link in (one, None)]
    assert [driver is None for driver in place.drivers] == [False, True] * len(cable.links)  # who may take commands
    assert cable.open == 0


@virtual_time
async def test_a_cancelled_supervisor_ends_wherever_it_is(actor: type[Actor]) -> None:
    """While it opens, speaks, writes to the journal, or waits; the link is closed and nothing is told afterwards."""
    hold = asyncio.Event()

    @contextlib.asynccontextmanager
    async def slow(url: str) -> AsyncIterator[HostLink]:
        await hold.wait()
        yield cast("HostLink", MemoryLink())

    place = Place()
    device = Device(name="d-1", driver="actor", url="memory:")
    task = asyncio.create_task(supervise(device, place.post, slow, now, structlog.get_logger()))
    await asyncio.sleep(1)
    await cancelled(task)
    assert (place.told, place.links) == ([], [None])

    place, cable = Place(), Cable()  # while the driver listens
    task = supervised(place, cable)
    await asyncio.sleep(1)
    assert cable.open == 1
    await cancelled(task)
    assert (place.types, cable.open, place.links[-1]) == (["device.online"], 0, None)

    async def stuck(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        await hold.wait()

    place, cable = Place(), Cable()
    place.emit = stuck  # type: ignore[method-assign]
    task = supervised(place, cable)
    await asyncio.sleep(1)
    await cancelled(task)
    assert cable.open == 0

    place, cable = Place(), Cable()  # while it waits for the next try
    cable.raises = [DeviceRefused("no")] * 9
    task = supervised(place, cable)
    await asyncio.sleep(1)
    await cancelled(task)
    assert len(cable.tried) == 1


@pytest.mark.parametrize("turns", range(9))
async def test_a_cancellation_that_meets_a_lost_link_being_closed_ends_the_supervisor(
    actor: type[Actor], turns: int
) -> None:
    """`wait_for` of Python 3.11 may swallow it; the device would be read for ever, and the process never end."""
    lost = asyncio.Event()

    async def until_lost(link: Link, _: Emit) -> None:
        try:
            await link.read()
        finally:
            lost.set()

    actor.sessions = [until_lost]
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        device = Device(name="d-1", driver="actor", url=f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        task = asyncio.create_task(supervise(device, Place().post, open_link, now, structlog.get_logger()))
        await lost.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        ended = task in done
        task.cancel()
        await asyncio.wait([task])
    assert ended


ENDS: dict[str, Callable[[], Exception]] = {
    "lost": lambda: LinkLost("lost"),
    "refused": lambda: DeviceRefused("refused"),
    "bug": lambda: ValueError("bug"),
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["open", *ENDS]),  # how opening goes
            st.sampled_from(sorted(ENDS)),
            st.booleans(),
            st.sampled_from([0.0, 1.0, 20.0]),
        ),
        max_size=12,
    )
)
@settings(max_examples=at_length(25, 300))
def test_any_sequence_of_sessions_reports_each_fault_once(steps: list[tuple[str, str, bool, float]]) -> None:
    """Online and offline alternate, so do a fault and its end, so do lost and back in the log."""

    @virtual_time
    async def body() -> None:
        place, cable = Place(), Cable()
        cable.raises = [None if opening == "open" else ENDS[opening]() for opening, *_ in steps]
        Actor.sessions = [
            session(ENDS[end](), online=online, lasts=lasts)
            for opening, end, online, lasts in steps
            if opening == "open"
        ]
        with capture_logs() as logs:
            task = supervised(place, cable)
            await asyncio.sleep(3600)
            await cancelled(task)
        assert place.online
        assert not place.faults  # Place.emit would have raised on an end without its fault
        line = [one for one in place.types if one in ("device.online", "device.offline")]
        assert line == ["device.online", "device.offline"] * (len(line) // 2) + ["device.online"]
        for code in (REFUSED, BUG):
            faults = [type_of(event) for _, event in place.told if getattr(event, "code", "") == code]
            assert faults == ["device.faulted", "device.recovered"] * (len(faults) // 2)
        words = [word for word in said(logs) if word != "driver.bug"]
        lost = words.count("device.lost")
        assert (
            words == (["device.online"] if words[0] == "device.online" else []) + ["device.lost", "device.back"] * lost
        )
        assert said(logs).count("driver.bug") == sum(
            "bug" in (opening, end if opening == "open" else "") for opening, end, *_ in steps
        )
        assert len(cable.tried) == len(steps) + 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DRIVERS, "actor", Actor)
        Actor.memories = []
        body()


# ---- over restarts of the edge

CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "t"
[[table.device]]
name = "d-1"
driver = "actor"
url = "memory:"
"""


async def life(path: Path, cable: Cable, seconds: float, driver: str = "actor") -> list[str]:
    """One life of an edge's device; the types in its journal at the end."""
    journal = Journal(path)
    edge = Edge(parse(CONFIG.replace('"actor"', f'"{driver}"')), journal, now=now)
    post = edge.sessions[0]
    task = asyncio.create_task(supervise(post.device, post, cable, now, structlog.get_logger()))
    await asyncio.sleep(seconds)
    await cancelled(task)
    types = [row.type for row in journal.after(0, 1000)]
    line = [one for one in types if one in ("device.online", "device.offline")]
    assert post.online == (line[-1:] == ["device.online"])
    journal.close()
    return types


@virtual_time
async def test_an_edge_that_was_restarted_while_the_device_was_online(tmp_path: Path, actor: type[Actor]) -> None:
    path = tmp_path / "journal.db"
    assert await life(path, Cable(), 60) == ["device.online"]
    dark = Cable()
    dark.raises = [LinkLost("not there")] * 1000
    # It is gone when the edge comes back: offline once, not at every try, and not again in the next life.
    assert await life(path, dark, 60) == ["device.online", "device.offline"]
    assert await life(path, dark, 60) == ["device.online", "device.offline"]
    assert await life(path, Cable(), 60) == ["device.online", "device.offline", "device.online"]


@virtual_time
async def test_a_fault_outlives_a_restart_and_ends_once(tmp_path: Path, actor: type[Actor]) -> None:
    path = tmp_path / "journal.db"
    actor.sessions = [session(DeviceRefused("locked"), online=False)] * 2
    assert await life(path, Cable(), 10) == ["device.faulted"]
    assert await life(path, Cable(), 10) == ["device.faulted"]
    assert await life(path, Cable(), 10) == ["device.faulted", "device.online", "device.recovered"]


@virtual_time
async def test_the_memory_of_a_driver_outlives_a_restart(tmp_path: Path, actor: type[Actor]) -> None:
    async def remembers(link: Link, emit: Emit) -> None:
        await emit(saw(link, DeviceOnline(True), WheelStopped()), b"spin 7")
        await asyncio.sleep(float("inf"))

    actor.sessions = [remembers]
    await life(tmp_path / "journal.db", Cable(), 10)
    await life(tmp_path / "journal.db", Cable(), 10)
    assert actor.memories == [None, b"spin 7"]


# ---- another device in the place of the old one


class Heard:
    """A session that keeps what is retained."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def publish(self, topic: str, payload: bytes, *, retain: bool) -> None:
        assert retain
        self.kept[topic] = payload

    @property
    def session(self) -> mqtt.Session:
        return cast("mqtt.Session", self)

    @property
    def alerts(self) -> dict[str, bool]:
        """Which of them stand, and which are cleared."""
        return {topic.rpartition("/")[2]: bool(text) for topic, text in self.kept.items() if "/alert/" in topic}


def has_faults(*codes: str) -> Session:
    """A device that comes online with these faults, and a driver that remembers."""

    async def run(link: Link, emit: Emit) -> None:
        faults = [DeviceFaulted(code, "text", "error", "remedy") for code in codes]
        await emit(saw(link, DeviceOnline(True, "the old one", "serial", "firmware"), *faults), b"spin 7")
        await asyncio.sleep(float("inf"))

    return run


@pytest.mark.parametrize("there", [True, False])
@virtual_time
async def test_the_faults_of_a_device_that_is_gone_end_once_and_its_memory_is_nobodys(
    tmp_path: Path, actor: type[Actor], there: bool
) -> None:
    """Its driver knew their codes, the new one does not: nobody else would ever see them end."""
    path = tmp_path / "journal.db"
    actor.sessions = [has_faults("a.b", "c.d")]
    before = await life(path, Cable(), 10)
    assert before == ["device.online", "device.faulted", "device.faulted"]
    cable = Cable()
    cable.raises = [] if there else [LinkLost("not there")] * 100
    with capture_logs() as logs:
        after = await life(path, cable, 10, "understudy")
    ends = ["device.recovered", "device.recovered"]
    assert after == [*before, *ends, "device.online" if there else "device.offline"]
    assert await life(path, cable, 10, "understudy") == after + ["device.online"] * there
    assert Understudy.memories == [None] * len(cable.links)
    assert [(one["was"], one["driver"], one["ended"]) for one in logs if one["event"] == "device.exchanged"] == [
        ("actor", "understudy", ["a.b", "c.d"])
    ]

    journal = Journal(path)
    edge, broker = Edge(parse(CONFIG.replace('"actor"', '"understudy"')), journal, now=now), Heard()
    assert edge.sessions[0].status.faults == ()
    assert [(row.device, row.data, row.wire) for row in journal.after(3, 2)] == [
        ("d-1", b'{"code":"a.b"}', b""),
        ("d-1", b'{"code":"c.d"}', b""),
    ]
    await edge.retained.publish_all(broker.session)
    own = {"e-state-forged": False}
    assert broker.alerts == own | {"d-1-a-b": False, "d-1-c-d": False, "d-1-device-offline": not there}
    journal.close()


@virtual_time
async def test_supervisor_faults_of_the_old_device_end_with_it(tmp_path: Path, actor: type[Actor]) -> None:
    path = tmp_path / "journal.db"
    actor.sessions = [session(DeviceRefused("locked"), online=False)]
    assert await life(path, Cable(), 10) == ["device.faulted"]
    assert await life(path, Cable(), 10, "understudy") == ["device.faulted", "device.recovered", "device.online"]


@virtual_time
async def test_an_exchange_stands_in_the_journal_whole_or_not_at_all(
    tmp_path: Path, actor: type[Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full just then: the next process does it."""
    path = tmp_path / "journal.db"
    actor.sessions = [has_faults("a.b")]
    await life(path, Cable(), 10)

    def full(*_: object) -> None:
        raise BadJournal("full")

    config = parse(CONFIG.replace('"actor"', '"understudy"'))
    journal = Journal(path)
    with monkeypatch.context() as patched:
        patched.setattr(journal, "append", full)
        with pytest.raises(BadJournal):
            Edge(config, journal, now=now)
    assert journal.head == 2
    edge = Edge(config, journal, now=now)
    assert (journal.head, edge.sessions[0].memory()) == (3, None)
    assert not edge.sessions[0].may_have_kept_events
    assert edge.sessions[0].meta().model == ""
    last = edge.sessions[0].last
    assert last is not None
    assert (last.type, last.time) == ("device.recovered", now())
    journal.close()


@pytest.mark.parametrize("known", [True, False])
@virtual_time
async def test_the_same_driver_keeps_its_faults_and_its_memory(tmp_path: Path, actor: type[Actor], known: bool) -> None:
    """Also on the board of an edge that did not yet write down whose it is: from then on it is known."""
    path = tmp_path / "journal.db"
    actor.sessions = [has_faults("a.b")]
    told = await life(path, Cable(), 10)
    if not known:
        journal = Journal(path)
        board = msgspec.json.decode(journal.memory("status/t/d-1") or b"")
        del board["driver"]
        journal.append((), {"status/t/d-1": msgspec.json.encode(board)})
        journal.close()
    dark = Cable()
    dark.raises = [LinkLost("not there")] * 100
    with capture_logs() as logs:
        assert await life(path, dark, 10) == [*told, "device.offline"]
        assert await life(path, Cable(), 10) == [*told, "device.offline", "device.online"]
    assert "device.exchanged" not in said(logs)
    assert actor.memories == [None, b"spin 7"]
    journal = Journal(path)
    [fault] = Edge(parse(CONFIG), journal, now=now).sessions[0].status.faults
    assert fault.code == "a.b"
    journal.close()
    assert (await life(path, Cable(), 10, "understudy"))[4:] == ["device.recovered", "device.online"]


@virtual_time
async def test_the_memory_of_a_driver_that_never_met_its_device_is_not_the_next_ones(
    tmp_path: Path, actor: type[Actor]
) -> None:
    async def notes(_link: Link, emit: Emit) -> None:
        await emit([], b"spin 7")
        await asyncio.sleep(float("inf"))

    actor.sessions = [notes]
    assert await life(tmp_path / "journal.db", Cable(), 10) == []
    assert await life(tmp_path / "journal.db", Cable(), 10, "understudy") == ["device.online"]
    assert Understudy.memories == [None]
