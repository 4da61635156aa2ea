"""The dealer's page as a device: each press reaches the edge's journal once and in order, whatever is killed or cut."""

import asyncio
import contextlib
import itertools
import json
import random
import socket
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from helpers import MemoryLink, at_length, virtual_time
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from daemon.config.model import parse
from daemon.console.dealer import unit as dealer_unit
from daemon.console.dealer.unit import (
    MOST_WAITING,
    REPEAT_WITHIN_S,
    RING,
    BadDealer,
    By,
    Full,
    Other,
    Press,
    Unit,
    _Desk,
    _Line,
    serve,
    socket_of,
)
from daemon.console.site.actions import Actions
from daemon.console.site.store import Store
from daemon.edge.device_session import DeviceSession
from daemon.edge.edge import Edge
from daemon.edge.links.link import HostLink, StreamLink, open_stream
from daemon.edge.supervisor import supervise
from daemon.journal.store import Journal
from daemon.virtual_clock import JumpingLoop
from drivers.driver import LinkLost
from protocols.fdl import frame as fdl
from protocols.fdl.console import (
    ACTIONS,
    BallEntered,
    BetsClosed,
    BetsOpened,
    Corrected,
    DiceEntered,
    NewShoe,
    Paid,
    RoundVoid,
    SeatAction,
    SupervisorKey,
)

BY = By("ana", "dealer")
CONFIG = """
[site]
name = "site"
[edge]
name = "edge-1"
journal = "{path}/edge.db"
[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
[[table.device]]
name = "console-2"
driver = "fdl_console"
url = "unix://{path}/bac-1.sock"
"""
HAPPENINGS: tuple[fdl.Happening, ...] = (
    BetsOpened(), BetsClosed(), Paid(), RoundVoid(1), NewShoe(8), SeatAction(3, 2), SeatAction(7, 1, 2, 500),
)  # fmt: skip


