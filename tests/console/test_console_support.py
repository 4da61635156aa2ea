"""The pages of trace, support bundle, commands: who may open them, what they ask of the edge, what is written down."""

import asyncio
import contextlib
import errno
import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from console_tour import bundle_made
from helpers import PATIENCE, result_of

from daemon.config.model import Config, parse
from daemon.console.app import ConsoleProcess, make_app
from daemon.console.auth.users import ROLES, By, Hashed, _scrypt
from daemon.console.pages import bundle, support, web
from daemon.console.site.actions import read_actions
from daemon.console.site.store import Store
from daemon.journal.recall import Evidence, recall, recall_text
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.words import words
from protocols import bee_tek_shoe
from protocols.contract.commands import Reply
from protocols.contract.documents import Alert, TraceLine

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PASSWORD = "twelve chars and more"
ORIGIN = {"origin": "http://pit.test", "sec-fetch-site": "same-origin"}
CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-1"
journal = "{path}/edge.db"
[rules]
journal = "{path}/rules.db"
[console]
journal = "{path}/actions.db"
[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "serial:///dev/ttyUSB0"
[[table.device]]
name = "shaker-1"
driver = "fdl_shaker"
url = "tcp://10.0.0.1:4001"
"""
TRACE = "/table/bac-1/device/shoe-1/trace"


class Inn:
    """A console without a broker."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "console.db")
        self.journal = Journal(folder / "actions.db")
        self.house = ConsoleProcess(parse(CONFIG.format(path=folder)), self.store, self.journal, lambda: NOON)
        salt = b"salt of a test.."
        hashed = Hashed(2, 8, 1, salt, _scrypt(PASSWORD, 2, 8, 1, salt))
        for role in ROLES:
            self.house.access.users.add(By("root", "system"), role[:3], role, (), hashed)
        self.house.access.users.add(By("root", "system"), "few", "technician", ("bac-1",), hashed)
        self.app = make_app(self.house)

    def browser(self, name: str) -> httpx.AsyncClient:
        session = self.house.access.users.begin(name, "", "")
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://pit.test", cookies={"feltd": session})

    def close(self) -> None:
        self.house.close()
        self.journal.close()
        self.store.close()


@pytest.fixture
def inn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inn]:
    monkeypatch.setattr(bundle, "LOGS", tmp_path / "log")
    one = Inn(tmp_path)
    yield one
    one.close()


@pytest.mark.parametrize(
    ("name", "status"), [("vie", 403), ("dea", 403), ("tec", 200), ("sup", 200), ("ins", 200), ("few", 200)]
)
async def test_trace_page_rights(inn: Inn, name: str, status: int) -> None:
    async with inn.browser(name) as browser:
        assert (await browser.get(TRACE)).status_code == status
        assert (await browser.get(TRACE + "/text")).status_code == status
        assert (await browser.get(TRACE.replace("shoe-1", "gone"))).status_code == (404 if status == 200 else 403)


async def test_the_page_says_that_cards_come_later_and_for_which_device(inn: Inn) -> None:
    async with inn.browser("tec") as browser:
        shoe = await browser.get(TRACE)
        shaker = await browser.get(TRACE.replace("shoe-1", "shaker-1"))
    assert words.say("en", "trace.cards") in shoe.text
    assert words.say("en", "trace.cards") not in shaker.text
    assert "<script>" not in shoe.text


