"""Requests for a replay: coalesced, at a limited rate, live events first, in bounded memory. In virtual time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Self, cast

import msgspec
import pytest
from helpers import START, virtual_time
from hypothesis import given, strategies as st
from structlog.testing import capture_logs

from daemon import logs
from daemon.broker.gap_recovery import ASK_AGAIN, PAGE
from daemon.broker.replay_service import (
    COOLDOWN,
    MOST_RANGES,
    MOST_REQUESTS,
    PORTION,
    RATE,
    STORM,
    STORM_RATE,
    ReplayService,
    _Ranges,
)
from daemon.broker.session import BrokerLost, Message, Session
from daemon.config.model import Mqtt
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from protocols.contract.documents import ReplayAnswer

TABLES = ("a", "b", "c")
ROWS = 2000


def topic(table: str) -> str:
    return f"felt/1/s/table/{table}/round/cmd/replay"


class Broker:
    """A session that takes each message at once and acknowledges it soon, and the time at which it came."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, float]] = []
        self.answers: list[tuple[str, ReplayAnswer, float]] = []
        self.silent = False
        self.lost = False

    @property
    def session(self) -> Session:
        return cast("Session", self)

    async def publish(
        self,
        where: str,
        payload: bytes,
        *,
        acknowledged: Callable[[], None],
        refused: Callable[[str], None],  # noqa: ARG002 - it refuses nothing
        event: bool = False,
    ) -> None:
        if self.lost:
            raise BrokerLost("gone")
        now = asyncio.get_running_loop().time()
        if event:
            self.rows.append((where, int(payload), now))
        else:
            self.answers.append((where.split("/")[4], msgspec.json.decode(payload, type=ReplayAnswer), now))
        if not self.silent:
            asyncio.get_running_loop().call_soon(acknowledged)

    def seqs(self, table: str = "a") -> list[int]:
        return [seq for place, seq, _ in self.rows if place == table]

    def said(self, table: str = "a") -> list[tuple[int, int]]:
        return [(said.first, said.last) for place, said, _ in self.answers if place == table]


