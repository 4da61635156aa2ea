"""The times during which the console received the site, and when each device was first seen. Fault rates use them.

Such a time ends when the broker or the console is lost. A killed console loses the last EVERY_S of it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta

from daemon.console.site.store import BadStore, Store
from daemon.journal.rows import EPOCH, micros_of
from daemon.read_model import SiteState

__all__ = ["Watched"]

EVERY_S = 10.0
KEPT_FOR = timedelta(days=400)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS watched (since INTEGER PRIMARY KEY, until INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS device_seen (
    place TEXT NOT NULL, device TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (place, device)
) STRICT, WITHOUT ROWID;
"""


class Watched:
    """Written by `run` every EVERY_S."""

    def __init__(self, store: Store, site: SiteState, now: Callable[[], datetime]) -> None:
        """Create the tables. Raises BadStore."""
        self._store = store
        self._site = site
        self._now = now
        self._since: datetime | None = None
        self._last = now()
        self._known: set[tuple[str, str]] = set()
        store.has(_SCHEMA)
        site.on_change.append(self._changed)

    async def run(self) -> None:
        """Record the watched time every EVERY_S, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY_S)

    def look(self) -> None:
        """Record that the site was watched until now. If the store fails, the next call tries again."""
        now = self._now()
        slept = not timedelta(0) <= now - self._last <= timedelta(seconds=3 * EVERY_S)
        self._last = now
        if not self._site.connected or self._since is None or slept:
            self._since = now if self._site.connected else None
            return
        new = {key for key, device in self._site.devices.items() if device.there} - self._known
        with contextlib.suppress(BadStore):
            with self._store.write() as db:
                db.execute("DELETE FROM watched WHERE until < ?", (micros_of(now - KEPT_FOR),))
                values = micros_of(self._since), micros_of(now)
                db.execute("INSERT INTO watched VALUES (?1, ?2) ON CONFLICT (since) DO UPDATE SET until = ?2", values)
                db.executemany(
                    "INSERT OR IGNORE INTO device_seen VALUES (?, ?, ?)", [(*key, micros_of(now)) for key in new]
                )
            self._known |= new

    def _changed(self, key: str) -> None:
        if key == "broker":
            self.look()

    def times(self, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
        """The watched times within a period, in order."""
        query = "SELECT since, until FROM watched WHERE until > ? AND since < ? ORDER BY since"
        rows = self._store.db.execute(query, (micros_of(since), micros_of(until)))
        return [(max(_time(begin), since), min(_time(end), until)) for begin, end in rows]

    def seen(self) -> dict[tuple[str, str], datetime]:
        """The time since which each device is known, by table and device."""
        rows = self._store.db.execute("SELECT place, device, since FROM device_seen")
        return {(place, device): _time(since) for place, device, since in rows}


def _time(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)
