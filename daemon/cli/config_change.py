"""Changes the configuration as a whole: file, access list, users and processes together, or nothing.

Used by `feltd table` and `feltd config`. Each version is kept beside the file, in the folder `history`, with the person
and the reason. A change that was interrupted is undone by the next one: `pending.json` has the old contents.

While processes still use the old version, the broker grants the topics of both versions; those of the old one alone are
removed when all processes use the new one.
"""

import contextlib
import difflib
import fcntl
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from daemon import whole_files
from daemon.cli import granted
from daemon.cli.access_list import BadSite, access_list
from daemon.config.model import Config, broker_of, load, parse, with_keys_beside

__all__ = ["CannotChange", "Change", "Changes", "Services", "Version", "difference"]

PASSWORDS = Path("/etc/mosquitto/feltd.passwd")
USED_WITHIN_S = 60.0
"""Seconds that a change waits for the processes to use it: an open round at the changed table ends first."""
LOOK_S = 0.5
_BETWEEN = "# ---- until all processes use the new configuration: what the one before needs"


class CannotChange(Exception):
    """Nothing was changed, or everything is as before. The message gives the cause and the remedy."""


class Version(Struct, frozen=True):
    """A version of the configuration: its text is `history/NUMBER.toml`."""

    number: int
    at: datetime
    who: str
    why: str
    digest: str


class _File(Struct, frozen=True):
    """A file of a change: its old content (None: it was missing) and its new content."""

    path: str
    before: str | None
    after: str
    mode: int


class Change(Struct, frozen=True):
    """A change that was checked and is not made yet. `config`: the new one. `users`: new users of the broker."""

    text: str
    config: Config
    files: tuple[_File, ...]
    both_lists: str
    """The access list while some processes use the old version; empty where it stays as it is."""
    users: tuple[str, ...]
    notes: tuple[str, ...]


class Services(Protocol):
    """The broker and the processes of this computer."""

    def refusals(self, config: Config, path: Path, /) -> list[str]:
        """Why the running processes would not use this configuration."""

    def reload_broker(self) -> None:
        """Let the broker read its access list and passwords again. Raises CannotChange."""

    def reload(self) -> None:
        """Let the processes use the file, which has this configuration. Raises CannotChange."""

    def use(self, digest: str, /) -> bool:
        """Whether all processes use this version."""

    def console_notes(self, config: Config, /) -> tuple[str, ...]:
        """What a person must do for the console to use the new version."""

    def restart_console(self, config: Config, /) -> None:
        """Start the console again, unless `console_notes` has a step for a person."""