class Place:
    """A service with ROWS rows of each table, and whether its outbox is busy."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path)
        for table in TABLES:
            self.journal.append([Entry(table, "d", "x", START, b"{}") for _ in range(ROWS)])
        self.busy = False
        self.service = ReplayService(
            "w", self.journal, map(topic, TABLES), self._message_of, lambda: self.busy, logs.get()
        )
        self.broker = Broker()

    def _message_of(self, row: Row, late: bool) -> tuple[str, bytes]:
        assert late
        return row.place, b"%d" % row.seq

    def ask(self, first: int, last: int | None = None, table: str = "a") -> None:
        self.service.receive(
            Message(topic(table), b'{"from":%d%s}' % (first, b"" if last is None else b',"to":%d' % last))
        )

    async def answer_for(self, seconds: float) -> None:
        task = asyncio.create_task(self.service.run(self.broker.session))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path / "journal.db")
    yield one
    one.journal.close()


# ---- sets of seqs

SEQ = st.integers(1, 400)


@given(st.lists(st.tuples(st.booleans(), SEQ, SEQ), max_size=40), SEQ, SEQ)
def test_ranges_are_a_set_of_seqs(steps: list[tuple[bool, int, int]], one: int, other: int) -> None:
    ranges, expected = _Ranges(), set[int]()
    for add, *ends in steps:
        first, last = min(ends), max(ends)
        (ranges.add if add else ranges.remove)(first, last)
        (expected.update if add else expected.difference_update)(range(first, last + 1))
        assert all(before[1] + 1 < after[0] for before, after in zip(ranges.spans, ranges.spans[1:], strict=False))
    assert {seq for first, last in ranges.spans for seq in range(first, last + 1)} == expected
    first, last = min(one, other), max(one, other)
    inside = {seq for start, end in ranges.inside(first, last) for seq in range(start, end + 1)}
    assert inside == {seq for seq in expected if first <= seq <= last}


@given(st.lists(st.integers(1, 10**9), max_size=300))
def test_scattered_ranges_stay_few_and_lose_nothing(seqs: list[int]) -> None:
    ranges = _Ranges()
    for seq in seqs:
        ranges.add(seq, seq)
    assert len(ranges.spans) <= MOST_RANGES
    assert all(ranges.inside(seq, seq) == [(seq, seq)] for seq in seqs)


# ---- what is published


@virtual_time
async def test_a_request_is_answered_in_order_and_once(place: Place) -> None:
    place.ask(1200, 1290)
    await place.answer_for(10)
    assert place.broker.seqs() == list(range(1200, 1291))
    assert place.broker.said() == [(1200, 1290)]


@virtual_time
async def test_many_requests_for_one_range_are_one_answer_a_second(place: Place) -> None:
    seconds = 10

    async def storm() -> None:
        for _ in range(300 * seconds):
            place.ask(11, 30)
            await asyncio.sleep(1 / 300)

    async with asyncio.TaskGroup() as group:
        group.create_task(storm())
        await place.answer_for(seconds)
    assert set(Counter(place.broker.seqs())) == set(range(11, 31))
    assert max(Counter(place.broker.seqs()).values()) <= seconds / COOLDOWN + 1
    assert seconds / COOLDOWN / 2 <= len(place.broker.said()) <= seconds / COOLDOWN + 1


@virtual_time
async def test_overlapping_requests_are_one_sweep(place: Place) -> None:
    """Thirty thousand distinct ranges of a table with 2000 rows: each row once, as they come at once."""
    rng = Random(1)
    for _ in range(30_000):
        first = rng.randrange(1, ROWS)
        place.ask(first, first + rng.randrange(PAGE))
    place.ask(1, 500)
    await place.answer_for(60)
    assert max(Counter(place.broker.seqs()).values()) == 1
    assert len(place.broker.seqs()) == ROWS
    assert len(place.broker.said()) == MOST_REQUESTS


@virtual_time
async def test_rows_and_answers_never_come_faster_than_the_quota(place: Place) -> None:
    for table in TABLES:
        for first in range(1, ROWS, 40):
            place.ask(first, first + 20, table)
    await place.answer_for(60)
    times = sorted([at for *_, at in place.broker.rows] + [at for *_, at in place.broker.answers])
    most = max(sum(1 for one in times if at <= one < at + 0.1) for at in times)
    assert most <= 0.1 * RATE + 3 * PORTION
    assert len(times) > 3000


@virtual_time
async def test_in_a_storm_the_quota_is_smaller_and_a_reader_still_gets_its_gap(place: Place) -> None:
    """The reader's gap is among the newest rows; the storm wants all, again and again, in distinct ranges."""
    rng = Random(1)
    came: list[float] = []

    async def storm() -> None:
        for _ in range(600):
            for _ in range(50):
                first = rng.randrange(1, ROWS)
                place.ask(first, first + rng.randrange(PAGE), rng.choice(TABLES))
            await asyncio.sleep(0.05)

    async def reader() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(5)
        for first in (1990, 1, 1000):
            began = loop.time()
            missing = set(range(first, first + 10))
            while missing:
                before = len(place.broker.rows)
                place.ask(first, first + 9)
                await asyncio.sleep(ASK_AGAIN)
                missing -= {seq for table, seq, _ in place.broker.rows[before:] if table == "a"}
            came.append(loop.time() - began)

    with capture_logs() as told:
        async with asyncio.TaskGroup() as group:
            group.create_task(storm())
            group.create_task(reader())
            await place.answer_for(120)
    storm_lasted = [at for *_, at in place.broker.rows if 2 <= at < 30]
    assert len(storm_lasted) <= 28 * STORM_RATE * 1.1
    assert max(came) <= 2 * len(TABLES) * ROWS / STORM_RATE
    assert [entry["event"] for entry in told] == ["replay.storm", "replay.storm_over"]
    assert told[1]["requests"] > 30_000 - STORM


@virtual_time
async def test_each_table_has_its_turn(place: Place) -> None:
    """A table of which everything is wanted does not keep another waiting."""
    for first in range(1, ROWS, PAGE):
        place.ask(first)
    place.ask(1, 8, "c")
    await place.answer_for(1)
    assert place.broker.seqs("c") == list(range(1, 9))
    assert [where for where, *_ in place.broker.rows].index("c") <= PORTION


@virtual_time
async def test_live_events_go_first(place: Place) -> None:
    """While the outbox has something to send nothing is published again; then it goes on."""
    place.ask(1)
    place.busy = True
    task = asyncio.create_task(place.answer_for(10))
    await asyncio.sleep(5)
    assert place.broker.rows == []
    place.busy = False
    await asyncio.sleep(0.05)
    assert 0 < len(place.broker.rows) < PAGE
    place.busy = True
    await asyncio.sleep(0.05)
    before = len(place.broker.rows)
    await asyncio.sleep(1)
    assert len(place.broker.rows) == before
    place.busy = False
    await task
    assert place.broker.seqs() == list(range(1, PAGE + 1))


@virtual_time
async def test_no_more_than_a_portion_is_in_flight(place: Place) -> None:
    """A slow broker has one portion before a live event, and no window full."""
    place.broker.silent = True
    place.ask(1)
    await place.answer_for(10)
    assert len(place.broker.rows) == PORTION


