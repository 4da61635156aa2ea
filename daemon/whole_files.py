"""Files that are complete after a power cut: written beside their path, made durable, then renamed."""

import errno
import os
from pathlib import Path

__all__ = ["begin", "create", "finish", "sync_folder", "write"]

NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
"""The errors of a file system without hard links, such as that of a USB stick."""


def begin(path: Path, mode: int = 0o600) -> Path:
    """Create an empty file beside `path`, which `finish` renames to `path`. Raises OSError."""
    beside = _beside(path)
    try:
        beside.unlink(missing_ok=True)
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except OSError as error:
        error.filename = str(path)  # the name that the user gave
        raise
    return beside


def finish(path: Path, *, new: bool = False) -> None:
    """Make the file beside `path` durable and rename it to `path`. Raises OSError.

    With `new` an existing file is kept, also if another process made it meanwhile: raises FileExistsError.
    """
    beside = _beside(path)
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    if new:
        try:
            _place_new(beside, path)
        except OSError as error:
            error.filename = str(path)
            raise
        finally:
            beside.unlink(missing_ok=True)
    else:
        beside.replace(path)
    sync_folder(path)


def write(path: Path, raw: bytes, mode: int) -> None:
    """Replace the file: after a power cut it is the old one or the new one. Raises OSError."""
    begin(path, mode).write_bytes(raw)
    finish(path)


def create(path: Path, raw: bytes, mode: int) -> None:
    """Make a new file: after a power cut it is missing or complete. Raises OSError."""
    begin(path, mode).write_bytes(raw)
    finish(path, new=True)


def sync_folder(file: Path) -> None:
    """Make the directory entries of the folder of `file` durable. Raises OSError."""
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _place_new(beside: Path, path: Path) -> None:
    """Rename without overwriting. Raises FileExistsError if `path` exists."""
    try:
        os.link(beside, path)
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        beside.replace(path)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
