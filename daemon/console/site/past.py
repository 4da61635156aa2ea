"""The history from before the console's start: of each device, of restarts of processes, and each table's last paid
round. Rounds have their own module.

Pages work also while the store cannot be written: new rows wait and are written later.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime

import structlog
from msgspec import Struct

from daemon import logs
from daemon.console.site.store import BadStore, Store
from daemon.read_model import SiteState
from daemon.views import CHANGES, Change
from protocols.contract.events import Event
from protocols.contract.topics import Wire

__all__ = ["Past"]

EVERY = 5.0
"""Seconds after which a store that could not be written is tried again."""
MOST_WAITING = 5_000

SCHEMA = """
CREATE TABLE IF NOT EXISTS past_change (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, device TEXT NOT NULL, at TEXT NOT NULL,
    kind TEXT NOT NULL, said TEXT NOT NULL, UNIQUE (place, device, at, kind, said)
) STRICT;
CREATE TABLE IF NOT EXISTS past_process (
    name TEXT PRIMARY KEY, bootid TEXT NOT NULL, restarts INTEGER NOT NULL, at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS past_paid (place TEXT PRIMARY KEY, round TEXT NOT NULL) STRICT
"""
_PROCESS = "INSERT OR REPLACE INTO past_process VALUES (?, ?, ?, ?)"
_PAID = "INSERT OR REPLACE INTO past_paid VALUES (?, ?)"
_CHANGE = "INSERT OR IGNORE INTO past_change (place, device, at, kind, said) VALUES (?, ?, ?, ?, ?)"
_FEWER_CHANGES = (
    "DELETE FROM past_change WHERE place = ?1 AND device = ?2 AND n NOT IN "
    "(SELECT n FROM past_change WHERE place = ?1 AND device = ?2 ORDER BY n DESC LIMIT ?3)"
)


class _Row(Struct, frozen=True):
    """A row to be written, and the statement that deletes the oldest rows after it, where there is one."""

    insert: str
    values: tuple[str | int, ...]
    fewer: str = ""
    which: tuple[str | int, ...] = ()


class _Process(Struct, frozen=True):
    """The last known start of a process, how often it restarted before, and when."""

    bootid: str
    restarts: int = 0
    at: datetime | None = None


class Past:
    """The history of devices and processes in the store, as far as pages show it."""

    def __init__(self, store: Store, site: SiteState) -> None:
        """Load the history into the site and store new lines. Raises BadStore."""
        self._store = store
        self._waiting: deque[_Row] = deque(maxlen=MOST_WAITING)
        self._failing = False
        self._log: structlog.typing.FilteringBoundLogger = logs.get(console="past")
        store.has(SCHEMA)
        for place, device, change in self._changes():
            site.remember_change(place, device, change)
        self._processes = dict(self._known_processes())
        self.paid: dict[str, str] = dict(store.db.execute("SELECT place, round FROM past_paid").fetchall())
        """By table, the round that was paid last."""
        self._site = site
        site.on_history.append(self._changed)
        site.on_change.append(self._site_changed)
        site.on_event.append(self._event)

    async def run(self) -> None:
        """Write the rows that wait after a failure of the store, until cancelled."""
        try:
            while True:
                await asyncio.sleep(EVERY)
                self.flush()
        finally:
            self.flush()

    def flush(self) -> None:
        """Write all waiting rows, or none if the store fails."""
        if not self._waiting:
            return
        try:
            with self._store.write() as db:
                for row in self._waiting:
                    db.execute(row.insert, row.values)
                for fewer, which in dict.fromkeys((row.fewer, row.which) for row in self._waiting if row.fewer):
                    db.execute(fewer, which)
        except BadStore as error:
            if not self._failing:
                self._log.error("past.unwritten", reason=str(error))
            self._failing = True
        else:
            if self._failing:
                self._log.info("past.written", rows=len(self._waiting))
            self._failing = False
            self._waiting.clear()

    def _known_processes(self) -> Iterator[tuple[str, _Process]]:
        for name, bootid, restarts, at in self._store.db.execute("SELECT * FROM past_process ORDER BY name"):
            yield name, _Process(bootid, restarts, datetime.fromisoformat(at) if at else None)

    def _site_changed(self, key: str) -> None:
        """Detect restarts by the boot id, also those while the console was offline."""
        if key != "edges":
            return
        for name, edge in self._site.edges.items():
            known, bootid = self._processes.get(name), edge.info.bootid
            if bootid and (known is None or known.bootid != bootid):
                again = known is not None
                known = _Process(bootid, known.restarts + 1 if known else 0, self._site.now() if again else None)
                self._processes[name] = known
                self._keep(_Row(_PROCESS, (name, bootid, known.restarts, known.at.isoformat() if known.at else "")))
            if known is not None:
                edge.restarts, edge.restarted = known.restarts, known.at

    def _event(self, table: str, wire: Wire, _event: Event | None) -> None:
        if wire.type != "round.paid" or table not in self._site.tables:
            return
        view = self._site.tables[table]
        self.paid[table] = view.results[-1].round if view.results else view.round
        self._waiting.append(_Row(_PAID, (table, self.paid[table])))  # `run` writes it

    def _changes(self) -> Iterator[tuple[str, str, Change]]:
        rows = self._store.db.execute("SELECT place, device, at, kind, said FROM past_change ORDER BY n")
        for place, device, at, kind, said in rows:
            yield place, device, Change(datetime.fromisoformat(at), kind, said)

    def _changed(self, table: str, device: str, change: Change) -> None:
        values = (table, device, change.at.astimezone(UTC).isoformat(), change.kind, change.text)
        self._keep(_Row(_CHANGE, values, _FEWER_CHANGES, (table, device, CHANGES)))

    def _keep(self, row: _Row) -> None:
        """Write at once. After a failure `run` retries: each try on a locked store would wait."""
        self._waiting.append(row)
        if not self._failing:
            self.flush()
