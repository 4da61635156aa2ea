"""Notes beside a journal: when all its rows were last verified, what `feltd doctor` found. They prove nothing."""

import contextlib
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from daemon import whole_files
from protocols.contract.documents import EdgeExamination

__all__ = ["examined", "note_examined", "note_verified", "verified_at"]


class _Note(Struct, frozen=True):
    at: datetime
    rows: int


def _path(journal: Path, note: str) -> Path:
    file = journal.resolve()
    return file.with_name(f"{file.name}-{note}")


def note_verified(journal: Path, rows: int, at: datetime) -> None:
    """Write the note, unless this user may only read."""
    with contextlib.suppress(OSError):
        whole_files.write(_path(journal, "verified"), msgspec.json.encode(_Note(at, rows)), 0o644)


def verified_at(journal: Path) -> datetime | None:
    """The time in the note; None if there is none. Raises OSError if the note cannot be read."""
    try:
        at = msgspec.json.decode(_path(journal, "verified").read_bytes(), type=_Note).at
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return at if at.tzinfo else None


def note_examined(journal: Path, found: EdgeExamination) -> None:
    """Write the note, unless this user may only read."""
    with contextlib.suppress(OSError):
        whole_files.write(_path(journal, "examined"), msgspec.json.encode(found), 0o644)


def examined(journal: Path) -> EdgeExamination | None:
    """The note; None where there is none that can be read."""
    try:
        return msgspec.json.decode(_path(journal, "examined").read_bytes(), type=EdgeExamination)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
