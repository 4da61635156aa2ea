"""Home Assistant's MQTT discovery for the devices and tables of an edge.

    homeassistant/device/feltd_<site>_<edge>/<table>_<device>/config     one for each device
    homeassistant/device/feltd_<site>_<edge>/<table>/config              one for each table with a game

The edge uses it if `[edge] home_assistant` is set. Each message is retained and refers to existing topics: Home
Assistant reads availability, state and results there. The journal stores which topics were published, so that those of
a removed device, or all after the option was switched off, can be cleared at the next connection. A broker that refuses
a topic is logged once with the remedy and has no other effect. The edge may not read these topics and cannot detect
that they were cleared or overwritten: all are published again every REPEAT_S. Home Assistant ignores repetitions.

Source of the format: the documentation of the MQTT integration, "device discovery payload".
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from daemon.broker.session import Session
from protocols.contract.topics import device_topic, edge_topic, table_topic

__all__ = ["KEY", "Discovery", "FoundDevice", "device_config", "table_config", "writes"]

PREFIX = "homeassistant"
KEY = "home_assistant"
"""Key in the journal: the topics that may be on the broker."""
REPEAT_S = 60.0
LONGEST = 255
"""Longest state that Home Assistant accepts."""

_ONLINE = {"payload_available": "online", "payload_not_available": "offline"}
_PROBLEM = "{{ 'ON' if value_json.faults else 'OFF' }}"
_FAULTS = "{{ {'faults': value_json.faults} | tojson }}"
_FAULT = (
    "{% set said = value_json.faults | map(attribute='text') | join('; ') if value_json.faults else 'none' %}"
    f"{{{{ said[:{LONGEST}] }}}}"
)
_RESULT = (
    "{% set void = 'void: ' ~ (value_json.void.reason.code | replace('_', ' ')) if value_json.void else '' %}"
    "{% set said = void or value_json.announcements.get('en', '') %}"
    f"{{{{ (value_json.round ~ ' ' ~ said)[:{LONGEST}] }}}}"
)


class FoundDevice(Struct, frozen=True):
    """The description of a device in discovery messages."""

    table: str
    name: str
    driver: str
    model: str = ""
    serial: str = ""
    firmware: str = ""


def _node(site: str, edge: str) -> str:
    return f"feltd_{site}_{edge}"  # no name has an underscore


def writes(site: str, edge: str) -> str:
    """The topics that the edge's user must be allowed to write."""
    return f"{PREFIX}/device/{_node(site, edge)}/+/config"


def _config(site: str, edge: str, version: str, at: str, config: dict[str, Any]) -> tuple[str, bytes]:
    origin = {"name": "feltd", "sw_version": version}
    topic = f"{PREFIX}/device/{_node(site, edge)}/{at}/config"
    return topic, msgspec.json.encode({**config, "origin": origin})


def device_config(site: str, edge: str, version: str, device: FoundDevice) -> tuple[str, bytes]:
    """Topic and payload for a device: its connectivity, whether a fault is open, and which."""
    place = partial(device_topic, site, device.table, device.name)
    identity = f"feltd_{site}_{device.table}_{device.name}"
    about = {
        "identifiers": [identity],
        "name": f"{device.table} {device.name}",
        "model": device.model or device.driver,
        "suggested_area": device.table,
    }
    about |= {"serial_number": device.serial} if device.serial else {}
    about |= {"sw_version": device.firmware} if device.firmware else {}
    components = {
        "connectivity": {
            "platform": "binary_sensor",
            "unique_id": f"{identity}_connectivity",
            "name": "Connectivity",
            "device_class": "connectivity",
            "entity_category": "diagnostic",
            "state_topic": place("availability"),
            "payload_on": "online",
            "payload_off": "offline",
        },
        "problem": {
            "platform": "binary_sensor",
            "unique_id": f"{identity}_problem",
            "name": "Problem",
            "device_class": "problem",
            "state_topic": place("state"),
            "value_template": _PROBLEM,
            "json_attributes_topic": place("state"),
            "json_attributes_template": _FAULTS,
        },
        "fault": {
            "platform": "sensor",
            "unique_id": f"{identity}_fault",
            "name": "Fault",
            "icon": "mdi:alert-circle-outline",
            "state_topic": place("state"),
            "value_template": _FAULT,
        },
    }
    config = {
        "device": about,
        "availability": [{"topic": edge_topic(site, edge, "availability"), **_ONLINE}],
        "components": components,
    }
    return _config(site, edge, version, f"{device.table}_{device.name}", config)


def table_config(site: str, edge: str, version: str, table: str, rules: str) -> tuple[str, bytes]:
    """Topic and payload for a table with a game: its last result, available while the rules `rules` are online."""
    identity = f"feltd_{site}_{table}"
    result = table_topic(site, table, "round/result")
    component = {
        "platform": "sensor",
        "unique_id": f"{identity}_result",
        "name": "Last result",
        "icon": "mdi:cards-playing-outline",
        "state_topic": result,
        "value_template": _RESULT,
        "json_attributes_topic": result,
        "json_attributes_template": "{{ {'round': value_json.round, 'law': value_json.law} | tojson }}",
    }
    config = {
        "device": {"identifiers": [identity], "name": table, "suggested_area": table},
        "availability": [{"topic": edge_topic(site, rules, "availability"), **_ONLINE}],
        "components": {"result": component},
    }
    return _config(site, edge, version, table, config)


class Discovery:
    """The published discovery topics and those to clear. `keep` makes its memory durable."""

    def __init__(
        self,
        wanted: Callable[[], Mapping[str, bytes]],
        remembered: bytes | None,
        keep: Callable[[bytes], object],
        remedy: str,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`wanted` gives the topics to publish. `remembered` is what `keep` received last."""
        self._wanted = wanted
        self._known: dict[str, None] = dict.fromkeys(msgspec.json.decode(remembered or b"[]", type=list[str]))
        self._keep = keep
        self._remedy = remedy
        self._log = log
        self._refused: set[str] = set()
        self._changed = asyncio.Event()

    def touch(self) -> None:
        """The wanted topics may have changed."""
        self._changed.set()

    async def run(self, session: Session) -> None:
        """Publish all of them, then changes, and all of them again every REPEAT_S."""
        sent: dict[str, bytes] = {}
        while True:
            self._changed.clear()
            wanted = self._wanted()
            if not wanted.keys() <= self._known.keys():  # durable first: it must be cleared after any crash
                self._known |= dict.fromkeys(wanted)
                self._save()
            for topic in [*self._known]:
                payload = wanted.get(topic, b"")
                if sent.get(topic) == payload or topic in self._refused:
                    continue
                sent[topic] = payload
                await session.publish(
                    topic,
                    payload,
                    retain=True,
                    vital=False,
                    acknowledged=None if payload else partial(self._cleared, topic),
                    refused=partial(self._denied, topic),
                )
            try:
                async with asyncio.timeout(REPEAT_S):
                    await self._changed.wait()
            except TimeoutError:
                sent.clear()

    def _cleared(self, topic: str) -> None:
        self._known.pop(topic, None)
        self._save()

    def _denied(self, topic: str, reason: str) -> None:
        """Note a refused topic. It is not tried again: mosquitto ends the connection of a client that tries often."""
        if not self._refused:
            self._log.warning("home_assistant.refused", topic=topic, reason=reason, remedy=self._remedy)
        self._refused.add(topic)

    def _save(self) -> None:
        self._keep(msgspec.json.encode([*self._known]))
