"""A broker in memory with all faults that MQTT allows: the real `Session`, with packets in memory instead of a socket.

It keeps every QoS 1 message that it acknowledged. Deliveries may be late, duplicated, reordered between two topics, or
lost as at brokers with full queues. It restarts with its full state, an old state or none. Each side detects the end of
a connection at its own time, at once or long afterwards.
"""

import asyncio
import contextvars
import functools
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Literal

from daemon.broker.mqtt5_session import ANSWER_TIMEOUT_S, WILL_DELAY_S
from daemon.broker.session import BrokerLost, Message, Session, Will
from daemon.config.model import Mqtt
from simulators.lab.campaign.loop import Process, VirtualLoop

__all__ = ["Broker", "Weather"]

LATENCY = 0.002
LOSABLE = ("/event/", "/cmd/", "/wager")
"""Topics whose messages are requested again."""
LONGEST_DELAY_S = 10.0
"""The most seconds until an end of a lost connection detects it."""


class Weather:
    """The faults of the broker as probabilities for each message, `hung` for each connection; all 0 without faults."""

    def __init__(self) -> None:
        """No faults."""
        self.doubled = self.delayed = self.swapped = self.dropped = self.refused = 0.0
        self.hung = 0.0
        self.echoes = False
        """Whether clients receive their own messages, as with MQTT 3.1.1."""

    @property
    def fine(self) -> bool:
        """Whether its deliveries have no faults."""
        return not (self.doubled or self.delayed or self.swapped or self.dropped)


