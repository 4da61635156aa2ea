"""`feltd fleet`: what edges say becomes a row each, worst first."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from small_site import SMALL_SITE

from daemon.broker.connection import connect
from daemon.cli.fleet import processes_of, text_of
from daemon.cli.main import main
from daemon.config.model import Mqtt
from daemon.fleet import Computer, fleet
from daemon.words import words
from protocols.contract.documents import EdgeExamination, EdgeHealth, EdgeInfo, OutboxHealth
from protocols.contract.topics import edge_topic
from simulators.lab.broker import Broker, find_mosquitto

NOW = datetime(2026, 11, 28, 3, 5, tzinfo=UTC)
INFO = EdgeInfo(version="1.2", config="abc", boots=3, tables=("rou-1",), started=NOW - timedelta(hours=50))
HEALTH = EdgeHealth(time=NOW, disk_free=90 * 10**9, devices={"rou-1/wheel-1": True, "rou-1/sign-1": True})


def told(name: str, info: EdgeInfo = INFO, health: EdgeHealth | None = HEALTH, online: bool = True) -> dict[str, bytes]:
    said = {"availability": b"online" if online else b"offline", "info": msgspec.json.encode(info)}
    if health is not None:
        said["health"] = msgspec.json.encode(health)
    return {edge_topic("lisboa", name, leaf): payload for leaf, payload in said.items()}


def of_one(**documents: Any) -> Computer:
    """The edge of interest, beside two that are well."""
    standing = told("edge-1") | told("edge-2") | told("edge-3", **documents)
    return next(one for one in fleet(processes_of(standing), NOW) if one.name == "edge-3")


def texts(one: Computer) -> list[str]:
    return [words.say("en", f"fleet.{found.code}", **found.values) for found in one.findings]


@pytest.mark.parametrize(
    ("documents", "finding"),
    [
        ({}, ""),
        ({"online": False}, "offline"),
        ({"info": replace(INFO, suspended={"rou-1": "acl"})}, "rou-1 suspended: acl"),
        ({"info": replace(INFO, version="1.1")}, "version 1.1, most have 1.2"),
        ({"health": replace(HEALTH, time=NOW - timedelta(minutes=2))}, ""),
        ({"health": replace(HEALTH, time=NOW - timedelta(seconds=121))}, "no status report since 03:02:59 UTC"),
        ({"health": replace(HEALTH, outbox=OutboxHealth(70, 10.0))}, ""),
        (
            {"health": replace(HEALTH, outbox=OutboxHealth(70, 11.0))},
            "70 events wait for the broker, the oldest for 11 s",
        ),
        ({"health": replace(HEALTH, disk_free=2_000_000_000)}, ""),
        ({"health": replace(HEALTH, disk_free=1_999_000_000)}, "1999 MB of disk free"),
        ({"health": replace(HEALTH, devices={"rou-1/wheel-1": False})}, "offline: rou-1/wheel-1"),
        ({"health": replace(HEALTH, loop_lag_ms=251)}, "overloaded: 251 ms late"),
        ({"health": replace(HEALTH, examination=EdgeExamination(NOW))}, ""),
        (
            {"health": replace(HEALTH, examination=EdgeExamination(NOW, ("certificate mqtt.ca_file", "clock")))},
            "feltd doctor: certificate mqtt.ca_file, clock",
        ),
        ({"health": None}, ""),
    ],
)
def test_each_finding_is_said(documents: dict[str, Any], finding: str) -> None:
    assert texts(of_one(**documents)) == ([finding] if finding else [])


def test_the_tables_of_an_edge_are_those_of_its_health() -> None:
    edge = of_one(info=replace(INFO, tables=()), health=replace(HEALTH, newest={"rou-1": 7, "bac-1": 0}))
    assert (of_one().tables, edge.tables) == (1, 2)


def test_the_worst_comes_first_and_its_worst_finding_first() -> None:
    standing = told("edge-1") | told("edge-2", info=replace(INFO, version="1.3"))
    standing |= told("edge-3", info=replace(INFO, version="1.1"), online=False) | told("edge-4")
    found = fleet(processes_of(standing), NOW)
    assert [one.name for one in found] == ["edge-3", "edge-2", "edge-1", "edge-4"]
    assert texts(found[0]) == ["offline", "version 1.1, most have 1.2"]


def test_a_hundred_computers_are_a_table_of_80_columns() -> None:
    standing = {topic: payload for n in range(100) for topic, payload in told(f"edge-{n}").items()}
    lines = text_of(fleet(processes_of(standing), NOW), NOW).splitlines()
    assert lines[0] == "100 processes, 100 without a finding"
    assert lines[2].split() == ["edge-0", "ok", "1.2", "2", "d", "1", "2/2", "90", "GB", "2"]
    assert len(lines) == 102
    assert max(map(len, lines)) <= 80


def test_a_document_that_cannot_be_read_is_left_out() -> None:
    standing = told("edge-1") | {
        edge_topic("lisboa", "edge-1", "health"): b"{",
        edge_topic("lisboa", "x", "info"): b"[",
    }
    [one] = fleet(processes_of(standing), NOW)
    assert one.devices is None


@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_the_command_asks_the_broker(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.start()
    try:
        config = tmp_path / "feltd.toml"
        config.write_text(SMALL_SITE.format(folder=tmp_path) + f"[mqtt]\nport = {broker.port}\n", encoding="utf-8")
        now = datetime.now(UTC)
        async with connect(Mqtt(port=broker.port), "writer") as session:
            for topic, payload in told("edge-1", health=replace(HEALTH, time=now)).items():
                await session.publish(topic, payload, retain=True)
            await session.drained()
            well = await asyncio.to_thread(CliRunner().invoke, main, ["fleet", "-c", str(config), "--json"])
            assert well.exit_code == 0
            assert [one["name"] for one in json.loads(well.stdout)] == ["edge-1"]
            await session.publish(edge_topic("lisboa", "edge-1", "availability"), b"offline", retain=True)
            await session.drained()
            ill = await asyncio.to_thread(CliRunner().invoke, main, ["fleet", "-c", str(config)])
        assert ill.exit_code == 1
        assert "offline" in ill.stdout
    finally:
        await broker.stop()
    away = await asyncio.to_thread(CliRunner().invoke, main, ["fleet", "-c", str(config)])
    assert away.exit_code == 1
    assert "run feltd doctor for details" in away.output
