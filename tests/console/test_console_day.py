"""The timeline of a table: what happened stands on its strip and in its list, and what is not known is not quiet."""

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import CONFIG, T0, Console
from helpers import PATIENCE

from daemon.console.live import Viewer
from daemon.console.pages.timeline import MOST_MARKS, strip_of
from daemon.console.site import day
from daemon.console.site.day import MOST_ACTIONS
from daemon.words.local import Local, zone_of
from daemon.words.words import LANGS
from protocols.contract.documents import EdgeInfo
from protocols.contract.events import DeviceOffline, DeviceOnline
from protocols.contract.topics import Wire, device_topic, edge_topic, encode_wire, table_topic

TABLE = "bac-12"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    one = Console(tmp_path, config=CONFIG.replace("[edge]", 'timezone = "UTC"\n[edge]'))
    begin(one)
    yield one
    one.house.close()
    one.store.close()
    one.journal.close()


def begin(console: Console) -> None:
    console.begin()
    console.device(TABLE, "shoe-1", "bee_tek_shoe")


def verdict(console: Console, n: int, kind: str = "resolved", **more: Any) -> str:
    round_ = f"{TABLE}:2026-11-20:{n}"
    result = {"round": round_, "ruleset": "macau.baccarat", "edition": "2004"} | more
    raw = msgspec.Raw(msgspec.json.encode({"result": result}))
    source = table_topic("lisboa", TABLE, "round")
    one = Wire("1.0", f"edge-7:{TABLE}:{n}/0", source, kind, console.now, n, data=raw, journal="j")
    console.say(f"{source}/event/{kind}", encode_wire(one))
    console.house.rounds.flush()
    return round_


def drawn(console: Console, name: str = f"day/{TABLE}", lang: Any = "en") -> str:
    console.house.days.flush(everything=True)
    return console.house.live.html(name, Viewer(lang, "viewer"))


def test_restart_of_the_console_is_news_on_the_pit_for_a_quarter_of_an_hour(tmp_path: Path) -> None:
    for first in (True, False):
        one = Console(tmp_path)
        try:
            begin(one)
            one.now += timedelta(minutes=5 if first else 2)
            assert ("console restarted" in drawn(one, "edges")) is not first
            one.now += timedelta(minutes=14)
            one.house.site.notify("edges")
            assert "console restarted" not in drawn(one, "edges")
            with one.store.write() as db:  # it was there before
                db.execute("UPDATE about SET value = ? WHERE key = 'day'", ((T0 - timedelta(hours=1)).isoformat(),))
        finally:
            one.house.close()
            one.store.close()
            one.journal.close()


def test_a_fault_whose_beginning_was_not_heard_is_not_denied(console: Console) -> None:
    story = f"story/{TABLE}/shoe-1"
    assert "No faults and no losses" in drawn(console, story)
    fault = {"code": "shoe.jam", "text": "stuck", "severity": "error", "remedy": "", "since": console.now}
    console.say(device_topic("lisboa", TABLE, "shoe-1", "state"), msgspec.json.encode({"faults": [fault]}))
    assert "No faults" not in drawn(console, story)
    console.say(device_topic("lisboa", TABLE, "shoe-1", "state"), b'{"faults":[]}')
    console.say(device_topic("lisboa", TABLE, "shoe-1", "availability"), b"offline")
    assert "began before the console recorded it" in drawn(console, story)


def marks(page: str) -> list[tuple[str, str]]:
    """Kind and text of the marks on the strip."""
    return re.findall(r'class="mark (\w+)"[^>]*aria-label="([^"]*)"', page)


