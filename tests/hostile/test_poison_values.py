"""Values that one process takes and another cannot read: in every field of every document.

A peer of the broker with a valid password may write any bytes. Whatever passes the door is committed, read back after a
restart, recalled, exported, put into a bundle and verified; nothing of it may end in a traceback, or end a start.
"""

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers import START, script
from msgspec.structs import replace
from poison import TIMES, look_into
from structlog.testing import capture_logs

from daemon.broker.session import Message
from daemon.config.model import Config, Keeping, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.journal.hash_chain import chain_start, row_hash
from daemon.journal.retention import take_up
from daemon.journal.rows import Entry
from daemon.journal.store import BadJournal, Journal
from daemon.journal.verify import verify
from protocols.contract.events import (
    BallLanded,
    BallLaunched,
    BallSettling,
    BetsClosed,
    BetsOpened,
    Event,
    EventsMissed,
    RoundPaid,
    SpinStarted,
    WagerPlaced,
    encode_data,
    type_of,
)
from protocols.contract.topics import EARLIEST, LATEST, LONGEST_EVENT, decode_wire, device_topic, encode_envelope

CONFIG = """
[site]
name = "s"
[edge]
name = "e"
journal = "{path}/edge.db"
[rules]
journal = "{path}/rules.db"
[console]
journal = "{path}/console.db"
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:4001"
"""
SPIN: tuple[Event, ...] = (
    SpinStarted(1),
    BetsOpened(),
    WagerPlaced(1, "red", 100),
    BetsClosed(),
    BallLaunched("clockwise", "anticlockwise"),
    BallSettling(),
    BallLanded("17"),
    RoundPaid(),
)
# What a journal's column can hold: beyond what a calendar has, and what it has and no clock shows.
MICROS = (-(2**63), 2**63 - 1, -62_135_683_140_000_000, 253_402_387_139_000_000, -1, 4_102_444_800_000_000)


def config_in(folder: Path) -> Config:
    return parse(CONFIG.format(path=folder))


def told(events: tuple[Event, ...], first: int = 1) -> list[Message]:
    """A spin as the edge publishes it."""
    return [
        Message(
            device_topic("s", "rou-1", "wheel-1", f"event/{type_of(one.event)}"),
            encode_envelope(
                replace(
                    one,
                    id=f"e:rou-1:{one.seq + first - 1}",
                    seq=one.seq + first - 1,
                    source=device_topic("s", "rou-1", "wheel-1", "")[:-1],
                )
            ),
        )
        for one in script(events, "rou-1", "wheel-1")
    ]


def take(consumer: Consumer, messages: list[Message]) -> None:
    consumer.take([envelope for message in messages for envelope in consumer._read("rou-1", message)])


def test_an_event_with_a_payload_over_the_bound_counts_as_missed(tmp_path: Path) -> None:
    """The bound is of the whole payload, with what stands in it beside the data."""
    consumer = Consumer(config_in(tmp_path), Journal(tmp_path / "rules.db"))
    for longer, missed in ((0, False), (1, True)):
        message = told(SPIN[:1])[0]
        filled = message.payload[:-1] + b',"x":""}'
        payload = filled[:-2] + b"x" * (LONGEST_EVENT - len(filled) + longer) + b'"}'
        [envelope] = consumer._read("rou-1", Message(message.topic, payload))
        assert isinstance(envelope.event, EventsMissed) is missed


def write_edge(folder: Path, events: tuple[Event, ...] = SPIN) -> None:
    """The same spin in the edge's journal."""
    journal = Journal(folder / "edge.db")
    journal.append(
        [
            Entry("rou-1", "wheel-1", type_of(one.event), one.time, encode_data(one.event), b"*X;1\r")
            for one in script(events, "rou-1", "wheel-1")
        ]
    )
    journal.close()


def plant(path: Path, n: int, micros: int) -> None:
    """The time of row `n` as a process of an earlier version wrote it: with the chain that follows from it."""
    db = sqlite3.connect(path, isolation_level=None)
    columns = "n, place, seq, device, type, time, data, wire, cause"
    db.execute("UPDATE event SET time = ? WHERE n = ?", (micros, n))
    name = db.execute("SELECT value FROM memory WHERE key = 'journal'").fetchone()[0].decode()
    head = chain_start(name, "rou-1")
    for row in db.execute(f"SELECT {columns} FROM event ORDER BY n").fetchall():
        head = row_hash(head, *row)
        db.execute("UPDATE event SET hash = ? WHERE n = ?", (head, row[0]))
    db.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_edge(tmp_path)
    return tmp_path


