"""How rounds look: the house's own reds; and that nothing said of a round breaks a page."""

import asyncio
import copy
import json
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from console_floor import Console, opened
from hypothesis import HealthCheck, given, settings, strategies as st

from daemon.console import shapes
from daemon.console.live import Viewer
from daemon.console.pages import fairness as fair_pages
from daemon.words.words import LANGS
from protocols.contract.facts import RouletteFacts, RoundFacts, StudPokerFacts
from protocols.contract.reasons import Reason
from protocols.contract.results import Result
from protocols.contract.topics import Wire, encode_wire, table_topic

ROU, BAC = "rou-3", "bac-12"
EVEN = list(range(2, 37, 2))


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device(BAC, "shoe-1", "bee_tek_shoe")
        one.device(ROU, "wheel-1", "cammegh_ss2")
        yield one


def result(table: str, number: int, outcome: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A result as the rules publish it."""
    said = {
        "round": f"{table}:2026-11-20:{number}",
        "ruleset": {ROU: "macau.roulette", BAC: "macau.baccarat"}[table],
        "edition": "2004",
        "options": {"red": EVEN},
        "demo": False,
        "outcome": outcome,
        "winners": [],
        "pushes": [],
        "void": None,
        "jackpots": [],
        "settlements": [],
        "irregularities": [],
        "announcements": {"en": "so it is", "pt": "assim é", "zh-Hant": "如此"},
        "evidence": [f"edge-7:{table}:{number}"],
        "law": ["art. 4"],
    }
    return said | more


def verdict(console: Console, table: str, number: int, data: Any, kind: str = "resolved") -> None:
    """The rules say something of a round."""
    at = console.now + timedelta(seconds=number)
    source = table_topic("lisboa", table, "round")
    raw = msgspec.Raw(json.dumps(data).encode())
    wire = Wire("1.0", f"edge-7:{table}:{number}/0", source, kind, at, number, data=raw, journal="j")
    console.say(f"{source}/event/{kind}", encode_wire(wire))


async def test_a_result_shows_the_bets_that_stand_and_those_that_move(console: Console) -> None:
    left = {"stands": ["pass", "place:8"], "moves": {"come": "come:6"}}
    verdict(console, ROU, 1, {"result": result(ROU, 1, {"pocket": "2"}, **left)})
    verdict(console, ROU, 2, {"result": result(ROU, 2, {"pocket": "2"})})
    async with console.browser("viewer") as browser:
        pages = [(await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:{number}")).text for number in (1, 2)]
    assert "<code>come</code> → come:6" in pages[0]
    assert '<li class="badge"><code>place:8</code></li>' in pages[0]
    assert "2 bets stand" in pages[0]
    assert "bets stand" not in pages[1]


async def test_a_result_lists_the_payments_in_the_order_of_the_payer(console: Console) -> None:
    laid = [("straight:2", 360), ("red", 20), ("black", 0), ("column:2", 30)]
    settled = [{"seat": 1, "bet": bet, "stake": 10, "returned": returned} for bet, returned in laid]
    verdict(console, ROU, 1, {"result": result(ROU, 1, {"pocket": "2"}, settlements=settled)})
    async with console.browser("viewer") as browser:
        page = (await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:1")).text
    assert "4 payments in the payer&#39;s order" in page
    places = [page.index(f"Seat 1: <code>{bet}<") for bet in ("black", "column:2", "red", "straight:2")]
    assert places == sorted(places)
    assert '<a class="badge" href="/law/macau.roulette#art-5-1">Despacho 60/2004 art. 5(1)</a>' in page


async def test_a_result_lists_what_is_called_out_at_the_payments(console: Console) -> None:
    settled = [{"seat": 2, "bet": "straight:2", "stake": 10, "returned": 360}]
    told = result(ROU, 1, {"pocket": "2"}, settlements=settled, ruleset="angola.french-roulette")
    verdict(console, ROU, 1, {"result": told})
    async with console.browser("viewer") as browser:
        page = (await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:1")).text
    assert "Called at the payment" in page
    assert '<ol lang="pt"><li>pleno de 10, lugar 2, total de 350</li></ol>' in page


async def test_a_wheel_whose_even_numbers_are_red_is_so_on_every_page(console: Console) -> None:
    for number, (pocket, colour) in enumerate([("2", "red"), ("3", "black"), ("0", "")], 1):
        outcome = {"pocket": pocket} | ({"colour": colour} if colour else {})
        verdict(console, ROU, number, {"result": result(ROU, number, outcome)})
    async with console.browser("viewer") as browser:
        pit = (await browser.get("/")).text
        table = (await browser.get(f"/table/{ROU}")).text
        rounds = [(await browser.get(f"/table/{ROU}/round/{ROU}:2026-11-20:{number}")).text for number in (1, 2, 3)]
        fairness = (await browser.get(f"/table/{ROU}/fairness")).text
    for page in (pit, table):
        for pocket, colour in (("2", "red"), ("3", "black"), ("0", "green")):
            assert f'<span class="chip {colour}" title="so it is">{pocket}</span>' in page
    for page, colour in zip(rounds, ("red", "black", "green"), strict=True):
        assert f'<span class="pocket {colour}">' in page
        assert f"<span>{'zero' if colour == 'green' else colour}</span>" in page
    assert '<span class="chip black">3<span class="sr"> black' in table
    assert '<span class="chip red">2<span class="sr"> red' in table
    assert '<th scope="row">32 <span class="soft">red</span>' in fairness
    assert '<th scope="row">19 <span class="soft">black</span>' in fairness


@pytest.mark.parametrize(("chance", "letters"), [("aces", "AA么"), ("small", "SP小"), ("big", "BG大"), ("", "???")])
def test_the_chip_of_french_bank_is_the_letter_of_its_chance(chance: str, letters: str) -> None:
    decided = Result("r", "angola.french-bank", outcome={"chance": chance, "faces": (1, 2, 3), "total": 6})
    assert [shapes.chip(decided, lang).text for lang in LANGS] == [*letters]


def test_zero_has_no_colour_of_its_own() -> None:
    assert shapes.round_shape(RouletteFacts(pocket="0"), "en").colour == "green"
    assert shapes.round_shape(RouletteFacts(pocket="2", colour="red"), "en").colour == "red"
    assert shapes.round_shape(RoundFacts(reason=Reason("x")), "en").colour == ""


def test_hands_that_are_missing_are_named_in_words() -> None:
    facts = shapes.round_shape(StudPokerFacts(missing=("dealer", "seat_3")), "pt").facts
    assert facts == (("missing", "Croupier, Lugar 3"),)


def test_the_pictures_of_fairness_have_the_colours_of_the_wheel(console: Console) -> None:
    verdict(console, ROU, 1, {"result": result(ROU, 1, {"pocket": "2", "colour": "red"})})
    console.house.fairness.flush()
    [wheel] = fair_pages.view(console.house.fairness, ROU, "service", frozenset(EVEN)).wheels
    assert {wedge.name: wedge.kind for wedge in wheel.ring.wedges} == {
        str(number): "green" if not number else "red" if number in EVEN else "black" for number in range(37)
    }


# ---- what cannot be read


OUTCOMES: dict[str, dict[str, Any]] = {
    ROU: {"pocket": "2", "colour": "red", "dozen": 1},
    BAC: {
        "hands": {"player": ["TD", "5S"], "banker": ["AH", "?"]},
        "totals": {"player": 5, "banker": 1},
        "winner": "player",
    },
}
DETAILS: dict[str, dict[str, Any]] = {
    ROU: {"last_pocket": "2", "reason": {"code": "no_launch", "values": {"pocket": "2"}}},
    BAC: {
        "hands": {"player": ["TD"], "banker": [], "1.2": ["9H", "?"]},
        "totals": {"player": 0},
        "say": {"en": "card for the banker"},
        "open": ["2C"],
        "seats": {"1.2": "wins"},
        "combinations": {"dealer": "flush"},
        "faces": [1, 6],
        "figures": ["crab"],
        "number": 4,
        "count": 60,
        "total": 7,
        "antes": [1, 2],
        "missing": ["shoe-1"],
    },
}


def state(console: Console, table: str, data: Any) -> None:
    console.say(table_topic("lisboa", table, "round/state"), msgspec.json.encode(data))


def shown(console: Console, table: str, *rounds: str) -> dict[str, str]:
    """Every page that shows something of a table's rounds, for who may see all, and its fragments."""
    paths = ["/", f"/table/{table}", f"/table/{table}/fairness"]
    paths += [f"/table/{table}/round/{name}" for name in rounds]

    async def ask() -> dict[str, str]:
        async with console.browser("supervisor") as browser:
            answers = {path: await browser.get(path) for path in paths}
        assert {path: one.status_code for path, one in answers.items()} == dict.fromkeys(paths, 200)
        return {path: one.text for path, one in answers.items()}

    pages = asyncio.run(ask())
    viewer = Viewer("zh-Hant", "inspector")
    for kind in ("tile", "round", "result", "history", "board"):
        pages[kind] = console.house.live.html(f"{kind}/{table}", viewer)
    return pages


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
) | st.sampled_from([10**400, "9" * 5000, "²", "seat_²", "", [[[[]]]], {"": {"": {}}}])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a value something else could stand."""
    inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if type(value) is list else []
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = junk
    return changed


@st.composite
def spoiled(draw: st.DrawFn, whole: Any) -> Any:
    """Something true with up to three places in which something else stands, of the right kind or not."""
    for _ in range(draw(st.integers(1, 3))):
        whole = put(whole, draw(st.sampled_from(places(whole))), draw(JUNK))
    return whole


@st.composite
def said(draw: st.DrawFn) -> tuple[str, Any, list[Any]]:
    """A table, its state, and the data of the ends of some rounds."""
    table = draw(st.sampled_from([ROU, BAC]))
    standing = {"phase": "betting", "round": f"{table}:2026-11-20:9", "detail": DETAILS[table]}
    options = {"red": EVEN, "decks": 8, "device": "shoe"}
    ends = [
        {"result": draw(spoiled(result(table, number, OUTCOMES[table], options=options)))}
        if draw(st.booleans())
        else draw(spoiled({"result": result(table, number, OUTCOMES[table], options=options)}))
        for number in range(1, draw(st.integers(1, 3)) + 1)
    ]
    return table, draw(spoiled(standing)), ends


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(said())
def test_nothing_that_is_said_of_a_round_breaks_a_page(console: Console, given_: tuple[str, Any, list[Any]]) -> None:
    table, standing, ends = given_
    picture = console.house.site
    console.say(table_topic("lisboa", table, "round/state"), json.dumps(standing).encode())
    for end in ends:
        stream = picture._rounds.get(("j", table))
        verdict(console, table, stream.expected if stream else 1, end)
    shown(console, table)


def test_unreadable_round_is_refused_once_and_the_table_shown_without_it(console: Console) -> None:
    good = result(ROU, 1, OUTCOMES[ROU])
    verdict(console, ROU, 1, {"result": good})
    state(console, ROU, {"phase": "betting", "round": "rou-3:2026-11-20:2", "detail": {}})
    assert "bets open" in shown(console, ROU)["/"]
    with structlog.testing.capture_logs() as logged:
        for number in (2, 3):
            verdict(console, ROU, number, {"result": result(ROU, number, {"pocket": ["17"]})})
            state(
                console, ROU, {"phase": "running", "round": "rou-3:2026-11-20:3", "detail": {"say": "rien ne va plus"}}
            )
    assert [(one["topic"], one["reason"]) for one in logged if one["event"] == "console.unreadable"] == [
        (
            "felt/1/lisboa/table/rou-3/round/event/resolved",
            'pocket: must be a text in quotes, like "this", and is a list',
        ),
        ("felt/1/lisboa/table/rou-3/round/state", "say: must be a table of names and values, and is a text"),
    ]
    assert console.house.site.refused == 4
    pages = shown(console, ROU, good["round"])
    assert '<span class="chip red" title="so it is">2</span>' in pages["/"]
    # What stood before is no longer so.
    assert "bets open" not in pages["/"]
    assert [one.round for one in console.house.site.tables[ROU].results] == [good["round"]]
    verdict(console, ROU, 4, {"result": result(ROU, 4, {"pocket": "0"})})
    state(console, ROU, {"phase": "running", "round": "rou-3:2026-11-20:5", "detail": {}})
    pages = shown(console, ROU)
    assert '<span class="chip green" title="so it is">0</span>' in pages["/"]
    assert "ball running" in pages["/"]


def test_unreadable_stored_round_is_not_shown(tmp_path: Path) -> None:
    with opened(tmp_path) as console:
        for number, pocket in enumerate(("2", "4"), 1):
            verdict(console, ROU, number, {"result": result(ROU, number, {"pocket": pocket, "colour": "red"})})
        console.house.rounds.flush()
        wrong = msgspec.json.encode({"result": result(ROU, 2, {"pocket": 17})})
        with console.store.write() as db:
            db.execute("UPDATE round_end SET data = ? WHERE seq = 2", (zlib.compress(wrong),))
    with opened(tmp_path) as console:
        console.connect()
        assert [one.outcome["pocket"] for one in console.house.site.tables[ROU].results] == ["2"]
        shown(console, ROU)


def test_a_result_nested_deeper_than_a_page_can_write_it_is_refused(console: Console) -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    verdict(console, ROU, 1, {"result": result(ROU, 1, OUTCOMES[ROU], options={"red": deep})})
    assert not console.house.site.tables[ROU].results
    shown(console, ROU)


@pytest.mark.parametrize("at", ["2026-11-20T20:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_an_event_of_no_instant_is_refused(console: Console, at: str) -> None:
    said = {"specversion": "1.0", "id": "edge-7:rou-3:1", "type": "ball.landed", "time": at, "seq": 1}
    source = "felt/1/lisboa/table/rou-3/device/wheel-1"
    console.say(f"{source}/event/ball.landed", json.dumps(said | {"source": source}).encode())
    source = table_topic("lisboa", ROU, "round")
    end = said | {"source": source, "type": "resolved", "data": {"result": result(ROU, 1, OUTCOMES[ROU])}}
    console.say(f"{source}/event/resolved", json.dumps(end).encode())
    assert console.house.site.refused == 2
    assert "no event received yet" in shown(console, ROU)[f"/table/{ROU}"]


FAR = "0001-01-01T00:00:00+14:00"
FAULT = {"code": "jam", "text": "a card is stuck", "severity": "error", "remedy": "open it"}
WHEEL = f"table/{ROU}/device/wheel-1"


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        (f"{WHEEL}/state", {"faults": [FAULT | {"since": FAR}]}),
        (f"{WHEEL}/state", {"last_event": {"type": "ball.landed", "time": FAR, "seq": 1}}),
        (f"table/{ROU}/alert/x", FAULT | {"since": FAR}),
        ("edge/edge-7/health", {"time": FAR}),
        ("edge/edge-7/health", {"time": "2026-11-20T20:00:00Z", "disk_free": 10**400}),
    ],
)
async def test_implausible_documents_of_devices_and_edges_are_refused(
    console: Console, topic: str, said: dict[str, Any]
) -> None:
    console.device(ROU, "wheel-1", "cammegh_ss2")
    console.say(f"felt/1/lisboa/{topic}", json.dumps(said).encode())
    assert console.house.site.refused == 1
    async with console.browser("supervisor") as browser:
        for path in ("/", f"/table/{ROU}", f"/{WHEEL}", "/alerts", "/metrics"):
            assert (await browser.get(path)).status_code == 200
