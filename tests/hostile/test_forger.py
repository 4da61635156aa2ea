"""A forger: somebody who may write events, or all that one user of the broker may, and means harm."""

import asyncio
import re
import tempfile
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from helpers import at_length, script, virtual_time
from hypothesis import given, settings, strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from structlog.testing import capture_logs

from daemon.broker.mac_keys import BadMacKey, load_mac_key, load_mac_keys, make_mac_key
from daemon.cli.main import main
from daemon.config.model import parse
from daemon.consumer import consumer as consumer_module
from daemon.consumer.consumer import ALERT_FOR, MOST_EDGES, Consumer
from daemon.consumer.streams import KEPT_DIGESTS
from daemon.edge.edge import Edge
from daemon.journal.store import Journal
from daemon.words import words
from protocols.contract.documents import Alert, ReplayAnswer, mac_of_answer
from protocols.contract.events import BallLanded, BallSettling, BetsClosed, Event, SpinStarted, WagerPlaced
from protocols.contract.reasons import say
from protocols.contract.topics import (
    Envelope,
    Wire,
    decode_envelope,
    decode_wire,
    encode_envelope,
    encode_wire,
    is_mac,
    mac_of,
    mac_of_texts,
)
from tests.consumer import test_consumer
from tests.consumer.test_consumer import SPIN, Line, happen, night, reference, rows, started, topic_of
from tests.consumer.test_way_of_an_event import Broker, made

TABLE = "rou-1"
FORGED = "felt/1/s/table/rou-1/alert/rules-events-forged"
CONFLICT = "felt/1/s/table/rou-1/alert/rules-events-conflict"


FORGERIES: list[Event] = [BallLanded("36"), BallSettling(), BetsClosed(), SpinStarted(7)]


def played(*spins: tuple[Event, ...]) -> list[Envelope]:
    """Spins of table rou-1 as envelopes of one journal."""
    events = [event for one in spins for event in one]
    return [replace(one, id=f"e:{TABLE}:{one.seq}", journal="A") for one in script(events, TABLE)]


def forged(true: Envelope, event: Event, seconds: float = 0.25) -> Envelope:
    """Another event under the number of a true one."""
    return replace(true, event=event, time=true.time - timedelta(seconds=seconds))


def translated(alert: bytes) -> None:
    """Text and remedy of an alert are known in every language of the console."""
    said = msgspec.json.decode(alert, type=Alert)
    for lang in words.LANGS:
        for text, one in ((said.text, said.why), (said.remedy, said.to_do)):
            assert (words.reason(lang, one, said.code) == text) == (lang == "en"), (lang, text)


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
def test_republished_event_is_no_conflict(seed: int, again: list[int]) -> None:
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
    translated(desk.shown[FORGED])
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
        translated(desk.shown[CONFLICT])
        assert alert["text"] == "two different events under number 2 of edge e: the second was ignored"
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
                    event = rng.choice(FORGERIES)
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


def test_a_forger_of_names_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event under a new name of an edge or of a journal: the streams that are kept are bounded."""
    monkeypatch.setattr(consumer_module, "MOST_JOURNALS", most := 100)
    consumer = started(tmp_path / "rules.db")
    true = played(SPIN)
    consumer.take(true[:2])
    for n in range(2 * most):
        consumer.take([replace(true[0], id=f"x-{n}:{TABLE}:1", journal=f"J{n}")])
        consumer.take([replace(true[0], id=f"y:{TABLE}:1", journal=f"K{n}")])
    assert len(consumer._streams) <= MOST_EDGES
    consumer.take([replace(true[0], id=f"y:{TABLE}:1", journal="K" * 100)])
    consumer._commit([])
    assert len(consumer.journal.memories("stream/")) <= most
    translated(msgspec.json.encode(consumer._alarm_says("events.forged", consumer._alarms[TABLE, "events.forged"])))
    assert ("e", "A", TABLE) in consumer._streams
    consumer.journal.close()


# ---- message authentication codes


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Edge and rules of test_consumer have the key of edge e from now on."""
    folder = tmp_path / "mac"
    folder.mkdir()
    make_mac_key(folder / "e.key")
    own = f'name = "e"\njournal = "{tmp_path}/edge.db"\nmac_key_file = "{folder}/e.key"'
    text = test_consumer.CONFIG.replace('name = "e"', own)
    monkeypatch.setattr(
        test_consumer, "CONFIG", f'{text}[rules]\njournal = "{tmp_path}/rules.db"\nmac_key_folder = "{folder}"\n'
    )
    return folder


