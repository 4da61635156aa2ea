"""The dealer's page: each key once, answered truthfully, nothing guessed; a supervisor's keys are theirs alone."""

import asyncio
import html
import json
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import pytest
from hypothesis import given, strategies as st

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.console.app import ConsoleProcess, make_app
from daemon.console.auth.access import may
from daemon.console.auth.users import ROLES, By, Hashed, Role, _scrypt
from daemon.console.dealer.keys import KEYS
from daemon.console.dealer.unit import State
from daemon.console.games import GAMES
from daemon.console.pages.dealer import WRONG, BadPress, happenings_of, payments_of
from daemon.console.site.actions import read_actions
from daemon.console.site.store import BadStore, Store
from daemon.journal.store import Journal
from daemon.views import EdgeView
from daemon.words import words
from drivers.fdl_console import ConsoleOptions, FdlConsole
from protocols.contract.events import RoundPaid, SeatActed
from protocols.contract.facts import BlackjackFacts, StudPokerFacts
from protocols.contract.jackpots import PoolBooks, PoolLevel, PoolTerms, PoolWin
from protocols.contract.results import Award, Result, Settlement
from protocols.contract.topics import Envelope, device_topic, encode_envelope
from protocols.fdl import frame as fdl
from protocols.fdl.console import (
    ACTIONS,
    HAPPENINGS,
    BallEntered,
    BallLaunched,
    BallReplaced,
    BetPlaced,
    BetWithdrawn,
    ButtonsCounted,
    CardDamaged,
    CardExposed,
    Corrected,
    DiceEntered,
    DiceThrown,
    HandPassed,
    JackpotPaid,
    JackpotWon,
    LimitsChanged,
    NewShoe,
    RoundVoid,
    SeatAction,
    SeatClosed,
    SeatOpened,
    SeriesStated,
    SupervisorKey,
    TableClosedBy,
    TableCounted,
    TableOpened,
)
from rules import RULESETS

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONFIG = """
[site]
name = "lisboa"
timezone = "Asia/Macau"
[edge]
name = "edge-1"
[console.dealer]
bac-1 = "/run/feltd/console/bac-1.sock"
bj-1 = "/run/feltd/console/bj-1.sock"
none-1 = "/run/feltd/console/none-1.sock"
stud-1 = "/run/feltd/console/stud-1.sock"
craps-1 = "/run/feltd/console/craps-1.sock"
[[table]]
name = "craps-1"
ruleset = "angola.craps"
[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
[[table]]
name = "bj-1"
ruleset = "macau.blackjack"
[[table]]
name = "none-1"
[[table]]
name = "stud-1"
ruleset = "macau.stud-poker"
[[jackpot]]
name = "pool-1"
tables = ["bj-1"]
bet = "jackpot"
seed = 1000
visible = "0.5"
"""
ALL = ["bac-1", "bj-1", "none-1", "stud-1", "craps-1"]
PASSWORD = "twelve chars and more"
ORIGIN = {"origin": "http://pit.test", "sec-fetch-site": "same-origin"}
JSON = ORIGIN | {"accept": "application/json"}


def cheap(password: str) -> Hashed:
    salt = b"salt of a test.."
    return Hashed(2, 8, 1, salt, _scrypt(password, 2, 8, 1, salt))