# ---- times


@pytest.mark.parametrize("time", TIMES)
def test_an_event_at_an_impossible_time_is_refused_at_the_door(folder: Path, time: str) -> None:
    """The real event under its number is used when it comes, and the round is resolved."""
    config = config_in(folder)
    consumer = Consumer(config, Journal(folder / "rules.db"))
    good = told(SPIN)
    for place in range(len(SPIN)):
        poisoned = json.loads(good[place].payload) | {"time": time}
        with capture_logs() as logs:
            take(consumer, [Message(good[place].topic, json.dumps(poisoned).encode())])
        assert [one["event"] for one in logs] == ["event.refused"]
        assert "time" in logs[0]["reason"] or "datetime" in logs[0]["reason"]
        take(consumer, [good[place]])
    consumer.journal.close()
    assert [one.type for one in look_into(folder, config, "rou-1")] == ["resolved"]
    assert all(verify(folder / f"{name}.db").good for name in ("edge", "rules"))
    Consumer(config, Journal(folder / "rules.db")).journal.close()


@pytest.mark.parametrize(
    "time",
    ["2026-11-21T04:00:01+08:00", "2026-11-20T20:00:01.0000004Z", "2026-11-20T20:00:01z", "2026-11-20T20:00:01-00:00"],
)
def test_a_plausible_time_is_the_same_instant_in_utc(time: str) -> None:
    raw = json.loads(told(SPIN)[0].payload) | {"time": time}
    at = decode_wire(json.dumps(raw).encode()).time
    assert at == START + timedelta(seconds=1)
    assert at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("length", [60, 72, 73, 160, 161, 200])
def test_a_verdict_can_be_read_however_long_its_event_s_id_is(folder: Path, length: int, readable: bool) -> None:
    """A verdict's id is its event's and a number: what is read at all must leave room for that.

    The journal goes on under another name of its edge; an event whose data cannot be read is a loss, and suspends.
    """
    consumer = Consumer(config_in(folder), Journal(folder / "rules.db"))
    name = "e" * (length - len(":rou-1:1"))
    for number, message in enumerate(told(SPIN), 1):
        raw = json.loads(message.payload) | {"journal": "A"}
        if number > 2:
            raw["id"] = f"{name}:rou-1:{number}"
        if number == 3 and not readable:
            raw["data"] = {"overtaken": -1}
        take(consumer, [Message(message.topic, json.dumps(raw).encode())])
    rows = consumer.journal.after(0, 100)
    assert (len(rows) > 1) == (length <= 72)  # the name of an edge has at most 64 characters
    for row in rows:
        assert decode_wire(consumer._message_of(row, False)[1]).id == row.cause.removesuffix("@A")
    consumer.journal.close()


@pytest.mark.parametrize("micros", MICROS)
@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_journal_with_a_bad_row_starts_and_its_round_is_void(folder: Path, micros: int, row: int) -> None:
    """As an earlier version wrote it. Verify names the row, export writes it as it stands, its round is void."""
    config = config_in(folder)
    consumer = Consumer(config, Journal(folder / "rules.db"))
    take(consumer, told(SPIN))
    types = [one.type for one in consumer.journal.after(0, 100)]
    assert types == ["opened", "bets-closed", "resolved"]
    consumer.journal.close()
    plant(folder / "rules.db", row, micros)

    report = verify(folder / "rules.db")
    assert not report.good
    assert len(report.findings) == 1
    assert (report.findings[0].n, report.findings[0].place) == (row, "rou-1")
    assert "time" in report.findings[0].text
    assert "void" in report.findings[0].remedy

    with capture_logs() as logs:
        journal = Journal(folder / "rules.db")
        take_up(journal, Keeping())
        consumer = Consumer(config, journal)
    [said] = [one for one in logs if one["log_level"] == "error"]
    assert (said["event"], said["table"]) == ("row.unreadable", "rou-1")
    assert said["remedy"]
    last = journal.after(0, 100)[-1]
    assert last.type == "corrected"
    assert json.loads(last.data)["result"]["void"]["reason"] == {"code": "row_unreadable"}
    for one in journal.after(0, 100):  # each is published, and can be read by who gets it
        assert decode_wire(consumer._message_of(one, True)[1]).seq == one.seq
    take(consumer, told(SPIN, first=len(SPIN) + 1))
    assert [one.type for one in journal.after(0, 100)][-3:] == ["opened", "bets-closed", "resolved"]
    journal.close()

    with capture_logs() as logs:  # once
        journal = Journal(folder / "rules.db")
        take_up(journal, Keeping())
        Consumer(config, journal)
    assert [one for one in logs if one["log_level"] == "error"] == []
    journal.close()
    assert [one.type for one in look_into(folder, config, "rou-1")] == ["resolved", "corrected", "resolved"]