def sealed(envelope: Envelope, key: bytes) -> Wire:
    wire = decode_wire(encode_envelope(envelope))
    return replace(wire, mac=mac_of(wire, key))


@pytest.mark.parametrize(
    "change",
    [
        {"id": f"e:{TABLE}:7"},
        {"source": "felt/1/site/table/rou-1/device/d-2"},
        {"type": "ball.landed"},
        {"time": played(SPIN)[0].time + timedelta(microseconds=1)},
        {"time": played(SPIN)[0].time.replace(tzinfo=None)},
        {"seq": 7},
        {"journal": "B"},
        {"data": msgspec.Raw(b'{"number":2}')},
        {"cause_journal": "B"},
        {"mac": UNSET},
        {"mac": ""},
        {"mac": "\u00e9"},
        {"mac": "0" * 32},
    ],
)
def test_a_mac_is_of_all_that_an_event_says(change: dict[str, Any]) -> None:
    key = b"k" * 32
    wire = sealed(played(SPIN)[0], key)
    assert is_mac(wire.mac, mac_of(wire, key))
    assert not is_mac(wire.mac, mac_of(wire, b"l" * 32))
    other = replace(wire, **change)
    assert not is_mac(other.mac, mac_of(other, key))
    for again in (replace(wire, replay=True), replace(wire, bootid="another start")):
        assert is_mac(again.mac, mac_of(again, key))
    assert is_mac(decode_wire(encode_wire(wire)).mac, mac_of(wire, key))


def test_two_texts_side_by_side_are_no_other_two() -> None:
    assert mac_of_texts(("ab", "c"), b"k") != mac_of_texts(("a", "bc"), b"k")


@virtual_time
async def test_with_macs_no_forged_event_is_used_and_the_true_one_is(tmp_path: Path, keys: Path) -> None:
    """Under past, next and coming numbers, over a whole night: the rows are those of the true events."""
    rng = Random(7)
    for n in range(at_length(2, 40)):
        folder = tmp_path / str(n)
        folder.mkdir()
        network = test_consumer.Network(folder, rng, 0.05)
        true = test_consumer.as_sent(network, night(rng, TABLE, 12))
        attacker = Random(n)

        def forge(network: test_consumer.Network, attacker: Random, key: bytes) -> None:
            seq = max(network.edge.journal.last(TABLE) + attacker.choice([-5, -1, 0, 1, 1, 2, 40]), 1)
            one = replace(played(SPIN)[0], id=f"e:{TABLE}:{seq}", seq=seq, journal=network.edge.journal.name)
            wire = decode_wire(encode_envelope(replace(one, event=attacker.choice(FORGERIES))))
            mac = attacker.choice([UNSET, "0" * 32, mac_of(wire, key)])
            topic = f"{wire.source}/event/{wire.type}"
            network.to_consumer.deliver(topic, encode_wire(replace(wire, mac=mac)))

        async def attack(network: test_consumer.Network = network, attacker: Random = attacker) -> None:
            while True:
                forge(network, attacker, attacker.randbytes(32))
                await asyncio.sleep(attacker.choice([0.0, 0.05, 0.5]))

        async def body(network: test_consumer.Network = network, true: list[Envelope] = true) -> None:
            attacking = asyncio.create_task(attack())
            await network.play(true)
            await network.quiet()
            attacking.cancel()
            await asyncio.wait([attacking])

        await network.through(body())
        assert rows(network.consumer.journal) == reference(true)
        alarm = network.consumer._alarms[TABLE, "events.forged"]
        assert alarm.count > 10
        assert alarm.why == say("mac", edge="e")
        translated(msgspec.json.encode(Consumer._alarm_says("events.forged", alarm)))
        assert (TABLE, "events.conflict") not in network.consumer._alarms
        network.close()


@virtual_time
async def test_an_event_from_the_journal_has_the_mac_of_the_first_time(tmp_path: Path, keys: Path) -> None:
    """After another start of the edge, as a replay: the rules take either."""
    macs = []
    for late in (False, True):
        edge = Edge(parse(test_consumer.CONFIG), Journal(tmp_path / "edge.db"))
        if not late:
            happen(edge, SPIN)
        wires = [decode_wire(edge._message_of(row, late)[1]) for row in edge.journal.range(TABLE, 1, 9)]
        assert all(wire.replay == late for wire in wires)
        macs.append([wire.mac for wire in wires])
        edge.journal.close()
    assert macs[0] == macs[1]
    assert len({*macs[0]}) == len(SPIN)


