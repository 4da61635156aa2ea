"""The page of all computers: the worst first, in the reader's language, live."""

import re
import resource
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import T0, Console, opened
from helpers import at_length

from daemon.console.live import Viewer
from daemon.console.pages.fleet import EVERY_S
from protocols.contract.documents import EdgeExamination, EdgeHealth, EdgeInfo, OutboxHealth
from protocols.contract.topics import edge_topic

VIEWER = Viewer("en", "viewer")


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.connect()
        yield one


def say(console: Console, name: str, *, online: bool = True, version: str = "1.2", **health: Any) -> None:
    documents = {
        "availability": b"online" if online else b"offline",
        "info": msgspec.json.encode(EdgeInfo(version=version, tables=(f"t-{name}",), boots=2, started=T0)),
        "health": msgspec.json.encode(EdgeHealth(time=T0, **{"disk_free": 80 * 10**9, **health})),
    }
    for leaf, payload in documents.items():
        console.say(edge_topic("lisboa", name, leaf), payload)


def rows(html: str) -> list[tuple[str, str]]:
    """Of each computer its name and its findings."""
    found = re.findall(r'<tr><th scope="row">(.*?)</th>\s*<td>.*?</td>\s*<td[^>]*>(.*?)</td>', html, re.DOTALL)
    return [(name, re.sub("<[^>]+>", "; ", said).strip()) for name, said in found]


def test_a_hundred_computers_stand_in_one_table_the_worst_first(console: Console) -> None:
    for number in range(100):
        say(console, f"edge-{number:02}")
    say(console, "edge-40", version="1.1", devices={"t-1/wheel-1": False, "t-1/sign-1": True})
    say(console, "edge-60", online=False)
    say(console, "edge-70", outbox=OutboxHealth(3, 40.0))
    html = console.house.live.html("fleet", VIEWER)
    assert rows(html)[:4] == [
        ("edge-60", "–"),
        ("edge-70", "3 events wait for the broker, the oldest for 40 s"),
        ("edge-40", "offline: t-1/wheel-1; version 1.1, most have 1.2"),
        ("edge-00", "–"),
    ]
    assert len(rows(html)) == 100
    assert "97 without a finding" in html


def test_what_the_doctor_of_each_computer_found_is_shown(console: Console) -> None:
    found = EdgeExamination(T0, ("clock",), 120.04, 8.25, T0 + timedelta(days=3), T0 - timedelta(days=2))
    say(console, "edge-1", examination=found)
    say(console, "edge-2")
    seen, unseen = re.findall(r'<tr><th scope="row">.*?</tr>', console.house.live.html("fleet", VIEWER), re.DOTALL)
    cells = [re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL) for row in (seen, unseen)]
    assert rows(seen) == [("edge-1", "feltd doctor: clock")]
    assert cells[0][7:11] == ["120.0 ms", "8.2 ms", "23 Nov 2026", "18 Nov 2026"]
    assert cells[1][7:11] == ["–"] * 4


def test_the_time_of_the_last_health_is_the_sites(console: Console) -> None:
    say(console, "edge-1")
    console.now = T0 + timedelta(minutes=3)
    html = console.house.live.html("fleet", Viewer("zh-Hant", "viewer"))
    at = console.house.context.local("zh-Hant").clock(T0)
    assert rows(html) == [("edge-1", f"自 {at} 起沒有狀態報告")]


def test_a_hundred_computers_take_less_than_a_tenth_of_a_core(console: Console) -> None:
    """Each says its health twice a minute; somebody looks, and the table is drawn as often as it may be."""
    minutes = at_length(2, 20)
    for number in range(100):
        say(console, f"edge-{number:02}", devices={f"t-{number}/wheel-1": True, f"t-{number}/sign-1": True})
    begin = usage()
    for at_s in range(0, 60 * minutes, int(EVERY_S)):
        console.now = T0 + timedelta(seconds=at_s)
        if at_s % 30 == 0:
            for number in range(100):
                say(console, f"edge-{number:02}", loop_lag_ms=1.0 + at_s, devices={f"t-{number}/wheel-1": True})
        assert "100" in console.house.live.html("fleet", VIEWER)
    assert usage() - begin < 0.1 * 60 * minutes


def usage() -> float:
    """Seconds of processor time so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def test_nothing_counts_as_online_while_the_console_has_lost_the_broker(console: Console) -> None:
    say(console, "edge-1")
    console.lose()
    assert "0 without a finding" in console.house.live.html("fleet", VIEWER)


async def test_the_page_is_in_the_language_of_its_reader(console: Console) -> None:
    say(console, "edge-1", disk_free=10**9)
    for language, words in {
        "en": "1000 MB of disk free",
        "pt": "1000 MB livres no disco",
        "zh-TW": "磁碟剩餘 1000 MB",
    }.items():
        async with console.browser("viewer", **{"accept-language": language}) as browser:
            answer = await browser.get("/fleet")
        assert answer.status_code == 200
        assert words in answer.text