class Inn:
    """A console with dealer pages."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "console.db")
        self.journal = Journal(folder / "journal.db")
        self.now = NOON
        self.house = ConsoleProcess(parse(CONFIG), self.store, self.journal, lambda: self.now)
        self.dealers = self.house.dealers
        people: tuple[tuple[str, Role, tuple[str, ...]], ...] = (
            ("dea", "dealer", ("bac-1",)), ("sup", "supervisor", ()), ("vie", "viewer", ()), ("all", "dealer", ()),
        )  # fmt: skip
        for name, role, tables in people:
            self.house.access.users.add(By("root", "system"), name, role, tables, cheap(PASSWORD))
        self.app = make_app(self.house)

    def rules_run(self) -> None:
        """As the broker would show it."""
        site = self.house.context.site
        site.set_connected(True)
        site.edges["rules"] = EdgeView("rules")
        site.edges["rules"].online = True

    def browser(self, name: str) -> httpx.AsyncClient:
        session = self.house.access.users.begin(name, "", "")
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://pit.test", cookies={"feltd": session})

    def close(self) -> None:
        self.house.close()
        self.journal.close()
        self.store.close()


@pytest.fixture
def inn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inn]:
    one = Inn(tmp_path)
    yield one
    one.close()


def identity(n: int) -> str:
    return f"{n:032x}"


# ---- from a form to what happened


@pytest.mark.parametrize(
    ("key", "form", "happening"),
    [
        ("void", {"reason": "1"}, RoundVoid(1)),
        ("void", {}, RoundVoid()),
        ("void", {"reason": "1", "round": " bac-12:2026-11-20:1:7 "}, RoundVoid(1, "bac-12:2026-11-20:1:7")),
        ("new_shoe", {"decks": "8"}, NewShoe(8)),
        ("new_shoe", {}, NewShoe()),
        ("dice", {"faces": "2 5,5"}, DiceEntered((2, 5, 5))),
        ("dice", {"faces": "255", "leaning": "1"}, DiceEntered((2, 5, 5), 0, 1)),
        ("throw", {"faces": "3 4"}, DiceThrown((3, 4))),
        ("throw", {"faces": "", "throw_reason": "2"}, DiceThrown((), 2)),
        ("throw", {"face_1": "6", "face_2": "1"}, DiceThrown((6, 1))),
        ("throw", {"throw_reason": "8"}, DiceThrown((), 8)),
        ("buttons", {"count": "119", "fragments": "1"}, ButtonsCounted(119, 1)),
        ("ball_launched", {"ball": "1", "rotor": "2"}, BallLaunched(1, 2)),
        ("ball", {"pocket": "00"}, BallEntered("00")),
        ("ball_replaced", {"pocket": ""}, BallReplaced()),
        ("seat_opened", {"seat": "3"}, SeatOpened(3)),
        ("seat_closed", {"seat": "99"}, SeatClosed(99)),
        ("action", {"seat": "3", "action": "hit"}, SeatAction(3, 2)),
        ("action", {"seat": "3", "hand": "2", "action": "double", "amount": "10000"}, SeatAction(3, 4, 2, 10000)),
        ("bet", {"seat": "3", "bet": " Fan:2", "amount": "1000"}, BetPlaced(3, "fan:2", 1000)),
        ("bet_back", {"seat": "3", "bet": "fan:2"}, BetWithdrawn(3, "fan:2")),
        ("hand_passed", {}, HandPassed(0)),
        ("card_exposed", {"owner": "Dealer", "card": "10h"}, CardExposed("dealer", "TH")),
        ("card_exposed", {"owner": "seat_3_2"}, CardExposed("seat_3_2")),
        ("card_damaged", {"card": "kc"}, CardDamaged("KC")),
        ("jackpot_won", {"level": "1", "seat": "3"}, JackpotWon(1, 3)),
    ],
)
def test_a_key_with_its_values_says_what_happened(key: str, form: dict[str, str], happening: fdl.Happening) -> None:
    assert happenings_of(key, form, supervisor=False) == (happening,)


@pytest.mark.parametrize(
    ("key", "form", "bad"),
    [
        ("dice", {"faces": "2 5 7"}, "faces"),
        ("dice", {"faces": "1" * 17}, "faces"),
        ("throw", {"faces": ""}, "faces"),
        ("throw", {"face_1": "7", "face_2": "1"}, "faces"),
        ("throw", {"face_1": "6"}, "faces"),
        ("buttons", {"count": "0"}, "count"),
        ("buttons", {"count": "many"}, "count"),
        ("buttons", {}, "count"),
        ("ball", {"pocket": "37"}, "pocket"),
        ("ball", {}, "pocket"),
        ("ball_replaced", {"pocket": "99"}, "pocket_or_none"),
        ("ball_launched", {"ball": "1"}, "rotor"),
        ("seat_opened", {"seat": "100"}, "seat"),
        ("seat_opened", {"seat": "３"}, "seat"),
        ("action", {"seat": "3", "action": "fly"}, "seat"),
        ("action", {"seat": "3", "action": "hit", "hand": "10"}, "hand"),
        ("action", {"seat": "3", "action": "hit", "amount": "5000000000"}, "amount"),
        ("card_exposed", {"owner": "me"}, "owner"),
        ("card_damaged", {"card": "1X"}, "card"),
        ("void", {"reason": "9"}, "reason"),
        ("void", {"round": "Bac 12"}, "round"),
        ("new_shoe", {"decks": "13"}, "decks"),
    ],
)
def test_invalid_value_is_refused_with_its_text(key: str, form: dict[str, str], bad: str) -> None:
    with pytest.raises(BadPress) as caught:
        happenings_of(key, form, supervisor=False)
    assert caught.value.key == f"dealer.bad_{bad}"
    assert f"dealer.bad_{bad}" in words.catalog("en")


@pytest.mark.parametrize(
    ("key", "form", "happening"),
    [
        (
            "correct",
            {"hands": "player: 9D 10c\nBANKER as\n\n"},
            Corrected((("player", ("9D", "TC")), ("banker", ("AS",)))),
        ),
        ("correct", {"hands": "player 9D", "round": "t-1:7"}, Corrected((("player", ("9D",)),), "t-1:7")),
        ("jackpot_paid", {"level": "1", "amount": "5"}, JackpotPaid(1, 0, 5)),
        ("void", {"reason": "5"}, RoundVoid(5)),
        ("fold_reversed", {"seat": "2"}, SeatAction(2, next(c for c, word in ACTIONS.items() if word == "raise"))),
    ],
)
def test_a_supervisors_key_is_between_two_turns_and_nobody_elses(
    key: str, form: dict[str, str], happening: fdl.Happening
) -> None:
    assert happenings_of(key, form, supervisor=True) == (SupervisorKey(True), happening, SupervisorKey(False))
    with pytest.raises(BadPress, match=r"dealer\.supervisor_only"):
        happenings_of(key, form, supervisor=False)


@pytest.mark.parametrize("hands", ["", "player 9D\nplayer KC", "me 9D", "player 1X", "player " + "9D " * 300])
def test_a_correction_that_is_none_is_refused(hands: str) -> None:
    with pytest.raises(BadPress, match=r"dealer\.bad_hands"):
        happenings_of("correct", {"hands": hands}, supervisor=True)


@given(
    key=st.sampled_from(sorted(KEYS)),
    form=st.dictionaries(
        st.sampled_from(sorted({field for key in KEYS.values() for field in key.fields} | {"seat", "pocket"})),
        st.one_of(
            st.integers(-1, 300).map(str), st.text(max_size=12), st.sampled_from([*ACTIONS.values(), "9D", "player"])
        ),
    ),
)
def test_typed_keys_are_refused_or_reported_by_the_driver(key: str, form: dict[str, str]) -> None:
    try:
        told = happenings_of(key, form | {"by": "ana"} if "seat" in form else form, supervisor=True)
    except BadPress as error:
        bad = error.key
        assert bad in WRONG
    else:
        bad, driver = "", FdlConsole(ConsoleOptions())
        driver._signs_in = True
        assert all(_reads(driver, one) for one in told)
    assert not bad or bad in words.catalog("en")


def _reads(driver: FdlConsole, happening: fdl.Happening) -> bool:
    again = fdl.read_happening(happening.KIND, happening.to_bytes(), HAPPENINGS)
    return again == happening and bool(driver.translate(happening))


def test_every_key_of_the_console_has_a_key_here() -> None:
    values = {
        "faces": "1", "count": "1", "ball": "1", "rotor": "2", "pocket": "1", "seat": "1", "action": "hit",
        "owner": "dealer", "hands": "player 9D", "bet": "fan:2", "amount": "100", "by": "ana",
    }  # fmt: skip
    said = {type(one) for key in KEYS for one in happenings_of(key, values, supervisor=True)}
    named = {SeriesStated, TableOpened, LimitsChanged, TableClosedBy, TableCounted}
    assert said == set(HAPPENINGS.values()) - named, "those are entered on the pages of the table, with a name"


def test_every_game_has_its_keys_and_its_players_decisions() -> None:
    assert set(GAMES) == set(RULESETS)
    for game in GAMES.values():
        assert set(game.keys) <= set(KEYS)
        assert {"bets_opened", "bell", "paid", "void"} <= set(game.keys) or game.family == "slot"
        assert ("action" in game.keys) == bool(game.actions)
        assert set(game.actions) <= set(ACTIONS.values())
    assert SeatActed(1, "hit").action in GAMES["macau.blackjack"].actions


# ---- words


def test_every_word_of_the_page_is_there_in_all_languages() -> None:
    folder = Path(words.__file__).parent
    catalogs = [tomllib.loads((folder / f"dealer.{lang}.toml").read_text(encoding="utf-8")) for lang in words.LANGS]
    assert catalogs[0].keys() == catalogs[1].keys() == catalogs[2].keys()
    fields = {f"field_{field}" for key in KEYS.values() for field in key.fields}
    wanted = {*KEYS, *fields, *(f"state_{state}" for state in get_args(State))}
    wanted |= {"void_0", "throw_0"}
    wanted |= {f"act_{word}" for word in ACTIONS.values()} | {"turn_1", "turn_2"}
    wanted |= {
        f"bad_{field.removesuffix('_or_none')}" for key in KEYS.values() for field in key.fields if field != "action"
    }
    assert wanted <= {key.removeprefix("dealer.") for key in catalogs[0]}
    template = (folder.parent / "console/templates/dealer_page.html").read_text(encoding="utf-8")
    assert set(re.findall(r"""t\(["'](dealer\.[a-z_]+)["'][,)]""", template)) <= set(catalogs[0])


# ---- the page


async def test_a_dealer_sees_the_keys_of_the_game_and_how_things_stand(inn: Inn) -> None:
    async with inn.browser("dea") as browser:
        page = await browser.get("/dealer/bac-1")
    assert page.status_code == 200
    keys = re.findall(r'action="/dealer/bac-1/key/([a-z_]+)"', page.text)
    assert sorted(keys) == sorted(key for key in GAMES["macau.baccarat"].keys if not KEYS[key].supervisor)
    assert words.say("en", "dealer.edge_away") in html.unescape(page.text)
    assert "unknown" in page.text
    assert "<script>" not in page.text
    assert " on" + "click" not in page.text
    forms = len(keys) - 1  # a bet is placed and taken back in one form
    assert len(set(re.findall(r'name="id" value="([0-9a-f]{32})"', page.text))) == forms


async def test_the_dice_of_craps_are_tapped_and_their_null_throws_are_those_of_the_text(inn: Inn) -> None:
    async with inn.browser("all") as browser:
        page = (await browser.get("/dealer/craps-1")).text
        for die in (1, 2):
            assert re.findall(rf'name="face_{die}" value="(.)"', page) == [*"123456"]
        reasons = re.search(r'<select name="throw_reason">(.*?)</select>', page)
        assert reasons is not None
        assert re.findall(r'value="(\d+)"', reasons[1]) == ["0", "3", "8"]
        form = {"id": identity(1), "face_1": "6", "face_2": "1", "throw_reason": "0"}
        assert (await browser.post("/dealer/craps-1/key/throw", data=form, headers=JSON)).status_code == 200
    [pressed] = inn.dealers.units["craps-1"].last(9)
    assert (pressed.key, pressed.values) == ("throw", {"faces": "61", "throw_reason": "0"})


async def test_a_supervisor_has_more_keys_and_a_table_without_a_game_has_all(inn: Inn) -> None:
    async with inn.browser("sup") as browser:
        page = await browser.get("/dealer/none-1")
    assert set(re.findall(r"/key/([a-z_]+)", page.text)) == set(KEYS)


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("dea", "/dealer/bj-1", 403),
        ("vie", "/dealer/bac-1", 403),
        ("all", "/dealer/bj-1", 200),
        ("sup", "/dealer/gone", 404),
        ("dea", "/dealer/bac-1/stream-not", 404),
    ],
)
async def test_dealer_page_rights(inn: Inn, name: str, path: str, status: int) -> None:
    async with inn.browser(name) as browser:
        assert (await browser.get(path)).status_code == status


