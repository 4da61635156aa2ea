"""How rounds look: the house's own reds."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import Console, opened

from daemon.console import fair_pages, shapes
from protocols.topics import Wire, encode_wire, table_topic

ROU, BAC = "rou-3", "bac-12"
EVEN = tuple(range(2, 37, 2))


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.connect()
        one.edge()
        one.edge("rules")
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
    raw = msgspec.Raw(msgspec.json.encode(data))
    wire = Wire("1.0", f"edge-7:{table}:{number}/0", source, kind, at, number, data=raw, journal="j")
    console.say(f"{source}/event/{kind}", encode_wire(wire))


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


def test_zero_has_no_colour_of_its_own() -> None:
    assert shapes.round_shape({"pocket": "0"}, "en").colour == "green"
    assert shapes.round_shape({"pocket": "2", "colour": "red"}, "en").colour == "red"
    assert shapes.round_shape({"last_pocket": "2"}, "en").colour == ""


def test_the_pictures_of_fairness_have_the_colours_of_the_wheel(console: Console) -> None:
    verdict(console, ROU, 1, {"result": result(ROU, 1, {"pocket": "2", "colour": "red"})})
    console.house.fairness.flush()
    [wheel] = fair_pages.view(console.house.fairness, ROU, "service", frozenset(EVEN)).wheels
    assert {wedge.name: wedge.kind for wedge in wheel.ring.wedges} == {
        str(number): "green" if not number else "red" if number in EVEN else "black" for number in range(37)
    }