@virtual_time
async def test_an_edge_whose_key_the_rules_have_not_is_not_believed(tmp_path: Path, keys: Path) -> None:
    """An unknown name must be no way past the keys; nor may an answer set the count of events back."""
    desk = Desk(tmp_path / "rules.db")
    serving = await desk.serve()
    key = load_mac_keys(keys)["e"]
    true = played(SPIN)
    for one in true:
        desk.line.deliver(topic_of(one), encode_wire(sealed(one, key)))
    await asyncio.sleep(1)
    before = rows(desk.consumer.journal)
    assert [row.type for row in before[TABLE]] == ["opened", "bets-closed", "resolved"]
    desk.line.deliver("felt/1/s/edge/e/availability", b"online")
    await asyncio.sleep(1)
    topic = f"felt/1/s/table/{TABLE}/cmd/replay/result"
    back = ReplayAnswer("e", "A", 6, 6, 1, 1)
    for said in (back, replace(back, mac="0" * 32), replace(back, edge="x", journal="X", oldest=9)):
        desk.line.deliver(topic, msgspec.json.encode(said))
    for one in played(SPIN):
        other = replace(one, id=f"x:{TABLE}:{one.seq}", journal="X")
        desk.line.deliver(topic_of(other), encode_wire(sealed(other, key)))
    await asyncio.sleep(1)
    assert rows(desk.consumer.journal) == before
    assert set(desk.consumer._streams) == {("e", "A", TABLE)}
    assert desk.consumer.position(TABLE) == len(true)
    text = "events arrived from edge x, of which these rules have no MAC key: they were ignored"
    assert msgspec.json.decode(desk.shown[FORGED])["text"] == text
    translated(desk.shown[FORGED])
    right = replace(back, mac=mac_of_answer(back, topic, key))  # the edge itself may say so: a copy was put back
    desk.line.deliver(topic, msgspec.json.encode(right))
    await asyncio.sleep(1)
    assert desk.consumer.position(TABLE) == 1
    await desk.end(serving)


def test_the_key_stands_in_nothing_that_is_said(tmp_path: Path, keys: Path) -> None:
    """Not in an event, not in a log, not in a message about a key that cannot be used."""
    key = (keys / "e.key").read_text().strip()
    edge = Edge(parse(test_consumer.CONFIG), Journal(tmp_path / "edge.db"))
    with capture_logs() as logs:
        happen(edge, SPIN)
        said = [edge._message_of(row, False) for row in edge.journal.range(TABLE, 1, 9)]
        consumer = started(tmp_path / "rules.db")
        consumer.take(map(decode_envelope, [payload for _, payload in said]))
    for where in (logs, said, edge.retained._wanted, consumer.retained._wanted, msgspec.to_builtins(edge.config)):
        assert key not in repr(where)
        assert repr(bytes.fromhex(key))[2:-1] not in repr(where)
    edge.journal.close()
    consumer.journal.close()
    (keys / "e.key").write_text(key[:-1])
    with pytest.raises(BadMacKey) as caught:
        load_mac_key(keys / "e.key")
    assert key[:8] not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o600, "a MAC key has 64 hexadecimal digits, this one has 0; make one with `feltd mac-key`"),
        ("ab" * 31, 0o600, "this one has 62"),
        ("ab" * 33, 0o600, "this one has 66"),
        ("x" * 64, 0o600, "it is 64 hexadecimal digits in one line"),
        ("ab" * 32, 0o644, "other users may read or write it; chmod 640"),
        ("ab" * 32, 0o660, "other users may read or write it"),
        (None, 0, "No such file or directory; give the path of a MAC key that this user may read"),
    ],
)
def test_check_names_a_mac_key_that_cannot_be_used(
    tmp_path: Path, keys: Path, text: str | None, mode: int, said: str
) -> None:
    """For the edge and for the rules, with the line; neither of them starts with it."""
    config, file = tmp_path / "feltd.toml", keys / "e.key"
    config.write_text(test_consumer.CONFIG)
    assert CliRunner().invoke(main, ["check", "-c", str(config)]).exit_code == 0
    file.unlink()
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    else:
        make_mac_key(keys / "another.key")
    for command, where in (
        ("check", "edge.mac_key_file"),
        ("edge", "edge.mac_key_file"),
        ("rules", "rules.mac_key_folder"),
    ):
        if text is None and command == "rules":
            continue  # its folder holds the keys of others
        done = CliRunner().invoke(main, [command, "-c", str(config)])
        assert done.exit_code == 2
        named = rf"{config}:\d+: {re.escape(where)}: {re.escape(str(file))}: .*{re.escape(said)}"
        assert re.search(named, done.output), done.output


