"""MQTT 5 on an asyncio transport. The package `mqtt5` turns bytes into packets; the session is kept here.

Writes of one turn of the loop go out as one piece, those that follow from a read at its end. Received QoS 1 messages
are acknowledged when the application takes them, so a slow application is slowed down by Receive Maximum and loses
nothing.
"""

import asyncio
import contextlib
import math
import os
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

import mqtt5
from mqtt5 import QoS

from daemon.broker.session import RECEIVE_WINDOW, WINDOW, BrokerLost, BrokerRefused, Message, Session, Will
from protocols.contract.topics import CONTENT_TYPE

__all__ = ["WILL_DELAY_S", "Mqtt5Session", "connect_mqtt5"]

KEEPALIVE_S = 15
ANSWER_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 1.0
WILL_DELAY_S = 5
"""A restart shorter than this publishes no will."""
SESSION_EXPIRY_S = 60
"""Seconds for which the broker keeps this client's queue after a lost connection. An orderly end drops it."""
MAX_PACKET_BYTES = 16 * 1024 * 1024
MAX_UNSENT_BYTES = 65_536
"""Bytes waiting for the socket above which no QoS 0 message is sent."""
FAILURE = 0x80
"""MQTT 5, 2.4: reason codes from here on are failures."""
UNSUPPORTED_VERSION = 0x84
ACCESS_DENIED = frozenset({UNSUPPORTED_VERSION, 0x85, 0x86, 0x87, 0x8A, 0x8C})
"""Reason codes of CONNACK that only another configuration changes: version, client id, user name, password."""
OTHER_VERSION = 'it does not speak MQTT 5; set version = "3.1.1" in [mqtt], or use mosquitto'
PERHAPS_OTHER_VERSION = 'if it speaks MQTT 3.1.1 alone, set version = "3.1.1" in [mqtt]'
REFUSED_VERSIONS = (b"\x20\x02\x00\x01", b"\x20\x02\x00\x84")
"""The CONNACK of MQTT 3.1.1 by which a broker refuses the version, as MQTT 3.1.1 and as MQTT 5 number the reason."""
PING = mqtt5.PingReqPacket().write()


def _read(view: memoryview) -> tuple[mqtt5.Packet, int] | None:
    """The next packet and its length in bytes; None while it is incomplete. Raises ValueError for a malformed one."""
    try:
        return mqtt5.read(view)
    except IndexError:
        return None
    except BaseException as error:
        # The codec panics for a topic that is no UTF-8. Its PanicException is no Exception and has no importable name.
        if type(error).__name__ == "PanicException":
            raise ValueError(f"unreadable packet: {error}") from None
        raise


