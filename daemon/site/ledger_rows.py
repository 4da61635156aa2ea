"""Messages of the streams as rows of the ledger. Pure."""

import re
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import Struct

from protocols.contract.events import DeviceFaulted, UnknownEvent, decode_data
from protocols.contract.jackpots import BookEntry
from protocols.contract.results import ENDS, BadRound, decode_end
from protocols.contract.topics import EARLIEST, LATEST, BadEnvelope, Wire, decode_wire, joined

__all__ = ["ACCOUNTS", "Fault", "LedgerRow", "PoolEntry", "Verdict", "entry_of", "fault_of", "result_of", "verdict_of"]

_DAY = re.compile(r":(\d{4}-\d\d-\d\d):\d")
_ID = re.compile(r"[a-z0-9-]+:(?P<table>[a-z0-9-]+):(?P<seq>\d{1,15})/(?P<n>\d{1,6})")
_SUBJECT = re.compile(r"feltd\.(?:ev|res)\.(?P<site>[a-z0-9-]+)\.(?P<place>[a-z0-9-]+)")
_OF_POOL = re.compile(r"feltd\.res\.(?P<site>[a-z0-9-]+)\.jackpot\.(?P<place>[a-z0-9-]+)")


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
    """A reported fault of a device, in the order of the columns: it began, or occurred again."""

    day: date
    site: str
    tbl: str
    journal: str
    seq: int
    device: str
    code: str
    at: datetime


class PoolEntry(Struct, frozen=True):
    """An entry in the books of a jackpot, in the order of the columns: what it posts, in 1/`unit` of a minor unit."""

    day: date
    site: str
    pool: str
    journal: str
    seq: int
    kind: str
    at: datetime
    tbl: str
    round: str
    unit: int
    players: int
    house: int
    transferred: int
    visible: int
    hidden: int
    overflow: int
    pending: int
    paid: int
    margin: int
    body: str
    digest: bytes


ACCOUNTS = PoolEntry.__struct_fields__[10:19]
LedgerRow: TypeAlias = Verdict | Fault | PoolEntry


def result_of(subject: str, payload: bytes) -> Verdict | PoolEntry | None:
    """The row of a message of RES. Raises ValueError."""
    return (entry_of if _OF_POOL.fullmatch(subject) else verdict_of)(subject, payload)


def verdict_of(subject: str, payload: bytes) -> Verdict | None:
    """The row of an end of a round; None for other verdicts. Raises ValueError for a malformed message.

    Verdicts of early builds name no journal: two journals of an edge then have the same key, and both are kept as a
    disagreement.
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
        _body(data),
        _digest(wire),
    )


def entry_of(subject: str, payload: bytes) -> PoolEntry:
    """The row of an entry in the books of a jackpot. Raises ValueError.

    Its day is that of its time, which the journal holds: the same for each delivery.
    """
    wire, site, pool = _read(subject, payload, _OF_POOL)
    try:
        entry = msgspec.json.decode(wire.data, type=BookEntry)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    if entry.number != wire.seq or not wire.id.endswith(f":{pool}:{wire.seq}"):
        raise ValueError(f"{wire.id!r} is no id of entry {entry.number} of {pool}")
    posted = dict.fromkeys(ACCOUNTS, 0)
    for account, units in entry.postings.items():
        name = account.partition(":")[0]  # older entries have an account for each win that waits
        if name not in posted:
            raise ValueError(f"entry {entry.number} of {pool}: the ledger has no account {name}")
        posted[name] += int(units)
    if sum(posted.values()) or entry.unit < 1:
        raise ValueError(f"entry {entry.number} of {pool}: its postings do not sum to zero")
    place = (wire.time.date(), site, pool, wire.journal, wire.seq, wire.type, wire.time, entry.table, entry.round)
    return PoolEntry(
        *place,
        entry.unit,
        posted["players"],
        posted["house"],
        posted["transferred"],
        posted["visible"],
        posted["hidden"],
        posted["overflow"],
        posted["pending"],
        posted["paid"],
        posted["margin"],
        _body(bytes(wire.data)),
        _digest(wire),
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


def _read(subject: str, payload: bytes, pattern: re.Pattern[str] = _SUBJECT) -> tuple[Wire, str, str]:
    place = pattern.fullmatch(subject)
    if place is None:
        raise ValueError(f"{subject}: no subject of a table or jackpot")
    try:
        return decode_wire(payload), place["site"], place["place"]
    except BadEnvelope as error:
        raise ValueError(str(error)) from error


def _body(data: bytes) -> str:
    """The data for a column of jsonb, which has no zero character."""
    return data.decode().replace("\\u0000", "\\ufffd")


def _digest(wire: Wire) -> bytes:
    """Over id, type, time and data: the same for each delivery and from each of two rules processes."""
    return sha256(joined(wire.id, wire.type, wire.time.astimezone(UTC).isoformat()) + bytes(wire.data)).digest()


def _day_of(round_: str, ended: datetime) -> date:
    """The day in the round's name, else that of the event: both are the same for each delivery."""
    at, found = ended.astimezone(UTC).date(), _DAY.search(round_)
    try:
        day = date.fromisoformat(found[1]) if found else at
    except ValueError:
        return at
    return day if EARLIEST.date() <= day < LATEST.date() else at
