"""`feltd schema`: the whole topic tree as an AsyncAPI 3 document, with JSON Schemas, made from the code.

`docs/reference/asyncapi.json` is its output; a test fails when they differ.
"""

import importlib.metadata
import inspect
import string
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from daemon.cli.common import examples
from daemon.words import words
from protocols.contract.commands import COMMANDS, Command, Reply, Request, name_of
from protocols.contract.documents import (
    Alert,
    DeviceMeta,
    DeviceState,
    EdgeHealth,
    EdgeInfo,
    JournalHead,
    ReplayAnswer,
    ReplayRequest,
    TraceLine,
)
from protocols.contract.events import EVENT_TYPES
from protocols.contract.facts import RoundFacts
from protocols.contract.jackpots import (
    ENTRIES,
    ORDERS,
    BookEntry,
    Order,
    PoolBooks,
    PoolLevel,
    PoolOwner,
    WinsPage,
    WinsRequest,
)
from protocols.contract.results import VERDICTS, Result, RoundState
from protocols.contract.topics import CONTENT_TYPE, Wire
from protocols.contract.wagers import Act, PlaceWager, WagerAnswer, WithdrawWager
from rules import RULESETS

__all__ = ["asyncapi", "schema"]

DOCUMENTS: dict[str, type[Any]] = {
    "result": Result,
    "state": RoundState,
    "alert": Alert,
    "replay": ReplayRequest,
    "answer": ReplayAnswer,
    "reply": Reply,
    "meta": DeviceMeta,
    "snapshot": DeviceState,
    "info": EdgeInfo,
    "health": EdgeHealth,
    "head": JournalHead,
    "level": PoolLevel,
    "books": PoolBooks,
    "wager.place": PlaceWager,
    "wager.withdraw": WithdrawWager,
    "wager.act": Act,
    "wager.answer": WagerAnswer,
    "owner": PoolOwner,
    "wins": WinsRequest,
    "wins.page": WinsPage,
}
"""By the name of the message."""
QUOTA = (
    "at most 500 a request, at a limited rate and after live ones. Requests are coalesced, and a row is published "
    "again at most once a second; a reader requests missing rows again after 2 s, then at growing intervals"
)
PARAMETERS = {
    "site": "the casino",
    "edge": "the computer at the tables; the rules, usually `rules`: the info has `rules: true`; or jackpots",
    "table": "the table",
    "device": "the device on its table",
    "type": "the event's type",
    "command": "the command's name",
    "alert": "which alert",
    "pool": "the jackpot",
    "entry": "the kind of entry",
    "order": "what a person orders",
    "terminal": "the betting terminal",
}


@click.command(epilog=examples("feltd schema"))
def schema() -> None:
    """Print the topic tree as an AsyncAPI 3 document with JSON Schemas."""
    document = asyncapi(importlib.metadata.version("feltd"))
    click.echo(msgspec.json.format(msgspec.json.encode(document, order="sorted")))


