"""A forger: somebody who may write events, or all that one user of the broker may, and means harm."""

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest
from helpers import at_length, script, virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from structlog.testing import capture_logs
from test_consumer import SPIN, Line, night, reference, rows, started, topic_of
from test_way_of_an_event import Broker as Wire
from test_way_of_an_event import made

from daemon.consumer import ALERT_FOR, KEPT_DIGESTS, Consumer
from daemon.journal import Journal
from protocols.events import BallLanded, BallSettling, BetsClosed, Event, SpinStarted, WagerPlaced
from protocols.topics import Envelope, encode_envelope

TABLE = "rou-1"
FORGED = "felt/1/s/table/rou-1/alert/rules-events-forged"
CONFLICT = "felt/1/s/table/rou-1/alert/rules-events-conflict"


def played(*spins: tuple[Event, ...]) -> list[Envelope]:
    """Spins of table rou-1 as envelopes of one journal."""
    events = [event for one in spins for event in one]
    return [replace(one, id=f"e:{TABLE}:{one.seq}", journal="A") for one in script(events, TABLE)]


def forged(true: Envelope, event: Event, seconds: float = 0.25) -> Envelope:
    """Another event under the number of a true one."""
    return replace(true, event=event, time=true.time - timedelta(seconds=seconds))


def types(consumer: Consumer) -> list[str]:
    return [row.type for row in rows(consumer.journal).get(TABLE, [])]


def noted(consumer: Consumer) -> list[str]:
    found = [row for row in rows(consumer.journal).get(TABLE, []) if row.type == "irregular"]
    return [msgspec.json.decode(row.data)["irregularity"]["code"] for row in found]


def causes(consumer: Consumer) -> list[str]:
    return [row.cause for row in rows(consumer.journal).get(TABLE, [])]


# ---- a second event under a used number


@pytest.mark.parametrize(
    ("seq", "event"),
    [(1, SpinStarted(9)), (2, WagerPlaced(1, "red", 999_999)), (3, BallSettling()), (4, WagerPlaced(2, "black", 5))],
)
def test_the_true_event_after_a_forged_one_suspends_the_open_round(tmp_path: Path, seq: int, event: Event) -> None:
    """The forger was first: his event was believed. The true one, under its number, is the proof."""
    true = played(SPIN)
    consumer = started(tmp_path / "rules.db")
    consumer.take([*true[: seq - 1], forged(true[seq - 1], event)])
    assert consumer.view(TABLE).phase in ("betting", "running", "closed")
    consumer.take([true[seq - 1]])
    assert noted(consumer) == ["number_used_twice"]
    assert consumer.view(TABLE).phase == "suspended"
    consumer.take(true[seq:])
    assert "resolved" not in types(consumer)
    assert len(set(causes(consumer))) == len(causes(consumer))
    consumer.journal.close()


def test_the_true_event_after_a_forged_result_puts_it_in_doubt(tmp_path: Path) -> None:
    """The round was resolved with the forger's number: that stands, and is said to be in doubt at once."""
    true = played(SPIN)
    consumer = started(tmp_path / "rules.db")
    consumer.take([*true[:4], forged(true[4], BallLanded("36"))])
    assert types(consumer)[-1] == "resolved"
    with capture_logs() as logs:
        consumer.take([true[4]])
    assert noted(consumer) == ["number_used_twice"]
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["events.conflict"]
    assert consumer.retained._wanted[CONFLICT] != b""
    consumer.journal.close()


