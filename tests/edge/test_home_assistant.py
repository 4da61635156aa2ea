"""Home Assistant's MQTT discovery: in its form, with templates that read what stands there, and cleared in the end.

Its templates are Jinja's: they are rendered here with the states and results that the edge and the rules publish.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import pytest
from helpers import PATIENCE, virtual_time

from daemon.broker.connection import connect
from daemon.broker.session import Message
from daemon.config.model import Mqtt, parse
from daemon.edge import home_assistant
from daemon.edge.edge import Edge
from daemon.edge.home_assistant import FoundDevice, device_config, table_config
from daemon.journal.store import Journal
from simulators.lab.broker import Broker, find_mosquitto

WHEEL = FoundDevice("rou-3", "wheel-1", "cammegh_ss2", "Cammegh SS2", "W-77", "2.52")
NODE = "homeassistant/device/feltd_lisboa_edge-7"
# What Home Assistant's documentation asks of a device discovery payload and its components.
PLATFORMS = {"sensor", "binary_sensor"}
ALLOWED = {"device", "origin", "availability", "components"}


def rendered(template: str, value: Any) -> str:
    environment = jinja2.Environment(autoescape=False)
    return environment.from_string(template).render(value_json=msgspec.json.decode(msgspec.json.encode(value)))


def checked(topic: str, payload: bytes) -> dict[str, Any]:
    """The payload, once it has the form."""
    config: dict[str, Any] = msgspec.json.decode(payload)
    prefix, kind, node, name, last = topic.split("/")
    assert (prefix, kind, last) == ("homeassistant", "device", "config")
    for word in (node, name):
        assert word.replace("_", "").replace("-", "").isalnum()
    assert set(config) == ALLOWED
    assert config["device"]["identifiers"]
    assert config["device"]["name"]
    assert config["origin"]["name"] == "feltd"
    for component in config["components"].values():
        assert component["platform"] in PLATFORMS
        assert component["unique_id"].startswith("feltd_")
        assert component["state_topic"].startswith("felt/1/lisboa/")
    return config


# ---- the form


def test_a_device_is_told_with_its_availability_its_faults_and_the_first_of_them() -> None:
    topic, payload = device_config("lisboa", "edge-7", "1.2", WHEEL)
    assert topic == f"{NODE}/rou-3_wheel-1/config"
    config = checked(topic, payload)
    assert config["device"] == {
        "identifiers": ["feltd_lisboa_rou-3_wheel-1"],
        "name": "rou-3 wheel-1",
        "model": "Cammegh SS2",
        "suggested_area": "rou-3",
        "serial_number": "W-77",
        "sw_version": "2.52",
    }
    [availability] = config["availability"]
    assert availability["topic"] == "felt/1/lisboa/edge/edge-7/availability"
    parts = config["components"]
    assert parts["connectivity"]["state_topic"] == "felt/1/lisboa/table/rou-3/device/wheel-1/availability"
    assert (parts["connectivity"]["payload_on"], parts["connectivity"]["payload_off"]) == ("online", "offline")
    assert parts["problem"]["state_topic"] == "felt/1/lisboa/table/rou-3/device/wheel-1/state"
    assert len({one["unique_id"] for one in parts.values()}) == len(parts)


def test_a_device_that_has_not_said_its_name_yet_is_called_by_its_driver() -> None:
    config = checked(*device_config("lisboa", "edge-7", "1.2", FoundDevice("rou-3", "wheel-1", "cammegh_ss2")))
    assert config["device"]["model"] == "cammegh_ss2"
    assert not {"serial_number", "sw_version"} & config["device"].keys()


@pytest.mark.parametrize(
    ("faults", "problem", "fault"),
    [
        ([], "OFF", "none"),
        ([{"code": "wheel.no_ball", "text": "no ball"}], "ON", "no ball"),
        ([{"code": "a", "text": "x"}, {"code": "b", "text": "y"}], "ON", "x; y"),
        ([{"code": "a", "text": "x" * 300}], "ON", "x" * 255),
    ],
)
def test_its_templates_read_the_state_of_a_device(faults: list[Any], problem: str, fault: str) -> None:
    parts = checked(*device_config("lisboa", "edge-7", "1.2", WHEEL))["components"]
    state = {"online": True, "reason": "", "faults": faults, "counters": {}, "last_event": None}
    assert rendered(parts["problem"]["value_template"], state) == problem
    assert rendered(parts["fault"]["value_template"], state) == fault
    attributes = rendered(parts["problem"]["json_attributes_template"], state)
    assert msgspec.json.decode(attributes) == {"faults": faults}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"void": None, "announcements": {"en": "Banker wins", "pt": "x"}}, "bac-12:2026-11-20:7 Banker wins"),
        (
            {"void": {"reason": {"code": "misdeal"}, "bets": "returned"}, "announcements": {}},
            "bac-12:2026-11-20:7 void: misdeal",
        ),
        ({"void": None, "announcements": {}}, "bac-12:2026-11-20:7 "),
    ],
)
def test_its_template_reads_a_result(more: dict[str, Any], said: str) -> None:
    topic, payload = table_config("lisboa", "edge-7", "1.2", "bac-12", "rules")
    assert topic == f"{NODE}/bac-12/config"
    config = checked(topic, payload)
    assert config["availability"][0]["topic"] == "felt/1/lisboa/edge/rules/availability"
    [part] = config["components"].values()
    assert part["state_topic"] == "felt/1/lisboa/table/bac-12/round/result"
    result = {"round": "bac-12:2026-11-20:7", "law": ["art. 5"], **more}
    assert rendered(part["value_template"], result) == said
    assert msgspec.json.decode(rendered(part["json_attributes_template"], result))["law"] == ["art. 5"]


# ---- on a broker

CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
home_assistant = {on}
[mqtt]
port = {port}
"""
TABLE = """
[[table]]
name = "{table}"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:1"
"""
ROU_3, ROU_4 = TABLE.format(table="rou-3"), TABLE.format(table="rou-4").replace(":1", ":2")


