"""The rules consumer: each event once and in order whatever the way does, and the same rows wherever it is killed."""

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, cast

import mqtt5
import msgspec
import pytest
from helpers import START, at_length, script, virtual_time
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec.structs import replace
from structlog.testing import capture_logs

from daemon import logs
from daemon.broker import process as process_module
from daemon.broker.gap_recovery import BUFFER, PAGE, Stream
from daemon.broker.mqtt5_session import Mqtt5Session
from daemon.broker.session import Message, Session
from daemon.config.model import parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import HEALTH_EVERY, Edge
from daemon.journal.rows import Entry, Row
from daemon.journal.store import BadJournal, Journal
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    CardDrawn,
    DeviceOnline,
    DiceAgitated,
    DiceCovered,
    DiceRead,
    DiceUncovered,
    Event,
    RoundPaid,
    RoundVoided,
    SpinMissed,
    SpinStarted,
    SpinVoided,
    WagerPlaced,
    encode_data,
    type_of,
)
from protocols.contract.topics import Envelope, decode_envelope, encode_envelope
from rules import RULESETS
from tests.rules.test_rulesets import NIGHTS, every_game

CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[table.options]
betting = "no_more_bets"
[[table]]
name = "cus-1"
ruleset = "macau.cussec"
[[table]]
name = "no-game"
"""

SPIN: tuple[Event, ...] = (
    SpinStarted(1),
    WagerPlaced(1, "red", 100),
    BallLaunched("clockwise", "anticlockwise"),
    BallSettling(),
    BallLanded("17"),
    RoundPaid(),
)
THROW: tuple[Event, ...] = (
    DiceCovered(),
    DiceAgitated("lever", 3),
    BetsOpened(),
    BetsClosed(),
    DiceUncovered(),
    DiceRead((1, 2, 3)),
    RoundPaid(),
)
ODD: tuple[Event, ...] = (SpinMissed(2), SpinVoided("x"), RoundVoided(), DeviceOnline(False), DiceRead((4, 4, 4), 1))


def night(rng: Random, table: str, rounds: int, *, journal: str = "A", edge: str = "e") -> list[Envelope]:
    """Rounds with things that go wrong, as envelopes of one journal."""
    events: list[Event] = []
    for _ in range(rounds):
        for event in SPIN if table.startswith("rou") else THROW:
            if rng.random() > 0.08:
                events.append(BallLanded(str(rng.randrange(37))) if isinstance(event, BallLanded) else event)
            if rng.random() < 0.08:
                events.append(rng.choice(ODD))
    return [replace(one, id=f"{edge}:{table}:{one.seq}", journal=journal) for one in script(events, table)]


def test_what_others_overtook_comes_over_the_wire_as_such_and_its_round_waits(path: Path) -> None:
    """The bell was told after the dome was lifted: a throw that counts, if it stood in its place."""
    events = [replace(one, overtaken=1500) if isinstance(one, BetsClosed) else one for one in THROW]
    told = [encode_envelope(replace(one, id=f"e:cus-1:{one.seq}")) for one in script(events, "cus-1")]
    consumer = started(path)
    consumer.take(map(decode_envelope, told))
    assert [row.type for row in rows(consumer.journal)["cus-1"]] == ["opened", "suspended"]
    assert consumer.view("cus-1").phase == "suspended"
    consumer.journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.db"


def started(path: Path) -> Consumer:
    return Consumer(parse(CONFIG), Journal(path))


def topic_of(envelope: Envelope) -> str:
    """Where its edge publishes it."""
    return f"{envelope.source}/event/{type_of(envelope.event)}"


def rows(journal: Journal) -> dict[str, list[Row]]:
    """By table, without the count over all tables, which depends on who came first."""
    found: dict[str, list[Row]] = {}
    for row in journal.after(0, 1_000_000):
        found.setdefault(row.place, []).append(replace(row, n=0))
    return found


def reference(*streams: Sequence[Envelope]) -> dict[str, list[Row]]:
    """What comes out where nothing goes wrong."""
    with tempfile.TemporaryDirectory() as folder:
        consumer = started(Path(folder) / "rules.db")
        for stream in streams:
            consumer.take(stream)
        found = rows(consumer.journal)
        consumer.journal.close()
        return found


# ---- one stream

EVENTS = [replace(one, journal="A") for one in script([SpinStarted(n % 256) for n in range(1, 121)])]


@given(
    st.lists(st.integers(0, len(EVENTS) - 1), max_size=300),
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.3, 0.9]),
)
@settings(max_examples=at_length(25, 500))
def test_each_event_once_and_in_order_however_it_comes(order: list[int], rng: Random, loss: float) -> None:
    """Any order, any repetition, any loss; then the gaps are replayed over a way that loses as much."""
    stream: Stream[Envelope] = Stream()
    got = [one for number in order for one in stream.take(EVENTS[number])]
    last = len(EVENTS)
    while stream.expected <= last:
        first, until = stream.gap or (stream.expected, last)
        assert first == stream.expected
        for envelope in EVENTS[first - 1 : until]:
            if rng.random() >= loss:
                got += stream.take(envelope)
    assert got == EVENTS
    assert stream.gap is None
    assert [one for envelope in EVENTS for one in stream.take(envelope)] == []


def test_a_gap_is_what_stands_before_the_first_that_waits() -> None:
    stream: Stream[Envelope] = Stream(5)
    gaps: list[tuple[int, int] | None] = []
    for seq in (10, 7, 5, 6):
        stream.take(EVENTS[seq - 1])
        gaps.append(stream.gap)
    assert gaps == [(5, 9), (5, 6), (6, 6), (8, 9)]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_waits_is_bounded_and_the_nearest_is_kept(seed: int) -> None:
    many = [replace(EVENTS[0], seq=seq) for seq in range(2, 3 * BUFFER)]
    if seed:
        Random(seed).shuffle(many)
    stream: Stream[Envelope] = Stream()
    for envelope in many:
        assert stream.take(envelope) == []
        assert len(stream._early) <= BUFFER
    got = stream.take(replace(EVENTS[0], seq=1))
    assert [one.seq for one in got] == list(range(1, BUFFER + 2))


# ---- many streams at once


@given(st.integers(0, 10**6), st.data())
@settings(max_examples=25)
def test_any_interleaving_gives_the_same_rows(seed: int, data: st.DataObject) -> None:
    """Tables mixed, batches of any size, duplicates, and everything once more at the end."""
    rng = Random(seed)
    roulette, dice = night(rng, "rou-1", 6), night(rng, "cus-1", 5)
    mixed = sorted(
        [*roulette, *dice], key=lambda one: (one.seq + rng.uniform(0, data.draw(st.integers(0, 20))), one.id)
    )
    mixed += rng.sample(mixed, len(mixed) // 2)
    mixed += [*roulette, *dice]
    with tempfile.TemporaryDirectory() as folder:
        consumer = started(Path(folder) / "rules.db")
        while mixed:
            size = rng.randint(1, 15)
            consumer.take(mixed[:size])
            del mixed[:size]
        assert rows(consumer.journal) == reference(roulette, dice)
        consumer.journal.close()


def test_rows_say_where_they_come_from(path: Path) -> None:
    consumer = started(path)
    consumer.take([replace(one, id=f"e:rou-1:{one.seq}") for one in script(SPIN, "rou-1")])
    found = rows(consumer.journal)["rou-1"]
    assert [row.type for row in found] == ["opened", "bets-closed", "resolved"]
    assert [row.cause for row in found] == ["e:rou-1:1/0", "e:rou-1:4/0", "e:rou-1:5/0"]
    assert [row.seq for row in found] == [1, 2, 3]
    result = msgspec.json.decode(found[2].data)["result"]
    assert result["outcome"]["pocket"] == "17"
    assert result["evidence"] == [f"e:rou-1:{n}" for n in range(1, 6)]
    assert [one["returned"] for one in result["settlements"]] == [0]
    consumer.journal.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "e:nobody:1"},
        {"id": "e:no-game:1"},
        {"id": ""},
        {"id": "rou-1:1"},
        {"id": ":rou-1:1"},
        {"seq": 0},
        {"seq": -5},
        {"id": "e/x:rou-1:1"},
        {"journal": "A/B"},
    ],
)
def test_what_is_no_event_of_ours_changes_nothing(path: Path, changes: dict[str, Any]) -> None:
    consumer = started(path)
    good = night(Random(1), "rou-1", 2)
    consumer.take([replace(good[0], **changes)])
    consumer.take(good)
    assert rows(consumer.journal) == reference(good)
    consumer._commit([])
    consumer.journal.close()
    again = started(path)  # nor does it stand in the way of the next start
    assert set(again._streams) == {("e", "A", "rou-1")}
    again.journal.close()


# ---- another journal


def test_an_edge_with_a_new_disk_counts_from_one_again(path: Path) -> None:
    """Old events are done; the new ones are new, though their numbers were there before."""
    before, after = night(Random(1), "rou-1", 4), night(Random(2), "rou-1", 3, journal="B")
    consumer = started(path)
    consumer.take(before)
    count = len(rows(consumer.journal)["rou-1"])
    consumer.take(after)
    assert set(consumer._streams) == {("e", "B", "rou-1")}
    found = rows(consumer.journal)["rou-1"]
    assert len(found) > count
    consumer.take(after)
    assert rows(consumer.journal)["rou-1"] == found
    consumer._commit([])
    consumer.journal.close()
    again = started(path)
    assert {key: stream.expected for key, stream in again._streams.items()} == {("e", "B", "rou-1"): len(after) + 1}
    again.take(after)
    assert rows(again.journal)["rou-1"] == found
    again.journal.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_an_old_disk_put_back_goes_on_where_it_was(path: Path, restarts: bool) -> None:
    first, second = night(Random(1), "rou-1", 6), night(Random(2), "rou-1", 2, journal="B")
    half = len(first) // 2
    consumer = started(path)
    for part in (first[:half], second, first, second[:1], first[-1:]):
        consumer.take(part)
        if restarts:
            consumer._commit([])
            consumer.journal.close()
            consumer = started(path)
    assert rows(consumer.journal) == reference(first[:half], second, first[half:])
    consumer.journal.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_an_edge_that_is_called_otherwise_tells_the_same_past(path: Path, restarts: bool) -> None:
    """Its journal is who it is: renamed, and back again, no round is resolved twice."""
    nights = night(Random(1), "rou-1", 9)
    half = len(nights) // 2
    consumer = started(path)
    consumer.take(nights[:half])
    for edge in ("f", "e", "f"):
        if restarts:
            consumer._commit([])
            consumer.journal.close()
            consumer = started(path)
        consumer.take([replace(one, id=f"{edge}:rou-1:{one.seq}") for one in nights[:half]])
        assert set(consumer._streams) == {(edge, "A", "rou-1")}
    assert rows(consumer.journal) == reference(nights[:half])
    consumer.take([replace(one, id=f"f:rou-1:{one.seq}") for one in nights])
    assert [row.type for row in rows(consumer.journal)["rou-1"]] == [row.type for row in reference(nights)["rou-1"]]
    consumer.journal.close()


# ---- killed


class Killed(BaseException):
    """The process ends here; nothing after it runs."""


class Mortal:
    """Kills at the n-th commit from now, just before it or just after."""

    def __init__(self, journal: Journal, commits: int, after: bool) -> None:
        self._append = journal.append
        self._left = commits
        self._after = after
        journal.append = self  # type: ignore[method-assign, assignment]

    def __call__(self, entries: Sequence[Entry], memory: dict[str, bytes]) -> list[Row]:
        self._left -= 1
        if self._left > 0:
            return self._append(entries, memory)
        if self._after:
            self._append(entries, memory)
        raise Killed


@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=8),
    st.integers(1, 40),
    st.booleans(),
)
@settings(max_examples=at_length(8, 300))
def test_killed_between_any_two_steps_the_rows_are_the_same(
    seed: int, kills: list[tuple[int, bool]], size: int, idle: bool
) -> None:
    """After each kill all events come again from the first: no verdict twice, none missing, byte for byte."""
    rng = Random(seed)
    roulette, dice = night(rng, "rou-1", 6), night(rng, "cus-1", 5)
    events = sorted([*roulette, *dice], key=lambda one: (one.seq, one.id))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.db"
        for commits, after in [*kills, (10**9, False)]:
            consumer = started(path)
            Mortal(consumer.journal, commits, after)
            try:
                for first in range(0, len(events), size):
                    consumer.take(events[first : first + size])
                    if idle:
                        consumer._commit([])  # as every two seconds
            except Killed:
                pass
            consumer.journal.close()
        journal = Journal(path)
        assert rows(journal) == reference(roulette, dice)
        journal.close()


def test_what_was_told_was_durable_before(path: Path) -> None:
    """Killed just before the commit, nobody heard of the verdict."""
    events = night(Random(3), "rou-1", 3)
    heard: list[tuple[str, str]] = []
    consumer = started(path)
    consumer.on_verdict = lambda table, verdict: heard.append((table, type(verdict).__name__))
    Mortal(consumer.journal, 2, False)

    def takes() -> None:
        for one in events:
            consumer.take([one])

    with pytest.raises(Killed):
        takes()
    written = rows(consumer.journal)["rou-1"]
    assert len(heard) == len(written) == consumer.outbox.depth
    consumer.journal.close()


async def ended(consumer: Consumer, monkeypatch: pytest.MonkeyPatch, serve: Callable[[], None]) -> None:
    """The process runs until `serve` ends it, or until it is told to end."""

    async def stay(*_: object) -> None:
        serve()
        await asyncio.sleep(float("inf"))

    async def listen(*_: object) -> None:
        await asyncio.sleep(float("inf"))

    monkeypatch.setattr(process_module, "stay_connected", stay)
    monkeypatch.setattr(consumer.replay, "listen", listen)
    task = asyncio.create_task(consumer.run())
    await asyncio.sleep(1)
    task.cancel()
    try:
        await task
    except BaseExceptionGroup as group:
        raise logs.first(group) from group


@virtual_time
async def test_an_orderly_end_writes_the_position_down(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = script([RoundPaid()] * 5, "rou-1")
    consumer = started(path)
    with pytest.raises(asyncio.CancelledError):
        await ended(
            consumer, monkeypatch, lambda: consumer.take([replace(one, id=f"e:rou-1:{one.seq}") for one in events])
        )
    consumer.journal.close()
    again = started(path)
    assert [stream.expected for stream in again._streams.values()] == [6]
    again.journal.close()


@pytest.mark.parametrize("how", ["the disk", "a bug"])
@virtual_time
async def test_a_failure_in_the_middle_of_a_batch_loses_no_verdict(
    path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The process ends; what it had worked out and not written is worked out again."""
    events = night(Random(5), "rou-1", 4)
    consumer = started(path)
    consumer.take(events[:3])
    if how == "the disk":
        append, failed = consumer.journal.append, False

        def fails_once(entries: Any, memory: Any = None) -> list[Row]:
            nonlocal failed
            if not failed:
                failed = True
                raise BadJournal("disk full")
            return append(entries, memory)

        monkeypatch.setattr(consumer.journal, "append", fails_once)
    else:
        ruleset = consumer._tables["rou-1"].ruleset
        apply = ruleset.apply

        def fails_late(state: Any, seen: Envelope) -> Any:
            if seen.seq == len(events) - 1:
                raise ZeroDivisionError
            return apply(state, seen)

        monkeypatch.setattr(ruleset, "apply", fails_late)
    with pytest.raises((BadJournal, ZeroDivisionError)):
        await ended(consumer, monkeypatch, lambda: consumer.take(events))
    consumer.journal.close()
    again = started(path)
    again.take(events)
    assert rows(again.journal) == reference(events)
    again.journal.close()


