"""Work without devices and broker: captures to events, events to results. One clear message for bad input."""

import asyncio
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from daemon.captures import CAPTURE_HEAD, Frame
from daemon.progress import Progress, silent
from daemon.virtual_clock import JumpingLoop
from drivers import DRIVERS
from drivers.driver import Chunk, DeviceRefused, LinkLost, Sighting
from protocols.contract.events import (
    EVENT_TYPES,
    DeviceOffline,
    DeviceOnline,
    decode_data,
    encode_data,
    type_of,
    unknown_fields,
)
from protocols.contract.topics import Envelope, in_utc
from protocols.plain_errors import plain
from rules.engine.ruleset import Ruleset, Verdict, judge

__all__ = ["BadInput", "capture_frames", "events_from", "replay", "resolve"]

RAW_START = datetime(1970, 1, 1, tzinfo=UTC)
_LINE = re.compile(r"(\S+) ([<>]) ((?:[0-9a-f]{2})+)")


class BadInput(Exception):
    """Input that cannot be used: place and remedy in one message."""


def capture_frames(raw: bytes, name: str, pace: float) -> list[Frame]:
    """A capture file, or raw bytes of a line.

    Raw bytes carry no times: each line (up to LF, CR or NUL) then counts as `pace` seconds. Raises BadInput.
    """
    if not raw:
        raise BadInput(f"{name}: is empty; a capture is raw bytes, or what `feltd record` writes")
    if not raw.startswith(CAPTURE_HEAD.encode()):
        pieces = [piece for piece in re.split(rb"(?<=[\n\x00])|(?<=\r)(?!\n)", raw) if piece]
        return [Frame(RAW_START + timedelta(seconds=number * pace), True, piece) for number, piece in enumerate(pieces)]
    frames: list[Frame] = []
    try:
        lines = raw.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: byte {error.start}: a capture is plain ASCII text") from error
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        try:
            at = datetime.fromisoformat(found[1]) if found else None
            at = at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
        except (ValueError, OverflowError):
            at = None
        if found is None or at is None:
            raise BadInput(f"{name}:{number}: expected `TIME < HEX` or `TIME > HEX`, with a UTC time")
        frames.append(Frame(at, found[2] == "<", bytes.fromhex(found[3])))
    if not frames:
        raise BadInput(f"{name}: holds no bytes")
    return frames


class _CaptureLink:
    """A link that plays a capture, each byte at its time; the driver's own bytes are dropped."""

    def __init__(self, frames: Sequence[Frame], progress: Progress) -> None:
        self._left = deque(frame for frame in frames if frame.from_device)
        self._start = frames[0].at
        self._all, self._progress = len(self._left), progress

    @property
    def left(self) -> int:
        """The number of frames that were not read yet."""
        return len(self._left)

    async def until_more(self) -> None:
        """Return when the next frame is there. Raises LinkLost when there is none."""
        if not self._left:
            raise LinkLost("the capture ends here")
        tick = (self._left[0].at - self._start).total_seconds()
        await asyncio.sleep(max(tick - asyncio.get_running_loop().time(), 0.0))

    async def read(self) -> Chunk:
        await self.until_more()  # a cancelled reader leaves the frame for the next one
        frame = self._left.popleft()
        self._progress(1 - len(self._left) / self._all)
        return Chunk(frame.data, frame.at, (frame.at - self._start).total_seconds())

    def stamp(self) -> Chunk:
        tick = asyncio.get_running_loop().time()
        return Chunk(b"", self._start + timedelta(seconds=tick), tick)

    async def write(self, data: bytes) -> None:
        """Drop it: no device is connected."""


class Seen(Struct, frozen=True):
    """One line of a replay: an event, when, and the wire bytes it was read from, as hexadecimal digits."""

    id: str
    time: datetime
    type: str
    data: msgspec.Raw
    wire: str


