"""`feltd schema`: the whole topic tree as an AsyncAPI 3 document, with JSON Schemas, made from the code.

`docs/asyncapi.json` is its output; a test fails when they differ.
"""

from typing import Any

import msgspec

from daemon.broker.gap_recovery import Answer, Request
from daemon.consumer.consumer import Standing
from daemon.edge.tracing import Frame
from daemon.read_model import Alert
from protocols.contract.commands import COMMANDS, Command, Reply, name_of
from protocols.contract.events import EVENT_TYPES
from protocols.contract.topics import CONTENT_TYPE
from rules.engine.ruleset import Closed, Corrected, Noted, Opened, Resolved, Result, Suspended, Voided

__all__ = ["asyncapi"]

VERDICTS: tuple[type[Any], ...] = (Opened, Closed, Suspended, Resolved, Voided, Corrected, Noted)
ENVELOPE = {
    "type": "object",
    "required": ["specversion", "id", "source", "type", "time", "seq", "data"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "description": "of an event <edge>:<table>:<seq>; of a verdict <event id>/<number>"},
        "source": {"type": "string", "description": "the topic of who says it"},
        "type": {"type": "string"},
        "time": {"type": "string", "format": "date-time", "description": "UTC, when the bytes arrived"},
        "seq": {"type": "integer", "description": "gapless per journal and table, from 1"},
        "bootid": {"type": "string", "description": "of the edge's process"},
        "journal": {
            "type": "string",
            "description": "which journal counted; a replaced disk counts from 1 in a new one",
        },
        "replay": {"type": "boolean", "description": "published before, or later than it happened"},
        "data": {"type": "object"},
        "mac": {
            "type": "string",
            "pattern": "^[0-9a-f]{32}$",
            "description": "of an event whose edge has a key: BLAKE2b with that key, 16 bytes, over <length>:<text> of "
            "id, source, type, time (as 2026-11-20T20:00:01.000250+00:00), seq and journal, and the bytes of data",
        },
    },
}
QUOTA = (
    "at most 500 a request, at a limited rate and behind live ones. Requests are coalesced, and a row is published "
    "again at most once a second; what did not come after 2 s is asked for again, and then ever more seldom"
)
PARAMETERS = {
    "site": "the casino",
    "edge": "the computer at the tables; or the rules consumer, usually `rules`: its info says `rules: true`",
    "table": "the table",
    "device": "the device on its table",
    "type": "the event's type",
    "command": "the command's name",
    "alert": "which alert",
}


COMMAND_REQUEST = {
    "type": "object",
    "required": ["id", "expires"],
    "properties": {
        "id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "tells it from every other: what is asked twice is done once and answered twice",
        },
        "expires": {
            "type": "string",
            "format": "date-time",
            "description": "after this it is refused; at most 10 minutes from now",
        },
        "args": {"type": "object", "default": {}, "description": "the command's fields"},
    },
    "additionalProperties": False,
}


def _tag(kind: type[Any]) -> str:
    return str(kind.__struct_config__.tag)


