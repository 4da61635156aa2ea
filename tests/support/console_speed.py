"""Measures in a real browser how quick the console of sixty tables is: first paints, and changes of a tile.

`python tests/support/console_speed.py [PAGE ...]` runs it. The machine may be busy, so besides times there is what a
busy machine changes less: CPU, bytes and requests. A page of one line, served by the same process, shows what the
browser and the machine take for anything.

First paint: as the browser reports its first contentful paint, with an empty cache ("first") and with a full one
("again"). Server: CPU of the console's thread for one answer. Main thread: CPU of the browser's main thread until one
second after the page, and of it for style and layout, and for scripts. Change: from the message of the broker that a
table is in another phase to its tile in the page.
"""

import gzip
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from floor import Browser, browser
from full_pit import FullPit, full_pit, sized
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

TABLES = 60
TURNS = 9
ANSWERS = 30
CHANGES = 60
PAGES = {
    "one line": "/one-line",
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
if (!paint || !page.loadEventEnd) return null;
const before = performance.getEntriesByType('resource').filter((one) =>
  one.responseEnd && one.responseEnd <= paint.startTime && one.transferSize > 0 && one.initiatorType !== 'other');
return [paint.startTime, page.responseEnd, 1 + before.length,
  page.transferSize + before.reduce((sum, one) => sum + one.transferSize, 0)];
"""
WATCH = """
window.seen = [];
new MutationObserver(() => window.seen.push(Date.now()))
  .observe(document.querySelector("[data-tiles]"), { childList: true });
"""


def _one_line(_request: Request) -> HTMLResponse:
    return HTMLResponse("<!doctype html><html lang=en><title>one line</title><p>one line")


def server_ms(pit: FullPit, path: str) -> tuple[float, int]:
    """The least CPU time of the console's thread for one answer, and the bytes of its HTML."""
    asked = urllib.request.Request(pit.url + path, headers={"cookie": f"feltd={pit.secret('sam')}"})
    found, size = [], 0
    for _ in range(ANSWERS):
        before = pit.do(time.thread_time)
        with urllib.request.urlopen(asked) as answer:
            body = answer.read()
        found.append(pit.do(time.thread_time) - before)
        size = len(gzip.decompress(body) if answer.headers.get("content-encoding") == "gzip" else body)
    return min(found) * 1000, size


def metrics(page: Browser) -> dict[str, float]:
    """CPU milliseconds of the browser's main thread so far, by kind."""
    said = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {one["name"]: one["value"] * 1000 for one in said}


def paints(page: Browser, path: str, *, empty: bool) -> list[list[float]]:
    """Of each turn: first paint, last byte, requests and bytes until then, CPU of task, style and layout, script."""
    found = []
    for _ in range(TURNS):
        page.driver.get("about:blank")
        if empty:
            page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        before = metrics(page)
        page.go(path)
        page.when(lambda: page.driver.execute_script(PAINT) is not None)
        said = [float(one) for one in page.driver.execute_script(PAINT)]
        time.sleep(1)
        after = metrics(page)
        if after["TaskDuration"] < before["TaskDuration"]:  # another process took the page
            before = dict.fromkeys(before, 0.0)
        cpu = {name: after[name] - before[name] for name in after}
        style = cpu["RecalcStyleDuration"] + cpu["LayoutDuration"]
        found.append([*said, cpu["TaskDuration"], style, cpu["ScriptDuration"]])
    return found


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
    wanted = sys.argv[1:] or list(PAGES)
    with tempfile.TemporaryDirectory() as directory, full_pit(Path(directory), TABLES) as pit, browser(pit) as page:
        pit.app.router.routes.insert(0, Route("/one-line", _one_line))
        pit.do(pit.trouble)
        sized(page, (1920, 1080))
        page.come_in("sam")
        page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        say(
            "| page | HTML kB | server ms | requests | sent kB | main thread ms | style, layout | scripts "
            "| first: last byte | first paint: best, median, worst | again: best, median | load |\n"
            + "|---" * 12
            + "|\n"
        )
        for name in wanted:
            served, size = server_ms(pit, PAGES[name])
            first, again = (paints(page, PAGES[name], empty=empty) for empty in (True, False))
            paint, byte, requests, sent, task, style, script = (sorted(one) for one in zip(*first, strict=True))
            second = sorted(one[0] for one in again)
            half = TURNS // 2
            say(
                f"| {name} | {size / 1000:.0f} | {served:.1f} | {requests[half]:.0f} | {sent[half] / 1000:.0f} "
                f"| {task[0]:.0f} | {style[0]:.0f} | {script[0]:.0f} | {byte[half]:.0f} "
                f"| {paint[0]:.0f}, {paint[half]:.0f}, {paint[-1]:.0f} | {second[0]:.0f}, {second[half]:.0f} "
                f"| {os.getloadavg()[0]:.1f} |\n"
            )
            sys.stdout.flush()
        found = sorted(changes(page, pit))
        at = statistics.quantiles(found, n=100)
        say(f"\nA change is on the page after {at[49]:.0f} ms, p99 {at[98]:.0f}, at most {found[-1]:.0f} ms.\n")
    say(f"Load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores.\n")


if __name__ == "__main__":
    main()