async def test_a_trace_is_written_down_and_then_asked_of_the_edge(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def ask(_house: Any, table: str, device: str, name: str, args: bytes) -> Reply:
        asked.append((table, device, name, json.loads(args), [one.action for one in read_actions(inn.journal.path, 1)]))
        return Reply("x", name, "done")

    monkeypatch.setattr(inn.house.answers, "ask", ask)
    async with inn.browser("ins") as browser:
        sent = await browser.post(TRACE, data={"minutes": "5"}, headers=ORIGIN)
        assert (sent.status_code, sent.headers["location"]) == (303, TRACE + "?answer=x")
        assert (await browser.post(TRACE, data={"minutes": "99"}, headers=ORIGIN)).status_code == 400
        assert (await browser.post(TRACE, data={"minutes": "5"})).status_code == 403
    assert asked == [("bac-1", "shoe-1", "trace", {"seconds": 300}, ["trace"])]


async def test_an_answer_that_comes_after_the_page_stands_there_when_it_is_looked_at_again(
    inn: Inn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel tests itself for up to five minutes."""
    asked: list[tuple[str, str]] = []

    async def publish(topic: str, payload: bytes) -> None:
        asked.append((topic, json.loads(payload)["id"]))

    monkeypatch.setattr(inn.house.site, "publish", publish)
    monkeypatch.setattr(web, "REPLY_TIMEOUT_S", 0.05)
    shaker = TRACE.replace("shoe-1", "shaker-1").removesuffix("/trace")
    async with inn.browser("tec") as browser:
        sent = await browser.post(shaker + "/command/self-test", data={}, headers=ORIGIN)
        [(topic, id_)] = asked
        assert topic.endswith("/shaker-1/cmd/self-test")
        assert (sent.status_code, sent.headers["location"]) == (303, f"{shaker}?answer={id_}")
        assert words.say("en", "answer.waiting") in (await browser.get(sent.headers["location"])).text
        for answered in (Reply("another", "self-test", "done", "not ours"), Reply(id_, "self-test", "failed", "motor")):
            inn.house.answers.received("bac-1", "shaker-1", msgspec.json.encode(answered))
        page = (await browser.get(sent.headers["location"])).text
    assert words.say("en", "answer.waiting") not in page
    assert "motor" in page
    assert "not ours" not in page


async def test_a_trace_that_nobody_answers_is_said_so(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def publish(topic: str, payload: bytes) -> None: ...

    monkeypatch.setattr(inn.house.site, "publish", publish)
    monkeypatch.setattr(web, "REPLY_TIMEOUT_S", 0.05)
    async with inn.browser("ins") as browser:
        sent = await browser.post(TRACE, data={"minutes": "5"}, headers=ORIGIN)
        page = await browser.get(sent.headers["location"])
    assert page.status_code == 200
    assert words.say("en", "answer.waiting") in page.text


async def test_published_trace_can_be_downloaded(inn: Inn) -> None:
    frame = TraceLine(NOON, "in", bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH")).hex(), 1, 0)
    for hear in inn.house.site.on_trace:
        hear("bac-1", "shoe-1", msgspec.json.encode(frame))
        hear("bac-1", "a-device-nobody-knows", msgspec.json.encode(frame))
    async with inn.browser("tec") as browser:
        text = await browser.get(TRACE + "/text")
    assert 'filename="bac-1-shoe-1-20261120T120000Z.capture"' in text.headers["content-disposition"]
    assert "drawn: card KH" in text.text


@pytest.mark.parametrize(("name", "status"), [("vie", 403), ("dea", 403), ("ins", 403), ("few", 403), ("tec", 303)])
async def test_bundle_rights(inn: Inn, name: str, status: int) -> None:
    """Not who may see some tables only: it holds all."""
    async with inn.browser(name) as browser:
        assert (await browser.post("/bundle", headers=ORIGIN)).status_code == status
    assert [one.action for one in read_actions(inn.journal.path, 5, action="bundle")] == ["bundle"] * (status == 303)


@pytest.mark.parametrize(("name", "offered"), [("few", False), ("tec", True), ("sup", True)])
async def test_viewers_without_the_right_get_no_offer_of_a_bundle(inn: Inn, name: str, offered: bool) -> None:
    async with inn.browser(name) as browser:
        page = await browser.get("/support")
    assert page.status_code == 200
    assert ('action="/bundle"' in page.text) == offered
    assert (words.say("en", "trace.bundle_all_tables") in page.text) == (not offered)


async def test_a_bundle_is_one_file_and_leaves_none_behind(
    inn: Inn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spool").mkdir()
    fault = Alert(code="wheel.jam", text="the ball sticks, password=Zqhunter9x", remedy="free it")
    inn.house.incidents.on_alert(("bac-1", "shoe-1-jam"), fault, NOON)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))
    async with inn.browser("sup") as browser:
        assert (await browser.get("/support")).status_code == 200
        await browser.post("/bundle", headers=ORIGIN)
        await bundle_made(inn.house)
        assert "download" in (await browser.get("/support")).text
        answer = await browser.get("/bundle")
        assert (await browser.post("/bundle/cancel", headers=ORIGIN)).status_code == 303
        assert (await browser.get("/bundle")).status_code == 404
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        devices = json.loads(file.read("devices.json"))
        assert json.loads(file.read("manifest.json"))["site"] == "lisboa"
        [incident] = json.loads(file.read("incidents.json"))
    assert (incident["code"], incident["text"]) == ("wheel.jam", "the ball sticks, password=(withheld)")
    assert [(one["table"], one["device"]) for one in devices] == [("bac-1", "shoe-1"), ("bac-1", "shaker-1")]
    assert list((tmp_path / "spool").iterdir()) == []


class Slow:
    """A bundle that stops at each step until it is let on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = threading.Semaphore(0)
        true = bundle.make

        def made(path: Path, config: Config, given: bundle.Given, progress: bundle.Progress) -> None:
            def at(step: str, part: float) -> None:
                progress(step, part)
                assert self.steps.acquire(timeout=PATIENCE)
                progress(step, part)  # raises if it was cancelled meanwhile

            true(path, config, given, at)

        monkeypatch.setattr(support, "make", made)


async def seen(inn: Inn, browser: httpx.AsyncClient, words: str) -> str:
    """The page, when `words` stand there."""
    async with asyncio.timeout(PATIENCE):
        while words not in (text := (await browser.get("/support")).text):  # noqa: ASYNC110 - it is made in a thread
            await asyncio.sleep(0.01)
    return text


async def test_a_bundle_shows_how_far_it_is_and_is_made_one_at_a_time(
    inn: Inn, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    async with inn.browser("sup") as browser, inn.browser("tec") as other:
        assert (await browser.post("/bundle", headers=ORIGIN)).headers["location"] == "/support"
        first = await seen(inn, browser, 'aria-current="step"')
        assert re.search(r'<progress max="100" value="0"', first)
        assert re.search(r'aria-current="step">.*Configuration and versions</li>', first)
        assert (await other.post("/bundle", headers=ORIGIN)).status_code == 503
        assert (await other.get("/bundle")).status_code == 404
        slow.steps.release()
        second = await seen(inn, other, '<span class="icon" aria-hidden="true">▸</span>States and incidents')
        assert "The bundle is being made for sup." in second
        slow.steps.release(10_000)
        await bundle_made(inn.house)
        assert "download" in (await other.get("/support")).text


async def test_a_bundle_that_is_cancelled_leaves_no_file(
    inn: Inn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    (tmp_path / "spool").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))
    async with inn.browser("sup") as browser:
        await browser.post("/bundle", headers=ORIGIN)
        await browser.post("/bundle/cancel", headers=ORIGIN)
        slow.steps.release()
        await bundle_made(inn.house)
        assert "Cancelled. No file was left." in (await browser.get("/support")).text
    assert list((tmp_path / "spool").iterdir()) == []


async def test_a_bundle_that_fails_says_why_and_another_can_be_made(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(support, "make", full)
        async with inn.browser("sup") as browser:
            await browser.post("/bundle", headers=ORIGIN)
            await bundle_made(inn.house)
            page = await browser.get("/support")
    assert "No space left on device" in page.text
    assert 'action="/bundle"' in page.text


async def test_a_made_bundle_is_thrown_away_with_the_next_and_when_its_time_is_over(
    inn: Inn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spool").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))
    async with inn.browser("sup") as browser:
        for _ in range(2):
            await browser.post("/bundle", headers=ORIGIN)
            await bundle_made(inn.house)
        assert len(list((tmp_path / "spool").iterdir())) == 1
        monkeypatch.setattr(support, "KEPT_S", 0.0)
        await browser.post("/bundle", headers=ORIGIN)
        await bundle_made(inn.house)
        await seen(inn, browser, '<button class="main">Make the bundle')
    assert list((tmp_path / "spool").iterdir()) == []


# ---- a journal that was replaced


def replaced(folder: Path) -> str:
    """The round that ended in the edge's old journal, while in its new one another is open."""
    result = {
        "round": "bac-1:2026-11-20:7",
        "ruleset": "macau.baccarat",
        "edition": "1",
        "announcements": {"en": "tie"},
    }
    said = json.dumps({"result": result | {"evidence": ["edge-1:bac-1:1", "edge-1:bac-1:2", "edge-1:bac-1:9"]}})
    with contextlib.closing(Journal(folder / "rules.db")) as rules:
        rules.append([Entry("bac-1", "round", "resolved", NOON, said.encode(), cause="edge-1:bac-1:9/0")])
    with contextlib.closing(Journal(folder / "edge.db")) as edge:
        old = Entry("bac-1", "shoe-1", "shoe.started", NOON - timedelta(seconds=1), b"{}", b"old")
        wire = bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH"))
        edge.append([old, Entry("bac-1", "shoe-1", "card.drawn", NOON + timedelta(hours=1), b'{"card":"KH"}', wire)])
    return "bac-1:2026-11-20:7"


def test_recall_reports_evidence_younger_than_its_result(tmp_path: Path) -> None:
    name = replaced(tmp_path)
    [recalled] = recall(tmp_path / "rules.db", tmp_path / "edge.db", "bac-1", 9, name)
    first, second, third = recalled.evidence
    assert (first.type, first.wire, first.note) == ("shoe.started", b"old".hex(), "")
    assert second == Evidence("edge-1:bac-1:2", note=second.note)
    assert "younger than the result" in second.note
    assert third.note == "the edge's journal does not have it (any more)"
    assert "KH" not in recall_text([recalled])


@pytest.mark.parametrize(("name", "shown"), [("ins", True), ("tec", False)])
async def test_a_round_names_its_events_and_the_inspector_reads_the_command_that_recalls_it(
    inn: Inn, tmp_path: Path, name: str, shown: bool
) -> None:
    """The journals are not the console's: what it shows is what the rules told."""
    round_ = replaced(tmp_path)
    async with inn.browser(name) as browser:
        assert (await browser.get(f"/table/bac-1/round/{round_}")).status_code == 404  # no result told of it yet
        result = {"round": round_, "ruleset": "macau.baccarat", "edition": "1", "announcements": {"en": "tie"}}
        inn.house.site.remember_result("bac-1", result_of(result | {"evidence": ["edge-1:bac-1:1"]}))
        page = await browser.get(f"/table/bac-1/round/{round_}")
    assert page.status_code == 200
    assert "tie" in page.text
    assert "edge-1:bac-1:1" in page.text
    assert (f"sudo feltd journal recall bac-1 --round {round_}" in page.text) == shown
    assert b"old".hex() not in page.text
