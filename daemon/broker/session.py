"""MQTT, behind one small class: aiomqtt connects and subscribes, one sender publishes in order with a window.

What the libraries leave open is closed here. A publish in flight when the broker dies is unknown: it is sent again with
the same id, and readers dedupe. A publish that an access list refuses returns as success in aiomqtt: the reason code is
read. How many publishes the broker takes at once (Receive Maximum), neither library looks at: the window is no larger.
Each connection is fresh (clean start), so that no old message is sent behind our back.
"""

import asyncio
import contextlib
import hmac
import logging
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, cast

import aiomqtt
import msgspec
import structlog
from msgspec import Struct
from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from daemon import logs
from daemon.config.model import Mqtt
from protocols.contract.topics import CONTENT_TYPE

__all__ = [
    "UNREADABLE",
    "BrokerLost",
    "BrokerRefused",
    "Connect",
    "Message",
    "Session",
    "Will",
    "connect",
    "last_word",
    "leaving",
    "stay_connected",
]

WINDOW = 64
KEEPALIVE = 15
TIMEOUT = 5.0
WILL_DELAY = 5
AT_ONCE = 1.0
TRIAL = 10.0
GIVE_UP = 0.5
NEVER = float("-inf")
# More than a record of TLS: what was decrypted and not taken would wake nobody.
READ = 65_536
# The first byte of a message, but for its last bits: of QoS 2 there are none. What acknowledges one, before its number.
PLAIN, PLAIN_BITS, SURE, RETAINED = 0x30, 0xF4, 0x02, 0x01
PUBACK = b"\x40\x02"
# Messages of QoS 0 that may wait for the socket.
MOST_TOLD = 16
MAX_WAITING = 20_000
MAX_WAITING_BYTES = 64 * 1024 * 1024
# What the bytes of somebody else may raise when they are decoded (msgspec).
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SILENT = logging.getLogger("feltd.mqtt.silent")
_SILENT.disabled = True  # what it would say is said once, by stay_connected


class BrokerLost(Exception):
    """The broker is gone, or refuses us. The message says why."""


class BrokerRefused(BrokerLost):
    """The broker is there and will not let us write or read what we must. The message says what."""


class Message(Struct, frozen=True):
    """One message received. `reply_to` and `correlation` are MQTT 5's; nothing needed rests on them."""

    topic: str
    payload: bytes
    retain: bool = False
    reply_to: str = ""
    correlation: bytes = b""


class Will(Struct, frozen=True):
    """What the broker says for us when we vanish."""

    topic: str
    payload: bytes


_EVENT = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
_EVENT.ContentType = CONTENT_TYPE
_EVENT_PACKED: bytes = _EVENT.pack()  # type: ignore[no-untyped-call]


class _Packed(Properties):
    """The properties of every event: always the same bytes, and packing them anew costs a tenth of a publish."""

    def pack(self) -> bytes:
        return _EVENT_PACKED


