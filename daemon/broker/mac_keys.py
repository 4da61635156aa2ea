"""Keys that authenticate the events of an edge and the verdicts of rules: files of 32 random bytes as 64 hex digits.

The edge signs with its key (`[edge] mac_key_file`). The rules verify with the same key (`[rules] mac_key_folder`, a
file `<edge>.key` for each edge). The rules sign with `[rules] mac_key_file`, and the jackpots verify both.
`protocols.contract.topics.mac_of` defines the signed content.
"""

import contextlib
import grp
import os
import re
from pathlib import Path

from daemon import whole_files
from protocols.contract.topics import is_id

__all__ = ["BadMacKey", "load_mac_key", "load_mac_keys", "make_mac_key", "make_mac_keys"]

SIZE = 32
SUFFIX = ".key"
MAKE = "make one with `feltd mac-key`"


class BadMacKey(Exception):
    """An unusable key file. The message names the file and the remedy, and never the key."""


def make_mac_key(path: Path) -> None:
    """Write a new key, readable by its owner only. Raises BadMacKey; existing files are never overwritten."""
    try:
        whole_files.create(path, os.urandom(SIZE).hex().encode() + b"\n", 0o600)
    except FileExistsError as error:
        raise BadMacKey(f"{path}: exists already; keys are never overwritten, give another name") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadMacKey(f"{path}: {reason}; name a file in a folder that this user may write") from error


def make_mac_keys(folder: Path, edge: str, site: str) -> list[Path]:
    """Make the missing keys beside a configuration, each for the users that need it. Returns the new files.

    The edge's own and its copies for rules and jackpots; the rules' own and its copy for the jackpots. A copy that
    differs is replaced: with another key no message can be verified. Raises BadMacKey.
    """
    made: list[Path] = []
    owners = (
        (folder / "edge-mac.key", "feltd-edge", None),
        (folder / "mac" / f"{edge}{SUFFIX}", "feltd-rules", folder / "edge-mac.key"),
        (folder / "jackpots-mac" / f"{edge}{SUFFIX}", "feltd-jackpots", folder / "edge-mac.key"),
        (folder / "rules-mac.key", "feltd-rules", None),
        (folder / "jackpots-verdict-mac" / f"{site}{SUFFIX}", "feltd-jackpots", folder / "rules-mac.key"),
    )
    try:
        for path, group, copied in owners:
            raw = os.urandom(SIZE).hex().encode() + b"\n" if copied is None else copied.read_bytes()
            if path.parent != folder and not path.parent.is_dir():
                path.parent.mkdir(mode=0o750)
                _give(path.parent, group)
            if path.exists() and (copied is None or path.read_bytes() == raw):
                continue
            beside = whole_files.begin(path, 0o640)
            beside.write_bytes(raw)
            _give(beside, group)
            whole_files.finish(path)
            made.append(path)
    except OSError as error:
        raise BadMacKey(f"{error.filename or folder}: {error.strerror}; make the keys as root") from error
    return made


def _give(path: Path, group: str) -> None:
    """Give a file to a group, if the package made the group and this user may."""
    with contextlib.suppress(LookupError, PermissionError):
        os.chown(path, -1, grp.getgrnam(group).gr_gid)


def load_mac_key(path: Path) -> bytes:
    """The key in a file that only its owner and its group may read. Raises BadMacKey."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(10 * SIZE).strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadMacKey(f"{path}: {reason}; give the path of a MAC key that this user may read") from error
    if mode & 0o027:
        raise BadMacKey(f"{path}: other users may read or write it; chmod 640, or {MAKE}")
    if not re.fullmatch(rb"[0-9a-fA-F]*", text):
        raise BadMacKey(f"{path}: no MAC key: it is {2 * SIZE} hexadecimal digits in one line; {MAKE}")
    if len(text) != 2 * SIZE:
        raise BadMacKey(f"{path}: a MAC key has {2 * SIZE} hexadecimal digits, this one has {len(text)}; {MAKE}")
    return bytes.fromhex(text.decode())


def load_mac_keys(folder: Path) -> dict[str, bytes]:
    """The keys of all edges, or of the rules of all sites, by name: each file `<name>.key`. Raises BadMacKey."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadMacKey(f"{folder}: {reason}; give a folder with a file <edge>{SUFFIX} for each edge") from error
    for path in files:
        if not is_id(path.stem):
            raise BadMacKey(f"{path}: {path.stem!r} is no name of an edge; a key of the edge edge-7 is edge-7{SUFFIX}")
    if not files:
        raise BadMacKey(f"{folder}: holds no key; it needs a file <edge>{SUFFIX} for each edge; {MAKE}")
    return {path.stem: load_mac_key(path) for path in files}
