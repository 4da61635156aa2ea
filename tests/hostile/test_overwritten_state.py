"""Somebody clears or overwrites what a process retains, with its own password: it soon stands right again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from helpers import START, virtual_time
from paho.mqtt.client import topic_matches_sub
from structlog.testing import capture_logs

from daemon.broker import restorer
from daemon.broker.connection import connect
from daemon.broker.restorer import Restorer
from daemon.broker.retained import Retained
from daemon.broker.session import Message, Session
from daemon.cli.access_list import access_list
from daemon.config.model import Mqtt, load, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.jackpots.process import Jackpots
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.logs import get
from daemon.pulse import PULSE_S
from protocols.contract.documents import Alert, EdgeInfo
from protocols.contract.events import encode_data, type_of
from tests.consumer.test_consumer import SPIN
from tests.hostile.test_forger_broker import until
from tests.hostile.test_jackpot_access import USERS
from tests.system.test_systemd import JUDGE, Broker, password, program, run

CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
password_file = "{folder}/e"
[rules]
password_file = "{folder}/rules"
insecure = true
[jackpots]
password_file = "{folder}/jackpots"
insecure = true
[mqtt]
port = {port}
version = "{version}"
username = "console"
password_file = "{folder}/console"
[[table]]
name = "x-1"
ruleset = "macau.roulette"
[table.options]
betting = "no_more_bets"
[[table.device]]
name = "d-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:3"
[[jackpot]]
name = "hall"
tables = ["x-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "0.5"
"""
OWN = {
    "e": (
        *("table/x-1/device/d-1/availability", "table/x-1/device/d-1/state", "table/x-1/device/d-1/meta"),
        *("table/x-1/alert/d-1-device-offline", "edge/e/info"),
    ),
    "rules": ("table/x-1/round/state", "table/x-1/round/result", "table/x-1/alert/round-suspended", "edge/rules/info"),
    "jackpots": ("jackpot/hall/level", "jackpot/hall/books", "jackpot/hall/owner", "edge/jackpots/info"),
}
FORGED = b'{"forged":true}'
NAMES_ANOTHER = b'{"round":"forged","rules":"e"}'
"""A state of a round that names a process which is online, as a standby of the rules would."""


class Floor(Broker):
    """Edge, rules and jackpots behind the access list of their computer, and somebody who hears everything."""

    def __init__(self, folder: Path, version: str) -> None:
        super().__init__(folder)
        self.folder = folder
        path = folder / "feltd.toml"
        path.write_text(CONFIG.format(folder=folder, port=self.port, version=version), encoding="utf-8")
        self.config = load(path)
        for user in (*USERS, JUDGE):
            (folder / user).write_text(password(user) + "\n")
        self.grant(access_list([(path, self.config)]))
        self._write(folder / "feltd.passwd", "".join(f"{user}:{password(user)}\n" for user in (*USERS, JUDGE)))
        assert run(program("mosquitto_passwd"), "-U", folder / "feltd.passwd").returncode == 0
        self.now: dict[str, bytes] = {}
        self.heard: list[tuple[float, str, bytes]] = []

    def settings(self, user: str) -> Mqtt:
        return Mqtt(port=self.port, username=user, password_file=str(self.folder / user))

    def keep(self, message: Message) -> None:
        topic = message.topic.removeprefix("felt/1/s/")
        self.now[topic] = message.payload
        self.heard.append((asyncio.get_running_loop().time(), topic, message.payload))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        edge = Edge(self.config, Journal(self.folder / "edge.db"), now=lambda: START)
        rules = Consumer(self.config, Journal(self.folder / "rules.db"))
        jackpots = Jackpots(self.config, Journal(self.folder / "jackpots.db"))
        tasks = [asyncio.create_task(one.run()) for one in (edge, rules, jackpots)]
        try:
            await until(lambda: edge.connected and rules.connected and jackpots.connected, "connected")
            for event in SPIN:
                edge.append([Entry("x-1", "d-1", type_of(event), START, encode_data(event))], {})
            await until(lambda: bool(self.now.get("table/x-1/round/result")), "the round is resolved")
            await asyncio.sleep(0.5)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for process in (edge, rules, jackpots):
                process.journal.close()


@pytest.fixture(params=["5", "3.1.1"])
def floor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Floor]:
    with Floor(tmp_path, request.param) as one:
        yield one


def forgeries(topic: str, right: bytes) -> list[bytes]:
    """What somebody writes who has read what stands there."""
    match topic.rpartition("/")[2]:
        case "availability":
            return [b"online"]
        case "state" if "round" in topic:
            return [FORGED, NAMES_ANOTHER]
        case "owner":
            return [FORGED, right.replace(b'"tables":["x-1"]', b'"tables":[]')]
        case _:
            return [FORGED]