class Session:
    """One connection."""

    def __init__(
        self, client: aiomqtt.Client, version5: bool, reader: "_Reader | None" = None, window: int = WINDOW
    ) -> None:
        """Take over publishing and receiving from the client: its own ways cost two tasks a message."""
        self._client = client
        self._reader = reader
        self._window = window
        if reader is not None and not version5:
            reader.hear = self._keep
        self._paho: paho.Client = client._client  # noqa: SLF001 - the documented way to the reason codes
        self._paho.on_publish = self._on_publish
        self._hear: Callable[[Message], None] = self._keep
        self._paho.on_message = self._on_message
        # aiomqtt registers a turn of the loop later, when the socket may be closed, or another's with the same number.
        self._paho.on_socket_register_write = self._on_register_write
        self._loop = asyncio.get_running_loop()
        self._flying: dict[int, tuple[str, Callable[[], None] | None, bool, Callable[[str], None] | None]] = {}
        self._room = asyncio.Event()
        self._room.set()
        self._landed = asyncio.Event()
        self._waiting: deque[Message] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._refused: str | None = None
        self._over = asyncio.Event()
        self._told: deque[paho.MQTTMessageInfo] = deque()
        self._properties: Properties | None = None
        if version5:
            self._properties = _Packed(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        self._lost: asyncio.Future[Any] = client._disconnected  # noqa: SLF001 - what its own iterator waits for
        self._lost.add_done_callback(self._ended)

    def _ended(self, _: object) -> None:
        """Nobody may wait for what cannot come any more."""
        for event in (self._over, self._room, self._landed):
            event.set()

    def _still_of_use(self) -> None:
        """Raises BrokerRefused, BrokerLost."""
        if self._refused is not None:
            raise BrokerRefused(self._refused)
        if self._lost.done():
            error = None if self._lost.cancelled() else self._lost.exception()
            raise BrokerLost(str(error or "the broker closed the connection")) from error

    # ---- out

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        correlation: bytes = b"",
        acknowledged: Callable[[], None] | None = None,
        vital: bool = True,
        refused: Callable[[str], None] | None = None,
        event: bool = False,
    ) -> None:
        """Send as soon as there is room; return once it is on its way. Raises as `until_room` and `send`."""
        await self.until_room()
        self.send(
            topic,
            payload,
            retain=retain,
            correlation=correlation,
            acknowledged=acknowledged,
            vital=vital,
            refused=refused,
            event=event,
        )

    @property
    def room(self) -> bool:
        """Whether one more message may be in flight."""
        return len(self._flying) < self._window and self._refused is None

    async def until_room(self) -> None:
        """Return when there is room. Raises BrokerRefused where an earlier message was refused; BrokerLost."""
        while len(self._flying) >= self._window:
            self._still_of_use()
            self._room.clear()
            await self._room.wait()
        self._still_of_use()

    def send(
        self,
        topic: str,
        payload: bytes,
        *,
        retain: bool = False,
        correlation: bytes = b"",
        acknowledged: Callable[[], None] | None = None,
        vital: bool = True,
        refused: Callable[[str], None] | None = None,
        event: bool = False,
    ) -> None:
        """Send with QoS 1, in the order of the calls. `acknowledged` is called in order. Raises BrokerLost.

        `vital`: where the broker refuses it, the session is of no use. Else `refused` is told why.
        `event`: it is a CloudEvent, and says so.
        """
        properties = self._properties if event else None
        if correlation and self._properties is not None:
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            properties.CorrelationData = correlation
        info = self._paho.publish(topic, payload, 1, retain, properties)
        if info.rc != paho.MQTT_ERR_SUCCESS:
            raise BrokerLost(paho.error_string(info.rc))
        self._flying[info.mid] = topic, acknowledged, vital, refused

    def tell(self, topic: str, payload: bytes) -> bool:
        """Send with QoS 0 what may be lost. False, and nothing was sent, while others wait. Raises BrokerLost."""
        while self._told and self._told[0].is_published():
            self._told.popleft()
        if len(self._told) >= MOST_TOLD:
            return False
        info = self._paho.publish(topic, payload, 0)
        if info.rc != paho.MQTT_ERR_SUCCESS:
            raise BrokerLost(paho.error_string(info.rc))
        self._told.append(info)
        return True

    async def drained(self) -> None:
        """Return when nothing is in flight. Raises BrokerRefused where a message was refused; BrokerLost."""
        while self._flying:
            self._still_of_use()
            self._landed.clear()
            await self._landed.wait()
        if self._refused is not None:
            raise BrokerRefused(self._refused)

    @property
    def flying(self) -> int:
        """How many messages await their acknowledgement."""
        return len(self._flying)

    def _on_publish(self, _client: Any, _data: Any, mid: int, reason: Any, _properties: Any) -> None:
        topic, acknowledged, vital, refused = self._flying.pop(mid, ("", None, True, None))
        if reason.is_failure:
            if vital:
                self._refused = f"the broker refuses {topic}: {reason}; allow this client to write there"
                self._over.set()
            elif refused is not None:
                refused(str(reason))
        elif acknowledged is not None and self._refused is None:
            acknowledged()
        if len(self._flying) < self._window:
            self._room.set()
        if not self._flying or self._refused is not None:
            self._landed.set()

    def _on_register_write(self, _client: Any, _data: Any, sock: Any) -> None:
        self._loop.add_writer(sock.fileno(), self._paho.loop_write)

    # ---- in

    def unhurried(self, pause: float, most: int = READ) -> None:
        """Read only every so many seconds: who shows things to people need not wake for each message.

        `most`: bytes at a time, more than a record of TLS has.
        """
        if self._reader is not None:
            self._reader.pause = pause
            self._reader.most = most

    async def subscribe(self, *topics: str, qos: Literal[0, 1] = 1) -> None:
        """Hear of `topics`. Raises BrokerLost; BrokerRefused where the broker refuses one."""
        try:
            codes = await self._client.subscribe([(topic, int(qos)) for topic in topics])
        except aiomqtt.MqttError as error:  # it went away meanwhile, or takes too long
            raise BrokerLost(str(error)) from error
        _still_wanted()
        for topic, code in zip(topics, codes, strict=True):
            if getattr(code, "is_failure", code == 128):
                raise BrokerRefused(f"the broker refuses to let us read {topic}: {code}; allow this client to read it")

    async def glance(self, *topics: str) -> None:
        """Hear of what stands under `topics`, and of nothing that comes after. Raises as `subscribe`."""
        await self.subscribe(*topics)
        try:
            await self._client.unsubscribe(list(topics))
        except aiomqtt.MqttError as error:
            raise BrokerLost(str(error)) from error
        _still_wanted()

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        self._hear(_message(message))

    def heard_by(self, hear: Callable[[Message], None]) -> None:
        """From now on `hear` is given each message when it arrives, and `messages` none."""
        self._hear = hear
        if self._reader is not None and self._reader.hear is not None:
            self._reader.hear = hear

    def _keep(self, message: Message) -> None:
        self._waiting_bytes += len(message.payload)
        while self._waiting and (len(self._waiting) >= MAX_WAITING or self._waiting_bytes > MAX_WAITING_BYTES):
            # A gap, which the reader finds by seq and has replayed.
            self._waiting_bytes -= len(self._waiting.popleft().payload)
        self._waiting.append(message)
        self._arrived.set()

    async def messages(self, most: int = 500) -> list[Message]:
        """What arrived, at least one, in order."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._waiting_bytes -= sum(len(message.payload) for message in taken)
        return taken

    async def until_lost(self) -> None:
        """Raise BrokerLost when the connection ends, BrokerRefused when it is of no use."""
        await self._over.wait()
        if self._refused is not None:
            raise BrokerRefused(self._refused)
        try:
            await asyncio.shield(self._lost)
        except aiomqtt.MqttError as error:
            raise BrokerLost(str(error)) from error
        except (OSError, ValueError) as error:
            raise BrokerLost(str(error)) from error
        raise BrokerLost("the broker closed the connection")


def _message(message: paho.MQTTMessage) -> Message:
    properties = message.properties
    return Message(
        message.topic,
        bytes(message.payload),
        bool(message.retain),
        getattr(properties, "ResponseTopic", ""),
        getattr(properties, "CorrelationData", b""),
    )


async def last_word(session: Session, topic: str, payload: bytes) -> None:
    """Leave `payload` under `topic` where the broker still hears it, however a session ends: the will is taken back."""
    with contextlib.suppress(BrokerLost, TimeoutError):
        session.send(topic, payload, retain=True)  # now: a slow broker may have no room for long
        await asyncio.wait_for(session.drained(), 1.0)


@contextlib.asynccontextmanager
async def leaving(session: Session, topic: str, payload: bytes) -> AsyncIterator[None]:
    """Leave the last word at the end. What failed goes on: the end of a broker just then must not take its place.

    Else a disk that took no more would be taken for a lost broker, and the process would work on what it never wrote.
    """
    try:
        yield
    except BaseException:
        with contextlib.suppress(asyncio.CancelledError):
            await last_word(session, topic, payload)
        raise
    await last_word(session, topic, payload)


def _password(settings: Mqtt) -> str | None:
    if not settings.password_file:
        return None
    try:
        return Path(settings.password_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BrokerLost(f"{settings.password_file}: {error.strerror}") from error
    except UnicodeDecodeError as error:  # which tells a byte of it
        text = f"{settings.password_file}: the password is no UTF-8 text; write the file anew as UTF-8"
        raise BrokerLost(text) from error


def bound(identifier: str, password: str | None) -> str:
    """The client id for `identifier` that only somebody with the password can know; as it is where there is none.

    A broker ends the session of a client when another comes under its id, whatever user that is: a plain id would let
    each user end the session of every other. It is the same after a restart, which the delay of the will rests on.
    """
    if not identifier or not password:
        return identifier
    digest = hmac.digest(password.encode(), f"feltd client id {identifier}".encode(), "sha256")
    return f"{identifier}-{digest.hex()[:16]}"


class _TlsSocket(ssl.SSLSocket):
    """One whose handshake fails is closed: paho leaves it to the collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