# ---- another configuration, another version


ONE_TABLE = '[site]\nname = "s"\n[edge]\nname = "e"\n[[table]]\nname = "t-1"\nruleset = "{}"\n'


@every_game
@given(
    nights=st.lists(NIGHTS, min_size=2, max_size=3), other=st.sampled_from(["", *RULESETS]), restarts=st.integers(1, 2)
)
@settings(max_examples=at_length(5, 150), suppress_health_check=[HealthCheck.too_slow])
def test_what_was_open_where_the_rules_changed_is_void_and_no_number_comes_twice(
    name: str, nights: list[list[Event]], other: str, restarts: int
) -> None:
    """A table that plays another game for an evening, or a state that another version wrote and this cannot read."""
    unreadable = other in ("", name)
    rulesets = [name, name if unreadable else other, name][: len(nights)]
    told = [replace(one, id=f"e:t-1:{one.seq}", journal="A") for one in script([*chain(*nights)], "t-1")]
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "rules.db")
        for ruleset, events in zip(rulesets, nights, strict=True):
            for _ in range(restarts):
                consumer = Consumer(parse(ONE_TABLE.format(ruleset)), journal)
            assert consumer.view("t-1").round == ""
            ended = [row for row in journal.after(0, 10**6) if row.type in ("resolved", "voided")]
            opened = [row for row in journal.after(0, 10**6) if row.type == "opened"]
            ids = [msgspec.json.decode(row.data)["round"] for row in opened]
            assert sorted(ids) == sorted(msgspec.json.decode(row.data)["result"]["round"] for row in ended)
            assert len(set(ids)) == len(ids)
            consumer.take(told[: len(events)])
            told = told[len(events) :]
            consumer._commit([])
            if unreadable:
                journal.append((), {"state/t-1": b'{"ruleset":"%s","state":{"table":7}}' % name.encode()})
        causes = [row.cause for row in journal.after(0, 10**6)]
        assert len(set(causes)) == len(causes)
        journal.close()