async def test_a_key_is_one_key_however_often_it_is_sent(inn: Inn) -> None:
    async with inn.browser("dea") as browser:
        answers = [
            (await browser.post("/dealer/bac-1/key/bell", data={"id": identity(1)}, headers=JSON)).json()
            for _ in range(3)
        ]
        second = await asyncio.gather(
            *(browser.post("/dealer/bac-1/key/paid", data={"id": identity(2)}, headers=JSON) for _ in range(5))
        )
    assert {answer["state"] for answer in answers} == {"here"}
    assert {answer.status_code for answer in second} == {200}
    kinds = [
        row[0] for row in inn.store.db.execute("SELECT kind FROM dealer_event WHERE place = 'bac-1' ORDER BY counter")
    ]
    assert kinds == [0x03, 0x21, 0x23]
    said = read_actions(inn.journal.path, 10, action="dealer")
    assert [(one.user, one.target, one.detail["key"]) for one in said] == [
        ("dea", "bac-1", "paid"), ("dea", "bac-1", "bell"),
    ]  # fmt: skip


def test_a_paid_round_is_still_paid_after_the_console_started_again(inn: Inn) -> None:
    """Its result comes back from the store, its payment too."""
    result, config = Result("bac-1:1", "macau.baccarat"), inn.house.config
    inn.rules_run()
    site = inn.house.context.site
    site.remember_result("bac-1", result)
    source = device_topic("lisboa", "bac-1", "page-1", "")[:-1]
    envelope = Envelope("edge-1:bac-1:1", source, NOON, RoundPaid(), 1)
    site._look(Message(f"{source}/event/round.paid", encode_envelope(envelope)))
    inn.house.past.flush()
    again = ConsoleProcess(config, inn.store, inn.journal, lambda: NOON)
    again.context.site.remember_result("bac-1", result)
    for one in (inn.house, again):
        view = one.context.site.tables["bac-1"]
        view.phase = "resolved"
        assert one.dealers._moment("bac-1").paid
    again.context.site.remember_result("bac-1", Result("bac-1:2", "macau.baccarat"))
    assert not again.dealers._moment("bac-1").paid
    again.close()


