"""The page of alerts: who sees what, what they may do, what is kept of it."""

import asyncio
import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import tzset

import httpx
import msgspec
import pytest
from console_floor import T0, Console, opened
from starlette.routing import Route

from daemon.console.alerts.handling import StepKind
from daemon.console.alerts.records import Filter
from daemon.console.auth.users import Role
from daemon.console.live import Viewer
from daemon.console.pages.alerts import Watch, fragment, routes
from daemon.words import words
from protocols.contract.documents import Alert, EdgeInfo
from protocols.contract.events import ShoeStarted
from protocols.contract.topics import device_topic, edge_topic

WORDS = Path(words.__file__).parent
TEMPLATES = Path(words.__file__).parents[1] / "console/templates"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device("bac-12", "shoe-1", "bee_tek_shoe")
        one.wait(0)
        yield one


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The computer's zone, in which shifts begin."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        tzset()
        yield
    tzset()


def jam(console: Console, table: str = "bac-12", **more: str) -> None:
    console.alert(table, "shoe-1-card-jam", code="card.jam", device="shoe-1", **more)


def seen(console: Console, n: int = 1) -> str:
    """As what an alert stands on a page now."""
    one = console.house.incidents.get(n)
    assert one is not None
    return console.house.incidents.seen(one)


# ---- what is seen


async def test_open_incident_is_shown_with_its_remedy(console: Console) -> None:
    jam(console, text="a card is <stuck>")
    console.alert("rou-3", "wheel-1-oil", code="oil.low", severity="warning", text="oil is low", device="wheel-1")
    async with console.browser("viewer") as browser:
        page = (await browser.get("/alerts")).text
        assert page.index("A card is &lt;stuck&gt;") < page.index("Oil is low")
        assert "Open the shoe" in page
        assert '<span class="badge error">2 open</span>' in page
        assert 'action="/alerts/' not in page  # who only looks has no buttons
        assert "1 times" not in page
        console.alert("bac-12", "shoe-1-card-jam")
        jam(console)
        assert "2 times" in (await browser.get("/alerts")).text


@pytest.mark.parametrize(("lang", "word"), [("en", "No open alerts."), ("pt", "Não há"), ("zh-Hant", "沒有未解決")])
async def test_in_three_languages(console: Console, lang: str, word: str) -> None:
    async with console.browser("viewer", **{"accept-language": lang}) as browser:
        assert word in (await browser.get("/alerts")).text
        console.edge("rules", online=False)
        console.wait(1)
        page = (await browser.get("/alerts")).text
        assert words.sentence(words.catalog(lang)["alerts.code.rules.offline"].format(name="rules")) in page


def refused(console: Console) -> set[tuple[str, str]]:
    open_ = console.house.incidents.open(console.now)
    return {(one.incident.table, one.incident.device) for one in open_ if one.incident.code == "topics.refused"}


def suspends(console: Console, name: str, *places: str) -> None:
    info = EdgeInfo(suspended=dict.fromkeys(places, "felt/1/lisboa/x: Not authorized"))
    console.say(edge_topic("lisboa", name, "info"), msgspec.json.encode(info))
    console.wait(1)


async def test_a_table_or_pool_that_the_access_list_suspends_is_an_alert_with_its_remedy(console: Console) -> None:
    suspends(console, "edge-7", "bac-12")
    console.edge("jackpots")
    suspends(console, "jackpots", "jackpot red")
    assert refused(console) == {("bac-12", "edge-7"), ("", "jackpots")}
    async with console.browser("viewer") as browser:
        page = (await browser.get("/alerts")).text
        assert "The broker refuses edge-7 the topics of table bac-12" in page
        assert "The broker refuses jackpots the topics of jackpot red" in page
        assert "feltd acl" in page
    for lang, word in (("pt", "recusa a edge-7"), ("zh-Hant", "拒絕 edge-7")):
        async with console.browser("viewer", **{"accept-language": lang}) as browser:
            assert word in (await browser.get("/alerts")).text
    console.edge("jackpots", online=False)
    suspends(console, "edge-7")
    assert refused(console) == {("", "jackpots")}  # nobody can know
    console.say(edge_topic("lisboa", "jackpots", "info"), b"")
    console.say(edge_topic("lisboa", "jackpots", "health"), b"")
    console.say(edge_topic("lisboa", "jackpots", "availability"), b"")
    console.wait(1)
    assert refused(console) == set()


