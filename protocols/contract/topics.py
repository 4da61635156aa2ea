"""Topic names and the CloudEvents envelope: the contract between the edge, the rules and all other clients.

Ids are `[a-z0-9-]`. In a topic the class word precedes the id, so that wildcards are easy.
"""

import hmac
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from protocols.contract.events import MOST, Event, UnknownEvent, decode_data, encode_data, type_of
from protocols.plain_errors import plain

ROOT = "felt/1"
CONTENT_TYPE = "application/cloudevents+json"
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Times from EARLIEST until before LATEST are plausible: a computer whose clock was never set begins at EARLIEST."""
LONGEST_EVENT = 64 * 1024
LONGEST_DOCUMENT = 1024 * 1024
"""Maximum bytes of an event and of any document. A result with the most evidence that a round can have takes half."""
_LONGEST_ID = 200
LONGEST_EVENT_ID = 160  # a verdict's id is its event's id, a slash and a number

_MAC = (
    "of an event whose edge has a key: 32 hexadecimal digits, BLAKE2b with that key, 16 bytes, over <length>:<text> of "
    "id, source, type, time (as 2026-11-20T20:00:01.000250+00:00), seq and journal, of a verdict also cause_journal, "
    "and the bytes of data"
)
_CAUSE_JOURNAL = (
    "of a verdict: the journal that numbered the event that caused it; with it the id of a verdict is unique for ever. "
    "Early builds left it out"
)
ANY_VALUES = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "array", "object", "null"]},
}
"""The schema of an object of named values of any kind."""

_ID = re.compile("[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
Time: TypeAlias = Annotated[datetime, Meta(extra_json_schema={"format": "date-time"})]
Id: TypeAlias = Annotated[str, Meta(pattern=f"^{_ID.pattern}$(?!\\n)", description="a-z 0-9 -")]


@lru_cache(4096)
def is_id(text: str) -> bool:
    """Whether `text` can be the name of a table, a device or an edge."""
    return _ID.fullmatch(text) is not None


def edge_topic(site: str, edge: str, leaf: str) -> str:
    """`leaf` is availability, info, health, head or alive."""
    return f"{ROOT}/{site}/edge/{edge}/{leaf}"


def device_topic(site: str, table: str, device: str, leaf: str) -> str:
    """`leaf` is availability, meta, state, event/<type>, trace, cmd/<name> or cmd/<name>/result."""
    return f"{ROOT}/{site}/table/{table}/device/{device}/{leaf}"


def table_topic(site: str, table: str, leaf: str) -> str:
    """`leaf` is round/state, round/event/<type>, round/result, wager/<terminal>, alert/<id>, cmd/replay or
    round/cmd/replay; the last two and wager/<terminal> also followed by /result.
    """
    return f"{ROOT}/{site}/table/{table}/{leaf}"


def in_utc(time: datetime) -> datetime:
    """The instant in UTC. Raises ValueError for a time without a zone, and for one that is not plausible."""
    if time.tzinfo is None:
        raise ValueError(f"time {time.isoformat()} has no zone; write it in UTC, ending in Z")
    # Compared before it is converted: the first and the last times of the calendar have none in UTC.
    if not EARLIEST <= time < LATEST:
        raise ValueError(f"time {time.isoformat()} is not between {EARLIEST.year} and {LATEST.year}")
    return time if time.tzinfo is UTC else time.astimezone(UTC)


class Envelope(msgspec.Struct, frozen=True):
    """One event with its id, source and time.

    `id` is `<edge>:<table>:<seq>`; `seq` is gapless per journal and table and assigned before publishing.
    `journal` is the id of the journal that assigned it: after a replaced disk a new journal counts from 1.
    `time` is the UTC arrival of the bytes. `replay`: published before, or later than it happened.
    `digest` distinguishes two contents under one number; empty where the envelope did not come over the wire.
    """

    id: str
    source: str
    time: datetime
    event: Event
    seq: int = 0
    bootid: str = ""
    journal: str = ""
    replay: bool = False
    digest: bytes = b""

    @property
    def device(self) -> str:
        """The id of the device that reported it: the last part of the source."""
        return self.source.rpartition("/")[2]


class Wire(msgspec.Struct, frozen=True):
    """The envelope as CloudEvents 1.0 structured JSON; `data` stays encoded until its type is known."""

    specversion: Annotated[str, Meta(max_length=8, description='"1.0"')]
    id: Annotated[
        str,
        Meta(max_length=_LONGEST_ID, description="of an event <edge>:<table>:<seq>; of a verdict <event id>/<number>"),
    ]
    source: Annotated[str, Meta(max_length=512, description="the topic of the device, or of the round")]
    type: Annotated[str, Meta(max_length=64)]
    time: Annotated[Time, Meta(description="UTC, when the bytes arrived")]
    seq: Annotated[int, Meta(ge=0, le=MOST, description="gapless per journal and table, from 1")] = 0
    bootid: Annotated[str, Meta(max_length=64, description="of the edge's process")] = ""
    journal: Annotated[
        str, Meta(max_length=64, description="the journal that numbered it; after a replaced disk a new one, from 1")
    ] = ""
    replay: Annotated[bool, Meta(description="published before, or later than it happened")] = False
    data: Annotated[msgspec.Raw, Meta(extra_json_schema=ANY_VALUES)] = msgspec.field(
        default_factory=lambda: msgspec.Raw(b"{}")
    )
    mac: Annotated[str, Meta(description=_MAC)] | UnsetType = UNSET
    cause_journal: Annotated[str, Meta(max_length=64, description=_CAUSE_JOURNAL)] | UnsetType = UNSET


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Wire)


class BadEnvelope(ValueError):
    """Bytes on an event topic that are not an event envelope. The message names the defect."""


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
    """The envelope with its data still encoded, its time in UTC. Raises BadEnvelope."""
    if len(payload) > LONGEST_DOCUMENT:
        raise BadEnvelope(f"{len(payload)} bytes: a document has at most {LONGEST_DOCUMENT}")
    try:
        wire = _DECODER.decode(payload)
        at = in_utc(wire.time)
    except (ValueError, RecursionError) as error:  # msgspec's and Unicode's errors are ValueErrors
        raise BadEnvelope(plain(error)) from error
    return wire if at is wire.time else msgspec.structs.replace(wire, time=at)


def decode_envelope(payload: bytes) -> Envelope:
    """The envelope. Raises BadEnvelope, or UnknownEvent for a type or data of another version."""
    return envelope_of(decode_wire(payload), len(payload))


def envelope_of(wire: Wire, size: int, digest: bytes = b"") -> Envelope:
    """The envelope of a wire that was decoded from `size` bytes.

    Raises BadEnvelope, or UnknownEvent for a type or data of another version.
    """
    if size > LONGEST_EVENT:
        raise BadEnvelope(f"{size} bytes: an event has at most {LONGEST_EVENT}")
    return Envelope(
        wire.id,
        wire.source,
        wire.time,
        decode_data(wire.type, wire.data),
        wire.seq,
        wire.bootid,
        wire.journal,
        wire.replay,
        digest,
    )


DIGEST_SIZE = 16
"""Bytes of a digest and of a MAC."""


def digest_of(source: str, type_: str, time: datetime, data: bytes) -> bytes:
    """A digest of an event's device, type, time and data. It detects two different events under one number.

    It leaves out the names of site and edge, which may change, and the fields that differ in a replay.
    """
    device, at = source.rpartition("/")[2], _iso(time)
    what = f"{len(device)}:{device}{len(type_)}:{type_}{len(at)}:{at}"  # in the form of `joined`
    return blake2b(what.encode() + data, digest_size=DIGEST_SIZE).digest()


def mac_of(wire: Wire, key: bytes) -> str:
    """The message authentication code: keyed BLAKE2b over the fields that stay the same in a replay.

    These are `<length>:<text>` of id, source, type, time (ISO 8601), seq, journal and, where it is there, cause_journal
    in this order, then the bytes of the data. `bootid` and `replay` are left out, so a replayed event has its original
    MAC.
    """
    texts = [wire.id, wire.source, wire.type, _iso(wire.time), str(wire.seq), wire.journal]
    if isinstance(wire.cause_journal, str):
        texts.append(wire.cause_journal)
    return mac_of_texts(texts, key, bytes(wire.data))


def mac_of_texts(texts: Iterable[str], key: bytes, data: bytes = b"") -> str:
    """Keyed BLAKE2b over `<length>:<text>` of each text, and `data`."""
    return blake2b(joined(*texts) + data, key=key, digest_size=DIGEST_SIZE).hexdigest()


def is_mac(given: str | UnsetType, right: str) -> bool:
    """Whether the MAC is correct, compared in constant time."""
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given, right)


def _iso(time: datetime) -> str:
    """`time.isoformat()`; of a time in UTC by msgspec, which is ten times as fast."""
    return _ENCODER.encode(time)[1:-2].decode() + "+00:00" if time.tzinfo is UTC else time.isoformat()


def joined(*texts: str) -> bytes:
    """The texts with their lengths. Different lists of texts give different bytes."""
    return "".join([f"{len(text)}:{text}" for text in texts]).encode()


def about_device(wire: Wire) -> Event | None:
    """The event of a device about itself; None for other events, and for those of another version."""
    if not wire.type.startswith("device."):
        return None
    try:
        return decode_data(wire.type, wire.data)
    except UnknownEvent:
        return None
