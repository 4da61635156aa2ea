"""`recall`: the evidence of a round's end, from its result back to the bytes on the wire."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon.journal.reader import Files
from daemon.journal.rows import instant, json_or_null, no_time
from daemon.progress import Progress, silent
from daemon.words import words
from protocols.contract.results import Result
from protocols.contract.topics import EARLIEST

__all__ = ["Evidence", "Recalled", "recall", "recall_old", "recall_text"]

_ENDED = "place = ? AND type IN ('resolved', 'voided', 'corrected')"


CORRECTIONS = 1000  # of one round, at most


class Evidence(Struct, frozen=True):
    """An event that a result rests on; without a type where it cannot be shown: `note` gives the reason."""

    id: str
    device: str = ""
    type: str = ""
    time: datetime | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    wire: str = ""
    hash: str = ""
    note: str = ""


class Recalled(Struct, frozen=True):
    """The end of a round, with its evidence. `digest`: SHA-256 of its data, as in the console's reports."""

    type: str
    time: datetime
    seq: int
    cause: str
    hash: str
    digest: str
    result: msgspec.Raw
    evidence: tuple[Evidence, ...]


def recall(rules: Path, edge: Path, table: str, rounds: int, only: str = "") -> list[Recalled]:
    """The last ends of rounds of a table, the newest first; of the round `only`. Raises sqlite3.Error or OSError."""
    with Files(rules) as verdicts:
        return _recalled(verdicts.newest(rounds, _ENDED, table), edge, table, only)


def recall_old(rules: Path, edge: Path, table: str, only: str, progress: Progress = silent) -> list[Recalled]:
    """The ends of one round of any age: all files are searched. Raises sqlite3.Error or OSError."""
    member = b'"round":' + msgspec.json.encode(only)  # the whole name: others may begin with it
    with Files(rules) as verdicts:
        ends = verdicts.newest(CORRECTIONS, f"{_ENDED} AND instr(data, ?)", table, member, progress=progress)
        return _recalled(ends, edge, table, only)


def _recalled(ends: Iterable[tuple[Any, ...]], edge: Path, table: str, only: str) -> list[Recalled]:
    found: list[Recalled] = []
    with Files(edge) as events:
        for _n, _place, seq, _device, type_, time, data, _wire, cause, hash_ in ends:
            raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])["result"]
            result = msgspec.json.decode(raw, type=Result)
            if only and result.round != only:
                continue
            at = instant(time) or EARLIEST
            evidence = tuple(_evidence(events, one, table, at) for one in result.evidence)
            digest = sha256(data).hexdigest()
            found.append(Recalled(type_, at, seq, cause, hash_.hex(), digest, raw, evidence))
    return found


def _evidence(events: Files, id_: str, table: str, before: datetime) -> Evidence:
    _edge, _, rest = id_.partition(":")
    place, _, seq = rest.rpartition(":")
    if place != table or not seq.isdecimal() or len(seq) > 15:
        return Evidence(id_, note="no event of this table")
    found = events.row(table, int(seq))
    if found is None:
        return Evidence(id_, note="the edge's journal does not have it (any more)")
    _n, _place, _seq, device, type_, time, data, wire, _cause, hash_ = found
    at = instant(time)
    if at is None:  # it may also be younger than the result
        return Evidence(id_, note=no_time(time))
    if at > before:  # it is another event, which may reveal a card of the open round
        return Evidence(id_, note="it is younger than the result: was the edge's journal replaced since?")
    kept = msgspec.Raw(json_or_null(data))
    return Evidence(id_, device, type_, at, kept, wire.hex(), hash_.hex())


def recall_text(recalled: Sequence[Recalled]) -> str:
    """The rounds as text for people."""
    lines: list[str] = []
    for one in recalled:
        result = msgspec.json.decode(one.result, type=Result)
        said = result.announcements.get("en", "")
        at = "at an unknown time" if one.time == EARLIEST else f"{one.time:%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"round {result.round}  {one.type} {at}  {said}".rstrip())
        lines.append(f"  game      {result.ruleset} {result.edition}".rstrip())
        lines.append(f"  digest    {one.digest}")
        if result.supersedes:
            lines.append(f"  instead of {result.supersedes}")
        if result.void is not None:
            lines.append(f"  void      {words.reason('en', result.void.reason)}; bets {result.void.bets}")
        if result.outcome:
            lines.append(f"  outcome   {msgspec.json.encode(result.outcome).decode()}")
        lines += [f"  law       {article}" for article in result.law]
        lines += [f"  irregular {words.noted('en', note)} ({note.law})" for note in result.irregularities]
        for event in one.evidence:
            if event.time is None:
                lines.append(f"  event     {event.id}: {event.note}")
                continue
            at = event.time.strftime("%H:%M:%S.%f")[:-3]
            lines.append(f"  event     {at} {event.device} {event.type} {bytes(event.data).decode()}  {event.id}")
            if event.note:
                lines.append(f"            {event.note}")
            wire = bytes.fromhex(event.wire)
            lines += [f"    wire    {_dump(wire[at : at + 16])}" for at in range(0, len(wire), 16)]
        lines.append("")
    return "\n".join(lines)


def _dump(piece: bytes) -> str:
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
    return f"{piece.hex(' '):47}  {letters}"