async def test_without_the_broker_nothing_is_said_to_be_well(console: Console) -> None:
    async with console.browser("viewer") as browser:
        console.lose()
        page = (await browser.get("/alerts")).text
        assert "No open alerts." not in page
        assert "these are the last known alerts" in page
        console.wait(5)
        assert "The console has lost the broker" in (await browser.get("/alerts")).text


async def test_a_screen_of_some_tables_sees_theirs_and_the_sites(console: Console) -> None:
    jam(console)
    console.alert("rou-3", "x", code="x", text="the wheel squeaks")
    console.edge(online=False)
    console.wait(1)
    mine = fragment(console.house.context, "en", "viewer", ("rou-3",))
    assert sorted(line.one.code for line in mine["lines"]) == ["edge.offline", "x"]
    html = console.house.live.html("alerts", Viewer("en", "viewer", ("rou-3",)))
    assert html.startswith('<section class="card lines" data-live="alerts"')
    assert "a card is stuck" not in html
    past = console.house.incidents.history(Filter(among=("rou-3",)), 9)
    assert sorted(one.code for one in past) == ["edge.offline", "x"]


def test_page_of_a_table_shows_its_alerts_and_their_buttons(console: Console) -> None:
    jam(console)
    console.alert("bac-12", "round-suspended", code="round.suspended", text="two results differ")
    console.alert("rou-3", "x", code="x", text="the wheel squeaks")
    console.wait(1)
    drawn = console.house.live.html("alerts/table/bac-12", Viewer("en", "technician", name="tess"))
    assert "A card is stuck" in drawn
    assert "Two results differ" in drawn
    assert "squeaks" not in drawn
    assert drawn.count("/acknowledge") == 2
    assert 'name="to" value="/table/bac-12"' in drawn
    assert "/acknowledge" not in console.house.live.html("alerts/table/bac-12", Viewer("en", "viewer"))


def test_many_alerts_are_not_all_rendered(console: Console) -> None:
    for number in range(130):
        console.alert("bac-12", f"x-{number}", code=f"x-{number}", device="shoe-1")
    values = fragment(console.house.context, "en", "viewer")
    assert (len(values["lines"]), values["more"], values["loud"]) == (100, 30, 130)
    pit = console.house.live.html("alerts/worst", Viewer("en", "viewer"))
    assert pit.count("<article") == 1, "one line stands for a table"
    assert "and 129 more at this table" in pit
    with pytest.raises(KeyError):
        console.house.live.html("alerts/else", Viewer("en", "viewer"))


def test_pages_hear_when_something_is_otherwise(console: Console) -> None:
    heard: list[str] = []
    console.house.site.on_change.append(heard.append)
    console.wait(1)
    console.wait(1)
    assert "alerts" not in heard
    console.house.incidents.silence(
        "bac-12", "", "", console.now + timedelta(minutes=1), "ana", "new felt", console.now
    )
    console.wait(1)
    assert heard.count("alerts") == 1
    console.wait(60)
    assert heard.count("alerts") == 2  # the silence has ended by itself
    console.lose()
    console.wait(5)
    assert heard.count("alerts") == 3


def test_incident_found_by_the_console_is_shown_at_its_table_at_once(console: Console) -> None:
    """The table was not drawn anew before something happened there: a quiet one never said it."""
    viewer = Viewer("en", "viewer")
    assert "bends" not in console.house.live.html("tile/rou-3", viewer)
    console.house.incidents.begin(
        ("rou-3", "fair"), Alert(code="fair.x", text="the wheel bends", remedy="look", severity="error"), console.now
    )
    console.wait(1)
    assert "bends" in console.house.live.html("tile/rou-3", viewer)
    console.house.incidents.end(("rou-3", "fair"), console.now)
    console.wait(1)
    assert "bends" not in console.house.live.html("tile/rou-3", viewer)