async def test_insurance_of_a_known_bet_is_refused_without_its_amount(inn: Inn) -> None:
    view = inn.house.context.site.tables["bj-1"]
    view.phase, view.facts = "dealing", BlackjackFacts(hands={"dealer": ("AD",)}, insurance={"3": 500})
    inn.rules_run()
    async with inn.browser("all") as browser:
        form = {"id": identity(1), "seat": "3", "hand": "1", "action": "insurance", "amount": "0"}
        refused = await browser.post("/dealer/bj-1/key/action", data=form, headers=JSON)
        assert (refused.status_code, refused.json()["wrong"]) == (400, words.say("en", "dealer.insurance_amount"))
        taken = await browser.post("/dealer/bj-1/key/action", data=form | {"amount": "500"}, headers=JSON)
        unknown = form | {"id": identity(2), "seat": "5"}
        assert (await browser.post("/dealer/bj-1/key/action", data=unknown, headers=JSON)).status_code == 200
    assert taken.json()["detail"] == "Seat 3 · insurance · MOP\u00a05.00"


async def test_dealer_enters_missing_hands_of_a_showdown_and_no_others(inn: Inn) -> None:
    view = inn.house.context.site.tables["stud-1"]
    view.phase, view.facts = "showdown", StudPokerFacts(missing=("dealer",))
    inn.rules_run()
    async with inn.browser("all") as browser:
        for n, (hand, status) in enumerate((("seat_1", 400), ("dealer", 200))):
            form = {"id": identity(n), "hands": f"{hand} KD 9C 4H 2S AS"}
            answer = await browser.post("/dealer/stud-1/key/showdown", data=form, headers=JSON)
            assert answer.status_code == status
        view.phase = "resolved"
        form = {"id": identity(9), "hands": "dealer KD 9C 4H 2S AS"}
        late = await browser.post("/dealer/stud-1/key/showdown", data=form, headers=JSON)
    assert late.json()["wrong"] == words.say("en", "dealer.off_no_showdown")
    kinds = [row[0] for row in inn.store.db.execute("SELECT kind FROM dealer_event WHERE place = 'stud-1'")]
    assert kinds == [fdl.Started.KIND, Corrected.KIND]
    assert "KD" not in str(read_actions(inn.journal.path, 10, action="dealer"))


