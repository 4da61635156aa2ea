"""The way of an event where it is easily lost, doubled or told wrongly: each of these was so once."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest
import structlog
from click.testing import CliRunner
from helpers import START, MemoryLink, script, virtual_time
from paho.mqtt.client import topic_matches_sub
from structlog.testing import capture_logs

from daemon import logs
from daemon.broker import connection as mqtt_module
from daemon.broker.connection import stay_connected
from daemon.broker.retained import Retained
from daemon.broker.session import BrokerLost, BrokerRefused, Message, Session
from daemon.cli import main as cli
from daemon.config.model import Mqtt, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.device_session import DeviceSession, DeviceStatus
from daemon.edge.edge import Edge
from daemon.edge.links.link import StreamLink, open_stream
from daemon.edge.supervisor import BUG, supervise
from daemon.journal import store as journal_module
from daemon.journal.rows import Entry
from daemon.journal.store import BadJournal, Journal
from daemon.read_model import SiteState
from drivers import DRIVERS
from drivers.cammegh_ss2 import CammeghSS2
from drivers.cammegh_ss2_spins import WheelOptions
from drivers.driver import Chunk, Emit, Evidence, Link, Sighting
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardUnreadable,
    DealCorrected,
    DeviceFaulted,
    DeviceOffline,
    DeviceOnline,
    DeviceRecovered,
    DiceAgitated,
    DiceCovered,
    DiceUncovered,
    Event,
    SpinStarted,
    decode_data,
)
from protocols.contract.topics import Wire, decode_wire, encode_wire

CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[[table.device]]
name = "shoe"
driver = "fdl_console"
url = "tcp://localhost:1"
[[table.device]]
name = "shoe-2"
driver = "fdl_shaker"
url = "tcp://localhost:2"
"""


