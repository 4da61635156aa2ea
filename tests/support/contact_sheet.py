"""Every page of the console at four sizes, in two themes and three languages: pictures, and a sheet that joins them.

`make pictures` writes them to build/pictures: `index.html` shows a sheet for each page. The console is a hand-filled
pit (full_pit.py), the pages are found from its routes (every_page.py), one browser shows all.
"""

import base64
import io
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from console_pools import pool_house
from every_page import STRANGER, Examples, Pages
from floor import Browser, browser
from full_pit import PEOPLE, SIZES, FullPit, full_pit, sized
from PIL import Image

from daemon.words.words import LANGS
from simulators.lab.site.postgres import no_postgres

HERE = Path(__file__).parents[2] / "build/pictures"
THEMES = ("light", "dark")
HEIGHT = 420  # of one picture on a sheet
GAP = 8
GROUND = "#7d8790"
QUALITY = 80
LONGEST = 6000  # of a whole page
SETTLED = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)));"
TALL = "return document.documentElement.scrollHeight"
Where = Mapping[str, tuple[str, str]]
"""By the name of a picture, who looks at which path."""


@contextmanager
def filled(count: int, *, pools: bool) -> Iterator[FullPit]:
    """A pit in which something is wrong, with counted spins and a trace; and perhaps `pools` and dealers' pages."""
    with tempfile.TemporaryDirectory() as directory, full_pit(Path(directory), count, dealers=pools) as pit:
        house = pool_house(pit.console, Path(directory))
        if pools:
            books = pit.do(house.__enter__)
            pit.do(lambda: books.round("bac-12", "bac-12:2026-11-20:1", ((1, 2000), (2, 500_000))))
            pit.do(books.tell)
        pit.do(pit.trouble)
        pit.do(lambda: pit.restart("edge-8"))
        pit.do(pit.spins_and_bytes)
        try:
            yield pit
        finally:
            if pools:
                pit.do(lambda: house.__exit__(None, None, None))


def examples_of(pit: FullPit) -> Examples:
    """A table of each game with its first device and its last round."""
    results = pit.console.house.site.tables
    games: dict[str, str] = {}
    for name in pit.names:
        games.setdefault(name.partition("-")[0], name)
    tables = [games.pop("rou"), *games.values()]
    first = dict(reversed(list(pit.console.house.site.devices)))
    return {
        "table": tables,
        "device": [first[table] for table in tables],
        "round": [results[table].results[-1].round for table in tables],
        "ruleset": [results[table].results[-1].ruleset for table in tables],
        "pool": ["red"],
    }


def places(pit: FullPit) -> Where:
    """Every page once, as who may do most there; tables, rounds and the dealer's pages of every game."""
    people = ["sam", *(name for name in PEOPLE if name != "sam"), STRANGER]
    found: dict[str, tuple[str, str]] = {}
    for route, seen in Pages(pit, PEOPLE, examples_of(pit)).seen().items():
        paths = sorted({path for _, path in seen}, key=[path for _, path in seen].index)
        several = route in ("/table/{table}", "/dealer/{table}")
        for path in paths if several else paths[:1]:
            who = min((name for name, one in seen if one == path), key=people.index)
            found[path.strip("/").replace("/", "-").replace(":", "-") or "pit"] = who, path
    return found


class Camera:
    """Takes the pictures."""

    def __init__(self, page: Browser, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self.made = 0

    def take(self, name: str, height: int = 0) -> Image.Image:
        """What the page shows now; all of it where its `height` is given."""
        asked: dict[str, object] = {"format": "jpeg", "quality": QUALITY, "optimizeForSpeed": True}
        if height:
            asked |= {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": 1280, "height": height, "scale": 1},
            }
        said = self._page.driver.execute_cdp_cmd("Page.captureScreenshot", asked)
        data = base64.b64decode(said["data"])
        (self._folder / f"{name}.jpg").write_bytes(data)
        self.made += 1
        return Image.open(io.BytesIO(data))

    def settle(self, size: tuple[int, int]) -> None:
        """The page has that size, and has drawn itself."""
        sized(self._page, size)
        self._page.driver.execute_async_script(SETTLED)


def sheets(pit: FullPit, page: Browser, where: Where, folder: Path, langs: Sequence[str] = LANGS) -> list[str]:
    """A sheet for each page: a row for each theme and language, a column for each size; and the whole page once."""
    folder.mkdir(parents=True, exist_ok=True)
    camera = Camera(page, folder)
    widths = [round(HEIGHT * width / height) for width, height in SIZES]
    rows = [(theme, lang) for theme in THEMES for lang in langs]
    total = sum(widths) + GAP * (len(widths) + 1), (HEIGHT + GAP) * len(rows) + GAP
    joined = {name: Image.new("RGB", total, GROUND) for name in where}
    for row, (theme, lang) in enumerate(rows):
        come: str | None = None
        for name, (who, path) in sorted(where.items(), key=lambda one: one[1][0]):
            if who != come:
                come = who
                page.come_in(who or "vera", theme=theme, lang=lang)
                if not who:
                    page.driver.delete_cookie("feltd")
            page.go(path)
            page.until("main > *")
            for column, size in enumerate(SIZES):
                camera.settle(size)
                shot = camera.take(f"{name}-{size[0]}-{theme}-{lang}")
                place = GAP + sum(widths[:column]) + GAP * column, GAP + (HEIGHT + GAP) * row
                joined[name].paste(shot.resize((widths[column], HEIGHT), Image.Resampling.BILINEAR), place)
            if row == 0:
                camera.settle(SIZES[1])
                camera.take(f"{name}-whole", min(int(page.driver.execute_script(TALL)), LONGEST))
    for name, sheet in joined.items():
        sheet.save(folder / f"{name}.png")
    sys.stdout.write(f"{camera.made} pictures of {len(where)} pages\n")
    return list(where)


def main(folder: Path = HERE) -> None:
    """All of it."""
    began = time.monotonic()
    names: list[str] = []
    with filled(12, pools=True) as pit, browser(pit) as page:
        names += sheets(pit, page, places(pit), folder)
    with filled(60, pools=False) as pit, browser(pit) as page:
        names += sheets(pit, page, {"pit-of-60": ("sam", "/"), "wall-of-60": ("sam", "/wall")}, folder, LANGS[:1])
    if missing := no_postgres():
        sys.stdout.write(f"no pictures of the reports: {missing}\n")
    else:
        from reports_pit import reports_pit  # needs psycopg

        with reports_pit(12) as (pit, where), browser(pit) as page:
            names += sheets(pit, page, where, folder)
    images = "".join(
        f'<h2><a href="{name}-whole.jpg">{name}</a></h2><img src="{name}.png" alt="" loading="lazy">\n'
        for name in names
    )
    text = f'<!doctype html><meta charset="utf-8"><title>Pages</title><style>img{{max-width:100%}}</style>\n{images}'
    (folder / "index.html").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{folder}/index.html, after {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()
