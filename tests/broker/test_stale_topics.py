"""What stands on the broker of what is no longer there: it is cleared, and the console's pages follow."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from console_floor import Console, opened
from helpers import result_of

from daemon.broker.connection import connect
from daemon.broker.session import Message
from daemon.cli.main import main
from daemon.config.model import Mqtt
from daemon.console.live import Viewer
from protocols.contract.events import SpinStarted
from protocols.contract.topics import device_topic, edge_topic, table_topic
from simulators.lab.broker import Broker, find_mosquitto

VIEWER = Viewer("en", "viewer")
CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-7"
[rules]
name = "rules"
[mqtt]
port = {port}
[[table]]
name = "bac-12"
ruleset = "macau.baccarat"
"""
STATE = {"round": "", "phase": "idle", "detail": {}, "heard": {}}


# ---- the console


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device("rou-9", "wheel-1", "cammegh_ss2")
        one.say(table_topic("lisboa", "rou-9", "round/state"), msgspec.json.encode(STATE))
        yield one


def take_away(console: Console, table: str, device: str) -> None:
    """As the edge and the rules do it that no longer have them."""
    for leaf in ("availability", "state", "meta"):
        console.say(device_topic("lisboa", table, device, leaf), b"")
    console.say(table_topic("lisboa", table, "round/state"), b"")


async def tiles(console: Console) -> list[str]:
    async with console.browser("viewer") as browser:
        return re.findall(r'<article [^>]*data-live="tile/([^"]*)"', (await browser.get("/")).text)


async def test_a_table_that_was_taken_away_has_no_tile(console: Console) -> None:
    console.event("rou-9", "wheel-1", SpinStarted(1))
    now = ("feltd_device_online", "feltd_last_event_age_seconds")
    assert await tiles(console) == ["bac-12", "rou-3", "rou-9"]
    assert measured(console, "rou-9").issuperset(now)
    take_away(console, "rou-9", "wheel-1")
    assert await tiles(console) == ["bac-12", "rou-3"]
    assert measured(console, "rou-9").isdisjoint(now)
    async with console.browser("viewer") as browser:
        assert (await browser.get("/table/rou-9")).status_code == 200  # its past is still to be seen


async def test_an_open_page_loses_the_tile(console: Console) -> None:
    live = console.house.live
    wanted = live.wanted(["tile/rou-9", "tile/bac-12"], VIEWER)
    following = live.follow(wanted, VIEWER, lambda: True)
    first = msgspec.json.decode((await anext(following)).removeprefix(b"data: "))["put"]
    assert 'data-live="tile/rou-9"' in first["tile/rou-9"]
    take_away(console, "rou-9", "wheel-1")
    second = msgspec.json.decode((await anext(following)).removeprefix(b"data: "))["put"]
    assert second["tile/rou-9"] == ""
    console.device("rou-9", "wheel-1", "cammegh_ss2")  # it was moved, and is back
    third = msgspec.json.decode((await anext(following)).removeprefix(b"data: "))["put"]
    assert 'data-live="tile/rou-9"' in third["tile/rou-9"]
    live.close()
    async for _ in following:
        raise AssertionError


@pytest.mark.parametrize("known", ["nothing", "its past"])
async def test_a_page_that_was_open_keeps_the_tile_until_the_broker_is_back(tmp_path: Path, known: str) -> None:
    """The console was restarted, and the broker is slower: that a table is not known yet does not take it away."""
    with opened(tmp_path) as console:
        if known == "its past":
            console.house.site.remember_result(
                "rou-9", result_of({"round": "rou-9:2026-11-20:1", "ruleset": "macau.roulette"})
            )
        following = console.house.live.follow({"tile/rou-9": ("table/rou-9",)}, VIEWER, lambda: True)
        first = msgspec.json.decode((await anext(following)).removeprefix(b"data: "))["put"]
        assert first.get("tile/rou-9") != ""
        console.begin()
        console.device("rou-9", "wheel-1", "cammegh_ss2")
        second = msgspec.json.decode((await anext(following)).removeprefix(b"data: "))["put"]
        assert 'data-live="tile/rou-9"' in second["tile/rou-9"]
        console.house.live.close()
        async for _ in following:
            raise AssertionError


def measured(console: Console, table: str) -> set[str]:
    """The figures that Prometheus is told of a table."""
    text, _ = console.house.metrics.text("")
    return set(re.findall(rf'^(\w+){{.*table="{table}"', text.decode(), re.MULTILINE))


# ---- feltd forget


