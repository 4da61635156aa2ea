"""Groups repeated alerts into incidents and tracks each from the first report until 400 days after its end.

An alert on the broker opens an incident; repeated reports continue it, and an alert that returns soon after its end
reopens it and is counted. An acknowledgement covers only what the page showed: a warning that becomes an error, or
another trouble under the same code, is open again. The console adds alerts that only it can raise: the broker lost, an
edge offline, a growing backlog. A missing alert alone ends no incident: after a reconnection it has ended only if the
process that owns it is online and has repeated its alerts.

Incidents change in memory first, then in the database; if the write fails, pages still show the change and the write is
retried. Silences change in the database first.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from sqlite3 import Connection
from typing import Any, Literal, Protocol

import structlog
from msgspec.structs import replace

from daemon import logs
from daemon.console.alerts.handling import Step, StepKind, added
from daemon.console.alerts.processes import Change, ProcessWatch, SiteView, journal_room
from daemon.console.alerts.records import (
    COLUMNS,
    MORE,
    MORE_COLUMNS,
    SCHEMA,
    UPSERT,
    AlertKey,
    Filter,
    Incident,
    NotOpen,
    Shown,
    Silence,
    incident_of,
    incident_values,
    more_values,
    silence_of_row,
)
from daemon.console.site.store import BadStore, Store
from daemon.journal.rows import micros_of
from protocols.contract.documents import Alert

__all__ = ["KEPT_FOR", "LONGEST_OWN_SILENCE", "LONGEST_SILENCE", "SAME_INCIDENT_WITHIN", "Incidents", "Notifier"]


SAME_INCIDENT_WITHIN = timedelta(minutes=10)
"""An alert that comes back within this time after its end continues the same incident."""
FLAPPING = 3
"""Beginnings of an incident above which its end is reported only after SAME_INCIDENT_WITHIN."""
LONGEST_SILENCE = timedelta(hours=12)
LONGEST_OWN_SILENCE = timedelta(hours=1)
"""The longest silence of a fault by the technician who has taken it."""
KEPT_FOR = timedelta(days=400)
MOST_KEPT = 100_000
MOST_OPEN = 5_000
MOST_SILENCES = 200
LONGEST_TEXT = 2_000
PRUNED_EVERY = timedelta(hours=1)


class Notifier(Protocol):
    """Reports incidents to programs outside feltd, as alerts/webhooks.py does. Only `write` writes to the store."""

    def follow(self, incident: Incident, *, hidden: bool, settled: bool, ahead: Collection[str], now: datetime) -> None:
        """Take the present state of an incident. The notifier keeps what it sent before.

        `ahead`: the severities of the incidents that come before it at its table.
        """
        ...

    def notified(self) -> Iterable[int]:
        """The numbers of all incidents whose end is not sent yet."""
        ...

    def waiting(self) -> bool:
        """Whether `write` has something to write."""
        ...

    def write(self, db: Connection) -> None:
        """Store what is to be sent, in the transaction of the incidents."""
        ...

    def written(self) -> None:
        """The transaction is durable."""
        ...


class Incidents:
    """All incidents: the open ones in memory, all in the store."""

    def __init__(
        self,
        store: Store,
        *,
        edges: Iterable[str] = (),
        rules: str = "rules",
        jackpots: str = "jackpots",
        notifier: Notifier | None = None,
    ) -> None:
        """Continue with the open incidents. `edges` are expected; `rules` and `jackpots` name those processes.

        Raises BadStore.
        """
        self._store = store
        self._notifier = notifier
        self._log: structlog.typing.FilteringBoundLogger = logs.get(console="incidents")
        store.has(SCHEMA)
        self._open: dict[AlertKey, Incident] = {}
        self._ended: dict[AlertKey, Incident] = {}
        """Incidents that ended recently and may reopen."""
        self._processes = ProcessWatch(self._open, frozenset(edges), rules, jackpots)
        for one in self._rows("state != 'resolved' ORDER BY n"):
            self._open[one.key] = one
        for one in self._rows("state = 'resolved' ORDER BY ended DESC LIMIT ?", MOST_OPEN):
            self._ended.setdefault(one.key, one)
        self._ended = dict(reversed(self._ended.items()))  # the oldest first: it makes room first
        (last,) = store.db.execute("SELECT coalesce(max(n), 0) FROM incident").fetchone()
        self._next = int(last) + 1
        self._silences = {one.n: one for one in map(silence_of_row, store.db.execute("SELECT * FROM silence"))}
        (last,) = store.db.execute("SELECT coalesce(max(n), 0) FROM silence").fetchone()
        self._next_silence = int(last) + 1
        self._dirty: dict[int, Incident] = {}
        self._failed = False
        self._full = False
        self._pruned: datetime | None = None
        self._since: dict[AlertKey, datetime] = {}
        """By open incident, since when its alert is on the broker, as far as this process received it."""
        self._said: set[AlertKey] = set()
        """The alerts on the broker, as far as they came in this connection."""
        self._closable: frozenset[int] = frozenset()
        """The incidents that could be closed by hand at the last `look`."""
        self._hiding: tuple[int, ...] = ()
        self.version = 0
        """Changes whenever pages must be updated."""
        self.begun = {"warning": 0, "error": 0}
        """How often incidents began, came back or were open again since the console started, by severity."""
        self.suspended: dict[str, int] = {}
        """By table, the number of suspended rounds since the console started."""

    # ---- incoming alerts

    def on_alert(self, key: AlertKey, alert: Alert | None, now: datetime) -> None:
        """Take an alert of the broker; None: it ended."""
        if alert is None:
            self._said.discard(key)
            self.end(key, now)
        elif key in self._said or len(self._said) < 2 * MOST_OPEN:
            self._said.add(key)
            self._begin(key, alert, now, "broker")

    def begin(self, key: AlertKey, alert: Alert, now: datetime) -> None:
        """Open an incident that the console itself finds, or continue it."""
        self._begin(key, alert, now, "console")

    def end(self, key: AlertKey, now: datetime) -> None:
        """End an incident. One that is not open stays as it is."""
        one = self._open.pop(key, None)
        self._since.pop(key, None)
        if one is not None:
            ended = max(now, one.began)
            over = replace(one, state="resolved", ended=ended, changed=ended)
            self._ended[key] = over
            if len(self._ended) > MOST_OPEN:
                del self._ended[next(iter(self._ended))]
            self._now_is(over, now)

    def _begin(self, key: AlertKey, alert: Alert, now: datetime, heard: Literal["broker", "console"]) -> None:
        said: dict[str, Any] = {
            "code": alert.code[:200],
            "text": alert.text[:LONGEST_TEXT],
            "remedy": alert.remedy[:LONGEST_TEXT],
            "severity": "warning" if alert.severity == "warning" else "error",
            "device": alert.device[:200],
            "heard": heard,
            "round": alert.round[:200],
            "why": alert.why,
            "to_do": alert.to_do,
        }
        since = alert.since if heard == "broker" else None
        one = self._open.get(key)
        if one is not None:
            self._update(one, replace(one, **said), since, now)
            return
        if len(self._open) >= MOST_OPEN:
            if not self._full:
                self._log.error(
                    "incidents.full", open=MOST_OPEN, remedy="stop the client that publishes so many alerts"
                )
            self._full = True
            return
        self._full = False
        before = self._ended.pop(key, None)
        if before is not None and before.ended is not None and now - before.ended <= SAME_INCIDENT_WITHIN:
            new = replace(before, state="open", changed=now, ended=None, times=before.times + 1, **said)
        else:
            began = min(alert.since or now, now)
            if before is not None and before.ended is not None:
                began = max(began, min(before.ended, now))
            table, name = key
            new = Incident(n=self._next, table=table, name=name, state="open", began=began, changed=now, **said)
            self._next += 1
        self._open[key] = new
        if since is not None:
            self._since[key] = since
        self.begun[new.severity] += 1
        if new.code == "round.suspended":
            self.suspended[key[0]] = self.suspended.get(key[0], 0) + 1
        self._now_is(new, now)

    def _update(self, one: Incident, new: Incident, since: datetime | None, now: datetime) -> None:
        """Update an open incident that is reported again, perhaps with another text; news reopens an acknowledged
        one.
        """
        if one.state == "acknowledged" and self._is_news(one, new, since):
            new = replace(new, state="open")
            self.begun[new.severity] += 1
        if since is not None and since != self._since.get(one.key):
            self._since[one.key] = since
            self.version += 1  # pages show which trouble it is
        if new == one:
            return
        new = replace(new, changed=now)
        self._open[one.key] = new
        self.version += 1
        if (new.severity, new.code, new.state) == (one.severity, one.code, one.state):
            self._dirty[new.n] = new  # texts that change many times a second are written by the next `look`
        else:
            self._now_is(new, now)

    def _is_news(self, one: Incident, new: Incident, since: datetime | None) -> bool:
        """Whether `new` is unknown to the person who acknowledged `one`.

        After a restart of the console a later `since` is news only if it is after the acknowledgement. Alerts
        without a time are compared by round and text, without the figures in it, which change often.
        """
        if new.code != one.code or (one.severity, new.severity) == ("warning", "error"):
            return True
        if new.heard == "console" or one.acknowledged is None:
            return False
        if since is None:
            return _words(new.text) != _words(one.text) or bool(one.round and new.round not in ("", one.round))
        known = self._since.get(one.key)
        return since != known if known is not None else since > one.acknowledged

    # ---- actions of users

    def seen(self, one: Incident) -> str:
        """A token that distinguishes the displayed trouble from another under the same number. The form sends it
        back.
        """
        since = self._since.get(one.key)
        shown = [one.code, one.severity, str(one.times)]
        if one.heard == "broker":  # as for `_is_news`
            shown += [_words(one.text), one.round] if since is None else [since.isoformat()]
        return hashlib.sha256("\n".join(shown).encode(errors="replace")).hexdigest()[:16]

    def may_acknowledge(self, n: int, seen: str | None = None) -> Incident:
        """The incident, if it has not changed since `seen`. Raises NotOpen."""
        one = self._open_by_number(n)
        if one.state == "acknowledged":
            raise NotOpen("alerts.faster", f"{one.by} was faster", by=one.by)
        if seen is not None and seen != self.seen(one):
            raise NotOpen("alerts.changed", "it has changed since it was shown")
        return one

    def _open_by_number(self, n: int) -> Incident:
        for one in self._open.values():
            if one.n == n:
                return one
        raise NotOpen("alerts.not_open", "this incident is over")

    def acknowledge(self, n: int, by: str, note: str, now: datetime) -> Incident:
        """Acknowledge an incident with a note. Durable when it returns.

        Raises NotOpen; BadStore where it is done but not yet durable.
        """
        return self._stepped(self.may_acknowledge(n), Step(now, "taken", by, note=note[:LONGEST_TEXT]))

    def handled(self, one: Incident) -> str:
        """A token that distinguishes the displayed last step from a later one. The form sends it back."""
        return one.steps[-1].time.isoformat() if one.steps else ""

    def may_step(
        self, n: int, kind: StepKind, by: str, whom: str, after: str | None, *, others: bool = False
    ) -> Incident:
        """The incident, if `by` may take this step. Raises NotOpen.

        `after`: the last step that was shown. `others`: may also hand over, finish or release another person's
        incident.
        """
        one = self._open_by_number(n)
        if one.state != "acknowledged":
            raise NotOpen("alerts.not_taken", "take it first")
        if after is not None and after != self.handled(one):
            raise NotOpen("alerts.moved", "it has moved on since it was shown")
        if kind == "taken":
            if one.by == by:
                raise NotOpen("alerts.faster", f"{by} has it already", by=by)
        elif one.by != by and (not others or kind in ("on_way", "at_table")):
            raise NotOpen("alerts.not_yours", f"{one.by} has it", by=one.by)
        if kind == "handed" and whom in ("", one.by):
            raise NotOpen("alerts.hand_to_whom", "it is handed over to another person")
        return one

    def step(self, n: int, kind: StepKind, by: str, now: datetime, *, whom: str = "", note: str = "") -> Incident:
        """Take a step of an incident, after `may_step`. Durable when it returns.

        Raises NotOpen; BadStore where it is done but not yet durable.
        """
        one = self._open_by_number(n)
        return self._stepped(one, Step(now, kind, by, whom, note[:LONGEST_TEXT]))

    def _stepped(self, one: Incident, step: Step) -> Incident:
        new = replace(one, steps=added(one.steps, step), changed=step.time)
        match step.kind:
            case "taken":
                new = replace(new, state="acknowledged", by=step.by, acknowledged=step.time, note=step.note)
            case "handed":
                new = replace(new, by=step.whom, note=step.note)
            case "released":
                new = replace(new, state="open", note=step.note)
            case _ if step.note:
                new = replace(new, note=step.note)
            case _:
                pass
        self._open[new.key] = new
        self.version += 1
        self._follow(new, step.time)
        self._dirty[new.n] = new
        self._write()
        return new

    def may_close(self, n: int) -> Incident:
        """The incident, if it may be closed by hand. Raises NotOpen."""
        one = self._open_by_number(n)
        if not self.closable(one):
            raise NotOpen("alerts.still_so", "the cause persists, or its state is unknown")
        return one

    def closable(self, one: Incident) -> bool:
        """Whether it may be closed by hand.

        An incident from the broker may, when the broker has been connected long enough and has no alert for it. The
        console's own incident of a removed edge may, that of a table may not.
        """
        if one.heard == "broker":
            return self._processes.settled and one.key not in self._said
        return not one.table and self._processes.is_removed(one.device)

    def close(self, n: int, by: str, note: str, now: datetime) -> Incident:
        """End by hand an incident of a removed table or edge, which would never end. Raises NotOpen, BadStore.

        Alerts that are on the broker, or that the console itself raises, cannot be closed.
        """
        one = self.may_close(n)
        self._open[one.key] = replace(one, by=by, acknowledged=now, note=note[:LONGEST_TEXT])
        if one.heard == "console":
            self._processes.dismiss(one.device)
        self.end(one.key, now)
        self._write()
        return self._ended[one.key]

    def may_silence_own(self, n: int, by: str, until: datetime, now: datetime) -> Incident:
        """The incident, if `by` has taken it and may silence it for a while. Raises NotOpen."""
        one = self._open_by_number(n)
        if one.state != "acknowledged" or one.by != by:
            raise NotOpen("alerts.silence_own", "take the fault before you silence it")
        if until > now + LONGEST_OWN_SILENCE:
            minutes = LONGEST_OWN_SILENCE // timedelta(minutes=1)
            raise NotOpen("alerts.silence_own_long", f"at most {minutes} minutes", minutes=minutes)
        return one

    def may_silence(self, table: str, device: str, code: str, until: datetime, why: str, now: datetime) -> None:
        """Check a silence. Raises NotOpen where it is not allowed."""
        if not now < until <= now + LONGEST_SILENCE:
            hours = LONGEST_SILENCE // timedelta(hours=1)
            raise NotOpen("alerts.silence_long", f"a silence ends within {hours} hours", hours=hours)
        if not (table or device or code):
            raise NotOpen("alerts.silence_what", "a silence names a table, a device or a code")
        if not why.strip():
            raise NotOpen("alerts.silence_why", "a silence needs a reason")
        if len(self.silences(now)) >= MOST_SILENCES:
            raise NotOpen("alerts.silence_many", f"there are {MOST_SILENCES} silences already")

    def silence(self, table: str, device: str, code: str, until: datetime, by: str, why: str, now: datetime) -> Silence:
        """Hide matching incidents from lamps and webhooks until then. Durable when it returns. Raises NotOpen,
        BadStore.
        """
        self.may_silence(table, device, code, until, why, now)
        new = Silence(self._next_silence, table, device, code, now, until, by, why[:LONGEST_TEXT])
        with self._store.write() as db:
            values = (new.n, table, device, code, micros_of(now), micros_of(until), by, new.why)
            db.execute("INSERT INTO silence VALUES (?,?,?,?,?,?,?,?)", values)
        self._next_silence += 1
        self._silences[new.n] = new
        self.version += 1
        return new

    def unsilence(self, n: int, now: datetime) -> Silence:
        """End the silence now. Durable when it returns. Raises NotOpen, BadStore."""
        one = self._silences.get(n)
        if one is None or one.until <= now:
            raise NotOpen("alerts.silence_over", "this silence is over")
        over = replace(one, until=now)
        with self._store.write() as db:
            db.execute("UPDATE silence SET until = ? WHERE n = ?", (micros_of(now), n))
        self._silences[n] = over
        self.version += 1
        self._follow_all(now)
        return over

    # ---- queries

    def silences(self, now: datetime) -> list[Silence]:
        """The silences in force, the first to end first."""
        return sorted((one for one in self._silences.values() if one.until > now), key=lambda one: one.until)

    def silence_of(self, incident: Incident, now: datetime) -> Silence | None:
        """The longest silence that hides the incident now."""
        return max(
            (
                one
                for one in self._silences.values()
                if one.until > now and one.fits(incident.table, incident.device, incident.code)
            ),
            key=lambda one: one.until,
            default=None,
        )

    def silent(self, table: str, device: str, codes: Iterable[str], now: datetime) -> bool:
        """Whether all of these troubles of a device are hidden from lamps now."""
        hiding = self.silences(now)
        return all(any(one.fits(table, device, code) for one in hiding) for code in codes)

    def in_maintenance(self, table: str, now: datetime) -> Silence | None:
        """The longest silence of the whole table now."""
        whole = (one for one in self.silences(now) if one.table == table and not one.device and not one.code)
        return max(whole, key=lambda one: one.until, default=None)

    @property
    def hiding(self) -> tuple[int, ...]:
        """The numbers of the silences of the last `look`."""
        return self._hiding

    def open(self, now: datetime, table: str | None = None) -> list[Shown]:
        """The open incidents of one table or of all, the worst first.

        The order: silenced ones last; errors before warnings; unacknowledged before acknowledged; then the longest.
        """
        shown = [
            Shown(one, self.silence_of(one, now)) for one in self._open.values() if table is None or one.table == table
        ]
        return sorted(shown, key=_badness)

    @property
    def connected(self) -> datetime | None:
        """Since when the broker is connected, by the last `look`."""
        return self._processes.connected

    def of(self, key: AlertKey) -> Incident | None:
        """The open incident of an alert."""
        return self._open.get(key)

    def get(self, n: int) -> Incident | None:
        """The incident of this number, in any state."""
        for one in (*self._open.values(), *self._dirty.values()):
            if one.n == n:
                return one
        return next(iter(self._rows("n = ?", n)), None)

    def history(self, which: Filter, limit: int, before: int | None = None) -> list[Incident]:
        """At most `limit` incidents, open ones too, the newest first; only numbers below `before`."""
        terms, values = ["1"], list[str | int]()
        equal: list[tuple[str, str]] = [
            ("place", which.table),
            ("device", which.device),
            ("code", which.code),
            ("severity", which.severity),
        ]
        for column, value in equal:
            if value:
                terms.append(f"{column} = ?")
                values.append(value)
        if which.among:
            terms.append(f"place IN ('', {', '.join('?' * len(which.among))})")
            values += which.among
        for term, time in (("began >= ?", which.since), ("began < ?", which.until)):
            if time is not None:
                terms.append(term)
                values.append(micros_of(time))
        if before is not None:
            terms.append("n < ?")
            values.append(before)
        return [
            self._dirty.get(one.n, one)
            for one in self._rows(" AND ".join(terms) + " ORDER BY n DESC LIMIT ?", *values, limit)
        ]

    def during(self, since: datetime, until: datetime, limit: int, among: tuple[str, ...] = ()) -> list[Incident]:
        """At most `limit` that were open at any time from `since` to before `until`, the oldest first."""
        places = f"AND place IN ('', {', '.join('?' * len(among))}) " if among else ""
        where = f"began < ? AND (ended IS NULL OR ended >= ?) {places}ORDER BY n LIMIT ?"
        found = self._rows(where, micros_of(until), micros_of(since), *among, limit)
        return [self._dirty.get(one.n, one) for one in found]

    def silenced_during(self, since: datetime, until: datetime, limit: int) -> list[Silence]:
        """At most `limit` silences that were in force at any time from `since` to before `until`."""
        query = "SELECT * FROM silence WHERE began < ? AND until > ? ORDER BY n LIMIT ?"
        return list(map(silence_of_row, self._store.db.execute(query, (micros_of(until), micros_of(since), limit))))

    # ---- alerts of the console itself

    def look(self, site: SiteView, now: datetime, *, disk_free: int | None = None, refused: int = 0) -> None:
        """Update the incidents; called every second, and when the broker connects or is lost.

        `disk_free`: bytes on the disk of the console's store. `refused`: the number of unreadable messages so far.
        """
        was_connected = self.connected is not None
        self._apply(self._processes.look(site, now, disk_free, refused), now)
        if self.connected is not None:
            absent = [one for key, one in self._open.items() if one.heard == "broker" and key not in self._said]
            self._apply(((one.key, None) for one in absent if self._processes.has_ended(one, site, now)), now)
        elif was_connected:
            self._said.clear()
        hiding = tuple(one.n for one in self.silences(now))
        if hiding != self._hiding:
            self._hiding = hiding
            self.version += 1
        closable = frozenset(one.n for one in self._open.values() if self.closable(one))
        if closable != self._closable:
            self._closable = closable
            self.version += 1
        self._follow_all(now)
        self._try_to_write()
        if self._pruned is None or now - self._pruned >= PRUNED_EVERY:
            self._prune(now)
            self._pruned = now

    def journal(self, share: float, now: datetime) -> None:
        """Update the alert about the room of the console's journal. `share`: the used part; 1: nothing can be
        written.
        """
        self._apply(journal_room(share), now)

    def _apply(self, changes: Iterable[Change], now: datetime) -> None:
        for key, alert in changes:
            if alert is None:
                self.end(key, now)
            else:
                self.begin(key, alert, now)

    # ---- durable

    def _now_is(self, one: Incident, now: datetime) -> None:
        self.version += 1
        self._dirty[one.n] = one
        if len(self._dirty) > 2 * MOST_OPEN:  # the store has not been writable for long
            del self._dirty[next(iter(self._dirty))]
        self._follow(one, now)
        self._try_to_write()

    def _follow(self, one: Incident, now: datetime) -> None:
        """Inform the notifier of a changed incident, and of the others of its table, which may now be first."""
        if self._notifier is not None:
            if one.state == "resolved":
                self._follow_ended(self._notifier, one, now)
            self._follow_open(self._notifier, now, one.table)

    def _follow_all(self, now: datetime) -> None:
        """Inform the notifier of changes by time: silences, and the end of the time in which incidents may reopen."""
        if self._notifier is not None:
            self._follow_open(self._notifier, now)
            for n in set(self._notifier.notified()) - {one.n for one in self._open.values()}:
                if (over := self.get(n)) is not None:
                    self._follow_ended(self._notifier, over, now)

    def _follow_open(self, notifier: Notifier, now: datetime, table: str | None = None) -> None:
        ahead: dict[str, set[str]] = {}
        for shown in self.open(now, table):
            one, hidden = shown.incident, shown.silence is not None
            before = ahead.setdefault(one.table, set()) if one.table else set()
            notifier.follow(one, hidden=hidden, settled=False, ahead=before, now=now)
            if not hidden:
                before.add(one.severity)

    def _follow_ended(self, notifier: Notifier, one: Incident, now: datetime) -> None:
        settled = one.times <= FLAPPING or one.ended is None or now - one.ended >= SAME_INCIDENT_WITHIN
        notifier.follow(one, hidden=False, settled=settled, ahead=(), now=now)

    def _try_to_write(self) -> None:
        try:
            self._write()
        except BadStore as error:
            if not self._failed:
                self._log.error("incidents.unwritten", reason=str(error))
            self._failed = True
        else:
            self._failed = False

    def _write(self) -> None:
        notifier = self._notifier
        if not self._dirty and (notifier is None or not notifier.waiting()):
            return
        with self._store.write() as db:
            db.executemany(UPSERT, [incident_values(one) for one in self._dirty.values()])
            for one in self._dirty.values():
                for column, row in more_values(one):
                    db.execute(f"INSERT OR REPLACE INTO incident_{column} VALUES (?,?)", row)  # noqa: S608 - constants
            if notifier is not None:
                notifier.write(db)
        self._dirty.clear()
        if notifier is not None:
            notifier.written()

    def _prune(self, now: datetime) -> None:
        """Delete incidents that are too old or too many: the oldest ended ones; open ones stay."""
        self._ended = {
            key: one
            for key, one in self._ended.items()
            if one.ended is not None and now - one.ended <= SAME_INCIDENT_WITHIN
        }
        old = micros_of(now - KEPT_FOR)
        try:
            with self._store.write() as db:
                db.execute("DELETE FROM incident WHERE state = 'resolved' AND ended < ?", (old,))
                db.execute(
                    "DELETE FROM incident WHERE state = 'resolved' AND n <= "
                    "(SELECT n FROM incident ORDER BY n DESC LIMIT 1 OFFSET ?)",
                    (MOST_KEPT,),
                )
                for column in MORE_COLUMNS:
                    db.execute(f"DELETE FROM incident_{column} WHERE n NOT IN (SELECT n FROM incident)")  # noqa: S608
                db.execute("DELETE FROM silence WHERE until < ?", (old,))
        except BadStore as error:
            self._log.error("incidents.unpruned", reason=str(error))
        self._silences = {n: one for n, one in self._silences.items() if one.until > now}

    def _rows(self, where: str, *values: str | int) -> Iterator[Incident]:
        query = f"SELECT {COLUMNS}, {MORE} FROM incident WHERE {where}"  # noqa: S608 - `where` is one of ours, values are bound
        return map(incident_of, self._store.db.execute(query, values).fetchall())


def _badness(shown: Shown) -> tuple[bool, bool, bool, datetime, int]:
    one = shown.incident
    return shown.silence is not None, one.severity != "error", one.state == "acknowledged", one.began, one.n


def _words(text: str) -> str:
    """The text without its figures."""
    return re.sub(r"\d+", "#", text)
