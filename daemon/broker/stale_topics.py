"""What stands on the broker of what is no longer there: retained topics have no end of their own.

`meta` names the edge that tells of a device, `round/state` the rules that tell of a table. Whoever is named there and
no longer has it in its configuration clears what it left, when it meets the broker. What a process left that is itself
gone for good is cleared by `feltd forget`.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping

import msgspec
import structlog

from daemon.broker.session import UNREADABLE, BrokerLost, Message, Session
from protocols.contract.documents import DeviceMeta
from protocols.contract.results import BadRound, decode_state
from protocols.contract.topics import device_topic, table_topic

__all__ = [
    "CONFLICT",
    "FORGED",
    "METAS",
    "STATES",
    "Leftovers",
    "alert_topic",
    "left_by_edge",
    "left_by_rules",
    "room_topic",
]

METAS = "device/+/meta"
STATES = "round/state"
SOON = 5.0
"""Seconds after which what stands on the broker was heard, if it lets us."""
MOST_CLEARED = 10_000
FORGED, CONFLICT = "events.forged", "events.conflict"
"""The codes of the alerts of the rules at a table, besides that of a suspended round."""


def alert_topic(site: str, table: str, device: str, code: str) -> str:
    """Where the alert of a device's fault stands."""
    return table_topic(site, table, f"alert/{device}-{code.replace('.', '-')}")


def room_topic(site: str, table: str, name: str) -> str:
    """Where the alert stands that the journal of an edge or of rules has little room."""
    return table_topic(site, table, f"alert/{name}-journal-room")


def left_by_edge(
    site: str,
    name: str,
    message: Message,
    faults: Mapping[str, Iterable[str]],
    *,
    alerted: Iterable[str] = (),
    tables: Collection[str] = (),
) -> list[str]:
    """All that stands of the device of a `meta`, if the edge `name` put it there; the `meta` itself last.

    `faults`: by driver, the codes of the alerts there may be; `alerted`: those that there were. `tables` it still has.
    """
    try:
        meta = msgspec.json.decode(message.payload, type=DeviceMeta)
    except UNREADABLE:  # empty: cleared just now
        return []
    if meta.edge != name:
        return []
    _, _, _, _, table, _, device, _ = message.topic.split("/")
    codes = dict.fromkeys(("device.offline", *alerted, *faults.get(meta.driver, ())))
    return [
        device_topic(site, table, device, "availability"),
        device_topic(site, table, device, "state"),
        *(alert_topic(site, table, device, code) for code in codes),
        *([] if table in tables else [room_topic(site, table, name)]),
        message.topic,
    ]


def left_by_rules(site: str, name: str, message: Message) -> list[str]:
    """All that stands of the rounds of a `round/state`, if the rules `name` put it there; the state itself last."""
    try:
        state = decode_state(message.payload)
    except BadRound:
        return []
    if state.rules != name:
        return []
    table = message.topic.split("/")[4]
    leaves = ("alert/round-suspended", "round/result")
    alerts = (alert_topic(site, table, name, code) for code in (FORGED, CONFLICT))
    return [*(table_topic(site, table, leaf) for leaf in leaves), *alerts, room_topic(site, table, name), message.topic]


class Leftovers:
    """What one process left on the broker. Whatever becomes of looking and clearing keeps nobody from work."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        """Nothing was looked for."""
        self._log = log
        self._own = False
        self._blind = False
        self._cleared: set[str] = set()

    async def look(self, session: Session, topic: str, *, own: bool) -> None:
        """Hear of what stands under `topic`; `own`: something of ours does, so that we know whether we hear."""
        self._own = not own
        try:
            await session.read_retained(topic)
        except BrokerLost as error:  # refused, or slow; that a connection is lost others notice
            reason = str(error)
        else:
            await asyncio.sleep(SOON)
            reason = "the broker does not give us what we said ourselves"
            if self._own:
                return
        if not self._blind:
            remedy = "make the access list anew (feltd acl): what is no longer there may show as offline until then"
            self._log.warning("leftovers.unseen", topic=topic, reason=reason, remedy=remedy)
        self._blind = True

    def heard_own(self) -> None:
        """What we said stands there: we may look."""
        self._own = True

    async def clear(self, session: Session, topics: list[str]) -> None:
        """Once in the life of a process: at the next meeting it may be another's. Raises BrokerLost.

        And where we may not, mosquitto ends the connection of who tries it several times.
        """
        if not topics or topics[-1] in self._cleared or len(self._cleared) >= MOST_CLEARED:
            return
        self._cleared.add(topics[-1])
        *others, last = topics
        for topic in others:
            await session.publish(topic, b"", retain=True, vital=False)

        def cleared() -> None:
            self._log.info("leftovers.cleared", topic=last, reason="no longer in the configuration")

        await session.publish(last, b"", retain=True, vital=False, acknowledged=cleared)
