"""A table's twin is added in Chromium, and what is wrong stands at its field; the page fits a phone."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from change_socket import computer
from floor import Browser, InAThread, browser, opened

from daemon.config.model import load
from daemon.console.app import serve
from daemon.console.auth.users import By, Users, hash_password
from daemon.console.site.store import Store
from daemon.edge.links.link import utc_now
from daemon.journal.store import Journal

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromium-driver is not installed"),
]


class Served(InAThread):
    """The console of this configuration; no broker is there."""

    def __init__(self, path: Path) -> None:
        super().__init__("console")
        self._config = load(path)

    def secret(self, name: str) -> str:
        """The cookie of a new session."""
        store = Store(Path(self._config.console.store))
        try:
            return Users(store, utc_now).begin(name, "127.0.0.1", "test")
        finally:
            store.close()

    async def _live(self) -> None:
        journal = Journal(Path(self._config.console.journal))
        listening: asyncio.Future[int] = self._loop.create_future()
        serving = asyncio.create_task(serve(self._config, journal, on_listening=listening.set_result))
        self.port = await listening
        self._ready.set_result(None)
        await self._over.wait()
        serving.cancel()
        await asyncio.wait([serving])
        journal.close()


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    with computer(tmp_path) as path:
        yield path


@pytest.fixture
def served(config: Path) -> Iterator[Served]:
    text = config.read_text(encoding="utf-8").replace("[console]\n", "[console]\nport = 0\n")
    config.write_text(text, encoding="utf-8")
    store = Store(Path(load(config).console.store))
    Users(store, utc_now).add(By("test", "system"), "tess", "technician", (), hash_password("a felt of many colours"))
    store.close()
    with opened(Served(config)) as one:
        yield one


def violations(page: Browser) -> list[tuple[str, str]]:
    """What axe finds on the page."""
    found = Axe().run(page.driver)["violations"]
    return [(one["id"], node["html"]) for one in found for node in one["nodes"]]


def test_a_technician_adds_a_twin_in_a_browser(config: Path, served: Served) -> None:
    with browser(served, (390, 844)) as page:
        page.come_in("tess")
        page.go("/fleet")
        page.follow("a[href='/tables']")
        wrong = violations(page)
        page.follow("a[href='/tables/twin?table=rou-3']")
        page.write("input[name=name]", "rou-4")
        page.write("input[name=why]", "a twin")
        page.follow("button.main")
        page.until("fieldset p.alert", "already belongs to rou-3/wheel-1")
        assert page.driver.execute_script("return document.body.scrollWidth <= document.documentElement.clientWidth")
        assert all("400 (Bad Request)" in one for one in page.complaints())
        wrong += violations(page)
        page.find("input[name=device-0-url]").clear()
        page.write("input[name=device-0-url]", "tcp://127.0.0.1:4003")
        page.follow("button.main")
        page.until("#difference", '+name = "rou-4"')
        wrong += violations(page)
        page.follow("form[action^='/tables/draft/'] button")
        page.until(".allgood", "In use: version 2")
        assert wrong + violations(page) == []
        assert page.complaints() == []
    assert [one.name for one in load(config).table] == ["rou-3", "rou-4"]