@virtual_time
async def test_a_lost_session_loses_no_request(place: Place) -> None:
    place.ask(1, 100)
    place.broker.silent = True
    await place.answer_for(10)
    place.broker.silent = False
    place.broker.lost = True
    with pytest.raises(ExceptionGroup) as lost:
        await place.service.run(place.broker.session)
    assert isinstance(logs.first(lost.value), BrokerLost)
    place.broker.lost = False
    await place.answer_for(10)
    assert place.broker.seqs()[-100:] == list(range(1, 101))
    assert place.broker.said() == [(1, 100)]


@virtual_time
async def test_memory_of_a_replay_storm_is_bounded(place: Place) -> None:
    """Nothing is published meanwhile, so that nothing is taken out of it."""
    rng = Random(1)
    for _ in range(30_000):
        first = rng.randrange(-(2**53), 2**53)
        place.ask(first, first + rng.randrange(3), rng.choice(TABLES))
        place.ask(rng.randrange(1, ROWS), rng.randrange(1, 2 * ROWS), rng.choice(TABLES))
    for wanted in place.service._wanted.values():
        assert len(wanted._asked) <= MOST_REQUESTS
        assert len(wanted._now.spans) + len(wanted._later.spans) <= 2 * MOST_RANGES
        assert max(last for _, last in wanted._now.spans) <= ROWS + 1


@virtual_time
async def test_unreadable_requests_cost_one_line_and_nothing_else(place: Place) -> None:
    with capture_logs() as told:
        for n in range(STORM - 1):
            place.service.receive(Message(topic("a"), b'{"from":"%d"' % n))
            await asyncio.sleep(0.001)
        place.service.receive(Message(topic("a"), b'{"from":1,"edge":"' + b"x" * 2000 + b'"}'))
        await place.answer_for(60)
    assert [entry["event"] for entry in told] == ["command.refused", "replay.storm", "replay.storm_over"]
    assert told[2]["unreadable"] == STORM
    assert not place.broker.rows
    assert not place.broker.answers


@pytest.mark.parametrize("where", ["felt/1/s/table/x/round/cmd/replay", "felt/1/s/table/a/cmd/replay", "x"])
@virtual_time
async def test_a_request_for_a_table_that_is_not_ours_is_left_alone(place: Place, where: str) -> None:
    place.service.receive(Message(where, b'{"from":1}'))
    await place.answer_for(10)
    assert not place.broker.rows
    assert not place.broker.answers


# ---- its own connection


class Apart:
    """The broker as the service's own connection meets it."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[Message] = asyncio.Queue()
        self.met: list[tuple[Mqtt, str]] = []
        self.filters: tuple[str, ...] = ()
        self.gone = False

    def connect(self, settings: Mqtt, identifier: str, will: object) -> Any:
        assert will is None
        self.met.append((settings, identifier))
        return self

    async def __aenter__(self) -> Self:
        if self.gone:
            raise BrokerLost("Not authorized")
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    def set_read_interval(self, pause: float) -> None:
        assert pause > 0

    async def subscribe(self, *topics: str) -> None:
        self.filters = topics

    async def messages(self, most: int) -> list[Message]:
        found = [await self.requests.get()]
        while len(found) < most and not self.requests.empty():
            found.append(self.requests.get_nowait())
        return found

    async def until_lost(self) -> None:
        while not self.gone:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        raise BrokerLost("the broker closed the connection")


@virtual_time
async def test_requests_are_heard_on_a_connection_of_their_own(place: Place) -> None:
    apart = Apart()
    listening = asyncio.create_task(place.service.listen(Mqtt(), "feltd-rules-x", apart.connect))
    await asyncio.sleep(0)
    with capture_logs() as told:
        await place.service.until_subscribed()
        assert apart.filters == tuple(map(topic, TABLES))
        assert apart.met == [(Mqtt(), "feltd-rules-x-replay")]
        apart.requests.put_nowait(Message(topic("b"), b'{"from":7,"to":9}'))
        await place.answer_for(5)
    assert place.broker.seqs("b") == [7, 8, 9]
    assert told == []  # the live connection says what there is to say of the broker
    listening.cancel()
    await asyncio.wait([listening])


@virtual_time
async def test_a_session_does_not_wait_long_for_the_requests_and_says_that_they_are_not_heard(place: Place) -> None:
    apart = Apart()
    apart.gone = True
    listening = asyncio.create_task(place.service.listen(Mqtt(), "feltd-rules-x", apart.connect))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await place.service.until_subscribed()
    assert loop.time() - began <= 2
    with capture_logs() as told:
        serving = asyncio.create_task(place.answer_for(200))
        await asyncio.sleep(100)
        apart.gone = False
        await serving
    assert [(entry["event"], entry.get("reason")) for entry in told] == [
        ("replay.unheard", "Not authorized"),
        ("replay.heard", None),
    ]
    listening.cancel()
    await asyncio.wait([listening])
