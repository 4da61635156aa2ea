"""The pit as an instrument, in a real browser: density, order, filter, wall, phone. Its state is filled by hand."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from floor import Browser, browser
from full_pit import FullPit, full_pit, sized

from daemon.words.words import LANGS, Lang, catalog
from protocols.contract.reasons import Reason

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]

WALL, DESK, TABLET, PHONE = (1920, 1080), (1280, 800), (1024, 768), (390, 844)
ORDER = "return [...document.querySelectorAll('[data-tiles] > .tile')].map((one) => one.dataset.live.slice(5))"
# The tiles that are not whole on the screen.
OUTSIDE = """
return [...document.querySelectorAll('.tile')].filter((one) => !one.hidden).filter((one) => {
  const box = one.getBoundingClientRect();
  return box.top < 0 || box.left < 0 || box.bottom > innerHeight || box.right > innerWidth || box.width < 100;
}).length
"""
SHOWN = "return [...document.querySelectorAll('.tile')].filter((one) => one.checkVisibility()).length"
OPEN = "return document.querySelector(\"[data-live='alerts/worst'] details[open] %s\").checkVisibility()"
WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Links and controls of a page that are smaller than a finger. Links inside of a sentence are excepted, as in WCAG.
SMALL = """
return [...document.querySelectorAll('a, button, select, input, textarea, summary')].filter((one) => {
  if (!one.checkVisibility() || one.closest('.sr') || one.type === 'hidden') return false;
  const box = (one.closest('label.line') ?? one.closest('.tile') ?? one).getBoundingClientRect();
  return box.width > 1 && box.height < 43.5 && !one.matches('p:not(.row) a, li a, .skip, input[type=radio]');
}).map((one) => one.outerHTML.slice(0, 120))
"""


# The HTML of tiles that end below the screen of a wall, and of chips that end below the first row of their tile.
BELOW = """
const bottom = (one) => one.getBoundingClientRect().bottom;
const below = (where, what) => [...document.querySelectorAll(`${where} ${what}`)].filter((one) => one.checkVisibility()
  && one.getBoundingClientRect().top < bottom(one.closest(where)) && bottom(one) > bottom(one.closest(where)) + .3);
