"""Tests once, at the start, whether the broker keeps topics unchanged and finds retained messages by a wildcard.

feltd's topics contain dots (`event/ball.landed`), and each reader begins with the retained messages. A broker that
changes such a topic, or finds no retained messages by a wildcard, would lose events unnoticed. See
docs/reference/brokers.md.
"""

import asyncio
import uuid

from daemon.broker.session import BrokerLost, BrokerRefused, Session, Will

__all__ = ["trial_topic", "try_broker"]

ECHO_S, RETAINED_S = 5.0, 15.0
_REMEDY = "use mosquitto, or another broker of docs/reference/brokers.md"


def trial_topic(will: Will) -> str:
    """The topic for the trial: beside the topic of the process's will, with a dot in it."""
    return will.topic.rpartition("/")[0] + "/broker.trial"


async def try_broker(session: Session, topic: str) -> bool:
    """Publish under `topic`, retained, and read it back by a wildcard. The topic is cleared afterwards.

    False where nothing comes back: the access list does not let this process read the topic, and the test is void.
    Raises BrokerRefused for a broker with which feltd cannot work, BrokerLost.
    """
    session.tolerates = lambda _topic, _reason: True
    token = uuid.uuid4().hex.encode()
    wildcard = topic.rpartition("/")[0] + "/#"
    await session.subscribe(wildcard)
    try:
        await session.publish(topic, token, retain=True, vital=False)
        await session.drained()
        received = await _topic_of(session, token, ECHO_S)
    except BrokerLost as lost:
        text = f"it closed the connection at a topic with a dot, as NATS before 2.10 does ({lost}); {_REMEDY}"
        raise BrokerRefused(text) from lost
    try:
        if received is None:
            return False
        if received != topic:
            raise BrokerRefused(f"it changes topics: {topic} came back as {received}, as with RabbitMQ; {_REMEDY}")
        await session.read_retained(wildcard)
        if await _topic_of(session, token, RETAINED_S) is None:
            raise BrokerRefused(f"it gives no retained messages to a subscription with a wildcard; {_REMEDY}")
    finally:
        await session.publish(topic, b"", retain=True, vital=False)
        await session.drained()
    return True


async def _topic_of(session: Session, token: bytes, seconds: float) -> str | None:
    """The topic under which the token arrives; None where it does not arrive in time."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                for message in await session.messages():
                    if message.payload == token:
                        return message.topic
    except TimeoutError:
        return None