def test_check_names_a_folder_without_the_key_of_this_edge(tmp_path: Path, keys: Path) -> None:
    config = tmp_path / "feltd.toml"
    device = (
        '[[table]]\nname = "t-9"\n[[table.device]]\nname = "d"\ndriver = "bee_tek_shoe"\nurl = "tcp://127.0.0.1:9"\n'
    )
    for text, name, said in (
        (test_consumer.CONFIG + device, "another.key", "has no e.key, so no event of this edge would be used"),
        (test_consumer.CONFIG, "Edge 7.key", "'Edge 7' is no name of an edge; a key of the edge edge-7 is edge-7.key"),
        (test_consumer.CONFIG, "e.txt", "holds no key; it needs a file <edge>.key for each edge"),
    ):
        for old in keys.iterdir():
            old.unlink()
        make_mac_key(keys / name)
        config.write_text(text)
        done = CliRunner().invoke(main, ["check", "-c", str(config)])
        assert done.exit_code == 2
        assert said in done.output


def test_a_command_makes_a_key_and_overwrites_none(tmp_path: Path) -> None:
    path = tmp_path / "edge-7.key"
    done = CliRunner().invoke(main, ["mac-key", str(path)])
    assert done.exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    made = path.read_text()
    assert len(load_mac_key(path)) == 32
    assert made.strip() not in done.output
    again = CliRunner().invoke(main, ["mac-key", str(path)])
    assert (again.exit_code, path.read_text()) == (2, made)
    assert "exists already; keys are never overwritten" in again.output
    assert CliRunner().invoke(main, ["mac-key", str(tmp_path / "none" / "k")]).exit_code == 2


# ---- availability


@pytest.mark.parametrize("kind", ["edge", "rules"])
@virtual_time
async def test_a_forged_offline_is_put_right_at_once(tmp_path: Path, kind: str) -> None:
    """Long before the next heartbeat, and not without a pause where somebody goes on with it."""
    journal, broker = Journal(tmp_path / "j.db"), Broker()
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


# ---- an edge that has fewer events than were used


@pytest.mark.parametrize("next_one", [False, True])
@virtual_time
async def test_a_round_that_was_told_ahead_of_its_edge_is_in_doubt(tmp_path: Path, next_one: bool) -> None:
    """With the password of an edge, and no keys: a whole result before the ball falls, then silence.

    The edge says that it has fewer events. Its true result comes under numbers that were used already.
    """
    network = test_consumer.Network(tmp_path, Random(1), 0.0)
    forged = [BallSettling(), BallLanded("36"), *([SpinStarted(2)] if next_one else [])]

    async def body() -> None:
        happen(network.edge, SPIN[:3])
        await network.quiet()
        for n, event in enumerate(forged, 4):
            one = replace(played(SPIN)[0], id=f"e:{TABLE}:{n}", seq=n, journal=network.edge.journal.name, event=event)
            wire = decode_wire(encode_envelope(one))
            network.to_consumer.deliver(f"{wire.source}/event/{wire.type}", encode_wire(wire))
        await asyncio.sleep(60)
        told = network.consumer._alarms.get((TABLE, "events.conflict"))
        assert told is not None, "nobody is told"
        last = f"{TABLE}:2026-11-20:{2 if next_one else 1}"
        assert told.why == say("fewer", edge="e", there=3, used=3 + len(forged), round=last)
        translated(msgspec.json.encode(Consumer._alarm_says("events.conflict", told)))
        happen(network.edge, SPIN[3:])
        await network.quiet()

    await network.through(body())
    told = types(network.consumer)
    assert told.index("irregular") > told.index("resolved")
    assert told.count("resolved") == 1  # 36; the true 17 makes no second result of a round that nobody saw begin
    assert (network.consumer.view(TABLE).phase == "suspended") == next_one
    network.close()