@pytest.mark.parametrize("micros", MICROS)
def test_an_open_round_with_a_bad_row_is_void_with_the_next_start(folder: Path, micros: int) -> None:
    config = config_in(folder)
    consumer = Consumer(config, Journal(folder / "rules.db"))
    take(consumer, told(SPIN[:5]))
    consumer.journal.close()
    plant(folder / "rules.db", 2, micros)
    consumer = Consumer(config, Journal(folder / "rules.db"))
    assert [one.type for one in consumer.journal.after(0, 100)] == ["opened", "bets-closed", "voided"]
    assert consumer.view("rou-1").phase == "idle"
    consumer.journal.close()


def test_a_bad_row_between_two_rounds_is_named_and_takes_no_result_away(folder: Path) -> None:
    """An irregularity of no round: the result before it stands."""
    config = config_in(folder)
    consumer = Consumer(config, Journal(folder / "rules.db"))
    take(consumer, told((*SPIN, BallLanded("3"))))
    assert [one.type for one in consumer.journal.after(0, 100)][-2:] == ["resolved", "irregular"]
    consumer.journal.close()
    plant(folder / "rules.db", 4, 2**63 - 1)
    for said in (["row.unreadable"], []):
        with capture_logs() as logs:
            consumer = Consumer(config, Journal(folder / "rules.db"))
        assert [one["event"] for one in logs if one["log_level"] == "error"] == said
        assert len(consumer.journal.after(0, 100)) == 4
        consumer.journal.close()


@pytest.mark.parametrize("micros", MICROS)
def test_a_bad_row_of_the_edge_is_published_as_a_loss(folder: Path, micros: int) -> None:
    """The rules may use no event whose time is not known, and must hear that there was one: the round waits."""
    config = config_in(folder)
    plant(folder / "edge.db", 5, micros)
    journal = Journal(folder / "edge.db")
    take_up(journal, Keeping())
    edge = Edge(config, journal)
    messages = [Message(*edge._message_of(row, True)) for row in journal.after(0, 100)]
    assert edge.health().outbox.depth == len(SPIN)
    journal.close()
    consumer = Consumer(config, Journal(folder / "rules.db"))
    take(consumer, messages)
    assert "suspended" in [row.type for row in consumer.journal.after(0, 100)]
    consumer.journal.close()
    look_into(folder, config, "rou-1")


@pytest.mark.parametrize("micros", MICROS)
def test_a_closed_file_that_ends_with_a_bad_row_starts(folder: Path, micros: int) -> None:
    config = config_in(folder)
    consumer = Consumer(config, Journal(folder / "rules.db"))
    take(consumer, told(SPIN))
    consumer.journal.close()
    plant(folder / "rules.db", 3, micros)
    journal = Journal(folder / "rules.db")
    assert journal.rotate()
    journal.close()
    journal = Journal(folder / "rules.db")
    take_up(journal, Keeping())
    [closed] = journal.closed
    assert closed.ended < LATEST
    Consumer(config, journal)
    assert journal.after(0, 100)[-1].type == "corrected"
    journal.close()


def test_no_process_writes_a_row_that_nobody_can_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    for at in (EARLIEST - timedelta(microseconds=1), LATEST, datetime.max.replace(tzinfo=UTC)):
        with pytest.raises(BadJournal, match=r"j\.db: time .*; set the clock of this computer"):
            journal.append([Entry("t", "d", "x", at, b"{}")])
    journal.append([Entry("t", "d", "x", at, b"{}") for at in (EARLIEST, LATEST - timedelta(microseconds=1))])
    assert len(journal.after(0, 10)) == 2
    journal.close()
    assert verify(tmp_path / "j.db").good