def test_an_event_draws_the_age_of_the_last_alone(console: Console) -> None:
    live, viewer = console.house.live, Viewer("en", "viewer")
    table = ("tile/bac-12", "round/bac-12", "board/bac-12", "history/bac-12", "result/bac-12", "jackpots/bac-12")
    first = {name: live.html(name, viewer) for name in table}
    assert "no event" in first["round/bac-12"].lower()
    assert "no event" in live.html("last/bac-12", viewer).lower()
    assert live.wanted(["tile/bac-12"], viewer).keys() == {"tile/bac-12"}  # a tile shows no age: an event draws nothing
    assert live.wanted(["round/bac-12"], viewer).keys() == {"round/bac-12", "last/bac-12"}
    console.event("bac-12", "shoe-1", ShoeStarted())
    assert {name: live.html(name, viewer) for name in table} == first
    last = live.html("last/bac-12", viewer)
    assert f'data-at="{T0:%Y-%m-%dT%H:%M:%S.%f}Z"' in last
    console.alert("bac-12", "shoe-1-card-jam", code="card.jam", device="shoe-1")
    assert last in live.html("round/bac-12", viewer)  # drawn anew, it has it too


async def test_the_watch_looks_every_second(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.console.pages.alerts.EVERY", 0.001)
    watch = Watch(console.house.context, console.house.pending)
    looked = asyncio.Event()
    console.lose()
    console.now += timedelta(seconds=5)
    console.house.site.on_change.append(lambda key: looked.set() if key == "alerts" else None)
    task = asyncio.create_task(watch.run())
    await looked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.incident.code for one in console.house.incidents.open(console.now)] == ["broker.lost"]


async def test_messages_nobody_can_read_are_told(console: Console) -> None:
    topic = "felt/1/lisboa/table/bac-12"
    for leaf in ("alert/x", "device/shoe-1/state", "device/shoe-1/event/x", "round/event/x"):
        console.say(f"{topic}/{leaf}", b"\xff{")
    console.say("felt/1/lisboa/edge/edge-7/health", b"[]")
    console.say(f"{topic}/device/shoe-1/meta", b"")  # cleared: nothing to read
    console.wait(1)
    [shown] = console.house.incidents.open(console.now)
    assert shown.incident.text == "5 messages on the broker could not be read"


async def test_a_time_without_a_zone_harms_nobody(console: Console) -> None:
    for time in ("2026-11-20T20:00:00", "2026-11-20T20:00:01"):
        console.edge(time=time)
        console.wait(1)
        console.lose()
        console.connect()
        console.edge(time=time)
        console.wait(1)
    console.alert("bac-12", "x", code="x", since="2026-11-20T20:00:00")
    console.wait(1)
    health = console.house.site.edges["edge-7"].health
    assert health is not None
    assert health.time.tzinfo is UTC  # the last good one
    [shown] = console.house.incidents.open(console.now)
    assert shown.incident.text == "5 messages on the broker could not be read"


# ---- what is done


async def test_a_technician_acknowledges_and_it_is_written_down(console: Console) -> None:
    jam(console)
    async with console.browser("technician") as browser:
        page = (await browser.get("/alerts")).text
        assert 'action="/alerts/1/acknowledge"' in page
        assert "/alerts/silence" not in page
        assert f'name="seen" value="{seen(console)}"' in page
        answer = await browser.post("/alerts/1/acknowledge", data={"note": "on my <way>", "seen": seen(console)})
        assert (answer.status_code, answer.headers["location"]) == (303, "/alerts")
        page = (await browser.get("/alerts")).text
        assert "taken by technician@lisboa" in page
        assert "on my &lt;way&gt;" in page
        assert 'action="/alerts/1/acknowledge"' not in page
        late = await browser.post("/alerts/1/acknowledge", data={"note": "me too", "seen": seen(console)})
        assert late.status_code == 409
        assert "technician@lisboa has already taken it." in late.text
        assert (await browser.post("/alerts/99/acknowledge", data={})).status_code == 404
    [row] = console.journal.range("bac-12", 1, 9)
    assert (row.type, row.device) == ("console.acknowledge", "technician@lisboa")
    assert b'"note":"on my <way>"' in row.data


