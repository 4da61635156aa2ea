"""Somebody on the floor's network, or a curious dealer: what they try at the console's pages."""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec
import pytest
from console_floor import Console, opened
from console_tour import ask, follow, fragments, pages, streams
from helpers import PATIENCE
from hypothesis import given, settings, strategies as st

from daemon import read_model
from daemon.console import live as live_module
from daemon.console.auth.users import ROLES, By, Right, Role, may
from daemon.console.live import Viewer
from protocols.contract.jackpots import (
    BookEntry,
    Change,
    PoolBooks,
    PoolLevel,
    PoolTerms,
    PoolWin,
    Price,
    Prize,
    Proposal,
    Reject,
    Reset,
    SetTerms,
)
from protocols.contract.results import Award
from protocols.contract.topics import Wire, encode_wire, table_topic

BY = By("root", "system")


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.connect()
        yield one


def cookie(console: Console, role: str = "viewer") -> list[tuple[str, str]]:
    secret = console.house.access.users.begin(f"{role}@lisboa", "10.0.0.7", "test", outside=role)
    return [("cookie", f"feltd={secret}"), ("accept-language", "en")]


# ---- memory


@pytest.mark.parametrize(
    "name",
    [
        "top/x",
        "edges/x",
        "alerts/x",
        "alerts/table",
        "alerts/table/x/y",
        "tile/x",
        "device/bac-12",
        "device/x/y",
        "x",
        "",
    ],
)
def test_a_fragment_that_is_none_is_not_kept(console: Console, name: str) -> None:
    viewer = Viewer("en", "viewer")
    with pytest.raises(KeyError):
        console.house.live.html(name, viewer)
    assert (name, viewer) not in console.house.live._rendered


async def test_one_who_opens_many_pages_leaves_room_for_others(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "MOST_OF_ONE", 3)
    greedy, other = cookie(console), cookie(console, "technician")
    whom = "outside viewer@lisboa"
    live = console.house.live
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            assert (await ask(console.app, "/live?f=top", headers=greedy)).status == 200
            looking = live.follow({}, Viewer("en", "viewer"), lambda: True, whom)
            stack.push_async_callback(looking.aclose)  # type: ignore[attr-defined]
            await anext(looking)
        assert (await ask(console.app, "/live?f=top", headers=greedy)).status == 503
        assert (await ask(console.app, "/live?f=top", headers=other)).status == 200
    assert (await ask(console.app, "/live?f=top", headers=greedy)).status == 200


def test_render_cache_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "MOST_BYTES", 10_000)
    live, viewer = live_module.Live(lambda: ""), Viewer("en", "viewer")
    drawn = 0

    def draw(argument: str, _viewer: Viewer) -> str:
        nonlocal drawn
        drawn += 1
        return "x" * 1000 * int(argument)

    live.add(live_module.Fragment("part", lambda one: (one,), draw))
    for _ in range(3):
        for argument in ("1", "2", "3"):
            live.html(f"part/{argument}", viewer)
    assert drawn == 3
    for _ in range(5):  # what is drawn anew takes the place of what it was
        live.changed("2")
        live.html("part/2", viewer)
    assert len(live._rendered) == 3
    live.html("part/8", viewer)  # the oldest go
    assert [name for name, _ in live._rendered] == ["part/8"]
    live.html("part/20", viewer)
    assert live._rendered == {}
    live.html("part/1", viewer)
    assert len(live._rendered) == 1


