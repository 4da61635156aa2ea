"""The outbox and the retained topics: in order, acknowledged without holes, resent with the same id, bounded."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import pytest
from helpers import START, at_length, virtual_time
from hypothesis import given, settings, strategies as st

from daemon.broker.outbox import MOST_KEPT, PAGE, SAVED_EVERY, Outbox
from daemon.broker.retained import PAUSE_S, Retained
from daemon.broker.session import BrokerLost, Message, Session
from daemon.config.model import parse
from daemon.edge.edge import Edge
from daemon.journal.rows import Entry, Row
from daemon.journal.sent import KEY
from daemon.journal.store import Journal


class Broker:
    """The far end of a session: keeps what is published, acknowledges when the test says so."""

    def __init__(self, window: int = 10_000) -> None:
        self.published: list[tuple[str, bytes, bool]] = []
        self.flying: dict[int, Callable[[], None]] = {}
        self.lost = False
        self._window = window
        self._room = asyncio.Event()
        self.before_publish: Callable[[str], Awaitable[None]] | None = None
        self.refuses: Callable[[str], bool] = lambda _: False
        self.refused: set[int] = set()

    @property
    def session(self) -> Session:
        return cast("Session", self)

    @property
    def topics(self) -> list[str]:
        return [topic for topic, _, _ in self.published]

    async def publish(self, topic: str, payload: bytes, **options: Any) -> None:
        if self.before_publish is not None:
            await self.before_publish(topic)
        await self.until_room()
        self.send(topic, payload, **options)

    @property
    def room(self) -> bool:
        return len(self.flying) < self._window

    async def until_room(self) -> None:
        while not self.room:
            self._room.clear()
            await self._room.wait()

    def send(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        acknowledged: Callable[[], None] | None = None,
        refused: Callable[[str], None] | None = None,
        event: bool = False,  # noqa: ARG002 - as a session has it
    ) -> None:
        assert self.room
        if self.lost:
            raise BrokerLost("gone")
        if acknowledged is not None:
            self.flying[len(self.published)] = acknowledged
        if self.refuses(topic) and refused is not None:
            self.flying[len(self.published)] = partial(refused, "Not authorized")
            self.refused.add(len(self.published))
        self.published.append((topic, payload, retain))

    def flush(self) -> None:
        """All was published at once."""

    def acknowledge(self, *numbers: int) -> None:
        """The publications with these numbers, or all in flight."""
        for number in numbers or tuple(self.flying):
            self.flying.pop(number)()
        self._room.set()


def message_of(row: Row, late: bool) -> tuple[str, bytes]:
    """Topic: number and lateness; payload: the row's data."""
    return f"{row.n}{' late' if late else ''}", row.data