def listed(page: str) -> list[str]:
    """The lines of the list, without their marks."""
    lines = re.findall(r'<li class="\w+">(.*?)</li>', page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", "", line).split()) for line in lines]


def test_rounds_are_bars_and_void_rounds_are_marks_that_lead_to_them(console: Console) -> None:
    verdict(console, 1)
    console.wait(60)
    void = verdict(console, 2, "voided", void={"reason": {"code": "declared"}, "bets": "returned"})
    page = drawn(console)
    assert re.findall(r'class="bar".*?<title>(.*?)</title>', page) == ["20:00–20:15 · 2 rounds"]
    assert ("voided", f"20:01:00 · Round {void} is void") in marks(page)
    assert f'href="/table/{TABLE}/round/{void}"' in page
    assert "1 round · void: 1" in re.sub(r"<[^>]+>", "", page)


def test_an_alert_has_its_duration_and_severity(console: Console) -> None:
    console.alert(TABLE, "shoe", code="shoe.jam", device="shoe-1")
    console.wait(90)
    assert ("error", "20:00:00–… · shoe-1: a card is stuck") in marks(drawn(console))
    console.alert(TABLE, "shoe")
    assert ("error", "20:00:00–20:01:30 (90 s) · shoe-1: a card is stuck") in marks(drawn(console))
    console.alert(TABLE, "round-suspended", code="round.suspended", round=f"{TABLE}:2026-11-20:7")
    kinds = [kind for kind, text in marks(drawn(console)) if "suspended" in text]
    assert kinds == ["suspended"]


def test_a_lost_link_is_told_with_the_page_of_its_device(console: Console) -> None:
    console.event(TABLE, "shoe-1", DeviceOffline("no answer"))
    console.wait(12)
    console.event(TABLE, "shoe-1", DeviceOnline(continuous=True))
    page = drawn(console)
    assert ("offline", "20:00:00–20:00:12 (12 s) · shoe-1: link lost: no answer") in marks(page)
    assert f'href="/table/{TABLE}/device/shoe-1"' in page
    assert "20:00:00–20:00:12 shoe-1: link lost: no answer" in listed(page)


def test_restarts_of_the_processes_of_the_table_are_told(console: Console) -> None:
    for name in ("edge-7", "edge-9"):
        for boot in ("a", "b"):
            info = msgspec.json.encode(EdgeInfo(bootid=boot))
            console.say(edge_topic("lisboa", name, "info"), info)
    texts = [text for _, text in marks(drawn(console))]
    assert "20:00:00 · edge-7 restarted" in texts
    assert not [text for text in texts if "edge-9" in text]


async def test_silences_and_actions_of_people_are_told_also_after_a_restart(console: Console, tmp_path: Path) -> None:
    async with console.browser("supervisor") as browser:
        form = {"table": TABLE, "device": "", "code": "", "minutes": "30", "why": "new felt"}
        assert (await browser.post("/alerts/silence", data=form)).status_code == 303
    console.house.actions.note("tess", "technician", "command", f"{TABLE}/shoe-1", {"command": "self-test"})
    console.house.actions.note("dora", "dealer", "dealer", TABLE, {"key": "bell", "values": {}})
    void = {"key": "void", "values": {"reason": "card dropped"}, "round": f"{TABLE}:1:5"}
    console.house.actions.note("sam", "supervisor", "dealer", TABLE, void)
    told = [text for kind, text in marks(drawn(console)) if kind in ("silenced", "act")]
    silence = "20:00:00–… · Silenced: the whole table · supervisor@lisboa: new felt"
    assert told == [silence, "20:00:00 · tess · Self-test", f"20:00:00 · sam · Void · {TABLE}:1:5"]
    again = Console.__new__(Console)
    again.__dict__.update(console.__dict__)
    again.now = T0 + timedelta(hours=1)
    again.house = type(console.house)(console.house.config, console.store, console.journal, lambda: again.now)
    begin(again)
    again.house.days.flush(everything=True)
    page = again.house.live.html(f"day/{TABLE}", Viewer("en", "viewer"))
    assert "20:00:00 · tess · Self-test" in [text for _, text in marks(page)]
    assert "21:00:00 · The console started" in [text for _, text in marks(page)]
    again.house.close()


def test_a_time_before_the_console_is_hatched_and_named(console: Console) -> None:
    page = drawn(console)
    assert page.count('class="gap"') == 2
    assert "no round of this time is known" in page
    assert "0 rounds" not in page
    verdict(console, 1)
    console.wait(60)
    page = drawn(console)
    assert "known since" in page
    assert "The console started" in page


def test_the_strip_ends_with_the_hour_of_the_site() -> None:
    local = Local("en", zone_of("Asia/Kolkata"))  # half an hour beside UTC
    strip = strip_of(T0, 24, local)
    assert local.minute(strip.until) == "02:00"
    assert strip.until - strip.since == timedelta(hours=24)
    assert strip.x(strip.since) == 0
    assert strip.x(strip.until) == 100


def test_six_hours_are_drawn_and_nothing_else(console: Console) -> None:
    assert "The last 6 hours" in drawn(console, f"day/{TABLE}/6")
    for wrong in (f"day/{TABLE}/7", f"day/{TABLE}/x", "day/nowhere"):
        with pytest.raises(KeyError):
            drawn(console, wrong)
    with pytest.raises(KeyError):
        console.house.live.html(f"day/{TABLE}", Viewer("en", "viewer", ("rou-3",)))


@pytest.mark.parametrize("lang", LANGS)
def test_many_marks_are_drawn_in_bounds_and_escaped(console: Console, lang: Any) -> None:
    for n in range(MOST_ACTIONS + 50):
        console.house.actions.note("<b>eve</b>", "technician", "command", TABLE, {"command": f"c{n}"})
    for n in range(MOST_MARKS):
        console.alert(TABLE, f"a{n}", code=f"x.y{n}", device="shoe-1", text="<script>")
    page = drawn(console, lang=lang)
    assert len(marks(page)) <= MOST_MARKS
    assert "<b>eve" not in page
    assert "<script>" not in page


async def test_alerts_are_drawn_before_rounds(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds end all the time, and a strip takes some work; an alert is news."""
    monkeypatch.setattr(day, "EVERY_S", 0)
    said: list[str] = []
    console.house.days.flush()  # what the fixture brought
    console.house.site.on_change.append(said.append)
    verdict(console, 1)
    running = asyncio.create_task(console.house.days.run())
    try:
        for _ in range(day.ROUNDS - 1):
            await asyncio.sleep(0)
        assert f"day/{TABLE}" not in said
        async with asyncio.timeout(PATIENCE):
            while f"day/{TABLE}" not in said:  # noqa: ASYNC110 - in another task
                await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.wait([running])
