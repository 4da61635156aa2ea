"""Measures in a real browser how quick the console of sixty tables is: first paints, and changes of a tile.

`python tests/support/console_speed.py` runs it. First paint: of each page, with an empty cache, as the browser reports
its first contentful paint, and the server's part of it: the time until the last byte of the page has come. Change: from
the message of the broker that a table is in another phase to its tile in the page.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from floor import Browser, browser
from full_pit import FullPit, full_pit, sized

TABLES = 60
TURNS = 7
CHANGES = 60
PAGES = {
    "pit": "/",
    "wall": "/wall",
    "alerts": "/alerts",
    "table": "/table/bac-01",
    "device": "/table/rou-02/device/wheel-1",
    "fairness": "/table/rou-01/fairness",
    "users": "/users",
    "actions": "/actions",
}
PAINT = """
const [paint] = performance.getEntriesByName('first-contentful-paint');
const [page] = performance.getEntriesByType('navigation');
return paint && page.responseEnd ? [paint.startTime, page.responseEnd, page.decodedBodySize] : null;
"""
WATCH = """
window.seen = [];
new MutationObserver(() => window.seen.push(Date.now()))
  .observe(document.querySelector("[data-tiles]"), { childList: true });
"""


def first_paint(page: Browser, path: str) -> tuple[list[float], list[float], int]:
    """Milliseconds to the first paints and to the last byte of the page, and its bytes."""
    paints, answers, size = [], [], 0
    for _ in range(TURNS):
        page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        page.go(path)
        page.when(lambda: page.driver.execute_script(PAINT) is not None)
        paint, answer, size = page.driver.execute_script(PAINT)
        paints.append(float(paint))
        answers.append(float(answer))
    return paints, answers, int(size)


def changes(page: Browser, pit: FullPit) -> list[float]:
    """Milliseconds from a message of the broker to the tile."""
    page.go("/")
    page.until("[data-live='tile/rou-01']")
    time.sleep(1)
    page.driver.execute_script(WATCH)
    found = []

    def one(phase: str) -> float:
        before = len(page.driver.execute_script("return window.seen"))

        def turn() -> float:
            pit.phase("rou-01", phase)
            return time.time()

        began = pit.do(turn)
        page.when(lambda: len(page.driver.execute_script("return window.seen")) > before)
        return float(page.driver.execute_script("return window.seen")[before]) - began * 1000

    for n in range(CHANGES):
        found.append(one(("betting", "running")[n % 2]))
        time.sleep(0.11)
    return found


def main() -> None:
    """All of it, as a table for docs/explanation/performance.md."""
    say = sys.stdout.write
    with tempfile.TemporaryDirectory() as directory, full_pit(Path(directory), TABLES) as pit, browser(pit) as page:
        pit.do(pit.trouble)
        sized(page, (1920, 1080))
        page.come_in("sam")
        say("| page | kB | last byte | first paint, median | worst |\n|---|---|---|---|---|\n")
        for name, path in PAGES.items():
            paints, answers, size = first_paint(page, path)
            median, answer = statistics.median(paints), statistics.median(answers)
            say(f"| {name} | {size / 1000:.0f} | {answer:.0f} ms | {median:.0f} ms | {max(paints):.0f} ms |\n")
        found = sorted(changes(page, pit))
        say(f"\nA change is on the page after {statistics.median(found):.0f} ms, at most {found[-1]:.0f} ms.\n")
    say(f"Load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores.\n")


if __name__ == "__main__":
    main()
