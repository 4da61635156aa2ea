"""A supervisor's void and correction on the page of a table: theirs alone, said once, and what came of it in place."""

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from console_floor import Console, opened

from daemon.console.auth.users import ROLES, Role
from daemon.console.live import Viewer
from daemon.console.site.actions import read_actions
from daemon.words.words import LANGS
from protocols.contract.results import RoundState
from protocols.contract.topics import Wire, encode_wire, table_topic
from protocols.fdl import frame as fdl
from protocols.fdl.console import Corrected, RoundVoid, SupervisorKey

TABLE = "bac-12"
ROUND = f"{TABLE}:2026-11-20:1:7"
DEALER = f'[console.dealer]\n{TABLE} = "/run/feltd/console/{TABLE}.sock"\nrou-3 = "/run/feltd/console/nrou-3.sock"'
HANDS = {"player": ["9D", "KC"], "banker": ["AS"]}
WAITING = {"reason": {"code": "card_unreadable"}, "hands": HANDS}


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path, DEALER) as one:
        one.begin()
        for table, device, driver in ((TABLE, "shoe-1", "bee_tek_shoe"), ("rou-3", "wheel-1", "cammegh_ss2")):
            one.device(table, device, driver)
        state(one, "suspended", ROUND, WAITING)
        yield one


def state(console: Console, phase: str, round_: str = "", detail: dict[str, Any] | None = None) -> None:
    """The rules say how the round stands."""
    said = RoundState(round_, phase, detail or {}, {}, "rules")
    console.say(table_topic("lisboa", TABLE, "round/state"), msgspec.json.encode(said))


def verdict(console: Console, kind: str, data: dict[str, Any], n: int = 1) -> None:
    source = table_topic("lisboa", TABLE, "round")
    raw = msgspec.Raw(msgspec.json.encode(data))
    one = Wire("1.0", f"edge-7:{TABLE}:{n}/0", source, kind, console.now, n, data=raw, journal="j")
    console.say(f"{source}/event/{kind}", encode_wire(one))


def ended(round_: str = ROUND, **more: Any) -> dict[str, Any]:
    outcome = {"hands": HANDS, "winner": "player"}
    base = {"round": round_, "ruleset": "macau.baccarat", "edition": "2004", "outcome": outcome}
    return {"result": base | {"announcements": dict.fromkeys(LANGS, "Player wins")} | more}


def drawn(console: Console, role: Role = "supervisor", table: str = TABLE) -> str:
    return console.house.live.html(f"decide/{table}", Viewer("en", role))


def form(page: str, key: str) -> dict[str, str]:
    """The first form for that decision, as the page drew it."""
    found = re.search(rf'action="/table/{TABLE}/decide/{key}".*?</form>', page, re.DOTALL)
    assert found is not None, page
    inputs = dict(re.findall(r'name="(\w+)" value="([^"]*)"', found[0]))
    hands = re.search(r"<textarea[^>]*>(.*?)</textarea>", found[0], re.DOTALL)
    return {key: html.unescape(value) for key, value in inputs.items()} | ({"hands": hands[1]} if hands else {})


async def press(console: Console, key: str, role: Role = "supervisor", **more: str) -> httpx.Response:
    given = form(drawn(console), key) | {"reason": "5", "why": "a card fell"} | more
    async with console.browser(role) as browser:
        return await browser.post(f"/table/{TABLE}/decide/{key}", data=given)


def told(console: Console) -> list[tuple[int, bytes]]:
    """What waits for the edge, but for the start of the unit."""
    query = "SELECT kind, data FROM dealer_event WHERE place = ? ORDER BY counter"
    return console.store.db.execute(query, (TABLE,)).fetchall()[1:]


def wire(*happenings: fdl.Happening) -> list[tuple[int, bytes]]:
    return [(one.KIND, one.to_bytes()) for one in happenings]


TURNED, BACK = SupervisorKey(on=True), SupervisorKey(on=False)