class Post:
    """A journal with its outbox."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path)
        self.outbox = Outbox(self.journal, message_of)

    def write(self, count: int) -> None:
        entries = [Entry("t", "d", "x", START, b"%d" % (self.journal.head + n + 1)) for n in range(count)]
        self.outbox.offer(self.journal.append(entries, self.outbox.memory()))

    def restart(self) -> None:
        self.journal.close()
        self.journal = Journal(self.path)
        self.outbox = Outbox(self.journal, message_of)


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    one = Post(tmp_path / "journal.db")
    yield one
    one.journal.close()


async def settled() -> None:
    """Everything that can happen now has happened: virtual time stands still until then."""
    await asyncio.sleep(0.001)


async def cancelled(task: asyncio.Task[None], after_s: float = 0) -> None:
    await asyncio.sleep(after_s)
    task.cancel()
    await asyncio.wait([task])


def numbers(first: int, last: int, late: str = "") -> list[str]:
    return [f"{n}{late}" for n in range(first, last + 1)]


# ---- the outbox


@pytest.mark.parametrize("seed", range(*at_length((0, 20), (0, 400))))
def test_refused_tables_wait_and_the_others_go_on(tmp_path: Path, seed: int) -> None:
    """Random refusals, restarts and lost sessions: each row arrives, and other tables never wait."""
    rng = Random(seed)
    tables = ("a", "b", "c")
    denied: set[str] = set()
    arrived: list[Row] = []

    def told(row: Row, _late: bool) -> tuple[str, bytes]:
        return row.place, b"%d" % row.n

    @virtual_time
    async def play() -> None:
        journal = Journal(tmp_path / "journal.db")
        outbox = Outbox(journal, told)
        for _ in range(rng.randint(2, 5)):
            broker = Broker(window=rng.choice([3, 10, 1000]))
            broker.refuses = denied.__contains__

            def take(broker: Broker = broker, journal: Journal = journal) -> None:
                """The broker answers to all that came, in order."""
                while broker.flying:
                    number = next(iter(broker.flying))
                    _, payload, _ = broker.published[number]
                    if number not in broker.refused:
                        arrived.append(journal.after(int(payload) - 1, 1)[0])
                    broker.acknowledge(number)

            async def answer(take: Callable[[], None] = take) -> None:
                while True:
                    take()
                    await asyncio.sleep(0.001)

            tasks = [asyncio.create_task(one) for one in (outbox.run(broker.session), answer())]
            for _ in range(rng.randint(3, 10)):
                denied.symmetric_difference_update({rng.choice(tables)} if rng.random() < 0.4 else ())
                for _ in range(rng.choice([1, 5, 300])):
                    entry = Entry(rng.choice(tables), "d", "x", START, b"1")
                    outbox.offer(journal.append([entry], outbox.memory()))
                await asyncio.sleep(rng.choice([0, 0.01, 1]))
                if rng.random() < 0.5:
                    await cancelled(asyncio.create_task(outbox.resend(broker.session)), rng.choice([0, 0.002, 2]))
            await asyncio.sleep(2)
            for free in set(tables) - denied - outbox.held:
                assert {row.seq for row in arrived if row.place == free} == {*range(1, journal.last(free) + 1)}
            for task in tasks:
                await cancelled(task)
            if rng.random() < 0.7:
                if rng.random() < 0.5 and (sent := outbox.memory(exact=True)):
                    journal.append([], sent)
                journal.close()
                journal = Journal(tmp_path / "journal.db")
                outbox = Outbox(journal, told)
        denied.clear()
        broker = Broker()

        async def answer_all() -> None:
            while True:
                for number in tuple(broker.flying):
                    arrived.append(journal.after(int(broker.published[number][1]) - 1, 1)[0])
                    broker.acknowledge(number)
                await asyncio.sleep(0.001)

        tasks = [asyncio.create_task(one) for one in (outbox.run(broker.session), answer_all())]
        await outbox.resend(broker.session)
        await asyncio.sleep(5)
        assert not outbox.held
        assert outbox.depth == 0
        for table in tables:
            assert {row.seq for row in arrived if row.place == table} == {*range(1, journal.last(table) + 1)}
        for task in tasks:
            await cancelled(task)
        journal.close()

    play()


@virtual_time
async def test_backlog_first_then_what_comes_in_order(post: Post) -> None:
    post.write(3)
    broker = Broker()
    sending = asyncio.create_task(post.outbox.run(broker.session))
    await settled()
    assert broker.topics == numbers(1, 3, " late")
    post.write(2)
    post.write(1)
    await settled()
    assert broker.topics == numbers(1, 3, " late") + numbers(4, 6)
    assert [payload for _, payload, _ in broker.published] == [b"%d" % n for n in range(1, 7)]
    assert not any(retain for _, _, retain in broker.published)
    assert (post.outbox.depth, post.outbox.cursor) == (6, 0)
    broker.acknowledge()
    assert (post.outbox.depth, post.outbox.cursor) == (0, 6)
    await cancelled(sending)


@virtual_time
async def test_the_cursor_moves_only_over_what_has_no_hole(post: Post) -> None:
    broker = Broker()
    sending = asyncio.create_task(post.outbox.run(broker.session))
    post.write(5)
    await settled()
    cursors = []
    for number in (1, 4, 0, 2, 3):
        broker.acknowledge(number)
        cursors.append(post.outbox.cursor)
    assert cursors == [0, 0, 2, 3, 5]
    await cancelled(sending)


@virtual_time
async def test_where_nothing_waits_a_row_is_sent_at_once(post: Post) -> None:
    """Before whoever wrote it goes on; without room it waits its turn, and nothing overtakes it."""
    broker = Broker(window=3)
    sending = asyncio.create_task(post.outbox.run(broker.session))
    await settled()
    post.write(1)
    assert broker.topics == ["1"]
    post.write(4)
    assert broker.topics == numbers(1, 3)
    post.write(1)
    broker.acknowledge(0)
    post.write(1)
    assert broker.topics == numbers(1, 3)
    await settled()
    assert broker.topics == numbers(1, 4)
    while broker.flying:
        broker.acknowledge()
        await settled()
    assert broker.topics == numbers(1, 7)
    post.write(1)
    assert broker.topics == numbers(1, 8)
    await cancelled(sending)
    post.write(1)
    assert broker.topics == numbers(1, 8)


@virtual_time
async def test_a_lost_broker_is_no_trouble_of_whoever_writes(post: Post) -> None:
    broker = Broker()
    sending = asyncio.create_task(post.outbox.run(broker.session))
    await settled()
    broker.lost = True
    post.write(2)
    with pytest.raises(BrokerLost):
        await sending
    assert (post.outbox.cursor, post.outbox.depth, broker.topics) == (0, 2, [])


@virtual_time
async def test_unacknowledged_rows_are_sent_again_after_a_reconnection(post: Post) -> None:
    post.write(1)
    first = Broker()
    sending = asyncio.create_task(post.outbox.run(first.session))
    await settled()
    post.write(4)
    await settled()
    first.acknowledge(0, 1, 3)  # the third may have arrived or not: nobody knows
    await cancelled(sending)
    post.write(2)  # while nobody listens
    second = Broker()
    sending = asyncio.create_task(post.outbox.run(second.session))
    await settled()
    post.write(1)
    await settled()
    assert first.topics == ["1 late", *numbers(2, 5)]
    assert second.topics == [*numbers(3, 7, " late"), "8"]
    second.acknowledge()
    assert post.outbox.depth == 0
    await cancelled(sending)


@virtual_time
async def test_a_late_word_of_an_ended_session_still_counts_and_fills_nothing(post: Post) -> None:
    post.write(3)
    first, second = Broker(), Broker()
    sending = asyncio.create_task(post.outbox.run(first.session))
    await settled()
    await cancelled(sending)
    sending = asyncio.create_task(post.outbox.run(second.session))
    first.acknowledge()
    await settled()
    second.acknowledge()
    assert post.outbox.cursor == 3
    assert not post.outbox._flying
    await cancelled(sending)


@virtual_time
async def test_a_restart_goes_on_from_what_was_written_down(post: Post) -> None:
    broker = Broker()
    sending = asyncio.create_task(post.outbox.run(broker.session))
    post.write(SAVED_EVERY + 1)
    await settled()
    broker.acknowledge(*range(SAVED_EVERY))
    post.write(1)  # carries the cursor
    await settled()
    broker.acknowledge()
    await cancelled(sending)
    post.restart()
    assert (post.outbox.cursor, post.outbox.depth) == (SAVED_EVERY, 2)
    again = Broker()
    sending = asyncio.create_task(post.outbox.run(again.session))
    await settled()
    assert again.topics == numbers(SAVED_EVERY + 1, SAVED_EVERY + 2, " late")
    await cancelled(sending)


@virtual_time
async def test_cursor_is_written_after_64_acknowledgements_and_exactly_at_the_end(post: Post) -> None:
    broker = Broker()
    sending = asyncio.create_task(post.outbox.run(broker.session))
    post.write(SAVED_EVERY)
    await settled()
    assert post.outbox.memory(exact=True) == {}
    broker.acknowledge(*range(SAVED_EVERY - 1))
    assert post.outbox.memory() == {}
    broker.acknowledge()
    assert post.outbox.memory() == {KEY: b"%d" % SAVED_EVERY}
    assert post.outbox.memory() == {}
    post.write(1)
    await settled()
    broker.acknowledge()
    assert (post.outbox.memory(), post.outbox.memory(exact=True)) == ({}, {KEY: b"%d" % (SAVED_EVERY + 1)})
    await cancelled(sending)


@virtual_time
async def test_rows_that_wait_for_room_are_kept_up_to_a_limit_and_then_read_back(post: Post) -> None:
    broker = Broker(window=10)
    sending = asyncio.create_task(post.outbox.run(broker.session))
    await settled()
    for _ in range(4):
        post.write(MOST_KEPT // 2)
        assert len(post.outbox._unsent) <= MOST_KEPT
    while len(broker.published) < 2 * MOST_KEPT:
        await settled()
        broker.acknowledge()
    assert broker.topics == numbers(1, 2 * MOST_KEPT)
    post.write(3)
    await settled()
    assert not post.outbox._unsent
    await cancelled(sending)


@virtual_time
async def test_a_lost_broker_ends_the_session_and_loses_nothing(post: Post) -> None:
    post.write(2)
    broker = Broker()
    broker.lost = True
    with pytest.raises(BrokerLost):
        await post.outbox.run(broker.session)
    assert (post.outbox.cursor, post.outbox.depth) == (0, 2)


@virtual_time
async def test_memory_stays_bounded_while_the_broker_is_away(post: Post) -> None:
    for _ in range(10):
        post.write(PAGE)
    broker = Broker(window=64)
    sending = asyncio.create_task(post.outbox.run(broker.session))
    while len(broker.published) < post.journal.head:
        await settled()
        assert len(post.outbox._flying) <= 65
        broker.acknowledge()
    assert broker.topics == numbers(1, 10 * PAGE, " late")
    broker.acknowledge()
    assert (post.outbox.depth, len(post.outbox._done), len(post.outbox._flying)) == (0, 0, 0)
    await cancelled(sending)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(1, 3 * PAGE // 2)),
            st.tuples(st.just("acknowledge"), st.integers(0, 10**6)),
            st.tuples(st.sampled_from(["all", "break", "connect", "restart"]), st.just(0)),
        ),
        max_size=25,
    )
)
@settings(max_examples=at_length(25, 300))
def test_rows_arrive_in_order_under_any_failures(steps: list[tuple[str, int]]) -> None:
    """Sessions that break, acknowledgements out of order, restarts: after the last session nothing is missing."""

    @virtual_time
    async def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            post = Post(Path(folder) / "journal.db")
            broker, sending = Broker(), None
            known: set[int] = set()
            began = post.journal.head

            async def connect() -> None:
                nonlocal broker, sending, began
                if sending is None:
                    broker, began = Broker(), post.journal.head
                    cursor = post.outbox.cursor
                    assert set(range(1, cursor + 1)) <= known
                    sending = asyncio.create_task(post.outbox.run(broker.session))
                    await settled()
                    assert broker.topics == numbers(cursor + 1, began, " late")

            async def part() -> None:
                nonlocal sending
                if sending is not None:
                    await settled()
                    sent = [int(topic.split()[0]) for topic in broker.topics]
                    assert sent == list(range(post.journal.head - len(sent) + 1, post.journal.head + 1))
                    late = [topic.endswith("late") for topic in broker.topics]
                    assert late == [n <= began for n in sent]
                    await cancelled(sending)
                    sending = None

            def acknowledge(*which: int) -> None:
                known.update(int(broker.topics[number].split()[0]) for number in which)
                broker.acknowledge(*which)

            for step, much in [*steps, ("connect", 0), ("all", 0)]:
                match step:
                    case "write":
                        post.write(much)
                        await settled()
                    case "acknowledge" if broker.flying and sending is not None:
                        acknowledge(sorted(broker.flying)[much % len(broker.flying)])
                    case "all" if broker.flying and sending is not None:
                        acknowledge(*broker.flying)
                    case "break":
                        await part()
                    case "connect":
                        await connect()
                    case "restart":
                        await part()
                        post.restart()
            await part()
            assert post.outbox.cursor == post.journal.head
            assert known == set(range(1, post.journal.head + 1))
            post.journal.close()

    body()


# ---- retained topics


@virtual_time
async def test_retained_topics_are_sent_in_the_order_in_which_they_were_first_put() -> None:
    retained, broker = Retained(), Broker()
    retained.put("b", b"1")
    retained.put("a", lambda: {"n": 1})
    retained.put("b", b"2")
    await retained.publish_all(broker.session)
    assert broker.published == [("b", b"2", True), ("a", b'{"n":1}', True)]
    await retained.publish_all(broker.session)
    assert broker.topics == ["b", "a"] * 2


@virtual_time
async def test_a_retained_topic_is_sent_when_it_changes_and_not_more_often_than_people_look() -> None:
    retained, broker = Retained(), Broker()
    count = 0
    retained.put("n", lambda: count)
    sending = asyncio.create_task(retained.run(broker.session))
    loop = asyncio.get_running_loop()
    began = loop.time()
    for count in range(1, 101):  # noqa: B007 - the lambda reads it
        retained.touch("n")
        await asyncio.sleep(0.01)
    await asyncio.sleep(2 * PAUSE_S)
    assert len(broker.published) <= (loop.time() - began) / PAUSE_S + 1
    assert broker.published[-1] == ("n", b"100", True)
    retained.put("x", b"same")
    retained.put("x", b"same")
    await asyncio.sleep(2 * PAUSE_S)
    retained.put("x", b"same")
    await asyncio.sleep(2 * PAUSE_S)
    assert broker.topics.count("x") == 1
    await cancelled(sending)


@virtual_time
async def test_a_lone_change_is_sent_at_once_and_sets_no_timer() -> None:
    retained, broker = Retained(), Broker()
    sending = asyncio.create_task(retained.run(broker.session))
    loop: Any = asyncio.get_running_loop()
    for value in (b"1", b"2"):
        retained.put("n", value)
        await settled()
        assert broker.published[-1] == ("n", value, True)
        assert not [timer for timer in loop._scheduled if not timer.cancelled()]
        await asyncio.sleep(PAUSE_S)
    await cancelled(sending)


@virtual_time
async def test_a_cleared_topic_is_cleared_once_in_a_session_and_again_in_the_next() -> None:
    retained, broker = Retained(), Broker()
    retained.put("alert/a", b"text")
    retained.put("alert/b", b"text")
    await retained.publish_all(broker.session)
    for _ in range(2):
        retained.put("alert/a", b"")
        await retained._publish(broker.session)
    assert broker.published[2:] == [("alert/a", b"", True)]
    await retained.publish_all(broker.session)  # the broker may not have heard it, or have forgotten that it did
    assert broker.published[3:] == [("alert/a", b"", True), ("alert/b", b"text", True)]


@pytest.mark.parametrize("again", [[b"again"], [b"again", b""], [b"again", b"", b"and again"]])
@virtual_time
async def test_an_alert_that_comes_back_while_it_is_cleared(again: list[bytes]) -> None:
    """The broker is slow: while the empty message waits for room, the fault is there again, and perhaps gone again."""
    retained, broker = Retained(), Broker()
    retained.put("alert", b"")

    async def comes_back(topic: str) -> None:
        broker.before_publish = None
        for value in again:
            retained.put(topic, value)

    broker.before_publish = comes_back
    await retained.publish_all(broker.session)
    assert broker.published == [("alert", b"", True), ("alert", again[-1], True)]


# ---- what the edge sends again when it is asked

CONFIG = '[site]\nname = "s"\n[edge]\nname = "e"\n[[table]]\nname = "t"\n'


class Asked:
    """An edge with ten events of a table, and what it answers."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path)
        self.edge = Edge(parse(CONFIG), self.journal)
        self.edge.append([Entry("t", "d", "ball.landed", START, b'{"pocket":"%d"}' % n) for n in range(1, 11)], {})
        self.edge.outbox._sent = self.journal.head  # the broker has them

    async def ask(self, request: bytes) -> list[tuple[str, bytes, bool]]:
        broker = Broker()
        answering = asyncio.create_task(self.edge.replay.run(broker.session))
        self.edge.replay.receive(Message("felt/1/s/table/t/cmd/replay", request))
        for _ in range(20):
            await asyncio.sleep(1)
            broker.acknowledge()
        await cancelled(answering)
        return broker.published


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    one = Asked(tmp_path / "journal.db")
    yield one
    one.journal.close()


