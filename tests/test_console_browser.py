"""The console in a real browser, against a pit in which everything is real but the devices."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from floor import Browser, Floor, browser

from daemon.broker import find_mosquitto

CHROMIUM = Path("/usr/bin/chromedriver")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium-driver is not installed"),
]


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Floor]:
    one = Floor(tmp_path_factory.mktemp("floor"))
    one.open()
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
def page(floor: Floor) -> Iterator[Browser]:
    with browser(floor) as one:
        yield one
        assert not one.complaints()


def test_a_jam_turns_the_lamp_and_shows_the_remedy_until_it_is_cleared(floor: Floor, page: Browser) -> None:
    page.come_in("tess")
    page.go("/table/stud-1/device/shuffler-1")
    here = "[data-live='device/stud-1/shuffler-1']"
    page.until(f"{here} .lamp.good")
    floor.breaks("stud-1", "shuffler-1", "jam_outfeed")
    page.until(f"{here} .alert", "outfeed")
    assert page.there(f"{here} .lamp.error") or page.there(f"{here} .lamp.warning")
    assert "What to do" in page.text(f"{here} .alert")
    page.go("/")
    page.until("[data-live='tile/stud-1'] .alert", "shuffler-1")
    assert page.there("[data-live='tile/stud-1'].error, [data-live='tile/stud-1'].warning")
    floor.repairs("stud-1", "shuffler-1")
    page.until("[data-live='tile/stud-1'] .alert", gone=True)
    page.go("/table/stud-1/device/shuffler-1")
    page.until(f"{here} .lamp.good")
    assert "device.recovered" in page.text("[data-live='devicelog/stud-1/shuffler-1']")
