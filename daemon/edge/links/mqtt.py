"""Links to devices that speak MQTT: a received message is a line to read, a written line is published.

    mqtt://host[:port]/?hear=ikg/sicbo/Billy-III/says&hear=…&say=ikg/sicbo/Billy-III/listens[&username=…&password_file=…]
                       [&version=3.1.1][&ca_file=…]

A `*` as one level of `hear` and of `say` is the name of one of several senders: it is in front of each line that is
read, followed by a space, and of each line that is written. The unread messages of each name are bounded, so that a
sender that publishes too much loses its own messages only.

The payload's line breaks become spaces, and one line break ends it, so that a device's codec is a line codec like all
others. Retained messages are old answers and are ignored. The broker is the device's, or ours.
"""

import asyncio
import contextlib
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Literal, cast
from urllib.parse import parse_qs, urlsplit

from daemon.broker.connection import Connect, connect
from daemon.broker.session import BrokerLost, BrokerRefused, Message, Session
from daemon.config.model import Mqtt
from daemon.edge.links.link import BadUrl, Tap
from protocols.contract.topics import is_id
from protocols.link import Chunk, DeviceRefused, LinkLost

__all__ = ["MqttLink", "check", "open_link"]

PORT = 1883
MAX_TOPIC = 1024
MAX_LINE = 65536
MAX_WAITING = 262_144
MAX_NAMED_LINE = 8192
MAX_NAMED_WAITING = 65536  # of one name
MAX_NAMES_WAITING = 100 * MAX_NAMED_WAITING  # of all
ACKNOWLEDGED_WITHIN = 10.0  # seconds to wait for an acknowledgement
SPACES = bytes.maketrans(b"\r\n", b"  ")
KNOWN = "hear, say, username, password_file, version, ca_file"
USAGE = "write mqtt://host/?hear=TOPIC&say=TOPIC"


class _Target:
    """A parsed URL."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise BadUrl(f"{url}: {error}") from error
        if "@" in parts.netloc:
            # The URL is not repeated, because it may hold a password.
            raise BadUrl("an mqtt: URL holds no name and password; write username=… and password_file=… in its query")
        if parts.scheme != "mqtt" or not host or port == 0 or parts.path not in {"", "/"} or parts.fragment:
            raise BadUrl(f"{url}: {USAGE}")
        try:
            host.encode("idna")
        except UnicodeError as error:
            raise BadUrl(f"{url}: {host} is no host name") from error
        query = parse_qs(parts.query, keep_blank_values=True)
        self.hear = tuple(dict.fromkeys(query.pop("hear", [])))
        say = query.pop("say", [])
        if not self.hear or len(say) != 1:
            raise BadUrl(f"{url}: hear=… names at least one topic, say=… exactly one; {USAGE}")
        self.say = say[0]
        for topic in (*self.hear, self.say):
            if not _is_topic(topic):
                raise BadUrl(f"{url}: {topic!r} is no topic: no + # or control characters, 1 to {MAX_TOPIC} bytes")
        self.level = self.say.split("/").index("*") if "*" in self.say.split("/") else None
        """The level of the sender's name in a topic; None where there is one sender only."""
        named = {topic.split("/").index("*") if "*" in topic.split("/") else None for topic in self.hear}
        if named != {self.level}:
            raise BadUrl(f"{url}: * is the name of a sender, at the same level of hear=… and of say=…")
        if self.say in self.hear:
            raise BadUrl(f"{url}: messages published on {self.say} would be received as messages of the device")
        one = {key: values[-1] for key, values in query.items()}
        username, password_file = one.pop("username", ""), one.pop("password_file", "")
        version, ca_file = one.pop("version", "5"), one.pop("ca_file", "")
        if one:
            raise BadUrl(f"{url}: unknown {', '.join(one)}; known: {KNOWN}")
        if version not in {"5", "3.1.1"}:
            raise BadUrl(f"{url}: version is 5 or 3.1.1")
        if password_file and not username:
            raise BadUrl(f"{url}: a password_file needs a username")
        self.where = f"{host}:{port or PORT}"
        self.settings = Mqtt(
            host=host,
            port=port or PORT,
            version=cast("Literal['5', '3.1.1']", version),
            username=username,
            password_file=password_file,
            ca_file=ca_file,
        )


def _is_topic(topic: str) -> bool:
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        return False
    named = "*" not in topic or topic.split("/").count("*") == topic.count("*") == 1
    return 0 < size <= MAX_TOPIC and not set(topic) & {"+", "#"} and topic.isprintable() and named


def check(url: str) -> None:
    """Raise BadUrl for an invalid URL."""
    _Target(url)


def broker_of(url: str) -> Mqtt:
    """The broker of a link. Raises BadUrl."""
    return _Target(url).settings


def topics_of(url: str) -> tuple[tuple[str, ...], str]:
    """The topics that a link reads, and the one that it writes. Raises BadUrl."""
    target = _Target(url)
    return target.hear, target.say


def has_names(url: str) -> bool:
    """Whether the lines of a link begin with the name of their sender. Raises BadUrl."""
    return _Target(url).level is not None