def test_a_forged_event_after_the_true_one_is_noticed_however_late(tmp_path: Path) -> None:
    """Of an old round, too: as far back as digests are kept. Beyond that it is dropped as a duplicate, as ever."""
    true = played(*([SPIN] * (KEPT_DIGESTS // len(SPIN) + 5)))
    consumer = started(tmp_path / "rules.db")
    consumer.take(true)
    before = types(consumer)
    consumer.take([forged(true[4], BallLanded("36"))])
    assert types(consumer) == before
    consumer.take([forged(true[-KEPT_DIGESTS], BallLanded("36"))])
    assert types(consumer)[len(before) :] in (["irregular"], ["suspended", "irregular"])
    consumer.journal.close()


def test_the_last_event_is_known_after_a_restart(tmp_path: Path) -> None:
    """The forged one was the last that was used; the true one comes to the next process, under the same time."""
    true = played(SPIN)
    consumer = started(tmp_path / "rules.db")
    consumer.take([*true[:1], forged(true[1], WagerPlaced(1, "red", 999_999), 0)])
    consumer._commit([])
    consumer.journal.close()
    again = started(tmp_path / "rules.db")
    again.take([forged(true[1], WagerPlaced(1, "red", 999_999), 0)])
    assert noted(again) == []
    again.take(true)
    assert noted(again) == ["number_used_twice"]
    assert "resolved" not in types(again)
    again.journal.close()


def test_of_two_events_that_wait_under_one_number_neither_is_used(tmp_path: Path) -> None:
    """Both came before their turn: which is true nobody knows, and it counts as lost."""
    true = played(SPIN)
    for first, second in ((true[4], forged(true[4], BallLanded("36"))), (forged(true[4], BallLanded("36")), true[4])):
        with tempfile.TemporaryDirectory() as folder:
            consumer = started(Path(folder) / "rules.db")
            consumer.take([*true[:2], first, second, first])
            assert consumer.retained._wanted[CONFLICT] != b""
            consumer.take(true[2:4])
            assert "resolved" not in types(consumer)
            assert consumer.view(TABLE).phase == "suspended"
            assert noted(consumer) == ["number_used_twice"]
            consumer.take(true)
            assert noted(consumer) == ["number_used_twice"]
            consumer.journal.close()


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**6), max_size=40))
@settings(max_examples=at_length(20, 300))
def test_what_is_published_again_is_no_conflict(seed: int, again: list[int]) -> None:
    """From another start of the edge, as a replay, after the edge or the site was renamed: the same event."""
    true = night(Random(seed), TABLE, 5)
    with tempfile.TemporaryDirectory() as folder:
        consumer = started(Path(folder) / "rules.db")
        for n, one in enumerate(true):
            consumer.take([one])
            for number in again[n::7]:
                old = true[number % (n + 1)]
                consumer.take([replace(old, replay=True, bootid="x")])
                source = old.source.replace("felt/1/site", "felt/1/other")
                consumer.take([replace(old, source=source)])
        assert rows(consumer.journal) == reference(true)
        assert not consumer._alarms
        consumer.journal.close()


def test_a_storm_of_second_events_writes_one_row(tmp_path: Path) -> None:
    """Bounded by what is used: a forger fills no journal."""
    true = played(*([SPIN] * 20))
    consumer = started(tmp_path / "rules.db")
    consumer.take(true[:100])
    before = len(types(consumer))
    for seconds in range(1, 50):
        consumer.take([forged(one, BallLanded("36"), seconds) for one in true[:100]])
    assert len(types(consumer)) <= before + 2
    assert noted(consumer) == ["number_used_twice"]
    consumer.journal.close()


# ---- what does not belong where it is said


class Desk:
    """A consumer that serves a line, and what it shows there."""

    def __init__(self, path: Path) -> None:
        self.consumer = started(path)
        self.shown: dict[str, bytes] = {}
        self.line = Line(self._published)

    def _published(self, topic: str, payload: bytes) -> None:
        self.shown[topic] = payload

    def say(self, envelope: Envelope, topic: str = "") -> None:
        self.line.deliver(topic or topic_of(envelope), encode_envelope(envelope))

    async def serve(self) -> "asyncio.Task[None]":
        serving = asyncio.create_task(self.consumer._serve(self.line.session))
        await asyncio.sleep(1)
        return serving

    async def end(self, serving: "asyncio.Task[None]") -> None:
        assert not serving.done()
        serving.cancel()
        await asyncio.wait([serving])
        self.consumer.journal.close()


@virtual_time
async def test_an_event_counts_only_where_its_topic_says_that_it_belongs(tmp_path: Path) -> None:
    """The access list knows topics: an envelope that names another table, device, type or number than its topic."""
    desk = Desk(tmp_path / "rules.db")
    serving = await desk.serve()
    true = played(SPIN)
    place = "felt/1/s/table/no-game/device/d-1/event/spin.started"
    for topic, one in (
        (place, true[0]),
        (topic_of(true[0]), replace(true[0], id="e:cus-1:1")),
        (topic_of(true[0]), replace(true[0], id=f"e:{TABLE}:2")),
        (topic_of(true[0]).replace("/d-1/", "/d-2/"), true[0]),
        (topic_of(true[0]).replace("spin.started", "ball.landed"), true[0]),
    ):
        desk.say(one, topic)
    await asyncio.sleep(1)
    assert not desk.consumer._streams
    alert = msgspec.json.decode(desk.shown[FORGED])
    assert (alert["code"], alert["count"], alert["severity"]) == ("events.forged", 4, "error")
    assert alert["remedy"]
    for one in true:
        desk.say(one)
    await asyncio.sleep(1)
    assert rows(desk.consumer.journal) == reference(true)
    await asyncio.sleep(ALERT_FOR)
    assert desk.shown[FORGED] == b""
    await desk.end(serving)