def test_a_coup_under_way_where_the_rules_changed_has_an_end_and_its_cards_are_no_other_coups(path: Path) -> None:
    """Without a bell the next card would be taken for the first of a new coup, under the number of an old one."""
    config = parse(ONE_TABLE.format("macau.baccarat"))
    coup = [CardDrawn(card) for card in ("9S", "2H", "TS", "4H")]
    events = script([*coup, *coup[:2], *coup[2:], *coup], "t-1")
    told = [replace(one, id=f"e:t-1:{one.seq}", journal="A") for one in events]
    consumer = Consumer(config, Journal(path))
    consumer.take(told[:6])
    assert [row.type for row in rows(consumer.journal)["t-1"]].count("resolved") == 1
    consumer._commit([])
    consumer.journal.append((), {"state/t-1": b"{}"})
    consumer.journal.close()
    consumer = Consumer(config, Journal(path))
    consumer.take(told)
    kinds = [row.type for row in rows(consumer.journal)["t-1"]]
    assert (kinds.count("resolved"), kinds.count("voided")) == (1, 1)
    assert consumer.view("t-1").phase == "suspended"
    consumer.journal.close()


COMMISSION = '[table.options]\ncommission = "{}"\n'


@pytest.mark.parametrize(("cards", "voided"), [(3, 1), (4, 0)])
def test_a_coup_is_not_ended_by_options_under_which_it_was_not_begun(path: Path, cards: int, voided: int) -> None:
    """Other odds, in the middle of a coup: it is void. Between two coups the shoe goes on."""
    before, after = (
        parse(ONE_TABLE.format("macau.baccarat") + COMMISSION.format(one)) for one in ("5_percent", "dragon_7_push")
    )
    events = script([BetsOpened(), *map(CardDrawn, ("9S", "2H", "TS", "4H")[:cards])], "t-1")
    told = [replace(one, id=f"e:t-1:{one.seq}", journal="A") for one in events]
    consumer = Consumer(before, Journal(path))
    burnt = consumer.view("t-1")
    consumer.take(told)
    consumer._commit([])
    state = consumer._tables["t-1"].state
    consumer.journal.close()
    for config in (before, after, after):
        consumer = Consumer(config, Journal(path))
        kinds = [row.type for row in consumer.journal.after(0, 100)]
        assert kinds.count("voided") == voided * (config is after)
        assert (consumer._tables["t-1"].state == state) == (config is before or not voided)
        consumer.journal.close()
    assert burnt.phase == "idle"