class MqttLink:
    """One connection to a broker as a link to one device. The buffer is bounded: an overflow is a lost link."""

    tap: Tap | None = None

    def __init__(self, session: Session, target: _Target, now: Callable[[], datetime]) -> None:
        """Take the session's messages as they arrive, to stamp them and to ignore retained ones."""
        self._session = session
        self._target = target
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[str, Chunk]] = deque()
        self._waiting_bytes = 0
        self._waiting_of: Counter[str] = Counter()
        self._line = b""
        self._lost: LinkLost | DeviceRefused | None = None
        self._reader: asyncio.Future[None] | None = None
        self.received_bytes = 0
        self.sent_bytes = 0
        session.deliver_to(self._received)  # its own queue stores no times of arrival

    def _received(self, message: Message) -> None:
        if message.retain:
            return
        longest, most, name = MAX_LINE, MAX_WAITING, ""
        if self._target.level is not None:
            longest, most, name = MAX_NAMED_LINE, MAX_NAMES_WAITING, message.topic.split("/")[self._target.level]
            if not is_id(name) or self._waiting_of[name] > MAX_NAMED_WAITING:
                return
        data = (f"{name} ".encode() if name else b"") + message.payload[:longest].translate(SPACES) + b"\n"
        if self._waiting_bytes + len(data) > most:
            self._end(LinkLost(f"more than {most} bytes wait: too much is published on {self._target.hear}"))
            return
        self._waiting.append((name, Chunk(data, self._now(), self._loop.time())))
        self._waiting_bytes += len(data)
        self._waiting_of[name] += len(data)
        self._wake()

    def _end(self, reason: LinkLost | DeviceRefused) -> None:
        self._lost = self._lost or reason
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _until_over(self, watch: asyncio.Task[None]) -> None:
        """The session has ended, as `watch` reports."""
        if not watch.cancelled() and (error := watch.exception()) is not None:
            self._end(_in_words(error, self._target))

    async def read(self) -> Chunk:
        """The next message as a line. Raises LinkLost, or DeviceRefused if the broker refuses our messages."""
        while not self._waiting:
            if self._lost is not None:
                raise self._lost
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        name, chunk = self._waiting.popleft()
        self._waiting_bytes -= len(chunk.data)
        self._waiting_of[name] -= len(chunk.data)
        if not self._waiting_of[name]:
            del self._waiting_of[name]
        self.received_bytes += len(chunk.data)
        if self.tap is not None:
            self.tap("in", chunk.at, chunk.data)
        return chunk

    def stamp(self) -> Chunk:
        """An empty chunk with the present time."""
        return Chunk(b"", self._now(), self._loop.time())

    async def write(self, data: bytes) -> None:
        """Publish each line that `data` completes, in order. Raises as `read`, and ValueError for an unfinished
        line beyond MAX_LINE.
        """
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > MAX_LINE:
            self._line = b""
            raise ValueError(f"a line of more than {MAX_LINE} bytes")
        for line in lines:
            if self._lost is not None:
                raise self._lost
            try:
                async with asyncio.timeout(ACKNOWLEDGED_WITHIN):
                    await self._session.publish(*self._addressed(line))
            except BrokerLost as error:
                self._end(_in_words(error, self._target))
                raise _in_words(error, self._target) from error
            except TimeoutError:
                self._end(LinkLost(f"{self._target.where}: the broker acknowledges nothing"))
                assert self._lost is not None
                raise self._lost from None
            self.sent_bytes += len(line) + 1
            if self.tap is not None:
                self.tap("out", self._now(), line + b"\n")

    def _addressed(self, line: bytes) -> tuple[str, bytes]:
        """Topic and payload of a line."""
        if self._target.level is None:
            return self._target.say, line
        name, _, payload = line.partition(b" ")
        return self._target.say.replace("*", name.decode("ascii")), payload


def _in_words(error: BaseException, target: _Target) -> LinkLost | DeviceRefused:
    """A broker's error as a link's."""
    cause = error.__cause__
    if isinstance(error, BrokerRefused):
        return DeviceRefused(f"{target.where}: {error}")
    if isinstance(cause, OSError) and cause.filename in {target.settings.password_file, target.settings.ca_file}:
        return DeviceRefused(f"{error}: it cannot be read")
    return LinkLost(f"{target.where}: {error or type(error).__name__}")


@contextlib.asynccontextmanager
async def open_link(
    url: str, now: Callable[[], datetime], connecting: Connect | None = None
) -> AsyncIterator[MqttLink]:
    """The link under `url`, closed at the end. Raises LinkLost if no broker answers, DeviceRefused if access is
    denied. `connecting` replaces `connect` in simulations.
    """
    target = _Target(url)
    connect_to = connecting or connect
    identifier = f"feltd-{secrets.token_hex(8)}"  # unique: a broker ends a connection with the same one
    async with contextlib.AsyncExitStack() as stack:
        try:
            session = await stack.enter_async_context(connect_to(target.settings, identifier, None))
            link = MqttLink(session, target, now)
            await session.subscribe(*(topic.replace("*", "+") for topic in target.hear))
        except BrokerLost as error:
            trouble = _in_words(error, target)
            if isinstance(trouble, LinkLost):
                raise LinkLost(f"{trouble}; check that the broker runs, and host and port of the url") from error
            raise trouble from error
        watch = asyncio.create_task(session.until_lost())
        watch.add_done_callback(link._until_over)  # noqa: SLF001 - a helper of this class
        try:
            yield link
        finally:
            watch.cancel()
            await asyncio.wait([watch])