@pytest.mark.parametrize(
    ("typed", "amount"), [("10.00", 1000), ("7", 700), ("0,50", 50), ("1,000", None), ("1.5", None)]
)
async def test_typed_amounts_have_the_decimals_of_the_house(inn: Inn, typed: str, amount: int | None) -> None:
    async with inn.browser("all") as browser:
        form = {"id": identity(1), "seat": "3", "bet": "main", "sum": typed}
        answer = await browser.post("/dealer/bj-1/key/bet", data=form, headers=JSON)
    if amount is None:
        assert answer.json() == {"wrong": words.say("en", "dealer.bad_amount")}
    else:
        assert answer.json()["detail"] == f"Seat 3 · main bet · MOP\u00a0{amount / 100:.2f}"


def shown(inn: Inn, table: str) -> dict[str, Any]:
    """What the page of a table shows beside its keys."""
    return inn.dealers._now(inn.dealers.units[table], "en")


async def test_page_shows_a_hung_edge_and_stopped_processes(inn: Inn) -> None:
    site = inn.house.context.site
    inn.rules_run()
    unit = inn.dealers.units["bj-1"]
    unit._open = True
    for name in ("edge-1", "jackpots"):
        site.edges[name] = EdgeView(name)
        site.edges[name].online = True
    assert shown(inn, "bj-1")["edge"]
    assert shown(inn, "bj-1")["troubles"] == []
    site.edges["edge-1"].silent = site.edges["jackpots"].silent = True
    site.edges["rules"].online = False
    assert not shown(inn, "bj-1")["edge"]
    away = [words.say("en", f"dealer.{one}_away") for one in ("rules", "jackpots")]
    assert shown(inn, "bj-1")["troubles"] == away
    assert shown(inn, "none-1")["troubles"] == []


def test_payments_are_by_seat_and_hand_with_their_sums() -> None:
    laid = (
        Settlement(5, "main", 1000, 0), Settlement(2, "insurance", 500, 1500),
        Settlement(2, "main", 1000, 2000, hand=2), Settlement(2, "main", 1000, 0, hand=1),
    )  # fmt: skip
    found = payments_of(Result("bj-1:1", "macau.blackjack", settlements=laid), "en")
    assert [(one.seat, one.bet, one.stake, one.returned) for one in found] == [
        (2, "insurance", 500, 1500), (2, "main bet", 1000, 0), (2, "main bet · hand 2", 1000, 2000),
        (2, "", 2500, 3500),
        (5, "main bet", 1000, 0), (0, "", 3500, 3500),
    ]  # fmt: skip
    by_article = payments_of(Result("r:1", "macau.roulette", edition="2004", settlements=laid), "en")
    assert [one.bet for one in by_article].count("") == 1, "an article orders them: one sum at the end"


