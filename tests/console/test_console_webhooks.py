"""Webhooks against real receivers on loopback: each message in order, at least once, whatever becomes of either."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import PATIENCE
from msgspec.structs import replace
from structlog.testing import capture_logs

from daemon.config.model import Webhook
from daemon.console.alerts.incidents import SAME_INCIDENT_WITHIN, Incidents
from daemon.console.alerts.webhooks import BadWebhook, Webhooks
from daemon.console.site.store import BadStore, Store
from protocols.contract.documents import Alert

T0 = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
JAM = Alert(code="card.jam", text="a card is stuck", remedy="open the shoe", severity="error", device="shoe-1")
LID = Alert(code="lid.open", text="the lid is open", remedy="close it", severity="warning", device="shoe-1")
KEY = ("bac-12", "shoe-1-card-jam")
SECRET = b"0123456789abcdef0123456789abcdef"
SITE: Any = SimpleNamespace(connected=True, lost=None, stalled=False, edges={}, devices={})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path / "console.db")
    yield one
    one.close()


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_text("whsec_" + base64.b64encode(SECRET).decode() + "\n")
    return str(path)


class Receiver:
    """An HTTP server that answers as it is told and keeps what it was sent. `answer` None: nothing, for ever."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[bytes | None] = []
        self.answer: bytes | None = b"HTTP/1.1 204 No Content\r\n\r\n"
        self.open_gate = asyncio.Event()
        self.open_gate.set()
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/s3cr3t?token=t0k3n"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers["content-length"]))
            answer = self.answers.pop(0) if self.answers else self.answer
            async with self._changed:
                self.requests.append((head[0], headers, body))
                self._changed.notify_all()
            await self.open_gate.wait()
            if answer is not None:
                writer.write(answer)
                await writer.drain()
            else:
                await reader.read()  # until the other side gives up
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def heard(self, count: int) -> list[str]:
        """The types of the messages, once there are so many."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)
        return [json.loads(body)["type"] for _, _, body in self.requests]

    def data(self, number: int) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.requests[number][2])["data"]
        return data


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    one = Receiver()
    await one.open()
    yield one
    await one.close()


@asynccontextmanager
async def sending(webhooks: Webhooks) -> AsyncIterator[None]:
    task = asyncio.create_task(webhooks.run())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - counters of the sender, which sets no events
            await asyncio.sleep(0.005)


def make(store: Store, url: str, secret_file: str = "", **more: Any) -> tuple[Webhooks, Incidents]:
    severities = more.pop("severities", ("warning", "error"))
    hooks = Webhooks(
        store,
        [Webhook(url=url, secret_file=secret_file, severities=severities)],
        "lisboa",
        lambda: T0,
        **{"first": 0.01, "longest": 0.05, "timeout": PATIENCE, **more},
    )
    return hooks, Incidents(store, notifier=hooks)


# ---- what is told


async def test_an_incident_is_told_signed_from_its_beginning_to_its_end(
    store: Store, receiver: Receiver, secret_file: str
) -> None:
    webhooks, incidents = make(store, receiver.url, secret_file)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        incidents.on_alert(KEY, JAM, T0)
        incidents.acknowledge(1, "maria", "on my way", T0 + timedelta(seconds=30))
        incidents.on_alert(KEY, None, T0 + timedelta(seconds=60))
        assert await receiver.heard(3) == ["incident.opened", "incident.acknowledged", "incident.resolved"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
    assert receiver.data(0) == {
        "incident": "lisboa:20261120T200000Z:1",
        "site": "lisboa",
        "table": "bac-12",
        "device": "shoe-1",
        "code": "card.jam",
        "severity": "error",
        "text": "a card is stuck",
        "remedy": "open the shoe",
        "state": "open",
        "began": "2026-11-20T20:00:00Z",
        "times": 1,
    }
    assert (receiver.data(1)["by"], receiver.data(1)["note"]) == ("maria", "on my way")
    assert receiver.data(2)["ended"] == "2026-11-20T20:01:00Z"
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 3
    for line, headers, body in receiver.requests:
        assert line == "POST /hook/s3cr3t?token=t0k3n HTTP/1.1"
        assert headers["host"] == f"127.0.0.1:{receiver.port}"
        assert headers["content-type"] == "application/json"
        assert headers["webhook-timestamp"] == str(int(T0.timestamp()))
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        mac = base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{mac}"


async def test_without_a_key_nothing_is_signed(store: Store, receiver: Receiver) -> None:
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        await receiver.heard(1)
    assert "webhook-signature" not in receiver.requests[0][1]


async def test_a_warning_that_somebody_saw_is_told_anew_when_it_becomes_an_error(
    store: Store, receiver: Receiver
) -> None:
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        incidents.on_alert(KEY, LID, T0)
        incidents.acknowledge(1, "maria", "on my way", T0)
        incidents.on_alert(KEY, JAM, T0 + timedelta(days=9))
        incidents.acknowledge(1, "joão", "", T0 + timedelta(days=10))
        opened = ["incident.opened", "incident.acknowledged"]
        assert await receiver.heard(4) == [*opened, *opened]
    assert [receiver.data(n)["severity"] for n in range(4)] == ["warning", "warning", "error", "error"]
    assert (receiver.data(2)["state"], receiver.data(2)["by"], receiver.data(3)["by"]) == ("open", "maria", "joão")


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_warning_that_nobody_saw_is_told_anew_when_it_becomes_worse(
    store: Store, receiver: Receiver, restarted: bool
) -> None:
    """An error, or another trouble. What becomes better, or what it was again, is no news."""
    webhooks, incidents = make(store, receiver.url)
    incidents.on_alert(KEY, LID, T0)
    for alert in (JAM, LID, JAM, replace(JAM, code="card.lost"), replace(JAM, code="card.lost", text="two")):
        if restarted:
            webhooks, incidents = make(store, receiver.url)
        incidents.on_alert(KEY, alert, T0)
        incidents.look(SITE, T0)
    incidents.on_alert(KEY, None, T0)
    async with sending(webhooks):
        assert await receiver.heard(4) == ["incident.opened"] * 3 + ["incident.resolved"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
    told = [(receiver.data(n)["code"], receiver.data(n)["severity"]) for n in range(4)]
    assert told == [("lid.open", "warning"), ("card.jam", "error"), ("card.lost", "error"), ("card.lost", "error")]
    assert store.db.execute("SELECT count(*) FROM webhook_told_as").fetchone() == (0,)


async def test_only_of_the_severities_asked_for(store: Store, receiver: Receiver) -> None:
    """What becomes worse is told then; what was told is told to end, whatever it has become."""
    webhooks, incidents = make(store, receiver.url, severities=("error",))
    async with sending(webhooks):
        incidents.on_alert(KEY, LID, T0)
        incidents.on_alert(("t-2", "x"), LID, T0)
        incidents.on_alert(("t-2", "x"), None, T0)
        assert webhooks.counts()[0].waiting == 0
        incidents.on_alert(KEY, JAM, T0)
        incidents.on_alert(KEY, LID, T0)
        incidents.on_alert(KEY, None, T0)
        assert await receiver.heard(2) == ["incident.opened", "incident.resolved"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
    assert [receiver.data(n)["severity"] for n in (0, 1)] == ["error", "warning"]


async def test_silence_hides_from_webhooks_until_it_ends(store: Store, receiver: Receiver) -> None:
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        incidents.on_alert(("t-1", "before"), JAM, T0)
        incidents.silence("t-1", "", "", T0 + timedelta(minutes=5), "ana", "new felt", T0)
        incidents.on_alert(("t-1", "short"), JAM, T0)
        incidents.on_alert(("t-1", "short"), None, T0)
        incidents.on_alert(("t-1", "long"), LID, T0)
        incidents.on_alert(("t-1", "before"), None, T0)
        incidents.look(SITE, T0 + timedelta(minutes=4))
        assert await receiver.heard(2) == ["incident.opened", "incident.resolved"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
        incidents.look(SITE, T0 + timedelta(minutes=5))
        assert (await receiver.heard(3))[2] == "incident.opened"
        assert receiver.data(2)["code"] == "lid.open"


async def test_flapping_is_told_to_end_when_it_stays_away(store: Store, receiver: Receiver) -> None:
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        now = T0
        for _ in range(50):
            incidents.on_alert(KEY, JAM, now)
            incidents.on_alert(KEY, None, now + timedelta(seconds=5))
            now += timedelta(seconds=10)
        incidents.look(SITE, now + SAME_INCIDENT_WITHIN / 2)
        told = ["incident.opened", "incident.resolved"] * 3 + ["incident.opened"]
        assert await receiver.heard(7) == told
        await until(lambda: webhooks.counts()[0].waiting == 0)
        incidents = Incidents(store, notifier=webhooks)
        incidents.look(SITE, now + SAME_INCIDENT_WITHIN)
        assert await receiver.heard(8) == [*told, "incident.resolved"]
        assert receiver.data(7)["times"] == 50


# ---- when the receiver does not take it


DOWN = [
    b"HTTP/1.1 500 Internal Server Error\r\n\r\n",
    b"HTTP/1.1 410 Gone\r\n\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/elsewhere\r\n\r\n",
    b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{port}/elsewhere\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"HTTP/1.1 two hundred\r\n\r\n",
    b"HTTP/1.1 204",
    b"x" * 100_000,
    b"",
    None,
]


@pytest.mark.parametrize("answer", DOWN, ids=lambda answer: repr((answer or b"slow")[:14]))
async def test_refused_webhooks_are_sent_again_in_order(
    store: Store, receiver: Receiver, secret_file: str, answer: bytes | None
) -> None:
    receiver.answers = [answer and answer.replace(b"{port}", str(receiver.port).encode())] * 3
    webhooks, incidents = make(store, receiver.url, secret_file, timeout=PATIENCE if answer is not None else 0.5)
    with capture_logs() as logs:
        async with sending(webhooks):
            incidents.on_alert(KEY, JAM, T0)
            incidents.on_alert(KEY, None, T0)
            await until(lambda: webhooks.counts()[0].waiting == 0)
    told = await receiver.heard(5)
    late = len(told) - 5  # a busy computer misses the short time for an answer more often
    assert late == 0 or answer is None
    assert told == sorted(told)
    assert told[:4] + told[-1:] == ["incident.opened"] * 4 + ["incident.resolved"]
    assert {line for line, _, _ in receiver.requests} == {"POST /hook/s3cr3t?token=t0k3n HTTP/1.1"}
    ids = [headers["webhook-id"] for _, headers, _ in receiver.requests]
    assert len(set(ids[:4])) == 1
    assert len(set(ids)) == 2
    assert (webhooks.counts()[0].sent, webhooks.counts()[0].failed) == (2, 3 + late)
    again = told.count("incident.resolved") > 1
    assert [line["event"] for line in logs] == ["webhook.failing", "webhook.back"] * (1 + again)
    assert not re.search(r"s3cr3t|t0k3n|OpenSSH|elsewhere|MDEyMzQ1|01234567", repr(logs))


async def test_the_reason_of_a_failure_names_no_address(
    store: Store, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused, no TLS where it is asked for, and a refusal. What libraries log, at any level, names none either."""
    caplog.set_level(logging.DEBUG)

    async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    tls = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/s3cr3t"
    away = Receiver()
    await away.open()
    await away.close()
    receiver.answer = b"HTTP/1.1 500 No\r\n\r\n"
    for url, reason in (
        (away.url, "Connection refused"),
        (tls, "TLS: WRONG_VERSION_NUMBER"),
        (receiver.url, "its answer was 500"),
    ):
        webhooks, incidents = make(store, url)
        with capture_logs() as logs:
            async with sending(webhooks):
                incidents.on_alert(KEY, JAM, T0)
                await until(lambda: bool(logs))
        incidents.on_alert(KEY, None, T0)
        assert [line["reason"] for line in logs] == [reason]
    server.close()
    assert "s3cr3t" not in caplog.text