@pytest.mark.parametrize(
    ("request_", "first", "last"),
    [
        (b'{"from":3,"to":5}', 3, 5),
        (b'{"from":8}', 8, 10),
        (b'{"from":8,"to":null,"edge":"e"}', 8, 10),
        (b'{"from":-7,"to":2}', 1, 2),
        (b'{"from":9,"to":999999999999}', 9, 10),
        (b'{"from":11}', 11, 10),
        (b'{"from":5,"to":4}', 5, 4),
    ],
)
@virtual_time
async def test_a_replay_is_what_was_asked_for_and_says_so(asked: Asked, request_: bytes, first: int, last: int) -> None:
    *events, (topic, answer, retain) = await asked.ask(request_)
    assert [topic for topic, _, _ in events] == ["felt/1/s/table/t/device/d/event/ball.landed"] * (last - first + 1)
    decoded = [msgspec.json.decode(payload) for _, payload, _ in events]
    assert [(one["seq"], one["replay"], one["data"]["pocket"]) for one in decoded] == [
        (n, True, str(n)) for n in range(first, last + 1)
    ]
    assert (topic, retain) == ("felt/1/s/table/t/cmd/replay/result", False)
    said = msgspec.json.decode(answer)
    assert said == {"edge": "e", "journal": asked.journal.name, "from": first, "to": last, "newest": 10, "oldest": 1}


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"null",
        b'{"from":1,"edge":"\xff"}',
        b'{"from":1}x',
        b'{"to":3}',
        b'{"from":"1"}',
        b'{"from":1.5}',
        b'{"from":1,"edge":"another"}',
        b'{"from":' + b"9" * 30 + b"}",
        b'{"from":-' + b"9" * 30 + b"}",
        b'{"from":1,"to":' + b"9" * 30 + b"}",
        b'{"from":1,"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
@virtual_time
async def test_a_request_that_cannot_be_meant_is_refused_and_the_edge_goes_on(asked: Asked, request_: bytes) -> None:
    assert await asked.ask(request_) == []
    assert len(await asked.ask(b'{"from":1}')) == 11