async def stands(port: int) -> set[str]:
    """The topics retained under Home Assistant's prefix."""
    async with connect(Mqtt(port=port), "") as session:
        await session.subscribe("homeassistant/#")
        await session.publish("homeassistant/end", b".")
        heard: list[Message] = []
        while all(one.topic != "homeassistant/end" for one in heard):  # an edge may write meanwhile
            heard += await session.messages()
    return {one.topic for one in heard if one.retain}


@contextlib.asynccontextmanager
async def edge(folder: Path, text: str) -> AsyncIterator[Edge]:
    """An edge that runs; its devices answer to nobody."""
    journal = Journal(folder / "edge.db")
    one = Edge(parse(text), journal)
    running = asyncio.create_task(one.run())
    try:
        yield one
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        journal.close()


async def settled(port: int, wanted: set[str]) -> None:
    """Return when just these stand there."""
    async with asyncio.timeout(PATIENCE):
        while await stands(port) != wanted:  # noqa: ASYNC110 - a broker tells what stands there when it is asked
            await asyncio.sleep(0.05)


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_discovery_topics_are_cleared_with_the_device_and_the_option(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.start()
    try:
        on, off = (CONFIG.format(on=word, port=broker.port) for word in ("true", "false"))
        three = {f"{NODE}/rou-3/config", f"{NODE}/rou-3_wheel-1/config"}
        four = {f"{NODE}/rou-4/config", f"{NODE}/rou-4_wheel-1/config"}
        async with edge(tmp_path, off + ROU_3):
            await asyncio.sleep(0.3)
            assert await stands(broker.port) == set()
        async with edge(tmp_path, on + ROU_3 + ROU_4):
            await settled(broker.port, three | four)
        async with edge(tmp_path, on + ROU_3):
            await settled(broker.port, three)
        async with edge(tmp_path, off + ROU_3) as last:
            await settled(broker.port, set())
            async with asyncio.timeout(PATIENCE):
                while last.journal.memory(home_assistant.KEY) != b"[]":  # noqa: ASYNC110 - the broker acknowledges
                    await asyncio.sleep(0.05)
    finally:
        await broker.stop()


class Refusing:
    """A session whose broker lets nobody write there."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    async def publish(self, topic: str, _payload: bytes, *, refused: Any, vital: bool, **_: Any) -> None:
        assert not vital
        self.tried.append(topic)
        refused("not authorized")


class Log:
    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def warning(self, event: str, **more: Any) -> None:
        self.said.append({"event": event, **more})


async def test_a_broker_that_refuses_is_told_of_once_and_not_asked_again() -> None:
    log: Any = Log()
    kept: list[bytes] = []
    wanted = {f"{NODE}/a/config": b"{}", f"{NODE}/b/config": b"{}"}
    discovery = home_assistant.Discovery(lambda: wanted, None, kept.append, "let the edge's user write there", log)
    session: Any = Refusing()
    for _ in range(2):
        running = asyncio.create_task(discovery.run(session))
        await asyncio.sleep(0)
        discovery.touch()
        await asyncio.sleep(0)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    assert session.tried == [*wanted]
    assert [(one["event"], one["remedy"]) for one in log.said] == [
        ("home_assistant.refused", "let the edge's user write there")
    ]
    assert kept == [msgspec.json.encode([*wanted])]


async def test_a_name_that_becomes_known_is_told_again_and_nothing_else() -> None:
    model = {"model": ""}

    class Taking(Refusing):
        async def publish(self, topic: str, _payload: bytes, **_: Any) -> None:
            self.tried.append(f"{topic} {_payload.decode()}")

    log: Any = Log()
    discovery = home_assistant.Discovery(
        lambda: {"a": msgspec.json.encode(model), "b": b"{}"}, None, lambda _: None, "", log
    )
    session: Any = Taking()
    running = asyncio.create_task(discovery.run(session))
    await asyncio.sleep(0)
    model["model"] = "SS2"
    discovery.touch()
    await asyncio.sleep(0.01)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert session.tried == ['a {"model":""}', "b {}", 'a {"model":"SS2"}']


@virtual_time
async def test_topics_that_others_cleared_or_overwrote_are_right_again_within_a_minute() -> None:
    """The edge does not hear of it: it repeats what stands there, and no topic that the broker refused."""
    broker: dict[str, bytes] = {}

    class Keeping:
        async def publish(self, topic: str, payload: bytes, **_: Any) -> None:
            broker[topic] = payload

    log: Any = Log()
    session: Any = Keeping()
    discovery = home_assistant.Discovery(lambda: {"a": b"1", "b": b"2"}, None, lambda _: None, "", log)
    running = asyncio.create_task(discovery.run(session))
    await asyncio.sleep(1)
    for _ in range(2):
        broker.update(a=b"", b=b"forged")
        await asyncio.sleep(home_assistant.REPEAT_S + 1)
        assert broker == {"a": b"1", "b": b"2"}
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