class Mqtt5Session(Session, asyncio.Protocol):
    """One connection by MQTT 5."""

    def __init__(self, hello: bytes) -> None:
        """`hello`: the CONNECT packet, sent as soon as the transport is connected."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = [hello]
        self._transport: asyncio.Transport | None = None
        self._incomplete = b""
        self._read_interval_s = 0.0
        self._in_read = False
        self._answers: dict[int, asyncio.Future[list[Any]]] = {}
        self._max_packet_bytes = MAX_PACKET_BYTES
        self._keepalive_s: float = KEEPALIVE_S
        self._received_at = self._loop.time()
        """The time of the last bytes. Any packet shows that the connection works: answers may wait in a queue."""
        self._pinged_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self.connected: asyncio.Future[None] = self._loop.create_future()

    # ---- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        said = str(exc or "the broker closed the connection")
        self._lose(BrokerLost(said if self.connected.done() else f"{said}; {PERHAPS_OTHER_VERSION}"))

    def data_received(self, data: bytes) -> None:
        """Handle all packets that are complete, and send what follows from them at once."""
        self._received_at, self._in_read = self._loop.time(), True
        try:
            self._read_packets(data)
            self._hand_over()
        finally:
            self._in_read = False
        self.flush()
        if self._read_interval_s and self._lost is None and self._transport is not None:
            self._transport.pause_reading()
            self._loop.call_later(self._read_interval_s, self._resume_reading)

    def _read_packets(self, data: bytes) -> None:
        data = self._incomplete + data if self._incomplete else data
        view, start = memoryview(data), 0
        try:
            while start < len(data) and (found := _read(view[start:])) is not None:
                self._handle(found[0])
                start += found[1]
        except ValueError as error:
            other = data in REFUSED_VERSIONS and not self.connected.done()
            wrong = BrokerLost(f"the broker sent bytes that are not MQTT 5: {error}")
            self._lose(BrokerRefused(OTHER_VERSION) if other else wrong)
        self._incomplete = data[start:]
        if len(self._incomplete) > MAX_PACKET_BYTES:
            self._lose(BrokerLost(f"the broker sent a packet of more than {MAX_PACKET_BYTES} bytes"))

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # ---- packets in

    def _handle(self, packet: mqtt5.Packet) -> None:
        """Raises ValueError for a packet that may not come from a broker."""
        match packet:
            case mqtt5.PublishPacket():
                self._publish_received(packet)
            case mqtt5.PubAckPacket(packet_id=number, reason_code=reason):
                self._settle(number, _refusal(reason, packet.reason_str))
            case mqtt5.SubAckPacket(packet_id=number) | mqtt5.UnsubAckPacket(packet_id=number):
                answer = self._answers.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(list(packet.reason_codes))
            case mqtt5.PingRespPacket():
                pass
            case mqtt5.ConnAckPacket() if not self.connected.done():
                self._connect_answered(packet)
            case mqtt5.DisconnectPacket(reason_code=reason):
                self._lose(BrokerLost(packet.reason_str or _name(reason)))
            case _:
                raise ValueError(f"unexpected {type(packet).__name__}")

    def _publish_received(self, packet: mqtt5.PublishPacket) -> None:
        if packet.qos == QoS.EXACTLY_ONCE or not packet.topic:
            raise ValueError("a message with QoS 2 or without a topic, neither of which was requested")
        reply_to, correlation = packet.response_topic or "", packet.correlation_data or b""
        message = Message(packet.topic, packet.payload, packet.retain, reply_to, correlation)
        number = packet.packet_id or 0
        if packet.qos == QoS.AT_LEAST_ONCE and not number:
            raise ValueError("a message with QoS 1 and packet id 0")
        if self._received(message, number) and number:
            self._acknowledge([number])

    def _connect_answered(self, packet: mqtt5.ConnAckPacket) -> None:
        if refusal := _refusal(packet.reason_code, packet.reason_str):
            if int(packet.reason_code) == UNSUPPORTED_VERSION:
                refusal = OTHER_VERSION
            denied = int(packet.reason_code) in ACCESS_DENIED
            self._lose(BrokerRefused(refusal) if denied else BrokerLost(refusal))
        elif packet.max_qos == QoS.AT_MOST_ONCE or not packet.retain_available:
            self._lose(BrokerLost("the broker does not support QoS 1 or retained messages; feltd needs both"))
        else:
            self._window = min(WINDOW, max(packet.receive_max - 1, 1))  # one place is kept for the last message
            self._max_packet_bytes = packet.max_packet_size or MAX_PACKET_BYTES
            self._keepalive_s = packet.server_keep_alive or KEEPALIVE_S
            self._timer = self._loop.call_later(self._keepalive_s, self._keep_alive)
            self.connected.set_result(None)

    def _keep_alive(self) -> None:
        if self._received_at < self._pinged_at:
            self._lose(BrokerLost("the broker does not answer"))
            return
        self._pinged_at = self._loop.time()
        self._write(PING)
        self._timer = self._loop.call_later(self._keepalive_s, self._keep_alive)

    # ---- packets out

    def _write(self, data: bytes) -> None:
        """Send in this turn of the loop, together with its other packets."""
        if not self._unsent and not self._in_read:
            self._loop.call_soon(self.flush)
        self._unsent.append(data)

    def flush(self) -> None:
        """As `Session.flush`."""
        if self._transport is not None and self._unsent and not self._transport.is_closing():
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _transmit(self, number: int, topic: str, payload: bytes, retain: bool, correlation: bytes, event: bool) -> None:
        data = mqtt5.PublishPacket(
            topic,
            payload,
            qos=QoS.AT_LEAST_ONCE,
            retain=retain,
            packet_id=number,
            content_type=CONTENT_TYPE if event else None,
            correlation_data=correlation or None,
        ).write()
        if len(data) > self._max_packet_bytes:
            reason = f"{len(data)} bytes are more than the {self._max_packet_bytes} that it takes"
            self._loop.call_soon(self._settle, number, reason)
        else:
            self._write(data)

    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        """As `Session.publish_qos0`."""
        self._check()
        assert self._transport is not None
        if self._transport.get_write_buffer_size() + sum(map(len, self._unsent)) > MAX_UNSENT_BYTES:
            return False
        self._write(mqtt5.PublishPacket(topic, payload).write())
        return True

    def _acknowledge(self, numbers: list[int]) -> None:
        if self._lost is None:
            for number in numbers:
                self._write(b"\x40\x02" + number.to_bytes(2, "big"))  # PUBACK, success (MQTT 5, 3.4)

    async def _ask(self, number: int, packet: bytes) -> list[Any]:
        """The reason codes with which the broker answers to `packet`. Raises BrokerLost when it sends nothing."""
        self._check()
        answer: asyncio.Future[list[Any]] = self._loop.create_future()
        self._answers[number] = answer
        self._write(packet)
        try:
            received_at = -math.inf
            while not answer.done():
                if self._received_at == received_at:
                    raise BrokerLost("the broker does not answer")
                received_at = self._received_at
                await asyncio.wait([answer], timeout=ANSWER_TIMEOUT_S)
        finally:
            del self._answers[number]
        return answer.result()

    def _free_id(self) -> int:
        while (number := super()._free_id()) in self._answers:
            pass
        return number

    # ---- subscriptions

    def set_read_interval(self, seconds: float) -> None:
        """As `Session.set_read_interval`."""
        self._read_interval_s = seconds

    async def _subscribe(self, topics: Sequence[str], qos: Literal[0, 1]) -> list[str]:
        number = self._free_id()
        filters = [
            mqtt5.TopicFilter(topic, max_qos=QoS(qos), no_local=topic in self.own_topics, retain_as_published=False)
            for topic in topics
        ]
        codes = await self._ask(number, mqtt5.SubscribePacket(number, filters).write())
        return [_refusal(code, None) for code in codes]

    async def _unsubscribe(self, topics: Sequence[str]) -> None:
        number = self._free_id()
        await self._ask(number, mqtt5.UnsubscribePacket(number, list(topics)).write())

    # ---- the end

    def _lose(self, error: BrokerLost) -> None:
        super()._lose(error)
        assert self._lost is not None
        if self._timer is not None:
            self._timer.cancel()
        _fail(self.connected, self._lost)
        for answer in self._answers.values():
            _fail(answer, self._lost)
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Send DISCONNECT, which withdraws the will, and close the socket within a second."""
        if self._lost is None and self._transport is not None:
            self._write(mqtt5.DisconnectPacket(session_expiry_interval=0).write())
            self.flush()
            self._transport.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), CLOSE_TIMEOUT_S)
        self._lose(BrokerLost("closed"))