async def attack(floor: Floor, attacker: Session, topic: str, payload: bytes) -> None:
    """Until it stands right again, within a heartbeat."""
    right, before = floor.now.get(topic, b""), len(floor.heard)
    await attacker.publish(f"felt/1/s/{topic}", payload, retain=True)

    def back() -> bool:
        later = [one for _, name, one in floor.heard[before:] if name == topic]
        return payload in later and later[-1] != payload and bool(later[-1]) == bool(right)

    await until(back, f"{topic} stands right again")
    times = [at for at, name, _ in floor.heard[before:] if name == topic]
    assert times[-1] - times[0] <= PULSE_S, topic
    if not topic.endswith("level"):  # its time
        assert floor.now[topic] == right


@pytest.mark.system
async def test_what_a_process_retains_is_put_right_within_a_heartbeat(floor: Floor) -> None:
    async with contextlib.AsyncExitStack() as stack:
        judge = await stack.enter_async_context(connect(floor.settings(JUDGE), ""))
        judge.deliver_to(floor.keep)
        await judge.subscribe("felt/1/#")
        await stack.enter_async_context(floor.running())
        assert floor.now["table/x-1/device/d-1/availability"] == b"offline"
        for user, topics in OWN.items():
            attacker = await stack.enter_async_context(connect(floor.settings(user), ""))
            for topic in topics:
                for payload in (b"", *forgeries(topic, floor.now.get(topic, b""))):
                    if payload != floor.now.get(topic, b""):
                        await attack(floor, attacker, topic, payload)
        for name in ("e", "rules", "jackpots"):
            alert = msgspec.json.decode(floor.now[f"table/x-1/alert/{name}-state-forged"], type=Alert)
            assert alert.code == "state.forged"
            assert "by another client of the broker" in alert.text


# ---- by the clock


TOPIC = "felt/1/s/table/x-1/device/d-1/state"
ALERT = "felt/1/s/table/x-1/alert/e-state-forged"
STATE = "felt/1/s/table/x-1/round/state"
WILL = "felt/1/s/edge/e/availability"


class Sent:
    """A session that keeps what was published, and when."""

    def __init__(self) -> None:
        self.said: list[tuple[float, str, bytes]] = []

    async def publish(self, topic: str, payload: bytes, **_: object) -> None:
        self.said.append((asyncio.get_running_loop().time(), topic, payload))

    def of(self, topic: str) -> list[bytes]:
        return [payload for _, name, payload in self.said if name == topic]


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[tuple[Restorer, Retained, Sent]]:
    retained, sent = Retained(), Sent()
    retained.put(TOPIC, b"right")
    retained.put(WILL, b"online")
    one = Restorer(retained, {"x-1": [ALERT]}, (WILL, b"offline"), get())
    await retained.publish_all(sent)  # type: ignore[arg-type]
    tasks = [asyncio.create_task(run) for run in (retained.run(sent), one.run())]  # type: ignore[arg-type]
    yield one, retained, sent
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@virtual_time
async def test_a_flood_is_answered_once_a_second_and_told_once() -> None:
    async with watched() as (one, _, sent):
        with capture_logs() as logs:
            for _ in range(1000):
                one.received(Message(TOPIC, FORGED))
                await asyncio.sleep(0.01)
            await asyncio.sleep(2)
        assert 9 <= len(sent.of(TOPIC)) <= 13
        assert len(sent.of(ALERT)) <= 13
        assert [line["event"] for line in logs] == ["state.overwritten"]
        await asyncio.sleep(restorer.ALERT_S + 10)
        assert sent.of(ALERT)[-1] == b""


@virtual_time
async def test_one_clearing_is_put_right_without_an_alert_and_a_second_one_is_an_alert() -> None:
    """A device that moved here from another computer is cleared by that one, once."""
    async with watched() as (one, _, sent):
        one.received(Message(TOPIC, b""))
        await asyncio.sleep(1)
        assert sent.of(TOPIC) == [b"right"] * 2
        assert sent.of(ALERT) == [b""]
        one.received(Message(TOPIC, b""))
        await asyncio.sleep(2)
        assert sent.of(TOPIC) == [b"right"] * 3
        assert b"device/d-1/state was cleared" in sent.of(ALERT)[-1]


@virtual_time
async def test_echoes_are_nobody_elses_and_an_old_value_is_put_right() -> None:
    """MQTT 3.1.1 delivers what the process itself published, late and in order."""
    async with watched() as (one, retained, sent):
        retained.put(TOPIC, b"newer")
        await asyncio.sleep(1)
        one.received(Message(TOPIC, b"right"))
        await asyncio.sleep(0.1)
        one.received(Message(TOPIC, b"newer"))
        await asyncio.sleep(2)
        assert sent.of(TOPIC) == [b"right", b"newer"]
        one.received(Message(TOPIC, b"right"))  # and nothing behind it: somebody replayed it
        await asyncio.sleep(PULSE_S)
        assert sent.of(TOPIC) == [b"right", b"newer", b"newer"]
        one.received(Message("felt/1/s/table/x-1/alert/rules-events-forged", FORGED))
        one.received(Message(TOPIC, FORGED, retain=True))
        await asyncio.sleep(2)
        assert len(sent.of(TOPIC)) == 3