@pytest.mark.parametrize("lang", words.LANGS)
async def test_a_trouble_that_nobody_saw_is_not_acknowledged(console: Console, lang: words.Lang) -> None:
    """While somebody writes the part of the page stands still: what they read may be over."""
    console.alert("bac-12", "shoe-1-x", code="shoe.low", severity="warning", text="few cards", device="shoe-1")
    shown = seen(console)
    console.alert("bac-12", "shoe-1-x", code="shoe.low", severity="error", text="no card", device="shoe-1")
    async with console.browser("technician", **{"accept-language": lang}) as browser:
        for form in ({"note": "on my <way>", "seen": shown}, {"note": "on my <way>"}):
            answer = await browser.post("/alerts/1/acknowledge", data=form)
            assert answer.status_code == 409
            assert words.say(lang, "alerts.changed") in answer.text
            assert 'value="on my &lt;way&gt;" data-kept' in answer.text
            assert answer.text.count('data-live="alerts"') == 1
            assert f'name="seen" value="{seen(console)}"' in answer.text
        page = (await browser.get("/alerts")).text  # nobody else gets the note
        assert ("on my" in page, "data-kept" in page) == (False, False)
        one = console.house.incidents.get(1)
        assert one is not None
        assert (one.state, one.by) == ("open", "")
        assert console.journal.range("bac-12", 1, 9) == []
        again = {"note": "on my way", "seen": seen(console)}
        assert (await browser.post("/alerts/1/acknowledge", data=again)).status_code == 303


async def test_the_button_to_close_appears_by_itself(console: Console) -> None:
    """Nothing else changes when it is known that nobody holds an alert any more."""
    jam(console, "gone-1")
    viewer = Viewer("en", "supervisor")
    console.lose()
    console.begin()
    heard: list[str] = []
    for _ in range(9):
        console.wait(1)
        assert "/close" not in console.house.live.html("alerts", viewer)
    console.house.site.on_change.append(heard.append)
    console.wait(1)
    assert heard.count("alerts") == 1
    assert 'action="/alerts/1/close"' in console.house.live.html("alerts", viewer)


async def test_incident_is_acknowledged_when_the_store_is_full(console: Console) -> None:
    jam(console)
    async with console.browser("technician") as browser:
        console.store.db.execute("PRAGMA query_only=ON")
        form = {"note": "on my way", "seen": seen(console)}
        assert (await browser.post("/alerts/1/acknowledge", data=form)).status_code == 303
        assert "taken by technician@lisboa" in (await browser.get("/alerts")).text
        console.store.db.execute("PRAGMA query_only=OFF")
        console.wait(1)
    [(by,)] = console.store.db.execute("SELECT by FROM incident").fetchall()
    assert by == "technician@lisboa"
    assert [row.type for row in console.journal.range("bac-12", 1, 9)] == ["console.acknowledge"]


async def test_a_supervisor_silences_and_ends_it(console: Console) -> None:
    jam(console)
    async with console.browser("supervisor") as browser:
        asked = {"table": "bac-12", "device": "shoe-1", "code": "", "minutes": "60", "why": "the shoe is changed"}
        assert (await browser.post("/alerts/silence", data=asked)).status_code == 303
        page = (await browser.get("/alerts")).text
        assert "silenced until" in page
        assert "the shoe is changed" in page
        assert "A card is stuck" in page  # hidden from lamps, not from here
        assert '<span class="badge error">' not in page
        [silence] = console.house.incidents.silences(console.now)
        assert silence.until == T0 + timedelta(hours=1)
        assert (await browser.post("/alerts/silence/1/end")).status_code == 303
        assert console.house.incidents.silences(console.now) == []
        over = await browser.post("/alerts/silence/1/end")
        assert over.status_code == 409
        assert "This silence has ended." in over.text
    assert [row.type for row in console.journal.range("bac-12", 1, 9)] == ["console.silence", "console.silence.end"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"minutes": "721"}, "within 12 hours"),
        ({"minutes": "0"}, "within 12 hours"),
        ({"minutes": "x"}, "within 12 hours"),
        ({"minutes": "9" * 15}, "within 12 hours"),
        ({"why": " "}, "Enter a reason for the silence"),
        ({"table": ""}, "names a table"),
    ],
)
async def test_a_silence_that_is_none_is_refused_and_not_written_down(
    console: Console, change: dict[str, str], said: str
) -> None:
    asked = {"table": "bac-12", "minutes": "60", "why": "the shoe is changed", **change}
    async with console.browser("supervisor") as browser:
        answer = await browser.post("/alerts/silence", data=asked)
    assert answer.status_code == 409
    assert said in answer.text
    assert console.house.incidents.silences(console.now) == []
    assert console.journal.range("bac-12", 1, 9) == []