def asyncapi(version: str) -> dict[str, Any]:
    """The document."""
    others = (Result, Standing, Alert, Request, Answer, Reply, Frame)
    kinds = [*EVENT_TYPES.values(), *VERDICTS, *COMMANDS.values(), *others]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    for kind in (*EVENT_TYPES.values(), *VERDICTS):  # the type stands in the envelope, not in the data
        schema = schemas[kind.__name__]
        schema["properties"].pop("type")
        schema["required"] = [name for name in schema["required"] if name != "type"]
    for command in COMMANDS.values():  # its name stands in the topic
        schema = schemas[command.__name__]
        schema["properties"].pop("command")
        schema["required"] = [name for name in schema["required"] if name != "command"]
    schemas["Envelope"] = ENVELOPE
    schemas["CommandRequest"] = COMMAND_REQUEST
    messages = {
        _tag(kind): {
            "name": _tag(kind),
            "summary": (kind.__doc__ or "").strip().partition("\n")[0],
            "contentType": CONTENT_TYPE,
            "payload": {
                "allOf": [
                    {"$ref": "#/components/schemas/Envelope"},
                    {"properties": {"type": {"const": _tag(kind)}, "data": _ref(kind.__name__)}},
                ]
            },
        }
        for kind in (*EVENT_TYPES.values(), *VERDICTS)
    }
    names = ("result", "state", "alert", "replay", "answer")
    for name, kind in zip(names, others, strict=False):
        messages[name] = {"name": name, "contentType": "application/json", "payload": _ref(kind.__name__)}
    messages |= {f"command.{name}": _command(kind) for name, kind in COMMANDS.items()}
    messages["reply"] = {
        "name": "reply",
        "summary": "what became of a command; also to the response topic of MQTT 5, if the request names one",
        "contentType": "application/json",
        "payload": _ref("Reply"),
    }
    words = {"type": "string", "enum": ["online", "offline"]}
    messages["availability"] = {"name": "availability", "contentType": "text/plain", "payload": words}
    for name, text in (
        ("meta", "driver, model, serial, firmware, url, edge"),
        ("snapshot", "online, reason, faults, counters, last_event, traced_until"),
        ("info", "version, configuration digest, drivers, boot and journal ids"),
        ("health", "outbox, loop lag, disk, CPU, memory, newest seq of each table; every 30 s"),
    ):
        messages[name] = {
            "name": name,
            "summary": text,
            "contentType": "application/json",
            "payload": {"type": "object"},
        }
    messages["trace"] = {
        "name": "trace",
        "summary": "JSON lines, each of this shape; gaps in `n` beyond `dropped` were lost on the way",
        "contentType": "application/x-ndjson",
        "payload": _ref("Frame"),
    }
    table, device, edge = "table/{table}", "table/{table}/device/{device}", "edge/{edge}"
    channels = {
        "deviceEvent": (f"{device}/event/{{type}}", "what a device saw; QoS 1, not retained", list(EVENT_TYPES)),
        "deviceAvailability": (f"{device}/availability", "retained", ["availability"]),
        "deviceMeta": (f"{device}/meta", "retained", ["meta"]),
        "deviceState": (f"{device}/state", "retained, a full snapshot", ["snapshot"]),
        "command": (
            f"{device}/cmd/{{command}}",
            "an order for now: never retained, refused when it is too late or unsafe",
            [f"command.{name}" for name in COMMANDS],
        ),
        "commandReply": (f"{device}/cmd/{{command}}/result", "how a command ended", ["reply"]),
        "trace": (
            f"{device}/trace",
            "what passes on its wire while the command `trace` lasts; QoS 0; what tells cards when no round is open",
            ["trace"],
        ),
        "roundEvent": (f"{table}/round/event/{{type}}", "what became of a round", [_tag(kind) for kind in VERDICTS]),
        "roundState": (f"{table}/round/state", "retained, the round as it stands", ["state"]),
        "roundResult": (f"{table}/round/result", "retained, the last result", ["result"]),
        "alert": (f"{table}/alert/{{alert}}", "retained while open; empty closes it", ["alert"]),
        "replay": (f"{table}/cmd/replay", f"events again, from the edge's journal; {QUOTA}", ["replay"]),
        "replayAnswer": (f"{table}/cmd/replay/result", "what was published again", ["answer"]),
        "roundReplay": (f"{table}/round/cmd/replay", f"verdicts again, from the rules' journal; {QUOTA}", ["replay"]),
        "roundReplayAnswer": (f"{table}/round/cmd/replay/result", "what was published again", ["answer"]),
        "edgeAvailability": (f"{edge}/availability", "retained, last will", ["availability"]),
        "edgeInfo": (f"{edge}/info", "retained", ["info"]),
        "edgeHealth": (f"{edge}/health", "retained", ["health"]),
    }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "feltd", "version": version, "description": "Casino table devices and rounds on MQTT."},
        "defaultContentType": "application/json",
        "channels": {name: _channel(*rest) for name, rest in channels.items()},
        "operations": {
            name: {
                "action": "receive" if name in ("command", "replay", "roundReplay") else "send",
                "channel": {"$ref": f"#/channels/{name}"},
            }
            for name in channels
        },
        "components": {"messages": messages, "schemas": schemas},
    }


def _command(kind: type[Command]) -> dict[str, Any]:
    when = " Refused while a round is open." if kind.between_rounds else ""
    return {
        "name": f"command.{name_of(kind)}",
        "summary": (kind.__doc__ or "").strip().partition("\n")[0] + when,
        "contentType": "application/json",
        "payload": {
            "allOf": [
                {"$ref": "#/components/schemas/CommandRequest"},
                {"properties": {"args": _ref(kind.__name__)}},
            ]
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _channel(path: str, text: str, messages: list[str]) -> dict[str, Any]:
    address = f"felt/1/{{site}}/{path}"
    return {
        "address": address,
        "description": text,
        "parameters": {name: {"description": words} for name, words in PARAMETERS.items() if f"{{{name}}}" in address},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
    }
