"""The actions of people at the console: each is durable in its own hash-chained journal before it is executed.

The journal has one writer, the console. A change of the store, from pages or the command line, leaves its note there in
the same transaction, so that neither exists without the other. The console moves each note to the journal once.

Without room the console still shows pages but executes nothing. An edge would stop, so as not to lose events; here
nothing can be lost.
"""

import contextlib
import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from daemon.config.model import Keeping
from daemon.console.site.store import BadStore, Store
from daemon.journal import retention as keeping
from daemon.journal.reader import closed_files, open_to_read
from daemon.journal.rows import EPOCH, Entry, micros_of
from daemon.journal.sent import KEY as SENT
from daemon.journal.store import BadJournal, Journal

__all__ = ["CONSOLE", "Action", "Actions", "leave", "read_actions", "take_up"]

CONSOLE = "console"
_TYPE = "console."
_LEFT = "left/"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS note_left (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, user TEXT NOT NULL, role TEXT NOT NULL,
    action TEXT NOT NULL, target TEXT NOT NULL, detail TEXT NOT NULL
) STRICT
"""


class Action(Struct, frozen=True):
    """One action. `user` "" is unknown; `target` as in `Actions.note`; `n` is its number in the journal."""

    n: int
    time: datetime
    user: str
    role: str
    action: str
    target: str
    detail: dict[str, Any]


class _Data(Struct, frozen=True):
    """The data of a row."""

    role: str
    target: str
    detail: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(_Data)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Actions:
    """Writes the journal of actions. The caller opens, maintains and closes the journal."""

    def __init__(
        self, journal: Journal, store: Store, *, now: Callable[[], datetime] = _utc_now, full: str = ""
    ) -> None:
        """Take over the notes that were left in the store. Raises BadStore."""
        self.journal = journal
        self.full = full
        """The reason why writing is refused now; empty: allowed."""
        self.on_action: list[Callable[[Action], None]] = []
        """Called with each action once it is durable."""
        self._store = store
        self._now = now
        store.has(_SCHEMA)
        self.collect()

    def note(self, user: str, role: str, action: str, target: str, detail: dict[str, Any]) -> None:
        """Write a note, durable on return; then execute the action. If it raises BadJournal or BadStore, do not.

        `action` is a word as "command" or "user.add". `target` is "TABLE", "TABLE/DEVICE" or, for what belongs to no
        table, "" or "KIND:NAME" as "user:maria". `detail` must not contain a password, token or private card.
        """
        if self.full:
            raise BadJournal(self.full)
        self._collect()
        self._append([_entry(self._now(), user, role, action, target, msgspec.json.encode(detail))], {})

    def _append(self, entries: list[Entry], memory: dict[str, bytes]) -> None:
        """Append rows. Actions are not published: they are marked as sent, so that retention may delete old files."""
        self.journal.append(entries, {**memory, SENT: b"%d" % (self.journal.head + len(entries))})
        for n, one in enumerate(entries, self.journal.head - len(entries) + 1):
            for listener in self.on_action:
                listener(_action((n, micros_of(one.time), one.device, one.type, one.data)))

    def collect(self) -> None:
        """Take over the notes that were left in the store, if possible now; otherwise with the next action."""
        if not self.full:
            with contextlib.suppress(BadJournal, BadStore):
                self._collect()

    def _collect(self) -> None:
        """Take over the notes; a crash at any point neither loses nor doubles one. Raises BadJournal, BadStore."""
        key = _LEFT + self._store.name
        done = int(self.journal.memory(key) or b"0")
        left = self._store.db.execute("SELECT * FROM note_left ORDER BY id").fetchall()
        if not left:
            return
        entries = [
            _entry(datetime.fromisoformat(time), user, role, action, target, detail.encode())
            for id_, time, user, role, action, target, detail in left
            if id_ > done
        ]
        last: int = left[-1][0]
        if entries:
            self._append(entries, {key: b"%d" % last})
        with self._store.write() as db:
            db.execute("DELETE FROM note_left WHERE id <= ?", (last,))


def take_up(journal: Journal, how: Keeping) -> str:
    """Open and verify the journal; returns the reason if it only lacks room. Raises BadJournal."""
    try:
        keeping.take_up(journal, how)
    except keeping.NoRoom as error:
        return str(error)
    return ""


def _entry(time: datetime, user: str, role: str, action: str, target: str, detail: bytes) -> Entry:
    table = target.partition("/")[0]
    place = table if re.fullmatch(r"[a-z0-9-]+", table) else CONSOLE
    data = msgspec.json.encode({"role": role, "target": target, "detail": msgspec.Raw(detail)})
    return Entry(place, user, _TYPE + action, time, data)


def leave(
    db: sqlite3.Connection, time: datetime, user: str, role: str, action: str, target: str, detail: dict[str, Any]
) -> None:
    """Leave a note for `Actions.collect`, within the transaction `db` of the change."""
    db.execute(_SCHEMA)
    db.execute(
        "INSERT INTO note_left (time, user, role, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)",
        (time.isoformat(), user, role, action, target, msgspec.json.encode(detail).decode()),
    )


def read_actions(
    path: Path,
    limit: int,
    *,
    before: int | None = None,
    user: str = "",
    action: str = "",
    place: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Action]:
    """The last `limit` actions of the journal at `path` and its closed files, the newest first.

    Of those with n less than `before`, of one user, of a kind ("user" is also "user.add"), of one table ("console" for
    none), from `since` to before `until`. Reads during writes, with its own connections: made for a thread.
    Raises BadJournal.
    """
    prefix = _TYPE + action
    where = ["(substr(type, 1, ?) = ?)"]
    values: list[str | int] = [len(_TYPE), _TYPE]
    if action:
        where.append("(type = ? OR substr(type, 1, ?) = ?)")
        values += [prefix, len(prefix) + 1, prefix + "."]
    for condition, value in (("n < ?", before), ("device = ?", user or None), ("place = ?", place or None)):
        if value is not None:
            where.append(condition)
            values.append(value)
    for condition, time in (("time >= ?", since), ("time < ?", until)):
        if time is not None:
            where.append(condition)
            values.append(micros_of(time))
    columns = "n, time, device, type, data"
    query = f"SELECT {columns} FROM event WHERE {' AND '.join(where)} ORDER BY n DESC LIMIT ?"  # noqa: S608 - constants
    found: list[Action] = []
    try:
        files = (path, *reversed(closed_files(path)))
    except OSError as error:
        raise BadJournal(f"{path.parent}: {error.strerror}; check disk, owner and rights") from error
    for file in files:
        if len(found) >= limit:
            break
        try:
            with contextlib.closing(open_to_read(file)) as db:
                found += map(_action, db.execute(query, (*values, limit - len(found))))
        except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
            raise BadJournal(f"{file}: {error}; run `feltd journal verify {path}` for details") from error
    return found


def _action(row: tuple[int, int, str, str, bytes]) -> Action:
    n, micros, user, type_, data = row
    said = _decoder.decode(data)
    time = EPOCH + timedelta(microseconds=micros)
    return Action(n, time, user, said.role, type_.removeprefix(_TYPE), said.target, said.detail)