# ---- handled


async def test_an_incident_is_handled_step_by_step(console: Console) -> None:
    """Each step is one press from the line, is kept in the store and in the journal, and belongs to its owner."""
    jam(console)

    def step() -> str:
        one = console.house.incidents.get(1)
        assert one is not None
        return f"{one.by} {one.stage} {one.note}".strip()

    async with console.browser("technician") as browser, console.browser("supervisor") as other:

        async def press(who: httpx.AsyncClient, kind: str, **more: str) -> int:
            one = console.house.incidents.get(1)
            assert one is not None
            form = {"after": console.house.incidents.handled(one), "to": "/", **more}
            console.now += timedelta(seconds=60)
            return (await who.post(f"/alerts/1/step/{kind}", data=form)).status_code

        assert await press(browser, "on_way") == 409  # take it first
        form = {"seen": seen(console)}
        assert (await browser.post("/alerts/1/acknowledge", data=form)).status_code == 303
        assert await press(other, "at_table") == 409  # somebody else has it
        assert await press(browser, "on_way", after="yesterday") == 409  # another page was faster
        assert "bringing a key" in (await browser.post("/alerts/1/step/done", data={"note": "bringing a key"})).text
        assert await press(browser, "nonsense") == 404
        for name in ("on_way", "at_table", "done"):
            pit = (await browser.get("/")).text
            assert f'id="step-1" method="post" action="/alerts/1/step/{name}"' in pit
            assert 'id="step-1"' not in (await other.get("/")).text  # not theirs
            assert await press(browser, name, note=f"note {name}") == 303
        assert step() == "technician@lisboa done note done"
        assert await press(browser, "handed", whom="viewer@lisboa") == 409
        assert await press(browser, "handed", whom="supervisor@lisboa") == 303
        assert step() == "supervisor@lisboa handed"
        assert 'class="line1 error taken mine"' in (await other.get("/")).text
        assert await press(browser, "released") == 409
        assert await press(other, "released") == 303
        assert step() == "supervisor@lisboa"
    console.alert("bac-12", "shoe-1-card-jam")
    [over] = console.house.incidents.history(Filter(), 9)  # from the store
    kinds = ["taken", "on_way", "at_table", "done", "handed", "released"]
    assert (over.state, [one.kind for one in over.steps]) == ("resolved", kinds)
    written = [row.type for row in console.journal.range("bac-12", 1, 99)]
    assert written == ["console.acknowledge", *(f"console.alert.{kind}" for kind in kinds[1:])]


@pytest.mark.parametrize(
    ("role", "taken", "form", "minutes"),
    [
        ("technician", False, {"end": "15"}, None),
        ("technician", True, {"end": "60"}, 60),
        ("technician", True, {"end": "at", "at": "x"}, None),
        ("technician", True, {"end": "120"}, None),
        ("technician", True, {"end": "15", "why": " "}, None),
        ("supervisor", False, {"end": "120"}, 120),
        ("supervisor", False, {"end": "shift"}, 180),
        ("supervisor", False, {"end": "at", "at": "21:30"}, 90),
    ],
)
@pytest.mark.usefixtures("in_utc")
async def test_an_alert_is_silenced_from_its_line(
    console: Console, role: Role, taken: bool, form: dict[str, str], minutes: int | None
) -> None:
    jam(console)
    async with console.browser(role) as browser:
        assert ("/alerts/1/silence" in (await browser.get("/")).text) == (role == "supervisor")
        if taken:
            console.house.incidents.acknowledge(1, f"{role}@lisboa", "", console.now)
            console.house.watch.look()
            assert "/alerts/1/silence" in (await browser.get("/")).text
        answer = await browser.post("/alerts/1/silence", data={"why": "a new shoe comes", **form})
        assert answer.status_code == (303 if minutes else 409)
        found = [(one.table, one.device, one.code, one.until) for one in console.house.incidents.silences(console.now)]
        until = T0 + timedelta(minutes=minutes or 0)
        assert found == ([("bac-12", "shoe-1", "card.jam", until)] if minutes else [])
        if minutes:
            assert (await browser.post("/alerts/silence/1/end", data={})).status_code == 303  # their own


