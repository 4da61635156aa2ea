"""A technician ends the silence that they began, from the alert, the device and the page of alerts; nobody else's."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from console_floor import Console, opened

TABLE = "bac-12"
DEVICE = f"/table/{TABLE}/device/shoe-1"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device(TABLE, "shoe-1", "bee_tek_shoe")
        one.alert(TABLE, "shoe-1", code="shoe.jam", device="shoe-1")
        one.wait(1)
        yield one


def ends(page: str) -> list[str]:
    """Where the buttons lead that end a silence."""
    return re.findall(r'action="(/alerts/silence/\d+/end)"', page)


async def silenced(console: Console, browser: httpx.AsyncClient) -> None:
    """The fault is taken and silenced by that person."""
    incidents = console.house.incidents
    [one] = [shown.incident for shown in incidents.open(console.now)]
    await browser.post(f"/alerts/{one.n}/acknowledge", data={"seen": incidents.seen(one), "note": ""})
    answer = await browser.post(f"/alerts/{one.n}/silence", data={"why": "a new roller", "end": "15"})
    assert answer.status_code == 303
    assert len(incidents.silences(console.now)) == 1


@pytest.mark.parametrize("page", ["/alerts", "/", DEVICE])
async def test_a_technician_ends_their_own_silence_where_they_see_it(console: Console, page: str) -> None:
    async with console.browser("technician") as browser:
        await silenced(console, browser)
        action = ends((await browser.get(page)).text)[0]
        answer = await browser.post(action, data={"to": page})
        assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert console.house.incidents.silences(console.now) == []


async def test_a_silenced_alert_says_who_silenced_it_and_why(console: Console) -> None:
    async with console.browser("technician") as browser:
        await silenced(console, browser)
        page = (await browser.get("/")).text
        line = page[page.index('class="more"') :]
        assert ": a new roller" in line
        assert "End the silence" in line


@pytest.mark.parametrize("page", ["/alerts", "/", DEVICE])
async def test_a_technician_does_not_end_a_silence_of_another(console: Console, page: str) -> None:
    async with console.browser("supervisor") as other, console.browser("technician") as browser:
        await silenced(console, other)
        assert ends((await browser.get(page)).text) == []
        assert ends((await other.get(page)).text) != []
        assert (await browser.post("/alerts/silence/1/end", data={})).status_code == 403
    assert len(console.house.incidents.silences(console.now)) == 1