class _Wire:
    """What a connection writes to, in memory: arrives a moment later, unless the cable was cut meanwhile."""

    def __init__(self, arrives: Callable[[bytes], None], gone: Callable[[], None]) -> None:
        self._arrives = arrives
        self._gone = gone
        self.cut = False

    def write(self, data: bytes) -> None:
        asyncio.get_running_loop().call_later(0.001, self._land, data)

    def _land(self, data: bytes) -> None:
        if not self.cut:
            self._arrives(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.cut = True
        self._gone()


class Place:
    """A console's store and port, and an edge with its journal, a cable between them; each can be killed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = parse(CONFIG.format(path=path))
        self.loop = cast("JumpingLoop", asyncio.get_running_loop())
        self.desk: _Desk | None = None
        self.plugged = True
        self.line: _Line | None = None
        self.wire: _Wire | None = None
        self.link: MemoryLink | None = None
        self.task: asyncio.Task[None] | None = None

    def start_console(self) -> None:
        self.store = Store(self.path / "console.db")
        self.unit = Unit(self.store, "bac-1", self.loop.utc)
        self.desk = _Desk(self.unit, "feltd-edge")

    def kill_console(self) -> None:
        assert self.desk is not None
        self.cut()
        self.desk.close()
        self.desk = None
        self.store.db.close()

    def start_edge(self) -> None:
        self.journal = Journal(self.path / "edge.db")
        edge = Edge(self.config, self.journal, now=self.loop.utc)
        self.post: DeviceSession = edge.sessions[0]
        log = structlog.get_logger()
        self.task = asyncio.create_task(supervise(self.post.device, self.post, self.open, self.loop.utc, log))

    async def kill_edge(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait([self.task])
        self.journal.close()

    def cut(self) -> None:
        """The line is lost, with all that is on its way."""
        if self.wire is not None:
            self.wire.cut = True
        if self.link is not None:
            self.link.hang_up()
        if self.line is not None and self.desk is not None:
            self.desk.left(self.line)
        self.line = self.wire = self.link = None

    @contextlib.asynccontextmanager
    async def open(self, _url: str) -> AsyncIterator[HostLink]:
        if not self.plugged or self.desk is None:
            raise LinkLost("Connection refused")
        link: Any = MemoryLink()
        link.received_bytes = link.sent_bytes = 0
        line = _Line(self.desk)
        wire = _Wire(link.feed, link.hang_up)
        desk = self.desk

        def wrote(data: bytes) -> None:
            self.loop.call_later(0.001, lambda: None if wire.cut else desk.received(line, data))

        link.on_write = wrote
        self.line, self.wire, self.link = line, wire, link
        line.transport = cast("asyncio.Transport", wire)
        desk.took(line)
        try:
            yield link
        finally:
            wire.cut = True
            if self.line is line:
                desk.left(line)
                self.line = self.wire = self.link = None

    def press(self, id_: str, *happenings: fdl.Happening) -> dealer_unit.Pressed:
        return self.unit.press(Press(id_, "key", happenings), BY, self.loop.time())

    def told(self) -> list[tuple[str, Any]]:
        """What the journal has of the console, without what the edge says of it."""
        rows = self.journal.range("bac-1", 1, 1_000_000)
        return [(row.type, ageless(row.data)) for row in rows if not row.type.startswith("device.")]

    async def until(self, come: Callable[[], bool], seconds: float = 120.0) -> None:
        async with asyncio.timeout(seconds):
            while not come():  # noqa: ASYNC110 - in virtual time
                await asyncio.sleep(0.05)

    async def end(self) -> None:
        await self.kill_edge()
        if self.desk is not None:
            self.kill_console()


@contextlib.asynccontextmanager
async def running(path: Path) -> AsyncIterator[Place]:
    place = Place(path)
    place.start_console()
    place.start_edge()
    await place.until(lambda: place.post.online and place.unit.met)
    try:
        yield place
    finally:
        await place.end()


def ageless(data: bytes) -> dict[str, Any]:
    """An event's data without its age: how long it waited for the edge."""
    return {name: value for name, value in json.loads(data).items() if name != "age_ms"}


def wanted(happening: fdl.Happening) -> tuple[str, Any]:
    """As the real driver tells it."""
    match happening:
        case BetsOpened():
            return "bets.opened", {}
        case BetsClosed():
            return "bets.closed", {}
        case Paid():
            return "round.paid", {}
        case RoundVoid():
            return "round.voided", {"reason": "dealing_error"}
        case NewShoe(decks):
            return "shoe.started", {"decks": decks}
        case SeatAction(seat, action, hand, amount):
            said: dict[str, Any] = {"seat": seat, "action": ACTIONS[action]}
            return "seat.acted", said | ({"hand": hand} if hand > 1 else {}) | ({"amount": amount} if amount else {})
        case _:
            raise AssertionError(happening)


# ---- one press


@virtual_time
async def test_a_press_is_kept_here_until_the_edge_has_it(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        began = place.loop.time()
        assert place.press("a", BetsClosed()).state == "here"
        await place.until(lambda: place.unit.waiting == 0)
        assert place.loop.time() - began < 0.2
        found = place.unit.find("a")
        assert found is not None
        assert found.state == "edge"
        assert place.told() == [("bets.closed", {})]


@virtual_time
async def test_repeated_press_is_deduplicated_also_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        for _ in range(3):
            place.press("a", BetsClosed())
        place.kill_console()
        place.start_console()
        assert place.press("a", BetsClosed()).id == "a"
        place.press("b", Paid())
        await place.until(lambda: place.unit.waiting == 0)
        assert place.told() == [("bets.closed", {}), ("round.paid", {})]


@virtual_time
async def test_without_the_edge_it_waits_and_says_so_and_is_told_with_its_age(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        place.plugged = False
        place.cut()
        await asyncio.sleep(5)
        assert not place.unit.met
        assert place.press("a", BetsOpened()).state == "here"
        assert place.press("b", BetsClosed()).state == "here"
        await asyncio.sleep(30)
        assert [one.state for one in place.unit.last(5)] == ["here", "here"]
        place.plugged = True
        await place.until(lambda: place.unit.waiting == 0)
        assert place.told() == [("bets.opened", {}), ("bets.closed", {})]


@pytest.mark.parametrize("step", [-60, 60])
@virtual_time
async def test_a_clock_that_is_set_meanwhile_does_not_age_a_press(tmp_path: Path, step: int) -> None:
    """A bell would be told behind what came after it, or before what it followed."""
    place = Place(tmp_path)
    place.start_console()
    unit = place.unit
    [known] = fdl.Decoder().feed(unit.receive(fdl.encode(fdl.Hello(0, 0), 1), 0.0))
    who = fdl.read(cast("fdl.Frame", known))
    assert isinstance(who, fdl.Identity)
    unit.press(Press("a", "bell", (BetsOpened(),)), BY, 100.0)
    unit._wall = lambda: place.loop.utc() + timedelta(seconds=step)
    said = fdl.Decoder().feed(unit.receive(fdl.encode(fdl.Hello(who.epoch, who.next - 1), 2), 102.5))
    [told] = [one for one in map(fdl.read, cast("list[fdl.Frame]", said)) if isinstance(one, fdl.EventReport)]
    assert told.age == 2500
    place.kill_console()


@virtual_time
async def test_a_restart_of_the_console_is_continuous_for_the_edge(tmp_path: Path) -> None:
    """No round is suspended by it: nothing that was pressed is missing."""
    async with running(tmp_path) as place:
        place.press("a", BetsOpened())
        await place.until(lambda: place.unit.waiting == 0)
        place.kill_console()
        await asyncio.sleep(7)
        place.start_console()
        await place.until(lambda: place.post.online and place.unit.met)
        rows = place.journal.range("bac-1", 1, 1000)
        online = [json.loads(row.data) for row in rows if row.type == "device.online"]
        assert [said["continuous"] for said in online] == [False, True]  # the first contact, and this


@virtual_time
async def test_an_edge_that_lost_its_memory_is_told_and_so_is_the_dealer(tmp_path: Path) -> None:
    """It goes on from what comes next: what waited is never recorded, and the page must not say otherwise."""
    async with running(tmp_path) as place:
        await place.kill_edge()
        place.cut()
        place.press("a", BetsClosed())
        for name in ("edge.db", "edge.db-wal", "edge.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        place.start_edge()
        await place.until(lambda: place.unit.met and place.unit.waiting == 0)
        assert place.told() == []
        found = place.unit.find("a")
        assert found is not None
        assert found.state == "lost"
        place.press("b", Paid())
        await place.until(lambda: place.unit.waiting == 0)
        assert place.told() == [("round.paid", {})]


@virtual_time
async def test_an_acknowledgement_that_was_lost_is_no_loss(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        place.press("a", BetsClosed())
        await place.until(lambda: len(place.told()) == 1, 1)
        place.cut()  # the acknowledgement was on its way
        await place.until(lambda: place.unit.waiting == 0)
        found = place.unit.find("a")
        assert found is not None
        assert found.state == "edge"
        assert len(place.told()) == 1


@virtual_time
async def test_a_full_console_takes_no_more_and_forgets_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.start_console()
    for n in range(MOST_WAITING - 3):
        place.press(f"p{n}", BetsClosed())
    with pytest.raises(Full):
        place.press("more", BetsClosed())
    assert place.unit.find("p0") is not None
    place.kill_console()


@virtual_time
async def test_presses_at_other_tables_forget_none_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealer_unit, "REMEMBERED", 5)
    place = Place(tmp_path)
    place.start_console()
    other = Unit(place.store, "rou-1", place.loop.utc)
    place.press("a", BetsClosed())
    for n in range(9):
        other.press(Press(f"o{n}", "key", (BetsClosed(),)), BY, place.loop.time())
    place.press("b", Paid())
    assert [one.id for one in place.unit.last(9)] == ["b", "a"]
    assert [one.id for one in other.last(9)] == ["o8", "o7", "o6", "o5", "o4"]
    place.kill_console()


@virtual_time
async def test_acknowledged_presses_are_kept_as_long_as_the_ring(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        for n in range(RING + 60):
            place.press(f"p{n}", BetsClosed())
            if n % 100 == 99:
                await place.until(lambda: place.unit.waiting == 0)
        await place.until(lambda: place.unit.waiting == 0)
        [count] = place.store.db.execute("SELECT count(*) FROM dealer_event").fetchone()
        assert count == RING
        assert len(place.told()) == RING + 60


@virtual_time
async def test_each_press_is_in_the_log_of_actions_once(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        journal = Journal(tmp_path / "actions.db")
        actions = Actions(journal, place.store)
        place.press("a", BetsClosed())
        place.press("a", BetsClosed())
        place.press("b", Paid())
        actions.collect()
        rows = journal.range("bac-1", 1, 10)
        assert [(row.type, row.device) for row in rows] == [("console.dealer", "ana")] * 2
        assert [json.loads(row.data)["detail"]["id"] for row in rows] == ["a", "b"]
        journal.close()


@virtual_time
async def test_a_press_that_cannot_be_kept_was_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as place:
        with monkeypatch.context() as patched:
            patched.setattr(dealer_unit, "leave", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
            with pytest.raises(OSError, match="no space"):
                place.press("a", BetsClosed())
        assert place.unit.find("a") is None
        assert place.unit.waiting == 0
        assert place.press("a", Paid()).state == "here"
        await place.until(lambda: place.unit.waiting == 0)
        assert place.told() == [("round.paid", {})]


@virtual_time
async def test_a_store_that_fails_costs_the_edge_a_repetition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it cannot be read: the unit does not fall silent for ever."""
    async with running(tmp_path) as place:
        with monkeypatch.context() as patched:
            patched.setattr(
                Unit, "_event", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("disk I/O error"))
            )
            place.press("a", BetsClosed())
            await asyncio.sleep(20)
            assert place.told() == []
        await place.until(lambda: place.unit.waiting == 0)
        assert place.told() == [("bets.closed", {})]


@virtual_time
async def test_an_id_that_is_known_for_another_press_is_no_press(tmp_path: Path) -> None:
    def press(happening: fdl.Happening, key: str = "action", **values: str) -> dealer_unit.Pressed:
        return place.unit.press(Press("a", key, (happening,), values), BY, place.loop.time())

    async with running(tmp_path) as place:
        fold = SeatAction(3, 8)
        assert press(fold).state == "here"
        await place.until(lambda: place.unit.waiting == 0)
        for _ in range(2):
            for other in (SeatAction(4, 9, 1, 2000), SeatAction(3, 8, 2)):
                with pytest.raises(Other):
                    press(other)
            with pytest.raises(Other):
                press(fold, "seat_opened")
            assert press(fold, why="in other words").state == "edge"
            place.kill_console()
            place.start_console()
        for n in range(RING + 1):  # until nobody knows what it said, but for its values
            place.press(f"p{n}", BetsClosed())
        await place.until(lambda: place.unit.waiting == 0)
        assert press(fold).state == "edge"
        with pytest.raises(Other):
            press(fold, seat="3")
        assert len(place.told()) == RING + 2


@virtual_time
async def test_an_entry_that_waits_for_its_second_is_known_by_what_was_entered(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        for digits in ("125", "125", "126"):
            press = Press("a", "dice", (DiceEntered(tuple(map(int, digits))),), {"faces": digits})
            with pytest.raises(Other) if digits == "126" else contextlib.nullcontext():
                assert place.unit.press(press, BY, place.loop.time()).state == "again"


# ---- entered twice


@virtual_time
async def test_a_result_counts_when_it_is_entered_twice_alike(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        five, six = DiceEntered((1, 2, 5)), DiceEntered((1, 2, 6))
        assert place.press("a", five).state == "again"
        assert place.press("a", five).state == "again"  # a retried request is no second entry
        assert place.press("b", six).state == "differs"
        assert place.press("x", BetsClosed()).state == "here"  # another key between them changes nothing
        assert place.press("c", six).state == "here"
        assert place.press("d", six).state == "again"
        await asyncio.sleep(REPEAT_WITHIN_S + 1)
        assert place.press("e", six).state == "again"  # too late for the second
        await place.until(lambda: place.unit.waiting == 0)
        assert place.told() == [("bets.closed", {}), ("dice.read", {"faces": [1, 2, 6]})]


@virtual_time
async def test_three_entries_each_unlike_the_one_before_are_a_fault_that_ends(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        for n in range(3):
            assert place.press(f"a{n}", BallEntered(str(n))).state == ("differs" if n else "again")
        await place.until(lambda: place.post.has_fault("console.entry"))
        assert place.press("b", BallEntered("7")).state == "again"  # begun anew
        assert place.press("c", BallEntered("7")).state == "here"
        await place.until(lambda: not place.post.has_fault("console.entry"))
        for n in range(3):
            place.press(f"d{n}", BallEntered(str(n % 2)))  # 0, 1, 0
        await place.until(lambda: place.post.has_fault("console.entry"))
        await asyncio.sleep(25)
        assert not place.post.has_fault("console.entry")  # by itself
        for n in range(3):
            place.press(f"e{n}", BallEntered(str(n)))
        await place.until(lambda: place.post.has_fault("console.entry"))
        place.kill_console()
        place.start_console()
        await place.until(lambda: not place.post.has_fault("console.entry"))
        assert place.told() == [("ball.landed", {"pocket": "7"})]


@virtual_time
async def test_a_correction_stands_between_the_turns_of_the_key(tmp_path: Path) -> None:
    async with running(tmp_path) as place:
        hands = Corrected((("player", ("9D", "KC")), ("banker", ("AS",))))
        place.press("a", SupervisorKey(True), hands, SupervisorKey(False))
        await place.until(lambda: place.unit.waiting == 0)
        assert [type_ for type_, _ in place.told()] == ["supervisor.keyed", "deal.corrected", "supervisor.keyed"]


# ---- its side of the protocol


@virtual_time
async def test_the_self_test_is_answered_and_another_command_is_not_known(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.start_console()
    unit = place.unit
    said = fdl.Decoder().feed(unit.receive(fdl.encode(fdl.Hello(0, 0), 1), 0.0))
    who = fdl.read(cast("fdl.Frame", said[0]))
    assert isinstance(who, fdl.Identity)
    assert (who.kind, who.position, who.model) == (fdl.CONSOLE, 0, "Dealer page")
    unit.receive(fdl.encode(fdl.Hello(who.epoch, who.next - 1), 2), 0.0)
    answers = [
        fdl.read(cast("fdl.Frame", fdl.Decoder().feed(unit.receive(fdl.encode(command, 3), 0.0))[0]))
        for command in (fdl.Command(7, fdl.SELF_TEST), fdl.Command(8, 0x55), fdl.Command(7, 0x55))
    ]
    assert answers == [fdl.Answer(7, fdl.DONE), fdl.Answer(8, fdl.NOT_KNOWN), fdl.Answer(7, fdl.DONE)]
    place.kill_console()


@virtual_time
async def test_two_tables_and_two_stores_are_different_units(tmp_path: Path) -> None:
    serials = set()
    for folder in ("a", "b"):
        store = Store(tmp_path / folder / "console.db")
        for table in ("bac-1", "bac-2", "x" * 64, "x" * 63 + "y"):
            serials.add(Unit(store, table, lambda: datetime.now(UTC))._identity().serial)
        store.close()
    assert len(serials) == 8
    assert all(len(serial) <= fdl.MAX_TEXT for serial in serials)


@pytest.mark.parametrize("text", ["127.0.0.1:7701", "run/x.sock", "", "/", "/run/..", "/a\0b", f"/{'x' * 107}"])
def test_the_place_of_a_page_is_a_path(text: str) -> None:
    with pytest.raises(BadDealer, match="write"):
        socket_of(text)


def test_places() -> None:
    assert socket_of("/run/feltd/./console/bac-1.sock") == Path("/run/feltd/console/bac-1.sock")
    assert socket_of(f"/{'x' * 106}")


# ---- anything, in any order


class Dealing(RuleBasedStateMachine):
    """Presses, repeated requests, cuts, restarts of either side, in any order; in the end the journal has each once."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner(loop_factory=JumpingLoop)
        self.pressed: list[tuple[str, fdl.Happening]] = []
        self.dead = False

    def run(self, body: Coroutine[Any, Any, None]) -> None:
        self.runner.run(body)

    @initialize()
    def begin(self) -> None:
        async def body() -> None:
            self.place = Place(Path(self.folder.name))
            self.place.start_console()
            self.place.start_edge()
            await self.place.until(lambda: self.place.unit.met and self.place.post.online)

        self.run(body())

    @precondition(lambda self: self.place.desk is not None)
    @rule(happening=st.sampled_from(HAPPENINGS))
    def press(self, happening: fdl.Happening) -> None:
        id_ = f"id-{len(self.pressed)}"

        async def body() -> None:
            self.place.press(id_, happening)

        self.run(body())
        self.pressed.append((id_, happening))

    @precondition(lambda self: self.place.desk is not None and self.pressed)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """The browser never heard the answer."""
        id_, happening = data.draw(st.sampled_from(self.pressed))

        async def body() -> None:
            self.place.press(id_, happening)

        self.run(body())

    @rule(seconds=st.sampled_from([0.0005, 0.0015, 0.003, 0.1, 0.25, 1.0, 12.0]))
    def wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def cut(self) -> None:
        async def body() -> None:
            self.place.cut()

        self.run(body())

    @rule()
    def plug(self) -> None:
        self.place.plugged = not self.place.plugged
        if not self.place.plugged:
            self.cut()

    @rule()
    def kill_or_start_console(self) -> None:
        async def body() -> None:
            if self.place.desk is not None:
                self.place.kill_console()
            else:
                self.place.start_console()

        self.run(body())

    @rule()
    def restart_edge(self) -> None:
        async def body() -> None:
            await self.place.kill_edge()
            self.place.start_edge()

        self.run(body())

    def teardown(self) -> None:
        async def body() -> None:
            place = self.place
            place.plugged = True
            if place.desk is None:
                place.start_console()
            await place.until(lambda: place.unit.met and place.unit.waiting == 0)
            told = place.told()
            states = {id_: place.unit.find(id_) for id_, _ in self.pressed}
            await place.end()
            assert told == [wanted(happening) for _, happening in self.pressed]
            assert all(found is not None and found.state == "edge" for found in states.values())

        try:
            if hasattr(self, "place"):
                self.run(body())
        finally:
            self.runner.close()
            self.folder.cleanup()


def test_any_interleaving_of_presses_cuts_and_restarts_loses_and_repeats_nothing() -> None:
    run_state_machine_as_test(Dealing, settings=settings(max_examples=at_length(25, 300), stateful_step_count=30))


# ---- over a real socket


class Counted:
    """Bytes on their way through real sockets: while there are any, virtual time stands still."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.link: StreamLink | None = None
        self.arrived = 0

    @property
    def busy(self) -> bool:
        link = self.link
        if link is None or not self.lines or link._lost is not None:
            return False
        line = self.lines[-1]
        waiting = sum(len(chunk.data) for chunk in link._waiting)
        return bool(line.sent != link.received_bytes + waiting or link.sent_bytes != line.heard)


@pytest.mark.parametrize("seed", range(4))
def test_over_a_socket_with_the_real_driver_whatever_is_killed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted()
    made, heard, send = _Line.connection_made, _Line.data_received, _Line.send

    def on_made(line: Any, transport: asyncio.BaseTransport) -> None:
        line.sent = line.heard = 0
        counted.lines.append(line)
        made(line, transport)

    def on_heard(line: Any, data: bytes) -> None:
        line.heard += len(data)
        heard(line, data)

    def on_send(line: Any, data: bytes) -> None:
        line.sent += len(data)
        send(line, data)

    monkeypatch.setattr(_Line, "connection_made", on_made)
    monkeypatch.setattr(_Line, "data_received", on_heard)
    monkeypatch.setattr(_Line, "send", on_send)

    async def body() -> None:
        loop = cast("JumpingLoop", asyncio.get_running_loop())
        rng = random.Random(seed)

        @contextlib.asynccontextmanager
        async def opener(url: str) -> AsyncIterator[HostLink]:
            async with open_stream(url, loop.utc) as link:
                counted.link = link
                try:
                    yield link
                finally:
                    counted.link = None

        ids = itertools.count()
        pressed: list[fdl.Happening] = []
        journal = Journal(tmp_path / "edge.db")
        task: asyncio.Task[None] | None = None
        for life in range(5):
            store = Store(tmp_path / "console.db")
            unit = Unit(store, "bac-1", loop.utc)
            async with serve([unit], {"bac-1": str(tmp_path / "bac-1.sock")}, "feltd-edge"):
                if task is None:
                    edge = Edge(parse(CONFIG.format(path=tmp_path)), journal, now=loop.utc)
                    post = edge.sessions[0]
                    task = asyncio.create_task(supervise(post.device, post, opener, loop.utc, structlog.get_logger()))
                async with asyncio.timeout(60):
                    while not unit.met:  # noqa: ASYNC110 - in virtual time
                        await asyncio.sleep(0.05)
                for _ in range(20):
                    happening = rng.choice(HAPPENINGS)
                    unit.press(Press(f"p{next(ids)}", "key", (happening,)), BY, loop.time())
                    pressed.append(happening)
                    await asyncio.sleep(rng.choice((0.0, 0.001, 0.3)))
                    if rng.random() < 0.1 and counted.lines[-1].transport is not None:
                        counted.lines[-1].transport.abort()
                if life == 4:
                    async with asyncio.timeout(60):
                        while unit.waiting:  # noqa: ASYNC110 - in virtual time
                            await asyncio.sleep(0.05)
            store.db.close()
        assert task is not None
        task.cancel()
        await asyncio.wait([task])
        rows = journal.range("bac-1", 1, 100_000)
        told = [(row.type, ageless(row.data)) for row in rows if not row.type.startswith("device.")]
        journal.close()
        assert told == [wanted(happening) for happening in pressed]

    with asyncio.Runner(loop_factory=partial(JumpingLoop, busy=lambda: counted.busy)) as runner:
        runner.run(body())


async def test_a_place_that_is_taken_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "console.db")
    one, two = Unit(store, "bac-1", lambda: datetime.now(UTC)), Unit(store, "bac-2", lambda: datetime.now(UTC))
    place = str(tmp_path / "a.sock")
    async with serve([one], {"bac-1": place}, "feltd-edge"):
        with pytest.raises(BadDealer, match="in use"):
            async with serve([two], {"bac-2": place}, "feltd-edge"):
                pass
    with pytest.raises(BadDealer, match="No such file"):
        async with serve([two], {"bac-2": str(tmp_path / "folder/a.sock")}, "feltd-edge"):
            pass
    store.close()


async def test_what_a_killed_console_left_is_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path / "console.db")
    unit = Unit(store, "bac-1", lambda: datetime.now(UTC))
    place = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    async with serve([unit], {"bac-1": str(place)}, "feltd-edge"), open_stream(f"unix://{place}") as link:
        assert await link.read()
    assert not place.exists()
    store.close()
