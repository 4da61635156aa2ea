"""The command line: each bad input gives one clear message with its place and exit code 2; pipelines give the truth."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner, Result
from helpers import START, at_length
from hypothesis import given, settings, strategies as st
from small_site import SMALL_SITE

from daemon.broker.mac_keys import make_mac_keys
from daemon.captures import CAPTURE_HEAD, Frame, capture_line
from daemon.cli.common import run_process
from daemon.cli.main import main
from daemon.cli.offline import BadInput, capture_frames, events_from, replay, resolve
from daemon.edge.edge import Edge
from daemon.journal import reader as reader_module
from daemon.journal.rows import Entry
from daemon.journal.store import BadJournal, Journal
from drivers import DRIVERS
from protocols.cammegh_ss2 import Packet, encode
from protocols.contract.events import EVENT_TYPES
from rules import RULESETS
from rules.engine.ruleset import Ruleset
from simulators.devices.cammegh_ss2 import Wheel
from simulators.devices.compare import Account, Outcome, compare
from simulators.lab.broker import free_port
from simulators.lab.campaign import real as campaign_real
from simulators.lab.commands import BENCHES
from simulators.tables.table import Truth


@pytest.fixture(autouse=True)
def logs_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command line sets up logging and garbage collection for its process; here that is the tests'."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_systemd_is_notified_of_a_stop_at_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))

        async def process() -> None:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.Event().wait()
            finally:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        heard.append(systemd.recv(100))

        run_process(process)
    assert heard == [b"READY=1", b"STOPPING=1"]


def run(*words: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=stdin)


def refused(result: Result) -> str:
    """The one message of a command that refuses its input."""
    assert result.exit_code == 2, result.output
    assert not result.stdout or result.stdout.startswith("{")
    assert "Traceback" not in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    message = result.stderr[result.stderr.index("Error: ") + 7 :].rstrip("\n")
    assert message
    return message


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "feltd.toml"
    path.write_text(SMALL_SITE.format(folder=tmp_path), encoding="utf-8")
    make_mac_keys(tmp_path, "edge-1", "lisboa")
    return path


# ---- configuration


@pytest.mark.parametrize("command", ["check", "edge", "rules", "watch", "record"])
def test_every_process_refuses_a_broken_configuration_alike(config: Path, command: str) -> None:
    config.write_text(config.read_text().replace("journal", "jornal", 1).replace('"wheel-1"', '"Wheel 1"'))
    more = ["rou-1/wheel-1"] if command == "record" else []
    first, second = refused(run(command, "-c", config, *more)).split("\n")
    assert first == f"{config}:6: unknown key 'edge.jornal'; did you mean 'journal'?"
    assert second.startswith(f"{config}:16: 'table.device.name': a name is small letters")


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    assert refused(run("check", "-c", tmp_path / "x")) == (
        f"{tmp_path}/x: cannot be read: No such file or directory; "
        "name your configuration, or write one with `feltd init`"
    )


def test_check_names_wrong_drivers_links_and_games(config: Path) -> None:
    text = config.read_text().replace("cammegh_ss2", "camegh").replace("serial:", "udp:").replace("macau.r", "macau.x")
    config.write_text(text)
    assert [line.partition(": ")[0] for line in refused(run("check", "-c", config)).split("\n")] == [
        f"{config}:13",
        f"{config}:17",
        f"{config}:18",
    ]
    assert "no driver 'camegh'" in refused(run("edge", "-c", config))
    assert "no ruleset 'macau.xoulette'" in refused(run("rules", "-c", config))


def test_check_prints_what_a_good_file_says(config: Path) -> None:
    result = run("check", "-c", config)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        f"{config}: good. Site lisboa, edge edge-1, broker 127.0.0.1:1883",
        "  rou-1: macau.roulette",
        f"    wheel-1: cammegh_ss2 at serial://{config.parent}/tty",
    ]


def test_a_probe_says_what_does_not_answer(config: Path) -> None:
    result = run("check", "-c", config, "--probe")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == (
        f"rou-1/wheel-1: FAILS: serial://{config.parent}/tty: {config.parent}/tty is not there; "
        "check its cable and power; `feltd detect` lists what is plugged in"
    )


@pytest.mark.parametrize(
    ("driver", "url", "text"),
    [
        (
            "tcs_saturn",
            "tcp://127.0.0.1:{port}",
            "127.0.0.1:{port}: Connection refused; check that it is on, and its port",
        ),
        ("tcs_saturn", "serial:?vid=0403&pid=6001", "nothing with vid=0403 pid=6001 is plugged in; check its cable"),
        (
            "billy_iii",
            "mqtt://127.0.0.1:{port}/?hear=a&say=b",
            "127.0.0.1:{port}: Connection refused; check that the broker runs, and host and port of the url",
        ),
    ],
)
def test_failed_probe_names_device_url_and_remedy(tmp_path: Path, driver: str, url: str, text: str) -> None:
    port = free_port()
    url, text = url.format(port=port), text.format(port=port)
    path = tmp_path / "feltd.toml"
    path.write_text(
        f'[site]\nname = "lisboa"\n[edge]\nname = "edge-1"\n[[table]]\nname = "t-1"\n'
        f'[[table.device]]\nname = "d-1"\ndriver = "{driver}"\nurl = "{url}"\n'
    )
    said = run("check", "-c", path, "--probe").stdout.splitlines()[-1]
    assert said.startswith(f"t-1/d-1: FAILS: {url}: ")
    assert re.match(text, said.removeprefix(f"t-1/d-1: FAILS: {url}: ")), said


@pytest.mark.parametrize(("command", "which"), [("edge", "edge"), ("rules", "rules")])
def test_a_journal_in_use_is_named(config: Path, monkeypatch: pytest.MonkeyPatch, command: str, which: str) -> None:
    monkeypatch.setattr(reader_module, "LOCKED_TIMEOUT", 0.01)
    path = config.parent / f"{which}.db"
    holder = Journal(path)
    said = refused(run(command, "-c", config))
    assert said == f"{path}: database is locked; another process may be using it"
    holder.close()


def test_a_journal_that_fails_under_way_is_one_message(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_edge: Edge) -> None:
        raise BadJournal("edge.db: disk is full; nothing was lost that was written before")

    monkeypatch.setattr(Edge, "serve", fails)
    monkeypatch.setattr(Edge, "supervise", lambda *_: None)
    result = run("edge", "-c", config)
    assert result.exit_code == 1
    assert result.stderr == "Error: edge.db: disk is full; nothing was lost that was written before\n"


def test_a_mistake_in_a_file_with_a_percent_in_its_name(config: Path) -> None:
    path = config.rename(config.with_name("a%20b.toml"))
    path.write_text(path.read_text().replace("cammegh_ss2", "camegh"))
    assert refused(run("check", "-c", path)).startswith(f"{path}:17: no driver 'camegh'")


# ---- captures


def recorded(seed: int, seconds: float) -> tuple[Wheel, list[Frame]]:
    """A wheel, and what it said."""
    wheel = Wheel(random.Random(seed))
    frames: list[Frame] = []
    now = 0.0
    while now < seconds:
        now = max(wheel.due(), now)
        said = wheel.wake(now)
        if said:
            frames.append(Frame(START + timedelta(seconds=now), True, said))
    return wheel, frames


def written(path: Path, frames: Sequence[Frame]) -> Path:
    """A capture file."""
    path.write_text("\n".join([f"{CAPTURE_HEAD} driver=cammegh_ss2", *map(capture_line, frames)]) + "\n")
    return path


ONE = "2026-11-20T20:00:00.5+00:00"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", ": is empty; a capture is raw bytes, or what `feltd record` writes"),
        (b"# feltd capture 1\n", ": holds no bytes"),
        (b"# feltd capture 1\n\n# nothing\n", ": holds no bytes"),
        (b"# feltd capture 1\nhello\n", ":2: expected `TIME < HEX` or `TIME > HEX`, with a UTC time"),
        (f"# feltd capture 1\n{ONE} < 00\n{ONE} < 0g\n".encode(), ":3: expected"),
        (f"# feltd capture 1\n{ONE} < 0\n".encode(), ":2: expected"),
        (f"# feltd capture 1\n{ONE} <\n".encode(), ":2: expected"),
        (f"# feltd capture 1\n{ONE} = 00\n".encode(), ":2: expected"),
        (f"# feltd capture 1\n\n{ONE[:-6]} < 00\n".encode(), ":3: expected"),
        (b"# feltd capture 1\n2026-13-20T20:00:00Z < 00\n", ":2: expected"),
        (b"# feltd capture 1\n0001-01-01T00:00:00+14:00 < 00\n", ":2: expected"),
        (b"# feltd capture 1\n\xff\n", ": byte 18: a capture is plain ASCII text"),
    ],
)
def test_a_bad_capture_is_named_with_its_line(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "x.capture"
    path.write_bytes(text)
    assert refused(run("replay", path, "--driver", "cammegh_ss2")).startswith(f"{path}{said}")


def test_a_capture_that_is_not_there(tmp_path: Path) -> None:
    said = refused(run("replay", tmp_path / "x", "--driver", "cammegh_ss2"))
    assert said == f"{tmp_path}/x: No such file or directory; check the path, and that its folder exists"
    assert "is a directory" in refused(run("replay", tmp_path, "--driver", "cammegh_ss2"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--driver", "wheel"], "no driver 'wheel'; known: alpha_sign, bee_tek_shoe"),
        (["--driver", "cammegh_ss2", "--option", "silence"], "--option silence: write NAME=VALUE"),
        (["--driver", "cammegh_ss2", "--option", "silance=3"], "cammegh_ss2: there is no 'silance'"),
        (["--driver", "cammegh_ss2", "--option", "silence=x"], "cammegh_ss2: silence: must be a number"),
        (["--driver", "cammegh_ss2", "--option", "silence=0"], "cammegh_ss2: silence: must be at least 1.0"),
        (["--driver", "cammegh_ss2", "--pace", "99"], "Invalid value for '--pace'"),
        ([], "Missing option '--driver'"),
    ],
)
def test_wrong_words_for_a_replay(tmp_path: Path, words: list[str], said: str) -> None:
    path = written(tmp_path / "x.capture", recorded(1, 5)[1])
    assert said in refused(run("replay", path, *words))


def test_a_device_that_refuses_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "x.capture", [Frame(START, True, encode(Packet("K", "TCS")) * 2)])
    said = refused(run("replay", path, "--driver", "cammegh_ss2"))
    assert said.startswith("cammegh_ss2: the device refuses: the device answers *K with 'TCS'")


@pytest.mark.parametrize("pace", [0.1, 0.5, 0.9, 2.0])
def test_no_byte_is_lost_however_seldom_they_come(pace: float) -> None:
    """A driver gives up waiting and asks; what comes then is heard."""
    line = b"*o:1157\r\n"
    frames = [Frame(START + timedelta(seconds=n * pace), True, b"%d" % n + line) for n in range(40)]
    heard: list[bytes] = []

    class Listens:
        Options = DRIVERS["cammegh_ss2"].Options

        def __init__(self, options: Any, memory: bytes | None = None) -> None:
            pass

        async def run(self, link: Any, _emit: Any) -> None:
            while True:
                try:
                    async with asyncio.timeout(0.75):
                        heard.append((await link.read()).data)
                except TimeoutError:
                    await link.write(b"?")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DRIVERS, "listens", Listens)
        assert replay(frames, "listens", {}) == []
    assert heard == [frame.data for frame in frames]


def test_a_capture_goes_on_after_an_outage(tmp_path: Path) -> None:
    """The cable was out for a minute: the wheel is offline, and back, as in production."""
    wheel, frames = recorded(1, 600)
    begin, end = START + timedelta(seconds=200), START + timedelta(seconds=260)
    path = written(tmp_path / "x.capture", [frame for frame in frames if not begin <= frame.at < end])
    result = run("replay", path, "--driver", "cammegh_ss2")
    assert result.exit_code == 0, result.output
    events = [json.loads(line) for line in result.stdout.splitlines()]
    status = [(one["type"], one["data"].get("reason")) for one in events if one["type"].startswith("device.o")]
    assert status == [
        ("device.online", None),
        ("device.offline", "no valid line for 3 s"),
        ("device.online", None),
    ]
    landed = [one["data"]["pocket"] for one in events if one["type"] == "ball.landed"]
    assert len(wheel.truth) - 4 <= len(landed) < len(wheel.truth)
    assert any(one["type"] == "spin.missed" for one in events)
    assert max(datetime.fromisoformat(one["time"]) for one in events) > START + timedelta(seconds=550)


# ---- events


def resolving(stdin: str, *words: str) -> Result:
    return run("resolve", "--ruleset", "macau.roulette", *words, "-", stdin=stdin)


SPIN = "".join(
    json.dumps({"type": type_, "data": data}) + "\n"
    for type_, data in [
        ("spin.started", {}),
        ("ball.launched", {"direction": "clockwise", "rotor": "anticlockwise"}),
        ("ball.landed", {"pocket": "17"}),
    ]
)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not an event: Input data was truncated; write one JSON object a line, like {"),
        ("hello", "not an event: JSON is malformed"),
        ("[]", "not an event: must be a table of names and values"),
        ("{}", "not an event: 'type' is missing"),
        ('{"type":7}', "not an event: type: must be a text"),
        ('{"type":"bets.opened","data":[]}', "not an event: data: must be a table of names and values"),
        ('{"type":"bets.opened","time":"yesterday"}', "not an event: time: Invalid RFC3339"),
        (
            '{"type":"bets.opened","time":"2026-11-20T20:00:00"}',
            "time 2026-11-20T20:00:00 has no zone; write it in UTC, ending in Z",
        ),
        ('{"type":"bets.opened","time":"0001-01-01T00:00:00+14:00"}', "time 0001-01-01T00:00:00+14:00 is not between"),
        ('{"type":"bets.opened","type":"round.paid"}', "not an event: the key 'type' is there twice; write one"),
        ('{"type":"ball.landed","data":{"pocket":"1","pocket":"2"}}', "not an event: the key 'pocket' is there twice"),
        ('{"type":"deal.corrected","data":{"hands":{"a":[],"b":[],"a":[]}}}', "not an event: the key 'a' is there"),
        (
            '{"feltd":"x","type":"ball.landed"}',
            "a line with the key 'feltd' is of an export: 'export' and 'checkpoint', n",
        ),
        (
            '{"feltd":null}',
            "a line with the key 'feltd' is of an export: 'export' and 'checkpoint', not None; an event",
        ),
        ('{"feltd":["export"]}', "a line with the key 'feltd' is of an export"),
        ('{"feltd":"checkpoint","type":"ball.landed"}', "a line 'checkpoint' of an export must have 'signature'; take"),
        (
            '{"feltd":"checkpoint","statement":"","signature":"","type":"ball.landed"}',
            "a line 'checkpoint' of an export has no 'type'; take the file as it was written",
        ),
        ('{"feltd":"export","version":2}', "a line 'export' of an export must have 'before'"),
        (
            '{"type":"ball.landed","data":{"pocket":"1"},"datahex":"","micros":-1}',
            "the time of this event is unknown; leave its round out",
        ),
        ('{"type":"bets.opened"}{"type":"bets.opened"}', "not an event: JSON is malformed"),
        ('{"type":"bets.opened","dta":{}}', "unknown 'dta'; an event has type and data"),
        ('{"type":"ball.landd"}', "unknown event type 'ball.landd'; known: shoe.started, card.drawn"),
        ('{"type":"ball.landed","data":{"poket":"1"}}', "ball.landed has no 'poket'; its data: pocket"),
        ('{"type":"bets.opened","data":{"now":true}}', "bets.opened has no 'now'; its data: none"),
        ('{"type":"ball.landed","data":{}}', "ball.landed: 'pocket' is missing"),
        (
            '{"type":"ball.landed","data":{"pocket":"37"}}',
            "ball.landed: a pocket is 0 to 36, or 00, 000, 0000; wrong at `$.pocket`",
        ),
        (
            '{"type":"card.drawn","data":{"card":"1X"}}',
            "card.drawn: a card is rank then suit, T is ten: AS TD 9H KC; wrong at `$.card`",
        ),
        ('{"type":"dice.read","data":{"faces":[1,7]}}', "dice.read: faces[1]: must be at most 6"),
        ('{"type":"bets.opened","data":{"x":' + "[" * 100_000 + "]" * 100_000 + "}}", "not an event: "),
        ('{"type":"bets.opened","seq":1e400}', "not an event: "),
    ],
)
def test_a_bad_event_is_named_with_its_line(line: str, said: str) -> None:
    result = resolving(f"{SPIN}\n{line}\n{SPIN}")
    message = refused(result)
    assert message.startswith(f"<stdin>:5: {said}")
    assert json.loads(result.stdout)["outcome"]["pocket"] == "17"  # what was good before it was used


def test_the_message_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "night.ndjson"
    path.write_text("{}\n")
    assert refused(run("resolve", "--ruleset", "macau.roulette", path)).startswith(f"{path}:1: not an event")
    path.write_bytes(b'{"type":"\xff"}\n')
    assert refused(run("resolve", "--ruleset", "macau.roulette", path)).startswith(f"{path}: not UTF-8 text: ")
    missing = refused(run("resolve", "--ruleset", "macau.roulette", tmp_path / "x"))
    assert f"'{tmp_path}/x': No such file or directory" in missing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--option", "beting=bell"], "macau.roulette has no option 'beting'; it has: edition, betting"),
        (
            ["--option", "edition=2004", "--option", "edition=2003"],
            "--option edition is there twice, as '2004' and '2003'; write it once",
        ),
        (["--option", "edition=2004", "--option", "edition=2004"], "--option edition is there twice"),
        (["--option", "betting"], "--option betting: write NAME=VALUE"),
        (["--option", "betting=never"], "macau.roulette: betting: 'never' cannot be chosen"),
        (["--option", "smallest_chip=0"], "macau.roulette: smallest_chip: must be at least 1"),
        (["--option", "zero_combinations=maybe"], "macau.roulette: zero_combinations: must be true or false"),
        (["--option", "edition=2003", "--option", "betting=no_more_bets"], "30/2003 art. 3: bets close at the bell"),
        (["--option", "bets_offered=nine"], "art. 6(6)"),
        (["--option", "bets_offered=red,green"], "art. 6 has no bet 'green'"),
    ],
)
def test_a_wrong_option_is_named(words: list[str], said: str) -> None:
    assert said in refused(resolving(SPIN, *words))


def test_an_unknown_ruleset_is_named() -> None:
    for words in (["resolve", "--ruleset", "macau.rulette"], ["rulesets", "macau.rulette"]):
        assert refused(run(*words, stdin="")) == "no ruleset 'macau.rulette'; did you mean 'macau.roulette'?"


def test_an_event_said_twice_counts_once() -> None:
    lines = [json.dumps({**json.loads(line), "id": f"e{n}"}) for n, line in enumerate(SPIN.splitlines())]
    doubled = [line for line in lines for _ in range(2)]
    once, twice = resolving("\n".join(lines), "--all"), resolving("\n".join(doubled), "--all")
    assert once.stdout == twice.stdout != ""
    assert [seen.id for seen in events_from(doubled, "x", "t")] == ["e0", "e1", "e2"]


@pytest.mark.parametrize(
    "other",
    [
        {"data": {"pocket": "18"}},
        {"type": "round.paid", "data": {}},
        {"time": "2026-11-20T20:00:01Z"},
        {"seq": 4},
        {"source": "felt/1/s/table/t/device/other"},
    ],
)
def test_one_id_with_two_events_is_refused_at_its_place(other: dict[str, Any]) -> None:
    """The second would be dropped, and a result would rest on the first alone."""
    one = {"id": "e", "type": "ball.landed", "data": {"pocket": "17"}}
    lines = [json.dumps({"type": "bets.opened"}), json.dumps(one), json.dumps(one), json.dumps(one | other)]
    said = "x:4: another event has the id 'e' at line 2; give each event its own"
    with pytest.raises(BadInput, match=re.escape(said)):
        list(events_from(lines, "x", "t"))


def test_a_journal_that_was_begun_anew_counts_its_own_ids() -> None:
    one = {"id": "e:t:1", "type": "ball.landed", "data": {"pocket": "17"}, "journal": "a"}
    lines = [json.dumps(one), json.dumps(one | {"journal": "b", "data": {"pocket": "18"}})]
    assert len(list(events_from(lines, "x", "t"))) == 2


# ---- pipelines


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Wheel, Path, Path]:
    """Two hours of a wheel, as a capture and as raw bytes of its line."""
    folder = tmp_path_factory.mktemp("night")
    wheel, frames = recorded(7, 7200)
    raw = folder / "raw"
    raw.write_bytes(b"".join(frame.data for frame in frames))
    return wheel, written(folder / "x.capture", frames), raw


def outcomes(stdout: str) -> list[Outcome]:
    results = [json.loads(line) for line in stdout.splitlines()]
    return [
        Outcome(one["round"], one["outcome"], one["void"]["reason"]["code"] if one["void"] else "") for one in results
    ]


@pytest.mark.parametrize("which", ["capture", "raw"])
def test_from_the_wire_to_the_results(night: tuple[Wheel, Path, Path], which: str) -> None:
    """Every spin comes out as the wheel knows it was, but for the one under way at either end."""
    wheel, capture, raw = night
    replayed = run("replay", capture if which == "capture" else raw, "--driver", "cammegh_ss2")
    assert replayed.exit_code == 0, replayed.output
    wires = [json.loads(line)["wire"] for line in replayed.stdout.splitlines()]
    assert all(bytes.fromhex(wire) in raw.read_bytes().replace(b"\r\n", b"\r\n") or "0d0a" in wire for wire in wires)
    resolved = resolving(replayed.stdout, "--option", "betting=no_more_bets")
    assert resolved.exit_code == 0, resolved.output
    truths = [Truth({} if spin.reason else {"pocket": spin.pocket}, bool(spin.reason)) for spin in wheel.truth]
    account = compare(truths, outcomes(resolved.stdout))
    assert len(truths) > 150
    assert (account.wrong, account.extra) == (0, 0)
    if which == "capture":
        assert account == Account(right=len(truths))
    else:  # the times of raw bytes are guessed: a spin may be void for that, but never wrong
        assert account.right + account.voided == len(truths)
        assert account.right > len(truths) // 2


def test_the_same_events_give_the_same_bytes(night: tuple[Wheel, Path, Path]) -> None:
    _, capture, _ = night
    events = [run("replay", capture, "--driver", "cammegh_ss2").stdout for _ in range(2)]
    assert events[0] == events[1] != ""
    for words in ([], ["--all"]):
        results = [resolving(events[0], *words).stdout for _ in range(2)]
        assert results[0] == results[1] != ""
    everything = [json.loads(line) for line in resolving(events[0], "--all").stdout.splitlines()]
    assert {"opened", "bets-closed", "resolved"} <= {one["type"] for one in everything}
    only = [one["result"] for one in everything if one["type"] in ("resolved", "voided", "corrected")]
    assert [json.loads(line) for line in resolving(events[0]).stdout.splitlines()] == only


def test_the_table_is_named_in_the_rounds() -> None:
    result = json.loads(resolving(SPIN, "--table", "rou-7").stdout)
    assert result["round"].startswith("rou-7:")


# ---- listings


def test_listings_are_json_where_asked() -> None:
    devices = json.loads(run("devices", "--json").stdout)
    assert {one["driver"] for one in devices} == set(DRIVERS)
    assert all(one["title"] and one["evidence"] for one in devices)
    games = json.loads(run("rulesets", "--json").stdout)
    assert [one["ruleset"] for one in games] == list(RULESETS)
    for game in games:
        assert json.loads(run("rulesets", game["ruleset"], "--json").stdout) == game
        assert all(bet["pays"] and bet["law"] for bet in game["bets"])
        assert {option["name"] for option in game["options"]} >= {"edition"} or game["options"]


def test_listings_are_tables_for_people() -> None:
    devices = run("devices").stdout.splitlines()
    assert devices[0].split() == ["driver", "device", "evidence"]
    assert len(devices) == len(DRIVERS) + 1
    games = run("rulesets").stdout.splitlines()
    assert [line.split()[0] for line in games] == ["ruleset", *RULESETS]
    for name, kind in RULESETS.items():
        page = run("rulesets", name).stdout
        assert page.startswith(f"{name}  {kind.title}\n{kind.law}\n")
        assert all(bet.id in page for bet in kind(kind.Options()).bets())


def test_a_device_is_one_of_the_list_for_programs() -> None:
    every = json.loads(run("devices", "--json").stdout)
    assert json.loads(run("devices", "fdl_shaker", "--json").stdout) in every


@pytest.mark.parametrize("words", [["cards"], ["compute-figures", "macau.fantan", "--write"]])
def test_a_folder_that_cannot_be_written_is_named(words: list[str]) -> None:
    assert refused(run(*words, "/proc/x")) == (
        "/proc/x: No such file or directory; check the path, and that its folder exists"
    )


def test_connected_ports_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    from daemon.cli import listings
    from daemon.edge.links import usb as links_usb

    assert run("detect").exit_code == 0
    monkeypatch.setattr(listings, "plugged_in", list)
    monkeypatch.setattr(links_usb, "plugged_in", list)
    nothing = "no serial port and no scanner is plugged in\n"
    assert run("detect").stdout == nothing
    scanners = [links_usb.Plugged(0x5E0, 0x1200, "S 1&2", "Scanner"), links_usb.Plugged(0xC2E, 0xB61, "", "")]
    monkeypatch.setattr(links_usb, "plugged_in", lambda: scanners)
    urls = [line.split()[0] for line in run("detect").stdout.splitlines()]
    assert urls == ["link", "usb:?vid=05e0&pid=1200&serial=S+1%262", "usb:?vid=0c2e&pid=0b61"]
    assert links_usb._target(urls[1]).serial == "S 1&2"


# ---- in the field


@pytest.mark.parametrize("words", [("check", "-c"), ("acl",), ("journal", "verify", "-c")])
def test_configuration_of_another_user_is_one_message(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    user, access = os.geteuid(), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode, effective_ids=True))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "feltd.toml")
        path.touch(mode=0)
        run(*words, path)  # what it imports is read as this user
        try:
            os.seteuid(65534 if user == 0 else user)
            said = refused(run(*words, path))
        finally:
            os.seteuid(user)
    assert said == f"{path}: cannot be read: Permission denied; run this with sudo, or as a user in the group feltd"


def test_name_missing_in_the_configuration_is_reported(config: Path) -> None:
    assert refused(run("record", "-c", config, "rou-1/wheel-2")) == (
        f"no device 'rou-1/wheel-2' in {config}; known: rou-1/wheel-1"
    )
    assert refused(run("watch", "-c", config, "rou-2")) == f"'rou-2' is not in {config}; tables: rou-1"
    assert refused(run("watch", "-c", config, "rou-1/x")) == f"'rou-1/x' is not in {config}; devices of rou-1: wheel-1"


def test_a_recording_of_nothing_says_why(config: Path) -> None:
    result = run("record", "-c", config, "rou-1/wheel-1")
    assert result.exit_code == 1
    assert result.stdout == f"{CAPTURE_HEAD} driver=cammegh_ss2\n"
    assert result.stderr == (
        f"rou-1/wheel-1: serial://{config.parent}/tty: {config.parent}/tty is not there; "
        "check its cable and power; `feltd detect` lists what is plugged in\n"
    )


@pytest.mark.parametrize(
    "listen", ["", "x", "tty:", "udp://127.0.0.1:1", "tcp://127.0.0.1", "tcp:127.0.0.1:1", "tcp://127.0.0.1:99999"]
)
def test_a_place_where_nothing_can_listen_is_refused(listen: str) -> None:
    said = refused(run("simulate", "cammegh_ss2", "--listen", listen))
    right = "write tty:/path/of/a/link, tcp://127.0.0.1:4001, or the mqtt: link as the edge has it"
    assert said == f"--listen {listen}: {right}"


def test_a_broker_to_speak_over_needs_both_topics() -> None:
    listen = "mqtt://127.0.0.1:1/?hear=a"
    said = refused(run("simulate", "billy_iii", "--listen", listen))
    assert said.startswith(f"--listen {listen}: ")
    assert "say=" in said


@pytest.mark.parametrize("control", ["4100", "tcp://127.0.0.1:4100", "127.0.0.1:", "127.0.0.1:99999"])
def test_a_control_port_that_cannot_be_meant_is_refused(tmp_path: Path, control: str) -> None:
    said = refused(run("simulate", "cammegh_ss2", "--listen", f"tty:{tmp_path}/tty", "--control", control))
    assert said == f"--control {control}: write 127.0.0.1:4100"
    assert not (tmp_path / "tty").is_symlink()


def test_a_place_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    said = refused(run("simulate", "cammegh_ss2", "--listen", f"tty:{tmp_path}/no/tty"))
    assert said == f"--listen tty:{tmp_path}/no/tty: No such file or directory"
    assert "no simulated device 'wheel'; known: " in refused(run("simulate", "wheel", "--listen", "tty:x"))


# ---- real processes


def feltd(*words: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "daemon.cli", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def test_a_process_refuses_in_one_message(config: Path) -> None:
    config.write_text(config.read_text().replace("[edge]", "[edge"))
    done = feltd("edge", "-c", config)
    assert (done.returncode, done.stdout) == (2, b"")
    told = done.stderr.decode().splitlines()
    assert len(told) == 1
    assert told[0].startswith(f"Error: {config}:4: not TOML: ")


def test_a_pipe_of_two_processes(night: tuple[Wheel, Path, Path]) -> None:
    wheel, capture, _ = night
    replayed = feltd("replay", capture, "--driver", "cammegh_ss2")
    assert (replayed.returncode, replayed.stderr) == (0, b"")
    resolved = feltd(
        "resolve", "--ruleset", "macau.roulette", "--option", "betting=no_more_bets", stdin=replayed.stdout
    )
    assert (resolved.returncode, resolved.stderr) == (0, b"")
    pockets = [one.outcome["pocket"] for one in outcomes(resolved.stdout.decode()) if not one.void]
    assert pockets == [spin.pocket for spin in wheel.truth if not spin.reason][: len(pockets)]


def test_a_reader_that_goes_away_is_no_error_of_ours(night: tuple[Wheel, Path, Path]) -> None:
    _, capture, _ = night
    command = f"{sys.executable} -m daemon.cli replay {capture} --driver cammegh_ss2 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert json.loads(done.stdout)["type"] == "device.online"
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", ["demo --headless --rounds 2", "demo --headless --embedded-broker", "bench tables", "campaign --real"]
)
def test_without_any_broker_that_is_the_one_message(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr("simulators.lab.broker.find_mosquitto", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    remedy = "apt-get install mosquitto, or use `make demo`, which brings a built-in one"
    assert refused(run(*words.split())) == f"there is no MQTT broker here: {remedy}"


def test_a_benchmark_that_cannot_measure_here_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulators.lab.broker.find_mosquitto", lambda: "mosquitto")
    monkeypatch.setattr("simulators.lab.bench.outside.shutil.which", lambda _name: None)
    result = run("bench", "--quick")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "Error: the subscriber is a C program: apt-get install gcc libmosquitto-dev\n"


def test_the_help_of_the_benches_says_which_need_a_broker() -> None:
    lines = [line.split() for line in run("bench", "--help").stdout.splitlines()]
    needs = {line[0]: "needs" in line for line in lines if line and line[0] in BENCHES}
    assert needs == dict.fromkeys(BENCHES, True) | {"decoders": False, "rules": False}


def test_a_real_campaign_says_over_which_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulators.lab.broker.find_mosquitto", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: object())
    monkeypatch.setattr(campaign_real._Night, "body", killed)
    result = run("campaign", "--real", "--kills", "1")
    assert result.exit_code == 0, result.output
    assert "1 nights over the embedded broker (amqtt)" in result.stdout
    assert json.loads(run("campaign", "--real", "--kills", "1", "--json").stdout)["broker"] == "embedded broker (amqtt)"


async def killed(night: Any) -> None:
    """A night in which one process was."""
    night._report.kills["edge"] = 1


FULL = "No space left on device"


@pytest.mark.parametrize(
    "words",
    [
        "schema",
        "devices",
        "check -c CONFIG",
        "record -c CONFIG rou-1/wheel-1",
        "journal recall -c CONFIG rou-1",
        "journal export -c CONFIG rou-1",
        "simulate fdl_shaker --listen tty:FOLDER/tty",
        "figures --help",
    ],
)
def test_a_full_disk_behind_standard_output_is_blamed_on_nothing_else(config: Path, words: str) -> None:
    for name in ("edge", "rules"):
        journal = Journal(config.parent / f"{name}.db")
        if name == "edge":
            journal.append([Entry("rou-1", "wheel-1", "bets.opened", START, b"{}")])
        journal.close()
    words = words.replace("CONFIG", str(config)).replace("FOLDER", str(config.parent))
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "daemon.cli", *words.split()]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=-1, check=False)
    assert done.stderr.decode() == f"Error: standard output: {FULL}\n"
    assert done.returncode == 1
    assert not (config.parent / "tty").is_symlink()


@pytest.mark.parametrize("words", ["schema", "simulate fdl_shaker --listen tty:TTY"])
def test_a_reader_that_was_gone_before_is_no_error_either(config: Path, words: str) -> None:
    words = words.replace("TTY", str(config.parent / "tty"))
    command = f"({sys.executable} -m daemon.cli {words}; echo $? >&2) | true"
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.stderr == b"1\n"
    assert not (config.parent / "tty").is_symlink()


def test_watch_reports_a_full_disk(config: Path) -> None:
    """From within the tasks of a connection."""
    code = """