async def test_a_supervisor_closes_what_nobody_ends(console: Console) -> None:
    jam(console, "gone-1")
    async with console.browser("supervisor") as browser:
        assert 'action="/alerts/1/close"' not in (await browser.get("/alerts")).text
        still = await browser.post("/alerts/1/close", data={})
        assert (still.status_code, "The cause persists" in still.text) == (409, True)
        console.lose()
        console.begin()
        console.wait(60)
        assert 'action="/alerts/1/close"' in (await browser.get("/alerts")).text
        assert (await browser.post("/alerts/1/close", data={"note": "taken away"})).status_code == 303
        over = await browser.post("/alerts/1/close", data={})
        assert (over.status_code, "This alert has ended." in over.text) == (409, True)
    assert console.house.incidents.open(console.now) == []
    assert [row.type for row in console.journal.range("gone-1", 1, 9)] == ["console.alert.close"]


WHAT = [
    ("/alerts/1/acknowledge", {"technician", "supervisor"}),
    ("/alerts/1/step/on_way", {"technician", "supervisor"}),
    ("/alerts/1/silence", {"technician", "supervisor"}),
    ("/alerts/1/close", {"supervisor"}),
    ("/alerts/silence", {"supervisor"}),
    ("/alerts/silence/1/end", {"supervisor"}),
]


@pytest.mark.parametrize("role", ["viewer", "dealer", "technician", "supervisor", "inspector", None])
@pytest.mark.parametrize(("path", "roles"), WHAT)
async def test_alert_rights(console: Console, role: Role | None, path: str, roles: set[str]) -> None:
    jam(console)
    async with console.browser(role) as browser:
        status = (await browser.post(path, data={})).status_code
        assert status in ((303, 409) if role in roles else (303,) if role is None else (403,))
        if role is not None:
            strange = await browser.post(path, data={}, headers={"origin": "http://elsewhere.test"})
            assert strange.status_code == 403
    if role not in roles:
        assert console.house.incidents.open(console.now)[0].incident.state == "open"


@pytest.mark.parametrize("path", ["/alerts", "/alerts.csv"])
async def test_a_dealer_and_a_stranger_see_nothing(console: Console, path: str) -> None:
    async with console.browser("dealer") as browser:
        assert (await browser.get(path)).status_code == 403
    async with console.browser() as browser:
        assert (await browser.get(path)).headers["location"].startswith("/login")


# ---- what there was


async def test_the_history_is_found_and_paged(console: Console) -> None:
    for number in range(60):
        console.alert("bac-12", f"x-{number}", code=f"x-{number}", device="shoe-1")
        console.alert("bac-12", f"x-{number}")
    console.alert("rou-3", "y", code="y&z", severity="warning")
    async with console.browser("viewer") as browser:
        page = (await browser.get("/alerts")).text
        assert page.count("<tr><td") == 50
        older = re.search(r'href="(/alerts\?before=\d+)#history"', page)
        assert older is not None
        page = (await browser.get(older[1])).text
        assert page.count("<tr><td") == 11
        assert "before=" not in page
        page = (await browser.get("/alerts", params={"table": "bac-12", "severity": "error"})).text
        assert "table=bac-12&amp;severity=error&amp;before=" in page
        assert 'href="/alerts.csv?table=bac-12&amp;severity=error"' in page
        page = (await browser.get("/alerts", params={"code": "y&z"})).text
        assert page.count("<tr><td") == 1
        for day, count in (("2026-11-19", 50), ("2026-11-22", 0), ("no day", 50), ("9999-12-31", 0)):
            page = (await browser.get("/alerts", params={"since": day})).text
            assert page.count("<tr><td class") == count, day
        assert (await browser.get("/alerts", params={"until": "9999-12-31", "before": "-1"})).status_code == 200


