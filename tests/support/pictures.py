"""Makes the pictures of docs/pictures with a real browser and a simulated pit, and measures how quick the pages are.

`make pictures` runs it, and then the contact sheet of every page; `make pictures ARGS=sheet` makes the sheet alone.
What it prints is measured on the machine it runs on: the first paint of each page, and the time from the arrival of a
device's bytes to the event on the page.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from contact_sheet import filled, main as contact_sheet
from floor import Browser, Floor, browser, opened
from full_pit import SIZES, sized

HERE = Path(__file__).parents[2] / "docs/pictures"
KINDS = ("rou", "cus", "bac", "stud", "bj", "fan", "csm", "fpc", "sat")
TURNS = 5
EVENTS = 40
# The newest event of the table below is the first; each is counted once, when it appears.
SEEN = """
const [wanted, done] = arguments, found = [], seen = new Set();
const rows = () => [...document.querySelectorAll("#d-events tbody time")];
for (const row of rows()) seen.add(row.dateTime);
new MutationObserver((_, watcher) => {
  const now = Date.now();
  for (const row of rows()) {
    if (seen.has(row.dateTime)) continue;
    seen.add(row.dateTime);
    found.push(now - Date.parse(row.dateTime));
  }
  if (found.length >= wanted) { watcher.disconnect(); done(found); }
}).observe(document.querySelector("main"), { childList: true, subtree: true });
"""
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def shot(page: Browser, path: str, name: str, ready: str, size: tuple[int, int] = (1280, 860)) -> None:
    """One picture, when `ready` is there."""
    page.driver.set_window_size(*size)
    page.go(path)
    page.until(ready)
    page.driver.save_screenshot(str(HERE / f"{name}.png"))


def paints(page: Browser, path: str) -> list[float]:
    """Seconds to the first paint, several times, of a page that was not there before."""
    found = []
    for _ in range(TURNS):
        page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        page.go(path)
        page.when(lambda: page.driver.execute_script(PAINT) is not None)
        found.append(float(page.driver.execute_script(PAINT)) / 1000)
    return found


def seen_after(page: Browser) -> list[float]:
    """Seconds from the arrival of a device's bytes, as its event says, to the event on the device's page."""
    page.go("/table/rou-1/device/wheel-1")
    page.until("[data-live^='devicelog'] time")
    page.driver.set_script_timeout(120)
    return [float(one) / 1000 for one in page.driver.execute_async_script(SEEN, EVENTS)]


def tell(what: str, times: list[float]) -> None:
    """Median and worst."""
    sys.stdout.write(f"{what} {statistics.median(times):.3f} s, worst of {len(times)} {max(times):.3f} s\n")


def main() -> None:
    """All of it."""
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="feltd-pictures-") as directory:
        made = Floor(Path(directory), kinds=KINDS, speed=20, dealers=("cus-1",))
        with opened(made) as floor, browser(floor) as page:
            page.come_in("sam")
            page.go("/table/bac-1")
            more = "return document.querySelectorAll(\"[data-live^='history/'] tbody tr\").length"
            page.when(lambda: int(page.driver.execute_script(more)) >= 15, patience=300)
            shot(page, "/table/bac-1", "table", ".playing", (1280, 1100))
            floor.breaks("stud-1", "shuffler-1", "jam_outfeed")
            shot(page, "/table/stud-1/device/shuffler-1", "fault", ".line1.error", (1280, 900))
            shot(page, "/", "pit", "[data-live='tile/stud-1'] .why")
            shot(page, "/alerts", "alerts", "main .alert, main article, main table")
            floor.repairs("stud-1", "shuffler-1")
            page.come_in("vera", lang="zh-Hant", theme="dark")
            shot(page, "/", "pit-dark", ".tile")
            page.come_in("dora")
            shot(page, "/dealer/cus-1", "dealer", "main button", (900, 1200))
            page.come_in("ines")
            page.go("/table/bac-1")
            page.until("[data-live='result/bac-1'] a.button")
            page.press("[data-live='result/bac-1'] a.button")
            page.until("pre.wire", "feltd journal recall")
            page.driver.save_screenshot(str(HERE / "round.png"))
            page.come_in("tess")
            for path in ("/", "/table/bac-1", "/table/cus-1/device/shaker-1", "/table/rou-1/fairness", "/alerts"):
                times = paints(page, path)
                tell(f"{path}: first paint", times)
            tell("from the bytes of a device to the page", seen_after(page))
    with filled(60, pools=False) as pit, browser(pit) as page:
        page.come_in("sam")
        sized(page, SIZES[0])
        shot(page, "/wall", "wall", ".tile", SIZES[0])
        sized(page, (1280, 620))
        shot(page, "/table/rou-01/fairness", "fairness", "svg.gauge", (1280, 620))


if __name__ == "__main__":
    if "sheet" not in sys.argv:
        main()
    contact_sheet()