import asyncio, sys
from daemon.cli import watch as field
from daemon.cli.main import main
async def connected(*args):
    async with asyncio.TaskGroup() as group:
        group.create_task(telling(args[3]))
async def telling(serve):
    class Feed:
        async def subscribe(self, *_): return
        async def messages(self): return [field.Message("felt/1/lisboa/table/rou-1/device/d/event/x", b"{")]
    try:
        await serve(Feed())
    except Exception:
        pass
field.stay_connected = connected
main(sys.argv[1:])
"""
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-c", code, "watch", "-c", str(config)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=-1, check=False)
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: standard output: {FULL}\n")


# ---- any input


@given(
    st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda tail: CAPTURE_HEAD.encode() + b"\n" + tail))
)
@settings(max_examples=at_length(25, 500))
def test_any_bytes_are_a_capture_or_are_refused(raw: bytes) -> None:
    try:
        frames = capture_frames(raw, "x", 0.5)
    except BadInput:
        return
    assert frames
    if not raw.startswith(CAPTURE_HEAD.encode()):
        assert b"".join(frame.data for frame in frames) == raw


@given(st.lists(st.tuples(st.integers(0, 10**9), st.booleans(), st.binary(min_size=1, max_size=20)), min_size=1))
@settings(max_examples=50)
def test_recording_is_read_back(them: list[tuple[int, bool, bytes]]) -> None:
    frames = [Frame(START + timedelta(microseconds=at), way, data) for at, way, data in them]
    raw = "\n".join([CAPTURE_HEAD, *map(capture_line, frames)]).encode()
    assert capture_frames(raw, "x", 0.5) == frames


@given(st.binary(max_size=300), st.sampled_from(sorted(DRIVERS)))
@settings(max_examples=at_length(25, 300))
def test_any_bytes_go_through_any_driver(raw: bytes, driver: str) -> None:
    try:
        seen = replay(capture_frames(raw, "x", 0.5), driver, {})
    except BadInput:
        return
    assert all(one.type in EVENT_TYPES for one in seen)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
TIMES = st.datetimes(timezones=st.just(UTC)).map(lambda time: time.isoformat())
LINES = st.one_of(
    st.text(max_size=40),
    st.builds(
        lambda type_, data, time: json.dumps({"type": type_, "data": data, **({"time": time} if time else {})}),
        st.sampled_from(sorted(EVENT_TYPES)),
        st.one_of(
            VALUES, st.just({}), st.just({"pocket": "17"}), st.just({"card": "AS"}), st.just({"faces": [1, 2, 3]})
        ),
        st.one_of(st.none(), TIMES),
    ),
)


def is_good(line: str) -> bool:
    """Whether a line is an event; otherwise it is refused."""
    try:
        return bool(list(events_from([line], "x", "t")))
    except BadInput:
        return False


@given(st.lists(LINES, max_size=12), st.sampled_from(sorted(RULESETS)))
@settings(max_examples=at_length(25, 500))
def test_any_lines_are_events_or_are_refused(lines: list[str], name: str) -> None:
    ruleset: Ruleset[Any] = RULESETS[name](RULESETS[name].Options())
    good = [line for line in lines if is_good(line)]
    list(resolve(ruleset, events_from(good, "x", "t"), "t"))
