"""Topic names and the CloudEvents envelope: the contract between the edge, the rules and everybody else.

Ids are `[a-z0-9-]`; the class word stands before the id, so that wildcards are easy.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from protocols.events import Event, decode_data, encode_data, type_of

ROOT = "felt/1"
CONTENT_TYPE = "application/cloudevents+json"

_ID = re.compile("[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
Id: TypeAlias = Annotated[str, Meta(pattern=f"^{_ID.pattern}$(?!\\n)", description="a-z 0-9 -")]


@lru_cache(4096)
def is_id(text: str) -> bool:
    """Whether `text` can be the name of a table, a device or an edge."""
    return _ID.fullmatch(text) is not None


def edge_topic(site: str, edge: str, leaf: str) -> str:
    """`leaf` is availability, info or health."""
    return f"{ROOT}/{site}/edge/{edge}/{leaf}"


def device_topic(site: str, table: str, device: str, leaf: str) -> str:
    """`leaf` is availability, meta, state, event/<type>, cmd/<name> or trace."""
    return f"{ROOT}/{site}/table/{table}/device/{device}/{leaf}"


def table_topic(site: str, table: str, leaf: str) -> str:
    """`leaf` is round/state, round/event/<type>, round/result, wager, alert/<id> or cmd/<name>."""
    return f"{ROOT}/{site}/table/{table}/{leaf}"


class Envelope(msgspec.Struct, frozen=True):
    """One event as everybody sees it.

    `id` is `<edge>:<table>:<seq>`; `seq` is gapless per journal and table, given before anybody sees the event.
    `journal` names the journal that counted: an edge whose disk was replaced counts from 1 in a new one.
    `time` is when the bytes arrived, UTC. `replay`: it was published before, or later than it happened.
    """

    id: str
    source: str
    time: datetime
    event: Event
    seq: int = 0
    bootid: str = ""
    journal: str = ""
    replay: bool = False

    @property
    def device(self) -> str:
        """The id of the device that saw it, the last word of the source."""
        return self.source.rpartition("/")[2]


class Wire(msgspec.Struct, frozen=True):
    """The envelope as CloudEvents 1.0 structured JSON; `data` stays as it came until its type is known."""

    specversion: str
    id: str
    source: str
    type: str
    time: datetime
    seq: int = 0
    bootid: str = ""
    journal: str = ""
    replay: bool = False
    data: msgspec.Raw = msgspec.Raw(b"{}")


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Wire)


class BadEnvelope(ValueError):
    """Bytes on an event topic that are not an event envelope. The message says what is wrong."""


def encode_wire(wire: Wire) -> bytes:
    """The payload to publish."""
    return _ENCODER.encode(wire)


def encode_envelope(envelope: Envelope) -> bytes:
    """The payload to publish."""
    return _ENCODER.encode(
        Wire(
            "1.0",
            envelope.id,
            envelope.source,
            type_of(envelope.event),
            envelope.time,
            envelope.seq,
            envelope.bootid,
            envelope.journal,
            envelope.replay,
            msgspec.Raw(encode_data(envelope.event)),
        )
    )


def decode_wire(payload: bytes) -> Wire:
    """The envelope with its data still encoded. Raises BadEnvelope."""
    try:
        return _DECODER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEnvelope(str(error)) from error


def decode_envelope(payload: bytes) -> Envelope:
    """The envelope. Raises BadEnvelope, or UnknownEvent for a type or data of another version."""
    wire = decode_wire(payload)
    return Envelope(
        wire.id,
        wire.source,
        wire.time,
        decode_data(wire.type, wire.data),
        wire.seq,
        wire.bootid,
        wire.journal,
        wire.replay,
    )