async def test_a_page_is_told_in_pieces_of_which_nobody_holds_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "PIECE", 2500)
    live, viewer = live_module.Live(lambda: ""), Viewer("en", "viewer")
    drawn: list[str] = []

    def draw(argument: str, _viewer: Viewer) -> str:
        drawn.append(argument)
        return f"{drawn.count(argument)}" * 1000

    live.add(live_module.Fragment("part", lambda one: (one,), draw))
    names = [f"part/{n}" for n in range(8)]
    looking = live.follow(live.wanted(names, viewer), viewer, lambda: True)
    said = [msgspec.json.decode((await anext(looking))[6:])["put"]]
    assert drawn == ["0", "1", "2"]
    live.changed("1")  # was told: once more
    live.changed("7")  # is still to be told: once
    said += [msgspec.json.decode((await anext(looking))[6:])["put"] for _ in range(3)]
    assert [list(one) for one in said] == [names[:3], names[3:6], names[6:], ["part/1"]]
    await looking.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("tables", [("bac-12",), ("rou-3",)])
async def test_a_token_of_the_same_name_is_another(
    console: Console, monkeypatch: pytest.MonkeyPatch, tables: tuple[str, ...]
) -> None:
    """Who stole a screen's token looks on until it is replaced, and not until the tables are others."""
    monkeypatch.setattr("daemon.console.live.HEARTBEAT", 0.05)
    users = console.house.access.users
    secret = users.add_token(BY, "wall", "viewer", ("bac-12",))
    said, following = await follow(console.app, "/live?f=top", headers=[("cookie", f"feltd={secret}")])
    assert said.status == 200
    users.remove_token(BY, "wall")
    users.add_token(BY, "wall", "viewer", tables)
    async with asyncio.timeout(PATIENCE):
        await following
    assert said.body.endswith(b"event: over\ndata: \n\n")


def test_names_on_the_broker_fill_nothing(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_model, "MOST_TABLES", 5)
    monkeypatch.setattr(read_model, "MOST_ALERTS", 5)
    for n in range(50):
        state = msgspec.json.encode({"phase": "betting", "round": str(n)})
        console.say(table_topic("lisboa", f"t-{n}", "round/state"), state)
        console.alert("bac-12", f"alert-{n}", code="jam")
    assert len(console.house.site.tables) == 5
    assert len(console.house.live._versions) < 12
    assert len(console.house.site.tables["bac-12"].alerts) == 5
    console.alert("bac-12", "alert-0", code="other")  # one that is known goes on
    assert console.house.site.tables["bac-12"].alerts["alert-0"].code == "other"


@pytest.mark.parametrize("number", ["9" * 25, "9" * 5000, "0"])
@pytest.mark.parametrize("path", ["/alerts/{}/acknowledge", "/alerts/{}/close", "/alerts/silence/{}/end"])
async def test_a_number_beyond_all_bounds_is_nobodys(console: Console, path: str, number: str) -> None:
    ours = [("origin", "http://pit.test"), *cookie(console, "supervisor")]
    said = await ask(console.app, path.format(number), "POST", ours)
    assert said.status in (303, 404, 409)


# ---- words of devices and of the rules

RIGHTS: dict[str, Right] = {"pool": "books", "bundle": "bundle", "tracing": "trace"}

EVIL = """"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}javascript:alert(3)"""