async def test_a_void_is_pressed_with_the_supervisors_key_and_its_reason(console: Console) -> None:
    answer = await press(console, "void")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/table/{TABLE}#decide")
    assert told(console) == wire(TURNED, RoundVoid(5, ROUND), BACK)
    done = read_actions(console.journal.path, 1)[0]
    assert (done.user, done.role, done.action, done.target) == ("supervisor@lisboa", "supervisor", "dealer", TABLE)
    assert (done.detail["key"], done.detail["round"]) == ("void", ROUND)
    assert done.detail["values"] == {"reason": "5", "round": ROUND, "why": "a card fell"}
    assert "stored here" in drawn(console)


async def test_a_correction_starts_from_the_hands_that_the_rules_know(console: Console) -> None:
    assert form(drawn(console), "correct")["hands"] == "player 9D KC\nbanker AS"
    await press(console, "correct", hands="player 9D KC\nbanker AS 4H")
    hands = (("player", ("9D", "KC")), ("banker", ("AS", "4H")))
    assert told(console) == wire(TURNED, Corrected(hands, ROUND), BACK)


async def test_a_decision_that_is_sent_twice_is_one(console: Console) -> None:
    given = form(drawn(console), "void") | {"reason": "5", "why": "a card fell"}
    async with console.browser("supervisor") as one, console.browser("supervisor") as other:
        answers = [await page.post(f"/table/{TABLE}/decide/void", data=given) for page in (one, other)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert len(told(console)) == 3
    assert drawn(console).count("Void of round") == 1


@pytest.mark.parametrize("role", [role for role in ROLES if role != "supervisor"])
async def test_nobody_else_decides(console: Console, role: Role) -> None:
    assert (await press(console, "void", role)).status_code == 403
    assert told(console) == []
    assert "<form" not in drawn(console, role)
    assert "A supervisor can void or correct" in drawn(console, role)


async def test_a_form_of_another_site_decides_nothing(console: Console) -> None:
    given = form(drawn(console), "void") | {"reason": "5", "why": "a card fell"}
    async with console.browser("supervisor", origin="http://elsewhere.test") as browser:
        assert (await browser.post(f"/table/{TABLE}/decide/void", data=given)).status_code == 403
    assert told(console) == []


@pytest.mark.parametrize(
    ("key", "wrong", "said"),
    [
        ("void", {"round": f"{TABLE}:2026-11-20:1:1"}, "can no longer be decided here"),
        ("void", {"why": "  "}, "Enter a reason"),
        ("void", {"reason": "99"}, "Choose a reason"),
        ("void", {"id": "x"}, "reload it"),
        ("correct", {"hands": "player 9X"}, "One hand a line"),
    ],
)
async def test_what_is_typed_wrong_is_said_beside_it_and_stays(
    console: Console, key: str, wrong: dict[str, str], said: str
) -> None:
    answer = await press(console, key, "supervisor", **wrong)
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)
    assert told(console) == []
    if "round" not in wrong:
        kept = wrong.get("hands", wrong.get("why", "a card fell")).strip()
        assert kept in answer.text[answer.text.index('id="decide"') :]


async def test_the_page_follows_what_comes_of_a_decision(console: Console) -> None:
    await press(console, "void")
    state(console, "idle")
    verdict(console, "voided", ended(void={"reason": {"code": "declared"}, "bets": "returned"}))
    assert "done." in drawn(console)
    await press(console, "correct", hands="player 9D KC\nbanker AS 4H")
    assert "stored here" in drawn(console)
    verdict(console, "corrected", ended(supersedes=ROUND), 2)
    assert "done. Player wins" in drawn(console)


async def test_a_void_round_is_not_voided_again(console: Console) -> None:
    before = form(drawn(console), "void") | {"reason": "5", "why": "a card fell"}
    state(console, "idle")
    verdict(console, "voided", ended(void={"reason": {"code": "declared"}, "bets": "returned"}))
    assert "/decide/void" not in drawn(console)
    assert "/decide/correct" in drawn(console)
    async with console.browser("supervisor") as browser:
        answer = await browser.post(f"/table/{TABLE}/decide/void", data=before)
    assert answer.status_code == 400
    assert "This round is void already." in answer.text
    assert told(console) == []


