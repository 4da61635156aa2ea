"""What people did at the console: each action durable in a journal of its own, hash-chained, before it is done.

The journal has one writer, the console. What changes the store, from its pages or on the command line beside it, leaves
its note there in the transaction that does it: neither stands without the other. The console takes each over, once.

Where there is no room left the console goes on showing, and nothing is done: an edge stops rather than lose an event,
but here nothing happens that could be lost.
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
        """With what was left in the store meanwhile. Raises BadStore."""
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
        """Durable when it returns; then do it. Raises BadJournal, BadStore: then do not.

        `action` is a word as "command" or "user.add". `target` is "TABLE", "TABLE/DEVICE" or, for what belongs to no
        table, "" or "KIND:NAME" as "user:maria". No password, token or private card ever stands in `detail`.
        """
        if self.full:
            raise BadJournal(self.full)
        self._collect()
        self._append([_entry(self._now(), user, role, action, target, msgspec.json.encode(detail))], {})

    def _append(self, entries: list[Entry], memory: dict[str, bytes]) -> None:
        """Actions are not published: mark them as sent, so that retention may delete old files."""
        self.journal.append(entries, {**memory, SENT: b"%d" % (self.journal.head + len(entries))})
        for n, one in enumerate(entries, self.journal.head - len(entries) + 1):
            for hear in self.on_action:
                hear(_action((n, micros_of(one.time), one.device, one.type, one.data)))

    def collect(self) -> None:
        """Take over what was left in the store, where that can be done now: else it is with the next."""
        if not self.full:
            with contextlib.suppress(BadJournal, BadStore):
                self._collect()

    def _collect(self) -> None:
        """Killed anywhere in here, nothing is lost or said twice. Raises BadJournal, BadStore."""
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
    """As every journal is taken up; but where there is no room for more, only that is said. Raises BadJournal."""
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
    """A note for `Actions.collect`, within the transaction `db` of the store that does it."""
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
    none), from `since` to before `until`. Reads beside the writer with connections of its own: made for a thread.
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
            raise BadJournal(f"{file}: {error}; `feltd journal verify {path}` says more") from error
    return found


def _action(row: tuple[int, int, str, str, bytes]) -> Action:
    n, micros, user, type_, data = row
    said = _decoder.decode(data)
    time = EPOCH + timedelta(microseconds=micros)
    return Action(n, time, user, said.role, type_.removeprefix(_TYPE), said.target, said.detail)
