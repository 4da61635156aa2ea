"""Links over a real broker: a message is a line; retained answers, refusals, floods, and a broker that goes away."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from urllib.parse import quote

import aiomqtt
import mqtt5
import pytest
from helpers import PATIENCE, Notebook

from daemon.broker.connection import connect
from daemon.broker.mqtt5_session import Mqtt5Session
from daemon.broker.session import WINDOW
from daemon.config import model as config
from daemon.edge.links import mqtt as links_mqtt
from daemon.edge.links.link import BadUrl, check_url, open_link as open_any
from daemon.edge.links.mqtt import MAX_LINE, MAX_WAITING, MqttLink, check, open_link
from drivers.billy_iii import BillyIII, BillyOptions
from drivers.driver import DeviceRefused, LinkLost
from drivers.idp_dice import DiceOptions, IdpDice
from protocols.contract.commands import Agitate, ReadDice
from protocols.contract.events import DiceAgitated, DiceRead
from simulators.clock import Pace
from simulators.devices.billy_iii import Billy
from simulators.devices.idp_dice import Recogniser
from simulators.lab import broker as broker_module
from simulators.lab.broker import Broker, find_mosquitto, free_port
from simulators.ports.mqtt import Mqtt
from simulators.ports.port import Socket

HEAR, SAY = "ikg/sicbo/Billy-III/says", "ikg/sicbo/Billy-III/listens"


def now() -> datetime:
    return datetime.now(UTC)


def url_of(port: int, more: str = "") -> str:
    return f"mqtt://127.0.0.1:{port}/?hear={HEAR}&say={SAY}{more}"


@contextlib.asynccontextmanager
async def running(folder: Path, port: int = 0) -> AsyncIterator[Broker]:
    one = Broker(folder, port=port)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    async with running(tmp_path) as one:
        yield one


def client(broker: Broker) -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1", broker.port)


async def read(link: MqttLink, count: int = 1) -> list[bytes]:
    async with asyncio.timeout(PATIENCE):
        return [(await link.read()).data for _ in range(count)]


# ---- URLs


@pytest.mark.parametrize(
    "url",
    [
        "mqtt://broker/?hear=a&say=b",
        "mqtt://broker?hear=a&say=b",
        "mqtt://192.168.7.2:1884/?hear=a/b&hear=a/c&say=d&username=felt&password_file=/etc/feltd/pw",
        "mqtt://broker/?hear=a%20b&say=b&version=3.1.1",
        "mqtt://[::1]:1883/?hear=a&say=b",
        "mqtt://broker/?hear=a/*&say=a/*/result",
    ],
)
def test_good_urls(url: str) -> None:
    check(url)
    check_url(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mqtt:///?hear=a&say=b", "write mqtt://host/"),
        ("mqtt://broker/topic?hear=a&say=b", "write mqtt://host/"),
        ("mqtt://broker/?hear=a&say=b#c", "write mqtt://host/"),
        ("mqtt://broker:0/?hear=a&say=b", "write mqtt://host/"),
        ("mqtt://broker:99999/?hear=a&say=b", "out of range"),
        ("mqtt://bro ker:x/?hear=a&say=b", "Port could not be cast"),
        (f"mqtt://{'b' * 70}.example/?hear=a&say=b", "no host name"),
        ("mqtt://broker/?say=b", "hear=… names at least one"),
        ("mqtt://broker/?hear=a", "say=… exactly one"),
        ("mqtt://broker/?hear=a&say=b&say=c", "say=… exactly one"),
        ("mqtt://broker/?hear=&say=b", "'' is no topic"),
        ("mqtt://broker/?hear=a/%23&say=b", "no topic"),
        ("mqtt://broker/?hear=a&say=%2B/b", "no topic"),
        ("mqtt://broker/?hear=a%00&say=b", "no topic"),
        (f"mqtt://broker/?hear={'a' * 1025}&say=b", "no topic"),
        ("mqtt://broker/?hear=a/*&say=b", "is the name of a sender"),
        ("mqtt://broker/?hear=a&say=a/*", "is the name of a sender"),
        ("mqtt://broker/?hear=a/*&say=*/b", "is the name of a sender"),
        ("mqtt://broker/?hear=a/b*&say=a/*", "no topic"),
        ("mqtt://broker/?hear=*/*&say=*/*", "no topic"),
        ("mqtt://broker/?hear=a&say=a", "as messages of the device"),
        ("mqtt://broker/?hear=a&say=b&qos=2&keep=1", "unknown qos, keep; known: hear, say"),
        ("mqtt://broker/?hear=a&say=b&version=6", "5 or 3.1.1"),
        ("mqtt://broker/?hear=a&say=b&password_file=/x", "needs a username"),
    ],
)
def test_bad_urls(url: str, words: str) -> None:
    with pytest.raises(BadUrl, match=words.replace("(", r"\(")):
        check(url)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadUrl) as caught:
        check("mqtt://felt:geheim@broker/?hear=a&say=b")
    assert "geheim" not in str(caught.value)
    assert "password_file" in str(caught.value)


# ---- both ways


async def test_a_message_is_a_line(broker: Broker) -> None:
    url = url_of(broker.port, "&hear=ikg/sicbo/Billy-III/status")
    async with client(broker) as device, open_link(url, now) as link:
        before = asyncio.get_running_loop().time()
        await device.publish(HEAR, b"S2", 1)
        await device.publish("ikg/sicbo/Billy-III/status", b" two\r\nlines\n", 1)
        await device.publish("ikg/sicbo/other", b"not for us", 1)
        await device.publish(HEAR, b"", 1)
        await device.publish(HEAR, b"\xff\x00S1", 0)
        async with asyncio.timeout(PATIENCE):
            first = await link.read()
        assert first.data == b"S2\n"
        assert before <= first.tick <= asyncio.get_running_loop().time()
        assert abs((now() - first.at).total_seconds()) < PATIENCE
        assert await read(link, 3) == [b" two  lines \n", b"\n", b"\xff\x00S1\n"]
        assert link.received_bytes == 3 + 13 + 1 + 5
        assert link.stamp().data == b""
        assert link.sent_bytes == 0


async def test_a_line_is_a_message(broker: Broker) -> None:
    async with client(broker) as device, open_any(url_of(broker.port), now) as link:
        await device.subscribe(SAY, 1)
        await link.write(b"/sta")
        await link.write(b"te\n/cycle\n/sta")
        await link.write(b"te\n")
        heard = []
        async with asyncio.timeout(PATIENCE):
            async for message in device.messages:
                heard.append((message.payload, message.qos, message.retain))
                if len(heard) == 3:
                    break
        assert heard == [(b"/state", 1, False), (b"/cycle", 1, False), (b"/state", 1, False)]
        assert link.sent_bytes == 21
        with pytest.raises(ValueError, match="a line of more than"):
            await link.write(b"x" * (MAX_LINE + 1))


async def test_retained_message_is_a_stale_answer(broker: Broker) -> None:
    async with client(broker) as device:
        await device.publish(HEAR, b"S1", 1, retain=True)
        async with open_link(url_of(broker.port), now) as link:
            await device.publish(HEAR, b"S0", 1, retain=True)  # said now, kept for others
            assert await read(link) == [b"S0\n"]


async def test_mqtt_3_too(broker: Broker) -> None:
    async with client(broker) as device:
        await device.publish(HEAR, b"S1", 1, retain=True)
        async with open_link(url_of(broker.port, "&version=3.1.1"), now) as link:
            await device.subscribe(SAY, 1)
            await link.write(b"/state\n")
            async with asyncio.timeout(PATIENCE):
                assert (await anext(device.messages)).payload == b"/state"
            await device.publish(HEAR, b"S0", 1)
            assert await read(link) == [b"S0\n"]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_link_reads_one_large_message_whole(broker: Broker, version: str) -> None:
    """Several messages in one reading of the socket: only the first of them goes through the library."""
    said = [b"%d\n" % n for n in range(WINDOW)]
    url = url_of(broker.port, f"&version={version}")
    async with connect(config.Mqtt(port=broker.port), "device") as device, open_link(url, now) as link:
        for line in said:
            device.send(HEAR, line.strip())
        assert await read(link, len(said)) == said


async def test_a_read_that_is_cancelled_loses_nothing(broker: Broker) -> None:
    async with client(broker) as device, open_link(url_of(broker.port), now) as link:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await link.read()
        await device.publish(HEAR, b"S0", 1)
        assert await read(link) == [b"S0\n"]


# ---- what goes wrong


async def test_a_broker_that_dies_is_a_lost_link(broker: Broker) -> None:
    async with open_link(url_of(broker.port), now) as link:
        async with client(broker) as device:
            await device.publish(HEAR, b"S0", 1)
        assert await read(link) == [b"S0\n"]
        reading = asyncio.create_task(read(link))
        await asyncio.sleep(0.05)
        await broker.kill()
        with pytest.raises(LinkLost, match=f"127.0.0.1:{broker.port}"):
            await reading
        with pytest.raises(LinkLost):
            await link.write(b"/state\n")
        with pytest.raises(LinkLost):
            await link.read()
        with pytest.raises(LinkLost):
            async with open_link(url_of(broker.port), now):
                pass
        await broker.start()
        async with open_link(url_of(broker.port), now) as again:
            assert again.received_bytes == 0


@pytest.mark.parametrize("how", ["it dies", "it stays away"])
async def test_broker_without_acknowledgements_is_reported(
    broker: Broker, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its window is full: the driver stood in its write for ever, and its device was shown online."""
    monkeypatch.setattr(links_mqtt, "ACKNOWLEDGED_WITHIN", 60.0 if how == "it dies" else 0.5)

    async def ask(link: MqttLink) -> None:
        while True:
            await link.write(b"/state\n")

    async with open_link(url_of(broker.port), now) as link:
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            asking = asyncio.create_task(ask(link))
            while link._session.room:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        finally:
            if how == "it dies":
                await broker.kill()
        with pytest.raises(LinkLost, match=f"127.0.0.1:{broker.port}"):
            async with asyncio.timeout(PATIENCE):
                await asking
        if how == "it stays away":
            os.kill(broker.pid, signal.SIGCONT)
        with pytest.raises(LinkLost):
            await link.read()


