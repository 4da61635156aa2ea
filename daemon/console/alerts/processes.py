"""Alerts that only the console can raise: the broker lost, a process offline or hanging, a growing backlog, a clock
that is off, a disk or the console's own journal that fills, unreadable messages.

`Incidents.look` calls `ProcessWatch.look` every second and opens or ends an incident for each alert that it yields.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from daemon.console.alerts.records import AlertKey, Incident
from daemon.journal.retention import ANNOUNCED, URGENT
from protocols.contract.documents import Alert

__all__ = ["Change", "ProcessWatch", "SiteView", "journal_room"]

Change: TypeAlias = tuple[AlertKey, Alert | None]
"""An open alert; None: it has ended."""
REFUSED_LATELY = timedelta(minutes=10)
# An alert that the broker no longer holds has ended this long after its owner came online: an edge publishes "online"
# first and repeats its open alerts after it.
ALERTS_REPEATED_WITHIN = timedelta(seconds=5)
# Health is published every 30 s. Older health is a retained message of an edge that is offline.
HEALTH_FRESH_FOR = timedelta(seconds=45)
# An edge without any message this long after the connection is offline.
PEERS_REPORT_WITHIN = timedelta(seconds=10)
BROKER_LOST = timedelta(seconds=3)
BACKLOG_S, BACKLOG_OVER_S = 60.0, 20.0
# The name of the console in the alerts about processes.
OURSELVES = "console"
CLOCK_OFF_S, CLOCK_OVER_S = 5.0, 3.0
OFFLINE = ("edge.offline", "rules.offline", "rules.single", "jackpots.offline")
FORGET = "If it was removed for good: feltd forget"
DISK_WARNING_BYTES, DISK_ERROR_BYTES = 2_000_000_000, 500_000_000


class _Outbox(Protocol):
    @property
    def depth(self) -> int: ...
    @property
    def age_s(self) -> float: ...


class _Health(Protocol):
    @property
    def time(self) -> datetime: ...
    @property
    def outbox(self) -> _Outbox: ...
    @property
    def disk_free(self) -> int: ...


class _Info(Protocol):
    @property
    def rules(self) -> bool: ...
    @property
    def tables(self) -> tuple[str, ...]: ...


class _Edge(Protocol):
    @property
    def online(self) -> bool | None: ...
    @property
    def info(self) -> _Info: ...
    @property
    def health(self) -> _Health | None: ...
    @property
    def heard(self) -> datetime | None: ...
    @property
    def silent(self) -> bool: ...


class _Meta(Protocol):
    @property
    def edge(self) -> str: ...


class _Device(Protocol):
    @property
    def meta(self) -> _Meta: ...


class SiteView(Protocol):
    """The part of daemon/read_model.py that the incidents read."""

    @property
    def connected(self) -> bool: ...
    @property
    def lost(self) -> datetime | None: ...
    @property
    def stalled(self) -> bool: ...
    @property
    def edges(self) -> Mapping[str, _Edge]: ...
    @property
    def devices(self) -> Mapping[AlertKey, _Device]: ...


class _PeerStatus:
    """The messages of an edge in this connection to the broker."""

    def __init__(self, health: _Health | None) -> None:
        self.online: datetime | None = None
        """When it came online."""
        self.last = health
        self.beats = 0
        """How often its health changed: the first may be a retained message."""
        self.off = 0.0
        """Seconds by which its clock was off in the last health message."""


class ProcessWatch:
    """What this connection to the broker shows of the site's processes. `open_`: the open incidents, as they change."""

    def __init__(self, open_: Mapping[AlertKey, Incident], edges: frozenset[str], rules: str, jackpots: str) -> None:
        """`edges` of the configuration, with the rules and the jackpots, are expected on the broker."""
        self._open = open_
        self._expected = edges
        self._rules = rules
        self._jackpots = jackpots
        self.connected: datetime | None = None
        """Since when the broker is connected."""
        self.settled = False
        """Whether the connection is old enough for a message of every process."""
        self._met: dict[str, _PeerStatus] = {}
        self._without_topics: frozenset[str] = frozenset()
        """Edges with incidents but without topics: they were removed while the console was offline."""
        self._dismissed: set[str] = set()
        """Those of them whose incident a person closed, until they send a message."""
        self._refused = 0
        self._refused_at: datetime | None = None

    def look(self, site: SiteView, now: datetime, disk_free: int | None, refused: int) -> Iterator[Change]:
        """The alerts that begin, continue or end. Apply each before the next: later ones read the open incidents."""
        yield from self._look_at_broker(site, now)
        self.settled = self.connected is not None and now - self.connected >= PEERS_REPORT_WITHIN
        if self.connected is not None:
            for name, edge in site.edges.items():
                yield from self._meet(name, edge, now)
            for name in self._met.keys() - site.edges.keys():
                yield from self._forget(name)
            yield from self._look_at_edges(site, now, self.connected)
        if disk_free is not None:
            yield from _disk(OURSELVES, disk_free)
        yield from self._look_at_refused(refused, now)

    def is_removed(self, name: str) -> bool:
        """Whether an edge has an open incident and no topics on the broker."""
        return self.settled and name in self._without_topics

    def dismiss(self, name: str) -> None:
        """Close the incident of a removed edge: it does not begin again until the edge sends a message."""
        self._dismissed.add(name)

    def has_ended(self, one: Incident, site: SiteView, now: datetime) -> bool:
        """Whether an alert that the broker no longer holds has ended: all its owners have repeated their alerts."""
        owners = self._owners(one, site)
        return bool(owners) and all(self._has_spoken(name, now) for name in owners)

    def _look_at_broker(self, site: SiteView, now: datetime) -> Iterator[Change]:
        if site.connected and self.connected is None:
            self.connected = now
            self._met = {name: _PeerStatus(edge.health) for name, edge in site.edges.items()}
        elif not site.connected and self.connected is not None:
            self.connected = None
            self._without_topics = frozenset()
            self._met.clear()
        lost = site.lost or now
        alert = Alert(
            code="broker.lost",
            text="the console has lost the broker: displayed values are old",
            remedy="check the broker and the network; the tables continue without the console",
            since=lost,
        )
        away = not site.connected and now - lost >= BROKER_LOST
        yield from _between(("", "broker-lost"), alert, away, site.connected)
        alert = Alert(
            code="broker.silent",
            text="no process sends heartbeats through the broker: displayed values are old",
            remedy="check whether the broker hangs, and the network; the tables continue without the console",
        )
        yield from _between(("", "broker-silent"), alert, site.stalled, not site.stalled)

    def _meet(self, name: str, edge: _Edge, now: datetime) -> Iterator[Change]:
        met = self._met.setdefault(name, _PeerStatus(None))
        if edge.online is not True:
            met.online = None
        elif met.online is None:
            met.online = now
        health = edge.health
        if health is not None and health != met.last:
            before, met.last = met.last, health
            met.beats += 1
            if edge.online is True:
                yield from _backlog(name, before, health)
                yield from _disk(name, health.disk_free)
                if met.beats > 1:  # the first may be old
                    yield from _clock(name, met, (health.time - (edge.heard or now)).total_seconds())

    def _forget(self, name: str) -> Iterator[Change]:
        """Delete the state of an edge whose topics were cleared, gone for good, and end the incidents about it."""
        del self._met[name]
        for one in [one for one in self._of_edges() if one.device == name]:
            yield one.key, None

    def _of_edges(self) -> Iterator[Incident]:
        """The console's own open incidents about edges, without those about devices."""
        return (one for one in self._open.values() if one.heard == "console" and not one.table)

    def _look_at_edges(self, site: SiteView, now: datetime, connected: datetime) -> Iterator[Change]:
        reported = {name for name, edge in site.edges.items() if edge.online is not None}
        self._dismissed -= reported
        troubled = {one.device for one in self._of_edges()} - {"", OURSELVES}
        if self.settled:
            self._without_topics = frozenset(troubled - self._expected - reported)
        missed = {one.device for one in self._open.values() if one.code in OFFLINE}
        for name in (self._expected | set(site.edges) | missed) - self._dismissed:
            online = site.edges[name].online if name in site.edges else None
            code, text = self._offline(name, site)
            remedy = f"check the process and its log on that computer; events are stored meanwhile. {FORGET} {name}"
            alert = Alert(code=code, text=text, remedy=remedy, device=name)
            silent = name in site.edges and site.edges[name].silent and online is True
            hangs = Alert(
                code="edge.silent",
                text=f"{name} sends no heartbeat: the process hangs, or its network is down",
                remedy="check the process on that computer; restart a process that hangs with systemctl restart",
                device=name,
            )
            yield from _between(("", f"{name}-silent"), hangs, silent and not site.stalled, not silent)
            away = online is False or (online is None and now - connected >= PEERS_REPORT_WITHIN)
            single = _is_single(name, site.edges)
            yield from _between(("", f"{name}-offline"), alert, away and not single, online is True or single)
            alert = Alert(
                code="rules.single",
                text=f"rules process {name} is offline: the other rules process resolves its rounds alone",
                remedy=f"start it again before the other one fails. {FORGET} {name}",
                severity="warning",
                device=name,
            )
            yield from _between(
                ("", f"{name}-single"), alert, away and single, online is True or (self.settled and not single)
            )

    def _offline(self, name: str, site: SiteView) -> tuple[str, str]:
        """Code and text of a process that is offline."""
        if name == self._rules or (name in site.edges and site.edges[name].info.rules):
            return "rules.offline", f"the rules process ({name}) is offline: no round is resolved"
        if name == self._jackpots:
            text = f"the jackpots process ({name}) is offline: pools do not change, and nothing can be paid"
            return "jackpots.offline", text
        return "edge.offline", f"edge {name} is offline: the state of its tables is unknown"

    def _look_at_refused(self, refused: int, now: datetime) -> Iterator[Change]:
        if refused > self._refused:
            self._refused_at = now
        self._refused = refused
        alert = Alert(
            code="messages.refused",
            text=f"{refused} messages on the broker could not be read",
            remedy="another client publishes there, or programs of different versions run: compare them under "
            "`edge/+/info`",
            severity="warning",
        )
        recent = self._refused_at is not None and now - self._refused_at < REFUSED_LATELY
        yield from _between(("", "messages-refused"), alert, recent, not recent)

    def _owners(self, one: Incident, site: SiteView) -> set[str]:
        """The processes that own the alert and will clear it: the rules, the jackpots, or the edges of the table."""
        if one.name == "round-suspended" or one.name.startswith(f"{self._rules}-"):
            return {self._rules}
        if one.name.startswith(f"{self._jackpots}-"):
            return {self._jackpots}
        device = site.devices.get((one.table, one.device))
        if device is not None and device.meta.edge:
            return {device.meta.edge}
        return {device.meta.edge for (table, _), device in site.devices.items() if table == one.table} - {""}

    def _has_spoken(self, name: str, now: datetime) -> bool:
        """Whether all alerts of this process are on the broker."""
        met = self._met.get(name)
        if met is None or met.online is None or now - met.online < ALERTS_REPEATED_WITHIN:
            return False
        if name in (self._rules, self._jackpots) or met.beats > 1:
            return True
        return met.last is not None and abs(now - met.last.time) <= HEALTH_FRESH_FOR