return [...below('.tiles', '.tile'), ...below('.results', '.chip')].map((one) => one.outerHTML.slice(0, 120));
"""
# For each road of baccarat, by its caption: whether its first coup is visible, and whether its newest one is.
ROADS = """
return Object.fromEntries([...document.querySelectorAll('table.road')].map((one) => {
  const place = one.parentElement.getBoundingClientRect();
  const coups = [...one.querySelectorAll('.coup')].map((coup) => coup.getBoundingClientRect());
  const seen = (box) => box.left >= place.left && box.right <= place.right;
  const [first, ...others] = coups.sort((one, other) => one.left - other.left);
  return [one.caption.textContent, [seen(first), seen(others.at(-1))]];
}));
"""


@pytest.fixture(scope="module")
def pit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullPit]:
    with full_pit(tmp_path_factory.mktemp("pit"), 60) as one:
        yield one


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullPit]:
    with full_pit(tmp_path_factory.mktemp("troubled"), 60) as one:
        one.do(one.trouble)
        yield one


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullPit]:
    with full_pit(tmp_path_factory.mktemp("small"), 24) as one:
        one.do(one.trouble)
        one.do(lambda: one.restart("edge-8"))
        one.do(lambda: one.hang("edge-8"))
        yield one


LONG = 8  # sentences of a language


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullPit]:
    """A tile in each state, and the longest sentences of each language: of faults, and of why a round waits."""

    def longest(lang: Lang, begin: str, end: str) -> list[str]:
        found = {key for key in catalog("en") if key.startswith(begin) and key.endswith(end) and ".do_" not in key}
        return sorted(found, key=lambda key: len(catalog(lang)[key]))[-LONG:]

    def fill(pit: FullPit) -> None:
        quiet, en = iter(pit.names), catalog("en")
        for key in dict.fromkeys(key for lang in LANGS for key in longest(lang, "fault.", ".text")):
            code = ".".join(key.split(".")[-3:-1])
            text = re.sub(r"{\w+}", "17", en[key])
            pit.console.alert(next(quiet), "x", code=code, device="shuffler-1", text=text)
        for key in dict.fromkeys(key for lang in LANGS for key in longest(lang, "reason.", "")):
            fields = re.findall(r"{(\w+)}", en[key])
            why = Reason(key.removeprefix("reason."), dict.fromkeys(fields, "shuffler-1"))
            pit.console.alert(next(quiet), "x", code="round.suspended", why=why)
        pit.console.house.watch.look()

    with full_pit(tmp_path_factory.mktemp("wordy"), 60) as one:
        one.do(one.trouble)
        one.do(lambda: fill(one))
        yield one


@pytest.fixture(scope="module")
def window(pit: FullPit) -> Iterator[Browser]:
    with browser(pit) as one:
        yield one


def look(page: Browser, pit: FullPit, name: str, path: str, size: tuple[int, int], theme: str = "light") -> None:
    """Somebody opens a page on a screen."""
    page.floor = pit
    sized(page, size)
    page.come_in(name, theme=theme)
    page.go(path)
    page.until("main > *")


def run(page: Browser, script: str) -> Any:
    return page.driver.execute_script(script)


# Of each state, the shapes by which its tile is known: icon, styles and widths of the border.
SHAPES = """
const found = {};
for (const one of document.querySelectorAll('.tile')) {
  const style = getComputedStyle(one), sides = ['top', 'right', 'bottom', 'left'];
  const border = sides.map((side) => style[`border-${side}-style`] + style[`border-${side}-width`]).join(' ');
  found[one.dataset.state] ??= [one.querySelector('.why use')?.getAttribute('href') ?? '', border];
}
return found;
"""


def test_the_states_of_tiles_are_told_apart_by_shape(troubled: FullPit, page: Browser) -> None:
    """For people who do not see the colours: an icon for each state, and a border for each but the two of a fault."""
    look(page, troubled, "sam", "/", WALL)
    shapes: dict[str, list[str]] = run(page, SHAPES)
    assert set(shapes) == {"offline", "error", "waits", "warning", "silenced", "good"}
    assert len({icon for icon, _ in shapes.values()}) == len(shapes)
    borders = {state: border for state, (_, border) in shapes.items() if state != "offline"}
    assert len(set(borders.values())) == len(borders)


# What is not seen whole on a tile, or of the sentence of an alert; on a wall, of what is to be done, too. The oldest
# results and what a person wrote at length may give way.
CUT = """
const lines = '.line1 .text' + (document.body.matches('.wall') ? ', .line1 .do' : '');
const wide = (one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1;
const high = (one) => one.clientHeight && one.scrollHeight > one.clientHeight + 1;
const short = [...document.querySelectorAll(lines)].filter((one) => one.checkVisibility() && wide(one));
return [...document.querySelectorAll('.tile, .tile *')].filter((one) => {
  if (!one.checkVisibility() || one.closest('svg, .sr, .results:has(.chip), .typed')) return false;
  const tile = one.closest('.tile').getBoundingClientRect(), box = one.getBoundingClientRect();
  const outside = box.right > tile.right + 1 || box.bottom > tile.bottom + 1;
  return wide(one) || high(one) || outside || getComputedStyle(one).webkitLineClamp !== 'none';
}).concat(short).map((one) => `${one.closest('[data-live]').dataset.live}: ${one.className} ${one.innerText}`)
"""
SCREENS = ((WALL, "/"), (DESK, "/"), (TABLET, "/"), (PHONE, "/"), (WALL, "/wall"), (DESK, "/wall"))


def cut(page: Browser, pit: FullPit, lang: Lang) -> Iterator[tuple[object, ...]]:
    """What is not seen whole on the tiles of a pit on each screen."""
    page.floor = pit
    page.come_in("vera", lang=lang)
    for size, path in SCREENS:
        sized(page, size)
        page.go(path)
        page.until(".tile .phase")
        yield from ((size, path, one) for one in run(page, CUT))


@pytest.mark.parametrize("lang", LANGS)
def test_no_phase_is_cut_off_on_a_tile(pit: FullPit, page: Browser, lang: Lang) -> None:
    phases = sorted(key.removeprefix("phase.") for key in catalog("en") if key.startswith("phase."))
    before = {name: pit.console.house.site.tables[name].phase for name in pit.names}
    try:
        for name, phase in zip(pit.names, phases * len(pit.names), strict=False):
            pit.do(lambda name=name, phase=phase: pit.phase(name, phase))  # type: ignore[misc]
        assert list(cut(page, pit, lang)) == []
    finally:
        for name, phase in before.items():
            pit.do(lambda name=name, phase=phase: pit.phase(name, phase))  # type: ignore[misc]


@pytest.mark.parametrize("lang", LANGS)
def test_no_sentence_is_cut_off_on_a_tile(wordy: FullPit, page: Browser, lang: Lang) -> None:
    assert list(cut(page, wordy, lang)) == []


@pytest.mark.parametrize("size", [WALL, DESK, TABLET, PHONE])
def test_no_border_of_a_tile_or_a_chip_is_cut_off_on_a_wall(
    pit: FullPit, small: FullPit, page: Browser, size: tuple[int, int]
) -> None:
    for one in (pit, small):
        look(page, one, "vera", "/wall", size)
        page.until(".tile .phase")
        assert run(page, BELOW) == []


def test_the_newest_coup_is_in_sight_on_a_long_road(tmp_path: Path) -> None:
    """And on a short one, the first one, too."""
    with full_pit(tmp_path, 6) as one, browser(one) as page:
        for size in (DESK, TABLET, PHONE):
            look(page, one, "vera", "/table/bac-01", size)
            page.until("table.road")
            page.when(lambda: run(page, ROADS) == {"Bead plate": [True, True], "Big road": [True, True]})

        def play(coups: range) -> None:
            for coup in coups:
                one.result("bac-01", "macau.baccarat", {"winner": ("player", "banker")[coup // 2 % 2], "totals": {}})

        one.do(lambda: play(range(90)))
        for size in (DESK, TABLET, PHONE):
            look(page, one, "vera", "/table/bac-01", size)
            page.when(lambda: [seen[1] for seen in run(page, ROADS).values()] == [True, True])
            one.do(lambda: play(range(1)))
            page.when(lambda: [seen[1] for seen in run(page, ROADS).values()] == [True, True])


# ---- density and order


def test_sixty_tables_stand_on_a_wall_screen_without_scrolling(troubled: FullPit, page: Browser) -> None:
    look(page, troubled, "sam", "/", WALL)
    assert run(page, SHOWN) == 60
    assert run(page, OUTSIDE) == 0


def test_twenty_four_tables_stand_on_a_tablet_without_scrolling(small: FullPit, page: Browser) -> None:
    look(page, small, "sam", "/", TABLET)
    page.until("[data-live='edges'] .lamp.unknown", "edge-8")
    assert run(page, SHOWN) == 24
    assert run(page, OUTSIDE) == 0


def test_what_is_wrong_comes_first_and_the_rest_stays_in_its_order(troubled: FullPit, page: Browser) -> None:
    look(page, troubled, "sam", "/", DESK)
    order = run(page, ORDER)
    assert order[:6] == ["bac-10", "stud-10", "cus-10", "rou-10", "bj-10", "fan-10"]
    assert order[6:] == [name for name in troubled.names if name not in order[:6]]


def test_no_tile_moves_under_a_finger(pit: FullPit, page: Browser) -> None:
    look(page, pit, "tess", "/", DESK)
    before = run(page, ORDER)
    touch = "document.querySelector('[data-tiles]').dispatchEvent(new PointerEvent('pointermove', {bubbles: true}))"
    # The time of the page stands still: however slow it is, the touch was just now.
    run(page, f"const now = performance.now(); performance.now = () => now; {touch}")
    pit.do(lambda: pit.fault("fan-07", "lamps-1"))
    page.until("[data-live='tile/fan-07'].error")
    assert run(page, ORDER) == before
    run(page, "delete performance.now")
    page.when(lambda: run(page, ORDER)[0] == "fan-07")
    pit.do(lambda: pit.mend("fan-07", "lamps-1"))
    page.when(lambda: run(page, ORDER) == before)


@pytest.mark.parametrize("size", [(1024, 768), (1280, 800)])
def test_the_whole_menu_of_a_supervisor_is_seen_in_portuguese(
    troubled: FullPit, page: Browser, size: tuple[int, int]
) -> None:
    page.floor = troubled
    sized(page, size)
    page.come_in("sam", lang="pt")
    page.go("/")
    page.until("header .counts .silenced")
    inner = "const nav = document.querySelector('header nav'); return nav.scrollWidth - nav.clientWidth"
    assert run(page, inner) <= 0


def test_a_phone_shows_filters_and_processes_without_scrolling_sideways(small: FullPit, page: Browser) -> None:
    look(page, small, "tess", "/", (390, 844))
    assert run(page, WIDE) <= 0
    ends = (
        "[...document.querySelectorAll('.tools select, .edges .lamp')].map((one) => one.getBoundingClientRect().right)"
    )
    right = f"return Math.max(...{ends})"
    assert run(page, right) <= 390


def test_a_table_shows_its_alert_its_devices_its_day_and_its_result_at_once(pit: FullPit, page: Browser) -> None:
    pit.do(lambda: pit.fault("stud-09", "shuffler-1"))
    look(page, pit, "tess", "/table/stud-09", DESK)
    for part in ("alerts/table", "round", "devices", "day", "result"):
        top = f"return document.querySelector(\"[data-live^='{part}/stud-09']\").getBoundingClientRect().top"
        assert run(page, top) < DESK[1] - 60, part
    page.follow("[data-live='alerts/table/stud-09'] .line1 > form button")
    page.until("[data-live='alerts/table/stud-09'] .taken", "you")
    assert page.driver.current_url.endswith("/table/stud-09")
    pit.do(lambda: pit.mend("stud-09", "shuffler-1"))


# ---- alerts without leaving the pit


def test_a_fault_is_acknowledged_with_one_press_and_the_pit_stays(pit: FullPit, page: Browser) -> None:
    look(page, pit, "tess", "/?area=Salon", DESK)
    pit.do(lambda: pit.fault("fan-03", "lamps-1"))
    try:
        page.until("[data-live='alerts/worst'] .line1", "A lamp that should be dark is lit")
        page.until("[data-live='counts']", "1 fault")
        assert page.driver.title.startswith("(1) ")
        page.follow("[data-live='alerts/worst'] .line1 button")
        page.until("[data-live='alerts/worst'] .taken", "you")
        assert page.driver.current_url == f"{pit.url}/?area=Salon"
        page.until("[data-live='tile/fan-03'].error .phase", "tess")
        page.when(lambda: not page.driver.title.startswith("("))
    finally:
        pit.do(lambda: pit.mend("fan-03", "lamps-1"))


def test_a_fault_is_handled_from_its_line_and_handed_over(pit: FullPit, page: Browser) -> None:
    """The button of the line is the next step; whom it is handed to sees it as theirs, live."""
    line = "[data-live='alerts/worst'] .line1"
    look(page, pit, "tess", "/", DESK)
    pit.do(lambda: pit.fault("rou-04", "lamps-1"))
    try:
        page.until(line, "A lamp that should be dark is lit")
        for button, stage in (("Take it", "taken"), ("On the way", "on the way"), ("At the table", "at the table")):
            page.until(f"{line} > form button", button)
            page.follow(f"{line} > form button")
            page.until(f"{line}.mine .when", f"you · {stage}")
        page.press(f"{line} summary")
        assert Axe().run(page.driver)["violations"] == []
        assert run(page, SMALL) == []
        page.choose(f"{line} select[name=whom]", "sam")
        page.follow(f"{line} form[action$='/handed'] button")
        page.until(f"{line}:not(.mine) .when", "sam · handed over")
        assert not page.there(f"{line} > form")
        look(page, pit, "sam", "/", DESK)
        page.until(f"{line}.mine .when", "you · handed over")
        pit.do(lambda: pit.fault("rou-05", "lamps-1"))  # a hint that the page follows
        page.until("[data-live='counts']", "2 faults")
    finally:
        pit.do(lambda: pit.mend("rou-04", "lamps-1"))
        pit.do(lambda: pit.mend("rou-05", "lamps-1"))


def test_a_new_fault_sounds_where_somebody_switched_it_on(pit: FullPit, page: Browser) -> None:
    """Off by default; the press that switches it on is the one that browsers ask for."""
    look(page, pit, "tess", "/", DESK)
    beeps = "return Number(document.documentElement.dataset.beeps ?? 0)"
    try:
        pit.do(lambda: pit.fault("rou-06", "lamps-1"))
        page.until("[data-live='counts']", "1 fault")
        assert run(page, beeps) == 0
        page.press(".me summary")
        page.click("[data-sound]")
        page.until("[data-sound][aria-pressed=true]", ": on")
        page.when(lambda: run(page, beeps) == 1)  # so that one knows it
        pit.do(lambda: pit.fault("rou-07", "lamps-1", severity="warning"))
        page.until("[data-live='counts']", "1 warning")
        pit.do(lambda: pit.fault("rou-08", "lamps-1"))
        page.when(lambda: run(page, beeps) == 2)
    finally:
        run(page, "localStorage.removeItem('sound')")
        for name in ("rou-06", "rou-07", "rou-08"):
            pit.do(lambda name=name: pit.mend(name, "lamps-1"))  # type: ignore[misc]


def test_a_line_unfolds_with_what_to_do_and_a_note(troubled: FullPit, page: Browser) -> None:
    look(page, troubled, "tess", "/", DESK)
    page.press("[data-live='alerts/worst'] summary")
    page.until("[data-live='alerts/worst'] details[open] .more", "count it by hand")
    assert run(page, OPEN % "input[name=note]")
    assert run(page, OPEN % "a[href$='/device/shuffler-1']")
    troubled.do(lambda: troubled.console.house.site.notify("alerts"))  # an update folds nothing
    page.driver.execute_async_script("setTimeout(arguments[0], 500)")
    assert page.there("[data-live='alerts/worst'] details[open]")
    assert not page.find("#waits").is_displayed()


@pytest.mark.parametrize("path", ["/", "/wall"])
def test_a_silenced_fault_is_not_shown_as_good(troubled: FullPit, page: Browser, path: str) -> None:
    look(page, troubled, "sam", path, WALL)
    colour = "return getComputedStyle(document.querySelector(\"[data-live='tile/%s']\")).backgroundColor"
    assert "Silenced until" in page.text("[data-live='tile/bj-10']")
    assert run(page, colour % "bj-10") not in (run(page, colour % "bj-01"), run(page, colour % "stud-10"))


# ---- filter and search


def test_filter_and_search_stand_in_the_address(troubled: FullPit, page: Browser) -> None:
    look(page, troubled, "sam", "/", DESK)
    page.choose("#area", "Salon")
    page.when(lambda: run(page, SHOWN) == 20)
    page.write("#q", "fan-0")
    page.when(lambda: run(page, SHOWN) == 9)
    assert page.driver.current_url.endswith("/?q=fan-0&area=Salon")
    assert "hidden tables that need attention: 4" in page.text("output")
    page.driver.refresh()
    page.when(lambda: run(page, SHOWN) == 9)
    page.go("/?state=trouble")
    page.when(lambda: run(page, SHOWN) == 4)
    page.go("/?game=macau.roulette&state=good")
    page.when(lambda: run(page, SHOWN) == 9)


# ---- the wall


@pytest.mark.parametrize("size", [WALL, DESK])
def test_the_wall_fits_and_has_no_controls(troubled: FullPit, page: Browser, size: tuple[int, int]) -> None:
    look(page, troubled, "vera", "/wall", size)
    page.until("[data-wallclock]", ":")
    assert not page.there("main form, main button, nav, select")
    page.when(lambda: run(page, OUTSIDE) == 0)
    shown = set(run(page, ORDER.replace(".map(", ".filter((one) => one.checkVisibility()).map(")))
    assert {"stud-10", "bac-10", "cus-10", "rou-10"} <= shown  # they stay when pages take turns
    assert size == DESK or len(shown) == 60
    assert (len(shown) < 60) == bool(page.text("[data-page]"))


# ---- restarts


def test_a_restart_is_shown_beside_the_computers(pit: FullPit, page: Browser) -> None:
    look(page, pit, "vera", "/", DESK)
    assert not page.there("[data-live='edges'] .badge")
    pit.do(lambda: pit.restart("edge-8"))
    page.until("[data-live='edges'] summary .badge", "restarted")


# ---- all pages, for fingers and for everybody

PAGES = {
    "sam": (
        "/",
        "/wall",
        "/alerts",
        "/alerts/report",
        "/users",
        "/tokens",
        "/actions",
        "/support",
        "/account",
        "/styleguide",
    ),
    "tess": (
        "/table/bj-01",
        "/table/bj-01/device/shuffler-1",
        "/table/rou-01/device/wheel-1",
        "/table/rou-01/fairness",
    ),
}


@pytest.mark.parametrize(("size", "theme"), [(PHONE, "light"), (DESK, "dark"), (TABLET, "light")])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_fingers_and_axe_finds_nothing(
    troubled: FullPit, page: Browser, name: str, size: tuple[int, int], theme: str
) -> None:
    for path in PAGES[name]:
        look(page, troubled, name, path, size, theme)
        found = Axe().run(page.driver)["violations"]
        assert [(path, one["id"], node["html"][:160]) for one in found for node in one["nodes"][:3]] == []
        assert run(page, WIDE) <= 0, path
        assert run(page, SMALL) == [], path


def test_a_user_can_be_changed_on_a_phone(pit: FullPit, page: Browser) -> None:
    look(page, pit, "sam", "/users", PHONE)
    box = "const box = document.querySelector('main td details').getBoundingClientRect(); return [box.left, box.right]"
    left, right = run(page, box)
    assert 0 <= left < right <= PHONE[0]


def test_the_head_of_a_phone_is_slim(pit: FullPit, page: Browser) -> None:
    look(page, pit, "sam", "/", PHONE)
    stays = "scrollTo(0, 500); return document.querySelector('body > header').getBoundingClientRect().bottom"
    assert 0 < run(page, stays) <= PHONE[1] * 0.08


def test_dangerous_commands_look_dangerous_and_say_their_direction(pit: FullPit, page: Browser) -> None:
    look(page, pit, "tess", "/table/rou-01/device/wheel-1", DESK)
    buttons = """return [...document.querySelectorAll("form[action$='/command/%s'] button")]
    .map((one) => [one.textContent.trim(), one.className, one.dataset.sure])"""
    assert [(text, kind) for text, kind, _ in run(page, buttons % "power")] == [
        ("Switch on", ""),
        ("Switch off", "grave"),
    ]
    assert [sure for _, _, sure in run(page, buttons % "power")] == [
        "Switch on: rou-01, wheel-1. Do it now?",
        "Switch off: rou-01, wheel-1. Do it now?",
    ]
    assert [(text, kind) for text, kind, _ in run(page, buttons % "restart-spin")] == [("Void and spin again", "grave")]
    assert [(text, kind) for text, kind, _ in run(page, buttons % "self-test")] == [("Self-test", "")]
