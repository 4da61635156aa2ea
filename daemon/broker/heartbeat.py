"""The heartbeat of a process. Readers detect by its absence that the process hangs, long before its last will."""

from typing import Final

from daemon.broker.session import Session
from daemon.pulse import pulse
from protocols.contract.topics import edge_topic

SILENT_S: Final = 4.0
"""After so many seconds without a beat the process, or the network, counts as hanging: two beats may come late."""


async def beat(session: Session, site: str, name: str) -> None:
    """Publish a beat, QoS 0 and not retained, until the session is lost."""
    topic = edge_topic(site, name, "alive")
    while True:
        session.publish_qos0(topic, b"alive")
        await pulse()