@virtual_time
async def test_an_alert_of_a_conflict_ends_and_begins_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "rules.db")
    serving = await desk.serve()
    assert desk.shown[CONFLICT] == b""
    true = played(SPIN)
    for one in (*true[:2], forged(true[1], BetsClosed())):
        desk.say(one)
    with capture_logs() as logs:
        await asyncio.sleep(1)
        alert = msgspec.json.decode(desk.shown[CONFLICT])
        assert alert["code"] == "events.conflict"
        assert alert["text"] == "two different events under number 2 of edge e: the second is not used"
        await asyncio.sleep(ALERT_FOR / 2)
        desk.say(forged(true[0], SpinStarted(9)))
        await asyncio.sleep(ALERT_FOR * 0.9)
        assert msgspec.json.decode(desk.shown[CONFLICT])["count"] == 2
        await asyncio.sleep(ALERT_FOR * 0.2)
    assert desk.shown[CONFLICT] == b""
    told = [entry["event"] for entry in logs if entry["event"].startswith("events.")]
    assert told == ["events.conflict", "events.conflict_ended"]
    await desk.end(serving)


@virtual_time
async def test_random_forged_events_over_a_night_give_no_wrong_result(tmp_path: Path) -> None:
    """Under used, next and coming numbers. A round has its true end, or waits, or is void, or is said to be in doubt.

    Without a MAC a forged event under the next number is believed until the true one comes: a result that was told
    meanwhile stands, with an irregularity soon behind it.
    """
    rng = Random(20)
    for _ in range(at_length(6, 200)):
        with tempfile.TemporaryDirectory() as folder:
            consumer = started(Path(folder) / "rules.db")
            true = played(*[(SpinStarted(n), *SPIN[1:4], BallLanded(str(n % 37)), SPIN[5]) for n in range(1, 40)])
            pockets = {one.id: one.event.pocket for one in true if isinstance(one.event, BallLanded)}
            for n, one in enumerate(true):
                if rng.random() < 0.1:
                    place = min(max(n + rng.choice([-20, -1, 0, 0, 1, 5]), 0), len(true) - 1)
                    event = rng.choice([BallLanded("36"), BallSettling(), BetsClosed(), SpinStarted(7)])
                    consumer.take([forged(true[place], event)])
                consumer.take([one])
            found = rows(consumer.journal)[TABLE]
            for at, row in enumerate(found):
                if row.type == "resolved":
                    result = msgspec.json.decode(row.data)["result"]
                    doubted = b"".join(later.data for later in found[at + 1 : at + 6])
                    told = [pockets[one] for one in result["evidence"] if one in pockets]
                    assert told == [result["outcome"]["pocket"]] or b"number_used_twice" in doubted, result
            consumer.journal.close()


# ---- availability


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_a_forged_offline_is_put_right_at_once(tmp_path: Path, kind: str) -> None:
    """Long before the next heartbeat, and not without a pause where somebody goes on with it."""
    journal, broker = Journal(tmp_path / "j.db"), Wire()
    process = made(kind, journal)
    own = f"felt/1/s/edge/{process.name}/availability"
    task = asyncio.create_task(process._serve(broker.session))
    await asyncio.sleep(10)
    for payload in (b"offline", b"", b"gone"):
        broker.send(own, payload, retain=True)
        await asyncio.sleep(1)
        assert broker.kept[own] == b"online"
    before = len(broker.said)
    for _ in range(1000):
        broker.send(own, b"offline", retain=True)
        await asyncio.sleep(0.001)
    await asyncio.sleep(1)
    assert broker.kept[own] == b"online"
    answers = [payload for topic, payload in broker.said[before:] if topic == own and payload == b"online"]
    assert len(answers) < 10
    task.cancel()
    await asyncio.wait([task])
    journal.close()
