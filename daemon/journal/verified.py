"""When all rows of a journal were last verified: a note beside it, to remind a technician. It proves nothing."""

import contextlib
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from daemon import whole_files

__all__ = ["note_verified", "verified_at"]


class _Note(Struct, frozen=True):
    at: datetime
    rows: int


def _path(journal: Path) -> Path:
    file = journal.resolve()
    return file.with_name(file.name + "-verified")


def note_verified(journal: Path, rows: int, at: datetime) -> None:
    """Write the note, unless this user may only read."""
    with contextlib.suppress(OSError):
        whole_files.write(_path(journal), msgspec.json.encode(_Note(at, rows)), 0o644)


def verified_at(journal: Path) -> datetime | None:
    """The time in the note; None if there is none. Raises OSError if the note cannot be read."""
    try:
        at = msgspec.json.decode(_path(journal).read_bytes(), type=_Note).at
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return at if at.tzinfo else None
