"""What happened before the console was started: the last results of each table, the history of each device."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from daemon.console.site import CHANGES, ROUNDS, Change, Site
from daemon.console.store import Store

__all__ = ["Past"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS past_result (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, round TEXT NOT NULL, result TEXT NOT NULL,
    UNIQUE (place, round, result)
) STRICT;
CREATE TABLE IF NOT EXISTS past_change (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, device TEXT NOT NULL, at TEXT NOT NULL,
    kind TEXT NOT NULL, said TEXT NOT NULL, UNIQUE (place, device, at, kind, said)
) STRICT;
"""


class Past:
    """Kept in the store, as much as pages show."""

    def __init__(self, store: Store, site: Site) -> None:
        """Give the site what is known, and keep what comes. Raises BadStore."""
        self._store = store
        store.has(SCHEMA)
        for place, result in self._results():
            site.remember_result(place, result)
        for place, device, change in self._changes():
            site.remember_change(place, device, change)
        site.on_result.append(self._ended)
        site.on_history.append(self._changed)

    def _results(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for place, text in self._store.db.execute("SELECT place, result FROM past_result ORDER BY n"):
            yield place, msgspec.json.decode(text, type=dict[str, Any])

    def _changes(self) -> Iterator[tuple[str, str, Change]]:
        rows = self._store.db.execute("SELECT place, device, at, kind, said FROM past_change ORDER BY n")
        for place, device, at, kind, said in rows:
            yield place, device, Change(datetime.fromisoformat(at), kind, said)

    def _ended(self, table: str, _kind: str, result: dict[str, Any]) -> None:
        text = msgspec.json.encode(result).decode()
        with self._store.write() as db:
            db.execute(
                "INSERT OR IGNORE INTO past_result (place, round, result) VALUES (?, ?, ?)",
                (table, str(result.get("round", "")), text),
            )
            db.execute(
                "DELETE FROM past_result WHERE place = ?1 AND n NOT IN "
                "(SELECT n FROM past_result WHERE place = ?1 ORDER BY n DESC LIMIT ?2)",
                (table, ROUNDS),
            )

    def _changed(self, table: str, device: str, change: Change) -> None:
        with self._store.write() as db:
            db.execute(
                "INSERT OR IGNORE INTO past_change (place, device, at, kind, said) VALUES (?, ?, ?, ?, ?)",
                (table, device, change.at.astimezone(UTC).isoformat(), change.kind, change.text),
            )
            db.execute(
                "DELETE FROM past_change WHERE place = ?1 AND device = ?2 AND n NOT IN "
                "(SELECT n FROM past_change WHERE place = ?1 AND device = ?2 ORDER BY n DESC LIMIT ?3)",
                (table, device, CHANGES),
            )