class Broker:
    """The far end of a session, which keeps what is retained, loses what it is told to and may be stuck."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.said: list[tuple[str, bytes]] = []
        self.deaf = False
        self.stuck = False
        self.subscribing: asyncio.Event | None = None
        self.room = True
        self.glances = "heard"
        self.refuses_clears = False
        self.filters: tuple[str, ...] = ()
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()

    @property
    def session(self) -> Session:
        return cast("Session", self)

    async def until_room(self) -> None:
        if self.stuck:
            await asyncio.sleep(float("inf"))
        await asyncio.sleep(0)

    async def publish(self, topic: str, payload: bytes, **options: Any) -> None:
        await self.until_room()
        self.send(topic, payload, **options)

    def flush(self) -> None:
        """All is sent at once."""

    def send(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        acknowledged: Callable[[], None] | None = None,
        vital: bool = True,
        event: bool = False,
        refused: Callable[[str], None] | None = None,
    ) -> None:
        assert event == ("/event/" in topic)
        if self.deaf:
            return  # it went into the socket, and the connection died
        self.said.append((topic, payload))
        if self.refuses_clears and not vital:
            if refused is not None:
                refused("Not authorized")
            return
        if retain:
            self.kept.pop(topic, None)
            if payload:
                self.kept[topic] = payload
        self.tell(topic, payload)
        if acknowledged is not None:
            asyncio.get_running_loop().call_soon(acknowledged)

    async def drained(self) -> None:
        await self.until_room()

    def tell(self, topic: str, payload: bytes) -> None:
        """To who is connected, where that is subscribed to and may be read."""
        hidden = self.glances != "heard" and topic.endswith("/meta")
        if not hidden and any(topic_matches_sub(filter_, topic) for filter_ in self.filters):
            self._waiting.put_nowait(Message(topic, payload))

    def publish_qos0(self, _topic: str, _payload: bytes) -> bool:
        return True

    async def subscribe(self, *topics: str) -> None:
        self.filters += topics
        if self.subscribing is not None:
            self.subscribing.set()
            await asyncio.sleep(float("inf"))

    async def read_retained(self, *topics: str) -> None:
        if self.glances == "refused":
            raise BrokerRefused("the broker refuses to let us read")
        if self.glances == "slow":
            raise BrokerLost("Operation timed out")
        for topic, payload in self.kept.items():
            if self.glances == "heard" and any(topic_matches_sub(filter_, topic) for filter_ in topics):
                self._waiting.put_nowait(Message(topic, payload, retain=True))

    async def messages(self, at_once: object = None) -> list[Message]:
        del at_once
        return [await self._waiting.get()]

    def alerts(self) -> set[str]:
        return {topic.rpartition("/")[2] for topic in self.kept if "/alert/" in topic}


async def connected(serve: Callable[[Session], Coroutine[Any, Any, None]], broker: Broker) -> None:
    """One session of ten seconds."""
    task = asyncio.create_task(serve(broker.session))
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def saw(*events: Event) -> list[Sighting]:
    return [Sighting(event, b"", Chunk(b"", START, asyncio.get_running_loop().time())) for event in events]


def faulted(code: str) -> DeviceFaulted:
    return DeviceFaulted(code, "text", "error", "remedy")


# ---- the order of a table's past


@pytest.mark.parametrize("at_once", [False, True])
@virtual_time
async def test_a_device_that_comes_back_with_a_past_does_not_let_the_others_pass_it(
    tmp_path: Path, at_once: bool
) -> None:
    """Each says first that it is there, now, and then, or in one breath, what it kept: only the past is compared."""
    journal = Journal(tmp_path / "edge.db")
    there = msgspec.json.encode(DeviceStatus(online=True))
    journal.append((), {f"{kind}/rou-1/{name}": there for kind in ("status", "driver") for name in ("shoe", "shoe-2")})
    edge = Edge(parse(CONFIG), journal, now=lambda: START)
    pasts: list[list[tuple[float, Event]]] = [
        [(100, BetsOpened()), (50, BetsClosed())],
        [(110, DiceCovered()), (80, DiceAgitated("lever", 3)), (40, DiceUncovered())],
    ]

    async def tell(session: DeviceSession, past: list[tuple[float, Event]]) -> None:
        chunk = Chunk(b"", START, asyncio.get_running_loop().time())
        told = [Sighting(DeviceOnline(True), b"", chunk, behind=len(past))]
        told += [Sighting(event, b"", chunk, age, len(past) - n) for n, (age, event) in enumerate(past, 1)]
        for batch in [told[:2], *([one] for one in told[2:])] if at_once else [[one] for one in told]:
            await session.emit(batch, b"")
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for session, past in zip(edge.sessions, pasts, strict=True):
            group.create_task(tell(session, past))
    types = [row.type for row in journal.after(0, 100) if row.type != "device.online"]
    assert types == ["dice.covered", "bets.opened", "dice.agitated", "bets.closed", "dice.uncovered"]
    journal.close()


@virtual_time
async def test_who_is_not_there_at_the_first_try_is_waited_for(tmp_path: Path) -> None:
    """After a reboot an adapter appears half a second after the edge. What we say of a device meanwhile is no past."""
    journal = Journal(tmp_path / "edge.db")
    there = msgspec.json.encode(DeviceStatus(online=True))
    journal.append((), {f"{kind}/rou-1/{name}": there for kind in ("status", "driver") for name in ("shoe", "shoe-2")})
    edge = Edge(parse(CONFIG), journal, now=lambda: START)
    console, shaker = edge.sessions

    async def tell(session: DeviceSession, after: float, age: float, event: Event) -> None:
        await session.emit(saw(DeviceOffline("not there"), faulted("device.refused")))
        await asyncio.sleep(after)
        chunk = Chunk(b"", START, asyncio.get_running_loop().time())
        await session.emit([Sighting(DeviceOnline(True), b"", chunk, behind=1)])
        await session.emit([Sighting(event, b"", chunk, age + after)])

    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        group.create_task(tell(shaker, 0.25, 5.0, DiceAgitated("lever", 3)))
        group.create_task(tell(console, 0.0, 4.5, BetsClosed()))
    assert asyncio.get_running_loop().time() - began == 0.25
    rows = [row for row in journal.after(0, 100) if not row.type.startswith("device.")]
    assert [row.type for row in rows] == ["dice.agitated", "bets.closed"]
    assert not any(decode_data(row.type, row.data).overtaken for row in rows)
    journal.close()


@virtual_time
async def test_what_comes_later_than_it_should_says_so_for_good(tmp_path: Path) -> None:
    """A console's line was dead for six seconds, and the shaker went on meanwhile. Who only is there is never late."""
    journal = Journal(tmp_path / "edge.db")
    edge = Edge(parse(CONFIG), journal, now=lambda: START)
    console, shaker = edge.sessions

    async def tell(session: DeviceSession, event: Event, age: float = 0.0) -> None:
        await session.emit([Sighting(event, b"", Chunk(b"", START, asyncio.get_running_loop().time()), age)])
        await asyncio.sleep(1.0)

    await tell(console, BetsOpened(), 0.002)
    await tell(shaker, DiceCovered(), 0.004)
    await tell(shaker, DeviceOnline(True))
    await tell(console, BetsClosed(), 2.5)
    await tell(shaker, DeviceRecovered("x.y"), 8.0)
    await tell(shaker, DiceAgitated("lever", 3), 5.0)
    await tell(console, BetsClosed(), 0.5)
    journal.close()
    rows = Journal(tmp_path / "edge.db").after(0, 100)
    told = {row.seq: decode_data(row.type, row.data).overtaken for row in rows}
    assert told == {1: 0, 2: 0, 3: 0, 4: 496, 5: 0, 6: 500, 7: 0}
    assert rows[0].data == b"{}", "who is in order does not say so"


# ---- alerts