def asyncapi(version: str) -> dict[str, Any]:
    """The document."""
    enveloped = EVENT_TYPES | VERDICTS
    kinds = [*enveloped.values(), *COMMANDS.values(), *ORDERS.values(), *DOCUMENTS.values()]
    facts = {kind.Facts.__name__: kind.Facts for kind in RULESETS.values()}
    kinds += [BookEntry, RoundFacts, *facts.values(), Wire, Request, TraceLine]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    for schema in schemas.values():  # Python 3.13 takes the indentation out of docstrings itself
        schema["description"] = inspect.cleandoc(schema["description"])
    for kind in (*enveloped.values(), *COMMANDS.values(), *ORDERS.values()):  # the envelope or the topic holds the tag
        schema, tag = schemas[kind.__name__], str(kind.__struct_config__.tag_field)
        schema["properties"].pop(tag)
        schema["required"].remove(tag)
    for kind in DOCUMENTS.values():
        if not kind.__struct_config__.omit_defaults and kind not in (ReplayRequest, ReplayAnswer):
            schemas[kind.__name__]["required"] = list(schemas[kind.__name__]["properties"])  # every field is written
    schemas["Reason"]["x-codes"] = _codes("reason.")
    schemas["Alert"]["x-codes"] = _codes("alert.")
    _merge_facts(schemas, facts)
    messages = {name: _enveloped(name, kind) for name, kind in enveloped.items()}
    messages |= {name: _document(name, kind) for name, kind in DOCUMENTS.items()}
    messages |= {f"command.{name}": _command(kind) for name, kind in COMMANDS.items()}
    messages |= {f"entry.{name}": _enveloped(name, BookEntry) for name in ENTRIES}
    messages |= {f"order.{name}": _order(name, kind) for name, kind in ORDERS.items()}
    words = {"type": "string", "enum": ["online", "offline"]}
    messages["availability"] = {"name": "availability", "contentType": "text/plain", "payload": words}
    messages["alive"] = {"name": "alive", "contentType": "text/plain", "payload": {"type": "string", "const": "alive"}}
    messages["trace"] = {
        "name": "trace",
        "summary": "JSON lines, each of this shape; gaps in `n` beyond `dropped` were lost on the way",
        "contentType": "application/x-ndjson",
        "payload": _ref("TraceLine"),
    }
    channels = _channels()
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "feltd", "version": version, "description": "Casino table devices and rounds on MQTT."},
        "defaultContentType": "application/json",
        "channels": {name: _channel(*rest) for name, rest in channels.items()},
        "operations": {
            name: {
                "action": "receive"
                if name in ("command", "replay", "roundReplay", "wager", "jackpotOrder", "jackpotReplay", "jackpotWins")
                else "send",
                "channel": {"$ref": f"#/channels/{name}"},
            }
            for name in channels
        },
        "components": {"messages": messages, "schemas": schemas},
    }


def _merge_facts(schemas: dict[str, dict[str, Any]], kinds: Iterable[str]) -> None:
    """The schema of facts has the fields of all games: a reader need not know which game it is."""
    fields = schemas["RoundFacts"]["properties"]
    for kind in sorted(kinds):
        for name, schema in schemas[kind]["properties"].items():
            known = fields.setdefault(name, schema)
            choices = [*known.get("anyOf", [known]), *schema.get("anyOf", [schema])]
            bare = [{key: value for key, value in one.items() if key != "default"} for one in choices]
            different = [one for place, one in enumerate(bare) if one not in bare[:place]]
            if len(different) > 1:
                fields[name] = {"anyOf": different, "default": known["default"]}


def _channels() -> dict[str, tuple[str, str, list[str]]]:
    """By the name of a channel: its topic, a description of its content, and its messages."""
    table, device, edge = "table/{table}", "table/{table}/device/{device}", "edge/{edge}"
    return {
        "deviceEvent": (f"{device}/event/{{type}}", "what a device reported; QoS 1, not retained", list(EVENT_TYPES)),
        "deviceAvailability": (f"{device}/availability", "retained", ["availability"]),
        "deviceMeta": (f"{device}/meta", "retained", ["meta"]),
        "deviceState": (f"{device}/state", "retained, a full snapshot", ["snapshot"]),
        "command": (
            f"{device}/cmd/{{command}}",
            "a command; never retained, refused when it is too late or unsafe",
            [f"command.{name}" for name in COMMANDS],
        ),
        "commandReply": (f"{device}/cmd/{{command}}/result", "how a command ended", ["reply"]),
        "trace": (
            f"{device}/trace",
            "what passes on its wire while the command `trace` lasts; QoS 0; where cards are reported, between rounds",
            ["trace"],
        ),
        "roundEvent": (f"{table}/round/event/{{type}}", "what became of a round", list(VERDICTS)),
        "roundState": (f"{table}/round/state", "retained, the round as it is now", ["state"]),
        "roundResult": (f"{table}/round/result", "retained, the last result", ["result"]),
        "alert": (f"{table}/alert/{{alert}}", "retained while open; empty closes it", ["alert"]),
        "replay": (f"{table}/cmd/replay", f"events again, from the edge's journal; {QUOTA}", ["replay"]),
        "replayAnswer": (f"{table}/cmd/replay/result", "what was published again", ["answer"]),
        "roundReplay": (f"{table}/round/cmd/replay", f"verdicts again, from the rules' journal; {QUOTA}", ["replay"]),
        "roundReplayAnswer": (f"{table}/round/cmd/replay/result", "what was published again", ["answer"]),
        "wager": (
            f"{table}/wager/{{terminal}}",
            "requests of a betting terminal; QoS 1, never retained; one that is repeated is kept once",
            ["wager.place", "wager.withdraw", "wager.act"],
        ),
        "wagerAnswer": (
            f"{table}/wager/{{terminal}}/result",
            "answers to a betting terminal: `accepted` and `refused` are final; QoS 1, not retained",
            ["wager.answer"],
        ),
        **_jackpot_channels(),
        "edgeAvailability": (f"{edge}/availability", "retained, last will", ["availability"]),
        "edgeInfo": (f"{edge}/info", "retained", ["info"]),
        "edgeHealth": (f"{edge}/health", "retained", ["health"]),
        "edgeHead": (f"{edge}/head", "retained, the last signed checkpoint of its journal", ["head"]),
        "edgeAlive": (f"{edge}/alive", "the heartbeat of a process, every 1.5 s; QoS 0, not retained", ["alive"]),
    }