@pytest.mark.parametrize(("cards", "voided"), [(3, 1), (4, 0)])
def test_an_option_that_is_no_more_ends_what_is_open_and_nothing_else(path: Path, cards: int, voided: int) -> None:
    config = parse(ONE_TABLE.format("macau.baccarat"))
    events = script([BetsOpened(), *map(CardDrawn, ("9S", "2H", "TS", "4H")[:cards])], "t-1")
    consumer = Consumer(config, Journal(path))
    consumer.take([replace(one, id=f"e:t-1:{one.seq}", journal="A") for one in events])
    consumer._commit([])
    state = consumer._tables["t-1"].state
    consumer.journal.append((), {"options/t-1": b'{"gone":true}'})
    consumer.journal.close()
    consumer = Consumer(config, Journal(path))
    assert [row.type for row in consumer.journal.after(0, 100)].count("voided") == voided
    assert (consumer._tables["t-1"].state == state) == (not voided)
    consumer.journal.close()


def test_an_option_that_another_version_adds_is_no_other_option(path: Path) -> None:
    config = parse(ONE_TABLE.format("macau.baccarat"))
    consumer = Consumer(config, Journal(path))
    opened: list[Event] = [BetsOpened(), CardDrawn("9S")]
    consumer.take([replace(one, id=f"e:t-1:{one.seq}", journal="A") for one in script(opened, "t-1")])
    consumer._commit([])
    kept = msgspec.json.decode(consumer.journal.memory("options/t-1") or b"")
    kept.pop("commission")
    for options in (msgspec.json.encode(kept), b""):  # the second: written before options were noted
        consumer.journal.append((), {"options/t-1": options})
        consumer.journal.close()
        consumer = Consumer(config, Journal(path))
        assert not [row for row in consumer.journal.after(0, 100) if row.type == "voided"]
    consumer.journal.close()


def test_a_state_of_another_version_is_said_and_begun_afresh(path: Path) -> None:
    journal = Journal(path)
    journal.append((), {"state/rou-1": b'{"ruleset":"macau.roulette","state":{"table":7}}', "state/cus-1": b"{}"})
    journal.close()
    with capture_logs() as logs:
        consumer = started(path)
    assert [entry["event"] for entry in logs] == ["state.unreadable"] * 2  # and no round was open
    for table in consumer._tables.values():
        assert table.state == table.ruleset.start(table.name)
    consumer.journal.close()


def test_tables_with_the_same_game_and_options_share_a_ruleset(tmp_path: Path) -> None:
    tables = [("a", "macau.cussec", {}), ("b", "macau.cussec", {}), ("c", "macau.cussec", {"smallest_chip": 5})]
    text = CONFIG.partition("[[table]]")[0] + "".join(
        f'[[table]]\nname = "{name}"\nruleset = "{game}"\n[table.options]\n'
        + "".join(f"{option} = {value}\n" for option, value in options.items())
        for name, game, options in tables
    )
    consumer = Consumer(parse(text), Journal(tmp_path / "rules.db"))
    a, b, c = (cast("Any", consumer._tables[name].ruleset) for name in "abc")
    assert a is b
    assert (a.options.smallest_chip, c.options.smallest_chip) == (1, 5)
    consumer.journal.close()


# ---- on the broker: a way that loses, repeats and reorders


class Line:
    """A session of the consumer with the network of the test."""

    def __init__(self, published: Callable[[str, bytes], None]) -> None:
        self._published = published
        self._inbox: asyncio.Queue[Message] = asyncio.Queue(100_000)
        self.subscribed: list[str] = []

    @property
    def session(self) -> Session:
        return cast("Session", self)

    def deliver(self, topic: str, payload: bytes) -> None:
        self._inbox.put_nowait(Message(topic, payload))

    async def publish(self, topic: str, payload: bytes, **options: Any) -> None:
        self.send(topic, payload, **options)
        await asyncio.sleep(0)

    room = True

    async def until_room(self) -> None:
        await asyncio.sleep(0)

    def flush(self) -> None:
        """All is sent at once."""

    def send(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        acknowledged: Callable[[], None] | None = None,
        event: bool = False,
        **_options: Any,
    ) -> None:
        assert event == ("/event/" in topic)
        assert not (retain and event)
        self._published(topic, payload)
        if acknowledged is not None:
            asyncio.get_running_loop().call_soon(acknowledged)

    def publish_qos0(self, _topic: str, _payload: bytes) -> bool:
        return True

    async def subscribe(self, *topics: str) -> None:
        self.subscribed += topics

    async def read_retained(self, *_topics: str) -> None:
        return

    async def messages(self, most: int = 500, at_once: object = None) -> list[Message]:
        del at_once
        if not self.subscribed:
            await asyncio.Event().wait()
        found = [await self._inbox.get()]
        while len(found) < most and not self._inbox.empty():
            found.append(self._inbox.get_nowait())
        return found

    async def drained(self) -> None:
        return


