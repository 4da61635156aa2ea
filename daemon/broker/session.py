"""One connection to the MQTT broker, for every process of feltd and both versions of MQTT.

`Session` keeps what the protocol leaves to its user: messages in flight, the window, refusals, the queue of messages
received. A subclass moves packets: `mqtt5_session` (MQTT 5) and `mqtt311_session` (MQTT 3.1.1). A message in flight
when the connection is lost has an unknown outcome: it is sent again with the same event id, and readers deduplicate.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

__all__ = [
    "UNREADABLE",
    "BrokerLost",
    "BrokerRefused",
    "Message",
    "Session",
    "UnreadableFile",
    "Will",
    "publish_last",
    "publish_offline_on_exit",
]

WINDOW = 64
"""Messages in flight to the broker, at most."""
RECEIVE_WINDOW = 2_000
"""QoS 1 messages that the broker may have delivered and we have not acknowledged (MQTT 5: Receive Maximum)."""
MAX_WAITING = 20_000
"""Received messages that wait here, at most. The broker stops sending QoS 1 earlier; the oldest are dropped."""
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Bytes of received messages that wait here, at most."""
LAST_WORD_TIMEOUT_S = 1.0
# What msgspec raises for bytes of a peer that it cannot decode.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class BrokerLost(Exception):
    """The connection is lost or could not be made. The message gives the reason."""


class UnreadableFile(BrokerLost):
    """A password, key or certificate of ours cannot be read, so no connection was tried. The message names the file."""


class BrokerRefused(BrokerLost):
    """The broker answers and refuses this client, or a topic that it must write or read. The message names it."""


class Message(Struct, frozen=True):
    """A message received. `reply_to` and `correlation` are properties of MQTT 5; nothing essential depends on them."""

    topic: str
    payload: bytes
    retain: bool = False
    reply_to: str = ""
    correlation: bytes = b""


class Will(Struct, frozen=True):
    """The retained message that the broker publishes when this client is lost without a DISCONNECT."""

    topic: str
    payload: bytes


AtOnce = Callable[[list[Message]], list[Message] | None]
"""Handles messages in the turn of the loop that reads them, and returns the rest: see `Session.messages`."""


class _InFlight(Struct, frozen=True):
    topic: str
    acknowledged: Callable[[], None] | None
    vital: bool
    refused: Callable[[str], None] | None