def _jackpot_channels() -> dict[str, tuple[str, str, list[str]]]:
    return {
        "jackpotLevel": (
            "jackpot/{pool}/level",
            "retained, what a display may show, how many wins wait and the oldest of them",
            ["level"],
        ),
        "jackpotBooks": (
            "jackpot/{pool}/books",
            "retained, the terms in force, the oldest wins that wait and the last that are over",
            ["books"],
        ),
        "jackpotOwner": (
            "jackpot/{pool}/owner",
            "retained, the process that keeps the pool; edges close its bet while its heartbeat does not come",
            ["owner"],
        ),
        "jackpotEvent": (
            "jackpot/{pool}/event/{entry}",
            "an entry of the pool's books; QoS 1, not retained",
            [f"entry.{name}" for name in ENTRIES],
        ),
        "jackpotOrder": (
            "jackpot/{pool}/cmd/{order}",
            "an order of a person: payments and changes need two",
            [f"order.{name}" for name in ORDERS],
        ),
        "jackpotReply": ("jackpot/{pool}/cmd/{order}/result", "how an order ended", ["reply"]),
        "jackpotWins": ("jackpot/{pool}/cmd/wins", "a page of the wins that wait, from the books", ["wins"]),
        "jackpotWinsPage": ("jackpot/{pool}/cmd/wins/result", "the wins of a page, the oldest first", ["wins.page"]),
        "jackpotReplay": ("jackpot/{pool}/cmd/replay", f"entries again, from the books; {QUOTA}", ["replay"]),
        "jackpotReplayAnswer": ("jackpot/{pool}/cmd/replay/result", "what was published again", ["answer"]),
    }


def _enveloped(name: str, kind: type[Any]) -> dict[str, Any]:
    data = {"properties": {"type": {"const": name}, "data": _ref(kind.__name__)}}
    return {
        "name": name,
        "summary": _summary(kind),
        "contentType": CONTENT_TYPE,
        "payload": {"allOf": [_ref("Wire"), data]},
    }


def _document(name: str, kind: type[Any]) -> dict[str, Any]:
    return {
        "name": name,
        "summary": _summary(kind),
        "contentType": "application/json",
        "payload": _ref(kind.__name__),
    }


def _summary(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _command(kind: type[Command]) -> dict[str, Any]:
    when = " Refused while a round is open." if kind.between_rounds else ""
    return {
        "name": f"command.{name_of(kind)}",
        "summary": _summary(kind) + when,
        "contentType": "application/json",
        "payload": {
            "allOf": [
                _ref("Request"),
                {"properties": {"args": _ref(kind.__name__)}},
            ]
        },
    }


def _order(name: str, kind: type[Order]) -> dict[str, Any]:
    return {
        "name": f"order.{name}",
        "summary": _summary(kind),
        "contentType": "application/json",
        "payload": {"allOf": [_ref("Request"), {"properties": {"args": _ref(kind.__name__)}}]},
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


def _codes(prefix: str) -> dict[str, dict[str, Any]]:
    """Each code of the reasons, or of an alert's `why` and `to_do` after its code, with its English and its values."""
    known = {key.removeprefix(prefix): text for key, text in words.catalog("en").items() if key.startswith(prefix)}
    named = {code: [name for _, name, _, _ in string.Formatter().parse(text) if name] for code, text in known.items()}
    return {code: {"en": known[code], "values": named[code]} for code in sorted(known)}