class Network:
    """An edge, a consumer, and between them a way that loses `loss` of what is sent either way."""

    def __init__(self, folder: Path, rng: Random, loss: float) -> None:
        self.rng = rng
        self.loss = loss
        self.asked: list[dict[str, Any]] = []
        self.edge = Edge(parse(CONFIG), Journal(folder / "edge.db"), now=lambda: START)
        self.consumer = Consumer(parse(CONFIG), Journal(folder / "rules.db"))
        self.to_edge = Line(self._from_edge)
        self.to_consumer = Line(self._from_consumer)
        self._late: list[tuple[str, bytes]] = []

    def _from_edge(self, topic: str, payload: bytes) -> None:
        if self.rng.random() < self.loss:
            return
        if self.rng.random() < self.loss and "/event/" in topic:
            self._late.append((topic, payload))  # overtaken by others
            return
        self.to_consumer.deliver(topic, payload)
        if self.rng.random() < self.loss:
            self.to_consumer.deliver(topic, payload)
        while self._late and self.rng.random() < 0.5:
            self.to_consumer.deliver(*self._late.pop(self.rng.randrange(len(self._late))))

    def _from_consumer(self, topic: str, payload: bytes) -> None:
        if topic.endswith("/cmd/replay"):
            self.asked.append(msgspec.json.decode(payload))
            if self.rng.random() >= self.loss:
                self.edge.replay.receive(Message(topic, payload))

    async def live(self) -> None:
        """Both, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.edge.outbox.run(self.to_edge.session))
            group.create_task(self.edge.replay.run(self.to_edge.session))
            group.create_task(self.edge._commands(self.to_edge.session))
            group.create_task(self.consumer._serve(self.to_consumer.session))
            group.create_task(self._health())

    async def _health(self) -> None:
        self.to_consumer.deliver("felt/1/s/edge/e/availability", b"online")
        while True:
            await asyncio.sleep(HEALTH_EVERY)
            self._from_edge("felt/1/s/edge/e/health", msgspec.json.encode(self.edge.health()))

    async def play(self, *streams: Sequence[Envelope]) -> None:
        """These happen, a few a second."""
        for one in sorted((one for stream in streams for one in stream), key=lambda one: (one.seq, one.id)):
            table = one.id.split(":")[1]
            self.edge.append([Entry(table, "d-1", type_of(one.event), one.time, encode_data(one.event))], {})
            await asyncio.sleep(self.rng.choice([0.0, 0.1, 1.0]))

    def behind(self) -> bool:
        """Whether events are missing in the rounds."""
        positions = {key[2]: stream.expected - 1 for key, stream in self.consumer._streams.items()}
        return any(positions.get(name, 0) < self.edge.journal.last(name) for name in ("rou-1", "cus-1"))

    async def quiet(self) -> None:
        """Until all events are in the rounds: virtual time makes looking free."""
        for _ in range(100_000):
            if not self.behind():
                return
            await asyncio.sleep(1)
        raise AssertionError("events are missing for ever")

    async def through(self, body: Coroutine[Any, Any, None]) -> None:
        """`body` while both live; what fails in one of them fails here."""
        async with asyncio.TaskGroup() as group:
            living = group.create_task(self.live())
            await body
            living.cancel()

    def close(self) -> None:
        self.edge.journal.close()
        self.consumer.journal.close()


def as_sent(network: Network, stream: Sequence[Envelope]) -> list[Envelope]:
    return [replace(one, journal=network.edge.journal.name) for one in stream]


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("seed", [1, 2, 3])
@virtual_time
async def test_over_a_bad_way_every_event_arrives_once(tmp_path: Path, seed: int, loss: float) -> None:
    rng = Random(seed)
    network = Network(tmp_path, rng, loss)
    streams = [as_sent(network, night(rng, table, 12)) for table in ("rou-1", "cus-1")]

    async def body() -> None:
        await network.play(*streams)
        await network.quiet()

    await network.through(body())
    assert rows(network.consumer.journal) == reference(*streams)
    network.close()


@virtual_time
async def test_a_consumer_that_comes_late_is_given_everything(tmp_path: Path) -> None:
    """More than one page, asked for page by page and not in a whirl."""
    network = Network(tmp_path, Random(1), 0.0)
    stream = as_sent(network, night(Random(1), "rou-1", 400))
    assert len(stream) > 3 * PAGE
    entries = [Entry("rou-1", "d-1", type_of(one.event), one.time, encode_data(one.event)) for one in stream]
    network.edge.append(entries, {})
    network.edge.outbox.cursor = network.edge.journal.head  # the broker had it all, and forgot
    async with asyncio.timeout(20):
        await network.through(network.quiet())
    assert rows(network.consumer.journal) == reference(stream)
    assert len([one for one in network.asked if one["from"] > 1]) == len(stream) // PAGE
    network.close()


@virtual_time
async def test_what_is_on_its_way_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Health and live events show the gap, too, while it is being closed: each began an answer of its own."""
    network = Network(tmp_path, Random(1), 0.0)
    stream = as_sent(network, night(Random(1), "rou-1", 400))
    entries = [Entry("rou-1", "d-1", type_of(one.event), one.time, encode_data(one.event)) for one in stream]
    network.edge.append(entries[:-20], {})
    network.edge.outbox.cursor = network.edge.journal.head
    publish, deliver = Line.publish, Line.deliver
    heard: list[str] = []

    async def slowly(self: Line, topic: str, payload: bytes, **how: Any) -> None:
        await publish(self, topic, payload, **how)
        await asyncio.sleep(1.5 / PAGE)

    def counted(self: Line, topic: str, payload: bytes) -> None:
        heard.append(topic)
        deliver(self, topic, payload)

    monkeypatch.setattr(Line, "publish", slowly)
    monkeypatch.setattr(Line, "deliver", counted)

    async def body() -> None:
        network.to_consumer.deliver("felt/1/s/edge/e/health", msgspec.json.encode(network.edge.health()))
        await network.play(stream[-20:])
        await network.quiet()

    async with asyncio.timeout(60):
        await network.through(body())
    assert rows(network.consumer.journal) == reference(stream)
    assert len([topic for topic in heard if "/event/" in topic]) < len(stream) * 1.1
    network.close()


@virtual_time
async def test_a_lost_tail_is_found_by_the_health_of_the_edge(tmp_path: Path) -> None:
    network = Network(tmp_path, Random(1), 0.0)
    stream = as_sent(network, night(Random(1), "rou-1", 10))

    async def body() -> None:
        await network.play(stream[:-4])
        network.loss = 1.0
        await network.play(stream[-4:])
        network.loss = 0.0
        assert network.behind()
        async with asyncio.timeout(HEALTH_EVERY + 5):
            await network.quiet()

    await network.through(body())
    assert rows(network.consumer.journal) == reference(stream)
    network.close()


@virtual_time
async def test_events_that_follow_the_health_of_the_edge_are_not_requested_again(tmp_path: Path) -> None:
    """Health is looked at two seconds after it came: the rounds have newer events then."""
    network = Network(tmp_path, Random(1), 0.0)
    stream = as_sent(network, night(Random(1), "rou-1", 40))

    async def body() -> None:
        began = asyncio.get_running_loop().time()
        await network.play(stream)
        await network.quiet()
        assert asyncio.get_running_loop().time() - began > HEALTH_EVERY + 2

    await network.through(body())
    assert [(one["from"], one["to"]) for one in network.asked] == [(1, None)] * 2  # of both tables, when the edge came
    network.close()


