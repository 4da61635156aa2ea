"""On a phone no page or table scrolls sideways, none is cut off, each begins at its top, the menu shows all its links.

Every page is looked at, found from the routes, in all languages. Portuguese has the longest words: it is looked at in
all sizes; at length the others are, too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from contact_sheet import filled, places
from floor import Browser, browser
from full_pit import sized
from helpers import at_length

from daemon.words.words import LANGS
from simulators.lab.site.postgres import no_postgres

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
    pytest.mark.timeout(1800),
]
DESKS = (1024, 1130, 1280)
CUT_MENU = "const nav = document.querySelector('body > header nav'); return nav && nav.scrollWidth > nav.clientWidth"
PHONES = ((390, 844), (320, 640))
UNFOLD = "for (const one of document.querySelectorAll('main details')) one.open = true"
# What reaches beyond the right edge, if the page can be scrolled there; what scrolls by itself may be wider.
BEYOND = """
const root = document.documentElement, wide = root.clientWidth;
if (root.scrollWidth <= wide) return [];
const scrolls = (one) => one && one !== root
  && (one !== document.body && getComputedStyle(one).overflowX !== 'visible' || scrolls(one.parentElement));
const found = [...document.querySelectorAll('body *')].filter((one) =>
  one.checkVisibility() && one.getBoundingClientRect().right > wide + 0.5 && !scrolls(one.parentElement));
return [`${root.scrollWidth} px`, ...found.slice(0, 3).map((one) => one.outerHTML.slice(0, 120))];
"""
# Cards that cut off what is in them.
CUT = """
return [...document.querySelectorAll('main .card')].filter((one) =>
  one.checkVisibility() && getComputedStyle(one).overflowY === 'hidden' && one.scrollHeight > one.clientHeight + 1)
  .map((one) => `cut off: ${one.outerHTML.slice(0, 120)}`);
"""
# Tables that do not fit into their place; the roads of baccarat are long and scroll.
WIDE = """
return [...document.querySelectorAll('main table:not(.road)')].filter((one) => {
  const place = one.parentElement;
  return one.checkVisibility() && place.scrollWidth > place.clientWidth + 1;
}).map((one) => `wide table: ${(one.closest("[aria-label]") ?? one).outerHTML.slice(0, 120)}`);
"""
UNSEEN = """
const button = document.querySelector("body > header .menu");
if (!button) return [];
button.click();
const unseen = [...document.querySelectorAll('body > header nav a')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.left < 0 || box.right > innerWidth || box.bottom > innerHeight || box.width < 24 || box.height < 43.5;
}).map((one) => `menu: ${one.textContent}`);
button.click();
return unseen;
"""


def troubles(page: Browser, looked: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What does not fit on these pages. `looked`: user and path of each; "" is a visitor without a login."""
    for lang in LANGS:
        fully = lang in at_length(("pt",), LANGS)
        come: str | None = None
        for who, path in looked:
            if who != come:
                come = who
                page.come_in(who or "vera", lang=lang)
                if not who:
                    page.driver.delete_cookie("feltd")
            page.go(path)
            page.until("main > *")
            if page.driver.execute_script("return scrollY"):
                yield f"{path}, {lang}: does not begin at its top"
            for width in DESKS if fully else ():
                sized(page, (width, 800))
                if page.driver.execute_script(CUT_MENU):
                    yield f"{path} at {width} px, {lang}: links of the menu are cut off"
                wide: list[Any] = page.driver.execute_script(WIDE)
                yield from (f"{path} at {width} px, {lang}: {one}" for one in wide)
            page.driver.execute_script(UNFOLD)
            for size in PHONES if fully else PHONES[:1]:
                sized(page, size)
                for script in (BEYOND, CUT, WIDE, UNSEEN):
                    found: list[Any] = page.driver.execute_script(script)
                    yield from (f"{path} at {size[0]} px, {lang}: {one}" for one in found)


def test_every_page_and_the_menu_fit_a_phone() -> None:
    with filled(12, pools=True) as pit, browser(pit) as page:
        found = list(troubles(page, sorted(places(pit).values())))
    assert found == [], "\n".join(found)


@pytest.mark.skipif(bool(no_postgres()), reason=no_postgres())
def test_reports_of_a_ledger_fit_a_phone_and_have_no_fault_of_access() -> None:
    from reports_pit import reports_pit  # needs psycopg

    with reports_pit(6) as (pit, where), browser(pit) as page:
        found = list(troubles(page, list(where.values())))
        for theme in ("light", "dark"):
            page.come_in("mona", theme=theme)
            for _, path in where.values():
                page.go(path)
                page.until("table.floor tbody td")
                found += [f"{path}: {one['id']}" for one in Axe().run(page.driver)["violations"]]
    assert found == [], "\n".join(found)
