"""Clears retained topics of devices and tables that were removed from the configuration.

Retained topics never expire. `meta` names the edge of a device, `round/state` the rules of a table. When a process
connects, it clears the topics that carry its name and are no longer in its configuration. Topics of a process that was
removed itself are cleared by `feltd forget`.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping

import msgspec
import structlog

from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session
from daemon.journal.forwarded import backbone_topic
from daemon.journal.retention import room_topic
from protocols.contract.documents import DeviceMeta
from protocols.contract.results import BadRound, decode_state
from protocols.contract.topics import device_topic, table_topic

__all__ = [
    "CONFLICT",
    "DISAGREE_LEAF",
    "FORGED",
    "METAS",
    "STATES",
    "STATE_FORGED",
    "StaleTopics",
    "alert_topic",
    "alerts_of_edge",
    "alerts_of_rules",
    "clock_topic",
    "stale_of_edge",
    "stale_of_rules",
]

METAS = "device/+/meta"
STATES = "round/state"
SOON = 5.0
"""Seconds after which the retained topics have arrived, if the broker lets us read them."""
MOST_CLEARED = 10_000
FORGED, CONFLICT = "events.forged", "events.conflict"
"""The codes of the alerts of the rules at a table, besides that of a suspended round."""
DISAGREE_LEAF = "alert/results-disagree"
"""Below a table the alert that two rules processes differ; the same topic of both, and a person clears it."""
STATE_FORGED = "state.forged"
"""The code of the alert of a process that its retained topics were overwritten."""


def alert_topic(site: str, table: str, device: str, code: str) -> str:
    """The topic of the alert for a device's fault."""
    return table_topic(site, table, f"alert/{device}-{code.replace('.', '-')}")


def clock_topic(site: str, table: str, name: str) -> str:
    """The topic of the alert that the clock of an edge went back."""
    return table_topic(site, table, f"alert/{name}-clock-back")


def alerts_of_edge(site: str, table: str, edge: str) -> list[str]:
    """The topics of the alerts that an edge publishes at a table, besides those of its devices and pools."""
    own = [room_topic(site, table, edge), backbone_topic(site, table, edge)]
    return [*own, clock_topic(site, table, edge), alert_topic(site, table, edge, STATE_FORGED)]


def alerts_of_rules(site: str, table: str, rules: str) -> list[str]:
    """The topics of the alerts that rules publish at a table of theirs."""
    own = [alert_topic(site, table, rules, code) for code in (FORGED, CONFLICT, STATE_FORGED)]
    shared = [table_topic(site, table, leaf) for leaf in ("alert/round-suspended", DISAGREE_LEAF)]
    return [*shared, *own, room_topic(site, table, rules), backbone_topic(site, table, rules)]


def stale_of_edge(
    site: str,
    name: str,
    message: Message,
    faults: Mapping[str, Iterable[str]],
    *,
    alerted: Iterable[str] = (),
    tables: Collection[str] = (),
) -> list[str]:
    """All topics of the device of a `meta`, if the edge `name` published it; the `meta` itself last.

    `faults`: the fault codes of each driver; `alerted`: codes of earlier alerts; `tables`: those still configured.
    """
    try:
        meta = msgspec.json.decode(message.payload, type=DeviceMeta)
    except UNREADABLE:  # empty: just cleared
        return []
    if meta.edge != name:
        return []
    _, _, _, _, table, _, device, _ = message.topic.split("/")
    codes = dict.fromkeys(("device.offline", *alerted, *faults.get(meta.driver, ())))
    return [
        device_topic(site, table, device, "availability"),
        device_topic(site, table, device, "state"),
        *(alert_topic(site, table, device, code) for code in codes),
        *([] if table in tables else alerts_of_edge(site, table, name)),
        message.topic,
    ]


def stale_of_rules(site: str, name: str, message: Message) -> list[str]:
    """All topics of the rounds of a `round/state`, if the rules `name` published it; the state itself last."""
    try:
        state = decode_state(message.payload)
    except BadRound:
        return []
    if state.rules != name:
        return []
    table = message.topic.split("/")[4]
    return [table_topic(site, table, "round/result"), *alerts_of_rules(site, table, name), message.topic]


class StaleTopics:
    """The stale topics of one process. A broker that refuses to show or clear them does not stop the process."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        """Begin before any search."""
        self._log = log
        self._own = False
        self._blind = False
        self._cleared: set[str] = set()

    async def look(self, session: Session, topic: str, *, own: bool) -> None:
        """Read the messages retained under `topic`. `own`: one of ours is there, which shows whether we can read."""
        self._own = not own
        try:
            await session.read_retained(topic)
        except BrokerLost as error:  # refused or slow; a lost connection is reported elsewhere
            reason = str(error)
        else:
            await asyncio.sleep(SOON)
            reason = "the broker does not deliver our own retained topics"
            if self._own:
                return
        if not self._blind:
            remedy = "generate the access list again (feltd acl); until then removed devices may show as offline"
            self._log.warning("stale_topics.unread", topic=topic, reason=reason, remedy=remedy)
        self._blind = True

    def received_own(self) -> None:
        """A topic of ours arrived: the broker lets us read."""
        self._own = True

    async def clear(self, session: Session, topics: list[str]) -> None:
        """Clear topics, once in a run of the process: later they may belong to another one. Raises BrokerLost.

        mosquitto ends the connection of a client that repeatedly writes topics that it may not write.
        """
        if not topics or topics[-1] in self._cleared or len(self._cleared) >= MOST_CLEARED:
            return
        self._cleared.add(topics[-1])
        *others, last = topics
        for topic in others:
            await session.publish(topic, b"", retain=True, vital=False)

        def cleared() -> None:
            self._log.info("stale_topics.cleared", topic=last, reason="no longer in the configuration")

        await session.publish(last, b"", retain=True, vital=False, acknowledged=cleared)