@virtual_time
async def test_a_device_whose_name_begins_like_another_keeps_its_alerts(tmp_path: Path) -> None:
    edge = Edge(parse(CONFIG), Journal(tmp_path / "edge.db"), now=lambda: START)
    broker = Broker()
    shoe, other = edge.sessions
    await other.emit(saw(DeviceOnline(True), faulted("x.y")))
    task = asyncio.create_task(connected(edge._serve, broker))
    await asyncio.sleep(1)
    await shoe.emit(saw(DeviceOnline(True)))
    await task
    assert broker.alerts() == {"shoe-2-x-y"}
    edge.journal.close()


@virtual_time
async def test_what_was_over_before_the_broker_heard_of_it_does_not_stand_for_ever(tmp_path: Path) -> None:
    """The broker was away when the fault ended and the device came back, and the edge was restarted meanwhile."""
    path, broker = tmp_path / "edge.db", Broker()
    edge = Edge(parse(CONFIG), Journal(path), now=lambda: START)
    await edge.sessions[0].emit(saw(DeviceOnline(True), faulted("x.y"), faulted("x.z")))
    await connected(edge._serve, broker)
    assert broker.alerts() == {"shoe-x-y", "shoe-x-z", "shoe-2-device-offline"}
    await edge.sessions[0].emit(saw(DeviceRecovered("x.y")))
    await edge.sessions[1].emit(saw(DeviceOnline(True)))
    edge.journal.close()
    again = Edge(parse(CONFIG), Journal(path), now=lambda: START)
    await connected(again._serve, broker)
    assert broker.alerts() == {"shoe-x-z"}
    again.journal.close()


@pytest.mark.parametrize("how", ["died with it in flight", "remembers what was before"])
@virtual_time
async def test_an_alert_that_was_cleared_is_cleared_at_a_broker_that_did_not_hear_it(how: str) -> None:
    retained, broker = Retained(), Broker()
    retained.put("s/alert/a", b"text")
    await retained.publish_all(broker.session)
    before = dict(broker.kept)
    retained.put("s/alert/a", b"")
    broker.deaf = how == "died with it in flight"
    await retained._publish(broker.session)
    broker.deaf = False
    if how == "remembers what was before":
        broker.kept = before  # it writes down what it keeps every half hour, and was killed
    await retained.publish_all(broker.session)
    assert not broker.kept


ROUND: tuple[Event, ...] = (SpinStarted(1), BallLaunched("clockwise", "anticlockwise"), BallLanded("17"))


@pytest.mark.parametrize("over", [False, True])
@virtual_time
async def test_a_suspended_round_is_shown_as_it_is_after_a_restart_of_the_rules(tmp_path: Path, over: bool) -> None:
    """Whatever the broker kept: nothing of it, or the alert of a round that ended while the broker was away."""
    path = tmp_path / "rules.db"
    consumer = Consumer(parse(CONFIG), Journal(path))
    events = script([*ROUND[:2], DeviceOnline(False)], "rou-1")
    consumer.take([msgspec.structs.replace(one, id=f"e:rou-1:{one.seq}") for one in events])
    broker = Broker()
    if over:
        await connected(consumer._serve, broker)
        assert broker.alerts() == {"round-suspended"}
        more = script([*ROUND[:2], DeviceOnline(False), SpinStarted(2)], "rou-1")[3:]
        consumer.take([msgspec.structs.replace(one, id=f"e:rou-1:{one.seq}") for one in more])
        assert consumer.journal.after(0, 100)[-1].type == "opened"
    consumer.journal.close()
    again = Consumer(parse(CONFIG), Journal(path))
    await connected(again._serve, broker)
    assert broker.alerts() == (set() if over else {"round-suspended"})
    if not over:
        alert = msgspec.json.decode(broker.kept["felt/1/s/table/rou-1/alert/round-suspended"])
        assert set(alert) == {"round", "code", "text", "severity", "remedy", "why", "to_do"}
    again.journal.close()


@virtual_time
async def test_a_round_that_goes_on_after_a_doubt_is_no_alert_any_more(tmp_path: Path) -> None:
    """Nor after a restart: no verdict says that the doubt is over, the round does."""
    config = parse(WITH_BACCARAT)
    hands: dict[str, tuple[str, ...]] = {"player": ("9D",), "banker": ("2C",)}
    events = script([CardDrawn("9D"), CardDrawn("2C"), CardUnreadable(), DealCorrected(hands)], "bac-1")
    told = [msgspec.structs.replace(one, id=f"e:bac-1:{one.seq}") for one in events]
    consumer, broker = Consumer(config, Journal(tmp_path / "rules.db")), Broker()
    consumer.take(told[:3])
    await connected(consumer._serve, broker)
    assert (consumer.view("bac-1").phase, broker.alerts()) == ("suspended", {"round-suspended"})
    consumer.take(told[3:])
    await connected(consumer._serve, broker)
    assert (consumer.view("bac-1").phase, broker.alerts()) == ("dealing", set())
    consumer.journal.close()
    again = Consumer(config, Journal(tmp_path / "rules.db"))
    await connected(again._serve, broker)
    assert broker.alerts() == set()
    again.journal.close()


