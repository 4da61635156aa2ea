"""Messages of the streams as rows of the ledger. Pure."""

import re
from datetime import UTC, date, datetime
from hashlib import sha256

import msgspec
from msgspec import Struct

from protocols.contract.events import DeviceFaulted, UnknownEvent, decode_data
from protocols.contract.results import ENDS, BadRound, decode_end
from protocols.contract.topics import EARLIEST, LATEST, BadEnvelope, Wire, decode_wire, joined

__all__ = ["Fault", "Verdict", "fault_of", "verdict_of"]

_DAY = re.compile(r":(\d{4}-\d\d-\d\d):\d")
_ID = re.compile(r"[a-z0-9-]+:(?P<table>[a-z0-9-]+):(?P<seq>\d{1,15})/(?P<n>\d{1,6})")
_SUBJECT = re.compile(r"feltd\.(?:ev|res)\.(?P<site>[a-z0-9-]+)\.(?P<table>[a-z0-9-]+)")


class Verdict(Struct, frozen=True):
    """The end of a round, in the order of the columns."""

    day: date
    site: str
    tbl: str
    journal: str
    seq: int
    n: int
    round: str
    kind: str
    ruleset: str
    void: bool
    ended_at: datetime
    wagered: int | None
    paid: int | None
    body: str
    digest: bytes


class Fault(Struct, frozen=True):
    """A device began to be faulty, in the order of the columns."""

    day: date
    site: str
    tbl: str
    journal: str
    seq: int
    device: str
    code: str
    at: datetime


def verdict_of(subject: str, payload: bytes) -> Verdict | None:
    """The row of an end of a round; None for other verdicts. Raises ValueError for a malformed message.

    Its digest is over id, type, time and data: the same from each rules process. Verdicts of early builds name no
    journal: two lives of an edge then meet under one key, and both are kept as a disagreement.
    """
    wire, site, table = _read(subject, payload)
    if wire.type not in ENDS:
        return None
    cause = _ID.fullmatch(wire.id)
    if cause is None or cause["table"] != table:
        raise ValueError(f"{wire.id!r} is no id of a verdict of {table}")
    data = bytes(wire.data)
    try:
        result = decode_end(data)
    except BadRound as error:
        raise ValueError(str(error)) from error
    digest = sha256(joined(wire.id, wire.type, wire.time.astimezone(UTC).isoformat()) + data).digest()
    stakes, returned = [one.stake for one in result.settlements], [one.returned for one in result.settlements]
    return Verdict(
        _day_of(result.round, wire.time),
        site,
        table,
        wire.cause_journal or "",
        int(cause["seq"]),
        int(cause["n"]),
        result.round,
        wire.type,
        result.ruleset,
        result.void is not None,
        wire.time,
        sum(stakes) if stakes else None,
        sum(returned) if returned else None,
        data.decode().replace("\\u0000", "\\ufffd"),  # PostgreSQL's jsonb has no zero character
        digest,
    )


def fault_of(subject: str, payload: bytes) -> Fault | None:
    """The row of `device.faulted`; None for other events. Raises ValueError."""
    wire, site, table = _read(subject, payload)
    if wire.type != "device.faulted":
        return None
    try:
        event = decode_data(wire.type, wire.data)
    except (UnknownEvent, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from error
    assert isinstance(event, DeviceFaulted)
    device = wire.source.rpartition("/")[2]
    return Fault(wire.time.date(), site, table, wire.journal, wire.seq, device, event.code, wire.time)


def _read(subject: str, payload: bytes) -> tuple[Wire, str, str]:
    place = _SUBJECT.fullmatch(subject)
    if place is None:
        raise ValueError(f"{subject}: no subject of a table")
    try:
        return decode_wire(payload), place["site"], place["table"]
    except BadEnvelope as error:
        raise ValueError(str(error)) from error


def _day_of(round_: str, ended: datetime) -> date:
    """The day in the round's name, else that of the event: both are the same for each delivery."""
    at, found = ended.astimezone(UTC).date(), _DAY.search(round_)
    try:
        day = date.fromisoformat(found[1]) if found else at
    except ValueError:
        return at
    return day if EARLIEST.date() <= day < LATEST.date() else at