async def test_a_receiver_that_is_down_and_comes_back(store: Store, receiver: Receiver) -> None:
    await receiver.close()
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        await until(lambda: webhooks.counts()[0].failed >= 3)
        assert webhooks.counts()[0].waiting == 1
        await receiver.open()
        assert await receiver.heard(1) == ["incident.opened"]


@pytest.mark.parametrize("url", ["http://desk..example/", "http://\u00ad/", f"http://{'a' * 70}.example/"])
async def test_a_name_that_cannot_be_asked_for_is_a_receiver_that_is_down(
    store: Store, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Whatever a resolver refuses: the others are told, and the console lives."""
    monkeypatch.setattr("daemon.console.alerts.webhooks.host_of", lambda *_: "desk..example")
    webhooks, incidents = make(store, url)
    with capture_logs() as logs:
        async with sending(webhooks):
            incidents.on_alert(KEY, JAM, T0)
            await until(lambda: webhooks.counts()[0].failed >= 2)
    assert [line["event"] for line in logs] == ["webhook.failing"]


async def test_an_interim_answer_is_none(store: Store, receiver: Receiver) -> None:
    receiver.answers = [b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 500 No\r\n\r\n"]
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        await receiver.heard(2)
    assert webhooks.counts()[0].failed == 1


async def test_one_that_hangs_holds_up_no_other(store: Store, receiver: Receiver) -> None:
    slow = Receiver()
    slow.answer = None
    await slow.open()
    urls = [Webhook(url=slow.url), Webhook(url=receiver.url)]
    webhooks = Webhooks(store, urls, "lisboa", lambda: T0, first=0.01, longest=0.05, timeout=PATIENCE)
    incidents = Incidents(store, notifier=webhooks)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        incidents.on_alert(KEY, None, T0)
        await slow.heard(1)
        assert await receiver.heard(2) == ["incident.opened", "incident.resolved"]
        await until(lambda: [one.waiting for one in webhooks.counts()] == [2, 0])
    await slow.close()


# ---- over restarts


async def test_waiting_webhooks_survive_a_restart(store: Store, receiver: Receiver, tmp_path: Path) -> None:
    await receiver.close()
    webhooks, incidents = make(store, receiver.url)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        incidents.acknowledge(1, "maria", "", T0)
        await until(lambda: webhooks.counts()[0].failed > 0)
    store.close()
    again = Store(tmp_path / "console.db")
    await receiver.open()
    webhooks, incidents = make(again, receiver.url)
    assert webhooks.counts()[0].waiting == 2
    incidents.on_alert(KEY, None, T0)
    async with sending(webhooks):
        assert await receiver.heard(3) == ["incident.opened", "incident.acknowledged", "incident.resolved"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
    again.close()


async def test_killed_between_the_answer_and_the_store_it_is_sent_again_with_the_same_id(
    store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhooks, incidents = make(store, receiver.url)
    incidents.on_alert(KEY, JAM, T0)

    def killed() -> None:
        raise BadStore("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(store, "write", killed)
        async with sending(webhooks):
            await receiver.heard(1)
    webhooks, _ = make(store, receiver.url)
    count = len(receiver.requests)
    async with sending(webhooks):
        await receiver.heard(count + 1)
        await until(lambda: webhooks.counts()[0].waiting == 0)
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 1


async def test_receiver_removed_from_the_configuration_is_forgotten(store: Store, receiver: Receiver) -> None:
    _, incidents = make(store, "http://127.0.0.1:9/gone")
    incidents.on_alert(KEY, JAM, T0)
    webhooks, incidents = make(store, receiver.url)
    assert webhooks.counts()[0].waiting == 0
    assert list(webhooks.notified()) == []
    incidents.look(SITE, T0)  # a new receiver hears of what is open
    assert webhooks.counts()[0].waiting == 1


@pytest.mark.parametrize(("before", "after"), [(("error", "warning"), ("error",)), (("error",), ("warning", "error"))])
async def test_other_severities_are_the_same_receiver(
    store: Store, receiver: Receiver, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """What waits is told, what is open is not told twice."""
    webhooks, incidents = make(store, receiver.url, severities=before)
    async with sending(webhooks):
        incidents.on_alert(KEY, JAM, T0)
        await receiver.heard(1)
        await until(lambda: webhooks.counts()[0].waiting == 0)
    incidents.on_alert(("t-2", "x"), JAM, T0)
    incidents.on_alert(("t-2", "x"), None, T0)
    webhooks, incidents = make(store, receiver.url, severities=after)
    incidents.look(SITE, T0)
    async with sending(webhooks):
        assert await receiver.heard(3) == ["incident.opened", "incident.opened", "incident.resolved"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
    assert [receiver.data(n)["table"] for n in range(3)] == ["bac-12", "t-2", "t-2"]


async def test_of_too_many_the_oldest_go_and_that_is_told(store: Store, receiver: Receiver) -> None:
    receiver.answer = None
    webhooks, incidents = make(store, receiver.url, most=10, timeout=0.05)
    async with sending(webhooks):
        for number in range(5):
            incidents.on_alert((f"t-{number}", "x"), JAM, T0)
        await receiver.heard(1)
        for number in range(5, 25):
            incidents.on_alert((f"t-{number}", "x"), JAM, T0)
        assert webhooks.counts()[0].waiting == 10
        assert webhooks.counts()[0].dropped == 16
    receiver.requests.clear()
    receiver.answer = b"HTTP/1.1 200 OK\r\n\r\n"
    webhooks, incidents = make(store, receiver.url, most=10)
    async with sending(webhooks):
        assert await receiver.heard(10) == ["webhook.dropped"] + ["incident.opened"] * 9
    assert receiver.data(0) == {"site": "lisboa", "dropped": 16}
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 10


async def test_an_answer_that_comes_after_its_message_was_dropped_takes_no_other(
    store: Store, receiver: Receiver
) -> None:
    receiver.open_gate.clear()
    webhooks, incidents = make(store, receiver.url, most=3)
    async with sending(webhooks):
        incidents.on_alert(("t-0", "x"), JAM, T0)
        await receiver.heard(1)
        for number in range(1, 6):
            incidents.on_alert((f"t-{number}", "x"), JAM, T0)
        receiver.open_gate.set()
        heard = await receiver.heard(4)
        assert heard == ["incident.opened", "webhook.dropped", "incident.opened", "incident.opened"]
        await until(lambda: webhooks.counts()[0].waiting == 0)
    assert receiver.data(1)["dropped"] == 4


def test_a_store_that_cannot_be_written_fills_no_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    webhooks, incidents = make(store, "http://127.0.0.1:9/", most=10)

    def full() -> None:
        raise BadStore("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(store, "write", full)
        for number in range(25):
            incidents.on_alert((f"t-{number}", "x"), JAM, T0)
    incidents.look(SITE, T0)
    assert (webhooks.counts()[0].waiting, webhooks.counts()[0].dropped) == (10, 15)


# ---- the configuration


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/x",
        "http:///x",
        "http://user:s3cr3t@example.org/",
        "http://example.org:99999/s3cr3t",
        "http://example.org/s3cr3t\r\nx: y",
        "http://example.org/s3cr3té",
        "https://desk..example.org/s3cr3t",
        "https://.example.org/s3cr3t",
        f"https://{'x' * 64}.example.org/s3cr3t",
        "",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_being_named(store: Store, url: str) -> None:
    with pytest.raises(BadWebhook, match=r"^console\.webhook 1: ") as caught:
        make(store, url)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("text", ["short", "whsec_not base64!", "whsec_c2hvcnQ="])
def test_a_key_that_cannot_be_used_is_refused_without_being_named(store: Store, tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    with pytest.raises(BadWebhook) as caught:
        make(store, "http://example.org/", str(path))
    assert text.removeprefix("whsec_") not in str(caught.value).replace("shorter", "")
    with pytest.raises(BadWebhook, match="cannot be read"):
        make(store, "http://example.org/", str(tmp_path / "nothing"))


def test_the_same_receiver_twice_is_refused(store: Store) -> None:
    one = Webhook(url="http://example.org/")
    with pytest.raises(BadWebhook, match="twice"):
        Webhooks(store, [one, one], "lisboa", lambda: T0)