class _Client(Session):
    """One connection: the real `Session` with the two directions of its wire in memory."""

    def __init__(self, broker: "Broker", identifier: str, will: Will | None) -> None:
        super().__init__()
        self.broker = broker
        self.loop = broker.loop
        self.identifier = identifier
        self.will = will
        self.process = Process.current()
        self.context = contextvars.copy_context()
        self.open = True  # the broker has not detected that the connection ended
        self.dead = False  # nothing passes any more
        self.filters: tuple[str, ...] = ()
        self.known = broker.known(())
        self._comes_back: dict[str, bool] = {}
        self._up: deque[tuple[int, str, bytes, bool, bytes]] = deque()
        self._down: deque[Message | tuple[int, str]] = deque()
        self._up_waits = self._down_waits = False
        self._held_until = 0.0

    # ---- sent by the session

    def _transmit(self, number: int, topic: str, payload: bytes, retain: bool, correlation: bytes, event: bool) -> None:
        del event
        if self.process is not None and not self.process.alive:
            raise BrokerLost("the process was killed")
        self._up.append((number, topic, payload, retain, correlation))
        if not self._up_waits:
            self._up_waits = True
            self.loop.call_later(self.broker.latency(), self._arrive, context=self.loop.world)

    def publish_qos0(self, topic: str, payload: bytes) -> bool:
        """Send with QoS 1: the broker in memory loses no QoS 0 message because a socket is full."""
        if not self.room:
            return False
        self.send(topic, payload)
        return True

    async def _subscribe(self, topics: Sequence[str], qos: Literal[0, 1]) -> list[str]:
        """Subscribe. A missing answer counts as a lost broker."""
        del qos
        await self._answered(self._subscribed_now, tuple(topics))
        return [""] * len(topics)

    async def _unsubscribe(self, topics: Sequence[str]) -> None:
        await self._answered(self._unsubscribed_now, tuple(topics))

    async def _answered(
        self, ask: Callable[[tuple[str, ...], asyncio.Future[None]], None], topics: tuple[str, ...]
    ) -> None:
        self._check()
        answer: asyncio.Future[None] = self.loop.create_future()
        self.loop.call_later(self.broker.latency(), ask, topics, answer, context=self.loop.world)
        await asyncio.wait([answer], timeout=ANSWER_TIMEOUT_S)
        if not answer.done():
            raise BrokerLost("the broker does not answer")

    def _unsubscribed_now(self, topics: tuple[str, ...], answer: asyncio.Future[None]) -> None:
        if self.dead or not self.open:
            return
        self._filter(tuple(one for one in self.filters if one not in topics))
        if not answer.done():
            answer.set_result(None)

    def _subscribed_now(self, topics: tuple[str, ...], answer: asyncio.Future[None]) -> None:
        if self.dead or not self.open:
            return
        self._filter(self.filters + topics)
        if not answer.done():
            answer.set_result(None)
        deliver = self.send_down if self.broker.weather.fine else self.deliver
        for filter_ in topics:
            for topic, payload in self.broker.retained.items():
                if matches(filter_, topic):
                    deliver(Message(topic, payload, retain=True))

    def _filter(self, filters: tuple[str, ...]) -> None:
        self.filters = filters
        self.known = self.broker.known(filters)
        self._comes_back.clear()
        self.broker.routes.clear()

    def hears(self, topic: str) -> bool:
        """Whether any of its filters matches."""
        known = self.known.get(topic)
        if known is None:
            known = self.known[topic] = any(matches(filter_, topic) for filter_ in self.filters)
        return known

    def comes_back(self, topic: str) -> bool:
        """Whether it receives its own message: with MQTT 5 not by a filter of its own topics (No Local)."""
        known = self._comes_back.get(topic)
        if known is None:
            others = (filter_ for filter_ in self.filters if filter_ not in self.own_topics)
            known = self._comes_back[topic] = any(matches(filter_, topic) for filter_ in others)
        return known

    # ---- the wire

    def _arrive(self) -> None:
        """Pass the messages under way to the broker, in order."""
        self._up_waits = False
        if self.dead or not self.open:
            self._up.clear()
            return
        broker, refusing = self.broker, bool(self.broker.weather.refused or self.broker.denied)
        while self._up:
            number, topic, payload, retain, correlation = self._up.popleft()
            if refusing and broker.refuses(self, topic):
                self.send_down((number, "Not authorized"))
                continue
            broker.take(self.identifier, topic, payload, retain, correlation)
            self.send_down((number, ""))

    def deliver(self, message: Message) -> None:
        """Send to the client, with the faults of the weather."""
        weather, rng = self.broker.weather, self.broker.rng
        # The last retained message must not be lost: readers could not detect a stale one.
        if rng.random() < weather.dropped and any(leaf in message.topic for leaf in LOSABLE):
            self.broker.count("delivery dropped")
            return
        if rng.random() < weather.delayed:
            self.broker.count("delivery delayed")
            self._held_until = max(self._held_until, self.loop.time() + rng.expovariate(1.0))
        self.send_down(message)
        if rng.random() < weather.doubled:
            self.broker.count("delivery doubled")
            self.send_down(message)
        if len(self._down) > 1 and rng.random() < weather.swapped:
            last, before = self._down[-1], self._down[-2]
            if isinstance(last, Message) and isinstance(before, Message) and last.topic != before.topic:
                self.broker.count("deliveries swapped")
                self._down[-1], self._down[-2] = before, last

    def send_down(self, what: Message | tuple[int, str]) -> None:
        """Send to the client, after the messages under way."""
        self._down.append(what)
        if not self._down_waits:
            self._down_waits = True
            at = max(self.loop.time() + self.broker.latency(), self._held_until)
            self.loop.call_at(at, self._hear, context=self.context)

    def _hear(self) -> None:
        """Take the messages under way, in the client's own process."""
        self._down_waits = False
        if self.dead:
            self._down.clear()
            return
        if self.loop.time() < self._held_until:
            self._down_waits = True
            self.loop.call_at(self._held_until, self._hear, context=self.context)
            return
        down, settle, received = self._down, self._settle, self._received
        while down:
            one = down.popleft()
            if isinstance(one, tuple):
                settle(*one)
            else:
                received(one)
        self._hand_over()

    # ---- the end

    def lose(self, reason: str) -> None:
        """Let the client detect the loss."""
        self.dead = True
        self._lose(BrokerLost(reason))

    def cut(self, client_notices: float, broker_notices: float) -> None:
        """Cut the connection: from now on no message passes."""
        self.dead = True
        self.loop.call_later(client_notices, self.lose, "the connection was cut", context=self.loop.world)
        self.loop.call_later(broker_notices, self.broker.gone, self, context=self.loop.world)

    def killed(self) -> None:
        """End the connection of a killed process. All or a part of its sent messages may still arrive."""
        for _ in range(self.broker.rng.randint(0, len(self._up)) if self._up else 0):
            self._up.pop()
        self._arrive()
        self.dead = True
        self.loop.call_later(self.broker.latency(), self.broker.gone, self, context=self.loop.world)

    def disconnect(self) -> None:
        """Disconnect in order: sent messages arrive, and the will is withdrawn."""
        if self.dead or not self.open:
            return
        self._arrive()
        self.dead = True
        self.will = None
        self.broker.gone(self)
        self._lose(BrokerLost("closed"))


class _Connection(AbstractAsyncContextManager[Session]):
    """From the handshake to the end of a session."""

    def __init__(self, broker: "Broker", identifier: str, will: Will | None) -> None:
        self._broker = broker
        self._identifier = identifier
        self._will = will
        self._client: _Client | None = None

    async def __aenter__(self) -> Session:
        await asyncio.sleep(self._broker.latency() * 2)
        if not self._broker.up:
            raise BrokerLost("connection refused")
        client = _Client(self._broker, self._identifier, self._will)
        self._client = client
        if client.process is not None:
            client.process.on_death.append(client.killed)
        self._broker.meet(client)
        return client

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        client = self._client
        if client is not None and (client.process is None or client.process.alive):
            if client.process is not None:
                client.process.on_death.remove(client.killed)
            client.disconnect()