# ---- what was taken out of the configuration

WITHOUT_SHAKER = CONFIG.partition('[[table.device]]\nname = "shoe-2"')[0]
WITH_BACCARAT = f"""{CONFIG}[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
"""
WITH_CUSSEC = f"""{CONFIG}[[table]]
name = "cus-1"
ruleset = "macau.cussec"
"""


@virtual_time
async def test_a_device_that_was_taken_away_leaves_nothing_on_the_broker(tmp_path: Path) -> None:
    """Else its lamp is red for ever. What stands there of others stays: those of another edge at the same table too."""
    path, broker = tmp_path / "edge.db", Broker()
    edge = Edge(parse(CONFIG), Journal(path), now=lambda: START)
    await edge.sessions[1].emit(saw(DeviceOnline(True), faulted("x.y")))  # a code that no driver has any more
    await connected(edge._serve, broker)
    edge.journal.close()
    others = {topic: payload for topic, payload in broker.kept.items() if "shoe-2" not in topic}
    assert len(others) < len(broker.kept)
    elsewhere = "felt/1/s/table/rou-1/device/camera/meta"
    broker.kept[elsewhere] = b'{"driver":"idp_dice","edge":"another"}'
    broker.kept["felt/1/s/table/rou-1/device/odd/meta"] = b"\xff"
    again = Edge(parse(WITHOUT_SHAKER), Journal(path), now=lambda: START)
    with capture_logs() as said:
        await connected(again._serve, broker)
    again.journal.close()
    assert not [topic for topic in broker.kept if "shoe-2" in topic]
    assert elsewhere in broker.kept
    assert others.keys() <= broker.kept.keys()
    assert [one["topic"] for one in said if one["event"] == "stale_topics.cleared"] == [
        "felt/1/s/table/rou-1/device/shoe-2/meta"
    ]
    assert not [one for one in said if one["event"] == "stale_topics.unread"]


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_what_was_cleared_once_may_be_anothers_at_the_next_meeting(tmp_path: Path, kind: str) -> None:
    """A device that was moved to another edge at the same table; the broker is restarted and both come back."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
    process: Edge | Consumer = Edge(parse(CONFIG), journal) if kind == "edge" else Consumer(parse(CONFIG), journal)
    topic = f"felt/1/s/table/rou-9/{'device/wheel/meta' if kind == 'edge' else 'round/state'}"
    for owner in ("ours", "another"):
        name = {"ours": "e" if kind == "edge" else "rules", "another": "another"}[owner]
        broker.kept[topic] = b'{"phase":"idle","edge":"%b","rules":"%b"}' % (name.encode(), name.encode())
        await connected(process._serve, broker)
        assert (topic in broker.kept) is (owner == "another")
    journal.close()


@virtual_time
async def test_a_table_that_was_taken_away_leaves_nothing_of_its_rounds(tmp_path: Path) -> None:
    path, broker = tmp_path / "rules.db", Broker()
    consumer = Consumer(parse(WITH_CUSSEC), Journal(path))
    events = script([DiceCovered(), DiceAgitated("lever"), DiceUncovered(), DeviceOnline(False)], "cus-1")
    consumer.take([msgspec.structs.replace(one, id=f"e:cus-1:{one.seq}") for one in events])
    await connected(consumer._serve, broker)
    consumer.journal.close()
    assert sum("/table/cus-1/" in topic for topic in broker.kept) >= 2
    elsewhere = "felt/1/s/table/bac-9/round/state"
    broker.kept[elsewhere] = b'{"round":"","phase":"idle","detail":{},"heard":{},"rules":"another"}'
    again = Consumer(parse(CONFIG), Journal(path))
    with capture_logs() as said:
        await connected(again._serve, broker)
    again.journal.close()
    assert not [topic for topic in broker.kept if "/table/cus-1/" in topic]
    assert {elsewhere, "felt/1/s/table/rou-1/round/state"} <= broker.kept.keys()
    cleared = [one["topic"] for one in said if one["event"] == "stale_topics.cleared"]
    assert cleared == ["felt/1/s/table/cus-1/round/state"]
    assert not [one for one in said if one["event"] == "stale_topics.unread"]


@virtual_time
async def test_rules_with_a_new_journal_read_the_numbers_of_rounds_from_the_broker(tmp_path: Path) -> None:
    """A replaced computer: the first round after it had the number of the first round of the day."""
    broker, rounds = Broker(), []
    for name in ("before", "after"):
        consumer = Consumer(parse(CONFIG), Journal(tmp_path / f"{name}.db"))
        await connected(consumer._serve, broker)
        events = script([SpinStarted(1), BallLanded("17")], "rou-1")
        consumer.take([msgspec.structs.replace(one, id=f"e:rou-1:{one.seq}", journal=name) for one in events])
        await connected(consumer._serve, broker)
        rounds.append(consumer.standing("rou-1").newest)
        consumer.journal.close()
    assert [one.rpartition(":")[2] for one in rounds] == ["1", "2"]


def made(kind: str, journal: Journal) -> Edge | Consumer:
    return Edge(parse(CONFIG), journal) if kind == "edge" else Consumer(parse(CONFIG), journal)


@pytest.mark.parametrize("kind", ["edge", "rules"])
@pytest.mark.parametrize("how", ["refused", "silent", "slow"])
@virtual_time
async def test_a_broker_that_lets_nobody_look_for_leftovers_is_worked_with(tmp_path: Path, kind: str, how: str) -> None:
    """An access list of an older version does not have it; mosquitto takes the subscription and gives nothing."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
    broker.glances = how
    process = made(kind, journal)
    with capture_logs() as said:
        for _ in range(2):
            task = asyncio.create_task(process._serve(broker.session))
            await asyncio.sleep(10)
            assert process.connected
            task.cancel()
            await asyncio.wait([task])
    assert [one["event"] for one in said].count("stale_topics.unread") == 1
    journal.close()


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_what_may_not_be_cleared_keeps_nobody_from_work(tmp_path: Path, kind: str) -> None:
    """An access list that lets each edge write its own tables only: it is asked once, and works on."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
    broker.refuses_clears = True
    process = made(kind, journal)
    topic = f"felt/1/s/table/rou-9/{'device/wheel/meta' if kind == 'edge' else 'round/state'}"
    broker.kept[topic] = b'{"phase":"idle","edge":"e","rules":"rules"}'
    with capture_logs() as said:
        for _ in range(3):
            await connected(process._serve, broker)
    assert topic in broker.kept
    assert [one for one, _ in broker.said].count(topic) == 1
    assert "stale_topics.cleared" not in [one["event"] for one in said]
    journal.close()


@virtual_time
async def test_a_device_that_another_edge_clears_is_said_again(tmp_path: Path) -> None:
    """It was moved here; the edge that had it before met the broker when we had said it already."""
    broker, journal = Broker(), Journal(tmp_path / "edge.db")
    edge = Edge(parse(CONFIG), journal, now=lambda: START)
    await edge.sessions[0].emit(saw(DeviceOnline(True), faulted("x.y")))
    task = asyncio.create_task(edge._serve(broker.session))
    await asyncio.sleep(10)
    before = {topic: payload for topic, payload in broker.kept.items() if "shoe" in topic and "shoe-2" not in topic}
    assert {topic.rpartition("/")[2] for topic in before} == {"meta", "state", "availability", "shoe-x-y"}
    for topic in sorted(before, key=lambda one: one.endswith("meta")):
        broker.send(topic, b"", retain=True)
    await asyncio.sleep(2)
    assert before.items() <= broker.kept.items()
    task.cancel()
    await asyncio.wait([task])
    journal.close()


@virtual_time
async def test_a_table_that_other_rules_clear_while_we_meet_the_broker_is_said_again(tmp_path: Path) -> None:
    """It was moved here; the rules that had it before saw their own state there, and cleared it after ours was said."""
    broker, journal = Broker(), Journal(tmp_path / "rules.db")
    consumer = Consumer(parse(CONFIG), journal)
    events = script([*ROUND, DeviceOnline(False)], "rou-1")
    consumer.take([msgspec.structs.replace(one, id=f"e:rou-1:{one.seq}") for one in events])
    task = asyncio.create_task(consumer._serve(broker.session))
    await asyncio.sleep(1)
    before = {topic: payload for topic, payload in broker.kept.items() if "/table/rou-1/" in topic}
    assert {topic.rpartition("/")[2] for topic in before} == {"state", "result"}
    for topic in before:
        broker.send(topic, b"", retain=True)
    await asyncio.sleep(10)
    assert before.items() <= broker.kept.items()
    task.cancel()
    await asyncio.wait([task])
    journal.close()


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_who_hears_that_another_was_forgotten_says_everything_again(tmp_path: Path, kind: str) -> None:
    """A standby said the same of the same tables, and with it that was cleared."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
    process = made(kind, journal)
    task = asyncio.create_task(process._serve(broker.session))
    await asyncio.sleep(10)
    before = dict(broker.kept)
    broker.kept.clear()
    broker.send("felt/1/s/edge/another/availability", b"", retain=True)
    await asyncio.sleep(2)
    assert broker.kept.keys() == before.keys()
    task.cancel()
    await asyncio.wait([task])
    journal.close()