async def test_the_history_is_taken_away_as_csv(console: Console) -> None:
    jam(console, text='=HYPERLINK("http://x")')
    console.house.incidents.acknowledge(1, "maria", "no, really\nsoon", console.now)
    console.wait(90)
    console.alert("bac-12", "shoe-1-card-jam")
    for number in range(1500):
        console.alert("rou-3", f"x-{number}", code="x")
    async with console.browser("inspector") as browser:
        answer = await browser.get("/alerts.csv")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert 'filename="alerts-lisboa-20261120T200130Z.csv"' in answer.headers["content-disposition"]
        rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"), newline="")))
        assert len(rows) == 1501
        assert [int(row["number"]) for row in rows] == list(range(1501, 0, -1))
        last = rows[-1]
        assert last["text"] == '\'=HYPERLINK("http://x")'
        assert (last["by"], last["note"], last["seconds"], last["state"]) == (
            "maria",
            "no, really\nsoon",
            "90",
            "resolved",
        )
        assert last["began"] == "2026-11-20T20:00:00+00:00"
        some = (await browser.get("/alerts.csv", params={"table": "bac-12"})).text
        assert len(some.strip().splitlines()) == 3  # its note has two lines


# ---- words


def test_every_word_that_is_said_is_there() -> None:
    catalog = words.catalog("en")
    said = "".join((TEMPLATES / name).read_text("utf-8") for name in ("_alerts.html", "alerts_page.html"))
    keys = set(re.findall(r"[\"'](alerts\.[a-z_.]+[a-z])[\"']", said))
    source = Path(words.__file__).parents[1] / "console"
    files = ("alerts/incidents.py", "alerts/processes.py", "pages/alerts.py")
    code = "".join((source / name).read_text("utf-8") for name in files)
    keys |= set(re.findall(r'NotOpen\(\s*"(alerts\.\w+)"', code))
    assert len(keys) > 40
    assert keys - set(catalog) == set()
    code += "".join(re.findall(r'code=("[a-z_.]+")', (source / "alerts/pools.py").read_text("utf-8")))
    own = {key.removeprefix("alerts.code.") for key in catalog if key.startswith("alerts.code.")}
    assert own == set(re.findall(r'"((?:broker|edge|rules|jackpots?|disk|journal|messages)\.[a-z_]+)"', code))
    assert own == {key.removeprefix("alerts.remedy.") for key in catalog if key.startswith("alerts.remedy.")}


def test_every_page_is_a_route(console: Console) -> None:
    assert {one.path for one in routes(console.house.context, console.house.watch)} <= {
        one.path for one in console.app.routes if isinstance(one, Route)
    }


# ---- on the pit


async def test_the_pit_shows_what_is_open_and_a_silence_takes_it_from_the_lamps(console: Console) -> None:
    console.device("rou-3", "wheel-1", "cammegh_ss2")
    fault = {"code": "card.jam", "text": "a card is stuck", "severity": "error", "remedy": "", "since": console.now}
    state = msgspec.json.encode({"online": True, "faults": [fault]})
    console.say(device_topic("lisboa", "bac-12", "shoe-1", "state"), state)
    jam(console)

    def tile() -> str:
        return console.house.live.html("tile/bac-12", Viewer("en", "viewer"))

    async with console.browser("supervisor") as browser:
        pit = (await browser.get("/")).text
        assert 'data-live="alerts/worst"' in pit
        assert 'action="/alerts/1/acknowledge"' in pit
        assert 'class="card tile error"' in tile()
        assert "a card is stuck" in tile()
        asked = {"table": "bac-12", "device": "shoe-1", "minutes": "15", "why": "the shoe is cleaned"}
        assert (await browser.post("/alerts/silence", data=asked)).status_code == 303
        assert 'class="card tile silenced"' in tile()
        assert "Silenced until" in tile()
        assert "the shoe is cleaned" in tile()
        assert "a card is stuck" not in tile()
        assert 'class="lamp error"' in tile()  # the device's own lamp tells the truth
        assert "A card is stuck" in (await browser.get("/alerts")).text
    console.wait(15 * 60)
    assert 'class="card tile error"' in tile()


