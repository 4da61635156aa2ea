"""What pages say of what is silenced, stale, restarted or refused; read as HTML."""

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import T0, Console, opened
from console_tour import follow
from helpers import virtual_time

from daemon.console.live import Fragment, Live, Viewer
from daemon.console.shapes import chip
from daemon.words import words
from protocols.contract.events import ShoeStarted
from protocols.contract.results import Result
from protocols.contract.topics import edge_topic, table_topic
from rules.facts import result_with_facts

VIEWER = Viewer("en", "viewer")


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device("bac-12", "shoe-1", "bee_tek_shoe")
        one.device("rou-3", "wheel-1", "cammegh_ss2")
        yield one


def tile(console: Console, table: str = "bac-12") -> str:
    return console.house.live.html(f"tile/{table}", VIEWER)


# ---- silences


@pytest.mark.parametrize(
    ("table", "device", "status"),
    [
        ("bac-12", "shoe-1", 303),
        ("", "wheel-1", 303),
        ("", "edge-7", 303),
        ("rou-3", "shoe-1", 409),
        ("bac-12", "edge-7", 409),
        ("", "sheo-1", 409),
        ("bac-13", "", 409),
    ],
)
async def test_a_silence_names_what_exists(console: Console, table: str, device: str, status: int) -> None:
    async with console.browser("supervisor") as browser:
        form = {"table": table, "device": device, "code": "", "minutes": "15", "why": "cleaning"}
        answer = await browser.post("/alerts/silence", data=form)
    assert answer.status_code == status
    assert len(console.house.incidents.silences(console.now)) == (status == 303)
    if status == 409:  # and what was typed is kept
        assert f'name="device" value="{device}" list' in answer.text
        assert '<option value="15" selected>' in answer.text
        assert 'name="why" value="cleaning"' in answer.text
        assert f"There is no {'table bac-13' if table == 'bac-13' else f'device {device}'}" in answer.text


def test_a_table_in_maintenance_is_shown_as_such_though_nothing_is_wrong(console: Console) -> None:
    assert 'data-state="good"' in tile(console)
    console.house.incidents.silence("bac-12", "", "", console.now + timedelta(hours=1), "ana", "new felt", console.now)
    console.wait(1)
    assert 'data-state="silenced"' in tile(console)
    assert "new felt" in tile(console)
    assert 'data-state="good"' in tile(console, "rou-3")
    console.wait(3600)
    assert 'data-state="good"' in tile(console)


def test_a_fault_beside_a_silenced_one_is_a_fault(console: Console) -> None:
    console.house.incidents.silence("bac-12", "", "x", console.now + timedelta(hours=1), "ana", "known", console.now)
    console.alert("bac-12", "a", code="x", device="shoe-1", text="this is known")
    console.wait(1)
    assert 'data-state="silenced"' in tile(console)
    console.alert("bac-12", "b", code="y", device="shoe-1", text="this is new")
    console.wait(1)
    assert 'data-state="error"' in tile(console)
    assert "this is new" in tile(console)


# ---- the styleguide


@pytest.mark.parametrize(("asked", "status"), [("", 404), ("styleguide = true", 200)])
async def test_the_styleguide_is_for_developers(tmp_path: Path, asked: str, status: int) -> None:
    with opened(tmp_path, asked) as console:
        async with console.browser("viewer") as browser:
            answer = await browser.get("/styleguide", headers={"accept-language": "pt"})
    assert answer.status_code == status
    if status == 200:
        assert answer.text.count('data-theme="light" lang="en"') == 1
        assert "Os seus textos estão em inglês." in answer.text


# ---- states


def test_a_round_that_waits_for_a_person_is_no_fault_of_a_device(console: Console) -> None:
    console.alert("bac-12", "round-suspended", code="round.suspended", text="two cards at once", remedy="look")
    console.wait(1)
    assert 'data-state="waits"' in tile(console)
    console.alert("bac-12", "shoe-1-x", code="card.jam", device="shoe-1")
    console.wait(1)
    assert 'data-state="error"' in tile(console)