def _tls(settings: Mqtt) -> ssl.SSLContext | None:
    """What to speak TLS with, where that is configured. Raises BrokerLost, which names the file."""
    if not settings.ca_file:
        return None
    files = [one for one in (settings.ca_file, settings.certificate, settings.key) if one]
    try:
        for one in files:  # OpenSSL does not say which it cannot read
            with Path(one).open("rb"):
                pass
        context = ssl.create_default_context(cafile=settings.ca_file)
        context.sslsocket_class = _TlsSocket
        if settings.certificate:
            context.load_cert_chain(settings.certificate, settings.key, password=_no_password)
    except ssl.SSLError as error:
        raise BrokerLost(f"{', '.join(files)}: no certificate as PEM, or the key of another, or locked") from error
    except OSError as error:
        raise BrokerLost(f"{error.filename}: {error.strerror}") from error
    return context


def _no_password() -> str:
    """Else OpenSSL asks whoever sits at the terminal."""
    return ""


def _still_wanted() -> None:
    """asyncio.wait_for of Python 3.11, which aiomqtt uses, drops a cancellation that meets the answer: take it up."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _told(future: asyncio.Future[None]) -> None:
    """How it ended is known, whether or not anybody asks: asyncio need not speak of it."""
    if not future.cancelled():
        future.exception()


class _Thread:
    """aiomqtt connects in a thread, which goes on when its caller is cancelled: what it opens then is closed here."""

    def __init__(self, client: aiomqtt.Client) -> None:
        """Stand between the client and its thread."""
        self._client = client
        self._connect = client._client_connect  # noqa: SLF001
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._given_up = False
        client._client_connect = self._run  # type: ignore[method-assign]  # noqa: SLF001

    def _run(self) -> None:
        try:
            self._connect()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing of it is left
                self._loop.call_soon_threadsafe(self._end)  # behind whatever the connecting put there

    def _end(self) -> None:
        self._ended.set()
        if self._given_up:
            self._drop()

    async def give_up(self) -> None:
        """Leave neither a socket nor a task. A thread that takes long is not waited for: it cleans up after itself."""
        self._given_up = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), GIVE_UP)
        self._drop()

    def _drop(self) -> None:
        self._client._client.on_disconnect = None  # noqa: SLF001 - aiomqtt's looks into a future that may be cancelled
        self._client._client.disconnect()  # noqa: SLF001 - aiomqtt leaves a socket that got no answer on the loop


class _Welcome:
    """What the broker says when it lets us in, which aiomqtt throws away."""

    def __init__(self, client: aiomqtt.Client) -> None:
        """Stand between paho and its client."""
        self.window = WINDOW
        """How many publishes may be in flight. Of what the broker takes at once one place is the last word's."""
        self._on_connect = client._on_connect  # noqa: SLF001
        client._client.on_connect = self._welcomed  # noqa: SLF001

    def _welcomed(self, client: paho.Client, data: Any, flags: Any, reason: Any, properties: Any = None) -> None:
        most: int = getattr(properties, "ReceiveMaximum", WINDOW + 1)
        self.window = min(WINDOW, max(most - 1, 1))
        self._on_connect(client, data, flags, reason, properties)