def test_prizes_that_the_dealer_pays_stand_below_the_result_of_their_round(inn: Inn) -> None:
    """A prize of another round is not listed, nor one that two supervisors pay."""
    inn.rules_run()
    award = Award("A", "single_pair", "fixed", "-")
    wins = tuple(
        PoolWin(f"bj-1:{seat}", "bj-1", round_, NOON, award, 5000, ((seat, 5000),), at_table=at_table)
        for seat, round_, at_table in ((3, "bj-1:2", True), (4, "bj-1:1", True), (5, "bj-1:2", False))
    )
    books = PoolBooks("pool-1", NOON, 1, ("bj-1",), PoolTerms(1000, "0.5"), wins)
    for leaf, value in (("level", PoolLevel("pool-1", 1000, "MOP", 2, 1)), ("books", books)):
        inn.house.pools.receive("pool-1", [leaf], msgspec.json.encode(value))
    inn.house.context.site.tables["bj-1"].results.append(Result("bj-1:2", "macau.blackjack"))
    _, _, prizes = shown(inn, "bj-1")["now"].partition(words.say("en", "dealer.prizes"))
    assert re.findall("<li>(.*?)</li>", prizes) == ["Seat 3: single pair <strong>MOP\u00a050.00</strong>"]


async def test_the_log_of_actions_names_the_round_that_a_dealer_voids(inn: Inn) -> None:
    inn.house.context.site.tables["bac-1"].round = "bac-1:2026-11-20:1:7"
    async with inn.browser("dea") as browser:
        for n, named in enumerate(({}, {"round": "bac-1:2026-11-20:1:6"}), 1):
            await browser.post("/dealer/bac-1/key/void", data={"id": identity(n), "reason": "2", **named}, headers=JSON)
        await browser.post("/dealer/bac-1/key/bell", data={"id": identity(3)}, headers=JSON)
    said = read_actions(inn.journal.path, 10, action="dealer")
    assert [one.detail.get("round") for one in said] == [None, "bac-1:2026-11-20:1:6", "bac-1:2026-11-20:1:7"]


async def test_a_press_with_the_id_of_another_is_refused(inn: Inn) -> None:
    fold = {"id": identity(1), "seat": "3", "action": "stand"}
    async with inn.browser("all") as browser:
        for form, status in ((fold, 200), (fold, 200), (fold | {"seat": "4", "action": "hit"}, 400)):
            answer = await browser.post("/dealer/bj-1/key/action", data=form, headers=JSON)
            assert answer.status_code == status
        assert answer.json()["wrong"] == words.say("en", "dealer.bad_id")
        other = await browser.post("/dealer/bj-1/key/bell", data={"id": identity(1)}, headers=ORIGIN)
        assert other.headers["location"] == "/dealer/bj-1?wrong=dealer.bad_id"
    assert [one.values for one in inn.dealers.units["bj-1"].last(5)] == [{"seat": "3", "action": "stand"}]


async def test_no_entry_is_shown_while_the_other_is_made(inn: Inn) -> None:
    """docs/reference/protocols/fdl_console.md: who enters it again must not copy what stands there."""
    async with inn.browser("all") as browser:

        async def enter(n: int, faces: str) -> dict[str, str]:
            form = {"id": identity(n), "faces": faces}
            said: dict[str, str] = (await browser.post("/dealer/none-1/key/dice", data=form, headers=JSON)).json()
            return said

        first, second = await enter(1, "6 6 1"), await enter(2, "6 6 2")
        page = await browser.get("/dealer/none-1", params={"pressed": identity(1)})
        follow = inn.dealers._follow(inn.dealers.units["none-1"], "en", lambda: True)
        stream = (await anext(follow)).decode()
        assert [(one["state"], one["detail"]) for one in (first, second)] == [("again", ""), ("differs", "")]
        for text in (page.text.partition("<main")[2], stream):  # before it stand the icons, in numbers
            assert "6 6" not in text
        assert (await enter(3, "6 6 2"))["detail"] == "6 6 2"