def test_without_the_broker_tiles_have_no_order_of_their_own(console: Console) -> None:
    console.alert("rou-3", "x", code="card.jam", device="wheel-1")
    console.wait(1)
    assert ('data-rank="0"' in tile(console, "rou-3"), 'data-rank="5"' in tile(console)) == (True, True)
    console.lose()
    console.wait(1)
    assert all('data-rank=""' in tile(console, table) for table in ("bac-12", "rou-3"))


# ---- stale, idle, restarted


def test_the_last_figures_of_a_computer_that_is_away_are_called_so(console: Console) -> None:
    figures = "3 waiting"
    html = console.house.live.html("edges", VIEWER)
    assert re.search(rf'class="num soft">\s*{figures}', html)
    console.wait(60)
    console.edge(online=False)
    html = console.house.live.html("edges", VIEWER)
    assert re.search(rf'class="num stale">last values, of <time[^>]*>[^<]*</time>: {figures}', html)


async def test_pages_of_a_table_begin_with_round_and_roads(console: Console) -> None:
    async with console.browser("viewer") as browser:
        page = (await browser.get("/table/rou-3")).text
    found = re.findall(r'data-live="(\w+)/', page.partition("<main")[2])
    order = [one for one in dict.fromkeys(found) if one in ("alerts", "round", "board", "devices", "day", "history")]
    assert order == ["alerts", "round", "board", "devices", "day", "history"]


def test_suspended_round_has_the_colour_of_what_waits(console: Console) -> None:
    state = {"round": "rou-3:1", "phase": "suspended", "detail": {"reason": {"code": "wheel_stopped", "values": {}}}}
    console.say(table_topic("lisboa", "rou-3", "round/state"), msgspec.json.encode(state))
    html = console.house.live.html("round/rou-3", VIEWER)
    assert '<p class="alert waits">' in html
    assert '<span class="phase suspended">' in html


def test_marks_of_stud_poker_have_a_legend(console: Console) -> None:
    data = {"result": {"round": "rou-3:1", "ruleset": "macau.stud-poker", "outcome": {"opens": True}}}
    console.house.site.remember_result("rou-3", result_with_facts(msgspec.json.encode(data)))
    html = console.house.live.html("history/rou-3", VIEWER)
    assert "● the dealer opens · ○ the dealer does not open" in html
    assert '<th scope="col" colspan="2">Outcome</th></tr>' in html, "above the mark, also where no words follow it"
    html = console.house.live.html("result/rou-3", VIEWER)
    assert ("Articles applied" in html, "winning bet" in html) == (False, False), "it names none"


def test_an_idle_table_is_not_late(console: Console) -> None:
    """A closed table has no events for hours, and nothing is wrong."""
    console.event("bac-12", "shoe-1", ShoeStarted())
    html = console.house.live.html("round/bac-12", VIEWER)
    assert ("data-at" in html, "data-stale" in html) == (True, False)


def test_a_restart_is_shown_on_the_pit(console: Console) -> None:
    for boot, said in (("a", ""), ("b", "restarted 1 time,"), ("c", "restarted 2 times,")):
        console.say(edge_topic("lisboa", "edge-7", "info"), msgspec.json.encode({"bootid": boot}))
        html = console.house.live.html("edges", VIEWER).partition("</summary>")[0]
        text = " ".join(re.sub("<[^>]+>", "", html).split())
        assert said in text
        assert ("badge" in html, " ago " in text) == (bool(said), bool(said))


def test_a_restart_is_still_news_after_the_console_started_again(console: Console) -> None:
    """Also one that happened while the console was away."""
    info = edge_topic("lisboa", "edge-7", "info")
    for boot in ("a", "b"):
        console.say(info, msgspec.json.encode({"bootid": boot}))
    again = console.again(minutes=5)
    again.say(info, msgspec.json.encode({"bootid": "b"}))
    assert "restarted 1 time," in again.house.live.html("edges", VIEWER)
    assert f'data-until="{T0:%Y-%m-%dT%H:%M:%S}' in again.house.live.html("edges", VIEWER)
    later = again.again(minutes=10)
    later.say(info, msgspec.json.encode({"bootid": "c"}))
    assert "restarted 2 times," in later.house.live.html("edges", VIEWER)


