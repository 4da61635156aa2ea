"""The heartbeat of a process: a reader that stops hearing it knows that the process hangs long before its last will."""

from typing import Final

from daemon.broker.session import Session
from daemon.pulse import PULSE_S, pulse
from protocols.contract.topics import edge_topic

BEAT_EVERY_S: Final = PULSE_S
SILENT_S: Final = 4.0
"""A process that was not heard for so long hangs, or the network between does: two beats may come late."""


async def beat(session: Session, site: str, name: str) -> None:
    """Publish a beat, QoS 0 and not retained, until the session is lost."""
    topic = edge_topic(site, name, "alive")
    while True:
        session.publish_qos0(topic, b"alive")
        await pulse()