def _is_single(name: str, edges: Mapping[str, _Edge]) -> bool:
    """Whether these rules are offline, and others that are online resolve all their tables."""
    if name not in edges or edges[name].online is True:
        return False
    info = edges[name].info
    others = {table for one in edges.values() if one.online is True and one.info.rules for table in one.info.tables}
    return info.rules and bool(info.tables) and others.issuperset(info.tables)


def _backlog(name: str, before: _Health | None, health: _Health) -> Iterator[Change]:
    outbox = health.outbox
    grows = outbox.age_s > BACKLOG_S and (before is None or outbox.depth >= before.outbox.depth)
    alert = Alert(
        code="edge.backlog",
        text=f"{outbox.depth} events of edge {name} wait for the broker, the oldest for {outbox.age_s:.0f} s",
        remedy="look at the broker and the network between it and the edge; nothing is lost",
        severity="warning",
        device=name,
    )
    yield from _between(("", f"{name}-backlog"), alert, grows, outbox.age_s <= BACKLOG_OVER_S)


def _clock(name: str, met: _PeerStatus, off: float) -> Iterator[Change]:
    """The alert about a clock that is off in two consecutive messages: one may come late."""
    before, met.off = met.off, off
    alert = Alert(
        code="edge.clock",
        text=f"the clock of edge {name} is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the console's",
        remedy="check time synchronisation (chronyc tracking) on the edge's computer and the console's",
        severity="warning",
        device=name,
    )
    wrong = min(abs(before), abs(off)) > CLOCK_OFF_S and (before > 0) == (off > 0)
    yield from _between(("", f"{name}-clock"), alert, wrong, abs(off) <= CLOCK_OVER_S)