class Session(ABC):
    """One connection. Sending, subscribing and waiting raise BrokerLost or BrokerRefused after the loss or refusal."""

    def __init__(self, window: int = WINDOW) -> None:
        """`window`: messages in flight, at most."""
        self._window = window
        self._in_flight: dict[int, _InFlight] = {}
        self._last_id = 0
        self._waiting: deque[tuple[Message, int]] = deque()
        self._waiting_bytes = 0
        self._room, self._landed, self._over = (asyncio.Event() for _ in range(3))
        self._deliver: Callable[[Message], None] | None = None
        self._taker: asyncio.Future[list[Message]] | None = None
        self._at_once: AtOnce | None = None
        self._refused: str | None = None
        self._lost: BrokerLost | None = None
        self.tolerates: Callable[[str, str], bool] = lambda _topic, _reason: False
        """Whether the session goes on although the broker refuses a topic, for a reason: see `Suspensions`."""
        self.own_topics: frozenset[str] = frozenset()
        """Filters of topics that this client writes itself: with MQTT 5 its own messages do not come back. The session
        goes on if the broker refuses a subscription to one: see `Restorer`.
        """
        self._subscribed: dict[str, Literal[0, 1]] = {}
        """The topics that were subscribed to, with their QoS."""

    # ---- hooks of a subclass

    @abstractmethod
    def _transmit(self, number: int, topic: str, payload: bytes, retain: bool, correlation: bytes, event: bool) -> None:
        """Send with QoS 1 under the packet id `number`; `_settle` is called with its outcome."""

    @abstractmethod
    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        """Send a message that may be lost. False, and nothing was sent, while the socket is full. Raises BrokerLost."""

    @abstractmethod
    async def _subscribe(self, topics: Sequence[str], qos: Literal[0, 1]) -> list[str]:
        """For each topic why the broker refuses to let us read it, or "". Raises BrokerLost."""

    @abstractmethod
    async def _unsubscribe(self, topics: Sequence[str]) -> None:
        """Receive these topics no longer. Raises BrokerLost."""

    def set_read_interval(self, seconds: float) -> None:  # noqa: B027 - reading at once is always right
        """Read the socket at this interval: a program for people need not handle each message at once."""

    def flush(self) -> None:  # noqa: B027 - some libraries send at once
        """Write sent messages to the socket now, and not in the next turn of the loop."""

    def _acknowledge(self, numbers: list[int]) -> None:  # noqa: B027 - some libraries acknowledge on arrival
        """The application has taken these QoS 1 messages."""

    # ---- out

    @property
    def room(self) -> bool:
        """Whether one more message of a backlog may be in flight: a quarter of the window is kept for `publish`."""
        return len(self._in_flight) < self._window - self._window // 4 and self._refused is None

    async def until_room(self) -> None:
        """Return when there is `room`. Raises BrokerRefused where an earlier message was refused; BrokerLost."""
        await self._until_fewer(self._window - self._window // 4)

    async def _until_fewer(self, most: int) -> None:
        while len(self._in_flight) >= most:
            self._check()
            self._room.clear()
            await self._room.wait()
        self._check()

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

        If the broker refuses it, `refused` is called with the reason. Without `refused` the session then ends, unless
        the message is not `vital` or the session tolerates the topic. `event`: the payload is a CloudEvent, which MQTT
        5 names in the content type.
        """
        if self._lost is not None:
            raise type(self._lost)(str(self._lost))
        number = self._free_id()
        self._in_flight[number] = _InFlight(topic, acknowledged, vital, refused)
        self._transmit(number, topic, payload, retain, correlation, event)

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
        """Send as soon as the window has a place; return once it is on its way. Raises as `until_room` and `send`.

        A backlog that is sent whenever there is `room` does not delay it.
        """
        await self._until_fewer(self._window)
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

    async def drained(self) -> None:
        """Return when nothing is in flight. Raises BrokerRefused where a message was refused; BrokerLost."""
        while self._in_flight:
            self._check()
            self._landed.clear()
            await self._landed.wait()
        if self._refused is not None:
            raise BrokerRefused(self._refused)

    def _free_id(self) -> int:
        """A packet id that is not in use."""
        while True:
            self._last_id = number = self._last_id % 65_535 + 1
            if number not in self._in_flight:
                return number

    def _settle(self, number: int, refusal: str = "") -> None:
        """The broker answered to the message `number`; `refusal` is its reason, or "" where it accepted the message."""
        one = self._in_flight.pop(number, None)
        if one is None:  # an acknowledgement of an unknown message
            return
        if refusal and one.refused is not None:
            one.refused(refusal)
        elif refusal and one.vital and not self.tolerates(one.topic, refusal):
            self._refused = f"the broker refuses {one.topic}: {refusal}; allow this client to write there"
            self._over.set()
        elif refusal:
            pass
        elif one.acknowledged is not None and self._refused is None:
            one.acknowledged()
        if len(self._in_flight) < self._window:
            self._room.set()
        if not self._in_flight or self._refused is not None:
            self._landed.set()

    # ---- in

    async def subscribe(self, *topics: str, qos: Literal[0, 1] = 1) -> None:
        """Receive `topics`. Raises BrokerLost; BrokerRefused where the broker refuses one that is not tolerated."""
        self._subscribed |= dict.fromkeys(topics, qos)
        for topic, refusal in zip(topics, await self._subscribe(topics, qos), strict=True):
            if refusal and topic not in self.own_topics and not self.tolerates(topic, refusal):
                text = f"the broker refuses to let us read {topic}: {refusal}; allow this client to read it"
                raise BrokerRefused(text)

    async def subscribe_again(self, concerns: Callable[[str], bool]) -> None:
        """Subscribe again to the topics that `concerns` names, so that their retained messages come again."""
        for qos in (0, 1):
            if topics := [topic for topic, its_qos in self._subscribed.items() if its_qos == qos and concerns(topic)]:
                await self.subscribe(*topics, qos=qos)

    async def read_retained(self, *topics: str) -> None:
        """Receive the retained messages under `topics`, and none published later. Raises as `subscribe`."""
        await self.subscribe(*topics)
        for topic in topics:
            del self._subscribed[topic]
        await self._unsubscribe(topics)

    def deliver_to(self, deliver: Callable[[Message], None]) -> None:
        """Pass each message to `deliver` as it arrives, and none to `messages`."""
        self._deliver = deliver

    async def messages(self, most: int = 500, at_once: AtOnce | None = None) -> list[Message]:
        """The messages that arrived, at least one, in order. Taking a QoS 1 message acknowledges it. For one task.

        `at_once` saves the wake-up of that task: while it waits here, `at_once` is called in the turn of the loop that
        reads, with all messages of the read. It returns the messages that it leaves to the task, which are returned
        here even if there are none; with None the task keeps waiting. Its exceptions are raised here.
        """
        while not self._waiting:
            self._taker, self._at_once = asyncio.get_running_loop().create_future(), at_once
            try:
                left = await self._taker
            finally:
                self._taker = None
            if at_once is not None:
                return left
        return self._take(most)

    def _take(self, most: int) -> list[Message]:
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._waiting_bytes -= sum(len(message.payload) for message, _ in taken)
        self._acknowledge([number for _, number in taken if number])
        return [message for message, _ in taken]

    def _received(self, message: Message, number: int = 0) -> bool:
        """A message arrived; `number` is the packet id of QoS 1. Whether it can be acknowledged already.

        `_hand_over` follows, after the last message of a read.
        """
        if self._deliver is not None:
            self._deliver(message)
            return True
        self._waiting_bytes += len(message.payload)
        while self._waiting and (len(self._waiting) >= MAX_WAITING or self._waiting_bytes > MAX_WAITING_BYTES):
            dropped, its_number = self._waiting.popleft()  # a gap in seq, which the reader finds and has replayed
            self._waiting_bytes -= len(dropped.payload)
            self._acknowledge([its_number] if its_number else [])
        self._waiting.append((message, number))
        return False

    def _hand_over(self) -> None:
        """Give the messages to the task that waits in `messages`; a cancelled task gets none."""
        taker = self._taker
        if taker is None or taker.done() or not self._waiting:
            return
        left: list[Message] | None = []
        if self._at_once is not None:
            try:
                left = self._at_once(self._take(len(self._waiting)))
            except Exception as error:  # noqa: BLE001 - raised in the task that waits
                taker.set_exception(error)
                return
        if left is not None:
            taker.set_result(left)

    # ---- the end

    async def until_lost(self) -> None:
        """Raise BrokerLost when the connection ends, BrokerRefused when a needed topic is refused."""
        await self._over.wait()
        self._check()

    def _lose(self, error: BrokerLost) -> None:
        """The connection is lost: end every wait for an answer."""
        if self._lost is None:
            self._lost = error
        for event in (self._over, self._room, self._landed):
            event.set()

    def _check(self) -> None:
        """Raises BrokerRefused, BrokerLost."""
        if self._refused is not None:
            raise BrokerRefused(self._refused)
        if self._lost is not None:
            raise type(self._lost)(str(self._lost))


async def publish_last(session: Session, topic: str, payload: bytes) -> None:
    """Leave `payload` retained under `topic` if the broker still takes it: ending in order withdraws the will."""
    with contextlib.suppress(BrokerLost, TimeoutError):
        session.send(topic, payload, retain=True)  # without waiting for room: a slow broker may have none for long
        await asyncio.wait_for(session.drained(), LAST_WORD_TIMEOUT_S)


@contextlib.asynccontextmanager
async def publish_offline_on_exit(session: Session, topic: str, payload: bytes) -> AsyncIterator[None]:
    """Leave `payload` at the end, and raise the body's error even if the broker is lost just then.

    Otherwise BrokerLost could hide a full disk, and the process would go on with rows that it never wrote.
    """
    try:
        yield
    except BaseException:
        with contextlib.suppress(asyncio.CancelledError):
            await publish_last(session, topic, payload)
        raise
    await publish_last(session, topic, payload)
