"""`feltd forget`: clears the retained topics of an edge or rules that were removed for good."""

import asyncio

from msgspec.structs import replace

from daemon.broker.retained import read_standing
from daemon.broker.session import Message, Session
from daemon.broker.stale_topics import METAS, STATES, stale_of_edge, stale_of_rules
from daemon.cli.site_brokers import at_brokers
from daemon.config.model import Config, broker_of
from drivers import FAULTS
from protocols.contract.topics import edge_topic, table_topic

__all__ = ["StillThere", "forget"]

QUIET_S = 1.0
"""Seconds without a message after which every retained message has arrived."""
READ_TIMEOUT_S = 30.0


class StillThere(Exception):
    """The edge or the rules process to forget is online. The message gives the remedy."""


async def forget(config: Config, name: str, *, although_online: bool = False) -> list[str]:
    """Clear all retained topics of an edge or of rules at each broker of the site; returns the cleared topics.

    The broker user is that of [maintenance], which may clear the topics of every process; without it first the user of
    the edge and then that of the rules, each for its own topics. Other processes repeat their topics of the same tables
    when the availability is cleared, which is last. `although_online`: a broker killed together with an edge still
    retains it as online. Raises StillThere, BrokerLost, TimeoutError.
    """
    own = edge_topic(config.site.name, name, "")
    cleared: dict[str, None] = {}
    for part, leaf in ((config.edge, METAS), (config.rules, STATES)):
        broker = broker_of(config, config.maintenance if config.maintenance.username else part)
        broker = replace(broker, others=config.mqtt.others)
        async with asyncio.timeout(READ_TIMEOUT_S), at_brokers(broker) as sessions:
            asked = (f"{own}+", table_topic(config.site.name, "+", leaf))
            standing = [(one, await read_standing(one, *asked, quiet_s=QUIET_S)) for one in sessions]
            if not although_online and any(there.get(f"{own}availability") == b"online" for _, there in standing):
                raise StillThere(
                    f"{name} is online: stop it, and see that nothing starts it again. "
                    "If it does not run, but the broker retains it as online: --although-online"
                )
            for session, there in standing:
                cleared |= dict.fromkeys(await _clear(session, config.site.name, name, leaf, there))
    return list(cleared)


async def _clear(session: Session, site: str, name: str, leaf: str, there: dict[str, bytes]) -> list[str]:
    """Clear the topics of `name` at one broker, its availability last. Raises BrokerLost."""
    own = edge_topic(site, name, "")
    topics: list[str] = []
    for topic, payload in there.items():
        message = Message(topic, payload)
        if topic.startswith(own):
            continue
        topics += stale_of_edge(site, name, message, FAULTS) if leaf == METAS else stale_of_rules(site, name, message)
    topics += sorted((topic for topic in there if topic.startswith(own)), key=_availability_last)
    for topic in topics:
        await session.publish(topic, b"", retain=True)
    await session.drained()
    return topics


def _availability_last(topic: str) -> bool:
    return topic.endswith("/availability")
