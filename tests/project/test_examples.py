"""The examples for integrators follow the verdicts of a real broker: once, in order, over gaps and restarts."""

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest
from helpers import IDLE_S, broker_may_be_late, script

from daemon.broker.connection import connect
from daemon.broker.session import Session
from daemon.config.model import Mqtt
from protocols.contract.documents import ReplayRequest
from protocols.contract.events import BallLanded, BallLaunched, BallSettling, Event, SpinStarted
from protocols.contract.topics import Wire, encode_wire
from rules import RULESETS
from rules.engine.ruleset import Verdict, options_from
from simulators.lab.broker import Broker, find_mosquitto

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
FLOW = json.loads((EXAMPLES / "node-red-flow.json").read_text(encoding="utf-8"))
NODE_RED = ROOT / ".venv/node-red/node_modules/.bin/node-red"
SETTINGS = """\
module.exports = {
  flowFile: "flow.json", httpAdminRoot: false, httpNodeRoot: false,
  contextStorage: { default: { module: "localfilesystem" } },
};
"""
ROUNDS = 6
MOST_WAITING = 1000
"""Events that an example keeps which came too early."""
NODE = {**os.environ, "NODE_PATH": os.environ.get("NODE_PATH", "/usr/share/nodejs")}
pytestmark = pytest.mark.system


def verdicts() -> list[tuple[str, bytes]]:
    """Each verdict of some spins as it stands on the broker."""
    ruleset = RULESETS["macau.roulette"](options_from(RULESETS["macau.roulette"], {"betting": "no_more_bets"}))
    events: list[Event] = []
    for number in range(1, ROUNDS + 1):
        turn = BallLaunched("clockwise", "anticlockwise")
        events += [SpinStarted(number), turn, BallSettling(), BallLanded(str(number))]
    state = ruleset.start("rou-3")
    said: list[tuple[str, bytes]] = []
    source = "felt/1/lisboa/table/rou-3/round"
    for seen in script(events, "rou-3"):
        new: Sequence[Verdict]
        state, new = ruleset.apply(state, seen)
        for verdict in new:
            kind = str(type(verdict).__struct_config__.tag)
            seq = len(said) + 1
            data = msgspec.Raw(msgspec.json.encode(verdict))
            wire = Wire("1.0", f"{seen.id}/{seq}", source, kind, seen.time, seq, "", "j-1", False, data)
            said.append((f"{source}/event/{kind}", encode_wire(wire)))
    return said


@pytest.fixture
async def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Broker]:
    broker_may_be_late(monkeypatch)
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    one = Broker(tmp_path)
    await one.start()
    yield one
    await one.stop()


async def answer(session: Session, said: Sequence[tuple[str, bytes]]) -> None:
    """As the rules do: what is asked for is published again."""
    while True:
        for message in await session.messages():
            first = msgspec.json.decode(message.payload, type=ReplayRequest).first
            for topic, payload in said[first - 1 :]:
                await session.publish(topic, payload)


async def until(process: asyncio.subprocess.Process, last: str) -> list[str]:
    """The rounds that it prints, up to this one: as JSON, or as Node-RED's debug node prints an object."""
    assert process.stdout is not None
    rounds: list[str] = []
    async with asyncio.timeout(IDLE_S):
        while last not in rounds:
            line = (await process.stdout.readline()).decode()
            assert line, f"it ended after {rounds}"
            rounds += re.findall(r"""["']?round["']?: ?["']([^"']+)["']""", line)
    return rounds


