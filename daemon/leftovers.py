"""What stands on the broker of what is no longer there: retained topics have no end of their own.

`meta` names the edge that tells of a device, `round/state` the rules that tell of a table. Whoever is named there and
no longer has it in its configuration clears what it left, when it meets the broker. What a process left that is itself
gone for good is cleared by `feltd forget`.
"""

from collections.abc import Iterable, Mapping

import msgspec
import structlog
from msgspec import Struct

from daemon.mqtt import UNREADABLE, BrokerRefused, Message, Session
from protocols.topics import device_topic, table_topic

__all__ = ["METAS", "STATES", "alert_topic", "left_by_edge", "left_by_rules", "look_for"]

METAS = "device/+/meta"
STATES = "round/state"


class _Meta(Struct, frozen=True):
    """What is looked at in `meta`."""

    edge: str = ""
    driver: str = ""


class _State(Struct, frozen=True):
    """What is looked at in `round/state`."""

    rules: str = ""


def alert_topic(site: str, table: str, device: str, code: str) -> str:
    """Where the alert of a device's fault stands."""
    return table_topic(site, table, f"alert/{device}-{code.replace('.', '-')}")


def left_by_edge(
    site: str, name: str, message: Message, faults: Mapping[str, Iterable[str]], alerted: Iterable[str] = ()
) -> list[str]:
    """All that stands of the device of a `meta`, if the edge `name` put it there; the `meta` itself last.

    `faults`: by driver, the codes of the alerts there may be; `alerted`: those that there were.
    """
    try:
        meta = msgspec.json.decode(message.payload, type=_Meta)
    except UNREADABLE:  # empty: cleared just now
        return []
    if meta.edge != name:
        return []
    _, _, _, _, table, _, device, _ = message.topic.split("/")
    codes = dict.fromkeys(("device.offline", *alerted, *faults.get(meta.driver, ())))
    return [
        *(device_topic(site, table, device, leaf) for leaf in ("availability", "state")),
        *(alert_topic(site, table, device, code) for code in codes),
        message.topic,
    ]


def left_by_rules(site: str, name: str, message: Message) -> list[str]:
    """All that stands of the rounds of a `round/state`, if the rules `name` put it there; the state itself last."""
    try:
        state = msgspec.json.decode(message.payload, type=_State)
    except UNREADABLE:
        return []
    if state.rules != name:
        return []
    table = message.topic.split("/")[4]
    leaves = ("alert/round-suspended", "round/result")
    return [*(table_topic(site, table, leaf) for leaf in leaves), message.topic]


async def look_for(session: Session, topic: str, log: structlog.typing.FilteringBoundLogger) -> None:
    """Hear of what stands under `topic`. A broker that does not allow it keeps nobody from work. Raises BrokerLost."""
    try:
        await session.glance(topic)
    except BrokerRefused as error:
        log.warning("leftovers.unseen", reason=str(error))
