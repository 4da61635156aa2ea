"""Webhooks: report incidents to receivers by POST, in order and at least once, signed by Standard Webhooks.

The store is an outbox: a message stays in it until its receiver answers 2xx, and the next one waits for it.
`webhook-id` stays the same when a message is sent again; receivers deduplicate by it. Logs contain no address (it may
be a secret), no key and no answer.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import os
import secrets
import ssl
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
import structlog
from msgspec import Struct

from daemon import logs
from daemon.config.model import Webhook
from daemon.console.alerts.records import Incident, time_of
from daemon.console.site.store import BadStore, Store
from daemon.journal.rows import micros_of

if TYPE_CHECKING:
    import httpx

__all__ = ["BadWebhook", "Counts", "Webhooks", "signature"]

MOST = 10_000
TIMEOUT = 10.0
FIRST, LONGEST = 5.0, 600.0
"""Backoff in seconds before a message is sent again: the first and the longest; doubled each time."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS webhook_message (
    n INTEGER PRIMARY KEY AUTOINCREMENT, hook TEXT NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL,
    made INTEGER NOT NULL, dropped INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS webhook_message_by_hook ON webhook_message (hook, n);
CREATE TABLE IF NOT EXISTS webhook_told (
    hook TEXT NOT NULL, incident INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (hook, incident)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS webhook_told_as (
    hook TEXT NOT NULL, incident INTEGER NOT NULL, severity TEXT NOT NULL, code TEXT NOT NULL,
    PRIMARY KEY (hook, incident)
) STRICT, WITHOUT ROWID;
"""
_NOTIFIED = (
    "SELECT incident, state, severity, code "
    "FROM webhook_told JOIN webhook_told_as USING (hook, incident) WHERE hook = ?"
)

_INSERT = "INSERT INTO webhook_message (hook, id, body, made, dropped) VALUES (?,?,?,?,?)"

# Both libraries log addresses and headers at their lower levels.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)

State: TypeAlias = Literal["open", "acknowledged"]


class BadWebhook(Exception):
    """A configured webhook cannot be used. The message names it and the reason, but no secret."""


class _Failed(Exception):
    """The receiver did not accept a message. The text gives the reason and quotes nothing from the receiver."""


class _Notified(Struct, frozen=True):
    """The state of an incident as last reported to a receiver."""

    state: State
    severity: str
    code: str

    def is_better_than(self, one: Incident) -> bool:
        """Whether the incident is worse now, or as grave with another code."""
        if self.severity == one.severity:
            return self.code != one.code
        return one.severity == "error"


class Counts(Struct, frozen=True):
    """Metrics of one webhook; `age`: seconds since its oldest waiting message was made."""

    name: str
    waiting: int
    age: float
    sent: int
    failed: int
    dropped: int


class _Message(Struct, frozen=True):
    """One message of the outbox."""

    n: int
    id: str
    body: bytes
    made: datetime


def host_of(number: int, text: str) -> str:
    """The host in the url of webhook `number`. Raises BadWebhook."""
    try:
        url = urlsplit(text)
        host, _ = url.hostname or "", url.port
    except ValueError as error:
        raise BadWebhook(f"console.webhook {number}: its url is invalid") from error
    if url.scheme not in ("http", "https") or not host:
        raise BadWebhook(f"console.webhook {number}: its url must begin with http:// or https:// and name a host")
    if url.username is not None:
        raise BadWebhook(f"console.webhook {number}: no user or password belongs in its url; use secret_file")
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    if not (target + host).isascii() or not (target + host).isprintable() or " " in target:
        raise BadWebhook(f"console.webhook {number}: its url must be written in ASCII, with %XX for the rest")
    try:
        host.encode("idna")  # as the resolver does
    except UnicodeError as error:
        remedy = "each part between two dots has 1 to 63 characters"
        raise BadWebhook(f"console.webhook {number}: the host in its url is not a valid name; {remedy}") from error
    return host


class _Hook:
    """One receiver. `name` is its number in the configuration, `key` its key in the store."""

    def __init__(self, number: int, config: Webhook) -> None:
        """Raises BadWebhook."""
        self.name = str(number)
        self.severities = config.severities
        self.key = _key(config.url)
        self.url = config.url
        self.host = host_of(number, config.url)
        self.secret = _secret(number, config.secret_file)
        self.wake = asyncio.Event()
        self.notified: dict[int, _Notified] = {}
        self.waiting = 0
        self.sent = self.failed = self.dropped = 0
        self.oldest: datetime | None = None


class _Pending(Struct, frozen=True):
    """A message to be written, and the incident's new state at the receiver; None: the incident has ended there."""

    hook: _Hook
    incident: int
    notified: _Notified | None
    id: str
    body: bytes
    made: datetime


class Webhooks:
    """All receivers and their outbox."""

    def __init__(
        self,
        store: Store,
        config: Sequence[Webhook],
        site: str,
        now: Callable[[], datetime],
        *,
        most: int = MOST,
        first: float = FIRST,
        longest: float = LONGEST,
        timeout: float = TIMEOUT,
        inside: Callable[[Incident], Sequence[str]] = lambda _one: (),
    ) -> None:
        """Read what was reported and what waits. `inside`: the devices that an incident includes.

        Raises BadWebhook, BadStore.
        """
        self._inside = inside
        self._store = store
        self._site = site
        self._now = now
        self._most = most
        self._first = first
        self._longest = longest
        self._timeout = timeout
        self._hooks = [_Hook(number, one) for number, one in enumerate(config, 1)]
        self._pending: deque[_Pending] = deque(maxlen=most)
        self._lost: dict[str, int] = {}
        self._log: structlog.typing.FilteringBoundLogger = logs.get(console="webhooks")
        if len({hook.key for hook in self._hooks}) < len(self._hooks):
            raise BadWebhook("console.webhook: it has one url twice; give all severities to one of them")
        store.has(_SCHEMA)
        self._forget_others()
        for hook in self._hooks:
            found = store.db.execute(_NOTIFIED, (hook.key,)).fetchall()
            hook.notified = {n: _Notified(state, severity, code) for n, state, severity, code in found}
            self._count(hook)

    def _forget_others(self) -> None:
        """Delete the rows of receivers that were removed from the configuration."""
        known = {hook.key for hook in self._hooks}
        with self._store.write() as db:
            for table in ("webhook_message", "webhook_told", "webhook_told_as"):
                for (key,) in db.execute(f"SELECT DISTINCT hook FROM {table}").fetchall():  # noqa: S608 - ours
                    if key not in known:
                        db.execute(f"DELETE FROM {table} WHERE hook = ?", (key,))  # noqa: S608

    def counts(self) -> list[Counts]:
        """The metrics of each webhook."""
        now = self._now()
        return [
            Counts(
                hook.name,
                hook.waiting,
                max((now - hook.oldest).total_seconds(), 0.0) if hook.oldest is not None else 0.0,
                hook.sent,
                hook.failed,
                hook.dropped,
            )
            for hook in self._hooks
        ]

    # ---- incidents to report

    def follow(self, incident: Incident, *, hidden: bool, settled: bool, ahead: Collection[str], now: datetime) -> None:
        """Report each state once, and again when the incident becomes worse, or another code as grave.

        Not opened at a receiver: a hidden incident, and one ranked after another of its table that the receiver gets.
        An incident opened there is also closed there.
        """
        for hook in self._hooks:
            notified = hook.notified.get(incident.n)
            match incident.state:
                case "resolved":
                    if notified is not None and settled:
                        self._queue(hook, "resolved", incident, None, now)
                case _ if hidden:
                    pass
                case state:
                    if notified is None:
                        new = incident.severity in hook.severities and not any(one in hook.severities for one in ahead)
                    else:
                        new = (notified.state == "acknowledged" and state == "open") or notified.is_better_than(
                            incident
                        )
                    if new:
                        notified = self._queue(hook, "opened", incident, "open", now)
                    if notified is not None and notified.state == "open" and state == "acknowledged":
                        self._queue(hook, "acknowledged", incident, "acknowledged", now)

    def notified(self) -> Iterable[int]:
        """The incidents that were opened at some receiver and not yet closed there."""
        return {n for hook in self._hooks for n in hook.notified}

    def _queue(
        self, hook: _Hook, kind: str, incident: Incident, state: State | None, now: datetime
    ) -> _Notified | None:
        data: dict[str, Any] = {
            "incident": f"{self._site}:{incident.began:%Y%m%dT%H%M%SZ}:{incident.n}",
            "site": self._site,
            "table": incident.table,
            "device": incident.device,
            "code": incident.code,
            "severity": incident.severity,
            "text": incident.text,
            "remedy": incident.remedy,
            "state": incident.state,
            "began": incident.began,
            "times": incident.times,
        }
        if devices := self._inside(incident):
            data["inside"] = devices
        if incident.acknowledged is not None:
            data |= {"by": incident.by, "acknowledged": incident.acknowledged, "note": incident.note}
        if incident.ended is not None:
            data["ended"] = incident.ended
        notified = None if state is None else _Notified(state, incident.severity, incident.code)
        if notified is None:
            del hook.notified[incident.n]
        else:
            hook.notified[incident.n] = notified
        if len(self._pending) == self._pending.maxlen:  # the store is not writable: the oldest is dropped
            self._pending[0].hook.dropped += 1
        self._pending.append(_Pending(hook, incident.n, notified, _id(), _body(f"incident.{kind}", now, data), now))
        return notified

    def waiting(self) -> bool:
        """Whether messages wait to be written to the store."""
        return bool(self._pending)

    def write(self, db: Connection) -> None:
        """Write the pending messages in the transaction `db`. Above the limit one message replaces the oldest."""
        for one in self._pending:
            key = one.hook.key
            if one.notified is None:
                for table in ("webhook_told", "webhook_told_as"):
                    db.execute(f"DELETE FROM {table} WHERE hook = ? AND incident = ?", (key, one.incident))  # noqa: S608
            else:
                state, severity, code = one.notified.state, one.notified.severity, one.notified.code
                db.execute("INSERT OR REPLACE INTO webhook_told VALUES (?,?,?)", (key, one.incident, state))
                values = (key, one.incident, severity, code)
                db.execute("INSERT OR REPLACE INTO webhook_told_as VALUES (?,?,?,?)", values)
            db.execute(_INSERT, (key, one.id, one.body, micros_of(one.made), 0))
        for hook in {id(one.hook): one.hook for one in self._pending}.values():
            (count,) = db.execute("SELECT count(*) FROM webhook_message WHERE hook = ?", (hook.key,)).fetchone()
            if count > self._most:
                self._drop(db, hook, count - self._most + 1)

    def _drop(self, db: Connection, hook: _Hook, most: int) -> None:
        """Replace the `most` oldest messages by one with their count, under a new id."""
        rows = db.execute(
            "SELECT n, dropped, made FROM webhook_message WHERE hook = ? ORDER BY n LIMIT ?", (hook.key, most)
        ).fetchall()
        lost = sum(dropped or 1 for _, dropped, _ in rows)
        self._lost[hook.name] = self._lost.get(hook.name, 0) + sum(not dropped for _, dropped, _ in rows)
        first, last, made = rows[0][0], rows[-1][0], rows[0][2]
        db.execute("DELETE FROM webhook_message WHERE hook = ? AND n <= ?", (hook.key, last))
        body = _body("webhook.dropped", self._now(), {"site": self._site, "dropped": lost})
        db.execute("INSERT INTO webhook_message VALUES (?,?,?,?,?,?)", (first, hook.key, _id(), body, made, lost))

    def written(self) -> None:
        """The transaction is durable: start sending."""
        hooks = {id(one.hook): one.hook for one in self._pending}.values()
        self._pending.clear()
        for hook in hooks:
            if lost := self._lost.pop(hook.name, 0):
                hook.dropped += lost
                self._log.warning("webhook.dropped", webhook=hook.name, host=hook.host, dropped=lost)
            self._count(hook)
            hook.wake.set()

    def _count(self, hook: _Hook) -> None:
        hook.waiting, oldest = self._store.db.execute(
            "SELECT count(*), min(made) FROM webhook_message WHERE hook = ?", (hook.key,)
        ).fetchone()
        hook.oldest = None if oldest is None else time_of(oldest)

    # ---- sending

    async def run(self) -> None:
        """Send until cancelled; each receiver has its own task."""
        if not self._hooks:
            return
        import httpx  # a console without webhooks does not need it

        # Each request has its own connection, without proxies or redirects.
        tls = ssl.create_default_context() if any(hook.url.startswith("https:") for hook in self._hooks) else False
        limits = httpx.Limits(max_keepalive_connections=0)
        async with (
            httpx.AsyncClient(
                verify=tls, limits=limits, timeout=self._timeout, trust_env=False, headers={"user-agent": "feltd"}
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            for hook in self._hooks:
                group.create_task(self._serve(client, hook))

    async def _serve(self, client: "httpx.AsyncClient", hook: _Hook) -> None:
        delay, failing = self._first, False
        while True:
            hook.wake.clear()
            message = self._first_of(hook)
            if message is None:
                await hook.wake.wait()
                continue
            try:
                await self._post(client, hook, message)
                self._sent(hook, message)
            except (_Failed, BadStore) as error:  # a message that cannot be deleted is sent again
                hook.failed += 1
                if not failing:
                    self._log.warning(
                        "webhook.failing",
                        webhook=hook.name,
                        host=hook.host,
                        reason=str(error),
                        remedy="the notifications wait; look at the receiver",
                    )
                failing = True
                await asyncio.sleep(delay)
                delay = min(delay * 2, self._longest)
            else:
                if failing:
                    self._log.info("webhook.back", webhook=hook.name, host=hook.host)
                delay, failing = self._first, False

    def _first_of(self, hook: _Hook) -> _Message | None:
        row = self._store.db.execute(
            "SELECT n, id, body, made FROM webhook_message WHERE hook = ? ORDER BY n LIMIT 1", (hook.key,)
        ).fetchone()
        return None if row is None else _Message(row[0], row[1], row[2], time_of(row[3]))

    def _sent(self, hook: _Hook, message: _Message) -> None:
        hook.sent += 1
        with self._store.write() as db:
            db.execute("DELETE FROM webhook_message WHERE id = ?", (message.id,))
        self._count(hook)

    async def _post(self, client: "httpx.AsyncClient", hook: _Hook, message: _Message) -> None:
        """Raises _Failed unless the answer is 2xx. Redirects are refused: messages go only to configured addresses."""
        import httpx

        timestamp = int(self._now().timestamp())
        headers = {
            "content-type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(timestamp),
        }
        if hook.secret:
            headers["webhook-signature"] = signature(hook.secret, message.id, timestamp, message.body)
        try:
            async with (
                asyncio.timeout(self._timeout),
                client.stream("POST", hook.url, content=message.body, headers=headers) as answer,
            ):
                status = answer.status_code  # the rest of an answer is not read
        except (TimeoutError, httpx.TimeoutException) as error:
            raise _Failed(f"no answer within {self._timeout:g} s") from error
        except httpx.RemoteProtocolError as error:
            raise _Failed("its answer was not HTTP") from error
        except httpx.TransportError as error:
            raise _Failed(_reason(error)) from error
        except (httpx.InvalidURL, ValueError) as error:  # an invalid host name
            raise _Failed("its host is not a valid name") from error
        if not 200 <= status <= 299:
            raise _Failed(f"its answer was {status}")


def _reason(error: BaseException) -> str:
    """The first error of the operating system or TLS. Messages of httpx may contain the address."""
    said = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"TLS: {cause.reason}"
        if isinstance(cause, OSError) and cause.strerror:
            # By errno where there is one: asyncio's messages contain address and port.
            said = os.strerror(cause.errno) if cause.errno is not None and cause.errno > 0 else cause.strerror
        cause = cause.__cause__ or cause.__context__
    return said


def signature(secret: bytes, id_: str, timestamp: int, body: bytes) -> str:
    """`webhook-signature`: HMAC-SHA256 over id, seconds and body."""
    mac = hmac.new(secret, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(mac.digest()).decode("ascii")


def _secret(number: int, file: str) -> bytes:
    """The key: decoded from `whsec_` and base64 (Standard Webhooks), or else the text itself."""
    if not file:
        return b""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadWebhook(f"console.webhook {number}: {file} cannot be read") from error
    if not text.startswith("whsec_"):
        key = text.encode()
    else:
        try:
            key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
        except binascii.Error as error:
            raise BadWebhook(f"console.webhook {number}: what follows whsec_ in {file} is not base64") from error
    if len(key) < 24:
        raise BadWebhook(f"console.webhook {number}: the key in {file} is shorter than 24 bytes")
    return key


def _key(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def _id() -> str:
    return f"msg_{secrets.token_hex(12)}"


def _body(kind: str, now: datetime, data: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "timestamp": now, "data": data})
