"""An encrypted backup of a whole computer in one file, and its restoration on a new one.

Identity, keys, passwords, users and the books of jackpots go on. Edge, rules and console begin new journals, because
numbers used after the backup would be used again. The journals of the backup are kept beside them as evidence.
"""

import contextlib
import hashlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from daemon import whole_files
from daemon.config.model import Config, load
from daemon.journal.sealed import BadSealed, Opened, Sealed

__all__ = ["BROKER", "SUFFIX", "BadRestore", "Manifest", "Restored", "pack", "passphrase_in", "restore"]

BROKER = Path("/etc/mosquitto")
_OF_BROKER = ("feltd.passwd", "feltd.acl", "conf.d/site.conf")
LEAST_PASSPHRASE = 12
PARTS = ("edge", "rules", "console", "jackpots")
NAME = "manifest.json"
SUFFIX = ".feltd-backup"


class BadRestore(Exception):
    """Nothing was restored. The message gives the cause and the remedy."""


class Manifest(Struct, frozen=True):
    """The description of a backup. `rows`: of the journal of each process."""

    site: str
    edge: str
    made_at: datetime
    configuration: str
    rows: dict[str, int]


class Restored(Struct, frozen=True):
    """The result of a restoration: lines for people."""

    manifest: Manifest
    placed: tuple[str, ...]
    lost: tuple[str, ...]