@virtual_time
async def test_a_new_disk_behind_the_consumers_back(tmp_path: Path) -> None:
    """The edge comes back with an empty journal; what happened meanwhile stands there from 1."""
    network = Network(tmp_path / "1", Random(1), 0.0)
    before = as_sent(network, night(Random(1), "rou-1", 30))

    async def play() -> None:
        await network.play(before)
        await network.quiet()

    await network.through(play())
    path = network.consumer.journal.path
    network.close()

    second = Network(tmp_path / "2", Random(1), 0.0)
    second.consumer.journal.close()
    second.consumer = Consumer(parse(CONFIG), Journal(path))
    after = as_sent(second, night(Random(2), "rou-1", 3))
    entries = [Entry("rou-1", "d-1", type_of(one.event), one.time, encode_data(one.event)) for one in after]
    second.edge.append(entries, {})
    second.edge.outbox.cursor = second.edge.journal.head

    async def look() -> None:
        await asyncio.sleep(60)
        await second.quiet()

    await second.through(look())
    assert {key[1] for key in second.consumer._streams} == {second.edge.journal.name}
    assert rows(second.consumer.journal) == reference(before, after)
    second.close()


def spin(number: int, pocket: int) -> list[Event]:
    return [BallLanded(str(pocket)) if isinstance(one, BallLanded) else one for one in (SpinStarted(number), *SPIN[1:])]


def told(consumer: Consumer) -> list[str]:
    """What each round came to: its pocket, or that it is void. No round has two ends."""
    ends = [row for row in rows(consumer.journal).get("rou-1", []) if row.type in ("resolved", "voided")]
    results = [msgspec.json.decode(row.data)["result"] for row in ends]
    assert len({result["round"] for result in results}) == len(results)
    return [result["outcome"].get("pocket", "void") for result in results]


def happen(edge: Edge, *spins: Sequence[Event], day: int = 0) -> None:
    """These stand in the journal of `edge`, a second between two."""
    events = [event for one in spins for event in one]
    at = START + timedelta(days=day, seconds=edge.journal.last("rou-1"))
    times = (at + timedelta(seconds=n) for n in range(len(events)))
    entries = [
        Entry("rou-1", "d-1", type_of(event), time, encode_data(event))
        for event, time in zip(events, times, strict=True)
    ]
    edge.append(entries, {})


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("more", [1, 60])
@virtual_time
async def test_an_edges_journal_that_went_back_leaves_a_doubt_and_no_wrong_round(
    tmp_path: Path, alive: bool, more: int
) -> None:
    """A copy of its disk was put back: its count is behind what the rules had used, or has gone past it meanwhile."""
    network = Network(tmp_path, Random(1), 0.0)
    file, copy = tmp_path / "edge.db", tmp_path / "copy.db"

    def put_back(whence: Path, to: Path) -> None:
        network.edge.append([], {})
        network.edge.journal.close()
        shutil.copy(whence, to)
        network.edge = Edge(parse(CONFIG), Journal(file), now=lambda: START)

    async def play(*spins: Sequence[Event], day: int = 0) -> None:
        await asyncio.sleep(60)
        for one in spins:
            happen(network.edge, one, day=day)
        await network.quiet()

    await network.through(play(spin(1, 1), spin(2, 2)))
    put_back(file, copy)
    await network.through(play(*(spin(n, n) for n in range(3, 9)), SPIN[:3]))  # the last one is under way
    put_back(copy, file)
    later = [spin(100 + n, 20 + n % 10) for n in range(more)]
    with capture_logs() as logs:
        if alive:
            await network.through(play(*later, spin(250, 36), day=2))
        else:  # the rules were away all the while
            happen(network.edge, *later, day=1)
            await network.through(play(spin(250, 36), day=2))
    noticed = [entry["event"] for entry in logs if entry["event"] in ("events.went_back", "events.conflict")]
    live = [] if alive else ["events.conflict"]  # they came before the answer of the edge
    assert noticed == [
        *live,
        *(["events.went_back"] if alive or more == 1 else []),
        *(["events.conflict"] if alive else []),
    ]  # an alert that stands is logged once
    ends = told(network.consumer)
    assert ends[:9] == [*map(str, range(1, 9)), "void"]  # of the spin that was under way nobody knows the number
    assert ends[-1] == "36"
    if alive:  # nothing since is lost
        assert ends[9:-1] == [str(20 + n % 10) for n in range(more)]
    network.close()


@virtual_time
async def test_what_was_put_back_is_noticed_once_and_for_good(tmp_path: Path) -> None:
    """The doubt outlives the rules' own restart before the next event, and is not raised again after it."""
    path = tmp_path / "rules.db"
    consumer = started(path)
    events = [replace(one, id=f"e:rou-1:{one.seq}", journal="A") for one in script(SPIN[:3], "rou-1")]
    consumer.take(events)
    other = replace(events[-1], time=events[-1].time + timedelta(days=1))
    consumer.take([other])
    for _ in range(2):
        consumer._commit([])
        consumer.journal.close()
        consumer = started(path)
        consumer.take([other])
    assert consumer.view("rou-1").phase == "suspended"
    assert [row.type for row in rows(consumer.journal)["rou-1"]] == ["opened", "suspended", "irregular"]
    consumer.journal.close()


@pytest.mark.parametrize("begun", [False, True])
@virtual_time
async def test_events_whose_file_is_gone_are_missed_and_the_rest_goes_on(tmp_path: Path, begun: bool) -> None:
    """Archived or forgotten before these rules had them: a standby set up late, or rules with a new journal."""
    network = Network(tmp_path, Random(1), 0.0)
    happen(network.edge, spin(1, 1), SPIN[:2])
    if begun:
        await network.through(network.quiet())
    happen(network.edge, SPIN[2:], *(spin(n, n) for n in range(2, 7)), SPIN[:2])
    network.edge.outbox.cursor = network.edge.journal.head
    assert network.edge.journal.rotate()
    happen(network.edge, *(spin(n, n) for n in range(8, 30)))
    network.edge.outbox.cursor = network.edge.journal.head
    network.edge.journal.forget(network.edge.journal.closed[0])

    async def body() -> None:
        await asyncio.sleep(60)
        happen(network.edge, spin(30, 30))
        await network.quiet()

    with capture_logs() as logs:
        await network.through(body())
    assert [entry["event"] for entry in logs].count("events.gone") == 1
    assert told(network.consumer) == [*(["1", "void"] if begun else []), *map(str, range(8, 31))]
    assert len(network.asked) < 20
    network.close()