# ---- the end of a process


@pytest.mark.parametrize("kind", ["edge", "rules"])
@pytest.mark.parametrize("when", ["while it subscribes", "while the window is full"])
@virtual_time
async def test_the_last_word_is_offline_wherever_it_is_stopped(tmp_path: Path, kind: str, when: str) -> None:
    """An orderly end takes the will back. Who was online a moment ago still stands there as online."""
    journal = Journal(tmp_path / "j.db")
    process: Edge | Consumer = Edge(parse(CONFIG), journal) if kind == "edge" else Consumer(parse(CONFIG), journal)
    topic = f"felt/1/s/edge/{'e' if kind == 'edge' else 'rules'}/availability"
    broker = Broker()
    await connected(process._serve, broker)
    broker.kept[topic] = b"online"  # the connection was lost; the will waits some seconds
    if when == "while it subscribes":
        broker.subscribing = asyncio.Event()
    task = asyncio.create_task(process._serve(broker.session))
    await asyncio.sleep(5)
    broker.stuck = when == "while the window is full"
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert broker.kept[topic] == b"offline"
    journal.close()


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_the_last_word_is_offline_where_it_ends_by_its_own_failure(tmp_path: Path, kind: str) -> None:
    """A disk that takes no more, or a bug: nobody is to believe for hours that it is there."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
    process = made(kind, journal)
    topic = f"felt/1/s/edge/{'e' if kind == 'edge' else 'rules'}/availability"

    async def fails(_: Session) -> None:
        await asyncio.sleep(5)
        raise BadJournal("the disk takes no more")

    process.outbox.run = fails  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(process._serve(broker.session))
    await asyncio.sleep(3)
    assert broker.kept[topic] == b"online"
    await asyncio.wait([task])
    assert task.exception() is not None
    assert broker.kept[topic] == b"offline"
    journal.close()


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_what_failed_is_no_lost_broker_though_that_goes_at_the_same_time(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Life 79001447: rules whose disk was full connected again, and wrote on without the verdict that had not fit."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
    process = made(kind, journal)
    sessions = 0

    @contextlib.asynccontextmanager
    async def connect(*_: object) -> AsyncIterator[Any]:
        nonlocal sessions
        sessions += 1
        yield broker.session

    async def until_lost() -> None:
        await asyncio.sleep(5.3)
        raise BrokerLost("gone")

    async def fails(_: Session) -> None:
        await asyncio.sleep(5)
        broker.stuck = True  # it takes no last word any more
        raise BadJournal("the disk takes no more")

    broker.session.until_lost = until_lost  # type: ignore[method-assign]
    monkeypatch.setattr(mqtt_module, "connect", connect)
    process.outbox.run = fails  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(stay_connected(Mqtt(), "x", None, process._serve, logs.get()))
    await asyncio.wait([task], timeout=60)
    ended = task.done()
    task.cancel()
    await asyncio.wait([task])
    assert ended
    error = task.exception()
    assert error is not None
    assert isinstance(logs.first(error), BadJournal)
    assert sessions == 1
    journal.close()


@virtual_time
async def test_rules_that_used_what_they_never_wrote_do_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer, broker = Consumer(parse(CONFIG), Journal(tmp_path / "rules.db")), Broker()
    events = [msgspec.structs.replace(one, id=f"e:rou-1:{one.seq}") for one in script([SpinStarted(1)], "rou-1")]

    def full(*_: object) -> None:
        raise BadJournal("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(consumer.journal, "append", full)
        with pytest.raises(BadJournal):
            consumer.take(events)
    with pytest.raises(RuntimeError, match="memory is ahead of the journal"):
        await consumer._serve(broker.session)
    consumer.journal.close()


@virtual_time
async def test_stopped_in_the_moment_in_which_the_broker_is_lost_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker and edge go down together, as when the computer is switched off."""

    class Lasting:
        async def until_lost(self) -> None:
            await asyncio.sleep(float("inf"))

    @contextlib.asynccontextmanager
    async def connect(*_: object) -> AsyncIterator[Lasting]:
        yield Lasting()

    sessions = 0

    async def serve(_session: Session) -> None:
        nonlocal sessions
        sessions += 1
        await asyncio.sleep(60)
        task.cancel()
        raise BrokerLost("gone")

    monkeypatch.setattr(mqtt_module, "connect", connect)
    task = asyncio.create_task(stay_connected(Mqtt(), "x", None, serve, logs.get()))
    await asyncio.wait([task], timeout=600)
    stopped = task.done()
    task.cancel()
    await asyncio.wait([task])
    assert stopped
    assert sessions == 1