@contextlib.asynccontextmanager
async def running(start: list[str], folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(*start, cwd=folder, stdout=asyncio.subprocess.PIPE, env=NODE)
    try:
        yield process
    finally:
        process.terminate()
        await process.communicate()


def command(language: str, folder: Path, port: int) -> list[str]:
    """What a reader types, with the files that it needs in `folder`."""
    node = shutil.which("node")
    match language:
        case "python":
            start = [sys.executable, str(EXAMPLES / "follow_results.py")]
        case "javascript":
            if node is None or not (Path(NODE["NODE_PATH"]) / "mqtt").exists():
                pytest.skip("no Node.js with MQTT.js on this computer: apt-get install nodejs node-mqtt")
            start = [node, str(EXAMPLES / "follow_results.js")]
        case _:
            program = NODE_RED if NODE_RED.exists() else shutil.which("node-red")
            if node is None or program is None:
                pytest.skip("no Node-RED on this computer: install npm, then make .venv/.node-red")
            flow = [one | {"port": str(port)} if one["type"] == "mqtt-broker" else one for one in FLOW]
            (folder / "flow.json").write_text(json.dumps(flow), encoding="utf-8")
            (folder / "settings.js").write_text(SETTINGS, encoding="utf-8")
            return [str(program), "--settings", str(folder / "settings.js"), "--userDir", str(folder)]
    return [*start, "lisboa", "127.0.0.1", str(port)]


@pytest.mark.parametrize("language", ["python", "javascript", "node-red"])
async def test_an_example_prints_each_round_once_over_gaps_and_restarts(
    tmp_path: Path, broker: Broker, language: str
) -> None:
    said = verdicts()
    rounds = [f"rou-3:2026-11-20:{number}" for number in range(1, ROUNDS + 1)]
    start = command(language, tmp_path, broker.port)
    async with connect(Mqtt(port=broker.port), "rules") as session, asyncio.TaskGroup() as group:
        await session.subscribe("felt/1/lisboa/table/rou-3/round/cmd/replay")
        half = len(said) // 2
        published = said[:half]
        server = group.create_task(answer(session, published))
        async with running(start, tmp_path) as process, asyncio.TaskGroup() as inner:
            first = inner.create_task(until(process, rounds[0]))
            while not first.done():  # until it listens: from then on it has the first round or asks for it
                for topic, payload in [said[0], said[0], said[2]]:
                    await session.publish(topic, payload)
                await asyncio.wait([first], timeout=0.5)
            for topic, payload in [*published[3:], said[2]]:
                await session.publish(topic, payload)
            assert [*first.result(), *await until(process, rounds[2])] == rounds[:3]
        published += said[half:]
        offsets, linked = tmp_path / "offsets.json", tmp_path / "linked.json"
        if language != "node-red":  # Node-RED keeps its context itself
            linked.hardlink_to(offsets)
            kept = offsets.read_text()
        async with running(start, tmp_path) as process:
            rest = await until(process, rounds[-1])
        # One that was killed between a line and its offset prints the rounds of that moment again.
        assert rest == rounds[len(rounds) - len(rest) :]
        if language != "node-red":
            assert linked.read_text() == kept, "the file is written in place: a kill in that moment leaves half of it"
        server.cancel()


@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_an_example_takes_the_event_that_it_waits_for_behind_very_many(
    tmp_path: Path, broker: Broker, language: str
) -> None:
    """As many as it keeps came too early, because a replay was late."""
    ends = [(topic, json.loads(payload)) for topic, payload in verdicts() if topic.endswith("/resolved")]

    async with connect(Mqtt(port=broker.port), "rules") as session:

        async def publish(number: int, seq: int) -> None:
            topic, event = ends[number]
            await session.publish(topic, json.dumps({**event, "seq": seq}).encode())

        async with running(command(language, tmp_path, broker.port), tmp_path) as process:
            first = asyncio.create_task(until(process, "rou-3:2026-11-20:1"))
            while not first.done():  # until it listens
                await publish(0, 1)
                await asyncio.wait([first], timeout=0.5)
            for seq in range(3, 3 + MOST_WAITING):
                await publish(1, seq)
            await publish(2, 2)
            assert await until(process, "rou-3:2026-11-20:2") == ["rou-3:2026-11-20:3", "rou-3:2026-11-20:2"]


@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_an_example_goes_on_when_the_broker_was_away(tmp_path: Path, broker: Broker, language: str) -> None:
    ends = [(topic, payload) for topic, payload in verdicts() if topic.endswith("/resolved")]

    async def published(number: int, process: asyncio.subprocess.Process) -> None:
        """Until the program listens: it prints a round once, however often it comes."""
        topic, payload = ends[number]
        seen = asyncio.create_task(until(process, f"rou-3:2026-11-20:{number + 1}"))
        async with connect(Mqtt(port=broker.port), "rules") as session:
            while not seen.done():
                event = json.loads(payload) | {"seq": number + 1}
                await session.publish(topic, json.dumps(event).encode())
                await asyncio.wait([seen], timeout=0.5)
        assert seen.result() == [f"rou-3:2026-11-20:{number + 1}"]

    async with running(command(language, tmp_path, broker.port), tmp_path) as process:
        await published(0, process)
        await broker.kill()
        await broker.start()
        await published(1, process)


@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_an_example_says_that_the_broker_refuses_its_user(tmp_path: Path, language: str) -> None:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    users = tmp_path / "users"
    users.write_text("reader:$7$101$c2FsdA==$c2FsdA==\n")
    users.chmod(0o600)
    one = Broker(tmp_path, more=f"allow_anonymous false\npassword_file {users}\n")
    await one.start()
    try:
        words = [*command(language, tmp_path, one.port), "reader", "wrong"]
        process = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, stderr=asyncio.subprocess.PIPE, env=NODE)
        async with asyncio.timeout(IDLE_S):
            _, said = await process.communicate()
    finally:
        await one.stop()
    assert process.returncode == 1
    assert b"the broker refuses this program" in said
    assert b"check user and password" in said