async def test_times_are_those_of_the_site(inn: Inn) -> None:
    """The console writes them, so a tablet in another zone and a browser without a script show the same."""
    async with inn.browser("dea") as browser:
        form = {"id": identity(1)}
        answer = (await browser.post("/dealer/bac-1/key/bell", data=form, headers=JSON)).json()
        assert answer["at"] == "2026-11-20T12:00:00.000000Z"
        page = await browser.get("/dealer/bac-1")
    assert answer["time"] == "20:00:00"
    assert '<time datetime="2026-11-20T12:00:00.000000Z">20:00:00</time>' in page.text


async def test_a_key_of_another_day_shows_its_day(inn: Inn) -> None:
    async with inn.browser("dea") as browser:
        await browser.post("/dealer/bac-1/key/bell", data={"id": identity(1)}, headers=JSON)
    inn.now = datetime(2026, 11, 20, 16, 0, tzinfo=UTC)  # midnight in Macau
    async with inn.browser("dea") as browser:
        page = await browser.get("/dealer/bac-1")
    assert ">20 Nov 20:00:00</time>" in page.text


@pytest.mark.parametrize(
    ("table", "key", "form", "said"),
    [
        (
            "bac-1",
            "bet",
            {"seat": "3", "bet": "player_pair", "amount": "2500"},
            "Seat 3 · player pair · MOP\u00a025.00",
        ),
        ("bac-1", "bet_back", {"seat": "3", "bet": "tie"}, "Seat 3 · tie"),
        ("bj-1", "action", {"seat": "3", "hand": "2", "action": "hit", "amount": "0"}, "Seat 3 · 2 · hit"),
        ("none-1", "bet", {"seat": "3", "bet": "straight:17", "amount": "100"}, "Seat 3 · straight up 17 · 1.00"),
        ("bj-1", "action", {"seat": "3", "action": "stand"}, "Seat 3 · stand"),
        ("none-1", "buttons", {"count": "4", "fragments": "0"}, ""),
        ("none-1", "void", {"reason": "0"}, "no reason given"),
        ("none-1", "ball_launched", {"ball": "1", "rotor": "2"}, "clockwise · anticlockwise"),
    ],
)
async def test_the_values_of_a_key_are_listed_in_words(
    inn: Inn, table: str, key: str, form: dict[str, str], said: str
) -> None:
    async with inn.browser("all") as browser:
        answer = await browser.post(f"/dealer/{table}/key/{key}", data=form | {"id": identity(1)}, headers=JSON)
    assert answer.json()["detail"] == said


@pytest.mark.parametrize(
    ("name", "tables"),
    [("dea", []), ("all", ALL), ("sup", ALL)],
)
async def test_a_dealer_of_several_tables_goes_from_one_to_another(inn: Inn, name: str, tables: list[str]) -> None:
    async with inn.browser(name) as browser:
        page = await browser.get("/dealer/bac-1")
        assert re.findall(r'href="/dealer/([a-z0-9-]+)"', page.text) == tables
        first = await browser.get("/dealer")
    assert (first.status_code, first.headers["location"]) == (303, "/dealer/bac-1")


async def test_a_dealer_of_no_table_with_a_page_goes_where_he_begins(inn: Inn) -> None:
    hashed = cheap(PASSWORD)
    inn.house.access.users.add(By("root", "system"), "far", "dealer", ("gone-1",), hashed)
    async with inn.browser("far") as browser:
        sent = await browser.get("/dealer")
        assert (sent.status_code, sent.headers["location"]) == (303, "/account")
        assert 'href="/dealer"' not in (await browser.get("/account")).text


async def test_without_a_script_the_page_answers_too(inn: Inn) -> None:
    async with inn.browser("dea") as browser:
        sent = await browser.post("/dealer/bac-1/key/void", data={"id": identity(1), "reason": "2"}, headers=ORIGIN)
        assert sent.status_code == 303
        page = await browser.get(sent.headers["location"])
        assert words.say("en", "dealer.state_here") in page.text
        wrong = await browser.post("/dealer/bac-1/key/void", data={"id": identity(2), "reason": "77"}, headers=ORIGIN)
        page = await browser.get(wrong.headers["location"])
        assert words.say("en", "dealer.bad_reason") in page.text


@pytest.mark.parametrize("lang", words.LANGS)
@pytest.mark.parametrize(
    "wrong",
    [
        "dealer.table_closed_by_the_pit_boss_press_void_now",
        "dealer.sure",  # a word of the page, but none that says what was wrong
        "dealer.void_1",
        "dealer.state_edge",
        "dealer.bad_",
        "bad_seat",
        "<b>dealer.bad_seat</b>",
        "",
    ],
)
async def test_a_link_puts_no_words_into_the_page(inn: Inn, wrong: str, lang: words.Lang) -> None:
    async with inn.browser("dea") as browser:
        headers = {"accept-language": lang}
        plain = await browser.get("/dealer/bac-1", headers=headers)
        page = await browser.get("/dealer/bac-1", params={"wrong": wrong}, headers=headers)
    ids = re.compile(r'name="id" value="[0-9a-f]{32}"')
    assert page.status_code == 200
    assert ids.sub("", page.text) == ids.sub("", plain.text)


