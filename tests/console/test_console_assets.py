"""Style sheets and scripts: kept by browsers under the digest of their content; everything private is kept nowhere."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_floor import Console, opened

from daemon.console.context import HERE

SCRIPT = HERE / "static/live.js"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        yield one


async def test_a_page_names_assets_that_a_browser_may_keep(console: Console) -> None:
    async with console.browser("viewer") as browser:
        page = await browser.get("/")
        named = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
        answers = [await browser.get(name) for name in named]
    assert {name.partition("?")[0] for name in named} >= {"/static/console.css", "/static/live.js", "/static/pit.js"}
    for answer in answers:
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "max-age=31536000, immutable"


@pytest.mark.parametrize("query", ["", "?0000000000000000", "?" + "0" * 9_000])
async def test_what_is_asked_for_without_its_digest_is_not_kept(console: Console, query: str) -> None:
    async with console.browser("viewer") as browser:
        answer = await browser.get("/static/live.js" + query)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert answer.content == SCRIPT.read_bytes()


async def test_assets_are_sent_small_to_who_can_read_that(console: Console) -> None:
    async with console.browser("viewer") as browser:
        plain = await browser.get("/static/live.js", headers={"accept-encoding": "identity"})
        small = await browser.get("/static/live.js", headers={"accept-encoding": "gzip"})
    assert plain.content == small.content == SCRIPT.read_bytes()
    assert int(small.headers["content-length"]) == len(gzip.compress(SCRIPT.read_bytes(), mtime=0))
    assert (plain.headers["vary"], small.headers["vary"]) == ("accept-encoding", "accept-encoding")
    assert "javascript" in small.headers["content-type"]


@pytest.mark.parametrize("path", ["/", "/login", "/alerts", "/static/none.js", "/static/"])
async def test_pages_and_errors_are_neither_kept_nor_compressed(console: Console, path: str) -> None:
    """Compressed pages would tell by their length what is in them."""
    async with console.browser("viewer") as browser:
        answer = await browser.get(path)
    assert answer.headers["cache-control"] == "no-store"
    assert "content-encoding" not in answer.headers