@pytest.mark.skipif(importlib.util.find_spec("amqtt") is None, reason="the embedded broker is not installed")
@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_an_example_reads_verdicts_alone_from_the_broker_of_a_demo(tmp_path: Path, language: str) -> None:
    """amqtt sent each new client the retained messages of the subscriptions of all others."""
    broker = Broker(tmp_path, embedded=True)
    await broker.start()
    try:
        async with connect(Mqtt(port=broker.port, version="3.1.1"), "console") as session:
            await session.subscribe("felt/1/lisboa/#")
            await session.publish("felt/1/lisboa/edge/e/availability", b"online", retain=True)
            await session.publish("felt/1/lisboa/table/rou-3/round/state", b'{"phase":"betting"}', retain=True)
            end = next((topic, payload) for topic, payload in verdicts() if topic.endswith("/resolved"))
            async with running(command(language, tmp_path, broker.port), tmp_path) as process:
                first = asyncio.create_task(until(process, "rou-3:2026-11-20:1"))
                while not first.done():
                    await session.publish(*end)
                    await asyncio.wait([first], timeout=0.5)
                assert first.result() == ["rou-3:2026-11-20:1"]
    finally:
        await broker.stop()


async def test_the_function_of_the_node_red_flow_gives_each_round_once_and_asks_for_gaps(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js on this computer")
    (function,) = (one["func"] for one in FLOW if one["type"] == "function")
    said = [(topic, json.loads(payload)) for topic, payload in verdicts()]
    sent = [said[0], said[0], *said[2:], *said[1:]]
    program = (
        "const kept = {}; const context = {get: (k) => kept[k], set: (k, v) => { kept[k] = v; }};\n"
        f"const step = (msg) => {{ {function} }};\n"
        f"const sent = {json.dumps([{'topic': topic, 'payload': payload} for topic, payload in sent])};\n"
        "const out = sent.map(step);\n"
        "const ends = sent.filter((one) => one.payload.type === 'resolved');\n"
        "const other = (n, seq) => step({...ends[n], payload: {...ends[n].payload, journal: 'j-2', seq}})[0];\n"
        "other(0, 1);\n"
        f"for (let seq = 3; seq < 3 + {MOST_WAITING}; seq++) other(1, seq);\n"
        "const full = other(2, 2).slice(0, 2).map((m) => m.payload.round);\n"
        "for (const part of Object.values(kept)) delete part[Object.keys(part)[1]];\n"
        "console.log(JSON.stringify({rounds: out.flatMap((o) => o[0]).map((m) => m.payload.round),"
        " asked: out.flatMap((o) => o[1]), again: step({again: true}), disconnected: step({status: {fill: 'red'}}),"
        " connected: step({status: {fill: 'green'}}), full}));"
    )
    process = await asyncio.create_subprocess_exec(node, "-e", program, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    got = json.loads(output)
    assert got["rounds"] == [f"rou-3:2026-11-20:{number}" for number in range(1, ROUNDS + 1)]
    replay = "felt/1/lisboa/table/rou-3/round/cmd/replay"
    assert {(one["topic"], one["payload"]["from"]) for one in got["asked"]} == {(replay, 2)}
    assert got["again"] == got["disconnected"] == [[], []]
    assert got["full"] == ["rou-3:2026-11-20:3", "rou-3:2026-11-20:2"], "more are kept than come first"
    assert got["connected"] == [[], [{"topic": replay, "payload": {"from": len(said) + 1}}]]


def test_the_node_red_flow_is_whole_and_its_topics_are_of_the_contract() -> None:
    ids = [one["id"] for one in FLOW]
    assert len(ids) == len(set(ids))
    tab = next(one["id"] for one in FLOW if one["type"] == "tab")
    for one in FLOW:
        assert one.get("z", tab) == tab
        assert {target for outputs in one.get("wires", ()) for target in outputs} <= set(ids)
        assert len(one.get("wires", ())) == one.get("outputs", len(one.get("wires", ())))
        assert one.get("broker") in {None, "127.0.0.1", "feltd-broker"}
        assert set(one.get("scope", ())) <= set(ids)
    document = json.loads((ROOT / "docs/reference/asyncapi.json").read_text(encoding="utf-8"))
    addresses = [one["address"] for one in document["channels"].values()]
    (topic,) = (one["topic"] for one in FLOW if one["type"] == "mqtt in")
    ends = [address for address in addresses if re.fullmatch(r"felt/1/\{\w+\}/table/\{\w+\}/round/event/.+", address)]
    pattern = topic.replace("+", "[^/]+")
    assert ends
    assert all(re.fullmatch(pattern, re.sub(r"\{\w+\}", "lisboa", address)) for address in ends)
    assert any(address.endswith("}/round/cmd/replay") for address in addresses)