class Broker:
    """The broker."""

    def __init__(self, loop: VirtualLoop, rng: random.Random, count: Callable[[str], None]) -> None:
        """`count` is called for each fault that the weather injects."""
        self.loop = loop
        self.rng = rng
        self.count = count
        self.weather = Weather()
        self.denied = ""
        """The table whose topics no process may write, as with an access list that has no entry for it."""
        self.up = True
        self.retained: dict[str, bytes] = {}
        self.routes: dict[str, list[_Client]] = {}
        self.on_taken: Callable[[str, str, bytes], None] = lambda _identifier, _topic, _payload: None
        self._clients: dict[str, _Client] = {}
        self._heard: dict[tuple[str, ...], dict[str, bool]] = {}
        self._chosen = 0
        self._written_down: dict[str, bytes] = {}

    def connect(
        self, _settings: Mqtt, identifier: str, will: Will | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """As daemon.broker.connection.connect; without an identifier the broker chooses an unused one."""
        self._chosen += 1
        return _Connection(self, identifier or f"auto-{self._chosen}", will)

    def latency(self) -> float:
        """Seconds from one end to the other."""
        return LATENCY * (0.5 + self.rng.random())

    def refuses(self, client: _Client, topic: str) -> bool:
        """Whether the access list does not allow this client to write there."""
        if client.process is None:
            return False
        if self.denied and f"/table/{self.denied}/" in topic:
            return True
        refused = bool(self.weather.refused) and self.rng.random() < self.weather.refused
        if refused:
            self.count("publish refused")
        return refused

    def meet(self, client: _Client) -> None:
        """A new connection takes the place of an old one of the same name."""
        old = self._clients.pop(client.identifier, None)
        if old is not None:
            self._leave(old)
            if old.will is not None and self.rng.random() < 0.5:
                self._publish_will(old)
            else:
                old.will = None
            old.lose("another connection took the session over")
        self._clients[client.identifier] = client
        if self.weather.hung and self.rng.random() < self.weather.hung:
            self.count("network: connection cut as soon as it was made")
            self.cut(client.identifier)

    def take(self, identifier: str, topic: str, payload: bytes, retain: bool, correlation: bytes = b"") -> None:
        """Take a message into the broker."""
        self.on_taken(identifier, topic, payload)
        if retain:
            self.retained.pop(topic, None)
            if payload:
                self.retained[topic] = payload
        clients = self.routes.get(topic)
        if clients is None:
            clients = [one for one in self._clients.values() if one.hears(topic)]
            self.routes[topic] = clients
        if clients:
            message = Message(topic, payload, correlation=correlation)
            fine = self.weather.fine
            for client in clients:
                if client.identifier == identifier and not (self.weather.echoes or client.comes_back(topic)):
                    continue
                if fine:
                    client.send_down(message)
                else:
                    client.deliver(message)

    def known(self, filters: tuple[str, ...]) -> dict[str, bool]:
        """Whether any filter matches a topic; cached, because routes are cleared with each connection."""
        return self._heard.setdefault(filters, {})

    def gone(self, client: _Client) -> None:
        """The broker detected that a client is gone; its will is delayed."""
        if not client.open:
            return
        self._leave(client)
        if self._clients.get(client.identifier) is client:
            del self._clients[client.identifier]
        if client.will is not None:
            self.loop.call_later(WILL_DELAY_S, self._publish_will, client, context=self.loop.world)

    def _leave(self, client: _Client) -> None:
        client.open = False
        self.routes.clear()

    def _publish_will(self, client: _Client) -> None:
        """Publish the will unless the client came back meanwhile."""
        if client.will is not None and self.up and (client.identifier not in self._clients):
            self.take(client.identifier, client.will.topic, client.will.payload, True)

    # ---- faults of the broker

    def clients(self) -> list[str]:
        """The connected clients."""
        return list(self._clients)

    def cut(self, identifier: str) -> None:
        """Cut one connection; each end detects it after its own delay."""
        client = self._clients[identifier]
        longest_delay_s = LONGEST_DELAY_S if self.rng.random() < 0.5 else 0.1
        client.cut(self.rng.uniform(0.0, longest_delay_s), self.rng.uniform(0.0, longest_delay_s))

    def write_down(self) -> None:
        """Save the retained messages, as a broker does from time to time."""
        self._written_down = dict(self.retained)

    def kill(self) -> None:
        """Kill the broker: all connections and the messages under way are lost."""
        self.up = False
        for client in list(self._clients.values()):
            self._leave(client)
            client.will = None
            client.dead = True
            self.loop.call_later(
                self.rng.uniform(0.0, 0.05), client.lose, "the broker was killed", context=self.loop.world
            )
        self._clients.clear()

    def start(self, memory: str) -> None:
        """Start again. `memory`: "all", "old" or "none" of the retained messages."""
        match memory:
            case "old":
                self.retained = dict(self._written_down)
            case "none":
                self.retained = {}
            case _:
                pass
        self.up = True


@functools.lru_cache(100_000)
def matches(filter_: str, topic: str) -> bool:
    """Whether a subscription to `filter_` matches `topic`."""
    ours, words = filter_.split("/"), topic.split("/")
    for place, word in enumerate(ours):
        if word == "#":
            return True
        if place >= len(words) or word not in ("+", words[place]):
            return False
    return len(ours) == len(words)