def test_a_disk_that_is_full_at_the_start_is_said_in_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file opens, and the first thing written does not fit."""
    config = tmp_path / "feltd.toml"
    config.write_text(CONFIG.replace('name = "e"', f'name = "e"\njournal = "{tmp_path}/e.db"'))

    class Full(Journal):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            self.append = self.full  # type: ignore[method-assign, assignment]

        def full(self, *_: object) -> None:
            self.close()
            raise BadJournal("the disk is full")

    monkeypatch.setattr(journal_module, "Journal", Full)
    said = CliRunner().invoke(cli.main, ["edge", "-c", str(config)])
    assert isinstance(said.exception, SystemExit)
    assert "the disk is full" in said.output


# ---- one device's trouble


class Actor:
    """A driver that does what the test says, once, and then stays."""

    name: ClassVar[str] = "actor"
    evidence: ClassVar[tuple[Evidence, ...]] = ("manual",)
    Options: ClassVar[type[Any]] = msgspec.defstruct("Options", [], frozen=True)
    tells_cards: ClassVar[bool] = False
    failures: ClassVar[list[BaseException]] = []

    def __init__(self, options: Any, memory: bytes | None = None) -> None: ...

    async def run(self, _link: Link, emit: Emit) -> None:
        await emit(saw(DeviceOnline(True)))
        if self.failures:
            raise self.failures.pop()
        await asyncio.sleep(float("inf"))


@pytest.mark.parametrize("failure", [asyncio.CancelledError(), ValueError("name \udc80")])
@virtual_time
async def test_whatever_a_driver_fails_with_its_device_comes_back(
    tmp_path: Path, failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with the end of a task of its own that leaked out, and with words that no journal takes."""
    monkeypatch.setitem(DRIVERS, "actor", Actor)
    monkeypatch.setattr(Actor, "failures", [failure])
    config = CONFIG.replace('"fdl_console"', '"actor"')
    edge = Edge(parse(config), Journal(tmp_path / "edge.db"), now=lambda: START)

    @contextlib.asynccontextmanager
    async def opener(_url: str) -> AsyncIterator[StreamLink]:
        link = MemoryLink()
        link.received_bytes = link.sent_bytes = 0  # type: ignore[attr-defined]
        yield cast("StreamLink", link)

    session = edge.sessions[0]
    task = asyncio.create_task(supervise(session.device, session, opener, lambda: START, structlog.get_logger()))
    with capture_logs() as said:
        await asyncio.sleep(60)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [line["event"] for line in said] == ["device.online", "driver.bug", "device.lost", "device.back"]
    types = [row.type for row in edge.journal.after(0, 100)]
    assert types == ["device.online", "device.offline", "device.faulted", "device.online", "device.recovered"]
    assert not session.has_fault(BUG)
    edge.journal.close()