@virtual_time
async def test_a_last_will_is_put_right_and_is_no_alert() -> None:
    async with watched() as (one, _, sent):
        with capture_logs() as logs:
            one.received(Message(WILL, b"offline"))
            await asyncio.sleep(1)
        assert sent.of(WILL) == [b"online"] * 2
        assert logs == []


@virtual_time
async def test_two_computers_with_one_device_do_not_flood_the_broker() -> None:
    async with watched() as (one, _, sent), watched() as (two, other, theirs):
        other.put(TOPIC, b"theirs")
        for _ in range(600):
            await asyncio.sleep(0.1)
            one.received(Message(TOPIC, theirs.of(TOPIC)[-1]))
            two.received(Message(TOPIC, sent.of(TOPIC)[-1]))
        assert len(sent.of(TOPIC)) < 70
        assert msgspec.json.decode(sent.of(ALERT)[-1], type=Alert).count > 1


def test_the_list_lets_each_process_hear_what_it_retains(tmp_path: Path) -> None:
    text = CONFIG.format(folder=tmp_path, port=1883, version="5")
    path = tmp_path / "feltd.toml"
    path.write_text(text)
    granted = access_list([(path, parse(text))])
    for user, topics in OWN.items():
        block = granted.partition(f"\nuser {user}\n")[2].partition("\n\n")[0]
        rights = [line.split() for line in block.splitlines()]
        read = [filter_ for _, right, filter_ in rights if right == "read"]
        for topic in (*topics, f"table/x-1/alert/{user}-state-forged"):
            assert any(topic_matches_sub(filter_, f"felt/1/s/{topic}") for filter_ in read), (user, topic)


def process_topic(name: str, leaf: str) -> str:
    return f"felt/1/s/edge/{name}/{leaf}"


@virtual_time
async def test_a_standby_that_is_online_writes_the_state_of_the_same_rounds() -> None:
    state = b'{"round":"r","rules":"standby"}'
    info = msgspec.json.encode(EdgeInfo(rules=True, tables=("x-1",)))
    async with watched() as (one, retained, sent):
        retained.put(STATE, b'{"round":"r","rules":"e"}')
        await asyncio.sleep(1)
        one.received(Message(process_topic("standby", "info"), info, retain=True))
        one.received(Message(process_topic("standby", "availability"), b"online", retain=True))
        one.received(Message(STATE, state))
        await asyncio.sleep(2)
        assert len(sent.of(STATE)) == 1
        one.received(Message(process_topic("standby", "availability"), b"offline"))
        one.received(Message(STATE, state))
        await asyncio.sleep(2)
        assert len(sent.of(STATE)) == 2


@virtual_time
async def test_rules_that_take_over_send_what_the_others_retained_until_then(tmp_path: Path) -> None:
    """Also the alert of a round that waits for a person: nothing changes it until that person decides."""
    topics = STATE, "felt/1/s/table/x-1/round/result", "felt/1/s/table/x-1/alert/round-suspended"
    info = msgspec.json.encode(EdgeInfo(rules=True, tables=("x-1",)))
    async with watched() as (one, retained, sent):
        one.received(Message(process_topic("first", "info"), info, retain=True))
        one.received(Message(process_topic("first", "availability"), b"online", retain=True))
        retained.is_muted = topics.__contains__
        for topic in topics:
            retained.put(topic, b"x")
        await asyncio.sleep(1)
        retained.is_muted = lambda _topic: False
        one.received(Message(process_topic("first", "availability"), b"offline"))
        await asyncio.sleep(1)
        assert [sent.of(topic) for topic in topics] == [[b"x"]] * 3


@pytest.mark.parametrize("info", [EdgeInfo(), EdgeInfo(rules=True, tables=("x-2",)), None])
@virtual_time
async def test_a_state_that_names_a_process_which_would_not_put_it_right_is_foreign(info: EdgeInfo | None) -> None:
    """Every edge is online, and so are the rules of other tables: none of them hears what is retained here."""
    async with watched() as (one, retained, sent):
        retained.put(STATE, b'{"round":"r","rules":"e"}')
        await asyncio.sleep(1)
        if info is not None:
            one.received(Message(process_topic("other", "info"), msgspec.json.encode(info), retain=True))
        one.received(Message(process_topic("other", "availability"), b"online", retain=True))
        one.received(Message(STATE, b'{"round":"forged","rules":"other"}'))
        await asyncio.sleep(PULSE_S)
        assert len(sent.of(STATE)) == 2
