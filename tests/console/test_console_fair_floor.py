"""Who sees the page of fairness, and who may say that a device was serviced."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from console_floor import T0, Console, opened
from helpers import result_of

from daemon.console.fairness.charts import Chart
from daemon.console.site.actions import read_actions
from protocols.contract.events import BallLanded
from protocols.contract.topics import Envelope, decode_wire, encode_envelope

PATH = "/table/rou-3/fairness"
WHEEL = Chart("rou-3", "wheel", "wheel-1")


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Console]:
    """A console that has heard of three spins; all rest on one landing, which says whose they are."""
    with opened(tmp_path) as one:
        fair = one.house.fairness
        landed = Envelope("edge-7:rou-3:1", "felt/1/lisboa/table/rou-3/device/wheel-1", T0, BallLanded("17"), 1)
        fair.on_event("rou-3", decode_wire(encode_envelope(landed)))
        for number in range(1, 4):
            name = f"rou-3:2026-11-20:{number}"
            said = {"round": name, "ruleset": "macau.roulette", "outcome": {"pocket": "17"}, "evidence": [landed.id]}
            fair.on_result("rou-3", "resolved", result_of(said))
        yield one


async def test_viewer_sees_the_page_without_buttons(floor: Console) -> None:
    async with floor.browser("viewer") as browser:
        answer = await browser.get(PATH)
        assert answer.status_code == 200
        assert "Not enough data since the first result: 3 of at least" in answer.text
        assert 'name="why"' not in answer.text
        assert (await browser.post(PATH, data={"device": "wheel-1", "why": "x"})).status_code == 403
        assert (await browser.get("/table/nowhere/fairness")).status_code == 404
        assert (await browser.get(PATH + "?span=nonsense")).status_code == 200
        css = await browser.get("/static/fair.css")
        assert css.status_code == 200


async def test_a_stranger_sees_nothing(floor: Console) -> None:
    async with floor.browser() as browser:
        answer = await browser.get(PATH)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login")


@pytest.mark.parametrize(("lang", "word"), [("pt", "Equidade e desgaste"), ("zh-Hant", "公平與損耗")])
async def test_it_speaks_the_language_of_the_browser(floor: Console, lang: str, word: str) -> None:
    async with floor.browser("viewer", **{"accept-language": lang}) as browser:
        assert word in (await browser.get(PATH)).text


async def test_a_service_is_noted_before_it_is_done(floor: Console) -> None:
    async with floor.browser("technician") as browser:
        assert 'name="why"' in (await browser.get(PATH)).text
        answer = await browser.post(PATH, data={"device": "wheel-1", "why": "levelled"})
        assert (answer.status_code, answer.headers["location"]) == (303, PATH)
        assert "levelled" in (await browser.get(PATH)).text
        assert floor.house.fairness.counts(WHEEL, "service") == {}
        for wrong in (
            {"device": "wheel-9", "why": "x"},
            {"device": "wheel-1", "why": " "},
            {"device": "", "why": "x"},
            {},
        ):
            assert (await browser.post(PATH, data=wrong)).status_code == 400
        foreign = {"origin": "http://elsewhere.test"}
        assert (await browser.post(PATH, data={"device": "wheel-1", "why": "x"}, headers=foreign)).status_code == 403
    (action,) = read_actions(floor.journal.path, 10)
    assert (action.action, action.target) == ("serviced", "rou-3/wheel-1")


async def test_cards_whose_reader_nobody_named_can_be_new_too(floor: Console) -> None:
    hands = {"player": ["9D", "2C"], "banker": ["KS", "QS"]}
    result = {"round": "bac-12:2026-11-20:1:1", "ruleset": "macau.baccarat", "outcome": {"hands": hands}}
    floor.house.fairness.on_result("bac-12", "resolved", result_of(result))
    async with floor.browser("technician") as browser:
        path = "/table/bac-12/fairness"
        assert "Results that name no device" in (await browser.get(path)).text
        assert (await browser.post(path, data={"device": "", "why": "new cards"})).status_code == 303
    assert floor.house.fairness.counts(Chart("bac-12", "cards"), "service") == {}
    assert [action.target for action in read_actions(floor.journal.path, 10)] == ["bac-12"]