class _Reader:
    """Takes from the socket all that has come at once; paho alone asks the system three times for each message."""

    def __init__(self, client: aiomqtt.Client) -> None:
        """Stand between paho and its socket."""
        self.pause = 0.0
        self.most = READ
        self.hear: Callable[[Message], None] | None = None
        """Who hears of plain messages without paho; None: nobody."""
        self._client = client
        self._paho = client._client  # noqa: SLF001
        self._loop = asyncio.get_running_loop()
        self._recv = self._paho._sock_recv  # noqa: SLF001
        self._paho._sock_recv = self._take  # type: ignore[method-assign]  # noqa: SLF001
        self._chunk = b""
        self._at = 0
        self._may_receive = True
        self._sock: socket.socket | None = None

    def begin(self) -> None:
        """Once connected: read from now on, in place of aiomqtt's own callback."""
        self._sock = cast("socket.socket | None", self._paho.socket())
        self._go_on()

    def _go_on(self) -> None:
        if (sock := self._open()) is not None:
            self._loop.add_reader(sock.fileno(), self._readable)

    def _open(self) -> socket.socket | None:
        """The socket, unless it was closed: then its number may be another's."""
        return self._sock if self._paho.socket() is cast("Any", self._sock) else None

    def _take(self, bufsize: int) -> bytes:
        """In place of paho's `_sock_recv`; raises as that."""
        if self._at == len(self._chunk):
            if self.pause and not self._may_receive:  # the rest of a packet comes after the pause, too
                raise BlockingIOError
            self._may_receive = False
            self._chunk, self._at = self._recv(self.most), 0
        taken = self._chunk[self._at : self._at + bufsize]
        self._at += len(taken)
        return taken

    def _readable(self) -> None:
        self._may_receive = True
        try:
            while self._paho.loop_read() == paho.MQTT_ERR_SUCCESS:
                if self.hear is not None and not self._paho._in_packet["command"]:  # noqa: SLF001 - between two packets
                    self._plain(self.hear)
                if self._at == len(self._chunk):
                    break
        except (OSError, ValueError) as error:  # such a connection is of no use; aiomqtt would leave it open
            if not self._client._disconnected.done():  # noqa: SLF001
                self._client._disconnected.set_exception(error)  # noqa: SLF001
            self._paho._sock_close()  # noqa: SLF001
            return
        if self.pause and (sock := self._open()) is not None:
            self._loop.remove_reader(sock.fileno())
            self._loop.call_later(self.pause, self._go_on)

    def _plain(self, hear: Callable[[Message], None]) -> None:
        """The whole messages that stand next, by MQTT 3.1.1; their acknowledgements go in one piece."""
        chunk = self._chunk
        acknowledged = b""
        while self._at < len(chunk) and chunk[self._at] & PLAIN_BITS == PLAIN:
            length = shift = 0
            for place in range(self._at + 1, min(self._at + 5, len(chunk))):
                length |= (chunk[place] & 0x7F) << shift
                shift += 7
                if chunk[place] < 0x80:
                    break
            else:
                break  # not all of it is here, or it is none
            name = place + 3
            topic = name + int.from_bytes(chunk[place + 1 : name], "big")
            payload = topic + (2 if chunk[self._at] & SURE else 0)
            end = place + 1 + length
            if not name < topic <= payload <= end <= len(chunk):
                break
            hear(Message(chunk[name:topic].decode(), chunk[payload:end], bool(chunk[self._at] & RETAINED)))
            if payload > topic:
                acknowledged += PUBACK + chunk[topic:payload]
            self._at = end
        if acknowledged:
            self._paho._packet_queue(PUBACK[0], acknowledged, 0, 0)  # noqa: SLF001


