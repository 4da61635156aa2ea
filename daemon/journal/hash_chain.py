"""The hash chain of a journal and its signed statements: pure, and short enough for an inspector to reimplement.

Each table has its own chain. It begins with `chain_start`; each row's hash is SHA-256 over the hash before it and every
column of the row. A checkpoint is a signed statement that names the head of every chain.
docs/reference/journal-format.md has the same in words.
"""

import hashlib
import struct
from datetime import datetime

import msgspec
from msgspec import Struct

__all__ = [
    "Noted",
    "Statement",
    "chain_start",
    "decode_noted",
    "decode_statement",
    "encode_noted",
    "encode_statement",
    "fingerprint",
    "row_hash",
]

VERSION = 2

_lengths = struct.Struct(">qqqIIIIII").pack
_sha256 = hashlib.sha256


def chain_start(journal: str, place: str) -> bytes:
    """The hash before the first row of a table. It binds the chain to this journal and table."""
    return _sha256(b"feltd journal 2\0" + journal.encode() + b"\0" + place.encode()).digest()


def row_hash(
    before: bytes,
    n: int,
    place: str,
    seq: int,
    device: str,
    type_: str,
    micros: int,
    data: bytes,
    wire: bytes,
    cause: str,
) -> bytes:
    """The hash of a row. The lengths come before the texts and bytes, so that no byte can move to the next column."""
    a, b, c, d = place.encode(), device.encode(), type_.encode(), cause.encode()
    sizes = _lengths(n, seq, micros, len(a), len(b), len(c), len(d), len(data), len(wire))
    return _sha256(b"".join((before, sizes, a, b, c, d, data, wire))).digest()


class Statement(Struct, frozen=True):
    """The content of a checkpoint: after row `n`, each table's chain ended with this seq and hash (hex).

    `number` counts the checkpoints. `previous` is the SHA-256 (hex) of the statement before, so none can be removed.
    """

    feltd: str
    version: int
    journal: str
    number: int
    n: int
    time: datetime
    heads: dict[str, tuple[int, str]]
    previous: str
    key: str


_decoder = msgspec.json.Decoder(Statement)


def encode_statement(statement: Statement) -> bytes:
    """The bytes that are signed and stored."""
    return msgspec.json.encode(statement)


def decode_statement(raw: bytes) -> Statement:
    """Raises msgspec.DecodeError or UnicodeDecodeError."""
    return _decoder.decode(raw)


def fingerprint(raw: bytes) -> str:
    """SHA-256 in hex."""
    return _sha256(raw).hexdigest()


class Noted(Struct, frozen=True):
    """The last checkpoint: journal, number, row, and the SHA-256 (hex) of its statement."""

    journal: str
    number: int
    n: int
    statement: str


def encode_noted(noted: Noted) -> bytes:
    """A line of constant length."""
    return msgspec.json.encode(noted).ljust(255) + b"\n"


def decode_noted(raw: bytes) -> Noted | None:
    """None if nothing was written yet. Raises msgspec.DecodeError or UnicodeDecodeError."""
    return msgspec.json.decode(raw, type=Noted) if raw.strip(b"\0") else None