async def forget(folder: Path, port: int, *words: str) -> tuple[int | None, str]:
    """Exit code and all that was said, by the command itself."""
    path = folder / "feltd.toml"
    path.write_text(CONFIG.format(port=port), encoding="utf-8")
    command = [sys.executable, "-c", "from daemon.cli.main import main; main()", "forget", "-c", str(path), *words]
    done = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = await done.communicate()
    return done.returncode, said.decode()


async def stands(port: int) -> dict[str, bytes]:
    """All that is retained."""
    async with connect(Mqtt(port=port), "") as session:
        await session.subscribe("#")
        await session.publish("end", b".")
        heard: list[Message] = []
        while not heard or heard[-1].topic != "end":
            heard += await session.messages()
    return {one.topic: one.payload for one in heard if one.retain}


@pytest.mark.parametrize("name", ["", "#", "Edge"])
def test_only_a_name_of_an_edge_can_be_forgotten(tmp_path: Path, name: str) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG.format(port=1), encoding="utf-8")
    done = CliRunner().invoke(main, ["forget", "-c", str(path), name])
    assert (done.exit_code, "can be the name of no edge" in done.output) == (2, True)


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.parametrize("gone", ["edge-8", "rules-2"])
async def test_topics_of_removed_edges_are_cleared(tmp_path: Path, gone: str) -> None:
    left = {
        "edge-8": {
            **{edge_topic("lisboa", "edge-8", leaf): b"{}" for leaf in ("info", "health")},
            edge_topic("lisboa", "edge-8", "availability"): b"offline",
            device_topic("lisboa", "rou-9", "wheel-1", "meta"): b'{"driver":"cammegh_ss2","edge":"edge-8"}',
            device_topic("lisboa", "rou-9", "wheel-1", "state"): b"{}",
            device_topic("lisboa", "rou-9", "wheel-1", "availability"): b"offline",
            table_topic("lisboa", "rou-9", "alert/wheel-1-device-offline"): b"{}",
            table_topic("lisboa", "rou-9", "alert/edge-8-journal-room"): b"{}",
            table_topic("lisboa", "rou-9", "alert/wheel-1-wheel-launch_failed"): b"{}",
        },
        "rules-2": {
            edge_topic("lisboa", "rules-2", "availability"): b"offline",
            table_topic("lisboa", "rou-9", "round/state"): msgspec.json.encode(STATE | {"rules": "rules-2"}),
            table_topic("lisboa", "rou-9", "round/result"): b"{}",
            table_topic("lisboa", "rou-9", "alert/rules-2-journal-room"): b"{}",
            table_topic("lisboa", "rou-9", "alert/round-suspended"): b"{}",
        },
    }
    others = {
        edge_topic("lisboa", "edge-7", "availability"): b"online",
        device_topic("lisboa", "rou-9", "camera", "meta"): b'{"driver":"idp_dice","edge":"edge-7"}',
        device_topic("lisboa", "bac-12", "shoe-1", "meta"): b"\xff",
        table_topic("lisboa", "bac-12", "round/state"): msgspec.json.encode(STATE | {"rules": "rules"}),
        table_topic("lisboa", "bac-13", "round/state"): msgspec.json.encode(STATE),  # of an older version
    }
    broker = Broker(tmp_path)
    await broker.start()
    try:
        async with connect(Mqtt(port=broker.port), "") as session:
            for topic, payload in {**left["edge-8"], **left["rules-2"], **others}.items():
                await session.publish(topic, payload, retain=True)
            await session.drained()
        code, said = await forget(tmp_path, broker.port, gone)
        assert code == 0, said
        assert left[gone].keys() <= set(said.splitlines())
        [kept] = left.keys() - {gone}
        assert await stands(broker.port) == left[kept] | others
        again = await forget(tmp_path, broker.port, gone)
        assert again == (0, f"{gone}: the broker stores nothing of it\n")
        code, said = await forget(tmp_path, broker.port, "edge-7")
        assert code == 2
        assert "edge-7 is online: stop it" in said
        assert await stands(broker.port) == left[kept] | others
        code, said = await forget(tmp_path, broker.port, "edge-7", "--although-online")
        assert code == 0
        assert not [topic for topic in await stands(broker.port) if "edge-7" in topic or "camera" in topic]
    finally:
        await broker.stop()
    code, said = await forget(tmp_path, broker.port, gone)
    assert code == 1
    assert f"the broker 127.0.0.1:{broker.port}: " in said
    assert "; check that it runs, and host, port and users in " in said
