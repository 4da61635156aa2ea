"""MQTT 3.1.1 through aiomqtt, for brokers that do not speak MQTT 5: the embedded broker of the demo, old sites.

It uses the documented interface of aiomqtt alone. That costs a task for each message in flight and acknowledges
messages before they are taken; the window bounds the tasks, and a gap is found by seq.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Literal

import aiomqtt

from daemon.broker.session import MAX_WAITING, WINDOW, BrokerLost, BrokerRefused, Message, Session, Will

__all__ = ["Mqtt311Session", "connect_mqtt311"]

KEEPALIVE_S = 15
ANSWER_TIMEOUT_S = 5.0
REFUSED = 0x80
"""MQTT 3.1.1, 3.9.3: the return code of a subscription that is refused."""
ACCESS_DENIED = frozenset({1, 2, 4, 5, 0x84, 0x85, 0x86, 0x87})
"""Return codes of CONNACK (MQTT 3.1.1, 3.2.2.3, and paho's) that only another configuration changes."""
MAX_QOS0 = 16
"""Messages of QoS 0 that may wait for the socket."""
PORTION = 100
"""Messages of a burst that are handed over together, as one commit of the rules: aiomqtt gives them one by one."""
GIVE_UP_S = 0.5
"""Seconds to wait for the end of a cancelled connection; then it ends in the background."""
_ENDING: set[asyncio.Task[None]] = set()
_SILENT = logging.getLogger("feltd.mqtt.silent")
_SILENT.disabled = True  # what aiomqtt logs is raised as well, and logged once by `stay_connected`


class Mqtt311Session(Session):
    """One connection by MQTT 3.1.1."""

    def __init__(self, client: aiomqtt.Client) -> None:
        """`client` is connected."""
        super().__init__(WINDOW)
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()
        self._qos0 = 0
        self._start(self._read())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` until the session is closed; an unexpected error ends the session."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._lose(BrokerLost(f"{type(error).__name__}: {error}"))

    async def close(self) -> None:
        """Close the session; messages without an acknowledgement have an unknown outcome."""
        self._lose(BrokerLost("closed"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self) -> None:
        """Take what arrives until the connection is lost."""
        try:
            async for message in self._client.messages:
                payload = message.payload if isinstance(message.payload, bytes) else b""
                self._received(Message(str(message.topic), payload, bool(message.retain)))
                if not len(self._client.messages) or len(self._waiting) >= PORTION:
                    asyncio.get_running_loop().call_soon(self._hand_over)
        except (aiomqtt.MqttError, OSError, ValueError) as error:  # paho raises the last two for malformed packets
            self._lose(BrokerLost(str(error)))

    def _transmit(self, number: int, topic: str, payload: bytes, retain: bool, correlation: bytes, event: bool) -> None:
        del correlation, event  # properties of MQTT 5
        # Tasks start in the order in which they were made, and aiomqtt hands a message on before its first await.
        self._start(self._publish(number, topic, payload, retain))

    async def _publish(self, number: int, topic: str, payload: bytes, retain: bool) -> None:
        try:
            await self._client.publish(topic, payload, qos=1, retain=retain, timeout=float("inf"))
        except (aiomqtt.MqttError, ValueError) as error:
            self._lose(BrokerLost(str(error)))
        else:
            self._settle(number)

    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        """As `Session.publish_qos0`."""
        self._check()
        if self._qos0 >= MAX_QOS0:
            return False
        self._qos0 += 1
        self._start(self._publish_qos0(topic, payload))
        return True

    async def _publish_qos0(self, topic: str, payload: bytes) -> None:
        try:
            await self._client.publish(topic, payload, qos=0)
        except aiomqtt.MqttError as error:
            self._lose(BrokerLost(str(error)))
        finally:
            self._qos0 -= 1

    async def _subscribe(self, topics: Sequence[str], qos: Literal[0, 1]) -> list[str]:
        try:
            codes = await self._client.subscribe([(topic, int(qos)) for topic in topics])
        except aiomqtt.MqttError as error:
            raise BrokerLost(str(error)) from error
        _raise_if_cancelled()
        return ["Not authorized" if code == REFUSED or getattr(code, "is_failure", False) else "" for code in codes]

    async def _unsubscribe(self, topics: Sequence[str]) -> None:
        try:
            await self._client.unsubscribe(list(topics))
        except aiomqtt.MqttError as error:
            raise BrokerLost(str(error)) from error
        _raise_if_cancelled()


@contextlib.asynccontextmanager
async def connect_mqtt311(
    host: str,
    port: int,
    identifier: str,
    *,
    username: str = "",
    password: str | None = None,
    tls: ssl.SSLContext | None = None,
    will: Will | None = None,
) -> AsyncIterator[Mqtt311Session]:
    """A session with the broker. Raises BrokerLost."""
    client = aiomqtt.Client(
        host,
        port,
        username=username or None,
        password=password,
        identifier=identifier,
        protocol=aiomqtt.ProtocolVersion.V311,
        will=aiomqtt.Will(will.topic, will.payload, 1, retain=True) if will else None,
        clean_session=True,
        keepalive=KEEPALIVE_S,
        timeout=ANSWER_TIMEOUT_S,
        max_inflight_messages=WINDOW * 2,
        max_queued_incoming_messages=MAX_WAITING,
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        tls_context=tls,
        logger=_SILENT,
    )
    try:
        await _enter(client)
    except aiomqtt.MqttCodeError as error:
        raise (BrokerRefused if getattr(error.rc, "value", error.rc) in ACCESS_DENIED else BrokerLost)(
            str(error)
        ) from error
    except (aiomqtt.MqttError, UnicodeError) as error:  # UnicodeError: an impossible host name
        raise BrokerLost(str(error)) from error
    session = Mqtt311Session(client)
    try:
        yield session
    finally:
        await session.close()
        await _leave(client)


async def _enter(client: aiomqtt.Client) -> None:
    """Connect. aiomqtt does so in a thread that cannot be cancelled: a connection that it opens later is closed."""
    entering = asyncio.ensure_future(client.__aenter__())
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        ending = asyncio.create_task(_leave_when_entered(client, entering))
        _ENDING.add(ending)
        ending.add_done_callback(_ENDING.discard)
        await asyncio.wait([ending], timeout=GIVE_UP_S)
        raise


async def _leave_when_entered(client: aiomqtt.Client, entering: asyncio.Future[aiomqtt.Client]) -> None:
    with contextlib.suppress(aiomqtt.MqttError, UnicodeError):
        await entering
        await client.__aexit__(None, None, None)


async def _leave(client: aiomqtt.Client) -> None:
    with contextlib.suppress(aiomqtt.MqttError):  # lost already, and reported
        await client.__aexit__(None, None, None)


def _raise_if_cancelled() -> None:
    """aiomqtt waits with `asyncio.wait_for`, which drops a cancellation that meets the answer (Python 3.11)."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