class Changes:
    """The configuration at `path` and its versions."""

    def __init__(self, path: Path, services: Services, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`services` apply a change; `now` returns the time of a new version."""
        self._path, self._services, self._now = path, services, now
        self._folder = path.parent / "history"
        self._log, self._pending = self._folder / "log.ndjson", self._folder / "pending.json"

    def versions(self) -> list[Version]:
        """All versions, the oldest first."""
        try:
            lines = self._log.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [msgspec.json.decode(line, type=Version) for line in lines]

    def text_of(self, number: int) -> str:
        """The text of a version. Raises CannotChange."""
        try:
            return (self._folder / f"{number}.toml").read_text(encoding="utf-8")
        except FileNotFoundError as error:
            numbers = [one.number for one in self.versions()]
            known = f"{numbers[0]} to {numbers[-1]}" if numbers else "none yet"
            raise CannotChange(f"no version {number}; versions: {known}") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[list[str]]:
        """Lock out other changes and undo an interrupted one. Yields the undone parts. Raises CannotChange."""
        self._folder.mkdir(mode=0o750, exist_ok=True)
        with (self._folder / "lock").open("w", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CannotChange("another change is being made; wait for its end and try again") from error
            yield self._recovered()

    def plan(self, text: str) -> Change:
        """The change for a new text of the file. Raises CannotChange, BadConfig."""
        before_text = self._path.read_text(encoding="utf-8")
        config = with_keys_beside(parse(text, self._path.name), self._path.parent)
        before = load(self._path)
        files = [_File(str(self._path), before_text, text, 0o640)]
        both, notes = "", list[str]()
        users: list[str] = []
        if broker_of(config, config.edge).host not in granted.HERE or not granted.INSTALLED.exists():
            notes.append("the broker is not on this computer: install the list that `feltd acl` prints there, too")
        else:
            lists = self._lists(before, config)
            both, users = self._broker(lists, files) if lists else ("", [])
        return Change(text, config, tuple(files), both, tuple(users), tuple(notes))

    def make(self, change: Change, who: str, why: str) -> Version:
        """Make a change, and wait until the processes use it. Raises CannotChange: then everything is as before."""
        self._note_current()
        refused = self._services.refusals(change.config, self._path)
        if refused:
            raise CannotChange("\n".join(refused))
        encoded = msgspec.json.encode(change.files)
        whole_files.write(self._pending, encoded, 0o600)
        try:
            self._write(change)
        except (CannotChange, OSError) as error:
            self._undo(change.files)
            raise CannotChange(f"{error}; everything is as before") from error
        version = self._note(change.text, who, why)
        self._pending.unlink()
        whole_files.sync_folder(self._pending)
        return version

    def settle(self, change: Change) -> bool:
        """Wait until the processes use a change, then remove the grants of the old version. False: they do not use it
        yet.
        """
        if not change.both_lists:
            return True
        end = time.monotonic() + USED_WITHIN_S
        while not self._services.use(change.config.digest):
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_S)
        (after,) = (one.after for one in change.files if one.path == str(granted.INSTALLED))
        _put(granted.INSTALLED, after, 0o644)
        self._services.reload_broker()
        return True

    def _lists(self, before: Config, config: Config) -> tuple[str, str, str] | None:
        """The installed list, the new one, and one with the grants of both versions; None where nothing changes."""
        installed = granted.INSTALLED.read_text(encoding="utf-8")
        installed = re.sub(f"{_BETWEEN}\n.*?{_BETWEEN}\n", "", installed, flags=re.DOTALL)
        try:
            old, new = access_list([(self._path, before)]), access_list([(self._path, config)])
        except BadSite as error:
            raise CannotChange(str(error)) from error
        lines = [line for line in installed.splitlines() if line and not line.startswith("#")]
        if not installed.startswith(old) and lines:
            raise CannotChange(
                f"{granted.INSTALLED} is not the list of this configuration alone: it is of several computers, or"
                " of an earlier version; edit the configuration by hand, and install the list that `feltd acl` prints"
            )
        own = installed.removeprefix(old) if lines else ""  # users that the site added at the end
        between = f"{_BETWEEN}\n{old}{_BETWEEN}\n"
        return (installed, new + own, new + between + own) if new != old or not lines else None

    def _broker(self, lists: tuple[str, str, str], files: list[_File]) -> tuple[str, list[str]]:
        """Add list and users of the broker to `files`. Returns the list with old and new grants, and the new users."""
        installed, new, both = lists
        files.append(_File(str(granted.INSTALLED), installed, new, 0o644))
        if not PASSWORDS.exists():
            return both, []
        hashes = PASSWORDS.read_text(encoding="ascii")
        known = {line.partition(":")[0] for line in hashes.splitlines()}
        wanted = [line.split()[1] for line in new.splitlines() if line.startswith("user ")]
        missing = [user for user in dict.fromkeys(wanted) if user not in known]
        if not missing:
            return both, []
        passwords = {user: self._password(user, files) for user in missing}
        files.append(_File(str(PASSWORDS), hashes, hashes + _hashed(passwords), 0o600))
        return both, missing

    def _password(self, user: str, files: list[_File]) -> str:
        """The password of this user in the file, or a new one, which `files` then writes."""
        path = self._path.parent / "mqtt" / user
        with contextlib.suppress(FileNotFoundError):
            return path.read_text(encoding="utf-8").strip()
        made = secrets.token_urlsafe(24)
        files.append(_File(str(path), None, made + "\n", 0o600))
        return made

    def _write(self, change: Change) -> None:
        for one in change.files:
            if one.path != str(self._path):
                between = change.both_lists if one.path == str(granted.INSTALLED) else one.after
                _put(Path(one.path), between, one.mode)
        if len(change.files) > 1:
            self._services.reload_broker()
        _put(self._path, change.text, 0o640)
        self._services.reload()

    def _undo(self, files: tuple[_File, ...]) -> None:
        for one in files:
            if one.before is None:
                Path(one.path).unlink(missing_ok=True)
            else:
                _put(Path(one.path), one.before, one.mode)
        with contextlib.suppress(CannotChange):  # a process that is not running stays so
            if len(files) > 1:
                self._services.reload_broker()
            self._services.reload()
        self._pending.unlink(missing_ok=True)

    def _recovered(self) -> list[str]:
        try:
            files = msgspec.json.decode(self._pending.read_bytes(), type=tuple[_File, ...])
        except FileNotFoundError:
            return []
        self._undo(files)
        return [f"a change was interrupted and is undone: {one.path}" for one in files]

    def _note_current(self) -> None:
        """Keep the present file as a version, if it was edited by hand since the last one."""
        text = self._path.read_text(encoding="utf-8")
        versions = self.versions()
        if not versions or self.text_of(versions[-1].number) != text:
            self._note(text, "", "edited by hand, or the first version")

    def _note(self, text: str, who: str, why: str) -> Version:
        versions = self.versions()
        digest = parse(text).digest
        version = Version(versions[-1].number + 1 if versions else 1, self._now(), who, why, digest)
        _put(self._folder / f"{version.number}.toml", text, 0o640)
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in [*versions, version])
        whole_files.write(self._log, lines, 0o640)
        return version


def difference(before: str, after: str, names: tuple[str, str] = ("now", "then")) -> str:
    """The lines that differ, with three around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return "\n".join(lines)


def _put(path: Path, text: str, mode: int) -> None:
    """Replace a file; its owner and group stay. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    beside = whole_files.begin(path, mode)
    beside.write_text(text, encoding="utf-8")
    known = path if path.exists() else path.parent
    kept = known.stat()
    with contextlib.suppress(PermissionError):
        os.chown(beside, kept.st_uid, kept.st_gid)
    if path.exists():
        shutil.copymode(path, beside)
    whole_files.finish(path)


def _hashed(passwords: dict[str, str]) -> str:
    """Lines of mosquitto's file of passwords. Raises CannotChange."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "passwords")
        path.write_text("".join(f"{user}:{password}\n" for user, password in passwords.items()), encoding="utf-8")
        path.chmod(0o600)
        try:
            done = subprocess.run(["mosquitto_passwd", "-U", path], check=False, capture_output=True, text=True)  # noqa: S603, S607 - root's own
        except FileNotFoundError as error:
            raise CannotChange("mosquitto_passwd is missing: apt-get install mosquitto") from error
        if done.returncode != 0:
            raise CannotChange(f"mosquitto_passwd: {done.stderr.strip()}")
        return path.read_text(encoding="utf-8")