async def test_a_silence_of_one_fault_hides_no_other(console: Console) -> None:
    console.device("bac-12", "shoe-1", "bee_tek_shoe", online=False)
    console.house.incidents.silence("", "", "card.jam", console.now + timedelta(hours=1), "ana", "known", console.now)
    console.wait(1)
    assert 'class="card tile offline"' in console.house.live.html("tile/bac-12", Viewer("en", "viewer"))
    console.house.incidents.silence("", "", "device.offline", console.now + timedelta(hours=1), "ana", "x", console.now)
    console.wait(1)
    assert 'class="card tile silenced"' in console.house.live.html("tile/bac-12", Viewer("en", "viewer"))


# ---- the report of a shift


def handled(console: Console, table: str, began: float, *steps: tuple[float, StepKind]) -> int:
    """An incident, and when somebody took which step; minutes after the beginning of the shift."""
    house = console.house

    def at(minutes: float) -> datetime:
        return T0 - timedelta(hours=5) + timedelta(minutes=minutes)

    alert = Alert(code="card.jam", text="a card is stuck", remedy="open", severity="error", device="shoe-1")
    house.incidents.begin((table, f"jam-{began}"), alert, at(began))
    one = house.incidents.of((table, f"jam-{began}"))
    assert one is not None
    for minutes, kind in steps:
        if kind == "taken":
            house.incidents.acknowledge(one.n, "tess", "", at(minutes))
        else:
            house.incidents.step(one.n, kind, "tess", at(minutes), whom="sam" if kind == "handed" else "")
    return one.n


@pytest.mark.usefixtures("in_utc")
async def test_the_report_of_a_shift(console: Console) -> None:
    """The shift begins at 15:00 and ends at 23:00; it is 20:00."""
    handled(console, "bac-12", -30, (10, "taken"))
    handled(console, "bac-12", 60, (61, "taken"), (64, "at_table"), (70, "done"))
    handled(console, "bac-12", 120, (123, "taken"), (128, "at_table"), (140, "done"))
    handled(console, "gone-1", 200, (205, "taken"), (206, "handed"))
    console.house.incidents.end(("bac-12", "jam-60"), T0 - timedelta(hours=3))
    async with console.browser("supervisor") as browser:
        report = (await browser.get("/alerts/report.json")).json()
        assert [datetime.fromisoformat(report[name]).hour for name in ("since", "until")] == [15, 23]
        assert [[one["n"] for one in report[name]] for name in ("began", "earlier", "open", "handed")] == [
            [2, 3, 4],
            [1],
            [1, 3, 4],
            [4],
        ]
        assert report["all"] == {"incidents": 3, "taken": 180.0, "at_table": 360.0, "done": 900.0}
        assert [(name, of["incidents"]) for name, of in report["kinds"]] == [("", 1), ("bee_tek_shoe", 2)]
        rows = list(csv.DictReader(io.StringIO((await browser.get("/alerts/report.csv")).text.removeprefix("\ufeff"))))
        assert [(row["number"], row["taken_s"], row["done_s"], row["open_at_end"]) for row in rows] == [
            ("1", "2400", "", "1"),
            ("2", "60", "600", "0"),
            ("3", "180", "1200", "1"),
            ("4", "300", "", "1"),
        ]
        page = (await browser.get("/alerts/report")).text
        assert "Response times" in page
        assert "15 min" in page
        assert 'href="/alerts/report?from=2026-11-20T07%3A00&amp;to=2026-11-20T15%3A00"' in page  # the shift before
        before = (await browser.get("/alerts/report.json?from=2026-11-20T07:00&to=2026-11-20T15:00")).json()
        assert [[one["n"] for one in before[name]] for name in ("began", "open")] == [[1], [1]]
        for odd in (
            "from=x&to=y",
            "from=9999-12-31T23:59&to=0001-01-01T00:00",
            "to=0001-01-01T00:00",
            "from=0001-01-01",
        ):
            assert (await browser.get(f"/alerts/report?{odd}")).status_code == 200, odd