def passphrase_in(path: Path) -> str:
    """The passphrase in a file. Raises BadRestore, OSError."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise BadRestore(f"{path}: not in UTF-8; write the passphrase as text in UTF-8") from error
    if len(text) < LEAST_PASSPHRASE:
        raise BadRestore(f"{path}: a passphrase has at least {LEAST_PASSPHRASE} characters")
    return text


def pack(copies: Path, config: Config, path: Path, target: Path, passphrase: str, rows: dict[str, int]) -> Manifest:
    """Write one encrypted file: the copies, the configuration at `path` and the files beside it, those of the broker.

    It is read back and compared before it gets its name. Raises OSError, BadSealed.
    """
    manifest = Manifest(config.site.name, config.edge.name, datetime.now(UTC), path.name, rows)
    found = dict(_found(copies, path))
    sums: dict[str, str] = {}
    beside = whole_files.begin(target)
    with beside.open("wb") as file, Sealed(file, passphrase) as sealed, tarfile.open(fileobj=sealed, mode="w|") as tar:
        raw = msgspec.json.encode(manifest)
        noted = tarfile.TarInfo(NAME)
        noted.size = len(raw)
        tar.addfile(noted, io.BytesIO(raw))
        for name, one in found.items():
            with one.open("rb") as content:
                sums[name] = _sum(content.read)
            part = name.partition("/")[0]
            owned = Path(getattr(config, part).journal) if part in PARTS else one  # a copy gets its journal's owner
            tar.add(one, name, recursive=False, filter=partial(_owned_as, owned))
    with _members(beside, passphrase) as members:
        read = {name: _sum(take) for name, _, take in members}
    changed = sorted(name for name in sums if read.get(name) != sums[name])
    if changed:
        raise BadSealed(f"{target}: {changed[0]} is not what was written; try another stick or disk")
    whole_files.finish(target)
    return manifest


def restore(backup: Path, passphrase: str, path: Path) -> Restored:
    """Put a backup onto this computer, with the configuration at `path`. All of it is read and verified first.

    Raises BadRestore, BadSealed, BadConfig, OSError.
    """
    if path.exists():
        raise BadRestore(f"{path}: this computer has a configuration; move it away if the backup is to take its place")
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=path.parent, prefix=".restore-"))
    try:
        owners = _unpacked(backup, passphrase, work)
        manifest = msgspec.json.decode((work / NAME).read_bytes(), type=Manifest)
        return _placed(work, manifest, owners, path)
    finally:
        shutil.rmtree(work)


def _placed(work: Path, manifest: Manifest, owners: dict[str, tarfile.TarInfo], path: Path) -> Restored:
    config = load(work / "configuration" / manifest.configuration)
    journals = {part: Path(getattr(config, part).journal) for part in PARTS}
    there = [str(journal) for journal in journals.values() if journal.exists()]
    if there:
        text = "this computer has journals of its own; move them away and keep them, or go on with them"
        raise BadRestore(f"{', '.join(there)}: {text}")
    since = f"{manifest.made_at:%Y-%m-%d %H:%M:%SZ}"
    placed, lost = [], [f"edge: events since {since} that neither the broker nor the rules received"]
    for part, journal in journals.items():
        if not (work / part).is_dir():
            continue
        goes_on = part == "jackpots"
        folder = journal.parent if goes_on else journal.parent / f"evidence-{manifest.made_at:%Y%m%dT%H%M%SZ}"
        for one in sorted((work / part).iterdir()):
            to = Path(config.console.store) if one.name == _store(config) and part == "console" else folder / one.name
            _move(one, to, owners[f"{part}/{one.name}"], journal.parent)
        if goes_on:
            placed.append(f"{journal}: the books go on after row {manifest.rows.get(part, 0)}")
            lost.append(f"jackpots: confirmations and payments since {since}: two people enter them again from paper")
        else:
            placed.append(f"{journal}: a new journal begins; {manifest.rows.get(part, 0)} earlier rows are in {folder}")
    lost.append(f"rules: results since {since} stay on the broker and in {journals['rules'].parent} of the old disk")
    lost.append(f"console: users, incidents and actions that were changed since {since}")
    lost.append("open rounds are suspended and wait for a person")
    for name, info in owners.items():
        kind, _, rest = name.partition("/")
        if kind == "broker":
            _move(work / name, BROKER / rest, info, BROKER)
        elif kind == "configuration" and rest != manifest.configuration:
            _move(work / name, path.parent / rest, info, path.parent)
    # Placed last: with the configuration the computer is complete, and the services may start.
    name = f"configuration/{manifest.configuration}"
    _move(work / name, path, owners[name], path.parent)
    placed.append(f"{path}: configuration, keys and passwords of {manifest.edge}, site {manifest.site}")
    return Restored(manifest, tuple(placed), tuple(lost))


def _owned_as(path: Path, info: tarfile.TarInfo) -> tarfile.TarInfo:
    """With the owner and group of `path`; one that has no name on this computer is left empty."""
    info.uname = info.gname = ""
    with contextlib.suppress(KeyError):
        info.uname = path.owner()
    with contextlib.suppress(KeyError):
        info.gname = path.group()
    return info


def _store(config: Config) -> str:
    return Path(config.console.store).name


def _found(copies: Path, path: Path) -> Iterator[tuple[str, Path]]:
    """Each file of a backup by its name in it."""
    for part in PARTS:
        for one in sorted((copies / part).glob("*")):
            yield f"{part}/{one.name}", one
    for one in sorted(path.parent.rglob("*")):
        a_database = ".db" in one.name or one.suffix == SUFFIX
        if one.is_file() and not one.is_symlink() and not a_database and not one.is_relative_to(copies):
            yield f"configuration/{one.relative_to(path.parent)}", one
    for name in _OF_BROKER:
        if (BROKER / name).is_file():
            yield f"broker/{name}", BROKER / name


@contextlib.contextmanager
def _members(path: Path, passphrase: str) -> Iterator[Iterator[tuple[str, tarfile.TarInfo, Callable[[int], bytes]]]]:
    """The files of a backup, in order: name, owner and mode, and how to read the content. Raises BadSealed."""

    def files(tar: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo, Callable[[int], bytes]]]:
        for info in tar:
            parts = PurePosixPath(info.name).parts
            content = tar.extractfile(info) if info.isreg() else None
            if content is None or ".." in parts or PurePosixPath(info.name).is_absolute():
                raise BadSealed(f"{path}: {info.name!r} belongs in no backup")
            yield info.name, info, content.read

    with path.open("rb") as file, Opened(file, passphrase) as opened:
        with tarfile.open(fileobj=opened, mode="r|") as tar:
            yield files(tar)
        while opened.read(1024 * 1024):  # to the end, so that the last chunk is verified
            pass


def _unpacked(backup: Path, passphrase: str, work: Path) -> dict[str, tarfile.TarInfo]:
    owners = {}
    with _members(backup, passphrase) as members:
        for name, info, take in members:
            to = work / name
            to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with to.open("wb") as file:
                while block := take(1024 * 1024):
                    file.write(block)
            owners[name] = info
    if NAME not in owners:
        raise BadSealed(f"{backup}: it has no {NAME}; take another copy of it")
    return owners


def _move(one: Path, to: Path, info: tarfile.TarInfo, below: Path) -> None:
    """Put a file to its place durably, with its former mode and owner; new folders from `below` on get the owner."""
    missing = [folder for folder in to.parents if not folder.exists()]
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    for folder in missing:
        if folder.is_relative_to(below):
            _give(folder, info)
    beside = whole_files.begin(to, 0o600)
    shutil.copyfile(one, beside)
    beside.chmod(info.mode & 0o777)
    _give(beside, info)
    whole_files.finish(to)


def _give(path: Path, info: tarfile.TarInfo) -> None:
    """Give a file to its former owner, if this computer has a user of this name and this process may."""
    with contextlib.suppress(LookupError, PermissionError):
        shutil.chown(path, group=info.gname)
    with contextlib.suppress(LookupError, PermissionError):
        shutil.chown(path, user=info.uname)


def _sum(take: Callable[[int], bytes]) -> str:
    digest = hashlib.sha256()
    while block := take(1024 * 1024):
        digest.update(block)
    return digest.hexdigest()