class _Tags(HTMLParser):
    """What a browser would take for more than text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("img", "iframe", "object", "style", "base") or (tag == "script" and "src" not in given):
            self.wrong.append(tag)
        for name, value in attrs:
            leads = name in ("href", "action", "src", "data-trace", "data-dealer")
            if name.startswith("on") or name == "style" or (leads and not re.match(r"[/?#](?!/)", value or "")):
                self.wrong.append(f"{tag} {name}={value}")


def hostile(console: Console) -> None:
    """Every text that comes over the broker wants to be a script."""
    at = console.now
    for table, device, driver in (("bac-12", "shoe-1", "bee_tek_shoe"), ("rou-3", "wheel-1", EVIL)):
        console.device(table, device, driver)
        place = f"felt/1/lisboa/table/{table}/device/{device}"
        meta = dict.fromkeys(("driver", "model", "serial", "firmware", "url", "edge"), EVIL) | {"driver": driver}
        console.say(f"{place}/meta", msgspec.json.encode(meta))
        fault = dict.fromkeys(("code", "text", "severity", "remedy"), EVIL) | {"since": at}
        said = {"online": True, "reason": EVIL, "faults": [fault], "counters": {EVIL: 1}}
        console.say(f"{place}/state", msgspec.json.encode(said))
        for seq, (kind, data) in enumerate({"display.shown": {"text": EVIL}, "device.faulted": fault}.items(), 1):
            wire = Wire("1.0", EVIL + kind, place, kind, at, seq, data=msgspec.Raw(msgspec.json.encode(data)))
            console.say(f"{place}/event/{kind}", encode_wire(wire))
        console.say(f"{place}/event/x", encode_wire(Wire("1.0", EVIL, place, EVIL, at, 3)))
        console.say(f"{place}/trace", msgspec.json.encode({"at": at, "way": "in", "hex": "3c", "n": 1, "dropped": 0}))
        console.alert(table, EVIL.replace("/", ""), code=EVIL, text=EVIL, remedy=EVIL, device=EVIL)
        state = {"round": EVIL, "phase": EVIL, "detail": {"reason": EVIL, "hands": {EVIL: [EVIL]}, "pocket": EVIL}}
        console.say(table_topic("lisboa", table, "round/state"), msgspec.json.encode(state))
        result = {
            **dict.fromkeys(("round", "edition", "supersedes"), EVIL),
            "ruleset": "macau.baccarat",
            "void": None,
            "outcome": {"hands": {"player": [EVIL]}, "winner": EVIL, "combinations": {"player": EVIL}, "seats": {}},
            "announcements": {"en": EVIL},
            "law": [EVIL],
            "winners": [{"bet": EVIL, "pays": EVIL, "seat": EVIL}],
            "irregularities": [{"text": EVIL, "law": EVIL}],
            "jackpots": [{"jackpot": EVIL, "combination": EVIL, "law": EVIL}],
            "evidence": [EVIL],
        }
        for seq, void in enumerate((None, {"reason": EVIL, "bets": EVIL}), 1):
            data = msgspec.Raw(msgspec.json.encode({"result": {**result, "void": void, "round": f"{EVIL}{seq}"}}))
            wire = Wire(
                "1.0", f"e:{table}:{seq}/0", f"felt/1/lisboa/table/{table}/round", "resolved", at, seq, data=data
            )
            console.say(table_topic("lisboa", table, "round/event/resolved"), encode_wire(wire))
    hostile_pool(console)
    console.edge(info=EVIL)
    console.wait(1)


def hostile_pool(console: Console) -> None:
    """A pool whose every text wants to be a script."""
    at, red = console.now, "felt/1/lisboa/jackpot/red"
    award = Award(EVIL, EVIL[:64], "fixed", EVIL)
    wins = tuple(
        PoolWin(f"{EVIL}{state}", EVIL, EVIL, at, award, 5, state=state, confirmed_by=EVIL)
        for state in ("pending", "confirmed", "paid")
    )
    terms = PoolTerms(5, "0.5", prizes={EVIL[:64]: Prize(5)})
    books = PoolBooks("red", at, 2, (EVIL,), terms, wins, (EVIL, "bac-12/shoe-1"))
    changes: tuple[Change, ...] = (Reset(EVIL), SetTerms(terms, EVIL), Reject(EVIL, EVIL), Price(EVIL, 5, EVIL))
    proposals = tuple(Proposal(f"{EVIL}{n}", EVIL, at, change) for n, change in enumerate(changes))
    level = PoolLevel("red", 5, EVIL, 2, 2, at, (), proposals)
    console.say(f"{red}/level", msgspec.json.encode(level))
    console.say(f"{red}/books", msgspec.json.encode(books))
    moved = {EVIL: "-5", f"pending:{EVIL}": "5"}
    entry = BookEntry(1, 1, moved, moved, EVIL, EVIL, 1, 5, wins[0], (EVIL,), changes[1], terms, EVIL)
    for seq, kind in enumerate(("changed", EVIL), 1):
        numbered = msgspec.structs.replace(entry, number=seq, postings={} if seq == 2 else moved)
        wire = Wire("1.0", EVIL, red, kind, at, seq, data=msgspec.Raw(msgspec.json.encode(numbered)))
        console.say(f"{red}/event/{kind}", encode_wire(wire))


@pytest.mark.parametrize("role", ROLES)
async def test_no_text_of_the_broker_becomes_more_than_text(console: Console, role: Role) -> None:
    hostile(console)
    user = cookie(console, role)
    rounds = [("bac-12", f"{EVIL}{seq}") for seq in (1, 2)]
    found = 0
    for path in pages(console.house, rounds):
        said = await ask(console.app, path, headers=user)
        assert said.status < 500 or path == "/readyz", path
        if b"text/html" in dict(said.headers).get(b"content-type", b""):
            assert _Tags(said.body.decode()).wrong == [], path
            found += said.body.count(b"onerror=alert(1)&gt;")
    if may(role, "look"):
        assert found > 50
        for name in fragments(console.house):
            if any(name.startswith(kind) and not may(role, right) for kind, right in RIGHTS.items()):
                continue
            assert _Tags(console.house.live.html(name, Viewer("en", role))).wrong == [], name


def test_unescaped_markup_would_be_detected() -> None:
    assert _Tags(f'<p title="{EVIL}">').wrong == ["img", "img src=x", "img onerror=alert(1)", "script"]
    assert _Tags('<a href="//evil.example">').wrong == ["a href=//evil.example"]


@settings(max_examples=15)
@given(st.text(min_size=1, max_size=40))
def test_a_filter_in_an_address_stays_text(text: str) -> None:
    """What stands in the query comes back in the form of the page of alerts, in links, and in a file."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as console:
        query = urlencode({"table": text, "device": EVIL + text, "code": text, "since": text, "before": text})
        for path in ("/alerts", "/alerts.csv", "/login", "/actions", "/live", "/wall", "/table/bac-12/fairness"):
            said = asyncio.run(
                ask(console.app, f"{path}?{query}&to={quote(text)}", headers=cookie(console, "inspector"))
            )
            assert said.status < 500
            if b"text/html" in dict(said.headers).get(b"content-type", b""):
                assert _Tags(said.body.decode()).wrong == []