def replay(
    frames: Sequence[Frame],
    driver: str,
    options: dict[str, Any],
    progress: Progress = silent,
) -> list[Seen]:
    """Run `driver` on a capture; a pause beyond the driver's timeout is an outage. Raises BadInput.

    `progress` gets the part of the capture that was read.
    """
    kind = DRIVERS[driver]
    try:
        settings = msgspec.convert(options, kind.Options, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"{driver}: {plain(error)}") from error
    seen: list[Seen] = []
    kept: bytes | None = None
    online = False

    async def emit(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:
        nonlocal kept, online
        kept = kept if memory is None else memory
        for one in sightings:
            online = isinstance(one.event, DeviceOnline) or (online and not isinstance(one.event, DeviceOffline))
            data = msgspec.Raw(encode_data(one.event))
            number = len(seen) + 1
            seen.append(Seen(f"replay:{number}", one.chunk.at, type_of(one.event), data, one.wire.hex()))

    async def run() -> None:
        link = _CaptureLink(frames, progress)
        read_some = True
        while read_some and link.left:
            before = link.left
            try:
                await kind(settings, kept).run(link, emit)
            except LinkLost as error:
                if link.left:
                    await emit([Sighting(DeviceOffline(str(error)), b"", link.stamp())] if online else [])
                    await link.until_more()
            except DeviceRefused as error:
                raise BadInput(f"{driver}: the device refuses: {error}") from error
            read_some = link.left < before

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(run())
    return seen


class _Written(Struct, frozen=True):
    """An event line as a person writes it: the envelope's fields are optional."""

    type: str
    data: dict[str, Any] = {}
    id: str = ""
    time: datetime | None = None
    source: str = ""
    seq: int = 0
    journal: str = ""


_ENVELOPE_KEYS = {"type", "data", "id", "time", "source", "seq", "wire", "specversion", "bootid", "journal", "replay"}
_EXPORT_KEYS = {"n", "place", "device", "cause", "hash", "datahex", "cause_journal"}
# The lines of `feltd journal export` besides rows, by the value of `feltd`.
_OF_EXPORTS = {
    "export": {"feltd", "version", "journal", "site", "writer", "place", "first", "last", "before", "made"},
    "checkpoint": {"feltd", "statement", "signature"},
}


def events_from(lines: Iterable[str], name: str, table: str) -> Iterator[Envelope]:
    """Events written as NDJSON, or an export of the edge's journal. Duplicates count once.

    An export's own lines (`feltd`: its head, its signatures) are no events. Raises BadInput with the line.
    """
    ids: dict[tuple[str, str], tuple[int, bytes]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            keys = msgspec.json.decode(line, type=dict[str, Any])
            json.loads(line, object_pairs_hook=_once)
            if "feltd" in keys:
                _check_line_of_export(keys, where)
                continue
            written = msgspec.json.decode(line, type=_Written)
        except (ValueError, RecursionError) as error:  # msgspec's and Unicode's errors are ValueErrors
            example = '{"type":"card.drawn","data":{"card":"9D"}}'
            raise BadInput(
                f"{where}: not an event: {plain(error)}; write one JSON object a line, like {example}"
            ) from error
        if "datahex" in keys and "micros" in keys:
            raise BadInput(
                f"{where}: the time of this event is unknown; leave its round out (see docs/explanation/journal.md)"
            )
        if unknown := sorted(set(keys) - _ENVELOPE_KEYS - (_EXPORT_KEYS if "datahex" in keys else set())):
            raise BadInput(f"{where}: unknown {unknown[0]!r}; an event has type and data")
        if written.type not in EVENT_TYPES:
            raise BadInput(f"{where}: unknown event type {written.type!r}; known: {', '.join(EVENT_TYPES)}")
        if wrong := unknown_fields(written.type, written.data):
            known = ", ".join(EVENT_TYPES[written.type].__match_args__) or "none"  # without those of all events
            raise BadInput(f"{where}: {written.type} has no {wrong[0]!r}; its data: {known}")
        try:
            event = decode_data(written.type, msgspec.json.encode(written.data))
            time = in_utc(written.time or RAW_START + timedelta(seconds=number))
        except ValueError as error:
            raise BadInput(f"{where}: {error}") from error
        if written.id:
            said = msgspec.json.encode((written.type, event, written.time and time, written.source, written.seq))
            first, before = ids.setdefault((written.journal, written.id), (number, digest := blake2b(said).digest()))
            if before != digest:
                text = f"another event has the id {written.id!r} at line {first}; give each event its own"
                raise BadInput(f"{where}: {text}")
            if first != number:
                continue
        source = written.source or f"felt/1/offline/table/{table}/device/script"
        yield Envelope(written.id or f"line:{number}", source, time, event, written.seq)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; duplicate keys, of which readers would take either, raise ValueError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return found


def _check_line_of_export(keys: dict[str, Any], where: str) -> None:
    """Raises BadInput for what `feltd journal export` does not write."""
    kind = keys["feltd"]
    if not isinstance(kind, str) or kind not in _OF_EXPORTS:
        known = " and ".join(map(repr, _OF_EXPORTS))
        raise BadInput(
            f"{where}: a line with the key 'feltd' is of an export: {known}, not {kind!r}; an event has none"
        )
    if wrong := sorted(set(keys) ^ _OF_EXPORTS[kind]):
        what = "has no" if wrong[0] in keys else "must have"
        raise BadInput(f"{where}: a line {kind!r} of an export {what} {wrong[0]!r}; take the file as it was written")


def resolve(ruleset: Ruleset[Any], events: Iterable[Envelope], table: str) -> Iterator[Verdict]:
    """All verdicts of a script."""
    state = ruleset.start(table)
    for seen in events:
        state, verdicts = judge(ruleset, state, seen)
        yield from verdicts