@pytest.mark.parametrize("journald", [True, False])
def test_journald_is_told_how_bad_it_is(tmp_path: Path, journald: bool) -> None:
    """And nobody else: to a file, the first character of a line is that of its object."""
    program = (
        "import logging; from daemon import logs; logs.set_up('debug'); log = logs.get()\n"
        "log.debug('a'); log.info('b'); log.warning('c'); log.error('d')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: log.exception('e')\n"
        "logging.getLogger('x').critical('f')\n"
    )
    path = tmp_path / "log"
    with path.open("wb") as file:
        standing = os.fstat(file.fileno())
        stream = f"{standing.st_dev}:{standing.st_ino}" if journald else "1:1"
        subprocess.run(
            [sys.executable, "-c", program], stderr=file, env=os.environ | {"JOURNAL_STREAM": stream}, check=True
        )
    lines = path.read_text(encoding="utf-8").splitlines()
    heads = ["<7>", "<6>", "<4>", "<3>", "<3>", "<2>"] if journald else [""] * 6
    assert [line.partition("{")[0] for line in lines] == heads
    said = [msgspec.json.decode(line.removeprefix(head)) for line, head in zip(lines, heads, strict=True)]
    assert [one["event"] for one in said] == list("abcdef")


def test_a_log_line_with_words_that_are_no_text_is_written() -> None:
    line = logs._encode({"event": "driver.bug", "exception": "ValueError: name \udc80", "path": Path("/x")})
    assert msgspec.json.decode(line.replace(b"\\udc80", b"")) == {
        "event": "driver.bug",
        "exception": "ValueError: name ",
        "path": "/x",
    }


