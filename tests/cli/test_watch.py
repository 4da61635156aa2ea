"""`feltd watch`: plain words, what is shown of them, the past from the journals, a broker that comes and goes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from helpers import virtual_time
from small_site import SMALL_SITE

from daemon.broker.connection import stay_connected
from daemon.broker.session import BrokerLost, Message
from daemon.cli import watch as watching
from daemon.cli.main import main
from daemon.cli.watch import BadSince, Severity, Shown, in_words, line_of, round_number, since_of
from daemon.config.model import Config, parse
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from protocols.contract.topics import Wire

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
DEVICE, ROUND = "felt/1/lisboa/table/rou-1/device/wheel-1/event/x", "felt/1/lisboa/table/rou-1/round/event/x"
CONFIG = SMALL_SITE + '[[table]]\nname = "bac-1"\n'


def wire(kind: str, data: Any, seq: int = 1, *, replay: bool = False, at: datetime = NOW) -> Wire:
    encoded = msgspec.Raw(msgspec.json.encode(data))
    return Wire("1.0", f"e:rou-1:{seq}", "felt/1/lisboa/table/rou-1/round", kind, at, seq, replay=replay, data=encoded)


def message(topic: str, one: Wire) -> Message:
    return Message(topic, msgspec.json.encode(one))


LANDED = message(DEVICE, wire("ball.landed", {"pocket": "17"}))
RESULT = {"round": "rou-1:2026-11-23:124", "void": None, "announcements": {"en": "17, black"}}
VOID = RESULT | {"void": {"reason": {"code": "no_ball", "values": {}}, "bets": "returned"}}
SUSPENDED = {
    "round": "rou-1:2026-11-23:125",
    "reason": {"code": "events_missing", "values": {}},
    "remedy": {"code": "declare_void", "values": {}},
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return parse(CONFIG.format(folder=tmp_path))


# ---- words


@pytest.mark.parametrize(
    ("kind", "data", "severity", "text"),
    [
        ("ball.landed", {"pocket": "17"}, "info", "ball landed: 17"),
        ("dice.read", {"faces": [4, 2, 3]}, "info", "dice read: 4 2 3"),
        ("dice.thrown", {"faces": [4, 2], "valid": True}, "info", "dice thrown: faces 4 2, valid"),
        ("bets.opened", {}, "info", "bets opened"),
        ("seat.acted", {"seat": 2, "action": "stand"}, "info", "seat acted: seat 2, action stand"),
        ("round.paid", {"round": "rou-1:2026-11-23:7"}, "info", "round paid: 7"),
        ("card.drawn", {"card": "9D", "age_ms": 1500}, "info", "card drawn: 9D, 1.5 s late"),
        ("events.missed", {"count": 3}, "warning", "events missed: 3"),
        (
            "device.faulted",
            {"code": "wheel.no_ball", "text": "no ball", "severity": "error", "remedy": "put it back"},
            "error",
            "fault: no ball. To do: put it back",
        ),
        ("device.faulted", {"text": "warm", "severity": "warning"}, "warning", "warning: warm"),
        ("device.recovered", {"code": "wheel.no_ball"}, "info", "over: no ball is detected in the track"),
        ("device.recovered", {"code": "new.code"}, "info", "over: new.code"),
        ("device.online", {"continuous": True, "model": "SS2"}, "info", "online (SS2)"),
        ("device.online", {"continuous": False}, "info", "online; events may have been missed"),
        ("device.offline", {"reason": "unplugged"}, "error", "offline: unplugged"),
        ("device.commanded", {"command": "agitate", "status": "done"}, "info", "command agitate: done"),
        (
            "device.commanded",
            {"command": "agitate", "status": "refused", "text": "it is busy"},
            "warning",
            "command agitate: refused, it is busy",
        ),
        ("machine.reported", {"code": "7E", "text": "game started"}, "info", "machine: game started (7E)"),
        ("newer.event", {"a": {"b": 1}, "c": 2}, "info", "newer event: a b 1, c 2"),
        ("ball.landed", "?", "warning", 'ball.landed: cannot be read: "?"'),
    ],
)
def test_an_event_in_plain_words(kind: str, data: Any, severity: Severity, text: str) -> None:
    assert in_words(wire(kind, data)) == (severity, text)


@pytest.mark.parametrize(
    ("kind", "data", "severity", "text"),
    [
        ("opened", {"round": "rou-1:2026-11-23:124"}, "info", "round 124 opens"),
        ("bets-closed", {"round": "rou-1:124"}, "info", "round 124: no more bets"),
        ("resolved", {"result": RESULT}, "info", "round 124: 17, black"),
        ("corrected", {"result": RESULT}, "warning", "round 124 corrected: 17, black"),
        ("voided", {"result": VOID}, "warning", "round 124: void: no ball is detected in the track"),
        ("resolved", {"result": 7}, "info", "resolved: cannot be read: "),
        ("newer", {"round": "rou-1:124"}, "info", "newer 124"),
    ],
)
def test_a_verdict_in_plain_words(kind: str, data: Any, severity: Severity, text: str) -> None:
    line = line_of(ROUND, wire(kind, data))
    assert (line.place, line.severity) == ("rou-1", severity)
    assert line.text == text or (text.endswith("read: ") and line.text.startswith(text))


def test_a_suspended_round_says_why_and_what_to_do() -> None:
    line = line_of(ROUND, wire("suspended", SUSPENDED))
    assert line.severity == "error"
    assert line.text.startswith("round 125 suspended: ")
    assert ". To do: " in line.text


@pytest.mark.parametrize(
    ("name", "number"), [("rou-1:2026-11-23:124", "124"), ("bac-1:2026-11-23:2:17", "2:17"), ("rou-1:9", "9")]
)
def test_a_round_is_named_by_its_number(name: str, number: str) -> None:
    assert round_number(name) == number


# ---- what is shown


def shown_of(
    config: Config, messages: list[Message], columns: int | None = None, **asked: Any
) -> tuple[list[str], list[str]]:
    """The lines for these messages, and the remarks."""
    said: list[str] = []
    remarks: list[str] = []

    class Feed:
        async def subscribe(self, *topics: str) -> None:
            self.topics = topics

        async def messages(self) -> list[Message]:
            if not messages:
                raise asyncio.CancelledError
            return [messages.pop(0)]

    async def once(_mqtt: Any, _name: str, _will: Any, serve: Callable[[Any], Any], _log: Any) -> None:
        await serve(Feed())

    async def body() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watching, "stay_connected", once)
            with pytest.raises(asyncio.CancelledError):
                await watching.watch(config, Shown(**asked), said.append, remarks.append, lambda: columns)

    with asyncio.Runner() as runner:
        runner.run(body())
    return said, remarks


def test_a_line_has_time_place_and_words(config: Config) -> None:
    (line,), _ = shown_of(config, [LANDED])
    assert line == f"{NOW.astimezone():%H:%M:%S} rou-1/wheel-1 ball landed: 17"


def test_a_long_line_is_wrapped_under_itself_on_a_terminal(config: Config) -> None:
    fault = {
        "text": "the ball is not detected for more than 5 s after no more bets",
        "severity": "error",
        "remedy": "put it",
    }
    long = message(DEVICE, wire("device.faulted", fault))
    (line,), _ = shown_of(config, [long], columns=60)
    plain = line.removeprefix("\x1b[31m").removesuffix("\x1b[0m")
    assert plain != line, "a fault is red"
    assert all(len(one) <= 60 for one in plain.split("\n"))
    assert [one[:23].isspace() for one in plain.split("\n")] == [False, True, True]
    (line,), _ = shown_of(config, [long])
    assert line.endswith("rou-1/wheel-1 fault: " + fault["text"] + ". To do: put it"), "neither wrapped nor coloured"


def test_lines_are_chosen_by_severity(config: Config) -> None:
    def three() -> list[Message]:
        return [
            LANDED,
            message(DEVICE, wire("events.missed", {"count": 1}, 2)),
            message(DEVICE, wire("device.offline", {"reason": "x"}, 3)),
        ]

    assert [len(shown_of(config, three(), severity=one)[0]) for one in ("info", "warning", "error")] == [3, 2, 1]


def test_a_message_that_comes_again_is_shown_once(config: Config) -> None:
    assert len(shown_of(config, [LANDED, LANDED])[0]) == 1


def test_json_is_the_event_as_it_came(config: Config) -> None:
    (line,), _ = shown_of(config, [LANDED], columns=80, as_json=True)
    assert json.loads(line) == json.loads(LANDED.payload)


@pytest.mark.parametrize("payload", [b"\xff", b'{"specversion":"\xff"}', b"{}"])
def test_what_cannot_be_read_is_named(config: Config, payload: bytes) -> None:
    (line,), _ = shown_of(config, [Message(DEVICE, payload)])
    assert line.startswith(f"? {DEVICE}: ")
    (line,), _ = shown_of(config, [Message(DEVICE, payload)], as_json=True)
    assert json.loads(line)["topic"] == DEVICE


# ---- the past


@pytest.mark.parametrize(
    ("text", "ago"),
    [("30s", timedelta(seconds=30)), ("10m", timedelta(minutes=10)), ("2h", timedelta(hours=2)), ("1d", timedelta(1))],
)
def test_since_is_a_span(text: str, ago: timedelta) -> None:
    assert since_of(text, NOW) == NOW - ago


def test_since_is_a_time() -> None:
    assert since_of("2026-11-23T20:00:00+08:00", NOW) == NOW
    assert since_of("2026-11-23T20:00", NOW) == datetime(2026, 11, 23, 20).astimezone(UTC)
    for text in ("yesterday", "", "5", "0001-01-01", "9999999m x", "999999d"):
        with pytest.raises(BadSince, match="write 30s"):
            since_of(text, NOW)


def test_the_past_comes_first_and_nothing_twice(config: Config) -> None:
    now = datetime.now(UTC)
    with contextlib.closing(Journal(Path(config.edge.journal))) as journal:
        rows = journal.append(
            [
                Entry("rou-1", "wheel-1", "ball.launched", now - timedelta(hours=1), b"{}"),
                Entry("rou-1", "wheel-1", "ball.landed", now - timedelta(seconds=2), b'{"pocket":"17"}'),
                Entry("bac-1", "shoe-1", "card.drawn", now - timedelta(seconds=1), b'{"card":"9D"}'),
            ]
        )
        name = journal.name
    with contextlib.closing(Journal(Path(config.rules.journal))) as journal:
        data = msgspec.json.encode({"result": RESULT})
        journal.append([Entry("rou-1", "", "resolved", now - timedelta(seconds=2), data, cause="edge-1:rou-1:2/0")])
    live = msgspec.structs.replace(
        wire("ball.landed", {"pocket": "17"}, 2, at=rows[1].time), id="edge-1:rou-1:2", journal=name
    )
    lines, _ = shown_of(config, [message(DEVICE, live)], since=now - timedelta(minutes=1))
    assert [line[9:].split(maxsplit=1) for line in lines] == [
        ["rou-1/wheel-1", "ball landed: 17"],
        ["rou-1", "round 124: 17, black"],
        ["bac-1/shoe-1", "card drawn: 9D"],
    ]
    lines, _ = shown_of(config, [], since=now - timedelta(hours=2), tables=("rou-1",), device="wheel-1")
    assert [line.split(maxsplit=2)[2] for line in lines] == ["ball launched", "ball landed: 17"]


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(
        CONFIG.format(folder=tmp_path).replace('name = "bac-1"', 'name = "bac-1"\nruleset = "macau.baccarat"')
    )
    (tmp_path / "edge.db").write_bytes(b"no database at all, though long enough to be looked at as one" * 20)
    result = CliRunner().invoke(main, ["watch", "-c", str(path), "--since", "10m"])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: --since {tmp_path}/edge.db cannot be read: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--since soon", "--since soon: write 30s, 10m, 2h, 1d or a time"),
        ("--table rou-2", "'rou-2' is not in "),
        ("rou-1/wheel-1 --table bac-1", "--table: not with the device rou-1/wheel-1"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, words: str, says: str) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG.format(folder=tmp_path))
    result = CliRunner().invoke(main, ["watch", "-c", str(path), *words.split()])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {says}")


# ---- the broker


@virtual_time
async def test_a_broker_that_is_away_is_said_once_and_then_that_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    remarks: list[str] = []
    tries = 0

    class Session:
        async def subscribe(self, *_: str) -> None:
            return

        async def until_lost(self) -> None:
            await asyncio.sleep(60)
            raise BrokerLost("it ended")

        async def messages(self) -> list[Message]:
            if not said:
                return [LANDED]
            await asyncio.Event().wait()
            raise AssertionError

    @contextlib.asynccontextmanager
    async def connect(*_: Any) -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        if 2 <= tries <= 4:
            raise BrokerLost("refused")
        yield Session()

    monkeypatch.setattr(watching, "stay_connected", partial(stay_connected, connecting=connect))
    config = parse(CONFIG.format(folder=tmp_path))
    task = asyncio.create_task(watching.watch(config, Shown(), said.append, remarks.append))
    await asyncio.sleep(100)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert len(said) == 1
    assert [remark[9:] for remark in remarks] == [
        "-- connected to the broker: 127.0.0.1:1883",
        "-- not connected to the broker 127.0.0.1:1883: it ended; check that it runs, and [mqtt]; trying again",
        "-- the broker is back: 127.0.0.1:1883",
    ]