async def test_the_clock_of_the_tables_computer_may_be_behind(console: Console) -> None:
    refused = {"code": "round_unknown", "reason": {"code": "declared"}, "law": "art. 10"}
    console.now -= timedelta(minutes=10)
    verdict(console, "irregular", {"irregularity": refused})
    console.now += timedelta(minutes=10)
    await press(console, "void")
    assert "not accepted:" not in drawn(console)
    console.now -= timedelta(minutes=9)
    verdict(console, "irregular", {"irregularity": refused}, 2)
    assert "not accepted:" in drawn(console)


async def test_a_decision_that_the_rules_do_not_take_says_why(console: Console) -> None:
    await press(console, "void")
    refused = {"code": "round_not_reopened", "reason": {"code": "round_not_reopened"}, "law": "art. 10"}
    verdict(console, "irregular", {"irregularity": refused})
    assert "not accepted:" in drawn(console)


async def test_a_table_without_a_dealers_page_says_where_to_decide(tmp_path: Path) -> None:
    with opened(tmp_path) as one:
        one.begin()
        state(one, "suspended", ROUND, WAITING)
        assert "with the supervisor&#39;s key" in drawn(one)
        async with one.browser("supervisor") as browser:
            assert (await browser.post(f"/table/{TABLE}/decide/void", data={})).status_code == 404


async def test_a_wheel_has_no_cards_to_correct(console: Console) -> None:
    async with console.browser("supervisor") as browser:
        assert (await browser.post("/table/rou-3/decide/correct", data={})).status_code == 404


async def test_the_dealers_page_leads_a_supervisor_to_the_decisions(console: Console) -> None:
    link = f'href="/table/{TABLE}#decide"'
    roles: tuple[tuple[Role, bool], ...] = (("supervisor", True), ("dealer", False))
    for role, led in roles:
        async with console.browser(role) as browser:
            assert (link in (await browser.get(f"/dealer/{TABLE}")).text) == led


def test_where_nothing_waits_the_decisions_are_folded(console: Console) -> None:
    assert 'id="decide-fold"' not in drawn(console)
    state(console, "betting", f"{TABLE}:2026-11-20:1:8")
    assert 'id="decide-fold"' in drawn(console)


@pytest.mark.parametrize("key", ["void", "correct"])
async def test_a_decision_leaves_the_dealers_page_as_it_was(console: Console, key: str) -> None:
    """The list of presses on the dealer's page names the decision with its reason, in each language."""
    await press(console, key)
    async with console.browser("dealer") as browser:
        for lang in LANGS:
            page = await browser.get(f"/dealer/{TABLE}", headers={"accept-language": lang})
            assert page.status_code == 200
            assert "a card fell" in page.text


async def test_a_press_that_another_build_stored_is_listed_without_its_values(console: Console) -> None:
    await press(console, "void")
    with console.store.write() as db:
        db.execute("UPDATE dealer_press SET detail = ?", (f"{ROUND}: a card fell",))
    async with console.browser("dealer") as browser:
        page = await browser.get(f"/dealer/{TABLE}")
    assert page.status_code == 200
    assert "a card fell" not in page.text


async def test_the_second_of_two_supervisors_reads_who_decided_first(console: Console) -> None:
    """Also when the round has ended by then."""
    given = form(drawn(console), "void") | {"reason": "5", "why": "a card fell"}
    async with console.browser("supervisor") as one, console.browser("supervisor") as other:
        await one.post(f"/table/{TABLE}/decide/void", data=given)
        for _ in range(2):
            answer = await other.post(f"/table/{TABLE}/decide/void", data=given | {"why": "the bell was late"})
            assert answer.status_code == 400
            assert "supervisor@lisboa has decided this round already: a card fell" in answer.text
            assert "data-refused" in answer.text
            state(console, "idle")
            verdict(console, "voided", ended(void={"reason": {"code": "declared"}, "bets": "returned"}))


@pytest.mark.parametrize(
    ("path", "to"),
    [(f"/table/{TABLE}/decide/void", f"/table/{TABLE}"), (f"/dealer/{TABLE}/key/bell", f"/dealer/{TABLE}")],
)
async def test_the_address_of_a_form_leads_back_to_its_page(console: Console, path: str, to: str) -> None:
    async with console.browser("supervisor") as browser:
        answer = await browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, to)
        assert (await browser.get(to)).status_code == 200
