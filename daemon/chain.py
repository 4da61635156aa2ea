"""The hash chain of a journal and what is signed of it: pure, and short enough to be written again by an inspector.

Each table has a chain of its own. Its first link is `chain_start`; each row's hash is SHA-256 over the hash before it
and every column of the row. A checkpoint is a statement that names the head of every chain; its bytes are signed.
docs/journal.md says the same in words.
"""

import hashlib
import struct
from datetime import datetime

import msgspec
from msgspec import Struct

__all__ = ["Statement", "chain_start", "decode_statement", "encode_statement", "fingerprint", "row_hash"]

VERSION = 2

_lengths = struct.Struct(">qqqIIIIII").pack
_sha256 = hashlib.sha256


def chain_start(journal: str, place: str) -> bytes:
    """What stands before the first row of a table: no chain can be moved to another journal or table."""
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
    """The hash of a row. Every column has its length before it, so that no byte can move from one into the next."""
    a, b, c, d = place.encode(), device.encode(), type_.encode(), cause.encode()
    sizes = _lengths(n, seq, micros, len(a), len(b), len(c), len(d), len(data), len(wire))
    return _sha256(b"".join((before, sizes, a, b, c, d, data, wire))).digest()


class Statement(Struct, frozen=True):
    """What a checkpoint says: after row `n`, each table's chain ended with this seq and hash (hex).

    `number` counts the checkpoints, `previous` is the SHA-256 (hex) of the statement before: none can be taken out.
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
    """The bytes that are signed, and kept as they are."""
    return msgspec.json.encode(statement)


def decode_statement(raw: bytes) -> Statement:
    """Raises msgspec.DecodeError or UnicodeDecodeError."""
    return _decoder.decode(raw)


def fingerprint(raw: bytes) -> str:
    """SHA-256 in hex."""
    return _sha256(raw).hexdigest()
