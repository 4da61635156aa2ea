"""The streams of events that the rules use: one for each edge, journal and table, in order and each event once.

A stream keeps the digests of its last events, because a second event under a used number is a duplicate only if its
content is the same. The position of each stream is written with the verdicts.
"""

from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daemon.broker.gap_recovery import Stream
from protocols.contract.events import EventsMissed, encode_data, type_of
from protocols.contract.topics import DIGEST_SIZE, Envelope, digest_of, in_utc

__all__ = [
    "IN_CONFLICT",
    "KEPT_DIGESTS",
    "Events",
    "Position",
    "Source",
    "digested",
    "is_journal",
    "key_of",
    "read_position",
]

Source = tuple[str, ...]
"""Edge, journal and table."""
KEPT_DIGESTS = 2000
"""The number of digests kept of a stream's last used events, to detect another event under a used number."""
IN_CONFLICT = b"\xff" * DIGEST_SIZE
"""Replaces the digest of a number under which different events were received."""


class Position(Struct, frozen=True, omit_defaults=True):
    """The offset of a stream: how far the events of one journal were used for one table.

    `at` and `digest` (hexadecimal) are those of the last used event: a different event with its number shows that the
    journal was replaced. `retired`: its edge changed to a new journal. `doubt`: events before the next one are lost.
    `after`: the newest round of the table before the first event of the journal.
    """

    seq: int = 0
    at: datetime | None = None
    retired: bool = msgspec.field(default=False, name="left")
    doubt: bool = False
    digest: str = ""
    after: str = ""


def read_position(value: bytes) -> Position:
    """Decode a position from the journal."""
    position = msgspec.json.decode(value, type=Position)
    try:
        return position if position.at is None else replace(position, at=in_utc(position.at))
    except ValueError:  # no plausible time: the last used event is unknown
        return replace(position, at=None, doubt=True)


class Events(Stream[Envelope]):
    """The events of one table in one journal of an edge, with the digests of the last ones used."""

    def __init__(self, position: Position) -> None:
        super().__init__(position.seq + 1)
        self.at = position.at
        self.doubt = position.doubt
        self.after = position.after
        self.in_conflict = False
        """Whether a conflict was reported since the last used event: of several only the first is reported."""
        self._digests = bytearray(KEPT_DIGESTS * DIGEST_SIZE)
        self._known_from = self.expected
        if position.digest:
            self._known_from = position.seq
            self._remember(position.seq, bytes.fromhex(position.digest))

    def position(self, *, retired: bool = False) -> bytes:
        last = self.expected - 1
        digest = self._digest(last).hex() if last >= self._known_from else ""
        return msgspec.json.encode(Position(last, self.at, retired, self.doubt, digest, self.after))

    def take(self, item: Envelope) -> list[Envelope]:
        """As `Stream.take`. If two different events wait with one number, neither is used: it counts as lost."""
        if item.seq == self.expected and not self._early:  # the usual case
            self.expected += 1
            self._remember(item.seq, item.digest)
            return [item]
        early = self._early.get(item.seq)
        if early is not None and early.digest != item.digest:
            item = replace(early, event=EventsMissed(1), digest=IN_CONFLICT)
        ready = super().take(item)
        for one in ready:
            self._remember(one.seq, one.digest)
        return ready

    def skip(self, to: int) -> list[Envelope]:
        """As `Stream.skip`. Drops all digests before `to`, because the skipped numbers have none."""
        ready = super().skip(to)
        self._known_from = to
        for one in ready:
            self._remember(one.seq, one.digest)
        return ready

    def contradicts(self, item: Envelope) -> bool:
        """Whether `item` differs from the used or waiting event under its number."""
        if item.seq >= self.expected:
            early = self._early.get(item.seq)
            return early is not None and early.digest not in (IN_CONFLICT, item.digest)
        if item.seq >= max(self._known_from, self.expected - KEPT_DIGESTS):
            return self._digest(item.seq) not in (IN_CONFLICT, item.digest)
        return item.seq == self.expected - 1 and self.at not in (None, item.time)

    def settle(self, item: Envelope) -> bool:
        """Mark the used number of `item` as in conflict permanently. Returns whether to report the conflict."""
        self._known_from = min(self._known_from, item.seq)
        self._remember(item.seq, IN_CONFLICT)
        before, self.in_conflict = self.in_conflict, True
        return not before

    def _remember(self, seq: int, digest: bytes) -> None:
        at = seq % KEPT_DIGESTS * DIGEST_SIZE
        self._digests[at : at + DIGEST_SIZE] = digest

    def _digest(self, seq: int) -> bytes:
        at = seq % KEPT_DIGESTS * DIGEST_SIZE
        return bytes(self._digests[at : at + DIGEST_SIZE])


def digested(envelope: Envelope) -> Envelope:
    """Add the digest to an event that was not received over the wire, and therefore has none."""
    data = encode_data(envelope.event)
    return replace(envelope, digest=digest_of(envelope.source, type_of(envelope.event), envelope.time, data))


def is_journal(name: str) -> bool:
    """Whether `name` can be the name of a journal, and therefore a part of a position's key."""
    return len(name) <= 64 and "/" not in name and name.isascii() and name.isprintable()


def key_of(source: Source) -> str:
    """The key of a stream's position in the journal."""
    return "stream/" + "/".join(source)
