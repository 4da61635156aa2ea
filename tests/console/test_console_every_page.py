"""axe finds nothing on any page of the console, as anybody sees it, in both themes, with all folds open.

The pages are found from the routes. `make test` looks at each page once; at length everybody looks at each in both
themes, in a test of their own.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from every_page import STRANGER, Examples, Pages, routes
from floor import PEOPLE, Browser, Floor, browser, opened
from helpers import at_length
from jackpot_floor import JackpotFloor

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
    pytest.mark.timeout(at_length(900, 7200)),
]
DEALER = "bj-1"
KINDS = at_length(("bj", "stud"), ("rou", "cus", "bac", "bj", "fan", "stud"))
THEMES = ("light", "dark")
POOLS = "/jackpots/"
Seen = dict[str, list[tuple[str, str]]]
"""By route, who sees which of its pages."""
everybody = pytest.mark.parametrize(
    "names", at_length([(*PEOPLE, STRANGER)], [(name,) for name in (*PEOPLE, STRANGER)]), ids="-".join
)
UNFOLD = "for (const one of document.querySelectorAll('main details')) one.open = true; window.scrollTo(0, 0);"
SHOW = "document.querySelectorAll('body > header details').forEach((one) => { one.open = true; });"


def examples_of(floor: Floor) -> Examples:
    """Of each table its first device and its last round; one of the table with a dealer's page unless at length."""
    last = {table: view.results[-1] for table, view in floor.site_view.tables.items() if view.results}
    tables = at_length([DEALER], sorted(last, key=list(floor.pit.tables).index))
    return {
        "table": tables,
        "device": [next(iter(floor.pit.tables[table].devices)) for table in tables],
        "round": [last[table].round for table in tables],
        "ruleset": [last[table].ruleset for table in tables],
    }


def looks(seen: Seen) -> list[tuple[str, str, str]]:
    """Who looks at which page, in which theme."""
    every = [(name, path, theme) for found in seen.values() for name, path in found for theme in THEMES]
    strongest = ["sam", *(name for name in PEOPLE if name != "sam"), STRANGER]
    once = []
    for n, found in enumerate(seen.values()):
        name, path = min(found, key=lambda one: strongest.index(one[0]))
        once.append((name, path, THEMES[n % 2]))
    return at_length(once, every)


def trouble(page: Browser, path: str) -> set[str]:
    """What axe finds with all folds open, and then with those of the head."""
    page.go(path)
    page.until("main > *")
    page.driver.execute_script(UNFOLD)
    found = Axe().run(page.driver)["violations"]
    page.driver.execute_script(SHOW)
    found += Axe().run(page.driver, "body > header")["violations"]
    return {f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"][:3]}


def everything_wrong(page: Browser, seen: Seen, names: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    asked = sorted((one for one in looks(seen) if one[0] in names), key=itemgetter(0, 2))
    assert asked
    for (name, theme), looked in groupby(asked, itemgetter(0, 2)):
        page.come_in(name or "vera", theme=theme)
        if not name:
            page.driver.delete_cookie("feltd")
        for _, path, _ in looked:
            found += [f"{path} as {name or 'a stranger'}, {theme}: {one}" for one in sorted(trouble(page, path))]
    return found


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, Seen]]:
    asked = [route for route in routes() if not route.startswith(POOLS)]
    console = 'styleguide = true\n[ledger]\nreports = "host=/nowhere dbname=feltd"'
    made = Floor(tmp_path_factory.mktemp("floor"), kinds=KINDS, speed=10, dealers=(DEALER,), console=console)
    with opened(made) as floor, browser(floor) as page:
        floor.until(lambda: all(view.results for view in floor.site_view.tables.values()))
        floor.breaks("stud-1", "shuffler-1", "jam_outfeed")
        page.come_in("sam")
        page.go("/")
        page.until("[data-live='tile/stud-1'] .why")
        yield page, Pages(floor, PEOPLE, examples_of(floor)).seen(asked)


@everybody
def test_axe_finds_nothing_on_any_page(looked_at: tuple[Browser, Seen], names: tuple[str, ...]) -> None:
    page, seen = looked_at
    assert everything_wrong(page, seen, names) == []


def test_axe_finds_nothing_on_the_pages_of_pools(tmp_path: Path) -> None:
    asked = [route for route in routes() if route.startswith(POOLS)]
    assert asked
    floor = JackpotFloor(tmp_path)
    with opened(floor), browser(floor) as page:
        floor.opened("bac-1", "bac-1:2026-11-20:1")
        floor.ended("bac-1", "bac-1:2026-11-20:1", [(1, 2000), (2, 5000)])
        page.come_in("sam")
        page.go("/jackpots/dragon")
        page.until("[data-live^='pool']", "70.00")
        seen = Pages(floor, PEOPLE, {"pool": ["dragon", "phoenix"]}).seen(asked)
        found = everything_wrong(page, seen, (*PEOPLE, STRANGER))
    assert found == []
