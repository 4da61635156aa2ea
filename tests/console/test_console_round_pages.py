"""The pages of rounds: by date and filter, from one to the next, with what people did."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

import httpx
import msgspec
import pytest
from console_floor import T0, Console, opened
from starlette.requests import Request

from daemon.console.pages import rounds as pages
from protocols.contract.events import BallLanded
from protocols.contract.topics import Wire, encode_wire, table_topic

ROU = "rou-3"
VOID = {"reason": {"code": "no_launch", "values": {"pocket": "2"}}, "bets": "returned"}
DAY = {"from": "2026-11-19T00:00", "to": "2026-11-22T00:00"}  # in every zone


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        yield one


def ended(
    console: Console, seq: int, kind: str = "resolved", *, number: int = 0, minutes: float = 0, **more: Any
) -> None:
    """A round ends; `seq` counts verdicts."""
    result = {
        "round": f"{ROU}:2026-11-20:{number or seq}",
        "ruleset": "macau.roulette",
        "outcome": {"pocket": "2", "colour": "red"},
        "announcements": {"en": "two, red", "pt": "dois, vermelho", "zh-Hant": "2,紅"},
        "law": ["Despacho 60/2004 art. 5(1)"],
        "evidence": [f"edge-7:{ROU}:{seq}"],
        **more,
    }
    source = table_topic("lisboa", ROU, "round")
    data = msgspec.Raw(msgspec.json.encode({"result": result}))
    wire = Wire(
        "1.0",
        f"edge-7:{ROU}:{seq}/0",
        source,
        kind,
        T0 + timedelta(minutes=minutes or seq),
        seq,
        data=data,
        journal="j",
    )
    console.say(f"{source}/event/{kind}", encode_wire(wire))


async def test_rounds_of_two_lives_of_an_edge_are_both_kept(console: Console) -> None:
    """The same id at the same time is another verdict where its event was counted in another journal."""
    source, kind = table_topic("lisboa", ROU, "round"), "resolved"
    for number, rules, cause in [(1, "j", "before"), (1, "standby", "before"), (2, "k", "after")]:
        data = msgspec.Raw(msgspec.json.encode({"result": {"round": f"{ROU}:2026-11-20:{number}"}}))
        wire = Wire("1.0", f"edge-7:{ROU}:1/0", source, kind, T0, 1, data=data, journal=rules, cause_journal=cause)
        console.say(f"{source}/event/{kind}", encode_wire(wire))
    async with console.browser("inspector") as browser:
        assert listed(await browser.get(f"/table/{ROU}/rounds", params=DAY)) == ["2", "1"]


def listed(page: httpx.Response) -> list[str]:
    return re.findall(rf'href="/table/{ROU}/round/{ROU}:2026-11-20:(\d+)\?', page.text)


async def test_a_list_by_date_leads_to_rounds_that_keep_its_filter(console: Console) -> None:
    for seq in range(1, 8):
        ended(console, seq, void=VOID if seq in (2, 5) else None)
    place = f"/table/{ROU}/rounds"
    async with console.browser("inspector") as browser:
        assert listed(await browser.get(place, params=DAY)) == ["7", "6", "5", "4", "3", "2", "1"]
        void = await browser.get(place, params={**DAY, "show": "void"})
        assert listed(void) == ["5", "2"]
        [first] = re.findall(rf'href="(/table/{ROU}/round/{ROU}:2026-11-20:5\?[^"]+)"', void.text)
        one = (await browser.get(first.replace("&amp;", "&"))).text
        assert 'rel="next"' not in one  # the last void one
        [back] = re.findall(r'rel="prev" href="([^"]+)"', one)
        assert listed(await browser.get(place, params={**DAY, "from": "2026-11-21T22:00"})) == []
        other = (await browser.get(back.replace("&amp;", "&"))).text
        assert f"{ROU}:2026-11-20:2</title>" in other.replace(" · feltd", "")
        assert 'href="/table/rou-3/rounds?from=2026-11-19T00%3A00&amp;to=2026-11-22T00%3A00&amp;show=void"' in other
    assert "Records without gaps since" in void.text


async def test_a_long_list_is_paged_without_losing_a_round(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE", 3)
    for seq in range(1, 8):
        ended(console, seq)
    seen: list[str] = []
    async with console.browser("inspector") as browser:
        path = f"/table/{ROU}/rounds?from=2026-11-19T00:00&to=2026-11-22T00:00"
        for _ in range(5):
            page = await browser.get(path)
            seen += listed(page)
            older = re.findall(r'href="(\?[^"]*before=[^"]*)"', page.text)
            if not older:
                break
            path = f"/table/{ROU}/rounds" + older[0].replace("&amp;", "&")
    assert seen == ["7", "6", "5", "4", "3", "2", "1"]


async def test_a_corrected_round_shows_both_results_and_who_was_at_work(console: Console) -> None:
    ended(console, 1)
    console.now = T0 + timedelta(minutes=1, seconds=30)
    console.house.actions.note("sam", "supervisor", "table.correct", ROU, {"round": f"{ROU}:2026-11-20:1"})
    ended(console, 2, "corrected", number=1, supersedes=f"{ROU}:2026-11-20:1", outcome={"pocket": "17"})
    path = f"/table/{ROU}/round/{ROU}:2026-11-20:1"
    async with console.browser("inspector") as browser:
        page = (await browser.get(path)).text
    assert page.index('<span class="pocket green">17') < page.index('<span class="pocket red">2')
    assert "first result" in page
    assert "table.correct" in page
    assert "<td>sam</td>" in page
    assert len(re.findall("<code>[0-9a-f]{64}</code>", page)) == 2
    async with console.browser("viewer") as browser:
        page = (await browser.get(path)).text
    assert "sam" not in page  # actions are for those who may read their journal
    assert "/report/pdf/" not in page


async def test_evidence_of_earlier_rounds_is_still_described_after_a_restart(console: Console) -> None:
    console.device(ROU, "wheel-1", "cammegh_ss2")
    console.event(ROU, "wheel-1", BallLanded("17"))
    ended(console, 1)
    for _ in range(60):  # the console remembers the last events of a device only
        console.event(ROU, "wheel-1", BallLanded("3"))
    for one in (console, console.again(hours=1)):
        async with one.browser("viewer") as browser:
            page = (await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:1")).text
        line = re.findall(r'<li class="wire">(.*?)</li>', page)[0]
        shown = re.sub(r"<[^>]+>", "", line)
        assert shown.startswith("edge-7:rou-3:1 "), "as the broker names it"
        assert shown.endswith("wheel-1 ball.landed")
        assert "17" not in shown


async def test_bets_that_come_back_and_a_demonstration_are_shown(console: Console) -> None:
    ended(console, 1, demo=True, pushes=["tie", {"bet": "main", "seat": 4, "hand": 2}])
    async with console.browser("viewer") as browser:
        page = (await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:1")).text
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert "Bets that come back: tie, main (4 · 2)" in shown
    assert "Demonstration: no bets counted" in shown


async def test_all_tables_are_counted_for_a_day(console: Console) -> None:
    for seq in range(1, 4):
        ended(console, seq, void=VOID if seq == 2 else None)
    async with console.browser("inspector") as browser:
        page = (await browser.get("/rounds", params=DAY)).text
    assert re.search(rf'href="/table/{ROU}/rounds\?[^"]*show=void">1</a>', page)
    assert 'href="/table/bac-12/rounds?' in page


async def test_a_longer_time_than_is_shown_says_so(console: Console) -> None:
    said = "At most 31 days are displayed at once"
    async with console.browser("inspector") as browser:
        for path in (f"/table/{ROU}/rounds", "/rounds"):
            assert said in (await browser.get(path, params={"from": "2026-01-01T00:00", "to": "2026-12-31T00:00"})).text
            assert said not in (await browser.get(path, params=DAY)).text


@pytest.mark.parametrize(
    ("by", "day"), [(0, "2026-10-25"), (1, "2026-10-26"), (-1, "2026-10-24"), (7, "2026-11-01"), (-210, "2026-03-29")]
)
def test_a_day_leads_to_days_although_the_clocks_change(by: int, day: str) -> None:
    zone = ZoneInfo("Europe/Lisbon")  # 25 October 2026 has 25 hours there, 29 March 23
    request = Request({"type": "http", "query_string": b"", "headers": []})
    period = pages.period_of(request, ROU, datetime(2026, 10, 25, 12, tzinfo=zone), zone)
    assert period.asked.until - period.asked.since == timedelta(hours=25)
    moved = dict(parse_qsl(period.moved(by)))
    until = datetime.fromisoformat(day) + timedelta(days=1)
    assert moved == {"from": f"{day}T00:00", "to": f"{until:%Y-%m-%dT%H:%M}"}


@pytest.mark.parametrize(
    "query",
    [
        {"from": "yesterday", "to": "x"},
        {"from": "0001-01-01T00:00", "to": "9999-12-31T23:59"},
        {"from": "2026-11-21T00:00", "to": "2026-11-20T00:00"},
        {"before": "2026-11-20T20:00:00+00:00/99999999999999999999"},
        {"before": "x/1"},
        {"show": "everything"},
    ],
)
async def test_a_wrong_query_is_answered_as_if_it_were_not_there(console: Console, query: dict[str, str]) -> None:
    ended(console, 1)
    async with console.browser("viewer") as browser:
        for path in (f"/table/{ROU}/rounds", "/rounds", f"/table/{ROU}/round/{ROU}:2026-11-20:1"):
            assert (await browser.get(path, params=query)).status_code == 200


async def test_a_result_without_evidence_or_articles_says_so(console: Console) -> None:
    ended(console, 1, evidence=[], law=[])
    async with console.browser("viewer") as browser:
        page = (await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:1")).text
    assert "This result names no events." in page
    assert "Articles applied" not in page


async def test_a_round_that_was_not_kept_is_shown_while_it_is_in_memory(console: Console) -> None:
    async with console.browser("viewer") as browser:
        console.store.db.execute("PRAGMA query_only=ON")
        ended(console, 1)
        page = await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:1")
    assert page.status_code == 200
    assert "two, red" in page.text
    console.store.db.execute("PRAGMA query_only=OFF")
