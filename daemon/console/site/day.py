"""The timeline's data besides rounds, incidents and devices: restarts, and the actions of people.

Both are kept in memory, bounded. Actions are loaded from the journal of actions at the start; of restarts the last one
of each process is known, and those since this console started. `run` reports the tables with news: alerts, restarts and
actions after two seconds, rounds after ten, so that many are rendered once. A full strip takes 15 ms.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from msgspec import Struct

from daemon import logs
from daemon.console.site.actions import Action, Actions, read_actions
from daemon.console.site.store import BadStore, Store
from daemon.journal.store import BadJournal
from daemon.read_model import SiteState

__all__ = ["DAY", "Days", "Restart"]

DAY = timedelta(hours=24)
EVERY_S = 2.0
ROUNDS = 5
"""Number of EVERY_S after which frequent things are drawn: rounds, and events of devices about themselves."""
MINUTE = 30
"""Number of EVERY_S after which all timelines are drawn again, because time passes."""
MOST_LOADED = 5_000
MOST_ACTIONS = 200
MOST_RESTARTS = 200
DECISIONS = ("void", "correct", "series")
"""The keys of a dealer's page that are actions of the timeline; the others are part of the rounds."""


class Restart(Struct, frozen=True):
    """A process of the site started again. `name` is its client's: an edge, the rules, the jackpots."""

    at: datetime
    name: str


class Days:
    """Restarts and actions of the last day, and the beginning of the known time."""

    def __init__(self, store: Store, site: SiteState, actions: Actions, now: Callable[[], datetime]) -> None:
        """Load the actions of the last day."""
        self._site = site
        self._now = now
        self._restarts: deque[Restart] = deque(maxlen=MOST_RESTARTS)
        self._counted: dict[str, int] = {}
        self._actions: dict[str, deque[Action]] = {}
        self._dirty: set[str] = set()
        self._later: set[str] = set()
        self._log: structlog.typing.FilteringBoundLogger = logs.get(console="day")
        self.started = now()
        self.known = self._followed_since(store)
        """Since when this console's store has records."""
        try:
            for action in reversed(read_actions(actions.journal.path, MOST_LOADED, since=self.started - DAY)):
                self._acted(action)
        except BadJournal as error:
            self._log.warning("day.actions_unread", reason=str(error))
        actions.on_action.append(self._acted)
        site.on_change.append(self._changed)

    def _followed_since(self, store: Store) -> datetime:
        query = "SELECT value FROM about WHERE key = 'day'"
        found: tuple[str] | None = store.db.execute(query).fetchone()
        if found is not None:
            return datetime.fromisoformat(found[0])
        with contextlib.suppress(BadStore), store.write() as db:  # on a full disk it begins with the next start
            db.execute("INSERT INTO about VALUES ('day', ?)", (self.started.isoformat(),))
        return self.started

    async def run(self) -> None:
        """Report the tables with news, until cancelled."""
        count = 0
        while True:
            await asyncio.sleep(EVERY_S)
            count += 1
            if count % ROUNDS == 0:
                self._dirty |= self._later
                self._later.clear()
            self.flush(everything=count % MINUTE == 0)

    def flush(self, *, everything: bool = False) -> None:
        """Report them now."""
        tables = list(self._site.tables) if everything else [one for one in self._dirty if one in self._site.tables]
        self._dirty.clear()
        for table in tables:
            self._site.notify(f"day/{table}")

    def actions(self, table: str, since: datetime) -> list[Action]:
        """The actions of people at a table since then, the oldest first."""
        return [one for one in self._actions.get(table, ()) if one.time >= since]

    def restarts(self, names: set[str], since: datetime) -> list[Restart]:
        """The restarts of these processes since then, in the order in which they were detected."""
        return [one for one in self._restarts if one.name in names and one.at >= since]

    def _acted(self, action: Action) -> None:
        table = action.target.partition("/")[0]
        if action.action == "dealer" and action.detail.get("key") not in DECISIONS:
            return
        if table in self._site.tables:
            self._actions.setdefault(table, deque(maxlen=MOST_ACTIONS)).append(action)
            self._dirty.add(table)

    def _changed(self, key: str) -> None:
        kind, _, rest = key.partition("/")
        match kind:
            case "results" | "table" | "devices":
                self._later.add(rest)
            case "alerts":
                self._dirty.update(self._site.tables)
            case "edges":
                self._look_for_restarts()
            case _:
                pass

    def _look_for_restarts(self) -> None:
        for name, edge in self._site.edges.items():
            if edge.restarts != self._counted.get(name, 0) and edge.restarted is not None:
                self._counted[name] = edge.restarts
                self._restarts.append(Restart(edge.restarted, name))
                self._dirty.update(self._site.tables)