@virtual_time
async def test_a_table_that_is_idle_since_its_files_went_is_in_doubt_and_not_asked_for_again(tmp_path: Path) -> None:
    network = Network(tmp_path, Random(1), 0.0)
    happen(network.edge, SPIN[:2])
    network.edge.outbox.cursor = network.edge.journal.head
    await network.through(network.quiet())
    happen(network.edge, SPIN[2:], spin(2, 2))
    network.edge.outbox.cursor = network.edge.journal.head
    assert network.edge.journal.rotate()
    network.edge.journal.forget(network.edge.journal.closed[0])
    network.asked.clear()
    with capture_logs() as logs:
        await network.through(asyncio.sleep(600))
    assert [entry["event"] for entry in logs].count("events.gone") == 1
    assert not network.behind()
    assert len(network.asked) < 4
    happen(network.edge, spin(3, 3))
    await network.through(network.quiet())
    assert told(network.consumer) == ["void", "3"]
    network.close()


@virtual_time
async def test_a_stop_while_a_failed_batch_is_being_ended_writes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection takes its time to close, and the process is told to end meanwhile."""
    events = night(Random(5), "rou-1", 4)
    consumer = started(path)
    append = consumer.journal.append

    async def stay(*_: object) -> None:
        try:
            consumer.take(events)
        finally:
            monkeypatch.setattr(consumer.journal, "append", append)
            await asyncio.sleep(5)

    def fails(*_: object) -> list[Row]:
        raise BadJournal("disk full")

    monkeypatch.setattr(process_module, "stay_connected", stay)
    monkeypatch.setattr(consumer.journal, "append", fails)
    task = asyncio.create_task(consumer.run())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    consumer.journal.close()
    again = started(path)
    again.take(events)
    assert rows(again.journal) == reference(events)
    again.journal.close()


# ---- whatever comes over the wire


def garbage(good: bytes) -> Iterator[tuple[str, bytes]]:
    event, edge = "felt/1/s/table/rou-1/device/d-1/event/ball.landed", "felt/1/s/edge/e/"
    answer = "felt/1/s/table/rou-1/cmd/replay/result"
    deep = b"[" * 100_000 + b"]" * 100_000
    for topic in (event, edge + "health", edge + "availability", answer):
        yield topic, b""
        yield topic, b"\xff\xfe"
        yield topic, b'{"x":'
        yield topic, b'"\xff"'
        yield topic, deep
        yield topic, b'{"edge":"\xff","journal":"A","from":1,"to":1,"newest":1,"specversion":"\xff"}'
    yield event, good.replace(b'"data":{', b'"data":{"x":' + deep + b",")
    yield event, good.replace(b"2026-11-20", b"2026-13-20")
    yield event, good.replace(b'00Z"', b'00"')
    yield event, good.replace(b'"seq":1', b'"seq":' + b"9" * 40)
    yield event, good.replace(b'"seq":1', b'"seq":-1')
    yield event, good.replace(b"e:rou-1:1", b"e/../x:rou-1:1")
    yield edge + "health", b'{"newest":{"rou-1":' + b"9" * 40 + b"}}"
    yield answer, b'{"edge":"e","journal":"A","from":1,"to":1,"newest":' + b"9" * 40 + b"}"
    yield answer, b'{"edge":"e","journal":"?","from":2,"to":1,"newest":0}'


@virtual_time
async def test_any_bytes_are_refused_and_the_rounds_go_on(tmp_path: Path) -> None:
    asked: list[str] = []
    line = Line(lambda topic, _: asked.append(topic))
    consumer = started(tmp_path / "rules.db")
    stream = night(Random(1), "rou-1", 3)
    serving = asyncio.create_task(consumer._serve(line.session))
    for topic, payload in garbage(encode_envelope(stream[0])):
        line.deliver(topic, payload)
        await asyncio.sleep(1)
        assert not serving.done(), payload[:100]
    for one in stream:
        line.deliver(topic_of(one), encode_envelope(one))
    await asyncio.sleep(600)
    serving.cancel()
    await asyncio.wait([serving])
    assert rows(consumer.journal) == reference(stream)
    assert len([topic for topic in asked if topic.endswith("cmd/replay")]) < 400  # it asks, and does not whirl
    consumer.journal.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"ball.landed"', b'"ball.levitated"'),
        (b'"pocket":"17"', b'"pocket":"99"'),
        (b'"pocket":"17"', b'"pocket":"\xff"'),
        (b'"pocket":"17"', b""),
    ],
)
@virtual_time
async def test_an_event_that_is_not_understood_is_an_event_missed(tmp_path: Path, old: bytes, new: bytes) -> None:
    """Of a newer edge, say. The table does not stand still, and nothing is guessed: the round waits for a person."""
    consumer = started(tmp_path / "rules.db")
    line = Line(lambda _topic, _payload: None)
    serving = asyncio.create_task(consumer._serve(line.session))
    for one in script([*SPIN, *SPIN], "rou-1"):
        payload = encode_envelope(replace(one, id=f"e:rou-1:{one.seq}"))
        if one.seq == 5:
            assert old in payload
            payload = payload.replace(old, new)
        type_ = "ball.levitated" if b"levitated" in payload else type_of(one.event)
        line.deliver(f"{one.source}/event/{type_}", payload)
    with capture_logs() as logs:
        await asyncio.sleep(60)
    serving.cancel()
    await asyncio.wait([serving])
    found = [row.type for row in rows(consumer.journal)["rou-1"]]
    assert found == ["opened", "bets-closed", "suspended", "voided", "opened", "bets-closed", "resolved"]
    assert [entry["event"] for entry in logs].count("event.refused") == 1
    consumer.journal.close()


@virtual_time
async def test_what_somebody_else_subscribed_to_does_not_end_an_edge(tmp_path: Path) -> None:
    """A broker may send it all the same, with what is retained: one in use by the demo does."""
    network = Network(tmp_path, Random(1), 0.0)
    stream = as_sent(network, night(Random(1), "rou-1", 3))
    device, edge = "felt/1/s/table/rou-1/device/d-1", "felt/1/s/edge/e"
    leaves = ("/state", "/availability", "/event/ball.landed", "/cmd", "/cmd/light/result", "")

    async def body() -> None:
        for topic in (*(device + leaf for leaf in leaves), f"{edge}/info", edge, "felt/1/s", "felt", ""):
            network.to_edge.deliver(topic, b"{}")
        await network.play(stream)
        await network.quiet()

    async with asyncio.TaskGroup() as group:
        network.edge._group = group  # as while it runs: it takes commands
        await network.through(body())
    assert rows(network.consumer.journal) == reference(stream)
    network.close()


@virtual_time
async def test_a_new_stream_may_come_while_it_asks_for_gaps(tmp_path: Path) -> None:
    """The broker is slow to take a request; meanwhile another edge speaks for the first time."""
    consumer = started(tmp_path / "rules.db")
    first, second = night(Random(1), "rou-1", 2), night(Random(2), "cus-1", 2, edge="other")
    line = Line(lambda _topic, _payload: consumer.take(second))
    consumer.take([first[5]])
    await consumer._ask_for_gaps(line.session)
    assert len(consumer._streams) == 2
    consumer.journal.close()


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False


@contextlib.asynccontextmanager
async def receiving(consumer: Consumer) -> AsyncIterator[tuple[Mqtt5Session, Wire]]:
    """The rules receive; the test brings the reads."""
    session, wire = Mqtt5Session(b""), Wire()
    session._transport = cast("asyncio.Transport", wire)
    tasks = [asyncio.create_task(one) for one in (consumer.outbox.run(session), consumer._receive(session))]
    await asyncio.sleep(1)
    try:
        yield session, wire
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        consumer.journal.close()


def over_the_wire(*events: Event) -> list[Envelope]:
    source = "felt/1/s/table/rou-1/device/d-1"
    return [replace(one, id=f"e:rou-1:{one.seq}", source=source, journal="A") for one in script(events, "rou-1")]


def read_of(*events: Envelope) -> bytes:
    """These events as one read brings them."""
    qos = mqtt5.QoS.AT_LEAST_ONCE
    return b"".join(
        mqtt5.PublishPacket(topic_of(one), encode_envelope(one), qos=qos, packet_id=n).write()
        for n, one in enumerate(events, 1)
    )


@virtual_time
async def test_verdicts_are_written_and_sent_in_the_turn_that_reads_the_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit for all events of a read."""
    consumer = started(tmp_path / "rules.db")
    events = over_the_wire(*SPIN)
    commits: list[int] = []
    append = consumer.journal.append

    def counted(entries: list[Entry], memory: Any = None) -> list[Row]:
        commits.append(len(entries))
        return append(entries, memory)

    monkeypatch.setattr(consumer.journal, "append", counted)
    async with receiving(consumer) as (session, wire):
        session.data_received(read_of(*events))
        assert re.findall(rb"round/event/([a-z-]+)", wire.written) == [b"opened", b"bets-closed", b"resolved"]
        assert commits == [3]