def _fail(future: asyncio.Future[Any], error: BrokerLost) -> None:
    if not future.done():
        future.set_exception(type(error)(str(error)))
        future.exception()  # retrieves it, as no task may await it any more


def _in_words(error: OSError | UnicodeError) -> str:
    """The reason of an error, without the address that asyncio adds to it."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)


def _name(reason: Any) -> str:
    """`Not authorized` for NOT_AUTHORIZED."""
    return str(reason.name).replace("_", " ").capitalize()


def _refusal(reason: Any, text: str | None) -> str:
    """Why the broker refuses; "" where it does not."""
    return (text or _name(reason)) if int(reason) >= FAILURE else ""


@contextlib.asynccontextmanager
async def connect_mqtt5(
    host: str,
    port: int,
    identifier: str,
    *,
    username: str = "",
    password: str | None = None,
    tls: ssl.SSLContext | None = None,
    will: Will | None = None,
) -> AsyncIterator[Mqtt5Session]:
    """A session with the broker. Raises BrokerLost."""
    last_will = None
    if will is not None:
        last_will = mqtt5.Will(
            will.topic, payload=will.payload, qos=QoS.AT_LEAST_ONCE, retain=True, will_delay_interval=WILL_DELAY_S
        )
    hello = mqtt5.ConnectPacket(
        identifier,
        username=username or None,
        password=None if password is None else password.encode(),
        clean_start=not identifier,
        will=last_will,
        keep_alive=KEEPALIVE_S,
        session_expiry_interval=SESSION_EXPIRY_S if identifier else 0,
        receive_max=RECEIVE_WINDOW,
        max_packet_size=MAX_PACKET_BYTES,
    ).write()
    session = Mqtt5Session(hello)
    try:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await session._loop.create_connection(lambda: session, host, port, ssl=tls)  # noqa: SLF001
                await session.connected
        except TimeoutError as error:
            raise BrokerLost(f"the broker does not answer; {PERHAPS_OTHER_VERSION}") from error
        except (OSError, UnicodeError) as error:  # UnicodeError: an impossible host name
            raise BrokerLost(_in_words(error)) from error
        yield session
    finally:
        await session.close()
