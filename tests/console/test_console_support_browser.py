"""The trace of a wire and the support bundle in a real browser: what is under way shows it, and can be ended."""

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from floor import Browser, browser
from full_pit import FullPit, full_pit, sized
from helpers import PATIENCE

from daemon.config.model import Config
from daemon.console.pages import bundle, support
from protocols.contract.documents import DeviceState, TraceLine
from protocols.contract.topics import device_topic

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]
TRACE = "/table/rou-01/device/wheel-1/trace"


@pytest.fixture(scope="module")
def pit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullPit]:
    with full_pit(tmp_path_factory.mktemp("pit"), 12) as one:
        yield one


@pytest.fixture(scope="module")
def window(pit: FullPit) -> Iterator[Browser]:
    with browser(pit) as one:
        yield one


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """It complains of nothing by itself."""
    window.complaints()
    sized(window, (1280, 800))
    window.come_in("tess")
    yield window
    assert not window.complaints()


def traced(pit: FullPit, until: datetime | None) -> None:
    """The edge says until when it traces the wheel."""
    state = msgspec.json.encode(DeviceState(online=True, traced_until=until))
    pit.do(lambda: pit.console.say(device_topic("lisboa", "rou-01", "wheel-1", "state"), state))


# ---- trace


def test_a_running_trace_says_so_and_how_long_it_lasts(pit: FullPit, page: Browser) -> None:
    traced(pit, None)
    page.go(TRACE)
    page.until("[data-live^='tracing/']", "No trace runs.")
    assert not page.there("button[value='0']")
    traced(pit, datetime.now(UTC) + timedelta(seconds=599))
    page.when(lambda: re.search(r"The trace runs: [1-9]:\d\d", page.text("[data-live^='tracing/']")) is not None)
    assert page.there("button[value='0']")
    before = page.text("[data-left]")
    page.until("[data-left]", before, gone=True)
    traced(pit, None)
    page.until("[data-live^='tracing/']", "No trace runs.")


def test_bytes_stand_as_digits_and_as_letters_under_a_head_that_stays(pit: FullPit, page: Browser) -> None:
    page.go(TRACE)
    page.until("[data-lines]")
    lines = [TraceLine(datetime.now(UTC), "in", b"N;17\r\n\x00".hex(), n, 0) for n in range(1, 120)]
    pit.do(
        lambda: pit.console.say(
            device_topic("lisboa", "rou-01", "wheel-1", "trace"), b"\n".join(map(msgspec.json.encode, lines))
        )
    )
    page.until("[data-lines] tr:nth-child(119)")
    assert page.text("[data-lines] tr:last-child td:nth-child(3)") == "4e 3b 31 37 0d 0a 00"
    assert page.text("[data-lines] tr:last-child td:nth-child(4)") == "N;17···"
    head = """const box = document.querySelector('.trace'), head = box.querySelector('thead th');
    return [box.scrollTop > 100, Math.abs(head.getBoundingClientRect().top - box.getBoundingClientRect().top) < 3]"""
    page.when(lambda: page.driver.execute_script(head) == [True, True])
    labels = "return [...document.querySelectorAll('[data-lines] tr:last-child td')].map((one) => one.dataset.label)"
    assert page.driver.execute_script(labels) == ["Time", "Direction", "Bytes", "ASCII", "In words"]


def test_times_of_a_trace_are_the_sites_on_a_screen_elsewhere(pit: FullPit, page: Browser) -> None:
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        page.go(TRACE)
        page.until("[data-lines]")
        line = TraceLine(datetime.now(UTC), "in", b"site".hex(), 999, 0)
        topic = device_topic("lisboa", "rou-01", "wheel-1", "trace")
        pit.do(lambda: pit.console.say(topic, msgspec.json.encode(line)))
        page.until("[data-lines] tr:last-child td:nth-child(4)", "site")
        zone = pit.console.house.context.zone
        assert page.text("[data-lines] tr:last-child td")[:8] == f"{line.at.astimezone(zone):%H:%M:%S}"
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_the_figures_of_a_wheel_are_a_list(page: Browser) -> None:
    page.go("/table/rou-01/device/wheel-1")
    options = "return [...document.querySelectorAll(\"form[action$='/command/ask'] option\")].map((one) => one.value)"
    found = page.driver.execute_script(options)
    assert {"mode", "overview", "firmware", "winning_numbers"} <= set(found)
    names = options.replace("ask'", "set-parameter'")
    assert "mode" in page.driver.execute_script(names)


# ---- bundle


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """So many tellings of progress pass as are released."""
    gate, true = threading.Semaphore(0), bundle.make

    def made(path: Path, config: Config, given: bundle.Given, progress: bundle.Progress) -> None:
        def at(step: str, part: float) -> None:
            progress(step, part)
            assert gate.acquire(timeout=2 * PATIENCE)
            progress(step, part)

        true(path, config, given, at)

    monkeypatch.setattr(support, "make", made)
    yield gate
    gate.release(100_000)


def test_a_bundle_is_seen_being_made_and_is_there_at_the_end(page: Browser, steps: threading.Semaphore) -> None:
    page.go("/support")
    page.press("form[action='/bundle'] button")
    page.until("[aria-current='step']", "Configuration and versions")
    assert page.text(".progress .total") == "0 %"
    steps.release()
    page.until("[aria-current='step']", "States and incidents")
    assert page.driver.execute_script("return document.querySelector('progress').value") != 0
    steps.release(100_000)
    page.until("a[href='/bundle']", "Download")


def test_a_bundle_is_cancelled(page: Browser, steps: threading.Semaphore) -> None:
    page.go("/support")
    page.press("form[action='/bundle'] button")
    page.until("[aria-current='step']")
    page.press("form[action='/bundle/cancel'] button")
    steps.release()
    page.until("[data-live='bundle']", "Cancelled. No file was left.")