def test_computers_stand_in_the_order_of_their_names(console: Console) -> None:
    console.edge("edge-9")
    console.edge("edge-10")
    console.edge("edge-1")
    html = console.house.live.html("edges", VIEWER)
    found = re.findall(r"(edge-\d+|rules)<", html.partition("panel")[2])
    assert found == ["edge-1", "edge-10", "edge-7", "edge-9", "rules"]


# ---- words


def test_a_hand_that_is_bust_says_so() -> None:
    def said(total: int) -> str:
        result = Result(
            "x:1", ruleset="macau.blackjack", outcome=msgspec.json.decode(b'{"totals":{"dealer":%d}}' % total)
        )
        return chip(result, "en").text

    assert [said(21), said(22)] == ["21", "bust"]


@pytest.mark.parametrize(
    ("game", "outcome", "called", "title"),
    [
        ("stud-poker", b'{"opens":true}', {}, "the dealer opens"),
        ("stud-poker", b"{}", {}, "the dealer does not open"),
        ("blackjack", b'{"totals":{"dealer":18}}', {}, "the dealer has 18"),
        ("roulette", b'{"pocket":"7","colour":"red"}', {"pt": "7, vermelho"}, ""),
        ("roulette", b'{"pocket":"7","colour":"red"}', {"en": "7 red"}, "7 red"),
    ],
)
def test_a_sign_or_number_has_words(game: str, outcome: bytes, called: dict[str, str], title: str) -> None:
    """The announcement; a game that is not announced in the reader's language has the English one."""
    result = Result("x:1", ruleset=f"macau.{game}", outcome=msgspec.json.decode(outcome), announcements=called)
    assert chip(result, "en").title == title
    if "en" in called:
        assert chip(result, "zh-Hant").title == title


@pytest.mark.parametrize(("n", "text"), [(1, "1 aberto"), (2, "2 abertos")])
def test_one_is_not_many(n: int, text: str) -> None:
    assert words.say("pt", "alerts.count", n=n) == text


# ---- the stream


async def test_a_fragment_that_is_drawn_as_before_is_not_sent_again(console: Console) -> None:
    """A round goes on many times a second; its tile shows the phase alone."""
    live: Live = console.house.live
    following = live.follow(live.wanted(["tile/rou-3", "counts"], VIEWER), VIEWER, lambda: True)
    assert set(msgspec.json.decode((await anext(following))[6:])["put"]) == {"tile/rou-3", "counts"}

    def state(phase: str, number: int) -> None:
        said = {"phase": phase, "round": f"rou-3:2026-11-20:{number}", "detail": {}}
        console.say(table_topic("lisboa", "rou-3", "round/state"), msgspec.json.encode(said))

    state("betting", 1)
    assert set(msgspec.json.decode((await anext(following))[6:])["put"]) == {"tile/rou-3"}
    state("betting", 2)
    live.changed("tile/rou-3")
    assert msgspec.json.decode((await anext(following))[6:])["put"] == {}
    await following.aclose()  # type: ignore[attr-defined]


def told_tiles(console: Console, do: Callable[[], object]) -> set[str]:
    """The tiles that are drawn anew for what happens."""
    told: list[str] = []
    console.house.site.on_change.append(told.append)
    do()
    console.wait(1)
    return {key.removeprefix("tile/") for key in told if key.startswith("tile/")}


def test_an_incident_and_a_silence_draw_the_tiles_of_their_tables_alone(console: Console) -> None:
    def silence(table: str, code: str = "") -> None:
        until = console.now + timedelta(hours=1)
        console.house.incidents.silence(table, "", code, until, "sam", "cleaning", console.now)

    console.wait(1)
    assert told_tiles(console, lambda: console.alert("bac-12", "x", code="card.jam", device="shoe-1")) == {"bac-12"}
    assert told_tiles(console, lambda: None) == set()
    assert told_tiles(console, lambda: console.house.incidents.acknowledge(1, "tess", "", console.now)) == {"bac-12"}
    assert "tess" in tile(console)
    assert told_tiles(console, lambda: silence("rou-3")) == {"rou-3"}
    assert told_tiles(console, lambda: silence("", "device.offline")) == {"bac-12", "rou-3"}
    assert told_tiles(console, lambda: console.wait(3600)) == {"bac-12", "rou-3"}  # the silences are over