@virtual_time
async def test_a_wheel_is_not_silent_while_its_events_wait_to_be_written() -> None:
    """The gate holds them for three seconds; then a chunk with half a line is read first."""
    link = MemoryLink()
    line = b"\r\n*X;2;012;17;0;200;0\r\n"
    told: list[Event] = []

    async def slow(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        told.extend(one.event for one in sightings)
        for _ in range(12):  # lines come in halves, as from a slow port
            link.feed(line[:9])
            await asyncio.sleep(0.15)
            link.feed(line[9:])
            await asyncio.sleep(0.15)

    driver = asyncio.create_task(CammeghSS2(WheelOptions()).run(link, slow))
    while not told:
        link.feed(line)
        await asyncio.sleep(0.3)
    await asyncio.sleep(4)
    assert told
    assert not driver.done(), driver.exception()
    driver.cancel()
    await asyncio.wait([driver])


# ---- links


@pytest.mark.asyncio
async def test_a_serial_server_without_power_is_noticed_though_nobody_asks_it_anything() -> None:
    """A shoe is only listened to: without probes a dead connection stands for ever, and no card comes any more."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server, open_stream(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}") as link:
        assert link._transport is not None
        sock = link._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, every, count = (
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + every * count <= 30


# ---- the picture


def verdict(seq: int, cause: str, journal: str, at: int = 0, type_: str = "resolved") -> Message:
    time = msgspec.json.decode(b'"2026-11-20T20:00:%02dZ"' % at, type=type(START))
    data = msgspec.Raw(msgspec.json.encode({"result": {"round": cause}}))
    wire = Wire("1.0", cause, "s", type_, time, seq, "", journal, False, data)
    return Message(f"felt/1/s/table/t/round/event/{type_}", encode_wire(wire))


def event(seq: int, journal: str, at: int) -> Message:
    time = msgspec.json.decode(b'"2026-11-20T20:00:%02dZ"' % at, type=type(START))
    wire = Wire("1.0", f"e:t:{seq}", "s", "wheel.started", time, seq, "", journal)
    return Message("felt/1/s/table/t/device/d/event/wheel.started", encode_wire(wire))


def test_the_picture_sees_the_events_of_an_edge_with_a_new_disk() -> None:
    """It counts from 1 again, and so do the ids of its events and of what follows from them."""
    picture = SiteState(Mqtt(), "s")
    for message in (event(1, "A", 1), event(1, "A", 1), event(1, "B", 9), event(1, "B", 9)):
        picture._look(message)
    assert picture.tables["t"].events == 2
    for message in (verdict(1, "e:t:1/0", "R", 1), verdict(2, "e:t:1/0", "R", 9)):
        picture._look(message)
    assert picture.tables["t"].resolved == 2


@virtual_time
async def test_verdicts_of_two_lives_of_an_edge_have_two_keys(tmp_path: Path) -> None:
    """The disk was replaced: the same seq come again, here at the same times. Rules and readers keep both."""
    broker, picture = Broker(), SiteState(Mqtt(), "s")
    journal = Journal(tmp_path / "rules.db")
    consumer = Consumer(parse(CONFIG), journal)
    events = script(ROUND, "rou-1")
    for life in ("before", "after"):
        consumer.take([msgspec.structs.replace(one, id=f"e:rou-1:{one.seq}", journal=life) for one in events])
    await connected(consumer._serve, broker)
    said = [Message(topic, payload) for topic, payload in broker.said if "/round/event/" in topic]
    wires = [decode_wire(one.payload) for one in said]
    ids, keys = [one.id for one in wires], [(one.cause_journal, one.id) for one in wires]
    assert len(set(ids)) < len(ids)
    assert len(set(keys)) == len(keys) == len({row.cause for row in journal.after(0, 100)})
    assert {one for one, _ in keys} == {"before", "after"}
    for message in said:
        picture._look(message)
    assert picture.tables["rou-1"].resolved == 2
    journal.close()


@virtual_time
async def test_verdicts_of_an_early_build_are_published_as_they_were(tmp_path: Path) -> None:
    broker, journal = Broker(), Journal(tmp_path / "rules.db")
    data = msgspec.json.encode({"round": "rou-1:2026-11-20:1"})
    journal.append([Entry("rou-1", "round", "opened", START, data, cause="e:rou-1:1/0")], {})
    await connected(Consumer(parse(CONFIG), journal)._serve, broker)
    first = next(payload for topic, payload in broker.said if topic.endswith("/round/event/opened"))
    wire = decode_wire(first)
    assert (wire.id, wire.cause_journal) == ("e:rou-1:1/0", msgspec.UNSET)
    assert b"cause_journal" not in first
    journal.close()


def test_what_two_rules_say_of_one_table_is_one_result() -> None:
    """A standby says the same with the same id, counted in its own journal."""
    picture = SiteState(Mqtt(), "s")
    ends: list[str] = []
    picture.on_result.append(lambda _table, _kind, result: ends.append(result.round))
    for n in range(1, 4):
        picture._look(verdict(n, f"e:t:{n}/0", "R", n))
        picture._look(verdict(n + 7, f"e:t:{n}/0", "S", n))
    assert ends == ["e:t:1/0", "e:t:2/0", "e:t:3/0"]
    assert (picture.tables["t"].resolved, len(picture.tables["t"].results)) == (3, 3)


@virtual_time
async def test_the_picture_does_not_whirl_over_a_gap_that_nobody_can_close() -> None:
    """The disk of the rules was replaced while something of the old one was missing."""
    picture = SiteState(Mqtt(), "s")
    for message in (verdict(1, "e:t:1/0", "R"), verdict(4, "e:t:4/0", "R"), verdict(9, "e:t:5/0", "S")):
        picture._look(message)

    class Rules(Broker):
        """Answers each question at once, with nothing new."""

        def __init__(self) -> None:
            super().__init__()
            self.asked = 0

        async def messages(self, at_once: object = None) -> list[Message]:
            del at_once
            await asyncio.sleep(0.1)
            seen, self.asked = self.asked, len(self.said)
            if self.asked == seen:
                await asyncio.sleep(float("inf"))
            return [Message("felt/1/s/table/t/round/cmd/replay/result", b"{}")]

    rules = Rules()
    await connected(picture._serve, rules)
    assert 0 < len(rules.said) < 6