async def test_unreachable_broker_is_a_lost_link() -> None:
    with pytest.raises(LinkLost, match="refused"):
        async with open_link(url_of(free_port()), now):
            pass


async def test_waiting_queue_is_bounded(broker: Broker) -> None:
    async with client(broker) as device, open_link(url_of(broker.port), now) as link:
        await device.publish(HEAR, b"y" * (3 * MAX_LINE), 1)
        for _ in range(MAX_WAITING // MAX_LINE + 1):
            await device.publish(HEAR, b"x" * MAX_LINE, 1)
        first = (await read(link))[0]
        assert len(first) == MAX_LINE + 1
        for _ in range(MAX_WAITING // (MAX_LINE + 1) - 1):
            assert (await read(link))[0] == b"x" * MAX_LINE + b"\n"
        with pytest.raises(LinkLost, match="too much is published"):
            await link.read()
        assert link.received_bytes <= MAX_WAITING


async def test_a_wrong_password_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    passwords = tmp_path / "passwords"
    passwords.write_text("")
    passwords.chmod(0o600)
    template = broker_module._MOSQUITTO.replace("allow_anonymous true", f"password_file {passwords}")
    monkeypatch.setattr(broker_module, "_MOSQUITTO", template)
    secret = tmp_path / "secret"
    secret.write_text("geheim\n")
    async with running(tmp_path) as broker:
        for version in ("", "&version=3.1.1"):
            url = url_of(broker.port, f"&username=felt&password_file={quote(str(secret))}{version}")
            with pytest.raises(DeviceRefused, match=r"(?i)not authori[sz]ed|bad user"):
                async with open_link(url, now):
                    pass
    secret.unlink()
    with pytest.raises(DeviceRefused, match=r"secret: No such file.*cannot be read"):
        async with open_link(url, now):
            pass


async def test_a_topic_that_we_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    acl = tmp_path / "acl"
    acl.write_text(f"topic read {HEAR}\n")
    acl.chmod(0o600)
    monkeypatch.setattr(broker_module, "_MOSQUITTO", f"{broker_module._MOSQUITTO}acl_file {acl}\n")
    async with running(tmp_path) as broker, open_link(url_of(broker.port), now) as link:
        await link.write(b"/state\n")
        with pytest.raises(DeviceRefused, match=f"refuses {SAY}"):
            await read(link)
        with pytest.raises(DeviceRefused):
            await link.write(b"/state\n")


async def test_a_topic_that_we_may_not_read(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_args: object) -> list[mqtt5.SubAckReasonCode]:
        return [mqtt5.SubAckReasonCode.NOT_AUTHORIZED]

    monkeypatch.setattr(Mqtt5Session, "_ask", refused)
    with pytest.raises(DeviceRefused, match=f"refuses to let us read {HEAR}: Not authorized"):
        async with open_link(url_of(broker.port), now):
            pass


async def test_cancelled_session_leaves_nothing_behind(broker: Broker) -> None:
    async def hold() -> None:
        async with open_link(url_of(broker.port), now) as link:
            await link.read()

    for delay in (0.0, 0.001, 0.01, 0.1):
        task = asyncio.create_task(hold())
        await asyncio.sleep(delay)
        task.cancel()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([task])
        assert task.cancelled()


def test_the_edge_needs_no_simulator_for_it() -> None:
    source = Path(links_mqtt.__file__).read_text(encoding="utf-8")
    assert "simulators" not in source
    assert "rules" not in source


# ---- with the simulated devices at the other end


async def connected(port: Mqtt) -> None:
    async with asyncio.timeout(PATIENCE):
        await port.connected.wait()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - whatever it is, it has no event of its own
            await asyncio.sleep(0.02)


async def test_the_shaker_over_a_broker(broker: Broker) -> None:
    billy = Billy(Random(1))
    port = Mqtt("127.0.0.1", broker.port, SAY, HEAR)
    socket = Socket(billy, port, Pace())
    living = asyncio.create_task(socket.live())
    await connected(port)
    notes = Notebook()
    driver = BillyIII(BillyOptions(duration=1.0, early=0.2))
    assert port.url == url_of(broker.port)
    async with open_link(port.url, now) as link:
        running = asyncio.create_task(driver.run(link, notes))
        await until(lambda: bool(notes.events))
        assert await driver.obey(Agitate())
        assert notes.events[1:] == [DiceAgitated("electronic")]
        await until(lambda: (port.sent_bytes, port.received_bytes) == (link.received_bytes, link.sent_bytes))
        assert port.received_bytes > len(b"/state\n") + len("/cycle/?")
        running.cancel()
        await asyncio.wait([running])
    living.cancel()
    await asyncio.wait([living])
    await port.unplugged()


async def test_the_recogniser_over_a_broker_with_its_cable_pulled(broker: Broker) -> None:
    recogniser = Recogniser(Random(1), lambda: (2, 5, 5))
    port = Mqtt("127.0.0.1", broker.port, "ikg/idp/1/command", "ikg/idp/1/response", version="3.1.1")
    socket = Socket(recogniser, port, Pace(10))
    living = asyncio.create_task(socket.live())
    await connected(port)
    notes = Notebook()
    driver = IdpDice(DiceOptions(timeout=3.0, attempts=10))
    async with open_link(port.url, now) as link:
        running = asyncio.create_task(driver.run(link, notes))
        await until(lambda: bool(notes.events))
        assert await driver.obey(ReadDice("1")) == {"faces": [2, 5, 5]}
        port.unplug()
        assert not port.connected.is_set()
        port.send(b"lost\n")
        reading = asyncio.create_task(driver.obey(ReadDice("2")))
        await asyncio.sleep(1.2)
        port.plug()
        assert await reading == {"faces": [2, 5, 5]}
        assert notes.events.count(DiceRead((2, 5, 5))) == 2
        running.cancel()
        await asyncio.wait([running])
    living.cancel()
    await asyncio.wait([living])
    await port.unplugged()


async def test_a_device_comes_back_to_its_broker(broker: Broker) -> None:
    port = Mqtt("127.0.0.1", broker.port, SAY, HEAR)
    heard: list[bytes] = []
    port.received = heard.append
    port.plug()
    port.plug()
    await connected(port)
    await broker.kill()
    await until(lambda: not port.connected.is_set())
    await broker.start()
    await connected(port)
    async with open_link(port.url, now) as link:
        await link.write(b"/state\n")
        port.send(b"S0\nS")
        port.send(b"1\n")
        assert await read(link, 2) == [b"S0\n", b"S1\n"]
        await until(lambda: bool(heard))
    assert heard == [b"/state\n"]
    port.unplug()
    port.unplug()
    await port.unplugged()