def test_a_tile_is_drawn_once_for_all_users_with_a_language(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    render = console.house.context.render

    def noted(template: str, lang: words.Lang, **values: Any) -> str:
        drawn.append(f"{template} {lang}")
        return render(template, lang, **values)

    monkeypatch.setattr(console.house.context, "render", noted)
    for viewer in (VIEWER, Viewer("en", "technician", name="tess"), Viewer("en", "viewer", ("bac-12",))):
        console.house.live.html("tile/bac-12", viewer)
    console.house.live.html("tile/bac-12", Viewer("pt", "viewer"))
    assert drawn == ["_tile.html en", "_tile.html pt"]
    with pytest.raises(KeyError):
        console.house.live.html("tile/bac-12", Viewer("en", "viewer", ("rou-3",)))


async def test_a_page_is_sent_only_what_is_drawn_otherwise_than_it_stands_there(console: Console) -> None:
    live: Live = console.house.live
    names = ["tile/rou-3", "tile/bac-12"]
    marks = {name: re.findall('data-drawn="([0-9a-f]{8})"', live.on_page(name, VIEWER))[0] for name in names}
    console.alert("rou-3", "x", code="card.jam", device="wheel-1")
    following = live.follow(live.wanted(names, VIEWER), VIEWER, lambda: True, drawn=marks)
    assert set(msgspec.json.decode((await anext(following))[6:])["put"]) == {"tile/rou-3"}
    await following.aclose()  # type: ignore[attr-defined]


async def test_a_page_that_lost_the_connection_is_sent_all_of_it_again(console: Console) -> None:
    """The marks in its address are of what stood there at first."""
    live: Live = console.house.live
    mark = re.findall('data-drawn="([0-9a-f]{8})"', live.on_page("tile/rou-3", VIEWER))[0]

    secret = console.house.access.users.begin("vera", "10.0.0.7", "test", outside="viewer")

    async def put(*headers: tuple[str, str]) -> set[str]:
        path = f"/live?f=tile%2Frou-3~{mark}"
        said, following = await follow(console.app, path, [("cookie", f"feltd={secret}"), *headers])
        following.cancel()
        await asyncio.wait([following])
        first = said.body.removeprefix(b"id: 1\ndata: ").partition(b"\n")[0]
        return set(msgspec.json.decode(first)["put"])

    assert await put() == set()
    assert await put(("last-event-id", "1")) == {"tile/rou-3"}


@virtual_time
async def test_a_log_that_changes_with_each_event_is_drawn_four_times_a_second() -> None:
    live, drawn, number = Live(lambda: ""), list[int](), [0]

    def log(_name: str, _viewer: Viewer) -> str:
        drawn.append(number[0])
        return f"{number[0]}"

    live.add(Fragment("log", lambda one: (one,), log, every=0.25))
    live.add(Fragment("lamp", lambda one: (one,), lambda _name, _viewer: f"lamp {number[0]}"))
    put: dict[str, str] = {}
    lamps: list[float] = []
    now = asyncio.get_running_loop().time

    async def read() -> None:
        async for message in live.follow(live.wanted(["log/a", "lamp/b"], VIEWER), VIEWER, lambda: True):
            said = msgspec.json.decode(message[6:])["put"]
            put.update(said)
            lamps.extend([now()] * ("lamp/b" in said))

    reading = asyncio.create_task(read())
    await asyncio.sleep(1)
    drawn.clear()
    for number[0] in range(1, 101):
        live.changed("a")
        await asyncio.sleep(0.01)
    assert 4 <= len(drawn) <= 5
    asked = now()
    live.changed("b")  # what does not wait is not held back by it
    await asyncio.sleep(0.3)
    assert put["log/a"] == "100"
    assert min(one for one in lamps if one >= asked) - asked <= 0.06
    reading.cancel()
    await asyncio.wait([reading])
