"""`feltd forget`: an edge or rules that are gone for good, and all that they left on the broker."""

import asyncio

from daemon.config import Config, broker_of
from daemon.leftovers import METAS, STATES, left_by_edge, left_by_rules
from daemon.mqtt import Message, Session, connect
from drivers import FAULTS
from protocols.topics import edge_topic, table_topic

__all__ = ["StillThere", "forget"]

QUIET = 1.0
"""Seconds without a further message after which all that stands there was heard."""
PATIENCE = 30.0


class StillThere(Exception):
    """Who is to be forgotten is online. The message says what to do."""


async def forget(config: Config, name: str) -> list[str]:
    """Clear all that stands on the broker of an edge or of rules; the topics that were cleared.

    Once as the edge and once as the rules: each may write what the other may not. Raises StillThere, BrokerLost,
    TimeoutError.
    """
    site = config.site.name
    own = edge_topic(site, name, "")
    cleared: list[str] = []
    for part, leaf in ((config.edge, METAS), (config.rules, STATES)):
        async with asyncio.timeout(PATIENCE), connect(broker_of(config, part), "") as session:
            standing = await _standing(session, f"{own}+", table_topic(site, "+", leaf))
            if any(one.topic == f"{own}availability" and one.payload == b"online" for one in standing):
                raise StillThere(f"{name} is online: stop it, and see that nothing starts it again")
            topics: list[str] = []
            for one in standing:
                if one.topic.startswith(own):
                    topics.append(one.topic)
                elif leaf == METAS:
                    topics += left_by_edge(site, name, one, FAULTS)
                else:
                    topics += left_by_rules(site, name, one)
            for topic in topics:
                await session.publish(topic, b"", retain=True)
            await session.drained()
            cleared += topics
    return cleared


async def _standing(session: Session, *topics: str) -> list[Message]:
    """What stands under these topics."""
    await session.glance(*topics)
    heard: list[Message] = []
    try:
        while True:
            async with asyncio.timeout(QUIET):
                heard += await session.messages()
    except TimeoutError:
        return [one for one in heard if one.payload]