@contextlib.asynccontextmanager
async def connect(settings: Mqtt, identifier: str, will: Will | None = None) -> AsyncIterator[Session]:
    """A session with the broker, as a client whose id is `bound`; "": one of the broker's own. Raises BrokerLost."""
    version5 = settings.version == "5"
    password, tls = _password(settings), _tls(settings)
    last_words = None
    session = None
    if version5:
        session = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        session.SessionExpiryInterval = WILL_DELAY  # else the session, and with it the delay of the will, ends at once
    if will is not None:
        properties = None
        if version5:
            properties = Properties(PacketTypes.WILLMESSAGE)  # type: ignore[no-untyped-call]
            properties.WillDelayInterval = WILL_DELAY
        last_words = aiomqtt.Will(will.topic, will.payload, 1, retain=True, properties=properties)
    client = aiomqtt.Client(
        settings.host,
        settings.port,
        username=settings.username or None,
        password=password,
        identifier=bound(identifier, password),
        protocol=aiomqtt.ProtocolVersion.V5 if version5 else aiomqtt.ProtocolVersion.V311,
        will=last_words,
        clean_start=True if version5 else paho.MQTT_CLEAN_START_FIRST_ONLY,
        clean_session=None if version5 else True,
        properties=session,
        keepalive=KEEPALIVE,
        timeout=TIMEOUT,
        max_inflight_messages=WINDOW * 2,
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        tls_context=tls,
        logger=_SILENT,
    )
    client._disconnected.add_done_callback(_told)  # noqa: SLF001
    thread = _Thread(client)
    reader = _Reader(client)
    welcome = _Welcome(client)
    try:
        await client.__aenter__()
    except BaseException as error:
        await thread.give_up()
        if isinstance(error, aiomqtt.MqttError | UnicodeError):  # UnicodeError: what cannot be a host name
            raise BrokerLost(str(error)) from error
        raise
    client._disconnected.add_done_callback(_told)  # noqa: SLF001 - it may be another now
    try:
        reader.begin()
        yield Session(client, version5, reader, welcome.window)
    finally:
        with contextlib.suppress(aiomqtt.MqttError):  # it was lost already, and whoever used it knows
            await client.__aexit__(None, None, None)