def _disk(name: str, free: int) -> Iterator[Change]:
    severity = "error" if free < DISK_ERROR_BYTES else "warning"
    alert = Alert(
        code="disk.full",
        text=f"the disk of {name} has {free / 1e9:.1f} GB left",
        remedy="make room on that computer; when the disk is full, play stops so that no event is lost",
        severity=severity,
        device=name,
    )
    yield from _between(("", f"{name}-disk"), alert, free < DISK_WARNING_BYTES, free > DISK_WARNING_BYTES * 1.1)


def journal_room(share: float) -> Iterator[Change]:
    """The alert about the room of the console's journal. `share`: the used part; 1: nothing can be written."""
    full = share >= 1
    alert = Alert(
        code="journal.full" if full else "journal.room",
        text="the console's journal of actions has no room: pages can be read, no action is possible"
        if full
        else "the console's journal of actions has little room",
        remedy="give more room (limit_mb under [journal], or disk), or move closed files (*.000001.db …) to an "
        "archive; when the journal is full, no action is possible at the console",
        severity="warning" if share < URGENT else "error",
        device=OURSELVES,
    )
    yield from _between(("", f"{OURSELVES}-journal-room"), alert, share >= ANNOUNCED, share < ANNOUNCED)


def _between(key: AlertKey, alert: Alert, begins: bool, ends: bool) -> Iterator[Change]:
    """The change of an alert with two limits: between them an open incident goes on, and none begins."""
    if begins:
        yield key, alert
    elif ends:
        yield key, None