@virtual_time
async def test_a_gap_in_what_was_used_at_once_is_requested_and_its_end_noticed(tmp_path: Path) -> None:
    """The task wakes for the request. A second gap is requested without a wait, as the first was."""
    consumer = started(tmp_path / "rules.db")
    events = over_the_wire(*SPIN)
    async with receiving(consumer) as (session, wire):
        for missing in (1, 3):
            session.data_received(read_of(*events[missing - 1 : missing], *events[missing + 1 : missing + 2]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert wire.written.count(b"cmd/replay") == 1
            assert b'"from":%d' % (missing + 1) in wire.written
            wire.written = b""
            consumer._awaited.clear()
            session.data_received(read_of(events[missing]))
            await asyncio.sleep(0)
        assert consumer.position("rou-1") == 5


@virtual_time
async def test_a_failed_commit_of_a_read_ends_the_session(tmp_path: Path) -> None:
    """Not only the call of the loop: the process must end."""
    consumer = started(tmp_path / "rules.db")
    events = over_the_wire(*SPIN)
    session, wire = Mqtt5Session(b""), Wire()
    session._transport = cast("asyncio.Transport", wire)
    receive = asyncio.create_task(consumer._receive(session))
    await asyncio.sleep(0)
    consumer.journal.close()
    session.data_received(read_of(*events))
    with pytest.raises(BadJournal):
        await receive
    assert not consumer._in_sync
    assert b"round/event/" not in wire.written


@virtual_time
async def test_what_it_shows_is_right_after_a_restart(tmp_path: Path) -> None:
    """The last result, the round as it stands, and online, before anything else."""
    path = tmp_path / "rules.db"
    consumer = started(path)
    consumer.take([replace(one, id=f"e:rou-1:{one.seq}") for one in script([*SPIN, SpinStarted(2)], "rou-1")])
    consumer.journal.close()
    again = started(path)
    told: list[tuple[str, bytes]] = []
    line = Line(lambda topic, payload: told.append((topic, payload)))
    serving = asyncio.create_task(again._serve(line.session))
    await asyncio.sleep(1)
    serving.cancel()
    await asyncio.wait([serving])
    shown = dict(told)
    assert msgspec.json.decode(shown["felt/1/s/table/rou-1/round/result"])["outcome"]["pocket"] == "17"
    assert msgspec.json.decode(shown["felt/1/s/table/rou-1/round/state"])["phase"] == "betting"
    assert told[-1] == ("felt/1/s/edge/rules/availability", b"offline")
    events = [topic for topic, _ in told if "/round/event/" in topic]
    assert events == [
        f"felt/1/s/table/rou-1/round/event/{word}" for word in ("opened", "bets-closed", "resolved", "opened")
    ]
    again.journal.close()


@virtual_time
async def test_the_end_of_a_round_shows_at_once(tmp_path: Path) -> None:
    """Not only with the next event, which may be minutes away."""
    consumer = started(tmp_path / "rules.db")
    night_ = [replace(one, id=f"e:rou-1:{one.seq}") for one in script(SPIN, "rou-1")]
    consumer.take(night_[:-1])
    told: list[tuple[str, bytes]] = []
    line = Line(lambda topic, payload: told.append((topic, payload)))
    serving = asyncio.create_task(consumer._serve(line.session))
    await asyncio.sleep(1)
    consumer.take(night_[-1:])
    await asyncio.sleep(1)
    serving.cancel()
    await asyncio.wait([serving])
    shown = [msgspec.json.decode(payload)["phase"] for topic, payload in told if topic.endswith("round/state")]
    assert shown[-1] == "idle"
    consumer.journal.close()