@pytest.mark.parametrize("lang", words.LANGS)
async def test_every_word_of_what_was_wrong_is_said(inn: Inn, lang: words.Lang) -> None:
    assert {*WRONG} <= {*words.catalog(lang)}
    assert {"dealer.full", "dealer.disk", "dealer.supervisor_only", "dealer.bad_id", "dealer.bad_reason"} <= WRONG
    async with inn.browser("dea") as browser:
        for wrong in sorted(WRONG):
            page = await browser.get("/dealer/bac-1", params={"wrong": wrong}, headers={"accept-language": lang})
            assert f'<p class="alert" role="status">{words.say(lang, wrong)}</p>' in html.unescape(page.text)


@pytest.mark.parametrize(
    ("key", "form", "status"),
    [
        ("bell", {}, 400),
        ("bell", {"id": "short"}, 400),
        ("bell", {"id": "<script>alert(1)</script>"}, 400),
        ("ball", {"id": identity(1), "pocket": "7"}, 404),  # not of this game
        ("fly", {"id": identity(1)}, 404),
        ("correct", {"id": identity(1), "hands": "player 9D"}, 400),
        ("void", {"id": identity(1), "reason": "5"}, 400),
    ],
)
async def test_key_of_another_dealer_presses_nothing(inn: Inn, key: str, form: dict[str, str], status: int) -> None:
    async with inn.browser("dea") as browser:
        answer = await browser.post(f"/dealer/bac-1/key/{key}", data=form, headers=JSON)
    assert answer.status_code == status
    assert inn.dealers.units["bac-1"].last(5) == []


async def test_a_page_of_somebody_else_presses_nothing(inn: Inn) -> None:
    async with inn.browser("dea") as browser:
        headers = {"origin": "http://evil.test", "sec-fetch-site": "cross-site"}
        answer = await browser.post("/dealer/bac-1/key/bell", data={"id": identity(1)}, headers=headers)
    assert answer.status_code == 403
    assert inn.dealers.units["bac-1"].last(5) == []


async def test_a_key_that_cannot_be_kept_says_so(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise BadStore("disk full")

    monkeypatch.setattr(inn.dealers.units["bac-1"], "press", fails)
    async with inn.browser("dea") as browser:
        answer = await browser.post("/dealer/bac-1/key/bell", data={"id": identity(1)}, headers=JSON)
    assert (answer.status_code, answer.json()["wrong"]) == (503, words.say("en", "dealer.disk"))


async def test_a_corrections_cards_are_in_no_log_and_on_no_list(inn: Inn) -> None:
    async with inn.browser("sup") as browser:
        form = {"id": identity(1), "hands": "player 9D KC\nbanker AS"}
        answer = await browser.post("/dealer/bac-1/key/correct", data=form, headers=JSON)
        assert answer.json()["state"] == "here"
        page = await browser.get("/dealer/bac-1")
    assert "9D" not in page.text
    assert "9D" not in str(read_actions(inn.journal.path, 10))


async def test_the_stream_tells_each_change_once(inn: Inn) -> None:
    unit = inn.dealers.units["bac-1"]
    going = [True]
    follow = inn.dealers._follow(unit, "en", lambda: going[0])
    first = json.loads((await anext(follow))[6:])
    assert (first["edge"], first["waiting"], first["last"]) == (False, 0, [])  # its first event is no key
    async with inn.browser("dea") as browser:
        await browser.post("/dealer/bac-1/key/bell", data={"id": identity(1)}, headers=JSON)
    said = json.loads((await anext(follow))[6:])
    assert [(one["id"], one["state"]) for one in said["last"]] == [(identity(1), "here")]
    assert said["waiting"] == 1
    going[0] = False
    unit.on_change()
    assert [one async for one in follow] == [b"event: over\ndata: \n\n"]
    assert not inn.dealers._changed["bac-1"]


def test_the_phase_is_unknown_where_nobody_knows_it(inn: Inn) -> None:
    view = inn.house.site.tables["bac-1"]
    view.phase = "betting"
    assert inn.dealers._phase("bac-1") == "unknown"  # no broker
    assert inn.dealers._phase("none-1") == "unknown"


def test_roles() -> None:
    assert {role for role in ROLES if may(role, "deal")} == {"dealer", "supervisor"}