Connect = Callable[[Mqtt, str, Will | None], AbstractAsyncContextManager[Session]]


async def stay_connected(
    settings: Mqtt,
    identifier: str,
    will: Will | None,
    serve: Callable[[Session], Coroutine[Any, Any, None]],
    log: structlog.typing.FilteringBoundLogger,
    connecting: Connect | None = None,
) -> None:
    """Serve one session after the other, for ever. Log once when lost, once when back.

    `connecting` is what to connect with, where it is not `connect`: simulations have a broker of their own.
    """
    loop = asyncio.get_running_loop()
    delay, trial = 0.1, 0.0
    lost = False
    reason = ""
    where = f"{settings.host}:{settings.port}"
    served = NEVER

    async def one_session() -> None:
        nonlocal served, lost, trial
        met = (connecting or connect)(settings, identifier, will)
        async with met as session, asyncio.TaskGroup() as group:
            _still_wanted()
            served = loop.time()
            group.create_task(session.until_lost())
            group.create_task(serve(session))
            await asyncio.sleep(trial)
            log.info("broker.back" if lost else "broker.connected", broker=where)
            lost, trial = False, 0.0

    while True:
        served = NEVER
        # In a task of its own: a group of tasks that fails while it is cancelled would tell only of its failure, and
        # who was told to stop would connect again.
        session = asyncio.create_task(one_session())
        session.add_done_callback(_told)
        try:
            await asyncio.wait([session])
            session.result()
        except* BrokerLost as errors:
            reason = str(logs.first(errors.subgroup(BrokerRefused) or errors))
        finally:
            if session.cancel():
                await asyncio.wait([session])
        if loop.time() - served < AT_ONCE:
            trial = TRIAL  # it refused us, or left us at once: it is back when it lets us work, not when it answers
        elif served > NEVER:
            delay = 0.1
        if not lost:
            log.warning("broker.lost", broker=where, reason=reason, remedy="nothing is lost; look at the broker")
            lost = True
        await asyncio.sleep(delay)
        delay = min(delay * 2, 5.0)