@pytest.mark.parametrize(
    "to", ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "x", "/ü"]
)
async def test_no_form_sends_anybody_elsewhere(console: Console, to: str) -> None:
    ours = [("origin", "http://pit.test"), ("accept-language", "en")]
    said = await ask(console.app, "/preferences", "POST", ours, urlencode({"to": to, "lang": "pt"}).encode())
    assert dict(said.headers)[b"location"] == b"/"


@pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc", "%00", "\u2028", "a" * 20_000, "' OR 1=1 --"])
async def test_the_name_of_a_round_is_a_name_and_no_path(console: Console, name: str) -> None:
    for role in ("viewer", "inspector"):
        said = await ask(console.app, f"/table/bac-12/round/{name}", headers=cookie(console, role))
        assert said.status == 404
    assert (await ask(console.app, f"/static/{name}")).status == 404


# ---- what goes on when a session does not


async def test_every_stream_ends_with_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("live", "pages.trace", "pages.dealer"):
        monkeypatch.setattr(f"daemon.console.{module}.HEARTBEAT", 0.05)
    with opened(tmp_path, '[console.dealer]\nbac-12 = "/run/feltd/console/nbac-12.sock"') as console:
        console.connect()
        users = console.house.access.users
        paths = streams(console.house)
        assert len(paths) == 4
        for path in paths:
            browser = cookie(console, "supervisor")
            said, following = await follow(console.app, path, headers=browser)
            assert said.status == 200
            users.end(BY)
            async with asyncio.timeout(PATIENCE):
                await following
            assert said.body.endswith(b"event: over\ndata: \n\n"), path
